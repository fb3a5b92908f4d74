"""Imports twofold once, and forks processes that go on from there (`start.py`).

Has one thread, and makes no tensor: what a forked process finds is what an interpreter of its own would have after the
same imports. Ends when its standard input does, and a forked process when who asked for it is gone.
"""

import contextlib
import gc
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import types
import warnings
from typing import Any

# What programs of tests import in most cases, on first need; no compiler, as some have to show that they need none.
USUAL = ("keras", "keras.callbacks", "keras.losses", "keras.metrics", "keras.optimizers", "keras.sequential",
         "keras.distribution", "data", "distribute", "tracer.function", "tracer.running", "tracer.backward",
         "runtime.compiled", "runtime.program", "eager.executing", "ir.passes")
COMPILER = {"llvmlite", "numba", "malt", "twofold.codegen.program"}
# What is looked up whenever it counts; all else may be decided while the package is imported.
LATE = {"TWOFOLD_CACHE_DIR", "TWOFOLD_NUM_THREADS", "TWOFOLD_TIERS", "TWOFOLD_CLUSTER_TIMEOUT", "TWOFOLD_KERNELS"}
FILTERS = len(warnings.filters)  # before the package is imported
EARLY = ("TWOFOLD_", "KERAS_", "PYTHON", "OMP_", "OPENBLAS_", "LD_", "LC_", "LANG", "CUDA_", "NUMBA_", "GOMP_")


class Request:
    """What a client asks for."""

    def __init__(self, line: socket.socket) -> None:
        head, files, _, _ = socket.recv_fds(line, 8, 64)
        if len(head) < 8:
            raise EOFError
        size = int.from_bytes(head, "little")
        said = b""
        while len(said) < size:
            more = line.recv(size - len(said))
            if not more:
                for file in files:
                    os.close(file)
                raise EOFError
            said += more
        self.words, self.environment, self.folder, numbers, self.executable = marshal.loads(said)
        self.files = dict(zip(numbers, files, strict=True))

    def options(self) -> tuple[list[str], bool]:
        """The filters of warnings, and whether a crash is told of; the program's own words are left."""
        filters, told = [], False
        while self.words[0] in ("-W", "-X"):
            if self.words[0] == "-W":
                filters.append(self.words[1])
            else:
                assert self.words[1] == "faulthandler"
                told = True
            del self.words[:2]
        return filters, told

    def close(self) -> None:
        for file in self.files.values():
            os.close(file)


def serve(address: str) -> Request:
    """Forks a process for each client; returns in those."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    ended, ends = os.pipe()
    os.set_blocking(ends, False)
    signal.set_wakeup_fd(ends, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    lines: dict[int, socket.socket] = {}
    while True:
        ready = select.select([0, listening, ended, *lines.values()], [], [])[0]
        if 0 in ready:
            for process in lines:
                os.kill(process, signal.SIGKILL)
            os._exit(0)
        if ended in ready:
            os.read(ended, 4096)
            _tell_ends(lines)
        for process in [process for process, line in lines.items() if line in ready]:
            os.kill(process, signal.SIGKILL)  # the client is gone
            os.waitpid(process, 0)
            lines.pop(process).close()
        if listening not in ready:
            continue
        line, _ = listening.accept()
        try:
            request = Request(line)
        except (EOFError, OSError):  # it was killed before it had asked
            line.close()
            continue
        process = os.fork() if _may_be_forked(request) else 0xFFFF_FFFF_FFFF
        if process == 0:
            for own in (listening, line, *lines.values()):
                own.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.close(ended)
            os.close(ends)
            return request
        request.close()
        is_forked = process != 0xFFFF_FFFF_FFFF
        with contextlib.suppress(OSError):  # it may have been killed since; what was forked then dies in the next round
            line.sendall((process if is_forked else 0).to_bytes(8, "little"))
        if is_forked:
            lines[process] = line
        else:
            line.close()


def _tell_ends(lines: dict[int, socket.socket]) -> None:
    for process in list(lines):
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            line = lines.pop(process)
            with line, contextlib.suppress(OSError):  # who asked for it may be gone
                line.sendall(status.to_bytes(8, "little"))


def _may_be_forked(request: Request) -> bool:
    names = {name for name in (*request.environment, *os.environ) if name.startswith(EARLY)} - LATE - {"PYTHONPATH"}
    return all(request.environment.get(name) == os.environ.get(name) for name in names) and not any(
        word.startswith("-") and word not in ("-c", "-m", "-W", "-X") for word in request.words[:1])


def become(request: Request) -> None:
    """Has this process what the client has."""
    filters, told = request.options()
    for number, file in request.files.items():
        if file != number:
            os.dup2(file, number)
    for file in set(request.files.values()) - set(request.files):
        os.close(file)
    before = _paths(os.environ)
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.folder)
    own = sys.path[1:]  # the first is the folder of this file
    sys.path[:] = [*_paths(os.environ), *(path for path in own if path not in before)]
    late = warnings.filters[:len(warnings.filters) - FILTERS]  # of modules that were imported
    del warnings.filters[:len(late)]  # type: ignore[attr-defined]
    warnings._processoptions(filters)  # type: ignore[attr-defined]
    warnings.filters[:0] = late  # type: ignore[index]
    sys.warnoptions += filters
    if told:
        import faulthandler
        faulthandler.enable()


def _paths(environment: Any) -> list[str]:
    return [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]


def run(kind: str, *arguments: str) -> None:
    """Runs a program as the interpreter would that was started with these words."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    if kind == "-m":
        sys.path.insert(0, os.getcwd())
        sys.argv = list(arguments)
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *arguments[1:]]
        exec(compile(arguments[0], "<string>", "exec", dont_inherit=True), main.__dict__)
    else:
        sys.path.insert(0, os.path.dirname(os.path.realpath(kind)))
        sys.argv = [kind, *arguments]
        main.__file__ = kind
        with open(kind, "rb") as file:
            program = file.read()
        exec(compile(program, kind, "exec", dont_inherit=True), main.__dict__)


if __name__ == "__main__":
    import importlib

    import twofold  # noqa: F401 - what is served
    for part in USUAL:
        importlib.import_module(f"twofold.{part}")
    if COMPILER & set(sys.modules) and len(sys.argv) == 2:  # it made what is kept for all later imports
        os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
    assert "numpy.random" not in sys.modules  # its generator would go on alike in all
    gc.collect()
    gc.freeze()  # to be shared as long as nobody looks at it
    asked = serve(sys.argv[1])
    become(asked)
    kept = sys.modules["__main__"]  # with all that is still to run
    try:
        run(*asked.words)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - it ends here, as at the end of an interpreter
        # As the interpreter tells of it: of what was run, and not of who runs it.
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.stdout.flush()
        sys.stderr.flush()
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        sys.exit(1)
