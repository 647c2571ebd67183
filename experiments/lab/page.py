"""The leaderboard: one static HTML page from the rows of a suite. Where ours is not the best comes first."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from dpsparse._html import page
from lab.engine import Row
from lab.outside import CLAIM, LIBRARIES
from lab.report import Table
from lab.suites import NOT_PRIVATE, Suite
from lab.tasks import Task

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

    def losses(self) -> list[tuple[Task, float, str, float, float]]:
        """Where another method with an honest guarantee is ahead of our entry by more than chance."""
        found = []
        for task in self.tasks:
            for epsilon in self.suite.epsilons:
                others = [m for m in self.private if m != OUR_ENTRY]
                winner = self.best(task, epsilon, others)
                if winner is None or math.isnan(self.score(task, OUR_ENTRY, epsilon)):
                    continue
                lead, half = self.table.difference(task.name, winner, OUR_ENTRY, epsilon, task.headline)  # fmt: skip
                if lead > LOST_BY and (lead > half or self.always_ahead(task, winner, epsilon)):
                    found.append((task, epsilon, winner, lead, half))
        return found

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
    from lab.rivals import ENTRIES
    from lab.ticket import check_entry, halved_copy

    board = Board(Table(rows), suite, {name: check_entry(entry) for name, entry in ENTRIES.items()})
    refuted = check_entry(halved_copy(ENTRIES["GradientDescent"]))
    style, script = (Path(__file__).with_name(f"page.{end}").read_text() for end in ("css", "js"))
    body = [
        f"<style>\n{style}</style>",
        "<h1>Private linear models, compared fairly</h1>",
        _summary(board, rows),
    ]
    body += [
        _losses(board, reasons),
        _promises(board),
        _ranking(board, refuted),
        _figures(board),
        _details(board),
    ]
    body += [_errors(board), f"<script>\n{script}</script>"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page("dpsparse: leaderboard", "\n".join(body)))
    return path


def _summary(board: Board, rows: list[Row]) -> str:
    splits = len({row["split"] for row in rows})
    commits = sorted({row["versions"]["dpsparse"] for row in rows if "versions" in row})
    return (
        f'<p class="sub">{len(board.methods)} methods on {len(board.tasks)} tasks at epsilon '
        f"{', '.join(f'{e:g}' for e in board.suite.epsilons)}, delta {board.suite.delta:g}, add or remove one row, up to "
        f"{splits} splits. {len(rows):,} fits, {board.table.seconds / 60:.0f} minutes of processor time. Every private "
        "method has a proof note and has passed a replay, but for those whose ticket says that it is a claim. "
        f"Rows name their commits ({len(commits)}). "
        '<a href="../leaderboard.html">How to read this, and how to enter</a>.</p>'
    )


def _losses(board: Board, reasons: dict[str, str]) -> str:
    """First screen: tasks on which the front estimator is not the best."""
    lost = board.losses()
    cells = sum(
        not math.isnan(board.score(t, OUR_ENTRY, e))
        for t in board.tasks
        for e in board.suite.epsilons
    )
    by_task: dict[str, list[Any]] = {}
    for loss in lost:
        by_task.setdefault(loss[0].name, []).append(loss)
    lines = [
        f"<h2>Where {OUR_ENTRY} is not the best</h2>",
        f"<p>{len(lost)} of {cells} cells (task and epsilon): another method is ahead by more than {LOST_BY:g} and by "
        "more than half of the 95 % interval of the paired difference, or on every split where these are fewer than five.</p>",
        '<div class="wide"><table><thead><tr>',
        *(f'<th class="sort{c}">{h}</th>' for h, c in (("task", ""), ("measure", ""), ("epsilon: who is ahead, by how much", ""), ("largest lead", " n"), ("reason", ""))),
        "</tr></thead><tbody>",
    ]  # fmt: skip
    for name, found in sorted(by_task.items(), key=lambda kv: -max(x[3] for x in kv[1])):
        said = "<br>".join(
            f"{e:g}: {escape(winner)} +{lead:.3f} {'(one split)' if math.isinf(half) else f'± {half:.3f}'}"
            for _, e, winner, lead, half in found
        )
        lines.append(
            f"<tr><td>{escape(name)}</td><td>{found[0][0].headline}</td><td>{said}</td>"
            f'<td class="n">{max(x[3] for x in found):.3f}</td><td>{escape(reasons.get(name, reasons.get(found[0][0].track, "")))}</td></tr>'
        )
    return "\n".join([*lines, "</tbody></table></div>"])


def _promises(board: Board) -> str:
    """What is promised of the front estimator, and where it is not so."""
    lines = [
        f"<h2>What is promised of {OUR_ENTRY}</h2>",
        f"<p>A cell breaks a promise if it does so by more than {BROKEN_BY:g} and by more than half of the 95 % interval of "
        "the paired difference over splits.</p><ul>",
    ]
    for promise, cells in board.broken().items():
        said = "; ".join(map(escape, cells)) or "no cell breaks it"
        lines.append(f"<li>{promise}: {f'{len(cells)} broken. ' if cells else ''}{said}.</li>")
    return "\n".join([*lines, "</ul>"])


def _ranking(board: Board, refuted: Any) -> str:
    """Mean share of the way from the constant to scikit-learn, by track and epsilon."""
    columns = [(t, e) for t in TRACKS for e in board.suite.epsilons if any(x.track == t for x in board.tasks)]  # fmt: skip
    heads = "".join(f'<th class="n sort" title="{TRACKS[t]}">{t} {e:g}</th>' for t, e in columns)
    lines = [
        "<h2>All methods</h2>",
        "<p>Mean share of the way from the constant (0) to scikit-learn without privacy (1), over the tasks of a track. A "
        "task that a method cannot fit counts 0, a task below the constant at least -1. Blue: ours. Grey: not private. "
        "Struck through: refuted by its replay. A number of tasks stands beside means over fewer tasks, which flatter or hurt.</p>",
        f'<div class="wide"><table><thead><tr><th class="sort">method</th>{heads}<th class="n sort">seconds</th><th class="sort">ticket</th></tr></thead><tbody>',
    ]
    best = {c: max((v for m in board.private if not math.isnan(v := board.mean_share(c[0], m, c[1])[0])), default=math.nan) for c in columns}  # fmt: skip
    most = {c: max(board.mean_share(c[0], m, c[1])[1] for m in board.private) for c in columns}
    first = columns[0] if columns else ("tables", 1.0)
    order = sorted(board.methods, key=lambda m: -_or_low(board.mean_share(first[0], m, 1.0)[0]))
    for method in order:
        shares = [board.mean_share(t, method, e)[0] for t, e in columns]
        fewer = {c: board.mean_share(c[0], method, c[1])[1] for c in columns}
        cells = "".join(
            f'<td class="n{" best" if s == best[c] and method in board.private else ""}">{_number(s)}{f" ({fewer[c]} tasks)" if 0 < fewer[c] < most[c] else ""}</td>'
            for s, c in zip(shares, columns, strict=True)
        )
        ours = method not in board.tickets and method not in LIBRARIES
        kind = "grey" if method in NOT_PRIVATE else "ours" if ours else ""
        ticket = board.tickets.get(method)
        said = "not private" if kind == "grey" else CLAIM if method in LIBRARIES else "proof and replay of the library" if ticket is None else "passed" if ticket.passed else "; ".join(ticket.complaints)  # fmt: skip
        if ticket is not None and not ticket.passed:
            kind = "refuted"
        seconds = [v["seconds"] for (_, m, _), found in board.table.values.items() if m == method for v in found.values()]  # fmt: skip
        lines.append(
            f'<tr class="{kind}"><td>{escape(method)}</td>{cells}<td class="n">{sum(seconds) / max(len(seconds), 1):.2f}</td>'
            f'<td class="why">{escape(said)}</td></tr>'
        )
    blank = '<td class="n">-</td>' * (len(columns) + 1)
    lines.append(
        f'<tr class="refuted"><td>{escape(refuted.name)}</td>{blank}<td class="why">refused: {escape(refuted.complaints[0])}</td></tr>'
    )
    return "\n".join([*lines, "</tbody></table></div>"])


def _or_low(value: float) -> float:
    return -9.0 if math.isnan(value) else value


def _number(value: float, form: str = ".2f") -> str:
    return "-" if math.isnan(value) else f"{value:{form}}"


def _figures(board: Board) -> str:
    """One panel a track: the five best private methods and ours."""
    drawn = []
    for track, title in TRACKS.items():
        shares = {
            m: [board.mean_share(track, m, e)[0] for e in board.suite.epsilons]
            for m in board.private
        }
        shares = {m: v for m, v in shares.items() if not any(map(math.isnan, v))}
        if not shares:
            continue
        order = sorted(shares, key=lambda m: -sum(shares[m]))
        chosen = [OUR_ENTRY] * (OUR_ENTRY in shares) + [m for m in order if m != OUR_ENTRY]
        drawn.append(f"<div>{_drawing(title, board.suite.epsilons, {m: shares[m] for m in chosen[:6]})}</div>")  # fmt: skip
    return "\n".join(["<h2>By track</h2>", '<div class="figures">', *drawn, "</div>"])


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


def _details(board: Board) -> str:
    """Every task and method, one epsilon at a time."""
    choices = " ".join(
        f'<label><input type="radio" name="epsilon" value="{e:g}"{" checked" if e == 1.0 else ""}> {e:g}</label>'
        for e in board.suite.epsilons
    )
    lines = ["<h2>Task by task</h2>", f'<p class="choices">epsilon: {choices}</p>']
    for epsilon in board.suite.epsilons:
        heads = "".join(f'<th class="n sort">{escape(m)}</th>' for m in board.methods)
        lines.append(
            f'<div class="wide" data-epsilon="{epsilon:g}"><table><thead><tr><th class="sort">task</th><th class="sort">track</th>'
            f'<th class="sort">rows x columns</th><th class="sort">measure</th>{heads}</tr></thead><tbody>'
        )
        for task in board.tasks:
            best = board.best(task, epsilon, board.private)
            shape = board.table.shapes[task.name]
            cells = "".join(
                f'<td class="n{" best" if m == best else ""}">{_number(board.score(task, m, epsilon), ".3f")}</td>'
                for m in board.methods
            )
            lines.append(
                f'<tr><td title="{escape(task.about)}">{escape(task.name)}</td><td>{task.track}</td>'
                f'<td data-v="{shape[0]}">{shape[0]:,} x {shape[1]:,}</td><td>{task.headline}</td>{cells}</tr>'
            )
        lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _errors(board: Board) -> str:
    """Fits that could not be made."""
    if not board.table.errors:
        return ""
    items = "".join(
        f"<li>{escape(method)} on {escape(task)}: {escape(error)}</li>"
        for (task, method), error in sorted(board.table.errors.items())
    )
    return f"<details><summary>Fits that failed</summary><ul>{items}</ul></details>"
