"""The look of every figure: the style file of the site, labels at the lines instead of legends, references alike."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter

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
    plt.style.use(Path(__file__).parents[2] / "docs" / "_ext" / "gallery.mplstyle")


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


def label_ends(ax, *, fontsize=10):
    """Write every line's label beside its right end, outside the axes; pushed apart where ends are close."""
    ax.figure.canvas.draw()
    pixels = ax.get_window_extent().height
    per_line = 1.25 * fontsize * ax.figure.dpi / 72 / pixels  # as a share of the axes
    ends = []
    for line in ax.get_lines():
        y = np.asarray(line.get_ydata(), dtype=float)
        y = y[np.isfinite(y)]
        if len(y) and not line.get_label().startswith("_"):
            at = ax.transAxes.inverted().transform(ax.transData.transform((0.0, y[-1])))[1]
            height = per_line * (1 + line.get_label().count("\n"))
            ends.append([min(max(at, 0.0), 1.0), height, line])
    ends.sort(key=lambda end: end[0])
    for before, after in pairwise(ends):
        after[0] = max(after[0], before[0] + (before[1] + after[1]) / 2)
    top = 1.0
    for end in reversed(ends):  # none above the axes, which would meet the title
        end[0] = min(end[0], top - end[1] / 2)
        top = end[0] - end[1] / 2
    looks = [(line.get_color(), line.get_marker()) for *_, line in ends]
    alike = len({colour for colour, _ in looks}) < len(set(looks))  # the marker tells them apart
    for at, _, line in ends:
        if alike:
            ax.plot(
                1.03,
                at,
                line.get_marker(),
                color=line.get_color(),
                ms=line.get_markersize(),
                transform=ax.transAxes,
                clip_on=False,
            )
        ax.text(
            1.05 if alike else 1.02,
            at,
            line.get_label(),
            color=line.get_color(),
            transform=ax.transAxes,
            va="center",
            fontsize=fontsize,
            linespacing=1.1,
        )


def readable_logs(ax):
    """Plain numbers at 1, 2 and 5 where a log axis spans little, decades where it spans much."""
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() != "log" or isinstance(axis.get_major_locator(), FixedLocator):
            continue
        if high / low < 200:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())


def epsilon_axis(ax, values):
    """A log axis with the budgets themselves as ticks."""
    ax.set_xscale("log")
    ax.set_xticks(values, [f"{v:g}" for v in values])
    ax.xaxis.minorticks_off()
    ax.set_xlim(min(values) / 1.15, max(values) * 1.15)
    ax.set_xlabel("epsilon")
