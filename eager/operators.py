"""Python operators on tensors and variables, and which ops have native entries.

Every elementwise op of one or two operands without attributes gets a native entry (`entries.py`): machine code that
computes small plain cases itself and hands everything else to the door. Operators use the same tables of kernels.
"""

from __future__ import annotations

from numbers import Number
from typing import Any, TypeAlias

import numpy as np

from twofold.codegen import reduce
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dtypes import DType
from twofold.ir.errors import DTypeError, InvalidArgumentError, ShapeError, SymbolicOperand
from twofold.ir.op import REGISTRY, Op, apply, set_shortcuts, tracing
from twofold.ir.types import Operand, Results
from twofold.runtime import native, sharing
from twofold.runtime.leaving import OPERATORS
from twofold.runtime.native_layout import PythonFunction

from . import convert, entries, indexing, record
from .forward import ForwardAccumulator
from .scatter import ScatterMethods
from .tape import GradientTape
from .tensor import Tensor
from .types import Readable
from .variable import SliceMethods, Variable

__all__ = ["install", "renew"]

Operator: TypeAlias = PythonFunction  # of one operand or two, or a builtin that stands for such

_BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floordiv",
           "mod": "floormod", "pow": "pow", "matmul": "matmul"}
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_LOGIC = {"and": ("logical_and", "bitwise_and"), "or": ("logical_or", "bitwise_or"),
          "xor": ("logical_xor", "bitwise_xor")}
_REDUCES_ALL = {"axis": None, "keepdims": False}
_UNARY = {"neg": "negative", "abs": "abs"}
_GUARDED: dict[type, tuple[str, ...]] = {
    Tensor: ("__init__", "__bool__", "__int__", "__float__", "__complex__", "__index__", "__len__", "__iter__",
             "__hash__", "__round__", "__format__", "set_shape", "gpu"),
    Variable: ("__init__", "__getitem__", "__setitem__", "__len__", "__iter__", "__hash__", "assign", "assign_add",
               "assign_sub"),
    GradientTape: ("__init__", "__enter__", "watch", "gradient", "jacobian", "batch_jacobian"),
    ForwardAccumulator: ("__init__", "__enter__", "jvp"),
    SliceMethods: ("assign", "assign_add", "assign_sub"),
    ScatterMethods: tuple(name for name in vars(ScatterMethods) if not name.startswith("_")),
}
_NUMBERS = (float, int, bool)
_SMALL_PRODUCT = 1 << 20  # multiplications of two matrices that are not worth planning: 10 to 20 microseconds
_READABLE = (Tensor, Variable, np.ndarray, np.generic, Number)  # converted although they have operators


def install() -> None:
    """Give the elementwise ops their entries, and `Tensor` and `Variable` their operators."""
    native.bind(Tensor)
    native.set_recorder(record.record)
    for op in REGISTRY.values():
        if op.body is not None and not op.defaults and not op.variadic and len(op.params) in (1, 2):
            entries.add(op, _door(op), sharing.AT_ONCE)  # fewer, once the work of a kernel is known
        elif op.reduction is not None and len(op.params) == 1 and op.defaults == _REDUCES_ALL:
            entries.add(op, _door(op), reduce.CHUNK, total=True)
    entries.add(ops.matmul, _door(ops.matmul), _SMALL_PRODUCT, product=True)
    set_shortcuts(entries.ENTRIES)
    for name, op_name in {**_BINARY, **_COMPARISONS}.items():
        _attach_binary(name, REGISTRY[op_name], reflected=name in _BINARY)
    for name, (on_bool, on_int) in _LOGIC.items():
        both = _by_dtype(REGISTRY[on_bool], REGISTRY[on_int])
        _set(f"__{name}__", both)
        _set(f"__r{name}__", lambda x, y, both=both: both(y, x))
    for name, op_name in _UNARY.items():
        _attach_unary(f"__{name}__", REGISTRY[op_name])
    _set("__invert__", _by_dtype(ops.logical_not, ops.invert))
    _set("__pos__", lambda x: ops.identity(x))
    for name, op, fn in (("eq", ops.equal, _equal), ("ne", ops.not_equal, _not_equal)):
        fn.__qualname__ = op.name  # what errors call it
        _attach(Tensor, name, native.entry(entries.TABLES[op], fn, 2, f"__{name}__", op=op), None)
        _attach(Variable, name, native.guard(fn, f"__{name}__"), None)
    native.operators(Tensor, _entries())
    Tensor.__getitem__ = native.as_method(native.guard(indexing.index, "__getitem__"))
    _guard_methods()
    OPERATORS.update({f"__{name}__": op for name, op in {**_BINARY, **_COMPARISONS, **_UNARY}.items()})
    OPERATORS.update({f"__r{name}__": op for name, op in _BINARY.items()})
    OPERATORS.update({f"__{r}{name}__": on_bool for name, (on_bool, _) in _LOGIC.items() for r in ("", "r")})
    OPERATORS.update({"__eq__": "equal", "__ne__": "not_equal", "__invert__": "invert", "__getitem__": "strided_slice"})


def renew() -> None:
    """Have operators of tensors run their entries again, after others stood in their place."""
    native.operators(Tensor, _entries())


def _entries() -> dict[str, Operator]:
    """The entries that answer operators of tensors."""
    names = [f"__{name}__" for name in (*_BINARY, *_COMPARISONS, "eq", "ne")] + [f"__{name}__" for name in _UNARY]
    return {name: getattr(Tensor, name) for name in names}


def _guard_methods() -> None:
    """Let errors of methods show the user's frames only, as those of functions do."""
    for cls, names in _GUARDED.items():
        for name in names:
            setattr(cls, name, native.as_method(native.guard(cls.__dict__[name], name)))


def _door(op: Op) -> Operator:
    def call(*inputs: Operand) -> Results:
        if len(inputs) == 2 and (plain := _plain(*inputs)) is not None:
            return _run(op, plain)
        return apply(op, inputs, {})
    call.__name__, call.__doc__ = op.name, op.__doc__
    return call


def _attach_binary(name: str, op: Op, reflected: bool) -> None:
    slow = _operator(op, f"__r{name}__")
    if op is ops.add:
        slow = _joining(slow)
    table = entries.TABLES.get(op)
    if table is None:
        forward, backward = native.guard(slow, f"__{name}__"), native.guard(_swapped(slow), f"__r{name}__")
    elif op is ops.matmul:
        forward = native.entry(table, slow, 2, f"__{name}__", product=True, op=op)
        backward = native.guard(_swapped(slow), f"__r{name}__")
    else:
        forward = native.entry(table, slow, 2, f"__{name}__", op=op)
        backward = native.entry(table, slow, 2, f"__r{name}__", reflected=True, op=op)
    _attach(Tensor, name, forward, backward if reflected else None)
    _attach(Variable, name, native.guard(_reading(forward), f"__{name}__"),
            native.guard(_reading(backward), f"__r{name}__") if reflected else None)


def _attach(cls: type, name: str, forward: Operator, backward: Operator | None) -> None:
    setattr(cls, f"__{name}__", native.as_method(forward))
    if backward is not None:
        setattr(cls, f"__r{name}__", native.as_method(backward))


def _swapped(fn: Operator) -> Operator:
    return lambda x, y: fn(y, x)


def _reading(fn: Operator) -> Operator:
    """`fn` for a variable as the operand whose class has the operator."""
    def call(variable: Variable, other: object) -> Results:
        value = variable._read_tensor()
        if type(other) is Variable:
            other = value if other is variable else other._read_tensor()
        return fn(value, other)
    return call


def _attach_unary(name: str, op: Op) -> None:
    slow = _door(op)
    setattr(Tensor, name, native.as_method(native.entry(entries.TABLES[op], slow, 1, name, op=op)))
    setattr(Variable, name, native.as_method(native.guard(slow, name)))


def _set(name: str, fn: Operator) -> None:
    for cls in (Tensor, Variable):
        setattr(cls, name, native.as_method(native.guard(fn, name)))


def _plain(x: Any, y: Any) -> tuple[Tensor, Tensor] | None:
    """A tensor and a variable or a Python number, either way round, as two tensors: all that entries take."""
    if type(x) is Tensor:
        if type(y) is Variable:
            return x, y._read_tensor()
        return (x, number) if type(y) in _NUMBERS and (number := _number(y, x.dtype)) is not None else None
    if type(y) is Tensor:
        if type(x) is Variable:
            return x._read_tensor(), y
        return (number, y) if type(x) in _NUMBERS and (number := _number(x, y.dtype)) is not None else None
    return None


def _number(value: float | int | bool, dtype: DType) -> Tensor | None:
    """A Python number as a tensor; None where it does not fit the dtype, in which case the door converts it."""
    try:
        return convert.number(value, dtype)
    except InvalidArgumentError:
        return None


def _run(op: Op, plain: tuple[Tensor, Tensor]) -> Results:
    """An op on two tensors, by its native entry unless they have more elements than the entry takes."""
    if tracing() is not None:
        return apply(op, plain, {})
    most = entries.limit(op) if op is not ops.matmul else _SMALL_PRODUCT // 4
    return op(*plain) if plain[0]._memory.size + plain[1]._memory.size <= 2 * most else apply(op, plain, {})


def _operator(op: Op, reflected: str) -> Operator:
    """The op as an operator: NotImplemented for operands that it cannot read, so that their class can answer."""
    def call(x: Any, y: Any) -> Results:  # whatever stands beside a tensor
        plain = _plain(x, y)
        if plain is not None:
            return _run(op, plain)
        for operand in (x, y):
            if operand is None or isinstance(operand, (dict, set)):
                return NotImplemented
        try:
            return apply(op, (x, y), {})
        except SymbolicOperand:  # its operators, comparisons among them, are its own
            return NotImplemented
        except (TypeError, ValueError):
            if hasattr(type(y), reflected) and not isinstance(y, _READABLE):
                return NotImplemented
            raise
    return call


def _joining(add: Operator) -> Operator:
    """`+`: strings are put one behind the other."""
    def call(x: Operand, y: Operand) -> Results:
        if getattr(x, "dtype", None) is dt.string or getattr(y, "dtype", None) is dt.string:
            return ops.string_add(x, y)
        return add(x, y)
    return call


def _by_dtype(on_bool: Op, on_int: Op) -> Operator:
    """`&`, `|`, `^`, `~`: logical for booleans, bitwise for integers."""
    def call(*operands: Operand) -> Results:
        first = next(x for x in operands if isinstance(x, (Tensor, Variable)))
        try:
            return (on_bool if first.dtype.is_bool else on_int)(*operands)
        except SymbolicOperand:  # the other operand has operators of its own
            return NotImplemented
    return call


def _is_string(x: Readable) -> bool:
    return x.dtype.kind == "s"


def _equal(x: Readable, y: Operand | None) -> Tensor | bool:
    """Elementwise equality; False for None and for shapes that do not broadcast, as in TensorFlow."""
    if y is None:
        return False
    try:
        return ops.string_equal(x, y) if _is_string(x) else ops.equal(x, y)
    except DTypeError:
        raise
    except ShapeError:
        return False


def _not_equal(x: Readable, y: Operand | None) -> Tensor | bool:
    """Elementwise inequality; True for None and for shapes that do not broadcast, as in TensorFlow."""
    if y is None:
        return True
    try:
        return ops.logical_not(ops.string_equal(x, y)) if _is_string(x) else ops.not_equal(x, y)
    except DTypeError:
        raise
    except ShapeError:
        return True
