"""
Choosing bounds
===============

You see what a wrong bound costs. A bound that is too small clips the data, and one that is too large adds noise. Privacy holds either way.
"""

# %%
# The targets lie between -20 and 20. We try values of `target_bound` from far too small to far too large. With private rows you could
# not look at the true range; here the table is made up.
import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import r2_score

from dpsparse import Domain, DPGradientRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (6_000, 30))
truth = np.zeros(30)
truth[:6] = [6, -5, 4, -3, 2, 1]
y = X @ truth + rng.normal(0, 1, 6_000)
print(f"largest |target|: {np.abs(y).max():.1f}")
train, test = slice(None, 4_000), slice(4_000, None)

bounds = [1, 3, 10, 20, 60, 200, 600]
scores = np.array(
    [
        [
            r2_score(y[test], DPGradientRegressor(Domain(target_bound=b), epsilon=1).fit(X[train], y[train]).predict(X[test]))
            for b in bounds
        ]
        for _ in range(5)
    ]
)  # fmt: skip
exact = DPGradientRegressor(Domain(target_bound=20), epsilon=math.inf).fit(X[train], y[train])

# %%
# A bound within a factor of three of the truth loses little. A bound that is too large is safer than one that is too small.
fig, ax = plt.subplots()
ax.set_xscale("log")
ax.set_xticks(bounds, [str(b) for b in bounds])
ax.minorticks_off()
ax.set_xlim(0.9, 700)
ax.fill_between(bounds, np.min(scores, axis=0), np.max(scores, axis=0), color="tab:blue", alpha=0.2)
ax.plot(bounds, np.mean(scores, axis=0), "o-", color="tab:blue", label="epsilon 1")
ax.axhline(
    r2_score(y[test], exact.predict(X[test])), color="gray", linestyle="--", label="without privacy"
)
ax.axhline(0.0, color="gray", linestyle=":", label="constant answer")
ax.set_ylim(-0.15, 1.05)
ax.set_xlabel("declared target_bound (the largest target is near 20)")
ax.set_title("Test R2, five fits a bound")
ax.legend()
plt.show()
