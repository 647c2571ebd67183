"""Options shared by the commands, and how they become a domain, an estimator, a ledger."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsparse._json import parsed
from dpsparse.exceptions import ParameterError

if TYPE_CHECKING:
    from dpsparse.domain import Domain
    from dpsparse.domain_file import Facts

Options = dict[str, Any]
Command = Callable[..., Any]


def grouped(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several click options as one decorator, in the order of the help page."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def option(*names: str, about: str, **more: Any) -> Callable[[Command], Command]:
    """A click option; its kind follows from its default, which the help page shows, else it is a text."""
    return click.option(*names, help=about, show_default="default" in more, **more)


def flag(*names: str, about: str) -> Callable[[Command], Command]:
    return click.option(*names, is_flag=True, help=about)


def several(*names: str, metavar: str, about: str) -> Callable[[Command], Command]:
    """An option that may be given more than once."""
    return click.option(*names, multiple=True, metavar=metavar, help=about)


def output(
    about: str, *, required: bool = True, what: str = "file"
) -> Callable[[Command], Command]:
    """Where to write, and whether something may be replaced there."""
    path = click.Path(path_type=Path)
    return grouped(
        click.option("-o", "--output", required=required, type=path, help=about),
        flag("--overwrite", about=f"Replace an existing {what}."),
    )


class Range(click.ParamType):  # type: ignore[type-arg]
    """Two rising numbers in one word, LOW..HIGH, as in --bounds."""

    name = "LOW..HIGH"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, float]:
        if isinstance(value, tuple):
            return value
        try:
            return range_of(value)
        except ValueError:
            self.fail(f"{value!r} must be written like 0..10, without spaces.", param, ctx)


def range_of(text: str) -> tuple[float, float]:
    """The numbers of LOW..HIGH; ValueError where it is something else."""
    low, dots, high = text.partition("..")
    if not dots:
        raise ValueError
    return float(low), float(high)


FORMATS = ["svmlight", "csv", "tsv", "jsonl", "parquet", "arrow"]
NEIGHBOURS = click.Choice(["add-remove", "replace-one"])
model_argument = click.argument("model", type=click.Path(path_type=Path))
json_option = flag("--json", "as_json", about="One JSON object on stdout.")
dataset_option = option("--dataset", default="default", about="Account within the ledger.")
data_name_option = option(
    "--data-name", about="What the card calls the data set.  [default: the file's name]"
)
delta_option = option(
    "--delta",
    default=1e-6,
    about="Probability beside epsilon; well below one over the number of rows.",
)
adjacency_option = option(
    "--adjacency",
    type=NEIGHBOURS,
    about="Which data sets are neighbours.  [default: the ledger's, or add-remove]",
)
seed_option = option(
    "--random-state", type=int, about="Repeatable noise, for experiments: NOT private."
)

estimator_options = grouped(
    option(
        "--method",
        about="Which algorithm; see `dpsparse methods`.  [default: auto, which chooses from public facts; gradient "
        "where --n-iter, --radius or --param is given]",
    ),
    option(
        "--epsilon", default=1.0, about="Privacy loss of this fit; inf is the non-private model."
    ),
    delta_option,
    adjacency_option,
    option("--n-iter", type=int, about="Number of noisy steps; a privacy parameter."),
    option("--n-nonzero", type=int, about="How many weights to keep."),
    option("--radius", type=float, about="L1 bound on the weights."),
    several(
        "--param",
        "params",
        metavar="NAME=VALUE",
        about="A hyper-parameter of the method (see `dpsparse methods`); repeatable.",
    ),
    seed_option,
)

domain_options = grouped(
    option(
        "--domain",
        "domain_file",
        type=click.Path(dir_okay=False),
        about="File with public facts (YAML, JSON, TOML; see `dpsparse domain init`); options override it.",
    ),
    option("--classes", about="The labels that may occur, such as 0,1 or no,yes: a classifier."),
    option("--target-bound", type=float, about="Targets lie within +- this: a regressor."),
    option(
        "--target-range",
        type=Range(),
        metavar="LOW..HIGH",
        about="Targets lie between these, instead of --target-bound: less noise where zero is far off.",
    ),
    option(
        "--feature-bound",
        type=float,
        about="Entries are clipped to +- this, where they are not prepared.",
    ),
    option("--row-norm", type=float, about="Rows are scaled down to this L2 norm."),
    option(
        "--n-samples",
        type=int,
        about="A public number of rows (or a guess); sets step sizes, never noise.",
    ),
    option(
        "--person",
        metavar="COLUMN",
        about="Column with the person of every row: persons are protected, with all of their rows.",
    ),
    option(
        "--rows-per-unit",
        type=int,
        about="Use so many rows of a person at most, chosen at random.",
    ),
    several(
        "--scale",
        "scales",
        metavar="COLUMN=NUMBER",
        about="Divide a column by a public constant before clipping; repeatable.",
    ),
)

data_options = grouped(
    option("--target", about="Column to predict (CSV, Parquet)."),
    several(
        "--drop", metavar="COLUMNS", about="Columns that are not features, as a,b; repeatable."
    ),
    option(
        "--n-features",
        type=int,
        about="Public number of columns of a svmlight file; for a plan, of the data to come.",
    ),
    flag("--zero-based", about="The first feature of a svmlight file is 0."),
    option(
        "--format",
        "file_format",
        type=click.Choice(FORMATS),
        about="If the file's name does not say it.",
    ),
)

ledger_options = grouped(
    option(
        "--ledger",
        "ledger_path",
        about="Budget that pays: a file made by `dpsparse budget create`, or postgresql://...",
    ),
    dataset_option,
    option("--partition", about="Name of the disjoint part of the rows that is used."),
    flag(
        "--allow-unproven",
        about="Let the ledger record fits without a guarantee, as epsilon = infinity.",
    ),
)


# ---- the estimators by name ---------------------------------------------------------------------


def methods() -> dict[str, dict[str, Any]]:
    """Method name -> {"classifier": class, "regressor": class}, from what the library exports.

    The front estimators are called "auto" here and come first."""
    from dpsparse import estimators

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
    special = options["n_iter"] or options["radius"] or options["params"]
    options = {**options, "method": options["method"] or ("gradient" if special else "auto")}
    if options["method"] not in known:
        raise ParameterError(
            f"There is no method {options['method']!r}; there are: {', '.join(known)}."
        )
    if domain.classes is not None and domain.target_bound is not None:
        raise ParameterError(
            "State --classes (to classify) or --target-range (to regress), not both."
        )
    if domain.classes is None and domain.target_bound is None:
        raise ParameterError(
            "State the labels that may occur, --classes 0,1, or for numbers their range, --target-range 0..10."
        )
    task = "classifier" if domain.classes is not None else "regressor"
    if task not in known[options["method"]]:
        raise ParameterError(f"The method {options['method']!r} has no {task}.")
    kind = known[options["method"]][task]
    return kind(
        domain=domain,
        epsilon=options["epsilon"],
        delta=options["delta"],
        adjacency=adjacency_of(options, ledger) or "add-remove",
        ledger=ledger,
        random_state=options["random_state"],
        **_hyper_parameters(options, kind),
    )


# What `--param` does not set, and the option that does.
_OWN_OPTIONS = {
    "ledger": "--ledger",
    "epsilon": "--epsilon",
    "delta": "--delta",
    "adjacency": "--adjacency",
    "random_state": "--random-state",
    "domain": "--domain FILE, --classes, --target-range and the other public facts",
}


def _hyper_parameters(options: Options, kind: Any) -> dict[str, Any]:
    """What --n-iter, --n-nonzero, --radius and --param say of the method. Only its own parameters are allowed: an
    option that fixes the account or the price must not be undone by another one."""
    from dpsparse.estimators._base import hyper_parameters

    stated = [
        (f"--{name.replace('_', '-')}", name, options[name])
        for name in ("n_iter", "n_nonzero", "radius")
        if options[name] is not None
    ]
    pairs = [_pair(text, parse_value) for text in options["params"]]
    stated += [(f"--param {name}", name, value) for name, value in pairs]
    known, values = hyper_parameters(kind), {}
    for option_, name, value in stated:
        if name in _OWN_OPTIONS:
            raise ParameterError(
                f"{option_} is refused: --param sets hyper-parameters only. Use {_OWN_OPTIONS[name]}."
            )
        if name not in known:
            raise ParameterError(
                f"{option_}: the method {options['method']!r} has no such hyper-parameter; it has: {', '.join(known)}."
            )
        if name in values:
            raise ParameterError(f"{name} is stated twice; state it once.")
        values[name] = value
    return values


def parse_value(text: str) -> Any:
    """A number, true, false, null, inf or a JSON list; anything else is text."""
    try:
        return math.inf if text == "inf" else parsed(text)
    except ValueError:
        return text


def _pair(text: str, convert: Callable[[str], Any]) -> tuple[str, Any]:
    name, sign, value = text.rpartition("=") if convert is float else text.partition("=")
    try:
        if not sign or not name:
            raise ValueError
        return name.strip(), convert(value.strip())
    except ValueError:
        raise ParameterError(f"Write {text!r} as NAME=VALUE.") from None


# ---- public facts -------------------------------------------------------------------------------


def make_domain(options: Options) -> Facts:
    """The declared facts, from the file and the options; target and person of a file fill in missing options."""
    from dpsparse.domain_file import Facts, read
    from dpsparse.readers.tables import label_list

    facts = read(options["domain_file"]) if options["domain_file"] is not None else None
    names = [
        "target_bound",
        "target_range",
        "feature_bound",
        "row_norm",
        "n_samples",
        "rows_per_unit",
    ]
    stated: dict[str, Any] = {name: options[name] for name in names if options[name] is not None}
    if options["person"] is not None:
        stated["unit"] = "person"
    if options["classes"] is not None:
        stated["classes"] = label_list(options["classes"])
    if facts is None:
        from dpsparse.domain import Domain

        facts = Facts(Domain(**stated))
    else:
        if "target_bound" in stated or "target_range" in stated:
            stated = dict.fromkeys(("target_bound", "target_range")) | stated
        facts = replace(facts, domain=replace(facts.domain, **stated))
        for name in ("target", "person"):
            if options.get(name) is None and getattr(facts, name) is not None:
                options[name] = getattr(facts, name)
    scales = facts.scales | dict(_pair(text, float) for text in options["scales"])
    for name, scale in scales.items():
        # Beyond these the weights for the unscaled column may overflow, after they were paid for.
        if not 1e-100 <= abs(scale) <= 1e100:
            raise ParameterError(
                f"The scale of column {name!r} must be a number between 1e-100 and 1e100 "
                "(or minus that)."
            )
    return replace(facts, scales=scales)


def open_ledger(options: Options) -> Any:
    if options["ledger_path"] is None and options["partition"] is not None:
        raise ParameterError("--partition means something only together with --ledger.")
    terms = {key: options[key] for key in ("dataset", "partition", "allow_unproven")}
    return account(options["ledger_path"], **terms)


def account(path: str | None, **terms: Any) -> Any:
    """The account that pays or is shown, if one was named."""
    from dpsparse.privacy import Ledger

    return Ledger(path, **terms) if path is not None else None


def adjacency_of(options: Options, ledger: Any) -> str | None:
    """What was asked for, else what the ledger counts."""
    return options["adjacency"] or (ledger.terms.adjacency if ledger is not None else None)
