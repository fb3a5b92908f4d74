"""Threads of the machine that runs PTX: how they part and meet, what they share, and what is found to be wrong.

Every kernel here writes one word for each thread, into `out`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu.ptx_machine import Checks, Memory, PtxError, load

OPENING = """.version 6.3
.target sm_75
.address_size 64
{module}
.visible .entry kernel(.param .u64 .ptr .global .align 4 out, .param .u32 given) {directives}
{{
    .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>; .reg .b64 %d<20>;
    {own}
    ld.param.b64 %d1, [out];
    ld.param.b32 %r9, [given];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.s32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %d2, %r4, 4;
    add.s64 %d2, %d1, %d2;
    mov.b32 %r0, 0;
"""
CLOSING = """
$end:
    st.global.b32 [%d2], %r0;
    ret;
}
"""
SHARED = ".shared .align 16 .b8 words[128];"
AT = "shl.b32 %r5, %r1, 2; mov.b32 %r6, words; add.s32 %r7, %r6, %r5;"  # the word of a thread


def run(body: str, grid: int = 1, block: int = 32, given: int = 0, own: str = "", module: str = "",
        directives: str = "", closing: str = CLOSING, **settings: Any) -> list[int]:
    """What a kernel writes."""
    memory = Memory()
    machine = load(OPENING.format(own=own, module=module, directives=directives) + body + closing, memory)
    out = memory.allocate(4 * grid * block, "out")
    machine.launch("kernel", (grid, 1, 1), (block, 1, 1), machine.packed("kernel", [out, given]), **settings)
    return memory.bytes(out, 4 * grid * block).view(np.int32).tolist()


def wrong(kind: str, body: str, text: str = "", **settings: Any) -> None:
    with pytest.raises(PtxError, match=text or None) as error:
        run(body, **settings)
    assert error.value.kind == kind, error.value


# -- what threads do ----------------------------------------------------------------------------------
def test_loops_of_different_length() -> None:
    body = """
$loop:
    setp.ge.u32 %p1, %r0, %r4;
    @%p1 bra $end;
    add.s32 %r0, %r0, 1;
    bra.uni $loop;
"""
    assert run(body, grid=2, block=40) == list(range(80))


def test_threads_that_return_early() -> None:
    body = """
    setp.lt.u32 %p1, %r4, 5;
    st.global.b32 [%d2], 7;
    @%p1 ret;
    and.b32 %r5, %r4, 1;
    setp.eq.b32 %p2, %r5, 0;
    @!%p2 bra $end;
    mov.b32 %r0, 2;
"""
    assert run(body, block=9) == [7] * 5 + [0, 2, 0, 2]


def test_branches_by_number_and_predicates() -> None:
    body = """
    and.b32 %r5, %r4, 3;
$table: .branchtargets $a, $b, $c, $a;
    brx.idx %r5, $table;
$c:
    mov.b32 %r0, 30;
    bra.uni $end;
$b:
    mov.b32 %r0, 20;
$a:
    setp.eq.b32 %p1|%p2, %r5, 3;
    @%p1 add.s32 %r0, %r0, 5;
    @%p2 add.s32 %r0, %r0, 100;
"""
    assert run(body, block=6) == [100, 120, 30, 5, 100, 120]


def test_registers_in_scopes_and_packed() -> None:
    body = """
    { .reg .b32 tmp; mov.b64 {tmp, %r5}, %d1; mov.b32 %r6, tmp; }
    { .reg .b16 tmp; mov.b32 {tmp, %h1}, %r5; }
    mov.b64 %d3, {%r6, %r5};
    sub.s64 %d4, %d3, %d1;
    cvt.u32.u64 %r0, %d4;
    mov.b32 {%h1, %h2}, 0x00020005;
    mov.b32 %r7, {%h2, %h1};
    add.s32 %r0, %r0, %r7;
"""
    assert run(body, block=2) == [0x00050002] * 2


def test_narrow_types_fill_their_registers() -> None:
    body = """
    cvt.s8.s32 %h1, 200;
    cvt.s32.s16 %r5, %h1;
    mov.b16 %h2, 0x01FF;
    cvt.s16.s8 %h3, %h2;
    cvt.s32.s16 %r6, %h3;
    st.global.b8 [%d2], %h1;
    ld.global.s8 %h4, [%d2];
    ld.global.b8 %h5, [%d2];
    cvt.s32.s16 %r7, %h4;
    cvt.s32.s16 %r8, %h5;
    mad.lo.s32 %r0, %r5, 1000, %r6;
    add.s32 %r0, %r0, %r7;
    add.s32 %r0, %r0, %r8;
"""
    assert run(body, block=1) == [-56 * 1000 - 1 - 56 + 200]


def test_shared_memory_and_barriers() -> None:
    body = AT + """
    st.shared.b32 [%r7], %r4;
    bar.sync 0;
    sub.s32 %r8, 124, %r5;
    add.s32 %r8, %r6, %r8;
    ld.shared.b32 %r0, [%r8];
"""
    assert run(body, grid=3, own=SHARED) == [32 * n + 31 - k for n in range(3) for k in range(32)]


def test_dynamic_shared_memory_lies_behind_the_rest() -> None:
    body = AT.replace("words", "more") + """
    st.shared.b32 [%r7], %r4;
    cvt.u64.u32 %d5, %r7;
    cvta.shared.u64 %d6, %d5;
    ld.b32 %r0, [%d6];
    mov.b32 %r10, words;
    sub.s32 %r10, %r6, %r10;
    mad.lo.s32 %r0, %r10, 1000, %r0;
"""
    module = ".extern .shared .align 16 .b8 more[];"
    assert run(body, own=SHARED, module=module, dynamic=128) == [128_000 + n for n in range(32)]
    wrong("illegal address", body, "4 bytes at 0xfc of 252 bytes of shared", own=SHARED, module=module, dynamic=124)


def test_local_memory_vectors_and_generic_addresses() -> None:
    own = ".local .align 16 .b8 depot[16]; .reg .b64 %SP; .reg .b64 %SPL;"
    body = """
    mov.b64 %SPL, depot;
    cvta.local.u64 %SP, %SPL;
    add.s32 %r5, %r4, 10;
    st.local.v4.b32 [%SPL], {%r4, %r5, %r4, 7};
    ld.v2.b32 {%r6, %r7}, [%SP+8];
    ld.local.b32 %r8, [%SPL+4];
    setp.lt.u32 %p1, %r4, 2;
    cvta.global.u64 %d5, %d2;
    selp.b64 %d6, %d5, %SP, %p1;
    st.b32 [%d6], 99;
    ld.b32 %r10, [%d6];
    isspacep.local %p2, %d6;
    selp.b32 %r11, 1000, 0, %p2;
    add.s32 %r0, %r6, %r7;
    add.s32 %r0, %r0, %r8;
    add.s32 %r0, %r0, %r10;
    add.s32 %r0, %r0, %r11;
"""
    assert run(body, block=4, own=own) == [n + 7 + n + 10 + 99 + 1000 * (n >= 2) for n in range(4)]


def test_variables_of_the_module() -> None:
    module = """.global .align 4 .u32 table[4] = {3, 5, 8, 13}; .const .align 8 .f64 half = 0d3FE0000000000000;
    .global .align 8 .b8 empty[8];"""
    body = """
    mov.b64 %d3, table;
    and.b32 %r5, %r4, 3;
    mul.wide.u32 %d4, %r5, 4;
    add.s64 %d4, %d3, %d4;
    ld.global.nc.b32 %r0, [%d4];
    ld.const.b64 %d5, [half];
    add.rn.f64 %d5, %d5, %d5;
    cvt.rzi.s32.f64 %r6, %d5;
    ld.global.b32 %r7, [empty+4];
    add.s32 %r0, %r0, %r6;
    add.s32 %r0, %r0, %r7;
"""
    assert run(body, block=6, module=module) == [4, 6, 9, 14, 4, 6]


def test_atomic_updates() -> None:
    module = ".global .align 8 .b8 sums[24];"
    body = """
    mov.b64 %d3, sums;
    red.relaxed.gpu.global.add.u32 [%d3], %r4;
    atom.global.inc.u32 %r5, [%d3+4], 1000;
    atom.global.max.s32 %r6, [%d3+8], %r4;
    atom.global.cas.b32 %r7, [%d3+12], 0, 5;
    atom.global.exch.b32 %r8, [%d3+16], %r4;
    setp.eq.b32 %p1, %r7, 0;
    selp.b32 %r0, 100, 0, %p1;
    bar.sync 0;
    ld.global.b32 %r10, [%d3];
    ld.global.b32 %r11, [%d3+8];
    add.s32 %r0, %r0, %r10;
    add.s32 %r0, %r0, %r11;
"""
    found = run(body, block=40, module=module)
    assert sorted(found) == [780 + 39] * 39 + [780 + 39 + 100]


def lanes(mode: str, by: int, clamp: str = "31") -> list[int]:
    body = f"""
    shfl.sync.{mode}.b32 %r5|%p1, %r1, {by}, {clamp}, -1;
    selp.b32 %r6, 0, 100, %p1;
    add.s32 %r0, %r5, %r6;
"""
    return run(body)


def test_shuffles() -> None:
    assert lanes("down", 5) == [n + 5 if n < 27 else n + 100 for n in range(32)]
    assert lanes("up", 3, "0") == [n - 3 if n >= 3 else n + 100 for n in range(32)]
    assert lanes("bfly", 6) == [n ^ 6 for n in range(32)]
    assert lanes("idx", 9) == [9] * 32
    assert lanes("down", 3, "0x181F") == [n + 3 if n % 8 < 5 else n + 100 for n in range(32)]  # segments of eight
    assert lanes("idx", 2, "0x181F") == [n // 8 * 8 + 2 for n in range(32)]


def test_tensor_cores() -> None:
    """A of ones and B of the numbers of its columns plus one: eight times that, and what was there before."""
    body = """
    shr.u32 %r5, %r1, 2;
    add.s32 %r5, %r5, 1;
    cvt.rn.f32.u32 %r6, %r5;
    mov.b32 %r7, 0f3F800000;
    mov.b32 %r8, 0f41200000;
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r10, %r11, %r12, %r13}, {%r7, %r7, %r7, %r7}, {%r6, %r6},
        {%r8, %r8, %r8, %r8};
    cvt.rzi.s32.f32 %r14, %r10;
    cvt.rzi.s32.f32 %r15, %r13;
    mad.lo.s32 %r0, %r15, 1000, %r14;
"""
    assert run(body) == [(10 + 8 * (2 * (n % 4) + 1)) + 1000 * (10 + 8 * (2 * (n % 4) + 2)) for n in range(32)]
    wrong("shuffle", "setp.gt.u32 %p1, %r1, 7; @%p1 bra $end;" + body, "take part")
    wrong("unknown instruction", body.replace("m16n8k8", "m16n8k16"))


def test_votes() -> None:
    body = """
    setp.lt.u32 %p1, %r1, 4;
    vote.sync.ballot.b32 %r5, %p1, -1;
    vote.sync.any.pred %p2, %p1, -1;
    vote.sync.all.pred %p3, %p1, -1;
    selp.b32 %r6, 100, 0, %p2;
    selp.b32 %r7, 1000, 0, %p3;
    add.s32 %r0, %r5, %r6;
    add.s32 %r0, %r0, %r7;
    @!%p1 bra $end;
    activemask.b32 %r8;
    add.s32 %r0, %r0, %r8;
"""
    assert run(body) == [15 + 100 + 15] * 4 + [115] * 28


def test_threads_that_are_named_wait_for_each_other() -> None:
    """Some come later, from a place further down, and by way of more rounds of a loop."""
    body = """
    setp.gt.u32 %p1, %r1, 7;
    @%p1 bra $late;
$meet:
    shfl.sync.down.b32 %r0, %r1, 1, 31, -1;
    bra.uni $end;
$late:
    add.s32 %r5, %r5, 0;
    mov.b32 %r6, 0;
$loop:
    add.s32 %r6, %r6, 1;
    setp.lt.u32 %p2, %r6, %r1;
    @%p2 bra $loop;
    bra.uni $meet;
"""
    assert run(body, block=64) == [n % 32 + 1 + n // 32 * 32 if n % 32 < 31 else n for n in range(64)]


def test_some_threads_of_a_warp_shuffle() -> None:
    body = """
    setp.gt.u32 %p1, %r1, 7;
    @%p1 bra $end;
    shfl.sync.bfly.b32 %r0, %r1, 1, 31, 255;
"""
    assert run(body) == [n ^ 1 for n in range(8)] + [0] * 24


def test_special_registers() -> None:
    memory = Memory()
    text = """.version 6.3
.target sm_75
.address_size 64
.visible .entry where(.param .u64 out)
{
    .reg .b32 %r<20>; .reg .b64 %d<5>;
    ld.param.b64 %d1, [out];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y;
    mov.u32 %r6, %ntid.x; mov.u32 %r7, %ntid.y; mov.u32 %r8, %nctaid.x; mov.u32 %r9, %ntid.z;
    mad.lo.s32 %r10, %r5, %r8, %r4;
    mad.lo.s32 %r10, %r10, %r9, %r3;
    mad.lo.s32 %r10, %r10, %r7, %r2;
    mad.lo.s32 %r10, %r10, %r6, %r1;
    mul.wide.u32 %d2, %r10, 4;
    add.s64 %d2, %d1, %d2;
    mov.u32 %r11, %laneid; mov.u32 %r12, %warpid; mov.u32 %r13, %lanemask_lt;
    mad.lo.s32 %r14, %r12, 100, %r11;
    popc.b32 %r15, %r13;
    mad.lo.s32 %r14, %r15, 10000, %r14;
    st.global.b32 [%d2], %r14;
    ret;
}
"""
    machine, out = load(text, memory), memory.allocate(4 * 6 * 40)
    machine.launch("where", (3, 2, 1), (5, 4, 2), machine.packed("where", [out]))
    found = memory.bytes(out, 4 * 6 * 40).view(np.int32).reshape(6, 40)
    assert found.tolist() == [[n % 32 * 10001 + n // 32 * 100 for n in range(40)]] * 6


# -- what is wrong ------------------------------------------------------------------------------------
def test_bad_addresses() -> None:
    wrong("illegal address", "ld.global.b32 %r0, [%d2+4];", r"0 bytes behind out of 128 bytes.*\n  kernel, line \d+: "
          r"ld.global.b32 %r0, \[%d2\+4\]")
    wrong("illegal address", "ld.global.b64 %d3, [%d1+120];", "run over the end of out of 124 bytes", block=31)
    wrong("illegal address", "st.global.b32 [%d1+-4], 0;")
    wrong("illegal address", "mov.b64 %d3, 0; ld.global.b32 %r0, [%d3];", "0x0 is no memory")
    wrong("misaligned address", "ld.global.b16 %h1, [%d2+1];")
    wrong("misaligned address", "ld.global.v2.b32 {%r5, %r6}, [%d1+4];", "8 bytes")
    wrong("illegal address", AT + "st.shared.b32 [%r7+4], 1;", "of 128 bytes of shared memory", own=SHARED)


def test_freed_memory() -> None:
    memory = Memory()
    machine = load(OPENING.format(own="", module="", directives="") + CLOSING, memory)
    out = memory.allocate(128, "rows")
    memory.free(out)
    assert memory.allocate(128) != out
    with pytest.raises(PtxError, match="freed memory: .* rows of 128 bytes .* was freed"):
        machine.launch("kernel", (1, 1, 1), (32, 1, 1), machine.packed("kernel", [out, 0]))


def test_memory_that_was_not_written() -> None:
    shared, local = AT + "ld.shared.b32 %r0, [%r7];", "ld.local.b32 %r0, [depot];"
    wrong("uninitialised", shared, "shared memory at 0x0", own=SHARED)
    wrong("uninitialised", local, own=".local .align 4 .b8 depot[8];")
    run(shared, own=SHARED, checks=Checks(uninitialised=False))


def test_races() -> None:
    write = AT + "st.shared.b32 [%r7], %r4;"
    other = "xor.b32 %r8, %r5, 124; add.s32 %r8, %r6, %r8;"
    wrong("race", write + other + "ld.shared.b32 %r0, [%r8];", "reads what another wrote", own=SHARED)
    run(write + other + "ld.shared.b32 %r0, [%r8];", own=SHARED, checks=Checks(races=False))
    read = write + "bar.sync 0;" + other + "ld.shared.b32 %r0, [%r8];"
    wrong("race", read + "st.shared.b32 [%r7], 1;", "writes what another read", own=SHARED)
    wrong("race", write + other + "st.shared.b32 [%r8], 1;", "writes where another wrote", own=SHARED)
    run(read + "bar.sync 0; st.shared.b32 [%r7], 1;", own=SHARED)
    wrong("race", AT + "st.shared.b32 [%r6], %r1;", "different values to one address", own=SHARED)
    run(AT + "st.shared.b32 [%r6], 5;", own=SHARED, checks=Checks(races=False))
    wrong("race", "st.global.b32 [%d1], %r1;", "different values")
    run("st.global.b32 [%d1], 5;", checks=Checks())


def test_races_within_a_warp_and_across() -> None:
    """`bar.warp.sync` separates the threads of a warp, and no others."""
    meet = "bar.warp.sync -1;"
    body = AT + "st.shared.b32 [%r7], %r4;" + meet + """
    xor.b32 %r8, %r5, 4; add.s32 %r8, %r6, %r8;
    ld.shared.b32 %r0, [%r8];
    ld.shared.b32 %r10, [%r8];""" + meet + "st.shared.b32 [%r7], 1;"
    assert run(body, own=SHARED) == [n ^ 1 for n in range(32)]
    body = AT + "st.shared.b32 [%r7], %r4;" + meet + """
    ld.shared.b32 %r0, [%r6];
    setp.eq.b32 %p1, %r1, 0;""" + meet + "@%p1 st.shared.b32 [%r6], 1;"
    run(body, own=SHARED)
    own = ".shared .align 16 .b8 words[256];"
    across = AT + "st.shared.b32 [%r7], %r4;" + meet + """
    xor.b32 %r8, %r5, 128; add.s32 %r8, %r6, %r8;
    ld.shared.b32 %r0, [%r8];"""
    wrong("race", across, own=own, block=64)
    readers = AT + "st.shared.b32 [%r7], %r4; bar.sync 0; ld.shared.b32 %r0, [%r6];" + meet + """
    setp.eq.b32 %p1, %r1, 40;
    @%p1 st.shared.b32 [%r6], 1;"""
    wrong("race", readers, "writes what another read", own=own, block=64)


def test_shuffles_without_all_that_are_named() -> None:
    some = "setp.lt.u32 %p1, %r1, 7; @%p1 bra $end;"
    wrong("shuffle", some + "shfl.sync.down.b32 %r0, %r1, 1, 31, -1;", "do not take part.*\n.*shfl.sync.down")
    wrong("shuffle", "shfl.sync.down.b32 %r0, %r1, 1, 31, -1;", "do not take part", block=20)
    wrong("shuffle", "shfl.sync.down.b32 %r0, %r1, 1, 31, 255;", "that is not named")
    wrong("shuffle", "setp.gt.u32 %p1, %r1, 7; @%p1 bra $end; shfl.sync.down.b32 %r0, %r1, 1, 31, 255;",
          "reads from one that is not named")


def test_barriers_that_some_never_reach() -> None:
    wrong("barrier", "setp.lt.u32 %p1, %r1, 7; @%p1 bra $end; bar.sync 0;", "never come to it.*\n.*bar.sync 0")
    wrong("barrier", "setp.lt.u32 %p1, %r1, 7; @%p1 bra $b; bar.sync 0; bra.uni $end;\n$b:\nbar.sync 0;")
    run("setp.lt.u32 %p1, %r2, 1; @%p1 bra $end; bar.sync 0;", grid=3)  # whole blocks may do without


def test_what_never_ends_or_is_not_known() -> None:
    wrong("endless", "$loop:\n add.s32 %r5, %r1, 1; bra.uni $loop;", checks=Checks(steps=100))
    wrong("trap", "setp.lt.u32 %p1, %r1, 7; @%p1 bra $end; trap;")
    for line in ("add.f32 %r5, %r1, %r1;", "mul.rn.ftz.f32 %r5, %r1, %r1;", "ex2.approx.f32 %r5, %r1;",
                 "mov.u32 %r5, %clock;", "call.uni foo, ();", "add.s32 %r5, %r1;", "mov.b32 %r5, %nothing;",
                 "wmma.load.a %r5;", "red.global.add.bf16 [%d2], %h1;", "st.global.b32 [%d2+x], %r0;"):
        wrong("unknown instruction", line, line.split()[0])


def test_what_a_launch_may_not_ask_for() -> None:
    wrong("resources", "", block=64, directives=".maxntid 32, 1, 1")
    wrong("resources", "", block=16, directives=".reqntid 32")
    wrong("resources", "", block=2048)
    wrong("resources", "", dynamic=300_000)
    for text in ("", ".version 6.3", ".version 6.3\n.target sm_75\n.address_size 64\n.visible .func f();"):
        with pytest.raises(PtxError, match="invalid image"):
            load(text, Memory())
