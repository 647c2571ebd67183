"""dp_evaluate: how good is a model on private rows?

The order of every evaluation: check -> score rows -> plan -> reserve -> draw noise -> report. Everything that can be
refused is refused before the ledger is charged, and the ledger is charged before noise is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dpsparse._checks import check_share, check_terms
from dpsparse.accounting.guarantee import PERSON, ROW
from dpsparse.domain import Domain
from dpsparse.evaluation.plan import make_plan
from dpsparse.evaluation.released import release_labels, release_numbers
from dpsparse.evaluation.report import Report
from dpsparse.evaluation.scores import (
    describe_model,
    name_of,
    prepared,
    score_rows,
)
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.random import is_seeded
from dpsparse.release import Releases, private_run
from dpsparse.rows.histogram import ScoredLabels

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger


def dp_evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float = 1e-6,
    ledger: Ledger | None = None,
    groups: Any = None,
    adjacency: str = "add-remove",
    metrics: Iterable[str] | None = None,
    target_bound: float | None = None,
    error_bound: float | None = None,
    level: float = 0.95,
    random_state: int | None = None,
    sample_weight: Any = None,
    weight_bound: float | None = None,
) -> Report:
    """Private metrics of a fitted model, each with an interval that counts sampling and privacy noise.

    Parameters
    ----------
    model : fitted classifier, regressor, pipeline or search, of dpsparse or any other with scikit-learn's methods
        It is taken as public. A model that was fitted on the same rows without privacy is not.
    X, y : arrays or data frame
        Private rows and their targets.
    epsilon : float
        Privacy loss of the whole report, in natural log odds; ``math.inf`` is the exact evaluation.
    delta : float, default=1e-6
        Probability that the guarantee fails.
    ledger : Ledger or None, default=None
        Account that pays, once, before noise is drawn. None keeps no account.
    groups : array of shape (n_samples,) or None, default=None
        The person of every row. The report then protects a person with all of their rows, and every metric is
        a mean over persons (each counts once, however many rows they have).
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Which tables are neighbours.
    metrics : list of str or None, default=None
        Which metrics to pay for: fewer metrics have narrower intervals. None takes all that the model allows.
    target_bound, error_bound : float or None, default=None
        Regressors, in the unit of the target: targets and predictions are clipped to +-target_bound (None: to the range
        of the model's domain) and errors count as at most error_bound (None: target_bound, half the width of a declared
        range). A larger error_bound means more noise.
    level : float, default=0.95
        Probability with which each interval covers.
    random_state : int or None, default=None
        None draws secure noise. An int repeats the noise, for experiments; the report is then not private.
    sample_weight : array of shape (n_samples,) or None, default=None
        Private weights of the rows, clipped to [0, weight_bound]: every metric is that of rows repeated in proportion.
        Intervals count a row of weight w as w/weight_bound of a row, so they may be too wide.
    weight_bound : float or None, default=None
        Public bound of the weights; None takes that of the model's domain.

    Returns
    -------
    Report
        ``report.accuracy``, ``report.auc`` ... are `Estimate`; ``report.roc`` ... are tables.

    Notes
    -----
    Which metrics, what the intervals cover and what they do not: docs/evaluation.md. Proof:
    docs/proofs/evaluation.md.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier, dp_evaluate
    >>> from dpsparse.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(n_samples=2_000, n_features=50, seed=0)
    >>> model = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=1.0).fit(X[:1_500], y[:1_500])
    >>> report = dp_evaluate(model, X[1_500:], y[1_500:], epsilon=0.5, metrics=["accuracy"])
    >>> bool(report.accuracy.low <= report.accuracy.value <= report.accuracy.high)
    True
    """
    check_terms(epsilon, delta, adjacency, ledger, "exact evaluation")
    check_share("level", level, "try 0.95")
    seeded = is_seeded(random_state)
    model = getattr(model, "best_estimator_", model)  # of a search: its winner speaks for it
    model_name = name_of(model)
    if isinstance(getattr(model, "model_", None), BaseDPLinearModel):
        model, X = model.model_, prepared(model, X)  # of a DPPipeline: its maps are of single rows
    weights = _bounded_weights(model, weight_bound)
    if sample_weight is not None:
        weights.require("weight_bound", "dp_evaluate with sample_weight")
    subject = describe_model(model, target_bound, error_bound)
    subject = replace(subject, weighted=sample_weight is not None)
    asked = subject.check(metrics)
    plan = make_plan(
        subject,
        asked,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        unit=ROW if groups is None else PERSON,
    )
    if seeded:
        plan = plan.seeded()
    worth = partial(weights.worth, sample_weight)
    scored = score_rows(model, X, y, subject, groups, worth)

    labels = model.classes_.tolist() if subject.n_classes else []
    names = [phase.name for phase in plan.phases]

    def measure(releases: Releases) -> Report:
        rows = releases.admit(scored)
        if isinstance(rows, ScoredLabels):
            released = release_labels(rows, names, subject, releases)
        else:
            released = release_numbers(rows, names, subject, releases)
        return Report(model_name, plan, released, subject, asked, labels, level)

    return private_run(plan, None, measure, ledger=ledger, random_state=random_state)


def _bounded_weights(model: Any, weight_bound: float | None) -> Domain:
    """The one public fact about weights: stated here, or that of the model's domain."""
    domain = getattr(model, "domain", None)
    if weight_bound is None and isinstance(domain, Domain):
        weight_bound = domain.weight_bound
    return Domain(weight_bound=weight_bound)
