"""`dpsparse audit config.toml`: attack a configuration before anybody trusts it (docs/how_we_test.md).

No data is read: the audit makes up the worst tables of the domain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsparse._checks import safe_repr, show_text
from dpsparse._json import read_toml
from dpsparse.exceptions import ParameterError

if TYPE_CHECKING:
    from dpsparse.audit.subject import Subject

WORKFLOWS = ("columns", "search", "evaluate", "infer", "look")


@dataclass(frozen=True)
class _Config:
    """A file whose tables are read by name; every key of a table is known, unless any is."""

    path: Path
    tables: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> _Config:
        try:
            tables = read_toml(path)
        except (OSError, ValueError):
            raise ParameterError(
                f"{path} cannot be read as TOML: audit takes a file that names an estimator and its parameters "
                "(docs/how_we_test.md). What a model file claims is checked by dpsparse inspect."
            ) from None
        known = {"estimator", "n_features", "domain", "parameters", *WORKFLOWS}
        unknown = sorted(set(tables) - known)
        if unknown:
            raise ParameterError(
                f"{path}: unknown {', '.join(unknown)}; use {', '.join(sorted(known))}."
            )
        return cls(path, tables)

    def section(self, table: str, names: Iterable[str] | None = None) -> dict[str, Any]:
        stated = self.tables.get(table, {})
        if not isinstance(stated, dict):
            raise ParameterError(f"{self.path}: {table} must be a table, [{table}].")
        known = list(stated if names is None else names)
        for wrong in sorted(set(stated) - set(known)):
            raise ParameterError(
                f"{self.path}: [{table}] has no {wrong!r}; it has: {', '.join(known)}."
            )
        return stated

    def options(self, table: str, call: Any, too: Set[str] = frozenset()) -> dict[str, Any]:
        """The section of a call, by the names of its parameters."""
        # What a file cannot state: rows, accounts, seeds, and what other tables of the file state.
        own = {
            "X", "y", "model", "estimator", "groups", "ledger", "random_state", "verbose", "domain", "adjacency",
        }  # fmt: skip
        names = inspect.signature(call).parameters
        return self.section(table, [name for name in names if name in too or name not in own])

    def make_estimator(self) -> tuple[Any, int]:
        """The estimator, and the number of features of its tables."""
        from dpsparse import inference, methods, published
        from dpsparse.domain import Domain

        name = self.tables.get("estimator")
        homes = {each: room for room in (methods, published) for each in room.__all__}
        homes["DPFeatureTest"] = inference
        if not isinstance(name, str) or name not in homes:
            raise ParameterError(
                f"{self.path}: estimator must be one of {', '.join(homes)}, got {safe_repr(name)}."
            )
        kind = getattr(homes[name], name)
        parameters = self.options("parameters", kind, {"adjacency"})
        domain = Domain(**self.section("domain", Domain.__dataclass_fields__))
        n_features = self.tables.get("n_features", 4)
        if not isinstance(n_features, int) or n_features < 2:
            raise ParameterError(f"{self.path}: n_features must be a whole number of at least 2.")
        return kind(domain, **parameters), n_features


def read_config(path: Path) -> Subject:
    """The private run that a file describes."""
    from dpsparse.audit.neighbours import row_weights
    from dpsparse.audit.subject import Subject
    from dpsparse.evaluation import dp_evaluate
    from dpsparse.inference import dp_inference
    from dpsparse.model_selection import DPSearchCV
    from dpsparse.preprocessing import DPPipeline, DPTablePreparer, dp_look

    config = _Config.read(path)
    stated = [name for name in WORKFLOWS if name in config.tables]
    if len(stated) > 1 and stated not in (["columns", "search"], ["columns", "look"]):
        raise ParameterError(
            f"{path}: state one of {', '.join(stated)}, or columns with search or look."
        )
    estimator, n_features = config.make_estimator()
    facts = {"domain": estimator.domain, "adjacency": estimator.adjacency}
    roles = None
    if "columns" in stated:
        roles = {name: _role(role) for name, role in config.section("columns").items()}
        terms = {name: getattr(estimator, name) for name in ("epsilon", "delta", "adjacency")}
        steps = [("table", DPTablePreparer(dict(roles))), ("model", estimator)]
        estimator, n_features = DPPipeline(steps, **terms), len(roles)
    if "search" in stated:
        terms = {"delta": estimator.delta, **config.options("search", DPSearchCV)}
        estimator = DPSearchCV(estimator, **terms)
    subject = Subject(estimator, n_features, roles)
    run: Callable[..., Any] | None = None
    if "infer" in stated:
        run = partial(_call, dp_inference, **facts, **config.options("infer", dp_inference))
    elif "look" in stated:
        run = partial(_call, dp_look, **facts, **config.options("look", dp_look))
    elif "evaluate" in stated:
        terms = config.options("evaluate", dp_evaluate)
        # A model that was fitted on other rows, made up as well.
        model, *_ = subject.show(*subject.schema.table(200, 1.0, 77))

        def run(X: Any, y: Any, groups: Any = None) -> Any:
            more = {"groups": groups, "adjacency": estimator.adjacency, **row_weights(model, X)}
            return dp_evaluate(model, X, y, **more, **terms)

    return subject if run is None else Subject(estimator, n_features, roles, run)


def _call(of: Callable[..., Any], X: Any, y: Any, groups: Any = None, **terms: Any) -> Any:
    return of(X, y, groups=groups, **terms)


def _role(role: Any) -> Any:
    """Two numbers are the bounds of a column; other lists are its categories."""
    numbers = isinstance(role, list) and all(isinstance(cell, (int, float)) for cell in role)
    return tuple(role) if numbers and len(role) == 2 else role


@click.command()
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--runs", default=2000, show_default=True, help="Number of models to fit on each of two tables."
)
@click.option("--confidence", default=0.999, show_default=True, help="Confidence of a refutation.")
@click.option(
    "--seed", default=0, show_default=True, help="Seed of the made-up tables and of the noise."
)
def audit(config: Path, runs: int, confidence: float, seed: int) -> None:
    """Try to refute the guarantee of the estimator or workflow that CONFIG (TOML) describes.

    Exit code 0: nothing refuted, 7: refuted.
    """
    from dpsparse.audit.verdict import audit_subject
    from dpsparse.progress import FitProgress

    if runs < 100 or not 0.5 < confidence < 1.0:
        raise click.UsageError("--runs must be at least 100 and --confidence within (0.5, 1).")
    subject = read_config(config)
    with FitProgress("audit", 0, patience=0.0) as tell:  # one line for the whole audit
        verdict = audit_subject(subject, n_runs=runs, confidence=confidence, seed=seed, tell=tell)
    click.echo(show_text(str(verdict)))
    if not verdict.holds:
        raise SystemExit(7)  # click's Exit is lost where a program is not standalone
