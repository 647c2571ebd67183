"""The corridor: refuse before charge, charge before noise, publish last."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dpsparse import Domain, DPGradientClassifier, DPLassoClassifier
from dpsparse import methods as estimators
from dpsparse.exceptions import (
    DomainError,
    NotPrivateWarning,
    ParameterError,
    SchemaError,
)
from dpsparse.random import make_generator
from dpsparse.release import Releases, releases_made_by

DOMAIN = Domain(row_norm=1.0, classes=[0, 1], n_samples=400)


class SpyLedger:
    """Counts what is asked of it; a stand-in for the real one."""

    def __init__(self, refuse=False):
        self.calls, self.refuse = [], refuse

    def reserve(self, plan):
        self.calls.append("reserve")
        if self.refuse:
            raise RuntimeError("refused")
        return self

    def commit(self):
        self.calls.append("commit")

    def __deepcopy__(self, memo):
        return self


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 30), density=0.3, rng=rng, format="csr")
    y = (X[:, [0]].toarray().ravel() > X[:, [1]].toarray().ravel()).astype(int)
    return X, y


BAD_PARAMETERS = [
    ({"epsilon": 0}, "epsilon"), ({"epsilon": -1.0}, "epsilon"), ({"epsilon": math.nan}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"), ({"delta": 0.0}, "delta"), ({"delta": 1.0}, "delta"),
    ({"delta": math.nan}, "delta"), ({"delta": 2}, "delta"), ({"adjacency": "neighbours"}, "adjacency"),
    ({"domain": None}, "domain"),
    ({"domain": {"row_norm": 1}}, "domain"), ({"ledger": "ledger.db"}, "ledger"),
    ({"random_state": "seed"}, "random_state"), ({"n_iter": 0}, "n_iter"), ({"n_iter": 2.5}, "n_iter"),
    ({"n_nonzero": 0}, "n_nonzero"),
    ({"domain": Domain(row_norm=1.0, n_samples=400)}, "classes"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "named"), BAD_PARAMETERS)
def test_bad_parameters_are_refused_by_name_before_anything_is_spent(problem, bad, named):
    ledger = SpyLedger()
    model = DPGradientClassifier(**{"domain": DOMAIN, "ledger": ledger, **bad})
    with pytest.raises((ParameterError, DomainError), match=named) as caught:
        model.fit(*problem)
    assert ledger.calls == []
    assert "\n" not in str(caught.value)


def test_bad_data_is_refused_before_anything_is_spent(problem):
    X, y = problem
    ledger = SpyLedger()
    model = DPGradientClassifier(DOMAIN, ledger=ledger)
    text = pd.DataFrame({"a": ["secret-value"] * 4, "b": 1.0})
    cases = [
        (X, y[:-1]), (X.toarray()[:, 0], y), (sp.csr_array((0, 3)), []), (text, [0, 1, 0, 1]),
        (np.full((4, 2), np.nan), [0, 1, 0, 1]), (X, y + 5), (X.toarray() * 1j, y), (X, None),
    ]  # fmt: skip
    for X_bad, y_bad in cases:
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - scikit-learn's own or ours, one line each
            model.fit(X_bad, y_bad)
        assert "secret-value" not in str(caught.value)
        assert "\n" not in str(caught.value)
    assert ledger.calls == []
    with pytest.raises(SchemaError, match="X must be numeric"):
        model.fit(text, [0, 1, 0, 1])


def test_reserve_comes_before_noise_and_commit_after(problem):
    ledger = SpyLedger()

    class SpyReleases(Releases):
        def gaussian(self, *arguments, **options):
            ledger.calls.append("noise")
            return super().gaussian(*arguments, **options)

    with releases_made_by(lambda plan: SpyReleases(plan, make_generator(None))):
        DPGradientClassifier(DOMAIN, ledger=ledger).fit(*problem)
    assert ledger.calls[0] == "reserve"
    assert ledger.calls[-1] == "commit"
    assert set(ledger.calls[1:-1]) == {"noise"}


def test_a_refused_reservation_leaves_no_model(problem):
    model = DPGradientClassifier(DOMAIN, ledger=SpyLedger(refuse=True))
    with pytest.raises(RuntimeError, match="refused"):
        model.fit(*problem)
    assert not hasattr(model, "coef_")


def test_an_interrupted_fit_is_spent_and_leaves_no_model(problem):
    ledger = SpyLedger()

    class InterruptedReleases(Releases):
        def gaussian(self, *arguments, **options):
            raise KeyboardInterrupt

    model = DPGradientClassifier(DOMAIN, ledger=ledger)
    with (
        releases_made_by(lambda plan: InterruptedReleases(plan, make_generator(None))),
        pytest.raises(KeyboardInterrupt),
    ):
        model.fit(*problem)
    assert ledger.calls == ["reserve"]
    assert not hasattr(model, "coef_")


def test_plan_needs_no_data_and_equals_the_fit(problem):
    model = DPGradientClassifier(DOMAIN)
    plan = model.plan(n_features=30)
    model.fit(*problem)
    assert model.plan_ == plan
    assert model.privacy_ == plan.guarantee
    assert model.privacy_.proven
    assert (model.privacy_.epsilon, model.privacy_.delta) == (1.0, 1e-6)
    for wrong in (0, 2.5, True, "10"):
        with pytest.raises(ParameterError, match="n_features"):
            model.plan(wrong)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_plan_never_spends_more_than_asked(adjacency):
    from dpsparse.accounting import epsilon

    for asked in (0.1, 1.0, 10.0):
        plan = DPGradientClassifier(DOMAIN, epsilon=asked, adjacency=adjacency).plan(100)
        assert 0.98 * asked < epsilon(plan.event, 1e-6) <= asked


def test_a_seed_warns_and_voids_the_guarantee(problem):
    model = DPGradientClassifier(DOMAIN, random_state=3)
    with pytest.warns(NotPrivateWarning, match="NOT private"):
        model.fit(*problem)
    assert not model.privacy_.proven
    assert "seed" in str(model.privacy_).lower()
    with pytest.warns(NotPrivateWarning):
        again = clone(model).fit(*problem)
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("name", estimators.__all__)
def test_the_plan_of_a_seeded_estimator_is_not_private(name):
    """A plan must not say "proven" where `fit` says "not private"."""
    kind = getattr(estimators, name)
    facts = {"classes": [0, 1]} if "Classifier" in name else {"target_bound": 1.0}
    domain = Domain(row_norm=1.0, n_samples=400, **facts)
    assert kind(domain).plan(30).proven
    seeded = kind(domain, random_state=3).plan(30)
    assert not seeded.proven
    assert "seed" in str(seeded)


def test_no_plan_of_frank_wolfe_assumes_ideal_arithmetic():
    for domain in (Domain(classes=[0, 1], n_samples=400), Domain(classes=[0, 1, 2])):
        plan = DPLassoClassifier(domain).plan(30)
        assert not [line for line in plan.assumptions if "real arithmetic" in line]


def test_secure_fits_differ(problem):
    first, second = (DPGradientClassifier(DOMAIN).fit(*problem).coef_ for _ in range(2))
    assert not np.array_equal(first, second)


def test_no_noise_is_the_non_private_model(problem):
    model = DPGradientClassifier(DOMAIN, epsilon=math.inf).fit(*problem)
    again = clone(model).fit(*problem)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert not model.privacy_.proven
    assert math.isinf(model.privacy_.epsilon)


def test_formats_agree(problem):
    X, y = problem
    frame = pd.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(30)])
    expected = DPGradientClassifier(DOMAIN, epsilon=math.inf).fit(X, y)
    for other in (X.tocsc(), X.toarray(), frame):
        model = DPGradientClassifier(DOMAIN, epsilon=math.inf).fit(other, y)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
    single = DPGradientClassifier(DOMAIN, epsilon=math.inf).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.coef_, expected.coef_, atol=1e-6 * abs(expected.coef_).max())
    assert list(DPGradientClassifier(DOMAIN).fit(frame, y).feature_names_in_) == list(frame.columns)


def test_sparsify_predicts_the_same_and_densify_undoes_it(problem):
    X, y = problem
    model = DPGradientClassifier(DOMAIN, n_nonzero=5).fit(X, y)
    margins, coef = model.decision_function(X), model.coef_.copy()
    assert model.n_nonzero_ <= 5
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.decision_function(X), margins)
    np.testing.assert_allclose(model.decision_function(X.toarray()), margins)
    np.testing.assert_array_equal(model.densify().coef_, coef)


def test_string_labels_and_probabilities(problem):
    X, y = problem
    names = np.array(["no", "yes"])[y]
    model = DPGradientClassifier(Domain(row_norm=1.0, classes=["yes", "no"], n_samples=400)).fit(
        X, names
    )
    assert set(model.predict(X)) <= {"no", "yes"}
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P)


def test_one_class_present_is_no_error_when_two_are_declared(problem):
    X, y = problem
    model = DPGradientClassifier(DOMAIN).fit(X, np.zeros_like(y))
    assert list(model.classes_) == [0, 1]


def test_pipeline_clone_pickle(problem):
    X, y = problem
    pipe = clone(make_pipeline(Normalizer(), DPGradientClassifier(DOMAIN))).fit(X, y)
    restored = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(restored.predict(X), pipe.predict(X))
    assert restored[-1].privacy_ == pipe[-1].privacy_


def test_a_plan_cannot_claim_less_than_it_spends():
    from dataclasses import replace

    from dpsparse.exceptions import CalibrationError

    plan = DPGradientClassifier(DOMAIN).plan(30)
    with pytest.raises(CalibrationError, match="spends more"):
        replace(plan, epsilon=0.99)


def test_a_target_among_the_columns_is_hinted_at():
    """By names alone, in fits, searches and intervals; pipelines have a test of their own."""
    from dpsparse import DPSearchCV, dp_inference

    frame = pd.DataFrame({"a": [0.1, 0.9] * 50, "sick": [0.0, 1.0] * 50})
    domain = Domain(classes=[0, 1], feature_bound=1.0)
    model = DPGradientClassifier(domain, n_iter=2)
    runs = (
        lambda y: model.fit(frame, y),
        lambda y: DPSearchCV(model, {"n_nonzero": [1, 2]}).fit(frame, y),
        lambda y: dp_inference(frame, y, ["a"], domain),
    )
    for run in runs:
        with pytest.warns(UserWarning, match="column of the name that y has"):
            run(frame["sick"].astype(int))
        run(frame["sick"].astype(int).rename("ill"))
