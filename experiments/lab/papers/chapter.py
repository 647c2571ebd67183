"""A chapter: one published table or figure, its words and the names of its code (chapters.toml), its trials."""

from __future__ import annotations

import hashlib
import importlib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.engine import Row
from lab.measures import measured

if TYPE_CHECKING:
    from lab.papers.summary import Summary

# What a matching number is worth: the printed protocol gave it; it came out under a reading that was chosen
# because it gives such numbers; or the protocol fixes it beforehand, so that it could hardly differ.
AS_PRINTED, AFTER_THE_FACT, BY_CONSTRUCTION = KINDS = (
    "as printed",
    "under a reading chosen after the fact",
    "by construction",
)
Config = dict[str, Any]
# What a chapter shares with the chapter whose rows it shows, where it does not say otherwise.
SHARED = ("trials", "needs", "tuned_by")
SHARED_CODE = ("module", "configurations", "trial", "facts", "kind")


@dataclass(frozen=True)
class Chapter:
    """One published table or figure.

    `configurations()` lists plain dictionaries (JSON types). The key "mode" says how noise is calibrated
    ("published", "proven" or "nonprivate"), "trials" may say how many there are, all other keys name the cell.
    `trial(config, seed, number)` returns measures by name (numbers, or lists of numbers for curves) and may return
    under "guarantee" the one that the same fit has with unseeded noise; or a list of such mappings, each with the keys
    of its cell under "cell": one draw of the data, several methods. The seed of a trial is the same for all
    configurations, so trials are paired. A method that is tried with several settings names each under "tuning"; only
    the best by `tuned_by` is shown.
    """

    name: str
    title: str
    claim: str  # what the paper says, in one sentence
    trials: int
    metrics: Mapping[str, str]  # name -> format of a number, for instance {"AUC": ".3f"}
    configurations: Callable[[], list[Config]]
    trial: Callable[[Config, int, int], Any]
    found: str  # what the rows say, in one sentence; {name} is a number of `facts`
    facts: Callable[[Summary], dict[str, Any]] = lambda summary: {}
    instead: str = ""  # what to use, where the claim fails
    protocol: str = ""  # data, parameters, deviations
    needs: tuple[str, ...] = ()  # data sets read from files
    plot: Callable[[Summary, Path], None] | None = None
    tests: Callable[[Summary], list[str]] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)  # why a cell does not match
    tuned_by: str = ""  # metric whose smallest mean picks a "tuning", in hindsight
    kind: Callable[[Config, str], str] = lambda cell, metric: AS_PRINTED  # of a match
    table: Callable[[Summary], str] | None = None  # instead of one line per cell and metric
    rows_of: str = ""  # another chapter whose rows this one shows

    @property
    def rows_name(self) -> str:
        return self.rows_of or self.name

    def verdict(self, summary: Summary) -> str:
        return self.found.format(**self.facts(summary))

    def cells(self, most: int | None = None) -> Iterator[Trial]:
        """All trials, at most so many of each configuration."""
        for config in self.configurations():
            count = config.get("trials", self.trials)
            for number in range(count if most is None else min(count, most)):
                yield Trial(self.rows_name, config, number)


@dataclass(frozen=True)
class Trial:
    """One trial as a cell of the engine; a process finds its chapter by name."""

    chapter: str
    config: Config
    number: int

    def as_row(self) -> Row:
        setting = {k: v for k, v in self.config.items() if k != "trials"}
        method = setting.get("method", setting.get("part", "all"))
        return {"task": self.chapter, "method": method, "setting": setting, "split": self.number}

    def run(self) -> Row:
        with measured() as cost:
            seed = derive_seed(self.chapter, self.number)
            found = chapters()[self.chapter].trial(self.config, seed, self.number)
        spent = {"seconds": cost["seconds"]}
        if isinstance(found, list):
            return {"measures": spent, "parts": [_plain_part(part) for part in found]}
        part = _plain_part(found)
        return part | {"measures": part["measures"] | spent}


def _plain_part(part: Mapping[str, Any]) -> Row:
    """Measures and guarantee of one fit in JSON types, with its cell where a trial has several."""
    promised = part.get("guarantee")
    row = {k: part[k] for k in ("cell",) if k in part}
    row["measures"] = {k: _plain(v) for k, v in part.items() if k not in ("cell", "guarantee")}
    if promised is not None:
        names = ("headline", "proven", "source")
        row["guarantee"] = {name: getattr(promised, name) for name in names}
    return row


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [float(f"{v:.6g}") for v in value]
    return float(f"{value:.9g}")


def derive_seed(*words: object) -> int:
    """A 48-bit seed that depends on all words and nothing else."""
    text = "\x1f".join(map(str, words)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:6], "little")


@cache
def chapters() -> dict[str, Chapter]:
    """All chapters of chapters.toml, with the functions that their `code` names."""
    words = tomllib.loads(Path(__file__).with_name("chapters.toml").read_text("utf-8"))
    notes, found = words.pop("notes"), {}
    for name, said in words.items():
        owner = words[said.get("rows_of", name)]
        shared = {k: owner[k] for k in SHARED if k in owner}
        code = {k: owner["code"][k] for k in SHARED_CODE if k in owner["code"]} | said["code"]
        facts = shared | {k: v for k, v in said.items() if k != "code"} | _functions(**code)
        for key in facts.keys() & {"protocol", "instead"}:
            facts[key] = _with_notes(facts[key], notes)
        found[name] = Chapter(name=name, **facts)
    return dict(sorted(found.items()))


def _functions(module: str, configurations: Any, kind: str = "", **names: str) -> dict[str, Any]:
    """Functions of a module by their names; configurations may be a list, and a kind the same for all numbers."""
    home = importlib.import_module(f"lab.papers.{module}")
    found = {key: getattr(home, name) for key, name in names.items()}
    listed = isinstance(configurations, list)
    found["configurations"] = (lambda: configurations) if listed else getattr(home, configurations)  # fmt: skip
    if kind:
        found["kind"] = (lambda cell, metric: kind) if kind in KINDS else getattr(home, kind)
    return found


def _with_notes(text: str, notes: dict[str, str]) -> str:
    for name in sorted(notes, key=lambda name: "{" in notes[name], reverse=True):
        text = text.replace(f"{{{name}}}", notes[name])
    return text
