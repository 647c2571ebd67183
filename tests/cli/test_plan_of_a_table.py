"""`dpsparse check TABLE`: the price of the fit that the same words would pay for, from the header alone."""

import json

import pytest

from dpsparse.ledger import Ledger

MARK = "zq7SECRET"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    rows = "\n".join(f"{i},{i % 7},{MARK},{'no' if i % 2 else 'yes'}" for i in range(40))
    path.write_text(f"id,age,town,label\n{rows}\n")
    return path


WORDS = ["--target", "label", "--classes", "no,yes", "--json"]


def test_the_price_is_that_of_the_fit(command, table, tmp_path):
    words = [table, *WORDS, "--prepare", "private", "--drop", "id"]
    code, printed = command("check", *words)
    assert code == 0
    priced = json.loads(printed)["guarantee"]
    code, printed = command("fit", *words, "-o", tmp_path / "m.json")
    assert code == 0
    paid = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])["guarantee"]
    for fact in ("epsilon", "delta", "adjacency", "unit"):
        assert priced[fact] == paid[fact]
    assert [e["name"] for e in priced["events"]] == [e["name"] for e in paid["events"]]


def test_only_the_header_is_read(command, tmp_path):
    path = tmp_path / "broken.csv"
    path.write_bytes(b"age,town,label\n" + MARK.encode() + b",,,,,\n")
    code, printed = command("check", path, *WORDS, "--prepare", "private")
    assert code == 0
    assert MARK not in printed
    code, printed = command("check", path, *WORDS)
    assert code == 0
    assert MARK not in printed


def price(printed):
    record = json.loads(printed)
    return record["guarantee"], record["parameters"]


def test_columns_are_counted_without_target_person_and_drop(command, table):
    told = {}
    for n in (1, 2, 3):
        told[n] = price(command("check", "--n-features", n, "--classes", "no,yes", "--json")[1])
    assert price(command("check", table, *WORDS)[1]) == told[3]
    assert price(command("check", table, *WORDS, "--drop", "id")[1]) == told[2]
    code, printed = command("check", table, *WORDS, "--person", "id", "--drop", "town")
    assert code == 0
    assert json.loads(printed)["guarantee"]["unit"].startswith("one person")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([*WORDS], 2, "State --n-features"),
        (["people.csv", "--classes", "no,yes"], 3, "--target"),
        (["people.csv", "--target", "labels", "--classes", "no,yes"], 3, "no column 'labels'"),
        (["--n-features", 3, *WORDS, "--prepare", "private"], 2, "name the table"),
        (["rows.svm", "--classes", "0,1"], 2, "State --n-features"),
        (["absent.csv", *WORDS], 3, "There is no file absent.csv"),
    ],
)
def test_what_is_missing_is_named(command, table, words, code, said):
    found, printed = command("check", *words)
    assert found == code
    assert said in printed
    assert MARK not in printed


def test_the_ledger_is_asked_and_not_charged(command, table):
    Ledger("b.db", epsilon=0.5, delta=1e-6)
    words = [table, *WORDS[:4], "--prepare", "private", "--ledger", "b.db"]
    assert "would REFUSE it" in command("check", *words)[1]
    assert "would allow it" in command("check", *words, "--epsilon", 0.3)[1]
    assert Ledger("b.db").history() == []


# ---- sentences of the first hour ----------------------------------------------------------------


def test_ranges_have_one_style(command, table):
    code, printed = command("check", table, "--target", "age", "--target-range", "-1..5", "--json")
    assert code == 0
    for wrong in ("0", "0-5", "a..b", ".."):
        words = ["check", table, "--target", "age", "--target-range", wrong, "5"]
        code, printed = command(*words)
        assert code == 2
        assert "--target-range" in printed
        assert "0..10" in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fit people.csv --target label -o m.json", "--target-range 0..10"),
        ("fit people.csv --target label --classes no,yes --epsilon 0 --prepare private -o m.json", "--epsilon inf"),
        ("fit people.csv --target town --target-range 0..1 --prepare private -o m.json", "--classes 0,1"),
        ("fit people.csv --target label --classes no,yes --ledger b.db -o m.json", "dpsparse budget create PATH"),
        ("fit people.csv --target label --classes no,yes -o people.json", "--overwrite"),
        ("audit people.json", "docs/how_we_test.md"),
        ("fit nohead.csv --target label --classes no,yes --prepare private -o m.json", "first line"),
    ],
)  # fmt: skip
def test_messages_name_the_remedy(command, table, words, said):
    (table.parent / "people.json").write_text("{}")
    (table.parent / "nohead.csv").write_text(f"{MARK},1,{MARK}\n{MARK},2,no\n")
    code, printed = command(*words.split())
    assert code != 0
    assert said in printed
    assert MARK not in printed
    assert printed.count("\n") == 1


def test_all_columns_are_told_for_what_they_were_taken(command, tmp_path):
    names = [f"code{i}" for i in range(30)]
    rows = "\n".join(",".join(str((i + j) % 5) for j in range(30)) + ",no" for i in range(90))
    (tmp_path / "wide.csv").write_text(",".join(names) + ",label\n" + rows + "\n")
    words = ["fit", "wide.csv", *WORDS[:4], "--prepare", "private", "--epsilon", 50, "-o", "m.json"]
    code, printed = command(*words)
    assert code == 0
    assert all(name in printed for name in names)


def test_evaluation_on_the_rows_of_the_fit_is_warned_of(command, table):
    words = ["--target", "label", "--epsilon", 5]
    assert (
        command("fit", table, *words, *WORDS[2:4], "--prepare", "private", "-o", "m.json")[0] == 0
    )
    code, printed = command("evaluate", "m.json", table, *words)
    assert code == 0
    assert "fitted to a file named people.csv" in printed
    table.rename("others.csv")
    code, printed = command("evaluate", "m.json", "others.csv", *words)
    assert code == 0
    assert "fitted to a file" not in printed


def test_errors_of_numbers_have_a_bound_on_the_command_line(command, table):
    words = ["--target", "age", "--epsilon", 50]
    facts = ["--target-range", "0..6", "--bounds", "id=0..40", "--drop", "town,label"]
    assert command("fit", table, *words, *facts, "-o", "m.json")[0] == 0
    code, printed = command("evaluate", "m.json", table, *words, "--error-bound", 2)
    assert code == 0
    assert "Errors beyond 2 count as that" in printed
    assert command("evaluate", "m.json", table, *words, "--error-bound", 0)[0] == 2
