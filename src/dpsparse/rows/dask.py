"""Rows on the workers of a Dask cluster; here, on the client, are the plan, the ledger and all noise.

    load     every part is loaded, validated and clipped on a worker, which keeps it and its digest      then a barrier
    map      f(part) on the worker that has the part
    sum      one task a worker for all parts it has; whole numbers come back and are added here
    regroup  rows that must meet go from worker to worker, never here
    persons  their names come here once; then their rows meet on the workers, as new parts

Tasks are pure functions of parts and released numbers. What a lost worker had is made again from its source, by Dask's
lineage: so numbers go to workers as the result of a task, never by `client.scatter`, which has none and hangs. Every
task compares the digest of its part with that of the first load; a source that changed is refused.

A task never raises: Dask logs the arguments of a task that failed, and these are private. It returns a refusal.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call, no-any-return"

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import dask
import distributed
import numpy as np
from distributed.comm.core import CommClosedError

from dpsparse._checks import decoded
from dpsparse.domain import Domain
from dpsparse.domain.clipping import Part
from dpsparse.exceptions import (
    ClusterError,
    DPSparseError,
    ParameterError,
    SchemaError,
    SourceChangedError,
)
from dpsparse.rows.memory import Rows
from dpsparse.rows.sources import Meeting, Source, meetings, rows_of
from dpsparse.rows.spool import COPIES, size_of
from dpsparse.threads import use_cores

_SMALL = (
    2**18
)  # bytes that may travel inside all tasks of a query together, which saves a round trip
_LOST = (
    OSError,
    CommClosedError,
    TimeoutError,
    distributed.TimeoutError,
    distributed.CancelledError,
)


@dataclass(frozen=True, eq=False, repr=False)
class _Held:
    """A part, or what was made of it, on its worker, and the digest of the rows it comes from."""

    value: Any
    digest: bytes


@dataclass(frozen=True)
class _Refusal:
    """Why a task has no result, as a kind of error of ours and its text, which quotes no value."""

    kind: type[DPSparseError]
    text: str


class _Packed(NamedTuple):
    """Whole numbers in as few bytes as the largest of them needs."""

    shape: tuple[int, ...]
    width: int
    data: bytes


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
        made = [
            run.submit(_made, sent, arguments, digest, held)
            for held, digest, arguments in zip(self._futures, self._digests, own, strict=True)
        ]
        return OnDask(run, made, self._digests, self._groups, fit_in_memory=self.fit_in_memory)

    def sum(self, shape: tuple[int, ...], add: Callable[[Any, np.ndarray], None]) -> np.ndarray:
        run = self._settings
        sent = run.sent(add, len(self._groups))
        tasks = [
            run.submit(
                _summed, sent, shape, [self._digests[i] for i in group],
                [self._futures[i] for i in group],
            )
            for group in self._groups
        ]  # fmt: skip
        out = np.zeros(shape, np.int64)
        for answer in run.gathered(tasks):
            out += unpacked(answer)
        return out

    def collect(self, f: Callable[[Any], Any]) -> list[Any]:
        run = self._settings
        sent = run.sent(f, len(self._futures))
        tasks = [
            run.submit(_collected, sent, digest, held)
            for held, digest in zip(self._futures, self._digests, strict=True)
        ]
        return run.gathered(tasks)

    def moved(self, all_met: Sequence[Meeting]) -> OnDask:
        """New parts in which persons meet. Rows go from worker to worker once; what is lost is made again from the old
        parts, which are freed meanwhile: the scheduler knows how to load them."""
        run, futures, digests = self._settings, [], []
        for meeting in all_met:
            some = [i for i, rows in enumerate(meeting.taken) if len(rows)]
            own = [self._digests[i] for i in some]
            pieces = [
                run.submit(_made, rows_of, (meeting.taken[i],), self._digests[i], self._futures[i])
                for i in some
            ]
            digests.append(hashlib.blake2b(b"".join(own), digest_size=16).digest())
            bare = replace(meeting, taken=[])
            futures.append(run.submit(_met, bare.part, digests[-1], own, pieces))
        run.gathered([run.submit(_facts, future) for future in futures])  # a barrier, as for loads
        return OnDask(run, futures, digests, fit_in_memory=self.fit_in_memory)


@dataclass(frozen=True, eq=False)
class _Settings:
    """The client, and how long it waits for one step."""

    client: Any
    step_timeout: float
    retries: int

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
        if n_tasks * len(pickle.dumps(f, protocol=5)) <= _SMALL:
            return f
        return self.submit(_same, f)

    def gathered(self, tasks: Sequence[Any]) -> list[Any]:
        """The results of all tasks, or one error of ours: nothing of a half-finished sum is kept."""
        results = self.answer(lambda: self.client.gather(list(tasks), errors="raise"))
        for result in results:
            if isinstance(result, _Refusal):
                raise result.kind(result.text)
        return list(results)

    def answer(self, ask: Callable[[], Any]) -> Any:
        """What the scheduler or the workers answer within `step_timeout`, transfers included; or one error of ours.

        A call of the client has no timeout of its own. In the client's event loop it can be awaited with one."""

        async def asked() -> Any:
            return await ask()

        try:
            return self.client.sync(asked, callback_timeout=self.step_timeout)
        except _LOST:
            raise ClusterError(
                f"The workers gave no answer within {self.step_timeout:g} s; start workers, or allow more "
                "with Rows.from_dask(..., step_timeout=...)."
            ) from None
        except Exception as error:  # a worker that died again and again, or one without dpsparse
            raise ClusterError(
                f"A task failed on the workers ({type(error).__name__}); see whether they have memory enough and the "
                "same version of dpsparse."
            ) from None

    def by_worker(self, futures: Sequence[Any]) -> list[list[int]]:
        """The places of what every worker has, where it is made already."""
        who = self.answer(lambda: self.client.who_has(list(futures)))
        found: dict[str, list[int]] = {}
        for i, future in enumerate(futures):
            found.setdefault(next(iter(who.get(future.key, ())), ""), []).append(i)
        return list(found.values())


# ---- tasks ---------------------------------------------------------------------------------------


def _guarded(task: Callable[..., Any], *arguments: Any) -> Any:
    use_cores(distributed.get_worker().state.nthreads)  # others may have the rest of the machine
    try:
        return task(*arguments)
    except DPSparseError as error:
        return _Refusal(type(error), str(error))
    except MemoryError:
        raise MemoryError from None  # its text would tell the shape of a part
    except Exception as error:
        return _Refusal(ClusterError, f"A task failed on a worker ({type(error).__name__}).")


def _same(value: Any) -> Any:
    return value


def _loaded(domain: Domain, labels: np.ndarray | None, width: int, X: Any, y: Any) -> _Held:
    """The clipped rows of one chunk, in the form in which every chunk is stored, and their digest."""
    X, y = decoded(X), decoded(y)
    y = y.to_numpy() if hasattr(y, "to_numpy") else y
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    if len(np.shape(X)) != 2 or np.shape(X)[1] != width:
        raise SchemaError("Every part of X must be a table with the columns of the whole.")
    if np.ndim(y) == 2 and np.shape(y)[1] == 1:
        y = np.ravel(y)
    part = domain.part(X, y, labels=labels)
    return _Held(part, digest_of(part))


def digest_of(part: Part) -> bytes:
    """Of all numbers of a part; keyed by nothing, and never shown."""
    found = hashlib.blake2b(digest_size=16)
    for array in (part.indptr, part.indices, part.values, part.targets):
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.digest()


def _checked(held: Any, digest: bytes) -> Any:
    if isinstance(held, _Refusal):
        raise held.kind(held.text)
    if held.digest != digest:
        raise SourceChangedError(
            "A part of the rows was loaded again and is not what it was: its source has changed. Write the rows to "
            "files that nobody changes, and fit anew."
        )
    return held.value


def _facts(held: Any) -> tuple[bytes, int, int]:
    """The digest of the first load, the number of rows, and their bytes."""
    digest = getattr(held, "digest", b"")
    part = _checked(held, digest)
    return digest, len(part), size_of(part)


def _made(f: Callable[..., Any], own: tuple[Any, ...], digest: bytes, held: Any) -> _Held:
    return _Held(f(_checked(held, digest), *own), digest)


def _summed(
    add: Callable[[Any, np.ndarray], None],
    shape: tuple[int, ...],
    digests: Sequence[bytes],
    held: Sequence[Any],
) -> _Packed:
    out = np.zeros(shape, np.int64)
    for one, digest in zip(held, digests, strict=True):
        add(_checked(one, digest), out)
    return packed(out)


def _collected(f: Callable[[Any], Any], digest: bytes, held: Any) -> Any:
    return f(_checked(held, digest))


def _joined(f: Callable[[list[Any]], Any], digests: Sequence[bytes], held: Sequence[Any]) -> Any:
    return f([_checked(one, digest) for one, digest in zip(held, digests, strict=True)])


def _met(
    f: Callable[[list[Any]], Any], digest: bytes, digests: Sequence[bytes], held: Sequence[Any]
) -> _Held:
    return _Held(_joined(f, digests, held), digest)


def _names(names: Any) -> np.ndarray:
    """One name a row as an array; a list keeps its numbers and texts apart, and what is masked stays missing."""
    names = decoded(names)
    if np.ma.isMaskedArray(names):
        names, gaps = names.data.astype(object), np.ma.getmaskarray(names)
        names[gaps] = None
    return np.ravel(np.asarray(names, None if hasattr(names, "dtype") else object))


def _together(parts: Sequence[np.ndarray]) -> Any:
    """The names of all parts. Where their types differ as cells of their own: NumPy would round some of them, and a
    time would be a number without its unit."""
    if len({own.dtype for own in parts}) == 1:
        return np.concatenate(parts)
    return [name for own in parts for name in own]


def packed(numbers: np.ndarray) -> _Packed:
    """The lowest bytes of every number, as many as the largest needs with its sign."""
    numbers = np.ascontiguousarray(numbers, "<i8")
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    width = 1 + max(high.bit_length(), (-low - 1).bit_length() if low < 0 else 0) // 8
    cells = numbers.reshape(-1).view(np.uint8).reshape(-1, 8)
    return _Packed(numbers.shape, width, np.ascontiguousarray(cells[:, :width]).tobytes())


def unpacked(answer: _Packed) -> np.ndarray:
    cells = np.frombuffer(answer.data, np.uint8).reshape(-1, answer.width)
    out = np.zeros((len(cells), 8), np.uint8)
    out[:, 8 - answer.width :] = cells
    return (out.reshape(-1).view("<i8") >> (8 * (8 - answer.width))).reshape(answer.shape)


# ---- from collections ----------------------------------------------------------------------------


class OnCluster(Source):
    """Chunks of X and y that a fit loads on the workers of `client`."""

    def __init__(
        self, X: Any, y: Any, client: Any, step_timeout: float, retries: int, memory: int
    ) -> None:
        self._client, self._timeout, self._retries = client, step_timeout, retries
        self._memory = memory
        if not step_timeout > 0 or retries < 0:
            raise ParameterError("step_timeout must be positive and retries 0 or more.")
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
        return _Settings(client, self._timeout, self._retries)

    def clipped(self, domain: Domain, labels: np.ndarray | None, groups: Any = None) -> Rows:
        run = self._settings()
        to_part = partial(_loaded, domain, labels, self.n_features)
        # Where parts go is left to Dask. Told to prefer a worker (`workers=`, even with `allow_other_workers`), it
        # never makes a part again once every worker it knew is gone: new ones do not count as others.
        futures = run.computed(to_part, self._chunks)
        # The barrier: no fit goes on before every row everywhere was validated.
        facts = run.gathered([run.submit(_facts, future) for future in futures])
        sizes = [n_rows for _, n_rows, _ in facts]
        if sum(sizes) == 0:
            raise SchemaError("X holds no rows.")
        fits = COPIES * sum(n_bytes for _, _, n_bytes in facts) <= self._memory
        parts = OnDask(run, futures, [digest for digest, _, _ in facts], fit_in_memory=fits)
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
        names = run.gathered(run.computed(_names, parts))
        if [len(own) for own in names] != sizes:
            raise SchemaError("groups must name one person per row, part by part as X is cut.")
        return _together(names)


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
