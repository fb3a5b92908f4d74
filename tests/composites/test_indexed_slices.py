"""`IndexedSlices`: gradients of variables of which rows were read, and what optimizers do with them."""

import numpy as np
import pytest

import twofold as tf

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
MODES = pytest.mark.parametrize("decorate", [lambda f: f, tf.function], ids=["eager", "compiled"])


@MODES
def test_gradients_of_rows_are_slices(decorate):
    v, w = tf.Variable(TABLE), tf.Variable(tf.ones([3]))

    @decorate
    def gradients(ids):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.nn.embedding_lookup(v, ids) ** 2 * w) + tf.reduce_sum(tf.gather(v, [[0]]))
        return tape.gradient(y, [v, {"w": w}])

    of_v, of_w = gradients(tf.constant([1, 1, 3]))
    assert isinstance(of_v, tf.IndexedSlices) and isinstance(of_w["w"], tf.Tensor)
    assert of_v.indices.numpy().tolist() == [1, 1, 3, 0] and of_v.shape == [4, 3] and of_v.dtype is tf.float32
    assert of_v.dense_shape.numpy().tolist() == [4, 3]
    expected = np.zeros_like(TABLE)
    np.add.at(expected, [1, 1, 3], 2 * TABLE[[1, 1, 3]])
    expected[0] += 1
    np.testing.assert_array_equal(tf.convert_to_tensor(of_v), expected)
    np.testing.assert_array_equal(of_v.values + 0, np.concatenate([2 * TABLE[[1, 1, 3]], np.ones([1, 3])]))


@MODES
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_several_variables_of_which_rows_were_read_have_a_gradient_each(decorate, order):
    tables = [tf.Variable(TABLE + n) for n in range(4)]

    @decorate
    def gradients(one, two, three, row):
        with tf.GradientTape() as tape:
            y = tf.gather(tables[0], one) * tf.gather(tables[1], two) + tf.gather(tables[3], three)
            z = tf.reduce_sum(y ** 2) + tf.reduce_sum(tf.gather(tables[1], row))
        return tape.gradient(z, [tables[n] for n in order])

    given = [tf.constant(ids) for ids in ([0, 1], [2, 2], [3, 0], [1])]
    by_table = dict(zip(order, gradients(*given), strict=True))
    rows = [TABLE[[0, 1]], TABLE[[2, 2]] + 1, TABLE[[3, 0]] + 3]
    outer = 2 * (rows[0] * rows[1] + rows[2])
    expected = {n: np.zeros_like(TABLE) for n in (0, 1, 3)}
    np.add.at(expected[0], [0, 1], outer * rows[1])
    np.add.at(expected[1], [2, 2], outer * rows[0])
    expected[1][1] += 1
    np.add.at(expected[3], [3, 0], outer)
    assert by_table.pop(2) is None  # it is not read
    for n, one in by_table.items():
        assert isinstance(one, tf.IndexedSlices), n
        np.testing.assert_array_equal(tf.convert_to_tensor(one), expected[n])


@MODES
def test_gradients_are_dense_where_all_was_read(decorate):
    v = tf.Variable(TABLE)

    @decorate
    def gradients(ids):
        with tf.GradientTape(persistent=True) as tape:
            rows = tf.gather(v, ids)
            both = tf.reduce_sum(rows) + tf.reduce_sum(v)
            along = tf.reduce_sum(tf.gather(v, [0, 2], axis=1))
            inside = tf.cond(ids[0] > 0, lambda: tf.reduce_sum(tf.gather(v, ids)), lambda: 0.0)
        return [tape.gradient(y, v) for y in (both, along)], tape.gradient(inside, v), tape.gradient(rows, [v, v])

    dense, inside, twice = gradients(tf.constant([1, 1]))
    assert all(isinstance(g, tf.Tensor) for g in dense)
    np.testing.assert_array_equal(dense[0], [[1] * 3, [3] * 3, [1] * 3, [1] * 3])
    np.testing.assert_array_equal(tf.convert_to_tensor(inside), [[0] * 3, [2] * 3, [0] * 3, [0] * 3])
    for one in twice:
        np.testing.assert_array_equal(tf.convert_to_tensor(one), [[0] * 3, [2] * 3, [0] * 3, [0] * 3])


def test_second_order_goes_through_slices():
    v = tf.Variable(TABLE)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.gather(v, [1, 3]) ** 3)
        first = inner.gradient(y, v)
        z = tf.reduce_sum(first.values)
    second = outer.gradient(z, v)
    np.testing.assert_array_equal(tf.convert_to_tensor(second), 6 * TABLE * np.float32([[0], [1], [0], [1]]))


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "Adam", "RMSprop"])
@pytest.mark.parametrize("settings", [{}, {"clipnorm": 1.0}, {"momentum": 0.9}], ids=["plain", "clipped", "momentum"])
def test_optimizers_do_with_rows_that_come_once_what_they_do_with_the_dense_gradient(name, settings):
    if "momentum" in settings and name not in ("SGD", "RMSprop"):
        settings = {"weight_decay": 0.01}
    results = []
    for dense in (False, True):
        v, optimizer = tf.Variable(TABLE), getattr(tf.keras.optimizers, name)(0.1, **settings)
        for ids in ([1, 3], [0], [3, 1, 2]):
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(tf.nn.embedding_lookup(v, ids) ** 2)
            gradient = tape.gradient(y, v)
            optimizer.apply_gradients([(tf.convert_to_tensor(gradient) if dense else gradient, v)])
        results.append(v.numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=2e-6, atol=1e-6)


def test_rows_without_a_gradient_stay_as_they_are():
    model = tf.keras.Sequential([tf.keras.layers.Embedding(50, 4), tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.build([None, 2])
    before = model.layers[0].embeddings.numpy()
    model.fit(np.array([[1, 7], [7, 9]]), np.ones([2, 1], np.float32), verbose=0)
    changed = np.any(model.layers[0].embeddings.numpy() != before, axis=1)
    assert np.flatnonzero(changed).tolist() == [1, 7, 9]


def test_slices_are_values_of_functions():
    slices = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([1, 1]), dense_shape=[2, 3])
    negative = tf.function(lambda s: -s)(slices)
    assert isinstance(negative, tf.IndexedSlices) and negative.values.numpy().tolist() == [[-1.0] * 3] * 2
    assert tf.add(slices, 1.0).numpy().tolist() == [[1.0] * 3, [3.0] * 3]
    kept = tf.sparse.mask(tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([4, 6])), [4])
    assert kept.indices.numpy().tolist() == [6] and kept.values.numpy().tolist() == [[2.0]]
    with pytest.raises(ValueError, match="without dense_shape"):
        tf.convert_to_tensor(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])))


def test_casts_keep_slices():
    slices = tf.IndexedSlices(tf.constant([[1.5], [2.5]]), tf.constant([1, 1]), tf.constant([3, 1]))
    assert tf.cast(slices, tf.float32) is slices
    cast = tf.cast(slices, tf.float64)
    assert isinstance(cast, tf.IndexedSlices) and cast.dtype is tf.float64
    assert cast.values.numpy().tolist() == [[1.5], [2.5]]
    assert tf.convert_to_tensor(cast).numpy().tolist() == [[0], [4], [0]]
