"""gfx1100 code objects, version 5: ELF files with machine code, kernel descriptors and metadata.

Layout and fields: LLVM's AMDGPUUsage, "Code Object V5" and "Kernel Descriptor".  Workgroup ids follow
the user SGPRs; the user count is padded so that both together are 16 (UserSGPRInit16Bug), which puts
the ids in s13, s14 and s15.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sassxlate.errors import EncodeError, Where

from .msgpack import Value, pack

EM_AMDGPU = 224
OSABI_HSA = 64
ABI_V5 = 3
FLAGS_GFX1100 = 0x41
CODE_END = 0xBF9F0000
DESCRIPTOR_SIZE = 64
SGPR_INIT = 16  # user and system SGPRs together
PAGE = 0x1000
_NT_METADATA = 32


@dataclass(frozen=True, slots=True)
class KernelImage:
    """One kernel to write.  ``code`` starts at its entry; sizes are bytes; scratch is a lane's."""

    name: str
    code: bytes
    vgprs: int
    sgprs: int
    group_segment: int
    private_segment: int
    kernarg_size: int
    max_flat_workgroup_size: int


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A kernel descriptor's fields (64 bytes, AMDGPUUsage table "Kernel Descriptor")."""

    group_segment_size: int
    private_segment_size: int
    kernarg_size: int
    rsrc1: int
    rsrc2: int
    properties: int

    @property
    def vgprs(self) -> int:
        return ((self.rsrc1 & 63) + 1) * 8

    @property
    def float_mode(self) -> int:
        """MODE bits 7:0: rounding in 3:0, denormals in 7:4."""
        return self.rsrc1 >> 12 & 0xFF

    @property
    def dx10_clamp(self) -> bool:
        return bool(self.rsrc1 >> 21 & 1)

    @property
    def ieee_mode(self) -> bool:
        return bool(self.rsrc1 >> 23 & 1)

    @property
    def user_sgpr_count(self) -> int:
        return self.rsrc2 >> 1 & 31

    @property
    def enable_workgroup_id_x(self) -> bool:
        return bool(self.rsrc2 >> 7 & 1)

    @property
    def enable_workgroup_id_y(self) -> bool:
        return bool(self.rsrc2 >> 8 & 1)

    @property
    def enable_workgroup_id_z(self) -> bool:
        return bool(self.rsrc2 >> 9 & 1)

    @property
    def enable_dispatch_ptr(self) -> bool:
        return bool(self.properties >> 1 & 1)

    @property
    def enable_queue_ptr(self) -> bool:
        return bool(self.properties >> 2 & 1)

    @property
    def enable_kernarg_ptr(self) -> bool:
        return bool(self.properties >> 3 & 1)

    @property
    def enable_dispatch_id(self) -> bool:
        return bool(self.properties >> 4 & 1)

    @property
    def enable_private_segment_size(self) -> bool:
        return bool(self.properties >> 6 & 1)


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A kernel of a code object that was read; ``entry`` is its byte offset in the object's text."""

    name: str
    descriptor: Descriptor
    entry: int
    size: int


@dataclass(frozen=True, slots=True)
class CodeObject:
    """A code object that was read: the .text bytes and the kernels by name."""

    text: bytes
    kernels: Mapping[str, KernelCode]

    def kernel(self, name: str) -> KernelCode:
        """EncodeError SX0541 for a name that is not there."""
        if name not in self.kernels:
            raise EncodeError("SX0541", "the code object has no such kernel", Where(kernel=name))
        return self.kernels[name]


def _align(n: int, to: int) -> int:
    return (n + to - 1) & -to


def descriptor(k: KernelImage, entry_from_kd: int) -> bytes:
    """The 64 bytes of a kernel descriptor; ``entry_from_kd`` is the code's distance from it."""
    granules = max(1, (k.vgprs + 7) // 8) - 1
    # Nearest-even, denormals kept (3 and 3), DX10_CLAMP, IEEE off, MEM_ORDERED, FWD_PROGRESS.
    rsrc1 = granules | 3 << 16 | 3 << 18 | 1 << 21 | 1 << 30 | 1 << 31
    ids = 3
    scratch = int(k.private_segment > 0)
    rsrc2 = scratch | (SGPR_INIT - ids) << 1 | 1 << 7 | 1 << 8 | 1 << 9 | 2 << 11
    properties = 1 << 3 | 1 << 10  # kernarg pointer, wave32
    out = bytearray(DESCRIPTOR_SIZE)
    struct.pack_into("<III", out, 0, k.group_segment, k.private_segment, k.kernarg_size)
    struct.pack_into("<q", out, 16, entry_from_kd)
    struct.pack_into("<IIIH", out, 44, 0, rsrc1, rsrc2, properties)
    return bytes(out)


def metadata(kernels: Sequence[KernelImage]) -> bytes:
    """The msgpack map of the NT_AMDGPU_METADATA note."""
    rows: list[Value] = []
    for k in kernels:
        rows.append(
            {
                ".args": [{".offset": 0, ".size": k.kernarg_size, ".value_kind": "by_value"}]
                if k.kernarg_size
                else [],
                ".group_segment_fixed_size": k.group_segment,
                ".kernarg_segment_align": 8,
                ".kernarg_segment_size": k.kernarg_size,
                ".max_flat_workgroup_size": k.max_flat_workgroup_size,
                ".name": k.name,
                ".private_segment_fixed_size": k.private_segment,
                ".sgpr_count": k.sgprs,
                ".sgpr_spill_count": 0,
                ".symbol": f"{k.name}.kd",
                ".uses_dynamic_stack": False,
                ".vgpr_count": k.vgprs,
                ".vgpr_spill_count": 0,
                ".wavefront_size": 32,
                ".workgroup_processor_mode": 0,
            }
        )
    return pack(
        {
            "amdhsa.kernels": rows,
            "amdhsa.target": "amdgcn-amd-amdhsa--gfx1100",
            "amdhsa.version": [1, 2],
        }
    )


def _sysv_hash(name: bytes) -> int:
    h = 0
    for byte in name:
        h = (h << 4) + byte
        high = h & 0xF0000000
        h = (h ^ high >> 24) & ~high & 0xFFFFFFFF
    return h


def _strings(names: Sequence[str]) -> tuple[bytes, dict[str, int]]:
    table, at = bytearray(b"\0"), {}
    for name in names:
        at[name] = len(table)
        table += name.encode() + b"\0"
    return bytes(table), at


def write(kernels: Sequence[KernelImage]) -> bytes:
    """An ELF shared object of the kernels: .note, .dynsym, .hash, .dynstr, .rodata, .text, .dynamic."""
    note_desc = metadata(kernels)
    note = struct.pack("<III", 7, len(note_desc), _NT_METADATA) + b"AMDGPU\0\0"
    note += note_desc + bytes(-len(note_desc) % 4)
    dynstr, at = _strings([n for k in kernels for n in (k.name, f"{k.name}.kd")])
    # File and memory offsets agree; text and dynamic stand on pages of their own.
    note_at = 64 + 56 * 6
    dynsym_at = _align(note_at + len(note), 8)
    count = 1 + 2 * len(kernels)
    hash_at = dynsym_at + 24 * count
    hash_size = 4 * (2 + count + count)
    dynstr_at = hash_at + hash_size
    rodata_at = _align(dynstr_at + len(dynstr), 64)
    rodata_size = DESCRIPTOR_SIZE * len(kernels)
    text_at = _align(rodata_at + rodata_size, PAGE)
    entries: list[int] = []
    text = bytearray()
    for k in kernels:
        text += bytes(-len(text) % 256)
        entries.append(text_at + len(text))
        text += k.code + struct.pack("<I", CODE_END) * 64
    dynamic_at = _align(text_at + len(text), PAGE)
    rodata = b"".join(
        descriptor(k, entry - (rodata_at + DESCRIPTOR_SIZE * n))
        for n, (k, entry) in enumerate(zip(kernels, entries, strict=True))
    )
    dynsym = bytearray(24)
    names: list[bytes] = [b""]
    for n, (k, entry) in enumerate(zip(kernels, entries, strict=True)):
        for name, kind, section, value, size in (
            (k.name, 2, 6, entry, len(k.code)),
            (f"{k.name}.kd", 1, 5, rodata_at + DESCRIPTOR_SIZE * n, DESCRIPTOR_SIZE),
        ):
            names.append(name.encode())
            # STB_GLOBAL, STV_PROTECTED
            dynsym += struct.pack("<IBBHQQ", at[name], 1 << 4 | kind, 3, section, value, size)
    hashes = _hash_table(names)
    dynamic = b"".join(
        struct.pack("<QQ", tag, value)
        for tag, value in (
            (6, dynsym_at), (11, 24), (5, dynstr_at), (10, len(dynstr)), (4, hash_at), (0, 0),
        )
    )  # fmt: skip
    shstr, sh = _strings(
        [".note", ".dynsym", ".hash", ".dynstr", ".rodata", ".text", ".dynamic", ".shstrtab"]
    )
    shstr_at = dynamic_at + len(dynamic)
    sections_at = _align(shstr_at + len(shstr), 8)
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (sh[".note"], 7, 2, note_at, note_at, len(note), 0, 0, 4, 0),
        (sh[".dynsym"], 11, 2, dynsym_at, dynsym_at, len(dynsym), 4, 1, 8, 24),
        (sh[".hash"], 5, 2, hash_at, hash_at, hash_size, 2, 0, 4, 4),
        (sh[".dynstr"], 3, 2, dynstr_at, dynstr_at, len(dynstr), 0, 0, 1, 0),
        (sh[".rodata"], 1, 2, rodata_at, rodata_at, len(rodata), 0, 0, 64, 0),
        (sh[".text"], 1, 6, text_at, text_at, len(text), 0, 0, 256, 0),
        (sh[".dynamic"], 6, 3, dynamic_at, dynamic_at, len(dynamic), 4, 0, 8, 16),
        (sh[".shstrtab"], 3, 0, 0, shstr_at, len(shstr), 0, 0, 1, 0),
    ]
    segments = [
        (6, 4, 64, 56 * 6, 8),
        (1, 4, 0, rodata_at + rodata_size, PAGE),
        (1, 5, text_at, len(text), PAGE),
        (1, 6, dynamic_at, len(dynamic), PAGE),
        (2, 6, dynamic_at, len(dynamic), 8),
        (4, 4, note_at, len(note), 4),
    ]
    ident = b"\x7fELF\x02\x01\x01" + bytes([OSABI_HSA, ABI_V5]) + bytes(7)
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH",
        3, EM_AMDGPU, 1, 0, 64, sections_at, FLAGS_GFX1100, 64, 56, len(segments), 64,
        len(sections), len(sections) - 1,
    )  # fmt: skip
    out = bytearray(sections_at)
    out[0:64] = header
    for n, (kind, flags, at_, size, align) in enumerate(segments):
        struct.pack_into(
            "<IIQQQQQQ", out, 64 + 56 * n, kind, flags, at_, at_, at_, size, size, align
        )
    for offset, data in (
        (note_at, note), (dynsym_at, dynsym), (hash_at, hashes), (dynstr_at, dynstr),
        (rodata_at, rodata), (text_at, text), (dynamic_at, dynamic), (shstr_at, shstr),
    ):  # fmt: skip
        out[offset : offset + len(data)] = data
    return bytes(out) + b"".join(struct.pack("<IIQQQQIIQQ", *s) for s in sections)


def _hash_table(names: Sequence[bytes]) -> bytes:
    """A System V hash table with as many buckets as symbols."""
    count = len(names)
    buckets, chains = [0] * count, [0] * count
    for i, name in enumerate(names[1:], 1):
        slot = _sysv_hash(name) % count
        chains[i] = buckets[slot]
        buckets[slot] = i
    return struct.pack(f"<{2 + 2 * count}I", count, count, *buckets, *chains)


def read(data: bytes) -> CodeObject:
    """The kernels of a gfx1100 code object.

    Raises EncodeError SX0540 where it is no code object, is damaged, or is for another processor.
    """
    try:
        return _read(data)
    except (struct.error, UnicodeDecodeError, IndexError) as e:
        raise EncodeError("SX0540", f"damaged code object: {e}") from None


def _bytes(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise EncodeError("SX0540", "a section reaches beyond the end", Where(offset=at))
    return data[at : at + size]


def _read(data: bytes) -> CodeObject:
    if data[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", data, 18)[0] != EM_AMDGPU:
        raise EncodeError("SX0540", "no AMDGPU code object")
    if struct.unpack_from("<I", data, 48)[0] & 0xFF != FLAGS_GFX1100:
        raise EncodeError("SX0540", "the code object is not for gfx1100")
    table = struct.unpack_from("<Q", data, 40)[0]
    count = struct.unpack_from("<H", data, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    text = next((s for s in sections if s[1] == 1 and s[2] & 4), None)
    symtab = next((s for s in sections if s[1] == 11), None)
    if text is None or symtab is None or symtab[6] >= count:
        raise EncodeError("SX0540", "no code or no symbols")
    strings = _bytes(data, sections[symtab[6]][4], sections[symtab[6]][5])
    symbols: dict[str, tuple[int, int, int]] = {}
    raw = _bytes(data, symtab[4], symtab[5])
    for i in range(len(raw) // 24):
        name_at, _, _, section, value, size = struct.unpack_from("<IBBHQQ", raw, 24 * i)
        name = strings[name_at : strings.index(b"\0", name_at)] if name_at < len(strings) else b""
        symbols[name.decode()] = (section, value, size)
    kernels: dict[str, KernelCode] = {}
    for name, (section, value, size) in symbols.items():
        if not name.endswith(".kd") or not 0 < section < count or size < DESCRIPTOR_SIZE:
            continue
        home = sections[section]
        kd = _bytes(data, home[4] + value - home[3], DESCRIPTOR_SIZE)
        entry = value + struct.unpack_from("<q", kd, 16)[0] - text[3]
        if not 0 <= entry < text[5]:
            raise EncodeError("SX0540", "an entry point outside the code", Where(kernel=name[:-3]))
        sizes = struct.unpack_from("<III", kd, 0)
        _, rsrc1, rsrc2, properties = struct.unpack_from("<IIIH", kd, 44)
        code_size = symbols.get(name[:-3], (0, 0, 0))[2] or text[5] - entry
        kernels[name[:-3]] = KernelCode(
            name[:-3], Descriptor(*sizes, rsrc1, rsrc2, properties), entry, code_size
        )
    return CodeObject(_bytes(data, text[4], text[5]), kernels)
