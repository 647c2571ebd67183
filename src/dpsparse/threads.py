"""Work by all cores: blocks that threads take one after the other, and blocks of rows.

    in_threads(task, blocks)              task(b) for every block
    over_rows(n, work, run)               run(start, stop) for as many blocks of rows as there are cores
    sum_over_rows(n, work, out, add)      add(start, stop, out), each thread into memory of its own
    in_pieces(n, run)                     run(start, stop) for pieces of a vector

Kernels release the GIL; whole numbers are added, so neither the number of threads nor their order changes a bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from queue import Empty, SimpleQueue
from threading import local

import numpy as np

LONG = 2**15  # entries that are worth a thread: as many as another looks at while it wakes up
_mine = local()


@contextmanager
def using_cores(n: int) -> Iterator[None]:
    """Inside, work of this thread may take `n` cores, as on a worker that shares its machine with others."""
    before = getattr(_mine, "cores", 0)
    _mine.cores = max(n, 1)  # blocks for no core at all would be no rows at all
    try:
        yield
    finally:
        _mine.cores = before


def cores() -> int:
    """The cores that work of this thread may take: all of this process, if nobody said otherwise."""
    return int(getattr(_mine, "cores", 0)) or process_cores()


@cache
def process_cores() -> int:
    """The cores that this process may take: its affinity, the limits of its container, NUMBA_NUM_THREADS (which
    joblib sets for its workers) and LOKY_MAX_CPU_COUNT."""
    from joblib import cpu_count

    from dpsparse.jit import numba

    most = int(cpu_count())
    return max(most if numba is None else min(int(numba.config.NUMBA_NUM_THREADS), most), 1)


def in_threads(
    task: Callable[[int], None], blocks: Iterable[int], threads: int | None = None
) -> None:
    """All blocks, on as many threads as there are cores for it, or as the caller knows there are; kernels release
    the GIL. An error of a block is raised when all blocks are done."""
    blocks = list(blocks)
    waiting: SimpleQueue[int] = (
        SimpleQueue()
    )  # hands out each block once, also where Python has no GIL
    for block in blocks:
        waiting.put(block)
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def work() -> None:
        while True:
            error = None
            try:
                block = waiting.get_nowait()
            except Empty:
                return
            try:
                task(block)
            except BaseException as raised:
                error = raised
            ended.put(error)

    if len(blocks) > 1:  # to ask how many cores there are takes longer than many a short block
        with suppress(RuntimeError):  # Python is ending and starts no thread: this one does all
            for _ in range(min(len(blocks), threads or cores()) - 1):
                _pool().submit(work)
    work()  # this thread works too
    # One answer a block, whoever took it. A helper that has not begun may be waiting for this very thread; it will find
    # nothing to do.
    for error in [ended.get() for _ in blocks]:
        if error is not None:
            raise error


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that stay: to start one takes longer than many a pass over the rows."""
    return ThreadPoolExecutor(max(process_cores() - 1, 1), "dpsparse")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of the threads


# ---- blocks of rows ------------------------------------------------------------------------------


def over_rows(n_rows: int, n_entries: int, run: Callable[[int, int], None]) -> None:
    """run(start, stop) for blocks of rows, for kernels that write to the places of their own rows."""
    edges = _edges(n_rows, n_entries)
    threads = len(edges) - 1
    in_threads(lambda b: run(edges[b], edges[b + 1]), range(threads), threads)


def sum_over_rows(
    n_rows: int, n_entries: int, out: np.ndarray, add: Callable[[int, int, np.ndarray], None]
) -> None:
    """add(start, stop, out) for blocks of rows; each thread has its own accumulator where they are small. On a machine
    of many cores these take no more memory than the rows, or 32 MB."""
    wide = 2**22  # entries of a sum that one thread adds alone
    most = 1 if out.size > wide else 2 + max(n_entries, wide) // max(out.size, 1)
    edges = _edges(n_rows, n_entries, most)
    mine = [out, *(np.zeros_like(out) for _ in edges[2:])]
    in_threads(lambda b: add(edges[b], edges[b + 1], mine[b]), range(len(mine)), len(mine))
    for other in mine[1:]:
        over_rows(len(out), out.size, partial(_add_rows_of, other, out))


def in_pieces(n: int, run: Callable[[int, int], None]) -> None:
    """run(start, stop) for pieces of a long vector that fit a near cache, for arithmetic of NumPy: what it makes on the
    way takes no memory to speak of."""

    def run_some(start: int, stop: int) -> None:
        for a in range(start, stop, 2**14):
            run(a, min(a + 2**14, stop))

    over_rows(n, n, run_some)


def _add_rows_of(other: np.ndarray, out: np.ndarray, start: int, stop: int) -> None:
    out[start:stop] += other[start:stop]


def _edges(n_rows: int, n_entries: int, most: int = 2**20) -> list[int]:
    threads = min(n_entries // LONG, most)
    threads = min(threads, cores()) if threads > 1 else 1
    # The first block is that of the calling thread, which has been at work for a while when the others wake up.
    ahead = n_rows * LONG // n_entries if threads > 1 else 0
    return [0, *(ahead + (n_rows - ahead) * b // threads for b in range(1, threads + 1))]
