"""Iterative gradient hard thresholding: the noisy gradients of methods/gradient, and few weights stay after each.

Jain, Tewari, Kar 2014 (IGHT); Wang, Gu 2019 (DP-IGHT).

    rows    z_i on released scales and lengths                                             (look/rows.py)
    T times g = sum_i z_i r_i + noise;  v = 0.9 v + g/n;  w <- the k largest entries of w - step v
    publish weights on the original features, and a released offset                        (look/rows.py)

| symbol | variable | meaning |
|---|---|---|
| k | n_nonzero | weights kept, all classes together; by default one a class for every 12 effective rows, up to 50 |
| T | n_iter | steps; by default those of methods/gradient |

Deviations from the papers: steps have momentum; n is declared or released, never read; rows are clipped to a released
length where the papers assume a bound; the offset is released. Proof: docs/proofs/noisy_gradient.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsparse.methods.defaults import choose_columns
from dpsparse.methods.fitted import Solution
from dpsparse.methods.gradient.solve import Descent, Settings
from dpsparse.methods.look.rows import ScaledRows, look_at_targets
from dpsparse.nonzeros import top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows


@dataclass(frozen=True, kw_only=True)
class HardThreshold(Settings):
    """The public side of a run: that of noisy gradients. Without a number of weights it follows from released rows."""

    n_nonzero: int | None = None

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        """Weights (K, d) on the original features and offsets (K,)."""
        targets = look_at_targets(rows, self.look, releases)
        scaled = ScaledRows(rows, self.look, targets, releases)
        descent = ThresholdedDescent(scaled, self, releases)
        descent.descend(1.0, soften=False)
        return scaled.publish(descent.weights, descent.constant_weight, descent.n_iter, None)


class ThresholdedDescent(Descent):
    """Descent with only the `keep` largest weights after every step."""

    def __init__(self, scaled: ScaledRows, settings: HardThreshold, releases: Releases) -> None:
        super().__init__(scaled, settings, releases)
        affordable = choose_columns(self.n * self.budget, scaled.width)
        self.keep = settings.n_nonzero or self.n_outputs * affordable

    def move(self, noisy: np.ndarray, velocity: np.ndarray, step: float, cut: float) -> None:
        super().move(noisy, velocity, step, cut)
        self.weights = top_k(self.weights, self.keep)
