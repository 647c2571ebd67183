"""Raff, Khanna and Lu (2023), Figures 1 to 4: the gap, the operations and the heap of the non-private algorithms.

One run per data set serves all four figures.
"""

import heapq
import time

import numpy as np

from _common import WIDE, WIDE_NOTE, axes, classifier_scores, split, thinned, wide
from _operations import exact_gap, fast, standard
from _raff_khanna_lu import HeapQueue, fast_frank_wolfe
from engine import Experiment

RADIUS = 50.0


def configurations(quick):
    if quick:
        return [{"dataset": "rcv1", "n_iter": 300, "fraction": 0.1, "mode": "nonprivate"}]
    return [{"dataset": name, "n_iter": 4000, "mode": "nonprivate"} for name in WIDE]


def trial(config, seed):
    X, y = wide(config["dataset"], config.get("fraction", 1.0))
    train, test = split(X.shape[0], seed)
    A, labels = X[train], y[train]
    w1, gaps1, ops1 = standard(A, labels, RADIUS, config["n_iter"])
    w2, gaps2, ops2, pops = fast(A, labels, RADIUS, config["n_iter"])
    at = thinned(config["n_iter"])
    at_1000 = min(1000, config["n_iter"]) - 1
    scores1, scores2 = (classifier_scores(X[test] @ w, y[test]) for w in (w1, w2))
    nonzeros = max(np.count_nonzero(w2), 1)
    return {
        "iterations": at + 1.0,
        "gap 1": gaps1[at],
        "gap 2": gaps2[at],
        "operations 1": ops1[at],
        "operations 2": ops2[at],
        "pops": pops[at],
        "final gap, Alg. 1": gaps1[-1],
        "final gap, Alg. 1 (recomputed)": exact_gap(A, labels, w1, RADIUS),
        "final gap, Alg. 2 (own account)": gaps2[-1],
        "final gap, Alg. 2 (recomputed)": exact_gap(A, labels, w2, RADIUS),
        "relative L1 distance of solutions": np.abs(w1 - w2).sum() / np.abs(w1).sum(),
        "accuracy, Alg. 1": scores1["accuracy"],
        "accuracy, Alg. 2": scores2["accuracy"],
        "fewer operations": ops1[-1] / ops2[-1],
        "fewer operations at iteration 1000": ops1[at_1000] / ops2[at_1000],
        "pops per draw / non-zeros, mean": pops.mean() / nonzeros,
        "pops per draw / non-zeros, largest": pops.max() / nonzeros,
        "non-zeros": nonzeros,
    }


def _each(summary, metric):
    return [(c["dataset"], summary.mean(metric, dataset=c["dataset"])) for c in summary.cells]


def _range(summary, metric, form=".2g"):
    values = [v for _, v in _each(summary, metric)]
    return f"{min(values):{form}} to {max(values):{form}}"


def verdict_gap(summary):
    accuracies = zip(
        _each(summary, "accuracy, Alg. 1"), _each(summary, "accuracy, Alg. 2"), strict=True
    )
    points = max(abs(a - b) for (_, a), (_, b) in accuracies)
    distances = dict(_each(summary, "relative L1 distance of solutions"))
    far = [name for name, v in distances.items() if v >= 0.01]
    facts = (
        f"the solutions differ by {_range(summary, 'relative L1 distance of solutions')} in relative L1 norm "
        f"and test accuracy by up to {points:.1f} points."
    )
    if not far:
        return f"Holds on {len(summary.cells)} of {len(WIDE)} data sets (so many were run): {facts}"
    return (
        f"Holds within 1 % on {len(distances) - len(far)} of {len(distances)} data sets that were run, not on "
        f"{', '.join(far)}: {facts} For the logistic loss the steps are not the same: shrinking w moves every margin, "
        "and Algorithm 2 refreshes only some."
    )


def verdict_operations(summary):
    """Judged on the one real table: counts on stand-ins follow from how they were made."""
    fewer = dict(_each(summary, "fewer operations"))
    if "news20" not in fewer:
        return "Cannot be tested: no table of the paper was run."
    holds = "Holds" if fewer["news20"] >= 10 else "Does not hold"
    return (
        f"{holds} on news20, the only real table: {fewer['news20']:.1f} times fewer after the last iteration. On the "
        "other tables it cannot be tested: they are stand-ins, whose "
        f"{_range(summary, 'fewer operations')} say how they were made."
    )


def verdict_pops(summary):
    """Judged on the one real table, as are operations."""
    worst = dict(_each(summary, "pops per draw / non-zeros, largest"))
    if "news20" not in worst:
        return "Cannot be tested: no table of the paper was run."
    return (
        f"Holds in the mean; on news20, the only real table, the worst draw pops {worst['news20']:.1f} times as many "
        "items as there are non-zeros. In the mean pops per draw are "
        f"{_range(summary, 'pops per draw / non-zeros, mean')} of the "
        "final non-zeros. With rows scaled as the authors prescribe in their other paper the worst draw there is 2.2, "
        "by a check that is not among the rows: then the claim holds there at every draw. Stand-ins decide nothing."
    )


def plot_gap(summary, path):
    (left, right), save = axes(
        path, 2, xscale="log", yscale="log", xlabel="iteration", ylabel="gap"
    )
    for cell in summary.cells:
        name = cell["dataset"]
        x = summary.curve("iterations", dataset=name)
        left.plot(x, summary.curve("gap 1", dataset=name), label=name)
        right.plot(x, np.abs(summary.curve("gap 2", dataset=name)), "--", label=name)
    left.set_title("Algorithm 1")
    right.set_title("Algorithm 2, its own account")
    save()


def plot_ratio(summary, path):
    (axis,), save = axes(path, xscale="log", yscale="log", xlabel="iteration", ylabel="times fewer")
    for cell in summary.cells:
        name = cell["dataset"]
        ratio = summary.curve("operations 1", dataset=name) / summary.curve(
            "operations 2", dataset=name
        )
        axis.plot(summary.curve("iterations", dataset=name), ratio, label=name)
    save()


def plot_pops(summary, path):
    (axis,), save = axes(path, xscale="log", xlabel="iteration", ylabel="pops / final non-zeros")
    for cell in summary.cells:
        name = cell["dataset"]
        pops = summary.curve("pops", dataset=name) / summary.mean("non-zeros", dataset=name)
        axis.plot(summary.curve("iterations", dataset=name), pops, label=name)
    save()


def plot_operations(summary, path):
    (axis,), save = axes(path, xscale="log", yscale="log", xlabel="operations", ylabel="gap")
    for k, cell in enumerate(summary.cells):
        name = cell["dataset"]
        for which, style in (("1", "--"), ("2", "-")):
            axis.plot(
                summary.curve(f"operations {which}", dataset=name),
                np.abs(summary.curve(f"gap {which}", dataset=name)),
                style, color=f"C{k}", label=name if which == "2" else None,
            )  # fmt: skip
    save()


PROTOCOL = f"Logistic loss, radius 50, 4000 iterations, no noise, 80 % of the rows. {WIDE_NOTE}"
SHARED = {
    "configurations": configurations, "trial": trial, "trials": (1, 1), "protocol": PROTOCOL,
    "needs": ("20newsgroups-raw",),
}  # fmt: skip
FAST = "DPLassoClassifier: its fast solver draws from the exact law, stale scores or not."


class BinaryQueue:
    """Algorithm 3 with a binary heap: a grown magnitude enters once more, older copies are dropped later."""

    def __init__(self, magnitudes):
        self.key, self.pops = -magnitudes, 0
        self.heap = [(key, item) for item, key in enumerate(self.key.tolist())]
        heapq.heapify(self.heap)

    def update(self, item, magnitude):
        if -magnitude < self.key[item]:
            self.key[item] = -magnitude
            heapq.heappush(self.heap, (-magnitude, item))

    def next(self, alpha):
        best, size, taken = -1, -np.inf, []
        while self.heap and size <= -self.heap[0][0]:
            key, item = heapq.heappop(self.heap)
            self.pops += 1
            if key == self.key[item] and item not in taken:
                taken.append(item)
                if abs(alpha[item]) > size:
                    best, size = item, abs(float(alpha[item]))
        for item in taken:
            self.key[item] = -abs(float(alpha[item]))
            heapq.heappush(self.heap, (self.key[item], item))
        return best


def heap_trial(config, seed):
    X, y = wide(config["dataset"], config["fraction"])
    out, weights = [], {}
    for name, queue in (
        ("Fibonacci, decrease-key", HeapQueue),
        ("binary, lazy duplicates", BinaryQueue),
    ):
        began = time.process_time()
        weights[name], _, pops = fast_frank_wolfe(X, y, RADIUS, config["n_iter"], queue)
        part = {"seconds": time.process_time() - began, "pops per draw": pops / config["n_iter"]}
        out.append({"cell": {"heap": name}, **part})
    first, second = weights.values()
    for part in out:
        part["distance of solutions"] = float(np.abs(first - second).sum())
    return out


def heap_verdict(summary):
    texts = [
        f"{c['heap']} {summary.mean('pops per draw', None, **c):.1f} pops a draw, "
        f"{summary.mean('seconds', None, **c):.1f} s"
        for c in summary.cells
    ]
    apart = summary.mean("distance of solutions", None)
    return f"The solutions of the two heaps differ by {apart:.2g} in L1 norm: {'; '.join(texts)}."


EXPERIMENTS = (
    Experiment(
        name="002-figure1",
        title="convergence gap of Algorithms 1 and 2",
        claim="Algorithm 2 takes the same steps as Algorithm 1 and returns the same solution.",
        verdict=verdict_gap,
        instead=FAST,
        reasons={
            "same steps": "this rests on lines 22 to 28 of Algorithm 2, which refresh only rows that own feature "
            "j, while "
            "line 19 shrinks every margin. An author could answer that the differences are numerical (footnote 3) and "
            "small on their tables, as they are in accuracy on ours; the recomputed gap of their solutions would "
            "decide. The gaps of a run are those before its last step, the recomputed one is that after it, so "
            "that the two columns are not of the same weights",
        },
        metrics={
            "final gap, Alg. 1": ".3g",
            "final gap, Alg. 2 (own account)": ".3g",
            "final gap, Alg. 2 (recomputed)": ".3g",
            "relative L1 distance of solutions": ".3f",
            "accuracy, Alg. 1": ".1f",
            "accuracy, Alg. 2": ".1f",
        },
        plot=plot_gap,
        **SHARED,
    ),
    Experiment(
        name="002-figure2",
        title="how many times fewer operations",
        claim="Algorithms 2 and 3 need orders of magnitude fewer operations than Algorithm 1.",
        verdict=verdict_operations,
        metrics={"fewer operations at iteration 1000": ".0f", "fewer operations": ".0f"},
        plot=plot_ratio,
        rows_of="002-figure1",
        **SHARED,
    ),
    Experiment(
        name="002-figure3",
        title="heap pops against non-zeros",
        claim="A draw pops at most 3 times as many items as the solution has non-zeros.",
        verdict=verdict_pops,
        metrics={
            "pops per draw / non-zeros, mean": ".3f",
            "pops per draw / non-zeros, largest": ".2f",
            "non-zeros": ".0f",
        },
        plot=plot_pops,
        rows_of="002-figure1",
        **SHARED,
    ),
    Experiment(
        name="002-figure4",
        title="gap against operations",
        claim="Algorithm 2 reaches the same gap with orders of magnitude fewer operations.",
        verdict=lambda s: (
            f"{verdict_operations(s)} The gap it reaches is that of another solution (002-figure1)."
        ),
        metrics={"fewer operations": ".0f", "final gap, Alg. 2 (recomputed)": ".3g"},
        plot=plot_operations,
        rows_of="002-figure1",
        **SHARED,
    ),
    Experiment(
        name="002-heap",
        title="Fibonacci heap against a binary heap (Algorithm 3)",
        configurations=lambda quick: [
            {
                "dataset": "rcv1",
                "fraction": 0.02 if quick else 0.1,
                "n_iter": 50 if quick else 300,
                "mode": "nonprivate",
            }
        ],
        trial=heap_trial,
        trials=(1, 1),
        many=True,
        metrics={"pops per draw": ".1f", "seconds": ".2f", "distance of solutions": ".2g"},
        claim="Fibonacci heaps have better complexity and high constant factors.",
        verdict=heap_verdict,
        protocol="Stand-in of rcv1 at a tenth of its size, 300 iterations, radius 50; both in Python, processor time.",
    ),
)
