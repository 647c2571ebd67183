"""Runs in an environment of others (outside.py): reads facts.json and rows.npz of every folder that a line of the
standard input names, writes answers.npy there, and says what it took.

DP-EBM gets the columns of a table as they were before one-hot coding, as its authors advise, with declared bounds and
its own defaults. diffprivlib gets rows shortened to a share of their public length; share and C were chosen once, on
training rows of nine tables, as for the other rivals.
"""

import json
import sys
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

SHARE = 0.5
PENALTY = 1.0


def ebm(facts: Any, X: Any, y: Any, X_test: Any) -> Any:
    from interpret.privacy import (  # type: ignore[import-not-found]
        DPExplainableBoostingClassifier,
        DPExplainableBoostingRegressor,
    )

    columns = facts["columns"] or [(1, -1.0)] * X.shape[1]
    tables, kinds = [], ["continuous" if width == 1 else "nominal" for width, _ in columns]
    starts = np.cumsum([0, *(width for width, _ in columns)])
    for rows in (X, X_test):
        blocks = [rows[:, a:b] for a, b in pairwise(starts)]
        tables.append(np.column_stack([b[:, 0] if b.shape[1] == 1 else codes(b) for b in blocks]))
    bounds = {j: (low, 1.0) for j, (width, low) in enumerate(columns) if width == 1}
    terms = {
        "feature_types": kinds, "privacy_bounds": bounds, "epsilon": facts["epsilon"], "delta": facts["delta"],
        "random_state": facts["seed"], "n_jobs": 1,
    }  # fmt: skip
    if facts["target_range"] is None:
        model = DPExplainableBoostingClassifier(**terms).fit(tables[0], y)
        return model.predict_proba(tables[1])[:, 1]
    low, high = facts["target_range"]
    model = DPExplainableBoostingRegressor(privacy_target_min=low, privacy_target_max=high, **terms)
    return model.fit(tables[0], y).predict(tables[1])


def codes(block: Any) -> Any:
    """Numbers of the listed names; names that are not listed are one more."""
    return np.where(block.any(axis=1), block.argmax(axis=1), block.shape[1])


def diffprivlib(facts: Any, X: Any, y: Any, X_test: Any) -> Any:
    from diffprivlib.models import LogisticRegression  # type: ignore[import-not-found]

    length = SHARE * (facts["row_norm"] or np.sqrt(X.shape[1]))
    model = LogisticRegression(
        epsilon=facts["epsilon"], data_norm=1.0, C=PENALTY, max_iter=1000,
        random_state=facts["seed"],
    )  # fmt: skip
    model.fit(X / length, y)
    return model.predict_proba(X_test / length)[:, 1]


def answer(folder: Path) -> dict[str, Any]:
    facts, rows = json.loads((folder / "facts.json").read_text()), np.load(folder / "rows.npz")
    fit = {"interpret": ebm, "diffprivlib": diffprivlib}[facts["kind"]]
    X, y, X_test = (rows[name] for name in ("X", "y", "X_test"))
    start = time.process_time()
    np.save(folder / "answers.npy", fit(facts, X, y, X_test))
    return {"seconds": round(time.process_time() - start, 4)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    replies, sys.stdout = (
        sys.stdout,
        sys.stderr,
    )  # a library that prints must not be taken for a reply
    for line in sys.stdin:
        try:
            said = answer(Path(line.strip()))
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=replies, flush=True)
