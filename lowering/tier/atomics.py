"""Atomic operations: LLVM's where they have the semantics, else a loop of compare-and-swap."""

from __future__ import annotations

from sassxlate.disasm.sass.instruction import Instruction, Reg
from sassxlate.disasm.sass.semantics.memory.atomic import SPACES, Element, combine, element
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.lane import Guard, Lane
from sassxlate.lowering.tier.memory import is_in, joined, parted, pointer
from sassxlate.lowering.tier.refusal import FORM, refused

_OPS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH")
_KNOWN = frozenset(
    "E EF EL LU EU NA U LTC64B LTC128B LTC256B PRIVATE CTA SM GPU SYS VC STRONG S32 64 S64 U64 "
    "F32 F64 F16x2 RN FTZ CAS CAST SPIN POPC INC 32 ADD MIN MAX INC DEC AND OR XOR EXCH".split()
)
_HERE = "!amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0"
_NO_STACK = f"{_HERE}, !noalias.addrspace !8"  # of a generic address, which is none of the stack
_AGENT = 'syncscope("agent")'


def atomic(lane: Lane, ins: Instruction, guard: Guard) -> None:
    """ATOM, ATOMG, ATOMS, RED and REDG.

    ATOM's predicate is true if it was done, which it is not on the stack; ATOMG's never is.
    """
    unknown = set(ins.modifiers) - _KNOWN
    if unknown:
        raise refused(FORM, f"atomic {' '.join(sorted(unknown))}", ins)
    if ins.has("POPC") and lane.wants("Rd"):
        raise refused(FORM, "ATOMS.POPC.INC with a result", ins)
    # As by the rules: RED is of global memory (docs/errata.md).
    space = "global" if ins.mnemonic == "RED" else SPACES[ins.mnemonic]
    what = Element("unsigned", 32, 1) if ins.has("POPC") else element(ins.modifiers)
    if what.size > 8:
        raise refused(FORM, "an atomic of more than 64 bits", ins)
    words = what.size // 4
    if lane.wants("Pu") and (
        ins.mnemonic not in SPACES
        or (ins.mnemonic == "ATOMS" and not ins.has("CAST"))
        or (ins.mnemonic == "ATOM" and (ins.has("CAST") or ins.has("POPC")))
    ):
        raise refused(FORM, "the predicate of an atomic", ins)

    def done() -> None:
        at = pointer(lane, space)
        if ins.has("CAS") or ins.has("CAST"):
            compare, new = (joined(lane, lane.words(r, words)) for r in ("Rb", "Rc"))
            old, stored = exchanged(lane, at, compare, new)
            if ins.has("CAST"):
                if ins.get("Rd") is not None:
                    lane.give("Rd", parted(lane, lane.d.zext(stored, 32 * words)))
                if lane.wants("Pu"):
                    lane.give_pred("Pu", stored, None)
                return
        else:
            one = const(1, 32)
            operand = one if ins.has("POPC") else joined(lane, lane.words("Rb", words))
            op = "ADD" if ins.has("POPC") else next((m for m in _OPS if ins.has(m)), "")
            old = changed(lane, at, op, what, operand)
        target = ins.get("Rd")
        if isinstance(target, Reg) and not target.is_zero:
            lane.give("Rd", parted(lane, old))

    def unless_on_stack() -> None:
        address, _ = pointer(lane, space)
        other = lane.d.not_(is_in(lane, address, "private"))
        lane.under(other, done)
        lane.give_pred("Pu", other)

    told = ins.mnemonic == "ATOM" and lane.wants("Pu")
    lane.under(guard, unless_on_stack if told else done, lane.lost)
    if ins.mnemonic == "ATOMG":
        lane.give_pred("Pu", const(0, 1), guard)


def _known(space: int) -> str:
    """What LLVM is told of the memory of an address space."""
    return _HERE if space else _NO_STACK


def exchanged(lane: Lane, at: tuple[str, int], compare: Val, new: Val) -> tuple[Val, Val]:
    """The old contents, and whether they were ``compare``: then memory becomes ``new``."""
    ptr, space = at
    kind = f"i{compare.width}"
    pair = lane.fn.emit_new(
        f"cmpxchg ptr addrspace({space}) {ptr}, {kind} {compare.ref}, {kind} {new.ref} "
        f"{_AGENT} monotonic monotonic, align {compare.width // 8}, {_known(space)}"
    )
    old, stored = (lane.fn.emit_new(f"extractvalue {{{kind}, i1}} {pair}, {n}") for n in (0, 1))
    return Val(old, compare.width, False), Val(stored, 1, False)


def _plain(op: str, what: Element) -> str | None:
    """LLVM's name of an operation on integers."""
    if what.kind not in ("unsigned", "signed"):
        return "xchg" if op == "EXCH" and what.size in (4, 8) else None
    signed = "" if what.kind == "signed" else "u"
    names = {
        "ADD": "add", "MIN": f"{signed}min", "MAX": f"{signed}max", "AND": "and", "OR": "or",
        "XOR": "xor", "EXCH": "xchg", "INC": "uinc_wrap", "DEC": "udec_wrap",
    }  # fmt: skip
    return None if op in ("INC", "DEC") and signed == "" else names.get(op)


def changed(lane: Lane, at: tuple[str, int], op: str, what: Element, operand: Val) -> Val:
    """The old contents; memory becomes what the semantics say."""
    ptr, space = at
    bits = 8 * what.size
    name = _plain(op, what)
    if name is not None:
        ref = lane.fn.emit_new(
            f"atomicrmw {name} ptr addrspace({space}) {ptr}, i{bits} {operand.ref} {_AGENT} "
            f"monotonic, align {what.size}, {_known(space)}"
        )
        return Val(ref, bits, False)
    # RDNA2 has no such instruction for global memory, and LLVM's loop would not flush.
    has_sum = lane.target.instructions != "RDNA2"
    single = what.kind == "f" and what.bits == 32 and what.count == 1
    if has_sum and op == "ADD" and single and what.flush:
        value = lane.fn.emit(f"bitcast i32 {operand.ref} to float")
        ref = lane.fn.emit_new(
            f"atomicrmw fadd ptr addrspace({space}) {ptr}, float {value} {_AGENT} monotonic, "
            f"align 4, {_known(space)}, !amdgpu.ignore.denormal.mode !0"
        )
        return Val(lane.fn.emit_new(f"bitcast float {ref} to i32"), 32, False)
    return _loop(lane, at, op, what, operand)


def _loop(lane: Lane, at: tuple[str, int], op: str, what: Element, operand: Val) -> Val:
    """A loop of compare-and-swap: a lane leaves it when its change was stored."""
    ptr, space = at
    fn, d, kind = lane.fn, lane.d, f"i{8 * what.size}"
    before, again, end = fn.fresh("swap"), fn.fresh("swap"), fn.fresh("swapped")
    lane.branch(before)
    fn.label(before, keep=True)
    first = fn.emit_new(
        f"load atomic {kind}, ptr addrspace({space}) {ptr} {_AGENT} monotonic, align {what.size}"
    )
    lane.branch(again)
    fn.label(again, keep=True)
    seen = fn.name()
    phi = fn.emit_new(f"phi {kind} [ {first}, %{before} ], [ {seen}, %{again} ]")
    old = Val(phi, 8 * what.size, False)
    parts: list[Val] = []
    try:
        for i in range(what.count):
            given = (d.extract(v, what.bits * i, what.bits) for v in (old, operand))
            parts.append(combine(d, op, what, *given))
    except NoSemantics as none:
        raise refused(FORM, str(none), lane.ins) from none
    new = joined(lane, parts)
    pair = fn.emit_new(
        f"cmpxchg ptr addrspace({space}) {ptr}, {kind} {old.ref}, {kind} {new.ref} "
        f"{_AGENT} monotonic monotonic, align {what.size}, {_known(space)}"
    )
    fn.do(f"{seen} = extractvalue {{{kind}, i1}} {pair}, 0")
    hit = fn.emit_new(f"extractvalue {{{kind}, i1}} {pair}, 1")
    fn.do(f"br i1 {hit}, label %{end}, label %{again}")
    fn.label(end)
    return old


__all__ = ["atomic"]
