"""The driver's functions for kernels (lowering/abi/hostcalls.py), and LEPC, which their calls use.

The memory layout, shared with native/cuda/hostcall.h; offsets in bytes:

queue  0 function, 4 records (a power of two), 8 next to write, 12 next to read, 64 records
record 0 function once it is whole, else 0; 4 line; 8 format or message; 16 file; 24 function's
       name; 32 block's and 44 thread's number; 64 printf's arguments
heap   0 and 32 functions, 8 next free byte, 16 end, 24 bytes charged, 40 their limit, 64 a free
       list a size class: first block and turns
block  0 size class, 4 next free block, 8 its charge; 16 the program's bytes.  Blocks are counted in
       16 bytes.

What a program holds is charged against cudaLimitMallocHeapSize; the heap's own size is that of the
reserve from which blocks of powers of two are taken.
"""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.sass.instruction import Label, Name, Reg
from sassxlate.lowering.abi.hostcalls import ARGUMENTS, FUNCTIONS
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.memory import add64, wait_all
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.rules.warp.warp import special_value
from sassxlate.lowering.target import EXEC, OFF, VCC, ZERO

RECORD, HEAD = 64 + ARGUMENTS, 64
HEADER, FREE_AT = 16, 32
NEXT, END, CHARGED, LIMIT = 8, 16, 24, 40  # offsets in the heap
CHARGE = 8  # offset in a block
# The least that a block of this many bytes or more takes of the limit, as measured on an H200: the
# distance of small blocks, and for 64 KiB and 1e6 bytes the numbers of blocks that fit into heaps
# of 4 MiB to 64 MiB (78 and 6 into 8 MiB).  Between them a block costs no less than a smaller one,
# and never less than its own bytes, so the sum of the live blocks stays within the limit.
CHARGES = ((0, 160), (65536, 106_600), (1_000_000, 1_250_000))
_AXES = "XYZ"


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
    """If the call does not name the function, the block at its target address does."""
    block = c.vtuple("Ra", 2)
    known = c.ins.get("function")
    if isinstance(known, Name):
        _BODIES[known.name](c, block)
        return
    names = [name for name in FUNCTIONS if name in c.k.externs]
    if len(names) == 1:
        _BODIES[names[0]](c, block)
        return
    save = c.stemp()
    which = c.vtemp()
    c.raw(Inst("global_load_b32", (which, block, OFF)))
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    for name in names:
        with c.scope():
            mine = c.stemp()
            skip = c.k.label("Lother")
            c.emit("v_cmp_eq_u32", mine, I(FUNCTIONS[name].number), which)
            c.raw(Inst("s_and_b32", (EXEC, save, mine)))
            c.branch("s_cbranch_execz", skip)
            _BODIES[name](c, block)
            c.mark(skip)
        # The next comparison is for all calling lanes, not only for those already served.
        c.raw(Inst("s_mov_b32", (EXEC, save)))


def _argument(c: RuleEmitter, index: int, n: int = 1) -> V:
    return c.vtuple_of(Reg("R", index, n), n)


def _at(c: RuleEmitter, base: V, index: Arg, scale: int, start: int = 0) -> V:
    """base + index * scale + start, an unsigned 32-bit product in 64 bits."""
    wide = c.vtemp(2)
    c.emit("v_mul_lo_u32", V(wide.index), index, I(scale))
    c.emit("v_mul_hi_u32", V(wide.index + 1), index, I(scale))
    if start:
        wide = add64(c, wide, I(start))
    return add64(c, base, wide)


def _put(c: RuleEmitter, at: V, offset: int, value: V) -> None:
    c.raw(Inst(f"global_store_b{32 * value.n}", (at, value, OFF), imm=offset))


def _record(c: RuleEmitter, block: V) -> tuple[V, S, str]:
    """A new record: its address, the lanes that requested one, a label after the code that fills
    it.

    EXEC holds the lanes that got one: records that do not fit are lost, as in CUDA's queue.
    """
    save, fits, done = c.stemp(), c.stemp(), c.k.label("Lrecord")
    number, limits, used = c.vtemp(), c.vtemp(2), c.vtemp()
    c.emit("v_mov_b32", number, I(1))
    c.raw(Inst("global_atomic_add_u32", (number, block, number, OFF), imm=8, glc=True))
    c.raw(Inst("global_load_b32", (V(limits.index), block, OFF), imm=4, glc=True))
    c.raw(Inst("global_load_b32", (V(limits.index + 1), block, OFF), imm=12, glc=True))
    c.emit("v_sub_nc_u32", used, number, V(limits.index + 1))
    c.emit("v_cmp_gt_u32", fits, V(limits.index), used)
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.raw(Inst("s_and_b32", (EXEC, EXEC, fits)))
    c.branch("s_cbranch_execz", done)
    c.emit("v_add_nc_u32", V(limits.index), I(0xFFFFFFFF), V(limits.index))
    c.emit("v_and_b32", number, V(limits.index), number)
    return _at(c, block, number, RECORD, HEAD), save, done


def _whole(c: RuleEmitter, at: V, name: str, save: S, done: str) -> None:
    """The record's function number is written last, once all else is visible."""
    wait_all(c)
    kind = c.vtemp()
    c.emit("v_mov_b32", kind, I(FUNCTIONS[name].number))
    _put(c, at, 0, kind)
    c.mark(done)
    c.raw(Inst("s_mov_b32", (EXEC, save)))


def _vprintf(c: RuleEmitter, block: V) -> None:
    at, save, done = _record(c, block)
    _put(c, at, 8, _argument(c, 4, 2))
    local, inner, none = c.stemp(), c.stemp(), c.k.label("Lnone")
    arguments = _argument(c, 6, 2)
    # The arguments lie in local memory; without any the pointer is null.
    c.emit("v_cmp_eq_u32", local, c.aperture("src_private_base"), V(arguments.index + 1))
    c.raw(Inst("s_mov_b32", (inner, EXEC)))
    c.raw(Inst("s_and_b32", (EXEC, EXEC, local)))
    c.branch("s_cbranch_execz", none)
    for offset in range(0, ARGUMENTS, 16):
        with c.scope():
            some = c.vtemp(4)
            for i in range(0, 4, 2):
                word = V(some.index + i, 2)
                c.raw(Inst("flat_load_b64", (word, arguments), imm=offset + 4 * i))
            _put(c, at, 64 + offset, some)
    c.mark(none)
    c.raw(Inst("s_mov_b32", (EXEC, inner)))
    _whole(c, at, "vprintf", save, done)
    _count_arguments(c)


def _count_arguments(c: RuleEmitter) -> None:
    """printf's result: the number of conversions in the format; %% is not one."""
    at, byte, count, inside = c.vtemp(2), c.vtemp(), c.vtemp(), c.vtemp()
    save, percent, begins = c.stemp(), c.stemp(), c.stemp()
    again, done = c.k.label("Lformat"), c.k.label("Lformat_end")
    form = _argument(c, 4, 2)
    for i in range(2):
        c.emit("v_mov_b32", V(at.index + i), V(form.index + i))
    c.emit("v_mov_b32", count, ZERO)
    c.emit("v_mov_b32", inside, ZERO)
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.branch("s_cbranch_execz", done)
    c.mark(again)
    c.raw(Inst("global_load_u8", (byte, at, OFF)))
    c.emit("v_add_co_u32", V(at.index), VCC, I(1), V(at.index))
    c.emit("v_add_co_ci_u32", V(at.index + 1), VCC, ZERO, V(at.index + 1), VCC)
    c.emit("v_cmp_eq_u32", percent, I(ord("%")), byte)
    c.emit("v_cmp_eq_u32", begins, ZERO, inside)
    with c.scope():
        change = c.vtemp()
        c.emit("v_cndmask_b32", change, I(0xFFFFFFFF), I(1), begins)
        c.emit("v_cndmask_b32", change, ZERO, change, percent)
        c.emit("v_add_nc_u32", count, count, change)
        c.raw(Inst("s_and_b32", (begins, begins, percent)))
        c.emit("v_cndmask_b32", inside, ZERO, I(1), begins)
    c.emit("v_cmp_ne_u32", percent, ZERO, byte)
    c.raw(Inst("s_and_b32", (EXEC, EXEC, percent)))
    c.branch("s_cbranch_execnz", again)
    c.mark(done)
    c.raw(Inst("s_mov_b32", (EXEC, save)))
    c.write_back(Reg("R", 4, 1), count)


def _assertfail(c: RuleEmitter, block: V) -> None:
    """The kernel continues; the launch has failed once the host sees the record."""
    at, save, done = _record(c, block)
    _put(c, at, 4, _argument(c, 8))
    for offset, register in ((8, 4), (16, 6), (24, 10)):
        _put(c, at, offset, _argument(c, register, 2))
    for start, stem in ((32, "SR_CTAID"), (44, "SR_TID")):
        for n, axis in enumerate(_AXES):
            with c.scope():
                _put(c, at, start + 4 * n, c.to_v(special_value(c, f"{stem}.{axis}")))
    _whole(c, at, "__assertfail", save, done)


def _free_list(c: RuleEmitter, block: V, size_class: V) -> V:
    return _at(c, block, size_class, 8, HEAD)


def charge_of(size: int) -> int:
    """The bytes charged against the limit for a block of ``size`` bytes."""
    return max((size + 15) & ~15, *(least for start, least in CHARGES if size >= start))


def _charge(c: RuleEmitter, size: V) -> V:
    """``charge_of`` for each lane, in 64 bits; sizes below 2 GiB."""
    charge = c.vtemp(2)
    c.emit("v_add_nc_u32", V(charge.index), I(15), size)
    c.emit("v_and_b32", V(charge.index), I(0xFFFFFFF0), V(charge.index))
    c.emit("v_mov_b32", V(charge.index + 1), ZERO)
    for start, bytes_ in CHARGES:
        with c.scope():
            least, mask = c.vtemp(), c.stemp()
            c.emit("v_mov_b32", least, I(bytes_))
            if start:
                c.emit("v_cmp_le_u32", mask, I(start), size)
                c.emit("v_cndmask_b32", least, ZERO, least, mask)
            c.emit("v_max_u32", V(charge.index), least, V(charge.index))
    return charge


def _add_below(c: RuleEmitter, block: V, counter: int, bound: int, more: V) -> V:
    """Adds each lane's ``more`` to a counter of the heap if the sum does not exceed its bound;
    returns the old value of the counter.  EXEC becomes the lanes for which the sum was stored.

    A sum over the bound is never visible, not even for a moment: the malloc of another
    lane, which fits, would fail because of it.  All are 64-bit numbers.
    """
    again, end = c.k.label("Ladd"), c.k.label("Ladded")
    was = c.vtemp(2)
    with c.scope():
        most, seen, pair = c.vtemp(2), c.vtemp(2), c.vtemp(4)
        asked, left, mask = c.stemp(), c.stemp(), c.stemp()
        c.raw(Inst("s_mov_b32", (asked, EXEC)))
        c.raw(Inst("s_mov_b32", (left, EXEC)))
        c.raw(Inst("global_load_b64", (most, block, OFF), imm=bound))
        c.raw(Inst("global_load_b64", (was, block, OFF), imm=counter, glc=True))
        c.mark(again)
        low, high = V(pair.index), V(pair.index + 1)
        c.emit("v_add_co_u32", low, VCC, V(was.index), V(more.index))
        c.emit("v_add_co_ci_u32", high, VCC, V(was.index + 1), V(more.index + 1), VCC)
        c.emit("v_cmp_le_u64", mask, V(pair.index, 2), most)
        c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
        c.branch("s_cbranch_execz", end)
        c.emit("v_mov_b32", V(pair.index + 2), V(was.index))
        c.emit("v_mov_b32", V(pair.index + 3), V(was.index + 1))
        c.raw(Inst("global_atomic_cmpswap_b64", (seen, block, pair, OFF), imm=counter, glc=True))
        c.emit("v_cmp_eq_u64", mask, seen, was)
        c.emit("v_mov_b32", V(was.index), V(seen.index))
        c.emit("v_mov_b32", V(was.index + 1), V(seen.index + 1))
        c.raw(Inst("s_and_not1_b32", (left, left, mask)))
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, mask)))
        c.branch("s_cbranch_execnz", again)
        c.mark(end)
        c.raw(Inst("s_and_not1_b32", (EXEC, asked, left)))
    return was


def _give_charge(c: RuleEmitter, block: V, charge: V) -> None:
    c.raw(Inst("global_atomic_sub_u64", (block, charge, OFF), imm=CHARGED))


def _malloc(c: RuleEmitter, block: V) -> None:
    """A block of the next power of two: from the free list of its size, otherwise from the end."""
    size = _argument(c, 4, 2)
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
        _add_below(c, block, CHARGED, LIMIT, charge)
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
        first = _at(c, block, V(old.index), 16)
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
    _put(c, out, CHARGE, V(charge.index))
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
    at = add64(c, block, _add_below(c, block, NEXT, END, bytes_))
    _put(c, at, 0, klass)
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
    given = _argument(c, 4, 2)
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
        _put(c, at, 4, link)
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
    "vprintf": _vprintf,
    "__assertfail": _assertfail,
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
