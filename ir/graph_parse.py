"""Reading the text form of graphs; `ir/graph_text.py` writes it and shows what it looks like.

A hand-written reader over the text: nothing is evaluated as Python, ops come from the registry alone, and an error
names the line. What a graph means is not checked here: `ir/verify.py` does that.
"""

from __future__ import annotations

import re
from typing import NoReturn, TypeAlias

from twofold.ir.dtypes import DType
from twofold.ir.graph_literals import Elements
from twofold.ir.op import Op

from . import dims as dm
from . import graph as g
from . import ops  # noqa: F401  (fills the registry)
from .graph_literals import GraphTextError, array_of, atom_of, element_of
from .op import REGISTRY
from .spec import parse_short
from .spec import spec as spec_of
from .types import Attr, Attrs, Spec

__all__ = ["parse"]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t\r]*")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_VALUE = re.compile(r"%\d+", re.ASCII)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_PLACE = re.compile(r'#[ \t]*("(?:[^"\\\n]|\\.)*"|[^\n"]*?):(\d+) in ("(?:[^"\\\n]|\\.)*"|[^\n"]*)')
_REGION = re.compile(r"graph[ \t]+[A-Za-z_\"]")  # and no attribute of that name, which a colon follows
_DTYPE = re.compile(r"[a-z][a-z0-9]*\[", re.ASCII)


def parse(text: str) -> g.Graph:
    """The graph that `text` spells; see `graph_text.py: parse`."""
    reader = _TextReader(text)
    graph = reader.graph()
    reader.skip()
    if reader.at < len(text):
        reader.fail("nothing more is expected after the graph")
    return graph


class _StringElement:
    """A string element, apart from text that is still to be read."""

    def __init__(self, item: str | bytes) -> None:
        self.item = item


_Unread: TypeAlias = "str | _StringElement | list[_Unread]"  # the elements of a constant whose dtype is not known yet


class _TextReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.read_specs: dict[str, Spec] = {}  # types that were read before, by their text

    # -- characters -------------------------------------------------------------------------------
    def fail(self, problem: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        line = self.text.count("\n", 0, at) + 1
        shown = self.text.splitlines()[line - 1].strip() if self.text.strip() and at < len(self.text) else "the end"
        raise GraphTextError(f"line {line}: {problem}; here: {shown}")

    def skip(self) -> None:
        """Over spaces, ends of lines and comments."""
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def peek(self, token: str) -> bool:
        """Whether `token` comes next; the reader does not move, so that a place can still be read."""
        return self.text.startswith(token, _SPACE.match(self.text, self.at).end())  # type: ignore[union-attr]

    def take(self, token: str) -> bool:
        if not self.peek(token):
            return False
        self.skip()
        self.at += len(token)
        return True

    def expect(self, token: str) -> None:
        if not self.take(token):
            self.fail(f"{token!r} is expected")

    def match(self, pattern: re.Pattern[str], what: str) -> str:
        self.skip()
        match = pattern.match(self.text, self.at)
        if match is None:
            self.fail(f"{what} is expected")
        self.at = match.end()
        return match.group()

    def word(self, what: str) -> str:
        """An identifier, or a string in quotes."""
        return self.string() if self.peek('"') else self.match(_NAME, what)

    def string(self) -> str:
        self.skip()
        start = self.at
        try:
            import json
            return str(json.loads(self.match(_STRING, "a string")))
        except ValueError:
            self.fail("a string is expected", start)

    # -- graphs -----------------------------------------------------------------------------------
    def graph(self) -> g.Graph:
        if self.match(_NAME, "'graph'") != "graph":
            self.fail("'graph' is expected")
        graph = g.Graph(self.word("the graph's name"))
        by_number: dict[str, g.Value] = {}
        self.expect("(")
        if not self.take(")"):
            self.input(graph, by_number)
            while not self.take(")"):
                self.expect(",")
                self.input(graph, by_number)
        self.expect("{")
        while self.statement(graph, by_number):
            pass
        self.expect("}")
        return graph

    def input(self, graph: g.Graph, by_number: dict[str, g.Value]) -> None:
        number, name = self.defined()
        self.expect(":")
        spec = self.spec()
        self.define(number, graph.add_input(spec.dims, spec.dtype, name), by_number)

    def defined(self) -> tuple[str, str]:
        number = self.match(_VALUE, "a value, such as %0,")
        self.skip()
        named = self.text[self.at:self.at + 1]
        return number, self.word("a name") if named == '"' or named.isalpha() or named == "_" else ""

    def define(self, number: str, value: g.Value, by_number: dict[str, g.Value]) -> None:
        if number in by_number:
            self.fail(f"{number} is defined twice")
        by_number[number] = value

    def spec(self) -> Spec:
        self.skip()
        start = self.at
        if _DTYPE.match(self.text, start) is None:
            self.fail("a type, such as f32[n,3], is expected")
        end = self.text.find("]", start)
        self.at = end + 1
        short = self.text[start:self.at]
        spec = self.read_specs.get(short)
        if spec is None:
            try:
                parsed = parse_short(short)
            except ValueError as e:
                self.fail(str(e), start)
            if parsed.dims is None:
                self.fail("a type, such as f32[n,3], is expected", start)
            spec = self.read_specs[short] = spec_of(parsed.dims, parsed.dtype)
        return spec

    # -- statements -------------------------------------------------------------------------------
    def statement(self, graph: g.Graph, by_number: dict[str, g.Value]) -> bool:
        """Reads one statement; False after `return`."""
        if self.peek("}"):
            self.fail("'return' is missing")
        if not self.peek("%"):
            self.skip()
            start = self.at
            word = self.match(_NAME, "a node, 'assume' or 'return'")
            if word == "assume":
                graph.guards.append(self.guard())
                return True
            if word == "return":
                graph.outputs = self.values(by_number, "}") if not self.peek("}") else []
                return False
            self.at = start
            self.node(graph, [], by_number)
            return True
        results = [self.defined()]
        while self.take(","):
            results.append(self.defined())
        self.expect("=")
        self.node(graph, results, by_number)
        return True

    def guard(self) -> dm.Guard:
        start = self.at
        end = re.compile(r"[\n#}]").search(self.text, start)
        self.at = end.start() if end else len(self.text)
        try:
            return dm.Guard.parse(self.text[start:self.at].strip())
        except ValueError as e:
            self.fail(str(e), start)

    def node(self, graph: g.Graph, results: list[tuple[str, str]], by_number: dict[str, g.Value]) -> None:
        self.skip()
        start = self.at
        name = self.match(_NAME, "an op")
        op = g.CONSTRUCTS.get(name) or REGISTRY.get(name)
        if op is None:
            self.fail(f"there is no op {name!r}", start)
        if op is g.CONSTANT:
            self.constant(graph, results, by_number)
            return
        self.expect("(")
        operands = self.values(by_number, ")") if not self.peek(")") else []
        self.expect(")")
        attrs = self.attrs() if self.peek("{") and not self.at_regions(op) else {}
        specs = self.specs() if results else []
        if len(specs) != len(results):
            self.fail(f"{len(results)} results have {len(specs)} types", start)
        regions, place = self.regions(op)
        loc = place or self.place()
        node = graph.add(op, operands, self.complete(op, attrs, start), specs, regions, loc)
        self.name(node, results, by_number)

    def name(self, node: g.Node, results: list[tuple[str, str]], by_number: dict[str, g.Value]) -> None:
        for (number, name), value in zip(results, node.outputs, strict=True):
            value.name = name
            self.define(number, value, by_number)

    def complete(self, op: Op | g.Construct, attrs: Attrs, start: int) -> Attrs:
        if isinstance(op, g.Construct):
            return attrs
        try:
            return g.complete(op, attrs)
        except TypeError as e:
            self.fail(str(e), start)

    def values(self, by_number: dict[str, g.Value], end: str) -> list[g.Value]:
        values = [self.value(by_number)]
        while not self.peek(end):
            self.expect(",")
            values.append(self.value(by_number))
        return values

    def value(self, by_number: dict[str, g.Value]) -> g.Value:
        self.skip()
        start = self.at
        number = self.match(_VALUE, "a value, such as %0,")
        if number not in by_number:
            self.fail(f"{number} is not defined", start)
        return by_number[number]

    def specs(self) -> list[Spec]:
        self.expect(":")
        specs = [self.spec()]
        while self.take(","):
            specs.append(self.spec())
        return specs

    def at_regions(self, op: Op | g.Construct) -> bool:
        """Whether the brace that comes next opens regions: a node without results has no type before it."""
        if not isinstance(op, g.Construct) or not op.regions:
            return False
        start = self.at
        self.expect("{")
        self.skip()
        opens = _REGION.match(self.text, self.at) is not None
        self.at = start
        return opens

    def regions(self, op: Op | g.Construct) -> tuple[list[g.Graph], g.Location | None]:
        if not isinstance(op, g.Construct) or not op.regions:
            return [], None
        self.expect("{")
        place = self.place()
        graphs = []
        while not self.take("}"):
            graphs.append(self.graph())
        return graphs, place

    def place(self) -> g.Location | None:
        """The comment that ends this line, where it is a place."""
        start = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]
        match = _PLACE.match(self.text, start)
        if match is None:
            return None
        import json
        file, function = [json.loads(part) if part.startswith('"') else part.strip() for part in match.group(1, 3)]
        return g.Location(file, int(match[2]), function)

    # -- constants --------------------------------------------------------------------------------
    def constant(self, graph: g.Graph, results: list[tuple[str, str]], by_number: dict[str, g.Value]) -> None:
        self.skip()
        start = self.at
        if len(results) != 1:
            self.fail("a constant has one result")
        # the dtype, which says how to read elements, comes after them
        data = self.bytes() if self.take("base64") else self.elements()
        spec = self.specs()[0]
        try:
            cells = data if isinstance(data, bytes) else _converted(data, spec.dtype)
            array = array_of(cells, spec.dims, spec.dtype)
        except ValueError as e:
            self.fail(f"the constant cannot be read: {e}", start)
        node = graph.add(g.CONSTANT, (), {"value": array}, (spec,), (), self.place())
        self.name(node, results, by_number)

    def bytes(self) -> bytes:
        self.skip()
        start = self.at
        try:
            import base64
            return base64.b64decode(self.string(), validate=True)
        except ValueError as e:
            self.fail(str(e), start)

    def elements(self) -> _Unread:
        """Nested lists of unread elements: text in a tuple of one, or strings and bytes as they are."""
        if self.take("["):
            elements: list[_Unread] = []
            while not self.take("]"):
                if elements:
                    self.expect(",")
                elements.append(self.elements())
            return elements
        if self.peek('"'):
            return _StringElement(self.string())
        if self.take('b"'):
            self.at -= 1
            return _StringElement(self.string().encode("latin-1"))
        return self.atom(":")

    # -- attributes -------------------------------------------------------------------------------
    def attrs(self) -> Attrs:
        self.expect("{")
        attrs: Attrs = {}
        while not self.take("}"):
            if attrs:
                self.expect(",")
            name = self.word("an attribute's name")
            self.expect(":")
            if name in attrs:
                self.fail(f"attribute {name!r} is given twice")
            attrs[name] = self.attr()
        return attrs

    def attr(self) -> Attr:
        if self.take("["):
            items: list[Attr] = []
            while not self.take("]"):
                if items:
                    self.expect(",")
                items.append(self.attr())
            return tuple(items)
        if self.peek('"'):
            return self.string()
        self.skip()
        start = self.at
        piece = self.atom("")
        try:
            return atom_of(piece)
        except ValueError as e:
            self.fail(str(e), start)

    def atom(self, ends: str) -> str:
        """Text up to a comma or closing bracket that is outside of parentheses, or one of `ends`."""
        self.skip()
        start, depth = self.at, 0
        while self.at < len(self.text):
            ch = self.text[self.at]
            if ch == "\n" or depth == 0 and (ch in ",]}" or ch in ends):
                break
            depth += (ch == "(") - (ch == ")")
            self.at += 1
        piece = self.text[start:self.at].strip()
        if not piece:
            self.fail("a value is expected", start)
        return piece


def _converted(data: _Unread, dtype: DType) -> Elements:
    if isinstance(data, list):
        return [_converted(part, dtype) for part in data]
    if isinstance(data, _StringElement):
        if dtype.name != "string":
            raise ValueError(f"a string is no element of {dtype.name}")
        return data.item
    return element_of(data, dtype)
