"""Records in the queue that the host empties: their room, and what makes them whole.

The queue's layout is that of the rules (`lowering/rules/control/printing.py`).  It is memory that
the host reads meanwhile, so its counters are accessed with system scope.
"""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.lowering.abi.hostcalls import FUNCTIONS
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.rules.control.printing import END, LOST, MASK, NEXT, RING
from sassxlate.lowering.tier.lane import Lane


def wide(lane: Lane, low: Val, high: Val) -> Val:
    return lane.d.concat(high, low)


def address(lane: Lane, base: Val, more: int = 0, space: int = 1) -> str:
    """A pointer to global memory, or of another address space."""
    place = lane.d.add(base, const(more, 64))
    return lane.fn.emit(f"inttoptr i64 {place.ref} to ptr addrspace({space})")


def _counter(lane: Lane, queue: Val, offset: int) -> Val:
    ref = lane.fn.emit_new(
        f"load atomic i64, ptr addrspace(1) {address(lane, queue, offset)} monotonic, align 8"
    )
    return Val(ref, 64, False)


def reserved(lane: Lane, queue: Val, size: Val, then: Callable[[Val], None]) -> None:
    """Room for a record of ``size`` bytes, 64 bits: ``then`` gets its place, which counts from the
    queue's beginning.  Without room, the record is counted as lost."""
    fn, d = lane.fn, lane.d
    again, try_, got, lost, done = (
        fn.fresh(s) for s in ("record", "room", "reserved", "full", "recorded")
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
    end = d.add(was, size)
    fn.do(f"br i1 {d.ult(most, end).ref}, label %{lost}, label %{try_}")
    fn.label(try_, keep=True)
    pair = fn.emit_new(
        f"cmpxchg ptr addrspace(1) {address(lane, queue, NEXT)}, i64 {was.ref}, i64 {end.ref} "
        "monotonic monotonic, align 8"
    )
    fn.do(f"{seen} = extractvalue {{i64, i1}} {pair}, 0")
    hit = fn.emit_new(f"extractvalue {{i64, i1}} {pair}, 1")
    fn.do(f"br i1 {hit}, label %{got}, label %{again}")
    with fn.arm(lost):
        fn.emit_new(
            f"atomicrmw add ptr addrspace(1) {address(lane, queue, LOST)}, i32 1 monotonic, align 4"
        )
        lane.branch(done)
    with fn.arm(got):
        then(was)
        lane.branch(done)
    fn.label(done)


def in_ring(lane: Lane, queue: Val, place: Val) -> Val:
    """The address of a place, 32 bits, which may be any number of rounds too high."""
    fn, d = lane.fn, lane.d
    ring = fn.emit_new(f"load i64, ptr addrspace(1) {address(lane, queue, RING)}, align 8")
    mask = fn.emit_new(f"load i32, ptr addrspace(1) {address(lane, queue, MASK)}, align 4")
    low = d.and_(place, Val(mask, 32, False))
    return d.add(Val(ring, 64, False), d.zext(low, 64))


def publish(lane: Lane, at: Val, name: str) -> None:
    """The function's number, which makes a record whole, is visible after all else."""
    kind = FUNCTIONS[name].number
    lane.fn.do(f"store atomic i32 {kind}, ptr addrspace(1) {address(lane, at)} release, align 4")


__all__ = ["address", "in_ring", "publish", "reserved", "wide"]
