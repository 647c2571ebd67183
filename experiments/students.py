"""Students of DPTransfer* on public rows of real tables: least squares, as they come, and without a student.

    python experiments/students.py [--training] [--seeds 5] [--sets a,b]

Half of the rows to learn from are private, the other half (2,000 rows at most) public, without their labels; or public
rows are drawn ("uniform"). Splits, scores and bounds are those of defaults_grid.py; `--training` splits training rows
again and reads no test row: constants of solvers/student.py were chosen there. Ten weights where no number is
declared. "text" is the stand-in for E2006-tfidf with a quarter of its rows and columns and 500 weights.
"""

from __future__ import annotations

import argparse
import warnings
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from defaults_grid import BY_NAME, Set, data, estimator, score, split
from dpsparse.random import make_generator
from dpsparse.solvers import two_stage
from dpsparse.solvers.student import learn
from papers_data import make_wide_text

EPSILONS = (0.5, 1.0, 3.0, 10.0)
SETS = (
    "abalone", "housing", "bodyfat", "communities", "papers-800x1000", "papers-3000x600",
    "phishing", "mushrooms", "text",
)  # fmt: skip
TEXT = Set("text", (-4.0, 4.0), 500, 1.0)
MOST_PUBLIC = 2000


def least_squares(public_rows, answers, sd, constant, prior):
    """The student before: every direction of the public rows counts."""
    return np.linalg.lstsq(public_rows, answers, rcond=None)[0]


@lru_cache(maxsize=1)
def text():
    return make_wide_text(0, "e2006", fraction=0.25, task="regression")


def parts(name, seed, training):
    """Rows to learn from and rows to score."""
    if name != "text":
        return split(name, seed, training)
    X, y = text()
    order = make_generator(2000 + seed).permutation(len(y))
    cut = round(0.8 * len(y))
    learned, scored = order[:cut], order[cut:]
    if training:
        cut = round(0.8 * len(learned))
        learned, scored = learned[:cut], learned[cut:]
    return X[learned], y[learned], X[scored], y[scored]


def scores(name, rows, epsilon, seed, training):
    """R2 or AUC of least squares, of the student as it comes, and of the teacher released directly."""
    one = TEXT if name == "text" else BY_NAME[name]
    X, y, X_scored, y_scored = parts(name, seed, training)
    X, half = sp.csr_array(X), X.shape[0] // 2
    public = "uniform" if rows == "uniform" else X[half:][:MOST_PUBLIC]
    classes = None if one.target_range else np.unique(data(name)[1]).tolist()
    found = []
    for asked, student in (
        ({"public_X": public}, least_squares),
        ({"public_X": public}, learn),
        ({}, learn),
    ):
        two_stage.learn = student
        model = estimator(one, "Transfer", epsilon, seed, half, classes, **asked)
        found.append(score(one, model.fit(X[:half], y[:half]), X_scored, y_scored))
    return found


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--training", action="store_true")
    asked.add_argument("--seeds", type=int, default=5)
    asked.add_argument("--sets", default=",".join(SETS))
    options = asked.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| set | public rows | epsilon | least squares | student | direct release |\n"
        + "|---" * 6
        + "|"
    )
    for name in options.sets.split(","):
        for rows in ("half",) if name == "text" else ("half", "uniform"):
            for epsilon in EPSILONS:
                found = [
                    scores(name, rows, epsilon, s, options.training) for s in range(options.seeds)
                ]
                cells = " | ".join(
                    f"{m:.3f} ± {e:.3f}"
                    for m, e in zip(
                        np.mean(found, 0), np.std(found, 0) / len(found) ** 0.5, strict=True
                    )
                )
                print(f"| {name} | {rows} | {epsilon:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
