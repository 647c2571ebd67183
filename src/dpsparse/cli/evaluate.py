"""`dpsparse evaluate`: how good a model is on private rows, paid from the same budget as fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsparse._files import check_output, write_whole
from dpsparse._json import plain, readable
from dpsparse.cli import options as opt
from dpsparse.cli.output import emit, stage


@click.command()
@opt.model_argument
@click.argument("data")
@opt.option(
    "--epsilon", type=float, required=True, about="Privacy loss of the report; inf is exact."
)
@opt.delta_option
@opt.adjacency_option
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="Pay for this metric only, which is sharper; repeatable.  [default: all]",
)
@opt.option(
    "--error-bound",
    type=float,
    about="Errors of a regressor count as this at most: less noise.  [default: half the width of the targets' range]",
)
@opt.option("--person", about="Column that names the person of a row: persons are protected.")
@opt.seed_option
@opt.output("File to write as well: .html is a page, anything else JSON.", required=False)
@opt.data_options
@opt.ledger_options
@opt.json_option
def evaluate(
    model: Path, data: str, output: Path | None, overwrite: bool, as_json: bool, **options: Any
) -> None:
    """Private metrics of MODEL on the rows of DATA, each with an interval."""
    from dpsparse.cli import training
    from dpsparse.evaluation import dp_evaluate
    from dpsparse.models import load

    if output is not None:
        check_output(output, overwrite, (model, data, options.get("ledger_path")))
    fitted: Any = load(model)
    ledger = opt.open_ledger(options)
    with stage(f"reading {Path(data).name}"):
        rows = training.labelled_rows(fitted, data, options)
    with stage("evaluating"):
        report = dp_evaluate(
            fitted,
            rows.X,
            rows.y,
            epsilon=options["epsilon"],
            delta=options["delta"],
            ledger=ledger,
            groups=rows.persons,
            adjacency=opt.adjacency_of(options, ledger) or "add-remove",
            metrics=options["metrics"] or None,
            error_bound=options["error_bound"],
            random_state=options["random_state"],
        )
    if (
        getattr(fitted, "about_", {}).get("data") == Path(data).name
    ):  # names that were typed, nothing of the rows
        click.echo(
            f"dpsparse: warning: the model was fitted to a file named {Path(data).name}. On rows that it was fitted to "
            "a model looks better than it is; evaluate it on others.",
            err=True,
        )
    record = report.to_dict()
    text = training.with_budget(record, str(report), ledger)
    emit(record, text, as_json)  # before the file: what is paid for is not lost with a full disk
    if output is not None:
        page = output.suffix.lower() in (".html", ".htm")
        content = report.to_html(model.name) if page else readable(plain(record)) + "\n"
        write_whole(output, content.encode(), overwrite)
