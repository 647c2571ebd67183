"""One arithmetic on every processor: right to the last digits, and fits that do not notice vector units."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

from dpsparse import arithmetic

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", ["exp", "log", "logit", "expit"])
def test_right_to_the_last_digits(name):
    rng = np.random.default_rng(0)
    x = rng.uniform(-30.0, 30.0, 400)
    x = {"exp": x, "expit": x, "log": np.exp(x), "logit": rng.uniform(1e-6, 1 - 1e-6, 400)}[name]
    exact = {
        "exp": mpmath.exp,
        "log": mpmath.log,
        "logit": lambda p: mpmath.log(p / (1 - p)),
        "expit": lambda v: 1 / (1 + mpmath.exp(-v)),
    }[name]
    with mpmath.workdps(40):
        for value, found in zip(x, getattr(arithmetic, name)(x), strict=True):
            true = exact(mpmath.mpf(float(value)))
            allowed = 4e-16 * (max(1, abs(true)) if name.startswith("log") else true)
            if name == "logit":
                allowed *= 4  # 1 - p is rounded
            assert abs(true - mpmath.mpf(float(found))) <= allowed
    assert float(arithmetic.log(1.0)) == 0.0
    assert float(arithmetic.exp(0.0)) == 1.0


def test_the_exponential_of_minimisers_errs_less_than_its_lemma_allows():
    """docs/proofs/ridge.md, Lemma 2, takes two units of 2^-53."""
    from dpsparse.jit import njit
    from dpsparse.rows import loss_kernels

    _exp = njit()(lambda at: loss_kernels.exp(at))  # inner functions cannot be called from Python

    rng = np.random.default_rng(0)
    spread = (30.0, 0.36, 99.0)
    x = np.concatenate([rng.uniform(-width, width, 400) for width in spread])
    with mpmath.workdps(40):
        for value in x:
            true = mpmath.exp(mpmath.mpf(float(value)))
            assert abs(true - mpmath.mpf(float(_exp(value)))) < 2 * mpmath.mpf(2) ** -53 * true
    assert _exp(-1e300) == _exp(-99.0)
    assert _exp(1e300) == _exp(99.0)


def test_leading_bits_do_not_show_the_order_of_a_sum():
    """A product of matrices that should be diagonal has last digits where it should have zeros."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    sizes = np.linspace(1.0, 1e3, 30)
    found = (turn * sizes) @ turn.T
    other = sum(size * np.outer(axis, axis) for size, axis in zip(sizes, turn.T, strict=True))
    assert not np.array_equal(found, other)
    assert np.array_equal(arithmetic.leading_bits(found), arithmetic.leading_bits(other))
    assert np.array_equal(arithmetic.leading_bits(turn @ turn.T, 24), np.eye(30))
    np.testing.assert_allclose(arithmetic.leading_bits(found), found, atol=1e3 * 2.0**-26)
    for odd in (np.zeros(3), np.array([1e-310, 5e-324]), np.array([1e308, -1.0]), np.empty((0, 3))):
        np.testing.assert_allclose(arithmetic.leading_bits(odd), odd, rtol=1e-7, atol=1e301)


def digests():
    """Of small fits whose rows come from whole numbers, not from a function of NumPy's."""
    import scipy.sparse as sp

    from dpsparse import (
        Domain,
        DPGradientClassifier,
        DPGradientRegressor,
        DPLassoClassifier,
        DPTwoStageClassifier,
    )

    found = hashlib.blake2b(digest_size=8)
    for n, d in ((300, 700), (700, 20)):
        cells = (np.arange(n * d) * 7919 % 1009).reshape(n, d)
        X = sp.csr_array(np.where(cells < 90, cells / 90.0, 0.0))
        for K in (2, 5):
            for epsilon in (2.0, float("inf")):
                model = DPGradientClassifier(
                    Domain(classes=list(range(K))), epsilon=epsilon, n_iter=15, random_state=1
                ).fit(X, np.arange(n) * 31 % n * K // n)
                found.update(model.coef_.tobytes() + model.intercept_.tobytes())
        target = (np.arange(n) * 31 % n) / n
        fitted = DPGradientRegressor(Domain(target_bound=1.0), n_iter=15, random_state=1).fit(
            X, target
        )
        found.update(fitted.coef_.tobytes() + fitted.coef_noise_.tobytes())
    # Slopes of Frank-Wolfe with five classes, and a minimiser by objective perturbation.
    domain = Domain(classes=list(range(5)), n_samples=n)
    y = np.arange(n) * 31 % n * 5 // n
    lasso = DPLassoClassifier(domain, radius=9.0, n_iter=40, epsilon=9.0, random_state=1).fit(X, y)
    domain = Domain(classes=[0, 1], n_samples=n, row_norm=2.0)
    two = DPTwoStageClassifier(domain, n_nonzero=5, epsilon=4.0, random_state=1).fit(X, y > 1)
    found.update(lasso.coef_.tobytes() + two.coef_.tobytes() + two.intercept_.tobytes())
    return found.hexdigest()


def all_families():
    """Weights and prices of every case of the audit: all estimators, losses and ways to select."""
    from golden.test_golden import ALL, record

    return json.dumps({name: record(model) for name, model in ALL})


def elsewhere(what="digests", **environment):
    code = f"import warnings; warnings.simplefilter('ignore'); import test_arithmetic as t; print(t.{what}())"
    path = os.pathsep.join([str(HERE), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )  # fmt: skip
    return done.stdout.strip()


# The C library's exponentials without AVX2 and fused products, and NumPy's without all it dispatches (AVX512, AVX2).
PLAIN_C = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX,-FMA4"}


def without_vector_units():
    from numpy._core import _multiarray_umath as loops

    return {"NPY_DISABLE_CPU_FEATURES": " ".join(loops.__cpu_dispatch__)} | PLAIN_C


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
def test_fits_do_not_notice_vector_units():
    assert elsewhere(**without_vector_units()) == digests()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
def test_nor_do_fits_of_any_family():
    """Bit for bit under the same noise. Some plans find their noise by roots of functions that use NumPy's
    exponential, on the client: there a scale may differ in its last digits, and weights follow it. Linear
    algebra is that of the machine in both (docs/scaling.md)."""
    here, there = (
        json.loads(all_families()),
        json.loads(elsewhere("all_families", **without_vector_units())),
    )
    same = [name for name in here if here[name]["events"] == there[name]["events"]]
    assert [name for name in same if here[name] != there[name]] == []
    assert len(same) > 0.9 * len(here)
    for name in here.keys() - same:
        np.testing.assert_allclose(here[name]["coef"], there[name]["coef"], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
def test_nor_do_fits_of_any_family_follow_the_linear_algebra():
    """Another kernel of OpenBLAS adds in another order: weights and prices stay, bit for bit."""
    here = json.loads(all_families())
    there = json.loads(elsewhere("all_families", OPENBLAS_CORETYPE="Prescott"))
    assert [name for name in here if here[name] != there[name]] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
def test_nor_what_numba_compiles_for(tmp_path):
    """Compiles every kernel anew for a processor without vector units beyond the first: a minute."""
    there = elsewhere(
        NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="", NUMBA_CACHE_DIR=str(tmp_path)
    )
    assert there == digests()
