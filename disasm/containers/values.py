"""The contents of containers as values: fatbin entries, cubins and their kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sassxlate.disasm.containers.unpack import Compression, Packed


@dataclass(frozen=True, slots=True)
class FatbinEntry:
    """One entry of a fatbin; ``packed`` has its bytes as stored in the file."""

    kind: Literal["elf", "ptx", "ltoir", "other"]
    arch: int  # 80 for sm_80
    flags: int
    name: str
    offset: int  # of the entry's header, from the start of the container
    packed: Packed
    stored: int  # bytes in the file
    variant: str  # "" or the architecture's letter: "a", "f"

    @property
    def compression(self) -> Compression:
        """The compression of the entry."""
        return self.packed.compression

    @property
    def size(self) -> int:
        """Bytes unpacked, as its header declares."""
        return self.packed.size

    @property
    def payload(self) -> bytes:
        """The contents, unpacked again at each access; ContainerError as :meth:`Packed.unpack`."""
        return self.packed.unpack()


@dataclass(frozen=True, slots=True)
class Fatbin:
    """One container; ``module`` numbers the containers of a file from 0."""

    module: int
    offset: int
    entries: tuple[FatbinEntry, ...]
    section: str = ""  # of the host file: ".nv_fatbin", "__nv_relfatbin" (-rdc objects), ""
    member: str = ""  # of a static archive, by name


@dataclass(frozen=True, slots=True)
class Param:
    """A kernel parameter: its place in the parameter area, in bytes."""

    index: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Reloc:
    """A relocation of a section, by the symbol's name; ``offset`` is in the patched section."""

    section: str
    offset: int
    type: int
    symbol: str
    addend: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol of the cubin; ``section`` is "" for an undefined one."""

    name: str
    section: str
    value: int
    size: int
    type: Literal["func", "object", "section", "notype", "other"]
    binding: Literal["local", "global", "weak"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One EIATTR record of .nv.info, by its number and NVIDIA's name."""

    id: int
    name: str
    value: bytes
    format: Literal["NVAL", "BVAL", "HVAL", "SVAL"] = "SVAL"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a cubin.  Sizes are in bytes; offsets count from its .text section."""

    name: str
    demangled: str
    arch: int
    code: bytes
    registers: int
    shared_size: int  # static shared memory, the kilobyte that sm_90 and later reserve included
    local_size: int  # stack per lane (EIATTR_MIN_STACK_SIZE, or FRAME_SIZE)
    barriers: int
    param_base: int  # of the parameters in constant bank 0
    param_size: int
    params: tuple[Param, ...]
    constant0_size: int
    constant2: bytes  # .nv.constant2.<kernel>, b"" if none
    max_threads: tuple[int, int, int] | None
    exits: tuple[int, ...]
    indirect_targets: Mapping[int, tuple[int, ...]]  # BRX offset -> target offsets
    syscall_offsets: tuple[int, ...]
    externs: tuple[str, ...]
    callees: tuple[Symbol, ...]  # functions inside this .text section, values relative to it
    relocs: tuple[Reloc, ...]  # those that patch this kernel's own sections
    attributes: tuple[Attribute, ...]
    uses_cta_z: bool
    # Code offsets whose 32-bit immediate is a word of constant bank 4, at that byte offset: half
    # of a variable's address.  Filled where the code is joined, see lowering/abi/link.py.
    addresses: Mapping[int, int] = field(default_factory=dict[int, int])
    grid_workspace: int | None = None  # of grid.sync()'s counters, a byte offset in that bank
    # Code offsets of direct calls of the driver's functions: the name, and the offset in that bank
    # of the address of the function's data.  Filled with the addresses.
    host_calls: Mapping[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    # How many functions it may call through pointers, if they were left out for their size.
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Function:
    """A device function with its own .text section, as -rdc and nvlink emit them.

    Kernels and other functions reach it through relocations that name its symbol.  Offsets count
    from the start of its section.
    """

    name: str
    demangled: str
    code: bytes
    local_size: int
    constant2: bytes
    exits: tuple[int, ...]
    indirect_targets: Mapping[int, tuple[int, ...]]
    syscall_offsets: tuple[int, ...]
    externs: tuple[str, ...]
    callees: tuple[Symbol, ...]
    relocs: tuple[Reloc, ...]
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Global:
    """A __device__, __constant__ or managed variable, or another named object of the module."""

    name: str
    section: str  # ".nv.global", ".nv.global.init", ".nv.constant3" ...
    offset: int
    size: int
    managed: bool = False


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Cubin:
    """A device ELF file with everything that its kernels need."""

    arch: int  # 80 for sm_80
    variant: str  # "", or the letter of an architecture-specific target, "a"
    abi: int  # 7 (CUDA 12 and older) or 8
    relocatable: bool  # an -rdc object that was not linked
    kernels: tuple[Kernel, ...]
    globals: tuple[Global, ...]
    sections: Mapping[str, bytes]  # data: .nv.constant3, .nv.constant4, .nv.global.init ...
    section_sizes: Mapping[str, int]  # also of sections without bytes in the file (.nv.global)
    relocs: tuple[Reloc, ...]  # all relocations of data sections
    symbols: tuple[Symbol, ...]
    attributes: tuple[Attribute, ...]
    functions: tuple[Function, ...] = ()  # device functions outside any kernel's section
