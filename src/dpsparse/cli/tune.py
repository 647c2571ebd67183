"""`dpsparse tune`: a private search for hyper-parameters, paid once as a whole."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from dpsparse._files import check_output
from dpsparse.cli import options as opt
from dpsparse.cli import prepare as preparation
from dpsparse.cli.budget import budget_line
from dpsparse.cli.output import emit, stage
from dpsparse.cli.prepare import prepare_options
from dpsparse.exceptions import ParameterError
from dpsparse.readers import column_names

MODEL = "model__"  # the last step of the pipeline that `prepare` makes


@click.command()
@click.argument("data")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Model file to write (.json; .npz above 1e5 weights).  [required unless --plan]",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing model file.")
@click.option(
    "--candidates",
    "candidates_file",
    required=True,
    type=click.Path(dir_okay=False),
    help="TOML file: a table [grid] of lists, or tables [[candidate]] one by one. Public: not made from the data.",
)
@click.option(
    "--design",
    type=click.Choice(["auto", "path", "refit", "stopping"]),
    default="auto",
    show_default=True,
    help="path: one fit, free candidates; refit: search, choose, fit again; stopping: the best of secretly many.",
)
@click.option(
    "--share",
    type=float,
    help="Share of the budget for the search.  [default: 0.03 path, 0.2 refit]",
)
@click.option(
    "--plan",
    "plan_only",
    is_flag=True,
    help="Print the price and stop. DATA is not read (state --n-features); of a table to prepare the header is.",
)
@opt.estimator_options
@opt.domain_options
@opt.data_options
@prepare_options
@click.option("--data-name", help="What the card calls the data set.  [default: the file's name]")
@opt.ledger_options
@opt.json_option
def tune(
    data: str,
    output: Path | None,
    overwrite: bool,
    candidates_file: str,
    design: str,
    share: float | None,
    plan_only: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Choose hyper-parameters on DATA privately and train: epsilon is what the whole search spends."""
    from dpsparse.model_selection import DPSearchCV

    if output is None and not plan_only:
        raise click.UsageError("Missing option '-o': the model file to write.")
    if output is not None:
        check_output(
            output,
            overwrite,
            (data, candidates_file, options["domain_file"], options["ledger_path"]),
        )
    facts = opt.make_domain(options)
    ledger = opt.open_ledger(options)
    adjacency = options["adjacency"] or (ledger.terms.adjacency if ledger is not None else None)
    raw = preparation.asked_for(options, facts.domain, facts.roles)
    if raw and facts.scales:
        raise click.UsageError(
            "--scale is for tables that are not prepared; state --bounds instead."
        )
    candidates = read_candidates(Path(candidates_file))
    unseeded = {**options, "adjacency": adjacency, "random_state": None}
    n_columns = options["n_features"]
    if raw:
        domain, roles = preparation.declared(options, facts.domain, facts.roles)
        names = column_names(data, options["file_format"])
        estimator: Any = preparation.make_pipeline(
            opt.make_estimator(unseeded, domain, None), domain, roles, names, unseeded
        )
        candidates = of_the_pipeline(candidates)
        n_columns = len([name for name in names if name not in _others(options)])
    else:
        estimator = opt.make_estimator(unseeded, facts.domain, None)
    search = DPSearchCV(
        estimator,
        candidates,
        design=design,
        epsilon=options["epsilon"],
        delta=options["delta"],
        ledger=ledger,
        share=share,
        random_state=options["random_state"],
    )
    if plan_only or n_columns is not None:
        if n_columns is None:
            raise click.UsageError("--plan needs --n-features, the number of columns to come.")
        price = search.plan(n_columns)  # refuses bad parameters before a long read
        if plan_only:
            record = {"guarantee": price.guarantee.to_dict(), "parameters": dict(price.parameters)}
            emit(record, str(price), as_json)
            return
    assert output is not None
    _search(search, data, output, overwrite, None if raw else facts.scales, options, as_json)


def _others(options: dict[str, Any]) -> tuple[Any, ...]:
    return options["target"], options["person"]


def _search(
    search: Any,
    data: str,
    output: Path,
    overwrite: bool,
    scales: dict[str, float] | None,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Read, search, write; `scales` is None for a table that the pipeline prepares."""
    from dpsparse.cli.commands import _facts, _note_names, _save_paid, _summary

    X: Any
    y: Any
    factors = feature_names = None
    with stage(f"reading {Path(data).name}"):
        if scales is None:
            X, y, persons = preparation.training_columns(data, options)
        else:
            table = opt.read_training_data(data, options)
            factors = opt.column_scales(table, scales)
            X, y, persons = opt.scaled(table.X, factors), table.y, table.persons
            feature_names = table.feature_names
            if factors is None:
                opt.ask_for_scales(search.estimator, feature_names)
    with stage("searching"):
        search.fit(X, y, groups=persons)
    model, ledger = search.best_estimator_, search.ledger
    if factors is not None:
        assert scales is not None
        opt.unscale(model, factors, scales)
    _note_names(model, options, data)
    path = _save_paid(model, output, feature_names, overwrite)
    chosen = {name.removeprefix(MODEL): value for name, value in search.best_params_.items()}
    record: dict[str, Any] = {
        "model": path,
        "design": search.plan_.public.name,
        "best_params": chosen,
        **_facts(model),
    }
    words = ", ".join(f"{name}={value}" for name, value in chosen.items()) or "the default"
    text = (
        f"{path}: {_summary(model)}\nchosen: {words} ({record['design']})\n"
        f"{search.privacy_.headline}, the whole search"
    )
    if ledger is not None:
        record["budget"] = {"spent": ledger.spent(), "remaining": ledger.remaining()}
        text += f"\n{budget_line(ledger)}"
    emit(record, text, as_json)


def of_the_pipeline(candidates: Any) -> Any:
    """Candidates of a file, which name parameters of the method, as the pipeline around it calls them."""

    def renamed(point: dict[str, Any]) -> dict[str, Any]:
        return {n if n == "threshold" else MODEL + n: value for n, value in point.items()}

    return renamed(candidates) if isinstance(candidates, dict) else [renamed(p) for p in candidates]


def read_candidates(path: Path) -> Any:
    """A grid, or a list of settings; "none" stands for None, which TOML does not have."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
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
