"""Modules of TensorFlow by name: `tensorflow`, what lies below it, and what packaging tools read about it.

`tensorflow` is a view of twofold, with a version that says whose it is. Public modules below it are twofold's own.
Private ones are those of `private.py`, and there are no others.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import twofold
from twofold.version import __version__ as _own_version

from . import private
from .version import VERSION

__all__ = ["FOLDER", "install"]

#: a folder of Python's search path in which `tensorflow` is found
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "path")

_ROOT, _SAME_ROOT = "tensorflow", "tensorflow.compat.v2"
_KERAS = "tf_keras"  # the package of Keras 2, which TensorFlow's libraries ask for beside it
_WHERE = "docs/coverage.md lists where each name of TensorFlow stands."


def install() -> None:
    """Give twofold the name `tensorflow` in this process.

    Raises:
        ImportError: the real TensorFlow is imported already.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    there = sys.modules.get(_ROOT)
    if there is not None and not _is_door(there):
        raise ImportError("TensorFlow itself is imported already, and a process has one module of that name: import "
                          "twofold.as_tensorflow before anything that imports TensorFlow, or start the program with "
                          "`twofold run`.", name=_ROOT, path=getattr(there, "__file__", None))
    sys.meta_path[:0] = [_Finder(), _Naming()]
    if FOLDER not in sys.path:
        sys.path.insert(1, FOLDER)  # for packaging metadata, and for processes that are given the path
    private.add_methods()
    for name in private.DEFINING & sys.modules.keys():
        private.name_classes_of(sys.modules[name])
    root = _Root(_ROOT)
    spec = ModuleSpec(_ROOT, _Loader(root), origin=twofold.__file__, is_package=True)
    root.__spec__, root.__loader__, root.__path__, root.__package__ = spec, spec.loader, [], _ROOT
    root.__file__, root.__version__, root.__doc__ = twofold.__file__, VERSION, twofold.__doc__
    sys.modules[_ROOT] = root


def _is_door(module: ModuleType) -> bool:
    """Whether a module is the one of `FOLDER`, which imports this."""
    return os.path.dirname(os.path.dirname(os.path.abspath(getattr(module, "__file__", None) or ""))) == FOLDER


class _Root(ModuleType):
    """`tensorflow`: what twofold has, looked up once for each name."""

    __path__: list[str]
    __version__: str

    def __getattr__(self, name: str) -> Any:
        module = private.module(f"{_ROOT}.{name}")
        if module is not None:
            value: Any = sys.modules.setdefault(f"{_ROOT}.{name}", module)
        else:
            try:
                value = getattr(twofold, name)
            except AttributeError as error:
                text = str(error) if "is not part of twofold" in str(error) else (
                    f"module {_ROOT!r} has no attribute {name!r}: this is twofold {_own_version}, not TensorFlow")
                raise AttributeError(f"{text.rstrip('.')}. {_WHERE}", name=name, obj=self) from None
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*dir(twofold), *vars(self)})

    def __repr__(self) -> str:
        return f"<module {_ROOT!r}: twofold {_own_version} from {twofold.__file__!r}>"


class _Loader(Loader):
    """Puts a module that exists in the place of the empty one that the import system made."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def exec_module(self, module: ModuleType) -> None:
        if not hasattr(self._module, "__path__"):
            self._module.__path__ = []  # a file of twofold's whose names are modules, too: `import tensorflow.io.gfile`
        sys.modules[module.__name__] = self._module


class _Finder(MetaPathFinder):
    """Finds what lies below `tensorflow`."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        root = fullname.partition(".")[0]
        if root == _KERAS:
            module = private.older_keras(fullname)
        elif root != _ROOT or fullname == _ROOT:
            return None
        elif fullname == _SAME_ROOT or fullname.startswith(f"{_SAME_ROOT}."):
            module = importlib.import_module(_ROOT + fullname.removeprefix(_SAME_ROOT))
        else:
            module = private.module(fullname) or _public(fullname)
        if module is None:
            return None
        return ModuleSpec(fullname, _Loader(module), origin=getattr(module, "__file__", None), is_package=True)


class _Naming(MetaPathFinder):
    """Has classes named when the module that defines them is loaded, so that nothing is loaded for their names."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in private.DEFINING:
            return None
        others = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in others if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _NamingLoader(spec.loader)
        return spec


class _NamingLoader(Loader):
    """Loads a module as another loader does, and names its classes."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:  # sources for tracebacks and for the tracer
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        private.name_classes_of(module)


def _public(fullname: str) -> ModuleType | None:
    """The module of twofold that has a public name of TensorFlow; None if there is none."""
    value: Any = twofold
    for name in fullname.split(".")[1:]:
        parent = value
        value = getattr(parent, name, None)
        if value is None and isinstance(parent, ModuleType) and not name.startswith("_"):
            try:
                value = importlib.import_module(f"{parent.__name__}.{name}")
            except ModuleNotFoundError:
                return None
        if _holds_names(value):
            value = _module_of(value, fullname)
        if not isinstance(value, ModuleType) or name.startswith("_"):
            return None
    return value


def _holds_names(value: Any) -> bool:
    """Whether a value is a class that only holds names, such as `tf.config.experimental`; TensorFlow has a module."""
    return (isinstance(value, type) and value.__name__.islower() and value.__bases__ == (object,)
            and "__init__" not in vars(value) and value.__module__.partition(".")[0] == twofold.__name__)


def _module_of(names: type, fullname: str) -> ModuleType:
    made = ModuleType(fullname, names.__doc__)
    vars(made).update({name: getattr(names, name) for name in vars(names) if not name.startswith("_")})
    return made
