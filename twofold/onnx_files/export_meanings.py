"""The meanings of all ops: for each what it is in ONNX, or why it is nothing there.

Modules `export_*.py` of families of ops fill the table (`export_table.py`). Elementwise ops without a meaning of their
own have that of their scalar body (`export_scalars.py`). Ops without a meaning are listed here, with the reason and
what a user can do.
"""

from __future__ import annotations

from twofold.ir.op import REGISTRY

from . import (  # noqa: F401  (they fill the table)
    export_activations,
    export_convolutions,
    export_indexing,
    export_ordering,
    export_pooling,
    export_products,
    export_reductions,
    export_scans,
    export_segments,
    export_shapes,
    export_slices,
)
from .export_table import MEANINGS, Meaning, elementwise
from .export_writer import NoMeaning

__all__ = ["WITHOUT", "meaning_of"]

WITHOUT: dict[str, NoMeaning] = {}


def meaning_of(name: str) -> Meaning:
    """The meaning of an op.

    Raises:
        NoMeaning: it has none.
    """
    if name in MEANINGS:
        return MEANINGS[name]
    if name in WITHOUT:
        raise WITHOUT[name]
    if REGISTRY[name].body is not None:
        return elementwise
    raise NoMeaning("it has no meaning in ONNX", "compute it before or after the model")


def _without(*names: str, why: str, instead: str) -> None:
    WITHOUT.update({name: NoMeaning(why, instead) for name in names})


_without("angle", "complex", "conj", "imag", "real", "fft", "ifft", "irfft", "rfft",
         why="ONNX has no arithmetic of complex numbers",
         instead="keep real and imaginary parts in tensors of their own")
_without("eig", "lu", "matrix_exponential", "matrix_logarithm", "matrix_square_root", "pinv", "qr", "self_adjoint_eig",
         "svd", "cholesky", "log_matrix_determinant", "matrix_inverse", "matrix_solve", "matrix_triangular_solve",
         "tridiagonal_solve",
         why="ONNX has no operator that factorises or solves",
         instead="compute the factors once, before the export, and capture them")
_without("convert_small", why="floats of 8 bits are not written yet", instead="keep them outside of the model")
_without("polygamma_of", why="ONNX has no operator for the derivatives of digamma of an order that is a value",
         instead="give the order as a Python number")
_without("betainc", "igamma", "igamma_grad_a", "igammac", "zeta",
         why="ONNX has no operator for its series, which would be thousands of nodes",
         instead="compute it outside of the model and hand it in")
_without("random_binomial", "random_bits", "random_cut_normal", "random_gamma", "random_integers", "random_normal",
         "random_op_state", "random_permutation", "random_place", "random_poisson", "random_seed_state",
         "random_skip", "random_state", "random_truncated_normal", "random_uniform",
         why="the random numbers of ONNX are others in every runtime",
         instead="draw outside of the model and hand the numbers in, or leave dropout out with training=False")
_without("collective_all_gather", "collective_all_reduce",
         why="a model of ONNX runs by itself, without other replicas",
         instead="export the function outside of the strategy")
