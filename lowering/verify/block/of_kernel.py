"""The verifier's view of the blocks of a translated kernel, from the final bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sassxlate.cfg import Block as GraphBlock
from sassxlate.cfg import Cfg, Liveness, liveness
from sassxlate.cfg.liveness import live_before
from sassxlate.cfg.register_sets import bit_number
from sassxlate.disasm.rdna3 import decode, info
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.nans.bits import facts_before
from sassxlate.lowering.nans.calls import Calls
from sassxlate.lowering.nans.reads import BITS, Nan, routines_in
from sassxlate.lowering.select.stages import Selected
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rdna3.inlined_routines import routines


@dataclass(frozen=True, slots=True)
class Found:
    """A block of the graph, by its number and first offset."""

    index: int
    start: int
    block: BlockPair


def _source(item: object) -> int | None:
    """The offset of the SASS instruction that an item implements."""
    if not isinstance(item, Inst) or item.origin is None:
        return None
    return item.origin.offset


def blocks(translated: Translated) -> Iterator[Found]:
    """The straight-line part of each block: without the control transfer and its waits."""
    cfg, selected = translated.cfg, translated.selected
    live = liveness(cfg)
    tables = {
        f.offset: int(f.kind.removeprefix("bank"))
        for f in selected.launch.fills
        if f.kind.startswith("bank")
    }
    converged = selected.plan.uniformity.converged
    places: dict[int, list[int]] = {}
    for i, item in enumerate(translated.items):
        source = _source(item)
        if source is not None:
            places.setdefault(source, []).append(i)
    nans = _facts(selected)
    calls = Calls(cfg)
    called = routines(translated.items, lambda i: next(iter(_placed(translated, i, i + 1)), None))
    for block in cfg.blocks:
        body = _body(block.instructions)
        code, tail = _segments(translated, body, places)
        yield Found(
            block.index,
            block.start,
            BlockPair(
                body,
                code,
                selected.regs,
                bank_layout(translated.kernel.arch),
                frozenset() if converged[block.index] else frozenset(selected.plan.pending_live),
                tables,
                _live_out(block, live),
                tail,
                called,
                selected.nans.wide & {ins.offset for ins in body},
                selected.nans.exact & {ins.offset for ins in body},
                nans[block.index],
                _loose_after(cfg, block, live, nans, calls),
            ),
        )


def _facts(selected: Selected) -> Sequence[Mapping[RegRef, Nan]]:
    """What the translator knew of NaNs at each block's start."""
    known = selected.allocated.planned.analysed
    return facts_before(known.cfg, known.live, known.unread, routines_in(known.kernel.callees))


def _loose_after(
    cfg: Cfg,
    block: GraphBlock,
    live: Liveness,
    nans: Sequence[Mapping[RegRef, Nan]],
    calls: Calls,
) -> dict[RegRef, frozenset[Nan]]:
    """The registers that the translator reports loose at the start of the successors.

    A register that a called function does not name goes past it, from the call to its return site,
    and may be loose there.  The function's own code is proved to leave it as it was, with any value
    that is the same on both sides: so it does with two.
    """
    out: dict[RegRef, set[Nan]] = {}
    edges = cfg.successors[block.index]
    ways = [
        (e.dst, {r for r in live.live_in[e.dst] if calls.carries(e, bit_number(r))}) for e in edges
    ]
    for ref in {r for n, carried in ways for r in nans[n] if r in carried}:
        out[ref] = {nans[n].get(ref, BITS) for n, carried in ways if ref in carried}
    # Registers that live only at a return, or after other calls, are written on the way there.
    through = frozenset[RegRef]().union(
        *(carried for _, carried in ways), *(live.live_in[e.dst] for e in edges if e.kind == "ret")
    )
    unread = {ref: frozenset[Nan]() for ref in live.live_out[block.index] - through}
    return {ref: frozenset(kinds) for ref, kinds in out.items()} | unread


def _live_out(block: GraphBlock, live: Liveness) -> frozenset[RegRef]:
    """The registers live after the body, including those that the control transfer reads."""
    out = live.live_out[block.index]
    return live_before(block.last, out) if traits(block.last).ends_block else out


def _body(instructions: tuple[Instruction, ...]) -> list[Instruction]:
    last = instructions[-1]
    return [
        i
        for i in instructions
        if traits(i).order != "schedule" and not (i is last and traits(i).ends_block)
    ]


def _segments(
    translated: Translated, body: list[Instruction], places: dict[int, list[int]]
) -> tuple[list[list[Placed]], list[Placed]]:
    """The code of each instruction; code between two belongs to the first.  And the tail, up to a
    label or branch."""
    starts = [min(places[i.offset]) if i.offset in places else None for i in body]
    last = max((places[i.offset][-1] for i in body if i.offset in places), default=-1)
    items = translated.items
    save = translated.selected.regs.save_exec
    following = items[last + 1] if 0 <= last < len(items) - 1 else None
    if isinstance(following, Inst) and following.op == "s_mov_b32" and following.args[1] == save:
        last += 1  # the end of a guarded run
    out: list[list[Placed]] = []
    for n, start in enumerate(starts):
        later = [s for s in starts[n + 1 :] if s is not None]
        end = min(later) if later else last + 1
        out.append([] if start is None else _placed(translated, start, end))
    end = last + 1
    while end < len(items) and goes_on(items[end]):
        end += 1
    return out, _placed(translated, last + 1, end) if last >= 0 else []


def goes_on(item: object) -> bool:
    """Neither a label nor a control transfer: there, nothing is outstanding."""
    if not isinstance(item, Inst):
        return False
    return info(item.op).kind not in ("branch", "jump", "end", "barrier")


def _placed(translated: Translated, first: int, end: int) -> list[Placed]:
    program = translated.program
    out: list[Placed] = []
    for i in range(first, end):
        item = translated.items[i]
        if isinstance(item, Inst):
            at = program.offsets[i]
            inst, size = decode(program.data, at)
            out.append(Placed(replace(inst, uniform=item.uniform), at, at + size))
    return out
