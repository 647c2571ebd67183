"""An entry for the public registry of deployments of differential privacy, from a model and its ledger.

What a machine knows (guarantee, mechanisms, domain, accounting) is filled in; what only people know (who, why,
where) is asked for by name. The layout follows the registry's schema (opendp/deployments-registry-data); `missing` and
`problems` know the part of it that is used here, and `dpsparse registry --schema FILE` checks the whole entry.
"""

from __future__ import annotations

import re
from typing import Any

import dpsparse
from dpsparse._checks import rounded_up, show_number
from dpsparse._json import readable
from dpsparse.accounting import Guarantee
from dpsparse.accounting.guarantee import NOT_PROTECTED, TRUST_MODEL
from dpsparse.accounting.html import describe
from dpsparse.exceptions import ParameterError
from dpsparse.ledger import Ledger
from dpsparse.report.annex import name_of

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


def problems(answers: dict[str, str]) -> list[str]:
    """What is wrong with the answers that were given, one sentence each."""
    found = []
    unknown = sorted(set(answers) - set(ASKED))
    if unknown:
        found.append(f"there is no question {', '.join(unknown)}")
    if answers.get("sector") and answers["sector"] not in SECTORS:
        found.append(f"sector must be one of {', '.join(SECTORS)}")
    date = answers.get("publication_date", "")
    if date and not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", date):
        found.append("publication_date must be YYYY-MM-DD")
    return found


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
    ledger : Ledger or None
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
    absent = missing(answers)
    wrong = problems(answers) + ([f"please answer {', '.join(absent)}"] if absent else [])
    if wrong:
        raise ParameterError(f"The entry is not complete: {'; '.join(wrong)}.")
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


def to_yaml(value: Any, indent: int = 0) -> str:
    """Plain types as YAML: block mappings, texts in double quotes as JSON writes them, which YAML reads alike."""
    pad = "  " * indent
    if isinstance(value, dict):
        lines = []
        for key, part in value.items():
            nested = isinstance(part, (dict, list))
            lines.append(
                f"{pad}{key}:"
                + (f"\n{to_yaml(part, indent + 1)}" if nested else f" {_scalar(part)}")
            )
        return "\n".join(lines)
    if isinstance(value, list):
        return "\n".join(f"{pad}- {_scalar(part)}" for part in value)
    return pad + _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, float):  # YAML 1.1 reads 1e-06 as a text
        text = repr(value)
        mantissa, mark, exponent = text.partition("e")
        return (
            text if not mark else f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
        )
    return readable(value)


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
        for name in ("feature_bound", "row_norm", "target_bound", "classes", "n_samples", "rows_per_unit")
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
