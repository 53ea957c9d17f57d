"""The two shifts of a pair of words become one of 64 bits, with the same values."""

from __future__ import annotations

import ctypes
import random

import llvmlite.binding as llvm
import pytest

from sassxlate.lowering.llvm.ir_text import Function, Module, const
from sassxlate.lowering.tier.compiler import passes
from sassxlate.lowering.tier.compiler.shifted_pairs import joined
from sassxlate.lowering.tier.numbers.domain import LaneDomain

_WORDS = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def _module(*lines: str) -> str:
    """A function of two words that returns %a and %b as one number."""
    text = "\n".join(f"  {line}" for line in lines)
    return str(
        llvm.parse_assembly(
            f"""declare i32 @llvm.fshl.i32(i32, i32, i32)
define i64 @made(i32 %high, i32 %low) {{
entry:
{text}
  %wide = zext i32 %b to i64
  %top = shl i64 %wide, 32
  %other = zext i32 %a to i64
  %out = or i64 %top, %other
  ret i64 %out
}}
"""
        )
    )


def _results(text: str) -> list[int]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine()
    chance = random.Random(5)
    words = [(h, low) for h in _WORDS for low in _WORDS]
    words += [(chance.getrandbits(32), chance.getrandbits(32)) for _ in range(50)]
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32)
    function = kind(engine.get_function_address("made"))
    return [function(*pair) for pair in words]


_FUNNEL = "call i32 @llvm.fshl.i32(i32 {}, i32 {}, i32 {})"
_LEFT = _FUNNEL.format("%high", "%low", 13)
_RIGHT = _FUNNEL.format("%high", "%low", 32 - 7)


@pytest.mark.parametrize(
    "lines",
    [
        ("%a = shl i32 %low, 13", f"%b = {_LEFT}"),
        (f"%b = {_LEFT}", "%a = shl i32 %low, 13"),
        ("%b = lshr i32 %high, 7", f"%a = {_RIGHT}"),
        ("%b = ashr i32 %high, 7", f"%a = {_RIGHT}"),
        # The other word is made after the first shift, whose result is not wanted before the last.
        ("%a = shl i32 %low, 13", "%x = xor i32 %high, 5",
         f"%b = {_FUNNEL.format('%x', '%low', 13)}"),
        # A name that begins like another.
        ("%a = shl i32 %low, 13", "%a.1 = xor i32 %high, 5", "%x = add i32 %a.1, 1",
         f"%b = {_FUNNEL.format('%x', '%low', 13)}"),
    ],
)  # fmt: skip
def test_pairs(lines: tuple[str, ...]) -> None:
    text = _module(*lines)
    made = joined(text)
    assert " i64 %pair.0.i, " in made
    assert "fshl.i32(i32 %" not in made
    assert _results(made) == _results(text)


@pytest.mark.parametrize(
    "lines",
    [
        ("%a = shl i32 %low, 12", f"%b = {_LEFT}"),  # another count
        ("%a = shl i32 %high, 13", f"%b = {_LEFT}"),  # another word
        ("%a = lshr i32 %low, 19", f"%b = {_LEFT}"),
        ("%a = lshr i32 %high, 13", f"%b = {_LEFT}"),
        # Rotations are one operation.
        ("%a = shl i32 %low, 13", f"%b = {_FUNNEL.format('%low', '%low', 13)}"),
        # The first shift's result makes the other word.
        ("%a = shl i32 %low, 13", f"%b = {_FUNNEL.format('%a', '%low', 13)}"),
        ("%a = shl i32 %low, 13", "%x = xor i32 %a, 5",
         f"%b = {_FUNNEL.format('%x', '%low', 13)}"),
    ],
)  # fmt: skip
def test_what_is_no_pair(lines: tuple[str, ...]) -> None:
    text = _module(*lines)
    assert joined(text) == text


def test_blocks_are_looked_at_alone() -> None:
    text = _module("%a = shl i32 %low, 13", "br label %next", "next:", f"%b = {_LEFT}")
    assert joined(text) == text


def test_two_pairs_of_one_block() -> None:
    text = _module(
        "%c = shl i32 %low, 13", f"%d = {_LEFT}",
        f"%a = {_FUNNEL.format('%d', '%c', 32 - 7)}", "%b = lshr i32 %d, 7",
    )  # fmt: skip
    made = joined(text)
    assert made.count("bitcast <2 x i32>") == 2
    assert _results(made) == _results(text)


def test_values_without_names() -> None:
    """LLVM numbers these by their lines, of which the one operation changes the order."""
    text = _module(
        "%0 = lshr i32 %high, 5", f"%1 = {_FUNNEL.format('%high', '%low', 32 - 5)}",
        "br label %2", "2:", "%3 = xor i32 %1, 9", "%a = xor i32 %3, %1", "%b = xor i32 %0, %3",
    )  # fmt: skip
    made = joined(text)
    assert "bitcast <2 x i32>" in made
    assert _results(made) == _results(text)


_MOVED = (
    "%c = shl i32 %low, 3", "%y = shl i32 %low, 5", "%h = xor i32 %high, 9",
    f"%d = {_FUNNEL.format('%h', '%low', 3)}",
)  # fmt: skip


@pytest.mark.parametrize(
    "lines",
    [
        # The first pair goes to its last line, so its words are not there before the second one.
        (*_MOVED, f"%e = {_FUNNEL.format('%c', '%low', 5)}", "%a = xor i32 %d, %e",
         "%b = xor i32 %y, %c"),
        # The first pair goes to its first line, before the second one.
        ("%c = shl i32 %low, 3", "%y = shl i32 %high, 5",
         f"%d = {_FUNNEL.format('%high', '%low', 3)}",
         f"%e = {_FUNNEL.format('%d', '%high', 5)}", "%a = xor i32 %d, %e", "%b = xor i32 %y, %c"),
        # A third pair has the second one's words.
        (*_MOVED, f"%e = {_FUNNEL.format('%c', '%low', 5)}", "%f = shl i32 %y, 7",
         f"%g = {_FUNNEL.format('%e', '%y', 7)}", "%a = xor i32 %d, %g", "%b = xor i32 %f, %c"),
    ],
)  # fmt: skip
def test_pairs_with_words_of_other_pairs(lines: tuple[str, ...]) -> None:
    text = _module(*lines)
    made = joined(text)
    llvm.parse_assembly(made).verify()
    assert "fshl.i32(i32 %" not in made
    assert _results(made) == _results(text)


def test_what_is_not_right_never_gets_to_code_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code generation would end the process."""

    def wrong(text: str) -> str:
        return text.replace("%a = shl i32 %low, 13", "%a = shl i32 %out, 13")

    monkeypatch.setattr(passes, "joined", wrong)
    text = """define amdgpu_kernel void @made(ptr addrspace(1) %to, i32 %low) {
  %a = shl i32 %low, 13
  %out = xor i32 %a, 5
  store i32 %out, ptr addrspace(1) %to
  ret void
}
"""
    for listed in (False, True):
        with pytest.raises(RuntimeError, match="does not dominate all uses"):
            passes.object_of(text, "amdgcn-amd-amdhsa", "gfx1100", "", listed)


def test_counts_are_known() -> None:
    """SASS says of a count that it is at most 64."""
    fn = Function(Module(), "void @f()", "")
    d = LaneDomain(fn)
    for a, b in ((13, 64), (64, 64), (65, 64)):
        assert d.ult(const(a, 32), const(b, 32)) == const(int(a < b), 1)
    assert fn.lines == []
