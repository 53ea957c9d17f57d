"""Random straight code of the known shapes, by both tiers: registers, memory and faults agree."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.codec.encode.instruction import encode
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.tables.opcodes import OPS
from sassxlate.errors import EmulatorError, EncodeError
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.stencils.known import known_shapes
from sassxlate.lowering.emulate.stencils.stencil import S_STEP, V_STEP, Shape

from .baseline import baseline, each_with_an_isa, mode_of
from .harness import value

_PROGRAMS = 24
_LENGTH = 40  # instructions of a program, besides those that load and store the registers
_V, _S = range(4, 48), range(8, 104)  # registers that programs use
_MASKS = (0xFFFFFFFF, 0, 1, 0x80000000, 0xF00FA5C3, 0x0000FFFF)
_TABLE_ROWS, _NUMBER_ROWS = 24, 7  # of 32 words: values of any kind, and no NaN of any width
_NUMBERS = (0, 0x80000000, 0x3C003C00, 0xC1204248, 0x00010002, 0x42F60000, 0x3F800001, 0x12345678)
_TABLE, _DATA, _LDS, _SCRATCH = 128 * len(_V), 1 << 14, 8192, 256
# Not among the instructions of a program: they jump, end a wave, wait, or tell the time.
_LEFT_OUT = (
    "s_call", "s_setpc", "s_cbranch", "s_endpgm", "s_trap", "s_barrier", "s_sleep", "s_sendmsg",
    "s_getreg",
)  # fmt: skip
_MEMORY = ("lds", "flat", "global", "scratch", "smem")


def _candidates(mode: int) -> list[Shape]:
    shapes = [s for s in known_shapes() if s.mode in (-1, mode)]
    return [s for s in shapes if not s.instruction().op.startswith(_LEFT_OUT)]


class _Program:
    """Builds a program; `base` is the address of `_DATA` bytes that it may read and write."""

    def __init__(self, rng: random.Random, base: int) -> None:
        self.rng = rng
        self.base = base
        self.items: list[Inst] = []

    def registers(self, inst: Inst, made: dict[tuple[str, int], int]) -> Inst:
        """The canonical registers exchanged for random ones, which may overlap."""
        args = tuple(self._argument(arg, made) for arg in inst.args)
        return replace(inst, args=args, y=inst.y and self.registers(inst.y, made))

    def _argument(self, arg: Arg, made: dict[tuple[str, int], int]) -> Arg:
        if isinstance(arg, V):
            number, part = divmod(arg.index, V_STEP)
            key = "v", number
            if key not in made:  # both halves of a dual instruction keep their banks
                made[key] = 4 * self.rng.randrange(_V.start // 4, _V.stop // 4 - 1)
            return V(made[key] + part, arg.n)
        if isinstance(arg, S):
            number, part = divmod(arg.index, S_STEP)
            key = "s", number
            if key not in made:
                made[key] = 4 * self.rng.randrange(_S.start // 4, _S.stop // 4 - 4)
            return S(made[key] + part, arg.n)
        return arg

    def add(self, shape: Shape) -> None:
        rng, inst = self.rng, shape.instruction()
        kind = OPS[inst.op].kind
        if rng.random() < 0.3:
            self.items.append(Inst("s_mov_b32", (Sp("exec_lo"), I(rng.choice(_MASKS)))))
        imm = rng.choice((0, 0, 16, 64, 128))
        if "2addr" in inst.op:
            inst = replace(inst, imm=rng.randrange(8), imm2=rng.randrange(8))
        elif kind in _MEMORY and not inst.op.startswith("ds_swizzle"):
            inst = replace(inst, imm=imm)
        inst = self._with_constants(self.registers(inst, {}))
        if kind in _MEMORY:
            self._address(inst, kind)
        if inst.neg | inst.abs:
            self._reload(inst)
        self.items.append(inst)

    def _reload(self, inst: Inst) -> None:
        """New values for the sources, none a NaN: LLVM takes x + -y for x - y, which keeps y's
        sign if it is one, and which of two NaNs is the result."""
        for arg in inst.args[1:]:
            for i in range(arg.n if isinstance(arg, V | S) else 0):
                if isinstance(arg, V):
                    at = 128 * (_TABLE_ROWS + self.rng.randrange(_NUMBER_ROWS))
                    into = V(arg.index + i), V(1), S(0, 2)
                    self.items.append(Inst("global_load_b32", into, at))
                elif isinstance(arg, S):
                    number = I(self.rng.choice(_NUMBERS))
                    self.items.append(Inst("s_mov_b32", (S(arg.index + i), number)))

    def _with_constants(self, inst: Inst) -> Inst:
        """Some scalar sources exchanged for constants, as many as the encoding needs."""
        rng, row = self.rng, OPS[inst.op]
        order = [i for i, a in enumerate(row.args) if a.cls in ("src", "s") and a.role == "r"]
        rng.shuffle(order)
        wanted = rng.choice((0, 0, 1))
        for i in order:
            try:
                encode(inst)
                if wanted <= 0:
                    break
            except EncodeError:
                pass
            if i < len(inst.args) and isinstance(inst.args[i], S):
                args = list(inst.args)
                args[i] = I(rng.choice((0, 1, 7, 64, -1, -16)))
                inst = replace(inst, args=tuple(args))
                wanted -= 1
        encode(inst)
        return inst

    def _address(self, inst: Inst, kind: str) -> None:
        """Puts a good address into the operands, rarely a bad one."""
        rng, row = self.rng, OPS[inst.op]
        names = [a.field for a in row.args]
        if row.atomic and kind != "lds" and not inst.glc:
            names = names[1:]
        operands = dict(zip(names, inst.args, strict=False))
        base = self.base if rng.random() < 0.98 else rng.choice((4096, self.base + 2))
        if kind == "smem":
            self._pair(operands["sbase"], base)
            return
        where = operands["addr"]
        factor, shift = rng.choice(((0, 0), (4, 0), (8, 0), (16, 0), (12, 4), (16, 8)))
        if kind == "scratch":
            factor = 0
        scalar = operands.get("saddr")
        if isinstance(scalar, S) and kind == "scratch":
            self.items.append(Inst("s_mov_b32", (scalar, I(16))))
        elif isinstance(scalar, S):
            self._pair(scalar, base)
            base = 0
        if kind in ("lds", "scratch"):
            base = 0
        if not isinstance(where, V):
            return
        low = I(base + 16 * shift & 0xFFFFFFFF)
        self.items.append(Inst("v_mov_b32", (V(where.index), I(factor))))
        self.items.append(Inst("v_mul_lo_u32", (V(where.index), V(where.index), V(2))))
        self.items.append(Inst("v_add_nc_u32", (V(where.index), low, V(where.index))))
        if where.n == 2:
            self.items.append(Inst("v_mov_b32", (V(where.index + 1), I(base >> 32))))

    def _pair(self, arg: Arg, address: int) -> None:
        assert isinstance(arg, S)
        for i in range(2):
            half = I(address >> 32 * i & 0xFFFFFFFF)
            self.items.append(Inst("s_mov_b32", (S(arg.index + i), half)))


def _whole(body: Sequence[Inst], rng: random.Random, mask: int) -> list[Inst]:
    """Loads the registers, runs the body, stores them."""
    items = [
        Inst("s_load_b64", (S(2, 2), S(0, 2)), 8),
        Inst("s_load_b64", (S(0, 2), S(0, 2)), 0),
        Inst("v_mov_b32", (V(2), V(0))),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
    ]
    for i, v in enumerate(_V):
        items.append(Inst("global_load_b32", (V(v), V(1), S(0, 2)), 128 * (i % _TABLE_ROWS)))
    for i in _S:
        items.append(Inst("s_mov_b32", (S(i), I(value(rng, "b32")))))
    items.append(Inst("s_mov_b32", (Sp("vcc_lo"), I(rng.getrandbits(32)))))
    items.append(Inst("s_mov_b32", (Sp("exec_lo"), I(mask))))
    items += body
    items.append(Inst("s_cselect_b32", (S(4), I(1), I(0))))
    items.append(Inst("s_mov_b32", (S(5), Sp("exec_lo"))))
    items.append(Inst("s_mov_b32", (Sp("exec_lo"), I(-1))))
    stored = 0

    def store(register: V) -> None:
        nonlocal stored
        items.append(Inst("global_store_b32", (V(1), register, S(2, 2)), 0))
        items.append(Inst("v_add_nc_u32", (V(1), I(128), V(1))))
        stored += 1

    for v in _V:
        store(V(v))
    for scalar in (S(4), S(5), Sp("vcc_lo"), *(S(i) for i in _S)):
        items.append(Inst("v_mov_b32", (V(3), scalar)))
        store(V(3))
    for at in range(0, _LDS, 512):
        items.append(Inst("v_lshlrev_b32", (V(3), I(4), V(2))))
        items.append(Inst("ds_load_b128", (V(8, 4), V(3)), at))
        for i in range(4):
            store(V(8 + i))
    items.append(Inst("s_endpgm"))
    return items


def _run(loaded: object, code: bytes, device: EmulatedDevice, seed: int, base: int) -> object:
    """(what the wave stored and the memory that it may write, or the fault's line)"""
    rng = random.Random(seed)
    device.write(base, rng.randbytes(_DATA))
    table = [value(rng, rng.choice(("b32", "f32"))) for _ in range(32 * _TABLE_ROWS)]
    table += [rng.choice(_NUMBERS) for _ in range(32 * _NUMBER_ROWS)]
    source, target = device.base + (1 << 15), device.base + (1 << 16)
    device.write(source, struct.pack(f"<{len(table)}I", *table))
    device.write(target, bytes(1 << 17))
    del code
    setup = Setup(kernarg_sgpr=0, lds_size=_LDS + 512, scratch_size=_SCRATCH)
    try:
        run_image(loaded, setup, 1, 32, struct.pack("<QQ", source, target), device)  # type: ignore[arg-type]
    except EmulatorError as error:
        return str(error).replace("kernel", ""), device.read(base, _DATA)
    return device.read(target, 1 << 17), device.read(base, _DATA)


@pytest.mark.parametrize(("seed", "isa"), each_with_an_isa((n,) for n in range(_PROGRAMS)))
def test_random_programs(seed: int, isa: Isa) -> None:
    rng = random.Random(seed)
    options = CompileOptions(isa=isa, float_mode=rng.choice((0xF0, 0xC0)))
    device = EmulatedDevice(1 << 20)
    base = device.base + (1 << 19)
    program = _Program(rng, base)
    candidates = _candidates(mode_of(options))
    # Between them, the programs have every shape.
    picked = candidates[seed::_PROGRAMS] + rng.choices(candidates, k=_LENGTH)
    rng.shuffle(picked)
    for shape in picked[:_LENGTH]:
        program.add(shape)
    code = assemble(_whole(program.items, rng, rng.choice(_MASKS))).data
    image = LoadedImage(compile_kernel(code, 0, options))
    want = _run(image, code, device, seed, base)
    got = _run(baseline(code, options), code, device, seed, base)
    assert got == want
