"""Frank-Wolfe whose features leave the working set: free rules that read released picks.

Papers: Khanna, Lu, Raff, "The Challenge of Differentially Private Screening Rules" (2023) and its anonymous sequel,
"Differentially Private Iterative Screening Rules for Linear Regression". Their own rules are in `published/`.

The run is cut into public blocks. Inside a block the exponential mechanism picks one signed vertex a step among the
live features. After a block a rule drops features for good. It sees the released `Block` and nothing else, so it is
post-processing and costs nothing. The next block is laid out without the dropped columns, and the released picks are
replayed on what is left. Proof: docs/proofs/screening.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom

from dpsparse.methods.frank_wolfe.defaults import SCARCE_STEPS_FACTOR
from dpsparse.methods.frank_wolfe.problem import GONE, History, Problem
from dpsparse.methods.frank_wolfe.run import Steps
from dpsparse.release import Releases
from dpsparse.rows import Rows


@dataclass(frozen=True)
class Block:
    """What a block released, for the features live in it."""

    net_counts: np.ndarray  # times picked with + minus times picked with -, in this block
    late_counts: (
        np.ndarray
    )  # of all blocks: pick t = 0, 1, ... counts t + 2 times, as in the weights
    n_steps: int
    block: int
    n_blocks: int


@dataclass(frozen=True)
class TopK:
    """The largest |w_j|. Between blocks the number kept falls geometrically to `n_nonzero`."""

    n_nonzero: int

    def keep(self, history: Block) -> np.ndarray:
        m = history.late_counts.size
        keep = np.zeros(m, dtype=bool)
        left = history.n_blocks - history.block  # blocks still to come
        share = min(self.n_nonzero / max(m, 1), 1.0) ** (1.0 / (left + 1))
        k = max(self.n_nonzero, round(m * share))
        keep[np.argsort(-np.abs(history.late_counts), kind="stable")[:k]] = True
        return keep


@dataclass(frozen=True)
class Counts:
    """The net signed count of a feature against its law under uniform selection.

    After the first block a feature stays if |net count| reaches the smallest s with
    P(|net| >= s) <= level. If every selection were uniform, a feature would be kept with
    probability at most `level`. Where steps are so few that s = 2 leaves most of that chance
    unused and useful features are picked once, late single picks stay too (`late_threshold`).
    Later blocks only fit what is left: there uniform selection is what a good working set looks
    like, and testing against it again would drop true features.
    """

    level: float

    def keep(self, history: Block) -> np.ndarray:
        counts, n_features = np.abs(history.net_counts), history.net_counts.size
        if history.block > 1:
            return np.ones(n_features, dtype=bool)
        keep = np.asarray(counts >= count_threshold(history.n_steps, n_features, self.level))
        late = late_threshold(history.n_steps, n_features, self.level)
        if late is not None:
            keep |= (counts == 1) & (np.abs(history.late_counts) >= late)
        return keep


Rule = Counts | TopK


def count_threshold(n_steps: int, n_features: int, level: float) -> int:
    """Smallest s with P(|N+ - N-| >= s) <= level for n_steps uniform picks of 2 n_features vertices."""
    s = 0
    while net_tail(n_steps, n_features, s) > level and s <= n_steps:
        s += 1
    return s


def net_tail(n_steps: int, n_features: int, s: int) -> float:
    """P(|N+ - N-| >= s) of one feature for n_steps uniform picks of 2 n_features vertices."""
    if s <= 0:
        return 1.0
    picks = np.arange(n_steps + 1)
    chance = binom.pmf(picks, n_steps, 1.0 / n_features)
    relevant = chance > 0.0
    picks, chance = picks[relevant], chance[relevant]
    # given N picks, N+ ~ Bin(N, 1/2): |2 N+ - N| >= s on two mirrored tails
    return float(chance @ (2.0 * binom.sf(np.ceil((picks + s) / 2.0) - 1, picks, 0.5)))


def late_threshold(n_steps: int, n_features: int, level: float) -> int | None:
    """Smallest late count from which a single pick stays, where the threshold is two and picks are few; else None.

    P(|net| >= 2) + P(|net| = 1 by three picks or more) + P(one pick, late) <= level, whatever the late counts of the
    second kind are.
    """
    scarce = SCARCE_STEPS_FACTOR * n_steps < n_features
    if not scarce or count_threshold(n_steps, n_features, level) != 2:
        return None
    once = float(binom.pmf(1, n_steps, 1.0 / n_features))
    left = level - (net_tail(n_steps, n_features, 1) - once)
    last = math.floor(n_steps * min(max(left / once, 0.0), 1.0))  # steps whose single picks stay
    return n_steps - last + 2 if last > 0 else None


@dataclass(frozen=True)
class ScreenedRun:
    """The released course of a run: its picks by the names of the original columns, and the live columns."""

    history: History
    live: np.ndarray  # columns that survived
    n_live: tuple[int, ...]  # in each block, and after the last one

    def survivors(self) -> History:
        """The run with picks of dropped columns as steps back towards zero: their weights are zero."""
        features, constant = self.history.features, self.history.n_features
        stay = np.isin(features, self.live) | (features == constant)
        return replace(self.history, features=np.where(stay, features, GONE))


def draw_blocks(
    rows: Rows, problem: Problem, blocks: tuple[int, ...], rule: Rule, releases: Releases
) -> ScreenedRun:
    """Blocks of private steps, columns dropped for good after each."""
    d, live, n_live = rows.n_features, np.arange(rows.n_features), []
    history: History | None = None
    for block, n_steps in enumerate(blocks, start=1):
        part = rows if live.size == d else rows.columns(live)
        steps = next_steps(part, problem, history, live)
        drawn = releases.vertices("vertices", steps, n_steps)
        names = np.full(part.n_features + 1, GONE)
        names[: live.size], names[-1] = live, d
        history = replace(drawn, features=names[drawn.features], n_features=d)
        n_live.append(live.size)
        late = np.arange(len(history.signs)) + 2
        recent = (late > late.size + 1 - n_steps).astype(np.int64)
        net, late = (sum_over_features(history, values)[live] for values in (recent, late))
        live = live[rule.keep(Block(net, late, n_steps, block, len(blocks)))]
    assert history is not None
    return ScreenedRun(history, live, (*n_live, live.size))


def next_steps(part: Rows, problem: Problem, history: History | None, live: np.ndarray) -> Steps:
    """Steps on the live columns that go on from released picks.

    Picks of dropped columns become steps back towards zero: picks of the spare column, which has no entries.
    """
    if history is None:
        return Steps(part, problem)
    d, width = history.n_features, part.n_features
    place = np.full(d + 2, live.size)  # the last place is that of GONE
    place[live], place[d] = np.arange(live.size), width
    return Steps(
        part, problem, replace(history, features=place[history.features], n_features=width)
    )


def sum_over_features(history: History, values: np.ndarray) -> np.ndarray:
    """Signed values of the picks, summed by feature in whole numbers; the last place takes intercept and GONE."""
    sums = np.zeros(history.n_features + 1, np.int64)
    np.add.at(sums, history.features, history.signs * values)
    return sums
