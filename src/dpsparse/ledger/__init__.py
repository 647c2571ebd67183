"""The ledger: what was spent on a data set, and what is left of its budget."""

from dpsparse.ledger.account import Ledger

__all__ = ["Ledger"]
