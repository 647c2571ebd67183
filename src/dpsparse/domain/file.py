"""Declared facts as a small file that a data protection officer can read: YAML, JSON or TOML.

    classes: [alive, dead]            what Domain(...) takes, under its own names
    n_samples: 26000
    target: dead                      for the command line: which column is predicted,
    person: patient_id                and which one names the person of a row
    missing_values: [none, -9]        words that stand for a missing value, besides an empty cell, NA, NaN and null
    columns:
      ageOFocc: {bounds: [0, 120], fill: 40, source: nobody is older}
      sex: {categories: [f, m]}
      employer: {prepare: hash}       a decision: auto, number, date, category, hash, hash=128, text, words, drop

A file holds what somebody stated; nothing in it is taken from rows.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from dpsparse._json import parsed
from dpsparse.domain import Domain
from dpsparse.exceptions import ParameterError

_OF_A_COLUMN = ("bounds", "categories", "fill", "source", "prepare")
_KNOWN = tuple(
    part.name
    for part in fields(Domain)
    if part.name not in ("bounds", "categories", "fill", "sources")  # stated by column
)


@dataclass(frozen=True)
class Facts:
    """What a file states: the domain, and for the command line target, persons and roles of columns."""

    domain: Domain
    target: str | None = None
    person: str | None = None
    roles: dict[str, Any] = field(default_factory=dict)
    missing_values: tuple[str, ...] = ()


def read(path: str | os.PathLike[str]) -> Facts:
    """The facts of a file; one line says what is wrong in it."""
    path = Path(path)
    content, name = _parsed(path), path.name
    if not isinstance(content, dict):
        raise ParameterError(f"{name} must state facts by name, such as classes: [0, 1].")
    columns = content.pop("columns", None) or {}
    target, person = content.pop("target", None), content.pop("person", None)
    sources, missing = content.pop("sources", None) or {}, content.pop("missing_values", None) or []
    unknown = [key for key in content if key not in _KNOWN]
    if unknown:
        raise ParameterError(
            f"{name} states {str(unknown[0])!r}; known facts are: {', '.join(_KNOWN)}, target, person, "
            "missing_values, and a table columns."
        )
    if not isinstance(columns, dict) or not isinstance(sources, dict):
        raise ParameterError(f"In {name}, columns must list facts by name of the column.")
    by_column: dict[str, dict[str, Any]] = {fact: {} for fact in _OF_A_COLUMN}
    for column, stated in columns.items():
        if isinstance(stated, str):
            stated = {"prepare": stated}
        if not isinstance(stated, dict) or any(key not in _OF_A_COLUMN for key in stated):
            raise ParameterError(
                f"In {name}, column {str(column)!r} may state: {', '.join(_OF_A_COLUMN)}."
            )
        for key, value in stated.items():
            if value is not None:
                by_column[key][str(column)] = value
    if person is not None:
        content.setdefault("unit", "person")
    plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    domain = Domain(
        **plain,
        bounds={c: tuple(b) if isinstance(b, list) else b for c, b in by_column["bounds"].items()} or None,
        categories=by_column["categories"] or None,
        fill=by_column["fill"] or None,
        sources={**sources, **by_column["source"]} or None,
    )  # fmt: skip
    if target is not None and target == person:
        raise ParameterError(f"In {name}, target and person must be different columns.")
    texts = [t for t in (target, person, *by_column["prepare"].values()) if t is not None]
    if not all(isinstance(text, str) for text in texts):
        raise ParameterError(f"In {name}, target, person and prepare must be texts.")
    words = tuple(map(str, missing)) if isinstance(missing, list) else (str(missing),)
    return Facts(domain, target, person, by_column["prepare"], words)


def _parsed(path: Path) -> Any:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ParameterError(f"{path} is not a text in UTF-8.") from None
    readers: dict[str, tuple[str, Callable[[str], Any]]] = {
        ".toml": ("TOML", tomllib.loads),
        ".json": ("JSON", parsed),
    }
    kind, read_text = readers.get(path.suffix.lower(), ("YAML", _from_yaml))
    try:
        return read_text(text)
    except (ValueError, RecursionError):
        raise ParameterError(f"{path} is not a {kind} file.") from None


def _from_yaml(text: str) -> Any:
    yaml = import_yaml()
    try:
        return yaml.load(text, _loader())
    except yaml.YAMLError:
        raise ValueError from None


def import_yaml() -> Any:
    """PyYAML, which the command line needs."""
    try:
        import yaml
    except ImportError:
        raise ParameterError(
            "YAML files need PyYAML: pip install 'dpsparse[cli]'; .json works without."
        ) from None
    return yaml


@cache
def _loader() -> Any:
    """PyYAML's safe loader, which leaves yes, no, on and off the texts that they are as labels; true and false are
    truth values, as in YAML 1.2."""
    yaml = import_yaml()
    truth = "tag:yaml.org,2002:bool"

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
            first: [(tag, pattern) for tag, pattern in kinds if tag != truth or first in "tTfF"]
            for first, kinds in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    return Loader


def plain_facts(domain: Domain) -> dict[str, Any]:
    """What was declared, as plain types in the layout of a file; what was not is left out."""
    out: dict[str, Any] = {}
    for name in _KNOWN:
        value = getattr(domain, name)
        undeclared = value is None or (name, value) == ("unit", "row")
        if undeclared or (name == "target_bound" and domain.target_range):
            continue
        out[name] = list(value) if isinstance(value, tuple) else value
    columns: dict[str, dict[str, Any]] = {}
    bounds = domain.bounds or {}
    if not isinstance(bounds, Mapping):
        bounds = {str(j): pair for j, pair in enumerate(bounds)}
    for fact, values in (
        ("bounds", bounds),
        ("categories", domain.categories),
        ("fill", domain.fill),
    ):
        for name, value in (values or {}).items():
            stated = list(value) if isinstance(value, (tuple, list)) else value
            columns.setdefault(name, {})[fact] = stated
    sources = dict(domain.sources or {})
    for name in list(sources):
        if name in columns:
            columns[name]["source"] = sources.pop(name)
    if sources:
        out["sources"] = sources
    if columns:
        out["columns"] = columns
    return out
