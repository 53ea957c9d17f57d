"""``sassxlate disasm`` of AMD's code objects."""

from __future__ import annotations

from collections.abc import Iterator

import click

from sassxlate.disasm.amdgpu_machines import RDNA3, RDNA3_TEXT, bundle_machine
from sassxlate.disasm.containers import code_object, demangle
from sassxlate.disasm.containers.code_object import CodeObject
from sassxlate.disasm.containers.elf import EM_AMDGPU, STT_OBJECT, ElfSymbol, is_elf_of
from sassxlate.disasm.containers.offload_bundle import (
    Room,
    find_bundles,
    is_offload_bundle,
    unbundle,
)
from sassxlate.disasm.inputs import kernel_matches, no_match
from sassxlate.disasm.listing import rdna3_section
from sassxlate.disasm.rdna3.tables import kernel_descriptor
from sassxlate.errors import EncodeError, UsageError, Where
from sassxlate.output import print_json


def parts(path: str, data: bytes) -> Iterator[tuple[str, CodeObject]]:
    """(bundle entry's name, code object) of an ELF file, which has no such name, or of the entries
    for RDNA3 of the offload bundles in a file."""
    if is_elf_of(data, EM_AMDGPU):
        yield "", code_object.read(data, path)
        return
    bundles = [data] if is_offload_bundle(data) else find_bundles(data)
    room = Room.of(len(data))
    entries = [entry for bundle in bundles for entry in unbundle(bundle, room)]
    chosen = [(name, part) for name, part in entries if bundle_machine(name) in RDNA3]
    if not chosen:
        names = ", ".join(name for name, _ in entries) or "nothing"
        message = f"the bundle has no code for {RDNA3_TEXT}: {names}"
        raise EncodeError("SX0531", message, Where(file=path))
    for name, part in chosen:
        yield name, code_object.read(part, path)


def kernel_descriptors(obj: CodeObject) -> dict[str, bytes]:
    """Kernel to descriptor: the objects NAME.kd."""
    found: dict[str, bytes] = {}
    for section in obj.sections:
        for symbol in obj.symbols_of(section):
            if symbol.kind == STT_OBJECT and symbol.name.endswith(".kd"):
                at = symbol.value - section.address
                found[symbol.name[:-3]] = section.data[at : at + kernel_descriptor.SIZE]
    return found


class _Names:
    """The requested symbols."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.patterns = patterns
        self.found = 0

    def wanted(self, symbol: ElfSymbol | None) -> bool:
        """Whether a piece of code is to be printed."""
        if symbol is None:
            self.found += not self.patterns
            return not self.patterns
        chosen = kernel_matches(symbol.name, demangle(symbol.name), self.patterns)
        self.found += chosen
        return chosen


def list_code_objects(
    file: str,
    data: bytes,
    kernels: tuple[str, ...],
    arch: str | None,
    *,
    encoding: bool,
    control: bool,
    source: bool,
    descriptors: bool,
    as_json: bool,
) -> int:
    """Print the code of a code object as ``llvm-objdump -d`` does; the number of bad words.

    Raises:
        EncodeError: SX0531 to SX0533; UsageError: SX0802, SX0822.
    """
    if control:
        raise UsageError("SX0822", "RDNA3 keeps no scheduling information in its words")
    if source:
        raise UsageError("SX0822", "source lines of code objects are not read")
    names = _Names(kernels)
    bad = 0
    listed: list[dict[str, object]] = []
    for entry, obj in parts(file, data):
        if arch not in (None, obj.machine):
            continue
        found = kernel_descriptors(obj)
        if as_json:
            some, errors = _records(obj, names, found)
            listed += some
            bad += errors
            continue
        click.echo(f"\n{file}:\tfile format elf64-amdgpu" + f" ({entry})" * bool(entry))
        bad += _print(obj, names, encoding)
        if descriptors:
            for name, body in found.items():
                if kernel_matches(name, demangle(name), kernels):
                    click.echo("\n" + "\n".join(kernel_descriptor.text(name, body)))
    if not names.found:
        raise no_match(file, kernels, arch)
    if as_json:
        print_json("disasm-rdna3", {"file": file, "kernels": listed})
    return bad


def _print(obj: CodeObject, names: _Names, encoding: bool) -> int:
    bad = 0
    for section in obj.sections:
        if not section.code or not section.data:
            continue
        lines = rdna3_section.section_lines(obj, section, names.wanted, encoding=encoding)
        for i, (text, line) in enumerate(lines):
            if i == 0:
                click.echo(f"\nDisassembly of section {section.name}:")
            click.echo(text)
            bad += line is not None and line.error is not None and not line.is_zero
    return bad


def _records(
    obj: CodeObject, names: _Names, found: dict[str, bytes]
) -> tuple[list[dict[str, object]], int]:
    out: list[dict[str, object]] = []
    bad = 0
    for section in obj.sections:
        if not section.code:
            continue
        for symbol, address, code in rdna3_section.pieces(obj, section):
            if not names.wanted(symbol):
                continue
            name = symbol.name if symbol else section.name
            lines = list(rdna3_section.decode_code(code, address))
            bad += sum(line.error is not None and not line.is_zero for line in lines)
            entry: dict[str, object] = {
                "name": name,
                "demangled": demangle(name),
                "arch": obj.machine,
            }
            if name in found:
                entry["descriptor"] = kernel_descriptor.fields(found[name])
            out.append(entry | {"instructions": [rdna3_section.record(line) for line in lines]})
    return out, bad
