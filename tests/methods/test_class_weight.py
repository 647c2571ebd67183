"""Public weights of classes: inside the clip, hence free; weights of rows are refused."""

import math

import numpy as np
import pytest
from sklearn.metrics import recall_score

from complaints import check
from dpsparse import (
    Domain,
    DPGradientClassifier,
)
from dpsparse.exceptions import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((4000, 6))
Y = (X @ np.array([1.0, -1.0, 0.5, 0, 0, 0]) + RNG.logistic(size=4000) > 3.2).astype(int)
DOMAIN = Domain(classes=[0, 1])


def test_balanced_weights_find_the_rare_class():
    """About 8 % of the rows are of class 1. Weighted odds move the threshold; the plan stays the same."""
    plain = DPGradientClassifier(DOMAIN, epsilon=3.0, random_state=0).fit(X, Y)
    balanced = DPGradientClassifier(
        DOMAIN, epsilon=3.0, random_state=0, class_weight="balanced"
    ).fit(X, Y)
    given = DPGradientClassifier(
        DOMAIN, epsilon=3.0, random_state=0, class_weight={0: 1.0, 1: 12.0}
    ).fit(X, Y)
    assert plain.plan_.event == balanced.plan_.event
    recalls = [recall_score(Y, m.predict(X)) for m in (plain, balanced, given)]
    assert recalls[0] < 0.5 < 0.65 < min(recalls[1:])


def test_equal_weights_change_nothing():
    for labels in ([0, 1], [0, 1, 2]):
        y = Y + (X[:, 0] > 1) * (len(labels) == 3) * (Y == 0) * 2
        options = {"epsilon": 3.0, "random_state": 0}
        plain = DPGradientClassifier(Domain(classes=labels), **options).fit(X, y)
        equal = DPGradientClassifier(
            Domain(classes=labels), class_weight=dict.fromkeys(labels, 3.0), **options
        ).fit(X, y)
        np.testing.assert_allclose(equal.coef_, plain.coef_, atol=1e-9)
        np.testing.assert_allclose(equal.intercept_, plain.intercept_, atol=1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_heavy_classes_stay_inside_the_clip(adjacency):
    weights = {0: 1.0, 1: 20.0}
    model = DPGradientClassifier(DOMAIN, adjacency=adjacency, class_weight=weights, n_iter=5)
    finding = check(model, n_rows=40, n_pairs=22, n_climbs=4, every=1000)
    assert finding.complaints == ()
    assert finding.tightness["gradients"] > 0.7


@pytest.mark.parametrize(
    ("weights", "domain"),
    [("heavy", DOMAIN), ([1, 2], DOMAIN), ({0: 1.0}, DOMAIN), ({0: 1.0, 1: -2.0}, DOMAIN),
     ({0: 1.0, 1: math.inf}, DOMAIN), ({0: 1.0, 1: 2e9}, DOMAIN), ({0: 1.0, 7: 2.0}, Domain(classes="observed"))],
)  # fmt: skip
def test_bad_weights(weights, domain):
    with pytest.raises(ParameterError, match="class_weight"):
        DPGradientClassifier(domain, class_weight=weights).fit(X, Y)
