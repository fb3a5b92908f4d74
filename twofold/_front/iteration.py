"""The engine as `tf.data` sees it: arrays behind tensors, objects behind handles, loops over elements in traces.

A handle is a scalar string tensor whose value carries a Python object, so that iterators and datasets pass through
graphs like any tensor and live as long as some tensor refers to them. What is iterated over is `twofold/data`'s.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from twofold.eager import convert
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import dtypes as dt
from twofold.ir import errors, math_words, nest, ops
from twofold.ir import graph as graphs
from twofold.ir.dims import Dim
from twofold.ir.spec import TensorSpec
from twofold.runtime import devices, native
from twofold.runtime import random as streams
from twofold.tracer import host, loop, sequences
from twofold.tracer.autograph import callee
from twofold.tracer.handing import Handed, is_stateful
from twofold.tracer.symbolic import SymbolicTensor
from twofold.tracer.trace import current

from . import hosted as _hosted
from .api import public

__all__ = ["StagedElements", "array_of", "arrays_of", "carried", "device_name", "draw_anew", "dtype_of", "fold",
           "guarded", "handle", "held", "host_call", "host_effect", "is_handle", "is_symbolic", "nest", "on_host",
           "one_host_call", "prompt", "public", "random_fractions", "random_seeds", "random_words",
           "run_with_captures", "sender_to", "staging", "seeded_draws", "steps", "symbolic_captures", "tensor_of",
           "tensors_of", "user_function", "weak_finalizer"]

_WORD = (1 << 64) - 1


# -- tensors and arrays ---------------------------------------------------------------------------
def tensor_of(array: np.ndarray) -> Tensor:
    """A tensor on an array that nobody writes any more; nothing is copied."""
    return wrap(array)


def tensors_of(arrays: Sequence[np.ndarray]) -> list[Tensor]:
    """`tensor_of` each."""
    return [wrap(a) for a in arrays]


def array_of(value: Any, dtype: Any = None) -> np.ndarray:
    """The array behind a tensor, which must not be written; other values are converted first."""
    if type(value) is Tensor and dtype is None:
        return value._array
    return convert.as_tensor(value, None if dtype is None else dt.as_dtype(dtype))._array


def arrays_of(tensors: Sequence[Tensor]) -> tuple[np.ndarray, ...]:
    """The arrays behind eager tensors."""
    return tuple([t._array for t in tensors])


def device_name(name: Any, what: str = "target_device", kind: str | None = None) -> str:
    """The name of a device, as it is given.

    Args:
        what: the argument that it is.
        kind: that it must be of, such as "CPU".
    Raises:
        ValueError: it is none.
    """
    its_kind = devices.parse(str(name))[0]
    if kind is not None and its_kind != kind:
        raise ValueError(f"{what} must name a {kind}; got {name!r}.")
    return str(name)


def sender_to(device: str) -> Any:
    """What sends arrays ahead to a GPU (`runtime/cuda_ahead.py`); None where the device is the CPU.

    Raises:
        ValueError: the name is malformed. RuntimeError: the device is missing and soft placement is off.
    """
    number = devices.number_of(device)
    if number is None:
        return None
    from twofold.runtime import cuda, cuda_ahead  # which programs without GPUs do without

    return cuda_ahead.SendingStream(cuda.backend_of(number).gpu)


def on_host(memory: Any) -> np.ndarray:
    """An array of the host with the elements of memory of any device; itself where it is one."""
    return memory if isinstance(memory, np.ndarray) else wrap(memory)._array


def dtype_of(array: np.ndarray) -> Any:
    """The DType of an array."""
    return dt.from_numpy(array.dtype)


# -- traces ---------------------------------------------------------------------------------------
def staging() -> bool:
    """Whether a `tf.function` is being traced in this context."""
    return current() is not None


def is_symbolic(value: Any) -> bool:
    """Whether `value` is a tensor of a trace, which has no value yet."""
    return isinstance(value, SymbolicTensor)


def user_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` with its control flow converted where it is the user's, for use inside a trace."""
    return callee(fn)


def symbolic_captures(concrete: Any) -> list[Any]:
    """The tensors of a surrounding trace that a concrete function reads."""
    return [c for c in concrete.captured_inputs if is_symbolic(c)]


def run_with_captures(concrete: Any, tensors: Sequence[Tensor], values: Sequence[Tensor]) -> Any:
    """The result of a concrete function, with values in the places of its `symbolic_captures`."""
    given = list(values)
    return concrete._traced.step(tensors, concrete._traced.execute, given)


def steps(concretes: Sequence[Any], split: bool) -> tuple[Callable[..., Any], Callable[[Any], Any]] | None:
    """A concrete function as two: the part whose calls must run one after another, and the rest.

    The first takes the tensors of a call and the second the first's result; the second's is a flat tuple of tensors.

    Args:
        concretes: one, or those of all ranks that the arguments may have.
        split: whether there may be a rest; if not, everything is done by the first.
    Returns:
        None where calls do not depend on those before.
    """
    traces = [c._traced for c in concretes]
    if not any(map(is_stateful, traces)):
        return None
    whole: Callable[..., Any] = concretes[0] if len(concretes) == 1 else concretes[0]._function
    try:
        handed = Handed(traces[0]) if split and len(traces) == 1 else None
    except ValueError:
        handed = None

    def begin(*tensors: Tensor) -> Any:
        begun = None if handed is None else handed.begin(tensors)
        return (whole(*tensors), None) if begun is None else (None, begun)

    def finish(begun: Any) -> Any:
        result, rest = begun
        return result if rest is None else handed.finish(rest)  # type: ignore[union-attr]
    return begin, finish


def one_host_call(concrete: Any, name: str) -> tuple[Callable[..., Any], tuple[int, ...]] | None:
    """The function called and the positions of its arguments, where a concrete function is one call of Python alone.

    Args:
        concrete: it has one result.
        name: of the call, see `host_call`.
    """
    traced = concrete._traced
    nodes = list(traced.graph.walk())
    if len(nodes) != 1 or nodes[0].op is not graphs.HOST or nodes[0].attrs["name"] != name or traced.updates:
        return None
    inputs = list(traced.graph.inputs)
    if traced.captures or any(v not in inputs for v in nodes[0].inputs):
        return None
    return nodes[0].attrs["fn"], tuple([inputs.index(v) for v in nodes[0].inputs])


def prompt(concrete: Any) -> Callable[..., Sequence[Any]]:
    """A concrete function that gives a flat tuple, for calls with tensors of exactly the shapes of its signature.

    Where native code does not take the call at once, checks of the arguments are left out.
    """
    traced = concrete._traced
    unknown = any(isinstance(d, Dim) for v in traced.graph.inputs for d in v.dims)
    if unknown or traced.updates or traced.runner.variant is not None:
        return concrete
    outputs, captures = traced.runner.outputs, traced.captures

    def call(*tensors: Tensor) -> Sequence[Any]:
        return outputs([*tensors, *[c if isinstance(c, Tensor) else c._kept_tensor() for c in captures]])
    return call


def host_call(fn: Callable[..., Any], name: str, operands: Sequence[Any], results: Sequence[TensorSpec]) -> list[Any]:
    """The results of `fn` for tensors: at once, or each time that the traced function runs."""
    return _hosted.call(fn, name, operands, results)


def carried(tensor: Any) -> bool:
    """Let a tensor of unknown rank leave a trace as a handle that holds its array; False for all other tensors."""
    return host.carried(tensor, handle)


def host_effect(fn: Callable[..., Any], name: str, operands: Sequence[Any]) -> None:
    """`host_call` of a function without results."""
    host_call(fn, name, operands, [])


class _Handle(bytes):
    """The value of a handle: text for whoever prints it, and the object."""

    target: Any


def handle(target: Any) -> Tensor:
    """A scalar tensor that carries `target`."""
    text = _Handle(f"{type(target).__name__} at {id(target):#x}".encode())
    text.target = target
    array = np.empty((), object)
    array[()] = text
    return wrap(array)


def held(tensor: Any) -> Any:
    """The object that a handle carries."""
    array: Any = tensor if isinstance(tensor, np.ndarray) else tensor._array
    return array[()].target


def is_handle(value: Any) -> bool:
    """Whether an eager tensor carries an object."""
    array = value._array if type(value) is Tensor else None
    return array is not None and array.shape == () and array.dtype == object and isinstance(array[()], _Handle)


class StagedElements(sequences.StagedSequence):
    """The elements of a dataset or an iterator that a staged `for` iterates over.

    Args:
        token: gives a handle whose object has `advance() -> bool` and `current() -> arrays`; it is asked for once, in
            the trace that the loop is in.
        specs: of an element's tensors.
        pack: from the tensors to an element.
        numbered: from a first number to these elements, numbered, as a sequence.
        joined: from sequences of this kind, this one first, to the sequence of tuples of their elements.
    """

    def __init__(self, token: Callable[[], Any], specs: Sequence[TensorSpec], pack: Callable[[Sequence[Any]], Any],
                 numbered: Callable[[Any], Any], joined: Callable[[list[Any]], Any]) -> None:
        self._make, self.specs, self.pack, self.numbered, self.joined = token, specs, pack, numbered, joined
        self._token: Any = None

    @property
    def token(self) -> Any:
        """The handle."""
        if self._token is None:
            self._token = self._make()
        return self._token

    @property
    def start(self) -> Any:
        """The place of the first element; makes the iterator."""
        assert self.token is not None
        return convert.as_tensor(0, dt.int64)

    def more(self, place: Any) -> Any:
        """Whether there is another element, which is fetched and kept for `item`."""
        del place
        return host_call(_advance, "iterator", [self.token], [TensorSpec((), dt.bool_)])[0]

    def item(self, place: Any) -> Any:
        """The element that `more` fetched."""
        del place
        return self.pack(host_call(_take, "iterator", [self.token], self.specs))

    def count(self) -> Any:
        """Never known: a loop asks `more`."""
        raise TypeError("how many elements a dataset has is not known inside of a tf.function.\n"
                        f"  {errors.user_line()}")

    def enumerated(self, first: Any) -> Any:
        """The elements with their numbers."""
        return self.numbered(first)

    def zipped(self, others: list[Any]) -> Any:
        """Tuples of one of these elements and one of each of `others`, as `zip` makes them."""
        return self.joined([self, *others])


def _advance(token: Tensor) -> list[Tensor]:
    return [wrap(np.array(held(token).advance()))]


def _take(token: Tensor) -> list[Tensor]:
    return [wrap(a) for a in held(token).current()]


def fold(elements: StagedElements, start: Any, step: Callable[[Any, Any], Any]) -> Any:
    """The last of `state = step(state, element)` over all elements, staged."""
    variables = [loop.LoopVariable("the place", elements.start), loop.LoopVariable("the state", start)]
    (_, state), _ = loop.while_loop(
        lambda values: elements.more(values[0]),
        lambda values: [values[0] + 1, step(values[1], elements.item(values[0]))], variables, "reduction")
    return state


# -- randomness -----------------------------------------------------------------------------------
def seeded_draws(concrete: Any) -> list[tuple[str, tuple[int, int], tuple[int, ...]]]:
    """What the ops with seeds of a concrete function draw, for `draw_anew`."""
    return [(node.attrs["kind"], tuple(node.attrs["seeds"]), tuple(node.attrs["place"]))
            for node in concrete._traced.graph.walk() if node.op is ops.random_op_state]


draw_anew = streams.begin_anew


def random_seeds(seed: int | None) -> tuple[int, int]:
    """The two seeds of a dataset that draws, TensorFlow's: by the global seed and `seed`, or unpredictable ones where
    neither is set. Without `seed`, each call has another under a global one."""
    trace = current()
    seeds = streams.op_seeds(seed, None if trace is None else trace.next_op_seed)
    return seeds or (streams.fresh_key(), streams.fresh_key())


def random_words(seeds: tuple[int, int], start: int, count: int) -> np.ndarray:
    """The words of `count` blocks of a stream with these seeds, from number `start` on: uint32, in one row."""
    return math_words.blocks(0, seeds[1] & _WORD, seeds[0] & _WORD, start, count).ravel()


def random_fractions(seeds: np.ndarray) -> np.ndarray:
    """The first float64 of the stateless draw for each of many seeds, rows of two."""
    return math_words.first_fractions(seeds)


# -- public classes -------------------------------------------------------------------------------
def guarded(cls: type) -> type:
    """Makes the methods of `cls` public functions: errors show the user's frames only."""
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in ("__init__", "__iter__", "__next__"):
            continue
        if isinstance(value, staticmethod):
            setattr(cls, name, staticmethod(public(value.__func__)))
        elif isinstance(value, classmethod):
            setattr(cls, name, classmethod(native.as_method(public(value.__func__))))
        elif callable(value) and hasattr(value, "__code__"):
            setattr(cls, name, native.as_method(public(value)))
    return cls


def weak_finalizer(owner: Any, fn: Callable[..., Any], *args: Any) -> Any:
    """Call `fn(*args)` when `owner` is gone, but not at the end of the process."""
    finalizer = weakref.finalize(owner, fn, *args)
    finalizer.atexit = False
    return finalizer
