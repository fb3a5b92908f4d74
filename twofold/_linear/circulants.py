"""Circulant operators: convolutions around a circle, of one to three axes. A Fourier transform makes them diagonal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import public_class

from .base import LinearOperator, conjugated, matrix_operand, require_hint

__all__ = ["LinearOperatorCirculant", "LinearOperatorCirculant2D", "LinearOperatorCirculant3D"]


class _Convolution(LinearOperator):
    """What the three have in common; `_depth` is the number of axes."""

    _depth = 1

    def __init__(self, spectrum: Any, input_output_dtype: Any = tf.complex64, is_non_singular: bool | None = None,
                 is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
                 is_square: bool | None = True, name: str | None = None) -> None:
        self._spectrum = matrix_operand(spectrum, "spectrum", self._depth)
        parameters = {"spectrum": self._spectrum, "input_output_dtype": tf.as_dtype(input_output_dtype),
                      "is_non_singular": is_non_singular, "is_self_adjoint": is_self_adjoint,
                      "is_positive_definite": is_positive_definite, "is_square": is_square, "name": name}
        if not self._spectrum.dtype.is_complex:
            is_self_adjoint = require_hint(is_self_adjoint, True, "A real spectrum always corresponds to a "
                                           "self-adjoint operator.")
        super().__init__(
            input_output_dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
            require_hint(is_square, True, "A circulant operator is always square."), name, parameters)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> Mapping[str, Any]:
        return {"spectrum": self._depth}

    @property
    def spectrum(self) -> Any:
        """The spectrum: the eigenvalues."""
        return self._spectrum

    @property
    def block_depth(self) -> int:
        """The number of axes of the convolution."""
        return self._depth

    @property
    def block_shape(self) -> Any:
        """The static sizes of the axes of the convolution."""
        return self._spectrum.shape[-self._depth:]

    def block_shape_tensor(self) -> Any:
        """The sizes of the axes of the convolution as an int32 vector."""
        return tf.shape(self._spectrum)[-self._depth:]

    def convolution_kernel(self, name: str = "convolution_kernel") -> Any:
        """What is convolved with: the inverse Fourier transform of the spectrum.

        Args:
            name: has no effect.
        """
        return self._narrow(self._inverse_transform(self._wide(self._spectrum)))

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Any:
        """Raises where the spectrum is not Hermitian, so that the matrix is not real.

        Args:
            name: has no effect.
        Raises:
            tf.errors.InvalidArgumentError: it is not.
        """
        imaginary = tf.abs(tf.math.imag(self._inverse_transform(self._wide(self._spectrum))))
        largest = tf.reduce_max(tf.abs(self._spectrum))
        limit = 10.0 * float(np.finfo(imaginary.dtype.as_numpy_dtype).eps) * tf.cast(largest, imaginary.dtype)
        return tf.debugging.assert_less_equal(imaginary, limit, message="Spectrum was not Hermitian.")

    # -- dtypes and transforms ------------------------------------------------------------------------------------
    def _wide(self, x: Any) -> Any:
        """A tensor as a complex one, of the width of the spectrum."""
        double = self._spectrum.dtype in (tf.float64, tf.complex128)
        return tf.cast(x, tf.complex128 if double else tf.complex64)

    def _narrow(self, x: Any) -> Any:
        """A tensor as one of the operator's dtype: without its imaginary part, if that is real."""
        return tf.cast(x if self.dtype.is_complex or not x.dtype.is_complex else tf.math.real(x), self.dtype)

    def _transform(self, x: Any) -> Any:
        return (tf.signal.fft, tf.signal.fft2d, tf.signal.fft3d)[self._depth - 1](x)

    def _inverse_transform(self, x: Any) -> Any:
        return (tf.signal.ifft, tf.signal.ifft2d, tf.signal.ifft3d)[self._depth - 1](x)

    def _axes(self) -> list[int]:
        return list(range(-self._depth, 0))

    # -- what the spectrum tells ----------------------------------------------------------------------------------
    def _shape(self) -> Any:
        shape = self._spectrum.shape
        if shape.rank is None:
            return shape
        size = self.block_shape.num_elements()
        return shape[:-self._depth].concatenate([size, size])

    def _shape_tensor(self) -> Any:
        sizes = tf.shape(self._spectrum)
        size = tf.reduce_prod(sizes[-self._depth:], keepdims=True)
        return tf.concat([sizes[:-self._depth], size, size], 0)

    def _with_spectrum(self, x: Any, apply: Any) -> Any:
        """The columns of `x`, transformed, changed by `apply` and transformed back."""
        rows = self._wide(tf.linalg.matrix_transpose(x))
        spread = tf.reshape(rows, tf.concat([tf.shape(rows)[:-1], self.block_shape_tensor()], 0))
        result = self._inverse_transform(apply(self._transform(spread)))
        flat = tf.reshape(result, tf.concat([tf.shape(result)[:-self._depth], [-1]], 0))
        return self._narrow(tf.linalg.matrix_transpose(flat))

    def _factors(self, adjoint: bool) -> Any:
        spectrum = tf.expand_dims(self._wide(self._spectrum), -self._depth - 1)
        return tf.math.conj(spectrum) if adjoint else spectrum

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._with_spectrum(x, lambda waves: waves * self._factors(adjoint))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._with_spectrum(rhs, lambda waves: waves / self._factors(adjoint))

    def _diag_part(self) -> Any:
        mean = tf.expand_dims(self._narrow(tf.reduce_mean(self._wide(self._spectrum), axis=self._axes())), -1)
        return mean * tf.ones([self.domain_dimension_tensor()], self.dtype)

    def _trace(self) -> Any:
        return self._narrow(tf.reduce_sum(self._spectrum, axis=self._axes()))

    def _determinant(self) -> Any:
        return self._narrow(tf.reduce_prod(self._spectrum, axis=self._axes()))

    def _log_abs_determinant(self) -> Any:
        return self._narrow(tf.reduce_sum(tf.math.log(tf.abs(self._spectrum)), axis=self._axes()))

    def _cond(self) -> Any:
        sizes = tf.abs(self._spectrum)
        return self._narrow(tf.reduce_max(sizes, axis=self._axes()) / tf.reduce_min(sizes, axis=self._axes()))

    def _eigvals(self) -> Any:
        return self._narrow(tf.reshape(self._spectrum, self.shape_tensor()[:-1]))

    def _assert_non_singular(self) -> Any:
        return tf.debugging.assert_positive(tf.abs(self._spectrum),
                                            message="Singular operator:  Spectrum contained zero values.")

    def _assert_positive_definite(self) -> Any:
        return tf.debugging.assert_positive(tf.math.real(self._spectrum), message="Not positive definite: the real "
                                            "part of the spectrum was not all positive.")

    def _of(self, spectrum: Any, non_singular: bool | None, keep: bool = True) -> LinearOperator:
        """An operator of this class with another spectrum; with `keep` the other hints are this one's."""
        return type(self)(spectrum, self.dtype, non_singular, self.is_self_adjoint if keep else None,
                          self.is_positive_definite if keep else None)

    def _linop_adjoint(self) -> LinearOperator:
        return self._of(conjugated(self._spectrum), self.is_non_singular)

    def _linop_inverse(self) -> LinearOperator:
        return self._of(1 / tf.convert_to_tensor(self._spectrum), True)

    def _linop_matmul(self, right: LinearOperator) -> LinearOperator:
        if isinstance(right, type(self)) and self.dtype.is_complex and self.block_shape == right.block_shape \
                and self._spectrum.dtype is right.spectrum.dtype:
            known = self.is_non_singular and right.is_non_singular or None
            return self._of(self._spectrum * right.spectrum, known, keep=False)
        return super()._linop_matmul(right)


class LinearOperatorCirculant(_Convolution):
    """The operator of a circulant matrix: the convolution with a kernel, around a circle.

    Args:
        spectrum: floating or complex tensor `[..., n]`: the Fourier transform of the first column.
        input_output_dtype: of the elements. A real dtype wants a Hermitian spectrum, whose kernel is real; the
            imaginary part of products is dropped.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator.
    Raises:
        ValueError: `spectrum` is a scalar; hints contradict one another, or say that a real spectrum belongs to an
            operator that is not self-adjoint.
        TypeError: its dtype is neither floating nor complex.

    >>> import twofold as tf
    >>> spectrum = tf.signal.fft(tf.constant([1, 2, 3], tf.complex64))
    >>> tf.linalg.LinearOperatorCirculant(spectrum, tf.float32).to_dense().numpy().round(4).tolist()
    [[1.0, 3.0, 2.0], [2.0, 1.0, 3.0], [3.0, 2.0, 1.0]]
    """


class LinearOperatorCirculant2D(_Convolution):
    """The operator of a convolution with a kernel of two axes, around a torus: circulant blocks in circulant order.

    Args:
        spectrum: floating or complex tensor `[..., n1, n2]`: the Fourier transform of the kernel.
        input_output_dtype: of the elements. A real dtype wants a Hermitian spectrum, whose kernel is real; the
            imaginary part of products is dropped.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator.
    Raises:
        ValueError: `spectrum` has less than two axes; hints contradict one another, or say that a real spectrum belongs
            to an operator that is not self-adjoint.
        TypeError: its dtype is neither floating nor complex.

    >>> import twofold as tf
    >>> spectrum = tf.signal.fft2d(tf.constant([[1, 2], [3, 4]], tf.complex64))
    >>> tf.linalg.LinearOperatorCirculant2D(spectrum, tf.float32).to_dense().numpy()[:, 0].round(4).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    _depth = 2


class LinearOperatorCirculant3D(_Convolution):
    """The operator of a convolution with a kernel of three axes, each of which is a circle.

    Args:
        spectrum: floating or complex tensor `[..., n1, n2, n3]`: the Fourier transform of the kernel.
        input_output_dtype: of the elements. A real dtype wants a Hermitian spectrum, whose kernel is real; the
            imaginary part of products is dropped.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints, as for `tf.linalg.LinearOperator`.
        name: of the operator.
    Raises:
        ValueError: `spectrum` has less than three axes; hints contradict one another, or say that a real spectrum
            belongs to an operator that is not self-adjoint.
        TypeError: its dtype is neither floating nor complex.

    >>> import twofold as tf
    >>> spectrum = tf.signal.fft3d(tf.constant([[[1, 2]], [[3, 4]]], tf.complex64))
    >>> tf.linalg.LinearOperatorCirculant3D(spectrum, tf.float32).to_dense().numpy()[:, 0].round(4).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    _depth = 3


for _cls in (_Convolution, LinearOperatorCirculant, LinearOperatorCirculant2D, LinearOperatorCirculant3D):
    public_class(_cls)
