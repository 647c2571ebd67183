"""One table in the forms in which offices and programs save it: every one gives the same model, bit for bit.

Each form goes through check, budget, fit, predict, evaluate and report. Forms that need an option are tried without it
first: the refusal must name the option. Fits are seeded, so that models can be compared; they are not private.

`python tests/forms.py` prints the table of results, each form in a process and a folder of its own.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from in_process import run_command

FIT = ("--target", "krank", "--classes", "nein,ja", "--bounds", "alter=0..120", "--numbers", "kosten", "--dates",
       "seit", "--categories", "ort", "--drop", "notiz", "--epsilon", "5")  # fmt: skip
SEEDED = ("--random-state", "0")


def make_table(n: int = 400) -> pd.DataFrame:
    """Numbers, decimals, names with umlauts, dates with times, gaps and a long note."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, n)
    cost = pd.Series(rng.gamma(2.0, 9_000, n).round(2), dtype=object).where(rng.random(n) > 0.1)
    return pd.DataFrame(
        {
            "alter": age,
            "kosten": cost,
            "ort": rng.choice(["Köln", "Füssen", "none"], n),
            "seit": [f"{1 + i % 28:02}.{1 + i % 12:02}.{2010 + i % 9} 14:{10 + i % 50}" for i in range(n)],
            "notiz": ["kurz"] * (n - 1) + ["lang " * 40_000],
            "krank": np.where(age + rng.normal(0, 10, n) > 54, "ja", "nein"),
        }
    )  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A file, the options that its readers need, and those that only a fit and an evaluation need."""

    file: str
    write: Callable[[pd.DataFrame, str], object]
    how: tuple[str, ...] = ()
    fit: tuple[str, ...] = ()
    refused: bool = False  # without its options


def decimal_comma(value: object) -> str:
    return "" if pd.isna(value) else f"{value:,}".replace(",", "_").replace(".", ",").replace("_", ".")  # fmt: skip


def with_rows_without_target(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame.head(7).assign(krank=None), frame], ignore_index=True)


def _csv(**how: object) -> Callable[[pd.DataFrame, str], object]:
    return lambda frame, path: frame.to_csv(path, **{"index": False, **how})


FORMS = {
    "CSV": Form("t.csv", _csv()),
    "semicolons": Form("t.csv", _csv(sep=";"), ("--sep", ";"), refused=True),
    "tabs": Form("t.tsv", _csv(sep="\t")),
    "bars": Form("t.csv", _csv(sep="|"), ("--sep", "|"), refused=True),
    "decimal commas": Form(
        "t.csv",
        lambda frame, path: frame.assign(kosten=frame.kosten.map(decimal_comma)).to_csv(
            path, sep=";", index=False
        ),
        ("--sep", ";", "--decimal", ","),
        refused=True,
    ),
    "Latin-1": Form(
        "t.csv", _csv(encoding="latin-1"), ("--encoding", "latin-1"), refused=True
    ),
    "UTF-16": Form("t.csv", _csv(encoding="utf-16"), ("--encoding", "utf-16"), refused=True),
    "byte order mark": Form("t.csv", _csv(encoding="utf-8-sig")),
    "quotes": Form("t.csv", _csv(quoting=1)),
    "Windows line ends": Form("t.csv", _csv(lineterminator="\r\n")),
    "gzip": Form("t.csv.gz", _csv()),
    "no ending": Form("table", _csv(), ("--format", "csv"), refused=True),
    "Excel": Form(
        "t.xlsx",  # a cell holds 32,767 characters at most
        lambda frame, path: frame.assign(notiz="kurz").to_excel(path, index=False),
    ),
    "JSON array": Form("t.json", lambda frame, path: frame.to_json(path, orient="records")),
    "JSON lines": Form(
        "t.jsonl", lambda frame, path: frame.to_json(path, orient="records", lines=True)
    ),
    "Parquet": Form(
        "t.parquet", lambda frame, path: frame.astype({"kosten": float}).to_parquet(path)
    ),
    "index of pandas": Form("t.csv", _csv(index=True)),
    "own missing values": Form(
        "t.csv",
        lambda frame, path: frame.assign(kosten=frame.kosten.fillna(-9)).to_csv(path, index=False),
        fit=("--missing-values=-9",),
    ),
    "rows without target": Form(
        "t.csv",
        lambda frame, path: with_rows_without_target(frame).to_csv(path, index=False),
        fit=("--drop-missing-target",),
        refused=True,
    ),
}  # fmt: skip


def run_form(form: Form, run: Callable[..., tuple[int, str, str]]) -> tuple[list[object], str]:
    """The weights that a form leads to and what was refused on the way; `run` runs a command in the present folder."""
    form.write(make_table(), form.file)
    refusal = ""
    if form.refused:
        code, _, refusal = run("fit", form.file, *FIT, "--random-state", "0", "-o", "no.json")
        options = [word.split("=")[0] for word in (*form.how, *form.fit) if word.startswith("--")]
        assert code == 3, (code, refusal)
        assert options[0] in refusal, (options, refusal)
    dropping = [word for word in form.fit if word.startswith("--drop")]
    steps = [
        ("check", form.file, *FIT, *form.how, *form.fit),
        ("budget", "create", "book.db", "--epsilon", "9", "--delta", "1e-6"),
        ("fit", form.file, *FIT, *form.how, *form.fit, *SEEDED, "-o", "m.json"),
        ("predict", "m.json", form.file, *form.how, "--proba", "-o", "p.csv"),
        ("evaluate", "m.json", form.file, "--target", "krank", "--epsilon", "1", *form.how, *dropping, *SEEDED, "-o",
         "e.json"),
        ("report", "m.json", "--ledger", "book.db", "--evaluation", "e.json", "-o", "card.html"),
    ]  # fmt: skip
    for step in steps:
        code, _, said = run(*step)
        assert code == 0, (step[0], code, said)
    model, report = (json.loads(Path(name).read_text()) for name in ("m.json", "e.json"))
    predictions = Path("p.csv").read_text().splitlines()[-400:]
    attributes = model["model"]["attributes"]
    weights = attributes.get("model_", {"attributes": attributes})["attributes"]
    return [weights["coef_"], weights["intercept_"], predictions, report["estimates"]], refusal


def _row(name: str) -> str:
    """A line of the table, found in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        told = subprocess.run(
            [sys.executable, __file__, name],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    return told.stdout.strip() or f"FAILED: {told.stderr.strip().splitlines()[-1]}"


def _print_form(name: str) -> None:
    found, refusal = run_form(FORMS[name], run_command)
    bits = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:12]
    print(f"{bits} | {refusal.strip().splitlines()[-1] if refusal else 'read without options'}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _print_form(sys.argv[1])
        sys.exit()
    print("form | options | model, predictions and estimates | without the options", flush=True)
    rows = {}
    for name, form in FORMS.items():
        rows[name] = _row(name)
        print(f"{name} | {' '.join((*form.how, *form.fit))} | {rows[name]}", flush=True)
    same = len({row.split(" | ")[0] for row in rows.values()}) == 1
    print(f"{len(rows)} forms, {'one model bit for bit' if same else 'DIFFERENT models'}")
    sys.exit(not same)
