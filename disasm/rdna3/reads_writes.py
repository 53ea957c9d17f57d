"""The state that an instruction reads and writes, implicit operands included."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from sassxlate.disasm.rdna3.codec.encode.memory import present
from sassxlate.disasm.rdna3.codec.operands import LIT
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, LabelRef, S, Sp, V
from sassxlate.disasm.rdna3.tables.opcodes import OPS, OpInfo, info
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
    return () if isinstance(arg, I | LabelRef) else _registers(arg)


@lru_cache(maxsize=1 << 12)
def _registers(arg: V | S | Sp) -> tuple[RRef, ...]:
    if isinstance(arg, V):
        return tuple(RRef("v", arg.index + i) for i in range(arg.n))
    if isinstance(arg, S):
        return tuple(RRef("s", arg.index + i) for i in range(arg.n))
    code = ALIASES.get(arg.name, LIT)
    if code < 128 and code != NULL:
        n = 2 if arg.name in ("vcc", "exec") else arg.n
        return tuple(RRef("s", code + i) for i in range(n))
    return (SCC,) if arg.name in ("scc", "src_scc") else ()


def _wide_exec(row: OpInfo, names: tuple[str, ...]) -> set[RRef]:
    out = {_IMPLICIT[name] for name in names}
    if "exec" in names and row.op.endswith("_b64") and row.op.startswith("s_"):
        out.add(RRef("s", EXEC_LO + 1))
    return out


def _is_masked(dpp: str) -> bool:
    """Whether a DPP control may leave lanes of the destination unwritten."""
    return not all(item in dpp for item in _FULL_DPP)


class _Form(NamedTuple):
    """What holds for every instruction of a mnemonic with as many operands: the places of the
    operands that it reads and writes, and the state that it does so without an operand."""

    read: tuple[int, ...]
    written: tuple[int, ...]
    always_read: frozenset[RRef]
    always_written: frozenset[RRef]


@lru_cache(maxsize=1 << 12)
def _form(op: str, count: int, masked: bool, glc: bool) -> _Form:
    """``masked``: a DPP control may leave lanes of the destination unwritten."""
    row = OPS.get(op) or info(op)
    operands = row.args
    if row.kind in ("flat", "global", "scratch"):
        operands = present(Inst(op, glc=glc), row)
    read: list[int] = []
    written: list[int] = []
    for place, operand in enumerate(operands[:count]):
        only = operand.role == "w" and operand.field == "vdst"
        if masked if only else "r" in operand.role:
            read.append(place)
        if "w" in operand.role:
            written.append(place)
    if "SMEM" in row.forms and count > len(row.args):
        read.append(count - 1)
    reads, writes = _wide_exec(row, row.reads), _wide_exec(row, row.writes)
    if row.load or row.atomic:
        reads.update(_MEMORY[row.kind])
    if row.store or row.atomic:
        writes.update(_MEMORY[row.kind])
    return _Form(tuple(read), tuple(written), frozenset(reads), frozenset(writes))


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


@lru_cache(maxsize=1 << 13)
def _one(op: str, args: tuple[Arg, ...], dpp: str, glc: bool) -> Effects:
    """The answer by all that it depends on; cached, because the same arguments recur, but not many:
    those of a kernel of 10,000 instructions would take more memory than its code."""
    form = _form(op, len(args), dpp != "" and _is_masked(dpp), glc)
    read = form.always_read.union(*(registers(args[place]) for place in form.read))
    written = form.always_written.union(*(registers(args[place]) for place in form.written))
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
