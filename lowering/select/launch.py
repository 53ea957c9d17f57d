"""The launch data of a kernel: constant banks, stack, tables, and the kernarg segment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sassxlate.cfg import Cfg
from sassxlate.cfg.spin_loops import recursive
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.sass.instruction import Const, Instruction, Special
from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import NAME as SMID
from sassxlate.disasm.sass.traits import traits_of
from sassxlate.errors import LoweringError, Where
from sassxlate.lowering.abi.hostcalls import ARGUMENTS, functions_of
from sassxlate.lowering.abi.kernarg import BankLayout, Fill, LaunchInfo
from sassxlate.lowering.abi.link import GRID_WORKSPACE
from sassxlate.lowering.abi.reserved_shared import word_at_end, words_90
from sassxlate.lowering.select.clusters import cluster_fills

STACK = 1024  # bytes of stack per lane if the cubin requests less; CUDA's default limit

# The banks of a module: its tables (2), __constant__ variables (3) and relocated addresses (4).
_MODULE_BANKS = frozenset({2, 3, 4})


def constants(cfg: Cfg) -> list[tuple[Instruction, Const]]:
    """All operands in constant banks, with their instructions."""
    return [
        (ins, operand)
        for block in cfg.blocks
        for ins in block.instructions
        for operand in ins.operands.values()
        if isinstance(operand, Const)
    ]


def banks_used(cfg: Cfg, named: Sequence[tuple[Instruction, Const]]) -> tuple[int, ...]:
    """The constant banks besides 0 that the kernel reads; SX0413 for a bank that no module has."""
    found: set[int] = set()
    for inst, o in named:
        if o.bank == 0:
            continue
        if o.bank not in _MODULE_BANKS:
            where = Where(kernel=cfg.name, offset=inst.offset, inst=inst.text)
            raise LoweringError("SX0413", f"no module has constant bank {o.bank}", where)
        found.add(o.bank)
    return tuple(sorted(found))


def windows(lay: BankLayout) -> frozenset[int]:
    """The words of constant bank 0 that are not in the kernarg segment but made by the code."""
    bases = (lay.shared_window, lay.local_window, lay.param_pointer)
    found = [b for b in bases if b is not None]
    if not lay.bank_pointer:
        found.append(lay.param_end)
    return frozenset(o for b in found for o in (b, b + 4))


def uses_stack(cfg: Cfg) -> bool:
    """Whether it may reach local memory.  RED does not: its rule treats addresses as global."""
    kinds = ("load", "store", "atomic", "query")
    return any(traits_of(name).reaches(kinds, "local", "generic") for name in cfg.mnemonics)


def uses_locks(cfg: Cfg) -> bool:
    """Whether the kernel has atomics on 128 bits."""
    atomic = {name for name in cfg.mnemonics if traits_of(name).reaches(("atomic",))}
    every = (i for b in cfg.blocks for i in b.instructions) if atomic else ()
    return any(i.mnemonic in atomic and i.has("128") for i in every)


def uses_textures(cfg: Cfg) -> bool:
    kinds = ("load", "store")
    return any(traits_of(name).reaches(kinds, "texture", "surface") for name in cfg.mnemonics)


def reads_word(named: Iterable[tuple[Instruction, Const]], offset: int) -> bool:
    """Whether the kernel names a word of the eight bytes at ``offset`` of constant bank 0."""
    return any(
        o.bank == 0 and (o.index is None or o.index.is_zero) and offset <= o.offset < offset + 8
        for _, o in named
    )


def stack_bytes(kernel: Kernel, cfg: Cfg) -> int:
    """Bytes of local memory per lane, without spills."""
    return (max(kernel.local_size, STACK if uses_stack(cfg) else 0) + 15) & ~15


def _reserved_fills(cfg: Cfg, polled: int, fixed: int) -> list[Fill]:
    """The words that say where CUDA's headers have shared memory; ``polled`` is the size of the
    barriers' area, after dynamic memory, ``fixed`` that of static memory."""
    fills = [Fill(at, "u32", value) for at, value in words_90(cfg).items()]
    if (word := word_at_end(cfg)) is not None:
        fills.append(Fill(word, "reserved_shared", ((fixed + 15) & ~15) + polled))
    return fills


def uses_smid(cfg: Cfg) -> bool:
    """Whether the kernel asks which multiprocessor it runs on."""
    for block in cfg.blocks:
        for ins in block.instructions:
            special = ins.get("sr")
            if isinstance(special, Special) and special.name == SMID:
                return True
    return False


def _device_fills(kernel: Kernel, lay: BankLayout, cfg: Cfg) -> list[Fill]:
    """The words that say how many multiprocessors there are, and where the parameters end."""
    read = {place for _, place in cfg.constant_words}
    fills: list[Fill] = []
    if lay.multiprocessors in read:
        fills.append(Fill(lay.multiprocessors, "multiprocessors"))
    if lay.bank_pointer and lay.param_end in read:
        fills.append(Fill(lay.param_end, "u32", kernel.param_base + kernel.param_size - 1))
    return fills


def grid_words(kernel: Kernel) -> dict[int, int]:
    """Offset in bank 0 -> half of the address of grid.sync()'s counters, if they are used."""
    if kernel.grid_workspace is None:
        return {}
    low, high = GRID_WORKSPACE[kernel.arch]
    return {low: 0, high: 1}


def kernarg(
    kernel: Kernel,
    cfg: Cfg,
    lay: BankLayout,
    spill: int,
    lds: int,
    polled: int,
    most_threads: int,
) -> tuple[LaunchInfo, dict[int, int]]:
    """The launch of a kernel that spills ``spill`` bytes per lane and has ``lds`` bytes of static
    LDS, ``polled`` of them its barriers', and for each constant bank the offset of its pointer in
    the kernarg segment.
    ``most_threads`` are those of a block where the kernel has no limit of its own."""
    named = constants(cfg)
    banks = banks_used(cfg, named)
    if kernel.grid_workspace is not None:
        banks = tuple(sorted({*banks, 4}))
    info, offsets = launch_info(
        kernel,
        lay,
        banks,
        stack_bytes(kernel, cfg),
        spill,
        lds,
        reads_word(named, lay.constant3),
        uses_textures(cfg),
        uses_locks(cfg),
        (
            *cluster_fills(kernel, named),
            *_reserved_fills(cfg, polled, kernel.shared_size),
            *_device_fills(kernel, lay, cfg),
        ),
        smid=uses_smid(cfg),
        recurses=stack_bytes(kernel, cfg) > 0 and recursive(cfg),
        most_threads=most_threads,
    )
    _refuse_unknown(kernel, lay, cfg, info)
    return info, offsets


# fence.proxy.alias has two fences and takes the wider one where bit 0 of this word is 0, which it
# always is here.
_WIDER_FENCE = {
    **dict.fromkeys((80, 86, 87, 88, 89), 0x128), 90: 0x18C,
    **dict.fromkeys((100, 103, 110, 120, 121), 0x2D8),
}  # fmt: skip


def _refuse_unknown(kernel: Kernel, lay: BankLayout, cfg: Cfg, info: LaunchInfo) -> None:
    """SX0413 for a word before the parameters that the driver writes and the launcher does not: it
    would be 0.  Words at an index that is computed are not looked at: they may be parameters'."""
    known = {lay.descriptor, lay.shared_window, lay.local_window, lay.param_pointer}
    spans = [(at, 8) for at in known if at is not None]
    if not lay.bank_pointer:
        spans.append((lay.param_end, 8))
    spans += [(at, 4) for at in (*grid_words(kernel), _WIDER_FENCE.get(kernel.arch, -4))]
    spans += [(fill.offset, fill.size) for fill in info.fills]
    for inst, place in cfg.constant_words:
        if not 0 <= place < kernel.param_base:
            continue
        if not any(at <= place < at + size for at, size in spans):
            where = Where(kernel=kernel.name, offset=inst.offset, inst=inst.text)
            text = f"the driver's word {place:#x} of constant bank 0 is not known"
            raise LoweringError("SX0413", text, where)


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
    others: Sequence[Fill] = (),
    *,
    smid: bool = False,
    recurses: bool = False,
    most_threads: int,
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
        # Spilled registers lie above the stack, at places that are in the code.
        Fill(lay.stack_top, "stack_top" if recurses and not spill else "u32", stack),
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
    if smid:
        fills.append(Fill(size, "smid"))
        size += 8
    fills += others
    if lay.dynamic_shared is not None:
        fills.append(Fill(lay.dynamic_shared, "dynamic_shared"))
    threads = kernel.max_threads
    info = LaunchInfo(
        kernarg_size=size,
        param_base=kernel.param_base,
        param_size=kernel.param_size,
        lds_static=lds,
        # The bytes that printf copies of its arguments may reach beyond the stack.
        private_size=stack + spill + (ARGUMENTS if "vprintf" in functions_of(kernel) else 0),
        max_threads=threads[0] * threads[1] * threads[2] if threads else most_threads,
        fills=tuple(fills),
        heap=not {"malloc", "free"}.isdisjoint(functions_of(kernel)),
    )
    return info, offsets
