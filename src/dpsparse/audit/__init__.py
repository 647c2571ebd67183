"""The library attacks itself: replay, exact law, black box. How to read a verdict: docs/how_we_test.md.

claim = DPLassoClassifier(Domain(classes=[0, 1], n_samples=40), delta=0.01, n_iter=5)
print(audit(claim, n_features=3))
"""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use

if TYPE_CHECKING:
    from dpsparse.audit.replay import Subject, check, check_pair
    from dpsparse.audit.searches import check_search
    from dpsparse.audit.transcript import Rebuilt, rebuild
    from dpsparse.audit.verdict import Verdict, audit, first_complaint

# Names load on first use, so that the command line can ask for help without SciPy.
_HOMES = {
    "replay": "Subject check check_pair",
    "searches": "check_search",
    "transcript": "Rebuilt rebuild",
    "verdict": "Verdict audit first_complaint",
}

__all__ = [
    "Rebuilt",
    "Subject",
    "Verdict",
    "audit",
    "check",
    "check_pair",
    "check_search",
    "first_complaint",
    "rebuild",
]

__getattr__, __dir__ = names_on_first_use(__name__, _HOMES, globals())
