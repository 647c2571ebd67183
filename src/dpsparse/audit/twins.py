"""Twins of the mechanisms: the same call, seen by a tape. The list of every door out of a solver."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dpsparse.audit.tape import Tape

# Where each door is defined; a module that is not there yet has no estimators either.
FUNCTIONS = {
    "gumbel": "dpsparse.random",
    "two_sided_geometric": "dpsparse.random",
    "draw_drops": "dpsparse.solvers.screening_rules",
    "fast_frank_wolfe": "dpsparse.solvers.frank_wolfe.run",
    "fast_frank_wolfe_with": "dpsparse.solvers.frank_wolfe.run",
    "_fast_block": "dpsparse.solvers.screening",
}
METHODS = {
    "release": ("dpsparse.sparsify", "PrivateCount"),
    "draw": ("dpsparse.selection.scan", "LaplaceScan"),
}


def functions() -> list[tuple[str, Any]]:
    """(name, original) of every door that is a function."""
    found = []
    for name, module in FUNCTIONS.items():
        original = getattr(_module(module), name, None)
        if original is not None:
            found.append((name, original))
    return found


def methods() -> list[tuple[Any, str, Any]]:
    """(class, name, original) of every door that is a method."""
    found = []
    for name, (module, owner) in METHODS.items():
        kind = getattr(_module(module), owner, None)
        if kind is not None and name in vars(kind):
            found.append((kind, name, vars(kind)[name]))
    return found


def make(name: str, original: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    """The twin of the door `name`."""
    maker: Callable[..., Callable[..., Any]] = globals()[f"_{name.lstrip('_')}"]
    return maker(original, tape)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


# ---- noise that meets its query in Python --------------------------------------------------------


def _gumbel(original: Any, tape: Tape) -> Any:
    def gumbel(rng: Any, size: Any) -> np.ndarray:
        return tape.noise("gumbel", 1.0, original(rng, size))

    return gumbel


def _draw_drops(original: Any, tape: Tape) -> Any:
    """n_drop ranks of kappa * score against a null candidate whose score is public."""

    def draw_drops(scores: np.ndarray, rule: Any, rng: Any) -> np.ndarray:
        null = math.log(max(scores.size, 1) / rule.level)  # low scores win: keys are turned
        with tape.picking(int(rule.n_drop), null):
            return np.asarray(original(scores, rule, rng))

    return draw_drops


def _two_sided_geometric(original: Any, tape: Tape) -> Any:
    def two_sided_geometric(rng: Any, scale: Any) -> int:
        tape.last_integer = int(original(rng, scale))
        return tape.last_integer

    return two_sided_geometric


def _release(original: Any, tape: Tape) -> Any:
    """A clipped count with two-sided geometric noise; clipping it again is post-processing."""

    def release(self: Any, count: int, n_weights: int, rng: Any) -> int:
        from dpsparse.audit.tape import Entry

        tape.close()
        tape.last_integer = None
        answer = original(self, count, n_weights, rng)
        if tape.last_integer is None:  # as published: no noise, and no claim
            return int(answer)
        noise = np.array([float(tape.last_integer)])
        query = np.array([float(min(max(int(count), self.low), self.high))])
        entry = Entry("count", float(self.scale), query, query + noise, noise, history=answer)
        return int(tape.settle(entry).history)

    return release


def _draw(original: Any, tape: Tape) -> Any:
    """Report-noisy-max with Laplace noise over both signs of every cell (paper 004)."""

    def draw(self: Any, rng: Any) -> tuple[int, int]:
        from dpsparse.audit.tape import Entry

        tape.close()
        cell, sign = original(self, rng)
        keys = np.asarray(self.kappa * self.scores, float)
        pick = int(cell) if sign > 0 else int(cell) + keys.size
        none = np.empty(0)
        entry = Entry("noisy max", 1.0, np.append(keys, -keys), none, none, np.array([pick]))
        pick = int(tape.settle(entry).picks[0])
        return pick % keys.size, 1 if pick < keys.size else -1

    return draw


# ---- Frank-Wolfe: the history is released, the scores follow from it ------------------------------


def _fast_frank_wolfe(original: Any, tape: Tape) -> Any:
    def fast_frank_wolfe(data: Any, problem: Any, rng: Any, *rest: Any, **options: Any) -> Any:
        tape.close()
        if np.isinf(problem.kappa):
            return original(data, problem, rng, *rest, **options)
        past = tape.past()
        history = original(data, problem, rng, *rest, **options) if past is None else past.history
        _settle_history(tape, _frank_wolfe_scores(data, problem, history), problem, history)
        return history

    return fast_frank_wolfe


def _fast_frank_wolfe_with(original: Any, tape: Tape) -> Any:
    def fast_frank_wolfe_with(selection: Any, data: Any, problem: Any, rng: Any, *rest: Any) -> Any:
        tape.close()
        if np.isinf(problem.kappa):
            return original(selection, data, problem, rng, *rest)
        past = tape.past()
        if past is None:
            with tape.muted():
                history = original(selection, data, problem, rng, *rest)
        else:
            history = past.history
        _settle_history(tape, _frank_wolfe_scores(data, problem, history), problem, history)
        return history

    return fast_frank_wolfe_with


def _frank_wolfe_scores(data: Any, problem: Any, history: Any) -> list[np.ndarray]:
    """Whole-number scores of every step along a history, as the solver's own state has them."""
    from dpsparse.solvers.frank_wolfe.reference import _slopes, score_cells, with_intercept
    from dpsparse.solvers.frank_wolfe.run import RowArrays, Run

    n_steps = len(history.signs)
    if problem.freshness != "exact":  # stale scores live in the solver's state only
        run = Run(RowArrays.of(data), problem)
        cells = run.labels_of(history.features) * problem.n_outputs + history.outputs
        out = []
        for t in range(n_steps):
            run.serve(t)
            out.append(run.stored_scores().ravel().astype(float))
            run.move(cells[t], -history.signs[t])
        return out
    X = with_intercept(data, problem)
    columns, weights = X.tocsc(), np.zeros((X.shape[1], problem.n_outputs))
    out = []
    for t in range(1, n_steps + 1):
        slopes = _slopes(problem, X @ weights, data.y)
        out.append(np.asarray(score_cells(columns, slopes, problem, True), float))
        step = 2.0 / (t + 2.0)
        weights *= 1.0 - step
        cell = history.features[t - 1], history.outputs[t - 1]
        weights[cell] += step * history.signs[t - 1] * problem.radius * problem.feature_bound
    return out


def _settle_history(tape: Tape, scores: list[np.ndarray], problem: Any, history: Any) -> None:
    cells = history.features * problem.n_outputs + history.outputs
    # the step goes against the sign s of exp(kappa s G): candidates +G first, then -G
    picks = cells + np.where(history.signs < 0, 0, len(scores[0]))
    for t, score in enumerate(scores):
        keys = problem.unit_kappa * score
        _settle_pick(tape, np.concatenate([keys, -keys]), int(picks[t]), history)


def _settle_pick(tape: Tape, query: np.ndarray, pick: int, history: Any) -> None:
    from dpsparse.audit.tape import Entry

    none = np.empty(0)
    tape.settle(Entry("gumbel", 1.0, query, none, none, np.array([pick]), history=history))


def _fast_block(original: Any, tape: Tape) -> Any:
    """A block of screened Frank-Wolfe: new picks after the ones already released."""

    def fast_block(data: Any, loss: Any, rng: Any, run: Any) -> tuple[np.ndarray, np.ndarray]:
        from dpsparse.solvers.screening import _with_intercept, history_weights

        tape.close()
        if np.isinf(run.kappa):
            out: tuple[np.ndarray, np.ndarray] = original(data, loss, rng, run)
            return out
        past = tape.past()
        features, signs = original(data, loss, rng, run) if past is None else past.history
        width = data.X.shape[1]
        X = _with_intercept(data, width, run.fit_intercept)
        names = run.names(width)
        place = {name: column for column, name in enumerate(names[: X.shape[1]])}
        picks = np.array([place[name] for name in features], int)
        for t in range(run.features.size, features.size):
            weights = history_weights(picks[:t], signs[:t], run.radius, X.shape[1])
            keys = -run.kappa * (loss.slope(X @ weights[:-1], data.y) @ X)
            pick = int(picks[t]) if signs[t] > 0 else int(picks[t]) + keys.size
            _settle_pick(tape, np.concatenate([keys, -keys]), pick, (features, signs))
        return features, signs

    return fast_block
