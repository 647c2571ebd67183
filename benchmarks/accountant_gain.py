"""What the better accountant is worth in accuracy: python benchmarks/accountant_gain.py

Every fit is made twice with one seed: with the noise that the Renyi curve would need for (epsilon, 1e-6), and with
the noise that the smallest proven bound needs. The first is the plan of the smaller epsilon' whose Renyi price is
epsilon. AUC on held-out rows, in points of 100; the difference is paired, with its standard error.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from dpsparse import Domain, DPLassoClassifier, DPTwoStageClassifier
from dpsparse.privacy import Sequence
from dpsparse.privacy.conversion import renyi_epsilon

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from papers_data import load

DELTA = 1e-6


def split(name):
    X, y = load(name, scaled=True)
    order = np.random.default_rng(20).permutation(len(y))
    cut = round(0.8 * len(y))
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def make(method, width, n_samples, epsilon, seed):
    domain = Domain(feature_bound=1.0, classes=(0, 1), n_samples=n_samples)
    common = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    if method == "two-stage":
        return DPTwoStageClassifier(domain, n_nonzero=min(20, width), **common)
    return DPLassoClassifier(domain, **common)


def renyi_twin(method, width, n_samples, epsilon):
    """The epsilon' whose plan costs `epsilon` by Renyi curve."""
    low, high = 0.7 * epsilon, epsilon
    for _ in range(14):
        middle = (low + high) / 2
        plan = make(method, width, n_samples, middle, None).plan(width)
        spent = renyi_epsilon(Sequence((plan.event,)), DELTA)
        low, high = (middle, high) if spent <= epsilon else (low, middle)
    return low


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=12)
    seeds = parser.parse_args().seeds
    warnings.filterwarnings("ignore", message=".*random_state.*")
    print("data       method      epsilon  epsilon'   AUC Renyi   AUC now   gain (error)")
    for name in ("a9a", "phishing", "mushrooms"):
        X, y, X_test, y_test = split(name)
        for method in ("lasso", "two-stage"):
            for epsilon in (0.3, 1.0):
                twin = renyi_twin(method, X.shape[1], len(y), epsilon)
                scores = np.array(
                    [
                        [
                            100.0
                            * roc_auc_score(
                                y_test,
                                make(method, X.shape[1], len(y), e, seed)
                                .fit(X, y)
                                .decision_function(X_test),
                            )
                            for e in (twin, epsilon)
                        ]
                        for seed in range(seeds)
                    ]
                )
                gain = scores[:, 1] - scores[:, 0]
                old, new = scores.mean(axis=0)
                error = gain.std(ddof=1) / np.sqrt(seeds)
                print(
                    f"{name:10s} {method:10s} {epsilon:8g} {twin:9.4f} {old:11.2f} {new:9.2f}"
                    f" {gain.mean():+8.2f} ({error:.2f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
