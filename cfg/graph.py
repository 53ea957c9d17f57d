"""Control-flow graphs as values: blocks, edges with their kind, functions inside a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from sassxlate.cfg.collective_sections import NONE as NO_COLLECTIVES
from sassxlate.cfg.collective_sections import Collectives
from sassxlate.cfg.constant_words import words_read
from sassxlate.disasm.sass.instruction import Instruction

SIZE = 16  # bytes of a SASS instruction
LABEL = "L_"  # prefix of a block's name; its offset follows

# taken: a branch (also each case of BRX); fall: into the next block; call: to a callee's entry;
# back: from a CALL to its return site; ret: from a RET to a return site; sync: past BSYNC,
# WARPSYNC or BAR once the lanes waited for have arrived.
EdgeKind: TypeAlias = Literal["taken", "fall", "call", "back", "ret", "sync"]


def label_of(offset: int) -> str:
    """The name of the block at an offset."""
    return f"{LABEL}{offset:04x}"


@dataclass(frozen=True, slots=True)
class Edge:
    """From block ``src`` to block ``dst``, by index."""

    src: int
    dst: int
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions from byte ``start`` to ``end`` (exclusive); only the last transfers control."""

    index: int
    start: int
    end: int
    instructions: tuple[Instruction, ...]
    function: int  # entry offset of the function it belongs to

    @property
    def last(self) -> Instruction:
        return self.instructions[-1]


@dataclass(frozen=True)
class Cfg:
    """The reachable part of one kernel, in layout order; block 0 is the kernel's entry."""

    name: str
    arch: int
    blocks: tuple[Block, ...]
    edges: tuple[Edge, ...]
    successors: tuple[tuple[Edge, ...], ...]
    predecessors: tuple[tuple[Edge, ...], ...]
    by_start: Mapping[int, int]
    functions: tuple[int, ...]  # entry offsets; the first is the kernel's
    call_sites: Mapping[int, tuple[int, ...]]  # callee entry -> offsets of its return sites
    collectives: Collectives = NO_COLLECTIVES
    # Bodies of collective sections that no lane runs, as the leader's is run: in no block.
    left_out: tuple[Instruction, ...] = ()

    @cached_property
    def mnemonics(self) -> frozenset[str]:
        """Those of its instructions."""
        return frozenset([i.mnemonic for block in self.blocks for i in block.instructions])

    @cached_property
    def constant_words(self) -> tuple[tuple[Instruction, int], ...]:
        """The words of constant bank 0 that its instructions read, by byte offset."""
        return tuple([word for block in self.blocks for word in words_read(block.instructions)])
