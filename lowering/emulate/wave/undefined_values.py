"""Strict mode's shadow of the registers: the lanes and bits that are undefined.

A VGPR has one shadow bit per lane, a scalar register one per bit, since it is mostly a lane mask.
Undefinedness propagates; it is an error when an undefined value decides something: an address of
an active lane, a branch, EXEC.  Scalar instructions run their semantics over pairs of value
and shadow, so a bit that an `s_and` masks off is defined.  Vector instructions are taken as
strict in all lanes of their operands, except selects and instructions that combine parts.  A value
loaded, or read from another lane, counts as defined: instead it holds arbitrary, seeded bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

from sassxlate.cfg.rdna3_flow import DecodedStep
from sassxlate.disasm.rdna3 import RRef, info, registers, writes
from sassxlate.disasm.rdna3.codec.encode.memory import present
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Sp
from sassxlate.disasm.rdna3.semantics import Semantics
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_HI, EXEC_LO, NULL, SGPRS, VCC_LO
from sassxlate.lowering.emulate.image.abi import DeviceFault
from sassxlate.lowering.emulate.strict_hazards import (
    WIDE_SUMS,
    Check,
    Finding,
    overwritten_half,
)
from sassxlate.lowering.emulate.wave import alu, indexed
from sassxlate.lowering.emulate.wave.access import memory_helpers
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.emulate.wave.undefined_pairs import Pair, PairDomain
from sassxlate.lowering.llvm.ir_text import Val, const

_ZERO, _ONES = const(0, 32), const(-1, 32)
_SELECTS = frozenset({"v_cndmask_b32", "v_dual_cndmask_b32", "v_cndmask_b16"})
# They combine parts of registers: nvcc keeps the undefined rest of a register whose low half
# it writes, and cuts it off later.  The result counts as defined if one of the registers is.
_MERGES = frozenset(
    "v_perm_b32 v_bfi_b32 v_alignbit_b32 v_alignbyte_b32 v_and_or_b32 v_lshl_or_b32 "
    "v_pack_b32_f16".split()
)
_SAME = frozenset({"v_xor_b32", "v_sub_nc_u32", "v_subrev_nc_u32"})  # 0 if both operands are equal
_IMPLICIT_RESULTS = ("scc", "exec", "execm")


def _has_constant_bytes(selector: Arg) -> bool:
    """Whether v_perm_b32 puts zeros or ones into some byte, merging the rest of a register."""
    return isinstance(selector, I) and any(selector.value >> 8 * i & 0xFF >= 12 for i in range(4))


class Shadow:
    """The shadows of a wave's registers, and their checks."""

    def __init__(
        self, c: Context, entry: int, defined_sgprs: int, uniform: frozenset[int] = frozenset()
    ) -> None:
        self.c = c
        self.entry = entry
        self.defined_sgprs = defined_sgprs
        self.uniform = uniform  # offsets of v_readfirstlane whose source is equal in all lanes
        self.pairs = PairDomain(c.d)
        self._made: set[RRef] = set()
        self._known: dict[RRef, Val] = {}
        self._dirty: set[RRef] = set()
        self._step = DecodedStep(0, 0, Inst("s_nop"))

    # -- slots ----------------------------------------------------------------------------

    def start_block(self) -> None:
        self._known.clear()
        self._dirty.clear()

    def flush(self) -> None:
        """At the end of a block, before its jump."""
        for ref in sorted(self._dirty):
            value = self._known[ref]
            self.c.fn.do(f"store {value.type} {value.ref}, ptr {self._slot(ref)}")
        self._dirty.clear()

    def _slot(self, ref: RRef) -> str:
        slot = f"%u.{ref.kind}{ref.number}"
        if ref not in self._made:
            self._made.add(ref)
            given = ref == RRef("v", 0)
            if ref.kind == "s":
                given = bool(self.defined_sgprs >> ref.number & 1)
            type_ = "i1" if ref.kind == "scc" else "i32"
            self.c.fn.entry += [
                f"  {slot} = alloca {type_}",
                f"  store {type_} {0 if given else -1}, ptr {slot}",
            ]
        return slot

    def _get(self, ref: RRef) -> Val:
        if ref.kind == "s" and ref.number in (EXEC_LO, EXEC_HI, NULL):
            return _ZERO
        if ref not in self._known:
            width = 1 if ref.kind == "scc" else 32
            load = self.c.fn.emit_new(f"load i{width}, ptr {self._slot(ref)}")
            self._known[ref] = Val(load, width, False)
        return self._known[ref]

    def _set(self, ref: RRef, value: Val) -> None:
        if ref.kind == "s" and ref.number in (EXEC_LO, EXEC_HI):
            self._check(value, ref)
        elif not (ref.kind == "s" and ref.number == NULL):
            self._known[ref] = value
            self._dirty.add(ref)

    def _set_lanes(self, index: int, lanes: Val) -> None:
        """Writes the active lanes of a VGPR."""
        d, ref = self.c.d, RRef("v", index)
        exec_ = self.c.state.exec_mask()
        old = _ZERO if exec_.const == 0xFFFFFFFF else d.and_(self._get(ref), d.not_(exec_))
        self._set(ref, d.or_(old, d.and_(lanes, exec_)))

    # -- errors ---------------------------------------------------------------------------

    def _check(self, bad: Val, ref: RRef, check: Check = Check.UNDEFINED) -> None:
        """An error if a bit is set; the lowest set bit names the lane."""
        if bad.const == 0:
            return
        c, fn = self.c, self.c.fn
        wide = c.d.zext(bad, 32)
        lane = c.d.and_(c.d.ctz(wide), const(31, 32)) if ref.kind == "v" else _ZERO
        good = c.d.eq(wide, _ZERO)
        code = Finding(check, self._step.pc, self._step.pc, ref).code(self.entry)
        stop, go = fn.fresh("undefined"), fn.fresh("defined")
        fn.do(f"br i1 {good.ref}, label %{go}, label %{stop}, !prof !1")
        fn.label(stop, keep=True)
        fn.do(
            f"call void {memory_helpers.fault(c.module)}"
            f"(ptr %w, i32 {int(DeviceFault.STRICT)}, i32 {c.pc}, "
            f"i32 {lane.ref}, i64 {code})"
        )
        fn.do("unreachable")
        fn.label(go, keep=True)

    # -- instructions ---------------------------------------------------------------------

    def before(self, step: DecodedStep) -> None:
        """Checks an instruction before it is emitted, and updates the shadow."""
        self._step = step
        inst = step.inst
        row, meaning = info(inst.op), alu.lookup(inst.op)
        special = _SPECIAL.get(inst.op)
        if special is not None:
            special(self, inst)
        elif inst.op in WIDE_SUMS:
            self._wide_sum(inst)
        elif meaning is not None and row.kind == "valu":
            self._vector(inst, meaning)
        elif meaning is not None:
            self._scalar(inst, meaning)
        elif row.kind in ("lds", "flat", "global", "scratch", "smem"):
            self._memory(inst)
        elif row.kind == "branch":
            self._branch(inst)
        else:
            self.defines(inst)

    def defines(self, inst: Inst) -> None:
        for ref in sorted(writes(inst)):
            if ref.kind == "v":
                self._set_lanes(ref.number, _ZERO)
            elif ref.kind == "s":
                self._set(ref, _ZERO)
            elif ref.kind == "scc":
                self._set(ref, const(0, 1))

    # vector

    def _lanes(self, arg: Arg, n: int) -> Val:
        """The lanes for which an operand of n registers is undefined."""
        d, out = self.c.d, _ZERO
        for ref in registers(arg)[:n]:
            u = self._get(ref)
            out = d.or_(out, u if ref.kind == "v" else self._spread(u))
        return out

    def _spread(self, u: Val) -> Val:
        """All lanes, if any bit of a scalar is undefined."""
        return _ZERO if u.const == 0 else self.pairs.any_of(32, Pair(u, u))

    def _vector(self, inst: Inst, meaning: Semantics) -> None:
        halves = [(inst, meaning)]
        if inst.y is not None:
            other = alu.lookup(inst.y.op)
            assert other is not None
            halves.append((inst.y, other))
        results = [self._undefined_lanes(half, row) for half, row in halves]
        for (half, row), lanes in zip(halves, results, strict=True):
            printed = iter(half.args)
            for kind in row.dst:
                self._write(half, kind, lanes, printed)

    def _write(self, inst: Inst, kind: str, lanes: Val, printed: Any) -> None:
        d, exec_ = self.c.d, self.c.state.exec_mask()
        if kind == "execm":
            self._check(d.and_(lanes, exec_), RRef("s", EXEC_LO))
            return
        for ref in registers(next(printed))[: 2 if kind.endswith("64") else 1]:
            if ref.kind == "v":
                self._set_lanes(ref.number, lanes)
            else:  # bits of inactive lanes become 0
                self._set(ref, d.and_(lanes, exec_))

    def _wide_sum(self, inst: Inst) -> None:
        """The low half of the result depends on the low half of the addend only.  The high half of
        the addend is lost where the low half of the result takes its register."""
        d, st = self.c.d, self.c.state
        *factors, addend = inst.args[2:5]
        low = functools.reduce(d.or_, (self._lanes(arg, 1) for arg in (*factors, addend)))
        high = d.or_(low, self._lanes(addend, 2))
        lost = overwritten_half(inst)
        if lost is not None:
            high = _ONES
            st.write_v(lost.number, d.not_(st.read_v_all(lost.number)))
        for ref, lanes in zip(registers(inst.args[0]), (low, high), strict=True):
            self._set_lanes(ref.number, lanes)
        for ref in registers(inst.args[1]):
            self._set(ref, d.and_(high, st.exec_mask()))

    def _undefined_lanes(self, inst: Inst, row: Semantics) -> Val:
        d, st = self.c.d, self.c.state
        n_dst = sum(1 for kind in row.dst if kind not in _IMPLICIT_RESULTS)
        args = iter(inst.args[n_dst:])
        if inst.op in _SAME and inst.args[1] == inst.args[2]:
            return _ZERO
        if inst.op == "v_perm_b32" and _has_constant_bytes(inst.args[-1]):
            return _ZERO
        if inst.op in _MERGES:
            return self._all_undefined(inst.args[n_dst:])
        parts: list[Val] = []
        for kind in row.src:
            if kind in ("exec", "lane", "imm", "immz", "neg"):
                continue
            if kind == "scc":
                parts.append(self._spread(d.zext(self._get(RRef("scc")), 32)))
            elif kind == "vcc":
                parts.append(self._get(RRef("s", VCC_LO)))
            elif kind.startswith("acc:"):
                parts.append(self._lanes(inst.args[0], 2 if kind.endswith("64") else 1))
            elif kind == "m":
                refs = registers(next(args, Sp("vcc_lo")))
                mask = self._get(refs[0]) if refs else _ZERO
                if inst.op in _SELECTS and refs:
                    chosen = st.read_s(refs[0].number)
                    parts = [d.or_(d.and_(d.not_(chosen), parts[0]), d.and_(chosen, parts[1]))]
                parts.append(mask)
            else:
                first = len(parts) == 0
                lanes = self._lanes(next(args), 2 if kind.endswith("64") else 1)
                parts.append(_ZERO if inst.dpp and first else lanes)
        out = _ZERO
        for part in parts:
            out = d.or_(out, part)
        return out

    def _all_undefined(self, args: tuple[Arg, ...]) -> Val:
        """The lanes for which every register among the operands is undefined."""
        out: Val | None = None
        for arg in args:
            if registers(arg):
                lanes = self._lanes(arg, 1)
                out = lanes if out is None else self.c.d.and_(out, lanes)
        return out if out is not None else _ZERO

    # scalar

    def _pair(self, inst: Inst, kind: str, arg: Arg) -> Pair:
        c, d = self.c, self.c.d
        if isinstance(arg, I):
            return self.pairs.const(arg.value, 64 if kind == "b64" else 32)
        refs = registers(arg)
        low = self._get(refs[0]) if refs and refs[0].kind == "s" else _ZERO
        if refs and refs[0].kind == "scc":
            low = d.zext(self._get(refs[0]), 32)
        if kind != "b64":
            return Pair(c.read32(inst, arg), low)
        high = self._get(refs[1]) if len(refs) > 1 else _ZERO
        return Pair(c.read64(inst, arg), d.concat(high, low))

    def _scalar(self, inst: Inst, row: Semantics) -> None:
        c, d = self.c, self.c.d
        n_dst = sum(1 for kind in row.dst if kind not in _IMPLICIT_RESULTS)
        args = iter(inst.args[n_dst:])
        sources: list[Pair] = []
        for kind in row.src:
            if kind == "scc":
                sources.append(Pair(c.state.read_scc(), self._get(RRef("scc"))))
            elif kind == "exec":
                sources.append(Pair(c.state.exec_mask(), _ZERO))
            elif kind in ("imm", "immz"):
                sources.append(self.pairs.const(alu.immediate(inst), 32))
            elif kind.startswith("acc:"):
                sources.append(self._pair(inst, kind[4:], inst.args[0]))
            else:
                sources.append(self._pair(inst, kind, next(args)))
        made: Any = row.fn(self.pairs, *sources)
        several = isinstance(made, tuple)
        results: list[Pair] = list(cast("tuple[Pair, ...]", made)) if several else [made]
        printed = iter(inst.args)
        for kind, result in zip(row.dst, results, strict=True):
            if kind == "scc":
                self._set(RRef("scc"), result.u)
            elif kind == "exec":
                self._check(result.u, RRef("s", EXEC_LO))
            else:
                refs = registers(next(printed))
                for i, ref in enumerate(refs[: 2 if kind == "b64" else 1]):
                    half = d.extract(result.u, 32 * i, 32) if kind == "b64" else result.u
                    self._set(ref, half)

    # memory and control

    def _memory(self, inst: Inst) -> None:
        c, d = self.c, self.c.d
        row = info(inst.op)
        wide = row.kind in ("flat", "global", "scratch")
        operands = present(inst, row) if wide else row.args
        for operand, arg in zip(operands, inst.args, strict=False):
            if operand.field not in ("addr", "vaddr", "saddr", "sbase", "soffset"):
                continue
            for ref in registers(arg):
                u = self._get(ref)
                self._check(d.and_(u, c.state.exec_mask()) if ref.kind == "v" else u, ref)
        if row.kind == "smem" and len(inst.args) > len(row.args):
            for ref in registers(inst.args[-1]):
                self._check(self._get(ref), ref)
        self.defines(inst)

    def _branch(self, inst: Inst) -> None:
        if "scc" in inst.op:
            self._check(self._get(RRef("scc")), RRef("scc"))
        elif "vcc" in inst.op:
            ref = RRef("s", VCC_LO)
            zero = self.pairs.eq(
                Pair(self.c.state.read_s(VCC_LO), self._get(ref)), self.pairs.const(0, 32)
            )
            self._check(zero.u, ref)

    def jump(self, inst: Inst) -> None:
        for ref in registers(inst.args[-1]):
            self._check(self._get(ref), ref)
        self.defines(inst)

    def to_index(self, inst: Inst) -> None:
        """The register that M0 gives becomes defined."""
        d = self.c.d
        (base,) = registers(inst.args[0])[:1]
        vector = inst.op.startswith("v_")
        words = 2 if inst.op.endswith("64") else 1
        for number in range(self.c.vgprs if vector else SGPRS):
            ref = RRef("v" if vector else "s", number)
            here = indexed.is_at(self.c, base.number, number)
            for part in range(1, words):
                here = d.or_(here, indexed.is_at(self.c, base.number, number - part))
            left = d.select(here, _ZERO, self._get(ref))
            if vector:
                self._set_lanes(number, left)
            else:
                self._set(ref, left)

    def readlane(self, inst: Inst) -> None:
        """One lane's bit, for all bits of the scalar."""
        c, d = self.c, self.c.d
        ref = registers(inst.args[1])[0]
        if inst.op == "v_readfirstlane_b32":
            if c.pc in self.uniform and ref.kind == "v":
                self._hold_equal(ref)
            lane = d.and_(d.ctz(c.state.exec_mask()), const(31, 32))
        else:
            lane = d.and_(c.read32(inst, inst.args[2]), const(31, 32))
        bits = self._get(ref) if ref.kind == "v" else self._spread(self._get(ref))
        bit = d.extract(d.lshr(bits, lane), 0, 1)
        out = d.sext(bit, 32)
        for index in inst.args[2:]:
            for other in registers(index):
                out = d.or_(out, self._spread(self._get(other)))
        self._set(registers(inst.args[0])[0], out)

    def _hold_equal(self, ref: RRef) -> None:
        """An error in the lowest active lane whose value differs from the first one's."""
        c, d = self.c, self.c.d
        value = c.state.read_v_all(ref.number)
        if not value.vec:
            return
        first = d.and_(d.ctz(c.state.exec_mask()), const(31, 32))
        one = c.fn.emit(f"extractelement {value.type} {value.ref}, i32 {first.ref}")
        differ = d.not_(d.eq(value, d.splat(Val(one, 32, False))))
        self._check(d.and_(d.mask_of(differ), c.state.exec_mask()), ref, Check.UNIFORM)

    def writelane(self, inst: Inst) -> None:
        c, d = self.c, self.c.d
        ref = registers(inst.args[0])[0]
        bit = d.shl(const(1, 32), d.and_(c.read32(inst, inst.args[2]), const(31, 32)))
        value = self._lanes(inst.args[1], 1)
        self._set(ref, d.or_(d.and_(self._get(ref), d.not_(bit)), d.and_(value, bit)))

    def swap(self, inst: Inst) -> None:
        a, b = (registers(arg)[0] for arg in inst.args[:2])
        of_a, of_b = self._get(a), self._get(b)
        self._set_lanes(a.number, of_b)
        self._set_lanes(b.number, of_a)


_SPECIAL: dict[str, Callable[[Shadow, Inst], None]] = {
    "v_readlane_b32": Shadow.readlane,
    "v_readfirstlane_b32": Shadow.readlane,
    "v_writelane_b32": Shadow.writelane,
    "v_swap_b32": Shadow.swap,
    "v_movreld_b32": Shadow.to_index,
    "s_movreld_b32": Shadow.to_index,
    "s_movreld_b64": Shadow.to_index,
    "s_setpc_b64": Shadow.jump,
    "s_swappc_b64": Shadow.jump,
    "ds_bpermute_b32": Shadow.defines,
    "ds_permute_b32": Shadow.defines,
    "ds_swizzle_b32": Shadow.defines,
}

__all__ = ["Pair", "PairDomain", "Shadow"]
