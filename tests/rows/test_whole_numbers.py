"""Where contributions become whole numbers: bounds hold for every float there is, and are attained.

The rows of issue "floats" among them: subnormals, values that round up, huge ones, many tiny entries.
"""

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse.accounting import NonPrivate, Phase, Plan
from dpsparse.domain import Domain
from dpsparse.domain.clipping import HUGE, TINY
from dpsparse.exceptions import DomainError, ParameterError, SchemaError
from dpsparse.mechanisms import GaussianNoise
from dpsparse.release import Releases
from dpsparse.rows import Rows, kernels, unit
from dpsparse.rows.scores import LinearModel, centred_scores
from parts import clip_in_parts

F32, F64 = np.finfo(np.float32), np.finfo(np.float64)
BOUNDARY = [
    0.0, -0.0, 5e-324, -5e-324, 1e-320, 1e-310, float(F64.tiny), 7.0065e-46, 0.5001 * 2.0**-149,
    2.0**-149, float(F32.tiny), float(F32.tiny) * (1 + 2.0**-24), TINY * (1 - 2.0**-53), TINY,
    1e-20, 0.1, 1.0 - 2.0**-53, 1.0, 1.0 + 2.0**-52, 1.0 + 2.0**-24, 3.0, float(F32.max), HUGE,
    2.0 * HUGE, 1e300, float(F64.max), -1.0, -float(F64.max),
]  # fmt: skip
WIDTH = 9
LABELS = np.array([0, 1])


def boundary_rows(first_pair=0, every=1):
    """More than 200 rows: every value alone, rows full of one value, and every pair, or one pair of `every`."""
    pairs = list(itertools.combinations(BOUNDARY[:22], 2))[first_pair::every]
    rows = [np.r_[v, np.zeros(WIDTH - 1)] for v in BOUNDARY]
    rows += [np.r_[a, b, np.zeros(WIDTH - 2)] for a, b in pairs]
    rows += [np.full(WIDTH, v) for v in BOUNDARY]
    rows += [np.full(WIDTH, v) * (-1.0) ** np.arange(WIDTH) for v in BOUNDARY]
    return np.array(rows)


DOMAINS = {
    "unbounded": Domain(classes=[0, 1]),
    "entries": Domain(feature_bound=1.0, classes=[0, 1]),
    "norm": Domain(row_norm=1.0, classes=[0, 1]),
    "tiny": Domain(feature_bound=1e-29, row_norm=2e-29, classes=[0, 1]),
    "huge": Domain(feature_bound=1e29, row_norm=2e29, classes=[0, 1]),
}
SCALINGS = {
    "ones": np.ones(WIDTH, np.float32),
    "unequal": np.geomspace(1e-3, 1e3, WIDTH).astype(np.float32),
    "dropped": np.where(np.arange(WIDTH) % 3, 0.0, 7.0).astype(np.float32),
}


def norm(whole):
    """Exact L2 norm of whole numbers."""
    return math.sqrt(sum(int(v) ** 2 for v in np.ravel(whole)))


CELLS = list(itertools.product(DOMAINS, SCALINGS, [0.0, 0.5]))


@pytest.mark.parametrize(
    ("domain", "scaling", "constant", "first_pair"),
    [(*cell, number % 10) for number, cell in enumerate(CELLS)],
)
def test_no_boundary_row_exceeds_its_bound(domain, scaling, constant, first_pair):
    """Masses, gradients of one and three outputs, weighted or not: at most the stated sensitivity.

    A combination tries one pair of values in ten, beginning at another one, so that together they try all pairs.
    """
    bounds_hold(boundary_rows(first_pair, every=10), domain, scaling, constant)


@pytest.mark.heavy
@pytest.mark.parametrize(("domain", "scaling", "constant"), CELLS)
def test_no_pair_of_boundary_values_exceeds_its_bound(domain, scaling, constant):
    bounds_hold(boundary_rows(), domain, scaling, constant)


def bounds_hold(tables, domain, scaling, constant):
    domain, scaling = DOMAINS[domain], SCALINGS[scaling]
    longest = 0.0
    unit = 1e-6
    kept = np.count_nonzero(scaling)
    w = np.linspace(-1.0, 1.0, kept * 3).reshape(kept, 3) * 1e3
    for x in tables:
        rows = Rows.clip(sp.csr_array(x[None, :]), np.array([1]), domain, labels=LABELS)
        units = rows.unit(scaling, constant=constant)
        queries = [units.masses()]
        for clip, weight in ((1.0, 1.0), (0.3, 1.0), (0.7, 1e-3), (1.0, 1e29)):
            options = {"clip": clip, "class_weight": np.full(3, weight)}
            queries.append(units.gradient("logistic", w[:, :1], np.zeros(1), **options))
            queries.append(units.gradient("softmax", w, np.zeros(3), **options))
        for query in queries:
            bound = query.sensitivity("add-remove").value
            moved = norm(query.whole(unit)) * unit
            assert moved <= bound
            longest = max(longest, moved / bound)
    assert longest > 0.999  # and it is attained


@pytest.mark.parametrize("domain", [d for d in DOMAINS if DOMAINS[d].feature_bound])
def test_no_boundary_row_exceeds_its_entrywise_bound(domain):
    domain = DOMAINS[domain]
    bound, longest = domain.feature_bound, domain.row_norm or domain.feature_bound * 3.0
    largest, unit = 0.0, 1e-6
    for x in boundary_rows():
        rows = Rows.clip(sp.csr_array(x[None, :]), np.array([0]), domain, labels=LABELS)
        units = rows.entries(bound, longest / bound)
        for loss, k, clip in (("logistic", 1, 1.0), ("softmax", 3, math.sqrt(2.0))):
            query = units.gradient(
                loss,
                np.zeros((WIDTH, k)),
                50.0 * np.arange(k),
                clip=clip,
                cutoff=1.0,
            )
            whole = query.whole(unit)
            assert np.abs(whole).max() * unit <= query.sensitivity("add-remove").value
            assert norm(whole) * unit <= clip * longest / bound
            largest = max(largest, np.abs(whole).max() * unit)
    assert largest > 0.999


@pytest.mark.parametrize("longest", [0.5, 1.0])
def test_a_row_longer_than_was_declared_counts_as_empty(longest):
    """Nothing is longer, by what is done to rows before; the kernel does not rely on it."""
    rows = Rows.clip(np.array([[0.6, 0.8]]), [1], Domain(classes=[0, 1]), labels=LABELS)
    units = rows.entries(1.0, longest)
    whole = units.gradient("logistic", np.zeros((2, 1)), np.zeros(1), clip=0.5).whole(1e-6)
    assert norm(whole) * 1e-6 == pytest.approx(0.0 if longest < 1.0 else 0.5, rel=1e-5)


def test_targets_at_the_boundary():
    domain = Domain(target_bound=2.0)
    for y in (v for v in BOUNDARY):
        rows = Rows.clip(sp.csr_array(np.ones((1, 2))), np.array([y]), domain)
        query = rows.count_and_total()
        assert norm(query.whole(1e-6)) * 1e-6 <= math.sqrt(2.0)
        for clip in (1e-20, 1.0, 1e20):
            g = rows.unit(np.ones(2)).gradient(
                "huber", np.full((2, 1), 1e25), np.zeros(1), clip=clip, cutoff=clip
            )
            assert norm(g.whole(clip * 1e-6)) * 1e-6 <= 1.0
        residual = (
            rows.unit(np.ones(2)).margins(np.full((2, 1), 1e30)).residual_total(np.zeros(1), 3.0)
        )
        assert abs(int(residual.whole(1e-6)[0])) * 1e-6 <= 3.0


@pytest.mark.parametrize("size", [2**16, 2**18])
def test_a_long_short_vector_keeps_its_bound_although_float64_loses_its_small_squares(size):
    """A square of 2^100 hides any number of squares below 2^46. With a margin of 2^-40, proven for 2^12 numbers, a
    row of 2^16 classes could be longer than its bound; no query has such rows."""
    unit, bound = 2.0**-50, 1.0
    first = math.isqrt((2**40 - 1) << 60)  # squared just below (1 - 2^-40)/unit^2
    asked = np.full((1, size), 2**23 - 1, np.int64)
    for large in (first, math.isqrt((2**32 - 2) << 68)):
        asked[0, 0] = large
        values, out = (asked + 0.5) * unit / kernels.SAFE, np.zeros(size, np.int64)
        kernels.short_sum(values, unit, bound, True, out)
        assert sum(int(v) ** 2 for v in out) <= 2**100
    assert out[0] > 0  # the last one is short enough
    assert sum(int(v) ** 2 for v in np.r_[first, asked[0, 1:]]) > 2**100


def test_a_negative_number_of_a_nonnegative_vector_counts_as_nothing():
    """The factor sqrt 2 under replace-one rests on the sign: (-1, 0) and (1, 0) are two apart."""
    for values in ([-1.0, 0.0], [0.6, -0.8], [-0.0, 1.0], [math.nan, 0.5], [math.inf, 0.0]):
        for positive in (True, False):
            out = np.zeros(2, np.int64)
            kernels.short_sum(np.array([values]), 2.0**-20, 1.0, positive, out)
            kept = math.isfinite(sum(values)) and (min(values) >= 0.0 or not positive)
            assert bool(out.any()) == kept


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_slopes_that_float64_cannot_hold_keep_the_bound_of_their_row(loss):
    """A slope of zero times an infinite weight is no number, and the others are infinite: clipped one by one they
    are sqrt 2 too long. No plan has such numbers; the kernel does not rely on it."""
    k = 3 if loss == "softmax" else 1
    for target, offset in ((0, [200.0, 0.0, 0.0]), (1, [200.0, 0.0, 0.0]), (1, [0.0, 0.0, 0.0])):
        rows = Rows.clip(np.ones((1, 2)), [target], Domain(classes=[0, 1]), labels=LABELS)
        for weight in (math.inf, 1e308):
            query = rows.unit(np.ones(2, np.float32)).gradient(
                loss, np.zeros((2, k)), np.array(offset[:k]), clip=1.0,
                class_weight=np.full(3, weight),
            )  # fmt: skip
            assert norm(query.whole(1e-6)) * 1e-6 <= 1.0


def test_one_slope_of_several_keeps_to_the_bound_of_an_entry():
    """Weighted slopes (-9, 4.5, 4.5), clipped to norm sqrt 2, have an entry of 1.15; an entrywise bound cuts it
    to the cutoff."""
    rows = Rows.clip(np.ones((1, 2)), [0], Domain(classes=[0, 1]), labels=LABELS)
    query = rows.entries(1.0, math.sqrt(2.0)).gradient(
        "softmax", np.zeros((2, 3)), np.array([-90.0, 0.0, 0.0]), clip=math.sqrt(2.0), cutoff=1.0,
        class_weight=np.full(3, 9.0),
    )  # fmt: skip
    assert query.sensitivity("add-remove").value == 1.0
    assert 0.999 < np.abs(query.whole(1e-6)).max() * 1e-6 <= 1.0


def test_more_classes_than_the_bound_is_proven_for_are_refused():
    with pytest.raises(ParameterError, match="classes"):
        Rows.clip(np.ones((1, 1)), [1], Domain(), labels=LABELS).class_counts(2**20 + 1)


def test_weights_that_are_not_numbers_move_nothing_beyond_the_bound():
    """Released weights are finite; were they not, a row would still add no more than it may."""
    rows = Rows.clip(
        sp.csr_array(np.ones((1, 2))), np.array([1]), Domain(classes=[0, 1]), labels=LABELS
    )
    units = rows.unit(np.ones(2))
    for bad in (math.nan, math.inf, -math.inf, 1e308):
        for loss, k in (("logistic", 1), ("softmax", 3)):
            query = units.gradient(loss, np.full((2, k), bad), np.zeros(k), clip=1.0)
            assert norm(query.whole(1e-6)) * 1e-6 <= 1.0
        totals = units.margins(np.full((2, 1), bad)).class_totals(np.zeros(1))
        assert norm(totals.whole(1e-6)) * 1e-6 <= 1.0


@pytest.mark.parametrize("n_parts", [2, 7, 16])
@pytest.mark.parametrize("classes", [2, 4])
def test_any_cut_into_parts_gives_the_same_sums(n_parts, classes):
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 30), density=0.3, rng=rng, format="csr")
    y = rng.integers(0, classes, 200)
    labels = np.arange(classes)
    domain = Domain(classes=list(range(classes)))
    k = 1 if classes == 2 else classes
    w = rng.standard_normal((30, k))
    answers = []
    for parts in (1, n_parts):
        rows = clip_in_parts(X, y, domain, parts, labels=labels)
        units = rows.unit(np.linspace(0.5, 2.0, 30), constant=0.1)
        loss = "logistic" if k == 1 else "softmax"
        queries = [
            rows.class_counts(classes), units.masses(), units.count_shorter(1.0),
            units.gradient(loss, w, np.zeros(k), clip=0.4), units.margins(w).class_totals(np.zeros(k)),
        ]  # fmt: skip
        answers.append([q.whole(1e-7) for q in queries])
    for a, b in zip(*answers, strict=True):
        np.testing.assert_array_equal(a, b)


def test_sums_are_those_of_a_dense_reference():
    """Rows, masses, lengths and gradients against NumPy, to the grid."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 12)) * (rng.random((60, 12)) < 0.5)
    y = rng.integers(0, 2, 60)
    scaling = np.linspace(0.5, 2.0, 12).astype(np.float32)
    scaling[4] = 0.0
    rows = Rows.clip(sp.csr_array(X), y, Domain(classes=[0, 1]), labels=LABELS)
    units = rows.unit(scaling, constant=0.3, shortest=0.2)
    kept = np.flatnonzero(scaling)
    scaled = np.column_stack([(X * scaling)[:, kept], np.full(60, 0.3)])
    z = scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 0.2)
    unit = 1e-9
    np.testing.assert_allclose(
        units.masses().whole(unit) * unit, np.abs(z[:, :-1]).sum(0), atol=1e-4
    )
    w, last = rng.standard_normal((len(kept), 1)), np.array([0.4])
    r = 1.0 / (1.0 + np.exp(-(z @ np.r_[w[:, 0], last] + 0.1))) - y
    r = np.clip(r, -0.3, 0.3)
    query = units.gradient("logistic", w, np.array([0.1]), clip=0.3, constant_weight=last)
    np.testing.assert_allclose(query.whole(unit)[:, 0] * unit, z.T @ r, atol=1e-4)
    margins = (X * scaling)[:, kept] @ w
    totals = units.margins(w).class_totals(np.zeros(1)).whole(unit) * unit
    p = 1.0 / (1.0 + np.exp(-margins[:, 0]))
    np.testing.assert_allclose(totals, [np.sum(1 - p), np.sum(p)], atol=1e-4)


class TestDoor:
    """What `Domain.part` lets in."""

    def test_out_of_range_indices_are_refused(self):
        for bad in (-1, 5, 2**31 - 1):
            X = sp.csr_array((3, 5))
            X.indptr, X.indices, X.data = np.array([0, 1, 1, 1]), np.array([bad]), np.array([1.0])
            with pytest.raises(SchemaError, match="malformed"):
                Domain().part(X)

    def test_falling_row_pointers_are_refused(self):
        X = sp.csr_array(np.eye(3))
        X.indptr = np.array([0, 2, 1, 3])
        with pytest.raises(SchemaError, match="malformed"):
            Domain().part(X)

    def test_a_stale_flag_does_not_hide_duplicates(self):
        """Two entries of one cell add up before they are clipped, whatever the flags say."""
        X = sp.csr_array((np.array([0.7, 0.7]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
        X.has_canonical_format = True
        part = Domain(row_norm=1.0).part(X)
        assert np.linalg.norm(part.values.astype(float)) <= 1.0
        assert len(part.values) == 1

    def test_float32_input_is_shared_where_nothing_changes(self):
        X = sp.random_array((50, 20), density=0.3, rng=np.random.default_rng(0), format="csr")
        X = X.astype(np.float32)
        assert np.shares_memory(Domain().part(X).values, X.data)
        assert not np.shares_memory(Domain(feature_bound=0.5).part(X).values, X.data)

    @pytest.mark.parametrize("odd", [5e-324, 1e-310, 1e-31, 1e300, -1e300, 1.0 + 2**-52])
    def test_float64_input_is_clipped_and_cast(self, odd):
        X = sp.random_array((50, 20), density=0.3, rng=np.random.default_rng(0), format="csr")
        X.data[7] = odd
        values = Domain(feature_bound=1.0).part(X).values
        assert values.dtype == np.float32
        assert values[7] == (0.0 if abs(odd) < 1 else np.sign(odd))

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_what_is_no_finite_number_is_refused(self, bad, kind):
        X = sp.random_array((50, 20), density=0.3, rng=np.random.default_rng(0), format="csr")
        X = X.astype(kind)
        X.data[7] = bad
        for domain in (Domain(), Domain(feature_bound=1.0), Domain(row_norm=1.0)):
            with pytest.raises(SchemaError, match="NaN or infinity"):
                domain.part(X)

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_unit_rows_of_a_locked_table(self, kind):
        """The arrays of a memory map cannot be written; a kernel that wants to would fail after the fit is paid."""
        X = sp.random_array((50, 20), density=0.3, rng=np.random.default_rng(0), format="csr")
        X = X.astype(kind)
        free = Rows([Domain().part(X.copy())], Domain()).unit(np.ones(20, np.float32))._parts[0]
        for array in (X.data, X.indices, X.indptr):
            array.flags.writeable = False
        locked = Rows([Domain().part(X)], Domain()).unit(np.ones(20, np.float32))._parts[0]
        np.testing.assert_array_equal(locked.columns, free.columns)
        np.testing.assert_array_equal(locked.z, free.z)

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    @pytest.mark.parametrize("over", [1.0, 1.0 + 2.0**-23, 1.001, 1.02, 3.0])
    def test_no_row_is_longer_than_its_norm_whatever_kind_of_float_it_comes_in(self, kind, over):
        """float32 that satisfies its domain is shared, so the look that decides it must be as strict as the cast."""
        X = np.array([[0.6, 0.8], [-0.28, 0.96], [1.0, 0.0], [2.0**-60, 1.0]]) * over
        for norm_ in (1.0, 0.3, 7.0):
            part = Domain(row_norm=norm_).part(sp.csr_array((X * norm_).astype(kind)))
            for i in range(len(part)):
                row = part.values[part.indptr[i] : part.indptr[i + 1]]
                length = sum(Fraction(float(v)) ** 2 for v in row) / Fraction(norm_) ** 2
                assert Fraction(999, 1000) < length <= 1 + Fraction(2) ** -50

    def test_values_are_stored_towards_zero(self):
        for bound in (0.1, 1e-29, 1e29):
            X = sp.csr_array(np.array([[bound, -bound, bound / 3]]))
            part = Domain(feature_bound=bound).part(X)
            assert np.all(np.abs(part.values.astype(float)) <= [bound, bound, bound / 3])

    @pytest.mark.parametrize("name", ["feature_bound", "row_norm", "target_bound"])
    @pytest.mark.parametrize("value", [1e-310, 1e40, 5e-324, 1e300])
    def test_bounds_that_cannot_be_worked_with_are_refused(self, name, value):
        with pytest.raises(DomainError, match="another unit"):
            Domain(**{name: value})


def test_a_second_answer_is_free_of_the_noise_of_the_first():
    """Noise is added in place: a second release on the same grid must not begin with that of the first."""
    rows = Rows.clip(np.eye(3), np.zeros(3, int), Domain(classes=[0, 1]), labels=np.array([0, 1]))
    query = rows.class_counts(2).magnitudes(2)
    exact = query.whole(2.0**-20).copy()
    noisy = GaussianNoise(query, 2.0**8, 2.0**-20)
    noisy.draw(noisy.question(), np.random.default_rng(0))
    assert np.array_equal(query.whole(2.0**-20), exact)


@pytest.mark.parametrize(
    "unit", [1.0, 1.0 / 3.0, 2.0**-28 * 0.7, 0.1, np.nextafter(2.0**-30, 1.0), 5.0 * 2.0**-61]
)
def test_one_row_is_at_most_one_unit_of_a_count(unit):
    """1/unit may be rounded up."""
    rows = Rows.clip(np.ones((1, 1)), [1], Domain(classes=[0, 1]), labels=np.array([0, 1]))
    query = rows.unit(np.ones(1, np.float32)).count_shorter(2.0)
    assert 0 < Fraction(int(query.whole(unit)[0])) * Fraction(unit) <= 1
    if unit == 1.0:
        return
    scores = centred_scores(rows, [LinearModel(np.ones((1, 1)), np.zeros(1))])
    assert 0 < Fraction(int(scores.whole(unit)[0])) * Fraction(unit) <= Fraction(1, 2)


def test_one_row_is_not_less_than_one_unit_on_the_grids_of_choices():
    """Right labels are drawn on a grid of a half: a safety factor there would leave zeros, and every choice would be
    uniform."""
    rows = Rows.clip(np.ones((3, 1)), [1, 1, 0], Domain(classes=[0, 1]), labels=np.array([0, 1]))
    models = [LinearModel(np.full((1, 1), sign), np.zeros(1)) for sign in (1.0, -1.0)]
    assert centred_scores(rows, models).whole(0.5).tolist() == [1, -1]


def test_sums_without_noise_are_refused_where_they_could_wrap_around():
    class Many:
        domain = Domain(classes=[0, 1])

        def __len__(self):
            return 2**31

    noiseless = Plan(
        "test", (Phase("fit", NonPrivate()),), math.inf, 0.5, "add-remove", proven=False
    )
    with pytest.raises(ParameterError, match="31 rows"):
        Releases(noiseless, np.random.default_rng(0)).capped(Many())


# ---- common columns stand together ----------------------------------------------------------------


def answers(units, k, order=slice(None)):
    """Whole numbers and margins of every query that looks at columns; weights in the order of the columns."""
    w = np.linspace(-2.0, 3.0, units.width * k).reshape(units.width, k)[order]
    options = {"clip": 0.7, "cutoff": 0.7, "constant_weight": np.linspace(0.1, 0.3, k)}
    loss = "logistic" if k == 1 else "softmax"
    queries = [units.masses(), units.total(), units.squares()]
    queries += [units.gradient(loss, w, np.zeros(k), **options)]
    found = [query.whole(1e-6) for query in queries]
    margins = units.margins(w, np.full(k, 0.2)).class_totals(np.zeros(k)).whole(1e-9)
    assert [len(np.shape(a)) and a.shape for a in found] == [q.shape for q in queries]
    return [*found, margins]


def in_order(found, order):
    """Answers with columns in another order; margins have no columns."""
    place = np.argsort(order)
    masses, total, squared, gradient, margins = found
    gradient = np.concatenate([gradient[:-1][place], gradient[-1:]])
    return [masses[place], total[place], squared[place], gradient, margins]


@pytest.mark.parametrize("n_parts", [1, 3])
@pytest.mark.parametrize("outputs", [1, 3])
def test_common_columns_first_change_no_answer(monkeypatch, outputs, n_parts):
    rng = np.random.default_rng(3)
    X = sp.random_array((400, 60), density=0.3, rng=rng, format="csr")
    X = sp.vstack([X, sp.csr_array(np.pad(boundary_rows(), ((0, 0), (0, 51))))]).tocsr()
    y = rng.integers(0, 2, X.shape[0])
    scaling = np.where(rng.random(60) < 0.3, 0.0, rng.lognormal(size=60)).astype(np.float32)
    rows = clip_in_parts(X, y, Domain(classes=[0, 1]), n_parts, labels=LABELS)
    plain = rows.unit(scaling, constant=0.4)
    assert np.array_equal(plain.kept, np.flatnonzero(scaling))
    small = partial(unit._commonest_first, many=20, common=7, known=15)
    monkeypatch.setattr(unit, "_commonest_first", small)
    close = rows.unit(scaling, constant=0.4)
    scales = scaling[close.kept]
    assert np.array_equal(scales[:7], np.sort(scaling[scaling > 0.0])[:7])
    assert scales[7:15].max() < scales[15:].min()
    assert np.all(np.diff(close.kept[7:15]) > 0)
    assert np.all(np.diff(close.kept[15:]) > 0)
    order = np.searchsorted(plain.kept, close.kept)
    found = in_order(answers(close, outputs, order), order)
    for a, b in zip(answers(plain, outputs), found, strict=True):
        assert np.array_equal(a, b)


def test_columns_of_equal_scales_stay_where_they_are():
    ordered = partial(unit._commonest_first, many=2, common=3, known=5)
    kept = np.array([1, 4, 5, 7, 8, 9], np.int32)
    scaling = np.zeros(10, np.float32)
    scaling[kept] = 0.7
    assert np.array_equal(ordered(kept, scaling), kept)
    scaling[kept] = [0.7, 0.2, 0.2, 0.7, 0.1, 0.1]
    assert ordered(kept, scaling).tolist() == [8, 9, 4, 5, 1, 7]


@pytest.mark.parametrize("x", boundary_rows()[::7], ids=lambda x: "")
def test_a_row_in_common_columns_keeps_its_bound(monkeypatch, x):
    small = partial(unit._commonest_first, many=2, common=2, known=4)
    monkeypatch.setattr(unit, "_commonest_first", small)
    scaling = np.where(np.arange(WIDTH) % 4 == 3, 0.0, SCALINGS["unequal"][::-1]).astype(np.float32)
    rows = Rows.clip(sp.csr_array(x[None, :]), np.array([1]), DOMAINS["unbounded"], labels=LABELS)
    units = rows.unit(scaling, constant=0.5)
    assert not np.all(np.diff(units.kept) > 0)
    w = np.linspace(-1e3, 1e3, units.width)[:, None]
    for query in (units.masses(), units.gradient("logistic", w, np.zeros(1), clip=0.3)):
        assert norm(query.whole(1e-6)) <= query.sensitivity("add-remove").value / 1e-6
