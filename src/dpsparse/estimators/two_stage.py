"""DPTwoStageClassifier and DPTwoStageRegressor: blocks vote for a support, then a private fit."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import lars_path

from dpsparse.domain import BoundedData, Domain
from dpsparse.estimators._base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
    check_choice,
    check_count,
    check_positive,
)
from dpsparse.estimators._support import (
    STAGES,
    Peeling,
    RidgeFit,
    assemble,
    check_share,
    find_level,
    make_fit,
    make_peeling,
    output_count,
    phases,
    targets,
)
from dpsparse.losses import Huber, Logistic, Loss
from dpsparse.privacy import Event, Exponential, Plan, Repeated, Sequence
from dpsparse.published import kifer_smith_thakurta_2012_two_stage as published
from dpsparse.selection.top_k import gumbel_top_k
from dpsparse.sensitivity import votes as vote_sensitivity
from dpsparse.solvers.objective import support_rows
from dpsparse.solvers.two_stage import (
    Selector,
    block_votes,
    correlation_selector,
    draw_blocks,
)

if TYPE_CHECKING:
    from dpsparse.privacy.ledger import Ledger

SUPPORTS = ("peeling", "votes")
SELECTORS = ("correlation", "lasso")
DEFAULT_BLOCKS = 64
PREFILTER = 4  # the L1 path of a block starts from this many times n_nonzero correlated features


def lasso_selector(X: sp.csr_array, y: np.ndarray, n_nonzero: int) -> np.ndarray:
    """First features to enter the L1 path of one block (squared loss, centred targets)."""
    candidates = correlation_selector(X, y, PREFILTER * n_nonzero)
    columns = X[:, candidates].toarray()
    columns = columns - columns.mean(axis=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning would tell something about one block
            _, order, _ = lars_path(columns, y - y.mean(), method="lasso", max_iter=n_nonzero)
    except Exception:  # whatever a block does must not be seen
        return candidates[:n_nonzero]
    return np.asarray(candidates[np.asarray(order, dtype=np.intp)])


class _TwoStage(BaseDPLinearModel):
    """Planning and solving; the public classes add the loss and their parameters."""

    n_nonzero: int
    support: str
    n_blocks: int | None
    selector: str
    second_stage: str
    split: float
    ridge: float | None
    row_clip: float | None
    n_iter: int
    fit_intercept: bool

    _calibrations: ClassVar[tuple[str, ...]] = ("proven", "published")

    def _loss(self) -> tuple[Loss, float]:
        """The loss and the largest slope of any row."""
        return Logistic(), 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero)
        check_count("n_blocks", self.n_blocks, optional=True)
        check_count("n_iter", self.n_iter)
        check_choice("support", self.support, SUPPORTS)
        check_choice("selector", self.selector, SELECTORS)
        check_choice("second_stage", self.second_stage, STAGES)
        check_share("split", self.split)
        for name in ("ridge", "row_clip"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))

    def _make_peeling(self, n_features: int, n_outputs: int) -> Peeling | None:
        if self.support == "votes" or self.calibration == "published":
            return None
        return make_peeling(
            self,
            loss=self._loss()[0],
            n_columns=min(self.n_nonzero, n_features),
            n_outputs=n_outputs,
            n_iter=1,
            classes=isinstance(self, BaseDPClassifier),
        )

    def _make_fit(self, n_features: int, n_outputs: int) -> RidgeFit:
        loss, slope_bound = self._loss()
        return make_fit(
            self,
            method=self.second_stage,
            loss=loss,
            slope_bound=slope_bound,
            n_columns=min(self.n_nonzero, n_features),
            n_outputs=n_outputs,
            n_iter=self.n_iter if self.second_stage == "gradient" else 1,
        )

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        if self.calibration == "published":
            return self._published_plan(n_features, labels)
        fit = self._make_fit(n_features, output_count(labels))
        picks = min(self.n_nonzero, n_features) * fit.n_outputs
        peeling = self._make_peeling(n_features, fit.n_outputs)

        def eta(level: float) -> float:
            # `picks` exponential mechanisms of zCDP eta^2/8 each
            return level * math.sqrt(8.0 * self.split / picks)

        def select(level: float) -> Event:
            if peeling is not None:
                return peeling.event(level, self.split)
            return Repeated(Exponential(eta(level)), picks)

        def everything(level: float) -> Event:
            return Sequence((select(level), fit.event(level, 1.0 - self.split)))

        private = not math.isinf(self.epsilon)
        level = find_level(everything, self.epsilon, self.delta)
        scale, jitter = fit.scales(level, 1.0 - self.split)
        if peeling is not None:
            how, first = "prior of the margin, then peeling", peeling.parameters(level, self.split)
        else:
            how = "Gumbel top-k of the votes of secret blocks"
            kappa = eta(level) / (2.0 * vote_sensitivity(self.adjacency).value)
            first = {"kappa": kappa, "n_blocks": self._block_count(n_features, kappa)}
        named = []
        if private:
            named = [
                ("support", select(level), how),
                ("fit", fit.event(level, 1.0 - self.split), f"{fit.method} perturbation"),
            ]
        return Plan(
            method=type(self).__name__,
            phases=phases(named, private),
            epsilon=float(self.epsilon),
            delta=self.delta,
            adjacency=self.adjacency,
            source="docs/proofs/two_stage.md, docs/proofs/objective_perturbation.md",
            assumptions=("noise in ideal real arithmetic",),
            parameters={
                "n_iter": fit.n_iter,
                **first,
                "scale": scale,
                "jitter": jitter,
                "ridge": fit.ridge,
                "row_clip": fit.row_clip,
                "n_outputs": fit.n_outputs,
            },
        )

    def _block_count(self, n_features: int, kappa: float) -> int:
        """Enough blocks that a unanimous vote beats the noise of all other features, at least the
        square root of n_samples (the paper), and at least ten rows in a block."""
        n_samples = self._domain.n_samples
        if self.n_blocks is not None or n_samples is None:
            return self.n_blocks or DEFAULT_BLOCKS
        enough = math.ceil(2.0 * math.log(n_features + 1.0) / kappa)
        return max(2, min(max(enough, math.isqrt(n_samples)), n_samples // 10))

    def _published_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        """As later papers run it: half of epsilon for the votes, all of it again for the fit."""
        s, epsilon = min(self.n_nonzero, n_features), min(float(self.epsilon), 1e6)
        logistic = labels is not None
        return Plan(
            method=type(self).__name__,
            phases=phases([], False),
            epsilon=math.inf,
            delta=self.delta,
            adjacency=self.adjacency,
            calibration="published",
            proven=False,
            source="Kifer, Smith and Thakurta (2012), as later papers implement it; no guarantee",
            parameters={
                "n_iter": 1,
                "n_blocks": self.n_blocks
                or math.isqrt(self._domain.n_samples or DEFAULT_BLOCKS**2),
                "epsilon_support": epsilon / 2.0,
                "scale": published.tilt_scale(s, epsilon, self.delta, logistic=logistic),
                "ridge": self.ridge or published.default_ridge(s, epsilon, logistic=logistic),
                "n_outputs": output_count(labels),
            },
        )

    def _solve(
        self, data: BoundedData, plan: Plan, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        values = plan.parameters
        n_features = data.X.shape[1]
        s = min(self.n_nonzero, n_features)
        selector: Selector = lasso_selector if self.selector == "lasso" else correlation_selector
        n_outputs, logistic = values["n_outputs"], isinstance(self, BaseDPClassifier)
        peeling = self._make_peeling(n_features, n_outputs)
        blocks = []
        if "n_blocks" in values and plan.calibration == "proven":
            blocks = draw_blocks(data.X.shape[0], values["n_blocks"], rng)
        parts = []
        for y in targets(data, n_outputs):
            if peeling is not None:
                support = peeling.solve(data, y, rng, values)
                fit = self._make_fit(n_features, n_outputs)
                theta = fit.solve(data, y, support, rng, values["scale"], values["jitter"])
                parts.append((support, theta))
                continue
            if plan.calibration == "published":
                support = published.voted_support(
                    data.X, y, rng, n_nonzero=s, n_blocks=values["n_blocks"],
                    epsilon=values["epsilon_support"], selector=selector,
                )  # fmt: skip
                rows, _ = support_rows(
                    data, support, fit_intercept=self.fit_intercept, row_clip=1e300
                )
                theta = published.tilted_fit(
                    rows, y, rng, ridge=values["ridge"], scale=values["scale"], logistic=logistic
                )
                parts.append((support, theta))
                continue
            counts = block_votes(data.X, y, blocks, s, selector)
            support = gumbel_top_k(counts, s, values["kappa"], rng)
            fit = self._make_fit(n_features, n_outputs)
            theta = fit.solve(data, y, support, rng, values["scale"], values["jitter"])
            parts.append((support, theta))
        return assemble(parts, n_features, self.fit_intercept)


class DPTwoStageClassifier(_TwoStage, BaseDPClassifier):
    """Sparse logistic model: secret blocks vote for a support, then a private fit on it.

    Parameters
    ----------
    domain : Domain
        Needs `classes`, and `feature_bound` or `row_norm`. `n_samples` sets the default number of
        blocks, and is needed by `second_stage="output"` (without `ridge`) and `"gradient"`.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` gives the non-private model.
    n_nonzero : int
        Size of the support, per class for more than two classes (one against the rest).
    support : {"peeling", "votes"}
        Gumbel top-k of one private gradient (needs `domain.n_samples`), or of the votes of
        blocks as in the paper, which finds far less at the same price.
    n_blocks : int or None
        Public number of blocks; None takes as many as the noise asks for, between the square root
        and a tenth of `domain.n_samples` (64 where that is not declared).
    selector : {"correlation", "lasso"}
        How a block chooses its features: marginal correlation, or the L1 path.
    second_stage : {"objective", "output", "gradient"}
        How the fit on the support is made private.
    split : float
        Share of the budget for the support. The default gives the fit a little more: with the
        wrong half of a support the right weights still predict.
    ridge : float or None
        Ridge of the summed loss on the support; None takes a public default.
    row_clip : float or None
        Rows longer than this on the support count with less weight; None is half of the largest
        norm the domain allows.
    n_iter : int
        Noisy gradients of `second_stage="gradient"`; unused otherwise.
    fit_intercept : bool
        Add a constant column; it carries ridge and noise like every other.
    adjacency : {"add-remove", "replace-one"}
    calibration : {"proven", "published"}
        "published" is Kifer, Smith and Thakurta (2012) as later papers implement it: no guarantee.
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int
    """

    def __init__(
        self,
        domain: Domain | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_nonzero: int = 10,
        support: str = "peeling",
        n_blocks: int | None = None,
        selector: str = "correlation",
        second_stage: str = "objective",
        split: float = 0.4,
        ridge: float | None = None,
        row_clip: float | None = None,
        n_iter: int = 30,
        fit_intercept: bool = True,
        adjacency: str = "add-remove",
        calibration: str = "proven",
        ledger: Ledger | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.domain = domain
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero = n_nonzero
        self.support = support
        self.n_blocks = n_blocks
        self.selector = selector
        self.second_stage = second_stage
        self.split = split
        self.ridge = ridge
        self.row_clip = row_clip
        self.n_iter = n_iter
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose


class DPTwoStageRegressor(_TwoStage, BaseDPRegressor):
    """Sparse Huber regression: secret blocks vote for a support, then a private fit on it.

    The squared loss has no bounded slope without a bound on the weights, so residuals count
    linearly beyond `cutoff`.

    Parameters
    ----------
    domain : Domain
        Needs `target_bound`, and `feature_bound` or `row_norm`.
    cutoff : float or None
        Huber's cutoff; noise is proportional to it. None takes a quarter of the target bound.
    epsilon, delta, n_nonzero, support, n_blocks, selector, second_stage, split, ridge
        As for `DPTwoStageClassifier`.
    row_clip, n_iter, fit_intercept, adjacency, calibration, ledger, random_state, verbose
        As for `DPTwoStageClassifier`.
    """

    def __init__(
        self,
        domain: Domain | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_nonzero: int = 10,
        cutoff: float | None = None,
        support: str = "peeling",
        n_blocks: int | None = None,
        selector: str = "correlation",
        second_stage: str = "objective",
        split: float = 0.4,
        ridge: float | None = None,
        row_clip: float | None = None,
        n_iter: int = 30,
        fit_intercept: bool = True,
        adjacency: str = "add-remove",
        calibration: str = "proven",
        ledger: Ledger | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.domain = domain
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero = n_nonzero
        self.cutoff = cutoff
        self.support = support
        self.n_blocks = n_blocks
        self.selector = selector
        self.second_stage = second_stage
        self.split = split
        self.ridge = ridge
        self.row_clip = row_clip
        self.n_iter = n_iter
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.cutoff is not None:
            check_positive("cutoff", self.cutoff)

    def _loss(self) -> tuple[Loss, float]:
        cutoff = self.cutoff or self._domain.require("target_bound", type(self).__name__) / 4.0
        return Huber(cutoff), cutoff
