"""Names, numbers and files at the edge: nothing steers a terminal, ends in an unexpected error, or is lost."""

import csv
import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from dpsparse import Ledger, evaluation, load
from dpsparse._checks import show_name, show_text
from dpsparse.exceptions import LedgerError

N = 120
FIT = [
    "--target",
    "label",
    "--classes",
    "no,yes",
    "--row-norm",
    "1",
    "--n-samples",
    str(N),
    "--param",
    "n_iter=2",
]
NASTY = "age\x1b[31m\x9b2J\u202e\r"
DEEP = "[" * 100_000 + "]" * 100_000


def write_table(path, names=("age", "visits"), labels=("no", "yes")):
    rng = np.random.default_rng(0)
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow([*names, "label"])
    for i in range(N):
        rows.writerow([*rng.uniform(-0.5, 0.5, len(names)).round(3), labels[i % len(labels)]])
    Path(path).write_text(out.getvalue(), "utf-8", newline="")


def controls(text):
    return [c for c in text if not c.isprintable() and c != "\n"]


# ---- names ---------------------------------------------------------------------------------------


def test_show_name_and_show_text():
    assert show_name("age of house, m\u00b2 \u5e74") == "age of house, m\u00b2 \u5e74"
    assert show_name("a\x1b[31m\nb\u202e\U000e0001") == "a\\u001b[31m\\u000ab\\u202e\\udb40\\udc01"
    assert show_name("a\udcff") == "a\\udcff"  # a byte of a file name that is not UTF-8
    assert show_text("a\x1b\nb") == "a\\u001b\nb"
    assert json.loads(show_text(json.dumps({"a\x9b\u202e": 1}, ensure_ascii=False))) == {
        "a\x9b\u202e": 1
    }


@pytest.mark.parametrize("more", [[], ["--prepare", "private", "--epsilon", "9"]])
def test_column_names_do_not_steer_the_terminal(run, more):
    """Escape sequences of a header were printed as they are."""
    name = NASTY.strip()
    write_table("t.csv", (name, "visits"))
    facts = FIT if not more else FIT[:4]
    said = [
        run("fit", "t.csv", "-o", "m.json", *facts, *more),
        run("inspect", "m.json"),
        run("inspect", "m.json", "--json"),
        run("check", "t.csv", *facts, *more),
        run("predict", "m.json", "t.csv"),
        run("check", "t.csv", *FIT[:4], "-o", "f.yaml"),
        run("check", "t.csv", "--domain", "f.yaml"),
        run("fit", "t.csv", "-o", "n.json", *FIT[:4], "--prepare", "declared"),
        run("fit", "t.csv", "-o", "n.json", *FIT, "--drop", f"{name}x"),
        run("report", "m.json", "-o", "card.html"),
    ]
    for code, out, err in said:
        assert code in (0, 2, 3)
        assert not controls(out + err), (out, err)
    assert [code for code, _, _ in said[:7]] == [0] * 7
    assert json.loads(said[2][1])["top_weights"][0]["feature"]


def test_a_name_with_a_line_break_makes_no_line(run):
    write_table("t.csv", ("age\nbudget: epsilon 0 of 9 spent", "visits"))
    assert run("fit", "t.csv", "-o", "m.json", *FIT)[0] == 0
    assert not [
        line for line in run("inspect", "m.json")[1].splitlines() if line.startswith("budget")
    ]


@pytest.mark.parametrize("name", ["$\\foo{$", "$x^$", "100 $ and $_", "\\", "${", "a\x1b[31m"])
def test_a_report_shows_any_column_name(run, name):
    """matplotlib read $...$ as a formula."""
    write_table("t.csv", (name, "visits"))
    assert run("fit", "t.csv", "-o", "m.json", *FIT)[0] == 0
    code, _, err = run("report", "m.json", "-o", "card.html")
    assert (code, err) == (0, "")


# ---- texts that are deep -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (6, "inspect deep.json"),
        (3, "fit deep.jsonl --target label --classes 0,1 -o n.json"),
        (3, "fit deep.jsonl --target label --classes 0,1 -o n.json --prepare private"),
        (2, "check --n-features 3 --classes 0,1 --param n_iter=DEEP"),
        (2, "check t.csv --domain deep.json"),
        (2, "check t.csv --domain deep.toml"),
        (2, "check t.csv --domain deep.yaml"),
        (2, "tune t.csv --candidates n_nonzero=DEEP --target label --classes no,yes -o n.json"),
        (2, "audit deep.toml"),
        (6, "report m.json --evaluation deep.json -o card.html"),
        (5, "budget show book.db"),
    ],
)
def test_deep_texts_are_refused(run, monkeypatch, code, line):
    write_table("t.csv")
    assert run("fit", "t.csv", "-o", "m.json", *FIT)[0] == 0
    Path("deep.json").write_text(DEEP)
    Path("deep.jsonl").write_text(f'{{"a": {DEEP}, "label": 1}}\n')
    Path("deep.yaml").write_text(f"classes: {DEEP[:2000]}{DEEP[-2000:]}\n")  # PyYAML is slow
    Path("deep.toml").write_text(f"classes = {DEEP}\n")
    Ledger("book.db", epsilon=1.0, delta=1e-6)
    monkeypatch.setenv("DPSPARSE_POLICY", "deep.toml")
    if "book.db" in line:
        line = "fit t.csv --target label --classes no,yes --row-norm 1 --ledger book.db -o n.json"
    assert run(*line.replace("DEEP", DEEP).split())[0] == code


# ---- files out -----------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [[], ["--overwrite"]])
def test_a_dangling_link_is_not_followed(run, tmp_path, more):
    """The file appeared wherever the link pointed to."""
    write_table("t.csv")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("m.json", "p.csv", "card.html", "f.yaml"):
        Path(name).symlink_to(elsewhere / name)
    assert run("fit", "t.csv", "-o", "good.json", *FIT)[0] == 0
    for line in (
        ["fit", "t.csv", "-o", "m.json", *FIT],
        ["predict", "good.json", "t.csv", "-o", "p.csv"],
        ["report", "good.json", "-o", "card.html"],
        ["check", "t.csv", *FIT, "-o", "f.yaml"],
    ):
        code, _, err = run(*line, *more)
        assert code == 6
        assert "link" in err
    assert not list(elsewhere.iterdir())


def undone(cell):
    """What docs/files.md tells a reader of predictions to do."""
    return cell.removeprefix("'")


@pytest.mark.parametrize("proba", [[], ["--proba"]])
def test_labels_are_no_formulas(run, proba):
    labels = ["=cmd|x", "+a", "-b", "@c", "'quoted", "plain", '=a,"b"']
    write_table("t.csv", labels=labels)
    Path("facts.json").write_text(json.dumps({"classes": labels, "n_samples": N}))
    fit = [
        "fit",
        "t.csv",
        "--target",
        "label",
        "--domain",
        "facts.json",
        "--row-norm",
        "1",
        "-o",
        "m.json",
    ]
    assert run(*fit)[0] == 0
    assert run("predict", "m.json", "t.csv", "-o", "p.csv", *proba)[0] == 0
    rows = list(csv.reader(io.StringIO(Path("p.csv").read_text())))
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if cell and cell[0] in "=+@\t\r"]
    assert not [cell for cell in cells if cell.startswith("-") and not cell[1:2].isdigit()]
    predicted = load("m.json").predict(
        np.genfromtxt("t.csv", delimiter=",", skip_header=1, usecols=(0, 1))
    )
    assert [undone(row[0]) for row in rows[1:]] == predicted.tolist()


def test_numbers_are_written_as_numbers(run):
    write_table("t.csv", labels=("-1", "1"))
    fit = ["fit", "t.csv", "--target", "label", "--classes=-1,1", "--row-norm", "1", "-o", "m.json"]
    assert run(*fit)[0] == 0
    assert set(run("predict", "m.json", "t.csv")[1].split()) <= {
        "prediction",
        "-1",
        "1",
        "-1.0",
        "1.0",
    }


# ---- what is paid for is not lost ----------------------------------------------------------------


@pytest.fixture
def paid(run):
    write_table("t.csv")
    Ledger("book.db", epsilon=9.0, delta=1e-6)
    assert run("fit", "t.csv", "-o", "m.json", *FIT)[0] == 0
    return [
        "evaluate",
        "m.json",
        "t.csv",
        "--target",
        "label",
        "--epsilon",
        "1",
        "--ledger",
        "book.db",
    ]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_report_is_shown_where_the_balance_cannot_be_read(run, paid, monkeypatch, more):
    def broken(self):
        raise LedgerError("The ledger book.db cannot be used: the disk is full or failing.")

    monkeypatch.setattr(Ledger, "remaining", broken)
    code, out, err = run(*paid, *more, "-o", "report.json")
    assert code == 5
    assert "accuracy" in out
    assert "accuracy" in Path("report.json").read_text()
    assert "paid" in err
    if more:
        assert json.loads(out)["estimates"]


def test_a_fit_and_a_search_are_shown_where_the_balance_cannot_be_read(run, paid, monkeypatch):

    def broken(self):
        raise LedgerError("The ledger book.db cannot be used: the disk is full or failing.")

    monkeypatch.setattr(Ledger, "remaining", broken)
    for command in (["fit", "t.csv"], ["tune", "t.csv", "--candidates", "n_nonzero=[1,2]"]):
        code, out, err = run(*command, "-o", "n.json", *FIT, "--ledger", "book.db", "--overwrite")
        assert code == 5
        assert "proven" in out
        assert "paid" in err
        assert load("n.json").privacy_.proven


def test_a_report_is_printed_where_its_file_fails_and_kept_where_stdout_fails(
    run, paid, monkeypatch
):
    from dpsparse.cli import output

    def full(*_, **__):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        code, out, err = run(*paid, "-o", "report.json")
    assert code == 6
    assert "accuracy" in out
    assert "No space left" in err
    with monkeypatch.context() as patch:
        patch.setattr(
            output.click, "echo", lambda text, **more: None if more.get("err") else full()
        )
        code, _, err = run(*paid, "-o", "report.json")
        assert code == 6
        assert "accuracy" in Path("report.json").read_text()
        code, _, err = run(*paid)
        assert code == 6
        kept = Path(err.split("is kept in ")[1].split(",")[0].strip())
    assert evaluation.Report.from_dict(json.loads(kept.read_text())).to_dict()["estimates"]
    kept.unlink()
    kept.parent.rmdir()


def test_a_report_is_kept_where_nobody_reads_it(run, paid, monkeypatch):
    def gone(text, **more):
        if not more.get("err"):
            raise BrokenPipeError

    with monkeypatch.context() as patch:
        patch.setattr("dpsparse.cli.output.click.echo", gone)
        code, _, err = run(*paid)
    assert code == 6
    kept_report(err)


def kept_report(err):
    kept = Path(err.split("is kept in ")[1].split(",")[0].strip())
    found = json.loads(kept.read_text())
    kept.unlink()
    kept.parent.rmdir()
    assert found["estimates"]["accuracy"]


def test_a_look_is_kept_where_stdout_fails(run, paid, monkeypatch):
    def full(text, **more):
        if not more.get("err"):
            raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("dpsparse.cli.output.click.echo", full)
        code, _, err = run(
            "check", "t.csv", "--target", "label", "--classes", "no,yes", "--look", "1"
        )
    assert code == 6
    kept = Path(err.split("is kept in ")[1].split(",")[0].strip())
    assert json.loads(kept.read_text())["columns"]
    kept.unlink()
    kept.parent.rmdir()


def test_a_terminal_without_a_letter_gets_its_code(monkeypatch):
    """A paid report is shown also where a label cannot be written as it is."""
    from dpsparse.cli.output import say

    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", shown)
    say('precision is of "Fieber hoch \u00e4"')
    assert shown.buffer.getvalue().decode() == 'precision is of "Fieber hoch \\u00e4"\n'


# ---- terms ---------------------------------------------------------------------------------------

ODD = [
    ("1e-300", "1e-6"),
    ("1", "5e-324"),
    ("1e300", "1e-6"),
    ("1", "0.9999999999999999"),
    ("1e-300", "5e-324"),
]


@pytest.mark.parametrize(("epsilon", "delta"), ODD)
def test_odd_terms_are_refused_with_a_remedy(run, epsilon, delta):
    write_table("t.csv")
    assert run("fit", "t.csv", "-o", "m.json", *FIT)[0] == 0
    terms = ["--epsilon", epsilon, "--delta", delta]
    code, _, err = run("budget", "create", "odd.db", *terms)
    assert code == 5
    assert "between" in err
    assert not Path("odd.db").exists()
    for line in (
        ["check", "--n-features", "3", "--classes", "0,1"],
        ["check", "t.csv", "--target", "label", "--classes", "no,yes", "--prepare", "private"],
        ["evaluate", "m.json", "t.csv", "--target", "label"],
    ):
        code, _, err = run(*line, *terms)
        assert code == 2
        assert "between" in err


@pytest.mark.parametrize("epsilon", [1e-9, 1e6])
@pytest.mark.parametrize("delta", [1e-100, 0.999])
def test_terms_at_the_ends_of_the_range_work(epsilon, delta):
    ledger = Ledger(epsilon=epsilon, delta=delta)
    assert 0.0 < ledger.remaining() <= epsilon
    assert ledger.spent() == 0.0
