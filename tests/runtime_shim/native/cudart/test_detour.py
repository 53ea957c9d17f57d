"""The detour and the runtime over a recording driver: static, shared, stripped, in libraries."""

# pyelftools has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lief
import pytest

from .stage import Result, Stage, stripped

Tool = Callable[..., str]
HERE = Path(__file__).parent

EXPECTED = """\
cudaMalloc(&device, 1024) 0
cudaMemcpyToSymbol(scale, &factor, 4) 0
cudaMemcpyToSymbol(scale, &factor, 17) 1
cudaMemcpy(device, host, 1024, cudaMemcpyHostToDevice) 0
cudaGetLastError() 1
cudaGetLastError() 209
cudaPeekAtLastError() 209
cudaGetLastError() 209
cudaGetLastError() 0
cudaDeviceSynchronize() 0
cudaMemcpy(host, device, 1024, cudaMemcpyDeviceToHost) 0
back 3
cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 64, 0) 0
cudaFuncGetAttributes(&attributes, add) 0
registers 104 shared 101
cudaGetDeviceProperties(&properties, 0) 0
recorder 3221225472 warp 1010 sms 1016 block 1002 1003 1004
cudaGetDeviceCount(&count) 0
cudaRuntimeGetVersion(&version) 0
count 1 version 13000 managed 0
cudaSetDevice(3) 101
cudaMalloc(&device, size_t{1} << 40) 2
cudaFree(reinterpret_cast<void *>(16)) 1
cudaFree(nullptr) 0
cudaStreamQuery(0) 600
cudaMemcpy(host, host, 4, static_cast<cudaMemcpyKind>(9)) 21
cudaDeviceGetNvSciSyncAttributes(nullptr, 0, 0) 801
cudaGetExportTable(&table, &id) 801
cudaGetExportTable(&table, &id) 801
table 0
cudaFuncGetAttributes(&attributes, host) 400
cudaErrorNotSupported invalid argument
"""

FLOW = [
    "cuInit",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuMemAlloc 1024",
    "cuLibraryLoadData 466243b1 option 1 of 1",
    "cuLibraryGetGlobal scale",
    "cuMemcpyHtoD 4",
    "cuLibraryGetGlobal scale",
    "cuMemcpyHtoD 1024",
    "cuLibraryGetKernel _Z3addiPKfPf",
    "cuLaunchKernel _Z3addiPKfPf grid 2 3 4 block 32 2 1 shared 48 stream (nil) first 41",
    "cuLibraryGetKernel _Z7missingiPf",
]


def broken(path: Path, signatures: list[str]) -> Path:
    """A copy whose runtime is of an unknown release: one byte of its unused code is another."""
    data = bytearray(path.read_bytes())
    at = data.find(b"\x48\x8d\x3d", find_runtime(path, signatures))
    assert at > 0
    data[at + 1] ^= 0x01
    target = path.with_name(path.name + "_broken")
    target.write_bytes(bytes(data))
    target.chmod(0o755)
    return target


def find_runtime(path: Path, signatures: list[str]) -> int:
    """File offset of the last runtime function, which nothing calls before main."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    with path.open("rb") as stream:
        elf = ELFFile(stream)
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbol = (table.get_symbol_by_name(signatures[0]) or [])[0]
        for segment in elf.iter_segments("PT_LOAD"):
            start = segment["p_vaddr"]
            if start <= symbol["st_value"] < start + segment["p_filesz"]:
                return int(symbol["st_value"] - start + segment["p_offset"])
    raise AssertionError(signatures)


def check_flow(result: Result) -> None:
    assert result.status == 0, result
    assert result.out.splitlines() == EXPECTED.splitlines()
    assert [c for c in result.calls if c in FLOW][: len(FLOW)] == FLOW
    assert result.calls[-1] == "cuLibraryUnload"


def redirected(result: Result) -> int:
    """The number of functions that the detour reports as redirected."""
    counts = re.findall(r"(\d+) functions redirected", "\n".join(result.messages))
    return sum(map(int, counts))


def test_static_runtime_is_replaced(stage: Stage, programs: Path) -> None:
    result = stage.run(programs / "flow")
    check_flow(result)
    assert redirected(result) >= 422


def test_stripped_program_is_matched_as_a_whole(stage: Stage, programs: Path) -> None:
    result = stage.run(stripped(programs / "flow"))
    check_flow(result)
    assert redirected(result) >= 422
    assert any("by signature" in m for m in result.messages)


def test_non_pie_program(stage: Stage, programs: Path, nvcc: Tool) -> None:
    target = programs / "flow_no_pie"
    nvcc("-arch=sm_80", "-Xlinker", "-no-pie", HERE / "programs" / "flow.cu", "-o", target)
    result = stage.run(stripped(target))
    check_flow(result)
    assert redirected(result) >= 422


def test_shared_runtime_needs_no_detour(stage: Stage, programs: Path) -> None:
    result = stage.run(programs / "flow_shared", shared=True)
    check_flow(result)
    assert redirected(result) == 0


def test_copy_of_the_shared_runtime_in_a_wheel(
    stage: Stage, programs: Path, tmp_path: Path
) -> None:
    """NVIDIA's library by another name, as auditwheel gives it, is found and redirected."""
    ask = [shutil.which("nvcc") or "nvcc", "--dryrun", str(HERE / "programs" / "flow.cu")]
    said = subprocess.run(ask, capture_output=True, text=True, check=True).stderr
    folders = [Path(path) / "libcudart.so.13" for path in re.findall(r'"-L([^"]+)"', said)]
    found = [path for path in folders if path.exists()]
    if not found:
        pytest.skip("nvcc has no libcudart.so.13 beside it")
    name = "libcudart-0a1b2c3d.so.13.0.88"
    for file, changed in ((found[0], name), (programs / "flow_shared", "flow_of_a_wheel")):
        binary = lief.ELF.parse(str(file))
        assert binary is not None
        for entry in binary.dynamic_entries:
            named = isinstance(entry, lief.ELF.DynamicEntryLibrary | lief.ELF.DynamicSharedObject)
            if named and entry.name == "libcudart.so.13":
                entry.name = name
        for needed in binary.symbols_version_requirement:
            needed.name = name if needed.name == "libcudart.so.13" else needed.name
        binary.write(str(tmp_path / changed))
    (tmp_path / "flow_of_a_wheel").chmod(0o755)
    result = stage.run(tmp_path / "flow_of_a_wheel", LD_LIBRARY_PATH=f"{tmp_path}:{stage.folder}")
    check_flow(result)
    assert redirected(result) >= 422
    assert any(name in m and "by exported name" in m for m in result.messages)


def test_unknown_release_with_symbols_is_redirected_by_symbol(stage: Stage, programs: Path) -> None:
    path = broken(programs / "flow", ["cudaVDPAUGetDevice"])
    result = stage.run(path)
    check_flow(result)
    assert redirected(result) >= 422
    assert any("by symbol" in m for m in result.messages)


def test_unknown_stripped_release_is_an_error(stage: Stage, programs: Path, tmp_path: Path) -> None:
    path = stripped(broken(programs / "flow", ["cudaVDPAUGetDevice"]))
    (tmp_path / "report").touch()  # as `run` makes it
    result = stage.run(path, SASSXLATE_REPORT=str(tmp_path / "report"))
    assert result.status == 3
    assert result.out == ""
    assert result.calls == []
    assert "SX0761" in result.messages[0]
    kind, code, error, _, text = (tmp_path / "report").read_text().rstrip("\n").split("\t")
    assert (kind, code, error) == ("refused", "SX0761", "35")
    assert "known release" in text


def test_unknown_runtime_of_a_library_is_reported_when_it_starts(
    programs: Path, gxx: Tool, tmp_path: Path
) -> None:
    """Under `run`, with our driver library, which sees the library's runtime ask for its tables."""
    library = stripped(broken(programs / "liblibrary.so", ["cudaVDPAUGetDevice"]))
    target = programs / "opened_unknown"
    gxx(HERE / "programs" / "opened.cpp", "-o", target, "-ldl")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", "run", "--", str(target), str(library)],
        capture_output=True,
        text=True,
        env={**os.environ, "SASSXLATE_CACHE_DIR": str(tmp_path), "SASSXLATE_SERVICE_IDLE": "1"},
        check=False,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    assert "library 0" not in done.stdout
    assert f"sassxlate: SX0761: {library}: " in done.stderr
    assert "1 refusal in this run" in done.stderr


def test_unknown_runtime_that_nothing_uses_is_no_refusal(
    stage: Stage, programs: Path, tmp_path: Path, nvcc: Tool, gxx: Tool
) -> None:
    source = HERE / "programs" / "library_unused.cu"
    built = programs / "libunused.so"
    nvcc("-arch=sm_80", "-shared", "-Xcompiler", "-fPIC", source, "-o", built)
    library = stripped(broken(built, ["cudaVDPAUGetDevice"]))
    target = programs / "opened_unused"
    gxx(HERE / "programs" / "opened.cpp", "-o", target, "-ldl")
    (tmp_path / "report").touch()
    result = stage.run(
        target, library, SASSXLATE_REPORT=str(tmp_path / "report"), SASSXLATE_PRELOAD_TRACE="1"
    )
    assert result.out == "library 0\nlibrary 0\n"
    assert (tmp_path / "report").read_text() == ""
    assert any("unknown release" in m and library.name in m for m in result.messages)


def test_library_is_ready_before_its_constructors(stage: Stage, programs: Path, gxx: Tool) -> None:
    library = stripped(programs / "liblibrary.so")
    target = programs / "linked"
    gxx(HERE / "programs" / "linked.cpp", library, "-o", target, f"-Wl,-rpath,{programs}")
    result = stage.run(target)
    assert result.out == "library 0\n"
    assert sum("cuLaunchKernel _Z5twice" in c for c in result.calls) == 2


def test_opened_library_is_ready_before_its_constructors(
    stage: Stage, programs: Path, gxx: Tool
) -> None:
    target = programs / "opened"
    gxx(HERE / "programs" / "opened.cpp", "-o", target, "-ldl")
    result = stage.run(target, stripped(programs / "liblibrary.so"))
    assert result.out == "library 0\nlibrary 0\n"
    assert sum("cuLaunchKernel _Z5twice" in c for c in result.calls) == 4
    assert sum(c == "cuLibraryUnload" for c in result.calls) == 2


@pytest.mark.parametrize("started", ["directly", "by the linker"])
def test_opened_library_of_a_program_with_a_copy_of_the_linkers_record(
    stage: Stage, programs: Path, gxx: Tool, started: str
) -> None:
    """It was not examined: _r_debug was the program's copy, still empty when this was set up."""
    target = programs / f"opened_record_{len(started)}"
    flags = ("-DNAMES_THE_RECORD", "-fno-pie", "-no-pie")
    gxx(*flags, HERE / "programs" / "opened.cpp", "-o", target, "-ldl")
    headers = subprocess.run(["readelf", "-rlW", target], capture_output=True, text=True).stdout
    assert re.search(r"R_X86_64_COPY.* _r_debug", headers), "no copy: nothing is tested"
    found = re.search(r"interpreter: (\S+)]", headers)
    assert found is not None
    linker = [found[1]] if started == "by the linker" else []
    result = stage.run(*linker, target, stripped(programs / "liblibrary.so"))
    assert result.out == "library 0\nlibrary 0\n", result
    assert sum("cuLaunchKernel _Z5twice" in c for c in result.calls) == 4


def test_stubs_of_the_runtime_are_left_alone(
    stage: Stage, programs: Path, nvcc: Tool, gxx: Tool
) -> None:
    """A library whose functions of the runtime's names only call a shared one, like XLA's.

    It was taken for a static runtime without a function, and the process ended with status 3.
    """
    source, target = HERE / "programs", programs / "opened"
    library = programs / "libstubs.so"
    flags = ("-std=c++17", "-Xcompiler", "-fPIC", "-shared", "-cudart", "none")
    nvcc("-arch=sm_80", *flags, source / "library.cu", source / "stubs.cpp", "-o", library)
    gxx(source / "opened.cpp", "-o", target, "-ldl")
    result = stage.run(target, library, shared=True)
    assert (result.status, result.out) == (0, "library 0\nlibrary 0\n"), result
    assert redirected(result) == 0
    assert any("not changed" in m for m in result.messages)
    assert sum("cuLaunchKernel _Z5twice" in c for c in result.calls) == 4


def test_libraries_have_last_errors_of_their_own(stage: Stage, programs: Path, gxx: Tool) -> None:
    library, target = programs / "liblibrary.so", programs / "instances"
    other = programs / "libother.so"
    shutil.copy(library, other)
    gxx(HERE / "programs" / "instances.cpp", "-o", target, "-ldl")
    assert stage.run(target, library, other).out == "2\n2 0\n"


def test_stream_of_its_own(stage: Stage, programs: Path) -> None:
    result = stage.run(programs / "flow_own_stream")
    assert "cuMemcpyHtoDAsync 1024 stream 0x2" in result.calls
    assert "cuStreamSynchronize 0x2" in result.calls
    assert any(c.startswith("cuLaunchKernel") and "stream 0x2" in c for c in result.calls)


def test_program_without_a_runtime_is_left_alone(stage: Stage) -> None:
    result = stage.run("true")
    assert (result.status, result.messages) == (0, [])


def test_old_driver_and_no_device(stage: Stage, programs: Path) -> None:
    old = stage.run(programs / "flow", FAKE_VERSION="12090")
    assert old.out.startswith("cudaMalloc(&device, 1024) 35\n")
    none = stage.run(programs / "flow", FAKE_INIT="100")
    assert none.out.startswith("cudaMalloc(&device, 1024) 100\n")


def test_functions_that_are_missing_say_so(stage: Stage, programs: Path) -> None:
    result = stage.run(programs / "flow")
    assert sum("SX0752: cudaDeviceGetNvSciSyncAttributes" in m for m in result.messages) == 1
    private = [m for m in result.messages if "SX0765" in m]
    assert len(private) == 1
    assert "flow requests" in private[0]
    assert "(70726976)" in private[0]  # the first bytes of the table's name
