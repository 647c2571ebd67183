"""What a single cell is: a missing value, a number, a declared label.

Every reader, the command line and Python ask the functions of this file. They look at one cell at a time, together
with what was declared, so one row never decides what the cell of another row is, or whether a table is accepted.
No message shows a cell.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import numpy as np

from dpsparse._checks import array_of, decoded, objects_of, without_leaking_errors
from dpsparse.exceptions import NotNumericError, SchemaError

# The only list of words that stand for a missing value, in every reader and in Python. Declared labels and categories
# come first: where "NA" is declared, it is a label like any other.
MISSING_WORDS = frozenset({"", "NA", "NaN", "nan", "NULL", "null"})
ONE_WEIGHT_EACH = "sample_weight must hold one number per row of X, as a 1d array."
_DIGITS = 40  # of what stands for the name of a person that is as long or longer
# Python counts True among the real numbers, and neither decimals nor the True that pandas keeps among other cells.
_NUMBERS = (Real, Decimal, np.bool_)


def _no_target() -> SchemaError:
    return SchemaError(
        "Input y contains NaN or infinity, or missing cells; leave out rows without a target.",
        in_options="Some rows have no target; leave them out: --drop-missing-target.",
    )


def is_missing(cell: Any) -> bool:
    """Whether a cell holds no value: None, NaN, NaT, pandas.NA, or a text of `MISSING_WORDS`."""
    if isinstance(cell, str):
        return cell.strip() in MISSING_WORDS
    if cell is None or type(cell).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    try:
        return bool(cell != cell)  # NaN of any kind is not equal to itself
    except Exception:
        return False


def mark_missing(
    cells: np.ndarray, words: Collection[str], declared: Iterable[Any] = ()
) -> np.ndarray:
    """The column with a gap for every cell whose name is one of `words`: "none", or -9 in any of its spellings. A name
    that is `declared` stays. The type of what comes out depends on the type of the column alone."""
    names = {cell_name(word) for word in words} - {cell_name(name) for name in declared}
    if not names or cells.dtype.kind in "bmM":
        return cells
    if cells.dtype.kind == "f":
        numbers = [float(key) for name in names if isinstance(key := _number_key(name), float)]
        return np.where(np.isin(cells, numbers), np.nan, cells)
    return objects_of(None if cell_name(cell) in names else cell for cell in cells.tolist())


def column_cells(
    y: Any, otherwise: str = "y should be a 1d array: one target per row of X."
) -> np.ndarray:
    """The cells of one column, given as a list, an array, a series of pandas or polars, or an Arrow array; what is no
    column is refused with the sentence `otherwise`.

    NumPy would turn 1 beside "unknown" into a text, and 2**53 + 1 beside a float into another number. So lists are
    taken cell by cell.
    """
    return without_leaking_errors(otherwise, _column_cells, y)


def _column_cells(y: Any) -> np.ndarray:
    y = decoded(y)
    if np.ma.isMaskedArray(y):
        gaps, y = np.ma.getmaskarray(y), y.data.astype(object)
        y[gaps] = None
    if hasattr(y, "columns") and len(y.columns) == 1:  # a data frame
        y = y[y.columns[0]]
    if hasattr(y, "to_numpy"):
        y = array_of(y)
    elif isinstance(y, Sequence) and not isinstance(y, (str, bytes)):
        y = objects_of(y)
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError
    return np.asarray(y)


def sparse_entries(dense: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """indptr, indices and values of a table: the entries other than zero, NaN among them, a few times faster than SciPy
    finds them."""
    n, d = dense.shape
    there = dense != 0.0
    places = np.flatnonzero(there)  # thrice as fast on truth values as on numbers
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(there.sum(axis=1, dtype=np.int32), out=indptr[1:])
    return indptr, (places % d).astype(np.int32), dense.reshape(-1)[places]


# ---- names ----------------------------------------------------------------------------------------


def cell_name(cell: Any) -> str | None:
    """A text, number or date as a name, without blanks around it; None where a cell is none of these.

    1, 1.0, "1" and "1.0" have one name. NumPy writes 1.0 as a text where another cell of its array is one, and a file
    of floats has "1.0" where another has 1.
    """
    try:
        if isinstance(cell, str):
            text = str(cell).strip()
            if re.fullmatch(r"-?(0|[1-9][0-9]*)\.0", text):
                return str(int(text[:-2]))
            return _number_name(float(text)) if _is_float(text) else text
        if isinstance(cell, (bool, np.bool_)):
            return str(bool(cell))
        if isinstance(cell, Integral):
            return str(int(cell))
        if isinstance(cell, Decimal):  # which Python does not count among the real numbers
            whole = cell.adjusted() < 40 and cell == int(cell)  # 1e999999 has a million digits
            return str(int(cell)) if whole else repr(float(cell))
        if isinstance(cell, Real):
            return _number_name(float(cell))
        if hasattr(cell, "isoformat") and cell == cell:  # dates; NaT is not equal to itself
            return str(cell.isoformat())
    except Exception:  # integers too long to print, objects that lie
        return None
    return None


def _is_float(text: str) -> bool:
    """Whether a text is a float as Python and NumPy write it."""
    written = re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?", text)
    return written is not None and text == repr(float(text))


def _number_name(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def person_names(cells: np.ndarray) -> np.ndarray:
    """The person of every row, as text or as the numbers they are.

    "7", " 7", 7.0 and 7 are one person: two names for a person would halve the protection. Rows without a name are
    refused, as all of them would count as one person.
    """
    if cells.dtype.kind in "SO":  # texts of NumPy and HDF5, byte by byte
        cells = objects_of(
            cell.decode("latin-1") if isinstance(cell, bytes) else cell for cell in cells.tolist()
        )
    if cells.dtype.kind in "biufmM":
        names, missing = cells, np.asarray(cells != cells, bool)
    else:
        missing = np.array([is_missing(cell) for cell in cells.tolist()], bool)
        names = np.array([_person_name(cell) for cell in cells[~missing].tolist()], str)
        # A person who is called so, in any case, is refused rather than counted with all others.
        nobody = [word.lower() for word in (*MISSING_WORDS, "none", "n/a", "#n/a", "?")]
        missing = np.append(missing, np.isin(np.char.lower(names), nobody))
    if np.any(missing):
        raise SchemaError("groups must name the person of every row; some names are missing.")
    return names


def _person_name(cell: Any) -> str:
    name = cell_name(cell) if isinstance(cell, (str, *_NUMBERS)) else None
    if name is None and isinstance(cell, UUID):
        name = str(cell)
    if name is None:
        raise SchemaError("groups must name persons by numbers or by text.")
    if len(name) >= _DIGITS:
        # All names have the room of the longest in NumPy's arrays: one of a million letters would refuse the table.
        letters = name.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(letters, digest_size=_DIGITS // 2).hexdigest()
    # NumPy drops a NUL at the end of a text, and two persons would be one. No two names become one here.
    return "0" if name == "-0" else f"{name}\1" if name.endswith(("\0", "\1")) else name


# ---- numbers --------------------------------------------------------------------------------------


def read_numbers(y: Any) -> np.ndarray:
    """Targets as float64: numbers, or texts that read as numbers. Missing and infinite ones are refused."""
    cells = column_cells(y)
    refuse_complex(cells)
    try:
        numbers = to_numbers(cells)
    except ValueError:
        numbers = None
    if numbers is None:  # outside the handler, so that no log finds a cell behind the error
        raise NotNumericError(
            "y must be numeric (an argument must be a numeric string or a number); for labels take a classifier and "
            "declare Domain(classes=[0, 1]).",
            in_options="The target must be a number in every row; for labels state --classes 0,1.",
        )
    if not np.isfinite(numbers).all():
        raise _no_target()
    return numbers


def read_weights(weights: Any) -> np.ndarray:
    """Weights of rows as float64; missing and infinite ones are refused, as among targets."""
    cells = column_cells(weights, ONE_WEIGHT_EACH)
    refuse_complex(cells)
    numbers = np.asarray(without_leaking_errors(ONE_WEIGHT_EACH, to_numbers, cells))
    if not np.isfinite(numbers).all():
        raise SchemaError(
            "sample_weight contains NaN or infinity; give the rows without a weight a public constant."
        )
    return numbers


def to_numbers(cells: np.ndarray) -> np.ndarray:
    """Cells as float64, NaN for a missing one; ValueError where a cell is no number."""
    if cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    if cells.dtype.kind in "mM":  # whose list of cells may be one of whole numbers
        raise ValueError
    return np.array([_to_number(cell) for cell in cells.tolist()], np.float64)


def with_decimal_point(cells: np.ndarray) -> np.ndarray:
    """Cells whose texts such as 31.015,50 and 7,5 % are written 31015.50 and 7.5 %; all others as they are."""
    if cells.dtype.kind not in "OU":
        return cells
    return objects_of(_pointed(cell) if isinstance(cell, str) else cell for cell in cells.tolist())


def _pointed(text: str) -> str:
    # A number with a decimal comma, points between thousands, a sign, an exponent or a common unit.
    unit, number = r"(?:[%$€£]|USD|EUR|GBP)?", r"([0-9]{1,3}(?:\.[0-9]{3})+|[0-9]+)(?:,([0-9]+))?"
    pattern = rf"(\s*{unit}\s*[-+]?){number}((?:[eE][-+]?[0-9]+)?\s*{unit}\s*)"
    found = re.fullmatch(pattern, text) if len(text) < 64 else None
    if found is None:
        return text
    before, whole, fraction, after = found.groups(default="")
    return f"{before}{whole.replace('.', '')}{'.' * bool(fraction)}{fraction}{after}"


def _to_number(cell: Any) -> float:
    if is_missing(cell):
        return math.nan
    if not isinstance(cell, (str, *_NUMBERS)):
        raise ValueError
    try:
        return float(cell)
    except OverflowError:  # an integer beyond all floats
        return math.inf
    except Exception:
        raise ValueError from None


def refuse_complex(cells: np.ndarray) -> None:
    """Refuse complex numbers in the words of scikit-learn's contract."""
    if cells.dtype.kind == "c":
        raise SchemaError("Complex data not supported; pass real numbers in y.")


# ---- declared labels ------------------------------------------------------------------------------


def read_targets(cells: Any, classes: Any) -> np.ndarray:
    """Targets of a file in the declared type: labels as `classes` lists them, numbers where it is None.

    Where `classes` is "observed", the set of labels is declared public, and it decides: numbers if all are, else texts.
    """
    if classes is None:
        return read_numbers(cells)
    if not isinstance(classes, str):
        labels = np.asarray(classes)
        return np.asarray(labels[read_labels(cells, labels)])
    if any(is_missing(cell) for cell in cells):
        raise _no_target()
    try:
        return np.array(cells, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([str(cell).strip() for cell in cells])


def observed_labels(cells: np.ndarray) -> np.ndarray:
    """The sorted labels of a column whose set of labels was declared public."""
    refuse_complex(cells)
    labels = without_leaking_errors(
        "The labels of y are of mixed types.", np.unique, natural_type(cells)
    )
    if any(is_missing(label) for label in labels.tolist()):
        raise _no_target()
    return labels


def natural_type(cells: np.ndarray) -> np.ndarray:
    """Cells of a list in the type that they have together; only for labels that are public."""
    return cells if cells.dtype.kind != "O" else np.asarray(cells.tolist())


def read_labels(y: Any, labels: np.ndarray) -> np.ndarray:
    """The place of every cell among the declared `labels`; other cells are refused."""
    cells = column_cells(y)
    codes = label_codes(cells, labels)
    if np.any(codes < 0):
        refuse_complex(cells)
        if any(is_missing(cell) for cell in cells[codes < 0].tolist()):
            raise _no_target()
        raise SchemaError(
            "y holds a label that Domain.classes does not list; declare every label that may occur.",
            in_options="The target has a label that --classes does not list; state every label that may occur.",
        )
    return codes


def label_codes(cells: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The place of every cell among the declared `labels`, -1 where it is none of them.

    A cell is a label if it equals it, if it equals it without blanks around it, or if both read as the same number:
    1, 1.0, "1" and "1.0" are one label. So it does not matter in which type a table brings a label.
    """
    codes = np.full(len(cells), -1, np.int32)
    if any(cells.dtype.kind in kinds and labels.dtype.kind in kinds for kinds in ("biuf", "U")):
        order = np.argsort(labels)  # the quick way to most of them
        places = order[np.minimum(np.searchsorted(labels, cells, sorter=order), len(labels) - 1)]
        same = labels[places] == cells
        codes[same] = places[same]
    rest = np.flatnonzero(codes < 0)
    if len(rest):
        find = _LabelFinder(labels)
        texts: dict[str, int] = {}  # every different text is looked up once
        for i, cell in zip(rest.tolist(), cells[rest].tolist(), strict=True):
            if type(cell) is not str:
                codes[i] = find(cell)
                continue
            if cell not in texts:
                texts[cell] = find(cell)
            codes[i] = texts[cell]
    return codes


class _LabelFinder:
    """From a cell to the place of its label."""

    def __init__(self, labels: np.ndarray) -> None:
        self._places: dict[Any, int] = {label: k for k, label in enumerate(labels.tolist())}
        self._by_number: dict[Any, int] = {}
        for label, place in self._places.items():
            key = _number_key(label)
            if key is not None:
                # Of labels such as "1" and "01" the one that is written like the number stands for it, if there is one.
                plain = self._places.get(_plain_number(key), -1)
                self._by_number[key] = plain if key in self._by_number else place

    def __call__(self, cell: Any) -> int:
        if not isinstance(cell, (str, bytes, *_NUMBERS)):
            return -1
        try:
            found = self._places.get(cell)
            if found is None and isinstance(cell, (str, bytes)):
                found = self._places.get(cell.strip())
            # Spreadsheets keep whole numbers as floats, also beyond 2^53.
            if isinstance(cell, Integral) or (isinstance(cell, float) and cell.is_integer()):
                found = self._places.get(str(int(cell))) if found is None else found
            if found is None:
                found = self._by_number.get(_number_key(cell))
        except Exception:  # an integer too long to print, a number that cannot be compared
            return -1
        return -1 if found is None else found


def _number_key(cell: Any) -> Any:
    """What a cell reads as, a text for NaN; None where it is no number. True and the text "true" read as 1."""
    if isinstance(cell, bytes):
        return None
    if isinstance(cell, str) and cell.strip().lower() in ("true", "false"):
        return float(cell.strip().lower() == "true")
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    if math.isnan(number):
        return "nan"
    # From 2^53 on floats do not tell whole numbers apart.
    return number if math.isinf(number) or abs(number) < 2.0**53 else None


def _plain_number(key: Any) -> str:
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)
