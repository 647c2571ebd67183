"""A private evaluation as a figure, and as a section of the privacy card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse._checks import show_name
from dpsparse.report.plots import CLEAR, FAINT, INK, as_svg, new_figure
from dpsparse.report.template import filled

if TYPE_CHECKING:
    from dpsparse.evaluation.report import Report

_TITLES = {
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "mcc": "MCC",
    "auc": "AUC",
    "brier": "Brier score",
    "log_loss": "log loss",
    "mae": "MAE",
    "mse": "MSE",
    "r2": "R2",
}


def _title(name: str, report: Report) -> str:
    """With the label that a metric is about."""
    positive = report.subject.positive
    return (
        f"{_TITLES[name]} (of {positive})"
        if positive and name in ("precision", "recall", "f1")
        else _TITLES[name]
    )


def evaluation_figure(report: Report) -> Any:
    """Estimates with their intervals; beside them ROC and calibration where the report has them."""
    return _drawn(report, _panels(report))


def _panels(report: Report) -> dict[str, Callable[[Any, Report], None]]:
    panels: dict[str, Callable[[Any, Report], None]] = {"estimates": _draw_estimates}
    panels |= {"ROC curve": _draw_roc} if "roc" in report.tables else {}
    panels |= {"calibration": _draw_calibration} if "calibration" in report.tables else {}
    return panels


def _drawn(report: Report, panels: Mapping[str, Callable[[Any, Report], None]]) -> Any:
    figure = new_figure(4.4 * len(panels), 3.8)
    for axes, draw in zip(np.ravel(figure.subplots(1, len(panels))), panels.values(), strict=True):
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            axes.spines[side].set_color(INK)
        axes.tick_params(labelsize=9, colors=INK)
        draw(axes, report)
    return figure


def _draw_estimates(axes: Any, report: Report) -> None:
    shown = [(_title(k, report), e) for k, e in report.estimates.items() if k in _TITLES]
    for row, (_, e) in enumerate(shown):
        low = e.low if np.isfinite(e.low) else min(e.value, 0.0)
        axes.hlines(row, low, e.high, color=FAINT, linewidth=6)
        axes.plot(e.value, row, "|", color=CLEAR, markersize=13, markeredgewidth=2.5)
        # Beside the interval and not on it, so that the text hides nothing.
        axes.annotate(
            f"{e.value:.3g}", (e.high, row), (6, 0), textcoords="offset points", va="center",
            fontsize=9, color=INK,
        )  # fmt: skip
    # A label is no formula, even with dollar signs.
    axes.set_yticks(range(len(shown)), [show_name(name) for name, _ in shown], parse_math=False)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, 0.0), right + 0.15 * (right - min(left, 0.0)))
    axes.set_title(f"{100 * report.level:g} % intervals", fontsize=10, color=INK, loc="left")


def _draw_roc(axes: Any, report: Report) -> None:
    roc = report.tables["roc"]
    fpr, tpr, low, high = (
        np.concatenate([[1.0], roc[name], [0.0]]) for name in ("fpr", "tpr", "tpr_low", "tpr_high")
    )
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle="--")
    axes.fill_between(fpr, low, high, color=CLEAR, alpha=0.2, linewidth=0)
    axes.plot(fpr, tpr, color=CLEAR, linewidth=1.8)
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    axes.set_xlabel("false positive rate", color=INK)
    axes.set_ylabel("true positive rate", color=INK)
    auc = report.estimates.get("auc")
    title = "ROC curve" if auc is None else f"ROC curve, AUC {auc.value:.3f}"
    axes.set_title(title, fontsize=10, color=INK, loc="left")


def _draw_calibration(axes: Any, report: Report) -> None:
    """A box for every bin: the model says a probability within its width, the truth is within its height."""
    bins = report.tables["calibration"]
    known = bins["high"] - bins["low"] < 0.999  # others say nothing
    start, end, low, high, observed = (
        bins[name][known] for name in ("from", "to", "low", "high", "observed")
    )
    axes.bar(start, high - low, end - start, low, align="edge", color=CLEAR, alpha=0.25)
    axes.hlines(observed, start, end, color=CLEAR, linewidth=2)
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--")
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    axes.set_xlabel("probability the model gives", color=INK)
    axes.set_ylabel("how often it is true", color=INK)
    title = f"calibration, {100 * report.level:g} % intervals"
    axes.set_title(title, fontsize=10, color=INK, loc="left")


def evaluation_section(report: Report) -> str:
    """The part of a card that is about an evaluation: an HTML fragment in the classes of the card."""
    return filled(
        "evaluation.html",
        report=report,
        g=report.privacy_,
        rows=[
            (_title(name, report), f"{e.value:.4g}", f"{e.low:.4g}", f"{e.high:.4g}")
            for name, e in report.estimates.items()
            if name in _TITLES
        ],
        # One picture each: side by side they would shrink, and their text with them.
        plots=[
            as_svg(_drawn(report, {name: draw}), name) for name, draw in _panels(report).items()
        ],
    )
