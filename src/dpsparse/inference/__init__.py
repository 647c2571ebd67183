"""Intervals and tests whose every look at the rows is paid: what a private model may claim about a population."""

from dpsparse.inference.feature_test import DPFeatureTest
from dpsparse.inference.intervals import Inference, dp_inference

__all__ = ["DPFeatureTest", "Inference", "dp_inference"]
