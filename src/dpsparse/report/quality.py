"""How good a model is, in words: the first line of its card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse.report.weights import clear_weights, stand_out_together

if TYPE_CHECKING:
    from dpsparse.evaluation.report import Report


def how_good(model: Any, evaluation: Report | None, drowned: frozenset[str] = frozenset()) -> str:
    """From a private evaluation if there is one, else what the noise of the weights allows."""
    said = "" if evaluation is None else _measured(evaluation)
    if said:
        return said
    unknown = "How good the model is was not measured; dp_evaluate or `dpsparse evaluate` does that privately."
    clear = clear_weights(model, drowned)
    if clear is None and model.n_nonzero_ > 0:
        return unknown
    if clear:
        one = "1 weight stands" if clear == 1 else f"{clear:,} weights stand"
        said = f"The model says more than a constant answer: {one} out of the noise."
    elif stand_out_together(model, drowned):
        said = "No single weight stands out of its noise, but all of them together do."
    else:
        said = (
            "No weight stands out of its noise: the model is hardly better than a constant answer."
        )
    return f"{said} {unknown}"


def _measured(report: Report) -> str:
    """Compared with the best constant answer, where the report has what that needs."""
    auc, accuracy, r2 = (report.estimates.get(name) for name in ("auc", "accuracy", "r2"))
    if r2 is not None:
        verdict = _verdict(r2, 0.0, "better than the mean", "the mean")
        share = f"{100 * max(r2.value, 0.0):.0f} % of the variance ({_ends(r2)})"
        return f"The model is {verdict}: it explains {share}."
    if auc is not None and report.subject.n_classes == 2:
        verdict = _verdict(auc, 0.5, "better than a coin at ranking", "a constant answer")
        ranked = f"of two rows of different labels it ranks the right one higher in {100 * auc.value:.0f} %"
        return f"The model is {verdict}: {ranked} ({_ends(auc)}).{_right(report)}"
    return _right(report).strip() if accuracy is not None else ""


def _verdict(score: Any, of_a_constant: float, better: str, constant: str) -> str:
    """Better, hardly better, or not known: a wide interval says nothing against the model."""
    if score.low > of_a_constant:
        return better
    if score.high <= of_a_constant + 0.1:  # so little above a constant answer is hardly better
        return f"hardly better than {constant}"
    return f"perhaps no better than {constant}, as its evaluation is too noisy to tell"


def _right(report: Report) -> str:
    accuracy = report.estimates.get("accuracy")
    if accuracy is None:
        return ""
    text = f" It is right in {100 * accuracy.value:.0f} % of rows ({_ends(accuracy)})"
    counts = report.released.numbers.get("confusion")
    if counts is not None and counts.size:
        shares = np.maximum(counts, 0.0).reshape(report.subject.n_classes, -1).sum(axis=1)
        if shares.sum() > 0.0:
            text += f"; the commonest label alone would be right in {100 * shares.max() / shares.sum():.0f} %"
    return text + "."


def _ends(estimate: Any) -> str:
    low, high = (min(max(100 * end, -100.0), 100.0) for end in (estimate.low, estimate.high))
    return f"{low:.0f} to {high:.0f} %"
