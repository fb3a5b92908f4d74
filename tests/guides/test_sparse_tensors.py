"""What the guide to sparse tensors shows: coordinates, sums, products, functions, pipelines and records."""

from __future__ import annotations

import pytest
from guides.page import Page


@pytest.fixture
def guide(page: Page) -> Page:
    """The page after its imports and first values."""
    page.run("""
import tensorflow as tf

few = tf.SparseTensor(indices=[[0, 3], [2, 4]], values=[10, 20], dense_shape=[3, 10])

def shown(st):
  lines = [f"  {list(map(int, at))}: {int(value)}" for at, value in zip(st.indices.numpy(), st.values.numpy())]
  return "\\n".join([f"sparse {list(st.shape)}", *lines])
""")
    return page


def test_making_and_adding(guide: Page) -> None:
    guide.shows("""
print(few.indices, few.values)
print(shown(tf.sparse.from_dense([[1, 0, 0, 8], [0, 0, 0, 0], [0, 0, 3, 0]])))
other = tf.SparseTensor(indices=[[0, 3], [1, 1]], values=[5, 1], dense_shape=[3, 10])
print(shown(tf.sparse.add(few, other)))
tf.sparse.to_dense(few)[:, 3:5]
""", """
tf.Tensor(
[[0 3]
 [2 4]], shape=(2, 2), dtype=int64) tf.Tensor([10 20], shape=(2,), dtype=int32)
sparse [3, 4]
  [0, 0]: 1
  [0, 3]: 8
  [2, 2]: 3
sparse [3, 10]
  [0, 3]: 15
  [1, 1]: 1
  [2, 4]: 20
<tf.Tensor: shape=(3, 2), dtype=int32, numpy=
array([[10,  0],
       [ 0,  0],
       [ 0, 20]], dtype=int32)>
""")


def test_products_parts_and_functions_of_values(guide: Page) -> None:
    guide.shows("""
matrix = tf.SparseTensor(indices=[[0, 1], [1, 0], [1, 1]], values=[1, 1, 1], dense_shape=[2, 2])
print(tf.sparse.sparse_dense_matmul(matrix, tf.constant([[5, 6]]), adjoint_b=True))
blocks = [tf.SparseTensor(indices=[[0, n]], values=[n + 1], dense_shape=[1, 4]) for n in range(3)]
joined = tf.sparse.concat(axis=0, sp_inputs=blocks)
print(shown(joined))
print(shown(tf.sparse.slice(joined, start=[0, 1], size=[2, 2])))
print(shown(tf.sparse.map_values(tf.add, joined, 5)))
print(shown(tf.sparse.reorder(tf.SparseTensor([[1, 0], [0, 1]], [2, 1], [2, 2]))))
""", """
tf.Tensor(
[[ 6]
 [11]], shape=(2, 1), dtype=int32)
sparse [3, 4]
  [0, 0]: 1
  [1, 1]: 2
  [2, 2]: 3
sparse [2, 2]
  [1, 0]: 2
sparse [3, 4]
  [0, 0]: 6
  [1, 1]: 7
  [2, 2]: 8
sparse [2, 2]
  [0, 1]: 1
  [1, 0]: 2
""")


def test_functions_pipelines_and_records(guide: Page) -> None:
    guide.shows("""
@tf.function
def product(x, y):
  return tf.sparse.sparse_dense_matmul(x, y)

print(product(few, tf.ones([10, 1], tf.int32)).numpy().ravel())
rows = tf.data.Dataset.from_tensor_slices(few)
print(rows.element_spec)
for row in rows:
  print(shown(row))
for batch in rows.batch(2):
  print(shown(batch))
print([int(tf.reduce_sum(row.values)) for row in rows.map(lambda x: x * 2)])
records = [tf.train.Example(features=tf.train.Features(feature={
    "v": tf.train.Feature(int64_list=tf.train.Int64List(value=v))})).SerializeToString() for v in ([1, 2], [], [3])]
print(shown(tf.io.parse_example(records, {"v": tf.io.VarLenFeature(tf.int64)})["v"]))
""", """
[10  0 20]
SparseTensorSpec(TensorShape([10]), tf.int32)
sparse [10]
  [3]: 10
sparse [10]
sparse [10]
  [4]: 20
sparse [2, 10]
  [0, 3]: 10
sparse [1, 10]
  [0, 4]: 20
[20, 0, 40]
sparse [3, 2]
  [0, 0]: 1
  [0, 1]: 2
  [2, 0]: 3
""")


def test_zeros_that_are_there_count_and_others_do_not(guide: Page) -> None:
    guide.shows("""
kept = tf.SparseTensor(indices=[[0, 0], [1, 0]], values=[-1.0, 0.0], dense_shape=[2, 2])
print(tf.sparse.reduce_max(kept, axis=1))
print(tf.reduce_max(tf.sparse.to_dense(kept), axis=1))
tf.sparse.softmax(kept).values
""", """
tf.Tensor([-1.  0.], shape=(2,), dtype=float32)
tf.Tensor([0. 0.], shape=(2,), dtype=float32)
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 1.], dtype=float32)>
""")
