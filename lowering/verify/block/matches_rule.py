"""Whether code is, apart from waits, the code that the rule of its instruction writes.

Tests of a rule are evidence for its own code only.  So before they count, the rule is applied
again, under the same register map, and its code compared with the decoded one, bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sassxlate.disasm.rdna3 import encode
from sassxlate.disasm.rdna3.codec.decode.instruction import branch_target
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, LabelRef, S, Sp
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.errors import SassxlateError
from sassxlate.lowering.abi.kernarg import BankLayout
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.passes.coalesce_copies import coalesce_copies
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.rules import TABLE
from sassxlate.lowering.rules.rule import choose
from sassxlate.lowering.verify.nans import puts_right
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rdna3.inlined_routines import CALL

_WAITS = frozenset(
    "s_waitcnt s_waitcnt_vscnt s_waitcnt_vmcnt s_waitcnt_lgkmcnt s_waitcnt_depctr v_nop s_nop "
    "s_delay_alu".split()
)


@dataclass(frozen=True, slots=True)
class Parts:
    """The code of one instruction: narrowing EXEC to the guard, the core, restoring EXEC."""

    opening: Sequence[Placed]
    core: Sequence[Placed]
    closing: Sequence[Placed]


def parts(code: Sequence[Placed], regs: RegisterMap) -> Parts:
    """Splits off the save and restore of EXEC for a guard; also the restore of the previous
    instruction."""
    save = regs.save_exec
    first, last = 0, len(code)
    while first < last and code[first].inst.op in _WAITS:
        first += 1
    if first < last and _switches(code[first].inst, save):
        return _until(code, first + 1, save)
    if first < last and _restores(code[first].inst, save):
        first += 1
    if first < last and _saves(code[first].inst, save):
        first += 1
    return _until(code, first, save)


def _until(code: Sequence[Placed], first: int, save: S) -> Parts:
    last = len(code)
    ends = [i for i in range(first, last) if code[i].inst.op not in _WAITS]
    if ends and _restores(code[ends[-1]].inst, save):
        last = ends[-1]
    while first < last and puts_right(code[first].inst):
        first += 1
    while last > first and puts_right(code[last - 1].inst):
        last -= 1
    return Parts(code[:first], code[first:last], code[last:])


def _saves(inst: Inst, save: S) -> bool:
    return inst.op.endswith("_saveexec_b32") and inst.args[0] == save


def _switches(inst: Inst, save: S) -> bool:
    """From one guard to the next: EXEC = the saved value, narrowed."""
    narrows = inst.op in ("s_and_b32", "s_and_not1_b32")
    return narrows and inst.args[:2] == (Sp("exec_lo"), save)


def _restores(inst: Inst, save: S) -> bool:
    return inst.op == "s_mov_b32" and inst.args == (Sp("exec_lo"), save)


def matches_rule(
    ins: Instruction,
    core: Sequence[Placed],
    regs: RegisterMap,
    layout: BankLayout,
    merged: frozenset[RegRef],
    tables: Mapping[int, int],
) -> bool:
    """Whether ``core`` is the code that the rule of ``ins`` writes, with routines after calls."""
    rule = choose(TABLE.get(ins.mnemonic, ()), ins)
    if rule is None:
        return False
    banks = {bank: offset for offset, bank in tables.items()}
    k = KernelBuilder("", ins.arch, layout, regs, banks, merged)
    k.outlining = any(step.inst.op == CALL for step in core)
    c = RuleEmitter(k, ins, converged=False)
    try:
        rule.emit(c)
        c.finish()
        k.items[:] = coalesce_copies(k.items, regs)
        return _bits(_with_routines(k, ins)) == _decoded(core)
    except SassxlateError:
        return False


def _with_routines(k: KernelBuilder, ins: Instruction) -> list[Item]:
    """The code of a rule, with each called routine after its call."""
    out: list[Item] = []
    own = list(k.items)
    for item in own:
        out.append(item)
        if isinstance(item, Inst) and item.op == CALL:
            label = item.args[-1]
            assert isinstance(label, LabelRef)
            first = len(k.items)
            k.outlined[label.name](k, ins)
            out += k.items[first:]
    return out


_Shape = list[tuple[bytes, int]]


def _encoded(inst: Inst, target: int | None) -> tuple[bytes, int]:
    """The bits, and for a branch the number of its target instruction."""
    if inst.op == CALL:  # the routine follows it
        return repr(inst.args[0]).encode(), -1
    if target is None:
        return encode(inst), -1
    return encode(replace(inst, args=(), imm=0)), target


def _bits(items: Sequence[Item]) -> _Shape:
    places: dict[str, int] = {}
    kept: list[Inst] = []
    for item in items:
        if isinstance(item, Label):
            places[item.name] = len(kept)
        elif item.op not in _WAITS:
            kept.append(item)
    out: _Shape = []
    for inst in kept:
        label = inst.args[-1] if inst.args and isinstance(inst.args[-1], LabelRef) else None
        branch = label is not None and inst.op != CALL
        out.append(_encoded(inst, places[label.name] if label is not None and branch else None))
    return out


def _decoded(code: Sequence[Placed]) -> _Shape:
    kept: list[Placed] = []
    number: dict[int, int] = {}
    for step in code:
        number[step.pc] = len(kept)
        if step.inst.op not in _WAITS:
            kept.append(step)
    if code:
        number.setdefault(code[-1].next, len(kept))
    out: _Shape = []
    for step in kept:
        inst = step.inst
        if inst.op.startswith(("s_cbranch_", "s_branch")):
            out.append(_encoded(inst, number.get(branch_target(inst, step.pc), -2)))
        else:
            out.append(_encoded(inst, None))
    return out
