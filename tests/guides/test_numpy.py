"""What the guide to NumPy's API shows: arrays that are tensors, with tapes, functions and other libraries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from guides.page import Page

from twofold.experimental.numpy import __complete__ as _numpy


@pytest.fixture
def guide(page: Page) -> Iterator[Page]:
    """The page after its imports, and the process as it was before when it is over."""
    page.run("""
import numpy as np
import tensorflow as tf
import tensorflow.experimental.numpy as tnp

tnp.experimental_enable_numpy_behavior()
""")
    yield page
    _numpy._enabling.disable()


def test_arrays_are_tensors(guide: Page) -> None:
    guide.shows("""
grid = tnp.ones([4, 2], dtype=tnp.float32)
print("shape %s, rank %s, dtype %s" % (grid.shape, grid.ndim, grid.dtype.name), isinstance(grid, tf.Tensor))
print("turned %s, flat %s" % (grid.T.shape, grid.reshape(-1).shape))
""", """
shape (4, 2), rank 2, dtype float32 True
turned (2, 4), flat (8,)
""")


def test_dtypes_meet(guide: Page) -> None:
    guide.shows("""
values = [tnp.asarray(1, dtype=d) for d in (tnp.int32, tnp.int64, tnp.float32, tnp.float64)]
for i, v1 in enumerate(values):
  for v2 in values[i + 1:]:
    print("%s + %s => %s" % (v1.dtype.name, v2.dtype.name, (v1 + v2).dtype.name))
print(tnp.asarray(1).dtype.name, tnp.asarray(1.).dtype.name)

tnp.experimental_enable_numpy_behavior(prefer_float32=True)
print(tnp.asarray(1.).dtype.name, tnp.add(1., 2.).dtype.name)
tnp.experimental_enable_numpy_behavior(prefer_float32=False)
print(tnp.asarray(1.).dtype.name, tnp.add(1., 2.).dtype.name)
""", """
int32 + int64 => int64
int32 + float32 => float64
int32 + float64 => float64
int64 + float32 => float64
int64 + float64 => float64
float32 + float64 => float64
int64 float64
float32 float32
float64 float64
""")


def test_broadcasting_and_indexing(guide: Page) -> None:
    guide.shows("""
x, y, z = tnp.ones([2, 3]), tnp.ones([3]), tnp.ones([1, 2, 1])
print((x + y + z).shape)

x = tnp.arange(24).reshape(2, 3, 4)
print(x[1, tnp.newaxis, 1:3, ...].tolist())
print(x[:, (True, False, True)].tolist())
print(x[1, (0, 0, 1), tnp.asarray([0, 1, 1])].tolist())

try:
  tnp.arange(6)[1] = -1
except TypeError:
  print("tensors do not change")
""", """
(1, 2, 3)
[[[16, 17, 18, 19], [20, 21, 22, 23]]]
[[[0, 1, 2, 3], [8, 9, 10, 11]], [[12, 13, 14, 15], [20, 21, 22, 23]]]
[12, 13, 17]
tensors do not change
""")


def test_other_libraries(guide: Page) -> None:
    guide.shows("""
from_numpy = tnp.sum(np.ones([2, 3]))
print(float(np.sum(tnp.ones([2, 3]))), float(from_numpy), isinstance(from_numpy, tnp.ndarray))
x = tnp.ones([1, 2]) + np.ones([1, 2])
print("sum %s, class %s" % (x.tolist(), x.__class__.__name__))
x = tf.constant([1, 2])
print(tnp.asarray(x) is x, tf.convert_to_tensor(tnp.asarray([1, 2])).tolist(), float(tf.reduce_sum(tnp.ones(3))))
""", """
6.0 6.0 True
sum [[2.0, 2.0]], class Tensor
True [1, 2] 3.0
""")


MODEL = """
class Model:
  def __init__(self):
    self.weights = None

  def predict(self, inputs):
    if self.weights is None:
      size = inputs.shape[-1]
      scale = tnp.sqrt(size).astype(tnp.float32)
      self.weights = (tnp.random.randn(size, 8).astype(tnp.float32) / scale,
                      tnp.random.randn(8).astype(tnp.float32), tnp.random.randn(8, 2).astype(tnp.float32) / 3)
    first, bias, second = self.weights
    return tnp.matmul(tnp.maximum(tnp.matmul(inputs, first) + bias, 0), second)

def batch(size):
  return tnp.random.randn(size, 4).astype(tnp.float32), tnp.random.randn(size, 2).astype(tnp.float32)

def gradients(model, inputs, labels):
  with tf.GradientTape() as tape:
    tape.watch(model.weights)
    loss = tnp.sum(tnp.square(model.predict(inputs) - labels))
  return tape.gradient(loss, model.weights)

model = Model()
print(model.predict(tnp.ones([2, 4], dtype=tnp.float32)).shape)
"""


def test_a_model_under_tapes_and_in_functions(guide: Page) -> None:
    guide.shows(MODEL, "(2, 2)")
    guide.shows("""
inputs, labels = batch(16)
by_weights = gradients(model, inputs, labels)
print([str(w.shape) for w in model.weights], [str(g.shape) for g in by_weights])
compiled = tf.function(gradients)(model, inputs, labels)
print([bool(tnp.array_equal(a, b)) for a, b in zip(by_weights, compiled)])

def outputs_by_inputs(inputs):
  with tf.GradientTape() as tape:
    tape.watch(inputs)
    prediction = model.predict(inputs)
  return tape.batch_jacobian(prediction, inputs)

print(outputs_by_inputs(tnp.ones([5, 4], tnp.float32)).shape)

@tf.function
def per_example(inputs, labels):
  def one(arg):
    return gradients(model, tnp.expand_dims(arg[0], 0), tnp.expand_dims(arg[1], 0))
  return tf.vectorized_map(one, (inputs, labels))

each = per_example(inputs, labels)
print([str(g.shape) for g in each], bool(tnp.allclose(tnp.sum(each[0], 0), by_weights[0], 1e-4, 1e-4)))

device = tf.config.list_logical_devices(device_type="CPU")[0]
with tf.device(device):
  prediction = model.predict(batch(5)[0])
print(prediction.device.endswith("CPU:0"), tnp.copy(prediction).shape)
""", """
['(4, 8)', '(8,)', '(8, 2)'] ['(4, 8)', '(8,)', '(8, 2)']
[True, True, True]
(5, 2, 4)
['(16, 4, 8)', '(16, 8)', '(16, 8, 2)'] True
True (5, 2)
""")
