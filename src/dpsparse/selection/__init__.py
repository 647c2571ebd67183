"""Draws of candidates by the exponential mechanism, exactly."""
