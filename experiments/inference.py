"""Coverage of private intervals and false discovery rates (docs/inference.md).

    nice -n 19 python experiments/inference.py [runs]     1,000 by default; a tenth of it for the tests

Seeded, for repeatability; results go to a file as they are made, and a second call goes on where the first one
ended. Rows are standard normal (intervals) or indicators of share 5 % (tests); the target of
an interval is the minimiser on 400,000 rows with exact probabilities.
"""

import json
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from dpsparse import Domain, DPFeatureTest, dp_inference
from dpsparse.inference.feature_test import discoveries

DOMAIN = Domain(classes=[0, 1])
R = 3.0
RESULTS = Path(__file__).parent / "results" / "quick" / "inference.json"
FRESH = 26_000  # seeds that no earlier table of the docs has used
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


def run_interval(line, truth, k):
    """For every way of WAYS the share of weights inside their intervals, and the mean half width."""
    n, eps, s, true = INTERVALS[line]
    rng = np.random.default_rng((FRESH, line, k))
    X = rng.standard_normal((n, s))
    y = (rng.random(n) < expit(margins(X, true))).astype(int)
    start = truth + rng.normal(0.0, 0.15, s + 1)
    for options in ({"start": start, "n_steps": 1}, {"start": start}, {}):
        found = dp_inference(
            X, y, np.arange(s), DOMAIN, epsilon=eps, row_clip=R, random_state=FRESH + k, **options
        )
        inside = np.mean((found.low <= truth) & (truth <= found.high))
        yield float(inside), float(np.mean(found.high - found.low)) / 2.0


def intervals(runs):
    say(
        "| rows, epsilon, weights | one step | two steps | four from zero | half width (two steps) |"
    )
    say("|---|---|---|---|---|")
    for line, (n, eps, s, true) in enumerate(INTERVALS):
        truth = target(s, true)
        found = np.array(kept(f"intervals {line}", runs, partial(run_interval, line, truth)))
        shown = " | ".join(f"{100 * h:.1f} %" for h in found[:, :, 0].mean(axis=0))
        name = f"{n:,}, {eps:g}, {s} + 1{'' if true else ', misspecified'}"
        say(f"| {name} | {shown} | {found[:, 1, 1].mean():.3f} |")


def run_test(line, k):
    """For every control the share of false discoveries and of true features found."""
    n, d, eps = TESTS[line]
    rng = np.random.default_rng((FRESH, line, k))
    X = sp.csr_array((rng.random((n, d), np.float32) < 0.05).astype(np.float32))
    beta = rng.choice([-1.0, 1.0], 20) * rng.uniform(0.5, 2.0, 20)
    y = (rng.random(n) < expit(X[:, :20] @ beta - 0.3)).astype(int)
    pvalues = DPFeatureTest(DOMAIN, epsilon=eps, random_state=FRESH + k).fit(X, y).pvalues_
    for control in ("bh", "by"):  # both are post-processing of the same p-values
        chosen = discoveries(pvalues, 0.1, control)
        yield float(np.sum(chosen >= 20) / max(len(chosen), 1)), float(np.sum(chosen < 20) / 20)


def tests(runs):
    say("| rows, features, epsilon | BH: false | BH: power | BY: false | BY: power |")
    say("|---|---|---|---|---|")
    for line, (n, d, eps) in enumerate(TESTS):
        found = np.array(kept(f"tests {line}", runs, partial(run_test, line))).mean(axis=0)
        shown = " | ".join(f"{100 * v:.1f} %" for v in found.ravel())
        say(f"| {n:,}, {d:,}, {eps:g} | {shown} |")


def kept(name, runs, run):
    """The first `runs` results of `name`: those of the file, and new ones, which go there fifty at a time."""
    everything = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found = everything.setdefault(name, [])
    RESULTS.parent.mkdir(exist_ok=True)
    while len(found) < runs:
        found += [list(run(k)) for k in range(len(found), min(len(found) + 50, runs))]
        RESULTS.write_text(json.dumps(everything) + "\n")
    return found[:runs]


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    intervals(runs)
    tests(max(1, runs // 10))
