"""One table in the forms that offices and programs save it in: the same numbers bit for bit."""

import io
import json

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from dpsparse import Domain, DPGradientClassifier, Rows
from dpsparse.exceptions import ParameterError, SchemaError
from dpsparse.io import read_columns, read_table
from dpsparse.io.tables import column_names

RNG = np.random.default_rng(0)
COLUMNS = {
    "alter": RNG.integers(18, 90, 60).tolist(),
    "größe": RNG.normal(0, 20_000, 60).round(2).tolist(),
    "krank": RNG.integers(0, 2, 60).tolist(),
}


def german(value):
    """31015.5 as 31.015,5."""
    return f"{value:,}".replace(",", "_").replace(".", ",").replace("_", ".")


def text(sep=",", write=str, quote=""):
    lines = [sep.join(COLUMNS)]
    lines += [
        sep.join(f"{quote}{write(cell)}{quote}" for cell in row)
        for row in zip(*COLUMNS.values(), strict=True)
    ]
    return "\n".join(lines) + "\n"


def excel():
    openpyxl = pytest.importorskip("openpyxl")
    book, out = openpyxl.Workbook(), io.BytesIO()
    book.active.append(list(COLUMNS))
    for row in zip(*COLUMNS.values(), strict=True):
        book.active.append(row)
    book.save(out)
    return out.getvalue()


def rows():
    return [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]


def parquet():
    out = io.BytesIO()
    pq.write_table(pa.table(COLUMNS), out)
    return out.getvalue()


FORMS = {
    "csv": ("t.csv", lambda: text().encode(), {}),
    "byte order mark": ("t.csv", lambda: text().encode("utf-8-sig"), {}),
    "semicolons": ("t.csv", lambda: text(";").encode(), {"sep": ";"}),
    "bars": ("t.csv", lambda: text("|").encode(), {"sep": "|"}),
    "tabs": ("t.tsv", lambda: text("\t").encode(), {}),
    "tabs by a word": ("t.csv", lambda: text("\t").encode(), {"sep": "tab"}),
    "quotes": ("t.csv", lambda: text(quote='"').encode(), {}),
    "carriage returns": ("t.csv", lambda: text().replace("\n", "\r\n").encode(), {}),
    "decimal commas": ("t.csv", lambda: text(";", german).encode(), {"sep": ";", "decimal": ","}),
    "quoted decimal commas": ("t.csv", lambda: text(",", german, '"').encode(), {"decimal": ","}),
    "latin-1": ("t.csv", lambda: text().encode("latin-1"), {"encoding": "latin-1"}),
    "utf-16": ("t.csv", lambda: text("\t").encode("utf-16"), {"sep": "tab", "encoding": "utf-16"}),
    "excel": ("t.xlsx", excel, {}),
    "json array": ("t.json", lambda: json.dumps(rows()).encode(), {}),
    "json lines": ("t.jsonl", lambda: "\n".join(map(json.dumps, rows())).encode(), {}),
    "parquet": ("t.parquet", parquet, {}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_same_numbers(tmp_path, form):
    name, content, how = FORMS[form]
    path = tmp_path / name
    path.write_bytes(content())
    table = read_table(path, target="krank", classes=[0, 1], **how)
    assert table.feature_names == ("alter", "größe")
    expected = np.column_stack([COLUMNS["alter"], COLUMNS["größe"]]).astype(float)
    assert table.X.toarray().tobytes() == expected.tobytes()
    assert table.y.tolist() == COLUMNS["krank"]
    cells = read_columns(path, columns=["größe"], **how)["größe"]
    assert [float(cell) for cell in cells] == COLUMNS["größe"]
    how = {key: value for key, value in how.items() if key != "decimal"}
    assert column_names(path, **how) == list(COLUMNS)


@pytest.mark.parametrize(
    ("form", "how", "said"),
    [
        ("semicolons", {}, "semicolons"),
        ("bars", {}, "bars"),
        ("tabs by a word", {}, "tabs"),
        ("latin-1", {}, "encoding"),
        ("csv", {"sep": ";"}, "commas"),
        ("decimal commas", {"sep": ";"}, "no number"),
    ],
)
def test_what_has_to_be_stated_is_said(tmp_path, form, how, said):
    name, content, _ = FORMS[form]
    path = tmp_path / name
    path.write_bytes(content())
    with pytest.raises(SchemaError, match=said):
        read_table(path, target="krank", **how)


@pytest.mark.parametrize(
    "how", [{"sep": "ab"}, {"sep": '"'}, {"decimal": ";"}, {"encoding": "martian"}]
)
def test_layouts_that_cannot_be_are_refused(tmp_path, how):
    with pytest.raises(ParameterError):
        read_table(tmp_path / "t.csv", target="y", **how)


def test_a_decimal_comma_changes_numbers_and_no_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("code;cost;note\n1.234;€ 31.015,50;1.2.2020\n-7,5 %;1e3;x\n")
    cells = read_columns(path, sep=";", decimal=",", names=["code"])
    assert {name: list(column) for name, column in cells.items()} == {
        "code": ["1.234", "-7,5 %"],
        "cost": ["€ 31015.50", "1e3"],
        "note": ["1.2.2020", "x"],
    }


def test_a_cell_may_be_very_long(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "x" * 200_000 + ",1\n")
    assert len(read_columns(path)["a"][0]) == 200_000


@pytest.mark.parametrize("name", ["Unnamed: 0", "__index_level_0__", ""])
def test_the_index_of_pandas_is_no_feature(tmp_path, name):
    path = tmp_path / "t.csv"
    path.write_text(f"{name},a,y\n0,1,0\n1,2,1\n")
    assert read_table(path, target="y").feature_names == ("a",)
    assert read_table(path, target="y", features=[name]).feature_names == (name,)


def test_rows_without_a_target_are_left_out_where_that_is_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,0\n2,\n3,NA\n4,1\n")
    with pytest.raises(SchemaError, match="without a target"):
        read_table(path, target="y")
    table = read_table(path, target="y", drop_missing_target=True)
    assert table.X.toarray().ravel().tolist() == [1, 4]
    assert table.y.tolist() == [0, 1]
    named = read_table(path, target="y", drop_missing_target=True, classes=["0", "1", "NA"])
    assert named.y.tolist() == ["0", "NA", "1"]  # a declared label is no missing value


# ---- batches ---------------------------------------------------------------------------------------


def frame():
    return pa.table(COLUMNS)


def duckdb_relation():
    duckdb = pytest.importorskip("duckdb")
    table = frame()
    return duckdb.connect().from_arrow(table)


BATCHES = {
    "list": lambda: frame().to_batches(7),
    "function": lambda: lambda: iter(frame().to_batches(7)),
    "table": frame,
    "function of a reader": lambda: lambda: frame().to_reader(),
    "dataset": lambda: ds.dataset(frame()),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "lazy polars": lambda: pl.LazyFrame(COLUMNS).filter(pl.col("alter") > 0),
    "duckdb": duckdb_relation,
}


def fitted(source):
    model = DPGradientClassifier(
        Domain(classes=[0, 1], row_norm=1.0), epsilon=1.0, n_iter=3, random_state=0
    )
    with pytest.warns(UserWarning, match="random_state"):
        return model.fit(source).coef_


@pytest.mark.parametrize("form", BATCHES)
def test_batches_fit_the_same_model_as_a_file(tmp_path, form):
    (tmp_path / "t.csv").write_text(text())
    from_file = fitted(Rows.from_csv(tmp_path / "t.csv", target="krank"))
    assert (
        fitted(Rows.from_batches(BATCHES[form](), target="krank")).tobytes() == from_file.tobytes()
    )


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    pq.write_to_dataset(frame().append_column("ort", pa.array([i % 2 for i in range(60)])),
                        tmp_path / "parts", partition_cols=["ort"])  # fmt: skip
    source = Rows.from_parquet(tmp_path / "parts", target="krank")
    assert set(source.feature_names) == {"alter", "größe", "ort"}
    assert fitted(source).shape == (1, 3)


def test_what_can_be_read_only_once_is_refused():
    for once in (iter(frame().to_batches()), frame().to_reader()):
        with pytest.raises(SchemaError, match="only once"):
            Rows.from_batches(once, target="krank")
    with pytest.raises(SchemaError, match="record batches"):
        Rows.from_batches([1, 2], target="krank")


@pytest.mark.filterwarnings(
    "ignore"
)  # of seeded fits, and of names that Arrow tables have another way
@pytest.mark.parametrize("form", ["table", "polars", "lazy polars", "duckdb"])
def test_a_lazy_frame_or_relation_is_fitted_like_a_frame(form):
    table = BATCHES[form]()
    model = DPGradientClassifier(
        Domain(classes=[0, 1], feature_bound=100.0), epsilon=1.0, n_iter=3, random_state=0
    )
    model.fit(table, COLUMNS["krank"])
    expected = clone(model).fit(np.column_stack(list(COLUMNS.values())), COLUMNS["krank"])
    assert model.coef_.tobytes() == expected.coef_.tobytes()
    assert model.predict(table).shape == (60,)
