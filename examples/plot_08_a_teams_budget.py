"""
A team's budget
===============

A data set has one account for everybody. The account reserves the cost before noise is drawn. A crash may therefore lose budget, but never privacy.
The account refuses a fit that would exceed the ceiling.
"""

# %%
# The organisation decides: everything together may cost epsilon 3, and a single release epsilon 1. The policy file is beside the ledger.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from dpsparse import Domain, DPGradientClassifier, Ledger
from dpsparse.exceptions import BudgetError

folder = Path(tempfile.mkdtemp())
(folder / "budget.db.policy.toml").write_text(
    "[release]\nepsilon = 1.0\n[dataset]\nepsilon = 3.0\n"
)
ledger = Ledger(folder / "budget.db", epsilon=3.0, delta=1e-6)

# %%
# Analysts plan their fits. Here the ledger reserves the plans, as `fit` would do.
domain = Domain(classes=[0, 1], n_samples=50_000)


def plan(epsilon):
    return DPGradientClassifier(domain, epsilon=epsilon).plan(n_features=1_000)


try:
    ledger.reserve(plan(2.0))
except BudgetError as refusal:
    print(refusal)

while ledger.would_allow(plan(0.5)):
    ledger.reserve(plan(0.5)).commit()
try:
    ledger.reserve(plan(0.5))
except BudgetError as refusal:
    print(refusal)
entries = ledger.history()
print(
    f"{len(entries)} fits at epsilon 0.5 fit under a ceiling of 3; {ledger.verify()} entries verified"
)

# %%
# Two fits cost less than the sum of their epsilons, so the account pays for many more fits than 3 / 0.5 = 6.
fig, ax = plt.subplots()
n = range(1, len(entries) + 1)
ax.step(n, [e.total for e in entries], where="post", color="tab:blue", label="spent, composed")
ax.plot(n[:9], [0.5 * k for k in n[:9]], color="gray", linestyle=":")
ax.text(9.3, 4.3, "0.5 times the fits", color="gray", fontsize=10)
ax.axhline(3, color="tab:orange", linewidth=1.5)
ax.text(len(entries), 3.08, "ceiling", color="tab:orange", ha="right", fontsize=10)
ax.text(len(entries) * 0.55, 1.55, "spent, composed", color="tab:blue", fontsize=10)
ax.set_xlabel("fits at epsilon 0.5")
ax.set_ylabel("epsilon at delta 1e-6")
ax.set_title("What a ceiling of 3 holds")
plt.show()
