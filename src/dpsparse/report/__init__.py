"""What a data protection officer reads: the privacy card of a model, its plots, and the papers around it."""

from dpsparse.report.card import privacy_card
from dpsparse.report.papers import dpia_annex, iso_mapping, nist_page
from dpsparse.report.registry import registry_entry
from dpsparse.report.sbom import sbom

__all__ = ["dpia_annex", "iso_mapping", "nist_page", "privacy_card", "registry_entry", "sbom"]
