"""Rivals: other private linear models, each in one file whose docstring is its proof note, each calibrated exactly.

`ENTRIES` lists them. `python -m lab ticket` checks that an entry has a proof note and passes a replay (ticket.py);
how to enter: docs/leaderboard.md. Noise is float64 and seeded: entries are for comparison, not for release.
"""

from lab.rivals.base import Entry
from lab.rivals.coordinate_descent import COORDINATE_DESCENT
from lab.rivals.gradient_descent import GRADIENT_DESCENT, STOCHASTIC_GRADIENT
from lab.rivals.naive_bayes import NAIVE_BAYES
from lab.rivals.newton import NEWTON
from lab.rivals.objective import OBJECTIVE
from lab.rivals.sufficient_statistics import ADASSP, BOOSTED_ADASSP

ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        GRADIENT_DESCENT,
        STOCHASTIC_GRADIENT,
        ADASSP,
        BOOSTED_ADASSP,
        NAIVE_BAYES,
        OBJECTIVE,
        COORDINATE_DESCENT,
        NEWTON,
    )
}
