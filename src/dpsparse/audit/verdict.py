"""All attacks on one private run, and what they refute.

    replay      sensitivities, counts and control flow under the same history     replay.py
    rebuild     does everything follow from public facts and released answers     transcript.py
    noise       does the noise follow its declared law                            noise.py
    exact law   the privacy profile of the whole history on a bad pair            law.py
    black box   counted models on the worst of the known bad pairs                blackbox.py

Replay and rebuild take runs of any kind; the others fits of a model. A proof is refuted by any complaint of the
first three; an epsilon by a confidence bound above it. The last two are given `confidence` between them, so "refuted"
is wrong with probability at most 1 - confidence; the noise tests use a level of 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpsparse._checks import show_number
from dpsparse.accounting import delta as claimed_delta
from dpsparse.audit import law
from dpsparse.audit.blackbox import black_box
from dpsparse.audit.noise import find_wrong_noise
from dpsparse.audit.replay import check_subject, loudest
from dpsparse.audit.subject import Subject
from dpsparse.audit.transcript import rebuild


@dataclass(frozen=True)
class Row:
    """One attack: the epsilon it refutes (0 if none), whether the claim holds, and what it saw."""

    attack: str
    refuted: float
    holds: bool
    detail: str

    @property
    def verdict(self) -> str:
        return "holds" if self.holds else "REFUTED"


@dataclass(frozen=True)
class Verdict:
    """The table of an audit."""

    method: str
    adjacency: str
    claimed: float
    delta: float
    confidence: float
    rows: tuple[Row, ...]

    @property
    def holds(self) -> bool:
        return all(row.holds for row in self.rows)

    def __str__(self) -> str:
        head = (
            f"{self.method} ({self.adjacency}) claims "
            f"epsilon = {self.claimed:g} at delta = {show_number(self.delta)}: "
            + ("not refuted" if self.holds else "REFUTED")
        )
        lines = [head, f"{'attack':<12}{'claimed':>9}{'refuted':>9}  verdict   detail"]
        lines += [
            f"{row.attack:<12}{self.claimed:>9.3g}{row.refuted:>9.3g}  {row.verdict:<9} {row.detail}"
            for row in self.rows
        ]
        return "\n".join(lines)


def audit(
    estimator: Any,
    n_features: int = 4,
    *,
    n_runs: int = 2000,
    confidence: float = 0.999,
    seed: int = 0,
) -> Verdict:
    """Attack an estimator, a search or a feature test; its parameters state the claim, its plan the mechanisms.

    `n_runs` models are fitted on either table for the black box, a quarter as many for the law.
    """
    return audit_subject(Subject(estimator, n_features), n_runs, confidence, seed)


def audit_subject(
    subject: Subject,
    n_runs: int,
    confidence: float,
    seed: int,
    tell: Callable[[str, float], None] = lambda attack, done: None,
) -> Verdict:
    """`audit` of a private run of any kind. `tell` is called with the attack that begins, and 0."""
    plan, each = subject.plan, 1.0 - (1.0 - confidence) / 2.0
    attacks: dict[str, Callable[[], Row]] = {
        "replay": partial(_replay_row, subject, seed),
        "rebuild": partial(_rebuild_row, subject, seed),
    }
    if subject.is_model:
        n_noise, n_law = max(25, n_runs // 8), max(50, n_runs // 4)
        attacks["law of the noise"] = partial(_noise_row, subject, n_noise, seed)
        attacks["exact law"] = partial(_exact_law_row, subject, n_law, each, seed)
    rows: list[Row] = []
    for name, attack in attacks.items():
        if plan.proven and all(row.holds for row in rows):
            tell(name, 0.0)
            rows.append(attack())
    if subject.is_model:
        tell("black box", 0.0)
        rows.append(_black_box_row(subject, n_runs, each, seed))
    facts = plan.method, plan.adjacency, subject.claimed, plan.delta
    return Verdict(*facts, confidence, tuple(rows))


def _proof_row(attack: str, complaint: str, detail: str) -> Row:
    """The line of an attack on a proof: a complaint refutes every epsilon."""
    return Row(attack, math.inf if complaint else 0.0, not complaint, complaint or detail)


def _replay_row(subject: Subject, seed: int) -> Row:
    # A search has many phases; pairs without climbs move every query as far, or nearly.
    how = {"every": 1} if subject.is_model else {"n_rows": 40, "n_climbs": 0}
    finding = check_subject(subject, seed=seed, **how)
    reached = ", ".join(f"{kind} {100 * x:.0f} %" for kind, x in finding.tightness.items())
    detail = f"reached of the declared sensitivity: {reached}"
    return _proof_row("replay", finding.first_complaint, detail)


def _rebuild_row(subject: Subject, seed: int) -> Row:
    found = rebuild(subject.show, *subject.schema.tables(seed=seed))
    return _proof_row("rebuild", "" if found.holds else str(found), str(found))


def _noise_row(subject: Subject, n_runs: int, seed: int) -> Row:
    complaint, p_value = find_wrong_noise(subject, n_runs, seed)
    return _proof_row("noise", complaint, f"smallest p-value {p_value:.2g}")


def _exact_law_row(subject: Subject, n_runs: int, confidence: float, seed: int) -> Row:
    claimed, event, pair = subject.claimed, subject.plan.event, loudest(subject, seed)
    losses = law.privacy_losses(subject, pair, n_runs, seed)
    grid = claimed * np.array([0.25, 0.5, 0.75, 1.0])
    below = law.delta_below(losses, grid, confidence)
    claims = np.array([claimed_delta(event, float(e)) for e in grid])
    reached = law.epsilon_below(losses, subject.plan.delta, confidence)
    holds = reached <= claimed and bool((below <= claims).all())
    detail = (
        f"{n_runs} histories, {pair.name}: delta({grid[1]:.3g}) is at least "
        f"{below[1]:.2g}, claimed {claims[1]:.2g}"
    )
    return Row("exact law", reached, holds, detail)


def _black_box_row(subject: Subject, n_runs: int, confidence: float, seed: int) -> Row:
    result, name = black_box(subject, n_runs, subject.plan.delta, confidence, seed)
    detail = (
        f"{n_runs} models a table, {name}: fired {result.hits}/{result.n_hits} "
        f"against {result.false_alarms}/{result.n_false}"
    )
    return Row("black box", result.epsilon, result.epsilon <= subject.claimed, detail)
