"""Coverage of private intervals and false discovery rates (docs/inference.md).

    nice -n 19 python experiments/inference.py [runs]

Seeded, for repeatability. Rows are standard normal (intervals) or indicators of share 5 % (tests); the target of
an interval is the minimiser on 400,000 rows with exact probabilities.
"""

import sys
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from dpsparse import Domain, DPFeatureTest, dp_inference

DOMAIN = Domain(classes=[0, 1], feature_bound=None)
R = 3.0
# rows, epsilon, columns, whether the logistic model is true
INTERVALS = [
    (5000, 1.0, 5, True), (20_000, 1.0, 5, True), (20_000, 0.3, 5, True), (20_000, 1.0, 5, False),
    (20_000, 1.0, 20, True),
]  # fmt: skip
# rows, features, epsilon
TESTS = [(20_000, 500, 1.0), (20_000, 500, 0.3), (5000, 2000, 1.0)]


def margins(X, true):
    bend = 0.0 if true else 0.3 * (X[:, 0] ** 2 - 1.0)
    return X @ np.linspace(-1.0, 1.0, X.shape[1]) + bend - 0.5


def target(s, true):
    X = np.random.default_rng(99).standard_normal((400_000, s))
    f = np.column_stack([X, np.ones(len(X))])
    f *= np.minimum(1.0, R / np.linalg.norm(f, axis=1))[:, None]
    theta, chances = np.zeros(s + 1), expit(margins(X, true))
    for _ in range(30):
        p = expit(f @ theta)
        theta -= np.linalg.solve((f.T * (p * (1 - p))) @ f, f.T @ (p - chances))
    return theta


def intervals(runs):
    say(
        "| rows, epsilon, weights | one step | two steps | four from zero | half width (two steps) |"
    )
    say("|---|---|---|---|---|")
    for n, eps, s, true in INTERVALS:
        truth, hits, width = target(s, true), np.zeros(3), 0.0
        for k in range(runs):
            rng = np.random.default_rng(1000 + k)
            X = rng.standard_normal((n, s))
            y = (rng.random(n) < expit(margins(X, true))).astype(int)
            start = truth + rng.normal(0.0, 0.15, s + 1)
            for i, options in enumerate(({"start": start, "n_steps": 1}, {"start": start}, {})):
                found = dp_inference(
                    X, y, np.arange(s), DOMAIN, epsilon=eps, row_clip=R, random_state=k, **options
                )
                hits[i] += np.mean((found.low <= truth) & (truth <= found.high)) / runs
                width += float(np.mean(found.high - found.low)) / 2.0 / runs if i == 1 else 0.0
        shown = " | ".join(f"{100 * h:.1f} %" for h in hits)
        say(
            f"| {n:,}, {eps:g}, {s} + 1{'' if true else ', misspecified'} | {shown} | {width:.3f} |"
        )


def tests(runs):
    say("| rows, features, epsilon | BH: false | BH: power | BY: false | BY: power |")
    say("|---|---|---|---|---|")
    for n, d, eps in TESTS:
        found = np.zeros((2, 2))
        for k in range(runs):
            rng = np.random.default_rng(k)
            X = sp.csr_array((rng.random((n, d), np.float32) < 0.05).astype(np.float32))
            beta = rng.choice([-1.0, 1.0], 20) * rng.uniform(0.5, 2.0, 20)
            y = (rng.random(n) < expit(X[:, :20] @ beta - 0.3)).astype(int)
            for i, control in enumerate(("bh", "by")):
                chosen = (
                    DPFeatureTest(DOMAIN, control=control, epsilon=eps, random_state=k)
                    .fit(X, y)
                    .support_
                )
                found[i] += (
                    np.array([np.sum(chosen >= 20) / max(len(chosen), 1), np.sum(chosen < 20) / 20])
                    / runs
                )
        say(
            f"| {n:,}, {d:,}, {eps:g} | "
            + " | ".join(f"{100 * v:.1f} %" for v in found.ravel())
            + " |"
        )


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    tests(max(1, runs // 10))
    intervals(runs)
