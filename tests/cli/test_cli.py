"""The command line: the README's path, every exit code, and no traceback whatever comes in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsparse import Domain
from dpsparse.cli import explain
from dpsparse.exceptions import DomainError, LedgerError
from dpsparse.ledger import Ledger
from dpsparse.models.files import load

FACTS = ["--classes", "0,1", "--row-norm", "1", "--n-samples", "200"]
QUICK = [*FACTS, "--param", "n_iter=2"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with people.csv (labels no/yes) and rows.svm (labels 0/1)."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age, visits = rng.integers(18, 90, 200), rng.poisson(2, 200)
    labels = np.where(age + rng.normal(0, 10, 200) > 54, "yes", "no")
    rows = [f"{i},{a},{v},{y}" for i, (a, v, y) in enumerate(zip(age, visits, labels, strict=True))]
    Path("people.csv").write_text("id,age,visits,label\n" + "\n".join(rows) + "\n")
    lines = [
        f"{int(y == 'yes')} 1:{a / 100} 3:{v / 10}"
        for a, v, y in zip(age, visits, labels, strict=True)
    ]
    Path("rows.svm").write_text("\n".join(lines) + "\n")
    return tmp_path


def assert_one_line(text):
    assert text.startswith("dpsparse: ")
    assert text.count("\n") == 1
    assert len(text) < 500


def test_three_commands_from_a_csv_to_model_card_and_budget(run, folder):
    """As printed in README; the library's own numbers do the checking."""
    code, out, _ = run("budget", "create", "budget.db", "--epsilon", "3", "--delta", "1e-6")
    assert code == 0
    assert "epsilon 0 of 3" in out
    code, out, _ = run(
        "fit", "people.csv", "--target", "label", "--classes", "no,yes", "--drop", "id",
        "--row-norm", "100", "--n-samples", "200",
        "--epsilon", "1", "--ledger", "budget.db", "-o", "model.json",
    )  # fmt: skip
    assert code == 0
    assert "proven" in out
    assert "epsilon 1 of 3" in out
    assert "score" not in out + "accuracy"
    assert "200" not in out  # the number of rows is not public under add-remove
    assert run("report", "model.json", "--ledger", "budget.db", "-o", "card.html")[0] == 0
    assert "Privacy card: model.json" in Path("card.html").read_text()
    assert [e.committed for e in Ledger("budget.db").history()] == [True]
    assert load("model.json").feature_names_ == ("age", "visits")
    code, out, _ = run("predict", "model.json", "people.csv", "--proba")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "prediction,p(no),p(yes)"
    assert len(lines) == 201
    assert run("inspect", "model.json")[0] == 0
    assert run("budget", "verify", "budget.db")[0] == 0


REFUSALS = {
    "unknown option": (2, ["fit", "rows.svm", "--nope"]),
    "no command": (2, ["nonsense"]),
    "no output": (2, ["fit", "rows.svm"]),
    "no classes": (2, ["fit", "rows.svm", "-o", "m.json"]),
    "both tasks": (2, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--target-range", "-1..1"]),
    "bad row norm": (2, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--row-norm", "-1"]),
    "no such method": (2, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--method", "magic"]),
    "no such parameter": (2, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--param", "magic=1"]),
    "domain as parameter": (2, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--param", "domain=1"]),
    "no value": (2, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--param", "n_iter"]),
    "bad value": (2, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--param", "n_iter=two"]),
    "bad epsilon": (2, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--epsilon", "-1"]),
    "nan epsilon": (2, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--epsilon", "nan"]),
    "one class": (2, ["fit", "rows.svm", "-o", "m.json", "--classes", "1"]),
    "no domain file": (2, ["fit", "rows.svm", "-o", "m.json", "--domain", "no.toml"]),
    "bad domain file": (2, ["fit", "rows.svm", "-o", "m.json", "--domain", "rows.svm"]),
    "lone partition": (2, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--partition", "a"]),
    "no data": (3, ["fit", "none.svm", "-o", "m.json", *FACTS]),
    "unknown format": (3, ["fit", "budget.db", "-o", "m.json", *FACTS]),
    "no target": (3, ["fit", "people.csv", "-o", "m.json", *FACTS]),
    "text column": (3, ["fit", "people.csv", "--target", "age", "-o", "m.json", *FACTS]),
    "wrong labels": (3, ["fit", "people.csv", "--target", "label", "-o", "m.json", *FACTS]),
    "too wide": (3, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--n-features", "2"]),
    "too dear": (4, ["fit", "rows.svm", "-o", "m.json", *QUICK, "--epsilon", "2", "--ledger", "budget.db"]),
    "seeded": (4, ["fit", "rows.svm", "-o", "m.json", *QUICK, "--random-state", "1", "--ledger", "budget.db"]),
    "noiseless": (4, ["fit", "rows.svm", "-o", "m.json", *QUICK, "--epsilon", "inf", "--ledger", "budget.db"]),
    "neighbour": (4, ["fit", "rows.svm", "-o", "m.json", *QUICK, "--ledger=budget.db", "--adjacency", "replace-one"]),
    "no ledger": (5, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--ledger", "none.db"]),
    "no account": (5, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--ledger", "budget.db", "--dataset", "x"]),
    "foreign ledger": (5, ["fit", "rows.svm", "-o", "m.json", *FACTS, "--ledger", "rows.svm"]),
    "other terms": (5, ["budget", "create", "budget.db", "--epsilon", "9", "--delta", "1e-6"]),
    "bad terms": (5, ["budget", "create", "new.db", "--epsilon", "-9", "--delta", "1e-6"]),
    "lost anchor": (5, ["budget", "verify", "budget.db", "--anchor", "abc"]),
    "output exists": (6, ["fit", "rows.svm", "-o", "people.csv", *FACTS]),
    "output folder": (6, ["fit", "rows.svm", "-o", "no/m.json", *FACTS]),
    "no model": (6, ["inspect", "none.json"]),
    "foreign model": (6, ["predict", "people.csv", "rows.svm"]),
    "no model to report": (6, ["report", "rows.svm", "-o", "card.html"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=str)
def test_refusals_are_one_line_and_spend_nothing(run, folder, case):
    ledger = Ledger("budget.db", epsilon=1.0, delta=1e-6)
    before, files = ledger.head, sorted(os.listdir())
    expected, arguments = REFUSALS[case]
    code, out, err = run(*arguments)
    assert (code, out) == (expected, "")
    assert_one_line(err)
    assert ledger.head == before
    assert sorted(os.listdir()) == files


@pytest.mark.parametrize(
    ("fact", "advice"), [("n_samples", "--n-samples 10000"), ("classes", "--classes 0,1")]
)
def test_advice_is_given_as_options(fact, advice):
    with pytest.raises(DomainError) as error:
        Domain().require(fact, "This method")
    text, code = explain(error.value)
    assert code == 2
    assert advice in text
    assert "Domain" not in text


def test_overwrite_and_formats(run, folder):
    assert run("fit", "rows.svm", "-o", "m.json", *QUICK)[0] == 0
    first = Path("m.json").read_bytes()
    assert run("fit", "rows.svm", "-o", "m.json", *QUICK)[0] == 6
    assert Path("m.json").read_bytes() == first
    assert run("fit", "rows.svm", "-o", "m.json", *QUICK, "--overwrite")[0] == 0
    assert Path("m.json").read_bytes() != first
    Path("data").write_bytes(Path("rows.svm").read_bytes())
    assert run("fit", "data", "--format", "svmlight", "-o", "n.json", *QUICK)[0] == 0


def test_json_output_is_strict_json(run, folder):
    Ledger("budget.db", epsilon=1.0, delta=1e-6)

    def strict(text):
        return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    money = ["--ledger", "budget.db", "--epsilon", "0.5"]
    fit = strict(run("fit", "rows.svm", "-o", "m.json", *QUICK, *money, "--json")[1])
    assert fit["n_features"] == 3
    assert fit["guarantee"]["epsilon"] == 0.5
    assert fit["budget"]["spent"] == pytest.approx(0.5)
    plan = strict(run("check", "--n-features", "3", *QUICK, *money, "--json")[1])
    assert plan["allowed"] is True
    assert strict(run("check", "--n-features", "3", *QUICK, "--epsilon", "inf", "--json")[1])
    assert strict(run("inspect", "m.json", "--json")[1])["top_weights"]
    assert len(strict(run("budget", "show", "budget.db", "--json")[1])["default"]["entries"]) == 1
    assert strict(run("budget", "verify", "budget.db", "--json")[1])["default"]["entries"] == 2
    assert "gradient" in strict(run("methods", "--json")[1])


def test_a_ledger_pays_for_no_fit_without_a_guarantee(run, folder):
    Ledger("budget.db", epsilon=1.0, delta=1e-6)
    code, _, err = run(
        "fit", "rows.svm", "-o", "n.json", *QUICK, "--ledger", "budget.db", "--epsilon", "inf"
    )
    assert code == 4
    assert "no proven guarantee" in err
    assert Ledger("budget.db").history() == []


def test_seeded_fits_warn(run, folder):
    code, out, err = run("fit", "rows.svm", "-o", "m.json", *QUICK, "--random-state", "1")
    assert code == 0
    assert "NOT PRIVATE" in out
    assert err.startswith("dpsparse: warning: ")
    assert err.count("\n") == 1


def test_accounts_partitions_and_adjacency(run, folder):
    for name, adjacency in (("a", "add-remove"), ("b", "replace-one")):
        run("budget", "create", "budget.db", "--epsilon", "1", "--delta", "1e-6", "--dataset", name,
            "--adjacency", adjacency)  # fmt: skip
    fit = ["fit", "rows.svm", *QUICK, "--ledger", "budget.db"]
    assert run(*fit, "-o", "1.json", "--dataset", "a", "--partition", "north")[0] == 0
    assert run(*fit, "-o", "2.json", "--dataset", "a", "--partition", "south")[0] == 0
    assert run(*fit, "-o", "3.json", "--dataset", "a", "--partition", "south")[0] == 4
    assert run(*fit, "-o", "4.json", "--dataset", "b")[0] == 0  # takes the ledger's adjacency
    assert load("4.json").privacy_.adjacency == "replace-one"
    assert run(*fit, "-o", "5.json", "--dataset", "b", "--partition", "north")[0] == 5
    out = run("budget", "show", "budget.db")[1]
    assert "[north]" in out
    assert "budget b" in out
    assert run("budget", "verify", "budget.db", "--anchor", "x")[0] == 2


def test_an_edited_ledger_is_exit_5(run, folder):
    import sqlite3

    Ledger("budget.db", epsilon=1.0, delta=1e-6)
    run("fit", "rows.svm", "-o", "m.json", *QUICK, "--ledger", "budget.db")
    connection = sqlite3.connect("budget.db")
    connection.execute("DROP TRIGGER dpsparse_no_update")
    connection.execute("UPDATE dpsparse_entry SET body = replace(body, 'DPG', 'XPG')")
    connection.commit()
    connection.close()
    for command in (["verify", "budget.db"], ["show", "budget.db"]):
        code, _, err = run("budget", *command)
        assert code == 5
        assert_one_line(err)


@pytest.mark.parametrize("alias", ["same", "dotted", "symlink", "hard link", "link to folder"])
def test_an_input_is_never_overwritten(run, folder, alias):
    """`-o` with --overwrite must not replace the training table, the ledger or the model."""
    Ledger("budget.db", epsilon=9.0, delta=1e-6)
    Path("facts.toml").write_text("row_norm = 1.0\n")
    run("fit", "rows.svm", "-o", "m.json", *QUICK)

    def other_name(path):
        if alias == "symlink":
            Path("link").symlink_to(path)
        elif alias == "hard link":
            os.link(path, "link")
        elif alias == "link to folder":
            Path("folder").symlink_to(folder)
        names = {"same": path, "dotted": f"./{path}", "link to folder": f"folder/{path}"}
        return names.get(alias, "link")

    fit = [
        "fit",
        "rows.svm",
        *QUICK,
        "--overwrite",
        "--ledger",
        "budget.db",
        "--domain",
        "facts.toml",
    ]
    commands = [
        ("rows.svm", fit), ("budget.db", fit), ("facts.toml", fit),
        ("m.json", ["predict", "m.json", "rows.svm", "--overwrite"]),
        ("rows.svm", ["predict", "m.json", "rows.svm", "--overwrite"]),
        ("m.json", ["report", "m.json", "--overwrite"]),
        ("budget.db", ["report", "m.json", "--ledger", "budget.db", "--overwrite"]),
    ]  # fmt: skip
    for path, command in commands:
        before, head = Path(path).read_bytes(), Ledger("budget.db").head
        name = other_name(path)
        code, out, err = run(*command, "-o", name)
        assert (code, out) == (6, "")
        assert_one_line(err)
        assert Path(path).read_bytes() == before
        for link in ("link", "folder"):
            Path(link).unlink(missing_ok=True)
        assert Ledger("budget.db").head == head


def test_only_regular_files_are_written(run, folder):
    os.mkfifo("pipe")
    assert run("fit", "rows.svm", *QUICK, "-o", "pipe", "--overwrite")[0] == 6
    assert run("fit", "rows.svm", *QUICK, "-o", "/dev/null", "--overwrite")[0] == 6
    assert not Path("/dev/null").is_file()


@pytest.fixture
def full_disk(monkeypatch):
    """fsync fails with ENOSPC below the given folders, as a full disk does at the latest."""
    import errno

    real, full = os.fsync, []

    def fsync(descriptor):
        place = os.readlink(f"/proc/self/fd/{descriptor}")
        if any(place.startswith(str(f)) for f in full):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return full


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
def test_a_full_disk_after_a_paid_fit_keeps_the_model(
    run, folder, full_disk, monkeypatch, tmp_path_factory
):
    """The epsilon is spent, so the model must not be lost."""
    spare = tmp_path_factory.mktemp("spare")
    for name in ("tmp", "home"):
        (spare / name).mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(spare / "tmp"))
    monkeypatch.setenv("HOME", str(spare / "home"))
    Ledger("budget.db", epsilon=9.0, delta=1e-6)
    fit = ["fit", "rows.svm", *QUICK, "-o", "m.json", "--ledger", "budget.db"]
    full_disk.append(folder)
    for place, also_full in (("tmp", spare / "tmp"), ("home", spare / "home")):
        code, out, err = run(*fit)
        assert (code, out) == (6, "")
        assert_one_line(err)
        assert "No space left" in err
        assert "epsilon is spent" in err
        kept = next((spare / place).rglob("m.json"))
        assert str(kept) in err
        assert load(kept).privacy_.proven
        full_disk.append(also_full)
    code, out, err = run(*fit)
    assert code == 6
    assert "on stdout" in err
    full_disk.clear()
    Path("copied.json").write_text(out)
    assert load("copied.json").n_features_in_ == 3
    assert not Path("m.json").exists()
    assert not list(Path().glob(".dpsparse-*"))
    assert [e.committed for e in Ledger("budget.db").history()] == [True] * 3


def test_a_ledger_that_fails_after_the_fit_does_not_hide_the_model(run, folder, monkeypatch):
    def fail(self):
        raise LedgerError("The ledger cannot be read.")

    Ledger("budget.db", epsilon=9.0, delta=1e-6)
    monkeypatch.setattr(Ledger, "spent", fail)
    code, out, err = run("fit", "rows.svm", *QUICK, "-o", "m.json", "--ledger", "budget.db")
    assert code == 5
    assert_one_line(err)
    assert "paid" in err
    assert out.startswith("m.json: ")
    assert load("m.json").privacy_.proven


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_result_that_cannot_be_written_is_told(folder):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = f"{sys.executable} -m dpsparse methods > /dev/full"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=env, timeout=300
    )
    assert done.returncode == 6
    assert_one_line(done.stderr)


def test_domain_file(run, folder):
    Path("d.toml").write_text('row_norm = 1.0\nn_samples = 200\nclasses = ["no", "yes"]\n')
    fit = ["fit", "people.csv", "--target", "label", "--drop", "id", "--param", "n_iter=2"]
    assert run(*fit, "--domain", "d.toml", "-o", "m.json")[0] == 0
    assert load("m.json").domain.classes == ("no", "yes")
    Path("d.toml").write_text("row_nrom = 1.0\n")
    code, _, err = run(*fit, "--domain", "d.toml", "-o", "n.json")
    assert code == 2
    assert "row_nrom" in err


def test_predict(run, folder):
    run("fit", "rows.svm", "-o", "m.json", *QUICK)
    assert run("predict", "m.json", "rows.svm", "-o", "p.csv")[0] == 0
    assert len(Path("p.csv").read_text().splitlines()) == 201
    assert run("predict", "m.json", "rows.svm", "-o", "p.csv")[0] == 6
    assert run("predict", "m.json", "rows.svm", "-o", "p.csv", "--overwrite", "--proba")[0] == 0
    Path("wide.svm").write_text("0 4:1\n")
    assert run("predict", "m.json", "wide.svm")[0] == 3
    assert run("predict", "m.json", "people.csv", "--drop", "label")[0] == 0  # three columns
    assert run("predict", "m.json", "people.csv", "--target", "label", "--drop", "id")[0] == 3


def test_every_command_has_help(run):
    for command in ("", "fit", "predict", "inspect", "check", "report", "methods", "budget",
                    "budget create", "budget show", "budget verify"):  # fmt: skip
        code, out, _ = run(*command.split(), "--help")
        assert code == 0
        assert "Usage" in out
    assert "Exit codes" in run("-h")[1]
    assert run("--version")[1].startswith("dpsparse")


def test_progress_on_a_terminal_only(run, folder, monkeypatch):
    Ledger("budget.db", epsilon=9.0, delta=1e-5)  # fits without one are counted in the process
    assert run("fit", "rows.svm", "-o", "m.json", *QUICK, "--ledger", "budget.db")[2] == ""
    monkeypatch.setattr("dpsparse.cli.output.sys.stderr.isatty", lambda: True, raising=False)
    err = run("fit", "rows.svm", "-o", "n.json", *QUICK)[2]
    assert "reading rows.svm" in err
    assert "fitting" in err
    assert run("fit", "none.svm", "-o", "o.json", *QUICK)[0] == 3


def test_interrupts_and_surprises(run, monkeypatch):
    for error, code in ((KeyboardInterrupt(), 130), (RuntimeError("a\nb"), 1), (MemoryError(), 3)):

        def fail(error=error):
            raise error

        monkeypatch.setattr("dpsparse.cli.options.methods", fail)
        got, _, err = run("methods")
        assert got == code
        assert_one_line(err.removeprefix("\n"))  # click ends the line of the ^C


def test_module_runs_and_survives_a_closed_pipe(folder):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = f"{sys.executable} -m dpsparse methods | true"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=env, timeout=300
    )
    assert "Traceback" not in done.stderr


# ---- broken files: always one line, nothing spent -----------------------------------------------

BROKEN = {
    "empty": b"",
    "blank": b"\n\n\n",
    "binary": bytes(range(256)) * 50,
    "truncated": b"id,age,visits,label\n1,2",
    "wrong columns": b"a,b\n1,2\n",
    "ragged": b"age,label\n1,0\n1\n",
    "huge numbers": b"age,label\n1e999,0\n2,1\n",
    "nan": b"age,label\nnan,0\n2,1\n",
    "missing": b"age,label\n,0\n2,1\n",
    "missing target": b"age,label\n1,\n2,1\n",
    "long line": b"age,label\n" + b"9" * 10**7 + b"\n",
    "svmlight": b"1 1:1\n",
    "utf-16": "age,label\n1,0\n".encode("utf-16"),
}


@pytest.mark.parametrize("name", ["x.csv", "x.svm", "x.parquet", "x.csv.gz", "x.svm.xz"])
@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_broken_data(run, folder, name, content):
    if name == "x.svm" and content == BROKEN["svmlight"]:
        pytest.skip("this one is a readable file")
    ledger = Ledger("budget.db", epsilon=1.0, delta=1e-6)
    before = ledger.head
    Path(name).write_bytes(content)
    code, out, err = run(
        "fit", name, "--target", "label", "-o", "m.json", *QUICK, "--ledger", "budget.db"
    )
    assert (code, out) == (3, "")
    assert_one_line(err)
    assert ledger.head == before
    assert not Path("m.json").exists()


# By ranges: hypothesis would ask the codec of every character once, which takes seconds.
CHARACTERS = st.characters(min_codepoint=1, max_codepoint=0xD7FF) | st.characters(
    min_codepoint=0xE000
)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    data=st.binary(max_size=120) | st.text('agelb,"\n0123456789.:e- ', max_size=120),
    name=st.sampled_from(["f.csv", "f.svm", "f.tsv"]),
    param=st.text(CHARACTERS, max_size=12),
)
def test_fuzzed_command(run, folder, data, name, param):
    Path(name).write_bytes(data if isinstance(data, bytes) else data.encode())
    ledger = Ledger("budget.db", epsilon=1.0, delta=1e-6)
    before = ledger.head
    code, _, err = run(
        "fit",
        name,
        "--target",
        "a",
        "-o",
        "m.json",
        *QUICK,
        "--ledger",
        "budget.db",
        "--param",
        param,
    )
    assert code in (2, 3, 4, 6) or Path("m.json").exists()
    if code:
        assert_one_line(err)
        assert ledger.head == before


def test_warm_up_fits_both_families_and_says_so(run, folder):
    code, out, err = run("warm-up")
    assert (code, err) == (0, "")
    assert out.startswith("ready after ")
    assert sorted(os.listdir(folder)) == ["people.csv", "rows.svm"]  # it leaves nothing behind
