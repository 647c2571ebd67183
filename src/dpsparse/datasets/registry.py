"""Every data set of the papers: file, checksum, shape, task, licence, public bounds.

Shapes and checksums were counted and taken from the files of the project's data folder; a data set
without a checksum is not there, and its shape is the one its source publishes.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsparse.exceptions import ParameterError

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UNIT = "entries lie in [-1, 1] at the source"
RAW = "none: values as measured; state bounds of your own"


@dataclass(frozen=True)
class Dataset:
    """One data set: what `load` reads and what may be said about it without seeing a row.

    `bounds` says how `load(..., scaled=True)` brings entries into [-1, 1] with public constants.
    `positive` is the label that becomes class 1; None where the loader codes the classes itself.

    Examples
    --------
    >>> from dpsparse.datasets import info
    >>> info("a9a").task, info("a9a").bounds
    ('binary', 'entries lie in [-1, 1] at the source')
    """

    name: str
    file: str
    sha256: str | None
    n_samples: int
    n_features: int
    task: str
    description: str
    licence: str
    bounds: str
    home: str | None = None
    positive: int | None = None
    target_column: int = -1

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.description} ({self.n_samples} x {self.n_features}, {self.task})"
        )


def names() -> list[str]:
    """Names that `load` and `info` know.

    Examples
    --------
    >>> from dpsparse.datasets import names
    >>> "a9a" in names()
    True
    """
    return sorted(_BY_NAME)


def info(name: str) -> Dataset:
    """The registry entry of `name`; an unknown name is an error that lists the known ones.

    Examples
    --------
    >>> from dpsparse.datasets import info
    >>> info("a9a").n_features
    123
    """
    if name not in _BY_NAME:
        raise ParameterError(f"There is no data set {name!r}; known: {', '.join(names())}.")
    return _BY_NAME[name]


_ALL = (
    Dataset(
        "a9a",
        "a9a.svm.xz",
        "c7a2952bcd0877f2c8a6c44b52b1e8086ffff5c4cb1ff9e4d700c97313f2d6a4",
        32_561,
        123,
        "binary",
        "Adult as LIBSVM coded it, training part",
        licence="UCI repository, CC BY 4.0",
        home=LIBSVM + "/binary/a9a",
        bounds=UNIT,
        positive=1,
    ),
    Dataset(
        "a9a.t",
        "a9a.t.svm.xz",
        "062c4d552cafaf641effeb9742e80775d9c5593245da70817ed5c22f3dd9e0bc",
        16_281,
        123,
        "binary",
        "Adult as LIBSVM coded it, test part",
        licence="UCI repository, CC BY 4.0",
        home=LIBSVM + "/binary/a9a.t",
        bounds=UNIT,
        positive=1,
    ),
    Dataset(
        "w8a",
        "w8a.svm.xz",
        "7df9337cb89abb6ce17f2b75892c9c81b4b5206a37e056aa47a63d64f4feb350",
        49_749,
        300,
        "binary",
        "web pages as LIBSVM coded them, training part",
        licence="LIBSVM site, no licence stated",
        home=LIBSVM + "/binary/w8a",
        bounds=UNIT,
        positive=1,
    ),
    Dataset(
        "mushrooms",
        "mushrooms.svm.xz",
        "d523feec16d78524612a174bc68020d336fd6d97b20404aff170a900df87f770",
        8_124,
        112,
        "binary",
        "mushrooms as LIBSVM coded them",
        licence="UCI repository, CC BY 4.0",
        home=LIBSVM + "/binary/mushrooms",
        bounds=UNIT,
        positive=2,
    ),
    Dataset(
        "phishing",
        "phishing.svm.xz",
        "e3bb6ad0f1c57f2f005e432691524dcba1fde22d134e63c597c1cb1d731cb33e",
        11_055,
        68,
        "binary",
        "phishing web sites, one-hot, rows of norm 1",
        licence="UCI repository, CC BY 4.0",
        home=LIBSVM + "/binary/phishing",
        bounds="30 ones a row, each stored as 1/sqrt(30); scaled: times sqrt(30)",
        positive=1,
    ),
    Dataset(
        "splice",
        "splice.svm.xz",
        "490c57669b0eab6f951368a78a6dd3626f04622d44eed02076c5df2cbb3ef8a7",
        1_000,
        60,
        "binary",
        "DNA splice junctions, training part",
        licence="UCI repository, CC BY 4.0",
        home=LIBSVM + "/binary/splice",
        bounds="bases are coded 1 to 4; scaled: (x - 2.5)/1.5",
        positive=1,
    ),
    Dataset(
        "splice.t",
        "splice.t.svm.xz",
        "920d9d5f08c2bcd69a78731400dee63bec3e31e4ccfe4644ccbf0684360a0dc6",
        2_175,
        60,
        "binary",
        "DNA splice junctions, test part",
        licence="UCI repository, CC BY 4.0",
        home=LIBSVM + "/binary/splice.t",
        bounds="bases are coded 1 to 4; scaled: (x - 2.5)/1.5",
        positive=1,
    ),
    Dataset(
        "colon-cancer",
        "colon-cancer.svm.xz",
        "2e3ca8d041b5c8d469e65a71a9f079685faabbbc9096abc8de842257eaf75785",
        62,
        2_000,
        "binary",
        "gene expression of colon tissue, normalised at the source",
        licence="LIBSVM site, no licence stated",
        home=LIBSVM + "/binary/colon-cancer.bz2",
        bounds="normalised values; scaled: clipped to 3 in magnitude, divided by 3",
        positive=1,
    ),
    Dataset(
        "covtype",
        "covtype.csv.xz",
        "346334160ef5e07a2e1d675d83f8472ade54964de8c94095e853a5a50b7662fa",
        581_012,
        54,
        "binary",
        "forest cover type 2 against the rest",
        licence="UCI repository, CC BY 4.0",
        bounds="documented ranges of the ten measurements to [-1, 1]; indicators as they are",
    ),
    Dataset(
        "kddcup99",
        "kddcup99_10_percent.csv.xz",
        "e661b70349d6b4595aebd2b8b38300e7d4d10ce95d6426c4bd52411431250a5b",
        488_736,
        122,
        "binary",
        "KDD Cup 1999, 10 % file: normal (1) against denial of service (0); one-hot protocol, service, flag",
        licence="UCI repository, CC BY 4.0",
        bounds="x/(documented maximum); bytes and counts without one as log1p(x)/log1p(1e9)",
    ),
    Dataset(
        "news20-multiclass",
        "news20_multiclass.svm.xz",
        "7a26a06f631b9eb9967fa46d19953b8e282dd96a7a18364f2771103b0dd7f5ff",
        15_935,
        62_061,
        "multiclass",
        "20 Newsgroups unigram counts, training part",
        licence="LIBSVM site, no licence stated",
        home=LIBSVM + "/multiclass/news20.bz2",
        bounds="word counts; scaled: x/(row norm), a per-row operation",
    ),
    Dataset(
        "20newsgroups-raw",
        "20_newsgroups_raw.jsonl.xz",
        "2d97667e351a36cad18f90b59478a3cb1edb05c28b5da75f05e8ae203bd12ef5",
        19_997,
        0,
        "text",
        "20 Newsgroups articles; read by load_newsgroups_bigrams",
        licence="original authors' posts, no licence stated",
        bounds="none: text",
    ),
    Dataset(
        "abalone",
        "abalone_scale.svm.xz",
        "698e3596d7a7c7d5780c383c0019f34b590d3ce791b180bda4e5936fc6a49e83",
        4_177,
        8,
        "regression",
        "abalone rings, LIBSVM scale",
        licence="UCI repository, CC BY 4.0",
        home=LIBSVM + "/regression/abalone_scale",
        bounds=UNIT,
    ),
    Dataset(
        "housing",
        "housing_scale.svm.xz",
        "272e573a1716804a883930de7e1c780db8100d44b9f3216b4db39cb08673969c",
        506,
        13,
        "regression",
        "Boston house prices, LIBSVM scale",
        licence="StatLib, no licence stated",
        home=LIBSVM + "/regression/housing_scale",
        bounds=UNIT,
    ),
    Dataset(
        "bodyfat",
        "bodyfat.csv.xz",
        "e95f17f7ffe48a11aa3342be9aa31f1418840d9d7fdc926b609e5617e9376049",
        252,
        14,
        "regression",
        "body density from 14 measurements",
        licence="StatLib, no licence stated",
        bounds=RAW,
        target_column=0,
    ),
    Dataset(
        "pyrim",
        "pyrim.csv.xz",
        "e6bebf463e4479b4c03c5dd6eac9fe5e47b213d53e564eb53927a54b680a09fe",
        74,
        27,
        "regression",
        "activity of pyrimidines",
        licence="UCI repository, CC BY 4.0",
        bounds=UNIT,
    ),
    Dataset(
        "triazines",
        "triazines.csv.xz",
        "91bb396e0a1caaf4051c54d11a5b87229b2bd7a39bf4d09c961ebeacd58d64ee",
        186,
        60,
        "regression",
        "activity of triazines",
        licence="UCI repository, CC BY 4.0",
        bounds=UNIT,
    ),
    Dataset(
        "residential",
        "residential_building.csv.xz",
        "83211be2630695d3de5ba7ba74a7aaefabb234cf08d1a23e010e77df828cff06",
        372,
        103,
        "regression",
        "Tehran buildings; target: sales price minus construction cost",
        licence="UCI repository, CC BY 4.0",
        bounds=RAW,
    ),
    Dataset(
        "communities",
        "communities_and_crime.csv.xz",
        "6d2dfbdef7fba896815046c2cb3edf899511b6444475d5fde074e867fa533d55",
        1_994,
        122,
        "regression",
        "communities and crime, five identifiers dropped, missing values 0",
        licence="UCI repository, CC BY 4.0",
        bounds=UNIT,
    ),
    Dataset(
        "blogfeedback",
        "blogfeedback_train.csv.xz",
        "2d0c499505e1913656654463dbad6c72988475b12d551fb5e5cf83157a36d6b3",
        52_397,
        280,
        "regression",
        "comments of a blog post in 24 hours, training file",
        licence="UCI repository, CC BY 4.0",
        bounds=RAW,
    ),
    Dataset(
        "rcv1",
        "rcv1_train.binary.svm",
        None,
        20_242,
        47_236,
        "binary",
        "Reuters RCV1, training part",
        licence="LIBSVM site, no licence stated",
        home=LIBSVM + "/binary/rcv1_train.binary.bz2",
        bounds=UNIT,
        positive=1,
    ),
    Dataset(
        "news20",
        "news20.binary.svm",
        None,
        19_996,
        1_355_191,
        "binary",
        "20 Newsgroups in two halves, words and word pairs",
        licence="LIBSVM site, no licence stated",
        home=LIBSVM + "/binary/news20.binary.bz2",
        bounds=UNIT,
        positive=1,
    ),
    Dataset(
        "url",
        "url_combined.svm",
        None,
        2_396_130,
        3_231_961,
        "binary",
        "malicious URLs",
        licence="LIBSVM site, no licence stated",
        home=LIBSVM + "/binary/url_combined.bz2",
        bounds=RAW,
        positive=1,
    ),
    Dataset(
        "webspam",
        "webspam_wc_normalized_trigram.svm",
        None,
        350_000,
        16_609_143,
        "binary",
        "Webb Spam, trigrams",
        licence="LIBSVM site, no licence stated",
        home=LIBSVM + "/binary/webspam_wc_normalized_trigram.svm.xz",
        bounds=UNIT,
        positive=1,
    ),
    Dataset(
        "kdda",
        "kdda.svm",
        None,
        8_407_752,
        20_216_830,
        "binary",
        "KDD Cup 2010, algebra",
        licence="LIBSVM site, no licence stated",
        home=LIBSVM + "/binary/kdda.bz2",
        bounds=UNIT,
        positive=1,
    ),
    Dataset(
        "gisette",
        "gisette_scale.svm",
        None,
        6_000,
        5_000,
        "binary",
        "digits 4 and 9 with probes, scaled",
        licence="UCI repository, CC BY 4.0",
        home=LIBSVM + "/binary/gisette_scale.bz2",
        bounds=UNIT,
        positive=1,
    ),
    Dataset(
        "e2006",
        "E2006.train.svm",
        None,
        16_087,
        150_360,
        "regression",
        "10-K reports, tf-idf; target: log volatility",
        licence="LIBSVM site, no licence stated",
        home=LIBSVM + "/regression/E2006.train.bz2",
        bounds=UNIT,
    ),
)
_BY_NAME = {dataset.name: dataset for dataset in _ALL}
