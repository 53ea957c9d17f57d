"""Cubins of three toolkits and both ELF flavours, against their source and cuobjdump."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from sassxlate.disasm.containers import Cubin, Kernel, eiattr, parse_cubin
from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.containers.values import Param
from sassxlate.errors import ContainerError

DATA = Path(__file__).parent / "data"
LINKED = sorted(p for p in DATA.glob("*.cubin") if "relocatable" not in p.name)
FLAVOURS = {
    "cuda11_sm_75": (75, "", 7),
    "cuda12_sm_80": (80, "", 7),
    "cuda12_sm_90a": (90, "a", 7),
    "cuda13_sm_75": (75, "", 8),
    "cuda13_sm_80": (80, "", 8),
    "cuda13_sm_90": (90, "", 8),
    "cuda13_sm_120": (120, "", 8),
}


def read(name: str) -> Cubin:
    return parse_cubin((DATA / f"{name}.cubin").read_bytes())


def kernel(cubin: Cubin, part: str) -> Kernel:
    (found,) = [k for k in cubin.kernels if part in k.name]
    return found


@pytest.mark.parametrize("name", FLAVOURS)
def test_flavour(name: str) -> None:
    cubin = read(name)
    assert (cubin.arch, cubin.variant, cubin.abi) == FLAVOURS[name]
    assert not cubin.relocatable
    assert [k.demangled for k in cubin.kernels] == [
        "void local<double>(double*)",
        "jump(int*, int, Mixed)",
        "saxpy(float, float const*, float*, int)",
    ]
    assert all(k.arch == cubin.arch for k in cubin.kernels)


@pytest.mark.parametrize("name", FLAVOURS)
def test_kernels_say_what_the_source_says(name: str) -> None:
    cubin = read(name)
    base = {75: 0x160, 80: 0x160, 90: 0x210, 120: 0x380}[cubin.arch]
    reserved = 0x400 if cubin.arch >= 90 else 0
    saxpy, jump, local = (kernel(cubin, part) for part in ("saxpy", "jump", "local"))

    assert saxpy.params == (Param(0, 0, 4), Param(1, 8, 8), Param(2, 16, 8), Param(3, 24, 4))
    assert (saxpy.param_base, saxpy.param_size) == (base, 28)
    assert saxpy.constant0_size == base + 28
    assert saxpy.shared_size == reserved + 256
    assert (saxpy.barriers, saxpy.local_size, saxpy.max_threads) == (1, 0, None)
    assert any("helper" in s.name and s.type == "func" for s in saxpy.callees)
    assert not saxpy.uses_cta_z

    assert jump.params == (Param(0, 0, 8), Param(1, 8, 4), Param(2, 16, 24))
    assert jump.max_threads == (256, 1, 1)
    assert jump.externs == ("vprintf",)
    assert jump.indirect_targets
    for branch, targets in jump.indirect_targets.items():
        assert branch % 16 == 0
        assert all(t % 16 == 0 and 0 <= t < len(jump.code) for t in targets)
    assert jump.constant2
    assert jump.local_size > 0  # printf's arguments

    assert local.barriers == 4
    assert local.local_size == 96
    assert local.params == (Param(0, 0, 8),)

    for k in cubin.kernels:
        assert len(k.code) % 16 == 0
        assert 0 < k.registers < 64
        assert k.exits
        assert all(offset % 16 == 0 for offset in k.exits)
        for callee in k.callees:
            assert callee.value + callee.size <= len(k.code)


@pytest.mark.parametrize("name", FLAVOURS)
def test_module_data(name: str) -> None:
    cubin = read(name)
    objects = {g.name: g for g in cubin.globals}
    assert (objects["coefficients"].section, objects["coefficients"].size) == (".nv.constant3", 16)
    assert objects["counter"].section == ".nv.global"
    assert objects["table"].section == ".nv.global.init"
    table = objects["table"]
    init = cubin.sections[".nv.global.init"]
    assert init[table.offset :][:20] == b"".join(i.to_bytes(4, "little") for i in range(1, 6))
    assert ".nv.global" not in cubin.sections
    assert cubin.section_sizes[".nv.global"] == 4
    assert ".nv.shared.reserved.0" not in cubin.sections
    if name != "cuda11_sm_75":  # which puts addresses into the code instead
        slots = {r.symbol: r for r in cubin.relocs if r.section == ".nv.constant4"}
        assert {"counter", "table", "vprintf"} <= set(slots)
        assert all(r.type == 2 for r in slots.values())  # R_CUDA_64
    else:
        assert {r.symbol for r in kernel(cubin, "saxpy").relocs} >= {"counter", "table"}


def test_system_call_offsets() -> None:
    for name in ("cuda12_sm_80", "cuda13_sm_90"):
        jump = kernel(read(name), "jump")
        assert len(jump.syscall_offsets) == 1
        assert jump.syscall_offsets[0] % 16 == 0


def test_block_index_z() -> None:
    """CTAIDZ_USED is set where the compiler emits it (sm_89 and older)."""
    assert kernel(read("cuda13_sm_80"), "jump").uses_cta_z


def test_relocatable_object() -> None:
    cubin = read("cuda13_sm_90_relocatable")
    assert cubin.relocatable
    assert {f.demangled for f in cubin.functions} >= {"helper(float)"}
    saxpy = kernel(cubin, "saxpy")
    assert "_Z6helperf" in {r.symbol for r in saxpy.relocs}
    assert not saxpy.callees
    assert cubin.section_sizes[".nv.global"] == 4  # of CUDA's own type, not SHT_NOBITS
    assert saxpy.shared_size == 256


@pytest.mark.parametrize("path", LINKED, ids=lambda p: p.stem)
def test_resource_usage_as_cuobjdump_prints_it(path: Path, cuobjdump: Callable[..., str]) -> None:
    cubin = parse_cubin(path.read_bytes())
    printed = cuobjdump("-res-usage", path)
    found: dict[str, dict[str, int]] = {}
    for name, line in re.findall(r"Function (\S+):\n\s+(.*)", printed):
        found[name] = {key: int(n) for key, n in re.findall(r"(\w+(?:\[\d\])?):(\d+)", line)}
    assert set(found) == {k.name for k in cubin.kernels}
    for k in cubin.kernels:
        usage = found[k.name]
        assert usage["REG"] == k.registers
        assert usage["STACK"] == k.local_size
        assert usage["SHARED"] == k.shared_size
        assert usage["CONSTANT[0]"] == k.constant0_size
        assert usage.get("CONSTANT[2]", 0) == len(k.constant2)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.cubin")), ids=lambda p: p.stem)
def test_sections_and_symbols_as_pyelftools_reads_them(path: Path) -> None:
    data = path.read_bytes()
    ours = Elf(data)
    with path.open("rb") as stream:
        theirs = ELFFile(stream)
        sections = [(s.name, s["sh_type"], s["sh_size"]) for s in theirs.iter_sections()]
        assert [(s.name, s.size) for s in ours.sections] == [(n, size) for n, _, size in sections]
        table = theirs.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbols = [(s["st_value"], s["st_size"]) for s in table.iter_symbols()]
        for section, view in zip(theirs.iter_sections(), ours.sections, strict=True):
            if len(view.data):
                assert bytes(view.data) == section.data()
    mine = ours.symbols(next(s for s in ours.sections if s.name == ".symtab"))
    assert [(s.value, s.size) for s in mine] == symbols


@pytest.mark.parametrize("path", LINKED, ids=lambda p: p.stem)
def test_attributes_as_cuobjdump_prints_them(path: Path, cuobjdump: Callable[..., str]) -> None:
    cubin = parse_cubin(path.read_bytes())
    printed = cuobjdump("-elf", path)
    for k in cubin.kernels:
        text = re.search(rf"\n\.nv\.info\.{re.escape(k.name)}\n(.*?)\n\n\n", printed, re.DOTALL)
        assert text is not None
        names = re.findall(r"Attribute:\s+(\S+)", text.group(1))
        assert [a.name for a in k.attributes] == names
        exits = re.search(
            r"EIATTR_EXIT_INSTR_OFFSETS.*?Value:\s+([0-9a-fx ]+)", text.group(1), re.DOTALL
        )
        assert exits is not None
        assert tuple(int(x, 16) for x in exits.group(1).split()) == k.exits
        branches = {
            int(at, 16): tuple(int(t, 16) for t in targets.split())
            for at, targets in re.findall(
                r"Indirect Branch: (\w+)\s+Number of targets: \d+\s+Targets: ([0-9a-fx ]+)",
                text.group(1),
            )
        }
        assert k.indirect_targets == branches


def test_attribute_names_are_cuobjdumps(tmp_path: Path, cuobjdump: Callable[..., str]) -> None:
    """A .nv.info section overwritten by one empty record a number."""
    path = DATA / "cuda13_sm_80.cubin"
    section = Elf(path.read_bytes()).section(".nv.info._Z4jumpPii5Mixed")
    assert section is not None
    room = section.size // 4
    names: list[str] = []
    for start in range(0, len(eiattr.NAMES), room):
        numbers = [min(start + i, len(eiattr.NAMES) - 1) for i in range(room)]
        data = bytearray(path.read_bytes())
        body = b"".join(bytes([1, n, 0, 0]) for n in numbers)
        data[section.offset : section.offset + len(body)] = body
        changed = tmp_path / f"{start}.cubin"
        changed.write_bytes(data)
        printed = cuobjdump("-elf", changed).partition("\n.nv.info._Z4jumpPii5Mixed\n")[2]
        names += re.findall(r"Attribute:\s+(\S+)", printed)[:room]
    for number, name in enumerate(eiattr.NAMES):
        assert names[number] == (name if not name.startswith("EIATTR_0x") else "unknown")


def test_large_parameters(tmp_path: Path, nvcc: Callable[..., str]) -> None:
    """KPARAM_INFO has 14 bits for a size; beyond 4 KiB nvcc writes KPARAM_INFO_V2."""
    source = tmp_path / "large.cu"
    source.write_text(
        "struct B { char c[20000]; };\n"
        "__global__ void k(const __grid_constant__ B b, int *p, char e) { p[0] = b.c[p[1]] + e; }\n"
    )
    nvcc("-cubin", "-arch=sm_90", source, "-o", tmp_path / "large.cubin")
    (k,) = parse_cubin((tmp_path / "large.cubin").read_bytes()).kernels
    assert k.params == (Param(0, 0, 20000), Param(1, 20000, 8), Param(2, 20008, 1))


@pytest.mark.parametrize("what", ["a stack", "shared memory"])
def test_impossible_sizes(what: str) -> None:
    """Two gibibytes, which no later part has a place for, are refused."""
    data = bytearray((DATA / "cuda13_sm_80.cubin").read_bytes())
    elf = Elf(bytes(data))
    if what == "a stack":
        (info,) = (section for section in elf.sections if section.name == ".nv.info")
        frame_size = re.escape(bytes([4, 0x11, 8, 0]))  # format, attribute, size
        found = re.finditer(frame_size, bytes(info.data))
        places = [info.offset + match.end() + 4 for match in found]
    else:
        number = [section.name.startswith(".nv.shared.") for section in elf.sections].index(True)
        places = [int.from_bytes(data[40:48], "little") + number * 64 + 32]  # sh_size
    for at in places:
        data[at : at + 4] = (1 << 31).to_bytes(4, "little")
    with pytest.raises(ContainerError, match=f"SX0127.*the kernel has {what} of 2147483648 bytes"):
        parse_cubin(bytes(data))
