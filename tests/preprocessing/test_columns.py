"""What one row, or one person, can move: by brute force on corners, for both adjacencies."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpsparse.rows.columns import POWER_CELLS, POWER_EDGES, RawRows, _power_cells
from dpsparse.sensitivity import column_cells, name_threshold, shared_names

BIG, TINY = 1.7976931348623157e308, 5e-324
UNITS = (2.0**-20, 1e-7 / 3.0, 0.0123)
EDGES = np.array([[-1.0, 0.0, 2.0], [0.0, 1e-300, 1e300]])
CELLS = [
    -1.0, float(np.nextafter(-1.0, -2.0)), 0.0, -0.0, 2.0, float(np.nextafter(2.0, 0.0)), 0.5,
    TINY, -TINY, 1e-300, BIG, -BIG, math.inf, -math.inf, math.nan, 2.0**-20, 2.0**40, -(2.0**40),
]  # fmt: skip


def number_columns(values, groups=None):
    values = np.asarray(values, float)
    return RawRows.of(values, groups=groups).numbers(np.asarray, values.shape[1])


def names_of(rows, most, groups=None):
    return RawRows.of(rows, groups=groups).names(list, most)


def queries(columns):
    yield columns.powers()
    yield columns.between(EDGES)
    yield columns.outside(np.array([-1.0, 0.0]), np.array([2.0, 1e300]))


def norm(change):
    return math.sqrt(sum(int(v) ** 2 for v in change.ravel()))


def test_one_row_moves_cells_by_the_lemma_and_attains_it():
    table = np.array([[0.3, 0.4], [math.nan, -5.0]])
    rows = [np.array([pair]) for pair in itertools.product(CELLS, repeat=2)][::3]
    for unit in UNITS:
        seen = {"add-remove": 0.0, "replace-one": 0.0}
        alone = [[q.whole(unit) for q in queries(number_columns(table))]]
        tables = [
            [q.whole(unit) for q in queries(number_columns(np.vstack([table, r])))] for r in rows
        ]
        for kind, pairs in (
            ("add-remove", itertools.product(alone, tables)),
            ("replace-one", itertools.product(tables[::4], tables[1::4])),
        ):
            bound = column_cells(2, kind).value / unit
            for one, two in pairs:
                moved = max(norm(a - b) for a, b in zip(one, two, strict=True))
                assert moved <= bound
                seen[kind] = max(seen[kind], moved / bound)
        if unit < 1e-3:
            assert min(seen.values()) > 0.999


@pytest.mark.parametrize("unit", UNITS)
def test_a_person_moves_no_more_than_a_row(unit):
    table = np.array([[0.3, 0.4]])
    before = [q.whole(unit) for q in queries(number_columns(table, [0]))]
    for n_rows in (1, 2, 3, 7, 50):
        for cells in (CELLS[:5], [1.5], CELLS):
            more = np.array([[cells[i % len(cells)]] * 2 for i in range(n_rows)])
            groups = [0] + [1] * n_rows
            after = [
                q.whole(unit) for q in queries(number_columns(np.vstack([table, more]), groups))
            ]
            for a, b in zip(before, after, strict=True):
                assert norm(b - a) <= column_cells(2, "add-remove").value / unit


def test_every_number_is_in_the_cell_that_holds_it():
    cells = _power_cells(np.array(CELLS))
    for x, cell in zip(CELLS, cells, strict=True):
        if math.isnan(x):
            assert cell == POWER_CELLS - 1
        elif abs(x) >= 2.0**40:
            assert cell == (POWER_CELLS - 2 if x > 0 else 0)
        else:
            assert POWER_EDGES[cell] <= x <= POWER_EDGES[cell + 1]


TEXTS = [[], ["a"], ["b"], ["a", "b"], ["new"], ["new", "x"], list("abcdefg"), ["a"] * 5]


def weights(rows, most, unit, groups=None):
    names = names_of(rows, most, groups)
    return dict(zip(names.known, names.weights().whole(unit).tolist(), strict=True))


def moved(one, two):
    names = {*one, *two}
    return math.sqrt(sum((one.get(n, 0) - two.get(n, 0)) ** 2 for n in names))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("most", [1, 2, 5])
def test_names_move_by_one_and_attain_it(unit, most):
    table = [["a"], ["a", "b"], ["c"]]
    base = weights(table, most, unit)
    best = {"add-remove": 0.0, "replace-one": 0.0}
    for one, two in itertools.product(TEXTS, repeat=2):
        with_one, with_two = (weights([*table, r], most, unit) for r in (one, two))
        for kind, distance in (
            ("add-remove", moved(base, with_one)),
            ("replace-one", moved(with_one, with_two)),
        ):
            bound = shared_names(kind).value / unit
            assert distance <= bound
            best[kind] = max(best[kind], distance / bound)
    if unit < 1e-3:
        assert min(best.values()) > 0.999


@pytest.mark.parametrize("most", [1, 3])
def test_the_names_of_a_person_are_those_of_all_rows(most):
    unit = 2.0**-20
    base = weights([["a"]], most, unit, [0])
    for rows in ([["x"], ["y"], ["z"], ["w"]], [["x"]] * 9, [[], ["x", "y"]]):
        more = weights([["a"], *rows], most, unit, [0] + [1] * len(rows))
        assert moved(base, more) <= 1.0 / unit


def test_the_choice_of_names_depends_on_the_row_alone():
    row, other = [f"w{i}" for i in range(50)], [f"v{i}" for i in range(50)]
    alone = weights([row], 5, 1e-6)
    assert len(alone) == 5
    assert {k: v for k, v in weights([other, row[::-1]], 5, 1e-6).items() if k in row} == alone
    # Another row with the same words but one chooses anew: no word is always dropped.
    kept = {n for i in range(60) for n in weights([[*row, f"u{i}"]], 5, 1e-6)}
    assert set(row) <= kept | {"w0"} or len(kept & set(row)) > 45


def test_the_threshold_grows_with_names_and_is_halved_under_replace_one():
    assert name_threshold(1.0, 1, 1e-7, "add-remove") == pytest.approx(1.0 + 5.199337582)
    assert name_threshold(1.0, 1, 2e-7, "replace-one") == pytest.approx(1.0 + 5.199337582)
    rising = [name_threshold(4.0, k, 1e-7, "add-remove") for k in (1, 5, 60)]
    assert rising == sorted(rising)


@pytest.mark.parametrize("n_columns", [3, 5, 6, 7])
def test_cells_of_several_columns_keep_to_a_bound_that_is_rounded_down(n_columns):
    """sqrt 3 in float64 is below sqrt 3; a unit that is a power of two leaves no other room."""
    query = number_columns(np.ones((1, n_columns))).powers()
    whole = query.whole(2.0**-20)
    squares = sum(int(k) ** 2 for k in whole.reshape(-1))
    assert 0 < squares <= (Fraction(query.sensitivity("add-remove").value) * 2**20) ** 2
