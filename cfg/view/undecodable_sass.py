"""The picture of a kernel's SASS when the strict graph (:mod:`.build`) cannot be built.

All words are drawn.  A word that is not an instruction shows its error code and bytes; it may
be a branch and may write anything, so it ends its block and no arc leaves it.  Nor does one leave a
branch whose targets are unknown.  The control flow drawn is sound but incomplete: a block drawn as
unreached may be reached from such a word.  Lane divergence and convergence barriers are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sassxlate.cfg.build import is_conditional
from sassxlate.cfg.graph import SIZE
from sassxlate.cfg.loops import shape_of
from sassxlate.cfg.view.picture import Arc, ArcKind, Line, Loop, Node, Picture, nested
from sassxlate.cfg.view.sass import names_of
from sassxlate.disasm.sass.codec.decode import BadWord
from sassxlate.disasm.sass.instruction import Instruction, Label
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import SassxlateError

_LONGEST = 400  # characters of an error kept in a note
_NO_WAY_ON = ("exit", "return", "resume")


def picture(
    name: str,
    arch: int,
    items: Sequence[Instruction | BadWord],
    *,
    shown: str = "",
    indirect: Mapping[int, tuple[int, ...]] | None = None,
    syscalls: Sequence[int] = (),
    why: SassxlateError | None = None,
    rest: bytes = b"",
) -> Picture:
    """From a kernel's words, in their order from offset 0 on; ``rest`` are the bytes after them
    that do not fill a word.  ``indirect`` and ``syscalls`` are as for :func:`.build.build`; ``why``
    is the error that the strict graph raised."""
    known, builtin = dict(indirect or {}), frozenset(syscalls)
    blocks = _without_padding(_split(items, known, builtin))
    starts = {block[0].offset: i for i, block in enumerate(blocks)}
    arcs: list[Arc] = []
    lost: list[str] = []
    for i, block in enumerate(blocks):
        ways, missed = _ways(block[-1], known, builtin)
        found = [Arc(i, starts[to], kind) for to, kind in ways if to in starts]
        arcs += dict.fromkeys(found)
        if missed or len(found) < len(ways):
            lost.append(f"{block[-1].offset:#x}")
    reached, loops, back = shape_of(len(blocks), [(a.src, a.dst) for a in arcs])
    drawn = tuple(Loop(loop.header, loop.body) for loop in loops)
    nodes = [
        Node(
            index=i,
            start=block[0].offset,
            lines=tuple(map(_line, block)),
            loops=nested(drawn, i),
            reachable=i in reached,
        )
        for i, block in enumerate(blocks)
    ]
    if rest:
        at = SIZE * len(items)
        line = Line(at, f"? {rest.hex()}  SX0205 {len(rest)} bytes are not a whole word")
        nodes.append(Node(len(nodes), at, (line,), reachable=False))
    arcs = [Arc(a.src, a.dst, a.kind, (a.src, a.dst) in back) for a in arcs]
    return Picture(
        name,
        shown or name,
        f"sm_{arch}",
        tuple(nodes),
        tuple(arcs),
        drawn,
        _notes(items, lost, why),
    )


def _notes(
    items: Sequence[Instruction | BadWord], lost: Sequence[str], why: SassxlateError | None
) -> tuple[str, ...]:
    notes: list[str] = []
    if why:
        at = "" if why.where.offset is None else f"/*{why.where.offset:04x}*/ "
        notes.append(f"the graph is incomplete: {why.code}: {at}{why.message[:_LONGEST]}")
    bad = sum(isinstance(item, BadWord) for item in items)
    if bad:
        notes.append(
            f"{bad} of {len(items)} words are unknown: where control goes after one is not known"
        )
    if lost:
        more = f" and {len(lost) - 8} more" if len(lost) > 8 else ""
        notes.append(f"where control goes is not known at {', '.join(lost[:8])}{more}")
    if not items:
        notes.append("the kernel has no code")
    return tuple(notes)


def _line(item: Instruction | BadWord) -> Line:
    if isinstance(item, BadWord):
        text = f"? {item.word:#034x}  {item.error.code} {item.error.message}"
        return Line(item.offset, text)
    return Line(item.offset, item.text, names_of(item.writes), names_of(item.reads))


def _ways(
    last: Instruction | BadWord, indirect: Mapping[int, tuple[int, ...]], syscalls: frozenset[int]
) -> tuple[list[tuple[int, ArcKind]], bool]:
    """Successors of an instruction, and whether control may also go to unknown places."""
    ways: list[tuple[int, ArcKind]] = []
    if isinstance(last, BadWord):
        return ways, False  # a separate note covers it
    transfer, after = traits(last).transfer, last.offset + SIZE
    label = last.get("target")
    target = label.target if isinstance(label, Label) else None
    ends = transfer in ("indirect", "jump", *_NO_WAY_ON)
    # A call may be a far jump, which does not come back: whether it returns is not known.
    ends = ends or (transfer == "call" and last.offset not in syscalls)
    missed = False
    if not ends:
        ways.append((after, "jump"))
    elif is_conditional(last):
        ways.append((after, "fall" if target is not None or transfer == "indirect" else "jump"))
    if transfer == "indirect":
        for to in indirect.get(last.offset, ()):
            ways.append((to, "case"))
        missed = last.offset not in indirect
    elif transfer == "jump":
        missed = target is None
        if target is not None:
            ways.append((target, "taken" if ways else "jump"))
    elif transfer == "call" and ends:
        missed = True
        if target is not None:
            ways.append((target, "call"))
    elif last.mnemonic == "WARPSYNC" and target is not None:
        ways.append((target, "case"))
    return ways, missed or transfer in ("return", "resume")


def _split(
    items: Sequence[Instruction | BadWord],
    indirect: Mapping[int, tuple[int, ...]],
    syscalls: frozenset[int],
) -> list[list[Instruction | BadWord]]:
    leaders = {
        to
        for item in items
        if isinstance(item, BadWord) or traits(item).ends_block
        for to, _ in _ways(item, indirect, syscalls)[0]
    }
    blocks: list[list[Instruction | BadWord]] = []
    ended = True
    for item in items:
        # Consecutive unknown words are one block.
        both = isinstance(item, BadWord) and bool(blocks)
        run = both and isinstance(blocks[-1][-1], BadWord)
        if item.offset in leaders or (ended and not run):
            blocks.append([])
        blocks[-1].append(item)
        ended = isinstance(item, BadWord) or traits(item).ends_block
    return blocks


def _without_padding(
    blocks: list[list[Instruction | BadWord]],
) -> list[list[Instruction | BadWord]]:
    """Without the branches to themselves and the NOPs after the code."""
    end = len(blocks)
    while end > 1 and all(_pads(item) for item in blocks[end - 1]):
        end -= 1
    return blocks[:end]


def _pads(item: Instruction | BadWord) -> bool:
    if isinstance(item, BadWord):
        return False
    label = item.get("target")
    loops = item.mnemonic == "BRA" and isinstance(label, Label) and label.target == item.offset
    return item.mnemonic == "NOP" or loops
