"""`dpsparse tune`: a private search for hyper-parameters, paid once as a whole."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from dpsparse._files import check_output
from dpsparse.cli import options as opt
from dpsparse.cli.budget import budget_line
from dpsparse.cli.output import emit, stage
from dpsparse.exceptions import ParameterError


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
    help="Print the price (needs --n-features) and stop; DATA is not read.",
)
@opt.estimator_options
@opt.domain_options
@opt.data_options
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
    domain, scales = facts.domain, facts.scales
    ledger = opt.open_ledger(options)
    adjacency = options["adjacency"] or (ledger.terms.adjacency if ledger is not None else None)
    search = DPSearchCV(
        opt.make_estimator({**options, "adjacency": adjacency, "random_state": None}, domain, None),
        read_candidates(Path(candidates_file)),
        design=design,
        epsilon=options["epsilon"],
        delta=options["delta"],
        ledger=ledger,
        share=share,
        random_state=options["random_state"],
    )
    if plan_only or options["n_features"] is not None:
        if options["n_features"] is None:
            raise click.UsageError("--plan needs --n-features, the number of columns to come.")
        price = search.plan(options["n_features"])  # refuses bad parameters before a long read
        if plan_only:
            record = {"guarantee": price.guarantee.to_dict(), "parameters": dict(price.parameters)}
            emit(record, str(price), as_json)
            return
    assert output is not None
    _search(search, data, output, overwrite, scales, options, as_json)


def _search(
    search: Any,
    data: str,
    output: Path,
    overwrite: bool,
    scales: dict[str, float],
    options: dict[str, Any],
    as_json: bool,
) -> None:
    from dpsparse.cli.commands import _facts, _save_paid, _summary

    with stage(f"reading {Path(data).name}"):
        table = opt.read_training_data(data, options)
        factors = opt.column_scales(table, scales)
        X = opt.scaled(table.X, factors)
    with stage("searching"):
        search.fit(X, table.y, groups=table.persons)
    model, ledger = search.best_estimator_, search.ledger
    if factors is not None:
        opt.unscale(model, factors, scales)
    path = _save_paid(model, output, table.feature_names, overwrite)
    chosen = dict(search.best_params_)
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
