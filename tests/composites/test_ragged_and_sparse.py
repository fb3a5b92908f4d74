"""Ragged and sparse tensors as users meet them: gradients, functions, loops, files and datasets."""

import numpy as np
import pytest

import twofold as tf

MODES = pytest.mark.parametrize("decorate", [lambda f: f, tf.function], ids=["eager", "compiled"])


def ragged():
    return tf.RaggedTensor.from_row_lengths(tf.constant([1.0, 2.0, 3.0, 4.0, 5.0]), [2, 0, 3])


def sparse():
    return tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [2.0, 3.0, 4.0], [2, 3])


@MODES
def test_gradients_of_ragged_tensors(decorate):
    @decorate
    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x, axis=1) * tf.constant([1.0, 10.0, 100.0])
            y += tf.reduce_max(tf.concat([x, x[:, :1] * 3.0], axis=1), axis=1)[0]
        return tape.gradient(y, x)

    result = gradients(ragged())
    # rows [1, 2] and [3, 4, 5]: 2 x * weight; the maximum of row 0, 3 * 1, is added to each of the three sums
    assert result.to_list() == [[2.0 + 9.0, 4.0], [], [600.0, 800.0, 1000.0]]


@MODES
def test_gradients_of_padding_and_masks(decorate):
    @decorate
    def gradients(x, w):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.reduce_sum(x.to_tensor() * w) + tf.reduce_sum(tf.ragged.boolean_mask(x, x > 2.0))
        return tape.gradient(y, [x, w])

    w = tf.constant(np.arange(9, dtype=np.float32).reshape(3, 3))
    of_x, of_w = gradients(ragged(), w)
    assert of_x.to_list() == [[0.0, 1.0], [], [7.0, 8.0, 9.0]]
    assert of_w.numpy().tolist() == [[1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, 4.0, 5.0]]


@MODES
def test_gradients_of_ragged_indices_along_an_inner_axis(decorate):
    @decorate
    def gradients(x, rows, at):
        with tf.GradientTape() as tape:
            tape.watch([x, rows])
            y = tf.reduce_sum(tf.gather(x, at, axis=1).flat_values ** 2) + tf.reduce_sum(
                tf.gather(rows, at, axis=1).flat_values ** 2)
        return tape.gradient(y, [x, rows])

    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    of_x, of_rows = gradients(tf.constant(x), tf.ragged.constant([[1.0, 2.0], [3.0, 4.0, 5.0]]),
                              tf.ragged.constant([[1], [0, 1], []]))
    times = np.array([1.0, 2.0, 0.0], np.float32)  # how often each column is read
    np.testing.assert_array_equal(of_x, 2 * x * times[:, None])
    assert of_rows.to_list() == [[2.0, 8.0], [6.0, 16.0, 0.0]]


@MODES
@pytest.mark.parametrize("adjoint", [False, True])
def test_products_with_sparse_matrices_and_their_gradients(decorate, adjoint):
    dense = np.arange(6, dtype=np.float32).reshape((2, 3) if adjoint else (3, 2)) + 1

    @decorate
    def run(a, b):
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            y = tf.sparse.sparse_dense_matmul(a, b, adjoint_a=adjoint)
            loss = tf.reduce_sum(y * y)
        return y, tape.gradient(loss, [a, b])

    y, (of_a, of_b) = run(sparse(), tf.constant(dense))
    full = tf.sparse.to_dense(sparse()).numpy()
    matrix = full.T if adjoint else full
    np.testing.assert_allclose(y, matrix @ dense)
    of_matrix = 2 * (matrix @ dense) @ dense.T
    of_full = of_matrix.T if adjoint else of_matrix
    np.testing.assert_allclose(of_a.values, of_full[[0, 1, 1], [1, 0, 2]])
    np.testing.assert_allclose(of_b, matrix.T @ (2 * matrix @ dense))


def test_a_function_has_one_trace_for_rows_of_all_lengths():
    traces = []

    @tf.function
    def means(x):
        traces.append(x)
        return tf.reduce_mean(x, axis=-1)

    for lengths in ([1, 2], [3, 0, 1], [2, 2, 2, 2], [0]):
        x = tf.RaggedTensor.from_row_lengths(tf.range(float(sum(lengths))), lengths)
        expected = [float(np.mean(row)) if row else np.nan for row in x.to_list()]
        np.testing.assert_array_equal(means(x), expected)
    assert len(traces) <= 2


def test_loops_and_branches_pass_ragged_tensors_on():
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    def doubled(x):
        for _ in tf.range(2):
            x = x * 2.0
        if tf.size(x) > 3:
            x = tf.reverse(x, [1])
        return tf.while_loop(lambda n, t: n < 2, lambda n, t: (n + 1, tf.concat([t, t[:1]], 0)), [0, x],
                             shape_invariants=[tf.TensorShape([]), tf.RaggedTensorSpec([None, None], tf.float32)])[1]

    assert doubled(ragged()).to_list() == [[8.0, 4.0], [], [20.0, 16.0, 12.0], [8.0, 4.0], [8.0, 4.0]]
    assert doubled(ragged()[:1]).to_list() == [[4.0, 8.0]] * 3


@MODES
def test_map_fn_over_rows(decorate):
    total = decorate(lambda x: tf.map_fn(tf.reduce_sum, x, fn_output_signature=tf.float32))
    assert total(ragged()).numpy().tolist() == [3.0, 0.0, 12.0]
    repeated = decorate(lambda n: tf.map_fn(lambda k: tf.fill([k], k), n,
                                            fn_output_signature=tf.RaggedTensorSpec([None], tf.int32)))
    for counts in ([2, 0, 3], [1], list(range(40))):
        assert repeated(tf.constant(counts)).to_list() == [[k] * k for k in counts]


def test_map_fn_of_unknown_length_is_a_loop():
    spec = tf.RaggedTensorSpec([None, None], tf.float32)
    rows = tf.function(lambda x: tf.map_fn(lambda r: r[::-1], x), input_signature=[spec])
    assert rows(ragged()).to_list() == [[2.0, 1.0], [], [5.0, 4.0, 3.0]]
    total = tf.function(lambda x: tf.map_fn(tf.reduce_sum, x, fn_output_signature=tf.float32), input_signature=[spec])
    assert total(ragged()).numpy().tolist() == [3.0, 0.0, 12.0]


def test_map_fn_in_a_loop_joins_more_rows_than_a_block_has():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def run(counts):
        return tf.map_fn(lambda n: (tf.fill([n], n), tf.SparseTensor([[n]], [n], [5]), n), counts,
                         fn_output_signature=(tf.RaggedTensorSpec([None], tf.int64), tf.SparseTensorSpec([5], tf.int64),
                                              tf.int64))
    counts = np.arange(1061) % 5
    rows, places, same = run(counts)
    np.testing.assert_array_equal(rows.row_lengths(), counts)
    np.testing.assert_array_equal(rows.flat_values, np.repeat(counts, counts))
    np.testing.assert_array_equal(places.indices, np.stack([np.arange(1061), counts], 1))
    assert places.dense_shape.numpy().tolist() == [1061, 5]
    np.testing.assert_array_equal(places.values, counts)
    np.testing.assert_array_equal(same, counts)


SLICES = tf.SparseTensor([[0, 0, 1], [0, 1, 0], [2, 1, 3]], [1.0, 2.0, 3.0], [3, 2, 4])
OPEN = [tf.SparseTensorSpec([None, 2, 4]), tf.TensorSpec([None, 4, 2])]


@pytest.mark.parametrize("decorate", [lambda f: f, tf.function, lambda f: tf.function(f, input_signature=OPEN)],
                         ids=["eager", "unrolled", "loop"])
def test_map_fn_over_sparse_slices_and_its_gradients(decorate):
    @decorate
    def run(a, b):
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            y = tf.map_fn(lambda x: tf.sparse.sparse_dense_matmul(x[0], x[1]), (a, b), fn_output_signature=tf.float32)
            turned, rows = tf.map_fn(lambda x: (tf.sparse.transpose(x[0]) * x[1], tf.boolean_mask(x[1], x[1] > 9.0)),
                                     (a, b), fn_output_signature=(tf.SparseTensorSpec([4, 2]),
                                                                  tf.RaggedTensorSpec([None])))
            loss = tf.reduce_sum(y * y) + tf.reduce_sum(turned.values)
        return y, turned, rows, tape.gradient(loss, [a, b])

    dense = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    full = tf.sparse.to_dense(SLICES).numpy()
    y, turned, rows, (of_a, of_b) = run(SLICES, tf.constant(dense))
    np.testing.assert_array_equal(y, full @ dense)
    np.testing.assert_array_equal(tf.sparse.to_dense(turned), full.transpose(0, 2, 1) * dense)
    assert rows.to_list() == [list(x[x > 9.0]) for x in dense]
    of_full = 2 * (full @ dense) @ dense.transpose(0, 2, 1) + dense.transpose(0, 2, 1)
    np.testing.assert_array_equal(of_a.values, of_full[tuple(SLICES.indices.numpy().T)])
    np.testing.assert_array_equal(of_b, full.transpose(0, 2, 1) @ (2 * full @ dense) + full.transpose(0, 2, 1))
    if decorate is not tf.function:  # no slices at all
        y, turned, rows, _ = run(tf.SparseTensor(SLICES.indices[:0], [], [0, 2, 4]), tf.constant(dense[:0]))
        assert turned.shape == [0, 4, 2] and rows.to_list() == []


@MODES
def test_vectorized_map_gives_sparse_and_ragged_tensors(decorate):
    def parts(v):
        return tf.sparse.from_dense(v), tf.RaggedTensor.from_row_lengths(v, [1, 2])
    made, rows = decorate(lambda x: tf.vectorized_map(parts, x))(tf.constant([[1, 0, 2], [0, 0, 0], [3, 4, 5]]))
    assert tf.sparse.to_dense(made).numpy().tolist() == [[1, 0, 2], [0, 0, 0], [3, 4, 5]]
    assert rows.to_list() == [[[1], [0, 2]], [[0], [0, 0]], [[3], [4, 5]]]


def test_static_shapes_of_sparse_tensors_are_kept_as_far_as_they_are_known():
    @tf.function(input_signature=[tf.SparseTensorSpec([None, 2, 4]), tf.TensorSpec([None, 3])])
    def run(s, x):
        chosen = tf.cond(tf.size(x) > 3, lambda: s * 2.0, lambda: tf.sparse.add(s, s))
        other = tf.cond(tf.size(x) > 3, lambda: s, lambda: tf.sparse.transpose(s, [0, 2, 1]))
        made = tf.SparseTensor(s.indices[:, :2], s.values, (tf.shape(x)[0], 3))
        shapes.extend([chosen.shape, other.shape, made.shape, tf.sparse.concat(1, [s, s]).shape])
        return chosen

    shapes = []
    assert run(SLICES, tf.ones([3, 3])).values.numpy().tolist() == [2.0, 4.0, 6.0]
    assert [s.as_list() for s in shapes] == [[None, 2, 4], [None] * 3, [None, 3], [None, 4, 4]]


def test_saved_models_take_and_give_them(tmp_path):
    class Model(tf.Module):
        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32),
                                      tf.SparseTensorSpec([None, 3], tf.float32)])
        def __call__(self, x, s):
            return {"x": x[:, ::-1], "s": tf.sparse.add(s, s)}

    tf.saved_model.save(Model(), str(tmp_path))
    result = tf.saved_model.load(str(tmp_path))(ragged(), sparse())
    assert result["x"].to_list() == [[2.0, 1.0], [], [5.0, 4.0, 3.0]]
    assert result["s"].values.numpy().tolist() == [4.0, 6.0, 8.0] and result["s"].shape == [2, 3]


def test_ragged_batches_are_elements_of_datasets():
    data = tf.data.Dataset.range(1, 6).map(lambda n: (tf.fill([n], n), n)).ragged_batch(2)
    assert isinstance(data.element_spec[0], tf.RaggedTensorSpec) and data.element_spec[1].shape == [None]
    assert [x.to_list() for x, _ in data] == [[[1], [2, 2]], [[3] * 3, [4] * 4], [[5] * 5]]
    sums = data.map(lambda x, n: tf.reduce_sum(x, 1)).unbatch()
    assert [int(s) for s in sums] == [n * n for n in range(1, 6)]


def test_functions_do_not_write_values_out(monkeypatch) -> None:
    """A function finds what is registered for its operand by an error, whose text would take longer than the call."""
    for cls, value in ((tf.RaggedTensor, tf.ragged.constant([[1.0, 2.0], []])), (tf.SparseTensor, tf.sparse.eye(3))):
        monkeypatch.setattr(cls, "__repr__", lambda self: pytest.fail("the value was written out"))
        tf.reduce_sum(value, axis=1) if cls is tf.RaggedTensor else tf.abs(value)
        with pytest.raises(TypeError, match=rf"{cls.__name__} float32\[[23],"):
            tf.linalg.inv(value)


def test_refusals_name_the_function():
    with pytest.raises(TypeError, match="argmax: a RaggedTensor cannot be an operand here"):
        tf.argmax(ragged())
    with pytest.raises(ValueError, match="inner ragged dimension"):
        ragged()[:, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to broadcast"):
        ragged() + tf.RaggedTensor.from_row_lengths(tf.ones([5]), [1, 1, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to broadcast"):
        tf.function(lambda x, y: x + y)(ragged(), tf.RaggedTensor.from_row_lengths(tf.ones([5]), [1, 1, 3]))
    with pytest.raises(TypeError, match="exp of a SparseTensor"):
        tf.exp(sparse())
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        tf.function(tf.sparse.to_dense)(tf.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2]))



def test_functions_take_sparse_tensors_of_other_sizes():
    traces = []

    @tf.function
    def dense(st):
        traces.append(st.shape.as_list())
        return tf.sparse.to_dense(st), tf.zeros([2]) if st.shape[0] == 2 else tf.zeros([1])

    for rows, columns in [(4, 6), (2, 6), (2, 7), (5, 6)]:
        made, told = dense(tf.SparseTensor([[0, 1]], [1.0], [rows, columns]))
        assert made.shape == (rows, columns)
        assert told.shape == (1,)
    assert traces == [[None, 6], [None, 7]]  # rows are as many as there are, columns are known


def test_branches_give_sparse_tensors_of_other_sizes():
    @tf.function
    def one_of(first, a, b):
        return tf.cond(first, lambda: a, lambda: b)

    a, b = tf.SparseTensor([[0, 1]], [1.0], [1, 2]), tf.SparseTensor([[1, 2]], [1.0], [2, 3])
    assert tf.sparse.to_dense(one_of(tf.constant(True), a, b)).shape == (1, 2)
    assert tf.sparse.to_dense(one_of(tf.constant(False), a, b)).shape == (2, 3)


@pytest.mark.parametrize("spec, fed", [
    (tf.RaggedTensorSpec([None, None], tf.float32, ragged_rank=1), ([1.0, 2.0, 3.0], [0, 1, 3])),
    (tf.SparseTensorSpec([None, 4], tf.float32), ([[0, 1]], [5.0], [2, 4])),
])
def test_signatures_take_the_tensors_of_an_argument_by_names(tmp_path, spec, fed):
    module = tf.Module()
    module.f = tf.function(lambda x, w: x, input_signature=[spec, tf.TensorSpec([], tf.float32)])
    concrete = module.f.get_concrete_function()
    names = ["x", "x_1", "x_2"][:len(fed)]
    assert [t.name for t in concrete.inputs] == [*names, "w"]
    tf.saved_model.save(module, tmp_path / "m", {"serve": concrete})
    served = tf.saved_model.load(tmp_path / "m").signatures["serve"]
    args, kwargs = served.structured_input_signature
    parts = tf.nest.flatten(spec, expand_composites=True)
    assert args == () and {n: (s.name, s.dtype) for n, s in kwargs.items()} == {
        **{n: (n, s.dtype) for n, s in zip(names, parts, strict=True)}, "w": ("w", tf.float32)}
    assert {n: type(s) for n, s in served.structured_outputs.items()} == {"output_0": type(spec)}
    out = served(w=tf.constant(0.0), **{n: tf.constant(v, s.dtype) for n, v, s in zip(names, fed, parts, strict=True)})
    for actual, expected in zip(tf.nest.flatten(out["output_0"], expand_composites=True), fed, strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_dense_shapes_of_tensors(compiled):
    """A sequence with a tensor in it is a tensor, in which -1 is the bounding size; there may be fewer or more rows."""
    def dense(k, m):
        rt = tf.ragged.constant([[1, 2, 3], [], [4, 5]])
        return (rt.to_tensor(shape=[k, 2]), rt.to_tensor(shape=tf.stack([k, m])), rt.to_tensor(shape=[k, m]),
                rt.to_tensor(shape=tf.constant([2, 2])))
    run = tf.function(dense, fallback=False) if compiled else dense
    two = [t.numpy().tolist() for t in run(tf.constant(2), tf.constant(-1))]
    assert two == [[[1, 2], [0, 0]], [[1, 2, 3], [0, 0, 0]], [[1, 2, 3], [0, 0, 0]], [[1, 2], [0, 0]]]
    four = [t.numpy().tolist() for t in run(tf.constant(4), tf.constant(1))]
    assert four == [[[1, 2], [0, 0], [4, 5], [0, 0]], [[1], [0], [4], [0]], [[1], [0], [4], [0]], [[1, 2], [0, 0]]]
    with pytest.raises(ValueError, match=r"to_tensor: A shape of 1 sizes must have rank 2"):
        ragged().to_tensor(shape=tf.constant([2]))


def test_axes_of_sparse_tensors_that_are_out_of_range():
    st = tf.SparseTensor([[0, 1], [2, 3]], [1.0, 2.0], [3, 4])
    for call in (lambda k: tf.sparse.split(st, 2, k)[0].values, lambda k: tf.sparse.concat(k, [st, st]).values,
                 lambda k: tf.sparse.reduce_sum(st, k), lambda k: tf.sparse.transpose(st, [0, k]).values):
        for axis in (2, -3):
            with pytest.raises(ValueError, match="out of bounds|permutation"):
                call(axis)
            with pytest.raises(ValueError, match="out of range"):
                tf.function(call, fallback=False)(tf.constant(axis))
    with pytest.raises(ValueError, match="one part at least"):
        tf.sparse.split(st, 0, 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="larger than the size"):
        tf.sparse.split(st, 5, 1)


def test_operators_of_ragged_tensors_say_what_they_are():
    rt = tf.ragged.constant([[1, 2], [3]])
    for call in (lambda y: rt - y, lambda y: y - rt, lambda y: rt / y, lambda y: rt < y, lambda y: rt & y,
                 lambda y: rt == y):
        with pytest.raises(ValueError, match="^(subtract|truediv|less|logical_and|equal): "):
            call([5, 6, 7])
