"""Which features go with the label, with a bound on the share of false discoveries.

    counts   N_0, N_1 + noise                       p = N_1/N, between .01 and .99
    g_j      = sum_i z_ij (y_i - p) + noise         rows z_i = x_i/|x_i| of length one: the gradient at the null
    S_j      = sum_i z_ij^2 + noise
    t_j      = g_j / sqrt(s_g^2 + p (1 - p) (S_j^+ + s_S) + var(p) min(N S_j, N^2))

The three terms are the noise, the sampling of y given x, and p, which is noisy itself. p-values are two-sided;
everything after the releases is post-processing. Benjamini-Hochberg bounds the false discovery rate for independent
or positively dependent t, Benjamini-Yekutieli for any. Proof: docs/proofs/inference.md.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import logit, ndtr
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from dpsparse._checks import check_choice, check_share, check_width
from dpsparse.accounting.guarantee import Guarantee, Plan
from dpsparse.domain import Domain
from dpsparse.exceptions import ParameterError
from dpsparse.inference import plan as planning
from dpsparse.inference.plan import RAREST_CLASS
from dpsparse.methods.schema import column_names, refuse_weights
from dpsparse.release import Releases, private_run
from dpsparse.rows import Rows

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger


@dataclass(eq=False, repr=False)
class DPFeatureTest(SelectorMixin, BaseEstimator):
    """Private test of every feature for marginal association with a label of two classes.

    A selector of scikit-learn: `transform` keeps the columns found, `get_feature_names_out` names them.

    **When to use.** To list columns that are related to a label, with a bound on false discoveries. It fits no model.

    Parameters
    ----------
    domain : Domain
        Needs `classes`, two of them.
    q : float, default=0.1
        Bound on the expected share of false discoveries among the features found.
    control : {"bh", "by"}, default="bh"
        Benjamini-Hochberg, or Benjamini-Yekutieli, which allows for any dependence and finds less.
    epsilon, delta, adjacency, ledger, random_state : as in every estimator
        Price of the test, the account that pays it, and its noise.

    Attributes
    ----------
    support_ : array of the columns found, rising.
    pvalues_, statistic_ : arrays of shape (n_features,)
    covers_ : what the result says and what not.

    Examples
    --------
    >>> from dpsparse import Domain, DPFeatureTest
    >>> from dpsparse.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(n_samples=2_000, n_features=50, seed=0)
    >>> test = DPFeatureTest(Domain(classes=[0, 1]), q=0.1, epsilon=2.0).fit(X, y)
    >>> test.pvalues_.shape, test.privacy_.headline
    ((50,), '(2, 1e-6)-DP of the table given to fit, add/remove one row, proven')
    """

    domain: Domain | None = None
    _: KW_ONLY
    q: float = 0.1
    control: str = "bh"
    epsilon: float = 1.0
    delta: float = 1e-6
    adjacency: str = "add-remove"
    ledger: Ledger | None = None
    random_state: int | None = None
    support_: np.ndarray = field(init=False)
    pvalues_: np.ndarray = field(init=False)
    statistic_: np.ndarray = field(init=False)
    covers_: str = field(init=False)
    plan_: Plan = field(init=False)
    privacy_: Guarantee = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: np.ndarray = field(init=False)

    def plan(self, n_features: int) -> Plan:
        """What `fit` on `n_features` columns will spend, without any data."""
        check_width(n_features)
        domain = self._check()
        shares = {"counts": 0.1, "squares": 0.2, "gradient": 0.7}
        return planning.price(
            type(self).__name__, shares, {"counts": 2, "squares": n_features, "gradient": n_features + 1}, domain,
            epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency, seed=self.random_state,
            assumptions=(),
        )  # fmt: skip

    def _check(self) -> Domain:
        check_share("q", self.q, "try 0.1")
        check_choice("control", self.control, ("bh", "by"))
        domain = planning.check(
            self.domain, self.epsilon, self.delta, self.adjacency, self.ledger, self.random_state,
            type(self).__name__,
        )  # fmt: skip
        if domain.unit == "person" and domain.rows_per_unit != 1:
            raise ParameterError(
                f"{type(self).__name__} takes rows to be independent; declare "
                "Domain(unit='person', rows_per_unit=1), which keeps one row of every person at random."
            )
        return domain

    def fit(self, X: Any, y: Any, *, groups: Any = None, **refused: Any) -> Self:
        """Test every column of X; `groups` with ``Domain(unit="person", rows_per_unit=1)``."""
        refuse_weights(refused)
        rows, _ = planning.read(X, y, self._check(), groups)
        plan, names = self.plan(rows.n_features), column_names(X)

        def test(releases: Releases) -> np.ndarray:
            return statistic(releases.capped(rows), releases)

        self.statistic_ = private_run(
            plan, None, test, ledger=self.ledger, random_state=self.random_state
        )
        self.pvalues_ = 2.0 * ndtr(-np.abs(self.statistic_))
        self.support_ = discoveries(self.pvalues_, self.q, self.control)
        self.n_features_in_ = rows.n_features
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        self.plan_, self.privacy_ = plan, plan.guarantee
        self.covers_ = self._covers()
        return self

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return np.isin(np.arange(self.n_features_in_), self.support_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.non_deterministic = True  # secure noise differs from fit to fit
        return tags

    def _covers(self) -> str:
        kind = (
            "if the statistics are independent or positively dependent"
            if self.control == "bh"
            else "whatever their dependence"
        )
        return (
            f"Of the {len(self.support_)} features found, an expected share of at most {100 * self.q:g} % has no "
            f"association with the label, {kind}, as far as p-values for many independent rows are right. The "
            "association is marginal, on rows scaled to length one: a feature that stands in for a cause, or whose "
            "rows are long, is a true discovery here. Nothing is said about features that were not found."
        )


def statistic(rows: Rows, releases: Releases) -> np.ndarray:
    """t of every feature; all that follows is post-processing."""
    query = rows.class_counts(2)
    counts = releases.gaussian("counts", query)
    known = releases.number_of_rows(rows)
    n = max(float(counts.sum()), 1.0) if known is None else float(known)
    p = float(np.clip(counts[1] / n, RAREST_CLASS, 1.0 - RAREST_CLASS))
    spread = 1.0 if known is not None else (1.0 - p) ** 2 + p**2  # of N_1/n, or of N_1/(N_0 + N_1)
    noise_p = releases.scale("counts", query) ** 2 * spread / n**2

    units = rows.unit(np.ones(rows.n_features, np.float32))
    query = units.squares()
    noise = releases.scale("squares", query)
    sizes = np.maximum(releases.gaussian("squares", query), 0.0) + noise

    null = np.zeros((rows.n_features, 1))
    query = units.gradient("logistic", null, np.array([logit(p)]), clip=max(p, 1.0 - p))
    gradient = -releases.gaussian("gradient", query)[:-1, 0]
    variance = releases.scale("gradient", query) ** 2 + p * (1.0 - p) * sizes
    variance += noise_p * np.minimum(n * sizes, n * n)
    return np.asarray(gradient / np.sqrt(np.maximum(variance, 1e-300)))


def discoveries(pvalues: np.ndarray, q: float, control: str) -> np.ndarray:
    """Columns whose p-value is at most the largest one with p_(k) <= q k/d (BY: divided by 1 + 1/2 + ... + 1/d)."""
    d = len(pvalues)
    order = np.argsort(pvalues, kind="stable")
    levels = q * np.arange(1, d + 1) / d
    if control == "by":
        levels /= np.sum(1.0 / np.arange(1, d + 1))
    passed = np.flatnonzero(pvalues[order] <= levels)
    return np.sort(order[: passed[-1] + 1]) if len(passed) else np.empty(0, np.intp)
