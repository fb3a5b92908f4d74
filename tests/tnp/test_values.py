"""Values are NumPy's in float64, op by op and compiled, and gradients those of differences."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from gradients import differences
from tnp.cases import calls, operands, run

import twofold as tf

tnp = tf.experimental.numpy
FRACTIONS = operands("float64", fractions=True)
WHOLE = operands("int64")
#: of which NumPy says less than TensorFlow, or otherwise
SKIPPED = ("empty_like", "np.shape", "np.size", "np.ndim", "np.reciprocal(a)", "isscalar", "nonzero", "np.where(a)",
           "atleast_1d(s)", "np.ix_", "realobj", "complexobj")
WHOLE_ONLY = ("bitwise", "gcd", "lcm")


def chunks(values: list[str], size: int) -> list[list[str]]:
    """Calls in parts, of which each is one function."""
    return [values[n:n + size] for n in range(0, len(values), size)]


def names_for(call: str) -> dict[str, Any]:
    """The operands of a call."""
    return WHOLE if any(name in call for name in WHOLE_ONLY) else FRACTIONS


def flat(result: Any) -> list[Any]:
    """Results as arrays."""
    if isinstance(result, (list, tuple)):
        return [array for item in result for array in flat(item)]
    return [np.asarray(result)]


COMPARED = [call for call in dict.fromkeys(calls()) if not any(name in call for name in SKIPPED)]


@pytest.mark.parametrize("number", range(len(chunks(COMPARED, 60))))
def test_values_are_numpys_in_both_modes(number):
    part = chunks(COMPARED, 60)[number]
    tensors = [{k: tf.constant(v) for k, v in names.items()} for names in (FRACTIONS, WHOLE)]

    def compute(fractions: dict[str, Any], whole: dict[str, Any]) -> list[Any]:
        return [run(call, {"np": tnp, **(whole if names_for(call) is WHOLE else fractions)}) for call in part]

    eager, fast = compute(*tensors), tf.function(compute, autograph=False)(*tensors)
    for call, once, compiled in zip(part, eager, fast, strict=True):
        expected = flat(run(call, {"np": np, **names_for(call)}))
        for actual, same, wanted in zip(flat(once), flat(compiled), expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=2e-14, atol=1e-14, err_msg=call)
            assert actual.tobytes() == same.tobytes(), call


#: whose gradient is 0, or steps at the operands
FLAT = ["ceil", "fix", "floor", "round", "around", "sign", "heaviside", "divmod", "mod", "remainder", "floor_divide",
        "nextafter"]


def is_smooth(call: str) -> bool:
    """Whether differences tell the gradient of a call: its results are floating, and do not step."""
    if "float32" in call or any(f"np.{name}(" in call for name in FLAT) or names_for(call) is WHOLE:
        return False
    return all(array.dtype == np.float64 for array in flat(run(call, {"np": np, **FRACTIONS})))


SMOOTH = [call for call in COMPARED if is_smooth(call)]
#: equal operands are where these have no derivative
TIES = ["maximum", "minimum", "clip", "select"]


def gradient_operands(call: str) -> dict[str, np.ndarray]:
    """The operands of a call, without ties where these matter."""
    apart = any(name in call for name in TIES)
    return {**FRACTIONS, "a": FRACTIONS["a"] + 0.5} if apart else FRACTIONS


def total(results: Any, module: Any) -> Any:
    """A number made of all elements of results."""
    parts = results if isinstance(results, (list, tuple)) else [results]
    return sum(module.sum(part * np.cos(np.arange(np.prod(part.shape))).reshape(part.shape)) for part in parts)


def wrong_gradients(call: str) -> list[str]:
    """Of which operands the gradient of a call is not that of differences."""
    arrays = gradient_operands(call)
    names = [name for name in arrays if re.search(rf"\b{name}\b", call)]
    tensors = {name: tf.constant(value) for name, value in arrays.items()}
    with tf.GradientTape() as tape:
        tape.watch(list(tensors.values()))
        value = total(run(call, {"np": tnp, **tensors}), tnp)
    actual = tape.gradient(value, [tensors[name] for name in names], unconnected_gradients="zero")
    expected = differences(lambda at: float(total(
        run(call, {"np": np, **arrays, **dict(zip(names, at, strict=True))}), np)), [arrays[name] for name in names])
    return [f"{call} by {name}: {got.numpy().tolist()}, expected {wanted.tolist()}"
            for name, got, wanted in zip(names, actual, expected, strict=True)
            if not np.allclose(got.numpy(), wanted, rtol=1e-6, atol=1e-6)]


def test_gradients_are_those_of_differences():
    wrong = [text for call in SMOOTH for text in wrong_gradients(call)]
    assert wrong == [], "\n".join(wrong)
    assert len(SMOOTH) > 120


def test_axes_out_of_range_are_numpys_errors_and_tell():
    with pytest.raises(np.exceptions.AxisError, match=r"^hsplit: axis 1 is out of bounds .*\n.*At "):
        tnp.hsplit(1, 2)


def test_differences_end_where_no_elements_are_left():
    assert tnp.diff([[1, 2, 4]], 2**40).shape == (1, 0)
