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
