"""Code objects of version 5, for generic targets 6: written from encoded kernels, and read.

The output matches ld.lld's for an assembly file with ``.amdhsa_kernel``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from sassxlate.disasm.containers.code_object import Image, read_image
from sassxlate.disasm.containers.elf import STT_FUNC, STT_OBJECT, Elf, ElfSymbol
from sassxlate.disasm.rdna3.tables.kernel_descriptor import SIZE as DESCRIPTOR_SIZE
from sassxlate.errors import ContainerError, EncodeError, Where
from sassxlate.lowering.codeobject import elf_writer as elf
from sassxlate.lowering.codeobject import source_map
from sassxlate.lowering.codeobject.descriptor import Descriptor, unpack
from sassxlate.lowering.codeobject.msgpack import Value, pack
from sassxlate.lowering.codeobject.msgpack import unpack as unpack_metadata
from sassxlate.lowering.target import Target, target_named

_VERSION: Final[list[Value]] = [1, 2]  # of the metadata: code object 5
_CODE_END: Final = bytes.fromhex("00009fbf")  # s_code_end
_PREFETCH: Final = 64  # instructions of padding that the instruction cache may fetch past the end
_ALIGN: Final = 256
_RELA: Final = 4  # SHT_RELA
_RELATIVE64: Final = 13  # R_AMDGPU_RELATIVE64: the addend, moved as the object is


@dataclass(frozen=True, slots=True)
class KernelImage:
    """An encoded kernel and its requirements.

    ``vgprs`` and ``sgprs`` are counts of registers used; ``group_segment`` is static LDS in bytes
    per workgroup, ``private_segment`` scratch in bytes per lane.  The kernel starts with the kernel
    arguments' address in s[0:1], the workgroup's x, y and z in s13, s14 and s15, the lane's ids
    packed in v0 (x in bits 0-9, y in 10-19, z in 20-29), MODE round-to-nearest with denormals kept,
    IEEE off, DX10_CLAMP on, wave32, CU mode.  Its one argument is ``kernarg_size`` bytes by value.
    """

    name: str
    code: bytes
    vgprs: int
    sgprs: int
    group_segment: int
    private_segment: int
    kernarg_size: int
    max_flat_workgroup_size: int = 1024
    source: str = ""  # the SASS that its code came from, see source_map
    entry_state: Descriptor | bytes | None = None  # another than the one described above
    dynamic_stack: bool = False  # scratch is what HIP's stack limit says, if that is more

    def descriptor(self, target: Target) -> bytes:
        """Its kernel descriptor, without the entry's place.

        Raises EncodeError SX0530, as :meth:`Descriptor.pack`.
        """
        if isinstance(self.entry_state, bytes):
            return self.entry_state
        if self.entry_state is not None:
            return self.entry_state.pack(target)
        described = Descriptor(
            group_segment_size=self.group_segment,
            private_segment_size=self.private_segment,
            kernarg_size=self.kernarg_size,
            entry=0,
            vgprs=self.vgprs,
            user_sgpr_count=target.user_sgprs,
            enable_private_segment=self.private_segment > 0,
            dynamic_stack=self.dynamic_stack,
        )
        return described.pack(target)

    def metadata(self, target: Target) -> dict[str, Value]:
        """Its entry in the metadata, keys sorted as LLVM writes them."""
        argument: dict[str, Value] = {
            ".offset": 0,
            ".size": self.kernarg_size,
            ".value_kind": "by_value",
        }
        arguments: list[Value] = [argument] if self.kernarg_size else []
        return {
            ".args": arguments,
            ".group_segment_fixed_size": self.group_segment,
            ".kernarg_segment_align": target.kernarg_align,
            ".kernarg_segment_size": self.kernarg_size,
            ".max_flat_workgroup_size": self.max_flat_workgroup_size,
            ".name": self.name,
            ".private_segment_fixed_size": self.private_segment,
            ".sgpr_count": self.sgprs,
            ".sgpr_spill_count": 0,
            ".symbol": f"{self.name}.kd",
            ".uniform_work_group_size": 1,
            ".uses_dynamic_stack": self.dynamic_stack,
            ".vgpr_count": self.vgprs,
            ".vgpr_spill_count": 0,
            ".wavefront_size": target.lanes,
            ".workgroup_processor_mode": 0,
        }


def metadata_note(kernels: Sequence[KernelImage], target: Target) -> bytes:
    """The metadata of a code object as MessagePack."""
    return pack(
        {
            "amdhsa.kernels": [cast("Value", k.metadata(target)) for k in kernels],
            "amdhsa.target": target.isa,
            "amdhsa.version": _VERSION,
        }
    )


def _pad(code: bytes, step: int) -> bytes:
    return code + _CODE_END * (-len(code) % step // 4)


def _check(kernels: Sequence[KernelImage], target: Target) -> None:
    if not kernels:
        raise EncodeError("SX0530", "a code object needs a kernel")
    seen: set[str] = set()
    for kernel in kernels:
        where = Where(kernel=kernel.name)
        if not kernel.name or "\0" in kernel.name or kernel.name in seen:
            raise EncodeError("SX0530", "an empty, impossible or repeated kernel name", where)
        seen.add(kernel.name)
        if not kernel.code or len(kernel.code) % 4:
            raise EncodeError("SX0530", f"{len(kernel.code)} bytes of code", where)
        size = kernel.max_flat_workgroup_size
        if not 1 <= size <= target.threads:
            text = f"workgroups of {size} lanes: 1 to {target.threads} are possible"
            raise EncodeError("SX0530", text, where)


def write(kernels: Sequence[KernelImage], target: Target, source: bytes | None = None) -> bytes:
    """A code object (ELF) for a target with the kernels, ready for hipModuleLoadData.  ``source``:
    the note of the SASS that their code came from, if it is made already.

    Raises:
        EncodeError: SX0530, no kernel, a repeated name, or a size out of range.
    """
    _check(kernels, target)
    text = b""
    functions: list[tuple[str, int, int]] = []
    descriptors = b""
    for kernel in kernels:
        text = _pad(text, _ALIGN)
        functions.append((kernel.name, len(text), len(kernel.code)))
        text += kernel.code
        try:
            descriptors += kernel.descriptor(target)
        except EncodeError as error:
            raise error.at(kernel=kernel.name) from None
    text = _pad(text + _CODE_END * _PREFETCH, _ALIGN)
    if source is None:
        source = source_map.note((kernel.name, kernel.source) for kernel in kernels)
    note = metadata_note(kernels, target)
    version = target.code_object_version
    return elf.build(note, descriptors, text, functions, target.flags, source, version)


@dataclass(frozen=True, slots=True)
class KernelObject:
    """A kernel of a code object: ``entry`` is its byte offset in ``CodeObject.text``."""

    name: str
    symbol: str
    descriptor: Descriptor
    entry: int
    size: int  # bytes of code, from its symbol; without one, up to the section's end
    metadata: dict[str, Value]


@dataclass(frozen=True, slots=True)
class CodeObject:
    """A code object: its kernels, its text section and its loaded data.

    ``text_address`` is the virtual address of ``text``; ``image.at(address, size)`` reads loaded
    data (constants that the code addresses relative to the PC).
    """

    version: int
    kernels: tuple[KernelObject, ...]
    text: bytes
    text_address: int
    image: Image
    metadata: dict[str, Value]
    target: Target

    def kernel(self, name: str) -> KernelObject:
        """A kernel by its name.

        Raises:
            EncodeError: SX0535, there is no kernel of this name.
        """
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise EncodeError("SX0535", "no such kernel in the code object", Where(kernel=name))


def _metadata_kernels(metadata: dict[str, Value]) -> dict[str, dict[str, Value]]:
    """Symbol of the descriptor to metadata."""
    out: dict[str, dict[str, Value]] = {}
    kernels = metadata.get("amdhsa.kernels")
    for kernel in kernels if isinstance(kernels, list) else ():
        if isinstance(kernel, dict) and isinstance(symbol := kernel.get(".symbol"), str):
            out[symbol] = kernel
    return out


def _kernel(
    symbol: ElfSymbol,
    image: Image,
    target: Target,
    text: tuple[int, int],
    rows: dict[str, dict[str, Value]],
) -> KernelObject:
    name = symbol.name.removesuffix(".kd")
    descriptor = unpack(image.at(symbol.value, DESCRIPTOR_SIZE), target)
    start = symbol.value + descriptor.entry
    entry = start - text[0]
    if not 0 <= entry < text[1] or entry % 4:
        raise EncodeError("SX0533", "the kernel's entry is outside the code", Where(kernel=name))
    sizes = [s.size for s in image.symbols if s.value == start and s.kind == STT_FUNC and s.size]
    row = rows.get(symbol.name, {})
    given = row.get(".name", name)
    size = min(sizes[0] if sizes else text[1] - entry, text[1] - entry)
    return KernelObject(
        given if isinstance(given, str) else name, symbol.name, descriptor, entry, size, row
    )


def read(data: bytes) -> CodeObject:
    """A code object (version 4 to 6, linked, for RDNA3) as values.

    Raises:
        EncodeError: SX0531, no code object for RDNA3; SX0532, truncated or corrupt; SX0533, an
            impossible kernel descriptor; SX0534, unreadable metadata.
    """
    image = read_image(data)
    target = target_named(image.machine)
    if ".text" not in image.sections:
        raise EncodeError("SX0532", "no text section")
    text = image.sections[".text"]
    if text[1] > len(data):
        raise EncodeError("SX0532", "the text section is larger than the file")
    code = image.at(*text)
    metadata = unpack_metadata(image.metadata) if image.metadata else {}
    if not isinstance(metadata, dict):
        raise EncodeError("SX0534", "the metadata is not a map")
    rows = _metadata_kernels(metadata)
    for note in image.more_metadata:
        more = unpack_metadata(note)
        if not isinstance(more, dict):
            raise EncodeError("SX0534", "the metadata is not a map")
        rows |= _metadata_kernels(more)
    symbols = {s.name: s for s in image.symbols if s.name.endswith(".kd") and s.kind == STT_OBJECT}
    kernels = tuple(_kernel(s, image, target, text, rows) for s in symbols.values())
    return CodeObject(image.version, kernels, code, text[0], image, metadata, target)


def code_pointers(data: bytes, code: CodeObject) -> tuple[int, ...]:
    """Offsets in the text section of ``code``, which was read from ``data``, whose addresses its
    data holds: functions of tables and classes, as the relocations say."""
    found: set[int] = set()
    try:
        tables = [bytes(section.data) for section in Elf(data).sections if section.type == _RELA]
    except ContainerError:  # sections are not needed to run it
        return ()
    for table in tables:
        for _, info, addend in struct.iter_unpack("<QQq", table[: len(table) // 24 * 24]):
            offset = addend - code.text_address
            if info & 0xFFFFFFFF == _RELATIVE64 and offset in range(0, len(code.text), 4):
                found.add(offset)
    return tuple(sorted(found))
