"""Global accesses of 256 bits (from sm_100 on), as two of 128."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import I, Inst, V
from sassxlate.disasm.sass.instruction import Instruction, Pred
from sassxlate.disasm.sass.semantics.memory.wide import chosen
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.memory import Address, add64, address64, strong
from sassxlate.lowering.rules.modifiers import MEMORY
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import OFF


def _wide(c: RuleEmitter) -> tuple[Address, tuple[tuple[int, ...], tuple[int, ...]]]:
    """The address of 256 bits, with room for its second half, and the words of each half.  The
    alignment that is checked is that of a half: one of 32 bytes is not asked for."""
    told = c.operand("Pp") if "Pp" in c.ins.operands else None
    if isinstance(told, Pred) and not told.is_true:
        raise c.refuse("256 bits under a second predicate")
    if c.k.locks and strong(c.ins):
        raise c.refuse("a strong access of 256 bits in a kernel with 128-bit atomics")
    try:
        halves = chosen(c.ins)
    except NoSemantics as why:
        raise c.refuse(str(why)) from None
    at = address64(c, c.mem())
    if at.imm > 4095 - 16:
        assert isinstance(at.v, V)
        if at.s != OFF:
            raise c.refuse("this offset of 256 bits")
        at = Address(add64(c, at.v, I(at.imm)), at.s, 0)
    return at, halves


def _is_wide(ins: Instruction) -> bool:
    return ins.has("256")


def ldg256(c: RuleEmitter) -> None:
    """Two loads.  What the first gives waits in temporaries if the second's address is there, or
    if the mask leaves words out: those that it names are moved to registers side by side."""
    at, halves = _wide(c)
    address = range(at.v.index, at.v.index + at.v.n) if isinstance(at.v, V) else range(0)
    moves: list[tuple[V, V]] = []
    for half, (role, words_) in enumerate(zip(("Rd", "Rd2"), halves, strict=True)):
        if not words_:
            if not c.reg(role).is_zero:
                raise c.refuse("none of the words of a register")
            continue
        dst = c.dst_last(role)
        own = any(dst.index <= i < dst.index + dst.n for i in address)
        to = dst if len(words_) == 4 and not (own and half == 0) else c.vtemp(4)
        op = Inst("global_load_b128", (to, at.v, at.s), imm=at.imm + 16 * half, glc=strong(c.ins))
        c.raw(op)
        if to is not dst:
            moves += [
                (V(dst.index + n), V(to.index + word - 4 * half)) for n, word in enumerate(words_)
            ]
    for target, source in moves:
        c.emit("v_mov_b32", target, source)


def stg256(c: RuleEmitter) -> None:
    at, _ = _wide(c)
    for half, role in enumerate(("Rb", "Rb2")):
        data = c.vtuple(role, 4)
        c.raw(Inst("global_store_b128", (at.v, data, at.s), imm=at.imm + 16 * half))


# The modifiers that each rule translates or refuses.
KNOWN: Mapping[str, str] = {"ldg256": f"{MEMORY} 256", "stg256": f"{MEMORY} 256"}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("ldg256", "LDG", ldg256, _is_wide),
    Rule("stg256", "STG", stg256, _is_wide),
)
