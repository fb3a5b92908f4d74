"""Object files for AArch64 linked by ourselves, wherever this runs: made by LLVM, run on an emulated processor."""

from __future__ import annotations

import struct
from collections.abc import Callable

import llvmlite.binding as llvm
import pytest

from twofold.runtime import elf, objects
from twofold.runtime.image import SectionLayout
from twofold.runtime.relocations import BY_MACHINE

TRIPLE, AARCH64 = "aarch64-unknown-linux-gnu", 183
BASE, OUTSIDE, STACK, END = 0x7F12_3456_7000, 0x1_0000, 0x20_0000, 0x30_0000  # no branch reaches from one to another

# Tables, constants and stores of all sizes, in places of their own; a table of functions; calls of functions outside.
CODE = """
@bytes = internal global [3 x i8] [i8 1, i8 2, i8 3]
@shorts = internal global [3 x i16] [i16 4, i16 5, i16 6], align 2
@words = internal global [3 x i32] [i32 7, i32 8, i32 9], align 4
@longs = internal global [3 x i64] [i64 10, i64 11, i64 12], align 8
@vector = internal global <4 x float> <float 1.0, float 2.0, float 3.0, float 4.0>, align 16
@functions = internal global [2 x ptr] [ptr @outer, ptr @own]
declare i64 @outer(i64)
declare i64 @neighbour(i64)
define internal i64 @own(i64 %n) noinline {
  %m = mul i64 %n, 3
  ret i64 %m
}
define i64 @elements() {
  %b = load volatile i8, ptr getelementptr ([3 x i8], ptr @bytes, i64 0, i64 1)
  %s = load volatile i16, ptr getelementptr ([3 x i16], ptr @shorts, i64 0, i64 1)
  %w = load volatile i32, ptr getelementptr ([3 x i32], ptr @words, i64 0, i64 1)
  %l = load volatile i64, ptr getelementptr ([3 x i64], ptr @longs, i64 0, i64 1)
  %v = load volatile <4 x float>, ptr @vector
  %x = extractelement <4 x float> %v, i64 2
  %y = fptosi float %x to i64
  %b8 = zext i8 %b to i64
  %s8 = zext i16 %s to i64
  %w8 = zext i32 %w to i64
  %1 = mul i64 %b8, 1000000
  %2 = mul i64 %s8, 100000
  %3 = mul i64 %w8, 10000
  %4 = mul i64 %l, 100
  %5 = add i64 %1, %2
  %6 = add i64 %5, %3
  %7 = add i64 %6, %4
  %8 = add i64 %7, %y
  store volatile i8 7, ptr @bytes
  store volatile <4 x float> %v, ptr @vector
  ret i64 %8
}
define i64 @calls(i64 %n) {
  %f = load volatile ptr, ptr getelementptr ([2 x ptr], ptr @functions, i64 0, i64 0)
  %g = load volatile ptr, ptr getelementptr ([2 x ptr], ptr @functions, i64 0, i64 1)
  %1 = call i64 %f(i64 %n)
  %2 = call i64 %g(i64 %1)
  %3 = call i64 @outer(i64 %2)
  %4 = call i64 @neighbour(i64 %3)
  ret i64 %4
}
"""
NEIGHBOUR = """
declare i64 @outer(i64)
define i64 @neighbour(i64 %n) {
  %1 = mul i64 %n, 10
  %2 = tail call i64 @outer(i64 %1)
  ret i64 %2
}
"""


def compiled(text: str, model: str) -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(opt=2, reloc="static", codemodel=model)
    return machine.emit_object(llvm.parse_assembly(f'target triple = "{TRIPLE}"\n{text}', llvm.create_context()))


def layout(*files: bytes) -> SectionLayout:
    read = [elf.read(data) for data in files]
    return SectionLayout([file for file in read if file is not None], BY_MACHINE[AARCH64])


def emulated(linked: SectionLayout, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a function of linked files, in which `outer` lies far away."""
    unicorn = pytest.importorskip("unicorn")
    from unicorn import arm64_const as registers

    monkeypatch.setattr(objects, "address", {"outer": OUTSIDE}.__getitem__)
    memory = bytearray(linked.size)
    linked.link(memory, BASE)
    cpu = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    for at, size in ((BASE, linked.size), (OUTSIDE, 1 << 16), (STACK - (1 << 16), 1 << 16), (END, 1 << 16)):
        cpu.mem_map(at, -(-size // 4096) * 4096)
    cpu.mem_write(BASE, bytes(memory))
    cpu.mem_write(OUTSIDE, struct.pack("<II", 0x91000400, 0xD65F03C0))  # add x0, x0, #1; ret

    def call(name: str, argument: int = 0) -> int:
        place = linked.place(name)
        assert place is not None
        for register, value in (("X0", argument), ("SP", STACK - 256), ("X30", END)):
            cpu.reg_write(getattr(registers, f"UC_ARM64_REG_{register}"), value)
        cpu.emu_start(BASE + place, END)
        return cpu.reg_read(registers.UC_ARM64_REG_X0)
    return call


@pytest.mark.parametrize("model", ["small", "large"])
@pytest.mark.parametrize("order", [1, -1])
def test_code_for_aarch64_is_linked(model: str, order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    linked = layout(*[compiled(text, model) for text in (CODE, NEIGHBOUR)][::order])
    assert linked.can_link
    call = emulated(linked, monkeypatch)
    assert call("elements") == 2 * 1000000 + 5 * 100000 + 8 * 10000 + 11 * 100 + 3
    assert call("calls", 4) == ((4 + 1) * 3 + 1) * 10 + 1


def test_only_calls_go_far() -> None:
    """What lies outside is out of reach for an address relative to the code, which is then for LLVM's engine."""
    beyond = compiled("@there = external global i64\ndefine i64 @f() {\n %x = load i64, ptr @there\n ret i64 %x\n}",
                      "small")
    assert not layout(beyond).can_link
    assert list(layout(compiled(NEIGHBOUR, "small")).stubs) == ["outer"]


@pytest.mark.parametrize("distance", [1 << 27, -(1 << 27) - 4])
def test_a_branch_out_of_reach_is_an_error(distance: int) -> None:
    memory = bytearray(struct.pack("<I", 0x94000000))
    branch = BY_MACHINE[AARCH64].rules[283]
    with pytest.raises(struct.error, match="28 bits"):
        branch.write(memory, 0, 1 << 40, (1 << 40) + distance)
    branch.write(memory, 0, 1 << 40, (1 << 40) - (1 << 27))
    assert memory == struct.pack("<I", 0x96000000)


def test_pages_are_those_of_the_instruction() -> None:
    """ADRP counts pages of 4 KiB from that of the place, also where the system's are larger."""
    for place, value, pages in ((0x10FFC, 0x11000, 1), (0x11000, 0x10FFF, -1), (0x1F000, 0x12345000, 0x12326)):
        memory = bytearray(struct.pack("<I", 0x90000000))
        BY_MACHINE[AARCH64].rules[275].write(memory, 0, place, value)
        word, = struct.unpack("<I", memory)
        immediate = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
        assert (immediate ^ 1 << 20) - (1 << 20) == pages
