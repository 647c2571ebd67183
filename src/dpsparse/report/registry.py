"""A draft of an entry for the public registry of deployments of differential privacy, from a model and its ledger.

What a machine knows (guarantee, mechanisms, domain, accounting) is filled in; what only people know (who, why, where)
stands in the draft as empty fields with a question. The layout follows opendp/deployments-registry-data.
"""

from __future__ import annotations

from typing import Any

import dpsparse
from dpsparse._checks import rounded_up, show_number
from dpsparse.accounting import Guarantee
from dpsparse.accounting.guarantee import NOT_PROTECTED, TRUST_MODEL
from dpsparse.domain.file import plain_facts
from dpsparse.exceptions import ParameterError
from dpsparse.ledger import Ledger
from dpsparse.report.template import filled
from dpsparse.report.weights import inner_model


def registry_entry(model: Any, *, ledger: Ledger | None = None) -> str:
    """The draft as YAML.

    Parameters
    ----------
    model : fitted estimator or pipeline of dpsparse
        Its guarantee must be proven: a registry of promises is no place for a model without one.
    ledger : Ledger or None, default=None
        Of the data set; tells what all releases from it add up to.

    Returns
    -------
    str
        YAML in the layout of the registry's schema, with empty fields for what only people know.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> from dpsparse.report import registry_entry
    >>> model = DPGradientClassifier(Domain(classes=[0, 1])).fit([[0.1, 0.2], [0.3, 0.1]] * 50, [0, 1] * 50)
    >>> 'name: ""  # name of the data product' in registry_entry(model)
    True
    """
    g: Guarantee = model.privacy_
    if not g.proven:
        raise ParameterError(
            "The model carries no proven guarantee, so there is nothing to register; fit it with random_state=None "
            "and an estimator of dpsparse itself."
        )
    return filled(
        "registry.yaml",
        g=g,
        epsilon=_yaml_number(g.epsilon),
        delta=_yaml_number(g.delta),
        domain=_domain(model),
        unprotected="Declared public and released as they are: the domain, the number of features "
        f"({model.n_features_in_}) and every hyper-parameter. Not protected by any noise: {'; '.join(NOT_PROTECTED)}.",
        unit_details=f"Two tables are adjacent if they differ by: {g.neighbours}."
        + (" The number of units is public." if g.adjacency == "replace-one" else ""),
        details=f"{g.headline}. Assumptions: "
        + ("; ".join(g.assumptions) or "none beyond the trust model")
        + ".",
        trust=TRUST_MODEL,
        composition=_composition(model, ledger),
        mechanisms=_mechanisms(model),
    )


def _yaml_number(value: float) -> str:
    """YAML 1.1 takes 1e-06 for a text."""
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


def _domain(model: Any) -> str:
    facts = plain_facts(model.domain)
    stated = [
        f"{name} = {value}" for name, value in facts.items() if name not in ("columns", "sources")
    ]
    return (
        f"Tables of any number of rows with {model.n_features_in_} columns"
        + (f"; every row is made to satisfy {', '.join(stated)}" if stated else "")
        + "."
    )


def _mechanisms(model: Any) -> str:
    g: Guarantee = model.privacy_
    inner = inner_model(model)
    behind = (
        f" on {model.n_features_in_:,} privately prepared columns" if inner is not model else ""
    )
    steps = "; ".join(f"{name}: {event}" for name, event in g.events)
    return (
        f"{type(inner).__name__}{behind}, dpsparse {dpsparse.__version__}. Mechanisms in order: {steps}. "
        "Floating point: a row's contribution is bounded as whole numbers, noise is drawn on a public grid, "
        f"selections are exact. Randomness: {g.randomness}. Timing and memory are not protected. "
        f"Proof: {g.source}, shipped with the package."
    )


def _composition(model: Any, ledger: Ledger | None) -> str:
    text = "Adaptive composition inside the fit."
    if ledger is None:
        return text + " Other releases from the same data are not counted here."
    terms, entries = ledger.terms, ledger.history()
    if all(entry.event != model.plan_.event for entry in entries):
        text += " No entry of the account below has the plan of this model: another account paid for it, or none."
    return text + (
        f" All releases from this data set are booked before noise is drawn; the account's ceiling is epsilon "
        f"{terms.epsilon:g} at delta {show_number(terms.delta)}, releases on record: {len(entries)}, together "
        f"epsilon {rounded_up(ledger.spent(), 4)}. The ceiling also holds for releases chosen after looking at earlier "
        "ones."
    )
