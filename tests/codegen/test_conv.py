"""The generated convolution against NumPy in float64, its order of additions, and tile shapes of other processors."""

from __future__ import annotations

import ctypes
import functools

import llvmlite.binding as llvm
import numpy as np
import pytest

import twofold as tf
from twofold.codegen import (
    conv,
    conv_grouped_shapes,
    conv_inside_shapes,
    conv_lines_shapes,
    conv_narrow_shapes,
    conv_shapes,
    gemm,
    lockstep,
)
from twofold.codegen.conv_kernels import kernels
from twofold.codegen.gemm_shapes import first_tier
from twofold.codegen.kernels.windows import geometry
from twofold.codegen.loop_verify import verify
from twofold.ir import dtypes as dt
from twofold.ir import ops

FLOATS = [dt.float32, dt.float64]
# images, their sizes, channels, outputs, window, strides, dilations
CASES = [
    (2, (5, 6), 1, 3, (3, 3), (1, 1), (1, 1)),
    (3, (9, 8), 5, 20, (3, 2), (2, 1), (1, 1)),
    (2, (12, 11), 3, 70, (3, 3), (1, 1), (1, 2)),
    (1, (7, 7), 130, 40, (3, 3), (1, 1), (1, 1)),  # blocks of the sum end inside lines
    (1, (2000,), 2, 5, (300,), (1,), (1,)),
    (2, (4, 5, 6), 3, 17, (2, 3, 2), (1, 2, 3), (2, 1, 1)),
    (2, (5, 35), 20, 40, (3, 3), (1, 1), (1, 1)),  # lines of 33 places, which tiles overlap
    (2, (6, 6), 37, 300, (3, 3), (1, 1), (1, 1)),  # lines in several stretches, columns in several panels
    (9, (40, 30), 2, 2, (3, 3), (1, 1), (1, 1)),  # more than one share, more than one box
]
# With few outputs in each group: images, sizes, channels and outputs of a group, groups, window, strides, dilations
NARROW = [
    (2, (9, 21), 4, 4, 7, (3, 3), (1, 1), (1, 1)),
    (1, (12, 11), 70, 3, 1, (3, 3), (2, 1), (1, 1)),  # several blocks, which end inside taps
    (3, (7, 40), 5, 8, 3, (3, 2), (1, 2), (2, 1)),
    (2, (30,), 9, 5, 1, (4,), (3,), (1,)),  # fewer than the tiles have
    (1, (300,), 90, 7, 1, (4,), (1,), (3,)),
    (2, (4, 5, 6), 3, 1, 3, (2, 3, 2), (1, 2, 3), (2, 1, 1)),
    (1, (5, 4), 33, 6, 2, (1, 1), (1, 1), (1, 1)),
    (2, (33, 35), 3, 2, 5, (5, 5), (2, 2), (1, 1)),  # several boxes
]
# In groups, whose number comes first; channels and outputs are those of a group
GROUPED = [
    (9, (1, (6, 7), 16, 16, (3, 3), (1, 1), (1, 1))),  # copied in several runs of groups
    (2, (1, (6, 5), 32, 40, (3, 2), (2, 1), (1, 2))),
    (3, (2, (5, 9), 6, 24, (3, 3), (1, 1), (1, 1))),  # two vectors of outputs
    (6, (2, (33, 40), 4, 4, (3, 3), (1, 1), (1, 1))),  # several blocks of places, in two images and two bundles
    (5, (1, (1100,), 8, 2, (3,), (2,), (1,))),  # places of one line
    (3, (2, (5, 6, 7), 8, 3, (2, 3, 2), (1, 2, 1), (2, 1, 1))),
    (2, (3, (4, 5), 12, 7, (5, 5), (2, 1), (1, 1))),
]
# Several small images, much of whose windows is padding, in the form of NARROW
SMALL = [
    (16, (5, 6), 20, 40, 1, (3, 3), (1, 1), (1, 1)),
    (21, (4, 17), 6, 35, 2, (3, 4), (2, 1), (1, 2)),  # two boxes of images, and two of a line
    (8, (3, 3), 70, 33, 1, (5, 5), (1, 1), (1, 1)),  # blocks of the sum of which nothing lies inside
    (12, (2, 3, 4), 9, 33, 1, (3, 3, 3), (1, 2, 1), (1, 1, 1)),
]
# Several images and outputs for a part of a vector, in that form
LINES = [
    (10, (6, 40), 3, 8, 1, (3, 3), (1, 1), (1, 1)),  # more images than a tile takes, lines in two runs
    (9, (5, 5, 10), 2, 7, 1, (3, 1, 5), (1, 2, 1), (2, 1, 1)),
    (8, (12,), 9, 7, 1, (3,), (1,), (1,)),
]
ids = {"ids": lambda v: getattr(v, "name", None)}


def draw(seed, *shape, dtype=dt.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype.np)


def places(sizes, window, strides, dilations):
    return tuple((n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(sizes, window, strides, dilations, strict=True))


def rows_of(x, window, strides, dilations):
    """The windows of images without padding: [places, window's elements]."""
    extents = tuple((k - 1) * d + 1 for k, d in zip(window, dilations, strict=True))
    axes = tuple(range(1, x.ndim - 1))
    views = np.lib.stride_tricks.sliding_window_view(x, extents, axes)
    views = views[(slice(None), *[slice(None, None, s) for s in strides], slice(None),
                   *[slice(None, None, d) for d in dilations])]
    views = np.moveaxis(views, len(window) + 1, -1)
    return np.ascontiguousarray(views).reshape(-1, np.prod(window) * x.shape[-1])


def drawn(case, dtype):
    n, sizes, c, o, window, strides, dilations = case
    x, w = draw(0, n, *sizes, c, dtype=dtype), draw(1, *window, c, o, dtype=dtype)
    ct = draw(2, n, *places(sizes, window, strides, dilations), o, dtype=dtype)
    return x, w, ct, {"strides": strides, "dilations": dilations, "padding": "VALID"}


@pytest.mark.parametrize("dtype", FLOATS, **ids)
@pytest.mark.parametrize("case", CASES)
def test_a_convolution_is_the_product_of_its_windows_to_the_bit(case, dtype):
    x, w, ct, window = drawn(case, dtype)
    rows = rows_of(x, *case[4:])
    result = ops.conv(tf.constant(x), tf.constant(w), **window).numpy()
    product = tf.matmul(rows, w.reshape(-1, w.shape[-1])).numpy()
    np.testing.assert_array_equal(result.reshape(product.shape), product)
    unit, inner = np.finfo(dtype.np).eps, rows.shape[1]
    bound = (inner + 2) * unit * (np.abs(rows) @ np.abs(w.reshape(inner, -1)))
    assert (np.abs(product - rows.astype(np.float64) @ w.reshape(inner, -1).astype(np.float64)) <= bound).all()


@pytest.mark.parametrize("dtype", FLOATS, **ids)
@pytest.mark.parametrize("case", [*CASES, *[(*case[:4], *case[5:]) for case in LINES],
                                  (3, (8, 19), 2, 5, (3, 3), (1, 1), (1, 1))])  # a block ends one place into a line
def test_the_gradient_of_filters_is_summed_in_shares(case, dtype):
    x, w, ct, window = drawn(case, dtype)
    rows, outputs = rows_of(x, *case[4:]), ct.reshape(-1, ct.shape[-1])
    most = min(2**20 // w.size, 16)
    shares = max(min(len(rows) // 2048, most) // 4 * 4, 1)
    ends = [n * len(rows) // shares for n in range(shares + 1)]
    total = tf.matmul(rows[:ends[1]], outputs[:ends[1]], transpose_a=True).numpy()
    for begin, end in zip(ends[1:], ends[2:], strict=False):
        total = total + tf.matmul(rows[begin:end], outputs[begin:end], transpose_a=True).numpy()
    result = ops.conv_filter_grad(tf.constant(x), tf.constant(ct), filter_shape=w.shape, **window).numpy()
    np.testing.assert_array_equal(result.reshape(total.shape), total)
    assert shares > 1 or case is not CASES[-1]


@pytest.mark.parametrize("dtype", FLOATS, **ids)
@pytest.mark.parametrize("groups, case", [(2, CASES[1]), (3, CASES[2]), (5, CASES[5]), (8, CASES[-1]), *GROUPED])
def test_a_group_is_a_convolution_of_its_own_to_the_bit(case, groups, dtype):
    n, sizes, c, o, kernel, strides, dilations = case
    for padding in ("VALID", "SAME"):
        window = {"strides": strides, "dilations": dilations, "padding": padding}
        x, w = draw(0, n, *sizes, groups * c, dtype=dtype), draw(1, *kernel, c, groups * o, dtype=dtype)
        y = ops.conv(tf.constant(x), tf.constant(w), **window).numpy()
        ct = draw(2, *y.shape, dtype=dtype)
        of_x = ops.conv_input_grad(tf.constant(ct), tf.constant(w), input_shape=x.shape[1:], **window).numpy()
        of_w = ops.conv_filter_grad(tf.constant(x), tf.constant(ct), filter_shape=w.shape, **window).numpy()
        for g in range(groups):
            channels, outputs = slice(g * c, g * c + c), slice(g * o, g * o + o)
            own_x, own_w, own_ct = (tf.constant(a) for a in (x[..., channels], w[..., outputs], ct[..., outputs]))
            np.testing.assert_array_equal(y[..., outputs], ops.conv(own_x, own_w, **window).numpy())
            own = ops.conv_input_grad(own_ct, own_w, input_shape=own_x.shape[1:], **window).numpy()
            np.testing.assert_array_equal(of_x[..., channels], own)
            own = ops.conv_filter_grad(own_x, own_ct, filter_shape=own_w.shape, **window).numpy()
            np.testing.assert_array_equal(of_w[..., outputs], own)


@pytest.mark.parametrize("groups, case", [GROUPED[3], GROUPED[5]], ids=["2-D", "3-D"])
def test_groups_on_any_number_of_threads_and_images(groups, case):
    """Also where it is known only when a program runs how many images there are."""
    n, sizes, c, o, kernel, strides, dilations = case
    window = {"strides": strides, "dilations": dilations, "padding": "SAME"}
    x, w = draw(0, n, *sizes, groups * c), draw(1, *kernel, c, groups * o)
    ct = draw(2, *ops.conv(tf.constant(x), tf.constant(w), **window).shape)

    def gradients(x, w, ct):
        return (ops.conv(x, w, **window), ops.conv_input_grad(ct, w, input_shape=x.shape[1:], **window),
                ops.conv_filter_grad(x, ct, filter_shape=w.shape, **window))

    expected = [y.numpy() for y in gradients(*(tf.constant(a) for a in (x, w, ct)))]
    signature = [tf.TensorSpec([None, *a.shape[1:]] if a is not w else a.shape, tf.float32) for a in (x, w, ct)]
    before = tf.config.threading.get_intra_op_parallelism_threads()
    for threads in (1, 2, 3):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        try:
            compiled = tf.function(gradients, input_signature=signature)
            for way in (gradients, compiled):
                for y, want in zip(way(*(tf.constant(a) for a in (x, w, ct))), expected, strict=True):
                    np.testing.assert_array_equal(y.numpy(), want)
        finally:
            tf.config.threading.set_intra_op_parallelism_threads(before)


def drawn_narrow(case, dtype, padding, filters=None):
    """Images, filters, and the window; and what a convolution gives: of each group the product of its windows."""
    n, sizes, c, o, groups, window, strides, dilations = case
    x, w = draw(0, n, *sizes, groups * c, dtype=dtype), draw(1, *window, c, groups * o, dtype=dtype)
    w = w if filters is None else filters
    extents = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    counts = [-(-size // s) for size, s in zip(sizes, strides, strict=True)]
    totals = [max((count - 1) * s + e - size, 0) if padding == "SAME" else 0
              for count, s, e, size in zip(counts, strides, extents, sizes, strict=True)]
    wide = np.pad(x, [(0, 0), *[(total // 2, total - total // 2) for total in totals], (0, 0)])
    of_groups = []
    for g in range(groups):
        rows = rows_of(wide[..., g * c:g * c + c], window, strides, dilations)
        of_groups.append(tf.matmul(rows, w[..., g * o:g * o + o].reshape(-1, o)).numpy())
    ends = places(wide.shape[1:-1], window, strides, dilations)
    return x, w, np.concatenate(of_groups, -1).reshape(n, *ends, groups * o), {
        "strides": strides, "dilations": dilations, "padding": padding}


@pytest.mark.parametrize("dtype", FLOATS, **ids)
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("case", NARROW)
def test_few_outputs_are_the_product_of_their_windows_to_the_bit(case, padding, dtype):
    """Also on any number of threads, and where sizes are known only when a program runs."""
    x, w, expected, window = drawn_narrow(case, dtype, padding)
    np.testing.assert_array_equal(ops.conv(tf.constant(x), tf.constant(w), **window).numpy(), expected)
    unknown = tf.TensorSpec([*[None] * (x.ndim - 1), x.shape[-1]], dtype)
    signature = [unknown, tf.TensorSpec(w.shape, dtype)]
    compiled = tf.function(lambda x, w: ops.conv(x, w, **window), input_signature=signature)
    np.testing.assert_array_equal(compiled(tf.constant(x), tf.constant(w)).numpy(), expected)
    for threads in (1, 3):
        before = tf.config.threading.get_intra_op_parallelism_threads()
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        try:
            np.testing.assert_array_equal(ops.conv(tf.constant(x), tf.constant(w), **window).numpy(), expected)
        finally:
            tf.config.threading.set_intra_op_parallelism_threads(before)


@pytest.mark.parametrize("dtype", FLOATS, **ids)
@pytest.mark.parametrize(("shapes", "case"), [*[(conv_inside_shapes, case) for case in SMALL],
                                              *[(conv_lines_shapes, case) for case in LINES]])
def test_what_padding_would_be_multiplied_with_changes_nothing_but_where_it_is_not_finite(shapes, case, dtype):
    x, w, expected, window = drawn_narrow(case, dtype, "SAME")
    assert shapes.suits(geometry(x.shape, expected.shape[1:-1], w.shape[:-2], window), w.shape[-1], case[4], dtype)
    before = tf.config.threading.get_intra_op_parallelism_threads()
    for threads in (1, 2, 3):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        try:
            np.testing.assert_array_equal(ops.conv(tf.constant(x), tf.constant(w), **window).numpy(), expected)
        finally:
            tf.config.threading.set_intra_op_parallelism_threads(before)
    ct = draw(2, *expected.shape, dtype=dtype)
    for bad in (0.5, np.inf, np.nan):  # of the first tap, of the last output
        w.reshape(-1, w.shape[-1])[0, -1] = bad
        x, w, expected, window = drawn_narrow(case, dtype, "SAME", w)
        np.testing.assert_array_equal(ops.conv(tf.constant(x), tf.constant(w), **window).numpy(), expected)
        assert np.isnan(expected).any() == (bad != 0.5)
        grad = functools.partial(ops.conv_input_grad, input_shape=x.shape[1:], **window)
        one_by_one = [grad(tf.constant(ct[n:n + 1]), tf.constant(w)).numpy() for n in range(case[0])]
        np.testing.assert_array_equal(grad(tf.constant(ct), tf.constant(w)).numpy(), np.concatenate(one_by_one))


@pytest.mark.parametrize("dtype", FLOATS, **ids)
def test_pixels_that_no_place_of_a_strided_convolution_reads_have_no_gradient(dtype):
    """Of several images at once: for every other line a window of two lines, for the others one of one; for the last
    line none."""
    x, w, expected, window = drawn_narrow((9, (6, 11), 8, 5, 1, (3, 3), (2, 1), (1, 1)), dtype, "VALID")
    ct = draw(2, *expected.shape, dtype=dtype)
    grad = functools.partial(ops.conv_input_grad, input_shape=x.shape[1:], **window)
    one_by_one = [grad(tf.constant(ct[n:n + 1]), tf.constant(w)).numpy() for n in range(len(x))]
    result = grad(tf.constant(ct), tf.constant(w)).numpy()
    np.testing.assert_array_equal(result, np.concatenate(one_by_one))
    assert not result[:, -1].any()


@pytest.mark.parametrize("dtype", FLOATS, **ids)
@pytest.mark.parametrize("case", CASES)
def test_the_gradient_of_images_is_the_transposed_convolution(case, dtype):
    x, w, ct, window = drawn(case, dtype)
    result = ops.conv_input_grad(tf.constant(ct), tf.constant(w), input_shape=x.shape[1:], **window).numpy()
    # <conv(x), ct> = <x, conv_input_grad(ct)> for every x: here, for unit vectors
    rng = np.random.default_rng(3)
    wide = w.astype(np.float64).reshape(-1, w.shape[-1])
    outputs = ct.astype(np.float64).reshape(-1, ct.shape[-1])
    for at in {tuple(int(rng.integers(n)) for n in x.shape) for _ in range(40)}:
        one = np.zeros(x.shape)
        one[at] = 1
        expected = ((rows_of(one, *case[4:]) @ wide) * outputs).sum()
        scale = ((np.abs(rows_of(one, *case[4:])) @ np.abs(wide)) * np.abs(outputs)).sum()
        assert abs(result[at] - expected) <= (wide.size + 2) * np.finfo(dtype.np).eps * max(scale, 1e-30), at


# -- other processors -------------------------------------------------------------------------------------------
SHAPES = [(width, heights, masks) for width in (16, 32, 64)
          for heights, masks in (((6, 4, 2), False), ((14, 8, 4), True), ((3, 2, 1), False))]


def load(dtype, shape):
    """The kernels that `conv_shapes` chooses, and what packs, for other tile shapes, in an engine of their own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)
    for image in (*[conv.object_code(dtype, shape, part) for part in (
            "forward_1", "forward_2", "filters_1", "filters_2", "panels")],
                  gemm.object_code(dtype, shape, "tall")):
        engine.add_object_file(llvm.ObjectFileRef.from_data(image))
    engine.finalize_object()
    return engine


@pytest.mark.parametrize(("first", "number", "dtype"), [
    *((False, n, dt.float32) for n in (0, 4, 7)), (False, 3, dt.float64),
    *((True, n, dt.float32) for n in (2, 5))], **ids)
def test_other_widths_and_heights_give_the_same_bits(first, number, dtype, monkeypatch):
    width, heights, masks = SHAPES[number]
    shape = gemm.Tiling(width // dtype.size, heights, masks)
    engine = load(dtype, first_tier(shape) if first else shape)

    def start(name, total, integers, *operands):
        words = np.array([*(o.ctypes.data + at * dtype.size for o, at in operands), *integers], np.int64)
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
        assert kind(engine.get_function_address(name))(0, total, words.ctypes.data) == 0

    def run(out, x, w, plan):
        with monkeypatch.context() as patched:
            patched.setattr(conv_shapes, "tiling", lambda _: shape)
            cut = plan()
        right, work = w, np.full(cut.work, np.nan, dtype.np)
        if cut.packs:
            integers, panels, room = cut.packs
            right = np.full(room, np.nan, dtype.np)
            start(conv.symbol("panels", dtype), panels, integers, (right, 0), (w, cut.b))
        integers = cut.integers if cut.work else (0, *cut.integers)
        work = [(work, 0)] if cut.work else []
        at = 0 if cut.packs else cut.b
        start(conv.symbol(cut.kernel, dtype), cut.total, integers, (out, cut.out), (x, cut.x), (right, at), *work)

    def convolved(x, w, window):
        expected = ops.conv(tf.constant(x), tf.constant(w), **window).numpy()
        g = geometry(x.shape, expected.shape[1:-1], w.shape[:-2], window)
        out = np.full_like(expected, np.nan)
        run(out, x, w, lambda: conv_shapes.forward(g, w.shape[-1], 1, dtype))
        np.testing.assert_array_equal(out, expected)

    def turned(x, w, ct, window):
        g = geometry(x.shape, ct.shape[1:-1], w.shape[:-2], window)
        out = np.zeros_like(x)
        for phase in conv_shapes.backward(g, w.shape[-1]):
            of = conv_shapes.turned(g, w.shape[-1], 1, phase), (g.sizes, phase.first, phase.strides)
            run(out, ct, w, functools.partial(conv_shapes.forward, phase.geometry, g.channels, 1, dtype, *of))
        expected = ops.conv_input_grad(tf.constant(ct), tf.constant(w), input_shape=x.shape[1:], **window).numpy()
        np.testing.assert_array_equal(out, expected)

    for case in (*CASES[:4], *CASES[-3:-1]):
        x, w, ct, window = drawn(case, dtype)
        convolved(x, w, window)
        convolved(x, w, {**window, "padding": "SAME"})
        turned(x, w, ct, window)
        g = geometry(x.shape, ct.shape[1:-1], w.shape[:-2], window)
        expected = ops.conv_filter_grad(tf.constant(x), tf.constant(ct), filter_shape=w.shape, **window).numpy()
        for threads in (1, 2, 3, 40):  # which decides how it is parted
            with monkeypatch.context() as patched:
                patched.setattr(conv_shapes, "tiling", lambda _: shape)
                cut = conv_shapes.filters(g, w.shape[-1], 1, 1, dtype, threads)
            gradient = np.full(w.shape, np.nan, dtype.np)
            start(conv.symbol(cut.kernel, dtype), cut.total, cut.integers, (gradient, cut.out), (x, cut.x), (ct, cut.b))
            np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize(("shape", "case"), [
    (shape, case) for shape in (gemm.Tiling(4, (3, 2, 1), True), gemm.Tiling(8, (14, 8, 4), False))
    for case in (NARROW[0], NARROW[3], NARROW[5], NARROW[6]) if case[3] <= shape.lanes])
def test_few_outputs_in_lockstep_give_the_same_bits(shape, case, monkeypatch):
    """Also on vectors of other widths."""
    for padding in ("VALID", "SAME"):
        x, w, expected, window = drawn_narrow(case, dt.float32, padding)
        g = geometry(x.shape, expected.shape[1:-1], w.shape[:-2], window)
        with monkeypatch.context() as patched:
            patched.setattr(conv_narrow_shapes, "tiling", lambda _: shape)
            cut = conv_narrow_shapes.forward(g, w.shape[-1], case[4], dt.float32)
        out, right = np.full_like(expected, np.nan), w
        if cut.packs:
            integers, panels, room = cut.packs
            right = np.full(room, np.nan, np.float32)
            kernel = kernels(dt.float32, shape, "panels")["panels"]
            assert lockstep.run(kernel, panels, [memory(right), memory(w), *integers]) == 0
        work = np.full(cut.work, np.nan, np.float32)
        in_lockstep(cut, shape, out, x, right, memory(work), *cut.integers)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("shape", [gemm.Tiling(4, (3, 2, 1), True), gemm.Tiling(8, (14, 8, 4), True),
                                   first_tier(gemm.Tiling(4, (14, 8, 4), True))], ids=["4", "8", "first tier"])
def test_groups_in_lockstep_give_the_same_bits(shape, monkeypatch):
    """Vectors of other widths, which take one element of a window of two vectors of outputs, two, and four."""
    for groups, inner, columns in ((2, 8, 6), (3, 4, 4), (3, 4, 2)):
        x, w = draw(0, 1, 3, 5, groups * inner), draw(1, 3, 2, inner, groups * columns)
        window = {"strides": (1, 2), "dilations": (1, 1), "padding": "SAME"}
        expected = ops.conv(tf.constant(x), tf.constant(w), **window).numpy()
        ct, g = draw(2, *expected.shape), geometry(x.shape, expected.shape[1:-1], w.shape[:-2], window)
        with monkeypatch.context() as patched:
            for module in (conv_shapes, conv_grouped_shapes):
                patched.setattr(module, "tiling", lambda _: shape)
            forward = conv_shapes.forward(g, w.shape[-1], groups, dt.float32)
            cut = conv_grouped_shapes.filters(g, w.shape[-1], groups, 1, dt.float32, 2)
        out, work = np.full_like(expected, np.nan), np.full(forward.work, np.nan, np.float32)
        in_lockstep(forward, shape, out, x, w, memory(work), gemm.DIRECT, *forward.integers[1:])
        np.testing.assert_array_equal(out, expected)
        gradient, work = np.full(w.shape, np.nan, np.float32), np.full(cut.work, np.nan, np.float32)
        in_lockstep(cut, shape, gradient, x, ct, memory(work), *cut.integers)
        expected = ops.conv_filter_grad(tf.constant(x), tf.constant(ct), filter_shape=w.shape, **window).numpy()
        np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize("shape", [gemm.Tiling(4, (3, 2, 1), True), gemm.Tiling(8, (14, 8, 4), True),
                                   first_tier(gemm.Tiling(8, (14, 8, 4), True))], ids=["4", "8", "first tier"])
@pytest.mark.parametrize("bad", [1.0, np.inf], ids=str)
@pytest.mark.parametrize(("shapes", "case"), [(conv_inside_shapes, (9, (2, 3), 9, 9, 2, (3, 4), (1, 2), (1, 1))),
                                              (conv_lines_shapes, (9, (2, 7), 5, 4, 1, (3, 3), (2, 1), (1, 1)))])
def test_several_images_in_lockstep_give_the_same_bits(shapes, case, bad, shape, monkeypatch):
    """A kernel does nothing where another one does all, which depends on what filters are."""
    groups, outputs = case[4], case[3] * case[4]
    w = draw(1, *case[5], case[2], outputs)
    w[0, 0, 0, 0] = bad
    x, w, expected, window = drawn_narrow(case, dt.float32, "SAME", w)
    g = geometry(x.shape, expected.shape[1:-1], w.shape[:-2], window)
    with monkeypatch.context() as patched:
        for module in (conv_shapes, shapes):
            patched.setattr(module, "tiling", lambda _: shape)
        inside = shapes.forward(g, outputs, groups, dt.float32)
        forward = conv_shapes.forward(g, outputs, groups, dt.float32, unless=True)
    assert inside.packs[1:] == forward.packs[1:]
    for cut in (inside, forward):
        integers, panels, room = cut.packs
        out, right = np.full_like(expected, 7), np.full(room, np.nan, np.float32)
        kernel = kernels(dt.float32, shape, "panels")["panels"]
        assert lockstep.run(kernel, panels, [memory(right), memory(w), *integers]) == 0
        work = [memory(np.full(cut.work, np.nan, np.float32))] if cut is forward else []
        in_lockstep(cut, shape, out, x, right, *work, *cut.integers)
        np.testing.assert_array_equal(out, expected if (cut is inside) == (bad == 1.0) else np.full_like(out, 7))


@pytest.mark.parametrize("shape", [gemm.Tiling(4, (6, 4, 2), True), gemm.Tiling(8, (14, 8, 4), True),
                                   first_tier(gemm.Tiling(8, (14, 8, 4), True))], ids=["4", "8", "first tier"])
def test_gradients_for_few_filters_in_lockstep_give_the_same_bits(shape, monkeypatch):
    """Also where a block of places ends one place into a line."""
    x, w, ct, window = drawn((2, (10, 19), 2, 3, (3, 3), (1, 1), (1, 1)), dt.float32)
    g = geometry(x.shape, ct.shape[1:-1], w.shape[:-2], window)
    with monkeypatch.context() as patched:
        patched.setattr(conv_lines_shapes, "tiling", lambda _: shape)
        cut = conv_lines_shapes.filters(g, w.shape[-1], 1, 1, dt.float32, 2)
    gradient = np.full(w.shape, np.nan, np.float32)
    in_lockstep(cut, shape, gradient, x, ct, *cut.integers)
    expected = ops.conv_filter_grad(tf.constant(x), tf.constant(ct), filter_shape=w.shape, **window).numpy()
    np.testing.assert_array_equal(gradient, expected)


def memory(x, at=0):
    return lockstep.ByteMemory(x.reshape(-1).view(np.uint8), at * x.dtype.itemsize)


def in_lockstep(cut, shape, out, x, b, *more):
    """Runs a cut of a convolution; its kernel must be well formed."""
    kernel = kernels(dt.float32, shape, cut.kernel)[cut.kernel]
    verify(kernel)
    given = [memory(out, cut.out), memory(x, cut.x), memory(b, cut.b), *more]
    assert lockstep.run(kernel, cut.total, given) == 0


@pytest.mark.parametrize("case", [CASES[1], CASES[5]], ids=["2-D", "3-D"])
@pytest.mark.parametrize("shape", [gemm.Tiling(4, (3, 2, 1), True), gemm.Tiling(8, (14, 8, 4), True)],
                         ids=lambda s: str(s.lanes))
def test_lockstep_gives_the_same_bits(shape, case, monkeypatch):
    x, w, ct, window = drawn(case, dt.float32)
    for padding in ("VALID", "SAME"):
        padded = {**window, "padding": padding}
        expected = ops.conv(tf.constant(x), tf.constant(w), **padded).numpy()
        g = geometry(x.shape, expected.shape[1:-1], w.shape[:-2], padded)
        with monkeypatch.context() as patched:
            patched.setattr(conv_shapes, "tiling", lambda _: shape)
            cut = conv_shapes.forward(g, w.shape[-1], 1, dt.float32)
        out, work = np.full_like(expected, np.nan), np.full(cut.work, np.nan, np.float32)
        in_lockstep(cut, shape, out, x, w, memory(work) if cut.work else 0, gemm.DIRECT, *cut.integers[1:])
        np.testing.assert_array_equal(out, expected)
    g = geometry(x.shape, ct.shape[1:-1], w.shape[:-2], window)
    with monkeypatch.context() as patched:
        patched.setattr(conv_shapes, "tiling", lambda _: shape)
        cut = conv_shapes.filters(g, w.shape[-1], 1, 1, dt.float32)
    gradient = np.full(w.shape, np.nan, np.float32)
    in_lockstep(cut, shape, gradient, x, ct, *cut.integers)
    expected = ops.conv_filter_grad(tf.constant(x), tf.constant(ct), filter_shape=w.shape, **window).numpy()
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.bfloat16], ids=lambda d: d.name)
@pytest.mark.parametrize("dims, filters", [((2, 7, 1, 4), (2, 2, 4, 4)), ((2, 7, 1, 4), (2, 2, 2, 8)),
                                           ((0, 5, 5, 16), (3, 3, 16, 33)), ((2, 1, 8, 2), (2, 2, 2, 3))])
def test_filters_of_no_places_have_a_gradient_of_zeros(dims, filters, dtype):
    """Also where sizes are known only when a program runs, and its memory is not fresh."""
    x, w = tf.ones(dims, dtype), tf.ones(filters, dtype)

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, dims[-1]], dtype), tf.TensorSpec(filters, dtype)])
    def gradient(x, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = tf.nn.conv2d(x, w, 1, "VALID")
        return tape.gradient(y, w)

    gradient(tf.ones([2, 6, 6, dims[-1]], dtype) * 7.0, w)
    for _ in range(3):
        used = [tf.fill([n, 100], tf.cast(3.0, dtype)) for n in (1, 10, 100)]
        del used
        assert not gradient(x, w).numpy().astype(np.float64).any()
