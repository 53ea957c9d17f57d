"""Joins a kernel's code with the functions that stand in sections of their own.

Debug builds and separately compiled programs (-G, -rdc) keep device functions apart and reach them
through relocations that the driver applies when it loads the module.  Here the kernel is put at
address 0 and the functions that it needs behind it, so that an absolute code address is an offset
in the joined code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sassxlate.disasm.containers.model import Cubin, Function, Kernel, Reloc
from sassxlate.errors import LoweringError, Where

ALIGN = 128  # bytes between sections of code
_MASK32 = (1 << 32) - 1


def _put(word: int, value: int, low: int, width: int) -> int:
    mask = (1 << width) - 1
    return word & ~(mask << low) | (value & mask) << low


def _call(word: int, value: int) -> int:
    """A call's target in words of 4 bytes from bit 34 on."""
    return _put(word, value >> 2, 34, 47)


def _split_call(word: int, value: int) -> int:
    """The same on sm_90 and later: the low 8 bits stand in bits 23:16."""
    return _put(_put(word, value >> 2, 16, 8), value >> 10, 34, 47)


# Relocations of code that name code, by number (measured, nvcc 13.0): how they change a word.
PATCHES: Mapping[int, Callable[[int, int], int]] = {
    0x38: lambda word, value: _put(word, value, 32, 32),  # R_CUDA_ABS32_LO_32
    0x39: lambda word, value: _put(word, value >> 32, 32, 32),  # R_CUDA_ABS32_HI_32
    0x3A: _call,  # R_CUDA_ABS47_34
    0x4B: _split_call,  # R_CUDA_ABS55_16_34
    0x70: lambda word, value: _put(word, value, 32, 32),  # R_CUDA_UNIFIED32_LO_32
    0x71: lambda word, value: _put(word, value >> 32, 32, 32),  # R_CUDA_UNIFIED32_HI_32
}


def _in_code(kernel: Kernel | Function) -> tuple[Reloc, ...]:
    return tuple(r for r in kernel.relocs if r.section.startswith(".text."))


def joined(kernel: Kernel, cubin: Cubin) -> Kernel:
    """The kernel with the code of all functions that it reaches, and without relocations of code.

    Raises LoweringError SX0407 for a relocation of another kind, SX0420 for a function that the
    module does not hold, SX0408 for one with constants of its own.
    """
    if not _in_code(kernel):
        return kernel
    known = {f.name: f for f in cubin.functions}
    places: dict[str, int] = {kernel.name: 0}
    parts: list[tuple[int, Kernel | Function]] = [(0, kernel)]
    size = len(kernel.code)
    for at, part in parts:  # grows while it is walked
        for reloc in _in_code(part):
            if reloc.symbol in places:
                continue
            where = Where(kernel=kernel.name, offset=at + reloc.offset)
            function = known.get(reloc.symbol)
            if reloc.type not in PATCHES or any(g.name == reloc.symbol for g in cubin.globals):
                what = f"relocation {reloc.type:#x} of {reloc.symbol} in the code"
                raise LoweringError("SX0407", what, where)
            if function is None:
                raise LoweringError("SX0420", f"{reloc.symbol} is not in this module", where)
            if function.constant2:
                raise LoweringError("SX0408", f"{reloc.symbol} has its own constants", where)
            size = (size + ALIGN - 1) & ~(ALIGN - 1)
            places[reloc.symbol] = size
            parts.append((size, function))
            size += len(function.code)
    code = bytearray(size)
    for at, part in parts:
        code[at : at + len(part.code)] = part.code
    for at, part in parts:
        for reloc in _in_code(part):
            _apply(code, at, reloc, places, kernel.name)
    return replace(
        kernel,
        code=bytes(code),
        local_size=kernel.local_size + sum(p.local_size for _, p in parts[1:]),
        relocs=tuple(r for r in kernel.relocs if r not in _in_code(kernel)),
        callees=tuple(replace(s, value=s.value + at) for at, p in parts for s in p.callees),
        exits=tuple(e + at for at, p in parts for e in p.exits),
        syscall_offsets=tuple(o + at for at, p in parts for o in p.syscall_offsets),
        indirect_targets={
            o + at: tuple(t + at for t in targets)
            for at, p in parts
            for o, targets in p.indirect_targets.items()
        },
    )


def _apply(
    code: bytearray, at: int, reloc: Reloc, places: Mapping[str, int], kernel: str
) -> None:
    patch = PATCHES.get(reloc.type)
    offset = at + reloc.offset
    where = Where(kernel=kernel, offset=offset)
    if patch is None or reloc.symbol not in places:
        raise LoweringError("SX0407", f"relocation {reloc.type:#x} in the code", where)
    if offset % 16 or offset + 16 > len(code):
        raise LoweringError("SX0407", "relocation between instructions", where)
    word = int.from_bytes(code[offset : offset + 16], "little")
    word = patch(word, places[reloc.symbol] + reloc.addend)
    code[offset : offset + 16] = word.to_bytes(16, "little")
