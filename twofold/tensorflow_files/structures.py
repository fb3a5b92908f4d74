"""Arguments and results of functions as files say them (`StructuredValue`): containers, specs, plain Python values."""

from __future__ import annotations

import inspect
from typing import Any

import twofold as tf
from twofold.ir.spec import TensorSpec
from twofold.saved_model.structure import record_type

from .messages import Message, zigzag
from .tensors import Room, array_of, dtype_of, shape_of

__all__ = ["Unreadable", "parameters_of", "value_of"]

_DEEP = 64  # containers within one another
_RAGGED, _SPARSE, _SLICES = 3, 1, 2  # classes of specs (TypeSpecProto)
_NAMES = ("args", "varargs", "varkw", "defaults", "kwonlyargs", "kwonlydefaults")


class Unreadable(ValueError):
    """A value of a kind that is not known here."""


def value_of(data: Any, room: Room, depth: int = 0) -> Any:
    """The value of a `StructuredValue`.

    Raises:
        Unreadable: it holds a spec or an object that is not known here. ValueError: it is not well formed.
    """
    if depth > _DEEP:
        raise ValueError(f"containers lie more than {_DEEP} deep within one another")
    message = Message(data)

    def inner(part: Any) -> Any:
        return value_of(part, room, depth + 1)
    if 51 in message:
        return [inner(v) for v in message.message(51).all(1)]
    if 52 in message:
        return tuple([inner(v) for v in message.message(52).all(1)])
    if 53 in message:
        return {name: inner(v) for name, v in message.message(53).map(1).items()}
    if 54 in message:
        return _record(message.message(54), inner)
    if 33 in message:
        return _spec(message.message(33))
    if 35 in message:
        return _spec(message.message(35))
    if 34 in message:
        return _composite(message.message(34), inner)
    return _plain(message, room)


def _plain(message: Message, room: Room) -> Any:
    if 11 in message:
        return message.double(11)
    if 12 in message:
        return zigzag(message.all(12)[-1])
    if 13 in message:
        return message.text(13)
    if 14 in message:
        return bool(message.number(14))
    if 31 in message:
        return shape_of(message.bytes(31))
    if 32 in message:
        return dtype_of(message.number(32))
    if 55 in message:
        return tf.constant(array_of(message.bytes(55), room))
    if 56 in message:
        return array_of(message.bytes(56), room)
    return None


def _spec(message: Message) -> TensorSpec:
    try:
        dtype = dtype_of(message.number(3))
    except ValueError as e:
        raise Unreadable(str(e)) from None
    return TensorSpec(shape_of(message.bytes(2)), dtype, message.text(1) or None)


def _record(message: Message, inner: Any) -> Any:
    pairs = [(pair.text(1), inner(pair.bytes(2))) for pair in message.messages(2)]
    names = [name for name, _ in pairs]
    return record_type(message.text(1), tuple(names))(*[value for _, value in pairs])


def _composite(message: Message, inner: Any) -> Any:
    kind = message.number(1)
    state = inner(message.bytes(2))
    if kind == _RAGGED and isinstance(state, tuple) and len(state) >= 4:
        return tf.RaggedTensorSpec(*state[:4])
    if kind == _SPARSE and isinstance(state, tuple) and len(state) == 2:
        return tf.SparseTensorSpec(*state)
    raise Unreadable(f"a spec of the class {message.text(3) or kind!r}")


def parameters_of(data: Any, room: Room) -> inspect.Signature | None:
    """The parameters of the Python function that a `FunctionSpec` describes; None where it says none."""
    message = Message(data)
    spec = value_of(message.bytes(1), room) if 1 in message else None
    if spec is None or not isinstance(spec, tuple) or not {*_NAMES} <= {*getattr(spec, "_fields", ())}:
        return None
    args, varargs, varkw, defaults, keywords, keyword_defaults = [getattr(spec, name) for name in _NAMES]
    args, defaults = list(args or ()), list(defaults or ())
    without = [inspect.Parameter.empty] * (len(args) - len(defaults))
    kinds = inspect.Parameter
    made = [kinds(n, kinds.POSITIONAL_OR_KEYWORD, default=d) for n, d in zip(args, [*without, *defaults], strict=True)]
    if message.number(2) and made:
        made = made[1:]
    made += [kinds(varargs, kinds.VAR_POSITIONAL)] if varargs else []
    made += [kinds(n, kinds.KEYWORD_ONLY, default=(keyword_defaults or {}).get(n, kinds.empty))
             for n in keywords or ()]
    made += [kinds(varkw, kinds.VAR_KEYWORD)] if varkw else []
    return inspect.Signature(made)
