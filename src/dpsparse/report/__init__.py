"""What a data protection officer reads: the privacy card of a model, an entry for the registry."""

from dpsparse.report.card import privacy_card
from dpsparse.report.registry import registry_entry

__all__ = ["privacy_card", "registry_entry"]
