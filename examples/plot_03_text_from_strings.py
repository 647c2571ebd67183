"""
Text from strings
=================

You fit a private model to strings, and its weights have names. The notes are made up. Every note has common words, and a few words that
point to a hospital stay or against it.
"""

# %%
# 6,000 short notes, half of them private training notes.
import matplotlib.pyplot as plt
import numpy as np

from dpsparse import Domain, DPGradientClassifier, DPPipeline, DPVectorizer

rng = np.random.default_rng(0)
common = [f"word{i}" for i in range(400)]
serious = ["fever", "pneumonia", "emergency", "fracture", "surgery"]
mild = ["routine", "checkup", "advice", "vaccination", "certificate"]


def note(label):
    own, other = (serious, mild) if label else (mild, serious)
    words = [
        *rng.choice(common, 12),
        *rng.choice(own, 2),
        *(rng.choice(other, 1) if rng.random() < 0.3 else []),
    ]
    return " ".join(rng.permutation(words))


y = rng.integers(0, 2, 6_000)
texts = [note(label) for label in y]
print(texts[0])

# %%
# `DPVectorizer("vocabulary")` learns the words that enough notes have, for a part of the same epsilon. The plan shows every step.
model = DPPipeline(
    [
        ("words", DPVectorizer("vocabulary")),
        ("model", DPGradientClassifier(Domain(classes=[0, 1]), n_nonzero=10)),
    ],
    epsilon=1.0,
)
print(model.plan())

# %%
model.fit(texts[:3_000], y[:3_000])
print(model.privacy_.headline)
print(
    f"accuracy on the other notes: {np.mean(model.predict(texts[3_000:]) == y[3_000:]):.3f}, constant answer 0.5"
)

# %%
# The ten weights have names, because the vocabulary was released (and paid for).
names = np.asarray(model.get_feature_names_out())
weights = np.asarray(model.model_.coef_).ravel()
order = np.argsort(weights)
order = order[weights[order] != 0]
fig, ax = plt.subplots()
ax.barh(
    range(len(order)),
    weights[order],
    color=["tab:orange" if w > 0 else "tab:blue" for w in weights[order]],
)
ax.set_yticks(range(len(order)), names[order])
ax.grid(axis="x")
ax.grid(visible=False, axis="y")
ax.set_xlabel("weight: against a stay to the left, for one to the right")
ax.set_title("Ten words, chosen and weighted privately")
plt.show()
