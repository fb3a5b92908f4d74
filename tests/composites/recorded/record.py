"""Writes what TensorFlow gives for expressions on ragged and sparse tensors: `python record.py`, where it is installed.

The expressions are those of `ragged.json` and `sparse.json`, whose values it replaces; a new one is written there by
hand, with the value null. A value is the text of the result, or the name of the error's class behind `raises `.
"""

import json
import pathlib
import sys

SETUP = {
    "ragged": """
digits = tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2], [6], []])
words = tf.ragged.constant([["So", "long"], ["thanks", "for", "all", "the", "fish"]])
rt3 = tf.ragged.constant([[[1, 2], [3]], [[4], [5, 6, 7], []]])
""",
    "sparse": """
a = tf.SparseTensor([[0, 3], [1, 1], [1, 2]], [10, 20, 30], [3, 4])
b = tf.SparseTensor([[0, 3], [1, 0], [2, 3]], [1, 2, 3], [3, 4])
c = tf.SparseTensor([[0, 0]], [9], [3, 2])
wide = tf.SparseTensor([[0, 5]], [9], [2, 6])
""",
}


def evaluated(expression, names):
    """The text of the value of an expression, or the class of the error."""
    try:
        return repr(eval(expression, names))  # noqa: S307 - the expressions are ours
    except Exception as error:  # noqa: BLE001 - its class is what is recorded
        return f"raises {type(error).__name__}"


def main():
    import tensorflow as tf
    folder = pathlib.Path(__file__).parent
    for kind, setup in SETUP.items():
        names = {"tf": tf}
        exec(setup, names)
        path = folder / f"{kind}.json"
        cases = {e: evaluated(e, names) for e in json.loads(path.read_text())["cases"]}
        path.write_text(json.dumps({"tensorflow": tf.__version__, "cases": cases}, indent=1) + "\n")
        print(f"{path.name}: {len(cases)} expressions", file=sys.stderr)


if __name__ == "__main__":
    main()
