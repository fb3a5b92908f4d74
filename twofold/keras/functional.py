"""The graph of a functional model: the calls that lead from its inputs to its outputs.

`NetworkGraph` orders the calls that `symbolic.py` noted, as Keras does (names in weight files follow that order), and
runs them; the model around it is `model.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import twofold as tf

from .composites import is_composite
from .input_layer import InputLayer
from .keras_tensor import KerasTensor, Node, replaced

__all__ = ["NetworkGraph"]


class _Place(int):
    """The number of a KerasTensor, which takes its place in the arguments of a call."""


class _About:
    """The arguments that make an equal KerasTensor, which take its place in a config."""

    def __init__(self, shape: Any, dtype: Any, name: str, sparse: bool, ragged: bool) -> None:
        self.parts = shape, dtype, name, sparse, ragged


def _about(x: KerasTensor) -> _About:
    return _About(tuple(x.shape), x.dtype.name, x.name, x.sparse, x.ragged)


def _mapped(structure: Any, kind: type, what: Callable[[Any], Any]) -> Any:
    """A structure with `what(x)` in the place of each x of a kind."""
    return tf.nest.map_structure(lambda x: what(x) if type(x) is kind else x, structure)


class NetworkGraph:
    """The calls that lead from inputs to outputs.

    Args:
        inputs, outputs: structures of KerasTensors.
    Attributes:
        layers: the layers, in Keras's order: by their distance from the outputs, farthest first.
        nodes: the calls, each after those that it needs.
    Raises:
        ValueError: an output depends on something that is not among the inputs, or names repeat.
    """

    def __init__(self, inputs: Any, outputs: Any):
        self.input_structure, self.output_structure = inputs, outputs
        self.inputs, self.outputs = tf.nest.flatten(inputs), tf.nest.flatten(outputs)
        for x in (*self.inputs, *self.outputs):
            if not isinstance(x, KerasTensor):
                raise ValueError("All `inputs` and `outputs` values must be KerasTensors. Received: "
                                 f"inputs={inputs!r}, outputs={outputs!r}")
        self._number()

    def _number(self) -> None:
        """Put the calls in order, and number the tensors."""
        self.nodes, self.layers = self._ordered()
        self._check()
        self._slots = {id(x): n for n, x in enumerate(self.inputs)}
        self._steps = [self._step(node) for node in self.nodes]
        self._results = tuple([self._slot(x) for x in self.outputs])

    # -- copies -----------------------------------------------------------------------------------
    def __getstate__(self) -> list[Any]:
        """The calls one after another, with numbers for tensors: deep networks must not make deep recursions."""
        entries = [(x._node.operation, _about(x)) for x in self.inputs]
        places = {id(x): _Place(n) for n, x in enumerate(self.inputs)}
        calls = []
        for node in self.nodes:
            args, kwargs, first = (_mapped(part, KerasTensor, lambda x: places[id(x)])
                                   for part in (node.args, node.kwargs, node.input_structure))
            for x in node.outputs:
                places[id(x)] = _Place(len(places))
            calls.append((node.operation, args, kwargs, _mapped(node.output_structure, KerasTensor, _about), first))
        ends = [_mapped(part, KerasTensor, lambda x: places[id(x)])
                for part in (self.input_structure, self.output_structure)]
        return [entries, calls, ends]

    def __setstate__(self, state: list[Any]) -> None:
        entries, calls, ends = state
        tensors: list[KerasTensor] = []

        def tensor(about: _About) -> KerasTensor:
            tensors.append(KerasTensor(*about.parts))
            return tensors[-1]
        for layer, about in entries:
            Node(layer, (), {}, tensor(about))
        for layer, args, kwargs, outputs, first in calls:
            given = [_mapped(part, _Place, lambda n: tensors[n]) for part in (args, kwargs, first)]
            made = _mapped(outputs, _About, tensor)
            Node(layer, given[0], given[1], made, given[2])
        self.input_structure, self.output_structure = (_mapped(part, _Place, lambda n: tensors[n]) for part in ends)
        self.inputs, self.outputs = tf.nest.flatten(self.input_structure), tf.nest.flatten(self.output_structure)
        self._number()

    # -- order ------------------------------------------------------------------------------------
    def _ordered(self) -> tuple[list[Node], list[Any]]:
        order, numbers = self._walked()
        depths: dict[int, int] = {}
        layer_depths: dict[int, int] = {}
        layers: dict[int, Any] = {}
        for node in reversed(order):
            key = id(node.operation)
            depth = max(depths.setdefault(id(node), 0), layer_depths.get(key, 0))
            depths[id(node)] = layer_depths[key] = depth
            layers[key] = node.operation
            if not self._is_entry(node):
                for parent in node.parents:
                    depths[id(parent)] = max(depth + 1, depths.get(id(parent), 0))
        for x in self.inputs:  # inputs that nothing uses
            layer = x._node.operation
            if id(layer) not in layer_depths:
                layer_depths[id(layer)], numbers[id(layer)], layers[id(layer)] = 0, -1, layer
        listed = sorted(layers.values(), key=lambda layer: (-layer_depths[id(layer)], numbers[id(layer)]))
        return [node for node in order if not self._is_entry(node)], listed

    def _is_entry(self, node: Node) -> bool:
        return any(x._node is node for x in self.inputs)

    def _walked(self) -> tuple[list[Node], dict[int, int]]:
        """The nodes depth first from the outputs, each after its parents; layers numbered as they are met."""
        order: list[Node] = []
        numbers: dict[int, int] = {}
        done: set[int] = set()
        for output in self.outputs:
            stack: list[tuple[Node, Any]] = [(output._node, None)]
            while stack:
                node, parents = stack.pop()
                if parents is None:
                    if id(node) in done:
                        continue
                    numbers.setdefault(id(node.operation), len(numbers))
                    parents = iter(() if self._is_entry(node) else node.parents)
                parent = next(parents, None)
                if parent is not None:
                    stack += [(node, parents), (parent, None)]
                elif id(node) not in done:
                    done.add(id(node))
                    order.append(node)
        return order, numbers

    def _check(self) -> None:
        known = {id(x) for x in self.inputs}
        for node in self.nodes:
            if isinstance(node.operation, InputLayer):
                raise ValueError(f"`inputs` not connected to `outputs`: the output depends on the input "
                                 f"'{node.operation.name}', which is not among the inputs.")
            for x in node.inputs:
                if id(x) not in known:
                    raise ValueError(f"Graph disconnected: cannot compute {x!r} for layer '{node.operation.name}' from "
                                     "the inputs.")
            known |= {id(x) for x in node.outputs}
        names = [layer.name for layer in self.layers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f'The name "{twice[0]}" is used {names.count(twice[0])} times in the model. All layer '
                             "names should be unique.")

    # -- running ----------------------------------------------------------------------------------
    def _slot(self, x: KerasTensor) -> int:
        return self._slots.setdefault(id(x), len(self._slots))

    def _step(self, node: Node) -> tuple[Any, ...]:
        """A node as `run` takes it: `(layer, slot of the one input or None, node, slots of outputs)`."""
        simple = len(node.args) == 1 and not node.kwargs and type(node.args[0]) is KerasTensor
        source = self._slot(node.args[0]) if simple else None
        return node.operation, source, node, tuple([self._slot(x) for x in node.outputs])

    def run(self, inputs: list[Any]) -> Any:
        """The outputs for flat inputs."""
        values: list[Any] = [*inputs, *[None] * (len(self._slots) - len(inputs))]
        for layer, source, node, targets in self._steps:
            if source is not None:
                outputs = layer(values[source])
            else:
                args, kwargs = self._arguments(node, values)
                outputs = layer(*args, **kwargs)
            if len(targets) == 1 and not tf.nest.is_nested(outputs):
                values[targets[0]] = outputs
            else:
                for target, value in zip(targets, tf.nest.flatten(outputs), strict=True):
                    values[target] = value
        flat = [values[n] for n in self._results]
        return tf.nest.pack_sequence_as(self.output_structure, flat) if tf.nest.is_nested(
            self.output_structure) else flat[0]

    def _arguments(self, node: Node, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def value_of(x: KerasTensor) -> Any:
            return values[self._slots[id(x)]]
        return (tuple([replaced(a, value_of) for a in node.args]),
                {k: replaced(v, value_of) for k, v in node.kwargs.items()})

    def flat_inputs(self, inputs: Any) -> list[Any]:
        """Inputs as given, flat and in order, of the rank and dtype that the graph expects.

        Raises:
            ValueError: there are more or fewer than the graph has.
        """
        structure = self.input_structure
        if isinstance(structure, KerasTensor) and isinstance(inputs, tf.Tensor):
            return [_fitted(inputs, structure)]
        if isinstance(inputs, Mapping) and not isinstance(structure, Mapping):
            flat = [inputs[x.name] for x in self.inputs if x.name in inputs]
        elif isinstance(inputs, Mapping):
            flat = tf.nest.flatten({k: inputs[k] for k in structure if k in inputs})
        else:
            flat = tf.nest.flatten(inputs)
        if len(flat) != len(self.inputs):
            raise ValueError(f"Function expects {len(self.inputs)} inputs, but it received {len(flat)}. Expected the "
                             f"structure {tf.nest.map_structure(lambda x: x.name, structure)}.")
        return [_fitted(value, x) for value, x in zip(flat, self.inputs, strict=True)]


def _fitted(value: Any, x: KerasTensor) -> Any:
    """An input in the dtype and rank of its KerasTensor."""
    if value is None or isinstance(value, KerasTensor):
        return value
    if value.dtype is not x.dtype and (value.dtype.is_floating or value.dtype.is_integer or value.dtype.is_bool):
        value = tf.cast(value, x.dtype)
    if is_composite(value):
        return value
    rank, wanted = value.ndim, x.ndim
    if rank == wanted:
        return value
    if rank == wanted - 1 and x.shape[-1] == 1:
        return tf.expand_dims(value, -1)
    if rank == wanted + 1 and value.shape[-1] == 1:
        return tf.squeeze(value, -1)
    return value
