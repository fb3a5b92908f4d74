"""From a function to the syntax tree of its converted form.

Reads the function's source, hands it to diastatic-malt's transformers with the options we use, where it has control
flow, and gives the nodes of the result the lines of the source they came from.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import types
from contextlib import suppress
from typing import Any, NamedTuple

from twofold.ir.errors import line_text

from . import autograph_malt, autograph_plain
from .autograph_lines import note_lines, place
from .autograph_stages import MisplacedDirective, transformed
from .autograph_syntax import FunctionNode, prepared

__all__ = ["Unconvertible", "Converted", "tree_of"]


class Unconvertible(ValueError):
    """A function has no source, or has parts that cannot be converted."""


class Converted(NamedTuple):
    """A module that defines `outer_factory`, and what compiling it takes.

    Attributes:
        name: of the converted function in the module.
        shown: of the user's function, which tracebacks show.
        flags: those of the user's `from __future__` imports.
    """

    tree: ast.Module
    name: str
    shown: str
    file: str
    freevars: tuple[str, ...]
    flags: int


_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def tree_of(fn: types.FunctionType) -> Converted:
    """The converted form of a function.

    Raises:
        Unconvertible: there is no source, or it has what cannot be converted.
        ValueError: it has a directive where it has no effect.
    """
    code = fn.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise Unconvertible(f"{fn.__name__} is a generator or a coroutine")
    node = _parsed(code, fn.__globals__)
    name = _new_name("ag__" + ("lam" if isinstance(node, ast.Lambda) else node.name), fn)
    _drop_defaults(node)
    try:
        node = prepared(node, fn)
        result: FunctionNode
        if autograph_plain.is_plain(node):
            result, noted = autograph_plain.converted(node, code.co_freevars), False
        else:
            result, noted = _by_malt(node, fn, name), True
    except MisplacedDirective as e:
        where = line_text(code.co_filename, e.line, code.co_name)
        raise ValueError(f"{e}\n  {where}") from None
    except Exception as e:
        raise Unconvertible(f"{fn.__name__}: {e}") from e
    definition: ast.stmt
    if isinstance(result, ast.Lambda):
        definition = ast.Assign(targets=[ast.Name(name, ast.Store())], value=result)
    else:
        definition, result.name = result, name
    tree = _module(definition, name, code.co_freevars)
    place(tree, code.co_firstlineno, noted)
    return Converted(tree, name, code.co_name, code.co_filename, code.co_freevars, code.co_flags & _FUTURE)


def _new_name(stem: str, fn: types.FunctionType) -> str:
    """A name that means nothing yet where `fn` is defined."""
    taken, name, number = (fn.__globals__, fn.__code__.co_freevars), stem, 0
    while any(name in names for names in taken):
        number += 1
        name = f"{stem}_{number}"
    return name


def _by_malt(node: FunctionNode, fn: types.FunctionType, name: str) -> FunctionNode:
    """A function converted by malt, to which the name of an exception is a node, not a text."""
    autograph_malt.prepare()
    for handler in _handlers(node):
        handler.name = ast.copy_location(ast.Name(handler.name, ast.Store()), handler)
    note_lines(node, fn.__name__)
    result = transformed(node, fn, name)
    for handler in _handlers(result):
        handler.name = handler.name.id
    return result


def _handlers(tree: ast.AST) -> list[Any]:
    """The `except` clauses that name the exception."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name is not None]


def _drop_defaults(node: FunctionNode) -> None:
    """Defaults are the original function's own."""
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d if d is None else ast.Constant(None) for d in node.args.kw_defaults]


# -- source ---------------------------------------------------------------------------------------
def _parsed(code: types.CodeType, module: dict[str, object]) -> FunctionNode:
    """The syntax tree of a function with the lines of its file.

    Args:
        module: the function's globals, which know where the source of a file in an archive is.
    """
    if code.co_name == "<lambda>":
        return _lambda(code, module)
    # Not inspect.getsourcelines: it looks through all modules of the process for the one that a file belongs to.
    first = code.co_firstlineno
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, module)[first - 1:]
    if not lines:
        raise Unconvertible(f"the source of {code.co_name} cannot be had")
    indented = lines[0][:1] in " \t"
    tree = _first_block(["if 1:\n", *lines] if indented else lines, 1 if indented else 0)
    if tree is None:
        raise Unconvertible(f"the source of {code.co_name} cannot be read")
    node = tree.body[0]
    if isinstance(node, ast.If) and indented:
        node = node.body[0]
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        raise Unconvertible(f"the source of {code.co_name} cannot be found")
    ast.increment_lineno(node, first - (2 if indented else 1))
    return node


def _first_block(lines: list[str], start: int) -> ast.Module | None:
    """The syntax tree of the statement that begins at line `start` and of what stands before it; None where there is
    none that can be read.

    It ends where a line is indented no more than its first one, unless that is inside of brackets or of a string, or
    goes on from a decorator: then what stands before cannot be read. (`inspect.getblock` finds the end by tokens, whose
    patterns it compiles first.)
    """
    margin = _margin(lines[start])
    for end in range(start + 1, len(lines) + 1):
        inside = end < len(lines) and (lines[end].lstrip()[:1] in ("", "#") or _margin(lines[end]) > margin)
        if inside:
            continue
        with suppress(SyntaxError):
            return ast.parse("".join(lines[:end]))
    return None


def _margin(line: str) -> int:
    """How far a line is indented."""
    return len(line) - len(line.lstrip())


def _lambda(code: types.CodeType, module: dict[str, object]) -> ast.Lambda:
    """A lambda is found by the positions of its instructions."""
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, module))
    if not text:
        raise Unconvertible("the source of a lambda cannot be had")
    try:
        tree = ast.parse(text)
    except SyntaxError as e:
        raise Unconvertible("the source of a lambda cannot be read") from e
    places = [((line, col), (end, end_col)) for line, end, col, end_col in code.co_positions()
              if line is not None and end is not None and col is not None and end_col is not None
              and (line, col) != (end, end_col)]
    candidates = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno
                  and len(n.args.posonlyargs) + len(n.args.args) == code.co_argcount
                  and all(_start(n.body) <= first and last <= _end(n.body) for first, last in places)]
    if not places or not candidates:
        raise Unconvertible("the source of a lambda cannot be found")
    return max(candidates, key=_start)  # of a lambda within a lambda the inner one, as the outer has more instructions


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None, "the parser notes where nodes end"
    return node.end_lineno, node.end_col_offset


# -- the tree that is compiled --------------------------------------------------------------------
def _module(function: ast.stmt, name: str, freevars: tuple[str, ...]) -> ast.Module:
    """A module whose function gives a function that defines the converted one.

    The outer function declares the free variables, so that the inner one has cells for them.
    """
    cells = "; ".join(f"{v} = None" for v in freevars) or "pass"
    tree = ast.parse(f"def outer_factory():\n {cells}\n def inner_factory(ag__):\n  return {name}\n"
                     " return inner_factory")
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr, ast.arg)):
            del node.lineno  # the user's file has no such lines
    outer = tree.body[0]
    assert isinstance(outer, ast.FunctionDef)
    inner = outer.body[-2]
    assert isinstance(inner, ast.FunctionDef)
    inner.body.insert(0, function)
    return tree
