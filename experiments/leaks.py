"""What the published flaws let an attacker do, and the same attack on the proven versions.

    python experiments/leaks.py            all six leaks (a few minutes)
    python experiments/leaks.py --quick    small tables, for a look (seconds)

Writes results/leaks.md and results/leaks.png. Every number comes from the estimators and functions of
the library: `calibration="published"` is the paper, the default is ours. Bounds on epsilon hold with
99.9 % confidence. Noise is seeded, so that the page can be reproduced.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpsparse import Domain, PrivateCount
from dpsparse.audit.blackbox import Attack, attack, one_run_epsilon, publish
from dpsparse.audit.law import noisy_max_log_probability
from dpsparse.audit.neighbours import Pair, replace_row
from dpsparse.audit.replay import Subject
from dpsparse.estimators import DPLassoClassifier, DPTransferClassifier
from dpsparse.published.khanna_lu_raff_2023_screening import (
    adp_scale,
    published_sensitivity,
    screen,
)
from dpsparse.random import make_generator
from dpsparse.solvers.screening_rules import raj_scores, raj_sensitivity

RESULTS = Path(__file__).parent / "results"
DELTA = 1e-6


@dataclass
class Leak:
    """One row of the table and one panel of the figure."""

    name: str
    paper: str
    attack: str
    claimed: float
    published: str
    refuted: float
    proven: str
    refuted_proven: float  # by the same attack on the proven version
    panel: dict[str, Any] = field(default_factory=dict)


def labels_from_signs(quick: bool) -> Leak:
    """002 draws the feature and reads the sign: a row with a feature of its own shows its label."""
    n, shared = (200, 40) if quick else (3000, 500)
    rng = make_generator(1)
    X = np.zeros((n, n + shared))
    X[np.arange(n), np.arange(n)] = 1.0
    X[:, n:] = rng.random((n, shared)) < 0.02
    y = (rng.random(n) < 0.5).astype(int)
    domain = Domain(classes=(0, 1), n_samples=n)
    epsilons = (0.1, 1.0)
    shares: dict[str, list[float]] = {}
    found: dict[str, tuple[int, int]] = {}
    for mode in ("published", "proven"):
        for epsilon in epsilons:
            model = DPLassoClassifier(
                domain, epsilon=epsilon, n_iter=4 * n, radius=10.0, calibration=mode,
                adjacency="replace-one",
            )  # fmt: skip
            weights = Subject(model, n + shared).run(X, y, make_generator(2))["coef"][0][:n]
            seen = weights != 0
            right = int(np.sum((weights[seen] > 0) == (y[seen] == 1)))
            shares.setdefault(mode, []).append(right / max(int(seen.sum()), 1))
            found[f"{mode} {epsilon}"] = right, int(seen.sum())
    p, q = found["published 0.1"], found["proven 0.1"]
    # labels are random bits, and flipping one is a replaced row: the theorem of one run applies
    refuted, kept = (one_run_epsilon(n, seen, right, DELTA) for right, seen in (p, q))
    return Leak(
        "labels of single rows", "002, Alg. 1 and 2", "the sign of the weight of a feature one row owns",
        0.1, f"{p[0]} of {p[1]} labels right", refuted, f"{q[0]} of {q[1]} labels right",
        kept, {"epsilons": epsilons, "shares": shares},
    )  # fmt: skip


def switching_support(quick: bool) -> Leak:
    """003 releases answers of a teacher whose support flips with one row."""
    m, runs = (100, 60) if quick else (500, 300)
    domain = Domain(classes=(0, 1), n_samples=2 * m + 1)
    unit = np.eye(2)
    X = np.repeat(unit, (m + 1, m), axis=0)
    pair = replace_row(X, np.ones(2 * m + 1, int), 0, unit[1], 1, "m+1 against m")
    models: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for mode in ("published", "proven"):
        model = DPTransferClassifier(
            domain, n_nonzero=1, public_X="uniform", n_public=50, ridge=0.1 if mode == "published" else None,
            adjacency="replace-one", calibration=mode,
        )  # fmt: skip
        models[mode] = _two_tables(Subject(model, 2), pair, runs)
    result = {mode: attack(*both, DELTA) for mode, both in models.items()}
    return Leak(
        "support of the teacher", "003, Theorem 4.3", "which of two features the model uses",
        1.0, _counts(result["published"]), result["published"].epsilon, _counts(result["proven"]),
        result["proven"].epsilon, {mode: (a[:, :2], b[:, :2]) for mode, (a, b) in models.items()},
    )  # fmt: skip


def screening_scores(quick: bool) -> Leak:
    """000 and 001 take O(1/n) for a score that one row moves by O(1/sqrt n)."""
    radius, sizes = 1.0, np.array([10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000])

    def score(n: int, flipped: bool) -> float:
        residual = 2.0 * radius if flipped else 0.0  # x = 1, w = radius, y = radius or -radius
        scores = raj_scores(
            np.array([residual]), np.array([radius]), radius * math.sqrt(n), np.array([math.sqrt(n)]),
            radius=radius, smoothness=1.0, strong_convexity=1.0, rescaled=False,
        )  # fmt: skip
        return float(scores[0]) / n

    moved = np.array([score(n, True) - score(n, False) for n in sizes])
    claimed = np.array([published_sensitivity("squared", radius, int(n)) for n in sizes])
    true = np.array(
        [
            raj_sensitivity(
                radius=radius, feature_bound=1.0, slope_bound=2.0, smoothness=1.0, strong_convexity=1.0,
                n_samples=int(n), adjacency="replace-one", rescaled=False,
            )
            for n in sizes
        ]
    )  # fmt: skip
    n, runs = int(sizes[-1]), 400 if quick else 4000
    drops = {}
    for name, sensitivity in (("published", claimed[-1]), ("proven", true[-1])):
        scale = adp_scale(sensitivity, 1.0, DELTA, 1)
        rng = make_generator(3)
        drops[name] = [
            np.array([[len(screen(np.array([score(n, flip)]), "adp", scale, rng))] for _ in range(runs)], float)
            for flip in (False, True)
        ]  # fmt: skip
    result = {mode: attack(*both, DELTA) for mode, both in drops.items()}
    at = int(np.flatnonzero(sizes == 3000)[0])
    return Leak(
        "screening score", "000 and 001, Theorem 1", f"whether the feature was dropped (n = {n})",
        1.0, f"{_counts(result['published'])}; moved {moved[at] / claimed[at]:.1f} bounds at n = 3000",
        result["published"].epsilon, _counts(result["proven"]), result["proven"].epsilon,
        {"sizes": sizes, "moved": moved / claimed, "true": true / claimed},
    )  # fmt: skip


def discarded_noise(quick: bool) -> Leak:
    """Appendix B of 004 draws noise for the count and then overwrites it by the exact count."""
    runs, low, high = 400 if quick else 4000, 5, 25
    out = {}
    for mode in ("published", "proven"):
        rule = PrivateCount(low, high, epsilon=0.05, published=mode == "published")
        rng = make_generator(4)
        out[mode] = [
            np.array([[rule.release(count, 100, rng)] for _ in range(runs)], float)
            for count in (12, 13)
        ]
    result = {mode: attack(*both, 0.0) for mode, both in out.items()}
    return Leak(
        "number of weights", "004, Appendix B, line 58", "whether the exact count was 12 or 13",
        0.05, _counts(result["published"]), result["published"].epsilon, _counts(result["proven"]),
        result["proven"].epsilon, out,
    )  # fmt: skip


def noisy_max_constant(quick: bool) -> Leak:
    """004: Lap(D/eps') noisy max costs 2 eps' a step, not eps'; Gumbel noise of that price is smaller."""
    step = 0.1
    gaps = np.linspace(0.0, 60.0, 13 if quick else 31)
    laplace, gumbel = [], []
    for gap in gaps:
        here, there = np.array([gap, -gap]), np.array([gap - step, step - gap])  # +-G, G moves by D
        laplace.append(noisy_max_log_probability(there, 1) - noisy_max_log_probability(here, 1))
        gumbel.append(_softmax_log(there, 1) - _softmax_log(here, 1))
    top = max(laplace) / step
    return Leak(
        "noisy max", "004, Alg. 1", "log-ratio of one selection in units of eps' (exact)",
        1.0, f"{top:.3f} eps' where eps' is charged", top,
        f"{max(gumbel) / step:.3f} of 2 charged", max(gumbel) / step / 2.0, {
            "gaps": gaps, "laplace": np.array(laplace) / step, "gumbel": np.array(gumbel) / step,
        },
    )  # fmt: skip


def undercharged_classes(quick: bool) -> Leak:
    """004, Alg. 3: p selections a step, paid as K."""
    p, runs = (30_000, 100) if quick else (300_000, 200)
    domain = Domain(classes=(0, 1, 2), n_samples=2)
    X, y = np.zeros((2, p)), np.array([0, 1])
    X2, y2 = np.vstack([X, np.ones(p)]), np.append(y, 2)
    push = np.array([-1.0, -1.0, 2.0]) / 3.0  # of a row of class 2 at w = 0
    votes: dict[str, list[np.ndarray]] = {}
    for mode in ("published-laplace", "proven"):
        model = DPLassoClassifier(
            domain, calibration=mode, n_iter=1, radius=1.0, fit_intercept=False
        )
        subject = Subject(model, p)
        for seed, table in ((5, (X, y)), (6, (X2, y2))):
            rng = make_generator(seed)
            sums = [push @ subject.run(*table, rng)["coef"].sum(axis=1) for _ in range(runs)]
            votes.setdefault(mode, []).append(np.array(sums)[:, None])
    result = {mode: attack(*both, DELTA) for mode, both in votes.items()}
    return Leak(
        "multinomial selections", "004, Alg. 3", f"weights of one class against the others, {p} features, one step",
        1.0, _counts(result["published-laplace"]), result["published-laplace"].epsilon,
        _counts(result["proven"]), result["proven"].epsilon, votes,
    )  # fmt: skip


LEAKS = (
    labels_from_signs,
    switching_support,
    screening_scores,
    discarded_noise,
    noisy_max_constant,
    undercharged_classes,
)


def _two_tables(subject: Subject, pair: Pair, runs: int) -> tuple[np.ndarray, np.ndarray]:
    return publish(subject, pair.X, pair.y, runs, 7), publish(subject, pair.X2, pair.y2, runs, 8)


def _softmax_log(keys: np.ndarray, pick: int) -> float:
    return float(keys[pick] - np.logaddexp.reduce(keys))


def _counts(result: Attack) -> str:
    return (
        f"fired {result.hits}/{result.n_hits} against {result.false_alarms}/{result.n_false}, "
        f"epsilon > {result.epsilon:.2f}"
    )


def table(leaks: list[Leak]) -> str:
    """The page: one row a leak."""
    lines = [
        "# What the published flaws leak",
        "",
        "Written by `experiments/leaks.py`. Largest epsilon refuted at 99.9 % confidence (exact for the noisy",
        "max, where it is the cost of one step in units of what is charged). The last column is the same attack",
        "on the proven version at the same claim.",
        "",
        "| leak | paper | what the attacker looks at | claimed epsilon | published | refuted epsilon | proven |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {k.name} | {k.paper} | {k.attack} | {k.claimed:g} | {k.published} | {k.refuted:.2f} | {k.proven} |"
        for k in leaks
    ]
    return "\n".join([*lines, "", "![six leaks](leaks.png)", ""])


def draw(leaks: list[Leak], path: Path) -> None:
    """Six panels, one a leak."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(14, 8), layout="constrained")
    red, blue, grey = "#b03030", "#3060b0", "#888888"
    sign, support, screen, count, noisy, classes = (leak.panel for leak in leaks)
    a = axes[0, 0]
    for offset, mode, colour in ((-0.2, "published", red), (0.2, "proven", blue)):
        bars = a.bar(np.arange(2) + offset, sign["shares"][mode], 0.4, color=colour, label=mode)
        a.bar_label(bars, fmt="%.3f")
    a.axhline(0.5, color=grey, lw=1)
    a.set_xticks([0, 1], [f"epsilon {e:g}" for e in sign["epsilons"]])
    a.set(title="002: labels read off the signs", ylabel="share of labels right", ylim=(0, 1.15))
    a.legend(loc="lower center")
    a = axes[0, 1]
    for mode, marks in (("proven", "x"), ("published", "o")):
        for models, colour, name in zip(support[mode], (red, blue), ("D", "D'"), strict=True):
            a.plot(*models.T, marks, ms=4, color=colour, alpha=0.5, label=f"{mode}, {name}")
    a.set(
        title="003: one row switches the support",
        xlabel="weight of feature 1",
        ylabel="weight of feature 2",
    )
    a.legend()
    a = axes[0, 2]
    a.loglog(screen["sizes"], screen["moved"], "o-", color=red, label="moved by one row")
    a.loglog(screen["sizes"], screen["true"], "--", color=blue, label="proven bound")
    a.axhline(1.0, color=grey, label="published bound")
    a.set(
        title="000, 001: screening score", xlabel="rows n", ylabel="in units of the published bound"
    )
    a.legend()
    a = axes[1, 0]
    bins = np.arange(4.5, 26.5)
    for mode, style in (("published", "stepfilled"), ("proven", "step")):
        for models, colour, name in zip(count[mode], (red, blue), (12, 13), strict=True):
            a.hist(models.ravel(), bins, density=True, histtype=style, color=colour, alpha=0.6,
                   label=f"{mode}, true count {name}")  # fmt: skip
    a.set(title="004: the count that discards its noise", xlabel="released count", ylabel="share")
    a.legend()
    a = axes[1, 1]
    a.plot(noisy["gaps"], noisy["laplace"], color=red, label="Laplace noisy max (published)")
    a.plot(noisy["gaps"], noisy["gumbel"], color=blue, label="Gumbel, eta = 2 eps' charged")
    a.axhline(1.0, color=grey, label="what 004 charges")
    a.axhline(2.0, color=grey, ls=":", label="what is charged here")
    a.set(
        title="004: cost of one selection",
        xlabel="kappa |G|",
        ylabel="log-ratio / eps'",
        ylim=(0, 2.2),
    )
    a.legend(loc="lower right")
    a = axes[1, 2]
    both = classes["published-laplace"]
    bins = np.linspace(min(v.min() for v in both), max(v.max() for v in both), 40)
    for models, colour, name in zip(both, (red, blue), ("D", "D' (one row more)"), strict=True):
        a.hist(models.ravel(), bins, color=colour, alpha=0.6, label=name)
    a.set(
        title="004, Alg. 3: p selections paid as K",
        xlabel="weights of one class against the others",
        ylabel="runs",
    )
    a.margins(y=0.3)
    a.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    leaks = [leak(options.quick) for leak in LEAKS]
    (options.output / "leaks.md").write_text(table(leaks))
    draw(leaks, options.output / "leaks.png")
    print(table(leaks))


if __name__ == "__main__":
    main()
