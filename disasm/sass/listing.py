"""A decoded section as text in nvdisasm's shape: offsets, labels, one instruction a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .decode import BadWord, Section
from .ir import Control, Instruction, Label

_MNEMONIC_COLUMN = 35
_ENCODING_COLUMN = 90
_CONTROL_WIDTH = 27


def targets(section: Section) -> list[int]:
    """The code addresses inside the section that instructions name, in order of first mention."""
    end = 16 * len(section.instructions)
    seen: dict[int, None] = {}
    for inst in section.instructions:
        if isinstance(inst, Instruction):
            for operand in inst.operands.values():
                if isinstance(operand, Label) and 0 <= operand.target < end:
                    seen.setdefault(operand.target)
    return list(seen)


def labels(section: Section, symbols: Mapping[int, str], first: int = 0) -> dict[int, str]:
    """A name for every target: a function's where one starts there, else ``.L_x_<n>``.

    ``first`` is the number of the first label, so that a file's labels can count on.
    """
    names = dict(symbols)
    for target in targets(section):
        if target not in names:
            names[target] = f".L_x_{first}"
            first += 1
    return names


def control_text(control: Control) -> str:
    """The scheduling information: what is waited for, barriers set, yield, stall, reuse.

    ``[B0-2---:R3:W-:Y:S04]``: scoreboards 0 and 2 are waited for, 3 is set when the operands are
    read, none when the result is written, the warp may yield, four cycles of stall.
    """
    waits = "".join(str(i) if control.wait_mask >> i & 1 else "-" for i in range(6))
    read = "-" if control.read_barrier == 7 else str(control.read_barrier)
    write = "-" if control.write_barrier == 7 else str(control.write_barrier)
    flag = "-" if control.yield_ else "Y"  # the bit set means: do not yield
    return f"[B{waits}:R{read}:W{write}:{flag}:S{control.stall:02}]"


def instruction_text(inst: Instruction, names: Mapping[int, str]) -> str:
    """The instruction's text with its target's name in place of the address."""
    for operand in inst.operands.values():
        if isinstance(operand, Label) and operand.target in names:
            address = (
                f"-{-operand.target:#x}" if operand.target < 0 else f"{operand.target:#x}"
            )
            head, found, tail = inst.text.rpartition(address)
            if found and not tail:
                return f"{head}`({names[operand.target]})"
    return inst.text


def _aligned(text: str, lead: int) -> str:
    """Guards stand flush right before the mnemonic's column."""
    guard, blank, rest = text.partition(" ")
    if not text.startswith("@") or not blank:
        guard, rest = "", text
    width = _MNEMONIC_COLUMN - lead - 1
    return f"{guard:>{width}} {rest}"


def lines(
    section: Section,
    symbols: Mapping[int, str] | None = None,
    *,
    first_label: int = 0,
    encoding: bool = False,
    control: bool = False,
) -> Iterator[str]:
    """The listing's lines.  ``symbols`` names code addresses; bad words print their error.

    ``encoding`` adds the words in hexadecimal, the high half on a line of its own as nvdisasm
    has it; ``control`` adds the scheduling information before each instruction.
    """
    names = labels(section, symbols or {}, first_label)
    for item in section.instructions:
        if item.offset in names:
            yield f"{names[item.offset]}:"
        place = f"        /*{item.offset:04x}*/"
        if isinstance(item, BadWord):
            yield f"{place} error {item.error.code}: {item.error.message}: {item.word:#034x}"
            continue
        before = f"{place}  {control_text(item.control)}" if control else place
        lead = len(before) - (_CONTROL_WIDTH if control else 0)
        line = f"{before}{_aligned(instruction_text(item, names), lead)} ;"
        if not encoding:
            yield line
            continue
        low, high = item.word & (1 << 64) - 1, item.word >> 64
        yield f"{line:<{_ENCODING_COLUMN}} /* {low:#018x} */"
        yield f"{'':<{_ENCODING_COLUMN}} /* {high:#018x} */"


def next_label(names: Iterable[str]) -> int:
    """The number after the last ``.L_x_<n>`` of a listing."""
    numbers = [int(n[5:]) for n in names if n.startswith(".L_x_")]
    return max(numbers, default=-1) + 1
