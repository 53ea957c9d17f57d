"""The passes of a kernel, from decoding to the ELF file, in one tuple: :data:`PASSES`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from sassxlate import collector
from sassxlate.cfg import analyse as uniformity
from sassxlate.cfg import liveness
from sassxlate.disasm.containers.values import Cubin, Kernel
from sassxlate.disasm.rdna3 import Encoded, Program, encode_items, resolve_labels
from sassxlate.disasm.rdna3.instruction import Inst, Item
from sassxlate.errors import LoweringError, SassxlateError, Where
from sassxlate.lowering.abi.kernarg import LaunchInfo
from sassxlate.lowering.abi.link import link_kernel
from sassxlate.lowering.codeobject.code_object import KernelImage
from sassxlate.lowering.codeobject.code_object import write as write_code_object
from sassxlate.lowering.codeobject.source_map import note
from sassxlate.lowering.codeobject.source_marks import source_map
from sassxlate.lowering.convergence.plan import make_plan
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.nans.bits import nan_bits
from sassxlate.lowering.nans.reads import routines_in
from sassxlate.lowering.passes.hazards import insert_hazards
from sassxlate.lowering.passes.long_branches import expand_long_branches, find_islands
from sassxlate.lowering.passes.waitcnt import insert_waitcnt
from sassxlate.lowering.regalloc.allocate import dead_instructions
from sassxlate.lowering.select.allocation import first_allocation, fit_registers
from sassxlate.lowering.select.by_parts import Made, write_code
from sassxlate.lowering.select.kernel import check_lanes, coalesce_copies, select
from sassxlate.lowering.select.stages import Analysed, Graphed, Linked, Planned, Selected, Source
from sassxlate.lowering.select.translated import Translated, TranslatedCode, TranslationStats
from sassxlate.lowering.target import DEFAULT, Target

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


@dataclass(frozen=True, slots=True)
class Finished:
    """All that a code object is made of.  ``source``: its note."""

    kernel: Kernel
    launch: LaunchInfo
    report: TranslationStats
    image: KernelImage
    target: Target
    source: bytes


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
    nans = nan_bits(cfg, live, unread, routines_in(kernel.callees))
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
    source = note([(made.name, source_map(code.items, code.program))])  # its text is not kept
    return Written(code, write_code_object([made], code.selected.regs.target, source))


def lengthen_made(code: Made) -> Made:
    """Splits branches of code that is made by parts, as :func:`lengthen_branches`."""
    islands = find_islands(code.encoded)
    if islands is None:
        return code
    marks = code.marks.with_islands(islands.places())
    return replace(code, encoded=islands.into(code.encoded), marks=marks)


def finish(code: Made) -> Finished:
    """Its machine code and the note of its source."""
    program = resolve_labels(code.encoded)
    made = image(code.kernel, code, program)
    source = note([(made.name, code.marks.text(program))])
    size, count = len(program.data), code.marks.instructions
    report = replace(code.report, rdna_instructions=count, code_bytes=size)
    return Finished(code.kernel, code.launch, report, made, code.regs.target, source)


def write_finished(code: Finished) -> TranslatedCode:
    """The code object."""
    code_object = write_code_object([code.image], code.target, code.source)
    return TranslatedCode(code.kernel, code_object, code.launch, code.report)


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
# Of those who want the code alone: after the plan its instructions come and go.
CODE_PASSES: Final = (
    *PASSES[: next(n for n, p in enumerate(PASSES) if p.name == "plan_convergence") + 1],
    Pass("write_code", write_code),
    Pass("expand_long_branches", lengthen_made),
    Pass("assemble", finish),
    Pass("write", write_finished),
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

    Raises LoweringError SX0465 for a target whose instructions the rules do not write; otherwise
    LoweringError, DecodeError or CfgError with the kernel, offset and instruction.
    """
    _has_rules(target)
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


def translate_code(cubin: Cubin, name: str, *, target: Target = DEFAULT) -> TranslatedCode:
    """The code of one kernel of a cubin, without its instructions: the bytes of
    :func:`translate_kernel` in less memory.  Raises as that does."""
    _has_rules(target)
    times: list[tuple[str, float]] = []

    def watch(step: Pass, value: Any, seconds: float) -> None:
        times.append((step.name, seconds))

    with collector.paused():
        done: TranslatedCode = run_passes(Source(cubin, name, target), CODE_PASSES, watch)
    return replace(done, report=replace(done.report, seconds=tuple(times)))


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
        left_out=selected.kernel.left_out,
    )
    return Translated(
        selected.kernel, done.code_object, selected.launch, report, cfg, program, items, selected
    )


def _has_rules(target: Target) -> None:
    if not target.has_rules:
        raise LoweringError(
            "SX0465", f"{target.name} has {target.instructions}'s instructions, the rules RDNA3's"
        )


def select_kernel(
    cubin: Cubin, name: str, *, target: Target = DEFAULT, placed: bool = False
) -> Selected:
    """The code of a kernel's blocks alone, before waits, hazards and encoding.  Raises as
    :func:`translate_kernel`."""
    selected: Selected = run_passes(Source(cubin, name, target, placed), PASSES[:_SELECTION])
    return selected


def image(kernel: Kernel, selected: Selected | Made, program: Program) -> KernelImage:
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
        dynamic_stack=selected.launch.growing_stack,
    )
