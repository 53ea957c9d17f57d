"""Single instructions against an H200: each word in the slot of a template, 512 inputs per word.

``fixtures/silicon/README.md`` describes the files and how they were made.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.errors import DecodeError, LoweringError
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated

from .silicon import FOLDER, SLOT, VECTORS, Form, Words, differing, forms, inputs, measured


def emulated(
    form: Form,
    change: Callable[[Translated], Translated] | None = None,
    run: Callable[[bytes, str, int, int, bytes, EmulatedDevice], None] = run_code_object,
) -> Words:
    """(vector, word) as the translation computes it; ``change`` is what is done to the translation
    before, ``run`` executes it.  Raises the error of a refusal."""
    cubin = parse_cubin((FOLDER / "template.cubin").read_bytes())
    (kernel,) = cubin.kernels
    code = bytearray(kernel.code)
    code[SLOT : SLOT + 16] = form.word.to_bytes(16, "little")
    changed = replace(cubin, kernels=(replace(kernel, code=bytes(code)),))
    translated = translate_kernel(changed, kernel.name)
    if change is not None:
        translated = change(translated)
    device = EmulatedDevice()
    source = device.alloc(inputs()[form.kind].tobytes())
    target = device.alloc(VECTORS * 12)
    pointers = np.array([source, target], dtype="<u8").tobytes()
    grid, block = (VECTORS // 32, 1, 1), (32, 1, 1)
    arguments = translated.launch.kernarg(pointers, block, grid, {})
    run(translated.code_object, kernel.name, VECTORS // 32, 32, arguments, device)
    return np.frombuffer(device.read(target, VECTORS * 12), dtype="<u4").reshape(VECTORS, 3)


def judge(
    chosen: list[Form], change: Callable[[Translated], Translated] | None = None
) -> Counter[str]:
    """How many forms are equal to the H200's, or refused; none may differ."""
    verdicts: Counter[str] = Counter()
    wrong: list[str] = []
    for form in chosen:
        try:
            actual = emulated(form, change)
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
    """Two forms of each mnemonic, different ones with each CI seed."""
    by_name: dict[str, list[Form]] = {}
    for form in forms():
        by_name.setdefault(form.parts[0], []).append(form)
    chance = random.Random(int(os.environ.get("SASSXLATE_TEST_SEED", "1")))
    chosen = [f for group in by_name.values() for f in chance.sample(group, min(2, len(group)))]
    assert judge(chosen)["equal"] > len(chosen) // 2


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
        "F2F.FTZ.F32.F16.RP R10",
    ],
)
def test_once_wrong(text: str) -> None:
    """Forms that were translated wrongly before they were measured."""
    found = [form for form in forms() if form.text.startswith(text)]
    assert found
    judge(found)


@pytest.mark.parametrize(
    "pattern",
    [
        r"F2F\.FTZ\.\S*(B?F16\.F64|F64\.B?F16|B?F16\.F32|F32\.B?F16|F16\.BF16|BF16\.F16)",
        r"F2F\.(BF16\.F16|F16\.BF16)",
        r"(F2I|FRND)\.FTZ\.\S*(F16|BF16|F64)",
        r"F2FP\.(SATFINITE|RELU\.TF32)",
        r"I2F\.\S*[SU]64\S* R10, -?0x",
        r"HFMA2\S*\.(FTZ|FMZ|OOB|RELU)",
        r"HFMA2.*H0_NH1",
        r"HMUL2\.(FTZ|FMZ)",
        r"HSET2?P?2\S*(FTZ|\.[FT]\.(AND|OR|XOR) .*[-|])",
        r"V?HMNMX2?\S*(NAN|XORSIGN|IS_A| .*P0$)",
        r"FMNMX\S*(NAN|XORSIGN|IS_A)",
        r"HADD2\.F32\.FTZ",
        r"DSETP\.(MIN|MAX)",
        r"IMAD\.(WIDE|HI)\S*( R10, P3|\.X )",
        r"VABSDIFF4(\.ACC)? ",
        r"VIMNMX3?\S* .*P0$",
        r"PLOP3.*SIGN",
        r"IADD3 R10, P3, P4.*-RZ",
        r"IDP",
    ],
)
def test_once_refused(pattern: str) -> None:
    """Two forms of each family that had semantics but no rule: translated, and equal."""
    found = [form for form in forms() if re.match(pattern, form.text)]
    chance = random.Random(int(os.environ.get("SASSXLATE_TEST_SEED", "1")))
    chosen = chance.sample(found, min(2, len(found)))
    assert judge(chosen) == {"equal": len(chosen)}


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
    judge([form for form in forms() if form.number % 8 == part])
