"""A kernel's graph with one instruction for each software quotient or root.

The instruction takes the call's place, and the branch always goes there: the operation holds for
all operands, those of the fast path too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from sassxlate.cfg import Cfg, build
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.sass.instruction import RZ, Imm, Instruction, Operand, Pred, Reg, RegRef
from sassxlate.disasm.sass.traits import INTEGER_QUOTIENTS
from sassxlate.lowering.idioms.known import BY_WORD, known
from sassxlate.lowering.idioms.sites import Finder, Site, Unit

_TRUE = Pred("P", 7)
_ONE: Mapping[str, Imm] = {
    "F": Imm(0x3F800000, 32, "f32"),
    "D": Imm(0x3FF0000000000000, 64, "f64"),
}


def rebuilt(cfg: Cfg, kernel: Kernel, changed: Mapping[int, Instruction]) -> Cfg:
    """The graph with some instructions replaced, by offset."""
    kept = chain(cfg.left_out, *(block.instructions for block in cfg.blocks))
    instructions = [changed.get(ins.offset, ins) for ins in kept]
    instructions.sort(key=lambda i: i.offset)
    pointers = {
        cfg.blocks[e.dst].start
        for b in cfg.blocks
        if b.last.mnemonic == "CALL" and b.last.get("target") is None
        for e in cfg.successors[b.index]
        if e.kind == "call"
    }
    return build(
        cfg.name, cfg.arch, instructions, kernel.indirect_targets, kernel.syscall_offsets,
        pointers, cfg.collectives,
    )  # fmt: skip


def _operand(role: str, unit: Unit) -> dict[str, Operand]:
    """A source, or the result of integers: its words may be in any registers, the high one has a
    role of its own."""
    roles = (role, role + "h")
    return {r: Reg("R", ref.index) for r, ref in zip(roles, unit, strict=False)}


def _operation(site: Site, name: str, order: tuple[Unit, ...]) -> Instruction | None:
    """FDIV, FSQRT, DDIV, DSQRT or one of 64-bit integers in place of the call."""
    low = site.results[0].index
    words = 1 if name[0] == "F" else 2
    mnemonic = name.removesuffix(BY_WORD)
    whole = mnemonic in INTEGER_QUOTIENTS  # any two registers
    aligned = site.results == tuple(RegRef("R", low + i) for i in range(words))
    if not (aligned or (whole and len(site.results) == 2)):
        return None
    if any(ref.file != "R" for unit in order for ref in unit):
        return None
    by_word = name.endswith(BY_WORD)
    sizes = [words, 1 if by_word else words]
    if any(len(unit) != size for unit, size in zip(order, sizes, strict=False)):
        return None
    operands: dict[str, Operand] = {"Rd": Reg("R", low, words)}
    if whole:
        operands = _operand("Rd", site.results)
    if name.endswith("RCP"):
        mnemonic, operands["Ra"] = f"{name[0]}DIV", _ONE[name[0]]
        operands.update(_operand("Rb", order[0]))
    else:
        for role, unit in zip(("Ra", "Rb"), order, strict=False):
            operands.update(_operand(role, unit))
    if by_word:
        operands["Rbh"] = Reg("R", RZ)
    named = ", ".join(f"R{unit[0].index}" for unit in order)
    return replace(
        site.call, mnemonic=mnemonic, modifiers=(), guard=_TRUE, operands=operands,
        reads=frozenset(ref for unit in order for ref in unit), writes=frozenset(site.results),
        text=f"{name} R{low}, {named}",
    )  # fmt: skip


def _always(site: Site) -> Instruction:
    """The branch, to the call's side."""
    branch = site.branch
    if not site.taken:
        control = replace(branch.control, wait_mask=0)  # a NOP that waits orders memory
        return replace(
            branch, mnemonic="NOP", modifiers=(), operands={}, guard=_TRUE, reads=frozenset(),
            control=control,
        )  # fmt: skip
    operands = {r: (_TRUE if isinstance(o, Pred) else o) for r, o in branch.operands.items()}
    return replace(branch, modifiers=(), operands=operands, guard=_TRUE, reads=frozenset())


def _recognised(site: Site) -> Instruction | None:
    for digest, order in site.digests():
        name = known().get(digest)
        made = None if name is None else _operation(site, name, order)
        if made is not None:
            return made
    return None


def replaced(cfg: Cfg, kernel: Kernel) -> tuple[Cfg, int]:
    """The graph, and how many operations were put in."""
    changed: dict[int, Instruction] = {}
    count = 0
    finder = Finder(cfg)
    for site in finder.sites():
        made = _recognised(site)
        if made is None and (other := finder.opaque(site)) is not None:
            made = _recognised(other)
        if made is not None:
            changed[made.offset] = made
            if site.branch.offset != made.offset:
                changed[site.branch.offset] = _always(site)
            count += 1
    return (rebuilt(cfg, kernel, changed), count) if count else (cfg, 0)


__all__ = ["rebuilt", "replaced"]
