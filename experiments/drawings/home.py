"""The figure of the home page, light and dark, from the committed rows of `dpsparse reproduce frontier --full`.

python experiments/drawings/home.py
"""

from __future__ import annotations

import json
import lzma
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "examples"))

import house  # noqa: E402

SHOWN = {
    "gradient": ("DPGradient, all weights", "#0072B2", "#56B4E9"),
    "gradient, 100 weights": ("DPGradient, 100 weights", "#009E73", "#2fd0a5"),
    "dp-ight": ("DP-IGHT", "#D55E00", "#ff8f45"),
    "dp-lasso": ("private LASSO", "#A0527F", "#e59cc8"),
}
EPSILONS = [0.1, 0.5, 1.0, 3.0]


def scores() -> dict[tuple[str, float | None], list[float]]:
    """Test AUC by method and epsilon on 20 Newsgroups bigrams."""
    found = defaultdict(list)
    with lzma.open(ROOT / "experiments/results/full/frontier.jsonl.xz", "rt") as rows:
        for line in rows:
            row = json.loads(line)
            config = row["config"]
            if config["data"] == "news-bigrams" and row["metrics"].get("score") is not None:
                found[config["method"], config.get("epsilon")].append(row["metrics"]["score"] / 100)
    return found


def draw(name: str, dark: bool) -> None:
    house.use()
    ink = "#d7dde1" if dark else "#1f2933"
    mpl.rcParams.update(
        dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink)
    )
    mpl.rcParams["grid.color"] = "#39424a" if dark else "#e3e7ea"
    found = scores()
    fig, ax = plt.subplots(figsize=(6.0, 4.0))
    house.epsilon_axis(ax, EPSILONS)
    for method, (label, light, night) in SHOWN.items():
        values = np.array([found[method, eps] for eps in EPSILONS]).T
        house.band(ax, EPSILONS, values, label, night if dark else light)
    house.references(ax, found["l1", None][0], 0.5, what="chance")
    ax.set_ylim(0.44, 1.06)
    ax.set_title("Test AUC, 20 Newsgroups bigrams, delta 1e-6")
    house.label_ends(ax)
    fig.savefig(HERE.parent / "book/figures" / name, transparent=True, metadata={"Date": None})
    plt.close(fig)


if __name__ == "__main__":
    draw("home-light.svg", dark=False)
    draw("home-dark.svg", dark=True)
