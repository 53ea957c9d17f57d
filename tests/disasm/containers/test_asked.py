"""What is asked for is found, and nothing else of a file is unpacked or read."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sassxlate.disasm.containers import demangle, load, load_bytes, parse_cubin
from sassxlate.disasm.containers.function_names import function_names
from sassxlate.disasm.inputs import kernel_matches, matching_images
from sassxlate.errors import ContainerError

from .conftest import container, entry

FIXTURES = Path(__file__).parents[3] / "fixtures"
COLLATZ = FIXTURES / "programs" / "collatz"
CUBINS = sorted((FIXTURES / "kernels" / "sm_80").glob("*.cubin"))[:2]


def test_other_architectures_are_not_unpacked() -> None:
    good, bad = CUBINS[0].read_bytes(), bytes(64)
    loaded = load_bytes(container(entry(bad, arch=90), entry(good, arch=80)))
    assert [cubin.arch for _, cubin in loaded.cubins(arch=80)] == [80]
    assert len(list(matching_images(loaded, (), "sm_80"))) == 1
    with pytest.raises(ContainerError):
        list(loaded.cubins())


def test_cubins_without_the_kernel_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (path.read_bytes() for path in CUBINS)
    loaded = load_bytes(container(entry(one), entry(other)))
    name = parse_cubin(other).kernels[0].name
    read: list[bytes] = []

    def noted(data: bytes) -> object:
        read.append(data)
        return parse_cubin(data)

    monkeypatch.setattr("sassxlate.disasm.containers.host.parse_cubin", noted)
    found = list(matching_images(loaded, (name,), None))
    assert [kernel.name for _, _, cubin in found for kernel in cubin.kernels] == [name]
    assert len(read) == 1


def test_names_are_those_of_every_function() -> None:
    for path in (COLLATZ, *CUBINS):
        for _, image, cubin in load(path).images():
            names = set(function_names(image))
            assert {code.name for code in (*cubin.kernels, *cubin.functions)} <= names


def test_names_within_names_are_bounded() -> None:
    """A table of nothing but ".text.": each place would be a name up to the end, 4 GB of them."""
    cubin = bytearray(CUBINS[0].read_bytes())
    (shoff,) = struct.unpack_from("<Q", cubin, 40)
    (names,) = struct.unpack_from("<H", cubin, 62)
    table = b".text." * 40_000
    struct.pack_into("<QQ", cubin, shoff + 64 * names + 24, len(cubin), len(table))
    with pytest.raises(ContainerError, match=r"SX0107.*names share bytes"):
        list(function_names(bytes(cubin) + table))


@pytest.mark.parametrize("pattern", ["collatz", "*int*", "_Z7collatz*", "nothing"])
def test_a_pattern_finds_what_reading_everything_finds(pattern: str) -> None:
    loaded = load(COLLATZ)
    everything = [
        origin
        for origin, cubin in loaded.cubins()
        if any(kernel_matches(k.name, demangle(k.name), (pattern,)) for k in cubin.kernels)
    ]
    assert [origin for origin, _, _ in matching_images(loaded, (pattern,), None)] == everything
    assert bool(everything) == (pattern != "nothing")


def test_a_broken_header_is_an_error_of_the_search() -> None:
    loaded = load_bytes(container(entry(CUBINS[0].read_bytes()[:48])))
    with pytest.raises(ContainerError, match="SX0103"):
        list(matching_images(loaded, ("x",), None))
