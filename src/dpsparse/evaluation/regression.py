"""MAE, MSE and R2 from released moments; errors are cut at `error_bound`, targets at `target_bound`."""

from __future__ import annotations

import math

from dpsparse.evaluation.intervals import Estimate, ratio
from dpsparse.evaluation.plan import Subject
from dpsparse.evaluation.released import Released


def measure(
    released: Released, subject: Subject, metrics: tuple[str, ...], level: float
) -> dict[str, Estimate]:
    """Every asked metric with its interval, in the unit of the targets."""
    found: dict[str, Estimate] = {}
    c = subject.error_bound
    if "mae" in metrics:
        found["mae"] = released.average("absolute", "squares", c, level)
    if "mse" in metrics:
        found["mse"] = released.average("squares", "squares_squares", c * c, level)
    if "r2" in metrics:
        found["r2"] = _r2(released, subject, level)
    return found


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
