"""The type of a concrete function, as `ConcreteFunction.function_type` and `inference_fn` show it.

Only for reading: calls are checked by `tracer/concrete.py`, whose arguments and results these describe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from twofold.eager.tensor import Tensor
from twofold.ir import nest
from twofold.ir.graph import Graph
from twofold.ir.node_def import GraphDef
from twofold.ir.spec import TensorSpec

from .signature import literal
from .types import Captured, PythonValue, Structure

__all__ = ["FunctionType", "InferenceFunction", "Parameter", "type_text"]


class Parameter(NamedTuple):
    """One parameter.

    Attributes:
        name: its name.
        kind: how it is given, by the names of `inspect`: "POSITIONAL_OR_KEYWORD" and so on.
        type_constraint: a `tf.TensorSpec`, a structure of them, or the Python value that the function is for.
    """

    name: str
    kind: str
    type_constraint: PythonValue

    def __str__(self) -> str:
        return f"{self.name}: {type_text(self.type_constraint)}"


class FunctionType(NamedTuple):
    """The parameters, result and captures of a concrete function.

    Attributes:
        parameters: by name, in their order.
        output: the structure of the result, with specs.
        captures: specs of the tensors from outside, by name.
    """

    parameters: Mapping[str, Parameter]
    output: Structure
    captures: Mapping[str, TensorSpec]

    @property
    def flat_inputs(self) -> list[TensorSpec]:
        """The specs of the tensors of a call."""
        return [s for p in self.parameters.values() for s in _specs(p.type_constraint)]

    @property
    def flat_outputs(self) -> list[TensorSpec]:
        """The specs of the tensors of the result."""
        return _specs(self.output)

    def __str__(self) -> str:
        parts: list[str] = []
        kinds = [p.kind for p in self.parameters.values()]
        for n, parameter in enumerate(self.parameters.values()):
            if parameter.kind == "KEYWORD_ONLY" and "KEYWORD_ONLY" not in kinds[:n]:
                parts.append("*")
            parts.append(str(parameter))
            if parameter.kind == "POSITIONAL_ONLY" and "POSITIONAL_ONLY" not in kinds[n + 1:]:
                parts.append("/")
        return f"({', '.join(parts)}) -> {type_text(self.output)}"

    def __repr__(self) -> str:
        parameters = [f"  {p.name} ({p.kind}): {type_text(p.type_constraint)}" for p in self.parameters.values()]
        captures = [f"  {name}: {spec!r}" for name, spec in self.captures.items()] or ["  None"]
        return "\n".join(["Input Parameters:", *parameters,
                          "Output Type:", f"  {type_text(self.output)}", "Captures:", *captures])


class InferenceFunction:
    """The graph of a concrete function as a function of flat tensors.

    Args:
        name: its name.
        function_type: its type.
        graph: the graph that it runs.
        call: gives the structured result for the tensors of a call.
        captures: the tensors and variables from outside.
    """

    def __init__(self, name: str, function_type: FunctionType, graph: Graph,
                 call: Callable[[Sequence[PythonValue]], Structure], captures: Sequence[Captured]) -> None:
        self.name, self.function_type, self.graph = name.encode(), function_type, graph
        self._call, self._captures = call, captures

    @property
    def definition(self) -> GraphDef:
        """The graph with named nodes."""
        return self.graph.as_graph_def()

    cached_definition = definition

    def __call__(self, *args: PythonValue) -> Structure:
        """The structured result for the tensors of a call.

        Raises:
            TypeError: there is another number of tensors.
        """
        return self._call(self._checked(args))

    def call_preflattened(self, args: Sequence[PythonValue]) -> Structure:
        """The structured result for the tensors of a call."""
        return self._call(list(args)[:len(self.function_type.flat_inputs)])

    def call_flat(self, *args: PythonValue) -> list[Tensor]:
        """The tensors of the result.

        Args:
            args: the tensors of a call; after them there may be the captured ones, which stay as they are.
        Raises:
            TypeError: there is another number of tensors.
        """
        return [x for x in nest.flatten(self._call(self._checked(args))) if isinstance(x, Tensor)]

    def _checked(self, args: Sequence[PythonValue]) -> Sequence[PythonValue]:
        count = len(self.function_type.flat_inputs)
        if len(args) not in (count, count + len(self._captures)):
            raise TypeError(f"{self.name.decode()} takes {count} tensors and {len(self._captures)} captured ones; got "
                            f"{len(args)}.")
        return args[:count]

    def __repr__(self) -> str:
        return f"<InferenceFunction {self.name.decode()}{self.function_type}>"


def _specs(template: PythonValue) -> list[TensorSpec]:
    return [leaf for leaf in nest.flatten(template) if isinstance(leaf, TensorSpec)]


def type_text(template: PythonValue) -> str:
    """A structure of specs and Python values, as signatures print it."""
    if isinstance(template, TensorSpec) or nest.is_composite(template):
        return repr(template)
    if isinstance(template, Mapping):
        return f"Dict[{', '.join(f'[{k!r}, {type_text(v)}]' for k, v in template.items())}]"
    if isinstance(template, (list, tuple)):
        kind = "List" if isinstance(template, list) else "Tuple"
        return f"{kind}[{', '.join(map(type_text, template))}]"
    return f"Literal[{literal(template)}]"
