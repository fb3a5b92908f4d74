"""Functions with a gradient of their own: `custom_gradient`, `recompute_grad`, `grad_pass_through`.

Such a function runs as any other, so that what its gradient function captures depends on its arguments and
higher orders hold. Its results are then renamed, and recorders are told that the new tensors come from the
arguments by the rule of the user.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from twofold.ir import nest, ops, surroundings
from twofold.ir.grad import zeros_like
from twofold.ir.op import Op, tracing
from twofold.ir.spec import spec
from twofold.ir.types import AnyTensor, Attrs
from twofold.runtime import native
from twofold.runtime.native_layout import PythonFunction

from . import convert, record
from .tape import GradientTape
from .tensor import Tensor, alias
from .types import AnyVariable, Args, Kwargs, Nest, Vjp

__all__ = ["SignatureOf", "custom_gradient", "recompute_grad", "grad_pass_through"]


@native.guard
def custom_gradient(f: PythonFunction | None = None) -> PythonFunction:
    """Decorator that gives a function a gradient of its own.

    Args:
        f: a function that returns `(result, grad_fn)`. `result` is a tensor or a structure of tensors.
            `grad_fn(*dresult)` gets the gradient of each tensor of the result and returns the gradient of each
            input: a tensor or None for one input, a list for several. The inputs are the positional arguments,
            which reach `f` as tensors, then those keyword arguments that are float or complex tensors or
            variables, in the order of the signature of `f`.
            A function that reads trainable variables that are not its inputs needs
            `grad_fn(*dresult, variables=None)`, which returns `(gradients, variable_gradients)`, with a gradient
            for each of the list `variables`.
    Returns:
        A function that returns `result`. In any gradient of any order `grad_fn` takes the place of what `f` does.
        Without `f`, a decorator.
    Raises:
        TypeError: `f` returns something else, or reads variables that `grad_fn` has no argument for.
        ValueError: (when gradients are computed) `grad_fn` returned the wrong number of gradients.

    >>> import twofold as tf
    >>> @tf.custom_gradient
    ... def log1pexp(x):
    ...     e = tf.exp(x)
    ...     return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    >>> x = tf.constant(100.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = log1pexp(x)
    >>> tape.gradient(y, x).numpy().item()
    1.0
    """
    return custom_gradient if f is None else Decorated(f, _call_custom)


@native.guard
def recompute_grad(f: PythonFunction) -> PythonFunction:
    """A function like `f` that keeps no intermediate values for its gradient and computes them once more instead.

    Args:
        f: a function of tensors that returns a tensor or a structure of tensors. It must do the same each time:
            random numbers, or variables assigned between result and gradient, give a gradient of other values.
    Returns:
        A function of the same arguments. Positional arguments reach `f` as tensors.

    >>> import twofold as tf
    >>> f = tf.recompute_grad(lambda x: tf.exp(tf.sin(x)))
    >>> x = tf.constant(0.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = f(x)
    >>> tape.gradient(y, x).numpy().item()
    1.0
    """
    return Decorated(f, _call_recomputed)


@native.guard
def grad_pass_through(f: PythonFunction) -> PythonFunction:
    """A function that computes `f` and whose gradient is that of the identity.

    Args:
        f: a function that returns as many tensors as it has inputs, of their shapes. Variables that it reads get
            no gradient.

    >>> import twofold as tf
    >>> x = tf.constant(1.7)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = tf.grad_pass_through(tf.round)(x)
    >>> y.numpy().item(), tape.gradient(y, x).numpy().item()
    (2.0, 1.0)
    """
    def passing(*args: object, **kwargs: object) -> tuple[Nest, PythonFunction]:
        def grad_fn(*dys: Tensor, variables: Sequence[AnyVariable] | None = None) -> Nest:
            return (list(dys), [None] * len(variables)) if variables else list(dys)
        return f(*args, **kwargs), grad_fn
    functools.update_wrapper(passing, f)
    return Decorated(passing, _call_custom)


def _enter(decorated: Decorated, *args: object, **kwargs: object) -> Nest:
    return decorated._call_with(decorated.function, args, kwargs)


class SignatureOf:
    """`__signature__` of objects that stand for functions, which `inspect` reads before it looks at what they are.

    Args:
        read: gives the signature of an object; None where there is none, as of the class itself.
    """

    def __init__(self, read: Callable[[Any], inspect.Signature | None]) -> None:
        self._read = read

    def __get__(self, instance: object, owner: type | None = None) -> inspect.Signature | None:
        return None if instance is None else self._read(instance)


def _signature(decorated: Decorated) -> inspect.Signature | None:
    try:
        return inspect.signature(decorated.function)
    except (TypeError, ValueError):  # a builtin without a signature
        return None


class Decorated:
    """A function that is called by way of `call(f, args, kwargs)`; a method when it stands in a class.

    Attributes:
        function: the function that was decorated.
    """

    __call__: PythonFunction = native.as_method(native.guard(_enter, "__call__"))
    __signature__ = SignatureOf(_signature)

    def __init__(self, f: PythonFunction, call: Callable[[PythonFunction, Args, Kwargs], Nest]):
        functools.update_wrapper(self, f)
        self.function, self._call_with = f, call

    def over(self, f: PythonFunction) -> Decorated:
        """The same decoration of another form of the function, such as the converted one."""
        return self if f is self.function else Decorated(f, self._call_with)

    def __get__(self, instance: object, owner: type | None = None) -> Decorated:
        return self if instance is None else Decorated(self.function.__get__(instance, owner), self._call_with)

    def __repr__(self) -> str:
        return f"<{self.function!r} with a gradient of its own>"


class _Reads:
    """A recorder of the trainable variables that are read, with the last value of each."""

    def __init__(self) -> None:
        self.variables: dict[int, tuple[AnyVariable, Tensor]] = {}

    def _record(self, op: Op, attrs: Attrs, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """Does nothing: this recorder only notes variables."""

    def _record_custom(self, vjp: Vjp, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
                       continues: bool = False) -> None:
        """Does nothing."""

    def _record_further(self, vjp: Vjp, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], first: int) -> None:
        """Does nothing."""

    def _follows(self, tensor: Tensor) -> bool:
        """Follows no tensor."""
        return False

    def _variable_read(self, variable: AnyVariable, value: Tensor) -> None:
        """Remember the variable, if gradients may be wanted for it."""
        if variable.trainable and variable.dtype.is_differentiable:
            self.variables[id(variable)] = (variable, value)


class _Inputs:
    """The arguments of one call: what `f` gets, and the tensors among them that have gradients."""

    def __init__(self, f: PythonFunction, args: Args, kwargs: Kwargs):
        self.args = nest.map_structure(convert.as_tensor, list(args))
        self.kwargs = {name: nest.map_structure(_value, kwargs[name]) for name in _in_order(f, kwargs)}
        named = nest.flatten(list(self.kwargs.values()))
        self.positional = len(nest.flatten(self.args))
        self.counted = [True] * self.positional + [_counts(x) for x in named]  # which leaves are inputs
        self.tensors = [x for x, c in zip(nest.flatten(self.args) + named, self.counted, strict=True) if c]

    def replaced(self, tensors: Sequence[Tensor]) -> tuple[list[object], Kwargs]:
        """`(args, kwargs)` with `tensors` in the places of the inputs."""
        leaves = iter(tensors)
        args = nest.pack(self.args, [next(leaves) for _ in range(self.positional)])
        return args, {name: nest.map_structure(lambda x: next(leaves) if _counts(x) else x, value)
                      for name, value in self.kwargs.items()}

    def gradients(self, returned: Nest) -> list[AnyTensor | None]:
        """One gradient or None per input, from what a gradient function returned.

        Entries for all arguments do as well, if there are any that are no inputs.
        Raises:
            ValueError: there are too few or too many.
        """
        flat = nest.flatten(returned)
        if len(flat) == len(self.counted):
            flat = [g for g, counts in zip(flat, self.counted, strict=True) if counts]
        if len(flat) != len(self.tensors):
            raise ValueError(f"custom_gradient function expected to return {len(self.tensors)} gradients, "
                             f"for {self.positional} positional and {len(self.tensors) - self.positional} keyword "
                             f"inputs, but returned {len(flat)} instead.")
        return [None if g is None else convert.as_tensor(g, hint=x.dtype)
                for g, x in zip(flat, self.tensors, strict=True)]


def _value(x: object) -> object:
    return x._read_tensor() if hasattr(x, "_read_tensor") else x


def _counts(value: object) -> bool:
    return isinstance(value, Tensor) and value.dtype.is_differentiable


def _in_order(f: PythonFunction, kwargs: Kwargs) -> list[str]:
    """The names of `kwargs` in the order of the signature of `f`; those it does not name come last."""
    if not kwargs:
        return []
    try:
        names = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):  # a builtin without a signature
        names = []
    return [n for n in names if n in kwargs] + [n for n in kwargs if n not in names]


def _call_custom(f: PythonFunction, args: Args, kwargs: Kwargs) -> Nest:
    inputs = _Inputs(f, args, kwargs)
    reads = _Reads()
    with record.telling((reads, *record.active.get())):
        returned = f(*inputs.args, **inputs.kwargs)
    if not isinstance(returned, tuple) or len(returned) != 2 or not callable(returned[1]):
        raise TypeError("@tf.custom_gradient: the function must return a pair (result, grad_fn); "
                        f"{_name(f)} returned {type(returned).__name__}.")
    result, grad_fn = returned
    read = [(v, value) for v, value in reads.variables.values() if not any(value is x for x in inputs.tensors)]
    if read and not _takes_variables(grad_fn):
        raise TypeError("@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses "
                        f"variables: {[v.name for v, _ in read]}.")
    variables = [v for v, _ in read]

    def backward(dys: list[AnyTensor]) -> list[AnyTensor | None]:
        if not variables:
            return inputs.gradients(grad_fn(*dys))
        both = grad_fn(*dys, variables=variables)
        if not isinstance(both, (tuple, list)) or len(both) != 2:
            raise ValueError("Must return gradients of inputs and of variables, as (gradients, variable_gradients), "
                             "from @custom_gradient grad_fn.")
        of_inputs, of_variables = inputs.gradients(both[0]), nest.flatten(both[1])
        if len(of_variables) != len(variables):
            raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn: "
                             f"{len(variables)} variables, {len(of_variables)} gradients.")
        return of_inputs + [None if g is None else convert.as_tensor(g, hint=v.dtype)
                            for g, v in zip(of_variables, variables, strict=True)]
    return _renamed(result, inputs.tensors + [value for _, value in read], backward)


def _call_recomputed(f: PythonFunction, args: Args, kwargs: Kwargs) -> Nest:
    inputs = _Inputs(f, args, kwargs)
    reads = _Reads()
    with record.telling((reads,)):
        result = f(*inputs.args, **inputs.kwargs)
    variables = [v for v, _ in reads.variables.values()]
    values = [value for _, value in reads.variables.values()]
    for variable, value in reads.variables.values():  # who records was not told
        for recorder in record.active.get():
            recorder._variable_read(variable, value)

    around = surroundings.around()

    def backward(dys: list[AnyTensor]) -> list[AnyTensor | None]:
        with surroundings.again(around), GradientTape(watch_accessed_variables=False) as tape:
            sources = [ops.identity(x) for x in inputs.tensors]
            tape.watch([*sources, *variables])
            again, named = inputs.replaced(sources)
            results = [convert.as_tensor(r) for r in nest.flatten(f(*again, **named))]
        gradients: list[AnyTensor | None] = tape.gradient(results, [*sources, *variables], dys)
        return gradients
    return _renamed(result, inputs.tensors + values, backward)


def _renamed(result: Nest, inputs: list[Tensor],
             backward: Callable[[list[AnyTensor]], list[AnyTensor | None]]) -> Nest:
    """The tensors of `result` under other identities, which recorders know to come from `inputs` by `backward`."""
    results, trace = [convert.as_tensor(r) for r in nest.flatten(result)], tracing()
    outputs = [alias(r) for r in results] if trace is None else trace.custom(results, inputs, backward)
    outlines = [spec(o.dims, o.dtype) for o in outputs]

    def vjp(cts: Sequence[AnyTensor | None]) -> list[AnyTensor | None]:
        return backward([zeros_like(o) if ct is None else ct for ct, o in zip(cts, outlines, strict=True)])
    record.record_custom(vjp, tuple(inputs), tuple(outputs))
    return nest.pack(result, outputs)


def _takes_variables(grad_fn: PythonFunction) -> bool:
    try:
        params = inspect.signature(grad_fn).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind is p.VAR_KEYWORD or (p.name == "variables" and p.kind is not p.POSITIONAL_ONLY) for p in params)


def _name(f: PythonFunction) -> str:
    return getattr(f, "__name__", repr(f))
