"""Which registers go past a call: those that the code of the called functions does not name.

Each thread comes back from a function to the place after its own call.  A register that no
instruction of the function names, nor of those that it calls, is there what it was before the call,
whatever other calls bring into the function.  So what is known of such a register goes along the
edge from the call to its return site, and does not enter the function; what is known of the others
goes through the function's blocks, where all calls meet.

That it comes back there is seen in the code: each call's block sets the address after the call.  If
one does not (some threads may bring another call's address), all goes through the functions.

Otherwise each call would bring what is known of all registers to the places after all other calls:
as many places as there are calls and live registers, each of which is made anew several times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sassxlate.cfg import Block, Cfg
from sassxlate.cfg.graph import Edge
from sassxlate.cfg.register_sets import bits_of, numbers
from sassxlate.disasm.sass.instruction import Imm, RegRef

_KERNEL: Final = 0  # the first block, and what runs without a call


class Calls:
    """The calls of a kernel.

    ``named``: by a block that ends with a call the registers, as numbers of bits, of which what is
    known goes through the called function.  ``sites``: by the block after a call the block that
    calls.  Calls are left out of both where all goes through the function: its code runs without a
    call, too, or threads may come back to another place.
    """

    def __init__(self, cfg: Cfg) -> None:
        self.named: dict[int, frozenset[int]] = {}
        self.sites: dict[int, int] = {}
        callees = {
            block.index: found
            for block in cfg.blocks
            if (found := [e.dst for e in cfg.successors[block.index] if e.kind == "call"])
        }
        if not callees or not all(_comes_back(cfg.blocks[block]) for block in callees):
            return
        groups = _groups(cfg, callees.values())
        sets = _named(cfg, groups, callees)
        kernel = groups[_KERNEL]
        known: dict[int, frozenset[int]] = {}
        for block, entries in callees.items():
            group = groups[entries[0]]
            after = cfg.by_start.get(cfg.blocks[block].end)
            if group == kernel or after is None:
                continue
            if group not in known:
                known[group] = frozenset(numbers(sets[group]))
            self.named[block] = known[group]
            self.sites[after] = block

    def inside(self, edge: Edge) -> frozenset[int] | None:
        """The registers of which something is known that goes through a function, for an edge
        that leads into it, out of it or past it; None for any other edge."""
        if edge.kind == "ret":
            return self.named.get(self.sites.get(edge.dst, -1))
        return self.named.get(edge.src) if edge.kind in ("call", "back") else None

    def carries(self, edge: Edge, register: int) -> bool:
        """Whether what is known of a register goes along an edge."""
        named = self.inside(edge)
        if named is None:
            return edge.kind != "back"  # the path through the function exists as other edges
        return (register in named) != (edge.kind == "back")


def _comes_back(block: Block) -> bool:
    """Whether a block that ends with a call sets the address after it, for all lanes."""
    there: set[RegRef] = set()  # registers with that address
    for ins in block.instructions[:-1]:
        there -= ins.writes
        if ins.guard.is_true and any(
            isinstance(operand, Imm) and operand.value == block.end
            for operand in ins.operands.values()
        ):
            there |= ins.writes
    return bool(there)


def _groups(cfg: Cfg, calls: Iterable[list[int]]) -> list[int]:
    """For each block a number that is the same for all functions, or the kernel itself, that share
    blocks or are called at one place."""
    group = list(range(len(cfg.blocks)))  # a block's, or one that leads there

    def found(block: int) -> int:
        while group[block] != block:
            group[block] = group[group[block]]
            block = group[block]
        return block

    for edge in cfg.edges:
        if edge.kind not in ("call", "ret"):
            group[found(edge.src)] = found(edge.dst)
    for entries in calls:
        for entry in entries:
            group[found(entry)] = found(entries[0])
    return [found(block) for block in range(len(cfg.blocks))]


def _named(cfg: Cfg, groups: list[int], callees: dict[int, list[int]]) -> dict[int, int]:
    """The registers that each group's code names, or that of functions that it calls."""
    out: dict[int, int] = {}
    for block in cfg.blocks:
        group = groups[block.index]
        out[group] = out.get(group, 0) | _names(block)
    into = {(groups[block], groups[entries[0]]) for block, entries in callees.items()}
    changed = True
    while changed:
        changed = False
        for caller, callee in into:
            if out[callee] & ~out[caller]:
                out[caller] |= out[callee]
                changed = True
    return out


def _names(block: Block) -> int:
    """The registers that a block's code reads or writes, and those beside what it writes, which may
    be the other word of a double."""
    read = written = 0
    for ins in block.instructions:
        read |= bits_of(ins.reads)
        written |= bits_of(ins.writes)
    return read | written | written << 1 | written >> 1


__all__ = ["Calls"]
