"""malt's converters as we use them: their options, their order, and what we add to some of them.

malt is imported when the first function is converted, so its classes are derived from inside functions. It carries no
types: its objects are `Any`.
"""

from __future__ import annotations

import ast
import functools
import importlib.util  # malt's loader uses it without importing it
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias

from .autograph_lines import copy_line, line_of
from .autograph_syntax import FunctionNode
from .loop_options import set_loop_options

__all__ = ["MisplacedDirective", "transformed"]

#: the context of a conversion, which says which function is converted and with which options
Context: TypeAlias = Any

#: a converter: from a syntax tree and the context to the tree that comes of it
Stage: TypeAlias = Callable[[Any, Context], Any]

#: a class that derives from one of malt's transformers: called with a context, it has `visit(node)`
Transformer: TypeAlias = Any

_BLOCKS = (ast.If, ast.While, ast.For, ast.Try, ast.With)
_LOOPS = frozenset({ast.While, ast.For})
_JUMPS = frozenset({ast.Break, ast.Continue})
_TESTS = frozenset({ast.BoolOp, ast.UnaryOp, ast.Compare})

assert importlib.util


class MisplacedDirective(ValueError):
    """A directive stands where it has no effect.

    Attributes:
        line: its line.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def transformed(node: FunctionNode, fn: FunctionType, name: str) -> FunctionNode:
    """The converted syntax tree of a function.

    Args:
        node: its tree, which is changed.
        fn: the function.
        name: of the converted function.
    """
    from malt.core import unsupported_features_checker
    from malt.pyct import anno, cfg, inspect_utils, naming, qual_names, transformer
    from malt.pyct.static_analysis import activity, reaching_definitions
    namespace = inspect_utils.getnamespace(fn)
    info = transformer.EntityInfo(name=name, source_code="", source_file=fn.__code__.co_filename, future_features=(),
                                  namespace=namespace)
    context = transformer.Context(info, naming.Namer(namespace), _program())
    unsupported_features_checker.verify(node)
    graphs = cfg.build(node)
    node = qual_names.resolve(node)
    node = activity.resolve(node, context, None)
    node = reaching_definitions.resolve(node, context, graphs)
    anno.dup(node, {anno.Static.DEFINITIONS: anno.Static.ORIG_DEFINITIONS})
    for stage in _stages(node):
        node = stage(node, context)
    return node


def _stages(node: FunctionNode) -> list[Stage]:
    """The converters that a function needs; each costs milliseconds."""
    from malt.converters import (
        break_statements,
        call_trees,
        continue_statements,
        functions,
        logical_expressions,
        return_statements,
        variables,
    )
    nodes = list(ast.walk(node))
    kinds = {type(n) for n in nodes}
    inner = any(isinstance(m, ast.Return) for n in nodes if isinstance(n, _BLOCKS) for m in ast.walk(n))
    stages: list[tuple[object, Stage]] = [
              (True, functions.transform), (kinds & _LOOPS, _directives),
              (ast.Break in kinds, break_statements.transform), (kinds & _JUMPS, continue_statements.transform),
              (inner, return_statements.transform), (ast.Call in kinds, call_trees.transform),
              (kinds & {ast.If, *_LOOPS}, _control_flow), (ast.IfExp in kinds, _conditional_expressions),
              (inner or kinds & (_JUMPS | _TESTS), logical_expressions.transform), (True, variables.transform)]
    return [stage for needed, stage in stages if needed]


@functools.cache
def _program() -> Context:
    """The part of a context that malt's converters share: one choice of options for all functions."""
    from malt.core import converter

    class SilentOptions(converter.ConversionOptions):
        """Options that converted code need not spell out."""

        def call_options(self) -> SilentOptions:
            return self

        def to_ast(self) -> ast.expr:
            return ast.Constant(None)
    wanted = converter.Feature
    return converter.ProgramContext(SilentOptions(recursive=True, optional_features=(
        wanted.ASSERT_STATEMENTS, wanted.EQUALITY_OPERATORS, wanted.LISTS, wanted.BUILTIN_FUNCTIONS)))


def _conditional_expressions(node: ast.AST, context: Context) -> ast.AST:
    converted: ast.AST = _conditional_class()(context).visit(node)
    return converted


@functools.cache
def _conditional_class() -> Transformer:
    from malt.converters import conditional_expressions

    class ConditionalExpressions(conditional_expressions.ConditionalExpressionTransformer):
        """Conditional expressions, those inside of others too."""

        def visit_IfExp(self, node: ast.IfExp) -> Any:
            return super().visit_IfExp(self.generic_visit(node))
    return ConditionalExpressions


def _control_flow(node: Any, context: Context) -> ast.AST:
    from malt.pyct import cfg, qual_names
    from malt.pyct.static_analysis import activity, liveness, reaching_definitions, reaching_fndefs
    graphs = cfg.build(node)
    node = qual_names.resolve(node)
    node = activity.resolve(node, context, None)
    node = reaching_definitions.resolve(node, context, graphs)
    node = reaching_fndefs.resolve(node, context, graphs)
    node = liveness.resolve(node, context, graphs)
    stage = _control_flow_class()(context)
    stage.shared = _shared(node)
    converted: ast.AST = stage.visit(node)
    return converted


def _shared(node: ast.AST) -> frozenset[object]:
    """The variables of a function that functions inside of it assign."""
    from malt.pyct import qual_names
    body = node.body if isinstance(node, ast.FunctionDef) else []
    own = {name for inner in body if isinstance(inner, ast.With)
           for statement in inner.body if isinstance(statement, ast.Nonlocal) for name in statement.names}
    names = {name for inner in ast.walk(node) if isinstance(inner, ast.Nonlocal) for name in inner.names}
    return frozenset(qual_names.QN(name) for name in names - own)


@functools.cache
def _control_flow_class() -> Transformer:
    from malt.converters import control_flow

    class ControlFlow(control_flow.ControlFlowTransformer):
        """Statements; variables of surrounding functions are always among the results."""

        shared: frozenset[object] = frozenset()  # the variables that functions inside of the function declare nonlocal

        def _get_block_vars(self, node: ast.stmt, modified: frozenset[object]) -> tuple[list[object], object, int]:
            scope = self.state[control_flow._Function].scope
            if any(isinstance(inner, ast.Call) for inner in ast.walk(node)):
                modified = modified | (self.shared & scope.bound)  # a function that is called may assign them
            names, undefined, count = super()._get_block_vars(node, modified)
            outer = scope.nonlocals | scope.globals
            results = [*names[:count], *[v for v in names[count:] if v in outer]]
            return [*results, *[v for v in names[count:] if v not in outer]], undefined, len(results)
    return ControlFlow


def _directives(node: ast.AST, context: Context) -> ast.AST:
    converted: ast.AST = _directives_class()(context).visit(node)
    return converted


@functools.cache
def _directives_class() -> Transformer:
    from malt.converters import directives
    from malt.lang import directives as markers
    from malt.pyct import anno

    class Directives(directives.DirectivesTransformer):
        """Directives: `tf.autograph.experimental.set_loop_options` at the start of a loop.

        Attributes:
            first: the first statements of the loops around.
        """

        first: tuple[ast.stmt, ...] = ()

        def visit_Expr(self, node: ast.Expr) -> Any:
            visited: ast.Expr = self.generic_visit(node)
            call = visited.value
            if not isinstance(call, ast.Call) or anno.getanno(
                    call.func, directives.STATIC_VALUE, default=None) is not markers.set_loop_options:
                return visited
            if not self.first or node is not self.first[-1]:
                raise MisplacedDirective("tf.autograph.experimental.set_loop_options must be the first statement of "
                                         "the loop that it is for.", line_of(node))
            self._process_statement_directive(call, markers.set_loop_options)
            return copy_line(ast.Pass(), node)  # a loop that had no more needs a statement

        def _track_and_visit_loop(self, node: ast.For | ast.While) -> Any:
            self.first = (*self.first, node.body[0])
            visited = super()._track_and_visit_loop(node)
            self.first = self.first[:-1]
            return visited

        def visit_Name(self, node: ast.Name) -> Any:
            return self._ours(super().visit_Name(node))

        def visit_Attribute(self, node: ast.Attribute) -> Any:
            return self._ours(super().visit_Attribute(node))

        def _ours(self, node: ast.expr) -> ast.expr:
            if anno.getanno(node, directives.STATIC_VALUE, default=None) is set_loop_options:
                anno.setanno(node, directives.STATIC_VALUE, markers.set_loop_options)
            return node
    return Directives
