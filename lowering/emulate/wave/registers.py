"""The registers of a wave as stack slots, with a cache of the values known in the current block.

Writes to a VGPR are merged with its old value under EXEC only if the other lanes are observable:
if it is read after EXEC has changed or across lanes, and at the end of a block if a later
block may read it.  Which blocks do so is known once all have been built; so the rest of a
block's registers is written to the slots last, by ``finish``.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Mapping, Sequence

from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_HI, EXEC_LO, NULL, VCC_HI, VGPRS
from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave import run
from sassxlate.lowering.emulate.wave.addresses.pairs import V64, Pair, Pairs
from sassxlate.lowering.emulate.wave.known_registers import Arm, Cache, End, Older, Vgpr, used_later
from sassxlate.lowering.emulate.wave.masks import predicates
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Function, Val, const, vec_type
from sassxlate.lowering.target import LANES

V32 = vec_type(32)


class State:
    """Reads and writes the wave's registers in the block under construction."""

    def __init__(self, fn: Function, d: LlvmDomain) -> None:
        self.fn = fn
        self.d = d
        self._c = Cache()
        self._made: set[str] = set()
        # In a function that runs several waves, what slots have at their start; and the SGPR with
        # the workgroup's number in its row.
        self._begun: dict[str, str] = {}
        self.workgroup: int | None = None
        self.poison = False  # strict mode: registers start with seeded rubbish
        # By what `read_s` returned: the SGPR whose value at the wave's start that is.
        self.first: dict[str, int] = {}
        self.starting = False  # whether the block is the wave's first, and is never entered again
        self.threads = ""  # what `read_v` returned for v0 at the wave's start, the threads' numbers
        self.views = False  # whether values stay known where lanes only end, and to a next block
        self._arm: Arm | None = None
        # Whether all lanes that the wave began with are active now, as far as the code shows it,
        # and of which VGPRs the values of other lanes may be looked at (`every_lane`).
        self.every = False
        self.kept: frozenset[int] = frozenset()
        self._new: dict[int, int] = {}  # per block, the VGPRs of which no lane keeps what it had
        self._passed: dict[int, Cache] = {}  # by the block at whose end it is known
        self._block = 0
        self._ends: list[End] = []
        self.pairs: Pairs | None = None
        # Per block, the VGPRs whose incoming values it uses, one bit each.
        self._uses: dict[int, int] = {}

    # -- slots ----------------------------------------------------------------------------

    def _begin(self) -> list[str]:
        """The text of a wave's start."""
        return self.fn.entry if self.fn.around is None else self.fn.around.lines[-1]

    def _init(self, slot: str, type_: str, offset: int | None) -> None:
        if slot in self._made:
            return
        self._made.add(slot)
        fn, begin = self.fn, self._begin()
        fn.entry.append(f"  {slot} = alloca {type_}, align {64 if type_ in (V32, V64) else 4}")
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

    def slot_of_s(self, i: int) -> str | None:
        """The slot of a scalar register, if it has one; so of the next two."""
        slot = "%exec" if i == EXEC_LO else f"%s{i}"
        return slot if slot in self._made else None

    def slot_of_v(self, i: int) -> str | None:
        return f"%v{i}" if f"%v{i}" in self._made else None

    def slot_of_scc(self) -> str | None:
        return "%scc" if "%scc" in self._made else None

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
        if self._arm is not None:
            self._arm.written.add(i)
            if i == EXEC_LO and not self.d.is_part(value, self._arm.exec_mask):
                value = self.d.select(self._arm.cond, value, const(0, 32))
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

    def begin_arm(self, cond: Val) -> None:
        """From here on the code is that of an arm which is skipped unless ``cond``: unless a lane
        is active."""
        self._arm = Arm(cond, self.exec_mask(), dict(self._c.sgpr), self._c.scc)

    def end_arm(self) -> None:
        """Scalar registers get back what they had, if the arm was skipped."""
        arm = self._arm
        assert arm is not None
        self._arm = None
        for i in sorted(arm.written - {EXEC_LO}):
            new = self._c.sgpr[i]
            old = arm.sgpr.get(i)
            if old is None:
                old = Val(self.fn.emit_new(f"load i32, ptr {self._s_slot(i)}"), 32, False)
            if not (old.const == 0 and self.d.is_part(new, arm.exec_mask)):
                self._c.sgpr[i] = self.d.select(arm.cond, new, old)
        if self._c.scc is not None and self._c.scc != arm.scc and self._c.scc_dirty:
            old = arm.scc
            if old is None:
                self._init("%scc", "i1", None)
                old = Val(self.fn.emit_new("load i1, ptr %scc"), 1, False)
            self._c.scc = self.d.select(arm.cond, self._c.scc, old)

    def exec_mask(self) -> Val:
        return self.read_s(EXEC_LO)

    def exec_lanes(self) -> Val:
        if self._c.exec_lanes is None:
            begun = self._begun_lanes()
            self._c.exec_lanes = self.d.lanes_of(self.exec_mask()) if begun is None else begun
        return self._c.exec_lanes

    def _begun_lanes(self) -> Val | None:
        """The lanes that the wave began with, where these are active: made once, at its start, so
        that they stay in mask registers throughout a loop."""
        # `every` is of before the instruction, which may have written EXEC.
        same = self.every and self._arm is None and EXEC_LO not in self._c.dirty
        if not same or not self.d.avx512:
            return None
        slot = self._s_slot(EXEC_LO)
        if "%init.lanes" not in self._made:
            self._made.add("%init.lanes")
            mask = self._begun.get(slot, "%init.exec")
            self._begin().append(f"  %init.lanes = bitcast i32 {mask} to <{LANES} x i1>")
        return Val("%init.lanes", 1, True)

    def lanes_here(self) -> str:
        """`exec_lanes` of AVX-512 in an arm, where nothing is kept for the block."""
        begun = self._begun_lanes()
        if begun is not None:
            return begun.ref
        return self.fn.emit_new(f"bitcast i32 {self.exec_mask().ref} to <{LANES} x i1>")

    def every_active(self, lanes: Val) -> Val:
        """Whether a truth value holds in all active lanes."""
        d, exec_ = self.d, self.exec_mask()
        if d.avx512:  # the comparison is the other way round, and one test decides
            return d.eq(d.and_(d.mask_of(d.not_(lanes)), exec_), const(0, 32))
        return d.eq(d.or_(d.mask_of(lanes), d.not_(exec_)), const(-1, 32))

    def read_mask(self, i: int) -> Val:
        """A scalar register as 32 truth values; those of inactive lanes are arbitrary."""
        known = self._c.lanes.get(i)
        if known is None:
            value = self.read_s(i)
            known = predicates.among(self.d, value, self.exec_mask()) if self.pairs else None
            known = self.d.lanes_of(value) if known is None else known
        return known

    def write_mask(self, i: int, lanes: Val) -> None:
        """Truth values of the active lanes; the bits of the others become 0."""
        value = self.d.and_(self.d.mask_of(lanes), self.exec_mask())
        self.write_s(i, value)
        if lanes.vec and i != EXEC_LO:
            self._c.lanes[i] = lanes

    # -- vectors --------------------------------------------------------------------------

    def lane_numbers(self) -> Val:
        return lane_numbers()

    def _entry(self, i: int) -> Vgpr:
        e = self._c.vgpr.get(i)
        if e is None:
            e = self._c.vgpr[i] = Vgpr()
        return e

    def read_v(self, i: int) -> Val:
        """A VGPR as its active lanes see it; may be a scalar if all are equal."""
        e = self._entry(i)
        if e.active is not None:
            return e.active
        return e.view if e.view is not None else self._whole(i, e)

    def _whole(self, i: int, e: Vgpr) -> Val:
        """All lanes, with their values when EXEC last changed."""
        if e.whole is None:
            e.whole = Val(self.fn.emit_new(f"load {V32}, ptr {self._v_slot(i)}"), 32, True)
            self._uses[self._block] = self._uses.get(self._block, 0) | 1 << i
            if self.pairs is not None:
                self.pairs.load(i, e.whole.ref)
            if i == 0 and self.starting:
                self.threads = e.whole.ref
        for old in e.older:
            e.whole = self.d.select(old.lanes, old.value, e.whole)
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
        if self._in_every(i):
            self._new[self._block] = self._new.get(self._block, 0) | 1 << i

    def write_v_all(self, i: int, value: Val) -> None:
        """Writes every lane, regardless of EXEC."""
        e = self._entry(i)
        e.older.clear()
        e.whole, e.active, e.view, e.dirty = self.d.splat(value), None, None, True

    def _merge(self, i: int, e: Vgpr) -> None:
        if e.active is None:
            return
        value = self.d.splat(e.active)
        if self._covers(i):
            e.older.clear()
            e.whole = value
        else:
            self._replaced(e)
            e.whole = self.d.select(self.exec_lanes(), value, self._whole(i, e))
        e.active, e.view, e.dirty = None, e.active if self.views else None, True

    def _covers(self, i: int) -> bool:
        """Whether what is written to a VGPR now is all that is ever read of it."""
        return self._in_every(i) or self.exec_mask().const == 0xFFFFFFFF

    def _in_every(self, i: int) -> bool:
        return self.every and self._arm is None and i not in self.kept

    def _replaced(self, e: Vgpr) -> None:
        """Forgets values of lanes that all are active now, as these get another value."""
        now = self.exec_mask()
        e.older[:] = [old for old in e.older if not self.d.is_part(old.mask, now)]

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
        for i, e in self._c.vgpr.items():
            e.view = e.seen() if ends else None
            if e.active is None:
                continue
            value = self.d.splat(e.active)
            if self._covers(i):
                e.older.clear()
                e.whole = value
            else:
                self._replaced(e)
                e.older.append(Older(value, self.exec_mask(), self.exec_lanes()))
            e.active, e.dirty = None, True

    def saved(self) -> Cache:
        """What is known now, for `restore`."""
        return copy.deepcopy(self._c)

    def restore(self, saved: Cache) -> None:
        """Forgets what the block has read and written since."""
        self._c = saved

    # -- block ends -----------------------------------------------------------------------

    def flush(self) -> None:
        """Marks where the block's registers are stored to the slots; no access follows in the
        block."""
        self.exec_mask()  # loads must precede the text that `finish` adds
        self._ends.append(
            End(self._block, self._c, dict(self.fn.memo), len(self.fn.lines), self.every)
        )
        if self.views:
            self._passed[self._block] = self._c.passed_on()

    def finish(
        self, successors: Mapping[int, Sequence[int]], left: Mapping[int, int] | None = None
    ) -> None:
        """Writes the ends of all blocks, once ``successors`` of each block are known; ``left``: the
        VGPRs that are read from a block on which was not built.

        A masked write keeps the other lanes, so it does not end a register's live range.
        """
        later = used_later(self._uses | dict(left or {}), self._new, successors)
        if self.pairs is not None:
            for slot in self.pairs.close(successors):
                self._init(slot, V64, None)
        lines, out, at = self.fn.lines, list[str](), 0
        for end in self._ends:
            out += lines[at : end.line]
            at = end.line
            self.fn.lines, self.fn.memo = out, end.memo
            self._c, self.every = end.cache, end.every
            pairs: dict[Pair, Val | None] = {}
            if self.pairs is not None:
                self.pairs.block = end.block
                changed = [pair for pair in self.pairs.later() if self._changed(pair)]
                pairs = {pair: self._pair(pair) for pair in changed}
            self._write_back(later[end.block])
            if self.pairs is not None:
                for pair, value in pairs.items():
                    self.pairs.write(pair, value)
                self.pairs.end()
        self.fn.lines = out + lines[at:]
        if self.pairs is not None:
            self.pairs.finish(successors)

    def _changed(self, pair: Pair) -> bool:
        known = (self._c.vgpr.get(i) for i in pair)
        return any(e is not None and (e.dirty or e.active is not None) for e in known)

    def _pair(self, pair: Pair) -> Val | None:
        """What two registers have at the block's end, as 64 bits; None if not the same lanes wrote
        both each time, or not in one piece."""
        (low, lows), (high, highs) = (self._layers(i, self._entry(i)) for i in pair)
        if [old.mask for old in lows] != [old.mask for old in highs]:
            return None
        value = self._in_one(high, low)
        for lo, hi in zip(lows, highs, strict=True):
            new = self._in_one(hi.value, lo.value)
            if value is None or new is None:
                return None
            value = self.d.select(lo.lanes, new, value)
        return value

    def _in_one(self, hi: Val, lo: Val) -> Val | None:
        if hi.vec or lo.vec:
            return self.d.whole(hi, lo)
        return self.d.splat(self.d.concat(hi, lo))

    def _layers(self, i: int, e: Vgpr) -> tuple[Val, list[Older]]:
        """A register's value in all lanes, and newer ones of some."""
        if e.active is None:
            layers = list(e.older)
        elif self._covers(i):
            return e.active, []
        else:
            self._replaced(e)
            layers = [*e.older, Older(e.active, self.exec_mask(), self.exec_lanes())]
        return self._whole(i, Vgpr(e.whole)), layers

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
        self._c = Cache() if known is None else known.passed_on()
        self._block = block
        if self.pairs is not None:
            self.pairs.block = block


def lane_numbers() -> Val:
    return Val("<" + ", ".join(f"i32 {i}" for i in range(LANES)) + ">", 32, True)
