"""The definitions that ONNX's standard gives for ops that are made of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .import_graph import Body, Node, Reader, domain_of
from .import_tensors import ExternalData, Room
from .import_values import Value, dims_of, dtype_of
from .package import onnx_package
from .types import ELEMENT_TYPES

__all__ = ["body_of", "defines"]


def _schema(node: Node) -> Any:
    onnx = onnx_package()
    try:
        return onnx.defs.get_schema(node.op, node.version, node.domain)
    except onnx.defs.SchemaError:
        return None


def defines(node: Node) -> bool:
    """Whether the standard defines the op of a node by others."""
    schema = _schema(node)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def body_of(node: Node, attrs: Mapping[str, Any], inputs: Sequence[Value]) -> Body:
    """The definition of the op of a node for these inputs.

    Raises:
        ValueError: there is none.
    """
    schema = _schema(node)
    if schema is None or not (schema.has_function or schema.has_context_dependent_function):
        raise ValueError(f"{node} is not supported")
    onnx = onnx_package()
    defaults = {name: onnx.helper.get_attribute_value(a.default_value) for name, a in schema.attributes.items()
                if a.default_value.name}
    return _read(schema, _definition(schema, node, attrs, inputs), defaults)


def _definition(schema: Any, node: Node, attrs: Mapping[str, Any], inputs: Sequence[Value]) -> Any:
    onnx = onnx_package()
    proto = onnx.FunctionProto()
    if schema.has_function:
        version = _fitting(schema.function_opset_versions, node.version)
        proto.ParseFromString(schema.get_function_with_opset_version(version))
    else:
        types = [_type(onnx, v).SerializeToString() for v in inputs]
        version = _fitting(schema.context_dependent_function_opset_versions, node.version)
        proto.ParseFromString(schema.get_context_dependent_function_with_opset_version(
            version, _with_own(onnx, node, attrs).SerializeToString(), types))
    if not proto.node:
        raise ValueError(f"{node}: the standard has no definition for these inputs")
    return proto


def _with_own(onnx: Any, node: Node, attrs: Mapping[str, Any]) -> Any:
    """The message of a node, in which attributes of the function around it have their values."""
    proto = onnx.NodeProto.FromString(node.written)
    for name in node.refs:
        place = next(i for i, a in enumerate(proto.attribute) if a.name == name)
        del proto.attribute[place]
        if name in attrs:
            proto.attribute.append(onnx.helper.make_attribute(name, attrs[name]))
    return proto


def _fitting(versions: Sequence[int], asked: int) -> int:
    return max([v for v in versions if v <= asked], default=versions[0])


def _type(onnx: Any, value: Value) -> Any:
    made = onnx.TypeProto()
    if value is None:
        return made
    made.tensor_type.elem_type = ELEMENT_TYPES[dtype_of(value)]
    made.tensor_type.shape.SetInParent()
    for d in dims_of(value):
        size = made.tensor_type.shape.dim.add()
        if isinstance(d, int):
            size.dim_value = d
    return made


def _read(schema: Any, proto: Any, defaults: Mapping[str, Any]) -> Body:
    versions = {domain_of(o.domain): o.version for o in proto.opset_import} or {"": schema.since_version}
    body = Reader(versions, ExternalData(None), Room(0)).function(proto, whole=False)
    body.defaults = {**{k: v.decode() if isinstance(v, bytes) else v for k, v in defaults.items()}, **body.defaults}
    return body
