"""Data to try things on. Names load on first use, so importing this is free."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsparse.datasets.synthetic import make_sparse_classification

_HOMES = {"make_sparse_classification": "synthetic"}

__all__ = ["make_sparse_classification"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpsparse.datasets' has no attribute {name!r}")
    value = getattr(import_module(f"dpsparse.datasets.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
