"""Khanna, Lu and Raff (2023, screening: 000) and its anonymous sequel (001): every table and figure.

Preparation of the real tables follows section 6 of the sequel: Yeo-Johnson and scaling by the largest entry look at
private rows. That is the papers' protocol, not ours: a guarantee below starts from the prepared table. Which scaling
the papers used was found by trying: one factor for the whole table after Yeo-Johnson, LIBSVM's _scale files (or one
factor for the UCI tables) without it, give their non-private errors to 2-3 digits. Every run is seeded, hence not
private itself; the guarantee quoted is that of an unseeded run.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.preprocessing import PowerTransformer

import papers_data
from dpsparse import DPLassoRegressor, DPScreenedLassoRegressor
from dpsparse.domain import Domain
from dpsparse.losses import get_loss
from dpsparse.published.khanna_lu_raff_2023_screening import (
    adp_scale,
    published_iterates,
    published_sensitivity,
    rnm_scale,
)
from dpsparse.random import make_generator
from dpsparse.rows import Rows
from lab.engine import read_rows
from lab.methods import promise
from lab.papers.chapter import AFTER_THE_FACT, AS_PRINTED, chapters
from lab.papers.common import RESULTS, axes
from lab.papers.summary import sign_test, summarise, wilcoxon

T = 1000  # iterations of every synthetic experiment of the papers
SCHEDULES = {"every": range(1, T + 1), "50th": range(50, T + 1, 50), "last": (T,)}
# Iterations of the real tables, sorted by their number of features.
ITERATIONS = {
    "abalone": 100, "housing": 100, "bodyfat": 100, "pyrim": 100, "triazines": 100, "residential": 200,
    "communities": 200, "blogfeedback": 1000,
}  # fmt: skip
REAL = tuple(ITERATIONS)
SYNTHETIC = ("uncorrelated", "correlated")
RNM, ADP = "RNM-Screen", "ADP-Screen"

# ---- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A prepared data set and the non-private LASSO that the sequel measures against."""

    X: np.ndarray  # |x| <= 1
    y: np.ndarray
    support: np.ndarray  # of the LASSO with about d/3 non-zeros
    radius: float  # its L1 norm
    unit: (
        float  # what one standard deviation of a standardised column became; 1 without Yeo-Johnson
    )


@lru_cache(maxsize=8)
def real(name: str, yeo_johnson: bool) -> Table:
    """Section 6.2 (Yeo-Johnson) or appendix D (linear scaling only)."""
    X, y = _read(name)
    unit = 1.0
    if yeo_johnson:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # constant columns
            X = np.nan_to_num(PowerTransformer().fit_transform(X))
            y = PowerTransformer().fit_transform(y[:, None])[:, 0]
        unit = 1.0 / float(np.abs(X).max())  # one standard deviation after scaling
        X = X * unit
    else:
        y = y / np.abs(y).max()
        if name in REAL[:5]:  # the _scale files of LIBSVM: each column mapped to [-1, 1]
            low, span = X.min(axis=0), X.max(axis=0) - X.min(axis=0)
            X = np.where(span > 0, 2.0 * (X - low) / np.where(span > 0, span, 1.0) - 1.0, 0.0)
        else:
            X = X / np.abs(X).max()
    return Table(X, y, *_lasso_support(X, y, max(1, round(X.shape[1] / 3))), unit)


def _read(name: str):
    """Columns as measured: the sexes of abalone coded as LIBSVM does, gaps of communities at the mean."""
    if name not in ("abalone", "housing", "communities"):
        X, y = papers_data.load(name)
        return X.toarray(), y
    import pandas as pd

    file = "communities_and_crime" if name == "communities" else name
    table = pd.read_csv(papers_data.data_folder() / f"{file}.csv.xz", na_values="?")
    if name == "abalone":
        table["Sex"] = table["Sex"].map({"M": 1, "F": 2, "I": 3})
    if name == "communities":
        table = table.iloc[:, 5:].fillna(table.iloc[:, 5:].mean())
    values = table.to_numpy(float)
    return values[:, :-1], values[:, -1]


def _lasso_support(X: np.ndarray, y: np.ndarray, target: int) -> tuple[np.ndarray, float]:
    """Bisect the penalty on a log scale until about `target` weights are non-zero."""
    high = float(np.abs(X.T @ (y - y.mean())).max() / len(y))
    low = high * 1e-5
    best = np.zeros(0)
    gram = X.T @ X if len(y) > X.shape[1] else False
    for _ in range(25):
        alpha = math.sqrt(low * high)
        model = Lasso(alpha=alpha, max_iter=2000, tol=1e-3, fit_intercept=False, precompute=gram)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tiny penalties converge slowly; the support suffices
            coef = model.fit(X, y).coef_
        count = int(np.count_nonzero(coef))
        if not len(best) or abs(count - target) < abs(np.count_nonzero(best) - target):
            best = coef
        if count == target:
            break
        low, high = (low, alpha) if count < target else (alpha, high)
    return best != 0, float(np.abs(best).sum())


def synthetic(number: int, data: str):
    X, y, weights = papers_data.make_screening_regression(number, correlated=data == "correlated")
    return X, y, weights != 0


# ---- runs ----------------------------------------------------------------------------------------


def scores(weights: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """TPR, FPR, the papers' F1, and density ("sparsity" in their tables)."""
    chosen = weights != 0
    hit, false = int((chosen & truth).sum()), int((chosen & ~truth).sum())
    missed = int(truth.sum()) - hit
    return {
        "TPR": hit / max(1, truth.sum()),
        "FPR": false / max(1, (~truth).sum()),
        "F1": hit / (hit + (false + missed) / 2) if hit else 0.0,
        "density": float(chosen.mean()),
    }


def published(X, y, loss_name, radius, n_iter, seed, *, target=None, **options):
    """Iterates of the printed algorithms on clipped rows; Eq. (1) as printed unless told otherwise."""
    loss = get_loss(loss_name)
    bounds = {"target_bound": radius if target is None else target, "classes": [0, 1]}
    domain = Domain(feature_bound=1.0, n_samples=len(y), **bounds)
    if loss_name == "squared":
        rows = Rows.clip(X, y, domain).table()
    else:
        rows = Rows.clip(X, (y > 0).astype(int), domain, labels=np.array([0, 1])).table()
    settings = {"vertex_scale": 0.0, "rule": None, "screen_scale": 0.0, "screen_steps": ()}
    return published_iterates(
        rows.X, rows.y, loss, make_generator(seed), radius=radius, n_iter=n_iter, n_samples=1,
        curvature=(loss.smoothness, loss.curvature(domain, radius)), **(settings | options),
    )  # fmt: skip


def followed(iterates, truth, every=20, measure=None):
    """The released weights, and curves: iteration, two shares (or one measure) and the Wolfe gap."""
    curves = {"trace t": [], "trace first": [], "trace second": [], "trace gap": []}
    for it in iterates:
        if it.t % every == 0 or (it.t == 1 and measure is None):
            found = scores(it.weights, truth)
            shown = (found["TPR"], found["FPR"]) if measure is None else (measure(it.weights),)
            for name, value in zip(curves, (it.t, *shown), strict=False):
                curves[name].append(value)
            curves["trace gap"].append(it.gap)
    return it.weights, {name: curve for name, curve in curves.items() if curve}


def proven(X, y, domain, seed, *, level, **options):
    """Weights of a proven fit and its guarantee; without a level nothing is screened."""
    kind = DPLassoRegressor if level is None else partial(DPScreenedLassoRegressor, level=level)
    model = kind(domain, fit_intercept=False, random_state=seed, **options)
    return model.fit(X, y).coef_, promise(model, X.shape[1])


def free_rules(X, y, domain, seed, n_nonzero, **common):
    """The free rules: post-processing of one history, which the seed repeats."""
    for name, rule in (
        ("counts", {"level": 0.1}),
        ("top-k", {"level": None, "n_nonzero": n_nonzero}),
        ("dp-fw", {"level": None}),
    ):
        yield name, *proven(X, y, domain, seed, **rule, **common)


def mean_squared_error(X, y, weights) -> float:
    return float(np.mean((X @ weights - y) ** 2))


def adp_trial(config, seed, number):
    """Figures 1 and 2 of the first paper (3 and 4 of the sequel), experiments A and B; and the rule without noise."""
    X, y, truth = synthetic(number, "uncorrelated")
    n, d, radius, eps, delta = 3000, 600, 5.0, 2.5, 1 / 6000
    out = []
    for loss in ("squared", "logistic"):
        sensitivity = math.sqrt(d) * published_sensitivity(loss, radius, n)
        for name, steps in SCHEDULES.items():
            vertex, noise = (
                rnm_scale(radius / n, eps, delta, T),
                adp_scale(sensitivity, eps, delta, len(steps)),
            )
            for method, v, s in (
                ("adp", vertex, noise), ("A: noisy optimiser", vertex, 0.0), ("B: noisy screening", 0.0, noise),
            ):  # fmt: skip
                run = published(
                    X, y, loss, radius, T, number, rule="adp", vertex_scale=v, screen_scale=s, screen_steps=steps,
                )  # fmt: skip
                weights, curves = followed(run, truth)
                cell = {"data": loss, "method": f"{method}, {name}", "mode": "published"}
                out.append({"cell": cell, **curves, **scores(weights, truth)})
        for rule in ("rescaled", "printed"):
            for start in ("zero", "random"):
                run = published(
                    X, y, loss, radius, T, number, target=float(np.abs(y).max()), rule="adp",
                    screen_steps=SCHEDULES["every"], rescaled=rule == "rescaled", random_start=start == "random",
                )  # fmt: skip
                weights, curves = followed(run, truth)
                method = f"no noise at all, {rule}, start {start}"
                cell = {"data": loss, "method": method, "mode": "nonprivate"}
                out.append({"cell": cell, "gap": curves["trace gap"][-1], **scores(weights, truth)})
    return out


def synthetic_trial(config, seed, number):
    """Table 1 and Figure 1 of the sequel; each part of a trial is a configuration."""
    out = []
    for data in SYNTHETIC:
        X, y, truth = synthetic(number, data)

        def add(method, weights, mode="published", data=data, truth=truth, **more):
            cell = {"data": data, "method": method, "mode": mode}
            out.append({"cell": cell, **more, **scores(weights, truth)})

        run = {"rule": "rnm", "screen_steps": SCHEDULES["every"]}
        run["vertex_scale"] = rnm_scale(50.0 / 3000, 4.9, 1 / 4000, T)
        sensitivity = published_sensitivity("squared", 50.0, 3000)
        if config["part"] == "adp":
            run |= {
                "rule": "adp", "vertex_scale": rnm_scale(50.0 / 3000, 2.5, 1 / 6000, T),
                "screen_scale": adp_scale(math.sqrt(600) * sensitivity, 2.5, 1 / 6000, T),
            }  # fmt: skip
            weights, curves = followed(published(X, y, "squared", 50.0, T, number, **run), truth)
            add(ADP, weights, **curves)
            continue
        if config["part"] == "uniform screening":  # so much noise that the dropped one is uniform
            run["screen_scale"] = 1e12
            weights, _ = followed(published(X, y, "squared", 50.0, T, number, **run), truth)
            add(f"{RNM}, uniform screening", weights)
            continue
        run["screen_scale"] = rnm_scale(sensitivity, 0.1, 1 / 12000, T)
        weights, curves = followed(published(X, y, "squared", 50.0, T, number, **run), truth)
        add(RNM, weights, **curves)
        # the same noise without any data: what pure chance gives
        run["vertex_scale"] = 1.0
        empty, _ = followed(published(0.0 * X, 0.0 * y, "squared", 50.0, T, number, **run), truth)
        add(f"{RNM} on an empty table", empty)
        # public choices for this generator: entries have standard deviation 0.2, targets 1.7
        domain = Domain(feature_bound=0.2, target_bound=2.0, n_samples=3000)
        common = {"n_iter": 400, "radius": 10.0, "epsilon": 5.0, "delta": 1 / 3000}
        for method, weights, guarantee in free_rules(X, y, domain, number, 70, **common):
            error = mean_squared_error(X, y, weights)
            add(method, weights, "proven", guarantee=guarantee, MSE=error)
    return out


def chance_trial(config, seed, number):
    """Theorem 4 of the sequel: uniform update and screening."""
    out = []
    for d in (10, 40, 160):
        rng, live = make_generator(1000 * number + d), np.zeros(d, bool)
        shares = []
        for t in range(200 * d):
            live[rng.integers(d)] = True
            live[rng.integers(d)] = False
            if t >= 20 * d:
                shares.append(live.mean())
        cell = {
            "data": f"d = {d}",
            "method": "uniform update and screening",
            "mode": "nonprivate",
        }
        out.append({"cell": cell, "density": float(np.mean(shares))})
    return out


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


def real_trial(yeo_johnson, config, seed, number):
    """Tables 2 to 5 and Figure 2 of the sequel."""
    name = config["data"]
    table = real(name, yeo_johnson)
    X, y, truth, radius = table.X, table.y, table.support, table.radius
    n, d = X.shape
    n_iter, k, out = ITERATIONS[name], int(truth.sum()), []
    facts = {"target": max(radius, float(np.abs(y).max()))}

    def add(method, weights, mode, **more):
        r2, cell = explained(X, weights, truth), {"method": method, "mode": mode}
        more |= {"MSE": mean_squared_error(X, y, weights)} | ({"R2": r2} if r2 == r2 else {})
        out.append({"cell": cell, **more, **scores(weights, truth)})

    def run(columns=slice(None), **options):
        iterates = published(
            X[:, columns], y, "squared", radius, n_iter, number, **facts, **options
        )
        weights = np.zeros(d)
        weights[columns], curves = followed(
            iterates, truth[columns], max(1, n_iter // 50),
            lambda w: mean_squared_error(X[:, columns], y, w),
        )  # fmt: skip
        return weights, curves

    if number == 0:  # no randomness in these two
        add("NP-FW", run(random_start=False)[0], "nonprivate")
        big = np.argsort(-np.abs(X).sum(axis=0))[:k]
        add("Preselect-K", run(big, random_start=False)[0], "nonprivate")
    weights, _ = run(vertex_scale=rnm_scale(radius / n, 5.0, 1 / n, n_iter))
    add("DP-FW", weights, "published")
    weights[np.argsort(-np.abs(weights))[k:]] = 0.0
    add("Oracle-K", weights, "published")
    sensitivity = published_sensitivity("squared", radius, n)
    weights, curves = run(
        rule="rnm", vertex_scale=rnm_scale(radius / n, 4.9, 0.75 / n, n_iter),
        screen_scale=rnm_scale(sensitivity, 0.1, 0.25 / n, n_iter), screen_steps=range(1, n_iter + 1),
    )  # fmt: skip
    add(RNM, weights, "published", **curves)
    # one public recipe for all tables: clip at one unit, radius = target_bound/feature_bound
    domain = Domain(feature_bound=table.unit, target_bound=1.0, n_samples=n)
    for rule, weights, guarantee in free_rules(
        X, y, domain, number, max(1, round(d / 3)), n_iter=min(n_iter // 2, 200), radius=1.0 / table.unit,
        epsilon=5.0, delta=1 / n,
    ):  # fmt: skip
        add(rule, weights, "proven", guarantee=guarantee)
    return out


with_yeo_johnson = partial(real_trial, True)
without_yeo_johnson = partial(real_trial, False)


def real_configurations():
    return [{"data": name, "mode": "published", "n_iter": 0} for name in REAL]


def synthetic_kind(cell, metric):
    """That the active features come first was chosen because correlation then helps as the paper says."""
    return AFTER_THE_FACT if cell["data"] == "correlated" else AS_PRINTED


# ---- what the rows say ---------------------------------------------------------------------------


def adp_facts(summary):
    def share(method, metric="TPR", mode="published", data="squared"):
        return 100.0 * summary.mean(metric, mode, data=data, method=method)

    stay = {
        s: "{:.2f} of the true, {:.2f} of the false ones stay".format(
            *(share(f"adp, {s}", m) / 100 for m in ("TPR", "FPR"))
        )
        for s in SCHEDULES
    }
    exact = {
        rule: [
            share(f"no noise at all, {rule}, start zero", mode="nonprivate", data=data)
            for data in ("squared", "logistic")
        ]
        for rule in ("printed", "rescaled")
    }
    kept = min(
        share(f"A: noisy optimiser, {s}", "density", data=data)
        for s in SCHEDULES
        for data in ("squared", "logistic")
    )
    b = {s: share(f"B: noisy screening, {s}") for s in SCHEDULES}
    false = share("B: noisy screening, 50th", "FPR")
    return {"stay": stay, "exact": exact, "kept": kept, "b": b, "false": false}


def gap_facts(summary):
    ratios = {}
    for data in ("squared", "logistic"):
        cell = {"data": data, "method": "A: noisy optimiser, every"}
        curve = summary.curve("trace gap", "published", **cell)
        exact = summary.mean("gap", "nonprivate", data=data, method=EXACT)
        ratios[data] = float(abs(curve[-1])) / max(abs(exact), 1e-300)
    return ratios


EXACT = "no noise at all, printed, start random"


def synthetic_facts(summary):
    def mean(metric, method):
        return summary.mean(metric, None, data="uncorrelated", method=method)

    pairs = [
        pair
        for data in SYNTHETIC
        for pair in zip(
            *(
                summary.values("F1", "published", data=data, method=m)
                for m in (RNM, f"{RNM}, uniform screening")
            ),
            strict=True,
        )
    ]
    rules = {c["method"] for c in summary.cells if summary.values("F1", "proven", **c)}
    best = max(rules, key=lambda m: mean("F1", m))
    return {
        "same": sum(a == b for a, b in pairs), "trials": len(pairs), "density": mean("density", RNM),
        "chance": mean("density", f"{RNM} on an empty table"), "f1": mean("F1", RNM), "best": best,
        "reached": mean("F1", best),
    }  # fmt: skip


def synthetic_tests(summary):
    lines = []
    for data in SYNTHETIC:
        ours = summary.values("F1", "proven", data=data, method="top-k")
        theirs, adp = (summary.values("F1", "published", data=data, method=m) for m in (RNM, ADP))
        lines += [
            f"F1 of top-k (proven) against RNM-Screen (as published), {data}: sign test p = "
            f"{sign_test(ours, theirs):.2g}.",
            f"As printed: the F1 of RNM-Screen ({np.mean(theirs):.3f}) is significantly better than that of "
            f"ADP-Screen ({np.mean(adp):.3f}, radius 50), {data}: sign test p = {sign_test(theirs, adp):.2g}.",
        ]
    return lines


def compared(summary, metric, first, second, sign, test, names=REAL):
    """Data sets where `first` is significantly better than `second`, worse, and all that were tested."""
    better, worse, tested = [], [], []
    for name in names:
        a, b = (summary.values(metric, None, data=name, method=m) for m in (first, second))
        if len(a) != len(b) or len(a) < 6:  # fewer pairs cannot reach 5 %
            continue
        tested.append(name)
        if test(a, b) < 0.05:
            (better if sign * (np.mean(a) - np.mean(b)) > 0 else worse).append(name)
    return better, worse, tested


def real_tests(summary):
    lines = []
    for first, second in ((RNM, "Oracle-K"), ("top-k", RNM), ("counts", RNM)):
        for metric, sign in (("F1", 1), ("MSE", -1)):
            up, down, tested = compared(summary, metric, first, second, sign, wilcoxon)
            lines.append(
                f"{metric}: {first} better than {second} on {', '.join(up) or 'none'}, worse on "
                f"{', '.join(down) or 'none'} of {len(tested)} (Wilcoxon, 5 %)."
            )
    return lines


def density_tests(summary):
    """Tables 2 and 4: bold is a density better than that of DP-FW by a sign test; no F1 is bold."""
    denser, _, tested = compared(summary, "density", RNM, "DP-FW", -1, sign_test)
    better, _, _ = compared(summary, "F1", RNM, "DP-FW", 1, sign_test)
    return [
        "Bold marks of the paper (sign tests against DP-FW): the density is significantly better on all tables, ours "
        f"on {len(denser)} of {len(tested)}; no F1 is, ours on {len(better)} of {len(tested)}. DP-FW starts at random "
        "in the ball, so its density is 1 and the first of these could not fail.",
        *real_tests(summary),
    ]


# Tables 3 and 5: the bold one of Oracle-K and RNM-Screen, by data set in the order of REAL; "" where neither is.
BOLD = {
    "001-table3": {"F1": "OO RRR R", "MSE": "OOO    O"},
    "001-table5": {"F1": "OOOO  OO", "MSE": "OOOO   R"},
}


def oracle_tests(summary):
    lines, shown = [], {"R": RNM, "O": "Oracle-K", " ": "neither"}
    for metric, sign in (("F1", 1), ("MSE", -1)):
        up, down, tested = compared(summary, metric, RNM, "Oracle-K", sign, sign_test)
        marks = dict(zip(REAL, BOLD[summary.chapter.name][metric], strict=True))
        ours = {name: "R" if name in up else "O" if name in down else " " for name in tested}
        differ = [
            f"{name} ({shown[marks[name]]} in the paper, {shown[mark]} in ours)"
            for name, mark in ours.items()
            if mark != marks[name]
        ]
        lines.append(
            f"Bold marks of {metric} (sign test of RNM-Screen against Oracle-K, 5 %): {len(ours) - len(differ)} of "
            f"{len(ours)} as in the paper" + (f"; not {', '.join(differ)}." if differ else ".")
        )
    return [*lines, *real_tests(summary)]


def _counted(names):
    return f"{len(names)} ({', '.join(names)})" if names else "0"


def _free(summary, metric, sign):
    up, down, tested = compared(summary, metric, "top-k", RNM, sign, wilcoxon)
    return (
        f"At a true guarantee the {metric} of the free top-k rule is better on {len(up)} and worse on {len(down)} of "
        f"{len(tested)} (Wilcoxon); RNM-Screen itself has no proof (its noisy winner is compared with 0, its "
        "sensitivity is not O(1/n))."
    )


def density_facts(summary):
    good, of = summary.matched()
    return {
        "denser": len(compared(summary, "density", RNM, "DP-FW", -1, sign_test)[0]), "all": len(REAL),
        "better": _counted(compared(summary, "F1", RNM, "DP-FW", 1, sign_test)[0]), "good": good, "of": of,
        "free": _free(summary, "F1", 1),
    }  # fmt: skip


def without_facts(summary):
    """Table 4 against Table 2, whose rows are another chapter's."""
    before = summarise(chapters()["001-table2"], read_rows(RESULTS / "001-table2.jsonl"))
    r2 = {
        name: [s.mean("R2", "published", data=name, method=RNM) for s in (before, summary)]
        for name in REAL
    }
    rest = [name for name, (first, second) in r2.items() if not second < first]
    return density_facts(summary) | {"worse": len(REAL) - len(rest), "rest": ", ".join(rest)}


def oracle_facts(summary):
    larger = REAL[3:]  # d > 20
    found = {"larger": len(larger), "all": len(REAL), "free": _free(summary, "MSE", -1)}
    for metric, sign in (("F1", 1), ("MSE", -1)):
        found[f"{metric}_worse"] = _counted(
            compared(summary, metric, RNM, "Oracle-K", sign, sign_test, larger)[1]
        )
        better = compared(summary, metric, RNM, "Oracle-K", sign, sign_test)[0]
        found |= {
            f"{metric}_better": _counted(better),
            f"{metric}_not_better": len(REAL) - len(better),
        }
    return found


def curve_facts(summary):
    curves = {
        name: summary.curve("trace first", "published", data=name, method=RNM) for name in REAL
    }
    falls = [name for name, curve in curves.items() if curve[-1] < curve[0]]
    return {"falls": _counted(falls).replace(" (", f" of {len(curves)} (", 1)}


def chance_facts(summary):
    texts = []
    for cell in summary.cells:
        d = int(cell["data"].removeprefix("d = "))
        texts.append(
            f"{cell['data']}: {summary.mean('density', 'nonprivate', **cell):.3f}, printed "
            f"{(d - 1) ** 2 / ((d - 1) * d + 1):.3f}, (d-1)/(2d-1) = {(d - 1) / (2 * d - 1):.3f}"
        )
    share, d = 0.0, 10**6
    for _ in range(10):  # updates and screenings from zero
        share = (share + (1.0 - share) / d) * (1.0 - 1.0 / d)
    return {"shares": "; ".join(texts), "non_zeros": d * share}


# ---- figures -------------------------------------------------------------------------------------


def plot_adp(summary, path):
    found, save = axes(
        path, 3, columns=3, xlabel="iteration", ylabel="share that stays", ylim=(-0.02, 1.02)
    )
    for axis, schedule in zip(found, SCHEDULES, strict=True):
        cell = {"data": "squared", "method": f"adp, {schedule}"}
        t = summary.curve("trace t", "published", **cell)
        axis.plot(t, summary.curve("trace first", "published", **cell), label="true")
        axis.plot(t, summary.curve("trace second", "published", **cell), label="false")
        axis.set_title(f"screening: {schedule}")
    save()


def plot_gap(summary, path):
    found, save = axes(path, 2, xlabel="iteration", ylabel="Wolfe gap", yscale="log")
    for axis, data in zip(found, ("squared", "logistic"), strict=True):
        cell = {"data": data, "method": "A: noisy optimiser, every"}
        t = summary.curve("trace t", "published", **cell)
        gaps = np.abs(summary.curve("trace gap", "published", **cell))
        axis.plot(t, gaps, label="private optimiser")
        last = summary.mean("gap", "nonprivate", data=data, method=EXACT)
        axis.axhline(abs(last), color="black", ls=":", label="exact optimiser, last iteration")
        axis.set_title(data)
    save()


def plot_synthetic(summary, path):
    found, save = axes(
        path, 2, xlabel="iteration", ylabel="share of coefficients", ylim=(-0.02, 1.02)
    )
    for axis, data in zip(found, SYNTHETIC, strict=True):
        t = summary.curve("trace t", "published", data=data, method=RNM)
        for method, style, more in ((RNM, "-", ""), (ADP, "--", ", ADP-Screen")):
            for column, name in (("first", "true non-zero"), ("second", "true zero")):
                curve = summary.curve(f"trace {column}", "published", data=data, method=method)
                axis.plot(t, curve, style, label=name + more)
        axis.set_title(data)
    save()


def plot_mse(summary, path):
    (axis,), save = axes(
        path, xlabel="share of the iterations", ylabel="MSE / first MSE", yscale="log"
    )
    for name in REAL:
        t, mse = (
            summary.curve(f"trace {c}", "published", data=name, method=RNM) for c in ("t", "first")
        )
        axis.plot(t / t[-1], mse / mse[0], label=name)
    save()
