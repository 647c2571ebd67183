"""Dask is an extra: without it everything else works, and whoever asks for it is told how to get it."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("dask", "distributed"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""
FIT = """
import warnings
import numpy as np
from dpsparse import Domain, DPGradientClassifier, Rows
from dpsparse.exceptions import ParameterError
import scipy.sparse as sp
warnings.simplefilter("ignore")
X, y = sp.csr_array(np.eye(60)), np.arange(60) % 2
models = [DPGradientClassifier(Domain(classes=[0, 1]), n_iter=3, random_state=0) for _ in range(2)]
models[0].fit(X, y)
models[1].fit(Rows.from_csr(X, y))
assert np.array_equal(models[0].coef_, models[1].coef_)
assert models[0].predict(X).shape == (60,)
try:
    Rows.from_dask([X], [y])
except ParameterError as error:
    assert "pip install 'dpsparse[dask]'" in str(error)
else:
    raise AssertionError("Rows.from_dask worked")
"""


def run(code, seconds=300):
    done = subprocess.run(
        [sys.executable, "-c", HIDE + code], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_fits_work_and_the_remedy_is_named():
    run(FIT)


@pytest.mark.slow
def test_the_tests_of_rows_pass():
    """With `python -m pytest` on all of tests/ the same hook gives the whole suite without Dask."""
    arguments = ["-q", "-p", "no:cacheprovider", "-m", "not slow", str(TESTS / "rows")]
    out = run(f"import pytest; sys.exit(int(pytest.main({arguments!r})))", seconds=580)
    assert "dask is not installed" in out
