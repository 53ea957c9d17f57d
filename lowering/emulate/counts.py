"""The number of instructions that a launch executed: a counting image counts the entries of each
block, and the instructions of a block are known.

An instruction counts once per wave, whatever lanes are active, as the scheduler issues it.

:func:`of_code_object` turns an image's counts into a kernel's :class:`Runs`, with those of the SASS
from the code object's note; :func:`sass_blocks` gives the counts of a graph's blocks.
:func:`to_data` and :func:`from_data` are the file format, which ``docs/trace.md`` describes.
"""

from __future__ import annotations

import ctypes
import functools
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sassxlate.cfg.rdna3_flow import Flow, discover
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.errors import UsageError, Where
from sassxlate.lowering.codeobject import source_map

if TYPE_CHECKING:
    from sassxlate.cfg import Cfg

SCHEMA = 1
KIND = "sassxlate-counts"

Class: TypeAlias = Literal["valu", "salu", "vmem", "smem", "lds", "branch", "wait", "hint"]
CLASSES: tuple[Class, ...] = ("valu", "salu", "vmem", "smem", "lds", "branch", "wait", "hint")

_JUMPS = ("s_branch", "s_cbranch_", "s_setpc_b64", "s_swappc_b64", "s_call_b64", "s_endpgm")
_WAITS = ("s_waitcnt", "s_barrier", "s_sleep", "s_nop", "s_trap", "s_sendmsg", "s_wait_event",
          "buffer_gl", "s_dcache_inv", "s_gl1_inv", "s_icache_inv")  # fmt: skip
# Hints for the scheduler or the cache, which change no state.
_HINTS = ("s_delay_alu", "s_clause", "s_setprio", "s_set_inst_prefetch_distance", "s_code_end")


def class_of(op: str) -> Class:
    """The class of an instruction by its mnemonic; a dual instruction counts as VALU."""
    for name, stems in (("hint", _HINTS), ("branch", _JUMPS), ("wait", _WAITS)):
        if op.startswith(stems):
            return name  # type: ignore[return-value]
    if op.startswith("v_"):
        return "valu"
    if op.startswith(("global_", "flat_", "scratch_", "buffer_", "image_")):
        return "vmem"
    if op.startswith("ds_"):
        return "lds"
    return "smem" if op.startswith(("s_load", "s_buffer_load")) else "salu"


@dataclass(frozen=True, slots=True)
class Executed:
    """Instruction counts by class: in the code, and executed by waves."""

    static: Mapping[str, int]
    dynamic: Mapping[str, int]


def counters(flow: Flow) -> Any:
    """A zeroed counter array for an image of this flow, for ``run_image``."""
    return (ctypes.c_uint64 * len(flow.blocks))()


@functools.lru_cache(maxsize=256)
def flow_of(code: bytes, entry: int) -> Flow:
    """The blocks that an image counts, in the order of their numbers: by address."""
    return discover(code, entry)


def by_block(flow: Flow, numbers: Iterable[int]) -> list[tuple[int, int, list[Inst]]]:
    """(address, executions, instructions) of each block."""
    blocks = sorted(flow.blocks.values(), key=lambda b: b.start)
    return [
        (block.start, times, [step.inst for step in block.steps])
        for block, times in zip(blocks, numbers, strict=True)
    ]


def executed(flow: Flow, numbers: Iterable[int]) -> Executed:
    """The counts by class."""
    static: Counter[str] = Counter()
    dynamic: Counter[str] = Counter()
    for _, times, instructions in by_block(flow, numbers):
        for inst in instructions:
            name = class_of(inst.op)
            static[name] += 1
            dynamic[name] += times
    return Executed(static, dynamic)


# --- counts per kernel, for reports
# ----------------------------------------------------------------------

_PLACE = re.compile(r"/\*([0-9a-f]+)\*/")
Span: TypeAlias = "tuple[int, int, int]"  # start, end, executions


@dataclass(frozen=True, slots=True)
class Runs:
    """Executions of the parts of a kernel by waves.

    ``sass`` is by the byte offset of each SASS instruction that has code; ``rdna3`` are the blocks
    that the emulator found, as (start, end, executions) with offsets from the entry.  ``target`` is
    the SASS's architecture (sm_80), empty if unknown.
    """

    kernel: str
    sass: Mapping[int, int]
    rdna3: tuple[Span, ...]
    launches: int = 0
    waves: int = 0
    target: str = ""

    def plus(self, other: Runs) -> Runs:
        """The sum of both.  UsageError SX0833 if they belong to different code."""
        mine, theirs = ([span[:2] for span in r.rdna3] for r in (self, other))
        if mine != theirs or self.sass.keys() != other.sass.keys():
            where = Where(None, self.kernel)
            raise UsageError("SX0833", "these are counts of different code", where)
        return replace(
            self,
            sass={at: n + other.sass[at] for at, n in self.sass.items()},
            rdna3=tuple(
                (a, b, n + m) for (a, b, n), (_, _, m) in zip(self.rdna3, other.rdna3, strict=True)
            ),
            launches=self.launches + other.launches,
            waves=self.waves + other.waves,
        )

    def at(self, offset: int) -> int:
        """Executions of the RDNA3 instruction at an offset from the entry; 0 outside all blocks."""
        found = bisect_right(self.rdna3, offset, key=lambda span: span[0]) - 1
        start, end, times = self.rdna3[found] if found >= 0 else (0, 0, 0)
        return times if start <= offset < end else 0


def of_code_object(
    data: bytes,
    kernel: str,
    numbers: Iterable[int],
    *,
    launches: int = 1,
    waves: int = 0,
    target: str = "",
) -> Runs:
    """The runs of a kernel of a code object; ``numbers`` are its image's counts, one per block of
    :func:`flow_of`, by address.  Code that was not translated here has no SASS.

    Raises:
        EmulatorError, LoweringError: no such kernel, or code that cannot be followed.
    """
    from sassxlate.lowering.codeobject.code_object import read

    obj = read(data)
    entry = obj.kernel(kernel).entry
    flow = flow_of(obj.text, entry)
    blocks = sorted(flow.blocks.values(), key=lambda b: b.start)
    spans = tuple(
        (block.start - entry, block.steps[-1].next - entry, times)
        for block, times in zip(blocks, numbers, strict=True)
    )
    made = Runs(kernel, {}, spans, launches, waves, target)
    rows = source_map.parse(source_map.find(data)).get(kernel, ())
    return replace(made, sass=_of_sass(rows, made))


def _of_sass(rows: Sequence[tuple[int, str]], made: Runs) -> dict[int, int]:
    """By the first RDNA3 instruction that implements it: the others may be skipped."""
    out: dict[int, int] = {}
    for at, text in rows:
        place = _PLACE.match(text)
        if place is not None:
            out.setdefault(int(place[1], 16), made.at(at))
    return out


def sass_blocks(sass: Mapping[int, int], cfg: Cfg) -> dict[int, int]:
    """Executions of the blocks of a graph, by their start; a block is missing if it has no code
    and its neighbours do not determine the count.

    Raises UsageError SX0833 for counts of different code.
    """
    offsets = {i.offset for block in cfg.blocks for i in block.instructions}
    if strange := sorted(sass.keys() - offsets):
        text = f"the counts belong to different code: there is no instruction at {strange[0]:#x}"
        raise UsageError("SX0833", text, Where(None, cfg.name, strange[0]))
    found: dict[int, int] = {}
    for block in cfg.blocks:
        # The code of an instruction may begin with a loop; its count is then the loop's rounds.
        some = [sass[i.offset] for i in block.instructions if i.offset in sass]
        if some:
            found[block.index] = min(some)
    before: dict[int, list[int]] = {block.index: [] for block in cfg.blocks}
    after: dict[int, list[int]] = {block.index: [] for block in cfg.blocks}
    for edge in cfg.edges:
        before[edge.dst].append(edge.src)
        after[edge.src].append(edge.dst)
    changed = True
    while changed:
        changed = False
        for block in cfg.blocks:
            b = block.index
            if b in found:
                continue
            ways = ((before[b], after), (after[b], before))
            for near, back in ways if b else ways[1:]:
                if near and all(n in found and back[n] == [b] for n in near):
                    found[b] = sum(found[n] for n in near)
                    changed = True
                    break
    return {cfg.blocks[b].start: times for b, times in sorted(found.items())}


def to_data(runs: Iterable[Runs]) -> dict[str, Any]:
    """The JSON form."""
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "kernels": [
            {
                "kernel": r.kernel,
                "target": r.target,
                "launches": r.launches,
                "waves": r.waves,
                "sass": [[at, times] for at, times in sorted(r.sass.items())],
                "rdna3": [list(span) for span in r.rdna3],
            }
            for r in runs
        ],
    }


def from_data(data: Any, file: str | None = None) -> list[Runs]:
    """Inverse of :func:`to_data`.  UsageError SX0834 for anything else."""
    try:
        if data["kind"] != KIND or data["schema"] != SCHEMA:
            raise ValueError(f"kind {data['kind']!r}, schema {data['schema']!r}")
        return [_runs(row) for row in data["kernels"]]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        text = f"this is not a file of execution counts ({error})"
        raise UsageError("SX0834", text[:300], Where(file)) from None


def _runs(row: Any) -> Runs:
    def number(value: Any) -> int:
        if type(value) is not int or not 0 <= value < 1 << 63:
            raise ValueError("no count")
        return value

    def text(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("no text")
        return value

    spans: list[Span] = []
    for start, end, times in row["rdna3"]:
        spans.append((number(start), number(end), number(times)))
    return Runs(
        text(row["kernel"]),
        {number(at): number(times) for at, times in row["sass"]},
        tuple(spans),
        number(row["launches"]),
        number(row["waves"]),
        text(row["target"]),
    )
