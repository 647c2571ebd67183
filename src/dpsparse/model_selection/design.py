"""What the three designs share: the public setting of a search, and what a search ends with."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np

from dpsparse._checks import given
from dpsparse.estimators._base import BaseDPLinearModel
from dpsparse.exceptions import ParameterError
from dpsparse.model_selection.candidates import Candidate, configured, priced
from dpsparse.privacy import Phase, Plan
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.held_out import held_out
from dpsparse.solvers.solution import Solution

PARTS = 5  # one part in five is held out for scores


@dataclass(frozen=True)
class Setting:
    """A search before any row is read; everything in it is public."""

    estimator: BaseDPLinearModel
    candidates: list[Candidate]
    epsilon: float
    delta: float
    n_features: int
    labels: np.ndarray | None
    share: float | None
    weights: np.ndarray
    chance: float
    split: str

    @property
    def adjacency(self) -> str:
        return self.estimator.adjacency

    @property
    def unit(self) -> float:
        """Grid of scores: a row is right or wrong by half a unit, or near by a fraction of it, as is the mean of a
        person."""
        rows = self.estimator._domain.unit == "row"
        return 0.5 if self.labels is not None and rows else 2.0**-12

    def fit(self, candidate: Candidate, mu: float, *, share_of_rows: float = 1.0) -> Fit:
        """The fit of a candidate on a public share of the rows, priced about as a Gaussian of parameter `mu`."""
        model = configured(self.estimator, candidate, share_of_rows=share_of_rows)
        return Fit(model, priced(model, mu, self.delta, (self.n_features, self.labels)))


@dataclass(frozen=True)
class Winner:
    """The one result of a search: which candidate, its released weights, and what is known of its score."""

    index: int
    solution: Solution
    n_iter: int
    score: float | None = None


class Design(Protocol):
    """A priced search: phases to charge, and the run that spends them."""

    @property
    def name(self) -> str: ...

    @property
    def setting(self) -> Setting: ...

    @property
    def phases(self) -> tuple[Phase, ...]: ...

    @property
    def kept(self) -> float: ...

    @property
    def facts(self) -> dict[str, Any]: ...

    def run(self, rows: Rows, releases: Releases) -> Winner: ...


@dataclass(frozen=True)
class Fit:
    """One fit of a search: an estimator with its own priced plan."""

    model: BaseDPLinearModel
    plan: Plan = field(repr=False)

    def run(self, rows: Rows, releases: Releases) -> tuple[Solution, int]:
        """On releases that are `under` its plan."""
        solution = self.model._run(rows, self.plan, releases)
        return solution, solution.n_iter


def fits_of(design: Design) -> list[Fit]:
    """All fits that a design may run."""
    values = [getattr(design, each.name) for each in fields(design)]  # type: ignore[arg-type]
    held = [value if isinstance(value, tuple) else (value,) for value in values]
    return [fit for some in held for fit in some if isinstance(fit, Fit)]


def max_rows(design: Design) -> int | None:
    """Rows that every fit of a search is proven for; None: any number."""
    limits = [fit.plan.max_rows for fit in fits_of(design)]
    return min((limit for limit in limits if limit is not None), default=None)


def secret_split(rows: Rows, split: str, releases: Releases) -> tuple[Rows, Rows]:
    """Four fifths to fit and one fifth to score; which row, or person, is where is never told.

    Every one has its own draw, which serves both adjacencies; fixed sizes are for replace-one alone
    (docs/proofs/tuning.md, Lemma 1 and its counterexamples).
    """
    return held_out(rows, releases.blocks(rows, PARTS, equal=split == "sizes"))


def check_split(split: Any, adjacency: str) -> None:
    if split == "sizes" and adjacency == "add-remove":
        raise ParameterError(
            "split='sizes' is not private under add-remove: a row more moves other rows to another part. "
            "Use split='draws'."
        )
    if split not in ("draws", "sizes"):
        raise ParameterError(
            "split must be 'draws' (an own secret draw for every row) or, under replace-one, 'sizes'; a rule "
            f"that looks at rows or their order is not private. Got {given(split)}."
        )
