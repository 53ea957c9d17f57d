"""A kernel by the optimising tier: from its graph to a code object with the rules' launch data."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from sassxlate.cfg import Cfg, Uniformity, analyse, liveness
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.rdna3 import Program, decode
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item
from sassxlate.errors import SassxlateError
from sassxlate.lowering.abi.reserved_shared import reserved
from sassxlate.lowering.codeobject.code_object import KernelImage
from sassxlate.lowering.codeobject.code_object import write as write_code_object
from sassxlate.lowering.codeobject.source_map import UNALIGNED
from sassxlate.lowering.codeobject.source_marks import source_map
from sassxlate.lowering.convergence.plan import make_plan
from sassxlate.lowering.idioms.inline import replaced_inline
from sassxlate.lowering.idioms.replaced import replaced as with_quotients
from sassxlate.lowering.nans.bits import nan_bits
from sassxlate.lowering.nans.reads import of_brains, routines_in
from sassxlate.lowering.regalloc.allocate import dead_instructions
from sassxlate.lowering.select.stages import Analysed
from sassxlate.lowering.select.translated import NOT_READ, Translated, assembly
from sassxlate.lowering.target import Target
from sassxlate.lowering.tier import module
from sassxlate.lowering.tier.backend import MachineCode, compiled
from sassxlate.lowering.tier.compiler.cycles import several_entries
from sassxlate.lowering.tier.control import Blocks, flushes
from sassxlate.lowering.tier.families import FAMILIES
from sassxlate.lowering.tier.families.encodings import places
from sassxlate.lowering.tier.lane import LINE, Lane
from sassxlate.lowering.tier.masked.blocks import MaskedBlocks
from sassxlate.lowering.tier.numbers.stand_ins import branches
from sassxlate.lowering.tier.refusal import BACKEND, FLOW, FORM, TOGETHER, WAITING, Refused, refused
from sassxlate.lowering.tier.warp.presumed import presumed, tested
from sassxlate.lowering.tier.warp.tests_of_warp import Tests, replaced, settled
from sassxlate.lowering.tier.warp.together import (
    Together,
    exchanges,
    together,
)


def module_text(rules: Translated, target: Target) -> str:
    """The kernel as LLVM IR.  Raises Refused."""
    found = rules.selected.allocated.planned.analysed
    cfg, quotients = with_quotients(found.cfg, rules.kernel)
    cfg, inline = replaced_inline(cfg, rules.kernel)
    found = replace(found, cfg=cfg)
    try:
        return _structured(found, rules, target, changed=bool(quotients or inline))
    except Refused as why:
        if why.code not in (FLOW, TOGETHER, WAITING):
            raise
        try:
            return _masked(found, rules, target, changed=bool(quotients or inline))
        except Refused as other:
            raise (other if other.code == FORM else why) from None


def _structured(found: Analysed, rules: Translated, target: Target, *, changed: bool) -> str:
    """The kernel in LLVM's own control flow, which is the lanes'."""
    cfg, tests = replaced(found.cfg, rules.kernel)
    lanes = _lanes(cfg, rules.kernel, tests)
    changed |= lanes.cfg is not found.cfg  # nvcc's slow ways read registers as bits
    found = replace(found, cfg=lanes.cfg, uniformity=lanes.uniformity)
    found = _of_tier(found, changed=changed)

    def writer(lane: Lane) -> Blocks:
        return Blocks(lane, found.cfg, lanes.facts, lanes.tested)

    text = _by_mode(found, rules, target, writer)
    if several_entries(text) is not None:  # where LLVM's code generation is wrong
        raise refused(FLOW, "a cycle with several entries")
    return text


def _masked(found: Analysed, rules: Translated, target: Target, *, changed: bool) -> str:
    """The kernel with the masks of the convergence machine."""
    if rules.launch.growing_stack:  # LLVM's frame has one size
        raise refused(FLOW, "recursion, whose stack grows with the application's limit")
    found = replace(found, uniformity=analyse(found.cfg))
    found = _of_tier(found, changed=changed)
    plan = make_plan(found.cfg, found.live, found.uniformity)
    apart = (False,) * len(found.cfg.blocks)
    ordered = bool(plan.latches) or exchanges(found.cfg)[0]
    facts = Together(apart, apart, ordered, {})

    def writer(lane: Lane) -> Blocks:
        return MaskedBlocks(lane, plan, facts)

    return _by_mode(found, rules, target, writer)


def _by_mode(
    found: Analysed, rules: Translated, target: Target, writer: Callable[[Lane], Blocks]
) -> str:
    if rules.launch.heap or any(f.kind in ("textures", "locks") for f in rules.launch.fills):
        raise refused(FORM, "textures, 128-bit atomics or the driver's functions")
    if reserved(rules.selected.allocated.planned.analysed.cfg):
        raise refused(FORM, "the shared memory of tiles of several warps")
    if flushes(found.cfg):  # by the function's mode, if all operations do
        with suppress(Refused):
            return _written(found, rules, target, writer, by_mode=True)
    return _written(found, rules, target, writer, by_mode=False)


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Which lanes run together in a graph, and the branches, by offset, at which this is tested."""

    cfg: Cfg
    uniformity: Uniformity
    facts: Together
    tested: frozenset[int] = frozenset()


def _lanes(cfg: Cfg, kernel: Kernel, tests: Tests) -> _Lanes:
    """What is surely so, or otherwise by presumption.  Raises Refused for the first."""
    try:
        return _decided(cfg, kernel, tests, analyse)
    except Refused as why:
        if why.code not in (FLOW, TOGETHER):
            raise
        try:
            lanes = _decided(cfg, kernel, tests, presumed)
            at = tested(lanes.cfg, lanes.uniformity, lanes.facts.in_step)
        except Refused:
            raise why from None
        return replace(lanes, tested=at)


def _decided(
    cfg: Cfg, kernel: Kernel, tests: Tests, facts_of: Callable[[Cfg], Uniformity]
) -> _Lanes:
    cfg, uniformity = settled(cfg, kernel, tests, facts_of)
    return _Lanes(cfg, uniformity, together(cfg, uniformity, tests.votes, tests.agreed))


def _of_tier(found: Analysed, *, changed: bool) -> Analysed:
    """What is known of the instructions, some of which may be others than the rules'."""
    cfg, known = found.cfg, found.nans
    live, unread = found.live, found.unread
    if changed:
        live, unread = liveness(cfg), dead_instructions(cfg)
    elif not (known.before or known.after or _has_brains(cfg)):
        return found  # nothing is repaired
    routines = routines_in(found.kernel.callees)
    nans = nan_bits(cfg, live, unread, routines & set(cfg.functions), tier=True)
    return replace(found, live=live, unread=unread, nans=nans)


def _has_brains(cfg: Cfg) -> bool:
    return any(of_brains(ins) for block in cfg.blocks for ins in block.instructions)


def _written(
    found: Analysed,
    rules: Translated,
    target: Target,
    writer: Callable[[Lane], Blocks],
    *,
    by_mode: bool,
) -> str:
    lane = Lane(found, rules.launch, target)
    lane.d.flushes = by_mode
    blocks = writer(lane)
    blocks.write()
    return module.text(lane, blocks, target)


def by_tier(rules: Translated, target: Target) -> Translated:
    """The kernel that the rules translated (for ``target.of_rules``), with this tier's code.

    Raises Refused: SX0460 to SX0464, with the reason.
    """
    name = rules.kernel.name
    try:
        made = compiled(module_text(rules, target), target)
        items, program = listed(made, rules, target) if made.texts else listing(made, rules)
    except Refused as why:
        raise why.at(kernel=name) from None
    except SassxlateError as why:
        raise refused(BACKEND, f"{why.code}: {why.message}").at(kernel=name) from why
    most = target.most_threads(made.descriptor.vgprs)
    if most < rules.launch.max_threads:
        raise refused(BACKEND, "too many vector registers for its largest block").at(kernel=name)
    image = KernelImage(
        name=name,
        code=made.code,
        vgprs=int(made.metadata[".vgpr_count"]),
        sgprs=int(made.metadata[".sgpr_count"]),
        group_segment=made.descriptor.group_segment_size,
        private_segment=made.descriptor.private_segment_size,
        kernarg_size=rules.launch.kernarg_size,
        max_flat_workgroup_size=rules.launch.max_threads,
        source=UNALIGNED + source_map(items, program),  # LLVM merges neighbouring accesses
        entry_state=made.written or made.descriptor,
    )
    report = replace(
        rules.report,
        rdna_instructions=len(items),
        waiting_points=0,
        vgprs=image.vgprs,
        spilled=int(made.metadata[".vgpr_spill_count"]),
        code_bytes=len(program.data),
        rules=(),
    )
    return replace(
        rules,
        code_object=write_code_object([image], target),
        report=report,
        program=program,
        items=() if made.texts else items,
        text=assembly(items, program) if made.texts else "",
    )


def listing(made: MachineCode, rules: Translated) -> tuple[tuple[Item, ...], Program]:
    """The instructions, each with the SASS instruction that its debug location names."""
    origin_at = _origins(made, rules)
    items: list[Item] = []
    offsets: list[int] = []
    at = 0
    while at < len(made.code):
        inst, size = decode(made.code, at)
        origin = origin_at(at)
        items.append(inst if origin is None else inst.with_origin(origin))
        offsets.append(at)
        at += size
    assert all(isinstance(i, Inst) for i in items)
    return tuple(items), Program(made.code, tuple(offsets), {})


def listed(
    made: MachineCode, rules: Translated, target: Target
) -> tuple[tuple[Item, ...], Program]:
    """The same of instructions that no table of ours has: each is LLVM's text as a comment."""
    origin_at = _origins(made, rules)
    spans = places(made.code, FAMILIES[target.instructions])
    texts = [line for text in made.texts for line in text.split("\n")]
    items: list[Item] = []
    for (at, _), text in zip(spans, texts, strict=True):
        name = text.partition(" ")[0]
        if branches(name):  # LLVM's text has a label as last operand
            distance = int.from_bytes(made.code[at : at + 2], "little")
            text = f"{text.rpartition(' ')[0]} {distance}"
        items.append(Inst(NOT_READ, comment=text, origin=origin_at(at)))
    return tuple(items), Program(made.code, tuple(at for at, _ in spans), {})


def _origins(made: MachineCode, rules: Translated) -> Callable[[int], InstOrigin | None]:
    """The SASS instruction of an offset in the code, by its debug location."""
    texts = {i.offset: i.text for b in rules.cfg.blocks for i in b.instructions}
    starts = [at for at, _ in made.lines]

    def origin_at(at: int) -> InstOrigin | None:
        place = bisect_right(starts, at) - 1
        line = made.lines[place][1] if place >= 0 else 0
        origin = LINE * (line - 1)
        return InstOrigin(texts[origin], origin) if line and origin in texts else None

    return origin_at


__all__ = ["by_tier", "module_text"]
