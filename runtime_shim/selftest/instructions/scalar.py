"""Single scalar instructions on a device, against their semantics: results and SCC."""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass
from typing import Any, cast

from sassxlate.disasm.rdna3 import OPS, assemble, format_inst
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, S, V
from sassxlate.disasm.rdna3.semantics import Semantics, semantics_table
from sassxlate.domain.integers import Bits, Reference
from sassxlate.lowering.codeobject.code_object import KernelImage, write
from sassxlate.lowering.target import Target
from sassxlate.runtime_shim.selftest.instructions.hip import Hip, wait_for_all
from sassxlate.runtime_shim.selftest.instructions.inputs import WIDTH, value

GROUP = 40  # instructions per process
_TIMES = 6  # inputs per instruction
_RESULT = 10  # s10 and s11: destination, and its old value
_SCC = 12  # SCC after the instruction
_IMMEDIATE = ("imm", "immz")


@dataclass(frozen=True, slots=True)
class ScalarCase:
    """An instruction, its source values by the kinds of its row, and SCC before it."""

    row: Semantics
    inputs: tuple[int, ...]
    scc: int
    imm: int
    old: int


def rows() -> list[Semantics]:
    """Scalar instructions on registers; those of EXEC are left out."""
    return [
        row
        for op, row in sorted(semantics_table().items())
        if op in OPS and op.startswith("s_") and "exec" not in row.src
    ]


def groups() -> int:
    """The number of groups of instructions."""
    return -(-len(rows()) // GROUP)


def random_case(row: Semantics, seed: int) -> ScalarCase:
    """Seeded inputs of the kinds that the instruction takes."""
    rng = random.Random(zlib.crc32(f"{row.op} {seed}".encode()))
    imm = rng.choice([0, 1, -1, 0x7FFF, -0x8000, rng.randint(-0x8000, 0x7FFF)])
    scc, old = rng.getrandbits(1), value(rng, "b64")
    inputs: list[int] = []
    for kind in row.src:
        if kind.startswith("acc:"):
            inputs.append(old & ((1 << WIDTH[kind[4:]]) - 1))
        else:
            known = {"scc": scc, "imm": imm & 0xFFFFFFFF, "immz": imm & 0xFFFF}
            inputs.append(known[kind] if kind in known else value(rng, kind))
    return ScalarCase(row, tuple(inputs), scc, imm, old)


def _width(kind: str) -> int:
    if kind == "scc":
        return 1
    return WIDTH[kind[4:]] if kind.startswith("acc:") else WIDTH.get(kind, 32)


def expected(case: ScalarCase) -> dict[str, int]:
    """``result`` and ``scc``, as far as the instruction writes them."""
    arguments = [Bits(v, _width(k)) for v, k in zip(case.inputs, case.row.src, strict=True)]
    out = cast("Bits | tuple[Bits, ...]", case.row.fn(Reference(), *arguments))
    values = out if isinstance(out, tuple) else (out,)
    return {
        "scc" if kind == "scc" else "result": v.n
        for kind, v in zip(case.row.dst, values, strict=True)
    }


def _instruction(case: ScalarCase) -> Inst:
    printed = [
        (k, i)
        for i, k in enumerate(case.row.src)
        if k not in ("scc", *_IMMEDIATE) and not k.startswith("acc:")
    ]
    sources: list[Arg] = [S(20 + 2 * i, 2 if k == "b64" else 1) for k, i in printed]
    kind = case.row.dst[0]
    targets: list[Arg] = [] if kind == "scc" else [S(_RESULT, 2 if kind == "b64" else 1)]
    has_immediate = any(k in _IMMEDIATE for k in case.row.src)
    return Inst(case.row.op, (*targets, *sources), case.imm if has_immediate else 0)


def _program(case: ScalarCase, number: int) -> list[Item]:
    """Loads constants, runs the instruction, and stores three words: result, high word, SCC."""
    items: list[Item] = []
    for i, (kind, number_in) in enumerate(zip(case.row.src, case.inputs, strict=True)):
        if kind in ("b32", "b64"):
            for j in range(2):
                word = number_in >> 32 * j & 0xFFFFFFFF
                items.append(Inst("s_mov_b32", (S(20 + 2 * i + j), I(word))))
    for j in range(2):
        items.append(Inst("s_mov_b32", (S(_RESULT + j), I(case.old >> 32 * j & 0xFFFFFFFF))))
    items += [
        Inst("s_mov_b32", (S(_SCC), I(case.scc))),
        Inst("s_cmp_eq_u32", (S(_SCC), I(1))),
        _instruction(case),
        Inst("s_cselect_b32", (S(_SCC), I(1), I(0))),
        Inst("v_mov_b32", (V(2), I(12 * number))),
    ]
    for j in range(3):
        items.append(Inst("v_mov_b32", (V(3), S(_RESULT + j))))
        items.append(Inst("global_store_b32", (V(2), V(3), S(2, 2)), 4 * j))
    return [*items, *wait_for_all()]


def check(hip: Hip, group: int, target: Target) -> dict[str, Any]:
    """Checks one group of instructions: which differ, where, and the values."""
    chosen = rows()[group * GROUP : (group + 1) * GROUP]
    cases = [random_case(row, n) for row in chosen for n in range(_TIMES)]
    items: list[Item] = [Inst("s_load_b64", (S(2, 2), target.kernarg), 0), *wait_for_all()]
    for number, case in enumerate(cases):
        items += _program(case, number)
    items.append(Inst("s_endpgm"))
    image = KernelImage("scalars", assemble(items).data, 8, target.sgprs, 0, 0, 8, target.threads)
    results = hip.upload(bytes(12 * len(cases)))
    # One lane: the words of all would be the same.
    hip.launch(write([image], target), "scalars", 1, 1, struct.pack("<Q", results.value or 0))
    raw = hip.read(results, 12 * len(cases))
    hip.free(results)
    wrong: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        low, high, scc = struct.unpack_from("<3I", raw, 12 * number)
        want = expected(case)
        wide = case.row.dst[0] == "b64"
        got = {"result": low | high << 32 if wide else low, "scc": scc}
        if any(got[name] != want[name] for name in want):
            row = {
                "lane": 0,
                "inputs": [f"{v:#x}" for v in case.inputs],
                "actual": [f"{got[name]:#x}" for name in want],
                "expected": [f"{v:#x}" for v in want.values()],
            }
            text = format_inst(_instruction(case))
            wrong.append({"instruction": text, "lanes": 1, "first": [row]})
    return {"instructions": [row.op for row in chosen], "wrong": wrong}
