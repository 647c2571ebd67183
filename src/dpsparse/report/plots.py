"""Plots of cards and reports, also as inline SVG; matplotlib is imported on first use."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpsparse._checks import show_name
from dpsparse.exceptions import DPSparseError

if TYPE_CHECKING:
    from dpsparse.report.weights import Weight

INK, CLEAR, FAINT = "#1f2933", "#1a6b6b", "#b8c4cc"


def new_figure(width: float, height: float) -> Any:
    """An empty figure of matplotlib; sizes in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DPSparseError("Plots need matplotlib: pip install 'dpsparse[plot]'.") from error
    return Figure(figsize=(width, height), layout="constrained")


def as_svg(figure: Any, label: str) -> str:
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
    # The page gives every colour a second value for dark screens (page.html); elsewhere the first one holds.
    variables = {INK: "--ink", "#000000": "--ink", CLEAR: "--clear", FAINT: "--faint"}
    for colour, variable in variables.items():
        text = text.replace(colour, f"var({variable}, {colour})")
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def weight_figure(weights: Sequence[Weight], positive: str | None = None) -> Any:
    """Weights with two standard deviations of their noise; weights within the noise are hollow."""
    figure = new_figure(
        4.8, 0.8 + 0.3 * len(weights)
    )  # narrow, so that text keeps its size on a phone
    axes = figure.subplots()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=10, colors=INK)
    axes.tick_params(axis="x", labelsize=9, colors=INK)
    axes.axvline(0, color=FAINT, linewidth=1)
    for row, weight in enumerate(weights):
        if weight.noise is not None:
            ends = weight.value - 2.0 * weight.noise, weight.value + 2.0 * weight.noise
            axes.hlines(row, *ends, color=FAINT, linewidth=4)
        face = "none" if weight.clear is False else CLEAR
        axes.plot(weight.value, row, "o", color=CLEAR, markerfacecolor=face, markersize=6)
    names = [show_name(w.name if len(w.name) <= 24 else f"{w.name[:23]}…") for w in weights]
    # A name is no formula, even with dollar signs.
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(weights) - 0.4, -0.6)
    noise = any(weight.noise is not None for weight in weights)
    # In short lines, since the axis begins where long names end.
    text = "weight" + ("\nbar: 2 sd of its noise, hollow: may be noise" if noise else "")
    if positive is not None:
        text += f"\npositive weights speak for: {show_name(positive)}"
    axes.set_xlabel(text, color=INK, fontsize=9, parse_math=False)
    return figure
