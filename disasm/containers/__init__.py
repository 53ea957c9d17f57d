"""Containers: host ELF files, fatbins and cubins, read into the values of `model`."""

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.demangle import demangle
from sassxlate.disasm.containers.fatbin import find_fatbins, parse_fatbin
from sassxlate.disasm.containers.host import (
    LoadedFile,
    Origin,
    Wrapper,
    load,
    load_bytes,
    read_file,
)
from sassxlate.disasm.containers.values import Cubin, Fatbin, FatbinEntry, Function, Kernel

__all__ = [
    "Cubin",
    "Fatbin",
    "FatbinEntry",
    "Function",
    "Kernel",
    "LoadedFile",
    "Origin",
    "Wrapper",
    "demangle",
    "find_fatbins",
    "load",
    "load_bytes",
    "parse_cubin",
    "parse_fatbin",
    "read_file",
]
