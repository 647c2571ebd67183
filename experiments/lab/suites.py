"""The lists: which tasks, methods and settings belong together. A suite is all there is to an experiment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from lab.bundled import bundled_tasks
from lab.engine import Cell
from lab.methods import Setting, find_method
from lab.rivals import ENTRIES
from lab.special import SEARCHES, load_persons, no_rows
from lab.tables import table_tasks
from lab.tasks import Task

EPSILONS = (0.3, 1.0, 3.0)
NOT_PRIVATE = ("constant", "sklearn")


@dataclass(frozen=True)
class Suite:
    """Tasks x methods x epsilons x splits; references are fitted once for every split."""

    name: str
    title: str
    tasks: tuple[Task, ...]
    methods: tuple[str, ...]
    epsilons: tuple[float, ...] = EPSILONS
    splits: int = 5
    delta: float = 1e-6

    def cells(self, training: bool = False) -> Iterator[Cell]:
        for task in self.tasks:
            for split in range(self.splits):
                for text in self.methods:
                    if not find_method(text).can_fit(task):
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


OURS = ("DPSparse", "DPGradient", "DPRidge", "DPTwoStage", "DPHardThreshold", "DPLasso")
RIVALS = tuple(ENTRIES)
TABLES = tuple(table_tasks())
BUNDLED = tuple(bundled_tasks("tables", "regression"))
PERSONS = tuple(
    Task(
        name,
        "persons",
        partial(load_persons, name),
        classes=None if span else (0, 1),
        target_range=span,
    )
    for name, span in (("lecturers", None), ("films", None), ("wages", (0.0, 4.0)))
)
STUDENT_TASKS = (
    "abalone",
    "housing",
    "bodyfat",
    "communities",
    "papers-800x1000",
    "papers-3000x600",
    "phishing",
    "mushrooms",
)
WIDE = tuple(bundled_tasks("text", "classes", "support"))

SUITES = {
    suite.name: suite
    for suite in (
        Suite("tables", "Ordinary tables", TABLES + BUNDLED, (*NOT_PRIVATE, *OURS)),
        Suite("board", "The leaderboard", TABLES + BUNDLED + WIDE, (*NOT_PRIVATE, *OURS, *RIVALS)),
        Suite(
            "defaults",
            "Every estimator with its defaults",
            BUNDLED + WIDE,
            ("sklearn", *OURS, "DPTransfer", "DPScreenedLasso", "DPADMM"),
            (0.1, 0.5, 1.0, 3.0, math.inf),
        ),
        Suite(
            "persons",
            "Four ways to protect a person with all of their rows",
            PERSONS,
            tuple(
                f"Persons(way={way!r})"
                for way in ("clipped sum", "person mean", "one row", "cap 2", "cap 5", "cap 20")
            ),
            (0.5, 1.0, 3.0),
            splits=8,
        ),
        Suite(
            "tuning",
            "When private tuning pays",
            tuple(t for t in BUNDLED if t.name in ("mushrooms", "phishing", "a9a", "w8a")),
            tuple(
                f"Search(search={s!r}, who={w!r})"
                for s in SEARCHES
                for w in ("not tuned", "tuned", "unpaid")
            ),
            (1.0,),
            splits=3,
        ),
        Suite(
            "students",
            "Students of DPTransfer* on public rows",
            tuple(t for t in BUNDLED + WIDE if t.name in STUDENT_TASKS),
            tuple(
                f"Student(public={p!r}, learns={s!r})"
                for p in ("half", "uniform")
                for s in ("least squares", "student", "direct")
                if (p, s) != ("uniform", "direct")
            ),
            (0.5, 1.0, 3.0, 10.0),
        ),
        Suite(
            "discoveries",
            "False discoveries of private tests; intervals: experiments/inference.py",
            (Task("drawn anew", "inference", no_rows, classes=(0, 1)),),
            tuple(
                f"FeatureTest(rows={n}, width={d}, control={c!r})"
                for n, d in ((20_000, 500), (5000, 2000))
                for c in ("bh", "by")
            ),
            (0.3, 1.0),
            splits=100,
        ),
    )
}
