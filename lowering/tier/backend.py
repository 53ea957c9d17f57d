"""LLVM's AMDGPU backend, which llvmlite carries: a module's text to one kernel's machine code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.rdna3.tables import kernel_descriptor
from sassxlate.lowering.codeobject.descriptor import Descriptor, unpack
from sassxlate.lowering.codeobject.msgpack import unpack as unpack_metadata
from sassxlate.lowering.target import Target
from sassxlate.lowering.tier.compiler.process import object_file
from sassxlate.lowering.tier.families import FAMILIES
from sassxlate.lowering.tier.families import stand_ins as elsewhere
from sassxlate.lowering.tier.linked import Linked, linked, with_calls
from sassxlate.lowering.tier.module import NAME, TRIPLE, features
from sassxlate.lowering.tier.numbers import stand_ins
from sassxlate.lowering.tier.refusal import BACKEND, refused
from sassxlate.lowering.tier.spills import apart, of_all_lanes


@dataclass(frozen=True, slots=True)
class MachineCode:
    """``lines``: for each offset in the code where it changes, the line of its debug location.

    ``written`` is the kernel descriptor as LLVM wrote it, and ``texts`` are the instructions' where
    no table of ours has them; otherwise both are empty.
    """

    code: bytes
    descriptor: Descriptor
    metadata: Mapping[str, Any]
    lines: tuple[tuple[int, int], ...]
    written: bytes = b""
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LlvmFile:
    """LLVM's file, its kernel with the functions, and its text where no table of ours has that."""

    elf: Elf
    found: Linked
    note: Mapping[str, Any]
    texts: tuple[str, ...]


def compiled(text: str, target: Target) -> MachineCode:
    """The machine code of the module's kernel.  Raises Refused SX0464."""
    made = llvm_file(text, target)
    if _spilled_twice(made):
        made = llvm_file(apart(text), target)
        if _spilled_twice(made):
            raise refused(BACKEND, "spilled scalar registers in vector registers that are, too")
    family, found = FAMILIES.get(target.instructions), made.found
    rodata = next(s for s in made.elf.sections if s.name == ".rodata")
    written = bytes(rodata.data[: kernel_descriptor.SIZE])
    descriptor = unpack(written, target)
    if descriptor.dynamic_stack:
        raise refused(BACKEND, "a stack whose size is not known")
    calls = partial(with_calls, found, target.instructions) if found.distances else None
    descriptor = replace(descriptor, entry=0)
    flushes = not descriptor.float_mode >> 4 & 3
    if family is None:
        code, lines = stand_ins.replaced(found.code, found.lines, calls, flushes=flushes)
        return MachineCode(code, descriptor, made.note, lines)
    done = elsewhere.replaced(found.code, made.texts, found.lines, family, calls, flushes=flushes)
    return MachineCode(done.code, descriptor, made.note, done.lines, written, done.texts)


def llvm_file(text: str, target: Target) -> LlvmFile:
    """What LLVM makes of a module.  Raises Refused SX0464."""
    family = FAMILIES.get(target.instructions)
    made = object_file(text, TRIPLE, target.cpu, features(target), family is not None)
    assembly = ""
    if family is not None:
        size = int.from_bytes(made[:8], "little")
        made, assembly = made[8 : 8 + size], made[8 + size :].decode()
    elf = Elf(made)
    sections = {s.name: s for s in elf.sections}
    if not {".rodata", ".note", ".text"} <= sections.keys():
        raise refused(BACKEND, "it left the kernel out")  # with features that the target must have
    found = linked(elf, NAME, 4 if family is None else 1 << elsewhere.ALIGNED)
    texts = () if family is None else tuple(elsewhere.all_instructions(assembly, found.names))
    return LlvmFile(elf, found, _metadata(bytes(sections[".note"].data)), texts)


def _spilled_twice(made: LlvmFile) -> bool:
    """Whether a register with spilled ones may be spilled itself: only code of them is read."""
    spills = made.note[".sgpr_spill_count"] or made.found.starts
    return bool(spills) and of_all_lanes(made.found.code, made.texts)


def _metadata(note: bytes) -> dict[str, Any]:
    """The kernel's row of the metadata: one note whose owner is AMDGPU."""
    owner, size = int.from_bytes(note[:4], "little"), int.from_bytes(note[4:8], "little")
    start = 12 + -(-owner // 4) * 4
    whole: Any = unpack_metadata(note[start : start + size])
    row: dict[str, Any] = whole["amdhsa.kernels"][0]
    return row


__all__ = ["LlvmFile", "MachineCode", "compiled", "llvm_file"]
