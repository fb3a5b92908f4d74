"""What is refused changes nothing: metrics, layers and streams of random numbers are what they were.

The tables are those of what Keras is compared on: each metric and each layer with state takes a batch, and then, in the
places of its inputs one after the other, what it may refuse.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.runtime import random as streams

from . import formula_cases, layer_cases

keras = tf.keras
BAD: dict[str, Callable[[], Any]] = {
    "text": lambda: tf.constant(["a", "b"]), "word": lambda: "word", "None": lambda: None, "object": object,
    "bools": lambda: np.array([[True, False, True]]), "integers": lambda: np.array([[1, 2, 3]]),
    "bytes": lambda: np.ones([2, 3], np.uint8), "complex": lambda: np.ones([2, 3], np.complex64),
    "scalar": lambda: 1.5, "vector": lambda: np.ones([7], np.float32), "matrix": lambda: np.ones([3, 7], np.float32),
    "cube": lambda: np.ones([5, 2, 3], np.float32), "pictures": lambda: np.ones([2, 3, 4, 5], np.float32),
    "nothing": lambda: np.ones([0], np.float32), "Keras tensor": lambda: keras.Input([3]),
}


def values(variables: list[Any]) -> list[bytes]:
    return [v.numpy().tobytes() for v in variables]


def unchanged(variables: Callable[[], list[Any]], call: Callable[[], Any], told: str) -> None:
    """Make a call; where it is refused, the variables there were are what they were."""
    have = variables()
    before = values(have)
    try:
        call()
    except (tf.errors.OpError, ValueError, TypeError):
        assert values(have) == before, told


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, settings, kind, weights", formula_cases.METRICS)
def test_a_metric_that_refuses_a_batch(name: str, settings: dict[str, Any], kind: str, weights: str) -> None:
    good = [*formula_cases.KINDS[kind](0), formula_cases.weights_for(kind, weights, 0)]
    for place in range(3):
        for what, make in BAD.items():
            for first in (True, False):  # a metric that has seen nothing yet, and one that has
                metric = getattr(keras.metrics, name)(**settings)
                if not first:
                    metric.update_state(*good)
                given = [*good[:place], make(), *good[place + 1:]]
                unchanged(lambda metric=metric: metric.variables, lambda metric=metric, given=given:
                          metric.update_state(*given), f"{what} in place {place}")


RANDOM: dict[str, Callable[[], Any]] = {
    "AlphaDropout": lambda: keras.layers.AlphaDropout(0.5), "Dropout": lambda: keras.layers.Dropout(0.5),
    "GaussianDropout": lambda: keras.layers.GaussianDropout(0.5),
    "GaussianNoise": lambda: keras.layers.GaussianNoise(1),
    "SpatialDropout2D": lambda: keras.layers.SpatialDropout2D(0.5), "RandAugment": keras.layers.RandAugment,
    "AugMix": lambda: keras.layers.AugMix(), "RandomColorJitter": lambda: keras.layers.RandomColorJitter(
        brightness_factor=0.1, contrast_factor=0.2, saturation_factor=0.2, hue_factor=0.1),
    "RandomFlip": keras.layers.RandomFlip, "RandomRotation": lambda: keras.layers.RandomRotation(0.2),
    "RandomZoom": lambda: keras.layers.RandomZoom(0.2), "RandomCrop": lambda: keras.layers.RandomCrop(2, 2),
    "RandomGrayscale": keras.layers.RandomGrayscale, "RandomHue": lambda: keras.layers.RandomHue(0.2),
    "RandomErasing": keras.layers.RandomErasing, "MixUp": keras.layers.MixUp, "CutMix": keras.layers.CutMix,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(RANDOM))
def test_a_random_layer_that_refuses_inputs(name: str) -> None:
    layer = RANDOM[name]()
    for what, make in BAD.items():
        unchanged(lambda: layer.variables, lambda make=make: layer(make(), training=True), what)


LAYERS = [name for name, case in layer_cases.CASES.items() if case.call in (layer_cases.plain, layer_cases.training)
            and len(case.inputs) == 1 and case.inputs[0].dtype.kind == "f"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_that_refuses_inputs(name: str) -> None:
    case = layer_cases.CASES[name]
    layer = case.make(keras.layers)
    layer(*case.inputs, training=True)
    for what, make in BAD.items():
        unchanged(lambda: layer.variables, lambda make=make: layer(make(), training=True), what)


def test_weights_are_set_all_or_none() -> None:
    layer = keras.layers.Dense(2)
    layer.build([None, 3])
    before = values(layer.variables)
    for bias in (np.array(["a", "b"]), np.ones([3]), None):
        with pytest.raises((ValueError, TypeError)):
            layer.set_weights([np.zeros([3, 2]), bias])
        assert values(layer.variables) == before


R, K, images = tf.random, keras.random, tf.image
DRAWS: dict[str, Callable[[], Any]] = {
    "shape": lambda: R.uniform("a"), "bound": lambda: R.uniform([2], "a"),
    "dtype": lambda: R.uniform([2], dtype=tf.string), "bounds that fall": lambda: R.uniform([2], 5, 3, tf.int32),
    "bounds that do not fit": lambda: R.uniform([2], [1.0] * 3),
    "mean": lambda: R.normal([2], "a"), "means that do not fit": lambda: R.normal([2], tf.zeros([3])),
    "truncated": lambda: R.truncated_normal([2], 0.0, tf.ones([3])), "integers": lambda: R.normal([2], dtype=tf.int32),
    "gamma": lambda: R.gamma([2], 1.0, dtype=tf.int32), "poisson": lambda: R.poisson([2], 1.0, dtype=tf.string),
    "classes": lambda: R.categorical([1.0], 2), "rows": lambda: R.shuffle(3),
    "dropout": lambda: tf.nn.dropout([1.0, 2.0], 0.5, noise_shape=[3]),
    "flips": lambda: images.random_flip_left_right("picture"),
    "crops": lambda: images.random_crop(tf.ones([2, 2, 1]), [3, 1, 1]),
    "crops by truth": lambda: images.random_crop([[1]], [1, True]),
    "brightness": lambda: images.random_brightness("picture", 0.1),
    "contrast": lambda: images.random_contrast(["a"], 0.1, 0.5),
    "hues": lambda: images.random_hue(tf.ones([2, 2, 1]), 0.1),
    "saturation": lambda: images.random_saturation(3, 0.1, 0.5),
    "normal of Keras": lambda: K.normal([2], "a"), "uniform of Keras": lambda: K.uniform("a"),
    "integers of Keras": lambda: K.randint([2], 5, 3),
    "truncated of Keras": lambda: K.truncated_normal([2], stddev="a"),
    "classes of Keras": lambda: K.categorical([1.0], 2), "gamma of Keras": lambda: K.gamma([2], "a"),
    "beta of Keras": lambda: K.beta([2], 1.0, tf.zeros([3])), "counts of Keras": lambda: K.binomial([2], "a", 0.5),
    "rows of Keras": lambda: K.shuffle([1, 2], seed=None, axis=3),
    "dropout of Keras": lambda: K.dropout([1.0, 2.0], 0.5, noise_shape=[3]),
}


@pytest.mark.parametrize("name", list(DRAWS))
def test_a_draw_that_is_refused_leaves_the_stream(name: str) -> None:
    def following() -> list[float]:
        return tf.random.uniform([2]).numpy().tolist()
    tf.random.set_seed(5)
    expected = following()
    tf.random.set_seed(5)
    with pytest.raises((tf.errors.OpError, ValueError, TypeError)):
        DRAWS[name]()
    assert following() == expected


def drawn() -> dict[Any, int]:
    """Where all streams stand."""
    return {name: blocks for name, blocks in streams._taken.items() if blocks}


def refused(call: Callable[[], Any]) -> None:
    with warnings.catch_warnings(), pytest.raises((tf.errors.OpError, ValueError, TypeError)):
        warnings.simplefilter("ignore")
        call()


def in_a_thread(call: Callable[[], Any]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_a_refusal_gives_nothing_back_that_others_have_drawn_meanwhile() -> None:
    for seed in (None, 7):
        tf.random.uniform([1], seed=seed)
        before, since = drawn(), streams.mark()
        tf.random.uniform([2], seed=seed)
        streams.give_back(since)
        assert drawn() == before
        since = streams.mark()
        tf.random.uniform([2], seed=seed)
        in_a_thread(lambda seed=seed: tf.random.uniform([3], seed=seed))
        after = drawn()
        streams.give_back(since)
        assert drawn() == after
        streams.give_back(since)  # nor a second time


def test_what_has_been_given_back_once_is_not_given_back_again() -> None:
    since = streams.mark()
    tf.random.uniform([2])
    streams.give_back(since)
    in_a_thread(lambda: tf.random.uniform([2]))  # the same place of the stream
    after = drawn()
    streams.give_back(since)
    assert drawn() == after


def test_a_call_that_has_drawn_more_than_is_noted_keeps_it() -> None:
    since = streams.mark()
    for _ in range(streams._NOTED + 1):
        tf.random.uniform([1])
    after = drawn()
    streams.give_back(since)
    assert drawn() == after


def test_what_a_function_of_the_users_has_drawn_stays_drawn() -> None:
    seen: list[float] = []

    def fails(x: Any) -> Any:
        seen.append(float(tf.random.uniform([])))
        raise ValueError("the user's own")
    for _ in range(2):
        with pytest.raises(ValueError, match="the user's own"):
            tf.map_fn(fails, tf.ones([2]))
    assert seen[0] != seen[1]


L = keras.layers
UNBUILT: dict[str, tuple[Callable[[], Any], Any]] = {  # layers whose first call is refused, and inputs that they take
    "dtype": (lambda: L.Dense(2), (np.ones([2, 3]), np.array([["a", "b", "c"]]))),
    "rank": (lambda: L.Conv2D(2, 3), (np.ones([1, 5, 5, 1]), np.ones([5, 5]))),
    "in the second weight": (lambda: L.Dense(2, bias_initializer=lambda shape, dtype: tf.zeros([9])),
                             (None, np.ones([2, 3]))),
    "second of two": (lambda: keras.Sequential([L.Dense(4), L.Conv1D(2, 3)]), (np.ones([1, 3, 2]), np.ones([2, 3]))),
    "behind an input": (lambda: keras.Sequential([L.Dense(4), L.Reshape([3])]), (None, keras.Input([3]))),
    "both ways": (lambda: L.Bidirectional(L.LSTM(2)), (np.ones([1, 2, 3]), np.ones([2, 3]))),
    "recurrent": (lambda: L.GRU(2), (np.ones([1, 2, 3]), np.array([[["a"]]]))),
    "attention": (lambda: L.MultiHeadAttention(2, 2), (None, np.ones([2, 3]))),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", list(UNBUILT))
def test_a_layer_whose_first_call_is_refused_is_not_built(name: str, traced: bool) -> None:
    make, (good, bad) = UNBUILT[name]
    layer = make()
    before, there = drawn(), layer.variables
    call = tf.function(lambda: layer(bad)) if traced else lambda: layer(bad)
    refused(call)
    assert drawn() == before and [id(v) for v in layer.variables] == [id(v) for v in there]
    if good is not None:
        fresh = make()
        assert layer(good).shape == fresh(good).shape
        assert [v.shape for v in layer.variables] == [v.shape for v in fresh.variables]


MADE: dict[str, tuple[Callable[[], Any], Callable[..., Any]]] = {  # what there is before, and a call on it
    "layer": (list, lambda: L.SpatialDropout2D(0.5, data_format="b")), "factor": (list, lambda: L.RandomGrayscale(2.5)),
    "weights": (list, lambda: L.SeparableConv2D(2, 2, bias_constraint=True)),
    "build": (lambda: [L.Dense(2)], lambda layer: layer.build(["a"])),
    "shape": (lambda: [L.Dense(2)], lambda layer: layer.add_weight(shape=[-1])),
    "rate": (list, lambda: tf.nn.dropout(tf.ones([4]), [1.0, -1.0])),
    "sequential": (lambda: [keras.Input([2]), L.Dense(3), L.Conv2D(2, 2)], lambda *layers: keras.Sequential(layers)),
    "clone": (lambda: [keras.Sequential([keras.Input([2]), L.Dense(3), L.Dropout(0.1)])],
              lambda model: keras.models.clone_model(model, input_tensors=[keras.Input([2]), 3])),
    "clone of a network": (lambda: [keras.Model(*[(x, L.Dense(3)(x)) for x in [keras.Input([2])]][0])],
                           lambda model: keras.models.clone_model(model, input_tensors=[keras.Input([2, 2]), 3])),
    "quality": (list, lambda: images.random_jpeg_quality(tf.ones([2, 2]), 1, 5)),
    "older dropout": (list, lambda: tf.compat.v1.layers.dropout(tf.ones([4]), rate="a", training=True)),
    "older noise": (list, lambda: tf.compat.v1.layers.dropout(tf.ones([4]), noise_shape=[3], training=True)),
}


@pytest.mark.parametrize("name", list(MADE))
def test_what_is_refused_has_drawn_nothing(name: str) -> None:
    make, call = MADE[name]
    things = make()
    tf.random.uniform([1])
    before = drawn()
    refused(lambda: call(*things))
    assert drawn() == before


def test_layers_of_a_refused_model_are_not_built() -> None:
    first, model = L.Dense(3), keras.Sequential([keras.Input([2])])
    last, before = L.Conv2D(2, 2), drawn()
    refused(lambda: keras.Sequential([keras.Input([2]), first, last]))
    assert not first.built and not first.weights and drawn() == before
    model.add(first)
    refused(lambda: model.add(L.Conv2D(2, 2)))
    assert model.layers == [first] and first.built and model(np.ones([1, 2])).shape == (1, 3)


def test_what_lives_on_keeps_its_draws() -> None:
    """A model that is built, and then not trained, has other weights than the next one."""
    one, other = keras.Sequential([L.Dense(3)]), keras.Sequential([L.Dense(3)])
    for model in (one, other):
        model.compile("sgd", "mse")
        refused(lambda model=model: model.fit(np.ones([4, 2]), np.array(["a"] * 4), verbose=0))
    one(np.ones([1, 2])), other(np.ones([1, 2]))
    assert not np.array_equal(one.get_weights()[0], other.get_weights()[0])


def test_what_a_users_method_has_noted_stays() -> None:
    class Notes(L.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Any] = []
            self.parts: list[Any] = []

        def build(self, shape: Any) -> None:
            self.parts.append(L.Dense(2))

        def call(self, x: Any) -> Any:
            self.seen.append(x.shape)
            self.last = x.shape
            return self.parts[0](x)
    layer = Notes()
    refused(lambda: layer(tf.constant(["a"])))
    assert layer.seen == [(1,)] and layer.last == (1,)
    assert not layer.parts and not layer.built
    assert layer(tf.ones([1, 3])).shape == (1, 2) and len(layer.parts) == 1 and len(layer.weights) == 2


def test_a_stateful_layer_whose_first_call_is_refused_takes_another_batch() -> None:
    layer = L.RNN(L.SimpleRNNCell(2), stateful=True)
    refused(lambda: layer(tf.ones([2, 3, 4]), initial_state=[tf.ones([5, 5])]))
    assert layer(tf.ones([3, 2, 1])).shape == (3, 2)


def test_a_layer_that_another_thread_calls_stays_built() -> None:
    class Waits(L.Layer):
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(shape=[2])

        def call(self, x: Any, refuse: bool = False) -> Any:
            if refuse:
                in_a_thread(lambda: self(x))
                tf.reshape(x, [7])
            return x + self.w
    layer = Waits()
    refused(lambda: layer(tf.ones([2]), refuse=True))
    assert layer.built and len(layer.weights) == 1


OF_GENERATORS: dict[str, Callable[[Any], Any]] = {
    "normal": lambda g: g.normal([2], "a"), "bounds": lambda g: g.uniform([2], 5, 3, tf.int32),
    "fit": lambda g: g.uniform([2], tf.zeros([3])), "truncated": lambda g: g.truncated_normal([2], tf.zeros([3])),
    "dtype": lambda g: g.normal([2], dtype=tf.int32), "integers": lambda g: g.uniform_full_int([2], tf.float32),
    "binomial": lambda g: g.binomial([2], [1.0] * 3, 0.5), "shape": lambda g: g.normal("a"),
}


@pytest.mark.parametrize("name", list(OF_GENERATORS))
def test_a_draw_that_is_refused_leaves_a_generator(name: str) -> None:
    generator = R.Generator.from_seed(1)
    before = generator.state.numpy().tolist()
    with pytest.raises((tf.errors.OpError, ValueError, TypeError)):
        OF_GENERATORS[name](generator)
    assert generator.state.numpy().tolist() == before


OF_SEEDS: dict[str, Callable[[Any], Any]] = {
    "normal": lambda s: K.normal("a", seed=s), "uniform": lambda s: K.uniform([2], "a", seed=s),
    "truncated": lambda s: K.truncated_normal([2], dtype="int32", seed=s),
    "randint": lambda s: K.randint([2], 5, 3, seed=s),
    "categorical": lambda s: K.categorical([1.0], 2, seed=s), "gamma": lambda s: K.gamma([2], "a", seed=s),
    "beta": lambda s: K.beta([2], 1.0, "a", seed=s), "binomial": lambda s: K.binomial([2], "a", 0.5, seed=s),
    "shuffle": lambda s: K.shuffle(3, seed=s), "dropout": lambda s: K.dropout([1, 2], 0.5, seed=s),
    "noise": lambda s: K.dropout([1.0, 2.0], 0.5, noise_shape=[3], seed=s),
}


@pytest.mark.parametrize("name", list(OF_SEEDS))
def test_a_draw_that_is_refused_leaves_a_seed(name: str) -> None:
    seed = K.SeedGenerator(3)
    K.normal([2], seed=seed)
    before = seed.state.numpy().tolist()
    with warnings.catch_warnings(), pytest.raises((tf.errors.OpError, ValueError, TypeError, IndexError)):
        OF_SEEDS[name](seed)
    assert seed.state.numpy().tolist() == before


@pytest.mark.parametrize("kind", ["train_on_batch", "test_on_batch", "predict_on_batch"])
def test_batches_without_samples(kind: str) -> None:
    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    empty = [np.zeros((0, 3)), np.zeros((0, 1))][:1 if kind == "predict_on_batch" else 2]
    with pytest.raises(ValueError, match=rf"{kind}: x has no samples\.\n"):
        getattr(model, kind)(*empty)


def with_configs() -> list[Any]:
    modules = (keras, L, keras.losses, keras.metrics, keras.optimizers, keras.initializers, keras.regularizers,
               keras.constraints, keras.random, keras.dtype_policies, keras.optimizers.schedules)
    values = [getattr(module, name, None) for module in modules for name in module.__all__]
    classes = {value for value in values if isinstance(value, type) and hasattr(value, "from_config")}
    return sorted(classes, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("of", with_configs())
def test_what_is_no_config(of: Any) -> None:
    for config in (range(2**40), [1, 2], None, "config", tf.ones([2])):
        with pytest.raises(TypeError, match="config must be a dict"):
            of.from_config(config)


def test_models_of_refused_configs_have_drawn_nothing() -> None:
    model = keras.Sequential([keras.Input([2]), L.Dense(3), L.Dense(4, kernel_initializer="zeros")])
    config, before = model.get_config(), drawn()
    config["layers"][2]["config"]["units"] = "a"
    refused(lambda: keras.Sequential.from_config(config))
    assert drawn() == before
    refused(lambda: L.Embedding(3, 2, weights=np.ones([7])))
    assert drawn() == before


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_sequences_have_steps_and_features(shape: tuple[int, ...]) -> None:
    class Sum(L.Layer):
        state_size = 1

        def call(self, inputs: Any, states: Any) -> Any:
            total = tf.reduce_sum(inputs) + states[0]
            return total, [total]
    built = L.RNN(Sum())
    built(tf.ones([1, 2, 3]))
    for layer in (L.RNN(Sum()), L.RNN(L.SimpleRNNCell(2)), built):
        for call in (layer, tf.function(layer)):
            with pytest.raises(ValueError, match=r"\[batch, steps, features\]"):
                call(tf.ones(shape))
