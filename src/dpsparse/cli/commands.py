"""The commands. Heavy imports wait until a command runs, so that --help answers at once."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import time
from pathlib import Path
from typing import Any

import click

import dpsparse
from dpsparse._files import check_output, write_whole
from dpsparse._text import show_name
from dpsparse.audit.command import audit
from dpsparse.cli import options as opt
from dpsparse.cli import prepare as preparation
from dpsparse.cli.budget import budget
from dpsparse.cli.domain import domain as domain_command
from dpsparse.cli.evaluate import evaluate
from dpsparse.cli.officer import annex, registry
from dpsparse.cli.output import Group, csv_cell, emit, emit_paid, emit_price, say, stage
from dpsparse.cli.reproduce import reproduce
from dpsparse.cli.tune import tune
from dpsparse.exceptions import ModelFileError, ParameterError

EXIT_HELP = (
    "Exit codes: 0 done; 1 unexpected error; 2 wrong options or missing public facts; 3 data not "
    "readable; 4 budget refused, nothing spent; 5 ledger unusable or edited; 6 model or output "
    "file; 7 refuted by an audit."
)


@click.group(cls=Group, epilog=EXIT_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(dpsparse.__version__, prog_name="dpsparse")
def program() -> None:
    """Differentially private sparse linear models, from files."""


for _command in (
    budget,
    domain_command,
    reproduce,
    audit,
    registry,
    annex,
    evaluate,
    tune,
):
    program.add_command(_command)


@program.command()
@click.argument("data", nargs=-1, required=True)
@opt.output("Model file to write (.json; .npz above 1e5 weights).", what="model file")
@opt.estimator_options
@opt.domain_options
@opt.data_options
@preparation.prepare_options
@opt.data_name_option
@opt.ledger_options
@opt.flag(
    "--reveal-training-score",
    about="Also print the exact score on the private training rows. It is not covered by the guarantee: "
    "whoever sees it learns more than epsilon allows, and a ledger counts it as epsilon = infinity.",
)
@opt.option(
    "--memory",
    metavar="SIZE",
    about="Stream rows under this cap, such as 2GB, instead of holding them all; several files are always streamed.",
)
@opt.json_option
def fit(data: tuple[str, ...], reveal_training_score: bool, as_json: bool, **options: Any) -> None:
    """Train a private model on DATA: CSV, TSV, JSON lines, Parquet, Arrow, svmlight; text also .gz, .bz2, .xz, .zst."""
    from dpsparse.cli import training

    output, inputs = options["output"], (*data, options["domain_file"], options["ledger_path"])
    check_output(output, options["overwrite"], inputs)
    check_output(output.with_suffix(".npz"), True, inputs)  # where a large model goes
    facts = opt.make_domain(options)
    ledger = opt.open_ledger(options)
    streamed = len(data) > 1 or options["memory"] is not None
    if streamed and reveal_training_score:
        raise ParameterError(
            "--reveal-training-score needs one file that memory holds; leave it out."
        )
    raw = preparation.asked_for(options, facts)
    if raw and streamed:
        raise ParameterError("Preparation needs one file that memory holds; leave out --memory.")
    model: Any
    if raw:
        model, _ = training.prepared(data[0], options, facts, ledger)
        rows = training.read_raw(data[0], options, facts.domain.classes)
    else:
        model = opt.make_estimator(options, facts.domain, ledger)
        if options["n_features"] is not None:
            model.plan(options["n_features"])  # refuse bad parameters before a long read
        if streamed:
            rows = training.stream(data, options, facts.scales, model)
        else:
            rows = training.read_numbers(data[0], options, facts.scales, model)
    score_plan = _score_plan(model) if reveal_training_score and ledger is not None else None
    if score_plan is not None and not ledger.would_allow(score_plan):
        ledger.reserve(score_plan)  # raises, and says why
    with stage("fitting"):
        if streamed:
            model.fit(rows.X)
        else:
            model.fit(rows.X, rows.y, groups=rows.persons)
    path, record = training.keep(model, rows, facts.scales, options, data[0])
    text = f"{path}: {training.summary(model)}\n{model.privacy_.headline}"
    if score_plan is not None:
        ledger.reserve(score_plan)  # not before the fit, which may refuse the data
    if reveal_training_score:  # weights are for the columns as they are in the file
        exact = model.score(rows.X if rows.unscaled is None else rows.unscaled, rows.y)
        record["training_score"] = exact
        text += f"\nscore on the private training rows, NOT covered: {exact:.4f}"
    emit_paid(record, text, ledger, as_json)


@program.command()
@opt.model_argument
@click.argument("data")
@opt.output("CSV file to write.  [default: stdout]", required=False)
@opt.flag("--proba", about="Also the probability of each class.")
@opt.data_options
def predict(
    model: Path, data: str, output: Path | None, overwrite: bool, proba: bool, **options: Any
) -> None:
    """Predictions of MODEL for the rows of DATA, as CSV."""
    from dpsparse.cli.training import rows_for
    from dpsparse.models import load

    if output is not None:
        check_output(output, overwrite, (model, data))
    fitted: Any = load(model)
    if proba and not hasattr(fitted, "classes_"):
        raise click.UsageError("--proba is for classifiers; this model predicts numbers.")
    X = rows_for(fitted, data, options)
    buffer = io.StringIO()
    rows = csv.writer(buffer, lineterminator="\n")
    labels = fitted.predict(X).tolist()
    if proba:
        rows.writerow(["prediction", *(f"p({c})" for c in fitted.classes_)])
        chances = fitted.predict_proba(X).tolist()
        rows.writerows([csv_cell(label), *row] for label, row in zip(labels, chances, strict=True))
    else:
        rows.writerow(["prediction"])
        rows.writerows([csv_cell(label)] for label in labels)
    if output is None:
        say(buffer.getvalue(), end="")
    else:
        write_whole(output, buffer.getvalue().encode(), overwrite)


@program.command()
@opt.model_argument
@opt.option("--top", type=click.IntRange(0), default=10, about="How many weights to show.")
@opt.json_option
def inspect(model: Path, top: int, as_json: bool) -> None:
    """What MODEL is, what it may promise, and its largest weights."""
    from dpsparse.cli.training import facts_of, summary
    from dpsparse.models import load
    from dpsparse.report.card import largest_weights

    fitted: Any = load(model)
    weights = [
        {"feature": row["name"], "weight": row["value"], "maybe_noise": row["stands_out"] is False}
        for row in largest_weights(getattr(fitted, "model_", fitted), top)
    ]
    lines = [
        summary(fitted),
        str(fitted.privacy_),
        *(
            f"  {w['weight']:+12.6g}  {show_name(w['feature'])}{'  (maybe noise)' if w['maybe_noise'] else ''}"
            for w in weights
        ),
    ]
    record = facts_of(fitted) | {
        "scales": getattr(fitted, "scales_", None),
        "parameters": {
            k: v for k, v in fitted.get_params(deep=False).items() if k not in ("ledger", "steps")
        },
        "plan": dict(fitted.plan_.parameters),
        "top_weights": weights,
    }
    emit(record, "\n".join(lines), as_json)


@program.command()
@click.argument("data", required=False)
@opt.estimator_options
@opt.domain_options
@opt.data_options
@preparation.prepare_options
@opt.ledger_options
@opt.json_option
def plan(data: str | None, as_json: bool, **options: Any) -> None:
    """The price of a fit before paying it; spends nothing. Of DATA, a table, the header alone is read.

    Without DATA state --n-features, the number of columns to come.
    """
    from dpsparse.cli import training

    facts = opt.make_domain(options)
    ledger = opt.open_ledger(options)
    raw = preparation.asked_for(options, facts)
    n_features = options["n_features"]
    model: Any
    if raw and data is None:
        raise click.UsageError(
            "The price of preparation depends on the columns; name the table: dpsparse plan DATA ... (its header "
            "alone is read)."
        )
    if raw:
        model, names = training.prepared(str(data), options, facts, ledger)
        n_features = len(set(names) - {options["target"], options["person"]})
    else:
        model = opt.make_estimator(options, facts.domain, ledger)
        if data is not None and n_features is None:
            n_features = training.count_features(data, options)
    if n_features is None:
        raise click.UsageError(
            "State --n-features, the number of columns to come, or name a table: dpsparse plan DATA --target COLUMN "
            "(its header alone is read)."
        )
    emit_price(model.plan(n_features), ledger, as_json)


@program.command()
@opt.model_argument
@opt.output("HTML file to write.")
@opt.option("--ledger", "ledger_path", about="Add the budget history of this ledger.")
@opt.dataset_option
@opt.option(
    "--evaluation",
    "evaluation_file",
    type=click.Path(path_type=Path),
    about="Add the report that `evaluate -o FILE.json` wrote.",
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
    from dpsparse.report import privacy_card

    check_output(output, overwrite, (model, ledger_path, evaluation_file))
    page = privacy_card(
        load(model),
        title=model.name,
        ledger=opt.account(ledger_path, dataset=dataset),
        evaluation=None if evaluation_file is None else _read_report(evaluation_file),
        checksum=hashlib.sha256(model.read_bytes()).hexdigest(),
    )
    write_whole(output, page.encode(), overwrite)
    say(f"{output}: privacy card of {model.name}")


@program.command()
@opt.json_option
def methods(as_json: bool) -> None:
    """The algorithms and their hyper-parameters."""
    from dpsparse.estimators._base import hyper_parameters

    found = opt.methods()
    record, lines = {}, []
    for name, kinds in found.items():
        kind: Any = next(iter(kinds.values()))
        parameters = list(hyper_parameters(kind))
        record[name] = {"tasks": sorted(kinds), "parameters": parameters}
        about = (kind.__doc__ or "").strip().splitlines()[:1]
        lines.append(f"{name:<18} {', '.join(sorted(kinds)):<22} {''.join(about)}")
        lines.append(f"{'':<18} {', '.join(parameters)}")
    emit(record, "\n".join(lines), as_json)


@program.command()
@opt.option("--epsilon", default=1.0, about="Privacy loss of the fit.")
@opt.option("--rows", type=click.IntRange(100, 10**7), default=20_000, about="Rows to make up.")
@opt.option(
    "--features", type=click.IntRange(100, 10**8), default=50_000, about="Columns to make up."
)
@opt.json_option
def demo(epsilon: float, rows: int, features: int, as_json: bool) -> None:
    """Train on made-up sparse data and show what a private model is worth."""
    from sklearn.linear_model import LogisticRegression

    from dpsparse import Domain, DPSparseClassifier
    from dpsparse.cli.training import facts_of
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
    record = facts_of(model) | {"accuracy": accuracy, "accuracy_without_privacy": reference}
    text = (
        f"accuracy on 5,000 fresh public rows: {accuracy:.3f} private, {reference:.3f} for "
        f"scikit-learn without privacy, {constant:.3f} for a constant answer\n"
        f"non-zero weights: {model.n_nonzero_} of {features:,}\n{model.privacy_}"
    )
    emit(record, text, as_json)


@program.command()
@click.argument("note", required=False)
def proof(note: str | None) -> None:
    """The proof note NOTE, or the names of all of them; `inspect` tells which one a model rests on."""
    from dpsparse import proofs

    say(proofs.read(note) if note else "\n".join(proofs.names()))


@program.command("warm-up")
def warm_up() -> None:
    """Compile for this machine now (about half a minute); the code is kept beside the package.

    Fits made-up rows with the commonest settings of both main families. In a container run it while the
    image is built; NUMBA_CACHE_DIR chooses where the code is kept if the package cannot be written to.
    Wheels with compiled code hold most of it already.
    """
    from dpsparse.estimators._warm_up import fit_common_kinds

    start = time.perf_counter()
    fit_common_kinds()
    say(f"ready after {time.perf_counter() - start:.1f} s")


# ---- shared by the commands ---------------------------------------------------------------------


def _read_report(path: Path) -> Any:
    """A report of `evaluate`, read from its file."""
    from dpsparse._json import parsed
    from dpsparse.evaluation.report import Report
    from dpsparse.exceptions import DPSparseError

    try:
        return Report.from_dict(parsed(path.read_bytes()))
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
