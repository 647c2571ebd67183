"""
A first private model
=====================

You declare what is public, look at the cost, fit a model, and read its guarantee. The table is made up.
It has 20,000 training rows and 5,000 sparse columns.
"""

# %%
# **Declare.** The two labels are public: you know them without looking at the rows. Everything else is private.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from dpsparse import Domain, DPGradientClassifier
from dpsparse.datasets import make_sparse_classification

X, y = make_sparse_classification(n_samples=25_000, n_features=5_000, seed=0)
train, test = slice(None, 20_000), slice(20_000, None)
domain = Domain(classes=[0, 1])

# %%
# **Look at the cost.** A plan shows every step and its noise. It needs the number of columns, but no data.
model = DPGradientClassifier(domain, epsilon=1.0, delta=1e-6, n_nonzero=100)
print(model.plan(n_features=5_000))

# %%
# **Fit** the model, and read its guarantee.
model.fit(X[train], y[train])
print(model.privacy_)

# %%
# **How good is it?** The test rows are public here. For private test rows use `dp_evaluate`.
plain = LogisticRegression(max_iter=200).fit(X[train], y[train])
constant = max(y[test].mean(), 1 - y[test].mean())
print(
    f"{model.n_nonzero_} of 5,000 weights, test accuracy {model.score(X[test], y[test]):.3f}; ",
    end="",
)
print(f"without privacy {plain.score(X[test], y[test]):.3f}, constant answer {constant:.3f}")

# %%
# Which weights are larger than their noise? `coef_noise_` is the standard deviation of the privacy noise in each weight.
weights = np.asarray(model.coef_).ravel()
order = np.argsort(-np.abs(weights))[:20][::-1]
fig, ax = plt.subplots(figsize=(5.6, 4.6))
ax.errorbar(
    weights[order],
    range(20),
    xerr=2 * np.asarray(model.coef_noise_)[order],
    fmt="o",
    color="tab:blue",
    ecolor="lightblue",
)
ax.axvline(0, color="gray", linewidth=1)
ax.set_yticks(range(20), [f"column {j}" for j in order], fontsize=9)
ax.grid(axis="x")
ax.set_title("The 20 largest weights, +- 2 sd of noise")
ax.set_xlabel("weight")
plt.show()
