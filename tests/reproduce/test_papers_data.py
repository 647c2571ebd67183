"""Loaders on tiny files of every format, the registry, the generators."""

import lzma

import numpy as np
import pytest
import scipy.sparse as sp

import papers_data as datasets
from dpsparse.exceptions import ParameterError, SchemaError
from papers_data import loaders, synthetic
from papers_data.newsgroups import bigram_features


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DPSPARSE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DPSPARSE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def write(path, text):
    with lzma.open(path, "wt") if path.suffix == ".xz" else path.open("w") as file:
        file.write(text)
    return path


# ---- registry and files ---------------------------------------------------------------------------


def test_every_entry_is_complete():
    for name in datasets.names():
        entry = datasets.info(name)
        assert entry.licence
        assert entry.bounds
        assert entry.n_samples > 0
        assert entry.sha256 is None or len(entry.sha256) == 64
        assert entry.sha256 is not None or entry.home, f"{name} can be had nowhere"
        assert entry.task in {"binary", "multiclass", "regression", "text"}


def test_unknown_name_lists_the_known():
    with pytest.raises(ParameterError, match="a9a"):
        datasets.info("a10a")


def test_missing_file_names_the_variable(folder):
    with pytest.raises(SchemaError, match=r"DPSPARSE_DATA.*it comes from http"):
        datasets.load("a9a")
    with pytest.raises(SchemaError, match="DPSPARSE_DATA"):
        datasets.load("covtype")


def test_wrong_checksum_is_refused(folder):
    write(folder / "a9a.svm.xz", "+1 1:1\n")
    with pytest.raises(SchemaError, match="SHA-256"):
        datasets.load("a9a")


def test_wrong_shape_is_refused(folder):
    write(folder / "rcv1_train.binary.svm", "+1 1:0.5 47236:0.25\n-1 3:1\n")
    with pytest.raises(SchemaError, match="not the data set 'rcv1'"):
        datasets.load("rcv1")


@pytest.mark.parametrize("name", ["rcv1", "news20", "url", "webspam", "kdda", "gisette"])
def test_absent_classification_sets_parse(folder, name):
    entry = datasets.info(name)
    path = write(folder / entry.file, f"+1 1:0.5 {entry.n_features}:0.25\n-1 3:1\n")
    X, y = loaders.read_file(entry, path)
    assert X.shape == (2, entry.n_features)
    assert X.nnz == 3
    assert y.tolist() == [1, 0]


def test_e2006_parses(folder):
    entry = datasets.info("e2006")
    X, y = loaders.read_file(entry, write(folder / entry.file, "-3.589 1:0.1 9:0.2\n-4.1 2:1\n"))
    assert X.shape == (2, entry.n_features)
    assert y.tolist() == [-3.589, -4.1]


def test_text_is_sent_elsewhere(folder):
    with pytest.raises(SchemaError, match="load_newsgroups_bigrams"):
        datasets.load("20newsgroups-raw")


# ---- tables ---------------------------------------------------------------------------------------


def test_kddcup99(folder):
    numbers = ["0"] * 38
    row = [numbers[0], "tcp", "http", "SF", *numbers[1:]]
    lines = [
        [*row[:-1], "1.0", "normal."],
        [*row, "smurf."],
        [*row, "nmap."],  # neither normal nor denial of service
        ["7", "udp", "no_such_service", "SF", *numbers[1:], "neptune."],
    ]
    path = write(folder / "k.csv.xz", "\n".join(",".join(line) for line in lines) + "\n")
    X, y = loaders.read_file(datasets.info("kddcup99"), path)
    assert X.shape == (3, 122)
    assert y.tolist() == [1, 0, 0]
    dense = X.toarray()
    assert dense[0, 37] == 1.0
    assert dense[2, 0] == 7.0
    assert dense[:, 38:].sum(axis=1).tolist() == [3, 3, 2]
    scaled = loaders._scale("kddcup99", X)
    assert abs(scaled).max() <= 1.0
    assert scaled[[2], [0]] == pytest.approx(np.log1p(7) / np.log1p(1e9))


def test_covtype(folder):
    row = [3000, 360, 0, 0, 700, 0, 255, 0, 0, 0] + [0] * 44
    text = "h\n" + ",".join(map(str, [*row, 2])) + "\n" + ",".join(map(str, [*row, 5])) + "\n"
    X, y = loaders.read_file(datasets.info("covtype"), write(folder / "c.csv.xz", text))
    assert X.shape == (2, 54)
    assert y.tolist() == [1, 0]
    scaled = loaders._scale("covtype", X).toarray()
    assert abs(scaled).max() <= 1.0
    assert scaled[0, 1] == 1.0


def test_other_tables(folder):
    write(folder / "a.csv.xz", "h\n1,2,3\n4,5,6\n")
    X, y = loaders.read_file(datasets.info("bodyfat"), folder / "a.csv.xz")
    assert (X.toarray().tolist(), y.tolist()) == ([[2, 3], [5, 6]], [1, 4])
    X, y = loaders.read_file(datasets.info("pyrim"), folder / "a.csv.xz")
    assert (X.toarray().tolist(), y.tolist()) == ([[1, 2], [4, 5]], [3, 6])
    write(folder / "b.csv.xz", "h\nh\n81,1,85,1,7,8,100,40\n")
    X, y = loaders.read_file(datasets.info("residential"), folder / "b.csv.xz")
    assert (X.toarray().tolist(), y.tolist()) == ([[7, 8]], [60])
    write(folder / "d.csv.xz", "h\n8,?,?,Lakewood,1,0.5,?,0.2\n")
    X, y = loaders.read_file(datasets.info("communities"), folder / "d.csv.xz")
    assert (X.toarray().tolist(), y.tolist()) == ([[0.5, 0]], [0.2])


def test_parsed_tables_are_remembered(folder, tmp_path, monkeypatch):
    entry = datasets.info("covtype")
    path = write(folder / entry.file.removesuffix(".xz"), "x" * 600_000)
    path = path.rename(folder / entry.file)  # only its size and name are looked at
    calls = []
    X = sp.csr_array(np.eye(2))

    def parse(_):
        calls.append(1)
        return X, np.array([0, 1])

    for _ in range(2):
        found, y = loaders._remembered(entry, path, parse)
        assert (found.toarray() == X.toarray()).all()
        assert y.tolist() == [0, 1]
    assert len(calls) == 1


def test_small_scales():
    splice = loaders._scale("splice", sp.csr_array(np.array([[1.0, 4.0, 2.0]]))).toarray()
    assert splice == pytest.approx(np.array([[-1, 1, -1 / 3]]))
    assert loaders._scale("phishing", sp.csr_array([[0.18257, 0]])).toarray()[
        0, 0
    ] == pytest.approx(1.0, abs=1e-4)
    assert abs(loaders._scale("colon-cancer", sp.csr_array([[-5.0, 1.5]]))).max() == 1.0
    rows = loaders._scale("news20-multiclass", sp.csr_array([[3.0, 4.0], [0, 0]])).toarray()
    assert rows.tolist() == [[0.6, 0.8], [0, 0]]


# ---- reconstruction and generators ----------------------------------------------------------------


def test_newsgroup_bigrams():
    articles = [
        {"group": "sci.space", "text": "Newsgroups: sci.space\nFrom: a\n\nThe Moon, the moon!"},
        {"group": "rec.autos", "text": "Newsgroups: rec.autos\n\nthe car"},
        {"group": "misc.forsale", "text": "Subject: x\n\n"},
    ]
    X, y = bigram_features(articles)
    # the, moon, "the moon", "moon the" | car, "the car"
    assert X.shape == (3, 6)
    assert y.tolist() == [1, 0, 1]
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    assert norms[:2] == pytest.approx(1.0)
    assert X[[0], :].nnz == 4


def test_generators_follow_the_papers():
    X, y, w = datasets.make_screening_regression(0, n_samples=300)
    assert (X.shape, abs(X).max()) == ((300, 600), 1.0)
    assert (np.sum(w == 1), np.sum(w == -1)) == (35, 35)
    assert y == pytest.approx(X @ w)
    X, y, w = datasets.make_transfer_data(0)
    assert (X.shape, np.count_nonzero(w)) == ((800, 1000), 10)
    residual = y - X @ w  # variance 0.1 within 5 standard errors: false alarm below 1e-6
    assert np.var(residual) == pytest.approx(0.1, abs=5 * 0.1 * np.sqrt(2 / 800))
    X, y, w = datasets.make_sparsifier_classification(0)
    assert w[:8].tolist() == [10, 9, 8, 7, 6, 5, 4, 0.5]
    assert abs(X).max(axis=0) == pytest.approx(1.0)
    # correlation of neighbours 0.5; standard error below 0.01 at 10,000 rows, so 5 of them
    assert np.corrcoef(X[:, 10], X[:, 11])[0, 1] == pytest.approx(0.5, abs=0.05)
    assert np.corrcoef(X[:, 10], X[:, 12])[0, 1] == pytest.approx(0.25, abs=0.05)


def test_public_scaling_does_not_look_at_the_sample():
    X, _, _ = datasets.make_sparsifier_classification(0, n_samples=50, scaled_by="bound")
    again, _, _ = datasets.make_sparsifier_classification(0, n_samples=50, scaled_by="sample")
    assert abs(X).max() < 1.0
    assert np.corrcoef(X[:, 0], again[:, 0])[0, 1] == pytest.approx(1.0)
    with pytest.raises(ParameterError):
        datasets.make_sparsifier_classification(0, n_samples=5, scaled_by="luck")


@pytest.mark.parametrize("like", synthetic.STAND_INS)
def test_stand_ins(like):
    X, y = datasets.make_wide_text(0, like, fraction=0.002)
    n, d, *_ = synthetic.STAND_INS[like]
    assert X.shape == (max(int(n * 0.002), 10), max(int(d * 0.002), 100))
    assert np.sqrt(X.multiply(X).sum(axis=1)) == pytest.approx(1.0)
    assert X.min() >= 0
    assert set(np.unique(y)) == {0, 1}


def test_generators_repeat():
    for make in (datasets.make_screening_regression, datasets.make_transfer_data):
        assert (make(3)[0] == make(3)[0]).all()
        assert not (make(3)[0] == make(4)[0]).all()


@pytest.mark.realdata
@pytest.mark.parametrize(
    "name", ["a9a", "w8a", "mushrooms", "phishing", "splice", "colon-cancer", "housing", "bodyfat"]
)
def test_real_files(name):
    if not loaders.data_folder().is_dir():
        pytest.skip("the data folder is not there; set DPSPARSE_DATA")
    X, y = datasets.load(name, scaled=True)
    assert len(y) == datasets.info(name).n_samples
    if datasets.info(name).bounds != "none: values as measured; state bounds of your own":
        assert abs(X).max() <= 1.0
