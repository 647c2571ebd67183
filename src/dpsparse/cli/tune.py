"""`dpsparse tune`: a private search for hyper-parameters, paid once as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsparse._files import check_output
from dpsparse._json import read_toml
from dpsparse._text import show_name
from dpsparse.cli import options as opt
from dpsparse.cli import prepare as preparation
from dpsparse.cli.output import emit_paid, emit_price, stage
from dpsparse.exceptions import ParameterError

MODEL = "model__"  # the last step of the pipeline that `prepare` makes


@click.command()
@click.argument("data")
@opt.output(
    "Model file to write (.json; .npz above 1e5 weights).  [required unless --plan]",
    required=False,
    what="model file",
)
@opt.option(
    "--candidates",
    "candidates_file",
    required=True,
    type=click.Path(dir_okay=False),
    about="TOML file: a table [grid] of lists, or tables [[candidate]] one by one. Public: not made from the data.",
)
@opt.option(
    "--design",
    type=click.Choice(["auto", "path", "refit", "stopping"]),
    default="auto",
    about="path: one fit, free candidates; refit: search, choose, fit again; stopping: the best of secretly many.",
)
@opt.option(
    "--share",
    type=float,
    about="Share of the budget for the search.  [default: 0.03 path, 0.2 refit]",
)
@opt.flag(
    "--plan",
    "plan_only",
    about="Print the price and stop. DATA is not read (state --n-features); of a table to prepare the header is.",
)
@opt.estimator_options
@opt.domain_options
@opt.data_options
@preparation.prepare_options
@opt.data_name_option
@opt.ledger_options
@opt.json_option
def tune(
    data: str,
    candidates_file: str,
    design: str,
    share: float | None,
    plan_only: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Choose hyper-parameters on DATA privately and train: epsilon is what the whole search spends."""
    from dpsparse.cli import training
    from dpsparse.model_selection import DPSearchCV

    output = options["output"]
    if output is None and not plan_only:
        raise click.UsageError("Missing option '-o': the model file to write.")
    if output is not None:
        inputs = (data, candidates_file, options["domain_file"], options["ledger_path"])
        check_output(output, options["overwrite"], inputs)
    facts = opt.make_domain(options)
    ledger = opt.open_ledger(options)
    raw = preparation.asked_for(options, facts)
    candidates = read_candidates(Path(candidates_file))
    unseeded = options | {"adjacency": opt.adjacency_of(options, ledger), "random_state": None}
    n_columns = options["n_features"]
    estimator: Any
    if raw:
        estimator, names = training.prepared(data, unseeded, facts, None)
        candidates = of_the_pipeline(candidates)
        n_columns = len(set(names) - {options["target"], options["person"]})
    else:
        estimator = opt.make_estimator(unseeded, facts.domain, None)
    search: Any = DPSearchCV(
        estimator,
        candidates,
        design=design,
        epsilon=options["epsilon"],
        delta=options["delta"],
        ledger=ledger,
        share=share,
        random_state=options["random_state"],
    )
    if plan_only and n_columns is None:
        raise click.UsageError("--plan needs --n-features, the number of columns to come.")
    price = None if n_columns is None else search.plan(n_columns)  # refuses before a long read
    if plan_only:
        emit_price(price, ledger, as_json)
        return
    if raw:
        rows = training.read_raw(data, options, facts.domain.classes)
    else:
        rows = training.read_numbers(data, options, facts.scales, estimator)
    with stage("searching"):
        search.fit(rows.X, rows.y, groups=rows.persons)
    model = search.best_estimator_
    path, record = training.keep(model, rows, facts.scales, options, data)
    chosen = {name.removeprefix(MODEL): value for name, value in search.best_params_.items()}
    record |= {"design": search.plan_.public.name, "best_params": chosen}
    words = (
        ", ".join(f"{name}={show_name(value)}" for name, value in chosen.items()) or "the default"
    )
    text = (
        f"{path}: {training.summary(model)}\nchosen: {words} ({record['design']})\n"
        f"{search.privacy_.headline}, the whole search"
    )
    emit_paid(record, text, ledger, as_json)


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
