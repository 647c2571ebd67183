"""Child processes of the ledger attacks, and how the tests start them; not a test itself.

spend PATH COUNT N      N processes at once reserve COUNT times each, and print one line per granted reservation
crash PATH ROUNDS SEED  fork a spender, kill -9 it at a random moment, check the book; repeat
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from dpsparse.accounting import Gaussian, Phase, Plan, Repeated, epsilon
from dpsparse.exceptions import BudgetError
from dpsparse.ledger import Ledger

WORKER = Path(__file__)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(WORKER.parents[2] / "src")}
SCALE, DELTA = 200.0, 1e-6
PLAN = Plan("attack", (Phase("step", Gaussian(SCALE)),), 0.1, DELTA, "add-remove")


def ceiling(count: int) -> float:
    """An epsilon under which exactly `count` plans fit."""
    fits, too_many = (epsilon(Repeated(Gaussian(SCALE), k), DELTA) for k in (count, count + 1))
    return (fits + too_many) / 2


def spend(path: str, count: int) -> int:
    """Reserve again and again; a line on stdout only after the reservation returned."""
    ledger, granted = Ledger(path), 0
    for _ in range(count):
        try:
            receipt = ledger.reserve(PLAN)
        except BudgetError:
            continue
        os.write(1, f"{receipt.seq} {receipt.hash}\n".encode())
        granted += 1
        receipt.commit()
    return granted


def spend_at_once(path: str, count: int, processes: int) -> None:
    """Forked, so that they begin together and Python starts once; a line of a pipe is written whole."""
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            spend(path, count)
            os._exit(0)
        children.append(child)
    if any(os.waitpid(child, 0)[1] for child in children):
        sys.exit("a spender failed")


def crash(path: str, rounds: int, seed: int) -> None:
    rng, acknowledged = random.Random(seed), set()
    for _ in range(rounds):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(write, 1)
            spend(path, 10**6)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            # at a random moment after 0, 1 or 2 receipts, however slow the machine is
            lines = [pipe.readline() for _ in range(rng.randrange(3))]
            time.sleep(rng.uniform(0.0, 0.04))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lines += list(pipe)
        acknowledged |= {line.strip() for line in lines if line.endswith("\n")}
        ledger = Ledger(path)
        ledger.verify()
        recorded = {f"{entry.seq} {entry.hash}" for entry in ledger.history()}
        lost = acknowledged - recorded
        assert not lost, f"{len(lost)} reservations lost"
        assert ledger.spent() <= ledger.terms.epsilon
    print(f"acknowledged {len(acknowledged)} recorded {len(recorded)}")


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, str(WORKER), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def run_spenders(location, processes, each):
    """All receipts the processes were given, as they printed them."""
    child = start("spend", location, each, processes)
    out, err = child.communicate(timeout=600)
    assert child.returncode == 0, err
    return out.split("\n")[:-1]


def check_readers(location, each):
    """A book that grows while it is read is whole at every look."""
    ledger = Ledger(location, epsilon=ceiling(10**4), delta=DELTA, dataset="default")
    child = start("spend", location, each, 1)
    looks, before, deadline = 0, 0, time.monotonic() + 600.0
    while child.poll() is None:
        assert time.monotonic() < deadline
        entries = Ledger(location).verify()
        assert entries >= before
        looks, before = looks + 1, entries
    _, err = child.communicate(timeout=600)
    assert child.returncode == 0, err
    assert ledger.verify() == 2 * each
    assert looks > 1


def check_race(location, processes, each, room):
    ledger = Ledger(location, epsilon=ceiling(room), delta=DELTA)
    receipts = run_spenders(location, processes, each)
    assert len(receipts) == room
    assert set(receipts) == {f"{entry.seq} {entry.hash}" for entry in ledger.history()}
    assert len(set(receipts)) == room
    assert ledger.spent() <= ledger.terms.epsilon
    assert ledger.verify() == 2 * room


if __name__ == "__main__":
    if sys.argv[1] == "spend":
        spend_at_once(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        crash(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
