"""RDNA3 registers over a domain, as one lane of a wave sees them.

A VGPR is the lane's 32 bits.  A scalar register is 32 bits for the whole wave; if it is a mask,
its lowest bit is the lane's and the others are the other lanes'.  Which lane it is does not
matter: its number is free, and instructions that reach other lanes are not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar, cast

from sassxlate.cfg.rdna3_flow import ModeBits
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.semantics import Mode
from sassxlate.disasm.rdna3.semantics.apply import immediate
from sassxlate.disasm.rdna3.tables.operand_codes import ALIASES, EXEC_LO, NULL
from sassxlate.domain.interface import Domain, is_nan
from sassxlate.lowering.target import Target
from sassxlate.lowering.verify.memory import Memory
from sassxlate.lowering.verify.sass.lane import PRIVATE_APERTURE, SHARED_APERTURE, lane_number
from sassxlate.lowering.verify.solver.terms import NAN
from sassxlate.lowering.verify.verdict import Undecided

T = TypeVar("T")

# A NaN that SASS never makes.
OTHER_NAN = {16: 0xFE2B, 32: 0xFFC1234B, 64: 0xFFF9123456789ABC}
# MODE as our code objects set it: nearest even, denormals kept, DX10 clamp, not IEEE.
INITIAL_MODE = ModeBits(0xF0 | 1 << 8)
_LANEWISE = frozenset(
    "s_mov_b32 s_not_b32 s_and_b32 s_or_b32 s_xor_b32 s_and_not1_b32 s_or_not1_b32 s_nand_b32 "
    "s_nor_b32 s_xnor_b32 s_cselect_b32 s_and_saveexec_b32 s_and_not0_saveexec_b32 "
    "s_and_not1_saveexec_b32 s_or_saveexec_b32".split()
)
# Always 0, whatever is written: null, and the high half of EXEC, which wave32 does not have.
_ZEROS = frozenset({NULL, EXEC_LO + 1})
_COMPARES = frozenset("s_cmp_eq_u32 s_cmp_lg_u32 s_cmp_eq_i32 s_cmp_lg_i32".split())
# Low word, and the name of the high word: the driver chooses the address of an aperture.
_APERTURES = {
    "src_shared_base": (0, SHARED_APERTURE),
    "src_shared_limit": (0xFFFFFFFF, SHARED_APERTURE),
    "src_private_base": (0, PRIVATE_APERTURE),
    "src_private_limit": (0xFFFFFFFF, PRIVATE_APERTURE),
}


class Registers(Generic[T]):
    """``Machine[T]``; registers that were never set are free: ``free`` makes such a value."""

    def __init__(self, d: Domain[T], free: Callable[[str, int], T], target: Target) -> None:
        self.d, self.target = d, target
        self.free = free
        self.mode = Mode()
        self.bits = INITIAL_MODE
        self.v: dict[int, T] = {}
        self.s: dict[int, T] = {index: d.const(0, 32) for index in _ZEROS}
        self.flag: T = free("scc", 1)
        self.uniform = False  # whether a value was assumed equal in all lanes
        self.entered = False  # whether the lane is among those that entered the block
        self.own: frozenset[int] = frozenset()  # VGPRs that hold registers of the SASS side
        # For other VGPRs: EXEC at the write, their value, the value in lanes of EXEC.
        self._inner: dict[int, tuple[T, T, T]] = {}
        self.computes = False  # whether the current instruction changes only lanes in EXEC
        self.scalars = False  # whether it reads only numbers in scalar registers
        # Scalar registers with one bit per lane.  Which bit is this lane's is not known, so they
        # are not numbers.
        self.masks: set[int] = {EXEC_LO}
        self.barriers: frozenset[int] = frozenset()  # VGPRs of per-lane masks
        self.even: set[int] = set(_ZEROS)  # 0 or all ones: both masks and numbers
        self.torn: set[int] = set()  # masks on one path, numbers on another: neither
        self._fresh = [0]
        self._active: tuple[T, T] | None = None  # the mask that the bit came from, and the bit
        self.memory = Memory(d, free)
        # Scalar registers that hold the address of a constant bank, the words of the banks, and the
        # places in bank 0's image of the addresses of the others.
        self.pointers: dict[int, int] = {target.kernarg.index: 0}
        self.word: Callable[[int, int], T] | None = None
        self.tables: Mapping[int, int] = {}
        self.absent: frozenset[int] = frozenset()  # words of bank 0 that are never filled
        # VGPRs that R2UR declares equal in all lanes, with their values on the other side; and
        # each such use: its place, the expected value, the actual value.
        self.told: Mapping[int, T] = {}
        self.claims: list[tuple[T, T, T]] = []
        self.known: dict[int, int] = {}  # scalar registers that hold a known number
        self.slots: dict[int, T] = {}  # registers in scratch, by offset
        self.done: frozenset[int] = frozenset()  # waits after which nothing is outstanding

    def copy(self) -> Registers[T]:
        out = Registers(self.d, self.free, self.target)
        out.mode, out.flag, out.uniform = self.mode, self.flag, self.uniform
        out.entered, out.own, out._inner = self.entered, self.own, dict(self._inner)
        out.bits, out.masks, out.even = self.bits, set(self.masks), set(self.even)
        out.torn = set(self.torn)
        out.v, out.s, out._fresh = dict(self.v), dict(self.s), self._fresh
        out.memory, out.word, out.tables = self.memory, self.word, self.tables
        out.pointers, out.known, out.slots = (
            dict(self.pointers), dict(self.known), dict(self.slots)
        )  # fmt: skip
        out.done, out.barriers = self.done, self.barriers
        out.absent, out.told, out.claims = self.absent, self.told, self.claims
        return out

    def fresh(self, width: int) -> T:
        """The bits of other lanes."""
        self._fresh[0] += 1
        return self.free(f"other{self._fresh[0]}", width)

    def error(self, inst: Inst, message: str) -> Exception:
        return Undecided(f"{inst.op}: {message}")

    # -- registers ------------------------------------------------------------------------

    def vgpr(self, index: int) -> T:
        if index not in self.v:
            self.v[index] = self.free(f"v{index}", 32)
        return self.v[index]

    def sgpr(self, index: int) -> T:
        if index not in self.s:
            self.s[index] = self.free(f"s{index}", 32)
        return self.s[index]

    def active(self) -> T:
        """Whether the lane is active."""
        mask = self.sgpr(EXEC_LO)
        if self._active is None or self._active[0] is not mask:
            bit = self.d.extract(mask, 0, 1)
            simple = getattr(self.d, "simple", None)
            self._active = mask, bit if simple is None else cast("T", simple(bit))
        return self._active[1]

    def read32(self, inst: Inst, arg: Arg, part: int = 0) -> T:
        if isinstance(arg, V):
            return self._read_lane(arg.index + part)
        if isinstance(arg, S):
            return self._scalar(inst, arg.index + part)
        if isinstance(arg, I):
            return self.d.const(arg.value >> 32 * part, 32)
        if isinstance(arg, Sp):
            return self._special(inst, arg.name, part)
        raise self.error(inst, "a label is not an operand")

    def _read_lane(self, index: int) -> T:
        """For a temporary written under the same EXEC, the value of a lane in it: the values of
        other lanes do not matter to an instruction that changes only lanes in EXEC."""
        value = self.vgpr(index)
        if self.computes and (told := self._inner.get(index)) is not None:
            mask, stored, inner = told
            if stored is value and mask is self.sgpr(EXEC_LO):
                return inner
        return value

    def _special(self, inst: Inst, name: str, part: int) -> T:
        if name == "scc":
            return self.d.zext(self.flag, 32)
        if name in _APERTURES:
            low, high = _APERTURES[name]
            return self.free(high, 32) if part else self.d.const(low, 32)
        if name in ("vccz", "execz"):
            raise self.error(inst, name)
        if name in ("off", "null"):
            return self.d.const(0, 32)
        if name not in ALIASES or name.startswith("ttmp"):  # the trap handler's
            raise self.error(inst, f"operand {name}")
        return self._scalar(inst, ALIASES[name] + part)

    def _scalar(self, inst: Inst, index: int) -> T:
        if index in self.torn:
            raise self.error(inst, "a register that is a mask on one path only")
        if index in self.masks and not self.keeps_lanes(inst):
            target = inst.args[0] if inst.args else None
            if isinstance(target, V) and target.index in self.barriers:
                return self.fresh(32)  # used by the convergence machine: never a number
            raise self.error(inst, "a mask of lanes as a number")
        return self.sgpr(index)

    def keeps_lanes(self, inst: Inst) -> bool:
        """Whether each bit of the result depends only on the same bit of the operands: masks, and
        numbers whose bits are all equal."""
        if inst.op in _COMPARES:  # of the whole wave: the result depends on other lanes' bits
            return all(self.is_mask(a) for a in inst.args)
        return inst.op in _LANEWISE and all(self.is_mask(a) for a in inst.args[1:])

    def is_mask(self, arg: Arg) -> bool:
        """Whether the operand has one bit per lane."""
        if isinstance(arg, I):
            return arg.value & 0xFFFFFFFF in (0, 0xFFFFFFFF)
        index = arg.index if isinstance(arg, S) else None
        if isinstance(arg, Sp):
            index = ALIASES.get(arg.name)
        return index is not None and self._lanes(index)

    def _lanes(self, index: int) -> bool:
        """Whether a scalar register has one bit per lane; an unset one becomes so on first use."""
        if index in self.torn:
            return False
        if index not in self.s:
            self.masks.add(index)
        return index in self.masks or index in self.even

    def _is_even(self, arg: Arg) -> bool:
        if isinstance(arg, I):
            return arg.value & 0xFFFFFFFF in (0, 0xFFFFFFFF)
        return isinstance(arg, S) and arg.index in self.even

    def read64(self, inst: Inst, arg: Arg) -> T:
        if isinstance(arg, I):
            return self.d.const(arg.value, 64)
        return self.d.concat(self.read32(inst, arg, 1), self.read32(inst, arg, 0))

    def scalar_index(self, inst: Inst, arg: Arg) -> int:
        if isinstance(arg, S):
            return arg.index
        if isinstance(arg, Sp) and arg.name in ALIASES and not arg.name.startswith("ttmp"):
            return ALIASES[arg.name]
        raise self.error(inst, "a scalar register is expected")

    def write32(self, inst: Inst, arg: Arg, value: T, part: int = 0) -> None:
        if isinstance(arg, V):
            at = arg.index + part
            made = self.d.select(self.active(), value, self.vgpr(at))
            self.v[at] = made
            if at not in self.own:
                self._inner[at] = self.sgpr(EXEC_LO), made, value
        elif not (isinstance(arg, Sp) and arg.name == "null"):
            index = self.scalar_index(inst, arg) + part
            if index in _ZEROS:
                return
            lanewise = inst.op in _LANEWISE and self.keeps_lanes(inst)
            # An implicit operand is EXEC or a choice between the sources.
            even = "saveexec" not in inst.op and all(self._is_even(a) for a in inst.args[1:])
            self.write_scalar(index, value)
            if lanewise:
                (self.even if even else self.masks).add(index)
            if (number := constant_of(inst)) is not None:
                self.known[index] = number

    def write64(self, inst: Inst, arg: Arg, value: T) -> None:
        self.write32(inst, arg, self.d.extract(value, 0, 32), 0)
        self.write32(inst, arg, self.d.extract(value, 32, 32), 1)

    def write_scalar(self, index: int, value: T) -> None:
        if index in _ZEROS:
            return
        self.s[index] = value
        self.torn.discard(index)
        self.known.pop(index, None)
        if index != EXEC_LO:
            self.masks.discard(index)
        self.even.discard(index)
        self.pointers.pop(index, None)
        self.pointers.pop(index - 1, None)

    def load_constant(self, inst: Inst) -> None:
        """s_load from a constant bank; its address comes from the table after bank 0."""
        dst, base = inst.args[0], inst.args[1]
        bank = self.pointers.get(base.index) if isinstance(base, S) else None
        plain = len(inst.args) == 2 or inst.args[2] == Sp("null")
        if bank is None or self.word is None or not isinstance(dst, S) or not plain:
            raise self.error(inst, "an address that is not a constant bank's")
        if bank == 0 and inst.imm in self.tables and dst.n == 2:
            for i in range(2):
                self.write_scalar(dst.index + i, self.free(f"bank@{inst.imm + 4 * i:#x}", 32))
            self.pointers[dst.index] = self.tables[inst.imm]
            return
        for i in range(dst.n):
            at = inst.imm + 4 * i
            found = (
                self.free(f"c[0][{at:#x}].stored", 32)
                if bank == 0 and at in self.absent
                else (self.word(bank, at))
            )
            self.write_scalar(dst.index + i, found)

    def scc(self) -> T:
        return self.flag

    def write_scc(self, value: T) -> None:
        self.flag = value

    # -- masks ----------------------------------------------------------------------------

    def exec_mask(self) -> T:
        return self.sgpr(EXEC_LO)

    def mask(self, index: int) -> T:
        """The lane's bit.  Undecided for a number: which of its bits is the lane's is not known."""
        if not self._lanes(index):
            raise Undecided(f"s{index}: a number as a mask of lanes")
        return self.d.extract(self.sgpr(index), 0, 1)

    def write_mask(self, index: int, value: T) -> None:
        d = self.d
        mine = d.and_(value, self.active())
        # If all lanes agree, the result is that bit in lanes of EXEC, and 0 in others.
        others = (
            self.fresh(31)
            if not self.scalars
            else (d.and_(d.sext(value, 31), d.extract(self.exec_mask(), 1, 31)))
        )
        self.put_mask(index, d.concat(others, mine))

    def put_mask(self, index: int, value: T) -> None:
        """Sets one bit per lane, including the other lanes' bits."""
        if index not in _ZEROS:
            self.write_scalar(index, value)
            self.masks.add(index)

    def lanes_of(self, mask: T) -> T:
        return self.d.extract(mask, 0, 1)

    def mask_of(self, lanes: T) -> T:
        return self.d.concat(self.fresh(31), lanes)

    def float_result(self, value: T, kept: bool = False) -> T:
        """A NaN with any bits; SASS's NaN for doubles, unless their NaN are tracked."""
        d, w = self.d, self.d.width(value)
        if (w == 64 and not getattr(d, "payloads", False)) or kept:
            return without_payload(d, value)
        own = getattr(d, "any_nan", None)
        if own is not None:
            return cast("T", own(value))
        return d.select(is_nan(d, value), d.const(OTHER_NAN[w], w), value)

    def lane_number(self) -> T:
        return lane_number(self.d, self.free)

    def immediate(self, inst: Inst) -> T:
        return self.d.const(immediate(inst), 32)

    def permuted(self, inst: Inst, arg: Arg) -> T:
        raise self.error(inst, "DPP")

    def kept(self, inst: Inst, arg: Arg, value: T) -> T:
        raise self.error(inst, "DPP")


def without_payload(d: Domain[T], value: T) -> T:
    """A float with the one NaN that SASS makes."""
    own = getattr(d, "one_nan", None)
    if own is not None:
        return cast("T", own(value))
    w = d.width(value)
    return d.select(is_nan(d, value), d.const(NAN[w], w), value)


def constant_of(inst: Inst) -> int | None:
    """The number that an s_mov_b32 writes, if any."""
    if inst.op == "s_mov_b32" and isinstance(inst.args[1], I):
        return inst.args[1].value & 0xFFFFFFFF
    return None
