"""What a fitted model is worth on test rows, and what it cost."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from lab.tasks import Task

# measure -> format
MEASURES = {
    "AUC": ".3f",
    "accuracy": ".3f",
    "log loss": ".3f",
    "slope": ".2f",  # of the calibration: 1 is best, below 1 is overconfident
    "R2": ".3f",
    "F1": ".2f",  # of the support
    "base": ".3f",  # log loss of the base rate
    "constant": ".3f",  # accuracy of the commonest class
    "best": ".3f",  # accuracy with the best threshold
    "blank": ".3f",  # accuracy with one column blank, lowest of all columns
    "new": ".3f",  # accuracy with one column of values that no training row had
    "false discoveries": ".3f",
    "power": ".3f",
    "intervals": ".2f",  # share of draws that get an interval
    "covered": ".3f",  # of the weight that is covered least
    "width": ".1f",  # of intervals, beside those without privacy: narrowest
    "nonzero": ".0f",
    "weights": ".0f",  # zero or not
    "seconds": ".2f",
    "megabytes": ".0f",
}
LARGEST_LOGIT = 30.0


def score_model(task: Task, model: Any, X: Any, y: np.ndarray) -> dict[str, float]:
    """Measures of predictions. A model has `predict` (numbers) or `decision_function` and `classes_`; probabilities
    are those of `predict_proba` where it has them."""
    if task.is_regression:
        return {"R2": float(r2_score(y, model.predict(X)))}
    margins, classes = model.decision_function(X), np.asarray(model.classes_)
    if margins.ndim == 2:
        found = {"accuracy": float(np.mean(classes[margins.argmax(axis=1)] == y))}
    else:
        positive = y == classes[1]
        found = {
            "AUC": float(roc_auc_score(positive, margins)),
            "accuracy": float(np.mean((margins > 0) == positive)),
        }
    if hasattr(model, "predict_proba"):
        chances = model.predict_proba(X)
        found["log loss"] = float(log_loss(y, chances, labels=classes))
        if margins.ndim == 1:
            found["slope"] = calibration_slope(chances[:, 1], positive)
    return found


def calibration_slope(chances: np.ndarray, positive: np.ndarray) -> float:
    """Slope of a logistic regression of the labels on the log odds of the model."""
    small = np.exp(-LARGEST_LOGIT)
    odds = np.log(np.maximum(chances, small)) - np.log(np.maximum(1.0 - chances, small))
    if np.ptp(odds) < 1e-9:
        return 0.0
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=1e6).fit(odds[:, None], positive)
    return float(fitted.coef_[0, 0])


def support_f1(coef: np.ndarray, truth: np.ndarray) -> float:
    """F1 of the non-zero weights."""
    found, true = np.any(np.atleast_2d(coef) != 0, axis=0), np.ravel(truth) != 0
    both = int(np.sum(found & true))
    return 2.0 * both / max(int(found.sum() + true.sum()), 1)


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Processor seconds, and peak memory above what the process had, of the body."""
    cost: dict[str, float] = {}
    before, start = _reset_peak(), time.process_time()
    yield cost
    cost["seconds"] = round(time.process_time() - start, 4)
    cost["megabytes"] = round((peak_memory() - before) / 2**20, 1)


def _reset_peak() -> float:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_memory()
    return peak_memory()


def peak_memory() -> float:
    """Bytes; the mark of the kernel, because that of `getrusage` begins with the parent's."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024.0 * int(line.split()[1])
    except OSError:
        pass
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
