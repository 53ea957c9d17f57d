"""Where a rewrite applies in a draft, and applying it.

A rewrite is matched from its last instruction backwards, by which line writes what that one reads.
The new instructions take the place of the last of the old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from sassxlate.disasm.rdna3 import OPS, RRef
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.lowering.optimize.cost import instruction
from sassxlate.lowering.optimize.draft import Draft, legal, line, plain, source
from sassxlate.lowering.optimize.rewrites.numbers import number, true
from sassxlate.lowering.optimize.rewrites.pattern import (
    SPECIALS,
    Line,
    Rewrite,
    kind,
    rewrites,
    words,
)

_SCC: Final = RRef("scc")
_EITHER: Final = frozenset(
    "v_add_nc_u32 v_and_b32 v_or_b32 v_xor_b32 v_xnor_b32 v_mul_lo_u32 v_mul_hi_u32 v_mul_hi_i32 "
    "v_min_u32 v_max_u32 v_min_i32 v_max_i32 v_add3_u32 v_or3_b32 v_xor3_b32 v_mul_u32_u24 "
    "v_mul_i32_i24 v_add_co_u32 v_add_co_ci_u32 s_and_b32 s_or_b32 s_xor_b32 s_add_u32 s_add_i32 "
    "s_mul_i32 v_mad_u64_u32 v_mad_i64_i32 v_and_or_b32".split()
)
_MIRROR: Final = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


@cache
def mirrored(op: str) -> str | None:
    """The instruction that does the same with its first two sources swapped."""
    if op in _EITHER:
        return op
    if op.startswith("v_cmp_") and op[-3:] in ("u32", "i32"):
        _, _, relation, sort = op.split("_")
        return f"v_cmp_{_MIRROR[relation]}_{sort}" if relation in _MIRROR else None
    return {"v_sub_nc_u32": "v_subrev_nc_u32", "v_subrev_nc_u32": "v_sub_nc_u32"}.get(op)


@dataclass(slots=True)
class _Match:
    """Operands by name, and the line of the draft for each line of the rewrite."""

    named: dict[str, Arg] = field(default_factory=dict[str, Arg])
    at: dict[int, int] = field(default_factory=dict[int, int])

    def copy(self) -> _Match:
        return _Match(dict(self.named), dict(self.at))


@dataclass(frozen=True, slots=True)
class _Entry:
    """A rewrite, and the mnemonics of which its draft must have one each."""

    rule: Rewrite
    needs: tuple[frozenset[str], ...]


@cache
def by_last(rules: tuple[Rewrite, ...]) -> Mapping[str, tuple[_Entry, ...]]:
    """Rewrites by the mnemonics that their last instruction may have."""
    out: dict[str, list[_Entry]] = {}
    for rule in rules:
        names = [frozenset({at.op, mirrored(at.op) or at.op}) for at in rule.old]
        for name in names[-1]:
            out.setdefault(name, []).append(_Entry(rule, tuple(names[:-1])))
    return {op: tuple(some) for op, some in out.items()}


def rewritten(d: Draft, rules: tuple[Rewrite, ...] | None = None) -> list[tuple[str, int]]:
    """Applies each rewrite wherever it makes the code cheaper; the names of those applied, and what
    each saves by :mod:`~sassxlate.lowering.optimize.cost`."""
    table = by_last(rewrites() if rules is None else rules)
    out: list[tuple[str, int]] = []
    there = {at.inst.op for at in d.lines}
    n = 0
    while n < len(d.lines):
        inst = d.lines[n].inst
        for entry in table.get(inst.op, ()) if plain(inst) else ():
            if all(names & there for names in entry.needs):
                saved = _apply(d, n, entry.rule)
                if saved:
                    out.append((entry.rule.name, saved))
                    there = {at.inst.op for at in d.lines}
                    n = -1  # another may apply to the result
                    break
        n += 1
    return out


def _apply(d: Draft, n: int, rule: Rewrite) -> int:
    """What a rewrite that ends at line ``n`` saves; 0 where it does not apply."""
    for found in _lines(d, n, rule, len(rule.old) - 1, _Match()):
        constants = {
            name: arg.value & 0xFFFFFFFF
            for name, arg in found.named.items()
            if isinstance(arg, I) and kind(name) == "constant"
        }
        if rule.when and not true(rule.when, constants):
            continue
        saved = _replace(d, n, rule, found, constants)
        if saved:
            return saved
    return 0


# --- matching ------------------------------------------------------------------------------------


def _lines(d: Draft, n: int, rule: Rewrite, which: int, so_far: _Match) -> Iterator[_Match]:
    """All ways in which line ``n`` is line ``which`` of a rewrite, with the lines that it reads."""
    at, inst = rule.old[which], d.lines[n].inst
    if n in so_far.at.values() or not plain(inst) or len(inst.args) != len(at.args):
        return
    ways = [inst.args] if inst.op == at.op else []
    if mirrored(inst.op) == at.op:
        to, (a, b, *rest) = inst.args[: at.writes], inst.args[at.writes :]
        ways.append((*to, b, a, *rest))
    for args in ways:
        found = so_far.copy()
        found.at[which] = n
        if all(_binds(found, name, arg) for name, arg in zip(at.args, args, strict=True)):
            yield from _makers(d, rule, which, list(at.sources), found)


def _makers(
    d: Draft, rule: Rewrite, which: int, left: list[str], found: _Match
) -> Iterator[_Match]:
    """The lines that make the sources of a line, where the rewrite says which."""
    if not left:
        yield found
        return
    (name, *rest) = left
    makers = _makers_of(rule, which, name)
    todo = [m for m in makers if m not in found.at]
    if not all(_is_last(d, rule, m, which, name, found) for m in makers if m in found.at):
        return
    if not todo:
        yield from _makers(d, rule, which, rest, found)
        return
    m = todo[0]
    shared = [w for r in rule.old[m].results for w in words(r) if w in words(name)]
    arg = _word(found, name, shared[0])
    if arg is None:
        return
    place = _writer(d, found.at[which], arg)
    if place is None or not d.reaches(place, found.at[which]):
        return
    for more in _lines(d, place, rule, m, found):
        yield from _makers(d, rule, which, left, more)


@cache
def _makers_of(rule: Rewrite, which: int, name: str) -> tuple[int, ...]:
    """The lines of a rewrite before a line that write what it reads under a name."""
    read = set(words(name))
    return tuple(
        m for m in range(which) if any(read & set(words(result)) for result in rule.old[m].results)
    )


def _is_last(d: Draft, rule: Rewrite, m: int, which: int, name: str, found: _Match) -> bool:
    """Whether a line that is matched already is the one that made what another reads."""
    shared = [w for r in rule.old[m].results for w in words(r) if w in words(name)]
    return all(
        (arg := _word(found, name, w)) is not None
        and _writer(d, found.at[which], arg) == found.at[m]
        for w in shared
    )


def _word(found: _Match, name: str, word: str) -> V | S | Sp | None:
    arg = found.named.get(word)
    return arg if isinstance(arg, V | S | Sp) else None


def _writer(d: Draft, n: int, arg: V | S | Sp) -> int | None:
    refs = source(arg)
    return next((m for m in range(n - 1, -1, -1) if refs & d.lines[m].writes), None)


def _binds(found: _Match, name: str, arg: Arg) -> bool:
    """Whether an operand may stand for a name."""
    sort = kind(name)
    if sort == "number":
        if name in SPECIALS:
            return arg == Sp(SPECIALS[name])
        return isinstance(arg, I) and (arg.value - int(name, 0)) & 0xFFFFFFFF == 0
    if sort == "pair":
        if not isinstance(arg, V) or arg.n != 2:
            return False
        low, high = words(name)
        return _same(found, low, V(arg.index)) and _same(found, high, V(arg.index + 1))
    if not _of_kind(sort, name, arg):
        return False
    pair, dot, which = name.partition(".")
    if not dot or not isinstance(arg, V):
        return _same(found, name, arg)
    first = arg.index - (which == "hi")
    return first >= 0 and all(_same(found, w, V(first + k)) for k, w in enumerate(words(pair)))


def _of_kind(sort: str, name: str, arg: Arg) -> bool:
    match sort:
        case "constant":
            return isinstance(arg, I)
        case "mask":
            return (isinstance(arg, S) and arg.n == 1) or arg == Sp("vcc_lo")
        case "scalar":
            return (isinstance(arg, S) and arg.n == 1) or isinstance(arg, I)
        case _:
            vector = isinstance(arg, V) and arg.n == 1
            return vector if "." in name else vector or _of_kind("scalar", name, arg)


def _same(found: _Match, name: str, arg: Arg) -> bool:
    return found.named.setdefault(name, arg) == arg


# --- replacing -----------------------------------------------------------------------------------


def _replace(d: Draft, n: int, rule: Rewrite, found: _Match, constants: Mapping[str, int]) -> int:
    """Puts the new instructions in the place of the last old one, if that is safe and cheaper; what
    it saves."""
    stays = {k for k, at in enumerate(rule.old) if at in rule.new and k != len(rule.old) - 1}
    new = [at for at in rule.new if at not in {rule.old[k] for k in stays}]
    gone = sorted(m for k, m in found.at.items() if k not in stays)
    if not _unread(d, n, rule, found, stays) or not _inputs_last(d, n, rule, found, gone):
        return 0
    named = _with_temporaries(d, new, found.named)
    if named is None:
        return 0
    made = [_inst(at, named, constants) for at in new]
    if not all(map(legal, made)) or not _in_order(new, named):
        return 0
    if any(_SCC in _flags(inst) for inst in made) and not d.dead_at(n + 1, _SCC):
        return 0
    saved = sum(instruction(d.lines[m].inst) for m in gone) - sum(map(instruction, made))
    if saved <= 0:
        return 0
    d.join([d.lines[m].group for m in found.at.values()])
    group, region = d.lines[n].group, d.lines[n].region
    lines = [line(inst, group) for inst in made]
    for at in lines:
        at.region = region
    d.lines[n : n + 1] = lines
    d.remove([m for m in gone if m != n])
    return saved


def _flags(inst: Inst) -> frozenset[RRef]:
    return frozenset({_SCC}) if "scc" in OPS[inst.op].writes else frozenset()


def _unread(d: Draft, n: int, rule: Rewrite, found: _Match, stays: set[int]) -> bool:
    """Whether what goes is read by the rewrite's own lines alone, and the results that move to the
    last line are not read, and may be written, before it."""
    mine = set(found.at.values())
    last = len(rule.old) - 1
    for k, m in found.at.items():
        if k in stays:
            continue
        kept = {w for r in rule.old[k].results for w in words(r) if w in rule.kept}
        results = {ref: w for r in rule.old[k].results for w in words(r)
                   for ref in source(found.named[w])}  # fmt: skip
        for ref in d.lines[m].writes:
            if ref.kind not in ("v", "s", "scc"):
                return False
            if results.get(ref) in kept:
                if k == last:
                    continue
                early = (m2 for m2 in range(m + 1, n) if m2 not in mine)
                touched = (d.lines[m2].reads | d.lines[m2].writes for m2 in early)
                if d.lines[m].region != d.lines[n].region or any(ref in t for t in touched):
                    return False
                continue
            uses = d.uses(m, ref)
            if uses is None or not set(uses) <= mine:
                return False
    return True


def _inputs_last(d: Draft, n: int, rule: Rewrite, found: _Match, gone: list[int]) -> bool:
    """Whether all inputs have at the last line the values that they had where they were read."""
    origins: dict[str, int | None] = {}
    for k, m in found.at.items():
        for name in rule.old[k].sources:
            for word in words(name):
                arg = found.named.get(word)
                if not isinstance(arg, V | S | Sp):
                    continue
                refs = source(arg)
                if not _made_before(rule, k, word):
                    # One name is one value, and none that a line which goes has made.
                    origin = _writer(d, m, arg)
                    if origins.setdefault(word, origin) != origin or origin in gone:
                        return False
                elif not _stays_before(rule, k, word, found, gone):
                    continue
                between = (j for j in range(m, n) if j not in gone)
                if any(d.lines[j].writes & refs for j in between):
                    return False
    return True


def _made_before(rule: Rewrite, k: int, word: str) -> list[int]:
    """The lines of a rewrite before a line that write a word."""
    return [j for j in range(k) for r in rule.old[j].results if word in words(r)]


def _stays_before(rule: Rewrite, k: int, word: str, found: _Match, gone: list[int]) -> bool:
    """Whether the word that a line reads is made by a line that stays."""
    return found.at[_made_before(rule, k, word)[-1]] not in gone


def _with_temporaries(d: Draft, new: list[Line], named: Mapping[str, Arg]) -> dict[str, Arg] | None:
    """Operands by name, with free registers for names that only the new code has."""
    out = dict(named)
    vectors, scalars = d.free_vectors(), d.free_scalars()
    for at in new:
        for arg in at.results:
            if all(word in out for word in words(arg)):
                continue
            free: V | S | None = next(vectors, None)
            if kind(arg) in ("mask", "scalar"):
                free = next(scalars, None)
            if kind(arg) == "pair" or free is None:
                return None
            out[arg] = free
    return out


def _in_order(new: list[Line], named: Mapping[str, Arg]) -> bool:
    """Whether no new instruction overwrites what a later one reads under another name."""
    for k, at in enumerate(new):
        over = {ref: w for r in at.results for w in words(r) for ref in source(named[w])}
        for later in new[k + 1 :]:
            for name in later.sources:
                for word in words(name):
                    arg = named.get(word)
                    if arg is not None and any(over.get(r, word) != word for r in source(arg)):
                        return False
    return True


def _inst(at: Line, named: Mapping[str, Arg], constants: Mapping[str, int]) -> Inst:
    return Inst(at.op, tuple(_arg(name, named, constants) for name in at.args))


def _arg(name: str, named: Mapping[str, Arg], constants: Mapping[str, int]) -> Arg:
    match kind(name):
        case "expression":
            return I(_signed(number(name[1:], constants)))
        case "number":
            if name in SPECIALS:
                return Sp(SPECIALS[name])
            return I(_signed(int(name, 0)))
        case "pair":
            low = named[words(name)[0]]
            assert isinstance(low, V)
            return V(low.index, 2)
        case _:
            return named[name]


def _signed(n: int) -> int:
    n &= 0xFFFFFFFF
    return n - (n >> 31 << 32)


__all__ = ["by_last", "mirrored", "rewritten"]
