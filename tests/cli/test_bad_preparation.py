"""Bad input of the commands that prepare raw tables: one line, the right exit code, no cell, nothing spent."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dpsparse import Domain, DPGradientClassifier, DPPipeline, DPTablePreparer
from dpsparse.cli import main
from dpsparse.exceptions import DPSparseError
from dpsparse.ledger import Ledger

MARK = "zq7SECRET"
ROWS = "\n".join(
    f"{MARK}{i},{i}.7316180,f,2020-01-0{1 + i % 9},{'no' if i % 2 else 'yes'}" for i in range(60)
)
RAW = f"who,amount,sex,day,label\n{ROWS}\n"
FILES = {
    "raw.csv": RAW,
    "ragged.csv": RAW + f"{MARK},1\n",
    "twice.csv": "a,a,label\n1,2,no\n",
    "empty.csv": "",
    "header.csv": "who,label\n",
    "nohead.csv": f"{MARK},1.5\n{MARK}2,2.5\n",
    "lines.jsonl": f'{{"who": "{MARK}", "label": "no"}}\n[1, 2]\n',
    "broken.jsonl": f'{{"who": "{MARK}"',
    "broken.parquet": MARK,
    "broken.csv.gz": MARK,
    "list.yaml": "- 1\n- 2\n",
    "bad.yaml": "classes: [no, yes\n",
    "bad.json": "{",
    "unknown.yaml": "colour: red\n",
    "column.yaml": "columns: {amount: {colour: red}}\n",
    "bounds.yaml": "classes: [no, yes]\ncolumns: {amount: {bounds: [5, 1]}}\n",
    "role.yaml": "classes: [no, yes]\ntarget: label\ncolumns: {amount: {prepare: guess}}\n",
    "absent.yaml": "classes: [no, yes]\ntarget: label\ncolumns: {nothing: {prepare: auto}}\n",
}
FIT = "fit raw.csv --target label --classes no,yes --ledger b.db -o m.json"
CASES = [
    (3, FIT),
    (2, f"{FIT} --prepare guess"),
    (2, f"{FIT} --prepare declared"),
    (2, f"{FIT} --bounds amount"),
    (2, f"{FIT} --bounds amount=1"),
    (2, f"{FIT} --bounds amount=a..b"),
    (2, f"{FIT} --bounds amount=9..1 --prepare private"),
    (2, f"{FIT} --bounds amount=nan..1 --prepare private"),
    (2, f"{FIT} --bounds =0..1 --prepare private"),
    (2, f"{FIT} --bounds nothing=0..1 --prepare private"),
    (2, f"{FIT} --categories sex=f,f --prepare private"),
    (2, f"{FIT} --categories sex= --prepare private"),
    (2, f"{FIT} --categories sex=f,m --hash sex --prepare private"),
    (2, f"{FIT} --hash nothing --prepare private"),
    (2, f"{FIT} --hash label --prepare private"),
    (2, f"{FIT} --text label --prepare private"),
    (2, f"{FIT} --drop who,amount,sex,day --prepare private"),
    (2, f"{FIT} --fill amount --prepare private"),
    (2, f"{FIT} --fill nothing=3 --prepare private"),
    (2, f"{FIT} --prepare private --epsilon 0"),
    (2, f"{FIT} --prepare private --epsilon -1"),
    (2, f"{FIT} --prepare private --epsilon nan"),
    (2, f"{FIT} --prepare private --delta 2"),
    (2, f"{FIT} --prepare private --method nothing"),
    (2, f"{FIT} --prepare private --memory 2GB"),
    (4, f"{FIT} --prepare private --epsilon 50"),
    (4, f"{FIT} --prepare private --random-state 0"),
    (3, "fit raw.csv --classes no,yes --prepare private -o m.json"),
    (3, "fit raw.csv --target nothing --classes no,yes --prepare private -o m.json"),
    (2, "fit raw.csv --target label --prepare private -o m.json"),
    (3, "fit raw.csv --target label --classes no,maybe --prepare private --ledger b.db -o m.json"),
    (3, "fit raw.csv --target label --target-range 0..1 --prepare private --ledger b.db -o m.json"),
    (2, "fit raw.csv --target label --classes no,yes --target-range 0..1 --prepare private -o m.json"),
    *((3, f"fit {n} --target label --classes no,yes --prepare private --ledger b.db -o m.json") for n in FILES
      if n.split(".")[0] in ("ragged", "twice", "empty", "header", "nohead", "lines", "broken")),
    (3, "fit absent.csv --target label --classes no,yes --prepare private --ledger b.db -o m.json"),
    (3, "fit rows.svm --target label --classes no,yes --prepare private --ledger b.db -o m.json"),
    *((2, f"fit raw.csv --domain {n} --ledger b.db -o m.json") for n in FILES if n.endswith((".yaml", ".json"))),
    (2, "fit raw.csv --domain nothing.yaml --ledger b.db -o m.json"),
    *((2, f"check raw.csv --domain {n}") for n in [*(n for n in FILES if n[:3] in "lis bad unk col bou"), "x.yaml"]),
    *((3, f"check {n} --target label --classes no,yes -o m.json") for n in ("empty.csv", "nohead.csv.gz")),
    (3, "check raw.csv --target nothing --classes no,yes -o m.json"),
    (3, "check raw.csv --target label --person nothing --classes no,yes -o m.json"),
    (6, "check raw.csv --target label --classes no,yes -o raw.csv"),
    (6, "check raw.csv --target label --classes no,yes -o nowhere/f.yaml"),
    (2, "budget create c.db --epsilon 0"),
    (6, "report nothing.json -o card.html"),
    (6, "predict raw.csv raw.csv"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("rows.svm").write_text("1 1:1\n0 2:1\n")
    Ledger("b.db", epsilon=3.0, delta=1e-5)


@pytest.mark.parametrize(("code", "line"), CASES, ids=[line[:80] for _, line in CASES])
def test_one_line_no_cell_nothing_spent(folder, capsys, monkeypatch, code, line):
    monkeypatch.setattr(sys, "argv", ["dpsparse", *line.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    assert stop.value.code == code, err
    assert "Traceback" not in err
    assert err.count("\n") == 1
    assert "SECRET" not in out + err
    assert "7316180" not in out + err
    assert Ledger("b.db").spent() == 0.0
    assert not Path("m.json").exists()


def frames():
    rng = np.random.default_rng(0)
    return {
        "amount": rng.normal(0, 1, 50),
        "name": np.array([f"{MARK}{i}" for i in range(50)], object),
    }


BAD_PREPARERS = [
    {}, {"columns": []}, {"columns": 3}, {"columns": {"amount": "guess"}}, {"columns": {3: "auto"}},
    {"rest": "guess"}, {"rest": 3}, {"rest": "drop"}, {"columns": {"nothing": "auto"}, "rest": "auto"},
    {"columns": {"amount": (1, 0)}, "rest": "auto"}, {"columns": {"name": []}, "rest": "auto"},
    {"rest": "auto", "epsilon": 1.0}, {"columns": {"amount": "number"}},
    {"rest": "auto", "delta": 0}, {"rest": "auto", "adjacency": "none"}, {"rest": "auto", "random_state": "x"},
]  # fmt: skip


@pytest.mark.parametrize("parameters", BAD_PREPARERS, ids=[str(p)[:60] for p in BAD_PREPARERS])
def test_bad_preparers_spend_nothing(tmp_path, parameters):
    ledger = Ledger(tmp_path / "b.db", epsilon=3.0, delta=1e-5)
    model = DPGradientClassifier(Domain(classes=[0, 1]))
    pipe = DPPipeline([("table", DPTablePreparer(**parameters)), ("model", model)], ledger=ledger)
    with pytest.raises((DPSparseError, ValueError)) as caught:
        pipe.fit(frames(), np.arange(50) % 2)
    assert "SECRET" not in str(caught.value)
    assert ledger.spent() == 0.0


BAD_DOMAINS = [
    {"bounds": 3}, {"bounds": {"a": 3}}, {"bounds": {"a": (1, 1)}}, {"bounds": {"a": (2, 1)}},
    {"bounds": {"a": ("x", 1)}},
    {"bounds": {"a": (0, float("inf"))}}, {"bounds": {"a": (float("nan"), 1)}}, {"bounds": [(0, 1), (2,)]},
    {"categories": 3}, {"categories": {"a": []}}, {"categories": {"a": "ab"}}, {"categories": {"a": ["x", "x"]}},
    {"fill": 3}, {"fill": {"a": None}}, {"fill": {"a": float("nan")}}, {"sources": 3}, {"bounds": {"a": (0, 1e-40)}},
]  # fmt: skip


@pytest.mark.parametrize("facts", BAD_DOMAINS, ids=[str(f)[:60] for f in BAD_DOMAINS])
def test_bad_facts_are_refused_by_name(facts):
    with pytest.raises(DPSparseError, match=f"Domain.{next(iter(facts))}"):
        Domain(classes=[0, 1], **facts)


def test_counted():
    assert len(CASES) >= 60
    assert len(BAD_PREPARERS) + len(BAD_DOMAINS) >= 33
    json.dumps(FILES)
