"""Regression guard: ratios of this run against the committed table; fails where one fell by more than 30 %.

    make bench-check                          compare (about two minutes)
    python benchmarks/check.py --write        commit the ratios of this machine

Every ratio is ours over something else measured in the same run on the same data, by processor time, so that a
slower machine changes little. A case that fails is measured once more before it counts: shared machines have bad
moments.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from frank_wolfe import load, measure, unbalanced
from gradient import against_liblinear, iteration, one_pass

TABLE = Path(__file__).with_name("ratios.json")
ALLOWED = 0.7


def lasso(table, n_iter, intercept):
    reference, fit = measure(*table, n_iter, intercept, quick=False)
    return reference * n_iter / fit


def gradient(table):
    liblinear, fit = against_liblinear(*table)
    return liblinear / fit


def passes(table):
    """The inverse of the passes an iteration takes: larger is better, as everywhere here."""
    return one_pass(table[0].nnz) / iteration(*table)


def plans(_):
    """Plans that are not in a cache, against a matrix product."""
    from dpsparse import Domain, DPLassoClassifier, DPTwoStageClassifier

    square = np.ones((1000, 1000))
    start = time.process_time()
    for _ in range(3):
        square @ square
    product = (time.process_time() - start) / 3
    start = time.process_time()
    for k in range(5):
        epsilon = 1.0 + 0.001 * (k + np.random.default_rng().random())
        DPLassoClassifier(Domain(classes=[0, 1]), epsilon=epsilon, n_iter=2000).plan(50)
        DPTwoStageClassifier(
            Domain(classes=[0, 1], n_samples=5000, row_norm=1.0), epsilon=epsilon, n_nonzero=5
        ).plan(50)
    return product / ((time.process_time() - start) / 5)


def cases():
    """name -> a function that measures its ratio."""
    rcv1, narrow, rng = load("rcv1"), load("narrow"), np.random.default_rng(0)
    rare = unbalanced(*rcv1, 0.1)
    dense = rng.uniform(-1, 1, (3000, 500))
    full = sp.csr_array(dense), (dense[:, 0] > 0) * 1
    return {
        "lasso, rcv1 shape, T = 4000, no intercept": lambda: lasso(rcv1, 4000, False),
        "lasso, rcv1 shape, T = 4000, 10 % positives": lambda: lasso(rare, 4000, True),
        "lasso, rcv1 shape, T = 100": lambda: lasso(rcv1, 100, True),
        "lasso, narrow, T = 500": lambda: lasso(narrow, 500, False),
        "lasso, narrow, T = 4000": lambda: lasso(narrow, 4000, False),
        "lasso, fully dense, T = 300": lambda: lasso(full, 300, True),
        "gradient against liblinear, rcv1 shape": lambda: gradient(rcv1),
        "gradient against liblinear, narrow": lambda: gradient(narrow),
        "pass over an iteration, rcv1 shape": lambda: passes(rcv1),
        "pass over an iteration, narrow": lambda: passes(narrow),
        "matrix product over plans": lambda: plans(None),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the table instead")
    args = parser.parse_args()
    known = {} if args.write else json.loads(TABLE.read_text())
    found, worse = {}, []
    for name, ratio in cases().items():
        ratio()  # compiles
        value = ratio()
        if not args.write and value < ALLOWED * known[name]:
            value = max(value, ratio())
        found[name] = float(f"{value:.3g}")
        change = f"{value / known[name] - 1:+.0%} of {known[name]:g}" if name in known else ""
        print(f"{name:<46} {value:10.3g}  {change}", flush=True)
        if name in known and value < ALLOWED * known[name]:
            worse.append(name)
    if args.write:
        TABLE.write_text(json.dumps(found, indent=2) + "\n")
    for name in worse:
        print(f"slower by more than {1 - ALLOWED:.0%}: {name}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # seeded fits say that they are not private
    sys.exit(main())
