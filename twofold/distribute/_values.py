"""Values that differ from replica to replica, and how they become one.

A value of a strategy with one replica in this process is that replica's. Several come as a `PerReplica`, or as
`MirroredValues` where all are the same.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import twofold as tf
from twofold.ir import nest
from twofold.ir.type_spec import CompositeTensor, TypeSpec

from ._context import _here, _place

__all__ = ["CrossDeviceOps", "DistributedValues", "HierarchicalCopyAllReduce", "Mirrored", "MirroredValues",
           "NcclAllReduce", "PerReplica", "PerReplicaSpec", "ReduceOp", "ReductionToOneDevice", "container_of",
           "local", "own_number", "part", "regroup"]


class ReduceOp(enum.Enum):
    """How values of replicas become one: their sum, or their mean.

    >>> import twofold as tf
    >>> tf.distribute.ReduceOp("MEAN")
    <ReduceOp.MEAN: 'MEAN'>
    """

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: Any) -> ReduceOp:
        """The reduction that a `tf.VariableAggregation` asks for.

        Raises:
            ValueError: it asks for none.
        """
        known = {tf.VariableAggregation.SUM: ReduceOp.SUM, tf.VariableAggregation.MEAN: ReduceOp.MEAN}
        if aggregation not in known:
            raise ValueError(f"Could not convert from `tf.VariableAggregation` {aggregation} to "
                             "`tf.distribute.ReduceOp`.")
        return known[aggregation]


class CrossDeviceOps:
    """How replicas of a process exchange values, for `MirroredStrategy`; all ways are one here."""


class ReductionToOneDevice(CrossDeviceOps):
    """Accepted, without effect: sums are taken in the order of the replicas in any case.

    Args:
        reduce_to_device, accumulation_fn: without effect.
    """

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None) -> None:
        del reduce_to_device, accumulation_fn


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Accepted, without effect: sums are taken in the order of the replicas in any case.

    Args:
        num_packs: without effect.
    """

    def __init__(self, num_packs: int = 1) -> None:
        del num_packs


class NcclAllReduce(HierarchicalCopyAllReduce):
    """Accepted, without effect: sums are taken in the order of the replicas in any case."""


class DistributedValues:
    """The base of values that have a part for each replica of this process, of variables too."""

    __slots__ = ()

    _values: tuple[Any, ...]

    @property
    def values(self) -> tuple[Any, ...]:
        """The replicas' values in order."""
        return self._values


class _Held(DistributedValues):
    """Values of replicas that are no variable.

    Args:
        values: in the order of the replicas.
    """

    _name = "PerReplica"

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = tuple(values)

    def __trace_parts__(self) -> tuple[Any, ...]:
        return self._values  # which traced functions take and give as tensors

    def __repr__(self) -> str:
        lines = ",\n".join(f"  {n}: {value!r}" for n, value in enumerate(self._values))
        return f"{self._name}:{{\n{lines}\n}}"


class PerReplica(_Held):
    """A value for each replica of this process. Within a replica it converts to a tensor, that of the replica.

    Args:
        values: in the order of the replicas.
    """

    @property
    def _type_spec(self) -> PerReplicaSpec:
        return PerReplicaSpec(*[tf.type_spec_from_value(value) for value in self._values])

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        """The tensor of the replica that this runs in.

        Raises:
            ValueError: it runs in none.
        """
        replica = _here().replica
        if replica is None or replica.strategy._is_default:
            raise ValueError("It looks like you are using a PerReplica object while not inside a replica context, "
                             "which is not supported. Try running your op or function inside a replica context by "
                             "using `strategy.run`")
        return tf.convert_to_tensor(self._values[replica._number], dtype)


CompositeTensor.register(PerReplica)  # to `isinstance`, by which libraries tell it from variables


class PerReplicaSpec(TypeSpec):
    """The spec of a `PerReplica`.

    Args:
        value_specs: those of the replicas' values.
    """

    __slots__ = ("_value_specs",)

    def __init__(self, *value_specs: Any) -> None:
        self._value_specs = value_specs

    @property
    def value_type(self) -> type:
        """`PerReplica`."""
        return PerReplica

    def _serialize(self) -> tuple[Any, ...]:
        return self._value_specs

    @property
    def _component_specs(self) -> Any:
        return self._value_specs

    def _to_components(self, value: Any) -> Any:
        return value.values

    def _from_components(self, components: Any) -> Any:
        return PerReplica(components)

    def __repr__(self) -> str:
        return f"PerReplicaSpec({', '.join(map(repr, self._value_specs))})"


class Mirrored(DistributedValues):
    """The base of values that are the same in all replicas: variables that assignments keep equal, and what is reduced
    for several devices."""

    __slots__ = ()


class MirroredValues(_Held, Mirrored):
    """A value that is the same in all replicas; where a tensor is taken it is that of the replica, or of the device
    that a variable is updated on, and the first one elsewhere.

    Args:
        values: in the order of the replicas.
    """

    _name = "Mirrored"

    def _own(self) -> Any:
        return self._values[own_number() or 0]

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        """The replica's tensor."""
        return tf.convert_to_tensor(self._own(), dtype)

    def __getattr__(self, name: str) -> Any:
        if name == "_values":  # of an object that is being made
            raise AttributeError(name)
        return getattr(self._own(), name)


def _delegated(name: str) -> Any:
    def call(self: MirroredValues, *args: Any) -> Any:
        return getattr(self._own(), name)(*args)
    return call


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(MirroredValues, _method, _delegated(_method))
for _name in ("lt", "le", "gt", "ge", "getitem", "invert", "neg", "abs", "float", "int", "bool", "array"):
    setattr(MirroredValues, f"__{_name}__", _delegated(f"__{_name}__"))


def own_number() -> int | None:
    """The number, among those of this process, of the replica that this runs in, or on whose device a variable is
    updated; None where there is none."""
    place = _place.get()
    if place is None or place.strategy._is_default:
        return None
    return place.update if place.replica is None else int(place.replica._number)


def part(value: Any, number: int) -> Any:
    """A replica's part of a structure. Variables stay: they are their own copies in replicas."""
    def own(leaf: Any) -> Any:
        return leaf.values[number] if isinstance(leaf, _Held) else leaf
    return nest.map_structure(own, value, expand_composites=False)


def local(value: Any, number: int) -> Any:
    """What a replica has of a structure, of variables its copies."""
    def own(leaf: Any) -> Any:
        return leaf.values[number] if isinstance(leaf, DistributedValues) else leaf
    return nest.map_structure(own, value, expand_composites=False)


def regroup(values: Sequence[Any], wrap: Callable[[Sequence[Any]], Any] = PerReplica) -> Any:
    """Structures of replicas as one of the values of all: an object that all have stays what it is.

    Args:
        values: in the order of the replicas.
        wrap: makes one value of theirs.
    Raises:
        ValueError: their structures differ.
    """
    first = values[0]
    if isinstance(first, (list, tuple, Mapping)):
        _check_alike(values)
        if isinstance(first, Mapping):
            return nest.rebuilt(first, [regroup([value[key] for value in values], wrap)
                                        for key in nest.keys_of(first)])
        return nest.rebuilt(first, [regroup(parts, wrap) for parts in zip(*values, strict=True)])
    container = container_of(first)
    if container is not None:
        return container
    if all(value is first for value in values):
        return first
    return wrap(values)


def container_of(value: Any) -> Any:
    """The variable of which a value is a replica's copy; None where it is no copy."""
    container = getattr(value, "_distributed_container", None)
    return None if container is None else container()


def _check_alike(values: Sequence[Any]) -> None:
    first = values[0]
    for value in values[1:]:
        if type(value) is not type(first) or len(value) != len(first) or (
                isinstance(first, Mapping) and set(value) != set(first)):
            raise ValueError(f"Replicas must give values of one structure; got {first!r} and {value!r}.")
