"""Op definitions: each op is declared once, and every mode and backend derives from the declaration.

`@primitive(...)` turns a signature with a docstring into an `Op`; calling the Op goes through `apply`,
the single door. The door asks the current interpreter: eager execution, or a trace. This module owns
declaration, registry and door; shape rules are in `ir/rules.py`, the ops themselves in `ir/ops/`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any, Protocol

from .scalar import Reduction, ScalarBody
from .types import Attr, Attrs, GradientRule, HostFunction, Operand, Results, ShapeRule, Spec, TangentRule, ViewRule

__all__ = [
    "Op", "primitive", "apply", "interpreter", "tracing", "use_interpreter", "set_default_interpreter", "set_shortcuts",
    "REGISTRY",
]

REGISTRY: dict[str, Op] = {}


class Interpreter(Protocol):
    """Runs ops: `apply(op, inputs, attrs)` gives one result or a tuple of them."""

    def apply(self, op: Op, inputs: tuple[Operand, ...], attrs: Attrs) -> Results: ...


class Op:
    """A primitive operation. Positional parameters are operands, keyword-only ones attributes.

    Attributes:
        name: unique name, as IR text spells it.
        params: names of the operands; a single `*name` takes any number.
        defaults: attribute name -> default (`inspect.Parameter.empty` where there is none), in order.
        infer: shape rule `(op, *specs, **attrs) -> spec or tuple of specs`; alone rejects operands.
            A spec is anything with `.dims` (tuple of ints and Dims) and `.dtype`.
        vjp: gradient `(ct, out, *inputs, **attrs) -> ct or tuple`, in terms of ops; an entry may be None
            or a function of no arguments, called only when that operand's gradient is wanted. None when
            the op is not differentiable. With several outputs `ct` and `out` are tuples, and a missing
            cotangent is None.
        jvp: tangent `(tangents, out, *inputs, **attrs)`, or None to derive it from `vjp`.
        saves: the operand names (and "out") whose values `vjp` reads; the others reach it as specs.
        body: scalar body of an elementwise op.
        reduction: what a reduction does to each element.
        view: `(array, **attrs) -> array` by reshape, transpose and indexing alone, so that it serves arrays
            and symbolic layouts alike; no data moves.
        lower: name of the generator in `codegen/kernels` for structured ops.
        host: `(*arrays, **attrs) -> array(s)`, NumPy or LAPACK, where native code is not worth it.
        match: numbers of the operands that share a dtype, so that a Python number or an array among them takes
            the dtype of a tensor among them; all of an elementwise op's unless given.
        traits: words that passes and tests ask for, such as "elementwise" or "random". "total" says of an op with
            `lower` or `host` that it gives a result for all values of operands which `infer` accepts, so that passes
            may drop it or compute it early; others count as ops that may raise when they run. "compares": whole numbers
            beyond the range of the operands' dtype have a place in its order, too.
    """

    def __init__(self, signature: FunctionType, *, infer: ShapeRule, vjp: GradientRule | None,
                 jvp: TangentRule | None, saves: tuple[str, ...] | None, body: ScalarBody | None,
                 reduction: Reduction | None, view: ViewRule | None, lower: str | None, host: HostFunction | None,
                 traits: frozenset[str], match: tuple[int, ...] | None):
        self.name = self.__name__ = signature.__name__.rstrip("_")
        self.__doc__, self.__module__ = signature.__doc__, signature.__module__
        self._declared = signature
        code, given = signature.__code__, signature.__kwdefaults__ or {}
        positional, attributes = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        self.variadic = bool(code.co_flags & inspect.CO_VARARGS)
        self.params = code.co_varnames[:positional] + code.co_varnames[attributes:attributes + self.variadic]
        self.defaults: Attrs = {name: given.get(name, inspect.Parameter.empty)
                                for name in code.co_varnames[positional:attributes]}
        self.infer, self.vjp, self.jvp, self.body, self.reduction = infer, vjp, jvp, body, reduction
        self.view, self.lower, self.host, self.traits = view, lower, host, traits
        self.saves = saves
        self.match = match if match is not None else None if body is not None or self.variadic else ()

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters as they were declared."""
        return inspect.signature(self._declared)

    def __call__(self, *inputs: Operand, **attrs: Attr) -> Results:
        if not attrs:
            shortcut = _shortcut(self)
            if shortcut is not None:
                return shortcut(*inputs)
        return apply(self, inputs, attrs)

    def operands(self, values: Sequence[Spec]) -> list[tuple[str, Spec]]:
        """`(name, operand)` pairs for an error's text."""
        if self.variadic:
            return [(f"{self.params[0]}[{i}]", v) for i, v in enumerate(values)]
        return list(zip(self.params, values, strict=False))

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> str:
        return self.name


def primitive(*, infer: ShapeRule, vjp: GradientRule | None, jvp: TangentRule | None = None,
              saves: tuple[str, ...] | None = None, body: ScalarBody | None = None, reduction: Reduction | None = None,
              view: ViewRule | None = None, lower: str | None = None, host: HostFunction | None = None,
              traits: tuple[str, ...] = (), match: tuple[int, ...] | None = None
              ) -> Callable[[Callable[..., Results]], Op]:
    """Declare an op; see `Op` for what each part means.

    Exactly one of `body`, `reduction`, `view`, `lower` and `host` says what the op does. `vjp` must be
    given, if only as None.
    """
    def declare(signature: Callable[..., Results]) -> Op:
        assert isinstance(signature, FunctionType), "an op is declared by a function"
        name = signature.__name__.rstrip("_")
        if sum(x is not None for x in (body, reduction, view, lower, host)) != 1:
            raise TypeError(f"op {name}: give exactly one of body, reduction, view, lower, host")
        if not signature.__doc__ and sys.flags.optimize < 2:  # `python -OO` drops docstrings
            raise TypeError(f"op {name}: needs a docstring")
        if name in REGISTRY:
            raise TypeError(f"op {name} is declared twice")
        words = set(traits)
        words |= {"elementwise"} if body else set()
        words |= {"reduction"} if reduction else set()
        words |= {"view"} if view else set()
        words |= {"host"} if host else set()
        op = Op(signature, infer=infer, vjp=vjp, jvp=jvp, saves=saves, body=body, reduction=reduction, view=view,
                lower=lower, host=host, traits=frozenset(words), match=match)
        REGISTRY[name] = op
        return op
    return declare


_default: Interpreter | None = None
_current: ContextVar[Interpreter | None] = ContextVar("twofold_interpreter", default=None)


def set_default_interpreter(interp: Interpreter) -> None:
    """Set the interpreter that runs ops where no trace is under way: eager execution."""
    global _default
    _default = interp


def set_shortcuts(shortcuts: Mapping[Op, Callable[..., Results]]) -> None:
    """Set the shortcuts of ops: functions of operands that take calls without attributes, and go to the door with what
    they do not compute.

    Args:
        shortcuts: by op; their owner may add to them.
    """
    global _shortcut
    _shortcut = shortcuts.get


_no_shortcuts: Mapping[Op, Callable[..., Results]] = {}
_shortcut: Callable[[Op], Callable[..., Results] | None] = _no_shortcuts.get


def interpreter() -> Interpreter:
    """The interpreter of this context."""
    current = _current.get() or _default
    if current is None:
        raise RuntimeError("no interpreter is installed: import twofold, not its rooms")
    return current


# The interpreter that stages ops in this context, or None where they run at once; variables ask at every read.
tracing: Callable[[], Any] = _current.get  # a trace knows more than an interpreter must, which floors above use


@contextmanager
def use_interpreter(interp: Interpreter) -> Iterator[Interpreter]:
    """Run the ops of this block in this context through `interp`."""
    token = _current.set(interp)
    try:
        yield interp
    finally:
        _current.reset(token)


def apply(op: Op, inputs: tuple[Operand, ...], attrs: Attrs) -> Results:
    """The single door: run `op` on `inputs` with `attrs` in the current interpreter.

    Args:
        op: what to run.
        inputs: tensors, or values that the interpreter converts (Python numbers, lists, arrays).
        attrs: attributes by name; missing ones take the op's defaults.
    Returns:
        One tensor, or a tuple of them for an op with several outputs.
    Raises:
        OpError: the op's shape rule rejects the operands.
    """
    return (_current.get() or _default).apply(op, inputs, attrs)  # type: ignore[union-attr]
