"""What scikit-learn's users expect of pipelines and steps beyond fit and transform."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

from dpsparse import (
    Domain,
    DPCategoryEncoder,
    DPFeatureTest,
    DPGradientClassifier,
    DPPipeline,
    DPSearchCV,
    DPStandardizer,
    DPTablePreparer,
    DPVectorizer,
    HashingEncoder,
    Ledger,
    PublicEncoder,
    PublicScaler,
)
from dpsparse.exceptions import SchemaError

X = np.random.default_rng(0).normal(5.0, 1.0, (2000, 2))
y = (X[:, 0] > 5.0).astype(int)


def test_steps_are_found_by_name_and_number():
    model = DPGradientClassifier(Domain(classes=[0, 1]))
    pipe = DPPipeline([("scale", DPStandardizer()), ("model", model)], epsilon=4.0)
    assert pipe["model"] is pipe[-1] is model
    assert len(pipe) == 2
    pipe.fit(X, y)
    assert pipe["model"] is pipe.named_steps.model is pipe.model_
    assert pipe[0].center_.shape == (2,)
    assert np.array_equal(pipe[:-1].transform(X), pipe.transform(X))
    assert np.array_equal(pipe[1:].predict(pipe.transform(X)), pipe.predict(X))
    with pytest.raises(KeyError):
        pipe["nobody"]


def test_a_target_among_the_columns_is_hinted_at_by_name():
    import pandas

    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    model = DPGradientClassifier(Domain(classes=[0, 1]))
    pipe = DPPipeline([("scale", DPStandardizer()), ("model", model)], epsilon=4.0)
    with pytest.warns(UserWarning, match="column of the name that y has"):
        pipe.fit(frame, pandas.Series(y, name="b"))


@pytest.mark.parametrize("make", [np.asarray, lambda x: {"a": x[:, 0]}], ids=["array", "columns"])
@pytest.mark.parametrize("step", [DPStandardizer, DPCategoryEncoder])
def test_complex_numbers_are_refused_before_anything_is_spent(step, make):
    ledger = Ledger(epsilon=5.0, delta=1e-6)
    with pytest.raises(SchemaError, match="Complex data not supported"):
        step(epsilon=1.0, ledger=ledger).fit(make(X.astype(complex)))
    assert ledger.history() == []
    with pytest.raises(SchemaError, match="Complex data"):
        HashingEncoder().fit(make(X.astype(complex)))


def test_a_second_fit_knows_nothing_of_the_first():
    step = DPStandardizer(epsilon=8.0).fit({"a": X[:, 0], "b": X[:, 1], "c": X[:, 1]})
    step.fit(X)
    assert not hasattr(step, "feature_names_in_")
    assert step.get_feature_names_out().tolist() == ["x0", "x1"]


def failed_checks(estimator):
    found = check_estimator(estimator, on_fail=None, on_skip=None)
    return [check for check in found if check["status"] == "failed"]


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "estimator",
    [
        HashingEncoder(),
        DPStandardizer(epsilon=8.0),
        DPCategoryEncoder(epsilon=8.0),
        DPPipeline(
            [
                ("scale", DPStandardizer()),
                ("model", DPGradientClassifier(Domain(classes="observed"))),
            ],
            epsilon=8.0,
        ),
        DPSearchCV(
            DPGradientClassifier(Domain(classes="observed")), {"n_nonzero": [1, 2]}, epsilon=8.0
        ),
        PublicScaler((-10.0, 10.0)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_steps_and_pipelines_pass_scikit_learns_checks(estimator):
    assert [check["check_name"] for check in failed_checks(estimator)] == []


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (DPFeatureTest(Domain(classes=[0, 1]), epsilon=8.0), "Domain.classes does not list"),
        (PublicEncoder({"x0": [0.0, 1.0]}), "categories lacks the columns"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_takes_declared_things_only_fails_where_a_check_brings_others(estimator, said):
    """The checks bring numbers, a third class and other columns."""
    for check in failed_checks(estimator):
        error = check["exception"]
        assert said in f"{error} {error.__cause__}", check["check_name"]


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
@pytest.mark.parametrize(
    ("step", "table"),
    [
        (DPVectorizer("vocabulary", epsilon=8.0), ["red blue blue", "red green"] * 500),
        (
            DPTablePreparer({"a": (0, 9), "b": "category"}, epsilon=8.0),
            {"a": [1.0, 2.0] * 500, "b": ["x", "y"] * 500},
        ),
    ],
    ids=lambda given: type(given).__name__,
)
def test_texts_and_named_columns_keep_the_contract_too(step, table):
    """scikit-learn's checks bring arrays of numbers: those that bring none hold, and the rest on a table of ours."""
    assert not step.__sklearn_tags__().input_tags.two_d_array
    for check in (
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_get_params_invariance",
        "check_mixin_order",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ):
        getattr(estimator_checks, check)(type(step).__name__, clone(step))
    with pytest.raises(NotFittedError):
        step.transform(table)
    step = clone(step).set_params(random_state=0)
    before = step.get_params()
    rows = step.fit(table).transform(table)
    assert step.fit(table) is step
    assert step.get_params() == before
    for again in (step, pickle.loads(pickle.dumps(step)), clone(step).fit(table)):
        assert (again.transform(table) != rows).nnz == 0
    assert rows.shape[1] == len(step.get_feature_names_out())


def test_tags_say_what_is_needed():
    assert HashingEncoder().__sklearn_tags__().requires_fit
    tags = DPFeatureTest(Domain(classes=[0, 1])).__sklearn_tags__()
    assert tags.target_tags.required
    assert tags.input_tags.sparse
    model = DPGradientClassifier(Domain(classes=[0, 1]))
    tags = DPPipeline([("scale", DPStandardizer()), ("model", model)]).__sklearn_tags__()
    assert tags.estimator_type == "classifier"
    assert tags.transformer_tags is not None
    texts = DPPipeline([("words", DPVectorizer()), ("model", model)])
    assert texts.__sklearn_tags__().input_tags.one_d_array


@pytest.mark.filterwarnings("ignore:.*NOT private")
@pytest.mark.parametrize("kind", [sp.csr_array, sp.dok_array, sp.lil_matrix])
def test_every_kind_of_sparse_table_is_read(kind):
    step = DPStandardizer(epsilon=8.0, random_state=0)
    dense = step.fit(X).transform(X)
    assert np.array_equal(step.fit(kind(X)).transform(kind(X)), dense)
