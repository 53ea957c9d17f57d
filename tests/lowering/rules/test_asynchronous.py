"""Asynchronous copies and arrival barriers, translated and run on the emulator."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.sass import decode_section
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.semantics.memory.asynchronous import arrived, arrived80
from sassxlate.domain.numpy_lanes import Vec, Vectors
from sassxlate.errors import LoweringError
from sassxlate.lowering.verify.rules.one_instruction import selected
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS, Contract
from tests.disasm.sass.interpreter.launches import Prepared
from tests.lowering.emulated import KERNELS, check, launch, load, run

M32 = 0xFFFFFFFF


@pytest.mark.parametrize("arch", [80, 90])
def test_async_copies(arch: int) -> None:
    done = check(load("async_copies", arch), "async_copies", seed=3, strict=True)
    names = [i.mnemonic for b in done.cfg.blocks for i in b.instructions]
    assert names.count("LDGSTS") == 10


@pytest.mark.parametrize("arch", [80, 90])
def test_arrive_barriers(arch: int) -> None:
    """Lanes of one warp wait for each other in different arms, and waves yield at every round."""
    name = "arrive_barriers"
    actual, expected, _ = run(load(name, arch), name, seed=4, fuel=1)
    assert CONTRACTS[name].differences(actual, expected) == []


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
def test_arrive_barriers_strict(arch: int) -> None:
    check(load("arrive_barriers", arch), "arrive_barriers", seed=5, strict=True)


def _generic_arrivals(
    a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]
) -> None:
    for first in range(0, grid * block, block):
        x = [(p + q * n) & M32 for p, q in zip(a[first:][:block], b[first:][:block], strict=True)]
        for _ in range(4):
            x = [(x[t] * 3 + x[(t + 33) % block]) & M32 for t in range(block)]
        for _ in range(3):
            x = [x[t] if t & 1 else (x[t] * 5 + x[t ^ 2]) & M32 for t in range(block)]
        out[first : first + block] = x


_GENERIC = Path(__file__).with_name("generic_arrivals.cubin")


def test_arrivals_by_generic_addresses() -> None:
    """ATOM.ARRIVE and ATOM.POPC.INC; one block, so that most lanes wait for another wave."""
    contract = Contract("generic_arrivals", _generic_arrivals, 1, 128, 7, 128)
    out, done = launch(parse_cubin(_GENERIC.read_bytes()), contract, 8, fuel=1)
    assert contract.differences(out, contract.expected(*contract.inputs(8))) == []
    start = np.zeros(contract.out_words, np.uint32)
    prepared = Prepared(parse_cubin(_GENERIC.read_bytes()), contract.name, (1, 1, 1), (128, 1, 1),
                        (*contract.inputs(8), start), contract.n)  # fmt: skip
    assert contract.differences(prepared.interpreted(), out) == []
    forms = {(i.mnemonic, i.modifiers[1]) for b in done.cfg.blocks for i in b.instructions
             if i.mnemonic == "ATOM"}  # fmt: skip
    assert forms == {("ATOM", "ARRIVE"), ("ATOM", "POPC")}


# --- the words of barriers ------------------------------------------------------------------------


def _word(value: int) -> Vec:
    return Vec(np.array([value], np.uint64), 64)


def test_phases_of_sm_80() -> None:
    """As nvcc writes mbarrier.init: 0x40000000 - n and 0x80000000 - n."""
    n = 3
    phases: list[int] = []
    state = (0x80000000 - n) << 32 | (0x40000000 - n)
    for _ in range(7):
        state = int(arrived80(Vectors(), _word(state)).v[0])
        phases.append(state >> 63)
        assert state & M32 == 0x40000000 - n
    assert phases == [0, 0, 1, 1, 1, 0, 0]


def test_bytes_hold_a_phase_open() -> None:
    def after(state: int, action: str, count: int) -> int:
        register = Vec(np.array([count], np.uint64), 32)
        return int(arrived(Vectors(), _word(state), action, register, False).v[0])

    start = (0x100000 - 1) << 43 | (0x100000 - 1) << 1
    announced = after(start, "A0TR", 512)
    waits = after(announced, "A1T0", 0)
    assert waits >> 63 == 0
    assert after(waits, "A0TX", 512) == start | 1 << 63
    # A byte announced and subtracted again leaves the word as it was.
    assert after(after(start, "A0T1", 0), "TRANSCNT", 0) == start


# --- copies that arrive ---------------------------------------------------------------------------


def _copy_barriers(
    a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]
) -> None:
    for first in range(0, grid * block, block):
        mine, other = a[first : first + block], b[first : first + block]
        for t in range(block):
            x = (mine[t ^ 5] * 3 + other[t ^ 9]) & M32
            for k in range(6):
                x = (x * 3 + mine[((t ^ 3) + 8 * k) % 128]) & M32
            out[first + t] = x


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("arch", [80, 90])
def test_copy_barriers(arch: int, tmp_path: Path) -> None:
    """cuda::memcpy_async with a barrier (bulk copies on sm_90) and in a cuda::pipeline."""
    source, cubin = Path(__file__).with_name("copy_barriers.cu"), tmp_path / "copies.cubin"
    flags = ["-O3", "-std=c++17", f"-arch=sm_{arch}", f"-I{KERNELS}", "-cubin"]
    subprocess.run(["nvcc", *flags, "-o", str(cubin), str(source)], check=True)
    contract = Contract("copy_barriers", _copy_barriers, 3, 128, 384, 384)
    out, done = launch(parse_cubin(cubin.read_bytes()), contract, 6)
    expected: NDArray[np.uint32] = contract.expected(*contract.inputs(6))
    assert contract.differences(out, expected) == []
    used = {i.mnemonic for b in done.cfg.blocks for i in b.instructions if _is_copy(i)}
    assert used == ({"LDGSTS", "UBLKCP"} if arch == 90 else {"LDGSTS"})


def _is_copy(ins: Instruction) -> bool:
    return ins.mnemonic in ("LDGSTS", "UBLKCP")


# --- bulk copies ----------------------------------------------------------------------------------

_TO_SHARED, _FROM_SHARED = 1 << 73, 1 << 74
_BULK = 0x0001E4000800140600001A0A040073BA & ~(_TO_SHARED | _FROM_SHARED)


def _bulk(bits: int) -> Instruction:
    (ins,) = decode_section((_BULK | bits).to_bytes(16, "little"), 90).instructions
    assert isinstance(ins, Instruction)
    return ins


def test_ways_of_bulk_copies() -> None:
    for bits, first, second in (
        (_TO_SHARED, "global_load_b128", "ds_store_b128"),
        (_FROM_SHARED, "ds_load_b128", "global_store_b128"),
    ):
        items = selected(_bulk(bits), "together").items
        ops = {i.op for i in items if isinstance(i, Inst) and "128" in i.op}
        assert ops == {first, second}


@pytest.mark.parametrize("bits", [0, _TO_SHARED | _FROM_SHARED])
def test_copies_within_one_memory_are_refused(bits: int) -> None:
    with pytest.raises(LoweringError):
        selected(_bulk(bits), "together")


def _copied(a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]) -> None:
    words = grid * n // 4
    out[:words] = a[:words]


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("arch", [90, 100, 120])
def test_bulk_copies_both_ways(arch: int, tmp_path: Path) -> None:
    """sm_120's code calls a function of the driver if the memory is another block's."""
    source, cubin = Path(__file__).with_name("bulk_copies.cu"), tmp_path / "bulk.cubin"
    subprocess.run(
        ["nvcc", f"-arch=sm_{arch}", "-cubin", "-o", str(cubin), str(source)], check=True
    )
    contract = Contract("bulk_copies", _copied, 2, 512, 1040, 520)
    out, _ = launch(parse_cubin(cubin.read_bytes()), contract, 7)
    expected: NDArray[np.uint32] = contract.expected(*contract.inputs(7))
    assert contract.differences(out, expected) == []
