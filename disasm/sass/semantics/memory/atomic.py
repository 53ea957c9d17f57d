"""Atomic operations: the new contents of memory, over any domain, and the instructions over
warps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.semantics.arithmetic import bfloat
from sassxlate.disasm.sass.semantics.arithmetic.float import NAN64, extreme
from sassxlate.disasm.sass.semantics.memory.asynchronous import arrive80
from sassxlate.disasm.sass.semantics.memory.memory import POLICY, places
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.semantics.warp_state import (
    Addresses,
    Bytes,
    Mask,
    Space,
    WarpMeaning,
    WarpView,
    Windows,
    Words,
    as_bytes,
    as_words,
)
from sassxlate.domain.interface import IEEE, Domain, Fp, Round, is_nan, smax, smin, umax, umin
from sassxlate.domain.numpy_lanes import Vec

T = TypeVar("T")
Results: TypeAlias = "Mapping[str, NDArray[Any]]"
_OPS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH")
SPACES: Mapping[str, Space] = {
    "ATOM": "generic", "ATOMG": "global", "RED": "generic", "REDG": "global", "ATOMS": "shared",
}  # fmt: skip
# Elements of one access: (kind, bits, how many).
_TYPES: Mapping[str, tuple[str, int, int]] = {
    "S32": ("signed", 32, 1), "64": ("unsigned", 64, 1), "S64": ("signed", 64, 1),
    "F16x2": ("f", 16, 2), "F16x4": ("f", 16, 4), "F16x8": ("f", 16, 8),
    "BF16x2": ("bf", 16, 2), "BF16x4": ("bf", 16, 4), "BF16x8": ("bf", 16, 8),
    "F32": ("f", 32, 1), "F32x2": ("f", 32, 2), "F32x4": ("f", 32, 4), "F64": ("f", 64, 1),
    "128": ("bits", 32, 4),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Element:
    """The operand of an atomic: ``count`` elements of ``bits`` bits."""

    kind: str  # unsigned, signed, f, bf; bits: exchanged or compared as a whole
    bits: int
    count: int
    flush: bool = False

    @property
    def size(self) -> int:
        """Bytes of the access."""
        return self.bits * self.count // 8


def element(modifiers: tuple[str, ...]) -> Element:
    """The type among an atomic's modifiers."""
    kind, bits, count = next((_TYPES[m] for m in modifiers if m in _TYPES), ("unsigned", 32, 1))
    return Element(kind, bits, count, "FTZ" in modifiers)


def combine(d: Domain[T], op: str, what: Element, old: T, operand: T) -> T:
    """The new value of one element."""
    zero, one = d.const(0, what.bits), d.const(1, what.bits)
    match op:
        case "EXCH":
            return operand
        case _ if what.kind in ("f", "bf"):
            return _sum(d, op, what, old, operand)
        case _ if what.kind == "bits":
            raise NoSemantics(f"atomic {op} of 128 bits")
        case "ADD":
            return d.add(old, operand)
        case "MIN":
            return (smin if what.kind == "signed" else umin)(d, old, operand)
        case "MAX":
            return (smax if what.kind == "signed" else umax)(d, old, operand)
        case "AND":
            return d.and_(old, operand)
        case "OR":
            return d.or_(old, operand)
        case "XOR":
            return d.xor(old, operand)
        case "INC":  # wraps at the operand
            return d.select(d.ult(old, operand), d.add(old, one), zero)
        case "DEC":
            inside = d.and_(d.not_(d.eq(old, zero)), d.not_(d.ult(operand, old)))
            return d.select(inside, d.sub(old, one), operand)
        case _:
            raise NoSemantics(f"atomic {op}")


_NAN = {16: 0x7FFF, 32: 0x7FFFFFFF}


def _sum(d: Domain[T], op: str, what: Element, old: T, operand: T) -> T:
    if op in ("MIN", "MAX") and what.bits == 16:
        least = d.const(int(op == "MIN"), 1)
        if what.kind == "f":
            return extreme(d, old, operand, least, nan=0x7FFF, strict=False)
        p, q = d.concat(old, d.const(0, 16)), d.concat(operand, d.const(0, 16))
        return d.extract(extreme(d, p, q, least, nan=0x7FFF0000, strict=False), 16, 16)
    if op != "ADD":
        raise NoSemantics(f"atomic {op} of floats")
    if what.kind == "bf":
        p, q = d.concat(old, d.const(0, 16)), d.concat(operand, d.const(0, 16))
        near = d.fadd(p, q, IEEE)
        odd = bfloat.odd(d, d.fadd(p, q, Fp(Round.DOWN)), d.fadd(p, q, Fp(Round.UP)))
        none = d.eq(d.shl(near, d.const(1, 32)), d.const(0, 32))
        return bfloat.of_single(d, d.select(none, near, odd), Round.NEAREST)
    out = d.fadd(old, operand, Fp(flush_in=what.flush, flush_out=what.flush))
    if what.bits == 64:
        # A NaN is kept unchanged, a signalling one too; the operand's NaN takes precedence over
        # memory's.
        invalid = d.select(is_nan(d, out), d.const(NAN64, 64), out)
        return d.select(is_nan(d, operand), operand, d.select(is_nan(d, old), old, invalid))
    return d.select(is_nan(d, out), d.const(_NAN[what.bits], what.bits), out)


# --- over warps --------------------------------------------------------------------------------


def _elements(data: Bytes, what: Element) -> Vec:
    """Bytes as elements, all in one row."""
    kind = {16: "<u2", 32: "<u4", 64: "<u8"}[what.bits]
    return Vec(np.ascontiguousarray(data).view(kind).astype(np.uint64).reshape(-1), what.bits)


def _data(x: WarpView, role: str, what: Element) -> Bytes:
    return as_bytes(x.words(role))[..., : what.size]


def _done(x: WarpView, where: Addresses, shared: bool, far: bool) -> Mask:
    """The lanes whose generic address is one that this operation reaches: ``shared`` memory,
    ``far`` memory.  For the others nothing happens, and ATOM's predicate is false."""
    if x.ins.mnemonic not in ("ATOM", "RED"):
        return x.mask
    near = np.zeros_like(x.mask)
    if isinstance(x.warp, Windows):
        near = np.broadcast_to(x.warp.in_shared(where), x.mask.shape)
    return x.mask & np.where(near, shared, far)


def _given(x: WarpView, before: Bytes, done: Mask, hit: Words | None = None) -> Results:
    """The old contents of memory, or ``hit``; Pu: whether it was done, never for ATOMG.  If it was
    not, Rd keeps its value."""
    words = as_words(before)
    if hit is not None:
        words = np.zeros_like(words)
        words[..., 0] = hit
    if x.wants("Rd") and not done.all():
        words = np.where(done[..., None], words, x.words("Rd"))
    out = words if words.shape[-1] > 1 else words[..., 0]
    return {"Rd": out, "Pu": done & (x.ins.mnemonic != "ATOMG")}


def atom(x: WarpView) -> Results:
    """Rd: the old contents."""
    space = SPACES[x.ins.mnemonic]
    if x.has("POPC"):
        if x.ins.mnemonic == "ATOM" and (x.wants("Rd") or x.wants("Pu")):  # not measured
            raise NoSemantics("a result of ATOM.POPC.INC")
        what, op = Element("unsigned", 32, 1), "ADD"
        data = np.broadcast_to(as_bytes(np.array([1], dtype=np.uint32)), (*x.mask.shape, 4))
    else:
        what, op = element(x.ins.modifiers), x.one_of(_OPS)
        data = _data(x, "Rb", what)
    combine(
        x.d, op, what, *(Vec(np.zeros(1, dtype=np.uint64), what.bits),) * 2
    )  # raises if unknown
    where = places(x, space, what.size, x.mask)

    def change(old: Bytes, at: tuple[NDArray[np.intp], ...]) -> Bytes:
        new = combine(x.d, op, what, _elements(old, what), _elements(data[at], what))
        kind = {16: "<u2", 32: "<u4", 64: "<u8"}[what.bits]
        values = np.broadcast_to(new.v, (old.size // (what.bits // 8),)).astype(kind)
        out: Bytes = values.view(np.uint8).reshape(old.shape)
        return out

    near = what.kind in ("signed", "unsigned") and (what.bits == 32 or op in ("ADD", "EXCH"))
    done = _done(x, where, near, True)
    before = x.warp.update(space, where, what.size, done, change)
    if x.has("POPC"):
        before = before_all(before, where, done)
    return _given(x, before, done)


def before_all(before: Bytes, where: Addresses, done: Mask) -> Bytes:
    """The value from before the whole warp's increments, of which each lane saw those of the lanes
    before it (measured, docs/errata.md)."""
    place = np.broadcast_to(where, done.shape)
    same = (place[..., :, None] == place[..., None, :]) & done[..., None, :]
    earlier = np.tril(np.ones(same.shape[-2:], dtype=np.bool_), -1)
    rank = (same & earlier).sum(axis=-1).astype(np.uint32)
    return as_bytes(as_words(before) - rank[..., None])


def swap(x: WarpView) -> Results:
    """CAS: stores Rc if memory equals Rb; Rd: the old contents.  CAST, in shared memory only: Rd is
    1 if it stored, otherwise 0; the hardware may fail spuriously (measured), which is not modelled
    here."""
    space = SPACES[x.ins.mnemonic]
    what = element(x.ins.modifiers)
    expected, new = _data(x, "Rb", what), _data(x, "Rc", what)

    def change(old: Bytes, at: tuple[NDArray[np.intp], ...]) -> Bytes:
        same = (old == expected[at]).all(axis=-1, keepdims=True)
        return np.where(same, new[at], old)

    where = places(x, space, what.size, x.mask)
    cast = not x.has("CAS")
    done = _done(x, where, True, not cast)
    before = x.warp.update(space, where, what.size, done, change)
    hit = (before == expected).all(axis=-1).astype(np.uint32) if cast else None
    given = _given(x, before, done, hit)
    if hit is not None and x.ins.mnemonic == "ATOMS":  # sm_100 and later loop on this predicate
        return {**given, "Pu": hit != 0}
    return given


def _any(x: WarpView) -> Results:
    if x.has("ARRIVE"):
        return arrive80(x)
    return swap(x) if x.has("CAS", "CAST") else atom(x)


def rows() -> list[WarpMeaning]:
    mods = frozenset(
        [
            *POLICY.split(),
            *_OPS,
            *_TYPES,
            "RN",
            "FTZ",
            "CAS",
            "CAST",
            "SPIN",
            "POPC",
            "32",
            "ARRIVE",
        ]
    )
    return [WarpMeaning(mnemonic, _any, mods) for mnemonic in SPACES]
