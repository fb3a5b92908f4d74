"""The guide of TensorFlow 2.0 alpha."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from gpu.devices import device
from guides.page import FIZZBUZZ, Page, check_regression

import twofold as tf

SETUP = """
from __future__ import absolute_import, division, print_function, unicode_literals

# pip install tensorflow==2.0.0-alpha0
import tensorflow as tf
"""

LINE_SEARCH = """
def line_search_step(fn, init_x, rate=1.0):
  with tf.GradientTape() as tape:
    # Variables are automatically recorded, but manually watch a tensor
    tape.watch(init_x)
    value = fn(init_x)
  grad = tape.gradient(value, init_x)
  grad_norm = tf.reduce_sum(grad * grad)
  init_value = value
  while value > init_value - rate * grad_norm:
    x = init_x - rate * grad
    value = fn(x)
    rate /= 2.0
  return x, value
"""


@pytest.fixture
def guide(page: Page) -> Page:
    page.run(SETUP)
    return page


def test_setup_and_basic_usage(guide: Page) -> None:
    guide.shows("tf.executing_eagerly()", """
      True
""")
    guide.shows("""
x = [[2.]]
m = tf.matmul(x, x)
print("hello, {}".format(m))
""", """
      hello, [[4.]]
""")


def test_numpy(guide: Page) -> None:
    guide.shows("""
a = tf.constant([[1, 2],
                 [3, 4]])
print(a)
""", """
      tf.Tensor(
      [[1 2]
       [3 4]], shape=(2, 2), dtype=int32)
""")
    guide.shows("""
# Broadcasting support
b = tf.add(a, 1)
print(b)
""", """
      tf.Tensor(
      [[2 3]
       [4 5]], shape=(2, 2), dtype=int32)
""")
    guide.shows("""
# Operator overloading is supported
print(a * b)
""", """
      tf.Tensor(
      [[ 2  6]
       [12 20]], shape=(2, 2), dtype=int32)
""")
    guide.shows("""
# 使用NumPy值
import numpy as np

c = np.multiply(a, b)
print(c)
""", """
      [[ 2  6]
       [12 20]]
""")
    assert type(guide["c"]) is np.ndarray
    guide.shows("""
# 从张量中获取numpy值：
print(a.numpy())
# => [[1 2]
#     [3 4]]
""", """
[[1 2]
 [3 4]]
""")


def test_fizzbuzz(guide: Page) -> None:
    guide.run("""
def fizzbuzz(max_num):
  counter = tf.constant(0)
  max_num = tf.convert_to_tensor(max_num)
  for num in range(1, max_num.numpy()+1):
    num = tf.constant(num)
    if int(num % 3) == 0 and int(num % 5) == 0:
      print('FizzBuzz')
    elif int(num % 3) == 0:
      print('Fizz')
    elif int(num % 5) == 0:
      print('Buzz')
    else:
      print(num.numpy())
    counter += 1
""")
    guide.shows("fizzbuzz(15)", FIZZBUZZ)


def test_gradients(guide: Page) -> None:
    guide.shows("""
w = tf.Variable([[1.0]])
with tf.GradientTape() as tape:
  loss = w * w

grad = tape.gradient(loss, w)
print(grad)  # => tf.Tensor([[ 2.]], shape=(1, 1), dtype=float32)
""", "tf.Tensor([[2.]], shape=(1, 1), dtype=float32)")


def test_a_layer(guide: Page) -> None:
    guide.run("""
class MySimpleLayer(tf.keras.layers.Layer):
  def __init__(self, output_units):
    super(MySimpleLayer, self).__init__()
    self.output_units = output_units
    self.dynamic = True

  def build(self, input_shape):
    # The build method gets called the first time your layer is used.
    self.kernel = self.add_variable(
      "kernel", [input_shape[-1], self.output_units])

  def call(self, input):
    return tf.matmul(input, self.kernel)
""")
    layer = guide["MySimpleLayer"](3)
    assert layer.variables == []
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    y = layer(tf.constant(x))
    np.testing.assert_allclose(y, x @ layer.kernel.numpy(), rtol=1e-6)
    assert [v.shape.as_list() for v in layer.trainable_variables] == [[2, 3]] and layer.dynamic


MODELS = """
model = tf.keras.Sequential([
  tf.keras.layers.Dense(10, input_shape=(784,)),  # must declare input shape
  tf.keras.layers.Dense(10)
])
""", """
class MNISTModel(tf.keras.Model):
  def __init__(self):
    super(MNISTModel, self).__init__()
    self.dense1 = tf.keras.layers.Dense(units=10)
    self.dense2 = tf.keras.layers.Dense(units=10)

  def call(self, input):
    \"\"\"Run the model.\"\"\"
    result = self.dense1(input)
    result = self.dense2(result)
    result = self.dense2(result)  # reuse variables from dense2 layer
    return result

model = MNISTModel()
"""


@pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`:UserWarning")  # Keras 3 says so, the guide does it
def test_models(guide: Page) -> None:
    guide.run(MODELS[0])
    assert [v.shape.as_list() for v in guide["model"].variables] == [[784, 10], [10], [10, 10], [10]]
    guide.run(MODELS[1])
    assert guide["model"].variables == []
    x = np.random.default_rng(1).normal(size=(4, 784)).astype(np.float32)
    y = guide["model"](x)
    w1, b1, w2, b2 = [v.numpy() for v in guide["model"].variables]
    np.testing.assert_allclose(y, ((x @ w1 + b1) @ w2 + b2) @ w2 + b2, rtol=1e-4, atol=1e-5)


def mean_loss(guide: Page) -> float:
    """The loss of the guide's model on the first images."""
    images = guide["mnist_images"][:500, ..., np.newaxis] / np.float32(255)
    return float(guide["loss_object"](guide["mnist_labels"][:500], guide["mnist_model"](images)))


@pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`:UserWarning")
def test_training_a_model(guide: Page, mnist: list[str], folder) -> None:
    printed = guide.run("""
# 获取并格式化mnist数据
(mnist_images, mnist_labels), _ = tf.keras.datasets.mnist.load_data()

dataset = tf.data.Dataset.from_tensor_slices(
  (tf.cast(mnist_images[...,tf.newaxis]/255, tf.float32),
   tf.cast(mnist_labels,tf.int64)))
dataset = dataset.shuffle(1000).batch(32)
""")
    assert printed.startswith("Downloading data from http://127.0.0.1:") and mnist == ["/mnist.npz"]
    guide.run("""
# 建立模型
mnist_model = tf.keras.Sequential([
  tf.keras.layers.Conv2D(16,[3,3], activation='relu',
                         input_shape=(None, None, 1)),
  tf.keras.layers.Conv2D(16,[3,3], activation='relu'),
  tf.keras.layers.GlobalAveragePooling2D(),
  tf.keras.layers.Dense(10)
])
""")
    printed = guide.run("""
for images,labels in dataset.take(1):
  print("Logits: ", mnist_model(images[0:1]).numpy())
""")
    assert printed.startswith("Logits:  [[") and len(printed.replace("[", " ").replace("]", " ").split()) == 11
    guide.run("""
optimizer = tf.keras.optimizers.Adam()
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

loss_history = []
""")
    before = mean_loss(guide)
    printed = guide.run("""
for (batch, (images, labels)) in enumerate(dataset.take(400)):
  if batch % 10 == 0:
    print('.', end='')
  with tf.GradientTape() as tape:
    logits = mnist_model(images, training=True)
    loss_value = loss_object(labels, logits)

  loss_history.append(loss_value.numpy().mean())
  grads = tape.gradient(loss_value, mnist_model.trainable_variables)
  optimizer.apply_gradients(zip(grads, mnist_model.trainable_variables))
""")
    assert printed == ".."  # the 640 images of the small file make 20 batches
    history = guide["loss_history"]
    assert len(history) == 20 and abs(history[0] - before) < 0.1
    assert mean_loss(guide) < before
    guide.shows("""
import matplotlib.pyplot as plt

plt.plot(loss_history)
plt.xlabel('Batch #')
plt.ylabel('Loss [entropy]')
""", "Text(0, 0.5, 'Loss [entropy]')")


def test_variables_and_optimizers(guide: Page) -> None:
    check_regression(guide.run("""
class Model(tf.keras.Model):
  def __init__(self):
    super(Model, self).__init__()
    self.W = tf.Variable(5., name='weight')
    self.B = tf.Variable(10., name='bias')
  def call(self, inputs):
    return inputs * self.W + self.B

# A toy dataset of points around 3 * x + 2
NUM_EXAMPLES = 2000
training_inputs = tf.random.normal([NUM_EXAMPLES])
noise = tf.random.normal([NUM_EXAMPLES])
training_outputs = training_inputs * 3 + 2 + noise

# The loss function to be optimized
def loss(model, inputs, targets):
  error = model(inputs) - targets
  return tf.reduce_mean(tf.square(error))

def grad(model, inputs, targets):
  with tf.GradientTape() as tape:
    loss_value = loss(model, inputs, targets)
  return tape.gradient(loss_value, [model.W, model.B])

# Define:
# 1. A model.
# 2. Derivatives of a loss function with respect to model parameters.
# 3. A strategy for updating the variables based on the derivatives.
model = Model()
optimizer = tf.keras.optimizers.SGD(learning_rate=0.01)

print("Initial loss: {:.3f}".format(loss(model, training_inputs, training_outputs)))

# Training loop
for i in range(300):
  grads = grad(model, training_inputs, training_outputs)
  optimizer.apply_gradients(zip(grads, [model.W, model.B]))
  if i % 20 == 0:
    print("Loss at step {:03d}: {:.3f}".format(i, loss(model, training_inputs, training_outputs)))

print("Final loss: {:.3f}".format(loss(model, training_inputs, training_outputs)))
print("W = {}, B = {}".format(model.W.numpy(), model.B.numpy()))
"""), 300)


@pytest.fixture(params=["a GPU", "no GPU"])
def with_gpu(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the machine has a GPU: where not one of its own is asked for, that of the fake driver."""
    if request.param == "no GPU":
        yield False
    else:
        with device():
            yield True


def test_variables_are_objects(guide: Page, with_gpu: bool) -> None:
    guide.run("""
if tf.test.is_gpu_available():
  with tf.device("gpu:0"):
    v = tf.Variable(tf.random.normal([1000, 1000]))
    v = None  # v no longer takes up GPU memory
""")


def test_object_based_saving(guide: Page, folder) -> None:
    guide.run("""
x = tf.Variable(10.)
checkpoint = tf.train.Checkpoint(x=x)
""")
    guide.shows("""
x.assign(2.)   # Assign a new value to the variables and save.
checkpoint_path = './ckpt/'
checkpoint.save('./ckpt/')
""", "'./ckpt/-1'")
    guide.shows("""
x.assign(11.)  # Change the variable after saving.

# Restore values from the checkpoint
checkpoint.restore(tf.train.latest_checkpoint(checkpoint_path))

print(x)  # => 2.0
""", "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=2.0>")


def test_saving_a_model(guide: Page, folder) -> None:
    guide.run("""
import os

model = tf.keras.Sequential([
  tf.keras.layers.Conv2D(16,[3,3], activation='relu'),
  tf.keras.layers.GlobalAveragePooling2D(),
  tf.keras.layers.Dense(10)
])
optimizer = tf.keras.optimizers.Adam(learning_rate=0.001)
checkpoint_dir = 'path/to/model_dir'
if not os.path.exists(checkpoint_dir):
  os.makedirs(checkpoint_dir)
checkpoint_prefix = os.path.join(checkpoint_dir, "ckpt")
root = tf.train.Checkpoint(optimizer=optimizer,
                           model=model)

root.save(checkpoint_prefix)
root.restore(tf.train.latest_checkpoint(checkpoint_dir))
""")
    images = tf.random.normal([2, 8, 8, 3])
    wanted = guide["model"](images).numpy()
    path = guide["root"].save(guide["checkpoint_prefix"])
    for variable in guide["model"].variables:
        variable.assign(tf.zeros_like(variable))
    assert not guide["model"](images).numpy().any()
    guide["root"].restore(path).assert_existing_objects_matched()
    assert guide["model"](images).numpy().tolist() == wanted.tolist()


def test_metrics(guide: Page) -> None:
    guide.run("""
m = tf.keras.metrics.Mean("loss")
m(0)
m(5)
""")
    guide.shows("m.result()  # => 2.5", "<tf.Tensor: shape=(), dtype=float32, numpy=2.5>")
    guide.run("m([8, 9])")
    guide.shows("m.result()  # => 5.5", "<tf.Tensor: shape=(), dtype=float32, numpy=5.5>")


def test_dynamic_models(guide: Page) -> None:
    guide.run(LINE_SEARCH)
    x, value = guide["line_search_step"](lambda x: tf.reduce_sum(x * x), tf.constant([3.0, 4.0]))
    assert (x.numpy().tolist(), float(value)) == ([0.0, 0.0], 0.0)  # 25, 25 again, 0


def test_dynamic_models_are_differentiable(guide: Page) -> None:
    guide.run(LINE_SEARCH)

    def found(start: tf.Tensor) -> tf.Tensor:
        return guide["line_search_step"](lambda x: tf.reduce_sum(x * x * x * x), start)[1]

    start = tf.constant([0.75, -0.5], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(start)
        value = found(start)
    h = 1e-6
    wanted = [(float(found(start + step)) - float(found(start - step))) / (2 * h) for step in ([h, 0.0], [0.0, h])]
    np.testing.assert_allclose(tape.gradient(value, start), wanted, rtol=1e-6)


def test_clipping_a_gradient(guide: Page) -> None:
    guide.run("""
@tf.custom_gradient
def clip_gradient_by_norm(x, norm):
  y = tf.identity(x)
  def grad_fn(dresult):
    return [tf.clip_by_norm(dresult, norm), None]
  return y, grad_fn
""")
    x = tf.constant([1.0, 2.0])
    for norm, wanted in ((0.5, [0.3, 0.4]), (tf.constant(10.0), [3.0, 4.0])):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = guide["clip_gradient_by_norm"](x, norm)
            loss = tf.reduce_sum(y * [3.0, 4.0])
        assert y.numpy().tolist() == [1.0, 2.0]
        np.testing.assert_allclose(tape.gradient(loss, x), wanted, rtol=1e-6)


def test_custom_gradients(guide: Page) -> None:
    guide.run("""
def log1pexp(x):
  return tf.math.log(1 + tf.exp(x))

def grad_log1pexp(x):
  with tf.GradientTape() as tape:
    tape.watch(x)
    value = log1pexp(x)
  return tape.gradient(value, x)

""")
    guide.shows("""
# The gradient computation works fine at x = 0.
grad_log1pexp(tf.constant(0.)).numpy()
""", "0.5")
    guide.shows("""
# However, x = 100 fails because of numerical instability.
grad_log1pexp(tf.constant(100.)).numpy()
""", "nan")
    guide.run("""
@tf.custom_gradient
def log1pexp(x):
  e = tf.exp(x)
  def grad(dy):
    return dy * (1 - 1 / (1 + e))
  return tf.math.log(1 + e), grad

def grad_log1pexp(x):
  with tf.GradientTape() as tape:
    tape.watch(x)
    value = log1pexp(x)
  return tape.gradient(value, x)

""")
    guide.shows("""
# As before, the gradient computation works fine at x = 0.
grad_log1pexp(tf.constant(0.)).numpy()
""", "0.5")
    guide.shows("""
# And the gradient computation also works at x = 100.
grad_log1pexp(tf.constant(100.)).numpy()
""", "1.0")


def test_measuring(guide: Page, with_gpu: bool) -> None:
    shape = "(40, 40)" if with_gpu else "(1000, 1000)"  # the fake driver takes its time
    printed = guide.run("""
import time

def measure(x, steps):
  # TensorFlow initializes a GPU the first time it's used, exclude from timing.
  tf.matmul(x, x)
  start = time.time()
  for i in range(steps):
    x = tf.matmul(x, x)
  # tf.matmul can return before completing the matrix multiplication
  # (e.g., can return after enqueing the operation on a CUDA stream).
  # The x.numpy() call below will ensure that all enqueued operations
  # have completed (and will also copy the result to host memory,
  # so we're including a little more than just the matmul operation
  # time).
  _ = x.numpy()
  end = time.time()
  return end - start

shape = (1000, 1000)
steps = 200
print("Time to multiply a {} matrix by itself {} times:".format(shape, steps))

# Run on CPU:
with tf.device("/cpu:0"):
  print("CPU: {} secs".format(measure(tf.random.normal(shape), steps)))

# Run on GPU, if available:
if tf.test.is_gpu_available():
  with tf.device("/gpu:0"):
    print("GPU: {} secs".format(measure(tf.random.normal(shape), steps)))
else:
  print("GPU: not found")
""", {"steps = 200": "steps = 4", "(1000, 1000)": shape})
    title, cpu, gpu = printed.splitlines()
    assert title == f"Time to multiply a {shape} matrix by itself 4 times:"
    assert float(cpu.removeprefix("CPU: ").removesuffix(" secs")) > 0
    assert re.fullmatch(r"GPU: [\d.e-]+ secs" if with_gpu else "GPU: not found", gpu)


def test_copies_on_devices(guide: Page, with_gpu: bool) -> None:
    guide.run("""
if tf.test.is_gpu_available():
  x = tf.random.normal([10, 10])

  x_gpu0 = x.gpu()
  x_cpu = x.cpu()

  _ = tf.matmul(x_cpu, x_cpu)    # Runs on CPU
  _ = tf.matmul(x_gpu0, x_gpu0)  # Runs on GPU:0

""")
    if with_gpu:
        on_gpu, on_host = guide.names["_"], guide.names["x_cpu"]
        assert on_gpu.device.endswith("GPU:0") and on_host.device.endswith("CPU:0")
        assert on_gpu.numpy().tobytes() == tf.matmul(on_host, on_host).numpy().tobytes()
