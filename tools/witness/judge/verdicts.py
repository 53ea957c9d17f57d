"""What LLVM's passes say of finished code."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tools.witness.judge import mir
from tools.witness.judge.llvm_tools import complaints, run
from tools.witness.judge.machine_code import Decoded, JudgeError, decode
from tools.witness.judge.opcodes import Opcodes

WAITS = ("-run-pass=si-insert-waitcnts", "-run-pass=post-RA-hazard-rec", "-verify-machineinstrs")
_GIVES_BACK = "S_SENDMSG 3,"  # dealloc_vgprs, after an s_nop
_WINDOW = 60  # lines in which a change has to end
BATCH = 25  # functions a run of llc
_BODY = re.compile(r"^body: +\|\n(.*?)^\.\.\.$", re.M | re.S)
_INSTRUCTION = re.compile(r"^    (?!successors:|liveins:)(\S.*)$", re.M)


@dataclass(frozen=True, slots=True)
class Change:
    """What LLVM's passes changed at one place: machine IR of the code before, and after.
    ``place`` counts the code's lines of machine IR."""

    place: int
    was: tuple[str, ...]
    now: tuple[str, ...]

    @property
    def lacks(self) -> tuple[str, ...]:
        """What LLVM wrote and the code has not.  Two things are none: what it left out, and the
        message that gives registers back early, which is for speed."""
        left = list(self.was)
        out: list[str] = []
        for line in self.now:
            if line in left:
                left.remove(line)
            else:
                out.append(line)
        if any(line.startswith(_GIVES_BACK) for line in out):
            out = [line for line in out if not line.startswith((_GIVES_BACK, "S_NOP 0"))]
        return tuple(out)


def passed(functions: Sequence[str], passes: Sequence[str]) -> list[tuple[str, ...]]:
    """The lines of machine IR of each function after LLVM's passes.

    Raises:
        JudgeError: the machine verifier complains, or llc does not take the text.
    """
    done = run("llc", [*passes, "-x=mir", "-o", "-"], mir.module(functions))
    if done.returncode:
        raise JudgeError(f"llc: {complaints(done.stderr)}")
    bodies = _BODY.findall(done.stdout)
    assert len(bodies) == len(functions)
    return [tuple(_INSTRUCTION.findall(body)) for body in bodies]


def changes(functions: Sequence[str]) -> list[tuple[Change, ...]]:
    """For each function what LLVM's pass of waits and its hazard recogniser change.

    Raises:
        JudgeError: as :func:`passed`.
    """
    before = passed(functions, ("-run-pass=none",))
    after = passed(functions, WAITS)
    return [_differences(one, other) for one, other in zip(before, after, strict=True)]


def _differences(before: Sequence[str], after: Sequence[str]) -> tuple[Change, ...]:
    if before == after:
        return ()
    found: list[Change] = []
    place = at = 0
    # Insertions alone are the rule: a walk over both, and difflib only for what is left.
    while place < len(before) and at < len(after):
        if before[place] == after[at]:
            place, at = place + 1, at + 1
            continue
        one, other = before[place : place + _WINDOW], after[at : at + _WINDOW]
        rest = SequenceMatcher(None, one, other, False).get_matching_blocks()
        block = next(b for b in rest if b.size or b.a == len(one))
        was, now = tuple(one[: block.a]), tuple(other[: block.b])
        found.append(Change(place, was, now))
        place, at = place + block.a, at + block.b
    if before[place:] or after[at:]:
        found.append(Change(place, tuple(before[place:]), tuple(after[at:])))
    return tuple(found)


def encoded_back(functions: Sequence[str]) -> list[tuple[Decoded, ...]]:
    """The code that LLVM makes of machine IR as it stands, without any pass: by it a mistake of the
    mapping is found, as then other instructions come out.

    Raises:
        JudgeError: llc does not encode it.
    """
    with TemporaryDirectory() as folder:
        out = Path(folder, "a.o")
        words = ["-start-after=stack-frame-layout", "-filetype=obj", "-x=mir", "-o", str(out)]
        done = run("llc", words, mir.module(functions))
        if done.returncode:
            raise JudgeError(f"llc: {complaints(done.stderr)}")
        data = out.read_bytes()
    elf = ELFFile(io.BytesIO(data))
    table, text = elf.get_section_by_name(".symtab"), elf.get_section_by_name(".text")
    assert isinstance(table, SymbolTableSection)
    assert text is not None
    code = bytes(text.data())
    ranges = {s.name: (s["st_value"], s["st_size"]) for s in table.iter_symbols()}
    spans = [ranges[f"f{n}"] for n in range(len(functions))]
    return decode([code[at : at + size] for at, size in spans])


def differences(code: Sequence[Decoded], again: Sequence[Decoded]) -> list[str]:
    """Where LLVM's encoding of the machine IR (calls by `mir.short_calls`) is not the code that it
    was made of, byte by byte."""
    found: list[str] = []
    for place, inst in enumerate(code):
        if place >= len(again):
            return [*found, f"{inst.text}: not there"]
        other = again[place]
        if inst.is_call:  # s_branch, over the same distance
            same = other.opcode.startswith("S_BRANCH_") and other.word[:2] == inst.word[:2]
        else:
            same = other.word == inst.word
        if not same:
            found.append(f"{inst.text}: {other.text}")
    return found


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one piece of code: why LLVM could not be asked, what it misses, what it encodes otherwise;
    all empty if there is nothing to say."""

    refused: str
    lacks: tuple[str, ...]
    encoded: tuple[str, ...]

    @property
    def clean(self) -> bool:
        return not (self.refused or self.lacks or self.encoded)


def judged(codes: Sequence[Sequence[Decoded]], opcodes: Opcodes) -> list[Verdict]:
    """The verdict on each piece of code."""
    made: list[Verdict] = []
    for start in range(0, len(codes), BATCH):
        made += _batch(codes[start : start + BATCH], opcodes)
    return made


def _batch(codes: Sequence[Sequence[Decoded]], opcodes: Opcodes) -> list[Verdict]:
    functions = [mir.function(n, code, opcodes) for n, code in enumerate(codes)]
    short = [mir.function(n, code, opcodes, mir.short_calls) for n, code in enumerate(codes)]
    try:
        seen, again = changes(functions), encoded_back(short)
    except JudgeError as error:  # one piece of code stops a whole run of llc
        if len(codes) == 1:
            return [Verdict(str(error), (), ())]
        middle = len(codes) // 2
        return [*_batch(codes[:middle], opcodes), *_batch(codes[middle:], opcodes)]
    return [
        Verdict(
            "",
            tuple(f"{change.place}: {line}" for change in found for line in change.lacks),
            tuple(differences(code, theirs)),
        )
        for code, found, theirs in zip(codes, seen, again, strict=True)
    ]


def described(codes: Iterable[Sequence[Decoded]], opcodes: Opcodes) -> None:
    """Learns what machine IR needs of all opcodes in ``codes``."""
    one_of_each: dict[str, Decoded] = {}
    for code in codes:
        for inst in code:
            one_of_each.setdefault(inst.opcode, inst)
    opcodes.learn(one_of_each, lambda known: mir.examples(one_of_each, known))
