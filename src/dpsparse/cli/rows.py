"""Rows of files as models take them, and the way of a paid model into its file."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dpsparse
from dpsparse._cells import mark_missing, person_names
from dpsparse._files import keep_elsewhere
from dpsparse._text import show_name
from dpsparse.cli.job import Job, check_scales, undecided
from dpsparse.cli.options import Options
from dpsparse.cli.output import say, stage
from dpsparse.exceptions import ModelFileError, ParameterError, SchemaError
from dpsparse.io import read_columns, read_table
from dpsparse.io.streams import format_of
from dpsparse.io.tables import Chosen, NotNumericTable, has_target, targets_of

# Roles of columns that hold names, in which a decimal comma changes nothing.
_NAMES = ("category", "hash", "text", "words")


@dataclass(frozen=True)
class Training:
    """What a method is fitted to."""

    X: Any
    y: Any = None
    persons: np.ndarray | None = None
    feature_names: Any = None


def read_rows(job: Job, model: Any) -> Training:
    """The rows of one file, raw where a pipeline prepares them, else numbers."""
    with stage(f"reading {Path(str(job.data)).name}"):
        return _read_raw(job) if job.prepares else _read_numbers(job, model)


def _read_raw(job: Job) -> Training:
    wanted, names = _wanted_cells(job)
    return _with_targets(
        str(job.data), job.options, wanted, names, job.facts.domain.classes, job.missing_words
    )


def read_cells(job: Job) -> Training:
    """Raw cells of features, targets and persons; nothing is refused for what a target is."""
    options, (wanted, names) = job.options, _wanted_cells(job)
    if job.facts.domain.classes is not None:
        names.add(options.needed_target)
    with stage(f"reading {Path(str(job.data)).name}"):
        cells = read_columns(str(job.data), columns=wanted, names=names, **options.reading)
    y = cells.pop(options.needed_target)
    return Training(
        cells, y, None if options.person is None else person_names(cells.pop(options.person))
    )


def _wanted_cells(job: Job) -> tuple[list[str], set[str]]:
    """Features, target and person of a table, and those of them that hold names."""
    domain, roles = job.roles if job.prepares else (job.facts.domain, {})
    others = [job.options.needed_target, *([job.options.person] if job.options.person else [])]
    names = {name for name, role in roles.items() if not isinstance(role, str) or role in _NAMES}
    return [*job.features, *others], {*names, *(domain.categories or {}), *others[1:]}


def _with_targets(
    path: str,
    options: Options,
    columns: list[str],
    names: set[str],
    classes: Any,
    missing: Sequence[str],
) -> Training:
    """Raw columns of a file with targets and persons; those of `names` hold names."""
    target, person = options.needed_target, options.person
    cells = read_columns(
        path,
        columns=columns,
        names=names if classes is None else {*names, target},
        **options.reading,
    )
    y = cells[target]
    if options.drop_missing_target:
        kept = has_target(mark_missing(y, missing, [] if classes is None else classes), classes)
        if not kept.any():
            raise SchemaError(f"{Path(path).name} holds no rows.")
        cells = {name: column[kept] for name, column in cells.items()}
    y = targets_of(cells.pop(target), classes)
    persons = None if person is None else person_names(cells.pop(person))
    return Training(cells, y, persons)


def _read_numbers(job: Job, model: Any) -> Training:
    options = job.options
    names = job.features if job.is_table else None
    try:
        table = read_table(
            str(job.data),
            target=options.target if names is not None else None,
            person=options.person,
            features=names,
            n_features=options.n_features,
            zero_based=options.zero_based,
            classes=model.domain.classes,
            drop_missing_target=options.drop_missing_target,
            **options.reading,
        )
    except NotNumericTable:
        raise undecided(names or []) from None
    if names is not None and not np.isfinite(table.X.data).all():
        raise undecided(names)
    check_scales(model, table.feature_names)
    return Training(table.X, table.y, table.persons, table.feature_names)


def stream_rows(job: Job, paths: tuple[str, ...], model: Any) -> Training:
    """Rows of several files, or of more than memory holds: read, clipped and stored by `fit`, then streamed."""
    from dpsparse.rows import Rows
    from dpsparse.rows.sources import of_files

    options = job.options
    kinds = {options.file_format or format_of(Path(path)) for path in paths}
    if len(kinds) > 1:
        raise ParameterError("All files must have the same format; convert some of them.")
    if options.person is not None or options.drop_missing_target:
        raise ParameterError(
            "--person and --drop-missing-target need one file that memory holds; leave out --memory."
        )
    memory = options.memory or "2GB"
    source: Any
    if kinds.pop() == "svmlight":
        if options.n_features is None:
            raise ParameterError(
                "Several svmlight files, or --memory, need the public width: --n-features."
            )
        source = Rows.from_svmlight(
            paths, n_features=options.n_features, zero_based=options.zero_based, memory=memory
        )
    else:
        chosen = Chosen(options.needed_target, None, tuple(options.dropped))
        source = of_files(paths, options.layout, chosen, memory)
    check_scales(model, source.feature_names)
    return Training(source, feature_names=source.feature_names)


def rows_for(fitted: Any, data: str, options: Options) -> Any:
    """The rows of a file as a fitted model takes them: by name, raw where the model prepares them itself."""
    if _raw_names(fitted) is not None:
        return read_columns(
            data, columns=_raw_names(fitted), names=_names_in(fitted), **options.reading
        )
    return _numbers_for(fitted, data, options).X


def labelled_rows(fitted: Any, data: str, options: Options) -> Training:
    """Rows for a fitted model with their targets, and the person of every row if a column names them."""
    person, classes = options.person, getattr(fitted, "classes_", None)
    if person is not None and person == options.target:
        raise ParameterError(
            "--target and --person name the same column; a target names no person."
        )
    if (options.file_format or format_of(Path(data))) == "svmlight":
        if person is not None:
            raise SchemaError("--person needs named columns (CSV, Parquet).")
        return _numbers_for(fitted, data, options, classes=classes)
    others = [options.needed_target, *([person] if person is not None else [])]
    raw = _raw_names(fitted)
    if raw is None:
        return _numbers_for(fitted, data, options, target=others[0], person=person, classes=classes)
    names = _names_in(fitted) | set(others[1:])
    columns, missing = [*raw, *(name for name in others if name not in raw)], _missing_words(fitted)
    return _with_targets(data, options, columns, names, classes, missing)


def _numbers_for(fitted: Any, data: str, options: Options, **targets: Any) -> Training:
    names = None if hasattr(fitted, "model_") else fitted.feature_names_
    unnamed = [] if names is not None else options.dropped
    if names is None and options.target is not None and targets.get("target") is None:
        unnamed.append(options.target)
    table = read_table(
        data,
        features=names,
        drop=unnamed,
        n_features=fitted.n_features_in_,
        zero_based=options.zero_based,
        drop_missing_target=options.drop_missing_target,
        **options.reading,
        **targets,
    )
    if table.X.shape[1] != fitted.n_features_in_:
        raise SchemaError(
            f"The data has {table.X.shape[1]} feature columns and the model {fitted.n_features_in_}."
        )
    return Training(table.X, table.y, table.persons)


def _raw_names(fitted: Any) -> list[str] | None:
    """The raw columns that a pipeline prepares."""
    names = getattr(fitted, "feature_names_in_", None) if hasattr(fitted, "model_") else None
    return None if names is None else list(names)


def _table_steps(fitted: Any) -> list[Any]:
    return [step for _, step in getattr(fitted, "steps_", []) if hasattr(step, "parts_")]


def _names_in(fitted: Any) -> set[str]:
    """Columns that a fitted pipeline takes for names."""
    return {
        column
        for table in _table_steps(fitted)
        for label, _, columns in table.parts_
        if label not in ("bounds", "numbers")
        for column in columns
    }


def _missing_words(fitted: Any) -> list[str]:
    return [word for table in _table_steps(fitted) for word in table.missing_values]


# ---- the way out --------------------------------------------------------------------------------


def keep_model(model: Any, rows: Training, job: Job) -> tuple[Path, dict[str, Any]]:
    """The model in its file, and the record about it."""
    options = job.options
    # What the card calls the data and the target, and how the next file is read: words that were typed.
    model.about_ = {
        "data": options.data_name or Path(str(job.data)).name,
        "target": options.target or "",
        "fitted": datetime.datetime.now(datetime.UTC).strftime("%d %B %Y"),
        **options.written,
    }
    assert options.output is not None
    path = _save_paid(model, options.output, rows.feature_names, options.overwrite)
    return path, {"model": path, **facts_of(model)}


def _save_paid(model: Any, output: Path, feature_names: Any, overwrite: bool) -> Path:
    """The saved model. Where its place fails, another one: what is paid for is not thrown away."""
    from dpsparse.models.files import dumps, save

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
        "classes": inner.classes_.tolist() if hasattr(inner, "classes_") else None,
        "guarantee": model.privacy_.to_dict(),
    }


def summary(model: Any) -> str:
    inner = getattr(model, "model_", model)
    raw = "" if inner is model else f"{model.n_features_in_:,} raw columns, "
    return (
        f"{type(inner).__name__}, {raw}{inner.n_features_in_:,} features, "
        f"{inner.n_nonzero_:,} non-zero weights{_speaks(inner)}{_kinds(model)}"
    )


def _speaks(model: Any) -> str:
    from dpsparse.report.weights import positive_label

    label = positive_label(model)
    return "" if label is None else f"\npositive weights speak for: {show_name(label)}"


def _kinds(model: Any) -> str:
    """What columns were taken for where that was learnt: a code that looks like a number is one."""
    found: dict[str, list[str]] = {}
    for step in _table_steps(model):
        for column, kind in getattr(step, "kinds_", {}).items():
            found.setdefault(kind, []).append(column)
    return "".join(
        f"\ntaken for {kind}: {', '.join(map(show_name, names[:100]))}{', ...' * (len(names) > 100)}"
        for kind, names in sorted(found.items())
    )
