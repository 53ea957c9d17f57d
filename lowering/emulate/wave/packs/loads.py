"""Dwords that eight active lanes load from anywhere, for runs of instructions in packs (`loop`).

The fast form gathers for the lanes whose dwords are inside of the arena and aligned, or loads their
rows (`rows`), and notes whether all are.  If any is missing, the pack is computed again with the
careful form: a helper that visits its lanes.  There a fault is only noted, since a later pack may
have one at an earlier instruction; the first one by instruction and lane counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.reads_writes import effects
from sassxlate.domain.interface import is_zero
from sassxlate.lowering.emulate.wave.access import gathers, memory
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.emulate.wave.packs import careful, places, rows
from sassxlate.lowering.emulate.wave.packs.groups import Group, Span
from sassxlate.lowering.emulate.wave.packs.runs import read_and_written
from sassxlate.lowering.emulate.wave.packs.state import (
    LANES,
    MASK,
    V32,
    V64,
    PackedFunction,
    PackedState,
)
from sassxlate.lowering.llvm.ir_text import Function, Val, const, literal

_LINES = {1: 8, 2: 6}  # that a pack reads ahead of a span, by how many runs a kernel has


@dataclass(slots=True)
class Pack:
    """A pack under construction, in its fast form or the careful one.

    ``outer`` makes what all packs share.  ``active`` is the mask of the lanes; the fast form knows
    no idle ones, since they have the values of an active lane (`loop`).  ``inside`` are masks of
    the lanes whose loads are inside, ``whole`` truth values of the same.  ``groups`` are those of
    all loads, ``note`` is where a fault is noted, and ``sort`` the vector of `places.sort_numbers`.
    """

    c: Context
    outer: Context
    fn: PackedFunction
    state: PackedState
    first: str
    active: str
    groups: dict[int, Group]
    note: str
    sort: str
    slow: bool
    shared: Rows
    place: int = 0  # of the instruction, in the code
    inside: list[str] = field(default_factory=list[str])
    whole: list[str] = field(default_factory=list[str])
    numbered: bool = False  # whether rows have been looked up by their lanes' numbers
    held: dict[int, rows.Half] = field(default_factory=dict[int, rows.Half])
    turned: dict[int, Turned] = field(default_factory=dict[int, "Turned"])  # by the first load
    spans: dict[int, _Lanes] = field(default_factory=dict[int, "_Lanes"])  # by number
    # By what a load gave: of which rows, by the first load of them, and of which column.
    columns: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    tables: dict[tuple[int, str, str], _Table] = field(
        default_factory=dict[tuple[int, str, str], "_Table"]
    )

    @property
    def stem(self) -> str:
        """What names of the loop begin with."""
        return self.first.removesuffix(".first")

    def number(self, lane: int) -> str:
        """The number of one of the pack's lanes, as 64 bits: `Rows.numbers`."""
        return f"{self.stem}.n{lane}"

    @property
    def given(self) -> str:
        """What the helpers of the careful form are given of every load."""
        return f"i8 {self.active}.bits, i32 {self.first}, i32 {self.c.pc}, ptr {self.note}"


@dataclass(frozen=True, slots=True)
class Turned:
    """Rows: their vectors, and their columns."""

    vectors: list[str]
    columns: list[rows.Half]


def load(p: Pack, inst: Inst) -> None:
    """One global_load_b32 of scattered lanes."""
    c = p.c
    c.write32(inst, inst.args[0], _loaded(p, inst))


def _loaded(p: Pack, inst: Inst) -> Val:
    group = p.groups[p.place]
    shared = p.shared.place(p, inst, group.span) if group.rows else None
    if p.slow and shared is not None:
        lanes = p.shared.lanes(p)
        return careful.of_rows(p.fn, shared, lanes, inst.imm, p.given)
    if p.place not in p.held:
        if shared is not None:
            pointers = p.shared.pointers(p, shared)
            words = _rows(
                p, group, pointers, group.low, p.shared.ahead.pop(group.span.number, None)
            )
            p.held.update(zip(group.places, words, strict=True))
        else:
            word = _by_addresses(p, inst, group)
            if word is not None:
                return word
    word = p.held.pop(p.place).take(p.fn)
    if group.rows:
        p.columns[word.ref] = group.places[0], group.places.index(p.place)
    return word


def _by_addresses(p: Pack, inst: Inst, group: Group) -> Val | None:
    """A dword by addresses that the pack has; None if it is among those that are held now."""
    c, (_, addr, saddr) = p.c, inst.args
    a = memory.vector_address(c, inst, addr, saddr, "g")
    table = None if a.uniform else gathers.find(c.d, a.lo, a.hi)
    if p.slow:
        if table is None or table.offset:
            return careful.alone(p.fn, a.full(c), p.given)
        return careful.of_table(p.fn, table, c.d.add(table.base, a.base), p.given)
    if table is not None and group.span.dwords == 1:
        return _from_table(p, table, c.d.add(table.base, a.base))
    lanes = p.spans.get(group.span.number)
    if lanes is None:
        start = replace(a, base=c.d.add(a.base, places.offset(group.span.low - inst.imm)))
        lanes = p.spans[group.span.number] = _Lanes(p, start.full(c), group.span)
    if len(group.places) == 1:
        return lanes.gather(group)
    p.held.update(zip(group.places, lanes.load(group), strict=True))
    return None


def finish(p: Pack) -> str:
    """Whether all lanes' dwords were inside; nothing of the pack follows."""
    fn = p.fn
    # The last one first: what is put in moves the lines after it.
    for table in reversed(p.tables.values()):
        table.emit()
    good = "splat (i1 true)"
    for mask in p.inside:
        good = mask if good.startswith("splat") else fn.emit(f"and {MASK} {good}, {mask}")
    bits = fn.emit(f"bitcast {MASK} {good} to i8")
    all_ = fn.emit_new(f"icmp eq i8 {bits}, -1")
    for truth in p.whole:
        all_ = fn.emit_new(f"and i1 {all_}, {truth}")
    return all_


# --- dwords of a table --------------------------------------------------------------------------


def _from_table(p: Pack, table: gathers.Table, base: Val) -> Val:
    """Dwords by indices of 32 bits (`gathers`)."""
    d, outer = p.c.d, p.outer
    if table.factor is not None:
        p.inside.append(d.splat(d.eq(table.factor, const(4, 32))).ref)
    ok, below, span = gathers.limits(outer, base, *places.arena(outer), up=table.offset)
    # Of 2**32 dwords the last one is left to the careful form.
    outer.module.declare("i32 @llvm.umin.i32(i32, i32)")
    least = outer.fn.emit(f"call i32 @llvm.umin.i32(i32 {span.ref}, i32 {literal(-2, 32)})")
    count = outer.d.add(Val(least, 32, False), const(1, 32))
    count = outer.d.select(ok, count, const(0, 32))
    start = outer.fn.emit(f"inttoptr i64 {base.ref} to ptr")
    column = p.columns.get(table.index.ref)
    if column is None:
        return places.word(_by_lane(p, start, below, count, table.index), 32)
    number, which = column
    key = number, start, count.ref
    made = p.tables.get(key)
    if made is None:
        made = p.tables[key] = _Table(p, p.turned[number], start, below, count)
    return made.take(which)


def _by_lane(p: Pack, start: str, below: Val, count: Val, index: Val) -> str:
    c = p.c
    inside = c.d.ult(c.d.add(index, below), count).ref
    p.inside.append(inside)
    where = c.fn.emit_new(f"getelementptr i32, ptr {start}, {V32} {index.ref}")
    return places.gather(c, where, inside, 32)


class _Table:
    """What a table has for the dwords of rows.

    If all of the rows' dwords turn out to be indices of it, it is gathered from for whole rows, and
    what comes is turned; otherwise for each column alone.  Which it is is known at the pack's end,
    and put in where the first of them is loaded.
    """

    def __init__(self, p: Pack, of: Turned, start: str, below: Val, count: Val) -> None:
        self.p, self.of, self.start, self.below, self.count = p, of, start, below, count
        self.at = len(p.fn.lines)
        self.names = [p.fn.name() for _ in of.vectors]
        self.halves = rows.halves(len(of.columns), self.names)
        self.taken = set[int]()  # columns

    def take(self, column: int) -> Val:
        self.taken.add(column)
        return self.halves[column].take(self.p.fn)

    def emit(self) -> None:
        with self.p.fn.earlier(self.at):
            if len(self.taken) == len(self.of.columns):
                self._rows()
            else:
                self._columns()

    def _rows(self) -> None:
        p, fn, v = self.p, self.p.fn, rows.V512
        below, count = (p.c.d.splat(a).ref for a in (self.below, self.count))
        below, count = (
            fn.emit(f"shufflevector {V32} {a}, {V32} poison, <16 x i32> zeroinitializer")
            for a in (below, count)
        )
        found: list[str] = []
        whole = ""
        for indices in self.of.vectors:
            moved = fn.emit_new(f"add {v} {indices}, {below}")
            inside = fn.emit_new(f"icmp ult {v} {moved}, {count}")
            where = fn.emit_new(f"getelementptr i32, ptr {self.start}, {v} {indices}")
            found.append(places.gather(p.c, where, inside, 32, 16))
            whole = fn.emit_new(f"and <16 x i1> {whole}, {inside}") if whole else inside
        bits = fn.emit_new(f"bitcast <16 x i1> {whole} to i16")
        rows.turned(fn, found, self.names)
        p.whole.append(fn.emit_new(f"icmp eq i16 {bits}, -1"))

    def _columns(self) -> None:
        fn = self.p.fn
        for name, both in zip(self.names, rows.columns(len(self.of.columns)), strict=True):
            low, high = (self._column(n) if n in self.taken else "poison" for n in both)
            rows.joined(fn, low, high, name)

    def _column(self, column: int) -> str:
        index = self.of.columns[column].take(self.p.fn)
        return _by_lane(self.p, self.start, self.below, self.count, index)


# --- dwords by addresses ------------------------------------------------------------------------


class _Lanes:
    """The lanes' dwords by one vector of addresses, of which one check is enough."""

    def __init__(self, p: Pack, at: Val, span: Span) -> None:
        self.p, self.at, self.span = p, at, span
        self.lanes = places.inside(p.c, at, span.dwords, *places.arena(p.outer))
        p.inside.append(self.lanes.ref)

    def gather(self, group: Group) -> Val:
        return places.word(self._gathered(group, 32), 32)

    def _gathered(self, group: Group, width: int) -> str:
        c = self.p.c
        at = c.d.add(self.at, places.offset(group.low - self.span.low))
        where = c.fn.emit(f"inttoptr {V64} {at.ref} to <{LANES} x ptr>")
        return places.gather(c, where, self.lanes.ref, width)

    def load(self, group: Group) -> list[rows.Half]:
        """Two dwords side by side, gathered as 64 bits, or rows."""
        if len(group.places) == 2:
            both = _sorted(self.p, self._gathered(group, 64))
            return [rows.Half(both, upper=False), rows.Half(both, upper=True)]
        return _rows(self.p, group, self._pointers(), group.offset)

    def _pointers(self) -> list[str]:
        """The lanes' addresses; for lanes outside some that can be read.  The host forwards no more
        than 32 bytes of a store."""
        p, fn, d = self.p, self.p.fn, self.p.c.d
        zeros = places.zeros(p.outer)
        there = Val(p.outer.fn.emit(f"ptrtoint ptr {zeros} to i64"), 64, False)
        at = d.select(self.lanes, self.at, there)
        place = p.outer.fn.buffer("pack.at", 64)
        for half in (0, 4):
            index = ", ".join(f"i32 {half + lane}" for lane in range(4))
            part = fn.emit_new(f"shufflevector {V64} {at.ref}, {V64} poison, <4 x i32> <{index}>")
            to = fn.emit(f"getelementptr i8, ptr {place}, i64 {8 * half}")
            fn.do(f"store volatile <4 x i64> {part}, ptr {to}, align 32")
        out: list[str] = []
        for lane in range(LANES):
            of = p.outer.fn.emit(f"getelementptr i8, ptr {place}, i64 {8 * lane}")
            out.append(fn.emit_new(f"load volatile ptr, ptr {of}, align 8"))
        return out


def _rows(
    p: Pack, group: Group, pointers: Sequence[str], offset: int, ahead: str | None = None
) -> list[rows.Half]:
    """The dwords of rows, by column, so many bytes from ``pointers``.  ``ahead``: where
    the next wave's rows are expected."""
    dwords = len(group.places)
    vectors = rows.load(p.fn, pointers, dwords, offset)
    rows.wait(p.fn, vectors)
    if ahead is not None:
        rows.prefetch(p.fn, ahead, p.first, p.shared.lines)
    columns = rows.halves(dwords, rows.turned(p.fn, vectors))
    p.turned[group.places[0]] = Turned(vectors, columns)
    return columns


class Rows:
    """Rows whose addresses the wave has: they are put into memory and checked once for all packs,
    which take them by the lane's number.  What tables' indices are multiplied by is checked with
    them, where the wave has that, too."""

    def __init__(self, part: tuple[int, int]) -> None:
        self.places: dict[int, str] = {}  # of the addresses, by the span's number
        # Of spans that no pack has loaded yet: where the next wave's rows may be, of which this run
        # reads its part ahead.
        self.ahead: dict[int, str] = {}
        self.part = part
        self.lines = _LINES.get(part[1], 4)  # a pack
        self._extents: dict[tuple[int, int], Val] = {}  # by the spans' lowest offsets, and dwords
        self.supposed = self.numbered = False
        self._sure = ""

    def place(self, p: Pack, inst: Inst, span: Span) -> str | None:
        """Where the addresses of a span's rows are; None if the pack itself has them."""
        known = self.places.get(span.number)
        if known is not None or p.slow:
            return known
        if not p.state.passes(read_and_written(inst)[0], effects(inst).read_bits):
            return None
        c, d, fn = p.outer, p.outer.d, p.outer.fn
        _, addr, saddr = inst.args
        a = memory.vector_address(c, inst, addr, saddr, "g")
        # The instruction's own offset, and the span's, are added by the host's loads.
        at = replace(a, base=d.add(a.base, places.offset(-inst.imm))).full(c)
        base, size = places.arena(c)
        self.require(
            c, places.inside(c, at, span.dwords, d.sub(base, places.offset(span.low)), size)
        )
        place = self.places[span.number] = fn.buffer(f"pack.rows{len(self.places)}", 8 * 33)
        for first in range(0, 32, 4):
            places.store(fn, at.type, at.ref, "i64", range(first, first + 4), place)
        start = places.first(c, place)
        # Rows that are alike are expected to be as far from the next wave's.
        extent = self._extents.get((span.low, span.dwords))
        if extent is None:
            extent = places.extent(c, place, span, start)
            self._extents[span.low, span.dwords] = extent
        number, of = self.part
        part = d.lshr(d.mul(extent, const(256 * number // of, 64)), const(8, 64))
        low = d.add(start, places.offset(span.low))
        self.ahead[span.number] = d.add(d.add(low, extent), part).ref
        return place

    def require(self, c: Context, lanes: Val) -> None:
        """Rows, and tables, are as the fast form has them only if these active lanes are right."""
        d, exec_ = c.d, c.state.exec_mask()
        good = c.state.every_active(lanes).ref
        if not self._sure:  # a wave without an active lane has no addresses
            self._sure = d.not_(is_zero(d, exec_)).ref
        self._sure = c.fn.emit(f"and i1 {self._sure}, {good}")

    def suppose(self, c: Context, forms: tuple[Pack, Pack], register: int) -> None:
        """A factor of tables' indices is 4 in the fast form."""
        given = c.state.read_v(register)
        if not given.vec or given.const is not None:
            return
        self.supposed = True
        fast, slow = forms
        self.require(c, c.d.eq(given, const(4, 32)))
        fast.state.vectors[register] = const(4, 32)
        slow.state.vectors[register] = careful.ordered(slow.fn, given, self.lanes(slow))

    def finish(self, fn: Function, order: tuple[str, str]) -> str:
        """Stores the lanes in order, of two vectors; whether all rows are inside, "" if there are
        none."""
        if self.places or self.supposed:
            for n, half in enumerate(order):
                for first in (0, 8):
                    place = fn.emit(f"getelementptr i8, ptr {places.order(fn)}, i64 {64 * n}")
                    places.store(fn, rows.V512, half, "i32", range(first, first + 8), place)
        return self._sure

    def lanes(self, p: Pack) -> str:
        """Where the numbers of the pack's lanes are."""
        first = p.fn.emit(f"zext i32 {p.first} to i64")
        return p.fn.emit(f"getelementptr i32, ptr {places.order(p.outer.fn)}, i64 {first}")

    def pointers(self, p: Pack, place: str) -> list[str]:
        """Of a span's rows, by the pack's lane."""
        fn = p.fn
        out: list[str] = []
        for lane in range(LANES):
            if p.numbered:  # by now it is in memory; the first span need not wait for that
                at = fn.emit(f"getelementptr i32, ptr {self.lanes(p)}, i64 {lane}")
                number = fn.emit_new(f"load i32, ptr {at}, align 4")
                number = fn.emit_new(f"zext i32 {number} to i64")
            else:
                number = p.number(lane)
            at = fn.emit_new(f"getelementptr ptr, ptr {place}, i64 {number}")
            out.append(fn.emit_new(f"load ptr, ptr {at}, align 8"))
        p.numbered = self.numbered = True
        return out

    def numbers(self, p: Pack, exec_: str, before: str, after: str) -> list[str]:
        """The numbers of a pack's lanes, for the loop's head: those of the lowest bits of EXEC that
        the packs before it have left, and 32 where there are no more."""
        if not self.numbered:
            return []
        stem = p.stem
        p.outer.module.declare("i32 @llvm.cttz.i32(i32, i1)")
        lines = [f"  {stem}.m0 = phi i32 [ {exec_}, %{before} ], [ {stem}.m{LANES}, %{after} ]"]
        for n in range(LANES):
            lines += [
                f"  {stem}.z{n} = call i32 @llvm.cttz.i32(i32 {stem}.m{n}, i1 false)",
                f"  {p.number(n)} = zext i32 {stem}.z{n} to i64",
                f"  {stem}.d{n} = add i32 {stem}.m{n}, -1",
                f"  {stem}.m{n + 1} = and i32 {stem}.m{n}, {stem}.d{n}",
            ]
        return lines


def _sorted(p: Pack, pairs: str) -> str:
    """The lower dwords, then the upper ones.  LLVM would truncate twice, which takes four on the
    shuffle port instead of two; so it is not told which dwords the vector of numbers names."""
    fn = p.c.fn
    both, permute = rows.V512, "@llvm.x86.avx512.permvar.si.512"
    fn.module.declare(f"{both} {permute}({both}, {both})")
    flat = fn.emit_new(f"bitcast {V64} {pairs} to {both}")
    return fn.emit_new(f"call {both} {permute}({both} {flat}, {both} {p.sort})")


__all__ = ["Pack", "Rows", "finish", "load"]
