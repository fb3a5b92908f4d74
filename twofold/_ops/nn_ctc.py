"""Connectionist temporal classification: sequences of labels for longer sequences of predictions (Graves et al., 2006).

The probability of a labelling is the sum over all ways to spread it over the time steps, with blanks between; the
forward recursion adds them up in logarithms, in one loop over the time steps, and its gradient is the tape's. Decoders
give their paths as the indices, values and shape of a sparse matrix.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import one_int, public
from twofold._front.hosted import hosted

__all__ = ["IMPOSSIBLE", "beam_paths", "collapse_repeated", "ctc_beam_search_decoder", "ctc_greedy_decoder", "ctc_loss",
           "ctc_unique_labels", "edit_distance", "edits", "greedy_paths", "labelling_loss"]

IMPOSSIBLE = -1e30  # a logarithm of 0 with which one can go on computing


# -- the loss -------------------------------------------------------------------------------------------
def labelling_loss(labels: Any, counts: Any, logits: Any, lengths: Any, blank: int) -> Any:
    """Minus the logarithms of the probabilities of labellings; infinite where there are too few time steps.

    Args:
        labels: int32 [batch, most labels]; `blank` where none counts.
        counts: int32 [batch]: how many labels each has.
        logits: floating [batch, time steps, classes].
        lengths: int32 [batch]: how many time steps count; None for all.
        blank: the class of the blank.
    """
    extended, skips = _extended(labels, logits.dtype, blank)
    # [time, batch, states]: what each state says at each time
    said = tf.gather(tf.nn.log_softmax(logits), extended, axis=2, batch_dims=1)
    said = tf.transpose(said, [1, 0, 2])
    last = _forward(said, skips, lengths)
    ends = tf.stack([2 * counts, tf.maximum(2 * counts - 1, 0)], axis=1)
    final = tf.gather(last, ends, axis=1, batch_dims=1)
    impossible = tf.constant(IMPOSSIBLE, logits.dtype)
    on_blank, on_label = final[:, 0], tf.where(counts > 0, final[:, 1], impossible)
    total = _log_add(on_blank, on_label)
    return tf.where(total > 0.1 * IMPOSSIBLE, tf.negative(total), tf.constant(math.inf, logits.dtype))


def _extended(labels: Any, dtype: Any, blank: int) -> tuple[Any, Any]:
    """Labels with blanks around each, and the cost of coming from two states before: none, or all there is.

    The blank between two labels may be left out where they differ.
    """
    doubled = tf.stack([tf.zeros_like(labels) + blank if blank else tf.zeros_like(labels), labels], axis=2)
    width = 2 * labels.shape[1] if labels.shape[1] is not None else 2 * tf.shape(labels)[1]
    extended = tf.pad(tf.reshape(doubled, [tf.shape(labels)[0], width]), [[0, 0], [0, 1]], constant_values=blank)
    changed = tf.not_equal(labels, tf.pad(labels, [[0, 0], [1, 0]])[:, :-1])  # also where a label is the blank's class
    allowed = tf.reshape(tf.stack([tf.zeros_like(changed), changed], axis=2), [tf.shape(labels)[0], width])
    cost = tf.where(allowed, tf.zeros((), dtype), tf.constant(IMPOSSIBLE, dtype))
    return extended, tf.pad(cost, [[0, 0], [0, 1]], constant_values=IMPOSSIBLE)


def _log_add(*values: Any) -> Any:
    """The logarithm of the sum of exponentials, of finite numbers."""
    largest = values[0]
    for value in values[1:]:
        largest = tf.maximum(largest, value)
    largest = tf.stop_gradient(largest)
    return largest + tf.math.log(tf.add_n([tf.exp(value - largest) for value in values]))


def _forward(said: Any, skips: Any, lengths: Any) -> Any:
    """The logarithms of the probabilities to be in each state after the last time step that counts."""
    impossible = tf.constant(IMPOSSIBLE, said.dtype)
    states = tf.range(tf.shape(said)[2])
    # one begins in the first blank or in the first label
    first = tf.where(states < 2, said[0], impossible)

    def moved(alpha: Any, n: int) -> Any:
        return tf.pad(alpha, [[0, 0], [n, 0]], constant_values=IMPOSSIBLE)[:, :-n]

    def step(t: Any, alpha: Any) -> tuple[Any, Any]:
        skipped = tf.maximum(moved(alpha, 2) + skips, impossible)
        total = _log_add(alpha, moved(alpha, 1), skipped)
        following = tf.maximum(total + tf.gather(said, t), impossible)
        if lengths is not None:
            following = tf.where(tf.expand_dims(t < lengths, 1), following, alpha)
        return t + 1, following

    steps = tf.shape(said)[0]
    return tf.while_loop(lambda t, alpha: t < steps, step, (tf.constant(1), first))[1]


def _dense_labels(indices: Any, values: Any, shape: Any) -> tuple[Any, Any]:
    """The labels of a sparse matrix in the first places of its rows, and how many each row has."""
    rows = tf.cast(indices[:, 0], tf.int32)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, tf.cast(shape[0], tf.int32))
    return tf.scatter_nd(indices, tf.cast(values, tf.int32), tf.cast(shape, indices.dtype)), counts


@public
def ctc_loss(labels: Any, logits: Any, label_length: Any, logit_length: Any, logits_time_major: bool = True,
             unique: Any = None, blank_index: Any = None, name: str | None = None) -> Any:
    """Minus the logarithm of the probability of sequences of labels (CTC).

    Args:
        labels: integers [batch, most labels]; or a SparseTensor of this shape.
        logits: floats [time steps, batch, classes], or [batch, time steps, classes].
        label_length: integers [batch]: how many of the labels count; None for a SparseTensor, which tells.
        logit_length: integers [batch]: how many of the time steps count.
        logits_time_major: whether time is the first axis of `logits`.
        unique: accepted, without effect: TensorFlow computes quicker with it.
        blank_index: the class of the blank; a negative one counts from the last class. By default 0; to be given where
            labels are sparse.
        name: accepted, without effect.
    Returns:
        Floats [batch]; infinite where there are too few time steps for the labels.
    Raises:
        ValueError: the ranks are others, or there is no such class.

    >>> import twofold as tf
    >>> print(tf.nn.ctc_loss([[1]], tf.zeros([2, 1, 2]), [1], [2]).numpy().round(4))
    [0.2877]
    """
    if isinstance(labels, tf.SparseTensor):
        if blank_index is None:
            raise ValueError("Argument `blank_index` must be provided when `labels` is a `SparseTensor`.")
        labels, label_length = _dense_labels(labels.indices, labels.values, labels.dense_shape)
    labels, logits = tf.cast(labels, tf.int32), tf.convert_to_tensor(logits)
    if labels.shape.rank != 2 or logits.shape.rank != 3:
        raise ValueError("ctc_loss: expected labels [batch, most labels] and logits of rank 3; got shapes "
                         f"{labels.shape} and {logits.shape}.")
    classes = logits.shape[2]
    blank = 0 if blank_index is None else one_int(blank_index, "blank_index")
    if classes is None or not -classes <= blank < classes:
        raise ValueError(f"ctc_loss: blank_index must be one of the {classes} classes; got {blank}.")
    blank %= classes
    counts, lengths = tf.cast(label_length, tf.int32), tf.cast(logit_length, tf.int32)
    labels = tf.where(tf.range(tf.shape(labels)[1]) < tf.expand_dims(counts, 1), labels, blank)
    if logits_time_major:
        logits = tf.transpose(logits, [1, 0, 2])
    return labelling_loss(labels, counts, logits, lengths, blank)


@public
def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Any, Any]:
    """The different labels of each row in the order in which they come, and for each label its number among them.

    Args:
        labels: integers [batch, most labels].
        name: accepted, without effect.
    Returns:
        Two tensors [batch, most labels]: the labels, int64, with zeros behind them, and the numbers, int32.
    Raises:
        ValueError: the rank is another one.

    >>> import twofold as tf
    >>> [x.numpy().tolist() for x in tf.nn.ctc_unique_labels([[3, 4, 4, 3]])]
    [[[3, 4, 0, 0]], [[0, 1, 1, 0]]]
    """
    labels = tf.cast(labels, tf.int64)
    if labels.shape.rank != 2:
        raise ValueError(f"ctc_unique_labels: expected labels [batch, most labels]; got shape {labels.shape}.")
    places = tf.range(tf.shape(labels)[1])
    same = tf.equal(labels[:, :, tf.newaxis], labels[:, tf.newaxis, :])
    first = tf.argmax(tf.cast(same, tf.int32), axis=2, output_type=tf.int32)
    begins = tf.equal(first, places)
    numbers = tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1
    chosen = tf.logical_and(begins[:, tf.newaxis, :], tf.equal(numbers[:, tf.newaxis, :], places[:, tf.newaxis]))
    different = tf.reduce_sum(tf.where(chosen, labels[:, tf.newaxis, :], tf.zeros((), labels.dtype)), axis=2)
    return different, tf.gather(numbers, first, axis=1, batch_dims=1)


def _to_front(values: Any, keep: Any, nothing: int) -> tuple[Any, Any]:
    """What is kept of each row, moved to its front, with `nothing` behind; and how much that is."""
    places = tf.range(tf.shape(values)[1])
    order = tf.argsort(tf.where(keep, places, places + tf.shape(values)[1]), axis=1)
    counts = tf.reduce_sum(tf.cast(keep, tf.int32), axis=1)
    there = places < counts[:, tf.newaxis]
    moved = tf.gather(values, order, axis=1, batch_dims=1)
    return tf.where(there, moved, tf.cast(nothing, values.dtype)), counts


@public
def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Any, Any]:
    """Rows of labels without those that repeat the one before.

    Args:
        labels: integers [batch, most labels].
        seq_length: integers [batch]: how many labels of each row count.
        name: accepted, without effect.
    Returns:
        The labels [batch, most that are left], with zeros behind them; and how many are left, int32 [batch].
    Raises:
        ValueError: a rank is another one.

    >>> import twofold as tf
    >>> [x.numpy().tolist() for x in tf.nn.collapse_repeated([[1, 1, 2, 2, 1]], [4])]
    [[[1, 2]], [2]]
    """
    labels, lengths = tf.convert_to_tensor(labels), tf.cast(seq_length, tf.int32)
    if labels.shape.rank != 2 or lengths.shape.rank != 1:
        raise ValueError("collapse_repeated: expected labels [batch, most labels] and seq_length [batch]; got shapes "
                         f"{labels.shape} and {lengths.shape}.")
    moved, counts = _to_front(labels, _kept(labels, lengths, merge=True), 0)
    return moved[:, :tf.reduce_max(counts)], counts


def _kept(labels: Any, lengths: Any, merge: bool) -> Any:
    """Which labels count: those before the end, and if they are merged not those that repeat the one before."""
    inside = tf.range(tf.shape(labels)[1]) < lengths[:, tf.newaxis]
    if not merge:
        return inside
    changed = tf.not_equal(labels[:, 1:], labels[:, :-1])
    return tf.logical_and(inside, tf.concat([tf.ones_like(labels[:, :1], tf.bool), changed], axis=1))


# -- decoders -------------------------------------------------------------------------------------------
def greedy_paths(inputs: Any, lengths: Any, merge: bool, blank: int) -> tuple[tuple[Any, Any, Any], Any]:
    """The likeliest class of each time step, without repetitions if they are merged, and without blanks.

    Args:
        inputs: logits [time steps, batch, classes]; lengths: int32 [batch], how many time steps count.
    Returns:
        The labels as the int64 indices, values and shape of a sparse matrix; and minus the sum of the logits on the
        way, [batch, 1].
    """
    best = tf.transpose(tf.argmax(inputs, axis=2, output_type=tf.int64))
    inside = _kept(best, lengths, merge=False)
    largest = tf.where(inside, tf.transpose(tf.reduce_max(inputs, axis=2)), tf.zeros((), inputs.dtype))
    keep = tf.logical_and(_kept(best, lengths, merge), tf.not_equal(best, blank))
    labels, counts = _to_front(best, keep, 0)
    indices = tf.where(tf.range(tf.shape(labels)[1]) < counts[:, tf.newaxis])
    shape = tf.stack([tf.shape(labels, tf.int64)[0], tf.cast(tf.reduce_max(counts), tf.int64)])
    return (indices, tf.gather_nd(labels, indices), shape), tf.negative(tf.reduce_sum(largest, axis=1, keepdims=True))


@public
def ctc_greedy_decoder(inputs: Any, sequence_length: Any, merge_repeated: bool = True,
                       blank_index: Any = None) -> tuple[list[Any], Any]:
    """The labels that the likeliest class of each time step says.

    Args:
        inputs: logits [time steps, batch, classes].
        sequence_length: integers [batch]: how many time steps count.
        merge_repeated: whether labels that repeat the one before are left out.
        blank_index: the class of the blank; by default the last one. A negative one counts from the last.
    Returns:
        A list with one SparseTensor, int64 [batch, most labels]; and minus the sum of the largest logits, [batch, 1].
    Raises:
        ValueError: the rank is another one, or there is no such class.

    >>> import twofold as tf
    >>> (labels,), _ = tf.nn.ctc_greedy_decoder([[[2.0, 1.0, 0.0]], [[2.0, 1.0, 0.0]], [[0.0, 1.0, 0.0]]], [3])
    >>> labels.values.numpy().tolist()
    [0, 1]
    """
    logits, lengths = _decoded("ctc_greedy_decoder", inputs, sequence_length)
    classes = logits.shape[2]
    blank = classes - 1 if blank_index is None else one_int(blank_index, "blank_index")
    if not -classes <= blank < classes:
        raise ValueError(f"ctc_greedy_decoder: blank_index must be one of the {classes} classes; got {blank}.")
    path, scores = greedy_paths(logits, lengths, bool(merge_repeated), blank % classes)
    return [tf.SparseTensor(*path)], scores


@public
def ctc_beam_search_decoder(inputs: Any, sequence_length: Any, beam_width: Any = 100,
                            top_paths: Any = 1) -> tuple[list[Any], Any]:
    """The likeliest sequences of labels that a beam search finds; the last class is the blank.

    Args:
        inputs: logits [time steps, batch, classes].
        sequence_length: integers [batch]: how many time steps count.
        beam_width: how many beginnings are followed.
        top_paths: how many sequences are wanted, no more than are followed.
    Returns:
        A list of SparseTensors, int64 [batch, most labels]; and the logarithms of the probabilities,
        [batch, top_paths].
    Raises:
        ValueError: the rank is another one, or more paths than are followed.

    >>> import twofold as tf
    >>> (labels,), _ = tf.nn.ctc_beam_search_decoder([[[2.0, 1.0, 0.0]], [[0.0, 1.0, 0.0]]], [2])
    >>> labels.values.numpy().tolist()
    [0, 1]
    """
    logits, lengths = _decoded("ctc_beam_search_decoder", inputs, sequence_length)
    width, paths = one_int(beam_width, "beam_width"), one_int(top_paths, "top_paths")
    if not 1 <= paths <= width:
        raise ValueError(f"ctc_beam_search_decoder: top_paths must be from 1 to beam_width; got {paths} and {width}.")
    *parts, scores = beam_paths(logits, lengths, width, paths)
    return [tf.SparseTensor(*parts[n:n + 3]) for n in range(0, len(parts), 3)], scores


def _decoded(op: str, inputs: Any, lengths: Any) -> tuple[Any, Any]:
    logits = tf.convert_to_tensor(inputs)
    if logits.shape.rank != 3 or not logits.dtype.is_floating or logits.shape[2] is None:
        raise ValueError(f"{op}: inputs must be floats [time steps, batch, classes]; got {logits.dtype.name} of shape "
                         f"{logits.shape}.")
    return logits, tf.cast(lengths, tf.int32)


@hosted
def beam_paths(inputs: Any, lengths: Any, width: int, paths: int) -> Any:
    """The likeliest labellings that a beam search finds; the blank is the last class.

    Args:
        inputs: logits [time steps, batch, classes]; lengths: int32 [batch], how many time steps count.
        width: how many beginnings are followed; paths: how many labellings are wanted.
    Returns:
        A flat list: for each path the int64 indices, values and shape of a sparse matrix; last the logarithms of the
        probabilities, [batch, paths].
    """
    def searched(*tensors: Any) -> list[Any]:
        logits, counts = (engine.array_of(t) for t in tensors)
        paths_of = [_search(logits[:count, n].astype(np.float64), width, paths) for n, count in enumerate(counts)]
        sparse = [part for k in range(paths) for part in _sparse([labels[k] for labels, _ in paths_of])]
        scores = np.array([s for _, s in paths_of]).reshape(len(paths_of), paths).astype(logits.dtype)
        return [engine.tensor_of(a) for a in (*sparse, scores)]
    specs = [tf.TensorSpec([None, 2], tf.int64), tf.TensorSpec([None], tf.int64), tf.TensorSpec([2], tf.int64)]
    return engine.host_call(searched, "ctc_beam_search_decoder", [inputs, lengths],
                            [*specs * paths, tf.TensorSpec([inputs.shape[1], paths], inputs.dtype)])


def _sparse(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    indices = [(n, k) for n, row in enumerate(rows) for k in range(len(row))]
    values = [v for row in rows for v in row]
    return (np.array(indices, np.int64).reshape(-1, 2), np.array(values, np.int64),
            np.array([len(rows), max(map(len, rows), default=0)], np.int64))


def _search(logits: np.ndarray, width: int, paths: int) -> tuple[list[list[int]], list[float]]:
    """Labellings and the logarithms of their probabilities, likeliest first.

    A beginning is a number in `tree`, which holds its last label and the number of what is before that. For each the
    probabilities that the steps so far say it are kept apart by whether the last step says a blank.
    """
    blank = logits.shape[1] - 1
    said = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    tree, children = [(-1, -1)], {}
    beams, ends_blank, ends_label = np.array([0]), np.zeros(1), np.full(1, -np.inf)
    for step in said:
        total = np.logaddexp(ends_blank, ends_label)
        last = np.array([tree[b][0] for b in beams])
        longer = total[:, None] + step[:blank]
        repeats = np.flatnonzero(last >= 0)
        longer[repeats, last[repeats]] = ends_blank[repeats] + step[last[repeats]]
        stays_label = np.where(last >= 0, ends_label + step[last], -np.inf)
        place = {b: n for n, b in enumerate(beams.tolist())}
        for n, b in enumerate(beams.tolist()):  # a beginning that is followed gains by what comes before it
            label, before = tree[b]
            if before in place:
                stays_label[n] = np.logaddexp(stays_label[n], longer[place[before], label])
                longer[place[before], label] = -np.inf
        stays_blank = total + step[blank]
        everything = np.concatenate([np.logaddexp(stays_blank, stays_label), longer.ravel()])
        chosen = np.argsort(-everything, kind="stable")[:width]
        chosen = chosen[everything[chosen] > -np.inf]
        count, kept = len(beams), []
        for n in chosen.tolist():
            if n < count:
                kept.append((beams[n], stays_blank[n], stays_label[n]))
                continue
            parent, label = divmod(n - count, blank)
            key = (int(beams[parent]), label)
            if key not in children:
                children[key] = len(tree)
                tree.append((label, key[0]))
            kept.append((children[key], -np.inf, everything[n]))
        beams, ends_blank, ends_label = (np.array(c) for c in zip(*kept, strict=True))
    total = np.logaddexp(ends_blank, ends_label)
    order = np.argsort(-total, kind="stable")[:paths].tolist()
    if len(order) < paths:
        raise tf.errors.InvalidArgumentError(None, None, f"ctc_beam_search_decoder: there are {len(order)} labellings, "
                                             f"fewer than top_paths={paths}.")
    return [_labels(tree, int(beams[n])) for n in order], [float(total[n]) for n in order]


def _labels(tree: list[tuple[int, int]], at: int) -> list[int]:
    out: list[int] = []
    while at:
        label, at = tree[at]
        out.append(label)
    return out[::-1]


# -- distances ------------------------------------------------------------------------------------------
@public
def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str | None = "edit_distance") -> Any:
    """How many elements are to be put in, taken out or exchanged to make one sequence of another (Levenshtein).

    Args:
        hypothesis, truth: SparseTensors of one dtype and rank, whose last axis has the sequences.
        normalize: whether numbers are divided by the lengths of the true sequences.
        name: accepted, without effect.
    Returns:
        float32 tensor of the axes but the last; where a true sequence is empty and the other is not, infinite.
    Raises:
        TypeError: they are no SparseTensors. tf.errors.InvalidArgumentError: ranks or dtypes differ.

    >>> import twofold as tf
    >>> one, other = (tf.sparse.from_dense([row]) for row in ([1, 2, 3], [1, 3, 0]))
    >>> tf.edit_distance(one, other, normalize=False).numpy().tolist()
    [1.0]
    """
    for value, what in ((hypothesis, "Hypothesis"), (truth, "Truth")):
        if not isinstance(value, tf.SparseTensor):
            raise TypeError(f"{what} must be a SparseTensor.")
    if hypothesis.dtype is not truth.dtype:
        raise tf.errors.InvalidArgumentError(None, None, "edit_distance: dtypes differ: "
                                             f"{hypothesis.dtype.name} and {truth.dtype.name}.")
    parts = [p for value in (hypothesis, truth) for p in (value.indices, value.values, value.dense_shape)]
    if parts[2].shape != parts[5].shape:
        raise tf.errors.InvalidArgumentError(None, None, "edit_distance: ranks differ: "
                                             f"{parts[2].shape[0]} and {parts[5].shape[0]}.")
    return edits(bool(normalize), *parts)


@hosted
def edits(normalize: bool, indices: Any, values: Any, shape: Any, true_indices: Any, true_values: Any,
          true_shape: Any) -> Any:
    """`edit_distance` of the parts of sparse tensors."""
    def counted(*tensors: Any) -> list[Any]:
        at, given, size, true_at, true, true_size = [engine.array_of(t) for t in tensors]
        out = np.zeros(np.maximum(size, true_size)[:-1], np.float32)
        offered, wanted = _sequences(at, given), _sequences(true_at, true)
        for place in offered.keys() | wanted.keys():
            one, other = offered.get(place, []), wanted.get(place, [])
            count = _distance(one, other)
            out[place] = count if not normalize else count / len(other) if other else math.inf
        return [engine.tensor_of(out)]
    rank = shape.shape[0]
    spec = tf.TensorSpec(None if rank is None else [None] * (rank - 1), tf.float32)
    return engine.host_call(counted, "edit_distance", [indices, values, shape, true_indices, true_values, true_shape],
                            [spec])[0]


def _sequences(indices: np.ndarray, values: np.ndarray) -> dict[tuple[int, ...], list[Any]]:
    rows: dict[tuple[int, ...], list[Any]] = {}
    for (*place, _), value in zip(indices.tolist(), values.tolist(), strict=True):
        rows.setdefault(tuple(place), []).append(value)
    return rows


def _distance(one: list[Any], other: list[Any]) -> int:
    row = list(range(len(other) + 1))
    for n, a in enumerate(one, 1):
        last, row[0] = row[0], n
        for k, b in enumerate(other, 1):
            last, row[k] = row[k], min(row[k] + 1, row[k - 1] + 1, last + (a != b))
    return row[-1]
