"""Private runs, and releases: a method of `Releases` is the only way a number that depends on rows leaves a solver.

A plan's phase says what may be released and what it costs; scale and sensitivity are taken from it, so
what is charged is what is drawn. A phase of Gaussian events has a budget mu^2 = sum (sensitivity/scale)^2;
a release takes a public `share` of it. More than the whole is refused: that would be a bug.

Why not in `accounting/`: that package holds prices and knows neither noise nor rows.

`private_run` is the one way from a plan and private rows to a published result. Fits, preparation steps, pipelines,
searches, evaluations and inference all pass there:

    refuse what no proof covers -> warn -> reserve -> release -> commit

No step goes back. Everything that can be refused is refused before the ledger is charged, and the ledger is charged
before noise is drawn.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpsparse._checks import show_number
from dpsparse.accounting.conversion import dominated_epsilon
from dpsparse.accounting.conversion import epsilon as event_epsilon
from dpsparse.accounting.events import (
    Event,
    Exponential,
    NonPrivate,
    Repeated,
    RoundedGaussian,
    Sequence,
    ThresholdedGaussian,
    leaves,
)
from dpsparse.accounting.guarantee import EVALUATED, Plan
from dpsparse.exceptions import (
    CalibrationError,
    DomainError,
    NotPrivateWarning,
    ParameterError,
    UnpaidFitsWarning,
)
from dpsparse.jit import NO_NUMBA, numba
from dpsparse.mechanisms import (
    Answer,
    CommonNames,
    GaussianNoise,
    GeometricNoise,
    Picks,
    Tilt,
    Vertices,
)
from dpsparse.mechanisms.gaussian import exact_unit
from dpsparse.mechanisms.top_k import MOST_CANDIDATES
from dpsparse.random import STEPS, make_generator
from dpsparse.rows.parts import Query
from dpsparse.threads import in_pieces

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger
    from dpsparse.methods.frank_wolfe.run import History, Steps
    from dpsparse.nonzeros import PrivateCount
    from dpsparse.rows import Names, RidgeProblem, Rows
    from dpsparse.sensitivity import Sensitivity


R = TypeVar("R")


class Releases:
    """The releases of one fit that follows `plan`."""

    def __init__(self, plan: Plan, rng: np.random.Generator) -> None:
        self._adjacency, self.rng = plan.adjacency, rng
        self._events = {phase.name: phase.event for phase in plan.phases}
        self._noiseless = all(isinstance(event, NonPrivate) for event in self._events.values())
        self._used: dict[str, float] = defaultdict(float)
        self.progress: Callable[[str, float], None] = _untold

    def under(self, plan: Plan, name: str) -> Releases:
        """Releases of a run inside this one, such as a fit of a search, that follow a plan of their own.

        `name` tells them apart, for those who write releases down."""
        return type(self)(plan, self.rng)

    # ---- what a solver calls -------------------------------------------------------------------

    def number_of_rows(self, rows: Sized) -> int | None:
        """How many rows (or persons) there are, where that is public: under replace-one, or without noise."""
        return len(rows) if self._noiseless or self._adjacency == "replace-one" else None

    def exact(self, phase: str) -> bool:
        """Whether a phase adds no noise; a plan without any need not name its phases."""
        return self._noiseless or isinstance(self._event(phase), NonPrivate)

    def budget(self, phase: str) -> float:
        """mu of the whole phase: sensitivity over noise scale if all of it were one release."""
        return math.inf if self.exact(phase) else math.sqrt(_squares(self._event(phase)))

    def scale(self, phase: str, query: Query, share: float = 1.0) -> float:
        """Standard deviation of the noise that `gaussian` would add."""
        if self.exact(phase):
            return 0.0
        mu = self.budget(phase) * math.sqrt(share)
        return GaussianNoise.scale_for(query, mu, self._adjacency)

    def gaussian(self, phase: str, query: Query, share: float = 1.0) -> np.ndarray:
        """The answer to `query` with noise for `share` of the phase's budget."""
        self._use(phase, share)
        scale = self.scale(phase, query, share)
        unit = scale / STEPS if scale > 0.0 else exact_unit(query)
        whole = self._release(phase, GaussianNoise(query, scale, unit))
        return _times(whole, unit).reshape(query.shape)

    def geometric(self, phase: str, query: Query) -> np.ndarray:
        """The answer to a query of one number, with the geometric noise that the phase pays for."""
        self._use(phase, 1.0)
        noise = self._geometric(phase, query)
        return _times(self._release(phase, noise), noise.unit)

    def geometric_sd(self, phase: str, query: Query) -> float:
        """Standard deviation of the noise that `geometric` would add."""
        return self._geometric(phase, query).sd

    def top_k(self, phase: str, scores: Query, k: int, unit: float) -> np.ndarray:
        """Sorted indices of `k` entries, each drawn by the exponential mechanism on the whole numbers
        `scores.whole(unit)` (their magnitudes matter if the query says so)."""
        self._use_picks(phase, k)
        kappa = self.kappa(phase, scores.sensitivity) * unit
        return np.sort(self._release(phase, Picks(scores, k, unit, kappa)))

    def kappa(self, phase: str, per_kappa: Callable[[str], Sensitivity]) -> float:
        """Inverse temperature of the selections of a phase; `per_kappa` is the range of one at kappa = 1."""
        if self.exact(phase):
            return math.inf
        leaf, _ = _leaf(self._event(phase))
        assert isinstance(leaf, Exponential)
        return Picks.kappa_for(per_kappa(self._adjacency), leaf)

    def vertices(self, phase: str, steps: Steps, n_steps: int) -> History:
        """`n_steps` of Frank-Wolfe, each a signed vertex drawn inside the kernel that updates the scores."""
        self._use_picks(phase, n_steps)
        return self._vertices(phase, Vertices(steps, n_steps))

    def count(
        self, phase: str, rule: PrivateCount, exact: Callable[[Releases], int], n: int
    ) -> int:
        """A noisy count of at most `n`; `exact` computes the count itself, with releases that add no noise."""
        if not self.exact(phase) and self._event(phase) != rule.event:
            raise CalibrationError(f"Phase {phase!r} pays for another count; a bug.")

        def whole(unit: float) -> np.ndarray:
            return np.array([round(rule.clipped(exact(_Silent(self))) / unit)])

        query = Query((1,), lambda _: rule.moved, whole)
        return rule.kept(round(self.geometric(phase, query)[0]), n)

    def names(self, phase: str, names: Names) -> tuple[tuple[str, ...], np.ndarray]:
        """Names whose noisy weight is above the threshold of the phase, in their own order, and these weights.

        Only names that occur get noise; only the threshold reveals which ones occur.
        """
        self._use(phase, 1.0)
        event = None if self.exact(phase) else self._event(phase)
        assert event is None or isinstance(event, ThresholdedGaussian)
        common = CommonNames.paid_by(event, names, self._adjacency)
        told = self._release(phase, common)
        return tuple(told["name"]), told["weight"] * common.unit

    def tilt(self, phase: str, problem: RidgeProblem) -> np.ndarray:
        """The minimiser of `problem` tilted by noise, blurred so that nobody sees where the search stopped."""
        if self.exact(phase):
            query = problem.minimiser()
            # One row moves a minimiser little where rows are many: a finer grid than that of sums.
            unit = exact_unit(query) * 2.0**-16
            return _times(query.whole(unit), unit)
        event, count = _leaf(self._event(phase))
        assert isinstance(event, Sequence)
        self._use(phase, 1.0 / count)
        tilt = Tilt.paid_by(event, problem, self._adjacency)
        return _times(self._tilted(phase, tilt), tilt.fine)

    def release(self, phase: str, answer: Callable[[Event, str], Answer]) -> np.ndarray:
        """Whole numbers by any other mechanism: `answer` makes it from what the phase pays for one release."""
        event: Event = NonPrivate()
        if not self.exact(phase):
            event, count = _leaf(self._event(phase))
            self._use(phase, 1.0 / count)
        made = answer(event, self._adjacency)
        if not isinstance(event, (NonPrivate, *made.events)):
            raise CalibrationError(f"Phase {phase!r} does not pay for {made.kind}; a bug.")
        return self._release(phase, made)

    def admit(self, rows: R) -> R:
        """The rows of this run: private rows of any kind come in here or through `capped`. An audit hands back hollow
        ones, to see that nothing else is read."""
        return rows

    def capped(self, rows: Rows) -> Rows:
        """At most `Domain.rows_per_unit` rows of every person, chosen by secret draws that ignore their content."""
        if self._noiseless and len(rows) >= 2**31:  # noise would hide where 63 bits wrap around
            raise ParameterError(
                "Sums without noise are exact for fewer than 2**31 rows. Fit with a finite epsilon, or on fewer rows."
            )
        m = rows.domain.rows_per_unit
        return rows if m is None else rows.at_most(m, self.rng)

    # ---- how it is done ------------------------------------------------------------------------

    def _release(self, phase: str, mechanism: Answer) -> np.ndarray:
        """What leaves. The audit's releases look in here and into the two below, and nowhere else."""
        return mechanism.draw(mechanism.question(), self.rng)

    def _geometric(self, phase: str, query: Query) -> GeometricNoise:
        event = NonPrivate() if self.exact(phase) else self._event(phase)
        return GeometricNoise.paid_by(event, query, self._adjacency)

    def _vertices(self, phase: str, vertices: Vertices) -> History:
        """Rows and noise meet in the kernel of Frank-Wolfe."""
        done = 0

        def tell(more: int) -> None:
            nonlocal done
            done += more
            self.progress(phase, done / vertices.n_steps)

        return vertices.draw(self.rng, tell)

    def _tilted(self, phase: str, tilt: Tilt) -> np.ndarray:
        """The question follows from the tilt: noise comes first, and again at the end."""
        minimiser = tilt.minimiser(tilt.tilt(self.rng)).whole(tilt.fine)
        return tilt.blurred(minimiser, self.rng)

    def _event(self, phase: str) -> Event:
        if phase not in self._events:
            raise CalibrationError(f"The plan has no phase {phase!r}; this is a bug.")
        return self._events[phase]

    def _use_picks(self, phase: str, k: int) -> None:
        if not self.exact(phase):
            self._use(phase, k / _leaf(self._event(phase))[1])

    def _use(self, phase: str, share: float) -> None:
        # A share below zero, or none at all, would unlock the phase.
        if not 0.0 <= share <= 1.0 + 1e-9:
            raise CalibrationError(f"An impossible share of phase {phase!r}: an error in a method.")
        self._used[phase] += share
        if self._used[phase] > 1.0 + 1e-9:
            raise CalibrationError(f"Phase {phase!r} would release more than it pays; a bug.")
        self.progress(phase, self._used[phase])


class _Silent(Releases):
    """Releases without noise, for a number that is itself released with noise."""

    def __init__(self, releases: Releases) -> None:
        self._adjacency, self.rng = releases._adjacency, releases.rng
        self._events, self._used, self._noiseless = releases._events, defaultdict(float), True
        self.progress = releases.progress


def _untold(phase: str, done: float) -> None:
    """No progress is shown."""


def _times(whole: np.ndarray, unit: float) -> np.ndarray:
    """whole * unit in the memory of `whole`, which may be most of what a wide fit uses."""
    out = whole.view(np.float64)

    def multiply(start: int, stop: int) -> None:
        out[start:stop] = whole[start:stop] * unit

    in_pieces(out.size, multiply)
    return out


def _leaf(event: Event, count: int = 1) -> tuple[Event, int]:
    """What is repeated, and how often."""
    if isinstance(event, Repeated):
        return _leaf(event.event, count * event.count)
    return event, count


def _squares(event: Event) -> float:
    """Sum of (sensitivity/scale)^2 over the Gaussian leaves of an event."""
    if isinstance(event, Sequence):
        return sum(_squares(part) for part in event.events)
    if isinstance(event, Repeated):
        return event.count * _squares(event.event)
    if isinstance(event, RoundedGaussian):
        return (event.sensitivity / event.scale) ** 2
    raise CalibrationError(f"{type(event).__name__} is not paid by Gaussian noise; this is a bug.")


MakeReleases = Callable[[Plan], Releases]

# Unpaid fits of this process, by what their events are about: events of one adjacency and unit can be composed. They
# are public, and hold nothing about rows.
_unpaid: dict[tuple[str, str], Counter[Event]] = {}
_lock = threading.Lock()
_RUN_IN_TASK = "DPSPARSE_FIT_IN_TASK"

# None makes the ordinary releases. The audit sets its own, which write down everything that leaves.
_make_releases: ContextVar[MakeReleases | None] = ContextVar("make_releases", default=None)


def private_run(
    plan: Plan,
    rows: Rows | None,
    body: Callable[[Releases], R],
    *,
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> R:
    """The result of `body`, which may look at private rows through the releases that `plan` pays for.

    `rows` are asked for their number and width, to refuse tables that the arithmetic is not proven for; None where
    any table is covered. An error inside `body` leaves the reservation in the ledger: something may have been released.
    """
    if numba is None:
        raise ImportError(NO_NUMBA)
    _refuse_inside_task(plan)
    _refuse_too_many_rows(plan, rows)
    _refuse_too_many_candidates(plan, rows)
    _warn_if_not_private(plan)
    # An evaluation reads other rows than the fit, and an audit makes its rows up.
    if ledger is None and plan.table != EVALUATED and _make_releases.get() is None:
        _count_unpaid_fit(plan)
    receipt = None if ledger is None else ledger.reserve(plan)
    result = body(make_releases(plan, random_state))
    if receipt is not None:
        receipt.commit()
    return result


def make_releases(plan: Plan, random_state: Any = None) -> Releases:
    """The releases of a run that follows `plan`; a seed makes them repeatable, and so not private."""
    make = _make_releases.get()
    return make(plan) if make else Releases(plan, make_generator(random_state))


@contextmanager
def releases_made_by(make: MakeReleases) -> Iterator[None]:
    """Runs inside this context get their releases from `make`: for audits, which record or replay them."""
    token = _make_releases.set(make)
    try:
        yield
    finally:
        _make_releases.reset(token)


def _refuse_inside_task(plan: Plan) -> None:
    """Dask and Spark may run a task twice, and a private run that is carried out twice spends twice."""
    if math.isinf(plan.epsilon) or os.environ.get(_RUN_IN_TASK) == "1":
        return
    inside = []
    if (distributed := sys.modules.get("distributed")) is not None:
        with suppress(ValueError):
            inside.append((distributed.get_worker(), "Dask"))
    if (pyspark := sys.modules.get("pyspark")) is not None:
        inside.append((pyspark.TaskContext.get(), "Spark"))
    for task, engine in inside:
        if task is not None:
            raise ParameterError(
                f"{plan.method} was called inside a {engine} task. {engine} may run a task again, and every run spends "
                f"epsilon: call it outside; fits take Rows.from_{engine.lower()}. The environment variable "
                f"{_RUN_IN_TASK}=1 on the workers allows it nevertheless."
            )


def _refuse_too_many_rows(plan: Plan, rows: Rows | None) -> None:
    """A guarantee is about tables that are not refused, so the rows of the table count here, not the declared number.
    A plan without phases releases nothing."""
    if rows is None or plan.max_rows is None or not plan.phases:
        return
    if len(rows) * rows.rows_per_unit > plan.max_rows:
        raise DomainError(
            f"{plan.method} is proven for tables of up to {plan.max_rows} rows. DPGradientClassifier and "
            "DPGradientRegressor take more. Nothing was spent."
        )


def _refuse_too_many_candidates(plan: Plan, rows: Rows | None) -> None:
    """Where rows are read in parts, `mechanisms/top_k.py` draws among all weights (columns by classes) of two signs. Of
    a source every table is refused: whether its rows fit in memory is a fact about the rows."""
    if rows is None or not rows.from_source:
        return
    classes = rows.domain.classes
    n_outputs = len(classes) if isinstance(classes, tuple) and len(classes) > 2 else 1
    n_candidates = 2 * (rows.n_features + 1) * n_outputs
    picks = any(isinstance(leaf, Exponential) for leaf in leaves(plan.event))
    if picks and n_candidates > MOST_CANDIDATES:
        raise DomainError(
            f"{plan.method} is proven for up to {MOST_CANDIDATES // 2} weights of rows from files, batches or a "
            "cluster, and this table has more. Hash its columns, or use DPGradientClassifier. Nothing was spent."
        )


def _warn_if_not_private(plan: Plan) -> None:
    if plan.randomness == "seeded":
        reason = (
            "random_state makes the noise repeatable, so this result is NOT private. "
            "Leave random_state=None for a result you publish."
        )
    elif not plan.proven:
        reason = "this is the published form of a paper, for reproduction, and NOT proven private."
    else:
        return
    # Two frames above private_run: the line of the user who called fit.
    warnings.warn(f"{plan.method}: {reason}", NotPrivateWarning, stacklevel=4)


def _count_unpaid_fit(plan: Plan) -> None:
    """Count a fit without a ledger; warn at the 2nd, 4th, 8th, 16th ... of the process.

    Every guarantee is about one fit. Cross-validation, stacking, one-vs-rest and calibration fit many times, and a fit
    does not know who asked for it. A search of scikit-learn with `n_jobs` fits in several processes, and each counts
    its own fits alone; a ledger counts them all.

    The warning comes before noise is drawn, so that nothing is released where warnings are errors. Fits that promise
    nothing (seeded, noiseless) are not counted: they have a warning of their own.

    Of many fits the dominating Gaussians are added: the product of many kinds of steps takes seconds, and its grids
    become so coarse that it is no lower.
    """
    if not plan.guarantee.proven:
        return
    with _lock:
        events = _unpaid.setdefault((plan.adjacency, plan.unit), Counter())
        events[plan.event] += 1
        n_fits = events.total()
        together = Sequence(tuple(Repeated(event, n) for event, n in events.items()))
    if n_fits == 1 or n_fits & (n_fits - 1):
        return
    price = event_epsilon if n_fits <= 4 else dominated_epsilon
    spent = price(together, plan.delta)
    warnings.warn(
        f"This process has made {n_fits} private fits without a ledger. If they used the same rows, they spent epsilon "
        f"{spent:.3g} at delta {show_number(plan.delta)} together. Pass ledger=Ledger(path, epsilon=...) to every fit: "
        "it keeps the account, refuses what exceeds it, and ends this warning.",
        UnpaidFitsWarning,
        stacklevel=4,
    )
