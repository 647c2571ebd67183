"""Objective perturbation on released scales: `DPRidgeRegressor`."""
