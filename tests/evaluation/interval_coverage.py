"""How often the intervals hold the truth, with the integer sampler; as a script it prints the tables of the docs.

Scores of class y are normal with mean +-apart/2; the model shows probabilities expit(slope u + shift). Truths are
those of the population, by quadrature. Regression: normal or Student t (4) errors; truths from `draws` rows.
"""

import math
import sys
import time

import numpy as np
from scipy.special import expit, logit, ndtr
from scipy.stats import norm

from dpsparse.evaluation.metrics import measure
from dpsparse.evaluation.plan import Subject, make_plan
from dpsparse.evaluation.released import release_labels, release_numbers
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows.histogram import ScoredLabels, ScoredNumbers

# epsilon, rows, share of positives, distance of the classes, slope and shift of the shown margin
CLASSIFIERS = [
    (1, 500, 0.5, 1.5, 1.5, 0),
    (1, 2000, 0.5, 1.5, 1.5, 0),
    (1, 2000, 0.1, 1.5, 1.5, -2.2),
    (1, 5000, 0.05, 2.5, 2.5, -3),
    (1, 20000, 0.5, 2.5, 0.1, 0),
    (0.3, 2000, 0.5, 1.5, 1.5, 0),
    (0.3, 20000, 0.1, 1.5, 1.5, -2.2),
    (4, 500, 0.5, 3.5, 3.5, 0),
    (4, 2000, 0.05, 2.5, 2.5, -3),
    (1, 1000, 0.5, 4.5, 4.5, 0),
]
# epsilon, rows, R2, heavy tails, mean of the targets
REGRESSORS = [
    (1, 500, 0.5, False, 0.0),
    (1, 2000, 0.5, False, 0.0),
    (1, 2000, 0.9, True, 0.0),
    (1, 20000, 0.9, True, 0.0),
    (0.3, 20000, 0.5, False, 0.0),
    (4, 5000, 0.2, True, 0.0),
    (1, 100000, 0.5, True, 0.0),
    (1, 5000, 0.5, False, 0.4),
]


class Tally:
    """Hits and widths by metric."""

    def __init__(self):
        self.hits, self.widths, self.trials = {}, {}, {}

    def add(self, name, low, high, truth):
        low, high, truth = (np.atleast_1d(np.asarray(v, float)) for v in (low, high, truth))
        hit = (low <= truth + 1e-12) & (truth - 1e-12 <= high)
        self.hits[name] = self.hits.get(name, 0) + int(hit.sum())
        wide = high - np.maximum(low, -1.0)  # R2 may have no lower end
        self.widths[name] = self.widths.get(name, 0.0) + float(wide.sum())
        self.trials[name] = self.trials.get(name, 0) + hit.size

    def rates(self):
        return {name: self.hits[name] / self.trials[name] for name in self.hits}

    def text(self, name):
        return (
            f"{100 * self.hits[name] / self.trials[name]:.1f} "
            f"({self.widths[name] / self.trials[name]:.3f})"
        )


def cover_classifier(setting, runs, seed=0, adjacency="add-remove", rows_of_a_person=1):
    epsilon, n, positive, apart, slope, shift = setting
    subject = Subject(2)
    plan = make_plan(subject, subject.metrics, epsilon=epsilon, delta=1e-6, adjacency=adjacency)
    names = [phase.name for phase in plan.phases]
    truth = _truth(positive, apart, slope, shift)
    draw, noise, tally = np.random.default_rng(seed), make_generator(seed), Tally()
    k = rows_of_a_person
    for _ in range(runs):
        # A person's rows share most of their score: what intervals for independent rows would not survive.
        y = np.repeat(draw.random(n // k) < positive, k) if k > 1 else draw.random(n) < positive
        own = draw.normal(size=len(y))
        if k > 1:
            own = 0.9 * np.repeat(draw.normal(size=n // k), k) + math.sqrt(0.19) * own
        margin = slope * (own + apart * (y - 0.5)) + shift
        chances = np.column_stack([expit(-margin), expit(margin)])
        groups = np.repeat(np.arange(n // k), k) if k > 1 else None
        rows = ScoredLabels(
            y.astype(np.intp), (margin > 0).astype(np.intp), margin, chances, 2, groups
        )
        released = release_labels(rows, names, subject, Releases(plan, noise))
        found, tables = measure(released, subject, subject.metrics, [0, 1], 0.95)
        for name, estimate in found.items():
            tally.add(name, estimate.low, estimate.high, truth[name.removesuffix("_certain")])
        at = (released.cuts - shift) / slope
        above1, above0 = ndtr(apart / 2 - at), ndtr(-apart / 2 - at)
        q1, q0 = (-np.diff(np.concatenate([[1.0], a, [0.0]])) for a in (above1, above0))
        binned = q1 @ (np.concatenate([[0.0], np.cumsum(q0)[:-1]]) + q0 / 2.0)
        tally.add("auc of bins", found["auc"].low, found["auc"].high, binned)
        tally.add("roc", tables["roc"]["tpr_low"], tables["roc"]["tpr_high"], above1)
        bins = tables["calibration"]
        at = (logit(np.append(bins["from"], 1.0)) - shift) / slope
        q1, q0 = (-np.diff(ndtr(side * apart / 2 - at)) for side in (1, -1))
        right = positive * q1 / np.maximum(positive * q1 + (1 - positive) * q0, 1e-300)
        tally.add("calibration", bins["low"], bins["high"], right)
    return tally


def _truth(positive, apart, slope, shift):
    grid = np.linspace(-10, 10, 200_001)
    d1, d0 = (norm.pdf(grid - s * apart / 2) * (grid[1] - grid[0]) for s in (1, -1))
    margin = slope * grid + shift
    p = expit(margin)
    loss1, loss0 = (np.minimum(np.logaddexp(0, s * margin), 6.0) for s in (-1, 1))
    cut = -shift / slope
    tpr, fpr = ndtr(apart / 2 - cut), ndtr(-apart / 2 - cut)
    tp, fn, fp, tn = (
        positive * tpr, positive * (1 - tpr), (1 - positive) * fpr, (1 - positive) * (1 - fpr),
    )  # fmt: skip
    return {
        "accuracy": tp + tn,
        "precision": tp / (tp + fp),
        "recall": tpr,
        "f1": 2 * tp / (2 * tp + fp + fn),
        "mcc": (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
        "auc": float(ndtr(apart / math.sqrt(2))),
        "log_loss": positive * d1 @ loss1 + (1 - positive) * d0 @ loss0,
        "brier": positive * d1 @ (1 - p) ** 2 + (1 - positive) * d0 @ p**2,
    }


def cover_regressor(setting, runs, seed=0, adjacency="add-remove", draws=4_000_000):
    epsilon, n, r2, heavy, middle = setting
    subject = Subject(0)
    plan = make_plan(subject, subject.metrics, epsilon=epsilon, delta=1e-6, adjacency=adjacency)
    names = [phase.name for phase in plan.phases]
    draw, noise, tally = np.random.default_rng(seed), make_generator(seed), Tally()

    def rows(m):
        guess = draw.normal(size=m) * 0.25 * math.sqrt(r2) + middle
        error = draw.standard_t(4, m) / math.sqrt(2) if heavy else draw.normal(size=m)
        y = np.clip(guess + error * 0.25 * math.sqrt(1 - r2), -1, 1)
        return y - np.clip(guess, -1, 1), y

    e, y = rows(draws)
    e = np.clip(e, -1, 1)
    truth = {
        "mae": np.abs(e).mean(),
        "mse": (e**2).mean(),
        "r2": 1 - (e**2).mean() / y.var(),
    }
    for _ in range(runs):
        released = release_numbers(ScoredNumbers(*rows(n)), names, subject, Releases(plan, noise))
        found, _ = measure(released, subject, subject.metrics, [], 0.95)
        for name, estimate in found.items():
            tally.add(name, estimate.low, estimate.high, truth[name])
    return tally


def cover_many_classes(setting, runs, seed=0, adjacency="add-remove", draws=1_000_000):
    """Classes 0..K-1; a guess is right with the shown probability: calibrated by construction."""
    epsilon, n, K = setting
    subject = Subject(K)
    plan = make_plan(subject, subject.metrics, epsilon=epsilon, delta=1e-6, adjacency=adjacency)
    names = [phase.name for phase in plan.phases]
    draw, noise, tally = np.random.default_rng(seed), make_generator(seed), Tally()

    def rows(m):
        y = draw.integers(0, K, m)
        logits = draw.normal(size=(m, K))
        logits[np.arange(m), y] += 2.0
        chances = np.exp(logits)
        return y, chances / chances.sum(axis=1, keepdims=True)

    y, chances = rows(draws)
    C = np.zeros((K, K))
    np.add.at(C, (y, chances.argmax(axis=1)), 1 / len(y))
    t, p, hit = C.sum(axis=1), C.sum(axis=0), np.diag(C)
    mine = chances[np.arange(len(y)), y]
    truth = {
        "accuracy": hit.sum(),
        "precision": (hit / p).mean(),
        "recall": (hit / t).mean(),
        "f1": (2 * hit / (t + p)).mean(),
        "mcc": (hit.sum() - p @ t) / math.sqrt((1 - p @ p) * (1 - t @ t)),
        "log_loss": np.minimum(-np.log(mine), 6.0).mean(),
        "brier": ((chances**2).sum(axis=1) - 2 * mine + 1).mean(),
    }
    for _ in range(runs):
        y, chances = rows(n)
        guess = chances.argmax(axis=1)
        top = chances.max(axis=1)
        scored = ScoredLabels(y, guess, np.log(top / (1 - top)), chances, K)
        released = release_labels(scored, names, subject, Releases(plan, noise))
        found, _ = measure(released, subject, subject.metrics, list(range(K)), 0.95)
        for name, estimate in found.items():
            tally.add(name, estimate.low, estimate.high, truth[name])
    return tally


def _line(head, tally):
    cells = " | ".join(tally.text(name) for name in tally.hits)
    sys.stdout.write(f"| {head} | {cells} |\n")
    sys.stdout.flush()


def _head(first, names):
    sys.stdout.write(f"\n| {first} | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}\n")


def main(runs=1000, first_seed=0):
    """Seeds from 0 on sized the reserve of the intervals (`quantile`); a check of it takes others."""
    begin, headed, seed = time.perf_counter(), False, first_seed
    for adjacency, settings in (("add-remove", CLASSIFIERS), ("replace-one", CLASSIFIERS[1:3])):
        for setting in settings:
            seed += 1
            tally = cover_classifier(setting, runs, seed, adjacency)
            if not headed:
                _head("epsilon, n, positives, distance", tally.hits)
                headed = True
            name = f"{setting[0]}, {setting[1]}, {setting[2]}, {setting[3]}"
            _line(name + (", replace-one" if adjacency == "replace-one" else ""), tally)
    _line(
        "1, 2000 persons of 5 rows, .5, 1.5",
        cover_classifier((1, 10_000, 0.5, 1.5, 1.5, 0), runs, first_seed + 50, rows_of_a_person=5),
    )
    many = [
        ((1, 2000, 3), "add-remove"),
        ((1, 10_000, 10), "add-remove"),
        ((1, 2000, 3), "replace-one"),
    ]
    for number, (setting, adjacency) in enumerate(many):
        tally = cover_many_classes(setting, runs, first_seed + 60 + number, adjacency)
        if number == 0:
            _head("epsilon, n, classes", tally.hits)
        _line(f"{setting[0]}, {setting[1]}, {setting[2]}, {adjacency}", tally)
    for adjacency, settings in (("add-remove", REGRESSORS), ("replace-one", REGRESSORS[1:2])):
        for number, setting in enumerate(settings):
            seed += 1
            tally = cover_regressor(setting, runs, seed, adjacency)
            if number == 0 and adjacency == "add-remove":
                _head("epsilon, n, R2, tails, mean of y", tally.hits)
            tails = "t4" if setting[3] else "normal"
            _line(
                f"{setting[0]}, {setting[1]}, {setting[2]}, {tails}, {setting[4]}, {adjacency}",
                tally,
            )
    sys.stdout.write(f"\n{runs} runs a line, {time.perf_counter() - begin:.0f} s\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
