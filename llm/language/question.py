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

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise, product
from typing import Final

from sassxlate.disasm.rdna3.instruction import S, V
from sassxlate.disasm.sass.codec.decode import (
    CompiledRow,
    generation_of,
    index,
    opcode_bits,
    row_of,
)
from sassxlate.disasm.sass.codec.encode import NO_CONTROL, modifiers_of
from sassxlate.disasm.sass.codec.operand_parser import Slots, put
from sassxlate.disasm.sass.instruction import Instruction, Mem, Operand, Pred, Reg, RegRef
from sassxlate.disasm.sass.tables import ROWS
from sassxlate.disasm.sass.tables.spec import C, Fixed, I, L, M, Mask, P, R, When
from sassxlate.errors import DecodeError, EncodeError, LoweringError
from sassxlate.llm.language.question_lines import WINDOWS, QuestionLine, Reader, Said, bad, is_name
from sassxlate.lowering.abi.kernarg import BankLayout, bank_layout
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.numbers import value_of
from sassxlate.lowering.region.places import CLASSES, Names, canonical_names
from sassxlate.lowering.region.region import KernelEnv, Region
from sassxlate.lowering.region.text import USUALLY_FALSE, RegionText, region_text
from sassxlate.lowering.region.text import _instruction as line_of  # pyright: ignore[reportPrivateUsage]
from sassxlate.lowering.target import DEFAULT, TARGETS, Target

Words = tuple[str, ...]
SAVE, LIVE = S(2), S(3)
STEMPS: Final = (*range(4, 12), *range(16, 28))  # as of every kernel
_ROOM: Final = (12, *range(28, DEFAULT.sgprs))  # SGPRs for what a block names
_DESCRIPTOR: Final = 60  # the uniform registers of descriptors, which mean nothing
_FILES: Final = {"v": "R", "l": "UR", "u": "UR", "p": "P", "q": "UP"}
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


# --- a line's instruction ------------------------------------------------------------------------


@lru_cache(maxsize=1 << 10)
def _rows(generation: int, mnemonic: str) -> tuple[CompiledRow, ...]:
    opcodes = dict.fromkeys(r.opcode for r in ROWS if r.mnemonic == mnemonic and r.of(generation))
    found = (row for opcode in opcodes for row in index(generation).rows(opcode))
    return tuple(row for row in found if row.row.mnemonic == mnemonic)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A row with its modifiers; ``bits`` are the bits that they decide."""

    row: CompiledRow
    context: Mapping[str, int]
    bits: int


@lru_cache(maxsize=1 << 13)
def _readings(generation: int, mnemonic: str, modifiers: Words) -> tuple[_Reading, ...]:
    out: list[_Reading] = []
    for row in _rows(generation, mnemonic):
        if row.row.effect:
            raise bad(f"{mnemonic} names predicates by their numbers")
        base = opcode_bits(row.row.opcode) | NO_CONTROL
        for at, value in row.row.fixed:
            base |= put(at, value)
        for at in row.row.ones:
            base |= at.mask
        for context, bits in modifiers_of(row.row, list(modifiers), 0, 0, {}, 0):
            out.append(_Reading(row, context, base | bits))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers assigned to names."""

    of: Mapping[str, int]  # of registers and predicates
    consts: Mapping[str, tuple[int, int]]
    layout: BankLayout
    generation: int
    low: bool = False  # whether Z may be the low word of a window

    def register(self, said: Said, file: str) -> str | None:
        """NVIDIA's name of a register of a file."""
        if said.kind != "register":
            return None
        first = said.places[0]
        if first == "Z" and len(said.places) == 1:
            return f"{file}Z"
        if not isinstance(first, str) or not is_name(first) or _FILES.get(first[0]) != file:
            return None
        return f"{file}{self.of[first]}"

    def constant(self, said: Said) -> tuple[int, int] | None:
        """The bank and offset of a constant's first word."""
        found = [self._word(p, n) for n, p in enumerate(said.places)]
        first = next((w for w in found if w is not None), None)
        if first is None:
            return None
        bank, at = first[0], first[1]
        for n, word in enumerate(found):
            if word is not None and word != (bank, at + 4 * (n - found.index(first))):
                return None
        return bank, at - 4 * found.index(first)

    def _word(self, place: str | tuple[int, int], n: int) -> tuple[int, int] | None:
        if not isinstance(place, str):
            return place
        if place == "Z" and self.low and n == 0:
            return 0, self.layout.local_window
        if place in WINDOWS:
            base = getattr(self.layout, f"{WINDOWS[place]}_window")
            return None if base is None else (0, base + 4)
        return self.consts.get(place)


def _predicate(slot: object, said: tuple[bool, str], numbers: _Numbers) -> int | None:
    """The bits of a predicate."""
    inverted, name = said
    if not isinstance(slot, P):
        return 0  # a fixed predicate: decoding checks whether it is this one
    if name == "T":
        number = 7
    elif _FILES.get(name[0]) == slot.file:
        number = numbers.of[name]
    else:
        return None
    if inverted and slot.inv is None:
        return None
    return (number ^ slot.flip) << slot.lo | (
        1 << slot.inv if inverted and slot.inv is not None else 0
    )


def _signed(body: str, said: Said) -> str:
    if "|" in said.signs:
        body = f"|{body}|"
    return "".join(s for s in ("-", "~") if s in said.signs) + body


def _operand(slot: object, said: Said, slots: Slots, numbers: _Numbers) -> Iterator[int]:
    """The possible bits of an operand."""
    texts: list[str] = []
    select = f".{said.select}" if said.select else ""
    match slot:
        case When():
            chosen = slot.slot if slots.context.get(slot.mod) else slot.other
            yield from _operand(chosen, said, slots, numbers)
        case R():
            name = numbers.register(said, slot.file)
            if name is not None:
                texts = [_signed(name, said) + select, _signed(name + select, said)]
        case C():
            texts = _constants(slot, said, numbers, select)
        case I() | Mask():
            if said.kind == "number" and not said.signs:
                yield from _immediate(slot, said.number)
        case Fixed():
            yield 0
        case M():
            if said.kind == "memory":
                yield from _memory(slot, said, numbers)
        case L():
            return
        case _:
            if said.kind == "word":
                texts = [said.number[0]]
    done: set[int] = set()
    for text in dict.fromkeys(texts):
        found = slots.parse(slot, text, 0)
        if found is not None and found[1] == len(text) and found[0] not in done:
            done.add(found[0])
            yield found[0]


def _constants(slot: C, said: Said, numbers: _Numbers, select: str) -> list[str]:
    if slot.bindless is not None:
        return []
    if said.kind == "indexed":
        name = numbers.register(said.parts[0], slot.index_file)
        if name is None or slot.index is None:
            return []
        bank, at = said.bank, value_of(said.number, 0)[0]
        inner = name + (f"+{_hex(at)}" if at else "")
    else:
        found = numbers.constant(said) if said.kind == "register" else None
        if found is None:
            return []
        bank, inner = found[0], f"{found[1]:#x}"
    bodies = (f"c[{bank:#x}]{gap}[{inner}]" for gap in ("", " "))
    return [t for b in bodies for t in (_signed(b, said) + select, _signed(b + select, said))]


def _hex(value: int) -> str:
    return f"-{-value:#x}" if value < 0 else f"{value:#x}"


def _immediate(slot: I | Mask, words: Words) -> Iterator[int]:
    width = slot.field.width
    wide = isinstance(slot, I) and slot.bits == 64
    try:
        value, _ = value_of(words, 0, 64 if wide else 32)
    except EncodeError:
        return
    if isinstance(slot, I) and slot.kind == "f64":
        if value & 0xFFFFFFFF == 0:
            yield put(slot.field, value >> 32 & 0xFFFFFFFF)
        return
    if isinstance(slot, I):
        if value % slot.scale:
            return
        value //= slot.scale
    yield put(slot.field, value & (1 << width) - 1)


def _memory(slot: M, said: Said, numbers: _Numbers) -> Iterator[int]:
    """An address: decoding checks which of its bits give its width."""
    offset, _ = value_of(said.number, 0)
    if offset % slot.unit:
        return
    bits = put(slot.offset, offset // slot.unit)
    scales = {1: 0, 4: 1, 8: 2, 16: 3}
    if (said.scale != 1 and slot.scale is None) or said.scale not in scales:
        return
    if slot.scale is not None:
        bits |= put(slot.scale, scales[said.scale])
    parts = list(said.parts)
    if slot.base is not None:
        name = numbers.register(parts.pop(0), "R") if parts else None
        if name is None:
            return
        bits |= (255 if name == "RZ" else int(name[1:])) << slot.base
    described = False
    if slot.ureg is not None:
        zero = (1 << (8 if numbers.generation >= 100 else 6)) - 1
        described = not parts
        name = numbers.register(parts.pop(0), "UR") if parts else f"UR{_DESCRIPTOR}"
        if name is None:
            return
        bits |= (zero if name == "URZ" else int(name[2:])) << slot.ureg
    if parts:
        return
    open_ = [b for b in (slot.wide, slot.uwide) if b is not None]
    if described:
        if slot.desc is None:
            return
        bits |= 1 << slot.desc
        if slot.desc_shown is not None:
            open_.append(slot.desc_shown)
    for choice in product((0, 1), repeat=len(set(open_))):
        yield bits | sum(1 << b for b, on in zip(sorted(set(open_)), choice, strict=True) if on)


def _words_of(reading: _Reading, line: QuestionLine, numbers: _Numbers) -> Iterator[int]:
    """The words whose text may be this line."""
    row = reading.row.row
    inverted, name = line.guard
    if name != "T" and _FILES[name[0]] != row.guard:
        return
    guard = (7 if name == "T" else numbers.of[name]) | inverted << 3
    settled = reading.row.mod_mask | reading.row.match_mask
    slots = Slots(reading.context, reading.row.generation, reading.bits, settled)
    choices: list[list[int]] = []
    left = list(line.operands)
    if not line.predicates.keys() <= row.operands.keys():
        return
    usual = line.mnemonic in USUALLY_FALSE
    for role, slot in row.operands.items():
        inner = slot
        if isinstance(slot, When):
            inner = slot.slot if reading.context.get(slot.mod) else slot.other
        if isinstance(inner, P) or (isinstance(inner, Fixed) and inner.kind in ("P", "UP")):
            said = line.predicates.get(role, (usual and role in ("Pp", "Pq"), "T"))
            bits = _predicate(inner, said, numbers)
            found = [] if bits is None else [bits]
        elif not left:
            return
        else:
            found = list(_operand(inner, left.pop(0), slots, numbers))
        if not found:
            return
        choices.append(found)
    if left:
        return
    for choice in product(*choices):
        word = reading.bits | guard << 12
        for bits in choice:
            word |= bits
        yield word


def _alike(ins: Instruction) -> object:
    """The meaning of an instruction, as far as its text can express it."""

    def plain(operand: Operand) -> Operand:
        match operand:
            case Reg() if operand.is_zero:
                return replace(operand, file="R", width=1, reuse=False)
            case Pred() if operand.index == 7:
                return replace(operand, file="P")
            case Mem():
                base = operand.base
                if base is not None and base.is_zero:
                    base = replace(base, width=1)
                return replace(operand, desc=None, base=base)
            case _:
                return operand

    return (
        ins.mnemonic,
        ins.modifiers,
        plain(ins.guard),
        {role: plain(operand) for role, operand in ins.operands.items()},
        ins.writes,
    )


def _instruction(
    line: QuestionLine,
    offset: int,
    numbers: _Numbers,
    block: Region,
    regs: RegisterMap,
    here: Names,
) -> Instruction:
    """The one instruction with this line.  EncodeError SX0549 if there is none, or several."""
    if ("Z",) in [o.places for o in line.operands]:  # mostly a register, or the word Z
        with contextlib.suppress(EncodeError):
            return _decoded(line, offset, numbers, block, regs, here)
        numbers = replace(numbers, low=True)
    return _decoded(line, offset, numbers, block, regs, here)


def _decoded(
    line: QuestionLine,
    offset: int,
    numbers: _Numbers,
    block: Region,
    regs: RegisterMap,
    here: Names,
) -> Instruction:
    text = " ".join(line.words)
    arch = block.around.arch
    found: Instruction | None = None
    for reading in _readings(numbers.generation, line.mnemonic, line.modifiers):
        for word in _words_of(reading, line, numbers):
            try:
                ins = reading.row.decode(word, offset, arch, False)
                if row_of(word, numbers.generation) is not reading.row:
                    continue
                if line_of(ins, block, regs, here) != line.words:
                    continue
            except (DecodeError, EncodeError):
                continue
            if found is None:
                found = ins
            elif _alike(ins) != _alike(found):
                raise bad(f"{text!r} can be read in two ways")
    if found is None:
        raise bad(f"no instruction of sm_{arch} is said {text!r}")
    return found


# --- the question --------------------------------------------------------------------------------


def read_question(text: str, arch: int) -> RegionText:
    """The question with this canonical text, for a block made up for it.

    Raises EncodeError SX0549 if the text does not determine the block, or is not a question.
    """
    try:
        made = _read(text, arch)
        again = made.text
    except (LoweringError, EncodeError, DecodeError) as error:
        raise bad(error.message) from None
    if again != text:
        wrong = next(
            (f"{b!r} for {a!r}" for a, b in zip(text.split("\n"), again.split("\n"), strict=False)
             if a != b), "another length")  # fmt: skip
        raise bad(f"the text is not its own question: {wrong}")
    return made


def _read(text: str, arch: int) -> RegionText:
    heads: dict[str, Words] = {}
    tables: dict[int, int] = {}
    body: list[QuestionLine] = []
    rows: list[Words] = [tuple(row.split()) for row in text.split("\n")]
    target = next((t for t in TARGETS.values() if rows[0] == (t.language,)), None)
    if target is None:
        raise bad(f"{' '.join(rows[0])!r} is no target's instruction set")
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
                raise bad(f"{line.mnemonic} means where it stands")
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
    of |= chains.numbered("ul", (_DESCRIPTOR, _DESCRIPTOR + 1), most)
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
        ur=by_file["u"] | {_DESCRIPTOR + i: at for i, at in enumerate(spare)},
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
    refs = {n: RegRef(_FILES[n[0]], i) for n, i in of.items()}  # type: ignore[arg-type]
    merged = frozenset(_named(heads.get("keep", ()), refs))
    block = Region(0, (), True, merged, around)
    fixed = canonical_names((), regs).place
    found = {**fixed, **{n: places[n] for n in chains.order}}
    here = Names(found, {at: name for name, at in found.items()})
    numbers = _Numbers(of, consts, lay, generation)
    sass = tuple(
        _instruction(line, 16 * n, numbers, block, regs, here) for n, line in enumerate(body)
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


__all__ = ["read_question"]
