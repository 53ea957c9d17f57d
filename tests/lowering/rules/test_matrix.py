"""Matrix products on the emulated device: nvcc's code for whole programs, and refusals."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.rdna3 import encode_items
from sassxlate.disasm.rdna3.instruction import Item
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.errors import EmulatorError, LoweringError
from sassxlate.lowering.passes import made_safe
from sassxlate.lowering.passes.long_branches import expand_long_branches
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import Target
from sassxlate.lowering.verify.rules import warps
from sassxlate.lowering.verify.rules.one_instruction import selected
from tests.disasm.sass.interpreter.launches import Prepared, with_code
from tests.disasm.sass.interpreter.launches import assembled as code_of

HERE = Path(__file__).resolve().parent
WARPS, ROUNDS = 3, 3
_FORMATS = {"halves": np.float16, "shared_halves": np.float16}


@cache
def _cubin(arch: int, folder: Path) -> Cubin:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    made = folder / f"tensor_{arch}.cubin"
    flags = ["-O3", "-std=c++17", f"-arch=sm_{arch}", "-cubin"]
    subprocess.run([nvcc, *flags, HERE / "tensor.cu", "-o", made], check=True, capture_output=True)
    return parse_cubin(made.read_bytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tensor")


def _random(name: str, rng: np.random.Generator, count: int) -> NDArray[Any]:
    """Numbers whose sums lose bits: mantissas of all kinds, exponents near one another."""
    if name == "bytes":
        return rng.integers(-128, 128, count).astype(np.int8)
    wide = rng.standard_normal(count) * 2.0 ** rng.integers(-6, 6, count)
    if name == "doubles":
        return wide
    if name == "brains":
        return (wide.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return wide.astype(np.float16)


def _prepared(name: str, arch: int, folder: Path, values: list[NDArray[Any]]) -> Prepared:
    out = np.zeros(WARPS * 256, np.uint32)
    if name == "halves":  # whose addend it is
        out = np.linspace(-3, 5, out.size, dtype=np.float32).view(np.uint32)
    a, b = (v.view(np.uint32) for v in values)
    shapes = (1, 1, 1), (32 * WARPS, 1, 1)
    return Prepared(_cubin(arch, folder), name, *shapes, (a, b, out), ROUNDS)


def _count(name: str) -> int:
    return (WARPS + ROUNDS) * (32 if name == "doubles" else 256)


_SHORT = {("halves", 90), ("shared_halves", 80), ("doubles", 90), ("bytes", 80), ("brains", 120)}
_ALL = [
    pytest.param(name, arch, marks=[pytest.mark.sweep] * ((name, arch) not in _SHORT))
    for name in ("halves", "shared_halves", "brains", "bytes", "doubles")
    for arch in (80, 90, 120)
]


@pytest.mark.parametrize(("name", "arch"), _ALL)
def test_as_interpreted(name: str, arch: int, folder: Path) -> None:
    rng = np.random.default_rng(arch)
    values = [_random(name, rng, _count(name)) for _ in range(2)]
    prepared = _prepared(name, arch, folder, values)
    ours, theirs = prepared.interpreted(), prepared.translated()
    assert np.flatnonzero(ours != theirs).tolist() == []


@pytest.mark.parametrize("name", ["halves", "bytes"])
def test_as_numpy(name: str, folder: Path) -> None:
    """Integers whose sums are exact in every order."""
    rng = np.random.default_rng(7)
    kind: Any = _FORMATS.get(name, np.int8)
    values = [rng.integers(-9, 10, _count(name)).astype(kind) for _ in range(2)]
    prepared = _prepared(name, 90, folder, values)
    got = prepared.translated().reshape(WARPS, 16, 16)
    a, b = (v.astype(np.int64).reshape(-1, 16, 16) for v in values)
    for warp in range(WARPS):
        want = sum(a[warp + i] @ b[warp + i].T for i in range(ROUNDS))
        if name == "bytes":
            assert np.array_equal(got[warp].view(np.int32), want + 3)
            continue
        before = prepared.inputs[2].view(np.float32).reshape(WARPS, 16, 16)[warp]
        assert np.allclose(got[warp].view(np.float32), before + want, atol=1e-3)


def test_a_kernel_with_several_has_one_copy(folder: Path) -> None:
    done = translate_kernel(_cubin(90, folder), "halves")
    calls = done.assembly.count("s_call_b64")
    assert calls == 10
    assert done.assembly.count("s_setpc_b64") == 1
    assert done.report.rdna_instructions < 10 * 60 + 1000


_PART = """
S2R R0, SR_TID.X ;
ISETP.GE.AND P0, PT, R0, {least}, PT ;
MOV R4, R0 ;
@P0 MOVM.16.MT88 R8, R4 ;
EXIT ;
"""


@pytest.mark.parametrize("least", [0, 3, 32])
def test_part_of_a_warp_traps(least: int) -> None:
    """All lanes of a warp take part in a matrix instruction, or none."""
    cubin = with_code(code_of(_PART.format(least=f"{least:#x}"), 80), 80)
    words = np.zeros(32, np.uint32)
    launch = Prepared(cubin, "divergent_if", (1, 1, 1), (32, 1, 1), (words, words, words), 32)
    if least != 3:
        launch.translated()
        return
    with pytest.raises(EmulatorError, match=r"trap|0x53|SX066"):
        launch.translated()


def test_islands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches that go over islands, with a reach so short that each needs several."""
    found: list[int] = []

    def islands(items: list[Item], _: Target) -> list[Item]:
        safe = encode_items(made_safe(items))
        out = expand_long_branches(safe, 600, 400, limit=600)
        found.append(len(out.items) - len(safe.items))
        return list(out.items)

    monkeypatch.setattr(warps, "made_safe", islands)
    ins = decode(assemble("HMMA.1688.F32 R16, R4, R8, R12 ;", 90, 0), 0, 90)
    assert warps.tried(ins, "together", 32) is None
    assert found[0] > 8


def test_a_shape_that_is_not_known_is_refused() -> None:
    """HMMA.1684.F16 R16, R4, R8, R12, UP0: no layout is known for A in one register."""
    with pytest.raises(LoweringError):
        selected(decode(0xFDE000380400C000000080410723C, 0, 90), "together")
