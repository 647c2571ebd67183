"""Names that load on first use, so that importing a package costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def names_on_first_use(
    package: str, homes: Mapping[str, str], where: dict[str, Any], first: Callable[[], object] = int
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package; `homes` says which names live in which of its modules, and `first` is
    called before one is loaded."""
    home = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        first()
        where[name] = getattr(import_module(f"{package}.{home[name]}"), name)
        return where[name]

    return load, lambda: sorted(where["__all__"])


def import_scikit_learn() -> None:
    """`import sklearn.base` without `scipy.stats`, which takes longer than all the rest (docs/benchmarks.md) and which
    scikit-learn imports for one function that no estimator of this package calls.

    While it is imported a stand-in has that name; it hands every look on to the real module. Then the name is free
    again, and SciPy itself imports the module when it is first asked for `scipy.stats`.
    """
    if "sklearn.base" in sys.modules or _STATS in sys.modules:
        return
    sys.modules[_STATS] = stand_in = _StandIn(_STATS)
    try:
        import_module("sklearn.base")
    finally:
        stand_in.leave()


_STATS = "scipy.stats"


class _StandIn(ModuleType):
    def leave(self) -> None:
        if sys.modules.get(_STATS) is self:
            del sys.modules[_STATS]

    def __getattr__(self, name: str) -> Any:
        self.leave()
        return getattr(import_module(_STATS), name)
