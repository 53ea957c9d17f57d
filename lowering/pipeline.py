"""The way of a kernel: instructions, control flow, selection, waits, hazards, code, object."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from sassxlate.cfg import Cfg, build
from sassxlate.disasm.containers.values import Cubin, Kernel
from sassxlate.disasm.rdna3 import Program, assemble
from sassxlate.disasm.rdna3.instruction import Inst, Item
from sassxlate.disasm.sass import decode_section
from sassxlate.disasm.sass.instruction import Const, Imm, Instruction
from sassxlate.disasm.sass.semantics.single_block_clusters import alone
from sassxlate.errors import LoweringError, SassxlateError, Where
from sassxlate.lowering.abi.hostcalls import as_instructions
from sassxlate.lowering.abi.link import link_kernel
from sassxlate.lowering.codeobject.code_object import KernelImage, write
from sassxlate.lowering.codeobject.source_map import source_map
from sassxlate.lowering.passes import PASSES
from sassxlate.lowering.passes.long_branches import expand_long_branches
from sassxlate.lowering.select.kernel import Selected, select
from sassxlate.lowering.select.translated import Translated, TranslationStats, assembly
from sassxlate.lowering.target import most_threads


def function_pointers(kernel: Kernel) -> tuple[int, ...]:
    """The functions that a call through a register may reach.

    In a module with several kernels a function pointer is an offset in constant bank 2, whose word
    there is the function's offset in the kernel's code; with one kernel it is that offset itself
    (nvcc 13.0, whole programs).  Where the bank lists none, any function may be meant.
    """
    listed = {
        int.from_bytes(kernel.constant2[at : at + 8], "little")
        for at in range(0, len(kernel.constant2) - 7, 8)
    }
    functions = {f.value for f in kernel.callees}
    return tuple(sorted(functions & listed or functions))


def with_address(kernel: Kernel, ins: Instruction) -> Instruction:
    """The instruction with half of a variable's address in the place of its immediate."""
    offset = kernel.addresses.get(ins.offset)
    if offset is None:
        return ins
    if not isinstance(ins.get("Rb"), Imm):
        where = Where(kernel=kernel.name, offset=ins.offset, inst=ins.text)
        raise LoweringError("SX0407", "address of a variable in this instruction", where)
    return replace(ins, operands={**ins.operands, "Rb": Const(4, offset)})


def kernel_cfg(kernel: Kernel) -> Cfg:
    """The control-flow graph.  A reachable word that does not decode raises its DecodeError."""
    left = next((r for r in kernel.relocs if r.section.startswith(".text.")), None)
    if left is not None:
        where = Where(kernel=kernel.name, offset=left.offset)
        raise LoweringError("SX0407", f"the code was not joined with {left.symbol}", where)
    items = decode_section(kernel.code, kernel.arch).made()
    good = [
        as_instructions(kernel, with_address(kernel, alone(i)))
        for i in items
        if isinstance(i, Instruction)
    ]
    bad = {b.offset: b for b in items if not isinstance(b, Instruction)}
    if 0 in bad:  # the graph's entry is the first instruction that it is given
        raise bad[0].error.at(kernel=kernel.name)
    try:
        targets, syscalls = kernel.indirect_targets, kernel.syscall_offsets
        pointers = function_pointers(kernel)
        return build(kernel.name, kernel.arch, good, targets, syscalls, pointers)
    except SassxlateError as e:
        at = e.where.offset
        if at in bad:
            raise bad[at].error.at(kernel=kernel.name) from None
        raise e.at(kernel=kernel.name) from None


def translate_kernel(
    cubin: Cubin,
    name: str,
    rewrite: Callable[[Selected], Selected] | None = None,
    *,
    placed: bool = False,
) -> Translated:
    """Translates one kernel of a cubin by name.  ``rewrite`` is where other engines than the rules
    have their say (see :mod:`.engine`); ``placed`` is as for :func:`.select.select`.

    Raises LoweringError, DecodeError or CfgError with the kernel, offset and instruction.
    """
    kernel = _kernel(cubin, name)
    started = time.perf_counter()
    kernel = link_kernel(kernel, cubin)
    cfg = kernel_cfg(kernel)
    times = [("cfg", time.perf_counter() - started)]
    started = time.perf_counter()
    selected = _fitting(select(kernel, cfg, placed=placed))
    times.append(("select", time.perf_counter() - started))
    if rewrite is not None:
        started = time.perf_counter()
        selected = rewrite(selected)
        times.append(("engine", time.perf_counter() - started))
    items = list(selected.items)
    for label, run in PASSES:
        started = time.perf_counter()
        items = run(items)
        times.append((label, time.perf_counter() - started))
    started = time.perf_counter()
    try:
        items, program = _assembled(items)
    except SassxlateError as e:
        raise e.at(kernel=name) from None
    made = replace(image(kernel, selected, program), source=source_map(items, program))
    code_object = write([made])
    times.append(("encode", time.perf_counter() - started))
    report = TranslationStats(
        kernel=name,
        sass_instructions=sum(len(b.instructions) for b in cfg.blocks),
        rdna_instructions=sum(isinstance(i, Inst) for i in items),
        blocks=len(cfg.blocks),
        waiting_points=len(selected.plan.points),
        vgprs=selected.vgprs,
        spilled=len(selected.regs.spilled),
        code_bytes=len(program.data),
        rules=selected.rules_used,
        seconds=tuple(times),
        comes_apart=selected.plan.comes_apart,
    )
    text = assembly(items, program)
    return Translated(
        kernel, code_object, selected.launch, text, report, cfg, program, tuple(items), selected
    )


def select_kernel(cubin: Cubin, name: str, *, placed: bool = False) -> Selected:
    """The code of a kernel's blocks alone, before waits, hazards and encoding.  Raises as
    :func:`translate_kernel`."""
    kernel = link_kernel(_kernel(cubin, name), cubin)
    return _fitting(select(kernel, kernel_cfg(kernel), placed=placed))


def _kernel(cubin: Cubin, name: str) -> Kernel:
    kernel = next((k for k in cubin.kernels if k.name == name), None)
    if kernel is None:
        raise LoweringError("SX0405", f"no kernel {name}", Where(kernel=name))
    if cubin.relocatable:
        raise LoweringError("SX0406", "the cubin was never linked", Where(kernel=name))
    return kernel


def _assembled(items: list[Item]) -> tuple[list[Item], Program]:
    """The code, with islands where a branch does not reach its label without."""
    try:
        return items, assemble(items)
    except SassxlateError as e:
        if e.code != "SX0511":
            raise
    items = expand_long_branches(items)
    return items, assemble(items)


def _fitting(selected: Selected) -> Selected:
    """With no more threads a block than there are registers for."""
    threads = min(selected.launch.max_threads, most_threads(selected.vgprs))
    return replace(selected, launch=replace(selected.launch, max_threads=threads))


def image(kernel: Kernel, selected: Selected, program: Program) -> KernelImage:
    """The kernel as the code-object writer takes it."""
    return KernelImage(
        name=kernel.name,
        code=program.data,
        vgprs=selected.vgprs,
        sgprs=106,
        group_segment=selected.launch.lds_static,
        private_segment=selected.launch.private_size if selected.uses_private else 0,
        kernarg_size=selected.launch.kernarg_size,
        max_flat_workgroup_size=selected.launch.max_threads,
    )
