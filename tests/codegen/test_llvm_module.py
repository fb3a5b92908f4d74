"""Optimising and emitting modules, from several threads too."""

import threading

import pytest

from twofold.codegen import llvm_module

SAXPY = """
define i64 @{name}(i64 %n, ptr noalias %out, ptr noalias %x) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr float, ptr %x, i64 %i
  %value = load float, ptr %at
  %scaled = fmul float %value, {scale}
  %to = getelementptr float, ptr %out, i64 %i
  store float %scaled, ptr %to
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 0
}}
"""


def compiled(number):
    """The object file of a function of its own."""
    text = SAXPY.format(name=f"scale_{number}", scale=f"{number}.0")
    return llvm_module.object_code(llvm_module.optimise(text))


def test_threads_make_the_code_that_one_makes():
    alone = [compiled(n) for n in range(6)]
    assert len(set(alone)) == 6
    objects = {}

    def work(numbers):
        for n in numbers:
            objects[n] = compiled(n)

    threads = [threading.Thread(target=work, args=(range(first, 6, 3),)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [objects[n] for n in range(6)] == alone


def test_what_is_not_llvm_is_an_error():
    with pytest.raises(RuntimeError, match="expected top-level entity"):
        llvm_module.optimise("no module")
    compiled(1)  # and leaves nothing behind that others trip over
