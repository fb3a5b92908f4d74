"""Sparse tensors as strings: `tf.io.serialize_sparse` and its like.

Three strings, each a `TensorProto` (`_formats/tensor_proto.py`), are a sparse tensor: its indices, its values, and its
shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold import errors
from twofold._formats.tensor_proto import read, written
from twofold._front import iteration as engine
from twofold._front.api import one_int, public, tensor
from twofold._front.hosted import hosted
from twofold.ir import dtypes as dt
from twofold.ir.spec import TensorSpec

from .sparse_tensor import SparseTensor, sparse_of

__all__ = ["deserialize_many_sparse", "serialize_many_sparse", "serialize_sparse"]


def _texts_only(out_type: Any) -> None:
    if dt.as_dtype(out_type) is not dt.string:
        raise errors.UnimplementedError(None, "SerializeSparse", f"out_type must be tf.string; got {out_type!r}")


def _three(parts: list[np.ndarray]) -> list[bytes]:
    return [written(part, together=True) for part in parts]


def _strings(rows: list[Any], shape: list[int]) -> Any:
    array = np.empty(shape, object)
    array[:] = rows
    return engine.tensor_of(array)


@public
def serialize_sparse(sp_input: Any, out_type: Any = "string", name: str | None = None) -> Any:
    """A sparse tensor as three strings: its indices, its values, and its shape, each as TensorFlow writes tensors.

    Args:
        sp_input: a `tf.SparseTensor`.
        out_type: `tf.string`.
        name: accepted, without effect.
    Returns:
        A string vector of 3 elements.
    Raises:
        TypeError: the input is no sparse tensor. UnimplementedError: `out_type` is another dtype.

    >>> import twofold as tf
    >>> st = tf.SparseTensor([[0, 1], [2, 0]], [7, 8], [3, 2])
    >>> rows = tf.stack([tf.io.serialize_sparse(st)])
    >>> tf.sparse.to_dense(tf.io.deserialize_many_sparse(rows, tf.int32)).numpy().tolist()
    [[[0, 7], [0, 0], [8, 0]]]
    """
    _texts_only(out_type)
    st = sparse_of(sp_input)
    return sparse_parts(st.indices, st.values, st.dense_shape)


@hosted
def sparse_parts(indices: Any, values: Any, dense_shape: Any) -> Any:
    """The strings of `serialize_sparse`, for the tensors that a sparse one is made of."""
    def serialize(*parts: Any) -> list[Any]:
        return [_strings(_three([engine.array_of(part) for part in parts]), [3])]
    return engine.host_call(serialize, "SerializeSparse", [indices, values, dense_shape],
                            [TensorSpec([3], dt.string)])[0]


@public
def serialize_many_sparse(sp_input: Any, out_type: Any = "string", name: str | None = None) -> Any:
    """The entries of a sparse tensor along its first axis, each as three strings; see `serialize_sparse`.

    Args:
        sp_input: a `tf.SparseTensor` of at least 2 axes, with its elements in the order of its first axis.
        out_type: `tf.string`.
        name: accepted, without effect.
    Returns:
        Strings of shape `[entries, 3]`.
    Raises:
        TypeError: the input is no sparse tensor. InvalidArgumentError: it has one axis, or elements in another order or
            outside of its shape. UnimplementedError: `out_type` is another dtype.

    >>> import twofold as tf
    >>> tf.io.serialize_many_sparse(tf.SparseTensor([[0, 1], [2, 0]], [7, 8], [3, 2])).shape
    TensorShape([3, 3])
    """
    _texts_only(out_type)
    st = sparse_of(sp_input)
    return sparse_rows(st.indices, st.values, st.dense_shape, st.shape[0] if st.shape.rank else None)


@hosted
def sparse_rows(indices: Any, values: Any, dense_shape: Any, rows: int | None) -> Any:
    """The strings of `serialize_many_sparse`, for the tensors that a sparse one is made of.

    Args:
        indices, values, dense_shape: those.
        rows: how many entries there are, if that is known.
    """
    def serialize(*parts: Any) -> list[Any]:
        places, elements, shape = (engine.array_of(part) for part in parts)
        if len(shape) < 2:
            raise errors.InvalidArgumentError(None, "SerializeManySparse", "Rank of input SparseTensor should be > 1, "
                                              f"but saw rank: {len(shape)}")
        _check_places(places, shape)
        ends = np.searchsorted(places[:, 0], np.arange(shape[0] + 1))
        strings = [_three([places[first:last, 1:], elements[first:last], shape[1:]])
                   for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        return [_strings(strings, [int(shape[0]), 3])]
    return engine.host_call(serialize, "SerializeManySparse", [indices, values, dense_shape],
                            [TensorSpec([rows, 3], dt.string)])[0]


def _check_places(places: np.ndarray, shape: np.ndarray) -> None:
    outside = np.flatnonzero(((places < 0) | (places >= shape)).any(axis=1))
    if len(outside):
        at = int(outside[0])
        raise errors.InvalidArgumentError(None, "SerializeManySparse", f"indices[{at}] = {places[at].tolist()} is out "
                                          f"of bounds: need 0 <= index < {shape.tolist()}")
    falls = np.flatnonzero(np.diff(places[:, 0]) < 0)
    if len(falls):
        at = int(falls[0]) + 1
        raise errors.InvalidArgumentError(None, "SerializeManySparse", f"indices[{at}] = {places[at].tolist()} is out "
                                          "of order; tf.sparse.reorder sorts them.")


@public
def deserialize_many_sparse(serialized_sparse: Any, dtype: Any, rank: Any = None, name: str | None = None) -> Any:
    """The sparse tensor whose entries along the first axis are sparse tensors that strings hold.

    Args:
        serialized_sparse: strings of shape `[entries, 3]`, a row for each entry; see `serialize_sparse`.
        dtype: of the values.
        rank: how many axes the result has, which a function knows if it is given.
        name: accepted, without effect.
    Returns:
        A `tf.SparseTensor` with an axis more than the entries have, as large as the largest along each axis.
    Raises:
        InvalidArgumentError: there are no entries, bytes hold no sparse tensor, one has values of another dtype, or
            ranks differ. ValueError: the result has another rank.

    >>> import twofold as tf
    >>> one, other = tf.SparseTensor([[1]], ["a"], [2]), tf.SparseTensor([[3]], ["b"], [4])
    >>> both = tf.stack([tf.io.serialize_sparse(one), tf.io.serialize_sparse(other)])
    >>> tf.io.deserialize_many_sparse(both, tf.string).indices.numpy().tolist()
    [[0, 1], [1, 3]]
    """
    axes = None if rank is None else one_int(rank, "rank")
    indices, values, shape = sparse_of_rows(tensor(serialized_sparse, hint=dt.string), dt.as_dtype(dtype).name, axes)
    return SparseTensor(indices, values, shape)


@hosted
def sparse_of_rows(serialized: Any, dtype: str, axes: int | None) -> tuple[Any, ...]:
    """Indices, values and shape for `deserialize_many_sparse`.

    Args:
        serialized: strings.
        dtype: of the values.
        axes: of the result, if that is known.
    """
    wanted = dt.as_dtype(dtype)

    def parse(strings: Any) -> list[Any]:
        array = engine.array_of(strings)
        if array.dtype != object or array.ndim != 2 or array.shape[1] != 3 or not len(array):
            raise errors.InvalidArgumentError(None, "DeserializeManySparse", "Serialized sparse should be strings of "
                                              "shape [entries, 3], with at least one entry; got shape "
                                              f"{list(array.shape)}")
        entries = [_entry(n, row, wanted) for n, row in enumerate(array.tolist())]
        ranks = [len(shape) for _, _, shape in entries]
        if len(set(ranks)) > 1:
            raise errors.InvalidArgumentError(None, "DeserializeManySparse", "Inconsistent shape across SparseTensors: "
                                              f"the ranks are {ranks}")
        if axes is not None and axes != ranks[0] + 1:
            raise ValueError(f"rank is {axes}, but the sparse tensors are the entries of one with rank {ranks[0] + 1}")
        places = [np.insert(indices, 0, n, axis=1) for n, (indices, _, _) in enumerate(entries)]
        largest = np.max([shape for _, _, shape in entries], axis=0)
        parts = np.concatenate(places), np.concatenate([v for _, v, _ in entries]), np.array([len(array), *largest])
        return [engine.tensor_of(part) for part in parts]
    results = [TensorSpec([None, axes], dt.int64), TensorSpec([None], wanted), TensorSpec([axes], dt.int64)]
    return tuple(engine.host_call(parse, "DeserializeManySparse", [serialized], results))


def _entry(n: int, row: list[bytes], dtype: dt.DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices, values and shape of an entry."""
    indices, values, shape = read(row[0], dt.int64), read(row[1], dtype), read(row[2], dt.int64)
    if shape.ndim != 1 or values.ndim != 1 or indices.shape != (len(values), len(shape)):
        raise errors.InvalidArgumentError(None, "DeserializeManySparse", f"SparseTensor[{n}] has indices of shape "
                                          f"{list(indices.shape)}, values of shape {list(values.shape)} and a shape of "
                                          f"shape {list(shape.shape)}")
    return indices, values, shape
