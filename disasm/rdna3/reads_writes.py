"""The state that an instruction reads and writes, implicit operands included."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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


# Sets of state as integers: the number of a piece's bit, of ``v`` and ``s`` the first one's.
FIRST_VGPR: Final = 136
FIRST: Final[dict[str, int]] = {
    "s": 0, "scc": 128, "mode": 129, "mem": 130, "lds": 131, "scratch": 132, "v": FIRST_VGPR,
}  # fmt: skip
_ALONE: Final = {bit: kind for kind, bit in FIRST.items()}
SGPR_BITS: Final = (1 << 128) - 1
OTHER_BITS: Final = ((1 << FIRST["v"]) - 1) & ~SGPR_BITS  # what is no register


def bits_of(refs: Iterable[RRef]) -> int:
    """A set of state as an integer."""
    bits = 0
    for kind, number in refs:
        bits |= 1 << FIRST[kind] + number
    return bits


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
# Stands for code that is kept as it is.  Its operands are what that code writes, READS, and what it
# reads; of memory, EXEC and MODE it is taken to do everything but to leave EXEC and MODE changed.
MACRO: Final = ".macro"
READS: Final = Sp("reads")
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


# The state that special operands name, as integers.
_SPECIAL: Final[dict[Sp, int]] = {}


def _named(arg: Arg) -> int:
    """What :func:`registers` says, as an integer."""
    if isinstance(arg, V):
        return (1 << arg.n) - 1 << FIRST_VGPR + arg.index
    if isinstance(arg, S):
        return (1 << arg.n) - 1 << arg.index
    if not isinstance(arg, Sp):
        return 0
    known = _SPECIAL.get(arg)
    if known is None:
        known = _SPECIAL[arg] = bits_of(registers(arg))
    return known


_SETS: Final[dict[int, frozenset[RRef]]] = {}
_MOST_SETS: Final = 1 << 13  # remembered


def refs_of(bits: int) -> frozenset[RRef]:
    """The set of state of an integer."""
    known = _SETS.get(bits)
    if known is None:
        if len(_SETS) >= _MOST_SETS:
            _SETS.clear()
        known = _SETS[bits] = frozenset(_pieces(bits))
    return known


def _pieces(bits: int) -> list[RRef]:
    found: list[RRef] = []
    while bits:
        number = (bits & -bits).bit_length() - 1
        bits &= bits - 1
        if number >= FIRST_VGPR:
            found.append(RRef("v", number - FIRST_VGPR))
        elif number < FIRST["scc"]:
            found.append(RRef("s", number))
        else:
            found.append(RRef(_ALONE[number]))
    return found


def _wide_exec(row: OpInfo, names: tuple[str, ...]) -> int:
    bits = bits_of([_IMPLICIT[name] for name in names])
    if "exec" in names and row.op.endswith("_b64") and row.op.startswith("s_"):
        bits |= 1 << EXEC_LO + 1
    return bits


def _is_masked(dpp: str) -> bool:
    """Whether a DPP control may leave lanes of the destination unwritten."""
    return not all(item in dpp for item in _FULL_DPP)


class _Form(NamedTuple):
    """What holds for every instruction of a mnemonic with as many operands: the places of the
    operands that it reads and writes, and the state that it does so without an operand."""

    read: tuple[int, ...]
    written: tuple[int, ...]
    always_read: int
    always_written: int


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
        reads |= bits_of(_MEMORY[row.kind])
    if row.store or row.atomic:
        writes |= bits_of(_MEMORY[row.kind])
    return _Form(tuple(read), tuple(written), reads, writes)


@dataclass(frozen=True, slots=True)
class Effects:
    """What an instruction reads and what it writes, as integers (:data:`FIRST`) and as sets, which
    few ask for."""

    read_bits: int
    write_bits: int

    @property
    def reads(self) -> frozenset[RRef]:
        return refs_of(self.read_bits)

    @property
    def writes(self) -> frozenset[RRef]:
        return refs_of(self.write_bits)


def effects(inst: Inst) -> Effects:
    """What :func:`reads` and :func:`writes` say, found at once.

    Raises:
        EncodeError: SX0501, an unknown mnemonic.
    """
    y = inst.y
    if y is None:
        return _one(inst)
    x, more = _one(inst), _one(y)
    return Effects(x.read_bits | more.read_bits, x.write_bits | more.write_bits)


# By mnemonic and operands, of instructions without a DPP control and GLC.
_SEEN: Final[dict[tuple[str, tuple[Arg, ...]], Effects]] = {}
# Remembered, because the same operands recur, but not more: those of a kernel of 10,000
# instructions would take more memory than its code.
_MOST_SEEN: Final = 1 << 13


def _one(inst: Inst) -> Effects:
    """The answer for an instruction without its second half."""
    if inst.dpp or inst.glc:
        return _found(inst)
    key = (inst.op, inst.args)
    known = _SEEN.get(key)
    if known is None:
        known = _found(inst)
        if len(_SEEN) >= _MOST_SEEN:
            _SEEN.clear()
        _SEEN[key] = known
    return known


def _found(inst: Inst) -> Effects:
    args, dpp = inst.args, inst.dpp
    if inst.op == MACRO:
        return _of_macro(args)
    form = _form(inst.op, len(args), dpp != "" and _is_masked(dpp), inst.glc)
    read, written = form.always_read, form.always_written
    for place in form.read:
        read |= _named(args[place])
    for place in form.written:
        written |= _named(args[place])
    return Effects(read, written)


def _of_macro(args: tuple[Arg, ...]) -> Effects:
    at = args.index(READS)
    written = bits_of((MEM, LDS, SCRATCH))
    read = written | bits_of((_IMPLICIT["exec"], MODE))
    for arg in args[:at]:
        written |= _named(arg)
    for arg in args[at + 1 :]:
        read |= _named(arg)
    return Effects(read, written)


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
    if inst.op == MACRO:  # what it may leave as it is, counts as read
        return False
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
