"""From a name to (X, y): find the file, check it, parse it, scale it by public constants.

Files come from the folder in DPSPARSE_DATA (default: shared/data beside the checkout), else from the
download cache. A file whose checksum differs from the registry is refused.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import scipy.sparse as sp

from dpsparse.exceptions import SchemaError
from papers_data.registry import Dataset, info

VARIABLE = "DPSPARSE_DATA"
_PARSER = 1  # of the table parsers; part of the name of what the cache keeps
_DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "data"  # beside a source checkout


def data_folder() -> Path:
    """The folder of data files: DPSPARSE_DATA, or shared/data beside the checkout."""
    return Path(os.environ.get(VARIABLE) or _DEFAULT)


def cache_folder() -> Path:
    """Where downloads and reconstructions are kept: DPSPARSE_CACHE, or the user's cache folder."""
    if os.environ.get("DPSPARSE_CACHE"):
        return Path(os.environ["DPSPARSE_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpsparse"


def load(name: str, *, scaled: bool = False) -> tuple[sp.csr_array, np.ndarray]:
    """Features and targets of the data set `name`.

    Parameters
    ----------
    name : str
        One of `names()`.
    scaled : bool, default=False
        Bring entries into [-1, 1] by the public constants of `info(name).bounds`; data sets whose
        bounds are "none" come back unscaled. False gives the values of the source file.

    Returns
    -------
    X : csr_array of float64, shape (n_samples, n_features)
    y : codes 0/1 (binary), whole labels (multiclass) or float targets (regression)
    """
    dataset = info(name)
    if dataset.task == "text":
        raise SchemaError(f"{name} is text; use papers_data.load_newsgroups_bigrams().")
    path = find_file(dataset)
    X, y = read_file(dataset, path)
    if X.shape != (dataset.n_samples, dataset.n_features):
        raise SchemaError(
            f"{path.name} has shape {X.shape}, not ({dataset.n_samples}, {dataset.n_features}): "
            f"it is not the data set {name!r}."
        )
    return (_scale(name, X) if scaled else X), y


def find_file(dataset: Dataset) -> Path:
    """The checked local file of `dataset`; plain, .bz2 and .xz forms of its name are accepted."""
    stem = dataset.file.removesuffix(".xz")
    for folder in (data_folder(), cache_folder()):
        for candidate in (dataset.file, stem, stem + ".bz2", stem + ".xz"):
            path = folder / candidate
            if path.is_file():
                if candidate == dataset.file and dataset.sha256 is not None:
                    check_sha256(path, dataset.sha256)
                return path
    remedy = f"; it comes from {dataset.home}" if dataset.home else ""
    raise SchemaError(
        f"{dataset.file} is not in {data_folder()}; set the environment variable {VARIABLE} to the "
        f"folder that holds it{remedy}."
    )


def is_here(name: str) -> bool:
    """Whether the file of a data set is on this machine."""
    try:
        find_file(info(name))
    except SchemaError:
        return False
    return True


def check_sha256(path: Path, expected: str) -> None:
    """Refuse a file whose SHA-256 is not `expected`."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise SchemaError(
            f"{path.name} has SHA-256 {found}, expected {expected}: the file is damaged or another one."
        )


def read_file(dataset: Dataset, path: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Parse `path` in the format of `dataset`, whatever its number of rows."""
    if dataset.name in _TABLES:
        return _remembered(dataset, path, _TABLES[dataset.name])
    if ".csv" in dataset.file:
        return _table(path, dataset.target_column)
    from dpsparse.io import read_table

    table = read_table(path, n_features=dataset.n_features, format="svmlight")
    X, y = table.X, np.asarray(table.y)
    if dataset.positive is not None:
        y = (y == dataset.positive).astype(np.int64)
    elif dataset.task != "regression":
        y = y.astype(np.int64)
    return X, y


def _remembered(
    dataset: Dataset, path: Path, parse: Callable[[Path], tuple[sp.csr_array, np.ndarray]]
) -> tuple[sp.csr_array, np.ndarray]:
    """The parsed table, kept in the cache folder: text of half a million rows takes many seconds."""
    if dataset.sha256 is None or path.name != dataset.file or path.stat().st_size < 500_000:
        return parse(path)
    kept = cache_folder() / f"{dataset.name}-{dataset.sha256[:16]}-v{_PARSER}.npz"
    if kept.is_file():
        with np.load(kept) as saved:
            shape = tuple(saved["shape"].tolist())
            X = sp.csr_array((saved["data"], saved["indices"], saved["indptr"]), shape=shape)
            return X, saved["y"]
    X, y = parse(path)
    save_arrays(kept, data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape), y=y)
    return X, y


def save_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Write an .npz beside the target, then rename: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".npz")
    with os.fdopen(handle, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    Path(name).replace(path)


# ---- tables -------------------------------------------------------------------------------------


def _open(path: Path) -> IO[str]:
    if path.suffix == ".xz":
        return cast(IO[str], lzma.open(path, "rt", encoding="latin-1"))
    return path.open(encoding="latin-1")


def _rows(path: Path, *, skip: int, converters: Any = None) -> np.ndarray:
    with _open(path) as file:
        return np.loadtxt(file, delimiter=",", skiprows=skip, ndmin=2, converters=converters)


def _table(path: Path, target: int) -> tuple[sp.csr_array, np.ndarray]:
    rows = _rows(path, skip=1)
    return sp.csr_array(np.delete(rows, target, axis=1)), rows[:, target].copy()


def _blogfeedback(path: Path) -> tuple[sp.csr_array, np.ndarray]:
    rows = _rows(path, skip=0)
    return sp.csr_array(rows[:, :-1]), rows[:, -1].copy()


def _communities(path: Path) -> tuple[sp.csr_array, np.ndarray]:
    def number(text: str) -> float:
        try:
            return float(text)
        except ValueError:  # "?" and names
            return 0.0

    rows = _rows(path, skip=1, converters=number)
    return sp.csr_array(rows[:, 5:-1]), rows[:, -1].copy()


def _residential(path: Path) -> tuple[sp.csr_array, np.ndarray]:
    rows = _rows(path, skip=2)
    return sp.csr_array(rows[:, 4:-2]), rows[:, -2] - rows[:, -1]


def _covtype(path: Path) -> tuple[sp.csr_array, np.ndarray]:
    rows = _rows(path, skip=1)
    return sp.csr_array(rows[:, :-1]), (rows[:, -1] == 2).astype(np.int64)


def _kddcup99(path: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Numbers, then one-hot protocol, service and flag; a value outside the public lists is all zero."""
    known = json.loads(Path(__file__).with_name("kddcup99.json").read_text())
    lists = [known["protocols"], known["services"], known["flags"]]
    words = dict(enumerate(lists, 1)) | {41: ["normal.", *known["denial_of_service"]]}
    tables = {column: {w: float(i) for i, w in enumerate(ws)} for column, ws in words.items()}
    rows = _rows(
        path,
        skip=0,
        converters={c: (lambda text, t=t: t.get(text, -1.0)) for c, t in tables.items()},
    )
    rows = rows[rows[:, 41] >= 0]
    numbers = np.delete(rows, list(words), axis=1)
    coded = [rows[:, [c]] == np.arange(len(words[c])) for c in (1, 2, 3)]
    return sp.csr_array(np.hstack([numbers, *coded])), (rows[:, 41] == 0).astype(np.int64)


_TABLES: dict[str, Callable[[Path], tuple[sp.csr_array, np.ndarray]]] = {
    "blogfeedback": _blogfeedback,
    "communities": _communities,
    "covtype": _covtype,
    "kddcup99": _kddcup99,
    "residential": _residential,
}

# ---- public scales ------------------------------------------------------------------------------

# Ranges of the ten measurements of covtype as its documentation and physics give them: metres above
# sea level, azimuth, slope, distances in metres, hill shade 0..255.
_COVTYPE_LOW = (1800, 0, 0, 0, -500, 0, 0, 0, 0, 0)
_COVTYPE_HIGH = (4000, 360, 90, 1500, 700, 7500, 255, 255, 255, 7500)
# Numeric columns of KDD Cup 99 by position: rates and flags end at 1, windows at 511 and 255, the
# rest are bytes, seconds and counts without a documented end.
_KDD_MAXIMA = dict.fromkeys((*range(21, 28), *range(30, 38), 3, 8, 10, 16, 17, 18), 1.0) | {
    19: 511.0, 20: 511.0, 28: 255.0, 29: 255.0, 4: 3.0, 5: 3.0, 11: 2.0,
}  # fmt: skip
_KDD_NUMBERS = 38


def _scale(name: str, X: sp.csr_array) -> sp.csr_array:
    if name.startswith("splice"):
        return sp.csr_array((X.toarray() - 2.5) / 1.5)
    X = X.copy()
    if name == "phishing":
        X.data = np.minimum(X.data * math.sqrt(30.0), 1.0)
    elif name == "colon-cancer":
        X.data = np.clip(X.data, -3.0, 3.0) / 3.0
    elif name == "news20-multiclass":
        norms = np.sqrt(X.multiply(X).sum(axis=1))
        X.data /= np.repeat(np.maximum(norms, np.finfo(float).tiny), np.diff(X.indptr))
    elif name == "covtype":
        dense = X.toarray()
        low, high = np.array(_COVTYPE_LOW, float), np.array(_COVTYPE_HIGH, float)
        dense[:, :10] = np.clip(2.0 * (dense[:, :10] - low) / (high - low) - 1.0, -1.0, 1.0)
        return sp.csr_array(dense)
    elif name == "kddcup99":
        maxima = np.ones(X.shape[1])
        counts = np.zeros(X.shape[1], bool)
        for column in range(_KDD_NUMBERS):
            maxima[column] = _KDD_MAXIMA.get(column, math.log1p(1e9))
            counts[column] = column not in _KDD_MAXIMA
        values = np.where(counts[X.indices], np.log1p(X.data), X.data)
        X.data = np.minimum(values / maxima[X.indices], 1.0)
    return X
