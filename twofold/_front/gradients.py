"""`tf.gradients`: derivatives by tensors of a function that is traced, or of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.eager.tape import UnconnectedGradients, unconnected_mode
from twofold.eager.tensor import Tensor
from twofold.ir import ops
from twofold.tracer.trace import current

from .api import public, tensor

__all__ = ["gradients", "hessians"]

_EAGER = "tf.{} is not supported when eager execution is enabled. Use tf.GradientTape instead."


@public
def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients", gate_gradients: bool = False,
              aggregation_method: Any = None, stop_gradients: Any = None,
              unconnected_gradients: Any = UnconnectedGradients.NONE) -> list[Any]:
    """The derivatives of the sum of `ys` by each of `xs`, inside of a `tf.function` or a graph; no tape is needed.

    Args:
        ys: a tensor or a list of tensors.
        xs: a tensor or variable, or a list of them.
        grad_ys: cotangents of `ys`, each of the y's shape; None, or None in the list, for ones.
        stop_gradients: tensors that count as constants in whatever is computed from them, so that partial derivatives
            come out where xs depend on each other.
        unconnected_gradients: what there is for an x that no y depends on: "none" for None, "zero" for zeros.
        name, gate_gradients, aggregation_method: accepted, without effect.
    Returns:
        A list with a tensor, or None, for each of `xs`.
    Raises:
        RuntimeError: ops run at once, where a tape gives gradients.
        ValueError: there are not as many of `grad_ys` as of `ys`, or one has another shape or dtype.
        UnimplementedError: Python that `tf.py_function` calls lies between.

    >>> import twofold as tf
    >>> @tf.function
    ... def slope(x):
    ...     return tf.gradients(x * x, x)[0]
    >>> float(slope(tf.constant(3.0)))
    6.0
    """
    trace = current()
    if trace is None:
        raise RuntimeError(_EAGER.format("gradients"))
    targets = [tensor(y) for y in _listed(ys)]
    sources = [_source(x) for x in _listed(xs)]
    weights = [None] * len(targets) if grad_ys is None else _listed(grad_ys)
    if len(weights) != len(targets):
        raise ValueError(f"Passed {len(weights)} grad_ys for {len(targets)} ys")
    weights = [_weight(w, y) for w, y in zip(weights, targets, strict=True)]
    stopped = [] if stop_gradients is None else [_source(x) for x in _listed(stop_gradients)]
    zeros = unconnected_mode(unconnected_gradients) is UnconnectedGradients.ZERO
    from twofold.tracer import symbolic_gradients
    return symbolic_gradients.gradients(trace, targets, sources, weights, stopped, zeros)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _source(x: Any) -> Any:
    return x if isinstance(x, Tensor) or hasattr(x, "_read_tensor") else tensor(x)


def _weight(weight: Any, y: Tensor) -> Any:
    if weight is None:
        return None
    made = tensor(weight, dtype=None if isinstance(weight, Tensor) else y.dtype)
    if made.dtype is not y.dtype:
        raise ValueError(f"Gradient type {made.dtype.name} generated for y {y!r} is of another type than it")
    if not made.shape.is_compatible_with(y.shape):
        raise ValueError(f"grad_ys: the shape {made.shape} does not fit {y.shape} of {y!r}")
    return made


@public
def hessians(ys: Any, xs: Any, gate_gradients: bool = False, aggregation_method: Any = None,
             name: str = "hessians") -> list[Any]:
    """The second derivatives of the sum of `ys` by each of `xs`, inside of a `tf.function` or a graph.

    Args:
        ys: a tensor or a list of tensors.
        xs: a tensor, or a list of them, whose sizes are all known.
        gate_gradients, aggregation_method, name: accepted, without effect.
    Returns:
        For each x of shape s a tensor of shape s + s.
    Raises:
        RuntimeError: ops run at once.
        ValueError: a size is unknown, or no y depends on an x.

    >>> import twofold as tf
    >>> @tf.function
    ... def curvature(x):
    ...     return tf.hessians(tf.reduce_sum(x ** 3), x)[0]
    >>> curvature(tf.constant([1.0, 2.0])).numpy().tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    if current() is None:
        raise RuntimeError(_EAGER.format("hessians"))
    return [_hessian(ys, x) for x in _listed(xs)]


def _hessian(ys: Any, x: Any) -> Tensor:
    sizes: Sequence[Any] = x.shape.as_list()
    if any(d is None for d in sizes):
        raise ValueError(f"tf.hessians: the sizes of {x!r} must be known")
    first = gradients(ys, x)[0]
    if first is None:
        raise ValueError(f"tf.hessians: ys do not depend on {x!r}")
    flat = ops.reshape(first, shape=(-1,)) if sizes else ops.reshape(first, shape=(1,))
    count = flat.dims[0]
    rows = []
    for i in range(count):
        element = ops.reshape(ops.slice_(flat, begin=(i,), size=(1,)), shape=())
        rows.append(gradients(element, x, unconnected_gradients="zero")[0])
    return ops.reshape(ops.concat(*[ops.reshape(row, shape=(-1,)) for row in rows], axis=0), shape=(*sizes, *sizes))
