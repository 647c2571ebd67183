"""Persons with several rows: what they add together is whole, bounded as one row is, and attains the bound."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse.domain import Domain
from dpsparse.domain.clipping import HUGE, TINY
from dpsparse.exceptions import DomainError, SchemaError
from dpsparse.random import make_generator
from dpsparse.rows import Rows
from parts import clip_in_parts

LABELS = np.array([0, 1])
WIDTH = 6
UNIT = 1e-6


def person_domain(**facts):
    return Domain(unit="person", **({"classes": [0, 1], "feature_bound": None} | facts))


def person(X, y=1, domain=None, labels=LABELS):
    """The rows of one person."""
    X = np.atleast_2d(X)
    y = np.broadcast_to(np.asarray(y), len(X)).copy()
    domain = domain or person_domain()
    return Rows.clip(sp.csr_array(X), y, domain, labels=labels, groups=np.zeros(len(X), int))


def norm(whole):
    """Exact L2 norm of whole numbers."""
    return math.sqrt(sum(int(v) ** 2 for v in np.ravel(whole)))


def persons_of(m=7):
    """Persons of 1, m equal, m opposite, m + 1 and 10^4 rows, cancelling rows, and boundary floats."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(WIDTH)
    ones, signs = np.ones((m, 1)), (-1.0) ** np.arange(m)[:, None]
    yield "one", x[None, :], 1
    yield "equal", ones * x, 1
    yield "opposite", signs * x, 1
    yield "opposite targets", ones * x, np.arange(m) % 2
    yield "m + 1", rng.standard_normal((m + 1, WIDTH)), rng.integers(0, 2, m + 1)
    yield "10^4", np.tile(x, (10_000, 1)), 1
    yield "10^4 mixed", rng.standard_normal((10_000, WIDTH)), rng.integers(0, 2, 10_000)
    yield "cancelling", np.vstack([ones * x, -ones * x * (1 + 2.0**-40), x / 3.0]), 1
    for v in (5e-324, 1e-310, TINY, 1e-20, 1.0 - 2.0**-53, 1.0, HUGE, 1e300, -np.finfo(float).max):
        rows = np.full((m, WIDTH), v)
        rows[::2, ::2] *= -1.0
        yield f"boundary {v}", rows, np.arange(m) % 2


def contributions(units, rows, K=3):
    """Queries of unit rows, with the L2 bound of one row."""
    w = np.linspace(-3.0, 3.0, WIDTH * K).reshape(WIDTH, K)
    yield units.masses()
    for clip, weight in ((1.0, 1.0), (0.3, 1.0), (0.7, 1e-3)):
        options = {"clip": clip, "class_weight": np.full(3, weight)}
        yield units.gradient("logistic", w[:, :1], np.zeros(1), **options)
        yield units.gradient("softmax", w, np.zeros(K), **options)
    margins = units.margins(w[:, :1])
    yield margins.class_totals(np.zeros(1))
    yield margins.labels_by_margin(np.array([-1.0, 0.0, 0.5]))
    yield units.count_shorter(1.0)
    yield rows.class_counts(2)


@pytest.mark.parametrize("constant", [0.0, 0.5])
def test_no_person_exceeds_the_bound_of_one_row(constant):
    longest = {}
    for name, X, y in persons_of():
        rows = person(X, y)
        units = rows.unit(np.ones(WIDTH, np.float32), constant=constant)
        for k, query in enumerate(contributions(units, rows)):
            bound = query.sensitivity("add-remove").value
            moved = norm(query.whole(UNIT)) * UNIT
            assert moved <= bound, name
            longest[k] = max(longest.get(k, 0.0), moved / bound)
    assert min(longest.values()) > 0.6  # class totals of a mixed person
    assert sorted(longest.values())[2] > 0.999  # and of all other queries the bound is attained


def test_no_person_exceeds_the_entrywise_bounds():
    """Peeling: every entry and the norm; a person of many equal rows attains both bounds."""
    domain = person_domain(feature_bound=1.0)
    largest = 0.0
    for name, X, y in persons_of():
        rows = person(X, y, domain)
        longest = 1.7
        units = rows.entries(1.0, longest)
        for loss, k, clip in (("logistic", 1, 1.0), ("softmax", 3, math.sqrt(2.0))):
            options = {"clip": clip, "cutoff": 1.0}
            query = units.gradient(loss, np.zeros((WIDTH, k)), 50.0 * np.arange(k), **options)
            whole = query.whole(UNIT)
            assert np.abs(whole).max() * UNIT <= query.sensitivity("add-remove").value, name
            assert norm(whole) * UNIT <= clip * longest, name
            largest = max(largest, np.abs(whole).max() * UNIT)
    assert largest > 0.999


def test_targets_of_persons():
    domain = person_domain(classes=None, target_bound=2.0)
    for y in (2.0, -2.0, 1e300, np.array([2.0, -2.0, 2.0])):
        rows = person(np.ones((3, 2)), y, domain, labels=None)
        assert norm(rows.count_and_total().whole(UNIT)) * UNIT <= math.sqrt(2.0)
        assert abs(int(rows.target_total().whole(UNIT)[0])) * UNIT <= 1.0
        assert 0 <= int(rows.count_near(0.0, 0.5).whole(UNIT)[0]) * UNIT <= 1.0
        margins = rows.unit(np.ones(2)).margins(np.full((2, 1), 1e30))
        assert abs(int(margins.residual_total(np.zeros(1), 3.0).whole(UNIT)[0])) * UNIT <= 3.0
    shares = person(np.ones((4, 2)), np.array([0.0, 0.1, 2.0, 2.0]), domain, labels=None)
    assert int(shares.count_near(0.0, 0.5).whole(UNIT)[0]) == int(1 / UNIT) // 2


@pytest.mark.parametrize("m", [1, 2, 3, 7, 1000])
def test_short_sums_of_a_person_are_means_and_attain_the_bound(m):
    """A mean that is a little too large would be cut to nothing where it matters, at the bound."""
    alike, half = person(np.ones((m, WIDTH))), np.arange(m) % 2
    mixed = person(np.ones((m, WIDTH)), half)
    for rows, expected in ((alike, [0.0, 1.0]), (mixed, [1.0 - half.mean(), half.mean()])):
        found = rows.class_counts(2).whole(UNIT) * UNIT
        assert np.all(found <= expected)
        np.testing.assert_allclose(found, expected, atol=2.0 * UNIT)
    domain = person_domain(classes=None, target_bound=2.0)
    for sign in (1.0, -1.0):
        rows = person(np.ones((m, WIDTH)), sign * 2.0, domain, labels=None)
        found = rows.count_and_total().whole(UNIT) * UNIT
        assert np.all(np.abs(found) <= 1.0)
        np.testing.assert_allclose(found, [1.0, sign], atol=2.0 * UNIT)
        shorter = rows.unit(np.ones(WIDTH, np.float32)).count_shorter(1e9).whole(UNIT) * UNIT
        assert 1.0 - 2.0 * UNIT <= shorter[0] <= 1.0


def test_rounding_row_by_row_would_break_the_bound():
    """trunc(1.0) + trunc(-0.9) = 1 although |1.0 - 0.9| = 0.1: the sum is made whole once."""
    assert np.trunc(1.0) + np.trunc(-0.9) == 1.0
    # A person of two rows z = (1), slopes r = 1/2 and -9/20: on a grid of 1/2 the rows say 1 and 0.
    domain = person_domain(classes=None, target_bound=1.0)
    rows = person(np.ones((2, 1)), np.array([-0.5, 0.45]), domain, labels=None)
    query = rows.unit(np.ones(1)).gradient(
        "huber", np.zeros((1, 1)), np.zeros(1), clip=0.5, cutoff=0.5
    )
    unit = 0.4999
    row_by_row = sum(
        int(
            Rows.clip(np.ones((1, 1)), np.array([y]), Domain(target_bound=1.0))
            .unit(np.ones(1))
            .gradient("huber", np.zeros((1, 1)), np.zeros(1), clip=0.5, cutoff=0.5)
            .whole(unit)[0, 0]
        )
        for y in (-0.5, 0.45)
    )
    assert row_by_row == 1
    assert int(query.whole(unit)[0, 0]) == 0
    # Many such pairs: row by row a person adds their number, together they add next to nothing.
    many = person(np.ones((200, 1)), np.tile([-0.5, 0.45], 100), domain, labels=None)
    options = {"clip": 0.5, "cutoff": 0.5}
    assert (
        int(
            many.unit(np.ones(1))
            .gradient("huber", np.zeros((1, 1)), np.zeros(1), **options)
            .whole(unit)[0, 0]
        )
        <= 1
    )


def table(seed=0, n=300, persons=60):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 30), density=0.3, rng=rng, format="csr")
    return X, rng.integers(0, 3, n), rng.integers(0, persons, n)


def answers(X, y, groups, n_parts=1):
    domain = Domain(classes=[0, 1, 2], unit="person")
    rows = clip_in_parts(X, y, domain, n_parts, labels=np.arange(3), groups=groups)
    units = rows.unit(np.r_[np.linspace(0.5, 2.0, 29), 0.0], constant=0.1)
    w = np.random.default_rng(1).standard_normal((29, 3))
    queries = [
        rows.class_counts(3), units.masses(), units.count_shorter(1.0),
        units.gradient("softmax", w, np.zeros(3), clip=0.4),
        units.margins(w).class_totals(np.zeros(3)),
    ]  # fmt: skip
    return [q.whole(1e-7) for q in queries]


def test_order_of_rows_names_of_persons_and_parts_do_not_matter():
    X, y, groups = table()
    first = answers(X, y, groups)
    order = np.random.default_rng(2).permutation(len(y))
    names = np.array([f"patient {97 * g % 61}" for g in groups])
    for other in (
        answers(X[order], y[order], groups[order]),
        answers(X, y, names),
        answers(X, y, groups.astype(object)),
        answers(X, y, groups, n_parts=5),
    ):
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_persons_of_one_row_add_what_rows_add():
    X, y, _ = table()
    rows = Rows.clip(X, y, Domain(classes=[0, 1, 2]), labels=np.arange(3))
    units = rows.unit(np.r_[np.linspace(0.5, 2.0, 29), 0.0], constant=0.1)
    w = np.random.default_rng(1).standard_normal((29, 3))
    plain = [
        rows.class_counts(3), units.masses(), units.count_shorter(1.0),
        units.gradient("softmax", w, np.zeros(3), clip=0.4),
        units.margins(w).class_totals(np.zeros(3)),
    ]  # fmt: skip
    for a, b in zip(plain, answers(X, y, np.arange(len(y))[::-1]), strict=True):
        np.testing.assert_array_equal(a.whole(1e-7), b)


def test_sums_are_those_of_a_dense_reference():
    X, y, groups = table(3)
    y = (y > 0).astype(int)
    rows = Rows.clip(X, y, person_domain(), labels=LABELS, groups=groups)
    units = rows.unit(np.ones(30, np.float32))
    dense = X.toarray()
    z = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-300)
    w = np.random.default_rng(4).standard_normal((30, 1))
    r = np.clip(1.0 / (1.0 + np.exp(-z @ w[:, 0])) - y, -0.3, 0.3)
    total = np.zeros(30)
    for g in np.unique(groups):
        v = (z * r[:, None])[groups == g].sum(axis=0)
        total += v * min(1.0, 0.3 / np.linalg.norm(v))
    query = units.gradient("logistic", w, np.zeros(1), clip=0.3)
    np.testing.assert_allclose(query.whole(1e-9)[:-1, 0] * 1e-9, total, atol=1e-4)


@pytest.mark.heavy
@pytest.mark.parametrize("m", [1, 3])
def test_capping_keeps_m_random_rows_of_each(m):
    """Every row of a person of 6 is kept with probability m/6: 4,000 draws, six sigma is 0.045."""
    X = np.arange(8.0)[:, None] + 1.0
    groups = np.array([0, 0, 0, 0, 0, 0, 1, 2])
    rows = Rows.clip(
        X, np.ones(8, int), person_domain(rows_per_unit=m), labels=LABELS, groups=groups
    )
    kept = np.zeros(8)
    rng = make_generator(0)
    for _ in range(4000):
        few = rows.at_most(m, rng)
        assert len(few) == 3
        kept[few._parts[0].values.astype(int) - 1] += 1 / 4000
    np.testing.assert_allclose(kept, [m / 6] * 6 + [1, 1], atol=0.046)


class TestDoor:
    @pytest.mark.parametrize(
        "groups",
        [
            np.zeros(2),
            np.zeros((3, 2)),
            [None, 1, 2],
            [np.nan, 1.0, 2.0],
            ["secret", None, 2],
            "abc",
        ],
        ids=str,
    )
    def test_bad_groups(self, groups):
        with pytest.raises(SchemaError, match="groups") as caught:
            person_domain().part(np.eye(3), np.ones(3, int), labels=LABELS, groups=groups)
        assert "secret" not in str(caught.value)

    def test_one_person_by_two_types_of_number(self):
        """1 and 1.0 are equal, so they are one person."""
        groups = np.array([1, 1.0, np.float32(1), 2], object)
        part = person_domain().part(np.eye(4), np.ones(4, int), labels=LABELS, groups=groups)
        assert part.n_units == 2

    @pytest.mark.parametrize(
        "facts",
        [{"unit": "patient"}, {"rows_per_unit": 3}, {"unit": "person", "rows_per_unit": 0},
         {"unit": "person", "rows_per_unit": 2.5}],
        ids=str,
    )  # fmt: skip
    def test_bad_facts(self, facts):
        with pytest.raises(DomainError, match="Domain"):
            Domain(**facts)
