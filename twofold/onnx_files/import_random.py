"""ONNX's ops that draw numbers. The numbers are those of `tf.random`: a seed gives the same ones in every run, but not
those of other programs."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .import_table import Call, op
from .import_tensors import dtype_of as dtype_of_number
from .import_values import Value, dims_of, dtype_of

__all__: list[str] = []


def _seed(call: Call) -> int | None:
    seed = call.attr("seed")
    return None if seed is None else int(abs(seed)) % (1 << 31)


def _dtype(call: Call, default: Any) -> Any:
    number = call.attr("dtype")
    return default if number is None else dtype_of_number(number, "the result")


def _normal(call: Call, shape: Any, dtype: Any) -> Any:
    return tf.random.normal(shape, call.attr("mean", 0.0), call.attr("scale", 1.0), dtype, seed=_seed(call))


def _uniform(call: Call, shape: Any, dtype: Any) -> Any:
    return tf.random.uniform(shape, call.attr("low", 0.0), call.attr("high", 1.0), dtype, seed=_seed(call))


def _draws(name: str, draw: Any) -> None:
    @op(name, folds=False)
    def plain(call: Call) -> Any:
        return draw(call, call.need("shape"), _dtype(call, tf.float32))

    @op(f"{name}Like", folds=False, layout=True)
    def like(call: Call, x: Value) -> Any:
        return draw(call, dims_of(x), _dtype(call, dtype_of(x)))


_draws("RandomNormal", _normal)
_draws("RandomUniform", _uniform)


@op("Bernoulli", folds=False)
def _bernoulli(call: Call, x: Any) -> Any:
    drawn = tf.random.uniform(x.dims, dtype=x.dtype, seed=_seed(call))
    return tf.cast(drawn < x, _dtype(call, x.dtype))


@op("Multinomial", folds=False)
def _multinomial(call: Call, x: Any) -> Any:
    drawn = tf.random.categorical(x, call.attr("sample_size", 1), dtype=tf.int64, seed=_seed(call))
    return tf.cast(drawn, _dtype(call, tf.int32))
