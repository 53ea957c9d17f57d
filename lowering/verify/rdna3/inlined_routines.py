"""Code that a kernel has once and several instructions call: it is checked inlined at each
call, between the s_call_b64 and the s_setpc_b64 that returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sassxlate.disasm.rdna3.codec.decode.instruction import branch_target
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, LabelRef
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.verdict import Undecided

CALL, BACK = "s_call_b64", "s_setpc_b64"


def routines(
    items: Sequence[Item], decoded: Callable[[int], Placed | None]
) -> Mapping[int, Sequence[Placed]]:
    """The routines that a program's items call, by offset; ``decoded`` gives an item's
    instruction by its number, None for a label."""
    called = {
        item.args[-1].name
        for item in items
        if isinstance(item, Inst) and item.op == CALL and isinstance(item.args[-1], LabelRef)
    }
    out: dict[int, Sequence[Placed]] = {}
    for n, item in enumerate(items):
        if not isinstance(item, Label) or item.name not in called:
            continue
        code: list[Placed] = []
        for number in range(n, len(items)):
            step = decoded(number)
            if step is not None:
                code.append(step)
                if step.inst.op == BACK:
                    break
        if code:
            out[code[0].pc] = code
    return out


def inlined(
    code: Sequence[Placed], known: Mapping[int, Sequence[Placed]]
) -> tuple[Sequence[Placed], Sequence[Sequence[Placed]]]:
    """The code with each routine after its call, and the routines.  Raises Undecided for a call
    whose target is not a routine that ends with its return, or for a second call of one."""
    out: list[Placed] = []
    bodies: list[Sequence[Placed]] = []
    for step in code:
        out.append(step)
        if step.inst.op != CALL:
            continue
        body = known.get(branch_target(step.inst, step.pc))
        back = step.inst.args[0]
        if body is None or body[-1].inst.op != BACK or body[-1].inst.args[0] != back:
            raise Undecided("a call to something that is not a routine")
        if body in bodies or any(s.inst.op == CALL for s in body):
            raise Undecided("a call inside a routine, or a second call")
        bodies.append(body)
        out += body
    return out, bodies


__all__ = ["BACK", "CALL", "inlined", "routines"]
