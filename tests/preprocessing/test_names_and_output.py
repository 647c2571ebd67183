"""Names of columns and `set_output` for every step, names for every estimator: what scikit-learn users expect."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn

import dpsparse.methods
from audit_cases import build
from dpsparse import Domain, DPGradientClassifier, DPPipeline, preprocessing
from dpsparse.exceptions import ParameterError
from dpsparse.preprocessing import (
    DPCategoryEncoder,
    DPStandardizer,
    DPTablePreparer,
    DPVectorizer,
    HashingEncoder,
    PublicEncoder,
    PublicScaler,
)

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
N = 2000
NUMBERS = pandas.DataFrame({"age": RNG.uniform(0, 100, N), "income": RNG.lognormal(10, 1, N)})
NAMES = pandas.DataFrame({"sex": RNG.choice(["f", "m"], N)})
TABLE = pandas.concat([NUMBERS, NAMES], axis=1).set_index(np.arange(N) * 7)
TEXTS = list(RNG.choice(["good film", "bad film"], N))
STEPS = {
    "DPStandardizer": (DPStandardizer(epsilon=4.0), NUMBERS, ["age", "income"]),
    "PublicScaler": (
        PublicScaler(bounds={"age": (0, 120), "income": (0, 1e6)}),
        NUMBERS,
        ["age", "income"],
    ),
    "DPCategoryEncoder": (DPCategoryEncoder(epsilon=4.0), NAMES, ["sex = f", "sex = m"]),
    "PublicEncoder": (PublicEncoder({"sex": ["f", "m"]}), NAMES, ["sex = f", "sex = m"]),
    "HashingEncoder": (HashingEncoder(n_features=8), NAMES, ["sex # 0", "sex # 1"]),
    "DPVectorizer": (DPVectorizer("vocabulary", epsilon=4.0), TEXTS, ["bad", "film", "good"]),
    "DPVectorizer, hash": (DPVectorizer(n_features=16), TEXTS, ["# 0", "# 1"]),
    "DPTablePreparer": (
        DPTablePreparer({"age": (0, 120), "income": "number", "sex": ["f", "m"]}, epsilon=4.0),
        TABLE,
        ["age", "income", "sex = f"],
    ),
}


def test_every_step_is_here():
    steps = {name.partition(",")[0] for name in STEPS}
    assert steps == set(preprocessing.__all__) - {"DPPipeline", "dp_look", "TableLook"}


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_name_their_columns_and_make_frames(name, output):
    if output == "polars":
        pytest.importorskip("polars")
    step, X, first = STEPS[name]
    step = sklearn.base.clone(step).set_output(transform=output).fit(X)
    out = step.transform(X)
    names = list(step.get_feature_names_out())
    assert names[: len(first)] == first
    assert out.shape == (N, len(names))
    if X is not TEXTS:
        assert list(step.feature_names_in_) == list(X.columns)
    assert step.n_features_in_ == (1 if X is TEXTS else X.shape[1])
    if output != "default":
        assert list(out.columns) == names
    if output == "pandas" and X is TABLE:
        assert list(out.index) == list(TABLE.index)


def test_what_is_too_wide_for_a_frame_is_said():
    step = DPVectorizer().set_output(transform="pandas").fit(TEXTS)
    with pytest.raises(ParameterError, match="too many for a data frame"):
        step.transform(TEXTS)


def test_pipelines_do_not_mind_the_output_that_is_set():
    y = (NUMBERS["age"] > 50).astype(int).to_numpy()
    steps = [
        ("table", DPTablePreparer(rest="auto")),
        ("model", DPGradientClassifier(Domain(classes=[0, 1]))),
    ]
    with sklearn.config_context(transform_output="pandas"):
        pipe = DPPipeline(steps, epsilon=4.0).fit(TABLE, y)
        assert pipe.score(TABLE, y) > 0.8
    assert list(pipe.feature_names_in_) == list(TABLE.columns)
    assert pipe.get_feature_names_out()[0].startswith("age")


@pytest.mark.parametrize("name", dpsparse.methods.__all__)
def test_estimators_remember_the_names_of_columns(name):
    """And complain, as scikit-learn does, about other names or another order."""
    model = build(name, "add-remove")[0]
    facts = replace(model.domain, feature_bound=model.domain.entry_bound())
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame(rng.uniform(-1, 1, (60, 4)), columns=["a", "b", "c", "d"])
    y = (frame["a"] > 0).astype(int) if model.domain.classes else frame["a"]
    y = y.rename("target")
    model.set_params(domain=facts, epsilon=2.0).fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b", "c", "d"]
    assert model.n_features_in_ == 4
    model.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d"]])
