"""The machinery of `dpsparse reproduce` on a toy experiment written to a temporary folder."""

import dataclasses
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from engine import (
    derive_seed,
    discover,
    experiments_folder,
    find,
    read_rows,
    run,
    sign_test,
    summarise,
    wilcoxon,
)
from engine.book import write_book
from engine.command import reproduce
from engine.experiment import AFTER_THE_FACT, AS_PRINTED
from engine.runner import pack, packed, rows_file
from engine.summary import Average, Published

TOY = """
from pathlib import Path
from engine import Experiment
from dpsparse.random import make_generator
from _helper import SHIFT

def configurations(quick):
    return [{"data": d, "mode": m} for d in ("a", "b") for m in ("published", "proven")] + [
        {"data": "exact", "mode": "nonprivate", "trials": 1}
    ]

def trial(config, seed):
    if config["mode"] == "nonprivate":
        return {"score": 0.25, "curve": [1.0, 2.0]}
    noise = make_generator(seed).standard_normal()
    return {"score": SHIFT[config["data"]] + 0.1 * noise, "curve": [noise, 2.0]}

def plot(summary, path):
    Path(path).write_text("<svg/>")

EXPERIMENTS = (Experiment(
    name="009-table1", title="A toy", configurations=configurations, trial=trial, trials=(2, 20),
    metrics={"score": ".2f"}, claim="Toys are useful.",
    verdict=lambda s: f"Holds: {s.mean('score', 'published', data='a'):.1f}.",
    instead="a real one", plot=plot, tests=lambda s: ["p = 0.5"], reasons={"b": "it is a toy"},
),)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    root = tmp_path / "experiments"
    (root / "published").mkdir(parents=True)
    (root / "paper009_table1.py").write_text(TOY)
    (root / "_helper.py").write_text("SHIFT = {'a': 1.0, 'b': 2.0}\n")
    cells = [
        {"cell": {"data": "a"}, "values": {"score": "1.0"}},
        {"cell": {"data": "b"}, "values": {"score": "7.00"}},
        {"cell": {"data": "exact"}, "values": {"score": "0.250"}, "trials": 1},
    ]
    (root / "published" / "009.json").write_text(
        json.dumps({"009-table1": {"trials": 20, "cells": cells}})
    )
    monkeypatch.setenv("DPSPARSE_EXPERIMENTS", str(root))
    monkeypatch.syspath_prepend(str(root))
    for module in ("_helper", "paper009_table1"):
        monkeypatch.delitem(__import__("sys").modules, module, raising=False)
    return root


def test_rows_carry_everything(folder, tmp_path):
    rows = run(find("009-table1"), folder, tmp_path / "r.jsonl", quick=True)
    assert len(rows) == 2 * 4 + 1
    assert set(rows[0]) == {
        "experiment", "config", "trial", "seed", "metrics", "seconds", "guarantee", "versions",
    }  # fmt: skip
    paired = {r["seed"] for r in rows if r["trial"] == 0}
    assert len(paired) == 1, "trials of different configurations share their seed"
    assert read_rows(tmp_path / "r.jsonl") == rows


def test_a_second_run_does_the_rest_only(folder, tmp_path):
    path = tmp_path / "r.jsonl"
    first = run(find("009-table1"), folder, path, quick=True)
    text = path.read_text()
    assert run(find("009-table1"), folder, path, quick=True) == first
    assert path.read_text() == text
    # cut inside the last line, as a kill would
    path.write_text(text[: text.rstrip("\n").rfind("\n") + 20])
    again = run(find("009-table1"), folder, path, quick=True)
    assert [r["metrics"] for r in again] == [r["metrics"] for r in first]
    assert len(read_rows(path)) == len(first)


def test_two_processes_give_the_same_rows(folder, tmp_path):
    one = run(find("009-table1"), folder, tmp_path / "1.jsonl", quick=True)
    two = run(find("009-table1"), folder, tmp_path / "2.jsonl", quick=True, n_jobs=2)

    def key(row):
        return json.dumps([row["config"], row["trial"], row["metrics"]], sort_keys=True)

    assert sorted(map(key, one)) == sorted(map(key, two))


def test_summary_and_match(folder, tmp_path):
    experiment = find("009-table1")
    summary = summarise(
        experiment, run(experiment, folder, tmp_path / "r.jsonl", quick=False), folder
    )
    assert summary.matched == (2, 3)  # b is far off, exact agrees to its digits
    table = summary.table()
    assert "| a | score | 1 | " in table
    assert "| b | score | 7 | " in table
    assert "| no |" in table
    assert summary.curve("curve", "proven", data="a")[1] == 2.0


def test_match_rule():
    printed = Published(1.0, 0.05, None, 20)
    wide, sharp = Average(1.3, 0.8, 20), Average(1.3, 0.1, 20)
    assert printed.matches(wide)
    assert not printed.matches(sharp)
    assert Published(1.3, 0.05, None, 1).matches(Average(1.34, 0.0, 1))
    assert not Published(1.3, 0.05, None, 1).matches(Average(1.36, 0.0, 1))
    assert Published(1.0, 0.0, 0.8, 20).matches(Average(1.3, 0.0, 1))


def test_book(folder, tmp_path):
    results = folder / "results"
    toy = find("009-table1")
    run(toy, folder, rows_file(results, toy, quick=False), quick=False)
    text = write_book(folder, results, tmp_path / "book").read_text()
    for piece in (
        "Toys are useful.",
        "Holds: 1.",
        "2 of 3",
        "it is a toy",
        "p = 0.5",
        "a real one",
    ):
        assert piece in text
    assert (tmp_path / "book" / "figures" / "009-table1.svg").exists()


def test_command(folder):
    runner = CliRunner()
    assert "A toy" in runner.invoke(reproduce, ["--list"]).output
    done = runner.invoke(reproduce, ["009-table1", "--quick"])
    assert done.exit_code == 0, done.output
    assert "| a | score |" in done.output
    assert runner.invoke(reproduce, ["009-table1", "--full"]).exit_code == 0
    assert runner.invoke(reproduce, ["--pack"]).exit_code == 0
    assert (folder / "results" / "full" / "009-table1.jsonl.xz").exists()
    wrong = runner.invoke(reproduce, ["009-table2"])
    assert wrong.exit_code != 0
    assert "--list" in wrong.output


def test_the_command_line_finds_the_engine_of_its_checkout(folder, tmp_path, monkeypatch):
    from dpsparse.cli import reproduce as door
    from dpsparse.cli.commands import program

    assert "A toy" in CliRunner().invoke(program, ["reproduce", "--list"]).output
    monkeypatch.setattr(door, "__file__", str(tmp_path / "a" / "b" / "c" / "reproduce.py"))
    monkeypatch.chdir(tmp_path)
    outside = CliRunner().invoke(program, ["reproduce", "--list"])
    assert outside.exit_code != 0
    assert "source checkout" in outside.output


def test_paired_tests():
    first = np.arange(10.0)
    assert sign_test(first, first) == 1.0
    assert sign_test(first + 1, first) == pytest.approx(2 * 0.5**10)
    assert wilcoxon(first, first) == 1.0
    assert wilcoxon(first + 1 + 0.01 * first, first) == pytest.approx(2 * 0.5**10)


def test_undefined_scores_are_left_out(folder):
    rows = [
        {
            "config": {"data": "a", "mode": "proven"},
            "trial": t,
            "metrics": {"score": value},
            "seconds": 0.0,
        }
        for t, value in enumerate([1.0, math.nan, 3.0])
    ]
    summary = summarise(find("009-table1"), rows, folder)
    assert summary.average("score", "proven", data="a") == Average(2.0, math.sqrt(2.0), 2)
    pairs = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert wilcoxon([*pairs, math.nan], [0.0] * 7) == wilcoxon(pairs, [0.0] * 6)


def test_seeds_depend_on_every_word():
    assert derive_seed("a", 1) == derive_seed("a", 1)
    assert (
        len({derive_seed("a", 1), derive_seed("a", 2), derive_seed("a1"), derive_seed("b", 1)}) == 4
    )
    assert 0 <= derive_seed("x") < 2**48


def test_the_real_experiments_are_listed():
    """Every experiment of the checkout imports, has configurations, and a well-formed published file."""
    found = discover(experiments_folder())
    for experiment in found.values():
        quick = experiment.configurations(True)
        assert quick, experiment.name
        assert all("mode" in config for config in quick), experiment.name
        json.dumps(experiment.configurations(False))
        summary = summarise(experiment, [], experiments_folder())
        for entry in summary.published_cells:
            assert set(entry["values"]) <= set(experiment.metrics), experiment.name
            assert all(math.isfinite(float(v)) for v in entry["values"].values())


def test_one_draw_of_data_may_measure_many_methods(folder, tmp_path):
    many = dataclasses.replace(
        find("009-table1"),
        configurations=lambda quick: [{"part": "x", "mode": "published"}],
        trial=lambda config, seed: [
            {"cell": {"data": "a", "mode": mode}, "score": 1.0} for mode in ("published", "proven")
        ],
        many=True,
    )
    rows = run(many, folder, tmp_path / "r.jsonl", quick=True)
    assert len(rows) == 2
    summary = summarise(many, rows, folder)
    assert len(summary.rows) == 4
    assert summary.average("score", "proven", data="a") == Average(1.0, 0.0, 2)


def test_of_several_tunings_the_best_mean_is_shown(folder, tmp_path):
    """Not the best of each trial: tuning "steady" has the smaller mean, "lucky" the smallest value."""
    found = {"steady": [0.4, 0.4], "lucky": [0.0, 1.0]}
    draws = iter([0, 1])

    def trial(config, seed):
        t = next(draws)
        return [
            {"cell": {"method": "m", "mode": "proven", "tuning": name}, "score": values[t]}
            for name, values in found.items()
        ]

    tuned = dataclasses.replace(
        find("009-table1"),
        configurations=lambda quick: [{"data": "a", "mode": "proven"}],
        trial=trial,
        many=True,
        tuned_by="score",
    )
    summary = summarise(tuned, run(tuned, folder, tmp_path / "r.jsonl", quick=True), folder)
    assert summary.cells == [{"data": "a", "method": "m"}]
    assert summary.values("score", "proven", data="a") == [0.4, 0.4]
    assert (summary.fits, len(summary.rows)) == (4, 2)


def test_packed_rows_are_the_same_and_a_run_goes_on_from_them(folder, tmp_path):
    experiment = find("009-table1", folder)
    path = rows_file(tmp_path, experiment, quick=True)
    rows = run(experiment, folder, path, quick=True)
    pack(path)
    assert packed(path).exists()
    assert not path.exists()
    assert read_rows(path) == rows
    assert run(experiment, folder, path, quick=True) == rows  # nothing left to do
    assert not path.exists()


def test_matches_are_counted_by_kind(folder, tmp_path):
    experiment = find("009-table1", folder)
    path = rows_file(tmp_path, experiment, quick=False)
    rows = run(experiment, folder, path, quick=False)
    kinds = {"a": AS_PRINTED, "b": AFTER_THE_FACT, "exact": AS_PRINTED}
    sorted_out = dataclasses.replace(experiment, kind=lambda cell, metric: kinds[cell["data"]])
    summary = summarise(sorted_out, rows, folder)
    assert sum(n for _, n in summary.matched_by_kind.values()) == summary.matched[1]
    assert sum(g for g, _ in summary.matched_by_kind.values()) == summary.matched[0]
    assert set(summary.matched_by_kind) == {AS_PRINTED, AFTER_THE_FACT}
    assert "(reading)" in summary.table()


def test_every_finding_against_a_paper_says_what_it_rests_on():
    """The chapters that do not hold, or hold in part, and every refuted statement, are among the disputes."""
    folder = experiments_folder()
    book = (folder / "book" / "reproduction.md").read_text()
    disputes = (folder / "disputes.md").read_text()
    claims = [
        line for line in book.partition("## Claim by claim")[2].splitlines() if line[:3] == "| ["
    ]
    for line in claims:
        name, (_, claim, verdict, *_) = line[3:].partition("]")[0], line.split(" | ")
        if not claim.startswith("(No") and not verdict.startswith(("Holds: ", "The solutions")):
            figure = name[:-1] if name.startswith("004-figure") else name
            assert figure in disputes, name
    for line in disputes.splitlines():
        assert not line.startswith("| ") or line.count(" | ") == 3  # no column is empty
    refuted = [
        line for line in book.splitlines() if line.startswith("| ") and "| refuted |" in line
    ]
    assert refuted
    for statement in (line.split(" | ")[0] for line in refuted):
        part = (
            statement.rpartition(", ")[2]
            if "Sparsifier" not in statement
            else statement.split(", ")[3]
        )
        assert part.split(" and ")[0] in disputes, statement
