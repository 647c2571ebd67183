"""What a data protection officer reads: the privacy card of a model, and its plots."""

from dpsparse.report.card import privacy_card

__all__ = ["privacy_card"]
