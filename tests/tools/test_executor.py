"""`tools.witness.executor`: records of dispatches, memory compared, single instructions named."""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sassxlate.disasm.rdna3 import OPS, encode
from sassxlate.disasm.rdna3.instruction import Inst, S, Sp, V
from tools.witness.executor import record
from tools.witness.executor.__main__ import FAULTS, known_faults
from tools.witness.executor.single import Registers, Singles
from tools.witness.pcode.machine import LANES

ROOT = Path(__file__).resolve().parents[2]
BASE = 0x123400000000
QUEUE, VRAM, HOST = BASE, BASE + 0x10000, BASE + 0x20000


def page(**words: int) -> bytes:
    data = bytearray(record.PAGE)
    for name, value in words.items():
        struct.pack_into("<I", data, 4 * int(name[1:]), value)
    return bytes(data)


def recorded(before: dict[int, bytes], changed: dict[int, bytes]) -> bytes:
    out = b"SXDISP01" + struct.pack("<Q", QUEUE)
    out += struct.pack("<2H3HH3I2I4Q", 2, 1, 32, 2, 1, 0, 64, 4, 1, 0, 0, VRAM, HOST, 0, 0)
    out += struct.pack("<IIQ", 512, 16, 3) + b"_Zk"
    ranges = ((QUEUE, 2), (VRAM, 1), (HOST, 2))
    out += struct.pack("<Q", len(ranges))
    for begin, flags in ranges:
        out += struct.pack("<3Q", begin, begin + 2 * record.PAGE, flags)
    for pages in (before, changed):
        out += struct.pack("<Q", len(pages))
        for address, data in pages.items():
            out += struct.pack("<Q", address) + data
    return out


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "DISPATCH.000000"
    before = {VRAM: page(w0=7, w1=8), HOST: page(w0=1, w1=2)}
    changed = {VRAM: page(w0=9, w1=8), HOST: page(w0=5, w1=6), QUEUE: page(w3=1)}
    path.write_bytes(recorded(before, changed))
    return path


def test_a_record(file: Path) -> None:
    read = record.read(file)
    assert (read.kernel, read.workgroup, read.groups) == ("_Zk", (32, 2, 1), (2, 2, 1))
    assert (read.descriptor, read.kernarg, read.lds, read.scratch) == (VRAM, HOST, 512, 16)
    assert [r.host_memory for r in read.ranges] == [True, False, True]
    assert read.bytes_at(VRAM + record.PAGE - 4, 8) == bytes(8)
    assert read.bytes_at(VRAM + 4, 4) == b"\x08\0\0\0"


@pytest.mark.parametrize("size", [0, 7, 60, 200, -1])
def test_a_truncated_record(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(record.RecordError):
        record.read(file)


def test_bytes_after_a_record(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(record.RecordError, match="1 bytes after"):
        record.read(file)


COMPARE = """
import ctypes, sys
from pathlib import Path
from tools.witness.executor import memory, record
d = record.read(Path(sys.argv[1]))
memory.place(d)
for at, value in zip(sys.argv[2::2], sys.argv[3::2]):
    ctypes.c_uint32.from_address(int(at)).value = int(value)
print([(w.address, w.ours, w.theirs) for w in memory.differences(d)])
"""


def compared(file: Path, *writes: int) -> object:
    """What differs where another executor writes these words."""
    words = [sys.executable, "-c", COMPARE, str(file), *map(str, writes)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    found: object = eval(done.stdout)
    return found


def test_memory_is_compared(file: Path) -> None:
    """Words that the other executor leaves out, writes otherwise, or writes besides; but the host
    wrote into the queue and to host memory, which the kernel did not."""
    assert compared(file) == [(VRAM, 9, 7)]
    assert compared(file, VRAM, 9) == []
    assert compared(file, VRAM, 9, VRAM + record.PAGE, 3) == [(VRAM + record.PAGE, 0, 3)]
    assert compared(file, VRAM, 9, HOST, 4) == [(HOST, 5, 4)]


def run(inst: Inst, result: int, singles: Singles, given: int = 0x95440256) -> Registers:
    """One execution of an instruction whose destination, v2, the executor gives ``result``."""
    scalars = (ctypes.c_uint32 * 260)()
    vectors = (ctypes.c_uint32 * (256 * LANES))()
    scalars[126] = 0xFFFFFFFF
    vectors[1 * LANES : 2 * LANES] = [given] * LANES
    registers = Registers(scalars, vectors, 253, 0xF0)
    code = ctypes.create_string_buffer(encode(inst) + bytes(16))
    pc = ctypes.addressof(code)
    wanted, before = singles.expected(pc, registers), registers.wave(inst)
    assert wanted is not None
    vectors[2 * LANES : 3 * LANES] = [result] * LANES
    singles.look(pc, before, wanted, registers)
    return registers


def test_a_wrong_instruction_is_named() -> None:
    inst = Inst("v_rndne_f32", (V(2), V(1)))
    right, wrong = Singles(often=1), Singles(often=1)
    run(inst, 0x80000000, right)
    assert right.wrong == []
    run(inst, 0, wrong)
    (one,) = wrong.wrong
    assert (one.op, one.lane, one.described, one.executed) == ("v_rndne_f32", 0, 0x80000000, 0)


def test_a_known_fault_is_corrected() -> None:
    singles = Singles(correct=frozenset({"v_rndne_f32"}))
    registers = run(Inst("v_rndne_f32", (V(2), V(1))), 0, singles)
    assert set(registers.vectors[2 * LANES : 3 * LANES]) == {0x80000000}
    assert singles.corrected == {"v_rndne_f32": 1}


def test_another_scalar_that_is_written_is_noticed() -> None:
    singles = Singles(often=1)
    inst = Inst("v_cmp_lt_u32", (Sp("vcc_lo"), V(1), V(2)))
    scalars, vectors = (ctypes.c_uint32 * 260)(), (ctypes.c_uint32 * (256 * LANES))()
    scalars[126] = 1
    registers = Registers(scalars, vectors, 253, 0xF0)
    code = ctypes.create_string_buffer(encode(inst) + bytes(16))
    pc = ctypes.addressof(code)
    wanted, given = singles.expected(pc, registers), registers.wave(inst)
    assert wanted is not None
    scalars[40] = 3
    singles.look(pc, given, wanted, registers)
    assert [(w.described, w.executed) for w in singles.wrong] == [(0, 3)]


def test_the_list_of_faults_names_opcodes_and_sections() -> None:
    assert known_faults() <= set(OPS)
    faults = tomllib.loads(FAULTS.read_text())["fault"]
    sections = [str(fault["isa"]) for fault in faults]
    named = re.compile(r"(\d+(\.\d+)+( \([A-Z0-9_, ]+\))?(, |$))+")
    assert [isa for isa in sections if not named.fullmatch(isa)] == []
    opcodes = {op for fault in faults for op in fault["ops"]}
    known = {op.lower() for isa in sections for op in re.findall(r"[A-Z]\w+_\w+", isa)}
    assert known == opcodes


def test_an_approximation_within_bounds_is_no_fault() -> None:
    """The emulated device gives the nearest number; AMD's text rounds the root, then the quotient
    (v_rsq_f32 of 0x3f9b0b8f)."""
    singles, inst = Singles(often=1), Inst("v_rsq_f32", (V(2), V(1)))
    run(inst, 0x3F689A72, singles, 0x3F9B0B8F)
    assert singles.wrong == []
    assert [(w.described, w.executed) for w in singles.near] == [(0x3F689A71, 0x3F689A72)]
    far = Singles(often=1)
    run(inst, 0x3F689A75, far, 0x3F9B0B8F)
    assert (len(far.wrong), far.near) == (1, [])


def test_both_halves_of_a_vopd_read_first() -> None:
    y = Inst("v_dual_mov_b32", (V(3), V(2)))
    inst = Inst("v_dual_mul_f32", (V(2), V(1), V(1)), y=y)
    singles = Singles(often=1)
    registers = run(inst, 0, singles, 0x40000000)
    assert registers.vectors[3 * LANES] == 0
    assert [(w.op, w.described) for w in singles.wrong] == [("v_dual_mul_f32", 0x40800000)]


def test_stores_are_noted() -> None:
    scalars, vectors = (ctypes.c_uint32 * 260)(), (ctypes.c_uint32 * (256 * LANES))()
    scalars[126], scalars[2], scalars[3] = 0b101, 0x1000, 1
    vectors[0:3] = [0, 4, 16]
    registers = Registers(scalars, vectors, 253, 0xF0, 7)
    singles = Singles(attribute=True)
    inst = Inst("global_store_b64", (V(0), V(4, 2), S(2, 2)), imm=8)
    code = ctypes.create_string_buffer(encode(inst) + bytes(16))
    singles.note_store(ctypes.addressof(code), registers)
    at = 0x100001008
    assert singles.stored == dict.fromkeys([at, at + 4, at + 16, at + 20], 7)
