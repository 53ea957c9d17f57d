"""A block from texts: SASS, RDNA3, and the place of each register.

Any engine's block can be verified this way: a rule's, a model's, a hand-written one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sassxlate.disasm.rdna3 import decode, encode
from sassxlate.disasm.rdna3.codec.text.parse import parse
from sassxlate.disasm.rdna3.instruction import S, V
from sassxlate.disasm.sass import BadWord, decode_section
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import LoweringError, SassxlateError, Where
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.nans import claims
from sassxlate.lowering.verify.rdna3.execute import Placed

_OFFSET = re.compile(r"/\*([0-9a-f]{4,})\*/")
_REGISTER = re.compile(r"(UR|UP|R|P)(\d+)")
_PLACE = re.compile(r"([vs])(\d+)")
_TRANSFERS = (
    "s_branch", "s_cbranch_", "s_call_", "s_setpc_", "s_swappc_", "s_endpgm", "s_barrier", "s_trap",
)  # fmt: skip
_WORD = re.compile(r"c\[(0x[0-9a-f]+|\d+)\]\[(0x[0-9a-f]+|\d+)\]")


@dataclass(frozen=True, slots=True)
class Texts:
    """A block as text.  ``registers`` and ``constants`` name places (``R4`` is ``v4``, ``P0`` is
    ``s20``, ``c[0x0][0x210]`` is ``s40``); ``live_out`` and ``merged`` name registers; by default
    all and none of the map's.

    A comment on a line of ``rdna3`` may name the SASS instruction that it belongs to, as `sassxlate
    translate` writes it; then the proof goes instruction by instruction.
    """

    arch: int
    sass: str
    rdna3: str
    registers: Mapping[str, str]
    constants: Mapping[str, str] = field(default_factory=dict[str, str])
    live_out: tuple[str, ...] | None = None
    merged: tuple[str, ...] = ()
    live: str = "s3"  # the mask of lanes that have not ended
    save: str = "s2"  # EXEC around a guard
    thread: str = "v255"


def _bad(code: str, message: str, line: str | None = None) -> LoweringError:
    return LoweringError(code, message, Where(inst=line))


def read_texts(text: str) -> Texts:
    """A block's file: TOML with the fields of :class:`Texts`.

    Raises LoweringError SX0442 if it is not such a file.
    """
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _bad("SX0442", f"no TOML: {error}") from None
    unknown = set(data) - set(Texts.__slots__)
    missing = {"arch", "sass", "rdna3", "registers"} - set(data)
    if unknown or missing:
        what = "unknown" if unknown else "missing"
        raise _bad("SX0442", f"{what}: {', '.join(sorted(unknown or missing))}")
    if not isinstance(data["arch"], int):
        raise _bad("SX0442", "arch must be a number such as 90")
    for name in ("registers", "constants"):
        table = data.get(name, {})
        if not isinstance(table, dict) or not all(
            isinstance(v, str) for v in cast("dict[str, object]", table).values()
        ):
            raise _bad("SX0442", f"{name} must be a table of places")
    for name in ("live_out", "merged"):
        if name in data:
            data[name] = tuple(map(str, data[name]))
    for name in ("sass", "rdna3", "live", "save", "thread"):
        if not isinstance(data.get(name, ""), str):
            raise _bad("SX0442", f"{name} must be text")
    return Texts(**data)


def block_of(texts: Texts, target: Target = DEFAULT) -> BlockPair:
    """The block, with code for a target.

    Raises:
        LoweringError: SX0440, a register without a place; SX0441, a transfer of control inside;
            SX0442, a name that is not a register or place, or a place that is given twice.
        DecodeError, EncodeError: text that is not an instruction.
    """
    regs = _map(texts, target)
    sass = _sass(texts)
    for ins in sass:
        for ref in sorted(ins.reads | ins.writes, key=lambda r: (r.file, r.index)):
            table = {"R": regs.r, "UR": {**regs.ur, **regs.ur_lanes}, "P": regs.p, "UP": regs.up}
            if ref.index not in table.get(ref.file, {}):
                message = f"{ref.file}{ref.index} has no place in the register map"
                raise _bad("SX0440", message, ins.text)
    live = None if texts.live_out is None else frozenset(map(_ref, texts.live_out))
    merged = frozenset(map(_ref, texts.merged))
    loose, loose_out = claims(sass)
    return BlockPair(
        sass,
        _rdna(texts, sass),
        regs,
        bank_layout(texts.arch),
        merged,
        live_out=live,
        loose=loose,
        loose_out=loose_out,
    )


def _ref(name: str) -> RegRef:
    found = _REGISTER.fullmatch(name)
    if found is None:
        raise _bad("SX0442", f"{name!r} is not a register")
    return RegRef(cast(Any, found[1]), int(found[2]))


def _place(name: str, kinds: str, target: Target) -> V | S:
    found = _PLACE.fullmatch(name)
    most = {"v": target.vgprs, "s": target.sgprs}
    if found is None or found[1] not in kinds or int(found[2]) >= most[found[1]]:
        raise _bad("SX0442", f"{name!r} is not a place of this kind")
    return V(int(found[2])) if found[1] == "v" else S(int(found[2]))


def _map(texts: Texts, target: Target) -> RegisterMap:
    r: dict[int, int] = {}
    ur: dict[int, int] = {}
    lanes: dict[int, int] = {}
    p: dict[int, S] = {}
    up: dict[int, S] = {}
    taken: set[str] = set()
    for where in [*texts.registers.values(), *texts.constants.values()]:
        if where in taken:
            raise _bad("SX0442", f"{where} is the place of two registers")
        taken.add(where)
    for name, where in texts.registers.items():
        ref = _ref(name)
        at = _place(where, {"R": "v", "UR": "vs"}.get(ref.file, "s"), target)
        if ref.file == "R":
            r[ref.index] = at.index
        elif ref.file == "UR":
            (ur if isinstance(at, S) else lanes)[ref.index] = at.index
        elif isinstance(at, S):
            (p if ref.file == "P" else up)[ref.index] = at
    consts: dict[tuple[int, int], S] = {}
    for name, where in texts.constants.items():
        found = _WORD.fullmatch(name)
        if found is None:
            raise _bad("SX0442", f"{name!r} is not a word of a constant bank")
        consts[int(found[1], 0), int(found[2], 0)] = S(_place(where, "s", target).index)
    live, save = (S(_place(n, "s", target).index) for n in (texts.live, texts.save))
    thread = V(_place(texts.thread, "v", target).index)
    return RegisterMap(
        target=target, r=r, spilled={}, ur=ur, ur_lanes=lanes, p=p, up=up, live=live,
        save_exec=save, ready={}, regions=(), consts=consts, stemps=(), tid=thread,
        vtemp_base=target.vgprs, lane_vgprs=(), scratch_spill=0,
    )  # fmt: skip


def _lines(text: str) -> Iterable[str]:
    return (line for line in map(str.strip, text.splitlines()) if line)


def _sass(texts: Texts) -> list[Instruction]:
    out: list[Instruction] = []
    offset = 0
    for line in _lines(texts.sass):
        head = _OFFSET.match(line)
        if head is not None:
            offset, line = int(head[1], 16), line[head.end() :].strip()
        try:
            word = assemble(line, texts.arch, offset)
        except SassxlateError as error:
            raise error.at(offset=offset, inst=line) from None
        made = decode_section(word.to_bytes(16, "little"), texts.arch, strict=False).instructions
        (ins,) = made
        assert not isinstance(ins, BadWord)
        if traits(ins).ends_block:
            raise _bad("SX0441", "a block must not contain a transfer of control", ins.text)
        out.append(replace(ins, offset=offset))
        offset += 16
    if not out:
        raise _bad("SX0442", "no SASS")
    return out


def _rdna(texts: Texts, sass: list[Instruction]) -> list[list[Placed]]:
    """The code of each instruction: as the comments divide it, or all of it for the last."""
    number = {ins.offset: n for n, ins in enumerate(sass)}
    code: list[list[Placed]] = [[] for _ in sass]
    named = any(_OFFSET.search(line) for line in _lines(texts.rdna3))
    here, at = (0 if named else len(sass) - 1), 0
    for line in _lines(texts.rdna3):
        if line.startswith(("//", ";")):
            continue
        comment = _OFFSET.search(line)
        if comment is not None:
            here = max(here, number.get(int(comment[1], 16), here))
        op = line.split()[0]
        if op.startswith(_TRANSFERS):
            raise _bad("SX0441", "a block must not contain a transfer of control", line)
        try:
            data = encode(parse(line))
        except SassxlateError as error:
            raise error.at(inst=line) from None
        inst, size = decode(data, 0)
        code[here].append(Placed(inst, at, at + size))
        at += size
    return code
