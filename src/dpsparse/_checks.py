"""Checks that every package uses: what is a number, and how foreign errors about private data are silenced.

scikit-learn, NumPy, pandas and pyarrow quote cells and count rows in their messages. So everything
touches private rows runs through `without_leaking_errors`: any error or warning of others ends there, and what
leaves is a sentence of ours, chosen by the types and shapes of the input, never by their text.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, Context
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.exceptions import ComplexWarning

from dpsparse.exceptions import DomainError, DPSparseError, ParameterError, SchemaError

IDENTIFIERS_ADD_NOISE = (
    "by their names these number rows or persons, and as features they add noise"
)
ADJACENCIES = ("add-remove", "replace-one")
EPSILONS = (1e-9, 1e6)  # beyond these the floats of the accountant have no meaning
DELTAS = (1e-100, 0.999)
# What pandas and Arrow raise for a cell that no object of Python can hold.
_NO_OBJECT = (ValueError, ArithmeticError, NotImplementedError)
P = ParamSpec("P")
T = TypeVar("T")


def did_you_mean(wrong: str, names: Sequence[Any], said: Iterable[object]) -> str:
    """ " Did you mean 'age'?" for a mistyped name of a column, or nothing.

    The first line of a file without a header is a person's row, and words look like names. `names` are taken for a
    header only if one of the names that the user `said` stands among them, in capitals or not, and all read like names
    (letters first, no number, not missing).
    """
    named = list(
        names[1:] if list(names[:1]) == [""] else names
    )  # pandas gives row numbers no name
    like_a_name = re.compile(r"[^\W\d][\w .\-]{0,39}")
    if not all(isinstance(name, str) and like_a_name.fullmatch(name) for name in named):
        return ""
    plain = {name.casefold(): name for name in named}
    if not {name.casefold() for name in said if isinstance(name, str)} & set(plain):
        return ""
    near = get_close_matches(wrong.casefold(), list(plain), n=1, cutoff=0.7)
    return f" Did you mean {plain[near[0]]!r}?" if near else ""


def identifiers(names: Iterable[str]) -> list[str]:
    """Columns that number rows or persons, by their names alone."""
    identifier = re.compile(
        r"(?i:row.?(names?|numbers?|nr|id)?|index|nr|no|idx|(case|patient|person|subject|record|pat|fall)(id|nr|no)|"
        r"id.?code|unnamed.*|id|id[ _.-].*|.*[ _.-](id|nr)|__index_level_\d+__)|[a-z]+I[dD]|id[A-Z]\w*"
    )
    return [name for name in names if identifier.fullmatch(name)]


def no_column(wrong: str, names: Sequence[Any], said: Iterable[object]) -> SchemaError:
    """A named column that a file does not have."""
    near = did_you_mean(wrong, names, said)
    return SchemaError(
        f"There is no column {wrong!r}.{near} The first line of a CSV or Excel file must name the columns."
    )


def safe_repr(value: object) -> str:
    """A parameter as refusals show it: plain numbers and short texts as they are, anything else by its type.

    `plan(X)` for `plan(n_features)` is a slip of the first hour, and the repr of a table shows rows and counts them.
    """
    if value is None or is_real(value) or isinstance(value, bool):
        return repr(value)
    if isinstance(value, str) and len(value) <= 80:
        return repr(value)
    if type(value) is tuple and len(value) <= 3:
        return f"({', '.join(map(safe_repr, value))})"
    return f"an object of type {type(value).__name__}"


# Column names and labels come from files. A terminal obeys control characters in them (colours, cursor, title), and a
# line break would begin a line that looks like one of ours: what a name holds is shown and never obeyed.


def show_name(name: object) -> str:
    """A public name on one line; what is not printable is written as \\u001b, as in JSON."""
    return "".join(c if c.isprintable() else _escaped(c) for c in str(name))


def show_text(text: str, *, ascii_only: bool = False) -> str:
    """A text whose line breaks are its own; everything else as in `show_name`. JSON stays the same JSON."""
    shown = "\n".join(map(show_name, text.split("\n")))
    return "".join(c if c.isascii() else _escaped(c) for c in shown) if ascii_only else shown


def _escaped(character: str) -> str:
    halves = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{halves[i : i + 4]}" for i in range(0, len(halves), 4))


def show_number(value: float, digits: int = 6) -> str:
    """A number in few digits: 1 rather than 1.0, 1e-6 rather than 1e-06."""
    return _without_zeros(f"{value:.{digits}g}")


def rounded_up(value: float, digits: int = 6) -> str:
    """A number of a promise in few digits, rounded up: what is printed never understates a loss."""
    if len(repr(value)) > digits + 2:
        value = float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(value))
    return _without_zeros(repr(value))


def _without_zeros(text: str) -> str:
    return re.sub(r"e([+-])0*", lambda sign: f"e{sign[1].strip('+')}", text.removesuffix(".0"))


def is_whole(value: object) -> bool:
    """A whole number of Python or NumPy; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: object) -> bool:
    """A real number of Python or NumPy, NaN and infinity included; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """A real number that is not NaN."""
    return is_real(value) and not math.isnan(value)


def check_positive(name: str, value: Any) -> None:
    """Refuse anything but a number above zero (infinity included)."""
    if not is_number(value) or not value > 0:
        raise ParameterError(f"{name} must be a positive number, got {safe_repr(value)}.")


def check_count(name: str, value: Any, *, optional: bool = False) -> None:
    """Refuse anything but a whole number of at least one."""
    if optional and value is None:
        return
    if not is_whole(value) or value < 1:
        also = " or None" if optional else ""
        raise ParameterError(
            f"{name} must be a whole number of at least 1{also}, got {safe_repr(value)}."
        )


def check_width(value: Any) -> None:
    """Refuse anything but a number of columns; a table or a list of names is a likely slip."""
    if hasattr(value, "__len__") and not isinstance(value, str):
        raise ParameterError(
            "plan takes the number of columns, such as plan(X.shape[1]); it needs no data."
        )
    check_count("n_features", value)


def check_share(name: str, value: Any, remedy: str = "") -> None:
    """Refuse anything but a number strictly between 0 and 1."""
    if not is_number(value) or not 0.0 < value < 1.0:
        hint = f"; {remedy}" if remedy else ""
        raise ParameterError(
            f"{name} must lie strictly between 0 and 1, got {safe_repr(value)}{hint}."
        )


def check_epsilon(value: Any, exact: str = "non-private model") -> None:
    """Refuse what is no price; `exact` is what epsilon = infinity gives."""
    low, high = EPSILONS
    if not is_number(value) or not value > 0:
        rest = f"epsilon must be a positive number, got {safe_repr(value)}"
    elif not low <= value <= high and not math.isinf(value):
        rest = f"epsilon must lie between {show_number(low)} and {show_number(high)}, got {safe_repr(value)}"
    else:
        return
    raise ParameterError(
        f"{rest}; use math.inf for the {exact}.",
        in_options=f"{rest}; --epsilon inf is the {exact}.",
    )


def check_delta(value: Any) -> None:
    """Refuse what is no small probability."""
    check_share("delta", value, "try 1e-6")
    low, high = DELTAS
    if not low <= value <= high:
        raise ParameterError(
            f"delta must lie between {show_number(low)} and {show_number(high)}, got {safe_repr(value)}; try 1e-6."
        )


def check_terms(
    epsilon: Any, delta: Any, adjacency: Any, ledger: Any = None, exact: str = "non-private model"
) -> None:
    """Refuse terms under which nothing can be released; `exact` is what epsilon = infinity gives."""
    check_epsilon(epsilon, exact)
    check_delta(delta)
    check_choice("adjacency", adjacency, ADJACENCIES)
    if ledger is not None and not hasattr(ledger, "reserve"):
        raise ParameterError(
            "ledger must be a dpsparse.Ledger or None; open one with Ledger(path)."
        )


def refuse_large_labels(labels: np.ndarray) -> None:
    """Refuse whole-number labels from 2^53 on. Where one label of a table is a float NumPy makes floats of all of them,
    and 2^53 + 1 becomes 2^53: one row would change the classes of others."""
    if labels.dtype.kind in "iuO" and any(is_whole(v) and abs(v) >= 2**53 for v in labels.tolist()):
        raise DomainError(
            "Labels that are whole numbers must be below 2**53; name the classes by text."
        )


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse anything that is not one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(
            f"{name} must be one of {', '.join(map(repr, choices))}; got {safe_repr(value)}."
        )


def without_leaking_errors(
    explain: str | Callable[[], Exception],
    work: Callable[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """The result of `work`, which reads private data; every error is replaced by one of our own.

    `explain` is the sentence, or a function that looks at types and shapes and returns the error
    to raise. Our own errors pass, without the foreign ones they may carry along as context: the
    new error is raised outside every handler, so no debugger or log finds a cell behind it.
    """
    error: Exception
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", ComplexWarning)  # values would be lost
            return work(*args, **kwargs)
    except DPSparseError as ours:
        error = ours
    except MemoryError:  # NumPy's tells the number of rows
        error = MemoryError("There is not enough memory for this data.")
    except Exception:
        error = _explained(explain)
    error.__context__ = error.__cause__ = None
    raise error


def _explained(explain: str | Callable[[], Exception]) -> Exception:
    try:
        return SchemaError(explain) if isinstance(explain, str) else explain()
    except Exception:
        return SchemaError("The data cannot be read as a table of numbers with targets.")


def array_of(column: Any) -> np.ndarray:
    """A column of pandas, polars or Arrow as an array in which every cell is what it is without the other rows.

    Their `to_numpy` turns a whole column of integers into floats where *one* value is missing, and integers above 2^53
    are then no longer what they were, in all rows: so one row would change the cells of others. So what comes out as
    floats and was not declared so is taken cell by cell. And an Arrow array (or batch) with a missing value is refused
    by `to_numpy` unless it may be copied: one row would decide whether a table can be read. So would a time that no
    object of Python can hold: a nanosecond, which is cut off, or the end of 9999 in a zone where it is 10000 already,
    which is missing.
    """
    column = decoded(column)
    inner = getattr(column, "array", column)  # of a pandas series or index
    if hasattr(inner, "codes") and hasattr(inner, "categories"):
        return _named_by_codes(np.asarray(inner.codes), array_of(inner.categories))
    may_copy = {"zero_copy_only": False} if hasattr(column, "buffers") else {}
    try:
        found = np.asarray(column.to_numpy(**may_copy))
    except _NO_OBJECT:
        return objects_of(_cell(inner, i) for i in range(len(inner)))
    kind = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    if found.dtype.kind != "f" or kind.startswith(("float", "double", "halffloat")):
        return found
    return objects_of(column.to_pylist() if hasattr(column, "to_pylist") else column.to_list())


def _cell(column: Any, i: int) -> Any:
    """One cell of pandas or Arrow as `to_numpy` gives it, or as much of it as Python can hold."""
    try:
        cell = column[i]
        return cell.as_py() if hasattr(cell, "as_py") else cell
    except _NO_OBJECT:
        return None


def decoded(data: Any) -> Any:
    """An array or table of Arrow without dictionaries; the rows of a lazy frame of polars or of a DuckDB relation;
    anything else as it is.

    NumPy gets the *last category of the dictionary* for every missing value of a chunked column that is encoded by one
    (a categorical of pandas in a Parquet file), so the row with that category would decide the cells of others.
    """
    if hasattr(data, "collect_batches"):
        return data.collect()
    if hasattr(data, "to_arrow_table"):
        data = data.to_arrow_table()
    if not type(data).__module__.startswith("pyarrow"):
        return data
    if hasattr(data, "type"):
        return data.cast(data.type.value_type) if hasattr(data.type, "index_type") else data
    if hasattr(data, "set_column"):
        for j, field in enumerate(data.schema):
            if hasattr(field.type, "index_type"):
                data = data.set_column(j, field.name, data.column(j).cast(field.type.value_type))
    return data


def _named_by_codes(codes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Cells of a pandas categorical, whose own list of cells has floats for integers once a value is missing."""
    if len(known) and codes.min(initial=0) >= 0:
        return np.asarray(known[codes])
    if len(known) and known.dtype.kind in "mM":
        return np.where(codes < 0, np.array("NaT", known.dtype), known[codes])
    return objects_of(None if code < 0 else known[code] for code in codes)


def objects_of(cells: Iterable[Any]) -> np.ndarray:
    """Cells one by one: NumPy would make a table of lists that are equally long, in all rows."""
    cells = list(cells)
    out = np.empty(len(cells), object)
    for i, cell in enumerate(cells):
        out[i] = cell
    return out
