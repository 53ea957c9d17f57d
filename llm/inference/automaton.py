"""The words that may come next: an automaton over the vocabulary, driven by RDNA3's table.

Its output assembles: mnemonics of the language, operands that the encoder accepts in their
place, tuples of adjacent and aligned registers, one literal, results in the block's own
registers and temporaries, guards that are closed, code for each SASS instruction.  Where the
question has a macro, the answer has its word once, and nothing but guards beside it; elsewhere it
has none.  Whether a word is legal is decided by the encoder itself: the instruction so far, the
word, and operands that always fit the remaining places must have an encoding.  Results are cached
by the kinds of operands.

It is applied between a model and the sampler, with NumPy (:meth:`AnswerAutomaton.mask`) or as a
logits processor of transformers (`transformers_model.logits_processor`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.rdna3 import registers
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.errors import EncodeError
from sassxlate.llm.inference.number_tokens import Number, starts, word_id
from sassxlate.llm.inference.operand_words import (
    NO_WORDS,
    by_kind,
    field_bits,
    field_values,
    literal_among,
    literal_range,
    other_words,
    special_forms,
)
from sassxlate.llm.inference.token_mask import TokenMask, feasible, mnemonics
from sassxlate.llm.language.tokenizer import EOS, vocabulary
from sassxlate.lowering.region.macro import MACRO
from sassxlate.lowering.region.numbers import Bits, number, value_of
from sassxlate.lowering.region.operands import OperandShape, offset_range, possible, shapes
from sassxlate.lowering.region.subset import BITS, SPECIALS
from sassxlate.lowering.region.text import END, RegionText

Ids: TypeAlias = tuple[int, ...]
_LONGEST: Final = 56  # most words of one instruction
_APART: Final = frozenset({"v_mad_u64_u32", "v_mad_i64_i32"})  # results apart from sources
_FIELDS: Final = tuple(BITS)


# --- the automaton ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """An instruction in the making: ``alive`` are the shapes that it may still have."""

    op: str
    alive: list[OperandShape]
    args: tuple[Arg, ...] = ()
    word: int = -1  # a name whose width is still open
    number: Number | None = None
    place: int = -1  # of the fields so far: 0 and 1 are offsets, then those of _FIELDS, then glc
    target: str = ""  # the offset that the number is for
    changes: dict[str, Any] = field(default_factory=dict[str, Any])


class AnswerAutomaton:
    """The state of one answer.  ``most`` is the limit on its words, ``<eos>`` included;
    ``known`` is the token mask of another answer to the same question."""

    def __init__(
        self, here: RegionText, most: int = 1024, vtemps: int = 24, known: TokenMask | None = None
    ) -> None:
        self.known = known or TokenMask(here, vtemps)
        self.left = max(most, self.known.groups + len(self.known.macros) + 8)
        self.group = 0
        self.due = 0 in self.known.macros  # a macro's word has to come in this group
        self.macros = len(self.known.macros)  # that are not yet written
        self.guarded = False
        self.directive = 0  # 1 after .pred or .switch, 2 after its !
        self.inst: _Open | None = None
        self.done = False

    # -- allowed words -----------------------------------------------------------------------------

    def allowed(self) -> set[int]:
        """The words that may come next; not empty until the answer is done."""
        if self.done:
            return {EOS}
        if self.directive:
            more = {word_id("!")} if self.directive == 1 else set[int]()
            return {*self.known.predicates, *more}
        if self.inst is None:
            return self._between()
        return self._inside(self.inst)

    def mask(self) -> NDArray[np.bool_]:
        """The allowed words as a mask over the vocabulary."""
        out = np.zeros(len(vocabulary()), bool)
        out[list(self.allowed())] = True
        return out

    def _between(self) -> set[int]:
        if self.group == self.known.groups:
            return {EOS}
        out: set[int] = set()
        last = self.group == self.known.groups - 1
        room = self.left > _LONGEST + self.macros + self.known.groups - self.group + 4
        if self.guarded:
            out.add(word_id(".endpred"))
        if self.due:
            out.add(word_id(MACRO))
        elif not (last and self.guarded):
            out.add(word_id(END))
        if room:
            if self.group not in self.known.macros:
                out |= mnemonics(self.known.there)
            if self.known.predicates:
                out.add(word_id(".switch" if self.guarded else ".pred"))
        return out

    def _inside(self, o: _Open) -> set[int]:
        if o.number is not None and o.number.left:
            return set(o.number.next())
        if o.target:
            return set(starts(*self._number_span(o)))
        out: set[int] = set()
        if o.word >= 0:
            for shape in o.alive:
                for n in self._widths(shape, o.args, o.word):
                    if n > 1:
                        out.add(word_id(f":{n}"))
            single = self._single(o)
            return out if single is None else out | self._inside(single)
        for shape in o.alive:
            if len(o.args) < len(shape.operands):
                out |= self._operands(shape, o.args)
            else:
                out |= self._fields(o, shape)
        return out

    @staticmethod
    def _number_span(o: _Open) -> tuple[int, int]:
        """The range of the current offset."""
        return offset_range(Inst(o.op, by_kind(o.args), glc=o.alive[0].glc), o.target) or (0, 0)

    def _operands(self, shape: OperandShape, args: tuple[Arg, ...]) -> set[int]:
        operand = shape.operands[len(args)]
        write = "w" in operand.role
        out: set[int] = set()
        if operand.cls in ("v", "src", "vi"):
            words = self.known.vectors.get((operand.n, write), NO_WORDS)
            if shape.op in _APART and args:
                made = self.known.by_word
                out |= {w for w in words if self._fits(shape, args, made[w, operand.n])}
            elif words and possible(shape, (*args, V(0, operand.n))):
                out |= words
        if operand.cls in ("s", "sd", "sx", "src"):
            said = [arg for arg in args if isinstance(arg, S) and arg.n == operand.n]
            for words, regs in self.known.scalars.get((operand.n, write), ()):
                again = {w for w, reg in regs.items() if reg in said} if said else NO_WORDS
                out |= {w for w in again if possible(shape, (*args, regs[w]))}
                one = next((w for w in words if w not in again), None)
                if one is not None and possible(shape, (*args, regs[one])):
                    out |= words - again
        return out | other_words(shape, by_kind(args))

    @staticmethod
    def _fits(shape: OperandShape, args: tuple[Arg, ...], arg: Arg) -> bool:
        if (
            shape.op in _APART and args and isinstance(arg, V)
            and not set(registers(arg)).isdisjoint(registers(args[0]))
        ):  # fmt: skip
            return False
        return possible(shape, (*args, arg))

    def _widths(self, shape: OperandShape, args: tuple[Arg, ...], word: int) -> list[int]:
        """The register counts that a name may stand for here."""
        if len(args) >= len(shape.operands):
            return []
        operand = shape.operands[len(args)]
        name = vocabulary()[word]
        if name in SPECIALS:
            return [a.n for a in special_forms(name, operand) if possible(shape, (*args, a))]
        if "w" in operand.role and (word, operand.n) not in self.known.mine:
            return []
        arg = self.known.by_word.get((word, operand.n))
        return [operand.n] if arg is not None and self._fits(shape, args, arg) else []

    def _single(self, o: _Open) -> _Open | None:
        """The instruction, if the name stands for one register."""
        alive = [s for s in o.alive if 1 in self._widths(s, o.args, o.word)]
        if not alive:
            return None
        return dataclasses.replace(o, alive=alive, args=(*o.args, self._arg(o.word, 1)), word=-1)

    def _arg(self, word: int, n: int) -> Arg:
        name = vocabulary()[word]
        return Sp(name, n) if name in SPECIALS else self.known.by_word[word, n]

    def _fields(self, o: _Open, shape: OperandShape) -> set[int]:
        inst = Inst(shape.op, o.args, glc=shape.glc, **o.changes)
        out: set[int] = set()
        said = shape.glc and o.place >= 2 + len(_FIELDS)
        if said or not shape.glc:
            out |= self._between()
        bare = Inst(shape.op, by_kind(o.args), glc=shape.glc)
        for place, (word, name) in enumerate((("+", "imm"), ("+1", "imm2"))):
            if place > o.place and offset_range(bare, name) is not None:
                out.add(word_id(word))
        for n, name in enumerate(_FIELDS):
            if 2 + n > o.place:
                out |= field_values(inst, name)
        at = 2 + len(_FIELDS)
        if at > o.place and shape.glc:
            out.add(word_id("glc"))
        if at > o.place and field_bits(shape.op).get("clamp"):
            out.add(word_id("clamp"))
        return out

    # -- steps -----------------------------------------------------------------------------------

    def advance(self, word: int) -> None:
        """Takes a word.  EncodeError SX0547 for one that may not come here."""
        if word not in self.allowed():
            text = vocabulary()[word] if 0 <= word < len(vocabulary()) else str(word)
            raise EncodeError("SX0547", f"{text!r} cannot come here")
        self.take(word)

    def take(self, word: int) -> None:
        """Takes a word that is allowed."""
        self.left -= 1
        o = self.inst
        if o is not None and self._took(o, word):
            return
        self.inst = None
        text = vocabulary()[word]
        if word == EOS:
            self.done = True
        elif self.directive:
            self.directive = 2 if text == "!" else 0
        elif text == END:
            self.group += 1
            self.due = self.group in self.known.macros
        elif text == MACRO:
            self.due = False
            self.macros -= 1
        elif text in (".pred", ".switch"):
            self.guarded, self.directive = True, 1
        elif text == ".endpred":
            self.guarded = False
        else:
            self.inst = _Open(text, list(feasible(self.known.there)[word]))

    def _took(self, o: _Open, word: int) -> bool:
        """Whether the word belongs to the instruction; otherwise the instruction is complete."""
        if o.number is not None and o.number.left:
            o.number.words.append(vocabulary()[word])
            if not o.number.left:
                self._said(o, o.number)
            return True
        text = vocabulary()[word]
        if o.word >= 0:
            if text.startswith(":"):
                n = int(text[1:])
                o.alive = [s for s in o.alive if n in self._widths(s, o.args, o.word)]
                o.args, o.word = (*o.args, self._arg(o.word, n)), -1
                return True
            single = self._single(o)
            assert single is not None
            self.inst = o = single
        open_ = [s for s in o.alive if len(o.args) < len(s.operands)]
        if open_ and self._argument(o, open_, word, text):
            return True
        return self._field(o, word, text)

    def _argument(self, o: _Open, open_: list[OperandShape], word: int, text: str) -> bool:
        mine = [s for s in open_ if self._begins(s, o.args, word, text)]
        if not mine:
            return False
        o.alive = mine
        if text in SPECIALS or (word, 1) in self.known.by_word:
            widths = {n for s in mine for n in self._widths(s, o.args, word)}
            if widths == {1}:
                o.args = (*o.args, self._arg(word, 1))
            else:
                o.word = word
            return True
        operand = mine[0].operands[len(o.args)]
        bits: Bits = 64 if operand.n == 2 else 32
        low, high = literal_range(operand)
        literal = literal_among(mine[0], o.args)
        forced = tuple(number(literal, bits)) if literal is not None else ()
        if forced and (forced[0] != text or text[0] not in "xf"):
            forced = ()
        o.number = Number(bits, low, high, forced, [text])
        if not o.number.left:
            self._said(o, o.number)
        return True

    def _begins(self, shape: OperandShape, args: tuple[Arg, ...], word: int, text: str) -> bool:
        """Whether a word that is allowed begins this shape's next operand."""
        if text in SPECIALS or (word, 1) in self.known.by_word:
            return bool(self._widths(shape, args, word))
        return word in other_words(shape, by_kind(args))

    def _field(self, o: _Open, word: int, text: str) -> bool:
        if o.target:
            o.number = Number(32, *self._number_span(o), (), [text])
            if not o.number.left:
                self._said(o, o.number)
            return True
        o.alive = [s for s in o.alive if len(s.operands) == len(o.args)]
        if text in ("+", "+1"):
            o.place = 0 if text == "+" else 1
            o.target = "imm" if text == "+" else "imm2"
            return True
        name, _, value = text.partition(":")
        if name in BITS and value:
            o.place = 2 + _FIELDS.index(name)
            o.changes[name] = int(value)
            return True
        if text in ("glc", "clamp"):
            o.place = 2 + len(_FIELDS)
            if text == "clamp":
                o.changes["clamp"] = True
            return True
        return False

    def _said(self, o: _Open, made: Number) -> None:
        value, _ = value_of(made.words, 0, made.bits)
        o.number = None
        if o.target:
            o.changes[o.target] = value
            o.target = ""
            return
        arg = I(value if made.bits == 64 else value & 0xFFFFFFFF)
        o.args = (*o.args, arg)


def accepts(here: RegionText, ids: Sequence[int], vtemps: int = 24) -> int:
    """The number of an answer's words, without ``<eos>``, that the automaton accepts."""
    automaton = AnswerAutomaton(here, len(ids) + 4096, vtemps)
    for n, word in enumerate(ids):
        try:
            automaton.advance(word)
        except EncodeError:
            return n
    return len(ids)


def sample(
    here: RegionText,
    rng: np.random.Generator,
    most: int = 256,
    logits: Callable[[Sequence[int]], NDArray[Any]] | None = None,
    vtemps: int = 24,
) -> list[int]:
    """An answer drawn word by word: from ``logits`` of the words so far, or evenly."""
    automaton = AnswerAutomaton(here, most, vtemps)
    out: list[int] = []
    while not automaton.done:
        allowed = sorted(automaton.allowed())
        if logits is None:
            word = allowed[int(rng.integers(len(allowed)))]
        else:
            word = draw(logits(out), allowed, rng, 1.0)
        automaton.take(word)
        if word != EOS:
            out.append(word)
    return out


def draw(
    logits: NDArray[Any], allowed: Sequence[int], rng: np.random.Generator, temperature: float
) -> int:
    """One of the words that are allowed; the likeliest at temperature 0."""
    scores: NDArray[Any] = np.asarray(logits, np.float64)[list(allowed)]
    if temperature <= 0:
        return allowed[int(scores.argmax())]
    weights: NDArray[Any] = np.exp((scores - scores.max()) / temperature)
    drawn = rng.random() * float(weights.sum())
    at = int(np.searchsorted(np.cumsum(weights), drawn))
    return allowed[min(at, len(allowed) - 1)]


__all__ = [
    "AnswerAutomaton", "OperandShape", "TokenMask", "accepts", "draw", "possible", "sample",
    "shapes",
]  # fmt: skip
