"""Constants of searches."""

# Shares of mu^2, the budget of a whole search. docs/tuning.md has the measurements.
CHOICE_SHARE = 0.03  # for choosing one candidate
SEARCH_SHARE = (
    0.2  # for the fits that are compared, together; none where one fit serves all candidates
)

SCORE_GRID = (
    2.0**-12
)  # unit of scores that are not half a row: of numbers, and of means over a person's rows
