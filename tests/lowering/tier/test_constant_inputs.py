"""Single instructions whose sources are constants that LLVM knows, against what an H200 computed
from the same numbers: what LLVM computes itself must be what the instruction gives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.errors import DecodeError, LoweringError
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated, assembly
from sassxlate.lowering.target import DEFAULT, target_named
from sassxlate.lowering.tier.compiler.known_numbers import hidden
from sassxlate.lowering.tier.translate import by_tier
from tests.lowering.rules.silicon import FOLDER, Form, Words, differing, forms, inputs, measured

ARCH = 90
SOURCES = ("R4", "R5", "R2", "R3", "R8", "R9", "R10", "R11")
RESULTS = ("R10", "R11", "R6")  # the last with the predicates
_STORE = "STG.E desc[UR4][R14.64], R10"
DENORMAL = np.uint32(0x007FFFFF)


@cache
def _assembled(text: str) -> bytes:
    return assemble_listing([f"{text} ;"], ARCH)[""][:16]


def _code(form: Form, vectors: Sequence[int]) -> bytes:
    """Runs the word with the sources of each vector, and stores its results."""
    out = bytearray()
    for number, vector in enumerate(vectors):
        row = [int(x) for x in inputs()[form.kind, vector]]
        for name, word in zip(SOURCES, row, strict=False):
            out += _assembled(f"MOV {name}, {word:#x}")
        out += _assembled(f"MOV R6, {row[8]:#x}") + _assembled("R2P PR, R6, 0x7f")
        out += form.word.to_bytes(16, "little") + _assembled("P2R R6, PR, RZ, 0x7f")
        for k, name in enumerate(RESULTS):
            place = f"+{12 * number + 4 * k:#x}" if number + k else ""
            out += _assembled(f"STG.E desc[UR4][R14.64{place}], {name}")
    return bytes(out) + _assembled("EXIT")


def _translated(code: bytes) -> Translated:
    cubin = parse_cubin((FOLDER / "template.cubin").read_bytes())
    (kernel,) = cubin.kernels
    whole = kernel.code[0x20:0x40] + kernel.code[0x50:0x60] + code  # where the results go
    return translate_kernel(replace(cubin, kernels=(replace(kernel, code=whole),)), kernel.name)


def _computed(form: Form, vectors: Sequence[int]) -> Words:
    """(vector, word) by the tier's code.  Raises the error of a refusal."""
    rules = _translated(_code(form, vectors))
    device = EmulatedDevice(1 << 16)
    size = 12 * len(vectors)
    target = device.alloc(bytes(size))
    pointers = np.array([0, target], dtype="<u8").tobytes()
    arguments = rules.launch.kernarg(pointers, (32, 1, 1), (1, 1, 1), {})
    made = by_tier(rules, DEFAULT).code_object
    run_code_object(made, rules.kernel.name, 1, 32, arguments, device)
    return np.frombuffer(device.read(target, size), dtype="<u4").reshape(-1, 3)


def _wrong(form: Form, vectors: Sequence[int]) -> list[str]:
    got = _computed(form, vectors)
    real = measured()[form.number][list(vectors)]
    return [
        f"{form.text}: {' '.join(f'{int(w):08x}' for w in inputs()[form.kind, vectors[n]])}: "
        f"H200 {real[n, 0]:08x}, here {got[n, 0]:08x}"
        for n in differing(form, got, real)
    ]


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("FFMA.FTZ R10, R4, R2, R8", 0, 1),  # LLVM's product of a denormal number was not flushed
        ("FFMA.FTZ R10, |R4|, -1, |R8|", 0, 0x80000001),
        # The clamp of what is -0 was -0.
        ("FMUL.FTZ.SAT R10, R4, 3.1415927410125732422", 0, 0x80000001),
        # Ra's NaN was not NVIDIA's yet where .IS_A asks for that.
        ("HMNMX2.XORSIGN.IS_A R10, P3, P4, R4, +QNAN , -QNAN , P0", 0, 0x80007E00),
    ],
)
def test_what_was_wrong_once(text: str, place: int, word: int) -> None:
    form = next(f for f in forms() if f.text == text)
    vectors = [int(n) for n in np.flatnonzero(inputs()[form.kind, :, place] == word)][:16]
    assert vectors
    assert not _wrong(form, vectors)


def test_the_sine_of_minus_zero() -> None:
    """LLVM's was +0, which is within the bound of an approximation."""
    form = next(f for f in forms() if f.text == "MUFU.SIN R10, R2")
    vector = int(np.flatnonzero(inputs()[form.kind, :, 2] == 1 << 31)[0])
    assert _computed(form, [vector])[0, 0] == measured()[form.number, vector, 0] == 1 << 31


def _stored(*code: str, target: str = DEFAULT.name) -> int:
    """The word that one wave's code stores from R10."""
    rules = _translated(b"".join(map(_assembled, (*code, _STORE, "EXIT"))))
    device = EmulatedDevice(1 << 16)
    place = device.alloc(b"\1\2\3\4")
    pointers = np.array([0, place], dtype="<u8").tobytes()
    arguments = rules.launch.kernarg(pointers, (32, 1, 1), (1, 1, 1), {})
    made = by_tier(rules, target_named(target)).code_object
    run_code_object(made, rules.kernel.name, 1, 32, arguments, device)
    return int.from_bytes(device.read(place, 4), "little")


@pytest.mark.parametrize("text", ["FFMA.SAT R10, R4, 1, -RZ", "FMUL.FTZ.SAT R10, R4, 1.5"])
def test_a_saturated_minus_zero_is_zero(text: str) -> None:
    assert _stored("MOV R4, 0x80000000", text) == 0


@pytest.mark.parametrize("word", [0x7F900000, 0xFF800001, 0x7FC00000])
def test_a_saturated_nan_is_zero(word: int) -> None:
    assert _stored(f"MOV R4, {word:#x}", "FADD.SAT R10, R4, -RZ") == 0


@pytest.mark.parametrize("name", ["gfx1201", "gfx1030"])
@pytest.mark.parametrize("word", [0x7F900000, 0xFF800001, 0x7FC00000])
def test_a_saturated_nan_is_zero_where_nothing_runs(name: str, word: int) -> None:
    """Of a signaling one LLVM made 1 for RDNA4, whose med3 gives its last source then.  The
    emulated device runs RDNA3 alone; LLVM knows the number and stores it."""
    code = f"MOV R4, {word:#x}", "FADD.SAT R10, R4, -RZ", _STORE, "EXIT"
    made = by_tier(_translated(b"".join(map(_assembled, code))), target_named(name))
    text = assembly(made.items, made.program) if made.items else made.text
    assert "global_store" in text
    assert "1.0" not in text


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(16))
def test_every_form(part: int) -> None:
    """With denormal numbers where there are some."""
    chance = random.Random(part)
    wrong: list[str] = []
    equal = 0
    for form in forms()[part::16]:
        words = inputs()[form.kind, :, :6:2] & np.uint32(0x7FFFFFFF)
        tiny = np.flatnonzero(((words > 0) & (words <= DENORMAL)).any(axis=1))
        chosen = chance.sample([int(n) for n in tiny], min(8, tiny.size))
        vectors = [*chosen, *chance.sample(range(len(words)), 8)]
        try:
            wrong += _wrong(form, vectors)
        except (LoweringError, DecodeError):
            continue
        equal += 1
    assert not wrong, "\n".join(wrong)
    assert equal > len(forms()) // 32


def test_constants_are_hidden_from_code_generation() -> None:
    text = str(
        llvm.parse_assembly(
            """declare float @llvm.fma.f32(float, float, float)
declare float @llvm.floor.f32(float)
declare float @llvm.canonicalize.f32(float)
define float @f(float %x) #0 {
  %a = call float @llvm.fma.f32(float 0x36A0000000000000, float 3.0, float 1.0)
  %b = call float @llvm.fma.f32(float %x, float 3.0, float 1.0)
  %c = tail call float @llvm.floor.f32(float 2.5)
  %d = call float @llvm.canonicalize.f32(float 2.5)
  %s = fadd float %a, %b
  %t = fadd float %c, %d
  %u = fadd float %s, %t
  ret float %u
}
attributes #0 = { "denormal-fp-math-f32"="preserve-sign,preserve-sign" }
"""
        )
    )
    made = hidden(text)
    llvm.parse_assembly(made).verify()
    assert made.count("= call float @llvm.amdgcn.softwqm.f32(") == 3
    assert "@llvm.fma.f32(float %known.1, float 3.000000e+00" in made
    assert "@llvm.floor.f32(float %known.2)" in made
    assert "@llvm.canonicalize.f32(float %known.3)" in made
