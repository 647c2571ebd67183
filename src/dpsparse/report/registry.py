"""An entry for the public registry of deployments of differential privacy, from a model and its ledger.

What a machine knows (guarantee, mechanisms, domain, accounting) is filled in; what only people know (who, why,
where) is asked for by name. The layout follows the registry's schema (opendp/deployments-registry-data).
"""

from __future__ import annotations

import re
from typing import Any

import dpsparse
from dpsparse._checks import rounded_up, show_number
from dpsparse.accounting import Guarantee
from dpsparse.accounting.guarantee import NOT_PROTECTED, TRUST_MODEL
from dpsparse.accounting.html import describe
from dpsparse.exceptions import ParameterError
from dpsparse.ledger import Ledger

SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
# What only people know: name -> (required, what is asked)
ASKED = {
    "name": (True, "name of the data product"),
    "curators": (True, "who publishes it; several with ;"),
    "description": (True, "what it is, in a sentence or two"),
    "intended_use": (True, "what it is for"),
    "region": (True, "region the data describe, or whose law applies"),
    "publication_date": (True, "date of publication, YYYY-MM-DD"),
    "authors": (True, "who fills in this entry; several with ;"),
    "sector": (False, f"one of {', '.join(SECTORS)}"),
    "actors": (False, "who may see the data and the product, and how far they are trusted"),
    "tuning": (
        False,
        "how preparation and hyper-parameters were chosen, and whether that was paid for",
    ),
    "justification": (False, "why this epsilon, unit and method"),
    "future": (False, "plans for further releases from the same data"),
    "sources": (False, "links to papers and pages about it"),
}


def missing(answers: dict[str, str]) -> list[str]:
    """Names of required answers that are absent or empty."""
    return [
        name
        for name, (required, _) in ASKED.items()
        if required and not answers.get(name, "").strip()
    ]


def registry_entry(
    model: Any, answers: dict[str, str], *, ledger: Ledger | None = None
) -> dict[str, Any]:
    """The entry as plain types, ready for YAML.

    Parameters
    ----------
    model : fitted estimator or pipeline of dpsparse
        Its guarantee must be proven: a registry of promises is no place for a model without one.
    answers : dict
        What only people know; the names are the keys of `dpsparse.report.registry.ASKED`.
    ledger : Ledger or None, default=None
        Of the data set; tells what all releases from it add up to.

    Returns
    -------
    dict
        In the layout of the registry's schema.

    Examples
    --------
    >>> from dpsparse.report.registry import missing
    >>> missing({"name": "Flu model"})[:2]
    ['curators', 'description']
    """
    g: Guarantee = model.privacy_
    if not g.proven:
        raise ParameterError(
            "The model carries no proven guarantee, so there is nothing to register; fit it with random_state=None "
            "and an estimator of dpsparse itself."
        )
    _check_answers(answers)
    answered = {name: text.strip() for name, text in answers.items() if text.strip()}
    complete = all(name in answered for name in ("actors", "tuning", "justification"))
    entry = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", answered["name"].lower()).strip("-") or "entry",
        "status": "Draft",
        "tier": 3 if complete else 2,
        "deployment": {
            "basic": {
                "name": answered["name"],
                "data_curators": _several(answered["curators"]),
                "intended_use": answered["intended_use"],
                "data_product_type": "Machine learning model",
                "data_product_region": answered["region"],
                "description": answered["description"],
                "publication_date": answered["publication_date"],
                "data_product_sector": answered.get("sector"),
            },
            "dp_variant": {
                "variant_name": "Pure DP" if g.delta == 0 else "Approximate DP",
                "data_domain": _domain(model),
                "unprotected_quantities": "Declared public and released as they are: the domain, the number of "
                f"features ({model.n_features_in_}) and every hyper-parameter. Not protected by any noise: "
                + "; ".join(NOT_PROTECTED)
                + ".",
            },
            "privacy_loss": {
                "privacy_unit": g.unit,
                "privacy_unit_details": f"Two tables are adjacent if they differ by: {g.neighbours}."
                + (" The number of units is public." if g.adjacency == "replace-one" else ""),
                "privacy_parameters": {"epsilon": g.epsilon, "delta": g.delta},
                "privacy_parameters_details": f"{g.headline}. Assumptions: "
                + ("; ".join(g.assumptions) or "none beyond the trust model")
                + ".",
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": TRUST_MODEL,
                "actors": answered.get("actors"),
                "release_type": "One release",
                "release_type_details": answered.get("future"),
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Weights are a function of the released numbers; predictions, thresholding and "
                "rounding of the published model cost nothing.",
                "composition": _composition(model, ledger),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": answered.get("tuning"),
                "mechanisms": _mechanisms(model),
                "justification": answered.get("justification"),
            },
            "administrative": {
                "sources": answered.get("sources"),
                "registry_authors": _several(answered["authors"]),
            },
        },
    }
    return _without_gaps(entry)


def _check_answers(answers: dict[str, str]) -> None:
    """Refuse answers that are wrong or missing, all at once."""
    wrong, absent = [], missing(answers)
    unknown = sorted(set(answers) - set(ASKED))
    if unknown:
        wrong.append(f"there is no question {', '.join(unknown)}")
    if answers.get("sector") and answers["sector"] not in SECTORS:
        wrong.append(f"sector must be one of {', '.join(SECTORS)}")
    date = answers.get("publication_date", "")
    if date and not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", date):
        wrong.append("publication_date must be YYYY-MM-DD")
    if wrong or absent:
        asked = [f"please answer {', '.join(absent)}"] if absent else []
        typed = [f"--answer {name}=... is missing ({ASKED[name][1]})" for name in absent]
        raise ParameterError(
            f"The entry is not complete: {'; '.join(wrong + asked)}.",
            in_options=f"The entry is not complete: {'; '.join(wrong + typed)}.",
        )


def _several(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def _without_gaps(value: dict[str, Any]) -> dict[str, Any]:
    """Without questions that nobody answered."""
    kept = {
        k: _without_gaps(v) if isinstance(v, dict) else v for k, v in value.items() if v is not None
    }
    return {key: part for key, part in kept.items() if part != {}}


def _domain(model: Any) -> str:
    domain = getattr(model, "domain", None) or getattr(
        getattr(model, "model_", None), "domain", None
    )
    facts = [] if domain is None else [
        f"{name} = {getattr(domain, name)}"
        for name in ("feature_bound", "row_norm", "target_bound", "weight_bound", "classes", "n_samples",
                     "rows_per_unit")
        if getattr(domain, name) is not None
    ]  # fmt: skip
    return (
        f"Tables of any number of rows with {model.n_features_in_} columns"
        + (f"; every row is made to satisfy {', '.join(facts)}" if facts else "")
        + "."
    )


def _mechanisms(model: Any) -> str:
    g: Guarantee = model.privacy_
    steps = "; ".join(f"{name}: {describe(event)}" for name, event in g.events)
    return (
        f"{name_of(model)}, dpsparse {dpsparse.__version__}. Mechanisms in order: {steps}. Floating point: a "
        "row's contribution is bounded as whole numbers, noise is drawn on a public grid, selections are exact. "
        f"Randomness: {g.randomness}. Timing and memory are not protected. Proof: {g.source}, shipped with the package."
    )


def _composition(model: Any, ledger: Ledger | None) -> str:
    text = f"Adaptive composition inside the fit ({model.plan_.accounting} bound)."
    if ledger is None:
        return text + " Other releases from the same data are not counted here."
    terms = ledger.terms
    return text + (
        f" All releases from this data set are booked before noise is drawn; the account's ceiling is epsilon "
        f"{terms.epsilon:g} at delta {show_number(terms.delta)}, releases on record: {len(ledger.history())}, together "
        f"epsilon {rounded_up(ledger.spent(), 4)}. The ceiling also holds for releases chosen after looking at earlier "
        "ones."
    )


def name_of(model: Any) -> str:
    """What was fitted, in a word or, behind private preparation, in a few."""
    inner = getattr(model, "model_", model)
    behind = (
        f" on {model.n_features_in_:,} privately prepared columns" if inner is not model else ""
    )
    return f"{type(inner).__name__}{behind}"
