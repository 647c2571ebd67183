"""
Tuning at one cost
==================

Every candidate that you try on private rows costs epsilon. `DPSearchCV` has one cost for the whole search.
"""

# %%
import math
import warnings

import matplotlib.pyplot as plt
import numpy as np

from dpsparse import Domain, DPGradientClassifier, DPSearchCV
from dpsparse.datasets import make_sparse_classification

X, y = make_sparse_classification(n_samples=16_000, n_features=1_000, seed=2)
train, test = slice(None, 12_000), slice(12_000, None)
estimator = DPGradientClassifier(Domain(classes=[0, 1], n_samples=12_000))
counts = [5, 20, 80, 320, 1_000]
search = DPSearchCV(estimator, {"n_nonzero": counts}, epsilon=1.0)
print(search.plan(n_features=1_000))

# %%
search.fit(X[train], y[train])
print(search.best_params_, search.privacy_.headline)
print(f"test accuracy of the chosen model: {search.score(X[test], y[test]):.3f}")

# %%
# For comparison: every candidate, fitted with the whole epsilon. A search cannot know these scores; we can, because the test rows are public.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    alone = np.array(
        [
            [
                DPGradientClassifier(Domain(classes=[0, 1], n_samples=12_000), n_nonzero=k).fit(X[train], y[train]).score(X[test], y[test])
                for k in counts
            ]
            for _ in range(3)
        ]
    )  # fmt: skip
exact = DPGradientClassifier(
    Domain(classes=[0, 1], n_samples=12_000), epsilon=math.inf, n_nonzero=80
)
exact = exact.fit(X[train], y[train]).score(X[test], y[test])
fig, ax = plt.subplots()
ax.set_xscale("log")
ax.set_xticks(counts, [str(k) for k in counts])
ax.minorticks_off()
ax.set_xlim(4.5, 1_150)
ax.fill_between(counts, np.min(alone, axis=0), np.max(alone, axis=0), color="tab:blue", alpha=0.2)
ax.plot(
    counts, np.mean(alone, axis=0), "o-", color="tab:blue", label="each alone,\nall of epsilon 1"
)
k = search.best_params_["n_nonzero"]
ax.plot([k], [search.score(X[test], y[test])], "D", color="tab:orange", markersize=9)
ax.annotate(
    "chosen by the search", (k, search.score(X[test], y[test])), xytext=(10, 5), textcoords="offset points",
    color="tab:orange", ha="left",
)  # fmt: skip
constant = max(y[test].mean(), 1 - y[test].mean())
ax.axhline(exact, color="gray", linestyle="--", label="without privacy")
ax.axhline(constant, color="gray", linestyle=":", label="constant answer")
ax.set_xlabel("n_nonzero")
ax.set_title("Test accuracy by number of weights")
ax.legend()
plt.show()
