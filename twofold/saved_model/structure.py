"""How saved models spell nested structures and Python values in JSON, and the way back.

The kinds of values are closed: containers, specs of tensors, and plain Python values. Nothing is imported by name: a
namedtuple, dataclass or attrs object comes back as a namedtuple of the same name and fields. What a value means to
the object graph (a variable among the arguments) is for whoever calls.

    none, bool, int, text   as JSON has them
    {"float": 0.5}          also "nan", "inf", "-inf"
    {"tensor": "f32[n,3]"}  a spec, with "name" where it has one; "f32[*]" for an unknown rank
    {"list": [...]}  {"tuple": [...]}  {"dict": [[key, value], ...]}  {"ordered": [[key, value], ...]}
    {"record": "Point", "fields": ["x", "y"], "values": [...]}
    {"bytes": base64}  {"complex": [re, im]}  {"dtype": "float32"}  {"shape": [2, null]}  {"slice": [...]}
    {"range": [start, stop, step]}  {"ellipsis": true}  {"node": 3} for an object of the graph
"""

from __future__ import annotations

import base64
import collections
import functools
import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import nest
from twofold.ir.dtypes import DType
from twofold.ir.spec import TensorShape, TensorSpec, parse_short
from twofold.ir.type_spec import Parts, TypeSpec, named_spec, registered_name
from twofold.tracer.signature import ObjectReference

__all__ = ["encode", "decode", "NotPlainError", "record_type"]

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DEEPEST = 64
_DIM_TEXT = 500  # characters of a size


class NotPlainError(TypeError):
    """A value that files cannot hold."""


def encode(value: Any, node_of: Callable[[Any], int | None] = lambda value: None) -> Any:
    """`value` as JSON.

    Args:
        value: a structure.
        node_of: the number of an object in the object graph; None for what is not there.
    Raises:
        NotPlainError: it holds an object that is no plain value.

    >>> encode({"a": (1.5, None)})
    {'dict': [['a', {'tuple': [{'float': 1.5}, None]}]]}
    """
    if isinstance(value, ObjectReference):
        value = value()
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, TensorSpec):
        return {"tensor": value.short(), **({} if value.name is None else {"name": value.name})}
    if nest.is_composite(value):
        return _composite(value, functools.partial(encode, node_of=node_of))
    if nest.is_nested(value) and not isinstance(value, TensorShape):
        return _container(value, functools.partial(encode, node_of=node_of))
    return _plain(value, node_of)


def _composite(value: Any, part: Callable[[Any], Any]) -> Any:
    """The spec of a composite value, by the name that its class is registered under; and the specs of its tensors,
    where these know more sizes."""
    spec: TypeSpec = value.__composite_spec__
    name = registered_name(type(spec))
    if name is None:
        raise NotPlainError(f"the spec {spec!r}, whose class has no name for files: a class of the user's has one by "
                            "an attribute `__name__`, such as 'package.Class',")
    more = {"parts": part(value[1])} if isinstance(value, Parts) else {}
    return {"spec": name, "of": [part(v) for v in spec._serialize()], **more}


def _container(value: Any, part: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        kind = "ordered" if isinstance(value, collections.OrderedDict) else "dict"
        return {kind: [[part(k), part(v)] for k, v in value.items()]}
    fields = nest._fields(value) if nest._is_record(value) else getattr(value, "_fields", None)
    parts = [part(v) for v in nest.children(value)]
    if fields is not None:
        return {"record": type(value).__name__, "fields": list(fields), "values": parts}
    return {"list" if isinstance(value, list) else "tuple": parts}


def _plain(value: Any, node_of: Callable[[Any], int | None]) -> Any:
    kind = type(value)
    if kind is float:
        return {"float": value if math.isfinite(value) else str(value)}
    if kind is complex:
        return {"complex": [_plain(value.real, node_of), _plain(value.imag, node_of)]}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, TensorShape):
        return {"shape": None if value.rank is None else value.as_list()}
    if value is Ellipsis:
        return {"ellipsis": True}
    if kind in (slice, range):
        return {kind.__name__: [encode(v) for v in (value.start, value.stop, value.step)]}
    number = node_of(value)
    if number is None:
        raise NotPlainError(f"{kind.__name__} {value!r}")
    return {"node": number}


def decode(data: Any, node: Callable[[int], Any] | None = None, depth: int = 0) -> Any:
    """The value that `encode` spelt as `data`.

    Args:
        data: parsed JSON.
        node: the object of a number in the object graph.
    Raises:
        ValueError: `data` spells no value.

    >>> decode({"dict": [["a", {"tuple": [{"float": 1.5}, None]}]]})
    {'a': (1.5, None)}
    """
    if depth > _DEEPEST:
        raise ValueError(f"a structure is nested more than {_DEEPEST} deep")
    if data is None or type(data) in (bool, int, str):
        return data
    if type(data) is not dict or not data:
        raise ValueError(f"{_short(data)} spells no value")
    kind = next(iter(data))
    if kind == "node":
        if node is None:
            raise ValueError("no object of the graph is expected here")
        return node(_typed(data["node"], int))
    if kind not in _READERS:
        raise ValueError(f"{_short(kind)} is no kind of value")
    return _READERS[kind](data, functools.partial(decode, node=node, depth=depth + 1))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{_short(value)} is found where {kind.__name__} is expected")
    return value


def _float(value: Any) -> float:
    if type(value) is str and value in _SPECIAL:
        return _SPECIAL[value]
    return float(_typed(value, float))


def _tensor(data: dict[str, Any]) -> TensorSpec:
    text, name = _typed(data["tensor"], str), data.get("name")
    if len(text) > 20 * _DIM_TEXT:
        raise ValueError("a shape is too long")
    parsed = parse_short(text)
    return TensorSpec(parsed.dims, parsed.dtype, None if name is None else _typed(name, str))


def _spec(data: dict[str, Any], part: Callable[[Any], Any]) -> Any:
    name = _typed(data["spec"], str)
    if named_spec(name) is None and name.startswith("tf."):
        for module in ("ragged", "sparse"):
            importlib.import_module(f"twofold.{module}")
    cls = named_spec(name)
    if cls is None:
        raise ValueError(f"no class of specs is registered as {_short(name)}: import the module that declares it")
    try:
        spec = cls._deserialize(tuple([part(v) for v in _typed(data["of"], list)]))
        if "parts" not in data:
            return spec
        parts = part(data["parts"])
        nest.assert_same_structure(spec._component_specs, parts)
        return Parts(spec, parts)
    except (TypeError, AttributeError) as e:
        raise ValueError(f"the spec {_short(name)} cannot be made: {e}") from None


def _mapping(pairs: Any, part: Callable[[Any], Any], kind: type) -> Any:
    mapping = kind()
    for pair in _typed(pairs, list):
        key, value = _typed(pair, list)
        key = part(key)
        if nest.is_nested(key) or isinstance(key, (TensorSpec, slice)) or key in mapping:
            raise ValueError(f"{_short(key)} is no key, or there twice")
        mapping[key] = part(value)
    return mapping


def _record(data: dict[str, Any], part: Callable[[Any], Any]) -> Any:
    fields = tuple([_typed(f, str) for f in _typed(data["fields"], list)])
    values = [part(v) for v in _typed(data["values"], list)]
    if len(fields) != len(values):
        raise ValueError("a record has as many values as fields")
    return record_type(_typed(data["record"], str), fields)(*values)


@functools.lru_cache(maxsize=256)
def record_type(name: str, fields: tuple[str, ...]) -> type:
    """The namedtuple of this name and these fields; the same one each time.

    Raises:
        ValueError: they are no names.
    """
    if len(name) > 200 or len(fields) > 10_000 or any(len(f) > 200 for f in fields):
        raise ValueError("a record's names are too long or too many")
    return collections.namedtuple(name, fields)


def _dtype(name: Any) -> DType:
    try:
        return dt.as_dtype(_typed(name, str))
    except TypeError as e:
        raise ValueError(str(e)) from None


def _shape(sizes: Any) -> TensorShape:
    if sizes is None:
        return TensorShape(None)
    return TensorShape([None if s is None else dm.as_dim(_typed(s, int)) for s in _typed(sizes, list)])


def _three(kind: type, data: Any, part: Callable[[Any], Any]) -> Any:
    if len(_typed(data, list)) != 3:
        raise ValueError(f"a {kind.__name__} has three parts")
    return kind(*[part(v) for v in data])


_READERS: dict[str, Callable[[dict[str, Any], Callable[[Any], Any]], Any]] = {
    "float": lambda data, part: _float(data["float"]),
    "tensor": lambda data, part: _tensor(data),
    "list": lambda data, part: [part(v) for v in _typed(data["list"], list)],
    "tuple": lambda data, part: tuple([part(v) for v in _typed(data["tuple"], list)]),
    "dict": lambda data, part: _mapping(data["dict"], part, dict),
    "ordered": lambda data, part: _mapping(data["ordered"], part, collections.OrderedDict),
    "record": _record,
    "spec": _spec,
    "bytes": lambda data, part: base64.b64decode(_typed(data["bytes"], str), validate=True),
    "complex": lambda data, part: complex(*[_float(part(v)) for v in _typed(data["complex"], list)]),
    "dtype": lambda data, part: _dtype(data["dtype"]),
    "shape": lambda data, part: _shape(data["shape"]),
    "slice": lambda data, part: _three(slice, data["slice"], part),
    "range": lambda data, part: _three(range, data["range"], part),
    "ellipsis": lambda data, part: Ellipsis,
}
