"""Compiles a kernel of RDNA3 machine code to a host image."""

from __future__ import annotations

import functools
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import llvmlite.binding as llvm

from sassxlate.cfg import rdna3_flow as flows
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.image import helper_objects
from sassxlate.lowering.emulate.image.image import HostImage, frame_size, header, link
from sassxlate.lowering.emulate.options import CompileOptions, Isa, host_isa
from sassxlate.lowering.emulate.wave import run
from sassxlate.lowering.emulate.wave.partial import ways_out
from sassxlate.lowering.emulate.wave.wave import build

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sassxlate.lowering.codeobject.descriptor import Descriptor
_CPU = {"avx512": "x86-64-v4", "avx2": "x86-64-v3"}
ATTRIBUTES = {
    "avx512": 'nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512"',
    "avx2": "nounwind",
}


# How far the register allocator searches for places to split live ranges.  With its default,
# kernels whose registers are live throughout many blocks take quadratic time (4,000 instructions:
# 35 s, with this 4.6 s).  With 30, loops that access memory may take twice the time, since values
# leave their registers for good; below, more so.  Long code without loops takes 1.04 of the time,
# and 0.55 to compile (16,000 instructions).
_BUDGET, _BUDGET_OF_STRAIGHT = 1000, 30
_LONG = 2000  # instructions of straight code
# LLVM's pass that sinks instructions to their uses tries every pair of blocks: minutes for
# a kernel of 24,000 instructions, whose code takes 14 s without.  Larger kernels do without it.
_SINKS = 6000
_STACK = 768 << 10  # most bytes of a frame: the library's fibers have a MiB
_STACK_OF_PART = 320 << 10  # the same where the baseline's frame comes after it


@functools.cache
def _initialize() -> None:
    search(_BUDGET)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


_machines = threading.local()


def target_machine(isa: Isa, opt: int, features: str = "") -> llvm.TargetMachine:
    """This thread's target machine: costly to make, and not shareable between threads."""
    cache: dict[tuple[str, int, str], llvm.TargetMachine] | None = getattr(_machines, "cache", None)
    if cache is None:
        cache = _machines.cache = {}
    key = isa, opt, features
    if key not in cache:
        _initialize()
        target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
        cache[key] = target.create_target_machine(
            cpu=_CPU[isa], features=features, opt=opt, reloc="pic", codemodel="small"
        )
    return cache[key]


def optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine, *, quick: bool = False) -> None:
    """The few passes that pay: inlining, registers of slots, simplification.

    ``quick``: inlining only.  A wave's registers then stay in memory, no value lives longer than a
    block, and the register allocator has little to do.
    """
    pto = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(machine, pto)
    inline = llvm.create_new_module_pass_manager()
    inline.add_always_inliner_pass()
    inline.add_global_dead_code_eliminate_pass()
    inline.run(module, builder)
    if quick:
        return
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_aggressive_dce_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def compile_kernel(
    code: bytes,
    entry: int,
    options: CompileOptions | None = None,
    kernel: str = "kernel",
    pointers: Iterable[int] = (),
) -> HostImage:
    """The host image of the kernel that starts at byte ``entry`` of ``code``; ``pointers``: what of
    it has its address in memory.

    Raises:
        EmulatorError: SX06xx, with the offset from the kernel's entry and the mnemonic.
    """
    start = time.perf_counter()
    try:
        flow = flows.discover(code, entry, pointers)
    except EmulatorError as e:
        raise e.at(kernel=kernel) from e
    return compile_flow(flow, options, kernel, start)


def compile_flow(
    flow: flows.Flow,
    options: CompileOptions | None = None,
    kernel: str = "kernel",
    start: float | None = None,
) -> HostImage:
    """The host image of a kernel whose blocks are already known."""
    options = options or CompileOptions()
    isa = options.isa or host_isa()
    clock = time.perf_counter
    t0 = clock() if start is None else start
    try:
        built, count = build(flow, options, isa, ATTRIBUTES[isa])
    except EmulatorError as e:
        raise e.at(kernel=kernel) from e
    parts = helper_objects.split(built, "wave")
    seconds = {"ir": clock() - t0}
    machine = target_machine(isa, options.opt)
    try:
        sink(count <= _SINKS and not options.quick)
        search(_BUDGET_OF_STRAIGHT if count > _LONG and not flow.goes_back() else _BUDGET)
        try:
            made = [emit(parts.kernel, machine, seconds, quick=options.quick)]
        finally:  # helpers, and stencils, have code of their own
            sink(True)
            search(_BUDGET)
        t1 = clock()
        how = f"{isa} {options.opt}"
        made += helper_objects.helpers(
            parts.helpers.values(), how, lambda text: emit(text, machine, {})
        )
    except RuntimeError as e:
        raise EmulatorError("SX0691", f"the compiler made bad LLVM IR: {e}").at(
            kernel=kernel
        ) from e
    t2 = clock()
    blob, at = link(made, "wave")
    stack = frame_size(blob, at)
    if stack > _STACK:
        raise EmulatorError("SX0690", f"the compiled code needs {stack} bytes of stack").at(
            kernel=kernel
        )
    if (part := ways_out.is_part(built)) and stack > _STACK_OF_PART:
        return compile_flow(flow, replace(options, entered=None), kernel, start)
    avx512 = isa == "avx512"
    counts = len(flow.blocks) if options.counts else 0
    page = header(
        kernel,
        len(blob),
        at,
        strict=options.strict,
        avx512=avx512,
        counts=counts,
        turns=options.turns,
        quick=options.quick,
        runs=run.wanted(flow, options),
        partial=part,
    )
    seconds |= {"helpers": t2 - t1, "link": clock() - t2}
    traces = options.trace is not None
    return HostImage(page + blob, kernel, count, len(blob), at, stack, seconds, counts, traces)


def sink(wanted: bool) -> None:
    llvm.set_option("", f"-disable-machine-sink={'false' if wanted else 'true'}")


def search(budget: int) -> None:
    llvm.set_option("", f"-grow-region-complexity-budget={budget}")


def emit(
    text: str, machine: llvm.TargetMachine, seconds: dict[str, float], *, quick: bool = False
) -> bytes:
    """A module's object; records the time of each step."""
    clock = time.perf_counter
    t0 = clock()
    module = llvm.parse_assembly(text)
    t1 = clock()
    optimize(module, machine, quick=quick)
    t2 = clock()
    data = machine.emit_object(module)
    seconds |= {"parse": t1 - t0, "optimize": t2 - t1, "codegen": clock() - t2}
    return data


def _given_sgprs(kd: Descriptor) -> int:
    """The SGPRs that are initialised at a kernel's start, one bit each (LLVM's AMDGPUUsage)."""
    two = (kd.enable_dispatch_ptr, kd.enable_queue_ptr, kd.enable_kernarg_ptr)
    user = 2 * sum((*two, kd.enable_dispatch_id)) + kd.enable_private_segment_size
    ids = (kd.enable_workgroup_id_x, kd.enable_workgroup_id_y, kd.enable_workgroup_id_z)
    return (1 << user) - 1 | ((1 << sum(ids)) - 1) << kd.user_sgpr_count


def _kernarg(kd: Descriptor) -> tuple[int, int] | None:
    """`CompileOptions.kernarg`: the pair comes after the dispatch and queue packets' addresses."""
    if not kd.enable_kernarg_ptr:
        return None
    return 2 * sum((kd.enable_dispatch_ptr, kd.enable_queue_ptr)), kd.kernarg_size


def compile_code_object(
    source: Path | str | bytes, kernel: str, options: CompileOptions | None = None
) -> HostImage:
    """The host image of a kernel of a code object, by path or content."""
    from sassxlate.lowering.codeobject import source_map
    from sassxlate.lowering.codeobject.code_object import code_pointers, read

    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    obj = read(data)
    k = obj.kernel(kernel)
    options = options or CompileOptions()
    marked = source_map.UNALIGNED.encode() in data
    note = source_map.find(data) if options.strict or marked else ""
    options = replace(
        options,
        float_mode=k.descriptor.float_mode,
        ieee=k.descriptor.ieee_mode,
        dx10_clamp=k.descriptor.dx10_clamp,
        scratch=k.descriptor.private_segment_size,
        kernarg=_kernarg(k.descriptor),
        workgroup=k.descriptor.user_sgpr_count if k.descriptor.enable_workgroup_id_x else None,
        vgprs=k.descriptor.vgprs,
        sgprs=_given_sgprs(k.descriptor),
        uniform=source_map.offsets(note, kernel, "uniform"),
        fences=source_map.offsets(note, kernel, "fence"),
        target=obj.target,
        # What a compiler of AMD's made names its language, and relies on the hardware as well.
        align="unaligned"
        if source_map.unaligned(note, kernel) or ".language" in k.metadata
        else options.align,
    )
    # Who counts blocks knows those of the code alone (counts.flow_of).
    pointers = () if options.counts else code_pointers(data, obj)
    return compile_kernel(obj.text, k.entry, options, kernel, pointers)
