"""Noise generation as ratios in one run: python benchmarks/noise.py

Million draws a second of processor time on one core, and of wall time on all cores, against NumPy's
standard_normal (PCG64, one thread) and against the same method on the AES stream.
"""

import resource
import time

import numpy as np
import scipy.sparse as sp
from dpsparse.solvers._noise import NoisySums, integers, threaded_integers

from dpsparse.random import make_generator

SIZE = 10_000_000


def rate(draw, clock, repeats=5):
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        draw()
        best = min(best, clock() - start)
    return SIZE / best / 1e6


def main():
    secure, numpy = make_generator(None), np.random.default_rng(0)
    integers(secure, 10), threaded_integers(secure, 1000)
    rows = [
        ("NumPy standard_normal, PCG64", lambda: numpy.standard_normal(SIZE)),
        ("standard_normal, AES stream", lambda: secure.standard_normal(SIZE)),
        ("rounded Gaussian, one thread", lambda: integers(secure, SIZE)),
        ("rounded Gaussian, all cores", lambda: threaded_integers(secure, SIZE)),
    ]
    base = rate(rows[0][1], time.perf_counter)
    for name, draw in rows:
        cpu, wall = rate(draw, time.process_time), rate(draw, time.perf_counter)
        print(f"{name:<32} {cpu:6.1f} M/s cpu {wall:6.1f} M/s wall   {wall / base:4.2f} x NumPy")
    memory()


def memory(width=20_000_000, n=200_000, each=20, n_iter=30):
    """Peak memory of 30 noisy gradients on 20 million features beyond data by rows and columns."""
    rng = np.random.default_rng(0)
    indices = rng.integers(0, width, n * each).astype(np.int32)
    X = sp.csr_array(
        (np.ones(n * each), indices, np.arange(0, n * each + 1, each)), shape=(n, width)
    )
    sums = NoisySums(X, make_generator(0))
    slopes = np.ones((n, 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    weight = np.ones(width, dtype=np.float32)
    weights, velocity = (np.zeros((width, 1), dtype=np.float32) for _ in range(2))
    start = time.perf_counter()
    for _ in range(n_iter):
        sums.margins(weights)
        sums.pull(slopes, weight, 1.0, velocity, 0.9, 1.0 / n)
        weights -= velocity
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    vectors = (after - before) * 1024 / (4 * width)
    print(f"{width:,} features, {n_iter} steps: {seconds:.1f} s, {vectors:.2f} float32 vectors")


if __name__ == "__main__":
    main()
