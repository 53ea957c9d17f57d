"""Files that hold PTX and no machine code, with what ptxas makes of it."""

from __future__ import annotations

import os
from dataclasses import replace

from sassxlate.disasm.containers import Fatbin, FatbinEntry, LoadedFile
from sassxlate.disasm.containers.unpack import Packed
from sassxlate.disasm.inputs import arch_name, has_ptx_alone, parse_arch, require_machine_code
from sassxlate.errors import ContainerError, SassxlateError
from sassxlate.lowering.abi.kernarg import LAYOUTS
from sassxlate.runtime_shim.ptx.assemble import Assembled, assemble
from sassxlate.runtime_shim.ptx.options import JitOptions
from sassxlate.runtime_shim.ptx.source import choose_ptx, read_source
from sassxlate.runtime_shim.ptx.workshop import Workshop

_USUAL = 80  # the capability of the emulated device, if a program does not ask for a newer one


def with_machine_code(loaded: LoadedFile, arch: str | None) -> tuple[LoadedFile, str]:
    """The file itself if it has machine code; otherwise with a cubin for ``arch`` in place of each
    module's PTX, and a line that says so.

    Without ``arch``: for sm_80, or the newest of the PTX if that is newer.

    Raises:
        SassxlateError: SX0110, SX0818, no code at all; SX0741 to SX0747, of ptxas.
    """
    if not has_ptx_alone(loaded):
        require_machine_code(loaded)
        return loaded, ""
    newest = max(e.arch for _, e in loaded.entries() if e.kind == "ptx")
    number, letter = parse_arch(arch) if arch else (max(newest, _USUAL), "")
    options = JitOptions(target=(number, letter))
    shop = Workshop(None, dict(os.environ), frozenset(LAYOUTS))
    fatbins: list[Fatbin] = []
    made: Assembled | None = None
    for fatbin in loaded.fatbins:
        entry = choose_ptx(fatbin, number)
        if entry is None:
            continue
        try:
            made = assemble(shop, read_source(entry.payload), number, options)
        except ContainerError as error:
            raise error.at(file=loaded.path) from None
        except SassxlateError as error:
            raise error.at(file=loaded.path) from error
        fatbins.append(replace(fatbin, entries=(_cubin(entry, made, letter),)))
    assert made is not None
    text = (
        f"{loaded.path} holds PTX and no SASS; this is what ptxas {made.tool.version} makes of it"
        f" for {arch_name(made.arch, letter)}"
    )
    return replace(loaded, fatbins=tuple(fatbins)), text


def _cubin(entry: FatbinEntry, made: Assembled, letter: str) -> FatbinEntry:
    packed = Packed(memoryview(made.cubin), len(made.cubin), at=entry.offset)
    return replace(
        entry,
        kind="elf",
        arch=made.arch,
        variant=letter,
        flags=0,
        packed=packed,
        stored=len(made.cubin),
    )


__all__ = ["with_machine_code"]
