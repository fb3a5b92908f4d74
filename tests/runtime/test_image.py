"""Object files linked and mapped by ourselves: right, given back, and never a crash for a damaged file."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest

from twofold.codegen import llvm_module
from twofold.ir.errors import InternalError
from twofold.runtime.image import Image

CODE = """
@table = internal constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
declare double @fmod(double, double)
declare ptr @memcpy(ptr, ptr, i64)
define i64 @pick(i64 %n) {
  %at = getelementptr [4 x i64], ptr @table, i64 0, i64 %n
  %x = load i64, ptr %at
  ret i64 %x
}
define double @rest(double %x) {
  %a = call double @fmod(double %x, double 3.5)
  %b = fadd double %a, 0.125
  ret double %b
}
define i64 @copied(i64 %n) {
  %from = alloca i64
  %to = alloca i64
  store i64 %n, ptr %from
  call ptr @memcpy(ptr %to, ptr %from, i64 8)
  %y = load volatile i64, ptr %to
  %z = call i64 @pick(i64 1)
  %s = add i64 %y, %z
  ret i64 %s
}
"""


@pytest.fixture(scope="module")
def data() -> bytes:
    return llvm_module.object_code(llvm_module.optimise(CODE))


def functions(image: Image):
    i64, f64 = ctypes.c_int64, ctypes.c_double
    kinds = {"pick": (i64, i64), "rest": (f64, f64), "copied": (i64, i64)}
    return {name: ctypes.CFUNCTYPE(*kind)(image.address(name)) for name, kind in kinds.items()}


def test_functions_constants_and_functions_of_others(data):
    image = Image([data], ["pick", "rest", "copied"])
    f = functions(image)
    assert [f["pick"](n) for n in range(4)] == [10, 20, 30, 40]
    assert f["rest"](10.0) == np.fmod(10.0, 3.5) + 0.125
    assert f["copied"](5) == 25


def test_the_way_by_llvm_gives_the_same(data, monkeypatch):
    monkeypatch.setattr("twofold.runtime.system.fills_code_pages", lambda: False)
    image = Image([data], ["pick", "rest", "copied"])
    f = functions(image)
    assert [f["pick"](3), f["rest"](10.0), f["copied"](5)] == [40, np.fmod(10.0, 3.5) + 0.125, 25]


CALLER = """
@mine = internal constant i64 7
@functions = internal constant [2 x ptr] [ptr @pick, ptr @own]
declare i64 @pick(i64)
define internal i64 @own(i64 %n) {
  %x = load volatile i64, ptr @mine
  %y = add i64 %x, %n
  ret i64 %y
}
define i64 @both(i64 %n) {
  %at = getelementptr [2 x ptr], ptr @functions, i64 0, i64 %n
  %f = load volatile ptr, ptr %at
  %x = call i64 %f(i64 2)
  %y = call i64 @pick(i64 1)
  %z = add i64 %x, %y
  ret i64 %z
}
"""


@pytest.mark.parametrize("by_llvm", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_files_call_each_other(data, by_llvm, order, monkeypatch):
    if by_llvm:
        monkeypatch.setattr("twofold.runtime.system.fills_code_pages", lambda: False)
    caller = llvm_module.object_code(llvm_module.optimise(CALLER))
    image = Image([data, caller][::order], ["both", "pick", "rest", "copied"])
    both = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(image.address("both"))
    assert [both(0), both(1)] == [30 + 20, 9 + 20]
    assert functions(image)["copied"](5) == 25
    with pytest.raises(InternalError, match="pick"):
        Image([caller], ["both"])


def test_what_is_missing_is_told(data):
    image = Image([data], ["pick"])
    with pytest.raises(InternalError, match="lacks other"):
        image.address("other")
    text = "declare i64 @no_such_function(i64)\ndefine i64 @f(i64 %x) {\n %y = call i64 @no_such_function(i64 %x)\n" \
           " ret i64 %y\n}"
    with pytest.raises(InternalError, match="no_such_function"):
        Image([llvm_module.object_code(llvm_module.optimise(text))], ["f"])


def test_a_file_cut_off_anywhere_is_an_error(data):
    for end in range(6, len(data), 7):
        try:
            image = Image([data[:end]], ["pick"])
        except InternalError:
            continue
        assert picks(image)  # nothing that matters was cut off


def picks(image: Image) -> bool:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(image.address("pick"))(2) == 30


def test_memory_is_given_back(data):
    def mapped() -> int:
        with open("/proc/self/maps") as file:
            return len(file.readlines())

    held = [Image([data], ["pick"]) for _ in range(20)]
    many = mapped()
    ref = weakref.ref(held[0])
    held.clear()
    gc.collect()
    assert ref() is None and mapped() <= many
    for _ in range(2000):
        Image([data], ["pick"])
    assert mapped() <= many
