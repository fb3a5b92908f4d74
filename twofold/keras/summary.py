"""Tables and pictures of models: `model.summary()` and `plot_model`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from twofold._front.api import listed, public

from .keras_tensor import KerasTensor
from .progress import tell

__all__ = ["model_to_dot", "plot_model", "print_summary"]

_MARGIN = 2
_NUMBERS = 2  # the column of numbers
_WIDTH = 76
#: the columns of a table of that width, by whether it says what layers are connected to, and whether they are trained
_COLUMNS = {(False, False): (31, 22, 13), (True, False): (19, 17, 10, 17), (False, True): (27, 21, 10, 5),
            (True, True): (17, 15, 9, 14, 5)}


def print_summary(model: Any, line_length: int | None = None, print_fn: Callable[..., Any] | None = None,
                  expand_nested: bool = False, show_trainable: bool = False, layer_range: Any = None) -> None:
    """Print the table of a model's layers; see `Model.summary`."""
    connected = _branches(model)
    if line_length is None and print_fn is None and sys.stdout.isatty():
        most = (108 if connected else 88) + (12 if show_trainable else 0)
        line_length = max(_WIDTH, min(most, shutil.get_terminal_size().columns))
    text = _summary_text(model, line_length or _WIDTH, expand_nested, show_trainable, layer_range, connected)
    if print_fn is None:
        tell(text.removesuffix("\n"))
    else:
        print_fn(text)


def _summary_text(model: Any, width: int, expand_nested: bool, show_trainable: bool, layer_range: Any,
                  connected: bool) -> str:
    """The table, and the numbers of parameters below it."""
    heads = ["Layer (type)", "Output Shape", "Param #", *(["Connected to"] if connected else []),
             *(["Trainable"] if show_trainable else [])]
    widths = _widths(width, connected, show_trainable)
    rows = [_row(layer, level, show_trainable, connected, model)
            for layer, level in _shown(model.layers, expand_nested, layer_range)]
    lines = [f'Model: "{model.name}"', _rule("┏━┳┓", widths), *_cells(heads, widths, "┃"), _rule("┡━╇┩", widths)]
    for n, row in enumerate(rows):
        if n:
            lines.append(_rule("├─┼┤", widths))
        lines += _cells(row, widths, "│", centred=len(row) - 1 if show_trainable else None)
    lines.append(_rule("└─┴┘", widths))
    return "\n".join([*lines, *_totals(model)]) + "\n"


def _widths(width: int, connected: bool, show_trainable: bool) -> list[int]:
    """The columns of a table of a width: as wide as Keras's in a table of 76, and in proportion in others."""
    usual = _COLUMNS[connected, show_trainable]
    room, full = width - 3 * len(usual) - 1, sum(usual)
    widths = [max(4, usual[n] * room // full if n in (0, 2) else round(usual[n] * room / full))
              for n in range(len(usual))]
    return [max(4, room - sum(widths[1:])), *widths[1:]]


def _branches(model: Any) -> bool:
    """Whether a model is a graph that is more than one layer after another."""
    graph = model.__dict__.get("_graph")
    if graph is None or hasattr(model, "_file_layers"):
        return False
    chain = all(len(node.inputs) == 1 for node in graph.nodes) and len(graph.inputs) == 1 and all(
        after.inputs[0]._node is before for before, after in zip(graph.nodes, graph.nodes[1:], strict=False))
    return not chain or len({id(node.operation) for node in graph.nodes}) < len(graph.nodes)


def _shown(layers: list[Any], expand: bool, layer_range: Any, level: int = 0) -> Iterator[tuple[Any, int]]:
    if layer_range:
        names = [layer.name for layer in layers]
        ends = listed(layer_range, "layer_range")
        if len(ends) != 2 or any(name not in names for name in ends):
            raise ValueError(f"layer_range should be the names of two layers of the model. Received: {layer_range}")
        layers = layers[names.index(ends[0]):names.index(ends[1]) + 1]
    for layer in layers:
        yield layer, level
        if expand and hasattr(layer, "layers"):
            yield from _shown(layer.layers, True, None, level + 1)


def _row(layer: Any, level: int, show_trainable: bool, connected: bool, model: Any) -> list[str]:
    head = f"{'   ' * level + '└ ' if level else ''}{layer.name} ({type(layer).__name__})"
    count = "0 (unbuilt)" if not layer.built else f"{_params(layer.weights):,}"
    row = [head, _output_shape(layer), count]
    if connected:
        row.append(_connections(layer, model) if not level else "")
    if show_trainable:
        row.append("Y" if layer.trainable_weights else "N" if layer.weights else "-")
    return row


def _output_shape(layer: Any) -> str:
    nodes = layer.inbound_nodes
    if not nodes:
        return _shape_of_build(layer)
    shapes = [[tuple(x.shape) for x in node.outputs if x is not None] for node in nodes]
    first = shapes[0]
    if any(other != first for other in shapes):
        return "multiple"
    return str(first[0]) if len(first) == 1 else f"[{', '.join(map(str, first))}]"


def _shape_of_build(layer: Any) -> str:
    """The shape of the outputs of a layer that was called, but in no graph."""
    shapes = getattr(layer, "_build_shapes", None)
    if not shapes:
        return "?"
    try:
        shape = layer.compute_output_shape(*shapes.values())
    except Exception:  # noqa: BLE001 - a layer of a user's, whose shapes may depend on more than the first call's
        return "?"
    return str(_plain_shape(shape))


def _plain_shape(shape: Any) -> Any:
    if isinstance(shape, dict):
        return {k: _plain_shape(v) for k, v in shape.items()}
    return tuple([_plain_shape(v) if isinstance(v, (list, tuple, dict)) else v for v in shape])


def _connections(layer: Any, model: Any) -> str:
    kept = {id(node) for node in model.__dict__["_graph"].nodes}
    connections = []
    for node in layer.inbound_nodes:
        if id(node) in kept:
            for x in node.inputs:
                history = x._keras_history
                connections.append(f"{history.operation.name}[{history.node_index}][{history.tensor_index}]")
    return ", ".join(connections) or "-"


def _rule(marks: Sequence[str], widths: list[int]) -> str:
    left, line, cross, right = tuple(marks)
    return left + cross.join([line * (w + _MARGIN) for w in widths]) + right


def _cells(row: list[str], widths: list[int], bar: str, centred: int | None = None) -> list[str]:
    parts = [_wrapped(text, width) for text, width in zip(row, widths, strict=True)]
    lines = []
    for n in range(max(map(len, parts))):
        texts = [part[n] if n < len(part) else "" for part in parts]
        cells = [t.rjust(w) if i == _NUMBERS else t.center(w) if i == centred else t.ljust(w)
                 for i, (t, w) in enumerate(zip(texts, widths, strict=True))]
        lines.append(bar + bar.join([f" {c} " for c in cells]) + bar)
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    """A text in lines of a width, broken at blanks; what is longer without one ends in an ellipsis."""
    indent = text[:len(text) - len(text.lstrip())]
    lines, line = [], indent
    for word in text.split():
        blank = " " if line.strip() else ""
        if line.strip() and len(line) + 1 + len(word) > width:
            lines.append(line)
            line, blank = "", ""
        line = f"{line}{blank}{word}"
        if len(line) > width:
            line = line[:width - 1] + "…"
    return [*lines, line]


def _params(variables: Any) -> int:
    return sum(int(np.prod(v.dims)) for v in {id(v): v for v in variables}.values())


def _bytes(variables: Any) -> int:
    return sum(int(np.prod(v.dims)) * v.dtype.size for v in {id(v): v for v in variables}.values())


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} TB"


def _totals(model: Any) -> list[str]:
    optimizer = model.__dict__.get("optimizer")
    extra = list(optimizer.variables) if optimizer is not None and getattr(optimizer, "built", True) else []
    kinds = [("Total", [*model.weights, *extra]), ("Trainable", model.trainable_weights),
             ("Non-trainable", model.non_trainable_weights)]
    if extra:
        kinds.append(("Optimizer", extra))
    return [f" {name} params: {_params(variables):,} ({_size(_bytes(variables))})" for name, variables in kinds]


# -- pictures -------------------------------------------------------------------------------------
@public
def model_to_dot(model: Any, show_shapes: bool = False, show_dtype: bool = False, show_layer_names: bool = True,
                 rankdir: str = "TB", expand_nested: bool = False, dpi: int = 200,
                 show_layer_activations: bool = False, show_trainable: bool = False) -> str:
    """The graph of a model's layers in the language of Graphviz.

    Args:
        model: a model that is built.
        show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable: what boxes say.
        rankdir: "TB" for top to bottom, "LR" for left to right.
        expand_nested: whether models within are drawn as their layers.
        dpi: dots per inch of pictures.
    Raises:
        ValueError: the model is not built.

    >>> import twofold as tf
    >>> model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(3, name="last")])
    >>> "last" in tf.keras.utils.model_to_dot(model)
    True
    """
    if not model.built:
        raise ValueError("This model has not yet been built. Build the model first by calling `build()` or by calling "
                         "the model on a batch of data.")
    options = (show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable)
    lines = ["digraph model {", f"  graph [rankdir={rankdir}, dpi={dpi}];",
             '  node [shape=box, style="rounded,filled", fillcolor="#f4f6fa", color="#52627a", '
             'fontname="Helvetica", fontsize=12];', '  edge [color="#52627a"];']
    lines += _dot_lines(model, options, expand_nested, "")
    return "\n".join([*lines, "}"])


def _dot_lines(model: Any, options: tuple[bool, ...], expand: bool, prefix: str) -> list[str]:
    lines = []
    layers = model._file_layers() if hasattr(model, "_file_layers") else model.layers
    for layer in layers:
        if expand and hasattr(layer, "layers") and layer.__dict__.get("_graph") is not None:
            lines += [f'  subgraph "cluster_{prefix}{layer.name}" {{', f'  label="{layer.name}";',
                      *_dot_lines(layer, options, True, f"{prefix}{layer.name}/"), "  }"]
        else:
            lines.append(f'  "{prefix}{layer.name}" [label="{_label(layer, options)}"];')
    return lines + [f'  "{a}" -> "{b}";' for a, b in _edges(model, layers, expand, prefix)]


def _label(layer: Any, options: tuple[bool, ...]) -> str:
    show_shapes, show_dtype, show_names, show_activations, show_trainable = options
    said = [f"{layer.name} ({type(layer).__name__})" if show_names else type(layer).__name__]
    activation = getattr(layer, "activation", None)
    if show_activations and activation is not None:
        said.append(f"activation: {getattr(activation, '__name__', type(activation).__name__)}")
    if show_shapes:
        said.append(f"output: {_output_shape(layer)}")
    if show_dtype:
        said.append(f"dtype: {layer.dtype}")
    if show_trainable:
        said.append("trainable" if layer.trainable_weights else "not trainable")
    return "\\n".join(said)


def _edges(model: Any, layers: list[Any], expand: bool, prefix: str) -> list[tuple[str, str]]:
    graph = model.__dict__.get("_graph")
    if graph is None:
        return []
    edges = []
    for node in graph.nodes:
        for x in node.inputs:
            edges.append((_end(x._node.operation, expand, prefix, True), _end(node.operation, expand, prefix, False)))
    return list(dict.fromkeys(edges))


def _end(layer: Any, expand: bool, prefix: str, last: bool) -> str:
    """The box at which an edge begins or ends: of an expanded model its last or first layer."""
    graph = layer.__dict__.get("_graph")
    if expand and graph is not None:
        inner: KerasTensor = (graph.outputs if last else graph.inputs)[0]
        return _end(inner._node.operation, True, f"{prefix}{layer.name}/", last)
    return f"{prefix}{layer.name}"


@public
def plot_model(model: Any, to_file: Any = "model.svg", show_shapes: bool = False, show_dtype: bool = False,
               show_layer_names: bool = True, rankdir: str = "TB", expand_nested: bool = False, dpi: int = 200,
               show_layer_activations: bool = False, show_trainable: bool = False, **kwargs: Any) -> str:
    """Draw the graph of a model's layers into a file.

    Args:
        model: a model that is built.
        to_file: `.dot` for a text in the language of Graphviz, `.svg` for a picture, which needs nothing; other
            endings need the program `dot`.
        show_shapes, show_dtype, show_layer_names, rankdir, expand_nested, dpi, show_layer_activations,
            show_trainable: as for `model_to_dot`.
        kwargs: `layer_range`, accepted if None.
    Returns:
        The name of the file.
    Raises:
        ValueError: the model is not built. ImportError: the ending needs `dot`, which is not there.

    >>> import pathlib
    >>> import twofold as tf, tempfile, os
    >>> model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(3)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = tf.keras.utils.plot_model(model, os.path.join(folder, "model.svg"), show_shapes=True)
    ...     "<svg" in pathlib.Path(name).read_text()
    True
    """
    if kwargs.pop("layer_range", None) is not None or kwargs:
        raise ValueError(f"plot_model takes no arguments {sorted(kwargs) or ['layer_range']}.")
    path = os.fspath(to_file)
    options = (show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable)
    text = model_to_dot(model, *options[:3], rankdir, expand_nested, dpi, *options[3:])
    ending = os.path.splitext(path)[1].lstrip(".") or "png"
    if ending == "svg":
        from .picture import svg_of
        text = svg_of(model, [(layer, _label(layer, options)) for layer in (
            model._file_layers() if hasattr(model, "_file_layers") else model.layers)], rankdir)
    if ending in ("dot", "gv", "svg"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        return path
    try:
        subprocess.run(["dot", f"-T{ending}", "-o", path], input=text.encode(), check=True,
                       capture_output=True)
    except FileNotFoundError:
        raise ImportError(f"Pictures in the format {ending!r} need the program `dot` of Graphviz: install it, or "
                          "choose a file that ends in .svg or .dot.") from None
    return path
