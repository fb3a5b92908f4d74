"""The notebook of TensorFlow 1.7."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest
from guides.page import Page, check_regression
from quick.start import python
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import twofold as tf


@pytest.fixture
def guide(page: Page) -> Page:
    page.run("""
from __future__ import absolute_import, division, print_function

import tensorflow as tf
""")
    page.shows("""
tf.enable_eager_execution()

x = [[2.]]
m = tf.matmul(x, x)
print("hello, {}".format(m))  # => "hello, [[4.]]"
""", "hello, [[4.]]")
    page.run("import tensorflow.contrib.eager as tfe")
    return page


def test_numpy(guide: Page) -> None:
    guide.shows(r"""
a = tf.constant([[1, 2],
                 [3, 4]])
print(a)
# => tf.Tensor([[1 2]
#               [3 4]], shape=(2, 2), dtype=int32)

# Broadcasting support
b = tf.add(a, 1)
print(b)
# => tf.Tensor([[2 3]
#               [4 5]], shape=(2, 2), dtype=int32)

# Operator overloading is supported
print(a * b)
# => tf.Tensor([[ 2  6]
#               [12 20]], shape=(2, 2), dtype=int32)

print("\nUse NumPy values")

# Use NumPy values
import numpy as np

c = np.multiply(a, b)
print(c)
# => [[ 2  6]
#     [12 20]]

# Obtain numpy value from a tensor:
print(a.numpy())
# => [[1 2]
#     [3 4]]
""", """
tf.Tensor(
[[1 2]
 [3 4]], shape=(2, 2), dtype=int32)
tf.Tensor(
[[2 3]
 [4 5]], shape=(2, 2), dtype=int32)
tf.Tensor(
[[ 2  6]
 [12 20]], shape=(2, 2), dtype=int32)

Use NumPy values
[[ 2  6]
 [12 20]]
[[1 2]
 [3 4]]
""")


def test_gradients(guide: Page) -> None:
    guide.shows("""
w = tfe.Variable([[1.0]])
with tfe.GradientTape() as tape:
  loss = w * w

grad = tape.gradient(loss, [w])
print(grad)  # => [tf.Tensor([[ 2.]], shape=(1, 1), dtype=float32)]
""", "[<tf.Tensor: id=49, shape=(1, 1), dtype=float32, numpy=array([[2.]], dtype=float32)>]")


def test_linear_regression(guide: Page) -> None:
    printed = guide.run("""
# A toy dataset of points around 3 * x + 2
NUM_EXAMPLES = 1000
training_inputs = tf.random_normal([NUM_EXAMPLES])
noise = tf.random_normal([NUM_EXAMPLES])
training_outputs = training_inputs * 3 + 2 + noise

def prediction(input, weight, bias):
  return input * weight + bias

# A loss function using mean-squared error
def loss(weights, biases):
  error = prediction(training_inputs, weights, biases) - training_outputs
  return tf.reduce_mean(tf.square(error))

# Return the derivative of loss with respect to weight and bias
def grad(weights, biases):
  with tfe.GradientTape() as tape:
    loss_value = loss(weights, biases)
  return tape.gradient(loss_value, [weights, biases])

train_steps = 200
learning_rate = 0.01
# Start with arbitrary values for W and B on the same batch of data
W = tfe.Variable(5.)
B = tfe.Variable(10.)

print("Initial loss: {:.3f}".format(loss(W, B)))

for i in range(train_steps):
  dW, dB = grad(W, B)
  W.assign_sub(dW * learning_rate)
  B.assign_sub(dB * learning_rate)
  if i % 20 == 0:
    print("Loss at step {:03d}: {:.3f}".format(i, loss(W, B)))

print("Final loss: {:.3f}".format(loss(W, B)))
print("W = {}, B = {}".format(W.numpy(), B.numpy()))
""")
    check_regression(printed, 200)


def test_dynamic_models(guide: Page) -> None:
    guide.run("""
def line_search_step(fn, init_x, rate=1.0):
  with tfe.GradientTape() as tape:
    # Variables are automatically recorded, but manually watch a tensor
    tape.watch(init_x)
    value = fn(init_x)
  grad, = tape.gradient(value, [init_x])
  grad_norm = tf.reduce_sum(grad * grad)
  init_value = value
  while value > init_value - rate * grad_norm:
    x = init_x - rate * grad
    value = fn(x)
    rate /= 2.0
  return x, value
""")
    x, value = guide["line_search_step"](lambda x: tf.reduce_sum(x * x), tf.constant([3.0, 4.0]))
    assert (x.numpy().tolist(), float(value)) == ([0.0, 0.0], 0.0)


def test_gradient_functions(guide: Page) -> None:
    guide.shows("""
def square(x):
  return tf.multiply(x, x)

grad = tfe.gradients_function(square)

print(square(3.))  # => 9.0
print(grad(3.))    # => [6.0]
""", """
tf.Tensor(9.0, shape=(), dtype=float32)
[<tf.Tensor: id=58, shape=(), dtype=float32, numpy=6.0>]
""")
    guide.shows("""
# The second-order derivative of square:
gradgrad = tfe.gradients_function(lambda x: grad(x)[0])
gradgrad(3.)  # => [2.0]
""", "[<tf.Tensor: id=70, shape=(), dtype=float32, numpy=2.0>]")
    guide.shows("""
# The third-order derivative is None:
gradgradgrad = tfe.gradients_function(lambda x: gradgrad(x)[0])
gradgradgrad(3.)  # => [None]
""", "[None]")
    guide.shows("""
# With flow control:
def abs(x):
  return x if x > 0. else -x

grad = tfe.gradients_function(abs)

print(grad(3.))   # => [1.0]
print(grad(-3.))  # => [-1.0]
""", """
[<tf.Tensor: id=5, shape=(), dtype=float32, numpy=1.0>]
[<tf.Tensor: id=94, shape=(), dtype=float32, numpy=-1.0>]
""")


def test_before_eager_execution() -> None:
    """In a process of its own, where operations build a graph, as they did before TensorFlow 2."""
    code = """
from __future__ import absolute_import, division, print_function
import twofold as tf
tf.compat.v1.disable_eager_execution()
x = [[2.]]
m = tf.matmul(x, x)
print("hello, {}".format(m))  # => "hello, [[4.]]"
"""
    done = subprocess.run(python("-c", code), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == 'hello, Tensor("MatMul:0", shape=(1, 1), dtype=float32)\n'


@pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`:UserWarning")  # Keras 3 says so, the guide does it
def test_models(guide: Page) -> None:
    guide.run("""
model = tf.keras.Sequential([
  tf.keras.layers.Dense(10, input_shape=(784,)),  # must declare input shape
  tf.keras.layers.Dense(10)
])
""")
    assert guide["model"].output_shape == (None, 10)
    guide.run("""
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
""")
    guide.shows("""
# Create a tensor representing a blank image
batch = tf.zeros([1, 1, 784])
print(batch.shape)  # => (1, 1, 784)

result = model(batch)
print(result) # => tf.Tensor([[[ 0.  0., ..., 0.]]], shape=(1, 1, 10), dtype=float32)
""", """
(1, 1, 784)
tf.Tensor([[[0. 0. 0. 0. 0. 0. 0. 0. 0. 0.]]], shape=(1, 1, 10), dtype=float32)
""")


MODEL = """
class Model(tf.keras.Model):
  def __init__(self):
    super(Model, self).__init__()
    self.W = tfe.Variable(5., name='weight')
    self.B = tfe.Variable(10., name='bias')
  def predict(self, inputs):
    return inputs * self.W + self.B
"""


def test_variables_and_optimizers(guide: Page) -> None:
    guide.run(MODEL)
    printed = guide.run("""
# A toy dataset of points around 3 * x + 2
NUM_EXAMPLES = 2000
training_inputs = tf.random_normal([NUM_EXAMPLES])
print("inputs : {}".format(training_inputs)) # print inputs
noise = tf.random_normal([NUM_EXAMPLES])
print("noise : {}".format(noise)) # print noise
training_outputs = training_inputs * 3 + 2 + noise

# The loss function to be optimized
def loss(model, inputs, targets):
  error = model.predict(inputs) - targets
  return tf.reduce_mean(tf.square(error))

def grad(model, inputs, targets):
  with tfe.GradientTape() as tape:
    loss_value = loss(model, inputs, targets)
  return tape.gradient(loss_value, [model.W, model.B])

# Define:
# 1. A model.
# 2. Derivatives of a loss function with respect to model parameters.
# 3. A strategy for updating the variables based on the derivatives.
model = Model()
optimizer = tf.train.GradientDescentOptimizer(learning_rate=0.01)

print("Initial loss: {:.3f}".format(loss(model, training_inputs, training_outputs)))

# Training loop
for i in range(300):
  grads = grad(model, training_inputs, training_outputs)
  optimizer.apply_gradients(zip(grads, [model.W, model.B]),
                            global_step=tf.train.get_or_create_global_step())
  if i % 20 == 0:
    print("Loss at step {:03d}: {:.3f}".format(i, loss(model, training_inputs, training_outputs)))

print("Final loss: {:.3f}".format(loss(model, training_inputs, training_outputs)))
print("W = {}, B = {}".format(model.W.numpy(), model.B.numpy()))
""")
    assert printed.startswith("inputs : [") and "noise : [" in printed
    check_regression(printed[printed.index("Initial loss"):], 300)


def test_object_based_saving(guide: Page, folder) -> None:
    guide.shows("""
x = tfe.Variable(10.)

checkpoint = tfe.Checkpoint(x=x)  # save as "x"

x.assign(2.)   # Assign a new value to the variables and save.
save_path = checkpoint.save('./ckpt/')

x.assign(11.)  # Change the variable after saving.

# Restore values from the checkpoint
checkpoint.restore(save_path)

print(x)  # => 2.0
""", "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=2.0>")
    guide.run(MODEL)
    shown = guide.run("""
import os
model = Model()
optimizer = tf.train.AdamOptimizer(learning_rate=0.001)
checkpoint_dir = './ckpt/'
checkpoint_prefix = os.path.join(checkpoint_dir, "ckpt")
root = tfe.Checkpoint(optimizer=optimizer,
                      model=model,
                      optimizer_step=tf.train.get_or_create_global_step())

root.save(file_prefix=checkpoint_prefix)
# or
root.restore(tf.train.latest_checkpoint(checkpoint_dir))
""")
    assert re.fullmatch(r"<[\w.]+\.CheckpointLoadStatus(?: object)? at 0x[0-9a-f]+>\n", shown)
    assert tf.train.latest_checkpoint("./ckpt/") == "./ckpt/ckpt-1"
    guide["model"].W.assign(1.0)
    guide["root"].restore("./ckpt/ckpt-1").assert_consumed()
    assert float(guide["model"].W) == 5.0


def test_metrics(guide: Page) -> None:
    guide.shows("""
m = tfe.metrics.Mean("loss")
m(0)
m(5)
print("m.result() : {}".format(m.result()))  # => 2.5
m([8, 9])
print("m.result() : {}".format(m.result()))  # => 5.5
""", """
m.result() : 2.5
m.result() : 5.5
""")


def test_summaries(guide: Page, folder) -> None:
    tf.train.get_or_create_global_step().assign(0)
    guide.run("logdir, iterations, loss = './tb/', 250, tf.constant(0.5)")  # what the notebook leaves to its reader
    guide.run("""
writer = tf.contrib.summary.create_file_writer(logdir)
global_step=tf.train.get_or_create_global_step()  # return global step var

writer.set_as_default()

for _ in range(iterations):
  global_step.assign_add(1)
  # Must include a record_summaries method
  with tf.contrib.summary.record_summaries_every_n_global_steps(100):
    # your model code goes here
    tf.contrib.summary.scalar('loss', loss)
""")
    guide["writer"].close()
    tf.contrib.summary.create_noop_writer().set_as_default()
    guide["global_step"].assign(0)
    actual = EventAccumulator(str(folder / "tb"))
    actual.Reload()
    assert [(event.step, *event.tensor_proto.float_val) for event in actual.Tensors("loss")] == [(100, 0.5), (200, 0.5)]


SESSION = """
def my_py_func(x):
  x = tf.matmul(x, x)  # You can use tf ops
  print(x)  # but it's eager!
  return x

with tf.Session() as sess:
  x = tf.placeholder(dtype=tf.float32)
  # Call eager function in graph!
  pf = tfe.py_func(my_py_func, [x], tf.float32)
  sess.run(pf, feed_dict={x: [[2.0]]})  # [[4.0]]
"""


def test_a_session_after_enabling_eager_execution(guide: Page) -> None:
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        guide.run(SESSION)


def test_eager_execution_in_a_graph(page: Page) -> None:
    page.run("import tensorflow as tf\nimport tensorflow.contrib.eager as tfe")
    page.shows(SESSION, "tf.Tensor([[4.]], shape=(1, 1), dtype=float32)")


def test_a_shortened_vector(guide: Page) -> None:
    """A long vector prints as the guide's inputs do: three numbers, dots, three numbers."""
    printed = guide.run("""
NUM_EXAMPLES = 2000
training_inputs = tf.random_normal([NUM_EXAMPLES])
print("inputs : {}".format(training_inputs)) # print inputs
""")
    assert printed == f"inputs : {guide['training_inputs'].numpy()}\n"
    assert re.fullmatch(r"inputs : \[ *(-?[\d.]+\s+){3}\.\.\.\s+(-?[\d.]+\s+){2}-?[\d.]+ *\]\n", printed)


def test_variables_are_objects(guide: Page) -> None:
    guide.run("""
with tf.device("CPU:0"):
  v = tfe.Variable(tf.random_normal([1000, 1000]))
  v = None  # v no longer takes up GPU memory
""")


def test_numpy_reads_gradients(guide: Page) -> None:
    """NumPy functions take the tensors that gradient functions return."""
    grads = guide.run("grads = tfe.gradients_function(lambda x: tf.reduce_sum(x * x))(tf.constant([1., 2.]))")
    assert not grads
    np.testing.assert_array_equal(np.multiply(guide["grads"][0], tf.constant([10.0, 10.0])), [20.0, 40.0])
