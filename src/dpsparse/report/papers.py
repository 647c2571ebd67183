"""Papers an officer asks for, as Markdown: a DPIA annex, a NIST SP 800-226 page, a mapping to ISO/IEC 27559.

Each is made from a model, its plan, and where given its ledger and its audit, and keeps two columns apart: what the
library ensures (with the evidence) and what the operator must do, because no library can.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import dpsparse
from dpsparse.privacy import Guarantee, Ledger
from dpsparse.privacy.guarantee import NOT_PROTECTED, ROW, TRUST_MODEL
from dpsparse.privacy.html import describe, likelihood_factor, rounded_up

_OPEN = "**to be filled in by the operator**"
_DIRECT, _UNDERMINE, _BASE = "1 direct measure", "2 can undermine it", "3 beneath it"  # SP 800-226


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
    g: Guarantee = model.privacy_
    return _paper(
        f"DPIA annex: {name_of(model)}",
        _state(model),
        [
            "## 1. The processing (Article 35(7)(a))",
            _list(
                [
                    f"Product: a sparse linear model with {_inner(model).n_nonzero_:,} of {math.prod(_inner(model).coef_.shape):,} weights, to be published.",
                    f"Method: {name_of(model)}, dpsparse {dpsparse.__version__}.",
                    f"Purpose, categories of data and data subjects, recipients, retention: {_OPEN}.",
                ]
            ),
            "## 2. Necessity and proportionality (Article 35(7)(b))",
            _list(
                [
                    "Only the numbers listed under section 4 are released from the rows; nothing else leaves the fit.",
                    f"Legal basis, and why a less intrusive way would not do: {_OPEN}.",
                    f"Why epsilon {rounded_up(g.epsilon)} and delta {rounded_up(g.delta)}: {_OPEN}.",
                ]
            ),
            "## 3. Risks to data subjects (Article 35(7)(c))",
            " ".join(in_words(g)),
            _table(
                ("risk", "bound or state", "residual risk is the operator's"),
                [
                    ("singling out, linkage, inference about one unit from the published model", _promise(g), "choice of epsilon; several releases (section 5)"),
                    ("a person with several rows", *_several_rows(g)),
                    ("learning about groups and the population", "not limited: it is what a model is for", "whether that is fair and lawful"),
                    ("breach of the raw rows", "not covered: differential privacy protects the output", "access control, encryption, deletion"),
                    ("side channels of the fit (time, memory)", "not covered", "run where nobody measures"),
                    ("looks at the rows outside the library", "not covered", "tuning, cleaning and plots on private rows"),
                ],
            ),
            "## 4. Measures (Article 35(7)(d))",
            _table(("release", "mechanism"), [(name, describe(event)) for name, event in g.events]),
            f"Sensitivity is the most that {g.unit} can change a number, scale the size of the noise in the same unit, size how many numbers are released at most; a leak is part of delta.",
            _list(
                [
                    f"Unit: {g.unit}; neighbours: {g.neighbours}.",
                    f"Assumptions of the proof: {'; '.join(g.assumptions) or 'none beyond the trust model'}.",
                    f"Trust: {TRUST_MODEL}.",
                    f"Randomness: {g.randomness}. Arithmetic: contributions and noise are whole numbers.",
                    f"Proof: {g.source or 'none'} (`dpsparse proof` prints it).",
                ]
            ),
            "## 5. All releases from these data",
            _budget(ledger),
            "## 6. Attempts to refute the guarantee",
            _audit(audit),
        ],
    )  # fmt: skip


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
    g: Guarantee = model.privacy_
    facts = g.to_dict()["nist_sp_800_226"]
    rows = [
        (_DIRECT, "privacy loss parameters", f"{g.headline}; accounting: {facts['privacy_loss_parameters']['accounting']}", "state epsilon and delta with the model; decide the total over all releases"),
        (_DIRECT, "unit of privacy", f"{g.unit}; {g.neighbours}", "choose persons where people have several rows; give the true owner of every row"),
        (_UNDERMINE, "trust model", TRUST_MODEL, "name the curator and who may reach the rows"),
        (_UNDERMINE, "mechanisms", "; ".join(f"{name}: {describe(event)}" for name, event in g.events) or "none", "none: they follow from the plan"),
        (_UNDERMINE, "sensitivity and clipping", "bounds are enforced on the whole numbers a row contributes, in one place", "declare bounds without looking at the rows"),
        (_UNDERMINE, "composition", "reserved before noise; the ceiling also holds for adaptive choices" if ledger else "inside the fit only; no ledger was given", "book every release from the data in one ledger"),
        (_UNDERMINE, "releases without differential privacy", "not seen by the library", "none from the same rows, or state that the promise is void beside them"),
        (_UNDERMINE, "floating point", "integer contributions and integer noise; selections are exact draws", "do not publish intermediate results"),
        (_UNDERMINE, "randomness", g.randomness, "no seeds in production; a new process after a snapshot is restored"),
        (_UNDERMINE, "side channels", "not protected: " + NOT_PROTECTED[1], "run the fit where time and memory are not observed"),
        (_UNDERMINE, "utility and bias", "error from privacy is stated per weight (`coef_noise_`) where the method has it", "measure with `dp_evaluate`, also by group, before use"),
        (_UNDERMINE, "verification", "proof note, sensitivity and law tests, audit", "repeat: `dpsparse inspect`, `dpsparse audit`, `dpsparse budget verify`"),
        (_BASE, "security and access control", "not the library's business", "access control, encryption, deletion of raw rows"),
        (_BASE, "data collection exposure", "not the library's business", "collect no more than is needed; protect what is collected before it is used"),
    ]  # fmt: skip
    return _paper(
        f"NIST SP 800-226: {name_of(model)}",
        _state(model),
        [
            "The publication orders what an evaluation must look at as a pyramid: direct measures of the guarantee rest on "
            "what can undermine it, and that on the security and the collection of the data.",
            _table(
                ("level", "question", "what the library ensures", "what the operator must"), rows
            ),
            "## Not protected",
            _list(facts["not_protected"]),
            "## Cautions",
            _list(facts["cautions"]),
            "## Budget",
            _budget(ledger),
            "## Attempts to refute the guarantee",
            _audit(audit),
        ],
    )


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
    g: Guarantee = model.privacy_
    book = f"account of data set {ledger.dataset!r}" if ledger else "no ledger was given"
    rows = [
        ("6.2.2 security and privacy practices", "not the library's business: it protects the output, not the rows", _OPEN + ": of those who hold rows, ledger and model"),
        ("6.2.3 motives and capacity to re-identify", "assumed unlimited: any reader, any side knowledge, any computing power", "none for the model; for the rows see 6.2.2"),
        ("6.3.2 transparency and stakeholder engagement", "privacy card, DPIA annex, registry entry", _OPEN + ": who is told and heard"),
        ("6.3.3 privacy-related harms", "what is learnt about one unit is bounded; what is learnt about groups is not", _OPEN),
        ("7.2.2 data principals", f"unit: {g.unit}", "state the true owner of every row"),
        ("7.2.3 to 7.2.5 data type, attribute types, dataset properties", "the declared domain; every column is treated as identifying", _OPEN + ": declare bounds without looking at the rows"),
        ("7.3.2 maximum or average risk", "maximum: over all neighbouring tables", "none"),
        ("7.3.3 population or sample-based attack", "either: the attacker may know every other row", "none"),
        ("7.3.4 data privacy models", f"differential privacy, {g.neighbours}", "none"),
        ("8.2.2 quantifying identifiability", _promise(g), "choose the threshold (epsilon)"),
        ("8.2.3 adversarial testing", "attached" if audit is not None else "`dpsparse audit`; not attached here", "repeat for your own configuration"),
        ("8.3.2 reconfiguring the environment", f"policy file and ledger: {book}", _OPEN + ": access to rows and to the ledger"),
        ("8.3.3 transforming the data", "noise and clipping as listed in the NIST page", "declare bounds without looking"),
        ("8.3.4 re-evaluation", "`ledger.remaining()` before every release", "decide on each further release"),
        ("9.2.2 roles and responsibilities", "the ledger keeps who released what", _OPEN),
        ("9.2.3 principles, policies and procedures", "policy file (largest epsilon, allowed methods), enforced", _OPEN + ": who may write it"),
        ("9.2.4 identifying and managing a disclosure", "every release is reserved before noise is drawn", "release nothing else from the rows"),
        ("9.2.5 communicating with stakeholders", "privacy card, registry entry", _OPEN),
        ("9.3.2 monitoring the data environment", "`dpsparse budget history`, `verify --anchor`", _OPEN),
        ("9.4 mitigation in case of incident", "a ledger entry cannot be taken back; SECURITY.md says how to report", _OPEN + ": plan for a breach of the raw rows"),
    ]  # fmt: skip
    return _paper(
        f"Mapping to ISO/IEC 27559:2022: {name_of(model)}",
        _state(model),
        [
            "Clauses are named as in the contents of the 2022 edition; the text of the clauses is sold by ISO and was not at hand, so "
            "compare before you rely on a line. The standard is written for de-identified data; a model with a "
            "proven guarantee is such an output, the training rows are not.",
            _table(("clause", "what the library contributes", "what people must do"), rows),
        ],
    )


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


def _paper(title: str, state: str, parts: Iterable[str]) -> str:
    foot = f"Generated by dpsparse {dpsparse.__version__} from the model file. It is no legal advice, and no approval."
    return "\n\n".join([f"# {title}", state, *parts, "---", foot]) + "\n"


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
        f"{rounded_up(ledger.spent(), 4)}. Releases: {len(entries)}, listed below (the last 50 at most). The book is unbroken: "
        f"{ledger.verify()} entries, as a release is reserved and then completed; head `{ledger.head[:16]}`."
    )
    rows = [
        (e.time[:10], e.method, rounded_up(e.epsilon, 4), rounded_up(e.total, 4))
        for e in entries[-50:]
    ]
    return f"{head}\n\n{_table(('date', 'release', 'epsilon', 'total'), rows)}"


def _audit(audit: Any) -> str:
    if audit is None:
        return "None attached. `dpsparse audit config.toml` attacks a configuration with tables of its own; no data is read."
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
    def line(cells: Iterable[str]) -> str:
        return (
            "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
        )

    return "\n".join([line(head), line(["---"] * len(head)), *(line(row) for row in rows)])


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
