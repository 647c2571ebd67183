"""The command: list, run and show suites."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from lab.engine import key_of, pack_rows, read_rows, run_cells
from lab.report import Table, markdown
from lab.suites import SUITES, Suite
from lab.ticket import check_entry

RESULTS = Path(__file__).parents[1] / "results" / "lab"
REASONS = Path(__file__).with_name("reasons.toml")
PAGE = Path(__file__).parents[2] / "docs" / "_static" / "leaderboard.html"


def _choices(command: Any) -> Any:
    """Options that narrow a suite."""
    for option in (
        click.option("--tasks", default="", help="Names or tracks, separated by commas."),
        click.option(
            "--methods", default="", help='Calls separated by ";": "DPSparse; DPGradient(clip=1.0)".'
        ),
        click.option("--epsilons", default="", help="Numbers separated by commas."),
        click.option("--splits", type=int, help="The first so many splits."),
        click.option("--training", is_flag=True, help="Score on training rows held out, never on test rows."),
        click.option("--output", type=click.Path(path_type=Path), help="File of rows."),
        click.argument("suite", type=click.Choice(list(SUITES))),
    ):  # fmt: skip
        command = option(command)
    return command


def _chosen(options: dict[str, Any]) -> tuple[Suite, Path]:
    suite = SUITES[options["suite"]]
    path = options["output"] or RESULTS / f"{suite.name}.jsonl"
    wanted = {name: options[name] for name in ("tasks", "methods", "epsilons", "splits")}
    try:
        return suite.narrowed(**wanted), path
    except ValueError as error:
        raise click.ClickException(str(error)) from None


@click.group()
def lab() -> None:
    """Experiments as lists of tasks, methods and settings: run them, show them."""


@lab.command("list")
def list_suites() -> None:
    """Suites with their tasks and methods."""
    for suite in SUITES.values():
        click.echo(f"{suite.name}: {suite.title}")
        click.echo(f"  tasks: {', '.join(task.name for task in suite.tasks)}")
        click.echo(f"  methods: {'; '.join(suite.methods)}")


@lab.command()
@_choices
@click.option("--jobs", "-j", default=1, show_default=True, help="Processes.")
@click.option("--limit", type=float, help="Seconds after which no further fit starts.")
@click.option("--patience", type=float, help="No further splits of fits that took more seconds.")
def run(jobs: int, limit: float | None, patience: float | None, **options: Any) -> None:
    """Run what the file of rows does not hold yet."""
    suite, path = _chosen(options)
    cells = list(suite.cells(options["training"]))
    rows = run_cells(cells, path, jobs=jobs, limit=limit, patience=patience)
    click.echo(f"{len(rows)} of {len(cells)} rows in {path}")


@lab.command()
@_choices
@click.option("--measure", default="", help="AUC, log loss, slope, seconds, ... [headline]")
def table(measure: str, **options: Any) -> None:
    """Means over splits, as Markdown."""
    suite, path = _chosen(options)
    keys = {cell.key for cell in suite.cells(options["training"])}
    rows = [row for row in read_rows(path) if key_of(row) in keys]
    click.echo(
        markdown(Table(rows), list(suite.tasks), list(suite.methods), list(suite.epsilons), measure)
    )


@lab.command()
@click.argument("name", type=click.Choice([*SUITES, "papers"]))
def pack(name: str) -> None:
    """Compress the rows of a suite for the repository."""
    pack_rows(RESULTS / f"{name}.jsonl")


@lab.command("page")
@_choices
@click.option("--page", "path", type=click.Path(path_type=Path), help="File to write.")
def write(path: Path | None, **options: Any) -> None:
    """The leaderboard as one HTML file."""
    from lab.page import write_page

    suite, rows_path = _chosen(options)
    keys = {cell.key for cell in suite.cells(options["training"])}
    rows = [row for row in read_rows(rows_path) if key_of(row) in keys]
    reasons = tomllib.loads(REASONS.read_text()) if REASONS.exists() else {}
    click.echo(f"wrote {write_page(suite, rows, reasons, path or PAGE)}")


@lab.command()
@click.option("--jobs", "-j", default=1, show_default=True, help="Processes.")
@click.option("--limit", type=float, help="Seconds after which no further fit starts.")
def papers(jobs: int, limit: float | None) -> None:
    """Our defaults at the papers' own epsilon and delta: the second page of the book."""
    from lab.papers import cells, page

    rows = run_cells(cells(), RESULTS / "papers.jsonl", jobs=jobs, limit=limit)
    book = RESULTS.parents[1]
    (book / "second_page.md").write_text(
        page(rows, book / "book" / "figures" / "papers.svg") + "\n"
    )
    click.echo(f"wrote {book / 'second_page.md'} from {len(rows)} rows")


@lab.command()
@click.option("--write", is_flag=True, help="Write the table instead of comparing with it.")
@click.option("--only", default="", help="Cases whose names hold this text.")
def speed(write: bool, only: str) -> None:
    """Ratios of speed against the committed table; fails where one fell by more than 30 %."""
    from lab.speed import check_speed

    for name in (worse := check_speed(RESULTS / "speed.jsonl", write, only, click.echo)):
        click.echo(f"slower by more than 30 %: {name}", err=True)
    if worse:
        raise SystemExit(1)


@lab.command()
@click.argument("names", nargs=-1)
def ticket(names: tuple[str, ...]) -> None:
    """Check the entry tickets of rivals: a proof note and a passed replay."""
    from lab.rivals import ENTRIES

    refused = False
    for entry in ENTRIES.values():
        if not names or entry.name in names:
            found = check_entry(entry)
            refused |= not found.passed
            said = (
                "; ".join(found.complaints)
                or f"passed, moves up to {found.tightness:.3f} of their bounds"
            )
            click.echo(f"{entry.name}: {said}")
    if refused:
        raise SystemExit(1)
