"""Forward-mode derivatives: `ForwardAccumulator` carries a tangent along with every op that runs.

The tangent of an op comes from its `jvp`, where it has one. Elementwise real ops have a diagonal Jacobian, so
that their gradient rule serves; a view of one operand is linear, so that it applies to the tangent itself.
Every other tangent is derived from the gradient rule: that is linear in the cotangent, and its own gradient
by the cotangent is the Jacobian-vector product (J. Townsend, "A new trick for calculating Jacobian vector
products", 2017). All of it is made of ops, which tapes and outer accumulators see.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from twofold.ir import grad, nest, ops
from twofold.ir.dims import Shape
from twofold.ir.grad import apply_rule, needed
from twofold.ir.op import Op
from twofold.ir.spec import TensorShape
from twofold.ir.types import AnyTensor, Attrs, Cotangent

from . import convert, record
from .tape import GradientTape, UnconnectedGradients, packed, unconnected_mode
from .tensor import Tensor
from .types import AnyVariable, Nest, Readable, Vjp

if TYPE_CHECKING:
    pass

__all__ = ["ForwardAccumulator"]

Tangents: TypeAlias = Sequence[AnyTensor | None]  # one or None for each operand or result

TensorMemory: TypeAlias = Any  # of a tensor, of whatever type the backend gives it; the tensor itself in a trace


class ForwardAccumulator:
    """Computes Jacobian-vector products of what runs in its block, while it runs.

    Args:
        primals: tensor, variable, or structure of them: the inputs to differentiate by.
        tangents: the direction: a structure like `primals` of values of the same shapes and dtypes.
    Raises:
        ValueError: the structures or shapes differ, or a tensor occurs twice among the primals.
        TypeError: a primal is neither tensor nor variable, or holds no floats.

    Blocks nest: the tangents of an inner accumulator are themselves differentiated by the outer ones,
    `outer.jvp(inner.jvp(y))`, and by tapes, whichever of them encloses the other.

    >>> import twofold as tf
    >>> x = tf.constant([1.0, 2.0])
    >>> with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as acc:
    ...     y = x * x * x
    >>> acc.jvp(y).numpy().tolist()
    [3.0, 0.0]
    """

    def __init__(self, primals: Nest, tangents: Nest):
        self._recording = False
        self._tangents: dict[int, tuple[weakref.ref[TensorMemory], AnyTensor]] = {}  # by a tensor's number
        self._variables: dict[int, tuple[AnyVariable, Tensor]] = {}  # id(variable) -> the variable, its tangent
        self._primals: list[Readable] = []
        nest.assert_same_structure(primals, tangents)
        pairs = zip(nest.flatten(primals), nest.flatten(tangents), strict=True)
        for value in nest.flatten(primals, expand_composites=False):
            for _ in nest.flatten(value):
                primal, tangent = next(pairs)
                if not nest.is_composite(value) or primal.dtype.is_differentiable:  # others say where elements are
                    self._watch(primal, tangent)

    def _watch(self, primal: Readable, tangent: object) -> None:
        if not hasattr(primal, "_read_tensor") and not isinstance(primal, Tensor):
            raise TypeError(f"primals must be tensors or variables; got {type(primal).__name__} {primal!r}.")
        if any(primal is p for p in self._primals):
            raise ValueError(f"Tensor {primal!r} was specified as a primal multiple times. This may indicate an error. "
                             "If it was intended, please sum the corresponding tangents.")
        if not primal.dtype.is_differentiable:
            raise TypeError(f"The dtype of a primal must be floating or complex; got {primal.dtype.name}.")
        tangent = convert.as_tensor(tangent, dtype=primal.dtype)
        if tuple(tangent.dims) != tuple(primal.dims):
            raise ValueError(f"A tangent of shape {tangent.shape} was given for a primal of shape "
                             f"{TensorShape(primal.dims)}.")
        self._primals.append(primal)
        if isinstance(primal, Tensor):
            self._set(primal, tangent)
        else:
            self._variables[id(primal)] = (primal, tangent)
            self._set(primal._value, tangent)

    # -- recording --------------------------------------------------------------------------------
    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise ValueError("Accumulator is already recording.")
        self._recording = True
        record.push(self, runs_ops=True)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording:
            self._stop()

    def _stop(self) -> None:
        self._recording = False
        record.pop(self)

    def __del__(self) -> None:
        if getattr(self, "_recording", False):
            self._stop()

    def _variable_read(self, variable: AnyVariable, value: Tensor) -> None:
        """Called by a variable when it is read."""
        entry = self._variables.get(id(variable))
        if entry is not None and self._recording:
            self._set(value, entry[1])

    def _record(self, op: Op, attrs: Attrs, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """Called by the interpreter for each op that ran."""
        if op.vjp is not None or op.jvp is not None:
            self._carry(inputs, outputs, lambda tangents: _of_op(op, attrs, inputs, outputs, tangents))

    def _follows(self, tensor: Tensor) -> bool:
        """Whether `tensor` has a tangent."""
        return self._recording and self._get(tensor) is not None

    def _record_custom(self, vjp: Vjp, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
                      continues: bool = False) -> None:
        """Like `_record`, for a function with a gradient of its own."""
        rule = (lambda cts: vjp(cts, None, ())) if continues else vjp
        self._carry(inputs, outputs, lambda tangents: _transposed(rule, outputs, tangents))

    def _record_further(self, vjp: Vjp, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
                       first: int) -> None:
        """Note further results of the function that was recorded with this `vjp`."""
        def rule(cts: Sequence[AnyTensor | None]) -> Sequence[AnyTensor | None]:
            return vjp([*[None] * first, *cts], None, ())
        self._carry(inputs, outputs, lambda tangents: _transposed(rule, outputs, tangents))

    def _carry(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               rule: Callable[[Tangents], Tangents]) -> None:
        """Give the results their tangents. The recorders that came before this accumulator are told of the ops that
        compute them."""
        tangents = [self._get(x) for x in inputs]
        if not self._recording or all(t is None for t in tangents):
            return
        recorders = record.active.get()
        with record.telling(recorders[:recorders.index(self)]):
            output_tangents = rule(tangents)
        for output, tangent in zip(outputs, output_tangents, strict=True):
            if tangent is not None and output.dtype.is_differentiable:
                self._set(output, tangent)

    def _get(self, x: Readable) -> AnyTensor | None:
        return self._tangents.get(getattr(x, "_id", 0), (None, None))[1]

    def _set(self, x: Tensor, tangent: AnyTensor) -> None:
        """Remember the tangent of `x` for as long as the memory of `x` lives."""
        number = record.identity(x)
        forget = functools.partial(_forget, weakref.ref(self), number)
        self._tangents[number] = (weakref.ref(getattr(x, "_memory", x), forget), tangent)

    # -- asking -----------------------------------------------------------------------------------
    def jvp(self, primals: Nest,
            unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE) -> Nest:
        """The Jacobian of `primals` by the accumulator's inputs, times their tangents.

        Args:
            primals: tensor, variable, or structure of them: results computed in the block.
            unconnected_gradients: what one gives that does not depend on the inputs: None or zeros.
        Returns:
            A tensor of the shape and dtype of each of `primals`, or None, in their structure. That of a composite
            value is one like it, with tangents in the places of the tensors that have some.
        """
        mode = unconnected_mode(unconnected_gradients)

        def find(x: Readable) -> AnyTensor | None:
            tangent: AnyTensor | None = self._variables[id(x)][1] if id(x) in self._variables else self._get(x)
            return grad.zeros_like(x) if tangent is None and mode is UnconnectedGradients.ZERO else tangent
        flat = nest.flatten(primals)
        return packed(primals, flat, [find(x) for x in flat])


def _forget(owner: weakref.ref[ForwardAccumulator], number: int, memory: weakref.ref[TensorMemory]) -> None:
    accumulator = owner()
    if accumulator is not None:
        accumulator._tangents.pop(number, None)


def _of_op(op: Op, attrs: Attrs, inputs: Sequence[Tensor], outputs: Sequence[Tensor],
           tangents: Tangents) -> Tangents:
    """The tangents of an op's results from those of its operands."""
    if op.jvp is not None:
        single = len(outputs) == 1
        output_tangents = op.jvp(tuple(tangents), outputs[0] if single else tuple(outputs), *inputs, **attrs)
        return (output_tangents,) if single else output_tangents
    if op.view is not None and len(inputs) == 1 and tangents[0] is not None:
        return [op(tangents[0], **attrs)]
    if op.body is not None and _is_diagonal(inputs, outputs, tangents):
        return [_diagonal(op, attrs, inputs, outputs, tangents)]
    return _transposed(lambda cts: apply_rule(op, attrs, inputs, outputs, cts), outputs, tangents)


def _is_diagonal(inputs: Sequence[Tensor], outputs: Sequence[Tensor], tangents: Tangents) -> bool:
    """Whether each tangent can stand in for the cotangent of an elementwise op."""
    dtype = outputs[0].dtype
    return (len(outputs) == 1 and dtype.is_floating
            and all(x.dtype is dtype for x, t in zip(inputs, tangents, strict=True) if t is not None))


def _diagonal(op: Op, attrs: Attrs, inputs: Sequence[Tensor], outputs: Sequence[Tensor],
              tangents: Tangents) -> AnyTensor | None:
    shape = tuple(outputs[0].dims)
    spread = [_spread(x, shape) for x in inputs]
    total = None
    for i, tangent in enumerate(tangents):
        if tangent is None:
            continue
        part = needed(apply_rule(op, attrs, spread, outputs, [_spread(tangent, shape)])[i])
        if part is not None:
            total = part if total is None else ops.add(total, part)
    return total


def _spread(x: AnyTensor, shape: Shape) -> AnyTensor:
    return x if tuple(x.dims) == shape else ops.broadcast_to(x, shape=shape)


def _transposed(vjp: Callable[..., Sequence[Cotangent]], outputs: Sequence[Tensor], tangents: Tangents) -> Tangents:
    """The tangents of results from a gradient rule `vjp(cts)`."""
    with GradientTape(watch_accessed_variables=False) as tape:
        cts = [grad.zeros_like(o) if o.dtype.is_differentiable else None for o in outputs]
        seeds = [ct for ct in cts if ct is not None]
        tape.watch(seeds)
        rows = [None if t is None else needed(row) for row, t in zip(vjp(cts), tangents, strict=True)]
    pairs = [(row, t) for row, t in zip(rows, tangents, strict=True) if row is not None]
    products = iter(tape.gradient([row for row, _ in pairs], seeds, [t for _, t in pairs]))
    return [None if ct is None else next(products) for ct in cts]
