"""
Accuracy against epsilon
========================

You compare the accuracy of four methods on one table. Bands run from the lowest to the highest of three fits. The figure also shows the gradient
method with 50 weights and no noise, and the constant answer.
"""

# %%
# Rows have length one and about forty words, so no entry exceeds 0.25. That is public. We declare it, because the noise of Frank-Wolfe is
# proportional to the largest entry. The gradient methods do not need it.
import math

import matplotlib.pyplot as plt
import numpy as np

from dpsparse import Domain, DPGradientClassifier, DPLassoClassifier, DPTwoStageClassifier
from dpsparse.datasets import make_sparse_classification

X, y = make_sparse_classification(n_samples=13_000, n_features=2_000, seed=1)
train, test = slice(None, 10_000), slice(10_000, None)
domain = Domain(classes=[0, 1], n_samples=10_000, row_norm=1.0, feature_bound=0.25)
epsilons = [0.1, 0.3, 1.0, 3.0]
methods = {
    "two-stage,\n50 weights": (DPTwoStageClassifier, {"n_nonzero": 50}, "tab:orange"),
    "gradients,\n50 weights": (DPGradientClassifier, {"n_nonzero": 50}, "tab:blue"),
    "Frank-Wolfe": (DPLassoClassifier, {"radius": 100.0}, "tab:pink"),
    "gradients,\nall weights": (DPGradientClassifier, {}, "tab:green"),
}
scores = {
    name: np.array(
        [
            [
                kind(domain, epsilon=eps, **settings)
                .fit(X[train], y[train])
                .score(X[test], y[test])
                for eps in epsilons
            ]
            for _ in range(3)
        ]
    )
    for name, (kind, settings, _) in methods.items()
}
exact = DPGradientClassifier(domain, epsilon=math.inf, n_nonzero=50)
exact = exact.fit(X[train], y[train]).score(X[test], y[test])
constant = max(y[test].mean(), 1 - y[test].mean())

# %%
# At a small epsilon (left) no method learns anything. At a larger one it pays to keep few weights, because few columns matter here.
fig, ax = plt.subplots(figsize=(6.4, 4.0))
ax.set_xscale("log")
ax.set_xticks(epsilons, epsilons)
ax.set_xlabel("epsilon")
for name, (_, _, color) in methods.items():
    ax.fill_between(
        epsilons, np.min(scores[name], axis=0), np.max(scores[name], axis=0), color=color, alpha=0.2
    )
    ax.plot(epsilons, np.mean(scores[name], axis=0), "o-", color=color, label=name)
ax.axhline(exact, color="gray", linestyle="--", label="without privacy")
ax.axhline(constant, color="gray", linestyle=":", label="constant answer")
ax.set_title("Test accuracy, 10,000 x 2,000, delta 1e-6")
ax.legend()
plt.show()
