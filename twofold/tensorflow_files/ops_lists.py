"""Lists of tensors: what loops collect, and what they go over."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf

from .lists import TensorList
from .table import Call, op, tensor

__all__: list[str] = []


def _shape(given: Any) -> tf.TensorShape:
    """The shape of items that a node says: numbers, -1 for what is open, or the scalar -1."""
    if not isinstance(given, np.ndarray):
        return tf.TensorShape([None] * given.shape[0]) if given.shape.rank == 1 else tf.TensorShape(None)
    return tf.TensorShape([None if n < 0 else n for n in given.tolist()]) if given.ndim else tf.TensorShape(None)


def _size(given: Any) -> Any:
    return int(given.item()) if isinstance(given, np.ndarray) else tf.reshape(given, ())



@op("TensorListReserve")
def _reserve(call: Call, element_shape: Any, num_elements: Any) -> list[Any]:
    shape, dtype = _shape(element_shape), call.dtype("element_dtype")
    array = tf.TensorArray(dtype, size=_size(num_elements), dynamic_size=call.runner.resizes(), element_shape=shape)
    return [TensorList(array, dtype=dtype, shape=shape)]


@op("EmptyTensorList")
def _empty(call: Call, element_shape: Any, max_num_elements: Any) -> list[Any]:
    shape, dtype = _shape(element_shape), call.dtype("element_dtype")
    array = tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)
    return [TensorList(array, dtype=dtype, shape=shape)]


@op("TensorListFromTensor")
def _from_tensor(call: Call, tensor: Any, element_shape: Any) -> list[Any]:
    items = tf.convert_to_tensor(tensor)
    shape = tf.TensorShape(items.shape[1:])
    array = tf.TensorArray(items.dtype, size=items.dims[0] if isinstance(items.dims[0], int) else tf.shape(items)[0],
                           element_shape=shape)
    return [TensorList(array.unstack(items), dtype=items.dtype, shape=shape)]


@op("TensorListGetItem")
def _get(call: Call, input_handle: TensorList, index: Any, element_shape: Any) -> list[Any]:
    return [input_handle.array.read(_size(index))]


@op("TensorListSetItem")
def _set(call: Call, input_handle: TensorList, index: Any, item: Any) -> list[Any]:
    return [TensorList(input_handle.array.write(_size(index), tensor(item)), input_handle)]


@op("TensorListPushBack")
def _push(call: Call, input_handle: TensorList, tensor: Any) -> list[Any]:
    array = input_handle.array
    return [TensorList(array.write(array.size(), tf.convert_to_tensor(tensor)), input_handle)]


@op("TensorListStack")
def _stack(call: Call, input_handle: TensorList, element_shape: Any) -> list[Any]:
    return [input_handle.array.stack()]


@op("TensorListGather")
def _gather(call: Call, input_handle: TensorList, indices: Any, element_shape: Any) -> list[Any]:
    return [input_handle.array.gather(tensor(indices))]


@op("TensorListLength")
def _length(call: Call, input_handle: TensorList) -> list[Any]:
    return [input_handle.array.size()]


@op("TensorListElementShape")
def _element_shape(call: Call, input_handle: TensorList) -> list[Any]:
    shape = input_handle.shape
    sizes = -1 if shape.rank is None else [-1 if n is None else n for n in shape.as_list()]
    return [np.array(sizes, call.dtype("shape_type").np)]


@op("TensorListPopBack", outputs=("output_handle", "tensor"))
def _pop(call: Call, input_handle: TensorList, element_shape: Any) -> list[Any]:
    rest, item = input_handle.array._popped()
    return [TensorList(rest, input_handle), item]
