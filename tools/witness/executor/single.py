"""Single instructions of another executor against AMD's pseudocode (`tools.witness.pcode`).

The executor says before and after each instruction where a wave's registers are.  The pseudocode
runs the instruction on a copy of them; what it leaves must be what the executor leaves, to the bit
or within AMD's bounds of an approximation.  Stores are noted, too: which wave wrote a word says
which wave's instructions must be looked at where that word differs.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sassxlate.disasm.rdna3 import format_inst
from sassxlate.disasm.rdna3.codec.decode.instruction import decode
from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.domain.integers import Bits, Reference
from sassxlate.domain.interface import Approximation
from tools.witness.pcode import compare, softfloat
from tools.witness.pcode.described import description
from tools.witness.pcode.machine import LANES, Wave, op_writes_mask, operand, step
from tools.witness.pcode.values import NotDescribed

SCALARS = 128  # SGPRs, VCC, M0, EXEC by their codes
_CARRIES = range(108)
_UNCHECKED = ("global_", "flat_", "scratch_", "ds_", "buffer_", "s_load", "s_cbranch", "s_branch")
_STORE = re.compile(r"(global|flat)_(store|(?P<atomic>atomic))_.*?(?P<bits>\d+)?$")
_FUNCTIONS: dict[str, Approximation] = {
    "rcp": "rcp", "rcp_iflag": "rcp", "rsq": "rsq", "sqrt": "sqrt", "exp": "exp2", "log": "log2",
    "sin": "sin", "cos": "cos",
}  # fmt: skip
_APPROXIMATE = re.compile(rf"v_(?P<name>{'|'.join(_FUNCTIONS)})_f(?P<width>32|64)$")
_EXAMPLES = 4  # of an opcode
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
    number: int = 0  # of the wave, in the order in which the dispatch's waves begin

    def wave(self, inst: Inst) -> Wave:
        """The state that the instruction can read or write."""
        args = [a for half in _halves(inst) for a in half.args if isinstance(a, V)]
        used = {a.index + i for a in args for i in range(a.n)}
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
    """What was found.  ``often``: how often each place of a kernel is looked at; ``waves``: the
    numbers of waves of which every instruction is; ``correct``: opcodes whose result is the
    pseudocode's from then on.  ``near``: results that are another word within AMD's bounds.
    ``stored``: the last wave that wrote to global memory at an address, by words."""

    often: int = 0
    correct: frozenset[str] = frozenset()
    attribute: bool = False  # note stores
    waves: frozenset[int] = frozenset()
    wrong: list[WrongInstruction] = field(default_factory=list[WrongInstruction])
    near: list[WrongInstruction] = field(default_factory=list[WrongInstruction])
    stored: dict[int, int] = field(default_factory=dict[int, int])
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
        looked_at = self._seen[pc] <= self.often or registers.number in self.waves
        if not looked_at and not self._corrects(inst):
            return None
        wave = registers.wave(inst)
        try:
            _run(wave, registers, inst)
        except (NotDescribed, KeyError) as error:
            self.unknown[f"{inst.op}: {error}"] += 1
            return None
        return wave

    def _corrects(self, inst: Inst) -> bool:
        return any(half.op in self.correct for half in _halves(inst))

    def look(self, pc: int, given: Wave, wanted: Wave, registers: Registers) -> None:
        """Compare the registers after the instruction with the pseudocode's, and correct them."""
        inst = self.instruction(pc)
        got = registers.wave(inst)
        self.counts[inst.op] += 1
        for half in _halves(inst):
            for one, near in _differing(half, given, wanted, got):
                found = self.near if near else self.wrong
                if sum(w.op == half.op for w in found) < _EXAMPLES:
                    found.append(one)
                break
        if self._corrects(inst):
            self.corrected[inst.op] += 1
            registers.put(wanted)

    def note_store(self, pc: int, registers: Registers) -> None:
        """Note which words of global memory an instruction is about to write."""
        inst = self.instruction(pc)
        form = _STORE.match(inst.op)
        if form is None:
            return
        vectors = [i for i, a in enumerate(inst.args) if isinstance(a, V)]
        at, base = inst.args[vectors[1 if form["atomic"] and inst.glc else 0]], inst.args[-1]
        assert isinstance(at, V)
        offset = inst.imm
        if isinstance(base, S):
            offset += registers.scalars[base.index] | registers.scalars[base.index + 1] << 32
        words = (int(form["bits"] or 32) + 31) // 32
        for lane in range(LANES):
            if registers.scalars[126] >> lane & 1:
                parts = (registers.vectors[(at.index + i) * LANES + lane] for i in range(at.n))
                address = sum(part << 32 * i for i, part in enumerate(parts)) + offset
                for word in range(address & -4, (address & -4) + 4 * words, 4):
                    self.stored[word & (1 << 64) - 1] = registers.number


def _halves(inst: Inst) -> tuple[Inst, ...]:
    """The two of a VOPD, which both read before either writes; else the instruction."""
    return (inst,) if inst.y is None else (replace(inst, y=None), inst.y)


def _plain(op: str) -> str:
    """The opcode that does the same outside of a VOPD."""
    return op.replace("v_dual_", "v_", 1)


def _run(wave: Wave, registers: Registers, inst: Inst) -> None:
    first, *second = (replace(half, op=_plain(half.op)) for half in _halves(inst))
    step(wave, first)
    _approximate(wave, registers.wave(inst), inst)
    for half in second:
        other = registers.wave(inst)
        step(other, half)
        dst = half.args[0]
        assert isinstance(dst, V)
        wave.vgprs[dst.index] = other.vgprs[dst.index]


def _is_normal(form: softfloat.Format, n: int) -> bool:
    return 0 < n >> form.fraction & form.top < form.top


def _approximate(wave: Wave, given: Wave, inst: Inst) -> None:
    """Make an approximation's results what the emulated device makes of them: the nearest numbers,
    where AMD's text (`1.0 / sqrt(x)`) rounds more than once.  Both lie within AMD's bounds."""
    form = _APPROXIMATE.match(inst.op)
    if form is None or inst.clamp or inst.op_sel:
        return
    width, name = int(form["width"]), form["name"]
    fn = _FUNCTIONS[name]
    float_ = softfloat.FORMATS[width]
    dst, source = inst.args
    assert isinstance(dst, V)
    for lane in range(LANES):
        described = wave.read(dst, lane) & (1 << width) - 1
        if not wave.exec >> lane & 1 or not _is_normal(float_, described):
            continue
        n = operand(given, inst, description(inst.op), "S0", source, 0, lane) & (1 << width) - 1
        result = Reference().approx(fn, Bits(n, width)).n
        if compare.same(inst.op, width, described, result):
            parts = [wave.vgprs[dst.index + i] for i in range(dst.n)]
            for i, lanes in enumerate(parts):
                lanes[lane] = result >> 32 * i & 0xFFFFFFFF


def _differing(
    inst: Inst, given: Wave, wanted: Wave, got: Wave
) -> Iterable[tuple[WrongInstruction, bool]]:
    """What differs, and whether that is within AMD's bounds; what is not comes first."""
    near: list[WrongInstruction] = []
    plain = _plain(inst.op)
    width = compare.result_width(plain)
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

    if isinstance(dst, V) and not op_writes_mask(plain):
        for lane in range(LANES):
            a, b = wanted.read(dst, lane), got.read(dst, lane)
            if a == b:
                continue
            one = WrongInstruction(text, inst.op, lane, inputs(lane), a, b)
            if compare.same(plain, width, a, b):
                near.append(one)
            else:
                yield one, False
    for r in (*_CARRIES, 125):
        if wanted.sgprs[r] != got.sgprs[r]:
            changed = wanted.sgprs[r] ^ got.sgprs[r]
            lane = (changed & -changed).bit_length() - 1 if inst.op.startswith("v_") else 0
            one = (text, inst.op, lane, inputs(lane), wanted.sgprs[r], got.sgprs[r])
            yield WrongInstruction(*one), False
    for a, b in ((wanted.scc, got.scc), (wanted.exec, got.exec)):
        if a != b:
            yield WrongInstruction(text, inst.op, 0, inputs(0), a, b), False
    yield from ((one, True) for one in near)
