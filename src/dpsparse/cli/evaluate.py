"""`dpsparse evaluate`: how good a model is on private rows, paid from the same budget as fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsparse._files import check_output, write_whole
from dpsparse._json import plain, readable
from dpsparse.cli import options as opt
from dpsparse.cli.budget import budget_line
from dpsparse.cli.output import emit, stage
from dpsparse.exceptions import SchemaError


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option(
    "--epsilon", type=float, required=True, help="Privacy loss of the report; inf is exact."
)
@click.option(
    "--delta",
    type=float,
    default=1e-6,
    show_default=True,
    help="Probability beside epsilon; well below one over the number of rows.",
)
@click.option(
    "--adjacency",
    type=click.Choice(["add-remove", "replace-one"]),
    help="Which data sets are neighbours.  [default: the ledger's, or add-remove]",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="Pay for this metric only, which is sharper; repeatable.  [default: all]",
)
@click.option("--person", help="Column that names the person of a row: persons are protected.")
@click.option("--random-state", type=int, help="Repeatable noise, for experiments: NOT private.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write as well: .html is a page, anything else JSON.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@opt.data_options
@opt.ledger_options
@opt.json_option
def evaluate(
    model: Path,
    data: str,
    output: Path | None,
    overwrite: bool,
    as_json: bool,
    person: str | None,
    **options: Any,
) -> None:
    """Private metrics of MODEL on the rows of DATA, each with an interval."""

    from dpsparse.evaluation import dp_evaluate
    from dpsparse.models import load

    if output is not None:
        check_output(output, overwrite, (model, data, options.get("ledger_path")))
    fitted: Any = load(model)
    ledger = opt.open_ledger(options)
    adjacency = options["adjacency"] or (
        ledger.terms.adjacency if ledger is not None else "add-remove"
    )
    with stage(f"reading {Path(data).name}"):
        X, y, persons = _read(data, fitted, person, options)
    with stage("evaluating"):
        report = dp_evaluate(
            fitted,
            X,
            y,
            epsilon=options["epsilon"],
            delta=options["delta"],
            ledger=ledger,
            groups=persons,
            adjacency=adjacency,
            metrics=options["metrics"] or None,
            random_state=options["random_state"],
        )
    record = report.to_dict()
    text = str(report)
    if ledger is not None:
        record["budget"] = {"spent": ledger.spent(), "remaining": ledger.remaining()}
        text += f"\n{budget_line(ledger)}"
    emit(record, text, as_json)  # before the file: what is paid for is not lost with a full disk
    if output is not None:
        page = output.suffix.lower() in (".html", ".htm")
        content = report.to_html(model.name) if page else readable(plain(record)) + "\n"
        write_whole(output, content.encode(), overwrite)


def _read(data: str, fitted: Any, person: str | None, options: dict[str, Any]) -> tuple[Any, ...]:
    """The rows as the model takes them, their targets, and the person of every row if a column names them."""
    from dpsparse.readers import read_columns, read_table
    from dpsparse.readers.tables import format_of, name_array, target_array

    if (options["file_format"] or format_of(Path(data))) == "svmlight":
        if person is not None:
            raise SchemaError("--person needs named columns (CSV, Parquet).")
        table = read_table(
            data, n_features=fitted.n_features_in_, zero_based=options["zero_based"], format=options["file_format"]
        )  # fmt: skip
        return table.X, table.y, None
    if options["target"] is None:
        raise SchemaError("A table needs --target, the name of the column to predict.")
    drop = [*options["drop"], *([person] if person is not None else [])]
    X = opt.rows_for(fitted, data, {**options, "drop": drop})
    wanted = [name for name in (options["target"], person) if name is not None]
    cells = read_columns(data, columns=wanted, format=options["file_format"])
    persons = None if person is None else name_array(cells[person].tolist())
    return X, target_array(cells[options["target"]].tolist()), persons
