"""The words of constant bank 0 that straight-line code reads, as far as the code says which."""

from __future__ import annotations

from collections.abc import Iterable

from sassxlate.disasm.sass.instruction import Const, Imm, Instruction, Reg


def words_read(instructions: Iterable[Instruction]) -> list[tuple[Instruction, int]]:
    """Each instruction of a block with the byte offset of a word that it reads: without an index,
    or at one that a MOV of this block gives (nvcc -G)."""
    found: list[tuple[Instruction, int]] = []
    set_to: dict[tuple[str, int], int] = {}
    for inst in instructions:
        for o in inst.operands.values():
            if not isinstance(o, Const) or o.bank != 0 or o.ur is not None:
                continue
            if o.index is None or o.index.is_zero:
                found.append((inst, o.offset))
            elif (index := set_to.get((o.index.file, o.index.index))) is not None:
                found.append((inst, o.offset + index))
        if set_to:
            for written in inst.writes:
                set_to.pop((written.file, written.index), None)
        if inst.mnemonic != "MOV" or not inst.guard.is_true:
            continue
        source, dest = inst.get("Rb"), inst.get("Rd")
        if isinstance(source, Imm):
            assert isinstance(dest, Reg)
            set_to[dest.file, dest.index] = source.value
    return found
