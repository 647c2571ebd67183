"""Selections over signed cells: one small interface, one law, different speeds."""

from dpsparse.selection.blocks import BlockSampler
from dpsparse.selection.heap import LazyHeap
from dpsparse.selection.scan import DenseMax, GumbelScan, LaplaceScan, Selection

__all__ = [
    "BlockSampler",
    "DenseMax",
    "GumbelScan",
    "LaplaceScan",
    "LazyHeap",
    "Selection",
    "make_selection",
]


def make_selection(name: str, kappa: float, private_sign: bool = True) -> Selection:
    """The selection called `name`; an infinite kappa is the arg max."""
    if kappa == float("inf"):
        return LazyHeap() if name == "heap" else DenseMax()
    return (
        BlockSampler(kappa, private_sign) if name == "blocks" else GumbelScan(kappa, private_sign)
    )
