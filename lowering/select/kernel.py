"""From a control-flow graph to RDNA3 instructions: blocks in layout order, rules for bodies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sassxlate.cfg import Cfg, Liveness, analyse, liveness
from sassxlate.cfg.graph import label_of
from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, S, V
from sassxlate.disasm.sass.instruction import Const, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import LoweringError, SassxlateError, Where
from sassxlate.lowering.abi.hostcalls import ARGUMENTS, functions_of
from sassxlate.lowering.abi.kernarg import BankLayout, Fill, LaunchInfo, bank_layout
from sassxlate.lowering.abi.link import GRID_WORKSPACE
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.codeobject.source_map import (
    NEXT,
    POINT,
    PROLOGUE,
    SCHEDULER,
    SHARED,
    added,
)
from sassxlate.lowering.convergence.barriers import barrier_bytes
from sassxlate.lowering.convergence.control import Control
from sassxlate.lowering.convergence.lane_masks import SCAN
from sassxlate.lowering.convergence.plan import ConvergencePlan, make_plan
from sassxlate.lowering.lane_checks import between_blocks as places
from sassxlate.lowering.nans.bits import NanBits, nan_bits
from sassxlate.lowering.nans.reads import nvcc_routine
from sassxlate.lowering.regalloc.allocate import allocate, dead_instructions
from sassxlate.lowering.regalloc.register_map import LaneSlot, RegisterMap
from sassxlate.lowering.region.region import KernelBodies, KernelEnv, Region, RegionSite
from sassxlate.lowering.rules import TABLE
from sassxlate.lowering.select.instruction import name_source, write_body
from sassxlate.lowering.target import ALL_ONES, EXEC, KERNARG, NULL, ZERO

STACK = 1024  # bytes of stack a lane where the cubin asks for less; CUDA's default limit


@dataclass(frozen=True, slots=True)
class Selected:
    """A kernel before waits and hazards."""

    items: tuple[Item, ...]
    launch: LaunchInfo
    vgprs: int
    uses_private: bool
    rules_used: tuple[tuple[str, int], ...]
    plan: ConvergencePlan
    regs: RegisterMap
    pieces: tuple[RegionSite, ...]
    nans: NanBits = field(default_factory=NanBits)


# Those that a module has: its tables (2), __constant__ variables (3) and relocated addresses (4).
_MODULE_BANKS = frozenset({2, 3, 4})


def banks_used(cfg: Cfg) -> tuple[int, ...]:
    """The constant banks besides 0 that the kernel reads; SX0413 for one that no module has."""
    found: set[int] = set()
    for block in cfg.blocks:
        for inst in block.instructions:
            for o in inst.operands.values():
                if not isinstance(o, Const) or o.bank == 0:
                    continue
                if o.bank not in _MODULE_BANKS:
                    where = Where(kernel=cfg.name, offset=inst.offset, inst=inst.text)
                    raise LoweringError("SX0413", f"no module has constant bank {o.bank}", where)
                found.add(o.bank)
    return tuple(sorted(found))


def _windows(lay: BankLayout) -> frozenset[int]:
    bases = [b for b in (lay.shared_window, lay.local_window) if b is not None]
    return frozenset(o for b in bases for o in (b, b + 4))


def uses_stack(cfg: Cfg) -> bool:
    """Whether it may reach local memory.  RED does not: its rule takes addresses for global."""
    kinds = ("load", "store", "atomic", "query")
    every = (i for b in cfg.blocks for i in b.instructions)
    return any(traits(i).reaches(kinds, "local", "generic") for i in every)


def uses_locks(cfg: Cfg) -> bool:
    """Whether the kernel has atomics on 128 bits."""
    every = (i for b in cfg.blocks for i in b.instructions)
    return any(traits(i).reaches(("atomic",)) and i.has("128") for i in every)


def uses_textures(cfg: Cfg) -> bool:
    kinds = ("load", "store")
    every = (i for b in cfg.blocks for i in b.instructions)
    return any(traits(i).reaches(kinds, "texture", "surface") for i in every)


def _temporaries(cfg: Cfg) -> int:
    """Vector temporaries that a kernel gets at first, by what the longest of its rules take."""
    names = {i.mnemonic for b in cfg.blocks for i in b.instructions}
    return max((r.temporaries for name in names for r in TABLE.get(name, ())), default=24)


def outlines(cfg: Cfg) -> bool:
    """Whether instructions with long code, called where it is used, occur more than once."""
    return sum(i.mnemonic in ("HMMA", "QMMA") for b in cfg.blocks for i in b.instructions) > 1


def _reads(cfg: Cfg, offset: int) -> bool:
    """Whether the kernel names a word of the eight bytes at ``offset`` of constant bank 0."""
    return any(
        isinstance(o, Const)
        and o.bank == 0
        and (o.index is None or o.index.is_zero)
        and offset <= o.offset < offset + 8
        for b in cfg.blocks
        for i in b.instructions
        for o in i.operands.values()
    )


def launch_info(
    kernel: Kernel,
    lay: BankLayout,
    banks: Iterable[int],
    stack: int,
    spill: int,
    lds: int,
    points_to_constants: bool = False,
    textures: bool = False,
    locks: bool = False,
) -> tuple[LaunchInfo, dict[int, int]]:
    """The kernarg layout, and for each constant bank the offset of its pointer in it."""
    table = (max(kernel.constant0_size, kernel.param_base + kernel.param_size, 0x30) + 7) & ~7
    end_of_fixed = max(lay.stack_top + 4, lay.grid_dim + 12, lay.local_window + 8, lay.grid_id + 8)
    table = max(table, (end_of_fixed + 7) & ~7)
    if lay.descriptor is not None:
        table = max(table, lay.descriptor + 8)
    offsets = {bank: table + 8 * n for n, bank in enumerate(banks)}
    fills = [
        *(Fill(lay.block_dim + 4 * n, f"blockdim.{d}") for n, d in enumerate("xyz")),  # type: ignore[arg-type]
        *(Fill(lay.grid_dim + 4 * n, f"griddim.{d}") for n, d in enumerate("xyz")),  # type: ignore[arg-type]
        Fill(lay.stack_top, "u32", stack),
        Fill(lay.grid_id, "gridid"),
        *(Fill(offset, f"bank{bank}") for bank, offset in offsets.items()),  # type: ignore[arg-type]
    ]
    if points_to_constants:
        fills.append(Fill(lay.constant3, "bank3"))
    size = table + 8 * len(offsets)
    if textures:
        fills.append(Fill(size, "textures"))
        size += 8
    if locks:
        fills.append(Fill(size, "locks"))
        size += 8
    if lay.dynamic_shared is not None:
        fills.append(Fill(lay.dynamic_shared, "dynamic_shared"))
    threads = kernel.max_threads
    info = LaunchInfo(
        kernarg_size=size,
        param_base=kernel.param_base,
        param_size=kernel.param_size,
        lds_static=lds,
        # What printf keeps of its arguments may reach beyond the stack.
        private_size=stack + spill + (ARGUMENTS if "vprintf" in functions_of(kernel) else 0),
        max_threads=threads[0] * threads[1] * threads[2] if threads else 1024,
        fills=tuple(fills),
        heap=not {"malloc", "free"}.isdisjoint(functions_of(kernel)),
    )
    return info, offsets


def select(kernel: Kernel, cfg: Cfg, *, placed: bool = False) -> Selected:
    """Lowers one kernel.  LoweringError names the first instruction that cannot be translated.

    ``placed``: every lane is followed through the code between blocks, too (places.py: slowly).
    """
    lay = bank_layout(kernel.arch)
    live = liveness(cfg)
    uniformity = analyse(cfg)
    plan = make_plan(cfg, live, uniformity)
    stack = (max(kernel.local_size, STACK if uses_stack(cfg) else 0) + 15) & ~15
    banks = banks_used(cfg)
    grid_words: dict[int, int] = {}
    if kernel.grid_workspace is not None:
        low, high = GRID_WORKSPACE[kernel.arch]
        grid_words = {low: 0, high: 1}
        banks = tuple(sorted({*banks, 4}))
    shared = kernel.shared_size + barrier_bytes(plan)
    vtemps = _temporaries(cfg)
    unread = dead_instructions(cfg)
    routines = frozenset(f.value for f in kernel.callees if nvcc_routine(f.name))
    nans = nan_bits(cfg, live, unread, routines)
    for _ in range(4):
        regs = allocate(
            cfg,
            live,
            uniformity,
            plan.slots,
            plan.pending_live,
            len(plan.regions),
            _windows(lay) | frozenset(grid_words),
            vtemps,
            stack,
            plan.lane_words,
        )
        launch, table = launch_info(
            kernel,
            lay,
            banks,
            stack,
            regs.scratch_spill,
            shared,
            _reads(cfg, lay.constant3),
            uses_textures(cfg),
            uses_locks(cfg),
        )
        state = KernelBuilder(kernel.name, kernel.arch, lay, regs, table, plan.pending_live)
        state.shared_size = kernel.shared_size
        state.externs = functions_of(kernel)
        state.textures = next((f.offset for f in launch.fills if f.kind == "textures"), 0)
        state.locks = next((f.offset for f in launch.fills if f.kind == "locks"), 0)
        state.outlining = outlines(cfg)
        state.grid_words, state.grid_workspace = grid_words, kernel.grid_workspace or 0
        state.idle, state.nans = unread, nans
        bodies = _emit_kernel(state, plan, placed=placed)
        total = regs.vtemp_base + state.vtemps_used
        if total <= 256:
            used = tuple(sorted(state.rules_used.items()))
            private = stack > 0 or bool(regs.spilled)
            pieces = _pieces(state, plan, live, bodies)
            return Selected(
                tuple(state.items), launch, total, private, used, plan, regs, pieces, nans
            )
        vtemps = state.vtemps_used
    raise LoweringError("SX0402", "no vector registers left", Where(kernel=kernel.name))


def _emit_kernel(k: KernelBuilder, plan: ConvergencePlan, *, placed: bool) -> list[KernelBodies]:
    """Writes the kernel; of each block, which code is whose."""
    check = places.check if placed else places.unchecked
    bodies: list[KernelBodies] = []
    blocks = plan.cfg.blocks
    writer = Control(k, plan)
    _prologue(RuleEmitter(k, blocks[0].instructions[0], True), plan)
    writer.prologue(RuleEmitter(k, blocks[0].instructions[0], True))
    added(k.items, 0, PROLOGUE)
    for n, block in enumerate(blocks):
        following = blocks[n + 1] if n + 1 < len(blocks) else None
        k.items.append(Label(label_of(block.start)))
        converged = plan.uniformity.converged[block.index]
        first = len(k.items)
        if block.start in plan.heads:
            c = RuleEmitter(k, block.instructions[0], converged)
            writer.head(c, block)
            check(c, k.items[first:], plan)
            added(k.items, first, POINT)
        bodies.append(write_body(k, writer, block.instructions, converged))
        first = len(k.items)
        c = RuleEmitter(k, block.last, converged)
        try:
            writer.end(c, block, following)
            ends, behind = block.last.mnemonic == "EXIT", "" if following else SCAN
            check(c, k.items[first:], plan, ends=ends, behind=behind)
        except SassxlateError as e:
            raise e.at(kernel=k.name, offset=block.last.offset, inst=block.last.text) from None
        if traits(block.last).ends_block:
            name_source(k, first, block.last)
        added(k.items, first, NEXT)
    first = len(k.items)
    c = RuleEmitter(k, blocks[0].instructions[0], True)
    writer.scan(c)
    check(c, k.items[first:], plan)
    added(k.items, first, SCHEDULER)
    for label, routine in k.outlined.items():
        first = len(k.items)
        k.items.append(Label(label))
        routine(k, blocks[0].instructions[0])
        added(k.items, first, SHARED)
    return bodies


def surroundings(k: KernelBuilder) -> KernelEnv:
    """What a block is told of its kernel."""
    return KernelEnv(
        k.name, k.arch, k.layout, k.bank_table, k.shared_size, k.externs, k.textures, k.outlining,
        k.grid_words, k.grid_workspace, k.idle, k.locks, k.nans,
    )  # fmt: skip


def _pieces(
    k: KernelBuilder, plan: ConvergencePlan, live: Liveness, bodies: Iterable[KernelBodies]
) -> tuple[RegionSite, ...]:
    """The kernel's blocks as engines see them, with what is live behind each."""
    around = surroundings(k)
    out: list[RegionSite] = []
    for block, body in zip(plan.cfg.blocks, bodies, strict=True):
        converged = plan.uniformity.converged[block.index]
        merged = frozenset[RegRef]() if converged else plan.pending_live
        behind: dict[int, frozenset[RegRef]] = {}
        now = live.live_out[block.index]
        for ins in reversed(block.instructions):
            behind[ins.offset] = now
            now = live_before(ins, now)
        for found in body.found:
            part = Region(block.index, found.members, converged, merged, around)
            first, end = found.starts[0], found.starts[-1]
            assert first is not None
            assert end is not None
            out.append(
                RegionSite(part, behind[part.instructions[-1].offset], first, end, found.starts)
            )
    return tuple(out)


def rules_items(block: Region, regs: RegisterMap) -> tuple[Item, ...]:
    """The code that the rules write for a block: each instruction by its own, runs of one guard
    under one EXEC.  They write every result, live or not.

    Raises LoweringError for an instruction that they refuse.
    """
    a = block.around
    k = KernelBuilder(a.name, a.arch, a.layout, regs, dict(a.bank_table), block.merged)
    k.shared_size, k.externs, k.textures, k.outlining = (
        a.shared_size, a.externs, a.textures, a.outlining,
    )  # fmt: skip
    k.grid_words, k.grid_workspace, k.idle = a.grid_words, a.grid_workspace, a.idle
    k.locks = a.locks
    k.nans = a.nans
    write_body(k, None, block.instructions, block.converged)
    return tuple(k.items)


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
    assert plan.cfg.blocks[0].start not in plan.heads or KERNARG.n == 2


def _clear(c: RuleEmitter, masks: set[int]) -> None:
    """Zeroes SGPRs, in pairs where they lie so."""
    left = set(masks)
    for index in sorted(masks):
        if index % 2 == 0 and index + 1 in left:
            c.raw(Inst("s_mov_b64", (S(index, 2), ZERO)))
            left -= {index, index + 1}
        elif index in left:
            c.raw(Inst("s_mov_b32", (S(index), ZERO)))


def _load(c: RuleEmitter, base: S, offset: int, places: dict[int, S]) -> None:
    """Loads the words from ``offset`` on that one scalar load can fill, and takes them out of
    ``places``."""
    first = places[offset].index
    for n in (16, 8, 4, 2, 1):
        aligned = first % min(n, 4) == 0
        if aligned and all(places.get(offset + 4 * i) == S(first + i) for i in range(n)):
            c.raw(Inst(f"s_load_b{32 * n}", (S(first, n), base, NULL), imm=offset))
            for i in range(n):
                del places[offset + 4 * i]
            return
