"""Asynchronous copies and arrival barriers in shared memory (PTX's mbarrier).

A copy is done where it is issued, which is one of the times allowed to the hardware, so code that
waits for copies never waits.  A barrier's word changes as a whole, by compare-and-swap;
its fields are described in ``disasm/sass/semantics/memory/asynchronous.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.sass.instruction import Instruction, Mem, Pred, Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.builder.sources import part
from sassxlate.lowering.rules.memory.memory import (
    Address,
    add64,
    address32,
    address64,
    strong,
    wait_all,
    words,
)
from sassxlate.lowering.rules.modifiers import HINTS, SCOPES
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ALL_ONES, EXEC, OFF, ZERO

# --- copies ---------------------------------------------------------------------------------------

_LOADS = {1: "b32", 2: "b64", 4: "b128"}


def _place(c: RuleEmitter, role: str = "mem") -> tuple[V, int]:
    """An address in shared memory: a register, and an offset that fits the instructions."""
    mem = c.operand(role)
    if not isinstance(mem, Mem):
        raise c.refuse(f"operand {role} is not an address", "SX0412")
    at, imm = address32(c, mem, 0, 0xFFF8)
    return c.to_v(at), imm


def _aligned(c: RuleEmitter, at: Address, size: int) -> tuple[Address, V]:
    """The aligned address at or below an address, and the number of bytes between them."""
    pair: Arg = at.v
    scalar = at.s if isinstance(at.s, S) else None
    if scalar is not None:  # the register is a 32-bit offset
        wide = c.vtemp(2)
        c.emit("v_mov_b32", V(wide.index), at.v)
        c.emit("v_mov_b32", V(wide.index + 1), ZERO)
        pair = add64(c, wide, scalar)
    imm, rest = at.imm & -size, at.imm & (size - 1)
    if rest:
        pair = add64(c, pair, I(rest))
    below, over = c.vtemp(2), c.vtemp()
    c.emit("v_and_b32", over, I(size - 1), part(pair, 0))
    c.emit("v_and_b32", V(below.index), I(-size & 0xFFFFFFFF), part(pair, 0))
    c.emit("v_mov_b32", V(below.index + 1), part(pair, 1))
    return Address(below, OFF, imm), over


def _fill(c: RuleEmitter, data: V, n: int, over: V) -> None:
    """Zeroes the last ``over`` bytes of ``n`` words; ``over`` is less than their size."""
    kept, reached = c.vtemp(), c.vtemp()
    # In the word where the bytes begin, keep the low bytes; a shift takes the count modulo 32.
    c.emit("v_lshlrev_b32", kept, I(3), over)
    c.emit("v_lshrrev_b32", kept, kept, ALL_ONES)
    after: S | None = None  # whether the bytes begin at or before this word: all of it is zero
    for i in range(n):
        word, mask = V(data.index + i), kept
        begins: S | None = None  # whether the bytes begin no later than the end of this word
        if i < n - 1:
            begins, mask = c.stemp(), reached
            c.emit("v_cmp_le_u32", begins, I(4 * (n - 1 - i)), over)
            c.emit("v_cndmask_b32", reached, ALL_ONES, kept, begins)
        c.emit("v_and_b32", word, mask, word)
        if after is not None:
            c.emit("v_cndmask_b32", word, word, ZERO, after)
        after = begins


def ldgsts(c: RuleEmitter) -> None:
    """LDGSTS: zeros if Pp does not hold, with .ZFILL or without, and nothing is read then.  With
    .ZFILL the low bits of the address are the number of bytes at the end to zero."""
    n = words(c.ins)
    source = address64(c, c.mem())
    over: V | None = None
    if c.ins.has("ZFILL"):
        source, over = _aligned(c, source, 4 * n)
    target, imm = _place(c, "dst")
    data = c.vtemp(n)
    # .BYPASS copies past the L1, so it sees other blocks' writes.
    past = strong(c.ins) or c.ins.has("BYPASS")
    load = Inst(f"global_load_{_LOADS[n]}", (data, source.v, source.s), imm=source.imm, glc=past)
    told = c.operand("Pp") if "Pp" in c.ins.operands else None
    if isinstance(told, Pred) and not told.is_true:
        save = c.stemp()
        for i in range(n):
            c.emit("v_mov_b32", V(data.index + i), ZERO)
        c.raw(Inst("s_mov_b32", (save, EXEC)))
        c.emit("s_and_b32", EXEC, EXEC, c.mask(told))
        c.raw(load)
        c.raw(Inst("s_mov_b32", (EXEC, save)))
    else:
        c.raw(load)
    if over is not None:
        _fill(c, data, n, over)
    c.raw(Inst(f"ds_store_{_LOADS[n]}", (target, data), imm=imm))


# --- barriers of sm_90 and later ------------------------------------------------------------------

# The arrivals counted (None: Rb), and the change of the pending bytes, times Rb or 1.
_COUNTS = {"A1T0": (1, ""), "ART0": (None, ""), "A0T1": (0, "less 1"), "A0TR": (0, "less"),
           "A0TX": (0, "more")}  # fmt: skip


def _swap_loop(
    c: RuleEmitter, at: V, imm: int, change: Callable[[V, V], None], flat: bool = False
) -> V:
    """Replaces the 64 bits at an address, ``flat``: a generic one; ``change`` writes (new, old).
    Returns the old value."""
    pair, seen, same, save = c.vtemp(4), c.vtemp(2), c.stemp(), c.stemp()
    new, old = V(pair.index, 2), V(pair.index + 2, 2)
    load = Inst("flat_load_b64", (old, at), imm=imm, glc=True)
    c.raw(load if flat else Inst("ds_load_b64", (old, at), imm=imm))
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    again, done = c.k.label("Lcas"), c.k.label("Lcas_done")
    c.branch("s_cbranch_execz", done)
    c.mark(again)
    with c.scope():
        change(new, old)
    if flat:
        c.raw(Inst("flat_atomic_cmpswap_b64", (seen, at, pair), imm=imm, glc=True))
    else:
        c.raw(Inst("ds_cmpstore_rtn_b64", (seen, at, new, old), imm=imm))
    c.emit("v_cmp_eq_u64", same, seen, old)
    for i in range(2):
        c.emit("v_mov_b32", V(old.index + i), V(seen.index + i))
    c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, same)))
    c.branch("s_cbranch_execnz", again)
    c.mark(done)
    c.raw(Inst("s_mov_b32", (EXEC, save)))
    return seen


def _arrived(c: RuleEmitter, new: V, old: V, count: V | I | None, bytes_: tuple[str, V | I] | None,
             leaves: bool) -> None:  # fmt: skip
    """The word after an arrival of ``count`` that changes the pending bytes; ``leaves``: as many
    arrivals are no longer expected."""
    low, high = V(old.index), V(old.index + 1)
    new_low, new_high = V(new.index), V(new.index + 1)
    pending, expected, due, left = (c.vtemp() for _ in range(4))
    done = c.stemp()
    c.emit("v_bfe_u32", pending, high, I(11), I(20))
    c.emit("v_bfe_u32", expected, low, I(1), I(20))
    c.emit("v_alignbit_b32", due, high, low, I(21))
    if bytes_ is not None:
        c.emit(f"v_{bytes_[0]}_nc_u32", due, due, bytes_[1])
    c.emit("v_and_b32", due, I(0x1FFFFF), due)
    if count is not None:
        c.emit("v_add_nc_u32", pending, pending, count)
        c.emit("v_and_b32", pending, I(0xFFFFF), pending)
        if leaves:
            c.emit("v_add_nc_u32", expected, expected, count)
            c.emit("v_and_b32", expected, I(0xFFFFF), expected)
    c.emit("v_or_b32", left, pending, due)
    c.emit("v_cmp_eq_u32", done, ZERO, left)
    c.emit("v_cndmask_b32", pending, pending, expected, done)
    c.emit("v_cndmask_b32", left, ZERO, I(1), done)
    c.emit("v_lshlrev_b32", left, I(31), left)
    c.emit("v_xor_b32", left, left, high)
    # Bits 42 and 63 are kept; the phase (63) flips when the barrier is done.
    c.emit("v_and_b32", left, I(0x80000400), left)
    c.emit("v_lshl_or_b32", left, pending, I(11), left)
    c.emit("v_lshrrev_b32", pending, I(11), due)
    c.emit("v_or_b32", new_high, left, pending)
    c.emit("v_and_b32", left, I(1), low)
    c.emit("v_lshl_or_b32", left, expected, I(1), left)
    c.emit("v_lshl_or_b32", new_low, due, I(21), left)


def _in_front(c: RuleEmitter) -> None:
    # An arrival releases its lanes' earlier accesses.
    wait_all(c)


def _give_token(c: RuleEmitter, seen: V, first: int) -> None:
    """Writes the old state to Rd, from word ``first`` on; the words below keep their values."""
    reg = c.ins.get("Rd")
    if not isinstance(reg, Reg) or reg.is_zero:
        return
    dst = c.dst_last()
    for i in range(2):
        value = V(seen.index + i) if i >= first else c.value(reg, i)
        if value != V(dst.index + i):
            c.emit("v_mov_b32", V(dst.index + i), value)


def arrive(c: RuleEmitter) -> None:
    """SYNCS.ARRIVE: of the result only the high register is written."""
    ins = c.ins
    if ins.has("TMASK"):
        raise c.refuse("arrivals by the mask of their lanes")
    action = next((m for m in _COUNTS if ins.has(m)), None)
    many, way = (1, "less") if action is None else _COUNTS[action]
    count: V | I | None = None if many == 0 else I(1)
    if many is None:
        count = c.vtemp()
        c.emit("v_and_b32", count, I(0xFFFFF), c.src("Rb"))
    bytes_: tuple[str, V | I] | None = None
    if way == "less 1":
        bytes_ = "sub", I(1)
    elif way:
        bytes_ = ("add" if way == "more" else "sub"), c.vsrc("Rb")
    at, imm = _place(c)
    _in_front(c)
    leaves = ins.has("OPTOUT")
    seen = _swap_loop(c, at, imm, lambda new, old: _arrived(c, new, old, count, bytes_, leaves))
    _give_token(c, seen, 1)


def phase(c: RuleEmitter) -> None:
    """SYNCS.PHASECHK: whether the phase of Rb's sign is over.  .TRYWAIT lets other waves run
    if a lane must wait; the loop is the program's."""
    at, imm = _place(c)
    state, over = c.vtemp(), c.pred_out("Pu")
    c.raw(Inst("ds_load_b32", (state, at), imm=imm + 4))
    c.emit("v_xor_b32", state, state, c.src("Rb"))
    c.emit("v_cmp_gt_i32", over, ZERO, state)
    if c.ins.has("TRYWAIT"):
        skip = c.k.label("Lover")
        c.raw(Inst("s_cmp_eq_u32", (over, EXEC)))
        c.branch("s_cbranch_scc1", skip)
        c.raw(Inst("s_sleep", (), imm=1))
        c.mark(skip)
    c.pred_commit("Pu", over, clean=True)


def exchange(c: RuleEmitter) -> None:
    """SYNCS.EXCH: once per warp."""
    at, imm = _place(c)
    data = c.vtuple("Rb", 2)
    old, save, one = c.vtemp(2), c.stemp(), c.stemp()
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.raw(Inst("s_sub_u32", (one, ZERO, EXEC)))
    c.raw(Inst("s_and_b32", (EXEC, one, EXEC)))
    _in_front(c)
    c.raw(Inst("ds_storexchg_rtn_b64", (old, at, data), imm=imm))
    reg = c.reg("Rd")
    scalars = [c.to_s(V(old.index + i)) for i in range(0 if reg.is_zero else 2)]
    c.raw(Inst("s_mov_b32", (EXEC, save)))
    for i, scalar in enumerate(scalars):
        c.write_uniform(reg, i, scalar)


def inspect(c: RuleEmitter) -> None:
    """SYNCS.LD."""
    at, imm = _place(c)
    c.raw(Inst("ds_load_b64", (c.dst_last(), at), imm=imm))


def copied(c: RuleEmitter) -> None:
    """ARRIVES.LDGSTSBAR: arrives when the lane's copies are done, which they are.  On sm_90
    .TRANSCNT subtracts the one byte that the SYNCS.ARRIVE.A0T1 before it announced."""
    at, imm = _place(c)
    _in_front(c)
    if c.arch < 90:
        _swap_loop(c, at, imm, lambda new, old: _arrived80(c, new, old))
        return
    if c.ins.has("ARVCNT"):
        _swap_loop(c, at, imm, lambda new, old: _arrived(c, new, old, I(1), None, False))
    elif c.ins.has("TRANSCNT"):
        more = "add", I(1)
        _swap_loop(c, at, imm, lambda new, old: _arrived(c, new, old, None, more, False))
    else:
        raise c.refuse("what this arrival counts")


# --- barriers of sm_80 ----------------------------------------------------------------------------


def _arrived80(c: RuleEmitter, new: V, old: V) -> None:
    """One more arrival: if it was the last missing one, the carry flips the phase."""
    low, high = V(old.index), V(old.index + 1)
    left, again, done = c.vtemp(), c.vtemp(), c.stemp()
    c.emit("v_add_nc_u32", left, I(1), high)
    c.emit("v_and_b32", again, I(0x3FFFFFFF), low)
    c.emit("v_add_nc_u32", again, I(0x40000000), again)
    c.emit("v_or_b32", again, again, left)
    c.emit("v_lshlrev_b32", V(new.index), I(1), left)
    c.emit("v_cmp_eq_u32", done, ZERO, V(new.index))
    c.emit("v_cndmask_b32", V(new.index + 1), left, again, done)
    c.emit("v_mov_b32", V(new.index), low)


def arrive80(c: RuleEmitter) -> None:
    """ATOMS.ARRIVE.64, and ATOM.ARRIVE.64 on a generic address: the result is the old state."""
    flat = c.ins.mnemonic == "ATOM"
    if flat:
        if c.wants_pred("Pu"):
            raise c.refuse("predicate result of an arrival")
        place = address64(c, c.mem(), True)
        at, imm = place.v if isinstance(place.v, V) else c.to_vgpr(place.v, 2), place.imm
    else:
        at, imm = _place(c)
    _in_front(c)
    seen = _swap_loop(c, at, imm, lambda new, old: _arrived80(c, new, old), flat)
    _give_token(c, seen, 0)


# --- copies of many bytes -------------------------------------------------------------------------

_LINE = 512  # bytes that a wave copies at once


def bytes_arrive(c: RuleEmitter, barrier: Arg, total: S) -> None:
    """Bytes that a wave copied arrive at a barrier; EXEC is one lane then."""
    at, count = c.vtemp(), c.vtemp()
    c.raw(Inst("s_mov_b32", (EXEC, I(1))))
    _in_front(c)
    c.emit("v_mov_b32", at, barrier)
    c.emit("v_mov_b32", count, total)
    _swap_loop(c, at, 0, lambda new, old: _arrived(c, new, old, None, ("add", count), False))


def bulk(c: RuleEmitter) -> None:
    """UBLKCP between global and shared memory, once per warp, 16 bytes per lane in turn; all lanes
    of the wave help.  Bytes copied to shared memory are counted at the barrier in the address
    pair."""
    ins = c.ins
    way = [m for m in ins.modifiers if m in ("S", "G")]  # .S.G: to shared memory, from global
    inwards = way == ["S", "G"]
    if not inwards and way != ["G", "S"]:
        raise c.refuse("copy within one memory")
    to, source = c.reg("dst"), c.reg("src")
    near, far = (to, source) if inwards else (source, to)
    save, left, total = c.stemp(), c.stemp(), c.stemp()
    again, copied_, done = (c.k.label(x) for x in ("Lcopy", "Lcopied", "Lnone"))
    pair = c.stemp(2)
    c.branch("s_cbranch_execz", done)
    for i in range(2):
        with c.scope():
            c.raw(Inst("s_mov_b32", (part(pair, i), c.to_s(c.value(far, i)))))
    at, offset, data = c.vtemp(), c.vtemp(), c.vtemp(4)
    shared = c.stemp()
    c.raw(Inst("s_mov_b32", (shared, c.to_s(c.value(near)))))
    c.raw(Inst("s_lshl_b32", (total, c.ssrc("size"), I(4))))
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.raw(Inst("s_mov_b32", (EXEC, ALL_ONES)))
    c.emit("v_mbcnt_lo_u32_b32", offset, ALL_ONES, ZERO)
    c.emit("v_lshlrev_b32", offset, I(4), offset)
    c.mark(again)
    c.emit("v_cmp_gt_u32", left, total, offset)
    c.raw(Inst("s_mov_b32", (EXEC, left)))
    c.branch("s_cbranch_execz", copied_)
    c.emit("v_add_nc_u32", at, shared, offset)
    if inwards:
        c.raw(Inst("global_load_b128", (data, offset, pair), glc=True))
        c.raw(Inst("ds_store_b128", (at, data)))
    else:
        c.raw(Inst("ds_load_b128", (data, at)))
        c.raw(Inst("global_store_b128", (offset, data, pair)))
    c.emit("v_add_nc_u32", offset, I(_LINE), offset)
    c.branch("s_branch", again)
    c.mark(copied_)
    if inwards:
        c.raw(Inst("s_mov_b32", (EXEC, save)))
        bytes_arrive(c, c.to_s(c.value(near, 1)), total)
    c.raw(Inst("s_mov_b32", (EXEC, save)))
    c.mark(done)


# --- stores that arrive ---------------------------------------------------------------------------


def stas(c: RuleEmitter) -> None:
    """STAS, in a cluster of one block: a store to shared memory, then each lane's bytes arrive at
    the barrier in the second register of the address."""
    mem = c.mem()
    base = mem.base
    plain = mem.ureg is None or mem.ureg.is_zero
    if base is None or base.width != 2 or mem.offset or not plain:
        raise c.refuse("this address of STAS")
    n = words(c.ins)
    at, barrier = (c.to_v(c.value(base, i)) for i in (0, 1))
    c.raw(Inst(f"ds_store_{_LOADS[n]}", (at, c.vtuple("Rb", n))))
    _in_front(c)
    count = "add", I(4 * n)
    _swap_loop(c, barrier, 0, lambda new, old: _arrived(c, new, old, None, count, False))


# --- what has nothing left to do ------------------------------------------------------------------


def nothing(c: RuleEmitter) -> None:
    """Caches of barriers, and order between copies and plain accesses: everything is in order.
    USETSHMSZ: the shared memory that a block gives back before it ends stays its own."""


def registers(c: RuleEmitter) -> None:
    """USETMAXREG: registers that warps release or acquire; each always has all of its own."""
    if c.wants_pred("Pu"):
        c.pred_commit("Pu", ALL_ONES)


def _has(*names: str) -> Callable[[Instruction], bool]:
    return lambda ins: any(ins.has(name) for name in names)


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "LDGSTS": f"E 64 128 BYPASS ZFILL VC {SCOPES} {HINTS}",
    "atom_arrive": f"E ARRIVE 64 {SCOPES} {HINTS}",
    "atoms_arrive": "ARRIVE 64",
    "SYNCS": (
        "ARRIVE TRANS64 RED OPTOUT TMASK A1T0 A0T1 A0TR A0TX ART0 PHASECHK TRYWAIT EXCH LD 64 "
        "CCTL IV WB IVALL WBALL FLUSH"
    ),
    "ARRIVES": "LDGSTSBAR 64 ARVCNT TRANSCNT",
    "STAS": "64 128",
    "USETSHMSZ": "FLUSH",
    "UBLKCP": "S G LTC64B LTC128B LTC256B",
    "UBLKPF": "L2",
    "UTMACMDFLUSH": "",
    "FENCE": "VIEW ASYNC S G",
    "USETMAXREG": "DEALLOC TRY_ALLOC CTAPOOL",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("ldgsts", "LDGSTS", ldgsts),
    Rule("atom_arrive", "ATOM", arrive80, _has("ARRIVE")),
    Rule("atoms_arrive", "ATOMS", arrive80, _has("ARRIVE")),
    Rule("syncs_arrive", "SYNCS", arrive, _has("ARRIVE")),
    Rule("syncs_phasechk", "SYNCS", phase, _has("PHASECHK")),
    Rule("syncs_exch", "SYNCS", exchange, _has("EXCH")),
    Rule("syncs_ld", "SYNCS", inspect, _has("LD")),
    Rule("syncs_cctl", "SYNCS", nothing, _has("CCTL", "FLUSH")),
    Rule("arrives", "ARRIVES", copied),
    Rule("ublkcp", "UBLKCP", bulk),
    Rule("stas", "STAS", stas),
    Rule("usetshmsz", "USETSHMSZ", nothing),
    # A prefetch, and the end of a group of copies that are done.
    Rule("ublkpf", "UBLKPF", nothing),
    Rule("utmacmdflush", "UTMACMDFLUSH", nothing),
    Rule("fence", "FENCE", nothing, _has("VIEW")),
    Rule("usetmaxreg", "USETMAXREG", registers),
)
