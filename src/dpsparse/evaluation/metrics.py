"""Metrics from released histograms and sums; no row is seen here.

accuracy, precision, recall     proportions of cells of the confusion matrix C
F-score 2J/(1 + J)              J = TP/(TP + FP + FN), a proportion
MCC                             a ratio of two forms of degree 2 in C
ROC, AUC, calibration           the histogram H of scores by class
log loss, Brier                 means of bounded numbers
MAE, MSE, R2                    from released moments; errors are cut at `error_bound`, targets at `target_bound`
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from dpsparse._checks import check_share
from dpsparse.evaluation.intervals import Estimate, area_under_curve, proportion, ratio
from dpsparse.evaluation.plan import Subject
from dpsparse.evaluation.released import Released
from dpsparse.exceptions import ParameterError
from dpsparse.rows.histogram import LONGEST_LOSS

Table = dict[str, np.ndarray]  # columns of equal length, by name


def measure(
    released: Released, subject: Subject, metrics: tuple[str, ...], labels: list[Any], level: float
) -> tuple[dict[str, Estimate], dict[str, Table]]:
    """Every asked metric with its interval, in the unit of the targets, and the tables behind the curves."""
    found: dict[str, Estimate] = {}
    tables: dict[str, Table] = {}
    bound = subject.error_bound
    if "mae" in metrics:
        found["mae"] = released.average("absolute", "squares", bound, level)
    if "mse" in metrics:
        found["mse"] = released.average("squares", "squares_squares", bound**2, level)
    if "r2" in metrics:
        found["r2"] = _r2(released, subject, level)
    if "accuracy" in metrics:
        found["accuracy"] = _accuracy(released, subject, level)
    if "confusion" in released.numbers:
        _counted(released, subject, metrics, labels, level, found, tables)
    if "histogram" in released.numbers:
        curve = Curve.of(released, subject.has_chances)
        if "auc" in metrics:
            found["auc"], found["auc_certain"] = curve.area(level)
        if "roc" in metrics:
            tables["roc"] = curve.roc(level)
        if "calibration" in metrics:
            # A guess among K is never less likely than 1/K.
            least = 0.0 if subject.n_classes == 2 else 1.0 / subject.n_classes
            tables["calibration"] = curve.calibration(level, least)
    for name, reach in (
        ("log_loss", LONGEST_LOSS),
        ("brier", 1.0 if subject.n_classes == 2 else 2.0),
    ):
        if name in metrics:
            found[name] = released.average(name, f"{name}_squares", reach, level)
    return found, tables


def _accuracy(released: Released, subject: Subject, level: float) -> Estimate:
    if subject.n_classes > 2:
        v = released.variance["outcomes"]
        wrong, right = released.numbers["outcomes"]
        return proportion(float(right), float(wrong), v, v, level)
    v, cells = released.variance["confusion"], released.numbers["confusion"]
    return proportion(
        float(cells[0] + cells[3]), float(cells[1] + cells[2]), 2.0 * v, 2.0 * v, level
    )


# ---- confusion matrix ----------------------------------------------------------------------------


def _counted(
    released: Released,
    subject: Subject,
    metrics: tuple[str, ...],
    labels: list[Any],
    level: float,
    found: dict[str, Estimate],
    tables: dict[str, Table],
) -> None:
    K, v = subject.n_classes, released.variance["confusion"]
    C = released.numbers["confusion"].reshape(K, K)
    per_class: dict[str, list[Estimate]] = {"precision": [], "recall": [], "f1": []}
    for k in range(K):
        hit, row, column = float(C[k, k]), float(C[k].sum()), float(C[:, k].sum())
        per_class["precision"].append(proportion(hit, column - hit, v, (K - 1) * v, level))
        per_class["recall"].append(proportion(hit, row - hit, v, (K - 1) * v, level))
        jaccard = proportion(hit, row + column - 2.0 * hit, v, 2 * (K - 1) * v, level)
        per_class["f1"].append(jaccard.mapped(lambda j: 2.0 * j / (1.0 + j)))
    for name, parts in per_class.items():
        if name in metrics:
            found[name] = parts[1] if K == 2 else _average(parts, independent=name != "f1")
    if "mcc" in metrics:
        found["mcc"] = _correlation(C, v, level)
    if {"precision", "recall", "f1"} & set(metrics):
        columns = {"class": np.array(labels)}
        for name, parts in per_class.items():
            columns |= _ends_of(parts, name, f"{name}_low", f"{name}_high")
        tables["per_class"] = columns
    if "confusion" in metrics:
        total = float(C.sum())
        cells = [
            proportion(float(c), total - float(c), v, (K * K - 1) * v, level) for c in C.ravel()
        ]
        tables["confusion"] = {
            "actual": np.repeat(np.array(labels), K),
            "guessed": np.tile(np.array(labels), K),
            "count": C.ravel(),
            **_ends_of(cells, "share", "low", "high"),
        }


def _ends_of(parts: Sequence[Estimate], *names: str) -> Table:
    """Values, lower and upper ends of estimates as columns of these names."""
    ends = np.array([(e.value, e.low, e.high) for e in parts]).reshape(-1, 3).T
    return dict(zip(names, ends, strict=True))


def _average(parts: list[Estimate], independent: bool) -> Estimate:
    """The mean over classes (macro). Rows of C are independent of each other and so are columns: squares of the
    half widths add up. F1 values share cells: the half widths themselves are added, which is never too short."""
    value = float(np.mean([e.value for e in parts]))
    down, up = [e.value - e.low for e in parts], [e.high - e.value for e in parts]
    total = np.linalg.norm if independent else np.sum
    low, high = value - float(total(down)) / len(parts), value + float(total(up)) / len(parts)
    return Estimate(value, max(low, 0.0), min(high, 1.0), parts[0].level)


def _correlation(C: np.ndarray, v: float, level: float) -> Estimate:
    """MCC = S/G, S = s trace C - sum_k p_k t_k, G = sqrt((s^2 - |p|^2)(s^2 - |t|^2)), p and t its margins."""
    t, p, s = C.sum(axis=1), C.sum(axis=0), float(C.sum())
    right = float(np.trace(C))
    A, B = s * s - float(p @ p), s * s - float(t @ t)
    if s <= 0.0 or A <= 0.0 or B <= 0.0:
        return Estimate(0.0, -1.0, 1.0, level)
    G = math.sqrt(A * B)
    S_slope = np.eye(len(C)) * s + right - t[None, :] - p[:, None]
    G_slope = (B * (s - p[None, :]) + A * (s - t[:, None])) / G
    weight = np.maximum(C, 0.0) + v
    variance = (
        float(np.sum(weight * S_slope**2)),
        float(-2.0 * np.sum(weight * S_slope * G_slope)),
        float(np.sum(weight * G_slope**2)),
    )
    return ratio(s * right - float(p @ t), G, variance, -1.0, 1.0, 0.0, level)


# ---- scores --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Threshold:
    """Answer "yes" where the score is above `value`; intervals hold for all thresholds at once."""

    value: float
    precision: Estimate
    recall: Estimate

    def __str__(self) -> str:
        return f"{self.value:.4g}: precision {self.precision}, recall {self.recall}"


@dataclass(frozen=True, eq=False)
class Curve:
    """Histograms of the score by class; `cuts` are functions of released numbers, never scores of rows."""

    cuts: np.ndarray
    H0: np.ndarray
    H1: np.ndarray
    v: float
    as_chance: bool  # show thresholds as probabilities

    @classmethod
    def of(cls, released: Released, as_chance: bool) -> Curve:
        assert released.cuts is not None
        H0, H1 = released.numbers["histogram"].reshape(2, -1)
        return cls(released.cuts, H0, H1, released.variance["histogram"], as_chance)

    @property
    def thresholds(self) -> np.ndarray:
        return np.asarray(expit(self.cuts)) if self.as_chance else self.cuts

    def area(self, level: float) -> tuple[Estimate, Estimate]:
        """AUC of the binned score, and an interval that also holds for the AUC of the score itself: they differ
        by at most half of the probability that both rows fall into one bin."""
        area = area_under_curve(self.H0, self.H1, self.v, level)
        n0, n1 = float(self.H0.sum()), float(self.H1.sum())
        if n0 <= 0.0 or n1 <= 0.0:
            return area, area
        tie = float(np.maximum(self.H0, 0.0) @ np.maximum(self.H1, 0.0)) / (n0 * n1)
        low, high = max(area.low - tie / 2.0, 0.0), min(area.high + tie / 2.0, 1.0)
        return area, Estimate(area.value, low, high, level)

    def roc(self, level: float) -> Table:
        """True and false positive rate above every cut, each with its own interval."""
        columns = {"threshold": self.thresholds}
        for name, H in (("fpr", self.H0), ("tpr", self.H1)):
            parts = [
                proportion(
                    float(H[j:].sum()), float(H[:j].sum()), (len(H) - j) * self.v, j * self.v, level
                )
                for j in range(1, len(H))
            ]
            low, high = (np.array([getattr(e, end) for e in parts]) for end in ("low", "high"))
            rates = np.array([e.value for e in parts])
            if len(rates):
                rates = isotonic_regression(rates, increasing=False).x
            columns |= {name: np.clip(rates, low, high), f"{name}_low": low, f"{name}_high": high}
        return columns

    def calibration(self, level: float, least: float) -> Table:
        """How often "yes" (or the guess) is right in bins of the probability, which is `least` or more: at most ten,
        of about as many rows."""
        mass = np.maximum(self.H0 + self.H1, 0.0)
        rising = np.cumsum(mass) / max(float(mass.sum()), 1e-9)
        tenths = np.floor(10.0 * (rising - 0.5 * mass / max(float(mass.sum()), 1e-9)))
        starts = np.flatnonzero(np.diff(tenths, prepend=-1.0))
        wrong, right = (np.add.reduceat(H, starts) for H in (self.H0, self.H1))
        noise = self.v * np.diff(starts, append=len(mass))
        edges = np.concatenate([[least], np.maximum(expit(self.cuts), least), [1.0]])
        parts = [
            proportion(float(a), float(b), float(v), float(v), level)
            for a, b, v in zip(right, wrong, noise, strict=True)
        ]
        return {
            "from": edges[starts],
            "to": edges[[*starts[1:], -1]],
            "rows": wrong + right,
            **_ends_of(parts, "observed", "low", "high"),
        }

    def threshold_for(
        self, precision: float | None, recall: float | None, level: float
    ) -> Threshold:
        """The threshold with the best other rate among those that reach the target."""
        if (precision is None) == (recall is None):
            raise ParameterError("State one target: threshold_for(precision=0.9) or recall=0.9.")
        target = precision if precision is not None else recall
        check_share("The target", target)
        n_cuts = len(self.cuts)
        # The threshold is chosen by looking, so every interval is made to hold for all of them (Bonferroni).
        each = 1.0 - (1.0 - level) / max(2 * n_cuts, 1)
        found = []
        for j in range(1, n_cuts + 1):
            above = [float(H[j:].sum()) for H in (self.H0, self.H1)]
            v, below = (n_cuts + 1 - j) * self.v, float(self.H1[:j].sum())
            found.append(
                Threshold(
                    float(self.thresholds[j - 1]),
                    proportion(above[1], above[0], v, v, each),
                    proportion(above[1], below, v, j * self.v, each),
                )
            )
        wanted, other = (
            ("precision", "recall") if precision is not None else ("recall", "precision")
        )
        able = [t for t in found if getattr(t, wanted).value >= target]
        if not able:
            best = max((getattr(t, wanted).value for t in found), default=0.0)
            raise ParameterError(
                f"No threshold reaches {wanted} {target:g}; by the noisy counts of the ROC the largest is {best:.3g}."
            )
        return max(able, key=lambda t: getattr(t, other).value)


# ---- numbers -----------------------------------------------------------------------------------


def _r2(released: Released, subject: Subject, level: float) -> Estimate:
    """1 - t, t = a S_e/(b S_w - shift): a row adds a e^2 - t b w to the difference whose size is tested."""
    (N, v_N), moment = released.number, released.moment
    a = subject.error_bound**2
    b = (subject.target_bound * (1.0 + abs(released.centre))) ** 2
    v_e, v_w = released.variance["squares"], released.variance["spread"]
    # The centre is a noisy mean: the spread about it is larger than about the mean by N d^2 on average.
    off = released.variance["total"] + released.centre**2 * v_N
    shift = subject.target_bound**2 * off / max(N, 1.0)
    Q_ee, Q_ww = max(moment("squares_squares", 1.0), 0.0), max(moment("spread_squares", 1.0), 0.0)
    Q_ew = moment("cross", -1.0)
    variance = (
        a * a * (Q_ee + v_e + v_N / 4.0),
        -2.0 * a * b * (Q_ew + v_N / 4.0),
        b * b * (Q_ww + v_w + v_N / 4.0),
    )
    rest = b * moment("spread") - shift
    t = ratio(a * moment("squares"), rest, variance, 0.0, math.inf, 1.0, level)
    return Estimate(1.0 - t.value, 1.0 - t.high, 1.0 - t.low, level)
