"""Rivals: other private linear models, each in one file whose docstring is its proof note, each calibrated exactly.

`ENTRIES` lists them. `python -m lab ticket` checks that an entry has a proof note and passes a replay (ticket.py);
how to enter: docs/leaderboard.md. Noise is float64 and seeded: entries are for comparison, not for release.
"""

from lab.rivals import coordinate_descent, gradient_descent, naive_bayes, newton, objective
from lab.rivals import sufficient_statistics as statistics
from lab.rivals.base import Entry

ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        gradient_descent.GRADIENT_DESCENT,
        gradient_descent.STOCHASTIC_GRADIENT,
        statistics.ADASSP,
        statistics.BOOSTED_ADASSP,
        naive_bayes.NAIVE_BAYES,
        objective.OBJECTIVE,
        coordinate_descent.COORDINATE_DESCENT,
        newton.NEWTON,
    )
}
