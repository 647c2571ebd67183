"""Private runs of every kind, small, each with a table and strangers: other tables of the same public schema."""

from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from audit_cases import cases
from dpsparse import (
    Domain,
    DPCategoryEncoder,
    DPFeatureTest,
    DPGradientClassifier,
    DPGradientRegressor,
    DPLassoClassifier,
    DPPipeline,
    DPRidgeRegressor,
    DPSearchCV,
    DPSparseClassifier,
    DPStandardizer,
    DPTablePreparer,
    DPTwoStageClassifier,
    DPVectorizer,
    HashingEncoder,
    PublicEncoder,
    PublicScaler,
    dp_evaluate,
    dp_inference,
)
from dpsparse.audit.neighbours import row_weights
from dpsparse.audit.tables import Schema
from dpsparse.models.files import dumps

ADJACENCIES = ("add-remove", "replace-one")
UNITS = ("row", "person")
BINARY, TRIPLE, NUMBER = {"classes": (0, 1)}, {"classes": ("a", "b", "c")}, {"target_bound": 3.0}


@dataclass(frozen=True)
class Run:
    """`build()(*table)` for a table and for strangers; `quick` ones are in the default suite."""

    name: str
    build: object
    schema: Schema
    only: str = ""  # the raw column that is taken alone
    quick: bool = False

    def tables(self):
        """The table, and strangers."""
        table, strangers = self.schema.tables()
        if not self.only:
            return table, strangers
        first, *others = [(X[self.only], *rest) for X, *rest in (table, *strangers)]
        return first, others


# ---- runs ----------------------------------------------------------------------------------------


def shown(model):
    """A fitted object, its file where it has one, and how it prints."""
    kept = getattr(model, "best_estimator_", model)
    file = dumps(kept) if hasattr(kept, "coef_") or hasattr(kept, "model_") else None
    return model, file, repr(model), str(getattr(model, "privacy_", ""))


def fit(estimator, X, y, groups=None):
    more = {} if groups is None else {"groups": groups}
    return shown(clone(estimator).fit(X, y, **more, **row_weights(estimator, X)))


def estimator_runs():
    seen = set()
    for adjacency in ADJACENCIES:
        for unit in UNITS:
            for name, estimator in cases(adjacency, unit):
                kind = type(estimator), adjacency == "add-remove", unit
                first = kind not in seen and (adjacency == "add-remove") == (unit == "row")
                seen.add(kind)
                estimator.set_params(verbose=-1)
                schema = Schema(estimator.domain, adjacency, 7)
                yield Run(name, partial(partial, fit, estimator), schema, quick=first)


def of_both(name, build, roles, facts, quick=(), only=""):
    """A run for every adjacency and unit: `build(domain, adjacency)` is the action."""
    for adjacency in ADJACENCIES:
        for unit in UNITS:
            domain = Domain(
                **facts, unit=unit, **({"rows_per_unit": 1} if unit == "person" else {})
            )
            schema = Schema(domain, adjacency, len(roles or range(7)), roles)
            yield Run(
                f"{name}-{adjacency}-{unit}", partial(build, domain, adjacency), schema,
                only, quick=(adjacency, unit) in quick,
            )  # fmt: skip


ONE, OTHER = ("add-remove", "row"), ("replace-one", "person")
ROLES = {"age": (0, 120), "income": "number", "born": "date", "region": "category", "note": "words"}


def step_runs():
    def alone(step, columns, domain, adjacency):
        def action(X, y, groups=None):
            some = X if columns is None else {name: X[name] for name in columns}
            made = clone(step).set_params(epsilon=20.0, adjacency=adjacency)
            return made.fit(some, groups=groups), made.get_feature_names_out()

        return action

    steps = [
        ("standardizer", DPStandardizer(), ("age", "income"), ""),
        ("encoder", DPCategoryEncoder(), ("region", "born"), ""),
        ("vectorizer", DPVectorizer("vocabulary"), None, "note"),
        ("preparer", DPTablePreparer(ROLES), None, ""),
        ("preparer-auto", DPTablePreparer(rest="auto"), None, ""),
    ]
    for name, step, columns, only in steps:
        quick = (ONE,) if name == "encoder" else (OTHER,)
        yield from of_both(name, partial(alone, step, columns), ROLES, BINARY, quick, only)


def pipelines():
    """(name, steps, facts, column); a model is given its domain later."""
    first = DPPipeline([
        ("table", DPTablePreparer(ROLES)),
        ("model", DPGradientClassifier(n_iter=3, verbose=-1)),
    ])  # fmt: skip
    auto = DPPipeline([
        ("table", DPTablePreparer(rest="auto")), ("model", DPSparseClassifier(n_nonzero=3)),
    ])  # fmt: skip
    public = DPPipeline([
        ("table", DPTablePreparer(
            {"age": PublicScaler((0, 90), count_rows=True), "region": PublicEncoder(["north"]),
             "note": HashingEncoder(4)}, rest="drop")),
        ("model", DPRidgeRegressor()),
    ])  # fmt: skip
    words = DPPipeline([
        ("words", DPVectorizer("vocabulary", max_features=12)),
        ("model", DPLassoClassifier(n_iter=4, radius=2.0)),
    ])  # fmt: skip
    return [
        ("table-gradient", first, TRIPLE, ""),
        ("auto-sparse", auto, BINARY, ""),
        ("public-ridge", public, {**NUMBER, "n_samples": 90}, ""),
        ("words-lasso", words, BINARY, "note"),
    ]


def given(pipeline, domain, adjacency, **facts):
    made = clone(pipeline).set_params(adjacency=adjacency, **facts)
    return made.set_params(**{f"{made.steps[-1][0]}__domain": domain})


def pipeline_runs():
    for name, pipeline, facts, only in pipelines():
        build = lambda domain, adjacency, p=pipeline: partial(  # noqa: E731
            fit, given(p, domain, adjacency, epsilon=20.0)
        )
        yield from of_both(f"pipeline-{name}", build, ROLES, facts, (ONE,), only)


def search_runs():
    gradient = DPGradientClassifier(n_iter=2, verbose=-1)
    searches = {
        "free": (gradient, {"n_nonzero": [1, 3, None], "threshold": [0.0, 0.2]}),
        "paid": (gradient, [{}, {"n_iter": 3, "threshold": 0.1}]),
        "free of lasso": (DPLassoClassifier(n_iter=4), {"n_nonzero": [1, 3]}),
        "two stages": (
            DPTwoStageClassifier(n_nonzero=2), {"threshold": [0.0, 0.2]},
        ),
    }  # fmt: skip

    def build(model, candidates, domain, adjacency):
        model = clone(model).set_params(domain=domain, adjacency=adjacency)
        return partial(fit, DPSearchCV(model, candidates, epsilon=3.0))

    for name, (model, candidates) in searches.items():
        make = partial(build, model, candidates)
        facts = {**BINARY, "n_samples": 40} if name == "two stages" else BINARY
        yield from of_both(f"search {name}", make, None, facts, (ONE,))

    def behind(candidates, domain, adjacency):
        pipe = given(pipelines()[0][1], domain, adjacency)
        return partial(fit, DPSearchCV(pipe, candidates, epsilon=20.0))

    for name, candidates in {
        "free": {"n_nonzero": [1, 3]},
        "paid": [{}, {"n_iter": 3}],
    }.items():
        make = partial(behind, candidates)
        yield from of_both(f"search {name} of a pipeline", make, ROLES, BINARY, (OTHER,))


@cache
class RowByRow:
    """A model of others that sees one row at a time, so that a score is a function of its row."""

    def __init__(self, model):
        self.model, self.classes_ = model, model.classes_

    def predict(self, X):
        return np.concatenate([self.model.predict(X[i : i + 1]) for i in range(len(X))])

    def predict_proba(self, X):
        return np.concatenate([self.model.predict_proba(X[i : i + 1]) for i in range(len(X))])


def public_model(kind):
    """A model that an evaluation may take as public."""
    facts = {"two": BINARY, "three": TRIPLE, "number": NUMBER}[kind.split()[0]]
    X, y = Schema(Domain(**facts), "add-remove", 7).table(80, 1.0, 77)
    if kind.endswith("foreign"):
        if "classes" in facts:
            return RowByRow(LogisticRegression().fit(X, y))
        return LinearRegression().fit(X, y)
    model = DPGradientClassifier if "classes" in facts else DPGradientRegressor
    return model(Domain(**facts), epsilon=5.0, n_iter=3, verbose=-1).fit(X, y)


QUICK_EVALUATIONS = ("two classes", "numbers", "weighted classes", "weighted numbers")


def evaluation_runs():
    def build(kind, more, domain, adjacency):
        model = public_model(kind)
        if kind == "number foreign":
            more = {**more, "target_bound": 3.0}
        weighted = model if not more.get("weight_bound") else clone(model).set_params(domain=domain)

        def action(X, y, groups=None):
            terms = {**more, **row_weights(weighted, X)}
            report = dp_evaluate(
                model, X, y, epsilon=2.0, adjacency=adjacency, groups=groups, **terms
            )
            return report, str(report), report.to_dict()

        return action

    for name, kind, more in [
        ("two classes", "two", {}),
        ("two classes, accuracy", "two", {"metrics": ["accuracy"]}),
        ("three classes", "three", {}),
        ("numbers", "number", {}),
        ("foreign classes", "two foreign", {}),
        ("foreign numbers", "number foreign", {}),
        ("weighted classes", "two", {"weight_bound": 3.0}),
        ("weighted numbers", "number", {"weight_bound": 3.0}),
    ]:
        facts = {"two": BINARY, "three": TRIPLE, "number": NUMBER}[kind.split()[0]]
        facts = facts | {name: more[name] for name in ("weight_bound",) if name in more}
        quick = (ONE, OTHER) if name in QUICK_EVALUATIONS else ()
        yield from of_both(f"evaluate {name}", partial(build, kind, more), None, facts, quick)


def inference_runs():
    def intervals(domain, adjacency):
        domain = replace(domain, feature_bound=2.0)

        def action(X, y, groups=None):
            found = dp_inference(
                X,
                y,
                [4, 0, 2],
                domain,
                epsilon=3.0,
                adjacency=adjacency,
                groups=groups,
            )
            return found, str(found)

        return action

    def discoveries(domain, adjacency):
        return partial(fit, DPFeatureTest(domain, q=0.5, epsilon=5.0, adjacency=adjacency))

    yield from of_both("inference", intervals, None, BINARY, (ONE, OTHER))
    yield from of_both("feature test", discoveries, None, BINARY, (ONE, OTHER))


def all_runs():
    """Every run of a table in memory."""
    for some in (
        estimator_runs, step_runs, pipeline_runs, search_runs, evaluation_runs, inference_runs,
    ):  # fmt: skip
        yield from some()
