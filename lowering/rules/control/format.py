"""The bytes of printf's format and of its strings, which each lane reads at its own pace.

A string follows its conversion: the host, which reads the copy, finds it there.  Both must read a
format alike (``formatted`` in native/cuda/hostcall.cpp): '%' and flags and lengths and a letter.  A
conversion that is not known consumes no argument, except for each '*' of its width.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.abi.hostcalls import ARGUMENTS
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.control.blocks import plus
from sassxlate.lowering.target import EXEC, VCC, ZERO

LONGEST = 65535  # bytes copied of a string; a precision may say less
# As measured on an H200: z, t, j, L and a precision of '*' are not known to its printer.
FLAGS, LENGTHS = "-+ #0123456789.*", "hljztL"
INTEGERS, DOUBLES, LETTERS = "diuoxX", "eEfFgGaA", "diuoxXeEfFgGaApsc"


class State(IntEnum):
    """Where a lane is: in text, just after a '%', in flags, in lengths, in a string, at the end."""

    TEXT = 0
    FIRST = 1
    FLAGS = 2
    LENGTHS = 3
    STRING = 4
    END = 5


@dataclass(frozen=True, slots=True)
class Walk:
    """The registers of a walk over a format.  After it: the bytes of the texts, the bytes of
    arguments that they use, and the number of conversions."""

    length: V
    used: V
    count: V
    at: V  # of the next byte; 64 bits
    form: V  # where the format goes on after a string; 64 bits
    byte: V
    last: V
    state: V
    wide: V
    known: V
    dotted: V
    precision: V
    left: V  # bytes that a string may still have


def registers(c: RuleEmitter, count: V) -> Walk:
    length, used = c.vtemp(), c.vtemp()
    pairs = [c.vtemp(2) for _ in range(2)]
    return Walk(length, used, count, *pairs, *(c.vtemp() for _ in range(8)))


@contextmanager
def _only(c: RuleEmitter, mask: S, stem: str = "Lonly") -> Generator[None]:
    """What is emitted inside is for the lanes of ``mask``."""
    with c.scope():
        here, end = c.stemp(), c.k.label(stem)
        c.raw(Inst("s_mov_b32", (here, EXEC)))
        c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
        c.branch("s_cbranch_execz", end)
        yield
        c.mark(end)
        c.raw(Inst("s_mov_b32", (EXEC, here)))


@contextmanager
def _instead(c: RuleEmitter, mask: S, rest: str) -> Generator[None]:
    """As ``_only``; what comes after it is for the other lanes, ``rest`` where there is none."""
    with c.scope():
        others = c.stemp()
        c.raw(Inst("s_and_not1_b32", (others, EXEC, mask)))
        with _only(c, mask):
            yield
        c.raw(Inst("s_and_b32", (EXEC, EXEC, others)))
    c.branch("s_cbranch_execz", rest)


def _equal(c: RuleEmitter, value: V, number: int) -> S:
    mask = c.stemp()
    c.emit("v_cmp_eq_u32", mask, I(number), value)
    return mask


def _among(c: RuleEmitter, byte: V, characters: str) -> S:
    """The lanes whose byte is one of these characters: a bit of a word per 32 of them."""
    mask = c.stemp()
    with c.scope():
        word, group = c.vtemp(), c.vtemp()
        c.emit("v_mov_b32", word, ZERO)
        c.emit("v_lshrrev_b32", group, I(5), byte)
        for number in sorted({ord(x) >> 5 for x in characters}):
            bits = sum(1 << (ord(x) & 31) for x in characters if ord(x) >> 5 == number)
            c.emit("v_cmp_eq_u32", mask, I(number), group)
            c.emit("v_cndmask_b32", word, word, c.to_v(I(bits)), mask)
        c.emit("v_lshrrev_b32", word, byte, word)
        c.emit("v_and_b32", word, I(1), word)
        c.emit("v_cmp_ne_u32", mask, ZERO, word)
    return mask


def _move(c: RuleEmitter, target: V, value: V) -> None:
    for i in range(target.n):
        c.emit("v_mov_b32", V(target.index + i), V(value.index + i))


def walk(c: RuleEmitter, w: Walk, form: V, arguments: V, store: Callable[[], None]) -> None:
    """Reads a format, not null, to its end; ``store`` emits what happens to
    ``w.byte``, the byte number ``w.length``."""
    again, next_ = c.k.label("Lformat"), c.k.label("Lformat_next")
    for word in (w.length, w.used, w.count, w.state, w.left, w.wide, w.dotted, w.precision, w.last):
        c.emit("v_mov_b32", word, ZERO)
    c.emit("v_mov_b32", w.known, I(1))
    _move(c, w.at, form)
    _move(c, w.form, form)
    with c.scope():
        walking, begun = c.stemp(), c.stemp()
        c.raw(Inst("s_mov_b32", (begun, EXEC)))
        c.mark(again)
        c.raw(Inst("s_mov_b32", (walking, EXEC)))
        _read(c, w)
        store()
        c.emit("v_add_nc_u32", w.length, I(1), w.length)
        _meaning(c, w, arguments, next_)
        c.mark(next_)
        c.raw(Inst("s_mov_b32", (EXEC, walking)))
        with c.scope():
            more = c.stemp()
            c.emit("v_cmp_ne_u32", more, I(State.END), w.state)
            c.raw(Inst("s_and_b32", (EXEC, EXEC, more)))
        c.branch("s_cbranch_execnz", again)
        c.raw(Inst("s_mov_b32", (EXEC, begun)))


def _read(c: RuleEmitter, w: Walk) -> None:
    """The next byte.  A string of which enough is read ends, whatever comes there."""
    with c.scope():
        reads, inside = c.stemp(), _equal(c, w.state, State.STRING)
        c.emit("v_cmp_ne_u32", reads, ZERO, w.left)
        c.raw(Inst("s_not_b32", (inside, inside)))
        c.raw(Inst("s_or_b32", (reads, reads, inside)))
        c.emit("v_mov_b32", w.byte, ZERO)
        with _only(c, reads):
            c.raw(Inst("flat_load_u8", (w.byte, w.at)))
        c.emit("v_add_nc_u32", w.left, I(0xFFFFFFFF), w.left)
        c.emit("v_add_co_u32", V(w.at.index), VCC, I(1), V(w.at.index))
        c.emit("v_add_co_ci_u32", V(w.at.index + 1), VCC, ZERO, V(w.at.index + 1), VCC)


def _meaning(c: RuleEmitter, w: Walk, arguments: V, end: str) -> None:
    """What the byte changes; lanes that are done with it leave EXEC."""
    with c.scope():  # most bytes are text, or of strings
        text, other = _equal(c, w.state, State.TEXT), c.stemp()
        c.emit("v_cmp_ne_u32", other, I(ord("%")), w.byte)
        c.raw(Inst("s_and_b32", (text, text, other)))
        inside = _equal(c, w.state, State.STRING)
        c.raw(Inst("s_or_b32", (text, text, inside)))
        c.emit("v_cmp_ne_u32", other, ZERO, w.byte)
        c.raw(Inst("s_and_b32", (text, text, other)))
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, text)))
    c.branch("s_cbranch_execz", end)
    with c.scope(), _instead(c, _equal(c, w.state, State.STRING), end):
        c.emit("v_mov_b32", w.state, I(State.TEXT))
        _move(c, w.at, w.form)
    with c.scope(), _instead(c, _equal(c, w.byte, 0), end):
        c.emit("v_mov_b32", w.state, I(State.END))
    with c.scope(), _instead(c, _equal(c, w.state, State.TEXT), end):
        c.emit("v_mov_b32", w.state, I(State.FIRST))
        for word, value in ((w.wide, 0), (w.dotted, 0), (w.known, 1), (w.precision, LONGEST)):
            c.emit("v_mov_b32", word, I(value))
        c.emit("v_mov_b32", w.last, ZERO)
    with c.scope():
        twice, percent = _equal(c, w.state, State.FIRST), _equal(c, w.byte, ord("%"))
        c.raw(Inst("s_and_b32", (twice, twice, percent)))
        with _instead(c, twice, end):
            c.emit("v_mov_b32", w.state, I(State.TEXT))
    with c.scope():
        flag, early = _among(c, w.byte, FLAGS), c.stemp()
        c.emit("v_cmp_gt_u32", early, I(State.LENGTHS), w.state)
        c.raw(Inst("s_and_b32", (flag, flag, early)))
        with _instead(c, flag, end):
            _flag(c, w)
    with c.scope(), _instead(c, _among(c, w.byte, LENGTHS), end):
        c.emit("v_mov_b32", w.state, I(State.LENGTHS))
        for word, characters, value in ((w.wide, "l", 1), (w.known, "jztL", 0)):
            with c.scope(), _only(c, _among(c, w.byte, characters)):
                c.emit("v_mov_b32", word, I(value))
    c.emit("v_mov_b32", w.state, I(State.TEXT))
    with c.scope():
        valid = _among(c, w.byte, LETTERS)
        known = _equal(c, w.known, 1)
        c.raw(Inst("s_and_b32", (valid, valid, known)))
        with _only(c, valid):
            _conversion(c, w, arguments)


def _flag(c: RuleEmitter, w: Walk) -> None:
    c.emit("v_mov_b32", w.state, I(State.FLAGS))
    with c.scope(), _only(c, _equal(c, w.byte, ord("*"))), c.scope():
        after, unknown = _equal(c, w.last, ord(".")), c.vtemp()
        c.emit("v_mov_b32", unknown, ZERO)
        c.emit("v_cndmask_b32", w.known, w.known, unknown, after)
        c.raw(Inst("s_not_b32", (after, after)))
        with _only(c, after):
            _align(c, w, 4)
            c.emit("v_add_nc_u32", w.used, I(4), w.used)
    with c.scope(), _only(c, _equal(c, w.byte, ord("."))):
        c.emit("v_mov_b32", w.dotted, I(1))
        c.emit("v_mov_b32", w.precision, ZERO)
    with c.scope():
        digit, dotted = _among(c, w.byte, "0123456789"), _equal(c, w.dotted, 1)
        c.raw(Inst("s_and_b32", (digit, digit, dotted)))
        with _only(c, digit):
            c.emit("v_mul_lo_u32", w.precision, w.precision, I(10))
            c.emit("v_add_nc_u32", w.precision, w.precision, w.byte)
            c.emit("v_add_nc_u32", w.precision, I(-ord("0") & 0xFFFFFFFF), w.precision)
            c.emit("v_min_u32", w.precision, I(LONGEST), w.precision)
    c.emit("v_mov_b32", w.last, w.byte)


def _align(c: RuleEmitter, w: Walk, size: int) -> None:
    c.emit("v_add_nc_u32", w.used, I(size - 1), w.used)
    c.emit("v_and_b32", w.used, I(-size & 0xFFFFFFFF), w.used)


def _conversion(c: RuleEmitter, w: Walk, arguments: V) -> None:
    """Counts the argument; a string that is not null is read next."""
    c.emit("v_add_nc_u32", w.count, I(1), w.count)
    with c.scope():
        eight, integer, wide = (
            _among(c, w.byte, DOUBLES + "ps"),
            _among(c, w.byte, INTEGERS),
            _equal(c, w.wide, 1),
        )
        c.raw(Inst("s_and_b32", (integer, integer, wide)))
        c.raw(Inst("s_or_b32", (eight, eight, integer)))
        with _only(c, eight):
            _align(c, w, 8)
            c.emit("v_add_nc_u32", w.used, I(4), w.used)
        _align(c, w, 4)
        c.emit("v_add_nc_u32", w.used, I(4), w.used)
    with c.scope():
        string, given = _equal(c, w.byte, ord("s")), c.stemp()
        pointer = c.to_vgpr(ZERO, 2)
        c.emit("v_cmp_ne_u64", given, arguments, pointer)
        c.raw(Inst("s_and_b32", (string, string, given)))
        c.emit("v_cmp_ge_u32", given, I(ARGUMENTS), w.used)
        c.raw(Inst("s_and_b32", (string, string, given)))
        with _only(c, string):
            with c.scope():
                offset = c.vtemp()
                c.emit("v_add_nc_u32", offset, I(-8 & 0xFFFFFFFF), w.used)
                place = plus(c, arguments, offset)
                c.raw(Inst("flat_load_b64", (pointer, place)))
            c.emit("v_cmp_ne_u64", given, pointer, c.to_vgpr(ZERO, 2))
            with _only(c, given):
                _move(c, w.form, w.at)
                _move(c, w.at, pointer)
                c.emit("v_mov_b32", w.left, w.precision)
                c.emit("v_mov_b32", w.state, I(State.STRING))
