"""`dpsparse evaluate`: how good a model is on private rows, paid from the same budget as fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsparse._files import check_output, write_whole
from dpsparse._json import plain, readable
from dpsparse.cli import options as opt
from dpsparse.cli.output import emit_paid, keep_paid, stage, warn


@click.command()
@opt.model_argument
@click.argument("data")
@opt.option(
    "--epsilon", type=float, required=True, about="Privacy loss of the report; inf is exact."
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="Only this metric, with a narrower interval; repeatable.  [default: all]",
)
@opt.option(
    "--error-bound",
    type=float,
    about="Clip the errors of a regressor to this; smaller means less noise.  [default: half the target range]",
)
@opt.option(
    "--person", about="Column that identifies the person of a row; people are protected, not rows."
)
@opt.output("File to write as well (.json); `dpsparse report` makes a page of it.", required=False)
@opt.takes("delta", "adjacency", "random_state", "data", "ledger", "json")
def evaluate(
    model: Path,
    data: str,
    metrics: tuple[str, ...],
    error_bound: float | None,
    options: opt.Options,
) -> None:
    """Private metrics of MODEL on the rows of DATA, each with an interval."""
    from dpsparse.cli.job import labelled_rows
    from dpsparse.evaluation import dp_evaluate
    from dpsparse.evaluation.scores import describe_model
    from dpsparse.models.files import load

    if options.output is not None:
        check_output(options.output, options.overwrite, options.inputs(model, data))
    fitted: Any = load(model)
    ledger = opt.open_ledger(options)
    adjacency = opt.adjacency_of(options, ledger) or "add-remove"
    opt.check_dropping(options, adjacency)
    described = describe_model(getattr(fitted, "model_", fitted), None, error_bound)
    described.check(metrics or None)  # before a long read
    with stage(f"reading {Path(data).name}"):
        rows = labelled_rows(fitted, data, options.as_fitted(fitted))
    with stage("evaluating"):
        report = dp_evaluate(
            fitted,
            rows.X,
            rows.y,
            epsilon=options.epsilon,
            delta=options.delta,
            ledger=ledger,
            groups=rows.persons,
            adjacency=adjacency,
            metrics=metrics or None,
            error_bound=error_bound,
            random_state=options.random_state,
        )
    # Names that were typed, nothing of the rows.
    if getattr(fitted, "about_", {}).get("data") == Path(data).name:
        warn(
            f"the model was fitted to a file named {Path(data).name}. On rows that it was fitted to a model looks "
            "better than it is; evaluate it on others."
        )
    record, path = report.to_dict(), options.output
    text = readable(plain(record)) + "\n"

    def show() -> None:
        if path is not None:
            write_whole(path, text.encode(), options.overwrite)
        emit_paid(record, str(report), ledger, options.as_json)

    keep_paid(text, "report.json", show)
