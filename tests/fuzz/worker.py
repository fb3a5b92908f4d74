"""A process that runs programs: a crash ends it and not whoever asks. Lines of JSON go in and out.

    with Workshop() as shop:
        print(shop.check(program.source()))
"""

from __future__ import annotations

import contextlib
import inspect
import json
import linecache
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).parent
SECONDS = 120  # a program that takes longer hangs

__all__ = ["Workshop", "run_source", "script"]


def run_source(source: str, name: str) -> str | None:
    """What differs between the modes of a program; None if nothing does."""
    from fuzz import compare, integers

    from twofold.ir import ops
    path = f"<{name}>"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    names: dict[str, Any] = {"tf": compare.tf, "np": compare.np, "data": compare.data,
                             "settled": compare.settled, "ops": ops, "__name__": name}
    exec(compile(source, path, "exec"), names)
    if "case" in names:
        return integers.check(names["function"], names["case"])
    return compare.check(names["make"], names["calls"], names["taped"])


def script(source: str, actual: str) -> str:
    """A program that stands alone: the comparison, the program, and a call."""
    from fuzz import compare
    told = "\n".join(f"# {line}" for line in actual.splitlines())
    extra = "from twofold.ir import ops\n\n" if "ops." in source else ""
    return f"{told}\n{inspect.getsource(compare)}\n\n{extra}\n{source}\nprint(check(make, calls, taped))\n"


class Workshop:
    """A worker process, started again after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def check(self, source: str) -> str | None:
        """What differs between the modes of a program, or how it ended the process; None if all is well."""
        process = self._started()
        process.stdin.write(json.dumps(source) + "\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        if not select.select([process.stdout], [], [], SECONDS)[0]:
            self.close()
            return f"hangs: no answer after {SECONDS} seconds"
        answer = process.stdout.readline()  # type: ignore[union-attr]
        if answer:
            return json.loads(answer)
        status = process.wait()
        self.close()
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        return f"crashes: the process ended with {how}"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process.stdin.close()  # type: ignore[union-attr]
            self._process.stdout.close()  # type: ignore[union-attr]
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
            self._process = subprocess.Popen([sys.executable, "-m", "fuzz.worker"], text=True, stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})
        return self._process


def main() -> None:
    """Answer each line until there are no more; with TWOFOLD_FUZZ_GPU=1 where there is a GPU."""
    with contextlib.ExitStack() as stack:
        if os.environ.get("TWOFOLD_FUZZ_GPU") == "1":
            from gpu.devices import device
            stack.enter_context(device())
        answer_all()


def answer_all() -> None:
    """Answer each line."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is no answer
    for number, line in enumerate(sys.stdin):
        try:
            actual = run_source(json.loads(line), f"program{number}")
        except Exception as e:  # noqa: BLE001 (whatever it is, it is told)
            import traceback
            last = traceback.extract_tb(e.__traceback__)[-1]
            actual = f"raises {type(e).__name__}: {e} ({last.filename}:{last.lineno})"
        print(json.dumps(actual), file=out, flush=True)


if __name__ == "__main__":
    main()
