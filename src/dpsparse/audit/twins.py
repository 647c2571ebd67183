"""Twins of the mechanisms: the same call, seen by a tape. The list of every door out of a solver."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dpsparse.audit.tape import Tape

# Where each door is defined; a module that is not there yet has no estimators either.
FUNCTIONS = {
    "gaussian": "dpsparse.random",
    "gumbel": "dpsparse.random",
    "two_sided_geometric": "dpsparse.random",
    "gumbel_top_k": "dpsparse.selection.top_k",
    "draw_drops": "dpsparse.solvers.screening_rules",
    "fast_frank_wolfe": "dpsparse.solvers.frank_wolfe.run",
    "fast_frank_wolfe_with": "dpsparse.solvers.frank_wolfe.run",
    "_fast_block": "dpsparse.solvers.screening",
    "objective_perturbation": "dpsparse.solvers.objective",
    "minimise": "dpsparse.solvers.objective",
    "draw_blocks": "dpsparse.solvers.two_stage",
}
METHODS = {
    "release": ("dpsparse.sparsify", "PrivateCount"),
    "pull": ("dpsparse.solvers._noise", "NoisySums"),
    "total": ("dpsparse.solvers._noise", "NoisySums"),
    "draw": ("dpsparse.selection.scan", "LaplaceScan"),
}

# Gradient methods pay for a phase as a whole; its method asks for the noisy sums.
PHASES = {
    "release_prior": "prior",
    "release_masses": "masses",
    "release_length": "length",
    "release_intercept": "intercept",
    "descend": "gradients",
    "hard_threshold": "gradients",
}
PAID_AS_A_WHOLE = {*PHASES.values(), "spread"}


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


def _gaussian(original: Any, tape: Tape) -> Any:
    def gaussian(rng: Any, scale: float, size: Any) -> np.ndarray:
        return tape.noise("gaussian", float(scale), original(rng, scale, size))

    return gaussian


def _gumbel(original: Any, tape: Tape) -> Any:
    def gumbel(rng: Any, size: Any) -> np.ndarray:
        return tape.noise("gumbel", 1.0, original(rng, size))

    return gumbel


def _gumbel_top_k(original: Any, tape: Tape) -> Any:
    def gumbel_top_k(scores: np.ndarray, k: int, kappa: float, rng: Any) -> np.ndarray:
        with tape.picking(min(k, len(scores))):
            return np.asarray(original(scores, k, kappa, rng))

    return gumbel_top_k


def _draw_drops(original: Any, tape: Tape) -> Any:
    """n_drop ranks of kappa * score against a null candidate whose score is public."""

    def draw_drops(scores: np.ndarray, rule: Any, rng: Any) -> np.ndarray:
        null = math.log(max(scores.size, 1) / rule.level)  # low scores win: keys are turned
        with tape.picking(int(rule.n_drop), null):
            return np.asarray(original(scores, rule, rng))

    return draw_drops


# ---- sums with noise from a kernel ---------------------------------------------------------------


def _pull(original: Any, tape: Tape) -> Any:
    def pull(
        self: Any,
        slopes: Any,
        weight: Any,
        scale: float,
        out: Any,
        decay: float = 0.0,
        gain: float = 1.0,
        positive: bool = False,
    ) -> None:
        if not scale > 0:
            original(self, slopes, weight, scale, out, decay, gain, positive)
            return
        kept = np.asarray(weight) != 0
        exact, noisy = np.zeros(out.shape), np.zeros(out.shape)  # the sums themselves are float64
        original(self, slopes, weight, 0.0, exact, 0.0, 1.0, positive)
        original(self, slopes, weight, scale, noisy, 0.0, 1.0, positive)
        answer = _settle_sum(tape, exact[kept], noisy[kept], scale)
        out[~kept] = 0.0
        out[kept] = decay * out[kept] + gain * answer

    return pull


def _total(original: Any, tape: Tape) -> Any:
    def total(self: Any, contributions: np.ndarray, scale: float) -> np.ndarray:
        if not scale > 0:
            return np.asarray(original(self, contributions, scale))
        exact = np.asarray(original(self, contributions, 0.0))
        return _settle_sum(tape, exact, np.asarray(original(self, contributions, scale)), scale)

    return total


def _settle_sum(tape: Tape, exact: np.ndarray, noisy: np.ndarray, scale: float) -> np.ndarray:
    from dpsparse.audit.tape import Entry

    tape.close()
    query, output = exact.ravel().astype(float), noisy.ravel().astype(float)
    entry = Entry("gaussian", float(scale), query, output, output - query, phase=_paying_phase())
    return tape.settle(entry).output.reshape(exact.shape)


def _paying_phase() -> str:
    """The phase that pays for a noisy sum, from the method that asked for it."""
    frame = sys._getframe(2)
    bisecting = False
    while frame is not None:
        name = frame.f_code.co_name
        bisecting = bisecting or name == "quantile"
        if name in PHASES:
            return "spread" if bisecting and name == "release_prior" else PHASES[name]
        frame = frame.f_back  # type: ignore[assignment]
    return ""


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


# ---- objective perturbation ----------------------------------------------------------------------


def _objective_perturbation(original: Any, tape: Tape) -> Any:
    """Releasing theta is releasing the tilt b(theta) = -gradient of the untilted objective."""

    def objective_perturbation(
        rows: Any,
        y: Any,
        weights: Any,
        loss: Any,
        rng: Any,
        *,
        ridge: float,
        scale: float,
        tol: float,
        jitter: float,
    ) -> np.ndarray:
        from dpsparse.audit.tape import Entry
        from dpsparse.solvers.objective import _second_derivative

        tape.close()
        past = tape.past() if scale > 0 else None
        if past is None:
            with tape.muted():
                theta = original(
                    rows, y, weights, loss, rng, ridge=ridge, scale=scale, tol=tol, jitter=jitter
                )
            if not scale > 0:
                return np.asarray(theta)
        else:
            theta = past.output
        margins = rows @ theta
        gradient = rows.T @ (weights * loss.slope(margins, y)) + ridge * theta
        bend = weights * _second_derivative(loss, margins, y)
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        hessian = dense.T @ (bend[:, None] * dense) + ridge * np.eye(len(theta))
        entry = Entry("objective", float(scale), np.asarray(gradient), theta, np.empty(0))
        entry.log_volume = float(np.linalg.slogdet(hessian)[1])
        answer = tape.settle(entry).output.copy()
        # The blur hides how far the solver stopped from the minimiser: at most |grad J|/ridge on
        # either table, so twice that is what it has to cover.
        left = np.array([2.0 * tape.residual / ridge if past is None else 0.0])
        tape.settle(Entry("gaussian", float(jitter), left, left.copy(), np.empty(0)))
        return answer

    return objective_perturbation


def _minimise(original: Any, tape: Tape) -> Any:
    """Sensitivities of minimisers hold where the promised gradient norm is really reached."""

    def minimise(
        rows: Any,
        y: Any,
        weights: Any,
        loss: Any,
        *,
        ridge: float,
        tol: float,
        tilt: Any = None,
        centre: Any = None,
    ) -> np.ndarray:
        theta = original(rows, y, weights, loss, ridge=ridge, tol=tol, tilt=tilt, centre=centre)
        gradient = rows.T @ (weights * loss.slope(rows @ theta, y)) + ridge * theta
        gradient = (
            gradient + (0.0 if tilt is None else tilt) - (0.0 if centre is None else ridge * centre)
        )
        tape.residual = float(np.linalg.norm(gradient))
        if tape.residual > tol:
            tape.complaints.append("a minimiser stopped before the gradient norm it promises")
        return np.asarray(theta)

    return minimise


# ---- secret, never released ----------------------------------------------------------------------


def _draw_blocks(original: Any, tape: Tape) -> Any:
    def draw_blocks(n_rows: int, n_blocks: int, rng: Any) -> list[np.ndarray]:
        fresh = original(n_rows, n_blocks, rng)
        block = np.empty(n_rows, np.intp)
        for b, rows in enumerate(fresh):
            block[rows] = b
        if tape.script is None:
            tape.blocks = block
            if n_rows > 8 and n_blocks > 1 and not _secret(original, n_rows, n_blocks):
                tape.complaints.append("blocks depend on the place of a row, not on a secret draw")
            return list(fresh)
        assert tape.origin is not None
        assert tape.blocks is not None
        old = tape.origin >= 0
        block[old] = tape.blocks[tape.origin[old]]
        block[~old] = 0
        return [np.flatnonzero(block == b) for b in np.unique(block)]

    return draw_blocks


def _secret(draw: Any, n_rows: int, n_blocks: int) -> bool:
    """Two streams must not agree on the blocks; they do by chance once in n_blocks**n_rows."""
    from dpsparse.random import make_generator

    one, two = (draw(n_rows, n_blocks, make_generator(seed)) for seed in (1, 2))
    same = len(one) == len(two) and all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    return not same
