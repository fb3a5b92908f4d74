"""The lines of the user's source that nodes of a syntax tree come from, noted where malt keeps them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["note_lines", "copy_line", "line_of", "place"]

_Node = TypeVar("_Node", bound=ast.AST)


def note_lines(tree: ast.AST, function: str) -> None:
    """Note the line of every node of the tree of a function."""
    from malt.pyct import anno, origin_info
    for node in ast.walk(tree):
        line = getattr(node, "lineno", None)
        if line is not None:
            at = origin_info.Location("", line, getattr(node, "col_offset", 0))
            anno.setanno(node, anno.Basic.ORIGIN, origin_info.OriginInfo(at, function, "", ""))


def copy_line(new: _Node, like: ast.AST) -> _Node:
    """`new` at the line of another node."""
    from malt.pyct import anno
    origin = anno.getanno(like, anno.Basic.ORIGIN, default=None)
    if origin is not None:
        anno.setanno(new, anno.Basic.ORIGIN, origin)
    return ast.copy_location(new, like)


def line_of(node: ast.AST) -> int:
    """The line that was noted for a node; 0 where none was."""
    from malt.pyct import anno
    origin = anno.getanno(node, anno.Basic.ORIGIN, default=None)
    return 0 if origin is None else int(origin.loc.lineno)


def place(tree: ast.AST, line: int, noted: bool = True) -> None:
    """Gives nodes the lines they came from; those without take their parent's. Columns are not kept.

    Args:
        line: of nodes without a parent.
        noted: whether malt keeps the lines, or the nodes themselves have them.
    """
    _place(tree, line, line_of if noted else _own_line)


def _own_line(node: ast.AST) -> int:
    """The line that a node has; 0 where it has none."""
    return getattr(node, "lineno", 0)


def _place(node: Any, line: int, known: Callable[[ast.AST], int]) -> None:  # what it has, `_attributes` tells
    line = known(node) or line
    if "lineno" in node._attributes:
        node.lineno = node.end_lineno = line
        node.col_offset = node.end_col_offset = -1
    if isinstance(node, ast.Call):
        node.args = list(node.args)  # malt leaves tuples
    for child in ast.iter_child_nodes(node):
        _place(child, line, known)
