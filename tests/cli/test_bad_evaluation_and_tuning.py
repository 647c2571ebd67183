"""What is wrong with the options of `evaluate`, `tune` and `check` is told in one line, before anything is spent.

Broken files go through the same commands in tests/fuzz. What only one row could cause is not refused: see the end.
"""

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from dpsparse import Domain, DPGradientClassifier, DPGradientRegressor, Ledger, dp_evaluate
from dpsparse.cli import main
from dpsparse.exceptions import DPSparseError
from dpsparse.models import files as models

MARK = "zq7-SECRET"
N = 60
FILES = {
    "good.csv": "age,visits,label\n"
    + "".join(f"0.{i},{i % 3},{'no' if i % 2 else 'yes'}\n" for i in range(N)),
    "people.csv": "person,age,visits,label\n"
    + "".join(f"{MARK}{i // 3},0.5,{i % 3},{'no' if i % 2 else 'yes'}\n" for i in range(N)),
    "gap.csv": "person,age,visits,label\n"
    + "".join(f"{MARK if i else ''},0.5,1,no\n" for i in range(N)),
    "twice.csv": "age,age,label\n0.5,1,no\n",
    "same.yaml": "target: label\nperson: label\nclasses: [no, yes]\n",
}
EVALUATE = "evaluate model.json good.csv --target label --epsilon 0.5 --ledger rows.db"
TUNE = (
    "tune good.csv --candidates n_nonzero=[1,2] --target label --classes no,yes --row-norm 1 --param n_iter=2 "
    "-o out.json --ledger rows.db"
)
INIT = "check good.csv -o f.yaml --classes no,yes"


def changed(line, *pairs):
    for old, new in pairs:
        assert old in line
        line = line.replace(old, new)
    return line


CASES = [
    *((2, f"{EVALUATE} {more}") for more in (
        "--metric aucc", "--metric r2", "--metric ''", "--metric accuracy --metric rmse", "--delta 1", "--delta nan",
        "--delta -1e-6", "--adjacency swap", "--random-state x", "--random-state -1", "--person label",
    )),
    *((2, changed(EVALUATE, ("0.5", epsilon))) for epsilon in ("nan", "-1", "0", "x")),
    (2, changed(EVALUATE, ("model.json", "numbers.json")) + " --metric auc"),
    (4, changed(EVALUATE, ("0.5", "inf"))),
    (4, changed(EVALUATE, ("0.5", "5"))),
    (4, changed(EVALUATE, ("rows.db", "persons.db"))),
    (4, changed(EVALUATE, ("good.csv", "people.csv")) + " --person person"),
    (4, changed(EVALUATE, ("rows.db", "replace.db")) + " --adjacency add-remove"),
    (5, changed(EVALUATE, ("rows.db", "absent.db"))),
    (5, changed(EVALUATE, ("rows.db", "good.csv"))),
    (3, changed(EVALUATE, ("rows.db", "persons.db")) + " --person nobody"),
    (3, changed(EVALUATE, ("good.csv", "gap.csv"), ("rows.db", "persons.db")) + " --person person"),
    (3, changed(EVALUATE, ("--target label", ""))),
    (3, changed(EVALUATE, ("--target label", "--target lable"))),
    (3, changed(EVALUATE, ("--target label", "--target age"))),
    (3, changed(EVALUATE, ("good.csv", "absent.csv"))),
    (3, f"{EVALUATE} --format parquet"),
    (6, changed(EVALUATE, ("model.json", "absent.json"))),
    (6, changed(EVALUATE, ("model.json", "good.csv"))),
    (6, f"{EVALUATE} -o model.json"),
    (6, f"{EVALUATE} -o nowhere/report.html"),
    *((2, changed(TUNE, ("n_nonzero=[1,2]", given))) for given in (
        "n_nonzero", "n_nonzero=", "n_nonzero=3", "n_nonzero=[]", "threshold=[NaN]", 'n_nonzero=["x",true]',
        "n_nonzero=[[1,2]]", "epsilon=[1.0]", "n_nonzero=[2020-01-01]", "nonsense=[1]", "=[1]",
        "n_nonzero=[1,2] --candidates n_nonzero=[3]",
    )),
    *((2, f"{TUNE} {more}") for more in (
        "--design path", "--epsilon inf", "--epsilon 1e-9", "--epsilon nan", "--delta 1",
        "--classes no", "--person label", "--method nonsense",
    )),
    (2, changed(TUNE, ("-o out.json", ""))),
    (2, f"{TUNE} --plan"),
    (3, f"{TUNE} --classes a,b"),
    (3, f"{TUNE} --person nobody"),
    (3, changed(TUNE, ("good.csv", "people.csv"))),
    (3, changed(TUNE, ("good.csv", "gap.csv"), ("rows.db", "persons.db")) + " --person person"),
    (3, changed(TUNE, ("good.csv", "twice.csv"))),
    (4, changed(TUNE, ("rows.db", "persons.db"))),
    (4, changed(TUNE, ("good.csv", "people.csv")) + " --person person"),
    (4, f"{TUNE} --epsilon 5"),
    (2, "fit good.csv --target label --person label --classes no,yes --prepare private -o o.json --ledger persons.db"),
    (2, "fit good.csv --domain same.yaml --prepare private -o out.json --ledger persons.db"),
    (2, "check good.csv --domain same.yaml"),
    (2, "check good.csv --domain good.csv"),
    (3, f"{INIT} --target lable"),
    (2, f"{INIT} --target label --target-range 5..1"),
    (2, f"{INIT} --target label --target-range nan..1"),
    (2, changed(INIT, (",yes", "")) + " --target label"),
    (2, f"{INIT} --target label --person label"),
    (3, changed(INIT, ("good.csv", "twice.csv")) + " --target label"),
    (3, changed(INIT, ("good.csv", "absent.csv")) + " --target label"),
    (6, changed(INIT, ("f.yaml", "good.csv")) + " --target label"),
]  # fmt: skip
BOOKS = {
    "rows.db": {},
    "persons.db": {"unit": "person"},
    "replace.db": {"adjacency": "replace-one"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad")
    for name, text in FILES.items():
        (path / name).write_text(text)
    for name, terms in BOOKS.items():
        Ledger(path / name, epsilon=3.0, delta=1e-6, **terms)
    X, y = np.full((N, 2), 0.5), np.arange(N) % 2
    facts = {"row_norm": 1.0, "n_samples": N}
    model = DPGradientClassifier(Domain(classes=["no", "yes"], **facts), n_iter=1)
    names = ["age", "visits"]
    models.save(model.fit(X, np.array(["no", "yes"])[y]), path / "model.json", feature_names=names)
    model = DPGradientRegressor(Domain(target_bound=2.0, **facts), n_iter=1).fit(X, y)
    models.save(model, path / "numbers.json", feature_names=names)
    return path


@pytest.mark.parametrize(("code", "line"), CASES, ids=[line[:110] for _, line in CASES])
def test_one_line_no_cell_nothing_spent(folder, capsys, monkeypatch, code, line):
    monkeypatch.chdir(folder)
    before = sorted(p.name for p in Path().iterdir())
    monkeypatch.setattr(sys, "argv", ["dpsparse", *shlex.split(line)])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    assert stop.value.code == code, err
    assert out == ""
    assert "Traceback" not in err
    assert "unexpected" not in err
    assert err.count("\n") == 1
    assert "SECRET" not in err
    assert str(N) not in err
    assert sorted(p.name for p in Path().iterdir()) == before
    assert all(Ledger(book).history() == [] for book in BOOKS)


# ---- what one row could cause is not refused -----------------------------------------------------


class Foreign:
    """A classifier of somebody else, which says what it is told to say."""

    classes_ = np.array([0, 1])

    def __init__(self, chances):
        self.chances = np.asarray(chances, float)

    def predict_proba(self, X):
        return np.tile(self.chances, (len(X), 1))

    def predict(self, X):
        return np.full(len(X), int(self.chances[1] > 0.5))


ODD = {
    "all scores equal": [0.5, 0.5],
    "no numbers": [np.nan, np.nan],
    "half a number": [np.nan, 0.3],
    "infinite": [np.inf, -np.inf],
    "not chances": [-3.0, 7.0],
    "tiny": [1.0, 1e-310],
    "huge": [1e300, 1e300],
    "nothing": [0.0, 0.0],
}


@pytest.mark.parametrize("labels", [[0, 1], [0], [1]], ids=["both", "no ones", "no zeros"])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("n", [1, 2, 50])
def test_a_report_of_odd_scores_is_wide_and_finite(odd, labels, n):
    y = np.resize(labels, n)
    report = dp_evaluate(Foreign(ODD[odd]), np.zeros((n, 1)), y, epsilon=1.0)
    for name, estimate in report.estimates.items():
        assert estimate.low <= estimate.value <= estimate.high, name
        assert np.isfinite([estimate.low, estimate.high]).all(), name


@pytest.mark.parametrize(
    ("X", "y", "more"),
    [
        (np.zeros((0, 1)), np.zeros(0), {}),
        (np.zeros((5, 1)), np.zeros(4), {}),
        (np.zeros((5, 1)), np.zeros(5), {"groups": np.arange(4)}),
        (np.zeros((5, 1)), np.zeros(5), {"groups": [None, *range(4)]}),
        (np.zeros((5, 1)), np.zeros(5), {"groups": [np.nan, *range(4)]}),
        (np.zeros((5, 1)), np.zeros(5), {"groups": np.zeros((5, 2))}),
        (np.zeros((5, 1)), np.full(5, np.nan), {}),
        (np.zeros((5, 1)), np.full(5, MARK), {}),
        (np.zeros((5, 1)), np.zeros(5), {"metrics": []}),
        (np.zeros((5, 1)), np.zeros(5), {"metrics": "accuracy"}),
        (np.zeros((5, 1)), np.zeros(5), {"metrics": [MARK[:3]]}),
        (np.zeros((5, 1)), np.zeros(5), {"level": 1.0}),
    ],
)  # fmt: skip
def test_what_the_table_as_a_whole_has_wrong_costs_nothing(X, y, more):
    unit = "person" if "groups" in more else "row"
    ledger = Ledger(epsilon=3.0, delta=1e-6, unit=unit)
    with pytest.raises(DPSparseError) as caught:
        dp_evaluate(Foreign([0.4, 0.6]), X, y, epsilon=1.0, ledger=ledger, **more)
    assert "\n" not in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert ledger.history() == []
