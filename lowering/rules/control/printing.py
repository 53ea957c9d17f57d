"""printf and assert of kernels: records in a queue that the host empties.

The memory layout, shared with native/cuda/hostcall.cpp; offsets in bytes:

queue  0 function, 4 calls that found no room, 8 next to write and 16 end, both counted since the
       beginning, 24 the ring's address, 32 its bytes less one (they are a power of two)
record a multiple of 64 bytes in the ring: 0 function once it is whole, else 0
printf 4 bytes of the arguments, 8 of the record; 64 the arguments, a multiple of 8 bytes; then the
       format, with each string where its conversion ends, and its 0
assert 4 line; 8 message; 16 file; 24 function's name; 32 block's and 44 thread's number

A format and its strings are copied by the call, so they may lie in any memory and change after it,
as on an H200.  A first pass counts their bytes, a second one stores them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import I, Inst, V
from sassxlate.lowering.abi.hostcalls import ARGUMENTS, FUNCTIONS
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.control.blocks import add_below, argument, plus, put
from sassxlate.lowering.rules.control.format import Walk, registers, walk
from sassxlate.lowering.rules.memory.memory import wait_all
from sassxlate.lowering.rules.warp.warp import special_value
from sassxlate.lowering.target import EXEC, OFF, ZERO

UNIT = 64  # bytes: a record's head, and what its size is a multiple of
LOST, NEXT, END, RING, MASK = 4, 8, 16, 24, 32  # offsets in the queue
_AXES = "XYZ"


@dataclass(frozen=True, slots=True)
class _Queue:
    """The queue of a call: its block, and what that says of the ring."""

    block: V
    ring: V  # 64 bits
    mask: V


def _queue(c: RuleEmitter, block: V) -> _Queue:
    ring, mask = c.vtemp(2), c.vtemp()
    c.raw(Inst("global_load_b64", (ring, block, OFF), imm=RING))
    c.raw(Inst("global_load_b32", (mask, block, OFF), imm=MASK))
    return _Queue(block, ring, mask)


def _reserve(c: RuleEmitter, q: _Queue, size: V) -> V:
    """Room for a record of ``size`` bytes (64 bits): its offset in the ring (32 bits).

    EXEC becomes the lanes that got it; the others are counted, and their records lost.
    """
    start = c.vtemp()
    with c.scope():
        asked, got, one, found = c.stemp(), c.stemp(), c.vtemp(), c.k.label("Lroom")
        c.raw(Inst("s_mov_b32", (asked, EXEC)))
        place = add_below(c, q.block, NEXT, END, size)
        c.raw(Inst("s_mov_b32", (got, EXEC)))
        c.raw(Inst("s_and_not1_b32", (EXEC, asked, got)))
        c.branch("s_cbranch_execz", found)
        c.emit("v_mov_b32", one, I(1))
        c.raw(Inst("global_atomic_add_u32", (q.block, one, OFF), imm=LOST))
        c.mark(found)
        c.raw(Inst("s_mov_b32", (EXEC, got)))
        c.emit("v_and_b32", start, q.mask, V(place.index))
    return start


def _in_ring(c: RuleEmitter, q: _Queue, offset: V) -> V:
    """The address of an offset in the ring, which may be one round too high."""
    low = c.vtemp()
    c.emit("v_and_b32", low, q.mask, offset)
    return plus(c, q.ring, low)


def _publish(c: RuleEmitter, at: V, name: str) -> None:
    """The record's function number is written last, once all else is visible."""
    wait_all(c)
    with c.scope():
        kind = c.vtemp()
        c.emit("v_mov_b32", kind, I(FUNCTIONS[name].number))
        put(c, at, 0, kind)


def assertfail(c: RuleEmitter, block: V) -> None:
    """The kernel continues; the launch has failed once the host sees the record."""
    save, done, size = c.stemp(), c.k.label("Lrecord"), c.vtemp(2)
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.emit("v_mov_b32", V(size.index), I(UNIT))
    c.emit("v_mov_b32", V(size.index + 1), ZERO)
    queue = _queue(c, block)
    start = _reserve(c, queue, size)
    c.branch("s_cbranch_execz", done)
    at = _in_ring(c, queue, start)
    put(c, at, 4, argument(c, 8))
    for offset, register in ((8, 4), (16, 6), (24, 10)):
        put(c, at, offset, argument(c, register, 2))
    for first, stem in ((32, "SR_CTAID"), (44, "SR_TID")):
        for n, axis in enumerate(_AXES):
            with c.scope():
                put(c, at, first + 4 * n, c.to_v(special_value(c, f"{stem}.{axis}")))
    _publish(c, at, "__assertfail")
    c.mark(done)
    c.raw(Inst("s_mov_b32", (EXEC, save)))


def vprintf(c: RuleEmitter, block: V, form: V, arguments: V, count: V) -> None:
    """``count`` becomes the number of conversions, -1 without a format."""
    text = registers(c, count)
    save, second = c.stemp(), c.stemp()
    again, whole, done = (c.k.label(stem) for stem in ("Lprint", "Lwhole", "Lprinted"))
    # Where the text's bytes go in the ring; there is no room in the first pass.
    start, room, at = c.vtemp(), c.vtemp(), c.vtemp(2)
    for word in (start, room, V(at.index), V(at.index + 1)):
        c.emit("v_mov_b32", word, ZERO)
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.raw(Inst("s_mov_b32", (second, ZERO)))
    c.emit("v_mov_b32", text.count, I(0xFFFFFFFF))
    with c.scope():
        given = c.stemp()
        c.emit("v_cmp_ne_u64", given, form, at)
        c.raw(Inst("s_and_b32", (EXEC, EXEC, given)))
    c.branch("s_cbranch_execz", done)
    queue = _queue(c, block)
    c.mark(again)
    walk(c, text, form, arguments, lambda: _store(c, queue, text, start, room))
    c.raw(Inst("s_cmp_lg_u32", (second, ZERO)))
    c.branch("s_cbranch_scc1", whole)
    c.raw(Inst("s_mov_b32", (second, I(1))))
    c.emit("v_mov_b32", room, text.length)
    _begin(c, queue, text, arguments, start, at)
    c.branch("s_cbranch_execnz", again)
    c.branch("s_branch", done)
    c.mark(whole)
    _publish(c, at, "vprintf")
    c.mark(done)
    c.raw(Inst("s_mov_b32", (EXEC, save)))


def _begin(c: RuleEmitter, q: _Queue, text: Walk, arguments: V, start: V, at: V) -> None:
    """A record's head, at ``at``, and arguments; then ``start`` is where its text begins.

    EXEC becomes the lanes that have a record.
    """
    with c.scope():
        packed, size, none = c.vtemp(), c.vtemp(2), c.k.label("Lfull")
        c.emit("v_add_nc_u32", packed, I(7), text.used)
        c.emit("v_and_b32", packed, I(-8 & 0xFFFFFFFF), packed)
        c.emit("v_min_u32", packed, I(ARGUMENTS), packed)
        low = V(size.index)
        c.emit("v_add_nc_u32", low, packed, text.length)
        c.emit("v_add_nc_u32", low, I(2 * UNIT - 1), low)
        c.emit("v_and_b32", low, I(-UNIT & 0xFFFFFFFF), low)
        c.emit("v_mov_b32", V(size.index + 1), ZERO)
        place = _reserve(c, q, size)
        c.branch("s_cbranch_execz", none)
        head = _in_ring(c, q, place)
        for i in range(2):
            c.emit("v_mov_b32", V(at.index + i), V(head.index + i))
        put(c, at, 4, packed)
        put(c, at, 8, low)
        c.emit("v_add_nc_u32", start, I(UNIT), place)
        _copy_arguments(c, q, arguments, packed, start)
        c.mark(none)


def _store(c: RuleEmitter, q: _Queue, text: Walk, start: V, room: V) -> None:
    """One byte of a text, in the lanes in which there is room for it."""
    with c.scope():
        here, fits, full, offset = c.stemp(), c.stemp(), c.k.label("Lnowhere"), c.vtemp()
        c.raw(Inst("s_mov_b32", (here, EXEC)))
        c.emit("v_cmp_gt_u32", fits, room, text.length)
        c.raw(Inst("s_and_b32", (EXEC, EXEC, fits)))
        c.branch("s_cbranch_execz", full)
        c.emit("v_add_nc_u32", offset, start, text.length)
        c.raw(Inst("global_store_b8", (_in_ring(c, q, offset), text.byte, OFF)))
        c.mark(full)
        c.raw(Inst("s_mov_b32", (EXEC, here)))


def _copy_arguments(c: RuleEmitter, q: _Queue, arguments: V, packed: V, start: V) -> None:
    """``packed`` bytes to ``start``, which moves on, eight at a time; zeros if there are none."""
    here, mask, some = c.stemp(), c.stemp(), c.stemp()
    done, word = c.vtemp(), c.vtemp(2)
    again, none, end = (c.k.label(stem) for stem in ("Lcopy", "Lnone", "Lcopied"))
    c.raw(Inst("s_mov_b32", (here, EXEC)))
    c.emit("v_mov_b32", done, ZERO)
    c.mark(again)
    c.emit("v_cmp_gt_u32", mask, packed, done)
    c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
    c.branch("s_cbranch_execz", end)
    for i in range(2):
        c.emit("v_mov_b32", V(word.index + i), ZERO)
    c.emit("v_cmp_ne_u64", mask, arguments, word)
    c.raw(Inst("s_mov_b32", (some, EXEC)))
    c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
    c.branch("s_cbranch_execz", none)
    with c.scope():
        c.raw(Inst("flat_load_b64", (word, plus(c, arguments, done))))
    c.mark(none)
    c.raw(Inst("s_mov_b32", (EXEC, some)))
    with c.scope():
        put(c, _in_ring(c, q, start), 0, word)
    c.emit("v_add_nc_u32", start, I(8), start)
    c.emit("v_add_nc_u32", done, I(8), done)
    c.branch("s_branch", again)
    c.mark(end)
    c.raw(Inst("s_mov_b32", (EXEC, here)))
