"""One instruction as a block: translated as it would be inside a kernel, then decoded.

The code of a rule depends on two environments.  ``together``: all lanes are active, uniform
registers are scalar, constants were loaded before.  ``apart``: lanes wait elsewhere and their
predicate bits must survive, each lane has its own uniform registers, constants are loaded at their
use, and the bits of doubles that are NaN are read.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal, TypeAlias

from sassxlate.disasm.rdna3 import assemble, decode
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, S, V
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.errors import LoweringError
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.nans.bits import NanBits
from sassxlate.lowering.nans.reads import WIDE, made
from sassxlate.lowering.passes import made_safe
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.select.instruction import one
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.nans import claims
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rdna3.inlined_routines import routines
from sassxlate.lowering.verify.rules.forms import BANK, CONSTANT

Surroundings: TypeAlias = Literal["together", "apart"]
SURROUNDINGS: tuple[Surroundings, ...] = ("together", "apart")
_TABLE = {3: 0x800, 4: 0x808}  # offsets of the addresses of constant banks
GENERAL, UNIFORM = 48, 48


def _near(ins: Instruction, file: str) -> list[int]:
    """The registers that an instruction names, and their neighbours: all that a map must hold."""
    used = {ref.index // 4 for ref in ins.reads | ins.writes if ref.file == file}
    return [4 * quad + i for quad in sorted(used) for i in range(4)]


def registers(
    ins: Instruction, surroundings: Surroundings, target: Target = DEFAULT
) -> RegisterMap:
    """A map like those that ``allocate`` makes."""
    together = surroundings == "together"
    first = GENERAL + (0 if together else UNIFORM)
    general, uniform = _near(ins, "R"), _near(ins, "UR")
    if max(general, default=0) >= GENERAL:
        raise LoweringError("SX0402", "a register outside a single instruction's map")
    return RegisterMap(
        target=target,
        r={i: i for i in general},
        spilled={},
        ur={i: 40 + n for n, i in enumerate(uniform)} if together else {},
        ur_lanes={} if together else {i: GENERAL + n for n, i in enumerate(uniform)},
        p={i: S(88 + i) for i in range(7)},
        up={i: S(96 + i) for i in range(7)},
        live=S(3),
        save_exec=S(2),
        ready={},
        regions=(),
        consts={(BANK, CONSTANT): S(36), (BANK, CONSTANT + 4): S(37)} if together else {},
        stemps=(*range(4, 12), *range(16, 28)),
        tid=V(first),
        vtemp_base=first + 1,
        lane_vgprs=(),
        scratch_spill=0,
    )


@cache
def _merged() -> frozenset[RegRef]:
    return frozenset([*(RegRef("P", i) for i in range(7)), *(RegRef("UP", i) for i in range(7))])


def selected(
    ins: Instruction, surroundings: Surroundings, target: Target = DEFAULT
) -> KernelBuilder:
    """The code that the rule of one instruction writes.  LoweringError if it refuses."""
    regs = registers(ins, surroundings, target)
    merged: frozenset[RegRef] = frozenset() if surroundings == "together" else _merged()
    state = KernelBuilder("rule", ins.arch, bank_layout(ins.arch), regs, dict(_TABLE), merged)
    state.outlining = surroundings == "apart"
    if surroundings == "apart" and made(ins) & WIDE:  # as if its NaN's bits were read
        state.nans = NanBits(exact=frozenset({ins.offset}))
    one(state, ins, converged=surroundings == "together")
    return state


def routines_of(state: KernelBuilder, ins: Instruction) -> list[Item]:
    """The code that the rule's code calls, each routine with its label."""
    first = len(state.items)
    for label, routine in state.outlined.items():
        state.items.append(Label(label))
        routine(state, ins)
    out = state.items[first:]
    del state.items[first:]
    return out


def translated(ins: Instruction, surroundings: Surroundings, target: Target = DEFAULT) -> BlockPair:
    """The block of one instruction, with code for a target.  LoweringError if it is refused."""
    state = selected(ins, surroundings, target)
    end = Label("end")  # all accesses are waited for here
    items: list[Item] = [*state.items, end, Inst("s_endpgm", ()), *routines_of(state, ins)]
    items = made_safe(items, target)
    program = assemble(items)
    placed: list[Placed | None] = []
    for item, at in zip(items, program.offsets, strict=True):
        if isinstance(item, Inst):
            inst, size = decode(program.data, at)
            placed.append(Placed(replace(inst, uniform=item.uniform), at, at + size))
        else:
            placed.append(None)
    code = [step for step in placed[: items.index(end)] if step is not None]
    tables = {offset: bank for bank, offset in _TABLE.items()}
    loose, loose_out = claims((ins,))
    return BlockPair(
        (ins,), (code,), state.regs, bank_layout(ins.arch), state.merge, tables,
        routines=routines(items, placed.__getitem__), exact=state.nans.exact, loose=loose,
        loose_out=loose_out,
    )  # fmt: skip


__all__ = ["SURROUNDINGS", "Surroundings", "registers", "routines_of", "selected", "translated"]
