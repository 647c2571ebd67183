"""
Private evaluation
==================

How good is the model on private rows? `dp_evaluate` releases metrics. Their intervals include the errors of sampling and of privacy noise.
"""

# %%
import math

import matplotlib.pyplot as plt

from dpsparse import Domain, DPGradientClassifier, dp_evaluate
from dpsparse.datasets import make_sparse_classification

X, y = make_sparse_classification(n_samples=14_000, n_features=1_000, seed=3)
model = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=1.0).fit(X[:10_000], y[:10_000])
held = X[10_000:], y[10_000:]
report = dp_evaluate(model, *held, epsilon=0.5)
print(report)

# %%
# Compare them with the exact numbers on the same rows, which you could not publish. The intervals are wider than the noise alone, because 4,000 rows are
# only a sample.
exact = dp_evaluate(model, *held, epsilon=math.inf)
names = [name for name in ("accuracy", "auc", "precision", "recall") if name in report.estimates]
fig, ax = plt.subplots()
for i, name in enumerate(names):
    estimate = report.estimates[name]
    ax.plot(
        [estimate.low, estimate.high],
        [i, i],
        color="lightblue",
        linewidth=6,
        solid_capstyle="round",
    )
    ax.plot(estimate.value, i, "o", color="tab:blue", markersize=8)
    ax.plot(
        exact.estimates[name].value, i, "|", color="tab:orange", markersize=18, markeredgewidth=2.5
    )
ax.set_yticks(range(len(names)), names)
ax.set_ylim(-0.6, len(names) - 0.4)
ax.grid(axis="x")
ax.text(
    0.02,
    0.95,
    "● private, with its 95 % interval",
    color="tab:blue",
    transform=ax.transAxes,
    va="top",
)
ax.text(
    0.02, 0.87, "| exact, on the same rows", color="tab:orange", transform=ax.transAxes, va="top"
)
ax.set_xlim(0.5, 1.0)
ax.set_ylim(-0.6, len(names) + 0.5)
ax.set_title("Metrics at epsilon 0.5, delta 1e-6, 4,000 rows")
plt.show()

# %%
# The ROC curve comes from the same release and costs nothing more.
print(sorted(report.tables))
