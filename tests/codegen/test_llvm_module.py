"""Optimising and emitting modules, from several threads too."""

import os
import platform
import threading

import llvmlite.binding as llvm
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


def compiled(number, quick=False):
    """The object file of a function of its own."""
    text = SAXPY.format(name=f"scale_{number}", scale=f"{number}.0")
    return llvm_module.object_code(llvm_module.optimise(text), quick=quick)


def test_threads_make_the_code_that_one_makes():
    alone = [compiled(n, quick=n % 2 == 0) for n in range(6)]
    assert len(set(alone)) == 6
    objects = {}

    def work(numbers):
        for n in numbers:
            objects[n] = compiled(n, quick=n % 2 == 0)

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


def test_quick_code_is_asked_for_each_time():
    plain, quick = compiled(3), compiled(3, quick=True)
    assert [compiled(3, quick=n % 2 == 1) for n in range(4)] == [plain, quick] * 2
    if platform.machine() in ("x86_64", "AMD64") and llvm.llvm_version_info[0] <= llvm_module._TRIED:
        assert plain != quick


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("before", [False, True])
def test_a_process_begun_while_others_emit_emits_for_itself(before):
    expected = [compiled(5), compiled(5, quick=True)]
    ready, done = threading.Event(), threading.Event()

    def emits():
        with llvm_module._emission.turn(before):
            ready.set()
            done.wait(60)

    other = threading.Thread(target=emits)
    other.start()
    ready.wait(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = int([compiled(5), compiled(5, quick=True)] != expected)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    other.join()
