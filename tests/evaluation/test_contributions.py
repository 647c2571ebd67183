"""What one row, or one person, can move: by brute force on corners, for both adjacencies."""

import itertools
import math

import numpy as np
import pytest

from dpsparse.evaluation.plan import SCORE_EDGES
from dpsparse.rows.histogram import ScoredLabels, ScoredNumbers

BIG = 1.7976931348623157e308
TINY = 5e-324
UNITS = (2.0**-20, 1e-7 / 3.0, 0.0123)  # of the grid; the last one is coarse
# Scores on, just below and just above edges; no numbers; the largest and smallest there are.
SCORES = [
    *(float(np.nextafter(SCORE_EDGES[40], side)) for side in (-1e9, 1e9)), float(SCORE_EDGES[40]),
    0.0, -0.0, TINY, -TINY, BIG, -BIG, math.inf, -math.inf, math.nan,
]  # fmt: skip
CHANCES = [0.0, 1.0, TINY, 1.0 - 2.0**-53, 0.5, 1.0 + 1e-9, -1e-9, math.nan, math.inf]
NUMBERS = [0.0, -0.0, 1.0, -1.0, 1.0 + 1e-12, -1.0 - 1e-12, TINY, 0.5, BIG, -BIG]


def labels(rows, n_classes=2, groups=None):
    """Rows are (truth, guess, score, chance of class 1)."""
    truth, guess, score, chance = (np.array(part) for part in zip(*rows, strict=True))
    chance = chance.astype(float)
    rest = (1.0 - chance) / (n_classes - 1)
    chances = np.column_stack([chance if k == 1 else rest for k in range(n_classes)])
    return ScoredLabels(
        truth.astype(np.intp),
        guess.astype(np.intp),
        score.astype(float),
        chances,
        n_classes,
        groups,
    )


def numbers(rows, groups=None):
    errors, targets = (np.array(part, float) for part in zip(*rows, strict=True))
    return ScoredNumbers(errors, targets, groups)


def label_queries(scored):
    cuts = SCORE_EDGES[::3]
    yield "confusion", scored.confusion()
    yield "outcomes", scored.outcomes()
    yield "cells", scored.cells(SCORE_EDGES)
    yield "histogram", scored.histogram(cuts)
    for name, power in itertools.product(("log_loss", "brier"), (1, 2)):
        yield f"{name} {power}", scored.loss(name, power)


def number_queries(scored):
    yield "absolute", scored.absolute()
    yield "squares", scored.squares()
    yield "squares 2", scored.squares(2)
    yield "total", scored.total()
    for centre in (0.0, 1.0, -0.3):
        yield f"spread {centre}", scored.spread(centre)
        yield f"spread 2 {centre}", scored.spread(centre, 2)
        yield f"cross {centre}", scored.spread(centre, cross=True)


def largest_moves(units, queries, make, unit):
    """Largest change of every query over all additions and all replacements, in units of v."""
    base = units[0]
    alone = [dict(queries(make([unit_]))) for unit_ in units]
    with_base = [dict(queries(make([base, unit_]))) for unit_ in units]
    first = dict(queries(make([base])))
    moves = {}
    for name, query in first.items():
        before = query.whole(unit)
        added = [w[name].whole(unit) - before for w in with_base]
        assert all(
            np.array_equal(a, q[name].whole(unit)) for a, q in zip(added, alone, strict=True)
        ), "what a row adds depends on other rows"
        add = max(float(np.linalg.norm(a)) for a in added) * unit
        swap = max(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(added, 2)) * unit
        moves[name] = add, swap, query.sensitivity
    return moves


def assert_within(moves, attained=()):
    for name, (add, swap, lemma) in moves.items():
        assert add <= lemma("add-remove").value, name
        assert swap <= lemma("replace-one").value, name
        if name in attained:
            assert add >= 0.999 * lemma("add-remove").value, f"{name}: the bound is loose"
            assert swap >= 0.999 * lemma("replace-one").value, f"{name}: the bound is loose"


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_a_classifier(unit, n_classes):
    classes = range(n_classes)
    rows = [(t, g, s, 0.3) for t, g, s in itertools.product(classes, classes, SCORES)]
    rows += [(t, 0, 0.0, p) for t, p in itertools.product(classes, CHANCES)]

    def make(few):
        return labels(few, n_classes)

    attained = ("confusion", "outcomes", "cells", "histogram", "log_loss 1", "brier 1")
    assert_within(largest_moves(rows, label_queries, make, unit), attained if unit < 1e-3 else ())


@pytest.mark.parametrize("unit", UNITS)
def test_rows_of_a_regressor(unit):
    rows = list(itertools.product(NUMBERS, NUMBERS))
    attained = ("absolute", "squares", "squares 2", "total", "spread 1.0", "spread 2 1.0")
    assert_within(
        largest_moves(rows, number_queries, numbers, unit), attained if unit < 1e-3 else ()
    )


def persons_made(make, people):
    rows = [row for person in people for row in person]
    return make(rows, groups=np.repeat(np.arange(len(people)), [len(p) for p in people]))


@pytest.mark.parametrize("unit", UNITS)
def test_a_person_moves_no_more_than_a_row(unit):
    """One row, equal rows, opposite rows, unequal numbers of rows, 10,000 rows."""
    good, bad = (1, 1, 3.0, 1.0), (0, 1, -3.0, 1.0)
    people = [
        [good], [bad], [good] * 7, [good, bad], [good] * 3 + [bad] * 4, [good] * 10_000,
        [(0, 0, math.nan, math.nan)] * 3, [(t, 1, s, 0.5) for t in (0, 1) for s in SCORES],
    ]  # fmt: skip
    moves = largest_moves(people, label_queries, lambda p: persons_made(labels, p), unit)
    assert_within(moves)
    extremes = [
        [(1.0, 1.0)], [(1.0, 1.0)] * 7, [(1.0, -1.0), (-1.0, 1.0)], [(0.0, 0.0)] * 10_000,
        [(1.0, 1.0), (1.0, -0.9), (0.1, 0.0)], [(e, y) for e in NUMBERS for y in NUMBERS],
    ]  # fmt: skip
    moves = largest_moves(extremes, number_queries, lambda p: persons_made(numbers, p), unit)
    assert_within(moves)


def test_a_person_of_many_rows_counts_once():
    """Without groups the same table moves by the number of rows: the test above can fail."""
    unit = 2.0**-20
    rows = [(1, 1, 3.0, 1.0)] * 7
    person = labels(rows, groups=np.zeros(7, int)).confusion().whole(unit)
    alone = labels(rows).confusion().whole(unit)
    assert person.max() * unit == pytest.approx(1.0, abs=1e-5)
    assert person.max() * unit <= 1.0
    assert alone.max() * unit == pytest.approx(7.0, abs=1e-5)


def test_rows_may_come_in_any_order():
    rng = np.random.default_rng(0)
    rows = [
        (int(t), int(g), float(s), float(p))
        for t, g, s, p in zip(
            rng.integers(0, 2, 40), rng.integers(0, 2, 40), rng.normal(size=40), rng.random(40),
            strict=True,
        )
    ]  # fmt: skip
    groups, order = rng.integers(0, 9, 40), rng.permutation(40)
    one = dict(label_queries(labels(rows, groups=groups)))
    other = dict(label_queries(labels([rows[i] for i in order], groups=groups[order])))
    for name in ("confusion", "cells", "histogram"):
        np.testing.assert_array_equal(one[name].whole(1e-6), other[name].whole(1e-6))


def test_a_score_that_is_no_number_goes_to_the_cell_of_zero():
    cells = labels([(0, 0, math.nan, 0.5)]).cells(SCORE_EDGES).whole(2.0**-10)
    zero = labels([(0, 0, 0.0, 0.5)]).cells(SCORE_EDGES).whole(2.0**-10)
    np.testing.assert_array_equal(cells, zero)
