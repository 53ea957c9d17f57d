"""Scalar loads, and branches: taken by the description's new PC, under every condition."""

from __future__ import annotations

import re
import struct

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

from .compare import Difference
from .described import description
from .language import execute
from .machine import Bytes, Wave, functions
from .values import Cell, Frame, Place, Table, Value

_BRANCH = re.compile(r"s_branch|s_cbranch_(scc|vcc|exec)\w+")
# SCC, VCC, EXEC
_STATES = [(s, v, e) for s in (0, 1) for v in (0, 1, 1 << 31) for e in (0, 1, 1 << 31, 0xFFFFFFFF)]


def is_branch(op: str) -> bool:
    return _BRANCH.fullmatch(op) is not None


def _theirs(op: str, state: tuple[int, int, int]) -> int:
    scc, vcc, exec_ = state
    pc = Cell(0, 64)
    wave = Wave()
    frame = Frame(
        {
            "PC": pc, "SCC": Cell(scc, 1), "SIMM16": Cell(5, 16),
            "VCCZ": Cell(int(vcc == 0), 1), "EXECZ": Cell(int(exec_ == 0), 1),
        },
        functions(), wave.rules,
    )  # fmt: skip
    execute(description(op), frame)
    return int(pc.n == 4 + 5 * 4)


def _ours(op: str) -> list[int]:
    """Whether each state's branch jumps over an instruction."""
    items: list[Item] = [
        Inst("s_load_b64", (S(2, 2), S(0, 2), Sp("null"))),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
    ]
    for k, (scc, vcc, exec_) in enumerate(_STATES):
        items += [
            Inst("s_mov_b32", (S(8), I(1))),
            Inst("s_mov_b32", (Sp("vcc_lo"), I(vcc))),
            Inst("s_cmp_eq_u32", (I(scc), I(1))),
            Inst("s_mov_b32", (Sp("exec_lo"), I(exec_))),
            Inst(op, (LabelRef(f"to{k}"),)),
            Inst("s_mov_b32", (S(8), I(0))),
            Label(f"to{k}"),
            Inst("s_mov_b32", (Sp("exec_lo"), I(0xFFFFFFFF))),
            Inst("v_mov_b32", (V(2), S(8))),
            Inst("global_store_b32", (V(1), V(2), S(2, 2)), 128 * k),
        ]
    items.append(Inst("s_endpgm"))
    loaded = LoadedImage(compile_kernel(assemble(items).data, 0, CompileOptions()))
    device = EmulatedDevice(1 << 20)
    out = device.alloc(128 * len(_STATES))
    run_image(loaded, Setup(), 1, 32, struct.pack("<Q", out), device)
    raw = device.read(out, 128 * len(_STATES))
    return [raw[128 * k] for k in range(len(_STATES))]


def differences(op: str) -> tuple[list[Difference], list[Difference], int]:
    """The states in which the branch goes elsewhere (twice: no reading changes it), and all."""
    found = [
        Difference(k, "PC", state, ours, _theirs(op, state))
        for k, (state, ours) in enumerate(zip(_STATES, _ours(op), strict=True))
        if ours != _theirs(op, state)
    ]
    return found, found, len(_STATES)


# --- scalar loads --------------------------------------------------------------------------------

_OFFSETS = (0, 4, 64, 960, -4, -256)  # bytes, around the middle of what is loaded from
_SIZE = 2048


def is_load(op: str) -> bool:
    return re.fullmatch(r"s_load_b(32|64|128|256)", op) is not None


def load_differences(op: str) -> tuple[list[Difference], list[Difference], int]:
    """Scalar loads at several offsets, from words that all differ."""
    n = int(op[8:]) // 32
    memory = bytearray(struct.pack(f"<{_SIZE // 4}I", *(k * 0x01234567 % 2**32 for k in
                                                         range(_SIZE // 4))))  # fmt: skip
    items: list[Item] = [
        Inst("s_load_b64", (S(4, 2), S(0, 2), Sp("null")), 8),
        Inst("s_load_b64", (S(2, 2), S(0, 2), Sp("null"))),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
    ]
    for k, offset in enumerate(_OFFSETS):
        items.append(Inst(op, (S(8, n), S(4, 2), Sp("null")), offset))
        for i in range(n):
            items += [
                Inst("v_mov_b32", (V(2), S(8 + i))),
                Inst("global_store_b32", (V(1), V(2), S(2, 2)), 4 * (8 * k + i)),
            ]
    items.append(Inst("s_endpgm"))
    loaded = LoadedImage(compile_kernel(assemble(items).data, 0, CompileOptions()))
    device = EmulatedDevice(1 << 20)
    out, source = device.alloc(1024), device.alloc(bytes(memory))
    middle = _SIZE // 2
    run_image(loaded, Setup(), 1, 1, struct.pack("<QQ", out, source + middle), device)
    raw = device.read(out, 1024)
    found: list[Difference] = []
    for k, offset in enumerate(_OFFSETS):
        result = Cell(0, 32 * n)
        names: dict[str, Place | Value] = {
            "SDATA": result, "ADDR": Value(middle + offset, 64, "u"),
            "MEM": Table(lambda at: Bytes(memory, at)),
        }  # fmt: skip
        execute(description(op), Frame(names, functions(), Wave().rules))
        ours = int.from_bytes(raw[32 * k : 32 * k + 4 * n], "little")
        if ours != result.n:
            found.append(Difference(k, "SDATA", (offset,), ours, result.n))
    return found, found, len(_OFFSETS)
