"""Code of the optimising tier for processors whose instructions are not RDNA3's: no table of
`sassxlate.disasm` has them, so LLVM's own text names each, and their encodings say where it is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sassxlate.lowering.target import Family
from sassxlate.lowering.tier.families.encodings import RDNA2, RDNA4, Encodings

FAMILIES: Final[Mapping[Family, Encodings]] = MappingProxyType({"RDNA2": RDNA2, "RDNA4": RDNA4})

__all__ = ["FAMILIES"]
