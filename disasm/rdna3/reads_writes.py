"""The state that an instruction reads and writes, implicit operands included."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from sassxlate.disasm.rdna3.codec.encode.memory import is_off, present
from sassxlate.disasm.rdna3.codec.operands import LIT
from sassxlate.disasm.rdna3.instruction import Arg, Inst, S, Sp, V
from sassxlate.disasm.rdna3.tables.opcodes import OPS, Operand, OpInfo, info
from sassxlate.disasm.rdna3.tables.operand_codes import ALIASES, EXEC_LO, M0, NULL, VCC_LO


class RRef(NamedTuple):
    """One 32-bit piece of state.

    ``kind`` is ``v``, ``s`` (s0 to s105; 106 and 107 are vcc_lo and vcc_hi, 108 to 123 ttmp, 125
    m0, 126 and 127 exec_lo and exec_hi), ``scc``, ``mode``, or a whole memory: ``mem``
    (global, and flat), ``lds``, ``scratch``; ``number`` is 0 for all but ``v`` and ``s``.
    """

    kind: str
    number: int = 0


SCC: Final = RRef("scc")
MODE: Final = RRef("mode")
MEM: Final = RRef("mem")
LDS: Final = RRef("lds")
SCRATCH: Final = RRef("scratch")
_IMPLICIT: Final = {
    "scc": SCC,
    "mode": MODE,
    "vcc": RRef("s", VCC_LO),
    "exec": RRef("s", EXEC_LO),
    "m0": RRef("s", M0),
}
_MEMORY: Final = {
    "lds": (LDS,),
    "flat": (MEM, LDS, SCRATCH),
    "global": (MEM,),
    "buffer": (MEM,),
    "scratch": (SCRATCH,),
    "smem": (MEM,),
}
_FULL_DPP: Final = ("row_mask:0xf", "bank_mask:0xf", "bound_ctrl:1")


def registers(arg: Arg) -> tuple[RRef, ...]:
    """The state that an operand names; empty for constants, null, off and apertures."""
    if isinstance(arg, V):
        return tuple(RRef("v", arg.index + i) for i in range(arg.n))
    if isinstance(arg, S):
        return tuple(RRef("s", arg.index + i) for i in range(arg.n))
    if isinstance(arg, Sp):
        code = ALIASES.get(arg.name, LIT)
        if code < 128 and code != NULL:
            n = 2 if arg.name in ("vcc", "exec") else arg.n
            return tuple(RRef("s", code + i) for i in range(n))
        if arg.name in ("scc", "src_scc"):
            return (SCC,)
    return ()


def _pairs(inst: Inst, row: OpInfo) -> list[tuple[Operand, Arg]]:
    operands = row.args
    if row.kind in ("flat", "global", "scratch"):
        operands = present(inst, row)
    return list(zip(operands, inst.args, strict=False))


def _wide_exec(row: OpInfo, names: tuple[str, ...]) -> set[RRef]:
    out = {_IMPLICIT[name] for name in names}
    if "exec" in names and row.op.endswith("_b64") and row.op.startswith("s_"):
        out.add(RRef("s", EXEC_LO + 1))
    return out


def _is_masked_dpp(inst: Inst) -> bool:
    """Whether a DPP control may leave lanes of the destination unwritten."""
    return inst.dpp != "" and not all(item in inst.dpp for item in _FULL_DPP)


def _collect(inst: Inst, row: OpInfo, want: str) -> set[RRef]:
    out: set[RRef] = set()
    for operand, arg in _pairs(inst, row):
        wanted = want in operand.role
        if want == "r" and operand.role == "w" and operand.field == "vdst":
            wanted = _is_masked_dpp(inst)
        if wanted and not is_off(arg):
            out.update(registers(arg))
    out |= _wide_exec(row, row.reads if want == "r" else row.writes)
    if want == "r" and "SMEM" in row.forms and len(inst.args) > len(row.args):
        out.update(registers(inst.args[-1]))
    if (want == "r" and row.load) or (want == "w" and row.store) or row.atomic:
        out.update(_MEMORY[row.kind])
    return out


class Effects(NamedTuple):
    """What an instruction reads, what it writes, and the union of both."""

    reads: frozenset[RRef]
    writes: frozenset[RRef]
    touched: frozenset[RRef]


def effects(inst: Inst) -> Effects:
    """What :func:`reads` and :func:`writes` say, found at once.

    Raises:
        EncodeError: SX0501, an unknown mnemonic.
    """
    x, y = _one(inst.op, inst.args, inst.dpp, inst.glc), inst.y
    if y is None:
        return x
    more = _one(y.op, y.args, y.dpp, y.glc)
    return Effects(x.reads | more.reads, x.writes | more.writes, x.touched | more.touched)


@lru_cache(maxsize=1 << 16)
def _one(op: str, args: tuple[Arg, ...], dpp: str, glc: bool) -> Effects:
    """The answer by all that it depends on; cached, because the same arguments recur."""
    inst = Inst(op, args, dpp=dpp, glc=glc)
    row = OPS.get(op) or info(op)
    read, written = frozenset(_collect(inst, row, "r")), frozenset(_collect(inst, row, "w"))
    return Effects(read, written, read | written)


def reads(inst: Inst) -> frozenset[RRef]:
    """Everything an instruction reads: operands, EXEC, VCC, SCC, M0, MODE and memories.

    A destination counts as read if the instruction accumulates into it (v_fmac, v_writelane,
    s_cmov) or a DPP control can leave lanes of it unwritten, but not for lanes outside EXEC.

    Raises:
        EncodeError: SX0501, an unknown mnemonic.
    """
    return effects(inst).reads


def writes(inst: Inst) -> frozenset[RRef]:
    """Everything an instruction writes (of VGPRs: in the lanes of EXEC).

    Raises:
        EncodeError: SX0501, an unknown mnemonic.
    """
    return effects(inst).writes


def keeps_part(inst: Inst) -> bool:
    """Whether the destination keeps 16 or more of its old bits in every lane: 16-bit results and
    d16 loads write one half of a register."""
    row = OPS.get(inst.op) or info(inst.op)
    if "partial" in row.flags:
        return True
    return any(a.half and "w" in a.role and a.field == "vdst" for a in row.args)


def counters(inst: Inst) -> frozenset[str]:
    """The counters that an instruction increments until it completes: ``vm`` (loads and atomics
    that return), ``vs`` (stores and other atomics), ``lgkm`` (LDS, scalar loads, messages)."""
    row = OPS.get(inst.op) or info(inst.op)
    if row.kind in ("lds", "smem") or row.kind == "message":
        return frozenset({"lgkm"})
    if row.kind == "inv" and "SMEM" in row.forms:
        return frozenset({"lgkm"})
    if row.kind not in ("flat", "global", "scratch", "buffer"):
        return frozenset()
    returns = row.load or (row.atomic and inst.glc)
    out = {"vm" if returns else "vs"}
    if row.kind == "flat":
        out.add("lgkm")
    return frozenset(out)
