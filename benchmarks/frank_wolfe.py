"""Speed and memory of the fast Frank-Wolfe solver, as ratios within one run.

    python benchmarks/frank_wolfe.py                          all shapes (about ten minutes)
    python benchmarks/frank_wolfe.py --shape rcv1 --quick     one shape, few reference steps
    python benchmarks/frank_wolfe.py --shape none --sceptic   default settings and worst cases (--only narrow: some)
    python benchmarks/frank_wolfe.py --shape none --memory    peak memory (--memory kdda: of one shape)
    python benchmarks/frank_wolfe.py --shape none --cold      first fit without any cache
    python benchmarks/frank_wolfe.py --growth growth.svg      time per step against D

CPU time over CPU time. The reference is a plain SciPy loop (O(nnz) and 2D Gumbel draws a step,
same law); a few of its steps are timed and scaled to T. "Touched" non-zeros are those Alg. 2 of
Raff, Khanna and Lu (2023) would touch: the rows that own the picked feature. The scatter limit is measured here:
adding a multiple of random rows of the same matrix into a score vector, nothing else. Memory is the
peak of a child process that fits, above the same process before it had data.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numba import njit

from dpsparse.domain import Domain
from dpsparse.losses import Logistic, Softmax
from dpsparse.privacy import Exponential, Repeated, calibrate
from dpsparse.random import make_generator
from dpsparse.solvers.frank_wolfe import (
    Problem,
    RowArrays,
    Run,
    choose_resolution,
    extend,
    kernel,
)

# rows, columns, non-zeros a row (before duplicates are merged), dense columns; URL and KDDA are
# scaled down in rows
SHAPES = {
    "narrow": (30_000, 120, 14, 0),
    "rcv1": (20_242, 47_236, 75, 0),
    "news20": (19_996, 1_355_191, 506, 0),
    "url": (240_000, 3_231_961, 112, 64),
    "kdda": (840_000, 20_216_830, 38, 0),
}
TARGETS = {  # per step, whole fit
    "narrow": (1, 1),
    "rcv1": (400, 150),
    "news20": (2000, 500),
    "url": (4, 1),
    "kdda": (5000, 600),
    "newsgroups": (1, 1),
}
EPSILON, DELTA, RADIUS, STEPS = 1.0, 1e-6, 50.0, 4000


def synthetic(n, p, per_row, dense, seed=0, head=0.3):
    """Power-law column frequencies (Zipf-Mandelbrot): the commonest sparse column is in about
    `head` of the rows. Rows have L2 norm 1. Labels are balanced and follow 200 columns of middling
    frequency; dense columns hold values up to 1 and follow the label, so that they get picked."""
    rng = np.random.default_rng(seed)
    m, wide = per_row - dense, p - dense
    shift = 1.0
    for _ in range(50):
        shift = (m / head) / math.log1p(wide / (1.0 + shift))
    frequency = np.cumsum(1.0 / (np.arange(1, wide + 1) + shift))
    columns = np.searchsorted(frequency / frequency[-1], rng.random((n, m)))
    columns = np.minimum(columns, wide - 1).astype(np.int32)
    values = rng.random((n, m)) + 0.1
    values /= np.sqrt((values**2).sum(axis=1, keepdims=True))
    truth = np.zeros(wide)
    n_true = min(200, wide // 3)
    truth[50 + rng.choice(min(5000, wide - 50), n_true, replace=False)] = rng.normal(size=n_true)
    margin = np.einsum("ij,ij->i", values, truth[columns])
    y = margin + 0.3 * margin.std() * rng.logistic(size=n) > np.median(margin)
    names = rng.permutation(p).astype(np.int32)
    if dense:
        block = np.clip(0.5 + 0.2 * (2 * y[:, None] - 1) * rng.random((n, dense)), 0, 1)
        columns = np.hstack(
            [np.broadcast_to(np.arange(dense, dtype=np.int32), (n, dense)), columns + dense]
        )
        values = np.hstack([block, values])
    X = sp.csr_array(
        (values.ravel(), names[columns.ravel()], np.arange(n + 1, dtype=np.int32) * per_row),
        shape=(n, p),
    )
    X.sum_duplicates()
    return X, y.astype(np.int64)


def newsgroups():
    """20 Newsgroups, unigrams and bigrams, rows of norm 1, half of the groups against the rest."""
    import lzma

    from sklearn.feature_extraction.text import TfidfVectorizer

    folder = Path(os.environ.get("DPSPARSE_DATA", "../shared/data"))
    path = folder / "20_newsgroups_raw.jsonl.xz"
    if not path.exists():
        return None
    texts, labels = [], []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            texts.append(record["text"])
            labels.append(record["group"])
    names = sorted(set(labels))
    y = np.array([names.index(label) % 2 for label in labels])
    X = TfidfVectorizer(ngram_range=(1, 2), use_idf=False, token_pattern=r"\w+").fit_transform(
        texts
    )
    return sp.csr_array(X), y


def load(shape):
    if shape == "newsgroups":
        return newsgroups()
    X, y = synthetic(*SHAPES[shape])
    if shape == "narrow":  # categories, one-hot: what a9a, w8a and kddcup99 look like
        X.data[:] = 1.0
    return X, y


def problem_for(n, n_iter=STEPS, total=STEPS, offset=(), fit_intercept=False):
    """`total` steps are calibrated, `n_iter` of them are run."""
    loss = Logistic()
    slope_bound = loss.slope_bound(Domain(classes=[0, 1]), RADIUS, offset)
    eta = calibrate(lambda x: Repeated(Exponential(x), total), EPSILON, DELTA)
    return Problem(
        loss=loss, radius=RADIUS, n_iter=n_iter, kappa=eta / (2 * slope_bound),
        slope_bound=slope_bound, resolution=choose_resolution(n, eta), fit_intercept=fit_intercept,
        offset=offset,
    )  # fmt: skip


@njit
def _scatter_limit(order, indptr, cols, vals, out):
    for i in order:
        for e in range(indptr[i], indptr[i + 1]):
            out[cols[e]] += np.float32(0.5) * vals[e]


@njit
def _fixed_scatter(order, indptr, cols, vals, out):
    """The same in fixed point: the change of two rounded contributions, as in the kernel."""
    for i in order:
        for e in range(indptr[i], indptr[i + 1]):
            x = np.float64(vals[e])
            out[cols[e]] += np.int64(np.rint(2000.5 * x)) - np.int64(np.rint(1000.5 * x))


def cpu(work, *args):
    start = time.process_time()
    result = work(*args)
    return time.process_time() - start, result


def run(shape, quick):
    loaded = load(shape)
    if loaded is None:
        return None
    X, y = loaded
    n = X.shape[0]
    Domain(classes=[0, 1]).clip(X[:2], y[:2], labels=np.array([0, 1]))  # loads the kernel
    clip_time, data = cpu(lambda: Domain(classes=[0, 1]).clip(X, y, labels=np.array([0, 1])))
    table = RowArrays.of(data)
    extend(table, problem_for(n, n_iter=2), None, 2, make_generator(0))  # compiles
    reference = reference_step(data, problem_for(n), quick)

    rows = {
        "shape": shape,
        "rows": n,
        "columns": X.shape[1],
        "nnz": X.nnz,
        "reference_ms": 1e3 * reference,
    }
    rng = make_generator(1)
    n_steps = 40 if shape == "url" and quick else STEPS
    set_up, run_ = cpu(Run, table, problem_for(n))
    loop, _ = cpu(run_.draw, rng, n_steps)
    publish, _ = cpu(lambda: run_.history().weights())
    step = loop / n_steps
    state, matrix = run_.state, run_.state.matrix
    per_column = np.zeros(matrix.begin.size + 1)
    kernel.lengths(matrix, np.arange(matrix.begin.size), per_column)
    per_column *= X.nnz / n
    touched = per_column[np.minimum(state.cells[:n_steps], per_column.size - 1)].mean()
    # Where dense columns are picked a draw may read them: fewer draws will do.
    n_draws = 20_000 if touched < 1e5 else 20
    _draw_only(state, rng, n_steps - 1, 1)
    draws = cpu(_draw_only, state, rng, n_steps - 1, n_draws)[0] / n_draws
    whole = clip_time + set_up + step * STEPS + publish
    labels = run_.labels_of(X.indices)
    order_rows = make_generator(2).permutation(n)[: max(200, int(2e6 // max(per_column.mean(), 1)))]
    out = np.zeros(state.sampler.score.size, np.float32)
    parts = (X.indptr, labels, X.data.astype(np.float32))
    _scatter_limit(order_rows[:2], *parts, out)
    limit, _ = cpu(_scatter_limit, order_rows, *parts, out)
    whole_out = np.zeros(state.sampler.score.size, np.int32)
    _fixed_scatter(order_rows[:2], *parts, whole_out)
    fixed, _ = cpu(_fixed_scatter, order_rows, *parts, whole_out)
    rows["fixed_over_float"] = fixed / limit
    limit /= np.diff(X.indptr)[order_rows].sum()
    rows |= {
        "step_us": 1e6 * step, "per_step": reference / step,
        "whole_fit": reference * STEPS / whole, "whole_s": whole,
        "set_up_steps": (clip_time + set_up) / reference,
        "touched": touched, "scattered": state.sc.scattered / n_steps,
        "limit_ns": 1e9 * limit, "over_limit": step / touched / limit,
        "draw_share": draws / step, "pulls": int(state.sc.pulls),
    }  # fmt: skip
    return rows


@njit
def _draw_only(state, rng, t, n_draws):
    for _ in range(n_draws):
        kernel._draw(state, rng, t)


def reference_step(data, problem, quick):
    """Seconds of one step of the SciPy loop; its set-up and first step do not count."""
    n_steps = 2 if quick else (20 if data.X.nnz < 5e6 else 4)
    marks = plain_steps(data, problem, n_steps + 1)
    return (marks[-1] - marks[0]) / n_steps


def plain_steps(data, problem, n_steps):
    """Frank-Wolfe with every row and every column at every step; processor time after each."""
    X, K, rng = sp.csr_array(data.X / problem.feature_bound), problem.n_outputs, make_generator(0)
    if problem.fit_intercept:
        X = sp.csr_array(sp.hstack([X, np.ones((X.shape[0], 1))], format="csr"))
    columns, kappa = X.tocsc(), problem.kappa * problem.feature_bound
    w, marks = np.zeros((X.shape[1], K)), []
    for t in range(1, n_steps + 1):
        margin = X @ w
        if problem.loss.scalar_slope:
            slopes = problem.loss.slope(margin[:, 0], data.y)[:, None]
        else:
            slopes = problem.loss.slope(margin, data.y)
        keys = kappa * np.ravel(columns.T @ slopes)
        noisy = rng.gumbel(size=(2, keys.size))
        noisy[0] += keys
        noisy[1] -= keys
        best = int(noisy.argmax())
        cell, sign = best % keys.size, 1 if best < keys.size else -1
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[cell // K, cell % K] -= step * sign * problem.radius * problem.feature_bound
        marks.append(time.process_time())
    return marks


def unbalanced(X, y, share):
    """All negatives and so many positives that they are `share` of the rows."""
    positive = np.flatnonzero(y == 1)
    n = int((y == 0).sum() * share / (1.0 - share))
    keep = np.sort(np.append(np.flatnonzero(y == 0), positive[:n]))
    return X[keep], y[keep]


def sceptic(quick, large, only):
    """Default settings and worst cases, through the estimator: fit / (T steps of the SciPy loop).

    `only` takes the cases whose name holds one of these words.
    """
    rcv1, rng = load("rcv1"), np.random.default_rng(0)
    common = np.asarray((rcv1[0] != 0).sum(axis=0)).argmax()
    dense = rng.uniform(-1, 1, (3000, 500))
    wide = SHAPES["rcv1"][:2]
    cases = [  # name, table, steps, intercept, target
        ("rcv1, no intercept", rcv1, 4000, False, 1000),
        *((f"rcv1, intercept, {share:.0%} positives", unbalanced(*rcv1, share), 4000, True, 700)
          for share in (0.5, 0.3, 0.1, 0.03, 0.01)),
        ("rcv1, intercept, T = 100", rcv1, 100, True, 10),
        ("narrow", load("narrow"), 4000, False, 12),
        ("narrow, T = 500", load("narrow"), 500, False, 10),
        ("64 dense columns", synthetic(wide[0], wide[1], 139, 64), 1000, False, 10),
        ("labels = commonest column", (rcv1[0], np.ravel(rcv1[0][:, [common]].toarray() > 0) * 1),
         1000, False, 10),
        ("fully dense 3000 x 500", (sp.csr_array(dense), (dense[:, 0] > 0) * 1), 1000, True, 10),
        ("one row", (rcv1[0][:1], rcv1[1][:1]), 1000, True, 1),
        *((f"rcv1, {K} classes", (rcv1[0], classes_of(rcv1[0], K)), 1000, True, 10) for K in (5, 20)),
    ]  # fmt: skip
    if large:
        cases += [("news20, no intercept", "news20", 4000, False, 3000)]
        cases += [
            (f"kdda, T = {T}", "kdda", T, False, want) for T, want in ((4000, 4500), (100, 100))
        ]
    cases = [case for case in cases if not only or any(word in case[0] for word in only)]
    loaded = {
        shape: load(shape) for shape in {case[1] for case in cases if isinstance(case[1], str)}
    }
    print("| case | T | SciPy step ms | fit ms | ratio (target) |\n|---|---|---|---|---|")
    for name, table, n_iter, intercept, target in cases:
        X, y = loaded[table] if isinstance(table, str) else table
        reference, fit = measure(X, y, n_iter, intercept, quick)
        print(
            f"| {name} | {n_iter} | {1e3 * reference:.2f} | {1e3 * fit:.0f} "
            f"| {reference * n_iter / fit:,.1f}x ({target}) |",
            flush=True,
        )


def measure(X, y, n_iter, intercept, quick=True):
    """(seconds of a step of the SciPy loop, seconds of a fit)."""
    from dpsparse.estimators import DPLassoClassifier

    n, K = X.shape[0], max(2, int(y.max()) + 1)
    domain = Domain(classes=list(range(K)), n_samples=n)
    data = domain.clip(X, y, labels=np.arange(K))
    problem = problem_for(n, n_iter, total=n_iter, fit_intercept=intercept)
    if K > 2:
        loss = Softmax(K)
        bound = loss.slope_bound(domain, RADIUS)
        problem = replace(problem, loss=loss, n_outputs=K, slope_bound=bound)
    reference = reference_step(data, problem, quick or X.nnz > 5e6)
    model = DPLassoClassifier(
        domain, radius=RADIUS, n_iter=n_iter, fit_intercept=intercept, random_state=0
    )
    return reference, min(cpu(model.fit, X, y)[0] for _ in range(2 if X.nnz > 5e6 else 4))


def classes_of(X, n_classes):
    """Labels that follow so many random directions."""
    truth = np.random.default_rng(5).normal(size=(X.shape[1], n_classes))
    return np.asarray(X @ truth).argmax(axis=1)


def cold():
    """Processor seconds of a first fit: no cache of compiled code, then with it."""
    import subprocess
    import tempfile

    code = (
        "import time, warnings; start = time.process_time(); warnings.simplefilter('ignore')\n"
        "import numpy as np; from dpsparse import Domain, {name}\n"
        "X = np.random.default_rng(0).uniform(-1, 1, (300, 20)); loaded = time.process_time()\n"
        "{name}(Domain(classes=[0, 1], n_samples=300)).fit(X, (X[:, 0] > 0) * 1)\n"
        "print('import %.2f s, fit %.2f s' % (loaded - start, time.process_time() - loaded))"
    )
    for name in ("DPLassoClassifier", "DPGradientClassifier"):
        with tempfile.TemporaryDirectory() as folder:
            for state in ("without cache", "with cache"):
                done = subprocess.run(
                    [sys.executable, "-c", code.format(name=name)],
                    env={**os.environ, "NUMBA_CACHE_DIR": folder},
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                print(f"first fit of {name} {state}: {done.stdout.strip()}", flush=True)


def memory(shape, name, dtype):
    """(peak of a fit above the empty interpreter, size of the CSR) in MB, in a child process."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(False)
    child = context.Process(target=_fit_for_memory, args=(shape, name, dtype, send))
    child.start()
    result = receive.recv()
    child.join()
    return result


def _fit_for_memory(shape, name, dtype, send):
    import tempfile

    from dpsparse import estimators

    domain, tiny = Domain(classes=[0, 1], n_samples=SHAPES[shape][0]), sp.csr_array(np.eye(40))
    if name == "DPLassoClassifier":
        model = estimators.DPLassoClassifier(domain, n_iter=100, fit_intercept=False)
    else:
        # The peak is in the first step; all of them would take a minute on kdda.
        model = estimators.DPGradientClassifier(domain, n_iter=3 if shape == "kdda" else None)
    model.fit(tiny.astype(dtype), np.arange(40) % 2)  # load everything a fit needs
    before = _rss()
    with tempfile.TemporaryDirectory() as folder:  # the generator's own peak must not count
        maker = multiprocessing.get_context("spawn").Process(target=_save, args=(shape, folder))
        maker.start()
        maker.join()
        arrays = [np.load(f"{folder}/{name}.npy") for name in ("data", "indices", "indptr", "y")]
    arrays[0] = arrays[0].astype(dtype, copy=False)
    X = sp.csr_array(tuple(arrays[:3]), shape=SHAPES[shape][:2])
    X.has_canonical_format = True
    size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6
    _reset_peak()
    model.fit(X, arrays[3])
    send.send((_peak() - before, size))


def _save(shape, folder):
    X, y = synthetic(*SHAPES[shape])
    for name, array in (("data", X.data), ("indices", X.indices), ("indptr", X.indptr), ("y", y)):
        np.save(f"{folder}/{name}.npy", array)


def _status(key):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _rss():
    return _status("VmRSS:")


def _peak():
    return _status("VmHWM:")


def _reset_peak():
    Path("/proc/self/clear_refs").write_text("5")


def growth(path, quick):
    """Time per step against D at fixed sparsity (20,000 rows, 50 non-zeros a row)."""
    sizes = [10_000 * 4**k for k in range(3 if quick else 6)]
    fast, slow = [], []
    for p in sizes:
        X, y = synthetic(20_000, p, 50, 0)
        data = Domain(classes=[0, 1]).clip(X, y, labels=np.array([0, 1]))
        table = RowArrays.of(data)
        extend(table, problem_for(20_000), None, 1, make_generator(1))  # loads the kernels
        run_ = Run(table, problem_for(20_000))
        fast.append(cpu(run_.draw, make_generator(1), STEPS)[0] / STEPS)
        slow.append(cpu(plain_steps, data, problem_for(20_000), 3)[0] / 3)
    print("\n| D | fast us/step | reference ms/step | ratio |\n|---|---|---|---|")
    for p, a, b in zip(sizes, fast, slow, strict=True):
        print(f"| {p:,} | {1e6 * a:.2f} | {1e3 * b:.1f} | {b / a:,.0f} |")
    slope = np.polyfit(np.log(sizes), np.log(fast), 1)[0]
    print(f"\ntime per step grows like D^{slope:.2f}")
    if path:
        sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
        from _common import axes  # the look of every figure of the project

        (axis,), save = axes(
            Path(path), columns=1, height=3.4, xlabel="features", ylabel="microseconds a step"
        )
        axis.loglog(sizes, 1e6 * np.array(slow), "s--", label="SciPy loop")
        axis.loglog(sizes, 1e6 * np.array(fast), "o-", label="fast, exact")
        save()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--shape", choices=[*SHAPES, "newsgroups", "all", "none"], default="all")
    parser.add_argument("--quick", action="store_true", help="fewer reference steps")
    parser.add_argument(
        "--growth", nargs="?", const="", help="also time against D; save a plot here"
    )
    parser.add_argument(
        "--memory",
        nargs="*",
        choices=["news20", "kdda"],
        help="also measure peak memory (default: both)",
    )
    parser.add_argument("--sceptic", action="store_true", help="default settings, worst cases")
    parser.add_argument("--only", nargs="+", help="with --sceptic: cases with one of these words")
    parser.add_argument("--large", action="store_true", help="with --sceptic: news20 and kdda too")
    parser.add_argument("--cold", action="store_true", help="first fit in a fresh environment")
    args = parser.parse_args()
    shapes = [*SHAPES, "newsgroups"] if args.shape == "all" else [args.shape]
    if args.shape == "none":
        shapes = []
    if shapes:
        print("| shape | reference ms/step | fast us/step | per step (target) | whole fit (target) "
              "| set-up in reference steps | touched nnz | scattered nnz | ns/touched over scatter limit "
              "| drawing |")  # fmt: skip
        print("|" + "---|" * 10)
    fixed = {}
    for shape in shapes:
        r = run(shape, args.quick)
        if r is None:
            print(f"| {shape} | data not found: set DPSPARSE_DATA |", flush=True)
            continue
        fixed[shape] = r["fixed_over_float"]
        step, whole = TARGETS[shape]
        print(
            f"| {shape} | {r['reference_ms']:.1f} | {r['step_us']:.2f} | {r['per_step']:,.0f}x ({step}) "
            f"| {r['whole_fit']:,.0f}x ({whole}) | {r['set_up_steps']:.1f} | {r['touched']:,.0f} "
            f"| {r['scattered']:,.0f} | {r['over_limit']:.2f} of {r['limit_ns']:.1f} ns "
            f"| {100 * r['draw_share']:.0f} % |",
            flush=True,
        )
    for shape, ratio in fixed.items():
        print(f"\n{shape}: fixed-point scatter over float32 scatter {ratio:.2f}", flush=True)
    if args.sceptic:
        sceptic(args.quick, args.large, args.only)
    if args.cold:
        cold()
    if args.memory is not None:
        for shape in args.memory or ("news20", "kdda"):
            for name in ("DPLassoClassifier", "DPGradientClassifier"):
                for dtype in ("float64", "float32"):
                    used, size = memory(shape, name, dtype)
                    print(
                        f"{shape}, {name}, {dtype}: peak of fit {used:.0f} MB = {used / size:.2f} CSR",
                        flush=True,
                    )
    if args.growth is not None:
        growth(args.growth, args.quick)
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # seeded fits say that they are not private
    sys.exit(main())
