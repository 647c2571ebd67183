"""Accounting: events, their prices, calibration, plans and guarantees."""

from dpsparse.accounting.budget import REST, Budget, calibrate
from dpsparse.accounting.conversion import delta, epsilon
from dpsparse.accounting.dominance import gaussian_parameter
from dpsparse.accounting.events import (
    Event,
    Exponential,
    Gaussian,
    Geometric,
    NonPrivate,
    ObjectivePerturbation,
    Pure,
    Repeated,
    RoundedGaussian,
    Sequence,
    ThresholdedGaussian,
)
from dpsparse.accounting.guarantee import Guarantee, Phase, Plan

__all__ = [
    "REST",
    "Budget",
    "Event",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Guarantee",
    "NonPrivate",
    "ObjectivePerturbation",
    "Phase",
    "Plan",
    "Pure",
    "Repeated",
    "RoundedGaussian",
    "Sequence",
    "ThresholdedGaussian",
    "calibrate",
    "delta",
    "epsilon",
    "gaussian_parameter",
]
