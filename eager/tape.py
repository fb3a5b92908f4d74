"""Reverse-mode gradients: `GradientTape` records the ops that run, and plays the records backwards.

An entry keeps the op, its attributes, the numbers of its operands and results, and only those values
that the op's gradient rule reads (`Op.saves`). Rules are made of ops, so whatever records while a tape
is played (an outer tape, the tape itself when persistent) records the backward pass too: that is all
there is to higher orders. Custom gradients are `eager/custom.py`'s, forward mode `eager/forward.py`'s.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import grad, nest, ops
from twofold.ir.op import Op, interpreter, tracing
from twofold.ir.spec import TensorShape, spec
from twofold.ir.types import Attrs, Spec

from . import convert, playing, record, slices
from .playing import Entry
from .tensor import Tensor, wrap
from .types import AnyVariable, Nest, Readable, Saved, Vjp

__all__ = ["GradientTape", "UnconnectedGradients", "packed", "unconnected_mode"]


class UnconnectedGradients(enum.Enum):
    """The gradient where a target does not depend on a source: `NONE`, or `ZERO`."""

    NONE = "none"
    ZERO = "zero"


def unconnected_mode(mode: UnconnectedGradients | str) -> UnconnectedGradients:
    """An `unconnected_gradients` argument, a member or its name, as the member.

    Raises:
        ValueError: there is no such mode.
    """
    if type(mode) is UnconnectedGradients:
        return mode
    try:
        return UnconnectedGradients(mode)
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {mode!r}; 'none' and 'zero' are known.") from None


_SMOOTH = frozenset(d.np.num for d in dt.DIFFERENTIABLE)
_saved: dict[Op, tuple[Sequence[bool] | bool | None, bool]] = {}  # see `_saves`


def _saves(op: Op) -> tuple[Sequence[bool] | bool | None, bool]:
    """Which operands the gradient rule reads the values of (for each, or all or none), and whether the results.

    None instead of the operands where the op is not differentiable.
    """
    saves = op.saves
    values: tuple[Sequence[bool] | bool | None, bool]
    if op.vjp is None:
        values = (None, False)
    elif saves is None:
        values = (True, True)
    elif op.variadic:
        values = (op.params[0] in saves, "out" in saves)
    else:
        each = tuple([name in saves for name in op.params])
        values = (True if all(each) else False if not any(each) else each, "out" in saves)
    _saved[op] = values
    return values


_outlines: dict[Any, Spec] = {}
_OUTLINES = 4096


def _outline(x: Any) -> Spec:
    """Shape and dtype of a tensor whose value the rule does not read."""
    if type(x) is not Tensor:
        return spec(x.dims, x.dtype)
    a = x._memory
    key = (a.dtype.num, a.shape)
    outline = _outlines.get(key)
    if outline is None:
        if len(_outlines) >= _OUTLINES:
            _outlines.clear()
        outline = _outlines[key] = spec(a.shape, x.dtype)
    return outline


class GradientTape:
    """Records ops so that gradients can be computed afterwards.

    Trainable variables that are read inside the block are watched by themselves; tensors are watched
    with `watch`. A tape computes one gradient, a persistent one any number.

    Args:
        persistent: whether `gradient` may be called more than once.
        watch_accessed_variables: whether variables are watched without being asked.

    >>> import twofold as tf
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).numpy().item()
    6.0
    """

    _recording = False  # also of a tape that was not made to its end

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True):
        self._persistent = persistent
        self._auto = watch_accessed_variables
        self._open = False  # recording, and not within `stop_recording`
        self._used = False
        self._in_trace = False  # whether control flow is staged where it began to record
        self._unseen: Callable[[], list[Tensor]] | None = None  # in a trace: gives what it has handed on meanwhile
        self._variables: dict[int, AnyVariable] = {}  # id(variable) -> variable
        self._release()

    def _clear(self) -> None:
        self._variables = {}
        self._release()

    def _release(self) -> None:
        self._entries: list[Entry] = []
        self._tracked: set[int] = set()
        self._watched: set[int] = set()  # numbers that were watched by name, without those of values computed from them
        self._is_uncertain = False  # whether only running tells what some results depend on
        self._reads: dict[int, list[int]] = {}  # id(variable) -> numbers of the values read from it

    # -- recording --------------------------------------------------------------------------------
    def __enter__(self) -> GradientTape:
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an already-active tape.")
        if self._used and not self._persistent:
            self._used = False
            self._clear()
        record.push(self)
        self._recording = self._open = True
        self._in_trace = (running := tracing()) is not None and hasattr(running, "other_names")
        if self._in_trace:
            self._find_handed_on()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording:
            self._stop()

    def _stop(self) -> None:
        self._recording = self._open = False
        record.pop(self)
        if self._in_trace:
            self._pause()

    def __del__(self) -> None:
        if self._recording:
            self._stop()

    def watch(self, tensor: Nest) -> None:
        """Record what is computed from `tensor`, or from every tensor and variable of a structure, so that gradients by
        it exist.

        Integer tensors are not differentiable: watching one has no effect.
        """
        for x in _flat(tensor):
            if not isinstance(x, Tensor) and not hasattr(x, "_read_tensor"):
                raise ValueError(f"Passed in object {x!r} of type {type(x).__name__!r}, not tf.Tensor or tf.Variable.")
            if not x.dtype.is_differentiable:
                continue
            if isinstance(x, Tensor):
                if self._follow(x) and self._in_trace:
                    self._follow_names(x)
            else:
                self._watch_variable(x, x._current())

    def _follow(self, tensor: Tensor) -> bool:
        """Differentiate by a tensor; gives whether it was not watched before."""
        number = record.identity(tensor)
        is_new = number not in self._watched
        self._tracked.add(number)
        self._watched.add(number)
        return is_new

    def _follow_names(self, tensor: Tensor) -> None:
        """Follow what may be a tensor under another name, since control flow hands it on.

        The tape hears of this before all else, since it is from then on that the two may be one value.
        """
        find = getattr(interpreter(), "other_names", None)
        if find is not None and (names := find(tensor)) is not None:
            self._entries.insert(0, self._entry_of_names(names))

    def _find_names(self, tensors: Sequence[Readable]) -> None:
        """Know targets and sources that may be what is followed under other names, which control flow gave while the
        tape did not record."""
        find = getattr(interpreter(), "other_names", None)
        if find is None:
            return
        known = self._followed()
        for x in tensors:
            value: Any = x._current() if hasattr(x, "_current") else x
            if not isinstance(value, Tensor) or not _is_smooth(value) or getattr(value, "_id", 0) in known:
                continue
            names = find(value)
            if names is not None and names.begin_with(known):
                self._entries.append(self._entry_of_names(names))

    def _followed(self) -> set[int]:
        """The numbers of what is watched and computed from it, without those that may be such by another name alone."""
        outs = [e[3] for e in self._entries if not (e[1] is playing.CONTINUES and getattr(e[0], "only_names", False))]
        return self._watched.union(*outs) - {0}

    def _pause(self) -> None:
        """Note what control flow there is when recording ends, for a time at least."""
        handed_on = getattr(interpreter(), "handed_on", None)
        self._unseen = None if handed_on is None else handed_on()

    def _find_handed_on(self) -> None:
        """Know what control flow handed on meanwhile, as recording goes on."""
        if self._unseen is not None and self._tracked:
            self._find_names(self._unseen())
        self._unseen = None

    def _entry_of_names(self, names: Any) -> Entry:
        numbers = self._track(names.outputs)
        self._is_uncertain = True
        return names, playing.CONTINUES, numbers, numbers, (), ()

    def _watch_variable(self, variable: AnyVariable, value: Tensor) -> None:
        chained = getattr(value, "_id", 0) in self._tracked  # by the assignment, to a value that was read before
        is_new = self._follow(value)
        number, key = value._id, id(variable)
        self._variables[key] = variable
        reads = self._reads.get(key)
        if reads is None:
            self._reads[key] = [number]
        elif number not in reads and not chained:
            reads.append(number)
        if is_new and self._in_trace:
            self._follow_names(value)

    def _variable_read(self, variable: AnyVariable, value: Tensor) -> None:
        """Called by a variable when it is read."""
        key = id(variable)
        reads = self._reads.get(key)
        if reads is not None and getattr(value, "_id", 0) in reads:
            return
        watched = (self._auto and variable._trainable) or key in self._variables
        if not (watched and self._open and _is_smooth(value)):
            return
        if reads is not None or self._in_trace:
            self._watch_variable(variable, value)
            return
        # The first read of a variable is spelt out: it comes in every step of a training loop.
        number = getattr(value, "_id", 0) or record.identity(value)
        self._tracked.add(number)
        self._watched.add(number)
        self._variables[key] = variable
        self._reads[key] = [number]

    def _record(self, op: Op, attrs: Attrs, inputs: tuple[Saved, ...], outputs: tuple[Saved, ...]) -> None:
        """Called by the interpreter for each op that ran."""
        if not self._open:
            return
        tracked = self._tracked
        numbers: tuple[int, ...]
        if len(inputs) == 1:  # one and two operands, and one result, are spelt out: this runs for every op
            n = getattr(inputs[0], "_id", 0)
            if n not in tracked:
                return
            numbers = (n,)
        elif len(inputs) == 2:
            n, m = getattr(inputs[0], "_id", 0), getattr(inputs[1], "_id", 0)
            if n not in tracked and m not in tracked:
                return
            numbers = (n, m)
        else:
            numbers = tuple([getattr(x, "_id", 0) for x in inputs])
            if tracked.isdisjoint(numbers):
                return
        saved, saves_out = _saved.get(op) or _saves(op)
        if saved is None:
            return
        if not saved:
            inputs = (_outline(inputs[0]),) if len(inputs) == 1 else tuple([_outline(x) for x in inputs])
        elif saved is not True:
            inputs = tuple([x if s else _outline(x) for x, s in zip(inputs, saved, strict=True)])
        if len(outputs) == 1:
            out = outputs[0]
            followed: tuple[int, ...] = (0,)
            if out._memory.dtype.num in _SMOOTH if type(out) is Tensor else out.dtype.is_differentiable:
                followed = (out._id,)
                tracked.add(out._id)
            if not saves_out:
                outputs = (_outline(out),)
        else:
            followed = self._track(outputs)
            outputs = outputs if saves_out else tuple(map(_outline, outputs))
        self._entries.append((op, attrs, numbers, followed, inputs, outputs))

    def _follows(self, tensor: Tensor) -> bool:
        """Whether ops on `tensor` are recorded now."""
        return self._open and getattr(tensor, "_id", 0) in self._tracked

    def _record_custom(self, vjp: Vjp, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
                       continues: bool = False) -> None:
        """Like `record`, for a function with a gradient of its own; see `record.record_custom`."""
        numbers = tuple([getattr(x, "_id", 0) for x in inputs])
        if self._open and not self._tracked.isdisjoint(numbers):
            kind = playing.CONTINUES if continues else None
            depends = getattr(vjp, "connected", None) if continues else None
            if depends is None:
                followed = self._track(outputs)
            else:  # of control flow some results may not depend on what this tape follows
                self._is_uncertain = True
                connections = depends([n in self._tracked for n in numbers])
                connected = [o if x is not False else None for o, x in zip(outputs, connections, strict=True)]
                followed = self._track(tuple(connected))
            self._entries.append((vjp, kind, numbers, list(followed) if continues else followed, (), ()))

    def _record_further(self, vjp: Vjp, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
                        first: int) -> None:
        """Further results of what was recorded with this `vjp`; see `record.record_further`."""
        for entry in reversed(self._entries):
            if entry[0] is vjp:
                entry[3].extend(self._track(outputs))  # type: ignore[attr-defined]
                return

    def _track(self, outputs: tuple[Tensor | None, ...]) -> tuple[int, ...]:
        """Follow those results that are differentiable; their numbers, 0 for the others and where there is None."""
        followed = tuple([o._id if o is not None and _is_smooth(o) else 0 for o in outputs])
        self._tracked.update(followed)
        self._tracked.discard(0)
        return followed

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Leave out what runs in this block.

        Raises:
            RuntimeError: the tape is not recording.
        """
        if not self._recording:
            raise RuntimeError("Can't stop recording: the tape is not recording. Enter it with `with` first.")
        before, self._open = self._open, False
        if self._in_trace:
            self._pause()
        try:
            yield
        finally:
            self._open = before and self._recording
            if self._in_trace:
                self._find_handed_on()

    def reset(self) -> None:
        """Forget everything recorded and watched so far, as if the block began here."""
        self._clear()

    def watched_variables(self) -> tuple[AnyVariable, ...]:
        """The variables watched so far, in the order in which they were made."""
        return tuple(sorted(self._variables.values(), key=lambda v: v._order))

    # -- playing ----------------------------------------------------------------------------------
    def gradient(self, target: Nest, sources: Nest, output_gradients: Nest = None,
                 unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE) -> Nest:
        """The gradient of the sum of `target`'s elements with respect to `sources`.

        Args:
            target: tensor, variable, or structure of them.
            sources: tensor, variable, or structure of them; watched, or derived from what is.
            output_gradients: weights of the target's elements, shaped as the target; ones by default.
            unconnected_gradients: what a source gives that the target does not depend on: None or zeros.
        Returns:
            One tensor or None per source, in the structure of `sources`; `tf.IndexedSlices` for a variable of which
            nothing was read but rows, by `tf.gather` and `tf.nn.embedding_lookup`.
        Raises:
            RuntimeError: the tape is not persistent and has computed a gradient already.
        """
        unconnected = unconnected_gradients if type(unconnected_gradients) is UnconnectedGradients else \
            unconnected_mode(unconnected_gradients)
        targets = [target] if type(target) is Tensor else _flat(target)
        weights = [None] * len(targets) if output_gradients is None else _flat(output_gradients)
        if len(weights) != len(targets):
            raise ValueError(f"output_gradients has {len(weights)} entries for {len(targets)} targets.")
        flat = [sources] if hasattr(sources, "_read_tensor") else _flat(sources)
        self._begin()
        if self._in_trace:
            self._find_names([*targets, *flat])
        numbers, cts = [self._numbers_of(s) for s in flat], self._seeds(targets, weights)
        entries, reads = self._entries, self._reads
        late = self._uncertain(flat) if self._is_uncertain else None
        if not self._persistent:
            self._release()
        gathered = slices.gathered(entries, flat, numbers, cts)
        if gathered:
            gradients = slices.gradients(entries, flat, numbers, cts, gathered, not self._persistent)
        else:
            gradients = _with_zeros(playing.gradients(entries, numbers, cts, free=not self._persistent), flat)
        for n, connected in late.items() if late else ():
            if (total := gradients[n]) is not None:
                either = playing.one_of if playing.is_followed() else ops.select
                gradients[n] = None if connected is None else either(connected, total, grad.zeros_like(total))
        for n, source in enumerate(flat):
            if type(source) is not Tensor and id(source) not in reads:
                gradients[n] = self._itself(source, gradients[n], targets, weights)
        if unconnected is UnconnectedGradients.ZERO:
            gradients = [grad.zeros_like(s) if g is None else g for g, s in zip(gradients, flat, strict=True)]
        if flat is sources:  # a list of leaves
            return gradients
        return gradients[0] if _is_leaf(sources) else packed(sources, flat, gradients)

    def _begin(self) -> None:
        if not self._persistent:
            if self._used:
                raise RuntimeError("GradientTape.gradient can only be called once on non-persistent tapes.")
            if self._recording:
                self._stop()
        self._used = True

    def _numbers_of(self, source: Readable) -> list[int]:
        if isinstance(source, Tensor):
            number = getattr(source, "_id", 0)
            return [number] if number in self._tracked else []
        if not hasattr(source, "_read_tensor"):
            raise TypeError(f"sources must be tensors or variables; got {type(source).__name__} {source!r}.")
        return self._reads.get(id(source), [])

    def _uncertain(self, sources: Sequence[Readable]) -> dict[int, Tensor | None]:
        """For sources that were computed in a trace: a tensor that tells whether they depend on what was watched."""
        late: dict[int, Tensor | None] = {}
        for n, source in enumerate(sources):
            if type(source) is Tensor or not isinstance(source, Tensor):  # eagerly all is known
                continue
            number = getattr(source, "_id", 0)
            if number in self._tracked and number not in self._watched:
                flags = playing.connection(self._entries, self._tracked, self._watched, number)
                if flags is not True:
                    late[n] = reduce(ops.logical_or, flags) if flags else None
        return late

    def _itself(self, source: Readable, gradient: Tensor | None, targets: Sequence[Readable],
                weights: Sequence[object]) -> Tensor | None:
        """The gradient of a variable that was not read: as a target it depends on itself alone."""
        if isinstance(source, Tensor) or not source.dtype.is_differentiable:
            return gradient
        for target, weight in zip(targets, weights, strict=True):
            if target is source:
                value = source._read_tensor()
                seed = _ones(value) if weight is None else _weight(weight, value)
                gradient = seed if gradient is None else gradient + seed
        return gradient

    def _seeds(self, targets: Sequence[Readable], weights: Sequence[object]) -> dict[int, Tensor]:
        """The cotangents of those targets that were followed, by their numbers."""
        cts: dict[int, Tensor] = {}
        for target, weight in zip(targets, weights, strict=True):
            if target is None:
                raise TypeError("Argument `target` should be a list or nested structure of Tensors or Variables, "
                                "but received None.")
            # A variable's value here and now, also in a trace; Python numbers depend on nothing.
            value: Any = target
            if type(target) is not Tensor and hasattr(target, "_current"):
                value = target._current()
            number = getattr(value, "_id", 0)
            if number not in self._tracked:
                continue
            seed = _ones(value) if weight is None else _weight(weight, value)
            cts[number] = cts[number] + seed if number in cts else seed
        return cts

    # -- Jacobians --------------------------------------------------------------------------------
    def jacobian(self, target: Readable, sources: Nest,
                 unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
                 parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> Nest:
        """The derivative of every element of `target` by every element of the sources.

        Args:
            target: tensor of shape `T`.
            sources: tensor, variable, or structure of them; one of shape `S` gives a result of shape `T + S`.
            unconnected_gradients: as in `gradient`.
            parallel_iterations, experimental_use_pfor: accepted, without effect.
        """
        del parallel_iterations, experimental_use_pfor
        unconnected = unconnected_mode(unconnected_gradients)
        target = convert.as_tensor(target)
        flat = _flat(sources)
        rows = self._rows(target, _units(target.dims, target.dtype.np), flat)
        shape = tuple(target.dims)
        return nest.pack(sources, [_assemble([row[i] for row in rows], s, 0, shape + tuple(s.dims), unconnected)
                                   for i, s in enumerate(flat)])

    def _rows(self, target: Tensor, seeds: Iterator[Tensor],
              sources: Sequence[Readable]) -> list[list[Tensor | None]]:
        """The gradients of `sources` for each of `seeds` as the target's cotangent."""
        self._begin()
        if self._in_trace:
            self._find_names([target, *sources])
        entries, numbers = self._entries, [self._numbers_of(s) for s in sources]
        if not self._persistent:
            self._release()
        if getattr(target, "_id", 0) not in playing.path(entries, numbers)[2]:
            return [[None] * len(sources) for _ in seeds]
        return [_with_zeros(playing.gradients(entries, numbers, {target._id: seed}, free=False), sources)
                for seed in seeds]

    def batch_jacobian(self, target: Readable, source: Readable,
                       unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
                       parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> Nest:
        """Per-example Jacobians: `target[b]` may depend on `source[b]` alone.

        Args:
            target: tensor of shape `[B] + T`.
            source: tensor of shape `[B] + S`.
            unconnected_gradients: as in `jacobian`.
            parallel_iterations, experimental_use_pfor: have no effect.
        Returns:
            Tensor of shape `[B] + T + S`, or None when unconnected.
        Raises:
            ValueError: the first dimensions differ or a rank is 0.
        """
        del parallel_iterations, experimental_use_pfor
        unconnected = unconnected_mode(unconnected_gradients)
        target, source = convert.as_tensor(target), _variable_behind(source)
        if not target.ndim or not len(source.dims) or target.dims[0] != source.dims[0]:
            raise ValueError(f"Need first dimension of target shape ({target.shape}) and source shape "
                             f"({TensorShape(source.dims)}) to match.")
        batch, rest = target.dims[0], tuple(target.dims[1:])
        seeds = (wrap(np.broadcast_to(u._array, target.dims)) for u in _units(rest, target.dtype.np))
        columns = [row[0] for row in self._rows(target, seeds, [source])]
        return _assemble(columns, source, 1, (batch, *rest, *tuple(source.dims)[1:]), unconnected)


def _with_zeros(gradients: list[Any], sources: Sequence[Readable]) -> list[Any]:
    """The gradients, with zeros where what ran added nothing."""
    for n, gradient in enumerate(gradients):
        if gradient is playing.NOTHING:
            gradients[n] = grad.zeros_like(sources[n])
    return gradients


def packed(sources: Nest, flat: Sequence[Readable], gradients: Sequence[Any]) -> Nest:
    """Gradients in the structure of the sources.

    That of a composite value is one like it, with gradients in the places of the tensors that have some and its own
    tensors in the others; None where no tensor has one.
    """
    pairs = zip(flat, gradients, strict=True)

    def of_source(source: Any) -> Any:
        if not nest.is_composite(source):
            return next(pairs)[1]
        own = [next(pairs) for _ in nest.flatten(source)]
        if all(g is None or not _is_smooth(s) for s, g in own):
            return None
        return nest.pack(source, [s if not _is_smooth(s) else grad.zeros_like(s) if g is None else g for s, g in own])
    packed = [of_source(source) for source in nest.flatten(sources, expand_composites=False)]
    return nest.pack(sources, packed, expand_composites=False)


def _is_leaf(x: object) -> bool:
    return type(x) is Tensor or hasattr(x, "_read_tensor")


def _flat(structure: Nest) -> list[Readable]:
    if type(structure) is list and all(map(_is_leaf, structure)):
        return structure
    return [structure] if _is_leaf(structure) else [
        x if _is_leaf(x) else _variable_behind(x) for x in nest.flatten(structure)]


def _variable_behind(x: Any) -> Any:
    """The variable for which an object of a library's own class acts, as that of Keras does; else the object."""
    return x.handle if getattr(type(x), "_should_act_as_resource_variable", False) else x


def _is_smooth(x: Readable) -> bool:
    return x._memory.dtype.num in _SMOOTH if type(x) is Tensor else x.dtype.is_differentiable


_one: dict[int, np.ndarray] = {}  # by the number of the dtype


def _ones(x: Tensor) -> Any:  # a tensor of this mode
    if type(x) is not Tensor:
        return grad.ones_like(x)
    a = x._memory
    if a.ndim:
        return wrap(np.ones(a.shape, a.dtype))
    array = _one.get(a.dtype.num)
    if array is None:
        array = _one[a.dtype.num] = np.ones((), a.dtype)
    return wrap(array)


def _weight(weight: object, target: Tensor) -> Tensor:
    seed = convert.as_tensor(weight, dtype=target.dtype)
    if not dm.require_same(seed.dims, target.dims):
        raise ValueError(f"output_gradients has shape {seed.shape} for a target of shape {target.shape}.")
    return seed


def _units(dims: tuple[int, ...], dtype: np.dtype) -> Iterator[Tensor]:
    """The arrays of shape `dims` with a single one."""
    for i in range(int(np.prod(dims, dtype=np.int64))):
        unit = np.zeros(dims, dtype)
        unit.reshape(-1)[i] = 1
        yield wrap(unit)


def _assemble(parts: list[Tensor | None], source: Readable, axis: int, dims: tuple[int, ...],
              unconnected: UnconnectedGradients) -> Tensor | None:
    """A Jacobian from the gradients of `source` by each element of the target."""
    if not parts:
        return wrap(np.zeros(dims, source.dtype.np))
    if all(p is None for p in parts) and unconnected is UnconnectedGradients.NONE:
        return None
    filled = [ops.expand_dims(grad.zeros_like(source) if p is None else p, axis=axis) for p in parts]
    return ops.reshape(ops.concat(*filled, axis=axis), shape=dims)
