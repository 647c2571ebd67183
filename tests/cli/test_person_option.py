"""`--person COLUMN`: the guarantee of a model made on the command line is for persons."""

import json

import numpy as np
import pytest

from dpsparse.io import read_table


@pytest.fixture
def visits(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["age,dose,patient_id,died"]
    lines += [f"{v:.3f},{1 - v:.3f}, p{k // 4},{k % 2}" for k, v in enumerate(rng.random(200))]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_fit_for_persons_with_their_own_account(command, visits, tmp_path):
    book, model = tmp_path / "b.db", tmp_path / "m.json"
    code, _ = command("budget", "create", book, "--epsilon", 3, "--delta", 1e-5, "--unit", "person")
    assert code == 0
    words = ["fit", visits, "-o", model, "--target", "died", "--classes", "0,1", "--ledger", book]
    code, text = command(*words, "--drop", "patient_id")
    assert code == 4
    assert "protects" in text
    code, text = command(*words, "--person", "patient_id", "--rows-per-unit", 3)
    assert code == 0, text
    assert "add/remove one person" in text
    saved = json.loads(model.read_text())
    assert saved["guarantee"]["unit"] == "one person, all of their rows"
    assert "p17" not in model.read_text()


def test_plan_and_mistakes(command, visits):
    words = ["--classes", "0,1", "--person", "patient_id"]
    code, text = command("check", *words, "--n-features", 2)
    assert code == 0
    assert "one person" in text
    code, text = command("fit", visits, "-o", "m.json", "--target", "died", *words[:-1], "who")
    assert code != 0
    assert "There is no column 'who'" in text
    code, text = command("check", *words, "--method", "lasso", "--n-features", 2)
    assert code == 2
    assert "--rows-per-unit 1" in text


def test_names_lose_their_spaces_and_must_be_there(visits, tmp_path):
    table = read_table(visits, target="died", person="patient_id")
    assert table.feature_names == ("age", "dose")
    assert len(np.unique(table.persons)) == 50
    assert table.persons[0] == "p0"
    hole = tmp_path / "hole.csv"
    hole.write_text("a,who,y\n1,x,0\n2, ,1\n")
    with pytest.raises(Exception, match="names are missing"):
        read_table(hole, target="y", person="who")


def test_tune_and_evaluate_for_persons_from_one_account(command, visits, tmp_path):
    """Fit, search and evaluation of the same persons, one book; an account for rows refuses the evaluation."""
    book, model = tmp_path / "b.db", tmp_path / "m.json"
    command("budget", "create", book, "--epsilon", 5, "--delta", 1e-5, "--unit", "person")
    code, text = command(
        "tune", visits, "-o", model, "--candidates", "threshold=[0.0,0.5]", "--target", "died", "--classes", "0,1",
        "--person", "patient_id", "--ledger", book,
    )  # fmt: skip
    assert code == 0, text
    assert "add/remove one person" in text
    words = ["evaluate", model, visits, "--target", "died", "--epsilon", 1, "--ledger", book]
    code, text = command(*words, "--person", "patient_id")
    assert code == 0, text
    assert "mean over persons" in text
    code, text = command(*words)
    assert code == 4
    assert "protects" in text
