"""A draft for the registry says what a model promises, and leaves a question where only people know."""

from pathlib import Path

import numpy as np
import pytest

from dpsparse import Domain, DPGradientClassifier, Ledger, save
from dpsparse.exceptions import NotPrivateWarning, ParameterError
from dpsparse.report import registry_entry

SCHEMA = Path(__file__).parents[2].parent / "shared" / "registry" / "deployments-schema.yaml"
ANSWERS = {
    "url_slug": "flu-model",
    "name": "Flu model",
    "description": "Weights of a risk model: few, with noise.",
    "intended_use": "Triage research",
    "data_product_region": "Nowhere",
    "publication_date": "2026-11-16",
}
yaml = pytest.importorskip("yaml")


def fit(ledger=None, **terms):
    X = np.random.default_rng(0).uniform(-1, 1, (300, 12))
    domain = Domain(classes=['"no"', "yes: \u00e4"], n_samples=300)
    labels = np.array(domain.classes)[(X[:, 0] > 0).astype(int)]
    return DPGradientClassifier(domain, epsilon=0.75, ledger=ledger, **terms).fit(X, labels)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    ledger = Ledger(folder / "budget.db", epsilon=3.0, delta=1e-6)
    return fit(ledger), ledger


def test_the_entry_states_what_the_model_promises(fitted):
    model, ledger = fitted
    text = registry_entry(model, ledger=ledger)
    entry = yaml.safe_load(text)["deployment"]
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.75, "delta": 1e-6}
    assert entry["privacy_loss"]["privacy_unit"] == "one row"
    composition = entry["accounting"]["composition"]
    assert "ceiling is epsilon 3 at delta 1e-6, releases on record: 1" in composition
    assert "Gaussian on a grid" in entry["implementation"]["mechanisms"]
    assert "yes: \u00e4" in entry["dp_variant"]["data_domain"]
    assert "\\u0027" not in text  # nor does a person who completes it want to read that
    assert entry["basic"]["name"] == ""
    assert "# who may see the data and the product" in text


def test_an_answered_draft_satisfies_the_registrys_schema(fitted):
    jsonschema = pytest.importorskip("jsonschema")
    if not SCHEMA.exists():
        pytest.skip("the registry's schema is not here")
    schema = yaml.safe_load(SCHEMA.read_text("utf-8"))
    text = registry_entry(fitted[0], ledger=fitted[1])
    for name, answer in ANSWERS.items():
        text = text.replace(f'{name}: ""', f'{name}: "{answer}"')
    text = text.replace('[""]', '["Hospital A"]')
    everything = "\n".join(
        line.replace("# ", "", 1) if ': ""' in line and line.lstrip().startswith("#") else line
        for line in text.splitlines()
    ).replace('sector: ""', 'sector: "Healthcare"')
    for answered in (text, everything):
        jsonschema.validate(yaml.safe_load(answered), schema)
    assert "justification" in yaml.safe_load(everything)["deployment"]["implementation"]


def test_a_model_without_a_guarantee_is_not_registered():
    with pytest.warns(NotPrivateWarning):
        unproven = fit(random_state=0)
    with pytest.raises(ParameterError, match="no proven guarantee"):
        registry_entry(unproven)


def test_the_command_writes_the_draft(fitted, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    save(fitted[0], "model.json")
    code, out, _ = run("registry", "model.json", "-o", "entry.yaml")
    assert code == 0
    assert "answer what is empty" in out
    assert Path("entry.yaml").read_text() == registry_entry(fitted[0])
    assert run("registry", "model.json", "-o", "entry.yaml")[0] == 6
