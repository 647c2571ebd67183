"""Differentially private sparse linear models."""

from dpsparse.domain import Domain

__version__ = "0.1.0"
__all__ = ["Domain", "__version__"]
