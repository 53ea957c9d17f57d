"""Calls of vprintf by the optimising tier: the records and results of the rules' code."""

from __future__ import annotations

import random
import struct
from collections import Counter
from dataclasses import replace

import numpy as np

from sassxlate.disasm.containers.values import Cubin, Reloc
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.lowering.abi.hostcalls import FUNCTIONS
from sassxlate.lowering.abi.link import address_words, bank4_size
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT, target_named
from sassxlate.lowering.tier.translate import by_tier
from tests.lowering.emulated import load

THREADS, CALL_RELOC = 96, 0x3A
HEAD = 64
# R4 and R6: the thread's format and arguments; R10 and R11 are for __assertfail.  No two
# multiples of three call.
CODE = """
S2R R0, SR_TID.X ;
MOV R1, 0x10 ;
IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x160] ;
LDG.E.128 R4, [R2] ;
MOV R1, 0x4 ;
IMAD.WIDE.U32 R14, R0, R1, c[0x0][0x170] ;
MOV R1, 0x8 ;
IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x168] ;
LDG.E.64 R12, [R2] ;
LOP3.LUT R16, R0, 0x7, RZ, 0xc0, !PT ;
MOV R8, R0 ;
MOV R10, 0x1 ;
MOV R11, R0 ;
ISETP.NE.AND P0, PT, R16, 0x5, PT ;
{call}
STG.E [R14], R4 ;
EXIT ;
"""
CALLS = {"vprintf": "@P0 CALL.ABS.NOINC 0x0 ;", "": "@P0 CALL.ABS.NOINC R12 ;"}  # "": any
FORMATS = (
    "", "text", "%d", "%5d|%-3u%%", "%s", "[%.3s]", "%lld %hhd", "%*d %.*f %f", "%zd %d", "%n%d",
    "%c%p%s%s", "%", "%5", "%ll", "%.2f%s", "%d" * 70, "%f" * 33 + "%s", "%s%s%s", "%l%d", "%hs",
    "%.99999999999s", "%0+ #-5.1lX", "%.s|%s", "% %", "%d\n" * 9,
)  # fmt: skip


def _kernel(names: tuple[str, ...], called: str) -> Cubin:
    """A call of one of ``names``: of ``called``, or of the function whose block R12 has."""
    cubin = load("lane_flags", 80)
    (kernel,) = cubin.kernels
    lines = [s for s in CODE.format(call=CALLS[called]).splitlines() if s]
    code = assemble_listing(lines, 80)[""]
    at = 16 * next(n for n, line in enumerate(lines) if "CALL" in line)
    relocs = (Reloc(f".text.{kernel.name}", at, CALL_RELOC, called, 0),) if called else ()
    made = replace(kernel, code=code, relocs=relocs, externs=names, syscall_offsets=(at,))
    return replace(cubin, kernels=(made,))


def _format(chance: random.Random) -> str:
    if chance.random() < 0.4:
        return chance.choice(FORMATS)
    return "".join(chance.choices("%%%%%dsf.*l3hz -a", k=chance.randrange(24)))


def _ran(done: Translated, cubin: Cubin, ring: int, seed: int) -> tuple[bytes, Counter[bytes], int]:
    """The results, the records, and how many were lost."""
    chance = random.Random(seed)
    device = EmulatedDevice(1 << 22)
    start = (1 << 32) - 128
    rings = {name: device.alloc(bytes(ring), 64) for name in FUNCTIONS}
    queues: dict[str, int] = {}
    for name, function in FUNCTIONS.items():
        words = (function.number, 0, start, start + ring, rings[name], ring - 1)
        queues[name] = device.alloc(struct.pack("<IIQQQQ", *words).ljust(HEAD, b"\0"))
    bank = bytearray(bank4_size(cubin) or 8)
    for (name, _), at in address_words(cubin).items():
        bank[at : at + 8] = queues[name].to_bytes(8, "little")
    strings = [0, *(device.alloc(s.encode() + b"\0") for s in ("", "one", "%d", "long " * 40))]
    given: list[int] = []
    for _ in range(THREADS):
        words = [chance.choice(strings) if chance.random() < 0.9 else 0 for _ in range(80)]
        arguments = device.alloc(struct.pack("<80Q", *words), 8)
        form = device.alloc(_format(chance).encode() + b"\0")
        given += [form if chance.random() < 0.95 else 0, arguments if chance.random() < 0.9 else 0]
    table = device.alloc(struct.pack(f"<{len(given)}Q", *given), 16)
    called = [queues[chance.choice(("vprintf", "__assertfail"))] for _ in range(THREADS)]
    blocks = device.alloc(struct.pack(f"<{THREADS}Q", *called), 8)
    out = device.alloc(bytes(4 * THREADS))
    segment = done.launch.kernarg(
        struct.pack("<QQQi", table, blocks, out, 0), (THREADS, 1, 1), (1, 1, 1),
        {"bank4": device.alloc(bytes(bank))},
    )  # fmt: skip
    run_code_object(
        done.code_object, "lane_flags", 1, THREADS, segment, device, CompileOptions(strict=True)
    )
    whole: Counter[bytes] = Counter()
    lost = 0
    for name, queue in queues.items():
        image = device.read(rings[name], ring)
        left = np.frombuffer(device.read(queue, HEAD), np.uint64)
        lost += int(left[0] >> np.uint64(32))
        at, end = start, int(left[1])
        while at < end:
            place = at & (ring - 1)
            kind, packed, size = struct.unpack_from("<III", image, place)
            size = size if kind == FUNCTIONS["vprintf"].number else HEAD
            assert 0 < size <= end - at
            record = (image + image)[place : place + size]
            if kind == FUNCTIONS["vprintf"].number:  # what follows a text may be anything
                text = record[HEAD + packed :]
                record = record[: HEAD + packed] + text[: len(text.rstrip(b"\0")) + 1]
            whole[record] += 1
            at += size
    return device.read(out, 4 * THREADS), whole, lost


def _compared(cubin: Cubin, ring: int, seeds: range) -> list[tuple[bytes, Counter[bytes], int]]:
    rules = translate_kernel(cubin, "lane_flags", target=DEFAULT)
    made = by_tier(rules, DEFAULT)
    out: list[tuple[bytes, Counter[bytes], int]] = []
    for seed in seeds:
        wanted, got = (_ran(done, cubin, ring, seed) for done in (rules, made))
        assert got[0] == wanted[0]
        if ring >> 16:  # otherwise any of the calls may have been first
            assert got[1:] == wanted[1:]
        out.append(got)
    return out


def test_records_are_those_of_the_rules() -> None:
    for results, records, lost in _compared(_kernel(("vprintf",), "vprintf"), 1 << 16, range(1, 4)):
        assert len(np.unique(np.frombuffer(results, np.int32))) > 8
        assert sum(records.values()) > THREADS // 2
        assert not lost


def test_a_full_queue() -> None:
    ((_, _, lost),) = _compared(_kernel(("vprintf",), "vprintf"), 1 << 12, range(7, 8))
    assert lost


def test_the_block_says_which_function_is_called() -> None:
    cubin = _kernel(("vprintf", "__assertfail"), "")
    ((_, records, lost),) = _compared(cubin, 1 << 16, range(1, 2))
    kinds = Counter(record[0] for record in records.elements())
    assert min(kinds[1], kinds[2]) > THREADS // 5
    assert not lost


def test_of_other_processors() -> None:
    """Whose functions have loops that LLVM aligns."""
    cubin = _kernel(("vprintf",), "vprintf")
    for name in ("gfx1030", "gfx1201"):
        target = target_named(name)
        rules = translate_kernel(cubin, "lane_flags", target=target.of_rules)
        text = by_tier(rules, target).text.splitlines()
        assert sum("s_call_b64" in line for line in text) == 1
        assert not any("s_getpc_b64" in line or "s_swappc_b64" in line for line in text)
