"""Khanna, Lu and Raff (2023), Figures 1 to 5 and Theorems 1 and 2: Sparsifier against its rivals and its bounds.

The protocol of its section 4.2: one table, 50 runs of every method for each epsilon, 1000 iterations, the radius of
five values between 1 and 50 (and here DP-IGHT's step, which is not printed) by mean accuracy on 20 % held-out
rows. A second draw of the same law tests. "Sparsifier" is the reading of Tables 1 and 2 (exact sign), "Sparsifier,
as printed" Algorithm 1 to the letter. DP-IGHT has G = the longest row, a true bound on its gradients.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import expit

import dpsparse as dp
from dpsparse.losses import Logistic
from dpsparse.published import KiferSmithThakurtaTwoStageClassifier, WangZhangADMMClassifier
from dpsparse.published.wang_gu_2019_hard_threshold import private_hard_threshold
from dpsparse.random import make_generator
from lab.methods import promise
from lab.papers.chapter import derive_seed
from lab.papers.common import axes, plot_by_epsilon
from lab.papers.sparsifier import keep_largest, laplace_scale, noisy_count, parts, private_lasso
from lab.papers.sparsifier_tables import proven_sparsifier

EPSILONS = (0.1, 0.5, 1.0, 5.0)
RADII = tuple(round(r, 4) for r in np.geomspace(1.0, 50.0, 5))
STEPS = (8.0, 64.0)  # of DP-IGHT
N_ITER, COUNT_EPSILON, DELTA = 1000, 0.05, 1e-5
RUNS, PILOT_RUNS = 50, 5  # of every method, and of every setting to choose among them
TRUTH = np.array([10.0, 9, 8, 7, 6, 5, 4, 0.5] + [0.0] * 92)
KNOWN, UNKNOWN = 8, 15  # s: the truth, and the middle of Sparsifier's bounds sqrt(p) and 2 sqrt(p)
READING, PRINTED = "Sparsifier", "Sparsifier, as printed"
TWO_STAGE, ADMM, IGHT = "Two-Stage", ("ADMM L1", "ADMM L1/2"), "DP-IGHT"


# ---- the printed algorithms ----------------------------------------------------------------------


def sparsifier(X, y, epsilon, radius, rng, exact_sign):
    """Algorithm 2. The noise of the count hides which exact count it covers."""
    n, p = X.shape
    scale = laplace_scale(radius, N_ITER, n, epsilon - COUNT_EPSILON, 1.0 / n)
    w = private_lasso(X, y, radius, N_ITER, scale, rng, exact_sign=exact_sign)
    return keep_largest(w, noisy_count(10, p, COUNT_EPSILON, rng))


def hard_threshold(X, y, epsilon, s, step, rng, bound):
    return private_hard_threshold(
        X, y, Logistic(), rng, n_nonzero=s, n_iter=N_ITER, step=step, epsilon=epsilon, delta=1.0 / X.shape[0],
        gradient_bound=bound,
    )  # fmt: skip


def two_stage(epsilon, **options):
    """As published it spends 1.5 times its epsilon (half on the support); here all methods spend the same."""
    return KiferSmithThakurtaTwoStageClassifier(epsilon=epsilon / 1.5, **options)


def admm(name, **options):
    return WangZhangADMMClassifier(penalty=name.removeprefix("ADMM ").lower(), **options)


def fitted(name, mode, model, X, y):
    model.fit(X, y)
    guarantee = None if mode == "published" else promise(model, X.shape[1])
    return name, mode, "", np.ravel(model.coef_), float(model.intercept_[0]), guarantee


def tabulated(fits, measure):
    """(name, mode, tuning, weights, intercept, guarantee) as parts of a trial."""
    return [
        {
            "cell": {"method": name, "mode": mode, "tuning": tuning},
            "guarantee": guarantee,
            **measure(weights, intercept),
        }
        for name, mode, tuning, weights, intercept, guarantee in fits
    ]


def configurations():
    """One published trial holds all runs, because they share what chooses among settings."""
    return [
        {"epsilon": epsilon, **how}
        for epsilon in EPSILONS
        for how in ({"mode": "published", "trials": 1}, {"mode": "proven"})
    ]


# ---- Figures 1 to 4: synthetic data --------------------------------------------------------------


@lru_cache(maxsize=1)
def synthetic():
    """Training, validation and test rows; each feature divided by its largest magnitude in the first 10,000."""
    rng, p = np.random.default_rng([0, 4]), len(TRUTH)
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    X = rng.multivariate_normal(np.zeros(p), covariance, size=15_000)
    X /= np.abs(X[:10_000]).max(axis=0)
    y = (X @ TRUTH > 0).astype(int)
    return (X[:8000], y[:8000]), (X[8000:10_000], y[8000:10_000]), (X[10_000:], y[10_000:])


def synthetic_trial(config, seed, number):
    (X, y), validation, test = synthetic()

    def measure(weights, intercept):
        """What Figures 1 to 4 show, in that order, and the error that chooses among settings."""
        kept, true = weights != 0, TRUTH != 0
        hits, total = int(np.sum(kept & true)), int(np.sum(kept)) + int(np.sum(true))
        errors = [np.mean((A @ weights + intercept > 0) != b) for A, b in (validation, test)]
        return {
            "correct zeros (of 92)": int(np.sum(~kept & ~true)),
            "wrong zeros (of 8)": int(np.sum(~kept & true)),
            "F1": 2.0 * hits / total,
            "validation error": errors[0],
            "test error": errors[1],
        }

    if config["mode"] == "published":
        fits = synthetic_printed(X, y, config["epsilon"], seed)
    else:
        fits = synthetic_proven(X, y, config["epsilon"], seed)
    return tabulated(fits, measure)


def synthetic_printed(X, y, epsilon, seed):
    n = len(y)
    rng = make_generator(derive_seed("printed", seed, epsilon))
    bound = float(np.sqrt((X * X).sum(axis=1)).max())
    domain = dp.Domain(feature_bound=1.0, row_norm=3.5, classes=[0, 1], n_samples=n)
    sizes = ((KNOWN, "s known"), (UNKNOWN, "s unknown"))
    for run in range(RUNS):
        for name, exact_sign in ((READING, True), (PRINTED, False)):
            for radius in RADII:
                w = sparsifier(X, y, epsilon, radius, rng, exact_sign)
                yield name, "published", f"radius {radius:g}", w, 0.0, None
        for s, which in sizes:
            for step in STEPS:
                w = hard_threshold(X, y, epsilon, s, step, rng, bound)
                yield f"{IGHT}, {which}", "published", f"step {step:g}", w, 0.0, None
        common = {
            "domain": domain, "epsilon": epsilon, "delta": 1.0 / n,
            "random_state": derive_seed(seed, run, epsilon), "fit_intercept": False,
        }  # fmt: skip
        for s, which in sizes:
            model = two_stage(n_nonzero=s, **common)
            yield fitted(f"{TWO_STAGE}, {which}", "published", model, X, y)
        for name in ADMM:
            yield fitted(name, "published", admm(name, **common), X, y)


def synthetic_proven(X, y, epsilon, seed):
    """Defaults at delta 1e-5; the bounds 1 on entries and 3.5 on rows are taken as declared."""
    domain = dp.Domain(feature_bound=1.0, row_norm=3.5, classes=[0, 1], n_samples=len(y))
    noise = derive_seed(seed, epsilon)
    common = {"domain": domain, "epsilon": epsilon, "delta": DELTA, "random_state": noise}
    for s, which in ((KNOWN, "known"), (UNKNOWN, "unknown")):
        for name, kind in (
            ("peeling + objective perturbation", dp.DPTwoStageClassifier),
            ("DPSL-KT, direct release", dp.DPTransferClassifier),
            (IGHT, dp.DPHardThresholdClassifier),
            ("noisy gradients", dp.DPGradientClassifier),
        ):
            yield fitted(f"{name}, s {which}", "proven", kind(n_nonzero=s, **common), X, y)
    # A private count at epsilon 0.05 is a coin flip between 10 and 20; a public 15 is the same for free.
    lasso = dp.DPLassoClassifier(radius=10.0, n_iter=200, n_nonzero=UNKNOWN, **common)
    yield fitted(READING, "proven", lasso, X, y)
    for name in ADMM:
        yield fitted(name, "proven", admm(name, **common), X, y)


# ---- Figure 5: KDD Cup 99 ------------------------------------------------------------------------

MORE_STEPS = 300  # of our DP-IGHT, beside its default: weights must grow far on a table that is nearly separable


def kdd_configurations():
    return [c | {"part": "validated"} if c["mode"] == "published" else c for c in configurations()]


def kdd_trial(config, seed, number):
    epsilon = config["epsilon"]
    A, a, B, b = parts("kddcup99", config["mode"], seed)
    half = B.shape[0] // 2  # the held-out fifth chooses settings and tests, half each

    def measure(w, intercept=0.0):
        wrong = (B @ w + intercept > 0) != (b == 1)
        return {"validation error": wrong[:half].mean(), "test error": wrong[half:].mean()}

    if config["mode"] == "published":
        return tabulated(kdd_printed(A, a, epsilon, seed, measure), measure)
    return tabulated(kdd_proven(A, a, epsilon, seed), measure)


def kdd_proven(A, a, epsilon, seed):
    n, p = A.shape
    s = round(1.5 * math.sqrt(p))
    common = {
        "domain": dp.Domain(row_norm=1.0, classes=[0, 1], n_samples=n), "epsilon": epsilon, "delta": 1e-6,
        "random_state": derive_seed(seed, epsilon),
    }  # fmt: skip
    yield fitted(TWO_STAGE, "proven", dp.DPTwoStageClassifier(n_nonzero=s, **common), A, a)
    for name in ADMM:
        yield fitted(name, "proven", admm(name, **common), A, a)
    for name, more in ((IGHT, {}), (f"{IGHT}, {MORE_STEPS} steps", {"n_iter": MORE_STEPS})):
        model = dp.DPHardThresholdClassifier(n_nonzero=s, **more, **common)
        yield fitted(name, "proven", model, A, a)
    model = dp.DPGradientClassifier(n_nonzero=s, **common)
    yield fitted("noisy gradients (ours)", "proven", model, A, a)
    w, guarantee = proven_sparsifier(A, a, epsilon, make_generator(derive_seed(seed, epsilon)))
    yield READING, "proven", "", w, 0.0, guarantee


def kdd_printed(A, a, epsilon, seed, measure):
    """The setting with the least validation error of a few runs each is run in full."""
    n, p = A.shape
    s = round(1.5 * math.sqrt(p))
    rng = make_generator(derive_seed("printed", seed, epsilon))
    for name, knob, settings, fit in (
        (READING, "radius", RADII, lambda r: sparsifier(A, a, epsilon, r, rng, True)),
        (PRINTED, "radius", RADII, lambda r: sparsifier(A, a, epsilon, r, rng, False)),
        # rows have norm 1: G = 1
        (IGHT, "step", STEPS, lambda step: hard_threshold(A, a, epsilon, s, step, rng, 1.0)),
    ):  # fmt: skip
        errors = {
            v: np.mean([measure(fit(v))["validation error"] for _ in range(PILOT_RUNS)])
            for v in settings
        }
        chosen = min(errors, key=errors.get)
        for _ in range(RUNS):
            yield name, "published", f"{knob} {chosen:g}", fit(chosen), 0.0, None
    domain = dp.Domain(row_norm=1.0, classes=[0, 1], n_samples=n)
    for run in range(RUNS):
        common = {
            "domain": domain, "epsilon": epsilon, "delta": 1.0 / n,
            "random_state": derive_seed(seed, run, epsilon), "fit_intercept": False,
        }  # fmt: skip
        yield fitted(TWO_STAGE, "published", two_stage(n_nonzero=s, **common), A, a)
        for name in ADMM:
            yield fitted(name, "published", admm(name, **common), A, a)


# ---- what they show ------------------------------------------------------------------------------

FORMS = (
    ("with the exact sign", "published", READING),
    ("as printed", "published", PRINTED),
    ("proven", "proven", READING),
)


LARGER_IS_BETTER = ("correct zeros (of 92)", "F1")


def race(summary):
    """At how many budgets each form of Sparsifier leads or ties (within two standard errors) its rivals."""
    (metric,) = summary.chapter.metrics
    sign, lines = 1 if metric in LARGER_IS_BETTER else -1, []
    for label, mode, own in FORMS:
        for knowing in ("unknown", "known"):
            leads, ties, ahead = 0, 0, set()
            for epsilon in EPSILONS:
                ours = summary.average(metric, mode, method=own, epsilon=epsilon)
                rivals = _rivals(summary, metric, mode, epsilon, knowing)
                best = max(rivals, key=lambda m: sign * rivals[m].mean)
                gap = sign * (ours.mean - rivals[best].mean)
                close = 2.0 * math.hypot(ours.error, rivals[best].error)
                leads += gap > close
                ties += abs(gap) <= close
                ahead |= {best} if gap < -close else set()
            lines.append(
                f"{label}, s {knowing} to rivals: leads at {leads}, ties at {ties} of {len(EPSILONS)} budgets"
                + (f" (ahead elsewhere: {', '.join(sorted(ahead))})" if ahead else "")
            )
    return {"race": "; ".join(lines), "zeros": _wrong_zeros(summary)}


def _rivals(summary, metric, mode, epsilon, knowing):
    """Averages of all other methods; a dense model sets no weight to zero and does not count there."""
    found = {}
    for cell in summary.cells:
        name = cell["method"]
        average = summary.average(metric, mode, **cell)
        if (
            cell["epsilon"] != epsilon
            or average is None
            or name.startswith(READING)
            or ("s known" in name and knowing != "known")
            or (
                metric.startswith("wrong zeros")
                and summary.mean("correct zeros (of 92)", mode, **cell) <= 46
            )
        ):
            continue
        found[name] = average
    return found


def _wrong_zeros(summary):
    texts = []
    for label, mode, own in FORMS:
        zeros = [summary.mean("wrong zeros (of 8)", mode, method=own, epsilon=e) for e in EPSILONS]
        texts.append(f"{label} {', '.join(f'{z:.1f}' for z in zeros)}")
    return "; ".join(texts)


def kdd_facts(summary):
    """Both forms of Sparsifier and Two-Stage against ADMM and against DP-IGHT, as the paper has it."""

    def error(mode, method, epsilon):
        return summary.mean("test error", mode, method=method, epsilon=epsilon)

    found = {}
    for mode, owns in (
        ("published", (READING, PRINTED, TWO_STAGE)),
        ("proven", (READING, TWO_STAGE)),
    ):
        texts = []
        for own in owns:
            counts = [
                f"{rival} at {sum(error(mode, own, e) < min(error(mode, m, e) for m in forms) for e in EPSILONS)} "
                f"of {len(EPSILONS)} budgets"
                for rival, forms in (("ADMM", ADMM), (IGHT, (IGHT,)))
            ]
            texts.append(f"{own} is below {' and '.join(counts)}")
        errors = ", ".join(f"{m} {error(mode, m, 0.1):.3f}" for m in (*owns, *ADMM, IGHT))
        found[mode] = f"{'; '.join(texts)} (errors at epsilon 0.1: {errors})"
    return found


def plot(summary, path):
    (metric,) = summary.chapter.metrics
    plot_by_epsilon(summary, path, metric, log="error" in metric)


# ---- Theorems 1 and 2, and B.1 of Raff, Khanna and Lu (2023) -------------------------------------

P, THEOREM_RUNS = 100, 20
LASSO, THINNED = "private LASSO (Theorem 1)", "Sparsifier (Theorem 2)"


def theorem_configurations():
    return [{"n": n, "epsilon": 1.0, "mode": "published"} for n in (500, 2000, 8000, 32_000)]


def theorem_trial(config, seed, number):
    """Unit ball, entries in [-1, 1], the iterations of Corollary 3 with curvature 1/4 and L = 1."""
    n, epsilon = config["n"], config["epsilon"]
    rng = make_generator(derive_seed(seed, n))
    X = rng.uniform(-1.0, 1.0, (n, P))
    y = (rng.random(n) < expit(5.0 * X @ np.r_[np.full(8, 1.0), np.zeros(P - 8)])).astype(int)

    def loss(w):
        return float(np.mean(np.logaddexp(0.0, X @ w) - y * (X @ w)))

    best = loss(private_lasso(X, y, 1.0, 3000, 0.0, None))
    n_iter = max(round((0.25 * n * epsilon) ** (2 / 3)), 1)
    scale = laplace_scale(1.0, n_iter, n, epsilon, 1.0 / n)
    bound = 0.25 ** (1 / 3) * math.log(n * P * n) / (n * epsilon) ** (2 / 3)  # delta = 1/n
    low = math.isqrt(P)
    bias = min((P - low) / (low + 1.0), 1.0)
    out = []
    for _ in range(THEOREM_RUNS):
        w = private_lasso(X, y, 1.0, n_iter, scale, rng)
        few = keep_largest(w, noisy_count(10, P, COUNT_EPSILON, rng))
        for method, weights, allowed in ((LASSO, w, bound), (THINNED, few, bound + bias)):
            excess = {"excess loss": loss(weights) - best, "bound with constant 1": allowed}
            out.append({"cell": {"method": method}, **excess})
    return out


def faster_bound(n, epsilon=1.0):
    """B.1 of Raff, Khanna and Lu (2023) with constant 1: 2p vertices, delta = 1/n."""
    return 0.25 ** (1 / 3) * math.log(2 * P * n) * math.sqrt(math.log(n)) / (n * epsilon) ** (2 / 3)


def _curve(summary, method, metric):
    found = sorted(c["n"] for c in summary.cells if c["method"] == method)
    return found, [summary.mean(metric, None, n=n, method=method) for n in found]


def theorem_facts(summary):
    sizes, errors = _curve(summary, LASSO, "excess loss")
    return {
        "sizes": sizes, "errors": errors, "bounds": _curve(summary, LASSO, "bound with constant 1")[1],
        "slope": np.polyfit(np.log(sizes), np.log(np.maximum(errors, 1e-9)), 1)[0],
        "thinned": _curve(summary, THINNED, "excess loss")[1], "faster": [faster_bound(n) for n in sizes],
    }  # fmt: skip


def theorem_plot(summary, path):
    (axis,), save = axes(path, xlabel="rows", ylabel="excess loss", xscale="log", yscale="log")
    for method in (LASSO, THINNED):
        axis.plot(*_curve(summary, method, "excess loss"), marker="o", label=method)
        axis.plot(*_curve(summary, method, "bound with constant 1"), "--", label=f"bound, {method}")
    sizes, _ = _curve(summary, LASSO, "excess loss")
    axis.plot(sizes, [faster_bound(n) for n in sizes], ":", label="bound, Raff, Khanna and Lu, B.1")
    save()
