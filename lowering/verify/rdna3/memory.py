"""The effects of RDNA3 instructions on memory: loads, stores, atomics, fences, and registers that
the allocator keeps in scratch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from sassxlate.disasm.rdna3.instruction import Arg, Inst, S, Sp
from sassxlate.lowering.verify.verdict import Undecided

if TYPE_CHECKING:
    from sassxlate.lowering.verify.rdna3.registers import Registers

T = TypeVar("T")
# Suffix -> (bytes, whether a partial word is sign-extended).
_SIZES = {
    "u8": (1, False), "i8": (1, True), "u16": (2, False), "i16": (2, True), "b8": (1, False),
    "b16": (2, False), "b32": (4, False), "b64": (8, False), "b96": (12, False),
    "b128": (16, False),
}  # fmt: skip
_PLAIN = re.compile(r"(global|flat|scratch|ds)_(load|store)_([a-z]+\d+)")
_ATOMIC = re.compile(r"(global|flat)_atomic_([a-z]+)_([biuf](?:32|64))")
_SHARED = re.compile(
    r"ds_(add|inc|dec|min|max|and|or|xor|storexchg|cmpstore)(_rtn)?_([biuf](?:32|64))"
)
_SHARED_NAMES = {"storexchg": "swap", "cmpstore": "cmpswap"}
_FENCES = {"buffer_gl0_inv": "gl0", "buffer_gl1_inv": "gl1"}
_WAITS = frozenset({"s_waitcnt", "s_waitcnt_vscnt"})


def rdna_space(op: str) -> str | None:
    """The space of a load, store or atomic that this module covers."""
    plain = _PLAIN.fullmatch(op)
    if plain is not None:
        return plain[1] if plain[3] in _SIZES else None
    atomic = _ATOMIC.fullmatch(op)
    if atomic is not None:
        return atomic[1]
    return "ds" if _SHARED.fullmatch(op) else None


def _off(arg: Arg) -> bool:
    return isinstance(arg, Sp) and arg.name in ("off", "null")


def access(m: Registers[T], inst: Inst, space: str) -> None:
    """A load, store or atomic of the active lane.  Raises Undecided."""
    plain = _PLAIN.fullmatch(inst.op)
    if plain is None:
        _atomic(m, inst, space)
        return
    store = plain[2] == "store"
    size, signed = _SIZES[plain[3]]
    if store:
        first, data, rest = inst.args[0], inst.args[1], inst.args[2:]
    else:
        first, data, rest = inst.args[1], inst.args[0], inst.args[2:]
    words = (size + 3) // 4
    slot = _slot(m, inst, first, rest) if space == "scratch" else None
    if slot is not None:
        _spill(m, inst, slot, data, store, words)
        return
    bank = _bank(m, rest) if space == "global" and not store else None
    if bank is not None:
        d = m.d
        address = d.add(d.zext(m.read32(inst, first), 64), d.const(inst.imm, 64))
        loaded = m.memory.load(f"c[{bank}]", size, signed, m.active(), address)
    else:
        address = _address(m, inst, space, first, rest)
        if store:
            values = [m.read32(inst, data, i) for i in range(words)]
            m.memory.store(space, size, m.active(), address, values)
            return
        loaded = m.memory.load(space, size, signed, m.active(), address)
    for i, value in enumerate(loaded):
        m.write32(inst, data, value, i)


def _address(m: Registers[T], inst: Inst, space: str, first: Arg, rest: tuple[Arg, ...]) -> T:
    d = m.d
    width = 64 if space in ("global", "flat") else 32
    if space == "flat":
        address = m.read64(inst, first)
    elif space == "ds":
        address = m.read32(inst, first)
    elif space == "scratch":
        address = d.const(0, 32) if _off(first) else m.read32(inst, first)
        if rest and not _off(rest[0]):
            address = d.add(address, m.read32(inst, rest[0]))
    elif not rest or _off(rest[0]):
        address = m.read64(inst, first)
    else:
        address = d.add(m.read64(inst, rest[0]), d.zext(m.read32(inst, first), 64))
    return d.add(address, d.const(inst.imm, width))


def _bank(m: Registers[T], rest: tuple[Arg, ...]) -> int | None:
    """The constant bank whose address a scalar base holds."""
    base = rest[0] if rest else None
    return m.pointers.get(base.index) if isinstance(base, S) else None


# --- registers in scratch ------------------------------------------------------------------------


def _slot(m: Registers[T], inst: Inst, first: Arg, rest: tuple[Arg, ...]) -> int | None:
    """The offset of a register's slot, if the access is to one."""
    base = 0
    if not _off(first):
        return None
    if rest and not _off(rest[0]):
        known = m.known.get(rest[0].index) if isinstance(rest[0], S) else None
        if known is None:
            return None
        base = known
    return base + inst.imm if base + inst.imm in m.slots else None


def _spill(m: Registers[T], inst: Inst, slot: int, data: Arg, store: bool, words: int) -> None:
    for i in range(words):
        at = slot + 4 * i
        if at not in m.slots:
            raise Undecided("an access that spans registers in scratch")
        if store:
            value = m.read32(inst, data, i)
            m.slots[at] = m.d.select(m.active(), value, m.slots[at])
        else:
            m.write32(inst, data, m.slots[at], i)


# --- atomics and fences --------------------------------------------------------------------------


def _atomic(m: Registers[T], inst: Inst, space: str) -> None:
    shared = _SHARED.fullmatch(inst.op)
    other = _ATOMIC.fullmatch(inst.op)
    args = list(inst.args)
    if shared is not None:
        name, kind = _SHARED_NAMES.get(shared[1], shared[1]), shared[3]
        returns = shared[2] is not None
    else:
        assert other is not None
        name, kind, returns = other[2], other[3], inst.glc
    words = int(kind[1:]) // 32
    target = args.pop(0) if returns else None
    first, data, rest = args[0], args[1], tuple(args[2:])
    values = [m.read32(inst, data, i) for i in range(words)]
    if name == "cmpswap":
        if shared is not None:
            values += [m.read32(inst, rest[0], i) for i in range(words)]
        else:
            values += [m.read32(inst, data, words + i) for i in range(words)]
        kind = f"b{32 * words}"
    if _bank(m, rest) is not None and space == "global":
        raise Undecided("an atomic on a constant bank")
    address = _address(m, inst, space, first, () if shared is not None else rest)
    came = m.memory.atomic(space, f"{name}_{kind}", words, m.active(), address, values)
    if target is not None:
        for i, value in enumerate(came):
            m.write32(inst, target, value, i)


def is_fence(inst: Inst) -> bool:
    return inst.op in _FENCES or inst.op in _WAITS


def fence(m: Registers[T], inst: Inst, done: bool) -> None:
    """An emptied cache; or a wait after which nothing is outstanding."""
    if inst.op in _FENCES:
        m.memory.fence(_FENCES[inst.op])
    elif done:
        m.memory.fence("done")


__all__ = ["access", "fence", "is_fence", "rdna_space"]
