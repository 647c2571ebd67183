"""`DPTablePreparer`: a table of mixed columns, each prepared as its declared fact says.

    "auto"              whether its cells are numbers, dates or categories is learnt privately, then as below
    "number", "date"    scale, centre and missing values learnt privately
    (low, high)         a number with public bounds
    "category"          categories learnt privately
    ["f", "m"]          public categories
    "hash"              any categories, by a public hash
    "text"              words of a text, by a public hash
    "words"             words of a text, by a private vocabulary
    "drop"              left out

All private numbers share one release, all private categories another. Where kinds are learnt, both are paid for
before it is known which columns they are for. In a `DPPipeline` two small counts are paid as well: how much declared
bounds clip, and which missing values and values outside declared categories occur. For other settings, pass a step.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from dpsparse._cells import mark_missing
from dpsparse._checks import IDENTIFIERS_ADD_NOISE, did_you_mean, identifiers, safe_repr
from dpsparse.domain import Domain
from dpsparse.exceptions import DomainError, ParameterError, SchemaError
from dpsparse.preprocessing._step import (
    COUNT_SHARE,
    PrivateStep,
    Step,
    Want,
    narrow,
    refuse_own_price,
)
from dpsparse.preprocessing._tables import (
    KINDS,
    Header,
    Table,
    days,
    declared_names,
    filled,
    kinds,
)
from dpsparse.preprocessing.categories import (
    MIN_BUCKETS,
    DPCategoryEncoder,
    HashingEncoder,
    PublicEncoder,
)
from dpsparse.preprocessing.numbers import DPStandardizer, PublicScaler
from dpsparse.preprocessing.text import DPVectorizer
from dpsparse.release import Releases
from dpsparse.rows import RawRows

ROLES = ("auto", "number", "date", "category", "hash", "text", "words", "drop")
Part = tuple[str, Step, tuple[str, ...]]


@dataclass(eq=False, repr=False)
class DPTablePreparer(PrivateStep):
    """Numbers, categories, texts and missing values of a table to rows of bounded length.

    **When to use.** As the first step of a `DPPipeline`, for a table whose columns are of several kinds.

    Parameters
    ----------
    columns : dict or None, default=None
        For every column of the table a role, whose costs docs/preparation.md lists: ``"auto"``, ``"number"``,
        ``(low, high)``, ``"date"``, ``"category"``, ``["f", "m"]``, ``"hash"``, ``"text"``, ``"words"``, ``"drop"``,
        or a step such as ``HashingEncoder(16)``.
    rest : str or None, default=None
        The role of all columns that `columns` does not name. None refuses a table that has such columns, by name;
        ``DPTablePreparer(rest="auto")`` needs no other fact.
    fill : dict or None, default=None
        Public constants for missing values, by column. Without one it is the centre, or a category of its own.
    missing_values : tuple of str, default=()
        Words and numbers that stand for a missing value, such as ``("none", "-9")``, besides an empty cell, NA, NaN and
        null. Declared categories come first.
    n_samples : int or None, default=None
        Number of rows, where it is public; a `DPPipeline` knows it from the domain. More rows have more columns for
        categories that were not released.
    epsilon, delta, adjacency, ledger, random_state : as in every estimator
        For use outside a `DPPipeline`, which pays for all of its steps.

    Attributes
    ----------
    kinds_ : dict
        The role that each column of role "auto" was found to have: "number", "date" or "category".
    parts_ : list of (label, fitted step, columns)

    Examples
    --------
    >>> from dpsparse.preprocessing import DPTablePreparer
    >>> table = {"age": [30, None, 200], "sex": ["f", "m", "x"], "id": [1, 2, 3]}
    >>> step = DPTablePreparer({"age": (0, 100), "sex": ["f", "m"], "id": "drop"}).fit(table)
    >>> step.get_feature_names_out().tolist()
    ['age', 'age is missing', 'sex = f', 'sex = m', 'sex is other', 'sex is missing']
    """

    _declares = True

    columns: Any = None
    _: KW_ONLY
    rest: str | None = None
    fill: Any = None
    missing_values: tuple[str, ...] = ()
    n_samples: int | None = None
    kinds_: dict[str, str] = field(init=False)
    parts_: list[Part] = field(init=False)

    @classmethod
    def from_domain(cls, domain: Domain, roles: Any = None, **parameters: Any) -> DPTablePreparer:
        """A preparer for the columns whose bounds or categories a domain declares, and for those of `roles`."""
        facts = {name: list(names) for name, names in (domain.categories or {}).items()}
        bounds = domain.bounds or {}
        if not isinstance(bounds, Mapping):
            raise DomainError("A table is prepared by name: declare Domain(bounds={column: pair}).")
        columns = {**facts, **bounds, **(roles or {})}
        return cls(columns, fill=dict(domain.fill or {}), **parameters)

    def _check(self) -> None:
        if self.rest is not None and not (isinstance(self.rest, str) and self.rest in ROLES):
            raise DomainError(
                f"rest must be None or one of {', '.join(map(repr, ROLES))}, got {safe_repr(self.rest)}."
            )
        words = self.missing_values
        if not isinstance(words, (tuple, list)) or not all(isinstance(word, str) for word in words):
            raise ParameterError('missing_values must list texts, such as ("none", "-9").')
        super()._check()
        if not isinstance(self._named, Mapping) or not (self.columns or self.rest):
            raise DomainError(
                'columns must name a role for every column, for instance {"age": (0, 120), "sex": "category"}, or '
                'state one for all with rest="auto".'
            )
        for name, role in self._named.items():
            if not isinstance(name, str):
                raise DomainError("The keys of columns must be names of columns.")
            known = isinstance(role, (Step, tuple, list, np.ndarray)) or (
                isinstance(role, str) and role in ROLES
            )
            if not known or isinstance(role, DPTablePreparer):
                raise DomainError(
                    f"Column {name!r} has no role that is known: give (low, high), a list of categories, a step, or "
                    f"one of {', '.join(map(repr, ROLES))}."
                )
        parts = self._parts(self._planned(len(self._named) + 1))
        if not parts:
            raise DomainError("All columns are dropped; give at least one another role.")
        for label, step, _ in parts:
            step._check()
            refuse_own_price(label, step)

    # ---- which column is what -------------------------------------------------------------------

    @property
    def _is_open(self) -> bool:
        return self.rest not in (None, "drop")

    @property
    def _named(self) -> Mapping[str, Any]:
        return self.columns or {}

    def _planned(self, n_columns: int) -> dict[str, Any]:
        """Roles of that many columns; those that `columns` does not name are known by their number only."""
        named = {name: role for name, role in self._named.items() if not _is(role, "drop")}
        more = n_columns - len(named) if self._is_open else 0
        return {**named, **{f"\0{k}": self.rest for k in range(more)}}

    def _roles(self, names: Iterable[str]) -> dict[str, Any]:
        """The role of each of these columns; the kinds of "auto" once they are released."""
        found = getattr(self, "kinds_", {})
        roles = {name: self._named.get(name, self.rest) for name in names}
        return {name: found.get(name, role) for name, role in roles.items()}

    def _parts(self, roles: Mapping[str, Any]) -> list[Part]:
        """Steps and their columns; what can share a release does. Of kind "auto" every column may become both."""
        numbers = tuple(n for n, r in roles.items() if _is(r, "number", "date", "auto"))
        categories = tuple(n for n, r in roles.items() if _is(r, "category", "auto"))
        bounds = {n: tuple(r) for n, r in roles.items() if isinstance(r, tuple)}
        lists = {n: list(r) for n, r in roles.items() if isinstance(r, (list, np.ndarray))}
        hashed = tuple(name for name, role in roles.items() if _is(role, "hash"))
        fills = {n: f for n, f in dict(self.fill or {}).items() if n in bounds}
        parts: list[Part] = []
        if bounds:
            scaler = PublicScaler(bounds, fill=fills, count_rows=True)
            parts.append(("bounds", scaler, tuple(bounds)))
        if numbers:
            parts.append(("numbers", DPStandardizer(), numbers))
        if lists:
            parts.append(("lists", PublicEncoder(lists, count_rows=True), tuple(lists)))
        if categories:
            encoder = DPCategoryEncoder(
                n_buckets={
                    name: MIN_BUCKETS  # of kind "auto" a column may number the rows
                    for name in categories
                    if _is(self._named.get(name, self.rest), "auto")
                },
                n_samples=self.n_samples,
            )
            parts.append(("categories", encoder, categories))
        if hashed:
            parts.append(("hash", HashingEncoder(), hashed))
        for name, role in roles.items():
            if isinstance(role, Step):
                parts.append((name, clone(role), (name,)))
            elif _is(role, "text", "words"):
                mode = "hash" if role == "text" else "vocabulary"
                parts.append((name, DPVectorizer(mode), (name,)))
        return parts

    def _wants(self, n_columns: int) -> list[Want]:
        roles = self._planned(n_columns)
        autos = sum(_is(role, "auto") for role in roles.values())
        wants = []
        if autos:
            note = "rows by kind of cell of each column: numbers, dates or names"
            wants.append(Want("kinds", COUNT_SHARE, len(KINDS) * autos, note))
        return wants + [
            Want(f"{label} {want.name}", want.share, want.size, want.note, want.names)
            for label, step, names in self._parts(roles)
            for want in step._wants(len(names))
        ]

    def _outcomes(self, n_columns: int) -> list[Part]:
        """Parts when every column of kind "auto" holds names, which is the widest it can become; no kind is longer."""
        roles = self._planned(n_columns)
        return self._parts({n: "category" if _is(r, "auto") else r for n, r in roles.items()})

    def _width(self, n_columns: int) -> int:
        return sum(step._width(len(names)) for _, step, names in self._outcomes(n_columns))

    def _norm(self, n_columns: int) -> float:
        parts = self._outcomes(n_columns)
        return math.sqrt(sum(step._norm(len(names)) ** 2 for _, step, names in parts))

    # ---- rows -----------------------------------------------------------------------------------

    def _read(self, X: Any) -> Table:
        table = super()._read(X)
        if not table.header.named:
            raise SchemaError(
                "X must be a table with named columns: a data frame, an Arrow table or a dict."
            )
        if self.missing_values:
            table = replace(
                table,
                columns=tuple(
                    mark_missing(column, self.missing_values, self._declared(name))
                    for name, column in zip(table.names, table.columns, strict=True)
                ),
            )
        wanted = getattr(self, "feature_names_in_", None)
        if wanted is None:
            wanted = [name for name, role in self._named.items() if not _is(role, "drop")]
            more = [name for name in table.names if name not in self._named]
            if more and self.rest is None:
                shown = ", ".join(n if n.isidentifier() else "(unreadable)" for n in more[:50])
                raise DomainError(
                    f"These columns have no role yet: {shown}. Name each in columns, with (low, high), a list of "
                    f"categories, or one of {', '.join(map(repr, ROLES))}."
                )
        missing = [name for name in wanted if name not in table.names]
        if missing:
            near = did_you_mean(missing[0], table.names, wanted)
            raise SchemaError(f"X lacks columns that have a role: {', '.join(missing)}.{near}")
        if hasattr(self, "feature_names_in_"):
            return table.take(list(wanted))  # by name: others, and their order, do not matter
        roles = self._roles(table.names)
        kept = [name for name in table.names if not _is(roles[name], "drop")]
        if not kept:
            raise DomainError("All columns are dropped; give at least one another role.")
        numbers = identifiers(name for name in kept if name not in self._named)
        if numbers:
            warnings.warn(
                f"{IDENTIFIERS_ADD_NOISE.capitalize()}: {', '.join(numbers[:50])}. Leave them out, "
                f'for instance with the role "drop": DPTablePreparer({{{numbers[0]!r}: "drop"}}, rest="auto").',
                UserWarning,
                stacklevel=2,
            )
        return table.take(kept)

    def _cells(self, read: Table, names: Iterable[str]) -> Table:
        """Some columns, dates as days and missing values filled with their public constants."""
        table, roles = read.take(list(names)), self._roles(names)
        columns = [
            days(column) if _is(roles[name], "date") else column
            for name, column in zip(table.names, table.columns, strict=True)
        ]
        fills = {n: f for n, f in (self.fill or {}).items() if not isinstance(roles.get(n), tuple)}
        return replace(
            table,
            columns=tuple(
                filled(column, fills[name], self._declared(name)) if name in fills else column
                for name, column in zip(table.names, columns, strict=True)
            ),
        )

    def _declared(self, name: str) -> list[str | None]:
        """The declared categories of a column, which are not missing."""
        role = self._named.get(name)
        return declared_names(role) if isinstance(role, (list, np.ndarray)) else []

    def _note(self, header: Header) -> None:
        super()._note(header)
        if any(_is(role, "auto") for role in self._roles(header.names).values()):
            return  # the parts are known when the kinds are released
        self.parts_ = self._parts(self._roles(header.names))
        for _, step, names in self.parts_:
            step._note(Header(names, True))

    def _compare(self, read: Any) -> None:
        """The order of the columns does not matter: they are found by name."""

    def _learn(self, raw: RawRows, releases: Releases, prefix: str) -> None:
        autos = [name for name, role in self._roles(self._columns).items() if _is(role, "auto")]
        if autos:
            self.kinds_ = _release_kinds(raw, autos, releases, prefix + "kinds")
            self._note(Header(tuple(self._columns), True))
        for label, step, names in self.parts_:
            cells = raw.map(partial(self._cells_for, step, names))
            step._learn(cells, releases, f"{prefix}{label} ")
            self.weak_ = (*self.weak_, *step.weak_)

    def _cells_for(self, step: Step, names: Iterable[str], read: Table) -> Any:
        """What a step inside this one reads."""
        return step._read(self._cells(read, names))

    def _must_learn(self) -> bool:
        """Not if columns are declared: without an epsilon nobody pays for counting what their bounds clip."""
        parts = self._parts(self._planned(len(self._named) + 1))
        return any(isinstance(step, PrivateStep) and step._wants(1) for _, step, _ in parts)

    def _map(self, read: Table) -> sp.csr_array:
        blocks = [step._map(self._cells_for(step, names, read)) for _, step, names in self.parts_]
        return narrow(sp.csr_array(sp.hstack([sp.csr_array(b) for b in blocks], format="csr")))

    def _names_out(self) -> list[str]:
        return [
            f"{names[0]}: {out}" if isinstance(step, DPVectorizer) else out
            for _, step, names in self.parts_
            for out in step._names_out()
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.dict = True
        tags.input_tags.two_d_array = tags.input_tags.sparse = False
        return tags


def _release_kinds(
    raw: RawRows, columns: list[str], releases: Releases, phase: str
) -> dict[str, str]:
    """The kind that most cells of a column have, by noisy counts; a gap has none."""

    def codes(read: Table) -> np.ndarray:
        return np.column_stack([kinds(column) for column in read.take(columns).columns])

    counts = releases.gaussian(phase, raw.numbers(codes, len(columns)).codes(len(KINDS)))
    most = np.argmax(counts, axis=1)
    return {name: KINDS[k] for name, k in zip(columns, most.tolist(), strict=True)}


def _is(role: Any, *names: str) -> bool:
    return isinstance(role, str) and role in names
