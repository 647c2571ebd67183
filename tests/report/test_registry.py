"""A registry entry follows from what a model promises, and asks for what only people know."""

from pathlib import Path

import numpy as np
import pytest

from dpsparse import Domain, DPGradientClassifier, Ledger, save
from dpsparse.exceptions import NotPrivateWarning, ParameterError
from dpsparse.report import registry_entry
from dpsparse.report.registry import ASKED, SECTORS, missing

SCHEMA = Path(__file__).parents[2].parent / "shared" / "registry" / "deployments-schema.yaml"
ANSWERS = {
    "name": 'Flu model "2026"',
    "curators": "Hospital A; Institute B",
    "description": "Weights of a risk model: few, with noise.",
    "intended_use": "Triage research",
    "region": "Nowhere",
    "publication_date": "2026-11-16",
    "authors": "An author",
    "sector": "Healthcare",
    "tuning": "Defaults.",
    "justification": "As agreed with the officer.",
    "actors": "Everybody may see the weights.",
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    ledger = Ledger(folder / "budget.db", epsilon=3.0, delta=1e-6)
    X = np.random.default_rng(0).uniform(-1, 1, (300, 12))
    model = DPGradientClassifier(Domain(classes=[0, 1], n_samples=300), epsilon=0.75, ledger=ledger)
    return model.fit(X, (X[:, 0] > 0).astype(int)), ledger


@pytest.fixture(scope="module")
def unproven():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 12))
    with pytest.warns(NotPrivateWarning):
        return DPGradientClassifier(Domain(classes=[0, 1]), random_state=0).fit(
            X, (X[:, 0] > 0).astype(int)
        )


def test_the_entry_states_what_the_model_promises(fitted):
    model, ledger = fitted
    entry = registry_entry(model, ANSWERS, ledger=ledger)
    loss = entry["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 0.75, "delta": 1e-6}
    assert loss["privacy_unit"] == "one row"
    assert (
        "ceiling is epsilon 3 at delta 1e-6, releases on record: 1"
        in entry["deployment"]["accounting"]["composition"]
    )
    assert "Gaussian on a grid" in entry["deployment"]["implementation"]["mechanisms"]
    assert entry["tier"] == 3
    assert registry_entry(model, {k: v for k, v in ANSWERS.items() if k != "tuning"})["tier"] == 2


def test_the_entry_satisfies_the_registrys_schema(fitted):
    yaml, jsonschema = pytest.importorskip("yaml"), pytest.importorskip("jsonschema")
    if not SCHEMA.exists():
        pytest.skip("the registry's schema is not here")
    schema = yaml.safe_load(SCHEMA.read_text("utf-8"))
    required = {k: v for k, v in ANSWERS.items() if ASKED[k][0]}
    for answers in (ANSWERS, required):
        entry = registry_entry(fitted[0], answers, ledger=fitted[1])
        jsonschema.validate(entry, schema)
    sectors = schema["properties"]["deployment"]["properties"]["basic"]["properties"][
        "data_product_sector"
    ]["enum"]
    assert tuple(sectors) == SECTORS


def test_what_only_people_know_is_asked_for(fitted):
    assert set(missing({})) == {name for name, (required, _) in ASKED.items() if required}
    with pytest.raises(ParameterError, match="please answer curators"):
        registry_entry(fitted[0], {"name": "x"})
    with pytest.raises(ParameterError, match="publication_date must be YYYY-MM-DD"):
        registry_entry(fitted[0], ANSWERS | {"publication_date": "soon"})
    with pytest.raises(ParameterError, match="sector must be one of"):
        registry_entry(fitted[0], ANSWERS | {"sector": "Fishing"})
    with pytest.raises(ParameterError, match="no question colour"):
        registry_entry(fitted[0], ANSWERS | {"colour": "blue"})


def test_a_model_without_a_guarantee_is_not_registered(unproven):
    with pytest.raises(ParameterError, match="no proven guarantee"):
        registry_entry(unproven, ANSWERS)


def test_commands(fitted, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    model, _ = fitted
    save(model, "model.json")
    code, _, told = run("registry", "model.json", "-o", "entry.yaml")
    assert code == 2
    assert "--answer curators=... is missing" in told
    answers = [part for name, text in ANSWERS.items() for part in ("--answer", f"{name}={text}")]
    code, _, told = run("registry", "model.json", "-o", "entry.yaml", *answers)
    assert code == 0, told
    entry = pytest.importorskip("yaml").safe_load(Path("entry.yaml").read_text())
    assert entry == registry_entry(model, ANSWERS)  # quotes, colons and 1e-06 survive
    assert "curators" in run("registry", "--questions")[1]
