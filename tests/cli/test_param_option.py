"""`--param` sets hyper-parameters of the method and nothing else: terms, account, facts and seed have options."""

from pathlib import Path

import pytest

from dpsparse import Ledger
from dpsparse import methods as estimators
from dpsparse.cli.audit import read_config
from dpsparse.cli.options import methods
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import hyper_parameters

COMMON = {"domain", "epsilon", "delta", "adjacency", "ledger", "random_state", "verbose"}
FIT = "fit people.csv --target label --classes no,yes --row-norm 1 --epsilon 1 --ledger book.db -o m.json"
COMMANDS = {
    "fit": FIT,
    "fit prepared": f"{FIT} --prepare private",
    "check": "check --n-features 2 --classes no,yes --row-norm 1 --ledger book.db",
    "check prepared": "check people.csv --target label --classes no,yes --prepare private --ledger book.db",
    "tune": FIT.replace("fit", "tune") + " --candidates n_nonzero=[1,2]",
    "tune prepared": FIT.replace("fit", "tune") + " --candidates n_nonzero=[1,2] --prepare private",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"0.{i % 7},{i % 3},{'no' if i % 2 else 'yes'}\n" for i in range(60))
    Path("people.csv").write_text("age,visits,label\n" + rows)
    Ledger("book.db", epsilon=2.0, delta=1e-6)


@pytest.mark.parametrize("name", [*sorted(COMMON), "calibration"])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_hyper_parameter_is_refused_by_name(run, command, name):
    """`--param ledger=null` switched off the ledger that the same command named."""
    head = Ledger("book.db").head
    for value in ("null", "1", "x"):
        code, out, err = run(*COMMANDS[command].split(), "--param", f"{name}={value}")
        assert (code, out) == (2, "")
        assert f"--param {name}" in err
    assert Ledger("book.db").head == head
    assert not Path("m.json").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_value_is_stated_once(run, command):
    for twice in (
        ["--n-nonzero", "1", "--param", "n_nonzero=2"],
        ["--param", "n_nonzero=1", "--param", "n_nonzero=2"],
    ):
        code, _, err = run(*COMMANDS[command].split(), "--method", "gradient", *twice)
        assert code == 2
        assert "n_nonzero is stated twice" in err


def test_a_hyper_parameter_is_set(run):
    assert run(*FIT.split(), "--param", "n_iter=3")[0] == 0
    assert '"n_iter": 3' in run("inspect", "m.json", "--json")[1]


@pytest.mark.parametrize("name", estimators.__all__)
def test_hyper_parameters_are_what_is_not_common_to_all(name):
    kind = getattr(estimators, name)
    own = hyper_parameters(kind)
    assert not COMMON & set(own)
    assert COMMON | set(own) == set(kind().get_params(deep=False)) - {"calibration"}


def test_the_list_of_methods_shows_hyper_parameters(run):
    for line in run("methods")[1].splitlines():
        assert not {"epsilon", "ledger", "random_state"} & set(line.replace(",", " ").split())
    assert methods()


@pytest.mark.parametrize("more", [[], ["--prepare", "private"]])
def test_candidates_vary_hyper_parameters_alone(run, more):
    for parameter in sorted(COMMON):
        line = f"{COMMANDS['tune']} --candidates {parameter}=[1]"
        code, _, err = run(*line.split(), *more)
        assert code == 2
        assert parameter in err


@pytest.mark.parametrize("name", ["ledger", "random_state", "verbose", "domain"])
def test_an_audit_takes_terms_and_hyper_parameters(tmp_path, name):
    text = f"estimator = 'DPGradientClassifier'\n[domain]\nclasses = [0, 1]\n[parameters]\n{name} = 1\n"
    Path("audit.toml").write_text(text)
    with pytest.raises(ParameterError, match=f"has no '{name}'"):
        read_config(Path("audit.toml"))
