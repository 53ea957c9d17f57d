"""Single RDNA3 instructions on a device, against their meanings; how exact the approximate are.

Run by ``sassxlate run`` in a separate process, directly on HIP: no SASS, no translation.  A vector
instruction gets 32 lanes of edge-biased inputs, loaded, and stored after waits for all counters;
the result must be that of the integer evaluation of its semantics.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sassxlate.disasm.rdna3 import OPS, assemble, format_inst
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, S, V
from sassxlate.disasm.rdna3.semantics import Mode, Semantics, semantics_table
from sassxlate.domain.integers import Bits, Reference
from sassxlate.domain.interface import Fp, Round, exponent_bits, mantissa_bits
from sassxlate.files import replace_file
from sassxlate.lowering.codeobject.code_object import KernelImage, write
from sassxlate.lowering.target import LANES, Target, target_named
from sassxlate.runtime_shim.selftest.instructions import scalar
from sassxlate.runtime_shim.selftest.instructions.hip import Hip, HipError, wait_for_all
from sassxlate.runtime_shim.selftest.instructions.inputs import WIDTH, value

GROUP = 40  # instructions per process
_OLD = 0x5A5A5A5A5A5A5A5A  # old contents of destinations
_SHOWN = 4  # differing lanes listed per instruction
PACKED = ("p16", "pf16")
_IMPLICIT = frozenset({"lane", "neg"})
# The MODE register's rounding (bits 3:0) and denormals (bits 7:4), and the same for the semantics.
MODES: dict[str, tuple[int, Mode]] = {
    "ieee": (0xF0, Mode()),
    "flush": (0x00, Mode(Fp(Round.NEAREST, True, True), Fp(Round.NEAREST, True, True))),
    "up": (0xF5, Mode(Fp(Round.UP), Fp(Round.UP))),
    "zero": (0xFF, Mode(Fp(Round.ZERO), Fp(Round.ZERO))),
}
# AMD's error bounds in units of the last place: the RDNA3 ISA
# document, the descriptions of V_RCP_* to V_LOG_*.  The error of sines is absolute: not judged.
_ULPS = {16: 1, 32: 1, 64: 1 << 29}
_REPORTED_ONLY = ("v_sin_", "v_cos_")
_SAMPLES = 1024


@dataclass(frozen=True, slots=True)
class VectorCase:
    """An instruction and a row of inputs for each lane."""

    row: Semantics
    sources: tuple[str, ...]  # kinds of the printed sources
    inputs: tuple[tuple[int, ...], ...]  # [lane][source]


def vector_rows() -> list[Semantics]:
    """Instructions whose operands are all printed, and whose result is a register or lane mask."""
    literal = ("v_fmaak_", "v_fmamk_")  # one of their operands is a constant
    return [
        row
        for op, row in sorted(semantics_table().items())
        if op in OPS
        and op.startswith("v_")
        and not op.startswith(literal)
        and row.dst[0] != "execm"
        and not {"vcc", "mix", "pair", "exec", "scc"} & set(row.src)
    ]


def _printed(row: Semantics) -> tuple[str, ...]:
    return tuple(k for k in row.src if not k.startswith("acc:") and k not in _IMPLICIT)


def random_case(row: Semantics, seed: str) -> VectorCase:
    """Seeded inputs of the kinds that the instruction takes."""
    rng = random.Random(zlib.crc32(f"{row.op} {seed}".encode()))
    kinds = _printed(row)
    return VectorCase(row, kinds, tuple(tuple(value(rng, k) for k in kinds) for _ in range(LANES)))


def expected(case: VectorCase, mode: Mode, lane: int) -> tuple[int, ...]:
    """The values of a lane's destinations by the semantics."""
    if case.row.dst[0] not in PACKED:
        return _computed(case, mode, lane, case.inputs[lane])
    # The semantics are of one half.
    halves = [
        _computed(case, mode, lane, tuple(v >> at & 0xFFFF for v in case.inputs[lane]))[0] & 0xFFFF
        for at in (0, 16)
    ]
    return (halves[1] << 16 | halves[0],)


def _computed(case: VectorCase, mode: Mode, lane: int, inputs: tuple[int, ...]) -> tuple[int, ...]:
    values = iter(inputs)
    widths = {**WIDTH, "p16": 16, "pf16": 16}
    arguments: list[Bits] = []
    for kind in case.row.src:
        if kind.startswith("acc:"):
            width = widths[kind[4:]]
            arguments.append(Bits(_OLD & ((1 << width) - 1), width))
        elif kind == "lane":
            arguments.append(Bits(lane, 32))
        elif kind == "neg":
            arguments.append(Bits(0, 8))
        else:
            arguments.append(Bits(next(values) & ((1 << widths[kind]) - 1), widths[kind]))
    reader = Reference()
    first = (reader, mode) if case.row.mode else (reader,)
    out = cast("Bits | tuple[Bits, ...]", case.row.fn(*first, *arguments))
    return tuple(v.n for v in (out if isinstance(out, tuple) else (out,)))


# --- Programs --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InstructionProgram:
    """A code object over many cases: their inputs, and the place of each one's results."""

    code: bytes
    data: bytes
    results: tuple[tuple[int, ...], ...]  # [case][destination]: byte offset
    result_bytes: int
    texts: tuple[str, ...]  # texts of the instructions


def _words(kind: str) -> int:
    return 2 if WIDTH[kind] == 64 else 1


def _pack(kind: str, column: Sequence[int]) -> bytes:
    if kind == "m":
        return struct.pack("<I", sum((v & 1) << i for i, v in enumerate(column))) + bytes(124)
    low = struct.pack("<32I", *(v & 0xFFFFFFFF for v in column))
    return low if _words(kind) == 1 else low + struct.pack("<32I", *(v >> 32 for v in column))


def build(cases: Sequence[VectorCase], mode_bits: int, target: Target) -> InstructionProgram:
    """s[2:3]: results, s[4:5]: inputs; v1: the lane's byte offset; v2: an address's offset."""
    items: list[Item] = [
        Inst("s_load_b64", (S(4, 2), target.kernarg), 0),
        Inst("s_load_b64", (S(2, 2), target.kernarg), 8),
        Inst("v_and_b32", (V(1), I(0x3FF), V(0))),
        Inst("v_lshlrev_b32", (V(1), I(2), V(1))),
        Inst("s_round_mode", (), mode_bits & 15),
        Inst("s_denorm_mode", (), mode_bits >> 4),
        *wait_for_all(),
    ]
    data, at_result = bytearray(), 0
    results: list[tuple[int, ...]] = []
    texts: list[str] = []
    for case in cases:
        sources: list[Arg] = []
        for i, kind in enumerate(case.sources):
            register = 20 + 2 * i
            if kind == "m":
                items.append(Inst("s_load_b32", (S(register), S(4, 2)), len(data)))
                sources.append(S(register))
            for j in range(_words(kind) if kind != "m" else 0):
                items.append(Inst("v_add_nc_u32", (V(2), I(len(data) + 128 * j), V(1))))
                items.append(Inst("global_load_b32", (V(register + j), V(2), S(4, 2)), 0))
            if kind != "m":
                sources.append(V(register, _words(kind)))
            data += _pack(kind, [lane[i] for lane in case.inputs])
        targets: list[Arg] = []
        for i, kind in enumerate(case.row.dst):
            register = 60 + 2 * i
            for j in range(_words(kind)):
                items.append(Inst("v_mov_b32", (V(register + j), I(_OLD & 0xFFFFFFFF))))
            targets.append(S(register) if kind == "m" else V(register, _words(kind)))
        instruction = Inst(case.row.op, (*targets, *sources))
        items += [*wait_for_all(), instruction, *wait_for_all()]
        texts.append(format_inst(instruction))
        places: list[int] = []
        for i, kind in enumerate(case.row.dst):
            register = 60 + 2 * i
            places.append(at_result)
            if kind == "m":
                items.append(Inst("v_mov_b32", (V(register), S(register))))
            for j in range(_words(kind)):
                items.append(Inst("v_add_nc_u32", (V(2), I(at_result), V(1))))
                items.append(Inst("global_store_b32", (V(2), V(register + j), S(2, 2)), 0))
                at_result += 128
        items += wait_for_all()
        results.append(tuple(places))
    items.append(Inst("s_endpgm"))
    image = KernelImage(
        "instructions", assemble(items).data, 72, target.sgprs, 0, 0, 16, target.threads
    )
    return InstructionProgram(
        write([image], target), bytes(data), tuple(results), at_result, tuple(texts)
    )


def _run(hip: Hip, program: InstructionProgram) -> bytes:
    source, target = hip.upload(program.data), hip.upload(bytes(program.result_bytes))
    segment = struct.pack("<QQ", source.value or 0, target.value or 0)
    hip.launch(program.code, "instructions", 1, LANES, segment)
    raw = hip.read(target, program.result_bytes)
    for pointer in (source, target):
        hip.free(pointer)
    return raw


def _result(raw: bytes, at: int, kind: str, lane: int) -> int:
    def word(at: int) -> int:
        return int.from_bytes(raw[at : at + 4], "little")

    low, width = word(at + 4 * lane), WIDTH[kind]
    if width == 1:
        return low >> lane & 1
    if width == 64:
        return low | word(at + 128 + 4 * lane) << 32
    return low >> 16 if kind == "f16hi" else low & ((1 << width) - 1)


# --- Comparing -------------------------------------------------------------------------------


def _is_nan(n: int, width: int) -> bool:
    m = mantissa_bits(width)
    return n & ((1 << (width - 1)) - 1) > ((1 << exponent_bits(width)) - 1) << m


def distance(kind: str, got: int, want: int) -> int | None:
    """0 if equal (all NaNs are); units in the last place between floats; otherwise None."""
    width = WIDTH[kind]
    if got == want:
        return 0
    if kind[0] != "f" or width == 1:
        return None
    if _is_nan(got, width) or _is_nan(want, width):
        return 0 if _is_nan(got, width) and _is_nan(want, width) else None
    top = 1 << (width - 1)
    got, want = (-(v & ~top) if v & top else v for v in (got, want))  # both zeros are equal
    return abs(got - want)


def _same(kind: str, got: int, want: int) -> bool:
    if kind == "pf16":
        return all(_same("f16", got >> at & 0xFFFF, want >> at & 0xFFFF) for at in (0, 16))
    # Zeros of different signs differ here.
    apart = distance(kind, got, want)
    return apart == 0 and (got == want or _is_nan(want, WIDTH[kind]))


def exact_rows(name: str) -> list[Semantics]:
    """The instructions to try in one mode: all in the first, in others those that depend on it."""
    return [row for row in vector_rows() if not row.approximate and (row.mode or name == "ieee")]


def check_mode(hip: Hip, name: str, rows: Sequence[Semantics], target: Target) -> dict[str, Any]:
    """Checks instructions in one mode: which differ, where, and the values."""
    bits, mode = MODES[name]
    wrong: list[dict[str, Any]] = []
    cases = [random_case(row, name) for row in rows]
    program = build(cases, bits, target)
    raw = _run(hip, program)
    for case, places, text in zip(cases, program.results, program.texts, strict=True):
        lanes: list[dict[str, Any]] = []
        for lane in range(LANES):
            want = expected(case, mode, lane)
            got = [_result(raw, at, k, lane) for at, k in zip(places, case.row.dst, strict=True)]
            if not all(map(_same, case.row.dst, got, want)):
                lanes.append(
                    {
                        "lane": lane,
                        "inputs": [f"{v:#x}" for v in case.inputs[lane]],
                        "actual": [f"{v:#x}" for v in got],
                        "expected": [f"{v:#x}" for v in want],
                    }
                )
        if lanes:
            wrong.append({"instruction": text, "lanes": len(lanes), "first": lanes[:_SHOWN]})
    return {"instructions": program.texts, "wrong": wrong}


def check_approximations(hip: Hip, rows: Iterable[Semantics], target: Target) -> dict[str, Any]:
    """The errors of approximate instructions in units of the last place, and their frequencies."""
    table: list[dict[str, Any]] = []
    wrong: list[str] = []
    mode = MODES["ieee"][1]
    for row in (row for row in rows if row.approximate):
        width = WIDTH[row.dst[0]]
        cases = [random_case(row, f"approximate {n}") for n in range(_SAMPLES // LANES)]
        program = build(cases, MODES["ieee"][0], target)
        raw = _run(hip, program)
        errors: Counter[int] = Counter()
        worst: dict[str, Any] = {}
        special: list[dict[str, str]] = []
        for case, places in zip(cases, program.results, strict=True):
            for lane in range(LANES):
                got = _result(raw, places[0], row.dst[0], lane)
                (want,) = expected(case, mode, lane)
                apart = distance(row.dst[0], got, want)
                shown = {
                    "input": f"{case.inputs[lane][0]:#x}",
                    "actual": f"{got:#x}",
                    "nearest": f"{want:#x}",
                }
                if apart is None:
                    special.append(shown)
                    continue
                errors[apart] += 1
                if apart > worst.get("ulps", 0):
                    worst = {"ulps": apart, **shown}
        judged = not row.op.startswith(_REPORTED_ONLY)
        if special or (judged and worst.get("ulps", 0) > _ULPS[width]):
            wrong.append(row.op)
        near = {str(n): count for n, count in sorted(errors.items()) if n < 8}
        table.append(
            {
                "instruction": row.op,
                "samples": sum(errors.values()) + len(special),
                "ulps": near,  # number of samples by error in units; larger errors are left out
                "worst": worst,
                "special": special[:_SHOWN],
                "bound": _ULPS[width] if judged else None,
            }
        )
    return {"instructions": len(table), "wrong": wrong, "table": table}


def groups() -> list[str]:
    """Names of groups of instructions: a mode and a number, or ``approximate``."""
    found = [
        f"{name}/{number}" for name in MODES for number in range(-(-len(exact_rows(name)) // GROUP))
    ]
    found += [f"scalar/{number}" for number in range(scalar.groups())]
    return [*found, "approximate"]


def check_group(hip: Hip, group: str, target: Target) -> dict[str, Any]:
    """Checks one group with code for a target."""
    if group == "approximate":
        return check_approximations(hip, vector_rows(), target)
    name, _, number = group.partition("/")
    if name == "scalar":
        return scalar.check(hip, int(number), target)
    start = int(number) * GROUP
    return check_mode(hip, name, exact_rows(name)[start : start + GROUP], target)


def main(arguments: list[str]) -> int:
    """GROUP RESULT TARGET: writes the results as JSON.  `sassxlate run` selects the HIP library."""
    group, result, target = arguments
    answer: dict[str, Any]
    try:
        hip = Hip(os.environ["SASSXLATE_HIP"])
        answer = hip.facts() if group == "facts" else check_group(hip, group, target_named(target))
    except HipError as error:
        answer = {"error": {"call": error.call, "code": error.code}}
    except (OSError, AttributeError, ctypes.ArgumentError) as error:
        answer = {"error": {"call": str(error), "code": -1}}
    answer["complete"] = True
    replace_file(Path(result), json.dumps(answer).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
