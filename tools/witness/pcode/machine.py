"""One wave as the pseudocode sees it: registers, lanes, memory, and the effects of modifiers.

An instruction is run lane by lane on AMD's description of its opcode.  Operand selection, neg, abs,
op_sel and clamp are implemented again here, from the manual, and not taken from the semantics.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from tools.witness.pcode import readings
from tools.witness.pcode import softfloat as sf

from .described import description, descriptions, roles
from .functions import FUNCTIONS
from .language import execute, views
from .values import Array, Cell, Frame, Function, NotDescribed, Place, Table, Value

LANES = 32
_FULL = (1 << LANES) - 1


# --- the wave ------------------------------------------------------------------------------------

_SPECIAL = {"vcc_lo": 106, "vcc_hi": 107, "m0": 125, "exec_lo": 126, "exec_hi": 127}


@dataclass(slots=True)
class Wave:
    """The state of 32 lanes; ``memory`` is what addresses reach, as bytes."""

    vgprs: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    sgprs: dict[int, int] = field(default_factory=dict[int, int])
    scc: int = 0
    exec: int = _FULL
    round32: int = 0
    round16_64: int = 0
    denormals: int = 15
    memory: bytearray = field(default_factory=bytearray)
    lds: bytearray = field(default_factory=bytearray)
    origin: int = 0  # the address of memory's first byte
    completed: bool = False  # descriptions as the manual's words complete them
    private: int = 0  # bytes of scratch per lane, one after the other; 0: memory is shared

    def rules(self, width: int) -> sf.Rules:
        """MODE: denormals' bit 0 of a pair keeps inputs, bit 1 results (manual, section 3.5)."""
        bits = self.denormals & 3 if width == 32 else self.denormals >> 2
        how = self.round32 if width == 32 else self.round16_64
        return sf.Rules(how, not bits & 1, not bits & 2)

    # -- registers

    def scalar(self, code: int) -> int:
        return self.exec if code == 126 else self.sgprs.get(code, 0)

    def put_scalar(self, code: int, n: int) -> None:
        if code == 126:
            self.exec = n & _FULL
        else:
            self.sgprs[code] = n & _FULL

    def code(self, arg: Arg) -> int:
        if isinstance(arg, S):
            return arg.index
        if isinstance(arg, Sp) and arg.name in _SPECIAL:
            return _SPECIAL[arg.name]
        raise NotDescribed(f"a scalar operand {arg}")

    def read(self, arg: Arg, lane: int) -> int:
        """The operand's bits: 32 per register (64 for an immediate)."""
        if isinstance(arg, I):
            return arg.value & ((1 << 64) - 1)
        if isinstance(arg, V):
            return sum(self.vgprs[arg.index + i][lane] << 32 * i for i in range(arg.n))
        if isinstance(arg, Sp) and arg.name == "null":
            return 0
        code = self.code(arg)
        n = arg.n if isinstance(arg, S | Sp) else 1
        return sum(self.scalar(code + i) << 32 * i for i in range(n))


# The text has these sources as words; VOP3's input modifiers are defined for them, too: LLVM's
# backend folds negations into them for every processor.
_SIGNED_WORDS = {"v_cndmask_b32": 32}


@cache
def _float_width(text: str, name: str) -> int:
    for view in views(text, name):
        if view[0] == "f":
            return int(view[1:])
    return 0


@cache
def _is_half(text: str, name: str) -> bool:
    return any(view[-2:] == "16" for view in views(text, name))


def _signs(n: int, width: int, absolute: int, negate: int) -> int:
    top = 1 << (width - 1)
    if absolute:
        n &= ~top
    return n ^ top if negate else n


_MIXED = re.compile(r"v_fma_mix|v_dot|v_pk_")


def operand(wave: Wave, inst: Inst, text: str, name: str, arg: Arg, i: int, lane: int) -> int:
    n = wave.read(arg, lane)
    op = inst.op
    if op.startswith(("v_pk_", "v_dot2_f32")) and op != "v_pk_fmac_f16":
        low = n >> (16 if inst.op_sel >> i & 1 else 0) & 0xFFFF
        high = n >> (16 if inst.op_sel_hi >> i & 1 else 0) & 0xFFFF
        if "f16" in op:
            low ^= (inst.neg >> i & 1) << 15
            high ^= (inst.neg_hi >> i & 1) << 15
        if op.startswith("v_dot2_f32") and i == 2:
            return _signs(n, 32, 0, inst.neg >> i & 1)
        return high << 16 | low
    if op.startswith("v_fma_mix"):
        top = 1 << 31
        if inst.op_sel_hi >> i & 1:
            top = 1 << (31 if inst.op_sel >> i & 1 else 15)
        if inst.abs >> i & 1:
            n &= ~top
        return n ^ top if inst.neg >> i & 1 else n
    if _MIXED.match(op):
        return n
    width = _float_width(text, name) or _SIGNED_WORDS.get(op, 0)
    if _is_half(text, name) and inst.op_sel >> i & 1 and not isinstance(arg, I):
        n >>= 16
    if width:
        n = _signs(n, width, inst.abs >> i & 1, inst.neg >> i & 1)
    return n


class Bytes(Cell):
    """Sixteen bytes of memory from an address."""

    def __init__(self, memory: bytearray, at: int) -> None:
        super().__init__(0, 128)
        self.memory, self.place = memory, at

    def get(self) -> int:
        return int.from_bytes(self.memory[self.place : self.place + 16].ljust(16, b"\0"), "little")

    def put(self, n: int) -> None:
        size = min(16, len(self.memory) - self.place)
        data = (n & ((1 << 128) - 1)).to_bytes(16, "little")
        self.memory[self.place : self.place + size] = data[:size]


class _Register(Cell):
    """A lane of a VGPR."""

    def __init__(self, wave: Wave, index: int, lane: int) -> None:
        super().__init__(0, 32)
        self.wave, self.index, self.lane = wave, index, lane

    def get(self) -> int:
        return self.wave.vgprs[self.index][self.lane]

    def put(self, n: int) -> None:
        self.wave.vgprs[self.index][self.lane] = n & _FULL


def _other(op: str) -> Function:
    """An instruction that another's description calls as a function."""

    def call(frame: Frame, args: list[Value]) -> Value:
        names: dict[str, Place | Value] = dict(_constants())
        for i, a in enumerate(args):
            names[f"S{i}"] = Cell(a.n, 64)
        result = Cell(0, 64)
        names["D0"] = result
        execute(description(op), Frame(names, frame.functions, frame.rules))
        return Value(result.n & ((1 << args[0].w) - 1), args[0].w, args[0].k)

    return call


def _functions() -> dict[str, Function]:
    out = dict(FUNCTIONS)
    for op in descriptions():
        if op.startswith("v_") and op not in out:
            out[op] = _other(op)
    return out


_ALL: dict[str, Function] = {}


def functions() -> dict[str, Function]:
    if not _ALL:
        _ALL.update(_functions())
    return _ALL


@cache
def _constants() -> dict[str, Value]:
    return {
        "WAVE32": Value(1, 1, "u"),
        "WAVE64": Value(0, 1, "u"),
        "WAVE_MODE.IEEE": Value(0, 1, "u"),
        "ROUND_TOWARD_ZERO": Value(3, 32, "u"),
    }


# --- running -------------------------------------------------------------------------------------


def step(wave: Wave, inst: Inst) -> None:
    """Runs one instruction on the wave.  Raises `NotDescribed`."""
    if inst.dpp or inst.y is not None or inst.omod:
        raise NotDescribed("a modifier that the witness does not know")
    op = inst.op
    if op.startswith(("global_", "flat_", "scratch_", "ds_")) and "permute" not in op:
        _memory(wave, inst)
    elif op.startswith(("v_readlane", "v_readfirstlane", "v_writelane", "v_permlane")) or (
        op.startswith("ds_")
    ):
        _crossing(wave, inst)
    elif op.startswith("s_"):
        _scalar(wave, inst)
    else:
        _vector(wave, inst)


def _frame(wave: Wave, names: dict[str, Place | Value], *, flush: bool = False) -> Frame:
    names.update(_constants())
    mode = Cell(0, 32)
    names["ROUND_MODE"] = mode  # what a description assigns to it
    plain = {w: wave.rules(w) for w in (16, 32, 64)}

    def rules(width: int) -> sf.Rules:
        r = plain[width]
        if not flush and not mode.n:
            return r
        return sf.Rules(mode.n or r.round, flush or r.flush_in, flush or r.flush_out)

    return Frame(names, functions(), rules)


def _scalar(wave: Wave, inst: Inst) -> None:
    text = description(inst.op)
    names: dict[str, Place | Value] = {}
    printed = roles(inst.op, len(inst.args)).names
    result: Cell | None = None
    for name, arg in zip(printed, inst.args, strict=False):
        if name == "D0":
            # What is left of a result's upper half belongs to another register.
            result = Cell(wave.read(arg, 0), 64)
            names[name] = result
        else:
            width = 16 if name == "SIMM16" else 64
            names[name] = Cell(wave.read(arg, 0) & ((1 << width) - 1), width)
    if "SIMM16" in text and "SIMM16" not in names:
        names["SIMM16"] = Cell(inst.imm & 0xFFFF, 16)
    scc, mask = Cell(wave.scc, 1), Cell(wave.exec, 64)
    names |= {"SCC": scc, "EXEC": mask}
    execute(text, _frame(wave, names))
    if result is not None:
        dst = inst.args[0]
        n = dst.n if isinstance(dst, S | Sp) else 1
        for i in range(n):
            wave.put_scalar(wave.code(dst) + i, result.n >> 32 * i & _FULL)
    wave.scc = scc.n & 1
    if "EXEC" in text:
        wave.exec = mask.n & _FULL


def _vector(wave: Wave, inst: Inst) -> None:
    text = description(inst.op, read=wave.completed)
    flush = wave.completed and readings.flushes(inst.op)
    role = roles(inst.op, len(inst.args))
    printed = list(zip(role.names, inst.args, strict=False))
    carry_in = next((a for name, a in printed if name == "CARRY"), Sp("vcc_lo"))
    out_mask = next((a for name, a in printed if name == "MASK"), None)
    dst = next((a for name, a in printed if name == "D0"), None)
    hits = 0
    writes: list[tuple[int, int]] = []
    for lane in range(LANES):
        if not wave.exec >> lane & 1:
            continue
        names: dict[str, Place | Value] = {"laneId": Value(lane, 32, "u")}
        given = 0
        mixed: list[Cell] = []
        for name, arg in printed:
            if name in ("MASK", "CARRY", "D0"):
                continue
            if name == "SIMM32":
                names[name] = Cell(wave.read(arg, lane) & _FULL, 32)
                continue
            cell = Cell(operand(wave, inst, text, name, arg, given, lane), 64)
            names[name] = cell
            mixed.append(Cell(cell.n & _FULL, 32))
            given += 1
        names["S"] = Array(mixed)
        names |= {
            "OPSEL": Cell(inst.op_sel, 3), "OPSEL_HI": Cell(inst.op_sel_hi, 3),
            "NEG": Cell(inst.neg, 3),
        }  # fmt: skip
        carry = wave.read(carry_in, 0) & _FULL
        vcc = Cell(carry, 64)
        names["VCC"] = vcc
        result, second = Cell(0, 64), Cell(0, 64)
        if dst is not None:
            result.n = wave.read(dst, lane)
            high = inst.op_sel >> 3 & 1
            if high and _is_half(text, "D0"):
                result.n = result.n >> 16 & 0xFFFF
        names["D0"], names["D1"] = result, second
        if "S2" not in names:
            names["S2"] = Cell(result.n, 64)  # v_fmac: the addend is the destination
        mask = Cell(wave.exec, 64)
        names["EXEC"] = mask
        frame = _frame(wave, names, flush=flush)
        if wave.completed and readings.keeps(inst.op):
            frame.rules = lambda width: sf.Rules()
        execute(text, frame)
        if op_writes_mask(inst.op):
            hits |= (result.n >> lane & 1) << lane
        elif out_mask is not None:
            bit = second.n if "D1" in text else vcc.n if "VCC = 0x" in text else vcc.n >> lane
            hits |= (bit & 1) << lane
        elif role.implicit == "EXEC":
            hits |= (mask.n >> lane & 1) << lane
        if dst is not None:
            writes.append((lane, _finished(wave, inst, text, result.n, dst, lane)))
    for lane, n in writes:
        assert isinstance(dst, V)
        for i in range(dst.n):
            wave.vgprs[dst.index + i][lane] = n >> 32 * i & _FULL
    if role.implicit == "EXEC":
        wave.exec = hits
    elif out_mask is not None and not (isinstance(out_mask, Sp) and out_mask.name == "null"):
        wave.put_scalar(wave.code(out_mask), hits)


def op_writes_mask(op: str) -> bool:
    return op.startswith("v_cmp_")


def _finished(wave: Wave, inst: Inst, text: str, n: int, dst: Arg, lane: int) -> int:
    """The result after clamp, in its half of the register."""
    width = _float_width(text, "D0")
    if "f16" in inst.op and inst.op.startswith("v_pk_"):
        width = 16
    if inst.op.startswith(("v_fma_mixlo", "v_fma_mixhi")):
        width = 16
    if inst.clamp:
        if not width:
            raise NotDescribed("clamp of an integer")
        parts = [0] if width == 64 or not inst.op.startswith("v_pk_") else [0, 16]
        if inst.op.startswith("v_fma_mixhi"):
            parts = [16]
        for at in parts:
            mask = (1 << width) - 1
            n = n & ~(mask << at) | _clamped(n >> at & mask, width) << at
    if isinstance(dst, V) and inst.op_sel >> 3 & 1 and width == 16 and "v_pk" not in inst.op:
        old = wave.read(dst, lane)
        return old & 0xFFFF | (n & 0xFFFF) << 16
    return n


def _clamped(n: int, width: int) -> int:
    """[0, 1]; NaN is 0 under DX10_CLAMP (manual, section 3.5)."""
    f = sf.FORMATS[width]
    one = f.bias << f.fraction
    if sf.is_nan(f, n) or sf.less(f, n, 0) or sf.equal(f, n, 0):
        return 0
    return one if sf.less(f, one, n) else n


def _crossing(wave: Wave, inst: Inst) -> None:
    """Descriptions that name lanes themselves: run once for the wave."""
    text = description(inst.op)
    args = list(inst.args)

    def lane_row(lane: int) -> Table:
        return Table(lambda index: _Register(wave, index, lane))

    names: dict[str, Place | Value] = {
        "VGPR": Table(lane_row),
        "EXEC": Cell(wave.exec, 64),
        "EXEC_LO": Cell(wave.exec, 32),
        "OFFSET": Cell(inst.imm & 0xFFFF, 32),
    }

    def register(arg: Arg) -> Cell:
        if not isinstance(arg, V):
            raise NotDescribed("a scalar in the place of a VGPR")
        return Cell(arg.index, 32)

    result = Cell(0, 64)
    if inst.op.startswith("ds_"):
        names |= {"VDST": register(args[0]), "ADDR": register(args[1]), "DATA0": register(args[2])}
    elif inst.op.startswith("v_read"):
        names |= {"D0": result, "SRC0": register(args[1])}
        if len(args) > 2:
            names["S1"] = Cell(wave.read(args[2], 0) & _FULL, 64)
    elif inst.op.startswith("v_writelane"):
        names |= {"VDST": register(args[0]), "S0": Cell(wave.read(args[1], 0) & _FULL, 64)}
        names["S1"] = Cell(wave.read(args[2], 0) & _FULL, 64)
    else:
        names |= {"VDST": register(args[0]), "SRC0": register(args[1])}
        for i in (1, 2):
            names[f"S{i}"] = Cell(wave.read(args[1 + i], 0) & _FULL, 64)
    execute(text, _frame(wave, names))
    if inst.op.startswith("v_read"):
        wave.put_scalar(wave.code(args[0]), result.n & _FULL)


def _memory(wave: Wave, inst: Inst) -> None:
    """Loads, stores and atomics of one lane after the other; addresses are given by the case."""
    op = inst.op
    text = description(memory_name(op))
    shared = op.startswith("ds_")
    args = list(inst.args)
    loads = "_load_" in op
    returns = loads or ("_rtn_" in op if shared else inst.glc and "atomic" in op)
    dst = args.pop(0) if returns else None
    address, data = args[0], [a for a in args[1:] if isinstance(a, V)]
    base: Arg | None = None
    if op.startswith("global_") and args[-1] != Sp("off") and isinstance(args[-1], S):
        base = args[-1]
    memory = wave.lds if shared else wave.memory
    for lane in range(LANES):
        if not wave.exec >> lane & 1:
            continue
        at = 0 if isinstance(address, Sp) else wave.read(address, lane)
        if base is not None:
            at += wave.read(base, 0)
        at += 0 if "OFFSET" in text else inst.imm
        at &= (1 << 64) - 1 if not shared else _FULL
        if wave.private:
            at += lane * wave.private
        names: dict[str, Place | Value] = {
            "ADDR": Value(at, 64, "u"), "ADDR_BASE": Value(at, 64, "u"),
            "OFFSET": Value(inst.imm, 32, "u"), "OFFSET0": Value(inst.imm, 32, "u"),
            "OFFSET1": Value(inst.imm2, 32, "u"),
            "MEM": Table(lambda place: Bytes(memory, place - wave.origin)),
        }  # fmt: skip
        for name, arg in zip(_data_names(text), data, strict=False):
            names[name] = Cell(wave.read(arg, lane), 128)
        width = dst.n if isinstance(dst, V) else 1
        old = wave.read(dst, lane) if dst is not None else 0
        result = Cell(old, 128)
        names["RETURN_DATA"] = result
        if loads and "VDATA" in text:
            names["VDATA"] = result
        frame = _frame(wave, names)
        if wave.completed and readings.flushes(op):
            frame.rules = lambda width: sf.Rules(flush_in=True, flush_out=True)
        execute(text, frame)
        if dst is not None:
            assert isinstance(dst, V)
            for i in range(width):
                wave.vgprs[dst.index + i][lane] = result.n >> 32 * i & _FULL


def memory_name(op: str) -> str:
    return (
        op
        if op in descriptions()
        else op.replace("flat_", "global_").replace("scratch_", "global_")
    )


def _data_names(text: str) -> tuple[str, ...]:
    return ("VDATA",) if "VDATA" in text else ("DATA", "DATA2")
