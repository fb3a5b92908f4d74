"""Operators made of one other, or of a chain of them: adjoint, inverse, and product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar

import twofold as tf
from twofold._front.api import public_class

from .base import LinearOperator, broadcast_shapes, require_hint

__all__ = ["LinearOperatorAdjoint", "LinearOperatorComposition", "LinearOperatorInversion", "all_hint", "operators_of",
           "product_of"]


def _operator(value: Any) -> LinearOperator:
    if not isinstance(value, LinearOperator):
        raise TypeError(f"Expected a LinearOperator. Found: {type(value).__name__}.")
    return value


def operators_of(values: Any) -> list[LinearOperator]:
    """A list of operators of one dtype.

    Raises:
        ValueError: it is empty.
        TypeError: there is another value in it, or dtypes differ.
    """
    operators = [_operator(v) for v in values]
    if not operators:
        raise ValueError("Expected a non-empty list of operators. Found: []")
    if any(op.dtype is not operators[0].dtype for op in operators):
        each = "  ".join(str((op.name, op.dtype.name)) for op in operators)
        raise TypeError(f"Expected all operators to have the same dtype. Found {each}")
    return operators


def all_hint(operators: Sequence[LinearOperator], hint: str) -> bool | None:
    """True, if a hint is true for all operators."""
    return all(getattr(op, hint) for op in operators) or None


def product_of(values: Sequence[Any]) -> Any:
    """The elementwise product of tensors."""
    return reduce(tf.multiply, values)


def _carried(given: bool | None, own: bool | None, hint: str) -> bool | None:
    """The hint of an operator whose hint must be that of another one."""
    if given is not None and own is not None and given is not own:
        raise ValueError(f"The hint {hint}={given} contradicts that of the operator within, {own}.")
    return own if given is None else given


class LinearOperatorAdjoint(LinearOperator):
    """The adjoint of an operator.

    Args:
        operator: the operator.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`; by
            default those of `operator`.
        name: of the operator.
    Raises:
        ValueError: hints contradict those of `operator`.
        TypeError: `operator` is none.

    >>> import twofold as tf
    >>> operator = tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    >>> tf.linalg.LinearOperatorAdjoint(operator).to_dense().numpy().tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"operator": 0}

    def __init__(self, operator: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None
                 ) -> None:
        self._operator = _operator(operator)
        super().__init__(
            operator.dtype, None, _carried(is_non_singular, operator.is_non_singular, "is_non_singular"),
            _carried(is_self_adjoint, operator.is_self_adjoint, "is_self_adjoint"),
            _carried(is_positive_definite, operator.is_positive_definite, "is_positive_definite"),
            _carried(is_square, operator.is_square, "is_square"), name or f"{operator.name}_adjoint",
            {"operator": operator, "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
             "is_positive_definite": is_positive_definite, "is_square": is_square, "name": name})

    @property
    def operator(self) -> LinearOperator:
        """The operator of which this is the adjoint."""
        return self._operator

    def _shape(self) -> Any:
        shape = self._operator.shape
        return shape if shape.rank is None else shape[:-2].concatenate([shape[-1], shape[-2]])

    def _shape_tensor(self) -> Any:
        sizes = self._operator.shape_tensor()
        return tf.concat([sizes[:-2], sizes[-1:], sizes[-2:-1]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator._matmul(x, adjoint=not adjoint)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return self._operator._matvec(x, adjoint=not adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator._solve(rhs, adjoint=not adjoint)

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return self._operator._solvevec(rhs, adjoint=not adjoint)

    def _to_dense(self) -> Any:
        return tf.linalg.adjoint(self._operator._to_dense())

    def _conjugate(self, x: Any) -> Any:
        return tf.math.conj(x) if self.dtype.is_complex else x

    def _diag_part(self) -> Any:
        return self._conjugate(self._operator._diag_part())

    def _trace(self) -> Any:
        return self._conjugate(self._operator._trace())

    def _determinant(self) -> Any:
        return self._conjugate(self._operator._determinant())

    def _log_abs_determinant(self) -> Any:
        return self._operator._log_abs_determinant()

    def _eigvals(self) -> Any:
        return self._operator._eigvals()

    def _cond(self) -> Any:
        return self._operator._cond()

    def _assert_non_singular(self) -> Any:
        return self._operator._assert_non_singular()

    def _assert_positive_definite(self) -> Any:
        return self._operator._assert_positive_definite()

    def _assert_self_adjoint(self) -> Any:
        return self._operator._assert_self_adjoint()

    def _linop_adjoint(self) -> LinearOperator:
        return self._operator


class LinearOperatorInversion(LinearOperator):
    """The inverse of an operator, by which products solve equations.

    Args:
        operator: the operator; it must be square and not be said to be singular.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`; by
            default those of `operator`.
        name: of the operator.
    Raises:
        ValueError: `operator` has no inverse, or hints contradict its own.
        TypeError: `operator` is none.

    >>> import twofold as tf
    >>> operator = tf.linalg.LinearOperatorFullMatrix([[2.0, 0.0], [0.0, 4.0]])
    >>> tf.linalg.LinearOperatorInversion(operator).matvec([1.0, 1.0]).numpy().tolist()
    [0.5, 0.25]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"operator": 0}

    def __init__(self, operator: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None
                 ) -> None:
        self._operator = _operator(operator)
        if operator.is_non_singular is False:
            raise ValueError("An operator that is said to be singular has no inverse.")
        if operator.is_square is False:
            raise ValueError("An operator that is not square has no inverse.")
        super().__init__(
            operator.dtype, None, require_hint(is_non_singular, True, "An inverse is always non-singular."),
            _carried(is_self_adjoint, operator.is_self_adjoint, "is_self_adjoint"),
            _carried(is_positive_definite, operator.is_positive_definite, "is_positive_definite"),
            require_hint(is_square, True, "An inverse is always square."), name or f"{operator.name}_inv",
            {"operator": operator, "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
             "is_positive_definite": is_positive_definite, "is_square": is_square, "name": name})

    @property
    def operator(self) -> LinearOperator:
        """The operator of which this is the inverse."""
        return self._operator

    def _shape(self) -> Any:
        return self._operator.shape

    def _shape_tensor(self) -> Any:
        return self._operator.shape_tensor()

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator._solve(x, adjoint=adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator._matmul(rhs, adjoint=adjoint)

    def _determinant(self) -> Any:
        return 1 / self._operator._determinant()

    def _log_abs_determinant(self) -> Any:
        return -self._operator._log_abs_determinant()

    def _cond(self) -> Any:
        return self._operator._cond()

    def _eigvals(self) -> Any:
        return 1 / self._operator._eigvals()

    def _assert_non_singular(self) -> Any:
        return self._operator._assert_non_singular()

    def _linop_adjoint(self) -> LinearOperator:
        return self._operator.adjoint().inverse()

    def _linop_inverse(self) -> LinearOperator:
        return self._operator


class LinearOperatorComposition(LinearOperator):
    """The product of operators, which is applied from right to left and never written out.

    Args:
        operators: list of operators of one dtype whose sizes fit.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator; by default made of theirs.
    Raises:
        ValueError: there are none, sizes do not fit, or hints contradict one another.
        TypeError: one is no operator, or dtypes differ.

    >>> import twofold as tf
    >>> scale = tf.linalg.LinearOperatorDiag([2.0, 3.0])
    >>> swap = tf.linalg.LinearOperatorFullMatrix([[0.0, 1.0], [1.0, 0.0]])
    >>> tf.linalg.LinearOperatorComposition([scale, swap]).matvec([1.0, 10.0]).numpy().tolist()
    [20.0, 3.0]
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"operators": 0}

    def __init__(self, operators: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
                 is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None
                 ) -> None:
        self._operators = operators_of(operators)
        for left, right in zip(self._operators[:-1], self._operators[1:], strict=True):
            one, other = left.domain_dimension, right.range_dimension
            if one is not None and other is not None and one != other:
                raise ValueError(f"Dimensions {one} and {other} are not compatible")
        parameters = {"operators": list(self._operators), "is_non_singular": is_non_singular,
                      "is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite,
                      "is_square": is_square, "name": name}
        if is_non_singular is None:
            is_non_singular = all_hint(self._operators, "is_non_singular")
        super().__init__(self._operators[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
                         is_square, name or "_o_".join(op.name for op in self._operators), parameters)

    @property
    def operators(self) -> list[LinearOperator]:
        """The operators, from left to right."""
        return list(self._operators)

    def _shape(self) -> Any:
        batch = broadcast_shapes([op.batch_shape for op in self._operators])
        return batch.concatenate([self._operators[0].range_dimension, self._operators[-1].domain_dimension])

    def _shape_tensor(self) -> Any:
        batch = reduce(tf.broadcast_dynamic_shape, [op.batch_shape_tensor() for op in self._operators])
        return tf.concat([batch, tf.stack([self._operators[0].range_dimension_tensor(),
                                           self._operators[-1].domain_dimension_tensor()])], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        for op in self._operators if adjoint else reversed(self._operators):
            x = op.matmul(x, adjoint=adjoint)
        return x

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        if not all(op.is_square for op in self._operators):
            return super()._solve(rhs, adjoint=adjoint)
        for op in reversed(self._operators) if adjoint else self._operators:
            rhs = op.solve(rhs, adjoint=adjoint)
        return rhs

    def _determinant(self) -> Any:
        if not all(op.is_square for op in self._operators):
            return super()._determinant()
        return reduce(tf.multiply, [op.determinant() for op in self._operators])

    def _log_abs_determinant(self) -> Any:
        if not all(op.is_square for op in self._operators):
            return super()._log_abs_determinant()
        return reduce(tf.add, [op.log_abs_determinant() for op in self._operators])

    def _assert_non_singular(self) -> Any:
        if all(op.is_square for op in self._operators):
            return [op.assert_non_singular() for op in self._operators]
        return super()._assert_non_singular()

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorComposition([op.adjoint() for op in reversed(self._operators)], self.is_non_singular)

    def _linop_inverse(self) -> LinearOperator:
        if all(op.is_square and op.is_non_singular is not False for op in self._operators):
            return LinearOperatorComposition([op.inverse() for op in reversed(self._operators)], True)
        return super()._linop_inverse()


for _cls in (LinearOperatorAdjoint, LinearOperatorInversion, LinearOperatorComposition):
    public_class(_cls)
