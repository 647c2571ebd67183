"""DPRidgeRegressor: narrow tables, looked at privately and fitted by objective perturbation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsparse.estimators._base import BaseDPLinearModel, BaseDPRegressor, check_count
from dpsparse.estimators._phases import effective_rows, mean_plan
from dpsparse.estimators._support import (
    JITTER_SHARE,
    TOL,
    check_grid,
    check_range,
    check_ridge,
    check_tilt,
    leaf_numbers,
    least_ridge,
    longest_row,
    rounded_release,
    tilted_fit,
)
from dpsparse.privacy import REST, Budget, Event, Plan
from dpsparse.rows.moments import WIDEST
from dpsparse.rows.ridge import LARGEST_TABLE, ONE_ROW
from dpsparse.sensitivity import ridge_minimiser
from dpsparse.solvers.look import COUNTS
from dpsparse.solvers.table_regression import Find, TableRegression, row_clip

ENOUGH = 50.0  # N from which it pays to look at the table
NOTHING, FEW_COLUMNS = 20.0, 40  # N below which a fit on few columns is mostly its ridge, and safe
SLOPE, WIDE_SLOPE = (
    7.0,
    8.0,
)  # the volume of the objective takes about one part of so many of epsilon
RICH, RICH_COLUMN, RICH_SLOPE = (
    300.0,
    4.0,
    5.0,
)  # from so many N, and N a column, less is spent on looking
LOOKS_LESS = 0.6  # of the shares below
NARROW = 100  # columns up to which their scales are released one by one
# From so many N a column noise matters less than the bias of a small cutoff (the second where columns have no scales
# of their own), and directions of the rows are told from noise: the noise of their second moments, entry by entry, is
# below half of what a column has.
FULL, WIDE_FULL = 10.0, 20.0
FEW_CUTOFF, CUTOFF, WIDE_CUTOFF = 0.8, 1.0, 1.5  # of the .75-quantile of |y - mean|: below; above
FEW_DROWNED, DROWNED = 3.0, 5.0  # how weights are pulled that the noise would drown: below; else
# Shares of what the mean leaves (of mu^2); the second line where directions are released.
SHARES = {"spread": 0.05, "length": 0.05, "centre": 0.08, "columns": 0.08}
TURNED = {"spread": 0.05, "length": 0.05, "centre": 0.05, "columns": 0.04, "axes": 0.06}
BALANCE = 2.0  # of n/(columns times mu): the square of a ridge for output perturbation
ENTRY_SHARE = 0.02  # of all, where columns are found first
NOTES = {
    "mean": "noisy sum of the targets",
    "spread": f"{COUNTS} noisy counts: where residuals begin to count linearly",
    "length": f"2 x {COUNTS} noisy counts: median length of the rows, before and after scaling",
    "centre": "noisy sum of shortened rows",
    "columns": "noisy sums of squares: scale of every column",
    "axes": "noisy second moments of scaled rows: directions in which they are long",
    "entry": f"{COUNTS} noisy counts: typical size of an entry",
    "fit": "objective perturbation on weighted rows",
    "output": "output perturbation on weighted rows",
}


@dataclass(eq=False, repr=False, kw_only=True)
class _DPRidge(BaseDPLinearModel):
    n_nonzero: int | None = None
    ridge: float | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class DPRidgeRegressor(BaseDPRegressor, _DPRidge):
    """Robust ridge regression on a narrow table (up to some hundred columns), not sparse.

    Where the rows allow it, a part of the budget looks at the table: mean and spread of the targets, centre, scales,
    long directions and length of the rows. Rows far out count less, and the rest of the budget pays for one fit by
    objective perturbation. With fewer rows only declared bounds are used, and with very few only the mean of the
    targets: below ``n_samples * mu`` of about 20 nothing else can be learnt at this epsilon.

    Parameters
    ----------
    domain : Domain
        Needs `n_samples`, `target_bound` or `target_range`, and `feature_bound` or `row_norm`.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` is least squares with a trace of a ridge.
    n_nonzero : int or None, default=None
        Weights to keep: the largest on standardised rows (free); None keeps all.
    ridge : float or None, default=None
        Ridge of the summed loss on standardised rows; None takes a public default.
    adjacency : {"add-remove", "replace-one"}
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int, default=0
        1 tells every phase with its seconds, 0 shows a line on a terminal while a fit takes long, -1 nothing.

    Notes
    -----
    Method: docs/defaults.md; proof: docs/proofs/table_regression.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPRidgeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2000, 5))
    >>> domain = Domain(n_samples=2000, target_range=(-2, 2))
    >>> model = DPRidgeRegressor(domain).fit(X, X[:, 0])
    >>> model.coef_.shape
    (5,)
    """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero, optional=True)
        if self.ridge is not None:
            check_range("ridge", self.ridge)

    def _why_one_row(self) -> str:
        return ONE_ROW

    def _most_rows(self, n_features: int) -> int | None:
        return LARGEST_TABLE

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        name, domain = type(self).__name__, self._domain
        n = int(domain.require("n_samples", name))
        N = effective_rows(n, self.epsilon, self.delta, self.adjacency)
        way = choose_way(N, n_features)
        if way == "mean":
            return mean_plan(self, N)
        return table_plan(self, n_features, way, ridge=self.ridge, n_nonzero=self.n_nonzero)


def table_plan(
    model: BaseDPLinearModel,
    n_columns: int,
    way: str,
    *,
    ridge: float | None = None,
    n_nonzero: int | None = None,
    find: Find | None = None,
    output: bool = False,
) -> Plan:
    """One fit on `n_columns` columns: on all there are, or on those that are found first. `output` adds the noise to
    the minimiser instead of its objective."""
    name, domain = type(model).__name__, model._domain
    n, private = int(domain.require("n_samples", name)), not math.isinf(model.epsilon)
    N = effective_rows(n, model.epsilon, model.delta, model.adjacency)
    clip = row_clip(way)
    own = N if find is None else N * math.sqrt(1.0 - find.split)  # what finding leaves
    full = FULL if n_columns <= NARROW else WIDE_FULL
    few = way == "released" and own < full * n_columns
    turn = way == "released" and not few and n_columns <= WIDEST
    scale_columns = n_columns <= NARROW
    shares: dict[str, float] = {}
    if way == "released":
        of_mean = min(max(360.0 / N**2, 0.03), 1.0)
        less = LOOKS_LESS if is_rich(N, n_columns) else 1.0
        table = TURNED if turn else SHARES
        shares = {key: less * share * (1.0 - of_mean) for key, share in table.items()}
        shares = {"mean": of_mean, **shares}
        if n_columns > NARROW:
            del shares["columns"]
    of_support = 0.0
    if find is not None:
        of_support = find.split * (1.0 - shares["mean"] - shares["spread"] - ENTRY_SHARE)
        of_rows = {"length", "centre", "columns", "axes"}
        shares = {k: v * (1.0 - find.split if k in of_rows else 1.0) for k, v in shares.items()}
        shares = {**shares, "entry": ENTRY_SHARE}
    rest = 1.0 - sum(shares.values()) - of_support
    triangle = n_columns * (n_columns + 1) // 2
    sizes = {"mean": 1, "spread": COUNTS, "length": 2 * COUNTS, "entry": COUNTS, "axes": triangle}
    mu = N / n * math.sqrt(rest)
    ridge = ridge or default_ridge(model, few, n, n_columns, clip, mu, output)
    if private:
        check_ridge("ridge", ridge, clip**2, n_columns + 1, n)
    tol, size = TOL * clip, n_columns + 1

    budget = Budget(model.epsilon, model.delta)
    for key, share in shares.items():
        budget.gaussian(key, share, sizes.get(key, n_columns), NOTES[key])
    if find is not None:
        budget.picks("support", of_support, n_columns, "columns that go with the targets")

    def fit_event(ratio: float) -> Event:
        if output:
            moved = ridge_minimiser(1.0, clip, 1.0, ridge, model.adjacency, tol).value
            return rounded_release(moved, ratio, size)
        return tilted_fit(clip, clip**2, ridge, "glm", ratio, size, tol, model.adjacency)

    budget.event("fit", REST, fit_event, NOTES["output" if output else "fit"])
    phases = budget.phases()
    if private:
        ratio = budget.parameter("fit")
        check_grid(name, ratio * math.sqrt(1.0 if output else JITTER_SHARE), size)
        if not output:
            check_tilt(name, ratio, size, model.adjacency)
    public = TableRegression(
        way=way,
        n_samples=n,
        longest=longest_row(domain, n_columns),
        ridge=ridge,
        tol=tol,
        scale_columns=scale_columns,
        target_bound=float(domain.require("target_bound", name)),
        cutoff=FEW_CUTOFF if few else CUTOFF if scale_columns else WIDE_CUTOFF,
        turn=turn,
        n_nonzero=n_nonzero,
        find=find,
        output=output,
    )
    return model._planned(
        phases,
        public,
        source="docs/proofs/table_regression.md",
        parameters={
            "n_iter": 1,
            "scale": 0.0,
            **leaf_numbers([(phase.name, phase.event, phase.note) for phase in phases]),
            "way": way,
            "effective_rows": N,
            "ridge": ridge,
            "fit_share": rest,
            **{f"{key}_share": share for key, share in shares.items()},
            **({} if find is None else {"support_share": of_support}),
        },
    )


def default_ridge(
    model: BaseDPLinearModel,
    few: bool,
    n: int,
    n_features: int,
    clip: float,
    mu: float,
    output: bool = False,
) -> float:
    """In units of a row's curvature: half of the budget is kept for the slope, and weights that the noise would
    drown are pulled to zero. Output perturbation: noise ~ 1/ridge and shrinkage ~ ridge/n balance."""
    if output:
        balanced = math.sqrt(BALANCE * n / (n_features * mu))
        return max(balanced, 2.0 * least_ridge(n_features + 1)) * clip**2
    rich = is_rich(effective_rows(n, model.epsilon, model.delta, model.adjacency), n_features)
    slope = WIDE_SLOPE if n_features > NARROW else RICH_SLOPE if rich else SLOPE
    drowned = (FEW_DROWNED if few else DROWNED) * n_features / (n * mu**2)
    return float(max(slope / min(model.epsilon, 8.0), drowned) * clip**2)


def is_rich(effective: float, n_features: int) -> bool:
    """Whether rows are so many that centre, scales and lengths are known well for a smaller share."""
    return effective >= max(RICH, RICH_COLUMN * n_features)


def choose_way(effective: float, n_features: int) -> str:
    """How much of the table is looked at, from N and the width alone."""
    width = math.sqrt(n_features)
    if effective >= max(ENOUGH, 2.5 * width):
        return "released"
    tiny = effective < NOTHING and n_features <= FEW_COLUMNS
    return "declared" if tiny or effective >= 4.5 * width else "mean"
