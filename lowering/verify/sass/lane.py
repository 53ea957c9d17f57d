"""The SASS side: the effect of instructions on one lane's registers, over a domain."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

from sassxlate.disasm.sass.instruction import (
    BReg,
    Const,
    Instruction,
    Label,
    Mem,
    Pred,
    PredFile,
    Reg,
    RegFile,
    RegRef,
    Special,
)
from sassxlate.disasm.sass.semantics import NoSemantics, evaluate, semantics_table
from sassxlate.disasm.sass.semantics.memory.memory import place
from sassxlate.disasm.sass.traits import traits
from sassxlate.domain.interface import Domain
from sassxlate.lowering.abi.kernarg import BankLayout
from sassxlate.lowering.target import Target
from sassxlate.lowering.verify.memory import Memory
from sassxlate.lowering.verify.sass.memory import Accesses, is_access
from sassxlate.lowering.verify.verdict import Undecided

T = TypeVar("T")
# Barriers belong to the convergence machine; a lane's registers and predicates do not change.
CONVERGENCE = ("arm", "leave")
# A cluster has one block here.
_ZERO = frozenset({"SRZ", "SR_CgaCtaId", "SR_CgaSize", "SR_SWINLO", "SR_LWINLO", "SR_LMEMHIOFF"})
# Names of the apertures' high words, which the driver chooses.
SHARED_APERTURE, PRIVATE_APERTURE = "shared.aperture", "private.aperture"
_APERTURES = {"SR_SWINHI": SHARED_APERTURE, "SR_LWINHI": PRIVATE_APERTURE}
_LANE_MASKS = {f"SR_{kind.upper()}MASK": kind for kind in ("eq", "lt", "le", "gt", "ge")}


def lane_number(d: Domain[T], free: Callable[[str, int], T]) -> T:
    """The number of the lane: any of 32."""
    return d.zext(free("lane", 5), 32)


class SassLane(Generic[T]):
    """Registers and predicates; those never written hold a free value made by ``free``."""

    def __init__(
        self,
        d: Domain[T],
        layout: BankLayout,
        free: Callable[[str, int], T],
        active: bool,
        target: Target,
    ) -> None:
        self.d = d
        self.active = d.const(int(active), 1)
        self.layout, self.target = layout, target
        self.free = free
        self.values: dict[RegRef, T] = {}
        self.memory = Memory(d, free)
        self._accesses = Accesses(d, self.get, self.memory)

    def remember(self, memory: Memory[T]) -> None:
        """Has another memory from here on."""
        self.memory = memory
        self._accesses = Accesses(self.d, self.get, memory)

    def reg(self, file: RegFile, index: int) -> T:
        return self.get(RegRef(file, index))

    def pred(self, file: PredFile, index: int) -> T:
        return self.get(RegRef(file, index))

    def get(self, ref: RegRef) -> T:
        if ref not in self.values:
            width = 32 if ref.file in ("R", "UR", "B") else 1
            self.values[ref] = self.free(f"{ref.file}{ref.index}", width)
        return self.values[ref]

    @cached_property
    def windows(self) -> dict[int, str | None]:
        """The words of bank 0 that hold the window bases, and whose high word each is, if any."""
        bases = (
            (self.layout.shared_window, SHARED_APERTURE),
            (self.layout.local_window, PRIVATE_APERTURE),
        )
        low: dict[int, str | None] = {base: None for base, _ in bases if base is not None}
        return low | {base + 4: name for base, name in bases if base is not None}

    def word(self, bank: int, offset: int) -> T:
        """An aligned word of a constant bank; the windows' bases are AMD's apertures."""
        windows, pointer = self.windows, self.layout.param_pointer
        if bank == 0 and pointer is not None and pointer <= offset < pointer + 8:
            raise Undecided("the address of the parameters")
        end = self.layout.param_end
        if bank == 0 and not self.layout.bank_pointer and end <= offset < end + 8:
            raise Undecided("the address of the parameters")
        if bank == 0 and offset in windows:
            name = windows[offset]
            return self.d.const(0, 32) if name is None else self.free(name, 32)
        return self.free(f"c[{bank:#x}][{offset:#x}]", 32)

    def const(self, operand: Const, word: int) -> T:
        indexed = operand.index is not None and not operand.index.is_zero
        if operand.ur is not None or indexed:
            raise Undecided("a constant whose place is computed")
        offset = operand.place + 4 * word
        value = self.word(operand.bank, offset & ~3)
        shift = 8 * (offset & 3)
        return self.d.lshr(value, self.d.const(shift, 32)) if shift else value

    def special(self, operand: Special) -> T:
        """Thread and block numbers, from the registers where a wave starts with them."""
        name, _, axis = operand.name.partition(".")
        if name == "SR_TID" and axis:  # packed, ten bits each
            packed = self.free("tid", 32)
            return self.d.zext(self.d.extract(packed, 10 * "XYZ".index(axis), 10), 32)
        if name == "SR_CTAID" and axis:
            return self.free(f"s{self.target.group_id['XYZ'.index(axis)].index}", 32)
        if operand.name in _ZERO:
            return self.d.const(0, 32)
        if operand.name in _APERTURES:
            return self.free(_APERTURES[operand.name], 32)
        if operand.name == "SR_LANEID":
            return lane_number(self.d, self.free)
        if operand.name in _LANE_MASKS:
            return self._lane_mask(_LANE_MASKS[operand.name])
        raise Undecided(f"special register {operand.name}")

    def _lane_mask(self, kind: str) -> T:
        d = self.d
        bit = d.shl(d.const(1, 32), lane_number(d, self.free))
        below = d.sub(bit, d.const(1, 32))
        match kind:
            case "eq":
                return bit
            case "lt":
                return below
            case "le":
                return d.or_(below, bit)
            case "gt":
                return d.not_(d.or_(below, bit))
            case _:
                return d.not_(below)

    def told(self, ins: Instruction) -> T:
        """Whether the guard holds."""
        guard = ins.guard
        if guard.index == 7:
            return self.d.const(int(not guard.inv), 1)
        value = self.get(RegRef(guard.file, guard.index))
        return self.d.not_(value) if guard.inv else value

    def run(self, ins: Instruction) -> None:
        """One instruction, applied where its guard holds.  Raises Undecided."""
        guard, told = ins.guard, self.told(ins)
        if guard.file == "P" and guard.index != 7 and any(r.file[0] == "U" for r in ins.writes):
            # Other lanes may execute it, and this lane then sees their result.
            raise Undecided("a uniform result under a per-lane guard")
        written = self._written(ins, told)
        if not guard.is_true:
            written = {r: self.d.select(told, v, self.get(r)) for r, v in written.items()}
        self.values.update(written)

    def _written(self, ins: Instruction, told: T) -> dict[RegRef, T]:
        if traits(ins).barrier in CONVERGENCE:
            return {}
        if is_access(ins):
            when = self.d.and_(told, self.active)
            return self._accesses.run(ins, when)
        own = self._state(ins)
        if own is not None:
            return own
        meaning = semantics_table().get(ins.mnemonic)
        if meaning is None:
            raise Undecided(f"no meaning of {ins.mnemonic}")
        try:
            return evaluate(self.d, meaning, ins, self)
        except NoSemantics as reason:
            raise Undecided(f"{ins.mnemonic}: {reason}") from None

    def _state(self, ins: Instruction) -> dict[RegRef, T] | None:
        """Instructions that read state, not data: code addresses, which are offsets here, and
        another lane's register if all lanes hold the same value."""
        if ins.mnemonic == "BMOV":
            return self._barrier(ins)
        if ins.mnemonic == "QSPC":
            return self._space(ins)
        if ins.mnemonic == "USETMAXREG":  # a warp always has all of its registers
            return {ref: self.d.const(1, 1) for ref in ins.writes}
        target, source, out = ins.get("target"), ins.get("Ra"), ins.get("Rd")
        done = ins.get("Pu")
        if not isinstance(out, Reg) or (isinstance(done, Pred) and done.index != 7):
            return None
        if ins.mnemonic == "LEPC" and not ins.modifiers:
            value = target.target if isinstance(target, Label) else ins.offset
            words = [self.d.const(value >> 32 * i, 32) for i in range(out.width)]
        elif ins.mnemonic == "R2UR" and not ins.modifiers and isinstance(source, Reg):
            if source.neg or source.inv or source.is_zero:
                return None
            words = [self.get(RegRef(source.file, source.index))]
        else:
            return None
        if out.is_zero:
            return {}
        return {RegRef(out.file, out.index + i): w for i, w in enumerate(words)}

    def _space(self, ins: Instruction) -> dict[RegRef, T] | None:
        """QSPC: whether an address is in shared (S), local (L) or global (G) memory, by AMD's
        apertures; no address is in another block's shared memory (D)."""
        d, mem, done, out = self.d, ins.get("mem"), ins.get("Pu"), ins.get("Rd")
        if not isinstance(mem, Mem) or not isinstance(done, Pred):
            return None
        if isinstance(out, Reg) and not out.is_zero:
            return None
        address = place(d, mem, lambda file, index: self.get(RegRef(file, index)), 64)
        high = d.extract(address, 32, 32)
        shared = d.eq(high, self.free(SHARED_APERTURE, 32))
        local = d.eq(high, self.free(PRIVATE_APERTURE, 32))
        if ins.has("S") or ins.has("L"):
            hit = shared if ins.has("S") else local
        else:
            hit = d.const(0, 1) if ins.has("D") else d.not_(d.or_(shared, local))
        return {} if done.index == 7 else {RegRef(done.file, done.index): hit}

    def _barrier(self, ins: Instruction) -> dict[RegRef, T] | None:
        """BMOV between a register and a convergence barrier, which is a per-lane mask here."""
        target, source = ins.get("Rd"), ins.get("Ra")
        barrier = ins.get("B") or ins.get("Bd")
        if not isinstance(barrier, BReg) or not barrier.name.startswith("B"):
            return None
        ref = RegRef("B", barrier.index)
        if isinstance(target, Reg):
            out = {} if target.is_zero else {RegRef(target.file, target.index): self.get(ref)}
            return {**out, ref: self.d.const(0, 32)} if ins.has("CLEAR") else out
        if isinstance(source, Reg) and not source.is_zero:
            return {ref: self.get(RegRef(source.file, source.index))}
        return None
