"""Machine code as LLVM's disassembler reads it: opcode, operands, text of each instruction."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tools.witness.judge.llvm_tools import FEATURES, run


class JudgeError(Exception):
    """LLVM cannot be asked about this code; the text says what it is that LLVM does not take."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """An instruction.  ``opcode`` is LLVM's name with the processor's suffix; an operand is a
    register's name ("VGPR1") or a number; ``at`` is in bytes from the start of the code."""

    at: int
    word: bytes
    opcode: str
    operands: tuple[str | int, ...]
    text: str

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.word)

    @property
    def is_branch(self) -> bool:
        """s_branch and s_cbranch_*, whose one operand is a distance."""
        return self.opcode.startswith(("S_BRANCH_", "S_CBRANCH_"))

    @property
    def is_call(self) -> bool:
        return self.opcode.startswith("S_CALL_B64")

    @property
    def is_return(self) -> bool:
        return self.opcode.startswith("S_SETPC_B64")

    @property
    def ends(self) -> bool:
        """Whether nothing follows it in the program's order."""
        return self.opcode.startswith(("S_ENDPGM", "S_BRANCH_", "S_SETPC_B64", "S_CALL_B64"))

    @property
    def target(self) -> int:
        """Where a branch or a call goes."""
        distance = self.operands[-1]
        assert isinstance(distance, int)
        distance &= 0xFFFF
        return self.at + 4 + 4 * (distance - ((distance & 0x8000) << 1))


_WHOLE = (f"-mattr={FEATURES}",)
_ENCODING = re.compile(r"\t(.*?)\s*; encoding: \[([^\]]*)\]")
_OPCODE = re.compile(r"<MCInst #\d+ (\w+)>?$")
_OPERAND = re.compile(r"<MCOperand (Reg|Imm|SFPImm|DFPImm|Expr):(.*?)>{1,2}$")


def decode(codes: Sequence[bytes], *, halves: bool = False) -> list[tuple[Decoded, ...]]:
    """The instructions of several pieces of code, each decoded for itself.  ``halves``: operands of
    16 bits are named as halves of registers, as LLVM prints them where it is not told otherwise.

    Raises:
        JudgeError: LLVM finds bytes that are no instruction.
    """
    text = " ".join(f"0x{byte:02x}" for code in codes for byte in code)
    words = ["-disassemble", "-show-inst", "-show-encoding", *(() if halves else _WHOLE)]
    done = run("llvm-mc", words, text)
    if done.returncode or "warning:" in done.stderr or "error:" in done.stderr:
        raise JudgeError(f"llvm-mc: {done.stderr.strip()[:500]}")
    bounds = [0]
    for code in codes:
        bounds.append(bounds[-1] + len(code))
    every = list(_read(done.stdout))
    made: list[tuple[Decoded, ...]] = []
    place = 0
    for start, end in pairwise(bounds):
        mine: list[Decoded] = []
        while place < len(every) and every[place].at < end:
            one = every[place]
            mine.append(replace(one, at=one.at - start))
            place += 1
        if sum(one.size for one in mine) != end - start:
            raise JudgeError("llvm-mc reads an instruction over the end of the code")
        made.append(tuple(mine))
    return made


def _read(listing: str) -> Iterator[Decoded]:
    at, word, text, opcode = 0, b"", "", ""
    operands: list[str | int] = []
    for line in listing.splitlines():
        if found := _ENCODING.match(line):
            if opcode:
                yield Decoded(at, word, opcode, tuple(operands), text)
            at += len(word)
            word = bytes(int(byte, 16) for byte in found[2].split(","))
            text, opcode, operands = found[1].replace("\t", " "), "", []
        if found := _OPCODE.search(line):
            opcode = found[1]
        elif found := _OPERAND.search(line):
            operands.append(found[2] if found[1] == "Reg" else _number(found[2]))
    if opcode:
        yield Decoded(at, word, opcode, tuple(operands), text)


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise JudgeError(f"an operand that is no number: {text}") from None
