"""The fits behind paper001_screening.py: each part yields one mapping per data set and method of a trial.

Every run is seeded, hence not private itself; the guarantee quoted is that of an unseeded run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from sklearn.linear_model import LinearRegression

import _screening_data as sd
from _common import promise
from dpsparse.domain import Domain
from dpsparse.domain.clipping import BoundedData
from dpsparse.losses import get_loss
from dpsparse.methods.frank_wolfe.estimator import (
    DPScreenedLassoClassifier,
    DPScreenedLassoRegressor,
)
from dpsparse.methods.frank_wolfe.run import Steps
from dpsparse.methods.frank_wolfe.screening import Block, Counts, TopK, sum_over_features
from dpsparse.methods.frank_wolfe.solve import make_problem, release_scales
from dpsparse.published.khanna_lu_raff_2023_screening import (
    adp_scale,
    published_iterates,
    published_sensitivity,
    rnm_scale,
    strong_convexity,
)
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Rows

T = 1000  # iterations of every synthetic experiment of the papers
LEVEL = 0.1


def scores(weights: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """TPR, FPR, the papers' F1, and density ("sparsity" in their tables)."""
    chosen = weights != 0
    hit, false = int((chosen & truth).sum()), int((chosen & ~truth).sum())
    missed = int(truth.sum()) - hit
    return {
        "tpr": hit / max(1, truth.sum()),
        "fpr": false / max(1, (~truth).sum()),
        "f1": hit / (hit + (false + missed) / 2) if hit else 0.0,
        "density": float(chosen.mean()),
    }


def prepare(X: np.ndarray, y: np.ndarray, loss: str, bound: float, target: float) -> BoundedData:
    """The only door to a solver: clipping by declared bounds."""
    domain = Domain(feature_bound=bound, target_bound=target, classes=[0, 1], n_samples=len(y))
    if loss == "squared":
        return domain.clip(X, y)
    return domain.clip(X, (y > 0).astype(int), labels=np.array([0, 1]))


def last(iterates):
    """The last of the iterates: the released model."""
    for it in iterates:  # noqa: B007
        pass
    return it


def published(data, loss_name, radius, n_iter, seed, **options):
    """Iterates of the printed algorithms; Eq. (1) as printed unless told otherwise."""
    loss = get_loss(loss_name)
    curvature = (loss.smoothness, strong_convexity(loss, data.domain, radius))
    settings = {
        "vertex_scale": 0.0,
        "rule": None,
        "screen_scale": 0.0,
        "screen_steps": (),
        **options,
    }
    return published_iterates(
        data.X, data.y, loss, make_generator(seed), radius=radius, n_iter=n_iter, curvature=curvature,
        n_samples=1, **settings,
    )  # fmt: skip


# ---- ADP-Screen -------------------------------------------------------------

SCHEDULES = {"every": range(1, T + 1), "50th": range(50, T + 1, 50), "last": (T,)}


def part_nonprivate(trial: int) -> Iterator[dict]:
    """The non-private rule at every iteration, radius 5: published 55 % found, nothing false."""
    X, y, truth = sd.synthetic(trial, correlated=False)
    for loss in ("squared", "logistic"):
        data = prepare(X, y, loss, 1.0, float(np.abs(y).max()))
        for rescaled in (True, False):
            for start in ("zero", "random"):
                run = published(
                    data, loss, 5.0, T, trial, rule="adp", screen_steps=SCHEDULES["every"],
                    rescaled=rescaled, random_start=start == "random",
                )  # fmt: skip
                it = last(run)
                method = f"{'rescaled' if rescaled else 'printed'}, start {start}"
                yield {
                    "data": loss,
                    "method": method,
                    "gap": it.gap,
                    **scores(it.weights, truth != 0),
                }


def part_adp(trial: int) -> Iterator[dict]:
    """Figures 1 and 2 of the first paper (3 and 4 of the sequel), experiments A and B."""
    X, y, truth = sd.synthetic(trial, correlated=False)
    n, d, radius, eps, delta = 3000, 600, 5.0, 2.5, 1 / 6000
    vertex = rnm_scale(radius / n, eps, delta, T)
    for loss in ("squared", "logistic"):
        data = prepare(X, y, loss, 1.0, radius)
        sensitivity = math.sqrt(d) * published_sensitivity(loss, radius, n)
        for name, steps in SCHEDULES.items():
            noise = adp_scale(sensitivity, eps, delta, len(steps))
            for method, v, s in (
                ("adp", vertex, noise), ("A: noisy optimiser", vertex, 0.0), ("B: noisy screening", 0.0, noise),
            ):  # fmt: skip
                run = published(
                    data,
                    loss,
                    radius,
                    T,
                    trial,
                    rule="adp",
                    vertex_scale=v,
                    screen_scale=s,
                    screen_steps=steps,
                )
                trace, gaps = [], []
                for it in run:
                    if it.t % 20 == 0 or it.t == 1:
                        result = scores(it.weights, truth != 0)
                        trace.append([it.t, result["tpr"], result["fpr"]])
                        gaps.append(it.gap)
                yield {
                    "data": loss, "method": f"{method}, {name}", "trace": trace, "gaps": gaps,
                    **scores(it.weights, truth != 0),
                }  # fmt: skip


# ---- RNM-Screen: Table 1 and Figure 1 of the sequel -------------------------------------------------------------

# Public choices for the papers' generator: entries have standard deviation 0.2, targets 1.7.
CLIP, TARGET, RADIUS, STEPS = 0.2, 2.0, 10.0, 400
EPSILON, DELTA = 5.0, 1 / 3000


def proven(X, y, domain, seed, *, n_iter, radius, epsilon, delta, rule, **options):
    """Weights of a proven fit and the fitted model."""
    model = DPScreenedLassoRegressor(
        domain, epsilon=epsilon, delta=delta, radius=radius, n_iter=n_iter, rule=rule, fit_intercept=False,
        random_state=seed, **options,
    )  # fmt: skip
    return model.fit(X, y).coef_, model


def free_rules(X, y, domain, seed, *, n_iter, radius, epsilon, delta, n_nonzero):
    """One paid history, both free rules on it: they are post-processing."""
    plan = DPScreenedLassoRegressor(
        domain, epsilon=epsilon, delta=delta, radius=radius, n_iter=n_iter, fit_intercept=False
    ).plan(X.shape[1])
    releases = Releases(plan, make_generator(seed))
    scaled = release_scales(Rows.clip(X, y, domain), plan.settings, releases)
    steps = Steps(scaled.rows, make_problem(scaled, plan.settings, releases))
    picks = releases.vertices("vertices", steps, n_iter)
    weights = picks.weights()[0][0]
    values = np.ones(n_iter, int), np.arange(n_iter) + 2
    net, late = (sum_over_features(picks, value)[:-1] for value in values)
    history = Block(net, late, n_iter, 1, 1)
    yield "counts", weights * Counts(LEVEL).keep(history), plan
    yield "top-k", weights * TopK(n_nonzero).keep(history), plan
    yield "dp-fw", weights, plan


def part_adp_wide(trial: int) -> Iterator[dict]:
    """ADP-Screen on the tables and the ball of Figure 1 of the sequel, for its curves and its sign test."""
    for correlated in (False, True):
        X, y, truth = sd.synthetic(trial, correlated)
        data = prepare(X, y, "squared", 1.0, 50.0)
        sensitivity = math.sqrt(600) * published_sensitivity("squared", 50.0, 3000)
        run = published(
            data, "squared", 50.0, T, trial, rule="adp", screen_steps=SCHEDULES["every"],
            vertex_scale=rnm_scale(50.0 / 3000, 2.5, 1 / 6000, T),
            screen_scale=adp_scale(sensitivity, 2.5, 1 / 6000, T),
        )  # fmt: skip
        trace = []
        for it in run:
            if it.t % 20 == 0 or it.t == 1:
                result = scores(it.weights, truth != 0)
                trace.append([it.t, result["tpr"], result["fpr"]])
        name = "correlated" if correlated else "uncorrelated"
        yield {"data": name, "method": "adp", "trace": trace, **scores(it.weights, truth != 0)}


def part_uniform(trial: int) -> Iterator[dict]:
    """RNM-Screen with so much screening noise that every step drops a feature drawn uniformly."""
    for correlated in (False, True):
        X, y, truth = sd.synthetic(trial, correlated)
        run = published(
            prepare(X, y, "squared", 1.0, 50.0), "squared", 50.0, T, trial, rule="rnm", screen_scale=1e12,
            vertex_scale=rnm_scale(50.0 / 3000, 4.9, 1 / 4000, T), screen_steps=SCHEDULES["every"],
        )  # fmt: skip
        name = "correlated" if correlated else "uncorrelated"
        yield {"data": name, "method": "rnm, uniform", **scores(last(run).weights, truth != 0)}


def part_chance(trial: int) -> Iterator[dict]:
    """Theorem 4 of the sequel: uniform update and screening, limits (d-1)^2/((d-1)d+1) printed, (d-1)/(2d-1) true."""
    for d in (10, 40, 160):
        rng, live = make_generator(1000 * trial + d), np.zeros(d, bool)
        shares = []
        for t in range(200 * d):
            live[rng.integers(d)] = True
            live[rng.integers(d)] = False
            if t >= 20 * d:
                shares.append(live.mean())
        yield {"data": f"d = {d}", "method": "uniform", "density": float(np.mean(shares))}


def part_synthetic(trial: int) -> Iterator[dict]:
    for correlated in (False, True):
        X, y, truth = sd.synthetic(trial, correlated)
        name, truth = ("correlated" if correlated else "uncorrelated"), truth != 0
        data = prepare(X, y, "squared", 1.0, 50.0)
        vertex = rnm_scale(50.0 / 3000, 4.9, 1 / 4000, T)
        screen = rnm_scale(published_sensitivity("squared", 50.0, 3000), 0.1, 1 / 12000, T)
        run = published(
            data, "squared", 50.0, T, trial, rule="rnm", vertex_scale=vertex, screen_scale=screen,
            screen_steps=SCHEDULES["every"],
        )  # fmt: skip
        trace = []
        for it in run:
            if it.t % 20 == 0 or it.t == 1:
                result = scores(it.weights, truth)
                trace.append([it.t, result["tpr"], result["fpr"]])
        yield {"data": name, "method": "rnm", "trace": trace, **scores(it.weights, truth)}
        # the same noise without any data: what pure chance gives
        chance = published(
            prepare(0.0 * X, 0.0 * y, "squared", 1.0, 50.0), "squared", 50.0, T, trial, rule="rnm",
            vertex_scale=1.0, screen_scale=screen, screen_steps=SCHEDULES["every"],
        )  # fmt: skip
        it = last(chance)
        yield {"data": name, "method": "rnm on an empty table", **scores(it.weights, truth)}
        domain = Domain(feature_bound=CLIP, target_bound=TARGET, n_samples=3000)
        common = {"n_iter": STEPS, "radius": RADIUS, "epsilon": EPSILON, "delta": DELTA}
        for rule, weights, plan in free_rules(X, y, domain, trial, n_nonzero=70, **common):
            row = {
                "data": name,
                "method": rule,
                "guarantee": plan.guarantee,
                "mse": _mse(X, y, weights),
            }
            yield {**row, **scores(weights, truth)}
        for method, options in (
            ("top-k, 4 blocks", {"rule": "top-k", "n_nonzero": 70, "n_blocks": 4}),
            ("counts, then refit", {"rule": "counts", "level": LEVEL, "n_blocks": 2}),
        ):
            weights, model = proven(X, y, domain, trial, **common, **options)
            row = {
                "data": name,
                "method": method,
                "guarantee": promise(model, X.shape[1]),
                "mse": _mse(X, y, weights),
            }
            yield {**row, **scores(weights, truth)}


def _mse(X, y, weights) -> float:
    return float(np.mean((X @ weights - y) ** 2))


# ---- RNM-Screen: Tables 2 to 5 and Figure 2 -------------------------------------------------------


def explained(X: np.ndarray, weights: np.ndarray, truth: np.ndarray) -> float:
    """R2 of the missed features of the LASSO regressed on the chosen ones (section 6.2.2)."""
    chosen, missed = weights != 0, truth & (weights == 0)
    if not missed.any():
        return math.nan
    if not chosen.any():
        return 0.0
    rows = slice(None, None, max(1, len(X) // 5_000))
    A, B = X[rows][:, chosen], X[rows][:, missed]
    return float(LinearRegression().fit(A, B).score(A, B))


def part_real(trial: int, names: list[str], yeo_johnson: bool) -> Iterator[dict]:
    for name in names:
        table = _table(name, yeo_johnson)
        X, y, truth = table.X, table.y, table.support
        n, d = X.shape
        n_iter = sd.ITERATIONS[name]
        k = int(truth.sum())
        data = prepare(X, y, "squared", 1.0, max(table.radius, float(np.abs(y).max())))

        def row(method, weights, X=X, y=y, truth=truth, name=name, **more):
            return {
                "data": name, "method": method, "mse": _mse(X, y, weights),
                "r2": explained(X, weights, truth), **more, **scores(weights, truth),
            }  # fmt: skip

        if trial == 0:  # no randomness in these two
            it = last(published(data, "squared", table.radius, n_iter, 0, random_start=False))
            yield row("np-fw", it.weights)
            big = np.argsort(-np.abs(X).sum(axis=0))[:k]
            some = prepare(X[:, big], y, "squared", 1.0, data.domain.target_bound)
            it = last(published(some, "squared", table.radius, n_iter, 0, random_start=False))
            weights = np.zeros(d)
            weights[big] = it.weights
            yield row("preselect-k", weights)
        vertex = rnm_scale(table.radius / n, 5.0, 1 / n, n_iter)
        it = last(published(data, "squared", table.radius, n_iter, trial, vertex_scale=vertex))
        yield row("dp-fw, as published", it.weights)
        keep = np.argsort(-np.abs(it.weights))[:k]
        weights = np.zeros(d)
        weights[keep] = it.weights[keep]
        yield row("oracle-k", weights)
        screen = rnm_scale(published_sensitivity("squared", table.radius, n), 0.1, 0.25 / n, n_iter)
        vertex = rnm_scale(table.radius / n, 4.9, 0.75 / n, n_iter)
        trace = []
        for it in published(
            data, "squared", table.radius, n_iter, trial, rule="rnm", vertex_scale=vertex,
            screen_scale=screen, screen_steps=range(1, n_iter + 1),
        ):  # fmt: skip
            if it.t % max(1, n_iter // 50) == 0:
                trace.append([it.t, _mse(X, y, it.weights)])
        yield row("rnm", it.weights, trace=trace)
        # one public recipe for all tables: clip at one unit, radius = target_bound/feature_bound
        domain = Domain(feature_bound=table.unit, target_bound=1.0, n_samples=n)
        for rule, weights, plan in free_rules(
            X, y, domain, trial, n_iter=min(n_iter // 2, 200), radius=1.0 / table.unit, epsilon=5.0, delta=1 / n,
            n_nonzero=max(1, round(d / 3)),
        ):  # fmt: skip
            yield row(rule, weights, guarantee=plan.guarantee)


_cache: dict[tuple[str, bool], sd.Table] = {}


def _table(name: str, yeo_johnson: bool) -> sd.Table:
    if (name, yeo_johnson) not in _cache:
        _cache[name, yeo_johnson] = sd.real(name, yeo_johnson)
    return _cache[name, yeo_johnson]


# ---- guidance: how to clip, how many steps, how to split -----------------------------------------


def part_guidance(trial: int) -> Iterator[dict]:
    X, y, truth = sd.synthetic(trial, correlated=False)
    truth = truth != 0
    base = {"epsilon": EPSILON, "delta": DELTA}
    for clip, target in ((1.0, 7.0), (0.4, 4.0), (0.2, 2.0), (0.1, 1.0)):
        domain = Domain(feature_bound=clip, target_bound=target, n_samples=3000)
        for rule, w, _ in free_rules(
            X, y, domain, trial, n_iter=STEPS, radius=target / clip, n_nonzero=70, **base
        ):
            yield {"data": "clip", "method": f"{rule}, c={clip}", "x": clip, **scores(w, truth)}
    domain = Domain(feature_bound=CLIP, target_bound=TARGET, n_samples=3000)
    for n_iter in (50, 100, 200, 400, 800):
        for rule, w, _ in free_rules(
            X, y, domain, trial, n_iter=n_iter, radius=RADIUS, n_nonzero=70, **base
        ):
            yield {
                "data": "n_iter",
                "method": f"{rule}, T={n_iter}",
                "x": n_iter,
                **scores(w, truth),
            }
    for factor in (0.1, 0.3, 1.0, 3.0):
        for rule, w, _ in free_rules(
            X, y, domain, trial, n_iter=STEPS, radius=factor * RADIUS, n_nonzero=70, **base
        ):
            yield {
                "data": "radius",
                "method": f"{rule}, r={factor}",
                "x": factor,
                **scores(w, truth),
            }
    for epsilon in (0.5, 1.0, 2.0, 5.0):
        for rule, w, _ in free_rules(
            X, y, domain, trial, n_iter=STEPS if epsilon > 1 else 100, radius=RADIUS, n_nonzero=70,
            epsilon=epsilon, delta=DELTA,
        ):  # fmt: skip
            yield {
                "data": "epsilon",
                "method": f"{rule}, eps={epsilon}",
                "x": epsilon,
                **scores(w, truth),
            }


def part_rows(trial: int) -> Iterator[dict]:
    """How many rows a rule needs: 100 features, 12 active, epsilon 1, delta 1e-6."""
    for n in (3_000, 30_000, 100_000):
        X, y, truth = sd.synthetic(trial, correlated=False, n=n, d=100, active=12)
        domain = Domain(feature_bound=CLIP, target_bound=0.8, n_samples=n)
        for method, options in (
            ("no screening", {"rule": "top-k", "n_nonzero": 100}),
            ("counts", {"rule": "counts", "level": LEVEL}),
        ):
            settings = {"n_iter": 100, "radius": 4.0, "epsilon": 1.0, "delta": 1e-6, **options}
            w, model = proven(X, y, domain, trial, **settings)
            yield {
                "data": f"n={n}",
                "method": method,
                "mse": _mse(X, y, w) / float(np.var(y)),
                "live": model.n_live_[-1],
                **scores(w, truth != 0),
            }


# ---- does screening save time? -------------------------------------------------------------------


def part_cost(trial: int) -> Iterator[dict]:
    """Processor seconds of the same selections with and without screening, dense and sparse rows."""
    cases = ["dense 3000 x 600"]
    if sd.NEWS20.exists():
        cases.append("news20, 62,061 features")
    for name in cases:
        if name.startswith("dense"):
            X, y, _ = sd.synthetic(trial, correlated=False)
            domain = Domain(feature_bound=CLIP, target_bound=TARGET, n_samples=3000)
            kind, rows = DPScreenedLassoRegressor, Rows.clip(X, y, domain)
            radius, n_iter, k, epsilon = RADIUS, STEPS, 70, EPSILON
        else:
            X, y = sd.news20()
            domain = Domain(feature_bound=0.2, classes=[0, 1], n_samples=X.shape[0])
            kind, rows = DPScreenedLassoClassifier, Rows.clip(X, y, domain, labels=np.array([0, 1]))
            radius, n_iter, k, epsilon = 50.0, 4000, 1000, 1.0
        plan = kind(
            domain, epsilon=epsilon, radius=radius, n_iter=n_iter, fit_intercept=False
        ).plan(X.shape[1])
        for method, rule, blocks in (
            ("no screening", None, (n_iter,)),
            ("top-k after a tenth", TopK(k), (n_iter // 10, n_iter - n_iter // 10)),
            ("top-k in 4 blocks", TopK(k), (n_iter // 4,) * 4),
        ):
            public = replace(plan.settings, rule=rule, blocks=blocks)
            if trial == 0:  # compile first
                replace(public, blocks=(2, 2)).solve(rows, Releases(plan, make_generator(0)))
            start = time.process_time()
            found = public.solve(rows, Releases(plan, make_generator(trial)))
            took = time.process_time() - start
            live = list(found.n_live or (rows.n_features,) * 2)
            yield {"data": name, "method": method, "seconds": took, "live": live}
