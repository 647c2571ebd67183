"""How the command line talks: results on stdout, progress and warnings on stderr."""

from __future__ import annotations

import datetime
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsparse
from dpsparse._checks import show_name, show_number, show_text
from dpsparse._files import keep_elsewhere, write_whole
from dpsparse._json import plain, readable
from dpsparse.exceptions import DPSparseError, LedgerError, ModelFileError

if TYPE_CHECKING:
    from dpsparse.cli.job import Job
    from dpsparse.io import Table


class Group(click.Group):
    """A list of commands in which no sentence is cut short."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (name, one.get_short_help_str(limit=1_000))
            for name, one in sorted(self.commands.items())
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@contextmanager
def stage(text: str) -> Iterator[None]:
    """Progress on a terminal; in a pipe or a log one line if it takes long."""
    from dpsparse.progress import counted  # which imports Numba

    with counted(show_name(text)):
        yield


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Warnings of this library as one line each; those of others are for developers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    ours = [w for w in caught if w.category.__module__.startswith("dpsparse")]
    for text in dict.fromkeys(str(w.message) for w in ours):
        warn(" ".join(text.split()))


def warn(text: str) -> None:
    """One line on stderr."""
    click.echo(f"dpsparse: warning: {show_name(text)}", err=True)


def note(text: str) -> None:
    """One line on stderr that warns of nothing."""
    click.echo(f"dpsparse: {show_name(text)}", err=True)


def emit(record: dict[str, Any], text: str, as_json: bool) -> None:
    """The result, for a machine or for a person."""
    say(readable(plain(record)) if as_json else text)


class ShownError(LedgerError):
    """The account cannot be read; the result that it paid for is shown already."""


def emit_paid(record: dict[str, Any], text: str, ledger: Any, as_json: bool) -> None:
    """A result that is paid for, with a line on the account. It is shown also where the account cannot be read."""
    failed = None
    try:
        if ledger is not None:
            text = f"{text}\n{budget_line(ledger)}"
            record["budget"] = {
                "spent": ledger.spent(),
                "remaining": ledger.remaining(),
                "head": ledger.head,
            }
        elif "NOT PRIVATE" not in text:
            note(
                "no ledger keeps account: this epsilon adds up with that of everything else released from these rows; "
                "next time add --ledger"
            )
    except LedgerError as error:
        failed = ShownError(f"{error} The result is paid and shown.")
    emit(record, text, as_json)
    if failed is not None:
        raise failed


def keep_paid(content: str, name: str, work: Callable[[], None]) -> None:
    """Show or write a result. Where `work` fails, `content` is kept elsewhere, at last on stdout: it is paid for."""
    try:
        return work()
    except ShownError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        ours = isinstance(error, DPSparseError)
        reason = str(error) if ours else f"The result cannot be shown ({type(error).__name__})."
    kept = keep_elsewhere(name, content.encode())
    if kept is None:
        say(content)
    place = "on stdout, keep it" if kept is None else f"kept in {kept}, move it from there"
    raise ModelFileError(f"{reason} The epsilon is spent; the result is {place}.")


def budget_line(account: Any) -> str:
    """One line on an account, for people."""
    terms, spent = account.terms, account.spent()
    name = account.dataset + (f" [{account.partition}]" if account.partition else "")
    head = f"budget {name}: epsilon {spent:.4g} of {terms.epsilon:.4g} spent at delta {show_number(terms.delta)}"
    room = account.remaining()
    why = "" if spent + room <= 1.01 * terms.epsilon else ", as fits together cost less than their sum"  # fmt: skip
    return f"{head}; room for one further fit of up to about {room:.3g}{why}"


def csv_cell(value: Any) -> Any:
    """A cell that a spreadsheet takes for what it is: a text that it would compute gets an apostrophe in front.

    So does a text that begins with one, so that a reader may take one off any cell that has it.
    """
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r\n'") else value


def say(text: str, *, end: str = "\n") -> None:
    """Text on stdout, all of it: a full disk behind `> file` is an error of ours, and a letter that the terminal does
    not have is written as \\u00e4, as in JSON."""
    try:
        encoding = sys.stdout.encoding or "utf-8"
        shown = show_text(text)
        if shown.encode(encoding, "replace").decode(encoding) != shown:
            shown = show_text(text, ascii_only=True)
        click.echo(shown + end, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ModelFileError(f"The result cannot be written: {error.strerror}.") from None


# ---- models ---------------------------------------------------------------------------------------


def keep_model(model: Any, rows: Table, job: Job) -> tuple[Path, dict[str, Any]]:
    """The model in its file, and the record about it."""
    from dpsparse.models.files import dumps

    options = job.options
    # Data, target and how the next file is read: words that were typed.
    model.about_ = {
        "data": Path(str(job.data)).name,
        "target": options.target or "",
        "fitted": datetime.datetime.now(datetime.UTC).strftime("%d %B %Y"),
        **options.written,
    }
    assert options.output is not None
    path, text = options.output, dumps(model, feature_names=rows.feature_names)
    keep_paid(text, path.name, lambda: write_whole(path, text.encode(), options.overwrite))
    return path, {"model": path, **facts_of(model)}


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
    labels: Any = getattr(inner, "classes_", ())
    two = f"\npositive weights speak for: {show_name(labels[1])}" if len(labels) == 2 else ""
    constant = "" if inner.n_nonzero_ else ": every row gets the same answer"
    return (
        f"{type(inner).__name__}, {raw}{inner.n_features_in_:,} features, "
        f"{inner.n_nonzero_:,} non-zero weights{constant}{two}{_kinds(model)}"
    )


def _kinds(model: Any) -> str:
    """What columns were taken for where that was learnt: a code that looks like a number is one."""
    found: dict[str, list[str]] = {}
    for _, step in getattr(model, "steps_", []):
        for column, kind in getattr(step, "kinds_", {}).items():
            found.setdefault(kind, []).append(column)
    return "".join(
        f"\ntaken for {kind}: {', '.join(map(show_name, names[:100]))}{', ...' * (len(names) > 100)}"
        for kind, names in sorted(found.items())
    )
