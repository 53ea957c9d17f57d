"""The names of a question that an answer may use, and the mnemonics that are possible with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from sassxlate.disasm.rdna3 import Operand
from sassxlate.disasm.rdna3.instruction import S, V
from sassxlate.llm.language.tokenizer import numbers
from sassxlate.lowering.region.operands import OperandShape, shapes
from sassxlate.lowering.region.subset import subset_operations
from sassxlate.lowering.region.text import RegionText
from sassxlate.lowering.verify.steps.legality import writable_registers

Words: TypeAlias = frozenset[int]


class TokenMask:
    """The part of a prompt that the automaton needs: its names as operands, by width.

    ``vectors[n, write]`` are the words that name ``n`` VGPRs, or those that may be written;
    ``scalars[n, write]`` the same for SGPRs, with the registers, separately for tuples with another
    alignment modulo 4.
    """

    def __init__(self, here: RegionText, vtemps: int) -> None:
        self.groups = here.groups
        sass, macros = here.block.instructions, here.block.macros
        # A question in older forms has no macros, so lines are instructions.
        self.macros = frozenset(n for n, ins in enumerate(sass) if ins.offset in macros)
        allowed = {(ref.kind, ref.number) for ref in writable_registers(here)}
        beyond = here.regs.vtemp_base + vtemps
        known = numbers()
        self.by_word: dict[tuple[int, int], V | S] = {}
        self.mine: set[tuple[int, int]] = set()  # those of them that may be written
        self.predicates: list[int] = []
        vectors: dict[tuple[int, bool], set[int]] = {}
        scalars: dict[tuple[int, bool], dict[int, dict[int, S]]] = {}
        places = here.names.place
        for name, place in places.items():
            if name not in known:
                continue
            temporary = name[0] == "t" and name != "tid"
            if isinstance(place, S) and name[0] in "pqs" and name != "save":
                self.predicates.append(known[name])
            run = _run(name, places)
            kind = "v" if isinstance(place, V) else "s"
            own = 0  # adjacent registers that may be written
            while name[0] != "c" and own < run and (kind, place.index + own) in allowed:
                own += 1
            for n in (1, 2, 3, 4, 8, 16):
                if n > run or (temporary and place.index + n > beyond):
                    break
                arg = type(place)(place.index, n)
                word = known[name]
                self.by_word[word, n] = arg
                if n <= own:
                    self.mine.add((word, n))
                for write in (False, True) if n <= own else (False,):
                    if isinstance(arg, S):
                        begins = scalars.setdefault((n, write), {})
                        begins.setdefault(arg.index % 4, {})[word] = arg
                    else:
                        vectors.setdefault((n, write), set()).add(word)
        self.vectors = {key: frozenset(words) for key, words in vectors.items()}
        self.scalars = {
            key: [(frozenset(regs), regs) for regs in begins.values()]
            for key, begins in scalars.items()
        }
        aligned = {(n, w) for (n, w), at in scalars.items() if any(k % min(n, 4) == 0 for k in at)}
        self.there = frozenset(
            {("v", n, w) for n, w in vectors} | {("s", n, w) for n, w in aligned}
        )


@lru_cache(maxsize=256)
def feasible(there: frozenset[tuple[str, int, bool]]) -> dict[int, tuple[OperandShape, ...]]:
    """The mnemonics whose operands have registers available, with the shapes for which that
    holds."""
    known = numbers()

    def fits(operand: Operand) -> bool:
        write = "w" in operand.role
        if operand.cls == "v":
            return ("v", operand.n, write) in there
        if operand.cls in ("s", "sd", "sx") and operand.n > 2:
            return ("s", operand.n, write) in there
        return True  # vcc, and constants

    out: dict[int, tuple[OperandShape, ...]] = {}
    for op in subset_operations():
        fitting = tuple(s for s in shapes(op) if all(map(fits, s.operands)))
        if fitting and op in known:
            out[known[op]] = fitting
    return out


@lru_cache(maxsize=256)
def mnemonics(there: frozenset[tuple[str, int, bool]]) -> Words:
    """As `feasible`, only the mnemonics."""
    return frozenset(feasible(there))


def _run(name: str, places: Mapping[str, V | S]) -> int:
    """The number of adjacent registers from a name on."""
    if name == "kern":
        return 2
    if not name[1:].isdigit():
        return 1
    kind, first, n = name[0], int(name[1:]), 1
    place = places[name]
    while n < 16:
        beside = places.get(f"{kind}{first + n}")
        if beside is None or beside.index != place.index + n:
            break
        n += 1
    return n


__all__ = ["TokenMask", "Words", "feasible", "mnemonics"]
