"""LLVM's code for straight-line RDNA3: runs of it are lifted, compiled and put back.

A run is a sequence of instructions between two memory accesses that only compute.  The semantics,
the same as the verifier's (:mod:`sassxlate.disasm.rdna3.semantics.apply`), are written as LLVM IR,
one function per run and one module for many, and LLVM's AMDGPU backend compiles it.  Arguments and
results of a function are all registers that the run reads or leaves, each in its own place by the
calling convention, so that the result differs from code for the block only by a renaming.
Lane masks are words of the wave, which LLVM's ``ballot`` makes and ``inverse.ballot`` reads.

The result is proposed like any other change, and proved or dropped.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from sassxlate.disasm.rdna3 import OPS, RRef
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.semantics import Mode
from sassxlate.disasm.rdna3.semantics.apply import apply, immediate, lookup
from sassxlate.disasm.rdna3.tables.operand_codes import ALIASES, EXEC_LO, VCC_LO
from sassxlate.domain.interface import IEEE, Approximation, Fp, Round
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Function, Module, Val, const
from sassxlate.lowering.optimize.draft import Draft
from sassxlate.lowering.optimize.rename_registers import Places
from sassxlate.lowering.region.places import VTEMPS, canonical_names
from sassxlate.lowering.region.subset import guard

SHORTEST = 2  # fewest instructions of a run
_MOST_V, _MOST_S = 96, 40  # registers of a function's arguments and results
_GUARD = 1000  # numbers from here on are not registers
_LANEWISE = {
    "s_mov_b32": "a", "s_not_b32": "~a", "s_and_b32": "a&b", "s_or_b32": "a|b",
    "s_xor_b32": "a^b", "s_and_not1_b32": "a&~b", "s_or_not1_b32": "a|~b", "s_nand_b32": "~(a&b)",
    "s_nor_b32": "~(a|b)", "s_xnor_b32": "~(a^b)",
}  # fmt: skip
_SCC = RRef("scc")
_EXEC = RRef("s", EXEC_LO)
_VCC = RRef("s", VCC_LO)


class Refused(Exception):
    """A run that cannot be lifted."""


class _Scalar(LlvmDomain):
    """The domain of one lane, in LLVM's floating point: nearest even, denormals kept."""

    def fadd(self, a: Val, b: Val, fp: Fp) -> Val:
        return self.float_op("fadd", *self._plain(fp, a, b))

    def fmul(self, a: Val, b: Val, fp: Fp) -> Val:
        return self.float_op("fmul", *self._plain(fp, a, b))

    def ffma(self, a: Val, b: Val, c: Val, fp: Fp) -> Val:
        return self.float_call("fma", *self._plain(fp, a, b, c))

    def frint(self, a: Val, how: Round) -> Val:
        self._plain(IEEE, a)
        return super().frint(a, how)

    def fcvt(self, a: Val, width: int, fp: Fp) -> Val:
        raise Refused

    def ftoi(self, a: Val, width: int, signed: bool) -> Val:
        raise Refused

    def itof(self, a: Val, width: int, signed: bool, fp: Fp) -> Val:
        self._plain(fp)
        if width == 16 or (a.width, width) not in ((32, 32), (32, 64)):
            raise Refused
        return self.int_to_float(a, width, signed)

    def approx(self, fn: Approximation, a: Val) -> Val:
        raise Refused

    def _plain(self, fp: Fp, *args: Val) -> tuple[Val, ...]:
        if fp != IEEE or any(a.width == 16 for a in args):
            raise Refused
        return args


@dataclass(slots=True)
class _Mask:
    """A lane's bit, and the word of the wave."""

    bit: Val
    word: Val


@dataclass(slots=True)
class _Lane:
    """The machine of :func:`~sassxlate.disasm.rdna3.semantics.apply.apply` over LLVM values."""

    d: _Scalar
    masks: frozenset[int]  # scalar registers that hold masks at the start
    mode: Mode = field(default_factory=Mode)
    v: dict[int, Val] = field(default_factory=dict[int, Val])
    s: dict[int, Val] = field(default_factory=dict[int, Val])
    m: dict[int, _Mask] = field(default_factory=dict[int, _Mask])
    flag: Val | None = None
    active: Val | None = None  # under a guard
    args: dict[RRef, str] = field(default_factory=dict[RRef, str])

    def error(self, inst: Inst, message: str) -> Exception:
        return Refused(f"{inst.op}: {message}")

    def argument(self, ref: RRef) -> Val:
        return Val(self.args.setdefault(ref, f"%{ref.kind}{ref.number}"), 32, False)

    # -- registers

    def vgpr(self, index: int) -> Val:
        if index not in self.v:
            self.v[index] = self.argument(RRef("v", index))
        return self.v[index]

    def sgpr(self, index: int) -> Val:
        if index in self.m or (index in self.masks and index not in self.s):
            raise Refused("a mask as a number")
        if index not in self.s:
            if index > VCC_LO + 1:
                raise Refused("a special register")
            self.s[index] = self.argument(RRef("s", index))
        return self.s[index]

    def whole(self, index: int) -> _Mask:
        if index not in self.m:
            if index in self.s or index not in self.masks or index > VCC_LO:
                raise Refused("a number as a mask")
            word = self.argument(RRef("s", index))
            self.d.fn.module.declare("i1 @llvm.amdgcn.inverse.ballot.i32(i32)")
            bit = self.d.fn.emit(f"call i1 @llvm.amdgcn.inverse.ballot.i32(i32 {word.ref})")
            self.m[index] = _Mask(Val(bit, 1, False), word)
        return self.m[index]

    def read32(self, inst: Inst, arg: Arg, part: int = 0) -> Val:
        match arg:
            case V():
                return self.vgpr(arg.index + part)
            case S():
                return self.sgpr(arg.index + part)
            case I():
                return const(arg.value >> 32 * part, 32)
            case Sp(name="scc"):
                return self.d.zext(self.scc(), 32)
            case Sp(name="vcc_lo" | "vcc" | "vcc_hi" as name):
                return self.sgpr(ALIASES[name] + part)
            case Sp(name="null" | "off"):
                return const(0, 32)
            case _:
                raise Refused

    def read64(self, inst: Inst, arg: Arg) -> Val:
        if isinstance(arg, I):
            return const(arg.value, 64)
        return self.d.concat(self.read32(inst, arg, 1), self.read32(inst, arg, 0))

    def write32(self, inst: Inst, arg: Arg, value: Val, part: int = 0) -> None:
        if isinstance(arg, V):
            at = arg.index + part
            if self.active is not None:
                value = self.d.select(self.active, value, self.vgpr(at))
            self.v[at] = value
        elif not (isinstance(arg, Sp) and arg.name == "null"):
            self.write_scalar(self.scalar_index(inst, arg) + part, value)

    def write64(self, inst: Inst, arg: Arg, value: Val) -> None:
        self.write32(inst, arg, self.d.extract(value, 0, 32), 0)
        self.write32(inst, arg, self.d.extract(value, 32, 32), 1)

    def scalar_index(self, inst: Inst, arg: Arg) -> int:
        if isinstance(arg, S):
            return arg.index
        if isinstance(arg, Sp) and arg.name in ALIASES:
            return ALIASES[arg.name]
        raise Refused

    def write_scalar(self, index: int, value: Val) -> None:
        if index > VCC_LO + 1:
            raise Refused
        self.m.pop(index, None)
        self.s[index] = value

    def scc(self) -> Val:
        if self.flag is None:
            raise Refused
        return self.flag

    def write_scc(self, value: Val) -> None:
        self.flag = value

    # -- masks

    def exec_mask(self) -> Val:
        raise Refused

    def mask(self, index: int) -> Val:
        return self.whole(index).bit

    def write_mask(self, index: int, value: Val) -> None:
        if self.active is not None:
            value = self.d.and_(value, self.active)
        self.d.fn.module.declare("i32 @llvm.amdgcn.ballot.i32(i1)")
        word = self.d.fn.emit(f"call i32 @llvm.amdgcn.ballot.i32(i1 {value.ref})")
        self.put(index, _Mask(value, Val(word, 32, False)))

    def put(self, index: int, mask: _Mask) -> None:
        self.s.pop(index, None)
        self.m[index] = mask

    def lanes_of(self, mask: Val) -> Val:
        if mask.const not in (0, 0xFFFFFFFF):
            raise Refused
        return const(int(mask.const != 0), 1)

    def mask_of(self, lanes: Val) -> Val:
        raise Refused

    def float_result(self, value: Val, kept: bool = False) -> Val:
        return value

    def lane_number(self) -> Val:
        raise Refused

    def immediate(self, inst: Inst) -> Val:
        return const(immediate(inst), 32)

    def permuted(self, inst: Inst, arg: Arg) -> Val:
        raise Refused

    def kept(self, inst: Inst, arg: Arg, value: Val) -> Val:
        raise Refused

    # -- instructions

    def _operand(self, arg: Arg) -> _Mask:
        match arg:
            case I() if arg.value & 0xFFFFFFFF in (0, 0xFFFFFFFF):
                return _Mask(const(arg.value & 1, 1), const(arg.value, 32))
            case S():
                return self.whole(arg.index)
            case Sp(name="vcc_lo"):
                return self.whole(VCC_LO)
            case _:
                raise Refused

    def _is_mask(self, arg: Arg) -> bool:
        index = arg.index if isinstance(arg, S) else VCC_LO if arg == Sp("vcc_lo") else -1
        return index in self.m or (index in self.masks and index not in self.s)

    def step(self, inst: Inst) -> None:
        if inst.op in _LANEWISE and any(map(self._is_mask, inst.args[1:])):
            self._lanewise(inst)
            return
        if inst.op == "v_readfirstlane_b32":
            value = self.read32(inst, inst.args[1])
            self.d.fn.module.declare("i32 @llvm.amdgcn.readfirstlane.i32(i32)")
            call = f"call i32 @llvm.amdgcn.readfirstlane.i32(i32 {value.ref})"
            self.write32(inst, inst.args[0], Val(self.d.fn.emit(call), 32, False))
            return
        row = lookup(inst.op)
        if row is None:
            raise Refused
        apply(self, inst, row)

    def _lanewise(self, inst: Inst) -> None:
        d = self.d
        sides = [self._operand(a) for a in inst.args[1:]]
        made: list[Val] = []
        for a, b in zip(
            (sides[0].bit, sides[0].word), (sides[-1].bit, sides[-1].word), strict=True
        ):
            how = _LANEWISE[inst.op]
            other = d.not_(b) if how.endswith("~b") else b
            out = a
            if "&" in how:
                out = d.and_(a, other)
            elif "|" in how:
                out = d.or_(a, other)
            elif "^" in how:
                out = d.xor(a, other)
            made.append(d.not_(out) if how.startswith("~") else out)
        self.flag = None
        self.put(self.scalar_index(inst, inst.args[0]), _Mask(*made))


# --- runs ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LiftedRun:
    """Lines ``first`` to ``end`` of a draft, and the function that computes their results."""

    first: int
    end: int
    name: str
    body: str
    signature: str
    declarations: tuple[str, ...]
    places: Places  # of the function's arguments and results
    guards: frozenset[RRef]  # places that LLVM must not touch
    vcc: bool  # whether LLVM's code may use it


def masks_at(d: Draft) -> list[frozenset[int]]:
    """The scalar registers that hold masks of lanes before each line."""
    masks = {at.index for at in (*d.regs.p.values(), *d.regs.up.values())}
    out: list[frozenset[int]] = []
    for at in d.lines:
        out.append(frozenset(masks))
        inst = at.inst
        sources = {r.number for r in at.reads if r.kind == "s"}
        lanewise = inst.op in _LANEWISE and bool(sources & (masks | {EXEC_LO}))
        row = OPS[inst.op]
        for operand, arg in zip(row.args, inst.args, strict=False):
            if "w" in operand.role and isinstance(arg, S | Sp):
                index = arg.index if isinstance(arg, S) else ALIASES.get(arg.name, -1)
                kind = operand.type == "mask" or lanewise
                (masks.add if kind else masks.discard)(index)
                masks -= set(range(index + 1, index + arg.n))
        if RRef("s", VCC_LO) in at.writes and row.kind == "valu":
            masks.add(VCC_LO)
    return out


def _computes(inst: Inst) -> bool:
    """Whether a run may contain an instruction: it computes, and accesses only registers."""
    row = OPS[inst.op]
    if row.kind not in ("valu", "salu") or row.atomic or inst.dpp or inst.y is not None:
        return False
    if inst.op in ("s_denorm_mode", "s_round_mode"):
        return False
    return inst.op == "v_readfirstlane_b32" or lookup(inst.op) is not None


def spans(d: Draft) -> Iterator[tuple[int, int]]:
    """The runs: as long as possible, with guards that open and close inside."""
    n = 0
    while n < len(d.lines):
        end = n
        whole = n  # the last position where no guard is open
        inside = False
        while end < len(d.lines):
            inst = d.lines[end].inst
            found = guard(inst, d.regs)
            if found is not None:
                if not inside and found[0] != ".pred":
                    break
                inside = found[0] != ".endpred"
            elif not _computes(inst) or _EXEC in d.lines[end].reads - _implicit(inst):
                break
            end += 1
            if not inside:
                whole = end
        if whole - n >= SHORTEST:
            yield n, whole
        n = max(whole, n + 1)


def _implicit(inst: Inst) -> frozenset[RRef]:
    """The implicit read of EXEC by every VALU instruction."""
    named = any(isinstance(a, Sp) and a.name in ("exec_lo", "exec") for a in inst.args)
    return frozenset() if named or OPS[inst.op].kind != "valu" else frozenset({_EXEC})


def lift(d: Draft, first: int, end: int, masks: frozenset[int], name: str) -> LiftedRun:
    """The function of a run.  Raises Refused, or an error of the semantics."""
    module = Module()
    fn = Function(module, "", "")
    lane = _Lane(_Scalar(fn, avx512=False, seed_offset=0), masks)
    written: set[RRef] = set()
    for n in range(first, end):
        at = d.lines[n]
        found = guard(at.inst, d.regs)
        if found is not None:
            word, inverted, mask = found
            lane.active = None
            if mask is not None and word != ".endpred":
                bit = lane.mask(mask.index)
                lane.active = lane.d.not_(bit) if inverted else bit
            continue
        lane.step(at.inst)
        written |= {r for r in at.writes if r.kind in ("v", "s")}
    if not d.dead_at(end, _SCC):
        raise Refused
    own = {r for at in d.lines for r in at.writes if r.kind == "v"}
    kept: dict[RRef, Val] = {}
    for ref in {*written, *lane.args}:
        used = d.temporary(ref) or ref in written or ref in own
        if ref in (RRef("s", VCC_LO), RRef("s", VCC_LO + 1)):
            used = True
        if used and d.dead_at(end, ref):
            continue
        kept[ref] = _value(lane, ref)
    beside = _beside(d, d.lines[first].group, d.lines[end - 1].group)
    slots: dict[str, list[int]] = {}
    for kind in "vs":
        slots[kind] = _slots(sorted({r.number for r in (*kept, *lane.args) if r.kind == kind}),
                             beside[kind], 2 if kind == "s" else 1)  # fmt: skip
    if len(slots["v"]) > _MOST_V or len(slots["s"]) > _MOST_S or not kept:
        raise Refused
    signature, body = _text(name, lane, kept, slots)
    base = d.regs.vtemp_base
    pool = {"v": range(base, min(base + VTEMPS, d.regs.target.vgprs)), "s": d.regs.stemps}
    free = {
        kind: tuple(
            i for i in sorted(pool[kind])
            if i not in slots[kind] and d.dead_at(end, RRef(kind, i))
        )
        for kind in "vs"
    }  # fmt: skip
    vcc = VCC_LO not in slots["s"] and d.dead_at(end, _VCC)
    come = {RRef(kind, i): r for kind in "vs" for i, r in enumerate(slots[kind])}
    guards = frozenset(p for p, r in come.items() if r >= _GUARD)
    come = {p: r for p, r in come.items() if r < _GUARD}
    results = frozenset(p for p, r in come.items() if RRef(p.kind, r) in kept)
    places = Places(come, free, results)
    return LiftedRun(
        first, end, name, body, signature, tuple(module.declarations), places, guards, vcc
    )


def _beside(d: Draft, first: int, last: int) -> dict[str, set[int]]:
    """The registers whose successor by name is adjacent: they may form a pair."""
    known = canonical_names(d.sass[first : last + 1], d.regs)
    out: dict[str, set[int]] = {"v": set(), "s": set()}
    for name, at in known.place.items():
        if name[1:].isdigit():
            after = known.place.get(f"{name[0]}{int(name[1:]) + 1}")
            if after == type(at)(at.index + 1):
                out["v" if isinstance(at, V) else "s"].add(at.index)
    return out


def _slots(numbers: Sequence[int], beside: Container[int], align: int) -> list[int]:
    """Places for registers: possible pairs are adjacent, even ones at even places; registers that
    LLVM must not touch go in between."""
    out: list[int] = []
    for before, number in zip([-9, *numbers], numbers, strict=False):
        if out and not (number == before + 1 and before in beside):
            out.append(_GUARD + len(out))
        while (number - len(out)) % align:
            out.append(_GUARD + len(out))
        out.append(number)
    return [*out, _GUARD + len(out)] if out else out


def _value(lane: _Lane, ref: RRef) -> Val:
    if ref.kind == "v":
        return lane.vgpr(ref.number)
    if ref.number in lane.m:
        return lane.m[ref.number].word
    return lane.s[ref.number] if ref.number in lane.s else lane.argument(ref)


def _text(
    name: str, lane: _Lane, kept: dict[RRef, Val], slots: dict[str, list[int]]
) -> tuple[str, str]:
    fn = lane.d.fn
    refs = [RRef(kind, r) for kind in "sv" for r in slots[kind]]
    args = [f"i32 {'inreg ' * (r.kind == 's')}%{r.kind}{r.number}" for r in refs]
    types = ["i32" if r.kind == "s" else "float" for r in refs]
    whole = "{" + ", ".join(types) + "}"
    last = "poison"
    for i, (ref, type_) in enumerate(zip(refs, types, strict=True)):
        value = kept.get(ref)
        if value is None and ref.number < _GUARD:
            continue
        text = value.ref if value is not None else f"%{ref.kind}{ref.number}"
        if type_ == "float":
            text = fn.emit_new(f"bitcast i32 {text} to float")
        last = fn.emit_new(f"insertvalue {whole} {last}, {type_} {text}, {i}")
    fn.do(f"ret {whole} {last}")
    signature = f"define amdgpu_vs {whole} @{name}({', '.join(args)}) #0"
    return signature, "\n".join(fn.lines)


__all__ = ["LiftedRun", "Refused", "lift", "masks_at", "spans"]
