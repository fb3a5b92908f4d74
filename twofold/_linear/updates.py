"""`LinearOperatorLowRankUpdate`: an operator plus a product of narrow matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import twofold as tf
from twofold._front.api import public_class

from .base import LinearOperator, broadcast_shapes, conjugated, matrix_operand
from .combined import operators_of
from .identities import LinearOperatorIdentity
from .matrices import LinearOperatorDiag

__all__ = ["LinearOperatorLowRankUpdate"]


class LinearOperatorLowRankUpdate(LinearOperator):
    """L + U D V^H, for an operator L and matrices U and V of few columns; D is a diagonal.

    Equations are solved by the formula of Woodbury: with L, and with a matrix of the size of D.

    Args:
        base_operator: the operator L, `[..., m, n]`.
        u: tensor `[..., m, k]` of its dtype.
        diag_update: the diagonal of D, `[..., k]`; by default D is the identity.
        v: tensor `[..., n, k]`; by default `u`.
        is_diag_update_positive: whether all of `diag_update` is positive.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
            Without `v`, the sum is self-adjoint or positive definite if the parts are.
        name: of the operator.
    Raises:
        ValueError: sizes do not fit, or hints contradict one another.
        TypeError: `base_operator` is no operator, or dtypes differ.

    >>> import twofold as tf
    >>> base = tf.linalg.LinearOperatorDiag([1.0, 1.0])
    >>> operator = tf.linalg.LinearOperatorLowRankUpdate(base, [[1.0], [1.0]])
    >>> operator.to_dense().numpy().tolist(), operator.determinant().numpy().item()
    ([[2.0, 1.0], [1.0, 2.0]], 3.0)
    """

    _matrix_axes: ClassVar[Mapping[str, Any] | None] = {"base_operator": 0, "u": 2, "diag_update": 1, "v": 2}

    def __init__(self, base_operator: Any, u: Any, diag_update: Any = None, v: Any = None,
                 is_diag_update_positive: bool | None = None, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = None, name: str | None = "LinearOperatorLowRankUpdate") -> None:
        self._base = operators_of([base_operator])[0]
        self._u = matrix_operand(u, "u")
        self._v = None if v is None else matrix_operand(v, "v")
        self._diag_update = None if diag_update is None else matrix_operand(diag_update, "diag_update", 1)
        self._is_diag_update_positive = True if diag_update is None else is_diag_update_positive
        parameters = {"base_operator": self._base, "u": self._u, "diag_update": self._diag_update, "v": self._v,
                      "is_diag_update_positive": is_diag_update_positive, "is_non_singular": is_non_singular,
                      "is_self_adjoint": is_self_adjoint, "is_positive_definite": is_positive_definite,
                      "is_square": is_square, "name": name}
        self._require_fit()
        symmetric = v is None and (self._diag_update is None or not self._diag_update.dtype.is_complex)
        if symmetric and is_self_adjoint is None and self._base.is_self_adjoint:
            is_self_adjoint = True
        if v is None and is_positive_definite is None and self._is_diag_update_positive:
            is_positive_definite = self._base.is_positive_definite or None
        super().__init__(self._base.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
                         self._base.is_square if is_square is None else is_square, name, parameters)

    def _require_fit(self) -> None:
        """Raises where the parts differ in dtype or do not fit in size."""
        for part in (self._u, self._v, self._diag_update):
            if part is not None and part.dtype is not self._base.dtype:
                raise TypeError(f"Expected all parts to have the dtype of the base, {self._base.dtype.name}. Found: "
                                f"{part.dtype.name}.")
        right = self._u if self._v is None else self._v
        pairs = [(self._u.shape[-2], self._base.range_dimension), (right.shape[-2], self._base.domain_dimension),
                 (self._u.shape[-1], right.shape[-1])]
        if self._diag_update is not None:
            pairs.append((self._diag_update.shape[-1], self._u.shape[-1]))
        for one, other in pairs:
            if one is not None and other is not None and one != other:
                raise ValueError(f"Dimensions {one} and {other} are not compatible")

    @property
    def base_operator(self) -> LinearOperator:
        """The operator L."""
        return self._base

    @property
    def u(self) -> Any:
        """The matrix U."""
        return self._u

    @property
    def v(self) -> Any:
        """The matrix V."""
        return self._u if self._v is None else self._v

    @property
    def diag_update(self) -> Any:
        """The diagonal of D; None for the identity."""
        return self._diag_update

    @property
    def is_diag_update_positive(self) -> bool | None:
        """Whether all of the diagonal is positive; None where nothing is known."""
        return self._is_diag_update_positive

    @property
    def diag_operator(self) -> LinearOperator:
        """The operator D."""
        if self._diag_update is None:
            size = self._u.shape[-1]
            return LinearOperatorIdentity(tf.shape(self._u)[-1] if size is None else size, dtype=self.dtype)
        return LinearOperatorDiag(self._diag_update, is_positive_definite=self._is_diag_update_positive)

    def _batch_parts(self) -> list[Any]:
        parts = [self._u.shape[:-2], self.v.shape[:-2]]
        return parts if self._diag_update is None else [*parts, self._diag_update.shape[:-1]]

    def _shape(self) -> Any:
        batch = broadcast_shapes([self._base.batch_shape, *self._batch_parts()])
        return batch.concatenate(self._base.shape[-2:])

    def _scaled(self, x: Any, adjoint: bool) -> Any:
        """D x."""
        if self._diag_update is None:
            return x
        return tf.expand_dims(conjugated(self._diag_update) if adjoint else self._diag_update, -1) * x

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        left, right = (self.v, self._u) if adjoint else (self._u, self.v)
        inner = self._scaled(tf.matmul(right, x, adjoint_a=True), adjoint)
        return self._base.matmul(x, adjoint=adjoint) + tf.matmul(left, inner)

    def _capacitance(self, adjoint: bool = False) -> tuple[Any, Any]:
        """I + D V^H L^-1 U, and L^-1 U; for the adjoint with the parts of that."""
        left, right = (self.v, self._u) if adjoint else (self._u, self.v)
        solved = self._base.solve(left, adjoint=adjoint)
        inner = self._scaled(tf.matmul(right, solved, adjoint_a=True), adjoint)
        return inner + tf.eye(tf.shape(inner)[-1], dtype=self.dtype), solved

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        if self._base.is_square is False or self._base.is_non_singular is False:
            return super()._solve(rhs, adjoint=adjoint)
        small, solved = self._capacitance(adjoint)
        first = self._base.solve(rhs, adjoint=adjoint)
        inner = self._scaled(tf.matmul(self._u if adjoint else self.v, first, adjoint_a=True), adjoint)
        return first - tf.matmul(solved, tf.linalg.solve(small, inner))

    def _determinant(self) -> Any:
        if self._base.is_non_singular is False:
            return super()._determinant()
        return self._base.determinant() * tf.linalg.det(self._capacitance()[0])

    def _log_abs_determinant(self) -> Any:
        if self._base.is_non_singular is False:
            return super()._log_abs_determinant()
        inner = tf.cast(tf.linalg.slogdet(self._capacitance()[0])[1], self.dtype)
        return self._base.log_abs_determinant() + inner

    def _diag_part(self) -> Any:
        if not self.is_square:
            return super()._diag_part()
        right = conjugated(self.v)
        if self._diag_update is not None:
            right = tf.expand_dims(self._diag_update, -2) * right
        return self._base.diag_part() + tf.reduce_sum(self._u * right, axis=-1)

    def _linop_adjoint(self) -> LinearOperator:
        diagonal = None if self._diag_update is None else conjugated(self._diag_update)
        return LinearOperatorLowRankUpdate(
            self._base.adjoint(), self.v, diagonal, None if self._v is None else self._u, self._is_diag_update_positive,
            self.is_non_singular, self.is_self_adjoint, self.is_positive_definite, self.is_square)


public_class(LinearOperatorLowRankUpdate)
