"""SASS: decoding of NVIDIA machine code, sm_75 to sm_121."""

from __future__ import annotations

from .decode import BadWord, decode
from .section import Section, decode_section, decode_sections

__all__ = ["BadWord", "Section", "decode", "decode_section", "decode_sections"]
