"""What the front estimators learn where nothing bounds the length of a row."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dpsparse import Domain, DPGradientClassifier, DPSparseClassifier


@pytest.mark.parametrize("facts", [{"feature_bound": 1.0}, {}], ids=["declared", "undeclared"])
def test_few_rows_are_learnt_from(facts):
    """Thirty seeds: fits on 300 rows rank other rows well, and none is worse than chance."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 5))
    y = (X[:, 0] + 0.3 * rng.standard_normal(400) > 0).astype(int)
    domain = Domain(classes=[0, 1], n_samples=300, **facts)
    areas = []
    for seed in range(30):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DPSparseClassifier(domain, random_state=seed).fit(X[:300], y[:300])
        areas.append(roc_auc_score(y[300:], model.decision_function(X[300:])))
    assert np.mean(areas) > 0.93
    assert min(areas) > 0.6


def test_standardised_columns_need_no_bound():
    """Twenty seeds of 200 rows of normal columns. When the search began among the lengths of such rows a fifth of the
    fits answered by chance: every octave beyond stayed as likely."""
    accuracies = []
    for seed in range(20):
        rng = np.random.default_rng(1000 + seed)
        X = rng.standard_normal((1200, 5))
        y = (X[:, 0] - X[:, 1] + X[:, 2] / 2 + 0.3 * rng.standard_normal(1200) > 0).astype(int)
        domain = Domain(classes=[0, 1], n_samples=200)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DPGradientClassifier(domain, epsilon=5.0, random_state=seed)
            accuracies.append(model.fit(X[:200], y[:200]).score(X[200:], y[200:]))
    assert np.mean(accuracies) > 0.9
    assert min(accuracies) > 0.75
