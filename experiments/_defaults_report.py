"""What the records of defaults_grid.py say: the table of docs/defaults.md, and the goals it is held against.

Where a number of weights k is declared, estimators that keep more of them solve an easier task: their cells are marked
with a star, and the front estimator is compared with all rows and with those that keep to k.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

FIVE = 5
FEW_BY_DEFAULT = 10  # weights of DPTwoStage*, DPHardThreshold* and DPTransfer* as they come
KEEP_FEW = ("TwoStage", "HardThreshold", "Transfer", "ScreenedLasso")
PUBLISHED = ("ADMM",)  # to reproduce a paper: shown, and held against no goal of ours


class Cells:
    """Scores of all seeds by set, method and epsilon."""

    def __init__(self, records, training):
        self.scores, self.weights, self.seconds = (defaultdict(dict) for _ in range(3))
        self.shapes = {}
        for r in records:
            if r["training"] != training:
                continue
            cell = r["set"], r["method"], str(r["epsilon"])
            self.scores[cell][r["seed"]] = r["score"]
            self.weights[cell][r["seed"]] = r.get("nonzero") or 0
            self.seconds[cell[:2]][cell[2], r["seed"]] = r["seconds"]
            self.shapes[r["set"]] = r["shape"]

    def values(self, name, method, epsilon):
        return list(self.scores.get((name, method, str(epsilon)), {}).values())

    def mean(self, name, method, epsilon):
        found = self.values(name, method, epsilon)
        return float(np.mean(found)) if found else math.nan

    def lead(self, name, method, other, epsilon):
        """Mean lead of a method over another on the seeds that both have, or no number."""
        a = self.scores.get((name, method, str(epsilon)), {})
        b = self.scores.get((name, other, str(epsilon)), {})
        both = sorted(set(a) & set(b))
        # Splits decide more than methods do: as many seeds as the other has, or it is no comparison.
        if not both or len(both) < len(b):
            return math.nan
        return float(np.mean([a[s] - b[s] for s in both]))

    def keeps(self, one, method, epsilon):
        """Whether a cell has at most the declared number of weights."""
        most = max(self.weights.get((one.name, method, str(epsilon)), {0: 0}).values())
        return one.n_nonzero is None or most <= one.n_nonzero

    def text(self, one, method, epsilon):
        found = self.values(one.name, method, epsilon)
        if not found:
            return ""
        out = f"{np.mean(found):.3f}"
        if len(found) > 1:
            out += f" ± {np.std(found) / math.sqrt(len(found) - 1):.3f}"
        out += "" if self.keeps(one, method, epsilon) else "*"
        return out + (f" ({len(found)})" if len(found) < FIVE else "")


def behind(cells, sets, methods, epsilons):
    """Cells where another estimator leads the front one by more than .01: of all, and of those that keep to k."""
    every, fair, checked = [], [], 0
    for one in sets:
        for e in epsilons:
            leads = {m: cells.lead(one.name, m, "Sparse", e) for m in methods(one) if m != "Sparse"}
            leads = {m: lead for m, lead in leads.items() if not math.isnan(lead)}
            checked += bool(leads)
            for found, some in (
                (every, leads),
                (fair, {m: v for m, v in leads.items() if cells.keeps(one, m, e)}),
            ):
                if some and max(some.values()) > 0.01:
                    first = max(some, key=lambda m: some[m])
                    found.append(f"{one.name} at {e} ({some[first]:.3f}, DP{first})")
    return every, fair, checked


def table_text(cells, sets, methods, epsilons):
    """One block for every data set, after a summary."""
    lines = []
    for one in sets:
        rows = [m for m in methods(one) if any(cells.values(one.name, m, e) for e in epsilons)]
        if not rows:
            continue
        n, d = cells.shapes[one.name]
        what = "R2" if one.target_range else "accuracy" if one.name == "news20" else "AUC"
        declared = f", {one.n_nonzero} weights declared" if one.n_nonzero else ""
        plain = cells.mean(one.name, "sklearn", "inf")
        few = cells.mean(one.name, "sklearn-k", "inf")
        lines += [
            "",
            f"**{one.name}**, {n:,} training rows, {d:,} columns{declared}; {what}, scikit-learn without privacy "
            + ("not run" if math.isnan(plain) else f"{plain:.3f}")
            + ("" if math.isnan(few) else f", with {one.n_nonzero} weights {few:.3f}"),
            "",
            "| | .1 | .5 | 1 | 3 | inf | seconds a fit |",
            "|---|---|---|---|---|---|---|",
        ]
        for m in rows:
            shown = [cells.text(one, m, e) for e in epsilons]
            label = f"DP{m}".replace("-k", f", {one.n_nonzero} weights")
            if m == "Sparse":
                label, shown = f"**{label}**", [f"**{text}**" if text else "" for text in shown]
            seconds = np.median(list(cells.seconds[one.name, m].values()))
            lines.append(f"| {label} | {' | '.join(shown)} | {seconds:.2f} |")
    every, fair, checked = behind(cells, sets, methods, epsilons)
    worst = min(
        (cells.mean(one.name, "Sparse", e), one.name, e)
        for one in sets
        if one.target_range
        for e in epsilons
        if cells.values(one.name, "Sparse", e)
    )
    fits = sum(map(len, cells.scores.values()))

    def listed(found):
        return f"{len(found)} of {checked} cells" + (f" ({'; '.join(found)})" if found else "")

    summary = (
        f"{len(cells.shapes)} data sets, {fits:,} fits. A star marks cells that keep more weights than are declared. "
        "The front estimator is more than .01 behind the best of all others in "
        f"{listed(every)}, and behind the best of those that keep to the declared number of weights in {listed(fair)}. "
        f"Its lowest mean R2 is {worst[0]:.3f} ({worst[1]} at {worst[2]})."
    )
    return "\n".join([summary, *lines])


def fits_class(one, method, n_samples, n_features):
    """Whether the models of a method can be as good as plain ones: few weights where few matter, or on few columns."""
    if method == "Ridge" and n_features > n_samples:
        return False  # it keeps all weights
    return one.n_nonzero is not None or method not in KEEP_FEW or n_features <= FEW_BY_DEFAULT


def check_lines(cells, sets, methods, epsilons):
    """The goals one by one, with what was measured and what fails."""
    every, fair, checked = behind(cells, sets, methods, epsilons)
    lines = [
        f"front more than .01 behind: {len(every)} of {checked} cells, {len(fair)} among rows that keep to k"
    ]
    lines += [f"  {text}" for text in every]
    low, missed, seen, unfit = [], [], 0, 0
    for one in sets:
        for m in methods(one):
            if m in PUBLISHED or not cells.values(one.name, m, "inf"):
                continue
            if not fits_class(one, m, *cells.shapes[one.name]):
                unfit += 1
                continue
            few = cells.mean(one.name, "sklearn-k", "inf")
            best = cells.mean(one.name, "sklearn", "inf") if math.isnan(few) else few
            if math.isnan(best):
                continue
            seen += 1
            part = cells.mean(one.name, m, "inf") / best
            if part < 0.95:
                missed.append(f"  DP{m} on {one.name}: {part:.3f}")
            if m == "Sparse" and cells.mean(one.name, m, "inf") < best - 0.01:
                low.append(
                    f"  {one.name}: {cells.mean(one.name, m, 'inf'):.3f}, scikit-learn {best:.3f}"
                )
    lines.append(
        f"epsilon inf, at least .95 of scikit-learn (with as many weights, where text declares them): "
        f"{seen - len(missed)} of {seen} rows; {unfit} rows of few weights on many columns are not judged"
    )
    lines += missed
    lines.append(f"epsilon inf, front within .01 of scikit-learn: {len(low)} sets are not")
    lines += low
    easy = {
        m: cells.mean("easy", m, 3.0) / cells.mean("easy", "sklearn", "inf")
        for m in methods(next(one for one in sets if one.name == "easy"))
        if cells.values("easy", m, 3.0)
    }
    weak = [f"DP{m} {part:.3f}" for m, part in easy.items() if part < 0.9]
    lines.append(
        f"easy set at epsilon 3, at least .9 of scikit-learn: {len(easy) - len(weak)} of {len(easy)} estimators"
    )
    lines += [f"  {text}" for text in weak]
    for e, goal in ((0.15, 0.36), (0.54, 0.50)):
        found = cells.values("abalone", "Sparse", e)
        if found:
            error = np.std(found) / math.sqrt(max(len(found) - 1, 1))
            lines.append(
                f"abalone at {e}: {np.mean(found):.3f} ± {error:.3f} ({len(found)} seeds; goal {goal})"
            )
    return lines
