"""The library attacks itself: replay, exact law, black box. How to read a verdict: docs/audit.md.

>>> from dpsparse import Domain, DPLassoClassifier
>>> from dpsparse.audit import audit
>>> claim = DPLassoClassifier(Domain(classes=[0, 1], n_samples=40), delta=0.01, n_iter=5)
>>> audit(claim, n_features=3, n_runs=200).holds
True
"""

from dpsparse.audit.blackbox import many_runs, one_run, one_run_epsilon
from dpsparse.audit.law import epsilon_below, privacy_losses, profile
from dpsparse.audit.replay import Subject, check, check_pair
from dpsparse.audit.verdict import Verdict, audit, first_complaint

__all__ = [
    "Subject",
    "Verdict",
    "audit",
    "check",
    "check_pair",
    "epsilon_below",
    "first_complaint",
    "many_runs",
    "one_run",
    "one_run_epsilon",
    "privacy_losses",
    "profile",
]
