"""Confidence intervals for logistic weights on a fixed support, private and valid for a population.

The support must be public, or chosen on other rows (a secret random split of the rows pays the larger of both
prices, not the sum): intervals after a choice on the same rows cover nothing. What they do cover stands in
the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse._checks import check_share, did_you_mean
from dpsparse.accounting.guarantee import ANALYSED, Guarantee, Plan
from dpsparse.domain import Domain
from dpsparse.evaluation.intervals import quantile
from dpsparse.evaluation.scores import prepared as prepare_rows
from dpsparse.exceptions import ParameterError
from dpsparse.inference import plan as planning
from dpsparse.inference.solve import Found, estimate_weights
from dpsparse.methods.schema import column_names
from dpsparse.release import Releases, private_run
from dpsparse.rows.moments import WIDEST

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger
    from dpsparse.preprocessing import DPPipeline

# Shares of mu^2 of intervals, in the order of the releases. The last step is the one that is published.
INTERVAL_SHARES = {
    "look": 0.05,
    "axes": 0.09,
    "gradient 1": 0.05,
    "gradient 2": 0.05,
    "curvature 2": 0.06,
    "gradient 3": 0.05,
    "curvature 3": 0.07,
    "gradient 4": 0.39,
    "curvature 4": 0.14,
    "spread 4": 0.05,
}


@dataclass(frozen=True, eq=False)
class Inference:
    """One line for every weight of the support, the intercept last: estimate, low, high, and odds ratios.

    Where the released numbers show that an interval would not cover, none is given: `low` and `high` are infinite, and
    `missing` says why and what to do.
    """

    feature: tuple[Any, ...]
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    covariance: np.ndarray
    level: float
    positive: Any  # the label that positive weights speak for
    plan_: Plan
    clipped: str = ""  # how the domain bounds rows
    missing: str = ""

    @property
    def privacy_(self) -> Guarantee:
        return self.plan_.guarantee

    @property
    def covers(self) -> str:
        """What the intervals are intervals of, and what they leave out."""
        if self.missing:
            return f"No interval is given: {self.missing}."
        one_row = self.plan_.unit == "one row"
        units = "rows" if one_row else "persons"
        once = "" if one_row else "Every person counts once, by the mean over their rows. "
        return (
            f"Imagine the logistic regression of a whole population of {units} on these columns{self.clipped}. Each "
            "interval covers the weight of its column in that regression with a probability that approaches "
            f"{100 * self.level:g} % as the number of {units} grows, if they were drawn independently from that "
            f"population. {once}An interval counts sampling and privacy noise. The logistic model need not be true. "
            "Single rows that are very far from all others and badly predicted count for less than in the plain "
            "estimate. An interval does not hold for columns chosen on the same rows, for all weights at once, or for "
            "causes."
        )

    @property
    def odds_ratios(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """exp of estimate, low and high: the odds of the positive label for one unit more of a column; an intercept
        has none."""
        with np.errstate(over="ignore"):
            found = [np.exp(part) for part in (self.estimate, self.low, self.high)]
        for part in found:
            part[-1] = np.nan
        return found[0], found[1], found[2]

    def to_frame(self) -> Any:
        """The table as a pandas data frame."""
        import pandas

        columns = {"estimate": self.estimate, "low": self.low, "high": self.high}
        columns |= dict(zip(("odds_ratio", "odds_low", "odds_high"), self.odds_ratios, strict=True))
        return pandas.DataFrame(columns, index=list(self.feature))

    def __len__(self) -> int:
        return len(self.estimate)

    def __str__(self) -> str:
        heads = ("estimate", "low", "high", "odds ratio", "low", "high")
        lines = [f"{'feature':>12}" + "".join(f"  {head:>10}" for head in heads)]
        numbers = zip(self.estimate, self.low, self.high, *self.odds_ratios, strict=True)
        for name, row in zip(self.feature, numbers, strict=True):
            cells = "".join(f"  {'' if np.isnan(v) else f'{v:.4g}':>10}" for v in row)
            lines.append(f"{name!s:>12}{cells}".rstrip())
        speaks = f"Positive weights speak for: {self.positive}."
        told = "\n".join([*lines, speaks, self.covers, self.privacy_.headline])
        return told + self.privacy_.caution_lines


def _size(phase: str, k: int) -> int:
    """Numbers of a release: a vector, or the upper triangle of a matrix, which in the look has the label as well."""
    if phase.startswith("gradient"):
        return k
    side = k + 1 if phase == "look" else k
    return side * (side + 1) // 2


def dp_inference(
    X: Any,
    y: Any,
    support: Any,
    domain: Domain | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    adjacency: str = "add-remove",
    ledger: Ledger | None = None,
    pipeline: DPPipeline | None = None,
    level: float = 0.95,
    groups: Any = None,
    random_state: int | None = None,
) -> Inference:
    """Private confidence intervals for the weights of a logistic model on few columns.

    Parameters
    ----------
    X, y : arrays or data frame
        Private rows, and labels of two classes.
    support : list of column numbers, or of names if X is a data frame
        Public, or chosen on other rows than these; at most 78.
    domain : Domain, default=None
        Needs `classes`, and `bounds` by column, `feature_bound` or `row_norm`. Rows outside these bounds are clipped to
        them, which changes what is estimated, and the result says so. The tighter they are, the narrower the intervals.
    epsilon, delta, adjacency, ledger : as in every estimator
        Price of all intervals together, and the account that pays it.
    pipeline : fitted DPPipeline or None, default=None
        Prepares the rows; `support` names prepared columns, weights are for them, and `domain` is that of the pipeline.
        What it learnt from the rows is paid by its own guarantee.
    level : float, default=0.95
        Probability with which each interval covers.
    groups : array of shape (n_samples,) or None, default=None
        The person of every row, with ``Domain(unit="person")``. Persons are then protected, and each counts once, by
        the mean over their rows.
    random_state : int or None, default=None
        None draws secure noise. An int is for experiments and voids the guarantee.

    Returns
    -------
    Inference
        ``estimate``, ``low``, ``high``, ``odds_ratios`` and ``covers``, which says what they cover.

    Notes
    -----
    Method and measured coverage: docs/inference.md. Proof: docs/proofs/inference.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, dp_inference
    >>> X = np.random.default_rng(0).uniform(0, 100, size=(5_000, 3))
    >>> y = (X[:, 0] + 20 * np.random.default_rng(1).standard_normal(5_000) > 50).astype(int)
    >>> found = dp_inference(X, y, [0, 2], Domain(classes=[0, 1], bounds=[(0, 100)] * 3), epsilon=2.0)
    >>> bool(found.low[0] > 0)  # the weight of column 0 is surely positive
    True
    """
    header = column_names(X)
    if pipeline is not None:
        if domain is not None:
            raise ParameterError("domain comes from the pipeline; leave it out.")
        header, X = pipeline.get_feature_names_out().tolist(), prepare_rows(pipeline, X)
        domain = replace(pipeline.domain, feature_bound=1.0, row_norm=None, bounds=None)
    columns, names = _columns(support, header)
    domain = planning.check(domain, epsilon, delta, adjacency, ledger, random_state, "dp_inference")
    most = WIDEST - 2  # beside the constant and the label
    if not 1 <= len(columns) <= most:
        raise ParameterError(f"support must name between 1 and {most} columns.")
    sizes = {phase: _size(phase, len(columns) + 1) for phase in INTERVAL_SHARES}
    plan = planning.price(
        "dp_inference", INTERVAL_SHARES, sizes, domain,
        epsilon=epsilon, delta=delta, adjacency=adjacency, seed=random_state,
        assumptions=("the support is public or was released before",), table=ANALYSED,
    )  # fmt: skip
    check_share("level", level, "try 0.95")
    rows, limits = planning.read(X, y, domain, groups)
    if max(columns) >= rows.n_features:
        raise ParameterError(f"support names column {max(columns)} of {rows.n_features}.")
    to_box, to_units = _box(domain, limits, columns)

    def estimate(releases: Releases) -> Found:
        some = releases.capped(rows).columns(np.sort(columns))
        return estimate_weights(some, to_box, releases)

    found = private_run(plan, None, estimate, ledger=ledger, random_state=random_state)
    weights, covariance = to_units.T @ found.weights, np.full_like(found.covariance, np.inf)
    half, missing = np.full(len(weights), np.inf), ""
    if found.missing:
        missing = (
            f"{found.missing}. More rows or epsilon, fewer columns or closer bounds would help"
        )
    else:
        covariance = to_units.T @ found.covariance @ to_units
        half = quantile(level) * np.sqrt(np.diag(covariance))
    return Inference(
        (*names, "intercept"), weights, weights - half, weights + half, covariance, level,
        domain.class_labels()[1], plan, _clipped(domain), missing,
    )  # fmt: skip


def _box(
    domain: Domain, limits: np.ndarray | None, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Two maps to (u, 1), u in [-1, 1]: from stored rows, whose columns rise, and from rows in the units and order of
    `support`."""
    if limits is not None:
        low, high = limits[columns].T
        stored = np.abs(limits[columns]).max(axis=1)  # what stored columns were divided by
    else:
        bounds = [b for b in (domain.feature_bound, domain.row_norm) if b is not None]
        if not bounds:
            raise ParameterError(
                "Declare how large columns may be: Domain(bounds=...), feature_bound or row_norm. Noise follows the "
                "longest row."
            )
        high = np.full(len(columns), min(bounds))
        low, stored = -high, np.ones(len(columns))
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    k = len(columns) + 1
    to_units = np.eye(k)
    to_units[:-1, :-1] /= half[:, None]
    to_units[:-1, -1] = -middle / half
    to_stored = to_units.copy()
    to_stored[:-1, :-1] *= stored
    # Stored columns rise; coordinates stay in the order of `support`.
    rank = np.argsort(np.argsort(columns))
    to_box = np.zeros((k, k))
    to_box[:-1, rank] = to_stored[:-1, :-1]
    to_box[:, -1] = to_stored[:, -1]
    return to_box, to_units


def _columns(support: Any, names: list[str] | None) -> tuple[np.ndarray, list[Any]]:
    """Numbers of the columns, and what to call them; `names` are those of all columns, where they have any."""
    columns = np.asarray(support)
    if names is not None and columns.ndim == 1 and columns.dtype.kind in "UO":
        places = {name: j for j, name in enumerate(names)}
        for name in columns.tolist():
            if name not in places:
                raise _no_such_column(name, names, columns.tolist())
        columns = np.array([places[name] for name in columns], np.intp)
    if columns.ndim != 1 or columns.dtype.kind not in "iu" or np.any(columns < 0):
        raise ParameterError(
            "support must be a list of column numbers, or of names if X is a data frame."
        )
    if len(np.unique(columns)) < len(columns):
        raise ParameterError("support must name every column once.")
    known = names is not None and max(columns, default=0) < len(names)
    return columns, [names[j] if known else int(j) for j in columns]  # type: ignore[index]


def _no_such_column(name: str, names: list[str], said: list[str]) -> ParameterError:
    """A pipeline makes several columns of one, which `support` names one by one."""
    made = [known for known in names if known.startswith((f"{name} = ", f"{name} # ", f"{name}: "))]
    shown = ", ".join(map(repr, made[:20]))
    hint = f" Its prepared columns are {shown}." if made else did_you_mean(name, names, said)
    return ParameterError(f"support names {name!r}, and X has no such column.{hint}")


def _clipped(domain: Domain) -> str:
    """What the declared bounds do to rows that do not keep them."""
    parts = []
    if domain.bounds is not None:
        parts.append("columns to their declared bounds")
    if domain.feature_bound is not None:
        parts.append(f"entries to +-{domain.feature_bound:g}")
    if domain.row_norm is not None:
        divided = " (columns divided by their bounds)" if domain.bounds is not None else ""
        parts.append(f"rows of all columns{divided} to length {domain.row_norm:g}")
    return f", after clipping {' and '.join(parts)}" if parts else ""
