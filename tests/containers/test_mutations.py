"""Damaged files: each truncation and bit flip ends in an answer or a typed error with a place."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sassxlate.disasm.containers import load_bytes, parse_cubin
from sassxlate.errors import ContainerError

from .conftest import DATA

COUNT = 2000
SLOWEST = 5.0  # seconds for one file; the median is below a millisecond


def mutations(data: bytes, seed: int, count: int = COUNT) -> Iterator[bytes]:
    """Truncations, bit flips (more of them where headers stand), and overwritten words."""
    random_ = random.Random(seed)
    for number in range(count):
        if number % 4 == 0:
            yield data[: random_.randrange(len(data))]
            continue
        changed = bytearray(data)
        for _ in range(random_.choice((1, 1, 1, 2, 8))):
            if number % 4 == 1:
                at = random_.randrange(min(256, len(data)))
            elif number % 4 == 2:
                at = max(0, len(data) - 1 - random_.randrange(min(3000, len(data))))
            else:
                at = random_.randrange(len(data))
            if random_.random() < 0.8:
                changed[at] ^= 1 << random_.randrange(8)
            else:
                value = random_.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))
                changed[at : at + 4] = value.to_bytes(4, "little")
        yield bytes(changed[: len(data)])


def refusal(read: Callable[[bytes], object], data: bytes) -> ContainerError | None:
    """The error that reading ends in; any other exception fails the test."""
    try:
        read(data)
    except ContainerError as error:
        return error
    return None


def check(originals: list[bytes], read: Callable[[bytes], object], seed: int) -> Counter[str]:
    """Reads every mutation; counts the codes of the errors, "read" for what could be read."""
    outcomes: Counter[str] = Counter()
    each = -(-COUNT // len(originals))
    for index, original in enumerate(originals):
        for number, data in enumerate(mutations(original, seed + index, each)):
            start = time.perf_counter()
            error = refusal(read, data)
            if error is not None:
                assert error.where.offset is not None, f"{number}: {error}"
                assert error.code.startswith("SX01")
                assert "\n" not in str(error)
            outcomes[error.code if error else "read"] += 1
            assert time.perf_counter() - start < SLOWEST, f"mutation {number} of file {index}"
    assert outcomes.total() >= COUNT
    return outcomes


def load_all(data: bytes) -> None:
    loaded = load_bytes(data, "mutated")
    for _ in loaded.cubins(unlinked=True):
        pass


def test_cubins() -> None:
    originals = [p.read_bytes() for p in sorted(DATA.glob("*.cubin"))]
    outcomes = check(originals, parse_cubin, seed=1)
    assert outcomes["read"] > 100  # a flipped immediate is still a program
    assert len(outcomes) > 8


def test_fatbins() -> None:
    originals = [p.read_bytes() for p in sorted(DATA.glob("*.fatbin"))]
    outcomes = check(originals, load_all, seed=2)
    assert outcomes["read"] > 20
    assert len(outcomes) > 6


def test_executables(host_program: Callable[..., Path]) -> None:
    fatbins = [DATA / "named.fatbin", DATA / "linked.fatbin"]
    originals = [
        host_program("mutated", fatbins, "-pie", "-fPIE").read_bytes(),
        host_program("mutated_static", fatbins, "-no-pie", "-fno-pie", "-s").read_bytes(),
        host_program("mutated_shared", fatbins, "-shared", "-fPIC").read_bytes(),
        (DATA / "relocatable.o").read_bytes(),
    ]
    outcomes = check(originals, load_all, seed=3)
    assert outcomes["read"] > 100
    assert len(outcomes) > 6


@pytest.mark.sweep
def test_every_byte_of_a_cubin() -> None:
    """Each byte set to 0, 0x7f and 0xff in turn."""
    original = (DATA / "cuda13_sm_90.cubin").read_bytes()
    for at in range(len(original)):
        for value in (0, 0x7F, 0xFF):
            data = original[:at] + bytes([value]) + original[at + 1 :]
            error = refusal(parse_cubin, data)
            assert error is None or error.where.offset is not None
