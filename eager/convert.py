"""Values into tensors: which dtype Python numbers, lists and NumPy arrays take.

Alone, a Python float is float32 and an int is int32 (int64 when it does not fit), and a NumPy array
keeps its dtype. Beside a tensor, numbers, arrays and lists take the tensor's dtype where that loses
only precision: a float never becomes an integer. Tensors are never promoted here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir import ops, reference, scalar
from twofold.ir.dtypes import DType
from twofold.ir.errors import DTypeError, InvalidArgumentError, user_line
from twofold.ir.op import Op
from twofold.ir.spec import TensorShape, leaf_types, without_ranges
from twofold.runtime import memory

from . import conversions
from .tensor import Tensor, wrap

__all__ = ["as_tensor", "number", "operands", "to_array"]

_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3, "s": 4}
_PLAIN = frozenset({bool, int, float, complex, str, bytes, list, tuple, range, type(None), np.ndarray})
_NUMBERS = frozenset({bool, int, float, complex})
_INT32 = range(-(1 << 31), 1 << 31)
_scalars: dict[tuple[object, ...], Tensor] = {}  # operands that programs repeat: `x * 2`, `1 - y`
_SCALARS = 1024


def operands(op: Op, inputs: tuple[object, ...]) -> tuple[Tensor, ...]:
    """The operands of `op` as tensors; those that share a dtype adopt it from the tensors among them."""
    inputs = tuple([x._read_tensor() if hasattr(x, "_read_tensor") else x for x in inputs])
    match = op.match
    hint = None
    for i, x in enumerate(inputs):
        if (match is None or i in match) and (dtype := _dtype_of(x)) is not None:
            hint = dtype
            break
    if hint is None and match != ():
        inputs = tuple([x if type(x) in _PLAIN or (converted := conversions.converted(x, None, None)) is None
                        else converted for x in inputs])
        hint = next((d for i, x in enumerate(inputs) if (match is None or i in match)
                     and (d := _dtype_of(x)) is not None), None)
    if hint is None and match != ():
        hint = _common([x for i, x in enumerate(inputs) if match is None or i in match])
    try:
        return tuple(x if type(x) is Tensor else _operand(x, hint if match is None or i in match else None)
                     for i, x in enumerate(inputs))
    except InvalidArgumentError:  # a whole number beyond the range of `hint`
        if "compares" not in op.traits or hint is None or hint.size > 4:
            raise
        return tuple(ops.cast(x, dtype=dt.int64) if isinstance(x, Tensor) else _operand(x, dt.int64) for x in inputs)


def _dtype_of(value: Any) -> DType | None:  # a user's value, which shows by its attributes what it is
    if isinstance(value, Tensor) or hasattr(value, "_read_tensor"):
        return value.dtype
    if isinstance(value, (list, tuple)):
        return next((d for v in value if (d := _dtype_of(v)) is not None), None)
    return None


def _common(values: Sequence[object]) -> DType | None:
    """The dtype that values without a tensor among them share: an array's own, else the widest Python kind."""
    arrays = [v for v in values if isinstance(v, (np.ndarray, np.generic))]
    if arrays:
        return dt.from_numpy(arrays[0].dtype)
    dtypes = [as_tensor(v).dtype for v in values]
    return max(dtypes, key=lambda d: (_RANK[d.kind], d.size)) if dtypes else None


def _operand(value: object, hint: DType | None) -> Tensor:
    if type(value) is float or type(value) is int or type(value) is bool:
        return number(value, hint)
    return as_tensor(value, hint=hint)


def number(value: float | int | bool, hint: DType | None) -> Tensor:
    """A Python number as a tensor of dtype `hint` if it can be one; the tensors of numbers used before are kept."""
    key = (value, type(value), hint, str(value) if value == 0 else None)  # -0.0 is not 0.0
    tensor = _scalars.get(key)
    if tensor is None:
        if len(_scalars) >= _SCALARS:
            _scalars.clear()
        tensor = _scalars[key] = as_tensor(value, hint=hint)
    return tensor


def as_tensor(value: object, dtype: DType | None = None, hint: DType | None = None) -> Tensor:
    """`value` as a tensor.

    Args:
        value: a tensor or variable, Python number, string, (nested) list, NumPy array, or anything with
            `__array__`. NumPy arrays are copied: a tensor never changes.
        dtype: the dtype it must have; tensors must have it already, NumPy arrays and numbers are cast (as by
            `tf.cast`), other values convert if nothing but precision is lost.
        hint: the dtype it takes if it can, else its own.
    Raises:
        DTypeError: a tensor has another dtype. TypeError, ValueError: the value cannot be converted.
    """
    if hasattr(value, "_read_tensor"):
        value = value._read_tensor()
    if isinstance(value, Tensor):
        if dtype is not None and value.dtype is not dtype:
            raise DTypeError(f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype {value.dtype.name}:"
                             f" {value!r}\n  Hint: use tf.cast(value, tf.{dtype.name}).\n  {user_line()}")
        return value
    if type(value) not in _PLAIN:
        converted = conversions.converted(value, dtype, hint)
        if converted is not None:
            return converted
        if hasattr(value, "__cuda_array_interface__"):
            return _from_gpu(value, dtype, hint)
    leaves: Collection[type] = ()
    if isinstance(value, (list, tuple)):
        leaves = leaf_types(value)
        if not leaves <= _NUMBERS and any(map(_is_tensor, leaves)):
            return _stacked(value, dtype, hint)
    want = dtype or hint
    array = to_array(value, want, leaves)
    if want is not None and array.dtype != want.np:
        if dtype is not None and isinstance(value, (np.ndarray, np.generic)) and _castable(array, want):
            array = _cast(array, want)
        elif _adopts(array, want) and not (array.dtype.kind == "b" and _holds_numpy_bools(value, leaves)):
            array = _cast_value(value, array, want)
        elif dtype is not None:
            raise TypeError(f"Cannot convert {_short(value)} to a tensor of dtype {dtype.name}.\n  {user_line()}")
        else:
            array = to_array(value, None, leaves)
    return wrap(array)


def _from_gpu(value: object, dtype: DType | None, hint: DType | None) -> Tensor:
    """A tensor with a copy of another library's array, on its GPU."""
    from twofold.runtime import cuda_exchange

    copied = cuda_exchange.borrowed(value).copy()
    want = dtype or hint
    tensor = wrap(copied)
    return tensor if want is None or tensor.dtype is want else ops.cast(tensor, dtype=want)


def to_array(value: object, want: DType | None = None, leaves: Collection[type] = ()) -> np.ndarray:
    """`value` as an array of a tensor's dtype, with memory that nobody else can write to.

    Args:
        value: a number, a list or whatever NumPy can read.
        want: the dtype that it is to become; without one, lists have that which TensorFlow infers.
        leaves: the types of what a list holds (`leaf_types`).
    """
    if isinstance(value, np.ndarray):
        return _own(value)
    if isinstance(value, np.generic):
        return _own(np.asarray(value))
    if isinstance(value, (str, bytes)):
        return _strings(np.array(value, object))
    if type(value) in (bool, float, int, complex):
        return _from_number(value, want)
    if isinstance(value, TensorShape):
        value = value.as_list() or np.zeros(0, np.int32)
    if value is None or (isinstance(value, (list, tuple)) and any(v is None for v in value)):
        raise ValueError(f"Attempt to convert a value ({_short(value)}) with an unsupported type ({type(None)}) "
                         "to a Tensor.")
    return _from_nested(value, want, leaves)


def _from_number(value: object, want: DType | None) -> np.ndarray:
    if type(value) is int and want is None and value in _INT32:
        return np.array(value, np.int32)
    if want is not None and type(value) is int and want.kind == "u" and 1 << 63 <= value < 1 << 64:
        return np.array(value, np.uint64)
    if type(value) is float and want is None:
        with np.errstate(over="ignore"):
            return np.array(value, np.float32)
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"Can't convert {_short(value)}: an integer does not fit in 64 bits")
    return np.array(value, {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}[type(value)])


def _from_nested(value: object, want: DType | None, leaves: Collection[type]) -> np.ndarray:
    """Arrays of lists, ranges and anything that NumPy can read."""
    has_own_dtype = hasattr(value, "__array__") or hasattr(value, "dtype")
    value = without_ranges(value) if not leaves or range in leaves else value
    try:
        array = np.asarray(value)
    except UnicodeDecodeError:  # text beside bytes that are no UTF-8
        array = np.array(value, object)
    except ValueError as e:
        raise ValueError(f"Can't convert non-rectangular Python sequence to Tensor: {_short(value)}") from e
    except OverflowError as e:
        raise ValueError(f"Can't convert {_short(value)}: an integer does not fit in 64 bits") from e
    if array.dtype.kind in "SUO":
        return _strings(np.array(value, object), value)
    if not has_own_dtype and array.dtype.kind == "f" and _kind(_first(value)) in _WHOLE and _all_whole(value):
        array = _whole(value)
    if array.dtype.kind != "b" and _holds_numpy_bools(value, leaves):
        raise _mixed(value)
    return _own(array if has_own_dtype or want is not None else _inferred(value, array))


_KINDS: dict[type, str] = {bool: "b", int: "i", float: "f", complex: "c"}  # bool is an int, too
_WHOLE = ("i", "u", "b")


def _kind(leaf: object) -> str | None:
    """The kind of NumPy's dtype of a number or array; None for what is neither."""
    if isinstance(leaf, (np.generic, np.ndarray)):
        return leaf.dtype.kind
    return next((kind for python, kind in _KINDS.items() if isinstance(leaf, python)), None)


def _inferred(value: object, array: np.ndarray) -> np.ndarray:
    """The array that NumPy reads a list as, in the dtype that TensorFlow infers.

    The first number decides: a float has its own dtype (float32 if it is Python's), and so have all that follow; an
    integer of whatever size is int32, or int64 where one does not fit, or float32 where floats follow; a complex number
    is complex128. Bools stand among bools, and complex numbers do not follow others.
    """
    first, kind = _first(value), array.dtype.kind
    lead = _kind(first)
    if not array.size:
        return array.astype(np.float32)
    if lead is not None and ((lead == "b") != (kind == "b") or (kind == "c" and lead != "c")):
        raise _mixed(value)
    if kind == "c":
        return array.astype(np.complex128)
    if kind in ("i", "u"):
        low, high = int(array.min()), int(array.max())
        return array.astype(np.int32) if low in _INT32 and high in _INT32 else (
            array.astype(np.int64) if high < 1 << 63 else array)
    if kind == "b" or lead is None:
        return array
    with np.errstate(over="ignore"):
        own = first.dtype if isinstance(first, (np.generic, np.ndarray)) and lead not in _WHOLE else None
        return array.astype(np.float32 if own is None else own)


def _first(value: object) -> object:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _all_whole(value: object) -> bool:
    """Whether a list holds no floats: NumPy takes int64 beside uint64 for such."""
    if isinstance(value, (list, tuple)):
        return all(_all_whole(v) for v in value)
    return _kind(value) in _WHOLE


def _whole(value: object) -> np.ndarray:
    """The array of a list of integers, of which some are uint64."""
    array = np.array(value, object)
    return array.astype(np.int64 if all(int(v) < 1 << 63 for v in array.flat) else np.uint64)


def _own(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "SUO":
        return _strings(array.astype(object))
    dtype = dt.from_numpy(array.dtype)
    if array.nbytes < memory.POOLED_FROM:
        return np.array(array, dtype.np, order="C", copy=True, subok=False)
    out = memory.empty(array.shape, dtype.np)  # where vectors do not straddle cache lines
    np.copyto(out, array)
    return out


def _strings(array: np.ndarray, source: object = None) -> np.ndarray:
    out = np.empty(array.shape, object)
    for i, item in enumerate(array.flat):
        item = item[()] if isinstance(item, np.ndarray) and not item.ndim else item
        if not isinstance(item, (str, bytes)):
            raise ValueError(f"Failed to convert {_short(source if source is not None else item)} to a Tensor: "
                             f"unsupported element type {type(item).__name__}.")
        out.flat[i] = item.encode() if isinstance(item, str) else bytes(item)
    return out


def _adopts(array: np.ndarray, want: DType) -> bool:
    """Whether a value read as `array` may become `want`: numbers within or up the ladder bool, int, float, complex."""
    have = dt.from_numpy(array.dtype)
    if not array.size:
        return True
    if "s" in (have.kind, want.kind):
        return have is want
    return _RANK[have.kind] <= _RANK[want.kind]


def _castable(array: np.ndarray, want: DType) -> bool:
    return "s" not in (dt.from_numpy(array.dtype).kind, want.kind)


def _cast(array: np.ndarray, want: DType) -> np.ndarray:
    """`array` as `tf.cast` converts it: toward zero, to the nearest limit from floats, the low bits of integers."""
    have = dt.from_numpy(array.dtype)
    body = scalar.build(lambda s, x: s.cast(x, want), (have,), name="cast")
    with np.errstate(over="ignore"):
        return reference.evaluate(body, array.astype(have.compute.np))[0].astype(want.np)


def _cast_value(value: object, array: np.ndarray, want: DType) -> np.ndarray:
    if want.is_integer and array.size:
        low, high = want.min, want.max
        if int(array.min()) < low or int(array.max()) > high:
            raise InvalidArgumentError(f"Cannot convert {_short(value)} to a tensor of dtype {want.name}: "
                                       f"it holds {low} to {high}.\n  {user_line()}")
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(want.np)


def _is_tensor(kind: type) -> bool:
    """Whether values of a type are tensors, variables, or what a conversion of the user's may make tensors of."""
    return kind not in _PLAIN and (issubclass(kind, Tensor) or hasattr(kind, "_read_tensor")
                                   or conversions.is_convertible(kind))


def _holds_numpy_bools(value: object, leaves: Collection[type]) -> bool:
    """Whether a list has NumPy's bools in it, which stand among bools only and become no numbers; Python's are numbers.
    """
    return np.bool_ in leaves or (np.ndarray in leaves and _holds_bool_arrays(value))


def _holds_bool_arrays(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_bool_arrays, value))
    return isinstance(value, np.ndarray) and value.dtype == np.bool_


def _stacked(value: Sequence[object], dtype: DType | None, hint: DType | None) -> Tensor:
    """A list with tensors in it, stacked along a new first axis (differentiably).

    Args:
        dtype: to which all tensors in the list are cast.
        hint: which they take where that loses only precision. A tensor alone would keep its dtype; a list is
            taken like one of numbers.
    """
    own = _dtype_of(value)
    want = dtype or (own if hint is None or own is None or not _widens(own, hint) else hint)
    parts = [as_tensor(v, None if _is_tensor(type(v)) else dtype, want or hint) for v in value]
    if want is not None and want is not own:
        parts = [ops.cast(p, dtype=want) if dtype is not None or _widens(p.dtype, want) else p for p in parts]
    return ops.concat(*[ops.expand_dims(p, axis=0) for p in parts], axis=0)


def _widens(have: DType, want: DType) -> bool:
    """Whether a cast from one dtype to another loses nothing but precision."""
    if "s" in (have.kind, want.kind):
        return have is want
    if have.is_integer and want.is_integer:
        return dt.holds_integers(want, have)
    return _RANK[have.kind] <= _RANK[want.kind]


def _mixed(value: object) -> ValueError:
    return ValueError(f"Can't convert Python sequence with mixed types to Tensor: {_short(value)}")


def _short(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"
