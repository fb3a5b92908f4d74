"""`ConcreteFunction`: one trace of a `tf.function` as an object that can be called and inspected."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import graph_views, nest
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.graph import Graph
from twofold.ir.spec import TensorSpec
from twofold.ir.type_spec import with_specs
from twofold.runtime import native, program_call

from .function_type import FunctionType, InferenceFunction, Parameter
from .memory_plan import MemoryPlan, memory_plan
from .signature import TOKEN, CallArguments, ObjectReference, Parameters, form_for, literal, numbered, with_opened
from .trace import current, differentiated
from .traced import Traced
from .types import Args, CallForm, Captured, Kwargs, PythonValue, Structure

__all__ = ["AnyRank", "ConcreteFunction"]


class Owner(Protocol):
    """The function that a concrete function is a trace of: it serves calls that the trace does not accept."""

    def _call(self, args: Args, kwargs: Kwargs) -> Structure:
        """The result of a call."""

    def traced_for(self, args: Args, kwargs: Kwargs) -> tuple[Traced | str, Sequence[Tensor]]:
        """The trace that serves a call, or why it runs eagerly; and the call's tensors."""


class ConcreteFunction:
    """A function for one signature: dtypes, shapes and Python values are fixed.

    Attributes:
        graph: the graph that it runs.

    >>> import twofold as tf
    >>> cube = tf.function(lambda x: x ** 3).get_concrete_function(tf.TensorSpec([None], tf.float32))
    >>> cube(tf.constant([1.0, 2.0])).numpy().tolist()
    [1.0, 8.0]
    >>> print(cube.pretty_printed_signature())
    Input Parameters:
      x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(None,), dtype=tf.float32, name=None)
    Output Type:
      TensorSpec(shape=(None,), dtype=tf.float32, name=None)
    Captures:
      None
    """

    __call__: Any  # native code, or a Python function; see below the class

    def __init__(self, function: Owner, traced: Traced) -> None:
        self._function, self._traced = function, traced
        self._direct: Callable[..., Structure] | None = None  # native code that takes the tensors

    # -- calling ----------------------------------------------------------------------------------
    def _call(self, args: Args, kwargs: Kwargs) -> Structure:
        if self._direct is not None and not kwargs:
            return self._direct(*args)
        return self._checked(args, kwargs)

    def _checked(self, args: Args, kwargs: Kwargs) -> Structure:
        return self._run(self._leaves(args, kwargs))

    def _run(self, leaves: list[Tensor]) -> Structure:
        """The result for the tensors of a call."""
        here = current()
        traced = self._traced.whole() if self._traced.spared and differentiated(here) else self._traced
        env = traced.accepts([x.dims for x in leaves])
        if env is None:
            return self._otherwise(leaves)
        variant = None if self._direct is not None else getattr(self._traced, "variant", None)
        if variant is not None and all(type(template) is TensorSpec for _, _, template in self._traced.arguments):
            self._direct = program_call.direct(variant, lambda *tensors: self._checked(tensors, {}))
        return traced(leaves) if here is None else traced.stage(here, leaves, env)

    def _leaves(self, args: Args, kwargs: Kwargs) -> list[Tensor]:
        """The tensors of a call.

        Raises:
            TypeError: the arguments are not those that this function was traced for.
        """
        arguments = self._traced.arguments
        bound = self._bound(args, kwargs)
        leaves: list[Tensor] = []
        for name, _, template in arguments:
            if name in bound:
                self._match(name, template, bound[name], leaves)
            elif _specs(template):
                raise TypeError(f"{self._signature()} missing required arguments: {name}.")
        return leaves

    def _bound(self, args: Args, kwargs: Kwargs) -> Kwargs:
        """The arguments by name; those that are fixed may be left out."""
        names = [name for name, _, _ in self._traced.arguments]
        open_ = [name for name, _, template in self._traced.arguments if _specs(template)]
        short = open_[:len(args)]  # those that are fixed are left out, also by position
        order = open_ if len(args) <= len(open_) and open_ != names[:len(args)] and (
            kwargs.keys().isdisjoint(short)) else names
        if len(args) > len(order):
            raise TypeError(f"{self._signature()} takes {len(order)} positional arguments, got {len(args)}.")
        bound = dict(zip(order, args, strict=False))
        for name, value in kwargs.items():
            if name in bound:
                raise TypeError(f"{self._signature()} got two values for {name!r}.")
            if name not in names:
                raise TypeError(f"{self._signature()} got unexpected keyword arguments: {name}.")
            bound[name] = value
        return bound

    def _match(self, name: str, template: PythonValue, value: PythonValue, leaves: list[Tensor]) -> None:
        """Append the tensors of one argument, which must fit the template that was traced."""
        specs = _specs(template)
        if not specs:
            if CallArguments((value,), {}).key != CallArguments((template,), {}).key and not (
                    isinstance(template, ObjectReference) and template() is value):
                raise TypeError(f"{self._signature()} was constructed with {type(template).__name__} value "
                                f"{literal(template)} in {name}, but was called with {type(value).__name__} value "
                                f"{literal(value)}.")
            return
        if isinstance(template, TensorSpec):
            leaves.append(self._tensor(template, value, len(leaves)))
            return
        if hasattr(type(template), TOKEN):
            argument = CallArguments((value,), {})
            if argument.key != CallArguments((template,), {}).key:
                raise TypeError(f"{self._signature()}: argument {name} was {literal(template)} when it was traced; "
                                f"got {literal(value)}.")
            leaves += argument.leaves
            return
        value = with_opened(value)
        try:
            nest.assert_same_structure(template, value)
        except (TypeError, ValueError) as e:
            raise TypeError(f"{self._signature()}: argument {name}: {e}") from None
        for spec, leaf in zip(nest.flatten(template), nest.flatten(value), strict=True):
            if isinstance(spec, TensorSpec):
                leaves.append(self._tensor(spec, leaf, len(leaves)))
            else:
                self._match(name, spec, leaf, leaves)

    def _tensor(self, spec: TensorSpec, value: PythonValue, number: int) -> Tensor:
        tensor = convert.as_tensor(value, hint=spec.dtype)
        if tensor.dtype is not spec.dtype:
            raise InvalidArgumentError(
                None, self.name, f"cannot compute {self.name} as input #{number}(zero-based) was expected to be a "
                f"{spec.dtype.name} tensor but is a {tensor.dtype.name} tensor [Op:{self.name}]")
        if not spec.shape.is_compatible_with(tensor.shape):
            raise TypeError(f"Binding inputs to tf.function failed due to `Can not cast "
                            f"{TensorSpec.from_tensor(tensor)!r} to {spec!r}`. Received {tensor!r} for {self.name}.")
        return tensor

    def _otherwise(self, leaves: Sequence[Tensor]) -> Structure:
        """The result for sizes that fit the signature and that the trace was not made for."""
        return self._function._call(*form_for(self._traced.form, leaves))

    def traced_for(self, args: Args, kwargs: Kwargs) -> tuple[Traced | str, Sequence[Tensor]]:
        """The trace that serves a call, and the call's tensors; see `Function.traced_for`."""
        leaves = self._leaves(args, kwargs)
        if isinstance(self._traced, Traced) and self._traced.accepts([x.dims for x in leaves]) is not None:
            return self._traced, leaves
        return self._function.traced_for(*form_for(self._traced.form, leaves))

    # -- what it is -------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """A name that no other trace of the process has."""
        return f"__inference_{self._traced.name}_{self._traced.number}"

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._traced.graph

    def memory_plan(self, **sizes: int) -> MemoryPlan:
        """The memory that a run needs besides its arguments: buffers with sizes, lifetimes and places, and sums.

        Args:
            sizes: the values of unknown sizes, by the names that the graph gives them.
        Returns:
            A plan that prints itself; its `arena`, `live`, `outputs` and `peak` are bytes.
        Raises:
            ValueError: a size is missing, or Python runs between compiled parts.

        >>> import twofold as tf
        >>> f = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x)))
        >>> plan = f.get_concrete_function(tf.TensorSpec([16, 16], tf.float32)).memory_plan()
        >>> plan.arena >= 16 * 16 * 4, plan.outputs
        (True, 4)
        """
        return memory_plan(self._traced.runner.program, sizes)

    def to_html(self, *args: PythonValue, path: str | os.PathLike[str] | None = None, **kwargs: PythonValue) -> str:
        """The graph as one HTML file to look around in: fused kernels, memory, source lines; search, zoom, a panel.

        Args:
            args, kwargs: as in a call. Where there are any, it is run with them for a moment to measure the time of
                each kernel; variables do not change, but what Python does inside happens. For a function without
                arguments `path` or nothing may be given: then nothing is measured.
            path: where to write the page, if anywhere.
        Returns:
            The text of the page, which opens without a network.
        Raises:
            TypeError: the arguments are not those that this function was traced for.

        >>> import twofold as tf
        >>> f = tf.function(lambda x: tf.nn.softmax(x * 2.0)).get_concrete_function(tf.TensorSpec([2, 3], tf.float32))
        >>> page = f.to_html(tf.ones([2, 3]))
        >>> "Kernels by time" in page
        True
        """
        inputs = None
        if args or kwargs:
            leaves = [*self._leaves(args, kwargs), *self.captured_inputs]
            inputs = [(t if isinstance(t, Tensor) else t._kept_tensor())._memory for t in leaves]
        fast = getattr(getattr(self._function, "_settings", None), "fast_math", False)
        return self.graph.to_html(path, inputs, fast)

    def _repr_html_(self) -> str:
        return _frame(self.to_html())

    @property
    def inputs(self) -> list[TensorSpec]:
        """Specs of the tensors that the graph takes: those of the call, then the captured ones.

        Tensors of one argument, as of a ragged or a sparse one, have its name, all but the first with a number.
        """
        names = numbered([v.name for v in self.graph.inputs])
        return [TensorSpec(v.dims, v.dtype, name or None) for v, name in zip(self.graph.inputs, names, strict=True)]

    @property
    def outputs(self) -> list[TensorSpec]:
        """Specs of the tensors of the result, flat."""
        return [s for s in nest.flatten(self.structured_outputs) if s is not None]

    @property
    def captured_inputs(self) -> list[Captured]:
        """The tensors and variables from outside that it reads."""
        return self._traced.captures

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that it reads or assigns."""
        return tuple(self._traced.variables)

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of `variables` that tapes watch by themselves."""
        return tuple([v for v in self.variables if v.trainable])

    @property
    def structured_input_signature(self) -> CallForm:
        """`(args, kwargs)` with specs for tensors."""
        args, kwargs = self._traced.form
        return tuple([_shown(a) for a in args]), {k: _shown(v) for k, v in kwargs.items()}

    @property
    def structured_outputs(self) -> Structure:
        """The structure of the result, with specs for tensors."""
        return with_specs(self._traced.result)

    @property
    def function_def(self) -> Graph:
        """The graph; the same as `.graph`."""
        return self.graph

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """The signature as text.

        Args:
            verbose: if not, one line, `(x: type) -> type`.
        """
        return repr(self.function_type) if verbose else str(self.function_type)

    @property
    def function_type(self) -> FunctionType:
        """The type of the function: `parameters`, `output`, `captures`."""
        parameters = {name: Parameter(name, kind, t) for name, kind, t in self._traced.arguments}
        captures = {_capture_name(c): TensorSpec(c.shape, c.dtype) for c in self.captured_inputs}
        return FunctionType(parameters, self.structured_outputs, captures)

    @property
    def inference_fn(self) -> InferenceFunction:
        """The graph as a function of flat tensors."""
        return InferenceFunction(self.name, self.function_type, self.graph, self._flat, self.captured_inputs)

    def _flat(self, tensors: Sequence[PythonValue]) -> Structure:
        """The result for values that become the tensors of a call."""
        specs = self.function_type.flat_inputs
        return self._run([self._tensor(s, x, n) for n, (s, x) in enumerate(zip(specs, tensors, strict=True))])

    @property
    def output_shapes(self) -> Structure:
        """The shapes of the result, in its structure."""
        return nest.map_structure(lambda s: None if s is None else s.shape, self.structured_outputs)

    @property
    def output_dtypes(self) -> Structure:
        """The dtypes of the result, in its structure."""
        return nest.map_structure(lambda s: None if s is None else s.dtype, self.structured_outputs)

    def _signature(self) -> str:
        """`name(a, b=2)`."""
        parts = [name if _specs(t) else f"{name}={literal(t)}" for name, _, t in self._traced.arguments]
        return f"ConcreteFunction {self._traced.name}({', '.join(parts)})"

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self) -> str:
        return f"<{self._signature()} at 0x{id(self):X}>"


def _enter(function: ConcreteFunction, *args: PythonValue, **kwargs: PythonValue) -> Structure:
    return function._call(args, kwargs)


ConcreteFunction.__call__ = native.as_method(  # type: ignore[method-assign]
    native.guard(_enter, "__call__"))


def _specs(template: PythonValue) -> list[PythonValue]:
    """The specs in a template, which stand for the tensors of a call."""
    return [leaf for leaf in nest.flatten(template) if isinstance(leaf, TensorSpec) or hasattr(type(leaf), TOKEN)]


def _shown(template: PythonValue) -> PythonValue:
    return template() if isinstance(template, ObjectReference) else with_specs(template)


def _capture_name(capture: Captured) -> str:
    return str(id(capture)) if isinstance(capture, Tensor) else capture.name


def _page(graph: Graph, inputs: Sequence[np.ndarray] | None, fast_math: bool) -> str:
    from .page import whole  # imports compilers, which calls do not need
    return whole.page_of(graph, inputs, fast_math)


def _frame(page: str) -> str:
    from .page import html
    return html.in_notebook(page)


graph_views.draw_pages_with(_page, _frame)


class AnyRank(ConcreteFunction):
    """A concrete function with an argument of unknown rank: there is a trace for each rank that it meets."""

    _function: Any  # a `Function`, which is defined above this module

    def __init__(self, function: Any, call: CallArguments) -> None:  # likewise
        scalars = [x if x.dims is not None else TensorSpec((), x.dtype, x.name) for x in call.leaves]
        args, kwargs = call.with_leaves(scalars)
        super().__init__(function, function.get_concrete_function(*args, **kwargs)._traced)
        self._own = _AnyRankTrace(self._traced, *call.with_leaves(call.leaves), function._parameters)
        self._traced = self._own  # type: ignore[assignment]

    def _call(self, args: Args, kwargs: Kwargs) -> Structure:
        return self._otherwise(self._leaves(args, kwargs))

    def _run(self, leaves: list[Tensor]) -> Structure:
        return self._otherwise(leaves)


class _AnyRankTrace:
    """The trace for scalars as an `AnyRank` shows it: with shapes of unknown rank."""

    def __init__(self, scalar: Traced, args: Args, kwargs: Kwargs, parameters: Parameters) -> None:
        self.name, self.number, self.graph = scalar.name, scalar.number, scalar.graph
        self.captures, self.variables = scalar.captures, scalar.variables
        self.result = nest.map_structure(lambda s: None if s is None else TensorSpec(None, s.dtype), scalar.result)
        self.form = (args, kwargs)
        self.arguments = parameters.names(CallArguments(args, kwargs))
