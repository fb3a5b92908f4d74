"""The ops: every primitive of the library, declared once each, one family to a file.

`ops.add` and the like are found in the registry, so a new op needs no second mention here; a new family
file needs its line below. No file is called like an op, so that `ops.name` is the op for every reader.
"""

import importlib

from ..op import REGISTRY, Op

_FAMILIES = ("arithmetic", "comparison", "math", "activations", "complex_parts", "bitwise", "casting", "reshaping",
             "slicing", "joining", "gathering", "creation", "reductions", "scans", "segments", "sorting", "random",
             "fourier", "products", "sparse", "linalg", "decompositions", "factorisations", "nn", "convolution",
             "pool", "strings", "collective", "special")


def __getattr__(name: str) -> Op:
    try:
        return REGISTRY[name.rstrip("_")]
    except KeyError:
        raise AttributeError(f"no op is named {name!r}") from None


for _family in _FAMILIES:
    importlib.import_module(f"{__name__}.{_family}")
globals().update(REGISTRY)
