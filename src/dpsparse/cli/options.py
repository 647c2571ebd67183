"""Options shared by the commands, and how they become a domain, an estimator, a ledger."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsparse._checks import did_you_mean
from dpsparse.exceptions import ParameterError, SchemaError

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp

    from dpsparse.domain import Domain
    from dpsparse.domain_file import Facts
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
    click.option(
        "--delta",
        type=float,
        default=1e-6,
        show_default=True,
        help="Probability beside epsilon; well below one over the number of rows.",
    ),
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
        help="File with public facts (YAML, JSON, TOML; see `dpsparse domain init`); options override it.",
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
        "--feature-bound",
        type=float,
        help="Entries are clipped to +- this, where they are not prepared.",
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
        "--drop",
        multiple=True,
        metavar="COLUMNS",
        help="Columns that are not features, as a,b; repeatable.",
    ),
    click.option("--n-features", type=int, help="Public number of columns of a svmlight file."),
    click.option("--zero-based", is_flag=True, help="The first feature of a svmlight file is 0."),
    click.option(
        "--format",
        "file_format",
        type=click.Choice(["svmlight", "csv", "tsv", "jsonl", "parquet", "arrow"]),
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
            "State --classes (to classify) or --target-range (to regress), not both."
        )
    if domain.classes is None and domain.target_bound is None:
        raise ParameterError(
            "State the labels that may occur, --classes 0,1, or for numbers their range, --target-range 0 10."
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


def make_domain(options: Options) -> Facts:
    """The declared facts, from the file and the options; target and person of a file fill in missing options."""
    from dpsparse.domain_file import Facts, read
    from dpsparse.readers.tables import label_list

    facts = read(options["domain_file"]) if options["domain_file"] is not None else None
    stated: dict[str, Any] = {}
    if options["person"] is not None:
        stated["unit"] = "person"
    for name in (
        "target_bound",
        "target_range",
        "feature_bound",
        "row_norm",
        "n_samples",
        "rows_per_unit",
    ):
        if options[name] is not None:
            stated[name] = options[name]
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


def column_scales(table: Any, scales: dict[str, float]) -> np.ndarray | None:
    """One factor per column, or None where nothing is scaled."""
    if not scales:
        return None
    if table.feature_names is None:
        raise ParameterError("Only named columns (CSV, Parquet) can be scaled.")
    unknown = [name for name in scales if name not in table.feature_names]
    if unknown:
        near = did_you_mean(unknown[0], table.feature_names, table.feature_names)
        raise ParameterError(f"There is no feature column {unknown[0]!r} to scale.{near}")
    import numpy as np

    return np.array([1.0 / scales.get(name, 1.0) for name in table.feature_names])


def scaled(X: sp.csr_array, factors: np.ndarray | None) -> sp.csr_array:
    if factors is None:
        return X
    out = X.copy()
    out.data *= factors[out.indices]
    return out


def unscale(model: Any, factors: np.ndarray, scales: dict[str, float]) -> None:
    """Weights and their noise for the columns as they are in the file."""
    import numpy as np

    model.coef_ = model.coef_ * factors
    if hasattr(model, "coef_noise_"):
        model.coef_noise_ = model.coef_noise_ * np.abs(factors)
    model.scales_ = scales


def ask_for_scales(model: Any, names: Any) -> None:
    """Refuse to clip named columns to a bound that nobody stated, in the words of the command line."""
    from dpsparse.cli.prepare import shown
    from dpsparse.exceptions import DomainError

    try:
        model._check_parameters()
        model._check_scales(names)
    except DomainError:
        if names is None:
            raise
        raise ParameterError(
            f"The method needs the public scale of these columns: {shown(names, names)}. State --bounds "
            "COLUMN=LOW..HIGH for each, --feature-bound 1 if all entries lie in [-1, 1], or have scales learnt: "
            "--prepare private. Nothing was spent."
        ) from None


# ---- data and money -----------------------------------------------------------------------------


def read_training_data(path: str, options: Options) -> Table:
    from dpsparse.cli.prepare import names_of, undecided
    from dpsparse.readers import read_table
    from dpsparse.readers.tables import NotNumericTable

    try:
        table = read_table(
            path,
            target=options["target"],
            person=options["person"],
            drop=names_of(options["drop"]),
            n_features=options["n_features"],
            zero_based=options["zero_based"],
            format=options["file_format"],
        )
    except NotNumericTable as error:
        raise undecided(path, options, error) from None
    if table.y is None:
        raise SchemaError("A table needs --target, the name of the column to predict.")
    return table


def rows_for(fitted: Any, data: str, options: Options) -> Any:
    """The rows of a file as a fitted model takes them: by name, raw where the model prepares them itself."""
    from dpsparse.readers import read_columns, read_table

    inner = getattr(fitted, "model_", None)
    raw = getattr(fitted, "feature_names_in_", None) if inner is not None else None
    if raw is not None:
        return read_columns(data, columns=list(raw), format=options["file_format"])
    from dpsparse.cli.prepare import names_of

    names = None if inner is not None else fitted.feature_names_
    unnamed = [options["target"]] if options["target"] and names is None else []
    table = read_table(
        data,
        features=names,
        drop=() if names is not None else [*names_of(options["drop"]), *unnamed],
        n_features=fitted.n_features_in_,
        zero_based=options["zero_based"],
        format=options["file_format"],
    )
    if table.X.shape[1] != fitted.n_features_in_:
        raise SchemaError(
            f"The data has {table.X.shape[1]} feature columns and the model {fitted.n_features_in_}."
        )
    return table.X


def make_source(paths: tuple[str, ...], options: Options) -> Any:
    """Rows of several files, or of more than memory holds: read, clipped and stored by `fit`, then streamed."""
    from dpsparse.cli.prepare import names_of
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
        return Rows.from_parquet(
            paths, target=options["target"], drop=names_of(options["drop"]), **common
        )
    separator = "\t" if kind == "tsv" else ","
    return Rows.from_csv(
        paths,
        target=options["target"],
        drop=names_of(options["drop"]),
        separator=separator,
        **common,
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
