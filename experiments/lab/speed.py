"""Speed as a track: ratios of processor times in one run on the same data, through the estimators.

    make bench-check                     compares with the committed table; fails where a ratio fell by 30 %
    python -m lab speed --write          commits the ratios of this machine
    python -m lab speed --only raw       some cases

Larger is better. The reference of the Lasso is Frank-Wolfe written in SciPy (all rows and columns at every step, 2 D
Gumbel draws), a few of whose steps are timed and scaled to T; that of a gradient is an L1 fit of scikit-learn, and that
of one gradient step one pass over the rows at the bandwidth measured here. Every measurement is a row of
results/lab/speed.jsonl. A case that fails is measured once more: shared machines have bad moments.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

from lab.engine import Row, versions

TABLE = Path(__file__).with_name("ratios.json")
ALLOWED = 0.7
RADIUS, EPSILON, DELTA = 50.0, 1.0, 1e-6
# rows, columns, non-zeros a row (before duplicates are merged)
SHAPES = {"narrow": (30_000, 120, 14), "rcv1": (20_242, 47_236, 75)}
STEPS = 25  # of a timed gradient fit


def synthetic_text(n: int, p: int, per_row: int) -> tuple[Any, Any]:
    """Power-law column frequencies (Zipf-Mandelbrot): the commonest column is in about .3 of the rows. Rows have length
    one. Labels follow 200 columns of middling frequency."""
    rng = np.random.default_rng(0)
    shift = 1.0
    for _ in range(50):
        shift = (per_row / 0.3) / math.log1p(p / (1.0 + shift))
    frequency = np.cumsum(1.0 / (np.arange(1, p + 1) + shift))
    columns = np.searchsorted(frequency / frequency[-1], rng.random((n, per_row)))
    columns = np.minimum(columns, p - 1).astype(np.int32)
    values = rng.random((n, per_row)) + 0.1
    values /= np.sqrt((values**2).sum(axis=1, keepdims=True))
    truth = np.zeros(p)
    n_true = min(200, p // 3)
    truth[50 + rng.choice(min(5000, p - 50), n_true, replace=False)] = rng.normal(size=n_true)
    margin = np.einsum("ij,ij->i", values, truth[columns])
    y = margin + 0.3 * margin.std() * rng.logistic(size=n) > np.median(margin)
    names = rng.permutation(p).astype(np.int32)
    return _rows(values, names[columns], p), y.astype(np.int64)


def raw_text(n: int = 20_242, p: int = 47_236, per_row: int = 75) -> tuple[Any, Any]:
    """What raw text looks like: Zipf exponent .9, so that the commonest columns are in most rows; labels that nothing
    predicts; single precision."""
    rng = np.random.default_rng(0)
    chances = np.cumsum(np.arange(1, p + 1) ** -0.9)
    columns = np.searchsorted(chances / chances[-1], rng.random((n, per_row))).astype(np.int32)
    X = _rows(np.ones((n, per_row), np.float32), columns, p)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(norms, np.diff(X.indptr)).astype(np.float32)
    return X, rng.integers(0, 2, n)


def _rows(values: Any, columns: Any, p: int) -> Any:
    n, per_row = columns.shape
    parts = (values.ravel(), columns.ravel(), np.arange(n + 1, dtype=np.int32) * per_row)
    X = sp.csr_array(parts, shape=(n, p))
    X.sum_duplicates()
    return X


@cache
def load(shape: str) -> tuple[Any, Any]:
    """A shape by name."""
    if shape == "raw text":
        return raw_text()
    if shape == "dense":
        X = np.random.default_rng(0).uniform(-1, 1, (3000, 500))
        return sp.csr_array(X), (X[:, 0] > 0) * 1
    if shape == "rcv1, 10 % positives":
        X, y = load("rcv1")
        few = np.flatnonzero(y == 1)[: int((y == 0).sum() / 9)]
        keep = np.sort(np.append(np.flatnonzero(y == 0), few))
        return X[keep], y[keep]
    X, y = synthetic_text(*SHAPES[shape])
    if shape == "narrow":  # categories, one-hot
        X.data[:] = 1.0
    return X, y


def processor_seconds(work: Callable[[], Any], repeats: int = 1) -> float:
    """The least processor time of a few calls."""
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


# ---- what is compared ----------------------------------------------------------------------------


def scipy_loop(X: Any, y: Any, n_iter: int, intercept: bool, few: int = 20) -> float:
    """Seconds of `n_iter` steps of Algorithm 1 in SciPy, by a few of them."""
    from dpsparse.accounting import Exponential, Repeated, calibrate
    from dpsparse.losses import Logistic

    loss = Logistic()
    eta = calibrate(lambda x: Repeated(Exponential(x), n_iter), EPSILON, DELTA)
    kappa, rng = eta / 2.0, np.random.default_rng(0)
    if intercept:
        X = sp.csr_array(sp.hstack([X, sp.csr_array(np.ones((X.shape[0], 1)))]))
    columns, w, marks = X.tocsc(), np.zeros(X.shape[1]), []
    for t in range(1, few + 2):
        keys = kappa * (columns.T @ loss.slope(X @ w, y))
        noisy = rng.gumbel(size=(2, keys.size)) + np.stack([keys, -keys])
        best = int(noisy.argmax())
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[best % keys.size] -= step * RADIUS * (1.0 if best < keys.size else -1.0)
        marks.append(time.process_time())
    return (marks[-1] - marks[0]) / few * n_iter


def lasso_fit(X: Any, y: Any, n_iter: int, intercept: bool) -> float:
    from dpsparse import Domain, DPLassoClassifier

    domain = Domain(classes=[0, 1], n_samples=X.shape[0], feature_bound=1.0)
    model = DPLassoClassifier(
        domain, radius=RADIUS, n_iter=n_iter, fit_intercept=intercept, random_state=0
    )
    return processor_seconds(lambda: model.fit(X, y), 4 if X.nnz < 5e6 else 2)


def _gradient(X: Any, y: Any, **options: Any) -> Any:
    from dpsparse import Domain, DPGradientClassifier

    domain = Domain(classes=[0, 1], n_samples=X.shape[0])
    return DPGradientClassifier(domain, random_state=0, **options)


def gradient_fit(X: Any, y: Any) -> float:
    model = _gradient(X, y)
    return processor_seconds(lambda: model.fit(X, y), 3)


def sklearn_fit(X: Any, y: Any, solver: str) -> float:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(l1_ratio=1.0, solver=solver)
    return processor_seconds(lambda: model.fit(X, y))


def one_pass(X: Any, y: Any) -> float:
    """Seconds to read all entries (8 bytes each) once, by summing 256 MB."""
    numbers = np.ones(2**25, np.int64)
    return float(processor_seconds(numbers.sum, 5) * X.nnz / 2**25)


def gradient_step(X: Any, y: Any) -> float:
    """Seconds from one step of a fit to the next, by one thread."""
    from dpsparse.methods.gradient.solve import Descent

    ends: list[float] = []
    move = Descent.move

    def timed(self: Any, *step: Any) -> Any:
        done = move(self, *step)
        ends.append(time.process_time())
        return done

    model, spent = _gradient(X, y, n_iter=STEPS), []
    with patch("dpsparse.threads.process_cores", lambda: 1), patch.object(Descent, "move", timed):
        for _ in range(4):
            ends.clear()
            model.fit(X, y)
            spent.append(float(np.median(np.diff(ends))))
    return min(spent)


def two_plans() -> float:
    """Seconds of two plans that are in no cache."""
    from dpsparse import Domain, DPLassoClassifier, DPTwoStageClassifier

    def plan() -> None:
        epsilon = 1.0 + 0.001 * np.random.default_rng().random()
        DPLassoClassifier(
            Domain(classes=[0, 1], feature_bound=1.0), epsilon=epsilon, n_iter=2000
        ).plan(50)
        domain = Domain(classes=[0, 1], n_samples=5000, row_norm=1.0)
        DPTwoStageClassifier(domain, epsilon=epsilon, n_nonzero=5).plan(50)

    def five() -> None:
        for _ in range(5):
            plan()

    return processor_seconds(five) / 5


def matrix_product() -> float:
    square = np.ones((1000, 1000))
    return processor_seconds(lambda: [square @ square for _ in range(3)]) / 3


def _on(shape: str, work: Callable[..., float], *arguments: Any) -> float:
    return work(*load(shape), *arguments)


# name -> (reference, ours); the ratio is the first over the second
CASES: dict[str, tuple[Callable[[], float], Callable[[], float]]] = {
    "matrix product over plans": (matrix_product, two_plans)
}
for _name, _shape, _steps, _intercept in (
    ("rcv1 shape, T = 4000, no intercept", "rcv1", 4000, False),
    ("rcv1 shape, T = 4000, 10 % positives", "rcv1, 10 % positives", 4000, True),
    ("rcv1 shape, T = 100", "rcv1", 100, True),
    ("raw text shape, T = 4000", "raw text", 4000, False),
    ("narrow, T = 500", "narrow", 500, False),
    ("narrow, T = 4000", "narrow", 4000, False),
    ("fully dense, T = 300", "dense", 300, True),
):
    CASES[f"lasso, {_name}"] = (
        partial(_on, _shape, scipy_loop, _steps, _intercept),
        partial(_on, _shape, lasso_fit, _steps, _intercept),
    )
for _shape in ("rcv1", "narrow"):
    _name = "rcv1 shape" if _shape == "rcv1" else _shape
    CASES[f"gradient against liblinear, {_name}"] = (
        partial(_on, _shape, sklearn_fit, "liblinear"),
        partial(_on, _shape, gradient_fit),
    )
    CASES[f"pass over an iteration, {_name}"] = (
        partial(_on, _shape, one_pass),
        partial(_on, _shape, gradient_step),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seeded fits say that they are not private
        yield


def measure_case(name: str) -> Row:
    """One case as a row: seconds of both, and their ratio. Both have run once before, so that nothing compiles."""
    reference, ours = CASES[name]
    with _quiet():
        reference(), ours()
        first, second = reference(), ours()
    found = {"reference": first, "seconds": second, "ratio": float(f"{first / second:.3g}")}
    return {"task": name, "method": "speed", "measures": found, "versions": versions()}


def check_speed(path: Path, write: bool, only: str, say: Callable[[str], None]) -> list[str]:
    """Cases that fell by more than allowed; every measurement is appended to `path`."""
    known = json.loads(TABLE.read_text())
    found, worse = {}, []
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in (n for n in CASES if only in n):
        row = measure_case(name)
        least = ALLOWED * known.get(name, 0.0)
        if not write and row["measures"]["ratio"] < least:
            row = max(row, measure_case(name), key=lambda r: r["measures"]["ratio"])
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        found[name] = row["measures"]["ratio"]
        change = (
            f"{found[name] / known[name] - 1:+.0%} of {known[name]:g}" if name in known else "new"
        )
        say(f"{name:<46} {found[name]:10.3g}  {change}")
        if found[name] < least:
            worse.append(name)
    if write:
        TABLE.write_text(json.dumps(known | found, indent=2) + "\n")
    return worse
