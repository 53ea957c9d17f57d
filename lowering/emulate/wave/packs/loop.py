"""Runs of instructions with many scattered loads, executed for eight active lanes at a time.

A host's gather takes as long for idle lanes as for active ones, and loops whose rows end at
different times have many.  Lanes have nothing to do with each other in such a run: no store, no
barrier, no operation across lanes, and EXEC stays.  So the active lanes are put side by side, and a
loop executes the run for eight of them at a time; what it has written goes back to their places.
Vectors of eight lanes are also a quarter of the host instructions that those of 32 are, where they
have 64 bits, and so compile sooner.

Instructions that take nothing of what the run has loaded are executed once, for the whole wave,
before the loop; the run ends before scalar ones that do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sassxlate.cfg.rdna3_flow import DecodedStep
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.reads_writes import effects
from sassxlate.lowering.emulate.wave import alu, straight
from sassxlate.lowering.emulate.wave.access import memory_helpers
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.emulate.wave.packs import careful, loads, places
from sassxlate.lowering.emulate.wave.packs.groups import Group, groups
from sassxlate.lowering.emulate.wave.packs.loads import Pack
from sassxlate.lowering.emulate.wave.packs.runs import LOAD, Run, factors, read_and_written
from sassxlate.lowering.emulate.wave.packs.state import (
    LANES,
    MASK,
    V32,
    NotPacked,
    PackedDomain,
    PackedFunction,
    PackedState,
)
from sassxlate.lowering.llvm.ir_text import Val, const

_HALF, _HALF_MASK = "<16 x i32>", "<16 x i1>"


# --- putting lanes side by side -----------------------------------------------------------------


def _numbers(start: int = 0) -> str:
    return "<" + ", ".join(f"i32 {start + lane}" for lane in range(16)) + ">"


class _Order:
    """Which lane is where: ``order`` has the active lanes' numbers, ``rank`` of each active lane
    how many are before it; two vectors of 16 each."""

    def __init__(self, c: Context) -> None:
        self.c, self.fn = c, c.fn
        fn = c.fn
        mask = c.state.exec_mask()
        self.exec = mask.ref
        self.count = c.d.popcount(mask).ref
        lanes = fn.emit(f"bitcast i32 {mask.ref} to <32 x i1>")
        low, high = self._parts("<32 x i1>", lanes)
        below = fn.emit(f"and i32 {mask.ref}, 65535")
        below = c.d.popcount(Val(below, 32, False)).ref
        # Places that are left over have the first active lane's number, so that what the last pack
        # does for them is what a pack before it has done.
        spare = c.d.splat(c.d.and_(c.d.ctz(mask), const(31, 32))).ref
        (spare, _) = self._parts("<32 x i32>", spare)
        first = self._expand_or("compress", _numbers(), spare, low)
        second = self._expand_or("compress", _numbers(16), spare, high)
        # The upper half's lanes come after those of the lower one.
        room = fn.emit(f"shl i32 65535, {below}")
        room = fn.emit(f"trunc i32 {room} to i16")
        room = fn.emit(f"bitcast i16 {room} to {_HALF_MASK}")
        start = c.d.splat(Val(below, 32, False)).ref
        (shift, _) = self._parts("<32 x i32>", start)
        rest = fn.emit(f"sub {_HALF} {_numbers(16)}, {shift}")
        permute = "@llvm.x86.avx512.permvar.si.512"
        c.module.declare(f"{_HALF} {permute}({_HALF}, {_HALF})")
        self.order = (
            self._expand_or("expand", second, first, room),
            fn.emit(f"call {_HALF} {permute}({_HALF} {second}, {_HALF} {rest})"),
        )
        after = fn.emit(f"add {_HALF} {_numbers()}, {shift}")
        self.rank = (
            self._expand_or("expand", _numbers(), "zeroinitializer", low),
            self._expand_or("expand", after, "zeroinitializer", high),
        )

    def _expand_or(self, what: str, value: str, other: str, mask: str) -> str:
        name = f"@llvm.x86.avx512.mask.{what}.v16i32"
        self.c.module.declare(f"{_HALF} {name}({_HALF}, {_HALF}, {_HALF_MASK})")
        args = f"{_HALF} {value}, {_HALF} {other}, {_HALF_MASK} {mask}"
        return self.fn.emit(f"call {_HALF} {name}({args})")

    def _parts(self, type_: str, ref: str) -> tuple[str, str]:
        """The halves of a vector of 32."""
        low, high = (
            self.fn.emit(f"shufflevector {type_} {ref}, {type_} poison, <16 x i32> {_numbers(at)}")
            for at in (0, 16)
        )
        return low, high

    def _pick(self, low: str, high: str, numbers: tuple[str, str]) -> tuple[str, str]:
        permute = "@llvm.x86.avx512.vpermi2var.d.512"
        self.c.module.declare(f"{_HALF} {permute}({_HALF}, {_HALF}, {_HALF})")
        first, second = (
            self.fn.emit(f"call {_HALF} {permute}({_HALF} {low}, {_HALF} {n}, {_HALF} {high})")
            for n in numbers
        )
        return first, second

    def put(self, value: Val, place: str) -> None:
        """Stores a register's active lanes side by side."""
        low, high = self._parts(value.type, value.ref)
        # In parts that packs load whole: the host forwards no more than 32 bytes of a store.
        for n, half in enumerate(self._pick(low, high, self.order)):
            for first in (0, LANES):
                index = ", ".join(f"i32 {first + lane}" for lane in range(LANES))
                text = f"shufflevector {_HALF} {half}, {_HALF} poison, <{LANES} x i32> <{index}>"
                at = 64 * n + 4 * first
                p = self.fn.emit(f"getelementptr i8, ptr {place}, i64 {at}")
                self.fn.do(f"store volatile {V32} {self.fn.emit(text)}, ptr {p}, align 32")

    def get(self, place: str) -> Val:
        """What was stored for the active lanes, in their places."""
        quarters: list[str] = []
        for n in range(4):
            p = self.fn.emit(f"getelementptr i8, ptr {place}, i64 {4 * LANES * n}")
            quarters.append(self.fn.emit_new(f"load {V32}, ptr {p}, align 32"))
        low, high = (
            self.fn.emit_new(f"shufflevector {V32} {a}, {V32} {b}, <16 x i32> {_numbers()}")
            for a, b in (quarters[:2], quarters[2:])
        )
        first, second = self._pick(low, high, self.rank)
        index = ", ".join(f"i32 {lane}" for lane in range(32))
        text = f"shufflevector {_HALF} {first}, {_HALF} {second}, <32 x i32> <{index}>"
        return Val(self.fn.emit_new(text), 32, True)


# --- the loop -----------------------------------------------------------------------------------


class _Loop:
    """The loop over packs of one run."""

    def __init__(self, c: Context, run: Run, stem: str, together: dict[int, Group]) -> None:
        self.c, self.run, self.stem = c, run, stem
        self.first, self.active = f"%{stem}.first", f"%{stem}.active"
        self.places: dict[str, tuple[Val, str]] = {}
        self.rows = loads.Rows(run.part)
        self.sort = f"%{stem}.sort"
        self.forms = self._form("f", together), self._form("c", together)

    def _form(self, name: str, together: dict[int, Group]) -> Pack:
        c = self.c
        note = c.fn.buffer("pack.note", careful.NOTE)
        fn = PackedFunction(c.fn, self.stem, name)
        d = PackedDomain(fn, avx512=True, seed_offset=c.d.seed_offset)
        state = PackedState(c.state, fn, d, self.first, self.places)
        inner = replace(
            c, fn=fn, d=d, state=state, floats=[], held={}, loaded=None, mate=None, arms=None
        )
        return Pack(
            inner, c, fn, state, self.first, self.active, together, note, self.sort, name == "c",
            self.rows,
        )  # fmt: skip

    def step(self, step: DecodedStep) -> None:
        """A vector instruction or load, in both forms."""
        for pack in self.forms:
            c = pack.c
            c.pc, c.mode, c.dpp_enable, pack.place = self.c.pc, self.c.mode, None, step.pc
            if step.inst.op == LOAD:
                loads.load(pack, step.inst)
            else:
                row = alu.lookup(step.inst.op)
                assert row is not None
                alu.emit(c, step.inst, row)

    def whole(self, inst: Inst) -> bool:
        """Whether an instruction is for the whole wave: it takes nothing that the run has loaded.
        What packs need not read and write then is most of what they would."""
        if inst.op.startswith("s_"):
            return True
        return self.forms[0].state.passes(read_and_written(inst)[0], effects(inst).read_bits)

    def forget(self, inst: Inst) -> None:
        """The registers that an instruction for the whole wave has written are the wave's again."""
        vectors, written = read_and_written(inst)[1], effects(inst).write_bits
        for pack in self.forms:
            state = _state(pack)
            for i in [i for i in state.masks if written >> i & 1]:
                state.forget(i)
            for i in [i for i in state.vectors if vectors >> i & 1]:
                state.forget_v(i)

    def finish(self) -> None:
        """Writes the loop, and what it leaves to the block."""
        c, fn, stem = self.c, self.c.fn, self.stem
        fast, slow = self.forms
        state = _state(fast)
        order = _Order(c)
        for value, place in self.places.values():
            order.put(value, place)
        sure = self.rows.finish(fn, order.order)
        note = fast.note
        fn.do(f"store i32 -1, ptr {note}")
        # A vector in either form: what the fast one supposes may make a scalar of it there.
        vectors = {i for pack in self.forms for i, v in _state(pack).vectors.items() if v.vec}
        kept = [i for i in sorted(state.written) if self.run.kept >> i & 1 and i in vectors]
        out = {i: fn.buffer(f"pack.out{n}", 128) for n, i in enumerate(kept)}
        sums = {i: f"%{stem}.s{i}" for i in sorted(state.masks)}
        for name in sums.values():
            fn.alloca(name, "i32")
            fn.do(f"store i32 0, ptr {name}")
        places.sort_numbers(c, self.sort)
        before = fn.block
        fn.do(f"br label %loop.{stem}")
        fn.label(f"loop.{stem}", keep=True)
        fn.lines += self._head(before, order)
        if sure:
            fn.do(f"br i1 {sure}, label %fast.{stem}, label %careful.{stem}, !prof !1")
        else:
            fn.do(f"br label %fast.{stem}")
        fn.label(f"fast.{stem}", keep=True)
        right = loads.finish(fast)
        self._write(fast, out)
        fn.do(f"br i1 {right}, label %masks.{stem}, label %careful.{stem}, !prof !1")
        fn.label(f"careful.{stem}", keep=True)
        self._write(slow, out)
        fn.do(f"br label %masks.{stem}")
        fn.label(f"masks.{stem}", keep=True)
        self._sum(sums)
        fn.do(f"%{stem}.next = add i32 {self.first}, {LANES}")
        fn.do(f"%{stem}.more = icmp ult i32 %{stem}.next, {order.count}")
        fn.do(f"br i1 %{stem}.more, label %loop.{stem}, label %over.{stem}")
        fn.label(f"over.{stem}", keep=True)
        self._fault(order)
        self._leave(order, out, sums)

    def _head(self, before: str, order: _Order) -> list[str]:
        self.c.module.declare("i32 @llvm.x86.bmi.bzhi.32(i32, i32)")
        first, active, stem = self.first, self.active, self.stem
        return [
            f"  {first} = phi i32 [ 0, %{before} ], [ %{stem}.next, %masks.{stem} ]",
            *self.rows.numbers(self.forms[0], order.exec, before, f"masks.{stem}"),
            f"  %{stem}.left = sub i32 {order.count}, {first}",
            f"  {active}.word = call i32 @llvm.x86.bmi.bzhi.32(i32 -1, i32 %{stem}.left)",
            f"  {active}.bits = trunc i32 {active}.word to i8",
            f"  {active} = bitcast i8 {active}.bits to {MASK}",
        ]

    def _write(self, pack: Pack, out: Mapping[int, str]) -> None:
        """The code of a form; stores what the pack has written."""
        fn, state = self.c.fn, _state(pack)
        values = {place: pack.c.d.splat(state.vectors[i]).ref for i, place in out.items()}
        fn.lines += pack.c.fn.lines
        if not out:
            return
        at = fn.emit_new(f"zext i32 {self.first} to i64")
        for place, value in values.items():
            p = fn.emit_new(f"getelementptr i32, ptr {place}, i64 {at}")
            fn.do(f"store {V32} {value}, ptr {p}, align 32")

    def _sum(self, sums: Mapping[int, str]) -> None:
        """Adds the pack's bits of masks to those of the packs before it; what the last one has
        beyond the active lanes has no place in the wave's."""
        fn, stem = self.c.fn, self.stem
        fast, slow = (_state(pack) for pack in self.forms)
        both = {
            name: fn.emit_new(
                f"phi {MASK} [ {fast.masks[i].ref}, %fast.{stem} ], "
                f"[ {slow.masks[i].ref}, %careful.{stem} ]"
            )
            for i, name in sums.items()
        }
        for name, mask in both.items():
            bits = fn.emit_new(f"bitcast {MASK} {mask} to i8")
            bits = fn.emit_new(f"zext i8 {bits} to i32")
            moved = fn.emit_new(f"shl i32 {bits}, {self.first}")
            old = fn.emit_new(f"load i32, ptr {name}")
            total = fn.emit_new(f"or i32 {old}, {moved}")
            fn.do(f"store i32 {total}, ptr {name}")

    def _fault(self, order: _Order) -> None:
        """Reports the fault that was noted, if there is one."""
        fn, stem, note = self.c.fn, self.stem, self.forms[0].note
        fn.module.declare("i32 @llvm.x86.bmi.pdep.32(i32, i32)")
        fn.module.declare("i32 @llvm.cttz.i32(i32, i1)")
        pc = fn.emit_new(f"load i32, ptr {note}")
        none = fn.emit_new(f"icmp eq i32 {pc}, -1")
        fn.do(f"br i1 {none}, label %right.{stem}, label %wrong.{stem}, !prof !1")
        with fn.arm(f"wrong.{stem}"):
            number, kind, address = (
                fn.emit_new(
                    f"load {type_}, ptr {fn.emit(f'getelementptr i8, ptr {note}, i64 {at}')}"
                )
                for at, type_ in ((4, "i32"), (8, "i32"), (16, "i64"))
            )
            bit = fn.emit_new(f"shl i32 1, {number}")
            bit = fn.emit_new(f"call i32 @llvm.x86.bmi.pdep.32(i32 {bit}, i32 {order.exec})")
            lane = fn.emit_new(f"call i32 @llvm.cttz.i32(i32 {bit}, i1 true)")
            where = f"i32 {pc}, i32 {lane}, i64 {address}"
            fault = memory_helpers.fault(fn.module)
            fn.do(f"call void {fault}(ptr %w, i32 {kind}, {where})")
            fn.do("unreachable")
        fn.label(f"right.{stem}", keep=True)

    def _leave(self, order: _Order, out: Mapping[int, str], sums: Mapping[int, str]) -> None:
        """The registers that the run has written, as the block's."""
        c, state = self.c, _state(self.forms[0])
        for i in sorted(state.written):
            if i in out:
                c.state.write_v(i, order.get(out[i]))
            elif self.run.kept >> i & 1:
                c.state.write_v(i, state.vectors[i])
        for i, name in sums.items():
            bits = c.fn.emit_new(f"load i32, ptr {name}")
            call = f"call i32 @llvm.x86.bmi.pdep.32(i32 {bits}, i32 {order.exec})"
            c.state.write_s(i, Val(c.fn.emit_new(call), 32, False))


def _state(pack: Pack) -> PackedState:
    state = pack.c.state
    assert isinstance(state, PackedState)
    return state


def emit(
    c: Context,
    steps: Sequence[DecodedStep],
    run: Run,
    each: Callable[[DecodedStep], None],
    whole: Callable[[DecodedStep], None],
) -> bool:
    """Emits a run; ``whole`` emits an instruction for the whole wave, ``each`` prepares the context
    for one in packs.

    False if it has something that packs do not have: nothing of it has been emitted then.
    """
    fn, state = c.fn, c.state
    lines, memo = len(fn.lines), dict(fn.memo)
    steps = steps[run.first : run.end]
    loaded = frozenset(step.pc for step in steps if step.inst.op == LOAD)
    loop = _Loop(c, run, f"p{steps[0].pc}", groups(steps, loaded))
    kept, floats = state.saved(), list(c.floats)
    try:
        for factor in factors(steps):
            loop.rows.suppose(c, loop.forms, factor)
        for step in steps:
            if step.inst.op in straight.NOTHING or (step.inst.op != LOAD and loop.whole(step.inst)):
                whole(step)
                if step.inst.op not in straight.NOTHING:
                    loop.forget(step.inst)
            else:
                each(step)
                loop.step(step)
    except NotPacked:
        del fn.lines[lines:]
        fn.memo, c.floats[:] = memo, floats
        state.restore(kept)
        return False
    loop.finish()
    return True


__all__ = ["emit"]
