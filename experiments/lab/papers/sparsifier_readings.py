"""Khanna, Lu and Raff (2023), Table 2: which reading of the protocol explains how many of its numbers.

The readings and their names are in chapters.toml; each is run twenty times.
"""

from itertools import product

import numpy as np
import scipy.sparse as sp

import papers_data
from dpsparse.random import make_generator
from lab.papers.chapter import chapters, derive_seed
from lab.papers.common import classifier_scores, split
from lab.papers.sparsifier import (
    AS_SHIPPED,
    keep_largest,
    laplace_scale,
    noisy_count,
    prepared,
    private_lasso,
)
from lab.papers.sparsifier_tables import (
    COUNT_EPSILON,
    EPSILON,
    LASSO,
    MATCHED,
    N_ITER,
    RADIUS,
    SPARSIFIER,
)
from lab.papers.summary import Average, summarise
from lab.report import markdown_table

DATA = ("splice", "phishing", "mushrooms", "colon-cancer", "synthetic", "a9a")
OFFICIAL = ("splice", "a9a")
STEPS = ("printed", "exact sign", "uniform")
RUNS = 20


def configurations():
    out = []
    for name in DATA:
        values = ("shipped", "divided") if name in AS_SHIPPED else ("divided",)
        splits = ("random", "fixed", *(("official",) if name in OFFICIAL else ()))
        for value, step, cut in product(values, STEPS, splits):
            cell = {"dataset": name, "values": value, "step": step, "split": cut}
            out.append(cell | {"mode": "published"})
    return out


def parts(name, values, cut, seed):
    """(A, a, B, b): training and test rows of one split."""
    divided = "largest" if values == "divided" else ""
    X, y = prepared(name, "" if cut == "official" else divided)
    if cut != "official":
        train, test = split(X.shape[0], seed)
        return X[train].toarray(), y[train], X[test].toarray(), y[test]
    B, b = papers_data.load(f"{name}.t")
    A, B = X.toarray(), sp.csr_array(B).toarray()
    B = np.pad(B, ((0, 0), (0, max(0, A.shape[1] - B.shape[1]))))[:, : A.shape[1]]
    if divided:
        largest = np.maximum(np.abs(A).max(axis=0), 1e-300)
        A, B = A / largest, B / largest
    return A, y, B, b


def trial(config, seed, number):
    name, step, cut = config["dataset"], config["step"], config["split"]
    batches = 5 if cut == "random" else 1
    out = []
    for batch in range(batches):
        A, a, B, b = parts(name, config["values"], cut, derive_seed("readings", name, batch))
        n, p = A.shape
        rng = make_generator(derive_seed(seed, *config.values(), batch))
        how = {"exact_sign": step == "exact sign", "uniform": step == "uniform"}
        matched = MATCHED[name][1 if step == "printed" else 0]

        def add(method, noise, weights, B=B, b=b):
            for w in weights:
                cell = {"method": method, "noise": noise}
                out.append(
                    {"cell": cell, "non-zeros": np.count_nonzero(w), **classifier_scores(B @ w, b)}
                )

        def weights(steps, scale, A=A, a=a, rng=rng, runs=RUNS // batches, how=how):
            for _ in range(runs):
                yield private_lasso(A, a, RADIUS, steps, scale, rng, **how)

        scale = laplace_scale(RADIUS, N_ITER, n, EPSILON - COUNT_EPSILON, 1.0 / n)
        thinned = (
            keep_largest(w, noisy_count(20, p, COUNT_EPSILON, rng)) for w in weights(N_ITER, scale)
        )
        add(SPARSIFIER, "", thinned)
        for noise, steps in (("own", matched), ("1000", N_ITER)):
            if step == "uniform" and noise == "own":
                continue  # the index does not feel the noise
            scale = laplace_scale(RADIUS, steps, n, EPSILON, 1.0 / n)
            add(LASSO, noise, weights(matched, scale))
    return out


def _cell(name, values, step, cut):
    return {
        "dataset": name, "step": step, "values": values if name in AS_SHIPPED else "divided",
        "split": "random" if cut == "official" and name not in OFFICIAL else cut,
    }  # fmt: skip


def counted(summary):
    """(reading, matches, cells compared, matches by data set), best first."""
    printed = summarise(chapters()["004-table2"], [])
    readings = []
    for values, step, cut, noise in product(
        ("shipped", "divided"), STEPS, ("random", "fixed", "official"), ("own", "1000")
    ):
        if step == "uniform" and noise == "own":
            continue
        compared, where = 0, []
        for name, (method, extra), metric in product(
            DATA, ((SPARSIFIER, ""), (LASSO, noise)), ("accuracy", "AUC")
        ):
            cell = _cell(name, values, step, cut) | {"method": method, "noise": extra}
            ours = summary.average(metric, "published", **cell)
            number = printed.published(metric, dataset=name, method=method)
            if ours is not None and number is not None:
                compared += 1
                where += [name] * number.matches(ours)
        if compared:
            by_data = {name: where.count(name) for name in DATA if name in where}
            readings.append(((values, step, cut, noise), len(where), compared, by_data))
    return sorted(readings, key=lambda r: -r[1])


def table(summary):
    readings, lines = counted(summary), []
    counts = [
        [*reading, f"{good} of {compared}", ", ".join(f"{name} {k}" for name, k in by_data.items())]
        for reading, good, compared, by_data in readings
    ]
    printed = summarise(chapters()["004-table2"], [])
    for name in DATA:
        best = max(readings, key=lambda r: r[3].get(name, 0))
        values, step, cut, noise = best[0]
        cell = _cell(name, values, step, cut)
        for method, extra in ((SPARSIFIER, ""), (LASSO, noise)):
            theirs = [
                printed.published(m, dataset=name, method=method) for m in ("accuracy", "AUC")
            ]
            ours = [
                summary.average(m, "published", method=method, noise=extra, **cell)
                or Average(np.nan, 0.0, 1)
                for m in ("accuracy", "AUC")
            ]
            lines.append([
                f"{name}, {method}", f"{cell['values']}, {step}, {cell['split']}, {extra or '-'}",
                ", ".join("" if t is None else f"{t.value:g}" for t in theirs),
                ", ".join(o.text(".2f") for o in ours),
            ])  # fmt: skip
    heads = ["values", "step", "split", "noise when stopped early", "matches", "by data set (of 4)"]
    best_heads = ["data", "values, step, split, noise", "printed accuracy, AUC", "ours"]
    between = "\n\nBest reading of each data set, its four numbers beside the printed ones:\n\n"
    return markdown_table(heads, counts) + between + markdown_table(best_heads, lines)


def facts(summary):
    readings = counted(summary)
    (values, step, cut, noise), good, compared, _ = readings[0]
    letter = next(r for r in readings if r[0] == ("divided", "printed", "random", "own"))
    return {
        "readings": len(readings), "good": good, "compared": compared, "letter": letter[1], "of": letter[2],
        "best": f"values {values}, step {step}, split {cut}, noise of {noise} iterations",
    }  # fmt: skip
