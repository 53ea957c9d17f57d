"""Calls of functions that NVIDIA's driver provides: vprintf, __assertfail, malloc, free.

A cubin reaches them through words of constant bank 4 that the loader fills; debug and separately
compiled code also by a direct call with a relocation, for which the bank gets such a word (see
link.py).  Here the word is the address of a block of memory that the function works on (a queue of
records, a heap); the block's first word identifies the function.  The call becomes an instruction
of its own, and its rule (rules/hostcall.py) implements the function.
runtime_shim/native/cuda/hostcall.cpp makes the blocks, prints the records in the queue and raises
the error of a failed assertion.

Functions that copy to other blocks' shared memory (:func:`reaches_other_blocks`) have no such word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.sass.instruction import Const, Instruction, Name, RegRef
from sassxlate.errors import LoweringError, Where

MNEMONIC = "HOSTCALL"


@dataclass(frozen=True, slots=True)
class HostFunction:
    """One of the driver's functions: its number, and the argument and result registers (ABI)."""

    number: int
    arguments: tuple[int, ...]
    results: tuple[int, ...] = ()


FUNCTIONS: Mapping[str, HostFunction] = {
    "vprintf": HostFunction(1, (4, 5, 6, 7), (4,)),
    "__assertfail": HostFunction(2, (4, 5, 6, 7, 8, 10, 11)),
    "malloc": HostFunction(3, (4, 5), (4, 5)),
    "free": HostFunction(4, (4, 5)),
}
# Copies into another block's shared memory, on sm_120: what cp.async.bulk with .shared::cluster
# calls if the address is not in the block's own, which ptxas's code tests.
_REMOTE = re.compile(r"__cuda_syscall_cp_async_bulk_\w*unicast")
ARGUMENTS = 256  # bytes kept of a printf's arguments: 32 of 8 bytes, CUDA's limit


def functions_of(kernel: Kernel) -> tuple[str, ...]:
    """The driver's functions that the kernel names and that are known here."""
    return tuple(name for name in dict.fromkeys(kernel.externs) if name in FUNCTIONS)


def reaches_other_blocks(name: str) -> bool:
    """Whether a driver's function copies to another block's shared memory.  Clusters have one block
    here, so that a call is never executed; it becomes a trap."""
    return _REMOTE.fullmatch(name) is not None


def as_instructions(kernel: Kernel, ins: Instruction) -> Instruction:
    """A call of one of these functions as its own instruction; other instructions unchanged."""
    if ins.mnemonic != "CALL" or ins.offset not in kernel.syscall_offsets:
        return ins
    direct = kernel.host_calls.get(ins.offset)
    if kernel.externs and all(map(reaches_other_blocks, kernel.externs)) and direct is None:
        operand = Name(0, kernel.externs[0])
        return replace(ins, mnemonic=MNEMONIC, operands={"function": operand})
    if direct is not None:
        name, word = direct
        called = FUNCTIONS[name]
        return replace(
            ins,
            mnemonic=MNEMONIC,
            operands={"function": Name(called.number, name), "Ra": Const(4, word, width=2)},
            reads=ins.reads | {RegRef("R", r) for r in called.arguments},
            writes=ins.writes | {RegRef("R", r) for r in called.results},
        )
    names = functions_of(kernel)
    if not names or len(names) != len(set(kernel.externs)):
        where = Where(kernel=kernel.name, offset=ins.offset, inst=ins.text)
        unknown = ", ".join(sorted(set(kernel.externs) - set(names))) or "nothing"
        raise LoweringError("SX0420", f"the driver's function {unknown} is not supported", where)
    possible = [FUNCTIONS[name] for name in names]
    reads = {RegRef("R", r) for f in possible for r in f.arguments}
    # If the call may reach several functions, those without this result keep the old value.
    results = {RegRef("R", r) for f in possible for r in f.results}
    if len(possible) > 1:
        reads |= results
    return replace(ins, mnemonic=MNEMONIC, reads=ins.reads | reads, writes=ins.writes | results)
