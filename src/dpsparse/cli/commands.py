"""The commands. Heavy imports wait until a command runs, so that --help answers at once."""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import math
from pathlib import Path
from typing import Any

import click

import dpsparse
from dpsparse._files import check_output, write_whole
from dpsparse.audit.command import audit
from dpsparse.cli import options as opt
from dpsparse.cli import prepare as preparation
from dpsparse.cli.budget import budget, budget_line
from dpsparse.cli.domain import domain as domain_command
from dpsparse.cli.evaluate import evaluate
from dpsparse.cli.output import emit, say, stage
from dpsparse.cli.papers import bill, papers, registry
from dpsparse.cli.prepare import prepare_options
from dpsparse.cli.proof import proof
from dpsparse.cli.reproduce import reproduce
from dpsparse.cli.tune import tune
from dpsparse.cli.warm_up import warm_up
from dpsparse.exceptions import LedgerError, ModelFileError, ParameterError
from dpsparse.readers import column_names

EXIT_HELP = (
    "Exit codes: 0 done; 1 unexpected error; 2 wrong options or missing public facts; 3 data not "
    "readable; 4 budget refused, nothing spent; 5 ledger unusable or edited; 6 model or output "
    "file; 7 refuted by an audit."
)


@click.group(epilog=EXIT_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(dpsparse.__version__, prog_name="dpsparse")
def program() -> None:
    """Differentially private sparse linear models, from files."""


program.add_command(budget)
program.add_command(domain_command)
program.add_command(reproduce)
program.add_command(audit)
program.add_command(proof)
program.add_command(registry)
program.add_command(papers)
program.add_command(bill)
program.add_command(evaluate)
program.add_command(tune)
program.add_command(warm_up)


@program.command()
@click.argument("data", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="Model file to write (.json; .npz above 1e5 weights).",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing model file.")
@opt.estimator_options
@opt.domain_options
@opt.data_options
@prepare_options
@click.option("--data-name", help="What the card calls the data set.  [default: the file's name]")
@opt.ledger_options
@click.option(
    "--reveal-training-score",
    is_flag=True,
    help="Also print the exact score on the private training rows. It is not covered by the guarantee: "
    "whoever sees it learns more than epsilon allows, and a ledger counts it as epsilon = infinity.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    help="Stream rows under this cap, such as 2GB, instead of holding them all; several files are always streamed.",
)
@opt.json_option
def fit(
    data: tuple[str, ...],
    output: Path,
    overwrite: bool,
    reveal_training_score: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a private model on DATA: CSV, TSV, JSON lines, Parquet, Arrow, svmlight; text also .gz, .bz2, .xz, .zst."""
    inputs = (*data, options["domain_file"], options["ledger_path"])
    check_output(output, overwrite, inputs)
    check_output(output.with_suffix(".npz"), True, inputs)  # where a large model goes
    facts = opt.make_domain(options)
    ledger = opt.open_ledger(options)
    streamed = len(data) > 1 or options["memory"] is not None
    if streamed and reveal_training_score:
        raise ParameterError(
            "--reveal-training-score needs one file that memory holds; leave it out."
        )
    raw = preparation.asked_for(options, facts.domain, facts.roles)
    if raw and facts.scales:
        raise click.UsageError(
            "--scale is for tables that are not prepared; state --bounds instead."
        )
    if raw and streamed:
        raise ParameterError("Preparation needs one file that memory holds; leave out --memory.")
    model: Any
    X: Any
    y: Any = None
    persons = feature_names = factors = None
    if raw:
        domain, roles = preparation.declared(options, facts.domain, facts.roles)
        model = opt.make_estimator(options, domain, ledger)
        with stage(f"reading {Path(data[0]).name}"):
            names = column_names(data[0], options["file_format"])
            model = preparation.make_pipeline(model, domain, roles, names, options)
            X, y, persons = preparation.training_columns(data[0], options)
    else:
        model = opt.make_estimator(options, facts.domain, ledger)
        if options["n_features"] is not None:
            model.plan(options["n_features"])  # refuse bad parameters before a long read
        table: Any
        if streamed:
            X = table = opt.make_source(data, options)
            factors = table.factors = opt.column_scales(table, facts.scales)
        else:
            with stage(f"reading {Path(data[0]).name}"):
                table = opt.read_training_data(data[0], options)
                factors = opt.column_scales(table, facts.scales)
                X, y, persons = opt.scaled(table.X, factors), table.y, table.persons
        feature_names = table.feature_names
        if factors is None:
            opt.ask_for_scales(model, feature_names)
    score_plan = _score_plan(model) if reveal_training_score and ledger is not None else None
    if score_plan is not None and not ledger.would_allow(score_plan):
        ledger.reserve(score_plan)  # raises, and says why
    with stage("fitting"):
        if streamed:
            model.fit(X)
        else:
            model.fit(X, y, groups=persons)
    if factors is not None:
        opt.unscale(model, factors, facts.scales)
    _note_names(model, options, data[0])
    path = _save_paid(model, output, feature_names, overwrite)
    record: dict[str, Any] = {"model": path, **_facts(model)}
    if score_plan is not None:
        ledger.reserve(score_plan)  # not before the fit, which may refuse the data
    if reveal_training_score:
        if factors is not None:
            X = table.X  # weights are for the columns as they are in the file
        record["training_score"] = model.score(X, y)
    text = f"{path}: {_summary(model)}\n{model.privacy_.headline}"
    if reveal_training_score:
        text += f"\nscore on the private training rows, NOT covered: {record['training_score']:.4f}"
    if ledger is not None:
        try:
            spent, remaining, head = ledger.spent(), ledger.remaining(), ledger.head
            record["budget"] = {"spent": spent, "remaining": remaining, "head": head}
            text += f"\n{budget_line(ledger)}"
        except LedgerError as error:
            raise LedgerError(f"{error} The fit is paid and its model is in {path}.") from None
    emit(record, text, as_json)


@program.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="CSV file to write.  [default: stdout]"
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--proba", is_flag=True, help="Also the probability of each class.")
@opt.data_options
def predict(
    model: Path, data: str, output: Path | None, overwrite: bool, proba: bool, **options: Any
) -> None:
    """Predictions of MODEL for the rows of DATA, as CSV."""
    from dpsparse.models import load

    if output is not None:
        check_output(output, overwrite, (model, data))
    fitted: Any = load(model)
    if proba and not hasattr(fitted, "classes_"):
        raise click.UsageError("--proba is for classifiers; this model predicts numbers.")
    X = opt.rows_for(fitted, data, options)
    buffer = io.StringIO()
    rows = csv.writer(buffer, lineterminator="\n")
    labels = fitted.predict(X).tolist()
    if proba:
        rows.writerow(["prediction", *(f"p({c})" for c in fitted.classes_)])
        chances = fitted.predict_proba(X).tolist()
        rows.writerows([label, *row] for label, row in zip(labels, chances, strict=True))
    else:
        rows.writerow(["prediction"])
        rows.writerows([label] for label in labels)
    if output is None:
        say(buffer.getvalue(), end="")
    else:
        write_whole(output, buffer.getvalue().encode(), overwrite)


@program.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--top", type=click.IntRange(0), default=10, show_default=True, help="How many weights to show."
)
@opt.json_option
def inspect(model: Path, top: int, as_json: bool) -> None:
    """What MODEL is, what it may promise, and its largest weights."""
    from dpsparse.models import load

    fitted: Any = load(model)
    weights = _top_weights(getattr(fitted, "model_", fitted), top)
    lines = [
        _summary(fitted),
        str(fitted.privacy_),
        *(f"  {v:+12.6g}  {name}{'  (maybe noise)' if u else ''}" for name, v, u in weights),
    ]
    record = _facts(fitted) | {
        "scales": getattr(fitted, "scales_", None),
        "parameters": {
            k: v for k, v in fitted.get_params(deep=False).items() if k not in ("ledger", "steps")
        },
        "plan": dict(fitted.plan_.parameters),
        "top_weights": [
            {"feature": name, "weight": value, "maybe_noise": unsure}
            for name, value, unsure in weights
        ],
    }
    emit(record, "\n".join(lines), as_json)


@program.command()
@opt.estimator_options
@opt.domain_options
@click.option(
    "--n-features", type=int, required=True, help="Number of columns of the data to come."
)
@opt.ledger_options
@opt.json_option
def plan(n_features: int, as_json: bool, **options: Any) -> None:
    """The price of a fit before paying it; reads no data and spends nothing."""
    facts = opt.make_domain(options)
    ledger = opt.open_ledger(options)
    price = opt.make_estimator(options, facts.domain, ledger).plan(n_features)
    record = {"guarantee": price.guarantee.to_dict(), "parameters": dict(price.parameters)}
    text = str(price)
    if ledger is not None:
        allowed = ledger.would_allow(price)
        record["allowed"] = allowed
        text += f"\nthe ledger would {'allow' if allowed else 'REFUSE'} it; {budget_line(ledger)}"
    emit(record, text, as_json)


@program.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="HTML file to write."
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--ledger", "ledger_path", help="Add the budget history of this ledger.")
@click.option("--dataset", default="default", show_default=True, help="Account within the ledger.")
@click.option(
    "--evaluation",
    "evaluation_file",
    type=click.Path(path_type=Path),
    help="Add the report that `evaluate -o FILE.json` wrote.",
)
def report(
    model: Path,
    output: Path,
    overwrite: bool,
    ledger_path: str | None,
    dataset: str,
    evaluation_file: Path | None,
) -> None:
    """Write the privacy card of MODEL: one HTML page for a data protection officer."""
    from dpsparse.models import load
    from dpsparse.privacy import Ledger
    from dpsparse.report import privacy_card

    check_output(output, overwrite, (model, ledger_path, evaluation_file))
    fitted = load(model)
    ledger = Ledger(ledger_path, dataset=dataset) if ledger_path is not None else None
    page = privacy_card(
        fitted,
        title=model.name,
        ledger=ledger,
        evaluation=None if evaluation_file is None else _read_report(evaluation_file),
        checksum=hashlib.sha256(model.read_bytes()).hexdigest(),
    )
    write_whole(output, page.encode(), overwrite)
    say(f"{output}: privacy card of {model.name}")


@program.command()
@opt.json_option
def methods(as_json: bool) -> None:
    """The algorithms and their parameters."""
    found = opt.methods()
    record, lines = {}, []
    for name, kinds in found.items():
        kind: Any = next(iter(kinds.values()))
        parameters = [p for p in kind().get_params(deep=False) if p not in ("domain", "ledger")]
        record[name] = {"tasks": sorted(kinds), "parameters": parameters}
        about = (kind.__doc__ or "").strip().splitlines()[:1]
        lines.append(f"{name:<18} {', '.join(sorted(kinds)):<22} {''.join(about)}")
        lines.append(f"{'':<18} {', '.join(parameters)}")
    emit(record, "\n".join(lines), as_json)


@program.command()
@click.option(
    "--epsilon", type=float, default=1.0, show_default=True, help="Privacy loss of the fit."
)
@click.option(
    "--rows",
    type=click.IntRange(100, 10**7),
    default=20_000,
    show_default=True,
    help="Rows to make up.",
)
@click.option(
    "--features",
    type=click.IntRange(100, 10**8),
    default=50_000,
    show_default=True,
    help="Columns to make up.",
)
@opt.json_option
def demo(epsilon: float, rows: int, features: int, as_json: bool) -> None:
    """Train on made-up sparse data and show what a private model is worth."""
    from sklearn.linear_model import LogisticRegression

    from dpsparse import Domain, DPSparseClassifier
    from dpsparse.datasets import make_sparse_classification

    with stage("making data"):
        X, y = make_sparse_classification(rows + 5_000, features)
    domain = Domain(row_norm=1.0, classes=[0, 1], n_samples=rows)
    train, test = slice(None, rows), slice(rows, None)
    with stage("fitting without privacy"):
        plain = LogisticRegression(max_iter=200).fit(X[train], y[train])
    model: Any = DPSparseClassifier(domain, epsilon=epsilon, delta=1e-6, n_nonzero=100)
    with stage(f"fitting {rows:,} rows x {features:,} features privately"):
        model.fit(X[train], y[train])
    accuracy = float(model.score(X[test], y[test]))
    reference = float(plain.score(X[test], y[test]))
    constant = max(y[test].mean(), 1 - y[test].mean())
    record = _facts(model) | {"accuracy": accuracy, "accuracy_without_privacy": reference}
    text = (
        f"accuracy on 5,000 fresh public rows: {accuracy:.3f} private, {reference:.3f} for "
        f"scikit-learn without privacy, {constant:.3f} for a constant answer\n"
        f"non-zero weights: {model.n_nonzero_} of {features:,}\n{model.privacy_}"
    )
    emit(record, text, as_json)


# ---- shared by the commands ---------------------------------------------------------------------


def _save_paid(model: Any, output: Path, feature_names: Any, overwrite: bool) -> Path:
    """The saved model. Where its place fails, another one: what is paid for is not thrown away."""
    import tempfile

    from dpsparse.models import dumps, save

    try:
        return save(model, output, feature_names=feature_names, overwrite=overwrite)
    except ModelFileError as error:
        reason = f"{error} The fit is done and its epsilon is spent"
    for folder in (tempfile.gettempdir(), Path.home(), Path.cwd()):
        try:
            rescue = Path(tempfile.mkdtemp(prefix="dpsparse-", dir=folder))  # ours alone
        except OSError:
            continue
        try:
            kept = save(model, rescue / output.name, feature_names=feature_names)
        except ModelFileError:
            rescue.rmdir()
            continue
        raise ModelFileError(f"{reason}; the model is kept in {kept}, move it from there.")
    say(dumps(model, feature_names=feature_names))
    raise ModelFileError(f"{reason}; the model file's text is on stdout, keep it.")


def _read_report(path: Path) -> Any:
    """A report of `evaluate`, read from its file."""
    import json

    from dpsparse.evaluation.report import Report
    from dpsparse.exceptions import DPSparseError

    try:
        return Report.from_dict(json.loads(path.read_text("utf-8")))
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError, AttributeError, DPSparseError):
        raise ModelFileError(
            f"{path} is not a report of dpsparse evaluate, or is damaged."
        ) from None


def _score_plan(model: Any) -> Any:
    from dpsparse.privacy import NonPrivate, Phase, Plan
    from dpsparse.privacy.guarantee import PERSON, ROW

    phases = (Phase("exact training score", NonPrivate()),)
    unit = PERSON if model.domain.unit == "person" else ROW
    return Plan(
        "training score", phases, math.inf, model.delta, model.adjacency, proven=False, unit=unit
    )


def _note_names(model: Any, options: dict[str, Any], data: str) -> None:
    """What the card calls the data and the target: names that were typed, nothing of the rows."""
    model.about_ = {
        "data": options["data_name"] or Path(data).name,
        "target": options["target"] or "",
        "fitted": datetime.datetime.now(datetime.UTC).strftime("%d %B %Y"),
    }


def _facts(model: Any) -> dict[str, Any]:
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


def _summary(model: Any) -> str:
    inner = getattr(model, "model_", model)
    prepared = "" if inner is model else f"{model.n_features_in_:,} raw columns, "
    return (
        f"{type(inner).__name__}, {prepared}{inner.n_features_in_:,} features, "
        f"{inner.n_nonzero_:,} non-zero weights"
    )


def _top_weights(model: Any, top: int) -> list[tuple[str, float, bool]]:
    """(name, weight, whether it may be noise) of the largest weights, as on the card those that stand out first."""
    import numpy as np
    import scipy.sparse as sp

    coef = sp.coo_array(
        np.atleast_2d(model.coef_) if isinstance(model.coef_, np.ndarray) else model.coef_
    )
    sd = getattr(model, "coef_noise_", None)
    bar = math.sqrt(2.0 * math.log(max(math.prod(coef.shape), 2)))
    size = np.abs(coef.data)
    unsure = np.zeros(size.shape, bool) if sd is None else size <= bar * np.asarray(sd)[coef.col]
    order = np.lexsort((-size, unsure))[:top]
    names = getattr(model, "feature_names_", None)
    out = []
    for k in order:
        j = int(coef.col[k])
        name = names[j] if names is not None else f"feature {j}"
        if coef.shape[0] > 1:
            name += f" ({model.classes_[coef.row[k]]})"
        out.append((name, float(coef.data[k]), bool(unsure[k])))
    return out
