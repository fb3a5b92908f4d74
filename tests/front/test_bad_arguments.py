"""Calls with values that no argument should be: an error of the library's, with the function and the user's line."""

from __future__ import annotations

import itertools
import operator
import resource
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twofold as tf

X = tf.ones([4, 4, 3])
LOOPED: list[Any] = []
LOOPED.append(LOOPED)

CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "pad": (lambda: tf.pad([1, 2], [[1, 1]], mode=3), "pad: .*`mode` = 3"),
    "cond of a vector": (lambda: tf.cond(tf.constant([True, False]), lambda: 1, lambda: 2), r"shape \(2,\).*tf.cond"),
    "cond of a list": (lambda: tf.cond([True, False], lambda: 1, lambda: 2), r"shape \(2,\).*tf.cond"),
    "cond of an array": (lambda: tf.cond(np.array([1, 0]), lambda: 1, lambda: 2), r"shape \(2,\).*tf.cond"),
    "cond of nothing": (lambda: tf.cond(tf.zeros([0]), lambda: 1, lambda: 2), r"shape \(0,\).*tf.cond"),
    "case": (lambda: tf.case([([True, False], lambda: 1)], default=lambda: 2), r"shape \(2,\).*tf.case"),
    "while_loop": (lambda: tf.while_loop(lambda i: tf.constant([True, False]), lambda i: i + 1, [tf.constant(0)]),
                   r"shape \(2,\)"),
    "axes": (lambda: tf.reduce_sum(tf.ones([2, 2]), axis=[0, 5]), "reduce_sum: axis 5 is out of range"),
    "axes of norm": (lambda: tf.norm(tf.ones([2, 2]), axis=[0, 5]), "norm.*"),
    "resize_with_pad": (lambda: tf.image.resize_with_pad(X, 2, 2, method="none"), "resize_with_pad: .*'none'"),
    "resize_with_pad of a list": (lambda: tf.image.resize_with_pad(X, 2, 2, method=[1]), "resize_with_pad: .*method"),
    "unravel_index of a scalar": (lambda: tf.unravel_index(5, 3), "unravel_index: dims must be a vector"),
    "unravel_index of floats": (lambda: tf.unravel_index([1.5], [3]), "unravel_index: indices must be integers"),
    "non_max_suppression": (lambda: tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0]], [0.5, 0.6], 2),
                            "non_max_suppression: boxes must have four numbers for each score"),
    "an integer of 64 bits": (lambda: tf.constant(2**63), "constant: .*does not fit in 64 bits"),
    "an integer for a dtype": (lambda: tf.constant(2**64, tf.int32), "constant: .*"),
    "a list that contains itself": (lambda: tf.constant(LOOPED), "constant: .*contains itself"),
    "polygamma": (lambda: tf.math.polygamma(2.0**63, [1.0]), "polygamma: a must be a whole number from 0 to 170"),
    "dynamic_partition": (lambda: tf.dynamic_partition([1.0], [0], 2**31), "dynamic_partition: num_partitions must be"),
    "an endless range": (lambda: tf.reduce_prod([1.0], range(2**40)), "reduce_prod: .*integers"),
}


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("mode", ["eager", "traced"])
def test_the_error_tells(name: str, mode: str) -> None:
    call, told = CASES[name]
    with pytest.raises((tf.errors.OpError, ValueError, TypeError), match=told) as caught:
        (call if mode == "eager" else tf.function(call))()
    assert not getattr(caught.value, "from_inside", False) or name == "a list that contains itself"
    assert "At test_bad_arguments.py:" in str(caught.value)


def test_layers_refuse_before_they_run() -> None:
    with pytest.raises(ValueError, match="CenterCrop takes an image"):
        tf.keras.layers.CenterCrop(2, 2)(tf.ones([4, 4]))
    with pytest.raises(ValueError, match="at most"):
        tf.keras.layers.AdaptiveMaxPooling3D(2**31)


@pytest.mark.parametrize("kind", ["average", "max"])
def test_any_number_of_parts_is_pooled_at_once(kind: str) -> None:
    """In both modes: as many as make sense in a few ops, more are refused."""
    pool, x = getattr(tf.keras.ops, f"adaptive_{kind}_pool"), tf.range(3.0)[None, :, None]
    for call in (pool, tf.function(pool)):
        y = call(x, 2**15).numpy().ravel()
        assert y.shape == (2**15,) and y[0] == 0.0 and y[-1] == 2.0 and (np.diff(y) >= 0).all()
        with pytest.raises(ValueError, match=f"adaptive_{kind}_pool: .*at most"):
            call(x, 2**31)


def test_numpy_functions_in_a_function() -> None:
    """A universal function of NumPy has no signature to read: it is called as it is, with a warning."""
    x = np.array([0.5, 1.5], np.float32)
    for fn in (np.sin, np.add):
        given = [x] * fn.nin
        with pytest.warns(RuntimeWarning, match="NumPy was asked to read it"):
            actual = tf.function(fn)(*map(tf.constant, given))
        np.testing.assert_allclose(actual, fn(*given))


@pytest.mark.parametrize("data", [[object()], [None], {"a": 1}, [[1, [2, 3]]], [2**70], "text", 3, [len, 1.5]])
def test_assertions_show_any_data_in_both_modes(data: Any) -> None:
    told = []
    for call in (lambda c: tf.debugging.Assert(c, data), tf.function(lambda c: tf.debugging.Assert(c, data))):
        call(tf.constant(True))
        with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed:") as caught:
            call(tf.constant(False))
        told.append(str(caught.value).splitlines()[0].rpartition("Assert: ")[2])
    assert told[0] == told[1]


class Endless(Sequence[Any]):
    """More items than anybody means: to read on for ever is an error of the test's."""

    def __init__(self, item: Any = 1) -> None:
        self.item = item

    def __len__(self) -> int:
        return 2**40

    def __getitem__(self, place: Any) -> Any:
        if place > 1 << 21:
            raise AssertionError("read for ever")
        return self.item


def stream(item: Any = 1) -> Iterator[Any]:
    """The same items without a known number; made by `itertools`, since each who takes them reads a million."""
    yield from itertools.repeat(item, 1 << 21)
    raise AssertionError("read for ever")


K = tf.keras
# What takes several tensors, numbers or settings, from any iterable: each with the items that come for ever.
ITERABLES: dict[str, Callable[[Any], Any]] = {
    "clip_by_global_norm": lambda x: tf.clip_by_global_norm(x, 1.0), "global_norm": tf.linalg.global_norm,
    "dynamic_stitch": lambda x: tf.dynamic_stitch(x, [[1]]),
    "identity_n": tf.identity_n, "shape_n": tf.shape_n, "tuple": tf.tuple, "join": tf.strings.join,
    "assert_rank_in": lambda x: tf.debugging.assert_rank_in([1.0], x),
    "conv2d": lambda x: tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), 1, x),
    "max_pool2d": lambda x: tf.nn.max_pool2d(tf.ones([1, 4, 4, 1]), 2, 2, x),
    "CsvDataset": lambda x: tf.data.experimental.CsvDataset("file", x),
    "CsvDataset columns": lambda x: tf.data.experimental.CsvDataset("file", [1], select_cols=x),
    "bucket": lambda x: tf.data.Dataset.range(3).bucket_by_sequence_length(lambda n: n, x, [1, 2]),
    "adapt": lambda x: K.layers.Normalization(axis=None).adapt(x),
    "adapt bins": lambda x: K.layers.Discretization(num_bins=2).adapt(x),
    "bin_boundaries": lambda x: K.layers.Discretization(x), "concatenate": K.ops.concatenate, "stack": K.ops.stack,
    "hstack": K.ops.hstack, "vstack": K.ops.vstack, "dstack": K.ops.dstack,
    "split": lambda x: K.ops.split([1, 2], x), "KerasTensor": K.KerasTensor,
    "set_weights": lambda x: K.layers.Dense(1).set_weights(x), "apply": lambda x: K.optimizers.SGD().apply(x, [1]),
    "add_variable": lambda x: K.optimizers.SGD().add_variable(x),
    "weight": lambda x: K.metrics.Mean().add_weight("w", x), "Print": lambda x: tf.compat.v1.Print([1.0], x),
    "tuple of TensorFlow 1": tf.compat.v1.tuple,
    "mask of Add": lambda x: K.layers.Add().compute_mask([1], x),
    "mask of Concatenate": lambda x: K.layers.Concatenate().compute_mask([1], x),
    "checkpoints": lambda x: tf.compat.v1.train.Saver({"a": tf.Variable(1.0)}).set_last_checkpoints(x),
    "checkpoints with times": lambda x: tf.compat.v1.train.Saver({"a": tf.Variable(1.0)}
                                                                 ).set_last_checkpoints_with_time(x),
    "earlier checkpoints": lambda x: tf.compat.v1.train.Saver({"a": tf.Variable(1.0)}).recover_last_checkpoints(x),
    "skipgrams": lambda x: K.preprocessing.sequence.skipgrams(x, 4),
    "mode of a file": lambda x: tf.io.gfile.GFile("file", x),
    "assert_same_float_dtype": tf.debugging.assert_same_float_dtype, "CustomObjectScope": K.saving.CustomObjectScope,
    "module_objects": lambda x: K.saving.deserialize_keras_object("name", module_objects=x),
    "get_registered_object": lambda x: K.saving.get_registered_object("name", x),
    "get_registered_object of a module": lambda x: K.saving.get_registered_object("name", module_objects=x),
    **{f"deserialize of {module.__name__}": lambda x, read=module.deserialize: read({"class_name": "A", "config": {}},
                                                                                                  x)
       for module in (K.activations, K.constraints, K.initializers, K.layers, K.losses, K.metrics, K.optimizers,
                      K.optimizers.schedules, K.regularizers)},
    "deserialize of a name": lambda x: K.activations.deserialize("tanh", x),
    "what a tuple waits for": lambda x: tf.tuple([1.0], x), "Input": K.Input, "Dot": lambda x: K.layers.Dot(1)(x),
    "pack_sequence_as": lambda x: tf.nest.pack_sequence_as([1], x), "from_config": K.Model.from_config,
    "batch_shape": lambda x: K.Input(batch_shape=x),
    "layer_range": lambda x: K.Sequential([K.layers.Dense(1)]).summary(layer_range=x),
    "text_to_word_sequence": lambda x: K.preprocessing.text.text_to_word_sequence("a b", x),
    "parse_single_example": lambda x: tf.io.parse_single_example("", x),
    "parse_single_sequence_example": lambda x: tf.io.parse_single_sequence_example("", None, x),
    "sample_from_datasets": tf.data.Dataset.sample_from_datasets,
    "choose_from_datasets": lambda x: tf.data.Dataset.choose_from_datasets(x, tf.data.Dataset.range(1)),
    "from_generator": lambda x: tf.data.Dataset.from_generator(range, tf.int32, args=x),
    "assert_shapes": tf.debugging.assert_shapes, "CheckpointOptions": lambda x: tf.train.CheckpointOptions(
        experimental_write_callbacks=x),
    "AUC": lambda x: K.metrics.AUC(thresholds=x), "EinsumDense": lambda x: K.layers.EinsumDense("ab,bc->ac", x),
    "Reshape": K.layers.Reshape, "Permute": K.layers.Permute, "Pipeline": K.layers.Pipeline,
    "StackedRNNCells": K.layers.StackedRNNCells, "axis of Normalization": K.layers.Normalization,
    "tile": lambda x: K.ops.tile([1.0], x), "vectorize": lambda x: K.ops.vectorize(abs, excluded=x),
    "scale_and_translate": lambda x: K.ops.image.scale_and_translate(
        tf.ones([2, 2]), [2, 2], [1.0], [0.0], x, "linear"),
    "build of SGD": lambda x: K.optimizers.SGD().build(x), "build of Adam": lambda x: K.optimizers.Adam().build(x),
    "compute_gradients": lambda x: K.optimizers.SGD().compute_gradients(lambda: tf.constant(1.0), x),
    "add_optimizer_variables": lambda x: K.optimizers.SGD().add_optimizer_variables(x, "slot"),
    "noise_shape": lambda x: K.random.dropout([1.0], 0.5, noise_shape=x),
    "stateful_metrics": lambda x: K.utils.Progbar(3, stateful_metrics=x),
    "add_to_collections": lambda x: tf.compat.v1.add_to_collections(x, 1),
    "DEFINE_enum": lambda x: tf.compat.v1.flags.DEFINE_enum("endless", "a", x),
    "MultiRNNCell": tf.compat.v1.nn.rnn_cell.MultiRNNCell,
    "piecewise_constant": lambda x: tf.compat.v1.train.piecewise_constant(1, x, [1.0]),
    "get_checkpoint_mtimes": tf.compat.v1.train.get_checkpoint_mtimes,
    "update_checkpoint_state": lambda x: tf.compat.v1.train.update_checkpoint_state(".", "model", x),
    "make_callable": lambda x: tf.compat.v1.Session(graph=tf.compat.v1.Graph()).make_callable([], x),
    "build of Adafactor": lambda x: K.optimizers.Adafactor().build(x), "switch": lambda x: K.ops.switch(0, x),
    "MultiHeadAttention": lambda x: K.layers.MultiHeadAttention(1, 2, output_shape=x),
    "arguments of Lambda": lambda x: K.layers.Lambda(abs, arguments=x),
    "feed_dict": lambda x: tf.compat.v1.Session(graph=tf.compat.v1.Graph()).run([], x),
    "compute_gradients of TensorFlow 1": lambda x: tf.compat.v1.train.GradientDescentOptimizer(1.0).compute_gradients(
        lambda: tf.constant(1.0), x),
    "apply_gradients of TensorFlow 1": tf.compat.v1.train.GradientDescentOptimizer(1.0).apply_gradients,
    "pad": lambda x: K.ops.pad([1.0], x), "expand_dims": lambda x: K.ops.expand_dims([1.0], x),
    "make_sampling_table": K.preprocessing.sequence.make_sampling_table,
    "ctc_loss": lambda x: K.ops.ctc_loss([[1]], [[[0.1, 0.9]]], [1], [1], x),
    "order": lambda x: K.utils.normalize([1.0], order=x),
    "write_raw_pb": lambda x: tf.summary.experimental.write_raw_pb(x, 1),
    "fault": lambda x: K.layers.InputSpec(ndim=1).fault(x, "float32"),
    "averages": lambda x: tf.compat.v1.train.ExponentialMovingAverage(0.5).apply(x),
}


@pytest.mark.parametrize("name", list(ITERABLES))
def test_no_iterable_is_read_for_ever(name: str) -> None:
    for make in (Endless, stream):
        with pytest.raises((tf.errors.OpError, ValueError, TypeError)):
            ITERABLES[name](make("a" if name == "join" else 1))


RANGES: dict[str, Callable[[Any], Any]] = {
    "vocabulary": K.layers.IntegerLookup().set_vocabulary, "update_state": K.layers.TextVectorization().update_state,
    "to_categorical": K.utils.to_categorical, "normalize": K.utils.normalize, "get_value": K.backend.get_value,
    "convert_to_numpy": K.ops.convert_to_numpy, "weights": lambda x: K.layers.Embedding(2, 2, weights=x),
    "targets": lambda x: K.utils.timeseries_dataset_from_array([1.0, 2.0], x, 1), "img_to_array": K.utils.img_to_array,
    "array_to_img": K.utils.array_to_img, "value": lambda x: K.utils.pad_sequences([[1], [1, 2]], value=x),
    "is_compatible_with": tf.TensorSpec([2]).is_compatible_with,
    "rejection_resample": lambda x: tf.data.Dataset.range(2).rejection_resample(lambda n: 0, x),
}


@pytest.fixture
def two_gigabytes_more() -> Iterator[None]:
    """A limit of the process's memory, so that what takes too much is an error."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (2 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("name", list(RANGES))
def test_long_ranges_are_refused_before_they_take_memory(name: str, two_gigabytes_more: None) -> None:
    with pytest.raises(tf.errors.ResourceExhaustedError, match="Unable to allocate"):  # as NumPy says beforehand
        RANGES[name](range(2**45))


SETTINGS: dict[str, Callable[[Any], Any]] = {
    "sampling_factor": lambda v: K.preprocessing.sequence.make_sampling_table(3, v),
    **{name: lambda v, name=name: tf.nn.local_response_normalization(tf.ones([1, 1, 1, 2]), **{name: v})
       for name in ("bias", "alpha", "beta")},
    "beta of a window": lambda v: tf.signal.kaiser_window(4, beta=v),
    "beta of another": lambda v: tf.signal.kaiser_bessel_derived_window(4, beta=v),
    "sample_rate": lambda v: tf.signal.linear_to_mel_weight_matrix(sample_rate=v),
}


@pytest.mark.parametrize("name", list(SETTINGS))
def test_settings_that_are_numbers(name: str, two_gigabytes_more: None) -> None:
    """Nothing else is read: arithmetic with arrays would make a list of an iterable."""
    whole = 8000 if name == "sample_rate" else 1
    for number in (whole, whole * 1.0, np.float32(whole), np.array(whole), tf.constant(whole), tf.Variable(whole)):
        np.testing.assert_array_equal(SETTINGS[name](number), SETTINGS[name](whole))
    for value in (range(2**45), range(2), itertools.count(), iter(int, 1), "1", [1.0], np.ones(2), None, 1j, 10**400,
                  tf.ones([2]), {}, Endless(1.0)):
        with pytest.raises((TypeError, tf.errors.InvalidArgumentError), match="must be a number; got"):
            SETTINGS[name](value)


@pytest.mark.parametrize(("make", "value"), [(tf.train.FloatList, 1.0), (tf.train.Int64List, 1),
                                             (tf.train.BytesList, b"a")])
def test_lists_of_records_are_read_at_length_where_they_have_one(make: Any, value: Any) -> None:
    assert len(make(value=[value] * 2_000_000)) == len(make(value=(value,) * 2_000_000)) == 2_000_000
    assert len(make(value=(value for _ in range(9)))) == 9
    for endless in (map(Endless(value).__getitem__, itertools.count()), Endless(value)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="value has more than .* items, which cannot be meant"):
            make(value=endless)


@pytest.mark.parametrize("call", [
    lambda a: tf.signal.frame(tf.ones([2, 3]), 2, 1, axis=a), lambda a: tf.strings.reduce_join([["a", "b"]], axis=a),
    lambda a: K.layers.PReLU(shared_axes=[a])(tf.ones([2, 3])), lambda a: K.layers.Dot(a)([tf.ones([2, 3])] * 2)])
def test_axes_out_of_range(call: Callable[[int], Any]) -> None:
    for axis in (2, -3, 9, -2**40):
        with pytest.raises(ValueError, match="axis .* is out of range|Axis .* is out of bounds"):
            call(axis)


@pytest.mark.parametrize("cut", [lambda x, n: tf.split(x, n), lambda x, n: tf.unstack(tf.zeros([n, 0])),
                                 lambda x, n: K.ops.split(x, n), K.ops.array_split])
def test_no_tensor_is_cut_in_pieces_without_end(cut: Callable[[Any, int], Any]) -> None:
    """Zeros have any number of pieces, and take no memory."""
    for x in (tf.zeros([0]), tf.zeros([2**31, 0])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be meant"):
            cut(x, 2**31)


@pytest.mark.parametrize("argv", [3, "program", [3], [], Endless("a"), None])
def test_flags_say_who_refuses_a_command_line(argv: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="FLAGS takes the words of a command line") as caught:
        tf.compat.v1.flags.FLAGS(argv)
    assert "At test_bad_arguments.py:" in str(caught.value)


NUMBERS, TEXTS = K.Input([4]), K.Input([4], dtype="string")
ORDER = {"lt": "greater", "le": "greater_equal", "gt": "less", "ge": "less_equal"}
NAMES = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floordiv",
         "mod": "floormod", "pow": "pow", "matmul": "matmul", "and_": "logical_and", "or_": "logical_or",
         "xor": "logical_xor", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


@pytest.mark.parametrize("name", list(NAMES))
def test_operators_of_keras_tensors_tell(name: str) -> None:
    """What stands for a tensor meets tensors and variables; with texts, the operator is told by its op's name."""
    act = getattr(operator, name)
    for value in (tf.ones([4, 4]), tf.Variable(tf.ones([4, 4]))):
        assert act(value, NUMBERS).shape == (4, 4)
        assert act(NUMBERS, value).shape is not None
    with pytest.raises((ValueError, TypeError), match=f"^{NAMES[name]}\\b") as caught:
        act(NUMBERS, "text")
    assert "At test_bad_arguments.py:" in str(caught.value)
    if name != "mod":  # the text's own formatting
        with pytest.raises((ValueError, TypeError), match=f"^{ORDER.get(name, NAMES[name])}\\b") as caught:
            act("text", NUMBERS)
        assert "At test_bad_arguments.py:" in str(caught.value)


def test_equality_with_a_keras_tensor_is_told() -> None:
    for act, name in ((operator.eq, "equal"), (operator.ne, "not_equal")):
        with pytest.raises(TypeError, match=f"^{name} cannot be a part of a functional model"):
            act(tf.ones([4]), NUMBERS)


@pytest.mark.parametrize("act, name", [(operator.neg, "negative"), (abs, "abs"), (operator.invert, "invert")])
def test_operators_of_one_keras_tensor_tell(act: Callable[[Any], Any], name: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"^{name}\\b") as caught:
        act(TEXTS)
    assert "At test_bad_arguments.py:" in str(caught.value)


def test_comparisons_with_keras_tensors_are_those_of_values() -> None:
    given = np.array([[1, 3, 2, 5]], np.float32)
    twos = tf.fill([1, 4], 2.0)
    for act in (operator.lt, operator.le, operator.gt, operator.ge):
        model = K.Model(NUMBERS, tf.cast(act(twos, NUMBERS), tf.int32))
        assert model(given).numpy().tolist() == act(np.full([1, 4], 2.0), given).astype(int).tolist()


def test_strides_and_paddings_far_beyond_windows_and_images() -> None:
    """What is planned goes by taps and windows, of which there are few, and not by sizes."""
    x, filters = tf.constant([[[1.0], [5.0]]]), tf.constant([[[2.0]], [[3.0]]])
    for stride in (3, 2**22):
        traced = tf.function(lambda x, stride=stride: K.ops.conv_transpose(x, filters, stride))(x).numpy().ravel()
        places = [0, 1, stride, stride + 1]
        assert traced[places].tolist() == [2.0, 3.0, 10.0, 15.0] and traced.sum() == 30
    with pytest.raises(tf.errors.ResourceExhaustedError):
        tf.function(lambda x: K.ops.conv_transpose(x, filters, 2**40))(x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="strides must be at most"):
        tf.function(lambda x: K.ops.conv_transpose(x, filters, 2**45))(x)
    windows = tf.ones([1, 2, 2])
    for more in ({"padding": 2**62}, {"padding": 1}, {"stride": 2**62}, {"dilation": 2**62}):
        with pytest.raises(ValueError, match=r"fold: x must be .* with \d+ windows; got shape \(1, 2, 2\)"):
            K.ops.fold(windows, (2, 2), (1, 2), **more)
    for kernel in (3, (1, 5), 2**62):
        with pytest.raises(ValueError, match=r"unfold: windows of kernel_size=.* do not fit into padded images"):
            K.ops.unfold(tf.ones([2, 1, 2, 2]), kernel)
