"""DPLassoClassifier and DPLassoRegressor: plans, leaks of the papers, the non-private limit, inputs."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Lasso, LogisticRegression

from dpsparse.accounting import (
    Exponential,
    Geometric,
    NonPrivate,
    Pure,
    Repeated,
    RoundedGaussian,
    Sequence,
)
from dpsparse.accounting import epsilon as spent_epsilon
from dpsparse.domain import Domain
from dpsparse.exceptions import NotPrivateWarning, ParameterError
from dpsparse.losses import Logistic, Squared
from dpsparse.methods import (
    DPLassoClassifier,
    DPLassoRegressor,
    DPScreenedLassoClassifier,
    DPScreenedLassoRegressor,
)
from dpsparse.methods.look.targets import LOOKS
from dpsparse.nonzeros import PrivateCount
from dpsparse.published import KhannaLuRaffLassoClassifier, RaffKhannaLuLassoClassifier
from dpsparse.random import make_generator
from dpsparse.release import Releases, releases_made_by
from dpsparse.sensitivity import vertex_score_range

BINARY = Domain(classes=[0, 1])
not_private = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")


def small_data(n=200, p=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p)) * (rng.random((n, p)) < 0.5)
    return X, (X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=n) > 0).astype(int)


# ---- plans ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "n_iter", "eta"),
    [(0.1, 100, 5.49671e-3), (1, 100, 4.72949e-2), (1, 1000, 1.49398e-2), (1, 4000, 7.4593e-3)],
)
def test_eta_per_step_is_the_adaptive_optimum_of_the_exponential_mechanism(epsilon, n_iter, eta):
    plan = DPLassoClassifier(BINARY, epsilon=epsilon, n_iter=n_iter, fit_intercept=False).plan(10)
    event = plan.phases[0].event
    assert isinstance(event, Repeated)
    assert event.count == n_iter
    assert event.event.eta == pytest.approx(eta, rel=2e-5)
    assert plan.guarantee.recompute() <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("bound", [1.0, 0.1])
def test_kappa_spends_what_the_plan_charges_and_no_more(adjacency, bound):
    domain = Domain(feature_bound=bound, classes=[0, 1])
    model = DPLassoClassifier(
        domain, radius=5.0, n_iter=50, adjacency=adjacency, fit_intercept=False
    )
    plan = model.plan(10)
    used = vertex_score_range(
        plan.parameters["kappa"], plan.parameters["slope_bound"], bound, adjacency
    ).value
    eta = plan.phases[0].event.event.eta
    assert used + 2.0**-38 <= eta  # the rounding of the sampler is paid for
    assert used >= eta * (1 - 1e-6)  # halved or doubled noise fails here
    assert plan.parameters["slope_bound"] == Logistic().slope_bound(domain, 5.0)


# ---- class counts, from which margins start ------------------------------------------------------


class Watched(Releases):
    """Releases that remember what the kernel was told."""

    def _vertices(self, phase, vertices):
        type(self).problem = vertices.steps.problem
        return super()._vertices(phase, vertices)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_released_offset_raises_the_slope_bound_and_lowers_kappa(
    monkeypatch, adjacency, n_classes
):
    """Whatever is released, the range of a draw is the eta of the plan; a bound without the offset would not do."""
    domain = Domain(feature_bound=0.5, classes=list(range(n_classes)), n_samples=4000)
    model = DPLassoClassifier(domain, radius=1.0, n_iter=20, adjacency=adjacency)
    X, y = small_data(4000)
    y = np.where(np.arange(4000) % 50 < n_classes - 1, np.arange(4000) % 50 + 1, 0)
    with releases_made_by(lambda plan: Watched(plan, make_generator(0))):
        plan = model.fit(X * 0.5, y).plan_
    problem, eta = Watched.problem, plan.phases[1].event.event.eta
    used = vertex_score_range(problem.kappa, problem.slope_bound, 0.5, adjacency).value
    assert eta * (1 - 1e-6) <= used <= eta - 2.0**-38
    reach, b = 0.5, np.array(problem.offset)
    gaps = np.abs(b) if n_classes == 2 else [
        np.logaddexp.reduce(np.delete(b, k)) - b[k] for k in range(n_classes)
    ]  # fmt: skip
    assert problem.slope_bound == pytest.approx(1 / (1 + np.exp(-reach - np.max(gaps))))
    assert problem.slope_bound > 1.2 * model.plan(X.shape[1]).settings.slope_bound
    if n_classes == 2:
        assert b[0] == pytest.approx(math.log(0.02 / 0.98), abs=1.5)  # shrunk, noisy


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_class_counts_are_paid_for(adjacency):
    plan = DPLassoClassifier(BINARY, n_iter=200, adjacency=adjacency).plan(10)
    assert [phase.name for phase in plan.phases] == ["prior", "vertices"]
    prior, eta = plan.phases[0].event, plan.phases[1].event.event.eta
    mu = prior.sensitivity / prior.scale
    share, _ = LOOKS["prior"]
    assert mu**2 == pytest.approx(share / (1.0 - share) * eta**2 * 200 / 4)
    assert spent_epsilon(plan.event, 1e-6) == pytest.approx(1.0, rel=1e-6)
    dearer = Sequence((replace(prior, scale=0.9 * prior.scale), plan.phases[1].event))
    assert spent_epsilon(dearer, 1e-6) > 1.0  # the accountant sees them
    assert len(DPLassoClassifier(BINARY, n_iter=20, fit_intercept=False).plan(10).phases) == 1


@not_private
def test_unbalanced_classes_get_their_odds_and_more_noise_than_rows_gets_none():
    X, _ = small_data(3000)
    y = (np.arange(3000) % 100 < 3).astype(int)
    model = DPLassoClassifier(Domain(classes=[0, 1], n_samples=3000), random_state=0).fit(X, y)
    # About the log-odds, drawn towards 0 by three standard deviations; random weights add a little.
    assert abs(model.intercept_[0] - math.log(0.03 / 0.97)) < 1.0
    tiny = DPLassoClassifier(BINARY, epsilon=0.01, n_iter=10, random_state=0)
    few = [tiny.set_params(random_state=s).fit(X[:50], y[:50]).intercept_[0] for s in range(20)]
    noiseless = DPLassoClassifier(BINARY, epsilon=math.inf, n_iter=50).fit(X, y)
    assert abs(noiseless.intercept_[0] - math.log(0.03 / 0.97)) < 0.5
    assert np.median(np.abs(few)) < 3.0


def test_squared_loss_pays_for_its_ball():
    domain = Domain(feature_bound=1.0, target_bound=3.0)
    squared = DPLassoRegressor(domain, radius=5.0, n_iter=10).plan(4).parameters
    assert squared["slope_bound"] == Squared().slope_bound(domain, 5.0) == 8.0


def test_defaults_come_from_public_facts_only():
    plan = DPLassoClassifier(Domain(classes=[0, 1], feature_bound=0.5, n_samples=8000)).plan(7)
    assert plan.parameters["radius"] == "released"
    assert plan.parameters["n_iter"] == 572  # (1894 effective rows / (30 log 14))^2
    given = DPLassoClassifier(
        Domain(classes=[0, 1], feature_bound=0.5, n_samples=8000), radius=20.0
    ).plan(7)
    assert given.parameters["radius"] == 20.0
    assert given.parameters["n_iter"] == 100
    undeclared = DPLassoClassifier(Domain(classes=[0, 1], feature_bound=0.5)).plan(7)
    assert undeclared.parameters["radius"] == 20.0
    assert DPLassoClassifier(BINARY).plan(7).parameters["n_iter"] == 100
    assert DPLassoRegressor(Domain(target_bound=4.0)).plan(7).parameters["radius"] == 4.0


def test_private_count_is_part_of_the_price():
    rule = PrivateCount(2, 6, epsilon=0.2)
    plan = DPLassoClassifier(BINARY, n_iter=20, n_nonzero=rule).plan(10)
    assert [type(phase.event) for phase in plan.phases] == [RoundedGaussian, Repeated, Geometric]
    assert plan.guarantee.recompute() <= 1.0 + 1e-9
    alone = DPLassoClassifier(BINARY, n_iter=20).plan(10)
    assert plan.parameters["kappa"] < alone.parameters["kappa"]
    for free in (None, 3, "mass"):
        assert len(DPLassoClassifier(BINARY, n_nonzero=free).plan(10).phases) == 2


@pytest.mark.parametrize(
    ("adjacency", "claimed", "proven"),
    [
        ("add-remove", 0.1, 0.068), ("add-remove", 1, 0.80), ("add-remove", 5, 4.66),
        ("add-remove", 10, 10.4), ("replace-one", 0.1, 0.142), ("replace-one", 1, 1.69),
        ("replace-one", 5, 10.4), ("replace-one", 10, 24.55),
    ],
)  # fmt: skip
def test_published_laplace_prints_the_epsilon_its_noise_has(adjacency, claimed, proven):
    plan = KhannaLuRaffLassoClassifier(
        BINARY, epsilon=claimed, n_iter=1000, adjacency=adjacency
    ).plan(10)
    assert isinstance(plan.phases[0].event.event, Pure)
    assert plan.proven
    assert plan.epsilon == spent_epsilon(plan.event, 1e-6)
    assert 0.97 * proven <= plan.epsilon <= proven


def test_published_modes_without_a_guarantee_say_so():
    plan = RaffKhannaLuLassoClassifier(BINARY).plan(10)
    assert plan.phases[0].event == NonPrivate()
    assert plan.epsilon == math.inf
    three = Domain(classes=[0, 1, 2])
    plan = KhannaLuRaffLassoClassifier(three).plan(10)
    assert plan.phases[0].event == NonPrivate()
    X, y = small_data()
    with pytest.warns(NotPrivateWarning, match="published"):
        RaffKhannaLuLassoClassifier(BINARY, n_iter=5).fit(X, y)


@pytest.mark.parametrize(
    "bad",
    [
        {"radius": 0}, {"radius": math.inf}, {"n_iter": 0}, {"n_iter": 2.5},
        {"n_nonzero": -1},
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_before_data_is_seen(bad):
    with pytest.raises(ParameterError):
        DPLassoClassifier(BINARY, **bad).plan(3)


@pytest.mark.parametrize(
    "kind",
    [DPLassoClassifier, DPLassoRegressor, DPScreenedLassoClassifier, DPScreenedLassoRegressor],
)
@pytest.mark.parametrize("option", ["selection", "freshness", "tolerance"])
def test_how_vertices_are_drawn_is_no_choice(kind, option):
    """Other samplers beside stale scores had a false guarantee; the rows choose the engine, and the law is one."""
    with pytest.raises(TypeError, match=option):
        kind(BINARY, **{option: "auto"})


# ---- leaks of Raff, Khanna, Lu (2023) as tests ----------------------------------------------------


def owned_features(n=2500, seed=0):
    """Every row owns one feature nobody else has."""
    y = np.random.default_rng(seed).integers(0, 2, n)
    return sp.eye_array(n, format="csr"), y


def recovered(model, y):
    """Share of picked single-row features whose weight gives back the row's label."""
    picked = np.flatnonzero(model.coef_[0])
    guess = (model.coef_[0][picked] > 0).astype(int)
    return (guess == y[picked]).mean(), picked.size


@not_private
def test_published_sign_gives_back_labels_and_the_proven_one_does_not():
    X, y = owned_features()
    common = {"epsilon": 0.1, "n_iter": 2000, "radius": 50.0, "fit_intercept": False}
    share, n = recovered(RaffKhannaLuLassoClassifier(BINARY, **common).fit(X, y), y)
    assert n > 1000
    assert share > 0.99
    model = DPLassoClassifier(BINARY, random_state=1, **common).fit(X, y)
    share, n = recovered(model, y)
    assert n > 1000
    assert abs(share - 0.5) < 4 * 0.5 / math.sqrt(n)  # 1 in 16,000 at the fixed seed


@not_private
def test_majority_of_one_is_hidden_by_the_proven_sign():
    # 101 equal rows, 51 against 50 positives: the exact sign is the majority, at any noise.
    X, y = np.ones((101, 4)), np.array([1] * 51 + [0] * 50)
    signs = {}
    for name, kind in (("published", RaffKhannaLuLassoClassifier), ("proven", DPLassoClassifier)):
        signs[name] = [
            np.sign(kind(BINARY, epsilon=1e-3, n_iter=1, fit_intercept=False, random_state=seed)
                    .fit(X, y).coef_.sum())
            for seed in range(60)
        ]  # fmt: skip
    assert set(signs["published"]) == {1.0}
    assert 10 <= signs["proven"].count(1.0) <= 50  # binomial(60, 1/2): outside with 1e-7


# ---- the non-private limit ----------------------------------------------------------------------


@pytest.mark.heavy
@not_private
def test_without_noise_logistic_reaches_scikit_learn():
    X, y = small_data(300, 20)
    other = LogisticRegression(
        l1_ratio=1.0, C=0.5, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=5000
    ) if _new_logistic() else LogisticRegression(
        penalty="l1", C=0.5, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=5000
    )  # fmt: skip
    w = other.fit(X, y).coef_[0]
    model = DPLassoClassifier(
        BINARY, epsilon=math.inf, radius=np.abs(w).sum(), n_iter=4000, fit_intercept=False
    ).fit(X, y)
    ours, theirs = (Logistic().value(X @ v, y).sum() for v in (model.coef_[0], w))
    assert ours <= theirs * (1 + 1e-3)


def _new_logistic():
    import sklearn

    return tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 8)


@pytest.mark.heavy
@not_private
def test_without_noise_squared_reaches_scikit_learn():
    X, _ = small_data(300, 20)
    target = X[:, 0] - 0.5 * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=300)
    w = Lasso(alpha=0.005, fit_intercept=False, tol=1e-12, max_iter=10**5).fit(X, target).coef_
    model = DPLassoRegressor(
        Domain(target_bound=3.0), epsilon=math.inf, radius=np.abs(w).sum(), n_iter=4000,
        fit_intercept=False,
    ).fit(X, target)  # fmt: skip
    ours, theirs = (Squared().value(X @ v, target).sum() for v in (model.coef_, w))
    assert ours <= theirs * (1 + 1e-3)


# ---- fitting ------------------------------------------------------------------------------------


@not_private
@pytest.mark.parametrize("n_classes", [2, 3])
def test_learns_what_is_there_to_learn(n_classes):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 10))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1], np.linspace(-0.5, 0.5, n_classes + 1)[1:-1])
    domain = Domain(classes=list(range(n_classes)), n_samples=4000)
    model = DPLassoClassifier(domain, epsilon=4.0, radius=10.0, random_state=0).fit(X, y)
    assert model.score(X, y) > (0.9 if n_classes == 2 else 0.7)
    assert np.abs(model.coef_).sum() <= 10.0 + 1e-9
    assert model.coef_.shape == (1 if n_classes == 2 else n_classes, 10)


@not_private
@pytest.mark.parametrize("radius", [None, 2.0])
def test_regression_learns(radius):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 10))
    domain = Domain(target_bound=2.0, n_samples=4000)
    model = DPLassoRegressor(domain, epsilon=4.0, radius=radius, random_state=0)
    assert model.fit(X, X[:, 0] + 0.5 * X[:, 1]).score(X, X[:, 0] + 0.5 * X[:, 1]) > 0.8


@not_private
def test_all_forms_of_the_same_rows_give_the_same_model():
    X, y = small_data()
    X = np.round(X * 4)  # whole numbers: exact in every type
    canonical = sp.csr_array(X)
    shuffled = canonical.copy()
    rng = np.random.default_rng(0)
    for i in range(shuffled.shape[0]):
        lo, hi = shuffled.indptr[i : i + 2]
        order = lo + rng.permutation(hi - lo)
        shuffled.indices[lo:hi], shuffled.data[lo:hi] = (
            shuffled.indices[order],
            shuffled.data[order],
        )
    shuffled.has_sorted_indices = False
    coo = canonical.tocoo()
    doubled = sp.csr_array(
        sp.coo_array(
            (np.concatenate([coo.data / 2, coo.data / 2]),
             (np.tile(coo.coords[0], 2), np.tile(coo.coords[1], 2))), shape=coo.shape
        )
    )  # fmt: skip
    wide = canonical.copy()
    wide.indptr = wide.indptr.astype(np.int64)
    forms = [
        X,
        X.astype(np.float32),
        X.astype(np.int64),
        shuffled,
        doubled,
        wide,
        canonical.tocsc(),
    ]
    domain = Domain(feature_bound=4.0, classes=[0, 1])
    fit = DPLassoClassifier(domain, n_iter=30, random_state=5).fit
    expected = fit(canonical, y).coef_.copy()
    for form in forms:
        np.testing.assert_array_equal(fit(form, y).coef_, expected)


@not_private
def test_an_interrupted_fit_leaves_nothing_behind(monkeypatch):
    from dpsparse.methods.frank_wolfe.run import Run

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "draw", interrupted)
    model = DPLassoClassifier(BINARY, n_iter=5)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*small_data())
    assert not [name for name in vars(model) if name.endswith("_") and name != "n_features_in_"]


@pytest.mark.heavy
@not_private
def test_sparse_weights_on_demand_and_number_of_weights():
    X, y = small_data()
    model = DPLassoClassifier(BINARY, n_iter=40, n_nonzero=3, random_state=0).fit(X, y)
    assert np.count_nonzero(model.coef_) == 3
    before = model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.decision_function(X), before, rtol=1e-12)
    rule = PrivateCount(2, 4, epsilon=0.5)
    model = DPLassoClassifier(BINARY, n_iter=40, n_nonzero=rule, random_state=0).fit(X, y)
    assert 2 <= np.count_nonzero(model.coef_) <= 4


@pytest.mark.parametrize("declared", [True, False], ids=["bounds", "released scales"])
@pytest.mark.parametrize("kind", [DPLassoClassifier, DPLassoRegressor])
def test_the_released_path_ends_at_the_published_weights(kind, declared):
    """In published units; half way it is the model of half the steps, which the Frank-Wolfe recursion gives."""
    X, y = small_data(n=3000)
    bounds = {f"c{j}": (-1.0 - j, 2.0 + j) for j in range(12)} if declared else None
    X = pd.DataFrame(X * (2.0 if declared else 1.0), columns=[f"c{j}" for j in range(12)])
    target = {"classes": [0, 1]} if "Classifier" in kind.__name__ else {"target_range": (-1, 4)}
    facts = {"bounds": bounds} if declared else {"feature_bound": 1.0}
    model = kind(Domain(n_samples=3000, **target, **facts), epsilon=5.0, n_iter=40)
    model.fit(X, y)
    path = model.history_
    coef, intercept = path.weights()
    np.testing.assert_allclose(coef.ravel(), model.coef_.ravel(), rtol=1e-12)
    np.testing.assert_allclose(intercept, np.ravel(model.intercept_), rtol=1e-12, atol=1e-14)
    assert len(path.features) == len(path.signs) == model.n_iter_ == 40
    before, after = (path.weights(t)[0] for t in (19, 20))
    j, step = path.features[19], 2.0 / 22.0
    moved = after - (1.0 - step) * before
    far = np.abs(moved) > 1e-9 * np.abs(after).max()
    assert set(np.flatnonzero(far[0])) <= {j}
    assert not path.weights(0)[0].any()
    with pytest.raises(ParameterError, match="between 0 and 40"):
        path.weights(41)


def test_secure_noise_is_private_and_differs():
    X, y = small_data()
    first, second = (DPLassoClassifier(BINARY, n_iter=40).fit(X, y) for _ in range(2))
    assert first.privacy_.proven
    assert first.privacy_.epsilon == 1.0
    assert isinstance(first.plan_.phases[1].event.event, Exponential)
    assert not np.array_equal(first.coef_, second.coef_)


@pytest.mark.slow
@not_private
def test_a_million_rows_by_twenty_million_columns():
    rng = np.random.default_rng(0)
    n, p, k = 10**6, 2 * 10**7, 5
    indices = rng.integers(0, p, n * k).astype(np.int64)
    X = sp.csr_array(
        (np.ones(n * k), indices, np.arange(0, n * k + 1, k, dtype=np.int64)), shape=(n, p)
    )
    model = DPLassoClassifier(Domain(classes=[0, 1], n_samples=n), n_iter=100, random_state=0)
    model.fit(X, rng.integers(0, 2, n))
    assert model.sparsify().coef_.nnz <= 100
