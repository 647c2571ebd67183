"""
Which weights are real
======================

A weight of a private model contains two errors, from sampling and from privacy noise. The intervals of `dp_inference` include both.
"""

# %%
# We chose twelve columns without looking at the rows. Six of them matter.
import matplotlib.pyplot as plt
import numpy as np

from dpsparse import Domain, dp_inference

rng = np.random.default_rng(0)
truth = np.array([1.5, -1.2, 1.0, -0.8, 0.6, -0.5, 0, 0, 0, 0, 0, 0])
X = rng.uniform(-1, 1, (40_000, 12)) / np.sqrt(12)
y = (rng.random(40_000) < 1 / (1 + np.exp(-np.sqrt(12) * X @ truth))).astype(int)
domain = Domain(classes=[0, 1], row_norm=1.0, n_samples=40_000)
found = dp_inference(X, y, np.arange(12), domain, epsilon=1.0)
print(found.covers)

# %%
scale = 1 / np.sqrt(12)  # weights of the unscaled columns
estimate, low, high = (
    np.asarray(v).ravel()[:12] * scale for v in (found.estimate, found.low, found.high)
)
clear = (low > 0) | (high < 0)
fig, ax = plt.subplots(figsize=(5.6, 4.2))
for j in range(12):
    color = "tab:blue" if clear[j] else "gray"
    ax.plot([low[j], high[j]], [j, j], color=color, linewidth=3, alpha=0.6, solid_capstyle="round")
    ax.plot(estimate[j], j, "o", color=color)
    ax.plot(truth[j], j, "|", color="tab:orange", markersize=14, markeredgewidth=2.5)
ax.axvline(0, color="black", linewidth=1)
ax.set_yticks(range(12), [f"column {j}" for j in range(12)], fontsize=9)
ax.invert_yaxis()
ax.grid(axis="x")
ax.set_xlabel("weight: private estimate with 95 % interval; orange: the truth")
ax.set_title("Epsilon 1, 40,000 rows")
plt.show()
