"""
Accuracy against epsilon
========================

The price of privacy for one table, seen from a method with all weights, one with 50 and private Frank-Wolfe. Bands run from the lowest to the
highest of three fits; every frontier shows the same task without privacy (50 weights: with all of them the noiseless fit is worse here), and the constant answer.
"""

# %%
import math

import matplotlib.pyplot as plt
import numpy as np

import house
from dpsparse import Domain, DPGradientClassifier, DPLassoClassifier
from dpsparse.datasets import make_sparse_classification

house.use()
X, y = make_sparse_classification(n_samples=13_000, n_features=2_000, seed=1)
train, test = slice(None, 10_000), slice(10_000, None)
domain = Domain(classes=[0, 1], n_samples=10_000)
epsilons = [0.1, 0.3, 1.0, 3.0]
methods = {
    "gradients, all weights": (lambda eps: DPGradientClassifier(domain, epsilon=eps), house.BLUE),
    "gradients, 50 weights": (
        lambda eps: DPGradientClassifier(domain, epsilon=eps, n_nonzero=50),
        house.GREEN,
    ),
    "Frank-Wolfe": (lambda eps: DPLassoClassifier(domain, epsilon=eps), house.ORANGE),
}
scores = {
    name: np.array(
        [
            [make(eps).fit(X[train], y[train]).score(X[test], y[test]) for eps in epsilons]
            for _ in range(3)
        ]
    )
    for name, (make, _) in methods.items()
}
exact = (
    DPGradientClassifier(domain, epsilon=math.inf, n_nonzero=50)
    .fit(X[train], y[train])
    .score(X[test], y[test])
)
constant = max(y[test].mean(), 1 - y[test].mean())

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.9))
house.epsilon_axis(ax, epsilons)
for name, (_, color) in methods.items():
    house.band(ax, epsilons, scores[name], name, color)
house.references(ax, exact, constant)
ax.set_title("Test accuracy, 10,000 rows x 2,000 columns, delta 1e-6")
fig.canvas.draw()
house.label_ends(ax, room=0.62)
plt.show()
