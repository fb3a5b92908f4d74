"""`tf.feature_column`: what becomes of the features of examples before a model takes them.

TensorFlow keeps these for programs of its Estimators, and so does this: `make_parse_example_spec` says what
`tf.io.parse_example` reads for columns, and `tf.compat.v1.feature_column.input_layer` and `linear_model` take them. New
programs use layers of `tf.keras`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import listed, public
from twofold._front.namespace import publish

from . import _columns

__all__ = ["bucketized_column", "categorical_column_with_hash_bucket", "categorical_column_with_identity",
           "categorical_column_with_vocabulary_file", "categorical_column_with_vocabulary_list", "crossed_column",
           "embedding_column", "indicator_column", "make_parse_example_spec", "numeric_column",
           "sequence_categorical_column_with_hash_bucket", "sequence_categorical_column_with_identity",
           "sequence_categorical_column_with_vocabulary_file", "sequence_categorical_column_with_vocabulary_list",
           "sequence_numeric_column", "shared_embeddings", "weighted_categorical_column"]


# -- what arguments may be ----------------------------------------------------------------------------------------
def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")
    return key


def _shape(shape: Any, key: str) -> tuple[int, ...]:
    sizes = tuple(listed([shape] if isinstance(shape, int) else shape, "shape"))
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"shape dimensions must be integer. shape: {sizes}, key: {key}")
        if size < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {sizes}, key: {key}")
    return sizes


def _number(dtype: Any, key: str) -> Any:
    dtype = tf.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, key: {key}")
    return dtype


def _term(dtype: Any, key: str) -> Any:
    dtype = tf.as_dtype(dtype)
    if dtype != tf.string and not dtype.is_integer:
        raise ValueError(f"column_name: {key} dtype must be string or integer. dtype: {dtype}.")
    return dtype


def _default(value: Any, shape: tuple[int, ...], dtype: Any, key: str) -> Any:
    """A default value of a shape, as tuples in tuples."""
    if value is None:
        return None
    given = np.asarray(value)
    if given.dtype.kind not in ("iu" if dtype.is_integer else "iuf"):
        raise TypeError(f"default_value must be compatible with dtype. default_value: {value}, dtype: {dtype}, key: "
                        f"{key}")
    if given.ndim and given.shape != shape:
        raise ValueError("The shape of default_value must be equal to given shape. default_value: "
                         f"{value}, shape: {shape}, key: {key}")

    def tuples(items: Any) -> Any:
        return tuple([tuples(item) for item in items]) if isinstance(items, list) else items
    return tuples(np.broadcast_to(given, shape).tolist())


def _unknown(num_oov_buckets: Any, default_value: Any, absent: Any, key: str) -> int:
    """How many buckets there are for unknown terms."""
    if num_oov_buckets and default_value != absent:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets and num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")
    return num_oov_buckets or 0


def _categorical(column: Any) -> Any:
    if not isinstance(column, _columns.CategoricalColumn):
        raise ValueError(f"Unsupported input type. Input must be a CategoricalColumn. Given: {column}")
    return column


def _table(dimension: Any, initializer: Any, checkpoint: Any, name: Any) -> Any:
    """The initializer of a table of embeddings."""
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (checkpoint is None) != (name is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    if initializer is not None and not callable(initializer):
        raise ValueError("initializer must be callable if specified.")
    return initializer or tf.keras.initializers.TruncatedNormal(0.0, 1 / math.sqrt(dimension))


# -- numbers ------------------------------------------------------------------------------------------------------
@public
def numeric_column(key: str, shape: Any = (1,), default_value: Any = None, dtype: Any = tf.float32,
                   normalizer_fn: Callable[[Any], Any] | None = None) -> Any:
    """Numbers of a fixed shape.

    Args:
        key: the name of the feature.
        shape: of an example's numbers.
        default_value: what examples without the feature have: a number, or as many as the shape says.
        dtype: in which examples hold them; the column gives float32.
        normalizer_fn: a function of the tensor.
    Raises:
        ValueError, TypeError: an argument is of another kind.

    >>> import twofold as tf
    >>> age = tf.feature_column.numeric_column("age", default_value=0)
    >>> age.name, age.default_value
    ('age', (0,))
    """
    sizes = _shape(shape, key)
    dtype = _number(dtype, key)
    default = _default(default_value, sizes, dtype, key)
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    return _columns.NumericColumn(_key(key), sizes, default, dtype, normalizer_fn)


@public
def bucketized_column(source_column: Any, boundaries: Sequence[float]) -> Any:
    """Numbers as the ranges in which they lie, as one-hot vectors.

    Args:
        source_column: a `numeric_column` of one axis.
        boundaries: where ranges end and the next begin, rising.
    Raises:
        ValueError: an argument is of another kind.

    >>> import twofold as tf
    >>> age = tf.feature_column.numeric_column("age")
    >>> tf.feature_column.bucketized_column(age, [18, 65]).name
    'age_bucketized'
    """
    if not isinstance(source_column, _columns.NumericColumn):
        raise ValueError("source_column must be a column generated with numeric_column(). "
                         f"Given: {source_column}")
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries or not isinstance(boundaries, (list, tuple)) or any(
            a >= b for a, b in zip(boundaries, boundaries[1:], strict=False)):
        raise ValueError(f"boundaries must be a sorted list that is not empty; got {boundaries!r}.")
    return _columns.BucketizedColumn(source_column, tuple(boundaries))


# -- categories ---------------------------------------------------------------------------------------------------
@public
def categorical_column_with_hash_bucket(key: str, hash_bucket_size: int, dtype: Any = tf.string) -> Any:
    """Strings or integers as buckets of hashes.

    Args:
        key: the name of the feature.
        hash_bucket_size: how many buckets there are.
        dtype: string, or an integer one.
    Raises:
        ValueError: an argument is of another kind.

    >>> import twofold as tf
    >>> tf.feature_column.categorical_column_with_hash_bucket("word", 100).num_buckets
    100
    """
    if hash_bucket_size is None or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}")
    return _columns.HashedCategoricalColumn(_key(key), hash_bucket_size, _term(dtype, key))


@public
def categorical_column_with_identity(key: str, num_buckets: int, default_value: int | None = None) -> Any:
    """Integers that are ids.

    Args:
        key: the name of the feature.
        num_buckets: ids are below.
        default_value: the id in the place of those out of range.
    Raises:
        ValueError: an argument is of another kind.
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    return _columns.IdentityCategoricalColumn(_key(key), num_buckets, default_value)


@public
def categorical_column_with_vocabulary_list(key: str, vocabulary_list: Sequence[Any], dtype: Any = None,
                                            default_value: int = -1, num_oov_buckets: int = 0) -> Any:
    """Strings or integers as their places in a vocabulary.

    Args:
        key: the name of the feature.
        vocabulary_list: the terms.
        dtype: of the feature; by default that of the terms.
        default_value: the place of unknown terms; -1 leaves them out.
        num_oov_buckets: how many places behind the others unknown terms share, by their hashes.
    Raises:
        ValueError: an argument is of another kind.

    >>> import twofold as tf
    >>> colour = tf.feature_column.categorical_column_with_vocabulary_list("colour", ["red", "blue"], num_oov_buckets=2)
    >>> colour.num_buckets
    4
    """
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    of_terms = tf.as_dtype(np.asarray(vocabulary_list).dtype)
    count = _unknown(num_oov_buckets, default_value, -1, key)
    dtype = of_terms if dtype is None else tf.as_dtype(dtype)
    if dtype.is_integer != _term(of_terms, key).is_integer:
        raise ValueError(f"dtype {dtype} and vocabulary dtype {of_terms} do not match, column_name: {key}")
    return _columns.VocabularyListCategoricalColumn(_key(key), tuple(vocabulary_list), _term(dtype, key), default_value,
                                                    count)


@public
def categorical_column_with_vocabulary_file(key: str, vocabulary_file: str, vocabulary_size: int | None = None,
                                            dtype: Any = tf.string, default_value: int | None = None,
                                            num_oov_buckets: int = 0, file_format: str | None = None) -> Any:
    """Strings or integers as their places in a file with a term on each line.

    Args:
        key: the name of the feature.
        vocabulary_file: the name of the file.
        vocabulary_size: how many terms count; all by default.
        dtype: of the feature.
        default_value: the place of unknown terms; by default they are left out.
        num_oov_buckets: how many places behind the others unknown terms share, by their hashes.
        file_format: "tfrecord_gzip" for a file of records; by default that of files whose names end in "tfrecord.gz".
    Raises:
        ValueError: an argument is of another kind, or there is no such file.
    """
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if file_format is None and vocabulary_file.endswith("tfrecord.gz"):
        file_format = "tfrecord_gzip"
    if vocabulary_size is None:
        vocabulary_size = _count(vocabulary_file, file_format, key)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    count = _unknown(num_oov_buckets, default_value, None, key)
    return _columns.VocabularyFileCategoricalColumn(
        _key(key), vocabulary_file, vocabulary_size, count, _term(dtype, key),
        -1 if default_value is None else default_value, file_format)


def _count(file: str, file_format: str | None, key: str) -> int:
    """How many terms a file has."""
    if not os.path.exists(file):
        raise ValueError(f"vocabulary_file in {key} does not exist.")
    if file_format == "tfrecord_gzip":
        return sum(1 for _ in tf.data.TFRecordDataset(file, "GZIP"))
    with open(file, "rb") as lines:
        return sum(1 for _ in lines)


@public
def weighted_categorical_column(categorical_column: Any, weight_feature_key: str, dtype: Any = tf.float32) -> Any:
    """Ids with weights.

    Args:
        categorical_column: gives the ids.
        weight_feature_key: the feature with a weight for each.
        dtype: of the weights.
    Raises:
        ValueError: `dtype` is not one of numbers.
    """
    if dtype is None or not (tf.as_dtype(dtype).is_integer or tf.as_dtype(dtype).is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return _columns.WeightedCategoricalColumn(categorical_column, weight_feature_key, tf.as_dtype(dtype))


@public
def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None) -> Any:
    """All combinations of the values of several features, as buckets of hashes.

    Args:
        keys: names of features, and categorical columns (without those of hashes).
        hash_bucket_size: how many buckets there are.
        hash_key: what hashes begin with; see `tf.sparse.cross_hashed`.
    Raises:
        ValueError: an argument is of another kind.

    >>> import twofold as tf
    >>> tf.feature_column.crossed_column(["town", "street"], 1000).name
    'street_X_town'
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, _columns.CategoricalColumn)):
            raise ValueError("Unsupported key type. All keys must be either string, or categorical column except "
                             f"HashedCategoricalColumn. Given: {key}")
        if isinstance(key, _columns.HashedCategoricalColumn):
            raise ValueError("categorical_column_with_hash_bucket is not supported for crossing: use the feature name "
                             f"as a string. Given: {key}")
    return _columns.CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


# -- dense tensors of categories ----------------------------------------------------------------------------------
@public
def indicator_column(categorical_column: Any) -> Any:
    """How often each id is there; of weighted ids the sums of their weights.

    Args:
        categorical_column: gives the ids.
    Raises:
        ValueError: it is no categorical column.
    """
    return _columns.IndicatorColumn(_categorical(categorical_column))


@public
def embedding_column(categorical_column: Any, dimension: int, combiner: str = "mean", initializer: Any = None,
                     ckpt_to_load_from: str | None = None, tensor_name_in_ckpt: str | None = None,
                     max_norm: float | None = None, trainable: bool = True,
                     use_safe_embedding_lookup: bool = True) -> Any:
    """Rows of a trained table at ids, combined into one for each example.

    Args:
        categorical_column: gives the ids.
        dimension: the length of rows.
        combiner: "mean", "sqrtn" or "sum"; see `tf.nn.safe_embedding_lookup_sparse`.
        initializer: of the table; normal numbers with the deviation `1 / sqrt(dimension)` by default.
        ckpt_to_load_from, tensor_name_in_ckpt: a checkpoint, and the name of the table in it, that it begins with.
        max_norm: the length to which longer rows are shortened.
        trainable: whether training changes the table.
        use_safe_embedding_lookup: whether ids out of range are left out, and examples without ids are 0.
    Raises:
        ValueError: an argument is of another kind.
    """
    initializer = _table(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt)
    return _columns.EmbeddingColumn(categorical_column, dimension, combiner, initializer, ckpt_to_load_from,
                                    tensor_name_in_ckpt, max_norm, trainable, use_safe_embedding_lookup)


@public
def shared_embeddings(categorical_columns: Sequence[Any], dimension: int, combiner: str = "mean",
                      initializer: Any = None, shared_embedding_collection_name: str | None = None,
                      ckpt_to_load_from: str | None = None, tensor_name_in_ckpt: str | None = None,
                      max_norm: float | None = None, trainable: bool = True,
                      use_safe_embedding_lookup: bool = True) -> list[Any]:
    """Embeddings of several categorical columns, of one table; in graphs of `tf.compat.v1` alone.

    Args:
        categorical_columns: columns of one kind, with as many ids.
        shared_embedding_collection_name: the name of the table; made of those of the columns by default.
        dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable,
        use_safe_embedding_lookup: as of `embedding_column`.
    Returns:
        A column for each categorical one.
    Raises:
        RuntimeError: there is no graph. ValueError: the columns differ, or an argument is of another kind.
    """
    if tf.executing_eagerly():
        raise RuntimeError("shared_embedding_columns are not supported when eager execution is enabled.")
    initializer = _table(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt)
    categorical_columns = listed(categorical_columns, "categorical_columns")
    ordered = sorted(categorical_columns, key=lambda column: column.name)
    kinds = [_innermost(column) for column in ordered]
    for column, kind in zip(ordered, kinds, strict=True):
        if not isinstance(kind, type(kinds[0])) or column.num_buckets != ordered[0].num_buckets:
            raise ValueError("To use shared_embedding_column, all categorical_columns must have the same type and "
                             f"number of buckets. Given column: {ordered[0]} does not match given column: {column}")
    name = shared_embedding_collection_name or "_".join(column.name for column in ordered) + "_shared_embedding"
    table = _columns.SharedTable(name, dimension, _columns.restored(initializer, ckpt_to_load_from,
                                                                    tensor_name_in_ckpt),
                                 ordered[0].num_buckets, trainable)
    return [_columns.SharedEmbeddingColumn(column, table, combiner, max_norm, use_safe_embedding_lookup)
            for column in categorical_columns]


def _innermost(column: Any) -> Any:
    """The column of ids within those of weights and sequences."""
    while isinstance(column, (_columns.WeightedCategoricalColumn, _columns.SequenceCategoricalColumn)):
        column = column.categorical_column
    return _categorical(column)


# -- sequences ----------------------------------------------------------------------------------------------------
@public
def sequence_categorical_column_with_hash_bucket(key: str, hash_bucket_size: int, dtype: Any = tf.string) -> Any:
    """`categorical_column_with_hash_bucket` for each step of a sequence."""
    return _columns.SequenceCategoricalColumn(categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


@public
def sequence_categorical_column_with_identity(key: str, num_buckets: int, default_value: int | None = None) -> Any:
    """`categorical_column_with_identity` for each step of a sequence."""
    return _columns.SequenceCategoricalColumn(categorical_column_with_identity(key, num_buckets, default_value))


@public
def sequence_categorical_column_with_vocabulary_list(key: str, vocabulary_list: Sequence[Any], dtype: Any = None,
                                                     default_value: int = -1, num_oov_buckets: int = 0) -> Any:
    """`categorical_column_with_vocabulary_list` for each step of a sequence."""
    return _columns.SequenceCategoricalColumn(categorical_column_with_vocabulary_list(
        key, vocabulary_list, dtype, default_value, num_oov_buckets))


@public
def sequence_categorical_column_with_vocabulary_file(key: str, vocabulary_file: str,
                                                     vocabulary_size: int | None = None, num_oov_buckets: int = 0,
                                                     default_value: int | None = None, dtype: Any = tf.string) -> Any:
    """`categorical_column_with_vocabulary_file` for each step of a sequence."""
    return _columns.SequenceCategoricalColumn(categorical_column_with_vocabulary_file(
        key, vocabulary_file, vocabulary_size, dtype, default_value, num_oov_buckets))


@public
def sequence_numeric_column(key: str, shape: Any = (1,), default_value: float = 0.0, dtype: Any = tf.float32,
                            normalizer_fn: Callable[[Any], Any] | None = None) -> Any:
    """Numbers of each step of a sequence.

    Args:
        key: the name of the feature.
        shape: of a step's numbers.
        default_value: in the place of steps that are not there.
        dtype: in which examples hold them.
        normalizer_fn: a function of the tensor.
    Raises:
        ValueError, TypeError: an argument is of another kind.
    """
    sizes = _shape(shape, key)
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    return _columns.SequenceNumericColumn(key, sizes, default_value, _number(dtype, key), normalizer_fn)


# -- what columns read --------------------------------------------------------------------------------------------
@public
def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """The features that columns read, as `tf.io.parse_example` takes them.

    Args:
        feature_columns: columns.
    Raises:
        ValueError: one is no column, or two read a feature differently.

    >>> import twofold as tf
    >>> age = tf.feature_column.numeric_column("age")
    >>> word = tf.feature_column.categorical_column_with_hash_bucket("word", 10)
    >>> sorted(tf.feature_column.make_parse_example_spec([age, tf.feature_column.indicator_column(word)]))
    ['age', 'word']
    """
    spec: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, _columns.FeatureColumn):
            raise ValueError(f"All feature_columns must be FeatureColumn instances. Given: {column}")
        for key, value in column.parse_example_spec.items():
            if spec.setdefault(key, value) != value:
                raise ValueError(f"feature_columns contain different parse_spec for key {key}. Given {value} and "
                                 f"{spec[key]}")
    return spec


publish(__name__)
