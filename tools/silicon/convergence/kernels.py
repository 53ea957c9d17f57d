"""All kernels to run, and the interpreter's results for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.disasm.sass.interpreter import Order, ScheduleOptions, run
from sassxlate.lowering.trace.interpreter_launch import launch_of
from tools.silicon.convergence import drawn, listing, written
from tools.silicon.launches.cases import with_scheduled

from .events import LANES, MOST, WORDS, Event, events

COUNTS = {
    "tame": 80, "hints": 140, "breaks": 120, "calls": 160, "recursion": 200, "deeper": 140,
    "saves": 140, "wild": 140, "wilder": 140,
}  # fmt: skip
SIZE = 4 * (LANES * MOST * WORDS + 0x4000)  # bytes of ``out``
_OUT, _A, _B = 0x7000_0020_0000, 0x7000_0000_0000, 0x7000_0010_0000
LIMIT = 60_000


@dataclass(frozen=True, slots=True)
class Kernel:
    """``heavy``: its events hold the barriers, too."""

    name: str
    lines: tuple[str, ...]
    heavy: bool

    @property
    def kind(self) -> str:
        return self.name.partition(" ")[0]

    def code(self) -> bytes:
        text = listing.scheduled(listing.expanded(self.lines, self.heavy))
        return assemble_listing(text, 90)[""]

    def interpreted(self, order: Order = Order.SILICON) -> tuple[Event, ...] | None:
        """Raises InterpretError."""
        cubin = parse_cubin(with_scheduled(self.code()))
        (kernel,) = cubin.kernels
        a = np.array(drawn.data(self.name), np.uint32)
        pieces = {_A: a, _B: np.zeros(64, np.uint32), _OUT: np.zeros(SIZE // 4, np.uint32)}
        params = b"".join(at.to_bytes(8, "little") for at in (_A, _B, _OUT)) + bytes(4)
        memory = {at: x.view(np.uint8).copy() for at, x in pieces.items()}
        launch = launch_of(cubin, kernel, params, ((1, 1, 1), (LANES, 1, 1)), memory, {}, shared=0)
        done = run(launch, ScheduleOptions(order, LIMIT))
        words = done.device.read(_OUT, SIZE).view(np.uint32)[: LANES * MOST * WORDS]
        return events(words.reshape(LANES, MOST, WORDS), self.heavy)


def kernel(name: str) -> Kernel:
    kind, _, rest = name.partition(" ")
    if kind.startswith("written"):
        return Kernel(name, tuple(dict(written.kernels())[rest]), kind == "written")
    lines, heavy = drawn.kernel(kind, int(rest))
    return Kernel(name, tuple(lines), heavy)


def kernels() -> Iterator[Kernel]:
    for name, lines in written.kernels():
        yield Kernel(f"written {name}", tuple(lines), True)
        yield Kernel(f"writtenlight {name}", tuple(lines), False)
    for kind, count in COUNTS.items():
        for seed in range(count):
            yield kernel(f"{kind} {seed}")
