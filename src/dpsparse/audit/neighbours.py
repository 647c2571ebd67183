"""Tables that differ in one row or in one person, chosen by someone who wants to see the difference.

A `Pair` is a table and its neighbour; a row that only one of them has is its last. The generator tries what usually
breaks a proof: values far outside the domain, rows nobody resembles, features nobody else has, flipped labels,
duplicates, empty rows. `boundary_pairs` holds the rows on which floating-point arithmetic breaks its promises, in every
form in which a table may come. `climb` moves the one row towards the largest effect, coordinate by coordinate.

Where a domain protects persons, `of_persons` makes of every such pair one that differs in a person: of one row, of
m equal, opposite, contrary or nearly cancelling rows, of m + 1, of ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse.domain import Domain
from dpsparse.domain.clipping import TINY
from dpsparse.random import make_generator

MANY = 10_000  # rows of a person where the domain does not bound them
SHAPES = ("equal", "many", "opposite", "contrary", "one more", "cancelling", "one")


@dataclass(frozen=True)
class Pair:
    """Neighbouring tables; the person in which they differ has the last name."""

    X: Any
    y: np.ndarray
    X2: Any
    y2: np.ndarray
    name: str
    groups: np.ndarray | None = None  # the person of every row
    groups2: np.ndarray | None = None

    def swapped(self) -> Pair:
        """The same pair seen from the other table."""
        return Pair(self.X2, self.y2, self.X, self.y, self.name, self.groups2, self.groups)


def add_row(X: np.ndarray, y: np.ndarray, row: np.ndarray, target: float, name: str) -> Pair:
    """The table and the table with one more row."""
    return Pair(X, y, np.vstack([X, row]), np.append(y, np.asarray(target, y.dtype)), name)


def replace_row(
    X: np.ndarray, y: np.ndarray, at: int, row: np.ndarray, target: float, name: str
) -> Pair:
    """The table and the table with another row in place `at`."""
    X2, y2 = X.copy(), y.copy()
    X2[at], y2[at] = row, target
    return Pair(X, y, X2, y2, name)


def of_persons(pair: Pair, domain: Domain, number: int = 0) -> Pair:
    """The same difference between persons: the changed row becomes several rows of one person, in the shapes of this
    number (0: many equal rows, the loudest); all other rows belong to persons of two rows each.

    The changed person has the last name, so that draws in the order of persons are the same for all others.
    """
    first, second = _changed(pair)
    n = len(pair.y) - len(first)
    common = np.delete(np.arange(len(pair.y)), first)
    others = np.arange(n) // 2
    last = (n + 1) // 2
    other, shape = (SHAPES[k % len(SHAPES)] for k in divmod(number, len(SHAPES)))
    if not len(second):
        other = shape

    def side(X: Any, y: np.ndarray, at: np.ndarray, shape: str) -> tuple[Any, Any, Any]:
        if not len(at):
            return X, y, others
        rows, targets = _person(X[at[0]], y[at[0]], shape, domain)
        groups = np.append(others, np.full(len(rows), last))
        return np.vstack([pair.X[common], rows]), np.append(pair.y[common], targets), groups

    X, y, groups = side(pair.X, pair.y, first, other)
    X2, y2, groups2 = side(pair.X2, pair.y2, second, shape)
    return Pair(X, y, X2, y2, f"{pair.name}, person: {shape}", groups, groups2)


def _person(
    row: np.ndarray, target: Any, shape: str, domain: Domain
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets of a person who says one thing in several ways."""
    m = max(2, domain.rows_per_unit or 4)
    n = {"one": 1, "one more": m + 1, "many": MANY}.get(shape, m)
    rows, targets = np.tile(row, (n, 1)), np.full(n, target)
    turn = np.where(np.arange(n) % 2 == 1, -1.0, 1.0)
    if shape in ("opposite", "cancelling"):
        rows *= turn[:, None]
    if shape == "cancelling":  # up to a tenth: rounding row by row would leave the whole of it
        rows[1::2] *= 0.9
    if shape == "contrary":
        targets[1::2] = next(t for t in _targets(domain, np.ones(1)) if t != target)
    return rows, targets


def row_weights(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Weights as an argument of `fit`, where the model takes some: half of them the largest, others where clipping or
    floats change their behaviour. The weight of a row is a function of its cells, so neighbours have the same ones."""
    if not getattr(model, "_weighted", False):
        return {}
    most = float(model.domain.weight_bound)
    edges = [
        0.0, -1.0, 5e-324, TINY * most, np.nextafter(most, 0.0), np.nextafter(most, np.inf), most / 3.0, 1e300,
    ]  # fmt: skip
    dense = X.toarray() if hasattr(X, "toarray") else X
    cells = np.ascontiguousarray(dense, np.float64)
    mixed = ((cells.view(np.uint64) >> 7) * np.uint64(0x9E3779B97F4A7C15)).sum(axis=1)
    return {"sample_weight": np.array([most] * len(edges) + edges)[mixed >> 60]}


def sample_table(
    domain: Domain, n_rows: int, n_features: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A small table of a declared domain: dense and rare columns, correlated targets."""
    bound = domain.entry_bound()
    density = np.where(np.arange(n_features) % 3 == 2, 1.5 / n_rows, 0.6)
    X = rng.uniform(-bound, bound, (n_rows, n_features))
    X *= rng.random((n_rows, n_features)) < density
    signal = X[:, 0] / bound + 0.2 * rng.standard_normal(n_rows)
    if domain.classes is not None:
        labels = domain.class_labels()
        cuts = np.quantile(signal, np.linspace(0, 1, len(labels) + 1)[1:-1])
        return X, labels[np.searchsorted(cuts, signal)]
    reach = domain.target_bound or 1.0
    return X, domain.target_middle + reach * np.clip(signal, -1.0, 1.0)


def crowd(
    domain: Domain, n_rows: int, n_features: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that all say the same: weights grow, and whoever disagrees has the largest slope."""
    size = 30 * n_rows
    X = np.zeros((size, n_features))
    X[:, 0] = domain.entry_bound()
    targets = _targets(domain, np.ones(1))
    return X, np.full(size, targets[-1])


def worst_pairs(domain: Domain, adjacency: str, n_features: int) -> list[Pair]:
    """Pairs on which known mistakes show, with as many rows as declared; an attack tries each."""
    found = _worst_rows(domain, adjacency, n_features)
    return found if domain.unit == "row" else [of_persons(pair, domain) for pair in found]


def _worst_rows(domain: Domain, adjacency: str, n_features: int) -> list[Pair]:
    n_rows = 2 * (min(max(domain.n_samples or 20, 20), 2000) // 2)
    bound = domain.entry_bound()
    targets = _targets(domain, np.ones(1))
    low, high = targets[0], targets[-1]
    unit = bound * np.eye(n_features)
    empty = np.zeros((n_rows, n_features)), np.array([low, high] * (n_rows // 2))
    alike = np.tile(unit[0], (n_rows, 1)), np.full(n_rows, high)
    tie = np.repeat(unit[:2], n_rows // 2, axis=0), np.full(n_rows // 2 * 2, high)
    split = np.tile(unit[0], (n_rows, 1)), np.array([low, high] * (n_rows // 2))
    wide = np.full(n_features, bound)
    # Where a row is replaced, the other one comes first.
    differences = [
        ("owner of a feature", empty, (unit[1], low), (unit[1], high)),
        ("owner of a feature", empty, (unit[1], high), (unit[1], low)),
        ("against the crowd", alike, (unit[0], high), (unit[0], low)),
        ("tie between features", tie, (unit[0], high), (unit[1], high)),
        ("tie between features", tie, (unit[1], high), (unit[0], high)),
        ("tie between labels", split, (unit[0], low), (unit[0], high)),
        ("a full row", empty, (wide, low), (wide, high)),
    ]
    if adjacency == "add-remove":
        return [add_row(*table, *row, name) for name, table, _, row in differences]
    found = []
    for name, (X, y), (old, target), row in differences:
        pair = replace_row(X, y, 0, old, target, name)
        found.append(replace_row(pair.X2, pair.y2, 0, *row, name))
    return found


def rows(
    X: np.ndarray, y: np.ndarray, domain: Domain, rng: np.random.Generator
) -> Iterator[tuple[str, np.ndarray, float]]:
    """(name, features, target) of rows that try to be noticed, without end."""
    d, bound = X.shape[1], domain.entry_bound()
    targets = _targets(domain, y)
    huge = 1e6  # far outside every domain: clipping has to happen, and row by row
    rare = np.argsort(np.count_nonzero(X, axis=0))
    while True:
        j = int(rng.integers(d))
        like = int(rng.integers(len(y)))
        corner: np.ndarray = bound * rng.choice([-1.0, 1.0], d)
        unit, rarest = np.zeros(d), np.zeros(d)
        unit[j] = bound * rng.choice([-1.0, 1.0])
        rarest[rare[int(rng.integers(min(3, d)))]] = bound
        pick = targets[int(rng.integers(len(targets)))]
        other = next((t for t in targets if t != y[like]), targets[0])
        yield "corner", corner, pick
        yield "one feature", unit, pick
        yield "rare feature", rarest, pick
        yield "flipped label", X[like].copy(), other
        yield "duplicate", X[like].copy(), y[like]
        yield "empty row", np.zeros(d), pick
        yield "outside the domain", huge * corner, huge * pick if domain.classes is None else pick
        yield "one huge entry", huge * unit, pick
        yield "random", np.asarray(rng.uniform(-bound, bound, d)), pick
        yield "tiny", 1e-300 * corner, pick
        yield "against the first feature", bound * np.eye(d)[0], targets[0]


def pairs(
    domain: Domain, adjacency: str, n_rows: int, n_features: int, rng: np.random.Generator
) -> Iterator[Pair]:
    """Adversarial pairs without end: a row added, removed or replaced, or a person."""
    found = _row_pairs(domain, adjacency, n_rows, n_features, rng)
    if domain.unit == "row":
        yield from found
    for number, pair in enumerate(found):
        yield of_persons(pair, domain, number)


def _row_pairs(
    domain: Domain, adjacency: str, n_rows: int, n_features: int, rng: np.random.Generator
) -> Iterator[Pair]:
    tables = 0
    while True:
        crowded = tables % 2 == 1
        X, y = (crowd if crowded else sample_table)(domain, n_rows, n_features, rng)
        tables += 1
        source = rows(X, y, domain, rng)
        for _ in range(11):
            name, row, target = next(source)
            if adjacency == "replace-one":
                yield replace_row(X, y, int(rng.integers(len(y))), row, target, name)
            else:
                added = add_row(X, y, row, target, name)
                yield added if rng.random() < 0.5 else added.swapped()


# ---- rows on which floating-point arithmetic breaks its promises -----------------------------------


def boundary_magnitudes(bound: float) -> list[float]:
    """Zero, and numbers at which float32, float64 or the domain change their behaviour."""
    single, double = np.finfo(np.float32), np.finfo(np.float64)
    edges = [
        float(double.smallest_normal), float(single.smallest_normal), TINY, bound,
        float(single.smallest_subnormal), 2.0**-29,
    ]  # fmt: skip
    around = [float(f) for e in edges for f in (np.nextafter(e, 0.0), e, np.nextafter(e, np.inf))]
    special = [
        0.0, 5e-324, 1e-320, 1e-310, 1.5e-154,  # vanish, or their squares do
        0.5001 * 2.0**-149, 7.0065e-46, 2.0**-148, 1e-40,  # round up, or far, as float32
        bound * (1.0 - 2.0**-25), bound * (1.0 + 2.0**-24), bound * (1.0 + 2.0**-23), bound / 3.0,
        2.0**-75, 1e19, 3.4028234e38, 3.40282356779e38, 3.5e38, 1e154, 1e300, float(double.max),
    ]  # fmt: skip
    return special + around


def boundary_rows(domain: Domain, n_features: int) -> list[tuple[str, np.ndarray, float]]:
    """(name, features, target): each magnitude in several shapes, and as a target."""
    bound, d = domain.entry_bound(), n_features
    targets = _targets(domain, np.ones(1))
    alternate = np.where(np.arange(d) % 2 == 0, 1.0, -1.0)
    out: list[tuple[str, np.ndarray, float]] = []
    for i, m in enumerate(boundary_magnitudes(bound)):
        one, beside = np.zeros(d), np.zeros(d)
        one[1 % d] = m
        beside[0], beside[-1] = bound, m
        # Products with these are not exact, and no two of them agree on how they round.
        uneven = m * np.minimum(1.0, (1.0 + np.arange(d)) / d)
        shapes = {
            "one entry": one, "one negative entry": -one, "all entries": np.full(d, m),
            "cancelling entries": m * alternate, "beside a full entry": beside,
            "uneven entries": uneven,
        }  # fmt: skip
        for j, (shape, row) in enumerate(shapes.items()):
            out.append((f"{shape} of {m:.6g}", row, targets[(i + j) % len(targets)]))
        if domain.classes is None:
            full = np.full(d, bound)
            out += [(f"a target of {s * m:.6g}", full, s * m) for s in (1.0, -1.0)]
    return out


def boundary_pairs(domain: Domain, adjacency: str, n_features: int) -> list[Pair]:
    """Every boundary row against a small table, dense, as float32 where that is finite, and as sparse
    tables with stored zeros or with duplicates behind a stale flag. Pairs of a form share their first table."""
    X, y = sample_table(domain, 6, n_features, make_generator(0))
    dense = [
        replace_row(X, y, 0, row, target, name)
        if adjacency == "replace-one"
        else add_row(X, y, row, target, name)
        for name, row, target in boundary_rows(domain, n_features)
    ]
    if domain.unit == "person":
        dense = [of_persons(pair, domain, number) for number, pair in enumerate(dense)]
    out = []
    forms: dict[str, Callable[[np.ndarray], Any]] = {
        "dense": np.asarray,
        "float32": lambda X: X.astype(np.float32),
        "stored": _stored,
        "stale": _stale,
    }
    for form, cast in forms.items():
        first = cast(X)
        for number, pair in enumerate(dense):
            if form != "dense" and number % 4:
                continue
            finite = np.abs(pair.X2).max() < float(np.finfo(np.float32).max)
            if finite or form == "dense":
                before = first if pair.X is X else cast(pair.X)
                out.append(replace(pair, X=before, X2=cast(pair.X2), name=f"{pair.name}, {form}"))
    return out


def _stored(X: np.ndarray) -> Any:
    """CSR in which zeros are stored, with their signs."""
    n, d = X.shape
    return sp.csr_array((X.ravel().copy(), np.tile(np.arange(d), n), d * np.arange(n + 1)), X.shape)


def _stale(X: np.ndarray) -> Any:
    """CSR that stores every entry twice and says that it does not."""
    n, d = X.shape
    places = np.tile(np.repeat(np.arange(d), 2), n)
    out = sp.csr_array((np.repeat(X.ravel(), 2), places, 2 * d * np.arange(n + 1)), X.shape)
    out.has_canonical_format = True
    return out


def climb(
    pair: Pair,
    height: float,
    effect: Callable[[Pair], float],
    domain: Domain,
    rng: np.random.Generator,
    n_trials: int = 40,
) -> tuple[Pair, float]:
    """Move the changed row uphill in `effect` from a pair of this height: entries to a bound or to zero, other targets.

    A table in which nothing moves stays the same object, so that its fit need not be repeated.
    """
    bound = domain.entry_bound()
    targets = _targets(domain, pair.y)
    if len(pair.y2) < len(pair.y):
        pair = pair.swapped()
        height = effect(pair)
    first, second = _changed(pair)
    best = pair
    for _ in range(n_trials):
        old = len(first) > 0 and rng.random() < 0.5
        X_side, y_side = (best.X.copy(), best.y.copy()) if old else (best.X2.copy(), best.y2.copy())
        at = first if old else second
        if len(at) > 1 and rng.random() < 0.5:  # one row of a person, or all of them alike
            at = at[[int(rng.integers(len(at)))]]
        move = rng.random()
        if move < 0.2:
            y_side[at] = targets[int(rng.integers(len(targets)))]
        else:
            where = np.asarray(rng.random(X_side.shape[1])) < (0.1 if move < 0.6 else 0.5)
            where[int(rng.integers(X_side.shape[1]))] = True
            X_side[np.ix_(at, where)] = bound * rng.choice([-1.0, 0.0, 1.0, 1.0], int(where.sum()))
        moved = {"X": X_side, "y": y_side} if old else {"X2": X_side, "y2": y_side}
        trial = replace(best, **moved, name=f"{pair.name}, climbed")
        reached = effect(trial)
        if reached > height:
            best, height = trial, reached
    return best, height


def _changed(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the first table that the second does not have, and the reverse; of persons, all of theirs."""
    if pair.groups is not None and pair.groups2 is not None:
        last = max(pair.groups.max(), pair.groups2.max())
        return np.flatnonzero(pair.groups == last), np.flatnonzero(pair.groups2 == last)
    none, last = np.empty(0, np.intp), np.array([max(len(pair.y), len(pair.y2)) - 1])
    if len(pair.y) != len(pair.y2):
        return (none, last) if len(pair.y2) > len(pair.y) else (last, none)
    moved = (pair.X2 != pair.X).any(axis=1) | (pair.y2 != pair.y)
    at = np.array([int(np.argmax(moved))])
    return at, at


def _targets(domain: Domain, y: np.ndarray) -> list[float]:
    if domain.classes is not None:
        return list(domain.class_labels().tolist())
    bound = domain.target_bound or float(np.abs(y).max(initial=1.0))
    return [-bound, 0.0, bound]
