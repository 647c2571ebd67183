"""`dpsparse tune`: a private search for hyper-parameters, paid once as a whole."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dpsparse._checks import show_name
from dpsparse._files import check_output
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
@click.option(
    "--candidates",
    "listed",
    multiple=True,
    metavar="NAME=[A,B]",
    help="Values of a hyper-parameter or of the threshold, such as n_nonzero=[10,30,null]; all combinations are tried. "
    "Public: not made from the data. Repeatable.  [default: numbers of weights, and thresholds of a classifier]",
)
@opt.flag(
    "--plan",
    "plan_only",
    about="Print the cost and stop. No row is read; state --n-features unless the table is prepared.",
)
@opt.takes("fit", "facts", "data", "columns", "ledger", "json")
def tune(
    data: str,
    listed: tuple[str, ...],
    plan_only: bool,
    options: opt.Options,
) -> None:
    """Choose hyper-parameters on DATA privately and train: epsilon is what the whole search spends."""
    from dpsparse.cli.job import describe_job, read_rows
    from dpsparse.model_selection import DPSearchCV

    if options.output is None and not plan_only:
        raise click.UsageError("Missing option '-o': the model file to write.")
    if options.output is not None:
        check_output(options.output, options.overwrite, options.inputs(data))
    job = describe_job(options, data)
    candidates = read_candidates(listed) or default_candidates(job)
    adjacency = opt.adjacency_of(options, job.ledger)
    job = replace(job, options=replace(job.options, adjacency=adjacency))
    estimator = job.model(seeded=False, paid=False)
    search: Any = DPSearchCV(
        estimator,
        {
            n if n == "threshold" or not job.prepares else MODEL + n: v
            for n, v in candidates.items()
        },
        epsilon=options.epsilon,
        delta=options.delta,
        ledger=job.ledger,
        random_state=options.random_state,
    )
    n_columns = job.n_columns if job.prepares or not plan_only else options.n_features
    if plan_only and n_columns is None:
        raise click.UsageError("--plan needs --n-features, the number of columns to come.")
    price = None if n_columns is None else search.plan(n_columns)  # refuses before a long read
    if not listed:
        said = "; ".join(f"{name} {', '.join(map(str, v))}" for name, v in candidates.items())
        note(
            f"candidates, as no --candidates were named: {said}. They share one fit, which costs one choice"
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


def read_candidates(texts: tuple[str, ...]) -> dict[str, list[Any]]:
    """A grid, from NAME=[A,B] for every name."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, values = opt.pair_of(text, "--candidates", "n_nonzero=[10,30,null]")
        listed = opt.parse_value(values)
        if not isinstance(listed, list):
            raise ParameterError(f"--candidates {name} must be a list, as n_nonzero=[10,30,null].")
        if name in found:
            raise ParameterError(f"--candidates {name} is stated twice; state it once.")
        found[name] = listed
    return found
