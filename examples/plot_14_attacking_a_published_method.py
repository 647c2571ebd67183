"""
Attacking a published method
============================

Fast private LASSO as printed (Raff, Khanna and Lu, 2023) draws the feature privately and then reads its *sign* off the exact gradient. If a feature
occurs in one row only, this reveals the label of that row. The proven form draws the sign with the feature, at the same cost.
"""

# %%
# 400 people, each with one feature of their own; labels are random bits, so only the row itself reveals them. An attacker who sees the
# weights guesses the label by the sign of the weight.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from dpsparse import Domain, DPLassoClassifier
from dpsparse.published import RaffKhannaLuLassoClassifier

rng = np.random.default_rng(0)
n = 400
X = sp.csr_array(sp.identity(n))
epsilons = [0.1, 0.3, 1.0, 3.0]


def guessed(epsilon, kind):
    """The share of labels among the non-zero weights that their sign gives away."""
    y = rng.integers(0, 2, n)
    model = kind(
        Domain(classes=[0, 1], n_samples=n), epsilon=epsilon, n_iter=200, fit_intercept=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the published form warns that it is not private
        weights = np.asarray(model.fit(X, y).coef_).ravel()
    found = weights != 0
    return np.mean((weights[found] > 0) == (y[found] == 1))


kinds = {"published": RaffKhannaLuLassoClassifier, "proven": DPLassoClassifier}
leaks = {
    name: np.array([[guessed(e, kind) for e in epsilons] for _ in range(5)])
    for name, kind in kinds.items()
}
print({c: values.mean(axis=0).round(3).tolist() for c, values in leaks.items()})

# %%
# The dashed line is the most that the guarantee allows. To change a label is to remove one row and to add another, so the odds change by at most e^(2 epsilon).
fig, ax = plt.subplots()
ax.set_xscale("log")
ax.set_xticks(epsilons, epsilons)
ax.set_xlabel("epsilon")
ax.fill_between(
    epsilons,
    np.min(leaks["published"], axis=0),
    np.max(leaks["published"], axis=0),
    color="tab:orange",
    alpha=0.2,
)
ax.plot(
    epsilons, np.mean(leaks["published"], axis=0), "o-", color="tab:orange", label="as published"
)
ax.fill_between(
    epsilons,
    np.min(leaks["proven"], axis=0),
    np.max(leaks["proven"], axis=0),
    color="tab:blue",
    alpha=0.2,
)
ax.plot(
    epsilons, np.mean(leaks["proven"], axis=0), "o-", color="tab:blue", label="proven (default)"
)
allowed = [np.exp(2 * e) / (1 + np.exp(2 * e)) for e in epsilons]
ax.plot(epsilons, allowed, color="gray", linestyle="--", label="most that is allowed")
ax.axhline(0.5, color="gray", linestyle=":", label="guessing")
ax.set_ylim(0.42, 1.05)
ax.set_title("Labels that an attacker reads off the weights")
ax.legend()
plt.show()

# %%
# The model says so itself:
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    printed = RaffKhannaLuLassoClassifier(Domain(classes=[0, 1])).fit(X, rng.integers(0, 2, n))
print(printed.privacy_.headline)
