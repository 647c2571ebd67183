"""The Python of the guide's pages runs as it stands, one block after the other, on made-up rows."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn

from dpsparse import Domain, DPGradientClassifier, Ledger
from dpsparse.datasets import make_sparse_classification

DOCS = Path(__file__).parents[2] / "docs"


def given() -> dict[str, object]:
    """What the pages take for granted: rows, texts, a table, persons."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 2_000
    X, y = make_sparse_classification(n_samples=n, n_features=300, seed=0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n), "income": rng.lognormal(10, 1, n), "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["A", "B"], n), "employer": rng.choice(["X", "Y"], n), "note": ["a b"] * n,
            "id": range(n),
        }
    )  # fmt: skip
    texts = [" ".join(rng.choice(["good", "bad", "film", "plot"], 6)) for _ in range(n)]
    return {
        "X": X, "y": y, "X_test": X, "y_test": y, "texts": texts, "new_texts": texts[:3], "frame": frame,
        "patient_ids": np.arange(n) // 2, "ids": np.arange(n) // 2, "domain": Domain(classes=[0, 1], n_samples=n),
    }  # fmt: skip


@pytest.fixture
def _routing():
    before = sklearn.get_config()["enable_metadata_routing"]
    yield
    sklearn.set_config(enable_metadata_routing=before)


@pytest.mark.usefixtures("_routing")
@pytest.mark.parametrize(
    "page",
    ["install", "budget", "persons", "guide", "choosing_method", "preparation", "evaluation", "tuning"],
)  # fmt: skip
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = given()
    words = np.where(np.asarray(names["y"]) == 0, "no", "yes")
    if page in ("preparation", "evaluation"):  # they open an account that exists
        Ledger("budget.db", epsilon=8.0, delta=1e-6)
    if page == "evaluation":
        good = DPGradientClassifier(
            Domain(classes=[0, 1]), epsilon=20.0
        )  # so that a threshold is in reach
        names["model"] = good.fit(names["X"], names["y"])
    if page == "tuning":
        names["ledger"] = Ledger("budget.db", epsilon=3.0, delta=1e-6)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text("utf-8"), re.DOTALL)
    assert blocks
    for code in blocks:
        if '["no", "yes"]' in code:
            names["y"] = words
        if "persons=True" in code:
            names["ledger"] = Ledger("persons.db", epsilon=3.0, delta=1e-6, unit="person")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # small tables, and fits that nobody keeps count of
            exec(compile(code, page, "exec"), names)
