"""Builds the control-flow graph of a kernel from its instructions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sassxlate.cfg.collective_sections import NONE, Collectives, collectives
from sassxlate.cfg.graph import SIZE, Block, Cfg, Edge, EdgeKind
from sassxlate.disasm.sass.instruction import Imm, Instruction, Label, Pred
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import CfgError, Where


def _target(ins: Instruction) -> int | None:
    label = ins.get("target")
    return label.target if isinstance(label, Label) else None


def _error(code: str, message: str, ins: Instruction) -> CfgError:
    return CfgError(code, message, Where(offset=ins.offset, inst=ins.text))


def conditions(ins: Instruction) -> tuple[Pred, ...]:
    """The predicates that must all hold for the branch: its guard and its predicate operands.

    BRA.U has its uniform predicate in a register's position (sm_90 and later).
    """
    named = (ins.get("Pp"), ins.get("Ra")) if ins.mnemonic != "BAR" else ()  # BAR.RED reduces it
    return (ins.guard, *(p for p in named if isinstance(p, Pred)))


def is_state_test(ins: Instruction) -> bool:
    """BRA.DIV and BRA.CONV, which test the warp: all running lanes go the same way."""
    return ins.mnemonic == "BRA" and (ins.has("DIV") or ins.has("CONV"))


def is_conditional(ins: Instruction) -> bool:
    """Whether control may also fall through: there is a predicate, or a test of the warp."""
    return is_state_test(ins) or not all(p.is_true for p in conditions(ins))


def _jump_targets(ins: Instruction, indirect: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Branch targets inside the kernel, without those of calls and returns."""
    transfer = traits(ins).transfer
    if transfer == "indirect":
        if ins.offset not in indirect:
            raise _error("SX0302", "indirect branch whose targets the cubin does not list", ins)
        return indirect[ins.offset]
    if transfer == "jump":
        target = _target(ins)
        if target is None:
            raise _error("SX0303", "branch without a target", ins)
        return (target,)
    return ()


def _plain_calls(
    by_offset: Mapping[int, Instruction],
    indirect: Mapping[int, tuple[int, ...]],
    syscalls: frozenset[int],
) -> frozenset[int]:
    """Calls that never return, so they are jumps: CALL.REL.NOINC is also the compiler's far jump.

    A call is a jump if no RET can be reached from its target, skipping over nested calls, or if its
    return site's offset is no constant of the code: a far jump in a function that returns.  (The
    return address is a register that the caller sets itself; the call pushes nothing.)
    """
    calls = {
        o: t
        for o, i in by_offset.items()
        if i.mnemonic == "CALL" and o not in syscalls and (t := _target(i)) is not None
    }
    if not calls:
        return frozenset()
    constants = _constants(by_offset)
    far = {o for o in calls if by_offset[o].has("REL") and o + SIZE not in constants}
    found = _Returns(by_offset, indirect, calls, far)
    return frozenset(far | {o for o, t in calls.items() if not found.comes_back(t)})


class _Returns:
    """Which calls return.  (A function in a function would be a cycle, which keeps all of the
    kernel's instructions until Python's collector finds it.)"""

    def __init__(
        self,
        by_offset: Mapping[int, Instruction],
        indirect: Mapping[int, tuple[int, ...]],
        calls: Mapping[int, int],
        far: set[int],
    ) -> None:
        self._by_offset, self._indirect, self._calls = by_offset, indirect, calls
        self._far = far
        self._known: dict[int, bool] = {}

    def comes_back(self, entry: int) -> bool:
        """Whether a RET can be reached from a call's target."""
        if entry in self._known:
            return self._known[entry]
        self._known[entry] = False  # a cycle of calls alone never returns
        seen: set[int] = set()
        work = [entry]
        while work and not self._known[entry]:
            offset = work.pop()
            ins = self._by_offset.get(offset)
            if ins is None or offset in seen:
                continue
            seen.add(offset)
            transfer, target = traits(ins).transfer, _target(ins)
            if transfer == "return":
                self._known[entry] = True
            if offset in self._calls and offset not in self._far:
                if self.comes_back(self._calls[offset]) or is_conditional(ins):
                    work.append(offset + SIZE)
                continue
            if transfer == "indirect":
                work.extend(self._indirect.get(offset, ()))
            elif target is not None and (
                transfer == "jump" or ins.mnemonic == "WARPSYNC" or offset in self._far
            ):
                work.append(target)
            ends = transfer in ("jump", "indirect", "exit", "return") or offset in self._far
            if not ends or is_conditional(ins):
                work.append(offset + SIZE)
        return self._known[entry]


def _constants(by_offset: Mapping[int, Instruction]) -> frozenset[int]:
    """All immediate operands: a relative call is preceded by a move of its return site's offset."""
    return frozenset(
        operand.value
        for ins in by_offset.values()
        for operand in ins.operands.values()
        if isinstance(operand, Imm)
    )


def _walk(
    by_offset: dict[int, Instruction],
    entry: int,
    indirect: Mapping[int, tuple[int, ...]],
    syscalls: frozenset[int],
    plain: frozenset[int],
    pointers: tuple[int, ...],
) -> tuple[set[int], set[int], dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]:
    """Reachable instructions of one function, its block starts, its calls (offset -> callees)."""
    seen: set[int] = set()
    leaders: set[int] = {entry}
    jumps: dict[int, tuple[int, ...]] = {}
    calls: dict[int, tuple[int, ...]] = {}
    work = [entry]
    while work:
        offset = work.pop()
        while offset not in seen:
            ins = by_offset.get(offset)
            if ins is None:
                raise CfgError("SX0301", "control leaves the kernel's code", Where(offset=offset))
            seen.add(offset)
            after = offset + SIZE
            if not traits(ins).ends_block:
                offset = after
                continue
            targets = _jump_targets(ins, indirect)
            if offset in plain:
                targets = (_target(ins) or 0,)
            jumps[offset] = targets
            leaders.update(targets)
            work.extend(targets)
            if ins.mnemonic == "CALL" and offset not in syscalls and offset not in plain:
                target = _target(ins)
                calls[offset] = pointers if target is None else (target,)
                if not calls[offset] and is_conditional(ins):
                    raise _error(
                        "SX0304", "call through a register, but no function's address is taken", ins
                    )
            elif ins.mnemonic == "WARPSYNC" and _target(ins) is not None:
                leaders.add(_target(ins) or 0)
                work.append(_target(ins) or 0)
            # A call through a register never returns if no function has its address taken.
            passes = traits(ins).transfer in ("call", "wait")
            passes = passes and calls.get(offset) != ()
            goes_on = is_conditional(ins) or (passes and offset not in plain)
            if not goes_on:
                break
            leaders.add(after)
            offset = after
    return seen, leaders, jumps, calls


def build(
    name: str,
    arch: int,
    instructions: Sequence[Instruction],
    indirect: Mapping[int, tuple[int, ...]] | None = None,
    syscalls: Iterable[int] = (),
    pointers: Iterable[int] = (),
    before: Collectives = NONE,
) -> Cfg:
    """The graph of the kernel whose entry is the first instruction.

    ``indirect`` lists the targets of each BRX by its offset (EIATTR_INDIRECT_BRANCH_TARGETS);
    ``syscalls`` the offsets of calls of the driver's own functions, which are not control flow;
    ``pointers`` the functions that a call through a register may reach; ``before`` the collective
    sections of the graph whose instructions these are, some of them changed.
    Raises CfgError when control leaves the code or an indirect target is unknown.
    """
    by_offset = {ins.offset: ins for ins in instructions}
    known = dict(indirect or {})
    builtin = frozenset(syscalls)
    callable_ = tuple(sorted(set(pointers)))
    plain = _plain_calls(by_offset, known, builtin)
    owner: dict[int, int] = {}
    reached: dict[int, set[int]] = {}  # by function
    leaders: set[int] = set()
    jumps: dict[int, tuple[int, ...]] = {}
    calls: dict[int, tuple[int, ...]] = {}
    functions: list[int] = [instructions[0].offset if instructions else 0]
    for entry in functions:  # grows while it is walked
        seen, starts, jump, call = _walk(by_offset, entry, known, builtin, plain, callable_)
        reached[entry] = seen
        if owner:
            for offset in seen:
                owner.setdefault(offset, entry)
        else:
            owner = dict.fromkeys(seen, entry)
        leaders |= starts
        jumps |= jump
        calls |= call
        called = dict.fromkeys(c for some in call.values() for c in some)
        functions.extend(c for c in called if c not in functions)
    order = sorted(owner)
    sections = collectives([by_offset[o] for o in order], before)
    left_out: list[Instruction] = []
    for section in sections.by_sync.values():
        if section is not sections.leader(section.sync):  # its lanes run the leader's body
            for offset in range(section.sync + SIZE, section.end + SIZE, SIZE):
                if owner.pop(offset, None) is not None:
                    left_out.append(by_offset[offset])
    if left_out:
        order = [o for o in order if o in owner]
    blocks = _cut(by_offset, order, owner, leaders, calls)
    by_start = {b.start: b.index for b in blocks}
    sites: dict[int, list[int]] = defaultdict(list)
    for offset, callees in sorted(calls.items()):
        for callee in callees:
            sites[callee].append(offset + SIZE)
    edges = _edges(blocks, by_start, jumps, calls, sites, reached, builtin, sections)
    out: list[list[Edge]] = [[] for _ in blocks]
    into: list[list[Edge]] = [[] for _ in blocks]
    for edge in edges:
        out[edge.src].append(edge)
        into[edge.dst].append(edge)
    return Cfg(
        name,
        arch,
        blocks,
        edges,
        tuple(map(tuple, out)),
        tuple(map(tuple, into)),
        by_start,
        tuple(functions),
        {callee: tuple(offsets) for callee, offsets in sites.items()},
        sections,
        tuple(left_out),
    )


def _cut(
    by_offset: dict[int, Instruction],
    order: Sequence[int],
    owner: dict[int, int],
    leaders: set[int],
    calls: Mapping[int, tuple[int, ...]],
) -> tuple[Block, ...]:
    starts = leaders | {c for some in calls.values() for c in some}
    blocks: list[Block] = []
    current: list[Instruction] = []
    first = end = -1
    for offset in order:
        if current and (offset != end or offset in starts):
            blocks.append(Block(len(blocks), first, end, tuple(current), owner[first]))
            current = []
        if not current:
            first = offset
        ins = by_offset[offset]
        current.append(ins)
        end = offset + SIZE
        if traits(ins).ends_block:
            blocks.append(Block(len(blocks), first, end, tuple(current), owner[first]))
            current = []
    if current:
        blocks.append(Block(len(blocks), first, end, tuple(current), owner[first]))
    return tuple(blocks)


def _edges(
    blocks: Sequence[Block],
    by_start: Mapping[int, int],
    jumps: Mapping[int, tuple[int, ...]],
    calls: Mapping[int, tuple[int, ...]],
    sites: Mapping[int, Sequence[int]],
    reached: Mapping[int, set[int]],
    syscalls: frozenset[int],
    sections: Collectives,
) -> tuple[Edge, ...]:
    edges: list[Edge] = []

    def add(src: Block, offset: int, kind: EdgeKind) -> None:
        if offset not in by_start:
            raise _error("SX0301", f"control goes to {offset:#x}, outside the code", src.last)
        edges.append(Edge(src.index, by_start[offset], kind))

    for block in blocks:
        last = block.last
        name, transfer = last.mnemonic, traits(last).transfer
        if not transfer:
            add(block, block.end, "fall")
        elif transfer == "wait":
            meeting = last.offset in sections.by_sync
            add(block, sections.leader(last.offset).sync + SIZE if meeting else block.end, "sync")
        elif name == "ENDCOLLECTIVE":
            here = sections.by_end.get(last.offset)
            if here is None:
                raise _error("SX0306", "end of a collective section without its start", last)
            for target in dict.fromkeys(m.target for m in sections.members(here.sync)):
                add(block, target, "fall" if target == block.end else "taken")
        elif name == "CALL" and last.offset in syscalls:
            add(block, block.end, "fall")
        elif name == "CALL" and last.offset in calls:
            for callee in calls[last.offset]:
                add(block, callee, "call")
            if calls[last.offset]:
                add(block, block.end, "fall" if is_conditional(last) else "back")
        elif name == "RET":
            sharers = [f for f, offsets in reached.items() if last.offset in offsets]
            back = {s for f in sharers for s in sites.get(f, ())}
            for offset in sorted(back):
                add(block, offset, "ret")
            if is_conditional(last):
                add(block, block.end, "fall")
        else:
            for target in dict.fromkeys(jumps.get(last.offset, ())):
                add(block, target, "taken")
            if is_conditional(last):
                add(block, block.end, "fall")
    return tuple(edges)
