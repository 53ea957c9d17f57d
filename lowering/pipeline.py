"""The passes of a kernel, from decoding to the ELF file, in one tuple: :data:`PASSES`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from sassxlate import collector
from sassxlate.cfg import Cfg, build, liveness
from sassxlate.cfg import analyse as uniformity
from sassxlate.disasm.containers.values import Cubin, Kernel
from sassxlate.disasm.rdna3 import Encoded, Program, encode_items, resolve_labels
from sassxlate.disasm.rdna3.instruction import Inst, Item
from sassxlate.disasm.sass import decode, decode_filled
from sassxlate.disasm.sass.instruction import Const, Imm, Instruction
from sassxlate.disasm.sass.semantics.single_block_clusters import alone
from sassxlate.disasm.sass.semantics.warpgroups import meeting
from sassxlate.errors import DecodeError, LoweringError, SassxlateError, Where
from sassxlate.lowering.abi.hostcalls import as_instructions
from sassxlate.lowering.abi.link import link_kernel
from sassxlate.lowering.codeobject.code_object import KernelImage
from sassxlate.lowering.codeobject.code_object import write as write_code_object
from sassxlate.lowering.codeobject.source_map import source_map
from sassxlate.lowering.convergence.plan import make_plan
from sassxlate.lowering.nans.bits import nan_bits
from sassxlate.lowering.nans.reads import nvcc_routine
from sassxlate.lowering.passes.hazards import insert_hazards
from sassxlate.lowering.passes.long_branches import expand_long_branches
from sassxlate.lowering.passes.waitcnt import insert_waitcnt
from sassxlate.lowering.regalloc.allocate import dead_instructions
from sassxlate.lowering.select.allocation import first_allocation, fit_registers
from sassxlate.lowering.select.clusters import refuse_clusters
from sassxlate.lowering.select.kernel import check_lanes, coalesce_copies, select
from sassxlate.lowering.select.stages import Analysed, Graphed, Linked, Planned, Selected, Source
from sassxlate.lowering.select.translated import Translated, TranslationStats
from sassxlate.lowering.target import DEFAULT, Target


def function_pointers(kernel: Kernel) -> tuple[int, ...]:
    """The functions that a call through a register may reach.

    In a module with several kernels a function pointer is an offset in constant bank 2, whose word
    there is the function's offset in the kernel's code; with one kernel it is that offset itself
    (nvcc 13.0, whole programs).  If the bank lists none, any function is a candidate.
    """
    listed = {
        int.from_bytes(kernel.constant2[at : at + 8], "little")
        for at in range(0, len(kernel.constant2) - 7, 8)
    }
    functions = {f.value for f in kernel.callees}
    return tuple(sorted(functions & listed or functions))


def with_address(kernel: Kernel, ins: Instruction) -> Instruction:
    """The instruction with half of a variable's address as its immediate."""
    offset = kernel.addresses.get(ins.offset)
    if offset is None:
        return ins
    if not isinstance(ins.get("Rb"), Imm):
        where = Where(kernel=kernel.name, offset=ins.offset, inst=ins.text)
        raise LoweringError("SX0407", "address of a variable in this instruction", where)
    return replace(ins, operands={**ins.operands, "Rb": Const(4, offset)})


def undecodable(kernel: Kernel, offset: int) -> SassxlateError:
    """The error of a word that is no instruction."""
    word = int.from_bytes(kernel.code[offset : offset + 16], "little")
    try:
        ins = decode(word, offset, kernel.arch)
    except DecodeError as e:
        return e.at(kernel=kernel.name)
    raise AssertionError(f"decoded alone, but not with its kernel: {ins.text}")


def kernel_cfg(kernel: Kernel) -> Cfg:
    """The control-flow graph.  A reachable word that does not decode raises its DecodeError, a
    kernel that needs clusters of several blocks SX0428."""
    left = next((r for r in kernel.relocs if r.section.startswith(".text.")), None)
    if left is not None:
        where = Where(kernel=kernel.name, offset=left.offset)
        raise LoweringError("SX0407", f"the code was not joined with {left.symbol}", where)
    refuse_clusters(kernel)
    items = decode_filled(kernel.code, kernel.arch)
    good = [
        as_instructions(kernel, with_address(kernel, meeting(alone(i))))
        for i in items
        if isinstance(i, Instruction)
    ]
    good_at = {i.offset for i in good}
    if 0 not in good_at:  # the graph's entry is the first instruction that it is given
        raise undecodable(kernel, 0)
    try:
        targets, syscalls = kernel.indirect_targets, kernel.syscall_offsets
        pointers = function_pointers(kernel)
        return build(kernel.name, kernel.arch, good, targets, syscalls, pointers)
    except SassxlateError as e:
        at = e.where.offset
        if at is not None and at not in good_at and at in range(0, len(kernel.code), 16):
            raise undecodable(kernel, at) from None
        raise e.at(kernel=kernel.name) from None


# --- the passes --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Code:
    """Instructions after selection.  ``selected`` is their source."""

    selected: Selected
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class EncodedCode:
    """The same with each instruction's bytes; for labels only their sizes."""

    selected: Selected
    encoded: Encoded


@dataclass(frozen=True, slots=True)
class Assembled:
    """Machine code."""

    selected: Selected
    items: tuple[Item, ...]
    program: Program


@dataclass(frozen=True, slots=True)
class Written:
    """The ELF file."""

    assembled: Assembled
    code_object: bytes


def link(source: Source) -> Linked:
    """The kernel joined with the functions that it calls, in its module's layout."""
    kernel = next((k for k in source.cubin.kernels if k.name == source.name), None)
    if kernel is None:
        raise LoweringError("SX0405", f"no kernel {source.name}", Where(kernel=source.name))
    if source.cubin.relocatable:
        raise LoweringError("SX0406", "the cubin was never linked", Where(kernel=source.name))
    return Linked(link_kernel(kernel, source.cubin), source.target, source.placed)


def build_cfg(linked: Linked) -> Graphed:
    """Its instructions, decoded, as basic blocks."""
    return Graphed(linked.kernel, kernel_cfg(linked.kernel), linked.target, linked.placed)


def analyse(graphed: Graphed) -> Analysed:
    """The analyses: liveness, divergence of lanes, unread results, and the NaN whose bits are
    observable."""
    kernel, cfg = graphed.kernel, graphed.cfg
    live = liveness(cfg)
    unread = dead_instructions(cfg)
    routines = frozenset(f.value for f in kernel.callees if nvcc_routine(f.name))
    nans = nan_bits(cfg, live, unread, routines)
    known = (live, uniformity(cfg), unread, nans)
    return Analysed(kernel, cfg, *known, graphed.target, graphed.placed)


def plan_convergence(found: Analysed) -> Planned:
    """The points where lanes wait for others."""
    return Planned(found, make_plan(found.cfg, found.live, found.uniformity))


def insert_waits(selected: Selected) -> Code:
    """Waits for loads whose results are needed."""
    return Code(selected, tuple(insert_waitcnt(selected.items, selected.regs.target)))


def mitigate_hazards(code: Code) -> Code:
    """What keeps instructions apart that the hardware cannot run so close."""
    items = insert_hazards(code.items, code.selected.regs.target)
    return replace(code, items=tuple(items))


def encode(code: Code) -> EncodedCode:
    """The bytes of each instruction."""
    return EncodedCode(code.selected, encode_items(code.items))


def lengthen_branches(code: EncodedCode) -> EncodedCode:
    """Splits branches that do not reach their labels, from island to island."""
    return replace(code, encoded=expand_long_branches(code.encoded))


def assemble(code: EncodedCode) -> Assembled:
    """Replaces labels by distances."""
    return Assembled(code.selected, code.encoded.items, resolve_labels(code.encoded))


def write(code: Assembled) -> Written:
    """The code object."""
    made = image(code.selected.kernel, code.selected, code.program)
    made = replace(made, source=source_map(code.items, code.program))
    return Written(code, write_code_object([made], code.selected.regs.target))


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step.  ``run`` is a pure function from the result of the previous pass to the input
    of the next."""

    name: str
    run: Callable[[Any], Any]


PASSES: Final = (
    Pass("link", link),
    Pass("build_cfg", build_cfg),
    Pass("analyse", analyse),
    Pass("plan_convergence", plan_convergence),
    Pass("allocate", first_allocation),
    Pass("select", select),
    Pass("fit_registers", fit_registers),
    Pass("coalesce_copies", coalesce_copies),
    Pass("check_lanes", check_lanes),
    Pass("insert_waitcnt", insert_waits),
    Pass("insert_hazards", mitigate_hazards),
    Pass("encode", encode),
    Pass("expand_long_branches", lengthen_branches),
    Pass("assemble", assemble),
    Pass("write", write),
)
ENGINE: Final = "engine"  # the pass of other writers of code than the rules, after check_lanes
_SELECTION: Final = next(n for n, p in enumerate(PASSES) if p.name == "check_lanes") + 1


def run_passes(
    source: Source, passes: Iterable[Pass], after: Callable[[Pass, Any, float], None] | None = None
) -> Any:
    """The result of a sequence of passes on a kernel.  ``after`` is called with each pass, its
    result and the seconds that it took."""
    value: Any = source
    try:
        for step in passes:
            started = time.perf_counter()
            value = step.run(value)
            if after is not None:
                after(step, value, time.perf_counter() - started)
    except SassxlateError as e:
        raise e.at(kernel=source.name) from None
    return value


def translate_kernel(
    cubin: Cubin,
    name: str,
    rewrite: Callable[[Selected], Selected] | None = None,
    *,
    target: Target = DEFAULT,
    placed: bool = False,
    after: Callable[[str, Any], None] | None = None,
) -> Translated:
    """Translates one kernel of a cubin by name for a target.  ``rewrite`` is a further pass,
    ``engine``: other writers of code than the rules change what was selected; ``placed`` as in
    :class:`Source`; ``after`` is called with the name and the result of each pass.

    Raises LoweringError, DecodeError or CfgError with the kernel, offset and instruction.
    """
    times: list[tuple[str, float]] = []

    def watch(step: Pass, value: Any, seconds: float) -> None:
        times.append((step.name, seconds))
        if after is not None:
            after(step.name, value)

    engine = () if rewrite is None else (Pass(ENGINE, rewrite),)
    passes = (*PASSES[:_SELECTION], *engine, *PASSES[_SELECTION:])
    with collector.paused():
        done: Written = run_passes(Source(cubin, name, target, placed), passes, watch)
    return _translated(done, tuple(times))


def _translated(done: Written, times: tuple[tuple[str, float], ...]) -> Translated:
    items, program = done.assembled.items, done.assembled.program
    selected = done.assembled.selected
    cfg = selected.plan.cfg
    report = TranslationStats(
        kernel=selected.kernel.name,
        sass_instructions=sum(len(b.instructions) for b in cfg.blocks),
        rdna_instructions=sum(isinstance(i, Inst) for i in items),
        blocks=len(cfg.blocks),
        waiting_points=len(selected.plan.points),
        vgprs=selected.vgprs,
        spilled=len(selected.regs.spilled),
        code_bytes=len(program.data),
        rules=selected.rules_used,
        seconds=times,
        comes_apart=selected.plan.comes_apart,
    )
    return Translated(
        selected.kernel, done.code_object, selected.launch, report, cfg, program, items, selected
    )


def select_kernel(
    cubin: Cubin, name: str, *, target: Target = DEFAULT, placed: bool = False
) -> Selected:
    """The code of a kernel's blocks alone, before waits, hazards and encoding.  Raises as
    :func:`translate_kernel`."""
    selected: Selected = run_passes(Source(cubin, name, target, placed), PASSES[:_SELECTION])
    return selected


def image(kernel: Kernel, selected: Selected, program: Program) -> KernelImage:
    """The kernel in the form that the code-object writer takes."""
    return KernelImage(
        name=kernel.name,
        code=program.data,
        vgprs=selected.vgprs,
        sgprs=selected.regs.target.sgprs,
        group_segment=selected.launch.lds_static,
        private_segment=selected.launch.private_size if selected.uses_private else 0,
        kernarg_size=selected.launch.kernarg_size,
        max_flat_workgroup_size=selected.launch.max_threads,
    )
