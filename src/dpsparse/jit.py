"""Compiled functions: from the wheel where it holds them, else compiled by Numba on their first call.

    @njit(cache=True)            # as in Numba
    def kernel(...): ...

A wheel may hold machine code of the commonest calls (`hatch_build.py`, DPSPARSE_COMPILE=1): the module `_ahead`, made
by Numba from the very sources beside it, and `_ahead.pickle`, which says for which types of arguments each of its
functions is meant. The code is used only where it is sure to be the code of this package: Numba has the version that
compiled it, every source file has the hash it was compiled from, and the processor has all that it was compiled for.
Wherever that fails, or anything else does, Numba compiles. DPSPARSE_AHEAD=0 leaves the code unused.

Where Numba is absent functions run uncompiled, so that plans and predictions work; `private_run` refuses.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def _module_or_none(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


HERE = Path(__file__).parent
numba = _module_or_none("numba")
ir, llvm = _module_or_none("llvmlite.ir"), _module_or_none("llvmlite.binding")
NO_NUMBA = "Numba is missing: pip install numba. Domain, plan, load and predict work without it, fits do not."
_compiles = numba is not None and not numba.config.DISABLE_JIT


def njit(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`numba.njit(**options)`, and code from the wheel for the calls that it was compiled for."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if numba is None:
            return function
        compiled = _functions().get(f"{function.__module__}.{function.__name__}", ())
        try:
            dispatcher: Callable[..., Any] = numba.njit(**options)(function)
            for symbol, arguments in compiled:
                _enter(dispatcher, pickle.loads(arguments), getattr(_module(), symbol))
        except Exception:
            dispatcher = numba.njit(**options)(function)
        return dispatcher

    return decorate


def _fetch(context: Any, array: Any, place: Any) -> Any:
    """Ask for the memory of array[place] before it is needed: random places of a long array wait for little else."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        ask = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        where = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        how = [ir.Constant(word, k) for k in (0, 3, 1)]  # to read, keep in all caches, data
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", [byte], ask), [where, *how])
        return context.get_dummy_value()

    return numba.types.void(array, place), generate


fetch: Any = numba.extending.intrinsic(_fetch) if _compiles else lambda array, place: None


def _enter(dispatcher: Any, arguments: tuple[Any, ...], code: Any) -> None:
    """What `Dispatcher.add_overload` does, for code that Numba has not compiled in this process.

    Numba has no public way to do this. `njit` compiles where these names are missing.
    """
    dispatcher._insert([one._code for one in arguments], code, False)
    add_overload = dispatcher.add_overload

    def add(compiled: Any) -> None:
        # Compiled anyway because another kernel calls it inside: not a second way to call it from Python.
        if tuple(compiled.signature.args) == arguments:
            dispatcher.overloads[arguments] = compiled
        else:
            add_overload(compiled)

    dispatcher.add_overload = add


@cache
def _functions() -> dict[str, list[tuple[str, bytes]]]:
    """Code of the wheel by function: its name in `_ahead` and the pickled types of its arguments; or nothing."""
    if os.environ.get("DPSPARSE_AHEAD") == "0" or not _compiles:
        return {}
    try:
        found = pickle.loads((HERE / "_ahead.pickle").read_bytes())
        host = llvm.get_host_cpu_features()
        sound = found["numba"] == numba.__version__
        sound = sound and all(host.get(feature) for feature in found["processor"])
        sound = sound and all(hash_of(HERE / name) == was for name, was in found["sources"].items())
        _module()
        return found["functions"] if sound else {}
    except Exception:  # there is no such code, or it is of another Python or another system
        return {}


def _module() -> Any:
    return import_module("dpsparse._ahead")


def hash_of(path: Path) -> str:
    """Of a source file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
