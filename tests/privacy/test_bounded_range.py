"""dp_bounded_range, the package for other accountants: it agrees with ours and is used by dp-accounting."""

import ast
import doctest
import math
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

import dp_bounded_range
from dpsparse.privacy import Exponential, Gaussian, Repeated, Sequence, epsilon, rdp
from dpsparse.privacy.adaptive import bounded_range_profile

SOURCE = Path(dp_bounded_range.__file__).parent


@pytest.mark.parametrize(
    ("eta", "count"), [(0.1, 60), (1.0, 5), (2.0, 1), (0.01, 40), (1e-9, 3), (30.0, 2)]
)
def test_profile_is_that_of_our_accountant(eta, count):
    ours = bounded_range_profile(eta, count, 16, 1e-15)
    theirs = dp_bounded_range.profile(eta, count, resolution=16)
    assert theirs.spacing == ours.spacing
    np.testing.assert_allclose(theirs.values, ours.values, rtol=1e-12, atol=1e-290)
    where = np.linspace(-1.1, 1.1, 50) * len(ours.values) * ours.spacing
    np.testing.assert_allclose(theirs.delta(where), ours.delta(where), rtol=1e-12, atol=1e-290)
    for delta in (1e-3, 1e-6, 1e-9):
        assert theirs.epsilon(delta) == pytest.approx(ours.epsilon(delta), rel=1e-12)


@pytest.mark.parametrize("eta", [1e-9, 1e-4, 0.3, 1.0, 10.0, 50.0])
def test_renyi_curve(eta):
    orders = np.array([1.0001, 1.5, 2, 8, 64, 1e3, 1e6])
    ours = rdp(Exponential(eta), orders)
    theirs = dp_bounded_range.renyi(eta, orders)
    np.testing.assert_allclose(theirs, ours, rtol=1e-12)
    assert dp_bounded_range.renyi(eta, 2.0) == pytest.approx(rdp(Exponential(eta), 2.0), rel=1e-12)


def test_the_profile_lies_above_two_candidates_in_50_digits():
    """One step: the closed form; three steps: the best of many adaptive choices of t."""
    with mpmath.workdps(50):
        eta = mpmath.mpf("0.7")
        norm = 1 - mpmath.exp(-eta)

        def value(y, left):
            if left == 0:
                return max(mpmath.mpf(0), 1 - mpmath.exp(y))
            found = mpmath.mpf(0)
            for i in range(9):
                t = eta * i / 8
                p = (1 - mpmath.exp(t - eta)) / norm
                found = max(
                    found, p * value(y - t, left - 1) + (1 - p) * value(y - t + eta, left - 1)
                )
            return found

        run = dp_bounded_range.profile(0.7, 3)
        for y in (0.0, 0.3, 1.0):
            attained = float(value(mpmath.mpf(y), 3))
            assert attained <= float(run.delta(y)) <= attained * 1.03 + 1e-6


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="eta"):
        dp_bounded_range.profile(bad, 3)
    with pytest.raises(ValueError, match="eta"):
        dp_bounded_range.renyi(bad, [2.0])
    with pytest.raises(ValueError, match="count"):
        dp_bounded_range.profile(1.0, 0)
    with pytest.raises(ValueError, match="orders"):
        dp_bounded_range.renyi(1.0, [1.0])


def test_masses_are_a_law_whose_profile_is_the_run():
    run = dp_bounded_range.profile(0.4, 20)
    first, masses, infinite = dp_bounded_range.masses(0.4, 20, 0.003)
    losses = 0.003 * (first + np.arange(len(masses)))
    assert masses.min() >= 0.0
    assert masses.sum() + infinite == pytest.approx(1.0, abs=1e-8)
    for eps in (-1.0, 0.0, 0.0015, 0.5, 1.7, 3.0):
        delta = infinite + masses @ np.maximum(0.0, -np.expm1(np.minimum(eps - losses, 0.0)))
        assert float(run.delta(eps)) * (1 - 1e-12) <= delta <= float(run.delta(eps)) * 1.01 + 1e-12


def test_nothing_of_dpsparse_is_imported():
    for path in SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [n for n in names if n.split(".")[0] == "dpsparse"], path
    code = "import sys, dp_bounded_range; print(sorted({'dpsparse', 'scipy', 'numba'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=SOURCE.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


class TestGoogle:
    """dp-accounting with our event, against our own accountant."""

    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("dp_accounting")

    def test_steps_beside_gaussian_noise(self):
        import dp_accounting

        from dp_bounded_range.google import BoundedRangeDpEvent, BoundedRangePLDAccountant

        accountant = BoundedRangePLDAccountant(value_discretization_interval=1e-3)
        for _ in range(3):  # one by one, and as a composed event: counted together
            accountant.compose(BoundedRangeDpEvent(0.2))
        accountant.compose(
            dp_accounting.ComposedDpEvent(
                [
                    dp_accounting.SelfComposedDpEvent(BoundedRangeDpEvent(0.2), 17),
                    dp_accounting.GaussianDpEvent(2.0),
                ]
            )
        )
        ours = epsilon(Sequence((Repeated(Exponential(0.2), 20), Gaussian(2.0))), 1e-6)
        theirs = accountant.get_epsilon(1e-6)
        assert theirs == pytest.approx(ours, rel=0.005)
        assert accountant.get_delta(theirs) == pytest.approx(1e-6, rel=1e-3)
        # As the dominating pair of one step, twenty times, it costs visibly more.
        from dp_bounded_range.google import pld

        apart = pld(0.2, 1, 1e-3).self_compose(20).get_epsilon_for_delta(1e-6)
        assert apart > 1.1 * pld(0.2, 20, 1e-3).get_epsilon_for_delta(1e-6)

    def test_renyi_accountant(self):
        from dp_bounded_range.google import BoundedRangeDpEvent, BoundedRangeRdpAccountant

        accountant = BoundedRangeRdpAccountant()
        accountant.compose(BoundedRangeDpEvent(0.1), 100)
        ours = epsilon(Repeated(Exponential(0.1), 100), 1e-6)
        assert ours <= accountant.get_epsilon(1e-6) <= 1.1 * ours

    def test_what_is_not_private_stays_so(self):
        import dp_accounting

        from dp_bounded_range.google import BoundedRangeDpEvent, BoundedRangePLDAccountant

        accountant = BoundedRangePLDAccountant()
        accountant.compose(BoundedRangeDpEvent(0.1))
        accountant.compose(dp_accounting.NonPrivateDpEvent())
        assert accountant.get_epsilon(1e-6) == math.inf
        assert accountant.get_delta(5.0) == 1
        assert not accountant.supports(dp_accounting.UnsupportedDpEvent())

    def test_examples(self):
        import dp_bounded_range.google

        for module in (dp_bounded_range, dp_bounded_range.google):
            assert doctest.testmod(module).failed == 0
