"""Where Numba is absent a model is planned, loaded and used; a fit says what to install."""

import os
import subprocess
import sys

import numpy as np

import dpsparse
from dpsparse import Domain, DPSparseClassifier

CODE = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import numpy as np
import dpsparse
from dpsparse import Domain, DPSparseClassifier
model = DPSparseClassifier(Domain(classes=[0, 1], n_samples=400), epsilon=1)
print(model.plan(n_features=3).epsilon)
print(dpsparse.load(sys.argv[1]).predict_proba(np.eye(3)).tolist())
try:
    model.fit(np.eye(3), [0, 1, 1])
except ImportError as error:
    print(error)
"""


def test_plan_load_and_predict_need_no_compiler(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3))
    model = DPSparseClassifier(Domain(classes=[0, 1], n_samples=400), epsilon=1)
    model.fit(X, (X[:, 0] > 0).astype(int))
    dpsparse.save(model, tmp_path / "model.json")
    told = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "model.json")],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ},
    )
    assert told.returncode == 0, told.stderr
    price, chances, refused = told.stdout.splitlines()
    assert float(price) <= 1
    assert chances == str(model.predict_proba(np.eye(3)).tolist())
    assert "pip install numba" in refused
