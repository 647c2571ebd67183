"""Shares of mu^2: what the steps of a search cost together.

choice     the exponential mechanism of range eta is dominated by the Gaussian of parameter
           mu = 2 Phi^-1(1/(1 + e^(-eta/2))), exactly (docs/proofs/tuning.md, Lemma 2)
dominating any run with a known dominating Gaussian as that Gaussian, to compare runs of different kinds
merged     Gaussian events of several fits are one Gaussian event with the sum of their mu^2
"""

from __future__ import annotations

import math
from typing import TypeVar

from scipy.special import log_ndtr, ndtri

from dpsparse.privacy import (
    Event,
    Exponential,
    Gaussian,
    Phase,
    Plan,
    RoundedGaussian,
)
from dpsparse.privacy import gaussian_parameter as dominating_parameter
from dpsparse.privacy.rdp import leaves

T = TypeVar("T")


def choice_range(mu: float) -> float:
    """eta of the exponential mechanism that a Gaussian of parameter `mu` dominates."""
    return 2.0 * float(log_ndtr(mu / 2.0) - log_ndtr(-mu / 2.0)) * (1.0 - 1e-12)


def choice_parameter(eta: float) -> float:
    """mu of the Gaussian that dominates the exponential mechanism of range `eta`."""
    return -2.0 * float(ndtri(1.0 / (1.0 + math.exp(eta / 2.0)))) * (1.0 + 1e-12)


def merged(event: Event) -> Event:
    """One Gaussian event for a run of Gaussian events; anything else as it is."""
    squares, size = 0.0, 0
    for leaf, count in leaves(event).items():
        if not isinstance(leaf, (Gaussian, RoundedGaussian)) or hasattr(leaf, "leak"):
            return event
        squares += count * (leaf.sensitivity / leaf.scale) ** 2
        size += count * (leaf.size if isinstance(leaf, RoundedGaussian) else 1)
    return RoundedGaussian(1.0 / math.sqrt(squares), 1.0, size)


def dominating(event: Event) -> RoundedGaussian | None:
    """The Gaussian event that dominates a run of any steps for which one is known (docs/proofs/accounting.md).

    The probability with which a step may reveal more is far below the distance of one drawn value from its law, so
    every step is charged as such a value.
    """
    mu, slack = dominating_parameter(event)
    counts = leaves(event)
    size = sum(count * getattr(leaf, "size", 1) for leaf, count in counts.items())
    told = any(hasattr(leaf, "leak") for leaf in counts)
    if told or math.isinf(mu) or slack > size * 2.0**-100:
        return None
    return RoundedGaussian(1.0 / mu, 1.0, size)


def gaussian_parameter(event: Event) -> float | None:
    """mu of a run of Gaussian noise alone, else None."""
    one = merged(event)
    return one.sensitivity / one.scale if isinstance(one, RoundedGaussian) else None


def choice_plan(eta: float, delta: float, adjacency: str) -> Plan:
    """The plan of the choice by itself, for `Releases`."""
    phase = Phase("choice", Exponential(eta), "one candidate, by the exponential mechanism")
    return Plan("choice", (phase,), eta, delta, adjacency, source="docs/proofs/tuning.md")
