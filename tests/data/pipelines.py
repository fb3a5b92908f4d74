"""Pipelines whose results are compared with TensorFlow's: each takes `tf`, and gives a dataset or raises.

`reference.py` runs them under TensorFlow and stores what they give in `reference.json`; `test_reference.py` runs them
here.
"""

from __future__ import annotations

import numpy as np

PIPELINES = {}


def pipeline(fn):
    """Register a pipeline."""
    PIPELINES[fn.__name__] = fn
    return fn


def described(tf, fn, tmp):
    """What a pipeline gives, as JSON: spec, cardinality and the first 40 elements; or the class of its error."""
    try:
        dataset = fn(tf, tmp)
        actual = {"spec": spec_text(tf, dataset.element_spec), "cardinality": int(dataset.cardinality())}
    except Exception as error:  # noqa: BLE001 - errors are compared
        return {"error": type(error).__name__}
    elements, iterator = [], iter(dataset)
    try:
        for element in iterator:
            elements.append(plain(tf, element))
            if len(elements) == 40:
                break
    except Exception as error:  # noqa: BLE001 - errors are compared
        actual["raises"] = type(error).__name__
    actual["elements"] = elements
    return actual


def spec_text(tf, spec):
    """A structure of specs as text, the same for both libraries."""
    if isinstance(spec, tf.TensorSpec):
        rank = spec.shape.rank
        shape = "?" if rank is None else ",".join("None" if n is None else str(n) for n in list(spec.shape))
        return f"{spec.dtype.name}[{shape}]"
    if isinstance(spec, dict):
        return {k: spec_text(tf, v) for k, v in spec.items()}
    if isinstance(spec, tuple):
        return [spec_text(tf, v) for v in spec]
    return f"dataset of {spec_text(tf, spec.element_spec)}"


def plain(tf, value):
    """An element as JSON."""
    if isinstance(value, dict):
        return {k: plain(tf, v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(tf, v) for v in value]
    if isinstance(value, tf.data.Dataset):
        return {"dataset": [plain(tf, v) for v in value]}
    return listed(value.numpy())


def listed(value):
    """An array or scalar as JSON."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray):
        return [listed(v) for v in value]
    return value.item()


def ragged(tf, *rows):
    """A dataset of vectors of different lengths."""
    return tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=tf.TensorSpec([None], tf.int32))


def inputs(tf):
    """Datasets of known, infinite and unknown size."""
    numbers = tf.data.Dataset.range(10)
    return {"known": numbers, "endless": tf.data.Dataset.range(3).repeat(),
            "unknown": numbers.filter(lambda x: x >= 0)}


STEPS = {
    "same": lambda tf, d: d,
    "map": lambda tf, d: d.map(lambda x: (x, x * 2)),
    "map_list": lambda tf, d: d.map(lambda x: [x, x + 1]),
    "map_dict": lambda tf, d: d.map(lambda x: {"b": x, "a": (tf.cast(x, tf.float32), [1, 2])}),
    "map_parallel": lambda tf, d: d.map(lambda x: x + 1, num_parallel_calls=3),
    "filter": lambda tf, d: d.filter(lambda x: x % 2 == 0),
    "repeat_2": lambda tf, d: d.repeat(2),
    "repeat_0": lambda tf, d: d.repeat(0),
    "repeat": lambda tf, d: d.repeat(),
    "take_3": lambda tf, d: d.take(3),
    "take_all": lambda tf, d: d.take(-1),
    "take_0": lambda tf, d: d.take(0),
    "skip_3": lambda tf, d: d.skip(3),
    "skip_beyond": lambda tf, d: d.take(7).skip(30),
    "batch_3": lambda tf, d: d.batch(3),
    "batch_3_dropped": lambda tf, d: d.batch(3, drop_remainder=True),
    "batch_batch": lambda tf, d: d.batch(3, drop_remainder=True).batch(2),
    "unbatch": lambda tf, d: d.batch(3).unbatch(),
    "unbatch_known": lambda tf, d: d.batch(3, drop_remainder=True).unbatch(),
    "rebatch": lambda tf, d: d.batch(4).rebatch(3),
    "rebatch_dropped": lambda tf, d: d.batch(4).rebatch(3, drop_remainder=True),
    "rebatch_in_turn": lambda tf, d: d.batch(4).rebatch([2, 1, 1, 3]),
    "window": lambda tf, d: d.window(3),
    "window_dropped": lambda tf, d: d.window(3, shift=2, drop_remainder=True),
    "window_apart": lambda tf, d: d.window(2, shift=5),
    "window_strided": lambda tf, d: d.window(3, shift=1, stride=2),
    "window_strided_dropped": lambda tf, d: d.window(3, shift=1, stride=2, drop_remainder=True),
    "window_flat": lambda tf, d: d.window(3, shift=1).flat_map(lambda w: w.batch(3)),
    "window_pairs": lambda tf, d: tf.data.Dataset.zip((d, d)).window(2).flat_map(
        lambda a, b: tf.data.Dataset.zip((a.batch(2), b.batch(2)))),
    "window_map": lambda tf, d: d.window(2).map(lambda w: w.reduce(np.int64(0), lambda s, x: s + x)),
    "flat_map": lambda tf, d: d.flat_map(lambda x: tf.data.Dataset.range(x % 4)),
    "flat_map_slices": lambda tf, d: d.flat_map(lambda x: tf.data.Dataset.from_tensor_slices([x, x * 10])),
    "interleave_2_3": lambda tf, d: d.interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(4), cycle_length=2, block_length=3),
    "interleave_uneven": lambda tf, d: d.interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(x % 3), cycle_length=3, block_length=1),
    "interleave_wide": lambda tf, d: d.take(4).interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(x + 1), cycle_length=9, block_length=2),
    "enumerate": lambda tf, d: d.enumerate(5),
    "cache": lambda tf, d: d.take(7).cache(),
    "prefetch": lambda tf, d: d.prefetch(2),
    "shard": lambda tf, d: d.shard(3, 1),
    "shuffle_1": lambda tf, d: d.shuffle(1),
    "scan": lambda tf, d: d.scan(np.int64(0), lambda s, x: (s + x, (s, x))),
    "take_while": lambda tf, d: d.take_while(lambda x: x < 2),
    "zip": lambda tf, d: tf.data.Dataset.zip((d, {"a": tf.data.Dataset.range(100, 106)})),
    "concatenate": lambda tf, d: d.concatenate(tf.data.Dataset.range(20, 23)),
    "choose": lambda tf, d: tf.data.Dataset.choose_from_datasets(
        [d, tf.data.Dataset.range(50, 53)], tf.data.Dataset.range(2).repeat(6)),
    "choose_on": lambda tf, d: tf.data.Dataset.choose_from_datasets(
        [d, tf.data.Dataset.range(50, 53)], tf.data.Dataset.range(2).repeat(8), stop_on_empty_dataset=False),
    "unique": lambda tf, d: d.take(9).map(lambda x: x % 3).unique(),
    "group": lambda tf, d: d.take(11).group_by_window(lambda x: x % 3, lambda k, w: w.batch(4), 3),
    "group_sizes": lambda tf, d: d.take(11).group_by_window(
        lambda x: x % 3, lambda k, w: w.batch(4).map(lambda b: (k, b)), window_size_func=lambda k: k + 1),
    "padded": lambda tf, d: d.take(5).map(lambda x: tf.fill([x % 3], x)).padded_batch(2),
    "ignore_errors": lambda tf, d: d.take(9).map(
        lambda x: tf.debugging.check_numerics(tf.cast(x, tf.float32) / tf.cast(x % 3, tf.float32), "no")
    ).ignore_errors(),
    "branches": lambda tf, d: d.map(lambda x: tf.cond(x > 1, lambda: x * 10, lambda: -x)),
    "nested": lambda tf, d: d.map(lambda x: tf.data.Dataset.range(x % 3)),
    "assert_more": lambda tf, d: d.take(5).apply(tf.data.experimental.assert_cardinality(4)),
    "assert_less": lambda tf, d: d.take(3).apply(tf.data.experimental.assert_cardinality(4)),
}
# Where the number of elements is told, and TensorFlow tells another: endless datasets that may end, and what is known.
OWN_COUNTS = {"endless.choose", "endless.choose_on", "endless.group", "endless.group_sizes"}


def _step(kind, step):
    return lambda tf, tmp: STEPS[step](tf, inputs(tf)[kind])


for _kind in ("known", "endless", "unknown"):
    for _name in STEPS:
        if (_kind, _name) != ("endless", "unique"):
            PIPELINES[f"{_kind}.{_name}"] = _step(_kind, _name)


@pipeline
def slices_of_structure(tf, tmp):
    return tf.data.Dataset.from_tensor_slices({"a": [[1, 2], [3, 4]], "b": (["x", "y"], [True, False])})


@pipeline
def tensors_of_structure(tf, tmp):
    return tf.data.Dataset.from_tensors({"a": 1, "b": (2.0, "x")}).repeat(2)


@pipeline
def slices_of_different_sizes(tf, tmp):
    return tf.data.Dataset.from_tensor_slices(([1, 2], [1, 2, 3]))


@pipeline
def slices_of_scalar(tf, tmp):
    return tf.data.Dataset.from_tensor_slices(3)


@pipeline
def range_down(tf, tmp):
    return tf.data.Dataset.range(5, 0, -2, output_type=tf.int32)


@pipeline
def range_of_float(tf, tmp):
    return tf.data.Dataset.range(0.5)


@pipeline
def counter(tf, tmp):
    return tf.data.Dataset.counter(start=7, step=-2)


@pipeline
def generator_of_types(tf, tmp):
    return tf.data.Dataset.from_generator(lambda: iter([(1, [1.5]), (2, [2.5, 3.5])]),
                                          output_types=(tf.int64, tf.float32))


@pipeline
def generator_of_wrong_shape(tf, tmp):
    return tf.data.Dataset.from_generator(lambda: iter([[1, 2, 3], [1, 2]]),
                                          output_signature=tf.TensorSpec([3], tf.int32))


@pipeline
def generator_of_wrong_type(tf, tmp):
    return tf.data.Dataset.from_generator(lambda: iter([1, "a"]), output_signature=tf.TensorSpec([], tf.int32))


@pipeline
def generator_without_signature(tf, tmp):
    return tf.data.Dataset.from_generator(lambda: iter([1]))


@pipeline
def generator_that_is_none(tf, tmp):
    return tf.data.Dataset.from_generator([1], output_types=tf.int32)


@pipeline
def generator_with_args(tf, tmp):
    return tf.data.Dataset.from_generator(lambda n, s: ((i, s) for i in range(n)), args=(3, "x"),
                                          output_signature=(tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.string)))


@pipeline
def batch_of_shapes(tf, tmp):
    return ragged(tf, [1], [2], [1, 2]).batch(2)


@pipeline
def padded_to_shape(tf, tmp):
    return ragged(tf, [1], [2, 3], []).padded_batch(2, padded_shapes=[4], padding_values=-1)


@pipeline
def padded_dropped(tf, tmp):
    return ragged(tf, [1], [2, 3], []).padded_batch(2, padded_shapes=[None], drop_remainder=True)


@pipeline
def padded_too_small(tf, tmp):
    return ragged(tf, [1], [2, 3, 4]).padded_batch(2, padded_shapes=[2])


@pipeline
def padded_known_too_small(tf, tmp):
    return tf.data.Dataset.from_tensors([1, 2, 3]).padded_batch(2, padded_shapes=[2])


@pipeline
def padded_of_other_type(tf, tmp):
    return ragged(tf, [1]).padded_batch(2, padding_values="a")


@pipeline
def padded_of_unknown_rank(tf, tmp):
    return tf.data.Dataset.from_generator(lambda: iter([[1]]), output_types=tf.int32).padded_batch(2)


@pipeline
def padded_structure(tf, tmp):
    data = tf.data.Dataset.from_generator(
        lambda: iter([([1], ["a", "b"]), ([2, 3], ["c"])]),
        output_signature=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.string)))
    return data.padded_batch(2, padded_shapes=([3], [None]), padding_values=(7, "-"))


@pipeline
def buckets(tf, tmp):
    return ragged(tf, [0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20], [21, 22]
                  ).bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [2, 2, 2])


@pipeline
def buckets_to_boundaries(tf, tmp):
    return ragged(tf, [0], [1, 2], [5, 6, 7], [7, 8, 9], [21]).bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2], pad_to_bucket_boundary=True)


@pipeline
def concatenated_shapes(tf, tmp):
    return tf.data.Dataset.from_tensors([1]).concatenate(tf.data.Dataset.from_tensors([1, 2]))


@pipeline
def concatenated_types(tf, tmp):
    return tf.data.Dataset.range(3).concatenate(tf.data.Dataset.from_tensors("a"))


@pipeline
def unbatched_scalars(tf, tmp):
    return tf.data.Dataset.range(3).unbatch()


@pipeline
def unbatched_sizes(tf, tmp):
    return tf.data.Dataset.from_tensors(([1, 2], [1, 2, 3])).unbatch()


@pipeline
def filter_of_numbers(tf, tmp):
    return tf.data.Dataset.range(3).filter(lambda x: x)


@pipeline
def reduced_function(tf, tmp):
    return tf.data.Dataset.range(3).scan(0, lambda s, x: (x, x))


@pipeline
def batch_of_none(tf, tmp):
    return tf.data.Dataset.range(3).batch(0)


@pipeline
def shard_beyond(tf, tmp):
    return tf.data.Dataset.range(3).shard(3, 3)


@pipeline
def shuffle_without_room(tf, tmp):
    return tf.data.Dataset.range(3).shuffle(0)


@pipeline
def map_that_fails(tf, tmp):
    return tf.data.Dataset.range(4).map(
        lambda x: tf.debugging.check_numerics(1.0 / tf.cast(2 - x, tf.float32), "no number"))


@pipeline
def map_of_conditions(tf, tmp):
    def collatz(x):
        steps = tf.constant(0, tf.int64)
        while x > 1:
            if x % 2 == 0:
                x = x // 2
            else:
                x = 3 * x + 1
            steps += 1
        return steps
    return tf.data.Dataset.range(1, 12).map(collatz)


def _written(tmp, name, data):
    path = tmp / name
    path.write_bytes(data)
    return str(path)


@pipeline
def lines(tf, tmp):
    first = _written(tmp, "a.txt", b"one\ntwo\r\n\nthree")
    return tf.data.TextLineDataset([first, _written(tmp, "b.txt", b"four\n")])


@pipeline
def no_file(tf, tmp):
    return tf.data.TextLineDataset(str(tmp / "nowhere"))


@pipeline
def fixed_length(tf, tmp):
    return tf.data.FixedLengthRecordDataset(_written(tmp, "f", b"HHaabbccFFF"), 2, header_bytes=2, footer_bytes=3)


@pipeline
def fixed_length_excess(tf, tmp):
    return tf.data.FixedLengthRecordDataset(_written(tmp, "f", b"aabbc"), 2)


@pipeline
def csv(tf, tmp):
    path = _written(tmp, "c.csv", b'a,b,c\n1,2.5,x\n2,,"y,""z"\n3,4,\n')
    return tf.data.experimental.CsvDataset(path, [tf.int32, 9.5, tf.string], header=True)


@pipeline
def csv_columns(tf, tmp):
    path = _written(tmp, "c.csv", b"1;2.5;x\n2;7;y\n")
    return tf.data.experimental.CsvDataset(path, [tf.int64, tf.string], field_delim=";", select_cols=[0, 2])


@pipeline
def csv_missing(tf, tmp):
    return tf.data.experimental.CsvDataset(_written(tmp, "c.csv", b"1,2\n,3\n"), [tf.int32, tf.int32])


@pipeline
def csv_too_many(tf, tmp):
    return tf.data.experimental.CsvDataset(_written(tmp, "c.csv", b"1,2\n1,2,3\n"), [tf.int32, tf.int32])


@pipeline
def csv_table(tf, tmp):
    path = _written(tmp, "t.csv", b"a,b,c,d\n1,2.5,x,9000000000\n2,3,y,1\n3,1e50,z,2\n")
    return tf.data.experimental.make_csv_dataset(path, 2, label_name="c", num_epochs=1, shuffle=False)


@pipeline
def no_files(tf, tmp):
    return tf.data.Dataset.list_files(str(tmp / "*.nothing"))


@pipeline
def interleaved_files(tf, tmp):
    paths = [_written(tmp, f"{n}.txt", "".join(f"{n}{i}\n" for i in range(n)).encode()) for n in (2, 3, 1)]
    return tf.data.Dataset.from_tensor_slices(paths).interleave(tf.data.TextLineDataset, cycle_length=2)
