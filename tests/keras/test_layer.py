"""The base of layers: weights, names, the training flag, masks, losses, configs."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import twofold as tf
from twofold import keras

Layer, Dense = keras.layers.Layer, keras.layers.Dense


@pytest.fixture(autouse=True)
def fresh_names():
    keras.backend.clear_session()


class Affine(Layer):
    """A layer of its own arguments, whose weights are made for a shape."""

    def __init__(self, units, scale=1.0, **kwargs):
        super().__init__(**kwargs)
        self.units, self.scale = units, scale

    def build(self, input_shape):
        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], self.units), initializer="ones")
        self.offset = self.add_weight(name="offset", shape=(self.units,), initializer="zeros", trainable=False)

    def call(self, x):
        return self.scale * tf.matmul(x, self.kernel) + self.offset


def test_weights_are_made_by_the_first_call():
    layer = Affine(2)
    assert not layer.built and layer.weights == []
    assert layer(np.ones((4, 3), np.float32)).numpy().tolist() == [[3.0, 3.0]] * 4
    assert layer.built and [v.name for v in layer.weights] == ["affine/kernel:0", "affine/offset:0"]
    assert [v.name for v in layer.trainable_weights] == ["affine/kernel:0"]
    assert [v.name for v in layer.non_trainable_weights] == ["affine/offset:0"]
    assert layer.count_params() == 8


def test_build_gets_the_shape_and_runs_once():
    shapes = []

    class Noting(Layer):
        def build(self, input_shape):
            shapes.append((tuple(input_shape), input_shape[-1], input_shape.as_list(), self.built))

        def call(self, x):
            return x

    layer = Noting()
    layer(tf.zeros([2, 5]))
    layer(tf.zeros([3, 5]))
    assert shapes == [((2, 5), 5, [2, 5], False)]


def test_build_in_a_traced_function_makes_the_weights_once():
    layer = Affine(2)
    traces = []

    @tf.function
    def f(x):
        traces.append(1)
        return layer(x)

    assert f(tf.ones([1, 3])).numpy().tolist() == [[3.0, 3.0]]
    assert len(layer.weights) == 2 and len(traces) == 1


def test_the_older_forms_of_add_weight():
    layer = Layer(name="old")
    by_variable = layer.add_variable("kernel", [2, 3])
    by_shape = layer.add_weight((4,), "ones")
    assert (by_variable.name, by_variable.dims) == ("old/kernel:0", (2, 3))
    assert by_variable.trainable and np.abs(by_variable.numpy()).max() <= np.sqrt(6 / 5)  # Glorot's limit
    assert by_shape.numpy().tolist() == [1.0] * 4
    assert layer.add_weight("count", dtype="int32").numpy() == 0
    with pytest.raises(ValueError, match="unknown size"):
        layer.add_weight(name="open", shape=(None, 2))


def test_weights_in_the_constructor_and_variables_before_it():
    class Early(keras.Model):
        def __init__(self):
            self.w = tf.Variable(5.0, name="weight")
            super().__init__()
            self.b = self.add_weight(name="bias", shape=(), initializer="ones")

        def call(self, x):
            return self.w * x + self.b

    model = Early()
    assert float(model(tf.constant(2.0))) == 11.0
    assert [v.name for v in model.trainable_variables] == ["early/bias:0", "weight:0"]


def test_layers_in_lists_and_dicts_are_found():
    class Tree(Layer):
        def __init__(self):
            super().__init__()
            self.items = [Dense(2), {"a": Dense(3)}]
            self.named = {"b": Dense(4)}

        def call(self, x):
            for layer in (self.items[0], self.items[1]["a"], self.named["b"]):
                x = layer(x)
            return x

    tree = Tree()
    tree(tf.ones([1, 2]))
    assert [v.dims for v in tree.weights] == [(2, 2), (2,), (2, 3), (3,), (3, 4), (4,)]
    tree.items.append(Dense(5))
    tree.items[-1](tf.ones([1, 2]))
    assert len(tree.weights) == 8
    assert [v.name for v in tree.weights[:2]] == ["tree/dense/kernel:0", "tree/dense/bias:0"]


def test_a_shared_layer_counts_once():
    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = self.second = Dense(3)

        def call(self, x):
            return self.second(self.first(x))

    model = Twice()
    model(tf.ones([1, 3]))
    assert len(model.weights) == 2 and len(model.layers) == 1


def test_frozen_layers_have_no_trainable_weights():
    model = keras.Sequential([keras.Input((3,)), Dense(2), keras.layers.BatchNormalization()])
    assert (len(model.trainable_weights), len(model.non_trainable_weights)) == (4, 2)
    model.layers[0].trainable = False
    assert (len(model.trainable_weights), len(model.non_trainable_weights)) == (2, 4)
    model.trainable = False
    assert (len(model.trainable_weights), len(model.non_trainable_weights)) == (0, 6)
    assert not model.layers[1].trainable
    model.trainable = True
    assert len(model.trainable_weights) == 4


def test_set_weights_changes_nothing_that_it_cannot_change():
    layer = Dense(2)
    layer.build((None, 3))
    before = layer.get_weights()
    with pytest.raises(ValueError, match="expecting 2 weights"):
        layer.set_weights([np.ones((3, 2))])
    with pytest.raises(ValueError, match="not compatible"):
        layer.set_weights([np.ones((3, 2)), np.ones(3)])
    assert all(np.array_equal(a, b) for a, b in zip(before, layer.get_weights(), strict=True))
    layer.set_weights([np.full((3, 2), 2.0), np.ones(2)])
    assert float(tf.reduce_sum(layer.kernel)) == 12.0


def test_the_training_flag_goes_to_layers_within():
    seen = []

    class Leaf(Layer):
        def call(self, x, training=None):
            seen.append(training)
            return x

    class Outer(Layer):
        def __init__(self):
            super().__init__()
            self.leaf = Leaf()

        def call(self, x):
            return self.leaf(x)

    outer = Outer()
    x = tf.ones([1])
    for flag in (True, False, None, True):
        outer(x, training=flag)
    outer(x)
    assert seen == [True, False, None, True, None]
    seen.clear()
    keras.backend.set_learning_phase(1)
    try:
        outer(x)
        outer.leaf(x)
        outer.leaf(x, training=False)
    finally:
        keras.backend.set_learning_phase(None)
    assert seen == [True, True, False]


def test_losses_are_those_of_the_last_call():
    class Penalty(Layer):
        def call(self, x):
            self.add_loss(tf.reduce_sum(x))
            return x

    class Outer(Layer):
        def __init__(self):
            super().__init__()
            self.inner = Penalty()
            self.dense = Dense(1, kernel_initializer="ones", kernel_regularizer=keras.regularizers.L2(0.5))

        def call(self, x):
            return self.dense(self.inner(self.inner(x)))

    layer = Outer()
    for _ in range(2):
        layer(tf.ones([2, 2]))
        assert [float(loss) for loss in layer.losses] == [4.0, 4.0, 1.0]
    tf.function(lambda x: layer(x))(tf.ones([2, 2]))
    assert [float(loss) for loss in layer.losses] == [1.0]  # what a trace added has no value outside of it


def test_activity_regularizers_are_divided_by_the_batch():
    layer = Dense(2, kernel_initializer="ones", activity_regularizer=keras.regularizers.L1(0.1))
    layer(tf.ones([4, 3]))
    assert float(layer.losses[0]) == pytest.approx(0.1 * 4 * 2 * 3 / 4)


def test_masks_go_from_layer_to_layer():
    seen = []

    class Reads(Layer):
        def call(self, x, mask=None):
            seen.append(None if mask is None else mask.numpy().tolist())
            return x

    class Passes(Layer):
        supports_masking = True

        def call(self, x):
            return x * 2

    ids = tf.constant([[1, 2, 0]])
    embedded = keras.layers.Embedding(5, 2, mask_zero=True)(ids)
    Reads()(Passes()(embedded))
    assert seen == [[[True, True, False]]]

    class Drops(Layer):
        def call(self, x):
            return x * 2

    Reads()(Drops()(embedded))
    assert seen[1] is None


def test_inputs_that_do_not_fit_are_told():
    layer = Dense(2, name="head")
    layer(tf.ones([1, 3]))
    with pytest.raises(ValueError, match='Input 0 of layer "head" is incompatible.*value 3.*shape \\(1, 4\\)'):
        layer(tf.ones([1, 4]))
    with pytest.raises(ValueError, match="min_ndim=2, found ndim=1"):
        Dense(2)(tf.ones([3]))
    with pytest.raises(ValueError, match="Unrecognized keyword arguments passed to Dense"):
        Dense(2, unit=3)


def test_a_forgotten_constructor_is_told():
    class Forgetful(Layer):
        def __init__(self):
            pass

    with pytest.raises(RuntimeError, match="forgot to call `super"):
        Forgetful()(tf.ones([1]))


def test_floats_are_cast_to_the_layers_dtype():
    layer = Affine(2)
    assert layer(np.ones((1, 3), np.float64)).dtype == tf.float32
    assert Affine(2, dtype="float64")(np.ones((1, 3), np.float32)).dtype == tf.float64
    seen = []

    class Kinds(Layer):
        def call(self, x):
            seen.append([v.dtype.name for v in tf.nest.flatten(x)])
            return x

    Kinds()({"a": np.ones(2), "b": np.ones(2, np.int64)})
    assert seen == [["float32", "int64"]]


def test_configs_of_arguments_that_are_plain():
    layer = Affine(2, scale=3.0, name="plain")
    config = json.loads(json.dumps(layer.get_config()))
    assert (config["units"], config["scale"], config["name"]) == (2, 3.0, "plain")
    again = Affine.from_config(config)
    assert (again.units, again.scale, again.name) == (2, 3.0, "plain")
    with pytest.raises(NotImplementedError, match="override `get_config"):
        Affine(np.ones(3)).get_config()


def test_copies_share_nothing():
    layer = Affine(2)
    layer(tf.ones([1, 3]))
    other = copy.deepcopy(layer)
    other.kernel.assign_add(tf.ones([3, 2]))
    assert float(tf.reduce_sum(layer.kernel)) == 6.0
    assert other(tf.ones([1, 3])).numpy().tolist() == [[6.0, 6.0]]


def test_control_flow_on_tensors_in_a_users_call():
    class Signed(Layer):
        def call(self, x):
            if tf.reduce_sum(x) > 0:
                y = x
            else:
                y = -x
            return y

    layer = Signed()
    f = tf.function(lambda x: layer(x), fallback=False)
    assert f(tf.constant([-2.0])).numpy().tolist() == [2.0]
    assert f(tf.constant([3.0])).numpy().tolist() == [3.0]


def test_several_inputs_are_built_by_name():
    seen = {}

    class Pair(Layer):
        def build(self, query_shape, value_shape):
            seen.update(query=tuple(query_shape), value=tuple(value_shape))

        def call(self, query, value):
            return query + value

    Pair()(tf.ones([2, 1]), value=tf.ones([2, 3]))
    assert seen == {"query": (2, 1), "value": (2, 3)}


def test_names_count_up_and_may_be_given():
    assert [Dense(1).name, Dense(1).name, Dense(1, name="mine").name] == ["dense", "dense_1", "mine"]
    assert repr(Dense(1, name="head")) == "<Dense name=head, built=False>"
    with pytest.raises(ValueError, match="must be a string"):
        Dense(1, name=3)


def test_dynamic_may_be_set_and_runs_eagerly():
    class Counts(Layer):
        def __init__(self):
            super().__init__()
            self.dynamic = True

        def call(self, x):
            return x * len([v for v in x.numpy() if v > 0])

    assert Counts()(tf.constant([1.0, -1.0, 2.0])).numpy().tolist() == [2.0, -2.0, 4.0]


def test_mixed_precision_reads_weights_in_the_dtype_of_the_computation():
    layer = Dense(2, dtype="mixed_bfloat16")
    x = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)
    y = layer(x)
    assert y.dtype == tf.bfloat16 and layer.kernel.dtype == tf.float32
    want = tf.matmul(tf.cast(x, tf.bfloat16), tf.cast(layer.kernel, tf.bfloat16))
    assert np.array_equal(np.asarray(y, np.float32), np.asarray(want, np.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cast(layer(x), tf.float32))
    assert [g.dtype.name for g in tape.gradient(loss, layer.trainable_weights)] == ["float32", "float32"]


def test_what_is_set_after_a_call_counts_in_the_next():
    layer = Dense(2, kernel_initializer="ones")
    x = tf.ones([1, 3])
    layer(x)
    layer(x)
    layer.activity_regularizer = keras.regularizers.L1(1.0)
    layer(x)
    assert float(layer.losses[0]) == 6.0
    layer.activity_regularizer = None
    layer.call = lambda x: x + 1
    assert layer(x).numpy().tolist() == [[2.0, 2.0, 2.0]]
