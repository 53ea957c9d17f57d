"""Whole cubins as text: to the letter what nvdisasm prints of them."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.disasm.listing.cubin import Document, ListingOptions

from .conftest import DATA

CUBINS = sorted(DATA.glob("*.cubin"))
KERNELS = DATA.parents[3] / "fixtures" / "kernels"
# nvdisasm's options -> ours
OPTIONS = {
    "-c": ListingOptions(),
    "-c -hex -gi": ListingOptions(encoding=True, source="inline"),
    "-c -g": ListingOptions(source="line"),
    "-c -gp": ListingOptions(source="ptx"),
}
CASES = [
    (path, options)
    for path in CUBINS
    for options in OPTIONS
    if options in ("-c", "-c -hex -gi") or path.name.startswith(("lines", "debug"))
]
GOLDEN = tomllib.loads((DATA / "listings.toml").read_text())


def listing(data: bytes, options: ListingOptions) -> str:
    return "".join(f"{line}\n" for line in Document(data, options).lines())


@pytest.mark.parametrize(("path", "options"), CASES, ids=lambda c: getattr(c, "stem", c))
def test_listing(path: Path, options: str) -> None:
    """The text's hash is that of nvdisasm's text, kept so that the test needs no nvdisasm."""
    text = listing(path.read_bytes(), OPTIONS[options])
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN[path.stem][options]


# One of each kind; the hashes are those of all.
WITNESSED = ("cuda12_sm_90a", "debug_relocatable_sm_75", "lines_relocatable_sm_120", "lines_sm_90")


@pytest.mark.parametrize("name", WITNESSED)
def test_listing_as_nvdisasm_prints_it(name: str, nvdisasm: Callable[..., str]) -> None:
    path, options = DATA / f"{name}.cubin", "-c -hex -gi"
    theirs = nvdisasm(*options.split(), path)
    assert listing(path.read_bytes(), OPTIONS[options]).splitlines() == theirs.splitlines()


MODES = ("-rdc=true", "-rdc=true -G", "-rdc=true -lineinfo", "-rdc=false -G", "-lineinfo")
ARCHES = (75, 80, 86, 89, 90, 100, 120)


@pytest.mark.sweep
@pytest.mark.parametrize("source", sorted(KERNELS.glob("*.cu")), ids=lambda p: p.stem)
def test_kernels_as_nvdisasm_prints_them(
    source: Path, tmp_path: Path, nvcc: Callable[..., str], nvdisasm: Callable[..., str]
) -> None:
    """Each mode, on architectures that go round with the kernels."""
    first = sorted(KERNELS.glob("*.cu")).index(source) * len(MODES)
    cubin = tmp_path / "out.cubin"
    for number, mode in enumerate(MODES, first):
        arch = ARCHES[number % len(ARCHES)]
        nvcc("-cubin", *mode.split(), f"-arch=sm_{arch}", source, "-o", cubin)
        for options in ("-c", "-c -hex -gi"):
            theirs = nvdisasm(*options.split(), cubin)
            ours = listing(cubin.read_bytes(), OPTIONS[options])
            assert ours.splitlines() == theirs.splitlines(), (mode, arch, options)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_command() -> None:
    path = DATA / "lines_relocatable_sm_120.cubin"
    assert run("disasm", path) == listing(path.read_bytes(), ListingOptions())
    source = run("disasm", "--source", path)
    assert '\t//## File "/src/lines.cu", line 9 inlined at "/src/lines.cu", line 13\n' in source
    assert "inlined" not in run("disasm", "--source-line", path)
    assert '\t//## File ".nv_debug_ptx_txt' in run("disasm", "--source-ptx", path)


def test_one_function() -> None:
    text = run("disasm", "-k", "apart(int)", DATA / "lines_relocatable_sm_120.cubin")
    assert text.count("//--------------------- .text.") == 1
    assert ".text._Z5aparti:" in text


def test_relocated_operands() -> None:
    text = run("disasm", DATA / "lines_relocatable_sm_120.cubin")
    assert "CALL.ABS.NOINC `(_Z6offseti) ;" in text
    assert "32@lo((_Z6secondPii + .L_x_" in text
    debug = run("disasm", DATA / "debug_relocatable_sm_75.cubin")
    assert "CALL.ABS.NOINC `(_Z6offseti) ;" in debug


def test_several_cubins_are_headed() -> None:
    text = run("disasm", DATA / "size.fatbin")
    heads = [line for line in text.splitlines() if line.startswith("// ")]
    assert heads == [
        f"// {DATA / 'size.fatbin'}, module 0 entry 0, sm_75",
        f"// {DATA / 'size.fatbin'}, module 0 entry 2, sm_90a",
    ]
