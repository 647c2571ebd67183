"""Make and certify src/dpsparse/accounting/gaussian_table.json (docs/proofs/accounting.md, section 8).

An entry (K, c, k) says: K bounded-range steps are dominated by mu^2 = (eta^2/4)(K + c), and every further
step adds at most (1 + k) eta^2/4. The numbers are found at the smallest eta of the grid, where they are
largest, and checked at every other eta. Up to 64 steps the run itself is computed; a longer one is its first
64 steps and then steps after a Gaussian, whose price falls with the variance they find.

    python tests/accounting/gaussian_table.py            searches, certifies, and writes the table
    python tests/accounting/gaussian_table.py --check    searches and certifies, and compares with the shipped table

Nothing is written unless all certificates hold; the result is the same, byte for byte, on every machine so far.
Some minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from multiprocessing import Pool
from pathlib import Path

import numpy as np

from dpsparse.accounting import dominance
from dpsparse.accounting.adaptive import Array, bounded_range_profile, steps_in_front
from dpsparse.accounting.dominance import CUT, FIRST, GRID, LAST, gaussian_profile, is_dominated

# Steps: cells per range. The prices of further steps are certified after each of these.
DIRECT = {1: 128, 2: 128, 3: 128, 4: 128, 6: 128, 8: 64, 12: 64, 16: 64, 24: 64, 32: 64, 64: 48}
CHAINED = {128: 96, 256: 96, 512: 96, 1024: 96}
# Longer runs keep the last price; they are here because their eta needs a finer grid.
LONG = [4096, 16384]
PATH = Path(dominance.__file__).with_name("gaussian_table.json")

Entry = dict[str, float]


def run_fits(eta: float, count: int, excess: float, resolution: int) -> bool:
    """Whether `count` steps are certified to be dominated by mu^2 = (eta^2/4)(count + excess)."""
    run = bounded_range_profile(eta, count, resolution, CUT / 10.0)
    return is_dominated(run.values, run.spacing, eta * math.sqrt(count + excess) / 2.0)


def step_fits(eta: float, variance: float, excess: float, resolution: int) -> bool:
    """Whether a step after a Gaussian with mu^2 = (eta^2/4) variance adds (eta^2/4)(1 + excess)."""
    values, spacing = _step_after(eta, variance, resolution)
    return is_dominated(values, spacing, eta * math.sqrt(variance + 1.0 + excess) / 2.0)


def _step_after(eta: float, variance: float, resolution: int) -> tuple[Array, float]:
    mu = eta * math.sqrt(variance) / 2.0
    spacing = eta / resolution * (1.0 + 2.0**-50)
    top = mu * mu / 2.0 + mu * math.sqrt(-2.0 * math.log(CUT / 100.0))
    y: Array = spacing * np.arange(2.0 + math.ceil((top + eta) / spacing))
    return steps_in_front(gaussian_profile(mu, y), spacing, resolution, len(y)), spacing


def certify_run(eta: float, count: int, resolution: int) -> float:
    """The smallest `excess` that `run_fits` accepts, to 1e-5."""
    run = bounded_range_profile(eta, count, resolution, CUT / 10.0)
    return _smallest(
        lambda c: is_dominated(run.values, run.spacing, eta * math.sqrt(count + c) / 2.0), 1e-5
    )


def certify_step(eta: float, variance: float, resolution: int) -> float:
    """The smallest `excess` that `step_fits` accepts, to 1e-8."""
    values, spacing = _step_after(eta, variance, resolution)
    return _smallest(
        lambda k: is_dominated(values, spacing, eta * math.sqrt(variance + 1.0 + k) / 2.0), 1e-8
    )


def _smallest(good: Callable[[float], bool], tolerance: float) -> float:
    low, high = 0.0, 1.0
    if not good(high):
        return math.inf
    while high - low > tolerance:  # `high` is good
        middle = (low + high) / 2.0
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def grid() -> Array:
    """The values of K eta^2/4 at which every entry of the table is certified."""
    return np.concatenate([[FIRST], GRID * np.arange(1.0, round(LAST / GRID) + 1.0)])


def run_certified(entry: Entry, eta: float) -> bool:
    """Whether the entry's own number of steps is dominated, computed step by step."""
    size = int(entry["steps"])
    return size == 1 or run_fits(eta, size, entry["c"], DIRECT[size])


def step_certified(entry: Entry, eta: float) -> bool:
    """Whether one more step after the entry's Gaussian costs at most 1 + k."""
    size = int(entry["steps"])
    resolution = (DIRECT | CHAINED)[size]
    return step_fits(eta, size + entry["c"], entry["k"], resolution)


def entry_certified(entries: list[Entry], index: int, square: float) -> bool:
    """Everything the entry rests on at K eta^2/4 = square: its own run, or the chain from 64 on."""
    entry = entries[index]
    eta = 2.0 * math.sqrt(square / entry["steps"])
    if entry["steps"] in DIRECT:
        return run_certified(entry, eta) and step_certified(entry, eta)
    chain = [e for e in entries[: index + 1] if max(DIRECT) <= e["steps"] <= max(CHAINED)]
    return run_certified(chain[0], eta) and all(step_certified(e, eta) for e in chain)


def search() -> list[Entry]:
    """The entries at the smallest eta, with a margin of 1e-4 for the rest of the grid."""
    entries: list[Entry] = []
    for size in [*DIRECT, *CHAINED, *LONG]:
        eta = 2.0 * math.sqrt(FIRST / size)
        if size == 1:
            c = math.pi / 2.0 - 1.0
        elif size in DIRECT:
            c = certify_run(eta, size, DIRECT[size]) * 1.0001
        else:
            last = entries[-1]
            c = last["c"] + (size - last["steps"]) * last["k"]
        c = math.ceil(c * 1e6) / 1e6
        if size in LONG:
            k = entries[-1]["k"]
        else:
            k = certify_step(eta, size + c, (DIRECT | CHAINED)[size]) * 1.0001
        entries.append({"steps": size, "c": c, "k": math.ceil(k * 1e8) / 1e8})
    return entries


def text_of(entries: list[Entry]) -> str:
    head = {"first": FIRST, "spacing": GRID, "last": LAST}
    rows = ",\n".join("  " + json.dumps(entry) for entry in entries)
    return json.dumps(head)[:-1] + ', "entries": [\n' + rows + "\n]}\n"


def _check(job: tuple[list[Entry], int, float]) -> tuple[int, float, bool]:
    entries, index, square = job
    return index, square, entry_certified(entries, index, square)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make and certify gaussian_table.json.")
    parser.add_argument("--check", action="store_true", help="compare with the shipped table")
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: all cores)")
    options = parser.parse_args()
    start = time.perf_counter()
    entries = search()
    print(f"{len(entries)} entries found in {time.perf_counter() - start:.0f} s", flush=True)
    # The dearest first, so that no process is left alone with them.
    jobs = [(entries, i, float(s)) for i in range(len(entries)) for s in grid()][::-1]
    with Pool(options.jobs) as pool:
        for done, (index, square, good) in enumerate(pool.imap_unordered(_check, jobs, 8), 1):
            if not good:
                raise SystemExit(f"Not certified: {entries[index]} at K eta^2/4 = {square}.")
            if done % 500 == 0 or done == len(jobs):
                spent = time.perf_counter() - start
                print(f"{done} of {len(jobs)} certificates hold, {spent:.0f} s", flush=True)
    if options.check:
        if PATH.read_text() != text_of(entries):
            raise SystemExit(f"{PATH.name} differs from what was found.")
        print(f"{PATH.name} is what was found.")
    else:
        PATH.write_text(text_of(entries))
        print(f"{PATH.name} written.")


if __name__ == "__main__":
    main()
