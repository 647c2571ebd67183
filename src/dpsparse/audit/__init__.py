"""The library attacks itself: replay, exact law, black box. How to read a verdict: docs/how_we_test.md.

claim = DPLassoClassifier(Domain(classes=[0, 1], n_samples=40), delta=0.01, n_iter=5)
print(audit(claim, n_features=3))
"""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use

if TYPE_CHECKING:
    from dpsparse.audit.transcript import Rebuilt, rebuild
    from dpsparse.audit.verdict import Verdict, audit

# Names load on first use, so that the command line can ask for help without SciPy.
homes = {"transcript": "Rebuilt rebuild", "verdict": "Verdict audit"}

__all__ = ["Rebuilt", "Verdict", "audit", "rebuild"]

__getattr__, __dir__ = names_on_first_use(__name__, homes, globals())
