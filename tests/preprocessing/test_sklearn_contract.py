"""What scikit-learn's users expect of pipelines and steps beyond fit and transform."""

import numpy as np
import pytest

from dpsparse import (
    Domain,
    DPCategoryEncoder,
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


@pytest.mark.parametrize("step", [DPStandardizer, DPCategoryEncoder])
def test_complex_numbers_are_refused_before_anything_is_spent(step):
    ledger = Ledger(epsilon=5.0, delta=1e-6)
    with pytest.raises(SchemaError, match="Complex data not supported"):
        step(epsilon=1.0, ledger=ledger).fit(X.astype(complex))
    assert ledger.history() == []
    with pytest.raises(SchemaError, match="Complex data"):
        HashingEncoder().fit(X.astype(complex))
