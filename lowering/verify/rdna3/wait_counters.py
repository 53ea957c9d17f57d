"""Waits: no register is used before the load into it is done.

An independent model, apart from the pass that inserts waits and from the strict emulator.  vmcnt
counts loads and atomics that return, in order; vscnt stores and the other atomics; lgkmcnt counts
LDS in order, but scalar loads and flat accesses out of order, so that while one of those is
outstanding only a wait for 0 is conclusive (RDNA3 ISA, 5.6).  A block begins and must end with
nothing outstanding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sassxlate.disasm.rdna3 import RRef, counters, info, reads, waitcnt_fields, writes
from sassxlate.disasm.rdna3.codec.decode.instruction import branch_target
from sassxlate.disasm.rdna3.instruction import Inst, Sp
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rdna3.inlined_routines import CALL
from sassxlate.lowering.verify.verdict import Undecided

_NO_WAIT = 63


@dataclass(frozen=True, slots=True)
class Early:
    """A register that is used at ``pc`` (None: after the block) before the load at ``source`` was
    waited for; offsets in the code."""

    register: str
    source: int
    pc: int | None

    def __str__(self) -> str:
        use = "left pending after the block" if self.pc is None else f"used at {self.pc:#x}"
        return f"{self.register} is {use} before the load at {self.source:#x} is waited for"


@dataclass(slots=True)
class _Out:
    """Registers with a pending load, each with the number of operations issued since on its
    counter, and the place of its load."""

    vm: dict[RRef, tuple[int, int]] = field(default_factory=dict[RRef, "tuple[int, int]"])
    lds: dict[RRef, tuple[int, int]] = field(default_factory=dict[RRef, "tuple[int, int]"])
    mixed: dict[RRef, int] = field(default_factory=dict[RRef, int])  # only lgkmcnt(0) covers them
    loads: int = 0  # upper bound of outstanding loads
    shared: int = 0
    disorder: bool = False  # a scalar or flat access is among those that lgkmcnt counts
    stores: bool = True  # some may be outstanding, from this block or an earlier one

    def copy(self) -> _Out:
        return _Out(
            dict(self.vm), dict(self.lds), dict(self.mixed), self.loads, self.shared,
            self.disorder, self.stores,
        )  # fmt: skip

    @property
    def done(self) -> bool:
        return not (self.loads or self.shared or self.stores)

    def wait(self, inst: Inst) -> None:
        """Removes the loads that a wait completes."""
        imm = inst.imm & 0xFFFF
        vm = lgkm = vs = _NO_WAIT
        if inst.op == "s_waitcnt":
            vm, lgkm, _ = waitcnt_fields(imm)
        elif inst.args and inst.args[0] != Sp("null"):
            return  # plus a register: unknown
        elif inst.op == "s_waitcnt_vmcnt":
            vm = imm
        elif inst.op == "s_waitcnt_lgkmcnt":
            lgkm = imm
        elif inst.op == "s_waitcnt_vscnt":
            vs = imm
        if vm < _NO_WAIT:
            self.vm = {r: at for r, at in self.vm.items() if at[0] < vm}
            self.loads = min(self.loads, vm)
        if lgkm == 0:
            self.lds, self.mixed, self.disorder = {}, {}, False
            self.shared = 0
        elif lgkm < _NO_WAIT:
            if not self.disorder:
                self.lds = {r: at for r, at in self.lds.items() if at[0] < lgkm}
            self.shared = min(self.shared, lgkm)
        if vs == 0:
            self.stores = False

    def issue(self, inst: Inst, pc: int) -> None:
        counted = counters(inst)
        if not counted:
            return
        kind = info(inst.op).kind
        fills = [r for r in writes(inst) if r.kind in ("v", "s")]
        if "vm" in counted:
            self.vm = {r: (age + 1, at) for r, (age, at) in self.vm.items()}
            self.vm |= {r: (0, pc) for r in fills}
            self.loads += 1
        if "vs" in counted:
            self.stores = True
        if "lgkm" in counted:
            self.shared += 1
            if kind == "lds":
                self.lds = {r: (age + 1, at) for r, (age, at) in self.lds.items()}
                self.lds |= {r: (0, pc) for r in fills}
            else:
                self.disorder = True
                self.mixed |= {r: pc for r in fills}

    def early(self, inst: Inst, pc: int | None) -> Early | None:
        """A register that ``inst`` uses too early.  Loads of one kind write in order."""
        if not (self.vm or self.lds or self.mixed):
            return None
        read, written = reads(inst), writes(inst)
        counted, kind = counters(inst), info(inst.op).kind
        for reg in sorted(read | written):
            again = reg not in read
            if reg in self.mixed:
                return Early(_name(reg), self.mixed[reg], pc)
            if reg in self.vm and not (again and counted == frozenset({"vm"})):
                return Early(_name(reg), self.vm[reg][1], pc)
            if reg in self.lds and not (again and kind == "lds"):
                return Early(_name(reg), self.lds[reg][1], pc)
        return None

    def left(self) -> Early | None:
        """A load still outstanding at the end."""
        sources = {r: at for r, (_, at) in {**self.vm, **self.lds}.items()} | self.mixed
        first = min(sources, default=None)
        return None if first is None else Early(_name(first), sources[first], None)

    def meet(self, other: _Out) -> None:
        """The union: outstanding on either path."""
        for mine, theirs in ((self.vm, other.vm), (self.lds, other.lds)):
            for reg, at in theirs.items():
                mine[reg] = min(mine.get(reg, at), at)
        self.mixed |= other.mixed
        self.loads, self.shared = max(self.loads, other.loads), max(self.shared, other.shared)
        self.disorder |= other.disorder
        self.stores |= other.stores


def _name(reg: RRef) -> str:
    return f"{reg.kind}{reg.number}"


@dataclass(frozen=True, slots=True)
class Waits:
    """The first register that is used too early, and the places where nothing is outstanding."""

    early: Early | None
    done: frozenset[int]


def waits(code: Sequence[Placed]) -> Waits:
    """Counts through a block's code.  Raises Undecided for loads in flight around a loop."""
    out = _Out()
    arriving: dict[int, _Out] = {}
    done: set[int] = set()
    for step in code:
        if (other := arriving.pop(step.pc, None)) is not None:
            out.meet(other)
        inst = step.inst
        if inst.op.startswith("s_waitcnt") and inst.op != "s_waitcnt_depctr":
            out.wait(inst)
            if out.done:
                done.add(step.pc)
            continue
        early = out.early(inst, step.pc)
        if early is not None:
            return Waits(early, frozenset(done))
        if inst.op.startswith("s_cbranch_") or inst.op == "s_branch":
            target = branch_target(inst, step.pc)
            if target <= step.pc:
                if out.vm or out.lds or out.mixed:
                    raise Undecided("a load in flight around a loop")
            elif (there := arriving.get(target)) is not None:
                there.meet(out)
            else:
                arriving[target] = out.copy()
            continue
        if inst.op == CALL:  # a routine starts and ends with nothing outstanding
            if (early := out.left()) is not None:
                return Waits(replace(early, pc=step.pc), frozenset(done))
            out = _Out(loads=_NO_WAIT, shared=_NO_WAIT)
            continue
        out.issue(inst, step.pc)
    for other in arriving.values():
        out.meet(other)
    return Waits(out.left(), frozenset(done))
