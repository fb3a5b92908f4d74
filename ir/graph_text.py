"""The text form of graphs: one line a node, deterministic names, and a way back.

    graph f(%0 x: f32[n,3], %1: f32[3,4]) {
      assume n <= 8
      %2 = matmul(%0, %1) : f32[n,4]   # model.py:12 in f
      %3 = constant 2.0 : f32[]
      %4 = reduce_sum(%2) {axis: [0]} : f32[4]
      %5 = cond(%6, %4) : f32[4] {
        graph then(%0: f32[4]) {
          return %0
        }
        ...
      }
      return %5
    }

Values are numbered in order, in each region from 0; a value's name, where it has one, follows its number. Attributes
at their default are left out. The place after `#` is the user's line. `parse(text(graph))` gives the graph back, and
`text(parse(t)) == t` for a `t` that `text` wrote. A Python function among the attributes (of a host call) is shown by
its name and does not parse. How data is spelt is in `ir/graph_literals.py`, reading in `ir/graph_parse.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from twofold.ir.types import Attr

from . import graph as g
from .graph_literals import GraphTextError, array_text, attr_text, is_name, quoted

__all__ = ["text", "parse", "node_text", "lines_of", "GraphTextError"]


def parse(text: str) -> g.Graph:
    """The graph that `text` spells.

    Raises:
        GraphTextError: it spells none, or holds a Python object, which text cannot carry.

    >>> from twofold.ir.graph_text import parse
    >>> [node.op.name for node in parse("graph f(%0: f32[2]) { %1 = exp(%0) : f32[2] return %1 }").nodes]
    ['exp']
    """
    from .graph_parse import parse  # who only writes graphs does not need it
    return parse(text)


@g.shows("text")
def text(graph: g.Graph, locations: bool = True, defaults: bool | Mapping[str, Attr] = False,
         names: bool = True) -> str:
    """The text of a graph.

    Args:
        graph: what to show.
        locations: whether lines end with the user's line.
        defaults: whether attributes at their default are shown, too; or that all are but those at these values.
        names: whether graphs and values have the user's names, on which nothing depends that is computed.

    >>> from twofold.ir.graph_text import parse, text
    >>> g = parse("graph f(%0: f32[n]) { %1 = negative(%0) : f32[n] \\n return %1 }")
    >>> print(text(g))
    graph f(%0: f32[n]) {
      %1 = negative(%0) : f32[n]
      return %1
    }
    """
    lines: list[str] = []
    _write(graph, "", locations, defaults, names, lines)
    return "\n".join(lines)


def node_text(node: g.Node) -> str:
    """One node by itself, its operands by their types; for errors."""
    operands = ", ".join([_spec_text(v) for v in node.inputs])
    results = ", ".join([_spec_text(v) for v in node.outputs])
    place = "" if node.loc is None else f"   # {node.loc}"
    return f"{node.op.name}({operands}){_attrs(node)}{' : ' if results else ''}{results}{place}"


def lines_of(graph: g.Graph) -> tuple[dict[g.Value, str], dict[g.Node, str]]:
    """The number that the text of a graph gives to each value, and the line of each node, without regions and places.

    >>> from twofold.ir.graph_text import lines_of, parse
    >>> numbers, lines = lines_of(parse("graph f(%0: f32[2]) { %1 = exp(%0) : f32[2] return %1 }"))
    >>> list(numbers.values()), list(lines.values())
    (['%0', '%1'], ['%1 = exp(%0) : f32[2]'])
    """
    names: dict[g.Value, str] = {}
    for value in graph.inputs:
        _defined(value, names)
    return names, {node: _node_text(node, names) for node in graph.nodes}


def _write(graph: g.Graph, indent: str, locations: bool, defaults: bool | Mapping[str, Attr], named: bool,
           lines: list[str]) -> None:
    names: dict[g.Value, str] = {}
    heads = [_defined(v, names, f": {_spec_text(v)}", named) for v in graph.inputs]
    lines.append(f"{indent}graph {_word(graph.name) if named else 'f'}({', '.join(heads)}) {{")
    inner = indent + "  "
    lines += [f"{inner}assume {guard}" for guard in graph.guards]
    for node in graph.nodes:
        line = inner + _node_text(node, names, defaults, named)
        opening = " {" if node.regions else ""
        place = _place(node.loc) if locations and node.loc is not None else ""
        lines.append(line + opening + place)
        for region in node.regions:
            _write(region, inner + "  ", locations, defaults, named, lines)
        if node.regions:
            lines.append(inner + "}")
    results = ", ".join([names.get(v, "%?") for v in graph.outputs])
    lines += [f"{inner}return {results}".rstrip(), indent + "}"]


def _node_text(node: g.Node, names: dict[g.Value, str], defaults: bool | Mapping[str, Attr] = False,
               named: bool = True) -> str:
    operands = ", ".join([names.get(v, "%?") for v in node.inputs])
    results = ", ".join([_defined(v, names, named=named) for v in node.outputs])
    left = f"{results} = " if results else ""
    right = " : " + ", ".join([_spec_text(v) for v in node.outputs]) if results else ""
    if node.op is g.CONSTANT:
        return f"{left}constant {array_text(node.attrs['value'], node.outputs[0].dtype)}{right}"
    return f"{left}{node.op.name}({operands}){_attrs(node, defaults)}{right}"


def _defined(value: g.Value, names: dict[g.Value, str], after: str = "", named: bool = True) -> str:
    names[value] = number = f"%{len(names)}"
    return f"{number} {_word(value.name)}{after}" if named and value.name else number + after


def _word(name: str) -> str:
    return name if is_name(name) else quoted(name)


def _spec_text(value: g.Value) -> str:
    return f"{value.dtype.short}[{','.join([str(d) for d in value.dims])}]"


def _attrs(node: g.Node, full: bool | Mapping[str, Attr] = False) -> str:
    """The attributes in braces; if not `full`, without those at their default, else without those at these values."""
    attrs = node.attrs
    if not attrs:
        return ""
    defaults: Mapping[str, Attr] = {}
    if not isinstance(node.op, g.Construct) and full is not True:
        defaults = node.op.defaults if full is False else full
    shown = [f"{_word(k)}: {attr_text(v)}" for k, v in attrs.items() if k not in defaults or _differs(v, defaults[k])]
    return f" {{{', '.join(shown)}}}" if shown else ""


def _differs(value: Attr, default: Attr) -> bool:
    return value is not default and (type(value) is not type(default) or attr_text(value) != attr_text(default))


def _place(loc: g.Location) -> str:
    return f"   # {_path(loc.file)}:{loc.line} in {_path(loc.function)}"


def _path(name: str) -> str:
    plain = name and name.isprintable() and '"' not in name and " in " not in name and name == name.strip()
    return name if plain else quoted(name)


