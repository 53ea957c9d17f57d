"""Runs inside AMD's userland (`tools.rocm`), with the standard library alone: code objects on
standard input, each with its length as eight bytes before it; what comgr reads in them as JSON.

Declarations: amd_comgr.h of ROCm 7.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from typing import Any

EXECUTABLE = 8  # AMD_COMGR_DATA_KIND_EXECUTABLE
STRING, MAP, LIST = 1, 2, 3  # AMD_COMGR_METADATA_KIND_*
U64, POINTER = ctypes.c_uint64, ctypes.c_void_p


class Handle(ctypes.Structure):
    """amd_comgr_data_t, amd_comgr_metadata_node_t, amd_comgr_disassembly_info_t."""

    _fields_ = (("handle", U64),)


READ = ctypes.CFUNCTYPE(U64, U64, POINTER, U64, POINTER)
PRINT = ctypes.CFUNCTYPE(None, ctypes.c_char_p, POINTER)
ADDRESS = ctypes.CFUNCTYPE(None, U64, POINTER)
EACH = ctypes.CFUNCTYPE(ctypes.c_int, Handle, Handle, POINTER)
lib = ctypes.CDLL("libamd_comgr.so.3")


def call(name: str, *arguments: Any) -> None:
    """Calls a function of comgr; ValueError if it fails."""
    status = getattr(lib, f"amd_comgr_{name}")(*arguments)
    if status:
        text = ctypes.c_char_p()
        lib.amd_comgr_status_string(status, ctypes.byref(text))
        raise ValueError(f"{name}: {(text.value or b'').decode()}")


def string(node: Handle) -> str:
    size = ctypes.c_size_t()
    call("get_metadata_string", node, ctypes.byref(size), None)
    text = ctypes.create_string_buffer(size.value)
    call("get_metadata_string", node, ctypes.byref(size), text)
    return text.value.decode()


def value(node: Handle) -> Any:
    """A node of metadata: text, a mapping or a list."""
    kind = ctypes.c_int()
    call("get_metadata_kind", node, ctypes.byref(kind))
    if kind.value == STRING:
        return string(node)
    if kind.value == MAP:
        pairs: dict[str, Any] = {}

        @EACH
        def each(key: Handle, item: Handle, _: Any) -> int:
            pairs[string(key)] = value(item)
            return 0

        call("iterate_map_metadata", node, each, None)
        return pairs
    size = ctypes.c_size_t()
    call("get_metadata_list_size", node, ctypes.byref(size))
    items: list[Any] = []
    for n in range(size.value):
        item = Handle()
        call("index_list_metadata", node, ctypes.c_size_t(n), ctypes.byref(item))
        items.append(value(item))
        call("destroy_metadata", item)
    return items


def text_section(data: bytes) -> bytes:
    """Section .text of a 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    (strings,) = struct.unpack_from("<Q", data, table + names * size + 24)
    for n in range(count):
        name, _, _, _, offset, length = struct.unpack_from("<IIQQQQ", data, table + n * size)
        if data[strings + name :].startswith(b".text\0"):
            return data[offset : offset + length]
    raise ValueError("no .text")


def disassemble(isa: bytes, code: bytes) -> list[tuple[int, str]]:
    """Each instruction's size and text."""
    memory = ctypes.create_string_buffer(code, len(code))
    base = ctypes.addressof(memory)
    lines: list[str] = []

    @READ
    def read(at: int, to: int, size: int, _: Any) -> int:
        size = max(min(size, base + len(code) - at), 0)
        ctypes.memmove(to, at, size)
        return size

    @PRINT
    def printed(text: bytes, _: Any) -> None:
        lines.append(text.decode())

    @ADDRESS
    def address(_at: int, _: Any) -> None:
        """Addresses are printed as they are."""

    info = Handle()
    call("create_disassembly_info", isa, read, printed, address, ctypes.byref(info))
    made: list[tuple[int, str]] = []
    at = 0
    while at < len(code):
        size = U64()
        call("disassemble_instruction", info, U64(base + at), None, ctypes.byref(size))
        made.append((size.value, " ".join(lines.pop().split())))
        at += size.value
    call("destroy_disassembly_info", info)
    return made


def read_object(data: bytes) -> dict[str, Any]:
    """The ISA's name, the metadata and the instructions of a code object."""
    handle, node, size = Handle(), Handle(), ctypes.c_size_t()
    call("create_data", EXECUTABLE, ctypes.byref(handle))
    call("set_data", handle, ctypes.c_size_t(len(data)), data)
    call("set_data_name", handle, b"kernel")
    call("get_data_isa_name", handle, ctypes.byref(size), None)
    isa = ctypes.create_string_buffer(size.value)
    call("get_data_isa_name", handle, ctypes.byref(size), isa)
    call("get_data_metadata", handle, ctypes.byref(node))
    metadata = value(node)
    call("destroy_metadata", node)
    call("release_data", handle)
    return {
        "isa": isa.value.decode(),
        "metadata": metadata,
        "text": disassemble(isa.value, text_section(data)),
    }


def main() -> None:
    while head := sys.stdin.buffer.read(8):
        data = sys.stdin.buffer.read(int.from_bytes(head, "little"))
        try:
            said = read_object(data)
        except ValueError as error:
            said = {"error": str(error)}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
