"""PTX and the driver's linker: NVIDIA's ptxas and nvlink, found or not, good or bad."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sassxlate.runtime_shim.ptx.tools import Found, Name

from .conftest import Run
from .driver_program import Built, Tool

CALLEE = 'extern "C" __device__ unsigned f(unsigned a) { return a + 9; }\n'


def need(name: Name) -> str:
    """The path of a tool; skips where there is none."""
    for tool in Found(name, os.environ):
        return tool.path
    pytest.skip(f"{name} is not installed (pip install '.[test]')")


def without_tools(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which a cache and a service of its own know the tools that it names."""
    return {
        "SASSXLATE_CACHE_DIR": str(folder / "cache"),
        "SASSXLATE_SOCKET": str(folder / "s"),
        "SASSXLATE_SERVICE_IDLE": "5",
        **more,
    }


def script(path: Path, body: str, mode: int = 0o755) -> Path:
    """A ptxas that says its version, and otherwise does what ``body`` says."""
    release = "Cuda compilation tools, release 13.0, V13.0.88"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo "{release}"; exit 0; }}\n{body}\n')
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    "image", ["ptx", "ptx_lineinfo", "ptx_debug", "ptx_fatbin", "ptx_compressed"]
)
def test_ptx_alone(built: Built, run: Run, image: str) -> None:
    """PTX as text, with debug information, in a container, compressed: compiled, and right."""
    need("ptxas")
    done = run(built.program, "launch", built.images[image])
    assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stdout + done.stderr


@pytest.mark.parametrize("check", ["ptx", "ptx_link"])
def test_compiler_and_linker(built: Built, run: Run, check: str) -> None:
    """Options, logs, modules and libraries; pieces of PTX."""
    need("ptxas")
    need("nvlink")
    done = run(built.program, check, built.images["ptx"])
    assert done.stdout == "PASS\n", done.stdout + done.stderr
    # The linker's check ends with a refusal, which the run's report has.
    assert done.returncode == (3 if check == "ptx_link" else 0), done.stderr


@pytest.mark.parametrize(
    ("check", "codes"),
    [
        ("ptx_refused", ["SX0740", "SX0742", "SX0742", "SX0743", "SX0744"]),
        ("ptx_link_refused", ["SX0740", "SX0742", "SX0742", "SX0748", "SX0748", "SX0770"]),
    ],
)
def test_errors(built: Built, run: Run, check: str, codes: list[str]) -> None:
    """The driver's error numbers and logs; the user reads one line each."""
    need("ptxas")
    need("nvlink")
    done = run(built.program, check, built.images["ptx"], SASSXLATE_CC="8.0")
    assert done.stdout == "PASS\n", done.stdout + done.stderr
    assert done.returncode == 3
    said = [line for line in done.stderr.splitlines() if "(CUDA error" in line]
    assert sorted(line.split("SX", 1)[1][:4] for line in said) == [c[2:] for c in codes]


def test_linked_files(built: Built, run: Run, nvcc: Tool, tmp_path: Path) -> None:
    """Objects, fat binaries, archives, cubins and PTX as files."""
    need("ptxas")
    need("nvlink")
    source = tmp_path / "callee.cu"
    source.write_text(CALLEE)
    forms = {
        "OBJECT": ("-dc", "o"),
        "FATBIN": ("-fatbin", "fatbin"),
        "LIBRARY": ("-lib", "a"),
        "CUBIN": ("-cubin", "cubin"),
        "PTX": ("-ptx", "ptx"),
    }
    pieces: dict[str, str] = {}
    for name, (form, suffix) in forms.items():
        piece = tmp_path / f"callee.{suffix}"
        nvcc("-rdc=true", form, "-arch=sm_80", source, "-o", piece)
        pieces[f"PIECE_{name}"] = str(piece)
    done = run(built.program, "ptx_link_files", built.images["ptx"], SASSXLATE_CC="8.0", **pieces)
    assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stdout + done.stderr


def test_no_ptxas(built: Built, run: Run, tmp_path: Path) -> None:
    """The line names the package; the application's error is the driver's own for this."""
    missing = without_tools(tmp_path, SASSXLATE_PTXAS=str(tmp_path / "none"))
    done = run(built.program, "ptx_result", built.images["ptx"], **missing)
    assert (done.stdout.split("\n")[0], done.returncode) == ("result 221", 3)
    assert re.search("SX0747: .*no such file", done.stderr)
    # With it, the same cache is no obstacle: nothing of the refusal was kept.
    path = need("ptxas")
    done = run(built.program, "launch", built.images["ptx"], **{**missing, "SASSXLATE_PTXAS": path})
    assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stderr


BAD = {
    "fails": ("echo 'ptxas fatal   : Out of ideas' >&2; exit 1", 218, "SX0742: .*Out of ideas"),
    "fails silently": ("exit 7", 999, "SX0745: .*exit status 7"),
    "crashes": ("kill -SEGV $$", 999, "SX0745: .*signal 11"),
    "prints garbage": (
        "head -c 300000 /dev/urandom; exit 1", 999, "SX0745: .*exit status 1",
    ),
    "writes nothing": ("exit 0", 999, "SX0745: .*wrote nothing"),
    "writes garbage": (
        'for last; do :; done; head -c 999 /dev/urandom > "$last"', 999, "SX0745: .*no cubin",
    ),
    "hangs": ("sleep 1000 & sleep 1000", 999, "SX0746: .*no answer within 2 s"),
}  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose cache and service several tests use one after another."""
    return tmp_path_factory.mktemp("shared")


@pytest.mark.parametrize("kind", BAD)
def test_bad_ptxas(built: Built, run: Run, tmp_path: Path, shared: Path, kind: str) -> None:
    """One line with a code, nothing half-written, and no process is left."""
    body, number, line = BAD[kind]
    fake = script(tmp_path / "ptxas", body)
    done = run(
        built.program,
        "ptx_result",
        built.images["ptx"],
        **without_tools(shared, SASSXLATE_PTXAS=str(fake), SASSXLATE_PTXAS_LIMIT="2"),
    )
    assert done.stdout.startswith(f"result {number}\n"), done.stdout + done.stderr
    assert done.returncode == 3
    said = [text for text in done.stderr.splitlines() if "SX07" in text]
    assert len(said) == 3  # at once, at the end, and in the last line, not to trust the output
    assert re.search(line, said[0]), said
    assert all(text.isprintable() for text in done.stderr.splitlines())
    assert not list((shared / "cache" / "tmp").iterdir())
    assert not list((shared / "cache").rglob("*.ptxas"))
    assert not running(str(shared))


def test_killed_half_way(built: Built, run: Run, tmp_path: Path) -> None:
    """The worker is killed while ptxas works: a line, no folder, no ptxas; then it works again."""
    path = need("ptxas")
    fake = script(tmp_path / "ptxas", "sleep 1000")
    place = without_tools(tmp_path, SASSXLATE_PTXAS=str(fake), SASSXLATE_SERVICE_JOB_LIMIT="2")
    done = run(built.program, "ptx_result", built.images["ptx"], **place)
    assert done.stdout.startswith("result 999\n"), done.stdout + done.stderr
    assert re.search("SX0904: .*no answer within 2 s", done.stderr)
    assert not list((tmp_path / "cache" / "tmp").iterdir())
    assert ended(str(tmp_path))
    done = run(
        built.program, "ptx_result", built.images["ptx"], **{**place, "SASSXLATE_PTXAS": path}
    )
    assert (done.returncode, done.stdout) == (0, "result 0\nlog 0\nPASS\n"), done.stderr


def test_wheel_of_the_application(built: Built, run: Run, tmp_path: Path) -> None:
    """A program in an environment that is not activated: that environment's wheel compiles."""
    path = need("ptxas")
    calls = tmp_path / "calls"
    folder = tmp_path / "env/lib/python3.12/site-packages/nvidia/cu13/bin"
    folder.mkdir(parents=True)
    script(folder / "ptxas", f'echo called >> {calls}; exec {path} "$@"')
    program = tmp_path / "env/bin/driver"
    program.parent.mkdir()
    shutil.copy2(built.program, program)
    place = without_tools(tmp_path, PATH="/usr/bin:/bin")
    done = run(program, "launch", built.images["ptx"], **place)
    assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stderr
    assert calls.read_text() == "called\n"


def running(text: str) -> list[str]:
    """The processes with a text in their environment, which tools have from their runner."""
    found: list[str] = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"TMPDIR={text}".encode() in place.read_bytes():
                found.append(place.parent.name)
    return found


def ended(text: str) -> bool:
    """Whether none of these processes is left within 10 s: a worker's end kills its tool, and the
    application has its answer before the system has done that."""
    deadline = time.monotonic() + 10
    while left := running(text):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return not left


@pytest.mark.parametrize(("mode", "why"), [(0o644, "not executable"), (0o757, "mode 0757")])
def test_untrusted_ptxas(
    built: Built, run: Run, tmp_path: Path, shared: Path, mode: int, why: str
) -> None:
    """A tool that anyone can write, or that cannot be run, is refused with a line."""
    fake = script(tmp_path / "ptxas", "touch ran", mode)
    done = run(
        built.program,
        "ptx_result",
        built.images["ptx"],
        **without_tools(shared, SASSXLATE_PTXAS=str(fake)),
    )
    assert done.stdout.startswith("result 221\n"), done.stderr
    assert re.search(f"SX0747: .*{why}", done.stderr)


def test_two_at_once(built: Built, run: Run, tmp_path: Path) -> None:
    """Two processes compile the same text into one cache."""
    need("ptxas")
    place = without_tools(tmp_path)
    command = (built.program, "launch", built.images["ptx"])
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(run, *command, **place) for _ in range(2)]
    for done in (one.result() for one in both):
        assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stderr


def test_compiled_again_by_another(built: Built, run: Run, tmp_path: Path) -> None:
    """A warm start needs no compiler; a changed one is used."""
    path = need("ptxas")
    calls = tmp_path / "calls"
    fake = script(tmp_path / "ptxas", f'echo called >> {calls}; exec {path} "$@"')
    place = without_tools(tmp_path, SASSXLATE_PTXAS=str(fake))
    for expected in (1, 1, 2):
        done = run(built.program, "launch", built.images["ptx"], **place)
        assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stderr
        assert len(calls.read_text().splitlines()) == expected
        if expected == 1 and calls.with_suffix(".second").exists():
            fake.write_text(fake.read_text().replace("V13.0.88", "V13.0.99"))
        calls.with_suffix(".second").touch()
