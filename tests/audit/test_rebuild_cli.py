"""Commands are rebuilt as runs in Python are: what they print, their exit codes and the files they write."""

import csv
import re
import sys
from itertools import count

import pytest

from audit.runs import BINARY, NUMBER, ROLES, TRIPLE
from dpsparse import Domain
from dpsparse.audit import rebuild
from dpsparse.audit.tables import Schema
from dpsparse.cli import main

LEDGER = "budget create ledger.db --epsilon 100 --delta 1e-5"
HEAD = re.compile(rb'"head": "[0-9a-f]{64}"')  # of a ledger's chain, which dates its entries
# name -> public facts, roles of columns, commands
CHAINS = {
    "check with a look": (
        BINARY,
        ROLES,
        [
            "check rows.csv --target y --classes 0,1 --prepare private --look 0.5 --n-samples 100",
            "check rows.csv --target y --classes 0,1 --numbers age --hash region --drop born,income,note --look 0.5",
        ],
    ),
    "fit, evaluate, report": (
        BINARY,
        None,
        [
            "fit rows.csv -o m.json --target y --classes 0,1 --epsilon 3",
            "evaluate m.json rows.csv --target y --epsilon 2 -o e.json",
            "report m.json -o card.html --evaluation e.json",
            "inspect m.json",
        ],
    ),
    "fit numbers": (
        NUMBER,
        None,
        [
            "fit rows.csv -o m.json --target y --target-range=-3..3 --feature-bound 1 --method lasso --param n_iter=4",
            "evaluate m.json rows.csv --target y --epsilon 2",
        ],
    ),
    "prepare": (
        TRIPLE,
        ROLES,
        [
            "fit rows.csv -o m.json --target y --classes a,b,c --epsilon 20 --prepare private --n-samples 4000",
            "evaluate m.json rows.csv --target y --epsilon 2",
        ],
    ),
    "persons": (
        BINARY,
        ROLES,
        [
            "fit rows.csv -o m.json --target y --classes 0,1 --person id --epsilon 20 --prepare declared "
            "--bounds age=0..100 --categories region=north,south --words note --drop born,income",
        ],
    ),
    "tune": (
        BINARY,
        None,
        [
            "tune rows.csv -o m.json --candidates n_nonzero=[1,3] --target y --classes 0,1 --epsilon 3"
        ],
    ),
    "tune a prepared table": (
        BINARY,
        ROLES,
        [
            "tune rows.csv -o m.json --candidates n_nonzero=[1,3] --candidates threshold=[0.0,0.1] --target y "
            "--classes 0,1 --epsilon 20 --prepare private --method gradient --n-samples 4000"
        ],
    ),
}


def write(folder, columns, y, groups):
    """A CSV file; gaps are empty cells."""
    columns = {**columns, "y": y, **({} if groups is None else {"id": groups})}
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(["" if cell is None or cell != cell else cell for cell in row])


@pytest.mark.heavy
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[] if n.startswith(("fit,", "check")) else pytest.mark.slow)
        for n in CHAINS
    ],
)
def test_commands_are_rebuilt(name, tmp_path, monkeypatch):
    facts, roles, commands = CHAINS[name]
    folders, unit = count(), "person" if name == "persons" else "row"

    def action(X, y, groups=None):
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        columns = X if isinstance(X, dict) else {f"x{j}": X[:, j] for j in range(X.shape[1])}
        write(folder, columns, y, groups)
        monkeypatch.chdir(folder)
        codes = []
        for command in (f"{LEDGER} --unit {'row' if groups is None else 'person'}", *commands):
            pays = command.split()[0] in ("check", "fit", "tune", "evaluate")
            command += " --ledger ledger.db" if pays else ""
            monkeypatch.setattr(sys, "argv", ["dpsparse", *command.split()])
            with pytest.raises(SystemExit) as stop:
                main()
            codes.append(stop.value.code)
        left = sorted(p for p in folder.iterdir() if p.suffix in (".json", ".html"))
        return codes, {p.name: HEAD.sub(b"", p.read_bytes()) for p in left}

    schema = Schema(Domain(**facts, unit=unit), "add-remove", len(roles or range(7)), roles)
    table, strangers = schema.tables()
    found = rebuild(action, table, strangers)
    assert found.differences == ()
    assert found.n_answers > 0
    assert action(*table)[0] == [0] * len((LEDGER, *commands))
