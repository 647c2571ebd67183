"""Noisy gradients: `DPGradientClassifier` and `DPGradientRegressor`."""
