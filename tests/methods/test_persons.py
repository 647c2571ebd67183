"""Estimators that protect persons: price, replay of whole persons, refusals, files, ledgers, routing."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from complaints import check
from dpsparse import (
    Domain,
    DPADMMClassifier,
    DPGradientClassifier,
    DPGradientRegressor,
    DPHardThresholdClassifier,
    DPHardThresholdRegressor,
    DPLassoClassifier,
    DPScreenedLassoClassifier,
    DPTransferClassifier,
    DPTwoStageClassifier,
    Ledger,
    load,
    save,
)
from dpsparse.accounting.guarantee import PERSON, ROW
from dpsparse.audit.neighbours import SHAPES
from dpsparse.exceptions import (
    BudgetError,
    LedgerError,
    ModelFileError,
    NotPrivateWarning,
    ParameterError,
    SchemaError,
)
from dpsparse.published import WangGuHardThresholdClassifier
from dpsparse.release import Releases, releases_made_by
from dpsparse.report import privacy_card
from dpsparse.rows import Rows

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
N, D = 240, 8
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.6)
LABELS = (X @ np.linspace(-1, 1, D) + RNG.standard_normal(N) > 0).astype(int)
TARGETS = np.clip(X @ np.linspace(-1, 1, D), -3, 3)
GROUPS = RNG.integers(0, 40, N)


def domain(regression=False, **facts):
    known = {"target_bound": 3.0} if regression else {"classes": [0, 1]}
    known |= {"feature_bound": 2.0, "row_norm": 4.0, "n_samples": 40}
    return Domain(unit="person", **(known | facts))


FAMILIES = {
    "gradient": DPGradientClassifier(domain(n_samples=None), epsilon=3.0, n_iter=6),
    "gradient, wide": DPGradientClassifier(domain(n_samples=3), epsilon=3.0, n_iter=4, n_nonzero=3),
    "gradient, numbers": DPGradientRegressor(domain(True, n_samples=None), epsilon=3.0, n_iter=6),
    "threshold": DPHardThresholdClassifier(
        domain(n_samples=None), epsilon=3.0, n_nonzero=3, n_iter=4
    ),
    "threshold, numbers": DPHardThresholdRegressor(
        domain(True, n_samples=None), epsilon=3.0, n_nonzero=3, n_iter=4
    ),
    "m-fold minimiser": DPTransferClassifier(domain(rows_per_unit=4), epsilon=3.0, n_nonzero=3),
    "m-fold rounds": DPADMMClassifier(domain(rows_per_unit=4), epsilon=3.0, n_nonzero=3),
}


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("family", FAMILIES)
def test_replay_of_whole_persons_finds_nothing(family, adjacency):
    model = sklearn.clone(FAMILIES[family]).set_params(adjacency=adjacency)
    finding = check(model, D, n_rows=40, n_pairs=2 * len(SHAPES), n_climbs=0, every=1000)
    assert finding.complaints == ()
    assert finding.height > 0.7  # a person comes near to what is paid for


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("family", [f for f in FAMILIES if "m-fold" not in f])
def test_persons_of_one_row_cost_what_rows_cost_and_give_the_same_model(family, adjacency):
    persons = sklearn.clone(FAMILIES[family]).set_params(adjacency=adjacency, random_state=3)
    facts = {k: v for k, v in vars(persons.domain).items() if k != "unit"}
    rows = sklearn.clone(persons).set_params(domain=Domain(**facts))
    y = TARGETS if persons.domain.target_bound else LABELS
    rows.fit(X, y)
    persons.fit(X, y, groups=np.arange(N)[::-1])
    assert rows.plan_.event == persons.plan_.event
    assert (rows.privacy_.unit, persons.privacy_.unit) == (ROW, PERSON)
    np.testing.assert_array_equal(rows.coef_, persons.coef_)
    np.testing.assert_array_equal(rows.intercept_, persons.intercept_)


@pytest.mark.parametrize("family", [f for f in FAMILIES if "m-fold" not in f])
def test_shuffled_rows_give_the_same_bits(family):
    model = sklearn.clone(FAMILIES[family]).set_params(random_state=3)
    y = TARGETS if model.domain.target_bound else LABELS
    order = np.random.default_rng(1).permutation(N)
    first = sklearn.clone(model).fit(X, y, groups=GROUPS)
    second = sklearn.clone(model).fit(sp.csr_array(X[order]), y[order], groups=GROUPS[order])
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.intercept_, second.intercept_)


def test_the_number_of_persons_is_public_under_replace_one_and_of_rows_is_not():
    """Twice the rows of the same persons: the same number is used for steps."""
    seen = []

    class Watch(Releases):
        def number_of_rows(self, rows):
            seen.append(super().number_of_rows(rows))
            return seen[-1]

    for adjacency in ("replace-one", "add-remove"):
        for copies in (1, 2):
            model = DPGradientClassifier(domain(n_samples=None), adjacency=adjacency, n_iter=2)
            with releases_made_by(lambda plan: Watch(plan, np.random.default_rng(0))):
                model.fit(
                    np.tile(X, (copies, 1)), np.tile(LABELS, copies), groups=np.tile(GROUPS, copies)
                )
    assert seen == [len(np.unique(GROUPS))] * 2 + [None] * 2
    assert (
        "the number of persons is public (replace-one)"
        in DPGradientClassifier(domain(n_samples=None), adjacency="replace-one").plan(D).assumptions
    )


REFUSED = [
    (DPTwoStageClassifier(domain()), "one row of a person"),
    (DPTwoStageClassifier(domain(rows_per_unit=3)), "objective perturbation"),
    (DPTransferClassifier(domain()), "public bound on their number"),
    (DPADMMClassifier(domain()), "public bound on their number"),
    (DPLassoClassifier(domain()), "public bound on their number"),
    (DPScreenedLassoClassifier(domain()), "public bound on their number"),
    (WangGuHardThresholdClassifier(domain()), "published"),
]


@pytest.mark.parametrize(("model", "reason"), REFUSED, ids=lambda v: str(v)[:30])
def test_what_has_no_proof_is_refused_before_anything_is_spent(model, reason):
    ledger = Ledger(epsilon=9.0, delta=1e-5, unit="person")
    with pytest.raises(ParameterError, match=reason):
        sklearn.clone(model).set_params(ledger=ledger).fit(X, LABELS, groups=GROUPS)
    with pytest.raises(ParameterError, match="rows_per_unit=1"):
        model.plan(D)
    assert ledger.history() == []


def test_selections_of_frank_wolfe_pay_for_every_row():
    """Group privacy: with m rows a person the same eta buys an m-th of the temperature."""
    seen = []

    class Watch(Releases):
        def kappa(self, phase, per_kappa):
            seen.append(super().kappa(phase, per_kappa))
            return seen[-1]

    for m in (1, 4):
        model = DPLassoClassifier(domain(rows_per_unit=m), n_iter=3, fit_intercept=False)
        with releases_made_by(lambda plan: Watch(plan, np.random.default_rng(0))):
            model.fit(X, LABELS, groups=GROUPS)
    assert seen[0] == pytest.approx(4.0 * seen[1])


@pytest.mark.parametrize(
    "model",
    [
        DPLassoClassifier(domain(rows_per_unit=1), n_iter=5),
        DPTwoStageClassifier(domain(rows_per_unit=1), n_nonzero=2),
        DPADMMClassifier(domain(rows_per_unit=1)),
    ],
    ids=lambda m: type(m).__name__,
)
def test_one_random_row_of_every_person_serves_every_family(model):
    model.fit(X, LABELS, groups=GROUPS)
    assert model.privacy_.proven
    assert model.privacy_.unit == PERSON
    assert "rows of a person beyond 1 are dropped at random" in model.privacy_.assumptions


class TestGroups:
    def test_groups_and_unit_belong_together(self):
        with pytest.raises(ParameterError, match="groups=ids"):
            DPGradientClassifier(domain()).fit(X, LABELS)
        with pytest.raises(ParameterError, match="unit='person'"):
            DPGradientClassifier(Domain(classes=[0, 1])).fit(X, LABELS, groups=GROUPS)

    def test_bad_groups_cost_nothing(self):
        ledger = Ledger(epsilon=9.0, delta=1e-5, unit="person")
        for groups in (GROUPS[:-1], np.full(N, np.nan), [None] * N, [{"secret": 1}, *range(N - 1)]):
            with pytest.raises(SchemaError, match="groups") as caught:
                DPGradientClassifier(domain(), ledger=ledger).fit(X, LABELS, groups=groups)
            assert "secret" not in str(caught.value)
        assert ledger.history() == []

    def test_metadata_routing(self):
        with sklearn.config_context(enable_metadata_routing=True):
            model = DPGradientClassifier(domain(), n_iter=3, random_state=0)
            model = model.set_fit_request(groups=True)
            pipe = make_pipeline(FunctionTransformer(), model)
            pipe.fit(X, LABELS, groups=GROUPS)
            assert pipe[-1].privacy_.unit == PERSON
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores = cross_val_score(
                    pipe, X, LABELS, params={"groups": GROUPS}, cv=GroupKFold(3),
                    scoring="accuracy", error_score="raise",
                )  # fmt: skip
            assert len(scores) == 3


class TestPaper:
    def test_card_file_and_text_say_person(self, tmp_path):
        model = DPGradientClassifier(domain(rows_per_unit=5), n_iter=3).fit(
            X, LABELS, groups=GROUPS
        )
        assert "add/remove one person" in model.privacy_.headline
        assert "Whether one person with all of their rows was used or not" in str(model.privacy_)
        assert "rows of a person beyond 5 are dropped at random" in str(model.privacy_)
        page = privacy_card(model)
        assert "one person, all of their rows" in page
        assert "Whether one person with all of their rows was used or not" in page
        assert "rows were used or not" in page
        back = load(save(model, tmp_path / "m.json"))
        assert back.privacy_ == model.privacy_
        assert back.domain == model.domain
        text = (tmp_path / "m.json").read_text()
        assert "patient" not in text

    def test_a_file_cannot_claim_persons_for_rows(self, tmp_path):
        model = DPGradientClassifier(Domain(classes=[0, 1]), n_iter=3).fit(X, LABELS)
        model.domain = domain()
        with pytest.raises(ModelFileError, match="could not be read again"):
            save(model, tmp_path / "m.json")

    def test_ledgers_refuse_plans_of_the_other_unit(self, tmp_path):
        rows = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=0.1)
        persons = DPGradientClassifier(domain(), epsilon=0.1)
        for unit, good, bad in (("row", rows, persons), ("person", persons, rows)):
            path = tmp_path / f"{unit}.db"
            ledger = Ledger(path, epsilon=1.0, delta=1e-5, unit=unit)
            ledger.reserve(good.plan(D))
            with pytest.raises(BudgetError, match="neither implies the other"):
                ledger.reserve(bad.plan(D))
            with pytest.raises(BudgetError, match="protects"):
                Ledger(path).would_allow(bad.plan(D))
            assert len(Ledger(path).history()) == 1
        with pytest.raises(LedgerError, match="protects one person"):
            Ledger(tmp_path / "person.db", unit="row")
        with pytest.raises(ParameterError, match="unit"):
            Ledger(epsilon=1.0, delta=1e-5, unit="patient")


def test_seeded_persons_are_not_private():
    with pytest.warns(NotPrivateWarning):
        DPGradientClassifier(domain(), n_iter=2, random_state=0).fit(X, LABELS, groups=GROUPS)


@pytest.mark.parametrize("unit", ["row", "person"])
def test_columns_that_are_kept_still_belong_to_persons(unit):
    """Without their persons the rows on the columns found could not be summed, after the fit was paid."""
    X, y = np.eye(4)[[0, 1, 2, 3, 0, 1]], np.array([0, 1, 0, 1, 0, 1])
    domain = Domain(classes=[0, 1], unit=unit, rows_per_unit=None if unit == "row" else 1)
    groups = None if unit == "row" else np.arange(6)
    rows = Rows.clip(X, y, domain, labels=np.array([0, 1]), groups=groups).columns(np.array([0, 2]))
    units = rows.entries(1.0, 2.0)
    answer = units.gradient("logistic", np.zeros((2, 1)), np.zeros(1), clip=0.5).whole(2.0**-20)
    whole = np.round(answer[:, 0] * 2.0**-20, 4).tolist()
    assert whole == [1.0, 0.5, 0.0]
