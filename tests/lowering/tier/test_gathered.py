"""Accesses under one guard are gathered, and nothing passes what it depends on: by cases, and by
random programs that run in both orders."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

from sassxlate.cfg import Cfg, build
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.semantics.memory.memory import SPACES, shape
from sassxlate.lowering.tier.gathered import gathered, ordered

ARCH = 80


def _graph(text: str) -> Cfg:
    lines = [f"{line} ;" for line in (text + "EXIT").split("\n")]
    code = assemble_listing(lines, ARCH)[""]
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    return build("k", ARCH, [decode(w, 16 * i, ARCH) for i, w in enumerate(words)])


_LOADS = "@P0 LDG.E R2, [R10]\n@P1 LDG.E R3, [R12]\n"
_STORES = "@P0 STS [R8], R2\n@P1 STS [R8+0x20], R3\n"
CASES = {
    "loads and stores": (_LOADS + _STORES, [0, 2, 1, 3]),
    "an address between": (_LOADS + "IADD3 R8, R9, 0x4, RZ\n" + _STORES, [2, 0, 3, 1, 4]),
    "arithmetic under the guard":
        (_LOADS + "@P0 IADD3 R2, R2, 0x1, RZ\n" + _STORES, [0, 2, 3, 1, 4]),
    "the address is that of the first access, too":
        (_LOADS + "IADD3 R10, R10, 0x4, RZ\n@P0 STG.E [R10], R2\n", [0, 1, 2, 3]),
    "what it needs comes from the load":
        (_LOADS + "IADD3 R8, R2, 0x4, RZ\n@P0 STS [R8], R2\n", [0, 1, 2, 3]),
    "the predicate changes":
        (_LOADS + "ISETP.NE.AND P0, PT, R9, RZ, PT\n" + _STORES, [0, 1, 2, 3, 4]),
    "the predicate changes under itself":
        (_LOADS + "@P0 ISETP.NE.AND P0, PT, R9, RZ, PT\n" + _STORES, [0, 1, 2, 3, 4]),
    "the other sign": (_LOADS + "@!P0 STS [R8], R2\n@!P1 STS [R8+0x20], R3\n", [0, 1, 2, 3]),
    "a store between, of the same memory":
        ("@P0 LDS R2, [R8]\n@P1 STS [R9], R3\n@P0 LDS R4, [R8+0x20]\n", [0, 1, 2]),
    "a store between, of other memory":
        ("@P0 LDS R2, [R8]\n@P1 STG.E [R10], R3\n@P0 LDS R4, [R8+0x20]\n", [0, 2, 1]),
    "a store between, of an address of any memory":
        ("@P0 LDS R2, [R8]\n@P1 ST.E [R10], R3\n@P0 LDS R4, [R8+0x20]\n", [0, 1, 2]),
    "a strong access between":
        (_LOADS + "LDG.E.STRONG.GPU R5, [R14]\n" + _STORES, [0, 1, 2, 3, 4]),
    "an atomic between": (_LOADS + "RED.E.ADD.STRONG.GPU [R14], R5\n" + _STORES, [0, 1, 2, 3, 4]),
    "lanes between": (_LOADS + "VOTE.ANY R5, PT, P2\n" + _STORES, [0, 1, 2, 3, 4]),
    "a register that another access reads":
        ("@P0 LDG.E R2, [R10]\n@P1 STS [R8], R4\n@P0 LDG.E R4, [R12]\n", [0, 1, 2]),
}  # fmt: skip


def _offsets(some: Sequence[Instruction]) -> list[int]:
    return [i.offset // 16 for i in some if i.mnemonic != "EXIT"]


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    text, expected = CASES[name]
    (block,) = gathered(_graph(text), {}, ordered_shared=False).blocks
    assert _offsets(block.instructions) == expected


def test_registers_that_are_put_right_before_an_instruction_are_written_there() -> None:
    (block,) = _graph(_LOADS + "IADD3 R8, R9, 0x4, RZ\n" + _STORES).blocks
    some = block.instructions[:-1]
    repaired = {16: [RegRef("R", 9)]}
    assert _offsets(ordered(some, repaired, ordered_shared=False)) == [0, 1, 2, 3, 4]


def test_lanes_that_see_each_others_accesses_keep_their_order() -> None:
    (block,) = gathered(_graph(_LOADS + _STORES), {}, ordered_shared=True).blocks
    assert _offsets(block.instructions) == [0, 1, 2, 3]


def _random_program(chance: random.Random) -> str:
    def register() -> str:
        return f"R{chance.randrange(2, 6)}"

    def place(wide: bool) -> str:
        base = chance.choice((10, 12)) if wide else chance.choice((8, 9))
        return f"[R{base}{chance.choice(('', '+0x20'))}]"

    lines: list[str] = []
    for _ in range(chance.randrange(6, 20)):
        match chance.randrange(9):
            case 0:
                what = f"ISETP.NE.AND P{chance.randrange(2)}, PT, {register()}, {register()}, PT"
            case 1 | 2:
                what = f"LDG.E {register()}, {place(True)}"
            case 3:
                what = f"STG.E {place(True)}, {register()}"
            case 4:
                what = f"LDS {register()}, {place(False)}"
            case 5 | 6:
                what = f"STS {place(False)}, {register()}"
            case _:
                what = f"IADD3 R{chance.randrange(2, 10)}, {register()}, {register()}, RZ"
        sign, number = chance.choice(["", "!"]), chance.randrange(2)
        lines.append((f"@{sign}P{number} " if chance.random() < 0.6 else "") + what)
    return "\n".join([*lines, ""])


def _ran(some: Sequence[Instruction], start: dict[RegRef, int]) -> object:
    """The registers and memory at the end: results are digests of what is read, and an address is
    one of two, so that accesses meet."""
    values, memory = dict(start), dict[tuple[str, int], int]()
    for ins in some:
        guard = ins.guard
        if ins.mnemonic == "EXIT":
            continue
        if guard.index != 7 and bool(values[RegRef(guard.file, guard.index)] & 1) == guard.inv:
            continue
        given = (ins.offset, *(values[r] for r in sorted(ins.reads, key=str)))
        if ins.mnemonic in SPACES:
            what = shape(ins)
            base, source = getattr(ins.get("mem"), "base", None), ins.get("Rb")
            assert base is not None
            key = what.space, values[RegRef(base.file, base.index)] & 1
            if what.store:
                memory[key] = values[RegRef("R", getattr(source, "index", 0))]
                continue
            given = (memory.get(key, 0),)
        for ref in ins.writes:
            values[ref] = hash((given, ref.file)) >> 3
    return values, memory


def test_random_programs() -> None:
    """Others with each CI seed."""
    chance = random.Random(int(os.environ.get("SASSXLATE_TEST_SEED", "1")))
    moved = 0
    for _ in range(150):
        (block,) = _graph(_random_program(chance)).blocks
        new = (*ordered(block.instructions[:-1], {}, ordered_shared=False), block.last)
        assert sorted(_offsets(new)) == sorted(_offsets(block.instructions))
        moved += new != block.instructions
        refs = {r for i in block.instructions for r in (*i.reads, *i.writes)}
        for _ in range(6):
            start = {ref: chance.getrandbits(32) for ref in refs}
            assert _ran(block.instructions, start) == _ran(new, start)
    assert moved > 30


def test_a_wrong_order_is_noticed() -> None:
    (block,) = _graph("@P0 STS [R8], R2\n@P1 STS [R9], R3\n").blocks
    first, second, last = block.instructions
    start = {r: 1 for i in block.instructions for r in i.reads} | {RegRef("R", 3): 5}
    assert _ran((first, second, last), start) != _ran((second, first, last), start)
