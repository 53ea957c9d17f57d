"""Accesses by addresses that are made of one vector and scalars, against a model that computes each
lane's: sums and products wrap, extensions see it, lanes end before the access, in the same block or
in the one before."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from sassxlate.cfg.rdna3_flow import Flow, discover
from sassxlate.disasm.rdna3.codec.assemble import Label, assemble
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, LabelRef, S, Sp, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import ATTRIBUTES, compile_kernel
from sassxlate.lowering.emulate.image.image import HostImage
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.access import linear
from sassxlate.lowering.emulate.wave.addresses import lane_strides
from sassxlate.lowering.emulate.wave.wave import build
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Val

from .baseline import ISAS

_SIZE = 4096
_ROW = 32 * 4 + 32 * 16  # an access's numbers, and the lanes' registers
_WAIT = (Inst("s_waitcnt", (), 0), Inst("s_waitcnt_vscnt", (Sp("null"),), 0))
_EXEC = Sp("exec_lo")
_FULL = 0xFFFFFFFF


def _signed(x: int) -> int:
    return (x & _FULL) - (x << 1 & 1 << 32)


@dataclass(frozen=True, slots=True)
class _Form:
    """How v2, and v3, become addresses of lanes' numbers in v2, s6 and the base in s[4:5]; and the
    same of one lane, from the base on."""

    items: tuple[Inst, ...]
    address: tuple[Arg, ...]
    of: Callable[[int, int], int]
    steps: str  # as the compiler sees them


def _mad(op: str) -> Inst:
    return Inst(op, (V(2, 2), S(10), V(2), I(4), S(4, 2)))


_ADD = Inst("v_add_nc_u32", (V(2), S(6), V(2)))
_WIDE: tuple[Arg, ...] = (V(2, 2), Sp("off"))
_VCC, _NULL = Sp("vcc_lo"), Sp("null")
# As LLVM's AMDGPU backend writes it: the sum in two steps with a carry.
_SIGN = Inst("v_ashrrev_i32", (V(3), I(31), V(2)))
_SHIFT = Inst("v_lshlrev_b64", (V(2, 2), I(2), V(2, 2)))
_BASE = (
    Inst("v_add_co_u32", (V(2), _VCC, V(2), S(4))),
    Inst("v_add_co_ci_u32", (V(3), _NULL, S(5), V(3), _VCC)),
)
_FORMS = {
    "signed": _Form(
        (_ADD, _mad("v_mad_i64_i32")), _WIDE, lambda x, k: 4 * _signed(x + k), "add sext mul add"
    ),
    "unsigned": _Form(
        (_ADD, _mad("v_mad_u64_u32")), _WIDE, lambda x, k: 4 * (x + k & _FULL), "add zext mul add"
    ),
    "less": _Form(
        (Inst("v_sub_nc_u32", (V(2), V(2), S(6))), _mad("v_mad_i64_i32")),
        _WIDE,
        lambda x, k: 4 * _signed(x - k),
        "sub sext mul add",
    ),
    "carry": _Form(
        (_ADD, _SIGN, _SHIFT, *_BASE),
        _WIDE,
        lambda x, k: 4 * _signed(x + k),
        "add sext shl add",
    ),
    "borrow": _Form(
        (
            Inst("s_lshl_b32", (S(14), S(6), I(2))),
            Inst("s_lshr_b32", (S(15), S(6), I(30))),
            _SIGN,
            _SHIFT,
            *_BASE,
            Inst("v_sub_co_u32", (V(2), _VCC, V(2), S(14))),
            Inst("v_sub_co_ci_u32", (V(3), _NULL, V(3), S(15), _VCC)),
        ),
        _WIDE,
        lambda x, k: 4 * _signed(x) - 4 * k,
        "sext shl add sub",
    ),
    "less_a_constant": _Form(
        (
            _ADD,
            _SIGN,
            _SHIFT,
            *_BASE,
            Inst("v_add_co_u32", (V(2), _VCC, I(-16), V(2))),
            Inst("v_add_co_ci_u32", (V(3), _NULL, I(-1), V(3), _VCC)),
        ),
        _WIDE,
        lambda x, k: 4 * _signed(x + k) - 16,
        "add sext shl add add",
    ),
    "upper_zero": _Form(
        (_ADD, Inst("v_mov_b32", (V(3), I(0))), _SHIFT, *_BASE),
        _WIDE,
        lambda x, k: 4 * (x + k & _FULL),
        "add zext shl add",
    ),
    "saddr": _Form(
        (Inst("v_add_lshl_u32", (V(2), V(2), S(6), I(2))),),
        (V(2), S(4, 2)),
        lambda x, k: 4 * (x + k) & _FULL,
        "add shl zext",
    ),
    "ds": _Form(
        (Inst("v_lshl_add_u32", (V(2), V(2), I(2), S(6))),),
        (V(2),),
        lambda x, k: 4 * x + k & _FULL,
        "shl add add",
    ),
}
_DWORDS = {"load_b32": 1, "store_b32": 1, "load_b64": 2, "store_b64": 2, "store_b128": 4}
# Of accesses in turn: how far the lanes are apart decides what is side by side.
_NAMES = ("load_b32", "store_b32", "load_b32")


def _program(form: _Form, lds: bool, rows: bool, offset: int) -> bytes:
    """The accesses; each in a block of its own, whose EXEC is a part of the one before."""
    items: list[Inst | Label] = [
        Inst("s_load_b64", (S(8, 2), S(0, 2)), 0),
        Inst("v_lshlrev_b32", (V(9), I(2), V(0))),
        Inst("v_lshlrev_b32", (V(10), I(4), V(0))),
        Inst("v_lshlrev_b32", (V(11), I(7), V(0))),
        Inst("s_load_b64", (S(12, 2), S(0, 2)), 8),
        *_WAIT,
    ]
    if rows:
        items.append(Inst("v_bfe_u32", (V(14), V(0), I(10), I(10))))
    for i in range(0, 128, 16) if lds else ():
        items += [Inst("global_load_b128", (V(4, 4), V(11), S(12, 2)), i), *_WAIT]
        items.append(Inst("ds_store_b128", (V(11), V(4, 4)), i))
    for number, name in enumerate(_NAMES):
        at = number * _ROW
        kind = name.partition("_")[0]
        data = V(4, _DWORDS[name])
        op = f"{'ds' if lds else 'global'}_{name}"
        args = (data, *form.address) if kind == "load" else (form.address[0], data,
                                                            *form.address[1:])  # fmt: skip
        items += [
            Inst("s_load_b128", (S(4, 4), S(0, 2)), 16 + 16 * number),
            Inst("s_movk_i32", (S(11),), at),
            Inst("v_add_nc_u32", (V(12), S(11), V(9))),
            Inst("v_add_nc_u32", (V(13), S(11), V(10))),
            Inst("global_load_b32", (V(2), V(12), S(8, 2))),
            Inst("global_load_b128", (V(4, 4), V(13), S(8, 2)), 128),
            *_WAIT,
            form.items[0],
            Inst("s_and_b32", (_EXEC, _EXEC, S(7))),
            Inst("s_cbranch_execz", (LabelRef(f"skip{number}"),)),
            *form.items[1:],
            Inst(op, args, offset),
            *_WAIT,
            Label(f"skip{number}"),
            Inst("s_mov_b32", (_EXEC, I(-1))),
            Inst("global_store_b128", (V(13), V(4, 4), S(8, 2)), 128),
        ]
    for i in range(0, 128, 16) if lds else ():
        items += [Inst("ds_load_b128", (V(4, 4), V(11)), i), *_WAIT]
        items.append(Inst("global_store_b128", (V(11), V(4, 4), S(12, 2)), i))
    return assemble([*items, *_WAIT, Inst("s_endpgm")]).data


def _mask(rng: random.Random) -> int:
    return rng.choice(
        (_FULL, _FULL, 0xFFFF, 0xFFFF0000, 0xFFFFFFFE, 0xFFFEFFFF, 0, 1 << 31, rng.getrandbits(32))
    )


@dataclass(frozen=True, slots=True)
class _Access:
    numbers: tuple[int, ...]
    scalar: int
    exec: int
    start: int  # the base, from the memory's start on


# What of the numbers wraps: where an extension leaves its argument's width.
_EDGES = {
    "signed": 1 << 31, "less": 1 << 31, "carry": 1 << 31, "borrow": 1 << 31,
    "less_a_constant": 1 << 31, "unsigned": 1 << 32, "upper_zero": 1 << 32, "saddr": 1 << 30,
}  # fmt: skip


def _access(rng: random.Random, form: str, offset: int, *, shared: bool = False) -> _Access:
    """Lanes in order or nearly so, or with one number, or one of each half, if ``shared``: in the
    memory, over its end, or around the number where an extension wraps, which lies in its middle
    then."""
    scalar = rng.choice((0, 1, 5, 0x7FFFFFFF, 0x80000000, _FULL, rng.getrandbits(32)))
    if form == "borrow":  # a great one leaves the memory with each lane
        scalar >>= rng.choice((0, 16, 29))
    room, edge = _SIZE // 4, 0
    if form != "ds" and rng.random() < 0.25:
        edge = _EDGES[form]
    first = rng.choice((2, room - 32, rng.randrange(room - 63), rng.randrange(room - 63)))
    if rng.random() < 0.2:
        first = rng.choice((-1 if form == "ds" else room, room - 31, room - 16))
    if edge:
        first = edge - rng.choice((32, 16, rng.randrange(33)))
    second = rng.choice((16, 16, 16, 0, rng.randrange(47)))
    step = 0 if shared and rng.random() < 0.8 else 1
    out = [first + i % 16 * step + i // 16 * second - max(offset, 0) // 4 for i in range(32)]
    if form == "less_a_constant":
        out = [x + 4 for x in out]  # nothing is before the memory
    if rng.random() < 0.3:
        out[rng.choice((0, 1, 15, 16, 17, 31))] += rng.choice((1, 2, 1 << 29))
    added = -scalar if form in ("less", "borrow") else scalar
    if form == "ds":
        scalar &= -4
        added = scalar >> 2
    start = _SIZE // 2 - 4 * edge if edge else 0
    return _Access(tuple(x - added & _FULL for x in out), scalar, _mask(rng), start)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", _FORMS)
def test_as_each_lane_alone(name: str, shared: bool, isa: Isa) -> None:
    rng, form, lds = random.Random(f"{name} {isa}"), _FORMS[name], name == "ds"
    rows, offset = rng.random() < 0.5, rng.choice((0, 4, 64)) if lds else rng.choice((0, 4, -8))
    loaded = LoadedImage(_compile(form, lds, rows, offset, isa, shared))
    device = EmulatedDevice(1 << 17)
    table = device.alloc(_ROW * len(_NAMES))
    faults = clean = 0
    for _ in range(150):
        accesses = [_access(rng, name, offset, shared=shared) for _ in _NAMES]
        content, registers = rng.randbytes(_SIZE), rng.randbytes(512 * len(_NAMES))
        memory = device.base + device.size - _SIZE
        rowsdata = bytearray()
        kernarg = struct.pack("<QQ", table, memory)
        for number, access in enumerate(accesses):
            rowsdata += struct.pack("<32I", *access.numbers)
            rowsdata += registers[512 * number : 512 * number + 512]
            base = memory + access.start & (1 << 64) - 1
            kernarg += struct.pack("<QII", base, access.scalar, access.exec)
        device.write(table, bytes(rowsdata))
        device.write(memory, content)
        expected, wrong = bytearray(content), None
        for number, access in enumerate(accesses):
            for lane in range(32):
                if not access.exec >> lane & 1:
                    continue
                at = access.start + form.of(access.numbers[lane], access.scalar) + offset
                at = at & _FULL if lds else at
                if not 0 <= at <= _SIZE - 4 or at % 4:
                    wrong = lane
                    break
                row = number * _ROW + 128 + 16 * lane
                if _NAMES[number].startswith("store"):
                    expected[at : at + 4] = rowsdata[row : row + 4]
                else:
                    rowsdata[row : row + 4] = expected[at : at + 4]
            if wrong is not None:
                break
        launch = (loaded, Setup(lds_size=_SIZE), 1, 32, kernarg, device)
        if wrong is not None:
            with pytest.raises(EmulatorError) as caught:
                run_image(*launch)
            found = re.search(r"fault .* lane (\d+):", str(caught.value))
            assert found is not None
            assert int(found[1]) == wrong, (accesses, caught.value)
            faults += 1
            continue
        run_image(*launch)
        assert device.read(memory, _SIZE) == expected, accesses
        assert device.read(table, len(rowsdata)) == rowsdata, accesses
        clean += 1
    assert faults > 10
    assert clean > 10


def _unknown(_: Flow) -> dict[int, int]:
    return {}


def _equal(flow: Flow) -> dict[int, int]:
    """As if all lanes loaded from one address."""
    steps = [step for block in flow.blocks.values() for step in block.steps]
    return {step.pc: 0 for step in steps if "_load_" in step.inst.op}


def _compile(
    form: _Form, lds: bool, rows: bool, offset: int, isa: Isa | None, shared: bool = False
) -> HostImage:
    """As if nothing were known of how the addresses grow, or as if they did not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lane_strides, "strides", _equal if shared else _unknown)
        code = _program(form, lds, rows, offset)
        return compile_kernel(code, 0, CompileOptions(isa=isa))


def test_the_forms_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the other test has nothing to test."""
    seen: list[str] = []
    find = linear.find

    def spy(
        d: LlvmDomain, lo: Val, hi: Val | None, bytes_: int, *, short: bool
    ) -> linear.Linear | None:
        form = find(d, lo, hi, bytes_, short=short)
        seen.append("" if form is None else " ".join(step.op for step in form.steps))
        return form

    monkeypatch.setattr(linear, "find", spy)
    for name, form in _FORMS.items():
        seen.clear()
        _compile(form, name == "ds", False, 4, None)
        assert seen.count(form.steps) == len(_NAMES), (name, seen)


def _alone(form: _Form, rows: bool, op: str, offset: int) -> bytes:
    """One access, by arguments of the launch: how its addresses are made is known beforehand."""
    data = V(4, 2 if op.endswith("64") else 1)
    load = op.startswith("load")
    args = (data, *form.address) if load else (form.address[0], data, *form.address[1:])
    items = [
        Inst("s_load_b64", (S(8, 2), S(0, 2)), 0),
        Inst("s_load_b128", (S(4, 4), S(0, 2)), 16),
        Inst("v_lshlrev_b32", (V(9), I(2), V(0))),
        Inst("v_bfe_u32", (V(14), V(0), I(10), I(10))) if rows else Inst("s_nop"),
        *_WAIT,
        *(
            Inst("global_load_b32", (V(to), V(9), S(8, 2)), 128 * n)
            for n, to in enumerate((2, 4, 5))
        ),
        *_WAIT,
        form.items[0],
        Inst("s_and_b32", (_EXEC, _EXEC, S(7))),
        *form.items[1:],
        Inst(f"global_{op}", args, offset),
        *_WAIT,
        Inst("s_mov_b32", (_EXEC, I(-1))),
        *(Inst("global_store_b32", (V(9), V(4 + n), S(8, 2)), 128 + 128 * n) for n in (0, 1)),
        *_WAIT,
    ]
    return assemble([*items, Inst("s_endpgm")]).data


def _overlapping(flow: Flow) -> dict[int, int]:
    """As if lanes that load 8 bytes were 4 apart: those of neighbours overlap."""
    steps = [step for block in flow.blocks.values() for step in block.steps]
    return {step.pc: 4 for step in steps if step.inst.op == "global_load_b64"}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("op", ["load_b32", "store_b32", "load_b64"])
@pytest.mark.parametrize("name", [name for name in _FORMS if name != "ds"])
def test_limits_before_the_waves(name: str, op: str, isa: Isa) -> None:
    """The same where the first lane is compared with limits; bases that nothing is at, too."""
    rng, form = random.Random(f"limits {name} {op} {isa}"), _FORMS[name]
    rows, offset, size = rng.random() < 0.5, rng.choice((0, 4, -8)), int(op[-2:]) // 8
    options = CompileOptions(isa=isa, kernarg=(0, 32), align="unaligned" if size > 4 else "natural")
    code = _alone(form, rows, op, offset)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lane_strides, "strides", _overlapping)
        text = build(discover(code, 0), options, isa, ATTRIBUTES[isa])[0].text()
        assert text.count("%limit0.lo =") == 1
        loaded = LoadedImage(compile_kernel(code, 0, options))
    device = EmulatedDevice(1 << 17)
    device.alloc(_SIZE)  # nothing else is at the arena's start
    table = device.alloc(384)
    outcomes: set[bool] = set()
    for _ in range(100):
        access = _access(rng, name, offset)
        memory = device.base + rng.choice((0, device.size - _SIZE))
        base = memory + access.start - rng.choice((0, 0, 4, 8, 12))
        if access.start:  # by numbers that wrap around; where sums that do not are inside, too
            base += rng.choice((0, 1 << 34))
        if rng.random() < 0.15:
            base += rng.choice((-1 << 62, 1 << 62, 1 << 63, 1 << 50, -memory, 1, 2, 1 << 33))
        registers, wrong = rng.randbytes(256), None
        device.write(table, struct.pack("<32I", *access.numbers) + registers)
        device.write(memory, rng.randbytes(_SIZE))
        expected, lanes = bytearray(device.read(device.base, device.size)), bytearray(registers)
        for lane in range(32):
            if not access.exec >> lane & 1:
                continue
            at = base + form.of(access.numbers[lane], access.scalar) + offset - device.base
            at &= (1 << 64) - 1
            if at > device.size - size or (at % 4 and size == 4):
                wrong = lane
                break
            for word in range(0, size, 4):
                row = 32 * word + 4 * lane
                if op.startswith("store"):
                    expected[at : at + 4] = registers[row : row + 4]
                else:
                    lanes[row : row + 4] = expected[at + word : at + word + 4]
        numbers = (table, 0, base & (1 << 64) - 1, access.scalar, access.exec)
        launch = (loaded, Setup(), 1, 32, struct.pack("<QQQII", *numbers), device)
        outcomes.add(wrong is None)
        if wrong is not None:
            with pytest.raises(EmulatorError, match=rf"fault .* lane {wrong}:"):
                run_image(*launch)
            continue
        run_image(*launch)
        at = memory - device.base
        assert device.read(memory, _SIZE) == expected[at : at + _SIZE], access
        assert device.read(table + 128, 256) == lanes, access
    assert outcomes == {False, True}
