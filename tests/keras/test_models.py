"""Models three ways: sequential, functional, subclassed; their tables, pictures and configs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import twofold as tf
from twofold import keras

layers = keras.layers


@pytest.fixture(autouse=True)
def fresh_names():
    keras.backend.clear_session()


# -- sequential -----------------------------------------------------------------------------------
def test_a_sequential_with_an_input_shape_has_weights_at_once():
    model = keras.Sequential([layers.Dense(4, input_shape=(3,)), layers.Dense(2)])
    assert [v.name for v in model.weights] == ["dense/kernel:0", "dense/bias:0", "dense_1/kernel:0", "dense_1/bias:0"]
    assert (model.input_shape, model.output_shape) == ((None, 3), (None, 2))
    assert model.layers[1].output.shape == (None, 2)


def test_a_sequential_without_one_is_built_by_its_first_call():
    model = keras.Sequential([layers.Dense(4), layers.Dense(2)])
    assert model.weights == [] and not model.built
    assert model(np.ones((5, 3), np.float32)).shape == (5, 2)
    assert model.built and model.input_shape == (None, 3)
    assert model.count_params() == 4 * 3 + 4 + 2 * 4 + 2


def test_layers_are_added_indexed_and_taken_off():
    model = keras.Sequential(name="stack")
    model.add(keras.Input((3,)))
    model.add(layers.Dense(4, name="a"))
    model.add(layers.Dense(2, name="b"))
    assert len(model) == 2 and model[1].name == "b" and model.get_layer("a").units == 4
    assert model.pop().name == "b"
    assert model.output_shape == (None, 4) and len(model.weights) == 2
    with pytest.raises(ValueError, match="unique names"):
        model.add(layers.Dense(1, name="a"))
    with pytest.raises(ValueError, match="Only instances of"):
        model.add(3)
    with pytest.raises(ValueError, match="No such layer: c"):
        model.get_layer("c")


def test_a_sequential_in_a_sequential():
    inner = keras.Sequential([keras.Input((3,)), layers.Dense(4)])
    model = keras.Sequential([inner, layers.Dense(2)])
    assert model.input_shape == (None, 3)
    x = np.ones((2, 3), np.float32)
    assert np.array_equal(model(x), model.layers[1](inner(x)))


# -- functional -----------------------------------------------------------------------------------
def branched():
    a, b = keras.Input((8,), name="a"), keras.Input((4,), name="b")
    shared = layers.Dense(4, name="shared")
    joined = layers.Concatenate(name="joined")([shared(a), b])
    return keras.Model([a, b], [layers.Dense(2, name="head")(joined), shared(a)], name="branched")


def test_several_inputs_outputs_and_a_shared_layer():
    model = branched()
    assert [layer.name for layer in model.layers] == ["a", "shared", "b", "joined", "head"]  # Keras's order
    assert (model.input_names, model.output_names) == (["a", "b"], ["head", "shared"])
    assert len(model.weights) == 4
    xa, xb = np.random.rand(3, 8).astype(np.float32), np.random.rand(3, 4).astype(np.float32)
    head, shared = model([xa, xb])
    w, c = model.get_layer("shared").get_weights()
    v, d = model.get_layer("head").get_weights()
    assert np.allclose(shared, xa @ w + c, atol=1e-6)
    assert np.allclose(head, np.concatenate([xa @ w + c, xb], -1) @ v + d, atol=1e-6)
    by_name = model({"b": xb, "a": xa})
    assert np.array_equal(by_name[0], head)


def test_structures_of_inputs_and_outputs():
    x = {"left": keras.Input((2,)), "right": keras.Input((2,))}
    model = keras.Model(x, {"sum": layers.Add()([x["left"], x["right"]]), "pair": (x["left"] * 2, x["right"])})
    out = model({"right": tf.ones([1, 2]), "left": tf.zeros([1, 2])})
    assert sorted(out) == ["pair", "sum"] and out["sum"].numpy().tolist() == [[1.0, 1.0]]
    assert isinstance(out["pair"], tuple)


def test_operators_on_symbolic_tensors():
    x = keras.Input((3,))
    y = (1 - x) * x[:, :1] / 2 + x ** 2
    assert y.shape == (None, 3) and y.dtype == tf.float32
    value = np.array([[1.0, 2.0, 3.0]], np.float32)
    want = (1 - value) * value[:, :1] / 2 + value ** 2
    assert np.allclose(keras.Model(x, y)(value), want)
    assert (x > 1).dtype == tf.bool


def test_functions_of_tf_on_symbolic_tensors():
    x = keras.Input((4, 3))
    joined = tf.concat([tf.nn.relu(x - 0.5), 2 * x], axis=-1)
    rows = tf.reshape(tf.reduce_mean(joined, axis=1), [-1, 2, 3])
    spread = tf.math.reduce_std(tf.matmul(rows, rows, transpose_b=True), axis=[1, 2])
    kept = tf.where(spread > 0.1, tf.constant(1.0) * spread, tf.zeros_like(spread))
    y = layers.Dense(2)(tf.stack([spread, kept], axis=1))
    assert joined.shape == (None, 4, 6) and spread.shape == (None,) and y.shape == (None, 2)
    model = keras.Model(x, y)
    value = np.random.RandomState(0).rand(5, 4, 3).astype(np.float32)
    both = np.concatenate([np.maximum(value - 0.5, 0), 2 * value], -1).mean(1).reshape(-1, 2, 3)
    std = (both @ both.transpose(0, 2, 1)).std((1, 2))
    want = np.stack([std, np.where(std > 0.1, std, 0)], 1) @ model.weights[0].numpy()
    assert np.allclose(model(value), want, atol=1e-5)
    again = keras.models.model_from_json(model.to_json())
    again.set_weights(model.get_weights())
    assert np.array_equal(again(value), model(value))
    with pytest.raises(TypeError, match="takes from 1 to 2 positional"):
        tf.nn.relu(x, 1, 2, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="add"):
        tf.add(x, tf.zeros([7, 7]))
    config = model.get_config()
    next(c for c in config["layers"] if c["class_name"] == "TFOpLambda")["config"]["function"] = "os.system"
    with pytest.raises(ValueError, match="Unknown function of tf"):
        keras.Model.from_config(config)


def test_users_layers_are_traced_for_their_shapes():
    class Doubled(layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(5)

        def call(self, x):
            return {"twice": tf.concat([x, x], -1), "dense": self.dense(x)}

    x = keras.Input((3,))
    out = Doubled()(x)
    assert out["twice"].shape == (None, 6) and out["dense"].shape == (None, 5)
    model = keras.Model(x, out["dense"])
    assert len(model.weights) == 2


def test_parts_of_a_model_make_another():
    model = keras.Sequential([layers.Dense(4, input_shape=(3,), name="first"), layers.Dense(2)])
    part = keras.Model(model.inputs, model.get_layer("first").output)
    x = np.ones((1, 3), np.float32)
    assert np.array_equal(part([x]), model.layers[0](x))
    assert part.weights[0] is model.weights[0]


def test_disconnected_graphs_are_told():
    x, other = keras.Input((3,)), keras.Input((3,), name="other")
    y = layers.Add()([layers.Dense(3)(x), other])
    with pytest.raises(ValueError, match="not connected to `outputs`.*'other'"):
        keras.Model(x, y)
    with pytest.raises(ValueError, match="used 2 times"):
        keras.Model(x, layers.Dense(1, name="same")(layers.Dense(1, name="same")(x)))
    with pytest.raises(TypeError, match="has no value"):
        np.asarray(x)


# -- subclasses -----------------------------------------------------------------------------------
class Block(keras.Model):
    def __init__(self, units=4, name=None):
        super().__init__(name=name)
        self.units = units
        self.first = layers.Dense(units)
        self.norm = layers.BatchNormalization()

    def call(self, x, training=None):
        return self.norm(self.first(x), training=training)


def test_subclasses_are_built_by_a_call_or_a_shape():
    model = Block()
    model.build((None, 3))
    assert [v.name for v in model.weights][:2] == ["block/dense/kernel:0", "block/dense/bias:0"]
    assert len(model.weights) == 6 and [layer.name for layer in model.layers] == ["dense", "batch_normalization"]
    called = Block()
    called(tf.ones([2, 3]))
    assert [v.dims for v in called.weights] == [v.dims for v in model.weights]
    again = Block.from_config(model.get_config())
    assert again.units == 4


def test_a_functional_model_of_a_class_of_ones_own():
    class Custom(keras.Model):
        def extra(self):
            return len(self.layers)

    x = keras.Input((3,))
    model = Custom(x, layers.Dense(2)(x), name="custom")
    assert model.extra() == 2 and model.output_shape == (None, 2) and type(model) is Custom


def test_a_model_used_as_a_container_and_with_a_predict_of_its_own():
    class Holder(keras.Model):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(5.0)

        def predict(self, inputs):
            return self.w * inputs

    assert float(Holder().predict(tf.constant(2.0))) == 10.0
    with pytest.raises(NotImplementedError, match="does not have a `call"):
        Holder()(tf.ones([1, 1]))


# -- configs, tables, pictures --------------------------------------------------------------------
@pytest.mark.parametrize("make", [branched, lambda: keras.Sequential(
    [keras.Input((8,)), layers.Dense(3, "relu"), layers.Dropout(0.5)], name="stack")])
def test_configs_make_equal_models(make):
    model = make()
    again = keras.models.model_from_json(json.dumps(json.loads(model.to_json())))
    assert again.name == model.name and [x.name for x in again.layers] == [x.name for x in model.layers]
    assert json.loads(again.to_json()) == json.loads(model.to_json())
    again.set_weights(model.get_weights())
    data = [np.ones((2, *x.shape[1:]), np.float32) for x in model.inputs]
    one, other = model(data if len(data) > 1 else data[0]), again(data if len(data) > 1 else data[0])
    assert all(np.array_equal(a, b) for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True))


def test_clones_take_inputs_and_ways_to_call_layers():
    shared = layers.Dense(3, name="shared")
    entry = keras.Input((3,), name="entry")
    model = keras.Model(entry, shared(shared(entry)))
    given, called = keras.Input((3,), batch_size=2, name="given"), []

    def call(layer, *args, **kwargs):
        called.append(layer.name)
        return layer(*args, **kwargs)

    clone = keras.models.clone_model(model, input_tensors=given, call_function=call)
    assert clone.output_shape == (2, 3) and called == ["shared", "shared"] and len(clone.weights) == 2
    assert [layer.name for layer in clone.layers] == ["given", "shared"]
    inner = keras.Sequential([keras.Input((3,)), layers.Dense(3, name="deep")], name="inner")
    outer, seen = keras.Model(entry, inner(entry)), []

    def remade(layer):
        seen.append(layer.name)
        return type(layer).from_config(layer.get_config())

    keras.models.clone_model(outer, clone_function=remade)
    keras.models.clone_model(outer, clone_function=remade, recursive=True)
    assert seen == ["inner", "deep"]
    with pytest.raises(ValueError, match="1 inputs"):
        keras.models.clone_model(model, input_tensors=[given, given])
    with pytest.raises(ValueError, match="functional models"):
        keras.models.clone_model(inner, call_function=call)


def test_clones_have_weights_of_their_own():
    model = branched()
    clone = keras.models.clone_model(model, clone_function=lambda layer: type(layer).from_config(layer.get_config()))
    assert [v.dims for v in clone.weights] == [v.dims for v in model.weights]
    assert not {id(v) for v in clone.weights} & {id(v) for v in model.weights}


SUMMARY = """\
Model: "sequential"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ dense (Dense)                   │ (None, 1000)           │         4,000 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ batch_normalization             │ (None, 1000)           │         4,000 │
│ (BatchNormalization)            │                        │               │
└─────────────────────────────────┴────────────────────────┴───────────────┘
 Total params: 8,000 (31.25 KB)
 Trainable params: 6,000 (23.44 KB)
 Non-trainable params: 2,000 (7.81 KB)
"""

# as Keras 3 prints it
CONNECTED = """\
Model: "two"
┏━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━━━━━━━━┳━━━━━━━┓
┃ Layer (type)      ┃ Output Shape    ┃   Param # ┃ Connected to   ┃ Trai… ┃
┡━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━━━━━━━━╇━━━━━━━┩
│ a (InputLayer)    │ (None, 8)       │         0 │ -              │   -   │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│ b (InputLayer)    │ (None, 8)       │         0 │ -              │   -   │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│ shared (Dense)    │ (None, 8)       │        72 │ a[0][0],       │   N   │
│                   │                 │           │ b[0][0]        │       │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│ add (Add)         │ (None, 8)       │         0 │ shared[0][0],  │   -   │
│                   │                 │           │ shared[1][0]   │       │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│ batch_normalizat… │ (None, 8)       │        32 │ add[0][0]      │   Y   │
│ (BatchNormalizat… │                 │           │                │       │
├───────────────────┼─────────────────┼───────────┼────────────────┼───────┤
│ out (Dense)       │ (None, 1)       │         9 │ batch_normali… │   Y   │
└───────────────────┴─────────────────┴───────────┴────────────────┴───────┘
 Total params: 113 (452.00 B)
 Trainable params: 25 (100.00 B)
 Non-trainable params: 88 (352.00 B)
"""


def test_the_summary(capsys):
    keras.Sequential([keras.Input((3,)), layers.Dense(1000), layers.BatchNormalization()]).summary()
    assert capsys.readouterr().out == SUMMARY


def test_the_summary_of_a_graph_says_what_is_trained_and_what_leads_where():
    first, second = keras.Input((8,), name="a"), keras.Input((8,), name="b")
    shared = layers.Dense(8, name="shared")
    joined = layers.BatchNormalization()(layers.Add()([shared(first), shared(second)]))
    model = keras.Model([first, second], [layers.Dense(1, name="out")(joined), joined], name="two")
    shared.trainable = False
    texts = []
    model.summary(print_fn=texts.append, show_trainable=True)
    assert texts == [CONNECTED]
    model.summary(print_fn=texts.append, line_length=60)
    assert max(map(len, texts[1].split("\n"))) == 60


def test_the_summary_shows_layers_within_and_shapes_of_calls():
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(3)], name="inner")
    entry = keras.Input((4,))
    texts = []
    keras.Model(entry, layers.Dense(1)(inner(entry))).summary(print_fn=texts.append, expand_nested=True)
    assert "│    └ dense (Dense)              │ (None, 3)" in texts[0] and "Connected to" not in texts[0]
    model = keras.Sequential([layers.Dense(2), layers.LSTM(3, return_state=True)])
    model.summary(print_fn=texts.append)
    assert texts[1].count("0 (unbuilt)") == 2

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.rows, self.steps = layers.Dense(3), layers.LSTM(3, return_state=True)

        def call(self, x):
            return self.steps(self.rows(x))[0]

    own = Own()
    own(np.zeros((2, 4, 5), np.float32))
    own.summary(print_fn=texts.append)
    assert "(2, 4, 3)" in texts[2] and "((2, 3), (2, 3), (2," in texts[2]


SVG = "{http://www.w3.org/2000/svg}"


def test_pictures(tmp_path):
    model = branched()
    dot = keras.utils.model_to_dot(model, show_shapes=True)
    assert '"shared" -> "joined"' in dot and "(None, 8)" in dot
    file = keras.utils.plot_model(model, tmp_path / "model.svg", show_shapes=True)
    root = ElementTree.parse(file).getroot()
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert "head (Dense)" in texts and "output: (None, 2)" in texts
    assert len(list(root.iter(f"{SVG}path"))) == 4
    with pytest.raises(ValueError, match="not yet been built"):
        keras.utils.plot_model(keras.Sequential([layers.Dense(1)]), tmp_path / "x.svg")


@pytest.mark.parametrize("rankdir, along, size", [("TB", "y", "height"), ("LR", "x", "width")])
def test_pictures_follow_the_data(tmp_path, rankdir, along, size):
    """Each layer lies behind those that lead to it; so do layers of a model that has no graph."""
    own = keras.Sequential([keras.Input((3,)), layers.Dense(2, name="first"), layers.Dense(2, name="then")])
    graphless = Graphless()
    graphless(np.zeros((1, 3), np.float32))
    for model in (own, graphless):
        root = ElementTree.parse(keras.utils.plot_model(model, tmp_path / "model.svg", rankdir=rankdir)).getroot()
        ends = {text.text.split()[0]: (float(box.get(along)), float(box.get(along)) + float(box.get(size)))
                for box, text in zip(list(root.iter(f"{SVG}rect"))[1:], root.iter(f"{SVG}text"), strict=True)}
        assert ends["first"][1] < ends["then"][0]


class Graphless(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.then = layers.Dense(2, name="first"), layers.Dense(2, name="then")

    def call(self, x):
        return self.then(self.first(x))


def test_a_functional_model_has_nothing_left_to_build():
    """Whatever `build` is given, as in Keras."""
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    before = [w.numpy() for w in model.weights]
    for given in (tf.ones([1, 3]), np.ones([2, 3], np.float32), tf.shape(tf.ones([2, 3])), (None, 3), None, inputs):
        assert model.build(given) is None
    assert all((a == b.numpy()).all() for a, b in zip(before, model.weights, strict=True)) and model.built
