"""
A team's budget
===============

A data set has one account for everybody. It is charged before noise is drawn, survives crashes and copies, and refuses what exceeds the ceiling.
"""

# %%
# The organisation decides: epsilon 3 at delta 1e-6 for everything, at most 1 for a single release. The policy file lies beside the book.
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
# Analysts ask for prices; here the plans are reserved as `fit` would do it.
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
# Two fits cost less than the sum of their prices, so the account pays far more than 3 / 0.5 = 6 fits.
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
