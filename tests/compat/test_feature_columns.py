"""Feature columns with variables, in graphs and at once; what single columns give is recorded with TensorFlow's values
(`tests/composites/recorded/columns.json`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twofold as tf

column, v1 = tf.feature_column, tf.compat.v1.feature_column
PRICE = column.numeric_column("price")
TOWN = column.categorical_column_with_vocabulary_list("town", ["Rome", "Oslo"], num_oov_buckets=1)
TOWNS = [["Oslo", ""], ["Rome", "Oslo"], ["Lima", ""]]
PRICES = [[1.0], [2.0], [4.0]]


def rising(shape: Any, dtype: Any = None, **options: Any) -> Any:
    return tf.reshape(tf.range(float(np.prod(shape))), shape)


def test_a_linear_model_learns_in_a_session() -> None:
    """One step of gradient descent from zeros, by hand."""
    with tf.compat.v1.Graph().as_default():
        features = {"price": tf.constant(PRICES), "town": tf.constant(TOWNS)}
        variables: dict[Any, Any] = {}
        predicted = v1.linear_model(features, [PRICE, TOWN], cols_to_vars=variables)
        loss = tf.reduce_sum((predicted - [[1.0], [2.0], [3.0]]) ** 2)
        step = tf.compat.v1.train.GradientDescentOptimizer(0.5).minimize(loss)
        assert [v.name for v in tf.compat.v1.trainable_variables()] == [
            "linear_model/price/weights:0", "linear_model/town/weights:0", "linear_model/bias_weights:0"]
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            session.run(step)
            of_price, of_town, bias = session.run([variables[key][0] for key in (PRICE, TOWN, "bias")])
    assert of_price.tolist() == [[1.0 * 1 + 2 * 2 + 4 * 3]]
    assert of_town.tolist() == [[2.0], [1.0 + 2.0], [3.0]]  # Rome, Oslo, others
    assert bias.tolist() == [6.0]


def test_examples_are_parsed_as_columns_say() -> None:
    town = column.indicator_column(TOWN)

    def example(price: float, *towns: str) -> bytes:
        lists = {"price": tf.train.Feature(float_list=tf.train.FloatList(value=[price])),
                 "town": tf.train.Feature(bytes_list=tf.train.BytesList(value=[t.encode() for t in towns]))}
        return tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString()

    records = [example(1.0, "Oslo"), example(2.0, "Rome", "Oslo"), example(4.0, "Lima", "Lima")]

    @tf.function
    def layer(serialized: Any) -> Any:
        parsed = tf.io.parse_example(serialized, column.make_parse_example_spec([PRICE, town]))
        return v1.input_layer(parsed, [town, PRICE])
    assert layer(tf.constant(records)).numpy().tolist() == [[1, 0, 1, 0], [2, 1, 1, 0], [4, 0, 0, 2]]


def test_embeddings_of_a_checkpoint_and_of_shared_tables(tmp_path: Path) -> None:
    table = np.arange(6, dtype=np.float32).reshape(3, 2) * 10
    path = tf.train.Checkpoint(table=tf.Variable(table)).write(str(tmp_path / "tables"))
    name, = [n for n, _ in tf.train.list_variables(path) if n.startswith("table")]
    restored = column.embedding_column(TOWN, 2, "sum", ckpt_to_load_from=path, tensor_name_in_ckpt=name)
    assert v1.input_layer({"town": tf.constant(TOWNS)}, restored).numpy().tolist() == [[20, 30], [20, 40], [40, 50]]
    with tf.compat.v1.Graph().as_default():
        features = {"town": tf.constant(TOWNS), "home": tf.constant([["Rome"], ["Rome"], ["Oslo"]])}
        home = column.categorical_column_with_vocabulary_list("home", ["Rome", "Oslo"], num_oov_buckets=1)
        shared = column.shared_embeddings([TOWN, home], 2, "sum", rising)
        assert [c.name for c in shared] == ["town_shared_embedding", "home_shared_embedding"]
        layer = v1.input_layer(features, shared)
        made, = tf.compat.v1.global_variables()
        assert made.name == "input_layer/home_town_shared_embedding/embedding_weights:0"
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            assert session.run(layer).tolist() == [[0, 1, 2, 3], [0, 1, 2, 4], [2, 3, 4, 5]]
        with pytest.raises(ValueError, match="same type"):
            column.shared_embeddings([TOWN, column.categorical_column_with_identity("home", 3)], 2)


def test_ragged_features_and_vocabularies_in_records(tmp_path: Path) -> None:
    file = str(tmp_path / "words.tfrecord.gz")
    with tf.io.TFRecordWriter(file, "GZIP") as writer:
        for word in ("Rome", "Oslo", "Lima"):
            writer.write(word.encode())
    town = column.categorical_column_with_vocabulary_file("town", file)
    assert town.num_buckets == 3
    rows = tf.ragged.constant([["Lima", "Lima"], [], ["Rome"]])
    assert v1.input_layer({"town": rows}, column.indicator_column(town)).numpy().tolist() == [
        [0, 0, 2], [0, 0, 0], [1, 0, 0]]
