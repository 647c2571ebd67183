"""The library attacks itself: replay, exact law, black box. How to read a verdict: docs/how_we_test.md.

claim = DPLassoClassifier(Domain(classes=[0, 1], n_samples=40), delta=0.01, n_iter=5)
print(audit(claim, n_features=3))
"""

from dpsparse.audit.transcript import Rebuilt, rebuild
from dpsparse.audit.verdict import Verdict, audit

__all__ = ["Rebuilt", "Verdict", "audit", "rebuild"]
