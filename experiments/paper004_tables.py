"""Khanna, Lu and Raff (2023), Tables 1 and 2: non-zeros, accuracy and AUC of private LASSO and Sparsifier.

Algorithm 1 of the paper does not give the published numbers. The published mode here is a reading chosen by these
same numbers (paper004_readings.py lists all that were tried, with their counts); a guess at what was run:
  1. values as they come, not divided by the largest of each feature (_data004.py; covtype and kddcup99 are);
  2. the step of Raff, Khanna and Lu (2023): the index is noisy (noise larger by the radius), its sign exact;
  3. private LASSO stopped early keeps the noise of 1000 iterations.
"As printed" is Algorithm 1 to the letter, features divided.
"""

import math
from functools import lru_cache

import numpy as np

import dpsparse as dp
from _batched import lasso_splits
from _common import classifier_scores, promise, split, trial_number
from _data004 import AS_SHIPPED, FILES, NOTE, names_here, parts, prepared
from _sparsifier import (
    keep_largest,
    laplace_scale,
    noisy_count,
    private_lasso,
)
from dpsparse.random import make_generator, two_sided_geometric
from engine import (
    AFTER_THE_FACT,
    AS_PRINTED,
    BY_CONSTRUCTION,
    Experiment,
    derive_seed,
    wilcoxon,
)

RADIUS, N_ITER, EPSILON, COUNT_EPSILON = 10.0, 1000, 1.0, 0.05
DELTA = 1e-6  # of the proven fits; the paper uses 1/n
TRIALS, TOGETHER = 50, 25
SPLITS = 3  # of the non-private solution, of which the paper prints one number without a spread
SLOW = ("w8a", "kddcup99", "covtype")  # one split of these
# Iterations at which private LASSO has about the published number of weights, found on pilot runs:
# (published reading, as printed, proven).
MATCHED = {
    "kddcup99": (16, 285, 300), "covtype": (45, 80, 100), "splice": (16, 12, 21), "phishing": (11, 24, 26),
    "synthetic": (19, 37, 61), "mushrooms": (18, 31, 35), "a9a": (21, 60, 66), "w8a": (27, 58, 84),
    "colon-cancer": (70, 67, 67), "gisette": (110, 110, 110),  # gisette without a pilot
}  # fmt: skip
WIDTHS = {
    "kddcup99": 122, "covtype": 54, "splice": 60, "phishing": 68, "synthetic": 100, "mushrooms": 112,
    "a9a": 123, "w8a": 300, "colon-cancer": 2000, "gisette": 5000,
}  # fmt: skip
LASSO, SPARSIFIER, GRADIENT = "private LASSO", "Sparsifier", "DP gradient (ours)"
PRINTED = ", as printed"
HOW = (
    '"As published" is a guess at what was run, chosen after the fact by these same numbers (004-readings): '
    "the step the authors print in Raff, Khanna and Lu (2023) (noisy index, noise larger by the radius, exact "
    "sign: not private at any "
    "noise), values as they come, and private LASSO stopped early with the noise of 1000 iterations; the last two "
    "go against the text. A uniform index fits as well where both were tried (19 of 24 accuracies and AUCs each on "
    'random splits). Its matches are therefore no independent confirmation. "As printed" is Algorithm 1 to the letter, '
    "features divided."
)
READING = {"mode": "published", "part": "step of 002"}


def _sizes(p):
    return int(math.sqrt(p)), int(2.0 * math.sqrt(p))


def _rng(config, seed):
    method = config["method"].removesuffix(PRINTED)
    how = f", {config['part']}" if "part" in config else ""
    return make_generator(derive_seed(seed, config["dataset"], method + how, config["mode"]))


def _weights(table, config, A, a, seed, n_iter_lasso):
    """Weights and, for a proven fit, its guarantee."""
    n, p = A.shape
    method, sparsify = config["method"], config["method"].startswith(SPARSIFIER)
    n_iter = N_ITER if sparsify else n_iter_lasso
    if config["mode"] == "nonprivate":
        return private_lasso(A, a, RADIUS, config["n_iter"], 0.0, None), None
    rng = _rng(config, seed)
    if config["mode"] == "published":
        if config["dataset"] == "covtype":
            batch, place = divmod(trial_number(table, seed), TOGETHER)
            return _together(table, frozenset(config.items()), n_iter, batch)[place], None
        printed = method.endswith(PRINTED)
        scale = _scale(method, n_iter, n)
        w = private_lasso(A, a, RADIUS, n_iter, scale, rng, exact_sign=not printed)
        return _kept(w, method, rng), None
    if method == SPARSIFIER:
        return proven_sparsifier(A, a, EPSILON, rng)
    common = {"epsilon": EPSILON, "delta": DELTA, "random_state": int(rng.integers(2**62))}
    if method == GRADIENT:
        domain = dp.Domain(classes=[0, 1], n_samples=n, row_norm=1.0)
        model = dp.DPGradientClassifier(domain, n_nonzero=round(1.5 * math.sqrt(p)), **common)
        return model.fit(A, a), promise(model, p)
    model = _lasso(n, n_iter, **common)
    return np.ravel(model.fit(A, a).coef_), promise(model, p)


def _scale(method, n_iter, n):
    """Noise as published: only to the letter does private LASSO stopped early pay for its own iterations."""
    epsilon = EPSILON - COUNT_EPSILON if method.startswith(SPARSIFIER) else EPSILON
    length = n_iter if method.endswith(PRINTED) else N_ITER
    return laplace_scale(RADIUS, length, n, epsilon, 1.0 / n)


def _kept(w, method, rng):
    """The count's noise is 20 times its range: which exact count it hides makes no difference."""
    if not method.startswith(SPARSIFIER):
        return w
    return keep_largest(w, noisy_count(20, len(w), COUNT_EPSILON, rng))


@lru_cache(maxsize=1)
def _together(table, items, n_iter, batch):
    """The weights of 25 trials of one method: half a million rows are read once a step, not 25 times."""
    config, first = dict(items), TOGETHER * batch
    method = config["method"]
    seeds = [derive_seed(table, t) for t in range(first, first + TOGETHER)]
    X, y = prepared(config["dataset"], "largest")
    trains, rngs = [split(len(y), s)[0] for s in seeds], [_rng(config, s) for s in seeds]
    scales = [_scale(method, n_iter, len(train)) for train in trains]
    runs = lasso_splits(
        X, y, trains, RADIUS, n_iter, scales, rngs, exact_sign=not method.endswith(PRINTED)
    )
    return [_kept(w, method, rng) for w, rng in zip(runs.T, rngs, strict=True)]


def _lasso(n, n_iter, **options):
    domain = dp.Domain(classes=[0, 1], n_samples=n)
    return dp.DPLassoClassifier(
        domain, radius=RADIUS, n_iter=n_iter, fit_intercept=False, **options
    )


def proven_sparsifier(X, y, epsilon, rng):
    """DPLassoClassifier(n_nonzero=PrivateCount(...)) by hand, at no more than its price: weights, guarantee.

    Epsilon splits by basic composition, and the noiseless fit behind the count is short: the noise
    of the count hides all of it.
    """
    n, p = X.shape
    count = dp.PrivateCount(*_sizes(p), COUNT_EPSILON)
    model = _lasso(
        n, N_ITER, n_nonzero=count, epsilon=epsilon, delta=DELTA,
        random_state=int(rng.integers(2**62)),
    )  # fmt: skip
    guarantee = promise(model, p)
    model.set_params(n_nonzero=None, epsilon=epsilon - COUNT_EPSILON)
    exact = np.count_nonzero(private_lasso(X, y, RADIUS, 200, 0.0, None))
    weights = np.ravel(model.fit(X, y).coef_)
    noisy = count.clipped(exact) + two_sided_geometric(rng, count.scale)
    return keep_largest(weights, count.kept(noisy, p)), guarantee


def configurations1(quick):
    names = ("splice", "phishing") if quick else names_here()
    out = []
    for name in names:
        exact = {"method": "non-private", "mode": "nonprivate", "n_iter": 2000 if quick else 50_000}
        splits = 1 if quick or name in SLOW else SPLITS
        out.append({"dataset": name, **exact, "trials": splits})
        out += _private(name, [LASSO, SPARSIFIER])
    return out


def configurations2(quick):
    names = ("splice", "phishing") if quick else names_here()
    out = []
    for name in names:
        out += _private(name, [SPARSIFIER, LASSO])
        out += [
            {"dataset": name, "method": m + PRINTED, "mode": "published"}
            for m in (SPARSIFIER, LASSO)
        ]
        out.append({"dataset": name, "method": GRADIENT, "mode": "proven"})
    return out


def _private(name, methods):
    return [
        {"dataset": name, "method": m, **how}
        for m in methods
        for how in (READING, {"mode": "proven"})
    ]


def trial1(config, seed):
    A, a, _, _ = parts(config["dataset"], config["mode"], seed)
    w, guarantee = _weights("004-table1", config, A, a, seed, N_ITER)
    found = {"non-zeros": np.count_nonzero(w)}
    return found if guarantee is None else found | {"guarantee": guarantee}


def trial2(config, seed):
    printed = config["method"].endswith(PRINTED)
    A, a, B, b = parts(config["dataset"], "printed" if printed else config["mode"], seed)
    matched = MATCHED[config["dataset"]]
    which = 2 if config["mode"] == "proven" else printed
    w, guarantee = _weights("004-table2", config, A, a, seed, matched[which])
    if config["method"] == GRADIENT:
        margins, nonzeros = w.decision_function(B), w.n_nonzero_
    else:
        margins, nonzeros = B @ w, np.count_nonzero(w)
    found = {"non-zeros": nonzeros, **classifier_scores(margins, b)}
    return found if guarantee is None else found | {"guarantee": guarantee}


def kind1(cell, metric):
    """Sparsifier's count is a coin flip between bounds that p alone sets; the rest depends on values or the step."""
    if cell["method"] == SPARSIFIER:
        return BY_CONSTRUCTION
    if cell["method"] == "non-private":
        return AFTER_THE_FACT if cell["dataset"] in AS_SHIPPED else AS_PRINTED
    return AFTER_THE_FACT


def kind2(cell, metric):
    """The iterations of private LASSO were chosen to give its non-zeros; those of Sparsifier follow from p."""
    return BY_CONSTRUCTION if metric == "non-zeros" else AFTER_THE_FACT


# Printed ratios of Table 1: private LASSO, Sparsifier.
RATIOS = {
    "kddcup99": (26.75, 4.29), "covtype": (3.18, 0.68), "splice": (1.15, 0.24), "phishing": (34.00, 6.16),
    "synthetic": (14.29, 2.29), "mushrooms": (7.00, 1.04), "a9a": (6.47, 0.89), "w8a": (14.44, 1.35),
    "colon-cancer": (13.56, 1.12),
}  # fmt: skip


def ratio_tests(summary):
    """The ratios beside the non-zeros: from the printed averages, and from ours."""
    lines = []
    for name, printed in RATIOS.items():
        texts = []
        for method, ratio in zip((LASSO, SPARSIFIER), printed, strict=True):
            theirs = summary.published("non-zeros", dataset=name, method=method)
            base = summary.published("non-zeros", dataset=name, method="non-private")
            ours = summary.mean("non-zeros", "published", dataset=name, method=method)
            ground = summary.mean("non-zeros", "nonprivate", dataset=name, method="non-private")
            if theirs is not None and base is not None:
                texts.append(
                    f"{method} {ratio:.2f} printed, {theirs.value / base.value:.2f} from the printed averages, "
                    f"{ours / ground:.2f} from ours"
                )
        lines.append(f"Ratio to the non-private solution, {name}: " + "; ".join(texts) + ".")
    return lines


def verdict1(summary):
    def averages(method):
        found = {
            c["dataset"]: summary.average(
                "non-zeros", "published", dataset=c["dataset"], method=method
            )
            for c in summary.cells
        }
        return {name: average for name, average in found.items() if average is not None}

    lasso, sparsifier = averages(LASSO), averages(SPARSIFIER)
    dense = sum(a.mean > 0.5 * WIDTHS[name] for name, a in lasso.items())
    coin = sum(
        abs(a.mean - sum(_sizes(WIDTHS[name])) / 2) <= 2 * a.error + 0.5
        for name, a in sparsifier.items()
    )
    holds = "Holds" if dense > len(lasso) / 2 else "Holds in part"
    return (
        f"{holds}, but the count is a coin flip: private LASSO uses more than half of the features on {dense} of "
        f"{len(lasso)} data sets, and what Sparsifier keeps equals the mid-point of sqrt(p) and 2 sqrt(p) "
        f"within two standard errors on {coin} of {len(sparsifier)}: at epsilon 0.05 the noise is 20 times the range "
        "of the count, which therefore says nothing about the data."
    )


def _wins(summary, mode, metric="AUC", form=""):
    """Data sets where Sparsifier is significantly better, worse (Wilcoxon, 5 %)."""
    better, worse, all_of_them = [], [], []
    for name in dict.fromkeys(c["dataset"] for c in summary.cells):
        first = summary.values(metric, mode, dataset=name, method=SPARSIFIER + form)
        second = summary.values(metric, mode, dataset=name, method=LASSO + form)
        if len(first) != len(second) or len(first) < 6:  # fewer pairs cannot reach 5 %
            continue
        all_of_them.append(name)
        if wilcoxon(first, second) < 0.05:
            (better if np.nanmean(first) > np.nanmean(second) else worse).append(name)
    return better, worse, all_of_them


def verdict2(summary):
    """The claim by AUC and by accuracy: under the reading, to the letter, and at a true guarantee."""
    texts, holds = [], []
    for label, mode, form in (
        ("under the reading of this chapter", "published", ""),
        ("Algorithm 1 to the letter", "published", PRINTED),
        ("at a true guarantee", "proven", ""),
    ):
        found = {metric: _wins(summary, mode, metric, form) for metric in ("AUC", "accuracy")}
        tested = len(found["AUC"][2])
        if not tested:
            continue
        counts = [f"by {m} {len(up)} and {len(down)}" for m, (up, down, _) in found.items()]
        texts.append(f"{label}, of {tested}, {', '.join(counts)}")
        if label.startswith("under"):
            holds = [len(up) > tested / 2 and not down for up, down, _ in found.values()]
    word = "Holds" if holds and all(holds) else "Holds in part"
    word += " under a reading chosen after the fact"
    tested = _wins(summary, "proven")[2]
    ours = [
        (
            summary.mean("AUC", "proven", dataset=d, method=GRADIENT),
            summary.mean("AUC", "proven", dataset=d, method=SPARSIFIER),
        )
        for d in tested
    ]
    ahead = sum(a > b for a, b in ours)
    return (
        f"{word}. Data sets where Sparsifier is significantly better, and worse (Wilcoxon, 5 %): {'; '.join(texts)}. "
        f"Noisy gradients with as few weights have a higher AUC than Sparsifier on {ahead} of {len(ours)}."
    )


def tests2(summary):
    lines = []
    for mode in ("published", "proven"):
        for metric in ("accuracy", "AUC"):
            better, worse, tested = _wins(summary, mode, metric)
            lines.append(
                f"Wilcoxon signed-rank, {metric}, {mode}: Sparsifier better on {', '.join(better) or 'none'}; "
                f"private LASSO better on {', '.join(worse) or 'none'}; of {len(tested)}."
            )
    good = compared = 0
    for cell in summary.cells:
        if not cell["method"].endswith(PRINTED):
            continue
        printed_cell = cell | {"method": cell["method"].removesuffix(PRINTED)}
        for metric in ("accuracy", "AUC"):
            printed = summary.published(metric, **printed_cell)
            ours = summary.average(metric, "published", **cell)
            if printed is not None and ours is not None and printed.can_judge(ours):
                compared += 1
                good += printed.matches(ours)
    lines.append(
        f"With Algorithm 1 as printed {good} of {compared} published accuracies and AUCs match."
    )
    return lines


EXPERIMENTS = (
    Experiment(
        name="004-table1",
        title="non-zeros of private LASSO and Sparsifier",
        configurations=configurations1,
        trial=trial1,
        trials=(2, TRIALS),
        kind=kind1,
        tests=ratio_tests,
        metrics={"non-zeros": ".2f"},
        claim="Private LASSO is dense; Sparsifier restores sparsity near that of the non-private solution.",
        verdict=verdict1,
        instead="n_nonzero=k with a public k, or n_nonzero='mass': both are free.",
        protocol=(
            "epsilon 1 (Sparsifier: 0.05 + 0.95), radius 10, 1000 iterations, 50 trials; non-private 50,000, three "
            "splits (one of w8a, kddcup99 and covtype). "
            f"{HOW} {NOTE}"
        ),
        needs=FILES,
        reasons={
            "non-private": "one number of theirs, of a split that is not known; ours vary over splits, in pilots also: "
            "splice 52 to 59 for 52, colon-cancer 47 to 69 for 58, mushrooms 16 or 17 for 16, w8a 20 or 21 for 20, a9a "
            "20 to 22 for 19, synthetic 7 or 8 for 7; kddcup99 3 for 4 on another draw, covtype 18 for 17; "
            "phishing always 2",
            "covtype, private LASSO": "the paper contradicts itself: 30.38 non-zeros, but a ratio of 3.18 to 17, "
            "which is 54; ours are 53.98 (the printed step gives 27)",
            "kddcup99, private LASSO": "another draw of 60,000 rows: both use nearly all columns that are not empty, "
            "in ours 110 of 122. A column without entries stays zero only if the sign is exact",
            "mushrooms, private LASSO": "112.00 in all our trials for an average of 111.98",
            "w8a, private LASSO": "285.64 beside a ratio of 14.44 to 20, which is 288.8; a uniform index gives 289.4",
            "Sparsifier": "the mean of a coin flip between sqrt(p) and 2 sqrt(p), whose rounding is not printed; "
            "the ratios beside it belong to another run, that of Table 2 (gisette 102.50 and 1.43 x 77 = 110)",
        },
    ),
    Experiment(
        name="004-table2",
        title="accuracy and AUC at equal sparsity",
        configurations=configurations2,
        trial=trial2,
        trials=(2, TRIALS),
        kind=kind2,
        metrics={"non-zeros": ".1f", "accuracy": ".2f", "AUC": ".2f"},
        claim="At the same number of weights Sparsifier beats private LASSO stopped early, never the reverse.",
        verdict=verdict2,
        instead="DPGradientClassifier with n_nonzero.",
        protocol=(
            "Private LASSO runs as many iterations as give about the published number of weights, so its non-zeros "
            "match by construction. "
            "The text says that fewer iterations add less noise, the numbers that they did not: an author could "
            "answer which "
            "of the two was run; the code would decide. "
            "Where the 12 test rows of colon-cancer have one class, AUC is undefined and left out. "
            f"{HOW} {NOTE}"
        ),
        needs=FILES,
        tests=tests2,
        reasons={
            "splice, Sparsifier": "65.5 and 83.1 for 71.34 and 86.84 on random splits; with the source's own test "
            "file and a uniform index the AUC agrees, the accuracy does not. Features divided give 57 and 70, the "
            "printed step 63 and 75, both 53 and 58 (004-readings). Tried in pilots: |gradient| + noise (66, 84), "
            "noise from 0.03 to 3 times (64 to 71, 80 to 85)",
            "phishing, Sparsifier": "AUC 80.2 for 77.23, a little more than two standard errors; "
            "the other three numbers agree",
            "colon-cancer": "accuracies 73 and 73 for 83.67 and 83.33 on random splits of 12 test rows; one split "
            "shared by all runs explains all four numbers (004-readings), as one of many that could. The printed step "
            "gives an AUC of 57 and 55 for 85.00 and 86.61",
            "w8a": "AUC not explained: 63 and 62 for 75.64 and 76.36. Tried in pilots: noise from 0.03 to 3 "
            "times, uniform "
            "index, both steps (58 to 68); the non-private solution itself has 66.6. Accuracies are those of the "
            "larger class, 97.0 to 97.2 by the split",
            "a9a": "private LASSO's 71.57 is below the share of the larger class (75.9), ours are nearer to it (74.7); "
            "Sparsifier's AUC is 74.4 for 67.64. One split for all runs and a uniform index explain all four "
            "(004-readings)",
            "kddcup99": "another draw of the rows; accuracies near 54 with an AUC near 90 mean margins of one sign, "
            "ours have 77 with 97 and 74 with 90 (printed step 99 with 99.6). Not explained",
            "covtype": "62 with 71 for 57.35 with 64.36, and 60 with 67 for "
            "54.90 with "
            "60.15. Not explained; a uniform index gave private LASSO 53 with 52 in a pilot",
            "synthetic, Sparsifier": "AUC 94.2 for 93.28 on another table of the same law; features divided as the "
            "text says give 76 with this step and 97 with the printed one (004-readings)",
        },
    ),
)
