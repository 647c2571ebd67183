"""Iterative hard thresholding with noisy gradients: `DPHardThresholdClassifier` and `DPHardThresholdRegressor`."""
