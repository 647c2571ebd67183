"""Mutation power: faults seeded into the real code by monkeypatching, each caught by the audit.

Every fault is a mistake somebody made in print or in code, ours among them. Nothing here depends on
chance beyond the 1e-5 of `first_complaint`.
"""

import warnings
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from randomgen import AESCounter

import dpsparse.domain.clipping
import dpsparse.mechanisms.gaussian
import dpsparse.mechanisms.names
import dpsparse.mechanisms.picks
import dpsparse.mechanisms.tilt
import dpsparse.mechanisms.top_k
import dpsparse.methods.base
import dpsparse.methods.gradient.estimator
import dpsparse.nonzeros
import dpsparse.random
import dpsparse.release
import dpsparse.rows.kernels
import dpsparse.rows.ridge
import dpsparse.rows.unit
import dpsparse.sensitivity
from complaints import check, first_complaint
from dpsparse import Domain, PrivateCount
from dpsparse import methods as estimators
from dpsparse.release import Releases
from dpsparse.rows.kernels import SAFE_ROW
from dpsparse.sensitivity import Sensitivity
from plain_frank_wolfe import replay_history

BINARY = Domain(classes=(0, 1), row_norm=1.0, n_samples=12)
NUMBER = Domain(target_bound=2.0, row_norm=1.0, n_samples=12)
LONG = Domain(classes=(0, 1), n_samples=12)
GRADIENT = {"n_iter": 4}
FAULTS = []
# Where noise is added to whole numbers.
NOISY = (dpsparse.mechanisms.gaussian, dpsparse.mechanisms.names, dpsparse.mechanisms.tilt)


def fault(needs, **parameters):
    """Register a fault of an estimator, with the parameters that lead through the code."""

    def register(seed):
        FAULTS.append(pytest.param(needs, parameters, seed, id=seed.__name__))
        return seed

    return register


def make(name, parameters):
    return getattr(estimators, name)(**{"domain": BINARY, **parameters})


# ---- noise ---------------------------------------------------------------------------------------


@fault("DPGradientClassifier", **GRADIENT)
def half_the_noise_of_the_sums(patch):
    def add(rng, out):
        out += dpsparse.random.integers(rng, out.size) // 2

    for module in NOISY:
        patch.setattr(module, "add_integers", add)


@fault("DPADMMClassifier", n_iter=3, n_nonzero=3)
def half_the_noise_scale(patch):
    original = Releases.scale
    patch.setattr(Releases, "scale", lambda *query: original(*query) / 2)


FREE = Domain(classes=(0, 1), n_samples=4000)
FREE_NUMBER = Domain(target_bound=2.0, n_samples=4000)
QUIET = [  # phases that few pairs of tables move by much
    ("DPGradientClassifier", {"domain": FREE}, "prior length"),
    ("DPHardThresholdClassifier", {"domain": FREE}, "centre columns length intercept"),
    ("DPHardThresholdRegressor", {"domain": FREE_NUMBER}, "spread length"),
    ("DPRidgeRegressor", {"domain": FREE_NUMBER}, "mean spread length centre columns axes"),
    ("DPLassoRegressor", {"domain": FREE_NUMBER, "n_iter": 2}, "mean spread length centre columns"),
    ("DPLassoClassifier", {"domain": FREE, "n_iter": 2}, "entry"),
]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "parameters", "phase"),
    [(name, facts, phase) for name, facts, phases in QUIET for phase in phases.split()],
)
def test_a_hundredth_too_little_noise_of_any_phase_shows_on_any_pair(
    name, parameters, phase, monkeypatch
):
    model = make(name, parameters)
    assert check(model, n_pairs=1, n_climbs=0, every=100).complaints == ()
    original = Releases.scale

    def scale(self, asked, query, share=1.0):
        return original(self, asked, query, share) * (0.99 if asked == phase else 1.0)

    monkeypatch.setattr(Releases, "scale", scale)
    (complaint,) = check(model, n_pairs=1, n_climbs=0, every=100).complaints
    assert f"the phase {phase} " in complaint
    assert "1.0101" in complaint


TILTED = [
    ("DPRidgeRegressor", {"domain": FREE_NUMBER}),
    ("DPTwoStageClassifier", {"n_nonzero": 3}),
]


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("which", ["unit", "fine"])
@pytest.mark.parametrize(("name", "parameters"), TILTED)
def test_a_hundredth_too_little_tilt_or_blur_shows_on_any_pair(
    name, parameters, which, adjacency, monkeypatch
):
    """The blur hides where a search stopped: no pair of tables shows that it is too small, its bound does."""
    model = make(name, {**parameters, "adjacency": adjacency})
    assert check(model, n_pairs=1, n_climbs=0, every=100).complaints == ()
    tilt = dpsparse.mechanisms.tilt.Tilt
    original = tilt.paid_by

    def paid_by(*facts):
        made = original(*facts)
        return replace(made, **{which: 0.99 * getattr(made, which)})

    monkeypatch.setattr(tilt, "paid_by", paid_by)
    (complaint,) = check(model, n_pairs=1, n_climbs=0, every=100).complaints
    assert "the phase fit could spend 1.010" in complaint


@fault("DPHardThresholdClassifier", n_iter=3, n_nonzero=3)
def no_noise_on_the_last_coordinate(patch):
    def add(rng, out):
        dpsparse.random.add_integers(rng, out[:-1])

    for module in NOISY:
        patch.setattr(module, "add_integers", add)


def one_noise_vector_for_all_steps(patch):
    kept = {}

    def add(rng, out):
        if out.size not in kept:
            kept[out.size] = dpsparse.random.integers(rng, out.size)
        out += kept[out.size]

    for module in NOISY:
        patch.setattr(module, "add_integers", add)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["DPGradientClassifier", "DPADMMClassifier"])
def test_reused_noise_is_caught_for_every_seed(name, seed, monkeypatch):
    """Compared exactly: the statistical test missed one seed of four."""
    one_noise_vector_for_all_steps(monkeypatch)
    assert "same noise" in first_complaint(make(name, {"n_iter": 4}), seed=seed)


@fault("DPTransferClassifier", n_nonzero=3)
def plain_float64_noise(patch):
    """The right scale, but the lowest bits of a sum of floats tell its terms (Mironov 2012)."""

    def draw(self, question, rng):
        return question + dpsparse.random.STEPS * rng.standard_normal(question.size)

    patch.setattr(dpsparse.mechanisms.gaussian.GaussianNoise, "draw", draw)


@fault("DPTwoStageClassifier", n_nonzero=3)
def a_tilt_of_plain_float64_noise(patch):
    def integers(rng, size):
        return dpsparse.random.STEPS * rng.standard_normal(size)

    patch.setattr(dpsparse.mechanisms.tilt, "integers", integers)


@fault("DPTwoStageClassifier", n_nonzero=3)
def half_the_tilt(patch):
    def integers(rng, size):
        return dpsparse.random.integers(rng, size) // 2

    patch.setattr(dpsparse.mechanisms.tilt, "integers", integers)


@fault("DPTwoStageClassifier", n_nonzero=3)
def twice_the_temperature(patch):
    def top_k(scores, k, kappa, rng):
        return dpsparse.mechanisms.top_k.top_k(scores, k, 2 * kappa, rng)

    patch.setattr(dpsparse.mechanisms.picks, "top_k", top_k)


@fault("DPTwoStageClassifier", n_nonzero=3)
def largest_scores_without_noise(patch):
    def top_k(scores, k, kappa, rng):
        return np.argsort(-scores)[:k]

    patch.setattr(dpsparse.mechanisms.picks, "top_k", top_k)


@fault("DPTransferClassifier", n_nonzero=3)
def unlikely_picks_are_impossible(patch):
    """One in a million of the likeliest, and less, is rounded down to never."""

    def top_k(scores, k, kappa, rng):
        never = kappa * (scores.max() - scores) > np.log(1e6)
        scores = np.where(never, scores.min() - np.int64(2**50), scores)
        return dpsparse.mechanisms.top_k.top_k(scores, k, kappa, rng)

    patch.setattr(dpsparse.mechanisms.picks, "top_k", top_k)


@fault("DPGradientClassifier", n_iter=3, n_nonzero=PrivateCount(1, 4, 0.5))
def the_count_discards_its_noise(patch):
    patch.setattr(dpsparse.mechanisms.geometric, "two_sided_geometric", lambda rng, scale: 0)


@fault("DPGradientClassifier", n_iter=3, n_nonzero=PrivateCount(1, 4, 0.5))
def one_sided_noise_of_the_count(patch):
    def upwards(rng, scale):
        return abs(dpsparse.random.two_sided_geometric(rng, scale))

    patch.setattr(dpsparse.mechanisms.geometric, "two_sided_geometric", upwards)


@fault("DPGradientClassifier", **GRADIENT)
def a_generator_with_a_fixed_key(patch):
    def fixed(random_state):
        return np.random.Generator(AESCounter(key=7))

    patch.setattr(dpsparse.release, "make_generator", fixed)


@fault("DPGradientClassifier", **GRADIENT)
def threads_with_the_same_key(patch):
    @contextmanager
    def streams(rng, k):
        key = int(rng.integers(2**62))
        yield [np.random.Generator(AESCounter(key=key)) for _ in range(k)]

    patch.setattr(dpsparse.random, "streams", streams)


# ---- sensitivity and counts -----------------------------------------------------------------------


@fault("DPGradientClassifier", n_iter=3, adjacency="replace-one")
def replace_one_charged_as_add_remove(patch):
    def charged(clip, adjacency):
        return dpsparse.sensitivity.clipped_gradient_sum(clip, "add-remove")

    patch.setattr(dpsparse.rows.unit, "clipped_gradient_sum", charged)


@fault("DPTransferClassifier", n_nonzero=3)
def a_quarter_of_the_sensitivity(patch):
    """The longest declared rows have twice the clipping length, and move a minimiser by .47 of its bound."""
    import dpsparse.methods.support_first.plan as support

    def ridge_minimiser(*facts, **more):
        true = dpsparse.sensitivity.ridge_minimiser(*facts, **more)
        return Sensitivity(true.value / 4, true.norm, true.adjacency, true.source)

    for module in (dpsparse.rows.ridge, support):
        patch.setattr(module, "ridge_minimiser", ridge_minimiser)


@fault("DPGradientClassifier", **GRADIENT)
def a_release_more_than_paid_for(patch):
    from dpsparse.methods.look import rows

    original = rows.look_at_classes

    def twice(*facts):
        original(*facts)
        return original(*facts)

    patch.setattr(Releases, "_use", lambda *share: None)
    patch.setattr(rows, "look_at_classes", twice)


@fault("DPADMMClassifier", n_iter=3, n_nonzero=3)
def rows_are_not_clipped(patch):
    def cast(raw, bound, out):
        out[:] = np.clip(raw, -1e6, 1e6)
        return len(out), 0

    weights = property(lambda rows: np.ones(len(rows.gathered)))
    patch.setattr(dpsparse.domain.clipping, "_cast_entries", cast)
    patch.setattr(dpsparse.domain.clipping, "_shorten_rows", lambda *rows: 0)
    patch.setattr(dpsparse.rows.ridge.RidgeRows, "weights", weights)


@fault("DPGradientRegressor", domain=Domain(target_bound=2.0, n_samples=12), n_iter=4)
def rows_keep_their_length(patch):
    patch.setattr(dpsparse.rows.kernels, "unit_rows", unit_rows(lambda lengths: 1.0))


@fault("DPGradientClassifier", domain=LONG, n_iter=4)
def clip_after_summing(patch):
    """Rows eight times too long, and the sum shortened to the length of sixty."""
    from dpsparse.rows.unit import UnitRows

    original = UnitRows.masses

    def masses(self):
        query = original(self)

        def whole(unit):
            total = 8 * query.whole(unit)
            shrink = min(1.0, 60.0 / unit / max(np.linalg.norm(total), 1.0))
            return (total * shrink).astype(np.int64)

        return replace(query, whole=whole)

    patch.setattr(UnitRows, "masses", masses)


@fault("DPLassoClassifier", n_iter=5, radius=2.0)
def one_side_of_the_range_only(patch):
    """A vertex and its mirror image move in opposite directions: the range is twice the move."""
    from dpsparse.methods.frank_wolfe import solve

    def vertex_score_range(*facts):
        true = dpsparse.sensitivity.vertex_score_range(*facts)
        return Sensitivity(true.value / 2, true.norm, true.adjacency, true.source)

    patch.setattr(solve, "vertex_score_range", vertex_score_range)


# ---- floats that break their promises -------------------------------------------------------------


def unit_rows(norm_of, cast=np.float64):
    """The kernel without its check on whole numbers: length by `norm_of`, values by `cast`."""
    original = dpsparse.rows.kernels.unit_rows

    def kernel(*facts):
        original(*facts)
        indptr, indices, values, scaling, _, constant = facts[:6]
        out_indptr, _, out_z, out_constant, out_norm, out_length = facts[-6:]
        for i in range(len(out_norm)):
            row = slice(indptr[i], indptr[i + 1])
            kept = scaling[indices[row]] != 0.0
            x, scale = values[row][kept], scaling[indices[row]][kept].astype(np.float64)
            with np.errstate(all="ignore"):
                length = float(np.sqrt(np.sum((x.astype(np.float64) * scale) ** 2)))
                if length == 0.0:  # squares vanish, the numbers do not
                    length = float(np.abs(x).max(initial=0.0))
                norm = norm_of(np.hypot(length, constant))
                factor = np.float64(SAFE_ROW) / norm if norm > 0.0 else 0.0
                z = x.astype(cast).astype(np.float64) * scale * factor
                out_z[out_indptr[i] : out_indptr[i + 1]] = z.astype(np.int32)
                out_constant[i] = np.float64(constant * factor).astype(np.int32)
            out_length[i], out_norm[i] = length, norm

    return kernel


def uncast(made, stored):
    return replace(made, values=stored)


def keep_raw_values(patch):
    """The door passes on float64 as it came, flushes nothing, and clips entries only."""
    original = Domain.part

    def part(self, X, y=None, **options):
        made = original(self, X, y, **options)
        raw = sp.csr_array(X).data
        bound = self.feature_bound or 1.0
        sound = len(raw) == len(made.values)
        return uncast(made, np.clip(raw, -bound, bound)) if sound else made

    patch.setattr(Domain, "part", part)


@fault("DPGradientClassifier", **GRADIENT)
def a_length_in_float64_of_values_in_float32(patch):
    """Below 1.2e-38 a float32 is not within 2^-24 of what it stores: 7.0065e-46 contributes 2."""
    keep_raw_values(patch)
    kernel = unit_rows(lambda length: length, np.float32)
    patch.setattr(dpsparse.rows.kernels, "unit_rows", kernel)


@fault("DPGradientClassifier", **GRADIENT)
def not_a_number_becomes_an_integer(patch):
    """1e-310: one over its length is infinite, its float32 copy 0, and the product an integer."""
    original = Domain.part

    def part(self, X, y=None, **options):
        made = original(self, X, y, **options)
        raw = sp.csr_array(X).data
        tiny = (np.abs(raw) < 1e-300) if len(raw) == len(made.values) else np.zeros(0, bool)
        return uncast(made, np.where(tiny, raw, made.values)) if tiny.any() else made

    patch.setattr(Domain, "part", part)
    kernel = unit_rows(lambda length: length, np.float32)
    patch.setattr(dpsparse.rows.kernels, "unit_rows", kernel)


@fault("DPGradientClassifier", **GRADIENT)
def lengths_in_float32(patch):
    """The square of a small float32 vanishes, and what is divided by its root is long."""
    original = Domain.part

    def part(self, X, y=None, **options):
        made = original(self, X, y, **options)
        raw = sp.csr_array(X).data
        if len(raw) != len(made.values):
            return made
        with np.errstate(all="ignore"):
            return replace(made, values=np.clip(raw, -1.0, 1.0).astype(np.float32))

    def norm_of(length):
        with np.errstate(all="ignore"):
            return float(np.sqrt(np.float32(length) * np.float32(length))) or 1e-30 * length

    patch.setattr(Domain, "part", part)
    patch.setattr(dpsparse.rows.kernels, "unit_rows", unit_rows(norm_of, np.float32))


@fault("DPGradientClassifier", **GRADIENT)
def a_stale_flag_is_believed(patch):
    patch.setattr(dpsparse.domain.clipping, "_rises", lambda indptr, indices: True)


def short_sum(values, unit, bound, positive, out):
    with np.errstate(all="ignore"):
        out += np.trunc(values / unit).astype(np.int64).sum(axis=0)


@fault("DPGradientRegressor", domain=NUMBER, n_iter=4)
def targets_are_not_clipped(patch):
    original = Domain.part

    def part(self, X, y=None, **options):
        return replace(original(self, X, y, **options), targets=np.asarray(y) / 2.0)

    patch.setattr(Domain, "part", part)
    patch.setattr(dpsparse.rows.kernels, "short_sum", short_sum)


# ---- control flow and what bypasses releases -------------------------------------------------------


@fault("DPGradientClassifier", domain=Domain(classes=(0, 1)), n_iter=4)
def divide_by_the_private_number_of_rows(patch):
    from dpsparse.methods.look import targets

    patch.setattr(targets, "known_rows", lambda rows, *facts: float(len(rows)))


@fault("DPHardThresholdClassifier", n_iter=4, n_nonzero=3)
def stop_when_the_exact_gradient_is_small(patch):
    from dpsparse.methods.gradient.solve import HardThreshold

    original = HardThreshold.solve

    def solve(public, rows, releases):
        data = rows.table()
        small = np.linalg.norm(data.X.T @ (data.y - 0.5)) < 1.0
        return original(replace(public, n_iter=public.n_iter - small), rows, releases)

    patch.setattr(HardThreshold, "solve", solve)


@fault("DPGradientClassifier", **GRADIENT)
def noise_scaled_to_the_data(patch):
    original = Releases.scale

    def scale(self, phase, query, share=1.0):
        largest = np.abs(query.whole(2.0**-20)).max(initial=0) * 2.0**-20
        return original(self, phase, query, share) * (1.0 + float(largest))

    patch.setattr(Releases, "scale", scale)


@pytest.mark.parametrize("name", ["DPADMMClassifier", "DPTwoStageClassifier"])
def test_a_search_that_gives_up_is_caught(name, monkeypatch):
    original = dpsparse.rows.ridge.minimise

    def minimise(problem, tilt=None):
        return original(replace(problem, tol=1e5 * problem.tol), tilt)

    monkeypatch.setattr(dpsparse.rows.ridge, "minimise", minimise)
    assert "tolerance" in first_complaint(make(name, {"n_nonzero": 3}))


# At epsilon 1 the shares of both classes in so few rows are believed to be as large as can be, whatever was counted, so
# the counts reach nothing that could leak them.
@fault("DPTransferClassifier", n_nonzero=3, epsilon=8.0)
def exact_class_counts(patch):
    original = Releases.gaussian

    def gaussian(self, phase, query, share=1.0):
        if phase == "prior":
            unit = 2.0**-20
            return (query.whole(unit) * unit).reshape(query.shape)
        return original(self, phase, query, share)

    patch.setattr(Releases, "gaussian", gaussian)


def after_fit(patch, name, leak):
    kind = getattr(estimators, name)
    original = kind.fit

    def fit(self, X, y, **rest):
        original(self, X, y, **rest)
        leak(self, y)
        return self

    patch.setattr(kind, "fit", fit)


@fault("DPGradientClassifier", **GRADIENT)
def fit_keeps_the_number_of_rows(patch):
    after_fit(patch, "DPGradientClassifier", lambda self, y: setattr(self, "n_seen_", len(y)))


@fault("DPGradientRegressor", domain=NUMBER, n_iter=4)
def fit_keeps_a_private_number_privately(patch):
    after_fit(patch, "DPGradientRegressor", lambda self, y: setattr(self, "_mean", float(y.mean())))


@fault("DPHardThresholdClassifier", n_iter=3, n_nonzero=3)
def the_plan_holds_the_number_of_rows(patch):
    def leak(self, y):
        self.plan_ = replace(self.plan_, parameters={**self.plan_.parameters, "rows": len(y)})

    after_fit(patch, "DPHardThresholdClassifier", leak)


@fault("DPADMMClassifier", n_iter=3, n_nonzero=3)
def the_guarantee_names_the_number_of_rows(patch):
    def leak(self, y):
        self.privacy_ = replace(self.privacy_, assumptions=(f"{len(y)} rows",))

    after_fit(patch, "DPADMMClassifier", leak)


@fault("DPGradientClassifier", **GRADIENT)
def a_second_run_that_the_guarantee_leaves_out(patch):
    """Two runs, each within its plan; what is published is their mean, with the guarantee of one."""
    from dpsparse.methods.base import BaseDPLinearModel

    original = BaseDPLinearModel._fit

    def fit(self, *facts):
        first = original(self, *facts).coef_
        self.coef_ = (first + original(self, *facts).coef_) / 2.0
        return self

    patch.setattr(BaseDPLinearModel, "_fit", fit)


@fault("DPGradientClassifier", **GRADIENT)
def a_guarantee_of_half_the_epsilon(patch):
    from dpsparse.methods.base import BaseDPLinearModel

    original = BaseDPLinearModel._fit

    def fit(self, *facts):
        original(self, *facts)
        self.privacy_ = type(self)(self.domain, epsilon=0.5, n_iter=4).plan(7).guarantee
        return self

    patch.setattr(BaseDPLinearModel, "_fit", fit)


@fault("DPGradientClassifier", **GRADIENT)
def a_warning_counts_rows(patch):
    def leak(self, y):
        warnings.warn(f"only {len(y)} rows", UserWarning, stacklevel=2)

    after_fit(patch, "DPGradientClassifier", leak)


# ---- Frank-Wolfe: noise drawn inside the kernel ------------------------------------------------------


def with_problem(patch, **changes):
    """Steps are drawn for another problem than the one that is paid for."""
    from dpsparse.methods.frank_wolfe.run import Steps

    honest = Steps.draw

    def draw(self, *how):
        wrong = {name: change(self.problem) for name, change in changes.items()}
        return honest(Steps(self.rows, replace(self.problem, **wrong)), *how)

    patch.setattr(Steps, "draw", draw)


def one_more(steps, history, rng):
    """The picks of a run so far, and the next one."""
    from dpsparse.methods.frank_wolfe.run import Run

    run = Run(steps._arrays, steps.problem)
    if history is not None:
        replay_history(run, history)
    run.draw(rng, 1)
    return run.history()


@fault("DPLassoClassifier", n_iter=8, radius=1.0)
def the_exact_sign(patch):
    """Raff, Khanna and Lu (2023): the feature is drawn, the sign is read off the gradient."""
    from dpsparse.methods.frank_wolfe.run import Steps

    def draw(self, rng, n_steps, progress):
        history = None
        for _ in range(n_steps):
            history = one_more(self, history, rng)
            cell = history.features[-1] * self.problem.n_outputs + history.outputs[-1]
            history.signs[-1] = -1 if list(self.scores(history))[-1][cell] >= 0 else 1
        return history

    patch.setattr(Steps, "draw", draw)


@fault("DPLassoClassifier", n_iter=20, radius=1.0, epsilon=8.0)
def a_sampler_with_twice_the_temperature(patch):
    with_problem(patch, kappa=lambda problem: 2 * problem.kappa)


@fault("DPLassoClassifier", n_iter=8, radius=1.0, epsilon=8.0)
def unlikely_vertices_are_impossible(patch):
    """A vertex 32 times less likely than the likeliest is drawn again."""
    from dpsparse.methods.frank_wolfe.run import Steps

    def likely(self, history):
        *_, score = self.scores(history)
        cell = history.features[-1] * self.problem.n_outputs + history.outputs[-1]
        away = np.abs(score).max() + history.signs[-1] * score[cell]
        return self.problem.unit_kappa * away < np.log(32.0)

    def draw(self, rng, n_steps, progress):
        history = None
        for _ in range(n_steps):
            more = one_more(self, history, rng)
            while not likely(self, more):
                more = one_more(self, history, rng)
            history = more
        return history

    patch.setattr(Steps, "draw", draw)


def lowest_bit(patch, mechanism, exact):
    """The noise has its law; the lowest bit of what leaves is that of the exact sum, read once more."""
    original = mechanism.draw

    def draw(self, question, rng):
        noisy = original(self, question, rng)
        return noisy - noisy % 2 + exact(self).reshape(-1) % 2

    patch.setattr(mechanism, "draw", draw)


@fault("DPGradientClassifier", **GRADIENT)
def a_draw_reads_rows_again(patch):
    mechanism = dpsparse.mechanisms.gaussian.GaussianNoise
    lowest_bit(patch, mechanism, lambda self: self.query.whole(self.unit))


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "parameters", "seed"), FAULTS)
def test_fault_is_caught(name, parameters, seed, monkeypatch):
    estimator = make(name, parameters)
    seed(monkeypatch)
    complaint = first_complaint(estimator)
    assert complaint
    assert "Error" not in complaint  # a fault that crashes would prove nothing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters"),
    sorted({(p.values[0], str(p.values[1])): p.values[:2] for p in FAULTS}.values(), key=str),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_same_estimators_without_faults_pass(name, parameters):
    assert first_complaint(make(name, parameters)) == ""
