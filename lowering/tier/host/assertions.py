"""Calls of the driver's __assertfail and vprintf, which write a record for the host, and traps.

The record's layout, and the order of accesses, are those of the rules
(`lowering/rules/control/printing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from sassxlate.disasm.sass.instruction import Instruction, Name, Special
from sassxlate.lowering.abi.hostcalls import FUNCTIONS, functions_of
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.rules.control.printing import UNIT
from sassxlate.lowering.tier.host.printing import printf
from sassxlate.lowering.tier.host.records import address, in_ring, publish, reserved, wide
from sassxlate.lowering.tier.lane import Guard, Lane
from sassxlate.lowering.tier.refusal import FORM, refused

_ASSERTION = "__assertfail"
# Where a record has words, and the registers of the call that they are.
_ARGUMENTS = ((4, 8), (8, 4), (12, 5), (16, 6), (20, 7), (24, 10), (28, 11))
_PLACES = ((32, 0x25, "SR_CTAID"), (44, 0x21, "SR_TID"))  # and the number of the axis X


def call(lane: Lane, ins: Instruction, guard: Guard) -> None:
    """HOSTCALL of __assertfail or vprintf; where it may be of both, the block at its target says
    of which.  Refused SX0460: another function."""
    known = ins.get("function")
    names = (known.name,) if isinstance(known, Name) else functions_of(lane.kernel)
    if not names or set(names) - _WRITTEN.keys():
        raise refused(FORM, f"a call of {' or '.join(names)}", ins)

    def called() -> None:
        if len(names) == 1:
            _WRITTEN[names[0]](lane)
            return
        queue = wide(lane, *lane.words("Ra", 2))
        which = lane.fn.emit_new(f"load i32, ptr addrspace(1) {address(lane, queue)}, align 4")
        for name in names:
            mine = lane.d.eq(Val(which, 32, False), const(FUNCTIONS[name].number, 32))
            lane.under(mine, partial(_WRITTEN[name], lane))

    lane.under(guard, called, lane.lost if len(names) == 1 else frozenset())


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


def _record(lane: Lane) -> None:
    """One lane's record.  Without room for it, it is counted, and lost."""
    queue = wide(lane, *lane.words("Ra", 2))
    reserved(lane, queue, const(UNIT, 64), lambda was: _write(lane, queue, was))


def _write(lane: Lane, queue: Val, place: Val) -> None:
    """The record at a place of the ring; its function's number makes it whole."""
    fn = lane.fn
    at = in_ring(lane, queue, lane.d.extract(place, 0, 32))
    words = [(offset, lane.reg("R", number)) for offset, number in _ARGUMENTS]
    words += [
        (offset + 4 * n, lane.special(Special(first + n, f"{stem}.{axis}")))
        for offset, first, stem in _PLACES
        for n, axis in enumerate("XYZ")
    ]
    for offset, word in words:
        fn.do(f"store i32 {word.ref}, ptr addrspace(1) {address(lane, at, offset)}, align 4")
    publish(lane, at, _ASSERTION)


_WRITTEN: Final[Mapping[str, Callable[[Lane], None]]] = {_ASSERTION: _record, "vprintf": printf}

__all__ = ["call", "trap"]
