"""Constants of searches: shares of mu^2, the budget of a whole search. docs/tuning.md has the measurements."""

from __future__ import annotations

CHOICE_SHARE = 0.03  # for choosing one candidate
SEARCH_SHARE = (
    0.2  # for the fits that are compared, together; one fit for all candidates needs none
)
