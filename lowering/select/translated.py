"""A translated kernel and its statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sassxlate.cfg import Cfg
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.rdna3 import Program, format_inst
from sassxlate.disasm.rdna3.instruction import Item, Label
from sassxlate.lowering.abi.kernarg import LaunchInfo
from sassxlate.lowering.codeobject.source_map import origin_texts
from sassxlate.lowering.select.stages import Selected

NOT_READ: Final = "not read"  # the mnemonic of an instruction whose text is its comment


@dataclass(frozen=True, slots=True)
class TranslationStats:
    """The figures of a translation."""

    kernel: str
    sass_instructions: int
    rdna_instructions: int
    blocks: int
    waiting_points: int
    vgprs: int
    spilled: int
    code_bytes: int
    rules: tuple[tuple[str, int], ...]
    seconds: tuple[tuple[str, float], ...]
    comes_apart: bool = False  # on an NVIDIA GPU, in recursion: Plan.comes_apart
    left_out: int = 0  # functions that it may call through pointers, too many to be translated


@dataclass(frozen=True, slots=True)
class TranslatedCode:
    """One kernel's code object and its launch data, without the instructions that it is made of."""

    kernel: Kernel
    code_object: bytes
    launch: LaunchInfo
    report: TranslationStats


@dataclass(frozen=True, slots=True)
class Translated:
    """One kernel for the target: its code object and its launch data."""

    kernel: Kernel
    code_object: bytes
    launch: LaunchInfo
    report: TranslationStats
    cfg: Cfg
    program: Program
    items: tuple[Item, ...]
    selected: Selected
    text: str = ""  # the assembly of code that no table of ours reads: there are no items then

    @property
    def assembly(self) -> str:
        """The program as :func:`assembly` prints it, made at each access: few callers print it."""
        return self.text or assembly(self.items, self.program)


def assembly(items: Sequence[Item], program: Program) -> str:
    """The program as text: offsets, instructions, and the SASS that each came from."""
    lines: list[str] = []
    for item, offset, origin in zip(items, program.offsets, origin_texts(items), strict=True):
        if isinstance(item, Label):
            lines.append(f"{item.name}:")
            continue
        text = item.comment if item.op == NOT_READ else format_inst(item)
        comment = f" ; {origin}" if origin else ""
        lines.append(f"  {text:<56} // {offset:06x}{comment}")
    return "\n".join(lines) + "\n"
