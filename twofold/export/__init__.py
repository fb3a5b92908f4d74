"""Compiled functions for programs without Python: libraries that C, C++, Rust, JavaScript and others call.

`native` is all there is to call; `docs/native.md` is the tour. What a library holds is put together in `assemble.py`;
its C header is `header.py`'s, machine code and linking those of `build.py` and `link.py`.
"""

from twofold._front.namespace import publish

from .build import NativeLibrary, native

__all__ = ["NativeLibrary", "native"]

publish(__name__)
