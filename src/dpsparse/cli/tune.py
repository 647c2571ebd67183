"""`dpsparse tune`: a private search for hyper-parameters, paid once as a whole."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dpsparse._checks import show_name
from dpsparse._files import check_output
from dpsparse.cli import options as opt
from dpsparse.cli.output import emit_paid, keep_model, note, stage, summary
from dpsparse.exceptions import ParameterError

if TYPE_CHECKING:
    from dpsparse.cli.job import Job


@click.command()
@click.argument("data")
@opt.output("Model file to write (.json).", what="model file")
@click.option(
    "--candidates",
    "listed",
    multiple=True,
    metavar="NAME=[A,B]",
    help="Values of a hyper-parameter or of the threshold, such as n_nonzero=[10,30,null]; all combinations are tried. "
    "Public: not made from the data. Repeatable.  [default: numbers of weights, and thresholds of a classifier]",
)
@opt.takes("fit", "facts", "data", "columns", "ledger", "json")
def tune(data: str, listed: tuple[str, ...], options: opt.Options) -> None:
    """Choose hyper-parameters on DATA privately and train: epsilon is what the whole search spends."""
    from dpsparse.cli.job import describe_job, read_rows
    from dpsparse.model_selection import DPSearchCV

    assert options.output is not None
    check_output(options.output, options.overwrite, options.inputs(data))
    job = describe_job(options, data)
    candidates = read_candidates(listed) or default_candidates(job)
    adjacency = opt.adjacency_of(options, job.ledger)
    job = replace(job, options=replace(job.options, adjacency=adjacency))
    estimator = job.model(searched=True)
    search: Any = DPSearchCV(
        estimator,
        candidates,
        epsilon=options.epsilon,
        delta=options.delta,
        ledger=job.ledger,
        random_state=options.random_state,
    )
    if job.n_columns is not None:
        search.plan(job.n_columns)  # refuses before a long read
    if not listed:
        said = "; ".join(f"{name} {', '.join(map(str, v))}" for name, v in candidates.items())
        note(
            f"candidates, as no --candidates were named: {said}. They share one fit, which costs one choice"
        )
    rows = read_rows(job, estimator)
    for line in job.notes():
        note(line)
    with stage("searching"):
        search.fit(rows.X, rows.y, groups=rows.persons)
    model = search.best_estimator_
    path, record = keep_model(model, rows, job)
    chosen = search.best_params_
    record |= {"best_params": chosen}
    words = (
        ", ".join(f"{name}={show_name(value)}" for name, value in chosen.items()) or "the default"
    )
    terms = search.privacy_
    promise = f"{terms.headline}, the whole search{terms.caution_lines}"
    text = f"{path}: {summary(model)}\nchosen: {words}\n{promise}"
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
            raise ParameterError(
                f"--candidates {name} must be a list, as n_nonzero=[10,30,null]; texts in it need quotes, "
                """as 'class_weight=["balanced",null]'."""
            )
        if name in found:
            raise ParameterError(f"--candidates {name} is stated twice; state it once.")
        found[name] = listed
    return found
