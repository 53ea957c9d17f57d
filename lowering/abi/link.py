"""Joins a kernel's code with the functions in separate sections.

Debug builds and separately compiled programs (-G, -rdc) keep device functions apart and name them,
and the module's variables, in relocations that the driver applies when it loads the module.  Here
every module has one code layout: a kernel at address 0, then the functions, placed after the
longest kernel, each at the same address for all kernels.  So an absolute code address is an offset
in the joined code, and a function's address in a variable means the same to every kernel.

A function whose address is taken may be called by any call through a register.  Of a module with
very many of them (NCCL has 670, with 6 million instructions) a kernel gets none: a call traps.

The address of a variable is known only when the module is loaded.  It becomes a word of constant
bank 4, after the module's own words; the loader fills them from the same list.  The same holds for
the stand-ins of driver functions (vprintf, malloc: hostcalls.py) that the code calls.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from sassxlate.disasm.containers.values import Cubin, Function, Kernel, Reloc, Symbol
from sassxlate.errors import LoweringError, Where
from sassxlate.lowering.abi.hostcalls import FUNCTIONS

MOST = 1_000_000  # instructions of functions that a kernel reaches through pointers alone
ALIGN = 128  # bytes between sections of code
BANK4 = ".nv.constant4"
_CALLS = (0x343, 0x344)  # the low 12 bits of CALL through a register


def _put(word: int, value: int, low: int, width: int) -> int:
    mask = (1 << width) - 1
    return word & ~(mask << low) | (value & mask) << low


def _call(word: int, value: int) -> int:
    """A call's target in words of 4 bytes from bit 34 on."""
    return _put(word, value >> 2, 34, 47)


def _split_call(word: int, value: int) -> int:
    """The same on sm_90 and later: the low 8 bits are in bits 23:16."""
    return _put(_put(word, value >> 2, 16, 8), value >> 10, 34, 47)


def _low(word: int, value: int) -> int:
    return _put(word, value, 32, 32)


def _high(word: int, value: int) -> int:
    return _put(word, value >> 32, 32, 32)


# Relocations of code, by number (measured, nvcc 13.0): how they change a word.  Those of 32 bits
# may also name a variable.
_HALVES: Mapping[int, Callable[[int, int], int]] = {
    0x38: _low,  # R_CUDA_ABS32_LO_32
    0x39: _high,  # R_CUDA_ABS32_HI_32
    0x70: _low,  # R_CUDA_UNIFIED32_LO_32
    0x71: _high,  # R_CUDA_UNIFIED32_HI_32
}
_TARGETS: Mapping[int, Callable[[int, int], int]] = {
    0x3A: _call,  # R_CUDA_ABS47_34
    0x4B: _split_call,  # R_CUDA_ABS55_16_34
}
PATCHES: Mapping[int, Callable[[int, int], int]] = {**_HALVES, **_TARGETS}


def _in_code(part: Kernel | Function) -> tuple[Reloc, ...]:
    return tuple(r for r in part.relocs if r.section.startswith(".text."))


def _parts(cubin: Cubin) -> tuple[Kernel | Function, ...]:
    parts: list[Kernel | Function] = [*cubin.kernels, *cubin.functions]
    return tuple(parts)


def _calls_driver(reloc: Reloc, own: Collection[str]) -> bool:
    """Whether a relocation is of a call of a driver function; ``own``: the module's functions."""
    plain = reloc.type in _TARGETS and not reloc.addend
    return plain and reloc.symbol in FUNCTIONS and reloc.symbol not in own


def function_addresses(cubin: Cubin) -> Mapping[str, int]:
    """The address of each function with its own section, for all kernels of the module."""
    at = max((len(k.code) for k in cubin.kernels), default=0)
    places: dict[str, int] = {}
    for function in cubin.functions:
        at = (at + ALIGN - 1) & ~(ALIGN - 1)
        places[function.name] = at
        at += len(function.code)
    return places


def address_words(cubin: Cubin) -> Mapping[tuple[str, int], int]:
    """Variables that the code names and driver functions that it calls, as (symbol, addend), with
    the offset in constant bank 4 where the loader puts the address."""
    variables = {g.name for g in cubin.globals}
    own = {f.name for f in cubin.functions}
    named = {
        (r.symbol, r.addend)
        for part in _parts(cubin)
        for r in _in_code(part)
        if (r.type in _HALVES and r.symbol in variables) or _calls_driver(r, own)
    }
    start = (cubin.section_sizes.get(BANK4, 0) + 7) & ~7
    return {key: start + 8 * n for n, key in enumerate(sorted(named))}


# Offsets in constant bank 0 of the low and the high word of the address of grid.sync()'s counters
# (envreg2 and envreg1; measured, CUDA 13.0).
GRID_WORKSPACE: Mapping[int, tuple[int, int]] = {
    **dict.fromkeys((75, 80, 86, 87, 88, 89), (0x90, 0x8C)),
    90: (0x48, 0x44),
    **dict.fromkeys((100, 103, 110, 120, 121), (0x258, 0x254)),
}
WORKSPACE = 16  # bytes


def names_word(code: bytes, offset: int) -> bool:
    """Whether an instruction may name the word at ``offset`` of constant bank 0."""
    # Offset and bank start at bit 38; those of LDCU from bit 37 on.
    return _has(code, offset, 6, 21) or _has(code, offset, 5, 22)


def _has(code: bytes, value: int, low: int, width: int) -> bool:
    """Whether an instruction has a value in a field of its second dword: from bit ``low`` <= 8 on,
    with bits 8 to 23 in it.  A search of bytes, since every kernel of a module is asked."""
    placed = (value << low).to_bytes(4, "little")[1]
    mask = (1 << width) - 1
    column = code[5::16]
    at = column.find(placed)
    while at >= 0:
        dword = code[16 * at + 4 : 16 * at + 8]
        if 16 * at + 16 <= len(code) and int.from_bytes(dword, "little") >> low & mask == value:
            return True
        at = column.find(placed, at + 1)
    return False


def _syncs_grid(kernel: Kernel) -> bool:
    place = GRID_WORKSPACE.get(kernel.arch)
    return place is not None and names_word(kernel.code, place[0])


# Of the modules that are in memory, by identity: each of a module's kernels asks, and all of them
# are searched for the answer.
_WORKSPACES: Final[dict[int, tuple[weakref.ref[Cubin], Mapping[str, int]]]] = {}


def grid_workspaces(cubin: Cubin) -> Mapping[str, int]:
    """Offsets in constant bank 4, after the addresses of variables, of the counters of each kernel
    that synchronises its grid.  They start as zeros; each launch leaves them ready for the next."""
    key = id(cubin)
    known = _WORKSPACES.get(key)
    if known is not None and known[0]() is cubin:
        return known[1]
    made = _grid_workspaces(cubin)
    gone = weakref.ref(cubin, lambda _: _WORKSPACES.pop(key, None))
    _WORKSPACES[key] = gone, made
    return made


def _grid_workspaces(cubin: Cubin) -> Mapping[str, int]:
    size = cubin.section_sizes.get(BANK4, 0)
    start = (max([size, *(o + 8 for o in address_words(cubin).values())]) + 15) & ~15
    names = [k.name for k in cubin.kernels if _syncs_grid(k)]
    return {name: start + WORKSPACE * n for n, name in enumerate(names)}


def bank4_size(cubin: Cubin) -> int:
    """The size of constant bank 4 including what is added to the module's own."""
    ends = [cubin.section_sizes.get(BANK4, 0), *(o + 8 for o in address_words(cubin).values())]
    return max([*ends, *(o + WORKSPACE for o in grid_workspaces(cubin).values())])


@lru_cache(maxsize=1024)
def _calls_pointers(code: bytes) -> bool:
    """Whether an instruction may be a call through a register."""
    opcodes = memoryview(code[: len(code) & ~15]).cast("H")[::8]
    return any(opcode & 0xFFF in _CALLS for opcode in opcodes)


def _address_taken(cubin: Cubin) -> tuple[str, ...]:
    names = {f.name for f in cubin.functions}
    data = {r.symbol for r in cubin.relocs if not r.section.startswith(".text.")}
    code = {
        r.symbol
        for part in _parts(cubin)
        for r in _in_code(part)
        if r.type in _HALVES and r.symbol != part.name
    }
    return tuple(sorted(names & (data | code)))


def link_kernel(kernel: Kernel, cubin: Cubin) -> Kernel:
    """The kernel with the code of all functions that it reaches, without code relocations.

    Raises LoweringError SX0407 for a relocation of another kind, SX0420 for a function that the
    module does not hold, SX0408 for one with constants of its own.
    """
    if _syncs_grid(kernel):  # otherwise the module's other kernels are not looked at
        kernel = replace(kernel, grid_workspace=grid_workspaces(cubin).get(kernel.name))
    else:
        kernel = replace(kernel, grid_workspace=None)
    pointers = bool(cubin.functions) and _calls_pointers(kernel.code)
    if not _in_code(kernel) and not pointers:
        return kernel
    known = {f.name: f for f in cubin.functions}
    layout = function_addresses(cubin)
    variables = {g.name for g in cubin.globals}
    places: dict[str, int] = {kernel.name: 0}
    parts: list[tuple[int, Kernel | Function]] = [(0, kernel)]

    left_out = 0

    def reach(name: str, where: Where) -> None:
        if name in places:
            return
        function = known.get(name)
        if function is None:
            raise LoweringError("SX0420", f"{name} is not in this module", where)
        if function.constant2:
            raise LoweringError("SX0408", f"{name} has its own constants", where)
        places[name] = layout[name]
        parts.append((layout[name], function))

    for at, part in parts:  # grows during the iteration
        for reloc in _in_code(part):
            where = Where(kernel=kernel.name, offset=at + reloc.offset)
            if reloc.type not in PATCHES:
                what = f"relocation {reloc.type:#x} of {reloc.symbol} in the code"
                raise LoweringError("SX0407", what, where)
            if _calls_driver(reloc, known):
                continue
            if reloc.symbol not in variables or reloc.type not in _HALVES:
                reach(reloc.symbol, where)
        if _calls_pointers(part.code):
            taken = _address_taken(cubin)
            if sum(len(known[name].code) for name in taken) > 16 * MOST:
                left_out = len(taken)
                continue  # one that a direct call reaches is there
            for name in taken:
                reach(name, Where(kernel=kernel.name, offset=at))
    code = bytearray(max(at + len(part.code) for at, part in parts))
    for at, part in parts:
        code[at : at + len(part.code)] = part.code
    words = address_words(cubin)
    addresses: dict[int, int] = {}
    host_calls: dict[int, tuple[str, int]] = {}
    for at, part in parts:
        for reloc in _in_code(part):
            if _calls_driver(reloc, known):
                host_calls[at + reloc.offset] = reloc.symbol, words[reloc.symbol, 0]
            elif reloc.symbol in places:
                _apply(code, at, reloc, places[reloc.symbol], kernel.name)
            else:
                high = 4 * (_HALVES[reloc.type] is _high)
                addresses[at + reloc.offset] = words[reloc.symbol, reloc.addend] + high
    entries = tuple(
        Symbol(p.name, f".text.{kernel.name}", at, len(p.code), "func", "local")
        for at, p in parts[1:]
    )
    inner = tuple(replace(s, value=s.value + at) for at, p in parts for s in p.callees)
    return replace(
        kernel,
        left_out=left_out,
        code=bytes(code),
        local_size=kernel.local_size + sum(p.local_size for _, p in parts[1:]),
        relocs=tuple(r for r in kernel.relocs if not r.section.startswith(".text.")),
        callees=(*entries, *(s for s in inner if s.value not in {e.value for e in entries})),
        exits=tuple(e + at for at, p in parts for e in p.exits),
        syscall_offsets=(*(o + at for at, p in parts for o in p.syscall_offsets), *host_calls),
        externs=tuple(dict.fromkeys(name for _, p in parts for name in p.externs)),
        indirect_targets={
            o + at: tuple(t + at for t in targets)
            for at, p in parts
            for o, targets in p.indirect_targets.items()
        },
        addresses=addresses,
        host_calls=host_calls,
    )


def _apply(code: bytearray, at: int, reloc: Reloc, place: int, kernel: str) -> None:
    offset = at + reloc.offset
    if offset % 16 or offset + 16 > len(code):
        where = Where(kernel=kernel, offset=offset)
        raise LoweringError("SX0407", "relocation between instructions", where)
    word = int.from_bytes(code[offset : offset + 16], "little")
    word = PATCHES[reloc.type](word, place + reloc.addend)
    code[offset : offset + 16] = word.to_bytes(16, "little")
