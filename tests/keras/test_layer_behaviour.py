"""What the comparison with Keras's numbers does not reach: chance, masks on their way, layouts, dtypes, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import twofold as tf

from keras import layer_cases as cases  # isort: skip

layers = tf.keras.layers


# -- chance -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", [lambda fn: fn, tf.function], ids=["eager", "function"])
def test_dropout(mode):
    layer = layers.Dropout(0.25, seed=3)
    run = mode(lambda x: layer(x, training=True))
    x = tf.ones([200, 50])
    first, second = run(x).numpy(), run(x).numpy()
    assert set(np.unique(first)) == {0.0, np.float32(1 / 0.75)}
    assert abs((first == 0).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / first.size)
    assert (first != second).any()
    again = layers.Dropout(0.25, seed=3)
    np.testing.assert_array_equal(again(x, training=True), first)
    assert layer(x) is x or np.array_equal(layer(x), x)


def test_dropout_of_everything_and_of_nothing():
    x = tf.constant([1.0, -2.0])
    np.testing.assert_array_equal(layers.Dropout(0.0)(x, training=True), x)
    np.testing.assert_array_equal(layers.Dropout(1.0)(x, training=True), [0.0, 0.0])
    with pytest.raises(ValueError, match="between 0 and 1"):
        layers.Dropout(1.5)


def test_dropout_with_a_noise_shape():
    y = layers.Dropout(0.5, noise_shape=(None, 1, None), seed=1)(tf.ones([4, 6, 8]), training=True).numpy()
    assert (y == y[:, :1]).all() and len(np.unique(y)) == 2


@pytest.mark.parametrize("training", [True, False])
def test_a_tensor_as_training_flag(training):
    layer, norm = layers.Dropout(0.5, seed=1), layers.BatchNormalization()
    x = tf.constant(cases.ROWS)
    norm(x)

    @tf.function
    def run(x, flag):
        return layer(tf.ones_like(x), training=flag), norm(x, training=flag)

    dropped, normal = run(x, tf.constant(training))
    assert (dropped.numpy() == 0).any() == training
    expected = (cases.ROWS - cases.ROWS.mean(0)) / np.sqrt(cases.ROWS.var(0) + 1e-3) if training else \
        cases.ROWS / np.sqrt(1 + 1e-3)
    np.testing.assert_allclose(normal, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "mean", "deviation"),
    [(layers.GaussianNoise(0.3, seed=1), 1.0, 0.3), (layers.GaussianDropout(0.2, seed=1), 1.0, 0.5),
     (layers.AlphaDropout(0.2, seed=1), None, None)], ids=["noise", "dropout", "alpha"])
def test_noise(layer, mean, deviation):
    x = tf.ones([400, 100]) if mean is not None else tf.random.stateless_normal([400, 100], [1, 2])
    y = layer(x, training=True).numpy().astype(np.float64)
    mean, deviation = (0.0, 1.0) if mean is None else (mean, deviation)
    assert abs(y.mean() - mean) < 5 * deviation / np.sqrt(y.size)
    assert abs(y.std() / deviation - 1) < 0.02


def test_the_state_of_generators_is_a_variable():
    layer = layers.Dropout(0.5, seed=9)
    x = tf.ones([50])
    layer(x)
    assert layer.weights == [] and [v.numpy().tolist() for v in layer.variables] == [[9, 0]]
    first = layer(x, training=True)
    assert layer.variables[0].numpy().tolist() == [9, 1]
    layer.variables[0].assign([9, 0])
    np.testing.assert_array_equal(layer(x, training=True), first)


@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("options", [{"dropout": 0.5}, {"recurrent_dropout": 0.5}], ids=["inputs", "state"])
@pytest.mark.parametrize("mode", [lambda fn: fn, tf.function], ids=["eager", "function"])
def test_recurrent_dropout_is_the_same_at_all_steps(kind, options, mode):
    """The cells of a layer with dropout, run by hand with the masks that the layer must have drawn."""
    layer = getattr(layers, kind)(4, return_sequences=True, seed=5, **options)
    x = tf.constant(cases.wave(1, 2, 5, 3))
    layer(x)
    cell = layer.cell
    cell.seed_generator.state.assign([5, 0])
    actual = mode(lambda x: layer(x, training=True))(x)
    cell.seed_generator.state.assign([5, 0])
    states, expected = cell.get_initial_state(2), []
    for t in range(5):
        output, states = cell(x[:, t], states, training=True)  # a cell keeps its masks until it is reset
        expected.append(output.numpy())
    cell.reset_dropout_mask()
    cell.reset_recurrent_dropout_mask()
    np.testing.assert_allclose(actual, np.stack(expected, 1), rtol=1e-5, atol=1e-6)
    assert not np.allclose(actual, layer(x), atol=1e-3)


def test_dropout_in_stacked_cells():
    layer = layers.RNN([layers.LSTMCell(4, dropout=0.5, seed=1), layers.GRUCell(3, recurrent_dropout=0.5, seed=2)])
    x = tf.ones([2, 6, 3])
    run = tf.function(lambda x: layer(x, training=True))
    assert (run(x).numpy() != run(x).numpy()).any()
    np.testing.assert_array_equal(layer(x), layer(x))


# -- loops ------------------------------------------------------------------------------------------
def tanh(x):
    """Not the known function, so that a layer takes the loop for any cell."""
    return tf.tanh(x)


@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("mask", [None, cases.MASK], ids=["all", "masked"])
def test_gradients_of_gradients_of_loops(kind, mask):
    """The loops with gradients by hand, and the loop for any cell, whose gradients are derived."""
    x = tf.constant(cases.STEPS)
    actual = []
    for activation in ("tanh", tanh):
        layer = getattr(layers, kind)(3, activation=activation, return_sequences=True, return_state=True)
        layer(x)
        for number, variable in enumerate(layer.weights):
            variable.assign(cases.weight(number, tuple(variable.shape), variable.name))
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.add_n([tf.reduce_sum(tf.sin(v)) for v in layer(x, mask=mask)])
            first = tape.gradient(y, [x, *layer.trainable_variables])
            total = tf.add_n([tf.reduce_sum(g * g) for g in first])
        actual.append([*first, *outer.gradient(total, [x, *layer.trainable_variables])])
    for own, derived in zip(*actual, strict=True):
        np.testing.assert_allclose(own, derived, rtol=2e-5, atol=2e-6 * np.abs(derived).max(initial=1.0))


@pytest.mark.parametrize("layer", [layers.LSTM(4), layers.Bidirectional(layers.GRU(4, return_sequences=True)),
                                   layers.RNN([layers.SimpleRNNCell(3), layers.LSTMCell(2)])], ids=lambda x: x.name)
def test_one_program_for_all_lengths(layer):
    run = tf.function(lambda x: layer(x), input_signature=[tf.TensorSpec([None, None, 3])], fallback=False)
    layer(tf.zeros([1, 1, 3]))
    for batch, steps in ((2, 5), (3, 1), (1, 9)):
        x = tf.constant(cases.wave(batch, batch, steps, 3))
        np.testing.assert_allclose(run(x), layer(x), rtol=1e-5, atol=1e-6)
    assert run.experimental_get_tracing_count() == 1


def test_states_stay_between_batches():
    layer, plain = layers.LSTM(4, stateful=True, return_sequences=True), layers.LSTM(4, return_sequences=True)
    x = tf.constant(cases.wave(1, 2, 6, 3))
    plain(x)
    layer(x[:, :3])
    layer.set_weights(plain.get_weights())
    layer.reset_state()
    run = tf.function(lambda x: layer(x))
    parts = [run(x[:, :3]), run(x[:, 3:])]
    np.testing.assert_allclose(np.concatenate(parts, 1), plain(x), rtol=1e-5, atol=1e-6)
    assert len(layer.weights) == 3
    with pytest.raises(ValueError, match="batch size"):
        layer(x[:1])


# -- masks ------------------------------------------------------------------------------------------
def test_masks_go_from_layer_to_layer():
    ids = np.array([[1, 2, 0, 3], [4, 0, 0, 1]])
    embedding, recurrent, dense = layers.Embedding(5, 3, mask_zero=True), layers.GRU(4, return_sequences=True), \
        layers.Dense(2)
    pooled, last = layers.GlobalAveragePooling1D(), layers.LSTM(2)

    def through(ids):
        x = layers.Dropout(0.5)(dense(recurrent(embedding(ids))))
        return pooled(x), last(x)

    actual = through(tf.constant(ids))
    mask = tf.constant(ids != 0)
    plain = tf.gather(embedding.embeddings, ids)
    y = dense(recurrent(plain, mask=mask))
    for one, expected in zip(actual, (pooled(y, mask=mask), last(y, mask=mask)), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)
    assert np.abs(actual[1] - last(y)).max() > 1e-5
    for one, expected in zip(tf.function(through)(tf.constant(ids)), actual, strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)


def test_masks_of_merged_layers():
    masking = layers.Masking()
    a, b = cases.wave(1, 2, 4, 3), cases.wave(2, 2, 4, 3)
    a[:, 1], b[:, 2] = 0, 0
    keep_a, keep_b = np.ones((2, 4, 1), bool), np.ones((2, 4, 1), bool)
    keep_a[:, 1], keep_b[:, 2] = False, False

    def merged(name):
        return getattr(layers, name)()([masking(tf.constant(a)), masking(tf.constant(b))]).numpy()

    np.testing.assert_allclose(merged("Multiply"), np.where(keep_a, a, 1) * np.where(keep_b, b, 1), rtol=1e-6)
    np.testing.assert_allclose(merged("Maximum"), np.where(keep_a, np.where(keep_b, np.maximum(a, b), a), b))
    average = layers.GlobalAveragePooling1D()(layers.Add()([masking(tf.constant(a)), masking(tf.constant(b))]))
    np.testing.assert_allclose(average, (a + b).mean(1), rtol=1e-5)  # a step counts where any input has it


# -- layouts ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", cases.CHANNELS_FIRST)
def test_channels_first(name):
    last = cases.CHANNELS_FIRST[name](layers)
    first = cases.CHANNELS_FIRST[name](layers, data_format="channels_first")
    x = cases.wave(3, 2, 6, 5, 4)
    expected = last(tf.constant(x)).numpy()
    first.build((None, 4, 6, 5))
    first.set_weights([0.5 * w for w in last.get_weights()])
    last.set_weights(first.get_weights())
    expected = last(tf.constant(x)).numpy()
    actual = first(tf.constant(x.transpose(0, 3, 1, 2).copy())).numpy()
    np.testing.assert_allclose(actual.transpose(0, 2, 3, 1), expected, rtol=1e-5, atol=1e-5)
    assert tuple(first.compute_output_shape((None, 4, 6, 5)))[1:] == actual.shape[1:]


def test_bicubic_interpolation():
    """Keys's weights with a = -1/2, for pixels that are squares; those outside do not count."""
    def weights(size, target):
        places = (np.arange(target) + 0.5) * size / target - 0.5
        d = np.abs(places[:, None] - np.arange(size))
        near, far = 1.5 * d**3 - 2.5 * d**2 + 1, -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2
        w = np.where(d <= 1, near, np.where(d < 2, far, 0))
        return w / w.sum(1, keepdims=True)

    x = cases.IMAGE.astype(np.float64)
    expected = np.einsum("ph,qw,bhwc->bpqc", weights(6, 12), weights(5, 15), x)
    np.testing.assert_allclose(layers.UpSampling2D((2, 3), interpolation="bicubic")(cases.IMAGE), expected, atol=1e-5)
    expected = np.einsum("ph,qw,bhwc->bpqc", weights(6, 4), weights(5, 7), x)
    np.testing.assert_allclose(layers.Resizing(4, 7, "bicubic")(cases.IMAGE), expected, atol=1e-5)


# -- dtypes -----------------------------------------------------------------------------------------
MIXED = {
    "dense": (lambda: layers.Dense(3, dtype="mixed_bfloat16"), cases.ROWS),
    "conv2d": (lambda: layers.Conv2D(3, 3, dtype="mixed_bfloat16"), cases.IMAGE),
    "lstm": (lambda: layers.LSTM(3, dtype="mixed_bfloat16"), cases.STEPS),
    "attention": (lambda: layers.MultiHeadAttention(2, 3, dtype="mixed_bfloat16"), cases.STEPS),
    "batch norm": (lambda: layers.BatchNormalization(dtype="mixed_bfloat16"), cases.ROWS),
    "layer norm": (lambda: layers.LayerNormalization(dtype="mixed_bfloat16"), cases.ROWS),
    "group norm": (lambda: layers.GroupNormalization(2, dtype="mixed_bfloat16"), cases.ROWS),
    "embedding": (lambda: layers.Embedding(7, 3, dtype="mixed_bfloat16"), cases.ints(1, 7, 2, 5)),
    "prelu": (lambda: layers.PReLU(dtype="mixed_bfloat16"), cases.ROWS),
    "gru": (lambda: layers.Bidirectional(layers.GRU(3, dtype="mixed_bfloat16"), dtype="mixed_bfloat16"), cases.STEPS),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_precision(name):
    make, x = MIXED[name]
    layer, x = make(), tf.constant(x)
    arguments = (x, x) if name == "attention" else (x,)

    def step(*arguments):
        with tf.GradientTape() as tape:
            y = layer(*arguments, training=True) if name == "batch norm" else layer(*arguments)
            loss = tf.reduce_sum(tf.cast(y, tf.float32) ** 2)
        return y, tape.gradient(loss, layer.trainable_variables)

    y, gradients = step(*arguments)
    assert y.dtype == tf.bfloat16
    assert {v.dtype for v in layer.weights} == {tf.float32} == {g.dtype for g in gradients}
    whole = type(layer).from_config({**layer.get_config(), "dtype": "float32"}) if name != "gru" else \
        layers.Bidirectional(layers.GRU(3))
    whole(*arguments)
    whole.set_weights(layer.get_weights())
    expected = whole(*arguments, training=True) if name == "batch norm" else whole(*arguments)
    # bfloat16 has eight bits, and values here are sums of a few numbers of size 1
    np.testing.assert_allclose(tf.cast(y, tf.float32), expected, atol=0.06)
    np.testing.assert_allclose(tf.cast(tf.function(step)(*arguments)[0], tf.float32), expected, atol=0.06)


def test_float64():
    for make in (lambda: layers.Dense(3, dtype="float64"), lambda: layers.LayerNormalization(dtype="float64")):
        layer = make()
        assert layer(tf.constant(cases.ROWS)).dtype == tf.float64
        assert {v.dtype for v in layer.weights} == {tf.float64}


# -- data -------------------------------------------------------------------------------------------
def test_normalization_adapts():
    x = cases.wave(3, 40, 3) * [1, 2, 3] + [0, 5, -5]
    for data in (x, tf.constant(x), [x[:13], x[13:]]):
        layer = layers.Normalization()
        layer.adapt(data)
        np.testing.assert_allclose(layer(x), (x - x.mean(0)) / x.std(0), rtol=1e-4, atol=1e-5)
    assert [v.name.rpartition("/")[2] for v in layer.weights] == ["mean:0", "variance:0", "count:0"]
    back = layers.Normalization(mean=x.mean(0), variance=x.var(0), invert=True)
    np.testing.assert_allclose(back(layer(x)), x, rtol=1e-4, atol=1e-4)


def test_discretization_adapts():
    x = cases.wave(3, 1000)
    layer = layers.Discretization(num_bins=4)
    layer.adapt(x)
    assert (np.abs(np.bincount(layer(x).numpy()) - 250) <= 2).all()
    again = layers.Discretization.from_config(layer.get_config())
    np.testing.assert_array_equal(again(x), layer(x))


# -- losses, freezing, errors -----------------------------------------------------------------------
def test_losses_of_layers():
    layer = layers.Dense(2, kernel_regularizer=tf.keras.regularizers.L2(0.5), activity_regularizer="l1")
    y = layer(tf.constant(cases.ROWS))
    kernel = layer.kernel.numpy()
    np.testing.assert_allclose(sorted(float(x) for x in layer.losses),
                               sorted([0.5 * (kernel**2).sum(), 0.01 * np.abs(y).sum() / len(y)]), rtol=1e-5)


def test_frozen_batch_normalization_keeps_its_statistics():
    layer = layers.BatchNormalization()
    x = tf.constant(cases.ROWS)
    layer(x, training=True)
    before = [w.copy() for w in layer.get_weights()]
    layer.trainable = False
    frozen = layer(x, training=True)
    for old, new in zip(before, layer.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    np.testing.assert_array_equal(frozen, layer(x, training=False))


@pytest.mark.parametrize(
    ("make", "x", "message"),
    [(lambda: layers.Dense(0), None, "`units`"), (lambda: layers.Dense(2), np.ones(3, np.float32), "min_ndim=2"),
     (lambda: layers.Conv2D(3, 3, groups=2), None, "groups=2"),
     (lambda: layers.Conv2D(2, (3, 3, 3)), None, "kernel_size"),
     (lambda: layers.Conv2D(2, 3, padding="full"), None, "padding"),
     (lambda: layers.Conv2D(2, 9), cases.IMAGE, "negative or zero"),
     (lambda: layers.MaxPooling2D(2), cases.STEPS, "expected ndim=4"),
     (lambda: layers.Reshape((4, 4)), cases.STEPS, "total size"), (lambda: layers.Permute((1, 3)), None, "permutation"),
     (lambda: layers.Cropping1D(3), cases.STEPS, "smaller than"),
     (lambda: layers.Concatenate(), [cases.STEPS, cases.IMAGE], "matching shapes"),
     (lambda: layers.Add(), [cases.STEPS, cases.STEPS[:, :4]], "incompatible shapes"),
     (lambda: layers.Add(), cases.STEPS, "list of inputs"),
     (lambda: layers.Subtract(), [cases.ROWS] * 3, "exactly 2 inputs"),
     (lambda: layers.GroupNormalization(3), cases.IMAGE, "multiple"),
     (lambda: layers.Bidirectional(layers.Dense(2)), None, "go_backwards"),
     (lambda: layers.RNN(layers.Dense(2)), None, "state_size"), (lambda: layers.LSTM(-1), None, "units"),
     (lambda: layers.Attention(), cases.STEPS, "list of inputs"),
     (lambda: layers.EinsumDense("ab,bc", 3), cases.ROWS, "Invalid einsum equation"),
     (lambda: layers.Normalization(mean=1.0), None, "both `mean` and `variance`"),
     (lambda: layers.TimeDistributed(layers.Dense(2)), cases.ROWS, "at least 3 dimensions")])
def test_errors_say_what_is_wrong(make, x, message):
    with pytest.raises((ValueError, AttributeError), match=message):
        layer = make()
        layer(x)


def test_build_configs_are_keras_s():
    """Keras builds a layer by them when it reads a file."""
    x = tf.constant(cases.STEPS)
    attention, recurrent, merged = layers.MultiHeadAttention(2, 3), layers.GRU(2), layers.Add()
    attention(x, x), recurrent(x), merged([x, x])
    shapes = {"query_shape": [2, 5, 3], "value_shape": [2, 5, 3]}
    assert layers.serialize(attention)["build_config"] == {"shapes_dict": shapes}
    assert layers.serialize(recurrent)["build_config"] == {"input_shape": [2, 5, 3]}
    assert layers.serialize(merged)["build_config"] == {"input_shape": [[2, 5, 3], [2, 5, 3]]}
    again = layers.deserialize(layers.serialize(attention))
    assert again.built and [v.shape for v in again.weights] == [v.shape for v in attention.weights]


def test_a_thawed_layer_of_a_frozen_model_is_trained_with_the_model_around():
    inner = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(3), layers.BatchNormalization()])
    outer = tf.keras.Sequential([tf.keras.Input((3,)), inner, layers.Dense(1)])
    inner.trainable = False
    assert (len(outer.trainable_weights), len(outer.non_trainable_weights)) == (2, 6)
    inner.layers[0].trainable = True  # as in Keras 3, where each layer's own flag counts, below the one that is asked
    assert len(outer.trainable_weights) == 4 and inner.trainable_weights == []
    outer.trainable = False
    assert outer.trainable_weights == [] and len(outer.non_trainable_weights) == 8


def test_a_sequential_model_may_have_a_layer_twice():
    shared = layers.Dense(3, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((3,)), shared, shared])
    assert len(model.layers) == 2 and model.count_params() == 12
    np.testing.assert_array_equal(model(np.ones((1, 3), np.float32)), [[9.0, 9.0, 9.0]])
    with pytest.raises(ValueError, match="unique names"):
        model.add(layers.Dense(3, name=shared.name))


@pytest.mark.parametrize("make", [layers.LayerNormalization, layers.RMSNormalization, layers.BatchNormalization])
def test_normalization_along_an_axis_that_is_none_is_an_error(make):
    with pytest.raises(ValueError, match="Axis 7"):
        make(axis=7)(np.ones((2, 3), np.float32))


def test_outputs_show_the_mask_that_goes_with_them():
    words = layers.Embedding(10, 3, mask_zero=True)(np.array([[1, 2, 0], [0, 3, 0]]))
    np.testing.assert_array_equal(words._keras_mask, [[True, True, False], [False, True, False]])
    assert layers.LSTM(2)(words)._keras_mask is None


@pytest.mark.parametrize("make", [lambda: layers.Dense(2, kernel_initializer="ones"),
                                  lambda: layers.EinsumDense("...a,ab->...b", 2, kernel_initializer="ones"),
                                  lambda: layers.SimpleRNN(2, kernel_initializer="ones", activation=None)])
def test_integers_and_bools_meet_floating_weights(make):
    x = np.array([[[1, 2, 3]], [[0, 1, 0]]])
    floats = make()(x.astype(np.float32))
    for given in (x, tf.constant(x, tf.int32), x.astype(np.uint8)):
        np.testing.assert_array_equal(make()(given), floats)
    np.testing.assert_array_equal(make()(x > 0), make()((x > 0).astype(np.float32)))


class _Doubled(layers.Layer):
    """What it does depends on values, which only Python sees."""

    def call(self, inputs):
        return inputs * 2 if float(np.asarray(inputs).sum()) > 0 else inputs


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("eagerly", [False, True])
def test_a_sequential_model_of_a_layer_that_asks_for_values_runs_layer_by_layer(eagerly):
    model = tf.keras.Sequential([_Doubled(dynamic=True), layers.Dense(1, kernel_initializer="ones")])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse", run_eagerly=eagerly)
    x = np.ones((4, 3), np.float32)
    assert model.fit(x, np.zeros((4, 1)), verbose=0).history["loss"] == [36.0]
    np.testing.assert_array_equal(model(-x), [[-3.0]] * 4)


@pytest.mark.parametrize("make", [lambda: layers.Dropout(0.5), lambda: layers.Dense(2), layers.BatchNormalization,
                                  lambda: tf.keras.Sequential([layers.Dense(2), layers.Dropout(0.5)]),
                                  lambda: tf.keras.Sequential([tf.keras.Input([3]), layers.Dropout(0.5)])])
@pytest.mark.parametrize("training", [lambda: tf.keras.Input([3]), lambda: [tf.keras.Input([3])], lambda: "a",
                                      lambda: np.True_, lambda: tf.constant(True), lambda: np.ones(2), object])
def test_what_training_may_be_does_not_depend_on_earlier_calls(make: Any, training: Any) -> None:
    layer, x = make(), tf.ones([2, 3])

    def outcome() -> Any:
        try:
            return type(layer(x, training=training()))
        except (TypeError, ValueError, tf.errors.OpError) as error:
            return type(error)
    first = outcome()
    for _ in range(2):
        layer(x)
        layer(x, training=True)
        assert outcome() is first
