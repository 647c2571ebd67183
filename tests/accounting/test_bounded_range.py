"""The accountant's price of bounded-range steps: against plain NumPy, 50 digits, and Google's dp-accounting."""

import numpy as np
import pytest
from bounded_range import profile

from dpsparse.accounting import Exponential, Gaussian, Repeated, Sequence, epsilon
from dpsparse.accounting.adaptive import bounded_range_profile


@pytest.mark.parametrize(
    ("eta", "count"), [(0.1, 60), (1.0, 5), (2.0, 1), (0.01, 40), (1e-9, 3), (30.0, 2)]
)
def test_profile_is_that_of_the_plain_recursion(eta, count):
    ours = bounded_range_profile(eta, count, 16, 1e-15)
    spacing, values = profile(eta, count, 16)
    assert ours.spacing == spacing
    np.testing.assert_allclose(ours.values, values, rtol=1e-12, atol=1e-290)


def test_hinges_are_a_law_whose_profile_is_the_run():
    """Weights at losses y, and the floor at infinity: what accountants that convolve losses need."""
    run = bounded_range_profile(0.4, 20, 64, 1e-15)
    losses, masses, infinite = run.hinges
    assert masses.min() >= 0.0
    assert masses.sum() + infinite == pytest.approx(1.0, abs=1e-8)
    for eps in (-1.0, 0.0, 0.0015, 0.5, 1.7, 3.0):
        delta = infinite + masses @ np.maximum(0.0, -np.expm1(np.minimum(eps - losses, 0.0)))
        assert float(run.delta(eps)) * (1 - 1e-12) <= delta <= float(run.delta(eps)) * 1.01 + 1e-12


def test_google_s_accountant_composes_the_law_with_a_gaussian_to_our_price():
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    def steps(count):
        """The law of a run, on the grid of dp-accounting: ranges of 0.2 in cells of 0.2/64."""
        run = bounded_range_profile(0.2, count, 64, 1e-15)
        losses, masses, infinite = run.hinges
        first = round(losses[0] / run.spacing)
        pmf = pld_pmf.DensePLDPmf(0.2 / 64, first, masses, infinite, True)
        return privacy_loss_distribution.PrivacyLossDistribution(pmf)

    gaussian = privacy_loss_distribution.from_gaussian_mechanism(
        2.0, value_discretization_interval=0.2 / 64
    )
    theirs = steps(20).compose(gaussian).get_epsilon_for_delta(1e-6)
    ours = epsilon(Sequence((Repeated(Exponential(0.2), 20), Gaussian(2.0))), 1e-6)
    assert theirs == pytest.approx(ours, rel=0.005)
    # As the dominating pair of one step, twenty times, it costs visibly more.
    apart = steps(1).self_compose(20).get_epsilon_for_delta(1e-6)
    assert apart > 1.1 * steps(20).get_epsilon_for_delta(1e-6)
