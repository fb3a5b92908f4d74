"""Writes what the tests of saved models keep for good: the ops of a version of the op set, and a golden model.

    python tests/saved_model/record.py ops       the signatures of all ops, as data/op_set_N.json
    python tests/saved_model/record.py golden    a model, as data/golden_N, with what its functions give

N is the version of the op set. An op that was added, and an attribute with a default, is recorded by running the first;
all else that was recorded must not change without a new version (`twofold/saved_model/op_sets.py`). A golden model is
written once for each version of the format or the op set, and never again: it must load for ever.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from twofold.ir import graph as g
from twofold.ir import ops  # noqa: F401  (fills the registry)
from twofold.ir.graph_literals import attr_text
from twofold.ir.op import REGISTRY, Op
from twofold.saved_model import op_sets

DATA = Path(__file__).parent / "data"


def signature(op: Op) -> dict[str, Any]:
    """What graphs depend on: operands, and attributes with their defaults ("required" where there is none)."""
    import inspect

    return {"operands": list(op.params), "variadic": op.variadic,
            "attributes": {name: "required" if value is inspect.Parameter.empty else attr_text(value)
                           for name, value in op.defaults.items()}}


def op_set() -> dict[str, Any]:
    """The ops of the registry and the constructs, as they are now."""
    constructs = {name: {"regions": c.regions, "effect": c.effect} for name, c in sorted(g.CONSTRUCTS.items())}
    return {"ops": {name: signature(op) for name, op in sorted(REGISTRY.items())}, "constructs": constructs}


def golden(folder: Path) -> None:
    """A model, and what its functions give."""
    import numpy as np

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from saved_model import cases

    import twofold as tf

    if folder.exists():
        raise SystemExit(f"{folder} is there already: a golden model is never written again.")
    model = cases.Everything()
    cases.run(model)  # traces
    tf.saved_model.save(model, folder / "model")
    results = {f"{name}/{n}": leaf for name, leaves in cases.results(tf.saved_model.load(folder / "model")).items()
               for n, leaf in enumerate(leaves)}
    np.savez_compressed(folder / "results.npz", **results)


def main() -> None:
    """Do what the command line says."""
    what = sys.argv[1:]
    if what == ["ops"]:
        DATA.mkdir(exist_ok=True)
        path = DATA / f"op_set_{op_sets.CURRENT}.json"
        path.write_text(json.dumps(op_set(), indent=1) + "\n")
    elif what == ["golden"]:
        golden(DATA / f"golden_{op_sets.CURRENT}")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
