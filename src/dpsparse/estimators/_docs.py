"""Docstrings of estimators say what is special about each; what all share stands here, once."""

from __future__ import annotations

import re

from sklearn.base import RegressorMixin

# What the parameters mean that every method has: `{shared}` in the docstring of an estimator.
_SHARED = """adjacency : {"add-remove", "replace-one"}
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int, default=0
        1 tells every phase with its seconds, 0 shows a line on a terminal while a fit takes long, -1 nothing."""
# A whole use of an estimator: `{example: parameters}` in its docstring.
_EXAMPLE = """Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, {name}
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain({fact}, row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = {name}(domain, epsilon=2.0, {more}).fit(X, {targets})
    >>> model.coef_.shape, model.privacy_.headline
    ({shape}, '(2.0, 1e-06)-DP of the table given to fit, add/remove one row, proven')"""


def completed(doc: str, kind: type) -> str:
    """A docstring with what its marks stand for."""
    text = doc.replace("{shared}", _SHARED)
    return re.sub(r"\{example: (.*)\}", lambda found: _example(kind, found[1]), text)


def _example(kind: type, more: str) -> str:
    numbers = issubclass(kind, RegressorMixin)
    return _EXAMPLE.format(
        name=kind.__name__,
        more=more,
        fact="target_bound=1.0" if numbers else "classes=[0, 1]",
        targets="X[:, 0]" if numbers else "(X[:, 0] > 0).astype(int)",
        shape="(8,)" if numbers else "(1, 8)",
    )
