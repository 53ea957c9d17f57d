"""Launches of the same SASS by the interpreter and by its translation on the emulated device."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.disasm.sass.interpreter import Launch, ScheduleOptions, run
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.tier.translate import by_tier
from sassxlate.lowering.trace.interpreter_launch import launch_of, module_images
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS, Contract
from tests.disasm.sass.interpreter import generated

ROOT = Path(__file__).resolve().parents[4]
KERNELS = ROOT / "fixtures" / "kernels"
Words = NDArray[np.uint32]
Shape = tuple[int, int, int]

# Of a kernel for sm_80 of one block: R8 and R9 are the thread's words of a and b, R2 and R3 the
# address of out, R0 the thread's number.
WORDS_OF_A_AND_B = """S2R R0, SR_TID.X ;
ULDC.64 UR4, c[0x0][0x160] ;
MOV R14, UR4 ;
MOV R15, UR5 ;
IMAD.WIDE R14, R0, 0x4, R14 ;
ULDC.64 UR4, c[0x0][0x168] ;
MOV R16, UR4 ;
MOV R17, UR5 ;
IMAD.WIDE R16, R0, 0x4, R16 ;
ULDC.64 UR4, c[0x0][0x170] ;
MOV R2, UR4 ;
MOV R3, UR5 ;
LDG.E R8, [R14.64] ;
LDG.E R9, [R16.64] ;
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch of one kernel of a cubin over a, b, out and n."""

    cubin: Cubin
    name: str
    grid: Shape
    block: Shape
    inputs: tuple[Words, Words, Words]  # a, b and out before the launch
    n: int
    shared: int = 0

    def interpreted(self, options: ScheduleOptions | None = None) -> Words:
        """``out`` after the launch in the interpreter."""
        (kernel,) = (k for k in self.cubin.kernels if k.name == self.name)
        end = 0x7000_0000_0000
        places: list[int] = []

        def allocate(size: int) -> int:
            nonlocal end
            place, end = end, end + size + 4096 & ~511
            return place

        pieces = {allocate(x.nbytes): x.view(np.uint8).copy() for x in self.inputs}
        places = list(pieces)
        images, banks = module_images(self.cubin, kernel, allocate)
        pieces |= {at: np.frombuffer(data, np.uint8) for at, data in images.items()}
        launch: Launch = launch_of(
            self.cubin,
            kernel,
            struct.pack("<QQQi", *places, self.n),
            (self.grid, self.block),
            pieces,
            banks,
            shared=self.shared,
        )
        done = run(launch, options or ScheduleOptions(limit=3_000_000))
        return done.device.read(places[2], self.inputs[2].nbytes).view(np.uint32).copy()

    def translated(
        self, *, strict: bool = False, target: Target = DEFAULT, tier: bool = False
    ) -> Words:
        """``out`` after the launch of the translation, by the rules or by the optimising tier."""
        done = translate_kernel(self.cubin, self.name, target=target)
        code = by_tier(done, target).code_object if tier else done.code_object
        device = EmulatedDevice(1 << 22)
        places = [device.alloc(x.tobytes()) for x in self.inputs]
        params = struct.pack("<QQQi", *places, self.n)
        (kernel,) = (k for k in self.cubin.kernels if k.name == self.name)
        images, banks = module_images(self.cubin, kernel, device.alloc)
        for place, data in images.items():
            device.write(place, data)
        named = {f"bank{number}": place for number, place in banks.items()}
        segment = done.launch.kernarg(params, self.block, self.grid, named, self.shared)
        run_code_object(
            code, self.name, self.grid, self.block, segment, device,
            CompileOptions(strict=strict), dynamic_lds=self.shared,
        )  # fmt: skip
        return np.frombuffer(device.read(places[2], self.inputs[2].nbytes), np.uint32)


def of_contract(name: str, arch: int, seed: int = 0) -> tuple[Prepared, Contract]:
    """A kernel of ``fixtures/kernels`` with what it must write."""
    contract = CONTRACTS[name]
    cubin = parse_cubin((KERNELS / f"sm_{arch}" / f"{name}.cubin").read_bytes())
    out = np.full(contract.out_words, contract.start, np.uint32)
    shape = (contract.grid, 1, 1), (contract.block, 1, 1)
    inputs = (*contract.inputs(seed), out)
    return Prepared(cubin, name, *shape, inputs, contract.n, contract.shared_bytes), contract


def with_code(code: bytes, arch: int, shared: int = 0) -> Cubin:
    """A cubin with this code as its kernel ``divergent_if``."""
    of = arch if arch in (80, 90) else 120  # newer architectures have the same constant bank
    cubin = parse_cubin((KERNELS / f"sm_{of}" / "divergent_if.cubin").read_bytes())
    (kernel,) = cubin.kernels
    room = shared + (1024 if arch >= 90 else 0)
    kernel = replace(kernel, arch=arch, code=code, shared_size=room)
    return replace(cubin, arch=arch, kernels=(kernel,))


def assembled(text: str, arch: int) -> bytes:
    (code,) = assemble_listing(text.splitlines(), arch).values()
    return code


def of_seed(seed: int, arch: int) -> Prepared:
    """A random kernel over random words: two blocks, the last warp of each not full."""
    rng = np.random.default_rng(seed)
    grid, block = 2, 80
    threads = grid * block
    code = assembled(generated.kernel(seed, arch), arch)
    words = [rng.integers(0, 1 << 32, threads, dtype=np.uint32) for _ in range(2)]
    out = np.full(threads * generated.WORDS, 0xABCD, np.uint32)
    cubin = with_code(code, arch, generated.SHARED)
    inputs = (words[0], words[1], out)
    return Prepared(cubin, "divergent_if", (grid, 1, 1), (block, 1, 1), inputs, threads)
