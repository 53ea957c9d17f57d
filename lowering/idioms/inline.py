"""32-bit integer quotients and remainders, which nvcc computes in line: by the reciprocal of the
divisor as a float, one step of Newton's, and two corrections.

The last instruction of each chooses between the result and ~0, for a divisor of 0.  What it
computes is named as other expressions are (`known.json`); it then copies the result of one
operation, which takes the place of an instruction that is read no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sassxlate.cfg import Cfg, liveness
from sassxlate.cfg.graph import Block
from sassxlate.cfg.liveness import bits_before
from sassxlate.cfg.loops import structure
from sassxlate.cfg.register_sets import bits_of
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.sass.instruction import (
    Const,
    Imm,
    Instruction,
    Operand,
    Pred,
    Reg,
    RegRef,
)
from sassxlate.disasm.sass.traits import INLINE_QUOTIENTS, traits
from sassxlate.lowering.idioms.expressions import Expressions
from sassxlate.lowering.idioms.known import known
from sassxlate.lowering.idioms.replaced import rebuilt
from sassxlate.lowering.idioms.sites import Finder
from sassxlate.lowering.idioms.states import State

_TRUE = Pred("P", 7)
_CHOOSING = ("LOP3", "SEL")  # what writes a result: ~b under a guard, or a choice
_ROUNDS = 8  # longest chain of divisions of results of others
_MOST = 200  # nodes of one division
_LAST = 254  # the last register that a kernel may have


@dataclass(frozen=True, slots=True)
class Quotient:
    """What instruction ``at`` of a block computes, as an expression of a dividend and a divisor,
    each one of the candidates."""

    block: int
    at: int
    outcome: int
    dividends: tuple[int, ...]
    divisor: int
    graph: Expressions

    def digests(self) -> Iterator[tuple[str, int]]:
        """The names that it has, and the dividend."""
        for n in self.dividends:
            if n != self.divisor:
                yield self.graph.digest((self.outcome,), {n: "a0", self.divisor: "b0"}), n


def _divides(ins: Instruction) -> bool:
    return ins.mnemonic in ("I2F", "UI2F") and ins.has("RP") and not ins.has("U64")


def inline_quotients(cfg: Cfg) -> tuple[Finder, tuple[Quotient, ...]]:
    """Those of a kernel, and the values of its registers."""
    finder = Finder(cfg)
    if not any(_divides(i) for b in cfg.blocks for i in b.instructions):
        return finder, ()
    graph, hidden = finder.graph, dict[int, int]()
    found: tuple[Quotient, ...] = ()
    for _ in range(_ROUNDS):
        # Operands are looked at as if they were given, else the terms of a sum that is divided
        # would be mixed with those of the division.
        finder = Finder(cfg, graph, hidden)
        finder.values()
        found = tuple(_candidates(finder))
        computed = {n for q in found for n in (*q.dividends, q.divisor) if graph.args[n]}
        if computed <= hidden.keys():
            break
        for n in computed - hidden.keys():
            hidden[n] = graph.leaf("given", graph.widths[n], n)
    return finder, found


def _candidates(finder: Finder) -> Iterator[Quotient]:
    graph = finder.graph
    raw = {leaf: n for n, leaf in finder.hidden.items()}
    for block in finder.cfg.blocks:
        if not any(i.mnemonic in _CHOOSING for i in block.instructions):
            continue
        for at, state in finder.steps(block):
            ins = block.instructions[at]
            if ins.mnemonic not in _CHOOSING or len(ins.writes) != 1:
                continue
            (ref,) = ins.writes
            value = state.read(ref)
            value = raw.get(value, value)
            divisor = _divisor(graph, value)
            if divisor is None:
                continue
            dividends = _dividends(graph, value, divisor)
            yield Quotient(block.index, at, value, dividends, divisor, graph)


def _divisor(graph: Expressions, n: int) -> int | None:
    """b of b == 0 ? ~b : x."""
    if graph.ops[n] != "select" or graph.widths[n] != 32:
        return None
    test, zero, _ = graph.args[n]
    if graph.ops[test] != "eq" or graph.ops[zero] != "not":
        return None
    b = graph.args[zero][0]
    return b if graph.args[test][0] == b and graph.value(graph.args[test][1]) == 0 else None


def _dividends(graph: Expressions, n: int, divisor: int) -> tuple[int, ...]:
    """What is multiplied with a reciprocal that depends on the divisor alone."""
    kinds: dict[int, int] = {divisor: 1}  # 0 a constant, 1 of the divisor, 3 of its reciprocal too

    def kind(n: int) -> int:  # 4 of others
        work = [n]
        while work:
            m = work[-1]
            missing = [a for a in graph.args[m] if a not in kinds]
            if m in kinds or not missing:
                work.pop()
            if m in kinds:
                continue
            if missing:
                work += missing
                continue
            out = 0 if graph.ops[m] == "const" else 4 if not graph.args[m] else 0
            for a in graph.args[m]:
                out |= kinds[a]
            kinds[m] = out | (3 if graph.ops[m] == "approx rcp" else 0)
        return kinds[n]

    kind(n)
    if len(kinds) > 50 * _MOST:
        return ()
    out: list[int] = []
    work, seen = list(graph.args[n]), set[int]()
    while work and len(seen) < _MOST:
        m = work.pop()
        if m in seen or kinds.get(m) in (0, 1, 3):
            continue
        seen.add(m)
        if graph.ops[m] == "mul" and graph.widths[m] == 64:
            for r, y in (graph.args[m], graph.args[m][::-1]):
                if kinds[r] == 3 and kinds[y] & 4 and graph.ops[y] == "zext":
                    (y,) = graph.args[y]
                    out.append(_magnitude_of(graph, y))
                    break
            else:
                work += graph.args[m]
            continue
        work += graph.args[m]
    return tuple(dict.fromkeys(out))


def _magnitude_of(graph: Expressions, n: int) -> int:
    """x of x < 0 ? -x : x; others are what they are."""
    if graph.ops[n] == "select":
        test, _, x = graph.args[n]
        if graph.ops[test] == "slt" and graph.args[test][0] == x:
            return x
    return n


# --- in place of the code ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An operation that instruction ``at`` of a block gives the result of."""

    block: int
    at: int
    name: str
    dividend: int
    divisor: int


def _wanted(found: tuple[Quotient, ...]) -> Iterator[_Wanted]:
    for q in found:
        for digest, dividend in q.digests():
            name = known().get(digest)
            if name in INLINE_QUOTIENTS:
                yield _Wanted(q.block, q.at, name, dividend, q.divisor)
                break


def _reciprocals(finder: Finder) -> dict[int, set[int]]:
    """By divisor, the blocks in which the reciprocal of it, or of its magnitude, begins."""
    graph, out = finder.graph, dict[int, set[int]]()
    for block in finder.cfg.blocks:
        if not any(map(_divides, block.instructions)) or block.index not in finder.starts:
            continue
        before = finder.starts[block.index]
        for at, after in finder.steps(block):
            ins = block.instructions[at]
            if _divides(ins):
                values = [before.read(ref) for ref in ins.reads]
                constants = [c for c in ins.operands.values() if isinstance(c, Const)]
                values += [
                    before.const(c, 0) for c in constants if not (c.ur or c.index or c.place % 4)
                ]
                for n in values:
                    for divisor in (n, _magnitude_of(graph, n)):
                        out.setdefault(divisor, set()).add(block.index)
            before = after.copy()
    return out


def _saving(finder: Finder, wanted: list[_Wanted]) -> list[_Wanted]:
    """Those whose reciprocal nvcc's code computes as often: LLVM would compute it anew in a loop
    that it was taken out of."""
    if not wanted:
        return []
    places, loops = _reciprocals(finder), structure(finder.cfg).loops
    return [
        w for w in wanted
        if all(places.get(w.divisor, set()) & set(loop.body)
               for loop in loops if w.block in loop.body)
    ]  # fmt: skip


def _operand(n: int, state: State, block: Block) -> Operand | None:
    """A constant or a register that has a value."""
    graph = state.graph
    if graph.ops[n] == "constant":
        bank, place = graph.given[n]
        return Const(bank, place)
    refs = {ref for ins in block.instructions for ref in ins.reads} | state.registers.keys()
    for ref in sorted(refs, key=lambda r: (r.file, r.index)):
        if ref.file in ("R", "UR") and state.read(ref) == n:
            return Reg("R" if ref.file == "R" else "UR", ref.index)
    return None


def _copy(ins: Instruction, source: int) -> Instruction:
    (ref,) = ins.writes
    operands: dict[str, Operand] = {
        "Rd": Reg("R", ref.index), "Rb": Reg("R", source), "mask": Imm(15, 32, "int"),
    }  # fmt: skip
    return replace(
        ins, mnemonic="MOV", modifiers=(), guard=_TRUE, operands=operands,
        reads=frozenset([RegRef("R", source)]), text=f"MOV R{ref.index}, R{source}",
    )  # fmt: skip


def _operation(ins: Instruction, name: str, to: int, a: Operand, b: Operand) -> Instruction:
    reads = frozenset(RegRef(x.file, x.index) for x in (a, b) if isinstance(x, Reg))
    return replace(
        ins, mnemonic=name, modifiers=(), guard=_TRUE,
        operands={"Rd": Reg("R", to), "Ra": a, "Rb": b}, reads=reads,
        writes=frozenset([RegRef("R", to)]), text=f"{name} R{to}",
    )  # fmt: skip


def _placed(
    finder: Finder, block: Block, copied: Block, live: int, wanted: Mapping[_Wanted, int]
) -> dict[_Wanted, Instruction]:
    """The operations, each in place of an instruction that is dead, before which registers have
    both operands.

    Backwards, so that what an operation reads is live where the code before it is looked at: all
    that is live in the new code is what it was.
    """
    out: dict[_Wanted, Instruction] = {}
    states = [finder.starts[block.index], *(s.copy() for _, s in finder.steps(block))]
    for at in range(len(block.instructions) - 1, -1, -1):
        ins = copied.instructions[at]
        if traits(ins).pure and ins.writes and not bits_of(ins.writes) & live:
            for w, to in wanted.items():
                a, b = (_operand(n, states[at], block) for n in (w.dividend, w.divisor))
                if w not in out and at < w.at and a is not None and b is not None:
                    out[w] = ins = _operation(ins, w.name, to, a, b)
                    break
            else:
                continue
        live = bits_before(ins, live)
    return out


def replaced_inline(cfg: Cfg, kernel: Kernel) -> tuple[Cfg, int]:
    """The graph, and how many operations were put in."""
    finder, found = inline_quotients(cfg)
    wanted: list[_Wanted] = _saving(finder, list(_wanted(found)))
    used = [r.index for b in cfg.blocks for i in b.instructions for r in i.reads | i.writes
            if r.file == "R" and r.index <= _LAST]  # fmt: skip
    free = range(max(used, default=0) + 1, _LAST + 1)
    while wanted:
        to = dict(zip(wanted, free, strict=False))
        changed: dict[int, Instruction] = {}
        for w, register in to.items():
            ins = cfg.blocks[w.block].instructions[w.at]
            changed[ins.offset] = _copy(ins, register)
        copied = rebuilt(cfg, kernel, changed)
        live = liveness(copied).out_bits
        placed: dict[_Wanted, Instruction] = {}
        for n in dict.fromkeys(w.block for w in to):
            some = {w: register for w, register in to.items() if w.block == n}
            placed |= _placed(finder, cfg.blocks[n], copied.blocks[n], live[n], some)
        if len(placed) == len(wanted):
            changed |= {ins.offset: ins for ins in placed.values()}
            return rebuilt(cfg, kernel, changed), len(placed)
        wanted = [w for w in wanted if w in placed]
    return cfg, 0


__all__ = ["Quotient", "inline_quotients", "replaced_inline"]
