"""The notebook of TensorFlow 2.0."""

from __future__ import annotations

import re

import numpy as np
import pytest
from guides.page import Page

import twofold


@pytest.fixture
def guide(page: Page) -> Page:
    page.shows("""
import tensorflow as tf
print(tf.__version__)
tf.executing_eagerly()
""", f"{twofold.__version__}\nTrue")
    return page


def test_operations(guide: Page) -> None:
    guide.shows("""
x = tf.constant([[1, 2, 4, 6], [8, 10, 7, 11]])
x = tf.add(x, 2)
print(x)
print("x:", x.numpy())
""", """
tf.Tensor(
[[ 3  4  6  8]
 [10 12  9 13]], shape=(2, 4), dtype=int32)
x: [[ 3  4  6  8]
 [10 12  9 13]]
""")


def test_control_flow(guide: Page) -> None:
    guide.run("""
import numpy as np
def find_factor(num):
    result = []
    num = tf.convert_to_tensor(num)
    for i in range(1, num.numpy()+1):
        if int(num.numpy()) % i == 0:
            result.append(i)
    return result
""")
    guide.shows("""
result = find_factor(14)
print("all factors:", result)
""", "all factors: [1, 2, 7, 14]")


def test_gradient_of_3x2(guide: Page) -> None:
    guide.shows("""
x = tf.constant(3.0)
with tf.GradientTape() as g:
    g.watch(x)
    y = 3 * x * x
    dy_dx = g.gradient(y, x)
print("计算的梯度为", dy_dx)
""", "计算的梯度为 tf.Tensor(18.0, shape=(), dtype=float32)")


def test_second_call_of_a_tape(guide: Page) -> None:
    with pytest.raises(RuntimeError) as e:
        guide.run("""
x = tf.constant(3.0)
with tf.GradientTape() as g:
    g.watch(x)
    y = 3 * x * x * x
    z = x * x
    dy_dx = g.gradient(y, x)
    dy2_dx2 = g.gradient(z, x)
print("dy_dx: ", dy_dx)
print("dy2_dx2: ", dy2_dx2)
""")
    assert str(e.value) == "GradientTape.gradient can only be called once on non-persistent tapes."


def test_second_derivative_with_a_persistent_tape(guide: Page) -> None:
    guide.shows("""
x = tf.constant(3.0)
with tf.GradientTape(persistent=True) as g:
    g.watch(x)
    y = 3 * x * x * x
    dy_dx = g.gradient(y, x)
    dy2_dx2 = g.gradient(dy_dx, x)
print("dy_dx: ", dy_dx)
print("dy2_dx2: ", dy2_dx2)
""", """
dy_dx:  tf.Tensor(81.0, shape=(), dtype=float32)
dy2_dx2:  tf.Tensor(54.0, shape=(), dtype=float32)
""")


def test_second_derivative_with_two_tapes(guide: Page) -> None:
    guide.shows("""
x = tf.constant(3.0)
with tf.GradientTape() as g:
    g.watch(x)
    with tf.GradientTape() as gg:
        gg.watch(x)
        y = 3 * x * x * x
    dy_dx = gg.gradient(y, x)     # Will compute to 81.0
d2y_dx2 = g.gradient(dy_dx, x)  # Will compute to 54.0
print("dy_dx: ", dy_dx)
print("d2y_dx2", d2y_dx2)
""", """
dy_dx:  tf.Tensor(81.0, shape=(), dtype=float32)
d2y_dx2 tf.Tensor(54.0, shape=(), dtype=float32)
""")


def test_the_text_on_tapes(guide: Page) -> None:
    """What the notebook says of arguments, without code: integers, unwatched variables, unconnected sources."""
    guide.run("""
n, x, v, w = tf.constant(3), tf.constant(3.0), tf.Variable(2.0), tf.Variable(2.0)
with tf.GradientTape(persistent=True, watch_accessed_variables=False) as g:
    g.watch([n, x, w])
    y = x * v * w
    m = n * n
""")
    guide.shows("g.gradient(m, n)", "")
    guide.shows("print(g.gradient(y, [x, v, w]))", """
[<tf.Tensor: shape=(), dtype=float32, numpy=4.0>, None, <tf.Tensor: shape=(), dtype=float32, numpy=6.0>]
""")
    guide.shows("print(g.gradient(target=y, sources=v, output_gradients=None, "
                "unconnected_gradients=tf.UnconnectedGradients.NONE))", "None")
    guide.shows("print(g.gradient(y, v, unconnected_gradients='zero'))", "tf.Tensor(0.0, shape=(), dtype=float32)")
    guide.shows("print(g.gradient(y, {'x': x}, output_gradients=tf.constant(10.0)))", """
{'x': <tf.Tensor: shape=(), dtype=float32, numpy=40.0>}
""")


def test_optimisation(guide: Page) -> None:
    guide.run("""
class SimLayers(tf.keras.Model):
    def __init__(self):
        self.w = tf.Variable(tf.random.normal((6, 1)))
        self.b = tf.Variable(tf.random.normal([10]))
        super(SimLayers, self).__init__()

    def call(self, inputs):
        output = tf.add(tf.matmul(inputs, self.w), self.b)
        output = tf.keras.activations.sigmoid(output)
        return output
""")
    printed = guide.run("""
x = tf.random.normal(shape=(10, 6))
y = tf.random.normal([10])
## 对x进行加噪声处理
x = tf.multiply(x, 2.5) + tf.random.normal(shape=(10, 6))
print("input x shape: ", x.shape)

## 加载模型
model = SimLayers()
## 优化器
optimizer = tf.keras.optimizers.SGD(learning_rate=0.01)

## 训练过程
for i in range(500):
    ## 计算梯度
    with tf.GradientTape() as tape:
        ## 计算loss
        loss = model(x) - y
        losses = tf.reduce_mean(tf.square(loss))
        grad = tape.gradient(losses, [model.w, model.b])
    optimizer.apply_gradients(zip(grad, [model.w, model.b]))
    if (i+1) % 10 == 0:
        print("step: {} loss: {}". format(i+1, losses))

print("optimizer weights: {}".format(model.w.numpy()))
print("optimizer bias: {}".format(model.b.numpy()))
""")
    assert printed.startswith("input x shape:  (10, 6)\nstep: 10 loss: ")
    found = [(int(step), float(loss)) for step, loss in re.findall(r"^step: (\d+) loss: (\S+)$", printed, re.M)]
    assert [step for step, _ in found] == list(range(10, 501, 10))
    assert all(later[1] < earlier[1] for earlier, later in zip(found, found[1:], strict=False))
    weights = re.search(r"optimizer weights: ([^o]+)optimizer bias: (.+)$", printed, re.S)
    assert weights and weights[1].strip() == str(guide["model"].w.numpy())
    assert weights[2].strip() == str(guide["model"].b.numpy())


CNN = """
## 28x28x1
def CNNModel():
    model = tf.keras.Sequential()
    model.add(tf.keras.layers.Conv2D(64, 3, kernel_initializer='he_normal', strides=1, activation='relu', padding='same',
                                         name="conv1"))
    model.add(tf.keras.layers.MaxPool2D((2, 2), strides=2, padding='valid', name="pool1"))
    model.add(tf.keras.layers.Conv2D(128, 3, kernel_initializer="he_normal", strides=1, activation="relu", padding="same",
                                    name="conv2"))
    model.add(tf.keras.layers.MaxPool2D((2, 2), strides=2, padding="valid", name="pool2"))
    model.add(tf.keras.layers.Conv2D(128, 3, kernel_initializer="he_normal", strides=1, activation="relu", padding="same",
                                    name="conv3"))
    model.add(tf.keras.layers.MaxPool2D((2, 2), strides=2, padding="valid", name="pool3"))
    model.add(tf.keras.layers.Flatten())
    model.add(tf.keras.layers.Dense(128, activation="relu", kernel_initializer="he_normal"))
    model.add(tf.keras.layers.Dense(10, activation='softmax',kernel_initializer='he_normal'))

    model.compile(loss='categorical_crossentropy', optimizer='adam', metrics=['accuracy'])
    return model
"""  # noqa: E501  as the notebook has it

TRAINING = {"gpu": """
import time
def train_gpu():
    (train_data, train_label), (test_data, test_label) = tf.keras.datasets.mnist.load_data()
    ## 转换数据格式
    train_data = train_data.astype('float32')/255
    test_data = test_data.astype("float32")/255

    ## 对label进行one-hot编码
    train_label = tf.keras.utils.to_categorical(train_label, 10)
    train_label = tf.convert_to_tensor(train_label)
    test_label = tf.keras.utils.to_categorical(test_label, 10)
    test_label= tf.convert_to_tensor(test_label)

    ##增加维度
    train_data = tf.expand_dims(train_data, -1)
    test_data = tf.expand_dims(test_data, -1)
    print("train data shape", train_data.shape)
    model = CNNModel()

    my_callbacks = [tf.keras.callbacks.ModelCheckpoint('./logs/cnn_model.h5', verbose=1),
                    tf.keras.callbacks.EarlyStopping(monitor='val_accuracy', patience=2, mode='max')]
    ## 训练模型
    with tf.device("/gpu:0"):
        start_time = time.time()
        model.fit(train_data, train_label, batch_size=64, verbose=1, epochs=3, callbacks=my_callbacks,
                  validation_data=(test_data, test_label)) #
        diff = time.time() - start_time
    return diff
""", "cpu": """
def train_cpu():
    (train_data, train_label), (test_data, test_label) = tf.keras.datasets.mnist.load_data()
    ## 转换数据格式
    train_data = train_data.astype('float32')/255
    test_data = test_data.astype("float32")/255

    ##增加维度
    train_data = tf.expand_dims(train_data, -1)
    test_data = tf.expand_dims(test_data, -1)
    print("train data shape", train_data.shape)
    ## 对label进行one-hot编码
    train_label = tf.one_hot(train_label, 10)
    test_label = tf.one_hot(test_label, 10)

    model = CNNModel()

    my_callbacks = [tf.keras.callbacks.ModelCheckpoint('./logs/cnn_model.h5', verbose=1),
                    tf.keras.callbacks.EarlyStopping(monitor='val_accuracy', patience=2, mode='max')]
    ## 训练模型
    with tf.device("/cpu:0"):
        start_time = time.time()
        model.fit(train_data, train_label, batch_size=64, verbose=1, epochs=3, callbacks=my_callbacks,
                  validation_data=(test_data, test_label))
        diff = time.time() - start_time

    return diff
"""}


def test_training_a_network(guide: Page, mnist: list[str], folder) -> None:
    guide.run(CNN)
    guide.run(TRAINING["gpu"])
    guide.run(TRAINING["cpu"])
    printed = guide.run("""
gpu_time = train_gpu()
cpu_time = train_cpu()
print("gpu training takes time: ", gpu_time)
print("cpu training takes time: ", cpu_time)
""")
    lines = printed.splitlines()
    assert lines.count("train data shape (640, 28, 28, 1)") == 2
    for epoch in (1, 2, 3):
        assert lines.count(f"Epoch {epoch}/3") == 2
        assert len(re.findall(rf"^Epoch 0*{epoch}: saving model to \./logs/cnn_model\.h5$", printed, re.M)) == 2
    for line, device in zip(lines[-2:], ("gpu", "cpu"), strict=True):
        assert re.fullmatch(rf"{device} training takes time:  [0-9.e-]+", line)
    accuracies = [float(x) for x in re.findall(r"val_accuracy: (\S+)", printed)]
    assert accuracies[-1] > 0.5

    model = guide["tf"].keras.models.load_model(folder / "logs" / "cnn_model.h5")
    _, (x, y) = guide["tf"].keras.datasets.mnist.load_data()
    right = model.predict(x[..., np.newaxis] / np.float32(255), verbose=0).argmax(axis=1) == y
    assert float(right.mean()) == pytest.approx(accuracies[-1], abs=6e-5)  # it prints four digits
