"""The exact map between a kernel's SASS and its RDNA3, from the translator's records.

The code is decoded from its final bytes, so the code shown is the code that runs.  A code object
that was translated here carries the map in its note (:mod:`.source_map`); it is checked against the
SASS, instruction by instruction, before anything is shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sassxlate.cfg import Cfg
from sassxlate.cfg.view.picture import Line, Picture
from sassxlate.cfg.view.rdna3 import picture as rdna3_picture
from sassxlate.cfg.view.sass import picture as sass_picture
from sassxlate.cfg.view.side_by_side import Beside, Code, Part, SideBySideRow
from sassxlate.disasm.containers.values import Cubin, Kernel
from sassxlate.disasm.listing.rdna3_section import ListedInstruction as Decoded
from sassxlate.disasm.listing.rdna3_section import decode_code, target_of
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import LoweringError, SassxlateError, Where
from sassxlate.lowering.abi.link import link_kernel
from sassxlate.lowering.codeobject import source_map
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.codeobject.source_map import ADDED, Exact
from sassxlate.lowering.emulate.counts import Runs
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.regalloc.allocate import dead_instructions
from sassxlate.lowering.rules import TABLE
from sassxlate.lowering.rules.rule import choose
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT, Target

_TAIL = (source_map.SCHEDULER, source_map.SHARED)
RULES = "rules"  # the engine that always exists
_NONE = "?"  # for an instruction without a writer

WHY_ORDER = "orders nothing that is not in order already"
WHY_IDLE = "its result is never read"
WHY_FOLDED = "control goes on with what follows in the code"
WHY_PIECE = "what stands for it is with an instruction below"
WHY_UNMARKED = "no code is marked as its own"
WHY_NONE = "needs no code here"
WHOLE = "whole kernel"  # of code that another engine wrote without regard to blocks


@dataclass(frozen=True, slots=True)
class _Source:
    """The sources of a kernel's rows."""

    cfg: Cfg
    lines: tuple[Decoded, ...]
    exact: Exact
    idle: frozenset[int]
    rules: bool  # whether the rules that wrote it are those of this program
    engines: Mapping[int, str]
    runs: Runs | None
    graphs: bool = False


def of_translated(
    done: Translated,
    shown: str = "",
    runs: Runs | None = None,
    engines: Mapping[int, str] | None = None,
    *,
    graphs: bool = False,
) -> Beside:
    """The map of a kernel that was just translated.

    ``engines`` has, by the offsets of SASS instructions, the writer of their code if it was not
    the rules: a model's name, and perhaps the number of its sample.  ``graphs``: with both graphs.
    """
    note = source_map.find(done.code_object)
    name = done.kernel.name
    found = source_map.exact(note, name) or source_map.by_instructions(note, name)
    assert found is not None
    lines = tuple(decode_code(done.program.data))
    idle = dead_instructions(done.cfg)
    source = _Source(done.cfg, lines, found, idle, True, engines or {}, runs, graphs)
    return _beside(source, done.kernel, done.selected.regs.target, shown, "translated now")


def of_code_object(
    cubin: Cubin,
    kernel: Kernel,
    data: bytes,
    shown: str = "",
    runs: Runs | None = None,
    engines: Mapping[int, str] | None = None,
    *,
    graphs: bool = False,
) -> Beside:
    """The map between a kernel and its translation in a code object.

    By the code object's own note; if it has none, by that of a new translation, provided that the
    code is equal to the byte.  ``engines`` is as for :func:`of_translated`, if it is known that all
    other code is these rules'.

    Raises:
        LoweringError: SX0450, the code object's code is not a translation of this SASS.
        SassxlateError: errors of reading and translating.
    """
    obj = read(data)
    there = obj.kernel(kernel.name)
    code = obj.text[there.entry : there.entry + there.size]
    note = source_map.find(data)
    try:
        found = source_map.exact(note, kernel.name)
        whole = source_map.by_instructions(note, kernel.name)
    except ValueError:
        text = "the code object's map is damaged"
        raise LoweringError("SX0450", text, Where(kernel=kernel.name)) from None
    if found is None:
        done = translate_kernel(cubin, kernel.name, target=obj.target)
        same = code[: len(done.program.data)] == done.program.data
        if same:
            return of_translated(done, shown, runs, engines, graphs=graphs)
        if whole is None:
            text = "the code object has no map, and its code is not what this SASS is translated to"
            raise LoweringError("SX0450", text, Where(kernel=kernel.name))
        if graphs:
            text = "the kernel was written as a whole, so no block has a block: see --format text"
            raise LoweringError("SX0450", text, Where(kernel=kernel.name))
        found = whole
    cfg = kernel_cfg(link_kernel(kernel, cubin))
    _check(cfg, found, len(code))
    lines = tuple(_used(decode_code(code), found))
    known = engines is not None
    idle = dead_instructions(cfg)
    source = _Source(cfg, lines, found, idle, known, engines or {}, runs, graphs)
    return _beside(source, kernel, obj.target, shown, "the code object's own map")


def _used(lines: Iterator[Decoded], found: Exact) -> Iterator[Decoded]:
    """Without the padding after the end."""
    last = max((end for _, end, _ in found.added), default=0)
    for line in lines:
        if line.address >= last and (line.is_zero or line.text == "s_code_end"):
            return
        yield line


def _check(cfg: Cfg, found: Exact, size: int) -> None:
    """Compares the note's SASS with the kernel's.  LoweringError SX0450 if they differ."""
    texts = {i.offset: i.text for block in cfg.blocks for i in block.instructions}
    starts = [b.start for b in cfg.blocks]
    places = [at for at, _ in found.blocks], [at for at, _ in found.rows]
    for some in places:
        if some != sorted(some) or (some and not 0 <= some[0] <= some[-1] <= size):
            text = "the code object's map is damaged: its offsets are out of order"
            raise LoweringError("SX0450", text, Where(kernel=cfg.name))
    if found.blocks and [start for _, start in found.blocks] != starts:
        text = "the code object's map is of other blocks than this SASS has"
        raise LoweringError("SX0450", text, Where(kernel=cfg.name))
    for _, row in found.rows:
        place, _, text = row.partition(" ")
        offset = _place(place)
        if offset not in texts or (text and texts[offset] != text):
            message = f"the code object's map names an instruction that is not there: {row[:200]}"
            raise LoweringError("SX0450", message, Where(kernel=cfg.name, offset=offset))


def _place(text: str) -> int:
    """The offset in ``/*00f0*/``; -1 if there is none."""
    try:
        return int(text[2:-2], 16)
    except ValueError:
        return -1


def _beside(source: _Source, kernel: Kernel, target: Target, shown: str, said: str) -> Beside:
    parts = tuple(_parts(source))
    used = {c.added for part in parts for c in part.codes() if c.added}
    kinds = tuple((kind, ADDED[kind]) for kind in ADDED if kind and kind in used)
    if _NONE in used:
        kinds += ((_NONE, ADDED[""]),)
    name = shown or kernel.demangled or kernel.name
    both = _graphs(source, kernel.name, name, target) if source.graphs else None
    return Beside(kernel.name, name, f"sm_{kernel.arch}", target.name, parts, said, kinds, both)


def _graphs(source: _Source, name: str, shown: str, target: Target) -> tuple[Picture, Picture]:
    return (
        sass_picture(source.cfg, shown),
        rdna3_picture(name, source.lines, shown, target=target.name),
    )


def _parts(source: _Source) -> Iterator[Part]:
    lines, exact = source.lines, source.exact
    end = lines[-1].address + len(lines[-1].code) if lines else 0
    if not exact.blocks:
        instructions = [i for block in source.cfg.blocks for i in block.instructions]
        rows = tuple(_Codes(source).scattered(instructions, end))
        yield Part(WHOLE, source.cfg.blocks[0].start, 0, end, rows)
        return
    bounds = [at for at, _ in exact.blocks]
    tail = [at for at, _, kind in exact.added if kind in _TAIL and at >= (bounds or [0])[-1]]
    code = _Codes(source)
    limits = [*bounds, min(tail, default=end)]
    if limits[0]:
        yield Part(source_map.PROLOGUE, None, 0, limits[0], tuple(code.alone(0, limits[0])))
    for block, first, last in zip(source.cfg.blocks, limits, limits[1:], strict=False):
        rows = tuple(code.rows(block.instructions, first, last))
        times = _times(source, block.instructions, first, last)
        yield Part(f"{block.start:04x}", block.start, first, last, rows, times)
    first = limits[-1]
    shared = min((at for at, _, k in exact.added if k == source_map.SHARED), default=end)
    for name, start, last in (
        (source_map.SCHEDULER, first, shared),
        (source_map.SHARED, max(shared, first), end),
    ):
        if start < last:
            yield Part(name, None, start, last, tuple(code.alone(start, last)))


def _times(
    source: _Source, instructions: Sequence[Instruction], first: int, last: int
) -> int | None:
    """Entries of waves into a block: the minimum over its instructions, whose code may have loops;
    for a block without any code, that of its first byte."""
    runs = source.runs
    if runs is None:
        return None
    some = [runs.sass[i.offset] for i in instructions if i.offset in runs.sass]
    if some:
        return min(some)
    return runs.at(first) if first < last else None


class _Codes:
    """The decoded code with the SASS instruction that each instruction implements."""

    def __init__(self, source: _Source) -> None:
        self.source = source
        self.starts = [line.address for line in source.lines]
        self.row_starts = [at for at, _ in source.exact.rows]
        self.run_starts = [at for at, _, _ in source.exact.added]

    def between(self, first: int, end: int) -> Iterator[tuple[int | None, Code]]:
        """(offset of the SASS instruction or None, RDNA3 instruction)."""
        at = bisect_right(self.starts, first - 1)
        while at < len(self.starts) and self.starts[at] < end:
            yield self._one(self.source.lines[at])
            at += 1

    def _one(self, line: Decoded) -> tuple[int | None, Code]:
        offset = line.address
        text = line.text
        target = target_of(line)
        if target is not None:
            text += f"  -> {target:04x}"
        runs = None if self.source.runs is None else self.source.runs.at(offset)
        at = bisect_right(self.run_starts, offset) - 1
        if at >= 0:
            _, end, kind = self.source.exact.added[at]
            if offset < end:
                return None, Code(offset, text, kind or _NONE, runs)
        at = bisect_right(self.row_starts, offset) - 1
        if at < 0:
            return None, Code(offset, text, _NONE, runs)
        return _place(self.source.exact.rows[at][1].partition(" ")[0]), Code(offset, text, "", runs)

    def alone(self, first: int, end: int) -> Iterator[SideBySideRow]:
        """Code outside all blocks."""
        codes = tuple(
            code if source is None else Code(code.offset, code.text, _NONE, code.runs)
            for source, code in self.between(first, end)
        )
        if codes:
            yield SideBySideRow(None, codes)

    def rows(
        self, instructions: Sequence[Instruction], first: int, end: int
    ) -> Iterator[SideBySideRow]:
        """A block's rows: SASS in order, added code at its place."""
        index = {ins.offset: n for n, ins in enumerate(instructions)}
        groups: list[tuple[int | None, list[Code]]] = []
        for source, code in self.between(first, end):
            n = index.get(source) if source is not None else None
            if source is not None and n is None:
                code = Code(code.offset, code.text, _NONE, code.runs)
            if groups and groups[-1][0] == n:
                groups[-1][1].append(code)
            elif n is not None and len(groups) > 1 and groups[-2][0] == n:
                # A wait in the middle of an instruction's code.
                codes = groups.pop()[1]
                groups[-1][1].extend([*codes, code])
            else:
                groups.append((n, [code]))
        following = 0
        for n, codes in groups:
            if n is None:
                yield SideBySideRow(None, tuple(codes))
                continue
            for i in range(following, n):
                yield self._empty(instructions[i], instructions)
            following = max(following, n + 1)
            yield self._row(instructions[n], tuple(codes), instructions)
        for ins in instructions[following:]:
            yield self._empty(ins, instructions)

    def scattered(self, instructions: Sequence[Instruction], end: int) -> Iterator[SideBySideRow]:
        """A kernel's rows where an instruction's code is not in one piece: SASS in order, each with
        all of its code; added code last."""
        codes: dict[int, list[Code]] = {ins.offset: [] for ins in instructions}
        added: list[Code] = []
        for source, code in self.between(0, end):
            if source is not None and source in codes:
                codes[source].append(code)
            else:
                added.append(code if code.added else replace(code, added=_NONE))
        for ins in instructions:
            some = tuple(codes[ins.offset])
            yield self._row(ins, some, instructions) if some else self._empty(ins, instructions)
        if added:
            yield SideBySideRow(None, tuple(added))

    def _row(
        self, ins: Instruction, code: tuple[Code, ...], block: Sequence[Instruction]
    ) -> SideBySideRow:
        if not self.source.rules:
            return SideBySideRow(Line(ins.offset, ins.text), code)
        engine = self.source.engines.get(ins.offset, RULES)
        rule = rule_of(ins, ins is block[-1]) if engine == RULES else ""
        return SideBySideRow(Line(ins.offset, ins.text), code, rule, engine)

    def _empty(self, ins: Instruction, block: Sequence[Instruction]) -> SideBySideRow:
        t, line = traits(ins), Line(ins.offset, ins.text)
        if t.order == "schedule":
            why = WHY_ORDER
        elif ins.offset in self.source.idle:
            why = WHY_IDLE
        elif ins.offset in self.source.engines:  # which writes a whole region at once
            return SideBySideRow(line, (), engine=self.source.engines[ins.offset], why=WHY_PIECE)
        elif t.barrier or (t.ends_block and ins is block[-1]):
            why = WHY_FOLDED
        else:
            why = WHY_NONE if self.source.rules else WHY_UNMARKED
        return SideBySideRow(line, (), why=why)


def rule_of(ins: Instruction, last: bool) -> str:
    """The name of the rule that writes an instruction; control and convergence code has names of
    its own."""
    if traits(ins).barrier:
        return "convergence"
    if last and traits(ins).ends_block:
        return "control"
    rule = choose(TABLE.get(ins.mnemonic, ()), ins)
    return rule.name if rule is not None else ""


def side_by_side(
    cubin: Cubin,
    kernel: Kernel,
    data: bytes | None = None,
    target: Target = DEFAULT,
    *,
    graphs: bool = False,
) -> Beside:
    """The map of a kernel with its translation in a code object, or, without one, with a new
    translation for a target."""
    if data is not None:
        return of_code_object(cubin, kernel, data, graphs=graphs)
    try:
        return of_translated(translate_kernel(cubin, kernel.name, target=target), graphs=graphs)
    except SassxlateError as error:
        raise error.at(kernel=kernel.name) from None


__all__ = ["of_code_object", "of_translated", "rule_of", "side_by_side"]
