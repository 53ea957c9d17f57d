"""Single instructions against an H200: each word in the slot of a template, 512 inputs a word.

``fixtures/silicon/README.md`` says what the files hold and how they were made.
"""

from __future__ import annotations

import lzma
import os
import random
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.errors import DecodeError, LoweringError
from sassxlate.lowering.emulate.runner import Device, run_code_object
from sassxlate.lowering.pipeline import translate_kernel

FOLDER = Path(__file__).resolve().parent.parent.parent / "fixtures" / "silicon" / "sm_90"
SLOT = 0x180  # of the template's code
VECTORS, THREADS = 512, 256  # threads a launch
CLASSES = ("words", "floats", "doubles", "halves")
Words = NDArray[np.uint32]

# Largest distances, as the vendors state them: in units of the last place, or absolute.
# RCP64H and RSQ64H give the high word of a double.
ULPS = {"RCP": 1, "RSQ": 1, "SQRT": 1, "EX2": 2, "RCP64H": 1, "RSQ64H": 1}
ABSOLUTE = {"SIN": 2.0**-21, "COS": 2.0**-21, "LG2": 2.0**-22}
RELATIVE = {"TANH": 2.0**-11}


@dataclass(frozen=True, slots=True)
class Form:
    """One instruction word; ``kind`` is the class of its inputs."""

    number: int
    word: int
    kind: int
    text: str

    @property
    def parts(self) -> list[str]:
        return self.text.split()[0].split(".")


@cache
def forms() -> tuple[Form, ...]:
    lines = (FOLDER / "forms.txt").read_text().splitlines()[1:]
    split = [line.split(" ", 2) for line in lines]
    return tuple(
        Form(n, int(word, 16), CLASSES.index(kind), text)
        for n, (word, kind, text) in enumerate(split)
    )


@cache
def inputs() -> Words:
    """(class, vector, word): a, b, c, d as pairs, then the predicates."""
    raw = lzma.decompress((FOLDER / "inputs.xz").read_bytes())
    return np.frombuffer(raw, dtype="<u4").reshape(len(CLASSES), VECTORS, 10)


@cache
def measured() -> Words:
    """(form, vector, word): d as a pair and the predicates after the instruction."""
    raw = lzma.decompress((FOLDER / "results.xz").read_bytes())
    planes = np.frombuffer(raw, dtype=np.uint8).reshape(4, -1)
    changes = np.ascontiguousarray(planes.T).view("<u4").reshape(3, -1, VECTORS).transpose(1, 2, 0)
    before = inputs()[[form.kind for form in forms()]][:, :, 6:9]
    return changes ^ before


def emulated(form: Form) -> Words:
    """(vector, word) as the translation computes it.  Raises what refuses it."""
    cubin = parse_cubin((FOLDER / "template.cubin").read_bytes())
    (kernel,) = cubin.kernels
    code = bytearray(kernel.code)
    code[SLOT : SLOT + 16] = form.word.to_bytes(16, "little")
    changed = replace(cubin, kernels=(replace(kernel, code=bytes(code)),))
    translated = translate_kernel(changed, kernel.name)
    device = Device()
    source = device.alloc(inputs()[form.kind].tobytes())
    target = device.alloc(VECTORS * 12)
    pointers = np.array([source, target], dtype="<u8").tobytes()
    grid, block = (VECTORS // 32, 1, 1), (32, 1, 1)
    arguments = translated.launch.kernarg(pointers, block, grid, {})
    run_code_object(translated.code_object, kernel.name, VECTORS // 32, 32, arguments, device)
    return np.frombuffer(device.read(target, VECTORS * 12), dtype="<u4").reshape(VECTORS, 3)


def _nan16(words: Words) -> NDArray[np.bool_]:
    return (np.ascontiguousarray(words).view("<u2").reshape(-1, 2) & 0x7FFF) > 0x7C00


def differing(form: Form, actual: Words, real: Words) -> NDArray[np.intp]:
    """The vectors whose results are not the same; payloads of NaNs are free.

    FCHK may ask for the slow path more often: that path is exact everywhere.
    """
    name, *rest = form.parts
    wrong = (actual != real).any(axis=1)
    others = (actual[:, 1:] == real[:, 1:]).all(axis=1)
    if name in ("HADD2", "HMUL2", "HFMA2", "HMNMX2", "F2FP", "F2F"):
        a16, r16 = (
            np.ascontiguousarray(w[:, 0]).view("<u2").reshape(-1, 2) for w in (actual, real)
        )
        same = (a16 == r16) | (_nan16(actual[:, 0]) & _nan16(real[:, 0]))
        wrong &= ~(same.all(axis=1) & others)
    if name in ("DADD", "DMUL", "DFMA") or "F64" in rest[:2]:
        a64, r64 = (np.ascontiguousarray(w[:, :2]).view("<f8")[:, 0] for w in (actual, real))
        wrong &= ~(np.isnan(a64) & np.isnan(r64) & (actual[:, 2] == real[:, 2]))
    if name == "FCHK":
        slow = np.uint32(8)
        wrong &= ((actual | slow) != (real | slow)).any(axis=1) | (real[:, 2] & ~actual[:, 2] != 0)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        a32, r32 = (
            np.ascontiguousarray(w[:, 0]).view("<f4").astype(np.float64) for w in (actual, real)
        )
    if name[0] == "F" or name in ("MUFU", "HADD2"):
        wrong &= ~(np.isnan(a32) & np.isnan(r32) & others)
    if name == "MUFU":
        wrong &= ~(_near(rest[0], actual[:, 0], real[:, 0], a32, r32) & others)
    return np.flatnonzero(wrong)


def _near(
    function: str, a: Words, r: Words, af: NDArray[np.float64], rf: NDArray[np.float64]
) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        distance = np.abs(af - rf)
    if function in ULPS:
        near: NDArray[np.bool_] = np.abs(a.astype(np.int64) - r.astype(np.int64)) <= ULPS[function]
        return near
    if function == "LG2":  # the larger of the bound and one unit in the last place
        return distance <= np.maximum(ABSOLUTE["LG2"], np.abs(rf) * 2.0**-22)
    if function in ABSOLUTE:
        return distance <= ABSOLUTE[function]
    return distance <= RELATIVE.get(function, 0.0) * np.abs(rf)


def _judge(chosen: list[Form]) -> Counter[str]:
    verdicts: Counter[str] = Counter()
    wrong: list[str] = []
    for form in chosen:
        try:
            actual = emulated(form)
        except (LoweringError, DecodeError):
            verdicts["refused"] += 1
            continue
        bad = differing(form, actual, measured()[form.number])
        verdicts["refuted" if bad.size else "equal"] += 1
        if bad.size:
            at = int(bad[0])
            shown = [
                " ".join(f"{int(word):08x}" for word in words)
                for words in (inputs()[form.kind, at], measured()[form.number, at], actual[at])
            ]
            wrong.append(
                f"{form.text}: {bad.size} of {VECTORS}; inputs {shown[0]}: "
                f"H200 {shown[1]}, emulated {shown[2]}"
            )
    print(dict(verdicts))
    assert not wrong, "\n".join(wrong)
    return verdicts


def test_every_mnemonic() -> None:
    """Two forms of each mnemonic, others in each run of CI's seed."""
    by_name: dict[str, list[Form]] = {}
    for form in forms():
        by_name.setdefault(form.parts[0], []).append(form)
    chance = random.Random(int(os.environ.get("SASSXLATE_TEST_SEED", "1")))
    chosen = [f for group in by_name.values() for f in chance.sample(group, min(2, len(group)))]
    assert _judge(chosen)["equal"] > len(chosen) // 2


@pytest.mark.parametrize(
    "text",
    [
        "DSETP.MAX.AND P3, P4, R4, R2",
        "DSETP.MIN.AND P3, P4, -R4, -R2",
        "I2F.U64.RM R10, 0x80000000",
        "IMAD.WIDE.U32 R10, P3, R4, RZ, -RZ",
        "MUFU.TANH.F16 R10, R2",
        "MUFU.RCP64H R10",
        "FRND.FTZ.F64.CEIL R10, R2",
        "MUFU.RSQ64H R10, R2",
        "HMUL2.FTZ R10, R4, R2",
    ],
)
def test_once_wrong(text: str) -> None:
    """Forms that were translated wrongly before they were measured."""
    found = [form for form in forms() if form.text.startswith(text)]
    assert found
    _judge(found)


def test_comparison_sees_differences() -> None:
    for name in ("IADD3", "FADD", "DADD", "HADD2", "MUFU.RCP", "FCHK"):
        form = next(f for f in forms() if f.text.startswith(name))
        real = measured()[form.number]
        assert not differing(form, real, real).size
        for word in range(3):
            changed = real.copy()
            changed[:, word] ^= np.uint32(0x40)
            assert differing(form, changed, real).size > VECTORS // 4, (name, word)


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(8))
def test_all_forms(part: int) -> None:
    _judge([form for form in forms() if form.number % 8 == part])
