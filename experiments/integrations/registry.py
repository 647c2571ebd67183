"""The list of integrations, the environments they run in, and the made-up rows they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from dpsparse import Domain, DPGradientClassifier, DPGradientRegressor

# Distributions that an environment has beside dpsparse and what it needs.
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "core": ("cloudpickle",),
    "tables": (
        "pandas", "polars", "pyarrow", "duckdb", "fsspec", "dask[array,dataframe,distributed]",
        "xarray", "openpyxl", "ibis-framework[duckdb]", "skrub",
    ),
    "tools": (
        "pandas", "pyarrow", "polars", "duckdb", "skl2onnx", "onnxruntime", "mlflow-skinny", "shap", "lime", "eli5",
        "optuna", "fairlearn", "imbalanced-learn", "skops", "mapie", "feature-engine", "category-encoders", "mlxtend",
        "m2cgen", "matplotlib",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Integration:
    """A tool, what is done with it, and the function that does it; it returns what is worth saying."""

    tool: str
    what: str
    environment: str
    run: Callable[[], str | None]

    @property
    def name(self) -> str:
        return f"{self.tool}: {self.what}"


ALL: list[Integration] = []
Function = Callable[[], str | None]


def integration(tool: str, what: str, environment: str = "core") -> Callable[[Function], Function]:
    """Add a function to the list."""

    def add(function: Function) -> Function:
        ALL.append(Integration(tool, what, environment, function))
        return function

    return add


def integrate(tool: str, environment: str, functions: dict[str, Function]) -> None:
    """Add what is said in one expression each."""
    for what, function in functions.items():
        integration(tool, what, environment)(function)


class Later:
    """A module that is imported when it is first used: a tool is there in its own environment only."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


# ---- made-up rows --------------------------------------------------------------------------------

NAMES = [f"x{j}" for j in range(6)]
X = np.random.default_rng(0).uniform(-1.0, 1.0, (800, 6))
y = (X[:, 0] - X[:, 1] > 0).astype(int)
numbers = X[:, 0] - X[:, 1]


def classifier(**settings: Any) -> DPGradientClassifier:
    """Seeded, so that a fit elsewhere can be compared bit for bit."""
    settings = {"epsilon": 8.0, "random_state": 0, **settings}
    return DPGradientClassifier(Domain(classes=[0, 1], feature_bound=1.0), **settings)


def regressor(**settings: Any) -> DPGradientRegressor:
    settings = {"epsilon": 8.0, "random_state": 0, **settings}
    return DPGradientRegressor(Domain(target_bound=2.0, feature_bound=1.0), **settings)


def frame() -> Any:
    """Columns x0 to x5 and y as a data frame of pandas."""
    import pandas as pd

    return pd.DataFrame(X, columns=NAMES).assign(y=y)


def check_same(model: Any, expected: Any = None) -> str:
    """The weights are those of the fit on the array in memory, bit for bit."""
    expected = classifier().fit(X, y) if expected is None else expected
    assert np.array_equal(model.coef_, expected.coef_), "the weights differ"
    assert np.array_equal(model.intercept_, expected.intercept_), "the intercepts differ"
    return "same bits as the array"
