"""What a data protection officer reads: the privacy card of a model, a DPIA annex, an entry for the registry."""

from dpsparse.report.annex import dpia_annex
from dpsparse.report.card import privacy_card
from dpsparse.report.registry import registry_entry

__all__ = ["dpia_annex", "privacy_card", "registry_entry"]
