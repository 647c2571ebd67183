"""The figure of docs/choosing_epsilon.md, in the house style.

python experiments/drawings/choosing_epsilon.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))

import house  # noqa: E402
from dpsparse import Domain, DPGradientClassifier, expected_accuracy  # noqa: E402

BUDGETS = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]


def main() -> None:
    house.use()
    model = DPGradientClassifier(Domain(row_norm=1.0, classes=[0, 1]))
    fig, ax = plt.subplots(figsize=(6.0, 3.8))
    house.epsilon_axis(ax, BUDGETS)
    for rows, color in ((1_000, house.ORANGE), (10_000, house.GREEN), (100_000, house.BLUE)):
        forecast = expected_accuracy(model, rows, n_features=200, epsilon=BUDGETS, reachable=0.9)
        ax.fill_between(BUDGETS, forecast.low, forecast.high, color=color, alpha=0.18, linewidth=0)
        ax.plot(BUDGETS, forecast.score, "o-", color=color, label=f"{rows:,} rows")
    house.references(ax, float(forecast.without_privacy), float(forecast.constant))
    ax.set_title("Accuracy to expect, 200 columns")
    house.label_ends(ax)
    fig.savefig(HERE.parent / "book/figures/choosing-epsilon.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
