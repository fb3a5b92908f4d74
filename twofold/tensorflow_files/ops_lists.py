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


@op("TensorListResize")
def _resize(call: Call, input_handle: TensorList, size: Any) -> list[Any]:
    """More items, all zeros, or fewer."""
    items = input_handle.array.stack()
    count, before = tensor(_size(size)), tf.shape(items)[0]
    padding = tf.concat([[[0, tf.maximum(count - before, 0)]], tf.zeros([items.shape.rank - 1, 2], tf.int32)], 0)
    return [_list_of(tf.pad(items, padding)[:count], input_handle)]


def _list_of(items: Any, like: TensorList | None = None) -> TensorList:
    """The rows of a tensor as a list."""
    shape = tf.TensorShape(items.shape[1:])
    array = tf.TensorArray(items.dtype, size=tf.shape(items)[0], element_shape=shape)
    return TensorList(array.unstack(items), like, items.dtype, shape)


@op("TensorListScatterIntoExistingList")
def _scatter_into(call: Call, input_handle: TensorList, tensor: Any, indices: Any) -> list[Any]:
    return [TensorList(input_handle.array.scatter(indices, tf.convert_to_tensor(tensor)), input_handle)]


@op("TensorListScatterV2", "TensorListScatter")
def _scatter(call: Call, tensor: Any, indices: Any, element_shape: Any, num_elements: Any = -1) -> list[Any]:
    items, places = tf.convert_to_tensor(tensor), tf.convert_to_tensor(indices)
    count = tf.reduce_max(places) + 1 if np.all(num_elements == -1) else _size(num_elements)
    array = tf.TensorArray(items.dtype, size=count, element_shape=items.shape[1:])
    return [TensorList(array.scatter(places, items), dtype=items.dtype, shape=tf.TensorShape(items.shape[1:]))]


@op("TensorListConcatV2", outputs=("tensor", "lengths"))
def _concat(call: Call, input_handle: TensorList, element_shape: Any, leading_dims: Any) -> list[Any]:
    return _joined(input_handle)


@op("TensorListConcat", outputs=("tensor", "lengths"))
def _concat_of_known(call: Call, input_handle: TensorList) -> list[Any]:
    return _joined(input_handle)


def _joined(items: TensorList) -> list[Any]:
    """The items along their first axis, and the size of each along it, which is the same for all."""
    stacked = items.array.stack()
    sizes = tf.shape(stacked, tf.int64)
    return [tf.reshape(stacked, tf.concat([[-1], sizes[2:]], 0)), tf.fill(sizes[:1], sizes[1])]


@op("TensorListSplit")
def _split(call: Call, tensor: Any, element_shape: Any, lengths: Any) -> list[Any]:
    return [_list_of(_parts(tensor, lengths))]


def _parts(whole: Any, lengths: Any) -> Any:
    """The parts of a tensor, stacked.

    Raises:
        ValueError: their lengths are not known, or not all the same.
    """
    known = np.unique(lengths).tolist() if isinstance(lengths, np.ndarray) else []
    if len(known) != 1:
        raise ValueError("the parts of a list must have one known length here")
    items = tensor(whole)
    return tf.reshape(items, tf.concat([[-1, known[0]], tf.shape(items)[1:]], 0))


# -- arrays of TensorFlow 1 ---------------------------------------------------------------------------
# The handle says what an array is. What is written goes along as the flow: both are lists.
@op("TensorArrayV3", outputs=("handle", "flow"))
def _array(call: Call, size: Any) -> list[Any]:
    shape, dtype = call.attr("element_shape") or tf.TensorShape(None), call.dtype("dtype")
    array = tf.TensorArray(dtype, size=_size(size), dynamic_size=call.attr("dynamic_size", False),
                           element_shape=shape)
    return [TensorList(array, dtype=dtype, shape=shape)] * 2


@op("TensorArrayWriteV3")
def _array_write(call: Call, handle: TensorList, index: Any, value: Any, flow_in: TensorList) -> list[Any]:
    return [TensorList(flow_in.array.write(_size(index), tensor(value)), flow_in)]


@op("TensorArrayReadV3")
def _array_read(call: Call, handle: TensorList, index: Any, flow_in: TensorList) -> list[Any]:
    return [flow_in.array.read(_size(index))]


@op("TensorArrayGatherV3")
def _array_gather(call: Call, handle: TensorList, indices: Any, flow_in: TensorList) -> list[Any]:
    return [flow_in.array.gather(tensor(indices))]


@op("TensorArrayScatterV3")
def _array_scatter(call: Call, handle: TensorList, indices: Any, value: Any, flow_in: TensorList) -> list[Any]:
    return [TensorList(flow_in.array.scatter(indices, tensor(value)), flow_in)]


@op("TensorArraySizeV3")
def _array_size(call: Call, handle: TensorList, flow_in: TensorList) -> list[Any]:
    return [flow_in.array.size()]


@op("TensorArrayConcatV3", outputs=("value", "lengths"))
def _array_concat(call: Call, handle: TensorList, flow_in: TensorList) -> list[Any]:
    return _joined(flow_in)


@op("TensorArraySplitV3")
def _array_split(call: Call, handle: TensorList, value: Any, lengths: Any, flow_in: TensorList) -> list[Any]:
    return [TensorList(flow_in.array.unstack(_parts(value, lengths)), flow_in)]


@op("TensorArrayCloseV3")
def _array_close(call: Call, handle: TensorList) -> list[Any]:
    return []
