"""`make fuzz`: random calls with integer arguments, as Python's, NumPy's, tensors and traced tensors.

    python tests/fuzz/run_integers.py --time 600 --seed 7

Prints each failure as a script that runs alone with `--script`, and in the end how many cases ran and how many
failed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import integers
from fuzz.worker import Workshop, run_source


def main() -> int:
    """Run until the time is over; the exit status."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--time", type=float, default=600, help="seconds")
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--all", type=Path, default=None, metavar="FOLDER", help="where to write each failure")
    options.add_argument("--script", type=Path, default=None, help="run one failure that was written before")
    args = options.parse_args()
    if args.script is not None:
        actual = run_source(args.script.read_text(), "case")
        print(actual)
        return 1 if actual else 0
    first = random.SystemRandom().randrange(1 << 30) if args.seed is None else args.seed
    print(f"seed {first}", flush=True)
    rng, count, failed = random.Random(first), 0, Counter[str]()
    end = time.monotonic() + args.time
    with Workshop() as shop:
        while time.monotonic() < end:
            count += 1
            case = integers.draw(rng)
            source = integers.source_of(case)
            actual = shop.check(source)
            if actual is None:
                continue
            kind = f"{case.entry.text} in {case.nest}"
            failed[case.entry.text] += 1
            print(f"{sum(failed.values())} of {count}: {kind}: {actual}", flush=True)
            if args.all is not None:
                args.all.mkdir(parents=True, exist_ok=True)
                told = "\n".join(f"# {line}" for line in actual.splitlines())
                (args.all / f"{first}_{sum(failed.values())}.py").write_text(f"{told}\n{source}")
    for text, times in failed.most_common():
        print(f"{times:5} {text}")
    print(f"{count} cases, {sum(failed.values())} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
