"""`dpsparse warm-up`: compile the kernels once, so that no fit has to wait for it."""

from __future__ import annotations

import time

import click

from dpsparse.cli.output import say


@click.command("warm-up")
def warm_up() -> None:
    """Compile for this machine now (about half a minute); the code is kept beside the package.

    Fits made-up rows with the commonest settings of both main families. In a container run it while the
    image is built; NUMBA_CACHE_DIR chooses where the code is kept if the package cannot be written to.
    """
    import numpy as np
    import scipy.sparse as sp

    from dpsparse import estimators as est
    from dpsparse.domain import Domain
    from dpsparse.privacy import ObjectivePerturbation, gaussian_parameter

    X = sp.csr_array(np.maximum(np.cos(np.outer(np.arange(60), np.arange(1, 13))), 0.0))
    labels = np.arange(60) % 2
    two, number = Domain(classes=[0, 1], n_samples=60), Domain(target_bound=1.0, n_samples=60)
    jobs = [
        (est.DPLassoClassifier(two, n_iter=20), X, labels),
        (est.DPLassoClassifier(two, n_iter=200), X.astype(np.float32), labels),
        (est.DPLassoRegressor(number, n_iter=20), X, labels - 0.5),
        (est.DPGradientClassifier(two), X, labels),
        (est.DPGradientClassifier(Domain(classes=[0, 1, 2])), X, np.arange(60) % 3),
        (est.DPGradientRegressor(number), X, labels - 0.5),
    ]
    start = time.perf_counter()
    for model, rows, targets in jobs:
        model.fit(rows, targets)
    gaussian_parameter(
        ObjectivePerturbation(10.0, 1.0, 0.1, 1.0)
    )  # what a ledger charges two-stage fits
    say(f"ready after {time.perf_counter() - start:.1f} s")
