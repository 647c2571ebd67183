"""`dpsparse audit config.toml`: attack a configuration before anybody trusts it.

    estimator = "DPLassoClassifier"     # a name of dpsparse or of dpsparse.published, or DPFeatureTest
    n_features = 4                      # columns of the tables that are made up

    [domain]                            # as Domain(...)
    classes = [0, 1]
    n_samples = 50

    [parameters]                        # epsilon, delta, adjacency and hyper-parameters
    epsilon = 1.0
    delta = 0.01
    n_iter = 5

One further table makes a workflow of the estimator, two of them a search over a pipeline:

    [columns]                           # DPPipeline: roles of raw columns, as DPTablePreparer takes them
    age = [0, 120]
    region = "category"

    [search]                            # DPSearchCV(estimator, ...)
    candidates = {n_nonzero = [1, 3]}

    [evaluate]                          # dp_evaluate(model, X, y, ...), the model fitted on other rows
    epsilon = 1.0

    [infer]                             # dp_inference(X, y, ...)
    support = [0, 2]

    [look]                              # dp_look(X, y, ...), also with [columns]
    epsilon = 0.5

No data is read: the attacker makes the worst tables of the domain himself.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsparse._files import check_output, write_whole
from dpsparse._json import read_toml
from dpsparse._text import show_name, show_text
from dpsparse.exceptions import ParameterError

if TYPE_CHECKING:
    from dpsparse.audit.workflows import Workflow

REFUTED = 7  # exit code
TERMS = ("epsilon", "delta", "adjacency")
WORKFLOWS = ("columns", "search", "evaluate", "infer", "look")
KEYS = {"estimator", "n_features", "domain", "parameters", *WORKFLOWS}
# What a file cannot state: rows, accounts, seeds, and what other tables of the file state.
OWN = {"X", "y", "model", "estimator", "groups", "ledger", "random_state", "domain", "adjacency"}


def read_config(path: Path) -> tuple[Any, int]:
    """The estimator and the number of features a file describes."""
    config = _parsed(path)
    kind = _kind(path, config)
    domain = _domain(path, config)
    parameters = _section(path, config, "parameters", _parameters_of(kind))
    n_features = config.get("n_features", 4)
    if not isinstance(n_features, int) or n_features < 2:
        raise ParameterError(f"{path}: n_features must be a whole number of at least 2.")
    return kind(domain, **parameters), n_features


def read_workflow(path: Path) -> Workflow | None:
    """What a file makes of its estimator; None for the estimator alone."""
    from dpsparse.audit import workflows
    from dpsparse.audit.tables import Schema
    from dpsparse.evaluation import dp_evaluate
    from dpsparse.inference import DPFeatureTest, dp_inference
    from dpsparse.model_selection import DPSearchCV
    from dpsparse.preprocessing import dp_look

    config = _parsed(path)
    stated = [name for name in WORKFLOWS if name in config]
    estimator, n_features = read_config(path)
    if not stated and not isinstance(estimator, DPFeatureTest):
        return None
    if len(stated) > 1 and stated not in (["columns", "search"], ["columns", "look"]):
        raise ParameterError(
            f"{path}: state one of {', '.join(stated)}, or columns with search or look."
        )
    roles = None
    if "columns" in stated:
        roles = {name: _role(role) for name, role in _section(path, config, "columns").items()}
        estimator, n_features = workflows.pipeline_of(estimator, roles), len(roles)
    schema = Schema(estimator.domain, estimator.adjacency, n_features, roles)
    if "evaluate" in stated:
        terms = _section(path, config, "evaluate", _options_of(dp_evaluate))
        return workflows.evaluation_workflow(estimator, schema, **terms)
    if "infer" in stated:
        terms = _section(path, config, "infer", _options_of(dp_inference))
        return workflows.inference_workflow(schema, **terms)
    if "look" in stated:
        terms = _section(path, config, "look", _options_of(dp_look))
        return workflows.look_workflow(schema, **terms)
    if "search" in stated:
        terms = _section(path, config, "search", _options_of(DPSearchCV))
        estimator = DPSearchCV(estimator, **{"delta": estimator.delta, **terms})
    return workflows.fit_workflow(estimator, schema)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        config = read_toml(path)
    except (OSError, ValueError):
        raise ParameterError(
            f"{path} cannot be read as TOML: audit takes a file that names an estimator and its parameters "
            "(docs/audit.md). What a model file claims is checked by dpsparse inspect."
        ) from None
    unknown = sorted(set(config) - KEYS)
    if unknown:
        raise ParameterError(
            f"{path}: unknown {', '.join(unknown)}; use {', '.join(sorted(KEYS))}."
        )
    return config


def _kind(path: Path, config: dict[str, Any]) -> Any:
    from dpsparse import inference, published
    from dpsparse import methods as estimators

    name = config.get("estimator")
    homes = {each: room for room in (estimators, published) for each in room.__all__}
    homes["DPFeatureTest"] = inference
    if not isinstance(name, str) or name not in homes:
        raise ParameterError(f"{path}: estimator must be one of {', '.join(homes)}, got {name!r}.")
    return getattr(homes[name], name)


def _parameters_of(kind: Any) -> list[str]:
    from dpsparse.methods.base import BaseDPLinearModel, hyper_parameters

    if issubclass(kind, BaseDPLinearModel):
        return [*TERMS, *hyper_parameters(kind)]
    return [*TERMS, *(set(kind().get_params(deep=False)) - OWN - {*TERMS})]


def _domain(path: Path, config: dict[str, Any]) -> Any:
    from dpsparse.domain import Domain

    return Domain(**_section(path, config, "domain", list(Domain.__dataclass_fields__)))


def _options_of(call: Any) -> list[str]:
    return [
        name
        for name, option in inspect.signature(call).parameters.items()
        if name not in OWN and option.kind is not option.VAR_KEYWORD
    ]


def _section(
    path: Path, config: dict[str, Any], table: str, names: list[str] | None = None
) -> dict[str, Any]:
    """A table of the file; every key of it is known, unless any is."""
    stated = config.get(table, {})
    if not isinstance(stated, dict):
        raise ParameterError(f"{path}: {table} must be a table, [{table}].")
    for wrong in sorted(set(stated) - set(stated if names is None else names)):
        known = ", ".join(names or ())
        raise ParameterError(f"{path}: [{table}] has no {wrong!r}; it has: {known}.")
    return stated


def _role(role: Any) -> Any:
    """Two numbers are the bounds of a column; other lists are its categories."""
    numbers = isinstance(role, list) and all(isinstance(cell, (int, float)) for cell in role)
    return tuple(role) if numbers and len(role) == 2 else role


@click.command()
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--runs", default=2000, show_default=True, help="Models fitted on either table.")
@click.option("--confidence", default=0.999, show_default=True, help="Of what is refuted.")
@click.option("--seed", default=0, show_default=True, help="Of the attacker's tables and noise.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Page to write.  [default: CONFIG with .html]",
)
def audit(config: Path, runs: int, confidence: float, seed: int, html: Path | None) -> None:
    """Try to refute the guarantee of the estimator or workflow that CONFIG (TOML) describes.

    Exit code 0: nothing refuted, 7: refuted.
    """
    from dpsparse.audit.page import page
    from dpsparse.audit.verdict import audit as attack
    from dpsparse.audit.workflows import audit_workflow
    from dpsparse.progress import FitProgress

    if runs < 100 or not 0.5 < confidence < 1.0:
        raise click.UsageError("--runs must be at least 100 and --confidence within (0.5, 1).")
    target = html if html is not None else config.with_suffix(".html")
    check_output(target, True, (config,))
    workflow = read_workflow(config)
    with FitProgress("audit", 0, patience=0.0) as progress:
        if workflow is not None:
            verdict = audit_workflow(workflow, seed=seed, tell=progress)
        else:
            estimator, n_features = read_config(config)
            estimator.set_params(verbose=-1)  # one line for the whole audit, not one for each fit
            verdict = attack(
                estimator, n_features, n_runs=runs, confidence=confidence, seed=seed, tell=progress
            )
    click.echo(show_text(str(verdict)))
    write_whole(target, page(verdict).encode(), True)
    click.echo(f"page: {show_name(target)}")
    if not verdict.holds:
        raise SystemExit(REFUTED)  # click's Exit is lost where a program is not standalone
