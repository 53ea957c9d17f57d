"""Translates kernels of ``fixtures/kernels`` and runs them on the emulator, in this process."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.sass import decode_section
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.abi.link import BANK4, address_words, bank4_size, function_addresses
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS, Contract

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "fixtures" / "kernels"
Words = NDArray[np.uint32]
GUARD = 12  # the bit from which on a word holds its guard


def load(name: str, arch: int) -> Cubin:
    return parse_cubin((KERNELS / f"sm_{arch}" / f"{name}.cubin").read_bytes())


def patched(cubin: Cubin, change: Callable[[Instruction], int | None]) -> Cubin:
    """The cubin with words of its only kernel replaced where ``change`` gives another one."""
    (kernel,) = cubin.kernels
    code = bytearray(kernel.code)
    for ins in decode_section(kernel.code, kernel.arch).instructions:
        word = change(ins) if isinstance(ins, Instruction) else None
        if word is not None:
            code[ins.offset : ins.offset + 16] = word.to_bytes(16, "little")
    return replace(cubin, kernels=(replace(kernel, code=bytes(code)),))


def guarded(word: int, predicate: int, inverted: bool = False) -> int:
    """A word under the guard @P or @!P; 7 is PT."""
    return word & ~(15 << GUARD) | (predicate | inverted << 3) << GUARD


def constant_banks(cubin: Cubin, constant2: bytes, device: EmulatedDevice) -> dict[str, int]:
    """The constant banks and the module's variables, filled and relocated."""
    functions, words = function_addresses(cubin), address_words(cubin)
    data = (".nv.global", ".nv.constant")
    sizes = {n: s for n, s in cubin.section_sizes.items() if n.startswith(data)}
    if size := bank4_size(cubin):
        sizes[BANK4] = size
    images = {n: bytearray(cubin.sections.get(n, b"").ljust(s, b"\0")) for n, s in sizes.items()}
    places = {n: device.alloc(len(image)) for n, image in images.items() if image}
    variables = {g.name: places[g.section] + g.offset for g in cubin.globals if g.section in places}
    of_driver = {name for k in cubin.kernels for name in k.externs}
    relocs = [(r.section, r.offset, r.symbol, r.addend) for r in cubin.relocs]
    relocs += [(BANK4, offset, symbol, addend) for (symbol, addend), offset in words.items()]
    for section, offset, symbol, addend in relocs:
        if section in images and symbol not in of_driver:
            value = (functions if symbol in functions else variables)[symbol] + addend
            images[section][offset : offset + 8] = value.to_bytes(8, "little")
    for name, place in places.items():
        device.write(place, bytes(images[name]))
    banks = {"bank2": device.alloc(constant2)} if constant2 else {}
    for number in (3, 4):
        if f".nv.constant{number}" in places:
            banks[f"bank{number}"] = places[f".nv.constant{number}"]
    return banks


def launch(
    cubin: Cubin,
    contract: Contract,
    seed: int,
    *,
    strict: bool = False,
    target: Target = DEFAULT,
    change: Callable[[Translated, Target], Translated] | None = None,
    **options: int,
) -> tuple[Words, Translated]:
    """Translates a contract's kernel and launches it: returns the contents of ``out``.  ``change``
    is what is done to the translation before."""
    done = translate_kernel(cubin, contract.name, target=target)
    if change is not None:
        done = change(done, target)
    device = EmulatedDevice(1 << 22)
    a, b = contract.inputs(seed)
    out = np.full(contract.out_words, contract.start, np.uint32)
    places = [device.alloc(x.tobytes()) for x in (a, b, out)]
    segment = done.launch.kernarg(
        struct.pack("<QQQi", *places, contract.n),
        (contract.block, 1, 1),
        (contract.grid, 1, 1),
        constant_banks(cubin, done.kernel.constant2, device),
        contract.shared_bytes,
    )
    run_code_object(
        done.code_object,
        contract.name,
        contract.grid,
        contract.block,
        segment,
        device,
        CompileOptions(strict=strict),
        dynamic_lds=contract.shared_bytes,
        **options,
    )
    return np.frombuffer(device.read(places[2], out.nbytes), np.uint32), done


def run(
    cubin: Cubin,
    name: str,
    seed: int,
    *,
    strict: bool = False,
    fuel: int = 10000,
    target: Target = DEFAULT,
    change: Callable[[Translated, Target], Translated] | None = None,
) -> tuple[Words, Words, Translated]:
    """The output of a launch over a contract's inputs, the expected output, and the translation."""
    contract = CONTRACTS[name]
    actual, done = launch(
        cubin, contract, seed, strict=strict, fuel=fuel, target=target, change=change
    )
    return actual, contract.expected(*contract.inputs(seed)), done


def check(
    cubin: Cubin,
    name: str,
    seed: int = 0,
    *,
    target: Target = DEFAULT,
    change: Callable[[Translated, Target], Translated] | None = None,
    **options: bool,
) -> Translated:
    """Runs a kernel and compares it with its contract."""
    actual, expected, done = run(cubin, name, seed, target=target, change=change, **options)
    assert CONTRACTS[name].differences(actual, expected) == []
    return done
