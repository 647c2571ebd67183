"""Wang and Gu (2020) as printed: IGHT, the two noise formulas, and the row that refutes both."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse import Domain, DPTransferClassifier
from dpsparse.exceptions import NotPrivateWarning, ParameterError
from dpsparse.losses import Logistic, Squared
from dpsparse.published import WangGuTransferClassifier, WangGuTransferRegressor
from dpsparse.published.wang_gu_2020_transfer import (
    answer_scale,
    ight,
    largest_gradient_entry,
    sparse_curvature,
    transfer,
)
from dpsparse.random import make_generator
from dpsparse.rows import Rows
from dpsparse.sensitivity import ridge_minimiser


def flip(m):
    """m + 1 rows (e1, 1) and m rows (e2, 1), and the neighbour with one row replaced."""
    rows = np.zeros((2 * m + 1, 2))
    rows[: m + 1, 0] = 1.0
    rows[m + 1 :, 1] = 1.0
    other = rows.copy()
    other[m] = [0.0, 1.0]
    return rows, other, np.ones(2 * m + 1)


def test_support_flip_breaks_the_published_sensitivity():
    """Theorem 4.3 claims 2 sqrt(s) gamma/(n ridge) for the teacher; it moves by over 50 times that."""
    m, ridge = 500, 0.1
    rows, other, y = flip(m)
    teachers = [ight(r, y, Squared(), n_nonzero=1, n_iter=100, ridge=ridge) for r in (rows, other)]
    moved = float(np.linalg.norm(teachers[0] - teachers[1]))
    claimed = 2.0 * 1.0 / ((2 * m + 1) * ridge)
    assert moved > 1.17
    assert moved > 50 * claimed


def test_support_flip_breaks_the_corollary_too():
    """Condition 4.2 holds here with mu = m/n for every theta; the teacher moves by sqrt 2 all the same."""
    rows, other, y = flip(500)
    teachers = [ight(r, y, Squared(), n_nonzero=1, n_iter=100) for r in (rows, other)]
    mu = min(
        sparse_curvature(r, y, Squared(), t) for r, t in zip((rows, other), teachers, strict=True)
    )
    gamma = max(
        largest_gradient_entry(r, y, Squared(), t)
        for r, t in zip((rows, other), teachers, strict=True)
    )
    assert mu == pytest.approx(501 / 1001)
    assert gamma == pytest.approx(1.0)
    moved = float(np.linalg.norm(teachers[0] - teachers[1]))
    assert moved == pytest.approx(2**0.5)
    assert moved > 300 * 2.0 * gamma / (1001 * mu)  # what Corollary 4.7's proof allows


def test_support_flip_leaves_the_proven_teacher_within_its_sensitivity():
    """Given the released support the teacher moves by no more than the plan pays for."""
    X, other, y = flip(500)
    domain = Domain(feature_bound=1.0, target_bound=2.0)
    ridge = 0.1 * 1001
    for support in ([0], [1], [0, 1]):
        for cutoff in (0.25, 0.5):
            answers = []
            for table_ in (X, other):
                columns = Rows.clip(sp.csr_array(table_), y, domain).ridge(
                    np.array(support), constant=0.0, row_clip=1.0, longest=2.0
                )
                query = columns.problem("huber", ridge=ridge, tol=1e-9, cutoff=cutoff).minimiser()
                answers.append(query.whole(1e-9) * 1e-9)
            bound = ridge_minimiser(cutoff, 1.0, 1.0, ridge, "replace-one", tol=1e-9).value
            assert np.linalg.norm(answers[0] - answers[1]) <= bound + 2e-9


def test_the_attacker_reads_the_support_off_the_student():
    """At a claimed epsilon of 1: right in 40 of 40 runs (a coin would do that once in 10^12)."""
    right = 0
    for seed in range(20):
        for rows, feature in zip(flip(500)[:2], (0, 1), strict=True):
            rng = make_generator(seed)
            student = transfer(
                rows, np.ones(1001), rng.uniform(-1, 1, (50, 2)), Squared(), rng, n_nonzero=1,
                n_iter=60, ridge=0.0, epsilon=1.0, delta=1e-6, public_variance=1 / 3,
            )  # fmt: skip
            right += int(student[feature] != 0)
    assert right == 40


def test_noise_of_the_theorem_and_of_the_corollary():
    """By hand: sigma^2 = 8 m beta s gamma^2 log(2.5/delta)/(n^2 epsilon^2 ridge^2)."""
    common = {"n_public": 800, "n_samples": 800, "n_nonzero": 10, "epsilon": 0.8, "delta": 0.01,
              "public_variance": 1 / 3}  # fmt: skip
    by_hand = np.sqrt(8 * 800 / 3 * 10 * 0.9**2 * np.log(250)) / (800 * 0.8 * 0.3)
    assert answer_scale(gamma=0.9, curvature=0.3, **common) == pytest.approx(by_hand)
    # Remark 4.11 prints it with m = n and beta in the constant: 8 s gamma^2 log(2.5/delta)/(n eps^2 mu^2)
    remark = np.sqrt(8 * 10 * 0.9**2 * np.log(250) / (800 * 0.8**2 * 0.3**2))
    assert answer_scale(
        gamma=0.9, curvature=0.3, **(common | {"public_variance": 1.0})
    ) == pytest.approx(remark)


def test_constants_are_read_off_the_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 40))
    theta = np.zeros(40)
    theta[[3, 8]] = [1.0, -2.0]
    y = (rng.random(300) < 0.5).astype(int)
    p = 1 / (1 + np.exp(-X @ theta))
    entries = np.abs((p - y)[:, None] * X)
    assert largest_gradient_entry(X, y, Logistic(), theta) == pytest.approx(entries.max())
    assert largest_gradient_entry(sp.csr_array(X), y, Logistic(), theta) == pytest.approx(
        entries.max()
    )
    columns = X[:, [3, 8]]
    hessian = columns.T @ ((p * (1 - p))[:, None] * columns) / 300
    strict = np.linalg.eigvalsh(hessian)[0]
    assert sparse_curvature(X, y, Logistic(), theta, strict=True) == pytest.approx(strict)
    loose = np.mean(p * (1 - p)) * np.linalg.eigvalsh(columns.T @ columns / 300)[0]
    assert sparse_curvature(X, y, Logistic(), theta) == pytest.approx(loose)


def test_corollary_recovers_what_figure_2_shows():
    """n = 800, d = 1000, s = 10, epsilon 5: near the non-private error (0.03); 4.3 with lambda 0.1 is not."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (800, 1000))
    theta = np.zeros(1000)
    theta[rng.choice(1000, 10, replace=False)] = rng.standard_normal(10)
    y = X @ theta + 0.1**0.5 * rng.standard_normal(800)
    domain = Domain(target_bound=5.0, n_samples=800)
    errors = {}
    for ridge in (0.0, 0.1):
        model = WangGuTransferRegressor(
            domain, epsilon=5.0, delta=0.01, n_nonzero=10, ridge=ridge, random_state=0
        )
        with pytest.warns(NotPrivateWarning):
            model.fit(X, y)
        errors[ridge] = np.linalg.norm(model.coef_ - theta) / np.linalg.norm(theta)
    assert errors[0.0] < 0.1
    assert errors[0.1] > 2 * errors[0.0]


def test_plans_name_the_statement_they_follow():
    domain = Domain(classes=(0, 1), n_samples=100)
    for ridge, name in ((0.0, "Corollary 4.7"), (0.1, "Theorem 4.3"), (None, "Theorem 4.3")):
        plan = WangGuTransferClassifier(domain, ridge=ridge).plan(5)
        assert name in plan.source
        assert not plan.proven
    with pytest.raises(ParameterError, match="ridge"):
        DPTransferClassifier(domain, ridge=0.0).plan(5)


def test_ight_recovers_a_sparse_vector():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (400, 800))
    theta = np.zeros(800)
    theta[:6] = [2.0, -1.5, 1.0, 3.0, -2.0, 1.2]
    estimate = ight(X, X @ theta, Squared(), n_nonzero=6, n_iter=200)
    assert np.allclose(estimate, theta, atol=1e-6)
    y = (rng.random(400) < 1 / (1 + np.exp(-X @ (3 * theta)))).astype(int)
    found = ight(X, y, Logistic(), n_nonzero=6, n_iter=200)
    assert np.count_nonzero(found[:6]) >= 5
