"""The library attacks itself: replay, exact law, black box (docs/audit.md)."""
