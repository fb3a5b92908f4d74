"""Conversion of functions without control flow, of which most are: their calls alone are rewritten, which takes a
fifth of the time that the converters of `autograph_stages.py` need, and none of their imports.
"""

from __future__ import annotations

import ast
from typing import TypeGuard

from .autograph_syntax import FunctionNode

__all__ = ["is_plain", "converted"]

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.With, ast.withitem, ast.Pass,
               ast.Raise, ast.Import, ast.ImportFrom, ast.alias, ast.Global, ast.Nonlocal)
_EXPRESSIONS = (ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Call, ast.keyword, ast.Constant, ast.BinOp,
                ast.UnaryOp, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Starred, ast.JoinedStr, ast.FormattedValue,
                ast.expr_context, ast.operator, ast.USub, ast.UAdd, ast.Invert)
_PLAIN = (*_STATEMENTS, *_EXPRESSIONS)
_DEBUGGERS = frozenset({"pdb", "ipdb", "breakpoint"})  # which look at the frame that calls them


def is_plain(node: FunctionNode) -> TypeGuard[ast.FunctionDef]:
    """Whether a function has no branches, loops, functions inside or operators that converted code has its own of."""
    if not isinstance(node, ast.FunctionDef):
        return False
    return all(isinstance(inner, _PLAIN) and not (isinstance(inner, ast.Name) and inner.id in _DEBUGGERS)
               for statement in node.body for inner in ast.walk(statement))


def converted(node: ast.FunctionDef, freevars: tuple[str, ...]) -> ast.FunctionDef:
    """A plain function whose calls go through `ag__.converted_call`, with all of its nodes at their lines.

    Args:
        node: its syntax tree, which is changed.
        freevars: the variables of functions around it, which may have no value.
    """
    rewriter = _Calls(frozenset(freevars))
    node.body = [rewriter.visit(statement) for statement in node.body]
    node.decorator_list, node.returns = [], None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return node


class _Calls(ast.NodeTransformer):
    """Rewrites calls, and reads of variables that may have no value."""

    def __init__(self, freevars: frozenset[str]) -> None:
        self.freevars = freevars
        self.in_item = False  # of a `with`, whose calls stay as they are

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.freevars or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Call(_operator("ld"), [node], []), node)

    def visit_withitem(self, node: ast.withitem) -> ast.AST:
        self.in_item = True
        visited = self.generic_visit(node)
        self.in_item = False
        return visited

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        annotation = node.annotation
        node.annotation = ast.Constant(None)
        self.generic_visit(node)
        node.annotation = annotation
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if self.in_item or _is_operator(node.func):
            return node
        keywords: ast.expr = ast.Constant(None)
        if node.keywords:
            keywords = ast.Call(ast.Name("dict", ast.Load()), [], node.keywords)
        call = ast.Call(_operator("converted_call"), [node.func, ast.Tuple(node.args, ast.Load()), keywords], [])
        return ast.copy_location(call, node)


def _operator(name: str) -> ast.Attribute:
    """A function of converted code."""
    return ast.Attribute(ast.Name("ag__", ast.Load()), name, ast.Load())


def _is_operator(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "ag__"
