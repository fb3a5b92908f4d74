"""What the guide to ragged tensors shows: rows of words, padding, functions, records, pipelines, files."""

from __future__ import annotations

import pytest
from guides.page import Page


@pytest.fixture
def guide(page: Page) -> Page:
    """The page after its imports and first values."""
    page.run("""
import math
import tensorflow as tf

numbers = tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2], [6], []])
names = tf.ragged.constant([["red", "fox"], ["the", "lazy", "old", "dog"]])
""")
    return page


def test_functions_and_operators_take_rows_of_any_length(guide: Page) -> None:
    guide.shows("""
print(tf.add(numbers, 3))
print(tf.reduce_mean(numbers, axis=1))
print(tf.concat([numbers, [[5, 3]]], axis=0))
print(tf.tile(numbers, [1, 2]))
print(tf.strings.substr(names, 0, 2))
print(tf.map_fn(tf.math.square, numbers))
""", """
<tf.RaggedTensor [[6, 4, 7, 4], [], [8, 12, 5], [9], []]>
tf.Tensor([2.25              nan 5.33333333 6.                nan], shape=(5,), dtype=float64)
<tf.RaggedTensor [[3, 1, 4, 1], [], [5, 9, 2], [6], [], [5, 3]]>
<tf.RaggedTensor [[3, 1, 4, 1, 3, 1, 4, 1], [], [5, 9, 2, 5, 9, 2], [6, 6], []]>
<tf.RaggedTensor [[b're', b'fo'], [b'th', b'la', b'ol', b'do']]>
<tf.RaggedTensor [[9, 1, 16, 1], [], [25, 81, 4], [36], []]>
""")
    guide.shows("""
print(numbers[0], numbers[:, :2])
print(numbers[:, -2:])
print(numbers + 3)
print(numbers + tf.ragged.constant([[1, 2, 3, 4], [], [5, 6, 7], [8], []]))
print(tf.ragged.map_flat_values(lambda x: x * 2 + 1, numbers))
numbers.to_list()
""", """
tf.Tensor([3 1 4 1], shape=(4,), dtype=int32) <tf.RaggedTensor [[3, 1], [], [5, 9], [6], []]>
<tf.RaggedTensor [[4, 1], [], [9, 2], [6], []]>
<tf.RaggedTensor [[6, 4, 7, 4], [], [8, 12, 5], [9], []]>
<tf.RaggedTensor [[4, 3, 7, 5], [], [10, 15, 9], [14], []]>
<tf.RaggedTensor [[7, 3, 9, 3], [], [11, 19, 5], [13], []]>
[[3, 1, 4, 1], [], [5, 9, 2], [6], []]
""")


def test_an_average_of_words_and_pairs_of_words(guide: Page) -> None:
    guide.shows("""
searches = tf.ragged.constant([["who", "is", "dan"], ["pause"], ["will", "it", "rain", "today"]])
buckets, width = 1024, 4
table = tf.Variable(tf.random.truncated_normal([buckets, width], stddev=1.0 / math.sqrt(width)))
of_words = tf.nn.embedding_lookup(table, tf.strings.to_hash_bucket_fast(searches, buckets))
mark = tf.fill([searches.nrows(), 1], "#")
padded = tf.concat([mark, searches, mark], axis=1)
pairs = tf.strings.join([padded[:, :-1], padded[:, 1:]], separator="+")
of_pairs = tf.nn.embedding_lookup(table, tf.strings.to_hash_bucket_fast(pairs, buckets))
mean = tf.reduce_mean(tf.concat([of_words, of_pairs], axis=1), axis=1)
print(pairs[1])
print(tf.strings.to_hash_bucket_fast(searches, buckets))
mean.shape
""", """
tf.Tensor([b'#+pause' b'pause+#'], shape=(2,), dtype=string)
<tf.RaggedTensor [[671, 768, 727], [710], [777, 998, 635, 547]]>
TensorShape([3, 4])
""")


def test_encodings_shapes_and_conversions(guide: Page) -> None:
    guide.shows("""
deep = tf.RaggedTensor.from_row_splits(
    values=tf.RaggedTensor.from_row_splits(values=[10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
                                           row_splits=[0, 3, 3, 5, 9, 10]),
    row_splits=[0, 1, 1, 5])
print(deep, deep.shape, deep.ragged_rank)
nested = tf.RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 1, 2], [0, 2, 3]])
print(*nested.nested_row_splits)
even = tf.RaggedTensor.from_uniform_row_length(deep.values[:4], uniform_row_length=2)
print(even.shape, even.bounding_shape())
print(tf.RaggedTensor.from_tensor([[1, 3, -1, -1], [2, -1, -1, -1], [4, 5, 8, 9]], padding=-1))
print(deep.to_tensor(default_value=0, shape=[None, 2, 3])[2])
sparse = tf.SparseTensor(indices=[[0, 0], [2, 0], [2, 1]], values=["a", "b", "c"], dense_shape=[3, 3])
print(tf.RaggedTensor.from_sparse(sparse), numbers.to_sparse().values)
tf.shape(numbers)
""", """
<tf.RaggedTensor [[[10, 11, 12]], [], [[], [13, 14], [15, 16, 17, 18], [19]]]> (3, None, None) 2
tf.Tensor([0 1 2], shape=(3,), dtype=int64) tf.Tensor([0 2 3], shape=(3,), dtype=int64)
(2, 2, None) tf.Tensor([2 2 4], shape=(3,), dtype=int64)
<tf.RaggedTensor [[1, 3], [2], [4, 5, 8, 9]]>
tf.Tensor(
[[ 0  0  0]
 [13 14  0]], shape=(2, 3), dtype=int32)
<tf.RaggedTensor [[b'a'], [], [b'b', b'c']]> tf.Tensor([3 1 4 1 5 9 2 6], shape=(8,), dtype=int32)
<DynamicRaggedShape lengths=[5, (4, 0, 3, 1, 0)] num_row_partitions=1>
""")


def test_functions_signatures_and_files(guide: Page, tmp_path) -> None:
    guide.names["folder"] = str(tmp_path)
    guide.shows("""
@tf.function
def there_and_back(x, axis):
  return tf.concat([x, tf.reverse(x, [axis])], axis)

@tf.function(input_signature=[tf.RaggedTensorSpec(shape=[None, None], dtype=tf.int32)])
def extremes(rt):
  return tf.math.reduce_max(rt, axis=-1), tf.math.reduce_min(rt, axis=-1)

class Shift(tf.Module):
  def __init__(self, by):
    super().__init__()
    self.by = tf.Variable(by)

  @tf.function
  def grow(self, x):
    return x * self.by

shift = Shift(3)
shift.grow.get_concrete_function(numbers)
tf.saved_model.save(shift, folder)
print(there_and_back(tf.ragged.constant([[1, 2], [3], [4, 5, 6]]), axis=1))
print(*extremes(tf.ragged.constant([[1, 2], [3]])))
print(tf.saved_model.load(folder).grow(numbers))
""", """
<tf.RaggedTensor [[1, 2, 2, 1], [3, 3], [4, 5, 6, 6, 5, 4]]>
tf.Tensor([2 3], shape=(2,), dtype=int32) tf.Tensor([1 3], shape=(2,), dtype=int32)
<tf.RaggedTensor [[9, 3, 12, 3], [], [15, 27, 6], [18], []]>
""")


def test_records_and_pipelines(guide: Page) -> None:
    guide.shows("""
def record(colors, lengths):
  return tf.train.Example(features=tf.train.Features(feature={
      "colors": tf.train.Feature(bytes_list=tf.train.BytesList(value=colors)),
      "lengths": tf.train.Feature(int64_list=tf.train.Int64List(value=lengths))})).SerializeToString()

records = [record([b"red", b"blue"], [7]), record([b"orange"], []), record([], [1, 3])]
forms = {"colors": tf.io.RaggedFeature(dtype=tf.string), "lengths": tf.io.RaggedFeature(dtype=tf.int64)}
for name, value in tf.io.parse_example(records, forms).items():
  print(name, value)
batches = tf.data.Dataset.from_tensor_slices(names).batch(2)
for rows in batches:
  print(rows)
lengths = tf.data.Dataset.from_tensor_slices([2, 0, 3]).map(tf.range).ragged_batch(2)
for rows in lengths:
  print(rows)
[row.numpy().tolist() for row in lengths.unbatch()]
""", """
colors <tf.RaggedTensor [[b'red', b'blue'], [b'orange'], []]>
lengths <tf.RaggedTensor [[7], [], [1, 3]]>
<tf.RaggedTensor [[b'red', b'fox'], [b'the', b'lazy', b'old', b'dog']]>
<tf.RaggedTensor [[0, 1], []]>
<tf.RaggedTensor [[0, 1, 2]]>
[[0, 1], [], [0, 1, 2]]
""")


def test_a_model_of_rows_of_words(guide: Page) -> None:
    guide.shows("""
questions = tf.constant(["Who wrote this song", "It is raining", "Is it far", "We went home early today"])
asks = tf.constant([True, False, True, False])
buckets = 1000
hashed = tf.strings.to_hash_bucket_fast(tf.strings.split(questions, " "), buckets)
tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([
    tf.keras.Input(shape=[None], dtype=tf.int64, ragged=True),
    tf.keras.layers.Embedding(buckets, 16),
    tf.keras.layers.GlobalAveragePooling1D(),
    tf.keras.layers.Dense(32),
    tf.keras.layers.Activation(tf.nn.relu),
    tf.keras.layers.Dense(1)])
model.compile(loss="mse", optimizer="rmsprop")
history = model.fit(hashed, asks, epochs=100, verbose=0)
print(history.history["loss"][0] > 10 * history.history["loss"][-1])
print((model.predict(hashed, verbose=0)[:, 0] > 0.5).tolist())
""", """
True
[True, False, True, False]
""")
