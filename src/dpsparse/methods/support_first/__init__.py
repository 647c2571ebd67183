"""Columns first, then a fit on them: Two-Stage, transfer and ADMM."""
