"""Random programs of threads: calls that change a state, at the same time, for as long as asked.

    python tests/fuzz/threads.py --time 600 --seed 7

A case is a few things with a state (`subjects.py`), and threads that call them in a random order. What comes out must
be what one thread gives: no update lost, no draw made twice, nothing half done seen. Cases run in a process of their
own, so that crashes and threads that wait for ever are results too. Each failing case is printed with its number, by
which `--case NUMBER` runs it again; the exit status says whether there was any.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

SECONDS = 120  # a case that takes longer hangs

__all__ = ["check", "run_case"]


def run_case(number: int) -> str | None:
    """What is wrong with a case; None if nothing is."""
    from fuzz.subjects import SUBJECTS, Streams

    rng = random.Random(number)
    kinds = rng.sample(SUBJECTS, rng.choice([1, 1, 2, 3]))
    if sum(issubclass(kind, Streams) for kind in kinds) > 1:
        kinds = kinds[:1]
    kinds.sort(key=lambda kind: issubclass(kind, Streams))  # what sets the seed comes last
    threads, rounds = rng.choice([2, 3, 4, 8]), rng.randint(3, 30)
    sys.setswitchinterval(10 ** rng.uniform(-6, -2))
    seeds = [rng.randrange(1 << 30) for _ in kinds]
    title = f"case {number}: {', '.join(kind.__name__ for kind in kinds)}; {threads} threads, {rounds} rounds"
    try:
        check(kinds, seeds, threads, rounds, random.Random(number + 1))
    except Exception:  # noqa: BLE001 - whatever goes wrong is what is looked for
        return f"{title}\n{traceback.format_exc()}"
    return None


def check(kinds: list[Any], seeds: list[int], threads: int, rounds: int, order: random.Random) -> None:
    """Raise AssertionError unless threads that call subjects in a random order get what one thread gets.

    Args:
        kinds, seeds: the subjects' classes, and what each is made from.
        threads, rounds: how many there are, and how many calls each makes.
    """
    subjects = [kind(random.Random(seed)) for kind, seed in zip(kinds, seeds, strict=True)]
    plans = [[(s, order.randrange(len(subjects[s].calls))) for s in (order.randrange(len(subjects))
                                                                     for _ in range(rounds))]
             for _ in range(threads)]
    given = _run(subjects, plans)
    again = [kind(random.Random(seed)) for kind, seed in zip(kinds, seeds, strict=True)]
    serial = _run(again, [[step for plan in plans for step in plan]])
    for kind, subject, other, mine, theirs in zip(kinds, subjects, again, given, serial, strict=True):
        for n, (x, y) in enumerate(zip(subject.state(), other.state(), strict=True)):
            assert x.tobytes() == y.tobytes(), f"{kind.__name__}: state {n} is {x}; one thread gives {y}"
        subject.check(mine, theirs)


def _run(subjects: list[Any], plans: list[list[tuple[int, int]]]) -> list[list[Any]]:
    """What the calls of each subject gave, made by a thread for each plan; the first error is raised."""
    given: list[list[Any]] = [[] for _ in subjects]
    errors: list[BaseException] = []
    ready = threading.Barrier(len(plans))

    def work(plan: list[tuple[int, int]]) -> None:
        try:
            ready.wait()
            for subject, call in plan:
                given[subject].append(subjects[subject].calls[call]())
        except BaseException as error:  # noqa: BLE001 - raised by the thread that asked
            errors.append(error)
    if len(plans) == 1:
        work(plans[0])
    else:
        running = [threading.Thread(target=work, args=(plan,), daemon=True) for plan in plans]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    if errors:
        raise errors[0]
    return given


class Worker:
    """A process that runs cases, started again when it is lost."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def check(self, number: int) -> str | None:
        """What is wrong with a case; None if nothing is."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen([sys.executable, "-X", "faulthandler", __file__, "--serve"],
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        print(number, file=process.stdin, flush=True)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if not select.select([process.stdout], [], [], 1.0)[0]:
                continue
            line = process.stdout.readline()
            if not line:
                return f"case {number}: the process ended with {process.wait()}\n"
            return json.loads(line)["found"]  # type: ignore[no-any-return]
        process.send_signal(signal.SIGABRT)  # tells where all threads are
        process.wait()
        return f"case {number}: nothing after {SECONDS} s\n"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _serve() -> None:
    """Run cases whose numbers come in."""
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        actual = run_case(int(line))
        out.write(json.dumps({"found": actual}) + "\n")
        out.flush()


def main() -> int:
    """Run until the time is over; the exit status."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--time", type=float, default=600, help="seconds")
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--case", type=int, default=None, help="run one case, in this process")
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.serve:
        _serve()
        return 0
    if args.case is not None:
        actual = run_case(args.case)
        print(actual or f"case {args.case}: right")
        return 1 if actual else 0
    first = random.SystemRandom().randrange(1 << 30) if args.seed is None else args.seed
    print(f"seed {first}", flush=True)
    end, count, failures = time.monotonic() + args.time, 0, 0
    worker = Worker()
    try:
        while time.monotonic() < end:
            actual = worker.check(first * 1_000_003 + count)
            count += 1
            if actual is not None:
                failures += 1
                print(f"{failures} of {count}: {actual}", flush=True)
    finally:
        worker.close()
    print(f"{count} cases, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
