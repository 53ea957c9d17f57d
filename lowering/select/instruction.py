"""One instruction with its guard."""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item
from sassxlate.disasm.sass.instruction import Instruction, Pred
from sassxlate.disasm.sass.traits import acquires, traits
from sassxlate.errors import LoweringError, SassxlateError, Where
from sassxlate.lowering.builder.canonical_nan import put_right, put_right_results
from sassxlate.lowering.builder.kernel_builder import KernelBuilder, Spans
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.codeobject.source_map import GUARD, with_origin
from sassxlate.lowering.convergence.control import Control
from sassxlate.lowering.lane_checks.checked import Checked
from sassxlate.lowering.passes.coalesce_copies import coalesce_spans
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.region import KernelBodies
from sassxlate.lowering.rules import TABLE
from sassxlate.lowering.rules.known_modifiers import unknown_modifiers
from sassxlate.lowering.rules.rule import choose
from sassxlate.lowering.target import EXEC, ZERO

_GUARD = InstOrigin(GUARD)


def write_body(
    k: KernelBuilder, writer: Control | None, instructions: Sequence[Instruction], converged: bool
) -> KernelBodies:
    """The instructions of a block without its control transfer; runs of one guard share one
    EXEC.  What it gives is of no use where the builder's code is taken away."""
    guard: Pred | None = None
    acquired = acquires(instructions, earlier=False)  # no load is outstanding at a block's start
    bodies = KernelBodies()
    for ins in instructions:
        if k.take is not None and len(k.items) >= k.part:
            k.take(k)
        t = traits(ins)
        ends = t.ends_block and ins is instructions[-1]
        if ends or t.order == "schedule" or ins.offset in k.idle:
            if ends and guard is not None:
                end_predication(k)
                guard = None
            if ins.offset in acquired:
                bodies.add(ins, len(k.items), state=True, clean=guard is None)
                k.items.append(Inst("s_waitcnt", (), imm=0))  # stores may go on
                name_source(k, len(k.items) - 1, ins)
            continue
        first = len(k.items)
        origin = InstOrigin(ins.text, ins.offset)
        c = RuleEmitter(k, ins, converged)
        c.origin = origin
        if guard is not None and ins.guard != guard:
            if _switches(ins.guard):
                switch_predication(c)
                guard = ins.guard
            else:
                end_predication(k)
                guard = None
        bodies.add(ins, len(k.items), state=bool(t.barrier), clean=guard is None)
        if not ins.guard.is_true and guard is None:
            begin_predication(c)
            guard = ins.guard
        c.begin()
        try:
            if ins.offset in k.nans.before:
                for ref, kind in k.nans.before[ins.offset]:
                    put_right(c, ref, kind)
            _one(c, writer)
            c.finish()
            if (made := k.nans.after.get(ins.offset)) is not None:
                put_right_results(RuleEmitter(k, ins, converged), made)
        except SassxlateError as e:
            raise e.at(kernel=k.name, offset=ins.offset, inst=ins.text, word=ins.word) from None
        with_origin(k.items, first, origin)
        if guard is not None and any(
            w.file == guard.file and w.index == guard.index for w in ins.writes
        ):
            end_predication(k)
            guard = None
    if guard is not None:
        end_predication(k)
    bodies.end(len(k.items))
    return bodies


def one(k: KernelBuilder, ins: Instruction, *, converged: bool) -> None:
    """One instruction alone, by its rule and under its guard, as in a block.

    LoweringError if it is refused; instructions that act on barriers have no rule.
    """
    if traits(ins).barrier or traits(ins).ends_block:
        raise LoweringError("SX0403", f"no rule for {ins.mnemonic}", Where(inst=ins.text))
    c = RuleEmitter(k, ins, converged)
    if not ins.guard.is_true:
        begin_predication(c)
    c.begin()
    _one(c, None)
    c.finish()
    if not ins.guard.is_true:
        end_predication(k)
    k.items, k.spans = finished(k), Spans()


def finished(k: KernelBuilder) -> list[Item]:
    """The code of a builder that wrote some straight-line code alone, after the passes that follow
    selection.  Raises like :func:`check_lanes`."""
    items, spans = coalesced(k.items, k.spans, k.regs)
    check_lanes(k.name, items, spans, k.regs)
    return items


def coalesced(items: Sequence[Item], spans: Spans, regs: RegisterMap) -> tuple[list[Item], Spans]:
    """The code without unneeded moves from temporaries, and its spans."""
    parts = zip(spans.firsts, spans.ends, strict=True)
    out, shorter = coalesce_spans(tuple(items), parts, regs)
    return list(out), spans.moved(shorter)


def check_lanes(
    kernel: str,
    items: Sequence[Item],
    spans: Spans,
    regs: RegisterMap,
    checked: Checked | None = None,
) -> None:
    """Raises LoweringError SX0431 if the code of an instruction treats a lane wrongly.
    ``checked``: of the same kernel, what was right before."""
    checked = Checked(regs) if checked is None else checked
    last: Instruction | None = None
    start = stop = 0
    for ins, first, end in zip(spans.instructions, spans.firsts, spans.ends, strict=True):
        if last is not None:
            if last.offset == ins.offset:  # several spans of one instruction
                stop = end
                continue
            checked.check(kernel, last, items[start:stop])
        last, start, stop = ins, first, end
    if last is not None:
        checked.check(kernel, last, items[start:stop])


def begin_predication(c: RuleEmitter) -> None:
    """Narrows EXEC to the guard's lanes."""
    guard = c.ins.guard
    save = c.k.regs.save_exec
    if guard.index == 7:
        c.raw(Inst("s_mov_b32", (save, EXEC)))
        c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
        return
    place = c.k.regs.up[guard.index] if guard.file == "UP" else c.k.regs.p[guard.index]
    op = "s_and_not0_saveexec_b32" if guard.inv else "s_and_saveexec_b32"
    c.raw(Inst(op, (save, place)))


def _switches(guard: Pred) -> bool:
    return not guard.is_true and guard.index != 7


def switch_predication(c: RuleEmitter) -> None:
    """From one guard's lanes to another's: the saved EXEC, narrowed anew."""
    guard = c.ins.guard
    place = c.k.regs.up[guard.index] if guard.file == "UP" else c.k.regs.p[guard.index]
    op = "s_and_not1_b32" if guard.inv else "s_and_b32"
    c.raw(Inst(op, (EXEC, c.k.regs.save_exec, place)))


def end_predication(k: KernelBuilder) -> None:
    k.items.append(Inst("s_mov_b32", (EXEC, k.regs.save_exec), origin=_GUARD))


def _one(c: RuleEmitter, writer: Control | None) -> None:
    ins = c.ins
    if writer is not None and traits(ins).barrier:
        writer.state(c, ins)
        return
    rules = TABLE.get(ins.mnemonic)
    if rules is None:
        raise c.refuse(f"no rule for {ins.mnemonic}", "SX0403")
    rule = choose(rules, ins)
    if rule is None:
        raise c.refuse(f"no rule for this form of {ins.mnemonic}", "SX0404")
    if unknown := unknown_modifiers(ins, rule):
        raise c.refuse(f"modifier {' '.join(unknown)} of {ins.mnemonic}", "SX0404")
    c.k.rules_used[rule.name] = c.k.rules_used.get(rule.name, 0) + 1
    rule.emit(c)
    c.check_flags()


def name_source(k: KernelBuilder, first: int, ins: Instruction) -> None:
    """Marks the items from ``first`` on with the SASS instruction that they come from."""
    with_origin(k.items, first, InstOrigin(ins.text, ins.offset))
