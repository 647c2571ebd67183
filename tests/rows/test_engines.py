"""The same bits wherever rows are: in memory in any cut, streamed from files, of any format."""

import dataclasses
import math
import os
import stat
import tempfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import dpsparse
from dpsparse import Domain, DPGradientClassifier, DPGradientRegressor, Ledger, PrivateCount, Rows
from dpsparse.accounting.guarantee import SECURE
from dpsparse.exceptions import DomainError, ParameterError, SchemaError
from dpsparse.rows import sources
from dpsparse.rows.parts import InMemory
from dpsparse.rows.sources import Source, read_size
from dpsparse.rows.spool import Stored

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Tables of tests are smaller than the smallest part that pays."""
    monkeypatch.setattr(
        sources,
        "bytes_of_a_part",
        lambda memory: min(max(memory // 24, 2**12), sources.LARGEST_PART),
    )


def streamed_in_small_parts(X, y):
    source = Rows.from_csr(X, y, memory="1MB")
    source.memory = 10**4 * 24  # parts of 10 KB
    return source


class Cut(Source):
    """A table in memory, its rows shuffled nowhere but cut at random places."""

    def __init__(self, X, y, n_parts, seed=0):
        self.X, self.y, self.n_features = X, y, X.shape[1]
        cuts = np.sort(np.random.default_rng(seed).integers(0, X.shape[0], n_parts - 1))
        self.edges = [0, *cuts.tolist(), X.shape[0]]

    def clipped(self, domain, labels, groups=None, weights=None):
        pairs = zip(self.edges[:-1], self.edges[1:], strict=True)
        parts = [domain.part(self.X[a:b], self.y[a:b], labels=labels) for a, b in pairs]
        return Rows(parts, domain)


class LedgerOfSeededFits(Ledger):
    """Books a seeded fit as the same fit with secure noise: its result can be compared bit for bit."""

    def reserve(self, plan):
        return super().reserve(dataclasses.replace(plan, proven=True, randomness=SECURE))


class Scattered(InMemory):
    """Parts that may not be brought together."""

    __slots__ = ()
    fit_in_memory = False


class Apart(Cut):
    """The same in parts that no fit may hold together."""

    def clipped(self, domain, labels, groups=None, weights=None):
        rows = super().clipped(domain, labels, groups)
        return Rows(Scattered(rows._parts), domain)


def table(kind, shape, seed=0):
    rng = np.random.default_rng(seed)
    n, d = (400, 900) if shape == "wide" else (900, 25)
    X = sp.random_array((n, d), density=0.05 if shape == "wide" else 0.4, rng=rng, format="csr")
    margin = X @ rng.normal(size=d)
    if kind == "regression":
        return X, np.clip(margin, -3, 3)
    ranks = np.argsort(np.argsort(margin + rng.normal(size=n)))
    return X, ranks * int(kind) // n


def model(kind, adjacency="add-remove", **options):
    options = {"random_state": 7, "adjacency": adjacency, "epsilon": 2.0} | options
    if kind == "regression":
        return DPGradientRegressor(Domain(target_bound=3.0), **options)
    return DPGradientClassifier(Domain(classes=list(range(int(kind)))), **options)


def published(fitted):
    noise = getattr(fitted, "coef_noise_", np.zeros(0))
    return [np.asarray(v) for v in (fitted.coef_, fitted.intercept_, noise, fitted.n_iter_)]


def assert_same(first, second):
    for a, b in zip(published(first), published(second), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("shape", ["wide", "narrow"])
@pytest.mark.parametrize("kind", ["2", "5", "11", "regression"])
def test_any_cut_and_a_stream_give_the_bits_of_one_table(kind, shape, adjacency):
    X, y = table(kind, shape)
    whole = model(kind, adjacency).fit(X, y)
    for n_parts in (1, 2, 7, 16):
        assert_same(whole, model(kind, adjacency).fit(Cut(X, y, n_parts, seed=n_parts)))
    streamed = streamed_in_small_parts(X, y)
    assert_same(whole, model(kind, adjacency).fit(streamed))
    assert len(streamed._known[0][1]._parts.collect(len)) >= 4


@pytest.mark.parametrize(
    "options", [{"epsilon": math.inf}, {"n_nonzero": PrivateCount(1, 40, 0.2)}]
)
@pytest.mark.parametrize("kind", ["2", "5", "regression"])
def test_without_noise_and_with_a_private_count_too(kind, options):
    X, y = table(kind, "wide")
    whole = model(kind, **options).fit(X, y)
    for source in (Cut(X, y, 7), Rows.from_csr(X, y)):
        assert_same(whole, model(kind, **options).fit(source))


OTHERS = {
    "lasso": (dpsparse.DPLassoClassifier, {"radius": 5.0, "n_iter": 60}),
    "screened": (dpsparse.DPScreenedLassoClassifier, {"radius": 5.0, "n_iter": 60}),
    "threshold": (dpsparse.DPHardThresholdClassifier, {"n_nonzero": 10}),
    "two-stage": (dpsparse.DPTwoStageClassifier, {"n_nonzero": 10}),
    "transfer": (dpsparse.DPTransferClassifier, {"n_nonzero": 10}),
    "admm": (dpsparse.DPADMMClassifier, {"n_nonzero": 10}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_family_takes_parts_and_streams(name):
    X, y = table("2", "narrow")
    kind, options = OTHERS[name]
    domain = Domain(classes=[0, 1], n_samples=900, row_norm=2.0)

    def new():
        return kind(domain, random_state=3, epsilon=4.0, **options)

    whole = new().fit(X, y)
    for source in (Cut(X, y, 5), Rows.from_csr(X, y)):
        assert_same(whole, new().fit(source))


def looking():
    """Centre, scales and directions are released, and rows turned by them, part by part."""
    domain = Domain(target_bound=3.0, n_samples=900)
    new = dpsparse.DPRidgeRegressor(domain, random_state=3, epsilon=2.0)
    assert "axes" in [phase.name for phase in new.plan(25).phases]
    return new


def test_rows_are_turned_part_by_part():
    X, y = table("regression", "narrow")
    whole = looking().fit(X, y)
    for source in (Cut(X, y, 5), streamed_in_small_parts(X, y)):
        assert_same(whole, looking().fit(source))


@pytest.mark.parametrize("epsilon", [4.0, math.inf])
def test_columns_that_are_found_are_the_same_in_every_engine(epsilon):
    X, y = table("regression", "narrow")
    domain = Domain(target_bound=3.0, n_samples=900, feature_bound=1.0)

    def new():
        return dpsparse.DPTwoStageRegressor(domain, random_state=3, epsilon=epsilon, n_nonzero=10)

    whole = new().fit(X, y)
    assert math.isinf(epsilon) or "entry" in [phase.name for phase in whole.plan_.phases]
    for source in (Cut(X, y, 5), Rows.from_csr(X, y)):
        assert_same(whole, new().fit(source))


# ---- files ---------------------------------------------------------------------------------------


def write_svmlight(path, X, y):
    lines = []
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        cells = zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True)
        lines.append(" ".join([str(y[i]), *(f"{j + 1}:{v!r}" for j, v in cells)]))
    path.write_text("\n".join(lines) + "\n")


def test_files_of_every_format_give_the_bits_of_the_table(tmp_path):
    X, y = table("2", "narrow")
    y = y.astype(int)
    whole = model("2").fit(X, y)
    halves = [(X[:500], y[:500]), (X[500:], y[500:])]
    names = [f"f{j}" for j in range(X.shape[1])]
    paths = {"svm": [], "csv": [], "parquet": []}
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for i, (part, labels) in enumerate(halves):
        for kind in paths:
            paths[kind].append(tmp_path / f"{kind}{i}")
        write_svmlight(paths["svm"][i], part, labels)
        dense = part.toarray()
        lines = [",".join([*names, "y"])]
        lines += [
            ",".join(map(repr, [*r, int(k)])) for r, k in zip(dense.tolist(), labels, strict=True)
        ]
        paths["csv"][i].write_text("\n".join(lines) + "\n")
        columns = {name: dense[:, j] for j, name in enumerate(names)} | {"y": labels}
        parquet.write_table(pa.table(columns), paths["parquet"][i])
    sources = [
        Rows.from_svmlight(paths["svm"], n_features=X.shape[1], memory="1MB"),
        Rows.from_csv(paths["csv"], target="y"),
        Rows.from_parquet(paths["parquet"], target="y"),
    ]
    for source in sources:
        fitted = model("2").fit(source)
        assert_same(whole, fitted)
        assert fitted.n_features_in_ == X.shape[1]
    assert list(model("2").fit(sources[1]).feature_names_in_) == names


def test_memory_mapped_csr(tmp_path):
    X, y = table("2", "wide")
    arrays = []
    for name, array in (("data", X.data), ("indices", X.indices), ("indptr", X.indptr)):
        np.save(tmp_path / name, array)
        arrays.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    mapped = sp.csr_array(tuple(arrays), shape=X.shape)
    assert_same(model("2").fit(X, y), model("2").fit(Rows.from_csr(mapped, y)))


def test_spooled_rows_have_no_name_and_leave_nothing_behind(tmp_path, monkeypatch):
    X, y = table("2", "wide")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = Rows.from_csr(X, y)
    model("2").fit(source)
    assert os.listdir(tmp_path) == []  # while the rows are still spooled
    rows = source.clipped(model("2").domain, np.array([0, 1]))
    opened = os.fstat(rows._parts._file.fileno())
    assert opened.st_nlink == 0
    assert stat.S_IMODE(opened.st_mode) == 0o600


def test_rows_are_written_three_times_and_no_more(monkeypatch):
    """As they come, centred, and scaled for the gradients; of views that only tell lengths the lengths alone are
    stored."""
    X, y = table("2", "narrow")
    written, append = [], Stored.append
    monkeypatch.setattr(
        Stored,
        "append",
        lambda self, part: written.append(type(part).__name__) or append(self, part),
    )
    model("2").fit(Rows.from_csr(X, y))
    assert sorted(written) == ["MarginPart", "Numbers", "Part", "Part", "UnitPart"]


def test_a_second_fit_reads_no_file_again(tmp_path):
    X, y = table("2", "narrow")
    path = tmp_path / "rows.svm"
    write_svmlight(path, X, y.astype(int))
    source = Rows.from_svmlight(path, n_features=X.shape[1])
    first = model("2").fit(source)
    path.unlink()
    assert_same(first, model("2").fit(source))


@pytest.mark.parametrize("most", [None, 3])
@pytest.mark.parametrize("kind", ["2", "5", "regression"])
def test_rows_of_a_person_meet_wherever_they_stand_in_the_files(kind, most):
    """The bits of the table in memory; one person has more rows than a part, and a cap draws among them."""
    X, y = table(kind, "narrow")
    groups = np.random.default_rng(1).integers(0, 300, len(y))
    groups[::3] = 77
    fitted = []
    for rows in ((X, y), (streamed_in_small_parts(X, y),)):
        made = model(kind, n_iter=10)
        facts = {"unit": "person", "rows_per_unit": most}
        made.domain = dataclasses.replace(made.domain, **facts)
        fitted.append(made.fit(*rows, groups=groups))
    assert_same(*fitted)


def weighted(kind, unit="row", **options):
    """A model whose rows have weights, and weights inside and outside of the domain."""
    made = model(kind, n_iter=10, **options)
    made.domain = dataclasses.replace(made.domain, weight_bound=3.0, unit=unit)
    rng = np.random.default_rng(5)
    return made, rng.choice([-1.0, 0.0, 1e-40, 1.0, np.nextafter(3.0, 0.0), 3.0, 1e300], size=900)


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("kind", ["2", "5", "regression"])
def test_weights_of_rows_are_clipped_in_every_part(kind, unit):
    X, y = table(kind, "narrow")
    made, weights = weighted(kind, unit)
    groups = None if unit == "row" else np.random.default_rng(1).integers(0, 300, len(y))
    whole = clone(made).fit(X, y, weights, groups=groups)
    source = streamed_in_small_parts(X, y)
    assert_same(whole, clone(made).fit(source, sample_weight=weights, groups=groups))
    listed = [*weights.tolist()[:-1], str(weights[-1])]  # cells of their own, as in memory
    assert_same(whole, clone(made).fit(source, sample_weight=listed, groups=groups))
    plain = clone(made).fit(source, groups=groups)
    assert_same(plain, clone(made).fit(X, y, groups=groups))
    assert not np.array_equal(plain.coef_, whole.coef_)
    assert_same(whole, clone(made).fit(source, sample_weight=weights, groups=groups))


def test_weights_beside_ridge_and_files_and_batches(tmp_path):
    pl = pytest.importorskip("polars")
    X, y = table("regression", "narrow")
    _, weights = weighted("regression")
    turned = Domain(target_bound=3.0, n_samples=900, weight_bound=3.0)
    for domain in (turned, dataclasses.replace(turned, feature_bound=1.0)):
        new = dpsparse.DPRidgeRegressor(domain, random_state=3)
        whole = clone(new).fit(X, y, weights)
        frame = pl.DataFrame(X.toarray(), [f"f{j}" for j in range(X.shape[1])]).with_columns(y=y)
        frame.write_csv(tmp_path / "rows.csv")
        for rows in (
            Rows.from_csv(tmp_path / "rows.csv", target="y"),
            Rows.from_batches(frame.lazy(), target="y"),
        ):
            assert_same(whole, clone(new).fit(rows, sample_weight=pl.Series(weights)))


def test_weights_that_do_not_fit_are_refused_and_nothing_is_spent(tmp_path):
    X, y = table("2", "narrow")
    ledger = dpsparse.Ledger(tmp_path / "ledger.db", epsilon=1000.0, delta=1e-3)
    made, weights = weighted("2", ledger=ledger)
    source = streamed_in_small_parts(X, y)
    hole = np.r_[weights[:-1], np.nan]
    for wrong in (weights[:-1], np.r_[weights, 1.0], weights[:, None] * [1, 1], hole, ["918"] * 5):
        with pytest.raises(SchemaError, match="sample_weight") as caught:
            clone(made).fit(source, sample_weight=wrong)
        assert "918" not in str(caught.value)
    with pytest.raises(DomainError, match="weight_bound"):
        model("2").fit(source, sample_weight=weights)
    with pytest.raises(ParameterError, match="takes no sample_weight"):
        OTHERS["lasso"][0](made.domain).fit(source, sample_weight=weights)
    assert ledger.history() == []


def test_refusals_come_before_anything_is_spent(tmp_path):
    X, y = table("2", "narrow")
    ledger = dpsparse.Ledger(tmp_path / "ledger.db", epsilon=1000.0, delta=1e-3)
    last = y.copy()
    last[-1] = 9
    holes = X.copy()
    holes.data[-1] = np.nan
    for source in (Rows.from_csr(X, last), Rows.from_csr(holes, y)):
        with pytest.raises(SchemaError) as caught:
            model("2", ledger=ledger).fit(source)
        assert "9" not in str(caught.value)
    assert ledger.spent() == 0.0
    assert ledger.history() == []
    with pytest.raises(DomainError):
        DPGradientClassifier(Domain(classes="observed")).fit(Rows.from_csr(X, y))
    with pytest.raises(ParameterError, match="own targets"):
        model("2").fit(Rows.from_csr(X, y), y)
    with pytest.raises(SchemaError, match="one person per row"):
        DPGradientClassifier(Domain(classes=[0, 1], unit="person"), ledger=ledger).fit(
            Rows.from_csr(X, y), groups=np.arange(899)
        )
    assert ledger.history() == []
    for wrong in ("much", "12", -1, "1KB"):
        with pytest.raises(ParameterError, match="memory"):
            Rows.from_csr(X, y, memory=wrong)
    with pytest.raises(SchemaError, match="no file"):
        Rows.from_svmlight(tmp_path / "nowhere.svm", n_features=3)
    assert read_size("2GB") == 2 * 10**9
    assert read_size("1.5 mb") == 1_500_000


@pytest.mark.parametrize("n_rows", [0, 3])
def test_a_last_part_without_entries_is_read_again(n_rows):
    """A fit must not fail where the rows of the last part happen to be empty: an error would tell."""
    domain = Domain(classes=[0, 1], unit="person")
    part = domain.part(sp.csr_array((n_rows, 2)), np.zeros(n_rows), labels=np.array([0, 1]))
    store = Stored()
    store.append(dataclasses.replace(part, starts=np.arange(n_rows + 1)))
    units = Rows(store, domain, 2).unit(np.ones(2))
    for _ in range(3):  # the view is stored in its second pass
        assert np.array_equal(units.masses().whole(1.0), [0, 0])
