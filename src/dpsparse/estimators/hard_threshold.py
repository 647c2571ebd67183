"""DPHardThresholdClassifier and DPHardThresholdRegressor: IGHT with noise, or by peeling."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpsparse._checks import given
from dpsparse.estimators._base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
    check_choice,
    check_count,
    check_positive,
    output_count,
)
from dpsparse.estimators._phases import FEW, mean_alone
from dpsparse.estimators.gradient import NARROW
from dpsparse.estimators.gradient import NOTES as GRADIENT_NOTES
from dpsparse.exceptions import DomainError, ParameterError
from dpsparse.privacy import (
    Event,
    Exponential,
    NonPrivate,
    Phase,
    Plan,
    Repeated,
    RoundedGaussian,
    Sequence,
    calibrate,
)
from dpsparse.privacy.budget import Budget
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.solvers.gradient import INTERCEPT_ROUNDS, MEDIAN_ROUNDS, Recipe
from dpsparse.solvers.hard_threshold import Threshold, solve
from dpsparse.solvers.scaled_threshold import solve as solve_scaled
from dpsparse.solvers.solution import Solution

PRIOR_SHARE = 0.05  # of the budget, for class counts (regression: also for the spread)
_NARROW = 1000  # up to this width feature_bound * sqrt(d) is a bound on rows worth using
# A step along one of d columns of dense rows is seen in N/sqrt(d) units of noise; below so many of them, on training
# rows of 800 x 1000, a fit is worse than the mean as often as not.
PER_COLUMN = 15.0
_METHODS = ("auto", "scaled", "gaussian", "peeling")
# Shares of the budget (of mu^2) of the releases that stand for declared scales; the steps get the rest.
SCALED = {
    "prior": 0.05, "masses": 0.12, "spread": 0.03, "length": 0.03, "curvature": 0.08, "line": 0.05,
    "intercept": 0.04,
}  # fmt: skip
_NOTES = {
    **GRADIENT_NOTES,
    "curvature": "2 noisy sums of squares: how far a step along a feature may go",
    "line": "one noisy number a step: how far its step may go",
    "gradients": "all steps together",
}


@dataclass(eq=False, repr=False, kw_only=True)
class _DPHardThreshold(BaseDPLinearModel):
    n_nonzero: int = 10
    n_iter: int = 10
    step_size: float | None = None
    ridge: float = 0.0
    method: str = "auto"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero)
        check_count("n_iter", self.n_iter)
        if self.step_size is not None:
            check_positive("step_size", self.step_size)
        if not (isinstance(self.ridge, (int, float)) and 0 <= self.ridge < math.inf):
            raise ParameterError(f"ridge must be a number >= 0, got {given(self.ridge)}.")
        check_choice("method", self.method, _METHODS)

    def _why_one_row(self) -> str:
        return ""

    def _row_bound(self, n_features: int) -> float:
        domain = self._domain
        if domain.row_norm is not None:
            return float(domain.row_norm)
        if n_features <= _NARROW:
            return domain.entry_bound() * math.sqrt(n_features)
        raise DomainError(
            f"{type(self).__name__} clips rows in L2; declare Domain(row_norm=1.0) for wide data."
        )

    def _chosen_method(self, n_features: int, n_outputs: int, row: float) -> str:
        """Peeling where its noise, feature_bound sqrt(s log(d/s)), is below the L2 bound."""
        if self.method != "auto":
            return self.method
        rest = math.log(max(2.0, n_features * n_outputs / self.n_nonzero))
        smaller = self._domain.entry_bound() * math.sqrt(self.n_nonzero * rest) < row
        return "peeling" if smaller else "gaussian"

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        n_outputs = output_count(labels)
        if self._scaled:
            few = max(FEW, PER_COLUMN * math.sqrt(n_features))
            fewest = mean_alone(self, few) if self.method == "auto" else None
            if fewest is not None:
                return fewest
            return self._scaled_plan(n_features, n_outputs, labels)
        row = self._row_bound(n_features)
        method = self._chosen_method(n_features, n_outputs, row)
        private = not math.isinf(self.epsilon)
        picks = min(self.n_nonzero, n_features * n_outputs) * self.n_iter
        steps = 1.0 - PRIOR_SHARE

        def events(mu: float) -> list[tuple[str, Event]]:
            half = math.sqrt(PRIOR_SHARE / 2.0)
            parts: list[tuple[str, Event]] = [
                (
                    "prior",
                    RoundedGaussian(1.0 / (mu * half), 1.0, 2 if labels is None else len(labels)),
                ),
            ]
            if labels is None:
                parts.append(("spread", RoundedGaussian(1.0 / (mu * half), 1.0, MEDIAN_ROUNDS)))
            scale = math.sqrt(self.n_iter / steps) / mu
            if method == "gaussian":
                each = RoundedGaussian(scale, 1.0, n_features * n_outputs)
                parts.append(("gradients", Repeated(each, self.n_iter)))
            else:
                eta = mu * math.sqrt(2.0 * steps / picks)
                parts.append(("selection", Repeated(Exponential(eta), picks)))
                values = RoundedGaussian(math.sqrt(2.0) * scale, 1.0, picks)
                parts.append(("values", Repeated(values, self.n_iter)))
            return parts

        mu = math.inf
        if private:
            mu = calibrate(
                lambda m: Sequence(tuple(e for _, e in events(m))), self.epsilon, self.delta
            )
        phases = tuple(
            Phase(name, event if private else NonPrivate())
            for name, event in events(mu if private else 1.0)
        )
        note = "noisy_gradient" if method == "gaussian" else "peeling"
        return self._planned(
            phases,
            self._public(method, n_outputs, row),
            method=f"{type(self).__name__}({method})",
            source=f"docs/proofs/{note}.md",
            parameters={
                "n_iter": self.n_iter,
                "n_outputs": n_outputs,
                "method": method,
                "row_clip": row,
                "budget": mu * math.sqrt(steps if method == "gaussian" else steps / 2.0),
                "eta": mu * math.sqrt(2.0 * steps / picks),
                "prior": mu * math.sqrt(PRIOR_SHARE / 2.0),
            },
        )

    @property
    def _scaled(self) -> bool:
        """Whether scales are released: not if a step or a ridge in declared units is asked for."""
        if self.method != "auto":
            return self.method == "scaled"
        return self.step_size is None and self.ridge == 0.0

    def _bounds_rows(self, n_features: int) -> bool:
        return self._scaled

    def _scaled_plan(self, n_features: int, n_outputs: int, labels: np.ndarray | None) -> Plan:
        domain, numbers = self._domain, self._labels_are_numbers
        narrow = n_features <= (domain.n_samples or NARROW)
        shares = dict(SCALED)
        if numbers and narrow:  # as in DPGradientRegressor
            del shares["masses"]
        if not numbers:
            del shares["spread"]
        shares["gradients"] = 1.0 - sum(shares.values())
        n_classes = 2 if labels is None else len(labels)
        steps = 2 * max(1, self.n_iter // 2)
        sizes = {
            "prior": n_classes,
            "masses": n_features,
            "spread": MEDIAN_ROUNDS,
            "length": MEDIAN_ROUNDS,
            "curvature": 2 * n_features,
            "line": steps,
            "intercept": INTERCEPT_ROUNDS * n_classes,
            "gradients": steps * (n_features + 1) * n_outputs,
        }
        budget = Budget(self.epsilon, self.delta)
        for phase, share in shares.items():
            budget.gaussian(phase, share, sizes[phase], _NOTES.get(phase, ""))
        public = replace(
            self._prior(n_outputs),
            longest=domain.row_norm or domain.entry_bound() * math.sqrt(n_features),
            n_iter=self.n_iter,
            masses="private" if "masses" in shares else None,
            n_nonzero=min(int(self.n_nonzero), n_features * n_outputs),
        )
        return self._planned(
            budget.phases(),
            public,
            method=f"{type(self).__name__}(scaled)",
            source="docs/proofs/noisy_gradient.md",
            parameters={
                "n_iter": steps,
                "n_outputs": n_outputs,
                "method": "scaled",
                "mu": budget.mu,
                **{f"{name}_share": share for name, share in shares.items()},
            },
        )

    def _prior(self, n_outputs: int) -> Recipe:
        """How number of rows, offset and (regression) cutoff are released."""
        bound = 1.0
        if self._labels_are_numbers:
            bound = float(self._domain.require("target_bound", "Regression"))
        return Recipe(
            self._loss_name(n_outputs), n_outputs, self._domain.n_samples, target_bound=bound
        )

    def _public(self, method: str, n_outputs: int, row: float) -> Threshold:
        return Threshold(
            self._prior(n_outputs), method, self.n_nonzero, self.n_iter, self.step_size, self.ridge,
            row, self._domain.entry_bound(),
        )  # fmt: skip

    def _solve(self, rows: Rows, plan: Plan, releases: Releases) -> Solution:
        if isinstance(plan.public, Recipe):
            return solve_scaled(rows, plan.public, releases)
        return solve(rows, plan.public, releases)


@dataclass(eq=False, repr=False, kw_only=True)
class DPHardThresholdClassifier(BaseDPClassifier, _DPHardThreshold):
    """Sparse classifier by iterative hard thresholding (IGHT, DP-IGHT, peeling).

    Parameters
    ----------
    domain : Domain
        Needs `classes`; the methods "gaussian" and "peeling" also `row_norm` (narrow data: `feature_bound` will do).
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` is IGHT, the method without noise.
    n_nonzero : int, default=10
        Weights kept after every step, of all classes together.
    n_iter : int, default=10
        Steps: a privacy parameter.
    step_size : float or None, default=None
        None: one over the curvature, less where noise would drown the rows.
    ridge : float, default=0.0
        L2 penalty (on the mean loss).
    method : {"auto", "scaled", "gaussian", "peeling"}
        "scaled" releases what the others ask to be declared: lengths, curvature, how far a step may go. "gaussian" is
        DP-IGHT with rows clipped to their declared bound, "peeling" selects privately and adds noise to selected values
        only. "auto" is "scaled", but for a regression of fewer than about 60 or 15 sqrt(d) effective rows
        (`n_samples` times mu), which releases the mean of the targets alone; with a `step_size` or `ridge`, which are
        in declared units, it compares feature_bound sqrt(s log(d/s)) with the row bound and takes one of the others.
    adjacency : {"add-remove", "replace-one"}
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int, default=0
        1 tells every phase with its seconds, 0 shows a line on a terminal while a fit takes long, -1 nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPHardThresholdClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(classes=[0, 1], row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPHardThresholdClassifier(domain, epsilon=2.0, n_nonzero=3).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.coef_.shape, model.privacy_.headline
    ((1, 8), '(2.0, 1e-06)-DP of the table given to fit, add/remove one row, proven')
    """


@dataclass(eq=False, repr=False, kw_only=True)
class DPHardThresholdRegressor(BaseDPRegressor, _DPHardThreshold):
    """Sparse robust regression by iterative hard thresholding.

    Parameters
    ----------
    domain : Domain
        Needs `target_bound` or `target_range`; bounds of rows as in `DPHardThresholdClassifier`.

    All other parameters are those of `DPHardThresholdClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPHardThresholdRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(target_bound=1.0, row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPHardThresholdRegressor(domain, epsilon=2.0, n_nonzero=3).fit(X, X[:, 0])
    >>> model.coef_.shape, model.privacy_.headline
    ((8,), '(2.0, 1e-06)-DP of the table given to fit, add/remove one row, proven')
    """
