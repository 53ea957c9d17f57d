"""Manifests: relocations of data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sassxlate.disasm.containers.values import Global, Reloc
from sassxlate.errors import ContainerError
from sassxlate.runtime_shim.service import manifest

from .conftest import CUBIN


@pytest.mark.parametrize("kind", [2, 35])
def test_addresses_and_descriptors(kind: int) -> None:
    """R_CUDA_64, and R_CUDA_FUNC_DESC_64 of libcudadevrt's tables of functions, are addresses."""
    cubin = replace(
        CUBIN,
        relocs=(
            Reloc(".nv.constant4", 8, kind, "table", 4),
            Reloc(".nv.constant4", 16, kind, "vprintf", 0),
        ),
    )
    lines = manifest.write("key", cubin).text.splitlines()
    numbers = {line.split()[-1]: line.split()[1] for line in lines if line.startswith("section")}
    bank4, bank3 = numbers[".nv.constant4"], numbers[".nv.constant3"]
    assert f"reloc {bank4} 8 abs64 {bank3} 4" in lines
    assert f"unresolved {bank4} 16 8 vprintf" in lines


def test_largest_blocks() -> None:
    """Only of kernels that have room for fewer threads than on an NVIDIA GPU; a line of its own."""
    lines = manifest.write("key", CUBIN, {CUBIN.kernels[0].name: 768}).text.splitlines()
    (at,) = [n for n, line in enumerate(lines) if line.startswith("fits")]
    assert lines[at] == "fits 768"
    before = [line for line in lines[:at] if line.startswith("kernel ")]
    assert before[-1].endswith(f" {CUBIN.kernels[0].name}")
    assert "fits" not in manifest.write("key", CUBIN).text


def test_a_managed_variable() -> None:
    """What makes it one is in the symbol; the library has to be told."""
    managed = Global("everywhere", ".nv.global", 16, 8, managed=True)
    lines = manifest.write("key", replace(CUBIN, globals=(*CUBIN.globals, managed))).text
    kinds = [line.split()[0] for line in lines.splitlines() if line.endswith(("er", "everywhere"))]
    assert kinds == ["global", "managed"]


def test_a_relocation_that_is_not_known() -> None:
    cubin = replace(CUBIN, relocs=(Reloc(".nv.constant4", 8, 99, "table", 4),))
    with pytest.raises(ContainerError) as caught:
        manifest.write("key", cubin)
    assert caught.value.code == "SX0711"


@pytest.mark.parametrize(
    "damage",
    [
        {"globals": (Global("lies", ".nv.constant3", 8, 1 << 40),)},
        {"relocs": (Reloc(".nv.constant4", 1 << 20, 2, "table", 0),)},
    ],
)
def test_what_lies_outside_its_section(damage: dict[str, tuple[Global | Reloc, ...]]) -> None:
    """The library would give out an address beyond the module's memory."""
    with pytest.raises(ContainerError) as caught:
        manifest.write("key", replace(CUBIN, **damage))  # type: ignore[arg-type]
    assert caught.value.code == "SX0711"
