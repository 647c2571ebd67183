"""Every estimator with its defaults on every data set: the table of docs/defaults.md, by one command.

    python experiments/defaults_grid.py run [-j 2] [--sets a,b] [--methods a,b] [--seeds 5]     resumes where it stopped
    python experiments/defaults_grid.py table                                                   writes docs/defaults.md
    python experiments/defaults_grid.py classes [--training]                                    the gain on 20 classes
    python experiments/defaults_grid.py check                                                   what misses a goal

Score: AUC (two classes), accuracy (more), R2 (numbers). delta 1e-6, add-remove, `n_samples` declared. A seed is a
random 80/20 split and the noise of the fit; constants of the library were chosen on `--training` splits, where the
training rows of a seed are split again and test rows are never read. Entries are brought into [-1, 1] by public
constants. Sets of more than 50,000 training rows are cut to 50,000, drawn at random. The number of true features is
declared (`n_nonzero`) where the data is made to have one, and for text (100; 2,000 for 20 classes).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "defaults.jsonl"
PAGE = HERE.parent / "docs" / "defaults.md"
BEGIN, END = "<!-- grid -->", "<!-- end of grid -->"
EPSILONS = (0.1, 0.5, 1.0, 3.0, math.inf)
DELTA = 1e-6
MOST_ROWS = 50_000
NUMBERS = (
    "Sparse",
    "Ridge",
    "Ridge-k",  # the largest weights of a ridge fit, where their number is declared
    "Gradient",
    "TwoStage",
    "HardThreshold",
    "Lasso",
    "Transfer",
    "ScreenedLasso",
)
CLASSES = (
    "Sparse",
    "Gradient",
    "TwoStage",
    "HardThreshold",
    "Lasso",
    "Transfer",
    "ScreenedLasso",
    "ADMM",
)
FIRST = ("Sparse", "sklearn", "sklearn-k", "Ridge-k")  # rows that are run before all others
TAKES_K = ("Sparse", "Gradient", "TwoStage", "HardThreshold", "Transfer", "Ridge-k")


@dataclass(frozen=True)
class Set:
    """A data set: what is public about it."""

    name: str
    target_range: tuple[float, float] | None = None  # numbers
    n_nonzero: int | None = None  # declared
    row_norm: float | None = None
    skip: tuple[str, ...] = ()  # methods that take minutes a fit here, and were left out
    text: bool = False  # how good so few weights can be is measured too


SETS = [
    Set("easy", (-5.0, 5.0), 5),
    Set("papers-3000x600", (-4.0, 4.0), 70),
    Set("papers-800x1000", (-8.0, 8.0), 10),
    Set("abalone", (0.0, 30.0)),
    Set("housing", (0.0, 50.0)),
    Set("bodyfat", (0.9, 1.2)),
    Set("communities", (0.0, 1.0)),
    Set("blogfeedback", (0.0, 8.0)),
    Set("papers-10000x100", None, 8),
    Set("a9a"),
    Set("phishing"),
    Set("mushrooms"),
    Set("w8a"),
    Set("covtype"),
    Set("kddcup99"),
    Set("wide-40000x100000", None, 50, 1.0, ("ScreenedLasso", "ADMM")),
    Set("news-bigrams", None, 100, 1.0, ("ScreenedLasso", "ADMM", "Transfer"), text=True),
    Set("news20-halves", None, 100, 1.0, ("ScreenedLasso", "ADMM", "Transfer"), text=True),
    Set("news20-one", None, 100, 1.0, ("ScreenedLasso", "ADMM", "Transfer"), text=True),
    Set("news20", None, 2000, 1.0, ("ScreenedLasso", "ADMM", "Transfer", "TwoStage"), text=True),
]
BY_NAME = {one.name: one for one in SETS}


@lru_cache(maxsize=2)
def data(name):
    """All rows, entries in [-1, 1] by public constants."""
    import papers_data
    from dpsparse.datasets import make_sparse_classification
    from dpsparse.random import make_generator

    if name == "easy":
        rng = make_generator(5)
        X = rng.uniform(-1.0, 1.0, (25_000, 400))
        w = np.zeros(400)
        w[:5] = (1.0, -1.0, 1.0, -1.0, 0.5)
        y = X @ w + 0.15 * rng.standard_normal(25_000)
        return X, y
    if name == "papers-3000x600":
        X, y, _ = papers_data.make_screening_regression(0, n_samples=3750, scaled_by="bound")
        return X, y
    if name == "papers-800x1000":
        X, y, _ = papers_data.make_transfer_data(0, n_samples=1000)
        return X, y
    if name == "papers-10000x100":
        X, y, _ = papers_data.make_sparsifier_classification(0, n_samples=12_500, scaled_by="bound")
        return X, y
    if name == "wide-40000x100000":
        return make_sparse_classification(50_000, 100_000, seed=1)
    if name == "news-bigrams":
        return papers_data.load_newsgroups_bigrams()
    if name.startswith("news20"):
        X, y = papers_data.load("news20-multiclass", scaled=True)
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X.data /= np.repeat(np.maximum(norms, 1e-300), np.diff(X.indptr))
        if name == "news20-halves":
            y = (y % 2).astype(int)
        if name == "news20-one":
            y = (y == np.unique(y)[3]).astype(int)
        return X, y
    X, y = papers_data.load(name, scaled=True)
    if name == "a9a":
        X2, y2 = papers_data.load("a9a.t", scaled=True)
        return sp.csr_array(sp.vstack([X, X2])), np.concatenate([y, y2])
    if name == "bodyfat":  # age in years, weight in pounds, height in inches, girths in cm
        largest = np.array([100.0, 400.0, 90.0, *[200.0] * (X.shape[1] - 3)])
        return np.minimum(X.toarray() / largest, 1.0), y
    if name == "blogfeedback":
        return sp.csr_array(np.log1p(np.maximum(X.toarray(), 0.0)) / 12.0), np.log1p(y)
    return X, y


def split(name, seed, training=False):
    """Train and test rows; with `training` both are training rows of this seed."""
    from dpsparse.random import make_generator

    X, y = data(name)
    order = make_generator(1000 + seed).permutation(len(y))
    cut = round(0.8 * len(y))
    train, test = order[:cut], order[cut:]
    if training:
        cut = round(0.8 * len(train))
        train, test = train[:cut], train[cut:]
    train = train[:MOST_ROWS]
    return X[train], y[train], X[test], y[test]


def score(one, model, X, y):
    from sklearn.metrics import r2_score, roc_auc_score

    if one.target_range:
        return float(r2_score(y, model.predict(X)))
    margins = model.decision_function(X)
    if margins.ndim == 2:
        return float(np.mean(model.classes_[margins.argmax(axis=1)] == y))
    return float(roc_auc_score(y == model.classes_[1], margins))


def estimator(one, method, epsilon, seed, n, classes, **parameters):
    import dpsparse as dp

    facts = {"target_range": one.target_range} if one.target_range else {"classes": classes}
    domain = dp.Domain(n_samples=n, row_norm=one.row_norm, **facts)
    if one.n_nonzero and method in TAKES_K:
        k = one.n_nonzero
        if method in ("TwoStage", "Transfer") and len(classes or ()) > 2:
            k //= len(classes)
        parameters = {"n_nonzero": k, **parameters}
    name = method.removesuffix("-k")
    kind = getattr(dp, f"DP{name}{'Regressor' if one.target_range else 'Classifier'}")
    return kind(domain, epsilon=epsilon, delta=DELTA, random_state=seed, verbose=-1, **parameters)


def plain(one, X, y, X_test, y_test):
    """The best of some linear models of scikit-learn without privacy, on these very test rows: hard to reach."""
    from sklearn.linear_model import LassoCV, LogisticRegression, RidgeCV

    if one.target_range:
        X = X.toarray() if sp.issparse(X) else X
        X_test = X_test.toarray() if sp.issparse(X_test) else X_test
        models = [RidgeCV(np.geomspace(1e-3, 1e3, 13)), LassoCV(cv=3, max_iter=3000, alphas=30)]
        return max(score(one, m.fit(X, y), X_test, y_test) for m in models)
    best = 0.0
    for C in (1.0, 100.0) if X.shape[1] < 1000 or len(np.unique(y)) == 2 else (10.0,):
        m = LogisticRegression(C=C, max_iter=300).fit(X, y)
        best = max(best, score(one, m, X_test, y_test))
    return best


def few_plain(one, X, y, X_test, y_test):
    """As many weights as are declared, without privacy: the least penalty of an L1 fit that keeps no more, then a
    ridge fit on what it kept. Several classes are fitted one against the rest, with one penalty for all."""
    from sklearn.linear_model import LogisticRegression

    classes = np.unique(y)
    targets = [y == k for k in (classes[1:] if len(classes) == 2 else classes)]
    low, high = 1e-2, 1e2
    for _ in range(10):
        C = math.sqrt(low * high)
        lasso = LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear")
        found = [np.flatnonzero(lasso.fit(X, t).coef_[0]) for t in targets]
        if sum(map(len, found)) <= one.n_nonzero:
            low, kept = C, found
        else:
            high = C
    best = 0.0
    for C in (1.0, 100.0):
        margins = [
            LogisticRegression(C=C, max_iter=300).fit(X[:, k], t).decision_function(X_test[:, k])
            for k, t in zip(kept, targets, strict=True)
        ]
        best = max(best, score(one, Margins(classes, margins), X_test, y_test))
    return best


@dataclass(frozen=True)
class Margins:
    """Margins of the test rows, one array a class (two classes: one), where `score` expects a model."""

    classes_: np.ndarray
    margins: list[np.ndarray]

    def decision_function(self, X):
        return self.margins[0] if len(self.margins) == 1 else np.column_stack(self.margins)


def trial(task):
    """One fit: (set, method, epsilon, seed, training) -> a record."""
    name, method, epsilon, seed, training = task
    warnings.simplefilter("ignore")
    one = BY_NAME[name]
    X, y, X_test, y_test = split(name, seed, training)
    start = time.perf_counter()
    extra = {}
    if method == "sklearn":
        value = plain(one, X, y, X_test, y_test)
    elif method == "sklearn-k":
        value = few_plain(one, X, y, X_test, y_test)
    else:
        classes = None if one.target_range else np.unique(data(name)[1]).tolist()
        model = estimator(one, method, epsilon, seed, X.shape[0], classes).fit(X, y)
        value = score(one, model, X_test, y_test)
        extra = {"nonzero": model.n_nonzero_, "chosen": model.plan_.parameters.get("chosen")}
    return {
        "set": name,
        "method": method,
        "epsilon": "inf" if math.isinf(epsilon) else epsilon,
        "seed": seed,
        "training": training,
        "score": value,
        "seconds": round(time.perf_counter() - start, 3),
        "shape": [int(v) for v in X.shape],
        **extra,
    }


def methods_of(one):
    own = NUMBERS if one.target_range else CLASSES
    return [m for m in own if m != "Ridge-k" or one.n_nonzero]


def tasks(sets, methods, seeds, training, epsilons=EPSILONS):
    for one in SETS:
        if sets and one.name not in sets:
            continue
        for seed in range(seeds):
            if not methods or "sklearn" in methods:
                yield one.name, "sklearn", math.inf, seed, training
            if one.text and (not methods or "sklearn-k" in methods):
                yield one.name, "sklearn-k", math.inf, seed, training
            for method in methods_of(one):
                if (methods and method not in methods) or method in one.skip:
                    continue
                for epsilon in epsilons:
                    yield one.name, method, epsilon, seed, training


def key(record):
    return (
        record["set"],
        record["method"],
        str(record["epsilon"]),
        record["seed"],
        record["training"],
    )


def read(path=RESULTS):
    found = {}
    if path.exists():
        for line in path.read_text().splitlines():
            record = json.loads(line)
            found[key(record)] = record
    return found


def cheapest_first(todo, done):
    """The front estimator and its reference, then all others; within both what costs least. A fit that was never
    timed is taken to cost a second for a million entries."""
    seconds, shapes = defaultdict(list), {}
    for record in done.values():
        seconds[record["set"], record["method"]].append(record["seconds"])
        shapes[record["set"]] = record["shape"]

    def price(task):
        name, method = task[:2]
        known = seconds.get((name, method))
        guess = math.prod(shapes.get(name, (10**5, 10**5))) / 1e6
        cost = float(np.mean(known)) if known else guess
        return method not in FIRST, cost, name, method, task[3], task[2]

    return sorted(todo, key=price)


def run(options):
    path = Path(options.output)
    done = read(path)
    wanted = options.sets, options.methods, options.seeds, options.training, options.epsilons
    todo = [
        t
        for t in tasks(*wanted)
        if (t[0], t[1], "inf" if math.isinf(t[2]) else str(t[2]), t[3], t[4]) not in done
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    start = time.time()
    slow = set()  # set, method and epsilon whose fits take too long for more than one seed

    def quick():
        for task in cheapest_first(todo, done):
            if task[:3] not in slow:
                yield task

    def kept(records):
        with path.open("a") as file:
            for record in records:
                file.write(json.dumps(record) + "\n")
                file.flush()
                if options.patience and record["seconds"] > options.patience:
                    slow.add((record["set"], record["method"], float(record["epsilon"])))
                if options.limit and time.time() - start > options.limit:
                    break

    if options.jobs == 1:
        kept(map(trial, quick()))
    else:
        with ProcessPoolExecutor(options.jobs) as pool:
            kept(pool.map(trial, quick()))


def report(options):
    """The table, into the page or on the screen; or the goals, one by one."""
    from _defaults_report import Cells, check_lines, table_text

    cells = Cells(read(Path(options.output)).values(), options.training)
    if options.command == "check":
        print("\n".join(check_lines(cells, SETS, methods_of, EPSILONS)))
        return
    text = "\n".join([BEGIN, table_text(cells, SETS, methods_of, EPSILONS), "", END])
    if options.show:
        print(text)
        return
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(before + text + after)


def classes(options):
    """What each part of the recipe for few weights gains on 20 classes (defaults, 2,000 weights)."""
    from _many_classes import split_gain

    warnings.simplefilter("ignore")
    one = BY_NAME["news20"]
    labels = np.unique(data(one.name)[1]).tolist()

    def fit_score(epsilon, seed):
        X, y, X_test, y_test = split(one.name, seed, options.training)
        model = estimator(one, "Sparse", epsilon, seed, X.shape[0], labels).fit(X, y)
        return score(one, model, X_test, y_test)

    few = options.epsilons if options.epsilons != EPSILONS else EPSILONS[1:-1]
    split_gain(fit_score, options.seeds, few)


COMMANDS = {"run": run, "table": report, "check": report, "classes": classes}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=tuple(COMMANDS))
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sets", type=lambda t: t.split(","), default=())
    parser.add_argument("--methods", type=lambda t: t.split(","), default=())
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--epsilons", type=lambda t: tuple(map(float, t.split(","))), default=EPSILONS
    )
    parser.add_argument(
        "--training", action="store_true", help="split training rows again: to choose constants"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=0.0,
        help="seconds after which no further record is waited for",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=0.0,
        help="with one job: seconds of a fit from which a cell gets no further seed",
    )
    parser.add_argument("--output", default=str(RESULTS))
    parser.add_argument(
        "--show", action="store_true", help="print the table instead of writing the page"
    )
    options = parser.parse_args()
    COMMANDS[options.command](options)


if __name__ == "__main__":
    main()
