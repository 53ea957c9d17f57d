"""The instructions that stand in for others (:mod:`..numbers.stand_ins`), in RDNA2's and RDNA4's
machine code.

No table decodes these families.  LLVM writes the code twice, as a file and as text: the text has
each instruction's name and operands, the encodings say where it is.  Both must agree in number and
kind, or the kernel is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from sassxlate.lowering.tier.families.encodings import LITERAL, Encodings, field, places
from sassxlate.lowering.tier.numbers import stand_ins
from sassxlate.lowering.tier.numbers.far import addresses, direct
from sassxlate.lowering.tier.numbers.modes import Change, blind
from sassxlate.lowering.tier.numbers.pieces import NOP, Piece, in_clause
from sassxlate.lowering.tier.numbers.stand_ins import Real, branches
from sassxlate.lowering.tier.numbers.weave import Calls, Woven, woven
from sassxlate.lowering.tier.refusal import BACKEND, refused

_VECTORS: Final = 256  # sources from here on
_INTEGERS: Final = range(128, 209)  # 0 to 64, then -1 to -16
_FLOATS: Final = {
    240 + n: bits
    for n, bits in enumerate(
        (0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000, 0x40000000, 0xC0000000, 0x40800000,
         0xC0800000, 0x3E22F983)
    )
}  # fmt: skip
_ALIGN: Final = ".p2align"
ALIGNED: Final = 6  # the largest alignment of what LLVM puts into a function, as a power of two


def instructions(assembly: str, name: str) -> list[str]:
    """The instructions of a function in LLVM's assembly, each as it is printed, and the directives
    that align what follows."""
    _, start, rest = assembly.partition(f"\n{name}:")
    if not start:
        raise refused(BACKEND, "LLVM's text has no kernel")
    found: list[str] = []
    code = rest.partition("\n.Lfunc_end")[0].partition("\n\t.section")[0]
    for line in code.split("\n")[1:]:
        text = line.partition(";")[0].strip()
        if text and line[0] == "\t" and (text[0] != "." or text.startswith(_ALIGN)):
            found.append(" ".join(text.split()))
    return found


def all_instructions(assembly: str, names: Iterable[str]) -> list[str]:
    """Those of several functions, each of which is aligned."""
    first, *others = (instructions(assembly, name) for name in names)
    return [*first, *(text for some in others for text in (f"{_ALIGN} {ALIGNED}", *some))]


def replaced(
    code: bytes,
    texts: Sequence[str],
    lines: Iterable[tuple[int, int]],
    family: Encodings,
    calls: Calls | None = None,
    *,
    flushes: bool = False,
) -> Woven:
    """The code with the real instructions; ``calls`` resolves those of functions, ``flushes``: the
    mode flushes denormal binary32 numbers.

    Raises Refused SX0464 if code and text differ.
    """
    spans = places(code, family)
    texts = _paired(code, [at for at, _ in spans], texts)
    pieces = [
        _piece(code[at:end], at, text, family) for (at, end), text in zip(spans, texts, strict=True)
    ]
    starts = {at for at, _ in spans}
    if any(p.target is not None and p.target not in starts for p in pieces):
        raise refused(BACKEND, "a branch into an instruction")
    pieces = direct(pieces, family.scalar)
    if calls is not None:
        pieces = calls(pieces)
    elif addresses(pieces, family.scalar):
        raise refused(BACKEND, "addresses of code")

    def encoded(change: Change) -> bytes:
        return struct.pack("<HH", change.value, 0xBF80 | family.modes[change.name])

    return woven(pieces, lines, encoded, family.scalar, flushes=flushes)


def _paired(code: bytes, starts: Sequence[int], texts: Sequence[str]) -> list[str]:
    """A text for each instruction: a directive stands for as many s_nop as it needs."""
    out: list[str] = []
    for text in texts:
        if not text.startswith(_ALIGN):
            out.append(text)
            continue
        step = 1 << int(text.split()[1].rstrip(","))
        while len(out) < len(starts) and starts[len(out)] % step:
            at = starts[len(out)]
            if code[at : at + 4] != NOP:
                raise refused(BACKEND, "other instructions than s_nop before an aligned place")
            out.append("s_nop 0")
    if len(out) != len(starts):
        why = f"{len(starts)} instructions in the code, {len(out)} in the text"
        raise refused(BACKEND, why)
    return out


def _piece(data: bytes, at: int, text: str, family: Encodings) -> Piece:
    word = int.from_bytes(data[:4], "little")
    scalar = word >> 30 == 0b10 or word >> 26 == 0x3D  # SMEM
    if scalar != text.startswith("s_"):
        raise refused(BACKEND, f"the code is not its text: {text}")
    name, _, operands = text.partition(" ")
    if branches(name):
        distance = int.from_bytes(data[:2], "little", signed=True)
        return Piece(at, data, at + 4 + 4 * distance, text=text)
    opcode = field(word, 16, 10) if word >> 26 == 0x35 else None  # VOP3's
    known = next((n for n, number in family.stand_ins.items() if number == opcode), "")
    if known != (name if name in stand_ins.STAND_INS else ""):
        raise refused(BACKEND, f"the code is not its text: {text}")
    if not known:
        same = blind(*(part.split()[0] for part in text.split("::")))
        return Piece(at, data, text=text, clause=in_clause(data, family.scalar), blind=same)
    real, encoded, said = _StandIn(data, name, operands.split(", "), family).real()
    return Piece(at, data, real=encoded, mode=real.mode, text=said)


class _StandIn:
    """One stand-in: its fields as VOP3 has them, and its operands' texts."""

    def __init__(self, data: bytes, name: str, texts: list[str], family: Encodings) -> None:
        first, second = struct.unpack_from("<II", data)
        self.name, self.family = name, family
        self.vdst = first & 0xFF
        self.sources = [field(second, lo, 9) for lo in (0, 9, 18)]
        self.literal = int.from_bytes(data[8:12], "little")
        self.texts = dict(zip(self.sources, texts[1:], strict=False))
        if field(first, 8, 8) or second >> 27 or (len(data) > 8) != (LITERAL in self.sources):
            raise refused(BACKEND, "a stand-in with modifiers")

    def real(self) -> tuple[Real, bytes, str]:
        """What it stands for, its bytes and text."""
        of = stand_ins.FUSED_REAL.get(self.name) or self._numbered()
        args, width = self.sources[: of.sources], 1
        if self.name in (stand_ins.DOUBLE, stand_ins.TRIPLE):
            args, width = self._of_doubles(of), 2
        if of.nan:
            return of, *self._canonical(of, args[0])
        return of, *self._vop3(of.op, args, width, 1 if width == 2 and of.sources == 1 else width)

    def _numbered(self) -> Real:
        number = self.sources[2 if self.name == stand_ins.SINGLE else 1] - _INTEGERS[0]
        if not 0 <= number < len(stand_ins.NUMBERED):
            raise refused(BACKEND, "a stand-in without its number")
        return stand_ins.NUMBERED[number]

    def _of_doubles(self, of: Real) -> list[int]:
        first, _, last = self.sources
        args = [first] if of.sources == 1 else [first, last]
        if self.name == stand_ins.TRIPLE:
            args = [first, last, last + 2]
        constant = any(self._constant(a) is not None for a in args)
        if (self.name == stand_ins.TRIPLE) != (of.sources == 3) or (
            LITERAL in args if of.sources == 1 else constant
        ):
            raise refused(BACKEND, "a stand-in of doubles with a constant")
        return args

    def _constant(self, source: int) -> int | None:
        """The word that a source always is."""
        if source == LITERAL:
            return self.literal
        if source in _INTEGERS:
            value = source - 128
            return value if value <= 64 else (64 - value) & 0xFFFFFFFF
        return _FLOATS.get(source)

    def _text(self, source: int, width: int) -> str:
        if source < _VECTORS:
            return self.texts[source]
        n = source - _VECTORS
        return f"v{n}" if width == 1 else f"v[{n}:{n + width - 1}]"

    def _vop3(self, op: str, args: list[int], width: int, of_result: int) -> tuple[bytes, str]:
        opcode = self.family.opcodes[op]
        second = sum(source << 9 * place for place, source in enumerate(args))
        data = struct.pack("<II", 0x35 << 26 | opcode << 16 | self.vdst, second)
        if LITERAL in args:
            data += self.literal.to_bytes(4, "little")
        name = op if 0x140 <= opcode < 0x180 or opcode >= 0x200 else f"{op}_e64"
        said = [self._text(self.vdst + _VECTORS, of_result), *(self._text(a, width) for a in args)]
        return data, f"{name} {', '.join(said)}"

    def _canonical(self, of: Real, source: int) -> tuple[bytes, str]:
        """NVIDIA's NaN for any: the maximum with one, on both sides unless the first of two is
        the maximum."""
        vdst, text = f"v{self.vdst}", self._text(source, 1)
        known = self._constant(source)
        if known is not None:
            word = stand_ins.canonical_constant(known, of)
            move = 0x7E000200 | self.vdst << 17
            if word == known and source != LITERAL:
                return (move | source).to_bytes(4, "little"), f"v_mov_b32_e32 {vdst}, {text}"
            data = struct.pack("<II", move | LITERAL, word)
            return data, f"v_mov_b32_e32 {vdst}, {word:#x}"
        nan, name = of.nan, self.family.names.get(of.op, of.op)
        if of.op == "v_max3_f32":
            first = 0x35 << 26 | self.family.opcodes[of.op] << 16 | self.vdst
            second = LITERAL | source << 9 | LITERAL << 18
            return struct.pack(
                "<III", first, second, nan
            ), f"{name} {vdst}, {nan:#x}, {text}, {nan:#x}"
        data, said = self._packed(LITERAL, source, nan), f"{name} {vdst}, {nan:#x}, {text}"
        if not self.family.maximum_of_nans:
            data += self._packed(self.vdst + _VECTORS, LITERAL, nan)
            said += f"\n{name} {vdst}, {vdst}, {nan:#x}"
        return data, said

    def _packed(self, first: int, second: int, nan: int) -> bytes:
        """v_pk_max_f16 of both halves."""
        head = 0xCC << 24 | self.family.packed_maximum << 16 | 1 << 14 | self.vdst
        return struct.pack("<III", head, first | second << 9 | 3 << 27, nan)


__all__ = ["ALIGNED", "all_instructions", "instructions", "replaced"]
