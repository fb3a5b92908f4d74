"""Object code that calls what the process lacks is refused with an error, before it can crash anything."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest

from twofold.ir import dtypes as dt
from twofold.ir.errors import InternalError
from twofold.runtime import kernels, launch, machine, objects


def image(text: str) -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine().emit_object(llvm.parse_assembly(text))


CALLS = """
declare double @{0}(double)
define double @f(double %x) {{
  %y = call double @{0}(double %x)
  ret double %y
}}
"""

pytestmark = pytest.mark.skipif(not image(CALLS.format("g")).startswith(b"\x7fELF"), reason="only ELF is read")


def test_undefined_symbols_are_found() -> None:
    assert objects.undefined(image(CALLS.format("elsewhere"))) == ["elsewhere"]
    assert objects.undefined(image("define void @f() { ret void }")) == []
    assert objects.undefined(b"not an object file") == []


def test_a_missing_function_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(InternalError, match="cannot be linked: it calls twofold_has_no_such_function"):
        kernels.load(["f"], image(CALLS.format("twofold_has_no_such_function")))
    with pytest.raises(InternalError, match="twofold_has_no_such_function"):
        machine._link(image(CALLS.format("twofold_has_no_such_function")), {"f": 0})


def test_functions_of_the_mathematics_library_are_found() -> None:
    objects.require([image(CALLS.format("lgamma"))], "this")


@pytest.mark.parametrize("size", [10, 63, 200])
def test_cut_off_object_code_is_an_error(size: int) -> None:
    with pytest.raises(InternalError, match="damaged object code"):
        objects.undefined(image(CALLS.format("g"))[:size])


def test_a_float64_with_a_sign_put_on_narrows_to_float16() -> None:
    def body(s, x):
        wide = s.cast(x, dt.float64)
        return s.cast(s.copysign(s.mul(wide, wide), s.sub(wide, 1.5)), dt.float32)

    square = launch.MapFamily("signed square", body, (dt.float16,), (dt.float16,))
    x = np.array([0, -0.0, 1, 2, -3, 300, np.inf, -np.inf, 6e-5] * 5, np.float16)
    want = np.copysign(x.astype(np.float64)**2, x.astype(np.float64) - 1.5).astype(np.float32)
    with np.errstate(over="ignore"):
        assert (square((x,), x.shape)[0].view(np.int16) == want.astype(np.float16).view(np.int16)).all()


def test_code_with_relocations_is_not_moved() -> None:
    """Code that calls a function by its name depends on where it lies."""
    assert machine._free_of_places(image(CALLS.format("g"))) is None
    moved = machine._free_of_places(image("define i64 @f() {\n  ret i64 7\n}"))
    assert moved is not None and moved[0] and moved[1]["f"] == 0
    assert machine._free_of_places(b"no object file") is None
