"""Where a kernel computes on a fast path, or calls a function if its operands are not of the usual
kind: a branch whose arms only compute and meet again, one of them through a call.

What leaves such a *site* is written as expressions of the values that the function is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from sassxlate.cfg import Cfg, liveness
from sassxlate.cfg.build import conditions, is_state_test
from sassxlate.cfg.graph import SIZE, Block, Edge
from sassxlate.cfg.loops import structure
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.idioms.expressions import Expressions
from sassxlate.lowering.idioms.needed import needed, summary
from sassxlate.lowering.idioms.states import NoExpression, Registers, State, chosen, through

_INSIDE = ("taken", "fall", "sync", "back")
_ARM = 6  # most blocks of an arm
_NAMES = ("a", "b")

Unit = tuple[RegRef, ...]  # a register, or the two of a double


@dataclass(frozen=True, slots=True)
class Site:
    """``branch`` chooses between the arms (it is the call if that is conditional); ``results`` are
    the registers that the function returns and its caller reads, ``inputs`` those that it is
    given.  ``outcome`` are the expressions of what leaves the site, over ``given``."""

    branch: Instruction
    call: Instruction
    results: tuple[RegRef, ...]
    outcome: tuple[int, ...]
    given: Mapping[RegRef, int]
    taken: bool  # whether the branch is taken to the call
    graph: Expressions

    def digests(self) -> Iterator[tuple[str, tuple[Unit, ...]]]:
        """The names that the outcome has as a function of one or two of the given values, and
        which."""
        units = self._units()
        for count in (1, 2):
            for some in combinations(units, count):
                for order in permutations(some):
                    named: dict[int, str] = {}
                    for name, unit in zip(_NAMES, order, strict=False):
                        words = [self.given[ref] for ref in unit]
                        for n, word in enumerate(words):
                            named.setdefault(word, f"{name}{n}")
                        if len(words) > 1:
                            named.setdefault(self.graph.concat(words[1], words[0]), name)
                    if len(named) == sum(2 * len(unit) - 1 for unit in order):
                        text = self.graph.digest(self.outcome, named)
                        if text:
                            yield text, order

    def _units(self) -> list[Unit]:
        refs = sorted((r for r in self.given if r.file == "R"), key=lambda r: r.index)
        pairs = [(a, b) for a in refs for b in refs if a != b and self._is_double(a, b)]
        return [*((ref,) for ref in refs), *pairs]

    def _is_double(self, low: RegRef, high: RegRef) -> bool:
        """Whether two registers are likely the words of a double."""
        if low.index % 2 == 0 and high.index == low.index + 1:
            return True
        graph, (a, b) = self.graph, (self.given[low], self.given[high])
        if "given" in (graph.ops[a], graph.ops[b]):  # hidden: any of them may belong together
            return not graph.args[a] and not graph.args[b]
        if graph.ops[a] != graph.ops[b]:
            return False
        if graph.ops[a] == "extract":
            return graph.args[a] == graph.args[b] and graph.given[a] < graph.given[b]
        leaves = not graph.args[a] and graph.ops[a] != "const"
        number = graph.given[b]
        return leaves and graph.given[a] == (*number[:-1], number[-1] - 1)


class Finder:
    """Looks for the sites of one kernel."""

    def __init__(
        self, cfg: Cfg, graph: Expressions | None = None, hidden: Mapping[int, int] | None = None
    ) -> None:
        self.cfg = cfg
        self.graph = Expressions() if graph is None else graph
        self.needed: list[frozenset[RegRef]] = []
        self.starts: dict[int, State] = {}
        self.states: dict[int, State] = {}
        self.hidden: Mapping[int, int] = {} if hidden is None else hidden

    def sites(self) -> Iterator[Site]:
        calls = [b for b in self.cfg.blocks if self._is_call(b)]
        if not calls:
            return
        entries = {e.dst for b in calls for e in self.cfg.successors[b.index] if e.kind == "call"}
        known = {n: found for n in entries if (found := summary(self.cfg, n)) is not None}
        if not known:
            return
        self.needed = needed(self.cfg, liveness(self.cfg), known)
        for function in {b.function for b in calls}:
            self._states(function)
        for block in calls:
            try:
                site = self._site(block)
            except NoExpression:
                continue
            if site is not None:
                yield site

    def opaque(self, site: Site) -> Site | None:
        """The site of a 64-bit integer division with what the function is given as leaves: a sum
        that is divided would become one with the sums of the division.  None if they are leaves,
        or the function converts no such integer."""
        graph, cfg = self.graph, self.cfg
        block = next(b for b in cfg.blocks if b.last is site.call)
        callee = next(e.dst for e in cfg.successors[block.index] if e.kind == "call")
        inside = [b for b in cfg.blocks if b.function == cfg.blocks[callee].start]
        converts = any(i.mnemonic == "I2F" and i.has("U64") for b in inside for i in b.instructions)
        computed = [n for n in site.given.values() if graph.args[n]]
        if not computed or not converts:
            return None
        hidden = {n: graph.leaf("given", graph.widths[n], n) for n in computed}
        other = Finder(cfg, graph, hidden)
        other.needed = self.needed
        other._states(block.function)
        try:
            return other._site(block)
        except NoExpression:
            return None

    def _is_call(self, block: Block) -> bool:
        if traits(block.last).transfer != "call" or block.last.get("target") is None:
            return False
        kinds = [e.kind for e in self.cfg.successors[block.index]]
        return kinds.count("call") == 1 and "taken" not in kinds

    def values(self) -> None:
        """Finds the registers before each block, by ``starts``."""
        for function in self.cfg.functions:
            self._states(function)

    def steps(self, block: Block) -> Iterator[tuple[int, State]]:
        """The registers after each instruction of a block, in one state that changes."""
        if block.index in self.starts:
            state = self.starts[block.index].copy()
            for at, ins in enumerate(block.instructions):
                state.any_step(ins, self._result)
                yield at, state

    # -- the values before each block ----------------------------------------------------------

    def _unknown(self, kind: str, place: int) -> State:
        graph, files = self.graph, ("R", "UR", "P", "UP", "B")

        def missing(ref: RegRef) -> int:
            width = 32 if ref.file in ("R", "UR") else 1
            return graph.leaf(kind, width, place, files.index(ref.file), ref.index)

        return State(graph, missing, hidden=self.hidden)

    def _states(self, function: int) -> None:
        """The registers at the end of each block of a function.  What differs by the way to a block
        is unknown there."""
        cfg = self.cfg
        blocks = [b for b in cfg.blocks if b.function == function]
        if not blocks:
            return  # code that the kernel jumps to as well: of the first function that reaches it
        written = self._written_in_loops()
        order = self._order(blocks)
        place = {n: i for i, n in enumerate(order)}
        for n in order:
            block = cfg.blocks[n]
            before = [e for e in cfg.predecessors[n] if e.kind in _INSIDE]
            state = self._unknown("before", n)
            known = [self.states[e.src] for e in before if e.src in self.states
                     and place.get(e.src, n) < place[n]]  # fmt: skip
            kinds = {e.kind for e in cfg.predecessors[n]}
            called = bool(kinds & {"back", "call"}) or n == order[0]
            shared = any(e.src not in place for e in before)  # with another function
            if known and not called and not shared:
                looping = len(known) < len(before)
                lost = written.get(n, frozenset()) if looping else frozenset[RegRef]()
                if len(before) == 1:
                    state = known[0].copy()
                elif not looping or n in written:
                    self._join(state, known, lost)
            self.starts[n] = state.copy()
            for ins in block.instructions:
                state.any_step(ins, self._result)
            self.states[n] = state

    @staticmethod
    def _join(into: State, known: Sequence[State], lost: frozenset[RegRef]) -> None:
        first = known[0]
        everything = set[RegRef]().union(*(s.registers for s in known))
        if any(s.missing is not first.missing for s in known):
            everything = set[RegRef]().intersection(*(s.registers for s in known))
        for ref in everything - lost:
            values = {s.read(ref) for s in known}
            if len(values) == 1:
                into.registers[ref] = values.pop()

    def _result(self, ref: RegRef, offset: int) -> int:
        width = 32 if ref.file in ("R", "UR") else 1
        return self.graph.leaf("result", width, offset, ord(ref.file[0]), ref.index)

    def _order(self, blocks: Sequence[Block]) -> list[int]:
        """A depth-first order in which blocks come after those before them, loops apart."""
        inside = {b.index for b in blocks}
        seen: set[int] = set()
        out: list[int] = []
        work = [(self.cfg.by_start[blocks[0].function], False)]
        while work:
            n, done = work.pop()
            if done:
                out.append(n)
                continue
            if n in seen:
                continue
            seen.add(n)
            work.append((n, True))
            work += [
                (e.dst, False)
                for e in self.cfg.successors[n]
                if e.kind in _INSIDE and e.dst in inside
            ]
        return out[::-1]

    def _written_in_loops(self) -> dict[int, frozenset[RegRef]]:
        """By the header of a loop, what its blocks may write; loops with calls are left out."""
        out: dict[int, frozenset[RegRef]] = {}
        for loop in structure(self.cfg).loops:
            body = [self.cfg.blocks[n] for n in loop.body]
            out[loop.header] = frozenset(w for b in body for i in b.instructions for w in i.writes)
        return out

    # -- one site ----------------------------------------------------------

    def _site(self, block: Block) -> Site | None:
        cfg, call = self.cfg, block.last
        back = cfg.by_start.get(call.offset + SIZE)
        callee = next(e.dst for e in cfg.successors[block.index] if e.kind == "call")
        ways = [e for e in cfg.successors[block.index] if e.kind in ("back", "fall")]
        if back is None or {e.dst for e in ways} != {back}:
            return None
        guarded = not all(p.is_true for p in conditions(call))
        way = [(block.index, "")] if guarded else self._back_to_branch(block.index)
        if way is None:
            return None
        branch, slow = cfg.blocks[way[0][0]], way[1:]
        start = branch.index
        if is_state_test(branch.last) or branch.last.has("ANY"):
            return None
        if start not in self.states:
            return None  # of code that functions share: its function's entry does not lead there
        where = self._before_last(start).truth(conditions(branch.last))
        return self._compared(branch, where, slow, block, back, callee, guarded)

    def _before_last(self, n: int) -> State:
        """The registers before the last instruction of a block, which only transfers control."""
        return self.states[n].copy()

    def _back_to_branch(self, n: int) -> list[tuple[int, str]] | None:
        """The blocks from a branch to the one that calls, each entered from the one before."""
        way: list[tuple[int, str]] = [(n, "")]
        while len(way) < _ARM:
            before = self.cfg.predecessors[way[0][0]]
            if len(before) != 1 or not self._is_step(before[0]):
                return None
            block = self.cfg.blocks[before[0].src]
            way.insert(0, (block.index, before[0].kind))
            if len(self.cfg.successors[block.index]) > 1:
                one = traits(block.last).transfer == "jump" and block.last.mnemonic == "BRA"
                return way if one else None
        return None

    def _is_step(self, edge: Edge) -> bool:
        """Whether lanes go on by this edge without waiting for other warps or named lanes."""
        waits = edge.kind == "sync" and self.cfg.blocks[edge.src].last.mnemonic != "BSYNC"
        return edge.kind in ("taken", "fall", "sync") and not waits

    def _ahead(self, n: int) -> list[int]:
        """The blocks that follow one another without a choice."""
        out = [n]
        while len(out) < _ARM:
            block = self.cfg.blocks[out[-1]]
            edges = self.cfg.successors[block.index]
            if len(edges) != 1 or not self._is_step(edges[0]):
                break
            out.append(edges[0].dst)
        return out

    def _compared(
        self, branch: Block, where: int, slow: Sequence[tuple[int, str]], block: Block, back: int,
        callee: int, guarded: bool,
    ) -> Site | None:  # fmt: skip
        cfg, graph = self.cfg, self.graph
        start = self._before_last(branch.index)
        after = self._ahead(back)
        if guarded:
            other: list[int] = []
            meeting, on_call, taken = back, where, False
        else:
            first = slow[0][0]
            leaves = [e for e in cfg.successors[branch.index] if e.dst != first]
            if len(leaves) != 1 or len(cfg.successors[branch.index]) != 2:
                return None
            fast = self._ahead(leaves[0].dst)
            common = next((n for n in fast if n in after), None)
            if common is None:
                return None
            meeting, other = common, fast[: fast.index(common)]
            if any(len(cfg.predecessors[n]) != 1 for n in other):
                return None
            taken = leaves[0].kind == "fall"
            on_call = where if taken else graph.not_(where)
        returned = after[: after.index(meeting)]
        if any({e.src for e in cfg.predecessors[n]} - {returned[i - 1]}
               for i, n in enumerate(returned) if i):  # fmt: skip
            return None
        called = start.copy()
        called.assume(on_call, 1)
        for n, _ in slow:
            self._all(cfg.blocks[n], called)
        given: Registers = {}

        def argument(ref: RegRef) -> int:
            given[ref] = called.read(ref)
            return given[ref]

        start_of_back = cfg.blocks[back].start
        inside = through(cfg, callee, State(graph, argument), start_of_back)
        # Only what the function writes differs from the state before it.
        results = tuple(sorted(
            (r for r in inside.registers.keys() & self.needed[back] if r.file != "B"),
            key=lambda r: r.index,
        ))  # fmt: skip
        if not 1 <= len(results) <= 2 or any(r.file != "R" for r in results):
            return None
        end = called.copy()
        end.registers.update(inside.registers)
        for n in returned:
            self._all(cfg.blocks[n], end)
        straight = start.copy()
        straight.assume(on_call, 0)
        for n in other:
            self._all(cfg.blocks[n], straight)
        live = self.needed[meeting]
        changed = [r for r in live if r.file != "B" and straight.read(r) != end.read(r)]
        outcome = chosen(on_call, end, straight)
        if not changed or len(changed) > 2:
            return None
        leaving = self._in_order(changed, results, called, returned)
        if leaving is None:
            return None
        return Site(
            branch.last, block.last, results, tuple(outcome.read(r) for r in leaving), given,
            taken, graph,
        )  # fmt: skip

    def _in_order(
        self, changed: Sequence[RegRef], results: Sequence[RegRef], called: State,
        returned: Sequence[int],
    ) -> list[RegRef] | None:  # fmt: skip
        """What leaves the site, in the order of the function's results; None if it is not just
        these."""
        marked = called.copy()
        marks = [self.graph.leaf("mark", 32, n) for n, _ in enumerate(results)]
        marked.registers.update(zip(results, marks, strict=True))
        for n in returned:
            self._all(self.cfg.blocks[n], marked)
        found = {marked.read(ref): ref for ref in changed}
        return [found[m] for m in marks] if found.keys() == set(marks) else None

    def _all(self, block: Block, state: State) -> None:
        ends = traits(block.last).ends_block
        for ins in block.instructions[:-1] if ends else block.instructions:
            state.step(ins)


__all__ = ["Finder", "Site", "Unit"]
