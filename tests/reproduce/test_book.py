"""Chapters of the papers: trials as rows, rows beside printed numbers, the book."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpsparse.random import make_generator
from lab.command import lab
from lab.engine import key_of, pack_rows, read_rows, run_cells
from lab.papers import chapter as chapter_module
from lab.papers.book import write_book
from lab.papers.chapter import AFTER_THE_FACT, AS_PRINTED, Chapter, chapters, derive_seed
from lab.papers.summary import Average, Published, sign_test, summarise, wilcoxon

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def configurations():
    cells = [{"data": d, "mode": m} for d in ("a", "b") for m in ("published", "proven")]
    return [*cells, {"data": "exact", "mode": "nonprivate", "trials": 1}]


def trial(config, seed, number):
    if config["mode"] == "nonprivate":
        return {"score": 0.25, "curve": [1.0, 2.0]}
    noise = make_generator(seed).standard_normal()
    shift = {"a": 1.0, "b": 2.0}[config["data"]]
    return {"score": shift + 0.1 * noise, "curve": [noise, 2.0]}


TOY = Chapter(
    name="009-table1", title="A toy", configurations=configurations, trial=trial, trials=20,
    metrics={"score": ".2f"}, claim="Toys are useful.", found="Holds: {mean:.1f}.",
    facts=lambda s: {"mean": s.mean("score", "published", data="a")}, instead="a real one",
    plot=lambda summary, path: path.write_text("<svg/>"), tests=lambda s: ["p = 0.5"],
    reasons={"b": "it is a toy"},
)  # fmt: skip


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Printed numbers of the toy, which is known by its name."""
    cells = [
        {"cell": {"data": "a"}, "values": {"score": "1.0"}},
        {"cell": {"data": "b"}, "values": {"score": "7.00"}},
        {"cell": {"data": "exact"}, "values": {"score": "0.250"}, "trials": 1},
    ]
    text = json.dumps({"009-table1": {"trials": 20, "cells": cells}})
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "009.json").write_text(text)
    monkeypatch.setattr(chapter_module, "chapters", lambda: {TOY.name: TOY})
    return tmp_path / "published"


def run(chapter, path, monkeypatch=None, trials=2):
    if monkeypatch is not None:
        monkeypatch.setattr(chapter_module, "chapters", lambda: {chapter.name: chapter})
    return run_cells(chapter.cells(trials), path, quiet=True)


def test_rows_carry_everything(published, tmp_path):
    rows = run(TOY, tmp_path / "r.jsonl")
    assert len(rows) == 2 * 4 + 1
    assert set(rows[0]) == {"task", "method", "setting", "split", "measures", "versions"}
    assert "trials" not in rows[-1]["setting"]
    one, two = (r["measures"]["curve"] for r in rows if r["setting"]["data"] == "a" and r["split"] == 0)  # fmt: skip
    assert one == two, "trials of different configurations share their seed"
    assert sorted(map(key_of, read_rows(tmp_path / "r.jsonl"))) == sorted(map(key_of, rows))


def test_a_second_run_does_the_rest_only(published, tmp_path):
    path = tmp_path / "r.jsonl"
    first = run(TOY, path)
    text = path.read_text()
    assert run(TOY, path) == first
    assert path.read_text() == text
    # cut inside the last line, as a kill would
    path.write_text(text[: text.rstrip("\n").rfind("\n") + 20])
    again = run(TOY, path)
    assert [r["split"] for r in again] == [r["split"] for r in first]
    assert len(read_rows(path)) == len(first)


def test_summary_and_match(published, tmp_path):
    summary = summarise(TOY, run(TOY, tmp_path / "r.jsonl", trials=20), published)
    assert summary.matched() == (2, 3)  # b is far off, exact agrees to its digits
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


def test_book(published, tmp_path):
    run(TOY, tmp_path / "results" / "009-table1.jsonl", trials=20)
    book = write_book({TOY.name: TOY}, tmp_path / "results", tmp_path / "book", published=published)
    text = book.read_text()
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


def test_command(published, tmp_path):
    runner = CliRunner()
    assert "009-table1: A toy" in runner.invoke(lab, ["list"]).output
    begun = runner.invoke(
        lab, ["papers", "009-table1", "--limit", "1e-9", "--results", str(tmp_path)]
    )
    assert begun.exit_code == 0, begun.output
    assert "Holds" not in begun.output  # what was run in part decides nothing
    done = runner.invoke(lab, ["papers", "009-table1", "--results", str(tmp_path)])
    assert "| a | score |" in done.output
    assert "Holds" in done.output
    wrong = runner.invoke(lab, ["papers", "009-table2"])
    assert wrong.exit_code != 0
    assert "lab list" in wrong.output


def test_the_command_line_finds_the_laboratory_of_its_checkout(tmp_path, monkeypatch):
    from dpsparse.cli import commands
    from dpsparse.cli.commands import program

    assert "004-table2" in CliRunner().invoke(program, ["lab", "list"]).output
    monkeypatch.setattr(commands, "__file__", str(tmp_path / "a" / "b" / "c" / "commands.py"))
    monkeypatch.chdir(tmp_path)
    outside = CliRunner().invoke(program, ["lab", "list"])
    assert outside.exit_code != 0
    assert "source checkout" in outside.output


def test_paired_tests():
    first = np.arange(10.0)
    assert sign_test(first, first) == 1.0
    assert sign_test(first + 1, first) == pytest.approx(2 * 0.5**10)
    assert wilcoxon(first, first) == 1.0
    assert wilcoxon(first + 1 + 0.01 * first, first) == pytest.approx(2 * 0.5**10)


def test_undefined_scores_are_left_out():
    rows = [
        {
            "setting": {"data": "a", "mode": "proven"},
            "split": t,
            "measures": {"score": value, "seconds": 0.0},
        }
        for t, value in enumerate([1.0, math.nan, 3.0])
    ]
    summary = summarise(TOY, rows)
    assert summary.average("score", "proven", data="a") == Average(2.0, math.sqrt(2.0), 2)
    pairs = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert wilcoxon([*pairs, math.nan], [0.0] * 7) == wilcoxon(pairs, [0.0] * 6)


def test_seeds_depend_on_every_word():
    assert derive_seed("a", 1) == derive_seed("a", 1)
    assert (
        len({derive_seed("a", 1), derive_seed("a", 2), derive_seed("a1"), derive_seed("b", 1)}) == 4
    )
    assert 0 <= derive_seed("x") < 2**48


def test_the_real_chapters_are_listed():
    """Every chapter has its words, configurations, and a well-formed published file."""
    for chapter in chapters().values():
        listed = chapter.configurations()
        assert listed, chapter.name
        assert all("mode" in config for config in listed), chapter.name
        json.dumps(listed)
        for entry in summarise(chapter, []).published_cells:
            assert set(entry["values"]) <= set(chapter.metrics), chapter.name
            assert all(math.isfinite(float(v)) for v in entry["values"].values())


def test_one_draw_of_data_may_measure_many_methods(tmp_path, monkeypatch):
    many = dataclasses.replace(
        TOY,
        configurations=lambda: [{"part": "x", "mode": "published"}],
        trial=lambda config, seed, number: [
            {"cell": {"data": "a", "mode": mode}, "score": 1.0} for mode in ("published", "proven")
        ],
    )
    rows = run(many, tmp_path / "r.jsonl", monkeypatch)
    assert len(rows) == 2
    summary = summarise(many, rows)
    assert len(summary.rows) == 4
    assert summary.average("score", "proven", data="a") == Average(1.0, 0.0, 2)


def test_of_several_tunings_the_best_mean_is_shown(tmp_path, monkeypatch):
    """Not the best of each trial: tuning "steady" has the smaller mean, "lucky" the smallest value."""
    found = {"steady": [0.4, 0.4], "lucky": [0.0, 1.0]}
    tuned = dataclasses.replace(
        TOY,
        configurations=lambda: [{"data": "a", "mode": "proven"}],
        trial=lambda config, seed, number: [
            {"cell": {"method": "m", "mode": "proven", "tuning": name}, "score": values[number]}
            for name, values in found.items()
        ],
        tuned_by="score",
    )
    summary = summarise(tuned, run(tuned, tmp_path / "r.jsonl", monkeypatch))
    assert summary.cells == [{"data": "a", "method": "m"}]
    assert summary.values("score", "proven", data="a") == [0.4, 0.4]
    assert (summary.fits, len(summary.rows)) == (4, 2)


def test_packed_rows_are_the_same_and_a_run_goes_on_from_them(published, tmp_path):
    path = tmp_path / "r.jsonl"
    rows = run(TOY, path)
    pack_rows(path)
    assert not path.exists()
    assert run(TOY, path) == rows  # nothing left to do
    assert not path.read_text()


def test_a_trial_that_fails_is_no_number(tmp_path, monkeypatch):
    broken = dataclasses.replace(TOY, trial=lambda config, seed, number: 1 / 0)
    rows = run(broken, tmp_path / "r.jsonl", monkeypatch)
    assert all("ZeroDivisionError" in row["error"] for row in rows)
    assert summarise(broken, rows).fits == 0
    done = CliRunner().invoke(lab, ["papers", "009-table1", "--results", str(tmp_path)])
    assert done.exit_code != 0


def test_matches_are_counted_by_kind(published, tmp_path):
    rows = run(TOY, tmp_path / "r.jsonl", trials=20)
    kinds = {"a": AS_PRINTED, "b": AFTER_THE_FACT, "exact": AS_PRINTED}
    sorted_out = dataclasses.replace(TOY, kind=lambda cell, metric: kinds[cell["data"]])
    summary = summarise(sorted_out, rows, published)
    assert summary.matched(AS_PRINTED) == (2, 2)
    assert summary.matched(AFTER_THE_FACT) == (0, 1)
    assert summary.matched(single=True) == (1, 1)
    assert "(reading)" in summary.table()


def test_every_finding_against_a_paper_says_what_it_rests_on():
    """The chapters that do not hold, or hold in part, and every refuted statement, are among the disputes."""
    book = (EXPERIMENTS / "book" / "reproduction.md").read_text()
    disputes = (EXPERIMENTS / "disputes.md").read_text()
    claims = [
        line for line in book.partition("## Claim by claim")[2].splitlines() if line[:3] == "| ["
    ]
    for line in claims:
        name, (_, claim, verdict, *_) = line[3:].partition("]")[0], line.split(" | ")
        if not claim.startswith("(No") and not verdict.startswith("Holds: "):
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
