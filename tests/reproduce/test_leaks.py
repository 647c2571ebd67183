"""The table of leaks keeps step and whole, algorithm and listing apart."""

import math

import pytest

from lab.papers import leaks


@pytest.mark.parametrize(
    ("claimed", "attacked", "proven", "state"),
    [
        (1.0, 2.0, math.inf, "refuted"),
        (1.0, 0.0, 0.8, "holds"),
        (1.0, 0.0, 1.7, "open"),
        (1.0, math.nan, 0.798, "holds"),  # not attacked, but proven
        (1.0, math.nan, 1.733, "open"),
    ],
)
def test_what_a_row_says(claimed, attacked, proven, state):
    found = {("published", "claimed"): claimed, ("published", "attacked"): attacked}
    assert leaks._state(found | {("published", "proven"): proven}) == state


def test_private_lasso_is_wrong_in_a_step_and_right_as_a_whole():
    """At epsilon 1, delta 1e-4, T = 1000: 2 eps' a step where eps' is charged; 0.716 proven for the whole."""
    rows = {(of, adjacency): row for _, adjacency, of, *row in leaks.noisy_max(13)}
    claimed, refuted, proven = rows["one step", "add-remove"]
    assert refuted["published"] > 1.9 * claimed
    assert proven == 2.0
    # 0.798 by the Renyi curve, which is what the book was run with; the adaptive optimum proves less
    assert rows["whole", "add-remove"][2] == pytest.approx(0.716, abs=0.002)
    assert rows["whole", "replace-one"][2] > 1.0


def test_the_listing_is_not_the_algorithm():
    """Appendix B releases the exact count; Algorithm 2's noisy count is not refuted (400 draws each, 99.9 %)."""
    (_, _, _, claimed, printed, _), (_, _, _, _, listed, _) = leaks.counts(400)
    assert printed["published"] <= claimed
    assert listed["published"] > 10 * claimed
