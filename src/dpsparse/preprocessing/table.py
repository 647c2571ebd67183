"""`DPTablePreparer`: a table of mixed columns, each prepared as its declared fact says.

    "number"            scale, centre and gaps learnt privately
    (low, high)         a number with public bounds
    "category"          categories learnt privately
    ["f", "m"]          public categories
    "hash"              any names, by a public hash
    "text"              words of a text, by a public hash
    "words"             words of a text, by a private vocabulary
    "drop"              left out

All private numbers share one release, all private categories another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator

from dpsparse.exceptions import DomainError, ParameterError, SchemaError
from dpsparse.preprocessing._step import Plain, PrivateStep, Step, Want
from dpsparse.preprocessing._tables import Table
from dpsparse.preprocessing.categories import DPCategoryEncoder, HashingEncoder, PublicEncoder
from dpsparse.preprocessing.numbers import DPStandardizer, PublicScaler
from dpsparse.preprocessing.text import DPVectorizer
from dpsparse.release import Releases

ROLES = ("number", "category", "hash", "text", "words", "drop")


class DPTablePreparer(Step):
    """Numbers, categories, texts and gaps of a table to rows of bounded length.

    Parameters
    ----------
    columns : dict
        For every column of the table a role: ``"number"``, ``(low, high)``, ``"category"``, ``["f", "m"]``, ``"hash"``,
        ``"text"``, ``"words"``, ``"drop"``, or a step of its own such as ``DPCategoryEncoder(max_categories=5)``.
    fill : dict or None, default=None
        Public constants for gaps of numbers with bounds, by column.
    flag_gaps : bool, default=True
        A column of its own for the gaps of numbers; of private ones where gaps are frequent.
    number_share, category_share, word_share : float, default=0.1
        Shares of the pipeline's budget for all private numbers, all private categories, each vocabulary.
    count_clipped : bool, default=True
        In a `DPPipeline`, tell for a hundredth of the budget how much declared bounds clip; much is a warning.
    max_categories : int, default=64
    hash_features : int, default=64
        Columns for each hashed column; texts have 2**18.

    Examples
    --------
    >>> from dpsparse.preprocessing import DPTablePreparer
    >>> table = {"age": [30, None, 200], "sex": ["f", "m", "x"], "id": [1, 2, 3]}
    >>> step = DPTablePreparer({"age": (0, 100), "sex": ["f", "m"], "id": "drop"}).fit(table)
    >>> step.get_feature_names_out().tolist()
    ['age', 'age is missing', 'sex = f', 'sex = m', 'sex is other', 'sex is missing']
    """

    _declares = True

    def __init__(
        self,
        columns: Any = None,
        *,
        fill: Any = None,
        flag_gaps: bool = True,
        number_share: float = 0.1,
        category_share: float = 0.1,
        word_share: float = 0.1,
        count_clipped: bool = True,
        max_categories: int = 64,
        hash_features: int = 64,
    ) -> None:
        self.columns, self.fill, self.flag_gaps = columns, fill, flag_gaps
        self.number_share, self.category_share = number_share, category_share
        self.word_share, self.max_categories = word_share, max_categories
        self.hash_features, self.count_clipped = hash_features, count_clipped

    def _check(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise DomainError(
                'columns must name a role for every column, for instance {"age": (0, 120), "sex": "category"}.'
            )
        for name, role in self.columns.items():
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
        parts = self._parts()
        if not parts:
            raise DomainError("All columns are dropped; give at least one another role.")
        for _, step, _ in parts:
            step._check()
            if isinstance(step, PrivateStep) and (
                step.epsilon is not None or step.ledger is not None
            ):
                raise ParameterError(
                    "A step inside a table has no epsilon and no ledger of its own; its share is paid by the pipeline."
                )

    def _parts(self) -> list[tuple[str, Step, tuple[str, ...]]]:
        """Steps and their columns; what can share a release does."""
        roles: Mapping[str, Any] = self.columns
        numbers = tuple(name for name, role in roles.items() if _is(role, "number"))
        categories = tuple(name for name, role in roles.items() if _is(role, "category"))
        bounds = {n: tuple(r) for n, r in roles.items() if isinstance(r, tuple)}
        lists = {n: list(r) for n, r in roles.items() if isinstance(r, (list, np.ndarray))}
        hashed = tuple(name for name, role in roles.items() if _is(role, "hash"))
        fills = {n: f for n, f in dict(self.fill or {}).items() if n in bounds}
        flags = "auto" if self.flag_gaps else False
        parts: list[tuple[str, Step, tuple[str, ...]]] = []
        if bounds:
            scaler = PublicScaler(
                bounds, fill=fills, flag_gaps=self.flag_gaps, count_clipped=self.count_clipped
            )
            parts.append(("bounds", scaler, tuple(bounds)))
        if numbers:
            parts.append(
                ("numbers", DPStandardizer(share=self.number_share, flag_gaps=flags), numbers)
            )
        if lists:
            parts.append(("lists", PublicEncoder(lists), tuple(lists)))
        if categories:
            encoder = DPCategoryEncoder(
                share=self.category_share, max_categories=self.max_categories
            )
            parts.append(("categories", encoder, categories))
        if hashed:
            parts.append(("hash", HashingEncoder(self.hash_features), hashed))
        for name, role in roles.items():
            if isinstance(role, Step):
                parts.append((name, clone(role), (name,)))
            elif _is(role, "text") or _is(role, "words"):
                mode = "hash" if role == "text" else "vocabulary"
                parts.append((name, DPVectorizer(mode, share=self.word_share), (name,)))
        return parts

    def _wants(self, n_columns: int, adjacency: str) -> list[Want]:
        return [
            Want(f"{label} {want.name}", want.share, want.size, want.note, want.names, want.moved)
            for label, step, names in self._parts()
            for want in step._wants(len(names), adjacency)
        ]

    def _width(self, n_columns: int) -> int:
        return sum(step._width(len(names)) for _, step, names in self._parts())

    def _norm(self, n_columns: int) -> float:
        return math.sqrt(sum(step._norm(len(names)) ** 2 for _, step, names in self._parts()))

    def _read(self, X: Any) -> Table:
        table = super()._read(X)
        assert isinstance(table, Table)
        if not table.named:
            raise SchemaError(
                "X must be a table with named columns: a data frame, an Arrow table or a dict."
            )
        missing = [
            name
            for name in self.columns
            if name not in table.names and not _is(self.columns[name], "drop")
        ]
        if missing:
            raise SchemaError(f"X lacks columns that have a role: {', '.join(missing)}.")
        more = [name for name in table.names if name not in self.columns]
        if more:
            shown = ", ".join(name if name.isidentifier() else "(unreadable)" for name in more[:50])
            raise DomainError(
                f"These columns have no role yet: {shown}. Name each in columns, with (low, high), a list of "
                f"categories, or one of {', '.join(map(repr, ROLES))}."
            )
        return table.take([name for name in table.names if not _is(self.columns[name], "drop")])

    def _note(self, read: Table) -> None:
        super()._note(read)
        self.parts_ = self._parts()
        for _, step, names in self.parts_:
            step._note(step._read(read.take(names)))

    def _compare(self, read: Any) -> None:
        """The order of the columns does not matter: they are found by name."""

    def _learn(self, read: Table, releases: Releases, prefix: str, groups: Any) -> None:
        for label, step, names in self.parts_:
            step._learn(step._read(read.take(names)), releases, f"{prefix}{label} ", groups)
            self.weak_ = (*self.weak_, *step.weak_)

    def fit(self, X: Any, y: Any = None) -> Any:
        """Note the columns. Where something has to be learnt, only a `DPPipeline` can fit it."""
        self._check()
        if any(
            isinstance(s, PrivateStep) and s._wants(1, "add-remove") for _, s, _ in self._parts()
        ):
            raise ParameterError(
                "This table has columns that are learnt from private rows ('number', 'category', 'words'); put the "
                "preparer into a DPPipeline, which plans and pays for all steps at once."
            )
        return super().fit(X, y)

    def _map(self, read: Table) -> sp.csr_array:
        blocks = [step._map(step._read(read.take(names))) for _, step, names in self.parts_]
        return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], format="csr"))

    def _names_out(self) -> list[str]:
        return [
            f"{names[0]}: {out}" if isinstance(step, DPVectorizer) else out
            for _, step, names in self.parts_
            for out in step._names_out()
        ]

    def _plain(self) -> Plain:
        plain = [(label, step, names, *step._plain()) for label, step, names in self.parts_]
        parts = [
            # A vectorizer is given a column of texts, the others a table.
            (
                label,
                FrozenEstimator(made),
                names[0] if isinstance(step, DPVectorizer) else list(names),
            )
            for label, step, names, made, _ in plain
        ]
        whole = ColumnTransformer(parts, sparse_threshold=1.0)
        cells = {
            name: [0.0 if isinstance(step, (DPStandardizer, PublicScaler)) else ""]
            for _, step, names in self.parts_
            for name in names
        }
        import pandas

        whole.fit(pandas.DataFrame({name: cells[name] for name in self._columns}))

        def weights(coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            out, moved, start = [], np.zeros(len(coef)), 0
            for _, step, _, _, change in plain:
                width = len(step._names_out())
                part, shift = change(coef[:, start : start + width])
                out.append(part)
                moved, start = moved + shift, start + width
            return np.hstack(out), moved

        return whole, weights


def _is(role: Any, name: str) -> bool:
    return isinstance(role, str) and role == name
