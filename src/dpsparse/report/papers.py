"""Papers an officer asks for, as Markdown: a DPIA annex, a NIST SP 800-226 page, a mapping to ISO/IEC 27559.

Each is made from a model, its plan, and where given its ledger and its audit, and keeps two columns apart: what the
library ensures (with the evidence) and what the operator must do, because no library can. Their text is in the
files beside this one; here is what is filled in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib.resources import files
from string import Template
from typing import Any

import dpsparse
from dpsparse.privacy import Guarantee, Ledger
from dpsparse.privacy.guarantee import NOT_PROTECTED, ROW, TRUST_MODEL
from dpsparse.privacy.html import describe, likelihood_factor, rounded_up

_OPEN = "**to be filled in by the operator**"


def dpia_annex(model: Any, *, ledger: Ledger | None = None, audit: Any = None) -> str:
    """The technical annex of a data protection impact assessment (Article 35(7) GDPR) of a published model.

    Parameters
    ----------
    model : fitted estimator or pipeline of dpsparse
    ledger : Ledger or None
        Of the data set the model was trained on.
    audit : Verdict, str or None
        Of `dpsparse.audit.audit` on the same configuration, or the text that `dpsparse audit` printed.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> from dpsparse.report import dpia_annex
    >>> model = DPGradientClassifier(Domain(classes=[0, 1])).fit([[0.1, 0.2], [0.3, 0.1]] * 50, [0, 1] * 50)
    >>> print(dpia_annex(model).splitlines()[0])
    # DPIA annex: DPGradientClassifier
    """
    return _filled("dpia_annex", model, ledger, audit)


def nist_page(model: Any, *, ledger: Ledger | None = None, audit: Any = None) -> str:
    """The questions of NIST SP 800-226, answered for a model: what the library ensures, what the operator must.

    Parameters
    ----------
    model : fitted estimator or pipeline of dpsparse
    ledger : Ledger or None
    audit : Verdict, str or None

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> from dpsparse.report import nist_page
    >>> model = DPGradientClassifier(Domain(classes=[0, 1])).fit([[0.1, 0.2], [0.3, 0.1]] * 50, [0, 1] * 50)
    >>> print(nist_page(model).splitlines()[0])
    # NIST SP 800-226: DPGradientClassifier
    """
    return _filled("nist_sp_800_226", model, ledger, audit)


def iso_mapping(model: Any, *, ledger: Ledger | None = None, audit: Any = None) -> str:
    """Where a model and its papers answer the clauses of ISO/IEC 27559:2022, and where people must.

    Parameters
    ----------
    model : fitted estimator or pipeline of dpsparse
    ledger : Ledger or None
    audit : Verdict, str or None

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> from dpsparse.report import iso_mapping
    >>> model = DPGradientClassifier(Domain(classes=[0, 1])).fit([[0.1, 0.2], [0.3, 0.1]] * 50, [0, 1] * 50)
    >>> print(iso_mapping(model).splitlines()[0])
    # Mapping to ISO/IEC 27559:2022: DPGradientClassifier
    """
    return _filled("iso_iec_27559", model, ledger, audit)


def _filled(name: str, model: Any, ledger: Ledger | None, audit: Any) -> str:
    """The text of a paper with the facts of a model; what stands in a cell of a table stays in its cell."""
    g: Guarantee = model.privacy_
    nist, (several_rows, several_rows_left) = g.to_dict()["nist_sp_800_226"], _several_rows(g)
    facts = {
        "method": name_of(model),
        "version": dpsparse.__version__,
        "n_nonzero": f"{_inner(model).n_nonzero_:,}",
        "n_weights": f"{math.prod(_inner(model).coef_.shape):,}",
        "open": _OPEN,
        "headline": g.headline,
        "epsilon": rounded_up(g.epsilon),
        "delta": rounded_up(g.delta),
        "unit": g.unit,
        "neighbours": g.neighbours,
        "promise": _promise(g),
        "several_rows": several_rows,
        "several_rows_left": several_rows_left,
        "trust": TRUST_MODEL,
        "randomness": g.randomness,
        "assumptions": "; ".join(g.assumptions) or "none beyond the trust model",
        "source": g.source or "none",
        "accounting": nist["privacy_loss_parameters"]["accounting"],
        "mechanisms": "; ".join(f"{n}: {describe(event)}" for n, event in g.events) or "none",
        "side_channels": NOT_PROTECTED[1],
        "account": f"account of data set {ledger.dataset!r}" if ledger else "no ledger was given",
        "composition": "reserved before noise; the ceiling also holds for adaptive choices"
        if ledger
        else "inside the fit only; no ledger was given",
        "tested": "attached" if audit is not None else "`dpsparse audit`; not attached here",
        "words": " ".join(in_words(g)),
    }
    parts = {
        "state": _state(model),
        "releases": _table(("release", "mechanism"), [(n, describe(e)) for n, e in g.events]),
        "not_protected": _list(nist["not_protected"]),
        "cautions": _list(nist["cautions"]),
        "budget": _budget(ledger),
        "audit": _audit(audit),
        "foot": f"Generated by dpsparse {dpsparse.__version__} from the model file. It is no legal advice, and no "
        "approval.",
    }
    text = files(__package__).joinpath(f"{name}.md").read_text("utf-8")
    return Template(text).substitute({k: _cell(v) for k, v in facts.items()} | parts)


def in_words(g: Guarantee) -> list[str]:
    """What the promise means for one person, for a reader without mathematics."""
    if not g.proven:
        return [
            "No promise can be made about this model. Treat it as if it contained the training data.",
            "The numbers asked for, which promise nothing here, were epsilon "
            f"{rounded_up(g.epsilon)} and delta {rounded_up(g.delta)}.",
        ]
    odds = likelihood_factor(g.epsilon)
    certain = min(1.0, odds / (1.0 + odds) + g.delta)
    percent = math.ceil(1000.0 * certain) / 10.0
    change = "was used or not" if g.adjacency == "add-remove" else "was as it is or quite different"
    theirs = "a person's row was" if g.unit == ROW else "a person's rows were"
    return [
        f"Whether {g.unit} {change} changes the probability of anything that can be seen from "
        f"this model by a factor of at most {rounded_up(odds, 3)}, apart from a further "
        f"probability of at most {rounded_up(g.delta, 2)}.",
        f"Someone who thinks it equally likely that {theirs} used or not, and who knows "
        f"all other rows, cannot become more than {percent:.1f} % certain by looking at the "
        "model (50 % means nothing was learnt).",
        "This holds whatever else is known or will become known, and for everything computed from "
        "the model later.",
    ]


def _state(model: Any) -> str:
    g: Guarantee = model.privacy_
    lines = [f"**{g.headline}**", *g.cautions]
    if not g.proven:
        lines.append(
            "No promise can be made. Treat the model as if it contained the training data."
        )
    return "\n\n".join(lines)


def _promise(g: Guarantee) -> str:
    if not g.proven:
        return "no bound: the model carries no proven guarantee"
    who = "row" if g.unit == ROW else "person"
    return (
        f"one {who} changes the probability of anything seen by a factor of at most "
        f"{rounded_up(likelihood_factor(g.epsilon), 3)}, apart from a probability of {rounded_up(g.delta, 2)}"
    )


def _several_rows(g: Guarantee) -> tuple[str, str]:
    if g.unit != ROW:
        return (
            "covered: the unit is a person with all of their rows",
            "give the true owner of every row",
        )
    return (
        "the promise is for one row: k rows of one person weaken it to k times epsilon, with a larger delta",
        'make sure that nobody has several rows, or protect persons (`Domain(unit="person")`)',
    )


def _budget(ledger: Ledger | None) -> str:
    if ledger is None:
        return "No ledger was given: this paper speaks of the one release alone."
    entries = ledger.history()
    head = (
        f"Data set {ledger.dataset!r}: ceiling epsilon {ledger.terms.epsilon:g} at delta {ledger.terms.delta:g}, spent "
        f"{rounded_up(ledger.spent(), 4)}. Releases: {len(entries)}, listed below (the last 50 at most). The book is "
        f"unbroken: {ledger.verify()} entries, as a release is reserved and then completed; head `{ledger.head[:16]}`."
    )
    rows = [
        (e.time[:10], e.method, rounded_up(e.epsilon, 4), rounded_up(e.total, 4))
        for e in entries[-50:]
    ]
    return f"{head}\n\n{_table(('date', 'release', 'epsilon', 'total'), rows)}"


def _audit(audit: Any) -> str:
    if audit is None:
        return (
            "None attached. `dpsparse audit config.toml` attacks a configuration with tables of its own; no data is "
            "read."
        )
    return f"Not being refuted is no proof.\n\n```\n{str(audit).strip()}\n```"


def name_of(model: Any) -> str:
    """What was fitted, in a word or, behind private preparation, in a few."""
    inner = _inner(model)
    behind = (
        f" on {model.n_features_in_:,} privately prepared columns" if inner is not model else ""
    )
    return f"{type(inner).__name__}{behind}"


def _inner(model: Any) -> Any:
    return getattr(model, "model_", model)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, cells))} |" for cells in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
