"""The laboratory: splits, tables, methods, rows."""

import json

import numpy as np
import pytest

from lab.engine import Cell, key_of, read_rows, run_cells
from lab.measures import calibration_slope, support_f1
from lab.methods import Setting, find_method
from lab.outside import VARIABLE
from lab.outside_fit import codes
from lab.report import Table
from lab.suites import SUITES
from lab.tables import columns_of, encode_category, encode_number, table_tasks
from lab.tasks import TEST_SHARE, Data, Task, held_out, split_rows


def load_small():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 5))
    return Data(X, (X[:, 0] + 0.3 * rng.standard_normal(2000) > 0).astype(int))


SMALL = Task("small", "tables", load_small, classes=(0, 1))


def test_a_split_is_a_hash_of_row_numbers():
    out = held_out(np.arange(100_000), "a", 0)
    assert abs(out.mean() - TEST_SHARE) < 0.01  # nine standard errors
    assert np.array_equal(out[:1000], held_out(np.arange(1000), "a", 0))
    both = out & held_out(np.arange(100_000), "a", 1)
    assert abs(both.mean() - TEST_SHARE**2) < 0.01


def test_training_splits_read_no_test_row():
    whole, inner = split_rows(SMALL, 0), split_rows(SMALL, 0, training=True)
    inside = {row.tobytes() for row in whole.X}
    assert all(row.tobytes() in inside for row in [*inner.X, *inner.X_test])


def test_persons_stay_together():
    persons = np.repeat(np.arange(50), 8)
    task = Task("persons", "persons", lambda: Data(load_small().X, load_small().y, persons=persons))
    split = split_rows(task, 0)
    assert len(split.persons) == 8 * len(np.unique(split.persons))


def test_cells_are_encoded_by_public_facts_alone():
    assert encode_number([5.0, np.nan, 20.0], 0, 10).ravel().tolist() == [0.5, 0.0, 1.0]
    assert encode_number([5.0, 1.0, 20.0], 1, 9).ravel().tolist() == [0.0, -1.0, 1.0]
    pandas = pytest.importorskip("pandas")
    cells = pandas.Series(["a", None, "c"])
    assert encode_category(cells, ["a", "b"]).tolist() == [[1, 0], [0, 0], [0, 0]]


def test_the_files_of_tables_are_domain_files_of_the_library():
    from dpsparse.domain.file import read
    from lab.tables import FOLDER

    tasks = table_tasks()
    assert len(tasks) >= 16
    for path in FOLDER.glob("*.toml"):
        facts = read(path)
        assert facts.target
        assert (facts.domain.classes is None) != (facts.domain.target_range is None)


def test_rows_are_kept_and_a_second_run_adds_nothing(tmp_path):
    cells = [
        Cell(SMALL, method, Setting(1.0), split)
        for split in range(2)
        for method in ("DPSparse", "constant", "DPRidge(nonsense=1)")
    ]
    path = tmp_path / "rows.jsonl"
    rows = run_cells(cells, path, quiet=True)
    errors = [row for row in rows if "error" in row]
    assert len(rows) == 6
    assert len(errors) == 2
    good = next(row for row in rows if row["method"] == "DPSparse")
    assert good["guarantee"]["epsilon"] == 1.0
    assert good["guarantee"]["proof"].startswith("docs/proofs/")
    assert {"AUC", "log loss", "slope", "seconds", "megabytes"} <= set(good["measures"])
    assert len(good["data"]) == 16
    assert good["versions"]["numpy"]
    before = path.read_text()
    run_cells([c for c in cells if "nonsense" not in c.method], path, quiet=True)
    assert path.read_text() == before
    table = Table(read_rows(path))
    assert table.mean("small", "constant", 1.0, "AUC") == 0.5
    assert table.difference("small", "DPSparse", "constant", 1.0, "AUC")[0] > 0.2
    json.loads(before.splitlines()[0])


def test_a_method_is_a_call_and_an_unknown_one_is_refused():
    assert find_method("DPGradient(n_iter=5)").name == "DPGradient(n_iter=5)"
    assert not find_method("DPADMM").can_fit(
        Task("numbers", "tables", load_small, target_range=(0, 1))
    )
    with pytest.raises(ValueError, match="no method 'Magic'"):
        find_method("Magic")


def test_columns_of_a_table_are_put_together_again_for_libraries_of_others(monkeypatch):
    task = next(task for task in table_tasks() if task.name == "HMDA")
    split = split_rows(task, 0)
    assert sum(width for width, _ in columns_of(task)) == split.X.shape[1]
    assert columns_of(SMALL) == []
    assert codes(np.array([[0, 1, 0], [0, 0, 0]])).tolist() == [1, 3]
    assert not find_method("Diffprivlib").can_fit(
        Task("numbers", "tables", load_small, target_range=(0, 1))
    )
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ValueError, match=VARIABLE):
        find_method("DPEBM").fit(task, split, Setting(1.0), 0)


def test_measures():
    rng = np.random.default_rng(1)
    odds = rng.normal(size=20_000)
    labels = rng.random(20_000) < 1 / (1 + np.exp(-odds))
    assert calibration_slope(1 / (1 + np.exp(-odds)), labels) == pytest.approx(1.0, abs=0.1)
    assert calibration_slope(1 / (1 + np.exp(-2 * odds)), labels) == pytest.approx(0.5, abs=0.05)
    assert support_f1(np.array([1.0, 0, 1, 0]), np.array([1.0, 1, 0, 0])) == 0.5


def test_every_suite_lists_cells_of_methods_that_exist():
    for suite in SUITES.values():
        cells = list(suite.cells())
        assert len({key_of(cell.as_row()) for cell in cells}) == len(cells)
