"""The arrows of the house point one way, imports stay light, randomness has one room."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "dpsparse"
FILES = sorted(SRC.rglob("*.py"))

# room -> rooms it may import from (besides itself, exceptions and _checks)
ALLOWED = {
    "exceptions": set(),
    "_checks": set(),
    "domain": set(),
    "random": set(),
    "sensitivity": set(),
    "privacy": set(),
    "losses": {"domain"},
    "selection": {"random", "domain"},
    "sparsify": {"privacy", "random"},
    "published": {"losses"},  # the papers as printed stand alone
    "solvers": {"selection", "losses", "domain", "random", "sensitivity", "sparsify"},
    "estimators": {
        "published", "solvers", "selection", "losses", "domain", "random", "sensitivity", "sparsify",
        "privacy", "report", "models",
    },
}  # fmt: skip


def room(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> set[str]:
    """Modules a file imports when it runs; imports under TYPE_CHECKING do not count."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path.name}: relative imports hide the arrows"
            if node.module == "dpsparse":
                found |= {f"dpsparse.{alias.name}" for alias in node.names}
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", [f for f in FILES if room(f) in ALLOWED], ids=lambda p: p.stem)
def test_arrows_point_one_way(path):
    allowed = ALLOWED[room(path)] | {room(path), "exceptions", "_checks"}
    ours = {m.split(".")[1] for m in imported_modules(path) if m.startswith("dpsparse.")}
    assert ours <= allowed, f"{path.name} may not import {ours - allowed}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_only_estimators_know_scikit_learn(path):
    if room(path) in {"estimators", "models", "readers", "datasets", "audit", "cli", "inference"}:
        return
    assert not any(m.split(".")[0] == "sklearn" for m in imported_modules(path))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_generators_are_made_in_one_place(path):
    """`np.random.Generator` as a type is welcome anywhere; making one is random.py's business."""
    if path.name == "random.py":
        return
    calls = [
        ast.unparse(n.func)
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.Call)
    ]
    made = [c for c in calls if c.startswith(("np.random.", "numpy.random."))]
    assert not made, f"{path.name} makes randomness itself: {made}"


def test_import_is_light():
    code = (
        "import sys, dpsparse; "
        "print([m for m in ('matplotlib','dask','pandas','pyarrow','click','jinja2','psycopg') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_public_names_exist():
    import dpsparse

    assert sorted(dpsparse.__all__) == sorted(set(dpsparse.__all__))
    for name in dpsparse.__all__:
        assert hasattr(dpsparse, name), name
