"""Whole listings to machine code: reads back what ``sassxlate disasm`` and nvdisasm print."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from sassxlate.disasm.sass.codec.decode import WORD_BYTES
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.errors import DecodeError, Where

_COMMENT = re.compile(r"/\*.*?\*/|//.*$|\(\*.*?\*\)")
_LABEL = re.compile(r"^\s*([.\w$@]+):\s*$")
_SECTION = re.compile(r"^\.text\.(.+)$")
_DIRECTIVE = re.compile(r"^\s*\.\w+(\s|$)")
_REFERENCE = re.compile(r"`\(([^)]*)\)")


@dataclass(slots=True)
class _Code:
    """A section being read: its instructions with their line numbers, its labels."""

    lines: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    labels: dict[str, int] = field(default_factory=dict[str, int])


def _read(text: Iterable[str]) -> dict[str, _Code]:
    """The sections of a listing; lines before the first belong to a section without a name."""
    out: dict[str, _Code] = {}
    name = ""
    pending: list[str] = []  # nvdisasm prints a kernel's name before its section's
    for number, raw in enumerate(text, 1):
        line = _COMMENT.sub("", raw).strip()
        if not line:
            continue
        label = _LABEL.match(line)
        section = _SECTION.match(label[1]) if label else None
        if section:
            name = section[1]
            code = out.setdefault(name, _Code())
            code.labels.update(dict.fromkeys([*pending, name], 0))
            pending.clear()
        elif label:
            code = out.setdefault(name, _Code())
            code.labels.setdefault(label[1], len(code.lines) * WORD_BYTES)
            pending = [label[1]]
        elif line.endswith(";"):
            out.setdefault(name, _Code()).lines.append((number, line))
            pending.clear()
        elif not _DIRECTIVE.match(line):
            raise DecodeError("SX0207", f"line {number} is not an instruction, label or directive")
    return {name: code for name, code in out.items() if name or code.lines}


def assemble_listing(text: Iterable[str], arch: int) -> dict[str, bytes]:
    """The machine code of each section of a listing, by the section's name without ``.text.``.

    Labels are on separate lines and are referred to as ```(label)``; a listing without section
    labels is one section with an empty name.

    Raises :class:`DecodeError`: SX0204 unknown architecture, SX0206 no such instruction, SX0207
    a line that cannot be read or a label that is not defined.
    """
    return {name: _section(code, arch) for name, code in _read(text).items()}


def _section(code: _Code, arch: int) -> bytes:
    out = bytearray()
    for number, line in code.lines:
        offset = len(out)

        def address(match: re.Match[str], number: int = number) -> str:
            target = code.labels.get(match[1])
            if target is None:
                raise DecodeError("SX0207", f"line {number}: no label {match[1]} in this section")
            return f"{target:#x}"

        body = _REFERENCE.sub(address, line)
        try:
            out += assemble(body, arch, offset).to_bytes(WORD_BYTES, "little")
        except DecodeError as error:
            raise DecodeError(
                error.code, f"line {number}: {error.message}", Where(offset=offset)
            ) from None
    return bytes(out)
