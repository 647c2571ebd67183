"""
The cost of many fits
=====================

Ten fits do not cost ten times one. The figure shows how epsilon grows with the number of fits on the same rows: as a plain sum, and by the
accountant of this library at a fixed delta of 1e-6. (In a plain sum delta grows as well.)
"""

# %%
import matplotlib.pyplot as plt

from dpsparse import Domain, DPGradientClassifier
from dpsparse.accounting import Repeated, epsilon

plan = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=0.5, delta=1e-6).plan(n_features=1_000)
counts = [1, 2, 5, 10, 20, 50]
delta = 1e-6
ours = [epsilon(Repeated(plan.event, k), delta) for k in counts]
basic = [0.5 * k for k in counts]
print({k: round(e, 2) for k, e in zip(counts, ours, strict=True)})

# %%
fig, ax = plt.subplots()
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xticks(counts, [str(k) for k in counts])
ax.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
ax.minorticks_off()
ax.set_xlim(0.93, 54)
ax.plot(counts, basic, "o-", color="gray", label="added up")
ax.plot(counts, ours, "o-", color="tab:blue", label="this library")
ax.set_xlabel("fits at epsilon 0.5 on the same rows")
ax.set_ylabel("epsilon at delta 1e-6")
ax.set_title("Many fits, all fixed in advance")
ax.legend()
plt.show()

# %%
# If you choose a fit after looking at earlier results, use a `Ledger`. Its costs hold for such fits too (see *A team's budget*).
