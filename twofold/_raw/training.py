"""Raw ops that move variables by gradients: the steps of optimizers, on whole variables or on rows of them.

Each step is a function from the values of the variables, and the op's other arguments, to new values. Of ops with
`indices` the values are those of the rows that these name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import twofold as tf

from .declared import FUNCTIONS, RawFunction

__all__ = ["ROWS"]

ROWS = ""

Step = Callable[..., tuple[Any, ...]]


def _step(slots: int, rows: bool = True) -> Callable[[Step], Step]:
    """Declare the op of a step, and that of its rows.

    Args:
        slots: how many variables there are: the first arguments.
        rows: whether there is an op for rows, too.
    """
    def declare(step: Step) -> Step:
        name = "".join(part[0].upper() + part[1:] for part in step.__name__.split("_"))
        for kind in ("ResourceApply", "ResourceSparseApply")[:1 + rows]:
            raw = kind + name.replace("Rmsprop", "RMSProp")
            FUNCTIONS[raw] = RawFunction(raw, _moving(step, slots, kind == "ResourceSparseApply"), "", "")
        return step
    return declare


def _moving(step: Step, slots: int, by_rows: bool) -> Callable[..., None]:
    """The op of a step: its arguments, and `use_locking`, which has no effect: a call that assigns is one step."""
    signature = inspect.signature(step)
    parameters = list(signature.parameters.values())
    names = [p.name for p in parameters[:slots]]
    if by_rows:
        parameters = [p.replace(name="grad") if p.name == "delta" else p for p in parameters]
        place = next(n for n, p in enumerate(parameters) if p.name == "grad") + 1
        parameters.insert(place, inspect.Parameter("indices", inspect.Parameter.POSITIONAL_OR_KEYWORD))
    given = [p for p in parameters if p.default is p.empty]
    locking = inspect.Parameter("use_locking", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False)

    @functools.wraps(step)
    def move(**values: Any) -> None:
        del values["use_locking"]
        variables = [values.pop(name) for name in names]
        rows = values.pop("indices", None)
        others = {"delta" if name == "grad" and "delta" in signature.parameters else name: value if isinstance(
            value, bool) else tf.convert_to_tensor(value, variables[0].dtype) for name, value in values.items()}
        before = [v.read_value() if rows is None else tf.gather(v, rows) for v in variables]
        for variable, value in zip(variables, step(*before, **others), strict=True):
            if rows is None:
                variable.assign(value)
            else:
                variable.scatter_nd_update(tf.convert_to_tensor(rows)[:, None], value)
    move.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*given, locking, *[p for p in parameters if p not in given]])
    return move


def _shrunk(x: Any, by: Any, scale: Any) -> Any:
    """Brought nearer to zero by as much, at most to it, and divided."""
    return tf.sign(x) * tf.maximum(tf.abs(x) - by, 0.0) / scale


# -- descents -----------------------------------------------------------------------------------------
@_step(1, rows=False)
def gradient_descent(var: Any, alpha: Any, delta: Any) -> tuple[Any, ...]:
    return (var - alpha * delta,)


@_step(1)
def proximal_gradient_descent(var: Any, alpha: Any, l1: Any, l2: Any, delta: Any) -> tuple[Any, ...]:
    return (_shrunk(var - alpha * delta, alpha * l1, 1 + alpha * l2),)


@_step(2)
def momentum(var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, use_nesterov: bool = False) -> tuple[Any, ...]:
    accum = accum * momentum + grad
    return var - (grad * lr + accum * momentum * lr if use_nesterov else accum * lr), accum


@_step(2)
def keras_momentum(var: Any, accum: Any, lr: Any, grad: Any, momentum: Any,
                   use_nesterov: bool = False) -> tuple[Any, ...]:
    accum = accum * momentum - grad * lr
    return var + (accum * momentum - grad * lr if use_nesterov else accum), accum


@_step(2, rows=False)
def add_sign(var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any) -> tuple[Any, ...]:
    m = m * beta + grad * (1 - beta)
    return var - lr * (alpha + sign_decay * tf.sign(grad) * tf.sign(m)) * grad, m


@_step(2, rows=False)
def power_sign(var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any) -> tuple[Any, ...]:
    m = m * beta + grad * (1 - beta)
    return var - lr * tf.exp(logbase * sign_decay * tf.sign(grad) * tf.sign(m)) * grad, m


# -- squares of gradients -----------------------------------------------------------------------------
@_step(2)
def adagrad(var: Any, accum: Any, lr: Any, grad: Any, update_slots: bool = True) -> tuple[Any, ...]:
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr * tf.math.rsqrt(accum), accum


@_step(2)
def adagrad_v2(var: Any, accum: Any, lr: Any, epsilon: Any, grad: Any, update_slots: bool = True) -> tuple[Any, ...]:
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr / (tf.sqrt(accum) + epsilon), accum


@_step(2)
def proximal_adagrad(var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any) -> tuple[Any, ...]:
    accum += grad * grad
    rate = lr * tf.math.rsqrt(accum)
    return _shrunk(var - rate * grad, rate * l1, 1 + rate * l2), accum


@_step(3)
def adadelta(var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any) -> tuple[Any, ...]:
    accum = accum * rho + grad * grad * (1 - rho)
    update = tf.sqrt(accum_update + epsilon) * tf.math.rsqrt(accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + update * update * (1 - rho)


@_step(3)
def rmsprop(var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any) -> tuple[Any, ...]:
    ms += (grad * grad - ms) * (1 - rho)
    mom = mom * momentum + grad * lr * tf.math.rsqrt(ms + epsilon)
    return var - mom, ms, mom


@_step(4)
def centered_rmsprop(var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any,
                     grad: Any) -> tuple[Any, ...]:
    ms += (grad * grad - ms) * (1 - rho)
    mg += (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr * tf.math.rsqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


# -- means of gradients -------------------------------------------------------------------------------
@_step(3, rows=False)
def adam(var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any,
         grad: Any, use_nesterov: bool = False) -> tuple[Any, ...]:
    rate = lr * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
    m += (grad - m) * (1 - beta1)
    v += (grad * grad - v) * (1 - beta2)
    mean = grad * (1 - beta1) + m * beta1 if use_nesterov else m
    return var - mean * rate / (tf.sqrt(v) + epsilon), m, v


@_step(4, rows=False)
def adam_with_amsgrad(var: Any, m: Any, v: Any, vhat: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any,
                      beta2: Any, epsilon: Any, grad: Any) -> tuple[Any, ...]:
    rate = lr * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
    m += (grad - m) * (1 - beta1)
    v += (grad * grad - v) * (1 - beta2)
    vhat = tf.maximum(vhat, v)
    return var - m * rate / (tf.sqrt(vhat) + epsilon), m, v, vhat


@_step(3, rows=False)
def ada_max(var: Any, m: Any, v: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any,
            grad: Any) -> tuple[Any, ...]:
    m += (grad - m) * (1 - beta1)
    v = tf.maximum(v * beta2, tf.abs(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v


# -- sums of gradients --------------------------------------------------------------------------------
@_step(3)
def ftrl(var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any,
         multiply_linear_by_lr: bool = False) -> tuple[Any, ...]:
    return _led(var, accum, linear, grad, grad, lr, l1, l2, lr_power, multiply_linear_by_lr)


@_step(3)
def ftrl_v2(var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, l2_shrinkage: Any, lr_power: Any,
            multiply_linear_by_lr: bool = False) -> tuple[Any, ...]:
    return _led(var, accum, linear, grad, grad + 2 * l2_shrinkage * var, lr, l1, l2, lr_power, multiply_linear_by_lr)


def _led(var: Any, accum: Any, linear: Any, grad: Any, with_shrinkage: Any, lr: Any, l1: Any, l2: Any, power: Any,
         by_rate: bool) -> tuple[Any, ...]:
    new = accum + grad * grad
    now, before = tf.pow(new, -power), tf.pow(accum, -power)
    if by_rate:
        linear += with_shrinkage * lr - (now - before) * var
        scale, least = now + 2 * l2 * lr, l1 * lr
    else:
        linear += with_shrinkage - (now - before) / lr * var
        scale, least = now / lr + 2 * l2, l1
    return -_shrunk(linear, least, scale), new, linear


@_step(3)
def adagrad_d_a(var: Any, gradient_accumulator: Any, gradient_squared_accumulator: Any, grad: Any, lr: Any, l1: Any,
                l2: Any, global_step: Any) -> tuple[Any, ...]:
    total, squares = gradient_accumulator + grad, gradient_squared_accumulator + grad * grad
    return -lr * _shrunk(total, l1 * global_step, l2 * global_step * lr + tf.sqrt(squares)), total, squares
