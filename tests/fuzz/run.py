"""`make fuzz`: random programs, eager against compiled, for as long as asked.

    python tests/fuzz/run.py --time 600 --seed 7

With TWOFOLD_FUZZ_GPU=1 programs run on a GPU, too: a fake of one, or with TWOFOLD_TEST_GPU=1 one of this machine.

Prints the first failing program, as small as it could be made, as a script that runs alone. `--all` goes on after
failures instead and writes each, as it was found, into a folder.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.programs import Program, programs
from fuzz.worker import Workshop, script

_ROUND = 50  # programs between looks at the clock


class Failure(Exception):
    """A program whose modes differ."""

    def __init__(self, source: str, actual: str) -> None:
        super().__init__(actual)
        self.source, self.found = source, actual


def main() -> int:
    """Run until the time is over, or a program fails; the exit status."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--time", type=float, default=600, help="seconds")
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--shrink", type=float, default=120, help="seconds to make a failing program smaller")
    options.add_argument("--all", type=Path, default=None, metavar="FOLDER")
    args = options.parse_args()
    first = random.SystemRandom().randrange(1 << 30) if args.seed is None else args.seed
    print(f"seed {first}", flush=True)
    end, count, failures = time.monotonic() + args.time, 0, 0
    known: dict[str, str] = {}  # failing programs
    stop = float("inf")
    with Workshop() as shop:
        while time.monotonic() < end:
            def check(program: Program) -> None:
                nonlocal count, failures, stop
                if args.all is not None and time.monotonic() > end:
                    return
                count += 1
                source = program.source()
                actual = known.get(source) or (shop.check(source) if time.monotonic() < stop else None)
                if actual is None:
                    return
                if args.all is None:
                    if not known:
                        print(f"a failure after {count} programs: {actual}\nmaking it smaller ...", flush=True)
                        stop = time.monotonic() + args.shrink
                    known[source] = actual
                    raise Failure(source, actual)
                failures += 1
                print(f"{failures} of {count}: {actual}", flush=True)
                args.all.mkdir(parents=True, exist_ok=True)
                (args.all / f"{first}_{failures}.py").write_text(script(source, actual))
            phases = [Phase.generate] if args.all is not None else [Phase.generate, Phase.shrink]
            runs = settings(max_examples=_ROUND, deadline=None, database=None, phases=phases, print_blob=False,
                            derandomize=False, report_multiple_bugs=False,
                            suppress_health_check=list(HealthCheck))
            try:
                seed(first * 1_000_003 + count)(runs(given(programs())(check)))()
            except Failure as failure:
                print("\n" + script(failure.source, failure.found))
                return 1
    print(f"{count} programs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
