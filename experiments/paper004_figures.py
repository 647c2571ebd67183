"""Khanna, Lu and Raff (2023), Figures 1 to 5: Sparsifier against its rivals on synthetic data and KDD Cup 99.

The protocol of its section 4.2: one table, 50 runs of every method for each epsilon, 1000 iterations, the radius of
five values between 1 and 50 (and here DP-IGHT's step, which is not printed) by mean accuracy on 20 % held-out
rows. A second draw of the same law tests. "Sparsifier" is the reading of Tables 1 and 2 (exact sign), "Sparsifier,
as printed" Algorithm 1 to the letter. DP-IGHT has G = the longest row, a true bound on its gradients.
"""

import math
from functools import lru_cache

import numpy as np

import dpsparse as dp
from _batched import distinct, hard_threshold_runs, lasso_runs
from _common import plot_by_epsilon, promise
from _data004 import KDD_NOTE, parts
from _sparsifier import (
    keep_largest,
    laplace_scale,
    noisy_count,
)
from dpsparse.published import KiferSmithThakurtaTwoStageClassifier, WangZhangADMMClassifier
from dpsparse.published.wang_gu_2019_hard_threshold import concentrated
from dpsparse.random import make_generator
from engine import Experiment, derive_seed

EPSILONS = (0.1, 0.5, 1.0, 5.0)
RADII = tuple(round(r, 4) for r in np.geomspace(1.0, 50.0, 5))
STEPS = (8.0, 64.0)  # of DP-IGHT
N_ITER, COUNT_EPSILON, DELTA = 1000, 0.05, 1e-5
TRUTH = np.array([10.0, 9, 8, 7, 6, 5, 4, 0.5] + [0.0] * 92)
KNOWN, UNKNOWN = 8, 15  # s: the truth, and the middle of Sparsifier's bounds sqrt(p) and 2 sqrt(p)
READING, PRINTED = "Sparsifier", "Sparsifier, as printed"


@lru_cache(maxsize=1)
def synthetic():
    """Training, validation and test rows; each feature divided by its largest magnitude in the first 10,000."""
    rng, p = np.random.default_rng([0, 4]), len(TRUTH)
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    X = rng.multivariate_normal(np.zeros(p), covariance, size=15_000)
    X /= np.abs(X[:10_000]).max(axis=0)
    y = (X @ TRUTH > 0).astype(int)
    return (X[:8000], y[:8000]), (X[8000:10_000], y[8000:10_000]), (X[10_000:], y[10_000:])


def configurations(quick):
    out = []
    for epsilon in EPSILONS[2:3] if quick else EPSILONS:
        size = {"quick": True} if quick else {}
        out.append({"epsilon": epsilon, "mode": "published", "trials": 1, **size})
        out.append({"epsilon": epsilon, "mode": "proven", **size})
    return out


def synthetic_trial(config, seed):
    (X, y), validation, test = synthetic()
    epsilon, quick = config["epsilon"], config.get("quick", False)
    if config["mode"] == "published":
        fits = printed(
            X, y, epsilon, seed, runs=3 if quick else 50, n_iter=100 if quick else N_ITER
        )
    else:
        fits = proven(X, y, epsilon, seed)
    out = []
    for method, mode, tuning, weights, intercept, guarantee in fits:
        cell = {"method": method, "mode": mode, "tuning": tuning}
        found = measure(weights, intercept, validation, test)
        out.append({"cell": cell, "guarantee": guarantee, **found})
    return out


def measure(weights, intercept, validation, test):
    """What Figures 1 to 4 show, in that order, and the error that chooses among settings."""
    kept, true = weights != 0, TRUTH != 0
    hits = int(np.sum(kept & true))
    total = int(np.sum(kept)) + int(np.sum(true))
    errors = [float(np.mean((A @ weights + intercept > 0) != b)) for A, b in (validation, test)]
    return {
        "correct zeros (of 92)": int(np.sum(~kept & ~true)),
        "wrong zeros (of 8)": int(np.sum(~kept & true)),
        "F1": 2.0 * hits / total,
        "validation error": errors[0],
        "test error": errors[1],
    }


def sparsifier_runs(X, y, epsilon, radius, rng, runs, n_iter, exact_sign, counts=None):
    """Algorithm 2, all runs at once. The noise of the count hides which exact count it covers."""
    n, p = len(y) if counts is None else int(counts.sum()), X.shape[1]
    scale = laplace_scale(radius, n_iter, n, epsilon - COUNT_EPSILON, 1.0 / n)
    weights = lasso_runs(
        X, y, radius, n_iter, scale, rng, runs, exact_sign=exact_sign, counts=counts
    )
    for run in range(runs):
        yield keep_largest(weights[:, run], noisy_count(10, p, COUNT_EPSILON, rng))


def printed(X, y, epsilon, seed, *, runs, n_iter):
    n = len(y)
    rng = make_generator(derive_seed("printed", seed, epsilon))
    for name, exact_sign in ((READING, True), (PRINTED, False)):
        for radius in RADII:
            for w in sparsifier_runs(X, y, epsilon, radius, rng, runs, n_iter, exact_sign):
                yield name, "published", f"radius {radius:g}", w, 0.0, None
    bound = float(np.sqrt((X * X).sum(axis=1)).max())
    scale = math.sqrt(n_iter / concentrated(epsilon, 1.0 / n)) * bound / n
    for s, name in ((KNOWN, "DP-IGHT, s known"), (UNKNOWN, "DP-IGHT, s unknown")):
        for step in STEPS:
            weights = hard_threshold_runs(X, y, s, n_iter, step, scale, rng, runs)
            for run in range(runs):
                yield name, "published", f"step {step:g}", weights[:, run], 0.0, None
    domain = dp.Domain(feature_bound=1.0, row_norm=3.5, classes=[0, 1], n_samples=n)
    for run in range(runs):
        common = {
            "domain": domain, "epsilon": epsilon, "delta": 1.0 / n,
            "random_state": derive_seed(seed, run, epsilon), "fit_intercept": False,
        }  # fmt: skip
        for s, name in ((KNOWN, "Two-Stage, s known"), (UNKNOWN, "Two-Stage, s unknown")):
            yield _fitted(name, "published", two_stage(n_nonzero=s, **common), X, y)
        for penalty in ("l1", "l1/2"):
            name = f"ADMM {penalty.upper()}"
            yield _fitted(
                name, "published", WangZhangADMMClassifier(penalty=penalty, **common), X, y
            )


def two_stage(epsilon, **options):
    """As published it spends 1.5 times its epsilon (half on the support); here all methods spend the same."""
    return KiferSmithThakurtaTwoStageClassifier(epsilon=epsilon / 1.5, **options)


def proven(X, y, epsilon, seed):
    """Defaults at delta 1e-5; the bounds 1 on entries and 3.5 on rows are taken as declared."""
    domain = dp.Domain(feature_bound=1.0, row_norm=3.5, classes=[0, 1], n_samples=len(y))
    common = {
        "domain": domain,
        "epsilon": epsilon,
        "delta": DELTA,
        "random_state": derive_seed(seed, epsilon),
    }
    for s, which in ((KNOWN, "known"), (UNKNOWN, "unknown")):
        kept = common | {"n_nonzero": s}
        for name, model in (
            ("peeling + objective perturbation", dp.DPTwoStageClassifier(**kept)),
            ("DPSL-KT, direct release", dp.DPTransferClassifier(**kept)),
            ("DP-IGHT", dp.DPHardThresholdClassifier(**kept)),
            ("noisy gradients", dp.DPGradientClassifier(**kept)),
        ):
            yield _fitted(f"{name}, s {which}", "proven", model, X, y)
    # A private count at epsilon 0.05 is a coin flip between 10 and 20; a public 15 is the same for free.
    lasso = dp.DPLassoClassifier(radius=10.0, n_iter=200, **(common | {"n_nonzero": UNKNOWN}))
    yield _fitted(READING, "proven", lasso, X, y)
    for penalty in ("l1", "l1/2"):
        yield _fitted(
            f"ADMM {penalty.upper()}",
            "proven",
            WangZhangADMMClassifier(penalty=penalty, **common),
            X,
            y,
        )


def _fitted(name, mode, model, X, y):
    model.fit(X, y)
    guarantee = None if mode == "published" else promise(model, X.shape[1])
    return name, mode, "", np.ravel(model.coef_), float(model.intercept_[0]), guarantee


# ---- KDD Cup 99 ----------------------------------------------------------------------------------

KDD_RUNS, KDD_PILOT = 50, 5  # of each method, and of each setting to choose one
MORE_STEPS = 300  # of our DP-IGHT, beside its default: weights must grow far on a table that is nearly separable


def kdd_configurations(quick):
    out = []
    for epsilon in EPSILONS[2:3] if quick else EPSILONS:
        size = {"quick": True} if quick else {}
        out.append(
            {"epsilon": epsilon, "mode": "published", "part": "validated", "trials": 1, **size}
        )
        out.append({"epsilon": epsilon, "mode": "proven", **size})
    return out


def kdd_trial(config, seed):
    epsilon, quick = config["epsilon"], config.get("quick", False)
    A, a, B, b = parts("kddcup99", config["mode"], seed)
    half = B.shape[0] // 2  # the held-out fifth chooses settings and tests, half each

    def found(w, intercept=0.0):
        wrong = (B @ w + intercept > 0) != (b == 1)
        return {
            "validation error": float(wrong[:half].mean()),
            "test error": float(wrong[half:].mean()),
        }

    fits = (
        kdd_proven(A, a, epsilon, seed)
        if config["mode"] == "proven"
        else kdd_printed(A, a, epsilon, seed, found, quick)
    )
    return [
        {
            "cell": {"method": name, "mode": config["mode"], "tuning": tuning},
            "guarantee": guarantee,
            **found(w, intercept),
        }
        for name, tuning, w, intercept, guarantee in fits
    ]


def kdd_proven(A, a, epsilon, seed):
    from paper004_tables import proven_sparsifier

    n, p = A.shape
    s = round(1.5 * math.sqrt(p))
    common = {
        "domain": dp.Domain(row_norm=1.0, classes=[0, 1], n_samples=n),
        "epsilon": epsilon,
        "delta": 1e-6,
        "random_state": derive_seed(seed, epsilon),
    }
    for name, model in (
        ("Two-Stage", dp.DPTwoStageClassifier(n_nonzero=s, **common)),
        ("ADMM L1", WangZhangADMMClassifier(**common)),
        ("ADMM L1/2", WangZhangADMMClassifier(penalty="l1/2", **common)),
        ("DP-IGHT", dp.DPHardThresholdClassifier(n_nonzero=s, **common)),
        (
            f"DP-IGHT, {MORE_STEPS} steps",
            dp.DPHardThresholdClassifier(n_nonzero=s, n_iter=MORE_STEPS, **common),
        ),
        ("noisy gradients (ours)", dp.DPGradientClassifier(n_nonzero=s, **common)),
    ):
        model.fit(A, a)
        w, intercept = np.ravel(model.coef_), float(model.intercept_[0])
        yield name, "", w, intercept, promise(model, p)
    w, guarantee = proven_sparsifier(A, a, epsilon, make_generator(derive_seed(seed, epsilon)))
    yield READING, "", w, 0.0, guarantee


def kdd_printed(A, a, epsilon, seed, found, quick):
    """The setting with the least validation error of a few runs each is run in full."""
    n, p = A.shape
    s = round(1.5 * math.sqrt(p))
    runs, pilot, n_iter = (2, 1, 50) if quick else (KDD_RUNS, KDD_PILOT, N_ITER)
    rng = make_generator(derive_seed("printed", seed, epsilon))
    X, y, counts = distinct(A.toarray(), a)  # a third of the connections repeat others

    def sparsifier(exact_sign):
        return lambda radius, runs: sparsifier_runs(
            X, y, epsilon, radius, rng, runs, n_iter, exact_sign, counts
        )

    def hard_threshold(step, runs):  # rows have norm 1: G = 1
        scale = math.sqrt(n_iter / concentrated(epsilon, 1.0 / n)) / n
        return hard_threshold_runs(X, y, s, n_iter, step, scale, rng, runs, counts=counts).T

    for name, knob, settings, fits in (
        (READING, "radius", RADII, sparsifier(True)),
        (PRINTED, "radius", RADII, sparsifier(False)),
        ("DP-IGHT", "step", STEPS, hard_threshold),
    ):
        errors = {
            v: np.mean([found(w)["validation error"] for w in fits(v, pilot)]) for v in settings
        }
        chosen = min(errors, key=errors.get)
        for w in fits(chosen, runs):
            yield name, f"{knob} {chosen:g}", w, 0.0, None
    domain = dp.Domain(row_norm=1.0, classes=[0, 1], n_samples=n)
    for run in range(runs):
        common = {
            "domain": domain, "epsilon": epsilon, "delta": 1.0 / n,
            "random_state": derive_seed(seed, run, epsilon), "fit_intercept": False,
        }  # fmt: skip
        for name, model in (
            ("Two-Stage", two_stage(n_nonzero=s, **common)),
            ("ADMM L1", WangZhangADMMClassifier(**common)),
            ("ADMM L1/2", WangZhangADMMClassifier(penalty="l1/2", **common)),
        ):
            yield name, "", np.ravel(model.fit(A, a).coef_), 0.0, None


# ---- what they show --------------------------------------------------------------------------------


def verdict(metric, larger_is_better):
    """At how many budgets each form of Sparsifier leads or ties (within two standard errors) its rivals."""

    def text(summary):
        sign = 1 if larger_is_better else -1
        epsilons = sorted({c["epsilon"] for c in summary.cells})
        lines, share = [], []
        for mode, own in (("published", READING), ("published", PRINTED), ("proven", READING)):
            for knowing in ("unknown", "known"):
                leads, ties, tested, ahead = 0, 0, 0, set()
                for epsilon in epsilons:
                    ours = summary.average(metric, mode, method=own, epsilon=epsilon)
                    rivals = {
                        c["method"]: average
                        for c in summary.cells
                        if c["epsilon"] == epsilon
                        and not c["method"].startswith(READING)
                        and ("s known" not in c["method"] or knowing == "known")
                        and (average := summary.average(metric, mode, **c)) is not None
                    }
                    if metric.startswith("wrong zeros"):  # a dense model sets no weight to zero
                        rivals = {
                            m: a for m, a in rivals.items() if _is_sparse(summary, mode, m, epsilon)
                        }
                    if ours is None or not rivals:
                        continue
                    tested += 1
                    best = max(rivals, key=lambda m: sign * rivals[m].mean)
                    gap = sign * (ours.mean - rivals[best].mean)
                    close = 2.0 * math.hypot(ours.error, rivals[best].error)
                    leads += gap > close
                    ties += abs(gap) <= close
                    if gap < -close:
                        ahead.add(best)
                if not tested or (knowing == "known" and not _knows(summary)):
                    continue
                if mode == "published":
                    share.append((leads + ties) / tested)
                name = (
                    "as printed"
                    if own == PRINTED
                    else {"published": "with the exact sign"}.get(mode, mode)
                )
                told = f", s {knowing} to rivals" if _knows(summary) else ""
                lines.append(
                    f"{name}{told}: leads at {leads}, ties at {ties} of {tested} budgets"
                    + (f" (ahead elsewhere: {', '.join(sorted(ahead))})" if ahead else "")
                )
        holds = "Holds" if min(share, default=0) == 1 else "Holds in part" if max(share, default=0) > 0.5 else (
            "Does not hold" if max(share, default=0) == 0 else "Holds at few budgets"
        )  # fmt: skip
        return f"{holds}: " + "; ".join(lines) + "."

    return text


def few_wrong_zeros(summary):
    """The claim of Figure 2 is about Sparsifier alone; the race with its rivals stands behind it."""
    metric, texts, holds = "wrong zeros (of 8)", [], []
    for name, mode, own in (
        ("with the exact sign", "published", READING),
        ("as printed", "published", PRINTED),
        ("proven", "proven", READING),
    ):
        epsilons = sorted({c["epsilon"] for c in summary.cells})
        zeros = [summary.mean(metric, mode, method=own, epsilon=e) for e in epsilons]
        holds.append(max(zeros) <= 1.0)
        texts.append(f"{name} {', '.join(f'{z:.1f}' for z in zeros)}")
    word = "with the exact sign" if holds == [True, False, False] else ""
    word = (
        f"Holds {word}".rstrip() if holds[0] else "Holds in part" if any(holds) else "Does not hold"
    )
    budgets = ", ".join(f"{e:g}" for e in epsilons)
    race = verdict(metric, False)(summary).partition(": ")[2]
    return (
        f"{word}: true weights set to zero, of 8, at epsilon {budgets}: {'; '.join(texts)}. "
        f"Against rivals: {race}"
    )


def kdd_verdict(summary):
    """Both forms of Sparsifier and Two-Stage against ADMM and against DP-IGHT, as the paper has it."""
    epsilons = sorted({c["epsilon"] for c in summary.cells})
    rivals = {"ADMM": ("ADMM L1", "ADMM L1/2"), "DP-IGHT": ("DP-IGHT",)}
    lines, share = [], {rival: [] for rival in rivals}

    def error(mode, method, epsilon):
        return summary.mean("test error", mode, method=method, epsilon=epsilon)

    for mode in ("published", "proven"):
        texts = []
        for own in (READING, PRINTED, "Two-Stage"):
            counts = []
            for rival, forms in rivals.items():
                tested = [
                    error(mode, own, e) < least
                    for e in epsilons
                    if not math.isnan(least := min(error(mode, m, e) for m in forms))
                    and not math.isnan(error(mode, own, e))
                ]
                if tested:
                    counts.append(f"{rival} at {sum(tested)} of {len(tested)} budgets")
                    if mode == "published":
                        share[rival].append(sum(tested) / len(tested))
            if counts:
                texts.append(f"{own} is below {' and '.join(counts)}")
        if texts:
            errors = {
                m: error(mode, m, epsilons[0])
                for m in (READING, PRINTED, "Two-Stage", *rivals["ADMM"], "DP-IGHT")
            }
            shown = ", ".join(f"{m} {v:.3f}" for m, v in errors.items() if not math.isnan(v))
            name = {"published": "As published"}.get(mode, "Proven")
            lines.append(
                f"{name}: {'; '.join(texts)} (errors at epsilon {epsilons[0]:g}: {shown})."
            )
    words = {
        rival: "yes" if min(s, default=0) == 1 else "in part" if max(s, default=0) > 0 else "no"
        for rival, s in share.items()
    }
    found = set(words.values())
    holds = "Holds" if found == {"yes"} else "Does not hold" if found == {"no"} else "Holds in part"
    split = ", ".join(f"against {rival} {word}" for rival, word in words.items())
    return f"{holds} under our reading ({split}). {' '.join(lines)}"


def _is_sparse(summary, mode, method, epsilon):
    zeros = [
        row["metrics"]["correct zeros (of 92)"]
        for row in summary.rows
        if row["config"]["method"] == method
        and row["config"]["mode"] == mode
        and row["config"]["epsilon"] == epsilon
    ]
    return np.mean(zeros) > 46


def _knows(summary):
    return any("s known" in c["method"] for c in summary.cells)


SETTING = (
    "One table of 10,000 x 100, correlation 0.5^|i-j|, eight true weights; 8,000 rows train, 2,000 choose, 5,000 "
    "fresh ones test. 50 runs of each method as published (delta 1/n, 1000 iterations for Sparsifier and DP-IGHT, "
    "s = 8 if known, else 15; Two-Stage spends a third of epsilon on its support), 10 of each proven form (delta "
    "1e-5). Radius (1 to 50) and DP-IGHT's step (8, 64) by validation error, as the paper does; not charged. G is the "
    "longest row, 3.4. "
    "ADMM as published is as later papers implement it; the paper copied its curve from another, since it could not "
    "replicate its sparse outputs, and ours are dense too. Reading: the curves themselves are not in our copy, only "
    "the sentences about them; DP-IGHT's step, s and G are not printed. An author could answer with those; their "
    "curves as numbers would decide. "
)
SYNTHETIC = {
    "configurations": configurations, "trial": synthetic_trial, "trials": (1, 10), "many": True,
    "tuned_by": "validation error", "protocol": SETTING,
    "instead": "DPTwoStageClassifier with its default support (peeling).",
}  # fmt: skip


def _plot(metric):
    return lambda summary, path: plot_by_epsilon(summary, path, metric, log="error" in metric)


EXPERIMENTS = (
    Experiment(
        name="004-figure1",
        title="correct zeros on synthetic data",
        claim="Sparsifier finds more of the true zeros than its rivals.",
        metrics={"correct zeros (of 92)": ".1f"},
        verdict=verdict("correct zeros (of 92)", True),
        plot=_plot("correct zeros (of 92)"),
        **SYNTHETIC,
    ),
    Experiment(
        name="004-figure2",
        title="wrong zeros on synthetic data",
        claim="Sparsifier sets almost no true weight to zero.",
        metrics={"wrong zeros (of 8)": ".1f"},
        verdict=few_wrong_zeros,
        plot=_plot("wrong zeros (of 8)"),
        rows_of="004-figure1",
        **SYNTHETIC,
    ),
    Experiment(
        name="004-figure3",
        title="F1 of the support on synthetic data",
        claim="Sparsifier has the best F1.",
        metrics={"F1": ".3f"},
        verdict=verdict("F1", True),
        plot=_plot("F1"),
        rows_of="004-figure1",
        **SYNTHETIC,
    ),
    Experiment(
        name="004-figure4",
        title="test error on synthetic data",
        claim="Sparsifier has the lowest error at every epsilon.",
        metrics={"test error": ".3f"},
        verdict=verdict("test error", False),
        plot=_plot("test error"),
        rows_of="004-figure1",
        **SYNTHETIC,
    ),
    Experiment(
        name="004-figure5",
        title="test error on KDD Cup 99",
        configurations=kdd_configurations,
        trial=kdd_trial,
        trials=(1, 10),
        many=True,
        tuned_by="validation error",
        claim="Sparsifier and Two-Stage do well on KDD Cup 99; ADMM and DP-IGHT have higher errors.",
        metrics={"test error": ".4f"},
        verdict=kdd_verdict,
        instead="DPTwoStageClassifier with its default support (peeling).",
        protocol=(
            "60,000 connections. As published: one split, 50 runs of each method, delta 1/n, 1000 iterations of "
            "Sparsifier and DP-IGHT (G = 1: rows have norm 1), Two-Stage with a third of epsilon for its support. "
            "Proven: 10 splits, delta 1e-6, defaults. Our DP-IGHT takes 10 to 100 steps, in which its weights do "
            f"not grow far enough on a table that is nearly separable; with {MORE_STEPS} steps it stands beside. "
            "Radius (1 to 50) and DP-IGHT's step (8, 64) by validation error of 5 runs each on half of the held-out "
            "fifth; the other half tests. s = 17, the middle of sqrt(p) and 2 sqrt(p). "
            "Reading and what would decide: as for 004-figure1. "
            f"{KDD_NOTE}"
        ),
        needs=("kddcup99",),
        plot=_plot("test error"),
    ),
)
