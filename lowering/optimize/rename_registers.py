"""Renames the registers of straight-line code; registers live on entry and exit keep their places.

A register's live range is a number of segments, from each write to the last read of the value.
Segments of one operand are adjacent, and those that an instruction changes in place are merged;
such groups are placed one after another, in the order of their starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sassxlate.disasm.rdna3 import OPS, RRef, keeps_part
from sassxlate.disasm.rdna3.instruction import Arg, Inst, S, Sp, V
from sassxlate.disasm.rdna3.tables.operand_codes import VCC_LO

_VCC: Final = {"vcc_lo": (VCC_LO, 1), "vcc_hi": (VCC_LO + 1, 1), "vcc": (VCC_LO, 2)}
_EARLY: Final = ("v_mad_u64_u32", "v_mad_i64_i32", "v_qsad", "v_mqsad")
_FOREVER: Final = 1 << 20


class NoFit(Exception):
    """There are too few registers, or no adjacent ones."""


@dataclass(slots=True)
class _Segment:
    """A register's live range with one value; ``at`` is its position in its group."""

    kind: str
    number: int
    first: float
    last: float
    group: _Group | None = None
    at: int = 0
    junk: bool = False  # never written


@dataclass(slots=True, eq=False)
class _Group:
    """Segments that are placed together."""

    segments: list[_Segment] = field(default_factory=list["_Segment"])
    align: int = 1
    base: int | None = None

    def add(self, segment: _Segment, at: int) -> None:
        segment.group, segment.at = self, at
        self.segments.append(segment)


@dataclass(slots=True)
class Places:
    """Constraints on places: the registers of the incoming code, per kind, the registers that may
    be used in addition, and those that are read after the code."""

    come: Mapping[RRef, int]
    free: Mapping[str, Sequence[int]]
    kept: frozenset[RRef]


def _words(arg: Arg) -> list[tuple[str, int]]:
    match arg:
        case V():
            return [("v", arg.index + i) for i in range(arg.n)]
        case S():
            return [("s", arg.index + i) for i in range(arg.n)]
        case Sp() if arg.name in _VCC:
            first, n = _VCC[arg.name]
            return [("c", first + i) for i in range(n)]
        case _:
            return []


class _Lives:
    """The segments of the code, in their groups."""

    def __init__(self, code: Sequence[Inst], places: Places) -> None:
        self.groups: list[_Group] = []
        self.here: dict[tuple[str, int], _Segment] = {}
        self.placed: list[list[list[_Segment]]] = []  # per instruction and operand
        for ref in places.come:
            self._begin(ref.kind, ref.number, -1)
        for n, inst in enumerate(code):
            self.placed.append(self._step(n, inst))
        for ref in places.kept:
            found = self.here.get((ref.kind, ref.number))
            if found is None:
                raise NoFit("a result without a writer")
            found.last = _FOREVER

    def _begin(self, kind: str, number: int, at: float) -> _Segment:
        segment = _Segment(kind, number, at, at)
        group = _Group()
        group.add(segment, 0)
        self.groups.append(group)
        self.here[kind, number] = segment
        return segment

    def _step(self, n: int, inst: Inst) -> list[list[_Segment]]:
        row = OPS[inst.op]
        roles = [row.args[i].role if i < len(row.args) else "r" for i in range(len(inst.args))]
        tied = keeps_part(inst)
        made: list[list[_Segment]] = [[] for _ in inst.args]
        for i, arg in enumerate(inst.args):
            if "r" in roles[i] or (tied and "w" in roles[i]):
                for kind, number in _words(arg):
                    found = self.here.get((kind, number))
                    if found is None:  # the value read is undefined: any place will do
                        found = self._begin(kind, number, n - 0.5)
                        found.junk = True
                    found.last = max(found.last, n)
                    made[i].append(found)
                self._beside(arg, made[i])
        early = 0.5 if inst.op.startswith(_EARLY) else 0.0
        for i, arg in enumerate(inst.args):
            if "w" not in roles[i]:
                continue
            if "r" in roles[i] or tied:
                for segment in made[i]:
                    segment.last = max(segment.last, n + 0.5)
                continue
            made[i] = [self._begin(kind, number, n - early) for kind, number in _words(arg)]
            for segment in made[i]:
                segment.last = n + 0.5
            self._beside(arg, made[i])
        return made

    def _beside(self, arg: Arg, segments: Sequence[_Segment]) -> None:
        if len(segments) < 2:
            return
        first = segments[0]
        for i, segment in enumerate(segments):
            self._join(first, segment, i)
        group = first.group
        assert group is not None
        if isinstance(arg, S) and first.at == 0:
            group.align = max(group.align, min(arg.n, 4))

    def _join(self, a: _Segment, b: _Segment, distance: int) -> None:
        """Places ``b`` at a distance after ``a`` in one group."""
        ga, gb = a.group, b.group
        assert ga is not None
        assert gb is not None
        shift = a.at + distance - b.at
        if ga is gb:
            if shift:
                raise NoFit("a tuple of two places")
            return
        for segment in gb.segments:
            ga.add(segment, segment.at + shift)
        ga.align = max(ga.align, gb.align)
        self.groups.remove(gb)


class _Board:
    """Occupancy of the registers over time."""

    def __init__(self) -> None:
        self.taken: dict[tuple[str, int], list[tuple[float, float]]] = {}

    def fits(self, group: _Group, base: int) -> bool:
        for s in group.segments:
            if s.junk:
                continue
            for first, last in self.taken.get((_file(s.kind), base + s.at), ()):
                if s.first < last and first < s.last:
                    return False
        return True

    def take(self, group: _Group, base: int) -> None:
        group.base = base
        for s in group.segments:
            if s.junk:
                continue
            key = _file(s.kind), base + s.at
            self.taken.setdefault(key, []).append((s.first, max(s.last, s.first + 0.5)))


def _file(kind: str) -> str:
    return "v" if kind == "v" else "s"


def _fixed(group: _Group, places: Places, final: Mapping[RRef, _Segment]) -> int | None:
    """The required place of a group, if any."""
    bases: set[int] = set()
    for s in group.segments:
        ref = RRef(s.kind, s.number)
        if s.kind == "c":
            bases.add(s.number - s.at)
        elif s.first == -1 or final.get(ref) is s:
            bases.add(places.come[ref] - s.at)
    if len(bases) > 1:
        raise NoFit("a tuple that is none")
    return bases.pop() if bases else None


def placed(code: Sequence[Inst], places: Places) -> list[Inst]:
    """The code with its registers renamed.  Raises NoFit."""
    lives = _Lives(code, places)
    final = {r: lives.here[r.kind, r.number] for r in places.kept}
    board = _Board()
    left: list[_Group] = []
    allowed = {kind: {*free} for kind, free in places.free.items()}
    for ref, at in places.come.items():
        allowed[ref.kind].add(at)
    for group in lives.groups:
        base = _fixed(group, places, final)
        if base is None:
            left.append(group)
            continue
        _check(group, base, allowed)
        if not board.fits(group, base):
            raise NoFit("a place for two")
        board.take(group, base)
    for group in sorted(left, key=lambda g: (min(s.first for s in g.segments), -len(g.segments))):
        base = next(_candidates(group, places, allowed, board), None)
        if base is None:
            raise NoFit("too few registers")
        board.take(group, base)
    return [
        replace(inst, args=tuple(map(_moved, inst.args, segments)), enc="", origin=None)
        for inst, segments in zip(code, lives.placed, strict=True)
    ]


def _check(group: _Group, base: int, allowed: Mapping[str, set[int]]) -> None:
    for s in group.segments:
        if s.kind != "c" and not s.junk and base + s.at not in allowed[s.kind]:
            raise NoFit("beside what may be written")


def _candidates(
    group: _Group, places: Places, allowed: Mapping[str, set[int]], board: _Board
) -> Iterator[int]:
    kind = group.segments[0].kind
    if any(s.kind != kind for s in group.segments):
        raise NoFit("a tuple of two files")
    low = min(s.at for s in group.segments)
    head = group.segments[0]
    own = places.come.get(RRef(kind, head.number))
    order = [own - head.at] if own is not None else []
    order += [at - low for at in sorted(places.free[kind])]
    order += [at - low for at in sorted(allowed[kind] - {*places.free[kind]})]
    for base in order:
        allowed_here = all(base + s.at in allowed[kind] for s in group.segments)
        if base % group.align == 0 and allowed_here and board.fits(group, base):
            yield base


def _moved(arg: Arg, segments: Sequence[_Segment]) -> Arg:
    if not segments:
        return arg
    first = segments[0]
    assert first.group is not None
    assert first.group.base is not None
    index = first.group.base + first.at
    if isinstance(arg, Sp):
        return arg
    if isinstance(arg, S) and index >= VCC_LO:
        return Sp("vcc", 2) if arg.n == 2 else Sp("vcc_lo" if index == VCC_LO else "vcc_hi")
    return type(arg)(index, arg.n) if isinstance(arg, V | S) else arg


__all__ = ["NoFit", "Places", "placed"]
