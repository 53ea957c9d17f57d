"""Applies an RDNA3 instruction to a machine: reads the operands, evaluates the semantics, writes
results.

The machine is the emulator's, over LLVM values, or the verifier's, over terms of a solver: what
op_sel, neg, clamp, DPP and the implicit operands do is defined here once for both.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Protocol, TypeVar, cast

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Sp
from sassxlate.disasm.rdna3.semantics import Mode, Semantics, semantics_table
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO
from sassxlate.domain.interface import IEEE, Domain, fabs, fneg, is_nan

T = TypeVar("T")


class AluState(Protocol[T]):
    """The state that an instruction reads and writes.  A per-lane value and a per-wave one are both
    a T."""

    @property
    def d(self) -> Domain[T]: ...
    @property
    def mode(self) -> Mode: ...
    def error(self, inst: Inst, message: str) -> Exception: ...
    def read32(self, inst: Inst, arg: Arg, /) -> T: ...
    def read64(self, inst: Inst, arg: Arg, /) -> T: ...
    def write32(self, inst: Inst, arg: Arg, value: T, /) -> None:
        """In the active lanes, if it is a VGPR."""
        ...

    def write64(self, inst: Inst, arg: Arg, value: T, /) -> None: ...
    def scalar_index(self, inst: Inst, arg: Arg, /) -> int:
        """The operand code of a scalar register."""
        ...

    def write_scalar(self, index: int, value: T, /) -> None: ...
    def scc(self) -> T: ...
    def write_scc(self, value: T, /) -> None: ...
    def exec_mask(self) -> T: ...
    def mask(self, index: int, /) -> T:
        """The per-lane bit of a scalar register."""
        ...

    def write_mask(self, index: int, value: T, /) -> None:
        """Writes one bit per lane; those of inactive lanes become 0."""
        ...

    def lanes_of(self, mask: T, /) -> T:
        """The per-lane bit of a 32-bit mask."""
        ...

    def mask_of(self, lanes: T, /) -> T:
        """The 32-bit mask of a per-lane bit."""
        ...

    def float_result(self, value: T, /, kept: bool = False) -> T:
        """The bits written for a floating-point result.  ``kept``: its NaN is that of a double."""
        ...

    def lane_number(self) -> T: ...
    def immediate(self, inst: Inst, /) -> T:
        """The 16-bit immediate, extended to 32 bits (`immediate`)."""
        ...

    def permuted(self, inst: Inst, arg: Arg, /) -> T:
        """Source 0 after the instruction's DPP control."""
        ...

    def kept(self, inst: Inst, arg: Arg, value: T, /) -> T:
        """The result if the DPP control lets it be written, otherwise the old value."""
        ...


_WIDTH = {
    "b16": 16, "f16": 16, "b32": 32, "f32": 32, "b64": 64, "f64": 64, "raw": 32, "mix": 32,
}  # fmt: skip


_EXTREMES = ("v_min", "v_max", "v_dual_min", "v_dual_max", "v_med3", "v_pk_min", "v_pk_max")


def lookup(op: str) -> Semantics | None:
    """A row by mnemonic; a half of a dual instruction means what the single one does."""
    table = semantics_table()
    return table.get(op) or (table.get("v_" + op[7:]) if op.startswith("v_dual_") else None)


def apply(c: AluState[T], inst: Inst, row: Semantics) -> None:
    """One instruction, or both halves of a dual one: all sources are read before any write.

    Raises the machine's error for a modifier that the semantics do not read: what the hardware
    does with it is not defined here.
    """
    _modifiers(c, inst, row)
    results = _evaluate(c, inst, row)
    if inst.y is not None:
        other = lookup(inst.y.op)
        if other is None:
            raise c.error(inst.y, "this instruction is not supported")
        _modifiers(c, inst.y, other)
        second = _evaluate(c, inst.y, other)
        _write(c, inst.y, other, second)
    _write(c, inst, row, results)


def _evaluate(c: AluState[T], inst: Inst, row: Semantics) -> list[T]:
    if row.dst[0] in ("p16", "pf16"):
        return [_packed(c, inst, row)]
    results = _apply(c, inst, row, _sources(c, inst, row))
    return [_modify(c, inst, kind, r) for kind, r in zip(row.dst, results, strict=True)]


def _apply(c: AluState[T], inst: Inst, row: Semantics, sources: list[T]) -> list[T]:
    fn = row.saturating if inst.clamp and row.saturating is not None else row.fn
    out: object = fn(c.d, c.mode, *sources) if row.mode else fn(c.d, *sources)
    if isinstance(out, tuple):
        return list(cast("tuple[T, ...]", out))
    return [cast(T, out)]


def _packed(c: AluState[T], inst: Inst, row: Semantics) -> T:
    """The function of a half, on both halves."""
    halves: list[T] = []
    for high in (0, 1):
        sources: list[T] = []
        for i, kind in enumerate(row.src):
            if kind.startswith("acc:"):
                sources.append(c.d.extract(c.read32(inst, inst.args[0]), 16 * high, 16))
            else:
                sources.append(_pick_half(c, inst, inst.args[1 + i], i, high, kind == "pf16"))
        halves.append(_modify(c, inst, row.dst[0][1:], _apply(c, inst, row, sources)[0]))
    return c.d.concat(halves[1], halves[0])


def _pick_half(c: AluState[T], inst: Inst, arg: Arg, i: int, high: int, is_float: bool) -> T:
    """The half of source i that op_sel or op_sel_hi selects, negated by neg_lo or neg_hi."""
    select = inst.op_sel_hi if high else inst.op_sel
    value = c.d.extract(c.read32(inst, arg), 16 * (select >> i & 1), 16)
    signs = inst.neg_hi if high else inst.neg
    return fneg(c.d, value) if is_float and signs >> i & 1 else value


# --- modifiers -------------------------------------------------------------------------------

_IMPLICIT = ("scc", "exec", "vcc", "lane", "neg", "imm", "immz")


@lru_cache(maxsize=1 << 12)
def _taken(row: Semantics) -> dict[str, int]:
    """The bits of each field that the semantics read."""
    kinds = [k for k in row.src if k not in _IMPLICIT and not k.startswith("acc:")]
    packed = ("pair", "p16", "pf16")

    def bits(*chosen: str) -> int:
        return sum(1 << i for i, kind in enumerate(kinds) if kind in chosen)

    dst = row.dst[0]
    half = dst in ("b16", "f16")
    floats = dst[0] == "f" or dst == "pf16"
    return {
        "neg": 15 if "neg" in row.src else bits("f16", "f32", "f64", "mix", "pair", "pf16"),
        "abs": bits("f16", "f32", "f64", "mix"),
        "op_sel": bits("b16", "f16", "mix", *packed) | 8 * half,
        "op_sel_hi": bits("mix", *packed) | 7 & ~((1 << len(kinds)) - 1),
        "neg_hi": bits("pair", "pf16"),
        # Of a whole binary32 beside pairs of halves neg is the sign; LLVM sets neg_hi, too, for -c.
        "neg_hi_with_neg": bits("f32") if "pair" in kinds else 0,
        "omod": 3 * (dst[0] == "f"),
        "clamp": int(floats or row.saturating is not None),
    }


def _modifiers(c: AluState[T], inst: Inst, row: Semantics) -> None:
    given = inst.neg | inst.abs | inst.op_sel | inst.neg_hi | inst.omod | inst.clamp
    if not given and inst.op_sel_hi == 7:
        return
    fields = _taken(row)
    for name, taken in fields.items():
        if name == "neg_hi_with_neg":
            continue
        value = int(getattr(inst, name))
        if name == "neg_hi":
            value &= ~(inst.neg & fields["neg_hi_with_neg"])
        if name == "op_sel_hi":
            value ^= 7
        if value & ~taken:
            raise c.error(inst, f"{name} has no meaning here")


# --- sources ---------------------------------------------------------------------------------


def _sources(c: AluState[T], inst: Inst, row: Semantics) -> list[T]:
    n_dst = sum(1 for k in row.dst if k not in ("scc", "exec", "execm"))
    printed = iter(inst.args[n_dst:])
    out: list[T] = []
    position = 0
    for kind in row.src:
        implicit = _implicit(c, inst, kind)
        if implicit is not None:
            out.append(implicit)
            continue
        arg = next(printed, None)
        if arg is None and kind == "m":  # v_dual_cndmask: vcc is not printed
            arg = Sp("vcc_lo")
        if arg is None:
            raise c.error(inst, "an operand is missing")
        out.append(_source(c, inst, kind, arg, position))
        position += 1
    return out


def _implicit(c: AluState[T], inst: Inst, kind: str) -> T | None:
    d = c.d
    if kind == "scc":
        return c.scc()
    if kind == "exec":
        return c.exec_mask()
    if kind == "vcc":
        return c.mask(VCC_LO)
    if kind == "lane":
        return c.lane_number()
    if kind == "neg":
        return d.const(inst.neg, 8)
    if kind in ("imm", "immz"):
        return c.immediate(inst)
    if kind.startswith("acc:"):
        dst = inst.args[0]
        width = _WIDTH[kind[4:]]
        if width == 64:
            return c.read64(inst, dst)
        word = c.read32(inst, dst)
        return word if width == 32 else c.d.extract(word, 16 * (inst.op_sel >> 3 & 1), 16)
    return None


def immediate(inst: Inst) -> int:
    """The signed simm16; unsigned comparisons take its low half again."""
    imm = inst.imm
    if inst.args and isinstance(inst.args[-1], I) and not imm:
        imm = inst.args[-1].value
    imm &= 0xFFFF
    if inst.op.startswith("s_cmpk_") and "_u32" in inst.op:
        return imm
    return imm - 0x10000 if imm >> 15 else imm


def _source(c: AluState[T], inst: Inst, kind: str, arg: Arg, position: int) -> T:
    d = c.d
    if kind == "m":
        if isinstance(arg, I):
            return c.lanes_of(d.const(arg.value, 32))
        return c.mask(c.scalar_index(inst, arg))
    if kind == "pair":
        halves = [_pick_half(c, inst, arg, position, high, True) for high in (1, 0)]
        return d.concat(halves[0], halves[1])
    width = _WIDTH[kind]
    if kind == "mix" and inst.op_sel_hi >> position & 1:
        high = inst.op_sel >> position & 1
        value = d.fcvt(d.extract(c.read32(inst, arg), 16 * high, 16), 32, IEEE)
    elif width == 64:
        value = c.read64(inst, arg)
    else:
        value = c.read32(inst, arg)
        if inst.dpp and position == 0:
            value = c.permuted(inst, arg)
        if width == 16:
            high = inst.op_sel >> position & 1
            if high and isinstance(arg, I):
                raise c.error(inst, "op_sel of a number has no meaning here")
            value = d.extract(value, 16 if high else 0, 16)
    if kind[0] in "fm":
        if inst.abs >> position & 1:
            value = fabs(d, value)
        if inst.neg >> position & 1:
            value = fneg(d, value)
    return value


# --- results ---------------------------------------------------------------------------------


def _modify(c: AluState[T], inst: Inst, kind: str, value: T) -> T:
    """omod and clamp of a floating-point result."""
    if kind[0] != "f":
        return value
    if not inst.omod and not inst.clamp:
        # A minimum or maximum is one of its sources; of two NaNs, the first.
        exact = inst.op.startswith(_EXTREMES) and c.d.width(value) < 64
        return value if exact else c.float_result(value, inst.op == "v_cvt_f32_f64")
    d, w = c.d, c.d.width(value)
    if inst.omod and c.mode.fp(w).flush_out:  # ignored while denormals are kept
        factor = {1: 2.0, 2: 4.0, 3: 0.5}[inst.omod]
        value = d.fmul(value, d.const(_bits(factor, w), w), c.mode.fp(w))
    if inst.clamp:
        zero, one = d.const(0, w), d.const(_bits(1.0, w), w)
        nan = is_nan(d, value)
        low = d.select(d.fcmp("ogt", value, zero), value, zero)
        low = d.select(d.fcmp("olt", low, one), low, one)
        value = low if c.mode.dx10_clamp else d.select(nan, value, low)
    return c.float_result(value)


def _bits(x: float, width: int) -> int:
    fmt = {16: "<e", 32: "<f", 64: "<d"}[width]
    return int.from_bytes(struct.pack(fmt, x), "little")


def _write(c: AluState[T], inst: Inst, row: Semantics, results: list[T]) -> None:
    args = iter(inst.args)
    pending_exec: T | None = None
    for kind, value in zip(row.dst, results, strict=True):
        if kind == "scc":
            c.write_scc(value)
        elif kind == "exec":
            pending_exec = value
        elif kind == "execm":
            c.write_scalar(EXEC_LO, c.d.and_(c.mask_of(value), c.exec_mask()))
        elif kind == "m":
            c.write_mask(c.scalar_index(inst, next(args)), value)
        else:
            half = {"f16lo": 0, "f16hi": 1}.get(kind, inst.op_sel >> 3 & 1)
            _write_one(c, inst, next(args), value, half)
    if pending_exec is not None:
        c.write_scalar(EXEC_LO, pending_exec)


def _write_one(c: AluState[T], inst: Inst, arg: Arg, value: T, half: int) -> None:
    d = c.d
    if inst.dpp:
        value = c.kept(inst, arg, value)
    if d.width(value) == 64:
        c.write64(inst, arg, value)
        return
    if d.width(value) == 16:  # the other half stays
        old = c.read32(inst, arg)
        if half:
            value = d.concat(value, d.extract(old, 0, 16))
        else:
            value = d.concat(d.extract(old, 16, 16), value)
    c.write32(inst, arg, value)
