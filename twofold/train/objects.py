"""The objects of a checkpoint: how a graph of objects is written, and how values are given back to objects.

A checkpoint holds nodes, the root first: the names of a node's children, and the keys of the tensors that hold its
own values. Restoring walks the objects in memory and the nodes side by side, by names. A child that is not there yet
is waited for: a trackable object tells when an attribute is set, and a list or dict whose items are still to come is
replaced by one that tells when an item is.
"""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import twofold as tf
from twofold import tracking

__all__ = ["SHOWN", "VARIABLE", "Node", "Restoration", "describe", "names_text", "paths_of"]

_log = logging.getLogger("twofold")
SHOWN = 10  # objects that a text names

VARIABLE = "VARIABLE_VALUE"  # the name of a variable's value, as TensorFlow calls it


@dataclass(slots=True)
class Node:
    """An object in a checkpoint.

    Attributes:
        children: numbers of nodes by name.
        values: keys of tensors by the name of the value.
        slots: for each variable that the object keeps for another one, in TensorFlow's checkpoints: the number of that
            one, a name, and its own number.
    """

    children: dict[str, int]
    values: dict[str, str]
    slots: list[tuple[int, str, int]] = field(default_factory=list)


def describe(root: Any) -> tuple[list[Node], dict[str, np.ndarray]]:
    """The nodes of a graph of objects, and the values of all by key.

    Raises:
        ValueError: a dict holds state under a key that is no text, which a checkpoint has no name for.
    """
    objects = list(tracking.walk(root))
    for path, value in objects:
        _refuse_other_keys(path, value)
    numbers = {id(value): n for n, (_, value) in enumerate(objects)}
    nodes, tensors = [], {}
    for path, value in objects:
        node = Node({name: numbers[id(child)] for name, child in tracking.children(value).items()}, {})
        for name, content in _values(value).items():
            key = "/".join((*[part.replace("/", ".S") for part in path], ".ATTRIBUTES", name))
            node.values[name] = key
            tensors[key] = content
        nodes.append(node)
    return nodes, tensors


def _refuse_other_keys(path: tuple[str, ...], value: Any) -> None:
    held = {"": value} if isinstance(value, Mapping) else {}
    if isinstance(value, tracking.Trackable):
        held = {name: item for name, item in vars(value).items() if isinstance(item, Mapping) and name[:1] != "_"}
    for name, items in held.items():
        for key, item in items.items():
            if not isinstance(key, str) and tracking.is_tracked(item):
                where = ".".join([*path, *([name] if name else [])])
                raise ValueError(f"Unable to save the dict {where}: it holds variables, or objects with variables, "
                                 f"under a key that is no string, {key!r}. Use strings as keys.")


def _values(value: Any) -> dict[str, np.ndarray]:
    if isinstance(value, tf.Variable):
        return {VARIABLE: np.asarray(value.read_value())}  # which is not copied
    if isinstance(value, tracking.Trackable):
        return {name: _array(content) for name, content in value._saved_values().items()}
    return {}


def _array(content: Any) -> np.ndarray:
    if isinstance(content, (bytes, str)):
        out = np.empty((), object)
        out[()] = content.encode() if isinstance(content, str) else content
        return out
    return np.asarray(content)


def _child(value: Any, name: str) -> Any:
    """The child of an object by its name; empty lists and dicts count, as something may come into them."""
    child = tracking.children(value).get(name)
    if child is None and isinstance(value, tracking.Trackable):
        child = vars(value).get(name)
        child = value._also_known(name) if child is None else child
    elif child is None and isinstance(value, list):
        child = value[int(name)] if name.isdecimal() and int(name) < len(value) else None
    elif child is None and isinstance(value, dict):
        child = value.get(name)
    return child if tracking.is_tracked(child) or isinstance(child, (list, dict)) else None


class Restoration:
    """A checkpoint's values on their way to objects.

    Args:
        nodes: the objects of the checkpoint.
        tensor: gives a tensor by its key.
        source: what the checkpoint is called in errors.

    Attributes:
        bound: the object for each node that has one.
    """

    def __init__(self, nodes: list[Node], tensor: Callable[[str], np.ndarray], source: str) -> None:
        self.nodes, self.source = nodes, source
        self._tensor = tensor
        self._owners: list[int] = []  # numbers of objects that keep variables for others
        self._read: dict[str, np.ndarray] = {}  # what was read to be checked, until it is assigned
        self.bound: dict[int, Any] = {}
        # Alive for as long as something waits: what nobody has taken then is told of, unless that is expected.
        self.untaken = {n for n, node in enumerate(nodes) if node.values}
        self.finalizer = weakref.finalize(self, _tell_unused, nodes, self.untaken, source)
        self.finalizer.atexit = False

    def bind(self, value: Any, number: int, owner: Any = None, name: str = "") -> None:
        """Restore an object, and the children that it has already, from a node.

        Raises:
            ValueError: a variable has another shape.
            InvalidArgumentError: a variable has another dtype.
            DataLossError: a value is damaged. In each case nothing has changed.
        """
        self._check(value, number)
        pending = [(value, number, owner, name)]
        while pending:
            value, number, owner, name = pending.pop()
            if number in self.bound:
                continue
            node = self.nodes[number]
            self._fill(value, node)
            self.untaken.discard(number)
            value = self.bound[number] = self._waiting(value, number, owner, name)
            if node.slots and isinstance(value, tracking.Trackable):
                self._owners.append(number)
                value.__dict__.setdefault("_waiting_for_slots", []).append(functools.partial(self._slot_came, number))
            for child, at in reversed(self._children(value, node)):
                child_object = _child(value, child)
                if child_object is not None:
                    pending.append((child_object, at, value, child))
                elif isinstance(value, tracking.Trackable):  # lists and dicts wait as `_WaitingList` and `_WaitingDict`
                    waiting = value.__dict__.setdefault("_waiting_for_children", {})
                    waiting[child] = functools.partial(self._came, value, child, at)
        for owner_number in self._owners:
            for slot, at in self._slots(owner_number, self.bound):
                self._bind_slot(slot, at)

    def _children(self, value: Any, node: Node) -> list[tuple[str, int]]:
        """A node's children, by the names that they have in the object; settings that are no variables are left out."""
        if not isinstance(value, tracking.Trackable):
            return list(node.children.items())
        if not (node.slots or "iter" in node.children):
            names = value._checkpoint_names
            return [(names.get(name, name), at) for name, at in node.children.items()]
        children = []  # an optimizer before Keras 2.11
        for name, at in node.children.items():
            known = value._known_as(name)
            if known is None:
                self.untaken.discard(at)
            else:
                children.append((known, at))
        return children

    def _slots(self, number: int, objects: dict[int, Any]) -> list[tuple[Any, int]]:
        """The variables that an object keeps for others and has already, each with the number of its node."""
        owner, slots = objects[number], []
        for of, name, at in self.nodes[number].slots:
            slot = owner._slot_of(objects[of], name) if of in objects else None
            if slot is not None and at not in self.bound:
                slots.append((slot, at))
        return slots

    def _bind_slot(self, slot: tf.Variable, number: int) -> None:
        self._fill(slot, self.nodes[number])
        self.untaken.discard(number)
        self.bound[number] = slot

    def _slot_came(self, owner: int, variable: Any, name: str, slot: tf.Variable) -> None:
        """Told that an object made a variable for another one."""
        for of, known, at in self.nodes[owner].slots:
            if self.bound.get(of) is variable and known == name and at not in self.bound:
                key = self.nodes[at].values.get(VARIABLE)
                if key is not None:
                    self._fits(slot, self._tensor(key), key)
                self._bind_slot(slot, at)

    def _check(self, value: Any, number: int) -> None:
        """Read all that these objects get, and see that it fits."""
        pending, seen = [(value, number)], dict(self.bound)
        while pending:
            value, number = pending.pop()
            if number in seen:
                continue
            seen[number] = value
            node = self.nodes[number]
            for name, key in node.values.items() if isinstance(value, (tf.Variable, tracking.Trackable)) else ():
                array = self._read[key] = self._tensor(key)
                if isinstance(value, tf.Variable) and name == VARIABLE:
                    self._fits(value, array, key)
            pending.extend((child_object, at) for child, at in self._children(value, node)
                           if (child_object := _child(value, child)) is not None)
        for owner in [n for n, value in seen.items() if self.nodes[n].slots and isinstance(value, tracking.Trackable)]:
            for slot, at in self._slots(owner, seen):
                for key in self.nodes[at].values.values():
                    array = self._read[key] = self._tensor(key)
                    self._fits(slot, array, key)

    def _fits(self, variable: tf.Variable, array: np.ndarray, key: str) -> None:
        if not variable.shape.is_compatible_with(array.shape):
            raise ValueError(f"Received incompatible tensor with shape {array.shape} when attempting to restore "
                             f"variable with shape {variable.shape} and name {variable.name} ({key} of {self.source}).")
        dtype = tf.as_dtype(array.dtype)
        if dtype != variable.dtype:
            raise tf.errors.InvalidArgumentError(
                None, None, f"{key} of {self.source} is {dtype.name}, the variable {variable.name} that it belongs to "
                            f"is {variable.dtype.name}")

    def _came(self, owner: Any, name: str, number: int, value: Any) -> None:
        self.bind(value, number, owner, name)

    def _fill(self, value: Any, node: Node) -> None:
        if not node.values:
            return
        if isinstance(value, tf.Variable):
            if VARIABLE in node.values:
                with tf.init_scope():
                    value.assign(self._take(node.values[VARIABLE]))
        elif isinstance(value, tracking.Trackable):
            value._restore_values({name: self._take(key) for name, key in node.values.items()})

    def _take(self, key: str) -> np.ndarray:
        array = self._read.pop(key, None)
        return self._tensor(key) if array is None else array

    def _waiting(self, value: Any, number: int, owner: Any, name: str) -> Any:
        """A list or dict; one that the checkpoint has values for is replaced by one that reports new items."""
        missing = self.nodes[number].children.keys() - tracking.children(value).keys()
        if not missing or type(value) not in (list, dict):
            return value
        made = (_WaitingList if type(value) is list else _WaitingDict)(value)
        made.told = lambda: self._items(made, number)
        if isinstance(owner, tracking.Trackable):
            object.__setattr__(owner, name, made)
        elif isinstance(owner, (list, dict)):
            key: Any = int(name) if isinstance(owner, list) else name
            owner[key] = made
        return made

    def _items(self, value: Any, number: int) -> None:
        for name, at in self.nodes[number].children.items():
            child_object = _child(value, name)
            if child_object is not None and at not in self.bound:
                self.bind(child_object, at, value, name)


def _tell_unused(nodes: list[Node], untaken: set[int], source: str) -> None:
    if untaken:
        _log.warning("Values of a checkpoint found no object: %s of %s. Call `.expect_partial()` on what `restore` "
                     "gives if that is as it should be.", names_text(paths_of(nodes, untaken)), source)


def paths_of(nodes: list[Node], numbers: Iterable[int]) -> list[str]:
    """The names that lead from the root to some nodes."""
    paths = {0: "(root)"}
    queue = [0]
    for at in queue:
        slots = [(f"{name} of node {of}", child) for of, name, child in nodes[at].slots]
        for name, child in [*nodes[at].children.items(), *slots]:
            if child not in paths:
                paths[child] = f"{paths[at]}.{name}"
                queue.append(child)
    return [paths.get(n, f"node {n}") for n in sorted(numbers)]


def names_text(names: list[str]) -> str:
    """The first few of many names."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _telling(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = getattr(super(type(self), self), name)(*args, **kwargs)
        self.told()
        return result
    return method


class _WaitingList(list):
    """A list that tells when something is put into it."""

    told: Callable[[], None]

    append, extend, insert, __setitem__, __iadd__ = map(
        _telling, ("append", "extend", "insert", "__setitem__", "__iadd__"))


class _WaitingDict(dict):
    """A dict that tells when something is put into it."""

    told: Callable[[], None]

    __setitem__, update, setdefault, __ior__ = map(_telling, ("__setitem__", "update", "setdefault", "__ior__"))
