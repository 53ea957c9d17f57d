"""Allocates the registers of a kernel, and derives its launch, from its plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

from sassxlate.cfg import Cfg
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.sass.tables import ROWS
from sassxlate.errors import LoweringError, Where
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.abi.reserved_shared import static_bytes
from sassxlate.lowering.convergence.barriers import record_bytes, shared_bytes
from sassxlate.lowering.regalloc.allocate import allocate
from sassxlate.lowering.rules import TABLE
from sassxlate.lowering.select.kernel import select
from sassxlate.lowering.select.launch import grid_words, kernarg, stack_bytes, windows
from sassxlate.lowering.select.stages import Allocated, Planned, Selected
from sassxlate.lowering.target import Target

ROUNDS = 4  # most rounds of allocation and selection, including the first
# VGPRs beyond a kernel's registers and its longest rule's temporaries.
SPARE = 8


def first_allocation(planned: Planned) -> Allocated:
    """The register map with as many VGPRs for temporaries as the longest rule declares."""
    return allocation(planned, temporaries(planned.analysed.cfg))


def temporaries(cfg: Cfg) -> int:
    """The initial number of vector temporaries of a kernel: the most that one of its rules
    takes."""
    return max((r.temporaries for name in cfg.mnemonics for r in TABLE.get(name, ())), default=24)


@cache
def _temporaries_of_opcodes() -> dict[int, int]:
    most: dict[int, int] = {}
    for row in ROWS:
        rules = TABLE.get(row.mnemonic, ())
        own = max((r.temporaries for r in rules), default=0)
        opcode = row.opcode & 0xFFF
        most[opcode] = max(most.get(opcode, 0), own)
    return most


def _opcodes(code: bytes) -> set[int]:
    words = memoryview(code[: len(code) // 16 * 16]).cast("H")
    return {word & 0xFFF for word in set(words[::8])}


def _threads_on_nvidia(registers: int) -> int:
    """Threads of the largest block that the registers of a multiprocessor suffice for: 65536 in
    four parts, given to warps by 8 per lane (CUDA's occupancy calculator, sm_75 to sm_120; not
    measured on a GPU)."""
    return 65536 // 4 // (max(1, -(-registers // 8)) * 8 * 32) * 4 * 32


def expected_threads(cubin: Cubin, target: Target) -> dict[str, int]:
    """Threads of the largest block, of the kernels for which that is fewer than on an NVIDIA GPU.

    An estimate from the register count and the instructions alone, which is meant to err towards
    fewer threads: only a translation knows the VGPRs (`fit_registers`).  Where there is room for
    fewer than it says, a launch that large fails (CUDA error 701).  Instructions of functions that
    a kernel may call count as its own; unknown opcodes count nothing, since no kernel with them is
    translated.
    """
    known = _temporaries_of_opcodes()

    def longest(opcodes: Iterable[int]) -> int:
        return max((known.get(opcode, 0) for opcode in opcodes), default=0)

    called = longest(set[int]().union(*(_opcodes(f.code) for f in cubin.functions)))
    fewer: dict[str, int] = {}
    for kernel in cubin.kernels:
        x, y, z = kernel.max_threads or (target.threads, 1, 1)
        nvidias = min(x * y * z, target.threads, _threads_on_nvidia(kernel.registers))
        vgprs = kernel.registers + max(called, longest(_opcodes(kernel.code))) + SPARE
        threads = target.most_threads(min(vgprs, target.vgprs))
        if threads < nvidias:
            fewer[kernel.name] = threads
    return fewer


def allocation(planned: Planned, vtemps: int) -> Allocated:
    """The register map with ``vtemps`` VGPRs kept free for temporaries.  LoweringError SX0402 if
    scalar registers run out."""
    found, plan = planned.analysed, planned.plan
    kernel, cfg = found.kernel, found.cfg
    lay = bank_layout(kernel.arch)
    regs = allocate(
        cfg,
        found.live,
        found.uniformity,
        plan.slots,
        plan.pending_live,
        len(plan.regions),
        windows(lay) | frozenset(grid_words(kernel)),
        vtemps,
        stack_bytes(kernel, cfg),
        plan.lane_words,
        found.unread,
        target=found.target,
    )
    shared = static_bytes(kernel, cfg) + shared_bytes(plan)
    launch, table = kernarg(
        kernel, cfg, lay, regs.scratch_spill, shared, record_bytes(plan), found.target.threads
    )
    launch = replace(launch, comes_apart=plan.comes_apart)
    return Allocated(planned, regs, launch, table, vtemps)


def fit_registers(selected: Selected) -> Selected:
    """The kernel in the target's VGPRs, see :func:`fitted`."""
    return fitted(selected, select)


def fitted(selected: Selected, select: Callable[[Allocated], Selected]) -> Selected:
    """The kernel in the target's VGPRs; its blocks have no more threads than registers suffice for.

    Only selection can count the temporaries: each use of a spilled register takes one, and which
    registers are spilled depends on how many VGPRs the map keeps free.  If the map and the counted
    temporaries exceed the VGPRs, a new map keeps that many free, and selection runs again.  The
    numbers only grow; after ``ROUNDS`` rounds the kernel is refused (LoweringError SX0402).  Few
    kernels need a second round.
    """
    target = selected.regs.target
    for _ in range(ROUNDS - 1):
        if selected.vgprs <= target.vgprs:
            break
        counted = selected.vgprs - selected.regs.vtemp_base
        selected = select(allocation(selected.allocated.planned, counted))
    if selected.vgprs > target.vgprs:
        raise LoweringError(
            "SX0402", "no vector registers left", Where(kernel=selected.kernel.name)
        )
    threads = min(selected.launch.max_threads, target.most_threads(selected.vgprs))
    return replace(selected, launch=replace(selected.launch, max_threads=threads))
