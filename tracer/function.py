"""`Function`, which `tf.function` makes of a Python function: it traces once per signature and runs graphs.

A call is put into canonical form (`tracer/signature.py`), its trace is looked up or made (`tracer/traced.py`), and
the trace runs. Traces of one key differ in sizes only: the second shape relaxes the sizes that differ to unknown
ones, and a trace whose assumptions a call violates is joined by one made for exactly that call. What cannot be traced
runs eagerly, with a warning, unless that is turned off.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeAlias

from twofold.eager.custom import SignatureOf
from twofold.eager.executing import asks_where, backend_for
from twofold.eager.playing import Entry
from twofold.eager.tensor import Tensor
from twofold.ir import dims as dm
from twofold.ir import surroundings
from twofold.ir.dims import Dim, Shape
from twofold.ir.errors import ChoiceNeeded
from twofold.ir.spec import TensorSpec
from twofold.ir.surroundings import Around
from twofold.runtime import locks, native, program_call
from twofold.runtime.log import log
from twofold.runtime.program_call import Variant

from . import (
    autograph,
    backward,
    custom,  # noqa: F401  (stages functions with gradients of their own)
    options,
)
from .concrete import AnyRank, ConcreteFunction
from .function_type import type_text
from .input_signature import InputSignature
from .signature import CallArguments, CallKey, CallLeaf, Parameters, form_for, literal, objects_of
from .symbolic import SymbolicTensor, SymbolicValueError
from .trace import LeakedTensorError, Trace, current, differentiated
from .traced import Traced, named, trace, trace_function
from .types import Args, Cotangent, InputSpec, Kwargs, PythonFunction, PythonValue, Sizes, Structure

if TYPE_CHECKING:
    from .explain import Explanation
    from .placed_calls import PlacedCall

__all__ = ["Function", "making", "trace"]

_SERVED = 1024  # calls remembered by their exact shapes
_QUICK = 16  # variants that native code tries in order
_PLACED = 8  # calls on GPUs that are tried in order
_RETRACES = 5
_DEPTH = 64  # traces of one function inside of another
making = locks.RLock()  # one trace at a time: Python code that is traced need not expect another
locks.settled_before_fork(lambda: making)
_quickening = locks.Lock()


#: the trace that serves a call, and what its symbols are for the call
Service: TypeAlias = tuple[Traced, Sizes]

#: shapes in which all unknown sizes are alike
StaticShapes: TypeAlias = tuple[tuple[int | None, ...], ...]


class _WithoutPython(Protocol):
    """The interface of a restored function, which has traces and no Python (`tracer/restored.py`)."""

    @property
    def traces(self) -> list[Traced]:
        """All that were kept."""

    def served(self, call: CallArguments, here: Trace | None) -> CallArguments:
        """The call as a trace takes it."""

    def concrete(self, args: Args, kwargs: Kwargs) -> ConcreteFunction:
        """The function for these arguments, which may have specs for tensors."""


class Family:
    """The traces of one key, which differ in sizes.

    Attributes:
        traces: in the order in which they were made.
        eager: whether calls run eagerly, because the function cannot be traced.
        rigid: whether every shape gets a trace of its own, because relaxed ones failed.
    """

    __slots__ = ("traces", "eager", "rigid", "cause", "watch", "tried")

    def __init__(self) -> None:
        self.traces: list[Traced] = []
        self.eager = self.rigid = False
        self.cause = ""  # why calls run eagerly
        self.watch: list[weakref.ref[object]] = []  # drops the family when an object of the key goes
        self.tried: set[tuple[StaticShapes, bool]] = set()  # the relaxed shapes that were traced, and whether `whole`

    def find(self, shapes: Sequence[Shape], here: Trace | None, whole: bool = False) -> Service | None:
        """The trace for these shapes, and the values of its symbols; those made last are the most general.

        Args:
            whole: whether gradients in it may be differentiated again (`tracer/trace.py: differentiated`).
        """
        usable = [traced for traced in reversed(self.traces) if traced.usable(here) and not (whole and traced.spared)]
        usable.sort(key=lambda traced: not traced.spared)  # who differentiates nothing gets those that take less memory
        for assume in (False,) if here is None else (False, True):
            for traced in usable:
                env = traced.accepts(shapes, assume)
                if env is not None:
                    return traced, env
        return None


class Function:
    """A Python function that is traced into graphs; see `tf.function`."""

    __slots__ = ("_quick", "__dict__", "__weakref__")  # native code reads the variants in `_quick`

    __call__: Any  # native code, or a Python function; see the end of this file
    _quick: tuple[Variant, ...]
    get_concrete_function: Any  # likewise
    __signature__ = SignatureOf(lambda function: function.function_spec)

    def __init__(self, python_function: PythonFunction, settings: options.Options,
                 instance: Callable[[], object] | None = None) -> None:
        """Args:
            instance: gives the object that this is a method of, if it is one.
        """
        functools.update_wrapper(self, python_function, updated=())
        self._plain, self._instance = python_function, instance
        if instance is not None:
            python_function = _weak_method(python_function, instance)
        self._python_function = python_function
        self._settings = settings
        self._name = getattr(python_function, "__name__", None) or type(python_function).__name__
        self._parameters = Parameters(python_function)
        self._declared = None
        if settings.input_signature is not None:
            self._declared = InputSignature(settings.input_signature, self._parameters)
        self._families: dict[CallKey, Family] = {}
        self._quick = ()
        self._placed: tuple[PlacedCall, ...] = ()
        self._quickened: set[tuple[int, CallKey]] = set()  # traces and keys of calls that native code was offered
        self._offered: set[tuple[int, CallKey, tuple[Shape, ...]]] = set()  # with shapes, those `placed_calls` was
        self._served: dict[tuple[CallKey, tuple[Shape, ...]], Traced] = {}
        self._methods: dict[int, tuple[weakref.ref[object], Function]] = {}
        self._under_way: list[tuple[CallKey, StaticShapes, bool]] = []
        self._count = 0
        self._created = False
        self._last: dict[str, tuple[CallKey, tuple[Shape, ...]]] | None = None  # the arguments of the last trace
        self._warned = False
        self._restored: _WithoutPython | None = None
        for name, value in getattr(self._plain, "__dict__", {}).items():
            self.__dict__.setdefault(name, value)  # attributes of the function, or of the callable object

    # -- what it is -------------------------------------------------------------------------------
    @property
    def python_function(self) -> PythonFunction:
        """The function that was decorated."""
        return self._python_function

    @property
    def plain(self) -> PythonFunction:
        """The function that was decorated, bound to its instance where it is a method of one.

        Of a restored function, whose Python is no more, it is that function itself.
        """
        if self._restored is not None:
            return self
        return self._plain if self._instance is None else types.MethodType(self._plain, self._instance())

    @property
    def input_signature(self) -> Sequence[Structure] | None:
        """The specs of the arguments that were declared, or None."""
        return self._settings.input_signature

    @property
    def function_spec(self) -> inspect.Signature | None:
        """The signature of the Python function."""
        return self._parameters.signature

    def __repr__(self) -> str:
        return f"<twofold.Function {self._name} of {self._python_function!r}>"

    def __get__(self, instance: object, owner: type | None = None) -> Function:
        if instance is None:
            return self
        entry = self._methods.get(id(instance))
        if entry is not None and entry[0]() is instance:
            return entry[1]
        return self._bind(instance)

    def _bind(self, instance: object) -> Function:
        """The function of one instance, with traces of its own; the instance is held weakly."""
        number, methods = id(instance), self._methods
        try:
            reference = weakref.ref(instance, lambda _: methods.pop(number, None))
        except TypeError:
            return Function(types.MethodType(self._python_function, instance), self._settings)
        method = Function(self._python_function, self._settings, reference)
        methods[number] = (reference, method)
        return method

    # -- calling ----------------------------------------------------------------------------------
    def _call(self, args: Args, kwargs: Kwargs) -> Structure:
        here = current()
        if options.runs_eagerly() and here is None and self._restored is None:
            return self._python_function(*args, **kwargs)
        if self._placed and here is None and not kwargs:
            for placed in self._placed:
                result = placed(args)
                if result is not NotImplemented:
                    return result
        call = self._arranged(args, kwargs)
        if here is None:
            traced = self._served.get((call.key, call.shapes))
            if traced is not None and not traced._loose and not (traced.spared and differentiated(None)):
                if not kwargs and traced.variant is not None:
                    self._quicken(traced, args, call)
                if not kwargs and asks_where():
                    self._place(traced, args, call)
                return traced(call.leaves)
        if self._restored is not None:
            call = self._restored.served(call, here)
        served = self._find(call, here)
        if served is None:
            return self._python_function(*call.args, **call.kwargs)
        traced, env = served
        if here is not None:
            return traced.stage(here, call.leaves, env)
        return traced(call.leaves)

    def _arranged(self, args: Args, kwargs: Kwargs) -> CallArguments:
        """The call with these arguments, with what is around it."""
        call = self._parameters.call(args, kwargs) if self._declared is None else self._declared.call(args, kwargs)
        return self._within(call, surroundings.around())

    def _within(self, call: CallArguments, around: Around) -> CallArguments:
        """A call of which this is around. What was restored is the same everywhere, as it has no Python."""
        if around and self._restored is None:
            call.key = (*call.key, around)
        return call

    def _quicken(self, traced: Traced, args: Args, call: CallArguments) -> None:
        """From now on native code serves calls like this one, where it can."""
        key = (traced.number, call.key)
        if key in self._quickened or len(self._quickened) >= _SERVED:
            return
        entry = traced.runner.for_arguments(args, call.leaves)
        with _quickening:
            if key not in self._quickened:
                self._quickened.add(key)
                if entry is not None:
                    self._quick = (entry, *self._quick[:_QUICK - 1])

    def _place(self, traced: Traced, args: Args, call: CallArguments) -> None:
        """From now on a `PlacedCall` serves calls like this one on its GPU, where it can."""
        key = (traced.number, call.key, call.shapes)
        if key in self._offered or len(self._offered) >= _SERVED:
            return
        from .placed_calls import placed_call  # which programs without GPUs do without

        placed = placed_call(traced, args, call.leaves)
        with _quickening:
            if key not in self._offered:
                self._offered.add(key)
                if placed is not None:
                    self._placed = (placed, *self._placed[:_PLACED - 1])

    def _find(self, call: CallArguments, here: Trace | None) -> Service | None:
        """The trace for a call, made where there is none; None where it is to run eagerly."""
        whole = differentiated(here)
        family = self._families.get(call.key)
        if family is not None:
            if family.eager and here is None:
                return None
            served = family.find(call.shapes, here, whole)
            if served is not None:
                return self._remember(call, served, here)
        for x in call.leaves:
            if not isinstance(x, Tensor):
                raise TypeError(f"{self._name}: {x!r} describes a tensor and is none; get_concrete_function takes it.")
        with making:
            family = self._family(call)
            served = family.find(call.shapes, here, whole) or self._trace_call(family, call, here, whole)
        return None if served is None else self._remember(call, served, here)

    def _remember(self, call: CallArguments, served: Service, here: Trace | None) -> Service:
        other = differentiated(here) and any(traced.spared for traced in self._families[call.key].traces)
        if here is None and served[0].outer is None and not other:  # without recorders another trace serves
            if len(self._served) >= _SERVED:
                self._served.clear()
            self._served[call.key, call.shapes] = served[0]
        return served

    def _family(self, call: CallArguments) -> Family:
        family = self._families.get(call.key)
        if family is None:
            family = self._families[call.key] = Family()
            drop = _dropper(weakref.ref(self), call.key)
            family.watch = [weakref.ref(x, drop) for x in objects_of(call.key) if type(x).__weakrefoffset__]
        return family

    # -- tracing ----------------------------------------------------------------------------------
    def _trace_call(self, family: Family, call: CallArguments, here: Trace | None, whole: bool) -> Service | None:
        """A trace for a call that has none yet."""
        try:
            for specs, soft in self._candidates(family, call, here, whole):
                try:
                    traced = self._trace(family, call, specs, soft, whole)
                except Exception as e:
                    if not any(isinstance(d, Dim) for s in specs for d in s.dims or ()) or here is not None:
                        raise
                    family.rigid = True
                    log("retrace", f"{self._name}: unknown sizes do not do, sizes stay known: {type(e).__name__}: {e}")
                    continue
                env = traced.accepts(call.shapes, here is not None)
                if env is not None:
                    return traced, env
        except (SymbolicValueError, ChoiceNeeded) as e:  # a choice is answered by functions, and not by methods
            if here is not None or not self._may_fall_back() or isinstance(e, LeakedTensorError):
                raise
            self._fall_back(family, e)
            return None
        raise RuntimeError(f"{self._name}: the trace for {call.shapes} does not serve it.")

    def _candidates(self, family: Family, call: CallArguments,
                    here: Trace | None, whole: bool) -> Iterator[tuple[list[InputSpec], tuple[str, ...]]]:
        """Specs to trace for a call, the most general first, and the symbols that were our choice."""
        exact = _exact(call.leaves, here)
        if self._declared is not None and not family.rigid:
            declared = self._declared.specs(call.leaves)
            if declared is not None and (_shapes(declared), whole) not in family.tried:
                family.tried.add((_shapes(declared), whole))
                yield declared, ()
        elif not family.rigid and family.traces and not any(isinstance(x, SymbolicTensor) for x in call.leaves):
            before = [t.specs for t in family.traces]
            for ones in (False, True):  # a size of 1 broadcasts, which a trace for others may not do
                relaxed, soft = _relaxed(before, exact, ones, here)
                if soft and (_shapes(relaxed), whole) not in family.tried:
                    family.tried.add((_shapes(relaxed), whole))
                    yield relaxed, soft
        yield exact, ()

    def _trace(self, family: Family, call: CallArguments, specs: Sequence[InputSpec], soft: Sequence[str],
               whole: bool = False) -> Traced:
        """One trace, which becomes the family's."""
        mark = (call.key, _shapes(specs), whole)
        if mark in self._under_way or len(self._under_way) >= _DEPTH:
            raise RecursionError(
                f"tf.function {self._name!r} calls itself while it is traced, with arguments like those it is traced "
                "for: a recursion must end by Python values, such as an int argument that a Python `if` tests. Use "
                "tf.while_loop, or call the Python function below the tf.function.")
        reason = self._note_retrace(call, whole)
        values = call.leaves if all(isinstance(x, Tensor) for x in call.leaves) else None
        fn = self._converted()
        names = [name for name, _, value in self._parameters.names(call) for _ in CallArguments((value,), {}).leaves]
        run = functools.partial(trace_function, fn, self._name, specs, call.with_leaves, names=names, soft=soft,
                                values=values, whole=whole)
        self._under_way.append(mark)
        try:
            traced, creates = run(may_create=not self._created)
            self._count += 1
            if creates:
                self._created = True
                traced, _ = run(may_create=False)
                self._count += 1
        finally:
            self._under_way.remove(mark)
        self._created = True
        traced.hold_weakly(list(objects_of(call.key)))
        traced.describe(call.with_leaves([TensorSpec(x.shape, x.dtype, x.name) for x in specs]), self._parameters)
        traced.reason, traced.fast_math = reason, self._settings.fast_math
        if traced.spared:
            traced.again = functools.partial(_traced_again, weakref.ref(self), tuple(soft))
        family.traces.append(traced)
        return traced

    def _traced_whole(self, spared: Traced, soft: Sequence[str]) -> Traced:
        """The trace for the same arguments as another, whose gradients can be differentiated again."""
        call = self._within(CallArguments(*form_for(spared.form, spared.specs)), spared.around)
        with making, surroundings.again(spared.around):
            family = self._family(call)
            for traced in family.traces:
                if not traced.spared and traced.relaxed == spared.relaxed and (
                        _shapes(traced.specs) == _shapes(spared.specs)):
                    return traced
            return self._trace(family, call, spared.specs, soft, whole=True)

    def _converted(self) -> PythonFunction:
        """The function to trace: with Python's control flow staged, where that is wanted."""
        if not self._settings.autograph:
            return self._python_function
        converted = autograph.callee(self._plain, asked=True)
        return converted if self._instance is None else _weak_method(converted, self._instance)

    # -- fallback and retracing -------------------------------------------------------------------
    def _may_fall_back(self) -> bool:
        return self._settings.fallback and os.environ.get("TWOFOLD_FALLBACK", "1") != "0"

    def _fall_back(self, family: Family, error: Exception) -> None:
        """From now on calls like this one run eagerly; say so, once."""
        family.eager, family.cause = True, str(error)
        text = f"tf.function {self._name!r} runs eagerly, because it cannot be traced: {error}"
        log("fallback", text)
        if not self._warned:
            self._warned = True
            warnings.warn(text, RuntimeWarning, stacklevel=_outside())

    def _note_retrace(self, call: CallArguments, whole: bool) -> str:
        """Log why a trace is made, and warn when there are too many; the reason."""
        args = {name: CallArguments((value,), {}) for name, _, value in self._parameters.names(call)}
        now = {name: (c.key, c.shapes) for name, c in args.items()}
        before, self._last = self._last, now
        if before is None:
            log("retrace", f"{self._name}: first trace")
            return "it is the first trace"
        changed = [name for name in now if now[name] != before.get(name)]
        shown = ", ".join(f"{name} = {_shown(args[name])}" for name in changed) or (
            "gradients in it may be differentiated again" if whole else
            "nothing but the shape of a variable, or the policy of the layer around")
        log("retrace", f"{self._name}: trace {self._count + 1}; what differs from the last: {shown}")
        if self._count == _RETRACES:
            warnings.warn(
                f"tf.function {self._name!r} has been traced {self._count} times and is traced again. What differs "
                f"from the last trace: {shown}. Tracing is expensive: pass numbers that change as tensors, define the "
                "tf.function once and outside of loops, or give it an input_signature.", RuntimeWarning,
                stacklevel=_outside())
        return f"what differs from the trace before: {shown}"

    # -- traces as objects ------------------------------------------------------------------------
    def _get_concrete_function(self, args: Args, kwargs: Kwargs) -> ConcreteFunction:
        if self._restored is not None:
            return self._restored.concrete(args, kwargs)
        if self._declared is not None and not args and not kwargs:
            args = self._declared.declared
        return self._concrete_of(self._arranged(args, kwargs))

    def _concrete_of(self, call: CallArguments) -> ConcreteFunction:
        """The function for one signature, traced where it is missing."""
        if any(x.dims is None for x in call.leaves):
            return AnyRank(self, call)
        if all(isinstance(x, Tensor) for x in call.leaves) and self._declared is None:
            family = self._families.get(call.key)
            served = None if family is None else family.find(call.shapes, current())
            if served is not None:
                return ConcreteFunction(self, served[0])
        with making:
            family = self._family(call)
            specs = None if self._declared is None else self._declared.specs(call.leaves)
            specs = _exact(call.leaves) if specs is None else specs
            for traced in family.traces:
                if not traced.relaxed and _shapes(traced.specs) == _shapes(specs):
                    return ConcreteFunction(self, traced)
            family.tried.add((_shapes(specs), False))
            return ConcreteFunction(self, self._trace(family, call, specs, ()))

    def traced_for(self, args: Args, kwargs: Kwargs) -> tuple[Traced | str, Sequence[Tensor]]:
        """The trace that serves a call, made where there is none, or why the call runs eagerly; and the call's tensors.

        Args:
            args, kwargs: of a call, or of `get_concrete_function`.
        """
        call = self._arranged(args, kwargs)
        if not all(isinstance(x, Tensor) for x in call.leaves):
            return self._get_concrete_function(args, kwargs)._traced, call.leaves
        if self._restored is not None:
            call = self._restored.served(call, None)
        served = self._find(call, None)
        return self._families[call.key].cause if served is None else served[0], call.leaves

    def explain(self, *args: PythonValue, file: TextIO | None = None, **kwargs: PythonValue) -> Explanation:
        """Print how a call with these arguments is compiled, and return that explanation.

        Told are the signature and why it was traced, the graph, what passes did, the native kernels with what was
        fused and why something was not, memory, what Python runs, and compile times; or why the call runs eagerly.
        The function does not run: only a trace that is missing is made.

        Args:
            args, kwargs: as in a call; `tf.TensorSpec` may stand for a tensor.
            file: where to print, instead of `sys.stdout`.
        Returns:
            An `Explanation`: its parts as attributes.

        >>> import io
        >>> import twofold as tf
        >>> @tf.function
        ... def f(x):
        ...     return tf.reduce_sum(tf.exp(x) * 2.0)
        >>> explanation = f.explain(tf.ones([3]), file=io.StringIO())
        >>> explanation.signature
        'f(x: TensorSpec(shape=(3,), dtype=tf.float32, name=None)) -> TensorSpec(shape=(), dtype=tf.float32, name=None)'
        >>> [[name for name, line in kernel.ops] for kernel in explanation.kernels]
        [['exp', 'multiply', 'reduce_sum']]
        """
        from .explain import Explanation, explain_graph  # imports compilers, which calls do not need
        traced, leaves = self.traced_for(args, kwargs)
        if isinstance(traced, str):
            explanation = Explanation(self._name, "", "", fallback=traced)
        else:
            arguments = ", ".join(f"{name}: {type_text(t)}" for name, _, t in traced.arguments)
            signature = f"{traced.name}({arguments}) -> {type_text(traced.result)}"
            given = [x for x in (*leaves, *traced.read()) if type(x) is Tensor]
            backend = backend_for([x._memory for x in given])
            bound = traced.accepts([x.dims for x in given]) if len(given) == len(traced.graph.inputs) else None
            sizes = {name: size for name, size in (bound or {}).items() if isinstance(size, int)}
            explanation = explain_graph(traced.graph, signature, traced.reason, self._settings.fast_math, backend,
                                        sizes)
        (sys.stdout if file is None else file).write(f"{explanation}\n")
        return explanation

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The signatures of all traces, as text.

        Args:
            verbose: if not, a line for each.
        """
        traces = [t for family in self._families.values() for t in family.traces]
        return ("\n\n" if verbose else "\n").join(
            [ConcreteFunction(self, t).pretty_printed_signature(verbose) for t in traces])

    def _list_all_concrete_functions(self) -> list[ConcreteFunction]:
        """The traces that there are, in the order in which they were made."""
        traces = [t for family in self._families.values() for t in family.traces]
        return [ConcreteFunction(self, t) for t in sorted(traces, key=lambda t: t.number)]

    def experimental_get_tracing_count(self) -> int:
        """How many times the Python function has been traced."""
        return self._count


def _enter(function: Function, *args: PythonValue, **kwargs: PythonValue) -> Structure:
    return function._call(args, kwargs)


def _get_concrete_function(function: Function, *args: PythonValue, **kwargs: PythonValue) -> ConcreteFunction:
    """The function for one signature: a `ConcreteFunction`.

    Args:
        args, kwargs: as in a call, with `tf.TensorSpec` in the places of tensors where only dtype and shape matter.
            A size that a spec gives as None is unknown: one program serves every size.
    """
    return function._get_concrete_function(args, kwargs)


Function.get_concrete_function = native.as_method(native.guard(_get_concrete_function, "get_concrete_function"))
Function.__call__ = program_call.function_entry(  # type: ignore[method-assign]
    Function, "_quick", _enter, "__call__")


def _weak_method(fn: PythonFunction, instance: Callable[[], object]) -> PythonFunction:
    """`fn` as a method of an object that is held weakly."""
    @functools.wraps(fn)
    def method(*args: PythonValue, **kwargs: PythonValue) -> Structure:
        return fn(instance(), *args, **kwargs)
    signature = Parameters(fn).signature
    if signature is not None:
        method.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore
    return method


def _traced_again(owner: Callable[[], Function | None], soft: Sequence[str], spared: Traced) -> Traced | None:
    """`Traced.whole` of a function's trace; None where the function is gone.

    Args:
        soft: the symbols of the trace that were our choice.
    """
    function = owner()
    return None if function is None else function._traced_whole(spared, soft)


def _dropper(owner: Callable[[], Function | None], key: CallKey) -> Callable[[object], None]:
    """A function that lets a function's traces of a key go."""
    def drop(_: object) -> None:
        function = owner()
        if function is not None:
            function._families.pop(key, None)
            function._served = {k: v for k, v in function._served.items() if k[0] != key}
    return drop


def _shapes(specs: Sequence[InputSpec]) -> StaticShapes:
    """Shapes in which all unknown sizes are alike."""
    return tuple([tuple([None if isinstance(d, Dim) else d for d in s.dims]) for s in specs])


def _symbol(name: str, here: Trace | None) -> Dim:
    """A size under this name; inside of another trace, under a name that is not used there."""
    return dm.symbol(name if here is None else f"{name}_{next(here.names)}")


def _exact(leaves: Sequence[CallLeaf], here: Trace | None = None) -> list[InputSpec]:
    """Specs of exactly these tensors; unknown sizes, equal ones alike, get names of their own."""
    names: dict[Dim, Dim] = {}
    specs = []
    for s in named([TensorSpec.from_tensor(x) if isinstance(x, Tensor) else x for x in leaves]):
        for d in s.dims or ():
            if isinstance(d, Dim) and d not in names:
                names[d] = _symbol(f"s{len(names)}", here)
        specs.append(TensorSpec([names.get(d, d) if isinstance(d, Dim) else d for d in s.dims or ()], s.dtype, s.name))
    return specs


def _relaxed(before: Sequence[Sequence[InputSpec]], now: Sequence[InputSpec], ones: bool,
             here: Trace | None) -> tuple[list[InputSpec], tuple[str, ...]]:
    """Specs that fit all of these, and the symbols for the sizes that differ; with `ones`, sizes of 1 stay known."""
    soft: list[str] = []
    specs = []
    for i, s in enumerate(now):
        dims = list(s.dims)
        for n, size in enumerate(dims):
            if any(other[i].dims[n] != size for other in before) and not (ones and size == 1):
                dims[n] = _symbol(f"n{i}_{n}", here)
                soft.append(str(dims[n]))
        specs.append(TensorSpec(dims, s.dtype, s.name))
    return specs, tuple(soft)


def _shown(call: CallArguments) -> str:
    """An argument as a message shows it."""
    if len(call.leaves) == 1 and len(call.key) == 1:
        return repr(TensorSpec.from_tensor(call.leaves[0]))
    return literal(call.args[0])


def _outside() -> int:
    """The `stacklevel` of the innermost frame outside this library, for a warning of the function that calls this
    one."""
    from twofold.ir.errors import is_ours
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    return level


def compiled_backward(entries: Sequence[Entry], numbers: Sequence[Sequence[int]], cts: dict[int, Tensor],
                       stored: bool) -> Callable[..., list[Cotangent]] | None:
    """A program for a backward pass, with no other trace under way."""
    with making:
        return backward.compiled(entries, numbers, cts, stored)
