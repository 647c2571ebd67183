"""The teacher of DPSL-KT on a released support: the support-flip counterexample, and why direct release is better."""

import numpy as np
import scipy.sparse as sp

from dpsparse.domain import Domain
from dpsparse.rows import Rows
from dpsparse.sensitivity import ridge_minimiser


def table(X, y):
    domain = Domain(feature_bound=1.0, target_bound=2.0)
    return Rows.clip(sp.csr_array(X), y, domain, labels=None)


def flip(m):
    """m + 1 rows (e1, 1) and m rows (e2, 1), and the neighbour with one row replaced."""
    rows = np.zeros((2 * m + 1, 2))
    rows[: m + 1, 0] = 1.0
    rows[m + 1 :, 1] = 1.0
    other = rows.copy()
    other[m] = [0.0, 1.0]
    return rows, other, np.ones(2 * m + 1)


def test_support_flip_leaves_the_proven_teacher_within_its_sensitivity():
    """Given the released support the teacher moves by no more than the plan pays for."""
    X, other, y = flip(500)
    ridge = 0.1 * 1001
    for support in ([0], [1], [0, 1]):
        for cutoff in (0.25, 0.5):
            answers = []
            for table_ in (X, other):
                columns = table(table_, y).ridge(
                    np.array(support), constant=0.0, row_clip=1.0, longest=2.0
                )
                query = columns.problem("huber", ridge=ridge, tol=1e-9, cutoff=cutoff).minimiser()
                answers.append(query.whole(1e-9) * 1e-9)
            bound = ridge_minimiser(cutoff, 1.0, 1.0, ridge, "replace-one", tol=1e-9).value
            assert np.linalg.norm(answers[0] - answers[1]) <= bound + 2e-9


def test_direct_release_is_never_worse_than_distillation():
    public_rows = np.random.default_rng(1).uniform(-1, 1, (400, 6))
    norm = np.linalg.norm(public_rows, 2)
    covariance = norm**2 * np.linalg.inv(public_rows.T @ public_rows)  # per unit of scale^2
    assert np.min(np.linalg.eigvalsh(covariance)) >= 1.0 - 1e-9
