"""The files of a checkpoint: `PREFIX.safetensors`, written here, or TensorFlow's own, which are read.

One file holds all: the tensors, and the objects as JSON in its metadata (docs/checkpoints.md). It is written whole or
not at all, and everything in it has a checksum (`twofold._formats.tensor_file`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats import tensor_file as _tensor_file
from twofold._front.api import public

from . import state
from .objects import VARIABLE, Node
from .tensor_bundle import Bundle

__all__ = ["SUFFIX", "CheckpointReader", "exists", "files_of", "list_variables", "load_checkpoint", "load_variable",
           "open_checkpoint", "time_of", "write"]

SUFFIX = ".safetensors"
_FORMAT = "twofold checkpoint"
_VERSION = 1


def write(prefix: str, nodes: list[Node] | None, tensors: dict[str, np.ndarray]) -> None:
    """Write a checkpoint in one step; without nodes it is one of names alone."""
    path = Path(prefix + SUFFIX)
    path.parent.mkdir(parents=True, exist_ok=True)
    objects = None if nodes is None else [{"children": node.children, "values": node.values} for node in nodes]
    about = {"format": _FORMAT, "version": str(_VERSION), "objects": json.dumps(objects, separators=(",", ":"))}
    _tensor_file.write(path, tensors, about)


def exists(prefix: str) -> bool:
    """Whether there is a checkpoint of this name, of either kind."""
    return Path(prefix + SUFFIX).is_file() or Path(prefix + ".index").is_file()


def files_of(prefix: str) -> list[Path]:
    """The files of a checkpoint; what makes it one is last."""
    path = Path(prefix)
    shards = sorted(path.parent.glob(f"{_plain(path.name)}.data-*-of-*"))
    return [f for f in (*shards, Path(prefix + ".index"), Path(prefix + SUFFIX)) if f.is_file()]


def time_of(prefix: str) -> int:
    """When a checkpoint was last changed, in nanoseconds since 1970; 0 where there is none."""
    files = files_of(prefix)
    return files[-1].stat().st_mtime_ns if files else 0


def _plain(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


class CheckpointReader:
    """The tensors of a checkpoint by key, as `tf.train.load_checkpoint` gives them."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._bundle: Bundle | None = None
        self._tensors: dict[str, np.ndarray] = {}
        self._nodes: list[Node] | None
        if Path(prefix + SUFFIX).is_file():
            self._tensors, about = _tensor_file.read(prefix + SUFFIX)
            self._nodes = _objects(prefix, about, self._tensors)
        else:
            self._bundle = Bundle(prefix)
            self._nodes = self._bundle.nodes()

    @property
    def nodes(self) -> list[Node] | None:
        """The objects, the root first; None where the checkpoint has names alone."""
        return self._nodes

    def keys(self) -> list[str]:
        """The keys of all tensors."""
        return list(self._tensors) if self._bundle is None else self._bundle.keys()

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a tensor of that key."""
        return tensor_str in (self._tensors if self._bundle is None else self._bundle)

    def get_tensor(self, tensor_str: str) -> Any:
        """The value of a tensor: a NumPy array, or a NumPy scalar or bytes where it has no dimensions.

        Raises:
            NotFoundError: there is none of that key.
        """
        return self.array(tensor_str)[()]

    def array(self, key: str) -> np.ndarray:
        """The value of a tensor as an array.

        Raises:
            NotFoundError: there is none of that key.
        """
        try:
            return self._tensors[key] if self._bundle is None else self._bundle.tensor(key)
        except KeyError:
            raise tf.errors.NotFoundError(f"{self.prefix}: there is no tensor {key!r} in this checkpoint") from None

    def _about(self, key: str) -> tuple[Any, tuple[int, ...]]:
        if self._bundle is not None:
            return self._bundle.about(key)
        return tf.as_dtype(self._tensors[key].dtype), self._tensors[key].shape

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Shapes by key."""
        return {key: list(self._about(key)[1]) for key in sorted(self.keys())}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        """Dtypes by key."""
        return {key: self._about(key)[0] for key in sorted(self.keys())}

    def debug_string(self) -> str:
        """A line for each tensor: key, dtype and shape."""
        return "\n".join(f"{key} ({dtype.name}) {list(shape)}" for key in sorted(self.keys())
                         for dtype, shape in [self._about(key)])


def _objects(prefix: str, about: dict[str, str], tensors: dict[str, np.ndarray]) -> list[Node] | None:
    """The nodes in a file's metadata; None where it has names alone.

    Raises:
        DataLossError: it is no checkpoint, or of a later version, or its objects are not what they should be.
    """
    path = prefix + SUFFIX
    if about.get("format") != _FORMAT:
        raise tf.errors.DataLossError(f"{path} is no checkpoint")
    if about.get("version") != str(_VERSION):
        raise tf.errors.UnimplementedError(f"{path} has version {about.get('version')} of the format; this "
                                           f"version of twofold reads version {_VERSION}")
    if about.get("objects") == "null":
        return None
    try:
        nodes = [Node(dict(o["children"]), dict(o["values"])) for o in json.loads(about["objects"])]
        sound = bool(nodes) and all(
            all(type(n) is int and 0 <= n < len(nodes) for n in node.children.values())
            and all(key in tensors for key in node.values.values()) for node in nodes)
    except (ValueError, TypeError, KeyError, RecursionError):
        sound = False
    if not sound:
        raise tf.errors.DataLossError(f"{path} is damaged: its objects are not what they should be")
    return nodes


def open_checkpoint(path: str | os.PathLike[str]) -> CheckpointReader:
    """The checkpoint of a name, or the latest of a folder.

    Raises:
        NotFoundError: there is none.
    """
    name = os.fspath(path)
    if Path(name).is_dir():
        latest = latest_checkpoint(name)
        if latest is None:
            raise tf.errors.NotFoundError(f"{name}: there is no checkpoint in this folder")
        name = latest
    name = name.removesuffix(SUFFIX).removesuffix(".index")
    if not exists(name):
        raise tf.errors.NotFoundError(
            f"Error when restoring from checkpoint at {name}: there is neither {name}{SUFFIX} nor "
            f"{name}.index. Please double-check that the path is correct. You may be missing the checkpoint suffix "
            "(e.g. the '-1' in 'path/to/ckpt-1').")
    return CheckpointReader(name)


@public
def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The path of the latest checkpoint of a folder, to give to `restore`; None where there is none.

    Args:
        checkpoint_dir: the folder.
        latest_filename: another name of the file `checkpoint`.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> folder = tempfile.mkdtemp()
    >>> _ = tf.train.Checkpoint(v=tf.Variable(1)).save(folder + "/ckpt")
    >>> os.path.basename(tf.train.latest_checkpoint(folder))
    'ckpt-1'
    """
    listed = state.get_checkpoint_state(checkpoint_dir, latest_filename)
    if listed is None or not exists(listed.model_checkpoint_path):
        return None
    return listed.model_checkpoint_path


@public
def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """The tensors of a checkpoint, by key.

    Args:
        ckpt_dir_or_file: the path that `save` gave, or a folder, for its latest checkpoint. TensorFlow's checkpoints
            can be read too.
    Returns:
        An object with `get_tensor(key)`, `has_tensor(key)` and maps of shapes and dtypes.
    Raises:
        NotFoundError: there is no checkpoint.
        DataLossError: it is damaged.

    >>> import tempfile
    >>> import twofold as tf
    >>> path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).write(tempfile.mkdtemp() + "/c")
    >>> tf.train.load_checkpoint(path).get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE").tolist()
    [1.0, 2.0]
    """
    return open_checkpoint(ckpt_dir_or_file)


@public
def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Keys and shapes of all tensors of a checkpoint, in order of their keys.

    Args:
        ckpt_dir_or_file: as for `tf.train.load_checkpoint`.
    Raises:
        NotFoundError: there is no checkpoint.
        DataLossError: it is damaged.

    >>> import tempfile
    >>> import twofold as tf
    >>> path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).write(tempfile.mkdtemp() + "/c")
    >>> tf.train.list_variables(path)
    [('v/.ATTRIBUTES/VARIABLE_VALUE', [2])]
    """
    return list(open_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


@public
def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """The value of one tensor of a checkpoint.

    Args:
        ckpt_dir_or_file: as for `tf.train.load_checkpoint`.
        name: its key; ":0" at the end is left out.
    Raises:
        NotFoundError: there is no checkpoint, or no such tensor.

    >>> import tempfile
    >>> import twofold as tf
    >>> path = tf.train.Checkpoint(v=tf.Variable(3)).write(tempfile.mkdtemp() + "/c")
    >>> int(tf.train.load_variable(path, "v/.ATTRIBUTES/" + "VARIABLE_VALUE"))
    3
    """
    return open_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def by_names(reader: CheckpointReader, variables: dict[str, Any]) -> list[Node]:
    """Nodes for a checkpoint of names alone: a root whose children are the variables of those names."""
    nodes = [Node({}, {})]
    for name in variables:
        if reader.has_tensor(name):
            nodes[0].children[name] = len(nodes)
            nodes.append(Node({}, {VARIABLE: name}))
    return nodes
