"""`tf.contrib`: where programs of TensorFlow 1 import its contributed packages from; they lie in `compat/contrib`.

`twofold.contrib` and the modules below it are those of `twofold.compat.contrib`, whichever name they are imported by.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_HOME = "twofold.compat.contrib"


class _Finder(MetaPathFinder, Loader):
    """Finds the modules below this one by their other names, so that each is loaded once."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        """The spec of a module below this one; None for others."""
        return ModuleSpec(fullname, self) if fullname.startswith(f"{__name__}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself, which is loaded by its own name."""
        module = importlib.import_module(_HOME + spec.name.removeprefix(__name__))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to run; the module's own spec comes back."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _Finder())
sys.modules[__name__] = importlib.import_module(_HOME)
