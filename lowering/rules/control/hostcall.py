"""The driver's functions for kernels (lowering/abi/hostcalls.py), and LEPC, which their calls use.

printf and assert are in printing.py.  The heap's layout, shared with native/cuda/hostcall.cpp;
offsets in bytes:

heap   0 and 32 functions, 8 next free byte, 16 end, 24 bytes charged, 40 their limit, 64 a free
       list a size class: first block and turns
block  0 size class, 4 next free block, 8 its charge; 16 the program's bytes.  Blocks are counted in
       16 bytes.

What a program holds is charged against cudaLimitMallocHeapSize; the heap's own size is that of the
reserve from which blocks of powers of two are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, V
from sassxlate.disasm.sass.instruction import Label, Name, Reg
from sassxlate.lowering.abi.hostcalls import FUNCTIONS, reaches_other_blocks
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.control.blocks import add_below, address_at, argument, put
from sassxlate.lowering.rules.control.printing import assertfail, vprintf
from sassxlate.lowering.rules.memory.memory import add64, wait_all
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import EXEC, OFF, VCC, ZERO

TRAP_OTHER_BLOCK = 0x59  # trap id: a copy into the shared memory of another block of a cluster
HEAD = 64
HEADER, FREE_AT = 16, 32
NEXT, END, CHARGED, LIMIT = 8, 16, 24, 40  # offsets in the heap
CHARGE = 8  # offset in a block
# The least that a block of this many bytes or more takes of the limit, as measured on an H200: the
# distance of small blocks, and the numbers of blocks of 75 sizes that fit into heaps of 4 MiB to
# 256 MiB (fixtures/silicon/sm_90/driver/heap.txt; each number is the least that allows them all).
# Between two sizes a block costs no less than a smaller one, and never less than its own bytes, so
# the sum of the live blocks stays within the limit.
CHARGES = (
    *((0, 160), (1000, 2_220), (2500, 4_441), (5000, 6_662), (7000, 8_882), (10_000, 13_315)),
    *((12_000, 13_323), (14_000, 17_767), (20_000, 26_651), (28_000, 53_092), (40_000, 53_261)),
    *(
        (50_000, 53_292),
        (60_000, 106_606),
        (110_000, 159_878),
        (175_000, 213_213),
        (240_000, 313_344),
    ),
    *((300_000, 319_946), (350_000, 426_088), (400_000, 426_765), (450_000, 626_688)),
    *((600_000, 640_657), (700_000, 1_253_376), (1_200_000, 1_284_380), (1_500_000, 2_581_110)),
    *((3_000_000, 3_890_368), (4_000_000, 5_162_220), (6_000_000, 7_669_584)),
    *((7_000_000, 7_895_160), (8_000_000, 10_027_008)),
)


def lepc(c: RuleEmitter) -> None:
    """A code address is an offset here: that of the label, or of the instruction itself."""
    target = c.ins.get("target")
    value = target.target if isinstance(target, Label) else c.ins.offset
    reg = c.reg("Rd")
    for i in range(reg.width):
        word = I(value) if i == 0 else ZERO
        if reg.file == "UR":
            c.write_uniform(reg, i, word)
        else:
            c.emit("v_mov_b32", V(c.dst_last().index + i), word)


def hostcall(c: RuleEmitter) -> None:
    """If the call does not name the function, the block at its target address does.

    If a kernel has several calls, printf's code is placed after it, and is called.
    """
    known = c.ins.get("function")
    if isinstance(known, Name) and reaches_other_blocks(known.name):
        _copy_to_another_block(c)
        return
    names = [name for name in FUNCTIONS if name in c.k.externs]
    if isinstance(known, Name):
        names = [known.name]
    frame = _frame(c) if c.k.outlining and "vprintf" in names else None
    block = c.vtuple("Ra", 2)
    if frame:
        block = _moved(c, frame.words[0], block)
    if len(names) == 1:
        _body(c, names[0], block, frame)
        return
    save, which = (frame.save, frame.which) if frame else (c.stemp(), c.vtemp())
    c.raw(Inst("global_load_b32", (which, block, OFF)))
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    for name in names:
        with c.scope():
            mine = c.stemp()
            skip = c.k.label("Lother")
            c.emit("v_cmp_eq_u32", mine, I(FUNCTIONS[name].number), which)
            c.raw(Inst("s_and_b32", (EXEC, save, mine)))
            c.branch("s_cbranch_execz", skip)
            _body(c, name, block, frame)
            c.mark(skip)
        # The next comparison is for all calling lanes, not only for those already served.
        c.raw(Inst("s_mov_b32", (EXEC, save)))


def _copy_to_another_block(c: RuleEmitter) -> None:
    """A trap, if any lane calls it."""
    skip = c.k.label("Lown")
    c.branch("s_cbranch_execz", skip)
    c.raw(Inst("s_trap", (), imm=TRAP_OTHER_BLOCK))
    c.mark(skip)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The first temporaries of a call of printf's code and of that code: block, format, arguments,
    result; the return address; EXEC and the functions' numbers, which the caller keeps."""

    words: tuple[V, V, V]
    count: V
    back: S
    save: S
    which: V


def _frame(c: RuleEmitter) -> _Frame:
    words = (c.vtemp(2), c.vtemp(2), c.vtemp(2))
    return _Frame(words, c.vtemp(), c.stemp(2), c.stemp(), c.vtemp())


def _moved(c: RuleEmitter, place: V, source: V) -> V:
    for i in range(2):
        c.emit("v_mov_b32", V(place.index + i), V(source.index + i))
    return place


def _body(c: RuleEmitter, name: str, block: V, frame: _Frame | None) -> None:
    if name != "vprintf":
        _BODIES[name](c, block)
        return
    form, arguments = argument(c, 4, 2), argument(c, 6, 2)
    if frame is None:
        count = c.vtemp()
        vprintf(c, block, form, arguments, count)
    else:
        c.outline("Lvprintf", _shared_printf)
        count = frame.count
        _moved(c, frame.words[1], form)
        _moved(c, frame.words[2], arguments)
        c.emit("v_mov_b32", count, ZERO)
        c.raw(Inst("s_call_b64", (frame.back, LabelRef("Lvprintf"))))
    c.write_back(Reg("R", 4, 1), count)


def _shared_printf(c: RuleEmitter) -> None:
    frame = _frame(c)
    vprintf(c, *frame.words, frame.count)
    c.raw(Inst("s_setpc_b64", (frame.back,)))


def _free_list(c: RuleEmitter, block: V, size_class: V) -> V:
    return address_at(c, block, size_class, 8, HEAD)


def charge_of(size: int) -> int:
    """The bytes charged against the limit for a block of ``size`` bytes."""
    return max((size + 15) & ~15, *(least for start, least in CHARGES if size >= start))


def _charge(c: RuleEmitter, size: V) -> V:
    """``charge_of`` for each lane, in 64 bits; sizes below 2 GiB."""
    charge = c.vtemp(2)
    c.emit("v_add_nc_u32", V(charge.index), I(15), size)
    c.emit("v_and_b32", V(charge.index), I(0xFFFFFFF0), V(charge.index))
    c.emit("v_mov_b32", V(charge.index + 1), ZERO)
    with c.scope():
        least, mask = c.vtemp(), c.stemp()
        for start, bytes_ in CHARGES:
            if start:
                c.emit("v_cmp_le_u32", mask, I(start), size)
                c.emit("v_cndmask_b32", least, least, I(bytes_), mask)
            else:
                c.emit("v_mov_b32", least, I(bytes_))
        c.emit("v_max_u32", V(charge.index), least, V(charge.index))
    return charge


def _give_charge(c: RuleEmitter, block: V, charge: V) -> None:
    c.raw(Inst("global_atomic_sub_u64", (block, charge, OFF), imm=CHARGED))


def _malloc(c: RuleEmitter, block: V) -> None:
    """A block of the next power of two: from the free list of its size, otherwise from the end."""
    size = argument(c, 4, 2)
    out, klass, total, mask = c.vtemp(2), c.vtemp(), c.vtemp(), c.stemp()
    save, left, charged = c.stemp(), c.stemp(), c.stemp()
    done, again, fresh, given = (
        c.k.label(stem) for stem in ("Lmalloc", "Lpop", "Lfresh", "Lgiven")
    )
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.emit("v_mov_b32", V(out.index), ZERO)
    c.emit("v_mov_b32", V(out.index + 1), ZERO)
    # Null for 2 GiB and more; block sizes are powers of two, and 31 is the last class.
    c.emit("v_cmp_eq_u32", mask, ZERO, V(size.index + 1))
    c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
    c.emit("v_cmp_gt_u32", mask, I(0x7FFFFF00), V(size.index))
    c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
    c.branch("s_cbranch_execz", done)
    charge = _charge(c, V(size.index))
    with c.scope():
        add_below(c, block, CHARGED, LIMIT, charge)
    c.branch("s_cbranch_execz", done)
    c.raw(Inst("s_mov_b32", (charged, EXEC)))
    # The class is the number of bits of (bytes + header - 1), five at least.
    c.emit("v_add_nc_u32", total, I(HEADER - 1), V(size.index))
    c.emit("v_max_u32", total, I(31), total)
    c.emit("v_clz_i32_u32", klass, total)
    c.emit("v_sub_nc_u32", klass, I(32), klass)
    head = _free_list(c, block, klass)
    old, pair, seen, link, at = c.vtemp(2), c.vtemp(4), c.vtemp(2), c.vtemp(), c.vtemp(2)
    c.raw(Inst("s_mov_b32", (left, EXEC)))
    c.raw(Inst("global_load_b64", (old, head, OFF), glc=True))
    c.mark(again)
    c.emit("v_cmp_ne_u32", mask, ZERO, V(old.index))
    c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
    c.branch("s_cbranch_execz", fresh)
    with c.scope():
        first = address_at(c, block, V(old.index), 16)
        c.emit("v_mov_b32", V(at.index), V(first.index))
        c.emit("v_mov_b32", V(at.index + 1), V(first.index + 1))
    c.raw(Inst("global_load_b32", (link, at, OFF), imm=4, glc=True))
    c.emit("v_mov_b32", V(pair.index), link)
    c.emit("v_add_nc_u32", V(pair.index + 1), I(1), V(old.index + 1))
    c.emit("v_mov_b32", V(pair.index + 2), V(old.index))
    c.emit("v_mov_b32", V(pair.index + 3), V(old.index + 1))
    swap = Inst("global_atomic_cmpswap_b64", (seen, head, pair, OFF), glc=True)
    c.raw(swap)
    c.emit("v_cmp_eq_u64", mask, seen, old)
    c.emit("v_mov_b32", V(old.index), V(seen.index))
    c.emit("v_mov_b32", V(old.index + 1), V(seen.index + 1))
    _take(c, out, at, mask, left)
    c.branch("s_cbranch_execnz", again)
    c.mark(fresh)
    c.raw(Inst("s_mov_b32", (EXEC, left)))
    c.branch("s_cbranch_execz", given)
    _from_end(c, block, klass, out)
    c.mark(given)
    c.raw(Inst("s_mov_b32", (EXEC, charged)))
    c.emit("v_cmp_ne_u32", mask, ZERO, V(out.index + 1))
    c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
    put(c, out, CHARGE, V(charge.index))
    # If the reserve has no block of the size left, the charge is returned.
    c.raw(Inst("s_and_not1_b32", (EXEC, charged, mask)))
    c.branch("s_cbranch_execz", done)
    _give_charge(c, block, charge)
    c.mark(done)
    c.raw(Inst("s_mov_b32", (EXEC, save)))
    _result(c, out)


def _take(c: RuleEmitter, out: V, at: V, mask: S, left: S) -> None:
    """Gives lanes of ``mask`` the block at ``at``: they leave EXEC and ``left``."""
    for i in range(2):
        c.emit("v_cndmask_b32", V(out.index + i), V(out.index + i), V(at.index + i), mask)
    c.raw(Inst("s_and_not1_b32", (left, left, mask)))
    c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, mask)))


def _from_end(c: RuleEmitter, block: V, klass: V, out: V) -> None:
    bytes_ = c.vtemp(2)
    c.emit("v_lshlrev_b32", V(bytes_.index), klass, I(1))
    c.emit("v_mov_b32", V(bytes_.index + 1), ZERO)
    at = add64(c, block, add_below(c, block, NEXT, END, bytes_))
    put(c, at, 0, klass)
    for i in range(2):
        c.emit("v_mov_b32", V(out.index + i), V(at.index + i))


def _result(c: RuleEmitter, at: V) -> None:
    """The bytes after the header of ``at``, or null; a new block belongs to its lane alone."""
    given, mask = c.vtemp(2), c.stemp()
    c.emit("v_add_co_u32", V(given.index), VCC, I(HEADER), V(at.index))
    c.emit("v_add_co_ci_u32", V(given.index + 1), VCC, ZERO, V(at.index + 1), VCC)
    c.emit("v_cmp_ne_u32", mask, ZERO, V(at.index + 1))
    for i in range(2):
        c.emit("v_cndmask_b32", V(given.index + i), ZERO, V(given.index + i), mask)
    c.write_back(Reg("R", 4, 2), given)


def _free(c: RuleEmitter, block: V) -> None:
    """The block becomes the first of its size's free list; null has no effect."""
    block = add64(c, block, I(-FREE_AT & 0xFFFFFFFFFFFFFFFF))
    given = argument(c, 4, 2)
    save, mask, gives = c.stemp(), c.stemp(), c.stemp()
    done, again = c.k.label("Lfree"), c.k.label("Lpush")
    at, klass, number, charge = c.vtemp(2), c.vtemp(), c.vtemp(), c.vtemp(2)
    old, pair, seen = c.vtemp(2), c.vtemp(4), c.vtemp(2)
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.emit("v_cmp_ne_u64", mask, given, c.to_vgpr(ZERO, 2))
    c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
    c.branch("s_cbranch_execz", done)
    c.raw(Inst("s_mov_b32", (gives, EXEC)))
    c.emit("v_sub_co_u32", V(at.index), VCC, V(given.index), I(HEADER))
    c.emit("v_subrev_co_ci_u32", V(at.index + 1), VCC, ZERO, V(given.index + 1), VCC)
    c.raw(Inst("global_load_b32", (klass, at, OFF)))
    # A cache may still hold the charge of the block's last owner.
    c.raw(Inst("global_load_b32", (V(charge.index), at, OFF), imm=CHARGE, glc=True))
    c.emit("v_mov_b32", V(charge.index + 1), ZERO)
    c.emit("v_sub_nc_u32", number, V(at.index), V(block.index))
    c.emit("v_lshrrev_b32", number, I(4), number)
    wait_all(c)  # the program's accesses to the bytes precede their next use
    head = _free_list(c, block, klass)
    c.raw(Inst("global_load_b64", (old, head, OFF), glc=True))
    c.mark(again)
    with c.scope():
        link = c.vtemp()
        c.emit("v_mov_b32", link, V(old.index))
        put(c, at, 4, link)
    wait_all(c)
    c.emit("v_mov_b32", V(pair.index), number)
    c.emit("v_add_nc_u32", V(pair.index + 1), I(1), V(old.index + 1))
    c.emit("v_mov_b32", V(pair.index + 2), V(old.index))
    c.emit("v_mov_b32", V(pair.index + 3), V(old.index + 1))
    c.raw(Inst("global_atomic_cmpswap_b64", (seen, head, pair, OFF), glc=True))
    c.emit("v_cmp_eq_u64", mask, seen, old)
    c.emit("v_mov_b32", V(old.index), V(seen.index))
    c.emit("v_mov_b32", V(old.index + 1), V(seen.index + 1))
    c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, mask)))
    c.branch("s_cbranch_execnz", again)
    # Only now: a lane that finds room under the limit must find the block, too.
    c.raw(Inst("s_mov_b32", (EXEC, gives)))
    _give_charge(c, block, charge)
    c.mark(done)
    wait_all(c)  # must precede the lane's next malloc
    c.raw(Inst("s_mov_b32", (EXEC, save)))


_BODIES = {
    "__assertfail": assertfail,
    "malloc": _malloc,
    "free": _free,
}

# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "LEPC": "",
    "HOSTCALL": "ABS REL NOINC",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("lepc", "LEPC", lepc),
    Rule("hostcall", "HOSTCALL", hostcall),
)
