"""Shapes and specs: what is known of a tensor before its values are.

Owns `TensorShape` (the public, static view: ints, None for what is unknown, or no rank at all) and
`TensorSpec` (dtype, dims and a name; what shape rules take and give), with the short text form of a
spec that IR text uses, `f32[3,n]`. Arithmetic on symbolic dims and guards are `ir/dims.py`'s.

A TensorShape is a sequence but no tuple, so that `"%s" % shape` formats and structures of tensors
take a shape for one leaf; it equals tuples and lists and hashes as the tuple does.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, SupportsIndex, TypeAlias, TypeVar

import numpy as np

from . import dims as dm
from . import dtypes as dt
from .dims import Dim, DimLike, Shape
from .dtypes import DType, DTypeLike
from .errors import InvalidArgumentError, describe, is_ours, user_line
from .type_spec import TypeSpec
from .types import HasShape, Spec

__all__ = ["TensorShape", "TensorSpec", "spec", "parse_short", "as_numpy", "as_shape", "leaf_types", "listed", "mapped",
           "no_item", "numbered", "without_ranges"]

# What stands for a shape: one, a size, sizes with None for unknown ones; None for an unknown rank
ShapeLike: TypeAlias = "TensorShape | SupportsIndex | Dim | Iterable[SupportsIndex | Dim | None] | None"

_new = object.__new__


class TensorShape:
    """The shape of a tensor as far as it is known: sizes, None for an unknown size, or no rank at all.

    Args:
        dims: None (unknown rank), an int (rank 1), or an iterable of ints, None and dims; symbolic dims
            are unknown here. A shape is copied.

    Raises:
        ValueError: a size is negative.
        TypeError: a size is no integer.

    >>> import twofold as tf
    >>> shape = tf.TensorShape([None, 3])
    >>> print(shape, shape.rank, shape[-1], shape[:1])
    (None, 3) 2 3 (None,)
    >>> tf.TensorShape([2, 3]) == (2, 3), tf.TensorShape(None)
    (True, TensorShape(None))
    """

    __slots__ = ("_dims",)
    __match_args__ = ("dims",)

    _dims: tuple[int | None, ...] | None

    def __init__(self, dims: ShapeLike):
        self._dims = _static_sizes(dims)

    @staticmethod
    def _of(dims: tuple[int | None, ...] | None) -> TensorShape:
        """The shape of sizes that are known to be right, such as an array's; nothing is checked."""
        shape = _new(TensorShape)
        shape._dims = dims
        return shape

    @property
    def rank(self) -> int | None:
        """The number of axes, or None when it is unknown."""
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        """The number of axes, or None when it is unknown; the same as `rank`."""
        return None if self._dims is None else len(self._dims)

    @property
    def dims(self) -> list[int | None] | None:
        """The sizes as a list, or None when the rank is unknown."""
        return None if self._dims is None else list(self._dims)

    def as_list(self) -> list[int | None]:
        """The sizes as a list. Raises ValueError when the rank is unknown."""
        return list(self._known("as_list() is not defined on an unknown TensorShape."))

    def num_elements(self) -> int | None:
        """The number of elements, or None when the shape is not fully known."""
        if self._dims is None:
            return None
        sizes = [d for d in self._dims if d is not None]
        return dm.numel(sizes) if len(sizes) == len(self._dims) else None

    def is_fully_defined(self) -> bool:
        """Whether the rank and every size are known."""
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self) -> None:
        """Raise ValueError unless the rank and every size are known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: ShapeLike) -> bool:
        """Whether one tensor could have both shapes.

        >>> import twofold as tf
        >>> tf.TensorShape([None, 3]).is_compatible_with([2, 3])
        True
        """
        mine, theirs = self._dims, as_shape(other)._dims
        if mine is None or theirs is None:
            return True
        if len(mine) != len(theirs):
            return False
        return all(a is None or b is None or a == b for a, b in zip(mine, theirs, strict=True))

    def assert_is_compatible_with(self, other: ShapeLike) -> None:
        """Raise ValueError unless one tensor could have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def is_subtype_of(self, other: ShapeLike) -> bool:
        """Whether every tensor of this shape has the other shape too."""
        mine, theirs = self._dims, as_shape(other)._dims
        if theirs is None or mine is None:
            return theirs is None
        return len(mine) == len(theirs) and all(b is None or a == b for a, b in zip(mine, theirs, strict=True))

    def merge_with(self, other: ShapeLike) -> TensorShape:
        """The shape that says as much as both together. Raises ValueError when they contradict each other.

        >>> import twofold as tf
        >>> tf.TensorShape([None, 3]).merge_with([2, None])
        TensorShape([2, 3])
        """
        other = as_shape(other)
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        if self._dims is None or other._dims is None:
            return other if self._dims is None else self
        return TensorShape._of(tuple([b if a is None else a for a, b in zip(self._dims, other._dims, strict=True)]))

    def concatenate(self, other: ShapeLike) -> TensorShape:
        """This shape's axes followed by the other's; unknown when either is."""
        mine, theirs = self._dims, as_shape(other)._dims
        return TensorShape._of(None if mine is None or theirs is None else mine + theirs)

    def most_specific_compatible_shape(self, other: ShapeLike) -> TensorShape:
        """The narrowest shape that both are cases of.

        >>> import twofold as tf
        >>> tf.TensorShape([2, 3]).most_specific_compatible_shape([4, 3])
        TensorShape([None, 3])
        """
        mine, theirs = self._dims, as_shape(other)._dims
        if mine is None or theirs is None or len(mine) != len(theirs):
            return TensorShape._of(None)
        return TensorShape._of(tuple([a if a == b else None for a, b in zip(mine, theirs, strict=True)]))

    def assert_same_rank(self, other: ShapeLike) -> None:
        """Raise ValueError where both ranks are known and differ."""
        other = as_shape(other)
        if self.rank is not None and other.rank is not None and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_has_rank(self, rank: int) -> None:
        """Raise ValueError where the rank is known and is not `rank`."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def with_rank(self, rank: int) -> TensorShape:
        """This shape, knowing that its rank is `rank`. Raises ValueError when it is not."""
        self.assert_has_rank(rank)
        return TensorShape._of((None,) * rank) if self._dims is None else self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape. Raises ValueError when its rank is known to be less than `rank`."""
        if self._dims is not None and len(self._dims) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape. Raises ValueError when its rank is known to be more than `rank`."""
        if self._dims is not None and len(self._dims) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def index(self, size: int | None, *bounds: int) -> int:
        """The first axis of this size, as a tuple's `index`."""
        return self._known("Cannot search a shape of unknown rank.").index(size, *bounds)

    def count(self, size: int | None) -> int:
        """How many axes have this size."""
        return self._known("Cannot search a shape of unknown rank.").count(size)

    def _known(self, otherwise: str) -> tuple[int | None, ...]:
        if self._dims is None:
            raise ValueError(otherwise)
        return self._dims

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of a shape with unknown rank.")
        return len(self._dims)

    def __iter__(self) -> Iterator[int | None]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    # These two are on the way of every model: they tell users what is wrong themselves, rather than by a guard around
    # them. What a function of the library asks for in vain stays as it is: the function tells of its own arguments.
    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        dims = self._dims
        try:
            if dims is None:
                return _item_of_unknown(key)
            return TensorShape._of(dims[key]) if isinstance(key, slice) else dims[key]
        except (IndexError, TypeError, ValueError) as error:
            if is_ours(sys._getframe(1).f_code.co_filename):
                raise
            raise no_item(error, "TensorShape", key, self) from None

    def __contains__(self, size: object) -> bool:
        try:
            return size in self._known("Cannot search a shape of unknown rank.")
        except ValueError as error:
            if is_ours(sys._getframe(1).f_code.co_filename):
                raise
            raise ValueError(f"TensorShape: {error}\n  {user_line()}") from None

    __getitem__.__tells__ = __contains__.__tells__ = True  # type: ignore[attr-defined]

    def __bool__(self) -> bool:
        """Whether the rank is known; a scalar's shape counts."""
        return self._dims is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TensorShape):
            return self._dims == other._dims
        if isinstance(other, tuple):
            return self._dims == other
        if isinstance(other, list):
            return self._dims == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __add__(self, other: ShapeLike) -> TensorShape:
        return self.concatenate(other) if isinstance(other, (TensorShape, tuple, list)) else NotImplemented

    def __radd__(self, other: ShapeLike) -> TensorShape:
        return as_shape(other).concatenate(self) if isinstance(other, (tuple, list)) else NotImplemented

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __reduce__(self) -> tuple[object, ...]:
        return (TensorShape, (self._dims,))


def no_item(error: Exception, what: str, key: object, items: object) -> Exception:
    """The error of an index that a sequence does not have, of the class of what Python's own sequence raised.

    Args:
        error: what it raised.
        what: the sequence's name.
        key: the index.
        items: the sequence.
    """
    kind = next(k for k in (IndexError, TypeError, ValueError) if isinstance(error, k))
    return kind(f"{what}: there is no item {describe(key)} of {items!r}: an index is an integer or a slice, and within "
                f"the length.\n  {user_line()}")


def as_shape(value: ShapeLike) -> TensorShape:
    """`value` as a TensorShape: itself, or what `TensorShape(value)` makes."""
    return value if isinstance(value, TensorShape) else TensorShape(value)


def _item_of_unknown(key: SupportsIndex | slice) -> TensorShape | None:
    if not isinstance(key, slice):
        return None
    start, stop = key.start or 0, key.stop
    # Only axes counted from the same end have a known number; the rest may be cut short by the rank.
    if key.step not in (None, 1) or start != 0 or stop is None or stop < 0:
        return TensorShape._of(None)
    return TensorShape._of((None,) * stop)


def _static_sizes(dims: ShapeLike) -> tuple[int | None, ...] | None:
    if dims is None:
        return None
    if isinstance(dims, TensorShape):
        return dims._dims
    return tuple([None if isinstance(d, Dim) else d for d in _checked(dims)])


def _checked(dims: ShapeLike) -> list[DimLike | None]:
    if isinstance(dims, (str, bytes)):
        raise TypeError(f"A shape must be an integer or a sequence of integers and None, not {dims!r}.")
    items: Any = dims  # perhaps no iterable, which is found out here
    if isinstance(dims, Dim) or hasattr(dims, "__index__") and not getattr(dims, "shape", ()):
        items = (dims,)
    try:
        sizes = listed(items, "A shape")
    except TypeError:
        raise TypeError(f"A shape must be an integer or a sequence of integers and None, not {dims!r}.") from None
    return [None if d is None else _size(d, dims) for d in sizes]


_MOST = 1 << 20  # numbers in one argument, and pieces of one tensor


_Item = TypeVar("_Item")
_Key = TypeVar("_Key")


def listed(values: Iterable[_Item], what: str, most: int = _MOST) -> list[_Item]:
    """The items of an iterable of numbers: the one place where such an argument is read, so that none is read for ever.

    Args:
        values: the iterable.
        what: the argument's name.
        most: how many items there may be where `values` has a length; one without a length may have no end.

    Raises:
        InvalidArgumentError: there are more than can be meant. TypeError: `values` has no items.
    """
    if isinstance(values, (list, tuple)) and len(values) <= most:
        return list(values)
    if hasattr(values, "__staged_sequence__"):  # a dataset, whose items a trace does not have
        raise TypeError(f"{what} must be numbers; got {describe(values)}.")
    length = len(values) if isinstance(values, Sized) else None
    most = min(most, _MOST) if length is None else most
    items = list(itertools.islice(values, most + 1)) if length is None or length <= most else []
    if len(items) > most or (length is not None and length > most):
        raise InvalidArgumentError(f"{what} has more than {most} items, which cannot be meant"
                                   f"{' where it has no length' if length is None else ''}.")
    return items


def as_numpy(value: object, dtype: np.dtype | type | None = None) -> np.ndarray:
    """The array that NumPy reads a value as; a long range is refused before its numbers take memory."""
    return np.asarray(without_ranges(value), dtype)


def leaf_types(values: Iterable[Any]) -> set[type]:
    """The types of what a list or tuple holds, at any depth of lists and tuples."""
    types = set(map(type, values))
    lists = {t for t in types if issubclass(t, (list, tuple))}
    if lists == types:  # most are two deep: then no list is walked by itself
        inner = set(map(type, itertools.chain.from_iterable(values)))
        if not any(issubclass(t, (list, tuple)) for t in inner):
            return inner
    return (types - lists).union(*[leaf_types(v) for v in values if type(v) in lists]) if lists else types


def without_ranges(value: object) -> object:
    """A value with arrays for the ranges in it, at any depth of lists: NumPy would make a list of each first.

    Raises:
        MemoryError: a range is too long for an array.
    """
    holds = isinstance(value, (list, tuple)) and range in leaf_types(value)
    return _unrolled(value) if holds or type(value) is range else value


def _unrolled(value: object) -> object:
    if type(value) is range:
        return np.arange(value.start, value.stop, value.step)
    return [_unrolled(v) for v in value] if isinstance(value, (list, tuple)) else value


def mapped(values: Mapping[_Key, _Item], what: str) -> Mapping[_Key, _Item]:
    """A mapping that an argument must be: looking for a key in another iterable, or sorting it, may take for ever.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"{what} must be a dict; got {describe(values)}.")
    return values


def numbered(count: int, what: str) -> range:
    """The numbers of pieces that are made one by one, each a tensor of its own: zeros have any size without memory.

    Raises:
        InvalidArgumentError: there are more than can be meant.
    """
    if count > _MOST:
        raise InvalidArgumentError(f"{what} makes {count} tensors; more than {_MOST} cannot be meant.")
    return range(count)


def _size(value: SupportsIndex | Dim, dims: ShapeLike) -> DimLike:
    if isinstance(value, str):
        raise TypeError(f"A shape must hold integers and None, not {value!r}, in {dims!r}.")
    try:
        return dm.as_dim(value)
    except (TypeError, ValueError) as e:
        raise type(e)(f"{e} The shape given is {dims!r}.") from None


class TensorSpec(TypeSpec):
    """A description of tensors: shape, dtype and a name.

    Unknown sizes are symbols in `dims`; a size given as None at axis i is the symbol `d{i}`, which says
    nothing about another spec's. Whoever puts specs together gives each its own with `with_symbols`.

    Args:
        shape: what `tf.TensorShape` takes; symbolic dims are kept.
        dtype: the dtype or its name.
        name: a name, or None.

    >>> import twofold as tf
    >>> tf.TensorSpec([None, 3])
    TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)
    >>> tf.TensorSpec([None, 3]).is_compatible_with(tf.ones((2, 3)))
    True
    """

    __slots__ = ("dims", "dtype", "name")
    __composite__ = False

    dims: Shape | None
    dtype: DType
    name: str | None

    def __init__(self, shape: ShapeLike, dtype: DTypeLike = dt.float32, name: str | None = None):
        self.dims = _named_sizes(shape)
        self.dtype = dt.as_dtype(dtype)
        self.name = name

    @property
    def shape(self) -> TensorShape:
        """The static shape: None where a size is unknown."""
        dims = self.dims
        if dims is None or dm.all_static(dims):
            return TensorShape._of(dims)  # type: ignore[arg-type]
        return TensorShape._of(tuple([None if isinstance(d, Dim) else d for d in dims]))

    @property
    def rank(self) -> int | None:
        """The number of axes, or None when it is unknown."""
        return None if self.dims is None else len(self.dims)

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.name

    def _form(self) -> Hashable:
        return self.dtype, self.rank

    @classmethod
    def from_spec(cls, spec: TensorSpec, name: str | None = None) -> TensorSpec:
        """The same spec, under `name` where one is given.

        >>> import twofold as tf
        >>> tf.TensorSpec.from_spec(tf.TensorSpec([2]), name="x")
        TensorSpec(shape=(2,), dtype=tf.float32, name='x')
        """
        return _make(spec.dims, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: HasShape, name: str | None = None) -> TensorSpec:
        """The spec of a tensor, or of whatever has a `shape` and a `dtype`.

        >>> import twofold as tf
        >>> tf.TensorSpec.from_tensor(tf.constant([1, 2, 3]))
        TensorSpec(shape=(3,), dtype=tf.int32, name=None)
        """
        dims = getattr(tensor, "dims", None)
        return cls(dims if isinstance(dims, tuple) else tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Whether a tensor of this spec could be what the other spec or value describes.

        Args:
            spec_or_value: a spec, or anything with `shape` and `dtype`, or Python numbers in lists.

        Raises:
            TypeError: the value is no tensor.
        """
        other = _spec_of(spec_or_value)
        return self.dtype is other.dtype and self.shape.is_compatible_with(other.shape)

    def is_subtype_of(self, other: object) -> bool:
        """Whether every tensor of this spec is one of the other spec, which must be a TensorSpec of the same name."""
        return (isinstance(other, TensorSpec) and self.dtype is other.dtype and self.name == other.name
                and self.shape.is_subtype_of(other.shape))

    def most_specific_compatible_type(self, other: TensorSpec) -> TensorSpec:
        """The narrowest spec that both are cases of. Raises ValueError when the dtypes differ.

        >>> import twofold as tf
        >>> tf.TensorSpec([2, 3]).most_specific_compatible_type(tf.TensorSpec([4, 3]))
        TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)
        """
        if not isinstance(other, TensorSpec) or self.dtype is not other.dtype:
            raise ValueError(f"Types are not compatible: {self!r} vs {other!r}")
        name = self.name if self.name == other.name else None
        mine, theirs = self.dims, other.dims
        if mine is None or theirs is None or len(mine) != len(theirs):
            return _make(None, self.dtype, name)
        return _make(_named([a if a == b else None for a, b in zip(mine, theirs, strict=True)]), self.dtype, name)

    def most_specific_common_supertype(self, others: Sequence[object]) -> TensorSpec | None:
        """The narrowest spec that this one and all others are cases of; None when there is none."""
        result = self
        for other in others:
            if not isinstance(other, TensorSpec) or (other.dtype, other.name) != (self.dtype, self.name):
                return None
            result = result.most_specific_compatible_type(other)
        return result

    def with_symbols(self, prefix: str) -> TensorSpec:
        """This spec with a symbol of its own, `{prefix}_{axis}`, for each size that is not a number."""
        if self.dims is None or dm.all_static(self.dims):
            return self
        return _make(tuple([dm.symbol(f"{prefix}_{i}") if isinstance(d, Dim) else d for i, d in enumerate(self.dims)]),
                     self.dtype, self.name)

    def substitute(self, env: dict[str, DimLike]) -> TensorSpec:
        """This spec with some symbols replaced by numbers or expressions."""
        if self.dims is None or dm.all_static(self.dims):
            return self
        return _make(dm.substitute(self.dims, env), self.dtype, self.name)

    def short(self) -> str:
        """The spec as IR text spells it: `f32[3,n]`, `f32[]`, or `f32[*]` for an unknown rank."""
        inside = "*" if self.dims is None else ",".join(map(str, self.dims))
        return f"{self.dtype.short}[{inside}]"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return self.dtype is other.dtype and self.dims == other.dims and self.name == other.name

    def __hash__(self) -> int:
        return hash((self.dims, self.dtype.index, self.name))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (_make, (self.dims, self.dtype, self.name))


def _make(dims: Shape | None, dtype: DType, name: str | None) -> TensorSpec:
    new = _new(TensorSpec)
    new.dims = dims
    new.dtype = dtype
    new.name = name
    return new


def spec(dims: Shape, dtype: DType) -> Spec:
    """The TensorSpec of dims and a dtype that are known to be right, for shape rules; nothing is checked."""
    new: Any = _new(TensorSpec)  # any TensorSpec may be of unknown rank, this one is not
    new.dims = dims
    new.dtype = dtype
    new.name = None
    ranked: Spec = new
    return ranked


def parse_short(text: str) -> TensorSpec:
    """The spec that `short()` spells as `text`.

    Raises:
        ValueError: `text` is no spec.
    """
    short, bracket, inside = text.strip().partition("[")
    dtype = dt.BY_SHORT.get(short)
    if dtype is None or not bracket or not inside.endswith("]"):
        raise ValueError(f"Spec {text!r} cannot be read: something like f32[3,n] is expected.")
    inside = inside[:-1].strip()
    if inside == "*":
        return _make(None, dtype, None)
    return _make(tuple([dm.as_dim(part) for part in _split_at_commas(inside)]), dtype, None)


def _split_at_commas(text: str) -> list[str]:
    """The parts between commas that are not within parentheses."""
    if not text:
        return []
    parts, depth, start = [], 0, 0
    for i, ch in enumerate(text):
        depth += (ch == "(") - (ch == ")")
        if ch == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _named_sizes(shape: ShapeLike) -> Shape | None:
    if shape is None:
        return None
    return _named(shape._dims if isinstance(shape, TensorShape) else _checked(shape))


def _named(sizes: Iterable[DimLike | None] | None) -> Shape | None:
    """Sizes with a symbol for each None: `d{axis}`, longer where that name is in use."""
    if sizes is None:
        return None
    sizes = list(sizes)
    used = dm.symbols_of([d for d in sizes if d is not None])
    return tuple([dm.symbol(_unused(f"d{i}", used)) if d is None else d for i, d in enumerate(sizes)])


def _unused(name: str, used: frozenset[str]) -> str:
    while name in used:
        name += "_"
    return name


def _spec_of(value: Any) -> TensorSpec:
    if isinstance(value, TensorSpec):
        return value
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return TensorSpec.from_tensor(value)
    array = as_numpy(value)
    if array.dtype == object:
        raise TypeError(f"{value!r} of type {type(value).__name__} is no tensor and no spec.")
    # Python's numbers, as `dtypes` reads them: float is float32 and int is int32.
    return TensorSpec(array.shape, dt.as_dtype(type(array.reshape(-1)[:1].tolist()[0])) if array.size else dt.float32)
