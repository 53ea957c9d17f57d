"""Atomics on global, generic and shared memory; operations that RDNA3 lacks become a
compare-and-swap loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, V
from sassxlate.disasm.sass.instruction import Instruction, Reg
from sassxlate.disasm.sass.semantics.arithmetic.float import NAN64
from sassxlate.lowering.builder.canonical_nan import one_nan
from sassxlate.lowering.builder.lane_id import lane_id
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.builder.sources import part
from sassxlate.lowering.nans.reads import Nan
from sassxlate.lowering.rules.arithmetic import bfloat
from sassxlate.lowering.rules.arithmetic.modes import rounding
from sassxlate.lowering.rules.memory.memory import Address, address32, address64
from sassxlate.lowering.rules.modifiers import ATOMIC, HINTS, SCOPES
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import EXEC, VCC, ZERO

_OPS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS", "SAFEADD")


_VECTORS = {"F16x2": 1, "F16x4": 2, "F16x8": 4, "BF16x2": 1, "BF16x4": 2, "BF16x8": 4, "F32x2": 2,
            "F32x4": 4}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    op: str
    type: str  # u32 i32 u64 i64 f32 f64 f16x2 bf16x2; "f32 kept": denormals are kept
    many: int = 1  # 32-bit elements, each changed separately

    @property
    def words(self) -> int:
        return 2 if self.type in ("u64", "i64", "f64", "b64") else self.many


def kind_of(c: RuleEmitter) -> Kind:
    ins = c.ins
    op = next((m for m in ins.modifiers if m in _OPS), None)
    if op is None:
        raise c.refuse("atomic operation not known")
    sort = "u32"
    vector = next((m for m in ins.modifiers if m in _VECTORS), None)
    many = 1
    if ins.has("F32") or vector in ("F32x2", "F32x4"):
        # RDNA3's flushes denormals, as .FTZ requires.
        sort = "f32" if ins.has("FTZ") or op != "ADD" else "f32 kept"
        many = 1 if vector is None else _VECTORS[vector]
    elif ins.has("F64"):
        sort = "f64"
    elif vector is not None:
        sort, many = "bf16x2" if vector[0] == "B" else "f16x2", _VECTORS[vector]
    elif ins.has("128"):
        raise c.refuse("atomic on 128 bits")
    elif ins.has("S32"):
        sort = "i32"
    elif ins.has("S64"):
        sort = "i64"
    elif ins.has("64") or ins.has("U64"):
        sort = "u64"
    if any(m in ins.modifiers for m in ("RZ", "RM", "RP")):
        raise c.refuse("rounding mode of an atomic")
    return Kind(op, sort, many)


def native_name(kind: Kind) -> str | None:
    """RDNA3's suffix, or None when there is no such instruction."""
    bits = 64 if kind.words == 2 else 32
    match kind.op:
        case "ADD" if kind.type in ("u32", "i32", "u64", "i64"):
            return f"add_u{bits}"
        case "ADD" if kind.type == "f32":
            return "add_f32"
        case "MIN" | "MAX" if kind.type in ("u32", "i32", "u64", "i64"):
            return f"{kind.op.lower()}_{kind.type}"
        case "INC" | "DEC" if kind.type in ("u32", "u64"):
            return f"{kind.op.lower()}_u{bits}"
        case "AND" | "OR" | "XOR":
            return f"{kind.op.lower()}_b{bits}"
        case "EXCH":
            return f"swap_b{bits}"
        case "CAS":
            return f"cmpswap_b{bits}"
        case _:
            return None


def _data(c: RuleEmitter, kind: Kind, new: str = "Rb", compare: str = "") -> V:
    """The operand registers; for CAS the new value, then the compared one."""
    if not compare:
        return c.vtuple(new, kind.words)
    n = kind.words
    pair = c.vtemp(2 * n)
    for i in range(n):
        c.emit("v_mov_b32", V(pair.index + i), c.src(new, i))
        c.emit("v_mov_b32", V(pair.index + n + i), c.src(compare, i))
    return pair


def _result(c: RuleEmitter) -> bool:
    reg = c.ins.get("Rd")
    return isinstance(reg, Reg) and not reg.is_zero


def _no_predicate(c: RuleEmitter) -> None:
    if c.wants_pred("Pu"):
        raise c.refuse("predicate result of an atomic")


def atomic(c: RuleEmitter) -> None:
    """ATOM, ATOMG, RED, REDG.

    RED is treated as global: nvcc writes it only for ``red.global`` and ``atom.global``, and ATOM
    for a generic address, even if the result is not used (docs/errata.md).

    ATOM's predicate is true if it was done; otherwise debug code continues with a loop of its own.
    ATOMG's is never true (measured).  Flat atomics reach global and shared memory, not scratch."""
    flat = c.ins.mnemonic == "ATOM"
    kind = kind_of(c)
    at = address64(c, c.mem(), flat)
    if not flat and "Pu" in c.ins.operands:
        c.pred_commit("Pu", ZERO, clean=True)
    if not flat or not c.wants_pred("Pu") or not isinstance(at.v, V):
        if flat:
            _no_predicate(c)
        _atomic_at(c, kind, at, flat)
        return
    save, done = c.stemp(), c.stemp()
    private = c.aperture("src_private_base")
    c.emit("v_cmp_ne_u32", done, private, V(at.v.index + 1))
    c.emit("s_mov_b32", save, EXEC)
    c.emit("s_mov_b32", EXEC, done)
    _atomic_at(c, kind, at, flat)
    c.emit("s_mov_b32", EXEC, save)
    c.pred_commit("Pu", done, clean=True)


def _atomic_at(c: RuleEmitter, kind: Kind, at: Address, flat: bool) -> None:
    name = native_name(kind)
    if kind.many > 1:
        _global_words(c, kind, at, flat)
        return
    if name is None:
        _give(c, global_loop(c, kind, at, flat, c.vtuple("Rb", kind.words)), kind.words)
        return
    data = _data(c, kind, "Rc", "Rb") if kind.op == "CAS" else _data(c, kind)
    args: tuple[Arg, ...] = (at.v, data) if flat else (at.v, data, at.s)
    op = ("flat" if flat else "global") + "_atomic_" + name
    if _result(c):
        c.raw(Inst(op, (_sized(c, kind), *args), imm=at.imm, glc=True))
    else:
        c.raw(Inst(op, args, imm=at.imm))


def _global_words(c: RuleEmitter, kind: Kind, at: Address, flat: bool) -> None:
    """Elements one after another: only each element is atomic."""
    one, data, was = Kind(kind.op, kind.type), c.vtuple("Rb", kind.many), c.vtemp(kind.many)
    name = native_name(one)
    space = "flat" if flat else "global"
    for i in range(kind.many):
        place, operand = Address(at.v, at.s, at.imm + 4 * i), V(data.index + i)
        old = V(was.index + i)
        if name is not None:
            args: tuple[Arg, ...] = (at.v, operand) if flat else (at.v, operand, at.s)
            c.raw(Inst(f"{space}_atomic_{name}", (old, *args), imm=place.imm, glc=True))
            continue
        with c.scope():
            c.emit("v_mov_b32", old, global_loop(c, one, place, flat, operand))
    _give(c, was, kind.many)


def _sized(c: RuleEmitter, kind: Kind) -> V:
    dst = c.dst_last()
    if dst.n != kind.words:
        raise c.refuse("result size of an atomic", "SX0412")
    return dst


_NANS = {"f32 kept": Nan.SINGLE, "f32": Nan.SINGLE, "f16x2": Nan.HALVES}


def _combine(c: RuleEmitter, kind: Kind) -> Callable[[V, V, V], None]:
    """(new, old, operand) -> instructions for the operations without an RDNA3 atomic."""
    ops = {
        ("ADD", "f64"): "v_add_f64",
        ("ADD", "f32 kept"): "v_add_f32",
        ("ADD", "f16x2"): "v_pk_add_f16",
        ("MIN", "f16x2"): "v_pk_min_f16",
        ("MAX", "f16x2"): "v_pk_max_f16",
        ("MIN", "f32"): "v_min_f32",
        ("MAX", "f32"): "v_max_f32",
        ("MIN", "f64"): "v_min_f64",
        ("MAX", "f64"): "v_max_f64",
    }
    if kind.type == "bf16x2":
        return lambda new, old, operand: _combine_bf16(c, kind.op, new, old, operand)
    op = ops.get((kind.op, kind.type))
    if op is None:
        raise c.refuse(f"atomic {kind.op} on {kind.type}")

    def combined(new: V, old: V, operand: V) -> None:
        c.emit(op, new, old, operand)
        if (kind.op, kind.type) == ("ADD", "f64"):
            _keep_nan(c, new, old, operand)
        if (nan := _NANS.get(kind.type)) is not None:  # memory is read as bits
            one_nan(c, new, new, nan)

    return combined


def _keep_nan(c: RuleEmitter, new: V, old: V, operand: V) -> None:
    """A sum's NaN becomes the operand's, or else the old value's, unchanged (docs/errata.md)."""
    done, nan = c.k.label("number"), c.stemp()
    c.emit("v_cmp_u_f64", VCC, new, new)
    c.branch("s_cbranch_vccz", done)
    c.emit("v_cndmask_b32", part(new, 0), part(new, 0), ZERO, VCC)
    c.emit("v_cndmask_b32", part(new, 1), part(new, 1), c.to_v(I(NAN64 >> 32)), VCC)
    for source in (old, operand):
        c.emit("v_cmp_u_f64", nan, source, source)
        for word in range(2):
            c.emit("v_cndmask_b32", part(new, word), part(new, word), part(source, word), nan)
    c.mark(done)


def _combine_bf16(c: RuleEmitter, op: str, new: V, old: V, operand: V) -> None:
    """One half at a time in binary32; a sum is rounded once, by way of binary32 rounded to odd."""
    if op not in ("ADD", "MIN", "MAX"):
        raise c.refuse(f"atomic {op} on bf16")
    parts: list[V] = []
    for high in (0, 1):
        a, b, out = c.vtemp(), c.vtemp(), c.vtemp()
        for wide, source in ((a, old), (b, operand)):
            if high:
                c.emit("v_and_b32", wide, I(0xFFFF0000), source)
            else:
                c.emit("v_lshlrev_b32", wide, I(16), source)
        if op == "ADD":
            down, up = c.vtemp(), c.vtemp()
            for sum_, how in ((down, "RM"), (up, "RP")):
                with rounding(c, how):
                    c.emit("v_add_f32", sum_, a, b)
            odd = bfloat.odd(c, down, up)
            bfloat.upper_half(c, out, odd)
        else:
            extreme = c.vtemp()
            c.emit(f"v_{op.lower()}_f32", extreme, a, b)
            bfloat.upper_half(c, out, extreme, "RZ")
        parts.append(out)
    bfloat.packed(c, new, *parts)


def global_loop(c: RuleEmitter, kind: Kind, at: Address, flat: bool, operand: V) -> V:
    """A compare-and-swap loop; returns the old value."""
    n = kind.words
    combine = _combine(c, kind)
    pair, seen, same, save = c.vtemp(2 * n), c.vtemp(n), c.stemp(), c.stemp()
    new, old = V(pair.index, n), V(pair.index + n, n)
    bits = 32 * n
    space = "flat" if flat else "global"
    tail: tuple[Arg, ...] = () if flat else (at.s,)
    c.raw(Inst(f"{space}_load_b{bits}", (old, at.v, *tail), imm=at.imm, glc=True))
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    again = c.k.label("Lcas")
    done = c.k.label("Lcas_done")
    c.branch("s_cbranch_execz", done)
    c.mark(again)
    with c.scope():
        combine(new, old, operand)
    swap = f"{space}_atomic_cmpswap_b{bits}"
    c.raw(Inst(swap, (seen, at.v, pair, *tail), imm=at.imm, glc=True))
    _retry(c, n, seen, old, same, again)
    c.mark(done)
    c.raw(Inst("s_mov_b32", (EXEC, save)))
    return seen


def _retry(c: RuleEmitter, n: int, seen: V, old: V, same: Arg, again: str) -> None:
    """Lanes whose value had changed repeat the loop with the new one."""
    c.emit(f"v_cmp_eq_u{32 * n}", same, seen, old)
    for i in range(n):
        c.emit("v_mov_b32", V(old.index + i), V(seen.index + i))
    c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, same)))
    c.branch("s_cbranch_execnz", again)


def _give(c: RuleEmitter, value: V, n: int) -> None:
    if _result(c):
        dst = c.dst_last()
        for i in range(n):
            c.emit("v_mov_b32", V(dst.index + i), V(value.index + i))


# --- shared memory --------------------------------------------------------------------------------


def atoms(c: RuleEmitter) -> None:
    _no_predicate(c)
    kind = kind_of(c)
    at, imm = address32(c, c.mem(), 0, 0xFFFF)
    address = c.to_v(at)
    n = kind.words
    if kind.op == "CAS":
        new, compare = c.vtuple("Rc", n), c.vtuple("Rb", n)
        _shared(c, f"cmpstore{{}}_b{32 * n}", address, (new, compare), imm)
        return
    if kind.op == "EXCH":
        dst = c.dst_last()
        c.raw(Inst(f"ds_storexchg_rtn_b{32 * n}", (dst, address, c.vtuple("Rb", n)), imm=imm))
        return
    name = native_name(kind)
    if name is None:
        _shared_loop(c, kind, address, imm)
        return
    stem, sort = name.rsplit("_", 1)
    _shared(c, f"{stem}{{}}_{sort}", address, (c.vtuple("Rb", n),), imm)


def _shared(c: RuleEmitter, pattern: str, address: V, data: tuple[V, ...], imm: int) -> None:
    if _result(c):
        op = "ds_" + pattern.format("_rtn")
        c.raw(Inst(op, (c.dst_last(), address, *data), imm=imm))
    else:
        c.raw(Inst("ds_" + pattern.format(""), (address, *data), imm=imm))


def _shared_loop(c: RuleEmitter, kind: Kind, address: V, imm: int) -> None:
    n = kind.words
    combine = _combine(c, kind)
    operand = c.vtuple("Rb", n)
    new, old, seen = c.vtemp(n), c.vtemp(n), c.vtemp(n)
    same, save = c.stemp(), c.stemp()
    c.raw(Inst(f"ds_load_b{32 * n}", (old, address), imm=imm))
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    again, done = c.k.label("Lcas"), c.k.label("Lcas_done")
    c.branch("s_cbranch_execz", done)
    c.mark(again)
    combine(new, old, operand)
    c.raw(Inst(f"ds_cmpstore_rtn_b{32 * n}", (seen, address, new, old), imm=imm))
    _retry(c, n, seen, old, same, again)
    c.mark(done)
    c.raw(Inst("s_mov_b32", (EXEC, save)))
    _give(c, seen, n)


def cast_spin(c: RuleEmitter) -> None:
    """ATOMS.CAST.SPIN: stores Rc if memory equals Rb; the result is 1 if it did, otherwise 0."""
    n = 2 if c.ins.has("64") else 1
    at, imm = address32(c, c.mem(), 0, 0xFFFF)
    seen, hit = c.vtemp(n), c.stemp()
    new, compare = c.vtuple("Rc", n), c.vtuple("Rb", n)
    c.raw(Inst(f"ds_cmpstore_rtn_b{32 * n}", (seen, c.to_v(at), new, compare), imm=imm))
    c.emit(f"v_cmp_eq_u{32 * n}", hit, seen, compare)
    if c.wants_pred("Pu"):
        c.pred_commit("Pu", hit, clean=True)
    if _result(c):
        dst = c.dst_last()
        c.emit("v_cndmask_b32", V(dst.index), I(0), I(1), hit)
        for i in range(1, dst.n):
            c.emit("v_mov_b32", V(dst.index + i), I(0))


def cast_flat(c: RuleEmitter) -> None:
    """ATOM.CAST.SPIN: the same through a generic address."""
    _no_predicate(c)
    n = 2 if c.ins.has("64") else 1
    at = address64(c, c.mem(), True)
    pair, seen, hit = c.vtemp(2 * n), c.vtemp(n), c.stemp()
    for i in range(n):
        c.emit("v_mov_b32", V(pair.index + i), c.src("Rc", i))
        c.emit("v_mov_b32", V(pair.index + n + i), c.src("Rb", i))
    op = f"flat_atomic_cmpswap_b{32 * n}"
    c.raw(Inst(op, (seen, at.v, V(pair.index, 2 * n)), imm=at.imm, glc=True))
    c.emit(f"v_cmp_eq_u{32 * n}", hit, seen, V(pair.index + n, n))
    if _result(c):
        dst = c.dst_last()
        c.emit("v_cndmask_b32", V(dst.index), I(0), I(1), hit)
        for i in range(1, dst.n):
            c.emit("v_mov_b32", V(dst.index + i), I(0))


def popc_inc(c: RuleEmitter) -> None:
    """ATOMS.POPC.INC without a result: adds one per lane."""
    at, imm = address32(c, c.mem(), 0, 0xFFFF)
    one = c.vtemp()
    c.emit("v_mov_b32", one, I(1))
    c.raw(Inst("ds_add_u32", (c.to_v(at), one), imm=imm))


def popc_inc_flat(c: RuleEmitter) -> None:
    """ATOM.POPC.INC, whose address is generic; no GPU with it told its results."""
    if _result(c) or c.wants_pred("Pu"):
        raise c.refuse("result of ATOM.POPC.INC")
    at, one = address64(c, c.mem(), True), c.vtemp()
    c.emit("v_mov_b32", one, I(1))
    c.raw(Inst("flat_atomic_add_u32", (at.v, one), imm=at.imm))


def popc_inc_value(c: RuleEmitter) -> None:
    """ATOMS.POPC.INC with a result: the value from before the instruction, for all lanes that share
    a word (measured, docs/errata.md).

    One word after the other: the first of its lanes adds their number, in one operation, so that
    increments of other waves come before or after all of them.
    """
    at, imm = address32(c, c.mem(), 0, 0xFFFF)
    address, number, old, result = c.to_v(at), c.vtemp(), c.vtemp(), c.vtemp()
    save, left, same, one, word = (c.stemp() for _ in range(5))
    lane = lane_id(c)
    c.emit("s_mov_b32", save, EXEC)
    c.emit("s_mov_b32", left, EXEC)
    again, done = c.k.label("Lcount"), c.k.label("Lcount_done")
    c.branch("s_cbranch_execz", done)
    c.mark(again)
    c.emit("v_readfirstlane_b32", word, address)
    c.emit("v_cmp_eq_u32", same, word, address)
    c.emit("s_bcnt1_i32_b32", word, same)
    c.emit("v_mov_b32", number, word)
    c.emit("s_mov_b32", EXEC, same)
    c.emit("v_readfirstlane_b32", word, lane)
    c.emit("v_cmp_eq_u32", one, word, lane)
    c.emit("s_and_b32", EXEC, EXEC, one)
    c.raw(Inst("ds_add_rtn_u32", (old, address, number), imm=imm))
    c.emit("v_readfirstlane_b32", word, old)
    c.emit("s_mov_b32", EXEC, same)
    c.emit("v_mov_b32", result, word)
    c.emit("s_and_not1_b32", left, left, same)
    c.emit("s_mov_b32", EXEC, left)
    c.branch("s_cbranch_execnz", again)
    c.mark(done)
    c.emit("s_mov_b32", EXEC, save)
    c.emit("v_mov_b32", c.dst_last(), result)


def _is_cast(ins: Instruction) -> bool:
    return ins.has("CAST")


def _is_counted(ins: Instruction) -> bool:
    target = ins.get("Rd")
    return ins.has("POPC") and isinstance(target, Reg) and not target.is_zero


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "atom_cast": f"E CAST SPIN 64 {SCOPES}",
    "atom_popc": f"E POPC INC 32 {SCOPES} {HINTS}",
    "ATOM": ATOMIC,
    "ATOMG": ATOMIC,
    "RED": ATOMIC,
    "REDG": ATOMIC,
    "atoms_cast": "CAST SPIN 64",
    "atoms_popc_value": "POPC INC 32",
    "atoms_popc": "POPC INC 32",
    "ATOMS": "64 S32 U64 S64 F32 F64 F16x2 RN FTZ ADD MIN MAX INC DEC AND OR XOR EXCH CAS",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("atom_cast", "ATOM", cast_flat, _is_cast),
    Rule("atom_popc", "ATOM", popc_inc_flat, lambda i: i.has("POPC")),
    Rule("atom", "ATOM", atomic),
    Rule("atomg", "ATOMG", atomic),
    Rule("red", "RED", atomic),
    Rule("redg", "REDG", atomic),
    Rule("atoms_cast", "ATOMS", cast_spin, _is_cast),
    Rule("atoms_popc_value", "ATOMS", popc_inc_value, _is_counted),
    Rule("atoms_popc", "ATOMS", popc_inc, lambda i: i.has("POPC")),
    Rule("atoms", "ATOMS", atoms),
)
