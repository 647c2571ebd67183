"""Public facts about a table, and the clipping of its rows to them."""

from dpsparse.domain.domain import OBSERVED, Domain

__all__ = ["OBSERVED", "Domain"]
