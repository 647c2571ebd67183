"""Work by all cores: blocks that threads take one after the other, and blocks of rows.

    in_threads(task, blocks)              task(b) for every block
    over_rows(n, work, run)               run(start, stop) for as many blocks of rows as there are cores
    sum_over_rows(n, work, out, add)      add(start, stop, out), each thread into memory of its own
    in_pieces(n, run)                     run(start, stop) for pieces of a vector

Kernels release the GIL; whole numbers are added, so neither the number of threads nor their order changes a bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache, partial
from queue import SimpleQueue
from threading import Thread, local

import numpy as np

_LONG = 2**15  # entries that are worth a thread: as many as another looks at while it wakes up
_WIDE = 2**22  # sums up to this many entries get one accumulator a thread
_PIECE = 2**14
_mine = local()


def use_cores(n: int) -> None:
    """Work of this thread may take `n` cores from now on, as on a worker that shares its machine with others."""
    _mine.cores = max(n, 1)  # blocks for no core at all would be no rows at all


def cores() -> int:
    """The cores that work of this thread may take: all of the machine, if nobody said otherwise."""
    return int(getattr(_mine, "cores", os.cpu_count() or 1))


def in_threads(
    task: Callable[[int], None], blocks: Iterable[int], threads: int | None = None
) -> None:
    """All blocks, on as many threads as there are cores for it, or as the caller knows there are; kernels release
    the GIL."""
    blocks = list(blocks)
    if len(blocks) < 2:  # to ask how many cores there are takes longer than many a short block
        for block in blocks:
            task(block)
        return
    waiting = iter(blocks)  # taking the next block is one instruction of the interpreter
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def help_out() -> None:
        for block in waiting:
            try:
                task(block)
            except BaseException as error:
                ended.put(error)
            else:
                ended.put(None)

    for _ in range(min(len(blocks), threads or cores()) - 1):
        _helpers().put(help_out)
    help_out()  # this thread works too
    # One answer a block, whoever took it. Who counted threads instead would take the answer of one that came too late
    # to find work for that of one still at work. A helper that has not begun may be waiting for this very thread.
    errors = [ended.get() for _ in blocks]
    for error in errors:
        if error is not None:
            raise error


@cache
def _helpers() -> SimpleQueue[Callable[[], None]]:
    """Work for threads that stay: to start one takes longer than many a pass over the rows."""
    queue: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def serve() -> None:
        while True:
            queue.get()()

    # One at least: a worker may be promised more threads than there are cores, and what nobody takes holds rows.
    for _ in range(max((os.cpu_count() or 1) - 1, 1)):
        Thread(target=serve, daemon=True).start()
    return queue


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # a child has none of the threads


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
    most = 1 if out.size > _WIDE else 2 + max(n_entries, _WIDE) // max(out.size, 1)
    edges = _edges(n_rows, n_entries, most)
    mine = [out, *(np.zeros_like(out) for _ in edges[2:])]
    in_threads(lambda b: add(edges[b], edges[b + 1], mine[b]), range(len(mine)), len(mine))
    for other in mine[1:]:
        over_rows(len(out), out.size, partial(_add_rows_of, other, out))


def in_pieces(n: int, run: Callable[[int, int], None]) -> None:
    """run(start, stop) for pieces of a long vector that fit a near cache, for arithmetic of NumPy: what it makes on the
    way takes no memory to speak of."""

    def run_some(start: int, stop: int) -> None:
        for a in range(start, stop, _PIECE):
            run(a, min(a + _PIECE, stop))

    over_rows(n, n, run_some)


def _add_rows_of(other: np.ndarray, out: np.ndarray, start: int, stop: int) -> None:
    out[start:stop] += other[start:stop]


def _edges(n_rows: int, n_entries: int, most: int = 2**20) -> list[int]:
    threads = min(n_entries // _LONG, most)
    threads = min(threads, cores()) if threads > 1 else 1
    # The first block is that of the calling thread, which has been at work for a while when the others wake up.
    ahead = n_rows * _LONG // n_entries if threads > 1 else 0
    return [0, *(ahead + (n_rows - ahead) * b // threads for b in range(1, threads + 1))]
