"""The table's checks catch what they are there for: each is shown a fault planted in an op made for the purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from ops import check
from ops.case import Case

import twofold as tf
from twofold.ir import dtypes as dt
from twofold.ir import ops, rules
from twofold.ir.op import REGISTRY, Op, primitive
from twofold.ir.spec import spec

Plant = Callable[..., Op]


@pytest.fixture
def plant() -> Iterator[Plant]:
    """`plant(body=..., vjp=...)`: an elementwise op of one operand that computes `x * x` unless told otherwise."""
    def make(**parts: Any) -> Op:
        def planted(x):
            """An op with a fault."""
        given: dict[str, Any] = {"infer": rules.unary(dt.REAL), "saves": ("x",), "body": lambda s, x: s.mul(x, x),
                                 "vjp": lambda ct, out, x: ops.multiply(ct, ops.multiply(x, 2.0)), **parts}
        return primitive(**given)(planted)
    yield make
    REGISTRY.pop("planted", None)


def case(op: Op, **fields: Any) -> Case:
    return Case("planted", op, **{"shapes": [(2, 3)], "oracle": np.square, "dtypes": dt.FLOATING, **fields})


def test_what_is_right_passes(plant: Plant) -> None:
    right = case(plant(), special=[0.0, -0.0, np.inf, np.nan])
    for dtype in right.dtypes:
        assert check.values(right, dtype, right.shapes[0]).seen == {"planted"}
        check.specials(right, dtype)
        check.gradient_exists(right, dtype)
    check.ranks(right)
    check.layouts(right)
    check.gradient(right, dt.float64, right.shapes[0])
    check.second(right, dt.float64)


def test_a_wrong_value_is_caught(plant: Plant) -> None:
    wrong = case(plant(body=lambda s, x: s.mul(x, s.add(x, s.const(1e-6, x.dtype)))))
    with pytest.raises(AssertionError, match=r"values are wrong(.|\n)*ulps off"):
        check.values(wrong, dt.float32, wrong.shapes[0])


def test_one_ulp_is_caught(plant: Plant) -> None:
    def body(s: Any, x: Any) -> Any:
        return s.mul(s.mul(x, x), s.const(1 + 2**-23, dt.float32))
    wrong = case(plant(body=body), domain=(1, 2))
    with pytest.raises(AssertionError, match="1 ulps off"):
        check.values(wrong, dt.float32, wrong.shapes[0])
    check.values(case(wrong.fn, domain=(1, 2), ulps=2), dt.float32, wrong.shapes[0])


def test_a_wrong_shape_rule_is_caught(plant: Plant) -> None:
    flat = plant(infer=lambda op, x: spec((*x.dims, 1), x.dtype), body=None, view=lambda x: x)
    with pytest.raises(AssertionError, match="shape rule says"):
        check.values(case(flat, oracle=lambda x: x), dt.float32, [(2, 3)])


def test_a_wrong_dtype_is_caught(plant: Plant) -> None:
    wrong = case(plant(infer=rules.unary(dt.REAL, dt.float64), body=lambda s, x: s.cast(s.mul(x, x), dt.float64)))
    with pytest.raises(AssertionError, match="float64; expected float32"):
        check.values(wrong, dt.float32, wrong.shapes[0])


def test_a_wrong_special_value_is_caught(plant: Plant) -> None:
    wrong = case(plant(body=lambda s, x: s.abs(x)), oracle=lambda x: np.where(x == 0, x, np.abs(x)), special=[-0.0])
    with pytest.raises(AssertionError, match="values are wrong"):
        check.specials(wrong, dt.float32)


def test_a_layout_that_changes_values_is_caught() -> None:
    def by_memory(x: Any) -> Any:
        return tf.constant(np.ravel(x._array, order="K").reshape(x._array.shape))
    with pytest.raises(AssertionError, match="transposed differs"):
        check.layouts(Case("add", by_memory, shapes=[(2, 3)], oracle=lambda x: x, elementwise=False))


@pytest.mark.parametrize("vjp", [
    lambda ct, out, x: ops.multiply(ct, ops.multiply(x, 2.0001)),
    lambda ct, out, x: ops.multiply(x, 2.0),
    lambda ct, out, x: None,
], ids=["a factor", "without the cotangent", "none"])
def test_a_wrong_gradient_is_caught(plant: Plant, vjp: Any) -> None:
    wrong = case(plant(vjp=vjp))
    for shape in ((2, 3), (9, 9)):  # every element, and random directions
        with pytest.raises(AssertionError, match="finite differences"):
            check.gradient(wrong, dt.float64, [shape])


def test_a_gradient_of_the_wrong_operand_is_caught(plant: Plant) -> None:
    square = plant()
    wrong = Case("planted", lambda x, y: ops.add(square(x), y), shapes=[(3,), (3,)], oracle=None, grad=(0,))
    with pytest.raises(AssertionError, match="operand 1 is not marked"):
        check.gradient(wrong, dt.float64, wrong.shapes[0])


def test_a_wrong_second_derivative_is_caught(plant: Plant) -> None:
    def constant(x: Any) -> Any:
        return tf.constant(2.0 * x.numpy())
    wrong = case(plant(vjp=lambda ct, out, x: ops.multiply(ct, constant(x))))
    check.gradient(wrong, dt.float64, wrong.shapes[0])
    with pytest.raises(AssertionError, match="second derivative by operand 0"):
        check.second(wrong, dt.float64)


def test_a_second_derivative_that_forgets_the_cotangent_is_caught(plant: Plant) -> None:
    wrong = case(plant(vjp=lambda ct, out, x: ops.multiply(tf.constant(ct.numpy()), ops.multiply(x, 2.0))))
    check.gradient(wrong, dt.float64, wrong.shapes[0])
    with pytest.raises(AssertionError, match="second derivative by operand 1"):
        check.second(wrong, dt.float64)


def test_a_gradient_that_is_not_finite_is_caught(plant: Plant) -> None:
    wrong = case(plant(vjp=lambda ct, out, x: ops.divide(ct, ops.subtract(x, x))))
    with pytest.raises(AssertionError, match="the gradient is"):
        check.gradient_exists(wrong, dt.float32)


def test_a_wrong_complex_gradient_is_caught() -> None:
    """The gradient of a holomorphic f is ct * conj(f'): without conj it is right for real numbers alone."""
    @tf.custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda ct: ct * (x + x)
    wrong = Case("multiply", square, shapes=[(3,)], oracle=np.square, dtypes=dt.DIFFERENTIABLE)
    check.gradient(wrong, dt.float64, wrong.shapes[0])
    with pytest.raises(AssertionError, match="gradient by operand 0"):
        check.gradient(wrong, dt.complex128, wrong.shapes[0])
    right = Case("multiply", lambda x: x * x, shapes=[(3,)], oracle=np.square, dtypes=dt.DIFFERENTIABLE)
    check.gradient(right, dt.complex128, right.shapes[0])
    check.second(right, dt.complex128)
