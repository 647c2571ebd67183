"""The commands. Heavy imports wait until a command runs, so that --help answers at once."""

from __future__ import annotations

import csv
import hashlib
import io
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import dpsparse
from dpsparse._checks import show_name
from dpsparse._files import check_output, write_whole
from dpsparse.cli import options as opt
from dpsparse.cli.audit import audit
from dpsparse.cli.budget import budget
from dpsparse.cli.check import check, describe
from dpsparse.cli.evaluate import evaluate
from dpsparse.cli.output import (
    Group,
    csv_cell,
    emit,
    emit_paid,
    facts_of,
    keep_model,
    note,
    say,
    stage,
    summary,
)
from dpsparse.cli.tune import tune
from dpsparse.exceptions import ModelFileError, ParameterError


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 unexpected error; 2 wrong options or missing public facts; 3 data not readable; 4 "
    "budget refused, nothing spent; 5 ledger unusable or edited; 6 model or output file; 7 refuted by an audit.",
)
@click.version_option(dpsparse.__version__, prog_name="dpsparse")
def program() -> None:
    """Differentially private sparse linear models, from files."""


for _command in (budget, check, audit, evaluate, tune):
    program.add_command(_command)


@program.command()
@click.argument("data", nargs=-1, required=True)
@opt.output("Model file to write (.json).", what="model file")
@opt.takes("fit", "facts", "data", "columns", "ledger", "memory", "json")
def fit(data: tuple[str, ...], options: opt.Options) -> None:
    """Train a private model on DATA: CSV, TSV, JSON lines, Excel, Parquet, svmlight; text also .gz, .bz2, .xz."""
    from dpsparse.cli.job import describe_job, read_rows, stream_rows

    assert options.output is not None
    check_output(options.output, options.overwrite, options.inputs(*data))
    job = describe_job(options, data[0])
    streamed = len(data) > 1 or options.memory is not None
    if streamed and job.prepares:
        raise ParameterError(
            "Preparation, of which --bounds is a part, needs one file that memory holds. Join the files and leave out "
            "--memory, or state --feature-bound for all columns instead."
        )
    model = job.model()
    known = job.n_columns if job.prepares else job.options.n_features
    if known is not None:
        model.plan(known)  # refuse bad parameters before a long read
    rows = stream_rows(job, data, model) if streamed else read_rows(job, model)
    told = describe(job)[1] if sys.stderr.isatty() else job.notes()
    for line in told:
        note(line)
    with stage("fitting"):
        if streamed:
            model.fit(rows.X)
        else:
            model.fit(rows.X, rows.y, groups=rows.persons)
    path, record = keep_model(model, rows, job)
    terms = model.privacy_
    text = f"{path}: {summary(model)}\n{terms.headline}{terms.caution_lines}"
    emit_paid(record, text, job.ledger, options.as_json)


@program.command()
@opt.model_argument
@click.argument("data")
@opt.output("CSV file to write.  [default: stdout]", required=False)
@opt.flag("--proba", about="Also the probability of each class.")
@opt.takes("target", "drop", "n_features", "zero_based", "file_format", "sep", "decimal", "encoding")  # fmt: skip
def predict(model: Path, data: str, proba: bool, options: opt.Options) -> None:
    """Predictions of MODEL for the rows of DATA, as CSV.

    Without --sep, --decimal and --encoding a text file is read as the one that MODEL was fitted to.
    """
    from dpsparse.cli.job import rows_for
    from dpsparse.models.files import load

    if options.output is not None:
        check_output(options.output, options.overwrite, (model, data))
    fitted: Any = load(model)
    if proba and not hasattr(fitted, "classes_"):
        raise click.UsageError("--proba is for classifiers; this model predicts numbers.")
    with stage(f"reading {Path(data).name}"):
        X = rows_for(fitted, data, options.as_fitted(fitted))
    buffer = io.StringIO()
    rows = csv.writer(buffer, lineterminator="\n")
    with stage("predicting"):
        labels = fitted.predict(X).tolist()
        chances = fitted.predict_proba(X).tolist() if proba else []
    if proba:
        rows.writerow(["prediction", *(f"p({c})" for c in fitted.classes_)])
        rows.writerows([csv_cell(label), *row] for label, row in zip(labels, chances, strict=True))
    else:
        rows.writerow(["prediction"])
        rows.writerows([csv_cell(label)] for label in labels)
    if options.output is None:
        say(buffer.getvalue(), end="")
    else:
        write_whole(options.output, buffer.getvalue().encode(), options.overwrite)


@program.command()
@opt.model_argument
@opt.option("--top", type=click.IntRange(0), default=10, about="How many weights to show.")
@opt.json_option
def inspect(model: Path, top: int, as_json: bool) -> None:
    """What MODEL is, what it may promise, and its largest weights."""
    from dpsparse.models.files import load
    from dpsparse.report.weights import largest_weights

    fitted: Any = load(model)
    weights = [
        {"feature": row.name, "weight": row.value, "maybe_noise": row.clear is False}
        for row in largest_weights(fitted, top)
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
        "parameters": {
            k: v for k, v in fitted.get_params(deep=False).items() if k not in ("ledger", "steps")
        },
        "plan": dict(fitted.plan_.parameters),
        "top_weights": weights,
    }
    emit(record, "\n".join(lines), as_json)


@program.command()
@opt.model_argument
@opt.output("HTML file to write.")
@opt.option("--ledger", "ledger_path", about="Add the budget history of this ledger.")
@opt.takes("dataset")
@opt.option(
    "--evaluation",
    "evaluation_file",
    type=click.Path(path_type=Path),
    about="Add the report that `evaluate -o FILE.json` wrote.",
)
def report(model: Path, evaluation_file: Path | None, options: opt.Options) -> None:
    """Write the privacy card of MODEL: one HTML page for a data protection officer."""
    from dpsparse.models.files import load
    from dpsparse.report import privacy_card

    assert options.output is not None
    inputs = options.inputs(model, evaluation_file)
    check_output(options.output, options.overwrite, inputs)
    page = privacy_card(
        load(model),
        title=model.name,
        ledger=opt.account(options.ledger_path, dataset=options.dataset),
        evaluation=None if evaluation_file is None else _read_report(evaluation_file),
        checksum=hashlib.sha256(model.read_bytes()).hexdigest(),
    )
    write_whole(options.output, page.encode(), options.overwrite)
    say(f"{options.output}: privacy card of {model.name}")


@program.command()
@opt.model_argument
@opt.output("YAML file to write.")
@opt.option("--ledger", "ledger_path", about="Ledger of the data set.")
@opt.takes("dataset")
def registry(model: Path, options: opt.Options) -> None:
    """A draft for the public registry of deployments of differential privacy, about MODEL; complete it by hand."""
    from dpsparse.models.files import load
    from dpsparse.report import registry_entry

    assert options.output is not None
    check_output(options.output, options.overwrite, options.inputs(model))
    ledger = opt.account(options.ledger_path, dataset=options.dataset)
    text = registry_entry(load(model), ledger=ledger)
    write_whole(options.output, text.encode(), options.overwrite)
    say(f"{options.output}: draft of a registry entry; answer what is empty in it")


@program.command()
@opt.json_option
def methods(as_json: bool) -> None:
    """The algorithms and their hyper-parameters."""
    from dpsparse.methods.base import hyper_parameters

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
    from dpsparse.methods.warm_up import fit_common_kinds

    start = time.perf_counter()
    fit_common_kinds()
    say(f"ready after {time.perf_counter() - start:.1f} s")


@program.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    short_help="Run and show experiments: papers, rivals, speed, the leaderboard.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> None:
    """Run and show experiments: papers, rivals, speed, the leaderboard."""
    homes = (home / "experiments" for home in (Path(__file__).resolve().parents[3], Path.cwd()))
    folder = next((home for home in homes if (home / "lab").is_dir()), None)
    if folder is None:
        raise click.ClickException(
            "the experiments are part of the source checkout, not of the installed package; run this inside a checkout."
        )
    sys.path.insert(0, str(folder))
    command = import_module("lab.command").lab
    command.main(list(arguments), prog_name="dpsparse lab", standalone_mode=False)


# ---- shared by the commands ---------------------------------------------------------------------


def _read_report(path: Path) -> Any:
    """A report of `evaluate`, read from its file."""
    from dpsparse._json import parsed
    from dpsparse.evaluation.report import Report

    try:
        report = Report.from_dict(parsed(path.read_bytes()))
        str(report)  # computes all that the card shows
        return report
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.") from None
    except Exception:  # the file may hold anything
        raise ModelFileError(
            f"{path} is not a report of dpsparse evaluate, or is damaged."
        ) from None
