"""The control-flow graphs of a file's kernels, SASS or RDNA3, as they are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sassxlate.cfg.graph import SIZE, Cfg
from sassxlate.cfg.view.picture import Picture
from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.disasm.containers import Cubin, Kernel
from sassxlate.disasm.inputs import (
    CodeOf,
    kernel_matches,
    no_match,
    parse_arch,
    read_code_object,
    read_hip_program,
    read_input,
    require_device_code,
    require_machine_code,
)
from sassxlate.errors import SassxlateError


@dataclass(frozen=True, slots=True)
class Graph:
    """A kernel's picture; for SASS also the kernel, and the graph with its analyses if it is
    complete, otherwise ``problem`` has the reason."""

    picture: Picture
    cfg: Cfg | None = None
    problem: SassxlateError | None = None
    kernel: Kernel | None = None


def graphs(
    file: str, kernels: Sequence[str], arch: str | None, code_of: CodeOf = require_machine_code
) -> Iterator[Graph]:
    """The kernels that patterns and an architecture select; all without patterns.

    Unknown words, and control flow that cannot be followed, are drawn as such.

    Raises:
        SassxlateError: errors of reading, with file and kernel; SX0802 if nothing is selected.
    """
    code = read_code_object(file)
    if code is None and arch in RDNA3:
        code = read_hip_program(file)
    found = 0
    drawn = _gfx(file, code, kernels, arch) if code else _sass(file, kernels, arch, code_of)
    for graph in drawn:
        found += 1
        yield graph
    if not found:
        raise no_match(file, tuple(kernels), arch)


def _sass(file: str, kernels: Sequence[str], arch: str | None, code_of: CodeOf) -> Iterator[Graph]:
    wanted = parse_arch(arch) if arch else None
    loaded = read_input(file)
    if not loaded.fatbins:
        program = read_hip_program(file)
        if program is not None:
            yield from _gfx(file, program, kernels, arch)
            return
    require_device_code(loaded)
    loaded = code_of(loaded, arch)
    for _, cubin in loaded.cubins():
        if wanted and (cubin.arch != wanted[0] or wanted[1] not in ("", cubin.variant)):
            continue
        for k in cubin.kernels:
            if kernels and not kernel_matches(k.name, k.demangled, tuple(kernels)):
                continue
            try:
                yield _whole(k, cubin)
            except SassxlateError as error:
                yield _partial(k, error.at(file=file, kernel=k.name))


def _whole(kernel: Kernel, cubin: Cubin) -> Graph:
    from sassxlate.cfg.view.sass import picture
    from sassxlate.lowering.abi.link import link_kernel
    from sassxlate.lowering.kernel_graph import kernel_cfg

    graph = kernel_cfg(link_kernel(kernel, cubin))
    return Graph(picture(graph, kernel.demangled), graph, kernel=kernel)


def _partial(kernel: Kernel, why: SassxlateError) -> Graph:
    """The readable part of a kernel's code; an unknown architecture raises SX0204."""
    from sassxlate.cfg.view.undecodable_sass import picture
    from sassxlate.disasm.sass import decode_section

    whole = len(kernel.code) // SIZE * SIZE
    try:
        items = decode_section(kernel.code[:whole], kernel.arch).made()
    except SassxlateError as error:
        raise error.at(file=why.where.file, kernel=kernel.name) from None
    drawn = picture(
        kernel.name,
        kernel.arch,
        items,
        shown=kernel.demangled,
        indirect=kernel.indirect_targets,
        syscalls=kernel.syscall_offsets,
        why=why if kernel.code else None,
        rest=kernel.code[whole:],
    )
    return Graph(drawn, problem=why if kernel.code else None, kernel=kernel)


def _gfx(file: str, data: bytes, kernels: Sequence[str], arch: str | None) -> Iterator[Graph]:
    from sassxlate.cfg.view.rdna3 import picture
    from sassxlate.disasm.containers import demangle
    from sassxlate.disasm.containers.elf import printable
    from sassxlate.disasm.listing.code_object_file import parts
    from sassxlate.disasm.listing.rdna3_section import decode_code, pieces

    for _, obj in parts(file, data):
        if arch not in (None, obj.machine):
            continue
        for section in obj.sections:
            if not section.code or not section.data:
                continue
            for symbol, address, code in pieces(obj, section):
                if symbol is None and not code.strip(b"\0"):
                    continue
                told = symbol.name if symbol else section.name
                name = printable(told.encode("utf-8", "backslashreplace"))
                shown = demangle(name)
                if kernels and not kernel_matches(name, shown, tuple(kernels)):
                    continue
                lines = [*decode_code(code, address)]
                drawn = picture(name, lines, shown, target=obj.machine)
                errors = {x.address - address: x.error for x in lines if x.error and not x.is_zero}
                at = (t.offset for n in drawn.nodes if n.reachable for t in n.lines)
                first = next((errors[o].at(offset=o) for o in at if o in errors), None)
                problem = first.at(file=file, kernel=name) if first else None
                yield Graph(drawn, problem=problem)
