"""From a control-flow graph to RDNA3 instructions: blocks in layout order, rules for bodies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sassxlate.cfg import Cfg, Liveness
from sassxlate.cfg.graph import label_of
from sassxlate.cfg.liveness import bits_before
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, S, V
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import SassxlateError
from sassxlate.lowering.abi.hostcalls import functions_of
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.builder.kernel_builder import KernelBuilder, Spans
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.codeobject.source_map import (
    NEXT,
    POINT,
    PROLOGUE,
    SCHEDULER,
    SHARED,
    added,
)
from sassxlate.lowering.convergence.control import Control
from sassxlate.lowering.convergence.lane_masks import SCAN
from sassxlate.lowering.convergence.plan import ConvergencePlan
from sassxlate.lowering.lane_checks import between_blocks as places
from sassxlate.lowering.passes.coalesce_copies import Walk, coalesce_spans
from sassxlate.lowering.regalloc.register_map import LaneSlot, RegisterMap
from sassxlate.lowering.region.region import KernelBodies, KernelEnv, Region, RegionSite
from sassxlate.lowering.select.instruction import check_lanes as check_spans
from sassxlate.lowering.select.instruction import finished, name_source, write_body
from sassxlate.lowering.select.launch import grid_words, stack_bytes
from sassxlate.lowering.select.stages import Allocated, Selected
from sassxlate.lowering.target import ALL_ONES, EXEC, NULL, ZERO


def outlines(cfg: Cfg) -> bool:
    """Whether instructions whose long code can be outlined occur more than once."""
    for some in (("HMMA", "QMMA"), ("HOSTCALL",)):
        if not cfg.mnemonics.isdisjoint(some):
            kinds = [i.mnemonic for b in cfg.blocks for i in b.instructions]
            if sum(map(kinds.count, some)) > 1:
                return True
    return False


def select(allocated: Allocated) -> Selected:
    """The code of one kernel by the rules, as they write it; it may use more VGPRs than exist if it
    takes more temporaries than the map keeps free (see allocation.py).

    LoweringError names the first instruction that cannot be translated.
    """
    found, plan = allocated.planned.analysed, allocated.planned.plan
    state = builder(allocated)
    bodies = emit_kernel(state, plan, placed=found.placed)
    return selected(allocated, state, _pieces(state, plan, found.live, bodies))


def builder(allocated: Allocated) -> KernelBuilder:
    """What a kernel's code is written with, before there is any."""
    found, plan = allocated.planned.analysed, allocated.planned.plan
    kernel, regs, launch = found.kernel, allocated.regs, allocated.launch
    lay = bank_layout(kernel.arch)
    table = dict(allocated.bank_table)
    state = KernelBuilder(kernel.name, kernel.arch, lay, regs, table, plan.pending_live)
    state.shared_size = kernel.shared_size
    state.externs = functions_of(kernel)
    state.textures = next((f.offset for f in launch.fills if f.kind == "textures"), 0)
    state.locks = next((f.offset for f in launch.fills if f.kind == "locks"), 0)
    state.smid = next((f.offset for f in launch.fills if f.kind == "smid"), 0)
    state.param_size = kernel.param_size
    state.outlining = outlines(found.cfg)
    state.grid_words, state.grid_workspace = grid_words(kernel), kernel.grid_workspace or 0
    state.idle, state.nans, state.left_out = found.unread, found.nans, kernel.left_out
    return state


def selected(
    allocated: Allocated, state: KernelBuilder, pieces: tuple[RegionSite, ...]
) -> Selected:
    """What was written for a kernel: its code, as far as the builder still has it."""
    found, regs = allocated.planned.analysed, allocated.regs
    return Selected(
        allocated,
        items=tuple(state.items),
        launch=allocated.launch,
        vgprs=regs.vtemp_base + state.vtemps_used,
        uses_private=stack_bytes(found.kernel, found.cfg) > 0 or bool(regs.spilled),
        rules_used=tuple(sorted(state.rules_used.items())),
        pieces=pieces,
        spans=state.spans,
    )


def coalesce_copies(selected: Selected) -> Selected:
    """The kernel without unneeded moves from temporaries."""
    spans = selected.spans
    parts = zip(spans.firsts, spans.ends, strict=True)
    items, shorter = coalesce_spans(selected.items, parts, selected.regs)
    if not shorter.ends:
        return selected
    walk = Walk(shorter)
    pieces: list[RegionSite] = []
    for p in selected.pieces:
        first = walk.to(p.first)
        starts = tuple([None if s is None else walk.to(s) for s in p.starts])
        pieces.append(RegionSite(p.block, p.live_bits, first, walk.to(p.end), starts))
    return replace(selected, items=items, pieces=tuple(pieces), spans=spans.moved(shorter))


def check_lanes(selected: Selected) -> Selected:
    """Returns the kernel without its spans, which nothing after it needs.  LoweringError SX0431 if
    its code treats a lane wrongly."""
    check_spans(selected.kernel.name, selected.items, selected.spans, selected.regs)
    return replace(selected, spans=Spans())


def emit_kernel(
    k: KernelBuilder, plan: ConvergencePlan, *, placed: bool = False
) -> list[KernelBodies]:
    """Writes the kernel; records for each block which code belongs to which instruction, unless the
    code is taken away."""
    bodies: list[KernelBodies] = []
    blocks = plan.cfg.blocks
    writer = Control(k, plan)
    _prologue(RuleEmitter(k, blocks[0].instructions[0], True), plan)
    writer.prologue(RuleEmitter(k, blocks[0].instructions[0], True))
    added(k.items, 0, PROLOGUE)
    for n, block in enumerate(blocks):
        following = blocks[n + 1] if n + 1 < len(blocks) else None
        k.items.append(Label(label_of(block.start), block=block.start))
        converged = plan.uniformity.converged[block.index]
        first = len(k.items)
        if block.start in plan.heads:
            c = RuleEmitter(k, block.instructions[0], converged)
            writer.head(c, block)
            if placed:
                places.check(c, k.items[first:], plan)
            added(k.items, first, POINT)
        body = write_body(k, writer, block.instructions, converged)
        if k.take is None:
            bodies.append(body)
        first = len(k.items)
        c = RuleEmitter(k, block.last, converged)
        try:
            writer.end(c, block, following)
            if placed:
                ends, last = block.last.mnemonic == "EXIT", "" if following else SCAN
                places.check(c, k.items[first:], plan, ends=ends, following=last)
        except SassxlateError as e:
            raise e.at(kernel=k.name, offset=block.last.offset, inst=block.last.text) from None
        if traits(block.last).ends_block:
            name_source(k, first, block.last)
        added(k.items, first, NEXT)
    # All that was written has its origin; the scheduler's code may be taken away, too.
    first = len(k.items) if k.take is None else 0
    c = RuleEmitter(k, blocks[0].instructions[0], True)
    writer.scan(c)
    if placed:
        places.check(c, k.items[first:], plan)
    added(k.items, first, SCHEDULER)
    for label, routine in k.outlined.items():
        first = len(k.items)
        k.items.append(Label(label))
        routine(k, blocks[0].instructions[0])
        added(k.items, first, SHARED)
    return bodies


def surroundings(k: KernelBuilder) -> KernelEnv:
    """The environment of a block: facts about its kernel."""
    return KernelEnv(
        k.name, k.arch, k.layout, k.bank_table, k.shared_size, k.externs, k.textures, k.outlining,
        k.grid_words, k.grid_workspace, k.idle, k.locks, k.nans, k.smid,
        k.param_size,
    )  # fmt: skip


def _pieces(
    k: KernelBuilder, plan: ConvergencePlan, live: Liveness, bodies: Iterable[KernelBodies]
) -> tuple[RegionSite, ...]:
    """The kernel's blocks as engines see them, with the live-out set of each."""
    around = surroundings(k)
    out: list[RegionSite] = []
    for block, body in zip(plan.cfg.blocks, bodies, strict=True):
        converged = plan.uniformity.converged[block.index]
        merged = frozenset[RegRef]() if converged else plan.pending_live
        ends = {found.members[-1].offset for found in body.found}
        live_after: dict[int, int] = {}
        now = live.out_bits[block.index]
        for ins in reversed(block.instructions):
            if len(live_after) == len(ends):
                break
            if ins.offset in ends:
                live_after[ins.offset] = now
            now = bits_before(ins, now)
        for found in body.found:
            part = Region(block.index, found.members, converged, merged, around)
            first, end = found.starts[0], found.starts[-1]
            assert first is not None
            assert end is not None
            out.append(
                RegionSite(part, live_after[part.instructions[-1].offset], first, end, found.starts)
            )
    return tuple(out)


def rules_items(block: Region, regs: RegisterMap) -> tuple[Item, ...]:
    """The code that the rules write for a block: each instruction by its own rule, runs of one
    guard under one EXEC.  They write every result, live or not.

    Raises LoweringError for an instruction that they refuse.
    """
    a = block.around
    k = KernelBuilder(a.name, a.arch, a.layout, regs, dict(a.bank_table), block.merged)
    k.shared_size, k.externs, k.textures, k.outlining = (
        a.shared_size, a.externs, a.textures, a.outlining,
    )  # fmt: skip
    k.grid_words, k.grid_workspace, k.idle = a.grid_words, a.grid_workspace, a.idle
    k.locks, k.smid, k.param_size = a.locks, a.smid, a.param_size
    k.nans = a.nans
    write_body(k, None, block.instructions, block.converged)
    return tuple(finished(k))


def _prologue(c: RuleEmitter, plan: ConvergencePlan) -> None:
    k, m = c.k, c.k.regs
    slots = [*m.regions, *m.ready.values()]
    c.raw(Inst("s_mov_b32", (m.live, EXEC)))
    c.raw(Inst("v_mov_b32", (m.tid, V(0))))
    if m.lane_vgprs:
        c.raw(Inst("s_mov_b32", (EXEC, ALL_ONES)))
        for v in m.lane_vgprs:
            c.raw(Inst("v_mov_b32", (V(v), ZERO)))
        c.raw(Inst("s_mov_b32", (EXEC, m.live)))
    for masks in m.barriers.values():
        c.raw(Inst("v_mov_b32", (V(masks), ZERO)))
    cleared = [*(s for s in slots if not isinstance(s, LaneSlot)), *m.p.values(), *m.up.values()]
    _clear(c, {place.index for place in cleared})
    by_bank: dict[int, list[tuple[int, S]]] = {}
    for (bank, offset), s in sorted(m.consts.items(), key=lambda item: item[0]):
        by_bank.setdefault(bank, []).append((offset, s))
    for bank, words in by_bank.items():
        inner = RuleEmitter(k, c.ins, True)
        base = inner.bank_pointer(bank)
        places = dict(words)
        for offset in sorted(places):
            if offset in places:
                _load(inner, base, offset, places)
    assert plan.cfg.blocks[0].start not in plan.heads or k.regs.target.kernarg.n == 2


def _clear(c: RuleEmitter, masks: set[int]) -> None:
    """Zeroes SGPRs, in aligned pairs if possible."""
    left = set(masks)
    for index in sorted(masks):
        if index % 2 == 0 and index + 1 in left:
            c.raw(Inst("s_mov_b64", (S(index, 2), ZERO)))
            left -= {index, index + 1}
        elif index in left:
            c.raw(Inst("s_mov_b32", (S(index), ZERO)))


def _load(c: RuleEmitter, base: S, offset: int, places: dict[int, S]) -> None:
    """Loads as many of the words from ``offset`` on as one scalar load can fill, and removes them
    from ``places``."""
    first = places[offset].index
    for n in (16, 8, 4, 2, 1):
        aligned = first % min(n, 4) == 0
        if aligned and all(places.get(offset + 4 * i) == S(first + i) for i in range(n)):
            c.raw(Inst(f"s_load_b{32 * n}", (S(first, n), base, NULL), imm=offset))
            for i in range(n):
                del places[offset + 4 * i]
            return
