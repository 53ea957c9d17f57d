"""Transfers of control: branches, calls, exits, and the places where lanes wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import BReg, Const, Imm, Instruction, Label, Pred, Reg
from sassxlate.disasm.sass.interpreter.launch import Launch
from sassxlate.disasm.sass.interpreter.memory import GlobalMemory
from sassxlate.disasm.sass.interpreter.resident_warps import Group, Mask, ballot
from sassxlate.disasm.sass.interpreter.schedule import SIZE, ScheduleOptions, Turns, key_index
from sassxlate.disasm.sass.interpreter.waiting import Wait, home_of
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.semantics.warp_state import LANES
from sassxlate.disasm.sass.semantics.warpgroups import WARPS, is_meeting

_IGNORED = frozenset(
    "REL ABS NOINC NODEC INC DEC U RELIABLE RECONVERGENT KEEPREFCOUNT NO_ATEXIT DIV CONV ANY ALL "
    "COLLECTIVE EXCLUSIVE SYNC ARV RED POPC AND OR DEFER_BLOCKING 32 CLEAR RESULT TRAP "
    "WARPGROUP".split()
)

_ALL_ONES = 0xFFFFFFFF  # the result of B2R if AND or OR holds


class Transfers(Turns):
    """Instructions that transfer control, and instructions that act on barriers."""

    def __init__(
        self,
        launch: Launch,
        options: ScheduleOptions,
        device: GlobalMemory,
        code: Sequence[Instruction | None],
        blocks: tuple[int, int],
    ) -> None:
        super().__init__(launch, options, device, code, blocks)
        self.votes = np.zeros((self.s.warps, LANES), np.bool_)
        self.partial: dict[tuple[int, int, int], int] = {}  # (block, barrier, warp): lanes of ARV
        self._spins = False  # the transferring group may be waiting for others
        self.control = self.transfers()

    def transfers(self) -> Mapping[str, Callable[[int, Instruction, Group, Mask], None]]:
        """The method for each control-transfer instruction, by mnemonic."""
        return {
            "BRA": self._branch, "CALL": self._call, "RET": self._indirect, "BRX": self._indirect,
            "JMX": self._indirect, "EXIT": self._exit, "BSSY": self._arm, "BSYNC": self._bsync,
            "BREAK": self._break, "WARPSYNC": self._warpsync, "ENDCOLLECTIVE": self._go_home,
            "BAR": self._bar,
        }  # fmt: skip

    # --- transfers of control -------------------------------------------------------------------

    def transfer(self, key: int, ins: Instruction, group: Group, lanes: Mask, spins: bool) -> None:
        """Executes one; ``spins``: the group may be waiting for others."""
        for modifier in ins.modifiers:
            if modifier not in _IGNORED:
                raise NoSemantics(f"modifier {modifier}")
        self._spins = spins
        self.control[ins.mnemonic](key, ins, group, lanes)

    def _condition(self, ins: Instruction, group: Group, lanes: Mask) -> Mask:
        """The lanes for which the guard and the instruction's source predicates hold."""
        named = [ins.get("Pp")] if ins.mnemonic != "BAR" else []
        if ins.mnemonic == "BRA":
            named.append(ins.get("Ra"))
        for operand in named:
            if isinstance(operand, Pred):
                lanes = lanes & _truth(operand, group)
        return lanes

    def _target(self, ins: Instruction, index: int) -> int:
        label = ins.get("target")
        if not isinstance(label, Label):
            raise NoSemantics("no target")
        if label.target % SIZE or not 0 <= label.target < SIZE * len(self.code):
            raise self._error("SX0217", f"control goes to {label.target:#x}", index)
        return label.target // SIZE

    def _branch(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        index = key_index(ins)
        taken = self._condition(ins, group, lanes)
        if ins.has("DIV") or ins.has("CONV"):
            wanted = ballot(self.s.live[group.at])
            mask = ins.get("Ra")
            if isinstance(mask, Reg):
                value = register_value(mask, group).astype(np.uint32)
                wanted = wanted & (~value if mask.inv else value).reshape(-1)
            apart = ballot(taken) != wanted
            taken = group.act & (apart if ins.has("DIV") else ~apart)[:, None]
        if ins.has("ANY"):
            taken = group.act & taken.any(axis=1, keepdims=True)
        target = self._target(ins, index)
        self._to(key, target, group.only(taken), self._spins and target <= index)
        self._to(key, index + 1, group.only(group.act & ~taken))

    def _call(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        if ins.get("target") is None:
            self._indirect(key, ins, group, lanes)
        else:
            self._branch(key, ins, group, lanes)

    def _places(self, ins: Instruction, group: Group) -> NDArray[np.int64]:
        """The target of an indirect transfer for each lane: byte offsets in the code."""
        register, shift = ins.get("Ra"), ins.get("disp")
        if not isinstance(register, Reg):
            raise NoSemantics("no register")
        add = shift.value if isinstance(shift, Imm) else 0
        if not (ins.has("ABS") or ins.mnemonic == "JMX"):
            add += ins.offset + SIZE
        token = np.broadcast_to(register_value(register, group), group.act.shape)
        out: NDArray[np.int64] = (token.astype(np.int64) + (add & 0xFFFFFFFF)) & 0xFFFFFFFF
        return out

    def _indirect(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        """RET, BRX, CALL through a register: each lane to the target in its register."""
        index = key_index(ins)
        moving = self._condition(ins, group, lanes)
        places = self._places(ins, group)
        for place in np.unique(places[moving]).tolist():
            if place % SIZE or place >= SIZE * len(self.code):
                raise self._error("SX0217", f"control goes to {place:#x}", index)
            some = moving & (places == place)
            self._to(key, place // SIZE, group.only(some), self._spins and place <= ins.offset)
        self._to(key, index + 1, group.only(group.act & ~moving))

    def _exit(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        leaving = self._condition(ins, group, lanes)
        self.s.live[group.at] &= ~leaving
        self._to(key, key_index(ins) + 1, group.only(group.act & ~leaving))
        if self.waiting.any and leaving.any():
            self._recheck(group.rows[leaving.any(axis=1)])

    def _recheck(self, rows: NDArray[np.int64]) -> None:
        """Rechecks warps whose lanes ended, or left a barrier that others wait at."""
        for kind in (Wait.BSYNC, Wait.WARPSYNC, Wait.COLLECTIVE):
            self._pass(rows, kind)
        self._open(np.unique(rows // self.s.each))

    # --- convergence ----------------------------------------------------------------------------

    def _arm(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        taking = self._condition(ins, group, lanes)
        number = barrier_number(ins)
        mask = np.broadcast_to(ballot(taking)[:, None], taking.shape)
        old = self.s.b[number][group.at]
        self.s.b[number][group.at] = np.where(taking, mask, old)
        self._to(key, key_index(ins) + 1, group)

    def _bsync(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        number = barrier_number(ins)
        arriving = self._condition(ins, group, lanes)
        masks = self.s.b[number][group.at]
        self._wait(key, ins, group, arriving, Wait.BSYNC, masks, number)

    def _wait(
        self, key: int, ins: Instruction, group: Group, arriving: Mask, kind: Wait,
        masks: NDArray[np.uint32], number: int = 0,
    ) -> None:  # fmt: skip
        """Lanes whose whole set has arrived continue at once; the others wait."""
        index = key_index(ins)
        live = ballot(self.s.live[group.at])[:, None]
        here = ballot(arriving)[:, None]
        complete = arriving & (masks & live & ~here == 0)
        # Only if the others here wait with the same mask.
        first = np.take_along_axis(masks, np.argmax(arriving, axis=1)[:, None], 1)
        complete &= ((masks == first) | ~arriving).all(axis=1, keepdims=True)
        self._to(key, index + 1, group.only(group.act & ~arriving))
        if ins.has("EXCLUSIVE"):
            self._teams(index + 1, group.everywhere(complete), group.everywhere(masks))
        else:
            self._leave(key, index + 1, group.only(complete))
        left = arriving & ~complete
        if left.any():
            everywhere = group.everywhere(masks)
            self.waiting.put(
                group.everywhere(left), kind, index, self.turn, mask=everywhere, number=number
            )
            self._pass(group.rows[left.any(axis=1)], kind)

    def _pass(self, rows: NDArray[np.int64], kind: Wait) -> None:
        """Releases lanes whose waiting condition is now met."""
        w = self.waiting
        met = w.met(rows, kind)
        if not met.any():
            return
        if kind == Wait.COLLECTIVE:
            # All run the section at the lowest address.
            for number in np.unique(w.number[met]).tolist():
                some = met & (w.number == number)
                lowest = np.where(some, w.index, len(self.code)).min(axis=1, keepdims=True)
                np.copyto(w.index, lowest, where=some)
        for index, lanes in w.free(met):
            before = self.code[index - 1]
            if kind == Wait.COLLECTIVE or (before is not None and before.has("EXCLUSIVE")):
                self._teams(index, lanes, w.mask)
            else:
                self._resume(index, lanes)

    def _relent(self) -> bool:
        """Deadlock breaker: releases a BSYNC whose missing lanes are all blocked at a WARPSYNC.

        A BSYNC only reconverges lanes early, and here it would block lanes that others wait for.
        Per warp, only one barrier is released, the first in the code: that may unblock
        the others.  False if there is none.
        """
        w = self.waiting
        held = w.held_up()
        going = np.zeros_like(held)
        for row in np.flatnonzero(held.any(axis=1)).tolist():
            lane = int(np.argmin(np.where(held[row], w.index[row], len(self.code))))
            same = (w.number[row] == w.number[row, lane]) & (w.mask[row] == w.mask[row, lane])
            going[row] = held[row] & same
            self._leave_behind(self.s.b[int(w.number[row, lane])][row], going[row])
        if not going.any():
            return False
        for index, lanes in w.free(going):
            self._resume(index, lanes)
        return True

    def _leave_behind(self, masks: NDArray[np.uint32], going: Mask) -> None:
        """Removes these lanes from the masks on which other lanes of their warp wait."""
        for mask in np.unique(masks[going]):
            gone = ballot((going & (masks == mask))[None])[0]
            masks[~going & (masks == mask)] = mask & ~gone

    def _break(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        """BREAK: the lanes leave the barrier masks of all lanes that were armed with them."""
        number = barrier_number(ins)
        leaving = self._condition(ins, group, lanes)
        masks = self.s.b[number][group.at]
        out: NDArray[np.uint32] = masks.copy()
        for i in range(LANES):  # per warp, the lanes that share one lane's mask
            mine = leaving[:, i : i + 1]
            if mine.any():
                same = mine & (masks == masks[:, i : i + 1])
                out = np.where(same, out & ~np.uint32(1 << i), out)
        self.s.b[number][group.at] = np.where(leaving, np.uint32(0), out)
        if self.waiting.any:
            w = self.waiting
            rows = group.rows
            waits = (w.kind[rows] == Wait.BSYNC) & (w.number[rows] == number)
            w.mask[rows] = np.where(waits, self.s.b[number][rows], w.mask[rows])
            self._pass(rows, Wait.BSYNC)
        self._to(key, key_index(ins) + 1, group)

    def _warpsync(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        arriving = self._condition(ins, group, lanes)
        masks = self._sync_masks(ins, group)
        if not ins.has("COLLECTIVE"):
            self._wait(key, ins, group, arriving, Wait.WARPSYNC, masks)
            return
        w, index = self.waiting, key_index(ins)
        full = group.everywhere(arriving)
        w.home[full] = home_of(ins)
        w.put(
            full, Wait.COLLECTIVE, index, self.turn, mask=group.everywhere(masks),
            number=int(w.classes[index]),
        )  # fmt: skip
        self._to(key, index + 1, group.only(group.act & ~arriving))
        self._pass(group.rows, Wait.COLLECTIVE)

    def _sync_masks(self, ins: Instruction, group: Group) -> NDArray[np.uint32]:
        operand = ins.get("Ra")
        match operand:
            case Reg():
                value = register_value(operand, group).astype(np.uint32)
            case Imm():
                value = np.array([operand.value & 0xFFFFFFFF], np.uint32)
            case Const():
                data = group.constant(operand.bank, np.array([operand.offset], np.uint32), 4)
                value = np.ascontiguousarray(data).view("<u4").reshape(-1)
            case _:
                value = np.array([0xFFFFFFFF], np.uint32)
        return np.broadcast_to(value, group.act.shape)

    def _go_home(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        if not (lanes == group.act).all():
            raise NoSemantics("guard")
        home = self.waiting.home[group.at]  # of each lane
        for index in np.unique(home[lanes]).tolist():
            target = index if index >= 0 else key_index(ins) + 1
            self._leave(key, target, group.only(lanes & (home == index)))

    # --- barriers of a block --------------------------------------------------------------------

    def _bar(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        s, w, index = self.s, self.waiting, key_index(ins)
        number, need = self._numbers(ins, group)
        if ins.has("RED"):
            vote = ins.get("Pp")
            if not isinstance(vote, Pred):
                raise NoSemantics("reduction without a predicate")
            self.votes[group.at] = np.where(lanes, _truth(vote, group), self.votes[group.at])
        self._to(key, index + 1, group.only(group.act & ~lanes))
        if ins.has("ARV"):
            self._arrive(group, lanes, number, need)
            self._to(key, index + 1, group.only(lanes))
            self._open(np.unique(s.block_of[group.rows]))
            return
        full = group.everywhere(lanes)
        w.put(
            full, Wait.BAR, index, self.turn, number=group.everywhere(number),
            need=group.everywhere(need),
        )  # fmt: skip
        blocks = np.unique(s.block_of[group.rows])
        if not w.arrived and not need.any() and bool((number == number.flat[0]).all()):
            # Blocks whose lanes have all arrived need no search.
            here = w.kind == Wait.BAR
            here &= w.number == number.flat[0]
            same = (here == s.live).reshape(s.blocks, -1).all(axis=1)
            easy = np.repeat(same, s.each)[:, None] & here
            counted = (easy & (w.need != 0)).reshape(s.blocks, -1).any(axis=1)
            easy &= ~np.repeat(counted, s.each)[:, None]
            if easy.any():
                self._let_go(easy)
            blocks = blocks[~same[blocks]]
        self._open(blocks)

    def _numbers(
        self, ins: Instruction, group: Group
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Each lane's barrier and the number of threads to wait for, 0 for the whole block.

        One register for both has the number in bits 3:0 and the count in bits 27:16.
        """
        shape = group.act.shape
        barrier, count = ins.get("barrier"), ins.get("count")

        def lanes(operand: object) -> NDArray[np.int32]:
            if isinstance(operand, Reg) and not operand.is_zero:
                value = register_value(operand, group)
            else:
                value = np.array([operand.value if isinstance(operand, Imm) else 0], np.uint64)
            return np.broadcast_to(value, shape).astype(np.int32)

        number, need = lanes(barrier), lanes(count)
        if is_meeting(ins):
            return number + (group.rows % self.s.each // WARPS)[:, None].astype(np.int32), need
        if isinstance(barrier, Reg) and isinstance(count, Reg) and not count.is_zero:
            if barrier.index != count.index or barrier.file != count.file:
                raise NoSemantics("barrier with two registers")
            return number & 15, number >> 16 & 0xFFF
        return number & 15, need

    def _arrive(
        self, group: Group, lanes: Mask, number: NDArray[np.int32], need: NDArray[np.int32]
    ) -> None:
        s = self.s
        rows: list[int] = group.rows.tolist()
        masks: list[int] = ballot(lanes).tolist()
        for at, (row, mask) in enumerate(zip(rows, masks, strict=True)):
            if not mask:
                continue
            lane = int(np.argmax(lanes[at]))
            name, many = int(number[at, lane]), int(need[at, lane])
            block, warp = row // s.each, row % s.each
            key = (block, name, warp)
            gone = self.partial.pop(key, 0) | mask
            if ballot(s.live[row : row + 1])[0] & ~np.uint32(gone):
                self.partial[key] = gone
            else:
                self.waiting.arrive(block, name, warp, many)

    def _open(self, blocks: NDArray[np.int64]) -> None:
        if not len(blocks):
            return
        met = self.waiting.open_barriers(blocks.tolist())
        if met.any():
            self._let_go(met)

    def _let_go(self, lanes: Mask) -> None:
        """Lanes pass a barrier; reductions get their results."""
        w, s = self.waiting, self.s
        reached: list[int] = np.unique(w.index[lanes]).tolist()
        for index in reached:
            ins = self.code[index]
            if ins is None or not ins.has("RED"):
                continue
            # All lanes that meet at one barrier of a block take part in the reduction, whatever
            # their instruction.
            for block in np.unique(s.block_of[lanes.any(axis=1)]).tolist():
                own = slice(block * s.each, (block + 1) * s.each)
                for number in np.unique(w.number[own][lanes[own]]).tolist():
                    some = lanes[own] & (w.number[own] == number)
                    votes = self.votes[own][some]
                    total = int(np.count_nonzero(votes))
                    if ins.has("AND"):
                        total = _ALL_ONES * (total == votes.size)
                    elif ins.has("OR"):
                        total = _ALL_ONES * (total > 0)
                    s.result[own][some & (w.index[own] == index)] = total
        for index, some in w.free(lanes):
            self._resume(index, some)

    # --- what acts on barriers without a transfer -------------------------------------------------

    def _move(self, ins: Instruction, group: Group, lanes: Mask) -> None:
        """BMOV: to and from convergence barriers; the state of the warp is read."""
        s = self.s
        source, target, value = ins.get("B"), ins.get("Rd"), ins.get("Ra")
        if not isinstance(source, BReg):
            raise NoSemantics("this form of BMOV")
        if isinstance(target, Reg):
            read = self._state(source, group)
            if not target.is_zero:
                s.r[target.index][group.at] = np.where(lanes, read, s.r[target.index][group.at])
            if ins.has("CLEAR"):
                if source.index >= 16:
                    raise NoSemantics(f"clearing of {source.name}")
                s.b[source.index][group.at] = np.where(lanes, 0, s.b[source.index][group.at])
            return
        if isinstance(ins.get("Bd"), BReg) or source.index >= 16:
            raise NoSemantics("this form of BMOV")
        if isinstance(value, Reg):
            new = register_value(value, group).astype(np.uint32)
        else:
            new = np.array([value.value if isinstance(value, Imm) else 0], np.uint32)
        s.b[source.index][group.at] = np.where(lanes, new, s.b[source.index][group.at])

    def _state(self, source: BReg, group: Group) -> NDArray[np.uint32]:
        if source.index < 16:
            out: NDArray[np.uint32] = self.s.b[source.index][group.at]
            return out
        if source.name == "MACTIVE":
            return ballot(group.act)[:, None]
        if source.name == "MEXITED":
            return ~ballot(self.s.live[group.at])[:, None]
        raise NoSemantics(f"thread state {source.name}")

    def _result(self, ins: Instruction, group: Group, lanes: Mask) -> None:
        """B2R.RESULT."""
        if not ins.has("RESULT"):
            raise NoSemantics("this form of B2R")
        value = self.s.result[group.at]
        target, truth = ins.get("Rd"), ins.get("Pu")
        if isinstance(target, Reg) and not target.is_zero:
            s = self.s
            s.r[target.index][group.at] = np.where(lanes, value, s.r[target.index][group.at])
        if isinstance(truth, Pred) and truth.index != 7:
            p = self.s.p[truth.index]
            p[group.at] = np.where(lanes, value != 0, p[group.at])

    def _trap(self, ins: Instruction, group: Group, lanes: Mask) -> None:
        row = int(np.flatnonzero(lanes.any(axis=1))[0])
        lane = int(np.argmax(lanes[row]))
        what = "trap" if ins.has("TRAP") else "breakpoint"
        text = f"{what}, {self._lane(int(group.rows[row]), lane)}"
        raise self._error("SX0216", text, key_index(ins))


def barrier_number(ins: Instruction) -> int:
    """The number n of the instruction's convergence barrier register Bn."""
    operand = ins.get("B")
    if not isinstance(operand, BReg) or operand.index >= 16:
        raise NoSemantics("no convergence barrier")
    return operand.index


def _truth(operand: Pred, group: Group) -> Mask:
    if operand.index == 7:
        return np.full((1, 1), not operand.inv)
    out: Mask = group.pred(operand.file, operand.index) ^ operand.inv
    return out


def register_value(operand: Reg, group: Group) -> NDArray[np.uint64]:
    """A register's value per lane, or per warp."""
    if operand.is_zero:
        return np.zeros((1, 1), np.uint64)
    return group.wide(operand.file, operand.index)
