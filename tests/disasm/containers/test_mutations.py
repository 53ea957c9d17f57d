"""Damaged files: each truncation and bit flip ends in an answer or a typed error with a place."""

from __future__ import annotations

import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sassxlate.disasm.containers import load_bytes, parse_cubin
from sassxlate.disasm.containers.attributes import records
from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.containers.relocations import relocations
from sassxlate.disasm.listing.call_graph import call_graph
from sassxlate.disasm.listing.cubin import Document, ListingOptions
from sassxlate.disasm.listing.image import Image
from sassxlate.errors import ContainerError, SassxlateError

from .conftest import DATA

COUNT = 2000
SLOWEST = 5.0  # seconds of CPU time for one file; the median is below a millisecond


def mutations(data: bytes, seed: int, count: int = COUNT) -> Iterator[bytes]:
    """Truncations, bit flips (more of them in headers), and overwritten words."""
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


def refusal(
    read: Callable[[bytes], object], data: bytes, kind: type[SassxlateError] = ContainerError
) -> SassxlateError | None:
    """The error that reading ends in; any other exception fails the test."""
    try:
        read(data)
    except kind as error:
        return error
    return None


def check(
    originals: list[bytes], read: Callable[[bytes], object], seed: int, count: int = COUNT
) -> Counter[str]:
    """Reads every mutation; counts the codes of the errors, "read" for what could be read."""
    outcomes: Counter[str] = Counter()
    each = -(-count // len(originals))
    for index, original in enumerate(originals):
        for number, data in enumerate(mutations(original, seed + index, each)):
            start = time.process_time()
            error = refusal(read, data)
            if error is not None:
                assert error.where.offset is not None, f"{number}: {error}"
                assert error.code.startswith("SX01")
                assert "\n" not in str(error)
            outcomes[error.code if error else "read"] += 1
            assert time.process_time() - start < SLOWEST, f"mutation {number} of file {index}"
    assert outcomes.total() >= count
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


def in_sections(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Words changed in sections that are chosen evenly, so that small tables are hit too."""
    random_ = random.Random(seed)
    sections = [s for s in Elf(data).sections if len(s.data) >= 4]
    for _ in range(count):
        changed = bytearray(data)
        section = random_.choice(sections)
        for _ in range(random_.choice((1, 1, 2, 4))):
            at = section.offset + random_.randrange(section.size - 3)
            if random_.random() < 0.5:
                changed[at] ^= 1 << random_.randrange(8)
            else:
                value = random_.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, random_.randrange(1 << 32)))
                changed[at : at + 4] = value.to_bytes(4, "little")
        yield bytes(changed)


def listing(options: ListingOptions) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        for _ in Document(data, options).lines():
            pass

    return read


def functions(data: bytes) -> None:
    for _ in Document(data).functions():
        pass


READERS: tuple[Callable[[bytes], object], ...] = (
    listing(ListingOptions(source="inline")),
    listing(ListingOptions(source="ptx", encoding=True, control=True)),
    functions,
    lambda data: records(Elf(data)),
    lambda data: list(relocations(Elf(data))),
    lambda data: call_graph(Image(data)),
)


def check_all(count: int, seed: int, each_by: int = len(READERS)) -> Counter[str]:
    """Runs all readers of cubins on ``count`` damaged ones: ``each_by`` of the readers, by
    turns."""
    originals = [p.read_bytes() for p in sorted(DATA.glob("*.cubin"))]
    outcomes: Counter[str] = Counter()
    each = -(-count // (2 * len(originals)))
    for index, original in enumerate(originals):
        some = mutations(original, seed + index, each)
        more = in_sections(original, seed + index, each)
        for number, data in enumerate([*some, *more]):
            start = time.process_time()
            for turn in range(number, number + each_by):
                read = READERS[turn % len(READERS)]
                error = refusal(read, data, SassxlateError)
                if error is not None:
                    assert error.where.offset is not None or error.code == "SX0204", str(error)
                outcomes[error.code if error else "read"] += 1
            assert time.process_time() - start < SLOWEST, f"mutation {number} of file {index}"
    return outcomes


def archived() -> bytes:
    """An archive with a name of each kind around an object with device code."""
    body = (DATA / "relocatable.o").read_bytes()

    def member(name: bytes, data: bytes) -> bytes:
        size = str(len(data)).encode().ljust(10)
        head = name.ljust(16) + b"0".ljust(24) + b"644".ljust(8) + size + b"`\n"
        return head + data + b"\n" * (len(data) % 2)

    names = b"a_name_of_more_than_sixteen_letters.o/\n"
    return b"!<arch>\n" + b"".join(
        (
            member(b"//", names), member(b"/0", body), member(b"short.o/", body),
            member(b"#1/8", b"bsd.o\0\0\0" + body),
        )
    )  # fmt: skip


def test_everything_that_reads_cubins() -> None:
    outcomes = check_all(300, seed=4, each_by=1)
    assert outcomes["read"] > 100
    assert len(outcomes) > 8


def test_archives() -> None:
    outcomes = check([archived()], load_all, seed=5, count=300)
    assert outcomes["SX0109"] > 10
    assert outcomes["read"] > 30


@pytest.mark.sweep
def test_many() -> None:
    """10,000 damaged cubins and archives in bounded memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = check_all(8000, seed=6, each_by=2)
    for seed in range(7, 9):
        outcomes += check([archived()], load_all, seed=100 * seed)
    assert outcomes.total() > 20_000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400 << 10, f"{grown >> 10} MiB"  # ru_maxrss counts KiB


@pytest.mark.sweep
def test_every_byte_of_a_cubin() -> None:
    """Each byte set to 0, 0x7f and 0xff in turn."""
    original = (DATA / "cuda13_sm_90.cubin").read_bytes()
    for at in range(len(original)):
        for value in (0, 0x7F, 0xFF):
            data = original[:at] + bytes([value]) + original[at + 1 :]
            error = refusal(parse_cubin, data)
            assert error is None or error.where.offset is not None
