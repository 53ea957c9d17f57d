"""SASS: decoding of NVIDIA machine code, sm_75 to sm_121."""

from __future__ import annotations

from .decode import BadWord, Section, decode, decode_section

__all__ = ["BadWord", "Section", "decode", "decode_section"]
