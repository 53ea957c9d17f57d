"""The interface of a SASS instruction's semantics: inputs and results.

A meaning is a function of a domain (:mod:`sassxlate.domain.interface`) and a :class:`View` of one
decoded instruction in one lane; it returns the value of each destination by role.  Reading an
operand applies its signs, complement and selector.  Reading an operand in a way that ignores one
of these raises :class:`NoSemantics`, and so does a modifier that the row does not list: a form
that is not described is never silently taken for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from sassxlate.disasm.sass.instruction import (
    Const,
    Imm,
    Instruction,
    Operand,
    Pred,
    PredFile,
    Reg,
    RegFile,
    RegRef,
    Special,
)
from sassxlate.domain.interface import Domain, fabs, fneg, neg

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_FLAGS = ("neg", "abs", "inv", "select")


class NoSemantics(Exception):
    """This form of the instruction is not described; the message says which part."""


class Env(Protocol[T_co]):
    """The source of a lane's values.  RZ, URZ and PT are never requested."""

    def reg(self, file: RegFile, index: int) -> T_co:
        """32 bits."""
        ...

    def pred(self, file: PredFile, index: int) -> T_co:
        """One bit."""
        ...

    def const(self, operand: Const, word: int) -> T_co:
        """The 32-bit word number ``word`` of a constant operand, its signs not applied."""
        ...

    def special(self, operand: Special) -> T_co:
        """32 bits of a special register."""
        ...


class View(Generic[T]):
    """One instruction in one lane, under a domain."""

    def __init__(self, d: Domain[T], ins: Instruction, env: Env[T]) -> None:
        self.d = d
        self.ins = ins
        self.env = env

    def has(self, *modifiers: str) -> bool:
        """Whether the instruction has any of them."""
        return any(m in self.ins.modifiers for m in modifiers)

    def one_of(self, names: Iterable[str], default: str = "") -> str:
        """The one modifier among ``names``."""
        return next((m for m in self.ins.modifiers if m in names), default)

    def operand(self, role: str) -> Operand:
        got = self.ins.get(role)
        if got is None:
            raise NoSemantics(f"no operand {role}")
        return got

    def absent(self, *roles: str) -> bool:
        return all(self.ins.get(r) is None for r in roles)

    def wants(self, role: str) -> bool:
        """Whether a destination is not RZ or PT."""
        got = self.ins.get(role)
        return isinstance(got, Reg | Pred) and not (
            got.is_zero if isinstance(got, Reg) else got.index == 7
        )

    def const(self, n: int, width: int = 32) -> T:
        return self.d.const(n, width)

    # --- words ---------------------------------------------------------------------------------

    def _word(self, operand: Operand, i: int) -> T:
        match operand:
            case Reg():
                if operand.is_zero:
                    return self.const(0)
                return self.env.reg(operand.file, operand.index + i)
            case Imm():
                value = operand.value
                if operand.bits == 32 and operand.kind == "int" and value >> 31 & 1:
                    value |= -1 << 32  # measured: 64-bit instructions extend the sign
                return self.const(value >> 32 * i)
            case Const():
                return self.env.const(operand, i)
            case _:
                raise NoSemantics(f"{operand} is not a value")

    def _known(self, role: str, *flags: str) -> Operand:
        operand = self.operand(role)
        for flag in _FLAGS:
            if flag not in flags and getattr(operand, flag, False):
                raise NoSemantics(f"{flag} of {role}")
        return operand

    def bits(self, role: str, width: int = 32) -> T:
        """A source without signs: 32 or 64 bits."""
        return self._bits(self._known(role), width)

    def _bits(self, operand: Operand, width: int) -> T:
        if width == 32:
            return self._word(operand, 0)
        return self.d.concat(self._word(operand, 1), self._word(operand, 0))

    def whole(self, role: str, width: int = 32) -> T:
        """A source whose signs and selectors the caller applies itself."""
        return self._bits(self.operand(role), width)

    def flag(self, role: str, name: str) -> bool:
        return bool(getattr(self.ins.get(role), name, False))

    def select(self, role: str) -> str:
        return str(getattr(self.ins.get(role), "select", ""))

    def integer(self, role: str, width: int = 32) -> T:
        """A source with ``~`` or ``-`` applied."""
        operand = self._known(role, "neg", "inv")
        value = self._bits(operand, width)
        if self.flag(role, "inv"):
            value = self.d.not_(value)
        return neg(self.d, value) if self.flag(role, "neg") else value

    def imm(self, role: str) -> int:
        operand = self._known(role)
        if not isinstance(operand, Imm):
            raise NoSemantics(f"{role} is not an immediate")
        return operand.value

    # --- floats --------------------------------------------------------------------------------

    def float(self, role: str, width: int = 32) -> T:
        """A source with ``|x|`` and ``-`` applied, as the pattern of its width."""
        return self.signed(role, self._bits(self._known(role, "neg", "abs"), width))

    def signed(self, role: str, value: T) -> T:
        """``|x|`` and ``-`` of an operand, applied to a float."""
        if self.flag(role, "abs"):
            value = fabs(self.d, value)
        return fneg(self.d, value) if self.flag(role, "neg") else value

    # --- predicates ----------------------------------------------------------------------------

    def pred(self, role: str) -> T:
        """A source predicate with ``!`` applied."""
        got = self.operand(role)
        if not isinstance(got, Pred):
            raise NoSemantics(f"{role} is not a predicate")
        value = self.const(1, 1) if got.index == 7 else self.env.pred(got.file, got.index)
        return self.d.not_(value) if got.inv else value

    def pred_or(self, role: str, default: int) -> T:
        """A source predicate, or a constant if the form has none."""
        return self.const(default, 1) if self.ins.get(role) is None else self.pred(role)


Number: TypeAlias = Literal["", "f16", "f32", "f64"]
Results: TypeAlias = "Mapping[str | RegRef, Any]"
Fn: TypeAlias = "Callable[[Any, View[Any]], Results]"


@dataclass(frozen=True, slots=True)
class Semantics:
    """``fn(d, view)`` returns the destinations; ``mods`` are the modifiers that it handles.

    Destination registers are named by role and have as many bits as registers; those without a
    role (R2P's predicates) by their reference.  ``approximate``: within stated bounds only.
    ``number`` is the format of the floats that it reads unless a modifier gives another; ""
    if it reads none, or only moves them.
    """

    mnemonic: str
    fn: Fn
    mods: frozenset[str]
    approximate: bool = False
    number: Number = ""


def row(
    mnemonic: str, fn: Fn, mods: str = "", *, approximate: bool = False, number: Number = ""
) -> Semantics:
    return Semantics(mnemonic, fn, frozenset(mods.split()), approximate, number)


def reading(number: Number, *rows: Semantics) -> list[Semantics]:
    """The rows, which read floats of this format."""
    return [replace(r, number=number) for r in rows]


def uniform(rows: Iterable[Semantics]) -> list[Semantics]:
    """The rows, and the same of the uniform datapath."""
    out: list[Semantics] = []
    for r in rows:
        out += [r, replace(r, mnemonic="U" + r.mnemonic)]
    return out


def evaluate(d: Domain[T], meaning: Semantics, ins: Instruction, env: Env[T]) -> dict[RegRef, T]:
    """The 32-bit registers and predicates that an instruction writes if its guard holds.

    Raises NoSemantics for a form that is not described.
    """
    for modifier in ins.modifiers:
        if modifier not in meaning.mods:
            raise NoSemantics(f"modifier {modifier}")
    out: dict[RegRef, T] = {}
    for key, value in meaning.fn(d, View(d, ins, env)).items():
        if isinstance(key, RegRef):
            out[key] = value
            continue
        target = ins.get(key)
        if isinstance(target, Pred):
            if target.index != 7:
                out[RegRef(target.file, target.index)] = value
        elif isinstance(target, Reg):
            if not target.is_zero:
                out.update(_registers(d, target, value))
        elif target is not None:
            raise NoSemantics(f"{key} is not a destination")
    return out


def _registers(d: Domain[T], target: Reg, value: T) -> dict[RegRef, T]:
    width = d.width(value)
    if width != 32 * target.width:
        raise NoSemantics(f"{width} bits for {target.width} registers")
    if width == 32:
        return {RegRef(target.file, target.index): value}
    return {
        RegRef(target.file, target.index + i): d.extract(value, 32 * i, 32)
        for i in range(target.width)
    }
