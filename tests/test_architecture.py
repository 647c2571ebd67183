"""The arrows of the house point one way, imports stay light, randomness has one room."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "dpsparse"
FILES = sorted(SRC.rglob("*.py"))

# room -> rooms it may import from (besides itself, exceptions and _checks); every room stands here
ALLOWED = {
    "exceptions": set(),
    "_checks": set(),
    "_files": set(),
    "domain": {"domain_file"},  # to save, load and show itself
    "domain_file": {"domain", "_files"},
    "random": set(),
    "sensitivity": set(),
    "progress": set(),
    "privacy": {"__version__"},  # knows neither rows nor noise
    "noise": {"random"},
    "losses": {"domain"},
    "selection": {"random", "domain"},
    "nonzeros": {"privacy", "random", "sensitivity"},
    "rows": {"domain", "noise", "sensitivity", "readers"},  # readers: rows that are clipped as they are read
    "release": {"noise", "privacy", "rows", "selection", "sensitivity"},
    "published": {"losses"},  # the papers as printed stand alone
    # of solvers only the kernels of Frank-Wolfe know `random`: see the test of solvers below
    "solvers": {"random", "rows", "release", "selection", "losses", "domain", "sensitivity", "nonzeros"},
    "estimators": {
        "published", "solvers", "rows", "release", "selection", "losses", "domain", "random", "noise",
        "sensitivity", "nonzeros", "privacy", "report", "models", "progress",
    },
    "models": {"estimators", "domain", "nonzeros", "privacy", "preprocessing", "_files"},
    "preprocessing": {
        "estimators", "rows", "release", "domain", "random", "privacy", "models", "model_selection", "sensitivity",
    },
    "evaluation": {
        "estimators", "rows", "release", "domain", "random", "privacy", "report", "sensitivity",
    },
    "model_selection": {
        "estimators", "rows", "release", "domain", "random", "privacy", "selection", "sensitivity",
        "evaluation", "losses", "solvers", "datasets", "noise", "report", "nonzeros",
    },
    "inference": {"rows", "release", "domain", "random", "privacy", "sensitivity", "estimators"},
    "proofs": set(),
    "readers": set(),
    "datasets": {"readers", "random"},
    "report": {"privacy", "domain_file"},
    "audit": {
        "estimators", "solvers", "rows", "release", "noise", "selection", "nonzeros", "domain", "random",
        "privacy", "sensitivity", "losses", "_files",
    },
    "cli": {
        "estimators", "models", "privacy", "readers", "report", "datasets", "domain", "domain_file", "audit",
        "preprocessing", "evaluation", "model_selection", "inference", "proofs", "_files", "random",
        "DPSparseClassifier", "Domain",
    },
    "__main__": {"cli"},
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
    knows = {
        "estimators",
        "model_selection",
        "inference",
        "preprocessing",
        "models",
        "readers",
        "datasets",
        "audit",
        "cli",
    }
    if room(path) in knows:
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


KERNELS = {
    "kernel.py",
    "run.py",
    "reference.py",
    "sampler.py",
    "solve.py",
}  # of Frank-Wolfe: noise and rows meet there


def names_in(path: Path) -> set[str]:
    """Every name and attribute a file uses, annotations included."""
    tree = ast.parse(path.read_text())
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return found | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def solver_files():
    return [f for f in FILES if room(f) == "solvers" and f.name not in KERNELS]


@pytest.mark.parametrize("path", solver_files(), ids=lambda p: p.stem)
def test_a_solver_sees_neither_a_generator_nor_a_row(path):
    """It passes rows on and asks for releases; whole numbers stay behind the doors."""
    assert not names_in(path) & {
        "rng",
        "Generator",
        "make_generator",
        "whole",
        "_parts",
        "table",
        "arrays",
    }


@pytest.mark.parametrize(
    "path", [f for f in FILES if room(f) in ("solvers", "rows")], ids=lambda p: p.stem
)
def test_adjacency_lives_in_sensitivity_alone(path):
    """Factors of adjacency come from lemmas; a string compared anywhere else is a second home."""
    texts = {n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)}
    docs = {ast.get_docstring(n, clean=False) for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, (ast.Module, ast.FunctionDef, ast.ClassDef))}  # fmt: skip
    assert not {"replace-one"} & (texts - docs)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_what_the_plan_made_is_passed_on(path):
    """`plan.parameters` is a view for users and files; code takes `plan.public`, which has types."""
    taken = [
        ast.unparse(n)
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.Subscript) and ast.unparse(n.value).endswith("parameters")
    ]
    assert not taken


# scikit-learn tells an estimator nothing about the search or pipeline around it: reasons in the files.
LOOKS_UP_THE_STACK = {"_model_search.py", "_pipelines.py"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_nothing_is_patched_and_nobody_looks_up_the_stack(path):
    source = path.read_text()
    if path.name not in LOOKS_UP_THE_STACK:
        assert not re.search(r"_getframe|currentframe|inspect\.stack|f_back", source)
    if room(path) != "models":  # a model file sets the attributes of the model it makes
        assert not re.search(r"(?<!object\.__)\bsetattr\((?!model\b)", source)


def test_every_lemma_has_a_caller_and_a_proof():
    """No lemma without a caller, no note that is not there."""
    from dpsparse import sensitivity

    lemmas = [n.name for n in ast.parse((SRC / "sensitivity.py").read_text()).body
              if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]  # fmt: skip
    elsewhere = "\n".join(f.read_text() for f in FILES if f.name != "sensitivity.py")
    unused = [name for name in lemmas if not re.search(rf"\b{name}\b", elsewhere)]
    assert not unused
    for note in set(re.findall(r"docs/proofs/\w+\.md", Path(sensitivity.__file__).read_text())):
        assert (SRC.parents[1] / note).exists(), note


def test_every_mechanism_has_a_curve_and_a_note_that_names_it():
    """An event is what a mechanism costs: its note must speak of it, and the accountant must know it."""
    from dpsparse.privacy import events
    from dpsparse.privacy.rdp import curve

    known = {*curve.registry, events.Repeated, events.Sequence}  # the last two multiply and add
    for kind in events._all_kinds(events.Event):
        assert known & set(kind.__mro__), f"{kind.__name__} has no Renyi curve"
        if kind is not events.NonPrivate:
            note = (SRC.parents[1] / kind.proof).read_text()
            assert kind.__name__ in note, f"{kind.proof} does not mention {kind.__name__}"


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
