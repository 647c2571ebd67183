"""Releases that remember every answer and can be forced to repeat those of another run."""

from dataclasses import replace

import numpy as np

from dpsparse import Ledger
from dpsparse.accounting.guarantee import SECURE
from dpsparse.mechanisms import GaussianNoise, GeometricNoise, Picks
from dpsparse.random import make_generator
from dpsparse.release import Releases, releases_made_by


class LedgerOfSeededFits(Ledger):
    """Books a seeded fit as the same fit with secure noise: its result can be compared bit for bit."""

    def reserve(self, plan):
        return super().reserve(replace(plan, proven=True, randomness=SECURE))


class Recorder(Releases):
    """`ratios` holds |q - q'| unit / scale of every Gaussian or geometric answer of a replay, phase by phase."""

    def __init__(self, plan, seed=0, script=None):
        super().__init__(plan, make_generator(seed))
        self.script, self.record, self.ratios, self.picks = script, [], [], []

    def _release(self, phase, mechanism):
        assert isinstance(mechanism, GaussianNoise | GeometricNoise | Picks)
        whole, step = mechanism.question(), mechanism.step
        answer = mechanism.draw(whole.copy(), self.rng)
        if not np.isfinite(step):
            return answer
        if self.script is not None:
            old_phase, old, answer, old_step = self.script.record[len(self.record)]
            assert (phase, step) == (old_phase, old_step)
            change = (whole - old).astype(float)
            if isinstance(mechanism, Picks):
                self.picks.append((phase, float(np.ptp(change)) * step))
            else:
                self.ratios.append((phase, np.linalg.norm(change) * step))
        self.record.append((phase, whole, answer.copy(), step))
        return answer.copy()

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

        with releases_made_by(recording):
            model.fit(*data[:2], groups=data[2] if len(data) > 2 else None)
    assert len(recorders[0].record) == len(recorders[1].record)
    return recorders[1]
