"""The ends of unrolled binary searches as sums, and their places shifted: the same values."""

from __future__ import annotations

import ctypes
import re

import llvmlite.binding as llvm
import pytest

from sassxlate.lowering.tier.compiler.searches import searched

INPUTS = range(-3, 260)


def _search(first: int = 64, turns: int = 6) -> list[str]:
    """Of one value in a table whose word at a place is twice the place: places, ends and values."""
    lines = ["%c0 = icmp sgt i32 %x, 126"]
    lines += ["%p0 = select i1 %c0, i32 95, i32 31", "%u0 = select i1 %c0, i32 127, i32 63"]
    lines += ["%l0 = select i1 %c0, i32 63, i32 0"]
    step = first // 4
    for at in range(1, turns):
        b = at - 1
        lines += [
            f"%a{at} = shl nuw nsw i32 %p{b}, 2",
            f"%w{at} = lshr i32 %a{at}, 1",
            f"%c{at} = icmp sgt i32 %x, %w{at}",
            # Both ends before the place is there.
            f"%u{at} = select i1 %c{at}, i32 %u{b}, i32 %p{b}",
            f"%l{at} = select i1 %c{at}, i32 %p{b}, i32 %l{b}",
            f"%s{at} = select i1 %c{at}, i32 {step}, i32 -{step}",
            f"%p{at} = add nsw i32 %p{b}, %s{at}",
        ]
        step //= 2
    last = turns - 1
    return [
        *lines, f"%a = shl i32 %p{last}, 2",
        f"%m = mul i32 %u{last}, 1000", f"%n = mul i32 %l{last}, 1000000",
        "%o = add i32 %m, %n", "%r = xor i32 %o, %a",
    ]  # fmt: skip


def _module(lines: list[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return str(
        llvm.parse_assembly(
            "define i32 @made(i32 %x, i32 %y) {\nentry:\n" + body + "\n  ret i32 %r\n}\n"
        )
    )


def _results(text: str) -> list[int]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine()
    module = llvm.parse_assembly(text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_int32, ctypes.c_int32)
    function = kind(engine.get_function_address("made"))
    return [function(x, 40 - x) for x in INPUTS]


def _choices(text: str) -> int:
    return text.count(" = select i1 ")


def test_a_search() -> None:
    text = _module(_search())
    out = searched(text)
    assert _choices(out) == 6  # one a turn
    assert out.count(" = shl ") == 0
    assert "call i32 @llvm.smax.i32(i32 %end." in out  # the lower end, which began at an end
    assert _results(out) == _results(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # An end that is no place and a number, at last or at first.
        ("%u5 = select i1 %c5, i32 %u4, i32 %p4", "%u5 = select i1 %c5, i32 %p4, i32 %u4"),
        ("%u2 = select i1 %c2, i32 %u1, i32 %p1", "%u2 = select i1 %c2, i32 %u1, i32 %y"),
        ("%u0 = select i1 %c0, i32 127, i32 63", "%u0 = select i1 %c0, i32 127, i32 62"),
        ("%u0 = select i1 %c0, i32 127, i32 63", "%u0 = select i1 %c0, i32 120, i32 63"),
        ("%l0 = select i1 %c0, i32 63, i32 0", "%l0 = select i1 %c0, i32 63, i32 -9"),
        ("%l0 = select i1 %c0, i32 63, i32 0", "%l0 = select i1 %c0, i32 60, i32 0"),
        ("%l0 = select i1 %c0, i32 63, i32 0", "%l0 = select i1 %c0, i32 63, i32 70"),
        # A floor over places that the search comes to.
        ("%l0 = select i1 %c0, i32 63, i32 0", "%l0 = select i1 %c0, i32 63, i32 40"),
        # Other steps, another condition, and places of which nothing is known.
        ("%s3 = select i1 %c3, i32 4, i32 -4", "%s3 = select i1 %c3, i32 5, i32 -4"),
        ("%s3 = select i1 %c3, i32 4, i32 -4", "%s3 = select i1 %c2, i32 4, i32 -4"),
        ("%s3 = select i1 %c3, i32 4, i32 -4", "%s3 = select i1 %c3, i32 -70, i32 -90"),
        ("%p0 = select i1 %c0, i32 95, i32 31", "%p0 = select i1 %c0, i32 %y, i32 31"),
        ("%p0 = select i1 %c0, i32 95, i32 31", "%p0 = select i1 %c0, i32 95, i32 2000000000"),
        # An end is wanted before the place is there, or between.
        ("%s4 = select i1 %c4, i32 2, i32 -2",
         "%s4 = select i1 %c4, i32 2, i32 -2\n  %z = sub i32 %u4, 9"),
        ("%o = add i32 %m, %n", "%o.1 = add i32 %m, %n\n  %o = add i32 %o.1, %u3"),
        ("%o = add i32 %m, %n", "%o.1 = add i32 %m, %n\n  %o = add i32 %o.1, %l4"),
        # Places that are used as they are.
        ("%o = add i32 %m, %n", "%o.1 = add i32 %p2, %n\n  %o.2 = add i32 %o.1, %p3\n"
         "  %o.3 = add i32 %o.2, %p4\n  %o.4 = add i32 %o.3, %p5\n  %o = add i32 %o.4, %p0"),
        ("%a = shl i32 %p5, 2", "%a = shl i32 %p5, 9"),
    ],
)  # fmt: skip
def test_what_is_nearly_one(old: str, new: str) -> None:
    before = "\n  ".join(_search())
    assert before.count(old) == 1
    text = _module(before.replace(old, new).split("\n"))
    assert _results(searched(text)) == _results(text)


def test_short_ones_stay() -> None:
    lines = _search(turns=2)
    text = _module(lines)
    assert searched(text).strip() == re.sub(r"\n+$", "", text).strip()
