"""What the support-first estimators share: parameters, the budget of two stages, and the plan.

Everything here is planned from public numbers. One number, `strength`, drives all noise: a stage with
share f of the budget spends zCDP of about f * strength^2, and the accountant finds the strength.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpsparse._checks import check_share
from dpsparse.clipping import HUGE
from dpsparse.domain import Domain
from dpsparse.estimators._base import (
    BaseDPLinearModel,
    check_count,
    check_positive,
    output_count,
)
from dpsparse.exceptions import ParameterError
from dpsparse.losses import get_loss
from dpsparse.noise import LARGEST, STEPS
from dpsparse.privacy import (
    Event,
    Exponential,
    NonPrivate,
    ObjectivePerturbation,
    Phase,
    Plan,
    Repeated,
    RoundedGaussian,
    Sequence,
    calibrate,
)
from dpsparse.rows.ridge import (
    FARTHEST,
    LARGEST_TABLE,
    LEAST_RIDGE,
    LEAST_RIDGE_WIDE,
    MANY_ROWS,
    MOST_COLUMNS,
    MOST_ROWS,
    ONE_ROW,
)
from dpsparse.sensitivity import (
    class_counts,
    clipped_gradient_sum,
    ridge_minimiser,
    signed_sum,
    tilted_minimiser,
)
from dpsparse.solvers.two_stage import MOMENTUM, Peeling, RidgeFit, SupportFirst, Votes, solve

PRIOR_SHARE = 0.05  # of peeling's budget, for the prior of the margin
SPLIT = 0.4  # of all for the support, unless somebody says otherwise
TOL = 1e-6  # gradient norm of a minimiser, relative to the gradient bound of one row
JITTER_SHARE = 1e-3  # of the second stage's budget, to hide what is left of the gradient

Named = list[tuple[str, Event, str]]


@dataclass(eq=False, repr=False, kw_only=True)
class DPSupportFirst(BaseDPLinearModel):
    """Parameters and plan of both families; each says how its support is found and how the fit is made private."""

    n_nonzero: int = 10
    split: float | None = 0.5
    ridge: float | None = None
    row_clip: float | None = None
    n_iter: int = 1
    fit_intercept: bool = True

    _solver: ClassVar[Any] = staticmethod(solve)
    _source: ClassVar[str] = "docs/proofs/two_stage.md"

    # ---- what the families choose --------------------------------------------------------------

    def _stage(self) -> str:
        """How the fit on the support is made private: "objective", "output" or "gradient"."""
        return "output"

    @property
    def _share(self) -> float:
        """That of the support where declared bounds set all scales."""
        return SPLIT if self.split is None else self.split

    def _rounds(self) -> int:
        """Rounds of peeling."""
        return 1

    def _votes(self, n_features: int, kappa: float) -> Votes | None:
        """Votes of blocks instead of peeling, for picks of inverse temperature `kappa`."""
        return None

    def _public_rows(self) -> tuple[Any, int]:
        """Rows for a student, or None; and their number."""
        return None, 0

    def _cutoff(self) -> float:
        """Largest slope of a row: 1 for the logistic loss, the cutoff of huber's in units of the targets."""
        if not self._labels_are_numbers:
            return 1.0
        bound = float(self._domain.require("target_bound", type(self).__name__))
        return float(getattr(self, "cutoff", None) or bound / 4.0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero)
        check_count("n_iter", self.n_iter)
        if self.split is not None:
            check_share("split", self.split)
        if self.ridge is not None:
            check_range("ridge", self.ridge, HUGE**2)
        for name in ("row_clip", "cutoff"):
            if getattr(self, name, None) is not None:
                check_range(name, getattr(self, name))

    def _why_one_row(self) -> str:
        """Peeling and gradients bound a person as a row, votes send whole persons to blocks; minimisers do neither."""
        if self._stage() == "objective":
            return ONE_ROW
        if self._stage() == "output" and self._domain.rows_per_unit is None:
            return MANY_ROWS
        return ""

    def _most_rows(self, n_features: int) -> int | None:
        return None if self._stage() == "gradient" else LARGEST_TABLE

    # ---- the plan ------------------------------------------------------------------------------

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        name, n_outputs = type(self).__name__, output_count(labels)
        s = min(self.n_nonzero, n_features)
        stage = self._make_fit(s, n_outputs)
        size = max(s + self.fit_intercept, stage.n_public)
        first: Peeling | Votes = self._votes(n_features, 1.0) or self._make_peeling(n_features)

        def supported(strength: float) -> Named:
            if isinstance(first, Peeling):
                return self._peeling_events(first, s, n_outputs, labels, strength)
            eta = strength * math.sqrt(8.0 * self._share / (s * n_outputs))  # zCDP eta^2/8 each
            picks = Repeated(Exponential(eta), s * n_outputs)
            return [("support", picks, "top-k of the votes of secret blocks")]

        def fitted(strength: float) -> Event:
            share = (1.0 - self._share) / n_outputs
            return Repeated(self._fit_event(stage, size, strength, share), n_outputs)

        def everything(strength: float) -> Named:
            note = f"{stage.method} perturbation" + ("" if stage.n_public == 0 else ", answers")
            return [*supported(strength), ("fit", fitted(strength), note)]

        private = not math.isinf(self.epsilon)
        strength = find_strength(everything, self.epsilon, self.delta)
        shown = leaf_numbers(everything(strength)) if private else {"scale": 0.0, "jitter": 0.0}
        if private:
            check_grid(name, self._fit_ratio(stage, strength, n_outputs), size)
        if private and stage.method == "objective":
            share = (1.0 - self._share) / n_outputs
            check_tilt(name, strength * math.sqrt(2.0 * share), size, self.adjacency)
        chosen = first
        if isinstance(first, Votes):  # their number depends on the noise
            kappa = shown["eta"] / 2.0 if private else math.inf  # one row moves a vote by one
            chosen = self._votes(n_features, kappa) or first
            assert isinstance(chosen, Votes)
            shown = {**shown, "kappa": kappa, "n_blocks": chosen.n_blocks}
        public = SupportFirst(
            loss=self._loss_name(),
            n_outputs=n_outputs,
            n_nonzero=s,
            constant=float(self.fit_intercept),
            target_bound=self._unit,
            first=chosen,
            fit=stage,
        )
        return self._planned(
            phases(everything(strength) if private else [], private),
            public,
            source=self._source,
            parameters={
                "n_iter": max(stage.n_iter, self._rounds()),
                **shown,
                "ridge": stage.ridge,
                "row_clip": stage.row_clip,
                "n_outputs": n_outputs,
            },
        )

    @property
    def _unit(self) -> float:
        """The solver works in units of the target bound."""
        return float(self._domain.target_bound or 1.0) if self._labels_are_numbers else 1.0

    def _make_fit(self, n_columns: int, n_outputs: int) -> RidgeFit:
        name, domain, method = type(self).__name__, self._domain, self._stage()
        smoothness = get_loss(self._loss_name()).smoothness
        bound = row_bound(domain, n_columns, self.fit_intercept)
        clip = min(bound, self.row_clip or bound / 2.0)
        curvature = smoothness * clip * bound
        if method == "gradient" or (method == "output" and self.ridge is None):
            domain.require("n_samples", f"{name} with the {method} stage")
        ridge = self.ridge or default_ridge(
            method, curvature, self._cutoff() * clip, n_columns + self.fit_intercept, n_outputs,
            self.epsilon, self.delta, domain.n_samples,
        )  # fmt: skip
        # Nothing is minimised by gradients, and without noise nothing rests on a certificate.
        free = method == "gradient" or math.isinf(self.epsilon)
        width = 0 if free else n_columns + self.fit_intercept
        check_ridge("ridge", ridge, curvature, width, None if free else domain.n_samples)
        # Never beyond what momentum keeps stable for n_samples rows of the largest curvature.
        steepest = (domain.n_samples or 1) * smoothness * bound * max(clip, bound / 8.0)
        slope_bound = self._cutoff() / self._unit
        public_rows, n_public = self._public_rows()
        return RidgeFit(
            method=method,
            slope_bound=slope_bound,
            row_clip=clip,
            longest=bound,
            ridge=ridge,
            tol=TOL * slope_bound * clip,
            n_iter=self.n_iter if method == "gradient" else 1,
            step=4.0 * (1.0 - MOMENTUM) / (steepest + ridge),
            public_rows=public_rows,
            n_public=n_public,
        )

    def _fit_event(self, stage: RidgeFit, size: int, strength: float, share: float) -> Event:
        """One output's fit for `share` of the strength."""
        ratio = strength * math.sqrt(2.0 * share)
        gradient_bound = stage.slope_bound * stage.row_clip
        if stage.method == "gradient":
            moved = clipped_gradient_sum(gradient_bound, self.adjacency).value
            ratio /= math.sqrt(stage.n_iter)
            return Repeated(RoundedGaussian(moved / ratio, moved, size + 1), stage.n_iter)
        if stage.method == "output":
            moved = ridge_minimiser(
                stage.slope_bound, stage.row_clip, 1.0, stage.ridge, self.adjacency, stage.tol
            ).value
            return rounded_release(moved, ratio, size)
        loss = get_loss(self._loss_name())
        assert loss.objective is not None
        # |f| <= longest and weight * |f| <= row_clip, so the curvature is smoothness * both
        curvature = loss.smoothness * stage.row_clip * stage.longest
        return tilted_fit(
            gradient_bound, curvature, stage.ridge, loss.objective,
            ratio, size, stage.tol, self.adjacency,
        )  # fmt: skip

    def _fit_ratio(self, stage: RidgeFit, strength: float, n_outputs: int) -> float:
        """Smallest sensitivity over noise of a release that is rounded."""
        ratio = strength * math.sqrt(2.0 * (1.0 - self._share) / n_outputs)
        return ratio * math.sqrt(JITTER_SHARE) if stage.method == "objective" else ratio

    def _make_peeling(self, n_features: int) -> Peeling:
        """Peeling needs the entries' bound and a public number of rows."""
        name, domain = type(self).__name__, self._domain
        bound = domain.entry_bound()
        n_samples = int(domain.require("n_samples", f"{name} with peeling"))
        smoothness = get_loss(self._loss_name()).smoothness
        return Peeling(
            n_samples=n_samples,
            feature_bound=bound,
            longest=min(domain.row_norm or math.inf, bound * math.sqrt(n_features)),
            # One over the curvature of the mean loss along one feature that is uniform in its bounds.
            step=3.0 / (smoothness * min(bound, domain.row_norm or math.inf) ** 2),
            rounds=self._rounds(),
            use_prior=self.fit_intercept,
        )

    def _peeling_events(
        self, first: Peeling, s: int, n_outputs: int, labels: np.ndarray | None, strength: float
    ) -> Named:
        """A twentieth for the prior; one round releases no values, more rounds pay half for them."""
        picks, releases = s * first.rounds * n_outputs, (first.rounds - 1) * n_outputs
        picked = self._share * (1.0 - PRIOR_SHARE if first.use_prior else 1.0)
        picked *= 0.5 if releases else 1.0
        named: Named = []
        if first.use_prior:
            ratio = strength * math.sqrt(2.0 * self._share * PRIOR_SHARE)
            lemma = signed_sum(1.0, self.adjacency) if labels is None else class_counts(self.adjacency)  # fmt: skip
            size = 1 if labels is None else len(labels)
            prior = RoundedGaussian(lemma.value / ratio, lemma.value, size)
            named.append(("prior", prior, "prior of the margin"))
        eta = strength * math.sqrt(8.0 * picked / picks)
        named.append(("support", Repeated(Exponential(eta), picks), "peeling"))
        if releases:
            ratio = strength * math.sqrt(2.0 * picked / releases)
            values = Repeated(RoundedGaussian(1.0 / ratio, 1.0, s), releases)
            named.append(("values", values, "values between rounds of peeling"))
        return named


# ---- bounds and defaults -----------------------------------------------------------------------


def longest_row(domain: Domain, n_columns: int) -> float:
    """Largest L2 norm of a row on `n_columns` columns, from what is declared."""
    return min(domain.row_norm or math.inf, math.sqrt(n_columns) * domain.entry_bound())


def row_bound(domain: Domain, n_columns: int, fit_intercept: bool) -> float:
    """The same on released columns, the constant included.

    A little more, for the rounding of a norm in float64: rows beyond it would not count.
    """
    longest = longest_row(domain, n_columns)
    return math.hypot(longest, 1.0 if fit_intercept else 0.0) * (1.0 + 1e-9)


def default_ridge(
    method: str,
    curvature: float,
    gradient_bound: float,
    n_columns: int,
    n_outputs: int,
    epsilon: float,
    delta: float,
    n_samples: int | None,
) -> float:
    """A ridge from public numbers.

    Objective perturbation: 4 curvature/epsilon, from where the curvature is (almost) free for
    logistic and half the budget of a general loss is kept. Output perturbation: where the noise
    ~ 1/ridge and the shrinkage ~ ridge/n of weights of size one balance. Descent: a trace.
    """
    if math.isinf(epsilon):
        return 1e-3 * curvature
    if method == "objective":
        return 4.0 * n_outputs * curvature / min(epsilon, 8.0)
    if method == "gradient":
        return curvature
    assert n_samples is not None
    noise = gradient_bound * math.sqrt(2.0 * n_outputs * math.log(1.0 / delta)) / epsilon
    balanced = math.sqrt(noise * n_samples * curvature / (2.0 * n_columns))
    return max(balanced, 2.0 * least_ridge(n_columns) * curvature)


def least_ridge(n_columns: int) -> float:
    """In units of the curvature of a row: where a minimiser on so many columns is certified on the largest table."""
    return max(LEAST_RIDGE, LEAST_RIDGE_WIDE * float(n_columns) ** 2)


def check_ridge(
    name: str, ridge: float, curvature: float, n_columns: int, n_samples: int | None
) -> None:
    """Refuse a problem whose minimiser float64 cannot certify (docs/proofs/ridge.md, Lemma 2)."""
    least = least_ridge(n_columns)
    if ridge < least * curvature:
        raise ParameterError(
            f"{name} is too small for rows of the declared size: less than {least:.2g} of the "
            "curvature of one row. Raise it, or declare smaller rows."
        )
    if n_samples is not None and n_samples > MOST_ROWS:
        raise ParameterError(
            f"n_samples={n_samples}: minimisers are proven for up to {MOST_ROWS} rows. "
            "DPGradientClassifier and DPGradientRegressor take more."
        )
    if n_columns > MOST_COLUMNS:
        raise ParameterError(
            f"Minimisers are proven for up to {MOST_COLUMNS} columns. "
            "DPGradientClassifier and DPGradientRegressor take more."
        )


def check_tilt(method: str, ratio: float, size: int, adjacency: str) -> None:
    """Refuse a tilt of sensitivity over scale `ratio` that may be longer than the arithmetic of its minimiser is proven
    for (docs/proofs/ridge.md, Lemma 2): noise on whole numbers has a largest value."""
    gradients = (
        clipped_gradient_sum(1.0, adjacency).value / ratio
    )  # the scale, in gradients of a row
    if LARGEST / STEPS * math.sqrt(size) * gradients > FARTHEST:
        raise ParameterError(
            f"{method}: epsilon is too small to tilt an objective of {size} weights."
        )


def check_grid(method: str, ratio: float, size: int) -> None:
    """Refuse what rounding to the grid of the noise would cost more than the noise itself."""
    if ratio * STEPS < 4.0 * math.sqrt(size):
        raise ParameterError(f"{method}: epsilon is too small to release {size} numbers at once.")


def rounded_release(moved: float, ratio: float, size: int) -> RoundedGaussian:
    """The event of releasing a rounded vector at `ratio`: rounding moves each of `size` entries by a unit,
    scale/STEPS, which the sensitivity includes (`Releases.scale` solves the same equation)."""
    spare = ratio - math.sqrt(size) / STEPS
    scale = moved / (spare if spare > 0.0 else ratio)  # too small a ratio is refused once known
    return RoundedGaussian(scale, ratio * scale, size)


def tilted_fit(
    gradient_bound: float,
    curvature: float,
    ridge: float,
    loss: str,
    ratio: float,
    size: int,
    tol: float,
    adjacency: str,
) -> Event:
    """The event of `Releases.tilt` for a tilt of sensitivity over scale `ratio`, and a little more for the blur."""
    scale = clipped_gradient_sum(gradient_bound, adjacency).value / ratio
    tilt = ObjectivePerturbation(
        scale=scale,
        gradient_bound=gradient_bound,
        curvature=curvature,
        ridge=ridge,
        loss=loss,
        adjacency=adjacency,
    )
    away = tilted_minimiser(ridge, tol, size, scale / STEPS, adjacency).value
    blur = rounded_release(away, ratio * math.sqrt(JITTER_SHARE), size)
    # The sampler's distance from its law is charged for tilt and blur.
    return Sequence((tilt, RoundedGaussian(blur.scale, blur.sensitivity, 2 * size)))


def find_strength(make: Callable[[float], Named], epsilon: float, delta: float) -> float:
    """The strength whose events spend (epsilon, delta); infinite without privacy."""
    if math.isinf(epsilon):
        return math.inf
    return calibrate(lambda x: Sequence(tuple(e for _, e, _ in make(x))), epsilon, delta)


def leaf_numbers(named: Named) -> dict[str, Any]:
    """What a reader of the plan wants to see: eta of a pick, scale of the fit's noise and of its blur."""
    shown: dict[str, Any] = {"jitter": 0.0}
    for name, event, _ in named:
        while isinstance(event, Repeated):
            event = event.event
        if isinstance(event, Exponential):
            shown["eta"] = event.eta
        elif name == "fit" and isinstance(event, RoundedGaussian):
            shown["scale"] = event.scale
        elif isinstance(event, Sequence):
            tilt, blur = event.events
            assert isinstance(tilt, ObjectivePerturbation)
            assert isinstance(blur, RoundedGaussian)
            shown["scale"], shown["jitter"] = tilt.scale, blur.scale
    return shown


def phases(named: Named, private: bool) -> tuple[Phase, ...]:
    """Phases as they run; without a guarantee there is one that says so."""
    if not private:
        return (Phase("fit", NonPrivate(), "no guarantee"),)
    return tuple(Phase(name, event, note) for name, event, note in named)


def check_range(name: str, value: object, largest: float = HUGE) -> None:
    """Refuse what is not a positive number between 1/largest and largest."""
    check_positive(name, value)
    assert isinstance(value, (int, float, np.integer, np.floating))
    if not 1.0 / largest <= value <= largest:
        power = round(math.log2(largest))
        raise ParameterError(f"{name} must lie between 2**-{power} and 2**{power}, got {value!r}.")
