"""Threads: blocks inside blocks, errors, and sums that depend on no thread."""

import os
import subprocess
import sys
from threading import Event, Thread, Timer, get_ident
from time import sleep

import numpy as np
import pytest

from dpsparse import threads
from dpsparse.threads import in_threads, over_rows, sum_over_rows


def test_threads_inside_threads_and_their_errors(monkeypatch):
    """The helping threads are few and shared: a task that asks for them again must not wait for itself."""
    monkeypatch.setattr(threads, "process_cores", lambda: 4)
    done = []
    in_threads(lambda _: in_threads(done.append, range(4)), range(8))
    assert sorted(done) == sorted([*range(4)] * 8)
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda b: 1 // (b - 3), range(5))


@pytest.fixture
def three_threads(monkeypatch):
    """A pool of two helpers, and this thread."""
    monkeypatch.setattr(threads, "process_cores", lambda: 3)
    threads._pool.cache_clear()
    yield
    threads._pool().shutdown()
    threads._pool.cache_clear()


def test_nobody_leaves_before_the_last_block_is_done(three_threads):
    """One helper is slow, another comes when nothing is left: its answer must not be taken for the slow one's. Noise
    that is still to be added when a release leaves would be no noise."""
    taken, late, slow = Event(), Event(), Event()
    threads._pool().submit(late.wait, 60.0)  # the first helper is busy elsewhere
    main, done = get_ident(), []

    def task(block):
        if get_ident() == main:
            assert taken.wait(300.0)  # so that the second helper has a block
        else:
            taken.set()
            assert slow.wait(300.0)
        done.append(block)

    timers = [Timer(0.2, late.set), Timer(0.6, slow.set)]
    for timer in timers:
        timer.start()
    in_threads(task, range(3))
    assert sorted(done) == [0, 1, 2]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_error_or_ctrl_c_is_raised_when_no_thread_is_at_work(three_threads, error):
    main, helping, done = get_ident(), Event(), []

    def task(block):
        if get_ident() == main:
            assert helping.wait(300.0)
            raise error
        helping.set()
        sleep(0.2)
        done.append(block)

    with pytest.raises(error):
        in_threads(task, range(3))
    n = len(done)
    sleep(0.5)
    assert len(done) == n >= 1


def test_an_error_of_a_helper_reaches_the_caller(three_threads):
    main, failed = get_ident(), Event()

    def task(block):
        if get_ident() == main:
            assert failed.wait(300.0)
        else:
            failed.set()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_threads(task, range(4))


def run_script(code):
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=300)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_has_helpers_of_its_own():
    """None of the threads of its parent is there, and their pool would wait for them for ever."""
    run_script(
        "import os\n"
        "from dpsparse import threads\n"
        "threads.process_cores = lambda: 3\n"
        "def total():\n"
        "    done = []\n"
        "    threads.in_threads(done.append, range(50))\n"
        "    return sorted(done) == list(range(50))\n"
        "assert total()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if total() else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0 and total()\n"
    )


def test_a_thread_that_outlives_the_program_does_all_by_itself():
    """Python starts no helper any more when the main thread has ended."""
    run_script(
        "import threading, time, os\n"
        "from dpsparse import threads\n"
        "threads.process_cores = lambda: 3\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        "    done = []\n"
        "    try:\n"
        "        threads.in_threads(done.append, range(50))\n"
        "    finally:\n"
        "        os._exit(0 if sorted(done) == list(range(50)) else 1)\n"
        "threading.Thread(target=late).start()\n"
    )


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_affinity_and_limits_of_workers_count():
    one = "import os; os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1]); "
    check = "from dpsparse.threads import cores; assert cores() == 1"
    run_script(one + check)
    run_script("import os; os.environ['NUMBA_NUM_THREADS'] = '1'; " + check)


@pytest.mark.parametrize(
    ("shape", "n_entries", "most"),
    [((100,), 10**7, 64), ((100,), 10**5, 3), ((2**21,), 10**6, 4), ((2**22 + 1,), 10**8, 1)],
)
def test_many_cores_neither_take_much_memory_nor_little_work(monkeypatch, shape, n_entries, most):
    monkeypatch.setattr(threads, "process_cores", lambda: 64)
    seen = []
    sum_over_rows(1000, n_entries, np.zeros(shape, np.int64), lambda a, b, mine: seen.append(mine))
    assert len({id(mine) for mine in seen}) == len(seen) == most


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("shape", [(7,), (40_000,), (20_000, 3)])
def test_every_row_is_seen_once_and_every_sum_added(monkeypatch, cores, shape):
    monkeypatch.setattr(threads, "process_cores", lambda: cores)
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


def test_a_worker_that_was_promised_more_threads_than_there_are_cores(monkeypatch):
    monkeypatch.setattr(threads, "process_cores", lambda: 1)
    done = []

    def work():
        with threads.using_cores(4):
            in_threads(done.append, range(4))
        assert threads.cores() == 1

    worker = Thread(target=work)
    worker.start()
    worker.join(60.0)
    assert sorted(done) == [0, 1, 2, 3]
