"""Failed assertions: a call of the driver's __assertfail writes a record for the host, and a trap.

The queue's and the record's layout, and the order of accesses, are those of the rules
(`lowering/rules/control/printing.py`).  The queue is memory that the host reads meanwhile, so its
counters are accessed with system scope.
"""

from __future__ import annotations

from sassxlate.disasm.sass.instruction import Instruction, Name, Special
from sassxlate.lowering.abi.hostcalls import FUNCTIONS, functions_of
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.rules.control.printing import END, LOST, MASK, NEXT, RING, UNIT
from sassxlate.lowering.tier.lane import Guard, Lane
from sassxlate.lowering.tier.refusal import FORM, refused

_ASSERTION = "__assertfail"
# Where a record has words, and the registers of the call that they are.
_ARGUMENTS = ((4, 8), (8, 4), (12, 5), (16, 6), (20, 7), (24, 10), (28, 11))
_PLACES = ((32, 0x25, "SR_CTAID"), (44, 0x21, "SR_TID"))  # and the number of the axis X


def call(lane: Lane, ins: Instruction, guard: Guard) -> None:
    """HOSTCALL, if it can only be of __assertfail.  Refused SX0460: another function."""
    known = ins.get("function")
    names = (known.name,) if isinstance(known, Name) else functions_of(lane.kernel)
    if names != (_ASSERTION,):
        raise refused(FORM, f"a call of {' or '.join(names)}", ins)
    lane.under(guard, lambda: _record(lane), lane.lost)


def trap(lane: Lane, guard: Guard) -> None:
    """BPT.TRAP, which ends the launch with an error."""
    fn = lane.fn
    lane.module.declare("void @llvm.trap()")
    there, on = fn.fresh("trap"), fn.fresh("on")
    fn.do(f"br i1 {(guard or const(1, 1)).ref}, label %{there}, label %{on}")
    with fn.arm(there):
        fn.do("call void @llvm.trap()")
        fn.do("unreachable")
    fn.label(on, keep=True)


def _at(lane: Lane, address: Val, more: int = 0) -> str:
    place = lane.d.add(address, const(more, 64))
    return lane.fn.emit(f"inttoptr i64 {place.ref} to ptr addrspace(1)")


def _wide(lane: Lane, low: Val, high: Val) -> Val:
    return lane.d.concat(high, low)


def _counter(lane: Lane, queue: Val, offset: int) -> Val:
    ref = lane.fn.emit_new(
        f"load atomic i64, ptr addrspace(1) {_at(lane, queue, offset)} monotonic, align 8"
    )
    return Val(ref, 64, False)


def _record(lane: Lane) -> None:
    """One lane's record.  Without room for it, it is counted, and lost."""
    fn, d = lane.fn, lane.d
    queue = _wide(lane, *lane.words("Ra", 2))
    again, try_, got, lost, done = (
        fn.fresh(s) for s in ("assert", "room", "record", "full", "asserted")
    )
    most = _counter(lane, queue, END)
    first = _counter(lane, queue, NEXT)
    before = fn.fresh("before")
    lane.branch(before)
    fn.label(before, keep=True)
    lane.branch(again)
    fn.label(again, keep=True)
    seen = fn.name()
    was = Val(fn.emit_new(f"phi i64 [ {first.ref}, %{before} ], [ {seen}, %{try_} ]"), 64, False)
    end = d.add(was, const(UNIT, 64))
    fn.do(f"br i1 {d.ult(most, end).ref}, label %{lost}, label %{try_}")
    fn.label(try_, keep=True)
    pair = fn.emit_new(
        f"cmpxchg ptr addrspace(1) {_at(lane, queue, NEXT)}, i64 {was.ref}, i64 {end.ref} "
        "monotonic monotonic, align 8"
    )
    fn.do(f"{seen} = extractvalue {{i64, i1}} {pair}, 0")
    hit = fn.emit_new(f"extractvalue {{i64, i1}} {pair}, 1")
    fn.do(f"br i1 {hit}, label %{got}, label %{again}")
    with fn.arm(lost):
        fn.emit_new(
            f"atomicrmw add ptr addrspace(1) {_at(lane, queue, LOST)}, i32 1 monotonic, align 4"
        )
        lane.branch(done)
    with fn.arm(got):
        _write(lane, queue, was)
        lane.branch(done)
    fn.label(done)


def _write(lane: Lane, queue: Val, place: Val) -> None:
    """The record at a place of the ring; its function's number makes it whole."""
    fn, d = lane.fn, lane.d
    ring = Val(fn.emit_new(f"load i64, ptr addrspace(1) {_at(lane, queue, RING)}, align 8"), 64,
               False)  # fmt: skip
    mask = Val(fn.emit_new(f"load i32, ptr addrspace(1) {_at(lane, queue, MASK)}, align 4"), 32,
               False)  # fmt: skip
    at = d.add(ring, d.zext(d.and_(d.extract(place, 0, 32), mask), 64))
    words = [(offset, lane.reg("R", number)) for offset, number in _ARGUMENTS]
    words += [
        (offset + 4 * n, lane.special(Special(first + n, f"{stem}.{axis}")))
        for offset, first, stem in _PLACES
        for n, axis in enumerate("XYZ")
    ]
    for offset, word in words:
        fn.do(f"store i32 {word.ref}, ptr addrspace(1) {_at(lane, at, offset)}, align 4")
    kind = FUNCTIONS[_ASSERTION].number
    fn.do(f"store atomic i32 {kind}, ptr addrspace(1) {_at(lane, at)} release, align 4")


__all__ = ["call", "trap"]
