"""Loads, stores, constant loads with an index, fences: as LLVM's accesses of each address space.

Scopes are those of the rules (`lowering/rules/memory/memory.py`): a strong access of GPU or system
scope is a monotonic atomic of scope agent, MEMBAR a fence.  LLVM has no atomics of 128 bits: such
a strong access is volatile, which it neither splits nor caches.  The alignment is the access's
size: CUDA reports an error otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from sassxlate.disasm.sass.instruction import Const, Instruction, Mem, Pred, Reg, RegRef
from sassxlate.disasm.sass.semantics.memory.memory import place, shape, size_of, width_of
from sassxlate.disasm.sass.semantics.memory.wide import chosen
from sassxlate.disasm.sass.semantics.warp_state import Space
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.lane import Guard, Lane
from sassxlate.lowering.tier.numbers import stand_ins
from sassxlate.lowering.tier.refusal import FORM, refused

SPACE_NUMBER: dict[Space, int] = {"generic": 0, "global": 1, "shared": 3}
_SCOPES = {"CTA": "workgroup", "SM": "workgroup", "GPU": "agent", "VC": "agent", "SYS": "agent"}


def scope(ins: Instruction) -> str | None:
    """The scope of a strong access; None for a weak one."""
    if not (ins.has("STRONG") or ins.has("MMIO")):
        return None
    return "workgroup" if ins.has("SM") or ins.has("CTA") else "agent"


def pointer(lane: Lane, space: Space, role: str = "mem", more: int = 0) -> tuple[str, int]:
    """The address of an operand as a pointer, and the number of its address space."""
    assert lane.ins is not None
    mem = lane.ins.get(role)
    if not isinstance(mem, Mem):
        raise refused(FORM, f"the address {role}", lane.ins)
    width = width_of(space)
    if space == "shared":
        return _shared(lane, mem, more), SPACE_NUMBER[space]
    at = place(lane.d, mem, lane.reg, width)
    if more:
        at = lane.d.add(at, const(more, width))
    if space == "local":
        lane.uses_stack = True
        ref = lane.fn.emit(f"getelementptr i8, ptr addrspace(5) %stack, i32 {at.ref}")
        return ref, 5
    number = SPACE_NUMBER[space]
    return lane.fn.emit(f"inttoptr i{width} {at.ref} to ptr addrspace({number})"), number


def _shared(lane: Lane, mem: Mem, more: int) -> str:
    """With the offset as a step of the pointer: LLVM writes the sum as an OR where low bits are 0,
    and then no longer puts the offset into the instructions of a loop."""
    at = place(lane.d, replace(mem, offset=0), lane.reg, 32)
    offset = const(mem.offset + more, 32)
    if at.const is not None:
        at, offset = lane.d.add(at, offset), const(0, 32)
    base = lane.fn.emit(f"inttoptr i32 {at.ref} to ptr addrspace(3)")
    if offset.const == 0:
        return base
    return lane.fn.emit(f"getelementptr i8, ptr addrspace(3) {base}, i32 {offset.ref}")


def is_in(lane: Lane, address: str, space: Literal["shared", "private"]) -> Val:
    """Whether a generic address is in shared memory or on the lane's stack."""
    name = f"i1 @llvm.amdgcn.is.{space}"
    lane.module.declare(f"{name}(ptr)")
    return Val(lane.fn.emit(f"call {name}(ptr {address})"), 1, False)


def space_of(lane: Lane, ins: Instruction, guard: Guard) -> None:
    """QSPC: whether a generic address is in shared (S), local (L) or global (G) memory; none is in
    another block's shared memory (D), as clusters have one block."""
    which = [m for m in "SLGD" if ins.has(m)]
    if len(which) != 1 or set(ins.modifiers) - {"E", *which} or lane.wants("Rd"):
        raise refused(FORM, "this form of QSPC", ins)
    address, _ = pointer(lane, "generic")
    shared, private = (is_in(lane, address, space) for space in ("shared", "private"))
    d = lane.d
    hit = {"S": shared, "L": private, "G": d.not_(d.or_(shared, private)), "D": const(0, 1)}
    lane.give_pred("Pu", hit[which[0]], guard)


def load(lane: Lane, at: tuple[str, int], size: int, order: str | None, volatile: bool) -> Val:
    """``size`` bytes as one value."""
    ptr, space = at
    kind = f"i{8 * size}"
    if order is not None and size <= 8:
        text = f'load atomic {kind}, ptr addrspace({space}) {ptr} syncscope("{order}") monotonic'
    else:
        many = f"<{size // 4} x i32>" if size > 4 else kind
        word = "load volatile" if volatile or order is not None else "load"
        ref = lane.fn.emit_new(f"{word} {many}, ptr addrspace({space}) {ptr}, align {size}")
        return _value(lane, ref, size)
    return Val(lane.fn.emit_new(f"{text}, align {size}"), 8 * size, False)


def _value(lane: Lane, ref: str, size: int) -> Val:
    """What was loaded, a vector of words if it has more than one, as an integer."""
    if size <= 4:
        return Val(ref, 8 * size, False)
    out = lane.fn.emit_new(f"bitcast <{size // 4} x i32> {ref} to i{8 * size}")
    value = Val(out, 8 * size, False)
    lane.d.words(value, ref)
    return value


def store(lane: Lane, at: tuple[str, int], value: Val, order: str | None, volatile: bool) -> None:
    """A value of 1, 2, 4, 8 or 16 bytes."""
    ptr, space = at
    size, kind, ref = value.width // 8, f"i{value.width}", value.ref
    if order is not None and size <= 8:
        lane.fn.do(
            f"store atomic {kind} {ref}, ptr addrspace({space}) {ptr} "
            f'syncscope("{order}") monotonic, align {size}'
        )
        return
    if size > 4:
        ref, kind = lane.d.vector(value), f"<{size // 4} x i32>"
    word = "store volatile" if volatile or order is not None else "store"
    lane.fn.do(f"{word} {kind} {ref}, ptr addrspace({space}) {ptr}, align {size}")


def joined(lane: Lane, words: list[Val]) -> Val:
    """Registers as one value, the first as its lowest bits."""
    out = words[0]
    for word in words[1:]:
        out = lane.d.concat(word, out)
    return out


def parted(lane: Lane, value: Val) -> list[Val]:
    """A value's registers."""
    return [lane.d.extract(value, i, 32) for i in range(0, value.width, 32)]


def access(lane: Lane, ins: Instruction, guard: Guard, volatile: bool, again: bool = False) -> None:
    """LDG, STG, LD, ST, LDS, STS, LDL and STL.  ``volatile``: accesses of shared memory keep their
    order; ``again``: a load is done each time."""
    what = shape(ins)
    order = scope(ins) if what.space in ("global", "generic") else None
    volatile = again or (volatile and what.space == "shared")
    halves = chosen(ins) if what.size == 32 else None
    if what.store:
        words = lane.words("Rb", min(max(1, what.size // 4), 4))
        if halves is not None:
            words += lane.words("Rb2", 4)
        value = joined(lane, words)
        if len(words) > 1 and value.const is None:
            lane.d.words(value, lane.d.as_vector(words))
        if what.size < 4:
            value = lane.d.extract(value, 0, 8 * what.size)
        lane.under(guard, lambda: store(lane, pointer(lane, what.space), value, order, volatile))
        return
    told, lost = ins.get("Pp"), lane.lost
    if isinstance(told, Pred) and not told.is_true:
        if halves is not None:
            raise refused(FORM, "256 bits under a second predicate", ins)
        wanted, lost = lane.truth(told), frozenset[RegRef]()
        count = max(1, what.size // 4)
        lane.give("Rd", [const(0, 32)] * count, guard)
        guard = wanted if guard is None else lane.both(guard, wanted)
        base, target = getattr(ins.get("mem"), "base", None), ins.get("Rd")
        if isinstance(base, Reg) and isinstance(target, Reg):
            own = range(target.index, target.index + count)
            if not target.is_zero and (base.index in own or base.index + 1 in own):
                raise refused(FORM, "a predicated load over its own address", ins)

    def loaded(chosen_by: Guard = None) -> None:
        value = load(lane, pointer(lane, what.space), what.size, order, volatile)
        if what.size < 4:
            value = lane.d.sext(value, 32) if what.signed else lane.d.zext(value, 32)
        words = parted(lane, value)
        if halves is None:
            lane.give("Rd", words, chosen_by)
            return
        for role, some in zip(("Rd", "Rd2"), halves, strict=True):
            lane.give(role, [words[i] for i in some], chosen_by)

    alone = not isinstance(told, Pred) or told.is_true  # no second predicate chooses
    if guard is not None and alone and not volatile and _is_there(lane, what.space, what.size):
        loaded(guard)
    else:
        lane.under(guard, loaded, lost)
    lane.give_pred("Pu", const(0, 1), lane.holds(ins.guard))


def _is_there(lane: Lane, space: Space, size: int) -> bool:
    """Whether an address is a constant in the kernel's own shared memory: such a load may be done
    for lanes that do not ask for it, which takes less than a branch around it."""
    assert lane.ins is not None
    mem = lane.ins.get("mem")
    if space != "shared" or not isinstance(mem, Mem):
        return False
    at = place(lane.d, mem, lane.reg, width_of(space)).const
    return at is not None and at % size == 0 and at + size <= lane.kernel.shared_size


def copy(lane: Lane, ins: Instruction, guard: Guard, volatile: bool) -> None:
    """LDGSTS: from global to shared memory, done when it is issued; zeros if Pp does not hold."""
    if ins.has("ZFILL"):
        raise refused(FORM, "LDGSTS.ZFILL", ins)
    size = 16 if ins.has("128") else 8 if ins.has("64") else 4

    def copied() -> None:
        to = pointer(lane, "shared", "dst")
        told = ins.get("Pp")
        if not isinstance(told, Pred) or told.is_true:
            value = load(lane, pointer(lane, "global"), size, None, volatile=False)
            store(lane, to, value, None, volatile)
            return
        wanted = lane.truth(told)

        def far() -> None:
            value = load(lane, pointer(lane, "global"), size, None, volatile=False)
            store(lane, to, value, None, volatile)

        store(lane, to, const(0, 8 * size), None, volatile)
        lane.under(wanted, far)

    lane.under(guard, copied)


def indexed_constant(lane: Lane, ins: Instruction, guard: Guard) -> None:
    """LDC with an index: the sum of index and offset has 32 bits."""
    source = ins.get("src")
    if not isinstance(source, Const) or source.index is None or source.ur is not None:
        raise refused(FORM, "this kind of constant operand", ins)
    if any(ins.has(m) for m in ("IL", "IS", "ISL")):
        raise refused(FORM, "segmented constant index", ins)
    size, signed = size_of(ins)
    d = lane.d
    index = d.add(lane.reg(source.index.file, source.index.index), const(source.offset, 32))

    def loaded() -> None:
        if source.bank == 0:
            base = "%karg"
        else:
            bank = lane.bank_pointer(source.bank)
            base = lane.fn.emit(f"inttoptr i64 {bank.ref} to ptr addrspace(4)")
        wide = d.zext(index, 64)
        at = lane.fn.emit(f"getelementptr i8, ptr addrspace(4) {base}, i64 {wide.ref}")
        many = f"<{size // 4} x i32>" if size > 4 else f"i{8 * size}"
        align = min(size, 4)
        ref = lane.fn.emit_new(f"load {many}, ptr addrspace(4) {at}, align {align}")
        value = _value(lane, ref, size)
        if size < 4:
            value = d.sext(value, 32) if signed else d.zext(value, 32)
        lane.give("Rd", parted(lane, value))

    lane.under(guard, loaded, lane.lost)


def fence(lane: Lane, ins: Instruction) -> None:
    """MEMBAR, and CCTL.IV and .IVALL, the second half of an acquiring load."""
    if lane.drains and lane.target.instructions == "RDNA3":
        stand_ins.drain(lane.fn)
    if ins.mnemonic == "CCTL":
        if ins.has("IV") or ins.has("IVALL"):
            lane.fn.do('fence syncscope("agent") acquire')
        return
    if ins.has("ASYNC") or ins.has("VC.ASYNC"):
        raise refused(FORM, "MEMBAR of asynchronous copies", ins)
    found = next((s for m, s in _SCOPES.items() if ins.has(m)), None)
    if found is None:
        raise refused(FORM, "the scope of MEMBAR", ins)
    lane.fn.do(f'fence syncscope("{found}") seq_cst')


def acquired(lane: Lane) -> None:
    """Later accesses are done after the earlier loads: what acquire of CTA scope leaves in SASS."""
    lane.fn.do('fence syncscope("workgroup") acquire')


def ordered(lane: Lane) -> None:
    """Where the lanes of a warp meet, their accesses to memory keep their order."""
    lane.fn.do('fence syncscope("wavefront") acq_rel')


__all__ = ["access", "acquired", "copy", "fence", "indexed_constant", "is_in", "joined", "load",
           "ordered", "parted", "pointer", "scope", "space_of", "store"]  # fmt: skip
