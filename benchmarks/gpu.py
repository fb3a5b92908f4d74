"""Cases on a GPU: rows and elements beside the bandwidth of memory, products beside the peak, calls and steps.

    python benchmarks/runner.py gpu

A peer is a class with one method a case, as in `eager.py`; all lie on the first GPU, and every statement waits for the
GPU to be done. `torch` runs op by op, `compiled` by `torch.compile` with the driver's graphs. Float32 is exact
everywhere, TF32 switched off, but in the cases that say "TF32"; in those and in bfloat16 products may differ by what
these allow. Peers that find no GPU are dashes. TWOFOLD_BENCH_SMALL=1 has small sizes, which show that all of it runs.

Under the table stands what `WORK` makes of the times: bytes and operations by the second.
"""

from __future__ import annotations

import os
from typing import Any

import compiled
import numpy as np
import training
from compiled import INTEREST, STRIKE, TIME, VOLATILITY
from worker import SMALL

from eager import Built, mlp_data, small

ENVIRONMENT = {"JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cuda")}  # of the measured processes
WARM_SECONDS = 1.0
SAMPLE_SECONDS = 0.3
PROCESS_CASES: dict[str, tuple[str, bool]] = {}

ELEMENTS = 1 << (9 if SMALL else 28)
OPTIONS = 500 if SMALL else 100_000_000
SUMMED = 9000 if SMALL else 1_000_000_000
SOFTMAX = (3, 40) if SMALL else (8192, 8192)
LAYER_NORM = (3, 40) if SMALL else (8192, 4096)
SIZES = {"4096": 40 if SMALL else 4096, "8192": 48 if SMALL else 8192}
STEPS, WIDTH = (3, 16) if SMALL else (20, 64)

if SMALL:
    training.CNN_B, training.TRANSFORMER = (1, 4, 2), (1, 4, 8)

CASES = {
    "copy": (f"copy with another sign, {ELEMENTS:.3g} floats", 0.0),
    "gelu": (f"tanh-gelu, {ELEMENTS:.3g} floats", 2e-5),
    "softmax": (f"softmax, {SOFTMAX[0]}x{SOFTMAX[1]}", 1e-5),
    "layer_norm": (f"layer norm, {LAYER_NORM[0]}x{LAYER_NORM[1]}", 1e-4),
    "black_scholes": (f"Black-Scholes, {OPTIONS:.3g} options", 1e-4),
    "sum": (f"sum of {SUMMED:.3g} floats", 1e-3),
    **{f"matmul_{name}{kind}": (f"product {name}, {title}", far) for name in SIZES for kind, title, far in (
        ("", "float32", 1e-5), ("_tf32", "TF32", 4e-3), ("_bf16", "bfloat16", 1e-2))},
    "small_steps": (f"compiled step of {STEPS} small kernels", 1e-3),
    "call_10": ("call of a * b + a, 10 floats", 1e-6),
    "mlp_step": ("MLP 784-128-10, batch 32, compiled", 1e-3),
    "cnn_b_step": ("CNN B, four convolutions on 32x32x3, batch 32, compiled", 1e-3),
    "transformer_step": ("transformer block 256, sequence 128, batch 8, compiled", 1e-3),
}

# Bytes that a case must move, and operations that it has.
WORK_OF: dict[str, tuple[float, float]] = {
    "copy": (8.0 * ELEMENTS, 0), "gelu": (8.0 * ELEMENTS, 0), "softmax": (8.0 * SOFTMAX[0] * SOFTMAX[1], 0),
    "layer_norm": (8.0 * LAYER_NORM[0] * LAYER_NORM[1], 0), "black_scholes": (8.0 * OPTIONS, 0),
    "sum": (4.0 * SUMMED, 0),
    **{f"matmul_{name}{kind}": (0, 2.0 * size**3) for name, size in SIZES.items() for kind in ("", "_tf32", "_bf16")},
}


def rates(rows: dict[str, dict[str, dict[str, float | None]]]) -> str:
    """What the times in a table of results mean: bytes by the second, and as a share of the quickest copy; operations
    by the second."""
    lines = []
    copies = [entry["seconds"] for entry in rows.get("copy", {}).values() if entry["seconds"]]
    for case, row in rows.items():
        moved, flops = WORK_OF.get(case, (0.0, 0.0))
        for peer, entry in row.items():
            seconds = entry["seconds"]
            if not seconds or not (moved or flops):
                continue
            if flops:
                lines.append(f"{case}, {peer}: {flops / seconds / 1e12:.3g} TFLOP/s")
            else:
                share = f", {moved / seconds / (WORK_OF['copy'][0] / min(copies)):.2f} of copying" if copies else ""
                lines.append(f"{case}, {peer}: {moved / seconds / 1e9:.4g} GB/s{share}")
    return "\n".join(lines)


def many(seed: int, *shape: int) -> np.ndarray:
    """Normal numbers, of which a million are drawn and repeated."""
    return np.resize(compiled.normal(seed, min(1_000_003, int(np.prod(shape)))), shape)


def prices() -> np.ndarray:
    """Prices of shares."""
    return np.resize(compiled.prices(), OPTIONS)


def black_scholes(log: Any, erf: Any, s: Any) -> Any:
    """What options at such prices of shares are worth."""
    spread = VOLATILITY * TIME**0.5
    d1 = (log(s / STRIKE) + (INTEREST + 0.5 * VOLATILITY**2) * TIME) / spread
    first, second = (0.5 * (1.0 + erf(d * 0.7071067811865476)) for d in (d1, d1 - spread))
    return s * first - STRIKE * float(np.exp(-INTEREST * TIME)) * second


def mlp() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """As `eager.mlp_data`."""
    x, y, (w1, b1, w2, b2) = mlp_data()
    return (x[:4, :9], y[:4], [w1[:9, :8], b1[:8], w2[:8], b2]) if SMALL else (x, y, [w1, b1, w2, b2])


def weights() -> list[np.ndarray]:
    """A matrix, and others that keep the size of what they multiply."""
    return [compiled.normal(n, WIDTH, WIDTH) * np.float32(1 if n == 0 else WIDTH**-0.5) for n in range(STEPS + 1)]


class Cases:
    """The cases that are one function of some arrays, as a peer writes the functions.

    A peer has `_case(fn, *arrays)`, and `_product(kind, *arrays)`, where it has such products.
    """

    def copy(self) -> Built:
        return self._case(lambda x: -x, many(1, ELEMENTS))

    def gelu(self) -> Built:
        return self._case(self._gelu, many(1, ELEMENTS))

    def softmax(self) -> Built:
        return self._case(self._softmax, many(1, *SOFTMAX))

    def layer_norm(self) -> Built:
        return self._case(self._layer_norm, many(1, *LAYER_NORM))

    def black_scholes(self) -> Built:
        return self._case(self._black_scholes, prices())

    def sum(self) -> Built:
        return self._case(lambda x: x.sum(), many(1, SUMMED))

    def call_10(self) -> Built:
        return self._case(lambda a, b: a * b + a, small(1), small(2))

    def small_steps(self) -> Built:
        def steps(x: Any, *others: Any) -> Any:
            for w in others:
                x = x @ w
            return x
        return self._case(steps, *weights())


def _product_case(size: int, kind: str) -> Any:
    def case(self: Any) -> Built:
        return self._product(kind, many(1, size, size), many(2, size, size))
    return case


for _name, _size in SIZES.items():
    for _kind in ("", "_tf32", "_bf16"):
        setattr(Cases, f"matmul_{_name}{_kind}", _product_case(_size, _kind.strip("_")))


class Torch(Cases, training.Torch):
    """PyTorch op by op."""

    def __init__(self) -> None:
        super().__init__()
        torch = self.torch
        if not torch.cuda.is_available():
            raise ImportError("PyTorch finds no GPU")
        torch.set_default_device("cuda")
        torch.backends.cudnn.allow_tf32 = False

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return value.detach().float().cpu().numpy()

    def _compiled(self, fn: Any) -> Any:
        return fn

    def _waited(self, built: Built) -> Built:
        statement, names, check = built
        return f"{statement}; wait()", {**names, "wait": self.torch.cuda.synchronize}, check

    def _case(self, fn: Any, *arrays: np.ndarray) -> Built:
        self.torch.backends.cuda.matmul.allow_tf32 = False
        names = {f"x{n}": self.torch.as_tensor(a, device="cuda") for n, a in enumerate(arrays)}
        call = f"f({', '.join(names)})"
        return self._waited((call, {"f": self._compiled(fn), **names}, call))

    def _product(self, kind: str, *arrays: np.ndarray) -> Built:
        statement, names, check = self._case(self.torch.matmul, *arrays)
        names["f"] = self.torch.matmul  # also of compiled functions: a kernel of a library's in any case
        if kind == "bf16":
            names |= {name: x.bfloat16() for name, x in names.items() if name.startswith("x")}
        self.torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        return statement, names, check

    def _descent(self, data: Any, loss_of: Any) -> Built:
        self.torch.backends.cuda.matmul.allow_tf32 = False
        return self._waited(super()._descent(data, self._compiled(loss_of)))

    def mlp_step(self) -> Built:
        functional = self.torch.nn.functional
        x, y, start = mlp()

        def loss_of(x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
            return functional.cross_entropy(functional.relu(x @ w1 + b1) @ w2 + b2, y)
        return self._descent((self.torch.tensor(x), self.torch.tensor(y).long(), start), loss_of)

    def _gelu(self, x: Any) -> Any:
        return self.torch.nn.functional.gelu(x, approximate="tanh")

    def _softmax(self, x: Any) -> Any:
        return self.torch.softmax(x, -1)

    def _layer_norm(self, x: Any) -> Any:
        return self.torch.nn.functional.layer_norm(x, x.shape[-1:])

    def _black_scholes(self, s: Any) -> Any:
        return black_scholes(self.torch.log, self.torch.erf, s)


class TorchCompiled(Torch):
    """PyTorch by `torch.compile`, whose kernels are launched by the driver's graphs."""

    def _compiled(self, fn: Any) -> Any:
        return self.torch.compile(fn, mode="reduce-overhead")


class Jax(Cases, training.Jax):
    """JAX, jitted."""

    def __init__(self) -> None:
        super().__init__()
        if self.jax.default_backend() == "cpu":
            raise ImportError("JAX finds no GPU")
        self.jax.config.update("jax_default_matmul_precision", "highest")

    def _case(self, fn: Any, *arrays: np.ndarray) -> Built:
        names = {f"x{n}": self.jax.numpy.asarray(a) for n, a in enumerate(arrays)}
        call = f"f({', '.join(names)})"
        return f"{call}.block_until_ready()", {"f": self.jax.jit(fn), **names}, call

    def _product(self, kind: str, *arrays: np.ndarray) -> Built:
        jnp = self.jax.numpy
        precision = {"": "highest", "tf32": "tensorfloat32", "bf16": None}[kind]
        statement, names, check = self._case(lambda a, b: jnp.matmul(a, b, precision=precision), *arrays)
        if kind == "bf16":
            names |= {name: x.astype(jnp.bfloat16) for name, x in names.items() if name.startswith("x")}
        return statement, names, check

    def mlp_step(self) -> Built:
        jax, jnp = self.jax, self.jax.numpy

        def loss_of(x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
            logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
            return -jax.nn.log_softmax(logits)[jnp.arange(len(x)), y].mean()
        return self._descent(mlp(), loss_of)

    def _gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=True)

    def _softmax(self, x: Any) -> Any:
        return self.jax.nn.softmax(x)

    def _layer_norm(self, x: Any) -> Any:
        d = x - x.mean(-1, keepdims=True)
        return d * self.jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5)

    def _black_scholes(self, s: Any) -> Any:
        return black_scholes(self.jax.numpy.log, self.jax.scipy.special.erf, s)


class CuPy(Cases):
    """CuPy: GELU fused, all else op by op."""

    def __init__(self) -> None:
        import cupy
        import cupyx.scipy.special

        try:
            cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError:
            raise ImportError("CuPy finds no GPU") from None
        self.cupy, self.special, self.version = cupy, cupyx.scipy.special, cupy.__version__

    def to_numpy(self, value: Any) -> np.ndarray:
        return self.cupy.asnumpy(value)

    def _case(self, fn: Any, *arrays: np.ndarray) -> Built:
        names = {f"x{n}": self.cupy.asarray(a) for n, a in enumerate(arrays)}
        call, wait = f"f({', '.join(names)})", self.cupy.cuda.get_current_stream().synchronize
        return f"{call}; wait()", {"f": fn, "wait": wait, **names}, call

    def _product(self, kind: str, *arrays: np.ndarray) -> Built:
        return self._case(self.cupy.matmul, *arrays)

    def gelu(self) -> Built:
        cupy = self.cupy
        return self._case(cupy.fuse(lambda x: 0.5 * x * (1 + cupy.tanh(
            0.7978845608028654 * (x + 0.044715 * x * x * x)))), many(1, ELEMENTS))

    def _softmax(self, x: Any) -> Any:
        return self.special.softmax(x, axis=-1)

    def _layer_norm(self, x: Any) -> Any:
        d = x - x.mean(-1, keepdims=True)
        return d / self.cupy.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)

    def _black_scholes(self, s: Any) -> Any:
        return black_scholes(self.cupy.log, self.special.erf, s)


for _name in SIZES:  # float32 alone
    for _kind in ("_tf32", "_bf16"):
        setattr(CuPy, f"matmul_{_name}{_kind}", None)


class Twofold(Cases, training.Twofold):
    """This library, in compiled functions."""

    def __init__(self) -> None:
        super().__init__()
        tf = self.tf
        if not tf.config.list_physical_devices("GPU"):
            raise ImportError("there is no GPU")
        from twofold.runtime import cuda_device

        name = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])["device_name"]
        self.version, self.wait = f"{self.version} on {name}", lambda: cuda_device.gpu(0).wait()

    def _waited(self, built: Built) -> Built:
        statement, names, check = built
        return f"{statement}; wait()", {**names, "wait": self.wait}, check

    def _case(self, fn: Any, *arrays: np.ndarray) -> Built:
        self.tf.config.experimental.enable_tensor_float_32_execution(False)
        names = {f"x{n}": self.tf.constant(a).gpu() for n, a in enumerate(arrays)}
        call = f"f({', '.join(names)})"
        return self._waited((call, {"f": self.tf.function(fn), **names}, call))

    def _product(self, kind: str, *arrays: np.ndarray) -> Built:
        tf = self.tf
        statement, names, check = self._case(tf.matmul, *arrays)
        if kind == "bf16":
            names |= {name: tf.cast(x, tf.bfloat16) for name, x in names.items() if name.startswith("x")}
        tf.config.experimental.enable_tensor_float_32_execution(kind != "")
        return statement, names, check

    def _descent(self, data: Any, loss_of: Any, compiled: bool = True) -> Built:
        self.tf.config.experimental.enable_tensor_float_32_execution(False)
        with self.tf.device("/gpu:0"):
            return self._waited(super()._descent(data, loss_of, compiled))

    def mlp_step(self) -> Built:
        tf = self.tf

        def loss_of(x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
            logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        return self._descent(mlp(), loss_of)

    def transformer_step(self) -> Built:
        with self.tf.device("/gpu:0"):  # its mask is a constant
            return super().transformer_step()

    @staticmethod
    def to_numpy(value: Any) -> np.ndarray:
        return value.numpy().astype(np.float32)

    def _gelu(self, x: Any) -> Any:
        return self.tf.nn.gelu(x, approximate=True)

    def _softmax(self, x: Any) -> Any:
        return self.tf.nn.softmax(x)

    def _layer_norm(self, x: Any) -> Any:
        d = x - self.tf.reduce_mean(x, -1, keepdims=True)
        return d * self.tf.math.rsqrt(self.tf.reduce_mean(d * d, -1, keepdims=True) + 1e-5)

    def sum(self) -> Built:
        return self._case(self.tf.reduce_sum, many(1, SUMMED))

    def _black_scholes(self, s: Any) -> Any:
        return black_scholes(self.tf.math.log, self.tf.math.erf, s)


PEERS = {"torch": Torch, "compiled": TorchCompiled, "jax": Jax, "cupy": CuPy, "twofold": Twofold}
