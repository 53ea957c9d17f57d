"""The runtime's ABI against NVIDIA's headers and library, and the signatures against the tool."""

# pyelftools has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest

Tool = Callable[..., str]
HERE = Path(__file__).parent
ROOT = HERE.parents[3]
CUDART = ROOT / "runtime_shim" / "native" / "cudart"
SIGNATURES = sorted((ROOT / "runtime_shim" / "signatures").glob("*.sig"))
PROPERTY = re.compile(r"SX_PROPERTY\((\w+), (\d), (-?\d+), (-?\d+), ")


def numbers(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def properties(major: int) -> dict[str, int]:
    """Field -> offset in our table, of the fields that this major has."""
    rows = PROPERTY.findall((CUDART / "properties.inc").read_text("ascii"))
    column = 2 if major == 12 else 3
    return {row[0]: int(row[column]) for row in rows if row[column] != "-1"}


def test_structures_are_those_of_the_headers(tmp_path: Path, nvcc: Tool, gxx: Tool) -> None:
    places = "".join(f"SX_PROPERTY({name})\n" for name in properties(13))
    (tmp_path / "places.inc").write_text(places, "ascii")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    nvcc("-cudart", "none", f"-I{tmp_path}", HERE / "layouts.cpp", "-o", theirs)
    gxx("-std=c++17", "-DSX_CUDART_MAJOR=13", f"-I{CUDART}", HERE / "layouts_ours.cpp", "-o", ours)
    expected = numbers(subprocess.check_output([str(theirs)], text=True))
    sizes = numbers(subprocess.check_output([str(ours)], text=True))
    assert sizes == {k: v for k, v in expected.items() if not k.startswith("prop.")}
    offsets = {k.removeprefix("prop."): v for k, v in expected.items() if k.startswith("prop.")}
    assert properties(13) == offsets


@pytest.mark.parametrize("major", [11, 12, 13])
def test_every_name_is_exported_with_its_version(major: int) -> None:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerDefSection
    from elftools.elf.sections import SymbolTableSection

    soname = f"libcudart.so.{major if major > 11 else '11.0'}"
    library = Path(str(resources.files("sassxlate.runtime_shim") / "lib" / soname))
    if not library.is_file():
        pytest.skip(f"{soname} is not built (runtime_shim/native/build.sh)")
    with library.open("rb") as stream:
        elf = ELFFile(stream)
        table = elf.get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        exported = {
            s.name
            for s in table.iter_symbols()
            if s["st_info"]["type"] == "STT_FUNC" and s["st_shndx"] != "SHN_UNDEF"
        }
        versions = elf.get_section_by_name(".gnu.version_d")
        assert isinstance(versions, GNUVerDefSection)
        names = {entry.name for _, entries in versions.iter_versions() for entry in entries}
    listed = re.findall(r"SX_NAME\((\w+)\)", (CUDART / f"names_{major}.inc").read_text("ascii"))
    assert exported == set(listed)
    assert names == {soname}


@pytest.fixture(scope="session")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "make_sig", ROOT / "tools" / "generate" / "cudart_signatures.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up while it is made.
    sys.modules["make_sig"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", SIGNATURES, ids=lambda p: p.stem)
def test_signatures_hold_facts_only(path: Path) -> None:
    lines = path.read_text("ascii").splitlines()
    kinds = {line.split(" ")[0] for line in lines}
    found = any(tool in lines[0] for tool in ("cudart_in_library", "cudart_by_shared"))
    sealed = {"quiet"} if found else set[str]()
    assert (
        kinds - {"absent"}
        == {"#", "release", "length", "anchor", "digest", "mask", "entry", "end"} | sealed
    )
    offsets = [int(line.split()[1], 16) for line in lines if line.startswith("entry ")]
    assert len(offsets) > 380  # 11.7 has 389
    assert all(b - a >= 5 or b == a for a, b in itertools.pairwise(offsets))


def archive_of(nvcc: Tool, tmp_path: Path) -> Path:
    """The static runtime that nvcc links: named in its dry run."""
    source = tmp_path / "empty.cu"
    source.write_text("int main() {}\n", "ascii")
    program = tmp_path / "empty"
    text = nvcc("-Xlinker", "--trace", source, "-o", program)
    found = re.search(r"^\(?(\S*libcudart_static\.a)", text, re.MULTILINE)
    if not found:
        pytest.skip("the linker does not name libcudart_static.a")
    return Path(found.group(1))


def test_regenerating_gives_the_same_bytes(tool: ModuleType, nvcc: Tool, tmp_path: Path) -> None:
    block = tool.read_block(archive_of(nvcc, tmp_path).read_bytes())
    digest = hashlib.blake2b(block.masked(), digest_size=32).hexdigest()
    committed = {
        match[1]: path
        for path in SIGNATURES
        if (match := re.search(r"^digest (\w+)$", path.read_text("ascii"), re.MULTILINE))
    }
    if digest not in committed:
        pytest.skip("nvcc's runtime is of a release without a signature")
    text = committed[digest].read_text("ascii")
    lines = text.splitlines()
    source, release = lines[1].removeprefix("# "), lines[2].removeprefix("release ")
    assert tool.render(block, release, source) == text
