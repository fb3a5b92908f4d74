"""KerasHub, KerasCV, `keras.applications` and programs of Keras on TensorFlow and on twofold: equal numbers or not.

    python tests/clients/hub_suite.py --python ENVIRONMENT/bin/python             all checks of `hub_program.py`
    python tests/clients/hub_suite.py --python ... --failures FILE hub cv         some; what differs in a file
    python tests/clients/hub_suite.py --python ... --program keras_programs.py    programs of Keras's documentation

The environment holds TensorFlow, Keras, keras-hub, keras-cv and what twofold needs. Prints one line of JSON in the form
of `keras_suite.py`; a check passes where its numbers differ from TensorFlow's by at most 1e-4 of their size.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import time
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_CLOSE = {"rel_tol": 1e-4, "abs_tol": 1e-5}


def results(python: str, program: str, groups: list[str], here: bool) -> dict[str, Any]:
    """What the checks give on TensorFlow, or on twofold."""
    search = [str(_ROOT / "twofold" / "as_tensorflow" / "path"), str(_ROOT)] if here else []
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    environment["PYTHONPATH"] = os.pathsep.join([*search, *filter(None, [environment.get("PYTHONPATH")])])
    ran = subprocess.run([python, str(_HERE / program), *groups], env=environment, stdout=subprocess.PIPE,
                         text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def agree(one: Any, other: Any) -> bool:
    """Whether two lists of numbers are close."""
    return isinstance(one, list) and isinstance(other, list) and len(one) == len(other) and all(
        math.isclose(a, b, **_CLOSE) for a, b in zip(one, other, strict=True))


def main() -> None:
    """Runs the checks on both and prints how many agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", help="hub, cv, applications; all without")
    parser.add_argument("--python", required=True, help="the interpreter of an environment")
    parser.add_argument("--program", default="hub_program.py", help="the program beside this file that runs them")
    parser.add_argument("--failures", type=Path, help="where to write what differs")
    options = parser.parse_args()
    started = time.monotonic()
    there, here = (results(options.python, options.program, options.groups, one) for one in (False, True))
    ran = [name for name, value in there.items() if isinstance(value, list)]
    differ = {name: [there[name], here.get(name)] for name in ran if not agree(there[name], here.get(name))}
    if options.failures:
        options.failures.write_text(json.dumps(differ, indent=1))
    client = "keras-hub, keras-cv, keras.applications" if options.program == "hub_program.py" else options.program
    print(json.dumps({"client": client, "tests_on_tensorflow": len(there),
                      "passed_there": len(ran), "passed_here": len(ran) - len(differ),
                      "seconds": round(time.monotonic() - started)}))


if __name__ == "__main__":
    main()
