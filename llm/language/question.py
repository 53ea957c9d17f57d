"""Reads questions back: from the canonical text of a block to a block with the same question.

A row of the dataset is text.  To prove another answer to it one needs SASS, a register map and the
live-out set; :func:`read_question` makes them up: registers and constants get new numbers, each
line is encoded and decoded again by the tables of the architecture, and the question of the
resulting block is computed.  If it is not the text, word for word, the text is refused; so is a
line that can be read in two ways, and a line whose meaning is not in its text (predicates by their
numbers, an instruction's own address).

Names that the text does not show as adjacent are not adjacent, so an answer that uses them as a
tuple is invalid here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from sassxlate.disasm.rdna3.instruction import S, V
from sassxlate.disasm.sass.codec.decode import (
    generation_of,
)
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import DecodeError, EncodeError, LoweringError
from sassxlate.llm.language.question_instruction import (
    DESCRIPTOR,
    FILES,
    NumberedNames,
    Words,
    instruction_of,
)
from sassxlate.llm.language.question_lines import QuestionLine, Reader, Said, bad
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.numbers import value_of
from sassxlate.lowering.region.places import CLASSES, Names, canonical_names
from sassxlate.lowering.region.region import KernelEnv, Region
from sassxlate.lowering.region.text import RegionText, region_text
from sassxlate.lowering.target import DEFAULT, TARGETS, Target

SAVE, LIVE = S(2), S(3)
STEMPS: Final = (*range(4, 12), *range(16, 28))  # as of every kernel
_ROOM: Final = (12, *range(28, DEFAULT.sgprs))  # SGPRs for what a block names
# Their meaning is not in their text but in their address.
_PLACED: Final = frozenset({"LEPC"})
_BANK: Final = 31  # the last possible bank


# --- numbers for names ---------------------------------------------------------------------------


@dataclass(slots=True)
class _Chains:
    """The names whose number follows another's, and the alignment of tuples."""

    order: dict[str, None] = field(default_factory=dict[str, None])
    next: dict[str, str] = field(default_factory=dict[str, str])
    before: dict[str, str] = field(default_factory=dict[str, str])
    aligned: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    beside: set[str] = field(default_factory=set[str])  # names adjacent to the name before

    def add(self, names: Sequence[str], shown: bool) -> None:
        for name in names:
            self.order.setdefault(name)
        for a, b in pairwise(names):
            if self.next.setdefault(a, b) != b or self.before.setdefault(b, a) != a:
                raise bad(f"{a} and {b} are in two tuples that do not go together")
            if shown:
                self.beside.add(b)
        if len(names) > 1:
            self.aligned.append((names[0], 2 if len(names) == 2 else 4))

    def runs(self, kinds: str) -> Iterator[list[str]]:
        """Runs of adjacent names, in the order of first mention."""
        done: set[str] = set()
        for name in self.order:
            if name[0] not in kinds or name in done:
                continue
            head, seen = name, {name}
            while head in self.before:
                head = self.before[head]
                if head in seen:
                    raise bad(f"{head} is in a circle")
                seen.add(head)
            run = [head]
            while run[-1] in self.next:
                run.append(self.next[run[-1]])
            done.update(run)
            yield run

    def numbered(self, kinds: str, taken: Iterable[int], most: int) -> dict[str, int]:
        """A number for each name, tuples aligned."""
        used = set(taken)
        out: dict[str, int] = {}
        for run in self.runs(kinds):
            needs = [(run.index(n), w) for n, w in self.aligned if n in run]
            for base in range(most - len(run) + 1):
                fits = all((base + i) % w == 0 for i, w in needs)
                if fits and used.isdisjoint(range(base, base + len(run))):
                    break
            else:
                raise bad("more registers than there are, or tuples that cannot be aligned")
            used.update(range(base, base + len(run)))
            out |= {name: base + i for i, name in enumerate(run)}
        return out

    def groups(self, kind: str) -> Iterator[list[str]]:
        """Names of a class, grouped by adjacency."""
        mine = sorted((n for n in self.order if n[0] == kind), key=lambda n: int(n[1:]))
        group: list[str] = []
        for name in mine:
            if group and not (name in self.beside and self.before[name] == group[-1]):
                yield group
                group = []
            group.append(name)
        if group:
            yield group


def _places(chains: _Chains) -> tuple[dict[str, V | S], int, tuple[int, int]]:
    """Places of names, apart if they may be: the map, the first free VGPR, and two SGPRs."""
    out: dict[str, V | S] = {}
    free = 0
    for kind in "vl":
        for group in chains.groups(kind):
            out |= {name: V(free + i) for i, name in enumerate(group)}
            free += len(group) + 1
    room = list(_ROOM)
    # The largest first: they are aligned.
    every = [g for kind in "ucpq" for g in chains.groups(kind)]
    for group in sorted(every, key=lambda g: -len(g)):
        first = int(group[0][1:])
        step = {1: 1, 2: 2}.get(len(group), 4)
        before = out.get(f"{group[0][0]}{first - 1}")
        following = out.get(f"{group[0][0]}{first + len(group)}")
        for at in room:
            run = range(at, at + len(group))
            near = (before is not None and before.index == at - 1) or (
                following is not None and following.index == at + len(group)
            )
            if (at - first) % step == 0 and set(run) <= set(room) and not near:
                break
        else:
            raise bad("more scalar registers than there are")
        room = [i for i in room if i not in run]
        out |= {name: S(at + i) for i, name in enumerate(group)}
    if len(room) < 2:
        raise bad("more scalar registers than there are")
    return out, free, (room[0], room[1])


# --- the question --------------------------------------------------------------------------------


def read_question(text: str, arch: int) -> RegionText:
    """The question with this canonical text, for a block made up for it.

    Raises EncodeError SX0549 if the text does not determine the block, or is not a question.
    """
    try:
        made = question_of(text, arch)
        again = made.text
    except (LoweringError, EncodeError, DecodeError) as error:
        raise bad(error.message) from None
    if again != text:
        wrong = next(
            (f"{b!r} for {a!r}" for a, b in zip(text.split("\n"), again.split("\n"), strict=False)
             if a != b), "another length")  # fmt: skip
        raise bad(f"the text is not its own question: {wrong}")
    return made


def question_of(text: str, arch: int) -> RegionText:
    """The question of a block made up for a text that need not be canonical: its ``in`` and the
    order of its names are not looked at.

    Raises EncodeError, DecodeError or LoweringError for a text that says no block.
    """
    heads: dict[str, Words] = {}
    tables: dict[int, int] = {}
    body: list[QuestionLine] = []
    rows: list[Words] = [tuple(row.split()) for row in text.split("\n")]
    target = next((t for t in TARGETS.values() if rows[0] == (t.language,)), None)
    if target is None:
        raise bad(f"{' '.join(rows[0])!r} is not a target's instruction set")
    for words in rows[1:]:
        if not words:
            raise bad("an empty line")
        head, rest = words[0], words[1:]
        if head == "bank" and len(rest) > 1:
            reader = Reader(rest)
            bank = reader.bank()
            tables[bank] = value_of(reader.number(), 0)[0]
        elif head in ("in", "out", "keep", "free") and head not in heads and not body:
            heads[head] = rest
        else:
            line = Reader(words).line()
            if line.mnemonic in _PLACED:
                raise bad(f"{line.mnemonic} depends on its address")
            body.append(line)
    if not body or not {"in", "out", "free"} <= heads.keys():
        raise bad("no question: a line is missing")
    return _made(body, heads, tables, arch, target)


def _tuples(said: Said) -> Iterator[Said]:
    if said.kind in ("memory", "indexed"):
        yield from said.parts
    elif said.kind == "register":
        yield said


def _chained(body: Sequence[QuestionLine]) -> _Chains:
    chains = _Chains()
    for line in body:
        if line.guard[1] != "T":
            chains.add((line.guard[1],), False)
        for _, name in line.predicates.values():
            if name != "T":
                chains.add((name,), False)
        for operand in line.operands:
            for said in _tuples(operand):
                named = said.names
                if len(named) != len(said.places):
                    for name in named:
                        chains.add((name,), False)
                    continue
                follow = all(
                    a[0] == b[0] and int(b[1:]) == int(a[1:]) + 1 for a, b in pairwise(named)
                )
                chains.add(named, follow)
    return chains


def _made(
    body: Sequence[QuestionLine],
    heads: Mapping[str, Words],
    tables: Mapping[int, int],
    arch: int,
    target: Target,
) -> RegionText:
    chains = _chained(body)
    places, free, spare = _places(chains)
    if free + 1 + CLASSES["t"] > target.vgprs:
        raise bad("more vector registers than there are")
    lay = bank_layout(arch)
    generation = generation_of(arch)
    most = 255 if generation >= 100 else 63
    of = chains.numbered("v", (), 255)
    of |= chains.numbered("ul", (DESCRIPTOR, DESCRIPTOR + 1), most)
    of |= chains.numbered("p", (), 7) | chains.numbered("q", (), 7)
    # They get their own bank, because what the text does not show as equal must differ: neither
    # equal to a word given by its number, nor to one that an answer loads.
    bank = next(b for b in range(_BANK, 0, -1) if b not in _banks(body) and b not in tables)
    consts = {n: (bank, 4 * i) for n, i in chains.numbered("c", (), 1024).items()}
    by_file: dict[str, dict[int, int]] = {kind: {} for kind in CLASSES}
    for name, number in of.items():
        by_file[name[0]][number] = places[name].index
    regs = RegisterMap(
        target=target,
        r=by_file["v"],
        spilled={},
        ur=by_file["u"] | {DESCRIPTOR + i: at for i, at in enumerate(spare)},
        ur_lanes=by_file["l"],
        p={i: S(at) for i, at in by_file["p"].items()},
        up={i: S(at) for i, at in by_file["q"].items()},
        live=LIVE,
        save_exec=SAVE,
        ready={},
        regions=(),
        consts={consts[n]: S(places[n].index) for n in consts},
        stemps=STEMPS,
        tid=V(free),
        vtemp_base=free + 1,
        lane_vgprs=(),
        scratch_spill=0,
    )
    around = KernelEnv("", arch, lay, dict(tables))
    refs = {n: RegRef(FILES[n[0]], i) for n, i in of.items()}  # type: ignore[arg-type]
    merged = frozenset(_named(heads.get("keep", ()), refs))
    block = Region(0, (), True, merged, around)
    fixed = canonical_names((), regs).place
    found = {**fixed, **{n: places[n] for n in chains.order}}
    here = Names(found, {at: name for name, at in found.items()})
    numbers = NumberedNames(of, consts, lay, generation)
    sass = tuple(
        instruction_of(line, 16 * n, numbers, block, regs, here) for n, line in enumerate(body)
    )
    live_out = frozenset(_named(heads["out"], refs))
    return region_text(replace(block, instructions=sass), regs, live_out)


def _banks(body: Sequence[QuestionLine]) -> set[int]:
    """The banks whose words are given by number."""
    every = [said for line in body for said in line.operands]
    found = {said.bank for said in every}
    return found | {p[0] for said in every for p in said.places if not isinstance(p, str)}


def _named(words: Iterable[str], refs: Mapping[str, RegRef]) -> Iterator[RegRef]:
    for word in words:
        if word not in refs:
            raise bad(f"{word} is nowhere in the block")
        yield refs[word]


__all__ = ["question_of", "read_question"]
