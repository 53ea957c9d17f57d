"""What is found of NVIDIA's tools, and how they are run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sassxlate.disasm.containers.ptx import is_ptx
from sassxlate.errors import ServiceError, ShimError
from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.ptx import tools
from sassxlate.runtime_shim.ptx.assemble import architecture, assemble
from sassxlate.runtime_shim.ptx.errors import PtxError
from sassxlate.runtime_shim.ptx.options import JitOptions, parse_options
from sassxlate.runtime_shim.ptx.process import OUTPUT_MAX, run
from sassxlate.runtime_shim.ptx.source import read_source
from sassxlate.runtime_shim.ptx.tools import Found
from sassxlate.runtime_shim.ptx.workshop import Workshop

SUPPORTED = frozenset({75, 80, 86, 90, 100})
TEXT = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k() { ret; }\n"


def fake(path: Path, release: str = "13.0", body: str = "exit 1", mode: int = 0o755) -> Path:
    """A ptxas of a release."""
    path.parent.mkdir(parents=True, exist_ok=True)
    says = f"Cuda compilation tools, release {release}, V{release}.1"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo "{says}"; exit 0; }}\n{body}\n')
    path.chmod(mode)
    return path


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No package and no standard place has a tool."""

    def nothing() -> Iterator[Path]:
        yield from ()

    monkeypatch.setattr(tools, "_own_sites", nothing)
    monkeypatch.setattr(tools, "STANDARD", "/nonexistent")


@pytest.mark.usefixtures("bare")
def test_order(tmp_path: Path) -> None:
    """PATH, CUDA_HOME, CUDA_PATH, then the wheels of the environment on PATH: cu13's and cu12's
    layout, Triton's."""
    site = tmp_path / "venv/lib/python3.11/site-packages"
    expected = [
        ("PATH", fake(tmp_path / "venv/bin/ptxas", "12.1")),
        ("CUDA_HOME", fake(tmp_path / "home/bin/ptxas", "12.2")),
        ("CUDA_PATH", fake(tmp_path / "path/bin/ptxas", "12.3")),
        ("wheel nvidia-cuda-nvcc", fake(site / "nvidia/cu13/bin/ptxas", "13.4")),
        ("wheel nvidia-cuda-nvcc-cu12", fake(site / "nvidia/cuda_nvcc/bin/ptxas", "12.5")),
        ("wheel triton", fake(site / "triton/backends/nvidia/bin/ptxas", "12.6")),
    ]
    environment = {
        "PATH": f"relative:{tmp_path / 'venv/bin'}:{tmp_path / 'empty'}",
        "CUDA_HOME": str(tmp_path / "home"),
        "CUDA_PATH": str(tmp_path / "path"),
    }
    found = Found("ptxas", environment)
    assert [(t.origin, Path(t.path)) for t in found] == expected
    assert [t.release[1] for t in found] == [1, 2, 3, 4, 5, 6]
    assert found.need().release == (12, 1)
    # Of a program in another environment, that environment's wheels come before.
    other = fake(tmp_path / "app/lib/python3.12/site-packages/nvidia/cu13/bin/ptxas", "13.7")
    application = {"PATH": str(tmp_path / "venv/bin"), "APPLICATION": str(tmp_path / "app/bin")}
    assert [t.path for t in Found("ptxas", application)][1] == str(other)
    named = Found("ptxas", {**environment, "SASSXLATE_PTXAS": str(expected[2][1])})
    assert [t.origin for t in named] == ["SASSXLATE_PTXAS"]


@pytest.mark.usefixtures("bare")
def test_none() -> None:
    """The error names the package."""
    for name, code in (("ptxas", "SX0741"), ("nvlink", "SX0749")):
        with pytest.raises(ShimError, match=f"{code}: .*pip install nvidia-cuda-nvcc") as caught:
            Found("ptxas" if name == "ptxas" else "nvlink", {}).need()
        assert caught.value.code == code


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nonexistent/x")


CHANGES: tuple[tuple[Callable[[Path], object], str], ...] = (
    (lambda p: p.chmod(0o644), "not executable"),
    (lambda p: p.chmod(0o777), "any user can write to it"),
    (lambda p: p.parent.chmod(0o777), "any user can write to /"),
    (lambda p: p.parent.parent.chmod(0o757), "any user can write to /"),
    (lambda p: p.write_text("#!/bin/sh\necho hello\n"), "names no release"),
    (lambda p: p.write_text("#!/bin/sh\nexit 3\n"), "ended with status 3"),
    (lambda p: p.write_bytes(b"\x7fELFxx"), "exec format error"),
    (_folder, "not a regular file"),
    (_dangling, "no such file"),
)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(("change", "why"), CHANGES)
def test_refused(tmp_path: Path, change: Callable[[Path], object], why: str) -> None:
    """Such a tool is passed over; alone it is the error's reason."""
    bad = fake(tmp_path / "bad/bin/ptxas")
    good = fake(tmp_path / "good/bin/ptxas")
    change(bad)
    found = Found("ptxas", {"PATH": f"{bad.parent}:{good.parent}"})
    assert found.need().path == str(good)
    assert [r.path for r in found.refused] == [str(bad)]
    with pytest.raises(ShimError, match=f"SX0747: .*{why}"):
        Found("ptxas", {"PATH": str(bad.parent)}).need()


@pytest.mark.usefixtures("bare")
def test_version_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused, and asked again later."""
    monkeypatch.setattr(tools, "_VERSION_LIMIT_S", 0.3)
    path = tmp_path / "ptxas"
    path.write_text("#!/bin/sh\nsleep 1000\n")
    path.chmod(0o755)
    found = Found("ptxas", {"PATH": str(tmp_path)})
    with pytest.raises(ShimError, match=r"SX0747: .*no answer within 0\.3 s"):
        found.need()


def test_a_group_is_killed(tmp_path: Path) -> None:
    """A child that holds the output open neither delays the answer nor survives."""
    begin = time.monotonic()
    ran = run(["/bin/sh", "-c", "sleep 1000 & echo $! > pid; echo done"], tmp_path, 300)
    assert (ran.status, ran.output, ran.timed_out) == (0, "done\n", False)
    assert time.monotonic() - begin < 200
    ended(int((tmp_path / "pid").read_text()))
    ran = run(["/bin/sh", "-c", "sleep 1000 & echo $! > pid; sleep 1000"], tmp_path, 0.3)
    assert ran.timed_out
    ended(int((tmp_path / "pid").read_text()))
    # Closed output, but running.
    ran = run(["/bin/sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 5"], tmp_path, 300)
    assert (ran.status, ran.timed_out) == (5, False)


def ended(pid: int) -> None:
    """The process ends: it is killed, and then reaped by its parent."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} lives")


def test_much_output(tmp_path: Path) -> None:
    """It is read to the end and cut; control characters do not reach a terminal."""
    ran = run(["/bin/sh", "-c", "yes | head -c 9000000; exit 4"], tmp_path, 60)
    assert (ran.status, len(ran.output)) == (4, OUTPUT_MAX)
    ran = run(["/bin/sh", "-c", r"printf '\033[2Ja\000b\nc'"], tmp_path, 60)
    assert ran.output == "?[2Ja?b\nc"


def test_options() -> None:
    """Text to values to a command line; nothing else is taken."""
    options = parse_options("max_registers=32,optimization=2,line_info,cache=cg,target=90a,verbose")
    assert options.target == (90, "a")
    said = "-maxrregcount 32 -O2 -lineinfo -dlcm=cg -v"
    assert " ".join(options.arguments()) == said
    assert parse_options("debug,optimization=4").arguments() == ["-g"]
    assert parse_options("") == JitOptions()
    for bad in ("o=/etc/passwd", "max_registers=-1", "cache=x", "target=abc", "debug,debug", "x"):
        with pytest.raises(ServiceError, match="SX0903"):
            parse_options(bad)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (b".version 8.0\n.target sm_90a\n", (90, "a")),
        (
            b"// .target sm_10\n/* .version 1.0 */ .version 8.0 // x\n .target sm_75, debug",
            (75, ""),
        ),
        (b".version 8.8\n.target texmode_independent, sm_100f\n", (100, "f")),
        (b".version 8.0\n.address_size 64\n", None),
        (b"rubbish .target sm_80", None),
        (b"", None),
        (b"/* never closed .version 8.0 .target sm_80", None),
    ],
)
def test_target(text: bytes, target: tuple[int, str] | None) -> None:
    """The directive after blanks and comments; ptxas has the last word on the rest."""
    assert read_source(text + b"\0\0").target == target
    assert is_ptx(text) == text.startswith((b".version", b"// .target sm_10"))


def test_nul_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ShimError, match="SX0742: a NUL byte at 3 of 5 bytes"):
        read_source(b"abc\0d\0")
    monkeypatch.setattr("sassxlate.runtime_shim.ptx.source.SOURCE_MAX", 8)
    with pytest.raises(ShimError, match="SX0742: 9 bytes of PTX; at most 8"):
        read_source(b"123456789")


@pytest.mark.parametrize(
    ("target", "capability", "expected"),
    [
        (b"sm_52", 80, (80, "")),
        (b"sm_80", 80, (80, "")),
        (b"sm_86", 80, "is for sm_86, the device is sm_80"),
        (b"sm_52", 82, (80, "")),  # no such architecture: the next before it
        (b"sm_90a", 90, (90, "a")),
        (b"sm_90a", 100, "sm_90a and its family alone"),
        (b"sm_90", 100, (100, "")),
        (b"sm_100f", 100, (100, "f")),
        (b"sm_90a", 75, "is for sm_90a"),
    ],
)
def test_architecture(target: bytes, capability: int, expected: tuple[int, str] | str) -> None:
    """That of the device, unless the text is for one alone or above it."""
    source = read_source(b".version 8.0\n.target " + target + b"\n")
    if isinstance(expected, tuple):
        assert architecture(source, capability, JitOptions(), SUPPORTED) == expected
        return
    with pytest.raises(PtxError, match=f"SX0743: .*{expected}"):
        architecture(source, capability, JitOptions(), SUPPORTED)


def real() -> Found:
    """The tools of this machine; skips without one."""
    found = Found("ptxas", os.environ)
    if next(iter(found), None) is None:
        pytest.skip("ptxas is not installed (pip install '.[test]')")
    return found


@pytest.mark.usefixtures("bare")
def test_an_old_one_leaves_it_to_a_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is preferred until it does not know the version; then what it says is the error."""
    monkeypatch.undo()
    path = real().need().path
    monkeypatch.setattr(tools, "_own_sites", lambda: iter(()))
    monkeypatch.setattr(tools, "STANDARD", "/nonexistent")
    says = "echo \"ptxas x, line 1; fatal   : Unsupported .version 7.0; current version is '5.0'\""
    fake(tmp_path / "old/ptxas", "9.1", f"{says}; exit 255")
    fake(tmp_path / "new/ptxas", "13.0", f'exec {path} "$@"')
    both = {"PATH": f"{tmp_path / 'old'}:{tmp_path / 'new'}"}
    made = assemble(Workshop(None, both, SUPPORTED), read_source(TEXT), 80, JitOptions())
    assert made.tool.release == (13, 0)
    old = {"PATH": str(tmp_path / "old")}
    with pytest.raises(PtxError, match=r"SX0744: ptxas 9\.1\.1 is too old .*current version"):
        assemble(Workshop(None, old, SUPPORTED), read_source(TEXT), 80, JitOptions())


def test_kept_by_content(tmp_path: Path) -> None:
    """Text, architecture, options and ptxas's version are the key; nothing else is left."""
    path = real().need().path
    calls = tmp_path / "calls"
    script = fake(tmp_path / "bin/ptxas", "13.0", f'echo x >> {calls}; exec {path} "$@"')
    cache = Cache(tmp_path / "cache", "tag")

    def made(text: bytes = TEXT, capability: int = 80, jit: str = "") -> int:
        shop = Workshop(cache, {"SASSXLATE_PTXAS": str(script)}, SUPPORTED)
        assemble(shop, read_source(text), capability, parse_options(jit))
        return len(calls.read_text().split())

    assert [made(), made(), made(TEXT + b"\n"), made(capability=75)] == [1, 1, 2, 3]
    assert [made(jit="debug"), made(jit="debug"), made()] == [4, 4, 4]
    script.write_text(script.read_text().replace("V13.0.1", "V13.0.2"))
    assert made() == 5
    assert not list((tmp_path / "cache/tmp").iterdir())
    # A damaged result is made again.
    for kept in (tmp_path / "cache/module/tag").glob("*.ptxas"):
        kept.write_bytes(kept.read_bytes()[:-1])
    assert made() == 6


def test_wrong_architecture(tmp_path: Path) -> None:
    """A wrapper that compiles for something else is found out."""
    path = real().need().path
    body = f'shift; exec {path} -arch=sm_75 "$@"'
    script = fake(tmp_path / "ptxas", "13.0", body)
    shop = Workshop(None, {"SASSXLATE_PTXAS": str(script)}, SUPPORTED)
    with pytest.raises(PtxError, match=r"SX0745: .*wrote code for sm_75, not for sm_80"):
        assemble(shop, read_source(TEXT), 80, JitOptions())
