"""BRA.DIV, nvcc's test whether all lanes of a mask are here, replaced by a meeting of these lanes.

nvcc writes ``BRA.DIV ~URZ, SLOW; SHFL`` for a shuffle of the whole warp: if a live lane is missing,
the code at SLOW waits for it with WARPSYNC, shuffles, and comes back.  In either way the shuffle is
done by all live lanes together, or the warp hangs.  So the branch is a WARPSYNC of all lanes, and
SLOW is never run; it is checked that SLOW does nothing but wait, move registers and see lanes.
SLOW waits in a function that other shuffles call, too, or in a section of a class: where both arms
of a branch shuffle, the lanes of the arms meet there.  So it is also checked that lanes at two such
shuffles never wait at the same time (:func:`settled`).

Where the mask comes from a vote, VOTE.ANY with PT, the lanes are those that voted: the branch is
left out if no other lanes can be there, and all of these are (`together.py`).

BRA.CONV jumps over a WARPSYNC if its lanes are here already; WARPSYNC would then do nothing, so the
branch is left out.  It also jumps over calls of functions that wait for all lanes and shuffle,
where nothing uses what they shuffle: then all lanes meet, and jump.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sassxlate.cfg import Cfg, Uniformity, analyse
from sassxlate.cfg.build import conditions, is_state_test
from sassxlate.cfg.graph import SIZE, Block
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.sass.instruction import Imm, Instruction, Label, Pred, Reg, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.idioms.replaced import rebuilt
from sassxlate.lowering.tier.refusal import FLOW, refused
from sassxlate.lowering.tier.warp.agreed import mask_of, waits_for
from sassxlate.lowering.tier.warp.turns import two_places

_ALL = 0xFFFFFFFF
_COPIES = 4  # most moves between a vote and the test of its lanes
_SKIPPED = 8  # most instructions that BRA.CONV jumps over, and with a call
_CALLING = 24
_TRUE = Pred("P", 7)
_ANYWHERE = "anywhere"  # a slow way that waits where others may


def _moved(ins: Instruction) -> int | None:
    """The constant that an instruction moves to its register."""
    product = ins.mnemonic == "IMAD" and ins.has("MOV")
    if not ins.guard.is_true or not (product or ins.mnemonic in ("MOV", "UMOV")):
        return None
    source = ins.get("Rc" if product else "Rb")
    return source.value & _ALL if isinstance(source, Imm) else None


def _constant(cfg: Cfg, before: tuple[Instruction, ...], ref: RegRef) -> int | None:
    """The value of a register after some instructions of a block, if it is always the same."""
    for ins in reversed(before):
        if ref in ins.writes:
            return _moved(ins)
    written = {_moved(i) for b in cfg.blocks for i in b.instructions if ref in i.writes}
    return next(iter(written)) if len(written) == 1 else None


def _whole(cfg: Cfg, before: tuple[Instruction, ...], mask: object) -> bool:
    """Whether a mask is of all lanes."""
    if not isinstance(mask, Reg):
        return isinstance(mask, Imm) and mask.value & _ALL == _ALL
    value = 0 if mask.is_zero else _constant(cfg, before, RegRef(mask.file, mask.index))
    if value is None:
        return False
    return (value ^ (_ALL if mask.inv else 0)) & _ALL == _ALL


def _vote(cfg: Cfg, block: Block, mask: object) -> int | None:
    """The offset of the vote that a mask before the end of a block comes from, on every way there:
    the lanes that ran it, without a condition."""
    if not isinstance(mask, Reg) or mask.is_zero or mask.inv:
        return None
    ref, place, end = RegRef(mask.file, mask.index), block.index, len(block.instructions) - 1
    for _ in range(_COPIES):
        found = _writers(cfg, place, end, ref)
        if found is None or len(found) != 1:
            return None
        place, end = next(iter(found))
        ins = cfg.blocks[place].instructions[end]
        if not ins.guard.is_true:
            return None
        if ins.mnemonic in ("VOTE", "VOTEU"):
            voter, target = ins.get("Pp"), ins.get("Rd")
            told = isinstance(target, Reg) and RegRef(target.file, target.index) == ref
            return ins.offset if told and isinstance(voter, Pred) and voter.is_true else None
        source = ins.get({"R2UR": "Ra", "MOV": "Rb", "UMOV": "Rb"}.get(ins.mnemonic, ""))
        if ins.has("OR") or not isinstance(source, Reg) or source.is_zero or source.inv:
            return None
        ref = RegRef(source.file, source.index)
    return None


def _writers(cfg: Cfg, block: int, end: int, ref: RegRef) -> set[tuple[int, int]] | None:
    """The instructions, by block and place, whose value a register may have before a place; None
    if it may have its first value."""
    found: set[tuple[int, int]] = set()
    seen: set[int] = set()
    work = [(block, end)]
    while work:
        n, stop = work.pop()
        inside = cfg.blocks[n].instructions
        at = next((at for at in range(stop - 1, -1, -1) if ref in inside[at].writes), None)
        if at is not None:
            found.add((n, at))
            continue
        before = cfg.predecessors[n]
        if not before or n == 0:
            return None
        for edge in before:
            if edge.src not in seen:
                seen.add(edge.src)
                work.append((edge.src, len(cfg.blocks[edge.src].instructions)))
    return found


@dataclass(frozen=True, slots=True)
class Tests:
    """What was put in for tests of the warp, by offset: the votes of the lanes that must be there;
    the names of the places where lanes wait if not all are there, for meetings of all lanes; the
    tests whether masks agree, to be made where all lanes are."""

    votes: Mapping[int, int]
    meetings: Mapping[int, str]
    agreed: Mapping[int, Instruction]


def replaced(cfg: Cfg, kernel: Kernel) -> tuple[Cfg, Tests]:
    """The graph without tests of the warp, and with masks of all lanes as immediates.  It must be
    shown that the lanes of votes are there (:mod:`.together`), and that lanes meet at one place
    (:func:`settled`).

    Raises Refused (SX0463) for a test of another kind.
    """
    instructions: list[Instruction] = []
    changed = False
    votes: dict[int, int] = {}
    meetings: dict[int, str] = {}
    agreed: dict[int, Instruction] = {}
    unrun: dict[int, Instruction] = {}
    done: set[int] = set()  # the barriers of slow ways
    jumps: dict[int, Instruction] = {}
    for block in cfg.blocks:
        last, before = block.last, block.instructions[:-1]
        mask = last.get("Ra")
        slow = _slow(last)
        own = None if slow is None else mask_of(block)
        if last.mnemonic == "BRA" and any(p.is_false for p in conditions(last)):
            last = unrun[last.offset] = _nothing(last)  # no lane ever takes it
        elif own is not None and slow is not None and waits_for(cfg, slow, own):
            agreed[last.offset] = last
            if last.has("CONV"):
                jumps[slow] = unrun[slow] = _jump(last)
            last = unrun[last.offset] = replace(_nothing(last), reads=last.reads)
        elif last.mnemonic == "BRA" and last.has("CONV"):
            if _skips_waiting(cfg, last):
                last = _nothing(last)
            elif _whole(cfg, before, mask) and (met := _skips_meeting(cfg, last)) is not None:
                done |= met
                after = last.offset + SIZE
                jumps[after] = _jump(last)
                meetings[last.offset] = _waits_at(cfg, after)
                last = _meeting(last)
            else:
                raise refused(FLOW, "this test of the warp", last)
        elif is_state_test(last):
            if not last.has("DIV") or not all(p.is_true for p in conditions(last)):
                raise refused(FLOW, "this test of the warp", last)
            if _whole(cfg, before, mask):
                label = last.get("target")
                assert isinstance(label, Label)
                meetings[last.offset] = _waits_at(cfg, label.target)
                last = _meeting(last)
            else:
                vote = _vote(cfg, block, mask)
                if vote is None:
                    raise refused(FLOW, "this test of the warp", last)
                votes[last.offset] = vote
                last = _nothing(last)
        elif _waits_by_register(last) and _whole(cfg, before, mask):
            last = _meeting(last)
        changed |= last is not block.last
        instructions += [*before, last]
    tests = Tests(votes, meetings, agreed)
    if not changed:
        return cfg, tests
    out = rebuilt(cfg, kernel, {i.offset: i for i in instructions} | jumps)
    kept = {i.offset for b in out.blocks for i in b.instructions}
    # Where masks agree the slow way is not run.
    run = rebuilt(cfg, kernel, unrun) if unrun else cfg
    for block in run.blocks:
        for ins in block.instructions:
            if ins.offset not in kept and ins.offset not in done and not _harmless(ins):
                raise refused(FLOW, "a test of the warp whose slow way does more", ins)
    return out, tests


def _waits_at(cfg: Cfg, start: int) -> str:
    """A name of the place where the slow way that begins at an offset waits first: of the function
    that it calls, or the class of a section."""
    n = cfg.by_start[start]
    for _ in cfg.blocks:
        last = cfg.blocks[n].last
        called = {cfg.blocks[e.dst].function for e in cfg.successors[n] if e.kind == "call"}
        if called:
            body = [b for b in cfg.blocks if b.function in called]
            deeper = any(e.kind == "call" for b in body for e in cfg.successors[b.index])
            return _ANYWHERE if deeper or len(called) > 1 else f"function {called.pop():#x}"
        if last.mnemonic == "WARPSYNC":
            section = cfg.collectives.by_sync.get(last.offset)
            return f"{last.offset:#x}" if section is None else "; ".join(section.body)
        ways = [e.dst for e in cfg.successors[n]]
        if len(ways) != 1:
            break
        (n,) = ways
    return _ANYWHERE


def settled(
    cfg: Cfg, kernel: Kernel, tests: Tests, facts_of: Callable[[Cfg], Uniformity] = analyse
) -> tuple[Cfg, Uniformity]:
    """The graph with those of the meetings only at which lanes surely come from one place, and
    which lanes run together in it.

    At the others lanes may wait in one function, or in sections of one class, with lanes from other
    places: they are left out.  All lanes must be there, so that the test finds them and nvcc's
    slow way is not run.  Raises Refused (SX0463).
    """
    meetings = dict(tests.meetings)
    if _ANYWHERE in meetings.values():
        meetings = dict.fromkeys(meetings, _ANYWHERE)
    at = {i.offset: i for b in cfg.blocks for i in b.instructions}
    left_out: set[int] = set()
    facts = facts_of(cfg)
    while bad := two_places(cfg, facts, meetings):
        left_out |= bad
        meetings = {offset: name for offset, name in meetings.items() if offset not in bad}
        cfg = rebuilt(cfg, kernel, {offset: _nothing(at[offset]) for offset in bad})
        facts = facts_of(cfg)
    for block in cfg.blocks:
        for ins in block.instructions:
            if ins.offset in left_out and not facts.converged[block.index]:
                raise refused(FLOW, "a shuffle whose lanes may come from several places", ins)
    return cfg, facts


def _skips_waiting(cfg: Cfg, ins: Instruction) -> bool:
    """Whether a branch jumps over code that only waits for lanes of this warp."""
    label = ins.get("target")
    if not isinstance(label, Label) or label.target <= ins.offset:
        return False
    skipped = [
        i for b in cfg.blocks for i in b.instructions if ins.offset < i.offset < label.target
    ]
    if any(i.mnemonic == "CALL" for i in skipped) or len(skipped) > _SKIPPED:
        return False
    return any(i.mnemonic == "WARPSYNC" for i in skipped) and all(map(_harmless, skipped))


def _skips_meeting(cfg: Cfg, ins: Instruction) -> set[int] | None:
    """If a branch jumps over a call of a function that waits for all lanes of the warp, and over
    nothing else that matters but what follows the call in this function and the branch's target
    alike: the offsets of that in the function; otherwise None."""
    label = ins.get("target")
    if not isinstance(label, Label) or not all(p.is_true for p in conditions(ins)):
        return None
    end = label.target
    here = [b for b in cfg.blocks if ins.offset < b.start < end]
    skipped = [i for b in here for i in b.instructions]
    if not 0 < len(skipped) <= _CALLING or here[-1].end != end or not all(map(_harmless, skipped)):
        return None
    inside = {b.index for b in here}
    calls = [e for b in here for e in cfg.successors[b.index] if e.kind == "call"]
    ways = [e for b in here for e in cfg.successors[b.index] if e.kind not in ("call", "ret")]
    away = {cfg.blocks[e.dst].start for e in ways if e.dst not in inside}
    if len(calls) != 1 or len(away) != 1:
        return None
    called = cfg.blocks[calls[0].dst].function
    body = [i for b in cfg.blocks if b.function == called for i in b.instructions]
    waits = [n for n, i in enumerate(body) if i.mnemonic == "WARPSYNC"]
    if any(i.mnemonic == "CALL" for i in body) or len(waits) != 1:
        return None
    if not _for_all(cfg, body, waits[0], skipped) or not all(map(_harmless, body[: waits[0]])):
        return None
    more = [i for i in body if not _harmless(i)]
    to = away.pop()
    alike = [i for b in cfg.blocks for i in b.instructions if end <= i.offset < to]
    plain = all(i.mnemonic == "BAR" and i.guard.is_true for i in more)
    straight = len([b for b in cfg.blocks if end <= b.start < to]) == len(more)
    if not plain or not straight or [i.text for i in more] != [i.text for i in alike]:
        return None
    return {i.offset for i in more}


def _for_all(
    cfg: Cfg, body: Sequence[Instruction], place: int, skipped: Sequence[Instruction]
) -> bool:
    """Whether a WARPSYNC in a called function waits for all lanes."""
    mask = body[place].get("Ra")
    if not body[place].guard.is_true or body[place].has("EXCLUSIVE"):
        return False
    if not isinstance(mask, Reg) or mask.is_zero:
        return _whole(cfg, (), mask)
    ref = RegRef(mask.file, mask.index)
    given = [i for i in skipped if ref in i.writes]
    early = [i for i in body[:place] if ref in i.writes]
    return len(given) == 1 and not early and _moved(given[0]) == _ALL and not mask.inv


def _slow(ins: Instruction) -> int | None:
    """The offset of the slow way of a test of the warp."""
    label = ins.get("target")
    if ins.mnemonic != "BRA" or not isinstance(label, Label):
        return None
    if ins.has("CONV"):
        return ins.offset + SIZE
    return label.target if ins.has("DIV") else None


def _jump(ins: Instruction) -> Instruction:
    """A branch to the target of BRA.CONV, after it."""
    return replace(
        ins, offset=ins.offset + SIZE, modifiers=(), reads=frozenset(), guard=_TRUE,
        operands={"target": ins.operands["target"], "Pp": _TRUE},
    )  # fmt: skip


def _waits_by_register(ins: Instruction) -> bool:
    """Whether it is a plain WARPSYNC whose mask is in a register."""
    plain = ins.mnemonic == "WARPSYNC" and not ins.has("COLLECTIVE") and not ins.has("EXCLUSIVE")
    return plain and ins.guard.is_true and isinstance(ins.get("Ra"), Reg)


def _meeting(ins: Instruction) -> Instruction:
    return replace(
        ins, mnemonic="WARPSYNC", modifiers=(), operands={"Ra": Imm(_ALL, 32), "Pp": _TRUE},
        reads=frozenset(), writes=frozenset(), guard=_TRUE,
    )  # fmt: skip


def _nothing(ins: Instruction) -> Instruction:
    return replace(_meeting(ins), mnemonic="NOP", operands={})


def _harmless(ins: Instruction) -> bool:
    """Whether it neither accesses memory nor ends a lane, nor waits for other warps."""
    t = traits(ins)
    stays = t.memory is None or t.memory.space == "constant"
    return stays and t.transfer != "exit" and ins.mnemonic != "BAR"


__all__ = ["Tests", "replaced", "settled"]
