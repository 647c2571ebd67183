"""`dpsparse evaluate`: from files to a report, paid from the ledger; every refusal is one line and free."""

import json
from pathlib import Path

import numpy as np
import pytest

from dpsparse.ledger import Ledger

BASIC = ["evaluate", "m.json", "test.csv", "--target", "label", "--epsilon", "0.5"]


@pytest.fixture
def folder(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, n in (("train.csv", 600), ("test.csv", 900)):
        age = rng.integers(18, 90, n)
        label = np.where(age + rng.normal(0, 10, n) > 54, "yes", "no")
        lines = [f"p{i // 3},{a},{y}" for i, (a, y) in enumerate(zip(age, label, strict=True))]
        Path(name).write_text("person,age,label\n" + "\n".join(lines) + "\n")
    facts = ["--classes", "no,yes", "--feature-bound", "100"]
    options = ["--target", "label", "--drop", "person", "--epsilon", "20", "--param", "n_iter=3"]
    assert run("fit", "train.csv", "-o", "m.json", *options, *facts)[0] == 0
    return tmp_path


def test_report_and_payment(run, folder):
    Ledger("b.db", epsilon=1.0, delta=1e-6)
    code, out, _ = run(*BASIC, "--ledger", "b.db", "-o", "r.json")
    assert code == 0
    assert "accuracy" in out
    assert "epsilon 0.5 of 1 spent" in out
    record = json.loads(Path("r.json").read_text())
    assert 0.0 <= record["estimates"]["accuracy"]["value"] <= 1.0
    code, out, _ = run(*BASIC, "--json", "--metric", "accuracy")
    assert list(json.loads(out)["estimates"]) == ["accuracy"]
    code, out, err = run(*BASIC[:-1], "0.95", "--ledger", "b.db")
    assert (code, out, err.count("\n")) == (4, "", 1)
    assert len(Ledger("b.db").history()) == 1


def test_persons(run, folder):
    code, out, _ = run(*BASIC, "--person", "person")
    assert code == 0
    assert "one person" in out


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (["--metric", "aucc"], 2),
        (["--epsilon", "0"], 2),
        (["--target", "nothing"], 3),
        (["--person", "nobody"], 3),
        (["-o", "m.json"], 6),
        (["-o", "nowhere/r.json"], 6),
        (["--person", "person"], 4),  # the account is for rows
    ],
)
def test_refusals_cost_nothing(run, folder, change, code):
    Ledger("b.db", epsilon=1.0, delta=1e-6)
    found, out, err = run(*BASIC, "--ledger", "b.db", *change)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert Ledger("b.db").history() == []
