"""One program run eagerly and compiled, and what differs. Needs NumPy and twofold alone: failing scripts contain it."""

from __future__ import annotations

import re
import warnings

import numpy as np

import twofold as tf

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1.0, 3e38])

_LIMIT = "was assumed of sizes that only running can tell"
_UNKNOWN = "unstack: the size of axis"


def data(seed, shape, dtype, low=-2.0, high=2.0, special=False):
    """A tensor of random numbers, always the same ones."""
    rng, dtype = np.random.default_rng(seed), tf.as_dtype(dtype)
    if dtype == tf.bool:
        return tf.constant(rng.random(shape) < 0.5)
    if dtype.is_integer:
        low, high = max(int(np.ceil(low)), int(dtype.min)), int(np.floor(high))
        drawn = np.asarray(rng.integers(low, max(low, high), shape, endpoint=True))
        return tf.constant(drawn.astype(dtype.as_numpy_dtype))
    values = rng.uniform(low, high, shape) + (1j * rng.uniform(low, high, shape) if dtype.is_complex else 0)
    if special:
        values = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), values)
    with np.errstate(all="ignore"):
        return tf.constant(np.asarray(values).astype(dtype.as_numpy_dtype))


def settled(gradients):
    """Gradients, with no sign where they are zeros altogether: -0.0 may say that they are unconnected."""
    return [tf.where(tf.reduce_any(tf.not_equal(d, 0)), d, tf.zeros_like(d)) for d in gradients]  # see docs/limits.md


def run(make, calls, how, seed=1, taped=False):
    """What a program does in each of `calls`: results, or the error that ends it.

    Args:
        make: gives the program, and its variables, afresh.
        calls: pairs of a number of threads and the arguments.
        how: "eager"; "compiled", for the sizes of the calls as they come; "unknown", compiled for sizes that are
            unknown from the first; and "on the GPU" behind each, where all of it lies there.
        taped: whether a tape around each call takes gradients by the program's floating arguments.
    """
    how, gpu, _ = how.partition(" on the GPU")
    with tf.device("/gpu:0" if gpu else None):
        return _run(make, calls, how, seed, taped)


def _run(make, calls, how, seed, taped):
    tf.random.set_seed(seed)
    program, variables = make()
    if how == "unknown":
        specs = [tf.TensorSpec([None] * len(t.shape), t.dtype) for t in calls[0][1]]
        program = tf.function(program, input_signature=specs, fallback=False)
    elif how == "compiled":
        program = tf.function(program, fallback=False)
    told = []
    for threads, args in calls:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        try:
            actual = _taped(program, args) if taped else program(*args)
        except (tf.errors.OpError, ValueError, TypeError, IndexError, NotImplementedError, RuntimeError) as e:
            told.append(("error", type(e).__name__, (str(e).splitlines() or [""])[0]))
            break
        told.append(("results", [t.numpy() for t in tf.nest.flatten(actual)], [v.numpy() for v in variables]))
    return told


def _taped(program, args):
    inputs = [t for t in args if t.dtype.is_floating or t.dtype.is_complex]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        actual = program(*args)
        ends = [t for t in tf.nest.flatten(actual) if t.dtype.is_floating or t.dtype.is_complex]
    return actual, settled(tape.gradient(ends, inputs, unconnected_gradients="zero")) if ends and inputs else []


def same_bits(a, b):
    """Whether two arrays are equal to the bit; any NaN equals any other."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype == object or a.tobytes() == b.tobytes():
        return a.tolist() == b.tolist() or a.tobytes() == b.tobytes()
    if a.dtype.kind in "biu":
        return False
    if a.dtype.kind == "c":
        parts = [np.ascontiguousarray(x).reshape(-1).view(x.real.dtype) for x in (a, b)]
    else:
        parts = [np.ascontiguousarray(x).reshape(-1) for x in (a, b)]
    nan = [p != p for p in parts]
    bits = [p.view(f"u{p.dtype.itemsize}") for p in parts]
    return bool(((nan[0] & nan[1]) | (bits[0] == bits[1])).all())


def difference(eager, compiled):
    """The first difference between two runs, in words; None where they agree."""
    for call, (a, b) in enumerate(zip(eager, compiled, strict=False)):
        if a[0] != b[0] or a[0] == "error":
            if a[0] == "results" and _LIMIT in b[2] and re.search(r" = 1[.,]", b[2]):
                return None  # as docs/limits.md says: sizes that values decide are taken not to broadcast
            if a[0] == "results" and _UNKNOWN in b[2]:
                return None  # and the number of pieces must be known
            if a != b:
                return f"call {call}: eager {_short(a)}; compiled {_short(b)}"
            continue
        for what, old, new in (("result", a[1], b[1]), ("variable", a[2], b[2])):
            if len(old) != len(new):
                return f"call {call}: eager gives {len(old)} {what}s, compiled {len(new)}"
            for n, (x, y) in enumerate(zip(old, new, strict=True)):
                if not same_bits(x, y):
                    return f"call {call}: {what} {n}: {_apart(x, y)}"
    return None if len(eager) == len(compiled) else f"eager made {len(eager)} calls, compiled {len(compiled)}"


def _short(told):
    return f"raises {told[1]}: {told[2]}" if told[0] == "error" else "gives results"


def _apart(x, y):
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"eager {x.dtype}{list(x.shape)}, compiled {y.dtype}{list(y.shape)}"
    at = next(i for i in np.ndindex(x.shape) if not same_bits(np.asarray(x[i]), np.asarray(y[i])))
    return f"at {list(at)}: eager {x[at]!r}, compiled {y[at]!r}"


def check(make, sizes, taped=False):
    """The first difference between the modes, as text; None where all agree.

    Args:
        sizes: arguments of some sizes, and the same of other sizes.
    """
    first, second = sizes
    same, other = [(1, first), (2, first), (3, first)], [(2, first), (1, second), (3, first), (3, second)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = ["eager on the GPU", "compiled on the GPU"] if tf.config.list_physical_devices("GPU") else []
        for what, calls, hows in (("known sizes", same, ["compiled", *there]),
                                  ("other sizes", other, ["compiled", "unknown", *there[1:]])):
            eager = run(make, calls, "eager", taped=taped)
            for how in hows:
                actual = difference(eager, run(make, calls, how, taped=taped))
                if actual is not None:
                    return f"{what}, {how}: {actual}"
    return None
