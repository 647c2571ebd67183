"""What an experiment is, and where the experiments are found."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dpsparse.exceptions import ParameterError

if TYPE_CHECKING:
    from engine.summary import Summary

VARIABLE = "DPSPARSE_EXPERIMENTS"
# What a matching number is worth: the printed protocol gave it; it came out under a reading that was chosen
# because it gives such numbers; or the protocol fixes it beforehand, so that it could hardly differ.
AS_PRINTED, AFTER_THE_FACT, BY_CONSTRUCTION = KINDS = (
    "as printed",
    "under a reading chosen after the fact",
    "by construction",
)
Config = dict[str, Any]
Trial = Callable[[Config, int], Any]


@dataclass(frozen=True)
class Experiment:
    """One published table or figure.

    `configurations(quick)` lists plain dictionaries (JSON types). The key "mode" says how noise is
    calibrated ("published", "proven" or "nonprivate"); all other keys name the cell. `trial(config,
    seed)` returns numbers (or lists of numbers, for curves) by name and may return under "guarantee"
    the `Guarantee` that the same fit has with unseeded noise. The seed of trial t is the same for all
    configurations, so trials are paired. With `many` a trial returns a list of such mappings, each
    with the keys of its cell under "cell": one draw of the data, several methods. A method that is
    tried with several settings names each under "tuning"; only the best by `tuned_by` is shown.
    """

    name: str
    title: str
    configurations: Callable[[bool], list[Config]]
    trial: Trial
    trials: tuple[int, int]  # quick, full
    metrics: Mapping[str, str]  # name -> format of a number, for instance {"AUC": ".3f"}
    claim: str  # what the paper says, in one sentence
    verdict: Callable[[Summary], str]  # what the rows say, in one sentence
    instead: str = ""  # what to use, where the claim fails
    protocol: str = ""  # data, parameters, deviations
    needs: tuple[str, ...] = ()  # data sets read from files
    plot: Callable[[Summary, Path], None] | None = None
    tests: Callable[[Summary], list[str]] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)  # why a cell does not match
    many: bool = False
    tuned_by: str = ""  # metric whose smallest mean picks a "tuning", in hindsight
    kind: Callable[[Config, str], str] = lambda cell, metric: AS_PRINTED  # of a match
    table: Callable[[Summary], str] | None = None  # instead of one line per cell and metric
    rows_of: str = ""  # another experiment whose rows this one shows

    @property
    def rows_name(self) -> str:
        return self.rows_of or self.name

    @property
    def paper(self) -> str:
        return self.name.split("-", 1)[0]


def experiments_folder() -> Path:
    """DPSPARSE_EXPERIMENTS, or the folder this engine stands in."""
    return Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[1])


def discover(folder: Path | None = None) -> dict[str, Experiment]:
    """Every experiment of the files paper*.py by name."""
    folder = folder or experiments_folder()
    found: dict[str, Experiment] = {}
    for path in sorted(folder.glob("paper*.py")):
        module = _import(path)
        for experiment in getattr(module, "EXPERIMENTS", ()):
            if experiment.name in found:
                raise ParameterError(f"Two experiments are called {experiment.name!r}.")
            found[experiment.name] = experiment
    return dict(sorted(found.items()))


def find(name: str, folder: Path | None = None) -> Experiment:
    """The experiment called `name`; an unknown name is an error that lists the known ones."""
    known = discover(folder)
    if name not in known:
        raise ParameterError(f"There is no experiment {name!r}; known: {', '.join(known)}.")
    return known[name]


def _import(path: Path) -> ModuleType:
    """Import a file of the experiments folder, with its neighbours importable by name."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
