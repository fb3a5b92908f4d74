"""The graph of objects that hold state: who is whose child, and by what name.

Checkpoints and saved models are written from this graph, so a name here is a name in a file. An object's children are
those of its attributes that are variables, trackable objects, or lists, tuples and dicts of such; other classes join by
deriving from `Trackable`, or by overriding `_tracked_children`. What walks the graph and what is done with it is for
`twofold.module`, checkpoints and saved models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from twofold.eager.variable import Variable
from twofold.runtime.leaving import for_the_user

__all__ = ["Trackable", "children", "walk"]


class Trackable:
    """An object whose attributes are followed by checkpoints and saved models.

    A value that a checkpoint has for an attribute which does not exist yet is kept until the attribute is set.
    """

    @for_the_user
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)  # which other bases of a class may follow, too
        waiting = self.__dict__.get("_waiting_for_children")
        if waiting and name in waiting and (is_tracked(value) or isinstance(value, (list, dict))):
            waiting.pop(name)(value)

    def _tracked_children(self) -> dict[str, Any]:
        """The children of this object by name, in the order in which they were set."""
        return {name: value for name, value in vars(self).items()
                if name not in _OWN and not name.startswith("__") and is_tracked(value)}

    def _saved_values(self) -> dict[str, Any]:
        """What this object itself has to be saved, beside its children: arrays, or bytes, by name."""
        return {}

    def _slot_of(self, variable: Variable, name: str) -> Variable | None:
        """The variable that this object keeps for another one, by the name that TensorFlow's checkpoints have for it.

        What is not there yet is asked for again: an object that makes such variables later calls each of
        `self._waiting_for_slots` with the variable, the name and what it made.
        """
        return None

    def _known_as(self, name: str) -> str | None:
        """The name here of the child that TensorFlow's checkpoints call `name`; None where it is no variable here."""
        return name

    #: names that children have in the checkpoints of TensorFlow's Keras, where they are others there -> names here
    _checkpoint_names: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def _also_known(self, name: str) -> Any:
        """The object that TensorFlow's checkpoints call `name`, where it is no attribute here; None if there is
        none."""
        return None

    def _restore_values(self, values: dict[str, Any]) -> None:
        """Take back what `_saved_values` gave: arrays by name; bytes come as arrays of one element.

        Raises:
            ValueError: they do not fit.
        """


_OWN = frozenset({"_waiting_for_children", "_waiting_for_slots"})


def is_tracked(value: Any) -> bool:
    """Whether `value` has a place in the object graph: a variable, a trackable object, or a container of such."""
    if isinstance(value, (Variable, Trackable)):
        return True
    if isinstance(value, Mapping):
        return any(isinstance(key, str) and is_tracked(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return any(is_tracked(item) for item in value)
    return False


def children(value: Any) -> dict[str, Any]:
    """The children of an object of the graph by name; the items of a list are named by their index.

    >>> import twofold as tf
    >>> from twofold import tracking
    >>> class Model(tf.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layers = [tf.Variable(1.0), tf.Variable(2.0)]
    >>> list(tracking.children(Model())), list(tracking.children(Model().layers))
    (['layers'], ['0', '1'])
    """
    if isinstance(value, Trackable):
        return value._tracked_children()
    if isinstance(value, Mapping):
        return {key: item for key, item in value.items() if isinstance(key, str) and is_tracked(item)}
    if isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None) or map(str, range(len(value)))
        return {name: item for name, item in zip(names, value, strict=True) if is_tracked(item)}
    return {}


def walk(root: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every object of the graph once, breadth first, with the shortest path of names that leads to it."""
    seen = {id(root)}
    queue: list[tuple[tuple[str, ...], Any]] = [((), root)]
    for path, value in queue:
        yield path, value
        for name, child in children(value).items():
            if id(child) not in seen:
                seen.add(id(child))
                queue.append(((*path, name), child))
