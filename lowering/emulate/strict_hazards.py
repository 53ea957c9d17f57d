"""Checks of strict mode: results used before they are ready, and data hazards.

A forward analysis over the blocks keeps, for every register that a pending load will fill, the
number of operations of the same counter issued after that load; a wait for `n` completes the loads
with `n` or more after them.  Where paths meet, the youngest load counts, so no violation on any
path is missed; code whose waits come from a compiler's analysis of the same kind passes.

Counters (RDNA3 ISA, 5.6; LLVM's SIInsertWaitcnts for gfx11): vmcnt counts loads and returning
atomics in order, vscnt stores and the other atomics in order, lgkmcnt LDS in order and scalar loads
out of order, so that those are done only when it is 0; a flat load is in both and needs both.
Using a register covers reading it (RAW) and writing it (WAW), but not a second load by the same
in-order path.  Overwriting a source of a store or a load (WAR) is safe on gfx11: the hardware
delays the writer.  So are the other hazards of older and later generations; s_delay_alu is a hint.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from sassxlate.cfg.rdna3_flow import DecodedStep, Flow, MachineBlock
from sassxlate.disasm.rdna3 import RRef, counters, info, reads, waitcnt_fields, writes
from sassxlate.disasm.rdna3.instruction import Arg, Inst, Sp, V
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO
from sassxlate.lowering.target import DEFAULT, Target

SCC_CODE = 253  # operand code


class Check(IntEnum):
    """Kinds of violation; the native library has the same numbers and a text for each."""

    VM = 1
    LDS = 2
    SMEM = 3
    TRANS = 4
    PERMLANE = 5
    MATRIX = 6
    MAD = 7
    BARRIER = 8
    INVALIDATE = 9
    DEALLOC = 10
    UNDEFINED = 11
    UNIFORM = 12
    FENCE = 13


TEXT: dict[Check, str] = {
    Check.VM: "{reg} is used before s_waitcnt vmcnt covers the load at {source}",
    Check.LDS: "{reg} is used before s_waitcnt lgkmcnt covers the LDS access at {source}",
    Check.SMEM: "{reg} is used before s_waitcnt lgkmcnt(0) covers the scalar load at {source}",
    Check.TRANS: "{reg} is read too soon after the transcendental at {source}",
    Check.PERMLANE: "v_permlane follows v_cmpx at {source} without a VALU between",
    Check.MATRIX: "A or B of this matrix multiply is the result of the previous one",
    Check.MAD: "the destination {reg} of this multiply-add overlaps a source",
    Check.BARRIER: "s_barrier before the memory access at {source} is done",
    Check.INVALIDATE: "a cache is invalidated before the memory access at {source} is done",
    Check.DEALLOC: "registers are deallocated before the scratch store at {source} is done",
    Check.UNIFORM: "{reg} is assumed equal in all active lanes, but is not",
    Check.FENCE: "a fence is passed before the memory access at {source} is done",
    Check.UNDEFINED: "an undefined value in {reg} decides an address, a branch or EXEC",
}


WIDE_SUMS = frozenset({"v_mad_u64_u32", "v_mad_i64_i32"})


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation at `pc`; `source` is the instruction that caused it (byte offsets)."""

    check: Check
    pc: int
    source: int
    register: RRef | None = None

    def __str__(self) -> str:
        names = {("s", VCC_LO): "vcc_lo", ("s", EXEC_LO): "exec_lo", ("s", SCC_CODE): "scc"}
        reg = names.get(self.register, "".join(map(str, self.register))) if self.register else ""
        return TEXT[self.check].format(reg=reg, source=f"/*{self.source:04x}*/")

    def code(self, entry: int) -> int:
        """As the fault's 64-bit address: check 63:56, v 48 (otherwise s), register 47:32,
        source."""
        reg = self.register
        if reg is not None and reg.kind == "scc":
            reg = RRef("s", SCC_CODE)
        which = (1 << 48 if reg.kind == "v" else 0) | reg.number << 32 if reg else 0
        return int(self.check) << 56 | which | (self.source - entry) & 0xFFFFFFFF


def describe(code: int) -> str:
    """The text for a `Finding.code`."""
    kind = "v" if code >> 48 & 1 else "s"
    found = Finding(Check(code >> 56), 0, code & 0xFFFFFFFF, RRef(kind, code >> 32 & 0xFFFF))
    return str(found)


Ages = dict[RRef, tuple[int, int]]  # register to (operations issued since, pc)


@dataclass(slots=True)
class Pending:
    """The operations that may be pending at one place of the code."""

    target: Target
    vm: Ages = field(default_factory=Ages)
    lds: Ages = field(default_factory=Ages)
    smem: dict[RRef, int] = field(default_factory=dict[RRef, int])
    # All operations of a kind, whatever they fill: (issued since the newest, pc) of those
    # that are still counted; the length of the list is the counter.
    loads: list[int] = field(default_factory=list[int])
    stores: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    shared: list[int] = field(default_factory=list[int])
    trans: dict[RRef, tuple[int, int, int]] = field(
        default_factory=dict[RRef, tuple[int, int, int]]
    )
    cmpx: int | None = None
    matrix: frozenset[RRef] = frozenset()

    def copy(self) -> Pending:
        return Pending(
            self.target, dict(self.vm), dict(self.lds), dict(self.smem), list(self.loads),
            list(self.stores), list(self.shared), dict(self.trans), self.cmpx, self.matrix,
        )  # fmt: skip

    def meet(self, other: Pending) -> Pending:
        """The union: pending on either path."""
        return Pending(
            self.target,
            _younger(self.vm, other.vm),
            _younger(self.lds, other.lds),
            {**other.smem, **self.smem},
            max(self.loads, other.loads, key=len),
            _longer(self.stores, other.stores),
            max(self.shared, other.shared, key=len),
            _sooner(self.trans, other.trans),
            self.cmpx if self.cmpx is not None else other.cmpx,
            self.matrix | other.matrix,
        )


def _younger(a: Ages, b: Ages) -> Ages:
    out = dict(a)
    for reg, age in b.items():
        if reg not in out or age[0] < out[reg][0]:
            out[reg] = age
    return out


def _sooner(
    a: dict[RRef, tuple[int, int, int]], b: dict[RRef, tuple[int, int, int]]
) -> dict[RRef, tuple[int, int, int]]:
    out = dict(a)
    for reg, (valu, trans, pc) in b.items():
        mine = out.get(reg)
        best = (min(valu, mine[0]), min(trans, mine[1]), mine[2]) if mine else (valu, trans, pc)
        out[reg] = best
    return out


def _longer(a: list[tuple[int, bool]], b: list[tuple[int, bool]]) -> list[tuple[int, bool]]:
    """Stores of either path, aligned at the newest; one that may go to scratch counts as such."""
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    out = list(long)
    for i, (_, scratch) in enumerate(reversed(short)):
        pc, was = out[-1 - i]
        out[-1 - i] = (pc, was or scratch)
    return out


def _aged(ages: Ages, far: int) -> Ages:
    """One operation later; from ``far`` on all ages are alike: no counter counts so many."""
    return {reg: (min(age + 1, far), pc) for reg, (age, pc) in ages.items()}


def _settled(ages: Ages, left: int) -> Ages:
    return {reg: at for reg, at in ages.items() if at[0] < left}


@functools.lru_cache(maxsize=4096)
def _touches(inst: Inst) -> tuple[frozenset[RRef], frozenset[RRef]]:
    """(reads, writes), cached: the analysis needs them several times."""
    return reads(inst), writes(inst)


# --- waits -----------------------------------------------------------------------------------


def _wait(p: Pending, inst: Inst) -> bool:
    """Applies a wait; False if the instruction is not one."""
    op, imm = inst.op, inst.imm & 0xFFFF
    if op == "s_waitcnt":
        vm, lgkm, _ = waitcnt_fields(imm)
        _wait_vm(p, vm)
        _wait_lgkm(p, lgkm)
    elif op == "s_waitcnt_depctr":
        if imm >> 12 & 15 == 0:
            p.trans.clear()
    elif op == "s_wait_idle":
        _wait_vm(p, 0)
        _wait_vs(p, 0)
        _wait_lgkm(p, 0)
    elif op in ("s_waitcnt_vscnt", "s_waitcnt_vmcnt", "s_waitcnt_lgkmcnt"):
        base = inst.args[0] if inst.args else None
        if isinstance(base, Sp) and base.name == "null":  # otherwise a register is added: unknown
            {"s_waitcnt_vscnt": _wait_vs, "s_waitcnt_vmcnt": _wait_vm}.get(op, _wait_lgkm)(p, imm)
    else:
        return False
    return True


def _wait_vm(p: Pending, left: int) -> None:
    if left < p.target.counters.vm:
        p.vm = _settled(p.vm, left)
        p.loads = p.loads[len(p.loads) - left :] if left < len(p.loads) else p.loads


def _wait_vs(p: Pending, left: int) -> None:
    if left < p.target.counters.vs:
        p.stores = p.stores[len(p.stores) - left :] if left < len(p.stores) else p.stores


def _wait_lgkm(p: Pending, left: int) -> None:
    if left >= p.target.counters.lgkm:
        return
    p.lds = _settled(p.lds, left)
    p.shared = p.shared[len(p.shared) - left :] if left < len(p.shared) else p.shared
    if left == 0:
        p.smem = {}


# --- one instruction -------------------------------------------------------------------------


def _uses(p: Pending, step: DecodedStep) -> Iterator[Finding]:
    """Registers that the instruction must not use yet."""
    inst = step.inst
    if not (p.vm or p.lds or p.smem):
        return
    counted = counters(inst)
    row = info(inst.op)
    read, written = _touches(inst)
    in_order = row.kind in ("global", "scratch") and "vm" in counted
    in_lds = row.kind == "lds"
    for reg in sorted(read | written):
        again = reg not in read
        if reg in p.vm and not (again and in_order and reg not in p.lds):
            yield Finding(Check.VM, step.pc, p.vm[reg][1], reg)
        elif reg in p.lds and not (again and in_lds and reg not in p.vm):
            yield Finding(Check.LDS, step.pc, p.lds[reg][1], reg)
        elif reg in p.smem:
            yield Finding(Check.SMEM, step.pc, p.smem[reg], reg)


def _order(p: Pending, step: DecodedStep, fences: frozenset[int]) -> Iterator[Finding]:
    """Accesses that must be done before barriers, fences, invalidations and the end."""
    op = step.inst.op
    if op == "s_barrier" or step.pc in fences:
        check = Check.BARRIER if op == "s_barrier" else Check.FENCE
        for pc in (*p.shared[:1], *p.loads[:1], *(pc for pc, _ in p.stores[:1])):
            yield Finding(check, step.pc, pc)
    elif op in ("buffer_gl0_inv", "buffer_gl1_inv"):
        for pc in (*p.loads[:1], *(pc for pc, _ in p.stores[:1])):
            yield Finding(Check.INVALIDATE, step.pc, pc)
    elif op == "s_sendmsg" and step.inst.imm & 0xFF == 3:
        for pc in [pc for pc, scratch in p.stores if scratch][:1]:
            yield Finding(Check.DEALLOC, step.pc, pc)


def _vgprs(args: Iterable[Arg]) -> frozenset[RRef]:
    return frozenset(RRef("v", a.index + i) for a in args if isinstance(a, V) for i in range(a.n))


def _hazards(p: Pending, step: DecodedStep) -> Iterator[Finding]:
    """The four hazards of RDNA3 in waves of 32 lanes (LLVM's GCNHazardRecognizer,
    features 11_0_Common)."""
    inst = step.inst
    row = info(inst.op)
    if row.kind != "valu":
        return
    if p.trans:
        for reg in sorted(r for r in _touches(inst)[0] if r in p.trans):
            yield Finding(Check.TRANS, step.pc, p.trans[reg][2], reg)
    if p.cmpx is not None and inst.op.startswith("v_permlane"):
        yield Finding(Check.PERMLANE, step.pc, p.cmpx)
    if row.is_wmma and p.matrix & _vgprs(inst.args[1:3]):
        yield Finding(Check.MATRIX, step.pc, step.pc)
    if inst.op in WIDE_SUMS:
        both = _vgprs(inst.args[:1]) & reads(inst)
        if both and overwritten_half(inst) is None:
            yield Finding(Check.MAD, step.pc, step.pc, min(both))


def overwritten_half(inst: Inst) -> RRef | None:
    """The register that holds the high half of a wide multiply-add's addend and gets the low half
    of its result; None if the two overlap otherwise, or not at all.  The low half of the result
    does not depend on it: where nothing reads the high half, LLVM has an undefined addend there."""
    result, factors, addend = (_vgprs(inst.args[a:b]) for a, b in ((0, 1), (2, 4), (4, 5)))
    if result & factors or not result & addend:
        return None
    low, high = min(result), max(addend)
    return low if low == high and len(result & addend) == 1 else None


def _issue(p: Pending, step: DecodedStep) -> None:
    """Records the pending operations of the instruction."""
    inst, pc = step.inst, step.pc
    row, counted = info(inst.op), counters(inst)
    if counted:
        far = 1 + p.target.counters.largest
        fills = [r for r in _touches(inst)[1] if r.kind in ("v", "s")]
        if "vm" in counted:
            p.vm = _aged(p.vm, far)
            p.vm.update((r, (0, pc)) for r in fills)
            p.loads = [*p.loads[-far:], pc]
        if "vs" in counted:
            p.stores = [*p.stores[-far:], (pc, row.kind in ("scratch", "flat"))]
        if "lgkm" in counted and row.kind in ("lds", "flat"):
            p.lds = _aged(p.lds, far)
            p.lds.update((r, (0, pc)) for r in fills)
            p.shared = [*p.shared[-far:], pc]
        elif "lgkm" in counted:
            p.smem.update((r, pc) for r in fills)
    if row.kind in ("lds", "flat", "global", "scratch"):
        p.trans.clear()  # these wait for the VALU themselves
    if row.kind == "valu":
        _issue_valu(p, inst, pc, row.is_trans)
        p.matrix = frozenset(_vgprs(inst.args[:1])) if row.is_wmma else frozenset()


def _issue_valu(p: Pending, inst: Inst, pc: int, is_trans: bool) -> None:
    if p.trans:
        aged = {r: (v + 1, t + is_trans, at) for r, (v, t, at) in p.trans.items()}
        most = p.target.hazards
        p.trans = {
            r: a for r, a in aged.items() if a[0] <= most.trans_valu and a[1] <= most.trans_trans
        }
        for reg in _touches(inst)[1]:
            p.trans.pop(reg, None)
    if is_trans:
        p.trans.update((r, (0, 0, pc)) for r in writes(inst) if r.kind == "v")
    if inst.op.startswith("v_cmpx"):
        p.cmpx = pc
    elif inst.op != "v_nop":
        p.cmpx = None


def _step(p: Pending, step: DecodedStep, fences: frozenset[int]) -> list[Finding]:
    if _wait(p, step.inst):
        return []
    found = [*_uses(p, step), *_order(p, step, fences), *_hazards(p, step)]
    _issue(p, step)
    return found


# --- the whole kernel ------------------------------------------------------------------------


def _through(block: MachineBlock, before: Pending) -> Pending:
    p = before.copy()
    for step in block.steps:
        _step(p, step, frozenset())
    return p


def findings(
    flow: Flow, fences: frozenset[int] = frozenset(), target: Target = DEFAULT
) -> list[Finding]:
    """All violations of a kernel on a target, by place; at most one per kind, register and place.

    ``fences`` are places where no memory access may be pending, from the kernel's entry.
    """
    fences = frozenset(flow.entry + at for at in fences)
    before: dict[int, Pending] = {flow.entry: Pending(target)}
    work = [flow.entry]
    while work:
        block = flow.blocks[work.pop()]
        after = _through(block, before[block.start])
        for succ in block.succs:
            old = before.get(succ)
            new = after if old is None else old.meet(after)
            if old is None or _differs(new, old):
                before[succ] = new
                work.append(succ)
    out: list[Finding] = []
    for start in sorted(before):
        p = before[start].copy()
        for step in flow.blocks[start].steps:
            out += _step(p, step, fences)
    return out


def _differs(a: Pending, b: Pending) -> bool:
    """Whether two states differ by more than the instruction that they would blame."""
    return _essence(a) != _essence(b)


def _essence(p: Pending) -> tuple[object, ...]:
    return (
        {r: age for r, (age, _) in p.vm.items()},
        {r: age for r, (age, _) in p.lds.items()},
        set(p.smem),
        len(p.loads),
        [scratch for _, scratch in p.stores],
        len(p.shared),
        {r: (v, t) for r, (v, t, _) in p.trans.items()},
        p.cmpx is None,
        p.matrix,
    )


__all__ = ["Check", "Finding", "describe", "findings"]
