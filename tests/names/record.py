"""Writes the public names of TensorFlow: `python record.py`, where it is installed.

Public are what its modules show, without raw ops, `compat`, DTensor, Lite and TPU.
"""

import json
import pathlib
import types

LEFT_OUT = ("tf.raw_ops", "tf.compat", "tf.lite", "tf.tpu", "tf.experimental.dtensor", "tf.dtensor", "tf.keras.src",
            "tf.python", "tf.core", "tf.compiler", "tf.tools", "tf.security")
PUBLIC = ("tensorflow._api", "keras.")


def names(module, path, around=()):
    """The names of a module, with those of its modules."""
    found = set()
    for name in dir(module):
        full = f"{path}.{name}"
        if name.startswith("_") or full.startswith(LEFT_OUT):
            continue
        value = getattr(module, name, None)
        if not isinstance(value, types.ModuleType):
            found.add(full)
        elif value.__name__.startswith(PUBLIC) and value not in around:
            found |= names(value, full, (*around, value))
    return found


def main():
    import tensorflow as tf
    numpy = "tf.experimental.numpy"  # which `dir` does not show
    listed = sorted(names(tf, "tf") | names(tf.experimental.numpy, numpy))
    path = pathlib.Path(__file__).with_name("names.json")
    path.write_text(json.dumps({"tensorflow": tf.__version__, "names": listed}, indent=0) + "\n")
    print(len(listed))


if __name__ == "__main__":
    main()
