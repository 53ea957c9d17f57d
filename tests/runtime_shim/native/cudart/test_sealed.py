"""Runtimes whose signature lacks public functions: nothing of NVIDIA's code in them runs.

The signature of nvcc's runtime is changed in a copy of the preloaded library: some functions are
no entries any more.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.disasm.containers.elf import Elf
from sassxlate.runtime_shim.static_runtime import functions_of, runtime_of, signatures
from tools.generate.cudart_in_library import Archive, read_archive

from .stage import Stage, stripped

Tool = Callable[..., str]
PROGRAMS = Path(__file__).parent / "programs"
UNUSED = "cudaVDPAU", "cudaGL", "cudaEGL", "cudaGraphics"  # of no program here


@pytest.fixture(scope="module")
def archive(nvcc: Tool, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """The static runtime that nvcc links."""
    folder = tmp_path_factory.mktemp("archive")
    (folder / "empty.cu").write_text("int main() {}\n", "ascii")
    text = nvcc("-Xlinker", "--trace", folder / "empty.cu", "-o", folder / "empty")
    found = re.search(r"^\(?(\S*libcudart_static\.a)", text, re.MULTILINE)
    if not found:
        pytest.skip("the linker does not name libcudart_static.a")
    return read_archive(Path(found.group(1)).read_bytes())


@pytest.fixture(scope="module")
def program(programs: Path) -> Path:
    return stripped(programs / "flow")


def sealing(
    stage: Stage, folder: Path, program: Path, archive: Archive, absent: tuple[str, ...] = ()
) -> Stage:
    """A stage where the program's runtime has a signature without ``absent`` and some functions
    that nothing calls, in whose place its lines say what is quiet."""
    release = re.search(r"runtime ([\d.]+)", runtime_of(program).text)
    assert release is not None
    target = folder / "stage"
    shutil.copytree(stage.folder, target)
    path = target / "libsassxlate_preload.so"
    data = bytearray(path.read_bytes())
    start = data.index(b"\nrelease " + release[1].encode())
    end = data.index(b"\nend\n", start)
    quiet = [f"quiet {at:x}" for part in archive.outside for _, at in part.targets]
    for line in re.findall(rb"\nentry (?:[^\n]*)", bytes(data[start:end])):
        name = line.split()[2].decode()
        new = f"absent {name}" if name in absent else ""
        if not new and quiet and name.startswith(UNUSED) and len(line) > len(quiet[0]) + 1:
            new = quiet.pop()
        if new:
            at = data.index(line + b"\n", start)
            # As long as the line before: the rest is a line of its own, which says nothing.
            data[at : at + len(line)] = (b"\n" + new.encode() + b"\n").ljust(len(line), b"#")[
                : len(line)
            ]
    assert not quiet
    path.write_bytes(data)
    return Stage(target)


def test_a_program_with_a_sealed_runtime_runs(
    stage: Stage, tmp_path: Path, program: Path, archive: Archive
) -> None:
    """Its start and end call functions of the sealed code, which do nothing."""
    whole = stage.run(program)
    result = sealing(stage, tmp_path, program, archive).run(program)
    assert (result.status, result.out, result.calls) == (0, whole.out, whole.calls)
    assert any("by signature" in m for m in result.messages)


@pytest.mark.parametrize("name", ["cudaGetLastError", "cudaDeviceSynchronize"])
def test_a_function_that_is_not_known_is_refused(
    stage: Stage, tmp_path: Path, program: Path, archive: Archive, name: str
) -> None:
    """The first one needs no driver: it was NVIDIA's own, which knows of no error here."""
    (tmp_path / "report").touch()  # as `run` makes it
    sealed = sealing(stage, tmp_path, program, archive, (name,))
    result = sealed.run(program, SASSXLATE_REPORT=str(tmp_path / "report"))
    assert result.status == 3, result
    assert name in result.messages[-1]
    found = re.search(r"SX0766: .*, at 0x(\w+), is called before 0x(\w+);", result.messages[-1])
    assert found is not None
    functions, _ = functions_of(Elf(memoryview(program.read_bytes())))
    assert functions[int(found[1], 16)] == name
    assert (tmp_path / "report").read_text().startswith("refused\tSX0766\t35\t")


def test_doctor_names_what_is_not_known() -> None:
    derived = [s for s in signatures() if s.absent]
    assert {s.release for s in derived} >= {"12.3", "13.0", "13.4.24"}
    for signature in derived:
        assert not {name for _, name in signature.entries} & set(signature.absent)
