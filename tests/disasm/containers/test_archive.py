"""Static archives: GNU's and BSD's, thin ones, and ones with wrong headers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate import toolchain
from sassxlate.cli import cli
from sassxlate.disasm.containers import load, load_bytes
from sassxlate.disasm.containers.archive import members
from sassxlate.errors import ContainerError

from .conftest import DATA

OBJECT = (DATA / "relocatable.o").read_bytes()
LONG = "a_name_of_more_than_sixteen_letters.o"


def member(name: bytes, body: bytes, size: bytes | None = None, end: bytes = b"`\n") -> bytes:
    """One member with every field of its header as given."""
    length = str(len(body)).encode() if size is None else size
    header = name.ljust(16) + b"0".ljust(12) + b"0".ljust(6) * 2 + b"644".ljust(8)
    return header + length.ljust(10) + end + body + b"\n" * (len(body) % 2)


def archive(*parts: bytes) -> bytes:
    return b"!<arch>\n" + b"".join(parts)


GNU = archive(
    member(b"/", (2).to_bytes(4, "big") + 2 * (188).to_bytes(4, "big") + b"one\0two\0"),
    member(b"//", f"{LONG}/\n".encode()),
    member(b"/0", OBJECT),
    member(b"note.txt/", b"not an object\n"),
)
BSD = archive(
    member(b"#1/40", LONG.encode().ljust(40, b"\0") + OBJECT),
    member(b"short.o", OBJECT),
)


def refused(data: bytes) -> ContainerError:
    with pytest.raises(ContainerError) as caught:
        load_bytes(data, "lib.a")
    assert caught.value.where.file == "lib.a"
    assert caught.value.where.offset is not None
    return caught.value


def test_gnu() -> None:
    found = members(GNU)
    assert [m.name for m in found] == [LONG, "note.txt"]
    assert all(GNU[m.offset :][: len(m.data)] == m.data for m in found)
    loaded = load_bytes(GNU)
    assert loaded.kind == "archive"
    ((origin, cubin),) = loaded.cubins()
    assert origin.member == LONG
    assert str(origin).endswith(f" of {LONG}")
    assert cubin.relocatable
    (fatbin,) = loaded.fatbins
    assert GNU[fatbin.offset :][:4] == b"\x50\xed\x55\xba"


def test_bsd() -> None:
    assert [m.name for m in members(BSD)] == [LONG, "short.o"]
    loaded = load_bytes(BSD)
    assert [f.member for f in loaded.fatbins] == [LONG, "short.o"]
    assert [f.module for f in loaded.fatbins] == [0, 1]
    assert len(list(loaded.cubins())) == 2


@pytest.mark.parametrize("flavour", ["gnu", "bsd", "darwin", "gnu64"])
def test_archives_of_llvm(flavour: str, tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    shutil.copy(DATA / "relocatable.o", tmp_path / LONG)
    shutil.copy(DATA / "relocatable.o", tmp_path / "b.o")
    zig = [sys.executable, "-m", "ziglang", "ar"]
    form = "gnu" if flavour == "gnu64" else flavour
    target = tmp_path / "lib.a"
    subprocess.run(
        [*zig, f"--format={form}", "rcs", str(target), str(tmp_path / LONG), str(tmp_path / "b.o")],
        check=True,
    )
    loaded = load(target)
    assert [f.member for f in loaded.fatbins] == [LONG, "b.o"]


def test_thin_archive(tmp_path: Path) -> None:
    error = refused(b"!<thin>\n")
    assert error.code == "SX0108"


LIES = {
    "cut off in a header": GNU[:30],
    "cut off in a member": GNU[:-8],
    "no member": archive(b"x" * 60),
    "a size that is not a number": archive(member(b"a/", b"", b"x")),
    "a negative size": archive(member(b"a/", b"", b"-1")),
    "a size beyond the end": archive(member(b"a/", b"", b"9999999999")),
    "a name outside the table": archive(member(b"//", b"a.o/\n"), member(b"/9", b"")),
    "a name without a table": archive(member(b"/0", b"")),
    "a name without an end": archive(member(b"//", b"a.o/"), member(b"/0", b"")),
    "a name longer than the member": archive(member(b"#1/9", b"abc")),
    "a symbol table cut off": archive(member(b"/", (1 << 31).to_bytes(4, "big"))),
    "a symbol in no member": archive(member(b"/", b"\0\0\0\1\0\0\0\x09x\0")),
    "an empty symbol table": archive(member(b"/", b"")),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies(lie: str) -> None:
    assert refused(LIES[lie]).code == "SX0109"


def test_a_broken_member_is_named() -> None:
    data = archive(member(b"good.o/", OBJECT), member(b"bad.o/", OBJECT[:200]))
    error = refused(data)
    assert error.code == "SX0106"
    assert "in bad.o" in error.message


def test_commands(tmp_path: Path) -> None:
    path = tmp_path / "lib.a"
    path.write_bytes(BSD)

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(cli, [str(a) for a in arguments])
        assert result.exit_code == 0, result.output
        return result.output

    listing = run("ls", path)
    assert listing.startswith(f"{path}: archive, 2 modules\n")
    assert f"relocatable, not linked, in {LONG}" in listing
    text = run("disasm", path)
    assert f"// {path}, module 0 entry 0 of {LONG}, sm_90\n" in text
    assert "CALL.ABS.NOINC `(_Z5twicei) ;" in text
    run("extract", path, "-o", tmp_path / "out")
    assert (tmp_path / "out" / "lib.a.1.0.sm_90.cubin").is_file()


def test_the_device_runtime(tmp_path: Path) -> None:
    """libcudadevrt.a of the installed toolkit: relocatable code for every architecture."""
    nvcc = toolchain.TOOLS["nvcc"]()
    library = None
    if nvcc is not None:
        root = Path(nvcc.command[0]).resolve().parent.parent
        patterns = ("lib*/libcudadevrt.a", "cuda*/lib*/libcudadevrt.a")
        library = next((p for pattern in patterns for p in root.glob(pattern)), None)
    if library is None:
        pytest.skip("libcudadevrt.a is not installed")
    loaded = load(library)
    cubins = [cubin for _, cubin in loaded.cubins()]
    assert cubins
    assert all(c.relocatable and c.functions for c in cubins)
