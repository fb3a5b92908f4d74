"""The guide of the first preview."""

from __future__ import annotations

import re

import numpy as np
import pytest
from guides.page import Page, check_regression, losses

from twofold.examples.tutorials.mnist import input_data
from twofold.keras.datasets import _sources


@pytest.fixture
def guide(page: Page) -> Page:
    page.run("""
import tensorflow as tf

from tensorflow.contrib.eager.python import tfe

tfe.enable_eager_execution()
""")
    return page


def test_numerical_computation(guide: Page) -> None:
    printed = guide.run("""
# Multiply two 2x2 matrices
x = tf.matmul([[1, 2],
               [3, 4]],
              [[4, 5],
               [6, 7]])
# Add one to each element
# (tf.add supports broadcasting)
y = tf.add(x, 1)

# Create a random random 5x3 matrix
z = tf.random_uniform([5, 3])

print(x)
print(y)
print(z)
""")
    assert printed.startswith("""\
tf.Tensor(
[[16 19]
 [36 43]], shape=(2, 2), dtype=int32)
tf.Tensor(
[[17 20]
 [37 44]], shape=(2, 2), dtype=int32)
tf.Tensor(
[[0.""")
    assert printed.endswith("]], shape=(5, 3), dtype=float32)\n")
    z = guide["z"].numpy()
    assert (z >= 0).all() and (z < 1).all() and len(np.unique(z)) == 15


def test_operators(guide: Page) -> None:
    guide.shows("""
x = (tf.ones([1], dtype=tf.float32) + 1) * 2 - 1
print(x)
""", "tf.Tensor([3.], shape=(1,), dtype=float32)")


def test_numpy(guide: Page) -> None:
    guide.run("""
import numpy as np

x = tf.add(1, 1)                     # tf.Tensor with a value of 2
y = tf.add(np.array(1), np.array(1)) # tf.Tensor with a value of 2
z = np.multiply(x, y)                # numpy.int64 with a value of 4
""")
    assert repr(guide["x"]) == "<tf.Tensor: shape=(), dtype=int32, numpy=2>"
    assert repr(guide["y"]) == "<tf.Tensor: shape=(), dtype=int64, numpy=2>"
    assert type(guide["z"]) is np.int64 and guide["z"] == 4


def test_conversion(guide: Page) -> None:
    guide.shows("""
import numpy as np

np_x = np.array(2., dtype=np.float32)
x = tf.constant(np_x)

py_y = 3.
y = tf.constant(py_y)

z = x + y + 1

print(z)
print(z.numpy())
""", """
tf.Tensor(6.0, shape=(), dtype=float32)
6.0
""")


def test_timing(guide: Page) -> None:
    printed = guide.run("""
import time

def measure(x):
  # The very first time a GPU is used by TensorFlow, it is initialized.
  # So exclude the first run from timing.
  tf.matmul(x, x)

  start = time.time()
  for i in range(10):
    tf.matmul(x, x)
  end = time.time()

  return "Took %s seconds to multiply a %s matrix by itself 10 times" % (end - start, x.shape)

# Run on CPU:
with tf.device("/cpu:0"):
  print("CPU: %s" % measure(tf.random_normal([1000, 1000])))

# If a GPU is available, run on GPU:
if tfe.num_gpus() > 0:
  with tf.device("/gpu:0"):
    print("GPU: %s" % measure(tf.random_normal([1000, 1000])))
""")
    assert re.match(r"CPU: Took [0-9.e-]+ seconds to multiply a \(1000, 1000\) matrix by itself 10 times\n", printed)


def test_copies_on_devices(guide: Page) -> None:
    """The guide has a GPU. Where there is none, its copy to one says so, as TensorFlow's does."""
    block = """
x = tf.random_normal([10, 10])

x_gpu0 = x.gpu()
x_cpu = x.cpu()

_ = tf.matmul(x_cpu, x_cpu)  # Runs on CPU
_ = tf.matmul(x_gpu0, x_gpu0)  # Runs on GPU:0

if tfe.num_gpus() > 1:
  x_gpu1 = x.gpu(1)
  _ = tf.matmul(x_gpu1, x_gpu1)  # Runs on GPU:1
"""
    with pytest.raises(RuntimeError, match=r"(?i)gpu:0"):
        guide.run(block)
    guide.run(block, {"x_gpu0 = x.gpu()": "x_gpu0 = x.cpu()"})


def test_gradient_functions(guide: Page) -> None:
    guide.run("""
def f(x):
  return tf.multiply(x, x) # Or x * x
assert 9 == f(3.).numpy()

df = tfe.gradients_function(f)
assert 6 == df(3.)[0].numpy()

# Second order deriviative.
d2f = tfe.gradients_function(lambda x: df(x)[0])
assert 2 == d2f(3.)[0].numpy()
""")
    # The guide's next lines assert 0 where the two later guides show [None] for the same code; they win.
    assert guide.run("""
# Third order derivative.
d3f = tfe.gradients_function(lambda x : d2f(x)[0])
d3f(3.)
""") == "[None]\n"


def test_linear_regression(guide: Page) -> None:
    printed = guide.run("""
def prediction(input, weight, bias):
  return input * weight + bias

# A toy dataset of points around 3 * x + 2
NUM_EXAMPLES = 1000
training_inputs = tf.random_normal([NUM_EXAMPLES])
noise = tf.random_normal([NUM_EXAMPLES])
training_outputs = training_inputs * 3 + 2 + noise

# A loss function: Mean-squared error
def loss(weight, bias):
  error = prediction(training_inputs, weight, bias) - training_outputs
  return tf.reduce_mean(tf.square(error))

# Function that returns the the derivative of loss with respect to
# weight and bias
grad = tfe.gradients_function(loss)

# Train for 200 steps (starting from some random choice for W and B).
W = 5.
B = 10.
learning_rate = 0.01
print("Initial loss: %f" % loss(W, B).numpy())
for i in range(200):
  (dW, dB) = grad(W, B)
  W -= dW * learning_rate
  B -= dB * learning_rate
  if i % 20 == 0:
    print("Loss at step %d: %f" % (i, loss(W, B).numpy()))
print("Final loss: %f" % loss(W, B).numpy())
print("W, B = %f, %f" % (W.numpy(), B.numpy()))
""")
    check_regression(printed, 200)


MODEL = """
class Model(object):
  def __init__(self):
    self.W = tfe.Variable(5., name='weight')
    self.B = tfe.Variable(10., name='bias')

  def predict(self, inputs):
    return inputs * self.W + self.B


# The loss function to be optimized
def loss(model, inputs, targets):
  error = model.predict(inputs) - targets
  return tf.reduce_mean(tf.square(error))

# A toy dataset of points around 3 * x + 2
NUM_EXAMPLES = 1000
training_inputs = tf.random_normal([NUM_EXAMPLES])
noise = tf.random_normal([NUM_EXAMPLES])
training_outputs = training_inputs * 3 + 2 + noise

# Define:
# 1. A model
# 2. Derivatives of a loss function with respect to model parameters
# 3. A strategy for updating the variables based on the derivatives
model = Model()
grad = tfe.implicit_gradients(loss)
"""


def test_implicit_gradients(guide: Page) -> None:
    guide.run(MODEL)
    pairs = guide["grad"](guide["model"], guide["training_inputs"], guide["training_outputs"])
    assert [v.name for _, v in pairs] == ["weight:0", "bias:0"]
    assert [v for _, v in pairs] == [guide["model"].W, guide["model"].B]
    x, y = guide["training_inputs"].numpy().astype(float), guide["training_outputs"].numpy().astype(float)
    error = 5 * x + 10 - y
    np.testing.assert_allclose([g.numpy() for g, _ in pairs], [2 * (error * x).mean(), 2 * error.mean()], rtol=1e-4)


TRAINING = """
optimizer = tf.train.GradientDescentOptimizer(learning_rate=0.01)

# The training loop
print("Initial loss: %f" %
      loss(model, training_inputs, training_outputs).numpy())
for i in range(201):
  optimizer.apply_gradients(grad(model, training_inputs, training_outputs))
  if i % 20 == 0:
    print("Loss at step %d: %f" %
          (i, loss(model, training_inputs, training_outputs).numpy()))
print("Final loss: %f" % loss(model, training_inputs, training_outputs).numpy())
print("W, B = %s, %s" % (model.W.numpy(), model.B.numpy()))
"""


def test_training_with_implicit_gradients(guide: Page) -> None:
    guide.run(MODEL)
    printed = guide.run(TRAINING)
    *before, last, final = losses(printed)
    assert last == final  # step 200 is the last
    check_regression(printed.replace("Loss at step 200", "Step 200"), 200)
    assert len(before) == 11


def test_a_layer_as_the_model(guide: Page) -> None:
    guide.run("""
class Model(object):
  def __init__(self):
    self.layer = tf.layers.Dense(1)

  def predict(self, inputs):
    return self.layer(inputs)
""")
    guide.run("""
def loss(model, inputs, targets):
  return tf.reduce_mean(tf.square(model.predict(inputs) - targets))

inputs = tf.random_normal([1000, 1])
targets = inputs * 3 + 2
model = Model()
optimizer = tf.train.GradientDescentOptimizer(learning_rate=0.1)
grad = tfe.implicit_gradients(loss)
for i in range(200):
  optimizer.apply_gradients(grad(model, inputs, targets))
""")
    kernel, bias = guide["model"].layer.variables
    np.testing.assert_allclose([kernel.numpy()[0, 0], bias.numpy()[0]], [3, 2], rtol=1e-3)


MNIST = """
class MNISTModel(object):
  def __init__(self, data_format):
    # 'channels_first' is typically faster on GPUs
    # while 'channels_last' is typically faster on CPUs.
    # See: https://www.tensorflow.org/performance/performance_guide#data_formats
    if data_format == 'channels_first':
      self._input_shape = [-1, 1, 28, 28]
    else:
      self._input_shape = [-1, 28, 28, 1]
    self.conv1 = tf.layers.Conv2D(32, 5,
                                  padding='same',
                                  activation=tf.nn.relu,
                                  data_format=data_format)
    self.max_pool2d = tf.layers.MaxPooling2D(
        (2, 2), (2, 2), padding='SAME', data_format=data_format)
    self.conv2 = tf.layers.Conv2D(64, 5,
                                  padding='same',
                                  activation=tf.nn.relu,
                                  data_format=data_format)
    self.dense1 = tf.layers.Dense(1024, activation=tf.nn.relu)
    self.dropout = tf.layers.Dropout(0.5)
    self.dense2 = tf.layers.Dense(10)

  def predict(self, inputs):
    x = tf.reshape(inputs, self._input_shape)
    x = self.max_pool2d(self.conv1(x))
    x = self.max_pool2d(self.conv2(x))
    x = tf.layers.flatten(x)
    x = self.dropout(self.dense1(x))
    return self.dense2(x)

def loss(model, inputs, targets):
  return tf.reduce_mean(
      tf.nn.softmax_cross_entropy_with_logits(
          logits=model.predict(inputs), labels=targets))

# Load the training and validation data
from tensorflow.examples.tutorials.mnist import input_data
data = input_data.read_data_sets("./mnist_data", one_hot=True)
"""


def test_training_on_mnist(guide: Page, folder, mnist: list[str]) -> None:
    address = _sources.FILES["mnist.npz"][0].removesuffix("mnist.npz")
    guide.run(MNIST, {"one_hot=True)": f"one_hot=True, validation_size=100, source_url={address!r})"})  # of 640 images
    assert len(mnist) == 4 and all(path.endswith("-ubyte.gz") for path in mnist)
    data = guide["data"]
    assert data.train.images.shape == (540, 784) and data.validation.labels.shape == (100, 10)
    printed = guide.run("""
# Train
device = "gpu:0" if tfe.num_gpus() else "cpu:0"
model = MNISTModel('channels_first' if tfe.num_gpus() else 'channels_last')
optimizer = tf.train.AdamOptimizer(learning_rate=1e-4)
grad = tfe.implicit_gradients(loss)
for i in range(20001):
  with tf.device(device):
    (inputs, targets) = data.train.next_batch(50)
    optimizer.apply_gradients(grad(model, inputs, targets))
    if i % 100 == 0:
      print("Step %d: Loss on training set : %f" %
            (i, loss(model, inputs, targets).numpy()))
print("Loss on test set: %f" % loss(model, data.test.images, data.test.labels).numpy())
""", {"range(20001)": "range(21)", "i % 100": "i % 20"})
    actual = re.findall(r"^Step (\d+): Loss on training set : (\S+)$|^Loss on test set: (\S+)$", printed, re.M)
    assert [step for step, _, _ in actual] == ["0", "20", ""]
    assert float(actual[2][2]) < float(actual[0][1]) < 2.5 and float(actual[1][1]) < 2.2


def test_batches_without_end(small_mnist_files: dict[str, bytes], tmp_path) -> None:
    for name, content in small_mnist_files.items():
        (tmp_path / name).write_bytes(content)
    data = input_data.read_data_sets(tmp_path, validation_size=100, dtype=np.uint8, reshape=False, seed=1)
    assert data.train.num_examples == 540 and data.train.images.shape == (540, 28, 28, 1)
    batches = [data.train.next_batch(100) for _ in range(11)]
    assert data.train.epochs_completed == 2
    for first in (0, 540):  # each epoch has every image once
        labels = np.concatenate([labels for _, labels in batches])[first:first + 540]
        assert np.bincount(labels).tolist() == np.bincount(data.train.labels).tolist()
    with pytest.raises(ValueError, match="from 1 to 540"):
        data.train.next_batch(541)
    with pytest.raises(ValueError, match="from 0 to 640"):
        input_data.read_data_sets(tmp_path, validation_size=641)


def test_an_iterator(guide: Page) -> None:
    printed = guide.run("""
# Create a source Dataset from in-memory numpy arrays.
# For reading from files on disk, you may want to use other Dataset classes
# like the TextLineDataset or the TFRecordDataset.
dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5, 6])

# Apply transformations, shuffling, batching etc.
dataset = dataset.map(tf.square).shuffle(2).batch(2)

# Use tfe.Iterator to iterate over the dataset.
for x in tfe.Iterator(dataset):
  print(x)
""")
    rows = re.findall(r"^tf\.Tensor\(\[ *(\d+) +(\d+)\], shape=\(2,\), dtype=int32\)$", printed, re.M)
    values = [int(value) for row in rows for value in row]
    assert sorted(values) == [1, 4, 9, 16, 25, 36] and len(printed.splitlines()) == 3
    assert all(place >= index - 1 for index, place in zip(range(6), [values.index(n * n) for n in range(1, 7)],
                                                          strict=True))
