"""The look of every figure: one style file, labels at the lines instead of legends, references drawn the same way.

import house
house.use()
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

INK, FAINT = "#3a444b", "#8a959c"
BLUE, ORANGE, GREEN, PINK, AMBER, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)


def use() -> None:
    """Switch to the house style."""
    plt.style.use(Path(__file__).with_name("house.mplstyle"))


def band(ax, x, values, label, color, *, marker="o"):
    """Mean over repeats (rows of `values`) with a band from the lowest to the highest."""
    values = np.atleast_2d(values)
    ax.fill_between(x, values.min(axis=0), values.max(axis=0), color=color, alpha=0.18, linewidth=0)
    (line,) = ax.plot(x, values.mean(axis=0), marker=marker, color=color, label=label)
    return line


def references(ax, without_privacy=None, chance=None, *, what="constant answer"):
    """The two lines every frontier needs: the same task without privacy, and what knowing nothing gives."""
    for value, text, style in (
        (without_privacy, "without privacy", (0, (5, 2))),
        (chance, what, (0, (1, 2))),
    ):
        if value is not None:
            (line,) = ax.plot(
                ax.get_xlim(),
                [value, value],
                color=FAINT,
                linestyle=style,
                linewidth=1.5,
                label=text,
                zorder=1,
            )
            line.set_marker("")


def label_ends(ax, *, room=0.32, gap=0.062):
    """Write every line's label at its right end, pushed apart where ends are close; no legend covers data."""
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    left, right = ax.get_xlim()
    log = ax.get_xscale() == "log"
    reach = right * (right / left) ** room if log else right + room * (right - left)
    ends = []
    for line in lines:
        y = np.asarray(line.get_ydata(), dtype=float)
        ends.append([ax.transData.transform((right, y[-1]))[1], line, y[-1]])
    height = ax.get_window_extent().height
    ends.sort(key=lambda end: end[0])
    for before, after in pairwise(ends):
        after[0] = max(after[0], before[0] + gap * height)
    ax.set_xlim(left, reach)
    for pixel, line, _ in ends:
        height_in_data = ax.transData.inverted().transform((0, pixel))[1]
        start = right * (right / left) ** 0.02 if log else right + 0.02 * (right - left)
        ax.text(
            start,
            height_in_data,
            line.get_label(),
            color=line.get_color(),
            va="center",
            fontsize=10,
        )
    ax.spines["bottom"].set_bounds(left, right)


def epsilon_axis(ax, values):
    """A log axis with the budgets themselves as ticks."""
    ax.set_xscale("log")
    ax.set_xticks(values, [f"{v:g}" for v in values])
    ax.minorticks_off()
    ax.set_xlim(min(values) / 1.15, max(values) * 1.15)
    ax.set_xlabel("epsilon")
