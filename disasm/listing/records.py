"""The optional parts of `sassxlate ls` for a cubin: records of .nv.info, and relocations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from sassxlate.disasm.containers.attributes import Value, records
from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.containers.relocations import relocations
from sassxlate.errors import SassxlateError
from sassxlate.output import table


@dataclass(frozen=True, slots=True)
class More:
    """The requested parts."""

    attributes: bool
    relocations: bool

    def of(self, data: bytes, path: str, errors: list[SassxlateError]) -> dict[str, Any]:
        """The requested parts of a cubin, as JSON values; records that contradict their layout add
        an error."""
        found: dict[str, Any] = {}
        elf = Elf(data)
        if self.attributes:
            read, broken = records(elf)
            errors += (error.at(file=path) for error in broken)
            found["attributes"] = [
                {
                    "section": r.section,
                    "id": r.attribute.id,
                    "name": r.attribute.name,
                    "format": r.attribute.format,
                    "value": r.value,
                    "decoded": r.known,
                }
                for r in read
            ]
        if self.relocations:
            found["relocations"] = [asdict(r) for r in relocations(elf)]
        return found


def more_lines(entry: dict[str, Any]) -> Iterator[str]:
    """The same as text."""
    place = f"module {entry['module']} entry {entry['entry']}, {entry['arch']}"
    if "attributes" in entry:
        yield f"\n  {place}, attributes:"
        rows = [
            (r["section"], r["name"], r["format"], _text(r["value"], r["decoded"]))
            for r in entry["attributes"]
        ]
        yield from table(("section", "attribute", "format", "value"), rows, "    ")
    if "relocations" in entry:
        yield f"\n  {place}, relocations:"
        rows = [
            (r["section"], f"{r['offset']:#06x}", r["type"], _symbol(r))
            for r in entry["relocations"]
        ]
        yield from table(("section", "offset", "type", "symbol"), rows, "    ")


def _symbol(relocation: dict[str, Any]) -> str:
    addend: int = relocation["addend"]
    symbol: str = relocation["symbol"]
    if not addend:
        return symbol
    sign = "-" if addend < 0 else "+"
    return f"{symbol} {sign} {abs(addend):#x}"


def _text(value: Value, decoded: bool) -> str:
    if not decoded:
        return f"bytes {value}"
    if isinstance(value, dict):
        return " ".join(f"{key}={_text(item, True)}" for key, item in value.items())
    if isinstance(value, list):
        brackets = any(isinstance(item, dict | list) for item in value)
        texts = [_text(item, True) for item in value]
        return " ".join(f"({text})" if brackets else text for text in texts)
    if isinstance(value, bool):
        return "yes"
    return f"{value:#x}" if isinstance(value, int) else value
