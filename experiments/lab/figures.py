"""Figures of pages: the home page, light and dark, from rows of the leaderboard; choosing_epsilon.md."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from dpsparse import Domain, DPGradientClassifier, expected_accuracy
from lab import look as style
from lab.report import Table

SHOWN = {
    "DPSparse": ("DPSparse", "#0072B2", "#56B4E9"),
    "DPHardThreshold": ("DPHardThreshold", "#D55E00", "#ff8f45"),
    "DPLasso": ("private LASSO", "#A0527F", "#e59cc8"),
}


def draw_home(table: Table, path: Path, dark: bool) -> None:
    """AUC of three methods on 20 Newsgroups."""
    style.use()
    ink = "#d7dde1" if dark else "#1f2933"
    colours = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")
    mpl.rcParams.update(dict.fromkeys(colours, ink))
    mpl.rcParams["grid.color"] = "#39424a" if dark else "#e3e7ea"
    task, epsilons = "news-bigrams", [0.3, 1.0, 3.0]
    figure, axis = plt.subplots(figsize=(6.0, 4.0))
    style.epsilon_axis(axis, epsilons)
    for method, (label, light, night) in SHOWN.items():
        values = [list(table.splits(task, method, e, "AUC").values()) for e in epsilons]
        style.band(axis, epsilons, np.array(values).T, label, night if dark else light)
    style.references(axis, table.mean(task, "sklearn", "inf", "AUC"), 0.5, what="chance")
    axis.set_ylim(0.44, 1.06)
    axis.set_title("Test AUC, 20 Newsgroups bigrams, delta 1e-6")
    style.label_ends(axis)
    figure.savefig(path, transparent=True, metadata={"Date": None})


def draw_expected_accuracy(path: Path) -> None:
    """The forecast for 1,000, 10,000 and 100,000 rows; nearly all of its time goes into the last."""
    budgets = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
    style.use()
    figure, axis = plt.subplots(figsize=(6.0, 3.8))
    style.epsilon_axis(axis, budgets)
    model = DPGradientClassifier(Domain(row_norm=1.0, classes=[0, 1]))
    for rows, colour in ((1_000, style.ORANGE), (10_000, style.GREEN), (100_000, style.BLUE)):
        forecast = expected_accuracy(model, rows, n_features=200, epsilon=budgets, reachable=0.9)
        axis.fill_between(
            budgets, forecast.low, forecast.high, color=colour, alpha=0.18, linewidth=0
        )
        axis.plot(budgets, forecast.score, "o-", color=colour, label=f"{rows:,} rows")
    style.references(axis, float(forecast.without_privacy), float(forecast.constant))
    axis.set_title("Accuracy to expect, 200 columns")
    style.label_ends(axis)
    figure.savefig(path, metadata={"Date": None})
