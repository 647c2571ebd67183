"""The command: list, run and show suites."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

import papers_data
from lab.engine import key_of, pack_rows, read_rows, run_cells
from lab.report import Table, markdown
from lab.suites import SUITES, Suite
from lab.ticket import check_entry, halved_copy

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
    """Suites with their tasks and methods, and the chapters of the papers."""
    from lab.papers.chapter import chapters

    for suite in SUITES.values():
        click.echo(f"{suite.name}: {suite.title}")
        click.echo(f"  tasks: {', '.join(task.name for task in suite.tasks)}")
        click.echo(f"  methods: {'; '.join(suite.methods)}")
    for name, chapter in chapters().items():
        click.echo(f"papers {name}: {chapter.title}")


@lab.command()
@_choices
@click.option("--jobs", "-j", default=1, show_default=True, help="Processes.")
@click.option("--limit", type=float, help="Seconds after which no further fit starts.")
def run(jobs: int, limit: float | None, **options: Any) -> None:
    """Run what the file of rows does not hold yet."""
    suite, path = _chosen(options)
    cells = list(suite.cells(options["training"]))
    rows = run_cells(cells, path, jobs=jobs, limit=limit)
    click.echo(f"{len(rows)} of {len(cells)} rows in {path}")


@lab.command()
@_choices
@click.option("--measure", default="", help="AUC, log loss, slope, seconds, ... [headline]")
def table(measure: str, **options: Any) -> None:
    """Means over splits, as Markdown; of `trust` all measures beside each other."""
    suite, path = _chosen(options)
    keys = {key_of(cell.as_row()) for cell in suite.cells(options["training"])}
    rows = [row for row in read_rows(path) if key_of(row) in keys]
    if suite.name == "trust" and not measure:
        from lab.pages import trust

        click.echo(trust(rows))
        return
    click.echo(
        markdown(Table(rows), list(suite.tasks), list(suite.methods), list(suite.epsilons), measure)
    )


@lab.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
def pack(names: tuple[str, ...]) -> None:
    """Compress rows for the repository: of these files of results/, or of all."""
    for path in sorted(RESULTS.parent.glob("*/*.jsonl")):
        if not names or path.stem in names:
            pack_rows(path)


@lab.command("page")
@_choices
@click.option("--page", "path", type=click.Path(path_type=Path), help="File to write.")
def write(path: Path | None, **options: Any) -> None:
    """The leaderboard as one HTML file."""
    from lab.page import write_page

    suite, rows_path = _chosen(options)
    keys = {key_of(cell.as_row()) for cell in suite.cells(options["training"])}
    rows = [row for row in read_rows(rows_path) if key_of(row) in keys]
    reasons = tomllib.loads(REASONS.read_text()) if REASONS.exists() else {}
    click.echo(f"wrote {write_page(suite, rows, reasons, path or PAGE)}")


@lab.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--jobs", "-j", default=1, show_default=True, help="Processes.")
@click.option(
    "--limit", type=float, help="Seconds after which no further trial of a chapter starts."
)
@click.option(
    "--trials", type=int, help="At most so many trials of each cell; later runs add more."
)
@click.option("--results", type=click.Path(path_type=Path), help="Folder of rows.")
def papers(
    names: tuple[str, ...],
    jobs: int,
    limit: float | None,
    trials: int | None,
    results: Path | None,
) -> None:
    """Run published tables and figures, and show them beside the published numbers.

    NAME is for instance 004-table1; without a name every chapter runs. `lab list` shows them all. A chapter that was
    run in part shows no verdict.
    """  # fmt: skip
    from lab.papers.book import chapter_text, draw
    from lab.papers.chapter import chapters
    from lab.papers.summary import summarise

    known = chapters()
    if unknown := [name for name in names if name not in known]:
        raise click.ClickException(f"no chapter {unknown[0]!r}; `dpsparse lab list` shows them all")
    folder = results or RESULTS.parent / "papers"
    failed = []
    for name in names or known:
        if absent := [data for data in known[name].needs if not papers_data.is_here(data)]:
            click.echo(f"skipped {name}: set DPSPARSE_DATA to the folder of {absent[0]}", err=True)
            continue
        path = folder / f"{known[name].rows_name}.jsonl"
        cells = list(known[name].cells(trials))
        rows = run_cells(cells, path, jobs=jobs, limit=limit)
        failed += [f"{name}: {row['error']}" for row in rows if "error" in row]
        summary = summarise(known[name], rows)
        complete = len(rows) == len(cells) and not failed
        figure = draw(summary, folder) if complete else None
        click.echo(chapter_text(summary, figure, complete=complete))
    if failed:
        raise click.ClickException("; ".join(failed))


@lab.command()
def book() -> None:
    """Write the book, its figures and its two pages from the rows."""
    from lab.papers.book import write_book
    from lab.papers.chapter import chapters
    from lab.papers.claims import page

    folder = RESULTS.parents[1]
    rows = read_rows(RESULTS / "claims.jsonl")
    (folder / "second_page.md").write_text(page(rows, folder / "book" / "figures" / "papers.svg"))
    click.echo(f"wrote {write_book(chapters(), folder / 'results' / 'papers', folder / 'book')}")


@lab.command()
def pages() -> None:
    """Write the tables of the documentation anew from the rows."""
    from lab.pages import pages as of_rows

    for path, before, after in of_rows():
        path.write_text(after, "utf-8")
        click.echo(f"{path.name}: {'as it was' if after == before else 'written'}")


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
def figures() -> None:
    """The figures of the home page and of choosing_epsilon.md."""
    from lab.figures import draw_expected_accuracy, draw_home

    folder = RESULTS.parents[1] / "book" / "figures"
    table = Table(read_rows(RESULTS / "board.jsonl"))
    for name in ("light", "dark"):
        draw_home(table, folder / f"home-{name}.svg", dark=name == "dark")
    draw_expected_accuracy(folder / "choosing-epsilon.svg")


@lab.command()
@click.argument("names", nargs=-1)
def ticket(names: tuple[str, ...]) -> None:
    """Check the entry tickets of rivals: a proof note and a passed replay. A copy with half of the noise must fail."""
    from lab.rivals import ENTRIES

    chosen = [entry for entry in ENTRIES.values() if not names or entry.name in names]
    if not chosen:
        raise click.ClickException(f"no such rival; known: {', '.join(ENTRIES)}")
    wrong = False
    for entry in [*chosen, halved_copy(chosen[0])]:
        found = check_entry(entry)
        wrong |= found.passed != (entry in chosen)
        passed = f"passed, moves up to {found.tightness:.3f} of their bounds"
        told = f"refused: {'; '.join(found.complaints)}" if found.complaints else passed
        click.echo(f"{entry.name}: {told}")
    if wrong:
        raise SystemExit(1)
