"""The command line on what it cannot read, and where it cannot write: one typed line each."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sassxlate.runtime_shim.ptx.tools import Found

ROOT = Path(__file__).resolve().parents[3]
SAXPY = ROOT / "fixtures" / "programs" / "saxpy"
DATA = ROOT / "tests" / "disasm" / "containers" / "data"
COMMAND = [sys.executable, "-P", "-m", "sassxlate"]
READERS: dict[str, tuple[str, ...]] = {
    "ls": (),
    "extract": ("-o", "out"),
    "disasm": (),
    "cfg": ("-k", "*"),
    "translate": ("-o", "out"),
}
Done = subprocess.CompletedProcess


def sassxlate(*arguments: object, **options: object) -> Done[str]:
    """The command in a process of its own; fails the test after ten seconds."""
    settings: dict[str, object] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "stdin": subprocess.DEVNULL,
        "text": True,
        "timeout": 20,
        "check": False,
        **options,
    }
    return subprocess.run([*COMMAND, *map(str, arguments)], **settings)  # type: ignore[call-overload,no-any-return]  # pyright: ignore


def read(command: str, file: object, **options: object) -> Done[str]:
    """One of the reading commands on a file."""
    return sassxlate(command, file, *READERS[command], **options)


def one_line(done: Done[str], code: str, status: int) -> None:
    """The end must be this status and one line with this code."""
    shown = f"{done.args}: {done.returncode}\n{done.stderr}"
    assert done.returncode == status, shown
    assert done.stderr.count("\n") == 1, shown
    assert done.stderr.startswith(f"sassxlate: {code}: "), shown


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Files that hold nothing for us, by what they are; the working directory is theirs."""
    monkeypatch.chdir(tmp_path)
    header = bytearray(SAXPY.read_bytes()[:4096])
    contents = {
        "empty": b"",
        "text": b"hello\n",
        "script": b"#!/bin/sh\necho hi\n",
        "elf32": bytes(header[:4]) + b"\x01" + bytes(header[5:]),
        "arm": bytes(header[:18]) + struct.pack("<H", 183) + bytes(header[20:]),
        "headers": bytes(header),
        "windows": b"MZ" + bytes(200),
        "archive": b"!<arch>\n" + bytes(60),
    }
    made: dict[str, Path] = {}
    for name, data in contents.items():
        made[name] = tmp_path / name
        made[name].write_bytes(data)
    made["directory"] = tmp_path / "directory"
    made["directory"].mkdir()
    made["absent"] = tmp_path / "absent"
    made["device"] = Path("/dev/zero")
    made["sparse"] = tmp_path / "sparse"
    with open(made["sparse"], "wb") as file:
        file.truncate(1 << 42)
    return made


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("empty", "SX0102"),
        ("text", "SX0102"),
        ("script", "SX0102"),
        ("elf32", "SX0104"),
        ("arm", "SX0105"),
        ("headers", "SX0106"),
        ("windows", "SX0102"),
        ("archive", "SX0109"),
        ("directory", "SX0101"),
        ("absent", "SX0101"),
        ("device", "SX0101"),
        ("sparse", "SX0101"),
    ],
)
def test_what_cannot_be_read(files: dict[str, Path], what: str, code: str) -> None:
    """Status 2, the code, the file's name; nothing is written."""
    for command in READERS if what in ("empty", "directory") else ("ls", "translate"):
        done = read(command, files[what])
        one_line(done, code, 2)
        assert str(files[what]) in done.stderr
        assert not Path("out").exists()


def test_unreadable_file(tmp_path: Path) -> None:
    """No permission: the message says so."""
    file = tmp_path / "secret"
    file.write_bytes(SAXPY.read_bytes())
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("this user may read everything")
    one_line(read("ls", file), "SX0101", 2)


@pytest.mark.parametrize("command", READERS)
def test_no_device_code(command: str) -> None:
    """A program that has none."""
    program = shutil.which("true")
    assert program
    one_line(read(command, program), "SX0110", 2)


@pytest.mark.parametrize("command", ["disasm", "cfg", "translate"])
def test_ptx_only(command: str, tmp_path: Path) -> None:
    """Without a ptxas that can be used: one line, and nothing written."""
    for made in (DATA / "ptx.fatbin", text_of_ptx(tmp_path)):
        environment = {**os.environ, "SASSXLATE_PTXAS": str(tmp_path / "none")}
        one_line(read(command, made, cwd=tmp_path, env=environment), "SX0747", 2)
        assert not (tmp_path / "out").exists()


def text_of_ptx(folder: Path, target: str = "sm_52", body: str = "ret;") -> Path:
    """A kernel as text."""
    path = folder / "kernel.ptx"
    text = f".version 8.0\n.target {target}\n.address_size 64\n"
    path.write_text(f"// a comment\n{text}.visible .entry k() {{ {body} }}\n")
    return path


@pytest.mark.parametrize(
    ("arch", "body", "code", "status"),
    [
        ("sm_80", "mvo;", "SX0742", 2),
        ("sm_75", "ret;", "SX0743", 3),
        ("sm_70", "ret;", "SX0743", 3),
    ],
)
def test_bad_ptx(tmp_path: Path, arch: str, body: str, code: str, status: int) -> None:
    """What ptxas refuses, and text for a newer architecture than the one that is asked for."""
    if next(iter(Found("ptxas", os.environ)), None) is None:
        pytest.skip("ptxas is not installed (pip install '.[test]')")
    path = text_of_ptx(tmp_path, "sm_80", body)
    one_line(sassxlate("disasm", path, "--arch", arch), code, status)


def test_what_ptxas_makes(tmp_path: Path) -> None:
    """Commands work on it, for the architecture that is asked for, and say so."""
    if next(iter(Found("ptxas", os.environ)), None) is None:
        pytest.skip("ptxas is not installed (pip install '.[test]')")
    path = text_of_ptx(tmp_path)
    commands = ("disasm", "cfg", "translate", "callgraph")
    for arch, command in zip((None, "sm_75", "sm_90", None), commands, strict=True):
        option = ("--arch", arch) if arch else ()
        done = sassxlate(command, path, *READERS.get(command, ()), *option, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "holds PTX and no SASS; this is what ptxas " in done.stderr
        assert done.stderr.endswith(f" for {arch or 'sm_80'}\n")
        assert (arch or "sm_80") in done.stdout
    done = sassxlate("ls", path)
    assert "0  ptx   sm_52  none" in done.stdout
    assert "--arch sm_80 lists what ptxas makes of it" in done.stdout
    assert "0  elf   sm_75  none" in sassxlate("ls", path, "--arch", "sm_75").stdout


@pytest.mark.parametrize("arch", [50, 70, 99])
def test_architecture_that_we_lack(arch: int, tmp_path: Path) -> None:
    """A cubin of another architecture is listed, and refused by name if code is requested."""
    data = bytearray((DATA / "cuda13_sm_80.cubin").read_bytes())
    (flags,) = struct.unpack_from("<I", data, 48)
    struct.pack_into("<I", data, 48, (flags & ~0xFF00) | arch << 8)
    file = tmp_path / "other.cubin"
    file.write_bytes(data)
    assert f"sm_{arch}" in read("ls", file).stdout
    for command in ("disasm", "cfg", "translate"):
        done = read(command, file, cwd=tmp_path)
        assert done.returncode == 3, done.stderr
        assert f"sm_{arch}" in done.stderr
        assert str(file) in done.stderr
        assert "Traceback" not in done.stderr


def test_what_is_not_there(tmp_path: Path) -> None:
    """Kernels and architectures that the file does not have, or that do not exist."""
    for command in ("disasm", "cfg", "translate"):
        options = [o for o in READERS[command] if o not in ("-k", "*")]
        done = sassxlate(command, SAXPY, *options, "-k", "no_such", cwd=tmp_path)
        one_line(done, "SX0802", 2)
        done = sassxlate(command, SAXPY, *READERS[command], "--arch", "sm_99", cwd=tmp_path)
        one_line(done, "SX0802", 2)
        done = sassxlate(command, SAXPY, *READERS[command], "--arch", "hopper", cwd=tmp_path)
        one_line(done, "SX0811", 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["extract", "translate", "cfg"])
@pytest.mark.parametrize("place", ["file", "file/below", "/proc/none"])
def test_where_nothing_can_be_written(tmp_path: Path, command: str, place: str) -> None:
    """A file where a directory must be, and a file system that takes none."""
    (tmp_path / "file").write_text("kept")
    if command == "cfg" and place == "file":
        place = "."  # a directory where a file must be
    options = ("-k", "*saxpy*") if command == "cfg" else ()
    done = sassxlate(command, SAXPY, *options, "-o", place, cwd=tmp_path)
    one_line(done, "SX0813", 2)
    assert (tmp_path / "file").read_text() == "kept"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("ls", SAXPY),
        ("ls", "--format", "json", SAXPY),
        ("disasm", SAXPY),
        ("extract", SAXPY, "-o", "-", "--kind", "elf", "--arch", "sm_80", "-k", "*saxpy*"),
        ("explain",),
        ("--help",),
    ],
)
def test_output_that_is_full_or_closed(arguments: tuple[object, ...]) -> None:
    """The disk of standard output is full, or standard output is closed."""
    with open("/dev/full", "w") as full:
        one_line(sassxlate(*arguments, stdout=full), "SX0819", 2)
    done = sassxlate(*arguments, stdout=None, preexec_fn=lambda: os.close(1))
    one_line(done, "SX0819", 2)


def test_closed_input_and_errors(tmp_path: Path) -> None:
    """Closed standard input is no input; with standard error closed the status still tells."""
    one_line(sassxlate("ls", "-", stdin=None, preexec_fn=lambda: os.close(0)), "SX0101", 2)
    (tmp_path / "empty").write_bytes(b"")
    done = sassxlate("ls", tmp_path / "empty", stderr=None, preexec_fn=lambda: os.close(2))
    assert done.returncode == 2


def test_reader_that_goes_away() -> None:
    """`| head -1`: no complaint."""
    text = " ".join([*COMMAND, "disasm", "--encoding", "--control", str(SAXPY)])
    shell = ["bash", "-c", f"{text} | head -1; exit ${{PIPESTATUS[0]}}"]
    done = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode in (0, 141)
    assert done.stdout.count("\n") == 1


def test_files_of_kernels_with_odd_names() -> None:
    """No two kernels share a file, whatever their names are made into; none is hidden."""
    from sassxlate.cli.translate import stem_of

    taken: set[str] = set()
    names = ["k", "k", "a<", "a>", "a&", "a&", "../../x", "..", "", "_" * 4000, "." * 4000]
    stems = [stem_of(name, 80, (0, 1), taken) for name in names]
    assert stems[:3] == ["k.sm_80", "k.sm_80.0.1", "a_.sm_80"]
    assert len(taken) == len(set(stems)) == len(names)
    assert all(len(s) < 200 and "/" not in s for s in stems)
    assert all(not s.startswith(".") for s, n in zip(stems, names, strict=True) if n)


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C: one line, and a status that does not stand for a verdict."""
    hold = tmp_path / "never"
    os.mkfifo(hold)
    process = subprocess.Popen(
        [*COMMAND, "ls", str(hold)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with open(hold, "wb"):  # it has begun to read
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (130, "sassxlate: interrupted\n")


def test_deleted_working_directory(tmp_path: Path) -> None:
    """Reading by absolute names works; relative ones are errors with a name."""
    gone = tmp_path / "gone"
    gone.mkdir()

    def leave() -> None:
        os.chdir(gone)
        gone.rmdir()

    assert read("ls", SAXPY, preexec_fn=leave).returncode == 0
    gone.mkdir()
    one_line(read("translate", SAXPY, preexec_fn=leave), "SX0813", 2)


def test_limits(tmp_path: Path) -> None:
    """Little memory, and files that may not grow: whole files or none."""
    big = tmp_path / "big"
    with open(big, "wb") as file:
        file.truncate(4 << 30)

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    one_line(read("ls", big, preexec_fn=little_memory), "SX0101", 2)

    def short_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = sassxlate("translate", SAXPY, "-o", tmp_path / "out", preexec_fn=short_files)
    one_line(done, "SX0813", 2)
    assert not list((tmp_path / "out").iterdir())


def test_internal_error_is_one_line(tmp_path: Path) -> None:
    """A fault of ours has a code and a place, and its traceback on request."""
    text = (
        "import sys, sassxlate.cli as c\n"
        "from sassxlate.cli import ls\n"
        "def broken(*a): raise KeyError('no such\\nregister')\n"
        "ls.read_input = broken\n"
        "c.main(['ls', 'x'])\n"
    )
    program = tmp_path / "broken.py"
    program.write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, check=False
    )
    one_line(done, "SX0821: broken.py:3", 3)
    done = subprocess.run(
        [sys.executable, program],
        env={**environment, "SASSXLATE_TRACEBACK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" in done.stderr
