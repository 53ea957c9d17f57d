"""The picture of an RDNA3 kernel: of our code or any code object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sassxlate.cfg.loops import shape_of
from sassxlate.cfg.view.picture import Arc, ArcKind, Line, Loop, Node, Picture, nested
from sassxlate.disasm.listing.rdna3_section import ListedInstruction as Decoded
from sassxlate.disasm.listing.rdna3_section import register_name, target_of
from sassxlate.disasm.rdna3.instruction import I, S
from sassxlate.disasm.rdna3.reads_writes import reads, writes

_ENDS = ("s_endpgm", "s_endpgm_saved", "s_code_end")
_INDIRECT = ("s_setpc_b64", "s_swappc_b64")
_NO_ARC_SAYS = "indirect jumps: their arcs go to every address that the code takes"


def picture(
    name: str,
    lines: Sequence[Decoded],
    shown: str = "",
    runs: Mapping[int, int] | None = None,
    *,
    target: str,
) -> Picture:
    """From a kernel's decoded code, the entry first; offsets are relative to it.

    Padding after the last jump is left out.  After a word that is not an instruction the flow of
    control is unknown: the word ends its block, and no arc leaves it.  ``runs``: executions of a
    block by waves, by its offset; a block that is missing has an unknown count.
    """
    base = lines[0].address if lines else 0
    used = _without_padding(lines)
    blocks = _split(used)
    by_start = {b[0].address: i for i, b in enumerate(blocks)}
    taken = [by_start[a] for a in _addresses(used) if a in by_start]
    arcs = [a for i in range(len(blocks)) for a in _arcs(i, blocks, by_start, taken)]
    reached, found, back = shape_of(len(blocks), [(a.src, a.dst) for a in arcs])
    loops = tuple(Loop(loop.header, loop.body) for loop in found)
    nodes = tuple(
        Node(
            index=i,
            start=block[0].address - base,
            lines=tuple(_line(line, base) for line in block),
            divergent=False,
            loops=nested(loops, i),
            reachable=i in reached,
            runs=None if runs is None else runs.get(block[0].address - base),
        )
        for i, block in enumerate(blocks)
    )
    arcs = [Arc(a.src, a.dst, a.kind, (a.src, a.dst) in back) for a in arcs]
    notes = [_NO_ARC_SAYS] if any(a.kind == "case" for a in arcs) else []
    bad = sum(line.inst is None and not line.is_zero for line in used)
    if bad:
        notes.append(f"{bad} words are unknown: where control goes after one is not known")
    return Picture(name, shown or name, target, nodes, tuple(arcs), loops, tuple(notes))


def text_of(line: Decoded, base: int) -> str:
    """The instruction; a branch with its target relative to ``base``, as in the block headers,
    instead of its distance in words."""
    target = target_of(line)
    if target is None:
        return line.text
    place = target - base
    head = line.text.rpartition(" ")[0]
    return f"{head} {'-' * (place < 0)}{abs(place):#x}"


def _line(line: Decoded, base: int) -> Line:
    if line.inst is None:
        code = f"  {line.error.code} {line.error.message}" if line.error else ""
        return Line(line.address - base, "v_illegal" if line.is_zero else f"? {line.text}{code}")
    written, read = (
        tuple(register_name(ref) for ref in sorted(some))
        for some in (writes(line.inst), reads(line.inst))
    )
    return Line(line.address - base, text_of(line, base), written, read)


def _op(line: Decoded) -> str:
    return "" if line.inst is None else line.inst.op


def _without_padding(lines: Sequence[Decoded]) -> Sequence[Decoded]:
    end = len(lines)
    while end and (lines[end - 1].is_zero or _op(lines[end - 1]) == "s_code_end"):
        end -= 1
    return lines[:end]


def _jumps(op: str) -> bool:
    return op.startswith(("s_branch", "s_cbranch_", "s_call_b64", *_ENDS, *_INDIRECT))


def _addresses(lines: Sequence[Decoded]) -> list[int]:
    """Code addresses made by s_getpc_b64 and s_add_u32 of a constant, and return addresses."""
    found: set[int] = set()
    known: dict[int, int] = {}
    for line in lines:
        inst = line.inst
        if inst is None or not inst.args:
            continue
        dst = inst.args[0]
        following = line.address + len(line.code)
        if inst.op in ("s_swappc_b64", "s_call_b64"):
            found.add(following)
        if not isinstance(dst, S):
            continue
        if inst.op == "s_getpc_b64":
            known[dst.index] = following
        elif inst.op == "s_add_u32" and dst.index in known and isinstance(inst.args[2], I):
            found.add(known.pop(dst.index) + inst.args[2].value & 0xFFFFFFFF)
        else:
            known.pop(dst.index, None)
    return sorted(found)


def _split(lines: Sequence[Decoded]) -> list[list[Decoded]]:
    leaders = {t for line in lines if (t := target_of(line)) is not None} | {*_addresses(lines)}
    blocks: list[list[Decoded]] = []
    for n, line in enumerate(lines):
        before = lines[n - 1]
        known = line.inst is not None and before.inst is None  # unknown words are one block
        if not n or line.address in leaders or known or _jumps(_op(before)):
            blocks.append([])
        blocks[-1].append(line)
    return blocks


def _arcs(
    i: int, blocks: Sequence[Sequence[Decoded]], by_start: Mapping[int, int], taken: Sequence[int]
) -> list[Arc]:
    last = blocks[i][-1]
    op = _op(last)
    target = target_of(last)
    goes = [] if target is None or target not in by_start else [by_start[target]]
    following = [i + 1] if i + 1 < len(blocks) else []

    def all_of(nodes: Sequence[int], kind: ArcKind) -> list[Arc]:
        return [Arc(i, n, kind) for n in nodes]

    if op.startswith("s_cbranch_"):
        return all_of(following, "fall") + all_of(goes, "taken")
    if op.startswith("s_branch"):
        return all_of(goes, "jump")
    if op == "s_call_b64":
        return all_of(goes, "call")
    if op in _INDIRECT:
        return all_of(taken, "case")
    return [] if op in _ENDS or last.inst is None else all_of(following, "jump")
