"""Loads, stores and LDS atomics whose addresses have an order that the compiled code has forms for,
and such that just miss it, against a model that visits the active lanes one by one."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from sassxlate.cfg.rdna3_flow import Flow
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.addresses import lane_strides

from .baseline import ISAS

_BYTES = {"u8": 1, "i8": 1, "u16": 2, "b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}
_LOADS = ("i8", "u16", "b32", "b64", "b96", "b128")
_STORES = ("b8", "b16", "b32", "b64", "b96", "b128")
SIZE = 4096  # bytes that the accesses are in: the last ones of the device, or LDS
_ROW = 32 * 8 + 32 * 16  # an access's addresses, and the lanes' registers
_WAIT = (Inst("s_waitcnt", (), 0), Inst("s_waitcnt_vscnt", (Sp("null"),), 0))
FULL = 0xFFFFFFFF
# wide: global, by addresses computed as 64 bits; saddr: by an offset of 32 from a scalar base.
SPACES = ("global", "wide", "saddr", "ds")
# Kernels that read threadIdx.y are compiled for warps of two rows, others for warps of one.
SHAPES = ("line", "rows")


@dataclass(frozen=True, slots=True)
class Access:
    name: str  # load_b32, ...
    exec: int
    places: tuple[int, ...]  # of the lanes, from the memory's start on


def _program(space: str, names: list[str], shape: str) -> bytes:
    """Each access in turn with its addresses, EXEC and registers from a table of `_ROW` bytes."""
    items: list[Inst] = [
        Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
        Inst("s_load_b64", (S(8, 2), S(0, 2)), 8),
        Inst("v_lshlrev_b32", (V(9), I(3), V(0))),
        Inst("v_lshlrev_b32", (V(10), I(4), V(0))),
        Inst("v_lshlrev_b32", (V(11), I(7), V(0))),
        *_WAIT,
    ]
    if shape == "rows":
        items.append(Inst("v_bfe_u32", (V(14), V(0), I(10), I(10))))
    for i in range(0, 128, 16) if space == "ds" else ():
        items += [Inst("global_load_b128", (V(4, 4), V(11), S(4, 2)), i), *_WAIT]
        items.append(Inst("ds_store_b128", (V(11), V(4, 4)), i))
    for number, name in enumerate(names):
        at = number * _ROW
        address: tuple[Arg, ...] = (V(2),) if space == "ds" else (V(2, 2), Sp("off"))
        if space == "saddr":
            address = (V(2), S(4, 2))
        kind, what = name.split("_", 1)
        data = V(4, max(1, _BYTES.get(what, 4) // 4))
        items += [
            Inst("s_load_b32", (S(6), S(0, 2)), 16 + 4 * number),
            Inst("s_movk_i32", (S(7),), at),
            Inst("v_add_nc_u32", (V(12), S(7), V(9))),
            Inst("v_add_nc_u32", (V(13), S(7), V(10))),
            Inst("global_load_b64", (V(2, 2), V(12), S(8, 2))),
            Inst("global_load_b128", (V(4, 4), V(13), S(8, 2)), 256),
            *_WAIT,
            *([Inst("v_lshlrev_b64", (V(2, 2), I(0), V(2, 2)))] if space == "wide" else ()),
            Inst("s_mov_b32", (Sp("exec_lo"), S(6))),
        ]
        args = (data, *address) if kind == "load" else (address[0], data, *address[1:])
        if kind == "atomic":
            result = (V(4),) if "_rtn_" in what else ()
            items.append(Inst(f"ds_{what}", (*result, V(2), V(4))))
        else:
            items.append(Inst(f"{'ds' if space == 'ds' else 'global'}_{name}", args))
        items += [
            *_WAIT,
            Inst("s_mov_b32", (Sp("exec_lo"), I(-1))),
            Inst("global_store_b128", (V(13), V(4, 4), S(8, 2)), 256),
        ]
    for i in range(0, 128, 16) if space == "ds" else ():
        items += [Inst("ds_load_b128", (V(4, 4), V(11)), i), *_WAIT]
        items.append(Inst("global_store_b128", (V(11), V(4, 4), S(4, 2)), i))
    return assemble([*items, *_WAIT, Inst("s_endpgm")]).data


def _is_tested(inst: Inst) -> bool:
    """Whether it is one of the accesses that `_program` was asked for."""
    at = 1 if "_load_" in inst.op or "_rtn_" in inst.op else 0
    return inst.op.startswith(("global_", "ds_")) and inst.args[at] in (V(2), V(2, 2))


def _places(rng: random.Random, size: int) -> list[int]:
    """Addresses of 32 lanes: in order, in halves, shared, near to each other, with one lane
    elsewhere, at random."""
    room = SIZE // size
    kind = rng.randrange(10)
    first, second = (rng.randrange(room - 16) for _ in (0, 1))
    if kind == 0:
        first = rng.choice((0, room - 32, rng.randrange(room - 31)))
        out = [first + i for i in range(32)]
    elif kind in (1, 2):
        out = [first + i for i in range(16)] + [second + i for i in range(16)]
    elif kind == 3:
        out = [first] * 16 + [rng.choice((first, second))] * 16
    elif kind == 4:
        step = rng.randrange(1, room // 32)
        out = [i * step for i in range(32)]
    elif kind == 5:  # the upper half begins inside of the lower one
        out = [first + i % 16 + i // 16 * rng.randrange(-min(first, 3), 1) for i in range(32)]
    elif kind == 6:  # each half in 32 units
        first, second = (min(n // 32 * 32, room - 32) for n in (first, second))
        out = [first + i // 16 * (second - first) + rng.randrange(32) for i in range(32)]
    elif kind == 7:
        first, bits = rng.choice((0, room // 64 * 32, room - 32)), rng.randrange(32)
        out = [first + (i ^ bits) for i in range(32)]
    else:
        out = [rng.randrange(room) for _ in range(32)]
    if rng.random() < 0.4:
        out[rng.choice((0, 1, 7, 15, 16, 17, 31))] = rng.randrange(room)
    return [size * n for n in out]


def _accesses(rng: random.Random, names: list[str]) -> list[Access]:
    out: list[Access] = []
    for name in names:
        size = _BYTES.get(name.split("_", 1)[1], 4)
        mask = rng.choice(
            (FULL, FULL, 0xFFFF, 0xFFFF0000, 0xFFFFFFFE, 0xFFFEFFFF, 0x0001FFFF, 0x7FFFFFFF,
             0, 1, 1 << 16, 1 << 31, rng.getrandbits(32))
        )  # fmt: skip
        places = _places(rng, size)
        if rng.random() < 0.5:  # what lanes that are not active have is not looked at
            garbage = rng.choice((-1, 0, 1 << 40, rng.getrandbits(64)))
            places = [p if mask >> i & 1 else garbage for i, p in enumerate(places)]
        out.append(Access(name, mask, tuple(places)))
    return out


def _atomic(op: str, old: int, operand: int) -> int:
    def signed(x: int) -> int:
        return x - (x >> 31 << 32)

    match op.replace("_rtn", ""):
        case "add_u32":
            return (old + operand) & FULL
        case "sub_u32":
            return (old - operand) & FULL
        case "min_i32":
            return min(old, operand, key=signed)
        case "max_i32":
            return max(old, operand, key=signed)
        case "min_u32":
            return min(old, operand)
        case "max_u32":
            return max(old, operand)
        case "and_b32":
            return old & operand
        case "or_b32":
            return old | operand
        case "xor_b32":
            return old ^ operand
        case "storexchg_b32":
            return operand
        case "inc_u32":
            return 0 if old >= operand else old + 1
        case "dec_u32":
            return operand if old == 0 or old > operand else old - 1
        case _:
            raise AssertionError(op)


def expected(memory: bytearray, table: bytearray, accesses: list[Access]) -> None:
    for number, access in enumerate(accesses):
        kind, what = access.name.split("_", 1)
        size = _BYTES.get(what, 4)
        for lane in range(32):
            if not access.exec >> lane & 1:
                continue
            at = access.places[lane]
            row = number * _ROW + 256 + 16 * lane
            if kind == "store":
                memory[at : at + size] = table[row : row + size]
                continue
            got = int.from_bytes(memory[at : at + size], "little", signed=access.name == "load_i8")
            if kind == "atomic":
                new = _atomic(what, got, int.from_bytes(table[row : row + 4], "little"))
                memory[at : at + 4] = new.to_bytes(4, "little")
                if "_rtn_" not in what:
                    continue
            wide = max(size, 4)
            table[row : row + wide] = (got % (1 << 8 * wide)).to_bytes(wide, "little")


class Runner:
    """One compiled program, run with tables.  ``strides``, by the number of an access, are what the
    compiler takes for probable, which may not matter to results; of others it knows nothing."""

    def __init__(
        self,
        space: str,
        names: list[str],
        options: CompileOptions,
        shape: str = "rows",
        strides: Mapping[int, int] | None = None,
    ) -> None:
        self.space, self.names = space, names
        probable = strides or {}

        def given(flow: Flow) -> dict[int, int]:
            steps = [s for at in sorted(flow.blocks) for s in flow.blocks[at].steps]
            tested = [s.pc for s in steps if _is_tested(s.inst)]
            assert len(tested) == len(names)
            return {pc: probable[n] for n, pc in enumerate(tested) if n in probable}

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lane_strides, "strides", given)
            image = compile_kernel(_program(space, names, shape), 0, options)
        self.loaded = LoadedImage(image)

    def run(
        self, content: bytes, accesses: list[Access], registers: bytes, shift: int = 0
    ) -> tuple[bytes, bytes, bytearray]:
        """(the memory, the table afterwards, the table before); ``shift``: of the scalar base."""
        size = 1 << 17
        device = EmulatedDevice(size)
        table = device.alloc(_ROW * len(accesses))
        base = device.base + size - SIZE if self.space in ("global", "wide") else 0
        rows = bytearray()
        for number, access in enumerate(accesses):
            rows += struct.pack("<32Q", *((base + p) % (1 << 64) for p in access.places))
            rows += registers[512 * number : 512 * number + 512]
        device.write(table, bytes(rows))
        memory = device.base + size - SIZE
        device.write(memory, content)
        masks = (a.exec for a in accesses)
        kernarg = struct.pack(f"<QQ{len(accesses)}I", memory + shift, table, *masks)
        run_image(self.loaded, Setup(lds_size=SIZE), 1, 32, kernarg, device)
        return device.read(memory, SIZE), device.read(table, len(rows)), rows


def _names(space: str) -> list[str]:
    names = [f"load_{w}" for w in _LOADS] + [f"store_{w}" for w in _STORES]
    if space == "ds":
        ops = (
            ("add", "u"), ("sub", "u"), ("min", "i"), ("max", "i"), ("min", "u"), ("max", "u"),
            ("and", "b"), ("or", "b"), ("xor", "b"), ("inc", "u"), ("dec", "u"),
        )  # fmt: skip
        names += [f"atomic_{op}{rtn}_{t}32" for op, t in ops for rtn in ("_rtn", "")]
        names.append("atomic_storexchg_rtn_b32")
    return names


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("space", SPACES)
def test_every_order_of_addresses(space: str, shape: str, isa: Isa) -> None:
    rng = random.Random(f"{space} {isa}")
    names = _names(space)
    shared = range(len(names), len(names) + len(_LOADS))  # compiled for lanes that agree
    names += [f"load_{w}" for w in _LOADS]
    strides = {**dict.fromkeys(shared, 0), names.index("store_b16"): lane_strides.SCATTERED}
    runner = Runner(space, names, CompileOptions(isa=isa), shape, strides)
    for _ in range(40):
        accesses = _accesses(rng, names)
        content = rng.randbytes(SIZE)
        got_memory, got, before = runner.run(content, accesses, rng.randbytes(512 * len(names)))
        memory, table = bytearray(content), bytearray(before)
        expected(memory, table, accesses)
        for number, access in enumerate(accesses):
            row = slice(number * _ROW, number * _ROW + _ROW)
            assert got[row] == table[row], access
        assert got_memory == memory


_FAULTY = (
    *((space, name) for space in SPACES
      for name in ("load_b32", "store_b32", "load_b64", "store_b64")),
    ("ds", "atomic_add_u32"),
    ("ds", "atomic_or_rtn_b32"),
)  # fmt: skip


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("space", "name"), _FAULTY)
def test_a_fault_names_the_first_lane(space: str, name: str, shape: str, isa: Isa) -> None:
    rng = random.Random(f"{space} {name} {isa}")
    runner = Runner(space, [name], CompileOptions(isa=isa), shape)
    size = _BYTES.get(name.split("_", 1)[1], 4)
    row = [size * i for i in range(16)]
    for _ in range(12):
        places = [*row, *(p + rng.choice((0, 64, 512)) for p in row)]
        if rng.random() < 0.3:  # the last lanes leave the memory
            places = [p + SIZE - size * rng.randrange(1, 16) for p in places]
        bad = rng.sample(range(32), 2)
        places[bad[0]] = rng.choice((SIZE, SIZE + 64, 1 << 40, -8 if space == "ds" else 1 << 20))
        places[bad[1]] = places[bad[1]] // size * size + rng.choice((1, 2, size // 2))
        mask = rng.choice((FULL, 0xFFFEFFFE, rng.getrandbits(32)))
        shift, before = 0, rng.randrange(1, 32)
        if space == "saddr" and rng.random() < 0.4:  # one run across the end of 32 bits
            shift = SIZE // 2 - (1 << 32)
            places = [size * (i - before) for i in range(32)]
        if space in ("saddr", "ds"):
            places = [p % (1 << 32) for p in places]

        def inside(place: int, shift: int = shift) -> bool:
            return place % size == 0 and 0 <= place + shift <= SIZE - size

        wrong = [i for i in range(32) if mask >> i & 1 and not inside(places[i])]
        run = (bytes(SIZE), [Access(name, mask, tuple(places))], bytes(512), shift)
        if not wrong:
            runner.run(*run)
            continue
        with pytest.raises(EmulatorError) as caught:
            runner.run(*run)
        found = re.search(r"(\w+) fault .* lane (\d+):", str(caught.value))
        assert found is not None
        assert int(found[2]) == wrong[0], caught.value
        misaligned = places[wrong[0]] % size != 0
        assert (found[1] == "misaligned") == misaligned


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("space", SPACES)
def test_a_fault_at_a_shared_address_names_the_first_lane(space: str, shape: str, isa: Isa) -> None:
    rng = random.Random(f"shared {space} {isa}")
    runner = Runner(space, ["load_b64"], CompileOptions(isa=isa), shape, {0: 0})
    for _ in range(24):
        good = [8 * rng.randrange(SIZE // 8), SIZE - 8]
        bad = [SIZE, SIZE - 4, good[0] + 4, 1 << 31]
        low, high = rng.choice(good), rng.choice(bad)
        if rng.random() < 0.5:
            low, high = high, rng.choice((low, high))
        places = [low] * 16 + [high] * 16
        mask = rng.choice((FULL, 0xFFFF, 0xFFFF0000, 1 << 20, 0, rng.getrandbits(32)))
        wrong = [i for i in range(32) if mask >> i & 1 and places[i] in bad]
        run = (rng.randbytes(SIZE), [Access("load_b64", mask, tuple(places))], bytes(512))
        if not wrong:
            memory, table, before = runner.run(*run)
            wanted = bytearray(before)
            expected(bytearray(run[0]), wanted, run[1])
            assert (memory, table) == (run[0], bytes(wanted))
            continue
        with pytest.raises(EmulatorError, match=rf"fault .* lane {wrong[0]}:"):
            runner.run(*run)


def test_strict_mode_has_the_same_words() -> None:
    rng = random.Random(5)
    names = ["load_b32", "store_b32"]
    runner = Runner("global", names, replace(CompileOptions(), strict=True))
    for _ in range(8):
        accesses = _accesses(rng, names)
        content = rng.randbytes(SIZE)
        got_memory, got, before = runner.run(content, accesses, rng.randbytes(1024))
        memory, table = bytearray(content), bytearray(before)
        expected(memory, table, accesses)
        assert (got_memory, got) == (bytes(memory), bytes(table))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [124, 128, 132, 256 + 4])
def test_near_the_end_of_lds(size: int, isa: Isa) -> None:
    """Lanes that exchange dwords in LDS that ends among them, where nothing may be taken whole."""
    words = size // 4
    lanes = min(words, 32)

    def code(bits: int) -> bytes:
        first = 4 * (words - lanes)
        return assemble(
            [
                Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
                Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
                Inst("s_mov_b32", (Sp("exec_lo"), I((1 << lanes) - 1))),
                Inst("ds_store_b32", (V(1), V(1)), first),
                Inst("v_xor_b32", (V(2), I(4 * bits), V(1))),
                Inst("v_mov_b32", (V(3), I(0))),
                *_WAIT,
                Inst("ds_load_b32", (V(3), V(2)), first),
                *_WAIT,
                Inst("global_store_b32", (V(1), V(3), S(4, 2))),
                *_WAIT,
                Inst("s_endpgm"),
            ]
        ).data

    for bits in (0, 1, 3, 16):
        device = EmulatedDevice(1 << 16)
        out = device.alloc(128)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lane_strides, "strides", _unknown)
            image = LoadedImage(compile_kernel(code(bits), 0, CompileOptions(isa=isa)))
        launch = (image, Setup(lds_size=size), 1, 32, struct.pack("<Q", out), device)
        wrong = [i for i in range(lanes) if i ^ bits >= lanes]
        if wrong:
            with pytest.raises(EmulatorError, match=rf"fault .* lane {wrong[0]}:"):
                run_image(*launch)
            continue
        run_image(*launch)
        got = struct.unpack(f"<{lanes}I", device.read(out, 4 * lanes))
        assert list(got) == [4 * (i ^ bits) for i in range(lanes)]


def _unknown(_: Flow) -> dict[int, int]:
    return {}
