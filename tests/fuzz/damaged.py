"""What fuzzers of damaged files share: bytes that are changed at random, and child processes that read the results.

Files are read in child processes, with a limit on their memory and on the time of each, so that crashes are seen.
`onnx_mutations.py` and `saved_model_mutations.py` say what is changed beside bytes, and how a file is read.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

__all__ = ["bytes_changed", "main", "watched"]


def bytes_changed(data: bytes, rng: random.Random) -> bytes:
    """A file in which bytes were changed, cut out, repeated or moved."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(out) or 1)
        size = rng.choice((1, 2, 4, 8, 64))
        how = rng.randrange(6)
        if how == 0:
            out[at:at + 1] = bytes([rng.randrange(256)])
        elif how == 1:
            out[at:at + 1] = bytes([(out[at] if at < len(out) else 0) ^ (1 << rng.randrange(8))])
        elif how == 2:
            del out[at:at + size]
        elif how == 3:
            out[at:at] = out[at:at + size]
        elif how == 4:
            out[at:at + size] = rng.choice((b"\xff", b"\x00", b"\x7f")) * size
        else:
            other = rng.randrange(len(out) or 1)
            out[at:at + size] = out[other:other + size]
    return bytes(out[:rng.randrange(len(out) + 1)] if rng.random() < 0.1 else out)


def watched(outcome: Callable[[int], str], first: int, count: int, seconds: int, memory: int) -> None:
    """Print how the files of some numbers end, under limits; for a process that has loaded what it needs.

    Args:
        outcome: of the file of a number.
        first, count: the numbers.
        seconds: that one file may take.
        memory: bytes that the process may take beside what it has now.
    """
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + memory, size + memory))
    for number in range(first, first + count):
        print("at", number, flush=True)
        signal.alarm(seconds)
        print("is", number, outcome(number).replace("\n", " "), flush=True)
        signal.alarm(0)


def main(script: str, about: str | None, count: int, batch: int, child: Callable[[int, int, int], None]) -> int:
    """Run mutations in children, and say how they ended.

    Args:
        script: the file of the fuzzer, which a child runs.
        about: what `--help` says.
        count: how many files there are by default.
        batch: how many of them one process reads.
        child: does that, by the number of the first file, how many there are, and the seed; see `watched`.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=int, nargs=2)
    args = parser.parse_args()
    if args.child:
        child(*args.child, args.seed)
        return 0
    ends: Counter[str] = Counter()
    wrong, number = [], 0
    while number < args.count:
        size = min(batch, args.count - number)
        done = subprocess.run([sys.executable, script, "--seed", str(args.seed), "--child", str(number), str(size)],
                              capture_output=True, text=True)
        lines = [line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith(("at ", "is "))]
        for word, which, *rest in lines:
            if word == "is":
                ends[rest[0].split(":")[0]] += 1
                wrong += [f"{which}: {rest[0]}"] if rest[0].startswith("wrong") else []
        number += size
        if done.returncode:
            number = int(lines[-1][1]) + 1 if lines else number
            ends["died"] += 1
            wrong.append(f"{number - 1}: process ended with {done.returncode}: {done.stderr[-300:]}")
        print(f"{number} of {args.count}: {dict(ends)}", flush=True)
    print("\n".join(wrong))
    return int(bool(wrong))
