"""How many files of `src` a reader enters who follows one call, from its first line to its last.

    python tests/walks.py            prints the files of the three walks of docs/architecture.md

A file is entered if one of its Python functions runs during the call. Lines that run while a file is imported do not
count, and neither do compiled kernels: both are read where they are called.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

import dpsparse
from dpsparse import Domain, DPLassoClassifier, DPSparseClassifier
from dpsparse.cli.commands import program

HERE = Path(dpsparse.__file__).parent


def files_entered(walk: Callable[[float], object]) -> list[str]:
    """Files of the package in which a function ran during `walk`."""
    entered: set[str] = set()

    def notice(frame, event, argument):
        place = frame.f_code.co_filename, frame.f_code.co_name
        if event == "call" and frame.f_code.co_name != "<module>" and place not in compiled:
            entered.add(frame.f_code.co_filename)

    walk(1.0)  # imports what the call needs; another price, so that nothing is remembered
    modules = [module for name, module in sys.modules.items() if name.startswith("dpsparse")]
    # Numba tells a profiler of its kernels as if they were Python, by names of their own.
    compiled = {
        (kernel.py_func.__code__.co_filename, kernel.py_func.__code__.co_name)
        for module in modules
        for kernel in vars(module).values()
        if hasattr(kernel, "py_func")
    }
    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        walk(1.1)
    finally:
        sys.setprofile(before)
    ours = [Path(name) for name in entered if Path(name).is_relative_to(HERE)]
    return sorted(str(path.relative_to(HERE)) for path in ours)


def fit_sparse(epsilon: float) -> None:
    _fit(DPSparseClassifier, epsilon)


def fit_lasso(epsilon: float) -> None:
    _fit(DPLassoClassifier, epsilon)


def _fit(kind: Any, epsilon: float) -> None:
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 50))
    kind(Domain(classes=[0, 1], n_samples=2000), epsilon=epsilon).fit(X, (X[:, 0] > 0).astype(int))


def fit_prepared_table(epsilon: float) -> None:
    """A table of a number and a category, through the command line."""
    rng = np.random.default_rng(0)
    ages, wards, labels = (
        rng.integers(18, 90, 2000),
        rng.choice(list("ABC"), 2000),
        rng.integers(2, size=2000),
    )
    lines = [f"{age},{ward},{label}" for age, ward, label in zip(ages, wards, labels, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        table, book = Path(folder, "people.csv"), Path(folder, "budget.db")
        table.write_text("\n".join(["age,ward,label", *lines]) + "\n")
        dpsparse.Ledger(book, epsilon=2.0, delta=1e-5)
        words = f"fit {table} --target label --classes 0,1 --prepare private --epsilon {epsilon} --delta 1e-6"
        done = CliRunner().invoke(
            program, [*words.split(), "--ledger", str(book), "-o", f"{folder}/model.json"]
        )
        assert done.exit_code == 0, done.output


WALKS = {
    "DPSparseClassifier.fit": fit_sparse,
    "DPLassoClassifier.fit": fit_lasso,
    "dpsparse fit --prepare private --ledger": fit_prepared_table,
}


def main() -> None:
    warnings.simplefilter("ignore")
    for name, walk in WALKS.items():
        files = files_entered(walk)
        print(f"{name}: {len(files)} files\n  " + "  ".join(files))


if __name__ == "__main__":
    main()
