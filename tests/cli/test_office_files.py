"""Files as offices save them, on the command line: layouts, gaps, missing targets, index columns, `check`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsparse import Ledger, load

N = 300
RNG = np.random.default_rng(0)
AGE = RNG.integers(18, 90, N)
FRAME = pd.DataFrame(
    {
        "age": AGE,
        "cost": RNG.normal(0, 9_000, N).round(2),
        "ward": RNG.choice(["Süd", "Nord", "none"], N),
        "since": [f"{1 + i % 28}.{1 + i % 12}.{2010 + i % 9} 14:{10 + i % 50}" for i in range(N)],
        "ill": np.where(AGE + RNG.normal(0, 10, N) > 54, "yes", "no"),
    }
)
FIT = ["--target", "ill", "--classes", "no,yes", "--epsilon", "50", "--bounds", "age=0..120", "--numbers", "cost",
       "--dates", "since", "--categories", "ward"]  # fmt: skip


PLAIN = ["--drop", "cost,ward,since", "--feature-bound", "90"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def german(value):
    return f"{value:,}".replace(",", "_").replace(".", ",").replace("_", ".")


def test_a_german_file_predicts_what_a_plain_one_predicts(run):
    FRAME.to_csv("plain.csv", index=False)
    FRAME.assign(cost=[german(v) for v in FRAME.cost]).to_csv(
        "german.csv", index=False, sep=";", encoding="latin-1"
    )
    how = ["--sep", ";", "--decimal", ",", "--encoding", "latin-1"]
    assert run("fit", "german.csv", *FIT, *how, "-o", "m.json")[0] == 0
    code, plain, _ = run("predict", "m.json", "plain.csv", "--proba", "--sep", ",")
    assert code == 0
    assert run("predict", "m.json", "german.csv", *how, "--proba")[1] == plain
    report = ["--target", "ill", "--epsilon", "inf", "--json"]
    exact = json.loads(run("evaluate", "m.json", "plain.csv", *report, "--sep", ",")[1])[
        "estimates"
    ]
    assert (
        json.loads(run("evaluate", "m.json", "german.csv", *report, *how)[1])["estimates"] == exact
    )
    for missing, said in ((how[2:], "--sep ';'"), (how[:4], "--encoding latin-1")):
        code, _, err = run("fit", "german.csv", *FIT, *missing, "-o", "n.json")
        assert code == 3
        assert said in err
        assert run("predict", "m.json", "german.csv", *missing, "--proba")[1] == plain
    code, _, err = run("predict", "m.json", "german.csv", "--sep", ",", *how[4:])
    assert (code, "--sep ';'" in err) == (3, True)


def test_words_for_missing_values_are_kept_in_the_model(run):
    frame = FRAME.assign(cost=np.where(np.arange(N) % 3 == 0, -9, FRAME.cost))
    frame.to_csv("t.csv", index=False)
    assert run("fit", "t.csv", *FIT, "--missing-values", "none,-9", "-o", "m.json")[0] == 0
    model = load("m.json")
    assert model.steps_[0][1].missing_values == ("none", "-9")
    assert "ward = none" not in model.get_feature_names_out()
    rows = model.transform(frame.drop(columns="ill")).toarray()
    names = list(model.get_feature_names_out())
    assert rows[:, names.index("ward is missing")].sum() == (frame.ward == "none").sum()
    if "cost is missing" in names:
        assert rows[:, names.index("cost is missing")].sum() == (frame.cost == -9).sum()
    gaps = frame.assign(
        ward=frame.ward.where(frame.ward != "none"), cost=frame.cost.where(frame.cost != -9)
    )
    assert (model.transform(gaps.drop(columns="ill")).toarray() == rows).all()
    Path("facts.yaml").write_text(
        "target: ill\nclasses: [no, yes]\nmissing_values: [none, -9]\n"
        "columns: {age: drop, cost: number, ward: category, since: date}\n"
    )
    assert run("fit", "t.csv", "--domain", "facts.yaml", "--epsilon", "50", "-o", "n.json")[0] == 0
    assert load("n.json").steps_[0][1].missing_values == ("none", "-9")


@pytest.mark.parametrize("more", [FIT[6:], PLAIN])
def test_rows_without_a_target_are_left_out_and_not_counted(run, more):
    frame = FRAME.assign(ill=FRAME.ill.where(np.arange(N) % 10 != 0))
    frame.to_csv("t.csv", index=False)
    fit = ["fit", "t.csv", *FIT[:6], *more]
    code, _, err = run(*fit, "-o", "m.json")
    assert code == 3
    assert "--drop-missing-target" in err
    code, out, err = run(*fit, "--drop-missing-target", "-o", "m.json")
    assert code == 0
    assert "30" not in out + err
    evaluate = ["evaluate", "m.json", "t.csv", "--target", "ill", "--epsilon", "9"]
    assert run(*evaluate)[0] == 3
    assert run(*evaluate, "--drop-missing-target")[0] == 0
    exchanged = ["--adjacency", "replace-one"]
    code, _, err = run(*fit, "--drop-missing-target", *exchanged, "-o", "n.json")
    assert code == 2
    assert "number of rows is public" in err
    assert run(*evaluate, "--drop-missing-target", *exchanged)[0] == 2


def test_a_file_like_that_of_the_fit_needs_no_option_and_may_repeat_some(run):
    """With --sep alone the decimal comma of the fit was forgotten, and numbers counted as missing."""
    german_file = FRAME.assign(cost=[german(v) for v in FRAME.cost])
    german_file.to_csv("german.csv", index=False, sep=";")
    FRAME.to_csv("plain.csv", index=False)
    assert run("fit", "german.csv", *FIT, "--sep", ";", "--decimal", ",", "-o", "m.json")[0] == 0
    said = [run("predict", "m.json", "german.csv", "--proba", *more)
            for more in ([], ["--sep", ";"], ["--decimal", ","], ["--sep", ";", "--decimal", ","])]  # fmt: skip
    said.append(run("predict", "m.json", "plain.csv", "--proba", "--sep", ","))
    assert said == [said[0]] * 5
    assert said[0][0] == 0


@pytest.mark.parametrize("more", [["--prepare", "private"], PLAIN])
def test_an_index_of_pandas_is_left_out_with_a_line(run, more):
    FRAME.to_csv("t.csv")  # whose first column has no name
    fit = ["fit", "t.csv", *FIT[:6], *more]
    code, _, err = run(*fit, "-o", "m.json")
    assert code == 0
    assert "no name" in err
    FRAME.to_csv("other.csv", index=False)
    assert run("predict", "m.json", "other.csv")[1] == run("predict", "m.json", "t.csv")[1]


def test_a_hash_has_the_width_that_was_typed(run):
    FRAME.to_csv("t.csv", index=False)
    fit = ["fit", "t.csv", *FIT[:4], "--drop", "age,cost,since", "--hash", "ward=16", "-o", "m.json"]  # fmt: skip
    assert run(*fit)[0] == 0
    assert load("m.json").model_.n_features_in_ == 16
    assert run(*fit[:-3], "ward=none", "-o", "n.json")[0] == 2


# ---- check ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["check", "fit"])
def test_a_header_with_a_name_twice_or_without_a_name_is_refused(run, command):
    """`check` found nothing in the first, and a column without a name was shown as nothing."""
    more = ["--prepare", "private", *(["-o", "m.json"] if command == "fit" else [])]
    for last, said in (("age", "same name"), ("", "has no name")):
        FRAME.assign(other=1).rename(columns={"other": last}).to_csv("t.csv", index=False)
        code, _, err = run(command, "t.csv", *FIT[:4], *more)
        assert (code, said in err) == (3, True), err


def test_check_says_what_fit_would_do_and_spends_nothing(run):
    FRAME.assign(caseid=range(N)).to_csv("t.csv")
    ledger = Ledger("book.db", epsilon=60.0, delta=1e-6)
    words = ["t.csv", *FIT, "--hash", "caseid", "--ledger", "book.db"]
    code, out, err = run("check", *words)
    assert (code, err) == (0, "")
    for said in (
        "bounded",
        "age",
        "caseid; leave",
        "no name",
        "ill: one of no, yes",
        "(50, 1e-6)-DP",
        "allow",
    ):
        assert said in out, said
    record = json.loads(run("check", *words, "--json")[1])
    assert record["roles"] == {
        "bounded": ["age"], "number": ["cost"], "category": ["ward"], "date": ["since"], "hash": ["caseid"],
    }  # fmt: skip
    assert ledger.spent() == 0
    code, out, err = run("fit", *words, "-o", "m.json")
    assert code == 0
    assert all(line in err for line in record["notes"])
    with open("t.csv", "a") as file:
        file.write("no,row,is,read\n")
    assert run("check", *words)[0] == 0


@pytest.mark.parametrize("how", [[], ["--encoding", "utf-16"], ["--sep", ";"]])
def test_check_says_the_same_whatever_bytes_rows_hold(run, how):
    """Python decodes thousands of bytes along with the header; one of them in a row must not refuse."""
    encoding, sep = ("utf-16" if "utf-16" in how else "utf-8"), (";" if ";" in how else ",")
    header = sep.join(FRAME.columns).encode(encoding)
    end = "\n".encode(encoding)[2 * (encoding == "utf-16") :]
    bad = [b"\xff\xfe\x00\xd8\x00\xd8", b'"', b"\x80;\x81", b"\r", b"\0"]
    said = []
    for rows in [b"", *bad]:
        Path("t.csv").write_bytes(header + end + rows + end + rows)
        said.append([run("check", "t.csv", *FIT, *how, *more) for more in ([], ["--json"])])
    assert all(code == 0 for code, _, _ in said[0])
    assert all(one == said[0] for one in said)
    Path("t.csv").write_bytes(header + b"\x00\xd8\x00\xd8\xff" + end)
    code, _, err = run("check", "t.csv", *FIT, *how)
    assert (code, "--encoding" in err) == (3, True)


def test_check_forecasts_where_the_number_of_rows_is_declared(run):
    FRAME.to_csv("t.csv", index=False)
    code, out, _ = run("check", "t.csv", *FIT, "--n-samples", "300")
    assert code == 0
    assert "made-up rows" in out


@pytest.mark.parametrize("typed", ["Ill", "ILL"])
def test_capitals_are_guessed(run, typed):
    for index in (False, True):  # with the row numbers of pandas, which have no name
        FRAME.to_csv("t.csv", index=index)
        code, _, err = run("check", "t.csv", "--target", typed, *FIT[2:])
        assert code == 3
        assert "Did you mean 'ill'?" in err


def test_predictions_read_a_file_as_the_fit_did(run):
    """Without --decimal a model took "1,5" for a gap and said nothing."""
    FRAME.to_csv("t.csv", index=False, sep=";", decimal=",", encoding="latin-1")
    how = ["--sep", ";", "--decimal", ",", "--encoding", "latin-1"]
    assert run("fit", "t.csv", *FIT, *how, "-o", "m.json")[0] == 0
    assert run("predict", "m.json", "t.csv", "--proba") == run(
        "predict", "m.json", "t.csv", "--proba", *how
    )
    FRAME.to_csv("plain.csv", index=False)
    plain = run(
        "predict",
        "m.json",
        "plain.csv",
        "--proba",
        "--sep",
        ",",
        "--decimal",
        ".",
        "--encoding",
        "utf-8",
    )
    assert plain == run("predict", "m.json", "t.csv", "--proba")
    assert run("evaluate", "m.json", "t.csv", "--target", "ill", "--epsilon", "3")[0] == 0


def test_semicolons_without_a_decimal_comma_get_a_hint(run):
    FRAME.to_csv("t.csv", index=False, sep=";", decimal=",")
    assert "--decimal" in run("check", "t.csv", *FIT, "--sep", ";")[1]
    assert "--decimal" not in run("check", "t.csv", *FIT, "--sep", ";", "--decimal", ".")[1]


def test_a_look_counts_rows_labels_and_cells_and_is_paid(run):
    FRAME.to_csv("t.csv", index=False)
    ledger = Ledger("book.db", epsilon=60.0, delta=1e-6)
    words = ["check", "t.csv", *FIT, "--ledger", "book.db"]
    code, out, _ = run(*words, "--look", "5")
    assert code == 0
    assert "look      about " in out
    assert "(5, 1e-6)-DP of the raw table" in out
    assert [(entry.method, entry.committed) for entry in ledger.history()] == [("dp_look", True)]
    record = json.loads(run(*words, "--look", "5", "--json")[1])
    assert set(record["look"]["columns"]["age"]) == {"number", "date", "category", "missing"}
    assert run(*words, "--look", "100")[0] == 4
    assert run("check", "t.svm", "--classes", "0,1", "--look", "1", "--n-features", "3")[0] == 2


def test_a_release_that_no_ledger_pays_for_says_that_epsilons_add_up(run):
    FRAME.to_csv("t.csv", index=False)
    assert "adds up" in run("fit", "t.csv", *FIT, "-o", "m.json")[2]
    Ledger("book.db", epsilon=60.0, delta=1e-6)
    assert "adds up" not in run("fit", "t.csv", *FIT, "--ledger", "book.db", "-o", "paid.json")[2]
    assert "adds up" not in run("fit", "t.csv", *FIT, "--epsilon", "inf", "-o", "exact.json")[2]


def test_a_look_at_missing_targets_names_the_option_for_them(run):
    FRAME.to_csv("t.csv", index=False)
    words = [*FIT, "--look", "50"]
    assert "--drop-missing-target" not in run("check", "t.csv", *words)[1]
    FRAME.assign(ill=FRAME.ill.where(FRAME.age > 50)).to_csv("gaps.csv", index=False)
    assert "--drop-missing-target" in run("check", "gaps.csv", *words)[1]


def test_tune_proposes_candidates_and_says_so(run):
    FRAME.to_csv("t.csv", index=False)
    tune = ["tune", "t.csv", *FIT]
    code, out, err = run(*tune, "-o", "m.json")
    assert code == 0
    assert "n_nonzero 10, 30, 100, None; threshold" in err
    assert "chosen: " in out
