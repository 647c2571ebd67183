"""DPLassoClassifier and DPLassoRegressor: Frank-Wolfe over the L1 ball with private selections."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse.accounting import (
    Event,
    Exponential,
    NonPrivate,
    Phase,
    Plan,
    Repeated,
    calibrate,
)
from dpsparse.accounting import Sequence as EventSequence
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Huber, Logistic, Loss, Softmax, get_loss, losses_of
from dpsparse.mechanisms.top_k import ROUNDING_RANGE
from dpsparse.methods.base import (
    BaseDPClassifier,
    BaseDPRegressor,
    check_choice,
    check_positive,
)
from dpsparse.methods.frank_wolfe import check_public, choose_resolution
from dpsparse.methods.frank_wolfe.scales import Scales
from dpsparse.methods.frank_wolfe.scales_plan import NOTES, ReleasesScales, beside, sizes_of
from dpsparse.methods.frank_wolfe.solve import Ball
from dpsparse.methods.look.targets import plan_mean_if_few_rows
from dpsparse.methods.solution import Settings
from dpsparse.nonzeros import NNonzero, check_n_nonzero, count_event
from dpsparse.rows.ridge import MANY_ROWS
from dpsparse.sensitivity import vertex_score_range


@dataclass(eq=False, repr=False, kw_only=True)
class _Lasso(ReleasesScales):
    """What both estimators share: the plan of T selections, and the solver."""

    fit_intercept: bool = True
    n_nonzero: NNonzero = None

    def _loss(self, labels: np.ndarray | None) -> Loss:
        raise TypeError(f"{type(self).__name__} does not say which loss it fits.")

    def _default_radius(self, feature_bound: float) -> float:
        raise TypeError(f"{type(self).__name__} does not say how large its ball is.")

    def _why_one_row(self) -> str:
        return MANY_ROWS if self._domain.rows_per_unit is None else ""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_n_nonzero(self.n_nonzero)

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        plain = self.radius is None and self.n_iter is None
        fewest = plan_mean_if_few_rows(self, self._fewest(n_features)) if plain else None
        if fewest is not None:
            return fewest
        domain = self._clipping(n_features)
        bound = domain.entry_bound()
        radius = float(self._default_radius(bound) if self.radius is None else self.radius)
        loss = self._loss(labels)
        n_outputs = 1 if loss.scalar_slope or labels is None else len(labels)
        default = _default_n_iter(self._domain.n_samples, self.epsilon)
        scales, n_iter = self._scales(n_features, bound, default, n_outputs)
        slope_bound = loss.slope_bound(domain, radius)
        prior = self.fit_intercept and not self._labels_are_numbers
        count = count_event(self.n_nonzero)
        extra = [] if count is None or isinstance(count, NonPrivate) else [count]
        note = f"{n_iter} signed vertices of the L1 ball"
        claimed, proven = float(self.epsilon), not isinstance(count, NonPrivate)
        event: Event = NonPrivate()
        sums: dict[str, Event] = {"prior": NonPrivate()} if prior else {}
        kappa, resolution, eta = math.inf, 0, 0.0
        if not math.isinf(self.epsilon):
            sizes = {"prior": max(2, n_outputs)} if prior else {}
            sizes |= sizes_of(scales, n_features)
            sums, event, eta = self._selections(n_iter, sizes, extra)
            per_kappa = vertex_score_range(1.0, slope_bound, bound, self.adjacency).value
            kappa = (eta - ROUNDING_RANGE) / per_kappa
        if not proven:
            claimed = math.inf
        if not math.isinf(self.epsilon):
            resolution = choose_resolution(
                self._domain.n_samples, 4.0 * kappa * bound * slope_bound
            )
        # What floats cannot carry is refused here, before anything is spent.
        units = (resolution or 1) * (self._domain.rows_per_unit or 1)
        check_public(radius, bound, slope_bound, (), kappa * bound * slope_bound / units)
        phases = [Phase(key, paid, NOTES[key]) for key, paid in sums.items()]
        phases.append(Phase("vertices", event, note))
        if count is not None:
            phases.append(Phase("number of weights", count, "clipped count of a noiseless fit"))
        public = Ball(
            loss=loss,
            radius=radius,
            n_iter=n_iter,
            slope_bound=slope_bound,
            resolution=resolution,
            feature_bound=bound,
            n_outputs=n_outputs,
            fit_intercept=self.fit_intercept,
            n_nonzero=check_n_nonzero(self.n_nonzero),
            prior=prior,
            scales=scales,
        )
        return self._planned(
            phases,
            public,
            epsilon=claimed,
            proven=proven,
            source="docs/proofs/frank_wolfe.md",
            assumptions=("the stream of random bits is uniform", "running time is not observed"),
            parameters={
                "n_iter": n_iter,
                "eta": eta,
                # with class counts: as if they were even, an offset makes slopes larger and kappa smaller
                **_told(
                    scales, radius=radius, kappa=kappa, slope_bound=slope_bound, feature_bound=bound
                ),
                "resolution": resolution,  # 0: no noise, as fine as the number of rows allows
                "n_outputs": n_outputs,
                "loss": loss.name if scales is None or not scales.numbers else "huber",
                "scales": "declared" if scales is None else scales.way,
            },
        )

    def _selections(
        self, n_iter: int, sizes: dict[str, int], extra: list[Event]
    ) -> tuple[dict[str, Event], Event, float]:
        """The events of the sums before the steps, of all selections, and the eta of one of these."""

        def events(eta: float) -> tuple[dict[str, Event], Event]:
            # T selections are about a Gaussian of mu = eta sqrt(T) / 2.
            return beside(eta * math.sqrt(n_iter) / 2.0, sizes), Repeated(Exponential(eta), n_iter)

        def paid(eta: float) -> Event:
            sums, selections = events(eta)
            return EventSequence((*sums.values(), selections, *extra))

        # eta is linear in kappa: ask the accountant for eta, the lemma for kappa.
        eta = calibrate(paid, self.epsilon, self.delta)
        if eta <= 2.0 * ROUNDING_RANGE:
            raise ParameterError("epsilon is too small for so many steps; lower n_iter.")
        return *events(eta), eta


@dataclass(eq=False, repr=False, kw_only=True)
class DPLassoClassifier(_Lasso, BaseDPClassifier):
    """L1-constrained logistic (two classes) or multinomial regression by private Frank-Wolfe.

    Every step draws one signed vertex of the ball ``sum |w| <= radius`` with the exponential
    mechanism on the exact gradient, in time proportional to the non-zeros it touches.

    Parameters
    ----------
    domain : Domain
        Needs `feature_bound` and `classes`; `n_samples` helps the defaults.
    epsilon, delta : float, default=1.0, 1e-6
        The guarantee; ``epsilon=math.inf`` makes the same steps without noise (for a model without privacy take
        scikit-learn).
    radius : float or None, default=None
        L1 norm of the weights (intercept included). None: where `n_samples` is declared and large enough, a typical
        size of entries is released (2 % of the budget) and the ball grows with the steps; else ``10 / feature_bound``.
    n_iter : int or None, default=None
        Number of private selections; more steps mean more noise in each. None: with a released scale (N / (30 log 2
        d))^2 between 10 and 1000, N = n_samples times mu; else ``(n_samples * epsilon)**(2/3) / 4`` between 10 and
        1000, and 100 where `n_samples` is not declared. Without noise 1000.
    fit_intercept : bool, default=True
        Margins start from the log-odds of noisy class counts (2 % of the budget), and a constant column
        inside the ball corrects them. Regression has the column only.
    n_nonzero : None, int, "mass" or PrivateCount, default=None
        Keep all weights; the k largest; the fewest that hold 90 % of the norm; or as many as a
        private count says. Only the last one costs budget.
    adjacency : {"add-remove", "replace-one"}
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int, default=0
        1 tells every phase with its seconds, 0 shows a line on a terminal while a fit takes long, -1 nothing.

    Attributes
    ----------
    coef_ : array of shape (1 or n_classes, n_features); CSR after `sparsify()`
    intercept_ : array of shape (1 or n_classes,)
    classes_, n_iter_, plan_, privacy_, n_features_in_

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPLassoClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 20))
    >>> model = DPLassoClassifier(Domain(classes=[0, 1], n_samples=500), n_iter=20)
    >>> model.fit(X, (X[:, 0] > 0).astype(int)).coef_.shape
    (1, 20)
    """

    def _loss(self, labels: np.ndarray | None) -> Loss:
        return Logistic() if labels is None or len(labels) == 2 else Softmax(len(labels))

    def _default_radius(self, feature_bound: float) -> float:
        return 10.0 / feature_bound


@dataclass(eq=False, repr=False, kw_only=True)
class DPLassoRegressor(_Lasso, BaseDPRegressor):
    """L1-constrained squared or Huber regression by private Frank-Wolfe.

    Parameters
    ----------
    domain : Domain
        Needs `feature_bound` and `target_bound`; `n_samples` helps the defaults.
    loss : {"auto", "squared", "huber"}, default="auto"
        The squared loss has slopes up to ``feature_bound * radius + target_bound`` and needs that
        much noise; Huber has slopes up to `cutoff`. "auto" is Huber with a released cutoff, on privately centred and
        scaled columns, where `radius` is None and `n_samples` is declared and large enough; else squared.
    cutoff : float or None, default=None
        Residual beyond which Huber's loss is linear. None: ``target_bound / 10``.
    radius : float or None, default=None
        L1 norm of the weights (intercept included). None: see `loss`; else ``target_bound / feature_bound``. With too
        few effective rows for ten picks the mean of the targets is all that is released.

    All other parameters and attributes are those of `DPLassoClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPLassoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 20))
    >>> model = DPLassoRegressor(Domain(target_bound=1.0, n_samples=500), n_iter=20)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (20,)
    """

    loss: str = "auto"
    cutoff: float | None = None

    @property
    def _free(self) -> bool:
        return self.loss == "auto" and self.cutoff is None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, ("auto", *losses_of("numbers")))
        if self.cutoff is not None:
            check_positive("cutoff", self.cutoff)

    def _loss(self, labels: np.ndarray | None) -> Loss:
        loss = get_loss("squared" if self.loss == "auto" else self.loss)
        if not isinstance(loss, Huber):
            return loss
        target_bound = float(self._domain.require("target_bound", "DPLassoRegressor"))
        return Huber(target_bound / 10.0 if self.cutoff is None else float(self.cutoff))

    def _default_radius(self, feature_bound: float) -> float:
        return float(self._domain.require("target_bound", "DPLassoRegressor")) / feature_bound


def _told(scales: Scales | None, **declared: float) -> dict[str, Any]:
    """Numbers of the plan that follow from declared scales; where scales are released, nobody knows them yet."""
    if scales is None:
        return dict(declared)
    return {**dict.fromkeys(declared, "released"), "reach": scales.reach}


def _default_n_iter(n_samples: int | None, epsilon: float) -> int:
    """Steps from public facts: the (n epsilon)^(2/3) of the utility bound of both papers."""
    if math.isinf(epsilon):
        return 1000
    if n_samples is None:
        return 100
    return int(min(max(math.ceil((n_samples * epsilon) ** (2.0 / 3.0) / 4.0), 10), 1000))
