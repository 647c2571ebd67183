"""Model files that somebody else wrote, with a right checksum: what they hold is checked, and quickly."""

import json
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import dpsparse as dp
from audit_cases import CASES
from dpsparse import methods as estimators
from dpsparse.exceptions import ModelFileError
from dpsparse.models import files as models
from dpsparse.models.files import load

RNG = np.random.default_rng(0)
N, D = 200, 5
X = RNG.uniform(-0.4, 0.4, (N, D))
LABELS, NUMBERS = (X[:, 0] > 0).astype(int), 2.0 * X[:, 0]
TWO = dp.Domain(classes=[0, 1], row_norm=1.0, n_samples=N)
NUMBER = dp.Domain(target_range=(-1.0, 1.0), row_norm=1.0, n_samples=N)
RAW = {
    "age": 40.0 + 100.0 * X[:, 0],
    "place": np.array(["north", "south"], object)[LABELS],
    "text": np.array(["one two", "three two"], object)[LABELS],
}


def gradient(**terms):
    return dp.DPGradientClassifier(TWO, n_iter=3, **terms).fit(X, LABELS)


def pipeline():
    table = dp.DPTablePreparer({"age": "number", "place": "category", "text": "words"})
    model = dp.DPGradientClassifier(dp.Domain(classes=[0, 1]))
    return dp.DPPipeline([("table", table), ("model", model)], epsilon=8.0).fit(RAW, LABELS)


def search(kind):
    model = dp.DPGradientClassifier(TWO, n_iter=2)
    candidates = {
        "free search": {"n_nonzero": [1, 2]},
        "paid search": [{"n_iter": 3}, {}],
    }
    return dp.DPSearchCV(model, candidates[kind], epsilon=4.0).fit(X, LABELS).best_estimator_


def searched_pipeline():
    steps = [
        ("scale", dp.DPStandardizer()),
        ("model", dp.DPGradientClassifier(dp.Domain(classes=[0, 1]))),
    ]
    grid = {"n_nonzero": [1, 2], "threshold": [0.0, 0.1]}
    return dp.DPSearchCV(dp.DPPipeline(steps), grid, epsilon=8.0).fit(X, LABELS).best_estimator_


def transfer():
    rows = sp.random_array((300, D), density=0.5, rng=0, format="csr")
    return dp.DPTransferClassifier(TWO, n_nonzero=2, public_X=rows).fit(X, LABELS)


SPECIAL = {
    "gradient": gradient,
    "pipeline": pipeline,
    "free search": lambda: search("free search"),
    "paid search": lambda: search("paid search"),
    "searched pipeline": searched_pipeline,
    "large public rows": transfer,
}


@pytest.fixture(scope="module")
def text():
    return models.dumps(gradient(), feature_names=list("abcde"))


def resigned(header):
    header = {key: value for key, value in header.items() if key != "checksum"}
    return json.dumps({**header, "checksum": models._checksum(header)})


def refused(folder, content, seconds=3.0):
    path = folder / "forged.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    start = time.process_time()  # which does not depend on who else uses the machine
    with pytest.raises(ModelFileError) as error:
        load(path)
    assert time.process_time() - start < seconds
    assert "\n" not in str(error.value)
    return str(error.value)


def changed(text, place, value):
    """The file with the value at `place`, keys separated by points, replaced."""
    header = json.loads(text)
    *path, last = place.split(".")
    part = header
    for key in path:
        part = part[key]
    part[last] = value
    return resigned(header)


NAN = {"type": "float", "value": "nan"}
WRONG = [
    ("schema", True),
    ("schema", 1.0),
    ("schema", "1"),
    ("model.attributes.coef_.data", ["nan"] * D),
    ("model.attributes.coef_.data", ["1.5"] * D),
    ("model.attributes.coef_.data", [True] * D),
    ("model.attributes.coef_.data", [10**400] * D),
    ("model.attributes.coef_.data", [None] * D),
    ("model.attributes.coef_.data", "12345"),
    ("model.attributes.coef_.indices", ["0", "1", "2", "3", "4"]),
    ("model.attributes.coef_.indices", [0.0, 1.0, 2.0, 3.0, 4.0]),
    ("model.attributes.coef_.indices", [0, 0, 0, 0, 0]),
    ("model.attributes.coef_.indices", [0, 1, 2, 3, 10**30]),
    ("model.attributes.coef_.indptr", [0, 1.0 * D]),
    ("model.attributes.coef_.shape", [1, 10**9]),
    ("model.attributes.coef_.shape", [1, 10**18]),
    ("model.attributes.coef_.shape", [1, 1e9]),
    ("model.attributes.coef_.shape", [True, D]),
    ("model.attributes.coef_.shape", [1, D, 1]),
    ("model.attributes.coef_.shape", [1]),
    ("model.attributes.coef_.sparse", "yes"),
    ("model.attributes.coef_.flat", True),
    ("model.attributes.coef_.flat", 0),
    ("model.attributes.coef_noise_.data", ["nan"] * D),
    ("model.attributes.coef_noise_.data", [-1.0] * D),
    ("model.attributes.coef_noise_.data", [0.5]),
    ("model.attributes.get_params", "text"),
    ("model.attributes.predict", "text"),
    ("model.attributes.__class__", "text"),
    ("model.attributes.nonsense_", "text"),
    ("model.attributes._private_", "text"),
    ("model.attributes.coef_", "text"),
    ("model.attributes.plan_", "text"),
    ("model.attributes.privacy_", "text"),
    ("model.attributes.history_", "text"),
    ("model.kind", "dp_look"),
    ("model.kind", "TableLook"),
    ("model.nonsense", 1),
    ("model.attributes.n_features_in_", "5"),
    ("model.attributes.n_features_in_", 5.0),
    ("model.attributes.n_features_in_", True),
    ("model.attributes.n_features_in_", 10**9),
    ("model.attributes.n_iter_", "3"),
    ("model.attributes.classes_", "text"),
    ("model.attributes.classes_", {"type": "array", "dtype": "<i8", "shape": [2], "items": [0, 2]}),
    ("model.attributes.classes_", {"type": "array", "dtype": "<U1000000000", "shape": [2], "items": ["a", "b"]}),
    ("model.attributes.classes_", {"type": "array", "dtype": "<i8", "shape": [10**12], "items": [0, 1]}),
    ("model.attributes.classes_", {"type": "array", "dtype": "<i8", "shape": [2], "items": ["0", "1"]}),
    ("model.attributes.classes_", {"type": "array", "dtype": "V100000000000", "shape": [2], "items": [0, 1]}),
    ("model.attributes.coef_", {"type": "array", "dtype": "<f8", "shape": [1, D], "items": [NAN] * D}),
    ("model.attributes.coef_", {"type": "array", "dtype": "<f8", "shape": [1, D, 1], "items": [0.5] * D}),
    ("model.attributes.coef_", {"type": "array", "dtype": "<i8", "shape": [1, D], "items": [1] * D}),
    ("model.attributes.coef_", {"type": "omitted", "shape": [1, D]}),
    ("model.attributes.coef_noise_", {"type": "array", "dtype": "<f8", "shape": [D], "items": [NAN] * D}),
    ("model.attributes.model_", "text"),
    ("model.attributes.intercept_", "nan"),
    ("model.attributes.intercept_", {"type": "array", "dtype": "<f8", "shape": [1], "items": ["nan"]}),
    ("model.attributes.intercept_", {"type": "array", "dtype": "<f8", "shape": [1], "items": [NAN]}),
    ("model.attributes.intercept_", {"type": "array", "dtype": "<f8", "shape": [2], "items": [0.0, 0.0]}),
    ("model.attributes.about_", "text"),
    ("model.attributes.about_", {"type": "dict", "items": [["data", 3]]}),
    ("model.parameters.nonsense", 1),
    ("model.parameters.ledger", "book.db"),
    ("model.parameters.domain", None),
    ("model.parameters.domain", {"type": "Domain", "fields": {"classes": {"type": "tuple", "items": [0, 5]}}}),
    ("model.attributes.feature_names_", {"type": "tuple", "items": ["a"]}),
    ("model.attributes.feature_names_", {"type": "tuple", "items": [1, 2, 3, 4, 5]}),
    ("model.attributes.feature_names_", "abcde"),
    ("model.attributes.plan_.fields.method", 3),
    ("model.attributes.plan_.fields.nonsense", 3),
    ("model.attributes.plan_.fields.settings", {"type": "dict", "items": []}),
    ("model.attributes.plan_.fields.parameters", "text"),
    ("guarantee.epsilon", "1.0"),
    ("guarantee.epsilon", True),
    ("guarantee.proven", 1),
    ("guarantee.proven", "yes"),
    ("nonsense", 1),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value"), WRONG, ids=lambda part: str(part)[:40])
def test_what_a_model_does_not_hold_is_refused(tmp_path, text, place, value):
    refused(tmp_path, changed(text, place, value))


@pytest.mark.parametrize(
    "place",
    ["guarantee", "model", "model.parameters", "model.attributes", "model.attributes.coef_",
     "model.attributes.plan_.fields"],
)  # fmt: skip
def test_what_is_missing_is_refused(tmp_path, text, place):
    part = json.loads(text)
    for name in place.split("."):
        part = part[name]
    for key in part:
        try:
            again = changed(text, place, {k: v for k, v in part.items() if k != key})
            (tmp_path / "m.json").write_text(again)
            load(tmp_path / "m.json")
        except ModelFileError:
            continue
        derived = (
            place == "guarantee"
            and not hasattr(dp.Guarantee, key)
            and key not in dp.Guarantee.__annotations__
        )
        optional = ("coef_noise_", "about_", "feature_names_in_")
        assert derived or key in optional, f"{place} without {key} was read"


def test_an_archive_is_no_model(tmp_path):
    np.savez_compressed(tmp_path / "other.npz", data=np.zeros(2 * 10**6))
    refused(tmp_path, (tmp_path / "other.npz").read_bytes(), seconds=1.0)


# ---- prices --------------------------------------------------------------------------------------


def multiplied(record, factor):
    """A record with every scale of its events multiplied, and every mu divided."""
    if isinstance(record, dict):
        if isinstance(record.get("type"), str) and "mu" in record:
            record = {**record, "mu": record["mu"] / factor}
        return {
            key: value * factor
            if key == "scale" and isinstance(value, float)
            else multiplied(value, factor)
            for key, value in record.items()
        }
    return [multiplied(part, factor) for part in record] if isinstance(record, list) else record


def with_epsilon(header, epsilon, *, also_parameters):
    """All claims of a file, and of the model inside a pipeline, made smaller."""
    header["guarantee"]["epsilon"] = epsilon
    for part in (header["model"], header["model"]["attributes"].get("model_")):
        if part is None:
            continue
        part["attributes"]["plan_"]["fields"]["epsilon"] = epsilon
        if also_parameters:
            part["parameters"]["epsilon"] = epsilon
    return header


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("also_parameters", [False, True])
def test_a_forged_price_is_refused(tmp_path, name, also_parameters):
    """All scales times 1000 and epsilon 0.1 was shown as proven."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SPECIAL[name]()
    good = json.loads(models.dumps(model))
    (tmp_path / "good.json").write_text(resigned(good))
    assert load(tmp_path / "good.json").privacy_ == model.privacy_
    forged = with_epsilon(multiplied(good, 1000.0), 0.1, also_parameters=also_parameters)
    refused(tmp_path, resigned(forged))
    assert "edited" in refused(tmp_path, resigned(multiplied(good, 1.01)))


PROMISES = {
    "assumptions": [],
    "source": "docs/proofs/none.md",
    "n_units": 7,  # with delta far below 1/7 there is no caution
    "table": "the evaluated table",
}


@pytest.mark.parametrize("fact", PROMISES)
@pytest.mark.parametrize("name", ["gradient", "pipeline", "searched pipeline"])
def test_a_forged_promise_is_refused(tmp_path, name, fact):
    """What a guarantee rests on, and how far it reaches, follows from the parameters as its price does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        good = json.loads(models.dumps(SPECIAL[name]()))
    for inside in (False, True) if "model_" in good["model"]["attributes"] else (False,):
        forged = json.loads(json.dumps(good))
        value = ["none"] if inside and fact == "assumptions" else PROMISES[fact]
        if not inside:
            forged["guarantee"][fact] = value
        attributes = forged["model"]["attributes"]
        attributes = attributes["model_"]["attributes"] if inside else attributes
        plan = attributes["plan_"]["fields"]
        packed = {"type": "tuple", "items": value} if fact == "assumptions" else value
        changes = plan[fact] != packed
        plan[fact] = packed
        if changes:  # some models assume nothing
            assert "edited" in refused(tmp_path, resigned(forged))


def add_a_parameter(plan):
    plan["parameters"]["items"].append(["audited by", "the authority: epsilon is 0.01"])


def change_a_note(plan):
    plan["phases"]["items"][0]["fields"]["note"] = "no row was read"


def allow_more_rows(plan):
    plan["max_rows"] = 2**60


def leave_out_a_release(plan):
    del plan["phases"]["items"][0]


@pytest.mark.parametrize(
    "forge", [add_a_parameter, change_a_note, allow_more_rows, leave_out_a_release]
)
@pytest.mark.parametrize("name", ["gradient", "pipeline", "searched pipeline"])
def test_what_a_card_shows_beside_the_promise_is_computed_again(tmp_path, name, forge):
    """A card printed whatever a file called a parameter of the plan; the model in a pipeline could hide releases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        good = json.loads(models.dumps(SPECIAL[name]()))
    for inside in (False, True) if "model_" in good["model"]["attributes"] else (False,):
        forged = json.loads(json.dumps(good))
        attributes = forged["model"]["attributes"]
        attributes = attributes["model_"]["attributes"] if inside else attributes
        forge(attributes["plan_"]["fields"])
        assert "edited" in refused(tmp_path, resigned(forged))


def test_a_search_is_checked_by_what_was_searched(tmp_path):
    """Without the settings of the search its price cannot be computed again, so they are part of the file."""
    good = json.loads(models.dumps(search("paid search")))
    searched = good["model"]["attributes"].pop("search_")
    assert "edited" in refused(tmp_path, resigned(good))
    plain = models.dumps(gradient())
    refused(tmp_path, changed(plain, "model.attributes.search_", searched))


@pytest.mark.parametrize("name", estimators.__all__)
def test_every_proven_model_is_priced_again(tmp_path, name):
    for number, (_, parameters) in enumerate(CASES[name]):
        domain = TWO if name.endswith("Classifier") else NUMBER
        try:
            model = getattr(estimators, name)(domain, **parameters).fit(
                X, LABELS if domain is TWO else NUMBERS
            )
        except dp.exceptions.DPSparseError:
            continue
        good = json.loads(models.dumps(model))
        path = tmp_path / f"{number}.json"
        path.write_text(resigned(good))
        assert load(path).plan_ == model.plan_
        forged = multiplied(good, 1.01)
        if forged != good:
            assert "edited" in refused(tmp_path, resigned(forged))


def test_a_model_of_another_version_says_so(tmp_path, text):
    header = json.loads(text)
    header["dpsparse"] = "9.9.9"
    (tmp_path / "m.json").write_text(resigned(header))
    assert load(tmp_path / "m.json").privacy_.proven  # the prices of both versions are the same
    message = refused(tmp_path, resigned(multiplied(header, 2.0)))
    assert "9.9.9" in message
