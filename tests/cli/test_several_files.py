"""`dpsparse fit` on several files and under --memory: the model of one file in memory."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
COMMON = ("--classes", "0,1", "--target", "y", "--random-state", "3", "--param", "n_iter=4")


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        ",".join(map(repr, [*rng.random(4).tolist(), int(rng.integers(2))])) for _ in range(90)
    ]
    names = {"all.csv": lines, "a.csv": lines[:40], "b.csv": lines[40:]}
    for name, rows in names.items():
        (tmp_path / name).write_text("\n".join(["p,q,r,s,y", *rows]) + "\n")
    return tmp_path


def weights(path):
    return json.loads(path.read_text())["model"]["attributes"]["coef_"]


def test_several_files_and_a_cap_give_the_same_model(command, tables):
    whole, parts, capped = (tables / f"{name}.json" for name in ("whole", "parts", "capped"))
    scale = ("--feature-bound", "2")
    assert command("fit", tables / "all.csv", "-o", whole, *COMMON, *scale)[0] == 0
    assert command("fit", tables / "a.csv", tables / "b.csv", "-o", parts, *COMMON, *scale)[0] == 0
    assert (
        command("fit", tables / "all.csv", "-o", capped, "--memory", "1MB", *COMMON, *scale)[0] == 0
    )
    assert weights(whole) == weights(parts) == weights(capped)


def test_refusals_name_the_option(command, tables):
    out = tables / "m.json"
    (tables / "a.svm").write_text("1 1:2\n")
    for words, told in (
        (("--memory", "few"), "memory"),
        (("--memory", "1GB", "--person", "p"), "--memory"),
        (("--memory", "1GB", "--bounds", "p=0..1"), "--feature-bound"),
        (
            ("--memory", "1GB", "--method", "lasso"),
            "--feature-bound 1 if all entries lie in [-1, 1]. Nothing",
        ),
    ):
        code, text = command("fit", tables / "all.csv", "-o", out, *COMMON, *words)
        assert code == 2
        assert told in text
    code, text = command("fit", tables / "a.csv", tables / "a.svm", "-o", out, *COMMON)
    assert (code, "format" in text) == (2, True)
    code, text = command("fit", tables / "a.svm", "-o", out, "--classes", "0,1", "--memory", "1GB")
    assert (code, "--n-features" in text) == (2, True)
    assert not out.exists()
