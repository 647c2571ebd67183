"""Sums with few entries: what a row adds is a short vector, or yes and no; of a person the mean over their rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpsparse.exceptions import ParameterError
from dpsparse.rows import kernels
from dpsparse.rows.parts import Parts
from dpsparse.rows.persons import means
from dpsparse.rows.query import Query, units_in_one
from dpsparse.sensitivity import count_below

LONGEST = 2**20  # numbers of a row whose squares are added right enough


def short_sum(
    parts: Parts,
    contributions: Callable[[Any], np.ndarray],
    size: int,
    bound: float,
    lemma: Callable[[str], Any],
    positive: bool = False,
) -> Query:
    """The sum of `contributions`, an array with a line of `size` numbers and norm at most `bound` for every row."""
    if size > LONGEST:
        raise ParameterError(f"More than {LONGEST} classes are not supported.")

    def whole(unit: float) -> np.ndarray:
        return parts.sum((size,), partial(_add_short, contributions, unit, bound, positive))

    return Query((size,), lemma, whole)


def count(parts: Parts, answers: Callable[[Any], np.ndarray]) -> Query:
    """How many rows a yes-or-no question holds for: every row adds one whole number or none, and a person
    the share of their rows."""

    def whole(unit: float) -> np.ndarray:
        return parts.sum((1,), partial(_add_count, answers, units_in_one(unit)))

    return Query((1,), count_below, whole)


def _add_short(
    contributions: Callable[[Any], np.ndarray],
    unit: float,
    bound: float,
    positive: bool,
    part: Any,
    out: np.ndarray,
) -> None:
    kernels.short_sum(means(part.starts, contributions(part)), unit, bound, positive, out)


def _add_count(answers: Callable[[Any], np.ndarray], one: int, part: Any, out: np.ndarray) -> None:
    found, first = answers(part), part.starts
    if first is None:
        out += np.array([np.count_nonzero(found)]) * one  # arrays wrap around, and noise hides it
    else:
        shares = np.add.reduceat(found.astype(np.int64), first[:-1]) / np.diff(first)
        out[0] += int(np.sum((shares * one).astype(np.int64)))
