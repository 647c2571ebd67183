"""Names that load on first use, so that importing a package costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_on_first_use(
    package: str, homes: Mapping[str, str], where: dict[str, Any]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package; `homes` says which names live in which of its modules."""
    home = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        where[name] = getattr(import_module(f".{home[name]}", package), name)
        return where[name]

    return sorted(home), load, lambda: sorted(where["__all__"])
