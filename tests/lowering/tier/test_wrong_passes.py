"""Wrong passes: each changes the tier's LLVM IR as a mistake in it would, and must be found by the
launches that the tier's code is compared in."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable

import pytest

from sassxlate.errors import SassxlateError
from sassxlate.lowering.target import Target
from sassxlate.lowering.tier import translate
from sassxlate.lowering.tier.backend import MachineCode, compiled
from sassxlate.lowering.tier.refusal import Refused
from tests.lowering.emulated import check, load

_SELECT = r"select i1 ([^\s,]+), i32 ([^\s,]+), i32 ([^\s,]+)"
# What it does: the kernel that shows it, and what it replaces by what, everywhere in the module.
PASSES: dict[str, tuple[str, str, str | Callable[[re.Match[str]], str]]] = {
    "a sum becomes a difference": ("float_rules", r" fadd float", " fsub float"),
    "a product becomes a sum": ("float_rules", r" fmul float", " fadd float"),
    "factors and addend change places":
        ("float_rules", r"(fma\.f32\(float \S+,) (float \S+), (float \S+)\)", r"\1 \3, \2)"),
    "denormal numbers are flushed":
        ("float_rules", '"denormal-fp-math-f32"="ieee,ieee"',
         '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'),
    "a comparison of numbers is reversed": ("float_rules", r"fcmp ugt", "fcmp ult"),
    "choices change places": ("carry_chains", _SELECT, r"select i1 \1, i32 \3, i32 \2"),
    "a guard is lost": ("divergent_if", _SELECT, r"select i1 true, i32 \2, i32 \3"),
    "a guard never holds": ("predicated_stores", _SELECT, r"select i1 false, i32 \2, i32 \3"),
    "branches change places":
        ("divergent_if", r"br i1 (\S+), label (\S+), label ([^\s,]+)",
         r"br i1 \1, label \3, label \2"),
    "a sum of integers becomes a difference": ("carry_chains", r" add i32", " sub i32"),
    "a product of integers becomes a sum": ("float_rules", r" mul i64", " add i64"),
    "a shift keeps the sign": ("byte_lanes", r" lshr ", " ashr "),
    "a shift goes the other way": ("divergent_if", r" shl i32", " lshr i32"),
    "a sign is not extended": ("multiply_high", r" sext ", " zext "),
    "a comparison is unsigned": ("carry_chains", r"icmp slt", "icmp ult"),
    "a comparison admits equality": ("carry_chains", r"icmp ult", "icmp ule"),
    "and becomes or": ("float_rules", r" and i32", " or i32"),
    "or becomes and": ("float_rules", r" or i32", " and i32"),
    "xor becomes or": ("float_rules", r" xor i32", " or i32"),
    "ones become leading zeros": ("global_atomics", r"call i32 @llvm\.ctpop\.i32\((i32 \S+)\)",
                                  r"call i32 @llvm.bitreverse.i32(\1)"),
    "another lane is asked": ("shuffle_forms", r"bpermute\(i32 \S+,", "bpermute(i32 4,"),
    "lanes are counted from another": ("shuffle_forms", r"mbcnt\.lo\(i32 -1", "mbcnt.lo(i32 -2"),
    "another instruction is stood in for":
        ("conversions", r"sad\.u8\((i32 \S+, i32 0), i32 7\)", r"sad.u8(\1, i32 6)"),
    "a thread has another's number": ("divergent_if", r"workitem\.id\.x", "workitem.id.y"),
    "a block has another's number": ("divergent_if", r"workgroup\.id\.x", "workgroup.id.y"),
    "an atomic sum becomes a difference": ("global_atomics", r"atomicrmw add", "atomicrmw sub"),
    "an atomic maximum becomes a minimum": ("global_atomics", r"atomicrmw umax", "atomicrmw umin"),
    "an argument is read beside its place":
        ("divergent_if", r"(i32 %arg32\.352), (i32 %arg32\.356), (i32 %arg32\.360),",
         r"\3, \2, \1,"),
    "a conversion loses its sign": ("conversions", r"sitofp i32", "uitofp i32"),
    "a rounding to nearest is upwards": ("conversions", r"roundeven\.f32", "ceil.f32"),
}  # fmt: skip
SAMPLE = 3  # that every run of the tests has


def _found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, pattern, by = PASSES[name]
    changed: list[bool] = []

    def wrong(text: str, target: Target) -> MachineCode:
        new = re.sub(pattern, by, text, flags=re.MULTILINE)
        changed.append(new != text)
        return compiled(new, target)

    monkeypatch.setattr(translate, "compiled", wrong)
    try:
        check(load(kernel, 80), kernel, change=translate.by_tier)
    except Refused:
        raise  # it must be code
    except (AssertionError, SassxlateError):
        assert changed == [True]
    else:
        pytest.fail(f"not found: {name}")


def test_some_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others with each CI seed."""
    chance = random.Random(int(os.environ.get("SASSXLATE_TEST_SEED", "1")))
    for name in chance.sample(sorted(PASSES), SAMPLE):
        with monkeypatch.context() as patch:
            _found(name, patch)


@pytest.mark.sweep
@pytest.mark.parametrize("name", PASSES)
def test_each_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _found(name, monkeypatch)
