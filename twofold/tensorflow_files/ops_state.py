"""Variables: reading, assigning, and parts of them. The steps of optimizers are raw ops (`_raw/training.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf
from twofold.eager.variable import Variable

from .table import Call, op, tensor

__all__: list[str] = []


def _variable(value: Any) -> Variable:
    if not isinstance(value, Variable):
        raise ValueError("what it is to read or assign is no variable")
    return value


@op("ReadVariableOp")
def _read(call: Call, resource: Any) -> list[Any]:
    return [_variable(resource).read_value()]


@op("AssignVariableOp")
def _assign(call: Call, resource: Any, value: Any) -> list[Any]:
    _variable(resource).assign(tensor(value))
    return []


@op("AssignAddVariableOp", "AssignSubVariableOp")
def _add(call: Call, resource: Any, value: Any) -> list[Any]:
    variable = _variable(resource)
    (variable.assign_add if call.node.op == "AssignAddVariableOp" else variable.assign_sub)(tensor(value))
    return []


@op("Assign", "AssignAdd", "AssignSub")
def _assign_reference(call: Call, ref: Any, value: Any) -> list[Any]:
    """Assigns a variable of TensorFlow 1, and gives it on, to be read by what comes after."""
    variable = _variable(ref)
    getattr(variable, {"Assign": "assign", "AssignAdd": "assign_add", "AssignSub": "assign_sub"}[call.node.op])(
        tensor(value))
    return [variable]


@op("VarIsInitializedOp")
def _is_there(call: Call, resource: Any) -> list[Any]:
    return [np.array(True)]


@op("IsVariableInitialized")
def _ref_is_there(call: Call, ref: Any) -> list[Any]:
    return [np.array(True)]


@op("VariableShape")
def _shape(call: Call, input: Any) -> list[Any]:
    return [tf.shape(_variable(input), out_type=call.attr("out_type"))]


@op("DestroyResourceOp")
def _destroy(call: Call, resource: Any) -> list[Any]:
    return []


@op("ResourceGather")
def _gather(call: Call, resource: Any, indices: Any) -> list[Any]:
    return [tf.gather(_variable(resource), tensor(indices), batch_dims=call.attr("batch_dims", 0))]


@op("ResourceGatherNd")
def _gather_nd(call: Call, resource: Any, indices: Any) -> list[Any]:
    return [tf.gather_nd(_variable(resource), tensor(indices))]


_SCATTERS = {"ResourceScatterAdd": "scatter_add", "ResourceScatterSub": "scatter_sub",
             "ResourceScatterUpdate": "scatter_update", "ResourceScatterMax": "scatter_max",
             "ResourceScatterMin": "scatter_min", "ResourceScatterMul": "scatter_mul",
             "ResourceScatterDiv": "scatter_div"}


@op(*_SCATTERS)
def _scatter(call: Call, resource: Any, indices: Any, updates: Any) -> list[Any]:
    rows = tf.IndexedSlices(tensor(updates), tensor(indices))
    getattr(_variable(resource), _SCATTERS[call.node.op])(rows)
    return []


@op(*[name.removeprefix("Resource") for name in _SCATTERS])
def _scatter_reference(call: Call, ref: Any, indices: Any, updates: Any) -> list[Any]:
    rows = tf.IndexedSlices(tensor(updates), tensor(indices))
    getattr(_variable(ref), _SCATTERS[f"Resource{call.node.op}"])(rows)
    return [ref]


_PLACES = {"ResourceScatterNdAdd": "scatter_nd_add", "ResourceScatterNdSub": "scatter_nd_sub",
           "ResourceScatterNdUpdate": "scatter_nd_update", "ResourceScatterNdMax": "scatter_nd_max",
           "ResourceScatterNdMin": "scatter_nd_min"}


@op(*_PLACES)
def _scatter_nd(call: Call, ref: Any, indices: Any, updates: Any) -> list[Any]:
    getattr(_variable(ref), _PLACES[call.node.op])(tensor(indices), tensor(updates))
    return []


@op(*[name.removeprefix("Resource") for name in _PLACES])
def _scatter_nd_reference(call: Call, ref: Any, indices: Any, updates: Any) -> list[Any]:
    getattr(_variable(ref), _PLACES[f"Resource{call.node.op}"])(tensor(indices), tensor(updates))
    return [ref]


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@op("ResourceStridedSliceAssign", "StridedSliceAssign")
def _assign_slice(call: Call, ref: Any, begin: Any, end: Any, strides: Any, value: Any) -> list[Any]:
    variable, masks = _variable(ref), {name: call.attr(name, 0) for name in _MASKS}
    variable.assign(tf.raw_ops.TensorStridedSliceUpdate(input=variable.read_value(), begin=begin, end=end,
                                                        strides=strides, value=tensor(value), **masks))
    return [] if call.node.op.startswith("Resource") else [variable]
