"""What scikit-learn's users expect of pipelines and steps beyond fit and transform."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator

from dpsparse import (
    Domain,
    DPCategoryEncoder,
    DPFeatureTest,
    DPGradientClassifier,
    DPPipeline,
    DPStandardizer,
    HashingEncoder,
    Ledger,
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
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_steps_and_pipelines_pass_scikit_learns_checks(estimator):
    assert [check["check_name"] for check in failed_checks(estimator)] == []


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_the_feature_test_fails_only_where_a_check_brings_other_labels():
    """It takes declared labels only, and the checks bring numbers and a third class."""
    for check in failed_checks(DPFeatureTest(Domain(classes=[0, 1]), epsilon=8.0)):
        error = check["exception"]
        assert "Domain.classes does not list" in f"{error} {error.__cause__}", check["check_name"]


def test_tags_say_what_is_needed():
    assert HashingEncoder().__sklearn_tags__().requires_fit
    tags = DPFeatureTest(Domain(classes=[0, 1])).__sklearn_tags__()
    assert tags.target_tags.required
    assert tags.input_tags.sparse
    model = DPGradientClassifier(Domain(classes=[0, 1]))
    tags = DPPipeline([("scale", DPStandardizer()), ("model", model)]).__sklearn_tags__()
    assert tags.estimator_type == "classifier"
    assert tags.transformer_tags is not None


@pytest.mark.filterwarnings("ignore:.*NOT private")
@pytest.mark.parametrize("kind", [sp.csr_array, sp.dok_array, sp.lil_matrix])
def test_every_kind_of_sparse_table_is_read(kind):
    step = DPStandardizer(epsilon=8.0, random_state=0)
    dense = step.fit(X).transform(X)
    assert np.array_equal(step.fit(kind(X)).transform(kind(X)), dense)
