"""Small files that unpack to much: refused with a code, in little memory and time."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from sassxlate.disasm.containers import load, load_bytes, parse_fatbin
from sassxlate.disasm.containers.unpack import LEAST, Budget
from sassxlate.errors import ContainerError

from .conftest import DATA, container, entry

CUBIN = (DATA / "cuda13_sm_80.cubin").read_bytes()
MIB = 1 << 20
# The command in this process, then the most memory it had.  wait4's ru_maxrss would do, but for
# what it takes over from the process that started it: one that runs tests has more than a gigabyte.
_MEASURED = """
import atexit, sys
def told():
    with open("/proc/self/status") as status:
        sys.stderr.writelines(line for line in status if line.startswith("VmHWM"))
atexit.register(told)
from sassxlate.cli import main
sys.argv[0] = "sassxlate"
main()
"""


def bomb(entries: int, each: int = 60 * MIB) -> bytes:
    """A fatbin of cubins followed by zeros: each is 60 MiB, and valid."""
    plain = CUBIN + bytes(each - len(CUBIN))
    packed = zstandard.ZstdCompressor().compress(plain)
    one = entry(packed, flags=0x8011, compressed=len(packed), plain=len(plain))
    return container(*[one] * entries)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six gigabytes in some two hundred kilobytes."""
    path = tmp_path_factory.mktemp("bomb") / "bomb.fatbin"
    path.write_bytes(bomb(100))
    assert path.stat().st_size < 1 << 20
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("ls",),
        ("ls", "--format", "json"),
        ("extract", "-k", "*", "-o", "OUT"),
        ("extract", "-o", "OUT"),
        ("disasm",),
        ("cfg", "-k", "*"),
        ("translate", "-o", "OUT"),
        ("callgraph",),
    ],
    ids=" ".join,
)
def test_commands(command: tuple[str, ...], file: Path, tmp_path: Path) -> None:
    """SX0115, and never a gigabyte."""
    name, *options = (str(tmp_path) if part == "OUT" else part for part in command)
    with open(tmp_path / "said", "w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _MEASURED, name, str(file), *options],
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    assert process.returncode == 2, text
    assert "SX0115: " in text
    assert str(file) in text
    most = int(text.rpartition("VmHWM:")[2].split()[0])  # KiB
    assert most < 1 << 20, f"{most >> 10} MiB"
    assert used.ru_utime + used.ru_stime < 10


def test_entries_are_unpacked_when_needed(file: Path) -> None:
    """Reading the file unpacks nothing; an entry that is read twice counts once."""
    entries = [e for _, e in load(file).entries()]
    assert {e.size for e in entries} == {60 * MIB}
    for e in (*entries[:4], *entries[:4]):
        assert len(e.payload) == 60 * MIB
    with pytest.raises(ContainerError, match="SX0115") as caught:
        _ = entries[4].payload
    assert caught.value.where.offset == entries[4].offset
    assert len(entries[0].payload) == 60 * MIB


def test_one_budget_for_an_archive() -> None:
    """Its members are one file; errors have the entry's place in it."""
    member = bomb(3)
    head = b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (b"a.o/", 0, 0, 0, b"644", len(member))
    part = head + member + b"\n" * (len(member) % 2)
    loaded = load_bytes(b"!<arch>\n" + part * 2, "lib.a")
    entries = [e for _, e in loaded.entries()]
    assert len(entries) == 6
    for e in entries[:4]:
        assert len(e.payload) == 60 * MIB
    with pytest.raises(ContainerError, match="SX0115") as caught:
        _ = entries[4].payload
    place = loaded.fatbins[1].offset + entries[4].offset
    assert caught.value.where.offset == place
    assert place > 8 + len(part)


def test_budget_grows_with_the_file() -> None:
    """A library of hundreds of megabytes is read."""
    assert Budget.of(1000).limit == LEAST
    assert Budget.of(1 << 30).limit == 16 << 30
    damaged = parse_fatbin(container(entry(b"x" * 64, flags=0x8011, compressed=64, plain=100)))
    assert damaged.entries[0].size == 100  # read, and refused where it is needed
    with pytest.raises(ContainerError, match="SX0114"):
        _ = damaged.entries[0].payload


def test_fatbins_that_share_bytes() -> None:
    """Wrappers into one another: read for each, their entries would be millions."""
    good = (DATA.parents[3] / "fixtures" / "programs" / "saxpy").read_bytes()
    program = bytearray(good)
    first = load_bytes(good).fatbins[0]
    # A whole container where the first entry's payload is.
    inner = first.offset + first.entries[0].offset + 64
    program[inner : inner + 16] = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 0)
    wrapper = load_bytes(good).wrappers[0]
    address = struct.pack("<Q", wrapper.data)
    there = [i for i in range(0, len(good) - 8, 8) if good[i : i + 8] == address]
    assert there
    for at in there:
        program[at : at + 8] = struct.pack("<Q", wrapper.data + inner - wrapper.container)
    with pytest.raises(ContainerError, match="SX0130"):
        load_bytes(bytes(program))


def _long_names(count: int) -> bytes:
    """A cubin whose symbols all have one name of 60,000 characters."""
    good = bytearray(CUBIN)
    (shoff,) = struct.unpack_from("<Q", good, 40)
    (number,) = struct.unpack_from("<H", good, 60)
    rows = [list(struct.unpack_from("<IIQQQQIIQQ", good, shoff + 64 * i)) for i in range(number)]
    table = next(row for row in rows if row[1] == 2)
    strings = rows[table[6]]
    strings[4], strings[5] = len(good), 60_002
    good += b"\0" + b"a" * 60_000 + b"\0"
    good += bytes(-len(good) % 8)
    table[4], table[5] = len(good), 24 * count
    good += struct.pack("<IBBHQQ", 1, 0, 0, 0, 0, 0) * count
    struct.pack_into("<Q", good, 40, len(good))
    return bytes(good) + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)


def test_names_that_share_bytes() -> None:
    """Ten thousand symbols of one long name: read for each, they would be 600 MB."""
    with pytest.raises(ContainerError, match=r"SX0107.*names share bytes"):
        load_bytes(_long_names(10_000))
