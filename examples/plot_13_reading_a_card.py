"""
Reading a privacy card
======================

A card is one page about one model, for a data protection officer. It says what is promised, why, at what cost, and what is not protected.
"""

# sphinx_gallery_thumbnail_path = '_static/card.png'
# %%
import numpy as np

from dpsparse import Domain, DPGradientClassifier, Ledger
from dpsparse.report import privacy_card

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4_000, 12))
y = (X[:, 0] - X[:, 1] + rng.normal(0, 0.5, 4_000) > 0).astype(int)
ledger = Ledger(epsilon=3.0, delta=1e-6)
model = DPGradientClassifier(
    Domain(classes=[0, 1], n_samples=4_000), epsilon=1.0, ledger=ledger
).fit(X, y)

# %%
# A notebook shows the guarantee in colour: green for proven, amber with a caution, red without a proof.
model.privacy_

# %%
# The card. ``dpsparse report model.json --ledger budget.db -o card.html`` writes the same page from files.
card = privacy_card(model, title="Demonstration", ledger=ledger)


class Framed:
    """A page inside this page."""

    def _repr_html_(self):
        text = card.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe title="privacy card" style="width:100%;height:38rem;border:1px solid #b8c4cc;background:#fff" srcdoc="{text}"></iframe>'


Framed()

# %%
# How to read it:
#
# 1. **How good the model is.**
# 2. **The guarantee.** Epsilon, delta, which tables are neighbours, and whether it is proven. Stop here if it is red.
# 3. **In plain words.** What somebody who knows all other rows can learn about the last one.
# 4. **What was assumed.** What the proof needs, and which facts were declared public.
# 5. **Weights.** Which of them are larger than their noise.
# 6. **Budget of the data set.** All releases from the same data, and the ceiling.
# 7. **Annex.** Every release with its noise. Together they cost epsilon.
