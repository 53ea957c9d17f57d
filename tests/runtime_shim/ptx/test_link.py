"""The driver's linker, as a function of its pieces."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.disasm.containers import parse_cubin
from sassxlate.errors import ShimError
from sassxlate.runtime_shim.ptx.errors import PtxError
from sassxlate.runtime_shim.ptx.link import Input, link
from sassxlate.runtime_shim.ptx.options import JitOptions
from sassxlate.runtime_shim.ptx.tools import Found, Name
from sassxlate.runtime_shim.ptx.workshop import Workshop

SUPPORTED = frozenset({75, 80, 86, 90, 100})


@pytest.fixture
def shop() -> Workshop:
    """The tools of this machine; skips without them."""
    names: tuple[Name, ...] = ("ptxas", "nvlink")
    for name in names:
        if next(iter(Found(name, os.environ)), None) is None:
            pytest.skip(f"{name} is not installed (pip install '.[test]')")
    return Workshop(None, dict(os.environ), SUPPORTED)


def head(target: str) -> str:
    return f".version 8.0\n.target {target}\n.address_size 64\n"


def caller(target: str = "sm_75") -> Input:
    """A kernel that calls a function of another piece."""
    text = head(target) + ".extern .func g();\n.visible .entry k() { call g; ret; }\n"
    return Input("ptx", "caller", text.encode())


def callee(target: str = "sm_75") -> Input:
    return Input("ptx", "callee", (head(target) + ".visible .func g() { ret; }\n").encode())


@pytest.mark.parametrize(
    ("capability", "target", "arch"),
    [(80, "sm_75", (80, "")), (82, "sm_75", (80, "")), (90, "sm_90a", (90, "a"))],
)
def test_architecture(shop: Workshop, capability: int, target: str, arch: tuple[int, str]) -> None:
    """One for all pieces: the device's, with the letter that a piece asks for."""
    made = link(shop, [caller(target), callee(target)], capability, JitOptions())
    cubin = parse_cubin(made.cubin)
    assert (cubin.arch, cubin.variant) == arch
    assert [k.name for k in cubin.kernels] == ["k"]
    assert not cubin.relocatable


def test_pieces_of_another_architecture(shop: Workshop) -> None:
    """Machine code that does not fit is refused by nvlink, PTX for a newer device before."""
    for_80 = Input("cubin", "for_80", _relocatable(shop, 80))
    with pytest.raises(PtxError, match=r"SX0748: nvlink .*arch"):
        link(shop, [for_80, callee()], 90, JitOptions())
    with pytest.raises(PtxError, match="SX0743"):
        link(shop, [caller(), callee("sm_90")], 80, JitOptions())


def _relocatable(shop: Workshop, capability: int) -> bytes:
    from sassxlate.runtime_shim.ptx.assemble import assemble
    from sassxlate.runtime_shim.ptx.source import read_source

    source = read_source(caller().data)
    return assemble(shop, source, capability, JitOptions(), relocatable=True).cubin


def test_damaged_and_none(shop: Workshop) -> None:
    """Bytes that are no cubin, no fat binary; no piece at all."""
    for kind, data in (("cubin", b"\x7fELF"), ("fatbin", b"\x50\xed\x55\xba")):
        piece = Input("cubin" if kind == "cubin" else "fatbin", "bad", data)
        with pytest.raises(PtxError, match="SX0770: bad: "):
            link(shop, [piece], 80, JitOptions())
    with pytest.raises(PtxError, match="SX0748: there is nothing to link"):
        link(shop, [], 80, JitOptions())
    rubbish = Input("object", "rubbish", b"no object")
    with pytest.raises(PtxError, match=r"SX074[58]: .*nvlink"):
        link(shop, [rubbish, callee()], 80, JitOptions())


def test_fat_binaries(shop: Workshop, nvcc: Callable[..., str], tmp_path: Path) -> None:
    """Of the entries the device's machine code, otherwise PTX, alone and among others."""
    source = tmp_path / "callee.cu"
    source.write_text('extern "C" __device__ void g() {}\nextern "C" __global__ void own() {}\n')
    codes = {"sm_80": "arch=compute_80,code=sm_80", "ptx": "arch=compute_75,code=compute_75"}
    for name, code in codes.items():
        for rdc in ("true", "false"):
            path = tmp_path / f"{name}.{rdc}.fatbin"
            nvcc("-fatbin", f"-rdc={rdc}", f"-gencode={code}", source, "-o", path)
            piece = Input("fatbin", name, path.read_bytes())
            alone = parse_cubin(link(shop, [piece], 80, JitOptions()).cubin)
            assert ([k.name for k in alone.kernels], alone.relocatable) == (["own"], False)
            if rdc == "false":  # a whole program has g for itself alone
                lacking = "sm_80 is linked already" if name == "sm_80" else ".*reference to 'g'"
                with pytest.raises(PtxError, match=f"SX0748: {lacking}"):
                    link(shop, [caller(), piece], 80, JitOptions())
                continue
            both = parse_cubin(link(shop, [caller(), piece], 80, JitOptions()).cubin)
            assert {k.name for k in both.kernels} == {"k", "own"}


def test_names_of_pieces(shop: Workshop) -> None:
    """Whatever an application calls them, they are files of the folder alone."""
    bad = ("../../up", "-o", "a b\nc", "é" * 300, "")
    pieces = [Input("ptx", bad[0], caller().data), Input("ptx", bad[1], callee().data)]
    for number, name in enumerate(bad[2:]):
        text = head("sm_75") + f".visible .func f{number}() {{ ret; }}\n"
        pieces.append(Input("ptx", name, text.encode()))
    made = link(shop, pieces, 80, JitOptions())
    assert [k.name for k in parse_cubin(made.cubin).kernels] == ["k"]


def test_without_nvlink(shop: Workshop) -> None:
    """PTX alone needs none; several pieces do."""
    none = Workshop(None, {**shop.environment, "SASSXLATE_NVLINK": "/nonexistent"}, SUPPORTED)
    assert link(none, [callee()], 80, JitOptions()).cubin
    with pytest.raises(ShimError, match="SX0747: /nonexistent is not used"):
        link(none, [caller(), callee()], 80, JitOptions())
