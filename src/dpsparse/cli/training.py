"""Rows of files as models take them, and the way of a paid model into its file: what `fit` and `tune` share."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import dpsparse
from dpsparse._cells import person_names, read_targets
from dpsparse._checks import did_you_mean, no_column
from dpsparse._files import keep_elsewhere
from dpsparse._text import show_name
from dpsparse.cli import prepare as preparation
from dpsparse.cli.options import Options, make_estimator
from dpsparse.cli.output import say, stage
from dpsparse.exceptions import DomainError, ModelFileError, ParameterError, SchemaError
from dpsparse.readers import column_names, read_columns, read_table
from dpsparse.readers.tables import NotNumericTable, format_of

if TYPE_CHECKING:
    from dpsparse.domain_file import Facts
    from dpsparse.preprocessing import DPPipeline

_NUMBERS_ROWS = re.compile(
    r"(?i:row.?(names?|numbers?|id)?|index|unnamed.*|(.*[ _.-])?id)|[a-z]+I[dD]"
)


@dataclass(frozen=True)
class Training:
    """What a method is fitted to, and what takes its weights back to the columns of the file."""

    X: Any
    y: Any = None
    persons: np.ndarray | None = None
    feature_names: Any = None
    factors: np.ndarray | None = None  # that the columns of the file were multiplied by
    unscaled: Any = None


def prepared(
    data: str, options: Options, facts: Facts, ledger: Any
) -> tuple[DPPipeline, list[str]]:
    """The pipeline for a raw table, and the names of all of its columns; only the header is read."""
    domain, roles = preparation.declared(options, facts.domain, facts.roles)
    model = make_estimator(options, domain, ledger)
    names = header_of(data, options)
    return preparation.make_pipeline(model, domain, roles, names, options), names


def header_of(data: str, options: Options) -> list[str]:
    """The names of the columns, among them the target. Before the target is found among them they are not shown: the
    first line of a file without a header is a row."""
    names = column_names(data, options["file_format"])
    said = [_target(options), _person(options), *preparation.names_of(options["drop"])]
    for name in said[:2]:
        if name is not None and name not in names:
            raise no_column(name, names, said)
    return names


def feature_columns(data: str, options: Options) -> list[str]:
    """The columns of a table of numbers but target, person and what is dropped, from its header."""
    names = header_of(data, options)
    dropped = preparation.names_of(options["drop"])
    for name in dropped:
        if name not in names:
            raise no_column(name, names, [options["target"], *dropped])
    others = {options["target"], options["person"], *dropped}
    return [name for name in names if name not in others]


def _has_header(data: str, options: Options) -> bool:
    return (options["file_format"] or format_of(Path(data))) != "svmlight"


def count_features(data: str, options: Options) -> int | None:
    """How many feature columns the header of a table names; None where a file has no header."""
    return len(feature_columns(data, options)) if _has_header(data, options) else None


def read_raw(path: str, options: Options, classes: Any) -> Training:
    """Raw feature columns, targets (of the declared classes, or numbers) and persons of a table that the pipeline
    prepares."""
    target, person = _target(options), _person(options)
    with stage(f"reading {Path(path).name}"):
        columns = read_columns(path, format=options["file_format"])
        y = read_targets(columns.pop(target), classes)
        persons = None if person is None else person_names(columns.pop(person))
        return Training(columns, y, persons)


def read_numbers(path: str, options: Options, scales: dict[str, float], model: Any) -> Training:
    """A table of numbers, scaled by the public constants of its columns."""
    names = feature_columns(path, options) if _has_header(path, options) else None
    with stage(f"reading {Path(path).name}"):
        try:
            table = read_table(
                path,
                target=options["target"],
                person=_person(options),
                drop=preparation.names_of(options["drop"]),
                n_features=options["n_features"],
                zero_based=options["zero_based"],
                format=options["file_format"],
                classes=model.domain.classes,
            )
        except NotNumericTable:
            raise preparation.undecided(names or []) from None
        if names is not None and not np.isfinite(table.X.data).all():
            raise preparation.undecided(names)
        factors = _factors(table.feature_names, scales, model)
        X = table.X
        if factors is not None:
            X = X.copy()
            X.data *= factors[X.indices]
    return Training(X, table.y, table.persons, table.feature_names, factors, table.X)


def stream(
    paths: tuple[str, ...], options: Options, scales: dict[str, float], model: Any
) -> Training:
    """Rows of several files, or of more than memory holds: read, clipped and stored by `fit`, then streamed."""
    from dpsparse.rows import Rows

    kinds = {options["file_format"] or format_of(Path(path)) for path in paths}
    if len(kinds) > 1:
        raise ParameterError("All files must have the same format; convert some of them.")
    if options["person"] is not None:
        raise ParameterError("--person needs one file that memory holds; leave out --memory.")
    kind = kinds.pop()
    common: Any = {"memory": options["memory"] or "2GB"}
    source: Any
    if kind == "svmlight":
        if options["n_features"] is None:
            raise ParameterError(
                "Several svmlight files, or --memory, need the public width: --n-features."
            )
        source = Rows.from_svmlight(
            paths, n_features=options["n_features"], zero_based=options["zero_based"], **common
        )
    else:
        common |= {"target": _target(options), "drop": preparation.names_of(options["drop"])}
        if kind == "parquet":
            source = Rows.from_parquet(paths, **common)
        else:
            source = Rows.from_csv(paths, separator="\t" if kind == "tsv" else ",", **common)
    source.factors = _factors(source.feature_names, scales, model)
    return Training(source, feature_names=source.feature_names, factors=source.factors)


def rows_for(fitted: Any, data: str, options: Options) -> Any:
    """The rows of a file as a fitted model takes them: by name, raw where the model prepares them itself."""
    inner = getattr(fitted, "model_", None)
    raw = getattr(fitted, "feature_names_in_", None) if inner is not None else None
    if raw is not None:
        return read_columns(data, columns=list(raw), format=options["file_format"])
    names = None if inner is not None else fitted.feature_names_
    unnamed = [options["target"]] if options["target"] and names is None else []
    table = read_table(
        data,
        features=names,
        drop=() if names is not None else [*preparation.names_of(options["drop"]), *unnamed],
        n_features=fitted.n_features_in_,
        zero_based=options["zero_based"],
        format=options["file_format"],
    )
    if table.X.shape[1] != fitted.n_features_in_:
        raise SchemaError(
            f"The data has {table.X.shape[1]} feature columns and the model {fitted.n_features_in_}."
        )
    return table.X


def labelled_rows(fitted: Any, data: str, options: Options) -> Training:
    """Rows for a fitted model with their targets, and the person of every row if a column names them."""
    person, classes = _person(options), getattr(fitted, "classes_", None)
    if not _has_header(data, options):
        if person is not None:
            raise SchemaError("--person needs named columns (CSV, Parquet).")
        table = read_table(
            data, n_features=fitted.n_features_in_, zero_based=options["zero_based"], format=options["file_format"],
            classes=classes,
        )  # fmt: skip
        return Training(table.X, table.y)
    wanted = [_target(options), *([person] if person is not None else [])]
    X = rows_for(fitted, data, {**options, "drop": [*options["drop"], *wanted[1:]]})
    cells = read_columns(data, columns=wanted, format=options["file_format"])
    persons = None if person is None else person_names(cells[person])
    return Training(X, read_targets(cells[wanted[0]], classes), persons)


def _target(options: Options) -> str:
    if options["target"] is None:
        raise SchemaError("A table needs --target, the name of the column to predict.")
    return str(options["target"])


def _person(options: Options) -> str | None:
    person: str | None = options["person"]
    if person is not None and person == options["target"]:
        raise ParameterError(
            "--target and --person name the same column; a target names no person."
        )
    return person


def _factors(names: Any, scales: dict[str, float], model: Any) -> np.ndarray | None:
    """One factor per column. Without any, named columns are not clipped to a bound that nobody stated."""
    if scales:
        if names is None:
            raise ParameterError("Only named columns (CSV, Parquet) can be scaled.")
        for unknown in (name for name in scales if name not in names):
            near = did_you_mean(unknown, names, names)
            raise ParameterError(f"There is no feature column {unknown!r} to scale.{near}")
        return np.array([1.0 / scales.get(name, 1.0) for name in names])
    try:
        model._check_parameters()
        model._check_scales(names)
    except DomainError:
        if names is None:
            raise
        raise ParameterError(
            f"The method needs the public scale of these columns: {preparation.shown(names, names)}. State --bounds "
            "COLUMN=LOW..HIGH for each, --feature-bound 1 if all entries lie in [-1, 1], or have scales learnt: "
            "--prepare private. Nothing was spent."
        ) from None
    return None


# ---- the way out --------------------------------------------------------------------------------


def keep(
    model: Any, rows: Training, scales: dict[str, float], options: Options, data: str
) -> tuple[Path, dict[str, Any]]:
    """The model in its file, with weights for the columns as they are in the data, and the record about it."""
    if rows.factors is not None:
        model.coef_ = model.coef_ * rows.factors
        if hasattr(model, "coef_noise_"):
            model.coef_noise_ = model.coef_noise_ * abs(rows.factors)
        model.scales_ = scales
    # What the card calls the data and the target: names that were typed, nothing of the rows.
    model.about_ = {
        "data": options["data_name"] or Path(data).name,
        "target": options["target"] or "",
        "fitted": datetime.datetime.now(datetime.UTC).strftime("%d %B %Y"),
    }
    path = _save_paid(model, options["output"], rows.feature_names, options["overwrite"])
    return path, {"model": path, **facts_of(model)}


def _save_paid(model: Any, output: Path, feature_names: Any, overwrite: bool) -> Path:
    """The saved model. Where its place fails, another one: what is paid for is not thrown away."""
    from dpsparse.models import dumps, save

    try:
        return save(model, output, feature_names=feature_names, overwrite=overwrite)
    except ModelFileError as error:
        reason = f"{error} The fit is done and its epsilon is spent"
    kept = keep_elsewhere(
        lambda place: save(model, place / output.name, feature_names=feature_names)
    )
    if kept is not None:
        raise ModelFileError(f"{reason}; the model is kept in {kept}, move it from there.")
    say(dumps(model, feature_names=feature_names))
    raise ModelFileError(f"{reason}; the model file's text is on stdout, keep it.")


def facts_of(model: Any) -> dict[str, Any]:
    inner = getattr(model, "model_", model)
    return {
        "estimator": type(inner).__name__,
        "prepared": inner is not model,
        "dpsparse": dpsparse.__version__,
        "n_columns": model.n_features_in_,
        "n_features": inner.n_features_in_,
        "n_nonzero": inner.n_nonzero_,
        "guarantee": model.privacy_.to_dict(),
    }


def summary(model: Any) -> str:
    inner = getattr(model, "model_", model)
    raw = "" if inner is model else f"{model.n_features_in_:,} raw columns, "
    return (
        f"{type(inner).__name__}, {raw}{inner.n_features_in_:,} features, "
        f"{inner.n_nonzero_:,} non-zero weights{_kinds(model)}"
    )


def _kinds(model: Any) -> str:
    """What columns were taken for where that was learnt: a code that looks like a number is one."""
    found: dict[str, list[str]] = {}
    for _, step in getattr(model, "steps_", []):
        for column, kind in getattr(step, "kinds_", {}).items():
            found.setdefault(kind, []).append(column)
    lines = "".join(
        f"\ntaken for {kind}: {', '.join(map(show_name, names[:100]))}{', ...' * (len(names) > 100)}"
        for kind, names in sorted(found.items())
    )
    numbers = [name for name in found.get("number", []) if _NUMBERS_ROWS.fullmatch(name)]
    if numbers:
        lines += (
            "\nby their names these number rows or persons, and as features they add noise: "
            f"{', '.join(map(show_name, numbers[:100]))}; leave them out (--drop), or protect persons (--person)"
        )
    return lines
