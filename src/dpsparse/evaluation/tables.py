"""A small table of columns: released curves without a data frame library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

    def __str__(self) -> str:
        shown = [
            [name, *(f"{v:.4g}" if isinstance(v, float) else str(v) for v in column.tolist())]
            for name, column in self.columns.items()
        ]
        widths = [max(map(len, column)) for column in shown]
        return "\n".join(
            "  ".join(map(str.rjust, line, widths)) for line in zip(*shown, strict=True)
        )


def ends_of(parts: Sequence[Estimate], *names: str) -> dict[str, np.ndarray]:
    """Values, lower and upper ends of estimates as columns of these names."""
    ends = zip(*((e.value, e.low, e.high) for e in parts), strict=True) if parts else ((), (), ())
    return {name: np.array(column) for name, column in zip(names, ends, strict=True)}
