"""`tf.compat.v1.feature_column`: `tf.feature_column`, and the layers that take the columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import twofold as tf
from twofold import feature_column as _columns_of
from twofold._front.api import listed, public
from twofold._front.namespace import publish
from twofold.feature_column import _columns

from .keys import GraphKeys
from .variables import AUTO_REUSE, get_variable, variable_scope

__all__ = [*[name for name in _columns_of.__all__ if name != "shared_embeddings"], "input_layer", "linear_model",
           "shared_embedding_columns"]

shared_embedding_columns = _columns_of.shared_embeddings


@public
def categorical_column_with_vocabulary_file(key: str, vocabulary_file: str, vocabulary_size: int | None = None,
                                            num_oov_buckets: int = 0, default_value: int | None = None,
                                            dtype: Any = tf.string) -> Any:
    """`tf.feature_column.categorical_column_with_vocabulary_file`, with the arguments in another order."""
    return _columns_of.categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size, dtype,
                                                               default_value, num_oov_buckets)


class _Variables:
    """Makes the variables of columns in scopes of `tf.compat.v1`.

    Args:
        collections: names of collections that they go into, beside those of all variables.
        trainable: whether training may change them.
    Attributes:
        made: those of each column.
    """

    def __init__(self, collections: Any, trainable: bool) -> None:
        self._collections = list(dict.fromkeys([*listed(collections or [], "weight_collections"),
                                                GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]))
        self._trainable, self.made = trainable, {}  # type: ignore[var-annotated]

    def __call__(self, column: Any, name: str, shape: Any, initializer: Any, trainable: bool = True) -> Any:
        made = get_variable(name, shape, tf.float32, initializer, trainable=self._trainable and trainable,
                            collections=self._collections)
        self.made.setdefault(column, []).append(made)
        return made


def _sorted(feature_columns: Any, kinds: tuple[type, ...], what: str) -> list[Any]:
    """Columns in the order of their names.

    Raises:
        ValueError: there is none, one is of another kind, or names repeat.
    """
    if isinstance(feature_columns, Mapping):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    columns = [feature_columns] if isinstance(feature_columns, _columns.FeatureColumn) else listed(
        feature_columns, "feature_columns")
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    for column in columns:
        if not isinstance(column, kinds):
            raise ValueError(f"Items of feature_columns must be a {what}. You can wrap a categorical column with an "
                             f"embedding_column or indicator_column. Given: {column}")
    names = [column.name for column in columns]
    if len(set(names)) != len(names):
        raise ValueError(f"Duplicate feature column name found for columns: {sorted(names)}")
    return sorted(columns, key=lambda column: column.name)


def _flat(column: Any, features: _columns.Features, variables: _Variables) -> Any:
    """What a dense column gives, as vectors."""
    return tf.reshape(column.dense(features, variables), [-1, column.variable_shape.num_elements()])


def _scoped(column: Any) -> Any:
    """The scope of a column's variables: a new one, or that of a table that columns share."""
    if isinstance(column, _columns.SharedEmbeddingColumn):
        return variable_scope(column.table.name, reuse=AUTO_REUSE)
    return variable_scope(None, column.name)


@public
def input_layer(features: Any, feature_columns: Any, weight_collections: Any = None, trainable: bool = True,
                cols_to_vars: Any = None, cols_to_output_tensors: Any = None) -> Any:
    """What dense columns give for features, side by side.

    Args:
        features: tensors by name.
        feature_columns: dense columns; they come in the order of their names.
        weight_collections: names of collections that variables go into.
        trainable: whether training may change them.
        cols_to_vars: a dict that takes the variables of each column.
        cols_to_output_tensors: a dict that takes the tensor of each column.
    Returns:
        float32 [batch, numbers].
    Raises:
        ValueError: a column is no dense one.

    >>> import twofold as tf
    >>> age = tf.feature_column.numeric_column("age")
    >>> young = tf.feature_column.bucketized_column(age, [18.0])
    >>> tf.compat.v1.feature_column.input_layer({"age": tf.constant([[7.0], [30.0]])}, [age, young]).numpy().tolist()
    [[7.0, 1.0, 0.0], [30.0, 0.0, 1.0]]
    """
    columns = _sorted(feature_columns, (_columns.DenseColumn,), "_DenseColumn")
    variables, given = _Variables(weight_collections, trainable), _columns.Features(features)
    outputs = []
    with variable_scope(None, "input_layer"):
        for column in columns:
            with _scoped(column):
                outputs.append(_flat(column, given, variables))
        together = tf.concat(outputs, 1)
    if cols_to_vars is not None:
        cols_to_vars.update({column: variables.made.get(column, []) for column in columns})
    if cols_to_output_tensors is not None:
        cols_to_output_tensors.update(zip(columns, outputs, strict=True))
    return together


@public
def linear_model(features: Any, feature_columns: Any, units: int = 1, sparse_combiner: str = "sum",
                 weight_collections: Any = None, trainable: bool = True, cols_to_vars: Any = None) -> Any:
    """A linear function of columns: for each a product with weights, or the weights of its ids; and a bias.

    Args:
        features: tensors by name.
        feature_columns: dense and categorical columns.
        units: how many numbers it gives for an example.
        sparse_combiner: how the weights of several ids are combined: "sum", "mean" or "sqrtn".
        weight_collections: names of collections that variables go into.
        trainable: whether training may change them.
        cols_to_vars: a dict that takes the variables of each column, and those of "bias".
    Returns:
        float32 [batch, units]. Weights begin as zeros.
    Raises:
        ValueError: a column is neither dense nor categorical.
    """
    columns = _sorted(feature_columns, (_columns.DenseColumn, _columns.CategoricalColumn),
                      "_DenseColumn or _CategoricalColumn")
    variables, given = _Variables(weight_collections, trainable), _columns.Features(features)
    with variable_scope(None, "linear_model"):
        sums = [_weighted(column, given, units, sparse_combiner, variables) for column in columns]
        bias = variables("bias", "bias_weights", [units], tf.keras.initializers.Zeros())
        result = tf.nn.bias_add(tf.add_n(sums), bias)
    if cols_to_vars is not None:
        cols_to_vars.update(variables.made)
    return result


def _weighted(column: Any, features: _columns.Features, units: int, combiner: str, variables: _Variables) -> Any:
    """The numbers that a column adds to a linear function."""
    with _scoped(column):
        if not isinstance(column, _columns.CategoricalColumn):
            numbers = _flat(column, features, variables)
            size = column.variable_shape.num_elements()
            return tf.matmul(numbers, variables(column, "weights", [size, units], tf.keras.initializers.Zeros()))
        ids, weights = column.ids(features)
        table = variables(column, "weights", [column.num_buckets, units], tf.keras.initializers.Zeros())
        ids, weights = (x if x is None else tf.sparse.reshape(x, tf.stack([x.dense_shape[0], -1]))
                        for x in (ids, weights))
        return tf.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_columns_of, name)


publish(__name__)
