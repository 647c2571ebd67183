"""A true fact never makes things worse: what is planned without `n_samples` is planned with it."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPPipeline,
    DPSparseClassifier,
    DPSparseRegressor,
    DPTablePreparer,
)

MODELS = {
    "gradient": lambda **facts: DPGradientClassifier(Domain(classes=[0, 1], **facts)),
    "classes": lambda **facts: DPSparseClassifier(Domain(classes=[0, 1], **facts)),
    "numbers": lambda **facts: DPSparseRegressor(Domain(target_range=(0, 1), **facts)),
}


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=25, deadline=None)
@given(
    n_samples=st.integers(1, 10**7),
    n_columns=st.integers(1, 300),
    epsilon=st.floats(0.05, 20.0),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
)
@example(
    n_samples=17, n_columns=1, epsilon=13.125, adjacency="add-remove"
)  # changes its method with its price
def test_a_declared_number_of_rows_refuses_no_plan(model, n_samples, n_columns, epsilon, adjacency):
    for facts in ({}, {"n_samples": n_samples}):
        steps = [("table", DPTablePreparer(rest="auto")), ("model", MODELS[model](**facts))]
        plan = DPPipeline(steps, epsilon=epsilon, adjacency=adjacency).plan(n_columns)
        assert plan.guarantee.epsilon <= epsilon * (1 + 1e-9)
