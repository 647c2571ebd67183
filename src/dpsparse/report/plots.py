"""Plots of the privacy card as inline SVG; matplotlib is imported on first use."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse._checks import rounded_up, show_name
from dpsparse.exceptions import DPSparseError

if TYPE_CHECKING:
    from dpsparse.report.weights import Weight

INK, CLEAR, FAINT, WRONG = "#1f2933", "#1a6b6b", "#b8c4cc", "#b3261e"
# The page gives every colour a second value for dark screens (page.html); elsewhere the first one holds.
_VARIABLES = {INK: "--ink", "#000000": "--ink", CLEAR: "--clear", FAINT: "--faint", WRONG: "--bad"}


def _figure(height: float) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DPSparseError("Plots need matplotlib: pip install 'dpsparse[plot]'.") from error
    # Narrow, in inches, so that text keeps its size on a phone.
    figure = Figure(figsize=(4.8, height), layout="constrained")
    axes = figure.subplots()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=10, colors=INK)
    axes.tick_params(axis="x", labelsize=9, colors=INK)
    return figure, axes


def _name_rows(axes: Any, names: Sequence[str]) -> None:
    """One label for each row; a name is no formula, even with dollar signs."""
    axes.set_yticks(range(len(names)), [show_name(name) for name in names], parse_math=False)


def _svg(figure: Any, label: str) -> str:
    """The bare <svg> element: no prolog, no metadata, no ids that two plots would share."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": label}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable}, {colour})")
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def cost_bars(names: Sequence[str], costs: Sequence[float], total: float) -> str:
    """Epsilon of each step alone, and of all together."""
    finite = [c for c in (*costs, total) if np.isfinite(c)]
    longest = max(finite, default=1.0) or 1.0
    labels, values = [*names, "all together"], [*costs, total]
    figure, axes = _figure(0.5 + 0.42 * len(labels))
    for row, value in enumerate(values):
        length = value if np.isfinite(value) else 1.15 * longest
        colour = WRONG if not np.isfinite(value) else (INK if row == len(names) else CLEAR)
        axes.barh(row, length, height=0.55, color=colour)
        text = rounded_up(float(value), 3) if np.isfinite(value) else "unlimited"
        axes.text(length + 0.01 * longest, row, text, va="center", fontsize=10, color=INK)
    _name_rows(axes, labels)
    axes.set_xlim(0, 1.22 * longest)
    axes.invert_yaxis()
    axes.set_xlabel("epsilon", color=INK)
    return _svg(figure, "cost of each step")


def weight_figure(weights: Sequence[Weight], positive: str | None = None) -> Any:
    """Weights with two standard deviations of their noise; weights within the noise are hollow."""
    figure, axes = _figure(0.8 + 0.3 * len(weights))
    axes.axvline(0, color=FAINT, linewidth=1)
    for row, weight in enumerate(weights):
        if weight.noise is not None:
            ends = weight.value - 2.0 * weight.noise, weight.value + 2.0 * weight.noise
            axes.hlines(row, *ends, color=FAINT, linewidth=4)
        face = "none" if weight.clear is False else CLEAR
        axes.plot(weight.value, row, "o", color=CLEAR, markerfacecolor=face, markersize=6)
    _name_rows(axes, [_short(weight.name) for weight in weights])
    axes.set_ylim(len(weights) - 0.4, -0.6)
    noise = any(weight.noise is not None for weight in weights)
    text = "weight" + (" (bar: 2 sd of its noise, hollow: may be noise)" if noise else "")
    if positive is not None:
        text += f"\npositive weights speak for: {show_name(positive)}"
    axes.set_xlabel(text, color=INK, fontsize=9, parse_math=False)
    return figure


def weight_dots(weights: Sequence[Weight], positive: str | None = None) -> str:
    """The same as inline SVG."""
    return _svg(weight_figure(weights, positive), "largest weights")


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"


def budget_steps(totals: Sequence[float], ceiling: float) -> str:
    """What was spent after each reservation, against the ceiling."""
    figure, axes = _figure(2.2)
    shown = [min(t, 1.1 * ceiling) for t in totals]
    axes.step(range(len(shown) + 1), [0.0, *shown], where="post", color=CLEAR, linewidth=2)
    axes.axhline(ceiling, color=WRONG, linewidth=1, linestyle="--")
    axes.text(0, ceiling, " ceiling", va="bottom", fontsize=10, color=WRONG)
    axes.set_ylim(0, 1.2 * ceiling)
    axes.set_xlabel("reservations", color=INK)
    axes.set_ylabel("epsilon spent", color=INK)
    axes.xaxis.get_major_locator().set_params(integer=True)
    return _svg(figure, "budget over time")
