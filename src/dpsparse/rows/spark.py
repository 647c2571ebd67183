"""Rows on the executors of a Spark cluster; here, on the driver, are the plan, the ledger and all noise.

    load     batches of a data frame are validated and clipped on an executor, which keeps the parts      then a barrier
    map      f(part) on the executors, which keep it from its first use on
    sum      one task a core for the parts that are near; whole numbers come back and are added here
    persons  their names come here once; then their rows meet on the executors, by a shuffle

What a lost executor had is made again from its source, by the lineage of an RDD. The tasks are those of tasks.py.
"""

# mypy: disable-error-code="no-untyped-call, no-any-return"

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyspark

from dpsparse.domain import Domain
from dpsparse.exceptions import ClusterError, ParameterError, SchemaError
from dpsparse.io.tables import Chosen, batch_blocks, check_names
from dpsparse.rows.memory import Rows
from dpsparse.rows.sources import LARGEST_PART, Meeting, Source, in_parts, meetings, rows_of
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

Key = tuple[int, int]  # a partition, and which of its parts
Element = tuple[Key, Any]  # of an RDD: which part it is, and what is held of it


class OnSpark:
    """Parts on executors, which keep them until this object is gone."""

    def __init__(
        self, run: _Settings, rdd: Any, digests: dict[Key, bytes], *, fit_in_memory: bool
    ) -> None:
        self._run, self._rdd, self._digests = run, rdd, digests
        self.fit_in_memory = fit_in_memory
        weakref.finalize(self, _forget, rdd)

    def map(self, f: Callable[..., Any], each: Sequence[Any] | None = None) -> OnSpark:
        own = [()] * len(self._digests) if each is None else zip(each)
        given = dict(zip(self._digests, own, strict=True))
        rdd = _kept(self._rdd.map(partial(_made, f, given, self._digests)))
        return OnSpark(self._run, rdd, self._digests, fit_in_memory=self.fit_in_memory)

    def sum(self, shape: tuple[int, ...], add: Callable[[Any, np.ndarray], None]) -> np.ndarray:
        out = np.zeros(shape, np.int64)
        for answer in accepted(self._asked(partial(_summed, add, shape, self._digests))):
            out += answer
        return out

    def collect(self, f: Callable[[Any], Any]) -> list[Any]:
        answers = dict(self._asked(partial(_collected, f, self._digests)))
        return accepted(answers[key] for key in self._digests)

    def _asked(self, task: Callable[[Iterable[Element]], Iterator[Any]]) -> list[Any]:
        """The answers of one task a core: a task costs more than most sums of a part."""
        near = self._rdd.coalesce(self._run.context.defaultParallelism)
        return self._run.answers(near.mapPartitions(task))

    def moved(self, all_met: Sequence[Meeting]) -> OnSpark:
        """New parts in which persons meet. Rows go from executor to executor; what is lost is made again."""
        taken: dict[Key, list[tuple[int, np.ndarray]]] = {key: [] for key in self._digests}
        digests, bare = {}, []
        for m, meeting in enumerate(all_met):
            rows_by_part = zip(self._digests, meeting.taken, strict=True)
            some = [(key, rows) for key, rows in rows_by_part if len(rows)]
            for key, rows in some:
                taken[key].append((m, rows))
            digests[m, 0] = joint_digest([self._digests[key] for key, _ in some])
            bare.append(replace(meeting, taken=[]))
        pieces = self._rdd.flatMap(partial(_pieces, taken, self._digests))
        meet = partial(_met, bare, digests, self._digests)
        rdd = _kept(pieces.partitionBy(len(bare), int).mapPartitionsWithIndex(meet))
        parts = OnSpark(self._run, rdd, digests, fit_in_memory=self.fit_in_memory)
        parts.collect(len)  # a barrier, as for loads
        return parts


@dataclass(frozen=True, eq=False)
class _Settings:
    """The Spark context, and how long this process waits for one step."""

    context: Any
    step_timeout: float

    def answers(self, rdd: Any) -> list[Any]:
        """All elements of an RDD, or one error of ours; what takes longer than `step_timeout` is cancelled."""
        group, came = f"dpsparse-{uuid4()}", SimpleQueue[Any]()

        def ask() -> None:
            try:
                self.context.setJobGroup(group, "dpsparse")
                came.put(rdd.collect())
            except Exception as error:  # its text may quote a cell; its type does not
                came.put(type(error).__name__)

        found = None
        pyspark.InheritableThread(target=ask, daemon=True).start()
        try:
            found = came.get(timeout=self.step_timeout)
        except Empty:
            raise ClusterError(
                f"The executors gave no answer within {self.step_timeout:g} s; start some, or allow more with "
                "Rows.from_spark(..., step_timeout=...)."
            ) from None
        finally:
            if found is None:  # also where the user interrupts; the driver itself may not answer
                Thread(target=self.context.cancelJobGroup, args=[group], daemon=True).start()
        if isinstance(found, str):
            raise ClusterError(
                f"Spark could not finish a step ({found}); see whether the data frame can be read, and whether the "
                "executors have memory enough and the same version of dpsparse."
            )
        return found


def _kept(rdd: Any) -> Any:
    return rdd.persist(pyspark.StorageLevel.MEMORY_AND_DISK)


def _forget(rdd: Any) -> None:
    with suppress(Exception):  # the context may be gone already
        rdd.unpersist()


# ---- tasks ---------------------------------------------------------------------------------------


def _guarded(task: Callable[..., Any], *arguments: Any) -> Any:
    return guarded(pyspark.TaskContext.get().cpus(), task, *arguments)


def _loaded(
    domain: Domain, labels: np.ndarray | None, chosen: Chosen, batches: Iterable[Any]
) -> list[Held]:
    """The clipped rows of one partition; the first of its parts has the names of all its persons."""
    own = list(batches)
    if not own:
        return []
    names, weights = (
        None if name is None else np.concatenate([names_of(batch.column(name)) for batch in own])
        for name in (chosen.person, chosen.weight)
    )
    _, blocks = batch_blocks(own, chosen)
    first, *others = in_parts(blocks(labels), domain, labels, LARGEST_PART, weights)
    return [held(first, names), *map(held, others)]


def _numbered(partition: int, rows: Iterable[Any]) -> Iterator[Element]:
    for i, row in enumerate(rows):
        yield (partition, i), pickle.loads(row[0])


def _facts(element: Element) -> tuple[Key, Any, Any]:
    key, one = element
    return key, _guarded(facts, one), getattr(one, "names", None)


def _made(
    f: Callable[..., Any], given: dict[Key, Any], digests: dict[Key, bytes], element: Element
) -> Element:
    key, one = element
    return key, _guarded(made, f, given[key], digests[key], one)


def _summed(
    add: Callable[[Any, np.ndarray], None],
    shape: tuple[int, ...],
    digests: dict[Key, bytes],
    elements: Iterable[Element],
) -> Iterator[Any]:
    yield _guarded(summed, add, shape, ((digests[key], one) for key, one in elements))


def _collected(
    f: Callable[[Any], Any], digests: dict[Key, bytes], elements: Iterable[Element]
) -> Iterator[Element]:
    for key, one in elements:
        yield key, _guarded(collected, f, digests[key], one)


def _pieces(
    taken: dict[Key, list[tuple[int, np.ndarray]]], digests: dict[Key, bytes], element: Element
) -> Iterator[tuple[int, Element]]:
    """The rows of one part by the new part that they go to."""
    key, one = element
    for m, rows in taken[key]:
        yield m, (key, _guarded(made, rows_of, (rows,), digests[key], one))


def _met(
    bare: Sequence[Meeting],
    digests: dict[Key, bytes],
    old: dict[Key, bytes],
    m: int,
    pieces: Iterable[tuple[int, Element]],
) -> Iterator[Element]:
    in_order = sorted((element for _, element in pieces), key=lambda element: element[0])
    pairs = [(old[key], one) for key, one in in_order]
    yield (m, 0), _guarded(met, bare[m].part, digests[m, 0], pairs)


# ---- from data frames ----------------------------------------------------------------------------


class FromSpark(Source):
    """A data frame that a fit loads on the executors of its session."""

    def __init__(self, frame: Any, chosen: Chosen, step_timeout: float, memory: int) -> None:
        if not step_timeout > 0:
            raise ParameterError("step_timeout must be positive.")
        try:
            self._run = _Settings(frame.sparkSession.sparkContext, step_timeout)
        except Exception:  # of several types; Spark Connect has no context
            raise ParameterError(
                "Rows.from_spark takes a data frame of a Spark session with a driver of its own, not of Spark Connect."
            ) from None
        self._features = chosen.features_of(frame.columns)
        self.feature_names, self.n_features = tuple(self._features), len(self._features)
        self._frame, self._memory = frame, memory
        self._chosen = replace(chosen, drop=(), features=self.feature_names)

    def clipped(
        self, domain: Domain, labels: np.ndarray | None, groups: Any = None, weights: Any = None
    ) -> Rows:
        for name, said in (("groups", groups), ("sample_weight", weights)):
            if said is not None and not isinstance(said, str):
                raise SchemaError(f"{name} must be the name of a column of the Spark data frame.")
            if said in self._features:
                raise SchemaError(f"The column that {name} names is a feature; list it in drop.")
        chosen, frame = replace(self._chosen, person=groups, weight=weights), self._frame
        check_names(frame.columns, chosen.others)
        wanted = list(dict.fromkeys([*self._features, *chosen.others]))

        def load(batches: Iterator[Any]) -> Iterator[Any]:
            named = (batch.rename_columns(wanted) for batch in batches if batch.num_rows)
            found = _guarded(_loaded, domain, labels, chosen, named)
            for one in found if isinstance(found, list) else [found]:
                yield pa.record_batch({"held": pa.array([pickle.dumps(one, 5)], pa.binary())})

        quoted = ["`" + name.replace("`", "``") + "`" for name in wanted]
        numbered = frame.select(*quoted).toDF(*map(str, range(len(wanted))))  # dots mean something
        rows = numbered.mapInArrow(load, "held binary").rdd
        rdd = _kept(rows.mapPartitionsWithIndex(_numbered))
        # The barrier: no fit goes on before every row everywhere was validated.
        found = self._run.answers(rdd.map(_facts))
        told = accepted(own for _, own, _ in found)
        if not told:
            raise SchemaError("The data frame holds no rows.")
        digests = {key: digest for (key, _, _), (digest, _, _) in zip(found, told, strict=True)}
        fits = COPIES * sum(n_bytes for _, _, n_bytes in told) <= self._memory
        parts = OnSpark(self._run, rdd, digests, fit_in_memory=fits)
        if groups is not None:
            names = together([names for _, _, names in found if names is not None])
            parts = parts.moved(meetings(names, [n_rows for _, n_rows, _ in told]))
        return Rows(parts, domain, self.n_features)
