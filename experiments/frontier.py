"""The honest frontier: test AUC, accuracy or R2 against epsilon for every method with a true guarantee.

Every row is a command, for instance

    python experiments/frontier.py --data news-bigrams --method gradient --epsilon 1 --n-nonzero 100

and `--all` runs every row that is missing. Rows are kept in results/frontier.jsonl (resumable);
`--table` writes results/frontier.md and .png from them. Defaults of the estimators throughout: nothing
is tuned on test rows. Preprocessing is per-row or by public constants:

    news-bigrams   reconstruction of news20.binary: binary words and word pairs, unit rows; 16,000 train rows
    news20         20 classes, unigram counts, unit rows
    a9a, w8a, mushrooms, phishing, covtype, kddcup99, communities, blogfeedback
                   entries brought into [-1, 1] by public bounds; rows of L2 norm at most 1 for the
                   methods that need it (declared: sqrt of the width otherwise)
    blogfeedback   log1p of features and target

Splits: the source's own test file for a9a; else 20 % of the rows by seed 20. Trials differ in noise only.
"""

import argparse
import json
import math
import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from dpsparse.domain import Domain
from dpsparse.exceptions import NotPrivateWarning
from dpsparse.random import make_generator

RESULTS = Path(__file__).parent / "results"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-6
TARGET_BOUND = {"communities": 1.0, "blogfeedback": 8.0}
WIDE = ("news-bigrams", "news20")
BINARY = ("a9a", "w8a", "mushrooms", "phishing", "covtype", "kddcup99")
METHODS = ("gradient", "gradient-plain", "dp-ight", "peeling", "dp-lasso", "l1", "majority")


def unit_rows(X):
    X = sp.csr_array(X, dtype=np.float64)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, 1e-300), np.diff(X.indptr))
    return X


@lru_cache(maxsize=1)
def data(name):
    """Train and test parts."""
    from dpsparse.datasets import load, load_newsgroups_bigrams

    if name == "a9a":
        return (*load("a9a", scaled=True), *load("a9a.t", scaled=True))
    if name == "news-bigrams":
        X, y = load_newsgroups_bigrams()
    else:
        X, y = load("news20-multiclass" if name == "news20" else name, scaled=True)
        X = unit_rows(X) if name == "news20" else X
        if name == "blogfeedback":
            X, y = sp.csr_array(np.log1p(np.maximum(X.toarray(), 0.0))), np.log1p(y)
    order = make_generator(20).permutation(len(y))
    cut = 16_000 if name == "news-bigrams" else round(0.8 * len(y))
    train, test = order[:cut], order[cut:]
    return X[train], y[train], X[test], y[test]


def estimator(name, method, epsilon, k, seed, width):
    import dpsparse.estimators as e

    regression = name in TARGET_BOUND
    norm = 1.0 if name in WIDE else None
    classes = None if regression else np.unique(data(name)[1]).tolist()  # public: the label names
    facts = {"target_bound": TARGET_BOUND[name]} if regression else {"classes": classes}
    bound = 10.0 if name == "blogfeedback" else 1.0
    domain = Domain(feature_bound=bound, row_norm=norm, **facts)
    kind = "Regressor" if regression else "Classifier"
    common = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    if method == "gradient":
        return getattr(e, f"DPGradient{kind}")(domain, n_nonzero=k, **common)
    if method == "gradient-plain":
        plain = {"masses": None, "prune": False, "weighted_steps": False, "soft_threshold": False}
        return getattr(e, f"DPGradient{kind}")(domain, n_nonzero=k, clip=1.0, **plain, **common)
    if method in ("dp-ight", "peeling"):
        how = "peeling" if method == "peeling" else "gaussian"
        size = k or min(100, width)
        return getattr(e, f"DPHardThreshold{kind}")(domain, n_nonzero=size, method=how, **common)
    if method == "dp-lasso":
        return getattr(e, f"DPLasso{kind}")(domain, n_nonzero=k, **common)
    raise ValueError(method)


def score(name, model, X, y):
    from sklearn.metrics import r2_score, roc_auc_score

    if name in TARGET_BOUND:
        return float(r2_score(y, model.predict(X)))
    margins = model.decision_function(X)
    if margins.ndim == 2:
        return float(np.mean(model.classes_[margins.argmax(axis=1)] == y))
    return float(roc_auc_score(y == model.classes_[1], margins))


def run_row(name, method, epsilon, k, seed):
    """One fit on the train part, one score on the test part."""
    return fitted_row(name, method, epsilon, k, seed)[0]


def fitted_row(name, method, epsilon, k, seed):
    """The row, and the model behind it."""
    X, y, Xt, yt = data(name)
    start = time.process_time()
    if method == "majority":
        values, counts = np.unique(y, return_counts=True)
        constant = float(np.mean(yt == values[counts.argmax()])) if name == "news20" else 0.5
        constant = 0.0 if name in TARGET_BOUND else constant
        return {"score": constant, "n_nonzero": 0, "seconds": 0.0}, None
    if method == "l1":
        from sklearn.linear_model import LassoCV, LogisticRegression

        if name in TARGET_BOUND:
            model = LassoCV(cv=3, max_iter=2000).fit(X.toarray(), y)
        else:
            penalty = {"solver": "saga", "l1_ratio": 1.0, "C": 10.0 if name in WIDE else 1.0}
            model = LogisticRegression(max_iter=60, tol=1e-3, **penalty).fit(X, y)
        n_nonzero = int(np.count_nonzero(model.coef_))
    else:
        model = estimator(name, method, epsilon, k, seed, X.shape[1]).fit(X, y)
        n_nonzero = model.n_nonzero_
    return {
        "score": score(name, model, Xt, yt),
        "n_nonzero": n_nonzero,
        "seconds": round(time.process_time() - start, 2),
    }, model


def wanted(seeds):
    """Every cell of the table, most important first."""
    cells = []
    for k in (100, None):
        cells += [("news-bigrams", "gradient", e, k) for e in EPSILONS]
    cells += [(d, "gradient", e, None) for d in BINARY[:4] for e in EPSILONS]
    cells += [("news-bigrams", "gradient", e, 1000) for e in EPSILONS]
    cells += [("news20", "gradient", e, k) for k in (None, 2000) for e in EPSILONS]
    cells += [(d, "gradient", e, None) for d in (*TARGET_BOUND, *BINARY[4:]) for e in EPSILONS]
    everywhere = ("news-bigrams", *BINARY[:4], *TARGET_BOUND, *BINARY[4:], "news20")
    cells += [(d, m, e, None) for d in everywhere for m in METHODS[1:5] for e in EPSILONS]
    cells += [(d, m, math.inf, None) for d in everywhere for m in METHODS[5:]]
    for name, method, epsilon, k in cells:
        for seed in range(1 if math.isinf(epsilon) else seeds):
            yield {"data": name, "method": method, "epsilon": epsilon, "k": k, "seed": seed}


def key(row):
    return tuple(row[f] for f in ("data", "method", "epsilon", "k", "seed"))


def read():
    path = RESULTS / "frontier.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def execute(cells):
    done = {key(row) for row in read()}
    for cell in cells:
        if key(cell) in done:
            continue
        try:
            row = run_row(cell["data"], cell["method"], cell["epsilon"], cell["k"], cell["seed"])
        except Exception as error:  # a method may refuse a data set; the row says so
            row = {"score": None, "error": f"{type(error).__name__}: {error}"[:200]}
        with (RESULTS / "frontier.jsonl").open("a") as file:
            file.write(json.dumps({**cell, **row}) + "\n")
        print({**cell, **row}, flush=True)


def table(rows):
    """Mean (standard error) per cell, one line per data set, method and number of weights."""
    cells = {}
    for row in rows:
        if row["score"] is not None:
            cells.setdefault((row["data"], row["k"], row["method"]), {}).setdefault(
                row["epsilon"], []
            ).append((row["score"], row["n_nonzero"]))
    lines = [
        f"# Frontier: test AUC (news20: accuracy; communities, blogfeedback: R2), delta {DELTA:g}",
        "",
        "Mean over seeds, standard error in brackets; defaults everywhere, add-remove adjacency.",
        "",
        "| data | weights kept | method | "
        + " | ".join(f"eps {e:g}" for e in EPSILONS)
        + " | non-private |",
        "|---" * (4 + len(EPSILONS)) + "|",
    ]
    for (name, k, method), by_epsilon in sorted(
        cells.items(), key=lambda c: (c[0][0], str(c[0][1]))
    ):
        shown = []
        for e in (*EPSILONS, math.inf):
            values = [v for v, _ in by_epsilon.get(e, [])]
            error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
            shown.append(f"{np.mean(values):.3f} ({error:.3f})" if values else "")
        kept = k or ("100 at most" if method in ("dp-ight", "peeling", "dp-lasso") else "all")
        lines.append(f"| {name} | {kept} | {method} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def plot(rows, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = plt.subplots(
        math.ceil(len(names) / 3), 3, figsize=(13, 3.6 * math.ceil(len(names) / 3))
    )
    colours = {}
    for axis in np.ravel(axes)[len(names) :]:
        axis.axis("off")
    for axis, name in zip(np.ravel(axes), names, strict=False):
        for method, k in dict.fromkeys((r["method"], r["k"]) for r in rows if r["data"] == name):
            points = {}
            for r in rows:
                if (r["data"], r["method"], r["k"]) == (name, method, k) and r["score"] is not None:
                    points.setdefault(r["epsilon"], []).append(r["score"])
            if math.inf in points:
                axis.axhline(np.mean(points[math.inf]), color="grey", lw=0.8, label=method)
                continue
            xs = sorted(points)
            label = method if k is None else f"{method}, {k} weights"
            colour = f"C{colours.setdefault(label, len(colours))}"  # the same in all panels
            means = [np.mean(points[x]) for x in xs]
            axis.plot(xs, means, marker="o", ms=4, color=colour, label=label)
        axis.set(title=name, xscale="log", xlabel="epsilon")
        axis.set_ylim(bottom=max(axis.get_ylim()[0], -0.5))
        axis.legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--method", choices=METHODS)
    parser.add_argument("--epsilon", type=float)
    parser.add_argument("--n-nonzero", type=int)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", NotPrivateWarning)
    warnings.filterwarnings("ignore", category=UserWarning)
    RESULTS.mkdir(exist_ok=True)
    if arguments.data:
        cell = {"data": arguments.data, "method": arguments.method, "epsilon": arguments.epsilon}
        cell["k"] = arguments.n_nonzero
        execute({**cell, "seed": seed} for seed in range(arguments.seeds))
    if arguments.all:
        execute(wanted(arguments.seeds))
    if arguments.table:
        rows = read()
        (RESULTS / "frontier.md").write_text(table(rows))
        plot(rows, RESULTS / "frontier.png")


if __name__ == "__main__":
    main()
