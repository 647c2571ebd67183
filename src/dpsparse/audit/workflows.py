"""Private runs beyond a bare estimator that an audit attacks: pipelines, searches, evaluations, intervals, looks.

replay     on neighbouring tables, as a fit is (replay.py, searches.py)
rebuild    from the transcript, without rows (transcript.py)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.base import clone

from dpsparse.audit.neighbours import row_weights
from dpsparse.audit.replay import RunSubject, check_pairs
from dpsparse.audit.searches import check_search
from dpsparse.audit.tables import Schema
from dpsparse.audit.verdict import Verdict, fitted, rebuild_row, replay_row
from dpsparse.evaluation import dp_evaluate
from dpsparse.inference import dp_inference
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.model_selection import DPSearchCV
from dpsparse.preprocessing import DPPipeline, DPTablePreparer, dp_look
from dpsparse.random import make_generator


@dataclass(frozen=True)
class Workflow:
    """A run that takes (X, y) or (X, y, groups) and returns what it shows, and what is public of its tables."""

    run: Callable[..., Any]
    schema: Schema
    search: DPSearchCV | None = None


def fit_workflow(estimator: Any, schema: Schema) -> Workflow:
    """An estimator, a pipeline, a search or a feature test, fitted."""
    search = estimator if isinstance(estimator, DPSearchCV) else None
    return Workflow(partial(fitted, estimator), schema, search)


def pipeline_of(model: BaseDPLinearModel, roles: Mapping[str, Any]) -> DPPipeline:
    """A model behind the preparation of raw columns; the pipeline has its terms."""
    terms = {name: getattr(model, name) for name in ("epsilon", "delta", "adjacency")}
    return DPPipeline([("table", DPTablePreparer(dict(roles))), ("model", clone(model))], **terms)


def evaluation_workflow(estimator: Any, schema: Schema, **terms: Any) -> Workflow:
    """The evaluation of a model that was fitted on other rows, made up as well."""
    model, _ = fitted(estimator, *schema.table(200, 1.0, 77))

    def run(X: Any, y: Any, groups: Any = None) -> Any:
        more = {"groups": groups, "adjacency": schema.adjacency, **row_weights(model, X)}
        report = dp_evaluate(model, X, y, **more, **terms)
        return report, str(report)

    return Workflow(run, schema)


def inference_workflow(schema: Schema, **terms: Any) -> Workflow:
    """Intervals for the weights of some columns."""

    def run(X: Any, y: Any, groups: Any = None) -> Any:
        facts = {"domain": schema.domain, "adjacency": schema.adjacency, "groups": groups}
        found = dp_inference(X, y, **facts, **terms)
        return found, str(found)

    return Workflow(run, schema)


def look_workflow(schema: Schema, **terms: Any) -> Workflow:
    """Private counts of a raw table."""

    def run(X: Any, y: Any, groups: Any = None) -> Any:
        facts = {"domain": schema.domain, "adjacency": schema.adjacency, "groups": groups}
        found = dp_look(X, y, **facts, **terms)
        return found, str(found)

    return Workflow(run, schema)


def audit_workflow(workflow: Workflow, *, n_pairs: int = 22, seed: int = 0) -> Verdict:
    """Replay on `n_pairs` neighbours, and the run rebuilt from its transcript."""
    source = workflow.schema.pairs(40, make_generator(seed))
    neighbours = [next(source) for _ in range(n_pairs)]
    subject = RunSubject(workflow.run)
    if workflow.search is None:
        finding = check_pairs(subject, neighbours, seed)
    else:
        finding = check_search(workflow.search, workflow.schema.n_features, neighbours, seed=seed)
    plan = subject.record(neighbours[0], seed).plan
    assert plan is not None
    rows = (
        replay_row(finding, plan.epsilon),
        rebuild_row(workflow.run, workflow.schema, plan.epsilon, seed),
    )
    return Verdict(
        plan.method, plan.calibration, plan.adjacency, plan.epsilon, plan.delta, 1.0, rows
    )
