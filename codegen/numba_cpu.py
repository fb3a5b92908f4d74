"""Python source of a kernel to object code, through numba: the second way, beside `llvm_cpu.py`.

numba types and lowers what `llvm_cpu.py` does not read, a kernel's source, and so checks both. It is imported on the
first compilation, which takes a third of a second. The helpers that the source calls are intrinsics over `llvm_ops`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from twofold.ir import dtypes as dt
from twofold.ir import scalar
from twofold.ir.dtypes import DType

from . import llvm_module, llvm_ops, numba_source
from .apart import apart
from .loop import Kernel

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Value
    from numba.core.base import BaseContext
    from numba.core.compiler_machinery import PassManager
    from numba.core.types import Type
    from numba.core.typing.templates import Signature

__all__ = ["compile_kernel", "helpers"]

_Intrinsic: TypeAlias = Callable[..., "Type"]  # what numba's `intrinsic` gives: a function that kernels call
# The types of a call, and what writes it: (context, builder, signature, operands) -> the value.
_Typed: TypeAlias = tuple["Signature", Callable[["BaseContext", "IRBuilder", "Signature", Sequence["Value"]], "Value"]]

_VALUES = tuple(sorted((d for d in dt.ALL if d.compute is d and not d.is_complex), key=lambda d: d.index))


@apart
def compile_kernel(kernel: Kernel, name: str) -> bytes:
    """An object file that needs no library but the C runtime, with `kernel` as the symbol `name`."""
    namespace = dict(helpers())
    exec(compile(numba_source.source(kernel), f"<twofold {name}>", "exec"), namespace)  # noqa: S102 - own text
    function = namespace["kernel"]
    function.__name__ = function.__qualname__ = name
    text, symbol = _llvm_text(function)
    optimised = llvm_module.optimise(text)
    optimised.get_function(symbol).name = name
    return llvm_module.object_code(optimised)


def _llvm_text(function: Callable[..., object]) -> tuple[str, str]:
    """The LLVM module that numba makes of a kernel, not yet optimised, and the kernel's symbol."""
    from numba import types
    from numba.core import ccallback, compiler_lock
    from numba.core import config as numba_config
    from numba.core.registry import cpu_target

    word = types.int64
    signature = ((word, word, types.CPointer(word)), word)
    with compiler_lock.global_compiler_lock:
        _ = cpu_target.target_context  # made on first use, with the level that other users of numba expect
        config: Any = numba_config  # which makes its attributes of the environment
        level, config.OPT = config.OPT, 0
        try:
            callback: Any = ccallback.CFunc(function, signature, locals={}, options={"error_model": "numpy"},
                                       pipeline_class=_pipeline())
            result = callback._compile_uncached()
            return str(result.library._final_module), result.fndesc.llvm_cfunc_wrapper_name
        finally:
            config.OPT = level


@functools.cache
def _pipeline() -> type[Any]:
    """The compiler with those of numba's passes that a kernel needs: it is typed and flat as written."""
    from numba.core import typed_passes, untyped_passes
    from numba.core.compiler import CompilerBase
    from numba.core.compiler_machinery import PassManager

    passes = (untyped_passes.TranslateByteCode, untyped_passes.FixupArgs, untyped_passes.IRProcessing,
              typed_passes.NopythonTypeInference, typed_passes.NativeLowering, typed_passes.NoPythonBackend)

    class KernelCompiler(CompilerBase):
        def define_pipelines(self) -> list[PassManager]:
            manager = PassManager("kernel")
            for step in passes:
                manager.add_pass(step, step.__name__)
            manager.finalize()
            return [manager]

    return KernelCompiler


@functools.cache
def helpers() -> dict[str, _Intrinsic]:
    """Everything that kernel source calls, by name."""
    functions: dict[str, _Intrinsic] = {}
    for op, (count, kind) in scalar.INSTRUCTIONS.items():
        if kind != "given":
            name = numba_source.helper_name(op)
            functions[name] = _instruction(op, name, count, kind)
    for dtype in _VALUES:
        functions[f"to_{dtype.short}"] = _conversion("cast", f"to_{dtype.short}", dtype)
        functions[f"bits_{dtype.short}"] = _conversion("bitcast", f"bits_{dtype.short}", dtype)
        if not dtype.is_bool:
            functions[f"pointer_{dtype.short}"] = _pointer(dtype)
            functions[f"scratch_{dtype.short}"] = _scratch(dtype)
    for dtype in (dt.float16, dt.bfloat16):
        functions[f"widen_{dtype.short}"] = _widen(dtype)
        functions[f"narrow_{dtype.short}"] = _narrow(dtype)
    functions["call_kernel"] = _call_kernel()
    return functions


def _numba_type(dtype: DType) -> Type:
    from numba import types

    return types.boolean if dtype.is_bool else getattr(types, dtype.name)


@functools.cache
def _dtypes() -> dict[Type, DType]:
    return {_numba_type(d): d for d in _VALUES}


def _dtype_of(kind: Type) -> DType | None:
    """The DType of a numba type, or None where it is no scalar of kernels (numba then reports a typing error)."""
    from numba import types

    return _dtypes().get(types.unliteral(kind))


def _instruction(op: str, name: str, count: int, kind: str) -> _Intrinsic:
    from numba.extending import intrinsic

    def typing(*operands: Type) -> _Typed | None:
        kinds = [_dtype_of(o) for o in operands]
        dtype = kinds[-1]
        values = kinds[1:] if kind == "select" else kinds
        if dtype is None or any(k is not dtype for k in values):
            return None
        out = dt.bool_ if kind == "bool" else dtype
        signature = _numba_type(out)(*(_numba_type(k) for k in kinds if k is not None))
        return signature, lambda context, b, sig, args: llvm_ops.emit(b, op, tuple(args), dtype, out)

    def one(typingctx, x):
        return typing(x)

    def two(typingctx, x, y):
        return typing(x, y)

    def three(typingctx, x, y, z):
        return typing(x, y, z)

    by_count: dict[int, Callable[..., object]] = {1: one, 2: two, 3: three}
    return _named(intrinsic, by_count[count], name)


def _named(decorator: Callable[..., _Intrinsic], function: Callable[..., object], name: str) -> _Intrinsic:
    function.__name__ = function.__qualname__ = name
    return decorator(function)


def _conversion(op: str, name: str, out: DType) -> _Intrinsic:
    from numba.extending import intrinsic

    def convert(typingctx, x):
        dtype = _dtype_of(x)
        if dtype is None:
            return None
        signature = _numba_type(out)(_numba_type(dtype))
        return signature, lambda context, b, sig, args: llvm_ops.emit(b, op, tuple(args), dtype, out)

    return _named(intrinsic, convert, name)


def _pointer(dtype: DType) -> _Intrinsic:
    from numba import types
    from numba.extending import intrinsic

    def pointer(typingctx, address):
        result = types.CPointer(_numba_type(dtype))

        def codegen(context, b, sig, args):
            return b.inttoptr(args[0], context.get_value_type(result))

        return result(types.int64), codegen

    return _named(intrinsic, pointer, f"pointer_{dtype.short}")


def _scratch(dtype: DType) -> _Intrinsic:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    def scratch(typingctx, n):
        if not isinstance(n, types.IntegerLiteral):
            return None
        result = types.CPointer(_numba_type(dtype))

        def codegen(context, b, sig, args):
            with b.goto_entry_block():
                elements = b.alloca(ir.ArrayType(llvm_ops.llvm_type(dtype), n.literal_value))
            elements.align = 64  # a cache line, and the widest vector
            return b.bitcast(elements, context.get_value_type(result))

        return result(n), codegen

    return _named(intrinsic(prefer_literal=True), scratch, f"scratch_{dtype.short}")


def _widen(dtype: DType) -> _Intrinsic:
    from numba import types
    from numba.extending import intrinsic

    def widen(typingctx, bits):
        return types.float32(types.uint16), lambda context, b, sig, args: llvm_ops.widen(b, args[0], dtype)

    return _named(intrinsic, widen, f"widen_{dtype.short}")


def _narrow(dtype: DType) -> _Intrinsic:
    from numba import types
    from numba.extending import intrinsic

    def narrow(typingctx, x):
        return types.uint16(x), lambda context, b, sig, args: llvm_ops.narrow(b, args[0], dtype)

    return _named(intrinsic, narrow, f"narrow_{dtype.short}")


def _call_kernel() -> _Intrinsic:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    def call_kernel(typingctx, address, start, stop, args):
        word, pointer = types.int64, types.CPointer(types.int64)

        def codegen(context, b, sig, values):
            kernel = ir.FunctionType(ir.IntType(64), [v.type for v in values[1:]])
            return b.call(b.inttoptr(values[0], kernel.as_pointer()), values[1:])

        return word(word, word, word, pointer), codegen

    return _named(intrinsic, call_kernel, "call_kernel")
