"""Hosts built around a fatbin by the C++ compiler, and fatbins built byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"

_HOST = """
#include <stdint.h>
asm(".section .nv_fatbin, \\"a\\"\\n .p2align 3\\n{blobs} .previous\\n");
struct Wrapper {{ int32_t magic, version; const void *data, *aux; }};
{externs}
__attribute__((section(".nvFatBinSegment"), used)) static Wrapper wrappers[] = {{ {wrappers} }};
{main}
"""


def entry(
    payload: bytes,
    *,
    kind: int = 2,
    arch: int = 80,
    flags: int = 0x11,
    compressed: int = 0,
    plain: int = 0,
    version: int = 0x0101,
    header: int = 64,
    stored: int | None = None,
    name: tuple[int, int] = (64, 0),
    extra: bytes = b"",
) -> bytes:
    """One entry of a fatbin with every field of its header as given."""
    body = payload + bytes(-len(payload) % 8)
    size = len(body) if stored is None else stored
    fields = (kind, version, header + len(extra), size, compressed, 0, 8, 1, arch, *name, flags, 0)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields, plain) + extra + body


def container(*entries: bytes, magic: int = 0xBA55ED50, version: int = 1, size: int = -1) -> bytes:
    """A fatbin of those entries."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", magic, version, 16, len(body) if size < 0 else size) + body


@pytest.fixture(scope="session")
def host_program(
    tmp_path_factory: pytest.TempPathFactory, gxx: Callable[..., str]
) -> Callable[..., Path]:
    """Builds a host file around fatbins: (name, fatbins, g++ flags, wrapper version) -> path."""
    folder = tmp_path_factory.mktemp("hosts")

    def build(
        name: str,
        fatbins: Sequence[Path],
        *flags: str,
        version: int = 1,
        wrapped: bool = True,
    ) -> Path:
        target = folder / name
        numbers = range(len(fatbins))
        blobs = "".join(
            f' .p2align 3\\n .hidden fatbin{i}\\nfatbin{i}:\\n .incbin \\"{path}\\"\\n'
            for i, path in enumerate(fatbins)
        )
        source = folder / f"{name}.cpp"
        source.write_text(
            _HOST.format(
                blobs=blobs,
                externs="".join(
                    f'extern "C" __attribute__((visibility("hidden"))) const char fatbin{i}[];\n'
                    for i in numbers
                ),
                wrappers=", ".join(
                    f"{{0x466243b1, {version}, fatbin{i}, nullptr}}" for i in numbers
                ),
                main="int main() { return 0; }",
            )
            if wrapped
            else f'asm(".section .nv_fatbin, \\"a\\"\\n .p2align 3\\n{blobs} .previous\\n");\n'
            "int main() { return 0; }\n"
        )
        gxx("-O1", *flags, source, "-o", target)
        return target

    return build
