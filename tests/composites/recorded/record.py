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
    "columns": """
import os, tempfile
column, v1 = tf.feature_column, tf.compat.v1.feature_column
features = {
    "a": tf.constant([[0.5], [-1.0], [3.0]]), "c": tf.constant([[1, -1], [2, 7], [3, 3]]),
    "s": tf.constant([["x", "y"], ["q", "x"], ["", ""]]), "w": tf.constant([[0.5, 2.0], [1.0, 0.25], [3.0, 4.0]]),
    "sp": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["x", "z", "y"], [3, 2]), "r": tf.constant([1, 2, 3]),
    "spw": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1.0, 2.0, -1.0], [3, 2])}
folder = tempfile.TemporaryDirectory()
with open(os.path.join(folder.name, "words"), "w") as file:
    file.write("y\\nx\\nz\\n")
number = column.numeric_column("a")
buckets = column.bucketized_column(number, [0.0, 1.0])
identity = column.categorical_column_with_identity("c", 5, 0)
hashed = column.categorical_column_with_hash_bucket("s", 10)
hashed_numbers = column.categorical_column_with_hash_bucket("c", 10, tf.int64)
words = column.categorical_column_with_vocabulary_list("s", ["x", "y"])
unknown = column.categorical_column_with_vocabulary_list("sp", ["x", "y"], num_oov_buckets=2)
numbers = column.categorical_column_with_vocabulary_list("c", [3, 7], default_value=1)
lines = column.categorical_column_with_vocabulary_file("s", file.name)
some_lines = column.categorical_column_with_vocabulary_file("sp", file.name, 2, num_oov_buckets=1)
weighted = column.weighted_categorical_column(unknown, "spw")
cross = column.crossed_column(["s", "c"], 100)
keyed = column.crossed_column([buckets, "s", identity], 50, hash_key=7)
nested = column.crossed_column([cross, unknown], 20)
sequence = column.sequence_categorical_column_with_identity("c", 4)

def rising(shape, dtype=None, **options):
    return tf.reshape(tf.range(float(shape[0] * shape[1])), shape)

def given(*columns):
    return v1.input_layer(features, columns)

def counted(categorical):
    return given(column.indicator_column(categorical))

def embedded(categorical, combiner="mean", **options):
    return given(column.embedding_column(categorical, 2, combiner, rising, **options))

def linear(*columns):
    return v1.linear_model(features, columns, units=2)
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
