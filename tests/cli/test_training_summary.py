"""What a fit from the command line says about its columns before it spends."""

import pytest

WORDS = ["--target", "y", "--classes", "0,1", "--epsilon", "9", "--prepare", "private", "-o", "m.json"]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "numbers_rows"),
    [(name, True) for name in ("rownames", "Row_ID", "id", "userId", "person id", "idcode", "caseid", "nr")]
    + [(name, False) for name in ("age", "paid", "valid", "Madrid", "rowers", "width", "idea", "number")],
)  # fmt: skip
def test_numbers_of_rows_are_told_from_features_by_their_names(
    run, tmp_path, monkeypatch, name, numbers_rows
):
    monkeypatch.chdir(tmp_path)
    with open("t.csv", "w") as file:
        file.write(f"{name},dose,y\n" + "".join(f"{i},{i % 7},{i % 2}\n" for i in range(100)))
    code, out, err = run("fit", "t.csv", *WORDS)
    assert code == 0
    assert (f"add noise: {name}" in err) == numbers_rows
    assert "taken for number" in out


def test_a_loose_guarantee_is_said_to_be_loose_after_the_fit_and_the_evaluation(
    run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with open("t.csv", "w") as file:
        file.write("dose,y\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(100)))
    shown = run("fit", "t.csv", *WORDS, "--epsilon", "20")[1]
    assert "caution: epsilon = 20 lets one row" in shown
    assert "caution" not in run("fit", "t.csv", *WORDS[:-1], "other.json")[1]
    asked = ("evaluate", "m.json", "t.csv", "--target", "y", "--epsilon", "11")
    assert "caution: epsilon = 11 lets one row" in run(*asked)[1]
