"""Compiled functions: from the wheel where it holds them, else compiled by Numba on their first call.

    @njit(cache=True)            # as in Numba
    def kernel(...): ...

A wheel may hold machine code of the commonest calls (`hatch_build.py`, DPSPARSE_COMPILE=1): the module `_ahead`, made
by Numba from the very sources beside it, and `_ahead.json`, which says for which types of arguments each of its
functions is meant. `njit` enters them in Numba's own table of a function, so a call with these types needs no
compiler, and any other call is compiled as ever. The code is used only where it is sure to be the code of this
package: every source file has the hash it was compiled from, and the processor has all that it was compiled for.
DPSPARSE_AHEAD=0 leaves it unused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core import types as _types
from numba.extending import intrinsic

HERE = Path(__file__).parent
types: Any = _types


def njit(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`numba.njit(**options)`, and code from the wheel for the calls that it was compiled for."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        dispatcher: Callable[..., Any] = numba.njit(**options)(function)
        for name, arguments in _functions().get(f"{function.__module__}.{function.__name__}", ()):
            _enter(dispatcher, tuple(map(type_of, arguments)), getattr(_module(), name))
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

    return types.void(array, place), generate


def _ones(context: Any, word: Any) -> Any:
    """How many bits of a word are one: a single instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_compiles = not numba.config.DISABLE_JIT  # type: ignore[attr-defined, unused-ignore]
fetch: Any = intrinsic(_fetch) if _compiles else lambda array, place: None
ones: Any = intrinsic(_ones) if _compiles else lambda word: np.uint64(int(word).bit_count())


def _enter(dispatcher: Any, arguments: tuple[Any, ...], code: Any) -> None:
    """What `Dispatcher.add_overload` does, for code that Numba has not compiled in this process."""
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
def _functions() -> dict[str, list[tuple[str, list[Any]]]]:
    """Code of the wheel by function, or nothing."""
    record = HERE / "_ahead.json"
    if os.environ.get("DPSPARSE_AHEAD") == "0" or not _compiles or not record.exists():
        return {}
    found = json.loads(record.read_text("utf-8"))
    host = llvm.get_host_cpu_features()
    if not all(host.get(feature) for feature in found["processor"]):
        return {}
    if any(hash_of(HERE / name) != was for name, was in found["sources"].items()):
        return {}
    try:
        _module()
    except ImportError:  # of another Python or another system
        return {}
    return found["functions"]  # type: ignore[no-any-return]


def _module() -> Any:
    return import_module("dpsparse._ahead")


def hash_of(path: Path) -> str:
    """Of a source file; nothing where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


# ---- types of arguments, in words that do not change with Numba ----


def type_of(word: Any) -> Any:
    """The Numba type of an argument from its words."""
    if isinstance(word, str):
        return types.npy_rng if word == "generator" else numba.from_dtype(np.dtype(word))
    kind, *rest = word
    if kind == "array":
        dtype, ndim, layout, mutable = rest
        return types.Array(type_of(dtype), ndim, layout, readonly=not mutable)
    if kind == "record":
        return numba.from_dtype(np.dtype([(name, field) for name, field in rest[0]]))
    home, name = kind.split(":")
    fields = tuple(map(type_of, rest[0]))
    return types.BaseTuple.from_types(fields, getattr(import_module(home), name))


def words_of(argument: Any) -> Any:
    """The words of a type; LookupError for one that has none."""
    if argument == types.npy_rng:
        return "generator"
    if isinstance(argument, types.Array) and argument.aligned:
        return ["array", words_of(argument.dtype), argument.ndim, argument.layout, argument.mutable]
    if isinstance(argument, types.Record):
        dtype: Any = numba.np.numpy_support.as_dtype(argument)
        return ["record", [[name, str(dtype[name])] for name in dtype.names]]
    if isinstance(argument, types.BaseNamedTuple):
        made = argument.instance_class
        return [f"{made.__module__}:{made.__qualname__}", [words_of(one) for one in argument]]
    if isinstance(argument, (types.Integer, types.Float, types.Boolean)):
        return str(numba.np.numpy_support.as_dtype(argument))
    raise LookupError(argument)
