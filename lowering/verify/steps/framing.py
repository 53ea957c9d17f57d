"""A region's code in the form that the verifier takes, and the code that a region must not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from sassxlate.disasm.rdna3 import RRef, assemble, decode, info, writes
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, LabelRef, S
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO
from sassxlate.disasm.sass.instruction import Const, RegRef
from sassxlate.lowering.passes import made_safe
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.macro import opened
from sassxlate.lowering.region.places import words_of
from sassxlate.lowering.region.region import Region

if TYPE_CHECKING:
    from sassxlate.lowering.verify import BlockPair


@dataclass(frozen=True, slots=True)
class Limits:
    """Registers that an answer may write besides the block's own: temporaries, by number."""

    vector: frozenset[int]
    scalar: frozenset[int]


def own_places(block: Region, regs: RegisterMap) -> frozenset[RRef]:
    """The places of the registers that the block's SASS writes."""
    out: set[RRef] = set()
    for ins in block.instructions:
        for ref in ins.writes:
            place = _place(regs, ref)
            if place is not None:
                out.add(place)
    return frozenset(out)


def _place(regs: RegisterMap, ref: RegRef) -> RRef | None:
    match ref.file:
        case "R":
            return RRef("v", regs.r[ref.index]) if ref.index in regs.r else None
        case "UR":
            if ref.index in regs.ur:
                return RRef("s", regs.ur[ref.index])
            return RRef("v", regs.ur_lanes[ref.index]) if ref.index in regs.ur_lanes else None
        case "P":
            return RRef("s", regs.p[ref.index].index)
        case "UP":
            return RRef("s", regs.up[ref.index].index)
        case _:
            return None


_FLAGS = frozenset({"scc", "mode", "mem", "lds", "scratch"})

_ALWAYS = frozenset({VCC_LO, VCC_LO + 1, EXEC_LO})


def foreign_writes(
    block: Region, regs: RegisterMap, items: Iterable[Item], allowed: Limits
) -> list[str]:
    """Registers that the code writes but must not, by name."""
    mine = own_places(block, regs)
    bad: list[str] = []
    for item in items:
        if not isinstance(item, Inst):
            continue
        for ref in sorted(writes(item)):
            if ref.kind in _FLAGS or ref in mine:
                continue
            if ref.kind == "v" and ref.number in allowed.vector:
                continue
            scalar = allowed.scalar | _ALWAYS | {regs.save_exec.index}
            if ref.kind == "s" and ref.number in scalar:
                continue
            bad.append(f"{ref.kind}{ref.number}")
    return bad


_ORDERED = frozenset({"lds", "flat", "global", "scratch", "buffer", "inv", "wait", "message"})


def accesses(items: Iterable[Item]) -> list[tuple[object, ...]]:
    """Memory accesses, waits and fences, in order: kind of access, width, caching.

    Registers and offsets are left out: the verifier compares them.
    """
    out: list[tuple[object, ...]] = []
    for item in items:
        if not isinstance(item, Inst):
            continue
        row = info(item.op)
        if row.kind not in _ORDERED or item.op == "s_delay_alu":
            continue
        immediate = item.imm if row.kind == "wait" else 0
        out.append((item.op, item.glc, item.slc, item.dlc, item.gds, immediate))
    return out


# Not allowed in a region: control transfers other than branches inside, MODE writes except in
# brackets (the verifier requires MODE to be restored), ends of waves, calls of the host.
_REFUSED = frozenset({"jump", "end", "barrier", "message", "interp", "ldsdir", "export"})


def refused(items: Iterable[Item]) -> str | None:
    """A mnemonic that no block may contain, or a branch that leaves the block or goes backwards."""
    placed: set[str] = set()
    waiting: set[str] = set()
    for item in items:
        if isinstance(item, Label):
            placed.add(item.name)
            waiting.discard(item.name)
            continue
        if info(item.op).kind in _REFUSED or item.op in ("s_trap", "s_sethalt"):
            return item.op
        target = item.args[-1] if item.args and isinstance(item.args[-1], LabelRef) else None
        if info(item.op).kind == "branch":
            if target is None or target.name in placed:
                return item.op
            waiting.add(target.name)
    return f"no label {sorted(waiting)[0]}" if waiting else None


def beyond(block: Region, regs: RegisterMap, items: Iterable[Item]) -> str | None:
    """A scalar load that may reach beyond a constant bank, where nothing may be mapped.  It may
    reach up to the last word that SASS or the register map names."""
    ends: Counter[int] = Counter()
    for bank, offset in regs.consts:
        ends[bank] = max(ends[bank], offset + 4)
    for ins in block.instructions:
        for operand in ins.operands.values():
            if not isinstance(operand, Const) or operand.ur is not None:
                continue
            if operand.index is None or operand.index.is_zero:
                ends[operand.bank] = max(ends[operand.bank], words_of(operand)[-1] + 4)
    tables = block.around.tables
    ends[0] = max([ends[0], *(offset + 8 for offset in tables)])
    pointers = {regs.target.kernarg.index: 0}
    for item in items:
        if not isinstance(item, Inst):
            continue
        to, base = (*item.args, None, None)[:2]
        loaded = None
        if item.op.startswith("s_load") and isinstance(base, S) and isinstance(to, S):
            bank = pointers.get(base.index, -1)
            if not 0 <= item.imm <= ends[bank] - 4 * to.n:
                return f"{item.op} from {item.imm:#x} of constant bank {bank}"
            loaded = tables.get(item.imm) if bank == 0 and to.n == 2 else None
        for ref in writes(item):
            if ref.kind == "s":
                pointers.pop(ref.number, None)
                pointers.pop(ref.number - 1, None)
        if loaded is not None and isinstance(to, S):
            pointers[to.index] = loaded
    return None


Groups = Sequence[Sequence[Inst]]


def flat_code(code: Groups) -> list[Inst]:
    """All instructions in order."""
    return [inst for group in code for inst in group]


def flat_items(block: Region, code: Sequence[Sequence[Item]]) -> list[Item]:
    """All instructions in order, those of macros included."""
    return [item for group in opened(code, block.instructions, block.macros) for item in group]


def framed_for_verifier(
    block: Region, regs: RegisterMap, live_out: frozenset[RegRef], code: Groups
) -> BlockPair:
    """The block in the form that the verifier takes: final bytes, decoded, with waits and hazards.

    Raises EncodeError if the code does not assemble, LoweringError if it cannot be made safe.
    """
    from sassxlate.lowering.verify import BlockPair, Placed
    from sassxlate.lowering.verify.nans import claims

    whole = opened(code, block.instructions, block.macros)
    mine = [(item, n) for n, group in enumerate(whole) for item in group]
    items: list[Item] = [*(item for item, _ in mine), Label("Lbehind the block")]
    made = made_safe(items, regs.target)
    program = assemble(made)
    ends = [*program.offsets[1:], len(program.data)]
    out: list[list[Placed]] = [[] for _ in block.instructions]
    here = given = 0  # inserted code belongs to the instruction before it
    for item, at, end in zip(made, program.offsets, ends, strict=True):
        at_item = given
        while at_item < len(mine) and item is not mine[at_item][0] and _wait(mine[at_item][0]):
            at_item += 1  # a macro's wait for what is done may have been left out
        if at_item < len(mine) and item is mine[at_item][0]:
            here, given = mine[at_item][1], at_item + 1
        if isinstance(item, Inst):
            inst = _decoded(program.data[at:end])
            if item.uniform:
                inst = replace(inst, uniform=True)
            out[here].append(Placed(inst, at, end))
    assert all(_wait(item) for item, _ in mine[given:])
    loose, loose_out = claims(block.instructions)
    return BlockPair(
        block.instructions,
        out,
        regs,
        block.around.layout,
        block.merged,
        block.around.tables,
        live_out,
        loose=loose,
        loose_out=loose_out,
        macros=frozenset(n for n, i in enumerate(block.instructions) if i.offset in block.macros),
    )


def _wait(item: Item) -> bool:
    return isinstance(item, Inst) and info(item.op).kind == "wait"


@lru_cache(maxsize=1 << 16)
def _decoded(code: bytes) -> Inst:
    """The instruction that the bytes encode."""
    inst, size = decode(code, 0)
    assert size == len(code)
    return inst
