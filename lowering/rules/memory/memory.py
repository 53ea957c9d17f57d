"""Loads and stores of all spaces, constant loads, fences and cache control.

Scopes (LLVM's AMDGPU memory model, gfx11, CU mode): STRONG.GPU and .SYS loads read past the L0
(glc); MEMBAR waits for all traffic and invalidates L0 and L1; workgroup scope needs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.sass.instruction import Const, Instruction, Mem, Pred, Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.modifiers import ATOMIC, HINTS, MEMORY, SIZES
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import EXEC, NULL, OFF, VCC, ZERO

TRAP_MULTICAST = 0x58  # trap id: a read of multicast memory
_LOADS = {"U8": "u8", "S8": "i8", "U16": "u16", "S16": "i16", "64": "b64", "128": "b128"}
_STORES = {"U8": "b8", "S8": "b8", "U16": "b16", "S16": "b16", "64": "b64", "128": "b128"}
WORDS = {"64": 2, "128": 4}


def access(ins: Instruction, names: dict[str, str]) -> str:
    return next((names[m] for m in ins.modifiers if m in names), "b32")


def words(ins: Instruction) -> int:
    return next((WORDS[m] for m in ins.modifiers if m in WORDS), 1)


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand: a VGPR (address or offset), a scalar base or off, a number of bytes."""

    v: Arg
    s: Arg
    imm: int


def uniform_pair(c: RuleEmitter, reg: Reg) -> Arg:
    """A 64-bit uniform register as an SGPR pair, or as VGPRs if it lives there."""
    lo, hi = c.value(reg, 0), c.value(reg, 1)
    if isinstance(lo, S) and isinstance(hi, S) and lo.index % 2 == 0 and hi.index == lo.index + 1:
        return S(lo.index, 2)
    pair = c.vtemp(2)
    c.emit("v_mov_b32", V(pair.index), lo)
    c.emit("v_mov_b32", V(pair.index + 1), hi)
    return pair


def add64(c: RuleEmitter, a: Arg, b: Arg) -> V:
    """The 64-bit sum of two pairs (VGPR or SGPR), or of a pair and a signed constant."""
    out = c.vtemp(2)

    def half(x: Arg, i: int) -> Arg:
        match x:
            case V():
                return V(x.index + i)
            case S():
                return S(x.index + i)
            case I():
                return I(x.value >> 32 * i & 0xFFFFFFFF)
            case _:
                return x

    c.emit("v_add_co_u32", V(out.index), VCC, half(a, 0), half(b, 0))
    c.emit("v_add_co_ci_u32", V(out.index + 1), VCC, half(a, 1), half(b, 1), VCC)
    return out


def address64(c: RuleEmitter, mem: Mem, flat: bool = False) -> Address:
    """A 64-bit address; ``flat`` has no scalar base and only non-negative offsets of 12 bits."""
    low, high = (0, 4095) if flat else (-4096, 4095)
    imm, rest = (mem.offset, 0) if low <= mem.offset <= high else (0, mem.offset)
    base = mem.base if mem.base is not None and not mem.base.is_zero else None
    scalar = mem.ureg if mem.ureg is not None and not mem.ureg.is_zero else None
    if base is not None and base.file == "UR":
        scalar, base = base, None
    if mem.scale != 1:
        raise c.refuse("scaled 64-bit address")
    pair: Arg | None = None
    if scalar is not None:
        if scalar.width == 1:
            raise c.refuse("32-bit uniform part of a 64-bit address")
        pair = uniform_pair(c, scalar)
    if base is not None and base.width == 1:
        return _offset32(c, base, pair, rest, imm, flat)
    if base is not None:
        mine: Arg = c.vtuple_of(base, 2)
        pair = mine if pair is None else add64(c, mine, pair)
    if pair is None:
        return Address(_constant_pair(c, mem.offset), OFF, 0)
    if rest:
        pair = add64(c, pair, I(rest & 0xFFFFFFFFFFFFFFFF))
    if isinstance(pair, S):
        if flat:
            return Address(c.to_vgpr(pair, 2), OFF, imm)
        zero = c.vtemp()
        c.emit("v_mov_b32", zero, ZERO)
        return Address(zero, pair, imm)
    return Address(pair, OFF, imm)


def _constant_pair(c: RuleEmitter, value: int) -> V:
    pair = c.vtemp(2)
    c.emit("v_mov_b32", V(pair.index), I(value & 0xFFFFFFFF))
    c.emit("v_mov_b32", V(pair.index + 1), I(value >> 32 & 0xFFFFFFFF))
    return pair


def _offset32(
    c: RuleEmitter, base: Reg, pair: Arg | None, rest: int, imm: int, flat: bool
) -> Address:
    """An unsigned 32-bit register plus a 64-bit uniform base."""
    offset = c.to_v(c.value(base))
    if pair is None:
        pair = _constant_pair(c, 0)
    if isinstance(pair, S) and not rest and not flat:
        return Address(offset, pair, imm)
    wide = c.vtemp(2)
    c.emit("v_mov_b32", V(wide.index), offset)
    c.emit("v_mov_b32", V(wide.index + 1), ZERO)
    total = add64(c, wide, pair)
    if rest:
        total = add64(c, total, I(rest & 0xFFFFFFFFFFFFFFFF))
    return Address(total, OFF, imm)


def address32(c: RuleEmitter, mem: Mem, low: int, high: int) -> tuple[Arg, int]:
    """A 32-bit address (shared or local): its register part, or ZERO, and an offset in range."""
    imm, rest = (mem.offset, 0) if low <= mem.offset <= high else (0, mem.offset)
    total: Arg = ZERO
    if mem.base is not None and not mem.base.is_zero:
        total = c.value(mem.base)
        if mem.scale != 1:
            scaled = c.vtemp()
            c.emit("v_lshlrev_b32", scaled, I(mem.scale.bit_length() - 1), total)
            total = scaled
    terms: list[Arg] = []
    if mem.ureg is not None and not mem.ureg.is_zero:
        terms.append(c.value(mem.ureg))
    if rest:
        terms.append(I(rest & 0xFFFFFFFF))
    for term in terms:
        if total == ZERO:
            total = term
            continue
        summed = c.vtemp()
        c.emit("v_add_nc_u32", summed, total, term)
        total = summed
    return total, imm


def strong(ins: Instruction) -> bool:
    """The glc of a load: GPU and system scope read past the L0."""
    return (ins.has("STRONG") or ins.has("MMIO")) and not (ins.has("SM") or ins.has("CTA"))


def _beside_locks(c: RuleEmitter) -> None:
    """Refuses a strong 128-bit access in a kernel that changes 128 bits under a lock
    (:mod:`.atomic128`): it does not take the lock, and nothing guarantees that it is not torn."""
    if c.k.locks and c.ins.has("128") and (c.ins.has("STRONG") or c.ins.has("MMIO")):
        raise c.refuse("a strong 128-bit access in a kernel with 128-bit atomics")


def _load(c: RuleEmitter, op: str, *address: Arg, imm: int, glc: bool) -> None:
    """A load to Rd; zeros if Pp does not hold, and nothing is read then.  Pu is always false."""
    if "Pu" in c.ins.operands:
        c.pred_commit("Pu", ZERO, clean=True)
    told = c.operand("Pp") if "Pp" in c.ins.operands else None
    if not isinstance(told, Pred) or told.is_true:
        # Never a register that its own address still needs.
        c.raw(Inst(op, (c.dst_last(), *address), imm=imm, glc=glc))
        return
    n, save = words(c.ins), c.stemp()
    data = c.vtemp(n)
    for i in range(n):
        c.emit("v_mov_b32", V(data.index + i), ZERO)
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.emit("s_and_b32", EXEC, EXEC, c.mask(told))
    c.raw(Inst(op, (data, *address), imm=imm, glc=glc))
    c.raw(Inst("s_mov_b32", (EXEC, save)))
    dst = c.dst_last()
    for i in range(n):
        c.emit("v_mov_b32", V(dst.index + i), V(data.index + i))


def ldg(c: RuleEmitter) -> None:
    _beside_locks(c)
    at = address64(c, c.mem())
    op = "global_load_" + access(c.ins, _LOADS)
    _load(c, op, at.v, at.s, imm=at.imm, glc=strong(c.ins))


def stg(c: RuleEmitter) -> None:
    _beside_locks(c)
    at = address64(c, c.mem())
    data = c.vtuple("Rb", words(c.ins))
    op = "global_store_" + access(c.ins, _STORES)
    c.raw(Inst(op, (at.v, data, at.s), imm=at.imm))


def ld(c: RuleEmitter) -> None:
    _beside_locks(c)
    at = address64(c, c.mem(), flat=True)
    op = "flat_load_" + access(c.ins, _LOADS)
    _load(c, op, at.v, imm=at.imm, glc=strong(c.ins))


def st(c: RuleEmitter) -> None:
    _beside_locks(c)
    at = address64(c, c.mem(), flat=True)
    data = c.vtuple("Rb", words(c.ins))
    c.raw(Inst("flat_store_" + access(c.ins, _STORES), (at.v, data), imm=at.imm))


def lds(c: RuleEmitter) -> None:
    at, imm = address32(c, c.mem(), 0, 0xFFFF)
    op = "ds_load_" + access(c.ins, _LOADS)
    c.raw(Inst(op, (c.dst_last(), c.to_v(at)), imm=imm))


def sts(c: RuleEmitter) -> None:
    at, imm = address32(c, c.mem(), 0, 0xFFFF)
    data = c.vtuple("Rb", words(c.ins))
    c.raw(Inst("ds_store_" + access(c.ins, _STORES), (c.to_v(at), data), imm=imm))


def ldl(c: RuleEmitter) -> None:
    at, imm = address32(c, c.mem(), -4096, 4095)
    op = "scratch_load_" + access(c.ins, _LOADS)
    where: Arg = OFF if at == ZERO else c.to_v(at)
    c.raw(Inst(op, (c.dst_last(), where, OFF), imm=imm))


def stl(c: RuleEmitter) -> None:
    at, imm = address32(c, c.mem(), -4096, 4095)
    data = c.vtuple("Rb", words(c.ins))
    where: Arg = OFF if at == ZERO else c.to_v(at)
    c.raw(Inst("scratch_store_" + access(c.ins, _STORES), (where, data, OFF), imm=imm))


# --- constants ------------------------------------------------------------------------------------


def _const(c: RuleEmitter) -> Const:
    source = c.operand("src")
    if not isinstance(source, Const) or source.ur is not None:
        raise c.refuse("this kind of constant operand", "SX0413")
    if any(c.ins.has(m) for m in ("IL", "IS", "ISL")):
        raise c.refuse("segmented constant index", "SX0413")
    return source


def _plain(c: RuleEmitter, source: Const) -> Const:
    """Removes an index that is known to be 0: from sm_100 on, code addresses the driver's part
    of bank 0 at -160 times SR_CgaSize, which is 0 here."""
    indexed = source.index is not None and not source.index.is_zero
    if indexed and c.arch >= 100 and source.bank == 0 and source.offset in c.k.grid_words:
        return replace(source, index=None)
    return source


def ldc(c: RuleEmitter) -> None:
    source = _plain(c, _const(c))
    kind = access(c.ins, _LOADS)
    if source.index is not None and not source.index.is_zero:
        base = c.target.kernarg if source.bank == 0 else c.bank_pointer(source.bank)
        index = c.to_v(c.value(source.index))
        if source.offset:
            # The sum has 32 bits: an index may be negative, and the load's own offset is added
            # to the unsigned one in 64.
            summed = c.vtemp()
            c.emit("v_add_nc_u32", summed, index, I(source.offset & 0xFFFFFFFF))
            index = summed
        c.raw(Inst("global_load_" + kind, (c.dst_last(), index, base)))
        return
    dst = c.dst_last()
    if kind in ("b32", "b64", "b128"):
        for w in range(words(c.ins)):
            value = c.constant_word(source.bank, source.place + 4 * w)
            c.emit("v_mov_b32", V(dst.index + w), value)
        return
    value = c.constant_word(source.bank, source.place & ~3)
    op = "v_bfe_i32" if kind[0] == "i" else "v_bfe_u32"
    c.emit(op, dst, value, I(8 * (source.place & 3)), I(int(kind[1:])))


def uldc(c: RuleEmitter) -> None:
    """ULDC, LDCU: the same into uniform registers; without an index a scalar copy."""
    source = _plain(c, _const(c))
    kind = access(c.ins, _LOADS)
    indexed = source.index is not None and not source.index.is_zero
    if indexed or kind not in ("b32", "b64", "b128"):
        ldc(c)
        return
    reg = c.reg("Rd")
    for w in range(words(c.ins)):
        c.write_uniform(reg, w, c.constant_word(source.bank, source.place + 4 * w))


# --- order ----------------------------------------------------------------------------------------


def wait_all(c: RuleEmitter) -> None:
    c.raw(Inst("s_waitcnt", (), imm=0, fence=True))
    c.raw(Inst("s_waitcnt_vscnt", (NULL,), imm=0, fence=True))


def membar(c: RuleEmitter) -> None:
    wait_all(c)
    if c.ins.has("GPU") or c.ins.has("SYS") or c.ins.has("VC"):
        c.raw(Inst("buffer_gl1_inv"))
        c.raw(Inst("buffer_gl0_inv"))


def cctl(c: RuleEmitter) -> None:
    """Invalidates after the earlier loads: the load that acquires must be done.

    Prefetches and hints have no effect.
    """
    if c.ins.has("IVALL") or c.ins.has("IV"):
        wait_all(c)
        c.raw(Inst("buffer_gl1_inv"))
        c.raw(Inst("buffer_gl0_inv"))


def ldgmc(c: RuleEmitter) -> None:
    """LDGMC: a trap, for the driver's library gives no multicast memory."""
    skip, dst = c.k.label("Lnone"), c.dst_last()
    for i in range(dst.n):
        c.emit("v_mov_b32", V(dst.index + i), ZERO)
    c.branch("s_cbranch_execz", skip)
    c.raw(Inst("s_trap", (), imm=TRAP_MULTICAST))
    c.mark(skip)


def nothing(c: RuleEmitter) -> None:
    """Error reporting and hints: nothing to do in an in-order execution."""


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "LDG": MEMORY,
    "STG": MEMORY,
    "LDGMC": f"{ATOMIC} 32 E5M2x4 E5M2x8 E5M2x16 E4M3x4 E4M3x8 E4M3x16 F32ADD HPADD",
    "LD": MEMORY,
    "ST": MEMORY,
    "LDS": f"{SIZES} U",
    "STS": SIZES,
    "LDL": f"{SIZES} {HINTS}",
    "STL": f"{SIZES} {HINTS}",
    "LDC": "64 S8 U8 S16 U16 IL IS ISL",
    "ULDC": "64 S8 U8 S16 U16 IL IS ISL",
    "LDCU": "64 128 S8 U8 S16 U16",
    "MEMBAR": "SC ALL CTA SM GPU SYS VC MMIO",
    "CCTL": "E C D I U IV IVALL IVALLP PF1 PF2 WB WBALL WBALLP RS PML2 DML2 RML2",
    "ERRBAR": "",
    "CGAERRBAR": "",
    "ACQBULK": "",
    "PREEXIT": "",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("ldg", "LDG", ldg),
    Rule("stg", "STG", stg),
    Rule("ldgmc", "LDGMC", ldgmc),
    Rule("ld", "LD", ld),
    Rule("st", "ST", st),
    Rule("lds", "LDS", lds),
    Rule("sts", "STS", sts),
    Rule("ldl", "LDL", ldl),
    Rule("stl", "STL", stl),
    Rule("ldc", "LDC", ldc),
    Rule("uldc", "ULDC", uldc),
    Rule("ldcu", "LDCU", uldc),
    Rule("membar", "MEMBAR", membar),
    Rule("cctl", "CCTL", cctl),
    Rule("errbar", "ERRBAR", nothing),
    Rule("cgaerrbar", "CGAERRBAR", nothing),
    # Launches of a stream run one after another: a grid's dependencies are done when it starts.
    Rule("acqbulk", "ACQBULK", nothing),
    Rule("preexit", "PREEXIT", nothing),
)
