"""What is public about the data, and the moment at which raw data becomes clipped rows.

`Domain` holds facts the user states without looking at private rows. `Domain.part` makes the
facts true row by row and returns a `Part`, of which `rows/` is made. Rows outside the bounds are
clipped silently: an exception would tell the world that such a row exists.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpsparse._cells import (
    ONE_WEIGHT_EACH,
    observed_labels,
    read_labels,
    read_numbers,
    read_weights,
)
from dpsparse._checks import (
    is_real,
    is_whole,
    refuse_large_labels,
    safe_repr,
    without_leaking_errors,
)
from dpsparse.domain.clipping import (
    HUGE,
    TINY,
    Part,
    by_person,
    cast,
    clipped_rows,
)
from dpsparse.exceptions import DomainError, SchemaError
from dpsparse.jit import NO_NUMBA, numba

OBSERVED = "observed"


@dataclass(frozen=True, repr=False)
class Domain:
    """Public facts about the private table; every bound is enforced row by row.

    Parameters
    ----------
    feature_bound : float or None, default=None
        Entries are clipped to ``[-feature_bound, feature_bound]``. None: not declared. `DPGradient*` then clip nothing,
        as they bring rows to length one themselves. Other methods clip entries to [-1, 1], and refuse a table with
        named columns until a bound is declared.
    row_norm : float or None, default=None
        Rows with a larger L2 norm are scaled down to it; a larger norm means more noise. None: not declared.
    target_bound : float or None, default=None
        Regression targets are clipped to ``[-target_bound, target_bound]``; noise is proportional to it.
    target_range : (float, float) or None, default=None
        Regression targets are clipped to ``[lowest, highest]`` and fitted from the middle of that range; noise is
        proportional to half its width, which `target_bound` then is. State one of the two.
    classes : sequence, "observed" or None, default=None
        Labels that may occur, in the order of `classes_`; positive weights raise the probability of the last of two.
        ``"observed"`` takes them from y and thereby declares that the set of labels in y is itself public. Do not use
        it when a class may be rare. None: not declared, which classifiers refuse.
    n_samples : int or None, default=None
        A public number of rows (the true one, or any stated guess). It scales steps, never noise.
        With ``unit="person"`` a number of persons.
    unit : {"row", "person"}, default="row"
        What the guarantee protects. With "person", ``fit(X, y, groups=ids)`` names the person of every row, and
        all rows of a person together add no more than one row may.
    rows_per_unit : int or None, default=None
        Largest number of rows of a person; of a person with more, a random choice is used. None uses all of them.
    bounds : dict or array of shape (n_features, 2), optional
        ``{"age": (0, 120), "income": (0, 1e6)}``, for every feature: numbers are clipped to their column's bounds and
        divided by the larger of them before everything else. Weights are stated for the columns as they are.
    categories : dict, optional
        The categories that may occur, by column: ``{"sex": ["f", "m"]}``. For `DPTablePreparer.from_domain`.
    fill : dict, optional
        Public constants for missing values, by column.
    weight_bound : float or None, default=None
        Weights of rows (``fit(X, y, sample_weight=w)``) are clipped to ``[0, weight_bound]``. Noise is that of rows of
        this weight, so a row of weight w counts as w/weight_bound of a row; without `sample_weight` all count in full.
    sources : dict, optional
        How a fact is known without looking at the rows, by name of the fact or column; shown on the privacy card.

    Examples
    --------
    >>> from dpsparse import Domain
    >>> Domain(classes=["no", "yes"], bounds={"age": (0, 120)}).bounds
    {'age': (0.0, 120.0)}
    """

    feature_bound: float | None = None
    row_norm: float | None = None
    target_bound: float | None = None
    classes: Sequence[Any] | str | None = None
    n_samples: int | None = None
    unit: str = "row"
    rows_per_unit: int | None = None
    target_range: tuple[float, float] | None = None
    bounds: Any = None
    categories: Mapping[str, Sequence[Any]] | None = None
    fill: Mapping[str, Any] | None = None
    sources: Mapping[str, str] | None = None
    weight_bound: float | None = None

    def __post_init__(self) -> None:
        self._check_columns()
        if self.target_range is not None:
            self._check_range()
        for name in ("feature_bound", "row_norm", "target_bound", "weight_bound"):
            value = getattr(self, name)
            if value is not None and not (is_real(value) and 0 < value < math.inf):
                raise _wrong(name, f"must be a positive finite number, got {safe_repr(value)}.")
            if value is not None and not TINY <= value <= HUGE:
                raise _wrong(
                    name,
                    f"must lie between 2**-100 and 2**100, got {safe_repr(value)}; give the data in another unit.",
                )
        n = self.n_samples
        if n is not None and not (is_whole(n) and n > 0):
            raise _wrong("n_samples", f"must be a positive whole number, got {safe_repr(n)}.")
        if self.unit not in ("row", "person"):
            raise DomainError(f"Domain.unit must be 'row' or 'person', got {safe_repr(self.unit)}.")
        m = self.rows_per_unit
        if m is not None and not (is_whole(m) and m > 0):
            raise _wrong("rows_per_unit", f"must be a positive whole number, got {safe_repr(m)}.")
        if m is not None and self.unit == "row":
            raise DomainError(
                "Domain.rows_per_unit is about persons; declare unit='person'.",
                in_options="--rows-per-unit is about persons; name their column: --person COLUMN.",
            )
        if isinstance(self.classes, str):
            if self.classes != OBSERVED:
                raise DomainError(
                    f"Domain.classes must be a list of labels or {OBSERVED!r}, got {safe_repr(self.classes)}."
                )
        elif self.classes is not None:
            labels = without_leaking_errors(
                lambda: _wrong("classes", "must list labels of one kind, whole numbers or text."),
                np.unique, np.asarray(self.classes),
            )  # fmt: skip
            if np.any(labels != labels):
                raise _wrong("classes", "must not list NaN; name the class by a text.")
            if len(labels) < 2 or len(labels) != len(self.classes):
                raise _wrong("classes", "must list at least two different labels.")
            refuse_large_labels(labels)
            declared = np.asarray(
                self.classes
            )  # in their order: positive weights speak for the last of two
            object.__setattr__(self, "classes", tuple(declared.tolist()))

    def _check_columns(self) -> None:
        """Facts by column, in a plain form; what is wrong is told by the name of the column."""
        if self.bounds is not None:
            pairs = dict(self.bounds) if isinstance(self.bounds, Mapping) else None
            if pairs is None:
                try:
                    rows = np.asarray(self.bounds, np.float64)
                    pairs = {str(j): tuple(pair) for j, pair in enumerate(rows.tolist())}
                except (TypeError, ValueError):
                    pairs = {"0": None}
            for name, pair in pairs.items():
                if not _is_range(pair) or max(map(abs, pair)) < TINY:
                    raise _wrong(
                        "bounds",
                        f"of column {name!r} must be two rising numbers, (lowest, highest).",
                    )
            plain = {name: (float(low), float(high)) for name, (low, high) in pairs.items()}
            by_name = isinstance(self.bounds, Mapping)
            object.__setattr__(self, "bounds", plain if by_name else tuple(plain.values()))
        for fact in ("categories", "fill", "sources"):
            value = getattr(self, fact)
            if value is not None and not isinstance(value, Mapping):
                raise DomainError(f"Domain.{fact} must be a dict with names of columns for keys.")
        for name, names in (self.categories or {}).items():
            listed = isinstance(names, (list, tuple, np.ndarray)) and len(names) > 0
            if not listed or len({str(each) for each in names}) < len(names):
                raise _wrong("categories", f"of column {name!r} must list different names.")
        for name, value in (self.fill or {}).items():
            if not isinstance(value, str) and not (is_real(value) and math.isfinite(value)):
                raise _wrong("fill", f"of column {name!r} must be a number or a text.")

    def entry_bound(self, undeclared: float = 1.0) -> float:
        """The declared bound on entries, or what a method takes where none is declared.

        Methods that need a bound take 1 and clip rows to it. Methods that bound rows themselves take infinity.
        """
        return undeclared if self.feature_bound is None else float(self.feature_bound)

    def longest_row(self, n_columns: int, undeclared: float = 1.0) -> float:
        """The largest L2 norm of a row on so many columns, from what is declared; `undeclared` as in `entry_bound`."""
        bound = self.entry_bound(undeclared) * math.sqrt(n_columns)
        return min(self.row_norm or math.inf, bound)

    def column_limits(self, names: Sequence[str] | None, n_features: int) -> np.ndarray | None:
        """(low, high) of every feature in the order of a table, or None where no bounds by column are declared."""
        if self.bounds is None:
            return None
        if isinstance(self.bounds, Mapping):
            if names is None:
                raise DomainError(
                    "Domain.bounds names columns, and X has no names; pass a data frame, or bounds in order.",
                    in_options="--bounds are for named columns (CSV, Parquet); this data has none.",
                )
            missing = [name for name in names if name not in self.bounds]
            if missing:
                shown = ", ".join(n if n.isidentifier() else "(unreadable)" for n in missing[:50])
                raise _wrong(
                    "bounds", f"lacks these columns: {shown}. Declare (lowest, highest) for each."
                )
            return np.array([self.bounds[name] for name in names], np.float64)
        if len(self.bounds) != n_features:
            raise DomainError(
                f"Domain.bounds has {len(self.bounds)} pairs for {n_features} columns."
            )
        return np.array(self.bounds, np.float64)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Domain:
        """The facts of a file: YAML, JSON or TOML."""
        from dpsparse.domain.file import read

        return read(path).domain

    def __repr__(self) -> str:
        """What was stated, as one would type it; a target bound that a range set is not repeated."""
        facts = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default and not (field.name == "target_bound" and self.target_range):
                facts.append(f"{field.name}={value!r}")
        return f"Domain({', '.join(facts)})"

    def _check_range(self) -> None:
        ends = self.target_range
        if not _is_range(ends):
            raise _wrong(
                "target_range",
                f"must be two rising numbers, (lowest, highest), got {safe_repr(ends)}.",
            )
        assert ends is not None
        low, high = float(ends[0]), float(ends[1])
        half = (high - low) / 2.0
        if self.target_bound not in (None, half):
            raise DomainError(
                "State Domain.target_range or Domain.target_bound, not both.",
                in_options="State target_range or target_bound, not both.",
            )
        object.__setattr__(self, "target_range", (low, high))
        object.__setattr__(self, "target_bound", half)

    @property
    def target_middle(self) -> float:
        """What is taken off every target first, and added to the intercept at the end."""
        return 0.0 if self.target_range is None else sum(self.target_range) / 2.0

    def require(self, name: str, method: str) -> Any:
        """The declared fact `name`, or an error that says how to declare it."""
        value = getattr(self, name)
        if value is None:
            # A range sets the bound as well, with less noise where zero is far off.
            name = "target_range" if name == "target_bound" else name
            example, typed = {  # in Python, and as an option
                "feature_bound": ("1.0", "1"),
                "row_norm": ("1.0", "1"),
                "classes": ("[0, 1]", "0,1"),
                "n_samples": ("10_000", "10000"),
                "target_range": ("(0.0, 10.0)", "0..10"),
                "weight_bound": ("5.0", "5"),
            }[name]
            raise DomainError(
                f"{method} needs the public fact Domain.{name}; declare it: Domain({name}={example}).",
                in_options=f"{method} needs a public fact; state {_option(name)} {typed}.",
            )
        return value

    def margin_bound(self, norm_bound: float) -> float:
        """Largest |x.w| for ||w||_1 <= norm_bound: feature_bound * norm_bound."""
        return float(self.require("feature_bound", "An L1 bound on the margin")) * norm_bound

    def class_labels(self, y: np.ndarray | None = None) -> np.ndarray:
        """The public labels, in the order of their declaration; `classes="observed"` sorts those of y."""
        classes = self.require("classes", "A classifier")
        if not isinstance(classes, str):
            return np.asarray(classes)
        if y is None:
            raise DomainError(
                'A plan without data needs the labels; declare them: Domain(classes=[0, 1]) instead of "observed".',
                in_options="A plan without data needs the labels: --classes 0,1.",
            )
        labels = observed_labels(y)
        if len(labels) < 2:
            raise DomainError(
                "y holds one class only; classification needs two. Declare both labels with "
                "Domain(classes=[...]) if the other one may occur.",
                in_options="The target has one class only; state both labels: --classes 0,1.",
            )
        refuse_large_labels(labels)
        return labels

    def worth(self, weights: Any, n_rows: int) -> np.ndarray | None:
        """How much every row counts, from 0 to 1 for a row of weight `weight_bound`; None where all count in full."""
        if weights is None:
            return None
        most = float(self.require("weight_bound", "sample_weight"))
        numbers = read_weights(weights)
        if len(numbers) != n_rows:
            raise SchemaError(ONE_WEIGHT_EACH)
        return cast(np.clip(numbers, 0.0, most) / most, 1.0)

    def part(
        self,
        X: Any,
        y: Any = None,
        *,
        labels: np.ndarray | None = None,
        groups: Any = None,
        weights: Any = None,
    ) -> Part:
        """Enforce every declared bound, row by row; the last moment at which raw data exists.

        Values are cast to float32 once, towards zero, and everything later reads these numbers.
        Targets become class codes (with `labels`) or numbers in [-1, 1], units of `target_bound`.
        Arrays of the caller are shared where nothing has to change. With `groups`, the person of every
        row, rows are sorted by person; who they are is not kept.
        """
        if numba is None:
            raise ImportError(NO_NUMBA)
        bounds = self.entry_bound(HUGE), self.row_norm or math.inf
        indptr, indices, values = clipped_rows(X, *bounds)
        if y is None:
            targets = np.zeros(len(indptr) - 1)
        elif labels is not None:
            targets = read_labels(y, labels)
        else:
            targets = read_numbers(y)
            if self.target_bound is not None:
                most = self.target_bound
                targets = np.clip(targets - self.target_middle, -most, most) / most
        if len(targets) != len(indptr) - 1:
            raise SchemaError("X and y have different numbers of rows; pass one target per row.")
        worth = self.worth(weights, len(targets))
        n_features = int(np.shape(X)[1])
        part = Part(indptr, indices, values, targets, n_features, worth=worth)
        if groups is None:
            return part
        order, starts = by_person(groups, len(part))
        return part.take(order, starts)


def _is_range(pair: Any) -> bool:
    """Whether it is two rising numbers of a size that the library works with."""
    sound = isinstance(pair, (tuple, list)) and len(pair) == 2 and all(map(is_real, pair))
    return sound and -HUGE <= pair[0] < pair[1] <= HUGE


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _wrong(name: str, rest: str) -> DomainError:
    """A fact that cannot be, under its name in Python and on the command line."""
    return DomainError(f"Domain.{name} {rest}", in_options=f"{_option(name)} {rest}")
