"""The register map of one kernel: the places of its registers, predicates, masks and constants.

R*i* lives in v*i* if it fits, otherwise in scratch.  UR*i* lives in an SGPR if no path that
waits can lose it, otherwise in a VGPR (one copy per lane).  Predicates and the masks of the
convergence machine are SGPR lane masks; masks for which no SGPR is left live in lanes of a VGPR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sassxlate.cfg import Cfg, Liveness, Uniformity
from sassxlate.cfg.register_sets import bits_of, of_files, refs_of
from sassxlate.disasm.rdna3.instruction import S, V
from sassxlate.disasm.sass.instruction import Const, Instruction, Mem, Reg, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import LoweringError
from sassxlate.lowering.regalloc.register_map import LaneSlot, RegisterMap, Slot
from sassxlate.lowering.target import Target

SGPR_TEMPS = 20


class _Sgprs:
    """Allocates SGPRs from the bottom; pairs are even."""

    def __init__(self, target: Target) -> None:
        """All but those that hold what the kernel is told at its entry."""
        told = (target.kernarg, *target.group_id)
        reserved = {s.index + i for s in told for i in range(s.n)}
        self.free = [i for i in range(target.sgprs) if i not in reserved]

    def take(self) -> S | None:
        return S(self.free.pop(0)) if self.free else None

    def take_pair(self) -> S | None:
        for i in self.free:
            if i % 2 == 0 and i + 1 in self.free:
                self.free.remove(i)
                self.free.remove(i + 1)
                return S(i, 2)
        return None

    def take_run(self, n: int) -> int | None:
        """The first of ``n`` adjacent SGPRs, a multiple of four."""
        free = set(self.free)
        for i in self.free:
            run = range(i, i + n)
            if i % 4 == 0 and free.issuperset(run):
                self.free = [j for j in self.free if j not in run]
                return i
        return None

    def must(self, what: str) -> S:
        got = self.take()
        if got is None:
            raise LoweringError("SX0402", f"no scalar register left for {what}")
        return got


def refs(cfg: Cfg) -> frozenset[RegRef]:
    found = 0
    for block in cfg.blocks:
        for ins in block.instructions:
            found |= bits_of(ins.reads) | bits_of(ins.writes)
    return refs_of(found)


def _tuples(ins: Instruction) -> Iterable[Reg]:
    """All register operands, those inside memory operands and constants included."""
    for operand in ins.operands.values():
        if isinstance(operand, Reg):
            yield operand
        elif isinstance(operand, Mem):
            yield from (r for r in (operand.base, operand.ureg) if r is not None)
        elif isinstance(operand, Const) and operand.index is not None:
            yield operand.index


def unsafe_uniforms(
    cfg: Cfg, live: Liveness, uniformity: Uniformity, pending: frozenset[RegRef]
) -> frozenset[int]:
    """UR indices that one shared copy cannot serve: written while some live lanes are elsewhere,
    and either read in another block or needed by lanes that wait."""
    needed, lost = bits_of(pending), 0
    for block in cfg.blocks:
        if not uniformity.converged[block.index]:
            for ins in block.instructions:
                lost |= bits_of(ins.writes) & (live.out_bits[block.index] | needed)
    unsafe = {r.index for r in refs_of(lost & of_files("UR"))}
    if not unsafe:
        return frozenset()
    changed = True
    groups = [
        range(r.index, r.index + r.width)
        for b in cfg.blocks
        for i in b.instructions
        for r in _tuples(i)
        if r.file == "UR" and not r.is_zero and r.width > 1
    ]
    while changed:
        changed = False
        for group in groups:
            if unsafe.intersection(group) and not unsafe.issuperset(group):
                unsafe.update(group)
                changed = True
    return frozenset(unsafe)


def dead_instructions(cfg: Cfg) -> frozenset[int]:
    """Offsets of instructions whose result no instruction of the kernel ever reads, typically the
    stack pointer of a kernel without a stack."""
    every = [i for block in cfg.blocks for i in block.instructions]
    read = 0
    for ins in every:
        read |= bits_of(ins.reads)
    return frozenset(
        i.offset for i in every if i.writes and not bits_of(i.writes) & read and traits(i).pure
    )


def constant_uses(
    cfg: Cfg, windows: frozenset[int], unread: frozenset[int]
) -> Counter[tuple[int, int]]:
    """How often each word of a constant bank is named (the windows of bank 0 are not plain words),
    without instructions at the offsets ``unread``, which have no code."""
    uses: Counter[tuple[int, int]] = Counter()
    for block in cfg.blocks:
        weight = 1 + 4 * any(e.dst <= block.index for e in cfg.successors[block.index])
        for ins in block.instructions:
            if ins.offset in unread:
                continue
            for operand in ins.operands.values():
                if not isinstance(operand, Const) or operand.index or operand.ur:
                    continue
                if operand.place % 4:
                    continue
                for word in range(operand.width):
                    key = (operand.bank, operand.place + 4 * word)
                    if key[0] != 0 or key[1] not in windows:
                        uses[key] += weight
    return uses


def _constants_in_runs(
    uses: Mapping[tuple[int, int], int], sgprs: _Sgprs
) -> dict[tuple[int, int], S]:
    """Registers for adjacent words of a bank, which one scalar load fills; words without a
    neighbour get none.  Empty if there is too little room for all."""
    room = len(sgprs.free) - 8 - len(uses)
    out: dict[tuple[int, int], S] = {}
    left = sorted(uses)
    while left and room > 0:
        bank, offset = left[0]
        n = 1
        while n < len(left) and left[n] == (bank, offset + 4 * n):
            n += 1
        # A pair that starts at a multiple of eight bytes is even.
        size = 1 if offset % 8 else next(w for w in (16, 8, 4, 2, 1) if w <= n)
        first = sgprs.take_run(size) if size > 2 else None
        if first is not None:
            out |= {(bank, offset + 4 * i): S(first + i) for i in range(size)}
        del left[: size if first is not None or size < 4 else 2]
    return out


def allocate(
    cfg: Cfg,
    live: Liveness,
    uniformity: Uniformity,
    pending_points: Iterable[int],
    pending_live: frozenset[RegRef],
    region_count: int,
    windows: frozenset[int],
    vtemps: int = 24,
    spill_base: int = 0,
    barriers: Iterable[int] = (),
    unread: frozenset[int] = frozenset(),
    *,
    target: Target,
) -> RegisterMap:
    """The map of one kernel.

    ``pending_points`` are the byte offsets of blocks and sync points where lanes may wait;
    ``pending_live`` the registers live there.  ``vtemps`` VGPRs are kept free for temporaries,
    ``spill_base`` is the first free byte of scratch; instructions at the offsets ``unread`` have no
    code.  LoweringError SX0402 if scalar registers run out.
    """
    used = refs(cfg)
    sgprs = _Sgprs(target)
    save = sgprs.must("the saved EXEC")
    live_mask = sgprs.must("the live mask")
    stemps: list[int] = []
    while len(stemps) < SGPR_TEMPS:
        pair = sgprs.take_pair()
        assert pair is not None
        stemps += [pair.index, pair.index + 1]
    p = {r.index: sgprs.must("P") for r in sorted(used, key=lambda r: r.index) if r.file == "P"}
    up = {r.index: sgprs.must("UP") for r in sorted(used, key=lambda r: r.index) if r.file == "UP"}
    unsafe = unsafe_uniforms(cfg, live, uniformity, pending_live)
    urs = sorted(r.index for r in used if r.file == "UR")
    ur: dict[int, int] = {}
    overflow: set[int] = set()
    for first in sorted({i & ~1 for i in urs if i not in unsafe}):
        pair = sgprs.take_pair() if len(sgprs.free) > 8 else None
        members = [i for i in (first, first + 1) if i in urs and i not in unsafe]
        if pair is None:
            overflow.update(members)
            continue
        ur |= {i: pair.index + (i & 1) for i in members}
    lanes = sorted(unsafe | overflow)

    # VGPRs: R0.., then promoted URs, the packed thread id, mask lanes, temporaries.
    rs = sorted(r.index for r in used if r.file == "R")
    top = (rs[-1] + 1) if rs else 0
    kept = sorted(set(barriers))
    points = sorted(set(pending_points))
    masks = max(3, (len(points) + region_count) // target.lanes + 1)  # VGPRs whose lanes hold masks
    extra = len(lanes) + len(kept) + 1 + masks
    room = target.vgprs - extra - vtemps
    spilled: dict[int, int] = {}
    if top > room:
        count = Counter(
            r.index for b in cfg.blocks for i in b.instructions for r in i.reads | i.writes
            if r.file == "R"
        )  # fmt: skip
        # Compact, dropping the least used; pairs stay whole because parity groups move together.
        quads = sorted({i // 4 for i in rs}, key=lambda q: sum(count[q * 4 + k] for k in range(4)))
        keep = sorted(quads[max(0, len(quads) - room // 4) :])
        r_map = {
            q * 4 + k: pos * 4 + k
            for pos, q in enumerate(keep)
            for k in range(4)
            if q * 4 + k in rs
        }
        gone = [i for i in rs if i not in r_map]
        spilled = {i: spill_base + 4 * n for n, i in enumerate(gone)}
        top = 4 * len(keep)
    else:
        r_map = {i: i for i in rs}
    next_v = top
    ur_lanes: dict[int, int] = {}
    for i in lanes:
        ur_lanes[i] = next_v
        next_v += 1
    tid = V(next_v)
    next_v += 1
    barrier_map = {b: next_v + n for n, b in enumerate(kept)}
    next_v += len(kept)

    lane_vgprs: list[int] = []
    lane_count = 0

    def slot() -> Slot:
        nonlocal lane_count, next_v
        if len(sgprs.free) > 6 and (got := sgprs.take()) is not None:
            return got
        if lane_count % target.lanes == 0:
            lane_vgprs.append(next_v)
            next_v += 1
        lane_count += 1
        return LaneSlot(lane_vgprs[-1], (lane_count - 1) % target.lanes)

    regions = tuple(slot() for _ in range(region_count))
    ready = {point: slot() for point in points}
    uses = constant_uses(cfg, windows, unread)
    consts = _constants_in_runs(uses, sgprs)
    for (bank, offset), _ in uses.most_common():
        if (bank, offset) in consts:
            continue
        base = offset & ~7
        both = (bank, base) in uses and (bank, base + 4) in uses
        pair = sgprs.take_pair() if both else None
        if pair is not None:
            consts[bank, base] = S(pair.index)
            consts[bank, base + 4] = S(pair.index + 1)
            continue
        single = sgprs.take()
        if single is None:
            break
        consts[bank, offset] = single
    return RegisterMap(
        target=target,
        r=r_map,
        spilled=spilled,
        ur=ur,
        ur_lanes=ur_lanes,
        p=p,
        up=up,
        live=live_mask,
        save_exec=save,
        ready=ready,
        regions=regions,
        consts=consts,
        stemps=tuple(stemps),
        tid=tid,
        vtemp_base=next_v,
        lane_vgprs=tuple(lane_vgprs),
        scratch_spill=4 * len(spilled),
        barriers=barrier_map,
    )
