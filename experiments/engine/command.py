"""`dpsparse reproduce`: list, run and compare the experiments, write the book."""

from __future__ import annotations

import time
from pathlib import Path

import click

from dpsparse.exceptions import DPSparseError
from engine.experiment import Experiment, discover, experiments_folder


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "list_them", is_flag=True, help="List the experiments and stop.")
@click.option("--quick/--full", default=True, help="A smoke run (default) or the real one.")
@click.option("--jobs", "-j", default=1, show_default=True, help="Processes to use.")
@click.option(
    "--trials", type=int, help="At most so many trials of each cell; later runs add more."
)
@click.option(
    "--results", type=click.Path(path_type=Path), help="Folder of rows [experiments/results]."
)
@click.option("--book", is_flag=True, help="Write experiments/book from the full rows and stop.")
@click.option("--pack", is_flag=True, help="Compress the full rows for the repository and stop.")
def reproduce(
    names: tuple[str, ...],
    list_them: bool,
    quick: bool,
    jobs: int,
    trials: int | None,
    results: Path | None,
    book: bool,
    pack: bool,
) -> None:
    """Regenerate published tables and figures beside the published numbers.

    NAME is for instance 004-table1; without a name every experiment runs. Rows are kept, so an
    interrupted run goes on where it stopped.
    """
    try:
        folder = experiments_folder()
        results = results or folder / "results"
        experiments = discover(folder)
        if list_them:
            _list(experiments)
        elif book:
            from engine.book import write_book

            click.echo(f"wrote {write_book(folder, results, folder / 'book')}")
        elif pack:
            from engine.runner import pack as pack_rows

            for path in sorted((results / "full").glob("*.jsonl")):
                pack_rows(path)
        else:
            chosen = _chosen(names, experiments)
            _run(chosen, folder, results, quick=quick, jobs=jobs, trials=trials)
    except DPSparseError as error:
        raise click.ClickException(str(error)) from None


def _list(experiments: dict[str, Experiment]) -> None:
    width = max(map(len, experiments), default=0)
    for name, experiment in experiments.items():
        click.echo(f"{name:<{width}}  {experiment.title}")


def _chosen(names: tuple[str, ...], experiments: dict[str, Experiment]) -> list[Experiment]:
    unknown = [name for name in names if name not in experiments]
    if unknown:
        raise click.BadParameter(
            f"no experiment {unknown[0]!r}; `dpsparse reproduce --list` shows them all"
        )
    return [experiments[name] for name in names or experiments]


def _run(
    chosen: list[Experiment],
    folder: Path,
    results: Path,
    *,
    quick: bool,
    jobs: int,
    trials: int | None,
) -> None:
    from engine.book import chapter, draw
    from engine.runner import rows_file, run
    from engine.summary import summarise

    began = time.perf_counter()
    skipped = []
    for experiment in chosen:
        absent = _absent_data(experiment)
        if absent:
            skipped.append(f"{experiment.name} (needs {', '.join(absent)})")
            continue
        path = rows_file(results, experiment, quick=quick)
        rows = run(experiment, folder, path, quick=quick, n_jobs=jobs, trials=trials)
        summary = summarise(experiment, rows, folder)
        figure = draw(summary, path.parent)
        click.echo(chapter(summary, str(figure) if figure else None))
    for line in skipped:
        click.echo(f"skipped {line}: set DPSPARSE_DATA to the folder of the files", err=True)
    if len(chosen) > 1:
        click.echo(f"\nall in {time.perf_counter() - began:.0f} s")


def _absent_data(experiment: Experiment) -> list[str]:
    from papers_data.loaders import find_file
    from papers_data.registry import info

    absent = []
    for name in experiment.needs:
        try:
            find_file(info(name))
        except DPSparseError:
            absent.append(name)
    return absent
