"""128-bit ATOM and ATOMG, which RDNA3 has no instruction for: under a lock, one lane at a time.

The launcher gives the kernel an array of locks (``native/cuda/locks.cpp``); the address selects
one.  A wave takes one lock at a time and releases it before the next, so lanes never wait
for each other.

Only these atomics take the locks.  Strong 128-bit loads and stores, which PTX promises to be
single-copy atomic, are refused in a kernel that has such atomics (rules/memory/memory.py): the
emulated device moves their words one by one or two by two, and AMD's manual promises nothing.
Those of another kernel that runs at the same time, and narrower atomics on the same bytes, are not
detected.
"""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.disasm.sass.instruction import Instruction, Reg
from sassxlate.lowering.builder.lane_id import lane_id
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.memory import address64, wait_all
from sassxlate.lowering.rules.modifiers import HINTS, SCOPES
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import EXEC, NULL, OFF, ZERO

LOCKS = 1024  # words; kLocks of native/cuda/locks.cpp


def _lock_of(c: RuleEmitter, address: V, imm: int) -> V:
    """The address of the lock for the quad at ``address`` + ``imm``, which is aligned."""
    base, index, out = c.stemp(2), c.vtemp(), c.vtemp(2)
    c.raw(Inst("s_load_b64", (base, c.target.kernarg, NULL), imm=c.k.locks))
    c.emit("v_add_nc_u32", index, I(imm), V(address.index))
    c.emit("v_bfe_u32", index, index, I(4), I(LOCKS.bit_length() - 1))
    c.emit("v_lshlrev_b32", index, I(2), index)
    low, high = V(out.index), V(out.index + 1)
    carry = c.stemp()
    c.emit("v_add_co_u32", low, carry, S(base.index), index)
    c.emit("v_mov_b32", high, S(base.index + 1))
    c.emit("v_add_co_ci_u32", high, carry, ZERO, high, carry)
    return out


def _words(c: RuleEmitter, role: str) -> list[V]:
    quad = c.vtuple(role, 4)
    return [V(quad.index + i) for i in range(4)]


def atomic128(c: RuleEmitter) -> None:
    """CAS and EXCH; the result is the old value.

    ATOMG's predicate is never true (measured).  ATOM's is true if it was done, which was measured
    only for global memory, not for generic addresses of shared memory: refused.
    """
    flat = c.ins.mnemonic == "ATOM"
    if flat and c.wants_pred("Pu"):
        raise c.refuse("predicate result of ATOM on 128 bits")
    swap = c.ins.has("CAS")
    if not swap and not c.ins.has("EXCH"):
        raise c.refuse("atomic on 128 bits but CAS and EXCH")
    if not c.k.locks:
        raise c.refuse("atomic on 128 bits without locks")
    c.pred_commit("Pu", ZERO, clean=True)
    new = c.vtuple("Rc" if swap else "Rb", 4)
    compare = _words(c, "Rb") if swap else []
    at = address64(c, c.mem(), True)
    assert isinstance(at.v, V)
    lock = _lock_of(c, at.v, at.imm)
    space = "flat" if flat else "global"
    tail = () if flat else (OFF,)
    old, pair, seen = c.vtemp(4), c.vtemp(2), c.vtemp()
    save, todo, one, got, first = (c.stemp() for _ in range(5))
    again, spin, done = (c.k.label(stem) for stem in ("Lquad", "Lquad_spin", "Lquad_done"))
    lane = lane_id(c)
    c.emit("v_mov_b32", V(pair.index), I(1))
    c.emit("v_mov_b32", V(pair.index + 1), ZERO)
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    c.branch("s_cbranch_execz", done)
    c.mark(again)
    c.raw(Inst("s_mov_b32", (todo, EXEC)))
    c.raw(Inst("v_readfirstlane_b32", (first, lane)))
    c.emit("v_cmp_eq_u32", one, first, lane)
    c.raw(Inst("s_and_b32", (EXEC, EXEC, one)))
    c.mark(spin)
    c.raw(Inst("global_atomic_cmpswap_b32", (seen, lock, pair, OFF), glc=True))
    c.emit("v_cmp_eq_u32", got, ZERO, seen)
    c.raw(Inst("s_sleep", (), imm=1))
    c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, got)))
    c.branch("s_cbranch_execnz", spin)
    c.raw(Inst("s_mov_b32", (EXEC, one)))
    wait_all(c)
    c.raw(Inst("buffer_gl1_inv"))
    c.raw(Inst("buffer_gl0_inv"))
    c.raw(Inst(f"{space}_load_b128", (old, at.v, *tail), imm=at.imm, glc=True))
    same = c.stemp()
    for i, word in enumerate(compare):
        c.emit("v_cmp_eq_u32", same, V(old.index + i), word)
        c.raw(Inst("s_and_b32", (EXEC, EXEC, same)))
    c.raw(Inst(f"{space}_store_b128", (at.v, new, *tail), imm=at.imm))
    c.raw(Inst("s_mov_b32", (EXEC, one)))
    wait_all(c)
    c.emit("v_mov_b32", seen, ZERO)
    c.raw(Inst("global_store_b32", (lock, seen, OFF)))
    wait_all(c)
    c.raw(Inst("s_and_not1_b32", (EXEC, todo, one)))
    c.branch("s_cbranch_execnz", again)
    c.mark(done)
    c.raw(Inst("s_mov_b32", (EXEC, save)))
    target = c.ins.get("Rd")
    if isinstance(target, Reg) and not target.is_zero:
        out = c.dst_last()
        for i in range(4):
            c.emit("v_mov_b32", V(out.index + i), V(old.index + i))


def _is_quad(ins: Instruction) -> bool:
    return ins.has("128")


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "atom128": f"E 128 EXCH CAS {SCOPES} {HINTS}",
    "atomg128": f"E 128 EXCH CAS {SCOPES} {HINTS}",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("atom128", "ATOM", atomic128, _is_quad),
    Rule("atomg128", "ATOMG", atomic128, _is_quad),
)
