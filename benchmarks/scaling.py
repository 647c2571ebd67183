# ruff: noqa: E501
"""What more rows than one machine holds cost: python benchmarks/scaling.py [out-of-core|wide|cluster|coordinator]

Every fit runs in a process of its own, whose peak of resident memory is read at the end (pages of mapped files count).
Numbers are made up; weights of the streamed fit are compared bit for bit with those of the fit in memory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp


def make_rows(folder: Path, n: int, d: int, per_row: int) -> None:
    """CSR arrays in files: one entry in each of `per_row` ranges of columns, small numbers likelier."""
    shapes = {"data": (n * per_row, np.float64), "indices": (n * per_row, np.int32)}
    files = {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, (size,))
        for name, (size, dtype) in shapes.items()
    }
    rng, width, step = np.random.default_rng(0), d // per_row, 200_000
    y = np.empty(n, np.int32)
    effect = rng.normal(size=per_row)
    for a in range(0, n, step):
        b = min(a + step, n)
        u = rng.random((b - a, per_row), np.float32)
        columns = (np.arange(per_row) * width + (u * u * u * width).astype(np.int32)).astype(
            np.int32
        )
        values = rng.random((b - a, per_row), np.float32)
        files["data"][a * per_row : b * per_row] = values.ravel()
        files["indices"][a * per_row : b * per_row] = columns.ravel()
        y[a:b] = (np.where(u < 0.3, values, -values) @ effect + rng.normal(size=b - a)) > 0
    for file in files.values():
        file.flush()
    np.save(folder / "y.npy", y)
    np.save(folder / "shape.npy", np.array([n, d, per_row]))


def open_rows(folder: Path, mode: str | None) -> tuple[sp.csr_array, np.ndarray]:
    n, d, per_row = np.load(folder / "shape.npy").tolist()
    data, indices = (
        np.load(folder / f"{name}.npy", mmap_mode=mode) for name in ("data", "indices")
    )
    indptr = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    return sp.csr_array((data, indices, indptr), shape=(n, d)), np.load(folder / "y.npy")


def peak() -> float:
    """GB; the kernel's own mark, because that of `getrusage` begins with the parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e6


def digest(model) -> str:
    parts = (model.coef_, model.intercept_, model.coef_noise_)
    return hashlib.blake2b(
        b"".join(np.asarray(p).tobytes() for p in parts), digest_size=6
    ).hexdigest()


def one_fit(kind: str, folder: Path) -> dict:
    from dpsparse import Domain, DPGradientClassifier, DPLassoClassifier, Rows

    warnings.simplefilter("ignore")
    domain = Domain(classes=[0, 1])
    small = sp.random_array((200, 50), density=0.2, format="csr", rng=np.random.default_rng(0))
    for make in (DPGradientClassifier, DPLassoClassifier)[: 2 if kind == "lasso" else 1]:
        make(domain, n_iter=3).fit(small, np.arange(200) % 2)  # compiled before the clock starts
    base = peak()
    began, processor = time.perf_counter(), time.process_time()
    out = {}
    if kind == "streamed":
        X, y = open_rows(folder, "r")
        model = DPGradientClassifier(domain, n_iter=20, random_state=0)
        model.fit(Rows.from_csr(X, y, memory="600MB", directory=folder))
    else:
        X, y = open_rows(folder, None)
        out["reading"] = time.perf_counter() - began
        began, processor = time.perf_counter(), time.process_time()
        if kind == "memory":
            model = DPGradientClassifier(domain, n_iter=20, random_state=0).fit(X, y)
        elif kind == "gradient":
            model = DPGradientClassifier(domain, random_state=0).fit(X, y)
        elif kind == "lasso":
            model = DPLassoClassifier(domain, radius=20.0, n_iter=4000, random_state=0).fit(X, y)
        else:  # one pass of SciPy: margins and a gradient
            w, r = np.zeros(X.shape[1]), np.ones(X.shape[0])
            X @ w, X.T @ r
            model = None
    out |= {"seconds": time.perf_counter() - began, "processor": time.process_time() - processor}
    if model is not None:
        out |= {"n_iter": model.n_iter_, "nonzero": model.n_nonzero_}
        if hasattr(model, "coef_noise_"):
            out["digest"] = digest(model)
    return out | {
        "peak_gb": peak(),
        "base_gb": base,
        "rows_gb": X.data.nbytes / 1e9 + X.indices.nbytes / 1e9,
    }


def apart(kind: str, folder: Path) -> dict:
    done = subprocess.run(
        [sys.executable, __file__, "--one", kind, "--folder", str(folder)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    shown = ", ".join(
        f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in found.items()
    )
    print(f"{kind:10s} {shown}", flush=True)
    return found


def out_of_core(n: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        make_rows(Path(name), n, 180_000, 36)
        memory, streamed = apart("memory", Path(name)), apart("streamed", Path(name))
    print(f"streamed/memory: {streamed['seconds'] / memory['seconds']:.2f} of the time, {streamed['processor'] / memory['processor']:.2f} of the processor time (reading the table not counted in memory), peak {streamed['peak_gb']:.2f} GB; "
          f"{'identical' if streamed['digest'] == memory['digest'] else 'DIFFERENT'} weights")  # fmt: skip


def wide(n: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        make_rows(Path(name), n, 20_000_000, 34)
        once = apart("scipy", Path(name))
        for kind in ("gradient", "lasso"):
            found = apart(kind, Path(name))
            print(
                f"{kind}: {found['processor']:.0f} s of processor time, {found['processor'] / once['processor']:.0f} passes of SciPy, peak {found['peak_gb']:.2f} GB"
            )


# ---- a cluster on this machine -------------------------------------------------------------------


def sent_through_loopback() -> int:
    lines = Path("/proc/net/dev").read_text().splitlines()
    return next(int(line.split()[9]) for line in lines if line.strip().startswith("lo:"))


def cpu_of_worker() -> float:
    return time.process_time()


def chunk_of(seed: int, n: int, d: int, per_row: int) -> tuple[sp.csr_array, np.ndarray]:
    """Made on the worker: one entry in each of `per_row` ranges of columns."""
    rng, width = np.random.default_rng(seed), d // per_row
    columns = np.arange(per_row) * width + rng.integers(0, width, (n, per_row))
    indptr = np.arange(0, n * per_row + 1, per_row)
    X = sp.csr_array((rng.random(n * per_row), columns.ravel(), indptr), shape=(n, d))
    return X, rng.integers(0, 2, n)


def of_one_query(client, query, times: int) -> dict:
    """Milliseconds of the clock (the shortest, the median), of the busiest worker's processor, and bytes sent."""
    query()
    took, sent, worker = [], [], []
    for _ in range(3):
        busy = client.run(cpu_of_worker)
        for _ in range(times):
            began, before = time.perf_counter(), sent_through_loopback()
            query()
            took.append(1e3 * (time.perf_counter() - began))
            sent.append(sent_through_loopback() - before)
        after = client.run(cpu_of_worker)
        worker.append(1e3 * max(after[k] - busy[k] for k in after) / times)
    # Others use the machine and the network as well: the least counts.
    return {
        "least": min(took),
        "median": float(np.median(took)),
        "worker": min(worker),
        "sent": min(sent),
    }


def cluster(n: int) -> None:
    """The same table on one worker and on two, all settings of the client as they come."""
    import dask
    from dask.distributed import Client, LocalCluster

    from dpsparse import Domain, Rows
    from dpsparse.rows.cells import CellsAt

    warnings.simplefilter("ignore")
    dask.config.set(
        {"distributed.worker.profile.enabled": False}
    )  # it looks at a worker 100 times a second
    per_row, domain, labels = 30, Domain(classes=[0, 1]), np.array([0, 1])
    busiest = {}
    for n_workers in (1, 2):
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None
            ) as local,
            Client(local) as client,
        ):
            sent = {}

            def rows_of(n: int, d: int):
                chunks = [dask.delayed(chunk_of, nout=2)(i, n // 8, d, per_row) for i in range(8)]
                xs, ys = zip(*chunks, strict=True)
                return Rows.from_dask(list(xs), list(ys)).clipped(domain, labels)

            few = rows_of(800, 300)  # with hardly any work in it, a query is a round trip
            idle = of_one_query(client, lambda r=few: r.class_counts(2).whole(0.5), 30)
            print(f"{n_workers} workers: a round trip {idle['least']:.1f} ms at best ({idle['median']:.1f} as a rule)", flush=True)  # fmt: skip
            for d in (20_000, 200_000):
                rows = rows_of(n, d)
                units = rows.unit(np.ones(d, np.float32))
                at = ("logistic", np.random.default_rng(0).normal(size=(d, 1)), np.zeros(1))
                for _ in range(2):
                    units.gradient(*at, clip=0.5).whole(1e-4)
                step = of_one_query(
                    client, lambda u=units, at=at: u.gradient(*at, clip=0.5).whole(1e-4), 6
                )
                sent[d], busiest[d, n_workers] = step["sent"], step["worker"]
                print(f"{n_workers} workers, {n * per_row:.1e} non-zeros, {d} columns: a step {step['least']:.0f} ms at best ({step['median']:.0f} as a rule), "
                      f"{step['worker']:.0f} ms of the busiest worker's processor", flush=True)  # fmt: skip
                weights = np.zeros((d + 1, 1))
                weights[:: d // 1000] = 0.01  # as after a thousand steps
                cells = CellsAt(weights, np.zeros(1), "logistic", 0.0, 1.0, 1.0, 1.0, 2**11, True)
                step = of_one_query(client, lambda r=rows, at=cells: r.cell_scores(at), 6)
                print(f"{n_workers} workers, {d} columns: scores of Frank-Wolfe on shards {step['least']:.0f} ms at best ({step['median']:.0f} as a rule), "
                      f"{step['sent'] / d:.1f} bytes per column", flush=True)  # fmt: skip
                del rows, units
            slope = (sent[200_000] - sent[20_000]) / 180_000
            print(f"{n_workers} workers: {slope:.1f} bytes per column and step, all hops together", flush=True)  # fmt: skip
    for d in (20_000, 200_000):
        print(f"{d} columns: the busiest of two workers has {busiest[d, 2] / busiest[d, 1]:.2f} of the processor time of one")  # fmt: skip


def coordinator() -> None:
    from dpsparse import Domain, DPGradientClassifier

    warnings.simplefilter("ignore")
    d = 10_000_000
    X = sp.csr_array((np.ones(300), (np.arange(300), np.arange(300) * 30_011)), shape=(300, d))
    took = {}
    for n_iter in (20, 20, 1020):
        model = DPGradientClassifier(
            Domain(classes=[0, 1]), epsilon=math.inf, n_iter=n_iter, random_state=0
        )  # without noise exactly the columns with a row are kept
        began = time.perf_counter()
        model.fit(X, np.arange(300) % 2)
        took[n_iter] = time.perf_counter() - began
    print(
        f"coordinator, 10^7 features, 300 kept: {(took[1020] - took[20]) / 1000 * 1e3:.2f} ms a step, {took[20]:.2f} s for the rest"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what", nargs="*", default=["out-of-core", "wide", "cluster", "coordinator"]
    )
    parser.add_argument(
        "--rows",
        type=int,
        help="rows of the tables; default 5 million, 1 million wide ones, 2 million on a cluster",
    )
    parser.add_argument("--one")
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(one_fit(chosen.one, chosen.folder)))
        sys.exit()
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1] / "src"))
    for name in chosen.what:
        if name == "out-of-core":
            out_of_core(chosen.rows or 5_000_000)
        elif name == "wide":
            wide(chosen.rows or 1_000_000)
        elif name == "cluster":
            cluster(chosen.rows or 2_000_000)
        else:
            coordinator()
