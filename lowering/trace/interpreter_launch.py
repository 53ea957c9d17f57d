"""Launches for the reference interpreter: constants, the module's memory, arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers import Cubin, Kernel
from sassxlate.disasm.sass.interpreter import Launch
from sassxlate.disasm.sass.interpreter.memory import LOCAL_WINDOW, SHARED_WINDOW
from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import COUNT as MULTIPROCESSORS
from sassxlate.errors import UsageError, Where
from sassxlate.lowering.abi.kernarg import BankLayout, bank_layout
from sassxlate.lowering.abi.link import (
    BANK4,
    GRID_WORKSPACE,
    address_words,
    bank4_size,
    function_addresses,
    link_kernel,
)
from sassxlate.lowering.select.clusters import cluster_words, refuse_clusters

if TYPE_CHECKING:
    from sassxlate.lowering.trace.recording import Recorded

Bytes = NDArray[np.uint8]
Shape = tuple[int, int, int]
STACK = 1024  # bytes per lane, CUDA's default

_LARGEST = 1 << 19  # bytes: 512 KiB is the most that CUDA lets a thread's local memory have


def module_images(
    cubin: Cubin, kernel: Kernel, allocate: Callable[[int], int]
) -> tuple[dict[int, bytes], dict[int, int]]:
    """The module's variables and constants: (bytes by address, addresses of banks 2 to 4)."""
    wanted = (".nv.global", ".nv.constant3", ".nv.constant4")
    sizes = {n: s for n, s in cubin.section_sizes.items() if n.startswith(wanted) and s}
    if size := bank4_size(cubin):
        sizes[BANK4] = size
    images = {n: bytearray(cubin.sections.get(n, b"").ljust(s, b"\0")) for n, s in sizes.items()}
    places = {n: allocate(len(image)) for n, image in images.items()}
    functions = function_addresses(cubin)
    names = {g.name: places[g.section] + g.offset for g in cubin.globals if g.section in places}
    relocs = [(r.section, r.offset, r.symbol, r.addend) for r in cubin.relocs]
    relocs += [(BANK4, o, symbol, addend) for (symbol, addend), o in address_words(cubin).items()]
    for section, offset, symbol, addend in relocs:
        value = functions.get(symbol, names.get(symbol))
        if section in images and value is not None:
            images[section][offset : offset + 8] = (value + addend).to_bytes(8, "little")
    out = {places[n]: bytes(image) for n, image in images.items()}
    banks = {n: places[f".nv.constant{n}"] for n in (3, 4) if f".nv.constant{n}" in places}
    if kernel.constant2:
        banks[2] = allocate(len(kernel.constant2))
        out[banks[2]] = kernel.constant2
    return out, banks


def bank_sizes(cubin: Cubin, kernel: Kernel) -> Mapping[int, int]:
    """Bytes of constant banks 2 to 4."""
    sizes = {2: len(kernel.constant2), 3: cubin.section_sizes.get(".nv.constant3", 0)}
    return {**sizes, 4: bank4_size(cubin)}


def launch_of(
    cubin: Cubin,
    kernel: Kernel,
    params: bytes,
    shapes: tuple[Shape, Shape],
    pieces: Mapping[int, Bytes],
    banks: Mapping[int, int],
    *,
    shared: int = 0,
    stack: int | None = None,
    grid_id: int = 1,
    cooperative: bool = False,
    multiprocessors: int = MULTIPROCESSORS,
) -> Launch:
    """One launch; ``shapes``: of grid and block; ``banks``: the addresses of banks 2 to 4.

    Raises LoweringError for code that cannot be joined, or an architecture whose constant bank 0
    layout is unknown.
    """
    refuse_clusters(kernel)
    whole = link_kernel(kernel, cubin)
    lay = bank_layout(kernel.arch)
    depth = max(whole.local_size, STACK) + 15 & ~15 if stack is None else stack
    images = {
        number: _bytes_at(pieces, banks[number], size)
        for number, size in bank_sizes(cubin, kernel).items()
        if banks.get(number)
    }
    grid, block = shapes
    first = _bank0(whole, lay, params, grid, block)
    _put(first, lay.multiprocessors, multiprocessors)
    _put(first, lay.stack_top, depth)
    _put(first, lay.grid_id, grid_id, 8)
    if lay.dynamic_shared is not None:
        _put(first, lay.dynamic_shared, shared)
    if 3 in banks:
        _put(first, lay.constant3, banks[3], 8)
    if whole.grid_workspace is not None and 4 in banks:
        low, high = GRID_WORKSPACE[kernel.arch]
        place = banks[4] + whole.grid_workspace
        _put(first, low, place & 0xFFFFFFFF)
        _put(first, high, place >> 32)
    bank4 = images.get(4, b"")
    if max(kernel.shared_size + shared, depth) > _LARGEST:
        text = f"{kernel.shared_size + shared} bytes of shared and {depth} of local memory"
        raise UsageError("SX0826", f"{text}: no device has as many", Where(kernel=kernel.name))
    return Launch(
        name=kernel.name,
        arch=kernel.arch,
        code=whole.code,
        grid=grid,
        block=block,
        banks={0: bytes(first), **images},
        pieces=list(pieces.items()),
        shared=kernel.shared_size + shared,
        local=depth,
        patches={o: int.from_bytes(bank4[w : w + 4], "little") for o, w in whole.addresses.items()},
        cooperative=cooperative,
        multiprocessors=multiprocessors,
    )


def _bytes_at(pieces: Mapping[int, Bytes], address: int, size: int) -> bytes:
    for base, data in pieces.items():
        if base <= address and address + size <= base + len(data):
            return data[address - base : address - base + size].tobytes()
    return bytes(size)


def _put(bank: bytearray, offset: int, value: int, size: int = 4) -> None:
    bank[offset : offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _bank0(
    kernel: Kernel, lay: BankLayout, params: bytes, grid: Sequence[int], block: Sequence[int]
) -> bytearray:
    end = max(kernel.constant0_size, lay.param_base + max(len(params), kernel.param_size))
    bank = bytearray(max(end, 0x400))
    for i in range(3):
        _put(bank, lay.block_dim + 4 * i, block[i])
        _put(bank, lay.grid_dim + 4 * i, grid[i])
    if lay.shared_window is not None:
        _put(bank, lay.shared_window, SHARED_WINDOW << 32, 8)
    _put(bank, lay.local_window, LOCAL_WINDOW << 32, 8)
    bank[lay.param_base : lay.param_base + len(params)] = params
    for offset, value in cluster_words(kernel, grid).items():
        _put(bank, offset, value)
    return bank


def replayed(cubin: Cubin, kernel: Kernel, launch: Mapping[str, str], recorded: Recorded) -> Launch:
    """A recorded launch for the interpreter."""

    def word(offset: int, size: int) -> int:
        return int.from_bytes(recorded.kernarg[offset : offset + size], "little")

    base, size = int(launch["param_base"]), int(launch["param_size"])
    banks: dict[int, int] = {}
    stack, grid_id, stack_top = 0, 1, bank_layout(kernel.arch).stack_top
    multiprocessors = MULTIPROCESSORS
    for key, value in launch.items():
        match key.split(" "):
            case ["fill", offset, "u32" | "stack_top"] if int(offset) == stack_top:
                stack = word(stack_top, 4)
            case ["fill", offset] if value in ("multiprocessors", "smid"):
                multiprocessors = word(int(offset), 4)
            case ["fill", offset] if value == "gridid":
                grid_id = word(int(offset), 8)
            case ["fill", offset] if value in ("bank2", "bank3", "bank4"):
                banks[int(value[-1])] = word(int(offset), 8)
            case _:
                pass
    return launch_of(
        cubin,
        kernel,
        recorded.kernarg[base : base + size],
        (recorded.grid, recorded.block),
        recorded.before,
        banks,
        shared=recorded.shared,
        stack=stack,
        grid_id=grid_id,
        cooperative=recorded.cooperative,
        multiprocessors=multiprocessors,
    )


def approximations(launch: Launch, function: str = "") -> frozenset[int]:
    """The code offsets of instructions whose results are only within bounds; or only those of one
    function."""
    from sassxlate.disasm.sass.interpreter.launch import instructions
    from sassxlate.disasm.sass.traits import traits

    every = (i for i in instructions(launch) if i is not None)
    return frozenset(
        i.offset
        for i in every
        if traits(i).approximate and (not function or function in i.modifiers)
    )
