"""Records of .nv.info, relocation types and call graphs, against cuobjdump and the sources."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.disasm.containers import eiattr, parse_cubin
from sassxlate.disasm.containers.attributes import read, records
from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.containers.relocations import NAMES, relocation_name, relocations
from sassxlate.disasm.containers.values import Attribute
from sassxlate.disasm.listing.call_graph import CallGraph, call_graph
from sassxlate.disasm.listing.image import Image
from sassxlate.errors import ContainerError

from .conftest import DATA

KERNELS = DATA.parents[3] / "fixtures" / "kernels"
CUBINS = sorted(DATA.glob("*.cubin"))
RELOCATABLE = DATA / "cuda13_sm_90_relocatable.cubin"


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("path", CUBINS, ids=lambda p: p.stem)
def test_every_record_is_read(path: Path) -> None:
    found, errors = records(Elf(path.read_bytes()))
    assert errors == ()
    unread = {r.attribute.name for r in found if not r.known}
    assert unread <= {"EICOMPAT_ATTR_CAN_FASTPATH_FINALIZE", "EIATTR_ANNOTATIONS"}
    cubin = parse_cubin(path.read_bytes())
    counts = {
        r.value["function"]: r.value["registers"]
        for r in found
        if r.attribute.name == "EIATTR_REGCOUNT" and isinstance(r.value, dict)
    }
    assert {k.name: k.registers for k in cubin.kernels}.items() <= counts.items()


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


VALUES: dict[str, tuple[bytes, Any]] = {
    "MIN_STACK_SIZE": (words(3, 96), {"function": "s3", "bytes": 96}),
    "MAX_STACK_SIZE": (words(3, 0xFFFFFFFF), {"function": "s3", "bytes": "unknown"}),
    "EXTERNS": (words(1, 2), ["s1", "s2"]),
    "REQNTID": (words(8, 4, 2), {"x": 8, "y": 4, "z": 2}),
    "CTA_PER_CLUSTER": (words(2, 1, 1), {"x": 2, "y": 1, "z": 1}),
    "KPARAM_INFO": (
        words(0, 0x00180003, 0x0011F004),
        {"index": 0, "ordinal": 3, "offset": 24, "size": 4, "log_alignment": 4, "space": 0,
         "cbank": 31},
    ),
    "KPARAM_INFO_V2": (
        struct.pack("<IHHHH", 0, 1, 8, 5000, 3),
        {"index": 0, "ordinal": 1, "offset": 8, "size": 5000, "log_alignment": 3, "space": 0},
    ),
    "PARAM_CBANK": (words(1, 0x001C0210), {"section": "s1", "offset": 0x210, "size": 28}),
    "INDIRECT_BRANCH_TARGETS": (
        words(0x90, 0, 2, 0xE0, 0x120),
        [{"offset": 0x90, "targets": [0xE0, 0x120]}],
    ),
    "MBARRIER_INSTR_OFFSETS": (
        words(0x80, 4, 16, 1),
        [{"offset": 0x80, "register": 4, "displacement": 16, "kind": 1}],
    ),
    "COROUTINE_RESUME_ID_OFFSETS": (words(1, 0x40), [{"id": 1, "offset": 0x40}]),
    "SHARED_SCRATCH": (words(64, 128), {"offset": 64, "bytes": 128}),
    "STATISTICS": (words(9, 2), {"instructions": 9, "loops": 2}),
    "CUDA_API_VERSION": (words(130), "13.0"),
    "MERCURY_ISA_VERSION": (b"\1\1", "1.1"),
    "NUM_BARRIERS": (b"\4", 4),
    "CTAIDZ_USED": (b"", True),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    data, value = VALUES[name]
    record = Attribute(eiattr.IDS[f"EIATTR_{name}"], f"EIATTR_{name}", data)
    assert read(record, "s{}".format) == (value, True)


@pytest.mark.parametrize("name", sorted(set(VALUES) - {"CTAIDZ_USED", "NUM_BARRIERS"}))
def test_contradictions(name: str) -> None:
    """Three bytes are no record of any layout but a number's."""
    record = Attribute(eiattr.IDS[f"EIATTR_{name}"], f"EIATTR_{name}", b"\1\2\3")
    if name in ("CUDA_API_VERSION", "MERCURY_ISA_VERSION"):
        record = Attribute(record.id, record.name, bytes(5))
    with pytest.raises(ContainerError) as caught:
        read(record, "s{}".format)
    assert caught.value.code == "SX0124"


def test_unknown_records_keep_their_bytes() -> None:
    record = Attribute(0xEE, eiattr.attribute_name(0xEE), b"\1\2")
    assert record.name == "EIATTR_0xee"
    assert read(record, str) == ("0102", False)


def test_relocation_names_as_cuobjdump_prints_them(
    tmp_path: Path, cuobjdump: Callable[..., str]
) -> None:
    data = bytearray(RELOCATABLE.read_bytes())
    table = Elf(bytes(data)).section(".rela.debug_frame")
    assert table is not None
    rows = table.size // 24
    found: dict[int, str] = {}
    path = tmp_path / "types.cubin"
    for first in range(1, 131, rows):
        for row in range(rows):
            place = table.offset + 24 * row
            struct.pack_into("<QII", data, place, 8 * row, min(first + row, 255), 4)
        path.write_bytes(data)
        text = cuobjdump("-elf", path).split(".section .rela.debug_frame")[1]
        for at, name in re.findall(r"^(0x[0-9a-f]+)\s+\S+\s+(R_CUDA_\w+|UNKNOWN)", text, re.M):
            if int(at, 16) // 8 < rows:
                found[first + int(at, 16) // 8] = name
    known = {n: name for n, name in found.items() if name != "UNKNOWN"}
    assert known == dict(list(enumerate(NAMES))[1:])
    assert relocation_name(0x90) == "R_CUDA_0x90"


@pytest.mark.parametrize("path", CUBINS, ids=lambda p: p.stem)
def test_relocations(path: Path) -> None:
    data = path.read_bytes()
    elf = Elf(data)
    found = list(relocations(elf))
    assert len(found) == sum(s.size // s.entsize for s in elf.sections if s.type in (4, 9))
    assert not any(re.search("0x", r.type) for r in found)
    cubin = parse_cubin(data)
    known = {(r.section, r.offset, r.symbol) for k in cubin.kernels for r in k.relocs}
    assert known <= {(r.section, r.offset, r.symbol) for r in found}


def test_listed_on_demand() -> None:
    text = run("ls", "--attributes", "--relocations", RELOCATABLE)
    assert re.search(r"\.nv\.info +EIATTR_REGCOUNT +SVAL +function=_Z6helperf registers=0x25", text)
    assert re.search(r"\.text\._Z6helperf +0x0100 +R_CUDA_ABS32_HI_32 +_Z6helperf \+ 0x130", text)
    assert "EICOMPAT_ATTR_ISA_CLASS" in text
    (entry,) = json.loads(run("ls", "--attributes", "--format", "json", RELOCATABLE))["files"][0][
        "entries"
    ]
    assert {a["format"] for a in entry["attributes"]} == {"SVAL", "HVAL", "BVAL"}
    assert all(a["decoded"] or isinstance(a["value"], str) for a in entry["attributes"])


def graph(path: Path) -> CallGraph:
    return call_graph(Image(path.read_bytes()))


def calls(found: CallGraph, kind: str) -> set[tuple[str, str]]:
    return {(e.caller, e.callee) for e in found.edges if e.kind == kind}


def test_calls_of_a_relocatable_cubin() -> None:
    found = graph(RELOCATABLE)
    relocated = calls(found, "relocated")
    assert ("_Z5saxpyfPKfPfi", "_Z6helperf") in relocated
    assert ("_Z4jumpPii5Mixed", "vprintf") in relocated
    kinds = {n.name: n.kind for n in found.nodes}
    assert (kinds["_Z5saxpyfPKfPfi"], kinds["_Z6helperf"]) == ("kernel", "function")
    assert kinds["vprintf"] == "external"
    # The compiler lists the same calls.
    assert calls(found, "listed") == set()


@pytest.mark.parametrize("arch", ["80", "90", "120"])
def test_recursion(arch: str) -> None:
    found = graph(KERNELS / f"sm_{arch}" / "mutual_recursion.cubin")
    recursive = {n.name.rpartition("$")[2] for n in found.nodes if n.recursive}
    assert recursive == {"_Z3oddji", "_Z4evenji"}
    (kernel,) = (n for n in found.nodes if n.kind == "kernel")
    assert kernel.frame is not None
    assert not kernel.recursive


@pytest.mark.parametrize("arch", ["80", "90", "120"])
def test_pointers(arch: str) -> None:
    found = graph(KERNELS / f"sm_{arch}" / "function_pointers.cubin")
    (kernel,) = (n for n in found.nodes if n.kind == "kernel")
    assert kernel.calls_pointers
    reached = {callee.rpartition("$")[2] for _, callee in calls(found, "indirect")}
    assert reached >= {"_Z4loopjj", "_Z6dividejj", "_Z8multiplyjj", "_ZNK6Square4areaEj"}


def test_call_graph_that_lies() -> None:
    data = bytearray(RELOCATABLE.read_bytes())
    section = Elf(bytes(data)).section(".nv.callgraph")
    assert section is not None
    struct.pack_into("<II", data, section.offset + 8, 4000, 1)
    with pytest.raises(ContainerError) as caught:
        call_graph(Image(bytes(data)))
    assert caught.value.code == "SX0119"
    assert caught.value.where.offset is not None


def test_part_of_a_call_graph() -> None:
    found = graph(RELOCATABLE)
    part = found.called_from(["_Z5saxpyfPKfPfi"])
    names = {node.name for node in part.nodes}
    assert {"_Z5saxpyfPKfPfi", "_Z6helperf"} <= names < {node.name for node in found.nodes}
    assert set(part.edges) == {edge for edge in found.edges if edge.caller in names}
    assert found.called_from([n.name for n in found.nodes]) == found
    text = run("callgraph", "-k", "saxpy", RELOCATABLE)
    assert "helper(float): function" in text
    assert "jump(" not in text


def test_call_graph_of_other_symbols() -> None:
    """A caller that is a symbol, but no function: left out, no traceback."""
    data = bytearray(RELOCATABLE.read_bytes())
    section = Elf(bytes(data)).section(".nv.callgraph")
    assert section is not None
    image = Image(bytes(data))
    other = next(i for i, s in enumerate(image.symbols) if i and s.info & 15 != 2)
    function = next(i for i, s in enumerate(image.symbols) if s.info & 15 == 2)
    struct.pack_into("<ii", data, section.offset, 0, -1)
    struct.pack_into("<ii", data, section.offset + 8, other, function)
    found = call_graph(Image(bytes(data)))
    assert image.name(other) not in {e.caller for e in found.edges}


def test_command() -> None:
    path = KERNELS / "sm_80" / "mutual_recursion.cubin"
    text = run("callgraph", path)
    assert "mutual_recursion: kernel, registers" in text
    assert re.search(r"^\$mutual_recursion\$_Z3oddji: function, frame \d+, recursive$", text, re.M)
    assert re.search(r"^    direct    \$mutual_recursion\$_Z4evenji /\*[0-9a-f]{4}\*/$", text, re.M)
    dot = run("callgraph", "--format", "dot", path)
    assert dot.startswith("digraph calls {")
    assert '"mutual_recursion" -> "$mutual_recursion$_Z4evenji";' in dot
    answer = json.loads(run("callgraph", "--format", "json", path))
    assert answer["schema"] == "sassxlate.callgraph/1"
    assert {n["recursive"] for n in answer["cubins"][0]["nodes"]} == {True, False}
