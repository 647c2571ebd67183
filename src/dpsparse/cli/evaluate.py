"""`dpsparse evaluate`: how good a model is on private rows, paid from the same budget as fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsparse._files import check_output, write_whole
from dpsparse.cli import options as opt
from dpsparse.cli.budget import budget_line
from dpsparse.cli.output import emit, plain, stage
from dpsparse.exceptions import SchemaError


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option(
    "--epsilon", type=float, required=True, help="Privacy loss of the report; inf is exact."
)
@click.option("--delta", type=float, default=1e-6, show_default=True)
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
    import json

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
        table, persons = _read(data, fitted, person, options)
    with stage("evaluating"):
        report = dp_evaluate(
            fitted,
            table.X,
            table.y,
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
        content = report.to_html(model.name) if page else json.dumps(plain(record), indent=1) + "\n"
        write_whole(output, content.encode(), overwrite)


def _read(data: str, fitted: Any, person: str | None, options: dict[str, Any]) -> tuple[Any, Any]:
    """The rows with the columns of the model, and the person of every row if a column names them."""
    from dpsparse.readers import read_table

    names = fitted.feature_names_

    def read(target: str | None, drop: list[str]) -> Any:
        return read_table(
            data,
            target=target,
            features=names,
            drop=drop if names is None else (),
            n_features=fitted.n_features_in_,
            zero_based=options["zero_based"],
            format=options["file_format"],
        )

    other = [person] if person is not None else []
    table = read(options["target"], [*options["drop"], *other])
    if table.y is None:
        raise SchemaError("A table needs --target, the name of the column to predict.")
    if table.X.shape[1] != fitted.n_features_in_:
        raise SchemaError(
            f"The data has {table.X.shape[1]} feature columns and the model {fitted.n_features_in_}."
        )
    if person is None:
        return table, None
    if table.feature_names is None:
        raise SchemaError("--person needs named columns (CSV, Parquet).")
    return table, read(person, [*options["drop"], options["target"]]).y
