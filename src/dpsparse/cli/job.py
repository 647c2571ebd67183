"""A fit that options describe: its facts, its account, its estimator, what every column is; and then its rows.

A column is declared (bounds, categories), learnt privately (--prepare private does that to all that nothing else was
said about), hashed, or dropped. Which of these is a decision about names of columns; it never depends on a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse._cells import mark_missing, person_names
from dpsparse._checks import (
    IDENTIFIERS_ADD_NOISE,
    did_you_mean,
    identifiers,
    no_column,
    show_name,
)
from dpsparse.cli.options import (
    Options,
    adjacency_of,
    check_dropping,
    make_estimator,
    names_of,
    open_ledger,
    pair_of,
    range_of,
    read_facts,
)
from dpsparse.cli.output import stage
from dpsparse.exceptions import DomainError, ParameterError, SchemaError
from dpsparse.io import read_columns, read_table
from dpsparse.io.streams import format_of
from dpsparse.io.tables import (
    Chosen,
    NotNumericTable,
    Table,
    check_names,
    column_names,
    has_target,
    index_columns,
    targets_of,
)

if TYPE_CHECKING:
    from dpsparse.domain.file import Facts

DECISIONS = (
    "--bounds COLUMN=LOW..HIGH, --categories COLUMN=A,B, --numbers, --dates or --categories COLUMN (learnt privately), "
    "--hash, --text, --words or --drop COLUMN; or --prepare private for all of them"
)


@dataclass(frozen=True)
class Job:
    """What `fit`, `tune` and `check` do to DATA; only its header was read."""

    options: Options
    facts: Facts
    ledger: Any
    data: str | None = None

    @cached_property
    def is_table(self) -> bool:
        """Whether DATA has named columns."""
        kind = self.options.file_format or (None if self.data is None else format_of(Path(self.data)))  # fmt: skip
        return kind not in (None, "svmlight")

    @cached_property
    def prepares(self) -> bool:
        """Whether anything was said about columns that needs preparation."""
        facts, domain = self.facts, self.facts.domain
        declared = domain.bounds, domain.categories, domain.fill, facts.missing_values
        kept = any(role != "drop" for role in facts.roles.values())
        return kept or any(map(bool, (self.options.prepare, *declared)))

    @property
    def dropped(self) -> list[str]:
        return [name for name, role in self.facts.roles.items() if role == "drop"]

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns, among them the target. Before the target is found among them they are not shown:
        the first line of a file without a header is a row."""
        options = self.options
        encoding = options.encoding or "utf-8"
        names = column_names(
            str(self.data), options.file_format, sep=options.sep, encoding=encoding
        )
        said = [options.needed_target, options.person, *self.dropped]
        for name in said[:2]:
            if name is not None and name not in names:
                raise no_column(name, names, said)
        check_names(names, [])
        if not all(name.strip() for name in names[1:]):
            raise SchemaError(
                "A column has no name: name it in the first line, or delete it. A separator at the end of every line "
                "makes such a column."
            )
        return names

    @cached_property
    def features(self) -> list[str]:
        """The columns that are learnt from."""
        options = self.options
        if not self.prepares:
            chosen = Chosen(options.target, options.person, tuple(self.dropped))
            return chosen.features_of(self.header)
        others = {options.target, options.person}
        return [n for n in self.header if n not in others and self.roles.get(n) != "drop"]

    @cached_property
    def index_columns(self) -> list[str]:
        """The row numbers that pandas wrote; they are left out unless something else was said about them."""
        domain, options = self.facts.domain, self.options
        said = {*(domain.bounds or {}), *(domain.categories or {}), *self.facts.roles}
        said |= {str(options.target), str(options.person)}
        return [name for name in index_columns(self.header) if name not in said]

    @cached_property
    def roles(self) -> dict[str, Any]:
        """The roles of the columns of a raw table by name, those of row numbers among them."""
        return dict.fromkeys(self.index_columns, "drop") | self.facts.roles

    @cached_property
    def n_columns(self) -> int | None:
        """The public number of columns that are learnt from; None where nobody stated it."""
        if self.data is not None and self.is_table and (self.prepares or self.options.n_features is None):  # fmt: skip
            return len(self.features)
        return self.options.n_features

    def model(self, *, searched: bool = False) -> Any:
        """The estimator, in a pipeline if the table is prepared; a search has its own seed and account."""
        ledger = None if searched else self.ledger
        options = replace(self.options, random_state=None) if searched else self.options
        if not self.prepares:
            return make_estimator(options, self.facts.domain, ledger)
        model = make_estimator(replace(options, random_state=None), self.facts.domain, None)
        return _make_pipeline(model, self, ledger, options.random_state)

    def notes(self) -> list[str]:
        """What somebody should know before paying, from names alone."""
        if self.data is None or not self.is_table:
            return []
        found = []
        if self.index_columns:
            shown = ", ".join(
                show_name(name) or "the first column, which has no name"
                for name in self.index_columns
            )
            found.append(f"left out, as pandas numbers rows so: {shown}")
        if self.options.sep in (";", "semicolon") and self.options.decimal is None:
            found.append(
                "if its numbers have a decimal comma, add --decimal , or they count as categories"
            )
        numbers = identifiers(self.features)
        if numbers:
            found.append(
                f"{IDENTIFIERS_ADD_NOISE}: {', '.join(map(show_name, numbers[:100]))}; "
                "leave them out (--drop), or protect persons (--person)"
            )
        return found


def describe_job(options: Options, data: str | None = None) -> Job:
    """The job that these options describe."""
    options, facts = read_facts(options)
    options.layout  # noqa: B018  refuses what is no separator or encoding
    job = Job(options, _with_columns(options, facts), open_ledger(options), data)
    check_dropping(options, adjacency_of(options, job.ledger))
    return job


# ---- raw tables -----------------------------------------------------------------------------------


def _with_columns(options: Options, facts: Facts) -> Facts:
    """The facts with what the options say about columns; options win over a file."""
    domain = facts.domain
    roles = {column: _role_of(role, column) for column, role in facts.roles.items()}
    bounds, categories = dict(domain.bounds or {}), dict(domain.categories or {})
    fill, stated = dict(domain.fill or {}), dict[str, str]()

    def state(column: str, option: str) -> str:
        if column in stated:
            raise ParameterError(
                f"Column {column!r} is stated twice: {stated[column]} and {option}."
            )
        stated[column] = option
        for known in (bounds, categories, roles):
            known.pop(column, None)
        return column

    for text in options.bounds:
        column, pair = pair_of(text, "--bounds", "age=0..120")
        bounds[state(column, "--bounds")] = range_of(pair, f"--bounds {text!r}")
    for text in options.categories:
        if "=" in text:
            column, names = pair_of(text, "--categories", "sex=f,m")
            categories[state(column, "--categories")] = names_of([names])
        else:
            for column in names_of([text]):
                roles[state(column, "--categories")] = "category"
    for text in options.hashed:
        columns, sign, width = text.rpartition("=")
        for column in names_of([columns if sign else text]):
            roles[state(column, "--hash")] = _hashed(width, text) if sign else "hash"
    for option, role, typed in (
        ("--numbers", "number", options.numbers),
        ("--dates", "date", options.dates),
        ("--text", "text", options.texts),
        ("--words", "words", options.words),
        ("--drop", "drop", options.drop),
    ):
        for column in names_of(typed):
            roles[state(column, option)] = role
    for text in options.fills:
        column, value = pair_of(text, "--fill", "age=40")
        fill[column] = _number_or_text(value)
    return replace(
        facts,
        domain=replace(
            domain, bounds=bounds or None, categories=categories or None, fill=fill or None
        ),
        roles=roles,
        missing_values=tuple(names_of(options.missing_values)) or facts.missing_values,
    )


def _hashed(width: str, text: str) -> Any:
    from dpsparse.preprocessing import HashingEncoder

    if not width.strip().isdecimal() or not 0 < int(width) < 2**31:
        raise ParameterError(f"--hash {text!r} must be written like --hash employer=128.")
    return HashingEncoder(int(width))


def _role_of(role: str, column: str) -> Any:
    """A role as a file of facts states it; only a hash may state a width."""
    kind, sign, width = role.partition("=")
    return _hashed(width, f"{column}={width}") if sign and kind == "hash" else role


def _number_or_text(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _make_pipeline(model: Any, job: Job, ledger: Any, random_state: int | None) -> Any:
    """The pipeline for a table of these columns; those that need a decision are listed all at once."""
    from dpsparse.preprocessing import DPPipeline, DPTablePreparer

    options, names, domain, roles = job.options, job.header, job.facts.domain, job.roles
    others = {options.target, options.person}
    facts = {*(domain.bounds or {}), *(domain.categories or {}), *(domain.fill or {}), *roles}
    absent = sorted(name for name in facts if name not in names)
    if absent:
        near = "".join(did_you_mean(name, names, facts | others) for name in absent[:3])
        raise ParameterError(f"There are no such columns: {', '.join(absent[:50])}.{near}")
    twice = sorted(str(name) for name in others if name in facts)
    if twice:
        raise ParameterError(
            f"{', '.join(twice)} is the target or the person, not a feature; say nothing else about it."
        )
    decided = {*(domain.bounds or {}), *(domain.categories or {}), *roles}
    open_ = [name for name in names if name not in decided and name not in others]
    rest = "auto" if options.prepare == "private" else None
    if open_ and rest is None:
        raise ParameterError(
            f"These columns need a decision: {shown_columns(open_, names)}. Add for each {DECISIONS}."
        )
    table = DPTablePreparer.from_domain(
        domain, roles, rest=rest, missing_values=job.facts.missing_values
    )
    return DPPipeline(
        [("table", table), ("model", model)],
        epsilon=options.epsilon,
        delta=options.delta,
        adjacency=model.adjacency,
        ledger=ledger,
        random_state=random_state,
    )


def shown_columns(columns: Sequence[str], names: Sequence[str]) -> str:
    """Columns by name where they read like names, by number otherwise: a file without a header has cells there."""
    told = [
        name if name.replace("_", "a").replace(".", "a").replace(" ", "a").isidentifier()
        and any(c.isalpha() for c in name)
        else f"column {list(names).index(name) + 1}"
        for name in columns[:100]
    ]  # fmt: skip
    return ", ".join(told) + (", ..." if len(columns) > 100 else "")


def undecided(names: Sequence[str]) -> SchemaError:
    """A table that is not of numbers alone, and all columns: which ones hold other cells is not revealed."""
    return SchemaError(
        "The table holds cells that are no finite numbers: names, dates or missing values. In which columns is not "
        "revealed, as one row could decide it. Say for every column what it is: add "
        f"{DECISIONS}. The columns are: {shown_columns(names, names)}. Nothing was spent."
    )


def check_scales(model: Any, names: Any, streamed: bool = False) -> None:
    """Refuse columns whose scale the method needs and nobody stated, in the words of the command line."""
    try:
        model._check_parameters()
        model._check_scales(names)
    except DomainError:
        if names is None:
            raise
        in_memory = (
            ", or --bounds COLUMN=LOW..HIGH for each, or have scales learnt: --prepare private"
        )
        raise ParameterError(
            f"The method needs the public scale of these columns: {shown_columns(names, names)}. State "
            f"--feature-bound 1 if all entries lie in [-1, 1]{'' if streamed else in_memory}. Nothing was spent."
        ) from None


# ---- rows -----------------------------------------------------------------------------------------


def read_rows(job: Job, model: Any) -> Table:
    """The rows of one file, raw where a pipeline prepares them, else numbers."""
    with stage(f"reading {Path(str(job.data)).name}"):
        if not job.prepares:
            return _read_numbers(job, model)
        classes, missing = job.facts.domain.classes, job.facts.missing_values
        return _with_targets(str(job.data), job.options, *_wanted_cells(job), classes, missing)


def read_cells(job: Job) -> Table:
    """Raw cells of features, targets and persons; nothing is refused for what a target is."""
    options, (wanted, names) = job.options, _wanted_cells(job)
    if job.facts.domain.classes is not None:
        names.add(options.needed_target)
    with stage(f"reading {Path(str(job.data)).name}"):
        cells = read_columns(str(job.data), columns=wanted, names=names, **options.reading)
    y = cells.pop(options.needed_target)
    persons = None if options.person is None else person_names(cells.pop(options.person))
    return Table(cells, y, None, persons)


def _wanted_cells(job: Job) -> tuple[list[str], set[str]]:
    """Features, target and person of a table, and those of them that hold names, in which a decimal comma changes
    nothing."""
    domain, roles = job.facts.domain, job.roles
    others = [job.options.needed_target, *([job.options.person] if job.options.person else [])]
    names = {name for name, role in roles.items() if role not in ("auto", "number", "date", "drop")}
    return [*job.features, *others], {*names, *(domain.categories or {}), *others[1:]}


def _with_targets(
    path: str,
    options: Options,
    columns: list[str],
    names: set[str],
    classes: Any,
    missing: Sequence[str],
) -> Table:
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
    return Table(cells, y, None, persons)


def _read_numbers(job: Job, model: Any) -> Table:
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
    return table


def stream_rows(job: Job, paths: tuple[str, ...], model: Any) -> Table:
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
        chosen = Chosen(options.needed_target, None, tuple(job.dropped))
        source = of_files(paths, options.layout, chosen, memory)
    check_scales(model, source.feature_names, streamed=True)
    return Table(source, None, source.feature_names)


def rows_for(fitted: Any, data: str, options: Options) -> Any:
    """The rows of a file as a fitted model takes them: by name, raw where the model prepares them itself."""
    if _raw_names(fitted) is not None:
        return read_columns(
            data, columns=_raw_names(fitted), names=_names_in(fitted), **options.reading
        )
    return _numbers_for(fitted, data, options).X


def labelled_rows(fitted: Any, data: str, options: Options) -> Table:
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


def _numbers_for(fitted: Any, data: str, options: Options, **targets: Any) -> Table:
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
    return table


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
