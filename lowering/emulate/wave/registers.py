"""The registers of a wave as stack slots, with a cache of the values known in the current block.

Writes to a VGPR are merged with its old value under EXEC only if the other lanes are observable:
if it is read after EXEC has changed or across lanes, and at the end of a block if a later
block may read it.  Which blocks do so is known once all have been built; so the rest of a
block's registers is written to the slots last, by ``finish``.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_HI, EXEC_LO, NULL, VCC_HI, VGPRS
from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave import run
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Function, Val, const, vec_type
from sassxlate.lowering.target import LANES

V32 = vec_type(32)


@dataclass(slots=True)
class _Vgpr:
    """Known values of one VGPR: its whole value, newer values for the lanes that were active when
    they were written, in order, and the newest one, for the lanes active now.  ``view`` is right in
    the lanes that are active now, like ``active``, but is merged with the others already: it was
    written before lanes ended, or in the block before."""

    whole: Val | None = None
    older: list[tuple[Val, Val]] = field(default_factory=list[tuple[Val, Val]])  # (value, lanes)
    active: Val | None = None
    view: Val | None = None
    dirty: bool = False

    def seen(self) -> Val | None:
        """What is known of the lanes active now."""
        if self.active is not None:
            return self.active
        return self.view if self.view is not None or self.older else self.whole


@dataclass(slots=True)
class _Cache:
    vgpr: dict[int, _Vgpr] = field(default_factory=dict[int, _Vgpr])
    sgpr: dict[int, Val] = field(default_factory=dict[int, Val])
    dirty: set[int] = field(default_factory=set[int])
    lanes: dict[int, Val] = field(default_factory=dict[int, Val])
    scc: Val | None = None
    scc_dirty: bool = False
    exec_lanes: Val | None = None

    def passed_on(self) -> _Cache:
        """What a block knows that nothing but the end of this one leads to."""
        new = _Cache(sgpr=dict(self.sgpr), scc=self.scc)
        for i, e in self.vgpr.items():
            seen = e.seen()
            if seen is not None:
                new.vgpr[i] = _Vgpr(view=seen)
        return new


@dataclass(slots=True)
class _End:
    """The end of a block, written once the later reads are known."""

    block: int
    cache: _Cache
    memo: dict[str, str]
    line: int  # its index in the function's lines


class State:
    """Reads and writes the wave's registers in the block under construction."""

    def __init__(self, fn: Function, d: LlvmDomain) -> None:
        self.fn = fn
        self.d = d
        self._c = _Cache()
        self._made: set[str] = set()
        # In a function that runs several waves, what slots have at their start; and the SGPR with
        # the workgroup's number in its row.
        self._begun: dict[str, str] = {}
        self.workgroup: int | None = None
        self.poison = False  # strict mode: registers start with seeded rubbish
        # By what `read_s` returned: the SGPR whose value at the wave's start that is.
        self.first: dict[str, int] = {}
        self.starting = False  # whether the block is the wave's first, and is never entered again
        self.views = False  # whether values stay known where lanes only end, and to a next block
        self._passed: dict[int, _Cache] = {}  # by the block at whose end it is known
        self._block = 0
        self._ends: list[_End] = []
        # Per block, the VGPRs whose incoming values it uses, one bit each.
        self._uses: dict[int, int] = {}

    # -- slots ----------------------------------------------------------------------------

    def _init(self, slot: str, type_: str, offset: int | None) -> None:
        if slot in self._made:
            return
        self._made.add(slot)
        fn = self.fn
        begin = fn.entry if fn.around is None else fn.around.lines[-1]
        fn.entry.append(f"  {slot} = alloca {type_}, align {64 if type_ == V32 else 4}")
        if offset is None:
            first = self._rubbish(slot, type_) if self.poison else "zeroinitializer"
            begin.append(f"  store {type_} {first}, ptr {slot}")
            return
        init = f"%init.{slot[1:]}"
        if fn.around is not None and offset < WaveLayout.FOLLOWS:
            index = (offset - WaveLayout.SGPR) // 4
            init = self._begun[slot] = run.register(fn, index, self.workgroup)
        else:
            begin.append(f"  {init}.p = getelementptr i8, ptr %w, i64 {offset}")
            begin.append(f"  {init} = load {type_}, ptr {init}.p, align 4")
        begin.append(f"  store {type_} {init}, ptr {slot}")

    def _rubbish(self, slot: str, type_: str) -> str:
        """An undefined register's value, from the seed, the register and the lane."""
        entry, name = self.fn.entry, slot[1:]
        if "%rubbish" not in self._made:
            self._made.add("%rubbish")
            lanes = ", ".join(f"i32 {0x9E3779B1 * (i + 1) & 0xFFFFFFFF}" for i in range(LANES))
            splat = f"{V32} poison, <{LANES} x i32> zeroinitializer"
            entry += [
                f"  %rubbish.p = getelementptr i8, ptr %w, i64 {int(WaveLayout.STRICT_SEED)}",
                "  %rubbish.w = load i64, ptr %rubbish.p",
                "  %rubbish.h = lshr i64 %rubbish.w, 29",
                "  %rubbish.x = xor i64 %rubbish.w, %rubbish.h",
                "  %rubbish.s = trunc i64 %rubbish.x to i32",
                f"  %rubbish.1 = insertelement {V32} poison, i32 %rubbish.s, i64 0",
                f"  %rubbish.v = shufflevector {V32} %rubbish.1, {splat}",
                f"  %rubbish = xor {V32} %rubbish.v, <{lanes}>",
            ]
        factor = zlib.crc32(name.encode()) | 1
        if type_ == V32:
            entry += [
                f"  %r.{name}.m = mul {V32} %rubbish, splat (i32 {factor})",
                f"  %r.{name}.h = lshr {V32} %r.{name}.m, splat (i32 15)",
                f"  %r.{name} = xor {V32} %r.{name}.m, %r.{name}.h",
            ]
            return f"%r.{name}"
        entry += [
            f"  %r.{name}.m = mul i32 %rubbish.s, {factor}",
            f"  %r.{name}.h = lshr i32 %r.{name}.m, 15",
            f"  %r.{name}.x = xor i32 %r.{name}.m, %r.{name}.h",
            f"  %r.{name} = trunc i32 %r.{name}.x to {type_}"
            if type_ != "i32"
            else f"  %r.{name} = xor i32 %r.{name}.x, {factor}",
        ]
        return f"%r.{name}"

    def _s_slot(self, i: int) -> str:
        if i == EXEC_LO:
            slot, offset = "%exec", int(WaveLayout.EXEC)
        elif i <= VCC_HI:
            slot, offset = f"%s{i}", WaveLayout.SGPR + 4 * i
        else:
            slot, offset = f"%s{i}", -1
        self._init(slot, "i32", offset if offset >= 0 else None)
        return slot

    def _v_slot(self, i: int) -> str:
        slot = f"%v{i}"
        self._init(slot, V32, int(WaveLayout.V0) if i == 0 else None)
        return slot

    # -- scalars --------------------------------------------------------------------------

    def read_s(self, i: int) -> Val:
        """A scalar register by its operand code: SGPR, vcc, m0, exec, null, ttmp."""
        if i in (NULL, EXEC_HI):
            return const(0, 32)
        known = self._c.sgpr.get(i)
        if known is None:
            slot = self._s_slot(i)
            begun = self._begun.get(slot) if self.starting else None
            known = Val(begun or self.fn.emit_new(f"load i32, ptr {slot}"), 32, False)
            self._c.sgpr[i] = known
            if self.starting:
                self.first[known.ref] = i
        return known

    def write_s(self, i: int, value: Val) -> None:
        if i in (NULL, EXEC_HI):
            return
        if i == EXEC_LO:
            self._exec_changes(self.views and self._only_ends_lanes(value))
            self._c.exec_lanes = None
            self._c.lanes.clear()
        self._c.sgpr[i] = value
        self._c.dirty.add(i)
        self._c.lanes.pop(i, None)

    def read_scc(self) -> Val:
        if self._c.scc is None:
            self._init("%scc", "i1", None)
            self._c.scc = Val(self.fn.emit_new("load i1, ptr %scc"), 1, False)
        return self._c.scc

    def write_scc(self, value: Val) -> None:
        self._c.scc = value
        self._c.scc_dirty = True

    def exec_mask(self) -> Val:
        return self.read_s(EXEC_LO)

    def exec_lanes(self) -> Val:
        if self._c.exec_lanes is None:
            self._c.exec_lanes = self.d.lanes_of(self.exec_mask())
        return self._c.exec_lanes

    def read_mask(self, i: int) -> Val:
        """A scalar register as 32 truth values; those of inactive lanes are arbitrary."""
        known = self._c.lanes.get(i)
        return known if known is not None else self.d.lanes_of(self.read_s(i))

    def write_mask(self, i: int, lanes: Val) -> None:
        """Truth values of the active lanes; the bits of the others become 0."""
        value = self.d.and_(self.d.mask_of(lanes), self.exec_mask())
        self.write_s(i, value)
        if lanes.vec and i != EXEC_LO:
            self._c.lanes[i] = lanes

    # -- vectors --------------------------------------------------------------------------

    def _entry(self, i: int) -> _Vgpr:
        e = self._c.vgpr.get(i)
        if e is None:
            e = self._c.vgpr[i] = _Vgpr()
        return e

    def read_v(self, i: int) -> Val:
        """A VGPR as its active lanes see it; may be a scalar if all are equal."""
        e = self._entry(i)
        if e.active is not None:
            return e.active
        return e.view if e.view is not None else self._whole(i, e)

    def _whole(self, i: int, e: _Vgpr) -> Val:
        """All lanes, with their values when EXEC last changed."""
        if e.whole is None:
            e.whole = Val(self.fn.emit_new(f"load {V32}, ptr {self._v_slot(i)}"), 32, True)
            self._uses[self._block] = self._uses.get(self._block, 0) | 1 << i
        for value, lanes in e.older:
            e.whole = self.d.select(lanes, value, e.whole)
        e.older.clear()
        return e.whole

    def read_v_all(self, i: int) -> Val:
        """A VGPR with the values of inactive lanes."""
        self._merge(i, self._entry(i))
        return self._whole(i, self._entry(i))

    def write_v(self, i: int, value: Val) -> None:
        """Writes the active lanes."""
        if not 0 <= i < VGPRS:
            raise ValueError(f"v{i}")
        e = self._entry(i)
        e.active, e.view = value, None

    def write_v_all(self, i: int, value: Val) -> None:
        """Writes every lane, regardless of EXEC."""
        e = self._entry(i)
        e.older.clear()
        e.whole, e.active, e.view, e.dirty = self.d.splat(value), None, None, True

    def _merge(self, i: int, e: _Vgpr) -> None:
        if e.active is None:
            return
        value = self.d.splat(e.active)
        if self.exec_mask().const == 0xFFFFFFFF:
            e.older.clear()
            e.whole = value
        else:
            e.whole = self.d.select(self.exec_lanes(), value, self._whole(i, e))
        e.active, e.view, e.dirty = None, e.active if self.views else None, True

    def _only_ends_lanes(self, new: Val) -> bool:
        """Whether the lanes of a new EXEC are seen to be among those active now."""
        old = self.exec_mask()
        return old.const == 0xFFFFFFFF or new.const == 0 or self.d.is_part(new, old)

    def held(self, values: Sequence[Val]) -> list[Val]:
        """Those that a register has now."""
        now = {e.active.ref for e in self._c.vgpr.values() if e.active is not None}
        return [value for value in values if value.ref in now]

    def _exec_changes(self, ends: bool) -> None:
        """From now on, the values written so far belong only to the lanes active until here.
        ``ends``: no lane is active that was not."""
        for e in self._c.vgpr.values():
            e.view = e.seen() if ends else None
            if e.active is None:
                continue
            value = self.d.splat(e.active)
            if self.exec_mask().const == 0xFFFFFFFF:
                e.older.clear()
                e.whole = value
            else:
                e.older.append((value, self.exec_lanes()))
            e.active, e.dirty = None, True

    # -- block ends -----------------------------------------------------------------------

    def flush(self) -> None:
        """Marks where the block's registers are stored to the slots; no access follows in the
        block."""
        self.exec_mask()  # loads must precede the text that `finish` adds
        self._ends.append(_End(self._block, self._c, dict(self.fn.memo), len(self.fn.lines)))
        if self.views:
            self._passed[self._block] = self._c.passed_on()

    def finish(self, successors: Mapping[int, Sequence[int]]) -> None:
        """Writes the ends of all blocks, once ``successors`` of each block are known.

        A masked write keeps the other lanes, so no write ends a register's live range.
        """
        later = _used_later(self._uses, successors)
        lines, out, at = self.fn.lines, list[str](), 0
        for end in self._ends:
            out += lines[at : end.line]
            at = end.line
            self.fn.lines, self.fn.memo = out, end.memo
            self._c = end.cache
            self._write_back(later[end.block])
        self.fn.lines = out + lines[at:]

    def _write_back(self, live: int) -> None:
        for i, e in self._c.vgpr.items():
            if not live >> i & 1 or not (e.dirty or e.active is not None):
                continue
            self._merge(i, e)
            whole = self._whole(i, e)
            self.fn.do(f"store {V32} {whole.ref}, ptr {self._v_slot(i)}")
        for i in sorted(self._c.dirty):
            self.fn.do(f"store i32 {self._c.sgpr[i].ref}, ptr {self._s_slot(i)}")
        if self._c.scc_dirty and self._c.scc is not None:
            self._init("%scc", "i1", None)
            self.fn.do(f"store i1 {self._c.scc.ref}, ptr %scc")

    def start_block(self, block: int, before: int | None = None) -> None:
        """Drops the values cached for the last block; ``before`` is the only one that leads here,
        if there is one that has been built."""
        known = self._passed.get(before) if before is not None else None
        self._c = _Cache() if known is None else known.passed_on()
        self._block = block


def _used_later(uses: Mapping[int, int], successors: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Per block, the registers that a later block uses, one bit each."""
    before: dict[int, list[int]] = {}
    for block, following in successors.items():
        for succ in following:
            before.setdefault(succ, []).append(block)
    later = dict.fromkeys(successors, 0)
    work = list(successors)
    while work:
        block = work.pop()
        wanted = later[block] | uses.get(block, 0)
        for pred in before.get(block, ()):
            if wanted & ~later[pred]:
                later[pred] |= wanted
                work.append(pred)
    return later


def lane_numbers() -> Val:
    return Val("<" + ", ".join(f"i32 {i}" for i in range(LANES)) + ">", 32, True)
