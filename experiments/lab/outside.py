"""Libraries of others in environments of their own: DP-EBM (interpret) and diffprivlib.

    python -m venv $DPSPARSE_RIVALS/interpret   && .../pip install interpret-core==0.7.8
    python -m venv $DPSPARSE_RIVALS/diffprivlib && .../pip install diffprivlib==0.6.5 scikit-learn==1.3.2 "numpy<2"

`outside_fit.py` fits there and writes its predictions of the test rows. Their code draws its own noise, so that no
replay can check it: the guarantee is their claim, and the board says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logit

from lab.methods import Fitted, Setting
from lab.tables import columns_of
from lab.tasks import Split, Task

VARIABLE = "DPSPARSE_RIVALS"
# name -> (environment, what it handles, adjacency of their claim)
LIBRARIES = {
    "DPEBM": ("interpret", ("binary", "numbers"), "add-remove"),
    "Diffprivlib": ("diffprivlib", ("binary",), "replace-one, delta 0"),
}
CLAIM = "their claim, not replayed"
MOST_COLUMNS = 1500  # rows are dense there


@dataclass(frozen=True)
class Predictions:
    """Answers for the test rows, whatever rows are asked for."""

    answers: np.ndarray
    classes_: np.ndarray | None

    def predict(self, X: Any) -> np.ndarray:
        return self.answers

    def decision_function(self, X: Any) -> np.ndarray:
        return np.asarray(logit(np.clip(self.answers, 1e-12, 1.0 - 1e-12)))

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.column_stack([1.0 - self.answers, self.answers])


def fit(name: str, task: Task, split: Split, setting: Setting, seed: int) -> Fitted:
    """Predictions of a library, with what it claims of them."""
    place, _, adjacency = LIBRARIES[name]
    model, spent = _fit_there(place, task, split, setting, seed)
    claim = {"adjacency": adjacency, "proof": CLAIM, "proven": False}
    return Fitted(model, setting.as_row() | claim, {"seconds": spent})


@cache
def _worker(place: str) -> Any:
    """A process of the other environment, which fits what it is told on its standard input."""
    python = Path(os.environ.get(VARIABLE, "")) / place / "bin" / "python"
    if not python.exists():
        raise ValueError(f"set {VARIABLE} to the folder of the environment {place!r}")
    script = str(Path(__file__).with_name("outside_fit.py"))
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([str(python), script], **pipes)


def _fit_there(
    place: str, task: Task, split: Split, setting: Setting, seed: int
) -> tuple[Predictions, float]:
    """Predictions of the other environment, and its processor seconds."""
    if split.X.shape[1] > MOST_COLUMNS:
        raise ValueError(f"{place} needs dense rows: {split.X.shape[1]:,} columns")
    labels = None if task.classes is None else np.asarray(task.classes)
    numbers = split.y if labels is None else np.searchsorted(labels, split.y)
    facts = {
        "kind": place, "epsilon": setting.epsilon, "delta": setting.delta, "seed": seed, "columns": columns_of(task),
        "row_norm": task.row_norm, "target_range": task.target_range,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "facts.json").write_text(json.dumps(facts))
        X, X_test = (sp.csr_array(rows).toarray() for rows in (split.X, split.X_test))
        np.savez(folder / "rows.npz", X=X, y=numbers, X_test=X_test)
        worker = _worker(place)
        print(name, file=worker.stdin, flush=True)
        said = json.loads(worker.stdout.readline())
        if "error" in said:
            raise RuntimeError(said["error"])
        return Predictions(np.load(folder / "answers.npy"), labels), said["seconds"]
