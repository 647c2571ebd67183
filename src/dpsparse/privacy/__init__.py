"""Accounting: events, their Renyi curves, calibration, guarantees, the ledger."""

from dpsparse.privacy.budget import REST, Budget
from dpsparse.privacy.calibrate import calibrate
from dpsparse.privacy.composition import gaussian_parameter
from dpsparse.privacy.conversion import delta, epsilon
from dpsparse.privacy.events import (
    ZCDP,
    DiscreteGaussian,
    Event,
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    NoisyMax,
    NonPrivate,
    ObjectivePerturbation,
    Pure,
    RandomStopping,
    RenyiCurve,
    Repeated,
    RoundedGaussian,
    Sequence,
    ThresholdedGaussian,
)
from dpsparse.privacy.guarantee import Guarantee
from dpsparse.privacy.ledger import Ledger
from dpsparse.privacy.plan import Phase, Plan
from dpsparse.privacy.rdp import rdp

__all__ = [
    "REST",
    "ZCDP",
    "Budget",
    "DiscreteGaussian",
    "Event",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Guarantee",
    "Laplace",
    "Ledger",
    "NoisyMax",
    "NonPrivate",
    "ObjectivePerturbation",
    "Phase",
    "Plan",
    "Pure",
    "RandomStopping",
    "RenyiCurve",
    "Repeated",
    "RoundedGaussian",
    "Sequence",
    "ThresholdedGaussian",
    "calibrate",
    "delta",
    "epsilon",
    "gaussian_parameter",
    "rdp",
]
