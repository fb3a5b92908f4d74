"""Writes the raw ops of TensorFlow, with arguments, defaults and names of results: `python record_raw_ops.py`, where it
is installed.
"""

import inspect
import json
import pathlib
import re


def main():
    import tensorflow as tf
    recorded = {}
    for name in sorted(dir(tf.raw_ops)):
        op = getattr(tf.raw_ops, name)
        if not name.startswith("_") and callable(op):
            arguments = [p.name if p.default is p.empty else f"{p.name}={p.default!r}"
                         for p in inspect.signature(op).parameters.values()]
            results = re.search(r"Returns:\s*A tuple of `Tensor` objects \(([^)]*)\)", op.__doc__ or "")
            recorded[name] = ", ".join(arguments) + (f" -> {results[1]}" if results else "")
    path = pathlib.Path(__file__).with_name("raw_ops.json")
    path.write_text(json.dumps({"tensorflow": tf.__version__, "ops": recorded}, indent=0) + "\n")
    print(len(recorded))


if __name__ == "__main__":
    main()
