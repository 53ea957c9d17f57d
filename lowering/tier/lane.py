"""One lane's state as LLVM values: registers, constants, special registers, addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.sass.instruction import (
    Const,
    Imm,
    Instruction,
    Pred,
    PredFile,
    Reg,
    RegFile,
    RegRef,
    Special,
)
from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import NAME as SMID
from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import multiprocessor
from sassxlate.lowering.abi.kernarg import LaunchInfo, bank_layout
from sassxlate.lowering.llvm.ir_text import Function, Module, Val, const
from sassxlate.lowering.select.launch import grid_words, stack_bytes
from sassxlate.lowering.select.stages import Analysed
from sassxlate.lowering.target import Target
from sassxlate.lowering.tier.numbers.domain import LaneDomain
from sassxlate.lowering.tier.refusal import FORM, refused

Guard: TypeAlias = "Val | None"  # None: the instruction is executed

_ZERO_SPECIALS = frozenset({"SRZ", "SR_CgaCtaId", "SR_CgaSize", "SR_SWINLO", "SR_LWINLO",
                            "SR_LMEMHIOFF"})  # fmt: skip
_MASKS = frozenset({"SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK"})
_REALTIME = 0x83  # MSG_RTN_GET_REALTIME, 100 MHz
_CYCLES, _NANOSECONDS = 20, 10  # in one of its ticks, as the rules say it (rules/warp/warp.py)
LINE = 16  # SASS offset / LINE + 1 is the line number in debug locations


def argument(offset: int, width: int) -> str:
    """The function's argument at an offset in the kernel's arguments."""
    return f"%arg{width}.{offset}"


def literals(kernel: Kernel) -> bytes:
    """The kernel's constant bank 2, in which nvcc puts numbers of the code: no program writes to
    it.  Empty if relocations change it."""
    section = f".nv.constant2.{kernel.name}"
    return b"" if any(r.section == section for r in kernel.relocs) else kernel.constant2


@dataclass(slots=True)
class Called:
    """A function of the module: its number, its name, and the line of its debug locations, which
    is its first call's."""

    number: int
    name: str
    line: int
    function: Function | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A word of this lane that blocks pass to each other."""

    fn: Function
    name: str

    def store(self, word: Val) -> None:
        self.fn.do(f"store i32 {word.ref}, ptr addrspace(5) {self.name}, align 4")

    def load(self) -> Val:
        ref = self.fn.emit_new(f"load i32, ptr addrspace(5) {self.name}, align 4")
        return Val(ref, 32, False)


class Lane:
    """The function under construction, and where its values are."""

    def __init__(self, found: Analysed, launch: LaunchInfo, target: Target) -> None:
        self.found, self.launch, self.kernel = found, launch, found.kernel
        self.target = target
        self.module = Module()
        self.fn = Function(self.module, "", "")
        self.d = LaneDomain(self.fn)
        self.layout = bank_layout(found.kernel.arch)
        self.stack = stack_bytes(found.kernel, found.cfg)
        self.grid = grid_words(found.kernel)
        self.fills: dict[str, int] = {f.kind: f.offset for f in launch.fills}
        self.slots: set[str] = set()
        # Slots of others, where the current instruction's registers are meanwhile.
        self.elsewhere: dict[tuple[str, int], str] = {}
        self.arguments: set[tuple[int, int]] = set()  # that are read: offset, width
        self.literals = literals(found.kernel)
        self.uses_stack = False
        self.drains = False  # whether all accesses are done before barriers and fences
        self.shared_after = 0  # bytes of shared memory after the kernel's own
        self.called: dict[str, Called] = {}
        self.columns: dict[int, int] = {}  # by line of the function: its debug location's
        self.ins: Instruction | None = None
        self.ticks: Val | None = None  # a reading of the clock by the current instruction
        # Registers that lanes without the guard need not keep (:mod:`.old_values`).
        self.lost: frozenset[RegRef] = frozenset()
        # By slot: the block of the last store of a whole register, and what it stored.
        self._stored: dict[str, tuple[str, Val]] = {}

    # -- registers --------------------------------------------------------------------------------

    def slot(self, file: str, index: int) -> tuple[str, str]:
        """The name of a register's stack slot, and its type."""
        kind = "i1" if file in ("P", "UP") else "i32"
        other = self.elsewhere.get((file, index))
        if other is not None:
            return other, kind
        name = f"%{file}{index}"
        if name not in self.slots:
            self.slots.add(name)
            self.fn.entry.append(f"  {name} = alloca {kind}, align 4, addrspace(5)")
            self.fn.entry.append(f"  store {kind} 0, ptr addrspace(5) {name}, align 4")
        return name, kind

    def _read(self, file: str, index: int) -> Val:
        name, kind = self.slot(file, index)
        ref = self.fn.emit_new(f"load {kind}, ptr addrspace(5) {name}, align 4")
        block, value = self._stored.get(name, ("", None))
        if value is not None and block == self.fn.block:
            self.d.same_number(ref, value)
        return Val(ref, int(kind[1:]), False)

    def named(self, ref: RegRef) -> Val:
        """The value of a register or predicate."""
        return self._read(ref.file, ref.index)

    def reg(self, file: RegFile, index: int) -> Val:
        return self._read(file, index)

    def pred(self, file: PredFile, index: int) -> Val:
        return self._read(file, index)

    def write(self, ref: RegRef, value: Val, guard: Guard = None) -> None:
        """A register's new value; it keeps the old one if the guard does not hold, unless none
        reads that."""
        name, kind = self.slot(ref.file, ref.index)
        if guard is not None and ref not in self.lost:
            old = self._read(ref.file, ref.index)
            value = self.d.select(guard, value, old)
        self.fn.do(f"store {kind} {value.ref}, ptr addrspace(5) {name}, align 4")
        self._stored[name] = self.fn.block, value

    def forget(self, some: Iterable[RegRef]) -> None:
        """No value of these registers is read any more."""
        for ref in sorted(some, key=lambda r: (r.file, r.index)):
            name, kind = self.slot(ref.file, ref.index)
            self.fn.do(f"store {kind} poison, ptr addrspace(5) {name}, align 4")
            self.unknown(name)

    def unknown(self, name: str) -> None:
        """A slot has another value than :meth:`write` gave it."""
        self._stored.pop(name, None)

    def give(self, role: str, values: Sequence[Val], guard: Guard = None) -> None:
        """Writes a destination of one or more registers."""
        assert self.ins is not None
        target = self.ins.get(role)
        if target is None:
            return
        if not isinstance(target, Reg):
            raise refused(FORM, f"the destination {role}", self.ins)
        for i, value in enumerate(values if not target.is_zero else ()):
            self.write(RegRef(target.file, target.index + i), value, guard)

    def give_pred(self, role: str, value: Val, guard: Guard = None) -> None:
        assert self.ins is not None
        target = self.ins.get(role)
        if isinstance(target, Pred) and target.index != 7:
            self.write(RegRef(target.file, target.index), value, guard)

    def wants(self, role: str) -> bool:
        """Whether a destination is not RZ or PT, and there."""
        assert self.ins is not None
        target = self.ins.get(role)
        if isinstance(target, Reg):
            return not target.is_zero
        return isinstance(target, Pred) and target.index != 7

    def words(self, role: str, count: int) -> list[Val]:
        """A source of ``count`` registers, without signs."""
        assert self.ins is not None
        source = self.ins.get(role)
        if any(getattr(source, sign, False) for sign in ("neg", "abs", "inv", "select")):
            raise refused(FORM, f"a sign or selector of {role}", self.ins)
        match source:
            case Reg():
                if source.is_zero:
                    return [const(0, 32)] * count
                return [self.reg(source.file, source.index + i) for i in range(count)]
            case Imm():
                return [const(source.value >> 32 * i, 32) for i in range(count)]
            case Const():
                return [self.const(source, i) for i in range(count)]
            case _:
                raise refused(FORM, f"the source {role}", self.ins)

    def word(self, role: str) -> Val:
        return self.words(role, 1)[0]

    def truth(self, operand: Pred) -> Val:
        value = const(1, 1) if operand.index == 7 else self.pred(operand.file, operand.index)
        return self.d.not_(value) if operand.inv else value

    def both(self, guard: Val, other: Val) -> Val:
        """Whether both hold; ``other`` may be undefined where the guard does not."""
        ref = self.fn.emit(f"select i1 {guard.ref}, i1 {other.ref}, i1 false")
        return Val(ref, 1, False)

    def holds(self, *conditions: Pred) -> Guard:
        """The conjunction of predicates; None if it is always true."""
        out: Guard = None
        for p in conditions:
            if not p.is_true:
                out = self.truth(p) if out is None else self.d.and_(out, self.truth(p))
        return out

    # -- constants --------------------------------------------------------------------------------

    def kernarg(self, offset: int, width: int = 32) -> Val:
        """A word of the kernel's arguments, which are constant bank 0 and the banks' addresses.

        It is an argument of the function, for which LLVM writes the load: at the entry and joined
        with its neighbours, as in clang's code.
        """
        self.arguments.add((offset, width))
        return Val(argument(offset, width), width, False)

    def const(self, operand: Const, word: int) -> Val:
        if operand.ur is not None:
            raise refused(FORM, "a bindless constant", self.ins)
        index = operand.index
        indexed = index is not None and not index.is_zero
        grid = self.kernel.arch >= 100 and operand.bank == 0 and operand.offset in self.grid
        if indexed and not grid:
            raise refused(FORM, "a constant with an index", self.ins)
        place = operand.place + 4 * word
        if place % 4 == 0:
            return self.constant_word(operand.bank, place)
        low = self.constant_word(operand.bank, place & ~3)  # LDC of a part of one word
        return self.d.lshr(low, const(8 * (place & 3), 32))

    def constant_word(self, bank: int, place: int) -> Val:
        if bank == 2 and place + 4 <= len(self.literals):
            return const(int.from_bytes(self.literals[place : place + 4], "little"), 32)
        if bank:
            return self._constant_at(self.bank_pointer(bank), place)
        if place == self.layout.stack_top:
            return const(self.stack, 32)
        for base, window in (
            (self.layout.shared_window, self.shared_window),
            (self.layout.local_window, self.local_window),
        ):
            if base is not None and base <= place < base + 8:
                return self.d.extract(window(), 8 * (place - base), 32)
        pointer = self.layout.param_pointer
        if pointer is not None and pointer <= place < pointer + 8:
            return self.d.extract(self._parameters(), 8 * (place - pointer), 32)
        end = self.layout.param_end
        if not self.layout.bank_pointer and end <= place < end + 8:
            last = self._parameters(self.kernel.param_size - 1)
            return self.d.extract(last, 8 * (place - end), 32)
        half = self.grid.get(place)
        if half is not None:
            more = const(self.kernel.grid_workspace or 0, 64)
            return self.d.extract(self.d.add(self.bank_pointer(4), more), 32 * half, 32)
        return self.kernarg(place)

    def _parameters(self, more: int = 0) -> Val:
        """The generic address of the parameters, or of the bank; ``more`` bytes after it."""
        start = Val(self.fn.emit("ptrtoint ptr addrspace(4) %karg to i64"), 64, False)
        if self.layout.bank_pointer:
            return start
        return self.d.add(start, const(self.layout.param_base + more, 64))

    def bank_pointer(self, bank: int) -> Val:
        offset = self.fills.get(f"bank{bank}")
        if offset is None:
            raise refused(FORM, f"constant bank {bank}", self.ins)
        return self.kernarg(offset, 64)

    def _constant_at(self, pointer: Val, place: int) -> Val:
        base = self.fn.emit(f"inttoptr i64 {pointer.ref} to ptr addrspace(4)")
        at = self.fn.emit(f"getelementptr i8, ptr addrspace(4) {base}, i64 {place}")
        ref = self.fn.emit(f"load i32, ptr addrspace(4) {at}, align 4, !invariant.load !0")
        return Val(ref, 32, False)

    def shared_window(self) -> Val:
        """The generic address of shared memory."""
        self.module.declare("ptr @llvm.amdgcn.addrspacecast.nonnull.p0.p3(ptr addrspace(3))")
        at = self.fn.emit(
            "call ptr @llvm.amdgcn.addrspacecast.nonnull.p0.p3(ptr addrspace(3) null)"
        )
        return Val(self.fn.emit(f"ptrtoint ptr {at} to i64"), 64, False)

    def local_window(self) -> Val:
        """The generic address of the lane's stack."""
        self.uses_stack = True
        at = self.fn.emit("addrspacecast ptr addrspace(5) %stack to ptr")
        return Val(self.fn.emit(f"ptrtoint ptr {at} to i64"), 64, False)

    # -- special registers ------------------------------------------------------------------------

    def intrinsic(self, type_: str, name: str, args: str = "", types: str = "") -> str:
        """A call that is made anew each time."""
        self.module.declare(f"{type_} @llvm.{name}({types})")
        return self.fn.emit_new(f"call {type_} @llvm.{name}({args})")

    def lane_number(self) -> Val:
        self.module.declare("i32 @llvm.amdgcn.mbcnt.lo(i32, i32)")
        ref = self.fn.emit("call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)")
        return Val(ref, 32, False)

    def special(self, operand: Special) -> Val:
        d, name = self.d, operand.name
        if name in _ZERO_SPECIALS:
            return const(0, 32)
        if name[:7] == "SR_TID." and name[-1] in "XYZ":
            return Val(self.intrinsic("i32", f"amdgcn.workitem.id.{name[-1].lower()}"), 32, False)
        if name[:9] == "SR_CTAID." and name[-1] in "XYZ":
            return Val(self.intrinsic("i32", f"amdgcn.workgroup.id.{name[-1].lower()}"), 32, False)
        if name == "SR_LANEID":
            return self.lane_number()
        if name in _MASKS:
            one = d.shl(const(1, 32), self.lane_number())
            below = d.sub(one, const(1, 32))
            upto = d.or_(below, one)
            return {"EQ": one, "LT": below, "LE": upto, "GT": d.not_(upto), "GE": d.not_(below)}[
                name[3:5]
            ]
        if name in ("SR_SWINHI", "SR_LWINHI"):
            window = self.shared_window() if name == "SR_SWINHI" else self.local_window()
            return d.extract(window, 32, 32)
        if name.startswith(("SR_CLOCK", "SR_GLOBALTIMER")):
            return self._clock(name)
        if name == SMID:
            return self._multiprocessor()
        raise refused(FORM, f"special register {name}", self.ins)

    def _multiprocessor(self) -> Val:
        x, y, z = (Val(self.intrinsic("i32", f"amdgcn.workgroup.id.{i}"), 32, False) for i in "xyz")
        width, height = (self.kernarg(self.layout.grid_dim + 4 * i) for i in range(2))
        count, inverse = (self.kernarg(self.fills["smid"] + 4 * i) for i in range(2))
        return multiprocessor(self.d, (x, y, z), (width, height), count, inverse)

    def _clock(self, name: str) -> Val:
        if self.ticks is None:  # both words are of one reading
            if self.target.instructions == "RDNA2":
                ref = self.intrinsic("i64", "amdgcn.s.memrealtime")
            else:
                given = f"i32 {_REALTIME}"
                ref = self.intrinsic("i64", "amdgcn.s.sendmsg.rtn.i64", given, "i32 immarg")
            factor = _CYCLES if name.startswith("SR_CLOCK") else _NANOSECONDS
            self.ticks = self.d.mul(Val(ref, 64, False), const(factor, 64))
        return self.d.extract(self.ticks, 32 if name.endswith("HI") else 0, 32)

    def place(self, name: str, first: Val) -> Place:
        """A word that has a value here; its name is new."""
        made = Place(self.fn, f"%{name}")
        self.fn.entry.append(f"  {made.name} = alloca i32, align 4, addrspace(5)")
        made.store(first)
        return made

    # -- blocks -----------------------------------------------------------------------------------

    def branch(self, label: str) -> None:
        self.fn.do(f"br label %{label}")

    def under(
        self, guard: Guard, body: Callable[[], None], lost: frozenset[RegRef] = frozenset()
    ) -> None:
        """The body in a block of its own, which only lanes with the guard run; the others may have
        anything in the registers ``lost``."""
        if guard is None:
            body()
            return
        if guard.const is not None:
            if guard.const & 1:
                body()
            return
        then, after = self.fn.fresh("then"), self.fn.fresh("after")
        other = self.fn.fresh("other") if lost else after
        self.fn.do(f"br i1 {guard.ref}, label %{then}, label %{other}")
        with self.fn.arm(then):
            body()
            self.branch(after)
        if lost:
            with self.fn.arm(other):
                self.forget(lost)
                self.branch(after)
        self.fn.label(after, keep=True)


__all__ = ["LINE", "Called", "Guard", "Lane", "Place", "argument", "literals"]
