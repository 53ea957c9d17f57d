"""Memory as ordered effects: what each side loads and stores, where, and under which condition.

Accesses are compared word by word, so that one side may split or merge them.  A loaded word is a
free value that both sides share by its place in the order.  Nothing is said of what memory holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sassxlate.disasm.rdna3.ir import Arg, Inst, Sp
from sassxlate.disasm.sass.ir import Instruction, Mem, Pred, Reg, RegRef
from sassxlate.domain import Domain

from .verdict import Undecided

T = TypeVar("T")
# SASS mnemonic -> (AMD's space, whether it stores).
_SASS = {
    "LDG": ("global", False), "STG": ("global", True), "LD": ("flat", False),
    "ST": ("flat", True), "LDS": ("ds", False), "STS": ("ds", True),
    "LDL": ("scratch", False), "STL": ("scratch", True),
}  # fmt: skip
_PARTS = {"U8": (1, False), "S8": (1, True), "U16": (2, False), "S16": (2, True)}
_SIZES = {
    "u8": (1, False), "i8": (1, True), "u16": (2, False), "i16": (2, True), "b8": (1, False),
    "b16": (2, False), "b32": (4, False), "b64": (8, False), "b96": (12, False),
    "b128": (16, False),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Access(Generic[T]):
    """One word, or part of one: where (an address of 64 or 32 bits), under which condition."""

    space: str
    store: bool
    size: int  # bytes, at most 4
    when: T
    address: T
    data: T | None


class Memory(Generic[T]):
    """The accesses of one side, in order."""

    def __init__(self, d: Domain[T], free: Callable[[str, int], T]) -> None:
        self.d = d
        self.free = free
        self.accesses: list[Access[T]] = []
        self._loads = 0

    def _words(self, size: int) -> list[tuple[int, int]]:
        """(offset, size) of the words of an access."""
        return [(0, size)] if size < 4 else [(at, 4) for at in range(0, size, 4)]

    def load(self, space: str, size: int, signed: bool, when: T, address: T) -> list[T]:
        """The words that come, the part of one extended."""
        d = self.d
        out: list[T] = []
        for at, part in self._words(size):
            where = d.add(address, d.const(at, d.width(address))) if at else address
            self.accesses.append(Access(space, False, part, when, where, None))
            value = self.free(f"load{self._loads}", 8 * part)
            self._loads += 1
            out.append(value if part == 4 else d.sext(value, 32) if signed else d.zext(value, 32))
        return out

    def store(self, space: str, size: int, when: T, address: T, data: Sequence[T]) -> None:
        d = self.d
        for n, (at, part) in enumerate(self._words(size)):
            where = d.add(address, d.const(at, d.width(address))) if at else address
            value = d.extract(data[n], 0, 8 * part) if part < 4 else data[n]
            self.accesses.append(Access(space, True, part, when, where, value))


# --- SASS --------------------------------------------------------------------------------------


def is_access(ins: Instruction) -> bool:
    return ins.mnemonic in _SASS


def _extended(d: Domain[T], get: Callable[[RegRef], T], reg: Reg | None, width: int) -> T:
    """A register or pair as an address of 32 or 64 bits."""
    if reg is None or reg.is_zero:
        return d.const(0, width)
    low = get(RegRef(reg.file, reg.index))
    if width == 32:
        return low
    if reg.width == 1:
        return d.zext(low, 64)
    return d.concat(get(RegRef(reg.file, reg.index + 1)), low)


def sass_access(
    d: Domain[T], ins: Instruction, get: Callable[[RegRef], T], when: T, memory: Memory[T]
) -> dict[RegRef, T]:
    """Adds an instruction's accesses; the registers that it loads.  Raises Undecided."""
    space, store = _SASS[ins.mnemonic]
    mem = ins.get("mem")
    second = ins.get("Pp")
    if not isinstance(mem, Mem) or (isinstance(second, Pred) and not second.is_true):
        raise Undecided(f"this form of {ins.mnemonic}")
    width = 64 if space in ("global", "flat") else 32
    base = _extended(d, get, mem.base, width)
    if mem.scale != 1:
        base = d.shl(base, d.const(mem.scale.bit_length() - 1, width))
    address = d.add(base, _extended(d, get, mem.ureg, width))
    address = d.add(address, d.const(mem.offset, width))
    part = next((_PARTS[m] for m in ins.modifiers if m in _PARTS), None)
    whole = next((int(m) // 8 for m in ins.modifiers if m in ("64", "128")), 4)
    size, signed = part or (whole, False)
    target = ins.get("Rb" if store else "Rd")
    if not isinstance(target, Reg):
        raise Undecided(f"this form of {ins.mnemonic}")
    places = [RegRef(target.file, target.index + i) for i in range((size + 3) // 4)]
    if store:
        data = [d.const(0, 32) if target.is_zero else get(p) for p in places]
        memory.store(space, size, when, address, data)
        return {}
    loaded = memory.load(space, size, signed, when, address)
    return {} if target.is_zero else dict(zip(places, loaded, strict=True))


# --- RDNA3 -------------------------------------------------------------------------------------


def rdna_space(op: str) -> str | None:
    """The space of a load or store that is known here."""
    for space in ("global", "flat", "scratch", "ds"):
        if op.startswith((f"{space}_load_", f"{space}_store_")):
            return space if op.rpartition("_")[2] in _SIZES else None
    return None


def _off(arg: Arg) -> bool:
    return isinstance(arg, Sp) and arg.name in ("off", "null")


def rdna_access(
    d: Domain[T],
    inst: Inst,
    space: str,
    read32: Callable[[Arg], T],
    read64: Callable[[Arg], T],
    words: Callable[[Arg, int], list[T]],
    when: T,
    memory: Memory[T],
) -> list[T]:
    """Adds an instruction's accesses; the words that it loads."""
    store = "_store_" in inst.op
    size, signed = _SIZES[inst.op.rpartition("_")[2]]
    first, second = (inst.args[1], inst.args[0]) if not store else (inst.args[0], inst.args[1])
    width = 64 if space in ("global", "flat") else 32
    if space == "flat":
        address = read64(first)
    elif space == "ds":
        address = read32(first)
    else:
        base = inst.args[2]
        if space == "global":
            if _off(base):
                address = read64(first)
            else:
                address = d.add(read64(base), d.zext(read32(first), 64))
        else:
            address = d.const(0, 32) if _off(first) else read32(first)
            if not _off(base):
                address = d.add(address, read32(base))
    address = d.add(address, d.const(inst.imm, width))
    if store:
        memory.store(space, size, when, address, words(second, (size + 3) // 4))
        return []
    return memory.load(space, size, signed, when, address)
