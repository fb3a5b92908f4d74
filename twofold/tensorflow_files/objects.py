"""The object graph of a file as plain data: what each object is, and what its attributes lead to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .messages import Message, numbers

__all__ = ["SavedConcrete", "SavedObject", "objects_of"]

_KINDS = {4: "object", 5: "asset", 6: "function", 7: "variable", 8: "bare", 9: "constant", 10: "resource",
          12: "captured"}


@dataclass(eq=False, slots=True)
class SavedObject:
    """An object.

    Attributes:
        kind: "object", "asset", "function", "variable", "bare" (a function of one signature), "constant", "resource",
            "captured" (a tensor inside of a function), or "" for what is not known here.
        children: numbers of objects by name.
        about: the message of its kind.
        slots: for each variable that it keeps for another one: the number of that one, a name, and its own number.
    """

    kind: str
    children: dict[str, int]
    about: Message
    slots: list[tuple[int, str, int]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class SavedConcrete:
    """A function for one signature: what of it depends on the object graph.

    Attributes:
        bound: the objects that its arguments after those of a call are.
        form, result: the messages of its arguments and its result.
    """

    bound: list[int]
    form: Any
    result: Any


def objects_of(message: Message) -> tuple[list[SavedObject], dict[str, SavedConcrete]]:
    """The objects of a `SavedObjectGraph`, the root first, and its functions by name.

    Raises:
        ValueError: a number names no object.
    """
    objects = [_object(entry) for entry in message.messages(1)]
    concrete = {}
    for name, data in message.map(2).items():
        entry = Message(data)
        concrete[name] = SavedConcrete(numbers(entry.all(2)), entry.bytes(3), entry.bytes(4))
    if not objects:
        raise ValueError("it has no objects")
    named = [*[n for o in objects for n in o.children.values()], *[n for o in objects for a, _, b in o.slots
                                                                  for n in (a, b)],
             *[n for c in concrete.values() for n in c.bound]]
    if any(not 0 <= n < len(objects) for n in named):
        raise ValueError("it names an object that is not there")
    return objects, concrete


def _object(message: Message) -> SavedObject:
    kinds = [number for number in _KINDS if number in message]
    children = {child.text(2): child.number(1) for child in message.messages(1)}
    slots = [(slot.number(1), slot.text(2), slot.number(3)) for slot in message.messages(3)]
    if not kinds:
        return SavedObject("", children, Message(b""), slots)
    return SavedObject(_KINDS[kinds[-1]], children, message.message(kinds[-1]), slots)


