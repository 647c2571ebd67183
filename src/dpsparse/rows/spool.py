"""Parts of a table larger than memory: clipped once, written to a file that has no name, then streamed.

    store     one temporary file, unlinked before the first byte is written: no other user can open it, and nothing is
              left when the process ends, however it ends
    pass      every part is mapped, used and unmapped in turn; the pages stay in the operating system's cache while
              there is room, and are read again where there is none
    made      parts made of parts are stored in their second pass (most are asked once), small ones in the first

Sums are whole numbers, so a streamed fit has the bits of a fit in memory.
"""

from __future__ import annotations

import math
import mmap
import pickle
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from dpsparse.rows.parts import Here

COPIES = 2  # of the rows in memory, where they are not streamed: as they are, and by columns


@dataclass(frozen=True)
class _Record:
    """A part in the file: a pickle whose arrays are kept elsewhere, and from where to where each of them lies."""

    pickled: bytes
    offset: int
    spans: list[tuple[int, int]]


class Streamed(Here):
    """Parts that are read from a file."""

    @property
    @abstractmethod
    def fit_in_memory(self) -> bool:
        """Whether a fit may hold all rows at once."""

    def map(self, f: Callable[..., Any], each: Sequence[Any] | None = None) -> Made:
        return Made(self, f, each)


class Stored(Streamed):
    """Parts in a temporary file, in order. Private, as the file is."""

    def __init__(self, memory: float = math.inf) -> None:
        """`memory` is what a fit may use, in bytes."""
        self.memory = memory
        self._file = tempfile.TemporaryFile(prefix="dpsparse-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)  # mapped parts do not need it
        self._records: list[_Record] = []
        self._end = 0

    def append(self, part: Any) -> None:
        """Write a part, whose arrays are contiguous."""
        buffers: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
        start = -(-self._end // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        spans, at = [], 0
        for buffer in buffers:
            at = -(-at // 64) * 64  # aligned
            self._file.seek(start + at)
            self._file.write(buffer.raw())
            spans.append((at, at + buffer.raw().nbytes))
            at = spans[-1][1]
        self._records.append(_Record(pickled, start, spans))
        self._end = start + at
        self._file.truncate(self._end)  # empty arrays at the end of a part have places, too

    @property
    def fit_in_memory(self) -> bool:
        return COPIES * self._end <= self.memory

    def __iter__(self) -> Iterator[Any]:
        self._file.flush()
        for record in self._records:
            # A private mapping is writable, so that kernels compiled for arrays in memory serve; nobody writes.
            # It ends with the last array that looks into it.
            number, size = self._file.fileno(), record.spans[-1][1] if record.spans else 0
            view = memoryview(bytearray())
            if size > 0:
                found = mmap.mmap(number, size, offset=record.offset, access=mmap.ACCESS_COPY)
                view = memoryview(found)
            yield pickle.loads(record.pickled, buffers=[view[a:b] for a, b in record.spans])


class Made(Streamed):
    """What a function makes of every part."""

    def __init__(self, source: Streamed, f: Callable[..., Any], each: Sequence[Any] | None) -> None:
        self._source, self._f, self._own = source, f, each
        self._stored: Stored | None = None
        self._passes = 0

    @property
    def fit_in_memory(self) -> bool:
        return self._source.fit_in_memory

    def __iter__(self) -> Iterator[Any]:
        if self._stored is not None:
            yield from self._stored
            return
        self._passes += 1
        store, keeps = Stored(), self._passes > 1
        for i, part in enumerate(self._source):
            made = self._f(part) if self._own is None else self._f(part, self._own[i])
            if i == 0:
                # What is four times smaller than what it is made of is stored at once.
                keeps = keeps or 4 * size_of(made) <= size_of(part)
            if keeps:
                store.append(made)
            yield made
        if keeps:
            self._stored = store


def size_of(part: Any) -> int:
    """Bytes of all arrays of a part."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    if not is_dataclass(part):
        return 0
    return sum(size_of(getattr(part, field.name)) for field in fields(part))
