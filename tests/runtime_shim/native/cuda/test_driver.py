"""The driver API as its own header declares it, on the emulated device."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.generate import cuda_entry_points

from .conftest import Run
from .driver_program import Built

CHECKS = [
    *("launch", "library", "mixed", "variables", "shared", "limits", "extended", "memory"),
    *("managed", "managed_advice"),
    *("streams", "contexts", "resolution", "facts", "fault", "forked", "ending", "threads"),
    *("reset", "boxes", "textures", "virtual_memory", "read_only_memory", "no_access_memory"),
    "access_rights",
    "mapped_ranges",
    "shared_handles",
]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("check", CHECKS)
def test_check(built: Built, run: Run, check: str, arch: str) -> None:
    """One group of calls; the program reports what went wrong."""
    done = run(built.program, check, built.images[arch])
    # A launch with a cluster among the extended ones is not done: the output is not to be trusted.
    status = 3 if check == "extended" else 0
    assert done.returncode == status, done.stdout + done.stderr
    assert done.stdout.endswith("PASS\n")


def test_what_is_not_taken_is_named(built: Built, run: Run) -> None:
    """A parameter that is not supported: 801, and one line however often; it used to be silent."""
    done = run(built.program, "parameters", built.images["sm_80"])
    assert done.stdout.endswith("PASS\n"), done.stdout + done.stderr
    end = ": not supported; the call returns 801"
    assert [x.removeprefix("sassxlate: SX0718: ") for x in done.stderr.splitlines()] == [
        "an sRGB texture with a filter or a border" + end,
        "a texture with a resource view" + end,
        "a seamless cube map" + end,
        "an interprocess event" + end,
        "a memory pool shared between processes" + end,
    ]


def _modules(built: Built, run: Run, **environment: str) -> None:
    """Mappings and memory stay what they are after the first quarter of the rounds."""
    # When a thread first uses a row of stacks (32, with a guard each) is by chance; there are the
    # waiting thread and the stream's.
    environment["SASSXLATE_THREADS"] = "1"
    stacks = 2 * 2 * 32
    done = run(built.program, "modules", built.images["sm_80"], **environment)
    found = re.fullmatch(r"rounds (\d+) mappings (-?\d+) grown (-?\d+) KiB\nPASS\n", done.stdout)
    assert found, done.stdout + done.stderr
    assert int(found[1]) >= 2000, done.stdout  # a module that left one mapping would be seen
    assert int(found[2]) <= 8 + stacks, done.stdout  # 8: of the allocator's own
    assert int(found[3]) < 1024, done.stdout


@pytest.mark.parametrize("where", ["file", "stderr", ""])
def test_log_of_errors(built: Built, run: Run, tmp_path: Path, where: str) -> None:
    """cuLogs*, and CUDA_LOG_FILE, which gets each message as the dumps have it."""
    log, dumped = tmp_path / "log", tmp_path / "dumped"
    name = str(log) if where == "file" else where
    done = run(
        built.program, "logs", built.images["sm_80"], CUDA_LOG_FILE=name, LOG_DUMP=str(dumped)
    )
    assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stdout + done.stderr
    written = {"file": log.read_text() if where == "file" else "", "stderr": done.stderr}.get(where)
    lines = [text for text in (written or "").splitlines() if "][CUDA][E] " in text]
    assert bool(lines) == bool(where)
    last = dumped.read_text().splitlines()[1:]
    assert len(last) > 100
    assert all(re.match(r"\[\d\d:\d\d:\d\d\.\d{3}\]\[\d+\]\[CUDA\]\[E\] ", text) for text in last)
    if where:
        assert "\n".join(last) in "\n".join(lines)


@pytest.mark.parametrize("strict", ["", "1"])
def test_unloaded_modules_leave_nothing(built: Built, run: Run, strict: str) -> None:
    """Each used to leave the mapping of its code; 65,530 are all that a process may have."""
    _modules(built, run, **({"SASSXLATE_STRICT": "1"} if strict else {}))


@pytest.mark.sweep
def test_a_hundred_thousand_modules(built: Built, run: Run) -> None:
    """More than the mappings that the kernel allows."""
    _modules(built, run, MODULE_ROUNDS="100000")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_bad_images(built: Built, run: Run, arch: str) -> None:
    """Errors that an application sees; that of a damaged cubin is also reported at the end."""
    done = run(built.program, "bad_image", built.images[arch])
    assert done.stdout.endswith("PASS\n"), done.stdout + done.stderr
    assert done.returncode == 3
    assert "SX0106" in done.stderr.splitlines()[0]


def test_trace_says_what_was_asked(built: Built, run: Run, tmp_path: Path) -> None:
    """A line for each call: its name, its result, and arguments and answers of queries."""
    for check in ("facts", "limits"):
        done = run(built.program, check, built.images["sm_80"], options=("--trace", tmp_path))
        assert done.stdout.endswith("PASS\n"), done.stdout + done.stderr
    text = "".join(file.read_text() for file in tmp_path.glob("cuda-*.txt"))
    lines = text.splitlines()
    for expected in (
        "cuDeviceGetAttribute 0 10 = 32",
        "cuDeviceGetAttribute 1 9999 = 0",
        "cuCtxGetLimit 0 7 = 166912",
        "cuCtxGetLimit 215 9",
        "cuLaunchKernel 1 grid 0 1 1 block 32 1 1 shared 0 bounded",
        "cuLaunchKernel 0 grid 1 1 1 block 64 1 1 shared 0 bounded",
    ):
        assert expected in lines, expected
    assert all(re.match(r"\w+ \d+( |$)", line) for line in lines)


def test_fat_binary(built: Built, run: Run) -> None:
    """A compressed container; the entry of the advertised capability is taken."""
    for capability in ("8.0", "9.0", "12.0"):
        done = run(built.program, "launch", built.images["fatbin"], SASSXLATE_CC=capability)
        assert done.stdout.endswith("PASS\n"), done.stdout + done.stderr
    done = run(built.program, "facts", built.images["fatbin"], SASSXLATE_CC="8.6")
    assert "capability 8.6\n" in done.stdout
    # A constant: programs' results depend on it, and must not on the host's cores.
    assert "multiprocessors 48\n" in done.stdout
    # A program without code of its own that asks first.
    done = run(built.program, "facts", built.images["fatbin"])
    assert "capability 8.0\n" in done.stdout


def test_no_code(built: Built, run: Run) -> None:
    """Loading succeeds, the look-up returns 209, one line gives the reason, and the run counts as
    refused."""
    done = run(built.program, "no_code", built.images["rdc"])
    assert done.stdout == "PASS\n"
    assert done.returncode == 3
    said = sum("SX0710" in line for line in done.stderr.splitlines())
    assert said == 3  # at once, at the end, and in the last line, not to trust the output
    done = run(built.program, "no_code", built.images["rdc"], options=("--keep-status",))
    assert done.returncode == 0


def test_stripped_environment(built: Built, libraries: Path, cache: Path) -> None:
    """Without `run`: the library alone finds a Python, starts the service and the cache."""
    done = subprocess.run(
        [built.program, "launch", built.images["sm_80"]],
        env={
            "LD_LIBRARY_PATH": str(libraries),
            "SASSXLATE_CACHE_DIR": str(cache),
            "SASSXLATE_PYTHON": sys.executable,
            "SASSXLATE_PYTHONPATH": str(Path(__file__).parents[4]),
            "SASSXLATE_SOCKET": str(cache / "s"),
            "SASSXLATE_SERVICE_IDLE": "5",
        },
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "PASS\n", done.stdout + done.stderr


def test_every_entry_point_is_exported(libraries: Path) -> None:
    """All names of the table, and our own for NVML."""
    import lief

    library = lief.ELF.parse(  # pyright: ignore[reportUnknownMemberType]
        str(libraries / "libcuda.so.1")
    )
    assert library is not None
    exported = {str(s.name) for s in library.exported_symbols}
    expected = set(
        line.removeprefix("SX_SYMBOL(").removesuffix(")")
        for line in table_text().splitlines()
        if line.startswith("SX_SYMBOL(")
    )
    assert exported == expected | {"sassxlate_device_facts"}
    assert len(expected) > 670


def table_text() -> str:
    """The committed table of entry points."""
    root = Path(__file__).parents[4]
    return (root / "runtime_shim/native/cuda/entry_points.def").read_text()


def test_table_is_what_the_headers_say() -> None:
    """Regenerating the table gives the same bytes."""
    include = Path("/usr/local/cuda/include")
    if (
        not (include / "cudaTypedefs.h").is_file()
        or "13000" not in (include / "cuda.h").read_text()
    ):
        pytest.skip("no CUDA 13.0 headers in /usr/local/cuda")
    newer = re.findall(r"SX_SYMBOL\((\w+)\)", table_text().partition(cuda_entry_points.LATER)[2])
    assert len(newer) >= 40
    assert cuda_entry_points.render(include, tuple(newer)) == table_text()


def test_a_function_of_a_newer_release_is_refused_by_name(built: Built, run: Run) -> None:
    """A program that was linked with it ended with "symbol lookup error"."""
    done = run(built.program, "newer", built.images["sm_80"])
    assert done.stdout.endswith("PASS\n"), done.stdout + done.stderr
    assert "cuGraphGetId" in done.stderr
