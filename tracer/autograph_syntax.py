"""Syntax that is rewritten before conversion, because the converters do not know it.

    super()                  names its class and object
    self.__x                 gets the name that Python mangles it to
    for/while ... else       becomes a flag that `break` sets, and an `if`
    while (n := f()) > 0     tests inside of its body, where the variable is the function's own
    assert test, message     becomes a call, with any message
    items.append(x)          of a local variable becomes an assignment, so that branches and loops know that it changes
    def f(): "What it does." gets a `pass`: the converters take the docstring out, and a body may not be empty
"""

from __future__ import annotations

import ast
from ast import copy_location
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

__all__ = ["FunctionNode", "prepared"]

FunctionNode: TypeAlias = ast.FunctionDef | ast.Lambda
LoopNode: TypeAlias = ast.For | ast.While
_Loop = TypeVar("_Loop", ast.For, ast.While)


def prepared(node: FunctionNode, fn: FunctionType) -> FunctionNode:
    """The syntax tree of `fn`, rewritten."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | set(fn.__code__.co_freevars)
    rewritten: FunctionNode = _SyntaxRewriter(_class_of(fn), names).visit(node)
    return ast.fix_missing_locations(rewritten)


def _class_of(fn: FunctionType) -> str:
    """The name of the class that a method is defined in; empty for other functions."""
    outer = fn.__qualname__.rpartition(".")[0]
    return "" if not outer or outer.endswith("<locals>") else outer.rpartition(".")[2].lstrip("_")


class _SyntaxRewriter(ast.NodeTransformer):
    """Works through one function."""

    def __init__(self, class_name: str, names: set[str]) -> None:
        self.class_name, self.names = class_name, names
        self.functions: list[ast.FunctionDef] = []
        self.locals: list[set[str]] = []

    # -- functions --------------------------------------------------------------------------------
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.functions.append(node)
        self.locals.append(_bound(node))
        node.body = [inner for statement in node.body for inner in _listed(self.visit(statement))]
        if len(node.body) == 1 and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
            node.body.append(copy_location(ast.Pass(), node.body[0]))
        self.locals.pop()
        self.functions.pop()
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords:
            arguments = self.functions[0].args if self.functions else None
            first = [*arguments.posonlyargs, *arguments.args] if arguments is not None else []
            if first:
                node.args = [copy_location(ast.Name(name, ast.Load()), node) for name in ("__class__", first[0].arg)]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        self.generic_visit(node)
        if self.class_name and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self.class_name}{node.attr}"
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        self.generic_visit(node)
        check = ast.Attribute(ast.Name("ag__", ast.Load()), "assert_stmt", ast.Load())
        message = ast.Lambda(ast.arguments([], [], None, [], [], None, []), node.msg or ast.Constant(None))
        return copy_location(ast.Expr(ast.Call(check, [node.test, message], [])), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        return self._lazy(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._lazy(node)

    def _lazy(self, node: ast.expr) -> ast.AST:
        """An operand that runs only sometimes becomes a function, to which an assignment in it would belong."""
        if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
            raise NotImplementedError("`:=` inside of `and`, `or` or a conditional expression")
        return self.generic_visit(node)

    # -- lists ------------------------------------------------------------------------------------
    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        self.generic_visit(node)
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append"
                and isinstance(call.func.value, ast.Name) and len(call.args) == 1 and not call.keywords
                and not isinstance(call.args[0], ast.Starred)):
            return node
        name = call.func.value.id
        if not self.locals or name not in self.locals[-1]:
            return node
        append = ast.Attribute(ast.Name("ag__", ast.Load()), "list_append", ast.Load())
        value = ast.Call(append, [call.func.value, call.args[0]], [])
        return copy_location(ast.Assign([copy_location(ast.Name(name, ast.Store()), node)], value), node)

    # -- else of loops ----------------------------------------------------------------------------
    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def _loop(self, node: LoopNode) -> ast.AST | list[ast.stmt]:
        if not node.orelse:
            return self.generic_visit(_tested_inside(node))
        otherwise, node.orelse = node.orelse, []
        flag = self._fresh("broke")
        _Breaks(flag).body_of(node)
        self.generic_visit(_tested_inside(node))
        otherwise = [inner for statement in otherwise for inner in _listed(self.visit(statement))]
        test = ast.UnaryOp(ast.Not(), copy_location(ast.Name(flag, ast.Load()), node))
        return [_flag(flag, False, node), node, copy_location(ast.If(copy_location(test, node), otherwise, []), node)]

    def _fresh(self, stem: str) -> str:
        number = 0
        while (name := f"{stem}_{number}") in self.names:
            number += 1
        self.names.add(name)
        return name


class _Breaks(ast.NodeTransformer):
    """Sets a flag before each `break` of one loop."""

    def __init__(self, flag: str) -> None:
        self.flag = flag

    def body_of(self, loop: LoopNode) -> None:
        """Rewrite the loop's body."""
        loop.body = [inner for statement in loop.body for inner in _listed(self.visit(statement))]

    def visit_Break(self, node: ast.Break) -> list[ast.stmt]:
        return [_flag(self.flag, True, node), node]

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_Lambda = visit_ClassDef = visit_AsyncFunctionDef = _leave

    def visit_For(self, node: ast.For) -> ast.For:
        return self._inner(node)

    def visit_While(self, node: ast.While) -> ast.While:
        return self._inner(node)

    def _inner(self, node: _Loop) -> _Loop:
        """A loop inside: a `break` in its body is its own, one in its `else` is not."""
        node.orelse = [inner for statement in node.orelse for inner in _listed(self.visit(statement))]
        return node


def _tested_inside(loop: LoopNode) -> LoopNode:
    """A `while` whose test assigns, as an endless loop that breaks."""
    if isinstance(loop, ast.While) and any(isinstance(n, ast.NamedExpr) for n in ast.walk(loop.test)):
        left = copy_location(ast.UnaryOp(ast.Not(), loop.test), loop)
        stop = copy_location(ast.If(left, [copy_location(ast.Break(), loop)], []), loop)
        loop.test, loop.body = copy_location(ast.Constant(True), loop), [stop, *loop.body]
    return loop


def _flag(name: str, value: bool, like: ast.stmt) -> ast.Assign:
    """An assignment of a truth value, at the line of another statement."""
    return copy_location(ast.Assign([copy_location(ast.Name(name, ast.Store()), like)], ast.Constant(value)), like)


def _bound(node: ast.FunctionDef) -> set[str]:
    """The names that a function itself assigns, so that they are its own."""
    names = {a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}
    outer: set[str] = set()
    pending: list[ast.AST] = list(node.body)
    while pending:
        item = pending.pop()
        if isinstance(item, (ast.Global, ast.Nonlocal)):
            outer |= set(item.names)
        elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            names.add(item.id)
        if not isinstance(item, (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp,
                                 ast.GeneratorExp)):
            pending.extend(ast.iter_child_nodes(item))
    return names - outer


def _listed(item: Any) -> list[Any]:  # of `visit`: a node, a list of nodes, or None
    return [] if item is None else item if isinstance(item, list) else [item]
