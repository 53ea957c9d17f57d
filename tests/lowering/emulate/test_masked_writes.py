"""VGPRs under an EXEC that lanes leave and come back to, over blocks, against a model by lanes."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest

from sassxlate.disasm.rdna3.codec.assemble import Label, assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, Sp, V
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

from .baseline import ISAS

_EXEC, _FULL = Sp("exec_lo"), 0xFFFFFFFF
_FIRST, _COUNT = 1, 4  # the registers that are written
_STEPS: dict[str, Callable[[int, int], int]] = {
    "s_mov_b32": lambda exec_, n: n,
    "s_and_b32": lambda exec_, n: exec_ & n,
    "s_and_not1_b32": lambda exec_, n: exec_ & ~n,
    "s_or_b32": lambda exec_, n: exec_ | n,
    "s_xor_b32": lambda exec_, n: exec_ ^ n,
}


def _random(rng: random.Random) -> tuple[list[Inst | Label], list[list[int]]]:
    """A program, and what its registers have at its end, by register and lane."""
    items: list[Inst | Label] = []
    values = [[0] * 32 for _ in range(_COUNT)]
    exec_, kept = _FULL, 0
    for number in range(60):
        kind, into = rng.randrange(8), rng.randrange(_COUNT)
        mask = rng.choice((_FULL, 0, 1, 0xFFFF, 0xFFFF0000, rng.getrandbits(32)))
        if kind <= 1:
            op = rng.choice(list(_STEPS))
            args = (_EXEC, I(mask)) if op == "s_mov_b32" else (_EXEC, _EXEC, I(mask))
            items.append(Inst(op, args))
            exec_ = _STEPS[op](exec_, mask) & _FULL
        elif kind == 2:  # saved, and come back to later
            items += [Inst("s_mov_b32", (S(12), _EXEC)), Inst("s_and_b32", (_EXEC, S(12), I(mask)))]
            exec_, kept = exec_ & mask, exec_
        elif kind == 3:
            items.append(Inst("s_mov_b32", (_EXEC, S(12))))
            exec_ = kept
        elif kind == 4:  # the next block, and the one after
            items += [Inst("s_cbranch_execz", (LabelRef(f"on{number}"),))]
            if rng.random() < 0.5:
                items.append(Inst("v_mov_b32", (V(_FIRST + into), I(number))))
                values[into] = [number if exec_ >> i & 1 else values[into][i] for i in range(32)]
            items.append(Label(f"on{number}"))
        elif kind == 5:
            items.append(Inst("v_mov_b32", (V(_FIRST + into), I(number))))
            values[into] = [number if exec_ >> i & 1 else values[into][i] for i in range(32)]
        else:
            a, b = rng.randrange(_COUNT), rng.randrange(_COUNT)
            lanes = (V(_FIRST + into), V(_FIRST + a), V(_FIRST + b))
            items.append(Inst("v_add_nc_u32", lanes) if kind == 6 else
                         Inst("v_lshl_add_u32", (lanes[0], lanes[1], I(1), V(0))))  # fmt: skip
            old = [list(v) for v in values]
            for lane in range(32):
                if exec_ >> lane & 1:
                    new = old[a][lane] + old[b][lane] if kind == 6 else 2 * old[a][lane] + lane
                    values[into][lane] = new & _FULL
    return items, values


@pytest.mark.parametrize("isa", ISAS)
def test_random_masks(isa: Isa) -> None:
    rng = random.Random(f"masks {isa}")
    for _ in range(25):
        items, values = _random(rng)
        program: list[Inst | Label] = [
            Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
            Inst("v_lshlrev_b32", (V(8), I(2), V(0))),
            Inst("s_mov_b32", (S(12), I(0))),
            *(Inst("v_mov_b32", (V(_FIRST + i), I(0))) for i in range(_COUNT)),
            *items,
            Inst("s_mov_b32", (_EXEC, I(-1))),
            Inst("s_waitcnt", (), 0),
        ]
        for i in range(_COUNT):
            program.append(Inst("global_store_b32", (V(8), V(_FIRST + i), S(4, 2)), 128 * i))
        code = assemble([*program, Inst("s_endpgm")]).data
        device = EmulatedDevice(1 << 16)
        out = device.alloc(128 * _COUNT)
        loaded = LoadedImage(compile_kernel(code, 0, CompileOptions(isa=isa)))
        run_image(loaded, Setup(), 1, 32, struct.pack("<Q", out), device)
        found = struct.unpack(f"<{32 * _COUNT}I", device.read(out, 128 * _COUNT))
        assert [list(found[32 * i : 32 * i + 32]) for i in range(_COUNT)] == values, items
