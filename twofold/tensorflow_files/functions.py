"""Functions of a file as `tf.function`s: which of the graphs that were saved a call runs.

TensorFlow saves a graph for each way in which a function was called. A call takes the first that fits as it is, else
the first that fits when Python values become tensors; what is traced here is that graph, for the sizes of the call,
which are relaxed as those of any `tf.function` are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from keyword import iskeyword
from typing import Any

from twofold._formats.node_errors import NodeError, told
from twofold.eager.variable import Variable
from twofold.ir import nest
from twofold.ir.errors import InvalidArgumentError, OpError, UnimplementedError
from twofold.ir.spec import TensorSpec
from twofold.saved_model.signatures import SignatureFunction, Signatures, traces_of_each_rank
from twofold.tracer.concrete import ConcreteFunction
from twofold.tracer.function import Function
from twofold.tracer.options import Options
from twofold.tracer.restored import NoFit, fitted, refusal
from twofold.tracer.signature import CallArguments

from .graphs import Called, Library
from .run import FAULTS, Run, lacking
from .table import tensor

__all__ = ["Graph", "LazySignatures", "LoadedSignature", "loaded_function"]


class Graph:
    """One graph that was saved of a function.

    Args:
        library: the functions of the file.
        name: of the function of the library.
        form: `(args, kwargs)` with specs for tensors.
        result: the structure of the result, with specs for tensors.
        captures: values of the arguments after those of the call; a function that gives them.
        source: the file, for messages.
        order: for arguments by name, their order among the function's arguments.
    """

    def __init__(self, library: Library, name: str, form: tuple[tuple[Any, ...], dict[str, Any]], result: Any,
                 captures: Callable[[], Sequence[Any]], source: str, order: Sequence[str] | None = None) -> None:
        self.library, self.name, self.form, self.result, self.order = library, name, form, result, order
        self.captured, self._source = captures, source
        self._checked = False

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result for arguments that fit the form.

        Raises:
            UnimplementedError: ops of it are not there; the message names all of them. InvalidArgumentError: an op
                refuses what it is given, or the graph makes no sense.
        """
        self.check()
        named = [kwargs[name] for name in self.order] if self.order is not None else (args, kwargs)
        tensors = [tensor(leaf) for leaf, spec in zip(nest.flatten(named), self._specs(), strict=True)
                   if isinstance(spec, TensorSpec)]
        try:
            return self._packed(self._outputs(tensors))
        except NodeError as e:
            raise told(e, self._source) from e.cause
        except OpError:
            raise
        except FAULTS as e:
            raise InvalidArgumentError(f"{self._source}: {self.name}: {str(e)[:500]}") from e

    def _outputs(self, tensors: list[Any]) -> list[Any]:
        """The outputs of the graph for the tensors of a call."""
        return Run(self.library).function(Called(self.name, {}), [*tensors, *self.captured()])

    def check(self) -> None:
        """Raise where ops of it are not there."""
        if self._checked:
            return
        lost = self.lacking()
        if lost:
            raise UnimplementedError(None, None, f"{self._source}: the function {self.name} uses ops that twofold does "
                                                 f"not have: {', '.join(lost)}")
        self._checked = True

    def lacking(self) -> list[str]:
        """The names of ops that are not there."""
        try:
            return lacking(self.library, [self.library.body(self.name)])
        except FAULTS as e:
            raise InvalidArgumentError(f"{self._source}: {self.name[:80]}: {str(e)[:500]}") from e

    def _specs(self) -> list[Any]:
        if self.order is not None:
            return nest.flatten([self.form[1][name] for name in self.order])
        return nest.flatten(self.form)

    def _packed(self, outputs: list[Any]) -> Any:
        leaves = nest.flatten(self.result)
        wanted = sum(leaf is not None for leaf in leaves)
        if wanted != len(outputs):
            raise ValueError(f"it gives {len(outputs)} values where its signature has {wanted}")
        rest = iter([tensor(v.read_value() if isinstance(v, Variable) else v) for v in outputs])
        return nest.pack(self.result, [None if leaf is None else next(rest) for leaf in leaves])


# -- functions ----------------------------------------------------------------------------------------
def loaded_function(name: str, signature: inspect.Signature | None, graphs: Sequence[Graph]) -> Function:
    """A `tf.function` that runs graphs of a file.

    Args:
        name: of the function.
        signature: its parameters; None where they are not known.
        graphs: in the order in which calls try them.
    """
    def run(*args: Any, **kwargs: Any) -> Any:
        call = CallArguments(args, kwargs)
        for graph, fits in _fitting(graphs, call):
            if _covers(graph, fits):
                return graph(fits.args, fits.kwargs)
        raise ValueError(refusal(name, graphs, call))
    run.__name__ = run.__qualname__ = name
    if signature is not None:
        run.__signature__ = signature  # type: ignore[attr-defined]
    function = Function(run, Options(None, autograph=False, fallback=False))
    function._restored = _Graphs(function, graphs)
    return function


def _fitting(graphs: Sequence[Graph], call: CallArguments) -> Iterator[tuple[Graph, CallArguments]]:
    """The graphs that take a call, with the call as they take it: first those that take it as it is."""
    later = []
    for graph in graphs:
        try:
            fits = fitted(graph.form, call)
        except NoFit:
            continue
        if fits.key == call.key:
            yield graph, fits
        else:
            later.append((graph, fits))
    yield from later


def _covers(graph: Graph, call: CallArguments) -> bool:
    """Whether the graph was made for all sizes that the tensors of a call may have."""
    specs = [leaf for leaf in nest.flatten(graph.form) if isinstance(leaf, TensorSpec)]
    return all(spec.dims is None or all(want is None or want == size for want, size in zip(
        spec.shape.as_list(), leaf.dims or (), strict=True)) for spec, leaf in zip(specs, call.leaves, strict=True))


class _Graphs:
    """What a `Function` asks of one that was loaded (`tracer/function.py`)."""

    def __init__(self, function: Function, graphs: Sequence[Graph]) -> None:
        self._function, self._graphs = function, graphs
        self._traces: list[Any] | None = None

    @property
    def traces(self) -> list[Any]:
        """A trace for each graph, with its sizes open; for each rank, where that is."""
        if self._traces is None:
            self._traces = [traced for graph in self._graphs for traced in self._traces_of(graph)]
        return self._traces

    @property
    def variables(self) -> list[Variable]:
        """The variables that the graphs use."""
        used = {id(v): v for graph in self._graphs for v in graph.captured() if isinstance(v, Variable)}
        return list(used.values())

    def _traces_of(self, graph: Graph) -> list[Any]:
        if any(leaf.dims is None for leaf in nest.flatten(graph.form) if isinstance(leaf, TensorSpec)):
            return traces_of_each_rank(self._function, *graph.form)
        return [self._function._concrete_of(CallArguments(*graph.form))._traced]

    def served(self, call: CallArguments, here: Any) -> CallArguments:
        """The call as the graph that it goes to takes it.

        Raises:
            ValueError: none does.
        """
        for _, fits in _fitting(self._graphs, call):
            return fits
        raise ValueError(refusal(self._function._name, self._graphs, call))

    def concrete(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ConcreteFunction:
        """The function for one signature; without arguments, that of the only graph.

        Raises:
            ValueError: there is none.
        """
        if not args and not kwargs and len(self._graphs) == 1:
            call = CallArguments(*self._graphs[0].form)
        else:
            call = self.served(self._function._parameters.call(args, kwargs), None)
        return self._function._concrete_of(call)


# -- signatures ---------------------------------------------------------------------------------------
class LoadedSignature(SignatureFunction):
    """A signature of a file: sizes for which its trace does not do get one of their own."""

    def __init__(self, name: str, graph: Graph, inputs: Sequence[str]) -> None:
        keys = inspect.Parameter
        parameters = inspect.Signature([keys(n, keys.KEYWORD_ONLY) for n in sorted(inputs)]) if all(
            n.isidentifier() and not iskeyword(n) for n in inputs) else None  # which has names that Python has not
        self._any = loaded_function(f"signature_wrapper_{name}", parameters, [graph])
        assert self._any._restored is not None
        super().__init__(name, self._any._restored.traces, sorted(inputs))

    def _otherwise(self, leaves: Sequence[Any]) -> Any:
        names = [name for name, _, _ in self._traced.arguments]
        return self._any._call((), dict(zip(names, leaves, strict=True)))


class LazySignatures(Signatures):
    """The signatures of a file; each is traced when it is first asked for."""

    def __init__(self, makers: dict[str, Callable[[], SignatureFunction]]) -> None:
        self._makers = makers
        super().__init__({})

    def __getitem__(self, name: str) -> SignatureFunction:
        if name not in self._functions:
            self._functions[name] = self._makers[name]()
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return f"Signatures({list(self._makers)!r})"


