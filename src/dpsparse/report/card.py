"""The privacy card: one self-contained HTML page about one model.

Everything on it is public: the guarantee, the plan, the released weights and, if given, the
ledger's history. The page refers to nothing outside itself.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import dpsparse
from dpsparse import proofs as notes
from dpsparse._checks import rounded_up, show_number
from dpsparse.accounting import Guarantee, epsilon
from dpsparse.accounting.guarantee import NOT_PROTECTED, ROW, TRUST_MODEL, likelihood_factor
from dpsparse.domain.file import plain_facts
from dpsparse.exceptions import ParameterError
from dpsparse.ledger import Ledger
from dpsparse.report.evaluation import evaluation_section
from dpsparse.report.plots import as_svg, weight_figure
from dpsparse.report.template import filled, page
from dpsparse.report.weights import (
    clear_weights,
    feature_names,
    inner_model,
    largest_weights,
    noise_bar,
    positive_label,
    stand_out_together,
)

if TYPE_CHECKING:
    from dpsparse.evaluation.report import Report


def privacy_card(
    model: Any,
    *,
    title: str = "",
    ledger: Ledger | None = None,
    evaluation: Report | None = None,
    checksum: str = "",
) -> str:
    """The HTML page of a model, with its evaluation and the budget of its data set where they are given.

    Parameters
    ----------
    model : fitted estimator or pipeline of dpsparse, or a search for one
        What the page is about.
    title : str, default=""
        Heading, for instance the file name; the estimator's name by default.
    ledger : Ledger or None, default=None
        Adds what was spent on the data set the model was trained on.
    evaluation : Report or None, default=None
        Of `dp_evaluate` on this model; adds how good the model is, and what that has cost.
    checksum : str, default=""
        Of the model file (SHA-256), so that a reader can tell that the page is about that file.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> from dpsparse.report import privacy_card
    >>> model = DPGradientClassifier(Domain(classes=[0, 1])).fit([[0.1, 0.2], [0.3, 0.1]] * 50, [0, 1] * 50)
    >>> privacy_card(model, title="Triage").startswith("<!doctype html>")
    True
    """
    # Of a search: its winner, which carries the guarantee.
    model = getattr(model, "best_estimator_", model)
    inner = inner_model(model)
    if evaluation is not None and evaluation.model != type(inner).__name__:
        raise ParameterError(
            f"evaluation is about another model ({evaluation.model}); pass dp_evaluate(model, ...) of this one."
        )
    guarantee: Guarantee = model.privacy_
    title = title or type(model).__name__
    body = filled(
        "card.html",
        title=title,
        estimator=type(inner).__name__ + ("" if inner is model else " behind private preparation"),
        written=datetime.datetime.now(datetime.UTC).strftime("%d %B %Y"),
        about={"data": "", "target": "", "fitted": "", **(getattr(model, "about_", None) or {})},
        checksum=checksum,
        columns=_columns(model),
        proofs=_proofs(guarantee.source),
        version=dpsparse.__version__,
        g=guarantee,
        words=in_words(guarantee),
        summary=_summary_rows(guarantee),
        steps=_steps(guarantee),
        parameters=[(k, v) for k, v in model.plan_.parameters.items() if np.ndim(v) == 0],
        domain=_domain_rows(model),
        quality=how_good(model, evaluation),
        weights=_weights(model),
        evaluation="" if evaluation is None else evaluation_section(evaluation),
        budget=None if ledger is None else _budget(ledger, model),
    )
    return page(f"Privacy card: {title}", body)


def _columns(model: Any) -> list[tuple[str, str, str]]:
    """Raw columns of a prepared table: what was declared about them or learnt, and what it became."""
    rows = []
    for _, step in getattr(model, "steps_", []):
        kinds = getattr(step, "kinds_", {})
        for _, part, names in getattr(step, "parts_", []):
            for j, name in enumerate(names):
                learnt = f"learnt to be a {kinds[name]}" if name in kinds else ""
                role = step._roles([name])[name]
                dated = {"dates": True} if isinstance(role, str) and role == "date" else {}
                rows.append((name, learnt, part._fate(j, **dated)))
    return rows


def _proofs(source: str) -> list[tuple[str, str]]:
    """The notes behind a guarantee, in full: a page that is sent by mail has no folder beside it."""
    found = []
    for part in source.split(","):
        name = part.strip().rsplit("/", 1)[-1].removesuffix(".md")
        if name in notes.names():
            found.append((name, notes.read(name)))
    return found


def _steps(g: Guarantee) -> list[tuple[str, str, float]]:
    """Every release with its noise and what it would cost by itself."""
    delta = g.delta if 0.0 < g.delta < 1.0 else 1e-6
    return [(name, str(event), epsilon(event, delta)) for name, event in g.events]


def _summary_rows(g: Guarantee) -> list[tuple[str, Sequence[str]]]:
    """What an officer asks of a promise: question by question, line by line."""
    numbers = [
        f"epsilon: {rounded_up(g.epsilon)}",
        f"delta: {rounded_up(g.delta)}",
        "definition: approximate differential privacy",
        "accounting: adaptive composition; smallest of the proven bounds (accounting.md)",
    ]
    return [
        ("claim", [g.headline]),
        ("privacy loss parameters", numbers),
        ("unit of privacy", [g.unit]),
        ("covers", [g.covers]),
        ("adjacency", [g.neighbours]),
        ("trust model", [TRUST_MODEL]),
        ("mechanisms", ["see the list at the end"]),
        ("randomness", [g.randomness]),
        ("arithmetic and assumptions", g.assumptions or ["none"]),
        ("proof", [g.source]),
        ("cautions", g.cautions or ["none"]),
        ("not protected", NOT_PROTECTED),
    ]


def _stated(value: Any) -> str:
    """A declared fact, numbers without ".0" and not rounded."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_stated, value))
    return show_number(value, 15) if isinstance(value, float) else str(value)


def _domain_rows(model: Any) -> list[tuple[str, str]]:
    facts = plain_facts(model.domain)
    columns, sources = facts.pop("columns", {}), facts.pop("sources", {})
    rows = []
    for name, value in facts.items():
        source = f" (source: {sources[name]})" if name in sources else ""
        rows.append((name, _stated(value) + source))
    for name, stated in columns.items():
        said = [f"{fact} {_stated(value)}" for fact, value in stated.items() if fact != "source"]
        source = f" (source: {stated['source']})" if "source" in stated else ""
        rows.append((f"column {name}", "; ".join(said) + source))
    return rows or [("none", "nothing but what the assumptions say")]


def _weights(model: Any) -> dict[str, Any]:
    """The weights that the card shows, and how many there are."""
    inner = inner_model(model)
    reach = _reach(inner)
    rows = largest_weights(model, 25, reach)
    positive = positive_label(model)
    total = math.prod(inner.coef_.shape)
    return {
        "rows": rows,
        "plot": as_svg(weight_figure(rows[:15], positive), "largest weights") if rows else "",
        "nonzero": inner.n_nonzero_,
        "total": total,
        "bar": noise_bar(total),
        "by_effect": reach is not None,
        "n_clear": clear_weights(model),
        "positive": positive,
    }


def _reach(model: Any) -> np.ndarray | None:
    """The declared size of each raw column, which makes weights comparable; None where columns have one scale."""
    names = feature_names(model)
    bounds = model.domain.bounds
    if bounds is not None and not isinstance(bounds, dict):
        return np.asarray(np.abs(np.array(bounds)).max(axis=1))
    if names is None or not bounds:
        return None
    sizes = {name: max(map(abs, pair)) for name, pair in bounds.items()}
    return np.array([sizes.get(name, 1.0) for name in map(str, names)])


def _budget(ledger: Ledger, model: Any) -> dict[str, Any]:
    entries = ledger.history()
    paid = [e.seq for e in entries if e.event == model.plan_.event]
    spent = ledger.spent()
    return {
        "dataset": ledger.dataset,
        "partition": ledger.partition,
        "terms": ledger.terms,
        "spent": spent,
        "remaining": ledger.remaining(),
        "percent": min(100.0, 100.0 * spent / ledger.terms.epsilon),
        "entries": entries[-50:],
        "paid": paid,
        "n_entries": len(entries),
        "head": ledger.head,
        "verified": ledger.verify(),
    }


def in_words(g: Guarantee) -> list[str]:
    """What the promise means for one person, for a reader without mathematics."""
    if not g.proven:
        return [g.promise]
    odds = likelihood_factor(g.epsilon)
    certain = min(1.0, odds / (1.0 + odds) + g.delta)
    percent = math.ceil(1000.0 * certain) / 10.0
    theirs = "a person's row was" if g.unit == ROW else "a person's rows were"
    return [
        g.promise,
        f"Someone who thinks it equally likely that {theirs} used or not, and who knows "
        f"all other rows, cannot become more than {percent:.1f} % certain by looking at the "
        "model (50 % means nothing was learnt).",
        f"The promise is about {g.covers}.",
        "It holds against everybody, with any other knowledge, and for everything computed from the model later.",
    ]


# ---- how good the model is, in words: the first line of its card ------------------------------------


def how_good(model: Any, evaluation: Report | None) -> str:
    """From a private evaluation if there is one, else what the noise of the weights allows."""
    unknown = "How good the model is was not measured; dp_evaluate or `dpsparse evaluate` does that privately."
    if evaluation is not None:
        unknown = "The evaluation below has no metric that compares it with a constant answer."
    if inner_model(model).n_nonzero_ == 0:
        measured = unknown if evaluation is None else _right(evaluation).strip()
        return f"All weights are zero: every row gets the same answer. {measured}".strip()
    if evaluation is not None and (said := _measured(evaluation)):
        return said
    clear = clear_weights(model)
    if clear is None:
        return unknown
    if clear:
        one = "1 weight stands" if clear == 1 else f"{clear:,} weights stand"
        said = f"The model says more than a constant answer: {one} out of the noise."
    elif stand_out_together(model):
        said = "No single weight stands out of its noise, but all of them together do."
    else:
        said = (
            "No weight stands out of its noise: the model is hardly better than a constant answer."
        )
    return f"{said} {unknown}"


def _measured(report: Report) -> str:
    """Compared with the best constant answer, where the report has what that needs."""
    auc, accuracy, r2 = (report.estimates.get(name) for name in ("auc", "accuracy", "r2"))
    if r2 is not None and report.subject.error_bound < report.subject.target_bound:
        # Errors are clipped and the spread of the targets is not: any model seems to explain all at a small bound.
        bound = report.subject.error_bound
        return f"R2 does not say how good the model is: errors beyond {bound:g} count as that, so it is too large."
    if r2 is not None:
        verdict = _verdict(r2, 0.0, "better than the mean", "the mean")
        share = f"{100 * max(r2.value, 0.0):.0f} % of the variance ({_ends(r2)})"
        return f"The model is {verdict}: it explains {share}."
    if auc is not None and report.subject.n_classes == 2:
        verdict = _verdict(auc, 0.5, "better than a coin at ranking", "a constant answer")
        ranked = f"of two rows of different labels it ranks the right one higher in {100 * auc.value:.0f} %"
        return f"The model is {verdict}: {ranked} ({_ends(auc)}).{_right(report)}"
    return _right(report).strip() if accuracy is not None else ""


def _verdict(score: Any, of_a_constant: float, better: str, constant: str) -> str:
    """Better, hardly better, or not known: a wide interval says nothing against the model."""
    if score.low > of_a_constant:
        return better
    if score.high <= of_a_constant + 0.1:  # so little above a constant answer is hardly better
        return f"hardly better than {constant}"
    return f"perhaps no better than {constant}, as its evaluation is too noisy to tell"


def _right(report: Report) -> str:
    accuracy = report.estimates.get("accuracy")
    if accuracy is None:
        return ""
    text = f" It is right in {100 * accuracy.value:.0f} % of rows ({_ends(accuracy)})"
    counts = report.released.numbers.get("confusion")
    if counts is not None and counts.size:
        shares = np.maximum(counts, 0.0).reshape(report.subject.n_classes, -1).sum(axis=1)
        if shares.sum() > 0.0:
            text += f"; the commonest label alone would be right in {100 * shares.max() / shares.sum():.0f} %"
    return text + "."


def _ends(estimate: Any) -> str:
    low, high = (min(max(100 * end, -100.0), 100.0) for end in (estimate.low, estimate.high))
    return f"{low:.0f} to {high:.0f} %"
