"""Graphs in saved models: traced graphs as text, if they can leave the process, and reading them back.

Text is that of `ir/graph_text.py`, with every attribute written out but those that `op_sets.LATER` names at their
default. Of the user's source a graph keeps the names of files without folders, line numbers, and the lines themselves,
so that errors still show them. What has no text is refused with the user's line: calls of Python that are made while
the function runs. A `tf.print` to a standard stream is data, and stays.
"""

from __future__ import annotations

import json
import linecache
import os
from typing import Any

from twofold._front.host import Printed
from twofold._front.hosted import HostedCall
from twofold.ir import errors, graph_text
from twofold.ir import graph as g
from twofold.ir.errors import InternalError, InvalidArgumentError, UnimplementedError, line_text
from twofold.ir.verify import verify

from . import op_sets
from .assumptions import make_explicit
from .objects import parsed_json
from .structure import NotPlainError, decode, encode

__all__ = ["Sources", "graph_to_text", "text_to_graph", "show_lines"]

_LINE = 400  # characters of a line of source that are kept


class Sources:
    """The lines of the user's source that saved graphs name.

    Attributes:
        lines: source by number, by file; files are named without folders, by different names where they differ.
    """

    def __init__(self) -> None:
        self.lines: dict[str, dict[str, str]] = {}
        self._names: dict[str, str] = {}

    def kept(self, loc: g.Location) -> g.Location:
        """The place as a saved graph names it."""
        name = self._names.get(loc.file)
        if name is None:
            stem, suffix = os.path.splitext(os.path.basename(loc.file) or "source")
            taken, number = set(self._names.values()), 2
            name = stem + suffix
            while name in taken:
                name, number = f"{stem}~{number}{suffix}", number + 1
            self._names[loc.file] = name
        line = linecache.getline(loc.file, loc.line).strip()[:_LINE]
        if line:
            self.lines.setdefault(name, {})[str(loc.line)] = line
        return g.Location(name, loc.line, loc.function)


def graph_to_text(graph: g.Graph, sources: Sources) -> str:
    """The text of a graph, which reads back as the same graph.

    Raises:
        UnimplementedError: it calls Python, at the line that the message names.
    """
    plain = verify(graph.copy(), complete=True)
    for node in plain.walk():
        if node.op is g.HOST:
            node.attrs = _host(node)
        if node.loc is not None:
            node.loc = sources.kept(node.loc)
        if "error" in node.attrs:
            node.attrs = {**node.attrs, "error": _error(node)}
    text = graph_text.text(plain, defaults=op_sets.LATER) + "\n"
    again = graph_text.parse(text)
    if graph_text.text(again, defaults=op_sets.LATER) + "\n" != text:
        raise InternalError(None, None, f"the graph of {graph.name} does not read back as it was written.")
    return text


def _host(node: g.Node) -> dict[str, Any]:
    """The attributes of a call of Python as data: a `tf.print` to a standard stream, or a function of the library."""
    fn, name = node.attrs["fn"], node.attrs["name"]
    where = "" if node.loc is None else f"\n  {line_text(*node.loc)}"
    if isinstance(fn, HostedCall):
        try:
            told = json.dumps(encode((fn.args, fn.kwargs)), ensure_ascii=True)
        except NotPlainError as e:
            raise UnimplementedError(None, name, f"{name}: the call cannot be saved: {e}{where}") from None
        return {"name": name, "function": fn.name, "arguments": told}
    if isinstance(fn, Printed) and fn.stream:
        return {"name": "print", "stream": fn.stream, "summarize": fn.summarize, "end": fn.end,
                "pieces": tuple(fn.pieces)}
    raise UnimplementedError(
        None, name, f"{name}: a function that calls Python while it runs (tf.py_function, tf.numpy_function, tf.print "
        f"to what is no standard stream) cannot be saved: the model must run without its Python.{where}")


def _revived(node: g.Node) -> dict[str, Any]:
    """The attributes of a print, or of a call of a function of the library, with the Python function that runs.

    Raises:
        ValueError: they are something else's.
    """
    attrs = node.attrs
    if set(attrs) == {"name", "function", "arguments"}:
        return _called(node)
    if set(attrs) != {"name", "stream", "summarize", "end", "pieces"} or attrs["name"] != "print" or node.outputs:
        raise ValueError("a saved function calls no Python but tf.print")
    pieces, stream, summarize, end = (attrs[k] for k in ("pieces", "stream", "summarize", "end"))
    texts = (*pieces, end) if type(pieces) is tuple else ()
    if (len(texts) != len(node.inputs) + 2 or any(type(t) is not str for t in texts)
            or stream not in ("stdout", "stderr") or type(summarize) is not int):
        raise ValueError("a tf.print is described by something else")
    return {"fn": Printed(pieces, stream, summarize, end), "name": "print", "smooth": False}


def _called(node: g.Node) -> dict[str, Any]:
    name, function, told = (node.attrs[k] for k in ("name", "function", "arguments"))
    if not all(type(text) is str for text in (name, function, told)):
        raise ValueError("a call of a function of the library is described by something else")
    given = decode(parsed_json(told.encode()))
    if type(given) is not tuple or len(given) != 2 or type(given[0]) is not tuple or type(given[1]) is not dict:
        raise ValueError(f"the arguments of a call of {function!r} are something else")
    made = HostedCall(function, *given)
    if made.operands != len(node.inputs):
        raise ValueError(f"a call of {function!r} has {len(node.inputs)} tensors, and not {made.operands}")
    return {"fn": made, "name": name, "smooth": False}


def _error(node: g.Node) -> Any:
    """An attribute that says which error to raise: a class of `tf.errors`, or for a gradient the text."""
    error = node.attrs["error"]
    if isinstance(error, BaseException):
        return f"{type(error).__name__}: {error}"
    if isinstance(error, type) and getattr(errors, error.__name__, None) is not error:
        return next(c for c in (*error.__mro__, InvalidArgumentError) if getattr(errors, c.__name__, None) is c)
    return error


def text_to_graph(text: str, version: int, folder: str) -> g.Graph:
    """The graph of a text, verified.

    Args:
        version: of the op set that it is written in.
        folder: what the files of source are put under, so that they are no files of this machine.
    Raises:
        ValueError: the text spells no graph, or one that is not well-formed.
    """
    graph = graph_text.parse(op_sets.to_current(text, version))
    for node in graph.walk():
        if node.loc is not None:
            node.loc = g.Location(f"{folder}/{os.path.basename(node.loc.file)}", node.loc.line, node.loc.function)
        if node.op is g.HOST:
            node.attrs = _revived(node)
        error = node.attrs.get("error")
        if node.op is g.CUSTOM and type(error) is str:
            node.attrs = {**node.attrs, "error": UnimplementedError(None, "custom_gradient", error)}
    make_explicit(verify(graph))
    return graph


def show_lines(lines: dict[str, dict[int, str]], folder: str) -> None:
    """From now on errors show these lines of source of files under `folder`."""
    for name, known in lines.items():
        path = f"{folder}/{os.path.basename(name)}"
        linecache.cache[path] = (0, None, _Lines(known), path)


class _Lines(list[str]):
    """The lines of a file of which some are known, as `linecache` keeps them."""

    def __init__(self, known: dict[int, str]) -> None:
        self._known = known

    def __len__(self) -> int:
        return max(self._known, default=0)

    def __getitem__(self, index: Any) -> Any:
        return self._known.get(index + 1, "") + "\n"
