"""Times loops of RDNA3 machine code on one core, and compares one with the same loop written by
hand.

The compiled wave is called directly: the figures contain no launch, no fibers, no other thread.  A
second is one of the thread's CPU time, so that other load on the machine matters little.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sassxlate.bench.figures import Figure, ratio
from sassxlate.cfg.rdna3_flow import discover
from sassxlate.errors import UsageError
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.emulate.compiler import compile_code_object
from sassxlate.lowering.emulate.image.abi import RUNTIME_SLOTS, RUNTIME_STOP, WAVE_SIZE, WaveLayout
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import (
    BaselineKernel,
    EmulatedDevice,
    LoadedImage,
    LoadedPack,
)
from sassxlate.lowering.emulate.stencils import pack
from sassxlate.lowering.target import LANES

TARGET = {"avx512": 1e9, "avx2": 4e8}  # wave instructions per second in the loop `alu`
# Constants of `alu`: multiplier, start of the sum, threshold, factors 0.5 and 1.25 in FP32, and the
# rest.
_CONSTANTS = (1664525, 1013904223, 0x80000000, 0x3F000000, 0x3FA00000, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of fixtures/bench; ``turn`` and ``vector`` count instructions per iteration."""

    name: str
    turn: int
    vector: int
    bytes_moved: int = 0  # per lane and iteration


LOOPS = (Loop("alu", 17, 9), Loop("memory", 10, 6, 12), Loop("lds", 13, 8, 12))


class LoopWave:
    """One wave of a loop's kernel, ready to be called: compiled, or of the stencils of `packs`."""

    def __init__(
        self, loop: Loop, code_object: bytes, isa: Isa, packs: list[LoadedPack] | None = None
    ) -> None:
        self.loop = loop
        kernel = read(code_object).kernel(loop.name)
        self._check(read(code_object).text, kernel.entry)
        self._image = _loaded(loop, code_object, isa, packs)
        self.device = EmulatedDevice(1 << 20)
        self.x = self.device.alloc(struct.pack("<1024f", *(i % 7 for i in range(1024))))
        self.y = self.device.alloc(4096)
        self.kernarg = self.device.alloc(48)
        self._lds = ctypes.create_string_buffer(kernel.descriptor.group_segment_size or 4)
        self._stop = ctypes.CFUNCTYPE(None)(_stopped)
        address = ctypes.cast(self._stop, ctypes.c_void_p).value or 0
        self._runtime = (ctypes.c_uint64 * RUNTIME_SLOTS)(*([address] * RUNTIME_SLOTS))
        self._runtime[RUNTIME_STOP] = 0
        self._entry: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._image.entry or 0)
        self._struct = ctypes.create_string_buffer(WAVE_SIZE + 64)

    def _check(self, text: bytes, entry: int) -> None:
        """Checks the instruction counts that the figures depend on."""
        flow = discover(text, entry)
        (turn,) = (b for b in flow.blocks.values() if b.start in b.succs)
        vector = sum(s.inst.op.startswith(("v_", "global_", "ds_")) for s in turn.steps)
        if (len(turn.steps), vector) != (self.loop.turn, self.loop.vector):
            found = f"{len(turn.steps)} instructions, {vector} of them vector"
            raise UsageError(
                "SX0817", f"{self.loop.name}.hsaco has {found} per iteration: built again?"
            )

    def arguments(self, turns: int) -> bytes:
        if self.loop.name == "memory":  # s[8:9] is y, s10 the factor
            return struct.pack("<QIIQf20x", self.x, turns, 0, self.y, 0.5)
        return struct.pack("<QII8I", self.y, turns, 0, *_CONSTANTS)

    def run(self, turns: int) -> float:
        """The CPU seconds of one call."""
        self.device.write(self.kernarg, self.arguments(turns))
        w = bytearray(WAVE_SIZE)
        struct.pack_into("<Q", w, WaveLayout.SGPR, self.kernarg)
        struct.pack_into("<Q", w, WaveLayout.ARGUMENTS, self.kernarg)
        struct.pack_into(f"<{LANES}I", w, WaveLayout.V0, *range(LANES))
        struct.pack_into("<I", w, WaveLayout.ROWS, 3)  # which they are
        struct.pack_into("<II", w, WaveLayout.EXEC, 0xFFFFFFFF, len(self._lds))
        struct.pack_into("<Q", w, WaveLayout.LDS, ctypes.addressof(self._lds))
        struct.pack_into("<QQ", w, WaveLayout.ARENA_BASE, self.device.base, self.device.size)
        struct.pack_into("<Qq", w, WaveLayout.RT, ctypes.addressof(self._runtime), 1 << 62)
        at = -(-ctypes.addressof(self._struct) // 64) * 64
        ctypes.memmove(at, bytes(w), len(w))
        start = time.thread_time()
        self._entry(at)
        return time.thread_time() - start

    def result(self) -> bytes:
        return self.device.read(self.y, 256)


def _loaded(
    loop: Loop, code_object: bytes, isa: Isa, packs: list[LoadedPack] | None
) -> LoadedImage | BaselineKernel:
    if packs is None:
        return LoadedImage(compile_code_object(code_object, loop.name, CompileOptions(isa=isa)))
    code = read(code_object)
    kernel = code.kernel(loop.name)
    kd = kernel.descriptor
    mode = kd.float_mode | kd.dx10_clamp << 8 | kd.ieee_mode << 9
    built = BaselineKernel(packs, code.text, kernel.entry, mode)
    if built.missing:
        packs.append(LoadedPack(pack.make(built.missing, isa, tables=False).data))
        built = BaselineKernel(packs, code.text, kernel.entry, mode)
    if built.entry is None:
        raise UsageError("SX0817", f"{loop.name}.hsaco: no code of stencils: {built.why}")
    return built


def _stopped() -> None:
    # A wave that faulted must not continue, and there is no other stack to go to.
    click.echo("sassxlate: a benchmark's loop left its memory", err=True)
    os._exit(70)


def turns_for(wave: LoopWave, wanted: float) -> int:
    """The number of iterations for which a call takes about ``wanted`` seconds."""
    turns = 1000
    while (taken := wave.run(turns)) < wanted / 4:
        turns = min(turns * 4, int(turns * wanted / max(taken, 1e-6)) + 1, 1 << 31)
    return max(1, min(int(turns * wanted / max(taken, 1e-6)), (1 << 32) - 1))


def _by_hand(source: Path, isa: Isa, directory: Path) -> Any:
    """The loop `alu` compiled by the system's compiler; None if there is no compiler."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return None
    out = directory / "alu.so"
    march = "native" if isa == "avx512" else "x86-64-v3"
    command = [compiler, "-O3", f"-march={march}", "-w", "-shared", "-fPIC", "-o", str(out)]
    done = subprocess.run([*command, str(source)], capture_output=True, check=False)
    return ctypes.CDLL(str(out)).alu if done.returncode == 0 else None


def _rates(loop: Loop, turns: int, values: list[float], isa: Isa) -> Iterator[Figure]:
    per = tuple(turns * loop.turn / s for s in values)
    target = TARGET[isa] if loop.name == "alu" else None
    yield Figure(f"{loop.name}: wave-instructions", "1/s", per, "more", target)
    lanes = tuple(turns * loop.vector * LANES / s for s in values)
    yield Figure(f"{loop.name}: lane operations", "1/s", lanes, "more")
    if loop.bytes_moved:
        moved = tuple(turns * loop.bytes_moved * LANES / s / 1e9 for s in values)
        yield Figure(f"{loop.name}: moved", "GB/s", moved, "more")


def measure(fixtures: Path, repeat: int, isa: Isa, call_s: float) -> list[Figure]:
    """The figures of every loop; ``call_s`` is how long one call takes, in seconds.

    Raises:
        UsageError: SX0817, a loop's code or its result is not as expected.
    """
    figures: list[Figure] = []
    for loop in LOOPS:
        wave = LoopWave(loop, (fixtures / "bench" / f"{loop.name}.hsaco").read_bytes(), isa)
        turns = turns_for(wave, call_s)
        if loop.name != "alu":
            figures += _rates(loop, turns, [wave.run(turns) for _ in range(repeat)], isa)
            continue
        with tempfile.TemporaryDirectory() as made:
            hand = _by_hand(fixtures / "bench" / "alu.cpp", isa, Path(made))
            figures += _beside(wave, turns, hand, repeat, isa)
    return figures


def _beside(wave: LoopWave, turns: int, hand: Any, repeat: int, isa: Isa) -> Iterator[Figure]:
    """The loop `alu`, each of its calls followed by the same loop written by hand."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(repeat):
        ours.append(wave.run(turns))
        if hand is None:
            continue
        result = wave.result()
        wave.device.write(wave.y, bytes(256))
        arguments = ctypes.create_string_buffer(wave.arguments(turns))
        start = time.thread_time()
        hand(arguments)
        theirs.append(time.thread_time() - start)
        if wave.result() != result:
            raise UsageError("SX0817", "the loop alu and alu.cpp do not give the same result")
    yield from _rates(wave.loop, turns, ours, isa)
    if theirs:
        per = tuple(turns * wave.loop.turn / s for s in theirs)
        by_hand = Figure("alu: the same by hand", "1/s", per, "more", None)
        yield by_hand
        emulated = Figure("", "1/s", tuple(turns * wave.loop.turn / s for s in ours), "more")
        yield ratio("alu: emulated / by hand", emulated, by_hand)
