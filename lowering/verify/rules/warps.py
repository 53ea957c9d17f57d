"""Rules whose code reaches other lanes or memory, tested on whole waves.

A kernel is built around a rule's code: it fills the registers, predicates and shared memory from
a record of random values, sets EXEC to random lanes, and stores all of them after it.  It runs on
the emulated device, one wave per record; the SASS side is the semantics over 32 lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, S, V
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.semantics.warp_state import SemanticsFault
from sassxlate.disasm.sass.semantics.whole_warps import evaluate_warp, executing, has_meaning
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.emulate.runner import EmulatedDevice, Setup, run_code
from sassxlate.lowering.passes import made_safe
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.target import ALL_ONES, DEFAULT, EXEC, LANES, NULL, Target
from sassxlate.lowering.verify.rules.compare import (
    Different,
    Mask,
    Words,
    first_difference,
    float_kind,
)
from sassxlate.lowering.verify.rules.inputs import MEMORY, POINTERS, Waves, inputs, shift_of
from sassxlate.lowering.verify.rules.one_instruction import Surroundings, routines_of, selected

_PER_LANE = MEMORY // 4 // LANES
_IN, _OUT, _GLOBAL = POINTERS, POINTERS + 8, POINTERS + 16
_AT, _DATA = V(254), V(253)
_SOURCE, _TARGET, _TEMP = S(28, 2), S(30, 2), S(32)

# --- the kernel ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Layout:
    """The register of each row of 32 words of a record; scalars are repeated in all lanes."""

    vector: tuple[tuple[RegRef, int], ...]
    scalar: tuple[tuple[RegRef, int], ...]  # UR: the value; P, UP: a mask of lanes

    @property
    def rows(self) -> int:
        """EXEC, the live lanes, registers."""
        return 2 + len(self.vector) + len(self.scalar)


def _layout(regs: RegisterMap) -> _Layout:
    vector = [(RegRef("R", i), v) for i, v in regs.r.items()]
    vector += [(RegRef("UR", i), v) for i, v in regs.ur_lanes.items()]
    scalar = [(RegRef("UR", i), s) for i, s in regs.ur.items()]
    scalar += [(RegRef("P", i), s.index) for i, s in regs.p.items()]
    scalar += [(RegRef("UP", i), s.index) for i, s in regs.up.items()]
    return _Layout(tuple(vector), tuple(scalar))


def _wait() -> Inst:
    return Inst("s_waitcnt", (), imm=0)


def _program(ins: Instruction, surroundings: Surroundings, target: Target) -> tuple[bytes, _Layout]:
    state = selected(ins, surroundings, target)
    regs = state.regs
    lay = _layout(regs)
    record = lay.rows * LANES * 4 + MEMORY
    items: list[Item] = [
        Inst("s_load_b64", (_SOURCE, target.kernarg, NULL), imm=_IN),
        Inst("s_load_b64", (_TARGET, target.kernarg, NULL), imm=_OUT),
        _wait(),
        Inst("s_mul_i32", (_TEMP, target.group_id[0], I(record))),
        Inst("s_mul_hi_u32", (S(33), target.group_id[0], I(record))),
    ]
    for pair in (_SOURCE, _TARGET):
        low, high = S(pair.index), S(pair.index + 1)
        items += [Inst("s_add_u32", (low, low, _TEMP)), Inst("s_addc_u32", (high, high, S(33)))]
    items += [
        Inst("v_mov_b32", (regs.tid, V(0))),
        Inst("v_lshlrev_b32", (_AT, I(2), V(0))),
    ]
    items += _fill(lay, regs, shift_of(ins))
    items += state.items
    items += _spill(lay, shift_of(ins))
    items += routines_of(state, ins)
    items = made_safe(items, target)
    return assemble(items).data, lay


def _fill(lay: _Layout, regs: RegisterMap, shift: int) -> Iterator[Item]:
    """Shared memory, registers, EXEC."""
    first = lay.rows * LANES * 4
    for i in range(_PER_LANE):
        yield from _load(first + 4 * LANES * i)
        yield Inst("ds_store_b32", (_AT, _DATA), imm=4 * LANES * i + shift)
    for n, (_, index) in enumerate(lay.scalar):
        yield Inst("s_load_b32", (S(index), _SOURCE, NULL), imm=128 * (2 + n))
    yield Inst("s_load_b32", (regs.live, _SOURCE, NULL), imm=128)
    for (bank, offset), place in regs.consts.items():
        assert bank == 0
        yield Inst("s_load_b32", (place, regs.target.kernarg, NULL), imm=offset)
    for n, (_, index) in enumerate(lay.vector):
        yield from _load(128 * (2 + len(lay.scalar) + n))
        yield Inst("v_mov_b32", (V(index), _DATA))
    yield Inst("s_load_b32", (S(34), _SOURCE, NULL), imm=0)
    yield _wait()
    yield Inst("s_mov_b32", (EXEC, S(34)))


def _load(at: int) -> Iterator[Item]:
    yield Inst("s_mov_b32", (S(34), I(at & ~0xFFF)))
    yield Inst("v_add_nc_u32", (V(252), S(34), _AT))
    yield Inst("global_load_b32", (_DATA, V(252), _SOURCE), imm=at & 0xFFF)
    yield _wait()


def _store(at: int) -> Iterator[Item]:
    yield Inst("s_mov_b32", (S(34), I(at & ~0xFFF)))
    yield Inst("v_add_nc_u32", (V(252), S(34), _AT))
    yield Inst("global_store_b32", (V(252), _DATA, _TARGET), imm=at & 0xFFF)


def _spill(lay: _Layout, shift: int) -> Iterator[Item]:
    """Stores the rule's results to the other record."""
    yield _wait()
    yield Inst("s_waitcnt_vscnt", (NULL,), imm=0)
    yield Inst("s_mov_b32", (S(35), EXEC))
    yield Inst("s_mov_b32", (EXEC, ALL_ONES))
    for n, index in [(0, 35), *((2 + n, i) for n, (_, i) in enumerate(lay.scalar))]:
        yield Inst("v_mov_b32", (_DATA, S(index)))
        yield from _store(128 * n)
    for n, (_, index) in enumerate(lay.vector):
        yield Inst("v_mov_b32", (_DATA, V(index)))
        yield from _store(128 * (2 + len(lay.scalar) + n))
    for i in range(_PER_LANE):
        yield Inst("ds_load_b32", (_DATA, _AT), imm=4 * LANES * i + shift)
        yield _wait()
        yield from _store(lay.rows * LANES * 4 + 4 * LANES * i)
    yield Inst("s_endpgm", ())


_BITS = np.uint32(1) << np.arange(LANES, dtype=np.uint32)


def _mask(bits: Mask) -> Words:
    wide = np.broadcast_to(bits, (len(bits), LANES)) * _BITS
    return np.asarray(wide.sum(-1, dtype=np.uint32))[:, None]


def _value(waves: Waves, ref: RegRef) -> Words:
    if ref.file == "R" or ref.file == "UR":
        return waves.reg(ref.file, ref.index)
    return _mask(waves.pred("P" if ref.file == "P" else "UP", ref.index))


def tried(
    ins: Instruction,
    surroundings: Surroundings,
    waves: int,
    seed: int = 1,
    target: Target = DEFAULT,
) -> Different | None:
    """Runs both sides on ``waves`` random waves: the first place where they differ, if any.

    Raises NoSemantics, LoweringError if the rule refuses, EmulatorError if a wave stops.
    """
    together = surroundings == "together"
    if not has_meaning(ins.mnemonic):
        raise NoSemantics(ins.mnemonic)
    if traits(ins).reaches(("load", "store"), "local"):
        raise NoSemantics("local memory, which these waves do not have")
    code, lay = _program(ins, surroundings, target)
    record = lay.rows * LANES + MEMORY // 4
    device = EmulatedDevice(3 * waves * max(4 * record, MEMORY) + (1 << 20))
    base = device.alloc(waves * MEMORY, 4096)
    state = inputs(ins, together, waves, seed, base)
    before = np.zeros((waves, record), dtype=np.uint32)
    rows = before[:, : lay.rows * LANES].reshape(waves, lay.rows, LANES)
    rows[:, 0], rows[:, 1] = _mask(state.active), _mask(state.live)
    for n, (ref, _) in enumerate((*lay.scalar, *lay.vector)):
        rows[:, 2 + n] = _value(state, ref)
    before[:, lay.rows * LANES :] = state.shared.view("<u4")
    source, results = device.alloc(before.nbytes), device.alloc(before.nbytes)
    device.write(source, before.tobytes())
    device.write(base, state.memory.tobytes())
    segment = bytearray(state.constants.tobytes())
    for offset, pointer in ((_IN, source), (_OUT, results), (_GLOBAL, base)):
        segment[offset : offset + 8] = pointer.to_bytes(8, "little")
    state.constants[:] = np.frombuffer(bytes(segment), dtype=np.uint8)
    x, y, z = (register.index for register in target.group_id)
    size = MEMORY + shift_of(ins)
    setup = Setup(kernarg_sgpr=target.kernarg.index, wg_sgpr=(x, y, z), lds_size=size)
    run_code(code, waves, LANES, bytes(segment), device, setup)
    after = np.frombuffer(device.read(results, before.nbytes), dtype=np.uint32)
    after = after.reshape(waves, record)
    memory = np.frombuffer(device.read(base, waves * MEMORY), dtype=np.uint32)
    mask = executing(ins, state)
    written = evaluate_warp(ins, state)
    want = {ref: _value(state, ref) for ref, _ in (*lay.scalar, *lay.vector)}
    return _compare(ins, state, lay, want, written, mask, after, memory.reshape(waves, -1))


def _compare(
    ins: Instruction, state: Waves, lay: _Layout, old: Mapping[RegRef, Words],
    written: Mapping[RegRef, NDArray[Any]], mask: Mask, after: Words, memory: Words,
) -> Different | None:  # fmt: skip
    n = len(mask)
    rows = after[:, : lay.rows * LANES].reshape(n, lay.rows, LANES)
    pairs = [("EXEC", np.broadcast_to(_mask(state.active), (n, LANES)), rows[:, 0])]
    some = mask.any(axis=1, keepdims=True)
    seen = _mask(state.active)
    for at, (ref, _) in enumerate((*lay.scalar, *lay.vector)):
        value = old[ref]
        got = rows[:, 2 + at]
        if ref in written:
            new = written[ref]
            if ref.file == "R":
                value = np.where(mask, new, value)
            elif ref.file == "UR":
                value = np.where(some, new, value)
            elif ref.file == "P":
                value = (value & ~_mask(mask)) | _mask(np.broadcast_to(new, mask.shape) & mask)
            else:
                value = np.where(some, _mask(new), value)
        value = np.broadcast_to(value, (n, LANES))
        if ref.file == "UR":  # only active lanes read a uniform register
            value, got = (np.where(state.active, v, 0) for v in (value, got))
        if ref.file == "UP" or (ref.file == "P" and ref in written):
            value, got = (v & seen for v in (value, got))
        pairs.append((f"{ref.file}{ref.index}", value, got))
    pairs.append(("shared memory", state.shared.view("<u4"), after[:, lay.rows * LANES :]))
    pairs.append(("global memory", state.memory.view("<u4"), memory))
    return first_difference(pairs, written, float_kind(ins))


__all__ = ["Different", "SemanticsFault", "tried"]
