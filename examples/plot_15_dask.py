"""
Rows on a cluster (Dask)
========================

`fit` takes Dask arrays. Every query is a sum of whole numbers over rows, so the order of addition does not matter. Under the same seed the weights
are the same *bits* as on one machine. (Seeds are for this demonstration only; a seeded model says that it is not private.)
"""

# %%
# A cluster inside this process stands in for several machines; on real ones use TLS, because the workers see private rows.
import warnings

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client

from dpsparse import Domain, DPGradientClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 60)) / 8
y = (X[:, :5].sum(axis=1) + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
domain = Domain(classes=[0, 1], n_samples=len(X))


def fitted(X, y, seed=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a seeded model is not private, and says so
        return DPGradientClassifier(domain, epsilon=1.0, random_state=seed).fit(X, y)


with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    parts = da.from_array(X, chunks=(2_500, 60)), da.from_array(y, chunks=2_500)
    on_cluster = fitted(*parts, seed=7)
    print(fitted(*parts).privacy_.headline)
in_memory = fitted(X, y, seed=7)
same = bool((on_cluster.coef_ == in_memory.coef_).all())
print(f"eight parts on two workers, the same bits as in memory: {same}")

# %%
# New noise changes the weights. Splitting the rows in another way does not.
again = fitted(X, y)
fig, ax = plt.subplots(figsize=(5.0, 3.8))
base = in_memory.coef_.ravel()
ax.axline((0, 0), slope=1, color="gray", linestyle="--", linewidth=1.5)
ax.plot(base, again.coef_.ravel(), "o", color="tab:orange", label="in memory, other noise")
ax.plot(base, on_cluster.coef_.ravel(), "o", color="tab:blue", label="on the cluster, same noise")
ax.set_xlabel("weight in memory")
ax.set_title("Sixty weights, fitted again")
ax.legend(loc="upper left", fontsize=9)
plt.show()
