"""The lines of a question, parsed: guard, mnemonic, modifiers, operands, predicates by role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from sassxlate.errors import EncodeError
from sassxlate.lowering.region.numbers import is_number, value_of
from sassxlate.lowering.region.places import CLASSES

Words = tuple[str, ...]
WINDOWS: Final = {"src_shared_base": "shared", "src_private_base": "local"}
_NAMED: Final = frozenset("vlucpq")
_WIDTHS: Final = {f":{n}": n for n in (2, 3, 4, 8, 16)}


def bad(what: str) -> EncodeError:
    """The error for a text that cannot be read back."""
    return EncodeError("SX0549", what)


def is_name(word: str) -> bool:
    """Whether it names a register, a predicate or a constant."""
    kind, number = word[:1], word[1:]
    return kind in _NAMED and _is_number(number) and int(number) < CLASSES[kind]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6


@dataclass(frozen=True, slots=True)
class Said:
    """A parsed operand.  ``places`` are names, windows, or (bank, offset) of constants;
    ``base`` and so on belong to memory operands, ``number`` are an immediate's or offset's words.
    """

    kind: str  # register, memory, indexed, number, word
    signs: tuple[str, ...] = ()
    places: tuple[str | tuple[int, int], ...] = ()
    select: str = ""
    number: Words = ()
    parts: tuple[Said, ...] = ()
    scale: int = 1
    bank: int = 0

    @property
    def names(self) -> list[str]:
        return [p for p in self.places if isinstance(p, str) and is_name(p)]


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """A parsed instruction."""

    words: Words
    guard: tuple[bool, str]  # inverted, name or T
    mnemonic: str
    modifiers: Words
    operands: tuple[Said, ...]
    predicates: Mapping[str, tuple[bool, str]]


class Reader:
    """Reads a line's words one after the other."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.at = 0

    def peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def take(self) -> str:
        word = self.peek()
        if not word:
            raise bad(f"{' '.join(self.words)!r} ends too soon")
        self.at += 1
        return word

    def number(self) -> Words:
        """The words of a number, whose width is still unknown."""
        if not is_number(self.peek()):
            raise bad(f"{self.peek()!r} is not a number")
        first = self.at
        word = self.take()
        if word[0] in "xf" and word[1:].isdigit():
            self.at += int(word[1:])
        return self.words[first : self.at]

    def predicate(self) -> tuple[bool, str]:
        inverted = self.peek() == "!"
        self.at += inverted
        name = self.take()
        if name != "T" and not (is_name(name) and name[0] in "pq"):
            raise bad(f"{name!r} is not a predicate")
        return inverted, name

    def line(self) -> QuestionLine:
        guard = (False, "T")
        if self.peek() == "@":
            self.at += 1
            guard = self.predicate()
        mnemonic = self.take()
        modifiers: list[str] = []
        while self.peek().startswith("."):
            modifiers.append(self.take()[1:])
        operands: list[Said] = []
        predicates: dict[str, tuple[bool, str]] = {}
        while self.peek():
            if self.peek().endswith("="):
                role = self.take()[:-1]
                predicates[role] = self.predicate()
            else:
                operands.append(self.operand())
        mods = tuple(modifiers)
        return QuestionLine(self.words, guard, mnemonic, mods, tuple(operands), predicates)

    def operand(self) -> Said:
        signs: list[str] = []
        while self.peek() in ("-", "|", "~"):
            signs.append(self.take())
        word = self.peek()
        if word == "[":
            return self.memory()
        if is_number(word):
            return Said("number", tuple(signs), number=self.number())
        if word.startswith("c[") and self.words[self.at + 1 : self.at + 2] == ("[",):
            bank = self.bank()
            self.at += 1
            part = self.register()
            offset = self.number()
            self.expect("]")
            made = Said("indexed", tuple(signs), parts=(part,), number=offset, bank=bank)
        elif word in ("Z", "(") or word in WINDOWS or word.startswith("c[") or is_name(word):
            made = replace(self.register(), signs=tuple(signs))
        else:
            return Said("word", tuple(signs), number=(self.take(),))
        if self.peek().startswith("."):
            made = replace(made, select=self.take()[1:])
        return made

    def expect(self, word: str) -> None:
        if self.take() != word:
            raise bad(f"{' '.join(self.words)!r}: no {word}")

    def bank(self) -> int:
        text = self.take()[2:-1]
        if not _is_number(text):
            raise bad(f"{text!r} is not a constant bank")
        return int(text)

    def register(self) -> Said:
        """Registers or constants, or Z."""
        if self.peek() == "(":
            self.at += 1
            found: list[str | tuple[int, int]] = []
            while self.peek() != ")":
                found.append(self.place())
            self.at += 1
            return Said("register", places=tuple(found))
        first = self.place()
        n = _WIDTHS.get(self.peek(), 1)
        if n == 1:
            return Said("register", places=(first,))
        self.at += 1
        if not isinstance(first, str) or not is_name(first):
            raise bad(f"{first} has no width")
        start = int(first[1:])
        return Said("register", places=tuple(f"{first[0]}{start + i}" for i in range(n)))

    def place(self) -> str | tuple[int, int]:
        word = self.peek()
        if word.startswith("c["):
            bank = self.bank()
            return bank, value_of(self.number(), 0)[0] & 0xFFFF
        self.at += 1
        if word != "Z" and word not in WINDOWS and not is_name(word):
            raise bad(f"{word!r} is not a register")
        return word

    def memory(self) -> Said:
        self.at += 1
        parts: list[Said] = []
        scale = 1
        while not is_number(self.peek()):
            if self.peek().startswith("*"):
                text = self.take()[1:]
                scale = int(text) if _is_number(text) else 0
            else:
                parts.append(self.register())
        offset = self.number()
        self.expect("]")
        return Said("memory", parts=tuple(parts), number=offset, scale=scale)


__all__ = ["WINDOWS", "QuestionLine", "Reader", "Said", "bad", "is_name"]
