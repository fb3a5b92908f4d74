"""Feature columns: what becomes of the features of examples before a model takes them.

A column says which features it reads (`parse_example_spec`), and gives tensors of them: a dense column a dense one, a
categorical column sparse ids and weights of them. A column whose numbers are trained asks for its variables where it is
used: `compat/v1/feature_column.py` gives it these.

Columns are tuples with TensorFlow's fields, so that equal ones are equal and can be keys of dicts.
"""

from __future__ import annotations

import abc
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import twofold as tf

__all__ = ["BucketizedColumn", "CategoricalColumn", "CrossedColumn", "DenseColumn", "EmbeddingColumn", "FeatureColumn",
           "Features", "HashedCategoricalColumn", "IdentityCategoricalColumn", "IndicatorColumn", "NumericColumn",
           "SequenceCategoricalColumn", "SequenceNumericColumn", "SharedEmbeddingColumn",
           "VocabularyFileCategoricalColumn", "VocabularyListCategoricalColumn", "WeightedCategoricalColumn"]

Variables = Callable[..., Any]  # (column, name, shape, initializer, trainable): a variable


class Features:
    """The features of a batch, and what columns have made of them.

    Args:
        features: tensors by name: dense, sparse or ragged ones.
    """

    def __init__(self, features: Mapping[str, Any]) -> None:
        self._features, self._made = dict(features), {}  # type: ignore[var-annotated]

    def raw(self, key: str) -> Any:
        """A feature as a tensor, or a sparse one, of rank 2 at least.

        Raises:
            ValueError: there is none of this name, or it is a scalar.
        """
        if key not in self._features:
            raise ValueError(f"Feature {key} is not in features dictionary.")
        value = self._features[key]
        if isinstance(value, tf.RaggedTensor):
            value = value.to_sparse()
        sparse = isinstance(value, tf.SparseTensor)
        tensor = value if sparse else tf.convert_to_tensor(value)
        if tensor.shape.rank == 0:
            raise ValueError(f"Feature (key: {key}) cannot have rank 0. Given: {tensor}")
        if tensor.shape.rank == 1:
            tensor = tf.sparse.expand_dims(tensor, -1) if sparse else tf.expand_dims(tensor, -1)
        return tensor

    def of(self, column: FeatureColumn) -> Any:
        """What a column makes of the features; made once."""
        if column not in self._made:
            self._made[column] = column.transformed(self)
        return self._made[column]


def sparse_input(tensor: Any, ignored: Any = None) -> Any:
    """A feature as a sparse tensor, without what stands for nothing: "", -1 or 0.0, or what is `ignored`."""
    if isinstance(tensor, tf.SparseTensor):
        return tensor
    if ignored is None:
        ignored = "" if tensor.dtype == tf.string else -1 if tensor.dtype.is_integer else 0.0
    places = tf.where(tf.not_equal(tensor, tf.constant(ignored, tensor.dtype)))
    return tf.SparseTensor(places, tf.gather_nd(tensor, places), tf.shape(tensor, tf.int64))


# -- kinds --------------------------------------------------------------------------------------------------------
class FeatureColumn:
    """A feature column."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name, which tells columns apart."""

    @property
    @abc.abstractmethod
    def parse_example_spec(self) -> dict[str, Any]:
        """The features that it reads, as `tf.io.parse_example` takes them."""

    @abc.abstractmethod
    def transformed(self, features: Features) -> Any:
        """What it makes of the features."""


class DenseColumn(FeatureColumn):
    """A column that gives a dense tensor."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def variable_shape(self) -> Any:
        """The shape of what it gives for an example."""

    @abc.abstractmethod
    def dense(self, features: Features, variables: Variables) -> Any:
        """The tensor for the features."""


class CategoricalColumn(FeatureColumn):
    """A column that gives ids."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def num_buckets(self) -> int:
        """How many ids there are."""

    def ids(self, features: Features) -> tuple[Any, Any]:
        """The ids, sparse, and the weight of each; None for no weights."""
        return features.of(self), None


class _OfKey(CategoricalColumn):
    """A categorical column of one feature."""

    __slots__ = ()

    key: str
    dtype: Any

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: tf.io.VarLenFeature(self.dtype)}

    def _given(self, features: Features) -> Any:
        """The feature as a sparse tensor of the column's dtype, integers as int64.

        Raises:
            ValueError: it has another one.
        """
        given = sparse_input(features.raw(self.key))
        if given.dtype != tf.string and not given.dtype.is_integer:
            raise ValueError(f"column_name: {self.key} input_tensor dtype must be string or integer. dtype: "
                             f"{given.dtype}.")
        if self.dtype.is_integer != given.dtype.is_integer:
            raise ValueError(f"Column dtype and SparseTensors dtype must be compatible. key: {self.key}, column dtype: "
                             f"{self.dtype}, tensor dtype: {given.dtype}")
        return tf.cast(given, tf.int64) if given.dtype.is_integer else given


# -- numbers ------------------------------------------------------------------------------------------------------
class NumericColumn(DenseColumn, namedtuple("NumericColumn", "key shape default_value dtype normalizer_fn")):
    """Numbers of a fixed shape; see `tf.feature_column.numeric_column`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: tf.io.FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def variable_shape(self) -> Any:
        return tf.TensorShape(self.shape)

    def transformed(self, features: Features) -> Any:
        given = features.raw(self.key)
        if isinstance(given, tf.SparseTensor):
            raise ValueError("The corresponding Tensor of numerical column must be a Tensor. SparseTensor is not "
                             f"supported. key: {self.key}")
        return tf.cast(given if self.normalizer_fn is None else self.normalizer_fn(given), tf.float32)

    def dense(self, features: Features, variables: Variables) -> Any:
        return features.of(self)


class BucketizedColumn(DenseColumn, CategoricalColumn, namedtuple("BucketizedColumn", "source_column boundaries")):
    """Numbers as the ranges in which they lie; see `tf.feature_column.bucketized_column`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    @property
    def variable_shape(self) -> Any:
        return tf.TensorShape([*self.source_column.shape, len(self.boundaries) + 1])

    @property
    def num_buckets(self) -> int:
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def transformed(self, features: Features) -> Any:
        numbers = features.of(self.source_column)
        bounds = tf.constant(self.boundaries, tf.float32)
        return tf.reduce_sum(tf.cast(numbers[..., tf.newaxis] >= bounds, tf.int32), -1)

    def dense(self, features: Features, variables: Variables) -> Any:
        return tf.one_hot(features.of(self), len(self.boundaries) + 1)

    def ids(self, features: Features) -> tuple[Any, Any]:
        buckets = tf.cast(features.of(self), tf.int64)
        buckets += tf.range(self.source_column.shape[0], dtype=tf.int64) * (len(self.boundaries) + 1)
        return sparse_input(buckets), None


# -- categories ---------------------------------------------------------------------------------------------------
class HashedCategoricalColumn(_OfKey, namedtuple("HashedCategoricalColumn", "key hash_bucket_size dtype")):
    """Buckets of hashes; see `tf.feature_column.categorical_column_with_hash_bucket`."""

    __slots__ = ()

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def transformed(self, features: Features) -> Any:
        given = self._given(features)
        texts = given.values if given.dtype == tf.string else tf.strings.as_string(given.values)
        return given.with_values(tf.strings.to_hash_bucket_fast(texts, self.hash_bucket_size))


class _Vocabulary(_OfKey):
    """A categorical column whose ids are places in a vocabulary."""

    __slots__ = ()

    num_oov_buckets: int
    default_value: int

    @abc.abstractmethod
    def _terms(self, dtype: Any) -> Any:
        """The initializer of a table from terms to places."""

    def transformed(self, features: Features) -> Any:
        given = self._given(features)
        with tf.init_scope():
            terms = self._terms(given.dtype)
            table = tf.lookup.StaticVocabularyTable(terms, self.num_oov_buckets) if self.num_oov_buckets else (
                tf.lookup.StaticHashTable(terms, self.default_value))
        return given.with_values(table.lookup(given.values))


class VocabularyFileCategoricalColumn(_Vocabulary, namedtuple(
        "VocabularyFileCategoricalColumn",
        "key vocabulary_file vocabulary_size num_oov_buckets dtype default_value file_format")):
    """Places in a vocabulary; see `tf.feature_column.categorical_column_with_vocabulary_file`."""

    __slots__ = ()

    @property
    def num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets

    def _terms(self, dtype: Any) -> Any:
        if self.file_format != "tfrecord_gzip":
            return tf.lookup.TextFileInitializer(
                self.vocabulary_file, dtype, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER, self.vocabulary_size)
        records = tf.data.TFRecordDataset(self.vocabulary_file, "GZIP").take(self.vocabulary_size)
        keys = [record.numpy() if dtype == tf.string else int(record.numpy()) for record in records]
        return tf.lookup.KeyValueTensorInitializer(tf.constant(keys, dtype), tf.range(len(keys), dtype=tf.int64))


class VocabularyListCategoricalColumn(_Vocabulary, namedtuple(
        "VocabularyListCategoricalColumn", "key vocabulary_list dtype default_value num_oov_buckets")):
    """Places in a vocabulary; see `tf.feature_column.categorical_column_with_vocabulary_list`."""

    __slots__ = ()

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _terms(self, dtype: Any) -> Any:
        return tf.lookup.KeyValueTensorInitializer(
            tf.constant(list(self.vocabulary_list), dtype), tf.range(len(self.vocabulary_list), dtype=tf.int64))


class IdentityCategoricalColumn(_OfKey, namedtuple("IdentityCategoricalColumn", "key number_buckets default_value")):
    """Integers that are ids; see `tf.feature_column.categorical_column_with_identity`."""

    __slots__ = ()

    @property
    def dtype(self) -> Any:
        return tf.int64

    @property
    def num_buckets(self) -> int:
        return self.number_buckets

    def transformed(self, features: Features) -> Any:
        given = self._given(features)
        if self.default_value is None:
            return given
        inside = (given.values >= 0) & (given.values < self.number_buckets)
        return given.with_values(tf.where(inside, given.values, tf.constant(self.default_value, tf.int64)))


class CrossedColumn(CategoricalColumn, namedtuple("CrossedColumn", "keys hash_bucket_size hash_key")):
    """Hashes of combinations; see `tf.feature_column.crossed_column`."""

    __slots__ = ()

    def _leaves(self) -> list[Any]:
        """The names and columns that are crossed, also in crosses of crosses."""
        return [leaf for key in self.keys for leaf in (key._leaves() if isinstance(key, CrossedColumn) else [key])]

    @property
    def name(self) -> str:
        return "_X_".join(sorted(leaf if isinstance(leaf, str) else leaf.name for leaf in self._leaves()))

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for key in self.keys:
            spec.update({key: tf.io.VarLenFeature(tf.string)} if isinstance(key, str) else key.parse_example_spec)
        return spec

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def transformed(self, features: Features) -> Any:
        inputs = []
        for leaf in self._leaves():
            ids, weights = (features.raw(leaf), None) if isinstance(leaf, str) else leaf.ids(features)
            if weights is not None:
                raise ValueError("crossed_column does not support weight_tensor, but the given column populates "
                                 f"weight_tensor. Given column: {leaf.name}")
            inputs.append(ids)
        return tf.sparse.cross_hashed(inputs, self.hash_bucket_size, self.hash_key)


class WeightedCategoricalColumn(CategoricalColumn, namedtuple(
        "WeightedCategoricalColumn", "categorical_column weight_feature_key dtype")):
    """Ids with weights; see `tf.feature_column.weighted_categorical_column`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec = dict(self.categorical_column.parse_example_spec)
        if self.weight_feature_key in spec:
            raise ValueError(f"Parse config {spec[self.weight_feature_key]} already exists for "
                             f"{self.weight_feature_key}.")
        return {**spec, self.weight_feature_key: tf.io.VarLenFeature(self.dtype)}

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transformed(self, features: Features) -> Any:
        weights = features.raw(self.weight_feature_key)
        if weights.dtype != self.dtype:
            raise ValueError(f"Bad dtype, expected {self.dtype}, but got {weights.dtype}.")
        weights = sparse_input(weights, 0)
        return features.of(self.categorical_column), (
            weights if weights.dtype.is_floating else tf.cast(weights, tf.float32))

    def ids(self, features: Features) -> tuple[Any, Any]:
        return features.of(self)


class SequenceCategoricalColumn(CategoricalColumn, namedtuple("SequenceCategoricalColumn", "categorical_column")):
    """Ids of the steps of sequences."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self.categorical_column.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transformed(self, features: Features) -> Any:
        return features.of(self.categorical_column)


class SequenceNumericColumn(FeatureColumn, namedtuple(
        "SequenceNumericColumn", "key shape default_value dtype normalizer_fn")):
    """Numbers of the steps of sequences; see `tf.feature_column.sequence_numeric_column`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: tf.io.VarLenFeature(self.dtype)}

    def transformed(self, features: Features) -> Any:
        given = features.raw(self.key)
        return given if self.normalizer_fn is None else self.normalizer_fn(given)


# -- dense tensors of categories ----------------------------------------------------------------------------------
class _OfCategories(DenseColumn):
    """A dense column of a categorical one."""

    __slots__ = ()

    categorical_column: Any

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    def _ids(self, features: Features) -> tuple[Any, Any]:
        """The ids and weights of the categorical column.

        Raises:
            ValueError: it is one of sequences.
        """
        if isinstance(self.categorical_column, SequenceCategoricalColumn):
            raise ValueError(f"In {self.name}: categorical_column must not be of type SequenceCategoricalColumn: an "
                             "input layer takes features that are no sequences. Suggested fix: use a non-sequence "
                             "categorical_column_with_*, or layers.StringLookup and layers.Embedding for sequences.")
        return self.categorical_column.ids(features)

    def transformed(self, features: Features) -> Any:
        return features.of(self.categorical_column)

    def _combined(self, table: Any, features: Features, combiner: str, max_norm: Any, safe: bool) -> Any:
        ids, weights = self._ids(features)
        if safe or ids.shape.rank is None or ids.shape.rank > 2:
            return tf.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner, max_norm=max_norm)
        return tf.nn.embedding_lookup_sparse(table, ids, weights, combiner, max_norm)


class IndicatorColumn(_OfCategories, namedtuple("IndicatorColumn", "categorical_column")):
    """How often each id is there; see `tf.feature_column.indicator_column`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def variable_shape(self) -> Any:
        return tf.TensorShape([1, self.categorical_column.num_buckets])

    def dense(self, features: Features, variables: Variables) -> Any:
        size = self.categorical_column.num_buckets
        ids, weights = self._ids(features)
        if weights is None:
            return tf.reduce_sum(tf.one_hot(tf.sparse.to_dense(ids, -1), size), -2)
        numbers = tf.cast(ids.values, tf.int64)
        places = tf.where((numbers >= 0) & (numbers < size), ids.indices[:, 0] * size + numbers, tf.constant(
            -1, tf.int64))
        sums = tf.math.unsorted_segment_sum(weights.values, places, ids.dense_shape[0] * size)
        return tf.reshape(sums, [-1, size])


class EmbeddingColumn(_OfCategories, namedtuple(
        "EmbeddingColumn", "categorical_column dimension combiner initializer ckpt_to_load_from tensor_name_in_ckpt "
        "max_norm trainable use_safe_embedding_lookup")):
    """Combined rows of a table; see `tf.feature_column.embedding_column`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"

    @property
    def variable_shape(self) -> Any:
        return tf.TensorShape([self.dimension])

    def dense(self, features: Features, variables: Variables) -> Any:
        shape = (self.categorical_column.num_buckets, self.dimension)
        initializer = restored(self.initializer, self.ckpt_to_load_from, self.tensor_name_in_ckpt)
        table = variables(self, "embedding_weights", shape, initializer, self.trainable)
        return self._combined(table, features, self.combiner, self.max_norm, self.use_safe_embedding_lookup)


class SharedTable(namedtuple("SharedTable", "name dimension initializer num_buckets trainable")):
    """The table that shared embeddings have in common."""

    __slots__ = ()


class SharedEmbeddingColumn(_OfCategories, namedtuple(
        "SharedEmbeddingColumn", "categorical_column table combiner max_norm use_safe_embedding_lookup")):
    """Combined rows of a table that several columns share; see `tf.feature_column.shared_embeddings`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def variable_shape(self) -> Any:
        return tf.TensorShape([self.table.dimension])

    def dense(self, features: Features, variables: Variables) -> Any:
        table, shape = self.table, (self.table.num_buckets, self.table.dimension)
        made = variables(self, "embedding_weights", shape, table.initializer, table.trainable)
        return self._combined(made, features, self.combiner, self.max_norm, self.use_safe_embedding_lookup)


def restored(initializer: Any, checkpoint: Any, name: Any) -> Any:
    """An initializer that gives what a checkpoint has under a name, where one is given."""
    if checkpoint is None:
        return initializer

    def from_checkpoint(shape: Any, dtype: Any = None, **options: Any) -> Any:
        value = tf.train.load_variable(checkpoint, name)
        return tf.ensure_shape(tf.cast(value, dtype or value.dtype), shape)
    return from_checkpoint
