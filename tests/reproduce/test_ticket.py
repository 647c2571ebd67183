"""The entry ticket lets every rival in and refuses what promises more than it keeps."""

from dataclasses import replace

import numpy as np
import pytest

from lab.rivals import ENTRIES
from lab.rivals.base import Weights, bounded_rows, gaussian_mu
from lab.ticket import check_entry, halved_copy

RIVALS = [name for name in ENTRIES if name != "DPSGD"]


@pytest.mark.parametrize(
    "name", [*RIVALS[:2], *(pytest.param(name, marks=pytest.mark.heavy) for name in RIVALS[2:])]
)
def test_every_rival_is_let_in_and_its_halved_copy_is_not(name):
    kinds = ENTRIES[name].handles[:1]
    good = check_entry(ENTRIES[name], kinds)
    assert good.passed, good.complaints
    assert good.tightness > 0.7  # the pairs come near the bound; a logistic slope is below it
    bad = check_entry(halved_copy(ENTRIES[name]), kinds)
    assert any("its events spend" in text for text in bad.complaints)


@pytest.mark.slow
def test_poisson_batches_are_let_in_and_their_halved_copy_is_not():
    assert check_entry(ENTRIES["DPSGD"], ("binary",)).passed
    assert not check_entry(halved_copy(ENTRIES["DPSGD"]), ("binary",)).passed


def mean_of_rows(understated=1.0, own_noise=False, looks=False):
    """A small entry, with a fault or without."""

    def fit(X, y, public, epsilon, delta, noise):
        rows = bounded_rows(X, y, public, 0.5)
        bound = rows.NORM * understated
        sigma = bound / gaussian_mu(epsilon, delta)
        if looks and len(y) % 2:
            noise.gaussian("once more", np.zeros(1), 1.0, 1e9)
        total = np.asarray(rows.Z.T @ (2 * rows.t - 1))
        w = noise.gaussian("sum", total, bound, sigma) / public.n_rows
        if own_noise:
            w = w + np.random.default_rng(int(1e6 * abs(total[0])) % 2**31).normal(size=w.shape)
        return rows.weights(w)

    proof = (
        "Proof. A row adds a vector of length at most sqrt 2 to the sum, so one Gaussian answer will do. "
        * 3
    )
    return replace(ENTRIES["NaiveBayes"], name="mean", fit=fit, proof=proof, handles=("binary",))


def test_faults_are_named():
    assert check_entry(mean_of_rows()).passed
    assert "times as far" in check_entry(mean_of_rows(understated=0.5)).complaints[0]
    assert "differ" in check_entry(mean_of_rows(own_noise=True)).complaints[0]
    assert "more answers" in check_entry(mean_of_rows(looks=True)).complaints[0]
    assert "no proof note" in check_entry(replace(mean_of_rows(), proof="trust me")).complaints


def test_an_entry_without_noise_is_refused():
    def fit(X, y, public, epsilon, delta, noise):
        total = np.asarray(X, float).sum(axis=0)
        return Weights(noise.gaussian("sum", total, 1e9, 0.0)[None], np.zeros(1))

    assert "spend inf" in check_entry(replace(mean_of_rows(), fit=fit)).complaints[0]
