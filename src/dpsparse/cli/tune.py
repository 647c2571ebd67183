"""`dpsparse tune`: a private search for hyper-parameters, paid once as a whole."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsparse._checks import show_name
from dpsparse._files import check_output
from dpsparse._json import read_toml
from dpsparse.cli import options as opt
from dpsparse.cli.output import emit, emit_paid, keep_model, note, price_record, stage, summary
from dpsparse.exceptions import ParameterError

if TYPE_CHECKING:
    from dpsparse.cli.job import Job

MODEL = "model__"  # the last step of the pipeline that `prepare` makes


@click.command()
@click.argument("data")
@opt.output(
    "Model file to write (.json).  [required unless --plan]",
    required=False,
    what="model file",
)
@opt.option(
    "--candidates",
    "candidates_file",
    type=click.Path(dir_okay=False),
    about="TOML file: a table [grid] of lists, or tables [[candidate]] one by one. Public: not made from the data.  "
    "[default: numbers of weights, and thresholds of a classifier]",
)
@opt.flag(
    "--plan",
    "plan_only",
    about="Print the cost and stop. No row is read; state --n-features unless the table is prepared.",
)
@opt.takes("fit", "facts", "data", "columns", "ledger", "name", "json")
def tune(
    data: str,
    candidates_file: str | None,
    plan_only: bool,
    options: opt.Options,
) -> None:
    """Choose hyper-parameters on DATA privately and train: epsilon is what the whole search spends."""
    from dpsparse.cli.job import describe_job, read_rows
    from dpsparse.model_selection import DPSearchCV

    if options.output is None and not plan_only:
        raise click.UsageError("Missing option '-o': the model file to write.")
    if options.output is not None:
        check_output(options.output, options.overwrite, options.inputs(data, candidates_file))
    job = describe_job(options, data)
    candidates = (
        default_candidates(job)
        if candidates_file is None
        else read_candidates(Path(candidates_file))
    )
    adjacency = opt.adjacency_of(options, job.ledger)
    job = replace(job, options=replace(job.options, adjacency=adjacency))
    estimator = job.model(seeded=False, paid=False)
    search: Any = DPSearchCV(
        estimator,
        of_the_pipeline(candidates) if job.prepares else candidates,
        epsilon=options.epsilon,
        delta=options.delta,
        ledger=job.ledger,
        random_state=options.random_state,
    )
    n_columns = job.n_columns if job.prepares or not plan_only else options.n_features
    if plan_only and n_columns is None:
        raise click.UsageError("--plan needs --n-features, the number of columns to come.")
    price = None if n_columns is None else search.plan(n_columns)  # refuses before a long read
    if candidates_file is None:
        listed = "; ".join(f"{name} {', '.join(map(str, v))}" for name, v in candidates.items())
        note(
            f"candidates, as no --candidates were named: {listed}. They share one fit, which costs one choice"
        )
    if plan_only:
        emit(*price_record(price, job.ledger), options.as_json)
        return
    rows = read_rows(job, estimator)
    for line in job.notes():
        note(line)
    with stage("searching"):
        search.fit(rows.X, rows.y, groups=rows.persons)
    model = search.best_estimator_
    path, record = keep_model(model, rows, job)
    chosen = {name.removeprefix(MODEL): value for name, value in search.best_params_.items()}
    record |= {"best_params": chosen}
    words = (
        ", ".join(f"{name}={show_name(value)}" for name, value in chosen.items()) or "the default"
    )
    text = (
        f"{path}: {summary(model)}\nchosen: {words}\n{search.privacy_.headline}, the whole search"
    )
    emit_paid(record, text, job.ledger, options.as_json)


def default_candidates(job: Job) -> dict[str, list[Any]]:
    """A list that costs one fit and one choice: how many weights to keep, and where two classes part."""
    width = math.inf if job.prepares or job.n_columns is None else job.n_columns
    found: dict[str, list[Any]] = {"n_nonzero": [*(k for k in (10, 30, 100) if k < width), None]}
    if len(job.facts.domain.classes or ()) == 2:
        found["threshold"] = [-0.5, 0.0, 0.5]
    return found


def of_the_pipeline(candidates: Any) -> Any:
    """Candidates of a file, which name parameters of the method, as the pipeline around it calls them."""

    def renamed(point: dict[str, Any]) -> dict[str, Any]:
        return {n if n == "threshold" else MODEL + n: value for n, value in point.items()}

    return renamed(candidates) if isinstance(candidates, dict) else [renamed(p) for p in candidates]


def read_candidates(path: Path) -> Any:
    """A grid, or a list of settings; "none" stands for None, which TOML does not have."""
    try:
        content = read_toml(path)
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise ParameterError(f"{path} is not a TOML file.") from None
    grid, settings = content.get("grid"), content.get("candidate")
    if set(content) == {"grid"} and isinstance(grid, dict):
        if not all(isinstance(values, list) for values in grid.values()):
            raise ParameterError(f"In {path}, [grid] must give a list for every name.")
        return {name: [_value(v) for v in values] for name, values in grid.items()}
    if set(content) == {"candidate"} and isinstance(settings, list):
        return [{name: _value(v) for name, v in point.items()} for point in settings]
    raise ParameterError(
        f"{path} must hold a table [grid], or tables [[candidate]], and nothing else."
    )


def _value(value: Any) -> Any:
    return None if value == "none" else value
