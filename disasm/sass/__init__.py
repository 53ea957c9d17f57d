"""SASS: decoding of NVIDIA machine code, sm_75 to sm_121."""

from __future__ import annotations

from sassxlate.disasm.sass.codec.decode import BadWord, decode
from sassxlate.disasm.sass.codec.filled import decode_filled
from sassxlate.disasm.sass.codec.section import (
    Section,
    decode_section,
    decode_sections,
)

__all__ = [
    "BadWord",
    "Section",
    "decode",
    "decode_filled",
    "decode_section",
    "decode_sections",
]
