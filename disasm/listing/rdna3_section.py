"""Listings of code objects in the shape of ``llvm-objdump -d``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sassxlate.disasm.containers.code_object import CodeObject, CodeSection
from sassxlate.disasm.containers.elf import STT_NOTYPE, ElfSymbol
from sassxlate.disasm.rdna3.codec.decode.instruction import branch_target, decode
from sassxlate.disasm.rdna3.codec.text.instruction import format_inst
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.reads_writes import RRef, reads, writes
from sassxlate.disasm.rdna3.tables.opcodes import info
from sassxlate.errors import EncodeError

_COLUMN: Final = 60  # column of the comment; the leading tab counts as one
_LEAST_ZEROS: Final = 8  # the shortest run of zero bytes that is left out


@dataclass(frozen=True, slots=True)
class ListedInstruction:
    """One instruction of a piece of code, or, with ``error``, a word that is not an instruction."""

    address: int
    code: bytes
    inst: Inst | None
    error: EncodeError | None = None

    @property
    def text(self) -> str:
        """The instruction as LLVM prints it; for a bad word, the directive for its bytes."""
        if self.inst is not None:
            return format_inst(self.inst)
        if self.is_zero:
            return "v_illegal"
        if len(self.code) == 4:
            return f".long {int.from_bytes(self.code, 'little'):#010x}"
        return ".byte " + ", ".join(f"{byte:#04x}" for byte in self.code)

    @property
    def is_zero(self) -> bool:
        """Whether it is padding, which LLVM prints as ``v_illegal``."""
        return self.code == bytes(4)

    @property
    def words(self) -> str:
        """The bytes in the form of LLVM's comment: dwords in hexadecimal."""
        if len(self.code) < 4:
            return " ".join(f"{byte:02X}" for byte in self.code)
        dwords = [self.code[i : i + 4] for i in range(0, len(self.code), 4)]
        return " ".join(f"{int.from_bytes(d, 'little'):08X}" for d in dwords)


def decode_code(code: bytes, base: int = 0) -> Iterator[ListedInstruction]:
    """The instructions from an address on; after a bad word decoding continues with the next."""
    at = 0
    while at < len(code):
        try:
            inst, size = decode(code, at, strict=True)
            yield ListedInstruction(base + at, code[at : at + size], inst)
        except EncodeError as error:
            size = min(4, len(code) - at)
            yield ListedInstruction(base + at, code[at : at + size], None, error)
        at += size


def target_of(line: ListedInstruction) -> int | None:
    """The address that a direct branch or call goes to; None for other instructions."""
    if line.inst is None or "subvector" in line.inst.op:
        return None
    if info(line.inst.op).kind != "branch" and line.inst.op != "s_call_b64":
        return None
    return branch_target(line.inst, line.address)


def pieces(obj: CodeObject, section: CodeSection) -> Iterator[tuple[ElfSymbol | None, int, bytes]]:
    """(symbol, address, code) of a section's parts, each up to the next symbol."""
    places: dict[int, ElfSymbol] = {}
    for symbol in obj.symbols_of(section):
        places.setdefault(symbol.value - section.address, symbol)
    ends = sorted({*places, 0, len(section.data)})
    for start, end in pairwise(ends):
        if 0 <= start < end <= len(section.data):
            yield places.get(start), section.address + start, section.data[start:end]


def _zeros(code: bytes, at: int) -> int:
    """The number of zero bytes from ``at`` on to leave out: a multiple of four."""
    if code[at : at + _LEAST_ZEROS].strip(b"\0") or at + _LEAST_ZEROS > len(code):
        return 0
    end = at + _LEAST_ZEROS
    while end < len(code) and not code[end]:
        end += 1
    return end - at & ~3


def _place(symbols: list[ElfSymbol], address: int) -> str:
    """`` <symbol+0x10>``; empty if no symbol precedes the address."""
    below = [s for s in symbols if s.value <= address]
    if not below:
        return ""
    best = below[-1]
    first = next(s for s in below if s.value == best.value)
    offset = address - first.value
    return f" <{first.name}+{offset:#x}>" if offset else f" <{first.name}>"


def section_lines(
    obj: CodeObject,
    section: CodeSection,
    wanted: Callable[[ElfSymbol | None], bool] = lambda _: True,
    *,
    encoding: bool = True,
) -> Iterator[tuple[str, ListedInstruction | None]]:
    """The listing of a section: (text, instruction or None for other lines).

    ``encoding`` prints the words as LLVM does; without it the comment is only the address.
    Branches to labels (symbols without a type) print them as operands, others name their target
    in the comment.  A word that is not an instruction prints as ``.long``, followed by its error.
    """
    symbols = list(obj.symbols_of(section))
    labels = {s.value: s.name for s in reversed(symbols) if s.kind == STT_NOTYPE}
    relocations = sorted(section.relocations, key=lambda r: r.offset)
    for symbol, address, code in pieces(obj, section):
        if not wanted(symbol):
            continue
        name = symbol.name if symbol else section.name
        yield "", None
        yield f"{address:016x} <{name}>:", None
        at = 0
        while at < len(code):
            skipped = _zeros(code, at)
            if skipped:
                yield "\t\t...", None
                at += skipped
                continue
            line = next(decode_code(code[at : at + 12], address + at))
            comment = f"// {line.address:012X}:" + (f" {line.words}" if encoding else "")
            text = line.text
            target = target_of(line)
            if target is not None:
                label = labels.get(target)
                if label is not None:
                    text = f"{text.rpartition(' ')[0]} {label}"
                elif "s_call" not in text:
                    comment += _place(symbols, target)
            if line.error is not None and not line.is_zero:
                comment += f" // {line.error.code}: {line.error.message}"
            yield f"{chr(9) + text:<{_COLUMN}}{comment}", line
            at += len(line.code)
            low, high = line.address - section.address, address + at - section.address
            for r in (r for r in relocations if low <= r.offset < high):
                addend = f"{'+' if r.addend > 0 else '-'}{abs(r.addend):#x}" if r.addend else ""
                yield f"\t\t{section.address + r.offset:016x}:  {r.name}\t{r.symbol}{addend}", None


def register_name(ref: RRef) -> str:
    """The name of a piece of state in listings."""
    if ref.kind == "s" and ref.number > 105:
        special = {106: "vcc_lo", 107: "vcc_hi", 125: "m0", 126: "exec_lo", 127: "exec_hi"}
        return special.get(ref.number, f"ttmp{ref.number - 108}")
    return f"{ref.kind}{ref.number}" if ref.kind in ("v", "s") else ref.kind


def record(line: ListedInstruction) -> dict[str, object]:
    """One instruction for JSON: text, bytes, registers read and written, a branch's target."""
    found: dict[str, object] = {
        "address": line.address,
        "encoding": line.words.split(),
        "text": line.text,
    }
    if line.inst is None:
        assert line.error is not None
        return found | {"error": {"code": line.error.code, "message": line.error.message}}
    found["mnemonic"] = line.inst.op
    found["reads"] = [register_name(ref) for ref in sorted(reads(line.inst))]
    found["writes"] = [register_name(ref) for ref in sorted(writes(line.inst))]
    target = target_of(line)
    return found if target is None else found | {"target": target}
