"""Rows on the workers of a Dask cluster; here, on the client, are the plan, the ledger and all noise.

    load     every part is loaded, validated and clipped on a worker, which keeps it and its digest      then a barrier
    map      f(part) on the worker that has the part
    sum      one task a worker for all parts it has; whole numbers come back and are added here
    regroup  rows that must meet go from worker to worker, never here
    persons  their names come here once; then their rows meet on the workers, as new parts

What a lost worker had is made again from its source, by Dask's lineage: so numbers go to workers as the result of a
task (tasks.py), never by `client.scatter`, which has none and hangs.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call, no-any-return"

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dask
import distributed
import numpy as np
from distributed.comm.core import CommClosedError

from dpsparse._checks import decoded
from dpsparse.domain import Domain
from dpsparse.exceptions import ClusterError, ParameterError, SchemaError
from dpsparse.rows.memory import Rows
from dpsparse.rows.sources import Meeting, Source, meetings, rows_of
from dpsparse.rows.spool import COPIES
from dpsparse.rows.tasks import (
    Held,
    accepted,
    collected,
    facts,
    guarded,
    held,
    joint_digest,
    made,
    met,
    names_of,
    summed,
    together,
)

_LOST = (
    OSError,
    CommClosedError,
    TimeoutError,
    distributed.TimeoutError,
    distributed.CancelledError,
)


class OnDask:
    """Parts on workers."""

    def __init__(
        self,
        settings: _Settings,
        futures: Sequence[Any],
        digests: Sequence[bytes],
        groups: Sequence[Sequence[int]] | None = None,
        *,
        fit_in_memory: bool,
    ) -> None:
        self._settings, self._futures, self._digests = settings, list(futures), list(digests)
        self.fit_in_memory = fit_in_memory
        # Parts by the worker that has made them: one task a worker and sum.
        self._groups = settings.by_worker(futures) if groups is None else groups

    def map(self, f: Callable[..., Any], each: Sequence[Any] | None = None) -> OnDask:
        run, own = self._settings, [()] * len(self._futures) if each is None else zip(each)
        sent = run.sent(f, len(self._futures))
        tasks = [
            run.submit(made, sent, arguments, digest, one)
            for one, digest, arguments in zip(self._futures, self._digests, own, strict=True)
        ]
        return OnDask(run, tasks, self._digests, self._groups, fit_in_memory=self.fit_in_memory)

    def sum(self, shape: tuple[int, ...], add: Callable[[Any, np.ndarray], None]) -> np.ndarray:
        run = self._settings
        sent = run.sent(add, len(self._groups))
        tasks = [
            run.submit(summed, sent, shape, [(self._digests[i], self._futures[i]) for i in group])
            for group in self._groups
        ]
        out = np.zeros(shape, np.int64)
        for answer in run.gathered(tasks):
            out += answer
        return out

    def collect(self, f: Callable[[Any], Any]) -> list[Any]:
        run = self._settings
        sent = run.sent(f, len(self._futures))
        tasks = [
            run.submit(collected, sent, digest, one)
            for one, digest in zip(self._futures, self._digests, strict=True)
        ]
        return run.gathered(tasks)

    def moved(self, all_met: Sequence[Meeting]) -> OnDask:
        """New parts in which persons meet. Rows go from worker to worker once; what is lost is made again from the old
        parts, which are freed meanwhile: the scheduler knows how to load them."""
        run, futures, digests = self._settings, [], []
        for meeting in all_met:
            some = [i for i, rows in enumerate(meeting.taken) if len(rows)]
            pieces = [
                run.submit(made, rows_of, (meeting.taken[i],), self._digests[i], self._futures[i])
                for i in some
            ]
            own = [self._digests[i] for i in some]
            digests.append(joint_digest(own))
            bare = replace(meeting, taken=[])
            pairs = list(zip(own, pieces, strict=True))
            futures.append(run.submit(met, bare.part, digests[-1], pairs))
        run.gathered([run.submit(facts, future) for future in futures])  # a barrier, as for loads
        return OnDask(run, futures, digests, fit_in_memory=self.fit_in_memory)


@dataclass(frozen=True, eq=False)
class _Settings:
    """The client, and how long it waits for one step."""

    client: Any
    step_timeout: float
    retries: int = 3  # of a task that fails

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Any:
        with (
            warnings.catch_warnings(),
            dask.config.set({"distributed.admin.large-graph-warning-threshold": "10TB"}),
        ):
            warnings.simplefilter("ignore", UserWarning)
            return self.client.submit(
                _guarded, task, *arguments, pure=False, retries=self.retries, priority=10
            )

    def computed(self, task: Callable[..., Any], chunks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """task(*chunk) of delayed chunks, on workers."""
        load = dask.delayed(_guarded, pure=False)
        try:
            return self.client.compute(
                [load(task, *chunk) for chunk in chunks], retries=self.retries
            )
        except _LOST:
            raise ClusterError("The Dask scheduler cannot be reached.") from None

    def sent(self, f: Callable[..., Any], n_tasks: int) -> Any:
        """A function with its released numbers: as it is if short, else as a task, which has lineage."""
        if n_tasks * len(pickle.dumps(f, protocol=5)) <= 2**18:  # which saves a round trip
            return f
        return self.submit(_same, f)

    def gathered(self, tasks: Sequence[Any]) -> list[Any]:
        """The results of all tasks, or one error of ours."""
        return accepted(self.answer(lambda: self.client.gather(list(tasks), errors="raise")))

    def answer(self, ask: Callable[[], Any]) -> Any:
        """What the scheduler or the workers answer within `step_timeout`, transfers included; or one error of ours.

        A call of the client has no timeout of its own. In the client's event loop it can be awaited with one."""

        async def asked() -> Any:
            return await ask()

        try:
            return self.client.sync(asked, callback_timeout=self.step_timeout)
        except _LOST:
            failure = (
                f"The workers gave no answer within {self.step_timeout:g} s; start workers, or allow more "
                "with Rows.from_dask(..., step_timeout=...)."
            )
        except Exception as error:  # a worker that died again and again, or one without dpsparse
            failure = (
                f"A task failed on the workers ({type(error).__name__}); see whether they have memory enough and the "
                "same version of dpsparse."
            )
        raise ClusterError(failure)  # outside the handlers: what a worker sent may quote a cell

    def by_worker(self, futures: Sequence[Any]) -> list[list[int]]:
        """The places of what every worker has, where it is made already."""
        who = self.answer(lambda: self.client.who_has(list(futures)))
        found: dict[str, list[int]] = {}
        for i, future in enumerate(futures):
            found.setdefault(next(iter(who.get(future.key, ())), ""), []).append(i)
        return list(found.values())


# ---- tasks ---------------------------------------------------------------------------------------


def _guarded(task: Callable[..., Any], *arguments: Any) -> Any:
    return guarded(distributed.get_worker().state.nthreads, task, *arguments)


def _same(value: Any) -> Any:
    return value


def _loaded(
    domain: Domain, labels: np.ndarray | None, width: int, X: Any, y: Any, weights: Any = None
) -> Held:
    """The clipped rows of one chunk, in the form in which every chunk is stored, and their digest."""
    X, y = decoded(X), decoded(y)
    y = y.to_numpy() if hasattr(y, "to_numpy") else y
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    if len(np.shape(X)) != 2 or np.shape(X)[1] != width:
        raise SchemaError("Every part of X must be a table with the columns of the whole.")
    if np.ndim(y) == 2 and np.shape(y)[1] == 1:
        y = np.ravel(y)
    part = domain.part(X, y, labels=labels, weights=weights)
    return held(part)


# ---- from collections ----------------------------------------------------------------------------


class OnCluster(Source):
    """Chunks of X and y that a fit loads on the workers of `client`."""

    def __init__(self, X: Any, y: Any, client: Any, step_timeout: float, memory: int) -> None:
        self._client, self._timeout, self._memory = client, step_timeout, memory
        if not step_timeout > 0:
            raise ParameterError("step_timeout must be positive.")
        if y is None:
            raise SchemaError(
                "fit on a Dask collection requires y to be passed, one target per row."
            )
        self._X, self._chunks = X, list(zip(_chunks("X", X), _matching("y", X, y), strict=True))
        if not self._chunks:
            raise SchemaError("X holds no parts.")
        columns = getattr(X, "columns", None)
        if columns is not None:
            self.n_features = len(columns)
            if all(isinstance(name, str) for name in columns):
                self.feature_names = tuple(columns)
        elif hasattr(X, "shape"):
            self.n_features = int(X.shape[1])
        else:  # delayed parts say their width when they are made
            run = self._settings()
            first = [(self._chunks[0][0],)]
            self.n_features = int(run.gathered(run.computed(_n_columns, first))[0])

    def _settings(self) -> _Settings:
        try:
            client = distributed.default_client() if self._client is None else self._client
        except ValueError:
            raise ParameterError(
                "There is no Dask client; start one (dask.distributed.Client) or pass Rows.from_dask(..., client=)."
            ) from None
        return _Settings(client, self._timeout)

    def clipped(
        self, domain: Domain, labels: np.ndarray | None, groups: Any = None, weights: Any = None
    ) -> Rows:
        run = self._settings()
        chunks: list[tuple[Any, ...]] = list(self._chunks)
        if weights is not None:
            own = _matching("sample_weight", self._X, weights)
            chunks = [(*chunk, weight) for chunk, weight in zip(chunks, own, strict=True)]
        to_part = partial(_loaded, domain, labels, self.n_features)
        # Where parts go is left to Dask. Told to prefer a worker (`workers=`, even with `allow_other_workers`), it
        # never makes a part again once every worker it knew is gone: new ones do not count as others.
        futures = run.computed(to_part, chunks)
        # The barrier: no fit goes on before every row everywhere was validated.
        told = run.gathered([run.submit(facts, future) for future in futures])
        sizes = [n_rows for _, n_rows, _ in told]
        if sum(sizes) == 0:
            raise SchemaError("X holds no rows.")
        fits = COPIES * sum(n_bytes for _, _, n_bytes in told) <= self._memory
        parts = OnDask(run, futures, [digest for digest, _, _ in told], fit_in_memory=fits)
        if groups is not None:
            parts = parts.moved(meetings(self._names(run, groups, sizes), sizes))
        return Rows(parts, domain, self.n_features)

    def _names(self, run: _Settings, groups: Any, sizes: list[int]) -> Any:
        """The person of every row, here: names are compared exactly, which no worker can do alone."""
        if not dask.is_dask_collection(groups) and not (
            isinstance(groups, (list, tuple)) and groups and dask.is_dask_collection(groups[0])
        ):
            return groups
        parts = [(part,) for part in _matching("groups", self._X, groups)]
        names = run.gathered(run.computed(names_of, parts))
        if [len(own) for own in names] != sizes:
            raise SchemaError("groups must name one person per row, part by part as X is cut.")
        return together(names)


def _n_columns(X: Any) -> int:
    return int(np.shape(X)[1])


def _chunks(name: str, collection: Any) -> list[Any]:
    """One delayed object for every part, along rows only."""
    if isinstance(collection, (list, tuple)):
        return list(collection)
    if getattr(collection, "numblocks", ())[1:] > (1,):
        collection = collection.rechunk({1: -1})
    if not hasattr(collection, "to_delayed"):
        raise SchemaError(
            f"{name} must be a dask array, a dask data frame or a list of delayed parts, as the other one is."
        )
    return list(np.ravel(collection.to_delayed()))


def _matching(name: str, X: Any, y: Any) -> list[Any]:
    """Parts of y that have the rows of the parts of X, as far as that is known before they are loaded."""
    if hasattr(X, "chunks") and hasattr(y, "chunks") and X.chunks[0] != y.chunks[0]:
        known = not np.isnan([*X.chunks[0], *y.chunks[0]]).any()
        if known and sum(X.chunks[0]) == sum(y.chunks[0]):
            y = y.rechunk({0: X.chunks[0]})
    parts = _chunks(name, y)
    if len(parts) != len(_chunks("X", X)):
        raise SchemaError(
            f"X and {name} have different numbers of parts; give {name} the partitions of X "
            "(rechunk, repartition)."
        )
    return parts
