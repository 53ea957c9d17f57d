"""Whole launches that an H200 ran (``tools/silicon/launches``): digests of all memory they left,
against the interpreter and against translations on the emulated device."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.errors import CfgError, EmulatorError, LoweringError
from sassxlate.lowering.convergence.lane_masks import TRAP_TOKEN
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.trace.interpreter_launch import module_images
from tools.silicon.launches import giving, kept
from tools.silicon.launches.cases import Case, cases
from tools.silicon.launches.interpreted import interpreted
from tools.silicon.launches.measure import digest

Words = NDArray[np.uint32]
DIGESTS = kept.digests()
CASES = {c.name: c for c in cases() if isinstance(c, Case) and c.name in DIGESTS}
_SPINS = ("spin", "lane_flags", "lock_in_function", "far_breaks", "atomics")
QUICK = sorted(n for n in CASES if "#" not in n or (n.endswith("#0") and not n.startswith(_SPINS)))


def _translated(case: Case) -> list[Words]:
    cubin = parse_cubin(case.cubin())
    (kernel,) = (k for k in cubin.kernels if k.name == case.kernel)
    done = translate_kernel(cubin, case.kernel)
    device = EmulatedDevice(1 << 23)
    inputs = case.inputs()
    places = [device.alloc(x.tobytes()) for x in inputs]
    images, banks = module_images(cubin, kernel, device.alloc)
    for place, data in images.items():
        device.write(place, data)
    named = {f"bank{number}": place for number, place in banks.items()}
    grid, block = case.shape
    segment = done.launch.kernarg(case.params(places), block, grid, named, case.shared)
    run_code_object(
        done.code_object, case.kernel, grid, block, segment, device, CompileOptions(),
        dynamic_lds=case.shared,
    )  # fmt: skip
    pairs = zip(places, inputs, strict=True)
    return [np.frombuffer(device.read(at, x.nbytes), np.uint32) for at, x in pairs]


# Of the random ones each eighth; spinning kernels take the interpreter seconds.
_RANDOM = [n for n in QUICK if n.split()[-1].isdecimal()]
INTERPRETED = [n for n in QUICK if n not in _RANDOM or _RANDOM.index(n) % 8 == 0]
TRANSLATED = [
    n
    for n in (
        "barriers", "arrivals", "exits", "sleeps", "effects memory_barriers", "asked_join",
        "asked_mask", *_RANDOM[::20],
    )
    if n in CASES and not n.startswith("jumps")
]  # fmt: skip


def test_there_are_digests() -> None:
    assert len(CASES) > 180
    assert {"barriers", "effects memory_barriers", "calls#0"} <= set(CASES)


@pytest.mark.parametrize("name", INTERPRETED)
def test_interpreter(name: str) -> None:
    assert digest(interpreted(CASES[name]).memory) == DIGESTS[name]


@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(set(CASES) - set(INTERPRETED)))
def test_interpreter_on_all(name: str) -> None:
    assert digest(interpreted(CASES[name]).memory) == DIGESTS[name]


@pytest.mark.parametrize("name", TRANSLATED)
def test_translation(name: str) -> None:
    assert digest(_translated(CASES[name])) == DIGESTS[name]


@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(set(CASES) - set(TRANSLATED)))
def test_translation_of_all(name: str) -> None:
    try:
        left = _translated(CASES[name])
    except LoweringError as refused:
        pytest.skip(str(refused))
    except CfgError as refused:
        assert name.startswith("jumps ")
        pytest.skip(str(refused))
    except EmulatorError as stopped:
        # Handwritten jumps, to numbers in registers: the cubin has no list of their targets.
        if not re.search(rf": trap fault in .*: {TRAP_TOKEN:#x}$", str(stopped)):
            raise
        assert name == "calls" or name.startswith("jumps ")
        pytest.skip(str(stopped))
    assert digest(left) == DIGESTS[name]


@pytest.mark.parametrize("name", ["meeting 66", "meeting 77"])
def test_bsync_does_not_wait_for_lanes_that_gave_way(name: str) -> None:
    """On silicon; the interpreter waits for them, which is one of its orders."""
    (line,) = (x for x in giving.KEPT.read_text().splitlines() if x.endswith(f" {name}"))
    verdict, real, _ = line.split(" ", 2)
    case = next(c for c in cases() if c.name == name)
    left, apart = giving.model(case)
    assert (verdict, left) == ("differ", real)
    assert "SHFL" in apart
    assert digest(interpreted(case).memory) != real
