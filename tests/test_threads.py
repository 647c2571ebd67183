"""Threads: blocks inside blocks, errors, and sums that depend on no thread."""

from threading import Event, Thread, Timer, get_ident
from time import monotonic, sleep

import numpy as np
import pytest

from dpsparse import threads
from dpsparse.threads import in_threads, over_rows, sum_over_rows


def test_threads_inside_threads_and_their_errors(monkeypatch):
    """The helping threads are few and shared: a task that asks for them again must not wait for itself."""
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    done = []
    in_threads(lambda _: in_threads(done.append, range(4)), range(8))
    assert sorted(done) == sorted([*range(4)] * 8)
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda b: 1 // (b - 3), range(5))


def test_nobody_leaves_before_the_last_block_is_done(monkeypatch):
    """One helper is slow, another comes when nothing is left: its answer must not be taken for the slow one's. Noise
    that is still to be added when a release leaves would be no noise."""
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    threads._helpers.cache_clear()
    taken, late, slow = Event(), Event(), Event()
    threads._helpers().put(late.wait)  # the first helper is busy elsewhere
    main, done = get_ident(), []

    def task(block):
        if get_ident() == main:
            taken.wait(10.0)  # so that the second helper has a block
        else:
            taken.set()
            assert slow.wait(10.0)
        done.append(block)

    timers = [Timer(0.2, late.set), Timer(0.6, slow.set)]
    for timer in timers:
        timer.start()
    in_threads(task, range(3))
    assert sorted(done) == [0, 1, 2]
    threads._helpers.cache_clear()


@pytest.mark.parametrize(
    ("shape", "n_entries", "most"),
    [((100,), 10**7, 64), ((100,), 10**5, 3), ((2**21,), 10**6, 4), ((2**22 + 1,), 10**8, 1)],
)
def test_many_cores_neither_take_much_memory_nor_little_work(monkeypatch, shape, n_entries, most):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    seen = []
    sum_over_rows(1000, n_entries, np.zeros(shape, np.int64), lambda a, b, mine: seen.append(mine))
    assert len({id(mine) for mine in seen}) == len(seen) == most


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("shape", [(7,), (40_000,), (20_000, 3)])
def test_every_row_is_seen_once_and_every_sum_added(monkeypatch, cores, shape):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    n = 10_000
    seen, out = np.zeros(n, int), np.ones(shape, np.int64)

    def look(start, stop):
        seen[start:stop] += 1

    def add(start, stop, mine):
        mine += np.arange(start, stop).sum()

    over_rows(n, 10**6, look)
    sum_over_rows(n, 10**6, out, add)
    assert np.all(seen == 1)
    assert np.all(out == 1 + n * (n - 1) // 2)


def test_work_that_is_handed_out_is_taken_also_on_one_core(monkeypatch):
    """A worker that was promised four threads on a machine of one core: what waits for a helper holds rows, and would
    wait for ever if there were none."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    threads._helpers.cache_clear()
    done = []

    def work():
        threads.use_cores(4)
        in_threads(done.append, range(4))

    worker = Thread(target=work)
    worker.start()
    worker.join()
    assert sorted(done) == [0, 1, 2, 3]
    end = monotonic() + 10.0
    while not threads._helpers().empty() and monotonic() < end:
        sleep(0.01)
    assert threads._helpers().empty()
    threads._helpers.cache_clear()
