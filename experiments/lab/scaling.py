"""What rows in files cost, where memory does not hold them.

Every fit runs in a process of its own, whose peak of resident memory is read at the end (pages of mapped files count).
Numbers are made up; weights of the streamed fit are compared bit for bit with those of the fit in memory.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lab.measures import peak_memory

Say = Callable[[str], None]


def make_rows(folder: Path, n: int, d: int, per_row: int) -> None:
    """CSR arrays in files: one entry in each of `per_row` ranges of columns, small numbers likelier."""
    files: Any = {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, (n * per_row,))
        for name, dtype in (("data", np.float64), ("indices", np.int32))
    }
    rng, width, step = np.random.default_rng(0), d // per_row, 200_000
    y = np.empty(n, np.int32)
    effect = rng.normal(size=per_row)
    for a in range(0, n, step):
        b = min(a + step, n)
        u = rng.random((b - a, per_row), np.float32)
        columns = np.arange(per_row) * width + (u * u * u * width).astype(np.int32)
        values = rng.random((b - a, per_row), np.float32)
        files["data"][a * per_row : b * per_row] = values.ravel()
        files["indices"][a * per_row : b * per_row] = columns.ravel()
        y[a:b] = (np.where(u < 0.3, values, -values) @ effect + rng.normal(size=b - a)) > 0
    for file in files.values():
        file.flush()
    np.save(folder / "y.npy", y)
    np.save(folder / "shape.npy", np.array([n, d, per_row]))


def one_fit(kind: str, folder: Path) -> dict[str, Any]:
    """Twenty gradient steps on rows in files or in memory: seconds, peak of memory, digest of the weights."""
    from dpsparse import Domain, DPGradientClassifier, Rows

    warnings.simplefilter("ignore")
    domain = Domain(classes=[0, 1])
    small = sp.random_array((200, 50), density=0.2, format="csr", rng=np.random.default_rng(0))
    DPGradientClassifier(domain, n_iter=3).fit(small, np.arange(200) % 2)  # compiled first
    n, d, per_row = np.load(folder / "shape.npy").tolist()
    parts = [
        np.load(folder / f"{name}.npy", mmap_mode="r" if kind == "streamed" else None)
        for name in ("data", "indices")
    ]
    indptr = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    X, y = sp.csr_array((*parts, indptr), shape=(n, d)), np.load(folder / "y.npy")
    began, processor = time.perf_counter(), time.process_time()
    model = DPGradientClassifier(domain, n_iter=20, random_state=0)
    if kind == "streamed":
        model.fit(Rows.from_csr(X, y, memory="600MB", directory=folder))
    else:
        model.fit(X, y)
    weights = (model.coef_, model.intercept_, model.coef_noise_)
    return {
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - processor,
        "peak": peak_memory() / 1e9,
        "digest": hashlib.sha256(b"".join(np.asarray(p).tobytes() for p in weights)).hexdigest(),
    }


def measure_out_of_core(n: int, say: Say) -> None:
    """The same fit in memory and from files."""
    with tempfile.TemporaryDirectory() as name:
        make_rows(Path(name), n, 180_000, 36)
        found = {}
        for kind in ("memory", "streamed"):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found[kind] = pool.apply(one_fit, (kind, Path(name)))
            say(f"{kind}: {found[kind]['seconds']:.3g} s, peak {found[kind]['peak']:.2f} GB")
    memory, streamed = found["memory"], found["streamed"]
    same = "identical" if streamed["digest"] == memory["digest"] else "DIFFERENT"
    say(
        f"files over memory: {streamed['seconds'] / memory['seconds']:.2f} of the time, "
        f"{streamed['processor'] / memory['processor']:.2f} of the processor time (reading into memory not counted); "
        f"{same} weights"
    )
