"""An organisation's limits, in a file (docs/budget.md) that the ledger enforces before anything is spent.

A ledger obeys every policy it finds: the one named by DPSPARSE_POLICY, and the one beside its file
(`budget.db.policy.toml`). So nobody escapes a policy by bringing another one. It is read again at every reservation.

A limit on a data set is a limit on the account's *ceiling*, not on what happens to be spent: only the ceiling holds for
prices that are chosen after looking at results (docs/proofs/ledger.md).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpsparse._checks import ADJACENCIES, show_number
from dpsparse._json import read_toml
from dpsparse.accounting.guarantee import Plan
from dpsparse.exceptions import LedgerError
from dpsparse.ledger.book import UNITS, check_name
from dpsparse.ledger.filter import Terms


@dataclass(frozen=True)
class Policy:
    """The limits of one file; `refusal` names the first that a plan would break."""

    name: str
    release: Mapping[str, Any] = field(default_factory=dict)
    dataset: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        """The policy in a TOML file; one that cannot be read or says something unknown is no permission."""
        place = Path(path)
        try:
            record = read_toml(place)
        except OSError as error:
            raise LedgerError(
                f"The policy {place.name} cannot be read: {error.strerror}."
            ) from None
        except ValueError as error:
            raise LedgerError(f"The policy {place.name} is no TOML: {error}") from None
        account = {"epsilon", "delta", "adjacency", "unit"}
        release = {"epsilon", "delta", "methods"}
        tables = {"release": release, "dataset": account, "datasets": account}
        for table, part in record.items():
            if table not in tables or not isinstance(part, dict):
                raise LedgerError(
                    f"The policy {place.name} has {table!r}; known are the tables release, dataset and datasets.NAME."
                )
            parts = part if table == "datasets" else {table: part}
            for where, limits in parts.items():
                _check_limits(place.name, where, limits, tables[table])
        accounts = record.pop("datasets", {})
        named = {_account_name(place.name, name): limits for name, limits in accounts.items()}
        if len(named) < len(accounts):
            raise LedgerError(
                f"The policy {place.name} names one data set twice; case does not count."
            )
        return cls(place.name, **record, datasets=named)

    def refusal(self, plan: Plan, dataset: str, terms: Terms) -> str | None:
        """Why this policy forbids `plan` on the account of `dataset`, or None."""
        price = plan.guarantee.epsilon
        for name, asked in (("epsilon", price), ("delta", plan.delta)):
            limit = self.release.get(name, math.inf)
            if asked > limit:
                return (
                    f"The policy {self.name} allows a release {name} {show_number(limit)} at most, and {plan.method} "
                    f"asks {asked:.4g}. Nothing was spent."
                )
        for method in _methods_of(plan):
            allowed = self.release.get("methods", [method])
            if method not in allowed:
                return (
                    f"The policy {self.name} does not allow {method}; it allows {', '.join(allowed)}. "
                    "Nothing was spent."
                )
        return self.refuses_account(dataset, terms)

    def refuses_account(self, dataset: str, terms: Terms) -> str | None:
        """Why this policy forbids an account with these terms, or None."""
        stated = {
            "epsilon": terms.epsilon,
            "delta": terms.delta,
            "adjacency": terms.adjacency,
            "unit": {text: name for name, text in UNITS.items()}[terms.unit],
        }
        for limits in (self.dataset, self.datasets.get(dataset, {})):
            for name, limit in limits.items():
                number = name in ("epsilon", "delta")
                if stated[name] > limit if number else stated[name] != limit:
                    want = f"{show_number(limit)} at most" if number else repr(limit)
                    return (
                        f"The policy {self.name} asks {name} {want} of the account of data set {dataset!r}, which "
                        f"has {stated[name]!r}. Nothing was spent. Open another account within the policy."
                    )
        return None


def _methods_of(plan: Plan) -> list[str]:
    """A plan's method and those inside it: `DPSearchCV(DPPipeline(DPLassoClassifier))` has three."""
    named = re.findall(r"\b(?:DP|dp_)\w+", plan.method) or [plan.method]
    return [*named, plan.parameters.get("model", named[-1])]


def policies(book: str | None) -> list[Policy]:
    """Every policy that binds a ledger at this address: named by the environment, beside its file."""
    named = os.environ.get("DPSPARSE_POLICY")
    places = [Path(named)] if named else []
    if book is not None and "://" not in book:
        beside = Path(f"{os.path.realpath(book)}.policy.toml")  # of the file, by any of its names
        places += [beside] if beside.exists() else []
    return [Policy.read(place) for place in places]


def _account_name(file: str, name: str) -> str:
    """A limit on an account that nobody can open would limit nothing."""
    try:
        return check_name("dataset", name)
    except LedgerError as error:
        raise LedgerError(
            f"The policy {file} has a name that no account can have: {error}"
        ) from None


def _check_limits(file: str, where: str, limits: Any, known: set[str]) -> None:
    if not isinstance(limits, dict) or set(limits) - known:
        raise LedgerError(
            f"The policy {file} may state {', '.join(sorted(known))} under {where}, and nothing else."
        )
    for name, value in limits.items():
        right = {
            "methods": isinstance(value, list) and all(isinstance(item, str) for item in value),
            "adjacency": value in ADJACENCIES,
            "unit": value in UNITS if isinstance(value, str) else False,
        }.get(name, isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0)
        if not right:
            raise LedgerError(f"The policy {file} has no valid {name} under {where}: {value!r}.")
