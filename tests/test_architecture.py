"""The arrows of the house point one way, imports stay light, randomness has one room."""

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import walks

SRC = Path(__file__).parents[1] / "src" / "dpsparse"
FILES = sorted(SRC.rglob("*.py"))

# From the ground up: a room may import from itself and from the layers below its own.
LAYERS = [
    "exceptions jit",
    "_checks _files _json _lazy arithmetic progress proofs threads",
    "_cells accounting random sensitivity",
    "datasets domain io ledger nonzeros",
    "losses mechanisms report",
    "rows",
    "release",
    "methods",
    "published preprocessing evaluation",
    "inference model_selection",
    "models",
    "audit",
    "cli",
    "__main__ __init__",
]
HEIGHT = {room: height for height, layer in enumerate(LAYERS) for room in layer.split()}


def room(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imported_modules(path: Path) -> set[str]:
    """Modules a file imports when it runs; imports under TYPE_CHECKING do not count."""
    tree = parsed(path)
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


def offenders(rule, files=None) -> dict[str, object]:
    """What `rule` says against each file, by file."""
    found = {str(f.relative_to(SRC)): rule(f) for f in (FILES if files is None else files)}
    return {name: said for name, said in found.items() if said}


def test_a_room_imports_from_lower_layers_alone():
    def forbidden(path):
        ours = {m.split(".")[1] for m in imported_modules(path) if m.startswith("dpsparse.")}
        ours -= {room(path), "__version__"}
        return {m for m in ours if HEIGHT.get(m, len(LAYERS)) >= HEIGHT[room(path)]}

    # What a room offers stands in that room; the names of the package are for users.
    assert not offenders(forbidden, [f for f in FILES if room(f) != "__init__"])


def test_only_estimators_know_scikit_learn():
    knows = {
        "methods", "model_selection", "inference", "preprocessing", "models", "io", "datasets", "audit", "cli",
    }  # fmt: skip
    plain = "frank_wolfe_lasso.py"  # an estimator without privacy, which has no base of ours
    others = [f for f in FILES if room(f) not in knows and f.name != plain]
    assert not offenders(
        lambda f: [m for m in imported_modules(f) if m.startswith("sklearn")], others
    )


def test_generators_are_made_in_one_place():
    """`np.random.Generator` as a type is welcome anywhere; making one is random.py's business."""

    def made(path):
        calls = [ast.unparse(n.func) for n in ast.walk(parsed(path)) if isinstance(n, ast.Call)]
        return [c for c in calls if c.startswith(("np.random.", "numpy.random."))]

    assert not offenders(made, [f for f in FILES if f.name != "random.py"])


# Files of methods that are algorithms, not prices or the scikit-learn face.
SOLVERS = {
    "look.py", "solve.py", "student.py",
}  # fmt: skip
# Of Frank-Wolfe: noise and rows meet there.
KERNELS = {"kernel.py", "run.py"}


def is_solver(path: Path) -> bool:
    return room(path) == "methods" and path.name in SOLVERS | KERNELS


def names_in(path: Path) -> set[str]:
    """Every name and attribute a file uses, annotations included."""
    nodes = list(ast.walk(parsed(path)))
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return found | {node.arg for node in nodes if isinstance(node, ast.arg)}


def test_a_solver_sees_neither_a_generator_nor_a_row():
    """It passes rows on and asks for releases; whole numbers stay behind the doors."""
    hidden = {"rng", "Generator", "make_generator", "whole", "_parts", "table", "arrays"}
    solvers = [f for f in FILES if is_solver(f) and f.name not in KERNELS]
    assert not offenders(lambda f: names_in(f) & hidden, solvers)


def test_adjacency_lives_in_sensitivity_alone():
    """Factors of adjacency come from lemmas; a string compared anywhere else is a second home."""

    def compared(path):
        nodes = list(ast.walk(parsed(path)))
        docs = {ast.get_docstring(n, clean=False) for n in nodes
                if isinstance(n, (ast.Module, ast.FunctionDef, ast.ClassDef))}  # fmt: skip
        return {n.value for n in nodes if isinstance(n, ast.Constant)} & {"replace-one"} - docs

    assert not offenders(
        compared, [f for f in FILES if room(f) in ("rows", "mechanisms") or is_solver(f)]
    )


def test_what_the_plan_made_is_passed_on():
    """`plan.parameters` is a view for users and files; code takes `plan.settings`, which has types."""

    def taken(path):
        found = [n for n in ast.walk(parsed(path)) if isinstance(n, ast.Subscript)]
        return [ast.unparse(n) for n in found if ast.unparse(n.value).endswith("parameters")]

    assert not offenders(taken)


def test_a_loss_is_asked_for_what_it_can_not_for_its_name():
    """`loss == "huber"` shuts out the next loss. The kinds of objective that are proven are named by their events."""
    from dpsparse.losses import LOSSES

    def asked(path):
        found = [n for n in ast.walk(parsed(path)) if isinstance(n, ast.Compare)]
        return [
            ast.unparse(n)
            for n in found
            if not ast.unparse(n.left).endswith(".objective")
            and {p.value for p in ast.walk(n) if isinstance(p, ast.Constant)} & LOSSES.keys()
        ]

    assert not offenders(asked, [f for f in FILES if room(f) == "rows" or is_solver(f)])


def test_json_and_pages_are_written_in_one_place():
    """One encoder, so that a record has one text; one base, so that pages look alike."""
    dumps = r"\bjson\.dumps?\b|JSONEncoder"
    assert offenders(lambda f: re.findall(dumps, f.read_text())).keys() == {"_json.py"}
    pages = [f for f in SRC.rglob("*") if f.suffix in (".py", ".html", ".j2", ".md")]
    bases = offenders(lambda f: re.findall("(?i)<html", f.read_text()), pages)
    assert bases.keys() == {"report/page.html"}


def test_nobody_looks_up_the_stack():
    frames = r"_getframe|currentframe|inspect\.stack|f_back"
    assert not offenders(lambda f: re.findall(frames, f.read_text()))


def test_no_room_recognises_another_by_a_private_attribute():
    """`hasattr(x, "_steps")` is a type without a name."""
    asked = r'hasattr\([^,()]+, "_[a-z]'
    assert not offenders(lambda f: re.findall(asked, f.read_text()))


def test_nothing_is_patched():
    """A model file sets the attributes of the model it makes; nobody else sets those of others."""
    others = [f for f in FILES if room(f) != "models"]
    assigned = r"(?<!object\.__)\bsetattr\((?!model\b)"
    assert not offenders(lambda f: re.findall(assigned, f.read_text()), others)


def test_no_factor_of_adjacency_without_a_lemma():
    """`2.0 if adjacency == ... else 1.0` is a lemma without a proof. The accountant's formulas for events that hold
    an adjacency have their note; the audit makes neighbours of both kinds."""

    def factors(path):
        return [
            ast.unparse(n)
            for n in ast.walk(parsed(path))
            if isinstance(n, ast.IfExp)
            and re.search("adjacency|replace_one|add_remove", ast.unparse(n.test))
            and any(isinstance(part, ast.Constant) and isinstance(part.value, int | float)
                    for branch in (n.body, n.orelse) for part in ast.walk(branch))
        ]  # fmt: skip

    homes = ("sensitivity", "accounting", "audit")
    assert not offenders(factors, [f for f in FILES if room(f) not in homes])


def lemmas():
    tree = ast.parse((SRC / "sensitivity.py").read_text())
    return [n for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]


def test_every_lemma_has_a_caller_and_a_proof():
    """No lemma without a caller, no note or lemma number that is not there."""
    elsewhere = "\n".join(f.read_text() for f in FILES if f.name != "sensitivity.py")
    for lemma in lemmas():
        assert re.search(rf"\b{lemma.name}\b", elsewhere), f"{lemma.name} is not used"
        cited = re.findall(r"(docs/proofs/\w+\.md), (Lemma \d+)", ast.unparse(lemma))
        assert cited, f"{lemma.name} cites no lemma"
        for note, number in cited:
            text = (SRC.parents[1] / note).read_text()
            assert re.search(rf"{number}\b", text), f"{note} has no {number}"


def mechanisms():
    from dpsparse.mechanisms import MECHANISMS, Vertices

    return [*MECHANISMS.values(), Vertices]  # vertices are picks by another sampler


@pytest.mark.parametrize("mechanism", mechanisms(), ids=lambda m: m.__name__)
def test_a_mechanism_names_its_note_and_its_lemmas(mechanism):
    """One class holds event, sensitivity, sampler and proof; what it names is there."""
    from dpsparse import sensitivity

    note = (SRC.parents[1] / mechanism.proof).read_text()
    assert len(note) > 1000
    assert mechanism.__module__.startswith("dpsparse.mechanisms.")
    for lemma in mechanism.lemmas:
        assert hasattr(sensitivity, lemma)
    for event in getattr(mechanism, "events", ()):
        assert event.__name__ in (SRC.parents[1] / event.proof).read_text()


def test_every_event_of_a_default_plan_is_paid_out_by_one_mechanism():
    """The plans of all audit cases, with the events that tests/golden holds them to."""
    from dpsparse.accounting.events import NonPrivate, Sequence, from_dict, leaves

    golden = json.loads((Path(__file__).parent / "golden" / "golden.json").read_text())
    for name, kept in golden.items():
        for event in leaves(Sequence(tuple(map(from_dict, kept["events"].values())))):
            paid = [m for m in mechanisms() if type(event) in getattr(m, "events", ())]
            assert len(paid) == 1 or isinstance(event, NonPrivate), (name, event)


def test_samplers_are_called_by_mechanisms_alone():
    """Noise is added where its price stands."""
    samplers = {"add_integers", "integers", "top_k", "laplace", "two_sided_geometric"}
    homes = ("mechanisms", "random", "published", "audit")

    def taken(path):
        found = [n for n in ast.walk(parsed(path)) if isinstance(n, ast.ImportFrom)]
        modules = ("dpsparse.random", "dpsparse.mechanisms.top_k")
        return samplers & {alias.name for n in found if n.module in modules for alias in n.names}

    own = {"kernel.py", "run.py"}  # which draw vertices
    others = [f for f in FILES if room(f) not in homes and f.name not in own]
    assert not offenders(taken, others)


def test_every_event_is_known_and_has_a_note_that_names_it():
    """An event is what a mechanism costs: its note must speak of it, and the accountant must know it."""
    from dpsparse.accounting import events

    def kinds(base):
        return [one for kind in base.__subclasses__() for one in (kind, *kinds(kind))]

    known = {*events.ELEMENTARY, events.Repeated, events.Sequence}  # the last two multiply and add
    for kind in kinds(events.Event):
        assert kind in known, f"{kind.__name__} is not known to the accountant"
        if kind is not events.NonPrivate:
            note = (SRC.parents[1] / kind.proof).read_text()
            assert kind.__name__ in note, f"{kind.proof} does not mention {kind.__name__}"


def test_what_the_architecture_page_names_is_there():
    """Walk-throughs rot silently: every file, function, class and attribute in its code spans must exist."""
    text = (SRC.parents[1] / "docs" / "architecture.md").read_text()
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
    homes = ("src", "tests", "experiments", "examples", "docs")
    paths = [f.as_posix() for home in homes for f in (SRC.parents[1] / home).rglob("*.py")]
    paths += [f.as_posix() for f in SRC.parents[1].glob("*.py")]
    known = set().union(*(names_in(f) for f in FILES))
    nodes = [n for f in FILES for n in ast.walk(parsed(f))]
    known |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    known |= (
        {p.stem for p in FILES} | {p.parent.name for p in FILES} | {"docs", "tests", "experiments"}
    )
    gone = []
    for span in spans:
        named = re.findall(r"[\w/]+\.py\b", span)
        gone += [path for path in named if not any(p.endswith(f"/{path}") for p in paths)]
        rest = re.sub(r"[\w/<>]+\.(py|md|html|json)\b|<[^>]*>|[\"'].*?[\"']|DP\w+\*", "", span)
        gone += [name for name in re.findall(r"[A-Za-z_]\w{3,}", rest) if name not in known]
    assert not gone


# ---- cycles ------------------------------------------------------------------------------------------


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SRC.parent).with_suffix("").parts).removesuffix(".__init__")


def when_loaded(path: Path) -> set[str]:
    """Modules that are imported while a file is loaded, not inside its functions."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = [ast.Pass()]
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = [ast.Pass()]
    nodes = list(ast.walk(tree))
    found = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    for n in nodes:
        if isinstance(n, ast.ImportFrom) and n.module:
            found |= {n.module, *(f"{n.module}.{alias.name}" for alias in n.names)}
    return found


def ordered(arrows: dict[str, set[str]]) -> list[str]:
    """Whoever is left when all that lead nowhere are taken away, again and again: cycles, or nothing."""
    left = dict(arrows)
    while free := [name for name, ends in left.items() if not ends & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


def test_no_module_waits_for_itself():
    modules = {dotted(f): f for f in FILES}
    arrows = {
        name: {m for m in when_loaded(f) & modules.keys() if not f"{name}.".startswith(f"{m}.")}
        for name, f in modules.items()
    }
    assert not ordered(arrows)


# The most files that a reader enters who follows a call; `python tests/walks.py` names them.
MOST_FILES = {"fit_sparse": 28, "fit_lasso": 30, "fit_prepared_table": 56}


@pytest.mark.parametrize("walk", walks.WALKS.values(), ids=lambda walk: walk.__name__)
def test_a_reader_who_follows_a_call_enters_few_files(walk, record_property):
    files = walks.files_entered(walk)
    record_property("files", len(files))
    assert len(files) <= MOST_FILES[walk.__name__], files


def test_import_is_light():
    code = (
        "import sys, dpsparse; "
        "print([m for m in ('matplotlib','dask','pandas','pyarrow','click','jinja2','psycopg') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert out.stdout.strip() == "[]"


def test_public_names_exist():
    import dpsparse

    assert sorted(dpsparse.__all__) == sorted(set(dpsparse.__all__))
    for name in dpsparse.__all__:
        assert hasattr(dpsparse, name), name


def test_calls_that_windows_lacks_are_guarded():
    """A module that names what only POSIX has must ask for it first, or it fails on import or on first use."""
    posix = (
        r"\bos\.(register_at_fork|fork|getuid|geteuid|sched_getaffinity|fchmod|statvfs|uname)\b"
        r"|\.madvise\(|^import (fcntl|pwd|resource)\b"
    )
    guard = r"hasattr\((os|mmap), "

    def unguarded(path):
        text = path.read_text()
        return re.search(posix, text, re.MULTILINE) and not re.search(guard, text)

    assert not offenders(unguarded)


def test_the_page_names_every_room():
    page = (SRC.parents[1] / "docs/architecture.md").read_text("utf-8")
    rooms = [p.name for p in SRC.iterdir() if p.suffix == ".py" or p.is_dir()]
    assert not [room for room in rooms if f"`{room}" not in page and room[:2] != "__"]
