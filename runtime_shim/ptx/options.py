"""The options of the driver's compiler and linker (CUjit_option) that change code, as text:
``max_registers=32,optimization=2,debug,line_info,cache=cg,target=90a,verbose``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sassxlate.errors import ServiceError

# What the driver's linker takes; NVVM and LTO-IR are no input of ours.
Kind: TypeAlias = Literal["ptx", "cubin", "fatbin", "object", "library"]
KINDS: dict[str, Kind] = {
    "ptx": "ptx",
    "cubin": "cubin",
    "fatbin": "fatbin",
    "object": "object",
    "library": "library",
}
TEXT_MAX = 200
_TARGET = re.compile(r"(\d{2,3})([af]?)")
_CACHES = ("ca", "cg")


@dataclass(frozen=True, slots=True)
class JitOptions:
    """Numbers are 0 and texts empty where the application does not set them."""

    max_registers: int = 0
    optimization: int = -1  # 0 to 4; -1: ptxas's own
    debug: bool = False
    line_info: bool = False
    cache: str = ""  # of loads: "ca", "cg"
    target: tuple[int, str] | None = None  # (90, "a")
    verbose: bool = False

    def arguments(self) -> list[str]:
        """ptxas's command line, without target and files."""
        made: list[str] = []
        if self.max_registers:
            made += ["-maxrregcount", str(self.max_registers)]
        if self.debug:
            made += ["-g"]  # ptxas does not optimise then, and refuses a level of it
        elif self.optimization >= 0:
            made += [f"-O{self.optimization}"]
        if self.line_info and not self.debug:
            made += ["-lineinfo"]
        if self.cache:
            made += [f"-dlcm={self.cache}"]
        if self.verbose:
            made += ["-v"]
        return made


def parse_options(text: str) -> JitOptions:
    """The options of a request; ServiceError SX0903 for anything else."""
    found: dict[str, str] = {}
    for item in filter(None, text.split(",")):
        name, _, value = item.partition("=")
        if name in found or name not in JitOptions.__dataclass_fields__:
            raise ServiceError("SX0903", f"no option {item[:40]!a}")
        found[name] = value
    target = None
    if "target" in found:
        match = _TARGET.fullmatch(found["target"])
        if match is None:
            raise ServiceError("SX0903", f"no target {found['target'][:40]!a}")
        target = int(match[1]), match[2]
    cache = found.get("cache", "")
    if cache not in ("", *_CACHES):
        raise ServiceError("SX0903", f"no cache mode {cache[:40]!a}")
    return JitOptions(
        max_registers=_number(found, "max_registers", 0, 1 << 31),
        optimization=_number(found, "optimization", -1, 4),
        debug="debug" in found,
        line_info="line_info" in found,
        cache=cache,
        target=target,
        verbose="verbose" in found,
    )


def _number(found: dict[str, str], name: str, default: int, most: int) -> int:
    text = found.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal()) or int(text) > most:
        raise ServiceError("SX0903", f"the option {name} is not a number: {text[:40]!a}")
    return int(text)


__all__ = ["KINDS", "TEXT_MAX", "JitOptions", "Kind", "parse_options"]
