"""A small table of columns: released curves without a data frame library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from dpsparse.evaluation.intervals import Estimate


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length; `table["tpr"]` is one of them, `to_frame()` needs pandas."""

    columns: Mapping[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def to_frame(self) -> Any:
        """The table as a pandas data frame."""
        import pandas

        return pandas.DataFrame(dict(self.columns))

    def to_dict(self) -> dict[str, list[Any]]:
        return {name: column.tolist() for name, column in self.columns.items()}

    def rows(self) -> list[list[str]]:
        """Cells as text, row by row."""
        shown = [[_shown(v) for v in column.tolist()] for column in self.columns.values()]
        return [list(row) for row in zip(*shown, strict=True)]

    def __str__(self) -> str:
        head = list(self.columns)
        lines = [head, *self.rows()]
        widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
        return "\n".join(
            "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True))
            for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>"
            for row in self.rows()
        )
        return f"<table><tr>{head}</tr>{body}</table>"


def ends_of(parts: Sequence[Estimate], *names: str) -> dict[str, np.ndarray]:
    """Values, lower and upper ends of estimates as columns of these names."""
    ends = zip(*((e.value, e.low, e.high) for e in parts), strict=True) if parts else ((), (), ())
    return {name: np.array(column) for name, column in zip(names, ends, strict=True)}


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
