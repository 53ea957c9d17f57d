"""The host code of one instruction, for all registers, literals and offsets, as LLVM IR.

A shape is an instruction whose register numbers are canonical: operand k has VGPR 32 * k or SGPR
16 * k, and every constant is such an SGPR.  Its function finds a register at the frame's address
plus the value of a symbol, ``V0`` to ``V5`` or ``S0`` to ``S5``, which the library fills in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sassxlate.cfg.rdna3_flow import ModeBits
from sassxlate.disasm.rdna3.codec.decode.instruction import decode
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S
from sassxlate.disasm.rdna3.semantics import Mode
from sassxlate.disasm.rdna3.semantics.apply import lookup
from sassxlate.disasm.rdna3.tables.opcodes import OPS
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, SGPRS, VCC_LO
from sassxlate.domain.interface import is_zero
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.image.abi import WaveLayout, trap_fault
from sassxlate.lowering.emulate.stencils import frame
from sassxlate.lowering.emulate.wave.access import memory_helpers, vector_access
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.emulate.wave.registers import V32, State
from sassxlate.lowering.emulate.wave.straight import emit_straight
from sassxlate.lowering.emulate.wave.system import emit_system
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Function, Module, Val, const

if TYPE_CHECKING:
    from sassxlate.lowering.emulate.options import Alignment, Isa

OPERANDS = 6  # of an instruction: both halves of a dual one have three
V_STEP, S_STEP = 32, 16  # canonical registers from one operand to the next
# What the library fills in: registers, places of immediates, the offset of the instruction from the
# kernel's entry, that of the next one in the code.
SYMBOLS = (
    *(f"V{i}" for i in range(OPERANDS)),
    *(f"S{i}" for i in range(OPERANDS)),
    "IMM0",
    "IMM1",
    "PC",
    "NUMBER",
)
UNALIGNED: Final = 1 << 16  # native/hip/stencils.h has the same number
NEXT, TAKEN = "NEXT", "TAKEN"
_CALL = "preserve_nonecc void"


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """The canonical encoding (64 bits, and the DPP word if there is one), and MODE where the
    instruction depends on it, otherwise -1; `UNALIGNED` for an access to memory at any byte."""

    word: int
    dpp: int = 0
    mode: int = -1

    def instruction(self) -> Inst:
        """The instruction with canonical registers; a literal of the encoding is a register, too.

        Raises:
            EncodeError: SX0520 to SX0524, not an instruction.
        """
        data = self.word.to_bytes(8, "little") + bytes(8)
        if self.dpp:
            at = 4 if self.word >> 32 == 0 else 8
            data = data[:at] + self.dpp.to_bytes(4, "little") + bytes(8)
        return _without_constants(decode(data)[0], 0)


_HALF = OPERANDS // 2


def slots(op: str) -> Sequence[int]:
    """The number, from 0, of each operand's canonical register.  The literal of half a dual
    instruction has that of src1, which is a VGPR: three for each half."""
    fields = [operand.field for operand in OPS[op].args]
    if not op.startswith("v_dual_"):
        return range(len(fields))
    return [("vdst", "src0", "src1").index("src1" if f == "lit" else f) for f in fields]


def _without_constants(inst: Inst, first: int) -> Inst:
    numbers = list(slots(inst.op))
    # SMEM's offset in a register is no operand of the opcode's row; it comes after them.
    numbers += range(len(numbers), len(inst.args))
    inline = {n for n, o in zip(numbers, OPS[inst.op].args, strict=False) if o.cls == "vi"}
    args: list[Arg] = [
        S(S_STEP * (first + slot), 2) if isinstance(arg, I) and slot not in inline else arg
        for slot, arg in zip(numbers, inst.args, strict=False)
    ]
    y = inst.y and _without_constants(inst.y, _HALF)
    return replace(inst, args=tuple(args), y=y)


def preamble() -> str:
    """The symbols, as numbers below 2**31 that LLVM knows nothing else of."""
    return (
        "".join(f"@{name} = external global i8, !absolute_symbol !8\n" for name in SYMBOLS)
        + f"declare {_CALL} @{NEXT}(ptr)\ndeclare {_CALL} @{TAKEN}(ptr)\n"
        + "!8 = !{i64 0, i64 2147483648}\n"
    )


def symbol(name: str, addend: int = 0) -> str:
    """A symbol's value plus a number, as a 64-bit constant."""
    if not addend:
        return f"ptrtoint (ptr @{name} to i64)"
    return f"ptrtoint (ptr getelementptr (i8, ptr @{name}, i64 {addend}) to i64)"


def go(to: str) -> str:
    """Text: continues with another stencil."""
    return f"  musttail call {_CALL} @{to}(ptr %w)\n  ret void\n"


class StencilFunction(Function):
    """The function of a stencil: its buffers are in the frame."""

    def __init__(self, module: Module, name: str, attributes: str) -> None:
        super().__init__(module, f"{_CALL} @{name}(ptr %w)", f'{attributes} section ".text.{name}"')
        self._places: set[str] = set()

    def place(self, name: str, offset: str) -> str:
        """A pointer into the frame, made at the function's start."""
        if name not in self._places:
            self._places.add(name)
            self.entry.append(f"  {name} = getelementptr i8, ptr %w, i64 {offset}")
        return name

    def buffer(self, name: str, bytes_: int) -> str:
        at, size = frame.BUFFERS[name]
        if bytes_ > size:
            raise ValueError(f"the buffer {name} of {bytes_} bytes")
        return self.place(f"%buf.{name}", str(at))

    def go(self, to: str) -> None:
        self.lines += go(to).splitlines()


class _Frame(State):
    """Registers in the frame; every write is observable."""

    def __init__(self, fn: StencilFunction, d: LlvmDomain) -> None:
        super().__init__(fn, d)
        self.frame = fn

    def _init(self, slot: str, type_: str, offset: int | None) -> None:
        if slot != "%scc":
            raise ValueError(slot)
        self.frame.place(slot, str(frame.SCC))

    def _s_slot(self, i: int) -> str:
        if i < S_STEP * OPERANDS and i < SGPRS:
            number, part = divmod(i, S_STEP)
            return self.frame.place(f"%s{i}", symbol(f"S{number}", 4 * part))
        return self.frame.place(f"%s{i}", str(frame.SGPR + 4 * i))

    def _v_slot(self, i: int) -> str:
        number, part = divmod(i, V_STEP)
        offset = frame.VGPR + frame.VGPR_BYTES * part
        return self.frame.place(f"%v{i}", symbol(f"V{number}", offset))

    def flush(self) -> None:
        self.exec_mask()
        self._write_back(-1)
        if EXEC_LO in self._c.dirty and not self.d.avx512:
            self._store_lanes()

    def _store_lanes(self) -> None:
        lanes = self.d.splat(self.d.lanes_of(self.exec_mask()))
        ref = self.fn.emit_new(f"sext {lanes.type} {lanes.ref} to {V32}")
        p = self.frame.place("%lane.mask", str(frame.LANE_MASK))
        self.fn.do(f"store {V32} {ref}, ptr {p}, align 64")

    def exec_lanes(self) -> Val:
        if self.d.avx512:
            return super().exec_lanes()
        if self._c.exec_lanes is None:
            if EXEC_LO in self._c.dirty:
                return super().exec_lanes()
            p = self.frame.place("%lane.mask", str(frame.LANE_MASK))
            mask = self.fn.emit_new(f"load {V32}, ptr {p}, align 64")
            bits = self.fn.emit_new(f"icmp slt {V32} {mask}, zeroinitializer")
            self._c.exec_lanes = Val(bits, 1, True)
        return self._c.exec_lanes


def immediates(op: str) -> int:
    """How many immediates of an instruction the library fills in; the others are part of the
    shape."""
    row = lookup(op)
    if row is not None:
        return int("imm" in row.src or "immz" in row.src)
    kind = OPS[op].kind
    if op in ("ds_swizzle_b32", "ds_nop"):
        return 0
    if kind == "smem":
        return int(op.startswith("s_load_"))
    if kind in ("lds", "flat", "global", "scratch"):
        return 2 if "2addr" in op else 1
    return 0


class StencilBuilder:
    """Adds the functions of shapes to a module."""

    def __init__(self, isa: Isa, attributes: str) -> None:
        self.module = Module()
        self.isa = isa
        self.attributes = attributes

    def add(self, shape: Shape, name: str) -> None:
        """
        Raises:
            EmulatorError: SX0620 to SX0625, the emulated device does not have the instruction.
            EncodeError: SX0520 to SX0524, not an instruction.
        """
        inst = shape.instruction()
        fn = StencilFunction(self.module, name, self.attributes)
        d = LlvmDomain(fn, avx512=self.isa == "avx512", seed_offset=int(WaveLayout.STRICT_SEED))
        anywhere = shape.mode == UNALIGNED
        mode = ModeBits(shape.mode).mode() if shape.mode >= 0 and not anywhere else Mode()
        assert mode is not None
        align: Alignment = "unaligned" if anywhere else "natural"
        c = Context(self.module, fn, d, _Frame(fn, d), align, False, mode)
        c.symbolic_pc = fn.emit_new(f"trunc i64 {symbol('PC')} to i32")
        c.immediates = tuple(
            Val(self._word(fn, f"IMM{i}"), 64, False) for i in range(immediates(inst.op))
        )
        if inst.op.startswith("s_cbranch_"):
            self._conditional(c, fn, inst)
        elif inst.op in _ENDS:
            fn.do("ret void")
        elif inst.op == "s_trap":
            self._trap(c, fn, inst)
        elif inst.op in ("s_getpc_b64", "s_call_b64"):
            base = vector_access.member(c, WaveLayout.CODE_BASE)
            address = fn.emit_new(f"add i64 {base}, {symbol('NUMBER')}")
            c.write64(inst, inst.args[0], Val(address, 64, False))
            c.state.flush()
            fn.go(NEXT)
        elif inst.op == "s_setpc_b64":
            start = Val(vector_access.member(c, WaveLayout.CODE_BASE), 64, False)
            target = d.sub(c.read64(inst, inst.args[0]), start)
            place = fn.place("%target", str(frame.TARGET))
            fn.do(f"store i64 {target.ref}, ptr {place}, align 8")
            c.state.flush()
            fn.go(NEXT)
        elif emit_straight(c, inst) or emit_system(c, inst, shape.mode):
            c.state.flush()
            fn.go(NEXT)
        else:
            raise c.error(inst, "this instruction is not supported")
        fn.finish(name)

    @staticmethod
    def _word(fn: StencilFunction, name: str) -> str:
        p = fn.place(f"%{name.lower()}", symbol(name))
        return fn.emit_new(f"load i64, ptr {p}, align 8")

    def _conditional(self, c: Context, fn: StencilFunction, inst: Inst) -> None:
        st, d = c.state, c.d
        what = inst.op.removeprefix("s_cbranch_")
        if what in ("scc0", "scc1"):
            cond = st.read_scc() if what == "scc1" else d.not_(st.read_scc())
        elif what in ("vccz", "vccnz", "execz", "execnz"):
            zero = is_zero(d, st.read_s(VCC_LO if what.startswith("vcc") else EXEC_LO))
            cond = zero if what.endswith("cz") else d.not_(zero)
        else:
            raise c.error(inst, "this branch is not supported")
        fn.do(f"br i1 {cond.ref}, label %taken, label %next")
        fn.label("taken")
        fn.go(TAKEN)
        fn.label("next")
        fn.go(NEXT)

    def _trap(self, c: Context, fn: StencilFunction, inst: Inst) -> None:
        lane = c.d.and_(c.d.ctz(c.state.exec_mask()), const(31, 32))
        name = memory_helpers.fault(self.module)
        kind = int(trap_fault(inst.imm & 0xFF))
        where = f"i32 {c.pc_ref}, i32 {lane.ref}, i64 {inst.imm & 0xFF}"
        fn.do(f"call void {name}(ptr %w, i32 {kind}, {where})")
        fn.do("unreachable")


_ENDS = frozenset({"s_endpgm", "s_endpgm_saved"})

__all__ = [
    "NEXT", "SYMBOLS", "TAKEN", "EmulatorError", "Shape", "StencilBuilder", "immediates", "slots",
]  # fmt: skip
