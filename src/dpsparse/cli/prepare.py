"""Preparation of raw tables on the command line: what every column is, and the pipeline that follows from it.

A column is declared (bounds, categories), learnt privately (--prepare private does that to all that nothing else was
said about), hashed, or dropped. Which of these is a decision about names of columns; it never depends on a cell.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from dpsparse._checks import did_you_mean
from dpsparse.cli.options import Options, grouped, option, range_of, several
from dpsparse.exceptions import ParameterError, SchemaError

if TYPE_CHECKING:
    from dpsparse.domain import Domain
    from dpsparse.domain_file import Facts
    from dpsparse.preprocessing import DPPipeline

_NAMED = {"hashed": "hash", "texts": "text", "words": "words", "dates": "date", "numbers": "number"}
_OPTIONS = ("prepare", "bounds", "categories", "fills", *_NAMED)
DECISIONS = (
    "--bounds COLUMN=LOW..HIGH, --categories COLUMN=A,B, --numbers, --dates or --categories COLUMN (learnt privately), "
    "--hash, --text, --words or --drop COLUMN; or --prepare private for all of them"
)


# What columns of a raw table are.
prepare_options = grouped(
    option(
        "--prepare",
        type=click.Choice(["private", "declared"]),
        about="private: kinds, scales, categories and gaps of columns are learnt within epsilon; declared: only "
        "what the options below and --domain state is used.",
    ),
    *(
        several(*names, metavar=metavar, about=about)
        for names, metavar, about in (
            (["--bounds"], "COLUMN=LOW..HIGH", "Public bounds of a column of numbers; repeatable."),
            (["--categories"], "COLUMN[=A,B]",
             "Public categories of a column; without a list they are learnt privately. Repeatable."),
            (["--numbers"], "COLUMNS", "Columns of numbers whose scales are learnt privately."),
            (["--dates"], "COLUMNS",
             "Columns of dates (2020-01-31, 31.01.2020), learnt like numbers; years and time stamps are numbers."),
            (["--hash", "hashed"], "COLUMNS", "Columns of names, by a public hash: free."),
            (["--text", "texts"], "COLUMNS", "Columns of text, words by a public hash: free."),
            (["--words"], "COLUMNS", "Columns of text, by a vocabulary learnt privately."),
            (["--fill", "fills"], "COLUMN=VALUE", "Public constant for the gaps of a column; repeatable."),
        )
    ),
)  # fmt: skip


def asked_for(options: Options, facts: Facts) -> bool:
    """Whether anything was said about columns that needs preparation."""
    domain = facts.domain
    stated = any(options.get(name) for name in _OPTIONS)
    raw = stated or bool(facts.roles or domain.bounds or domain.categories or domain.fill)
    if raw and facts.scales:
        raise click.UsageError(
            "--scale is for tables that are not prepared; state --bounds instead."
        )
    return raw


def names_of(texts: Sequence[str]) -> list[str]:
    """Names of columns from options that may hold several, separated by commas."""
    cells = chain.from_iterable(csv.reader(texts, skipinitialspace=True))
    return [cell.strip() for cell in cells if cell.strip()]


def declared(
    options: Options, domain: Domain, roles: dict[str, str]
) -> tuple[Domain, dict[str, str]]:
    """Domain and roles with what the options add; options win over a file."""
    bounds, categories = dict(domain.bounds or {}), dict(domain.categories or {})
    fill, roles = dict(domain.fill or {}), dict(roles)
    stated: dict[str, str] = {}

    def say(column: str, option: str) -> None:
        if column in stated:
            raise ParameterError(
                f"Column {column!r} is stated twice: {stated[column]} and {option}."
            )
        stated[column] = option
        for facts in (bounds, categories, roles):
            facts.pop(column, None)

    for text in options["bounds"]:
        column, pair = _equals(text, "--bounds", "age=0..120")
        say(column, "--bounds")
        bounds[column] = _range(pair, text)
    for text in options["categories"]:
        if "=" in text:
            column, names = _equals(text, "--categories", "sex=f,m")
            say(column, "--categories")
            categories[column] = names_of([names])
        else:
            for column in names_of([text]):
                say(column, "--categories")
                roles[column] = "category"
    for name, role in _NAMED.items():
        for column in names_of(options[name]):
            say(column, f"--{'hash' if role == 'hash' else 'text' if role == 'text' else name}")
            roles[column] = role
    for column in names_of(options["drop"]):
        say(column, "--drop")
        roles[column] = "drop"
    for text in options["fills"]:
        column, value = _equals(text, "--fill", "age=40")
        fill[column] = _number(value)
    known = replace(domain, bounds=bounds or None, categories=categories or None, fill=fill or None)
    return known, roles


def _equals(text: str, option: str, example: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not sign or not column.strip() or not value.strip():
        raise ParameterError(f"{option} {text!r} must be written like {option} {example}.")
    return column.strip(), value.strip()


def _range(pair: str, text: str) -> tuple[float, float]:
    try:
        return range_of(pair)
    except ValueError:
        raise ParameterError(
            f"--bounds {text!r} must be written like --bounds age=0..120."
        ) from None


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def make_pipeline(
    model: Any, domain: Domain, roles: dict[str, str], names: Sequence[str], options: Options
) -> DPPipeline:
    """The pipeline for a table of these columns; those that need a decision are listed all at once."""
    from dpsparse.preprocessing import DPPipeline, DPTablePreparer

    others = {options["target"], options["person"]}
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
    rest = "auto" if options["prepare"] == "private" else None
    if open_ and rest is None:
        raise ParameterError(
            f"These columns need a decision: {shown(open_, names)}. Add for each {DECISIONS}."
        )
    table = DPTablePreparer.from_domain(domain, roles, rest=rest)
    ledger = model.ledger
    model.set_params(ledger=None, random_state=None)
    return DPPipeline(
        [("table", table), ("model", model)],
        epsilon=options["epsilon"],
        delta=options["delta"],
        adjacency=model.adjacency,
        ledger=ledger,
        random_state=options["random_state"],
    )


def shown(columns: Sequence[str], names: Sequence[str]) -> str:
    """Columns by name where they read like names, by number otherwise: a file without a header has cells there."""
    told = [
        name if name.replace("_", "a").replace(".", "a").replace(" ", "a").isidentifier()
        and any(c.isalpha() for c in name)
        else f"column {list(names).index(name) + 1}"
        for name in columns[:100]
    ]  # fmt: skip
    return ", ".join(told) + (", ..." if len(columns) > 100 else "")


def undecided(names: Sequence[str]) -> SchemaError:
    """A table that is not of numbers alone, and the columns, all of them: which ones hold other cells is not told."""
    return SchemaError(
        "The table holds cells that are no finite numbers: names, dates or missing values. In which columns is not "
        "told, as one row could decide it. Say for every column what it is: add "
        f"{DECISIONS}. The columns are: {shown(names, names)}. Nothing was spent."
    )
