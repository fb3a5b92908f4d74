"""Python imports this as a process begins that is led here by its search path: `import tensorflow` finds twofold.

The path alone would not do, since programs put folders before it: pytest does so with that of a library's tests, beside
which TensorFlow itself may lie. The module of this name that would have been imported without this one runs as well.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Door:
    """Finds `tensorflow` in this folder; what lies below it is found by twofold, which takes the name then."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "tensorflow":
            return None
        folder = os.path.join(_HERE, fullname)
        return spec_from_file_location(fullname, os.path.join(folder, "__init__.py"),
                                       submodule_search_locations=[folder])


def _run_hidden() -> None:
    """Run the `sitecustomize` that lies behind this one on the search path."""
    for entry in sys.path:
        file = os.path.join(entry, "sitecustomize.py")
        if os.path.abspath(entry) != _HERE and os.path.isfile(file):
            spec = spec_from_file_location("sitecustomize", file)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(module_from_spec(spec))
            return


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, _Door)
    _run_hidden()
