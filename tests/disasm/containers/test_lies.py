"""Cubins whose headers lie: each lie is named by its code and its place."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.containers.elf import Elf, Section
from sassxlate.errors import ContainerError

from .conftest import DATA

GOOD = (DATA / "cuda13_sm_90_relocatable.cubin").read_bytes()
# The offsets of the fields in a section header.
_TYPE, _OFFSET, _SIZE, _LINK, _INFO, _ENTSIZE = 4, 24, 32, 40, 44, 56


def headers(data: bytes) -> tuple[int, tuple[Section, ...]]:
    (table,) = struct.unpack_from("<Q", data, 40)
    return int(table), Elf(data).sections


def patched(name: str, field: int, value: int | Callable[[Section], int]) -> bytes:
    """The cubin with one field of one section's header changed."""
    data = bytearray(GOOD)
    table, sections = headers(GOOD)
    section = next(s for s in sections if s.name == name)
    number = value if isinstance(value, int) else value(section)
    form = "<Q" if field in (_OFFSET, _SIZE, _ENTSIZE) else "<I"
    struct.pack_into(form, data, table + 64 * section.index + field, number)
    return bytes(data)


def index(name: str) -> int:
    return next(s.index for s in headers(GOOD)[1] if s.name == name)


def many_sections() -> bytes:
    """No count in the ELF header; the first section's size says 2^40."""
    data = bytearray(GOOD)
    table, _ = headers(GOOD)
    struct.pack_into("<H", data, 60, 0)
    struct.pack_into("<Q", data, table + _SIZE, 1 << 40)
    return bytes(data)


def long_function() -> bytes:
    data = bytearray(GOOD)
    elf = Elf(GOOD)
    table = next(s for s in elf.sections if s.type == 2)
    for number, symbol in enumerate(elf.symbols(table)):
        if symbol.name == "_Z6helperf":
            struct.pack_into("<Q", data, table.offset + 24 * number + 16, 1 << 40)
    return bytes(data)


LIES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "more sections than bytes": ("SX0106", many_sections),
    "a section beyond the end": (
        "SX0106", lambda: patched(".nv.info", _SIZE, 1 << 60),
    ),
    "an offset that wraps around": (
        "SX0106", lambda: patched(".nv.info", _OFFSET, (1 << 64) - 8),
    ),
    "code over code": (
        "SX0122", lambda: patched(".text._Z6helperf", _OFFSET, lambda s: s.offset + 128),
    ),
    "a section over the ELF header": ("SX0122", lambda: patched(".nv.callgraph", _OFFSET, 8)),
    "a section over the section headers": (
        "SX0122", lambda: patched(".nv.prototype", _OFFSET, lambda s: headers(GOOD)[0]),
    ),
    "symbols that are their own strings": (
        "SX0107", lambda: patched(".symtab", _LINK, index(".symtab")),
    ),
    "strings that are code": (
        "SX0107", lambda: patched(".symtab", _LINK, index(".text._Z6helperf")),
    ),
    "strings in no section": ("SX0107", lambda: patched(".symtab", _LINK, 4000)),
    "names that are not strings": ("SX0106", lambda: patched(".shstrtab", _TYPE, 1)),
    "symbols of another size": ("SX0107", lambda: patched(".symtab", _ENTSIZE, 16)),
    "relocations of another size": (
        "SX0107", lambda: patched(".rela.text._Z6helperf", _ENTSIZE, 16),
    ),
    "relocations of no section": (
        "SX0107", lambda: patched(".rela.text._Z6helperf", _INFO, 4000),
    ),
    "a third of a relocation": (
        "SX0107", lambda: patched(".rela.text._Z6helperf", _SIZE, lambda s: s.size - 8),
    ),
    "half an instruction": (
        "SX0125", lambda: patched(".text._Z6helperf", _SIZE, lambda s: s.size - 8),
    ),
    "a function longer than its section": ("SX0125", long_function),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_lies(lie: str) -> None:
    code, make = LIES[lie]
    with pytest.raises(ContainerError) as caught:
        parse_cubin(make())
    assert caught.value.code == code, str(caught.value)
    assert caught.value.where.offset is not None


def test_the_original_is_no_lie() -> None:
    assert parse_cubin(GOOD).kernels
