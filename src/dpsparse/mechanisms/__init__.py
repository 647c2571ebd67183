"""Mechanisms: the ways in which a number may leave, one file each.

    gaussian.py   a sum of whole numbers with rounded Gaussian integers
    picks.py      candidates drawn by the exponential mechanism, exactly; the vertices of Frank-Wolfe
    geometric.py  one whole number with two-sided geometric noise
    names.py      names that enough rows know, with noisy weights
    tilt.py       the minimiser of an objective tilted by Gaussian noise, blurred

A mechanism holds together what a reader must see together: the events that pay for it, how far one row moves
its question, its sampler, the price of a release, and the note that proves all this. `Releases` (release.py)
takes the noise from the phase of a plan; the audit reads price and law from the same class, and refutes them.
"""

from dpsparse.mechanisms.base import MECHANISMS, Answer, Mechanism, Release, difference
from dpsparse.mechanisms.gaussian import GaussianNoise
from dpsparse.mechanisms.geometric import GeometricNoise
from dpsparse.mechanisms.names import CommonNames
from dpsparse.mechanisms.picks import NoisyMaxLaw, Picks, Vertices
from dpsparse.mechanisms.tilt import Tilt

__all__ = [
    "MECHANISMS",
    "Answer",
    "CommonNames",
    "GaussianNoise",
    "GeometricNoise",
    "Mechanism",
    "NoisyMaxLaw",
    "Picks",
    "Release",
    "Tilt",
    "Vertices",
    "difference",
]
