"""The privacy card: one self-contained HTML page about one model.

Everything on it is public: the guarantee, the plan, the released weights and, if given, the
ledger's history. The page refers to nothing outside itself.
"""

from __future__ import annotations

import datetime
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

import dpsparse
from dpsparse import proofs as notes
from dpsparse._html import page
from dpsparse.domain_file import plain_facts
from dpsparse.exceptions import ParameterError
from dpsparse.privacy import Guarantee, Ledger, Sequence, epsilon
from dpsparse.privacy.html import describe, rounded_up, show
from dpsparse.report import plots
from dpsparse.report.annex import in_words
from dpsparse.report.evaluation import evaluation_section
from dpsparse.report.template import filled

if TYPE_CHECKING:
    from dpsparse.evaluation.report import Report

SHOWN_WEIGHTS = 25
SHOWN_ENTRIES = 50


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
    title : str
        Heading, for instance the file name; the estimator's name by default.
    ledger : Ledger or None
        Adds what was spent on the data set the model was trained on.
    evaluation : Report or None
        Of `dp_evaluate` on this model; adds how good the model is, and what that has cost.
    checksum : str
        Of the model file (SHA-256), so that a reader can tell that the page is about that file.

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
    inner = getattr(model, "model_", model)  # of a pipeline: the estimator behind its preparation
    if evaluation is not None and evaluation.model != type(inner).__name__:
        raise ParameterError(
            f"evaluation is about another model ({evaluation.model}); pass dp_evaluate(model, ...) of this one."
        )
    guarantee: Guarantee = model.privacy_
    title = title or type(model).__name__
    body = filled(
        "card",
        title=title,
        estimator=type(inner).__name__ + ("" if inner is model else " behind private preparation"),
        written=datetime.datetime.now(datetime.UTC).strftime("%d %B %Y"),
        about={"data": "", "target": "", "fitted": "", **(getattr(model, "about_", None) or {})},
        checksum=checksum,
        prices=_prices(model, evaluation),
        columns=_columns(model),
        proofs=_proofs(guarantee.source),
        version=dpsparse.__version__,
        g=guarantee,
        words=in_words(guarantee),
        summary=_summary_rows(guarantee),
        steps=[(name, describe(event)) for name, event in guarantee.events],
        cost_plot=_cost_plot(guarantee),
        parameters=[(k, v) for k, v in model.plan_.parameters.items() if np.ndim(v) == 0],
        domain=_domain_rows(model),
        scales=getattr(model, "scales_", None) or {},
        weights=_weights(inner),
        evaluation="" if evaluation is None else evaluation_section(evaluation),
        budget=None if ledger is None else _budget(ledger, model),
    )
    return page(f"Privacy card: {title}", body)


def _prices(model: Any, evaluation: Report | None) -> list[tuple[str, float]]:
    """What preparation, fit and evaluation would each cost by themselves at the delta of the whole."""
    g: Guarantee = model.privacy_
    if not g.events or not 0.0 < g.delta < 1.0:
        return []
    fit = {name for name, _ in getattr(model, "model_", model).privacy_.events}
    parts = [("preparation", [e for name, e in g.events if name not in fit])]
    parts.append(("fit", [e for name, e in g.events if name in fit]))
    out = [(name, epsilon(Sequence(tuple(events)), g.delta)) for name, events in parts if events]
    if evaluation is not None:
        out.append(("evaluation, on top", evaluation.plan_.guarantee.epsilon))
    return out


def _columns(model: Any) -> list[tuple[str, str, str]]:
    """Raw columns of a prepared table: what was declared about them or learnt, and what it became."""
    rows = []
    for _, step in getattr(model, "steps_", []):
        kinds = getattr(step, "kinds_", {})
        for _, part, names in getattr(step, "parts_", []):
            for j, name in enumerate(names):
                learnt = f"learnt to be a {kinds[name]}" if name in kinds else ""
                rows.append((name, learnt, _fact(part, j)))
    return rows


def _fact(part: Any, j: int) -> str:
    if hasattr(part, "categories_"):
        known = part.categories_[j]
        told = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        how = "declared" if part._declares else "released"
        return f"{how} categories: {told or 'none'}; all others are one"
    if hasattr(part, "center_"):
        low, high = part.center_[j] - part.reach_[j], part.center_[j] + part.reach_[j]
        how = "declared bounds" if part._declares else "released range"
        return f"{how} {low:.6g} to {high:.6g}, brought to -1 to 1"
    if hasattr(part, "vocabulary_"):
        return f"released vocabulary of {len(part.vocabulary_)} words"
    return "by a public hash"


def _proofs(source: str) -> list[tuple[str, str]]:
    """The notes behind a guarantee, in full: a page that is sent by mail has no folder beside it."""
    found = []
    for part in source.split(","):
        name = part.strip().rsplit("/", 1)[-1].removesuffix(".md")
        if name in notes.names():
            found.append((name, notes.read(name)))
    return found


def _summary_rows(g: Guarantee) -> list[tuple[str, list[str]]]:
    """The summary of a guarantee, flattened to (question, lines)."""
    rows = []
    for key, value in g.to_dict()["summary"].items():
        if isinstance(value, dict):
            lines = [
                f"{name.replace('_', ' ')}: {rounded_up(part) if isinstance(part, float) else part}"
                for name, part in value.items()
            ]
        elif isinstance(value, list):
            lines = [str(part) for part in value]
        else:
            lines = [str(value)]
        if key == "mechanisms":
            lines = [f"{name}: {describe(event)}" for name, event in g.events]
        rows.append((key.replace("_", " "), lines or ["none"]))
    return rows


def _cost_plot(g: Guarantee) -> str:
    if not g.events:
        return ""
    delta = g.delta if 0.0 < g.delta < 1.0 else 1e-6
    costs = [epsilon(event, delta) for _, event in g.events]
    total = g.epsilon if g.proven else math.inf
    return plots.cost_bars([name for name, _ in g.events], costs, total)


def _domain_rows(model: Any) -> list[tuple[str, str]]:
    domain = model.domain
    names = ("feature_bound", "row_norm", "target_bound", "target_range", "classes", "n_samples")
    stated = [(name, getattr(domain, name)) for name in names]
    sources = domain.sources or {}
    rows = [
        (name, ", ".join(map(str, value)) if isinstance(value, tuple) else show(value))
        for name, value in stated
        if value is not None
    ]
    columns = plain_facts(domain).get("columns", {})
    rows += [
        (
            f"column {name}",
            "; ".join(
                f"{fact} {', '.join(map(str, value)) if isinstance(value, list) else value}"
                for fact, value in facts.items()
                if fact != "source"
            ),
        )
        for name, facts in columns.items()
    ]
    known = [(name, f"{text} (source: {sources[key]})" if (key := name.removeprefix("column ")) in sources else text)
             for name, text in rows]  # fmt: skip
    return known or [("none", "nothing but what the assumptions say")]


def coef_noise(model: Any) -> np.ndarray | None:
    """Standard deviation of the noise in each weight, where the method states it (`coef_noise_`)."""
    noise = getattr(model, "coef_noise_", None)
    if noise is None:
        return None
    return np.broadcast_to(np.asarray(noise, dtype=np.float64), _coef(model).shape)


def _coef(model: Any) -> sp.coo_array:
    coef = model.coef_
    coef = sp.coo_array(np.atleast_2d(coef) if isinstance(coef, np.ndarray) else coef)
    coef.eliminate_zeros()
    return coef


def _names(model: Any) -> Any:
    names = getattr(model, "feature_names_", None)
    return getattr(model, "feature_names_in_", None) if names is None else names


def noise_bar(n_weights: int) -> float:
    """Among so many weights of pure noise the largest is about this many standard deviations; a weight
    above it is told from noise even though it was picked for being large."""
    return math.sqrt(2.0 * math.log(max(n_weights, 2)))


def largest_weights(model: Any, top: int, reach: np.ndarray | None = None) -> list[dict[str, Any]]:
    """The largest weights, by size or by effect, with their names; those that stand out from their noise come
    first: a column that hardly any row has may get a large weight of pure noise."""
    coef, noise, names = _coef(model), coef_noise(model), _names(model)
    bar = noise_bar(math.prod(coef.shape))
    sds = None if noise is None else noise[coef.row, coef.col]
    effects = coef.data * (1.0 if reach is None else reach[coef.col])
    noisy = np.zeros(coef.nnz, bool) if sds is None else np.abs(coef.data) <= bar * sds
    rows: list[dict[str, Any]] = []
    for k in np.lexsort((-np.abs(effects), noisy))[:top]:
        j = int(coef.col[k])
        name = f"feature {j}" if names is None else str(names[j])
        if coef.shape[0] > 1:
            name += f" ({model.classes_[coef.row[k]]})"
        rows.append(
            {
                "name": name,
                "value": float(coef.data[k]),
                "effect": None if reach is None else float(effects[k]),
                "noise": None if sds is None else float(sds[k]),
                "stands_out": None if sds is None else not noisy[k],
            }
        )
    return rows


def _weights(model: Any) -> dict[str, Any]:
    """The weights that the card shows, and how many there are."""
    coef, noise = _coef(model), coef_noise(model)
    reach = _reach(model)
    total = math.prod(coef.shape)
    bar = noise_bar(total)
    rows = largest_weights(model, SHOWN_WEIGHTS, reach)
    plotted = rows[:15]
    plot = ""
    if plotted:
        plot = plots.weight_dots(
            [_short(row["name"]) for row in plotted],
            [row["value"] for row in plotted],
            None if noise is None else [row["noise"] for row in plotted],
        )
    clear = None if noise is None else np.abs(coef.data) > bar * noise[coef.row, coef.col]
    return {
        "rows": rows,
        "plot": plot,
        "nonzero": coef.nnz,
        "total": total,
        "bar": bar,
        "by_effect": reach is not None,
        "n_clear": None if clear is None else int(np.count_nonzero(clear)),
    }


def _reach(model: Any) -> np.ndarray | None:
    """The declared size of each raw column, which makes weights comparable; None where columns have one scale."""
    names = _names(model)
    scales, bounds = getattr(model, "scales_", None) or {}, model.domain.bounds
    if bounds is not None and not isinstance(bounds, dict):
        return np.asarray(np.abs(np.array(bounds)).max(axis=1))
    if names is None or not (scales or bounds):
        return None
    sizes = {name: max(map(abs, pair)) for name, pair in (bounds or {}).items()}
    return np.array([abs(scales.get(n, sizes.get(n, 1.0))) for n in map(str, names)])


def _short(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"


def _budget(ledger: Ledger, model: Any) -> dict[str, Any]:
    entries = ledger.history()
    paid = [e.seq for e in entries if e.event == model.plan_.event]
    spent = ledger.spent()
    ceiling = ledger.terms.epsilon
    return {
        "dataset": ledger.dataset,
        "partition": ledger.partition,
        "terms": ledger.terms,
        "spent": spent,
        "remaining": ledger.remaining(),
        "percent": min(100.0, 100.0 * spent / ceiling),
        "entries": entries[-SHOWN_ENTRIES:],
        "paid": paid,
        "n_entries": len(entries),
        "plot": plots.budget_steps([e.total for e in entries], ceiling) if len(entries) > 1 else "",
        "head": ledger.head,
        "verified": ledger.verify(),
    }
