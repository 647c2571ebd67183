"""Code from the wheel is used where it is sure to be the code of this package, and nowhere else."""

import ast
import contextlib
import importlib
import os
import pickle
import pkgutil
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numba
import pytest
from numba.core.registry import CPUDispatcher

import dpsparse
from dpsparse import jit

ROOT = Path(__file__).parents[1]


def code_of(function, *arguments):
    """What an extension module would hold: a C function that takes Python objects."""
    compiled = numba.njit(function)
    compiled(*arguments)
    (overload,) = compiled.overloads.values()
    return tuple(overload.signature.args), overload.entry_point


def test_entered_code_is_called_for_its_types_only():
    dispatcher = numba.njit(lambda x: x + 1)
    types, code = code_of(lambda x: x + 100, 2)
    jit._enter(dispatcher, types, code)
    assert dispatcher(1) == 101
    assert dispatcher(1.0) == 2.0
    assert numba.njit(lambda x: dispatcher(x) * 2)(1) == 4  # inside other kernels: the source
    assert dispatcher(1) == 101  # not a second way to call it


def compiled_modules():
    """The modules of the package that hold compiled functions: their files are what `hatch_build.py` hashes."""
    for found in pkgutil.walk_packages(dpsparse.__path__, "dpsparse."):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # optional dependencies
                importlib.import_module(found.name)
    return {
        home: functions
        for home, module in list(sys.modules.items())
        if home.startswith("dpsparse.") and (functions := _own_functions(home, module))
    }


def _own_functions(home, module):
    found = [f for f in vars(module).values() if isinstance(f, CPUDispatcher)]
    return [f for f in found if f.py_func.__module__ == home]


@cache
def imported_names(file):
    """What a file takes from the package: its name there -> its module and the name in full."""
    return {
        name.asname or name.name: (node.module, f"{node.module}.{name.name}")
        for node in ast.walk(ast.parse(Path(file).read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpsparse")
        for name in node.names
    }


def names_from_elsewhere(module, function, homes):
    """What a compiled function takes from files of the package that are not hashed: its code holds their numbers."""
    origin = imported_names(module.__file__)
    used = function.py_func.__code__.co_names
    return [name for name in used if name in origin and not {*origin[name]} & {*homes}]


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="there is no compiled code")
def test_compiled_functions_take_nothing_from_files_that_are_not_hashed():
    """Else code of the wheel could be used although a number that it holds has changed."""
    homes = compiled_modules()
    assert {"dpsparse.random", "dpsparse.methods.frank_wolfe.kernel"} <= {*homes}
    used, hashed = (
        0,
        {*homes, "dpsparse.jit", "dpsparse.arithmetic"},
    )  # `record` of hatch_build.py begins with these
    for home, functions in homes.items():
        for function in functions:
            assert names_from_elsewhere(sys.modules[home], function, hashed) == []
            used += len(names_from_elsewhere(sys.modules[home], function, ()))
    assert used > 5  # such names exist, and all of them are in hashed files


@pytest.fixture
def wheel(monkeypatch, tmp_path):
    """A record of code for one function, in a folder of its own."""
    types, code = code_of(lambda x: x + 100, 2)
    holder = type("module", (), {"plus_0": code})
    source = tmp_path / "source.py"
    source.write_text("x + 1")
    record = {
        "numba": numba.__version__,
        "processor": [],
        "sources": {"source.py": jit.hash_of(source)},
        "functions": {f"{__name__}.plus": [("plus_0", pickle.dumps(types))]},
    }
    monkeypatch.setattr(jit, "HERE", tmp_path)
    monkeypatch.setattr(jit, "_module", lambda: holder)
    monkeypatch.delenv("DPSPARSE_AHEAD", raising=False)
    yield tmp_path, record
    jit._functions.cache_clear()


def answer(folder, record):
    (folder / "_ahead.pickle").write_bytes(pickle.dumps(record))
    jit._functions.cache_clear()

    def plus(x):
        return x + 1

    plus.__qualname__ = "plus"
    return jit.njit()(plus)(1)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="there is no compiled code")
def test_code_is_used_only_for_the_sources_and_processors_it_was_made_from(wheel, monkeypatch):
    folder, record = wheel
    assert answer(folder, record) == 101
    assert answer(folder, {**record, "processor": ["wings"]}) == 2
    assert answer(folder, {**record, "numba": "0.1"}) == 2
    (folder / "source.py").write_text("x + 2")
    assert answer(folder, record) == 2
    (folder / "source.py").unlink()
    assert answer(folder, record) == 2
    (folder / "source.py").write_text("x + 1")
    assert answer(folder, record) == 101
    monkeypatch.setenv("DPSPARSE_AHEAD", "0")
    assert answer(folder, record) == 2


@pytest.mark.parametrize("broken", ["_module", "_enter", "hash_of"])
def test_whatever_fails_numba_compiles(wheel, monkeypatch, broken):
    """A module of another Python, or a Numba whose inner names are others."""

    def fail(*_):
        raise RuntimeError

    folder, record = wheel
    monkeypatch.setattr(jit, broken, fail)
    assert answer(folder, record) == 2
    assert answer(folder, {}) == 2


FITS = """
import sys, warnings; warnings.simplefilter("ignore")
import numpy as np, scipy.sparse as sp
from dpsparse import Domain, methods as est
X = sp.random_array((3000, 700), density=0.02, rng=1, format="csr")
tall = sp.random_array((20000, 30), density=0.3, rng=2, format="csr")
for rows, kind, more in (
    (X, est.DPLassoClassifier, {"n_iter": 700}), (tall, est.DPLassoClassifier, {"n_iter": 400}),
    (X.astype(np.float32), est.DPGradientClassifier, {}), (X, est.DPSparseClassifier, {}),
):
    y = (rows.sum(axis=1) > np.median(rows.sum(axis=1))) * 1
    model = kind(Domain(classes=[0, 1]), random_state=5, **more).fit(rows, y)
    sys.stdout.write(model.coef_.tobytes().hex() + model.intercept_.tobytes().hex() + "\\n")
    three = np.arange(len(y)) % 3
    if kind is not est.DPSparseClassifier:
        model = kind(Domain(classes=[0, 1, 2]), random_state=5, **more).fit(rows, three)
        sys.stdout.write(model.coef_.tobytes().hex() + "\\n")
from dpsparse import jit
print(len(jit._functions()))
"""


@pytest.mark.slow
def test_code_of_the_wheel_gives_the_same_bits(tmp_path):
    """Vector widths, fused multiplication, order of sums: nothing of it may show."""
    package = tmp_path / "dpsparse"
    shutil.copytree(ROOT / "src" / "dpsparse", package)
    subprocess.run([sys.executable, ROOT / "hatch_build.py", package], check=True, timeout=500)

    def run(ahead):
        env = {**os.environ, "PYTHONPATH": str(tmp_path), "DPSPARSE_AHEAD": ahead}
        env["NUMBA_CACHE_DIR"] = str(tmp_path / ahead)
        return subprocess.run(
            [sys.executable, "-c", FITS],
            env=env,
            capture_output=True,
            text=True,
            check=True,
            timeout=500,
        )

    (*ours, none), (*wheels, several) = run("0").stdout.split(), run("1").stdout.split()
    assert int(none) == 0
    assert int(several) > 20
    assert ours == wheels
