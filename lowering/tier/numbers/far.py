"""Branches that go far: those that LLVM makes of an address, and those that do not reach once code
between has grown.

LLVM jumps over more than 128 KiB by an address: s_getpc_b64, two sums with literals, s_setpc_b64.
The literals are distances in its code, and others here, so :func:`direct` makes one branch of the
four.  Branches then go from island to island (`lowering/passes/long_branches.py`), which needs no
register; nothing stands within a clause.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from sassxlate.disasm.rdna3 import Encoded
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, LabelRef
from sassxlate.lowering.codeobject.source_map import ISLAND
from sassxlate.lowering.passes.long_branches import expand_long_branches
from sassxlate.lowering.tier.numbers.pieces import (
    Opcodes,
    Piece,
    branch,
    first_word,
    one_source,
    without_operands,
)
from sassxlate.lowering.tier.refusal import BACKEND, refused

REACH = 1 << 15  # words that a branch goes forward; one more backward
_LITERAL: Final = 255
_SUM, _CARRY = 0x80 << 24, 0x82 << 24  # s_add_u32 and s_addc_u32 of register 0: bits 31:23
_NOTHING: Final = Inst("s_nop", (), imm=0)  # in the place of any instruction that is no branch


def direct(pieces: Sequence[Piece], ops: Opcodes) -> list[Piece]:
    """The code with one branch for each address that is made to be jumped to.  Other addresses,
    as those of functions, stay."""
    out = list(pieces)
    for n, piece in enumerate(pieces):
        if one_source(piece.data) != ops.getpc:
            continue
        found = _jump(pieces, n, ops)
        if found is None:
            continue
        places, target = found
        out[n] = replace(piece, data=branch(ops), target=target, text="s_branch 0")
        for place in places:
            out[place] = replace(pieces[place], data=b"", text="")
    return out


def addresses(pieces: Sequence[Piece], ops: Opcodes) -> bool:
    """Whether the code makes or uses an address of code."""
    return any(one_source(p.data) in (ops.getpc, ops.swappc) for p in pieces)


def _jump(pieces: Sequence[Piece], n: int, ops: Opcodes) -> tuple[list[int], int] | None:
    """The instructions that follow an s_getpc_b64 and jump to what it becomes, and the offset of
    that."""
    low = first_word(pieces[n].data) >> 16 & 0x7F
    places: list[int] = []
    sums: list[int] = []
    wanted = [_sum(_SUM, low), _sum(_CARRY, low + 1)]
    for place in range(n + 1, min(n + 8, len(pieces))):
        data = pieces[place].data
        places.append(place)
        if without_operands(data) is not None and pieces[place].target is None:
            continue  # waits
        if not sums and one_source(data) == ops.sext_i16:
            continue
        if len(sums) < 2 and first_word(data) == wanted[len(sums)] and len(data) == 8:
            sums.append(int.from_bytes(data[4:], "little"))
            continue
        if len(sums) < 2 or one_source(data) != ops.setpc or data[0] != low:
            return None
        distance = int.from_bytes(
            b"".join(s.to_bytes(4, "little") for s in sums), "little", signed=True
        )
        target = pieces[n].at + len(pieces[n].data) + distance
        if pieces[n].at <= target <= pieces[place].at:
            return None  # literals that a linker fills in
        return places, target
    return None


def _sum(op: int, register: int) -> int:
    """The first word of a sum of a register and a literal."""
    return op | register << 16 | _LITERAL << 8 | register


def with_islands(pieces: Sequence[Piece], ops: Opcodes) -> list[Piece]:
    """The pieces in order with islands, whose offsets are negative.

    Raises Refused SX0464 if branches are too far for them.
    """
    targets = {p.target for p in pieces}
    items: list[Item] = []
    sizes: list[int] = []
    units: list[list[Piece]] = []  # for each instruction among the items
    seen: set[int] = set()
    rest = 0
    for piece in pieces:
        if piece.at in targets and piece.at not in seen:
            if rest:
                raise refused(BACKEND, "a branch into a clause")
            items.append(Label(_name(piece.at)))
            sizes.append(0)
        seen.add(piece.at)
        if rest:
            units[-1].append(piece)
            sizes[-1] += len(piece.data)
            rest -= 1
            continue
        rest = piece.clause
        to = piece.target
        items.append(_NOTHING if to is None else Inst("s_branch", (LabelRef(_name(to)),)))
        sizes.append(len(piece.data))
        units.append([piece])
    most = 4 * (REACH - 1)
    indices = array("I", [n for n, item in enumerate(items) if item is not _NOTHING])
    marked = tuple([items[n] for n in indices])
    encoded = Encoded(bytes(sum(sizes)), array("H", sizes), marked, indices, tuple(items))
    expanded = expand_long_branches(encoded, most, apart=3 * REACH, limit=most)
    return list(_placed(expanded, units, ops))


def _name(at: int) -> str:
    return f"at{at}"


def _placed(expanded: Encoded, units: Sequence[Sequence[Piece]], ops: Opcodes) -> Iterator[Piece]:
    """The pieces of the instructions, and one for each of an island's labels and branches."""
    own = {_name(p.at): p.at for unit in units for p in unit}
    labels = [i.name for i in expanded.items if isinstance(i, Label) and i.name not in own]
    if any(p.target is not None and _name(p.target) not in own for unit in units for p in unit):
        raise refused(BACKEND, "a branch into an instruction")
    offsets = own | {name: -n for n, name in enumerate(labels, 1)}
    nowhere = -1 - len(labels)  # of islands' branches, to which nothing goes
    following = iter(units)
    for item in expanded.items:
        if isinstance(item, Label):
            if item.name not in own:
                yield Piece(offsets[item.name], b"")
            continue
        assert isinstance(item, Inst)
        target = offsets[item.args[0].name] if item.args and isinstance(
            item.args[0], LabelRef) else None  # fmt: skip
        if item.origin is not None and item.origin.text == ISLAND:
            yield Piece(nowhere, branch(ops), target, text="s_branch 0")
            continue
        first, *others = next(following)
        yield first if target is None else replace(first, target=target)
        yield from others


__all__ = ["addresses", "direct", "with_islands"]
