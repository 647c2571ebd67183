"""`dpsparse audit config.toml`: attack a configuration before anybody trusts it.

    estimator = "DPLassoClassifier"     # a name of dpsparse or of dpsparse.published
    n_features = 4                      # columns of the tables that are made up

    [domain]                            # as Domain(...)
    classes = [0, 1]
    n_samples = 50

    [parameters]                        # epsilon, delta, adjacency and hyper-parameters
    epsilon = 1.0
    delta = 0.01
    n_iter = 5

No data is read: the attacker makes the worst tables of the domain himself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsparse._files import check_output, write_whole
from dpsparse._json import read_toml
from dpsparse._text import show_name, show_text
from dpsparse.exceptions import ParameterError

REFUTED = 7  # exit code
TERMS = ("epsilon", "delta", "adjacency", "calibration")
KEYS = {"estimator", "n_features", "domain", "parameters"}


def read_config(path: Path) -> tuple[Any, int]:
    """The estimator and the number of features a file describes."""
    from dpsparse import estimators, published
    from dpsparse.domain import Domain
    from dpsparse.estimators._base import hyper_parameters

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
    name = config.get("estimator")
    known_names = [*estimators.__all__, *published.__all__]
    if name not in known_names:
        raise ParameterError(
            f"{path}: estimator must be one of {', '.join(known_names)}, got {name!r}."
        )
    kind = getattr(published if name in published.__all__ else estimators, name)
    stated = {"domain": config.get("domain", {}), "parameters": config.get("parameters", {})}
    known = {
        "domain": list(Domain.__dataclass_fields__),
        "parameters": [*TERMS, *hyper_parameters(kind)],
    }
    for table, names in known.items():
        if not isinstance(stated[table], dict):
            raise ParameterError(f"{path}: {table} must be a table, [{table}].")
        for wrong in sorted(set(stated[table]) - set(names)):
            raise ParameterError(f"{path}: [{table}] has no {wrong!r}; it has: {', '.join(names)}.")
    domain = Domain(**stated["domain"])
    estimator = kind(domain, **stated["parameters"])
    n_features = config.get("n_features", 4)
    if not isinstance(n_features, int) or n_features < 2:
        raise ParameterError(f"{path}: n_features must be a whole number of at least 2.")
    return estimator, n_features


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
    """Try to refute the guarantee of the estimator that CONFIG (TOML) describes.

    Exit code 0: nothing refuted, 7: refuted.
    """
    from dpsparse.audit.page import page
    from dpsparse.audit.verdict import audit as attack
    from dpsparse.progress import FitProgress

    if runs < 100 or not 0.5 < confidence < 1.0:
        raise click.UsageError("--runs must be at least 100 and --confidence within (0.5, 1).")
    target = html if html is not None else config.with_suffix(".html")
    check_output(target, True, (config,))
    estimator, n_features = read_config(config)
    estimator.set_params(verbose=-1)  # one line for the whole audit, not one for each of its fits
    with FitProgress("audit", 0, patience=0.0) as progress:
        verdict = attack(
            estimator, n_features, n_runs=runs, confidence=confidence, seed=seed, tell=progress
        )
    click.echo(show_text(str(verdict)))
    write_whole(target, page(verdict).encode(), True)
    click.echo(f"page: {show_name(target)}")
    if not verdict.holds:
        raise SystemExit(REFUTED)  # click's Exit is lost where a program is not standalone
