"""What an engine on other machines does to a part there, and what it brings back: Dask and Spark use the same tasks.

A task is a pure function of parts and released numbers, so it may run twice, or again after a machine was lost. It
compares the digest of its part with that of the first load; a source that changed is refused.

A task never raises: engines log the arguments or the text of what failed, and these are private. It returns a refusal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse._checks import decoded
from dpsparse.domain.clipping import Part
from dpsparse.exceptions import ClusterError, DPSparseError, SourceChangedError
from dpsparse.rows.spool import size_of
from dpsparse.threads import using_cores


@dataclass(frozen=True, eq=False, repr=False)
class Held:
    """A part, or what was made of it, on its worker, and the digest of the rows it comes from."""

    value: Any
    digest: bytes
    names: np.ndarray | None = None  # of persons, where they were loaded with the rows


@dataclass(frozen=True)
class Refusal:
    """Why a task has no result, as a kind of error of ours and its text, which quotes no value."""

    kind: type[DPSparseError]
    text: str


def guarded(n_cores: int, task: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a task, or a refusal; others may have the rest of the machine."""
    try:
        with using_cores(n_cores):
            return task(*arguments)
    except DPSparseError as error:
        return Refusal(type(error), str(error))
    except MemoryError:  # its text would tell the shape of a part
        pass
    except Exception as error:
        return Refusal(ClusterError, f"A task failed on a worker ({type(error).__name__}).")
    raise MemoryError  # outside the handler, or the one with the text would travel behind it


def accepted(results: Iterable[Any]) -> list[Any]:
    """All results, or the error of the first refusal: nothing of a half-finished sum is kept."""
    results = list(results)
    for result in results:
        if isinstance(result, Refusal):
            raise result.kind(result.text)
    return results


def held(part: Part, names: np.ndarray | None = None) -> Held:
    """A part that was just loaded, with the digest of all its numbers; keyed by nothing, and never shown."""
    found = hashlib.blake2b(digest_size=16)
    arrays = [part.indptr, part.indices, part.values, part.targets]
    if part.worth is not None:
        arrays.append(part.worth)
    for array in arrays:
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return Held(part, found.digest(), names)


def joint_digest(digests: Sequence[bytes]) -> bytes:
    """Of a part to which rows of several came."""
    return hashlib.blake2b(b"".join(digests), digest_size=16).digest()


def checked(one: Any, digest: bytes) -> Any:
    """The part of the first load."""
    accepted([one])
    if one.digest != digest:
        raise SourceChangedError(
            "A part of the rows was loaded again and is not what it was: its source has changed. Write the rows to "
            "files that nobody changes, and fit anew."
        )
    return one.value


def facts(one: Any) -> tuple[bytes, int, int]:
    """The digest of the first load, the number of rows, and their bytes."""
    accepted([one])
    return one.digest, len(one.value), size_of(one.value)


def made(f: Callable[..., Any], own: tuple[Any, ...], digest: bytes, one: Any) -> Held:
    """f(part), under the digest of the part."""
    return Held(f(checked(one, digest), *own), digest)


def summed(
    add: Callable[[Any, np.ndarray], None],
    shape: tuple[int, ...],
    pairs: Iterable[tuple[bytes, Any]],
) -> np.ndarray:
    """What several parts, each with its digest, add to a sum."""
    out = np.zeros(shape, np.int64)
    for digest, one in pairs:
        add(checked(one, digest), out)
    return out


def collected(f: Callable[[Any], Any], digest: bytes, one: Any) -> Any:
    """f(part)."""
    return f(checked(one, digest))


def met(f: Callable[[list[Any]], Any], digest: bytes, pairs: Iterable[tuple[bytes, Any]]) -> Held:
    """A new part of the pieces of others."""
    return Held(f([checked(piece, own) for own, piece in pairs]), digest)


def names_of(names: Any) -> np.ndarray:
    """One name a row as an array; a list keeps its numbers and texts apart, and what is masked stays missing."""
    names = decoded(names)
    if np.ma.isMaskedArray(names):
        names, gaps = names.data.astype(object), np.ma.getmaskarray(names)
        names[gaps] = None
    return np.ravel(np.asarray(names, None if hasattr(names, "dtype") else object))


def together(parts: Sequence[np.ndarray]) -> Any:
    """The names of all parts. Where their types differ as cells of their own: NumPy would round some of them, and a
    time would be a number without its unit."""
    if len({own.dtype for own in parts}) == 1:
        return np.concatenate(parts)
    return [name for own in parts for name in own]
