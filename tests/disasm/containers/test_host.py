"""Host files: built here with the C++ compiler around known fatbins, and by nvcc."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import lief
import pytest

from sassxlate.disasm.containers import load, load_bytes, parse_fatbin
from sassxlate.disasm.containers.elf import Elf
from sassxlate.errors import ContainerError

from .conftest import DATA, container, entry

NONE, SIZE, LINKED = DATA / "none.fatbin", DATA / "size.fatbin", DATA / "linked.fatbin"
Build = Callable[..., Path]


def refused(data: bytes) -> ContainerError:
    with pytest.raises(ContainerError) as caught:
        load_bytes(data, "given")
    assert caught.value.where.file == "given"
    assert caught.value.where.offset is not None
    return caught.value


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        (("-pie", "-fPIE"), "executable"),
        (("-no-pie", "-fno-pie"), "executable"),
        (("-shared", "-fPIC"), "shared object"),
        (("-pie", "-fPIE", "-s"), "executable"),
    ],
    ids=["pie", "no-pie", "shared", "stripped"],
)
def test_fatbins_of_a_host(host_program: Build, flags: tuple[str, ...], kind: str) -> None:
    path = host_program(f"host{'_'.join(flags)}", [NONE, SIZE], *flags)
    loaded = load(path)
    assert loaded.kind == kind
    assert [f.module for f in loaded.fatbins] == [0, 1]
    assert loaded.fatbins[0].entries == parse_fatbin(NONE.read_bytes()).entries
    assert loaded.fatbins[1].entries == parse_fatbin(SIZE.read_bytes()).entries
    assert {f.section for f in loaded.fatbins} == {".nv_fatbin"}
    assert [w.version for w in loaded.wrappers] == [1, 1]
    assert [w.container for w in loaded.wrappers] == [f.offset for f in loaded.fatbins]
    data = path.read_bytes()
    for fatbin in loaded.fatbins:
        assert data[fatbin.offset :][:4] == b"\x50\xed\x55\xba"
    assert len(list(loaded.cubins())) == 4


def test_wrapper_version_2(host_program: Build) -> None:
    loaded = load(host_program("v2", [LINKED], version=2))
    assert [w.version for w in loaded.wrappers] == [2]
    assert len(list(loaded.cubins())) == 1


def test_without_wrappers(host_program: Build) -> None:
    loaded = load(host_program("bare", [NONE, SIZE], wrapped=False))
    assert loaded.wrappers == ()
    assert len(loaded.fatbins) == 2


def test_without_section_headers(host_program: Build) -> None:
    data = bytearray(host_program("sections", [NONE, SIZE]).read_bytes())
    data[40:48] = bytes(8)  # e_shoff
    data[58:64] = bytes(6)  # e_shentsize, e_shnum, e_shstrndx
    loaded = load_bytes(bytes(data))
    assert [f.entries for f in loaded.fatbins] == [
        parse_fatbin(p.read_bytes()).entries for p in (NONE, SIZE)
    ]


def test_relocatable_object() -> None:
    loaded = load(DATA / "relocatable.o")
    assert loaded.kind == "object"
    assert {f.section for f in loaded.fatbins} == {"__nv_relfatbin"}
    ((_, cubin),) = loaded.cubins()
    assert cubin.relocatable


def test_unlinked_objects_follow_the_linked_code(tmp_path: Path, nvcc: Callable[..., str]) -> None:
    program = tmp_path / "program"
    source = tmp_path / "main.cu"
    source.write_text("int main() { return 0; }\n")
    sources = (source, DATA / "linked_a.cu", DATA / "linked_b.cu")
    nvcc("-rdc=true", "-arch=sm_90", *sources, "-o", program)
    loaded = load(program)
    assert {w.version for w in loaded.wrappers} == {1, 2}
    ((origin, cubin),) = loaded.cubins()
    assert not cubin.relocatable
    assert {k.demangled for k in cubin.kernels} == {"first(int*)", "second(int*)"}
    assert len(list(loaded.cubins(unlinked=True))) > 1
    assert str(origin).startswith("module ")


def test_programs_of_nvcc_as_cuobjdump_extracts_them(
    tmp_path: Path,
    nvcc: Callable[..., str],
    cuobjdump: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = tmp_path / "program"
    source = tmp_path / "main.cu"
    source.write_text((DATA / "sample.cu").read_text() + "int main() { return 0; }\n")
    targets = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in ("75", "80", "90a", "120")] + [
        "--compress-mode=size"
    ]
    nvcc(*targets, source, "-o", program)
    loaded = load(program)
    monkeypatch.chdir(tmp_path)
    cuobjdump("-xelf", "all", program)
    theirs = sorted(p.read_bytes() for p in tmp_path.glob("*.cubin"))
    ours = sorted(
        e.payload for _, e in loaded.entries() if e.kind == "elf" and parse_has_kernels(e.payload)
    )
    assert [len(x) for x in theirs if parse_has_kernels(x)] == [len(x) for x in ours]
    assert [x for x in theirs if parse_has_kernels(x)] == ours


def parse_has_kernels(payload: bytes) -> bool:
    return b".text." in payload


def test_sections_as_lief_reads_them(host_program: Build) -> None:
    path = host_program("lief", [NONE])
    theirs = lief.ELF.parse(str(path))  # pyright: ignore[reportUnknownMemberType]
    assert theirs is not None
    ours = Elf(path.read_bytes())
    assert [(s.name, s.offset, s.size, s.addr) for s in ours.sections] == [
        (s.name, s.offset, s.size, s.virtual_address) for s in theirs.sections
    ]


def test_no_device_code(host_program: Build) -> None:
    assert load(host_program("none", [], wrapped=False)).fatbins == ()


def test_broken_wrapper(host_program: Build) -> None:
    path = host_program("wrapper", [NONE], "-no-pie", "-fno-pie")
    section = Elf(path.read_bytes()).section(".nvFatBinSegment")
    assert section is not None
    for offset, field, what in ((0, 5, "record"), (4, 3, "version"), (8, 12, "points")):
        data = bytearray(path.read_bytes())
        struct.pack_into("<I", data, section.offset + offset, field)
        error = refused(bytes(data))
        assert error.code == "SX0118"
        assert what in error.message


def test_broken_container_inside_a_host(tmp_path: Path, host_program: Build) -> None:
    blob = tmp_path / "blob"
    blob.write_bytes(container(entry(b"x" * 8)) + b"neither zero nor a container")
    path = host_program("junk", [blob], wrapped=False)
    error = refused(path.read_bytes())
    assert error.code == "SX0111"


FOREIGN = {
    "empty": ("SX0102", b""),
    "text": ("SX0102", b"#!/bin/sh\necho\n"),
    "Windows": ("SX0102", b"MZ" + bytes(100)),
    "archive": ("SX0109", b"!<arch>\n" + b"x" * 100),
    "thin archive": ("SX0108", b"!<thin>\n"),
    "noise": ("SX0102", bytes(range(256))),
    "ELF magic alone": ("SX0103", b"\x7fELF"),
    "cut off": ("SX0103", b"\x7fELF\x02\x01\x01" + bytes(40)),
    "32-bit": ("SX0104", b"\x7fELF\x01\x01\x01" + bytes(45)),
    "big-endian": ("SX0105", b"\x7fELF\x02\x02\x01" + bytes(57)),
    "class 3": ("SX0103", b"\x7fELF\x03\x01\x01" + bytes(57)),
    "aarch64": ("SX0105", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0\xb7\0" + bytes(44)),
    "core file": ("SX0103", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\0\x3e\0" + bytes(44)),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_files(case: str) -> None:
    code, data = FOREIGN[case]
    assert refused(data).code == code


def test_unreadable(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(ContainerError) as caught:
            load(path)
        assert caught.value.code == "SX0101"
        assert caught.value.where.file == str(path)
    with pytest.raises(ContainerError):
        load("a\0b")
