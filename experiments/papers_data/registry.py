"""Every data set of the papers: file, checksum, shape, task, licence, public bounds.

The entries are in registry.json. Shapes and checksums were counted and taken from the files of the project's data
folder; a data set without a checksum is not there, and its shape is the one its source publishes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

from dpsparse.exceptions import ParameterError


@dataclass(frozen=True)
class Dataset:
    """One data set: what `load` reads and what may be said about it without seeing a row.

    `bounds` says how `load(..., scaled=True)` brings entries into [-1, 1] with public constants.
    `positive` is the label that becomes class 1; None where the loader codes the classes itself.
    """

    name: str
    file: str
    sha256: str | None
    n_samples: int
    n_features: int
    task: str
    description: str
    licence: str
    bounds: str
    home: str | None = None
    positive: int | None = None
    target_column: int = -1


def names() -> list[str]:
    """Names that `load` and `info` know."""
    return sorted(_BY_NAME)


def info(name: str) -> Dataset:
    """The registry entry of `name`; an unknown name is an error that lists the known ones."""
    if name not in _BY_NAME:
        raise ParameterError(f"There is no data set {name!r}; known: {', '.join(names())}.")
    return _BY_NAME[name]


_BY_NAME = {
    name: Dataset(name, **facts)
    for name, facts in json.loads(
        files(__package__).joinpath("registry.json").read_text("utf-8")
    ).items()
}
