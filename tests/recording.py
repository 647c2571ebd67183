"""Releases that remember every answer and can be forced to repeat those of another run."""

import numpy as np

from dpsparse.noise import integers
from dpsparse.random import make_generator
from dpsparse.release import Releases


class Recorder(Releases):
    """`ratios` holds |q - q'| unit / scale of every Gaussian answer of a replay, phase by phase."""

    def __init__(self, plan, seed=0, script=None):
        super().__init__(plan, make_generator(seed))
        self.script, self.record, self.ratios, self.picks = script, [], [], []

    def _answer(self, phase, query, scale, unit):
        whole = query.whole(unit).reshape(-1)
        if scale == 0.0:
            return whole
        noisy = whole + integers(self.rng, whole.size)
        if self.script is not None:
            old_phase, old, noisy, old_scale = self.script.record[len(self.record)]
            assert (phase, scale) == (old_phase, old_scale)
            change = np.linalg.norm((whole - old).astype(float)) * unit
            self.ratios.append((phase, change / scale))
        self.record.append((phase, whole.copy(), noisy.copy(), scale))
        return noisy.copy()

    def _pick(self, phase, scores, k, unit, kappa, null):
        whole = scores.whole(unit).reshape(-1)
        chosen = super()._pick(phase, scores, k, unit, kappa, null)
        if self.script is not None:
            old_phase, old, chosen, old_kappa = self.script.record[len(self.record)]
            assert (phase, kappa) == (old_phase, old_kappa)
            self.picks.append((phase, float(np.ptp(kappa * (whole - old)))))
        self.record.append((phase, whole.copy(), chosen, kappa))
        return chosen

    def of(self, phase):
        """Ratios of one phase."""
        return np.array([ratio for name, ratio in self.ratios if name == phase])


def replay(model, table, neighbour, seed=0):
    """The recorder of a fit on `neighbour` that was given the answers of a fit on `table`: (X, y) or (X, y, groups)."""
    recorders = []
    for data in (table, neighbour):
        script = recorders[0] if recorders else None

        def recording(plan, script=script):
            recorders.append(Recorder(plan, seed, script))
            return recorders[-1]

        model._make_releases = recording
        model.fit(*data)
    del model._make_releases
    assert len(recorders[0].record) == len(recorders[1].record)
    return recorders[1]
