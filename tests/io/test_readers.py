"""Readers against scikit-learn, against float(), and against broken files."""

import bz2
import csv
import gzip
import io
import lzma
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from dpsparse._cells import column_cells, person_names
from dpsparse.exceptions import ParameterError, SchemaError
from dpsparse.io import read_columns, read_table, streams
from dpsparse.io.streams import iter_svmlight, read_svmlight
from dpsparse.io.tables import label_list


def write(folder, text, name="data.svm"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same(A, B):
    return (
        A.shape == B.shape
        and np.array_equal(A.indptr, B.indptr)
        and np.array_equal(A.indices, B.indices)
        and A.data.tobytes() == B.data.tobytes()
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = sp.random_array((500, 80), density=0.1, rng=rng, format="csr")
    X.data[:] = rng.standard_normal(X.nnz) * 10.0 ** rng.integers(-30, 30, X.nnz)
    y = rng.integers(0, 2, 500) * 2 - 1
    path = tmp_path_factory.mktemp("svm") / "data.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False, comment="made by a test")
    return path


def test_equals_scikit_learn(file):
    X, y = read_svmlight(file, n_features=80)
    X2, y2 = load_svmlight_file(str(file), n_features=80)
    assert same(X, X2)
    assert np.array_equal(y, y2)
    assert X.has_canonical_format
    assert read_svmlight(file)[0].shape == X2.shape


def test_small_file(tmp_path):
    text = "# head\n+1 1:0.5 3:-2e-3 # tail\n\n -1.5 qid:7 2:.25\r\n0\n1 4:12345678901234567890"
    X, y = read_svmlight(write(tmp_path, text), n_features=4)
    assert y.tolist() == [1.0, -1.5, 0.0, 1.0]
    assert X.toarray().tolist() == [
        [0.5, 0, -2e-3, 0],
        [0, 0.25, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 12345678901234567890.0],
    ]


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_compressed_files(file, tmp_path, suffix, compress):
    packed = write(tmp_path, compress(file.read_bytes()), "data.svm" + suffix)
    assert same(read_svmlight(packed, n_features=80)[0], read_svmlight(file, n_features=80)[0])
    for damage in (packed.read_bytes()[:-40], b"nothing like it"):
        packed.write_bytes(damage)
        with pytest.raises(SchemaError):
            read_svmlight(packed)


@pytest.mark.parametrize("block_bytes", [50, 1000, 7777, 1 << 20])
def test_blocks_of_any_size_give_the_same(file, block_bytes, monkeypatch):
    X, y = read_svmlight(file, n_features=80)
    monkeypatch.setattr("dpsparse.io.streams.TEXT_BLOCK", block_bytes)
    parts = list(iter_svmlight(file, n_features=80))
    assert same(sp.vstack([A for A, _ in parts], format="csr"), X)
    assert np.array_equal(np.concatenate([b for _, b in parts]), y)
    assert same(read_svmlight(file, n_features=80)[0], X)


def test_numbers_are_bit_equal_to_python(tmp_path):
    """Ordinary numbers, those exactly between two doubles, and one digit to either side of the tie."""
    rng = np.random.default_rng(1)
    numbers = (rng.standard_normal(400) * 10.0 ** rng.integers(-30, 30, 400)).tolist()
    texts = [form(x) for x in numbers for form in (repr, "{:.17g}".format, "{:.18e}".format)]
    texts += [
        "9007199254740993",
        "9007199254740993.0000000001",
        "9007199254740992.99999999",
        "5e-324",
    ]
    path = write(tmp_path, "".join(f"+1 1:{text}\n-1 2:{text}\n" for text in texts))
    X, y = read_svmlight(path)
    expected = np.repeat([float(text) for text in texts], 2)
    assert X.data.tobytes() == expected.tobytes()
    assert y.tolist() == [1.0, -1.0] * len(texts)


BROKEN = {
    "index zero": "1 0:1\n",
    "index too large": "1 81:1\n",
    "unsorted": "1 2:1 1:1\n",
    "duplicate": "1 2:1 2:1\n",
    "negative index": "1 -1:1\n",
    "no colon": "1 2\n",
    "no value": "1 2: 3:1\n",
    "word": "1 2:abc\n",
    "half an exponent": "1 2:1e\n",
    "label word": "spam 1:1\n",
    "labels": "1,2 1:1\n",
    "csv": "a,b,c\n1,2,3\n",
    "binary": bytes(range(256)) * 10,
    "zeros": b"\0" * 100,
    "huge index": "1 99999999999999999999999:1\n",
    "long word": "x" * 10**7,
    "utf-16": "1 1:1\n".encode("utf-16"),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_broken_svmlight_is_one_line(tmp_path, text):
    with pytest.raises(SchemaError) as error:
        read_svmlight(write(tmp_path, text), n_features=80)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


def test_a_line_of_ten_million_characters(tmp_path):
    entries = " ".join(f"{j}:1" for j in range(1, 1_000_001))
    X, y = read_svmlight(write(tmp_path, f"1 {entries}\n0 2:1\n"))
    assert X.shape == (2, 1_000_000)
    assert X.nnz == 1_000_001
    assert y.tolist() == [1, 0]


@settings(max_examples=200)
@given(data=st.binary(max_size=200) | st.text("0123456789:.+-e# \n\tnaif", max_size=200))
def test_fuzzed_svmlight_is_read_or_refused(tmp_path_factory, data):
    path = write(tmp_path_factory.getbasetemp(), data, "fuzz.svm")
    try:
        X, y = read_svmlight(path)
    except SchemaError:
        return
    X.check_format(full_check=True)
    assert X.shape[0] == len(y)


# ---- tables -------------------------------------------------------------------------------------

CSV = 'id,age,"city, size",label\n1,30,2.5,yes\n2,0,0,no\n\n3,-1e3,0,yes\n'


@pytest.mark.parametrize("pack", [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_csv(tmp_path, pack):
    path = write(tmp_path, pack[1](CSV.encode()), "t.csv" + pack[0])
    table = read_table(path, target="label", drop=["id"], classes=["no", "yes"])
    assert table.feature_names == ("age", "city, size")
    assert table.X.toarray().tolist() == [[30, 2.5], [0, 0], [-1000, 0]]
    assert table.y.tolist() == ["yes", "no", "yes"]
    again = read_table(path, features=["city, size", "id"])
    assert again.y is None
    assert again.X.toarray()[:, 1].tolist() == [1, 2, 3]


def test_csv_in_blocks_and_numeric_targets(tmp_path, monkeypatch):
    monkeypatch.setattr("dpsparse.io.streams.TEXT_BLOCK", 30)
    rows = [f"{i % 2},{i},{i * 0.1!r}" for i in range(10)]
    table = read_table(write(tmp_path, "y,a,b\n" + "\r\n".join(rows), "t.csv"), target="y")
    assert table.X.toarray().tolist() == [[i, i * 0.1] for i in range(10)]
    assert table.y.tolist() == [i % 2 for i in range(10)]
    text = "y\ta\n1\t2\n"
    assert read_table(write(tmp_path, text, "t.tsv"), target="y").X.toarray() == 2


def test_parquet_equals_csv(tmp_path):
    columns = {
        "a": [1.5, 0.0, 2.0],
        "b": [0, 1, 0],
        "flag": [True, False, True],
        "y": ["u", "v", "u"],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", target="y", classes=["u", "v"])
    assert table.feature_names == ("a", "b", "flag")
    assert table.X.toarray().tolist() == [[1.5, 0, 1], [0, 1, 0], [2, 0, 1]]
    assert table.y.tolist() == ["u", "v", "u"]
    with pytest.raises(SchemaError, match="A feature has a cell that is no number"):
        read_table(tmp_path / "t.parquet", target="a")


BROKEN_TABLES = {
    "empty": "",
    "blank": "\n\n",
    "header only": "a,y\n",
    "no header": "1,2\n3,4\n",
    "ragged": "a,y\n1,2\n1,2,3\n",
    "text cell": "a,y\nx,1\n",
    "same name": "a,a,y\n1,2,3\n",
    "no target": "a,b\n1,2\n",
    "only target": "y\n1\n",
    "open quote": 'a,y\n"1,2\n3,4\n',
    "binary": bytes(range(256)),
    "latin-1": "grö,y\n1,2\n".encode("latin-1"),
    "nul": b"a,y\n\x00,1\n",
    "wide": "a,y\n" + "1" * 10**7 + "\n",
    "png": b"\x89PNG\r\n\x1a\n" + bytes(100),
}


@pytest.mark.parametrize("text", BROKEN_TABLES.values(), ids=BROKEN_TABLES.keys())
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.csv.gz"])
def test_broken_tables_are_one_line(tmp_path, text, name):
    with pytest.raises(SchemaError) as error:
        read_table(write(tmp_path, text, name), target="y")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@settings(max_examples=200)
@given(data=st.binary(max_size=200) | st.text('ab,;"\n\r0123.e-', max_size=200))
def test_fuzzed_csv_is_read_or_refused(tmp_path_factory, data):
    path = write(tmp_path_factory.getbasetemp(), data, "fuzz.csv")
    try:
        table = read_table(path)
    except SchemaError:
        return
    assert table.X.shape[1] == len(table.feature_names)


CELLS = ["1", "0", "-0.0", "2.5e-7", " 3", "4 ", "+5", "1_0", "nan", "inf", "-inf", "1e400", "1e-400", "", " ", "x",
         "nan(1)", "0x10", ".5", "5.", "0.1234567890123456789", "123456789012345678901", "9007199254740993", "é", "\t",
         "5e-324", "1.7976931348623159e308", "True", "NA", "٣"]  # fmt: skip


@settings(max_examples=300)
@given(
    rows=st.lists(st.lists(st.sampled_from(CELLS), min_size=3, max_size=3), min_size=1, max_size=4),
    usual=st.integers(0, 6),
    end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    target=st.sampled_from(["y", None]),
    block=st.sampled_from([8, 2**24]),
    classes=st.sampled_from([None, [0, 1], ["0", "1", "nan", "x"], "observed"]),
)
def test_both_csv_readers_read_the_same(tmp_path_factory, rows, usual, end, target, block, classes):
    """pyarrow's numbers bit for bit, and what it might see differently left to the other reader."""
    ordinary = [["1.5", "-2e-3", "0"], ["0", "7", "1"]] * usual
    text = end.join(
        ",".join(row) for row in [["a", "b", "y"], *ordinary, *(rows if usual % 2 else [])]
    )
    path = write(tmp_path_factory.getbasetemp(), (text + end).encode(), "both.csv")
    found = []
    for quick in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(streams, "TEXT_BLOCK", block)
            if not quick:
                patch.setattr(streams, "_cut_quickly", lambda *_: None)
            try:
                found.append(read_table(path, target=target, classes=classes))
            except SchemaError as refusal:
                found.append(str(refusal))
    quick, slow = found
    if isinstance(quick, str) or isinstance(slow, str):
        assert quick == slow
        return
    assert quick.feature_names == slow.feature_names
    for name in ("indptr", "indices", "data"):
        a, b = getattr(quick.X, name), getattr(slow.X, name)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
    if target is not None:
        assert quick.y.dtype == slow.y.dtype
        assert quick.y.tobytes() == slow.y.tobytes()


@settings(max_examples=500)
@given(
    pieces=st.lists(
        st.sampled_from(["a", ",", '"', '""', "\n", "\r\n", 'a"', ',"', '",', '"\n']), max_size=30
    ),
    block=st.integers(1, 12),
)
def test_blocks_of_text_hold_the_rows_of_the_whole(pieces, block):
    """Wherever quotes stand, Python's own reader finds the same cells in the blocks as in one piece."""

    def rows(texts):
        return [
            row
            for text in texts
            for row in csv.reader(io.StringIO(text, newline=""), strict=True)
            if row
        ]

    text = "".join(pieces)
    try:
        whole = rows([text])
    except csv.Error:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "TEXT_BLOCK", block)
        assert rows(streams._whole_records(io.StringIO(text, newline=""), ",")) == whole


@pytest.mark.parametrize("place", [0, 5])
def test_a_quote_inside_a_cell_does_not_cut_the_rows_of_others(place, tmp_path):
    """One row decided whether a table with line breaks in its cells was read."""
    lines = [f'"first line\nsecond line",{i}' for i in range(5)]
    lines.insert(place, '5" pipe,7')
    found = read_columns(write(tmp_path, "\n".join(["a,b", *lines, ""]), "t.csv"))
    assert list(found["a"]).index('5" pipe') == place
    assert list(found["a"]).count("first line\nsecond line") == 5


@pytest.mark.parametrize("cells", [["1.5", "2"], ["1.5", "x"]])
def test_plain_text_is_cut_by_the_quick_reader(tmp_path, monkeypatch, cells):
    path = write(tmp_path, "a,y\n" + "".join(f"{cell},1\n" for cell in cells), "t.csv")
    monkeypatch.setattr(streams, "_cut", None)
    if "x" in cells:
        assert list(read_columns(path)["a"]) == cells
    else:
        assert read_table(path, target="y").X.toarray().ravel().tolist() == [1.5, 2.0]


@pytest.mark.parametrize("name", ["t.xls", "t", "t.gz"])
def test_unknown_formats_are_named(tmp_path, name):
    with pytest.raises(SchemaError, match=r"\.svm, \.csv"):
        read_table(write(tmp_path, "x", name))
    with pytest.raises(ParameterError, match="Unknown format"):
        read_table(tmp_path / name, format="excel")


def test_missing_files_and_folders(tmp_path):
    for name in ("no.csv", "no.svm", "no.parquet"):
        with pytest.raises(SchemaError, match="no file"):
            read_table(tmp_path / name, target="y")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(SchemaError, match="cannot be read"):
        read_table(tmp_path / "d.csv", target="y")


def test_declared_labels_have_the_type_of_a_column():
    assert label_list("0,1") == [0, 1]
    assert label_list("-1, 1.5") == [-1, 1.5]
    assert label_list("no,yes") == ["no", "yes"]
    assert label_list('"a,b",c') == ["a,b", "c"]
    assert label_list("1,2,unknown") == ["1", "2", "unknown"]
    assert label_list("inf,1") == ["inf", "1"]
    with pytest.raises(ParameterError, match="empty label"):
        label_list("no,yes,")


def test_bounded_memory_for_large_files(tmp_path, monkeypatch):
    """A stream holds one block at a time, whatever the size of the file."""
    line = b"1 " + b" ".join(b"%d:0.5" % j for j in range(1, 200)) + b"\n"
    path = write(tmp_path, line * 2000)
    monkeypatch.setattr("dpsparse.io.streams.TEXT_BLOCK", 1 << 16)
    sizes = [X.nnz for X, _ in iter_svmlight(path, n_features=200)]
    assert sum(sizes) == 2000 * 199
    assert max(sizes) * 4 < 1 << 16


def test_one_object_does_not_decide_the_columns_of_json_lines(tmp_path):
    """Whichever comes first: another key in one row is refused, and not told."""
    rows = ['{"a": 1, "b": 2}', '{"b": 3, "a": null}', '{"a": 1, "b": 2, "diagnosis": 7}']
    path = tmp_path / "rows.jsonl"
    for order in (rows, rows[::-1]):
        path.write_text("\n".join(order))
        with pytest.raises(SchemaError, match="different keys") as error:
            read_columns(path)
        assert "diagnosis" not in str(error.value)
        found = read_columns(path, columns=["a", "diagnosis"])  # stated: absent is a gap
        assert sorted(map(str, found["diagnosis"])) == ["7", "None", "None"]
    path.write_text("\n".join(rows[:2]))
    assert {name: list(column) for name, column in read_columns(path).items()} == {
        "a": [1, None],
        "b": [2, 3],
    }


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", '[{"a": 1}, null]', "7"])
def test_a_json_file_holds_one_array_of_objects(text, tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(SchemaError, match="one array of JSON objects"):
        read_columns(path)
    path.write_text('[{"a": 1, "b": null}, {"b": 2, "a": 3}]')
    assert {name: list(column) for name, column in read_columns(path).items()} == {
        "a": [1, 3],
        "b": [None, 2],
    }


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_a_whole_number_of_any_length_is_a_cell(name, tmp_path):
    """Python reads no number of more than 4,300 digits, and one row refused the table."""
    rows = ['{"a": 7, "p": 1}', '{"a": ' + "9" * 5_000 + ', "p": ' + "1" * 5_000 + "}"]
    text = "\n".join(rows) if name == "t.jsonl" else f"[{','.join(rows)}]"
    found = read_columns(write(tmp_path, text, name))
    assert list(found["a"]) == [7, "9" * 5_000]
    assert len(set(person_names(column_cells(found["p"])))) == 2


@pytest.mark.parametrize("cells", ["[1, 2]", "[1]", "{}"])
def test_a_column_of_lists_is_read_whatever_their_lengths(cells, tmp_path):
    path = tmp_path / "lists.jsonl"
    path.write_text(f'{{"a": {cells}, "b": 1}}\n' * 3)
    assert len(read_columns(path)["a"]) == 3


def test_a_person_has_one_name_however_their_number_is_written():
    names = person_names(column_cells([7, 7.0, "7", " 7 ", "7.0", "17", "7.05"]))
    assert names.tolist() == ["7"] * 5 + ["17", "7.05"]
    names = person_names(
        column_cells(
            [10**16, 1e16, 1e16 + 2, -0.0, 0, "-0.0", Decimal("7.00"), 7, 2**53 + 1, 2.0**53]
        )
    )
    assert [names.tolist().index(name) for name in names] == [0, 0, 2, 3, 3, 3, 6, 6, 8, 9]


def test_names_in_bytes_are_those_of_texts():
    cells = [b"7", b" 7", b"7 ", b"7.0", b"M\xfcller", b"a\1"]
    for names in (np.array(cells), column_cells([*cells[:-1], np.bytes_(b"a\1")])):
        assert person_names(names).tolist() == ["7"] * 4 + ["Müller", "a\1\1"]
    for gap in (b"", b" ", b"nan", b"None"):
        with pytest.raises(SchemaError, match="names are missing"):
            person_names(np.array([b"a", gap, gap]))


def test_a_long_name_takes_no_room_of_the_others_and_is_told_from_all():
    """NumPy gives all names the room of the longest: one of a million letters took 4 MB a row, and the error of a table
    that did not fit any more told how many rows there are."""
    long = [
        "x" * 10**6,
        "x" * (10**6 - 1),
        "x" * 40,
        "x" * 39,
        "x" * 39 + "\0",
        "\ud800" * 50,
        "\udbff" * 50,
    ]
    names = person_names(column_cells(["a", *long, *long]))
    assert names.dtype.itemsize <= 200
    assert len(set(names.tolist())) == 1 + len(long)
    again = person_names(names)  # tables that were read have been here before
    assert len(set(again.tolist())) == 1 + len(long)


@pytest.mark.parametrize(
    "gap",
    [None, "", " ", math.nan, np.nan, "nan", "NULL", np.datetime64("NaT", "s"), Decimal("nan")],
)
def test_persons_without_a_name_are_not_one_person(gap):
    with pytest.raises(SchemaError, match="names are missing"):
        person_names(column_cells(["a", gap, gap]))


@pytest.mark.parametrize("cell", [{"a": 1, "b": 2}, [1], (1,), np.array([1, 2])])
def test_a_name_that_can_be_written_in_two_ways_is_no_name(cell):
    with pytest.raises(SchemaError, match="by numbers or by text"):
        person_names(column_cells([cell, "a"]))


@pytest.mark.parametrize(
    "cells", [[7.0, None, None], ["a", None, "b"]], ids=["floats", "dictionary"]
)
def test_a_gap_among_the_persons_of_a_file_is_seen_by_every_reader(cells, tmp_path):
    column = pa.array(cells)
    column = column if pa.types.is_floating(column.type) else column.dictionary_encode()
    table = pa.table({"p": column, "x": [1.0, 2.0, 3.0], "y": [0, 1, 1]})
    path = tmp_path / "persons.parquet"
    pq.write_table(table, path)
    with pytest.raises(SchemaError, match="names are missing"):
        read_table(path, target="y", person="p")
    with pytest.raises(SchemaError, match="names are missing"):
        person_names(read_columns(path)["p"])
