"""Branches and loops as functions: `tf.cond`, `tf.case`, `tf.switch_case`, `tf.while_loop`.

In eager execution they run Python's own. Inside `tf.function` a tensor decides when the function runs, and they are
staged by `tracer/conditional.py` and `tracer/loop.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from twofold._front.api import describe, one_part, public, tensor
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import dtypes as dt
from twofold.ir import nest, ops
from twofold.ir.errors import InvalidArgumentError, user_line
from twofold.tracer import autograph, conditional, invariants, loop
from twofold.tracer.composite import Composite
from twofold.tracer.operation import Operation
from twofold.tracer.operators import stage_assert, staged
from twofold.tracer.trace import current

__all__ = ["cond", "case", "switch_case", "while_loop"]


@public
def cond(pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None,
         name: str | None = None) -> Any:
    """The result of one of two functions, as a condition decides; the other does not run.

    Args:
        pred: a bool, or a scalar tensor.
        true_fn, false_fn: functions of no arguments. Inside `tf.function` their results must agree in structure and
            dtypes where `pred` is a tensor.
        name: has no effect.
    Returns:
        The result of the function that ran.
    Raises:
        TypeError: a function is not callable; or their results do not fit together inside `tf.function`.

    >>> import twofold as tf
    >>> x = tf.constant(2)
    >>> int(tf.cond(x > 1, lambda: x * 10, lambda: x))
    20
    """
    for which, fn in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(fn):
            raise TypeError(f"cond: '{which}' must be callable; got {fn!r}.")
    return _either(pred, true_fn, false_fn, "tf.cond")


def _ready(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's, converted where it is about to be traced."""
    return fn if current() is None else autograph.callee(fn)


def _predicate(pred: Any, what: str) -> Any:
    """A condition that a user gave; a list or an array is the tensor that it converts to."""
    return conditional.predicate(tensor(pred) if isinstance(pred, (list, tuple, np.ndarray)) else pred, what)


def _either(pred: Any, then: Any, otherwise: Any, what: str) -> Any:
    test = _predicate(pred, f"predicate of {what}")
    known = conditional.decided(test) if staged(test) else test
    if known is not None:
        return _chosen(then if known else otherwise)
    trace = current()
    assert trace is not None, "a staged condition belongs to a trace"
    before = len(trace.graph.nodes)
    result = conditional.branch(test, lambda: _chosen(then), lambda: _chosen(otherwise), what)
    return trace.effects_since(before, "cond") if result is None else result


@public
def case(pred_fn_pairs: Any, default: Callable[[], Any] | None = None, exclusive: bool = False, strict: bool = False,
         name: str = "case") -> Any:
    """The result of the function that is paired with the first condition that holds.

    Args:
        pred_fn_pairs: `(condition, function)` pairs; conditions are bools or scalar bool tensors.
        default: the function where no condition holds.
        exclusive: whether it is an error that several conditions hold.
        strict, name: have no effect.
    Returns:
        The result of the function that ran.
    Raises:
        TypeError: an entry is not a pair, or a function is not callable.
        tf.errors.InvalidArgumentError: no condition holds and there is no default; or several hold, and `exclusive`.

    >>> import twofold as tf
    >>> x = tf.constant(3)
    >>> int(tf.case([(x < 1, lambda: x), (x < 5, lambda: x * 2)], default=lambda: x * 100))
    6
    """
    pairs = _pairs(pred_fn_pairs, default)
    preds = [_predicate(p, "predicate of tf.case") for p, _ in pairs]
    if exclusive:
        _require_one(preds)
    if default is None:
        _require_any(preds)
        return _chain(preds[:-1], [fn for _, fn in pairs[:-1]], pairs[-1][1], "tf.case")
    return _chain(preds, [fn for _, fn in pairs], default, "tf.case")


def _pairs(given: Any, default: Any) -> list[tuple[Any, Any]]:
    if not isinstance(given, (list, tuple, Mapping)) or not given:
        raise TypeError(f"case: 'pred_fn_pairs' must be a list of pairs that is not empty; got {given!r}.")
    pairs = list(given.items()) if isinstance(given, Mapping) else list(given)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"case: each entry of 'pred_fn_pairs' must be a tuple (condition, function); got {pair!r}.")
        if not callable(pair[1]):
            raise TypeError(f"case: the functions of 'pred_fn_pairs' must be callable; got {pair[1]!r}.")
    if default is not None and not callable(default):
        raise TypeError(f"case: 'default' must be callable; got {default!r}.")
    return pairs


def _chosen(fn: Callable[[], Any]) -> Any:
    """The result of the branch that is taken, as `_read` gives its leaves: those of a branch that is staged, too."""
    result = _ready(fn)()
    if not any(isinstance(x, (Variable, Operation)) for x in nest.flatten(result)):
        return result  # a composite value made anew from its leaves would lose what is known of its static shape
    return nest.map_structure(_read, result)


def _read(leaf: Any) -> Any:
    """Of a variable its value, of an operation that does nothing None, and anything else as it is."""
    if isinstance(leaf, Variable):
        return leaf.read_value()
    if isinstance(leaf, Operation) and not (leaf.nodes or leaf.outputs or getattr(leaf, "updates", None)):
        return None
    return leaf


def _chain(preds: Sequence[Any], fns: Sequence[Any], last: Any, what: str) -> Any:
    if not preds:
        return _chosen(last)
    return _either(preds[0], fns[0], lambda: _chain(preds[1:], fns[1:], last, what), what)


def _require_one(preds: Sequence[Any]) -> None:
    count = ops.reduce_sum(tensor([ops.cast(tensor(p), dtype=dt.int32) for p in preds]))
    _require(ops.less_equal(count, 1), "case: more than one condition evaluated as True, but exclusive=True.")


def _require_any(preds: Sequence[Any]) -> None:
    _require(ops.reduce_any(tensor([tensor(p) for p in preds])), "case: none of the conditions evaluated as True, and "
                                                                  "there is no default.")


def _require(holds: Any, message: str) -> None:
    if staged(holds):
        stage_assert(holds, message)
    elif not bool(holds):
        raise InvalidArgumentError(None, "assert", f"{message}\n  {user_line()}")


@public
def switch_case(branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None,
                name: str = "switch_case") -> Any:
    """The result of the function that an index chooses.

    Args:
        branch_index: an integer, or a scalar integer tensor.
        branch_fns: functions in a list, a dict of them by number, or a list of `(number, function)` pairs.
        default: the function for all other numbers; the one of the largest number by default.
        name: has no effect.
    Returns:
        The result of the function that ran.
    Raises:
        TypeError: a number is no integer, or a function is not callable. ValueError: a number occurs twice.

    >>> import twofold as tf
    >>> int(tf.switch_case(tf.constant(1), [lambda: tf.constant(10), lambda: tf.constant(20)]))
    20
    """
    fns = _numbered(branch_fns)
    index = tensor(branch_index)
    if not index.dtype.is_integer:
        raise TypeError(f"switch_case: 'branch_index' must be an integer; got dtype {index.dtype.name}.")
    if default is not None and not callable(default):
        raise TypeError(f"switch_case: 'default' must be callable; got {default!r}.")
    numbers = sorted(fns)
    last = fns[numbers[-1]] if default is None else default
    listed = numbers[:-1] if default is None else numbers
    preds = [conditional.predicate(ops.equal(index, n)) for n in listed]
    return _chain(preds, [fns[n] for n in listed], last, "tf.switch_case")


def _numbered(given: Any) -> dict[int, Any]:
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, (list, tuple)):
        pairs = [p if isinstance(p, tuple) else (n, p) for n, p in enumerate(given)]
    else:
        pairs = []
    if not pairs:
        raise TypeError(f"switch_case: 'branch_fns' must be a list or dict of functions; got {given!r}.")
    for number, fn in pairs:
        if not isinstance(number, int):
            raise TypeError(f"switch_case: the numbers of 'branch_fns' must be Python integers; got {number!r}.")
        if not callable(fn):
            raise TypeError(f"switch_case: the function of number {number} must be callable; got {fn!r}.")
    branches = dict(pairs)
    if len(branches) != len(pairs):
        raise ValueError("switch_case: a number occurs twice in 'branch_fns'.")
    return branches


@public
def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, shape_invariants: Any = None,
               parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False,
               maximum_iterations: Any = None, name: str | None = None) -> Any:
    """Repeats a function as long as a condition of its variables holds.

    Args:
        cond: from the variables to a bool or a scalar bool tensor.
        body: from the variables to their next values, in the structure of `loop_vars`.
        loop_vars: a list or tuple of the first values: tensors, TensorArrays or structures of them.
        shape_invariants: a structure like `loop_vars` of tf.TensorShape (or tf.TensorSpec, or None for the shape that
            the variable begins with). Inside `tf.function`, None for a size says that it may vary between rounds.
        parallel_iterations, back_prop, swap_memory, name: have no effect.
        maximum_iterations: how many rounds there may be at most: one integer.
    Returns:
        The last values, in the structure of `loop_vars`.
    Raises:
        TypeError: `cond` or `body` is not callable, or `cond` gives no truth value; `maximum_iterations` is no integer,
            or an entry of `shape_invariants` no shape; a variable changes its structure or dtype inside `tf.function`.
        ValueError: there are no variables; `shape_invariants` has another structure than they have, or a variable does
            not fit its shape there; a variable changes its shape, and `shape_invariants` does not allow it.

    >>> import twofold as tf
    >>> i, total = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + i), (tf.constant(0), tf.constant(0)))
    >>> int(total)
    6
    """
    for which, fn in (("cond", cond), ("body", body)):
        if not callable(fn):
            raise TypeError(f"while_loop: '{which}' must be callable; got {fn!r}.")
    if not isinstance(loop_vars, (list, tuple, Mapping)) or not loop_vars:
        raise ValueError("while_loop: 'loop_vars' holds no variables: a list or tuple of them is expected.")
    limit = None if maximum_iterations is None else one_part(maximum_iterations, "maximum_iterations")
    shapes = invariants.of_variables(shape_invariants, loop_vars)
    if current() is None:
        return _run(_of_truth(cond), body, loop_vars, limit)
    return _stage(_of_truth(_ready(cond)), _ready(body), loop_vars, shapes, limit)


def _of_truth(cond: Callable[..., Any]) -> Callable[..., Any]:
    """The condition of a loop, which raises where it gives something that is neither true nor false, such as a list,
    which would be true for ever."""
    def checked(*args: Any, **kwargs: Any) -> Any:
        truth = cond(*args, **kwargs)
        if not isinstance(truth, (bool, int, float, np.generic, np.ndarray, Tensor)) and not hasattr(
                truth, "_read_tensor"):
            raise TypeError(f"while_loop: cond must give a bool or a scalar bool tensor; got {describe(truth)}.\n  "
                            f"{user_line()}")
        return truth
    return checked


def _tensors(values: Any) -> Any:
    return nest.map_structure(lambda v: v if isinstance(v, Composite) else tensor(v), values)


def _called(fn: Callable[..., Any], values: Any) -> Any:
    return fn(**values) if isinstance(values, Mapping) else fn(*values)


def _run(cond: Any, body: Any, values: Any, limit: int | None) -> Any:
    """The loop in eager execution: numbers and arrays reach the functions unconverted, and the results are tensors."""
    first, rounds = values, 0
    while (limit is None or rounds < limit) and _called(cond, values):
        values = _like(first, _called(body, values))
        rounds += 1
    return _tensors(values)


def _like(first: Any, given: Any) -> Any:
    """The body's result in the structure of the variables: a single variable needs no list around it."""
    if len(first) == 1 and not isinstance(given, (list, tuple, Mapping)):
        given = type(first)([given]) if not isinstance(first, Mapping) else {next(iter(first)): given}
    if isinstance(first, (list, tuple)) and isinstance(given, (list, tuple)) and len(first) == len(given) \
            and not hasattr(first, "_fields"):
        given = type(first)(given)
    nest.assert_same_structure(first, given, expand_composites=False)
    return given


def _stage(cond: Any, body: Any, values: Any, shapes: Mapping[Any, Any], limit: Any) -> Any:
    values = _tensors(values)
    keys = list(values) if isinstance(values, Mapping) else range(len(values))
    variables = [loop.LoopVariable(f"loop_vars[{k!r}]", values[k], shapes[k]) for k in keys]
    counter = [] if limit is None else [loop.LoopVariable("the number of rounds", tensor(0, dt.int64))]
    most = None if limit is None else ops.cast(tensor(limit), dtype=dt.int64)

    def packed(given: list[Any]) -> Any:
        rest = given[len(counter):]
        if isinstance(values, Mapping):
            return dict(zip(keys, rest, strict=True))
        return rest

    def test(given: list[Any]) -> Any:
        holds = conditional.predicate(_called(cond, packed(given)), "condition of tf.while_loop")
        return ops.logical_and(ops.less(given[0], most), tensor(holds)) if most is not None else holds

    def round_(given: list[Any]) -> list[Any]:
        after = _tensors(_like(values, _called(body, packed(given))))
        return [*[ops.add(c, 1) for c in given[:len(counter)]], *[after[k] for k in keys]]
    trips = int(limit) if isinstance(limit, int) else None
    after, _ = loop.while_loop(test, round_, [*counter, *variables], "tf.while_loop", trips)
    after = after[len(counter):]
    if isinstance(values, Mapping):
        return type(values)(zip(keys, after, strict=True))  # type: ignore[call-arg]
    return type(values)(*after) if hasattr(values, "_fields") else type(values)(after)
