"""`tf.numba_function`: kernels that users write with numba as ops, on the processor and on GPUs.

How a kernel gets its memory, here and on a GPU, is this module's affair; that a graph calls it is `tracer/host.py`'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from twofold.eager import custom
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import dtypes as dt
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.spec import TensorSpec
from twofold.tracer import host

from .api import public, tensor

__all__ = ["numba_function"]

_BLOCK = 256  # threads
Gradient = Callable[..., Any]


@public
def numba_function(kernel: Callable[..., Any], inp: Sequence[Any], Tout: Any, grid: Any = None, block: Any = None,
                   grad: Gradient | None = None, name: str | None = None) -> Any:
    """Call a kernel that is written with numba, at once or in each run of a function.

    A kernel is called as `kernel(*inputs, *results)`: it reads the first arrays, and fills the last ones. One of
    `numba.cuda.jit` runs on the GPU of its inputs, or on the first one, in the stream of all other work there and
    without copies; its inputs must not be written. One of `numba.njit`, or any other function, runs on the host, with
    NumPy's arrays.

    Args:
        kernel: what is called.
        inp: a list of tensors, variables or values that convert to tensors.
        Tout: a `tf.TensorSpec` of known shape for the result, or a list of them for several; or a function that gives
            them for the tensors of `inp`, of which only shapes and dtypes may be asked.
        grid: for a kernel of `numba.cuda`, blocks of a launch, an integer or a tuple; by default as many as give each
            element of the first result a thread.
        block: threads of a block, an integer or a tuple; 256 by default.
        grad: a function of the inputs, the results and their cotangents that gives a cotangent, or None, for each
            input; without it there is no gradient.
        name: accepted, without effect.
    Returns:
        A tensor, or a list of them where `Tout` is a list.
    Raises:
        TypeError: `kernel` is not callable, or `Tout` gives no specs. ValueError: a shape in `Tout` is not known.
        RuntimeError: a kernel of `numba.cuda` is called where there is no GPU.

    >>> import numba
    >>> import twofold as tf
    >>> @numba.njit
    ... def doubled(x, out):
    ...     for i in range(x.size):
    ...         out[i] = 2 * x[i]
    >>> tf.numba_function(doubled, [tf.constant([1.0, 2.0])], tf.TensorSpec([2], tf.float32)).numpy().tolist()
    [2.0, 4.0]
    """
    del name
    if not callable(kernel):
        raise TypeError(f"numba_function: kernel is {type(kernel).__name__}; expected a function compiled by numba")
    operands = [tensor(x) for x in inp]
    given = Tout(*operands) if callable(Tout) and not isinstance(Tout, dt.DType) else Tout
    specs = _listed(given)
    if not all(isinstance(s, TensorSpec) for s in specs):
        raise TypeError(f"numba_function: Tout gives {specs!r}; expected tf.TensorSpecs")
    call = _Call(kernel, Tout, specs, grid, block)
    title = getattr(kernel, "__name__", "numba_function")
    results = host.call(call, title, operands, specs) if grad is None else _smooth(call, title, operands, specs, grad)
    return list(results) if isinstance(given, (list, tuple)) else results[0]


def _smooth(call: _Call, title: str, operands: list[Tensor], specs: list[TensorSpec], grad: Gradient) -> list[Tensor]:
    """The results of a call with a gradient of the user's."""
    @custom.custom_gradient
    def run(*inputs: Tensor) -> Any:
        results = host.call(call, title, list(inputs), specs)

        def cotangents(*cts: Tensor) -> Any:
            given = _listed(grad(inputs, results, cts))
            if len(given) != len(inputs):
                raise InvalidArgumentError(None, "numba_function", (
                    f"numba_function: grad gives {len(given)} cotangents; expected one for each of {len(inputs)} "
                    "inputs"))
            return given
        return tuple(results), cotangents
    return _listed(run(*operands))


class _Call:
    """A call of a kernel, as graphs make it.

    Attributes:
        on_device: it takes tensors where they are, on a GPU too.
        again: whether what is declared must be asked again in each call, for sizes that a trace does not know.
    """

    on_device = True

    def __init__(self, kernel: Any, declared: Any, specs: Sequence[TensorSpec], grid: Any, block: Any) -> None:
        self.kernel, self.declared, self.specs, self.grid, self.block = kernel, declared, specs, grid, block
        self.again = callable(declared) and not all(s.shape.is_fully_defined() for s in specs)

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """The results for tensors that have values."""
        shapes = [_shape(s) for s in (_listed(self.declared(*tensors)) if self.again else self.specs)]
        dtypes = [s.dtype.np for s in self.specs]
        if hasattr(self.kernel, "forall"):  # a kernel of `numba.cuda`
            return self._on_gpu(tensors, shapes, dtypes)
        outs = [np.empty(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        self.kernel(*[np.asarray(t) for t in tensors], *outs)
        return [wrap(out) for out in outs]

    def _on_gpu(self, tensors: Sequence[Tensor], shapes: Sequence[tuple[int, ...]],
                dtypes: Sequence[np.dtype]) -> list[Tensor]:
        from twofold.runtime import cuda

        numbers = [n for t in tensors if (n := cuda.index_of(t._memory)) is not None]
        backend = cuda.backend_of(numbers[0] if numbers else 0)
        ins = [_Shared(backend.copy_to(t._memory), False) for t in tensors]
        outs = [_Shared(backend.empty(shape, dtype), True) for shape, dtype in zip(shapes, dtypes, strict=True)]
        block = _BLOCK if self.block is None else self.block
        threads = math.prod(block) if isinstance(block, tuple) else int(block)
        grid = max(1, -(-math.prod(shapes[0]) // threads)) if self.grid is None else self.grid
        with backend.gpu:
            self.kernel[grid, block, _stream(backend.gpu.stream.value or 0)](*ins, *outs)
        return [wrap(out.array) for out in outs]


def _listed(given: Any) -> list[Any]:
    """What a user's function gives, one thing or several, as a list."""
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _shape(spec: TensorSpec) -> tuple[int, ...]:
    dims = spec.shape.dims
    if dims is None or any(d is None for d in dims):
        raise ValueError(f"numba_function: Tout has shape {spec.shape}; a kernel needs memory of a known size, so give "
                         "Tout as a function of the inputs where sizes differ from call to call")
    return tuple([int(d) for d in dims if d is not None])


class _Shared:
    """An array of a GPU as numba takes it, which need not wait for anything: the kernel is in the array's stream."""

    def __init__(self, array: Any, written: bool) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "data": (array.address, not written), "strides": None,
            "stream": None, "version": 3}


def _stream(handle: int) -> Any:
    """The stream as numba names it."""
    try:
        from numba import cuda as numba_cuda

        return numba_cuda.external_stream(handle)
    except ImportError:  # the kernel comes from elsewhere
        return handle
