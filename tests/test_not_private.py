"""Whatever is headed NOT PRIVATE has epsilon = infinity: the number that was asked for promises nothing."""

import inspect
import math
import warnings

import numpy as np
import pytest

import dpsparse as dp
from audit_cases import CASES
from dpsparse import methods as estimators
from dpsparse.accounting import Gaussian, Guarantee, NonPrivate
from dpsparse.models.files import load

N, D = 120, 4
rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (N, D)) / 2.0
LABELS, NUMBERS = (X[:, 0] > 0).astype(int), np.clip(2.0 * X[:, 0], -1.0, 1.0)
BINARY = dp.Domain(classes=[0, 1], row_norm=1.0, n_samples=N)
NUMBER = dp.Domain(target_range=(-1.0, 1.0), row_norm=1.0, n_samples=N)
PLACES = np.array(["north", "south"] * (N // 2), dtype=object)[:, None]
# Small runs: as the audit's first case.
QUICK = {name: cases[0][1] for name, cases in CASES.items()}


def fitted(name, **changes):
    kind = getattr(estimators, name)
    classifies = name.endswith("Classifier")
    terms = {"epsilon": 5.0, **QUICK[name], **changes}
    model = kind(BINARY if classifies else NUMBER, **terms)
    return model.fit(X, LABELS if classifies else NUMBERS)


def pipeline(**terms):
    steps = [
        ("scale", dp.DPStandardizer()),
        ("model", dp.DPGradientClassifier(dp.Domain(classes=[0, 1]))),
    ]
    return dp.DPPipeline(steps, epsilon=5.0, **terms)


def search(**terms):
    model = dp.DPGradientClassifier(BINARY, n_iter=2)
    return dp.DPSearchCV(model, {"n_nonzero": [1, 2]}, epsilon=5.0, **terms)


def step(kind, **terms):
    return kind(epsilon=5.0, **terms)


def texts():
    return ["one two", "three two"] * (N // 2)


# Every public name with a seed -> what carries a guarantee after a run of it.
RUNS = {
    **{name: (lambda name=name, **terms: [fitted(name, **terms)]) for name in estimators.__all__},
    "DPPipeline": lambda **t: [p := pipeline(**t).fit(X, LABELS), p.model_],
    "DPSearchCV": lambda **t: [s := search(**t).fit(X, LABELS), s.best_estimator_],
    "DPFeatureTest": lambda **t: [dp.DPFeatureTest(BINARY, epsilon=5.0, **t).fit(X, LABELS)],
    "DPStandardizer": lambda **t: [step(dp.DPStandardizer, **t).fit(X)],
    "DPCategoryEncoder": lambda **t: [step(dp.DPCategoryEncoder, **t).fit(PLACES)],
    "DPTablePreparer": lambda **t: [step(dp.DPTablePreparer, rest="auto", **t).fit({"a": X[:, 0], "b": PLACES[:, 0]})],
    "DPVectorizer": lambda **t: [step(dp.DPVectorizer, mode="vocabulary", **t).fit(texts())],
    "dp_evaluate": lambda **t: [dp.dp_evaluate(fitted("DPGradientClassifier"), X, LABELS, **{"epsilon": 5.0, **t})],
    "dp_inference": lambda **t: [dp.dp_inference(X, LABELS, [0], BINARY, **{"epsilon": 5.0, **t})],
}  # fmt: skip


def assert_nothing_is_promised(things):
    for thing in things:
        for guarantee in (thing.privacy_, thing.plan_.guarantee):
            assert guarantee.headline.startswith("NOT PRIVATE")
            assert not guarantee.proven
            assert guarantee.epsilon == math.inf
            assert guarantee.to_dict()["epsilon"] == "inf"
            again = Guarantee.from_dict(guarantee.to_dict())
            assert again == guarantee


@pytest.mark.parametrize("name", RUNS)
def test_a_seeded_run_has_epsilon_infinity(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_nothing_is_promised(RUNS[name](random_state=1))


def test_every_public_name_with_a_seed_is_run_here():
    known = {name: getattr(dp, name) for name in dp.__all__ if callable(getattr(dp, name))}
    seeded = {
        n for n, kind in known.items() if "random_state" in inspect.signature(kind).parameters
    }
    assert seeded == RUNS.keys()


@pytest.mark.parametrize("name", [*estimators.__all__, "dp_evaluate"])
def test_a_run_without_noise_has_epsilon_infinity(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_nothing_is_promised(RUNS[name](epsilon=math.inf))


@pytest.mark.parametrize(
    "name", ["DPGradientClassifier", "DPRidgeRegressor", "DPPipeline", "DPSearchCV"]
)
def test_a_loaded_model_has_epsilon_infinity(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = RUNS[name](random_state=1)
    model = made[-1] if name == "DPSearchCV" else made[0]
    again = load(dp.save(model, tmp_path / "model.json"))
    assert again.privacy_ == model.privacy_
    assert_nothing_is_promised([again, *([again.model_] if hasattr(again, "model_") else [])])


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"randomness": "seeded"}, "seed"),
        ({"events": ()}, "no mechanism is recorded"),
        ({"events": (("a", Gaussian(1.0)), ("b", NonPrivate()))}, "one step has no guarantee"),
        ({"events": (("a", NonPrivate()),)}, "no noise was added"),
        ({}, "without a proof"),
    ],
)
def test_the_record_itself_decides(facts, says):
    """One place: whoever makes a guarantee that is not proven gets infinity, whatever was asked for."""
    common = {
        "epsilon": 4.06,
        "delta": 1e-6,
        "adjacency": "add-remove",
        "events": (("a", Gaussian(9.0)),),
    }
    made = Guarantee(**{**common, "proven": False, **facts})
    assert made.epsilon == math.inf
    assert says in made.headline
    assert "4.06" not in str(made) + made._repr_html_() + str(made.to_dict())
