"""The gradient method: replay of every release on neighbours, invariances, degenerate data."""

import math
import tracemalloc
from functools import partial

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss

from complaints import check
from dpsparse.audit.neighbours import Pair
from dpsparse.audit.replay import check_pair
from dpsparse.audit.subject import Subject
from dpsparse.domain import Domain
from dpsparse.methods import DPGradientClassifier, DPGradientRegressor, DPHardThresholdClassifier
from dpsparse.methods.gradient import solve as gradient
from dpsparse.methods.look import rows as look
from dpsparse.nonzeros import PrivateCount
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Rows, unit

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
FEW = (
    {"n_iter": 4} if numba.config.DISABLE_JIT else {}
)  # steps enough for every kernel without the compiler
BINARY = Domain(classes=[0, 1])


def make_table(n=300, d=40, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.3, rng=rng, format="csr").toarray() * 2 - 0.5
    w = rng.standard_normal((d, classes))
    return X, (X @ w).argmax(axis=1)


# With fewer declared rows than columns a table is wide, and features are pruned.
TABLES = {
    "two": {"classes": [0, 1], "n_samples": 60},
    "two wide": {"classes": [0, 1], "n_samples": 6},
    "four": {"classes": [0, 1, 2, 3], "n_samples": 60},
    "four wide": {"classes": [0, 1, 2, 3], "n_samples": 6},
    "bounded": {"classes": [0, 1], "n_samples": 60, "feature_bound": 4.0},
    "numbers": {"target_bound": 5.0, "n_samples": 60},
}


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", TABLES)
def test_every_phase_is_replayed_and_its_bound_attained(name, adjacency):
    """So much epsilon that noise hides nothing. Replacing a row needs two rows at once that move a sum most."""
    kind = DPGradientRegressor if name == "numbers" else DPGradientClassifier
    domain = Domain(**TABLES[name])
    model = kind(domain, epsilon=20.0, n_nonzero=4, n_iter=4, adjacency=adjacency)
    finding = check(model, 12, n_rows=60, n_pairs=16, n_climbs=2, every=1000)
    assert finding.complaints == ()
    assert finding.tightness.keys() == {phase.name for phase in model.plan(12).phases}
    assert min(finding.tightness.values()) > (0.99 if adjacency == "add-remove" else 0.55)


def test_replacing_a_row_attains_twice_the_clip():
    """The same features, the other label: slopes +c and -c, where both classes are as common and nothing is learnt."""
    X, y = make_table(20_000)
    y = (np.arange(20_000) % 2).astype(int)
    other = y.copy()
    X[0] = np.eye(40)[3]
    y[0], other[0] = 1, 0
    model = DPGradientClassifier(BINARY, epsilon=2.0, adjacency="replace-one", n_iter=1)
    found = check_pair(Subject(model, 40), Pair(X, y, X, other, "the other label")).tightness
    assert min(found["gradients"], found["prior"], found["intercept"]) > 0.99


@pytest.mark.nojit
def test_layouts_give_the_same_model():
    X, y = make_table()
    models = [
        DPGradientClassifier(BINARY, random_state=3, **FEW).fit(form(X), y)
        for form in (np.asarray, sp.csr_array, sp.csc_array, sp.csr_matrix)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(models[0].coef_, model.coef_)


def test_it_learns_with_and_without_noise():
    X, y = make_table(2000)
    exact = DPGradientClassifier(BINARY, epsilon=math.inf).fit(X, y)
    assert exact.score(X, y) > 0.95
    assert not exact.privacy_.proven
    models = [DPGradientClassifier(BINARY, epsilon=8.0, random_state=s) for s in range(3)]
    assert np.mean([model.fit(X, y).score(X, y) for model in models]) > 0.85


def test_without_noise_few_weights_of_a_wide_table_are_found_and_fitted():
    """5 of 900 columns matter, or 3 for three classes. Plain least squares on the right columns has R2 .99."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (900, 900))
    y = X[:, :5] @ np.array([1.0, -0.8, 0.6, 0.9, -0.7]) + 0.1 * rng.standard_normal(900)
    numbers = Domain(target_bound=4.0, n_samples=600)
    model = DPGradientRegressor(numbers, n_nonzero=5, epsilon=math.inf).fit(X[:600], y[:600])
    assert np.flatnonzero(model.coef_).tolist() == [0, 1, 2, 3, 4]
    assert model.score(X[600:], y[600:]) > 0.95
    best = X[:, :3].argmax(axis=1)
    domain = Domain(classes=[0, 1, 2], n_samples=600)
    model = DPGradientClassifier(domain, n_nonzero=3, epsilon=math.inf).fit(X[:600], best[:600])
    assert model.n_nonzero_ == 3  # dropped ones stay zero
    assert np.all(np.diag(model.coef_) > 0)
    assert model.score(X[600:], best[600:]) > 0.9


def test_without_noise_the_steps_are_those_of_the_largest_budget():
    X, y = make_table(2000)
    domain = Domain(classes=[0, 1], n_samples=2000)
    model = DPGradientClassifier(domain, epsilon=math.inf).fit(X, y)
    assert model.n_iter_ == math.ceil(math.sqrt(2000 * 32))
    assert DPGradientClassifier(domain, epsilon=math.inf, n_iter=9).fit(X, y).n_iter_ == 9


@pytest.mark.heavy
@pytest.mark.parametrize("case", ["exact", "few", "many", "threshold"])
def test_weights_stay_with_their_columns_where_rows_answer_in_another_order(monkeypatch, case):
    """Many kept columns come commonest first, and those left after a round in another order or rising. Columns 0 to 4
    matter, differ in how common they are, and must be found with the weights they have where all columns rise.
    Seeded: the noise of the two runs differs by its order alone, and 0.2 is ten times what that makes here."""
    rng = np.random.default_rng(0)
    common = rng.permutation(np.linspace(0.05, 0.9, 3000))
    common[:5] = [0.9, 0.3, 0.7, 0.4, 0.8]
    X = rng.uniform(-1, 1, (2000, 3000)) * (rng.random((2000, 3000)) < common)
    y = (X[:, :5] @ np.array([1.0, -2.0, 1.5, 2.0, -1.0]) > 0).astype(int)
    domain = Domain(classes=[0, 1], n_samples=2000)
    facts: dict = {"random_state": 1, "n_nonzero": 5, "epsilon": 500.0}
    if case == "exact":
        facts = {"n_nonzero": 5, "epsilon": math.inf}
    if case == "many":  # the weights of the first round are where the second begins
        domain = Domain(classes=[0, 1], n_samples=250)
        facts |= {"n_nonzero": 900}
    make = DPHardThresholdClassifier if case == "threshold" else DPGradientClassifier
    plain = make(domain, **facts).fit(X, y)
    small = partial(unit._commonest_first, many=10, common=5, known=12)
    monkeypatch.setattr(unit, "_commonest_first", small)
    model = make(domain, **facts).fit(X, y)
    if case != "many":
        assert np.flatnonzero(model.coef_).tolist() == [0, 1, 2, 3, 4]
    found, asked = model.coef_[0, :5], plain.coef_[0, :5]  # the released slope of both has noise
    np.testing.assert_allclose(
        found / np.linalg.norm(found), asked / np.linalg.norm(asked), rtol=0.2
    )
    if case != "many":  # where a false number of rows is declared, so is the offset
        assert model.score(X, y) == pytest.approx(plain.score(X, y), abs=0.01)


def test_multinomial_learns():
    X, y = make_table(3000, classes=4)
    model = DPGradientClassifier(Domain(classes=[0, 1, 2, 3]), epsilon=8.0, random_state=0).fit(
        X, y
    )
    assert model.coef_.shape == (4, 40)
    assert model.score(X, y) > 0.7


def test_regression_learns():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 10))
    y = X @ np.linspace(-1, 1, 10) + 1.0 + 0.1 * rng.standard_normal(4000)
    model = DPGradientRegressor(Domain(target_bound=8.0), epsilon=3.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("n_nonzero", [1, 7, 10_000, "mass", PrivateCount(1, 20, 0.2)])
def test_n_nonzero(n_nonzero):
    X, y = make_table()
    model = DPGradientClassifier(BINARY, n_nonzero=n_nonzero, random_state=0).fit(X, y)
    if isinstance(n_nonzero, int):
        assert model.n_nonzero_ <= n_nonzero
    assert model.plan_.epsilon == 1.0


@pytest.mark.nojit
@pytest.mark.parametrize("epsilon", [0.1, math.inf])
@pytest.mark.parametrize(
    "X",
    [
        np.ones((50, 1)),
        np.zeros((50, 5)),
        np.eye(50),
        np.full((50, 2), 1e-200),
        np.full((50, 3), 1e150),
    ],
    ids=["single", "zero", "identity", "tiny", "huge"],
)
def test_degenerate_tables_give_finite_models(X, epsilon):
    domain = Domain(classes=[0, 1])
    for y in (np.zeros(50, int), np.arange(50) % 2):
        model = DPGradientClassifier(domain, epsilon=epsilon, random_state=0, **FEW).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.intercept_).all()
    domain = Domain(target_bound=3.0)
    for y in (np.full(50, 2.0), np.linspace(-3, 3, 50)):
        model = DPGradientRegressor(domain, epsilon=epsilon, random_state=0, **FEW).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.intercept_)


def test_rare_class_and_few_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (200, 30))
    y = (np.arange(200) < 3).astype(int)
    model = DPGradientClassifier(BINARY, epsilon=0.5, random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_intercept_meets_the_class_counts():
    X, y = make_table(3000)
    y = (y & (np.arange(3000) % 3 == 0)).astype(int)
    model = DPGradientClassifier(BINARY, epsilon=8.0, n_nonzero=5, random_state=0).fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.05)


def test_number_of_rows_is_not_read_under_add_remove():
    """Without a declared n the solver uses the noisy counts; with replace-one the public one."""
    X, y = make_table()
    for adjacency, public in (("add-remove", False), ("replace-one", True)):
        model = DPGradientClassifier(BINARY, epsilon=1.0, adjacency=adjacency)
        rows = Rows.clip(X, y, BINARY, labels=np.array([0, 1]))
        plan = model.plan(40)
        releases = Releases(plan, make_generator(0))
        targets = look.look_at_targets(rows, plan.settings.look, releases)
        assert (targets.n == 300.0) == public


def test_plan_lists_every_phase_and_its_shares():
    plan = DPGradientClassifier(BINARY).plan(1000)
    assert [p.name for p in plan.phases] == ["prior", "masses", "length", "intercept", "gradients"]
    mu = plan.parameters["mu"]
    assert sum((1 / p.event.scale) ** 2 for p in plan.phases) == pytest.approx(mu**2)
    assert mu == pytest.approx(0.2367044, rel=1e-6)  # analytic Gaussian at (1, 1e-6)
    assert "docs/proofs" in plan.source


@pytest.mark.parametrize(
    "bad",
    [{"n_iter": 0}, {"n_nonzero": 1.5}],
)  # fmt: skip
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad)).split("_")[-1].rstrip("s")):
        DPGradientClassifier(BINARY, **bad).plan(10)


def test_memory_is_four_float32_vectors_beyond_the_data():
    """Peak of NumPy's allocations during a fit of a million features, against 4 million bytes."""
    width, n = 1_000_000, 500
    rng = np.random.default_rng(0)
    X = sp.random_array((n, width), density=4e-6, rng=rng, format="csr")
    y = rng.integers(0, 2, n)
    rows = Rows.clip(X, y, BINARY, labels=np.array([0, 1]))
    for n_nonzero, compiled in ((100, False), (None, True), (100, True)):
        plan = DPGradientClassifier(BINARY, n_nonzero=n_nonzero, n_iter=2).plan(width)
        tracemalloc.start()
        plan.settings.solve(rows, Releases(plan, make_generator(0)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # 4 vectors; 1 for column starts that replace those of the data; 2,000 entries and 500 rows
        assert peak <= 5.4 * 4 * width or not compiled  # Numba's own memory is not the fit's


def test_a_few_positive_features_are_learnt():
    """Rows brought to length 1 keep their size through the constant entry: three features of one
    sign, whose direction alone says little."""
    rng = np.random.default_rng(0)
    X = rng.random((6000, 3))
    y = (X[:, 0] + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(6000) > 0.65).astype(int)
    for epsilon, least in ((math.inf, 0.85), (1.0, 0.83)):
        model = DPGradientClassifier(BINARY, epsilon=epsilon, random_state=0)
        assert model.fit(X[:5000], y[:5000]).score(X[5000:], y[5000:]) > least


def test_more_rows_take_fewer_steps_than_the_longest_schedule():
    taken = [gradient.schedule(None, False, n, 1.0)[0] for n in (1e5, 5e7, 1e8, 1e9, 1e12)]
    assert taken == [317, 2000, 1000, 400, 400]


def test_columns_without_rows_are_dropped_where_there_are_many(monkeypatch):
    """Narrow tables keep all columns; one of very many columns does not pay for those that hardly occur."""
    n, d = 3000, 1000
    X = sp.csr_array(
        (np.ones(2 * n), (np.repeat(np.arange(n), 2), np.arange(2 * n) % 20)), shape=(n, d)
    )
    y, seen = np.arange(n) % 2, []
    unit = Rows.unit
    monkeypatch.setattr(
        Rows, "unit", lambda self, D, **k: seen.append(np.count_nonzero(D)) or unit(self, D, **k)
    )
    for many in (look.MANY_COLUMNS, 500):
        monkeypatch.setattr(look, "MANY_COLUMNS", many)
        seen.clear()
        DPGradientClassifier(Domain(classes=[0, 1]), n_iter=3, random_state=0).fit(X, y)
        assert seen[0] == d  # the masses
        assert (min(seen) == d) == (many > d)
        assert min(seen) >= 20


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e3, 1e9])
def test_weights_do_not_depend_on_the_unit_of_columns_that_nobody_bounded(unit):
    """Seconds or days, euros or cents: the length of rows was sought below sqrt(d), and weights of longer rows were
    too large by the rest (R2 of -370,000 at a unit of 1,000)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4))
    y = X[:, 0] + 0.3 * rng.normal(size=4000)
    numbers = DPGradientRegressor(
        Domain(target_bound=4.0, n_samples=4000), epsilon=8.0, random_state=0
    )
    labels = DPGradientClassifier(
        Domain(classes=[0, 1], n_samples=4000), epsilon=8.0, random_state=0
    )
    assert numbers.fit(unit * X, y).score(unit * X, y) > 0.85
    chance = labels.fit(unit * X, y > 0).predict_proba(unit * X)[
        np.arange(4000), (y > 0).astype(int)
    ]
    assert -np.log(chance).mean() < 0.3


def test_features_of_several_classes_are_dropped_less_readily():
    """The threshold of the first round, by classes and by rows times budget: public numbers only."""
    theta = gradient.stands_out
    assert [theta(n, 1) for n in (1000, 1999, 2000)] == [1.5, 1.5, 2.0]
    assert [theta(n, 20) for n in (1000, 1999, 2000)] == [1.5, 1.5, 1.0]


# ---- rows without an entry in the columns that are kept ---------------------------------------------


@pytest.mark.parametrize("bound", [None, 1.0])
def test_empty_rows_do_not_set_the_length_of_the_others(bound):
    """Most rows have no entry in the columns that are kept. In units of their length weights were up to 2^45 too large:
    R2 was -1e21 and -1e4, and the log loss of classes 1.9."""
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 6000), density=0.01, rng=rng, format="csr")
    w = np.zeros(6000)
    w[rng.choice(6000, 20, replace=False)] = rng.choice([-1.0, 1.0], 20)
    y = np.clip(X @ w + 0.1 * rng.standard_normal(3000), -1.0, 1.0)
    facts = {"n_samples": 1500, "feature_bound": bound}
    fit = {"epsilon": 8.0, "n_nonzero": 10, "random_state": 0}
    model = DPGradientRegressor(Domain(target_range=(-1, 1), **facts), **fit).fit(
        X[:1500], y[:1500]
    )
    assert model.score(X[1500:], y[1500:]) > -0.1
    model = DPGradientClassifier(Domain(classes=[0, 1], **facts), **fit)
    model.fit(X[:1500], (y > 0.0)[:1500].astype(int))
    assert log_loss(y[1500:] > 0.0, model.predict_proba(X[1500:])) < 0.8
