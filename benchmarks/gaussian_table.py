"""Make and certify src/dpsparse/privacy/gaussian_table.json (docs/proofs/accounting.md, section 8).

An entry (K, c, k) says: K bounded-range steps are dominated by mu^2 = (eta^2/4)(K + c), and every
further step adds at most (1 + k) eta^2/4. The numbers are found at the smallest eta of the grid, where
they are largest, and checked at every other eta. Entries above DIRECT steps are built from the
entry of half their size.

    python benchmarks/gaussian_table.py            makes the table (some twenty minutes on two cores)
"""

from __future__ import annotations

import json
import math
from multiprocessing import Pool
from pathlib import Path

from dpsparse.privacy import dominance
from dpsparse.privacy.dominance import certify_run, certify_step

DIRECT = {1: 128, 2: 128, 3: 128, 4: 128, 6: 128, 8: 64, 12: 64, 16: 64, 24: 64, 32: 64, 64: 64}
DOUBLED = {128: 128, 256: 128, 512: 128, 1024: 128}
RESOLUTION = {**DIRECT, **DOUBLED}  # cells per range
PATH = Path(dominance.__file__).with_name("gaussian_table.json")


def step_certified(entry: dict[str, float], eta: float) -> bool:
    """Whether one more step after the entry's Gaussian costs at most 1 + k."""
    size = int(entry["steps"])
    return dominance.step_fits(eta, size + entry["c"], entry["k"], RESOLUTION[size])


def run_certified(entry: dict[str, float], eta: float) -> bool:
    """Whether the entry's own number of steps is dominated, computed step by step."""
    size = int(entry["steps"])
    return size == 1 or dominance.run_fits(eta, size, entry["c"], DIRECT[size])


def entry_certified(entries: list[dict[str, float]], index: int, square: float) -> bool:
    """Everything the entry rests on, at one eta: its own run or the chain of its halves."""
    entry = entries[index]
    eta = 2.0 * math.sqrt(square / entry["steps"])
    if entry["steps"] in DIRECT:
        return run_certified(entry, eta) and step_certified(entry, eta)
    chain = [e for e in entries[: index + 1] if e["steps"] >= max(DIRECT)]
    return run_certified(chain[0], eta) and all(step_certified(e, eta) for e in chain)


def search() -> list[dict[str, float]]:
    """The entries at the smallest eta, with a margin of 1e-4 for the rest of the grid."""
    entries: list[dict[str, float]] = []
    for size in RESOLUTION:
        eta = 2.0 * math.sqrt(dominance.FIRST / size)
        if size == 1:
            c = math.pi / 2.0 - 1.0
        elif size in DIRECT:
            c = certify_run(eta, size, DIRECT[size])
        else:
            half = entries[-1]
            c = half["c"] + half["steps"] * half["k"]
        c = math.ceil(c * 1.0001 * 1e6) / 1e6
        k = certify_step(eta, size + c, RESOLUTION[size])
        entries.append({"steps": size, "c": c, "k": math.ceil(k * 1.0001 * 1e8) / 1e8})
    return entries


def _check(job: tuple[list[dict[str, float]], int, float]) -> tuple[int, float, bool]:
    entries, index, square = job
    return index, square, entry_certified(entries, index, square)


def main() -> None:
    entries = search()
    jobs = [(entries, i, float(s)) for i in range(len(entries)) for s in dominance.grid()]
    with Pool() as pool:
        for index, square, good in pool.imap_unordered(_check, jobs, chunksize=16):
            if not good:
                raise SystemExit(f"Not certified: entry {entries[index]} at {square}.")
    table = {
        "first": dominance.FIRST,
        "spacing": dominance.GRID,
        "last": dominance.LAST,
        "entries": entries,
    }
    rows = ",\n".join("  " + json.dumps(entry) for entry in entries)
    head = json.dumps({k: v for k, v in table.items() if k != "entries"})[:-1]
    PATH.write_text(head + ', "entries": [\n' + rows + "\n]}\n")


if __name__ == "__main__":
    main()
