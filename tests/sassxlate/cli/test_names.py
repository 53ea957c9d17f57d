"""Files whose names are not text, and texts that are not files: every command takes them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths

ROOT = Path(__file__).resolve().parents[3]
SAXPY = ROOT / "fixtures" / "programs" / "saxpy"
CUBIN = ROOT / "fixtures" / "kernels" / "sm_80" / "early_exit.cubin"
NAME = os.fsdecode(b"d\xff\xe9r")


def sassxlate(*arguments: object, **env: str) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", *map(str, arguments)],
        env={**os.environ, **env}, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder and files in it, none of whose names is UTF-8."""
    made = tmp_path / NAME
    made.mkdir()
    shutil.copy(SAXPY, made / os.fsdecode(b"p\xfe"))
    shutil.copy(CUBIN, made / os.fsdecode(b"k\xfe.cubin"))
    return made


@pytest.mark.parametrize(
    "command",
    [
        ("ls",), ("ls", "--format", "json"), ("disasm",), ("disasm", "--format", "json"),
        ("cfg", "-k", "*"),
        ("cfg", "-k", "*", "--format", "json"), ("callgraph",), ("translate", "-o", "OUT"),
        ("extract", "-o", "OUT"), ("diff", "--against", "rdna3", "--format", "json"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_commands(command: tuple[str, ...], folder: Path) -> None:
    """Done; where the path is printed, it is the path, and JSON stays JSON."""
    name, *options = (str(folder / "out") if part == "OUT" else part for part in command)
    file = folder / os.fsdecode(b"k\xfe.cubin")
    done = sassxlate(name, file, *options)
    assert done.returncode == 0, done
    if command == ("ls",):
        assert os.fsencode(file) in done.stdout
    if "json" in command:
        assert json.loads(done.stdout)["schema"].startswith(f"sassxlate.{name}")


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_errors_name_the_file(encoding: str, folder: Path) -> None:
    """Also on a terminal of another encoding."""
    done = sassxlate("ls", folder / "absent", PYTHONIOENCODING=encoding)
    assert done.returncode == 2
    assert done.stderr.startswith(b"sassxlate: SX0101: ")
    assert b"d\xff\xe9r/absent" in done.stderr


def test_run_and_cache(folder: Path) -> None:
    """The program, the cache and what --dump writes; the second run finds all in the cache."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    env = {"SASSXLATE_CACHE_DIR": str(folder / "cache"), "SASSXLATE_SERVICE_IDLE": "1"}
    program = folder / os.fsdecode(b"p\xfe")
    for options in ((), ("--dump", folder / "dump"), ("--report", folder / "r.html")):
        done = sassxlate("run", "--device", "emulator", *options, "--", program, **env)
        assert done.returncode == 0, done
        assert b"PASS" in done.stdout
        assert done.stderr == b""
    assert list((folder / "dump").glob("*.hsaco"))
    assert sassxlate("cache", "dir", **env).stdout == os.fsencode(folder / "cache") + b"\n"
    told = json.loads(sassxlate("cache", "stats", "--format", "json", **env).stdout)
    assert told["areas"]["host"]["files"] > 0


def test_text_that_is_none(tmp_path: Path) -> None:
    """`asm`: comments may hold any bytes; elsewhere they are a typed error with the line."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(b"// \xff\xfe\nNOP;\n")
    bad.write_bytes(b"NOP;\nIADD3 R0\xff, R1, R2, R3;\n")
    assert sassxlate("asm", "--arch", "sm_80", good).stdout.startswith(b"0x")
    done = sassxlate("asm", "--arch", "sm_80", bad)
    assert done.returncode in (2, 3)
    assert done.stderr.startswith(b"sassxlate: SX02")
    assert done.stderr.count(b"\n") == 1
    for device in ("/dev/zero", "/dev/null"):
        done = sassxlate("asm", "--arch", "sm_80", device)
        assert (done.returncode, b"it is a device" in done.stderr) == (2, True)


def test_a_device_has_no_end() -> None:
    """Whether it holds HIP code is not looked for in all of it."""
    for command in (("disasm",), ("cfg", "-k", "*")):
        done = sassxlate(command[0], "/dev/zero", *command[1:])
        assert done.returncode == 2
        assert b"SX0101" in done.stderr
