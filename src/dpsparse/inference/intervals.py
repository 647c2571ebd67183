"""Confidence intervals for logistic weights on a fixed support, private and valid for a population.

The support must be public, or chosen on other rows (a secret random split of the rows pays the larger of both
prices, not the sum): intervals after a choice on the same rows cover nothing. What they do cover stands in
the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse._checks import check_count, check_positive, check_share, quietly
from dpsparse.domain import Domain
from dpsparse.estimators._schema import column_names
from dpsparse.evaluation.intervals import quantile
from dpsparse.exceptions import ParameterError
from dpsparse.inference import _plan
from dpsparse.inference.newton import Found, newton, shares
from dpsparse.privacy.guarantee import ANALYSED, Guarantee
from dpsparse.privacy.plan import Plan
from dpsparse.private_run import private_run
from dpsparse.release import Releases
from dpsparse.rows.moments import WIDEST

if TYPE_CHECKING:
    from dpsparse.privacy.ledger import Ledger

NAME = "dp_inference"


@dataclass(frozen=True, eq=False)
class Inference:
    """One line for every weight of the support, the intercept last: estimate, low, high."""

    feature: tuple[Any, ...]
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    covariance: np.ndarray
    level: float
    row_clip: float
    plan_: Plan
    clipped: str = ""  # how the domain bounds rows, where it does

    @property
    def privacy_(self) -> Guarantee:
        return self.plan_.guarantee

    @property
    def covers(self) -> str:
        """What the intervals are intervals of, and what they leave out."""
        return (
            f"Each interval covers, with a probability that tends to {100 * self.level:g} % as rows grow in number, "
            "the weight that minimises the logistic loss over the population the rows were drawn from, "
            f"independently, on these columns, for rows (x, 1) scaled down to length {self.row_clip:g}{self.clipped}. "
            "It counts sampling and privacy noise, and holds whether or not the logistic model is true. It does not "
            "hold for columns chosen on the same rows, for all weights at once, or for causes."
        )

    def to_frame(self) -> Any:
        """The table as a pandas data frame."""
        import pandas

        columns = {"estimate": self.estimate, "low": self.low, "high": self.high}
        return pandas.DataFrame(columns, index=list(self.feature))

    def __len__(self) -> int:
        return len(self.estimate)

    def __str__(self) -> str:
        rows = zip(self.feature, self.estimate, self.low, self.high, strict=True)
        lines = [f"{'feature':>12}  {'estimate':>10}  {'low':>10}  {'high':>10}"]
        lines += [f"{name!s:>12}  {e:10.4g}  {a:10.4g}  {b:10.4g}" for name, e, a, b in rows]
        return "\n".join([*lines, self.covers, self.privacy_.headline])


def inference_plan(
    n_columns: int,
    domain: Domain,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    adjacency: str = "add-remove",
    n_steps: int = 2,
    random_state: int | None = None,
) -> Plan:
    """What `dp_inference` on a support of `n_columns` will spend, without any data."""
    _plan.check(domain, epsilon, delta, adjacency, None, random_state, NAME)
    check_count("n_steps", n_steps)
    if not 1 <= n_columns < WIDEST:
        raise ParameterError(f"support must name between 1 and {WIDEST - 1} columns.")
    size = n_columns + 1
    sizes = {"gradient": size, "curvature": size * (size + 1) // 2}
    sizes["spread"] = sizes["curvature"]
    parts = shares(n_steps)
    return _plan.price(
        NAME, parts, {phase: sizes[phase.split()[0]] for phase in parts}, domain,
        epsilon=epsilon, delta=delta, adjacency=adjacency, seed=random_state,
        assumptions=("the support and the start are public or were released before",), table=ANALYSED,
    )  # fmt: skip


def dp_inference(
    X: Any,
    y: Any,
    support: Any,
    domain: Domain,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    adjacency: str = "add-remove",
    ledger: Ledger | None = None,
    start: Any = None,
    n_steps: int | None = None,
    row_clip: float | None = None,
    level: float = 0.95,
    groups: Any = None,
    random_state: int | None = None,
) -> Inference:
    """Private confidence intervals for the weights of a logistic model on few columns.

    Parameters
    ----------
    X, y : private rows and labels of two classes.
    support : list of column numbers, or of names if X is a data frame
        Public, or chosen on other rows than these; at most 79.
    domain : Domain
        Needs `classes`, and `row_norm`, `feature_bound` or `bounds` by column unless `row_clip` is given. Rows outside
        these bounds are clipped to them, which changes what is estimated, and the result says so.
    epsilon, delta, adjacency : the price, paid by `ledger` if one is given.
    start : array of len(support) + 1 weights, or None
        Where the steps begin, intercept last: public, or the weights of an earlier private fit. None is zero.
    n_steps : int or None
        Noisy Newton steps. None: two from a start that is given, four from zero. One step leaves a bias.
    row_clip : float or None
        Rows (x, 1) longer than this are scaled down, which changes what is estimated. None: the bound of the
        domain, which scales nothing.
    level : float, default=0.95
    groups : the person of every row, with ``Domain(unit="person", rows_per_unit=1)``.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.

    Returns
    -------
    Inference
        ``estimate``, ``low``, ``high`` and ``covers``, which says what they cover.

    Notes
    -----
    Method and measured coverage: docs/inference.md. Proof: docs/proofs/inference.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, dp_inference
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5_000, 3)) / 2
    >>> y = (X[:, 0] > 0).astype(int)
    >>> found = dp_inference(X, y, [0, 2], Domain(classes=[0, 1], row_norm=1.0), epsilon=2.0)
    >>> bool(found.low[0] > 0)  # the weight of column 0 is surely positive
    True
    """
    steps = n_steps if n_steps is not None else 4 if start is None else 2
    columns, labels = _columns(support, X)
    plan = inference_plan(
        len(columns), domain, epsilon=epsilon, delta=delta, adjacency=adjacency, n_steps=steps,
        random_state=random_state,
    )  # fmt: skip
    _plan.check(domain, epsilon, delta, adjacency, ledger, random_state, NAME)
    check_share("level", level, "try 0.95")
    first = (
        np.zeros(len(columns) + 1)
        if start is None
        else quietly(_no_weights, np.asarray, start, float)
    )
    if first.shape != (len(columns) + 1,) or not np.all(np.isfinite(first)):
        raise _no_weights()
    clip = _row_clip(row_clip, domain, len(columns))
    rows, scales = _plan.read(X, y, domain, groups)
    if max(columns) >= rows.n_features:
        raise ParameterError(f"support names column {max(columns)} of {rows.n_features}.")

    chosen = np.zeros(rows.n_features, np.float32)
    chosen[columns] = 1.0
    # Rows hold their columns in rising order; what is asked and told is in the order of `support`.
    rising = np.append(np.argsort(columns), len(columns))
    asked = np.argsort(rising)
    # Weights of the columns as they are, and of the rows that the steps see.
    factors = np.full(len(columns) + 1, clip)
    if scales is not None:
        factors[:-1] *= scales[columns]

    def estimate_weights(releases: Releases) -> Found:
        units = releases.capped(rows).unit(chosen, constant=1.0, shortest=clip)
        return newton(units, (first * factors)[rising], steps, releases)

    found = private_run(plan, None, estimate_weights, ledger=ledger, random_state=random_state)
    covariance = found.covariance[np.ix_(asked, asked)] / np.outer(factors, factors)
    half = quantile(level) * np.sqrt(np.diag(covariance))
    estimate = found.psi[asked] / factors
    return Inference(
        (*labels, "intercept"), estimate, estimate - half, estimate + half, covariance, level, clip, plan,
        _clipped(domain),
    )  # fmt: skip


def _columns(support: Any, X: Any) -> tuple[np.ndarray, list[Any]]:
    """Numbers of the columns, and what to call them; names are looked up in the header of X."""
    names = column_names(X)
    columns = np.asarray(support)
    if names is not None and columns.ndim == 1 and columns.dtype.kind in "UO":
        places = {name: j for j, name in enumerate(names)}
        for name in columns:
            if name not in places:
                raise ParameterError(f"support names {name!r}, and X has no such column.")
        columns = np.array([places[name] for name in columns], np.intp)
    if columns.ndim != 1 or columns.dtype.kind not in "iu" or np.any(columns < 0):
        raise ParameterError(
            "support must be a list of column numbers, or of names if X is a data frame."
        )
    if len(np.unique(columns)) < len(columns):
        raise ParameterError("support must name every column once.")
    known = names is not None and max(columns, default=0) < len(names)
    return columns, [names[j] if known else int(j) for j in columns]  # type: ignore[index]


def _no_weights() -> ParameterError:
    return ParameterError("start must hold one finite weight per column of support, and one more.")


def _row_clip(row_clip: Any, domain: Domain, n_columns: int) -> float:
    if row_clip is not None:
        check_positive("row_clip", row_clip)
        return float(row_clip)
    bounds = [] if domain.row_norm is None else [domain.row_norm]
    # Columns with declared bounds are divided by them.
    entry = domain.entry_bound(math.inf if domain.bounds is None else 1.0)
    bounds.append(entry * math.sqrt(n_columns))
    if math.isinf(min(bounds)):
        raise ParameterError(
            "State row_clip, or Domain(row_norm=...): noise follows the longest row."
        )
    return math.hypot(1.0, min(bounds))


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
