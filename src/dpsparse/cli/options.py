"""Everything that can be typed after a command, as one record, and the domain, estimator and account it describes."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsparse._checks import ADJACENCIES
from dpsparse._json import parsed
from dpsparse.exceptions import ParameterError, SchemaError

if TYPE_CHECKING:
    from dpsparse.domain import Domain
    from dpsparse.domain.file import Facts
    from dpsparse.io.streams import Layout

Command = Callable[..., Any]


def range_of(text: str, option: str | None = None) -> tuple[float, float]:
    """The numbers of LOW..HIGH; of no `option` where click knows whose value it is."""
    try:
        low, high = text.split("..")
        return float(low), float(high)
    except ValueError:
        said = f"{text!r} must be written like 0..10, without spaces."
        raise click.BadParameter(said, param_hint=option) from None


# ---- the record -----------------------------------------------------------------------------------


def _in(group: str) -> Callable[..., Any]:
    """A maker of fields of `Options`: option names, help text, and what click needs to know."""

    def make(*names: str, about: str, default: Any = None, **more: Any) -> Any:
        facts = {"group": group, "names": names, "about": about, "click": more}
        return field(default=default, metadata=facts)

    return make


_fit, _fact, _data, _column = map(_in, ("fit", "facts", "data", "columns"))
_pay, _memory, _json = map(_in, ("ledger", "memory", "json"))
_file = click.Path(dir_okay=False)


@dataclass(frozen=True)
class Options:
    """What was typed. A command takes some groups of it; what it does not take has its default."""

    # fmt: off
    # How a model is fitted.
    method: str | None = _fit("--method",
        about="Which algorithm; see `dpsparse methods`.  [default: auto, which chooses from public facts; gradient "
        "where --param is given]")
    epsilon: float = _fit("--epsilon", default=1.0, about="Privacy loss of this fit; inf is the non-private model.")
    delta: float = _fit("--delta", default=1e-06,
        about="Probability that the guarantee fails; well below one over the number of rows.")
    adjacency: str | None = _fit("--adjacency", type=click.Choice(ADJACENCIES),
        about="Which tables are neighbours.  [default: the ledger's, or add-remove]")
    n_nonzero: int | None = _fit("--n-nonzero", type=int, about="How many weights to keep.")
    params: tuple[str, ...] = _fit("--param", default=(), multiple=True, metavar="NAME=VALUE",
        about="A hyper-parameter of the method, such as n_iter=50 (see `dpsparse methods`); repeatable.")
    random_state: int | None = _fit("--random-state", type=int,
        about="Seed of the noise, for experiments: NOT private.")

    # Public facts.
    domain_file: str | None = _fact("--domain", type=_file,
        about="File with public facts (YAML, JSON, TOML; `dpsparse check -o` writes one); options override it.")
    classes: str | None = _fact("--classes",
        about="The labels that may occur, such as 0,1 or no,yes: a classifier. "
        "Of two labels, positive weights speak for the last.")
    target_range: tuple[float, float] | None = _fact("--target-range", type=range_of, metavar="LOW..HIGH",
        about="Fit a regressor; targets lie between these.")
    feature_bound: float | None = _fact("--feature-bound", type=float,
        about="Clip entries to this, in columns that are not prepared.")
    row_norm: float | None = _fact("--row-norm", type=float, about="Scale rows down to this L2 norm.")
    n_samples: int | None = _fact("--n-samples", type=int,
        about="The number of rows (with --person of persons), if public, or a guess; it has no influence on privacy.")
    person: str | None = _fact("--person", metavar="COLUMN",
        about="Column that identifies the person of a row; people are protected with all of their rows.")
    rows_per_unit: int | None = _fact("--rows-per-unit", type=int,
        about="Use at most this number of rows of a person, chosen at random.")

    # How the file is written.
    target: str | None = _data("--target", about="Column to predict.")
    drop: tuple[str, ...] = _data("--drop", default=(), multiple=True, metavar="COLUMNS",
        about="Columns that are not features, as a,b; repeatable.")
    n_features: int | None = _data("--n-features", type=int,
        about="Number of columns, of a svmlight file or for a price without data.")
    zero_based: bool = _data("--zero-based", default=False, is_flag=True,
        about="The first feature of a svmlight file is 0.")
    file_format: str | None = _data("--format",
        about="Format of the file, if its name does not show it: svmlight, csv, tsv, jsonl, json, xlsx or parquet.")
    sep: str | None = _data("--sep", metavar="CHARACTER",
        about="Separator of cells: ';' or '|' or tab.  [default: a comma, in .tsv files a tab]")
    decimal: str | None = _data("--decimal", type=click.Choice([".", ","]),
        about="Decimal separator; with a comma 31.015,50 is 31015.5.  [default: a point]")
    encoding: str | None = _data("--encoding",
        about="Encoding of a text file, such as latin-1, cp1252 or utf-16.  [default: utf-8]")
    drop_missing_target: bool = _data("--drop-missing-target", default=False, is_flag=True,
        about="Leave out rows without a target, instead of refusing the table. Their number is not shown.")

    # What the columns of a raw table are.
    prepare: str | None = _column("--prepare", type=click.Choice(["private", "declared"]),
        about="private: kinds, scales, categories and missing values of columns are learnt within epsilon; "
        "declared: only what the options below and --domain state is used.")
    bounds: tuple[str, ...] = _column("--bounds", default=(), multiple=True, metavar="COLUMN=LOW..HIGH",
        about="Public bounds of a column of numbers; repeatable.")
    categories: tuple[str, ...] = _column("--categories", default=(), multiple=True, metavar="COLUMN[=A,B]",
        about="Public categories of a column; without a list they are learnt privately. Repeatable.")
    numbers: tuple[str, ...] = _column("--numbers", default=(), multiple=True, metavar="COLUMNS",
        about="Columns of numbers whose scales are learnt privately.")
    dates: tuple[str, ...] = _column("--dates", default=(), multiple=True, metavar="COLUMNS",
        about="Columns of dates, with times or without (2020-01-31, 31.1.2020 14:30, day first), learnt like numbers; "
        "years and time stamps are numbers.")
    hashed: tuple[str, ...] = _column("--hash", default=(), multiple=True, metavar="COLUMNS[=WIDTH]",
        about="Columns of any values, hashed into WIDTH columns; costs nothing.  [default: 64]")
    texts: tuple[str, ...] = _column("--text", default=(), multiple=True, metavar="COLUMNS",
        about="Columns of text, with hashed words; costs nothing.")
    words: tuple[str, ...] = _column("--words", default=(), multiple=True, metavar="COLUMNS",
        about="Columns of text, with a vocabulary that is learnt privately.")
    fills: tuple[str, ...] = _column("--fill", default=(), multiple=True, metavar="COLUMN=VALUE",
        about="Public constant for the missing values of a column; repeatable.")
    missing_values: tuple[str, ...] = _column("--missing-values", default=(), multiple=True, metavar="WORDS",
        about="Words and numbers that stand for a missing value, as none,-9, besides an empty cell, NA, NaN and null; "
        "repeatable.")

    # Who pays.
    ledger_path: str | None = _pay("--ledger",
        about="Account that pays: a file made by `dpsparse budget create`, or postgresql://...")
    dataset: str = _pay("--dataset", default="default", about="Account within the ledger.")
    partition: str | None = _pay("--partition", about="Name of the part of the rows that is used; parts share no row.")

    # What comes out.
    output: Path | None = None  # the help text of these two is that of the command
    overwrite: bool = False
    memory: str | None = _memory("--memory", metavar="SIZE",
        about="Stream the rows within this memory, such as 2GB; several files are always streamed.")
    as_json: bool = _json("--json", default=False, is_flag=True, about="One JSON object on stdout.")
    # fmt: on

    @property
    def layout(self) -> Layout:
        """How the file is written."""
        from dpsparse.io.streams import Layout

        return Layout(**self.reading)

    @property
    def reading(self) -> dict[str, Any]:
        """The same as arguments of `read_table` and `read_columns`."""
        return {"format": self.file_format, **self.written}

    @property
    def written(self) -> dict[str, str]:
        """How a text file is written, as far as it was stated."""
        stated = {name: getattr(self, name) for name in ("sep", "decimal", "encoding")}
        return {name: value for name, value in stated.items() if value is not None}

    def as_fitted(self, model: Any) -> Options:
        """Where nothing is stated that says otherwise, the file is written like the one that the model was fitted to:
        with --sep ';' alone, as in the fit, decimal commas would be read as missing numbers."""
        about = getattr(model, "about_", {})
        known = {name: about[name] for name in ("sep", "decimal", "encoding") if name in about}
        same = all(known.get(name) == value for name, value in self.written.items())
        return replace(self, **known) if same else self

    @property
    def dropped(self) -> list[str]:
        return names_of(self.drop)

    @property
    def needed_target(self) -> str:
        if self.target is None:
            raise SchemaError("A table needs --target, the name of the column to predict.")
        return self.target

    def inputs(self, *more: Any) -> tuple[Any, ...]:
        """Files that an output must not replace."""
        return (*more, self.domain_file, self.ledger_path)


def takes(*groups: str) -> Callable[[Command], Command]:
    """The command gets these groups of options as one record, `options`, with what other decorators of it add.

    A group is one of `Options`, or the name of a single option.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(**typed: Any) -> Any:
            stated = {part.name: typed.pop(part.name) for part in fields(Options) if part.name in typed}  # fmt: skip
            return command(options=Options(**stated), **typed)

        made: Command = call
        for part in reversed(fields(Options)):
            facts = part.metadata
            if facts and (facts["group"] in groups or part.name in groups):
                more = dict(facts["click"])
                if part.default not in (None, ()):
                    more["default"] = part.default
                made = option(*facts["names"], part.name, about=facts["about"], **more)(made)
        return made

    return decorate


def option(*names: str, about: str, **more: Any) -> Callable[[Command], Command]:
    """One further click option; its kind follows from its default, which the help page shows, else it is a text."""
    return click.option(
        *names, help=about, show_default=more.get("default", False) is not False, **more
    )


def flag(*names: str, about: str) -> Callable[[Command], Command]:
    return click.option(*names, is_flag=True, help=about)


def output(
    about: str, *, required: bool = True, what: str = "file"
) -> Callable[[Command], Command]:
    """Where to write, and whether something may be replaced there."""
    path = click.option(
        "-o", "--output", required=required, type=click.Path(path_type=Path), help=about
    )
    overwrite = flag("--overwrite", about=f"Replace an existing {what}.")
    return lambda command: path(overwrite(command))


model_argument = click.argument("model", type=click.Path(path_type=Path))
json_option = flag("--json", "as_json", about="One JSON object on stdout.")


# ---- texts of options -----------------------------------------------------------------------------


def names_of(texts: Sequence[str]) -> list[str]:
    """Names from options that may hold several, separated by commas."""
    cells = chain.from_iterable(csv.reader(texts, skipinitialspace=True))
    return [cell.strip() for cell in cells if cell.strip()]


def pair_of(text: str, option: str, example: str) -> tuple[str, str]:
    """COLUMN=VALUE."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise ParameterError(f"{option} {text!r} must be written like {option} {example}.")
    return name.strip(), value.strip()


def parse_value(text: str) -> Any:
    """A number, true, false, null, inf or a JSON list; anything else is text."""
    try:
        return math.inf if text == "inf" else parsed(text)
    except ValueError:
        return text


# ---- the estimators by name -----------------------------------------------------------------------


def methods() -> dict[str, dict[str, Any]]:
    """Method name -> {"classifier": class, "regressor": class}, from what the library exports.

    The front estimators are called "auto" here and come first."""
    from dpsparse import methods as estimators

    found: dict[str, dict[str, Any]] = {}
    for name in estimators.__all__:
        match = re.fullmatch(r"DP(\w+)(Classifier|Regressor)", name)
        if match:
            method = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", match[1]).lower()
            found.setdefault(method, {})[match[2].lower()] = getattr(estimators, name)
    return {"auto": found.pop("sparse"), **found}


def make_estimator(options: Options, domain: Domain, ledger: Any) -> Any:
    """The estimator that the options describe; unknown parameters are named with what there is."""
    known = methods()
    method = options.method or ("gradient" if options.params else "auto")
    if method not in known:
        raise ParameterError(f"There is no method {method!r}; there are: {', '.join(known)}.")
    if domain.classes is not None and domain.target_bound is not None:
        raise ParameterError(
            "State --classes (to classify) or --target-range (to regress), not both."
        )
    if domain.classes is None and domain.target_bound is None:
        raise ParameterError(
            "State the labels that may occur, --classes 0,1, or for numbers their range, --target-range 0..10."
        )
    task = "classifier" if domain.classes is not None else "regressor"
    if task not in known[method]:
        raise ParameterError(f"The method {method!r} has no {task}.")
    kind = known[method][task]
    return kind(
        domain=domain,
        epsilon=options.epsilon,
        delta=options.delta,
        adjacency=adjacency_of(options, ledger) or "add-remove",
        ledger=ledger,
        random_state=options.random_state,
        **_hyper_parameters(options, method, kind),
    )


def _hyper_parameters(options: Options, method: str, kind: Any) -> dict[str, Any]:
    """What --n-nonzero and --param say of the method. Only its own parameters are allowed: an option that fixes the
    account or the price must not be undone by another one."""
    from dpsparse.methods.base import hyper_parameters

    known = hyper_parameters(kind)
    values: dict[str, Any] = {}
    if options.n_nonzero is not None:
        values["n_nonzero"] = options.n_nonzero
    for text in options.params:
        name, value = pair_of(text, "--param", "NAME=VALUE")
        if name in values:
            raise ParameterError(f"{name} is stated twice; state it once.")
        values[name] = parse_value(value)
    for name in values:
        if name not in known:
            raise ParameterError(
                f"--param {name}: the method {method!r} has no such hyper-parameter; it has: {', '.join(known)}. "
                "Terms, account, seed and public facts have options of their own."
            )
    return values


# ---- public facts and accounts --------------------------------------------------------------------


def read_facts(options: Options) -> tuple[Options, Facts]:
    """The declared facts, from the file and the options, and the options with target and person of the file."""
    from dpsparse.domain import Domain
    from dpsparse.domain.file import Facts, read
    from dpsparse.io.tables import label_list

    names = ("target_range", "feature_bound", "row_norm", "n_samples", "rows_per_unit")
    stated: dict[str, Any] = {
        name: getattr(options, name) for name in names if getattr(options, name) is not None
    }
    if options.person is not None:
        stated["unit"] = "person"
    if options.classes is not None:
        stated["classes"] = label_list(options.classes)
    if options.domain_file is None:
        facts = Facts(Domain(**stated))
    else:
        facts = read(options.domain_file)
        if "target_range" in stated:
            stated["target_bound"] = None
        facts = replace(facts, domain=replace(facts.domain, **stated))
        options = replace(
            options,
            target=options.target or facts.target,
            person=options.person or facts.person,
        )
    if options.person is not None and options.person == options.target:
        raise ParameterError(
            "--target and --person name the same column; a target names no person."
        )
    return options, facts


def open_ledger(options: Options) -> Any:
    if options.ledger_path is None and options.partition is not None:
        raise ParameterError("--partition means something only together with --ledger.")
    return account(
        options.ledger_path,
        dataset=options.dataset,
        partition=options.partition,
    )


def account(path: str | None, **terms: Any) -> Any:
    """The account that pays or is shown, if one was named."""
    from dpsparse.ledger import Ledger

    return Ledger(path, **terms) if path is not None else None


def adjacency_of(options: Options, ledger: Any) -> str | None:
    """That of the command line, else that of the ledger."""
    return options.adjacency or (ledger.terms.adjacency if ledger is not None else None)


def check_dropping(options: Options, adjacency: str | None) -> None:
    """Refuse to leave out rows where the number of rows is public: a target more or less would change it."""
    if options.drop_missing_target and adjacency == "replace-one":
        raise ParameterError(
            "--drop-missing-target needs --adjacency add-remove: under replace-one the number of rows is public, and "
            "a row that loses its target would change it."
        )
