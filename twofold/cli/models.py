"""One function of a saved model as commands use it: tensors in and out by name, its graph, and a way to call it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.ir import nest
from twofold.ir.dims import Dim
from twofold.ir.spec import TensorSpec

from .common import Failure, Misuse

if TYPE_CHECKING:
    from twofold.saved_model.reader import SavedFunction, SavedModel

__all__ = ["Entry", "read", "entries", "choose", "arrays_for", "random_arrays", "dims_of", "check_sizes",
           "shape_text", "spec_text", "signature"]

_DEFAULT = "serving_default"


@dataclass(frozen=True)
class Entry:
    """A function under the name that commands know it by.

    Attributes:
        kind: "signature" or "function".
        inputs, outputs: (name, spec) of each tensor, in the order of the graph; parts of structures as "x.0", "x.key".
    """

    name: str
    kind: str
    function: SavedFunction
    inputs: list[tuple[str, TensorSpec]]
    outputs: list[tuple[str, TensorSpec]]

    def call(self, model: SavedModel) -> Any:
        """What runs it: called with a tensor for each input it gives a list of tensors."""
        from twofold.saved_model.loading import concrete_functions

        traced = concrete_functions(model)[self.function.number]._traced

        def run(*tensors: Any) -> list[Any]:
            return [leaf for leaf in nest.flatten(traced(tensors)) if leaf is not None]
        return run


def read(path: str) -> SavedModel:
    """The saved model in a folder.

    Raises:
        OpError: there is none, or it is damaged.
    """
    from twofold.saved_model import reader
    return reader.read(path)


def entries(model: SavedModel) -> list[Entry]:
    """All that can be called: signatures, then the traces of functions; those with several have numbers, as "f#1"."""
    callables: list[Entry] = []
    for name, saved in model.signatures.items():
        callables += _traces(name, "signature", saved.functions, saved.names)
    for path, method in model.named_methods().items():
        callables += _traces(path, "function", method.concrete)
    return callables


def _traces(name: str, kind: str, functions: Sequence[SavedFunction], names: Sequence[str] | None = None
            ) -> Iterator[Entry]:
    """An entry for each trace; `names` are those of the arguments that hold tensors, where they have their own."""
    for n, function in enumerate(functions):
        given = [(k, template) for k, _, template in function.arguments if _inputs([(k, template)])]
        if names is not None:
            given = [(own, template) for own, (_, template) in zip(names, given, strict=True)]
        yield Entry(name if len(functions) == 1 else f"{name}#{n}", kind, function, _inputs(given),
                    _outputs(function.result))


def _inputs(given: Iterable[tuple[str, Any]]) -> list[tuple[str, TensorSpec]]:
    return [(path, leaf) for name, template in given for path, leaf in _leaves(template, name)
            if isinstance(leaf, TensorSpec)]


def _outputs(result: Any) -> list[tuple[str, TensorSpec]]:
    """The names of the tensors of a result, in the order of the graph's outputs."""
    from twofold.saved_model.signatures import by_name

    specs = nest.flatten(result)
    numbered = by_name(nest.pack(result, range(len(specs))))
    paths = {number: path for name, part in numbered.items() for path, number in _leaves(part, str(name))}
    return [(paths[n], spec) for n, spec in enumerate(specs) if spec is not None]


def choose(model: SavedModel, name: str | None) -> Entry:
    """The entry of a name, or the one that is meant by none.

    Raises:
        Misuse: there is no such entry, or several that could be meant.
    """
    candidates = entries(model)
    if name is not None:
        [*fitting] = [e for e in candidates if e.name == name]
        if not fitting:
            raise Misuse(f"{model.path} has no signature or function {name!r}; it has {_listed(candidates)}")
        return fitting[0]
    default = [e for e in candidates if e.name == _DEFAULT]
    named = default or [e for e in candidates if e.kind == "signature"] or candidates
    if not named:
        raise Failure(f"{model.path} has no function that could be called")
    if len(named) > 1:
        raise Misuse(f"{model.path} has several functions; choose one with --signature: {_listed(named)}")
    return named[0]


def _listed(callables: Sequence[Entry]) -> str:
    return ", ".join(e.name for e in callables) or "none"


def _leaves(structure: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The leaves of a structure in the order of `nest.flatten`, each under its place."""
    if not nest.is_nested(structure):
        yield name, structure
        return
    keys = getattr(structure, "_fields", None) or nest.keys_of(structure)
    children = nest.children(structure)
    for key, child in zip(keys if isinstance(keys, tuple) else range(len(children)), children, strict=True):
        yield from _leaves(child, f"{name}.{key}")


def dims_of(entry: Entry) -> list[tuple[Any, ...]]:
    """The sizes of the inputs as the graph names them."""
    return [v.dims for v in entry.function.graph.inputs[:len(entry.inputs)]]


def shape_text(dims: Sequence[Any]) -> str:
    """A shape, with the names of unknown sizes."""
    return f"[{', '.join(str(d) for d in dims)}]"


def spec_text(dims: Sequence[Any], spec: TensorSpec) -> str:
    """dtype and shape."""
    return f"{spec.dtype.name}{shape_text(dims)}"


def check_sizes(callables: Sequence[Entry], sizes: Mapping[str, int]) -> None:
    """Whether every size that is given is open in one of the entries.

    Raises:
        Misuse: one is not.
    """
    known = {s for e in callables for dims in dims_of(e) for d in dims if isinstance(d, Dim) for s in d.symbols()}
    for name in sizes:
        if name not in known:
            raise Misuse(f"there is no size {name!r} that is left open; there is {', '.join(sorted(known)) or 'none'}")


def signature(entry: Entry) -> str:
    """An entry as one line."""
    graph = entry.function.graph
    given = ", ".join(f"{name}: {spec_text(v.dims, s)}"
                      for (name, s), v in zip(entry.inputs, graph.inputs, strict=False))
    made = ", ".join(f"{name}: {spec_text(v.dims, s)}"
                     for (name, s), v in zip(entry.outputs, graph.outputs, strict=False))
    return f"{entry.name}({given}) -> {made or 'nothing'}"


# -- arrays -------------------------------------------------------------------------------------------
def arrays_for(entry: Entry, given: Sequence[str]) -> list[np.ndarray]:
    """The arrays of "NAME=FILE" texts, one for each input, checked.

    Raises:
        Misuse: a name is unknown, given twice or missing. Failure: a file is not what the input wants.
    """
    files: dict[str, str] = {}
    known = {name for name, _ in entry.inputs}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals and len(known) == 1:
            name, path = next(iter(known)), text
        elif not (equals and name and path):
            raise Misuse(f"--input wants NAME=FILE.npy; got {text!r}")
        if name not in known:
            raise Misuse(f"{entry.name} has no input {name!r}; it has {', '.join(sorted(known)) or 'none'}")
        if name in files:
            raise Misuse(f"input {name!r} was given twice")
        files[name] = path
    missing = [f"{name} ({spec_text(dims, spec)})"
               for (name, spec), dims in zip(entry.inputs, dims_of(entry), strict=True) if name not in files]
    if missing:
        raise Misuse(f"{entry.name} also needs --input for {', '.join(missing)}")
    sizes: dict[str, int] = {}
    return [_fitting(name, _loaded(files[name]), spec, dims, sizes)
            for (name, spec), dims in zip(entry.inputs, dims_of(entry), strict=True)]


def _loaded(path: str) -> np.ndarray:
    """An array from FILE.npy, or from FILE.npz[NAME]."""
    file, bracket, key = path.partition(".npz[")
    try:
        if bracket and key.endswith("]"):
            with np.load(f"{file}.npz", allow_pickle=False) as archive:
                if key[:-1] not in archive:
                    raise Failure(f"{file}.npz has no array {key[:-1]!r}; it has {', '.join(archive) or 'none'}")
                return archive[key[:-1]]
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise Failure(f"{path} is no whole file of numpy.save or numpy.savez, or it holds Python objects") from None
    if not isinstance(array, np.ndarray):
        names = ", ".join(array)
        array.close()
        raise Failure(f"{path} holds several arrays ({names}); name one: '{path}[NAME]'")
    return array


def _fitting(name: str, array: np.ndarray, spec: TensorSpec, dims: tuple[Any, ...], sizes: dict[str, int]
             ) -> np.ndarray:
    """The array as the input takes it.

    Raises:
        Failure: dtype or shape differ.
    """
    wanted = spec.dtype
    if wanted.name == "string" and array.dtype.kind in "SU":
        array = np.array([s.encode() if isinstance(s, str) else bytes(s) for s in array.ravel().tolist()],
                         object).reshape(array.shape)
    elif array.dtype.kind == "V" and array.dtype.itemsize == wanted.np.itemsize and wanted.np.kind == "V":
        array = array.view(wanted.np)  # NumPy's files do not name such dtypes
    elif array.dtype != wanted.np:
        raise Failure(f"input {name} is {spec_text(dims, spec)}; the file has {array.dtype}{list(array.shape)}")
    fits = len(dims) == array.ndim
    for want, size in zip(dims, array.shape, strict=False):
        symbol = want.name_alone() if isinstance(want, Dim) else None
        if symbol is not None:
            fits &= sizes.setdefault(symbol, size) == size
        elif not isinstance(want, Dim):
            fits &= want == size
    if not fits:
        known = [str(sizes.get(str(d), d)) for d in dims]
        raise Failure(f"input {name} is {wanted.name}[{', '.join(known)}]; the file has "
                      f"{array.dtype}{list(array.shape)}")
    return array


def random_arrays(entry: Entry, sizes: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
    """Arrays of random numbers for the inputs: normal floats, integers from 0 to 9 (or false and true).

    Raises:
        Misuse: a size is unknown, or an input is of strings.
    """
    rng = np.random.default_rng(seed)
    arrays = []
    for (name, spec), dims in zip(entry.inputs, dims_of(entry), strict=True):
        missing = sorted({s for d in dims if isinstance(d, Dim) for s in d.symbols()} - set(sizes))
        if missing:
            raise Misuse(f"input {name} is {spec_text(dims, spec)}: say what {', '.join(missing)} is with --size "
                         f"{missing[0]}=NUMBER")
        shape = tuple([d.evaluate(sizes) if isinstance(d, Dim) else d for d in dims])
        if spec.dtype.name == "string":
            raise Misuse(f"input {name} is of strings, which cannot be made up; give files with --input")
        floating = spec.dtype.is_floating or spec.dtype.is_complex
        values = rng.standard_normal(shape) if floating else rng.integers(0, 2 if spec.dtype.name == "bool" else 10,
                                                                            shape)
        arrays.append(np.asarray(values).astype(spec.dtype.np))
    return arrays
