"""Instructions that see other lanes: as LLVM's convergent intrinsics.

They are written only where the same lanes run them together here and there (:mod:`.warp.together`).
"""

from __future__ import annotations

from sassxlate.disasm.sass.instruction import Instruction, Pred
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.lane import Guard, Lane
from sassxlate.lowering.tier.refusal import FORM, refused


def ballot(lane: Lane, of: Val) -> Val:
    """The lanes that run this for which it holds."""
    ref = lane.intrinsic("i32", "amdgcn.ballot.i32", f"i1 {of.ref}", "i1")
    return Val(ref, 32, False)


def whole(lane: Lane) -> Val:
    """Whether all lanes of the warp run this."""
    return lane.d.eq(ballot(lane, const(1, 1)), const(-1, 32))


def one_way(lane: Lane, of: Val) -> tuple[Val, Val]:
    """Whether a condition holds for some lane that runs this, and whether that is all or none."""
    d = lane.d
    votes = ballot(lane, of)
    none = d.eq(votes, const(0, 32))
    return d.not_(none), d.or_(none, d.eq(votes, ballot(lane, const(1, 1))))


def first_lane(lane: Lane, value: Val) -> Val:
    """The value of the first lane that runs this."""
    ref = lane.intrinsic("i32", "amdgcn.readfirstlane.i32", f"i32 {value.ref}", "i32")
    return Val(ref, 32, False)


def shuffle(lane: Lane, ins: Instruction) -> None:
    """SHFL: Rc has the segment mask in bits 12:8 and the clamp in bits 4:0."""
    d = lane.d
    mode = next((m for m in ("IDX", "UP", "DOWN", "BFLY") if ins.has(m)), None)
    if mode is None:
        raise refused(FORM, "mode of SHFL", ins)
    value, given, control = (lane.word(role) for role in ("Ra", "Rb", "Rc"))
    me, low5 = lane.lane_number(), const(31, 32)
    step, clamp = d.and_(given, low5), d.and_(control, low5)
    segment = d.and_(d.lshr(control, const(8, 32)), low5)
    first = d.and_(me, segment)
    limit = d.or_(first, d.and_(clamp, d.not_(segment)))
    match mode:
        case "UP":
            source = d.sub(me, step)
        case "DOWN":
            source = d.add(me, step)
        case "BFLY":
            source = d.xor(me, step)
        case _:
            source = d.or_(first, d.and_(step, d.not_(segment)))
    inside = d.not_(d.slt(source, limit)) if mode == "UP" else d.not_(d.slt(limit, source))
    everyone = mode in ("BFLY", "IDX") and limit.const == 31 and segment.const == 0
    chosen = source if everyone else d.select(inside, source, me)
    place = d.shl(chosen, const(2, 32))
    ref = lane.intrinsic(
        "i32", "amdgcn.ds.bpermute", f"i32 {place.ref}, i32 {value.ref}", "i32, i32"
    )
    lane.give("Rd", [Val(ref, 32, False)])
    lane.give_pred("Pu", const(1, 1) if everyone else inside)


def vote(lane: Lane, ins: Instruction) -> None:
    """VOTE and VOTEU over the lanes that run it."""
    d = lane.d
    operand = ins.get("Pp")
    if not isinstance(operand, Pred):
        raise refused(FORM, "the predicate of a vote", ins)
    voters = ballot(lane, lane.truth(operand))
    if lane.wants("Pu"):
        here, none = ballot(lane, const(1, 1)), d.eq(voters, const(0, 32))
        mode = next((m for m in ("ALL", "ANY", "EQ") if ins.has(m)), "")
        if mode == "ANY":
            told = d.not_(none)
        elif mode == "ALL":
            told = d.eq(voters, here)
        elif mode == "EQ":
            told = d.or_(none, d.eq(voters, here))
        else:
            raise refused(FORM, "mode of a vote", ins)
        lane.give_pred("Pu", told)
    lane.give("Rd", [voters])


_REDUCTIONS = {"SUM": "add", "OR": "or", "XOR": "xor", "MIN": "min", "MAX": "max"}


def redux(lane: Lane, ins: Instruction) -> None:
    """REDUX: a value of all lanes that run it."""
    name = _REDUCTIONS[next((m for m in _REDUCTIONS if ins.has(m)), "SUM")]
    if not any(ins.has(m) for m in _REDUCTIONS):
        name = "and"
    if name in ("min", "max"):
        name = name if ins.has("S32") else f"u{name}"
    value = lane.word("Ra")
    if name in ("add", "xor"):  # LLVM 22 takes a constant for its own sum (llvm-project#193142)
        lane.module.declare("i32 @llvm.amdgcn.softwqm.i32(i32)")
        hidden = lane.fn.emit(f"call i32 @llvm.amdgcn.softwqm.i32(i32 {value.ref})")
        value = Val(hidden, 32, False)
    ref = lane.intrinsic(
        "i32", f"amdgcn.wave.reduce.{name}.i32", f"i32 {value.ref}, i32 0", "i32, i32 immarg"
    )
    lane.give("Rd", [Val(ref, 32, False)])


def elect(lane: Lane, ins: Instruction) -> None:
    """ELECT: the first lane for which the predicate holds."""
    d = lane.d
    operand = ins.get("Pp")
    if not isinstance(operand, Pred):
        raise refused(FORM, "the predicate of ELECT", ins)
    voters = ballot(lane, lane.truth(operand))
    first = d.ctz(voters)
    none = d.eq(voters, const(0, 32))
    lane.give_pred("Pu", d.and_(d.not_(none), d.eq(first, lane.lane_number())))
    lane.give("Rd", [d.select(none, const(-1, 32), first)])


def to_uniform(lane: Lane, ins: Instruction) -> None:
    """R2UR: the first lane's value; Pu: this lane's differs, or, with .OR, Pu held before."""
    d = lane.d
    value = lane.word("Ra")
    first = first_lane(lane, value)
    if lane.wants("Pu"):
        other = d.not_(d.eq(value, first))
        before = ins.get("Pu")
        if ins.has("OR") and isinstance(before, Pred):
            other = d.or_(other, lane.truth(before))
        lane.give_pred("Pu", other)
    lane.give("Rd", [first])


def _match_any(lane: Lane, ins: Instruction) -> None:
    """The lanes that run it with this lane's value: in each turn of a loop, those with the value of
    the first one that is left leave it."""
    d, fn = lane.d, lane.fn
    mine = lane.words("Ra", 2 if ins.has("U64") else 1)
    before, again, end = fn.fresh("match"), fn.fresh("match"), fn.fresh("matched")
    lane.branch(before)
    fn.label(before, keep=True)
    lane.branch(again)
    fn.label(again, keep=True)
    found = fn.name()
    # Each lane has its own: the votes of a turn are in a scalar register, which the next changes.
    old = fn.emit_new(f"phi i32 [ 0, %{before} ], [ {found}, %{again} ]")
    same = const(1, 1)
    for word in mine:
        same = d.and_(same, d.eq(word, first_lane(lane, word)))
    alike = ballot(lane, same)
    fn.do(f"{found} = select i1 {same.ref}, i32 {alike.ref}, i32 {old}")
    fn.do(f"br i1 {same.ref}, label %{end}, label %{again}")
    fn.label(end)
    lane.give("Rd", [Val(found, 32, False)])


def agree(lane: Lane, test: Instruction) -> Val:
    """Whether the lanes that pass a test's guard are all lanes of its mask that run it: what
    BRA.CONV asks where all live lanes are."""
    d = lane.d
    passing = ballot(lane, lane.truth(test.guard))
    wanted = d.and_(ballot(lane, const(1, 1)), lane.word("Ra"))
    return d.eq(passing, wanted)


def match(lane: Lane, ins: Instruction) -> None:
    """MATCH.ALL: all lanes that run it if their values are equal.  MATCH.ANY: see there."""
    if not ins.has("ALL"):
        _match_any(lane, ins)
        return
    d = lane.d
    same = const(1, 1)
    for word in lane.words("Ra", 2 if ins.has("U64") else 1):
        same = d.and_(same, d.eq(word, first_lane(lane, word)))
    here = ballot(lane, const(1, 1))
    one = d.eq(ballot(lane, same), here)
    lane.give("Rd", [d.select(one, here, const(0, 32))])
    lane.give_pred("Pu", one)


def step(lane: Lane, ins: Instruction, guard: Guard) -> None:
    """One of these instructions, run by the lanes with its guard."""
    write = {
        "SHFL": shuffle, "VOTE": vote, "VOTEU": vote, "REDUX": redux, "ELECT": elect,
        "R2UR": to_uniform, "MATCH": match,
    }.get(ins.mnemonic)  # fmt: skip
    if write is None:
        raise refused(FORM, ins.mnemonic, ins)
    lane.under(guard, lambda: write(lane, ins), lane.lost)


__all__ = ["agree", "ballot", "first_lane", "one_way", "step", "whole"]
