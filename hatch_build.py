"""Machine code of the commonest kernel calls into the wheel, for users who should not wait for a compiler.

    DPSPARSE_COMPILE=1 python -m build          a wheel of this Python and this system, with `_ahead`
    python -m build                             a pure wheel, as for an sdist or an editable install
    python hatch_build.py FOLDER                the two files alone (a C compiler and the package's dependencies needed)

Nothing is written twice: Numba compiles the functions of the package themselves, with their own options, for the
types of arguments that the fits of `methods/warm_up.py` call them with; `dpsparse/jit.py` says when they are used.
The processor aimed at is that of 2013 (x86-64-v3), without which Numba compiles as ever; elsewhere, what is generic.
"""

from __future__ import annotations

import os
import pickle
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
LONGEST = 1800  # seconds that recording or compiling may take
# The name for LLVM, and what a host must have beyond what every machine of its kind has.
PROCESSOR, NEEDED = "", []
if platform.machine() == "x86_64":
    PROCESSOR, NEEDED = "x86-64-v3", ["avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"]


# ---- in two processes of their own ----


def record(place: Path) -> None:
    """Which kernels the common fits call, and with what types."""
    import numba
    from numba.core import types
    from numba.core.caching import NullCache
    from numba.core.registry import CPUDispatcher

    from dpsparse.jit import HERE, hash_of
    from dpsparse.methods.warm_up import fit_common_kinds

    known = (
        types.Array,
        types.Record,
        types.BaseNamedTuple,
        types.Integer,
        types.Float,
        types.Boolean,
    )
    fit_common_kinds()
    functions: dict[str, list[Any]] = {}
    sources = {name: hash_of(HERE / name) for name in ("jit.py", "arithmetic.py")}
    for home, module in list(sys.modules.items()):
        if not home.startswith("dpsparse.") or module is None:
            continue
        for name, found in vars(module).items():
            if not isinstance(found, CPUDispatcher) or found.py_func.__module__ != home:
                continue
            path = Path(module.__file__ or "")
            sources[path.relative_to(HERE).as_posix()] = hash_of(path)
            if isinstance(found._cache, NullCache):  # called from kernels only
                continue
            # A kernel that calls another with a constant has a type of its own for it; a type entered twice would not
            # be found.
            plain = dict.fromkeys(tuple(map(types.unliteral, one)) for one in found.overloads)
            functions[f"{home}.{name}"] = [
                (f"{home}.{name}".replace(".", "_") + f"_{i}", pickle.dumps(arguments))
                for i, arguments in enumerate(plain)
                if all(isinstance(one, known) or one == types.npy_rng for one in arguments)
            ]
    everything = {
        "numba": numba.__version__,
        "processor": NEEDED,
        "sources": sources,
        "functions": functions,
    }
    (place / "_ahead.pickle").write_bytes(pickle.dumps(everything))


def compile_recorded(place: Path) -> None:
    """The recorded calls as one extension module, by Numba's compiler ahead of time."""
    from importlib import import_module

    import numba.pycc.compiler as pycc
    from numba.core.caching import NullCache
    from numba.pycc import CC

    import dpsparse

    compiler = CC("_ahead", source_module=dpsparse)
    compiler.output_dir = str(place)
    compiler.target_cpu = PROCESSOR
    dispatchers = {}
    recorded = pickle.loads((place / "_ahead.pickle").read_bytes())
    for path, calls in recorded["functions"].items():
        home, name = path.rsplit(".", 1)
        dispatcher = getattr(import_module(home), name)
        dispatcher._cache = NullCache()
        dispatchers[dispatcher.py_func] = dispatcher
        for symbol, arguments in calls:
            compiler.export(symbol, pickle.loads(arguments))(dispatcher.py_func)
    compile_extra = pycc.compile_extra

    def with_own_options(
        typing: Any,
        target: Any,
        function: Any,
        arguments: Any,
        result: Any,
        flags: Any,
        **rest: Any,
    ) -> Any:
        own, dispatcher = flags.copy(), dispatchers[function]
        dispatcher.targetdescr.options.parse_as_flags(own, dispatcher.targetoptions)
        own.no_compile = own.no_cfunc_wrapper = True
        return compile_extra(typing, target, function, arguments, result, own, **rest)

    pycc.compile_extra = with_own_options
    compiler.compile()


def build(place: Path) -> None:
    """`_ahead.pickle` and the extension module into `place`."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "DPSPARSE_AHEAD": "0"}
        subprocess.run(
            [sys.executable, __file__, "record", place], env=env, check=True, timeout=LONGEST
        )
        # Inner functions are optimised before they are joined: for the same processor as the whole.
        if PROCESSOR:
            env |= {"NUMBA_CPU_NAME": PROCESSOR, "NUMBA_CPU_FEATURES": ""}
        env["NUMBA_CACHE_DIR"] = cache
        subprocess.run(
            [sys.executable, __file__, "compile", place], env=env, check=True, timeout=LONGEST
        )


# ---- the hook of hatchling ----

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script
    BuildHookInterface = object  # type: ignore[assignment, misc]


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc, type-arg, unused-ignore]
    """Adds the two files to a wheel if DPSPARSE_COMPILE=1 asks for it."""

    def _wanted(self) -> bool:
        return os.environ.get("DPSPARSE_COMPILE") == "1" and self.target_name == "wheel"

    def dependencies(self) -> list[str]:
        """The package runs while it is compiled; pure builds need nothing."""
        return [*self.metadata.core.dependencies, "setuptools"] if self._wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self._wanted() or version == "editable":
            return
        self._place = tempfile.TemporaryDirectory()
        build(Path(self._place.name))
        for made in Path(self._place.name).iterdir():
            build_data["force_include"][str(made)] = f"dpsparse/{made.name}"
        build_data["pure_python"], build_data["infer_tag"] = False, True


if __name__ == "__main__":
    what = sys.argv[1]
    if what == "record":
        record(Path(sys.argv[2]))
    elif what == "compile":
        compile_recorded(Path(sys.argv[2]))
    else:
        build(Path(what))
