"""The leaderboard: one static HTML page (page.html.j2) from the rows of a suite. Where ours is not the best comes first."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpsparse.report.template import page
from lab.engine import Row
from lab.outside import CLAIM, LIBRARIES
from lab.report import Table
from lab.suites import NOT_PRIVATE, Suite
from lab.tasks import Task

HERE = Path(__file__).parent
OUR_ENTRY = (
    "DPSparse"  # the estimator with nothing to choose; all others of ours are shown beside it
)
LEAST_GAP = 0.01  # between scikit-learn and the constant, for a task that can rank methods
ENOUGH_SPLITS = 5
LOST_BY = 0.005  # of the measure, and more than half of a 95 % interval
BROKEN_BY = 0.01  # of a promise, and more than half of a 95 % interval
TRACKS = {
    "tables": "Ordinary tables, two classes",
    "regression": "Ordinary tables, numbers",
    "text": "Wide text",
    "classes": "Many classes",
    "support": "Support recovery",
}


@dataclass(frozen=True)
class Loss:
    """A task and epsilon where another method is ahead of ours: by how much, and half of its interval."""

    task: Task
    epsilon: float
    winner: str
    lead: float
    half: float


@dataclass(frozen=True)
class Board:
    """Rows of a suite, and who is ahead where."""

    table: Table
    suite: Suite
    tickets: dict[str, Any]  # rival -> Ticket

    @property
    def methods(self) -> list[str]:
        present = {method for _, method, _ in self.table.values}
        return [m for m in self.suite.methods if m in present]

    @property
    def private(self) -> list[str]:
        return [m for m in self.methods if m not in NOT_PRIVATE]

    @property
    def tasks(self) -> list[Task]:
        """Tasks with rows of both references; a suite may have been run in part."""
        return [t for t in self.suite.tasks if not math.isnan(self.gap(t))]

    def score(self, task: Task, method: str, epsilon: float) -> float:
        return self.table.mean(task.name, method, epsilon, task.headline)

    def gap(self, task: Task) -> float:
        return self.score(task, "sklearn", math.inf) - self.score(task, "constant", math.inf)

    def share(self, task: Task, method: str, epsilon: float) -> float:
        """How much of the way from the constant to scikit-learn; -1 at the lowest, so that one task is not all."""
        gap = self.gap(task)
        if not gap > LEAST_GAP:
            return math.nan
        found = (self.score(task, method, epsilon) - self.score(task, "constant", math.inf)) / gap
        return max(-1.0, found) if not math.isnan(found) else math.nan

    def mean_share(self, track: str, method: str, epsilon: float) -> tuple[float, int]:
        """Over the tasks of a track that were run. A task that a method failed to fit counts 0, as the constant does."""
        shares = []
        for task in self.tasks:
            if task.track == track and self.gap(task) > LEAST_GAP:
                found = self.share(task, method, epsilon)
                if not math.isnan(found):
                    shares.append(found)
                elif (task.name, method) in self.table.errors:
                    shares.append(0.0)
        return (sum(shares) / len(shares) if shares else math.nan), len(shares)

    def best(self, task: Task, epsilon: float, methods: list[str]) -> str | None:
        found = {m: self.score(task, m, epsilon) for m in methods}
        found = {m: v for m, v in found.items() if not math.isnan(v)}
        return max(found, key=lambda m: found[m]) if found else None

    def always_ahead(self, task: Task, method: str, epsilon: float) -> bool:
        """With fewer than five splits an interval says little: ahead on every one of them counts."""
        one, two = (
            self.table.splits(task.name, m, epsilon, task.headline) for m in (method, OUR_ENTRY)
        )
        both = one.keys() & two.keys()
        return len(both) < ENOUGH_SPLITS and all(one[k] > two[k] for k in both)

    def losses(self) -> list[list[Loss]]:
        """Where another method with an honest guarantee is ahead of our entry by more than chance, by task."""
        found = []
        for task in self.tasks:
            of_task = []
            for epsilon in self.suite.epsilons:
                others = [m for m in self.private if m != OUR_ENTRY]
                winner = self.best(task, epsilon, others)
                if winner is None or math.isnan(self.score(task, OUR_ENTRY, epsilon)):
                    continue
                lead, half = self.table.difference(task.name, winner, OUR_ENTRY, epsilon, task.headline)  # fmt: skip
                if lead > LOST_BY and (lead > half or self.always_ahead(task, winner, epsilon)):
                    of_task.append(Loss(task, epsilon, winner, lead, half))
            found += [of_task] * bool(of_task)
        return sorted(found, key=lambda losses: -max(loss.lead for loss in losses))

    def broken(self) -> dict[str, list[str]]:
        """Cells that break what is promised of our entry, by promise."""
        found: dict[str, list[str]] = {
            "Never behind a linear rival whose guarantee was replayed": [],
            "Never below the constant (AUC, accuracy, R2 and log loss)": [],
            "Never worse than with the budget before it": [],
        }
        behind, below, falls = found.values()

        def note(kept: list[str], name: str, one: Any, two: Any) -> None:
            lead, half = self.table.paired(one, two)
            if lead > BROKEN_BY and lead > half:
                kept.append(f"{name} {lead:.3f} ± {half:.3f}")

        for task in self.tasks:
            of = partial(self.table.splits, task.name)
            before: dict[int, float] = {}
            for epsilon in self.suite.epsilons:
                name, ours = f"{task.name} at {epsilon:g}", of(OUR_ENTRY, epsilon, task.headline)
                for rival in self.tickets:
                    note(behind, f"{name}: {rival}", of(rival, epsilon, task.headline), ours)
                note(below, name, of("constant", epsilon, task.headline), ours)
                losses = (of(method, epsilon, "log loss") for method in (OUR_ENTRY, "constant"))
                note(below, f"{name}, log loss", *losses)
                note(falls, name, before, ours)
                before = ours
        return found


def write_page(suite: Suite, rows: list[Row], reasons: dict[str, str], path: Path) -> Path:
    """The page as one file that loads nothing."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from lab.rivals import ENTRIES
    from lab.ticket import check_entry, halved_copy

    board = Board(Table(rows), suite, {name: check_entry(entry) for name, entry in ENTRIES.items()})
    known = {t.track for t in board.tasks}
    columns = [(t, e) for t in TRACKS for e in suite.epsilons if t in known]
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["number"] = _number
    body = environment.get_template("page.html.j2").render(
        style=(HERE / "page.css").read_text(), script=(HERE / "page.js").read_text(), board=board,
        methods=board.methods, tasks=board.tasks, epsilons=suite.epsilons, fits=len(rows),
        splits=len({row["split"] for row in rows}),
        commits=len({row["versions"]["dpsparse"] for row in rows if "versions" in row}),
        ours=OUR_ENTRY, losses=board.losses(), lost_by=LOST_BY, broken_by=BROKEN_BY, inf=math.inf,
        cells=sum(not math.isnan(board.score(t, OUR_ENTRY, e)) for t in board.tasks for e in suite.epsilons),
        reasons=reasons, tracks=TRACKS, columns=columns, ranking=_ranking(board, columns),
        figures=_figures(board), refuted=check_entry(halved_copy(ENTRIES["GradientDescent"])),
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page("dpsparse: leaderboard", body))
    return path


def _number(value: float, form: str = ".3f") -> str:
    return "-" if math.isnan(value) else f"{value:{form}}"


def _ranking(board: Board, columns: list[tuple[str, float]]) -> list[dict[str, Any]]:
    """Mean share of the way from the constant to scikit-learn, by track and epsilon; best first."""
    shares = {m: [board.mean_share(track, m, e) for track, e in columns] for m in board.methods}
    private = [shares[m] for m in board.private]
    best = [max((v for v, _ in c if not math.isnan(v)), default=math.nan) for c in zip(*private, strict=True)]  # fmt: skip
    most = [max(tasks for _, tasks in column) for column in zip(*private, strict=True)]
    lines = []
    for method in board.methods:
        ticket, grey = board.tickets.get(method), method in NOT_PRIVATE
        said = "not private" if grey else "proof and replay of the library"
        if method in LIBRARIES:
            said = CLAIM
        elif ticket is not None:
            said = "passed" if ticket.passed else "; ".join(ticket.complaints)
        kind = "grey" if grey else "" if ticket or method in LIBRARIES else "ours"
        seconds = [v["seconds"] for (_, m, _), found in board.table.values.items() if m == method for v in found.values()]  # fmt: skip
        cells = [
            {"mean": v, "tasks": n, "best": v == top and not grey, "fewer": 0 < n < full}
            for (v, n), top, full in zip(shares[method], best, most, strict=True)
        ]
        lines.append({
            "method": method, "kind": "refuted" if ticket and not ticket.passed else kind,
            "shares": cells, "seconds": sum(seconds) / max(len(seconds), 1), "ticket": said,
        })  # fmt: skip
    first = columns[0][0] if columns else "tables"

    def order(line: dict[str, Any]) -> float:
        found = board.mean_share(first, line["method"], 1.0)[0]
        return 9.0 if math.isnan(found) else -found

    return sorted(lines, key=order)


def _figures(board: Board) -> list[str]:
    """One panel a track: the five best private methods and ours."""
    drawn = []
    for track, title in TRACKS.items():
        shares = {
            m: [board.mean_share(track, m, e)[0] for e in board.suite.epsilons]
            for m in board.private
        }
        shares = {m: v for m, v in shares.items() if not any(map(math.isnan, v))}
        if shares:
            order = sorted(shares, key=lambda m: -sum(shares[m]))
            chosen = [OUR_ENTRY] * (OUR_ENTRY in shares) + [m for m in order if m != OUR_ENTRY]
            drawn.append(_drawing(title, board.suite.epsilons, {m: shares[m] for m in chosen[:6]}))
    return drawn


def _drawing(title: str, epsilons: tuple[float, ...], lines: dict[str, list[float]]) -> str:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    from lab import look

    style: Any = look  # an untyped module
    style.use()
    figure, axis = plt.subplots(figsize=(6.0, 3.4))
    colours = (style.BLUE, style.ORANGE, style.GREEN, style.PINK, style.AMBER, style.SKY)
    for (method, shares), colour in zip(lines.items(), colours, strict=False):
        axis.plot(epsilons, shares, marker="o", color=colour, label=method)
    style.epsilon_axis(axis, list(epsilons))
    axis.set_ylim(min(0.0, min(min(v) for v in lines.values())) - 0.02, 1.04)
    style.references(axis, 1.0, 0.0)
    axis.set_title(title)
    style.label_ends(axis)
    kept = io.StringIO()
    figure.savefig(kept, format="svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    text = kept.getvalue()
    return text[text.index("<svg") :]
