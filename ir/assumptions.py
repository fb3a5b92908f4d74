"""Assumptions about sizes that only running can tell: where each comes from, and the error when it does not hold.

Shape rules assume what they cannot prove of unknown sizes (`dims.require`). What the sizes of the inputs decide is
tested when a function is called; the rest is tested when the graph runs, as soon as the sizes are there
(`runtime/program.py`), before native code relies on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import dims as dm
from . import errors
from .data_class import data_class
from .dims import DimLike, Guard
from .graph import Location
from .op import Op
from .replay import resolve
from .spec import TensorSpec
from .types import Attr

__all__ = ["Origin", "broken", "renamed"]


@data_class(frozen=True, eq=False)
class Origin:
    """The origin of an assumption: a rule of `op` for operands of `specs`, or other code where `op` is None; and the
    user's line."""

    op: Op | None
    specs: tuple[TensorSpec, ...]
    attrs: Mapping[str, Attr]
    loc: Location | None


def renamed(guard: Guard, env: Mapping[str, DimLike]) -> Guard:
    """The guard under other names of sizes."""
    left, right = resolve((guard.left, guard.right), env)
    origin = guard.origin
    if origin is not None:
        specs = tuple([TensorSpec(dm.substitute(s.dims or (), env), s.dtype) for s in origin.specs])
        origin = Origin(origin.op, specs, {k: resolve(v, env) for k, v in origin.attrs.items()}, origin.loc)
    return Guard(left, guard.op, right, origin)


def broken(guard: Guard, sizes: Mapping[str, int]) -> Exception:
    """The error for an assumption that these sizes break: the one that the op gives for them, where it gives one."""
    origin = guard.origin
    where = "" if origin is None or origin.loc is None else "\n  " + errors.line_text(*origin.loc)
    name = "shape" if origin is None or origin.op is None else origin.op.name
    raised = None if origin is None else _raised(origin, sizes)
    if isinstance(raised, errors.OpError):
        return errors.of_values(type(raised)(None, name, raised.message.split("\n  At ", 1)[0] + where))
    values = ", ".join(f"{n} = {sizes[n]}" for n in sorted(guard.symbols()))
    return errors.of_values(errors.InvalidArgumentError(
        None, name, f"{name}: {guard} was assumed of sizes that only running can tell; {values}.{where}"))


def _raised(origin: Origin, sizes: Mapping[str, int]) -> Exception | None:
    """The error that the rule raises for these sizes; None where it raises none."""
    if origin.op is None:
        return None
    try:
        specs = [TensorSpec(dm.evaluate(s.dims or (), sizes), s.dtype) for s in origin.specs]
        origin.op.infer(origin.op, *specs, **{k: resolve(v, sizes) for k, v in origin.attrs.items()})
    except (errors.OpError, KeyError) as error:  # KeyError: it speaks of further sizes, which are not there
        return error
    return None
