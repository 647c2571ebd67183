"""svmlight files at memory speed: a Numba parser over blocks of bytes.

    label index:value index:value ... # comment

Every number is the float64 nearest to its decimal, bit for bit what Python's float() gives:
up to 2^53 and 10^22 one division or product of two exact numbers is exact enough (Clinger);
up to 19 digits a product in double-double arithmetic decides unless the result lies within its
error (2^-96 of the value) of a tie; the remaining few go through float() itself.

A file is read in blocks, so memory is the matrix plus one block. A byte range selects the lines
whose first byte lies in it: ranges that tile a file read every line exactly once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from dpsparse._checks import without_leaking_errors
from dpsparse.exceptions import SchemaError
from dpsparse.io.files import COMPRESSIONS, open_bytes
from dpsparse.jit import njit

BLOCK = 1 << 22  # 4 MB: block and entries stay near the cache
LONGEST_LINE = 1 << 28
UNREADABLE = "Not a readable svmlight file"
_POWER = 290  # 10^e for |e| <= _POWER is a normal double-double

_OK, _BAD_INDEX, _BAD_ORDER, _BAD_TEXT = 0, 1, 2, 3
_MESSAGES = {
    _BAD_INDEX: "a feature index is outside 1..n_features (0..n_features-1 with zero_based=True); "
    "state the public width with n_features",
    _BAD_ORDER: "the feature indices of a line must rise",
    _BAD_TEXT: "a line is not of the form 'label index:value index:value'",
}


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    start: int = 0,
    stop: int | None = None,
) -> tuple[sp.csr_array, np.ndarray]:
    """Matrix and labels of a svmlight file (plain, .gz, .bz2, .xz).

    Parameters
    ----------
    path : path
        The file.
    n_features : int or None
        Public number of columns. None takes the largest index found and thereby declares it public.
    zero_based : bool
        Whether the first feature is 0; the format says 1.
    start, stop : int
        Only lines that begin in this range of (uncompressed) bytes.

    Returns
    -------
    X : csr_array of float64
        One row for each line.
    y : array of float64
        The labels.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpsparse.io import read_svmlight
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "table.svm")
    >>> _ = path.write_text("1 1:0.5 3:2\\n0 2:1\\n")
    >>> X, y = read_svmlight(path)
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, 0.0])
    >>> folder.cleanup()
    """
    return without_leaking_errors(
        f"{UNREADABLE}.", _read_whole, path, n_features, zero_based, start, stop
    )


def _read_whole(
    path: str | os.PathLike[str],
    n_features: int | None,
    zero_based: bool,
    start: int,
    stop: int | None,
) -> tuple[sp.csr_array, np.ndarray]:
    total = _plain_size(path)
    columns: np.ndarray = np.empty(0, _index_type(n_features))
    values = np.empty(0)
    counts, labels = [], []
    entries = 0
    for block in _line_blocks(path, start, stop, BLOCK):
        room = block.entries_at_most
        if entries + room > len(values):
            # By the file's size from what was read so far; pages not written cost no memory.
            expected = 1.02 * entries * (total - start) / max(block.position - start, 1)
            capacity = room + max(int(expected), entries + entries // 2)
            columns, values = _grown(columns, entries, capacity), _grown(values, entries, capacity)
        rows, found = block.parse(n_features, zero_based, columns[entries:], values[entries:])
        counts.append(rows[0])
        labels.append(rows[1])
        entries += found
    columns.resize(entries, refcheck=False)
    values.resize(entries, refcheck=False)
    y = np.concatenate(labels) if labels else np.zeros(0)
    width = n_features if n_features is not None else int(columns.max(initial=-1)) + 1
    return _matrix(counts, columns, values, width), y


def iter_svmlight(
    path: str | os.PathLike[str],
    *,
    n_features: int,
    zero_based: bool = False,
    start: int = 0,
    stop: int | None = None,
    block_bytes: int = BLOCK,
) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
    """The same file as a stream of matrices, one per block of bytes: memory stays bounded.

    Parameters
    ----------
    path : path
        The file.
    n_features : int
        Public number of columns.
    zero_based, start, stop : see `read_svmlight`
        How columns are counted, and which bytes to read.
    block_bytes : int, default=2**22
        Bytes of text to parse at a time.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpsparse.io import iter_svmlight
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "table.svm")
    >>> _ = path.write_text("1 1:0.5 3:2\\n0 2:1\\n")
    >>> [X.shape for X, y in iter_svmlight(path, n_features=3)]
    [(2, 3)]
    >>> folder.cleanup()
    """
    blocks = _line_blocks(path, start, stop, block_bytes)

    def next_part() -> tuple[sp.csr_array, np.ndarray] | None:
        block = next(blocks, None)
        if block is None:
            return None
        room = block.entries_at_most
        columns: np.ndarray = np.empty(room, _index_type(n_features))
        values = np.empty(room)
        (counts, y), entries = block.parse(n_features, zero_based, columns, values)
        return _matrix([counts], columns[:entries].copy(), values[:entries].copy(), n_features), y

    while (part := without_leaking_errors(f"{UNREADABLE}.", next_part)) is not None:
        yield part


def _matrix(
    counts: list[np.ndarray], columns: np.ndarray, values: np.ndarray, width: int
) -> sp.csr_array:
    indptr = np.zeros(1 + sum(map(len, counts)), np.int64)
    if counts:
        np.cumsum(np.concatenate(counts), out=indptr[1:])
    kind = np.int64 if indptr[-1] >= 2**31 else columns.dtype
    X = sp.csr_array(
        (values, columns.astype(kind, copy=False), indptr.astype(kind, copy=False)),
        shape=(len(indptr) - 1, width),
    )
    X.has_canonical_format = True
    return X


def _index_type(n_features: int | None) -> type:
    return np.int64 if n_features is not None and n_features >= 2**31 else np.int32


def _grown(array: np.ndarray, used: int, capacity: int) -> np.ndarray:
    out = np.empty(capacity, array.dtype)
    out[:used] = array[:used]
    return out


def _plain_size(path: str | os.PathLike[str]) -> int:
    """Bytes of an uncompressed file; a guess for a compressed one, only to size an array."""
    plain = Path(path).suffix.lower() not in COMPRESSIONS
    return Path(path).stat().st_size if plain and Path(path).is_file() else 0


@dataclass
class _Block:
    """Whole lines, `buffer[:size]`, the last byte a newline; `position` is where they begin."""

    buffer: np.ndarray
    size: int
    position: int

    @property
    def entries_at_most(self) -> int:
        return self.size // 4 + 1  # "1:1 " is the shortest

    def parse(
        self, n_features: int | None, zero_based: bool, columns: np.ndarray, values: np.ndarray
    ) -> tuple[tuple[np.ndarray, np.ndarray], int]:
        """((entries per row, labels), entries); columns and values are filled in place."""
        lines = int(np.count_nonzero(self.buffer[: self.size] == 10))
        counts, y = np.empty(lines, np.int64), np.empty(lines)
        hard = np.empty((self.entries_at_most + lines, 3), np.int64)
        limit = n_features if n_features is not None else np.iinfo(np.int32).max
        rows, entries, n_hard, status = _parse(
            self.buffer, self.size, limit, 0 if zero_based else 1, *_powers_of_ten(),
            columns, values, counts, y, hard,
        )  # fmt: skip
        if status != _OK:
            raise SchemaError(f"{UNREADABLE}: {_MESSAGES[status]}.")
        for at, begin, end in hard[:n_hard]:
            number = _slow_float(self.buffer[begin:end].tobytes())
            if at >= 0:
                values[at] = number
            else:
                y[-1 - at] = number
        return (counts[:rows].copy(), y[:rows].copy()), int(entries)


def _slow_float(token: bytes) -> float:
    try:
        if b"_" in token:
            raise ValueError
        return float(token)
    except ValueError:
        raise SchemaError(f"{UNREADABLE}: {_MESSAGES[_BAD_TEXT]}.") from None


def _line_blocks(
    path: str | os.PathLike[str], start: int, stop: int | None, block_bytes: int
) -> Iterator[_Block]:
    """The lines that begin in [start, stop), in blocks that share one buffer."""
    with open_bytes(path) as file:
        position = start
        if start > 0:  # the line that begins before `start` belongs to the range before
            file.seek(start - 1)
            position += len(file.readline(LONGEST_LINE)) - 1
        store = bytearray(block_bytes + 1)
        held = 0  # bytes of an unfinished line at the front of the store
        while stop is None or position < stop:
            with memoryview(store) as view:
                read = file.readinto(view[held:-1])  # type: ignore[attr-defined]
            size = held + read
            if read == 0:
                if held == 0:
                    return
                store[size] = 10  # the last line may lack its newline
                end = size = size + 1
            else:
                end = store.rfind(b"\n", held, size) + 1
            if end == 0:
                held = size
                if held == len(store) - 1:
                    if held > LONGEST_LINE:
                        raise SchemaError(f"{UNREADABLE}: a line exceeds {LONGEST_LINE} bytes.")
                    store = store + bytes(len(store))  # a new one: the old may still be seen
                continue
            last = False
            if stop is not None and position + end > stop:
                last = True
                end = store.find(b"\n", max(stop - position - 1, 0)) + 1
            yield _Block(np.frombuffer(store, np.uint8), end, position)
            if last:
                return
            position += end
            held = size - end
            store[:held] = store[end:size]


@cache
def _powers_of_ten() -> tuple[np.ndarray, np.ndarray]:
    """10^e as unevaluated sums high + low, e = -_POWER.._POWER; together good to 2^-106."""
    exact = [Fraction(10) ** e for e in range(-_POWER, _POWER + 1)]
    high = [float(x) for x in exact]
    low = [float(x - Fraction(h)) for x, h in zip(exact, high, strict=True)]
    return np.array(high), np.array(low)


@njit(cache=True)
def _parse(buffer, size, limit, base, high, low, columns, values, counts, y, hard):  # type: ignore[no-untyped-def]
    """Rows, entries, hard numbers and status; fills the arrays.

    Every line ends in a newline, so only the outermost loop watches the end of the block.
    """
    p, rows, entries, n_hard = 0, 0, 0, 0
    while p < size:
        p = _skip_blanks(buffer, p)
        if buffer[p] == 10 or buffer[p] == 35:  # '#': the rest of the line is a comment
            p = _skip_line(buffer, p)
            continue
        begin = p
        value, p, easy = _number(buffer, p, high, low)
        if not _ends_token(buffer[p]):
            return rows, entries, n_hard, _BAD_TEXT
        y[rows] = value
        if not easy:
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = -1 - rows, begin, p
            n_hard += 1
        first, last = entries, -1
        while True:
            p = _skip_blanks(buffer, p)
            if buffer[p] == 10 or buffer[p] == 35:
                break
            if buffer[p] == 113 and buffer[p + 1] == 105 and buffer[p + 2] == 100:
                while not _ends_token(buffer[p]):  # "qid:7" groups rows for ranking
                    p += 1
                continue
            index, p, status = _index(buffer, p, limit, base, last)
            if status != _OK:
                return rows, entries, n_hard, status
            begin = p
            value, p, easy = _number(buffer, p, high, low)
            if p == begin or not _ends_token(buffer[p]):
                return rows, entries, n_hard, _BAD_TEXT
            columns[entries], values[entries] = index, value
            if not easy:
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = entries, begin, p
                n_hard += 1
            last = index
            entries += 1
        p = _skip_line(buffer, p)  # with a comment at its end
        counts[rows] = entries - first
        rows += 1
    return rows, entries, n_hard, _OK


@njit(cache=True)
def _skip_blanks(buffer, p):  # type: ignore[no-untyped-def]
    while buffer[p] == 32 or buffer[p] == 9 or buffer[p] == 13:
        p += 1
    return p


@njit(cache=True)
def _skip_line(buffer, p):  # type: ignore[no-untyped-def]
    while buffer[p] != 10:
        p += 1
    return p + 1


@njit(cache=True)
def _index(buffer, p, limit, base, last):  # type: ignore[no-untyped-def]
    """(column, where its value begins, status); columns of a row rise."""
    index, begin = 0, p
    while 48 <= buffer[p] <= 57 and p - begin < 18:
        index = 10 * index + (buffer[p] - 48)
        p += 1
    if p == begin or buffer[p] != 58:
        return index, p, _BAD_TEXT
    index -= base
    if index < 0 or index >= limit:
        return index, p, _BAD_INDEX
    return index, p + 1, _OK if index > last else _BAD_ORDER


@njit(cache=True)
def _ends_token(byte):  # type: ignore[no-untyped-def]
    return byte == 32 or byte == 10 or byte == 9 or byte == 13 or byte == 35


@njit(cache=True)
def _number(buffer, p, high, low):  # type: ignore[no-untyped-def]
    """(value, end, whether value is exact); an inexact one is re-read by float()."""
    begin = p
    negative = buffer[p] == 45
    if buffer[p] == 45 or buffer[p] == 43:
        p += 1
    mantissa, digits, exponent, seen = np.uint64(0), 0, 0, 0
    while 48 <= buffer[p] <= 57:
        mantissa = mantissa * np.uint64(10) + np.uint64(buffer[p] - 48)
        digits += digits > 0 or buffer[p] != 48
        seen += 1
        p += 1
    if buffer[p] == 46:
        p += 1
        while 48 <= buffer[p] <= 57:
            mantissa = mantissa * np.uint64(10) + np.uint64(buffer[p] - 48)
            digits += digits > 0 or buffer[p] != 48
            exponent -= 1
            seen += 1
            p += 1
    if seen > 0 and (buffer[p] == 101 or buffer[p] == 69):
        q = p + 1
        down = buffer[q] == 45
        if buffer[q] == 45 or buffer[q] == 43:
            q += 1
        power, first = 0, q
        while 48 <= buffer[q] <= 57:
            power = min(10 * power + int(buffer[q]) - 48, 100000)
            q += 1
        if q == first:
            return 0.0, begin, True  # "1e" is not a number
        exponent += -power if down else power
        p = q
    if seen == 0 or digits > 19:  # words such as nan, and more digits than 64 bits hold
        while not _ends_token(buffer[p]):
            p += 1
        return 0.0, p, False
    value, exact = _scale(mantissa, exponent, high, low)
    return (-value if negative else value), p, exact


@njit(cache=True)
def _scale(mantissa, exponent, high, low):  # type: ignore[no-untyped-def]
    """mantissa * 10^exponent, and whether it is certainly the nearest double."""
    if mantissa == 0:
        return 0.0, True
    if mantissa <= np.uint64(1 << 53) and -22 <= exponent <= 22:
        exact = np.float64(mantissa)
        if exponent < 0:
            return exact / high[_POWER - exponent], True
        return exact * high[_POWER + exponent], True
    if exponent < -_POWER or exponent > _POWER - 20:
        return 0.0, False
    # mantissa = a + b exactly; (a + b) * (c + d) as a rounded sum x + rest
    a = np.float64(mantissa >> np.uint64(32)) * 4294967296.0
    b = np.float64(mantissa & np.uint64(0xFFFFFFFF))
    top = a + b
    b -= top - a
    c, d = high[_POWER + exponent], low[_POWER + exponent]
    product = top * c
    rest = _product_error(top, c, product) + (top * d + b * c)
    x = product + rest
    rest -= x - product
    # |error| < 2^-96 x: the sum rounds to x for certain unless rest is that close to half a gap
    slack = abs(x) * 2.0**-96
    return x, (x + (rest + slack) == x) and (x + (rest - slack) == x) and abs(x) > 1e-290


@njit(cache=True)
def _product_error(a, b, product):  # type: ignore[no-untyped-def]
    """a * b - product without rounding error (Dekker, Veltkamp)."""
    t = 134217729.0 * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = 134217729.0 * b
    b_high = t - (t - b)
    b_low = b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
