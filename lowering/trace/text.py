"""The output of `sassxlate trace`: steps, the difference, both states; as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click
import numpy as np

from sassxlate.cfg.view.rdna3 import text_of
from sassxlate.disasm.listing.rdna3_section import ListedInstruction
from sassxlate.disasm.rdna3 import decode
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.trace.observations import ALL, DIFFERENCES, End, Seen, Value
from sassxlate.lowering.trace.points import SourceStep, place_of
from sassxlate.lowering.trace.subject import Subject
from sassxlate.output import print_json_line

_WIDTH = 56


def lanes_text(mask: int) -> str:
    """0-3,7 for a mask of lanes."""
    from sassxlate.cfg.view.dump import runs

    found = runs(n for n in range(32) if mask >> n & 1)
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found) or "none"


def name_of(ref: RegRef) -> str:
    return f"{ref.file}{ref.index}"


def _shown(ref: RegRef, value: int) -> str:
    return str(value) if ref.file in ("P", "UP") else f"0x{value:08x}"


class Printer:
    """Prints steps; ``lanes`` are those that were chosen, ``registers`` None or the wanted ones."""

    def __init__(
        self,
        subject: Subject,
        lanes: int,
        registers: frozenset[RegRef] | None,
        *,
        as_json: bool,
    ) -> None:
        self.subject = subject
        self.lanes = lanes
        self.registers = registers
        self.as_json = as_json
        obj = read(subject.code)
        self.text, self.entry = obj.text, obj.kernel(subject.kernel.name).entry

    # -- parts -----------------------------------------------------------------------------

    def code(self, step: SourceStep) -> list[tuple[int, str]]:
        """The RDNA3 instructions of a step, from the bytes that run."""
        out: list[tuple[int, str]] = []
        for offset in step.rdna:
            inst, size = decode(self.text, self.entry + offset)
            at = self.entry + offset
            line = ListedInstruction(at, self.text[at : at + size], inst)
            out.append((offset, text_of(line, self.entry)))
        return out

    def place(self, warp: int) -> str:
        block, inside = divmod(warp, self.subject.waves)
        x, y, _ = self.subject.recorded.grid
        return f"block {block % x},{block // x % y},{block // (x * y)} warp {inside}"

    def _wanted(self, seen: Seen) -> list[Value]:
        return [v for v in seen.values if self.registers is None or v.ref in self.registers]

    # -- a step ----------------------------------------------------------------------------

    def show(self, seen: Seen) -> None:
        """One step, for the lanes that were chosen."""
        if self.as_json:
            click.echo(json.dumps(self.record(seen)))
            return
        lanes = seen.active & self.lanes
        head = f"/*{seen.step.ins.offset:04x}*/ {seen.step.ins.text}"
        who = f"{self.place(seen.warp)} lanes {lanes_text(seen.active)}"
        if not lanes:
            click.echo(f"{head:<{_WIDTH}} {who}; {lanes_text(self.lanes)} not active")
            return
        if seen.executing != seen.active:
            who += f", of these {lanes_text(seen.executing)} by the guard"
        click.echo(f"{head:<{_WIDTH}} {who}")
        self._code(seen.step)
        missing = lanes & ~seen.here if seen.step.before is not None and seen.values else 0
        if missing:
            click.echo(f"    RDNA3 does not come here in lanes {lanes_text(missing)}")
        for value in self._wanted(seen):
            self._value(seen, value, lanes)

    def _code(self, step: SourceStep) -> None:
        for offset, text in self.code(step):
            click.echo(f"    {offset:06x}  {text}")
        if not step.rdna:
            click.echo("    no RDNA3 of its own")

    def _value(self, seen: Seen, value: Value, lanes: int) -> None:
        """Lanes with equal values share a line."""
        written = value.ref in seen.step.ins.writes
        groups: dict[tuple[Any, ...], int] = {}
        for lane in range(32):
            if lanes >> lane & 1:
                theirs = (value.rdna_before, value.rdna_after)
                there = seen.here >> lane & 1
                key = (
                    int(value.sass_before[lane]),
                    int(value.sass_after[lane]),
                    *(int(part[lane]) if part is not None and there else None for part in theirs),
                    value.differs >> lane & 1,
                )
                groups[key] = groups.get(key, 0) | 1 << lane
        for key, mask in groups.items():
            sass = _way(value.ref, key[0], key[1], written)
            rdna = _way(value.ref, key[2], key[3], written)
            where = str(value.place) if value.place is not None else "-"
            line = f"      {value.name:<5} {where:<8} "
            if rdna is None:
                line += f"SASS {sass}"
            elif rdna == sass:
                line += f"{rdna}"
            else:
                line += f"RDNA3 {rdna}  SASS {sass}"
            line += "  <- differs" if key[4] else ""
            click.echo(line if mask == lanes else f"{line:<{_WIDTH}} lanes {lanes_text(mask)}")

    def record(self, seen: Seen) -> dict[str, Any]:
        """The JSON form; values are those of the chosen active lanes, in order."""
        step = seen.step
        lanes = [n for n in range(32) if (seen.active & self.lanes) >> n & 1]
        block, inside = divmod(seen.warp, self.subject.waves)

        def some(part: Any) -> list[int | None] | None:
            if part is None:
                return None
            return [int(part[n]) for n in lanes]

        return {
            "step": seen.number,
            "offset": step.ins.offset,
            "sass": step.ins.text,
            "block": step.block,
            "cta": block,
            "warp": inside,
            "active": f"{seen.active:08x}",
            "executing": f"{seen.executing:08x}",
            "rdna3_here": f"{seen.here:08x}",
            "rdna3": [{"offset": offset, "text": text} for offset, text in self.code(step)],
            "lanes": lanes,
            "registers": [
                {
                    "name": v.name,
                    "place": None if v.place is None else str(v.place),
                    "written": v.ref in step.ins.writes,
                    "sass": {"before": some(v.sass_before), "after": some(v.sass_after)},
                    "rdna3": {"before": some(v.rdna_before), "after": some(v.rdna_after)},
                    "differs": f"{v.differs:08x}",
                }
                for v in self._wanted(seen)
            ],
        }

    # -- the end ---------------------------------------------------------------------------

    def end(self, end: End, facts: Mapping[str, Any], until: bool) -> None:
        if self.as_json:
            print_json_line("trace-end", {"end": end.kind, "text": end.text, **facts})
            return
        if end.kind in DIFFERENCES or end.kind == "order":
            what = "difference" if end.kind != "order" else "not decided"
            click.echo(f"{what}: {end.text}")
        elif until:
            none = "no difference" + (", as far as it went" if end.kind != "done" else "")
            click.echo(f"{none}: {end.text}")
        else:
            click.echo(f"end: {end.text}")

    def states(
        self, refs: Iterable[RegRef], sass: Mapping[RegRef, Any], rdna: Mapping[Any, Any], lane: int
    ) -> None:
        """The registers of one lane on both sides, if they hold something."""
        regs = self.subject.translated.selected.regs
        rows: list[dict[str, Any]] = []
        for ref in refs:
            place = place_of(regs, ref)
            if place is None or place not in rdna:
                continue
            theirs = int(rdna[place][lane])
            if ref.file in ("P", "UP"):
                theirs = theirs >> lane & 1
            mine = int(sass[ref][lane])
            rows.append({"name": name_of(ref), "place": str(place), "sass": mine, "rdna3": theirs})
        if self.as_json:
            print_json_line("trace-state", {"state_of_lane": lane, "registers": rows})
            return
        click.echo(f"registers of lane {lane} that are live after it:")
        by_name = {name_of(ref): ref for ref in sass}
        for row in rows:
            ref = by_name[row["name"]]
            mark = "" if row["sass"] == row["rdna3"] else "  <- differs"
            shown = _shown(ref, row["rdna3"]), _shown(ref, row["sass"])
            click.echo(
                f"  {row['name']:<5} {row['place']:<10} RDNA3 {shown[0]:<10}  SASS {shown[1]}{mark}"
            )


def _way(ref: RegRef, before: int | None, after: int | None, written: bool) -> str | None:
    if before is None:
        return None
    if not written:
        return _shown(ref, before)
    return f"{_shown(ref, before)} -> " + ("?" if after is None else _shown(ref, after))


def chosen_lanes(text: str, bad: Callable[[str], Exception]) -> int:
    """all, or 0,4-7 as a mask."""
    if text == "all":
        return ALL
    out = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise bad(text)
        low, high = int(first), int(last or first)
        if not 0 <= low <= high <= 31:
            raise bad(text)
        out |= int(np.uint64((1 << high + 1) - (1 << low)))
    return out
