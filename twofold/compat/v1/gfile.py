"""`tf.compat.v1.gfile`: `tf.io.gfile`, with TensorFlow 1's names."""

from __future__ import annotations

from typing import Any

from twofold._formats.gfile import GFile, glob, isdir, listdir, makedirs, mkdir, remove, rmtree, walk
from twofold._formats.gfile import copy as _copy
from twofold._formats.gfile import exists as _exists
from twofold._formats.gfile import rename as _rename
from twofold._formats.gfile import stat as _stat
from twofold._front.api import public
from twofold._front.namespace import publish

__all__ = ["Copy", "DeleteRecursively", "Exists", "FastGFile", "GFile", "Glob", "IsDirectory", "ListDirectory",
           "MakeDirs", "MkDir", "Open", "Remove", "Rename", "Stat", "Walk"]

Exists, Stat, Open, FastGFile = _exists, _stat, GFile, GFile
Glob, IsDirectory, ListDirectory, MakeDirs, MkDir = glob, isdir, listdir, makedirs, mkdir
Remove, DeleteRecursively = remove, rmtree


@public
def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """`tf.io.gfile.copy`."""
    _copy(oldpath, newpath, overwrite)


@public
def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """`tf.io.gfile.rename`."""
    _rename(oldname, newname, overwrite)


@public
def Walk(top: Any, in_order: bool = True) -> Any:
    """`tf.io.gfile.walk`."""
    return walk(top, in_order)


publish(__name__)
