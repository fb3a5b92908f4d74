"""`web`: functions as a page that runs them, in one file, and as a module of JavaScript for programs.

The page is the loader of `wasm.py` and the script of `demo.js`, which makes controls and results from what the loader
says of the signatures, with the library inside: deflated, in base64. It opens from a disk, and its own policy lets it
load nothing.
"""

from __future__ import annotations

import base64
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from twofold._formats.replacing import Contents, replace_all
from twofold._front.api import public
from twofold.tracer.page.html import digest, markup

from .build import assembled, check_threads, object_code
from .collect import collect
from .targets import platform_of
from .wasm import files_of, method_of

__all__ = ["web", "WebPage"]


@dataclass(frozen=True)
class WebPage:
    """What `tf.export.web` wrote.

    Attributes:
        path: the page, which needs none of the other files.
        library: the library of WebAssembly.
        loader: the module of JavaScript that loads it.
        types: its types for TypeScript.
        functions: the names of the functions in that module.
    """

    path: Path
    library: Path
    loader: Path
    types: Path
    functions: tuple[str, ...]


@public
def web(function: Any, folder: str | os.PathLike[str], title: str | None = None, threads: int = 4) -> WebPage:
    """Compile functions to WebAssembly, with a page on which they can be tried and a module for programs.

    In `folder` are written `index.html`; and, for programs, `NAME.wasm`, `NAME.mjs` and its types `NAME.d.mts`, where
    NAME is that of the folder. The page is one file that holds all it needs: it opens from a disk, without a server,
    and asks the network for nothing. It has a control for each input and shows each result: images are drawn or
    chosen, a list of scores is shown as bars, functions without variables run while one types or draws.

    Args:
        function: what `tf.export.native` takes: a `tf.function`, a concrete function, a dict of names and these, an
            object with such methods, a model of `tf.keras`, or the folder of a saved model.
        folder: where to write; it is made where there is none.
        title: of the page; by default the name of the folder.
        threads: how many threads a call shares its work with at most, from as many cores: workers, which a page has
            where it is isolated from other origins, and Node.js anywhere. Elsewhere, and where no step of a function
            does enough to be shared, there is one.

    Returns:
        A `WebPage` with the paths of what was written.

    Raises:
        UnimplementedError: a function needs Python; the error names the op and its line.
        TypeError, ValueError: there is nothing to export.
        RuntimeError: the package `ziglang`, which links WebAssembly, is not installed.

    >>> import tempfile
    >>> import twofold as tf
    >>> @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    ... def twice(x):
    ...     return 2.0 * x
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = tf.export.web(twice, f"{folder}/doubling", title="Doubling")
    ...     print(made.path.name, made.library.name, made.loader.name, made.functions)
    index.html doubling.wasm doubling.mjs ('twice',)
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"folder must be a path; got {folder!r}.")
    to = Path(folder)
    name = to.resolve().name
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be text; got {title!r}.")
    if to.exists() and not to.is_dir():
        raise ValueError(f"{os.fspath(to)!r} is no folder.")
    check_threads(threads)
    platform = platform_of("wasm32", None, threads)
    made = assembled(collect(function, "tf.export.web"), name, platform, threads=threads)
    prefix = made.interface.prefix
    library = files_of(made.interface, platform, object_code(made, platform), f"{prefix}.wasm", made.threads)
    page = page_text(name if title is None else title, library[f"{prefix}.mjs"].decode(), library[f"{prefix}.wasm"])
    files: dict[str | os.PathLike[str], Contents] = {to / "index.html": page.encode()}
    files |= {to / file: contents for file, contents in library.items()}
    to.mkdir(parents=True, exist_ok=True)
    replace_all(files)
    functions = [method_of(made.interface, s) for s in made.interface.signatures]
    return WebPage(to / "index.html", to / f"{prefix}.wasm", to / f"{prefix}.mjs", to / f"{prefix}.d.mts",
                   tuple(functions))


def page_text(title: str, loader: str, code: bytes) -> str:
    """The text of a page.

    Args:
        loader: the module that loads the library.
        code: the library.
    """
    here = Path(__file__)
    style, script = (here.with_name(f"demo.{ending}").read_text(encoding="utf-8") for ending in ("css", "js"))
    script = f"{loader}{script}"
    policy = (f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}' 'wasm-unsafe-eval'; "
              "worker-src blob:; base-uri 'none'; form-action 'none'")
    packed = base64.b64encode(zlib.compress(code, 9)).decode()
    return Template(here.with_name("demo.html").read_text(encoding="utf-8")).substitute(
        title=markup(title), policy=policy, style=style, script=script, code=packed)
