"""The object graph as `objects.json` has it, checked: nodes, their kinds, and who is whose child.

Also the reading of JSON as such: each value that is asked for must be there and of one type. What functions and
variables say beyond their place in the graph is `reader.py`'s part.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .structure import record_type

__all__ = ["LONGEST", "Malformed", "SavedObject", "read_objects", "paths_of", "tuple_order", "typed", "of", "list_of",
           "parsed_json"]

LONGEST = 1 << 20  # items of a list
_PATHS = 16  # paths that are told of an object
_PATH = 200  # characters of a path


class Malformed(ValueError):
    """The contents of a file contradict themselves or the format."""


@dataclass(eq=False)
class SavedObject:
    """A node of the object graph.

    Attributes:
        kind: "object", "generator", "list", "tuple", "record", "dict", "variable", "table", "asset", "function" or
            "concrete".
        children: numbers of nodes by name.
        about: the rest of what the file says of it.
    """

    kind: str
    children: dict[str, int]
    about: dict[str, Any]


def read_objects(entries: list[Any]) -> list[SavedObject]:
    """The nodes of the graph, the root first.

    Raises:
        ValueError: an entry is no node, a number names none, or tuples hold one another.
    """
    objects = [_object(entry) for entry in entries]
    if not objects or objects[0].kind != "object":
        raise Malformed("the root is no object")
    for node in objects:
        for number in node.children.values():
            if not 0 <= number < len(objects):
                raise Malformed(f"there is no object {number}")
        if node.kind == "generator" and objects[node.children["_state_var"]].kind != "variable":
            raise Malformed("a generator has no state")
    tuple_order(objects)
    return objects


def _object(entry: Any) -> SavedObject:
    kind = of(entry, "kind", str)
    if kind not in _ABOUT:
        raise Malformed(f"{kind[:40]!r} is no kind of object")
    children = typed(entry.get("children", {}), dict)
    if any(type(n) is not int for n in children.values()):
        raise Malformed("a child is no number")
    node = SavedObject(kind, children, {k: v for k, v in entry.items() if k not in ("kind", "children")})
    _ABOUT[kind](node)
    return node


def _check_object(node: SavedObject) -> None:
    typed(node.about.get("name", ""), str)


def _check_row(node: SavedObject) -> None:
    length = of(node.about, "length", int)
    if not 0 <= length <= LONGEST:
        raise Malformed(f"a {node.kind} has {length} items")
    if any(not name.isdecimal() or str(int(name)) != name or int(name) >= length for name in node.children):
        raise Malformed(f"an item of a {node.kind} has no number below {length}")


def _check_record(node: SavedObject) -> None:
    fields = tuple([typed(name, str) for name in list_of(node.about, "fields")])
    record_type(of(node.about, "name", str), fields)
    if not node.children.keys() <= set(fields):
        raise Malformed("a record has an item that is no field")


def _check_generator(node: SavedObject) -> None:
    if set(node.children) != {"_state_var"}:
        raise Malformed("a generator has no state")


def _check_leaf(node: SavedObject) -> None:
    if node.children:
        raise Malformed(f"a {node.kind} has no children")


_ABOUT: dict[str, Callable[[SavedObject], None]] = {
    "object": _check_object, "generator": _check_generator, "list": _check_row, "tuple": _check_row,
    "record": _check_record, "dict": lambda node: None, "variable": _check_leaf, "table": _check_leaf,
    "asset": _check_leaf, "function": _check_leaf, "concrete": _check_leaf}


def tuple_order(objects: list[SavedObject]) -> list[int]:
    """The numbers of tuples and records, each after those that it holds.

    Raises:
        ValueError: they hold one another in a circle.
    """
    fixed = {n for n, node in enumerate(objects) if node.kind in ("tuple", "record")}
    order: list[int] = []
    state: dict[int, bool] = {}  # whether it is done; those on the way are not
    for start in sorted(fixed):
        stack = [(start, iter(objects[start].children.values()))] if start not in state else []
        state.setdefault(start, False)
        while stack:
            number, rest = stack[-1]
            child = next((c for c in rest if c in fixed and not state.get(c, False)), None)
            if child is None:
                stack.pop()
                state[number] = True
                order.append(number)
            elif child in state:
                raise Malformed("tuples hold one another")
            else:
                state[child] = False
                stack.append((child, iter(objects[child].children.values())))
    return order


def paths_of(objects: list[SavedObject]) -> list[list[str]]:
    """Where each object is, as "layers.0.w": by the shortest path to each of its parents; the shortest first."""
    paths: list[list[str]] = [[] for _ in objects]
    seen, queue = {0}, [(0, "")]
    for number, prefix in queue:
        for name, child in objects[number].children.items():
            path = (f"{prefix}.{name}" if prefix else name)[:_PATH]
            if len(paths[child]) < _PATHS:
                paths[child].append(path)
            if child not in seen:
                seen.add(child)
                queue.append((child, path))
    return paths


# -- JSON ---------------------------------------------------------------------------------------------
def parsed_json(data: bytes) -> dict[str, Any]:
    """The JSON object of a file; no name is there twice.

    Raises:
        ValueError: it is none.
    """
    return typed(json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant), dict)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Malformed("a name is there twice in objects.json")
    return fields


def _no_constant(text: str) -> Any:
    raise Malformed(f"{text} is no JSON")


def typed(value: Any, kind: type) -> Any:
    """`value`, which must be of this very type."""
    if type(value) is not kind:
        text = repr(value)
        raise Malformed(f"{text if len(text) <= 60 else text[:57] + '...'} is found where {kind.__name__} is expected")
    return value


def of(entry: Any, name: str, kind: type) -> Any:
    """The value of this type under a name of a JSON object."""
    if name not in typed(entry, dict):
        raise Malformed(f"{name!r} is missing")
    return typed(entry[name], kind)


def list_of(entry: Any, name: str) -> list[Any]:
    """The list under a name of a JSON object."""
    return of(entry, name, list)
