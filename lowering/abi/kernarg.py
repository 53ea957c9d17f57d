"""The launch data of a translated kernel: the layout of its kernarg segment.

The segment is the image of constant bank 0 followed by a table of pointers to the other banks.  The
launcher zeroes it, copies the parameters to ``param_base``, then applies the fills.  The text form,
one ``key value`` per line, is read by the native library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import COUNT as MULTIPROCESSORS
from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import reciprocal
from sassxlate.errors import LoweringError

FillKind: TypeAlias = Literal[
    "blockdim.x", "blockdim.y", "blockdim.z", "griddim.x", "griddim.y", "griddim.z",
    "u32", "u64", "dynamic_shared", "gridid", "bank2", "bank3", "bank4", "textures",
    "locks", "explicit_cluster", "reserved_shared", "stack_top", "multiprocessors", "smid",
]  # fmt: skip


_WITH_VALUE = ("u32", "u64", "explicit_cluster", "reserved_shared", "stack_top")
_ADDRESSES = ("bank2", "bank3", "bank4", "textures", "locks")
_EIGHT_BYTES = ("u64", "gridid", "smid", *_ADDRESSES)


@dataclass(frozen=True, slots=True)
class Fill:
    """Writes the value named by ``kind`` to byte ``offset``; ``value`` is for u32 and u64, for
    explicit_cluster, which a launch with clusters of its own makes 1, for reserved_shared, to
    which the size of dynamic shared memory is added, as a multiple of 16, and for stack_top, to
    which a launch adds the bytes by which cudaLimitStackSize exceeds ``private_size``.
    ``multiprocessors`` is the device's number of them, smid that and its reciprocal."""

    offset: int
    kind: FillKind
    value: int = 0

    @property
    def size(self) -> int:
        return 8 if self.kind in _EIGHT_BYTES else 4

    def __str__(self) -> str:
        return f"fill {self.offset} {self.kind}" + (
            f" {self.value}" if self.kind in _WITH_VALUE else ""
        )


@dataclass(frozen=True, slots=True)
class LaunchInfo:
    """Sizes in bytes; ``private_size`` is scratch per lane, spills included; ``heap``: the kernel
    calls malloc or free; ``comes_apart``: on an NVIDIA GPU, in recursion (``Plan.comes_apart``),
    which the launcher says."""

    kernarg_size: int
    param_base: int
    param_size: int
    lds_static: int
    private_size: int
    max_threads: int
    fills: tuple[Fill, ...]
    heap: bool = False
    comes_apart: bool = False

    @property
    def growing_stack(self) -> bool:
        """Whether the stack grows with the application's limit: the kernel recurses."""
        return any(fill.kind == "stack_top" for fill in self.fills)

    def __str__(self) -> str:
        head = [
            f"kernarg_size {self.kernarg_size}",
            f"param_base {self.param_base}",
            f"param_size {self.param_size}",
            f"lds_static {self.lds_static}",
            f"private_size {self.private_size}",
            f"max_threads {self.max_threads}",
            *(["heap"] if self.heap else []),
            *(["comes_apart"] if self.comes_apart else []),
        ]
        return "\n".join(head + [str(f) for f in self.fills]) + "\n"

    def kernarg(
        self,
        params: bytes,
        block: tuple[int, int, int],
        grid: tuple[int, int, int],
        banks: dict[str, int] | None = None,
        dynamic_shared: int = 0,
        multiprocessors: int = MULTIPROCESSORS,
    ) -> bytes:
        """The segment's bytes for one launch; ``banks`` gives the addresses of bank2 to bank4
        of the table of textures and of the locks."""
        image = bytearray(self.kernarg_size)
        image[self.param_base : self.param_base + len(params)] = params
        dims: dict[str, tuple[int, int]] = dict(
            zip(("x", "y", "z"), zip(block, grid, strict=True), strict=True)
        )
        for fill in self.fills:
            size = fill.size
            match fill.kind:
                case "u32" | "u64" | "explicit_cluster" | "stack_top":
                    value = fill.value
                case "dynamic_shared":
                    value = dynamic_shared
                case "reserved_shared":
                    value = fill.value + ((dynamic_shared + 15) & ~15)
                case "gridid":
                    value = 1
                case "multiprocessors":
                    value = multiprocessors
                case "smid":
                    value = multiprocessors | reciprocal(multiprocessors) << 32
                case "bank2" | "bank3" | "bank4" | "textures" | "locks":
                    value = (banks or {}).get(fill.kind, 0)
                case _:
                    value = dims[fill.kind[-1]][fill.kind.startswith("grid")]
            image[fill.offset : fill.offset + size] = value.to_bytes(size, "little")
        return bytes(image)


@dataclass(frozen=True, slots=True)
class BankLayout:
    """Where NVIDIA's driver keeps its values in constant bank 0, by architecture (measured, one
    kernel per item, CUDA 13.0)."""

    block_dim: int
    grid_dim: int
    shared_window: int | None
    local_window: int
    stack_top: int
    dynamic_shared: int | None
    grid_id: int
    descriptor: int | None
    param_base: int
    multiprocessors: int
    # Where the parameters end, their last byte: its offset in the bank, or where there is no
    # ``bank_pointer`` its address.
    param_end: int
    constant3: int  # the generic address of constant bank 3, which debug code reads
    param_pointer: int | None = None  # the generic address of the parameters, or
    bank_pointer: bool = False  # of the whole bank, to which code adds ``param_base``


_LAYOUT_75 = BankLayout(
    0x0, 0xC, 0x18, 0x20, 0x28, 0x2C, 0x30, None, 0x160, 0x10C, 0x114, 0x50, 0x40, True
)
_LAYOUT_80 = BankLayout(
    0x0, 0xC, 0x18, 0x20, 0x28, 0x2C, 0x30, 0x118, 0x160, 0x10C, 0x12C, 0x50, 0x40, True
)
_LAYOUT_90 = BankLayout(
    0x0, 0xC, None, 0x20, 0x28, 0x2C, 0x30, 0x208, 0x210, 0x10C, 0x1A0, 0xD0, 0x198
)
_LAYOUT_100 = BankLayout(
    0x360, 0x370, None, 0x2F8, 0x37C, 0x2AC, 0x140, 0x358, 0x380, 0x2D0, 0x350, 0x120, 0x348
)

LAYOUTS: dict[int, BankLayout] = {
    75: _LAYOUT_75,
    **dict.fromkeys((80, 86, 87, 88, 89), _LAYOUT_80),
    90: _LAYOUT_90,
    **dict.fromkeys((100, 103, 110, 120, 121), _LAYOUT_100),
}


def bank_layout(arch: int) -> BankLayout:
    """The layout of sm_``arch``; LoweringError SX0401 for an unknown architecture."""
    if arch not in LAYOUTS:
        raise LoweringError("SX0401", f"sm_{arch} is not supported")
    return LAYOUTS[arch]
