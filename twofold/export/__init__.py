"""Functions for programs without Python: libraries that C, C++, Rust, JavaScript and others call, pages, ONNX models.

`native`, `web` and `onnx` are all there is to call; `docs/native.md`, `docs/web.md` and `docs/onnx.md` are the tours.
What a library holds is put together in `assemble.py`; its C header is `header.py`'s, machine code and linking those of
`build.py` and `link.py`; how WebAssembly is loaded says `wasm.py`, what its threads run `pool.py`. ONNX is
`twofold/onnx_files/`'s affair.
"""

from twofold._front.namespace import publish
from twofold.onnx_files.export import OnnxFile, onnx

from .build import NativeLibrary, native
from .web import WebPage, web

__all__ = ["NativeLibrary", "OnnxFile", "WebPage", "native", "onnx", "web"]

publish(__name__)
