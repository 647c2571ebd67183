"""For families that do not go through `Releases` yet; goes, with `twins.py`, when none is left.

A tape of every mechanism of a fit: what was asked, what was answered, and how to force answers.

A solver may look at private rows as it likes, but whatever leaves it must go through a mechanism.
The mechanisms are few functions; while a tape is installed each of them is replaced by a twin that
writes an `Entry`. With a `script` (the entries of an earlier run) the twin still computes the query
on the rows it is given but answers what the script says. So two runs on neighbouring tables can be
compared at every mechanism under the same released history.

    noise functions     gumbel returns an array that notices what it is added to
    Frank-Wolfe         the compiled solvers release a history; scores are recomputed along it

Everything a solver writes in Python is seen; draws inside compiled kernels are seen through the
function that calls the kernel. `replay.py` fails an estimator whose plan has more than the tape.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpsparse.audit import recorded, twins
from dpsparse.audit.recorded import ControlFlowError
from dpsparse.estimators._base import BaseDPLinearModel
from dpsparse.privacy.plan import Plan

ROUNDING = 1e-6  # queries are recomputed in float64, from entries that may be stored in float32


def needs_tape(estimator: Any) -> bool:
    """Whether a family still draws its noise by itself."""
    return type(estimator)._run is BaseDPLinearModel._run


@dataclass
class Entry:
    """One answer of one mechanism."""

    kind: str  # "gumbel", "noisy max" or "count"
    scale: float  # of the noise; 1 for gumbel, whose query is kappa * score
    query: np.ndarray
    output: np.ndarray  # query + noise; private for gumbel, where only the picks leave
    noise: np.ndarray  # as drawn, for tests of its law; empty where it cannot be seen
    picks: np.ndarray = field(default_factory=lambda: np.empty(0, np.intp))
    paid: int = 0  # selections paid for, where fewer may show: a null candidate ends the picks
    history: Any = None  # what a compiled solver released around this entry

    @property
    def cost(self) -> int:
        """How many declared mechanisms this entry stands for: a top-k is k selections."""
        return self.paid or max(1, len(self.picks))


class Tape:
    """Records a run, or replays `script` while recording the queries of another run."""

    def __init__(self, script: list[Entry] | None = None) -> None:
        self.script = script
        self.entries: list[Entry] = []
        self.complaints: list[str] = []
        self.last_integer: int | None = None  # geometric noise of a count under way
        self.n_picks = 1  # of the selection under way
        self.null: float | None = None  # key of its null candidate
        self._open: Noise | None = None
        self._muted = False

    # ---- what twins call ------------------------------------------------------------------------

    def settle(self, entry: Entry) -> Entry:
        """Append an entry; on a replay its output and picks become those of the script."""
        at = len(self.entries)
        if self.script is not None:
            if at >= len(self.script):
                raise ControlFlowError(f"mechanism {at + 1} exists on the neighbour only")
            past = self.script[at]
            if past.kind != entry.kind or past.query.shape != entry.query.shape:
                raise ControlFlowError(
                    f"mechanism {at + 1} is {past.kind}{past.query.shape} on one table and "
                    f"{entry.kind}{entry.query.shape} on its neighbour"
                )
            entry.output, entry.picks, entry.noise = past.output, past.picks, past.noise
            entry.history = past.history
        self.entries.append(entry)
        return entry

    def noise(self, kind: str, scale: float, values: np.ndarray) -> np.ndarray:
        """`values` as an array that reports what it is added to."""
        if self._muted or not scale > 0:
            return values
        self.close()
        at = len(self.entries)
        if self.script is not None and at < len(self.script):
            past = self.script[at]
            if past.kind == kind and past.noise.size == values.size:
                values = past.noise.reshape(values.shape)
        out = values.copy().view(Noise)
        out.tape, out.n_picks = self, self.n_picks
        out.entry = Entry(kind, scale, np.empty(0), np.empty(0), values.ravel())
        self._open = out
        return out

    def past(self) -> Entry | None:
        """The script's entry for the mechanism to come; None while recording."""
        if self.script is None:
            return None
        if len(self.entries) >= len(self.script):
            raise ControlFlowError("a mechanism runs on the neighbour only")
        return self.script[len(self.entries)]

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Noise inside is part of a mechanism that is recorded as a whole."""
        self._muted = True
        try:
            yield
        finally:
            self._muted = False

    @contextmanager
    def picking(self, n_picks: int, null: float | None = None) -> Iterator[None]:
        """Gumbel noise inside stands for `n_picks` selections without replacement.

        The last draw may belong to a null candidate with the public key `null`; it ends the picks.
        """
        self.close()
        self.n_picks, self.null = n_picks, null
        try:
            yield
            self.close()
        finally:
            self.n_picks, self.null = 1, None

    def close(self) -> None:
        """Finish the noise under way: all its parts have met their queries by now."""
        if self._open is None:
            return
        entry, n_picks = self._open.entry, self._open.n_picks
        self._open = None
        if not entry.query.size:
            raise ControlFlowError(f"{entry.kind} noise was drawn and never added to a query")
        if entry.kind == "gumbel" and self.null is not None:
            entry.query = np.append(entry.query, self.null)
            entry.output = np.append(entry.output, self.null + entry.noise[-1])
        if entry.kind == "gumbel":
            entry.picks = np.argsort(-entry.output, kind="stable")[:n_picks]
            if self.null is not None:
                ends = np.flatnonzero(entry.picks == entry.query.size - 1)
                entry.picks = entry.picks[: ends[0] + 1] if ends.size else entry.picks
                entry.paid = n_picks
        self.settle(entry)

    def forced(self, entry: Entry, start: int, stop: int) -> np.ndarray | None:
        """What the script says the next part of an open entry came out as."""
        at = len(self.entries)
        if self.script is None or at >= len(self.script):
            return None
        past = self.script[at]
        if past.kind != entry.kind or past.output.size < stop:
            return None
        return past.output[start:stop]

    # ---- installing -----------------------------------------------------------------------------

    @contextmanager
    def installed(self) -> Iterator[Tape]:
        """Put the twins in the place of the mechanisms in every loaded module of ours."""
        undo: list[tuple[Any, str, Any]] = []
        try:
            for owner, name, original in twins.methods():
                undo.append((owner, name, original))
                setattr(owner, name, twins.make(name, original, self))
            twin = {id(door): twins.make(name, door, self) for name, door in twins.functions()}
            for module in _our_modules():
                for attribute, value in list(vars(module).items()):
                    if id(value) in twin:
                        undo.append((module, attribute, value))
                        setattr(module, attribute, twin[id(value)])
            yield self
            self.close()
        finally:
            for owner, attribute, original in undo:
                setattr(owner, attribute, original)


class Noise(np.ndarray):
    """Noise that notices the query it is added to, in one piece or part by part."""

    tape: Tape
    entry: Entry
    n_picks: int

    def __array_finalize__(self, parent: Any) -> None:
        for name in ("tape", "entry", "n_picks"):
            setattr(self, name, getattr(parent, name, None))

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **rest: Any
    ) -> Any:
        plain = [np.asarray(x) if isinstance(x, Noise) else x for x in inputs]
        if out is not None:
            rest["out"] = tuple(np.asarray(x) if isinstance(x, Noise) else x for x in out)
        where = [i for i, x in enumerate(inputs) if isinstance(x, Noise)]
        adds = method == "__call__" and ufunc in (np.add, np.subtract) and len(where) == 1
        current = self.tape is not None and self.tape._open is not None
        if not (adds and current and self.tape._open.entry is self.entry):  # type: ignore[union-attr]
            return getattr(ufunc, method)(*plain, **rest)
        query = np.broadcast_to(np.asarray(plain[1 - where[0]], float), self.shape).ravel()
        value = np.asarray(ufunc(*plain), float)
        minus = ufunc is np.subtract
        turned = minus and where[0] == 1  # query - noise is shown as noise - query
        entry, start = self.entry, self.entry.query.size
        entry.query = np.append(entry.query, -query if minus else query)
        shown = -value.ravel() if turned else value.ravel()
        forced = self.tape.forced(entry, start, start + shown.size)
        shown = shown if forced is None else forced
        entry.output = np.append(entry.output, shown)
        result = (-shown if turned else shown).reshape(value.shape)
        if out is not None:
            rest["out"][0][...] = result
            return out[0]
        return result


def _our_modules() -> list[Any]:
    return [
        module
        for name, module in list(sys.modules.items())
        if (name == "dpsparse" or name.startswith("dpsparse."))
        and not name.startswith("dpsparse.audit")
    ]


# ---- what the rest of the audit sees ---------------------------------------------------------------


def translate(entries: list[Entry]) -> list[recorded.Entry]:
    """A tape in the words of recorded releases; which phase pays is not known."""
    out = []
    for e in entries:
        picks = e.kind in ("gumbel", "noisy max")
        seen = e.output if e.noise.size or e.kind != "gaussian" else np.empty(0)
        kind = "picks" if e.kind == "gumbel" else e.kind
        answer = e.picks if picks else seen
        out.append(recorded.Entry("", kind, e.query, answer, 1.0 / e.scale, e.cost))
    return out


def compare_by_kind(
    plan: Plan, first: list[recorded.Entry], second: list[recorded.Entry]
) -> tuple[list[str], dict[str, float]]:
    """Without phases: the costs of a kind, largest first, lie below the declared ones, largest first."""
    from dpsparse.audit.replay import declared_costs

    declared = declared_costs(plan.event)
    spent: dict[str, list[float]] = {kind: [] for kind in declared}
    for a, b in zip(first, second, strict=True):
        spent.setdefault(a.kind, []).extend([a.cost(b)] * a.paid)
    complaints, tightness = [], {}
    for kind in sorted(spent):
        allowed, used = declared[kind], spent[kind]
        if len(allowed) != len(used):
            complaints.append(
                f"the plan declares {len(allowed)} {kind} answers, the run gave {len(used)}"
            )
        m = min(len(allowed), len(used))
        if not m:
            continue
        limits = np.sort(allowed)[::-1][:m]
        ratios = np.sort(used)[::-1][:m] / limits
        for number, limit in enumerate(np.unique(limits)[::-1], start=1):
            name = kind if number == 1 else f"{kind} {number}"
            tightness[name] = float(ratios[limits == limit].max())
        if not ratios.max() <= 1.0 + ROUNDING:
            complaints.append(
                f"a {kind} answer moved by {ratios.max():.4g} times its declared sensitivity"
            )
    return complaints, tightness
