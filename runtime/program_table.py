"""The table that describes a program to the native code which calls it: what each 64-bit word means.

A head of single words, some of which are addresses of rows: one for each input and output, then constants, then what
arguments must be. Shapes are arrays of words elsewhere. `program_call.py` writes tables, `program_ir.py` reads them.
"""

from __future__ import annotations

__all__ = ["CLAIM", "CODE", "HEAD", "INPUT", "OUTPUT", "PACKED", "KIND", "MODE", "RESULT", "STEP", "STACK"]


def _numbered(names: str) -> dict[str, int]:
    return {name: n for n, name in enumerate(names.split())}


# words: the program's table of threads and libraries, before which lie those of `CODE`; arena, work: bytes and simple
# operations, or -1 where `plan` says; charge: what a call counts (`tiers.py`), less the work where that is not known
# before, and then negative; small: the work from which the interpreter lock is released; arguments, objects: how many a
# call has, and for each the object it must equal, 0 for a tensor; sizes: words that `plan` writes after the first two;
# results: outputs that the caller gets, the others are for variables; result: a Python function, or the address of
# `steps` pairs of words, as `result_kind` says; bytes: the dtype uint8.
HEAD = _numbered("words arena work charge small arguments objects leaves inputs outputs constants buffers symbols "
                 "sizes input_rows output_rows constant_rows claims claim_rows results result_kind result steps bytes")
# The words before those of a program, counted back from them: plan: computes sizes, or 0 where all are known; entry:
# the program; left: what calls may count until Python is asked for better code; packed: the address of the words
# `PACKED`, or 0. They change while the program lives.
CODE = {"packed": -4, "plan": -3, "entry": -2, "left": -1}
# Of operands that are packed once (`packed.py`): number: that no others have; memory: an object that a run refers to
# while it reads them; entry, words, plan, arena: of the program that does so, as above; guards: how many pairs of words
# follow, the number of an input and the address at which it must lie; rest: how many addresses follow these, of buffers
# behind those of inputs and outputs.
PACKED = _numbered("number memory entry words plan arena guards rest")
# what: the variable, or the address of fixed memory; dims: sizes, or -1 - n for symbol number n; donor: whether an
# output may take the memory.
INPUT = _numbered("kind what descr rank dims donor")
# dims: the address of the sizes where they are known (static), else how many bytes after the start of what `plan`
# writes; size: bytes of an element; bytes: of all, where known; donor: the input whose memory it takes, or -1;
# variable: that it is assigned to, or 0.
OUTPUT = _numbered("descr rank dims static size bytes donor variable")

# Of a program that assigns variables, for each variable: slot: the address of its value; word: that of its word
# (`claims.py`); mode: what the program does with it (`MODE`); input: its number among the inputs.
CLAIM = _numbered("slot word mode input")
MODE = {"read": 1, "assigned": 2}
KIND = {"leaf": 0, "variable": 1, "fixed": 2}
RESULT = {"packer": 0, "one": 1, "built": 2}  # by a Python function; the one tensor; by steps on a stack
# Push tensor number x, push the object x, put a container in the place of the last x objects, or of one for each key of
# the tuple x.
STEP = {"tensor": 0, "object": 1, "tuple": 2, "list": 3, "dict": 4}

STACK = 1 << 14  # bytes of scratch memory up to which it lies on the stack
