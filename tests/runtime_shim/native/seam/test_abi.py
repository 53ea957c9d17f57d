"""Our libraries' view of HIP, against AMD's own header and its library's list of names."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import HERE, ROOT, called_names

Tool = Callable[..., str]
NATIVE = ROOT / "runtime_shim/native"
OURS = NATIVE / "hip/hip.h"
# CUDA's number, which HIP lacks: our emulated device gives it, AMD's library never does.
NOT_AMDS = {"hipErrorMisalignedAddress"}
MEMBERS = {
    "hipPointerAttribute_t": "type device devicePointer hostPointer isManaged allocationFlags",
    "hip_Memcpy2D": "srcXInBytes srcY srcMemoryType srcHost srcDevice srcArray srcPitch dstXInBytes"
    " dstY dstMemoryType dstHost dstDevice dstArray dstPitch WidthInBytes Height",
}


def constants() -> list[str]:
    """Every constant of our header."""
    text = OURS.read_text()
    names = re.findall(r"^\s+((?:hip|HIP_)\w+) = ", text, re.M)
    names += re.findall(r"\b(hipLimit\w+) = ", text)
    names += re.findall(r"^#define ((?:hip|HIP_)\w+) ", text, re.M)
    return sorted(set(names) - NOT_AMDS)


def facts(header: Path, include: Path, work: Path, gxx: Tool) -> list[str]:
    """The output of facts.cpp for a header."""
    work.mkdir()
    (work / "header.c").write_text(f'#include "{header}"\n')
    flags = ("-x", "c", "-std=c11", "-D__HIP_PLATFORM_AMD__", f"-I{include}")
    text = gxx("-E", "-P", "-dD", *flags, work / "header.c")
    kept = [
        line
        for line in text.splitlines()
        if (not line.startswith("#") or re.match(r"#define (hip|HIP_)", line))
        and line != "typedef int wchar_t;"  # a type of its own in C++
    ]
    (work / "header.inc").write_text("\n".join(kept))
    rows = [f"FUNCTION({name})" for name in sorted(called_names())]
    rows += [f"CONSTANT({name})" for name in constants()]
    rows += [f"MEMBER({t}, {m})" for t, members in MEMBERS.items() for m in members.split()]
    (work / "facts.inc").write_text("\n".join(rows))
    program = work / "facts"
    defines = (f'-DHEADER="{work}/header.inc"', f'-DFACTS="{work}/facts.inc"')
    gxx("-std=c++17", *defines, HERE / "facts.cpp", "-o", program)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_header_agrees_with_amds(amd_include: Path, gxx: Tool, tmp_path: Path) -> None:
    """Widths of all arguments and results, constants, and the places of members."""
    theirs = facts(amd_include / "hip/hip_runtime_api.h", amd_include, tmp_path / "theirs", gxx)
    ours = facts(OURS, amd_include, tmp_path / "ours", gxx)
    assert len(theirs) > 130
    assert ours == theirs


def test_comparison_sees_differences(amd_include: Path, gxx: Tool, tmp_path: Path) -> None:
    broken = tmp_path / "broken.h"
    text = OURS.read_text().replace("hipMemcpyDefault = 4", "hipMemcpyDefault = 5")
    text = text.replace("hipMalloc(void **pointer, size_t size)", "hipMalloc(void **p, int size)")
    broken.write_text(text)
    ours = facts(OURS, amd_include, tmp_path / "ours", gxx)
    changed = facts(broken, amd_include, tmp_path / "changed", gxx)
    different = [a.split()[0] for a, b in zip(ours, changed, strict=True) if a != b]
    assert different == ["hipMalloc", "hipMemcpyDefault"]


def test_number_of_an_attribute(amd_include: Path, gxx: Tool, tmp_path: Path) -> None:
    """The attributes that are asked of AMD's library by number."""
    source = (NATIVE / "cuda/driver.cpp").read_text()
    count = re.search(r"kHipMultiprocessorCount = (\d+);", source)
    mapping = re.search(r"kHipVirtualMemory = (\d+);", source)
    assert count
    assert mapping
    program = tmp_path / "check.cpp"
    program.write_text(
        "#define __HIP_PLATFORM_AMD__\n#include <hip/hip_runtime_api.h>\n"
        f"static_assert(hipDeviceAttributeMultiprocessorCount == {count[1]});\n"
        "static_assert(hipDeviceAttributeVirtualMemoryManagementSupported == "
        f"{mapping[1]});\n"
    )
    gxx("-std=c++17", "-fsyntax-only", f"-I{amd_include}", program)
    assert source.count("hipDeviceGetAttribute(") == 2


def test_amds_library_has_every_name() -> None:
    """Names that are called, against the exports of ROCm 6.0 to 7.2."""
    data = tomllib.loads((HERE / "hip_names.toml").read_text())
    listed = data["since"]
    assert called_names() <= set(listed)
    oldest = tuple(map(int, data["oldest"].split(".")))
    for name, since in listed.items():
        assert tuple(map(int, since.split("."))) <= oldest, name
    # Python asks AMD's library by name too.
    for file in (*(ROOT / "runtime_shim").glob("*.py"), *(ROOT / "sassxlate/cli").glob("*.py")):
        asked = set(re.findall(r"\bhip\.(hip\w+)", file.read_text()))
        assert asked <= set(listed), file


def test_nothing_else_is_asked_of_hip() -> None:
    """All calls go through the one table; the emulated device's own entry is only looked for."""
    extensions = (
        "sassxlate_emulated_device",
        "sassxlate_emulated_busy",
        "sassxlate_emulated_lds",
        "sassxlate_waiting_state",
    )
    for file in sorted([*NATIVE.glob("cuda/*.*"), *NATIVE.glob("cudart/*.*")]):
        text = file.read_text()
        if file.name not in ("hip_api.cpp", "hip_api.h"):
            if file.name == "card.cpp":  # asks libraries whether they have a card, before the table
                asked = set(re.findall(r'function<decltype\((\w+)\)>\(handle, "\1"\)', text))
                assert len(asked) == 5 == text.count("function<decltype(")
                assert asked <= called_names()
                continue
            assert "dlopen" not in text or "libamdhip64" not in text, file
            assert not any(name in text for name in extensions), file
        called = set(re.findall(r"(?:hip\(\)|\bhip|\bapi)\.(hip\w+)\(", text))
        called |= set(re.findall(r"SX_HIP\((hip\w+)", text))
        assert called <= called_names(), file
    table = (NATIVE / "cuda/hip_api.cpp").read_text()
    assert table.count("dlsym(") == 6
    assert all(f'dlsym(handle, "{name}")' in table for name in extensions)


@pytest.mark.parametrize("name", ["hipModuleLaunchKernel", "hipPointerGetAttributes"])
def test_standin_exports(standin: Path, libraries: Path, name: str) -> None:
    """The stand-in has every name that is called, so that nothing of the seam goes untried."""
    done = subprocess.run(["nm", "-D", "--defined-only", standin], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("no nm")
    exported = {line.split()[-1] for line in done.stdout.splitlines()}
    assert name in exported
    assert called_names() <= exported
    assert "hipGetDevicePropertiesR0600" in exported
    ours = subprocess.run(
        ["nm", "-D", "--defined-only", libraries / "libamdhip64.so"], capture_output=True, text=True
    )
    assert called_names() <= {line.split()[-1] for line in ours.stdout.splitlines()}
