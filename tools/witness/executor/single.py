"""Single instructions of another executor against AMD's pseudocode (`tools.witness.pcode`).

The executor says before and after each instruction where a wave's registers are.  The pseudocode
runs the instruction on a copy of them; what it leaves must be what the executor leaves.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sassxlate.disasm.rdna3 import format_inst
from sassxlate.disasm.rdna3.codec.decode.instruction import decode
from sassxlate.disasm.rdna3.instruction import I, Inst, V
from tools.witness.pcode import compare
from tools.witness.pcode.machine import LANES, Wave, op_writes_mask, step
from tools.witness.pcode.values import NotDescribed

SCALARS = 128  # SGPRs, VCC, M0, EXEC by their codes
_CARRIES = range(108)
_UNCHECKED = ("global_", "flat_", "scratch_", "ds_", "buffer_", "s_load", "s_cbranch", "s_branch")
_NO_VALUE = frozenset(
    "s_waitcnt s_waitcnt_vscnt s_waitcnt_depctr s_nop v_nop s_delay_alu s_barrier s_sleep s_endpgm "
    "s_code_end s_sendmsg s_getpc_b64 s_setpc_b64 s_swappc_b64 s_call_b64 s_clause "
    "s_getreg_b32 s_setreg_b32 s_setreg_imm32_b32 s_sethalt s_icache_inv "
    "s_round_mode s_denorm_mode".split()
)


@dataclass(frozen=True, slots=True)
class WrongInstruction:
    """One lane of an instruction: what AMD's text makes of the inputs, and the executor."""

    text: str
    op: str
    lane: int
    inputs: tuple[int, ...]
    described: int
    executed: int


@dataclass(slots=True)
class Registers:
    """Where an executor keeps a wave: SGPRs by code (SCC apart), VGPRs as [register][lane]."""

    scalars: ctypes.Array[ctypes.c_uint32]
    vectors: ctypes.Array[ctypes.c_uint32]
    scc: int  # the index of SCC among the scalars
    mode: int  # MODE's rounding and denormals, bits 7:0

    def wave(self, inst: Inst) -> Wave:
        """The state that the instruction can read or write."""
        used = {a.index + i for a in inst.args if isinstance(a, V) for i in range(a.n)}
        return Wave(
            vgprs={r: list(self.vectors[r * LANES : (r + 1) * LANES]) for r in used},
            sgprs=dict(enumerate(self.scalars[:SCALARS])),
            scc=self.scalars[self.scc],
            exec=self.scalars[126],
            round32=self.mode & 3,
            round16_64=self.mode >> 2 & 3,
            denormals=self.mode >> 4,
            completed=True,
        )

    def put(self, wave: Wave) -> None:
        """Make the registers those of the wave."""
        for r, lanes in wave.vgprs.items():
            self.vectors[r * LANES : (r + 1) * LANES] = lanes
        for r in (*_CARRIES, 125):
            self.scalars[r] = wave.sgprs[r]
        self.scalars[126] = wave.exec
        self.scalars[self.scc] = wave.scc


@dataclass(slots=True)
class Singles:
    """What was found.  ``often``: how often each place of a kernel is looked at; ``correct``:
    opcodes whose result is the pseudocode's from then on."""

    often: int = 0
    correct: frozenset[str] = frozenset()
    wrong: list[WrongInstruction] = field(default_factory=list[WrongInstruction])
    counts: Counter[str] = field(default_factory=Counter[str])
    unknown: Counter[str] = field(default_factory=Counter[str])
    corrected: Counter[str] = field(default_factory=Counter[str])
    _seen: Counter[int] = field(default_factory=Counter[int])
    _decoded: dict[int, Inst] = field(default_factory=dict[int, Inst])

    def instruction(self, pc: int) -> Inst:
        """The one at an address of this process."""
        if pc not in self._decoded:
            self._decoded[pc] = decode(ctypes.string_at(pc, 16))[0]
        return self._decoded[pc]

    def expected(self, pc: int, registers: Registers) -> Wave | None:
        """The pseudocode's result, if this execution is to be looked at and there is one."""
        inst = self.instruction(pc)
        if inst.op in _NO_VALUE or (inst.op.startswith(_UNCHECKED) and "permute" not in inst.op):
            return None
        self._seen[pc] += 1
        if self._seen[pc] > self.often and inst.op not in self.correct:
            return None
        wave = registers.wave(inst)
        try:
            step(wave, inst)
        except (NotDescribed, KeyError) as error:
            self.unknown[f"{inst.op}: {error}"] += 1
            return None
        return wave

    def look(self, pc: int, given: Wave, wanted: Wave, registers: Registers) -> None:
        """Compare the registers after the instruction with the pseudocode's, and correct them."""
        inst = self.instruction(pc)
        got = registers.wave(inst)
        self.counts[inst.op] += 1
        for one in _differing(inst, given, wanted, got):
            if sum(w.op == inst.op for w in self.wrong) < 4:
                self.wrong.append(one)
            break
        if inst.op in self.correct:
            self.corrected[inst.op] += 1
            registers.put(wanted)


def _differing(inst: Inst, given: Wave, wanted: Wave, got: Wave) -> Iterable[WrongInstruction]:
    width = compare.result_width(inst.op)
    sources = [a for a in inst.args if not isinstance(a, I)]
    dst = inst.args[0] if inst.args else None
    text = format_inst(inst)

    def inputs(lane: int) -> tuple[int, ...]:
        out: list[int] = []
        for a in sources:
            try:
                out.append(given.read(a, lane))
            except NotDescribed:
                continue
        return tuple(out)

    if isinstance(dst, V) and not op_writes_mask(inst.op):
        for lane in range(LANES):
            a, b = wanted.read(dst, lane), got.read(dst, lane)
            if a != b and not compare.same(inst.op, width, a, b):
                yield WrongInstruction(text, inst.op, lane, inputs(lane), a, b)
    for r in (*_CARRIES, 125):
        if wanted.sgprs[r] != got.sgprs[r]:
            changed = wanted.sgprs[r] ^ got.sgprs[r]
            lane = (changed & -changed).bit_length() - 1 if inst.op.startswith("v_") else 0
            yield WrongInstruction(text, inst.op, lane, inputs(lane), wanted.sgprs[r], got.sgprs[r])
    for a, b in ((wanted.scc, got.scc), (wanted.exec, got.exec)):
        if a != b:
            yield WrongInstruction(text, inst.op, 0, inputs(0), a, b)
