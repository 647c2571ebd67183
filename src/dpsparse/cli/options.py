"""Options shared by the commands, and how they become a domain, an estimator, a ledger."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsparse.exceptions import ParameterError, SchemaError

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp

    from dpsparse.domain import Domain
    from dpsparse.readers import Table

Options = dict[str, Any]
Command = Callable[..., Any]


def grouped(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several click options as one decorator, in the order of the help page."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


estimator_options = grouped(
    click.option(
        "--method",
        help="Which algorithm; see `dpsparse methods`.  [default: auto, which chooses from public facts; gradient "
        "where --n-iter, --radius or --param is given]",
    ),
    click.option(
        "--epsilon",
        type=float,
        default=1.0,
        show_default=True,
        help="Privacy loss of this fit; inf is the non-private model.",
    ),
    click.option("--delta", type=float, default=1e-6, show_default=True),
    click.option(
        "--adjacency",
        type=click.Choice(["add-remove", "replace-one"]),
        help="Which data sets are neighbours.  [default: the ledger's, or add-remove]",
    ),
    click.option("--n-iter", type=int, help="Number of noisy steps; a privacy parameter."),
    click.option("--n-nonzero", type=int, help="How many weights to keep."),
    click.option("--radius", type=float, help="L1 bound on the weights."),
    click.option(
        "--param",
        "params",
        multiple=True,
        metavar="NAME=VALUE",
        help="Any other parameter of the method; repeatable.",
    ),
    click.option(
        "--random-state", type=int, help="Repeatable noise, for experiments: NOT private."
    ),
)

domain_options = grouped(
    click.option(
        "--domain",
        "domain_file",
        type=click.Path(dir_okay=False),
        help="TOML file with the public facts below; options override it.",
    ),
    click.option(
        "--classes", help="The labels that may occur, such as 0,1 or no,yes: a classifier."
    ),
    click.option("--target-bound", type=float, help="Targets lie within +- this: a regressor."),
    click.option(
        "--target-range",
        type=float,
        nargs=2,
        metavar="LOWEST HIGHEST",
        help="Targets lie between these, instead of --target-bound: less noise where zero is far off.",
    ),
    click.option(
        "--feature-bound", type=float, help="Entries are clipped to +- this.  [default: 1]"
    ),
    click.option("--row-norm", type=float, help="Rows are scaled down to this L2 norm."),
    click.option(
        "--n-samples",
        type=int,
        help="A public number of rows (or a guess); sets step sizes, never noise.",
    ),
    click.option(
        "--person",
        metavar="COLUMN",
        help="Column with the person of every row: persons are protected, with all of their rows.",
    ),
    click.option(
        "--rows-per-unit",
        type=int,
        help="Use so many rows of a person at most, chosen at random.",
    ),
    click.option(
        "--scale",
        "scales",
        multiple=True,
        metavar="COLUMN=NUMBER",
        help="Divide a column by a public constant before clipping; repeatable.",
    ),
)

data_options = grouped(
    click.option("--target", help="Column to predict (CSV, Parquet)."),
    click.option(
        "--drop", multiple=True, metavar="COLUMN", help="Column that is not a feature; repeatable."
    ),
    click.option("--n-features", type=int, help="Public number of columns of a svmlight file."),
    click.option("--zero-based", is_flag=True, help="The first feature of a svmlight file is 0."),
    click.option(
        "--format",
        "file_format",
        type=click.Choice(["svmlight", "csv", "tsv", "parquet"]),
        help="If the file's name does not say it.",
    ),
)

ledger_options = grouped(
    click.option(
        "--ledger",
        "ledger_path",
        help="Budget that pays: a file made by `dpsparse budget create`, or postgresql://...",
    ),
    click.option(
        "--dataset", default="default", show_default=True, help="Account within the ledger."
    ),
    click.option("--partition", help="Name of the disjoint part of the rows that is used."),
    click.option(
        "--allow-unproven",
        is_flag=True,
        help="Let the ledger record fits without a guarantee, as epsilon = infinity.",
    ),
)

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")


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
            "State --classes (to classify) or --target-bound (to regress), not both."
        )
    if domain.classes is None and domain.target_bound is None:
        raise ParameterError(
            "State the labels that may occur, --classes 0,1, or for numbers their bound, --target-bound 10."
        )
    task = "classifier" if domain.classes is not None else "regressor"
    if task not in known[options["method"]]:
        raise ParameterError(f"The method {options['method']!r} has no {task}.")
    kind = known[options["method"]][task]
    values = {"epsilon": options["epsilon"], "delta": options["delta"], "ledger": ledger}
    adjacency = options["adjacency"] or (ledger.terms.adjacency if ledger is not None else None)
    optional = {"adjacency": adjacency} | {
        k: options[k] for k in ("n_iter", "n_nonzero", "radius", "random_state")
    }
    values |= {key: value for key, value in optional.items() if value is not None}
    values |= dict(_pair(text, parse_value) for text in options["params"])
    allowed = list(kind().get_params(deep=False))
    for key in values:
        if key not in allowed or key == "domain":
            raise ParameterError(
                f"The method {options['method']!r} has no parameter {key!r}; it has: "
                f"{', '.join(a for a in allowed if a not in ('domain', 'ledger'))}."
            )
    return kind(domain=domain, **values)


def parse_value(text: str) -> Any:
    """A number, true, false, null, inf or a JSON list; anything else is text."""
    try:
        return math.inf if text == "inf" else json.loads(text)
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


def make_domain(options: Options) -> tuple[Domain, dict[str, float]]:
    """The domain and the public scale of columns, from the TOML file and the options."""
    from dpsparse.domain import Domain
    from dpsparse.readers.tables import label_list

    facts: dict[str, Any] = {}
    scales: dict[str, float] = {}
    if options["domain_file"] is not None:
        facts, scales = _read_facts(Path(options["domain_file"]))
    if options["person"] is not None:
        facts["unit"] = "person"
    for name in (
        "target_bound",
        "target_range",
        "feature_bound",
        "row_norm",
        "n_samples",
        "rows_per_unit",
    ):
        if options[name] is not None:
            facts[name] = options[name]
    if options["classes"] is not None:
        facts["classes"] = label_list(options["classes"])
    scales |= dict(_pair(text, float) for text in options["scales"])
    for name, scale in scales.items():
        # Beyond these the weights for the unscaled column may overflow, after they were paid for.
        if not 1e-100 <= abs(scale) <= 1e100:
            raise ParameterError(
                f"The scale of column {name!r} must be a number between 1e-100 and 1e100 "
                "(or minus that)."
            )
    return Domain(**facts), scales


def _read_facts(path: Path) -> tuple[dict[str, Any], dict[str, float]]:
    from dpsparse.domain import Domain

    try:
        facts = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise ParameterError(f"{path} is not a TOML file.") from None
    scales = facts.pop("scale", {})
    known = [field.name for field in fields(Domain)]
    unknown = [key for key in facts if key not in known]
    if unknown:
        raise ParameterError(
            f"{path} states {unknown[0]!r}; known facts are: {', '.join(known)}, and a table [scale]."
        )
    numbers = isinstance(scales, dict) and all(isinstance(v, (int, float)) for v in scales.values())
    if not numbers:
        raise ParameterError(f"In {path}, [scale] must list columns and numbers.")
    return facts, {name: float(value) for name, value in scales.items()}


def column_scales(table: Any, scales: dict[str, float]) -> np.ndarray | None:
    """One factor per column, or None where nothing is scaled."""
    if not scales:
        return None
    if table.feature_names is None:
        raise ParameterError("Only named columns (CSV, Parquet) can be scaled.")
    unknown = [name for name in scales if name not in table.feature_names]
    if unknown:
        raise ParameterError(f"There is no feature column {unknown[0]!r} to scale.")
    import numpy as np

    return np.array([1.0 / scales.get(name, 1.0) for name in table.feature_names])


def scaled(X: sp.csr_array, factors: np.ndarray | None) -> sp.csr_array:
    if factors is None:
        return X
    out = X.copy()
    out.data *= factors[out.indices]
    return out


# ---- data and money -----------------------------------------------------------------------------


def read_training_data(path: str, options: Options) -> Table:
    from dpsparse.readers import read_table

    table = read_table(
        path,
        target=options["target"],
        person=options["person"],
        drop=options["drop"],
        n_features=options["n_features"],
        zero_based=options["zero_based"],
        format=options["file_format"],
    )
    if table.y is None:
        raise SchemaError("A table needs --target, the name of the column to predict.")
    return table


def make_source(paths: tuple[str, ...], options: Options) -> Any:
    """Rows of several files, or of more than memory holds: read, clipped and stored by `fit`, then streamed."""
    from dpsparse.readers.tables import format_of
    from dpsparse.rows import Rows

    kinds = {options["file_format"] or format_of(Path(path)) for path in paths}
    if len(kinds) > 1:
        raise ParameterError("All files must have the same format; convert some of them.")
    if options["person"] is not None:
        raise ParameterError("--person needs one file that memory holds; leave out --memory.")
    kind = kinds.pop()
    common: Any = {"memory": options["memory"] or "2GB"}
    if kind == "svmlight":
        if options["n_features"] is None:
            raise ParameterError(
                "Several svmlight files, or --memory, need the public width: --n-features."
            )
        return Rows.from_svmlight(
            paths, n_features=options["n_features"], zero_based=options["zero_based"], **common
        )
    if options["target"] is None:
        raise SchemaError("A table needs --target, the name of the column to predict.")
    if kind == "parquet":
        return Rows.from_parquet(paths, target=options["target"], drop=options["drop"], **common)
    separator = "\t" if kind == "tsv" else ","
    return Rows.from_csv(
        paths, target=options["target"], drop=options["drop"], separator=separator, **common
    )


def open_ledger(options: Options) -> Any:
    from dpsparse.privacy import Ledger

    if options["ledger_path"] is None:
        if options["partition"] is not None:
            raise ParameterError("--partition means something only together with --ledger.")
        return None
    return Ledger(
        options["ledger_path"],
        dataset=options["dataset"],
        partition=options["partition"],
        allow_unproven=options["allow_unproven"],
    )
