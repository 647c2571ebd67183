"""Published modes that claim more than they give are refuted; the proven ones on the same pair hold."""

import numpy as np
import pytest

from dpsparse import Domain
from dpsparse.audit.blackbox import attack, black_box, publish
from dpsparse.audit.neighbours import worst_pairs
from dpsparse.audit.subject import Subject
from dpsparse.methods import (
    DPLassoClassifier,
    DPTransferClassifier,
    DPTwoStageRegressor,
)
from dpsparse.published import (
    KhannaLuRaffLassoClassifier,
    KiferSmithThakurtaTwoStageRegressor,
    RaffKhannaLuLassoClassifier,
    WangGuTransferClassifier,
)
from dpsparse.random import make_generator

LABELS = Domain(classes=(0, 1), n_samples=20)
TIE = Domain(classes=(0, 1), n_samples=1000)
SIGN = {"n_iter": 10, "radius": 1.0, "fit_intercept": False}
SUPPORT = {"n_nonzero": 1, "n_public": 50, "ridge": 0.1}
FAR = Domain(target_bound=1000.0, n_samples=40)
PAPERS = [
    pytest.param(RaffKhannaLuLassoClassifier(LABELS, epsilon=0.1, **SIGN), 4, id="002-sign"),
    pytest.param(WangGuTransferClassifier(TIE, **SUPPORT), 3, id="003-support"),
    pytest.param(KiferSmithThakurtaTwoStageRegressor(FAR, n_nonzero=1), 3, id="squared-loss"),
]
PROVEN = [
    pytest.param(DPLassoClassifier(LABELS, epsilon=0.1, **SIGN), 4, id="002-sign"),
    pytest.param(DPTransferClassifier(TIE, n_nonzero=1, public_X=np.eye(3)), 3, id="003-support"),
    pytest.param(DPTwoStageRegressor(FAR, n_nonzero=1), 3, id="squared-loss"),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("estimator", "n_features"), PAPERS)
def test_published_form_is_refuted(estimator, n_features):
    """100 counted models a table, 99.9 %: epsilon of at least 1.5 refuted where 1 or 0.1 is claimed."""
    result, _ = black_box(Subject(estimator, n_features), 200, estimator.delta, 0.999, seed=0)
    assert result.epsilon > max(1.5, estimator.epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(("proven", "n_features"), PROVEN)
def test_proven_form_holds_on_every_worst_pair(proven, n_features):
    """False alarm rate 0.001 for each of the pairs."""
    subject = Subject(proven, n_features)
    for number, pair in enumerate(worst_pairs(proven.domain, "add-remove", n_features)):
        one = publish(subject, pair.X, pair.y, 100, 2 * number)
        two = publish(subject, pair.X2, pair.y2, 100, 2 * number + 1)
        assert attack(one, two, proven.delta).epsilon <= proven.epsilon


@pytest.mark.slow
def test_multinomial_selections_of_004_are_undercharged():
    """Alg. 3 makes p selections a step and pays for K: 300,000 features, one step, claimed 1."""
    p = 300_000
    domain = Domain(classes=(0, 1, 2), n_samples=2)
    model = KhannaLuRaffLassoClassifier(domain, n_iter=1, radius=1.0, fit_intercept=False)
    subject = Subject(model, p)
    X, y = np.zeros((2, p)), np.array([0, 1])
    push = np.array([-1.0, -1.0, 2.0])

    def votes(X, y, seed):
        rng = make_generator(seed)
        return np.array([[push @ subject.run(X, y, rng).coef_.sum(axis=1)] for _ in range(120)])

    more = votes(np.vstack([X, np.ones(p)]), np.append(y, 2), 1)
    assert attack(votes(X, y, 0), more, model.delta).epsilon > 1.0
