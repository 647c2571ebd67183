"""Plans of support-first regressions that use no declared scale: the mean alone, or columns found with released scales.

What is done with them: solvers/table_regression.py. Proof: docs/proofs/two_stage.md, Lemma 4.
"""

from __future__ import annotations

import math

from dpsparse.estimators._phases import FEW, effective_rows, mean_alone
from dpsparse.estimators._support import DPSupportFirst
from dpsparse.estimators.ridge import choose_way, table_plan
from dpsparse.privacy import Plan
from dpsparse.solvers.table_regression import Find

ENOUGH = 100.0  # effective rows from which scales are released


def short_plan(
    model: DPSupportFirst, n_features: int, split: float, too_few: float = FEW
) -> Plan | None:
    """A plan from the number of effective rows, for a regression of which nothing is asked but weights; None where
    declared bounds set all scales. `split` is the support's share unless the model says; below `too_few` effective
    rows the mean is all."""
    domain, s = model._domain, min(model.n_nonzero, n_features)
    if domain.unit == "person" and domain.rows_per_unit != 1:
        return None  # several rows of a person are bounded together where scales are declared
    plan = mean_alone(model, too_few)
    n, bound = domain.n_samples, domain.entry_bound()
    asked = getattr(model, "cutoff", None) is not None or not model.fit_intercept
    if plan or asked or not model._labels_are_numbers:
        return plan
    if n is None:
        return None
    N = effective_rows(n, model.epsilon, model.delta, model.adjacency)
    if ENOUGH > N or choose_way(N, s) != "released":
        return None
    output = model._stage() == "output"
    if s == n_features:  # nothing has to be found
        return table_plan(model, n_features, "released", output=output)
    longest = min(domain.row_norm or math.inf, bound * math.sqrt(n_features))
    find = Find(s, bound, longest, model.split or split)
    return table_plan(model, s, "released", find=find, output=output)
