"""Suites: lists of tasks, methods and settings (suites.toml). A suite is all there is to an experiment."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from lab.bundled import bundled_tasks
from lab.coverage import TABLES
from lab.engine import Cell
from lab.methods import Setting, find_method
from lab.outside import LIBRARIES
from lab.papers.claims import CLAIMS
from lab.rivals import ENTRIES
from lab.special import load_persons
from lab.tables import table_tasks
from lab.tasks import Task
from lab.workflow import TRUST, drawn_task

EPSILONS = (0.3, 1.0, 3.0)
NOT_PRIVATE = ("constant", "sklearn")
OURS = ("DPSparse", "DPGradient", "DPRidge", "DPTwoStage", "DPHardThreshold", "DPLasso")


@dataclass(frozen=True)
class Suite:
    """Tasks x methods x epsilons x splits; references are fitted once a split. A task may have a setting of its own."""

    name: str
    title: str
    tasks: tuple[Task, ...]
    methods: tuple[str, ...]
    epsilons: tuple[float, ...] = EPSILONS
    splits: int = 5
    delta: float = 1e-6
    settings: dict[str, Setting] = field(default_factory=dict)

    def cells(self, training: bool = False) -> Iterator[Cell]:
        for task in self.tasks:
            for split in range(self.splits):
                for text in self.methods:
                    if not find_method(text).can_fit(task):
                        continue
                    if task.name in self.settings:
                        yield Cell(task, text, self.settings[task.name], split, training)
                        continue
                    for epsilon in (math.inf,) if text in NOT_PRIVATE else self.epsilons:
                        setting = Setting(epsilon, self.delta, n_nonzero=task.n_nonzero)
                        yield Cell(task, text, setting, split, training)

    def narrowed(
        self, tasks: str = "", methods: str = "", epsilons: str = "", splits: int | None = None
    ) -> Suite:
        """The same with other tasks, methods (separated by semicolons), epsilons or fewer splits."""
        wanted = [name for name in tasks.split(",") if name]
        unknown = set(wanted) - {task.name for task in self.tasks} - {t.track for t in self.tasks}
        if unknown:
            raise ValueError(f"{self.name} has no task {sorted(unknown)[0]!r}.")
        return replace(
            self,
            tasks=tuple(t for t in self.tasks if not wanted or t.name in wanted or t.track in wanted),
            methods=tuple(m.strip() for m in methods.split(";") if m.strip()) or self.methods,
            epsilons=tuple(float(e) for e in epsilons.split(",") if e) or self.epsilons,
            splits=self.splits if splits is None else splits,
        )  # fmt: skip


def _tasks() -> dict[str, list[Task]]:
    """Tasks of a suite by their name, their track, or the list they belong to."""
    wide = bundled_tasks("text", "classes", "support")
    bundled = bundled_tasks("tables", "regression")
    persons = [
        Task(name, "persons", partial(load_persons, name), None if span else (0, 1), span)
        for name, span in (("lecturers", None), ("films", None), ("wages", (0.0, 4.0)))
    ]
    found = {
        "persons": persons,
        "claims": [claim.task for claim in CLAIMS],
        "trust": [drawn_task(name) for name in TRUST],
    }
    drawn = [drawn_task(name) for name in ("drawn anew", "nassCDS, drawn", "texts")]
    for task in [*table_tasks(), *bundled, *wide]:
        found.setdefault(task.track, []).append(task)
    return {task.name: [task] for task in [*bundled, *wide, *drawn]} | found


def _read_suites() -> Iterator[Suite]:
    tasks, methods = _tasks(), {"ours": OURS, "rivals": (*ENTRIES, *LIBRARIES)}
    methods["coverage tables"] = tuple(f"Coverage(table={each.name!r})" for each in TABLES)
    settings = {claim.task.name: claim.setting for claim in CLAIMS}
    listed = tomllib.loads(Path(__file__).with_name("suites.toml").read_text("utf-8"))
    for name, facts in listed.items():
        facts["tasks"] = tuple(task for words in facts["tasks"] for task in tasks[words])
        facts["methods"] = tuple(m for word in facts["methods"] for m in methods.get(word, (word,)))
        facts["epsilons"] = tuple(facts.get("epsilons", EPSILONS))
        yield Suite(name, **facts, settings=settings if name == "claims" else {})


SUITES = {suite.name: suite for suite in _read_suites()}
