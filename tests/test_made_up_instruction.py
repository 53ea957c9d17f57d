"""An instruction that no GPU has: one row, one meaning, and a rule if one wants it translated.

Nothing else in the packages knows its name, and it is read, printed, assembled, understood by the
analyses, interpreted, translated and proved.  The page in docs/how-to goes the same way.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from sassxlate.cfg.uniformity import result_uniform
from sassxlate.disasm.rdna3.instruction import I
from sassxlate.disasm.sass import decode, decode_section
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.semantics.arithmetic import integer
from sassxlate.disasm.sass.semantics.rows import Results, View, row
from sassxlate.disasm.sass.tables import ROWS
from sassxlate.disasm.sass.tables.arithmetic.forms import Src, alu
from sassxlate.disasm.sass.tables.spec import flag
from sassxlate.disasm.sass.traits import Traits, traits, traits_of
from sassxlate.domain.interface import Domain
from sassxlate.errors import DecodeError, LoweringError
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.rules import TABLE
from sassxlate.lowering.rules.rule import Rule, knowing
from tests.disasm.sass.interpreter.launches import Prepared, assembled, with_code

T = TypeVar("T")
ARCH = 90

# --- the instruction ---------------------------------------------------------------------------

# IAVG Rd, Ra, Rb, as the page has it.
FORMS = [
    *alu("IAVG", 0x041, "Rd, Ra, Rb", {"Ra": Src(), "Rb": Src()}, forms=(1, 4, 5),
         mods=(flag("RU", 80),)),
]  # fmt: skip


def iavg(d: Domain[T], x: View[T]) -> Results:
    """The average of two unsigned numbers; .RU rounds up."""
    total = d.add(d.zext(x.bits("Ra"), 33), d.zext(x.bits("Rb"), 33))
    if x.has("RU"):
        total = d.add(total, d.const(1, 33))
    return {"Rd": d.extract(total, 1, 32)}


def emit_iavg(c: RuleEmitter) -> None:
    """(a & b) + ((a ^ b) >> 1): no carry is lost.  Rounded up: (a | b) - ((a ^ b) >> 1)."""
    up = c.ins.has("RU")
    half, both = c.vtemp(), c.vtemp()
    a, b = c.to_v(c.src("Ra")), c.src("Rb")
    c.emit("v_xor_b32", half, b, a)
    c.emit("v_lshrrev_b32", half, I(1), half)
    c.emit("v_or_b32" if up else "v_and_b32", both, b, a)
    c.emit("v_sub_nc_u32" if up else "v_add_nc_u32", c.dst_last(), both, half)


def expected(a: np.ndarray, b: np.ndarray, up: int) -> list[int]:  # type: ignore[type-arg]
    return ((a.astype(np.uint64) + b.astype(np.uint64) + np.uint64(up)) >> np.uint64(1)).tolist()


# --- where it is added -------------------------------------------------------------------------


def forget() -> None:
    """Clears the caches of values computed from the tables."""
    for name, module in list(sys.modules.items()):
        if name.startswith("sassxlate."):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if clear is not None and not isinstance(value, type):
                    clear()


@pytest.fixture(scope="module")
def described() -> Iterator[pytest.MonkeyPatch]:
    """The instruction has a row in the tables, and semantics."""
    before = integer.rows()
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("sassxlate.") and getattr(module, "ROWS", None) is ROWS:
                patch.setattr(module, "ROWS", (*ROWS, *FORMS))
        patch.setattr(integer, "rows", lambda: [*before, row("IAVG", iavg, "RU")])
        forget()
        yield patch
    forget()


@pytest.fixture
def ruled(described: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch) -> None:
    """It also has a lowering rule."""
    del described
    rules = knowing({"IAVG": "RU"}, Rule("iavg", "IAVG", emit_iavg))
    forget()
    monkeypatch.setitem(TABLE, "IAVG", rules)  # type: ignore[arg-type]


def instruction(text: str) -> Instruction:
    return decode(assemble(f"{text} ;", ARCH), 0, ARCH)


def kernel(*lines: str) -> Prepared:
    """out[i] = what the lines leave in R10 of a[i] in R8 and b[i] in R9."""
    text = [
        "S2R R0, SR_TID.X ;", "ULDC.64 UR6, c[0x0][0x208] ;",
        *(f"LDC.64 R{14 + 2 * n}, c[0x0][{0x210 + 8 * n:#x}] ;" for n in range(3)),
        *(f"IMAD.WIDE R{r}, R0, 0x4, R{r} ;" for r in (14, 16, 18)),
        "LDG.E R8, desc[UR6][R14.64] ;", "LDG.E R9, desc[UR6][R16.64] ;",
        *(f"{line} ;" for line in lines),
        "STG.E desc[UR6][R18.64], R10 ;", "EXIT ;",
    ]  # fmt: skip
    cubin = with_code(assembled("\n".join(text), ARCH), ARCH)
    words = [np.random.default_rng(n).integers(0, 1 << 32, 32, np.uint32) for n in (1, 2)]
    words[0][:4], words[1][:4] = [0, 1, 0xFFFFFFFF, 0xFFFFFFFF], [0, 0, 0xFFFFFFFF, 0]
    inputs = (words[0], words[1], np.zeros(32, np.uint32))
    return Prepared(cubin, cubin.kernels[0].name, (1, 1, 1), (32, 1, 1), inputs, 32)


# --- the result -------------------------------------------------------------------------------


def test_the_page_has_the_same_code() -> None:
    here = Path(__file__)
    page = (here.parents[1] / "docs" / "how-to" / "add-an-instruction.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    lines = [n for block in blocks for n in block.splitlines() if n.startswith("    ")]
    mine = {line.strip() for line in here.read_text("utf-8").splitlines()}
    # The entries of lists there are arguments of a call here.
    told = {'row("IAVG", iavg, "RU"),', '"IAVG": "RU",', 'Rule("iavg", "IAVG", iavg),'}
    assert len(lines) > 15
    assert {line.strip() for line in lines} - mine == told


def test_nothing_knows_it_without() -> None:
    assert not {r.opcode for r in ROWS} & {r.opcode for r in FORMS}
    with pytest.raises(DecodeError, match="SX0206"):
        assemble("IAVG R0, R1, R2 ;", ARCH)
    assert traits_of("IAVG") == Traits("IAVG", base="IAVG")


@pytest.mark.usefixtures("described")
@pytest.mark.parametrize(
    "text", ["IAVG R0, R1, R2", "IAVG.RU R0, R1, 0x7", "@!P3 IAVG R0, R1, c[0x0][0x210]"]
)
def test_it_is_assembled_and_printed(text: str) -> None:
    ins = instruction(text)
    assert ins.text == text
    assert {r.index for r in ins.writes} == {0}
    assert 1 in {r.index for r in ins.reads if r.file == "R"}
    assert decode_section(ins.word.to_bytes(16, "little"), ARCH).texts(0, 1) == [text]


@pytest.mark.usefixtures("described")
def test_it_has_traits() -> None:
    ins = instruction("IAVG R0, R1, R2")
    assert traits(ins) == Traits("IAVG", pure=True, base="IAVG")
    assert result_uniform(ins, ins.reads)
    assert not result_uniform(ins, frozenset())


@pytest.mark.usefixtures("described")
def test_it_is_interpreted_and_refused_by_name() -> None:
    for text, up in (("IAVG R10, R8, R9", 0), ("IAVG.RU R10, R8, R9", 1)):
        launch = kernel(text)
        want = expected(*launch.inputs[:2], up)
        assert launch.interpreted().tolist() == want
        with pytest.raises(LoweringError, match=r"SX0403.*IAVG"):
            translate_kernel(launch.cubin, launch.name)


@pytest.mark.usefixtures("ruled")
def test_it_is_translated() -> None:
    for text, up in (("IAVG R10, R8, R9", 0), ("IAVG.RU R10, R8, R9", 1)):
        launch = kernel(text)
        want = expected(*launch.inputs[:2], up)
        assert launch.translated(strict=True).tolist() == want
        assert dict(translate_kernel(launch.cubin, launch.name).report.rules)["iavg"] == 1
    unread = kernel("MOV R10, R8", "IAVG R11, R8, R9")
    assert "iavg" not in dict(translate_kernel(unread.cubin, unread.name).report.rules)


@pytest.mark.usefixtures("ruled")
def test_its_rule_is_proved_and_a_wrong_one_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("z3", reason="z3-solver is not installed")
    from sassxlate.lowering.verify.rules.verify import (
        RuleCheckSettings,
        chosen,
        shares,
        verify_share,
    )

    forget()
    settings = RuleCheckSettings(combinations=2, vectors=1 << 10)

    def statuses() -> set[str]:
        every = (s for r in chosen(["iavg"], settings) for s in shares(r, settings))
        return {f.status for share in every for f in verify_share(share, settings)}

    found = statuses()
    assert "proved" in found
    assert found <= {"proved", "refused"}  # constants whose bank is in a register
    (rule,) = TABLE["IAVG"]

    def down(c: RuleEmitter) -> None:
        emit_iavg(RuleEmitter(c.k, replace(c.ins, modifiers=()), c.converged))

    monkeypatch.setitem(TABLE, "IAVG", (replace(rule, emit=down),))  # type: ignore[arg-type]
    forget()
    assert "refuted" in statuses()
