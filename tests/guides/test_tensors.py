"""What the guide to tensors shows: making them, parts, shapes, dtypes, broadcasting, text, ragged and sparse ones."""

from __future__ import annotations

import pytest
from guides.page import Page


@pytest.fixture
def guide(page: Page) -> Page:
    page.run("""
import tensorflow as tf
import numpy as np
""")
    return page


def test_values_and_arithmetic(guide: Page) -> None:
    guide.shows("""
print(tf.constant(7))
print(tf.constant([[1, 2], [3, 4], [5, 6]], dtype=tf.float16))
square = tf.constant([[3, 1], [0, 2]])
print(np.array(square).tolist(), square.numpy().tolist())
print(tf.add(square, 1) * square, (square @ square).numpy().tolist(), sep="\\n")
scores = tf.constant([[2.0, 5.0], [8.0, 1.0]])
print(tf.reduce_max(scores), tf.math.argmax(scores), tf.nn.softmax(scores).shape)
print(tf.reduce_max([4, 6]), tf.reduce_max(np.array([4, 6])))
tf.convert_to_tensor([1, 2])
""", """
tf.Tensor(7, shape=(), dtype=int32)
tf.Tensor(
[[1. 2.]
 [3. 4.]
 [5. 6.]], shape=(3, 2), dtype=float16)
[[3, 1], [0, 2]] [[3, 1], [0, 2]]
tf.Tensor(
[[12  2]
 [ 0  6]], shape=(2, 2), dtype=int32)
[[9, 5], [0, 4]]
tf.Tensor(8.0, shape=(), dtype=float32) tf.Tensor([1 0], shape=(2,), dtype=int64) (2, 2)
tf.Tensor(6, shape=(), dtype=int32) tf.Tensor(6, shape=(), dtype=int64)
<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
""")


def test_shapes_and_parts(guide: Page) -> None:
    guide.shows("""
four = tf.zeros([2, 3, 4, 5])
print(four.dtype, four.ndim, four.shape, four.shape[0], four.shape[-1], tf.size(four).numpy(), tf.rank(four).numpy())
squares = tf.constant([0, 1, 4, 9, 16, 25])
print(squares[0].numpy(), squares[-1].numpy(), squares[:3].numpy(), squares[1:6:2].numpy(), squares[::-1].numpy())
cube = tf.reshape(tf.range(24), [2, 3, 4])
print(cube[1, :, 2], cube[:, 0, 1:].numpy().tolist())
print(tf.reshape(cube, [-1, 6]).shape, tf.reshape(cube, [-1]).shape.as_list())
try:
  tf.reshape(cube, [5, -1])
except Exception as e:
  print(isinstance(e, tf.errors.InvalidArgumentError))
tf.shape(cube)
""", """
<dtype: 'float32'> 4 (2, 3, 4, 5) 2 5 120 4
0 25 [0 1 4] [ 1  9 25] [25 16  9  4  1  0]
tf.Tensor([14 18 22], shape=(3,), dtype=int32) [[1, 2, 3], [13, 14, 15]]
(4, 6) [24]
True
<tf.Tensor: shape=(3,), dtype=int32, numpy=array([2, 3, 4], dtype=int32)>
""")


def test_dtypes_and_broadcasting(guide: Page) -> None:
    guide.shows("""
half = tf.cast(tf.constant([1.5, 2.5, 3.5], dtype=tf.float64), dtype=tf.float16)
print(tf.cast(half, dtype=tf.uint8))
row = tf.constant([1, 2, 3])
column = tf.reshape(row, [3, 1])
print(tf.multiply(row, 2) + row * 2, (column * tf.range(1, 3)).numpy().tolist())
print(tf.broadcast_to(row, [2, 3]))
""", """
tf.Tensor([1 2 3], shape=(3,), dtype=uint8)
tf.Tensor([ 4  8 12], shape=(3,), dtype=int32) [[1, 2], [2, 4], [3, 6]]
tf.Tensor(
[[1 2 3]
 [1 2 3]], shape=(2, 3), dtype=int32)
""")


def test_ragged_text_and_sparse(guide: Page) -> None:
    guide.shows("""
uneven = [[1, 2], [3], [4, 5, 6]]
try:
  tf.constant(uneven)
except Exception as e:
  print(f"{type(e).__name__}: {e}".splitlines()[0].split(": l")[0])
print(tf.ragged.constant(uneven), tf.ragged.constant(uneven).shape)
words = tf.constant(["red fox", "very lazy dog"])
print(words, tf.strings.split(words[0], sep=" "))
print(tf.strings.split(words))
print(tf.strings.to_number(tf.strings.split("2 20 200")))
duck = tf.constant("Duck")
print(tf.strings.bytes_split(duck), tf.io.decode_raw(duck, tf.uint8))
accents = tf.constant("é 🦆")
print(tf.strings.unicode_split(accents, "UTF-8").shape, tf.strings.unicode_decode(accents, "UTF-8"))
few = tf.sparse.SparseTensor(indices=[[0, 0], [1, 2]], values=[1, 2], dense_shape=[3, 4])
print(few)
tf.sparse.to_dense(few).numpy()
""", """
ValueError: constant: Can't convert non-rectangular Python sequence to Tensor
<tf.RaggedTensor [[1, 2], [3], [4, 5, 6]]> (3, None)
tf.Tensor([b'red fox' b'very lazy dog'], shape=(2,), dtype=string) tf.Tensor([b'red' b'fox'], shape=(2,), dtype=string)
<tf.RaggedTensor [[b'red', b'fox'], [b'very', b'lazy', b'dog']]>
tf.Tensor([  2.  20. 200.], shape=(3,), dtype=float32)
tf.Tensor([b'D' b'u' b'c' b'k'], shape=(4,), dtype=string) tf.Tensor([ 68 117  99 107], shape=(4,), dtype=uint8)
(3,) tf.Tensor([   233     32 129414], shape=(3,), dtype=int32)
SparseTensor(indices=tf.Tensor(
[[0 0]
 [1 2]], shape=(2, 2), dtype=int64), values=tf.Tensor([1 2], shape=(2,), dtype=int32), \
dense_shape=tf.Tensor([3 4], shape=(2,), dtype=int64))
array([[1, 0, 0, 0],
       [0, 0, 2, 0],
       [0, 0, 0, 0]], dtype=int32)
""")
