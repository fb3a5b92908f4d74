"""The machine's own limits, beside which kernels are measured: fused multiply-adds and copied bytes a second.

    python benchmarks/floors.py

prints them as JSON. Arithmetic: a loop of fused multiply-adds on vectors as wide as the processor has them, in so many
independent sums that none waits for another, on every thread. Bandwidth: a copy of arrays much larger than the caches,
a part by each thread; bytes read and bytes written both count. Of several runs the best counts: what disturbs a run
only ever makes it slower.
"""

from __future__ import annotations

import ctypes
import json
import threading
import time

import numpy as np

_SUMS = 16  # independent sums: the latency of an instruction times how many start in a cycle, and some more
_ROUNDS = 1_000_000
_BYTES = 1 << 28  # of each of both arrays of a copy
_RUNS = 7


def _fma_text(kind: str, lanes: int) -> str:
    """LLVM's text of `int64 fma(int64 start, int64 stop, int64* args)`, which runs `_ROUNDS` rounds for each unit."""
    vector = f"<{lanes} x {kind}>"
    name = f"llvm.fma.v{lanes}f{'32' if kind == 'float' else '64'}"
    sums = [f"  %s{n} = phi {vector} [zeroinitializer, %entry], [%t{n}, %loop]" for n in range(_SUMS)]
    steps = [f"  %t{n} = call {vector} @{name}({vector} %s{n}, {vector} %x, {vector} %y)" for n in range(_SUMS)]
    folded = [f"  %u{n} = fadd {vector} {f'%u{n - 1}' if n else '%t0'}, %t{n}" for n in range(_SUMS)]
    return "\n".join([
        f"declare {vector} @{name}({vector}, {vector}, {vector})",
        "define i64 @fma(i64 %start, i64 %stop, ptr %args) {", "entry:",
        "  %place = getelementptr i64, ptr %args, i64 0",
        f"  %x = load volatile {vector}, ptr %place, align 8",
        f"  %y = load volatile {vector}, ptr %place, align 8",
        "  %units = sub i64 %stop, %start", f"  %rounds = mul i64 %units, {_ROUNDS}", "  br label %loop", "loop:",
        "  %i = phi i64 [0, %entry], [%next, %loop]", *sums, *steps, "  %next = add i64 %i, 1",
        "  %more = icmp slt i64 %next, %rounds", "  br i1 %more, label %loop, label %done", "done:", *folded,
        f"  store volatile {vector} %u{_SUMS - 1}, ptr %place, align 8", "  ret i64 0", "}"])


def fma_rate(dtype: str) -> float:
    """Operations a second of all threads together, a fused multiply-add being two.

    Args:
        dtype: "float32" or "float64".
    """
    from twofold.codegen import llvm_module
    from twofold.runtime import threads
    from twofold.runtime.image import Image

    lanes = llvm_module.vector_bits() // (8 * np.dtype(dtype).itemsize)
    text = _fma_text("float" if dtype == "float32" else "double", lanes)
    image = Image([llvm_module.object_code(llvm_module.optimise(text))], ["fma"])
    memory = (ctypes.c_double * 64)()  # zeros, so that no sum grows
    count = threads.get_num_threads()

    def once() -> float:
        begin = time.perf_counter()
        threads.parallel_for(image.address("fma"), count, ctypes.addressof(memory), count)
        return 2.0 * count * _ROUNDS * _SUMS * lanes / (time.perf_counter() - begin)
    return max(once() for _ in range(_RUNS))


def copy_rate() -> float:
    """Bytes a second that all threads together read and write when they copy."""
    from twofold.runtime import threads

    count = threads.get_num_threads()
    source, target = np.ones(_BYTES, np.uint8), np.zeros(_BYTES, np.uint8)

    def once() -> float:
        parts = zip(np.array_split(target, count), np.array_split(source, count), strict=True)
        workers = [threading.Thread(target=np.copyto, args=part) for part in parts]
        begin = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return 2.0 * _BYTES / (time.perf_counter() - begin)
    return max(once() for _ in range(_RUNS))


def measure() -> dict[str, float]:
    """Operations a second by dtype, and bytes a second under "copy".

    Where the processor has instructions for them, one multiplies and adds twice as many bfloat16, or four times as many
    int8, as float32 in the same time; where not, they are converted.
    """
    from twofold.codegen import target

    single, has = fma_rate("float32"), target.current()
    return {"float32": single, "float64": fma_rate("float64"), "bfloat16": single * (2 if has.pairs else 1),
            "int8": single * (4 if has.quads else 1), "copy": copy_rate()}


def least(work: tuple[float, float, str], limits: dict[str, float]) -> tuple[float, str]:
    """The seconds below which work cannot be done, and which limit says so: "arithmetic" or "memory".

    Args:
        work: operations, bytes, and the dtype of the operations (`kernels.Work`).
        limits: as `measure` gives them.

    >>> least((2e9, 8e6, "float32"), {"float32": 1e11, "copy": 1e10})
    (0.02, 'arithmetic')
    >>> least((0, 8e7, "float32"), {"float32": 1e11, "copy": 1e10})
    (0.008, 'memory')
    """
    flops, moved, dtype = work
    by_arithmetic, by_memory = flops / limits[dtype], moved / limits["copy"]
    return (by_arithmetic, "arithmetic") if by_arithmetic > by_memory else (by_memory, "memory")


if __name__ == "__main__":
    print(json.dumps(measure()))
