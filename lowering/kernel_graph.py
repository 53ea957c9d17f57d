"""A kernel's control-flow graph, of its code joined with the functions that it calls."""

from __future__ import annotations

from dataclasses import replace

from sassxlate.cfg.build import build
from sassxlate.cfg.graph import Cfg
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.sass import decode, decode_filled
from sassxlate.disasm.sass.instruction import Const, Imm, Instruction
from sassxlate.disasm.sass.semantics.single_block_clusters import alone
from sassxlate.disasm.sass.semantics.warpgroups import meeting
from sassxlate.errors import DecodeError, LoweringError, SassxlateError, Where
from sassxlate.lowering.abi.hostcalls import as_instructions
from sassxlate.lowering.select.clusters import refuse_clusters


def _function_pointers(kernel: Kernel) -> tuple[int, ...]:
    """The functions that a call through a register may reach.

    In a module with several kernels a function pointer is an offset in constant bank 2, whose word
    there is the function's offset in the kernel's code; with one kernel it is that offset itself
    (nvcc 13.0, whole programs).  If the bank lists none, any function is a candidate.
    """
    listed = {
        int.from_bytes(kernel.constant2[at : at + 8], "little")
        for at in range(0, len(kernel.constant2) - 7, 8)
    }
    functions = {f.value for f in kernel.callees}
    return tuple(sorted(functions & listed or functions))


def _with_address(kernel: Kernel, ins: Instruction) -> Instruction:
    """The instruction with half of a variable's address as its immediate."""
    offset = kernel.addresses.get(ins.offset)
    if offset is None:
        return ins
    if not isinstance(ins.get("Rb"), Imm):
        where = Where(kernel=kernel.name, offset=ins.offset, inst=ins.text)
        raise LoweringError("SX0407", "address of a variable in this instruction", where)
    return replace(ins, operands={**ins.operands, "Rb": Const(4, offset)})


def _undecodable(kernel: Kernel, offset: int) -> SassxlateError:
    """The error of a word that is no instruction."""
    word = int.from_bytes(kernel.code[offset : offset + 16], "little")
    try:
        ins = decode(word, offset, kernel.arch)
    except DecodeError as e:
        return e.at(kernel=kernel.name)
    raise AssertionError(f"decoded alone, but not with its kernel: {ins.text}")


def kernel_cfg(kernel: Kernel) -> Cfg:
    """The control-flow graph.  A reachable word that does not decode raises its DecodeError, a
    kernel that needs clusters of several blocks SX0428."""
    left = next((r for r in kernel.relocs if r.section.startswith(".text.")), None)
    if left is not None:
        where = Where(kernel=kernel.name, offset=left.offset)
        raise LoweringError("SX0407", f"the code was not joined with {left.symbol}", where)
    refuse_clusters(kernel)
    items = decode_filled(kernel.code, kernel.arch)
    good = [
        as_instructions(kernel, _with_address(kernel, meeting(alone(i))))
        for i in items
        if isinstance(i, Instruction)
    ]
    good_at = {i.offset for i in good}
    if 0 not in good_at:  # the graph's entry is the first instruction that it is given
        raise _undecodable(kernel, 0)
    try:
        targets, syscalls = kernel.indirect_targets, kernel.syscall_offsets
        pointers = _function_pointers(kernel)
        return build(kernel.name, kernel.arch, good, targets, syscalls, pointers)
    except SassxlateError as e:
        at = e.where.offset
        if at is not None and at not in good_at and at in range(0, len(kernel.code), 16):
            raise _undecodable(kernel, at) from None
        raise e.at(kernel=kernel.name) from None


__all__ = ["kernel_cfg"]
