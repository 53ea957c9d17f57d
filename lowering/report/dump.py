"""What a pass makes of a kernel, as text: `sassxlate translate --dump-after`.

Lists of instructions are assembly: labels, and instructions as LLVM writes them, each with a
comment after ``//`` that says what it is there for.  :func:`read_items` reads them back.  A
register map has one line for each place, which :func:`read_map` reads back.  The other values are
to be read by people.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, singledispatch

from sassxlate.cfg.graph import LABEL
from sassxlate.cfg.regions import Region
from sassxlate.cfg.view.dump import to_text
from sassxlate.disasm.rdna3 import format_inst
from sassxlate.disasm.rdna3.codec.text.parse import parse_with_labels
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item, Label, S, V
from sassxlate.errors import EncodeError, Where
from sassxlate.lowering.codeobject.source_map import origin_texts
from sassxlate.lowering.pipeline import Assembled, Code, EncodedCode, Written
from sassxlate.lowering.regalloc.register_map import LaneSlot, RegisterMap, Slot
from sassxlate.lowering.select.stages import (
    Allocated,
    Analysed,
    Graphed,
    Linked,
    Planned,
    Selected,
)
from sassxlate.lowering.target import target_named

_BLOCK = re.compile(rf"{LABEL}([0-9a-f]+):")
_ORIGIN = re.compile(r"/\*([0-9a-f]+)\*/(?: (.*))?")


@singledispatch
def dump(value: object) -> str:
    """The value of a pass as text, which ends with a newline."""
    raise TypeError(f"no text for a {type(value).__name__}")


@dump.register
def _linked(value: Linked) -> str:
    kernel = value.kernel
    lines = [
        f"kernel {kernel.name} sm_{kernel.arch}",
        f"code {len(kernel.code)} bytes",
        f"parameters {kernel.param_size} bytes at c[0x0][{kernel.param_base:#x}]",
        f"shared {kernel.shared_size} bytes",
        f"local {kernel.local_size} bytes",
        *(f"function {f.value:04x} {f.name}" for f in kernel.callees),
    ]
    return _joined(lines)


@dump.register
def _graphed(value: Graphed) -> str:
    return to_text(value.cfg)


@dump.register
def _analysed(value: Analysed) -> str:
    nans = value.nans
    lines = [
        f"unread {_offsets(value.unread)}",
        f"exact nan {_offsets(nans.exact)}",
        f"wide nan {_offsets(nans.wide)}",
    ]
    return _joined([line.rstrip() for line in lines]) + "\n" + to_text(value.cfg)


@dump.register
def _planned(value: Planned) -> str:
    plan = value.plan
    lines = [
        *(f"point {p.key:04x} block {p.block} {p.sync or 'head'}" for p in plan.points),
        *(f"region {n} {_region(region)}" for n, region in enumerate(plan.regions)),
        *(f"sync {at:04x} region {n}" for at, n in sorted(plan.sync_region.items())),
        f"pending {' '.join(sorted(f'{r.file}{r.index}' for r in plan.pending_live))}".rstrip(),
        f"latches {' '.join(map(str, sorted(plan.latches)))}".rstrip(),
        f"barriers {' '.join(f'B{b}' for b in plan.barriers)}".rstrip(),
    ]
    return _joined(lines)


@dump.register
def _allocated(value: Allocated) -> str:
    return map_text(value.regs)


@dump.register
def _selected(value: Selected) -> str:
    return items_text(value.items)


@dump.register
def _code(value: Code) -> str:
    return items_text(value.items)


@dump.register
def _encoded(value: EncodedCode) -> str:
    return items_text(value.encoded.items)


@dump.register
def _assembled(value: Assembled) -> str:
    return items_text(value.items)


@dump.register
def _written(value: Written) -> str:
    data = value.code_object
    return f"{len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}\n"


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _offsets(offsets: Iterable[int]) -> str:
    return " ".join(f"{offset:04x}" for offset in sorted(offsets))


def _region(region: Region) -> str:
    return (
        f"target {region.target:04x} barrier B{region.barrier} arms {_offsets(region.arms)}"
        f" syncs {_offsets(region.syncs)} breaks {_offsets(region.breaks)}"
        f"{' soft' if region.soft else ''}"
    )


# --- instructions --------------------------------------------------------------------------------


def items_text(items: Sequence[Item]) -> str:
    """A program as assembly text that :func:`read_items` reads."""
    return _joined(_lines(items))


def _lines(items: Sequence[Item]) -> Iterator[str]:
    for item, origin in zip(items, origin_texts(items), strict=True):
        if isinstance(item, Label):
            yield f"{item.name}:"
            continue
        marks = [name for name in ("uniform", "fence") if getattr(item, name)]
        said = " ".join([*(f"[{m}]" for m in marks), *([origin] if origin else [])])
        text = f"  {format_inst(item)}"
        yield f"{text:<56}  // {said}" if said else text.rstrip()


_parsed = lru_cache(maxsize=1 << 14)(parse_with_labels)


def read_items(text: str) -> list[Item]:
    """The program of a text that :func:`items_text` wrote, or that is written like one: a line each
    for a label and an instruction; empty lines, and such with a comment alone, are left out.

    Raises:
        EncodeError: SX0525, with the line, for text that is not an instruction.
    """
    out: list[Item] = []
    sass: dict[int, InstOrigin] = {}
    for number, line in enumerate(text.splitlines(), 1):
        body, _, comment = line.partition("//")
        body = body.strip()
        if not body:
            continue
        if body.endswith(":"):
            block = _BLOCK.fullmatch(body)
            out.append(Label(body[:-1], block=None if block is None else int(block[1], 16)))
            continue
        try:
            inst = _parsed(body)
        except EncodeError as error:
            where = Where(offset=number, inst=body)
            raise EncodeError(error.code, f"line {number}: {error.message}", where) from None
        out.append(_with_comment(inst, comment.strip(), sass))
    return out


def _with_comment(inst: Inst, comment: str, sass: dict[int, InstOrigin]) -> Inst:
    marks = {"uniform": False, "fence": False}
    for mark in marks:
        if comment.startswith(f"[{mark}]"):
            marks[mark] = True
            comment = comment.removeprefix(f"[{mark}]").strip()
    found = _ORIGIN.fullmatch(comment)
    origin: InstOrigin | None = InstOrigin(comment) if comment else None
    if found is not None:
        offset = int(found[1], 16)
        origin = sass.setdefault(offset, InstOrigin(found[2] or "", offset))
    return replace(inst, uniform=marks["uniform"], fence=marks["fence"], origin=origin)


# --- the register map ----------------------------------------------------------------------------


def map_text(regs: RegisterMap) -> str:
    """A register map as text that :func:`read_map` reads: a SASS place and its RDNA3 place a line.

    ``R4 v4``, ``R9 scratch+8``, ``UR6 s6``, ``UR7 v30`` (one copy per lane), ``P0 s40``, ``ready
    0120 v31[2]`` (a lane of a VGPR), ``region s50``, ``c[0x0][0x160] s60``.
    """
    m = regs
    return _joined(
        [
            f"target {m.target.name}",
            *(f"R{i} v{v}" for i, v in sorted(m.r.items())),
            *(f"R{i} scratch+{at}" for i, at in sorted(m.spilled.items())),
            *(f"UR{i} s{s}" for i, s in sorted(m.ur.items())),
            *(f"UR{i} v{v}" for i, v in sorted(m.ur_lanes.items())),
            *(f"P{i} s{s.index}" for i, s in sorted(m.p.items())),
            *(f"UP{i} s{s.index}" for i, s in sorted(m.up.items())),
            *(f"B{i} v{v}" for i, v in sorted(m.barriers.items())),
            f"live s{m.live.index}",
            f"save_exec s{m.save_exec.index}",
            f"thread v{m.tid.index}",
            *(f"ready {_key(at)} {_slot(slot)}" for at, slot in m.ready.items()),
            *(f"region {_slot(slot)}" for slot in m.regions),
            *(f"c[{b:#x}][{at:#x}] s{s.index}" for (b, at), s in m.consts.items()),
            f"lanes {' '.join(f'v{v}' for v in m.lane_vgprs)}".rstrip(),
            f"scratch {m.scratch_spill}",
            f"temporaries v{m.vtemp_base} {' '.join(f's{s}' for s in m.stemps)}".rstrip(),
        ]
    )


def _key(point: int) -> str:
    """A point's offset; of a mask that belongs to no point, the number."""
    return str(point) if point < 0 else f"{point:04x}"


def _slot(slot: Slot) -> str:
    return f"v{slot.vgpr}[{slot.lane}]" if isinstance(slot, LaneSlot) else f"s{slot.index}"


def _read_slot(text: str) -> Slot:
    vgpr, _, lane = text.partition("[")
    return LaneSlot(int(vgpr[1:]), int(lane[:-1])) if lane else S(int(text[1:]))


_REGISTER = re.compile(r"(R|UR|P|UP|B)(\d+)")
_SINGLE = frozenset({"target", "live", "save_exec", "thread", "lanes", "scratch", "temporaries"})
_CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[(0x[0-9a-f]+)\]")


def read_map(text: str) -> RegisterMap:
    """The map of a text that :func:`map_text` wrote.  ValueError where it is none."""
    places: dict[str, dict[int, str]] = {file: {} for file in ("R", "UR", "P", "UP", "B")}
    one: dict[str, list[str]] = {}
    ready: dict[int, Slot] = {}
    regions: list[Slot] = []
    consts: dict[tuple[int, int], S] = {}
    for line in text.splitlines():
        name, *rest = line.split()
        if (register := _REGISTER.fullmatch(name)) is not None:
            (places[register[1]][int(register[2])],) = rest
        elif (word := _CONSTANT.fullmatch(name)) is not None:
            consts[int(word[1], 16), int(word[2], 16)] = S(int(rest[0][1:]))
        elif name == "ready":
            ready[int(rest[0], 10 if rest[0][0] == "-" else 16)] = _read_slot(rest[1])
        elif name == "region":
            regions.append(_read_slot(rest[0]))
        elif name in _SINGLE:
            one[name] = rest
        else:
            raise ValueError(f"no place {line!r} of a register map")
    temporaries = one["temporaries"]
    return RegisterMap(
        target=target_named(one["target"][0]),
        r={i: int(p[1:]) for i, p in places["R"].items() if p[0] == "v"},
        spilled={i: int(p[8:]) for i, p in places["R"].items() if p.startswith("scratch+")},
        ur={i: int(p[1:]) for i, p in places["UR"].items() if p[0] == "s"},
        ur_lanes={i: int(p[1:]) for i, p in places["UR"].items() if p[0] == "v"},
        p={i: S(int(p[1:])) for i, p in places["P"].items()},
        up={i: S(int(p[1:])) for i, p in places["UP"].items()},
        live=S(int(one["live"][0][1:])),
        save_exec=S(int(one["save_exec"][0][1:])),
        ready=ready,
        regions=tuple(regions),
        consts=consts,
        stemps=tuple(int(s[1:]) for s in temporaries[1:]),
        tid=V(int(one["thread"][0][1:])),
        vtemp_base=int(temporaries[0][1:]),
        lane_vgprs=tuple(int(v[1:]) for v in one["lanes"]),
        scratch_spill=int(one["scratch"][0]),
        barriers={i: int(p[1:]) for i, p in places["B"].items()},
    )


__all__ = ["dump", "items_text", "map_text", "read_items", "read_map"]
