"""Writes what TensorFlow gives for expressions on composite values: `python record.py`, where it is installed.

The expressions are those of the files `.json`, whose values it replaces; a new one is written there by
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
    "embedding": """
table = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.5], [-7.0, 0.5]])
ids = tf.SparseTensor([[0, 0], [0, 2], [1, 1], [3, 0], [3, 2]], [0, 2, -1, 1, 3], [5, 3])
weights = tf.SparseTensor(ids.indices, [0.5, 1.0, 2.0, -1.0, 3.0], [5, 3])
rows = tf.ragged.constant([[0, 2], [], [3, 1, 1, 2], [-1]])
nested = tf.SparseTensor([[0, 0, 1], [0, 1, 0], [1, 1, 0], [1, 1, 1]], [0, 3, -1, 2], [2, 3, 2])
variable = tf.Variable(table)

def gradient(function, *args):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(function(variable, *args) ** 2)
    by_rows = tape.gradient(loss, variable)
    assert isinstance(by_rows, tf.IndexedSlices)
    return tf.convert_to_tensor(by_rows)
""",
    "keras": """
layers, ops = tf.keras.layers, tf.keras.ops
numbers = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [2.0, -3.0, 4.0], [3, 4])
ids = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [2, 3, 1], [3, 4])
names = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], ["b", "a", "zz"], [3, 4])
rows = tf.ragged.constant([[1, 2], [], [3, 0, 1]])
floats = tf.ragged.constant([[1.0, 2.0], [], [3.0, 0.5, 1.0]])
words = tf.ragged.constant([["a", "b"], [], ["zz", "a", "q"]])
pairs = tf.constant([[1, 2], [0, 1], [3, 3]])
terms = tf.constant([["a", "b"], ["q", "a"], ["b", "b"]])
texts = tf.constant(["a b b", "", "q a b a"])
table = tf.reshape(tf.range(10.0), [5, 2])
dense = layers.Dense(2, kernel_initializer="ones", bias_initializer="ones")
embedding = layers.Embedding(5, 2, embeddings_initializer=lambda shape, dtype=None: table)

def vectorization(**settings):
    return layers.TextVectorization(vocabulary=["a", "b"], **settings)

def lookup(**settings):
    return layers.StringLookup(vocabulary=["a", "b"], **settings)

def integers(**settings):
    return layers.IntegerLookup(vocabulary=[1, 2], **settings)
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
