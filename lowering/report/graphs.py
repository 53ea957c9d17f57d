"""The control-flow graphs of a file's kernels, SASS or RDNA3, as they are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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


@dataclass(frozen=True, slots=True)
class SassSubject:
    """A kernel of a file, to be drawn."""

    file: str
    kernel: Kernel
    cubin: Cubin


@dataclass(frozen=True, slots=True)
class Rdna3Subject:
    """Code of a code object, to be drawn: its name, as it is and demangled; where it lies."""

    file: str
    name: str
    shown: str
    target: str
    code: bytes
    address: int


Subject: TypeAlias = SassSubject | Rdna3Subject


def graphs(
    file: str, kernels: Sequence[str], arch: str | None, code_of: CodeOf = require_machine_code
) -> Iterator[Graph]:
    """The kernels that patterns and an architecture select; all without patterns.

    Unknown words, and control flow that cannot be followed, are drawn as such.

    Raises:
        SassxlateError: errors of reading, with file and kernel; SX0802 if nothing is selected.
    """
    for subject in subjects(file, kernels, arch, code_of):
        yield drawn(subject)


def subjects(
    file: str, kernels: Sequence[str], arch: str | None, code_of: CodeOf = require_machine_code
) -> Iterator[Subject]:
    """What :func:`graphs` draws.  Raises as that, but for what drawing raises."""
    code = read_code_object(file)
    if code is None and arch in RDNA3:
        code = read_hip_program(file)
    found = 0
    some = _gfx(file, code, kernels, arch) if code else _sass(file, kernels, arch, code_of)
    for subject in some:
        found += 1
        yield subject
    if not found:
        raise no_match(file, tuple(kernels), arch)


def drawn(subject: Subject) -> Graph:
    """The graph of one.  Raises DecodeError SX0204 for SASS of an unknown architecture."""
    if isinstance(subject, Rdna3Subject):
        return _drawn_rdna3(subject)
    try:
        return _whole(subject.kernel, subject.cubin)
    except SassxlateError as error:
        return _partial(subject.kernel, error.at(file=subject.file, kernel=subject.kernel.name))


def _sass(
    file: str, kernels: Sequence[str], arch: str | None, code_of: CodeOf
) -> Iterator[Subject]:
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
            if not kernels or kernel_matches(k.name, k.demangled, tuple(kernels)):
                yield SassSubject(file, k, cubin)


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


def _gfx(
    file: str, data: bytes, kernels: Sequence[str], arch: str | None
) -> Iterator[Rdna3Subject]:
    from sassxlate.disasm.containers import demangle
    from sassxlate.disasm.containers.elf import printable
    from sassxlate.disasm.listing.code_object_file import parts
    from sassxlate.disasm.listing.rdna3_section import pieces

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
                if not kernels or kernel_matches(name, shown, tuple(kernels)):
                    yield Rdna3Subject(file, name, shown, obj.machine, code, address)


def _drawn_rdna3(subject: Rdna3Subject) -> Graph:
    from sassxlate.cfg.view.rdna3 import picture
    from sassxlate.disasm.listing.rdna3_section import decode_code

    name, address = subject.name, subject.address
    lines = [*decode_code(subject.code, address)]
    made = picture(name, lines, subject.shown, target=subject.target)
    errors = {x.address - address: x.error for x in lines if x.error and not x.is_zero}
    at = (t.offset for n in made.nodes if n.reachable for t in n.lines)
    first = next((errors[o].at(offset=o) for o in at if o in errors), None)
    problem = first.at(file=subject.file, kernel=name) if first else None
    return Graph(made, problem=problem)
