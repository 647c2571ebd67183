"""What several experiments share: data by name, splits, scores, plain plots."""

import math
from functools import lru_cache
from pathlib import Path

import numpy as np

from dpsparse.random import make_generator
from engine import derive_seed

# name in the tables -> (kind, argument, fraction of the original shape)
WIDE = {
    "rcv1": ("stand-in", "rcv1", 1.0),
    "news20": ("reconstruction", "news20", 1.0),
    "url": ("stand-in", "url", 0.02),
    "web": ("stand-in", "web", 0.01),
    "kdda": ("stand-in", "kdda", 0.02),
}
WIDE_NOTE = (
    "Data: news20 is our reconstruction from the raw articles (19,997 x 1.39 million); rcv1, url, web and "
    "kdda cannot be had here and are synthetic stand-ins, rcv1 of the full shape, url and kdda at 2 % and "
    "web at 1 % of the rows and columns with the entries per row kept; url has 200 dense informative columns besides, "
    "as the paper says. Their numbers say nothing about the originals."
)


@lru_cache(maxsize=2)
def wide(name: str, fraction: float = 1.0):
    """X, y of a data set of Raff, Khanna and Lu (2023); `fraction` shrinks a stand-in further, for quick runs."""
    from dpsparse.datasets import load_newsgroups_bigrams, make_wide_text

    kind, like, share = WIDE[name]
    if kind == "reconstruction":
        return load_newsgroups_bigrams()
    return make_wide_text(0, like, fraction=share * fraction)


def split(n: int, seed: int, share: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of a training and a test part."""
    order = make_generator(derive_seed("split", seed)).permutation(n)
    cut = round(n * share)
    return np.sort(order[cut:]), np.sort(order[:cut])


def classifier_scores(margins: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy and AUC in per cent."""
    from sklearn.metrics import roc_auc_score

    return {
        "accuracy": 100.0 * float(np.mean((margins > 0) == (y == 1))),
        "AUC": 100.0 * float(roc_auc_score(y, margins)),
    }


def promise(model, width: int):
    """The guarantee that a fit has with unseeded noise: experiments are seeded so that they repeat."""
    facts = model.get_params(deep=False) | {"random_state": None}
    return type(model)(**facts).plan(width).guarantee


def thinned(n: int, points: int = 40) -> np.ndarray:
    """Positions of a curve that look even on a log axis."""
    return np.unique(np.geomspace(1, n, points).astype(int)) - 1


def axes(path: Path, panels: int = 1, **labels: str):
    """A figure with `panels` axes side by side, and a function that saves it."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "dpsparse"  # the same figure gives the same file
    matplotlib.rcParams["font.size"] = 9
    figure, found = plt.subplots(1, panels, figsize=(4.2 * panels + 0.6, 3.2), squeeze=False)
    for axis in found[0]:
        axis.set(**labels)
        axis.grid(alpha=0.3)

    def save() -> None:
        beside = [axis.get_legend() for axis in found[0] if axis.get_legend()]
        for legend in beside:
            legend.set_in_layout(False)  # a legend beside the axes must not squeeze them
        figure.tight_layout()
        for legend in beside:
            legend.set_in_layout(True)
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
        plt.close(figure)

    return list(found[0]), save


def percent(part: float) -> str:
    return "?" if math.isnan(part) else f"{100 * part:.0f} %"


def trial_number(rows_name: str, seed: int) -> int:
    """Which trial of `rows_name` has this seed; for experiments that number their draws."""
    return next(t for t in range(10_000) if derive_seed(rows_name, t) == seed)


# Ten of matplotlib's and two more: no two of the methods of a figure look alike.
COLOURS = (*(f"C{i}" for i in range(10)), "black", "gold")


def plot_by_epsilon(
    summary, path: Path, metric: str, panels=({},), titles=("",), log=False
) -> None:
    """One line per method and mode over epsilon; dashes are published calibrations."""
    found, save = axes(path, len(panels), xlabel="epsilon", ylabel=metric, xscale="log")
    methods = list(dict.fromkeys(c["method"] for c in summary.cells))  # one colour in all panels
    for axis, panel, title in zip(found, panels, titles, strict=True):
        cells = [c for c in summary.cells if all(c.get(k) == v for k, v in panel.items())]
        for i, method in enumerate(methods):
            for mode, style in (("nonprivate", ":"), ("published", "--"), ("proven", "-")):
                points = [
                    (c["epsilon"], summary.average(metric, mode, **c))
                    for c in cells
                    if c["method"] == method and "epsilon" in c
                ]
                points = [(e, a) for e, a in points if a is not None]
                if points:
                    axis.errorbar(
                        [e for e, _ in points], [a.mean for _, a in points], [a.error for _, a in points],
                        ls=style, color=COLOURS[i % len(COLOURS)], marker="o", ms=3, capsize=2, lw=1.2,
                        label=f"{method}, {mode}",
                    )  # fmt: skip
        epsilons = sorted({c["epsilon"] for c in cells if "epsilon" in c})
        axis.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
        axis.minorticks_off()
        axis.set_title(title)
        if log:
            axis.set_yscale("log")
    lines = {
        label: line for axis in found for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }  # fmt: skip
    found[-1].legend(
        lines.values(), lines, fontsize=7, handlelength=3.5, loc="center left", bbox_to_anchor=(1.02, 0.5)
    )  # fmt: skip
    save()
