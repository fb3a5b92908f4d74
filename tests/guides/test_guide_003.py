"""The guide of TensorFlow 1.14."""

from __future__ import annotations

import re
import tempfile

import numpy as np
import pytest
from guides.page import FIZZBUZZ, Page, check_regression
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import twofold as tf

SETUP = """
from __future__ import absolute_import, division, print_function, unicode_literals

import tensorflow as tf

tf.enable_eager_execution()
"""


@pytest.fixture
def guide(page: Page) -> Page:
    page.run(SETUP)
    page.run("tfe = tf.contrib.eager")
    return page


def test_setup_and_basic_usage(guide: Page) -> None:
    guide.shows("tf.executing_eagerly()", "True")
    guide.shows("""
x = [[2.]]
m = tf.matmul(x, x)
print("hello, {}".format(m))
""", "hello, [[4.]]")


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
    guide.run("""
# Use NumPy values
import numpy as np
c = np.multiply(a, b)
""")
    guide.shows("print(c)", """
[[ 2  6]
 [12 20]]
""")
    guide.shows("""
# Obtain numpy value from a tensor:
print(a.numpy())
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
print(grad) # => tf.Tensor([[ 2.]], shape=(1, 1), dtype=float32)
""", "tf.Tensor([[2.]], shape=(1, 1), dtype=float32)")


def test_variables_are_objects(guide: Page) -> None:
    guide.run("""
if tf.test.is_gpu_available():
    with tf.device("gpu:0"):
        v = tf.Variable(tf.random_normal([1000, 1000]))
        v = None # v no longer takes up GPU memory
""")


def test_a_layer(guide: Page) -> None:
    guide.run("""
class MySimpleLayer(tf.keras.layers.Layer):
    def __init__(self, output_units):
        super(MySimpleLayer, self).__init__()
        self.output_units = output_units

    def build(self, input_shape):
        # The build method gets called the first time your layer is used.
        self.kernel = self.add_variable(
            "kernel", [input_shape[-1], self.output_units])

    def call(self, input):
        # Override call() instead of __call__ so we can perform some bookkeeping.
        return tf.matmul(input, self.kernel)
""")
    layer = guide["MySimpleLayer"](3)
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    y = layer(tf.constant(x))
    np.testing.assert_allclose(y, x @ layer.kernel.numpy(), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`:UserWarning")  # Keras 3 says so, the guide does it
def test_models(guide: Page) -> None:
    guide.run("""
model = tf.keras.Sequential([
    tf.keras.layers.Dense(10, input_shape=(784,)), # must declare input shape
    tf.keras.layers.Dense(10)
])
""")
    assert guide["model"].count_params() == 784 * 10 + 10 + 10 * 10 + 10
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
        result = self.dense2(result) # reuse variables from dense2 layer
        return result

model = MNISTModel()
""")
    assert guide["model"](tf.zeros([1, 784])).numpy().tolist() == [[0.0] * 10]
    assert len(guide["model"].trainable_variables) == 4


def test_training_a_model(guide: Page, mnist: list[str], folder) -> None:
    printed = guide.run("""
# Fetch and format the mnist data
(mnist_images, mnist_labels), _ = tf.keras.datasets.mnist.load_data()

dataset = tf.data.Dataset.from_tensor_slices(
    (tf.cast(mnist_images[...,tf.newaxis]/255, tf.float32),
     tf.cast(mnist_labels,tf.int64)))
dataset = dataset.shuffle(1000).batch(32)

# Build the model
mnist_model = tf.keras.Sequential([
    tf.keras.layers.Conv2D(16,[3,3], activation='relu'),
    tf.keras.layers.Conv2D(16,[3,3], activation='relu'),
    tf.keras.layers.GlobalAveragePooling2D(),
    tf.keras.layers.Dense(10)
])
""")
    assert printed.startswith("Downloading data from http://127.0.0.1:") and mnist == ["/mnist.npz"]
    printed = guide.run("""
for images,labels in dataset.take(1):
    print("Logits: ", mnist_model(images[0:1]).numpy())
""")
    assert printed.startswith("Logits:  [[") and len(printed.replace("[", " ").replace("]", " ").split()) == 11
    before = [v.numpy() for v in guide["mnist_model"].trainable_variables]
    steps = int(tf.train.get_or_create_global_step())
    printed = guide.run("""
optimizer = tf.train.AdamOptimizer()

loss_history = []

for (batch, (images, labels)) in enumerate(dataset.take(400)):
    if batch % 10 == 0:
        print('.', end='')
    with tf.GradientTape() as tape:
        logits = mnist_model(images, training=True)
        loss_value = tf.losses.sparse_softmax_cross_entropy(labels, logits)

    loss_history.append(loss_value.numpy())
    grads = tape.gradient(loss_value, mnist_model.trainable_variables)
    optimizer.apply_gradients(zip(grads, mnist_model.trainable_variables),
                              global_step=tf.train.get_or_create_global_step())
""")
    assert printed == ".."  # the 640 images of the small file make 20 batches
    assert int(tf.train.get_or_create_global_step()) == steps + 20
    assert all(2.2 < loss < 2.4 for loss in guide["loss_history"]) and len(guide["loss_history"]) == 20
    # Adam (Kingma and Ba, 2015) moves a weight by about its rate a step while the gradient keeps its sign.
    moved = [np.abs(v.numpy() - old).max() for v, old in zip(guide["mnist_model"].trainable_variables, before,
                                                            strict=True)]
    assert all(0.002 < most < 0.0201 for most in moved)
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
training_inputs = tf.random_normal([NUM_EXAMPLES])
noise = tf.random_normal([NUM_EXAMPLES])
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
"""), 300)


def test_object_based_saving(guide: Page, folder) -> None:
    guide.run("""
x = tf.Variable(10.)

checkpoint = tf.train.Checkpoint(x=x)
""")
    guide.shows("""
x.assign(2.) # Assign a new value to the variables and save.
checkpoint_path = './ckpt/'
checkpoint.save('./ckpt/')
""", "'./ckpt/-1'")
    guide.shows("""
x.assign(11.) # Change the variable after saving.

# Restore values from the checkpoint
checkpoint.restore(tf.train.latest_checkpoint(checkpoint_path))

print(x) # => 2.0
""", "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=2.0>")


def test_saving_a_model(guide: Page, folder, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    shown = guide.run("""
import os
import tempfile

model = tf.keras.Sequential([
    tf.keras.layers.Conv2D(16, [3,3], activation='relu'),
    tf.keras.layers.GlobalAveragePooling2D(),
    tf.keras.layers.Dense(10)
])
optimizer = tf.train.AdamOptimizer(learning_rate=0.001)
checkpoint_dir = tempfile.mkdtemp()
checkpoint_prefix = os.path.join(checkpoint_dir, "ckpt")
root = tf.train.Checkpoint(optimizer=optimizer,
                           model=model,
                           optimizer_step=tf.train.get_or_create_global_step())

root.save(checkpoint_prefix)
root.restore(tf.train.latest_checkpoint(checkpoint_dir))
""")
    assert re.fullmatch(r"<[\w.]+\.CheckpointLoadStatus(?: object)? at 0x[0-9a-f]+>\n", shown)
    step = guide["root"].optimizer_step
    step.assign(41)
    path = guide["root"].save(guide["checkpoint_prefix"])
    step.assign(0)
    guide["root"].restore(path).assert_consumed()
    assert int(step) == 41
    step.assign(0)


def test_metrics(guide: Page) -> None:
    guide.run("""
m = tfe.metrics.Mean("loss")
m(0)
m(5)
""")
    guide.shows("m.result() # => 2.5", "<tf.Tensor: shape=(), dtype=float64, numpy=2.5>")
    guide.run("m([8, 9])")
    guide.shows("m.result() # => 5.5", "<tf.Tensor: id=62547, shape=(), dtype=float64, numpy=5.5>")


def test_summaries(guide: Page, folder) -> None:
    tf.train.get_or_create_global_step().assign(95)
    guide.run("""
global_step = tf.train.get_or_create_global_step()

logdir = "./tb/"
writer = tf.contrib.summary.create_file_writer(logdir)
writer.set_as_default()

for _ in range(10):
    global_step.assign_add(1)
    # Must include a record_summaries method
    with tf.contrib.summary.record_summaries_every_n_global_steps(100):
        # your model code goes here
        tf.contrib.summary.scalar('global_step', global_step)
""")
    guide["writer"].close()
    tf.contrib.summary.create_noop_writer().set_as_default()
    guide["global_step"].assign(0)
    [events] = (folder / "tb").iterdir()
    assert re.fullmatch(r"events\.out\.tfevents\.\d+\..+\.v2", events.name)
    actual = EventAccumulator(str(events))
    actual.Reload()
    [event] = actual.Tensors("global_step")
    assert event.step == 100 and list(event.tensor_proto.float_val) == [100.0]


def test_dynamic_models(guide: Page) -> None:
    guide.run("""
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
""")
    x = tf.constant([4.0, -2.0])
    history = []
    for _ in range(6):
        x, value = guide["line_search_step"](lambda x: tf.reduce_sum((x - 1.0) * (x - 1.0) * [1.0, 3.0]), x)
        history.append(float(value))
    assert history == sorted(history, reverse=True)
    assert history[-1] < 0.05 * 36  # the value at the start


def test_gradient_functions(guide: Page) -> None:
    guide.run("""
def square(x):
    return tf.multiply(x, x)

grad = tfe.gradients_function(square)
""")
    guide.shows("square(3.).numpy()", "9.0")
    guide.shows("grad(3.)[0].numpy()", "6.0")
    guide.shows("""
# The second-order derivative of square:
gradgrad = tfe.gradients_function(lambda x: grad(x)[0])
gradgrad(3.)[0].numpy()
""", "2.0")
    guide.shows("""
# The third-order derivative is None:
gradgradgrad = tfe.gradients_function(lambda x: gradgrad(x)[0])
gradgradgrad(3.)
""", "[None]")
    guide.run("""
# With flow control:
def abs(x):
    return x if x > 0. else -x

grad = tfe.gradients_function(abs)
""")
    guide.shows("grad(3.)[0].numpy()", "1.0")
    guide.shows("grad(-3.)[0].numpy()", "-1.0")


def test_values_and_gradients(guide: Page) -> None:
    """What the guide says of `value_and_gradients_function`, without code."""
    guide.shows("""
value, grads = tfe.value_and_gradients_function(lambda x, y: x * x * y)(3., 2.)
print(value.numpy(), [g.numpy() for g in grads])
""", "18.0 [12.0, 9.0]")


def test_clipping_a_gradient(guide: Page) -> None:
    guide.run("""
@tf.custom_gradient
def clip_gradient_by_norm(x, norm):
    y = tf.identity(x)
    def grad_fn(dresult):
        return [tf.clip_by_norm(dresult, norm), None]
    return y, grad_fn
""")
    loss = tf.contrib.eager.gradients_function(
        lambda x: tf.reduce_sum(guide["clip_gradient_by_norm"](x, 0.5) * [3.0, 4.0]))
    np.testing.assert_allclose(loss(tf.constant([1.0, 2.0]))[0], [0.3, 0.4], rtol=1e-6)


def test_custom_gradients(guide: Page) -> None:
    guide.run("""
def log1pexp(x):
    return tf.log(1 + tf.exp(x))
grad_log1pexp = tfe.gradients_function(log1pexp)
""")
    guide.shows("""
# The gradient computation works fine at x = 0.
grad_log1pexp(0.0).numpy()
""", "0.5")
    guide.shows("""
# However, x = 100 fails because of numerical instability.
grad_log1pexp(100.0).numpy()
""", "nan")
    guide.shows("""
@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    def grad(dy):
        return dy * (1 - 1 / (1 + e))
    return tf.log(1 + e), grad

grad_log1pexp = tfe.gradients_function(log1pexp)

# As before, the gradient computation works fine at x = 0.
grad_log1pexp(0.0)[0].numpy()
""", "0.5")
    guide.shows("""
# And the gradient computation also works at x = 100.
grad_log1pexp(100.0)[0].numpy()
""", "1.0")


def test_copies_on_devices(guide: Page) -> None:
    guide.run("""
if tf.test.is_gpu_available():
    x = tf.random_normal([10, 10])

    x_gpu0 = x.gpu()
    x_cpu = x.cpu()

    _ = tf.matmul(x_cpu, x_cpu)    # Runs on CPU
    _ = tf.matmul(x_gpu0, x_gpu0)  # Runs on GPU:0

if tfe.num_gpus() > 1:
    x_gpu1 = x.gpu(1)
    _ = tf.matmul(x_gpu1, x_gpu1)  # Runs on GPU:1
""")


def test_measuring(guide: Page) -> None:
    printed = guide.run("""
import time

def measure(x, steps):
    # TensorFlow initializes a GPU the first time it's used, exclude from timing.
    tf.matmul(x, x)
    start = time.time()
    for i in range(steps):
        x = tf.matmul(x, x)
    # tf.matmul can return before completing the matrix multiplication
    # (e.g., can return after enqueueing the operation on a CUDA stream).
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
    print("CPU: {} secs".format(measure(tf.random_normal(shape), steps)))

# Run on GPU, if available:
if tfe.num_gpus() > 0:
    with tf.device("/gpu:0"):
        print("GPU: {} secs".format(measure(tf.random_normal(shape), steps)))
else:
    print("GPU: not found")
""", {"steps = 200": "steps = 4"})
    assert re.fullmatch(r"Time to multiply a \(1000, 1000\) matrix by itself 4 times:\nCPU: \S+ secs\n"
                        r"GPU: not found\n", printed)


def test_eager_execution_in_a_graph(page: Page) -> None:
    """In a process that has not asked for eager execution."""
    page.run("import tensorflow as tf\ntfe = tf.contrib.eager")
    page.shows("""
def my_py_func(x):
    x = tf.matmul(x, x) # You can use tf ops
    print(x) # but it's eager!
    return x

with tf.Session() as sess:
    x = tf.placeholder(dtype=tf.float32)
    # Call eager function in graph!
    pf = tfe.py_func(my_py_func, [x], tf.float32)
    sess.run(pf, feed_dict={x: [[2.0]]}) # [[4.0]]
""", "tf.Tensor([[4.]], shape=(1, 1), dtype=float32)")
