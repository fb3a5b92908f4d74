"""The kernels one by one: matrix products, convolutions, rows and elements, beside the machine's own limits.

Each case says how many operations it has and how many bytes it must move at least; with the arithmetic and the
bandwidth that `floors.py` measures in the same run that gives the time below which no kernel can get on the machine.

A case is a function of a peer's own library and some arrays, built from the tables below: products by the shapes of
their operands, convolutions by the layers of ResNet-50 (He et al. 2015, arXiv:1512.03385, table 1), MobileNet
(arXiv:1704.04861) and ResNeXt-50 (arXiv:1611.05431).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import compiled
import numpy as np

from eager import Built

SAMPLE_SECONDS = 0.1
WARM_SECONDS = 0.3
PROCESS_CASES: dict[str, tuple[str, bool]] = {}


class Work(NamedTuple):
    """What a case must do at least: multiplications and additions, and bytes read and written.

    Attributes:
        flops: operations of the dtype, counted singly.
        moved: bytes.
        dtype: name of the dtype that the operations are done in.
    """

    flops: float
    moved: float
    dtype: str = "float32"


class Product(NamedTuple):
    """A matrix product: shapes of the operands, and whether each is handed in transposed.

    Attributes:
        left, right: the shapes that are multiplied, after transposition.
        dtype: of all.
        transposed: which operands lie in memory the other way round.
        epilogue: whether a bias is added and negative elements become 0.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    dtype: str = "float32"
    transposed: tuple[bool, bool] = (False, False)
    epilogue: bool = False

    @property
    def work(self) -> Work:
        size = np.dtype(self.dtype).itemsize
        *batch, m, k = self.left
        n = self.right[-1]
        count = int(np.prod(batch, dtype=np.int64))
        return Work(2.0 * count * m * n * k, size * (np.prod(self.left) + np.prod(self.right) + count * m * n),
                    self.dtype)

    def arrays(self) -> list[np.ndarray]:
        def one(seed: int, shape: tuple[int, ...], is_transposed: bool) -> np.ndarray:
            laid = (*shape[:-2], shape[-1], shape[-2]) if is_transposed else shape
            return compiled.normal(seed, *laid).astype(self.dtype)
        bias = [compiled.normal(3, self.right[-1]).astype(self.dtype)] if self.epilogue else []
        return [one(1, self.left, self.transposed[0]), one(2, self.right, self.transposed[1]), *bias]


class Layer(NamedTuple):
    """A convolution of square images and windows, padded so that a stride of 1 keeps their size.

    Attributes:
        batch, size: how many images, and their height and width.
        inputs, outputs: channels.
        window, stride: of the convolution.
        groups: of channels.
        axes: along which images are so large.
    """

    batch: int
    size: int
    inputs: int
    outputs: int
    window: int
    stride: int = 1
    groups: int = 1
    axes: int = 2

    @property
    def out(self) -> int:
        return -(-self.size // self.stride)

    @property
    def work(self) -> Work:
        places = self.batch * self.out**self.axes
        taps = self.window**self.axes * self.inputs // self.groups * self.outputs
        moved = self.batch * self.size**self.axes * self.inputs + taps + places * self.outputs
        return Work(2.0 * places * taps, 4.0 * moved)

    def arrays(self) -> list[np.ndarray]:
        images = compiled.normal(1, self.batch, *[self.size] * self.axes, self.inputs)
        window = [self.window] * self.axes
        return [images, compiled.normal(2, *window, self.inputs // self.groups, self.outputs) / 16]

    def cotangent(self) -> np.ndarray:
        """The gradient of the outputs."""
        return compiled.normal(5, self.batch, *[self.out] * self.axes, self.outputs)


def _products() -> dict[str, tuple[str, Product]]:
    cases: dict[str, tuple[str, Product]] = {}
    for short, dtype in (("f32", "float32"), ("f64", "float64")):
        for n in (64, 128, 256, 512, 1024, 2048, 4096):
            if (short, n) != ("f64", 4096):
                cases[f"matmul_{short}_{n}"] = f"matmul {short}, {n}x{n}", Product((n, n), (n, n), dtype)
    square = (1024, 1024)
    for name, flips in (("at", (True, False)), ("bt", (False, True)), ("atbt", (True, True))):
        cases[f"matmul_{name}"] = f"matmul f32, 1024x1024, {name}", Product(square, square, transposed=flips)
    cases["matmul_odd"] = "matmul f32, 1000x1000", Product((1000, 1000), (1000, 1000))
    cases["matmul_batched"] = "matmul f32, 64 of 128x128", Product((64, 128, 128), (64, 128, 128))
    cases["matmul_tall"] = "matmul f32, 8192x64 by 64x64", Product((8192, 64), (64, 64))
    cases["matmul_wide"] = "matmul f32, 32x784 by 784x128", Product((32, 784), (784, 128))
    cases["matmul_row"] = "matmul f32, 1x1024 by 1024x1024", Product((1, 1024), square)
    cases["matmul_bias_relu"] = "matmul + bias + relu f32, 512x512", Product((512, 512), (512, 512), epilogue=True)
    cases["matmul_bias_relu_short"] = ("matmul + bias + relu f32, 8192x32 by 32x512",
                                       Product((8192, 32), (32, 512), epilogue=True))
    return cases


def _title(layer: Layer) -> str:
    window, size = ("x".join([str(n)] * layer.axes) for n in (layer.window, layer.size))
    by = ", by 2" if layer.stride == 2 else ""
    return f"{window}, {size}x{layer.inputs} to {layer.outputs}{by}, batch {layer.batch}"


def _layers() -> dict[str, tuple[str, Layer]]:
    cases: dict[str, tuple[str, Layer]] = {}
    for batch in (1, 16):
        for layer in (Layer(batch, 224, 3, 64, 7, 2), Layer(batch, 56, 64, 64, 1), Layer(batch, 56, 64, 64, 3),
                      Layer(batch, 56, 64, 256, 1), Layer(batch, 56, 128, 128, 3, 2), Layer(batch, 28, 128, 128, 3),
                      Layer(batch, 28, 512, 128, 1), Layer(batch, 14, 256, 256, 3), Layer(batch, 14, 256, 1024, 1),
                      Layer(batch, 7, 512, 512, 3), Layer(batch, 7, 2048, 512, 1)):
            name = f"{layer.window}x{layer.window}_{layer.size}_{layer.inputs}_{layer.outputs}_b{batch}"
            cases[name] = _title(layer), layer
        for size, channels, stride in ((112, 32, 1), (112, 64, 2), (56, 128, 1), (14, 512, 1), (7, 1024, 1)):
            layer = Layer(batch, size, channels, channels, 3, stride, channels)  # of MobileNet
            cases[f"depthwise_{size}_{channels}_b{batch}"] = f"depthwise {_title(layer)}", layer
        for size, channels in ((56, 128), (28, 256), (14, 512), (7, 1024)):
            layer = Layer(batch, size, channels, channels, 3, 1, 32)  # of ResNeXt-50
            cases[f"grouped_{size}_{channels}_b{batch}"] = f"32 groups, {_title(layer)}", layer
    for axes, layer in ((1, Layer(16, 1000, 64, 64, 3)), (1, Layer(16, 1000, 64, 64, 9)), (3, Layer(1, 28, 64, 64, 3))):
        layer = layer._replace(axes=axes)
        cases[f"{axes}d_{layer.window}_{layer.size}_{layer.inputs}"] = _title(layer), layer
    return cases


PRODUCTS, LAYERS = _products(), _layers()
_ROWS = {
    "gelu_1e6": ("tanh-gelu, 1e6 floats", 2e-5, Work(0, 8e6)),
    "gelu_1e7": ("tanh-gelu, 1e7 floats", 2e-5, Work(0, 8e7)),
    "softmax": ("softmax, 1024x1024", 1e-5, Work(0, 8 * 2**20)),
    "layer_norm": ("layer norm, 4096x768", 1e-4, Work(0, 8 * 4096 * 768)),
    "black_scholes": ("Black-Scholes, 1e6 options", 1e-4, Work(0, 8e6)),
    "sum_1e7": ("sum of 1e7 floats", 1e-3, Work(0, 4e7)),
    "logsumexp_1e7": ("logsumexp of 1e7 floats", 1e-5, Work(0, 4e7)),
    "moments_1e7": ("mean and variance of 1e7 floats", 1e-3, Work(0, 4e7)),
}
WORK = {**{name: product.work for name, (_, product) in PRODUCTS.items()},
        **{f"conv_{name}": layer.work for name, (_, layer) in LAYERS.items()},
        **{f"convgrad_{name}": Work(2 * layer.work.flops, 2 * layer.work.moved)
           for name, (_, layer) in LAYERS.items()},
        **{name: work for name, (_, _, work) in _ROWS.items()}}
CASES = {**{name: (title, 1e-4) for name, (title, _) in PRODUCTS.items()},
         **{f"conv_{name}": (f"convolution {title}", 1e-4) for name, (title, _) in LAYERS.items()},
         **{f"convgrad_{name}": (f"its gradients {title}", 1e-3) for name, (title, _) in LAYERS.items()},
         **{name: (title, tolerance) for name, (title, tolerance, _) in _ROWS.items()}}


def case_of(peer: Any, name: str) -> Built | None:
    """The case of a name, by the peer's functions `product`, `convolution` and `gradients`, where it has them."""
    kind, _, rest = name.partition("_")
    if name in PRODUCTS:
        return _product_case(peer, PRODUCTS[name][1])
    fn = {"conv": "convolution", "convgrad": "gradients"}.get(kind)
    if fn is None or rest not in LAYERS or not hasattr(peer, fn):
        return None
    layer = LAYERS[rest][1]
    return peer._case(getattr(peer, fn)(layer), *peer.laid(layer.arrays())) if peer.convolves(layer) else None


def _product_case(peer: Any, product: Product) -> Built | None:
    if not hasattr(peer, "product"):
        return None
    return peer._case(peer.product(product), *product.arrays())


class _Tables:
    """A peer whose cases also come from the tables."""

    def __getattr__(self, name: str) -> Callable[[], Built]:
        if name in CASES:
            built = case_of(self, name)
            if built is not None:
                return lambda: built
        raise AttributeError(name)

    def laid(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Images and filters in the layout that the peer has them in."""
        return arrays

    def convolves(self, layer: Layer) -> bool:
        """Whether the peer has such convolutions and their gradients."""
        return True


class NumPy(_Tables, compiled.NumPy):
    """What a BLAS does alone."""

    def _case(self, fn: Any, *arrays: np.ndarray) -> Built:
        names = {f"x{n}": a for n, a in enumerate(arrays)}
        call = f"f({', '.join(names)})"
        return call, {"f": fn, **names}, call

    def product(self, product: Product) -> Callable[..., Any]:
        flip_a, flip_b = product.transposed
        if product.epilogue:
            return lambda a, b, bias: np.maximum(a @ b + bias, 0)
        return lambda a, b: np.matmul(a.T if flip_a else a, b.T if flip_b else b)

    def moments_1e7(self) -> Built:
        return self._case(lambda x: (x.mean(), x.var()), compiled.normal(1, 10_000_000))


class Torch(_Tables, compiled.Torch):
    """PyTorch: products and convolutions as they are, images with channels last; the rest by `torch.compile`."""

    def _case(self, fn: Any, *arrays: Any) -> Built:
        names = {f"x{n}": a if isinstance(a, self.torch.Tensor) else self.torch.tensor(a)
                 for n, a in enumerate(arrays)}
        call = f"f({', '.join(names)})"
        is_plain = getattr(fn, "is_plain", False)
        return call, {"f": fn if is_plain else self.torch.compile(fn), **names}, call

    def product(self, product: Product) -> Callable[..., Any]:
        flip_a, flip_b = product.transposed
        if product.epilogue:
            return lambda a, b, bias: self.torch.relu(a @ b + bias)

        def multiply(a: Any, b: Any) -> Any:
            return self.torch.matmul(a.T if flip_a else a, b.T if flip_b else b)

        multiply.is_plain = True  # type: ignore[attr-defined]
        return multiply

    def laid(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        images, filters = (self.torch.tensor(a) for a in arrays)
        return [self._last(self._first(images)), self._last(filters.permute(-1, -2, *range(filters.ndim - 2)))]

    def _first(self, x: Any) -> Any:
        """With the channels before the places."""
        return x.permute(0, -1, *range(1, x.ndim - 1))

    def _last(self, x: Any) -> Any:
        """Laid out with channels last, where there is such a layout."""
        layouts = {4: self.torch.channels_last, 5: self.torch.channels_last_3d}
        return x.contiguous(memory_format=layouts.get(x.ndim, self.torch.contiguous_format))

    def _padding(self, layer: Layer) -> tuple[int, int]:
        """Zeros before and after, as padding `SAME` has them in TensorFlow."""
        total = max((layer.out - 1) * layer.stride + layer.window - layer.size, 0)
        return total // 2, total - total // 2

    def convolution(self, layer: Layer) -> Callable[..., Any]:
        before, after = self._padding(layer)
        functional = self.torch.nn.functional
        apply = (functional.conv1d, functional.conv2d, functional.conv3d)[layer.axes - 1]

        def convolve(x: Any, w: Any) -> Any:
            if before != after:
                x = functional.pad(x, (before, after) * layer.axes)
            y = apply(x, w, stride=layer.stride, padding=before * (before == after), groups=layer.groups)
            return y.permute(0, *range(2, y.ndim), 1)

        convolve.is_plain = True  # type: ignore[attr-defined]
        return convolve

    def gradients(self, layer: Layer) -> Callable[..., Any]:
        before, after = self._padding(layer)
        ct = self._last(self._first(self.torch.tensor(layer.cotangent())))
        pad, axes = self.torch.nn.functional.pad, layer.axes

        def gradients(x: Any, w: Any) -> Any:
            even = before == after
            wide = x if even else pad(x, (before, after) * axes)
            of_x, of_w, _ = self.torch.ops.aten.convolution_backward(
                ct, wide, w, None, [layer.stride] * axes, [before * even] * axes, [1] * axes, False, [0] * axes,
                layer.groups, [True, True, False])
            own = of_x if even else of_x[:, :, before:before + layer.size, before:before + layer.size]
            return own.sum(), of_w.permute(*range(2, of_w.ndim), 1, 0)

        gradients.is_plain = True  # type: ignore[attr-defined]
        return gradients

    def moments_1e7(self) -> Built:
        return self._case(lambda x: (x.mean(), x.var(correction=0)), compiled.normal(1, 10_000_000))


class Jax(_Tables, compiled.Jax):
    """JAX with `jit`."""

    def _case(self, fn: Any, *arrays: np.ndarray) -> Built:
        self.jax.config.update("jax_enable_x64", any(a.dtype == np.float64 for a in arrays))
        names = {f"x{n}": self.jax.numpy.asarray(a) for n, a in enumerate(arrays)}
        call = f"f({', '.join(names)})"
        return f"wait({call})", {"f": self.jax.jit(fn), "wait": self.jax.block_until_ready, **names}, call

    def product(self, product: Product) -> Callable[..., Any]:
        flip_a, flip_b = product.transposed
        if product.epilogue:
            return lambda a, b, bias: self.jax.nn.relu(a @ b + bias)
        return lambda a, b: self.jax.numpy.matmul(a.T if flip_a else a, b.T if flip_b else b)

    def convolution(self, layer: Layer) -> Callable[..., Any]:
        places = "DHW"[3 - layer.axes:]
        return lambda x, w: self.jax.lax.conv_general_dilated(
            x, w, (layer.stride,) * layer.axes, "SAME", dimension_numbers=(f"N{places}C", f"{places}IO", f"N{places}C"),
            feature_group_count=layer.groups)

    def gradients(self, layer: Layer) -> Callable[..., Any]:
        forward = self.convolution(layer)
        ct = self.jax.numpy.asarray(layer.cotangent())

        def gradients(x: Any, w: Any) -> Any:
            of_x, of_w = self.jax.vjp(forward, x, w)[1](ct)
            return of_x.sum(), of_w

        return gradients

    def moments_1e7(self) -> Built:
        return self._case(lambda x: (x.mean(), x.var()), compiled.normal(1, 10_000_000))


class TensorFlow(_Tables, compiled.TensorFlow):
    """TensorFlow with `tf.function`; products and convolutions by oneDNN rather than by XLA, which is slower there."""

    def _case(self, fn: Any, *arrays: np.ndarray) -> Built:
        names = {f"x{n}": self.tf.constant(a) for n, a in enumerate(arrays)}
        call = f"f({', '.join(names)})"
        options = {} if getattr(fn, "is_plain", False) else self.options
        return call, {"f": self.tf.function(fn, **options), **names}, call

    def product(self, product: Product) -> Callable[..., Any]:
        tf, (flip_a, flip_b) = self.tf, product.transposed

        def multiply(a: Any, b: Any, *bias: Any) -> Any:
            y = tf.matmul(a, b, transpose_a=flip_a, transpose_b=flip_b)
            return tf.nn.relu(y + bias[0]) if bias else y

        multiply.is_plain = True  # type: ignore[attr-defined]
        return multiply

    def convolves(self, layer: Layer) -> bool:
        return layer.groups in (1, layer.inputs)  # TensorFlow has gradients of others on graphics processors alone

    def convolution(self, layer: Layer) -> Callable[..., Any]:
        tf, by = self.tf, layer.stride

        def convolve(x: Any, w: Any) -> Any:
            if layer.groups == layer.inputs > 1:
                return tf.nn.depthwise_conv2d(x, tf.reshape(w, [*w.shape[:2], -1, 1]), [1, by, by, 1], "SAME")
            return tf.nn.convolution(x, w, strides=by, padding="SAME")

        convolve.is_plain = True  # type: ignore[attr-defined]
        return convolve

    def gradients(self, layer: Layer) -> Callable[..., Any]:
        tf, forward = self.tf, self.convolution(layer)
        ct = tf.constant(layer.cotangent())

        def gradients(x: Any, w: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = forward(x, w)
            of_x, of_w = tape.gradient(y, [x, w], ct)
            return tf.reduce_sum(of_x), of_w

        gradients.is_plain = True  # type: ignore[attr-defined]
        return gradients

    def moments_1e7(self) -> Built:
        return self._case(lambda x: tuple(self.tf.nn.moments(x, [0])), compiled.normal(1, 10_000_000))


class Twofold(TensorFlow, compiled.Twofold):
    """This library."""

    def __init__(self) -> None:
        compiled.Twofold.__init__(self)

    def convolves(self, layer: Layer) -> bool:
        return True


PEERS = {"numpy": NumPy, "torch": Torch, "jax": Jax, "tensorflow": TensorFlow, "twofold": Twofold}
