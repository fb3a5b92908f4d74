"""Run the tests of libraries that are written for TensorFlow, on TensorFlow and on twofold under its name.

    python tests/clients/run.py                     all of them
    python tests/clients/run.py einops gpflow       some
    python tests/clients/run.py --here              on twofold alone, where they ran on TensorFlow before
    python tests/clients/run.py --folder FOLDER     with the environment and the repositories in that folder

The folder is made where it is missing, outside of the tree: an environment with TensorFlow and the libraries, and
their repositories. Results go to `tests/clients/results/`, from which `make docs` writes the table of
`docs/coverage.md`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from clients.suites import HEAD, HERE, Client, Places, measure, row


def clients() -> dict[str, Client]:
    """The clients by name."""
    modules = [importlib.import_module(f"clients.{path.stem}") for path in sorted(HERE.glob("*_suite.py"))]
    return {one.name: one for module in modules for one in vars(module).values() if isinstance(one, Client)}


def main() -> None:
    """Run the clients that the arguments name."""
    known = clients()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*known, []], metavar="client", help=", ".join(known))
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "twofold-clients")
    parser.add_argument("--environment", type=Path, help="of Python, where it is not in the folder")
    parser.add_argument("--here", action="store_true", help="TensorFlow's results are those of the last run, if any")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    places = Places(given.environment or given.folder / "environment", given.folder, given.jobs)
    print(HEAD, flush=True)
    for name in given.names or known:
        print(row(measure(known[name], places, again=not given.here)), flush=True)


if __name__ == "__main__":
    main()
