"""Depthwise convolutions and their gradients against NumPy, which adds up in the order that is promised."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import twofold as tf
from twofold.codegen import conv_depthwise_shapes, conv_shapes, gemm, lockstep
from twofold.codegen.conv_kernels import kernels
from twofold.codegen.kernels.windows import geometry
from twofold.codegen.loop_verify import verify
from twofold.ir import dtypes as dt
from twofold.ir import ops, windows

# images, their sizes, channels, window, strides, dilations
CASES = [
    (1, (1, 1), 3, (1, 1), (1, 1), (1, 1)),
    (2, (7, 30), 21, (3, 3), (1, 1), (1, 1)),
    (1, (5, 3), 150, (3, 5), (1, 1), (1, 1)),  # windows wider than the image
    (2, (17, 18), 33, (3, 4), (2, 3), (1, 1)),
    (1, (5, 23), 40, (2, 3), (1, 1), (3, 2)),
    (2, (6, 9), 5, (1, 2), (3, 2), (1, 1)),  # pixels that no tap falls on
    (3, (61,), 17, (9,), (1,), (1,)),
    (2, (4, 5, 19), 20, (2, 3, 3), (1, 2, 1), (1, 1, 1)),
    (2, (8, 13), 19, (4, 3), (2, 2), (1, 1)),  # the last pixel of a place is the first of the next one
    (1, (9, 16), 18, (3, 3), (2, 4), (1, 2)),
]


def taps_of(sizes, places, window, strides, dilations, before):
    """For each tap, in row-major order: the places and pixels, as indices, where it is inside of the image."""
    for tap in itertools.product(*map(range, window)):
        at = []
        for size, count, k, s, d, b in zip(sizes, places, tap, strides, dilations, before, strict=True):
            place = np.arange(count)
            pixel = place * s - b + k * d
            inside = (pixel >= 0) & (pixel < size)
            at.append((place[inside], pixel[inside]))
        yield tap, np.ix_(*[place for place, _ in at]), np.ix_(*[pixel for _, pixel in at])


def expected(x, w, ct, window, strides, dilations, padding):
    """The convolution and its two gradients: a product is rounded, then added, tap by tap; of filters in float64."""
    sizes, places = x.shape[1:-1], ct.shape[1:-1]
    before = [p[0] for p in windows.pads(sizes, window, strides, dilations, padding)]
    y, of_x, of_w = np.zeros_like(ct), np.zeros_like(x), np.zeros(w.shape, np.float64)
    for image in range(x.shape[0]):
        for tap, place, pixel in taps_of(sizes, places, window, strides, dilations, before):
            y[image][place] += x[image][pixel] * w[tap][0]
            of_x[image][pixel] += ct[image][place] * w[tap][0]
            products = x[image][pixel].astype(np.float64) * ct[image][place].astype(np.float64)
            for product in products.reshape(-1, x.shape[-1]):
                of_w[tap][0] += product
    return y, of_x, of_w.astype(w.dtype)


def drawn(case, dtype, padding):
    n, sizes, channels, window, strides, dilations = case
    rng = np.random.default_rng(0)
    if padding == "VALID":
        sizes = tuple(max(s, (k - 1) * d + 1) for s, k, d in zip(sizes, window, dilations, strict=True))
    x = rng.normal(size=(n, *sizes, channels)).astype(dtype.np)
    w = rng.normal(size=(*window, 1, channels)).astype(dtype.np)
    attrs = {"strides": strides, "dilations": dilations, "padding": padding}
    ct = rng.normal(size=ops.conv(tf.constant(x), tf.constant(w), **attrs).shape).astype(dtype.np)
    return x, w, ct, attrs


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("case", CASES)
def test_sums_have_the_promised_order(case, dtype, padding):
    x, w, ct, attrs = drawn(case, dtype, padding)
    y, of_x, of_w = expected(x, w, ct, case[3], *case[4:], padding)
    tx, tw, tct = (tf.constant(a) for a in (x, w, ct))
    np.testing.assert_array_equal(ops.conv(tx, tw, **attrs).numpy(), y)
    np.testing.assert_array_equal(ops.conv_input_grad(tct, tw, input_shape=x.shape[1:], **attrs).numpy(), of_x)
    np.testing.assert_array_equal(ops.conv_filter_grad(tx, tct, filter_shape=w.shape, **attrs).numpy(), of_w)


def test_a_tap_beyond_the_image_adds_nothing():
    """Not even where its weight is infinite."""
    x, w = np.ones((1, 3, 3, 20), np.float32), np.zeros((3, 3, 1, 20), np.float32)
    w[0] = np.inf
    attrs = {"strides": (1, 1), "dilations": (1, 1), "padding": "SAME"}
    y = ops.conv(tf.constant(x), tf.constant(w), **attrs).numpy()
    assert (y[0, 0] == 0).all() and (y[0, 1:] == np.inf).all()
    of_x = ops.conv_input_grad(tf.constant(x), tf.constant(w), input_shape=x.shape[1:], **attrs).numpy()
    assert (of_x[0, 2] == 0).all() and (of_x[0, :2] == np.inf).all()


def in_lockstep(cut, shape, out, x, b):
    kernel = kernels(dt.float32, shape, cut.kernel)[cut.kernel]
    verify(kernel)
    given = [lockstep.ByteMemory(a.reshape(-1).view(np.uint8), at * a.dtype.itemsize)
             for a, at in ((out, cut.out), (x, cut.x), (b, cut.b))]
    assert lockstep.run(kernel, cut.total, [*given, *cut.integers]) == 0


@pytest.mark.parametrize("case", [CASES[3], CASES[7], CASES[8]], ids=["strides", "3-D", "by two"])
@pytest.mark.parametrize(("shape", "threads"), [(gemm.Tiling(4, (3, 2, 1), True), 5),
                                                (gemm.Tiling(16, (14, 8, 4), True), 1)], ids=["4", "16"])
def test_lockstep_gives_the_same_bits(shape, case, threads, monkeypatch):
    monkeypatch.setattr(conv_depthwise_shapes, "tiling", lambda _: shape)
    x, w, ct, attrs = drawn(case, dt.float32, "SAME")
    y, of_x, of_w = expected(x, w, ct, case[3], *case[4:], "SAME")
    g = geometry(x.shape, ct.shape[1:-1], case[3], attrs)
    out = np.full_like(y, np.nan)
    in_lockstep(conv_depthwise_shapes.forward(g, threads), shape, out, x, w)
    np.testing.assert_array_equal(out, y)
    out = np.zeros_like(x)
    phases = conv_shapes.backward(g, g.channels)
    in_lockstep(conv_depthwise_shapes.backward(g, phases, threads), shape, out, ct, w)
    np.testing.assert_array_equal(out, of_x)
    sums = np.zeros(w.shape)
    in_lockstep(conv_depthwise_shapes.filters(g, dt.float32), shape, sums, x, ct)
    np.testing.assert_array_equal(sums.astype(np.float32), of_w)
