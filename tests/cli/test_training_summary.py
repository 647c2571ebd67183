"""What a fit from the command line says about its columns."""

from types import SimpleNamespace

import pytest

from dpsparse.cli.training import _kinds


@pytest.mark.parametrize(
    ("name", "numbers_rows"),
    [(name, True) for name in ("rownames", "Row_ID", "id", "userId", "person id", "Unnamed: 0")]
    + [(name, False) for name in ("age", "paid", "valid", "Madrid", "rowers", "width")],
)
def test_numbers_of_rows_are_told_from_features_by_their_names(name, numbers_rows):
    step = SimpleNamespace(kinds_={name: "number", "ward": "category", "patient_id": "category"})
    said = _kinds(SimpleNamespace(steps_=[("table", step)]))
    assert f"taken for number: {name}" in said
    assert (
        "--drop" in said
    ) == numbers_rows  # a category that no two rows share has a warning of its own
