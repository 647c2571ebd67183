"""The far tail of the sampler: what Lemmas 3 and 4 of rounded_gaussian.md use of its tables."""

import numpy as np
import pytest

from dpsparse import random as _noise

BINS = np.arange(2048)
X = BINS / 128.0  # left edge of a bin in standard deviations


def test_far_bins_are_not_accepted_by_57_bits():
    """A uniform of 0 in its first 57 bits is not below an acceptance probability of 2^-84."""
    for bin_ in (1400, 1536, 2000):
        assert 0.0 < _noise._ACCEPT[bin_] < 2.0**-60
        assert not _noise._accepts(bin_, 0, 0, 0.0, 0.5)
        assert _noise._accepts(bin_, 0, 0, 0.0, 0.0)


def test_quick_acceptance_has_a_margin_of_57_bits():
    """uniform < L_b, with 2^-54 of rounding and truncation, must imply uniform < a."""
    ends = (2 * BINS + 1.0) / 2**15
    least = _noise._ACCEPT * np.exp(-ends)
    used = _noise._LEAST > 0
    # up to 1/16 the coin is 0 and the uniform exact to 2^-57; above, float64 rounds it to 2^-54
    error = np.where(_noise._LEAST < 1 / 16, 2.0**-57, 2.0**-54)
    assert np.all((_noise._LEAST + error)[used] < least[used])
    assert used.sum() > 600  # all bins that matter for speed


def test_acceptance_is_as_large_as_the_lemma_says():
    """1/a(x) <= 1.14 + e^{x^2/2}/Q with Q >= 2^19."""
    heights = np.exp(-(X**2) / 2)
    threshold, alias = _noise._THRESHOLD.astype(int), _noise._ALIAS.astype(int)
    weight = threshold.copy()
    np.add.at(weight, alias, 2**16 - threshold)
    q = weight * _noise._ACCEPT / heights
    assert q.min() == pytest.approx(q.max())
    assert q.min() >= 2**19
    ends = X + 1 / 128.0
    at_the_end = _noise._ACCEPT * np.exp(-(ends**2 - X**2) / 2)
    assert np.all(1 / at_the_end <= (1.14 + np.exp(ends**2 / 2) / 2**19))
