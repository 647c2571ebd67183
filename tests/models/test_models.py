"""Model files: bit-exact round trips, clear refusals, plain scikit-learn models."""

import ast
import copy
import errno
import inspect
import json
import math
import os
import textwrap
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPPipeline,
    DPSearchCV,
    DPStandardizer,
    Ledger,
    preprocessing,
    published,
)
from dpsparse import methods as estimators
from dpsparse.exceptions import ModelFileError
from dpsparse.models import files as models
from dpsparse.models.files import load, save
from dpsparse.models.values import stored_names
from dpsparse.report import privacy_card

RNG = np.random.default_rng(0)
X = sp.random_array((300, 40), density=0.2, rng=RNG, format="csr")
BINARY = RNG.integers(0, 2, 300)
WORDS = np.array(["ham", "spam", "eggs"])[RNG.integers(0, 3, 300)]


def fitted(y=BINARY, **options):
    domain = Domain(row_norm=1.0, classes=sorted(set(y.tolist())), n_samples=300)
    return DPGradientClassifier(domain, n_iter=3, **options).fit(X, y)


MODELS = {
    "binary": fitted(),
    "words": fitted(WORDS, n_nonzero=5),
    "noiseless": fitted(epsilon=math.inf),
    "sparse": fitted(n_nonzero=5).sparsify(),
}


EVERY = [getattr(estimators, name) for name in estimators.__all__]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_estimator_is_saved_and_exported(tmp_path, kind):
    """Whatever joins the library must survive a file and become a plain scikit-learn model."""
    classifier = kind.__name__.endswith("Classifier")
    facts = {"classes": [0, 1]} if classifier else {"target_bound": 1.0}
    domain = Domain(row_norm=1.0, n_samples=300, **facts)
    model = kind(domain).fit(X, BINARY)
    again = load(save(model, tmp_path / "m.json"))
    assert type(again) is kind
    assert bits(again.coef_) == bits(model.coef_)
    assert again.coef_.shape == model.coef_.shape
    assert (again.privacy_, again.plan_) == (model.privacy_, model.plan_)
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.to_sklearn().predict(X), model.predict(X))
    assert "<html" in privacy_card(again)


@cache
def published_attributes(base):
    """Attributes of `self` that the source of one class sets, and that end in an underscore."""
    nodes = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base))))
    own = [n for n in nodes if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self"]
    return {n.attr for n in own if isinstance(n.ctx, ast.Store) and n.attr.endswith("_")}


@pytest.mark.parametrize(
    "kind",
    [
        getattr(room, name)
        for room in (estimators, published, preprocessing)
        for name in room.__all__
        if hasattr(getattr(room, name), "get_params")
    ],
    ids=lambda kind: kind.__name__,
)
def test_what_a_class_publishes_is_declared(kind):
    """A file holds the attributes that a class declares, and no other is read from it."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("dpsparse")]
    stored = set().union(*map(published_attributes, ours))
    assert stored
    assert stored - {"privacy_", "history_"} <= stored_names(kind)


def bits(array):
    return np.ascontiguousarray(array.toarray() if sp.issparse(array) else array).tobytes()


@pytest.mark.parametrize("name", MODELS)
def test_round_trip_is_bit_exact(tmp_path, name):
    model = MODELS[name]
    path = save(model, tmp_path / "model.json")
    again = load(path)
    assert type(again) is type(model)
    assert bits(again.coef_) == bits(model.coef_)
    assert sp.issparse(again.coef_) == sp.issparse(model.coef_)
    assert bits(again.intercept_) == bits(model.intercept_)
    assert again.classes_.dtype == model.classes_.dtype
    assert again.privacy_ == model.privacy_
    assert again.plan_ == model.plan_
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert save(again, tmp_path / "second.json").read_bytes() == path.read_bytes()


def test_the_ledger_stays_at_home(tmp_path):
    model = fitted(ledger=Ledger(epsilon=2.0, delta=1e-5))
    path = save(model, tmp_path / "m.json")
    assert load(path).ledger is None
    assert "ledger" not in path.read_text()


def test_feature_names(tmp_path):
    names = [f"w{j}" for j in range(40)]
    assert load(save(MODELS["binary"], tmp_path / "a.json")).feature_names_ is None
    path = save(MODELS["binary"], tmp_path / "b.json", feature_names=names)
    assert load(path).feature_names_ == tuple(names)
    assert load(save(load(path), tmp_path / "c.json")).feature_names_ == tuple(names)
    with pytest.raises(ModelFileError, match="3 feature names"):
        save(MODELS["binary"], tmp_path / "d.json", feature_names=names[:3])


def test_an_existing_file_is_kept(tmp_path):
    path = save(MODELS["binary"], tmp_path / "m.json")
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match="exists"):
        save(MODELS["words"], path)
    assert path.read_bytes() == before
    save(MODELS["words"], path, overwrite=True)
    assert load(path).classes_.tolist() == ["eggs", "ham", "spam"]
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]
    with pytest.raises(ModelFileError, match="cannot be written"):
        save(MODELS["binary"], tmp_path / "no" / "m.json")


def test_only_fitted_models_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save(DPGradientClassifier(Domain()), tmp_path / "m.json")


def test_what_could_not_be_read_again_is_not_saved(tmp_path):
    raw = X.toarray()
    pipe = DPPipeline(
        [
            ("scale", DPStandardizer()),
            ("model", DPGradientClassifier(Domain(classes=[0, 1]), n_iter=3)),
        ],
        epsilon=500.0,
    )
    pipe.fit(raw, BINARY)
    search = DPSearchCV(
        DPGradientClassifier(Domain(row_norm=1.0, classes=[0, 1])), {"n_iter": [1, 2]}
    )
    search.fit(X, BINARY)
    changed = copy.copy(MODELS["binary"]).set_params(epsilon=2.0)
    rounded = copy.copy(MODELS["binary"])
    rounded.coef_ = rounded.coef_.astype(np.float32)
    for wrong, remedy in (
        (pipe.model_, "save the pipeline"),
        (search, "best_estimator_"),
        (changed, "Fit it anew"),
        (rounded, "Fit it anew"),
        (pipe.steps_[0][1], "Only fitted estimators"),
        (LogisticRegression().fit(raw, BINARY), "Only fitted estimators"),
        (None, "Only fitted estimators"),
    ):
        with pytest.raises(ModelFileError, match=remedy):
            save(wrong, tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []
    for right in (pipe, search.best_estimator_):
        path = save(right, tmp_path / f"{type(right).__name__}.json")
        assert np.array_equal(load(path).predict(raw), right.predict(raw))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return save(MODELS["words"], tmp_path_factory.mktemp("m") / "m.json").read_text()


def refused(folder, content):
    path = folder / "broken.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelFileError) as error:
        load(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_damaged_and_foreign_files_are_refused(tmp_path, text):
    for content in ("", "{}", "[]", "null", "1", '{"format": 1}', b"\x80\x04pickle", b"PK\x03\x04"):
        refused(tmp_path, content)
    assert "not a dpsparse model" in refused(tmp_path, "[" * 100_000)
    assert "damaged" in refused(tmp_path, text[: len(text) // 2])
    assert "checksum" in refused(tmp_path, text.replace('"epsilon": 1.0', '"epsilon": 0.1'))
    assert "schema 2" in refused(tmp_path, text.replace('"schema": 1', '"schema": 2'))
    with pytest.raises(ModelFileError, match="no file"):
        load(tmp_path / "none.json")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(tmp_path)


def resigned(header):
    header = dict(header)
    header.pop("checksum", None)
    return json.dumps({**header, "checksum": models._checksum(header)})


def test_consistent_nonsense_is_refused_too(tmp_path, text):
    """A right checksum on a wrong content: other programs may write files as well."""
    good = json.loads(text)
    future = {**good["model"], "kind": "DPFuture"}
    assert "DPFuture" in refused(tmp_path, resigned({**good, "model": future}))
    model = good["model"]
    for part, keys in ((good, ["guarantee", "model"]), (model, ["parameters", "attributes"]),
                       (model["attributes"], ["coef_", "plan_"])):  # fmt: skip
        for key in keys:
            kept = part.pop(key)
            refused(tmp_path, resigned(good))
            part[key] = {"type": "os.system", "fields": {}}
            refused(tmp_path, resigned(good))
            part[key] = kept
    coef = model["attributes"]["coef_"]
    coef["indices"] = [10**6] * len(coef["indices"])
    refused(tmp_path, resigned(good))


PLAN = ["model", "attributes", "plan_", "fields"]


def edited(good, *places, **changes):
    """The header of a file with the values at `places` (lists of keys) replaced."""
    header = json.loads(json.dumps(good))
    for place in places:
        part = header
        for key in place:
            part = part[key]
        part.update(changes)
    return resigned(header)


def test_an_edited_promise_is_refused(tmp_path):
    """Somebody edits epsilon 8 to 0.01 in a file, and computes the checksum again."""
    good = json.loads(save(fitted(epsilon=8.0), tmp_path / "m.json").read_text())
    assert load(tmp_path / "m.json").privacy_.epsilon == 8.0
    claims = [["guarantee"], PLAN, ["model", "parameters"]]
    for places in (claims[:1], claims[1:2], claims[:2], claims, claims[2:]):
        refused(tmp_path, edited(good, *places, epsilon=0.01))
        refused(tmp_path, edited(good, *places, epsilon=7.9))
    refused(tmp_path, edited(good, *claims, delta=1e-9))
    refused(tmp_path, edited(good, claims[0], adjacency="replace-one"))
    refused(tmp_path, edited(good, *claims[:2], adjacency="replace-one"))
    assert "edited" in refused(tmp_path, edited(good, claims[0], assumptions=[]))
    assert "edited" in refused(tmp_path, edited(good, claims[0], unit="one household"))
    assert "edited" in refused(tmp_path, edited(good, claims[2], random_state=1))
    everything = edited(good, *claims[:2], proven=False)
    path = tmp_path / "honest.json"
    path.write_text(everything)  # claiming less is no lie
    assert not load(path).privacy_.proven


def test_an_unproven_model_cannot_be_edited_into_a_proven_one(tmp_path):
    good = json.loads(save(MODELS["noiseless"], tmp_path / "m.json").read_text())
    for epsilon in (1.0, {"type": "float", "value": "inf"}):
        refused(tmp_path, edited(good, ["guarantee"], PLAN, proven=True, epsilon=epsilon))
    refused(tmp_path, edited(good, ["guarantee"], proven=True, epsilon=1.0, events=[]))


def test_the_text_of_a_model_is_its_file(tmp_path):
    text = models.dumps(MODELS["words"])
    assert text == save(MODELS["words"], tmp_path / "m.json").read_text()


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    path = save(MODELS["binary"], tmp_path / "m.json")
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for target, overwrite in ((path, True), (tmp_path / "n.json", False)):
        with pytest.raises(ModelFileError, match="No space left"):
            save(MODELS["words"], target, overwrite=overwrite)
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]
    assert path.read_bytes() == before


def test_a_file_system_without_hard_links(tmp_path, monkeypatch):
    def refuse(*places):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    path = save(MODELS["binary"], tmp_path / "m.json")
    assert load(path).privacy_ == MODELS["binary"].privacy_
    with pytest.raises(ModelFileError, match="exists"):
        save(MODELS["words"], path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    real = save(MODELS["words"], tmp_path / "folder" / "real.json")
    (tmp_path / "m.json").symlink_to(real)
    save(MODELS["binary"], tmp_path / "m.json", overwrite=True)
    assert (tmp_path / "m.json").is_symlink()
    assert load(real).classes_.tolist() == [0, 1]
    (tmp_path / "n.json").symlink_to(tmp_path / "folder" / "none.json")
    with pytest.raises(ModelFileError, match="link"):
        save(MODELS["binary"], tmp_path / "n.json", overwrite=True)


@settings(max_examples=150)
@given(position=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_any_changed_byte_is_found(tmp_path_factory, text, position, byte):
    content = bytearray(text.encode())
    at = int(position * len(content))
    path = tmp_path_factory.getbasetemp() / "flip.json"
    content[at] = byte
    path.write_bytes(content)
    try:
        again = load(path)
    except ModelFileError:
        return
    assert json.loads(path.read_text()) == json.loads(text)  # blank space only
    assert bits(again.coef_) == bits(MODELS["words"].coef_)


@pytest.mark.parametrize("name", MODELS)
def test_to_sklearn_predicts_the_same(name):
    model = MODELS[name]
    plain = model.to_sklearn()
    assert type(plain) is LogisticRegression
    assert np.array_equal(plain.predict(X), model.predict(X))
    assert np.allclose(plain.predict_proba(X), model.predict_proba(X), rtol=1e-12, atol=0)
    assert np.array_equal(plain.decision_function(X), model.decision_function(X))
    assert plain.sparsify().predict(X).tolist() == model.predict(X).tolist()
