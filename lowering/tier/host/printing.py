"""The driver's vprintf as a function of the kernel's module: a record with the arguments, the
format and its strings.

It reads a format as the rules' code does (`lowering/rules/control/format.py`), twice: the first
time for the record's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.domain.interface import umin
from sassxlate.lowering.abi.hostcalls import ARGUMENTS
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.rules.control.format import (
    DOUBLES,
    FLAGS,
    INTEGERS,
    LENGTHS,
    LETTERS,
    LONGEST,
    State,
)
from sassxlate.lowering.rules.control.printing import UNIT
from sassxlate.lowering.tier import functions
from sassxlate.lowering.tier.host.records import address, in_ring, publish, reserved, wide
from sassxlate.lowering.tier.lane import Lane

_WORDS = (
    "length", "used", "count", "state", "left", "wide", "known", "dotted", "precision", "last",
    "byte", "room", "start", "second", "place",
)  # fmt: skip
_ADDRESSES = ("at", "form", "record")


def printf(lane: Lane) -> None:
    """The call: R4 becomes the number of conversions, -1 without a format."""
    given = [*lane.words("Ra", 2), *(lane.reg("R", n) for n in (4, 5, 6, 7))]
    count, *_ = functions.call(lane, "vprintf", given, _body)
    lane.write(RegRef("R", 4), count)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The function's variables, and its arguments."""

    lane: Lane
    queue: Val
    form: Val
    arguments: Val

    @classmethod
    def begun(cls, lane: Lane, given: Sequence[Val]) -> _Walk:
        for names, width in ((_WORDS, 32), (_ADDRESSES, 64)):
            for name in names:
                lane.fn.entry.append(f"  %{name} = alloca i{width}, align 8, addrspace(5)")
        queue, form, arguments = (wide(lane, *given[n : n + 2]) for n in (0, 2, 4))
        return cls(lane, queue, form, arguments)

    def get(self, name: str) -> Val:
        width = 64 if name in _ADDRESSES else 32
        ref = self.lane.fn.emit_new(f"load i{width}, ptr addrspace(5) %{name}, align 4")
        return Val(ref, width, False)

    def put(self, name: str, value: Val | int) -> None:
        width = 64 if name in _ADDRESSES else 32
        ref = const(value, width).ref if isinstance(value, int) else value.ref
        self.lane.fn.do(f"store i{width} {ref}, ptr addrspace(5) %{name}, align 4")

    def more(self, name: str, by: int) -> None:
        old = self.get(name)
        self.put(name, self.lane.d.add(old, const(by, old.width)))

    def is_(self, name: str, value: int) -> Val:
        old = self.get(name)
        return self.lane.d.eq(old, const(value, old.width))

    def byte(self, characters: str) -> Val:
        """Whether the byte is one of some characters: a bit of a word for 32 of them."""
        d, byte = self.lane.d, self.get("byte")
        group, word = d.lshr(byte, const(5, 32)), const(0, 32)
        for number in sorted({ord(x) >> 5 for x in characters}):
            bits = sum(1 << (ord(x) & 31) for x in characters if ord(x) >> 5 == number)
            word = d.select(d.eq(group, const(number, 32)), const(bits, 32), word)
        return d.extract(d.lshr(word, d.and_(byte, const(31, 32))), 0, 1)

    def choose(self, of: Val, then: str, otherwise: str) -> None:
        """Goes to one of two labels."""
        self.lane.fn.do(f"br i1 {of.ref}, label %{then}, label %{otherwise}")

    def align(self, size: int) -> None:
        d = self.lane.d
        up = d.add(self.get("used"), const(size - 1, 32))
        self.put("used", d.and_(up, const(-size & 0xFFFFFFFF, 32)))


def _body(lane: Lane, given: Sequence[Val]) -> Sequence[Val]:
    fn, d = lane.fn, lane.d
    w = _Walk.begun(lane, given)
    some, again, begin, whole, recorded, done = (
        fn.fresh(s) for s in ("format", "pass", "begin", "whole", "record", "printed")
    )
    for name in ("start", "room", "second"):
        w.put(name, 0)
    w.put("record", 0)
    w.put("count", 0xFFFFFFFF)
    w.choose(d.eq(w.form, const(0, 64)), done, some)
    fn.label(some)
    lane.branch(again)
    fn.label(again)
    _walk(w)
    w.choose(w.is_("second", 0), begin, whole)
    fn.label(begin)
    w.put("second", 1)
    w.put("room", w.get("length"))
    _begin(w)
    w.choose(w.is_("record", 0), done, recorded)
    fn.label(recorded)
    lane.branch(again)
    fn.label(whole)
    publish(lane, w.get("record"), "vprintf")
    lane.branch(done)
    fn.label(done)
    return [w.get("count")]


def _begin(w: _Walk) -> None:
    """A record's head and arguments; then ``start`` is where its text begins.  ``record`` stays 0
    without room."""
    lane, d = w.lane, w.lane.d
    used = d.and_(d.add(w.get("used"), const(7, 32)), const(-8 & 0xFFFFFFFF, 32))
    packed = umin(d, used, const(ARGUMENTS, 32))
    size = d.add(d.add(packed, w.get("length")), const(2 * UNIT - 1, 32))
    size = d.and_(size, const(-UNIT & 0xFFFFFFFF, 32))

    def head(was: Val) -> None:
        place = d.extract(was, 0, 32)
        at = in_ring(lane, w.queue, place)
        w.put("record", at)
        for offset, word in ((4, packed), (8, size)):
            pointer = address(lane, at, offset)
            lane.fn.do(f"store i32 {word.ref}, ptr addrspace(1) {pointer}, align 4")
        w.put("start", d.add(place, const(UNIT, 32)))
        _copy_arguments(w, packed)

    reserved(lane, w.queue, d.zext(size, 64), head)


def _copy_arguments(w: _Walk, packed: Val) -> None:
    """``packed`` bytes to ``start``, which moves on; zeros if there are none."""
    lane, fn, d = w.lane, w.lane.fn, w.lane.d
    again, copy, end = (fn.fresh(s) for s in ("argument", "copy", "copied"))
    given = d.not_(d.eq(w.arguments, const(0, 64)))
    w.put("place", 0)
    lane.branch(again)
    fn.label(again)
    w.choose(d.ult(w.get("place"), packed), copy, end)
    fn.label(copy)
    to = address(lane, in_ring(lane, w.queue, w.get("start")))
    fn.do(f"store i64 0, ptr addrspace(1) {to}, align 8")

    def copied() -> None:
        source = address(lane, d.add(w.arguments, d.zext(w.get("place"), 64)), space=0)
        word = fn.emit_new(f"load i64, ptr {source}, align 8")
        fn.do(f"store i64 {word}, ptr addrspace(1) {to}, align 8")

    lane.under(given, copied)
    w.more("start", 8)
    w.more("place", 8)
    lane.branch(again)
    fn.label(end)


def _walk(w: _Walk) -> None:
    """Reads the format to its end; in the second pass its bytes are stored."""
    lane, fn, d = w.lane, w.lane.fn, w.lane.d
    again, next_, end = (fn.fresh(s) for s in ("byte", "next", "end"))
    for name in ("length", "used", "count", "state", "left", "wide", "dotted", "precision", "last"):
        w.put(name, 0)
    w.put("known", 1)
    for name in ("at", "form"):
        w.put(name, w.form)
    lane.branch(again)
    fn.label(again)
    _read(w)
    lane.under(d.ult(w.get("length"), w.get("room")), lambda: _store(w))
    w.more("length", 1)
    _meaning(w, next_)
    fn.label(next_)
    w.choose(w.is_("state", State.END), end, again)
    fn.label(end)


def _read(w: _Walk) -> None:
    """The next byte.  A string of which enough is read ends, whatever comes there."""
    d = w.lane.d

    def loaded() -> None:
        pointer = address(w.lane, w.get("at"), space=0)
        byte = Val(w.lane.fn.emit_new(f"load i8, ptr {pointer}, align 1"), 8, False)
        w.put("byte", d.zext(byte, 32))

    w.put("byte", 0)
    ended = d.and_(w.is_("state", State.STRING), w.is_("left", 0))
    w.lane.under(d.not_(ended), loaded)
    w.more("left", -1)
    w.more("at", 1)


def _store(w: _Walk) -> None:
    """The byte number ``length`` of the text."""
    lane = w.lane
    place = lane.d.add(w.get("start"), w.get("length"))
    to = address(lane, in_ring(lane, w.queue, place))
    byte = lane.d.extract(w.get("byte"), 0, 8)
    lane.fn.do(f"store i8 {byte.ref}, ptr addrspace(1) {to}, align 1")


def _meaning(w: _Walk, end: str) -> None:
    """What the byte changes; then control goes to ``end``."""
    fn, d = w.lane.fn, w.lane.d
    zero = w.is_("byte", 0)
    plain = d.and_(w.is_("state", State.TEXT), d.not_(w.is_("byte", ord("%"))))
    plain = d.or_(plain, w.is_("state", State.STRING))

    def instead(of: Val, stem: str) -> tuple[str, str]:
        then, otherwise = fn.fresh(stem), fn.fresh("other")
        w.choose(of, then, otherwise)
        fn.label(then)
        return end, otherwise

    def on(labels: tuple[str, str]) -> None:
        w.lane.branch(labels[0])
        fn.label(labels[1])

    on(instead(d.and_(plain, d.not_(zero)), "text"))
    labels = instead(w.is_("state", State.STRING), "string")
    w.put("state", State.TEXT)
    w.put("at", w.get("form"))
    on(labels)
    labels = instead(zero, "end")
    w.put("state", State.END)
    on(labels)
    labels = instead(w.is_("state", State.TEXT), "percent")
    for name, value in (("state", State.FIRST), ("wide", 0), ("dotted", 0), ("known", 1),
                        ("precision", LONGEST), ("last", 0)):  # fmt: skip
        w.put(name, value)
    on(labels)
    twice = d.and_(w.is_("state", State.FIRST), w.is_("byte", ord("%")))
    labels = instead(twice, "twice")
    w.put("state", State.TEXT)
    on(labels)
    early = d.ult(w.get("state"), const(State.LENGTHS, 32))
    labels = instead(d.and_(w.byte(FLAGS), early), "flag")
    _flag(w)
    on(labels)
    labels = instead(w.byte(LENGTHS), "length")
    w.put("state", State.LENGTHS)
    w.lane.under(w.byte("l"), lambda: w.put("wide", 1))
    w.lane.under(w.byte("jztL"), lambda: w.put("known", 0))
    on(labels)
    w.put("state", State.TEXT)
    valid = d.and_(w.byte(LETTERS), w.is_("known", 1))
    w.lane.under(valid, lambda: _conversion(w))
    w.lane.branch(end)


def _flag(w: _Walk) -> None:
    d, under = w.lane.d, w.lane.under
    w.put("state", State.FLAGS)
    star, after = w.is_("byte", ord("*")), w.is_("last", ord("."))

    def argument() -> None:
        w.align(4)
        w.more("used", 4)

    def point() -> None:
        w.put("dotted", 1)
        w.put("precision", 0)

    def digit() -> None:
        tens = d.mul(w.get("precision"), const(10, 32))
        value = d.sub(d.add(tens, w.get("byte")), const(ord("0"), 32))
        w.put("precision", umin(d, value, const(LONGEST, 32)))

    under(d.and_(star, after), lambda: w.put("known", 0))
    under(d.and_(star, d.not_(after)), argument)
    under(w.is_("byte", ord(".")), point)
    under(d.and_(w.byte("0123456789"), w.is_("dotted", 1)), digit)
    w.put("last", w.get("byte"))


def _conversion(w: _Walk) -> None:
    """Counts the argument; a string that is not null is read next."""
    d, under = w.lane.d, w.lane.under
    w.more("count", 1)
    eight = d.or_(w.byte(DOUBLES + "ps"), d.and_(w.byte(INTEGERS), w.is_("wide", 1)))

    def widened() -> None:
        w.align(8)
        w.more("used", 4)

    under(eight, widened)
    w.align(4)
    w.more("used", 4)
    given = d.and_(w.is_("byte", ord("s")), d.not_(d.eq(w.arguments, const(0, 64))))
    beyond = d.ult(const(ARGUMENTS, 32), w.get("used"))

    def string() -> None:
        at = d.sub(d.add(w.arguments, d.zext(w.get("used"), 64)), const(8, 64))
        ref = w.lane.fn.emit_new(f"load i64, ptr {address(w.lane, at, space=0)}, align 8")
        pointer = Val(ref, 64, False)
        under(d.not_(d.eq(pointer, const(0, 64))), lambda: into(pointer))

    def into(pointer: Val) -> None:
        w.put("form", w.get("at"))
        w.put("at", pointer)
        w.put("left", w.get("precision"))
        w.put("state", State.STRING)

    under(d.and_(given, d.not_(beyond)), string)


__all__ = ["printf"]
