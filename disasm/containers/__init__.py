"""Containers: host ELF files, fatbins and cubins, read into the values of `model`."""

from .cubin import parse_cubin
from .demangle import demangle
from .fatbin import find_fatbins, parse_fatbin
from .host import LoadedFile, Origin, Wrapper, load, load_bytes, read_file
from .model import Cubin, Fatbin, FatbinEntry, Function, Kernel

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
